/* SPDX-License-Identifier: MIT
 *
 * tir-passes.c: the table of passes for golden files; a new pass is a function and a row. */
#include "tir-passes.h"

#include <string.h>

#include "base/tiny-error.h"
#include "codegen/codegen-private.h"
#include "ir/tiny-verify.h"
#include "rewrite/tiny-simplify.h"
#include "schedule/plan.h"

/* The text form alone: what was read is written again. */
static TinyNode *
run_parse (TinyGraph *graph, TinyNode *root, const char *args, GError **error)
{
  return root;
}

static TinyNode *
run_verify (TinyGraph *graph, TinyNode *root, const char *args, GError **error)
{
  TinyStage stage;
  if (!tiny_stage_from_string (args, &stage)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "unknown stage %s", args);
    return NULL;
  }
  return tiny_graph_verify (graph, root, stage, error) ? root : NULL;
}

static TinyNode *
run_simplify (TinyGraph *graph, TinyNode *root, const char *args, GError **error)
{
  return tiny_simplify (graph, root);
}

/* A tensor graph as a SINK of its kernels' SINKs, in the order they run; copies between devices
 * are left out. */
static TinyNode *
run_schedule (TinyGraph *graph, TinyNode *root, const char *args, GError **error)
{
  if (!tiny_graph_verify (graph, root, TINY_STAGE_TENSOR, error))
    return NULL;
  TinyGraph *own = tiny_graph_new (); /* the schedule's from here on */
  g_autoptr (TinySchedule) schedule
      = tiny_schedule_new (own, tiny_graph_import (own, root), error);
  if (schedule == NULL)
    return NULL;
  g_autoptr (GPtrArray) kernels = g_ptr_array_new ();
  for (guint i = 0; i < schedule->n_items; i++) {
    const TinyScheduleItem *item = &schedule->items[i];
    if (item->kind != TINY_SCHEDULE_KERNEL)
      continue;
    if (!tiny_graph_verify (schedule->graph, item->kernel, TINY_STAGE_KERNEL, error))
      return NULL;
    g_ptr_array_add (kernels, tiny_graph_import (graph, item->kernel));
  }
  return tiny_node_sink (graph, kernels->len, (TinyNode *const *) kernels->pdata, NULL);
}

/* What the target of pass decompose is without, so that there is something to see. */
static const guint64 lacking = TINY_INSTR_BIT (TINY_INSTR_NEG) | TINY_INSTR_BIT (TINY_INSTR_SUB)
                               | TINY_INSTR_BIT (TINY_INSTR_MAX)
                               | TINY_INSTR_BIT (TINY_INSTR_RECIP)
                               | TINY_INSTR_BIT (TINY_INSTR_CMPEQ);

/* Instructions of a dtype that a target only stores. */
static const guint64 moving
    = TINY_INSTR_BIT (TINY_INSTR_LOAD) | TINY_INSTR_BIT (TINY_INSTR_STORE)
      | TINY_INSTR_BIT (TINY_INSTR_WHERE) | TINY_INSTR_BIT (TINY_INSTR_BITCAST);

static TinyNode *
run_codegen_for (
    TinyGraph *graph, TinyNode *root, const char *args, gboolean has_small, GError **error)
{
  TinyTarget target = { .struct_size = sizeof target,
                        .flags = TINY_TARGET_MASKED | TINY_TARGET_GRID_CHUNKS
                                 | TINY_TARGET_UNALIGNED | TINY_TARGET_GROUPS,
                        .index_dtype = TINY_DTYPE_I64,
                        .dtypes_storage = 0xffff,
                        .dtypes_compute = 0xffff,
                        .vector_bits = 512,
                        .n_vector_registers = 32,
                        .max_lanes = 64,
                        .n_threads = 2,
                        .max_group = { 64, 64, 64 },
                        .max_group_total = 64,
                        .local_bytes = 1 << 18 };
  memset (target.ops, 0xff, sizeof target.ops);
  g_auto (GStrv) words = g_strsplit (args, " ", 2);
  const char *opts = words[0] != NULL && words[1] != NULL ? words[1] : "";
  for (guint i = 0; i < G_N_ELEMENTS (target.ops) && g_strcmp0 (words[0], "decompose") == 0;
       i++)
    target.ops[i] &= ~lacking;
  for (guint i = TINY_DTYPE_F8E4M3; i <= TINY_DTYPE_BF16 && !has_small; i++) {
    target.dtypes_compute &= ~TINY_DTYPE_BIT (i);
    target.ops[i] = moving;
  }
  if (!tiny_graph_verify (graph, root, TINY_STAGE_KERNEL, error))
    return NULL;
  return tiny_codegen_run_until (graph, root, &target, opts, words[0] ? words[0] : "", error);
}

/* A kernel after the codegen pass named first, with the optimisations that follow it, for a wide
 * target that has everything. */
static TinyNode *
run_codegen (TinyGraph *graph, TinyNode *root, const char *args, GError **error)
{
  return run_codegen_for (graph, root, args, TRUE, error);
}

/* … for one that only stores floats of 16 bits and fewer. */
static TinyNode *
run_codegen_f32 (TinyGraph *graph, TinyNode *root, const char *args, GError **error)
{
  return run_codegen_for (graph, root, args, FALSE, error);
}

/* A tensor graph over several devices as one of single ones. */
static TinyNode *
run_apart (TinyGraph *graph, TinyNode *root, const char *args, GError **error)
{
  if (!tiny_graph_verify (graph, root, TINY_STAGE_TENSOR, error))
    return NULL;
  g_autoptr (TinyArena) arena = tiny_arena_new ();
  Plan plan;
  schedule_plan_init (&plan, graph, arena, NULL);
  TinyNode *sink = schedule_take_apart (&plan, root, error);
  schedule_plan_clear (&plan);
  return sink != NULL && tiny_graph_verify (graph, sink, TINY_STAGE_TENSOR, error) ? sink
                                                                                   : NULL;
}

const TirPassRow tir_passes[] = {
  { "apart", run_apart },
  { "codegen", run_codegen },
  { "codegen-f32", run_codegen_f32 },
  { "parse", run_parse },
  { "schedule", run_schedule },
  { "simplify", run_simplify },
  { "verify", run_verify },
  { NULL, NULL },
};
