/* SPDX-License-Identifier: MIT
 *
 * inspect-ops.c: what becomes of each op of the contract on a target: asked of the compiler itself, by
 * a kernel that holds the op alone, so that the answer is what programs get. */
#include <string.h>

#include "codegen/tiny-codegen.h"
#include "ir/tiny-dtype.h"
#include "ir/tiny-op.h"
#include "ir/tiny-text.h"
#include "tools/inspect-module.h"

const char *
inspect_op_state_to_string (InspectOpState state)
{
  static const char *const names[] = { "none", "native", "emulated", "impossible" };
  return state < G_N_ELEMENTS (names) ? names[state] : "none";
}

static const TinyOpInfo *
find_op (guint instr)
{
  for (guint i = 0; i < TINY_N_OPS && instr != 0; i++)
    if (tiny_op_infos[i].instr == instr)
      return &tiny_op_infos[i];
  return NULL;
}

const char *
inspect_op_name (guint op)
{
  const TinyOpInfo *info = op <= TINY_INSTR_CMPEQ ? find_op (op) : NULL;
  return info ? info->text : NULL;
}

/* Another dtype of the same size, of another kind. */
static TinyDType
find_twin (TinyDType dtype)
{
  for (TinyDType other = TINY_DTYPE_I8; other < TINY_DTYPE_INDEX; other++)
    if (tiny_dtype_get_n_bytes (other) == tiny_dtype_get_n_bytes (dtype)
        && tiny_dtype_infos[other].kind != tiny_dtype_infos[dtype].kind)
      return other;
  return TINY_DTYPE_VOID;
}

static TinyDType
result_of (TinyInstrOp op, TinyDType dtype)
{
  switch (op) {
  case TINY_INSTR_CAST:
    return dtype == TINY_DTYPE_F32 ? TINY_DTYPE_I32 : TINY_DTYPE_F32;
  case TINY_INSTR_BITCAST:
    return find_twin (dtype);
  case TINY_INSTR_CMPLT:
  case TINY_INSTR_CMPNE:
  case TINY_INSTR_CMPEQ:
    return TINY_DTYPE_BOOL;
  default:
    return dtype;
  }
}

/* A kernel of four elements: parameter 0 becomes the op of parameters 1 and further. */
static char *
write_kernel (TinyInstrOp op, TinyDType dtype)
{
  const char *type = tiny_dtype_to_string (dtype);
  TinyDType result = result_of (op, dtype);
  gboolean is_memory = op == TINY_INSTR_LOAD || op == TINY_INSTR_STORE;
  const TinyOpInfo *info = find_op (op);
  guint n = is_memory ? 1 : (guint) info->least;
  GString *text = g_string_new ("%r = range.index{number=0, kind=loop}(4)\n");
  g_string_append_printf (text, "%%p0 = param.%s{slot=0, shape=[4]}\n",
                          tiny_dtype_to_string (result));
  GString *sources = g_string_new (NULL);
  for (guint i = 1; i <= n; i++) {
    const char *its = op == TINY_INSTR_WHERE && i == 1 ? "bool" : type;
    g_string_append_printf (text,
                            "%%p%u = param.%s{slot=%u, shape=[4]}\n"
                            "%%v%u = load.%s(%%p%u, %%r)\n",
                            i, its, i, i, its, i);
    g_string_append_printf (sources, "%s%%v%u", i > 1 ? ", " : "", i);
  }
  if (is_memory)
    g_string_append (text, "sink{name=\"one\"}(store(%p0, %r, %v1))\n");
  else
    g_string_append_printf (text, "sink{name=\"one\"}(store(%%p0, %%r, %s.%s(%s)))\n",
                            info->text, tiny_dtype_to_string (result), sources->str);
  g_string_free (sources, TRUE);
  return g_string_free (text, FALSE);
}

static gboolean
is_declared (const TinyTarget *target, TinyInstrOp op, TinyDType dtype)
{
  gboolean is_memory = op == TINY_INSTR_LOAD || op == TINY_INSTR_STORE;
  guint32 there
      = is_memory ? target->dtypes_storage : target->dtypes_storage | target->dtypes_compute;
  return (there & TINY_DTYPE_BIT (dtype)) != 0
         && (target->ops[dtype] & TINY_INSTR_BIT (op)) != 0
         && (op != TINY_INSTR_CAST
             || (target->ops[result_of (op, dtype)] & TINY_INSTR_BIT (op)) != 0);
}

/* The contract's ops in a program, without those that any kernel has. */
static char *
list_ops (const TinyLinear *linear)
{
  guint64 seen = 0;
  GString *out = g_string_new (NULL);
  for (guint i = 0; i < linear->n_instrs; i++)
    seen |= TINY_INSTR_BIT (linear->instrs[i].op);
  for (guint op = TINY_INSTR_CAST; op <= TINY_INSTR_CMPEQ; op++)
    if ((seen & TINY_INSTR_BIT (op)) != 0)
      g_string_append_printf (out, "%s%s", out->len ? " " : "", inspect_op_name (op));
  if (out->len == 0) /* it went away altogether, as a copy of words does */
    g_string_append (out, "words");
  return g_string_free (out, FALSE);
}

InspectOpState
inspect_op (const TinyTarget *target, TinyInstrOp op, TinyDType dtype, char **out_made_of)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autoptr (GError) error = NULL;
  *out_made_of = NULL;
  if (result_of (op, dtype) == TINY_DTYPE_VOID)
    return INSPECT_MEANINGLESS;
  g_autofree char *text = write_kernel (op, dtype);
  TinyNode *kernel = tiny_graph_parse (graph, text, NULL);
  if (kernel == NULL)
    return INSPECT_MEANINGLESS;
  if (is_declared (target, op, dtype))
    return INSPECT_NATIVE;
  const TinyOpt none[1] = { { 0 } };
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (graph, kernel, target, none, 0, &error);
  *out_made_of = program ? list_ops (&program->linear) : g_strdup (error->message);
  return program ? INSPECT_EMULATED : INSPECT_IMPOSSIBLE;
}
