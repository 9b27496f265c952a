/* SPDX-License-Identifier: MIT
 *
 * kernels.h: kernels built by hand, targets to compile them for, and the comparison of what they
 * compute with what their IR says. */
#pragma once

#include "linear-interpreter.h"
#include "ref-runner.h"

enum { MAX_PARAMS = 32 };

typedef struct {
  TinyGraph *graph;
  guint n_ranges, n_params;
} Build;

/* A target without vectors; one that ends loops early; one as wide as they come; a narrow one without masks and MULACC;
 * two with work-groups. */
TinyTarget scalar_target (void);
TinyTarget short_target (void);
TinyTarget vector_target (void);
TinyTarget narrow_target (void);
TinyTarget group_target (void);
TinyTarget tiny_group_target (void);

/* @target with the memory that the kernel @sink has of its own besides. */
TinyTarget with_room (const TinyTarget *target, TinyNode *sink);

TinyNode *build_range (Build *b, gint64 extent);
TinyNode *build_number (Build *b, gint64 value);
TinyNode *build_op (Build *b, TinyOp op, TinyNode *x, TinyNode *y);
TinyNode *build_index (Build *b, guint n, TinyNode *const *ranges);
TinyNode *build_param (Build *b, TinyDType dtype, guint slot, gint64 n);
TinyNode *build_load (Build *b, TinyNode *p, TinyNode *index, TinyNode *gate);
TinyNode *build_store (Build *b, TinyNode *p, TinyNode *index, TinyNode *value, TinyNode *gate);
TinyNode *build_reduce (Build *b, TinyOp op, TinyNode *value, guint n, TinyNode *const *ranges);
TinyNode *build_sink (Build *b, TinyNode *s);
#define INDEX(b, ...)                                                                          \
  build_index (b, sizeof ((TinyNode *[]){ __VA_ARGS__ }) / sizeof (TinyNode *),                \
               (TinyNode *[]){ __VA_ARGS__ })

/* Compiles the kernel for @target, with @opts_text or by heuristic where it is NULL, and compares
 * every parameter afterwards. Returns the optimisations applied. */
char *check_kernel (Build *b, TinyNode *sink, const TinyTarget *target, const char *opts_text);
/* Runs what became of the kernel and compares every parameter afterwards. */
void check_program (Build *b,
                    TinyNode *sink,
                    const TinyTarget *target,
                    const TinyLinearProgram *program);
/* For all targets, unoptimised and by heuristic. */
void check_everywhere (Build *b, TinyNode *sink);

#define BUILD()                                                                                \
  g_autoptr (TinyGraph) graph = tiny_graph_new ();                                             \
  Build build = { .graph = graph }, *b = &build
