/* SPDX-License-Identifier: MIT
 *
 * program.h: random tensor programs.
 *
 * A program is a list of steps; a step makes one value from earlier ones. What the numbers of a
 * step mean is taken modulo what is possible (an axis modulo the rank …), so that every list of
 * steps is a program and a failing one can be made smaller by changing anything in it. */
#pragma once

#include "tiny.h"

G_BEGIN_DECLS

enum { PROGRAM_MAX_STEPS = 24, STEP_N_NUMBERS = 6 };

typedef struct {
  guint8 op;      /* a row of program-steps.def */
  guint8 from[3]; /* earlier steps */
  guint8 dtype;
  guint8 size; /* of a leaf: the most elements, as a power of two */
  guint32 p[STEP_N_NUMBERS];
} Step;

typedef struct {
  guint n;
  Step steps[PROGRAM_MAX_STEPS];
  gboolean one_by_one; /* outputs are realised one after the other */
  gboolean no_f64;     /* a device has no such thing: f32 is in its place */
} Program;

void program_generate (Program *self, guint64 seed);
/* Makes the values of all steps on @device (NULL: the default one); free with
 * program_clear(). @text gets one line for each step. A step that cannot be is what its first
 * source is. */
void program_build (const Program *self, const char *device, TinyTensor **out, GString *text);
void program_clear (const Program *self, TinyTensor **values);
/* Which values no later step uses. */
gboolean program_is_output (const Program *self, guint i);
/* The @i-th way to make the program simpler; FALSE when there are no more. */
gboolean program_simplify (const Program *self, guint i, Program *out);

G_END_DECLS
