/* SPDX-License-Identifier: MIT
 *
 * answer.h: the answers of a worker, checked before anything reads them: a worker's memory may be damaged. */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

enum {
  CONF_MAX_ANSWER = 8 << 20,   /* bytes of one, its line */
  CONF_MAX_LISTED = 100000,    /* cases that a worker lists, and as many absent ones */
  CONF_MAX_LIST = 32 << 20,    /* bytes of the whole list */
  CONF_MAX_KEPT = 256 << 20,   /* bytes that a run keeps of what all workers answered */
  CONF_MAX_NAME = 200,         /* bytes of a case's name */
  CONF_MAX_SECONDS = 24 * 3600 /* that a case may ask for */
};

/* One line as an object with one member, which says what the answer is, and all that those who read it take for granted:
 * "ready", "case", "absent", "end", "result", "error" of cases; "rung", "gap", "top" of the ladder. NULL with
 * %TINY_ERROR_FORMAT. */
JsonNode *conf_answer_parse (const char *line, gsize size, GError **error);
/* One line as a result that a run has kept, of a case that passed or ended in any other way. NULL with
 * %TINY_ERROR_FORMAT. */
JsonNode *conf_answer_parse_kept (const char *line, gsize size, GError **error);

G_END_DECLS
