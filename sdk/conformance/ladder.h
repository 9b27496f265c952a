/* SPDX-License-Identifier: MIT
 *
 * ladder.h: the rungs from a file to a first result, as both sides of --ladder know them. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum {
  CONF_RUNG_FILE,
  CONF_RUNG_LOAD,
  CONF_RUNG_ENTRY,
  CONF_RUNG_TABLE,
  CONF_RUNG_INIT,
  CONF_RUNG_SCAN,
  CONF_RUNG_OPEN,
  CONF_RUNG_INFO,
  CONF_RUNG_ALLOC,
  CONF_RUNG_QUEUE,
  CONF_RUNG_COPY,
  CONF_RUNG_TARGET,
  CONF_RUNG_COMPILE,
  CONF_RUNG_PROGRAM,
  CONF_RUNG_OP,
  CONF_RUNG_OFFSET,
  CONF_RUNG_SECOND,
  CONF_RUNG_CLOSE,
  CONF_N_RUNGS
} ConfRung;

/* In a worker (climb.c): from the first rung to the first that gives way. Says {"rung": N} before each,
 * then {"gap": "…"} or {"top": true}. @say writes a line. */
void conf_climb (const char *path,
                 void (*say) (const char *word, const char *text, gint64 number));

G_END_DECLS
