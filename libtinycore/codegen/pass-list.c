/* SPDX-License-Identifier: MIT
 *
 * pass-list.c: the way of a kernel to a linear program.
 *
 * The table below is the whole of it. TINY_VERIFY checks the IR after each pass, DEBUG=5 prints
 * it, DEBUG=3 shows the optimisations chosen, DEBUG=6 the linear program. */
#include "codegen/codegen-private.h"

#include "base/tiny-env.h"
#include "base/tiny-error.h"

static const struct {
  const char *name;
  TinyPassFunc run;
  const char *why;
} passes[] = {
  { "loops", tiny_pass_loops, "each loop nest gets ranges of its own" },
  { "reduce", tiny_pass_reduce, "REDUCE becomes a register and loops; stores get their loops" },
  { "index", tiny_pass_index, "INDEX becomes i32 or i64, floor division what machines have" },
  { "linearise", tiny_pass_linearise,
    "nodes become a list, each in the outermost loop it can" },
};

static void
show (TinyCodegen *cg)
{
  if (TINY_DEBUG (3))
    g_printerr ("opts %s: %s\n", cg->program->linear.name, cg->program->opts);
  if (TINY_DEBUG (6)) {
    g_autofree char *text = tiny_linear_to_string (&cg->program->linear);
    g_printerr ("%s", text);
  }
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
  g_autoptr (GArray) applied = g_array_new (FALSE, FALSE, sizeof (TinyOpt));
  g_autoptr (TinyLinearProgram) program = g_new0 (TinyLinearProgram, 1);
  TinyCodegen cg = { .graph = graph,
                     .target = target,
                     .root = kernel,
                     .opts = opts,
                     .n_opts = n_opts,
                     .heuristic = opts == NULL && !tiny_env_get_int (TINY_ENV_NO_OPT),
                     .applied = applied,
                     .program = program };
  tiny_codegen_estimate (&cg);
  for (guint i = 0; i < G_N_ELEMENTS (passes); i++)
    if (!passes[i].run (&cg, error))
      return NULL;
  program->opts = tiny_opts_to_string ((const TinyOpt *) applied->data, applied->len);
  show (&cg);
  return g_steal_pointer (&program);
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
