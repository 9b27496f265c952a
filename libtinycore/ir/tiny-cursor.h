/* SPDX-License-Identifier: MIT
 *
 * tiny-cursor.h: a place in the text form, and what can be read there.
 *
 * What returns FALSE has set the error, which names line and column; but take only says whether it was there. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

typedef struct {
  const char *start, *p;
  GError **error;
} TinyCursor;

/* What stands before the sources of a call. */
typedef struct {
  TinyOp op;
  TinyDType dtype;
  guint lanes;
  gint64 arg;
  GArray *ints; /* of gint64, or NULL */
  char *text;
  guint fields; /* bits of the numbers given by name */
  gboolean has_arg, has_kind;
} TinyTextHead;

void tiny_text_head_clear (TinyTextHead *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyTextHead, tiny_text_head_clear)

/* FALSE, and the error that is at @at. */
gboolean tiny_cursor_fail (TinyCursor *self, const char *at, const char *format, ...)
    G_GNUC_PRINTF (3, 4);
/* What stands at @at, for messages. */
const char *tiny_cursor_found (const char *at, char buffer[24]);
/* Space, and comments to the end of a line. */
void tiny_cursor_skip_space (TinyCursor *self);
gboolean tiny_cursor_take (TinyCursor *self, char c);
/* The same without skipping: what continues an expression follows it at once. */
gboolean tiny_cursor_take_adjacent (TinyCursor *self, char c);
gboolean tiny_cursor_expect (TinyCursor *self, char c);

/* Letters, digits and underscores from here on. */
gsize tiny_word_length (const char *p);
gboolean tiny_word_is (const char *word, gsize n, const char *text);

/* "f32", "f32x8" */
gboolean tiny_cursor_read_type (TinyCursor *self, TinyDType *out_dtype, guint *out_lanes);
gboolean tiny_cursor_read_integer (TinyCursor *self, gint64 *out);
/* "[1, 2]", appended to @out, of gint64 */
gboolean tiny_cursor_read_list (TinyCursor *self, GArray *out);
gboolean tiny_cursor_read_string (TinyCursor *self, char **out);
/* "%name", without the sign */
gboolean tiny_cursor_read_name (TinyCursor *self, char **out);
/* "ADD.f32x4", "CONST{arg=1}" */
gboolean tiny_cursor_read_head (TinyCursor *self, TinyTextHead *out);

G_END_DECLS
