/* SPDX-License-Identifier: MIT
 *
 * render-private.h: what the files of the renderer share. */
#pragma once

#include <glib.h>

#include "tiny-plugin.h"

/* What a template's dollars stand for; see TinyDialect. */
typedef struct {
  const char *texts[4];                         /* $0 $1 $2 $3 */
  const char *type, *scalar_type, *source_type; /* $t $T $s */
  const char *name, *params;                    /* $name $params */
  guint lanes;                                  /* $n */
  gint64 arg;                                   /* $a, and $x: x y z */
} RenderArgs;

/* Of several items: a group of one shares nothing and waits for nobody. */
static inline gboolean
render_has_groups (const TinyLinear *linear)
{
  return linear->group[0] > 1 || linear->group[1] > 1 || linear->group[2] > 1;
}

/* NULL for a NULL template. */
char *render_template (const char *template, const RenderArgs *args);

/* What C-like languages do not share: a constant with its value, a variable, the head of a loop from
 * 0 up to a bound, one of two values. Without semicolon or brace. */
char *render_constant (const TinyDialect *dialect,
                       const char *type,
                       const char *name,
                       const char *value);
char *render_mutable (const TinyDialect *dialect, const char *type, const char *name);
char *
render_loop (const TinyDialect *dialect, const char *type, const char *name, const char *bound);
char *
render_choice (const TinyDialect *dialect, const char *gate, const char *yes, const char *no);

/* The value of LOAD @load, which @text, taken, is the spelling of. A parameter's memory comes from anywhere: of a bool any
 * byte but 0 is true, and 1 from here on, as an index of two elements may be made of it. */
char *render_truth (const TinyDialect *dialect,
                    const TinyLinear *linear,
                    const TinyInstr *load,
                    char *text);

/* The text of a scalar constant; NULL when the dialect cannot spell it. */
char *render_literal (const TinyDialect *dialect, TinyDType dtype, gint64 arg);

/* Where the text of an instruction's value goes. */
enum {
  RENDER_NAMED,        /* into a constant of its own */
  RENDER_INLINE,       /* to each use: it is as short as a name */
  RENDER_INLINE_SHORT, /* to its only use, unless it is long */
  RENDER_UNUSED        /* nowhere */
};
/* One of these for each instruction; free with g_free(). */
guint8 *render_inline (const TinyLinear *linear, const TinyDialect *dialect);

const TinyInstr *render_source (const TinyLinear *linear, const TinyInstr *instr, guint i);

typedef struct {
  const TinyLinear *linear;
  const TinyDialect *dialect;
  GString *out;
  GStringChunk *chunk; /* owns the texts */
  const char **texts;  /* of each value: a name or an expression */
  const guint8 *inlined;
  GError *error;     /* the first */
  guint depth;       /* of indentation */
  gsize kernel_at;   /* where in the text the kernel begins */
  char sizes[3][16]; /* the grid's extents */
  guint n_values, n_registers, n_ranges, n_locals, n_indices[2][3];
} Render;
