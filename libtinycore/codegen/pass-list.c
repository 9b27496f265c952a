/* SPDX-License-Identifier: MIT
 *
 * pass-list.c: the way of a kernel to a linear program.
 *
 * The table below is the whole of it. TINY_VERIFY checks the IR after each pass, DEBUG=5 prints
 * it; what came out is shown by who asked for it (engine/tiny-debug.c). */
#include "codegen/codegen-private.h"

#include <string.h>

#include "base/tiny-env.h"
#include "base/interrupt-check.h"
#include "base/tiny-error.h"
#include "base/tiny-timing.h"
#include "codegen/tiny-decompose.h"
#include "ir/tiny-text.h"
#include "ir/tiny-verify.h"
#include "rewrite/tiny-simplify.h"

/* What the IR is after a pass, a TinyStage; STAGE_LINEAR: no longer nodes. */
enum { STAGE_LINEAR = TINY_STAGE_EXPANDED + 1 };

static const struct {
  const char *name;
  TinyPassFunc run;
  guint stage;
  const char *why;
} passes[] = {
  { "loops", tiny_pass_loops, TINY_STAGE_KERNEL, "no loop is empty from here on" },
  { "simplify", tiny_pass_simplify, TINY_STAGE_KERNEL, "fewer nodes for all that follow" },
  { "words", tiny_pass_words, TINY_STAGE_KERNEL,
    "buffers of what the target cannot store are ones of words" },
  { "stores", tiny_pass_stores, TINY_STAGE_KERNEL, "what stays as it is need not be stored" },
  { "wide", tiny_pass_wide, TINY_STAGE_KERNEL,
    "floats that the target only stores are computed in f32, rounded where that changes "
    "something" },
  { "loops", tiny_pass_loops, TINY_STAGE_KERNEL, "each loop nest gets ranges of its own" },
  { "optimise", tiny_pass_optimise, TINY_STAGE_KERNEL,
    "axes are split, padded and spread for the target" },
  { "expand", tiny_pass_expand, TINY_STAGE_EXPANDED,
    "copies and vectors take the place of split axes" },
  { "bound", tiny_pass_bound, TINY_STAGE_EXPANDED,
    "loops end where a variable or a number that was read says that nothing follows" },
  { "blocks", tiny_pass_blocks, TINY_STAGE_EXPANDED,
    "long sums of floats are made of the sums of blocks, which round less" },
  { "reduce", tiny_pass_reduce, TINY_STAGE_EXPANDED,
    "REDUCE becomes a register and loops; stores get their loops" },
  { "index", tiny_pass_index, TINY_STAGE_EXPANDED,
    "INDEX becomes i32 or i64, floor division what machines have" },
  { "decompose", tiny_pass_decompose, TINY_STAGE_EXPANDED,
    "only ops that the target declares are left" },
  { "linearise", tiny_pass_linearise, STAGE_LINEAR,
    "nodes become a list, each in the outermost loop it can" },
  { "barriers", tiny_pass_barriers, STAGE_LINEAR,
    "items of a work-group wait before they read what others wrote" },
  { "place", tiny_pass_place, STAGE_LINEAR,
    "what a grid point keeps for a row lies in the row's output" },
  { "rounds", tiny_pass_rounds, STAGE_LINEAR,
    "loops that a target would end too early do more in a round" },
};

gboolean
tiny_pass_simplify (TinyCodegen *cg, GError **error)
{
  cg->root = tiny_simplify (cg->graph, cg->root);
  return TRUE;
}

gboolean
tiny_pass_decompose (TinyCodegen *cg, GError **error)
{
  TinyNode *root = tiny_decompose (cg->graph, cg->root, cg->target, error);
  if (root == NULL)
    return FALSE;
  cg->root = root;
  tiny_codegen_list_params (cg); /* some may be of words now */
  return TRUE;
}

/* Checks and shows what pass @i left. */
static gboolean
inspect (TinyCodegen *cg, guint i, GError **error)
{
  gboolean is_linear = passes[i].stage == STAGE_LINEAR;
  if (TINY_DEBUG (5) && !is_linear) {
    g_autofree char *text = tiny_graph_print (cg->graph, cg->root);
    g_printerr ("// after %s: %s\n%s\n", passes[i].name, passes[i].why, text);
  }
  if (!tiny_verify_is_wanted ())
    return TRUE;
  gboolean ok = is_linear ? tiny_verify_linear (&cg->program->linear, cg->target, error)
                          : tiny_graph_verify (cg->graph, cg->root, passes[i].stage, error);
  if (!ok)
    g_prefix_error (error, "after %s: ", passes[i].name);
  return ok;
}

/* Runs the passes up to the last one named @last, or all of them. */
static gboolean
run_passes (TinyCodegen *cg, const char *last, GError **error)
{
  guint n = G_N_ELEMENTS (passes);
  while (last != NULL && n > 0 && strcmp (passes[n - 1].name, last) != 0)
    n--;
  if (n == 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "codegen: there is no pass %s", last);
    return FALSE;
  }
  for (guint i = 0; i < n; i++) {
    if (!tiny_interrupt_check (error))
      return FALSE;
    TINY_TIMED ("codegen", passes[i].name);
    if (!passes[i].run (cg, error) || !inspect (cg, i, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
tiny_codegen_prepare (TinyCodegen *cg, GError **error)
{
  tiny_codegen_estimate (cg);
  for (guint i = 0; passes[i].run != tiny_pass_optimise; i++)
    if (!passes[i].run (cg, error))
      return FALSE;
  return TRUE;
}

static TinyLinearProgram *
compile (TinyCodegen *cg, TinyNode *kernel, const char *last, GError **error)
{
  g_autoptr (GArray) applied = g_array_new (FALSE, FALSE, sizeof (TinyOpt));
  g_autoptr (GArray) most_rounds = g_array_new (FALSE, FALSE, sizeof (gint64));
  g_autoptr (TinyLinearProgram) program = g_new0 (TinyLinearProgram, 1);
  cg->root = kernel;
  cg->applied = applied;
  cg->most_rounds = most_rounds;
  cg->program = program;
  tiny_codegen_estimate (cg);
  if (!run_passes (cg, last, error))
    return NULL;
  program->opts = tiny_opts_to_string ((const TinyOpt *) applied->data, applied->len);
  return g_steal_pointer (&program);
}

TinyNode *
tiny_codegen_run_until (TinyGraph *graph,
                        TinyNode *kernel,
                        const TinyTarget *target,
                        const char *opts_text,
                        const char *pass,
                        GError **error)
{
  TinyCodegen cg = { .graph = graph, .target = target };
  g_autofree TinyOpt *opts = tiny_opts_from_string (opts_text, &cg.n_opts, error);
  cg.opts = opts;
  if (opts == NULL)
    return NULL;
  g_autoptr (TinyLinearProgram) program = compile (&cg, kernel, pass, error);
  return program ? cg.root : NULL;
}

TinyLinearProgram *
tiny_codegen_compile (TinyGraph *graph,
                      TinyNode *kernel,
                      const TinyTarget *target,
                      const TinyOpt *opts,
                      guint n_opts,
                      GError **error)
{
  g_return_val_if_fail (kernel->op == TINY_OP_SINK, NULL);
  TinyCodegen cg = { .graph = graph,
                     .target = target,
                     .opts = opts,
                     .n_opts = n_opts,
                     .heuristic = opts == NULL && !tiny_env_get_int (TINY_ENV_NO_OPT) };
  return compile (&cg, kernel, NULL, error);
}

void
tiny_linear_program_free (TinyLinearProgram *self)
{
  if (self == NULL)
    return;
  g_free ((gpointer) self->linear.name);
  g_free ((gpointer) self->linear.instrs);
  g_free ((gpointer) self->linear.sources);
  g_free ((gpointer) self->linear.params);
  g_free (self->opts);
  g_free (self);
}
