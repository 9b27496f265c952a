/* SPDX-License-Identifier: MIT
 *
 * linear-copy.h: a list of instructions made from another, for passes that insert or repeat some. */
#pragma once

#include "codegen/codegen-private.h"

G_BEGIN_DECLS

typedef struct {
  const TinyLinear *from;
  GArray *instrs, *sources;
  guint32 *at; /* the newest copy of each of @from's */
} LinearCopy;

void linear_copy_begin (LinearCopy *self, const TinyLinear *from);
/* A new instruction: @like with other sources. */
guint32 linear_copy_append (LinearCopy *self, TinyInstr like, guint n, const guint32 *sources);
/* Instruction @i of @from, of the newest copies of its sources. */
guint32 linear_copy_instr (LinearCopy *self, guint32 i);
/* Puts the new list in the place of @linear's own, which is freed. */
void linear_copy_end (LinearCopy *self, TinyLinear *linear);

G_END_DECLS
