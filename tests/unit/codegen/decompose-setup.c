/* SPDX-License-Identifier: MIT
 *
 * decompose-setup.c: an expression over buffers, decomposed for a target and run on REF. */
#include "decompose-setup.h"

#include "../case-fails.h"
#include "../sdk-reference/ref-harness.h"
#include "codegen/tiny-decompose.h"

static Rig rig;

void
setup_open (void)
{
  rig_open (&rig, REF_PLUGIN, "ref");
}

void
setup_close (void)
{
  rig_close (&rig);
}

/* ---- targets ---- */
#define BIT(op) TINY_INSTR_BIT (TINY_INSTR_##op)
static const guint64 memory = BIT (LOAD) | BIT (STORE) | BIT (BITCAST) | BIT (WHERE);
static const guint64 logic = BIT (AND) | BIT (OR) | BIT (XOR);
static const guint64 least_int
    = BIT (CAST) | BIT (ADD) | BIT (MUL) | BIT (CMPLT) | BIT (SHL) | BIT (SHR);
static const guint64 least_float = BIT (CAST) | BIT (ADD) | BIT (MUL) | BIT (CMPLT);

TinyTarget
least_target (gboolean wide)
{
  TinyTarget t = { .struct_size = sizeof t, .arch = "least" };
  for (guint i = TINY_DTYPE_BOOL; i <= TINY_DTYPE_F64; i++) {
    gboolean is_float = tiny_dtype_is_float (i), is_wide = tiny_dtype_get_n_bytes (i) == 8;
    if (is_wide && !wide)
      continue;
    t.dtypes_storage |= TINY_DTYPE_BIT (i);
    t.ops[i] = memory;
    if (i == TINY_DTYPE_BOOL)
      t.ops[i] |= logic;
    else if (tiny_dtype_get_n_bytes (i) >= 4)
      t.ops[i] |= is_float ? least_float : least_int | logic;
    else if (!is_float)
      t.ops[i] |= BIT (CAST);
    if (tiny_dtype_get_n_bytes (i) >= 4)
      t.dtypes_compute |= TINY_DTYPE_BIT (i);
  }
  return t;
}

TinyTarget
small_target (void)
{
  TinyTarget t = least_target (FALSE);
  t.max_lanes = 4;
  for (guint i = TINY_DTYPE_I8; i <= TINY_DTYPE_F64; i++)
    if (tiny_dtype_get_n_bytes (i) != 4)
      t.ops[i] = 0;
  t.dtypes_storage = TINY_DTYPE_BIT (TINY_DTYPE_I32) | TINY_DTYPE_BIT (TINY_DTYPE_U32)
                     | TINY_DTYPE_BIT (TINY_DTYPE_F32);
  t.dtypes_compute = t.dtypes_storage | TINY_DTYPE_BIT (TINY_DTYPE_BOOL);
  return t;
}

TinyTarget
shader_target (void)
{
  TinyTarget t = small_target ();
  for (guint i = TINY_DTYPE_I32; i <= TINY_DTYPE_U32; i++)
    t.ops[i] |= BIT (SUB) | BIT (MAX) | BIT (CMPNE) | BIT (CMPEQ) | BIT (IDIV) | BIT (MOD);
  t.ops[TINY_DTYPE_F32] |= BIT (SUB) | BIT (NEG) | BIT (MAX) | BIT (CMPNE) | BIT (FDIV)
                           | BIT (TRUNC) | BIT (SQRT) | BIT (RECIP);
  t.ops[TINY_DTYPE_BOOL] |= BIT (CAST) | BIT (CMPNE);
  t.max_lanes = 16;
  return t;
}

TinyTarget
target_number (gint i)
{
  return i == 0   ? least_target (TRUE)
         : i == 1 ? cpu_target ()
         : i == 2 ? small_target ()
                  : shader_target ();
}

TinyTarget
cpu_target (void)
{
  TinyTarget t = least_target (TRUE);
  const guint64 common = BIT (NEG) | BIT (SUB) | BIT (MAX) | BIT (CMPNE) | BIT (CMPEQ);
  for (guint i = TINY_DTYPE_I8; i <= TINY_DTYPE_U64; i++)
    t.ops[i] |= least_int | logic | common | BIT (IDIV) | BIT (MOD);
  for (guint i = TINY_DTYPE_F32; i <= TINY_DTYPE_F64; i++)
    t.ops[i] |= common | BIT (MULACC) | BIT (FDIV) | BIT (RECIP) | BIT (SQRT) | BIT (TRUNC);
  t.ops[TINY_DTYPE_BOOL] |= BIT (CMPNE) | BIT (CAST);
  t.ops[TINY_DTYPE_F16] |= BIT (CAST);
  t.dtypes_compute |= TINY_DTYPE_BIT (TINY_DTYPE_BOOL) | TINY_DTYPE_BIT (TINY_DTYPE_I8)
                      | TINY_DTYPE_BIT (TINY_DTYPE_U8) | TINY_DTYPE_BIT (TINY_DTYPE_I16)
                      | TINY_DTYPE_BIT (TINY_DTYPE_U16);
  return t;
}

/* ---- an expression over buffers, decomposed and run on REF ---- */
TinyDType
memory_dtype (const TinyTarget *target, TinyDType dtype)
{
  gboolean stores = (target->dtypes_storage & TINY_DTYPE_BIT (dtype)) != 0;
  return stores || tiny_dtype_get_n_bytes (dtype) == 8 ? dtype : TINY_DTYPE_U32;
}

static TinyDType
bits_of (TinyDType dtype)
{
  return tiny_dtype_get_n_bytes (dtype) == 1 ? TINY_DTYPE_U8 : TINY_DTYPE_U16;
}

static TinyNode *
buffer_of (Setup *self, TinyDType dtype, guint slot)
{
  const gint64 n = N_MOST;
  return tiny_node_new (self->graph, TINY_OP_PARAM, memory_dtype (&self->target, dtype), 1, 0,
                        NULL, slot, tiny_graph_ints (self->graph, &n, 1), NULL);
}

static TinyNode *
convert (Setup *self, TinyOp op, TinyNode *x, TinyDType dtype)
{
  return tiny_node_new (self->graph, op, dtype, x->lanes, 1, &x, 0, NULL, NULL);
}

static TinyNode *
load (Setup *self, TinyDType dtype, guint slot)
{
  TinyNode *sources[] = { buffer_of (self, dtype, slot), self->index };
  TinyNode *x = tiny_node_new (self->graph, TINY_OP_LOAD, sources[0]->dtype, self->lanes, 2,
                               sources, 0, NULL, NULL);
  if (x->dtype == dtype)
    return x;
  if (dtype == TINY_DTYPE_BOOL)
    return convert (self, TINY_OP_CAST, x, dtype);
  return convert (self, TINY_OP_BITCAST, convert (self, TINY_OP_CAST, x, bits_of (dtype)),
                  dtype);
}

static TinyNode *
store (Setup *self, TinyNode *x)
{
  TinyNode *buffer = buffer_of (self, x->dtype, 0);
  if (x->dtype != buffer->dtype && x->dtype != TINY_DTYPE_BOOL)
    x = convert (self, TINY_OP_BITCAST, x, bits_of (x->dtype));
  if (x->dtype != buffer->dtype)
    x = convert (self, TINY_OP_CAST, x, buffer->dtype);
  TinyNode *sources[] = { buffer, self->index, x };
  return tiny_node_new (self->graph, TINY_OP_STORE, TINY_DTYPE_VOID, self->lanes, 3, sources, 0,
                        NULL, NULL);
}

void
setup_init (
    Setup *self, const TinyTarget *target, guint n, const TinyDType *dtypes, guint lanes)
{
  const gint64 extent = N_MOST;
  self->graph = tiny_graph_new ();
  self->target = *target;
  self->lanes = lanes;
  TinyNode *point = tiny_node_new (self->graph, TINY_OP_GRID, TINY_DTYPE_I32, 1, 0, NULL, 0,
                                   tiny_graph_ints (self->graph, &extent, 1), NULL);
  self->index = tiny_node_binary (self->graph, TINY_OP_MUL, point,
                                  tiny_node_const_int (self->graph, TINY_DTYPE_I32, lanes));
  for (guint i = 0; i < n; i++)
    self->args[i] = load (self, dtypes[i], i + 1);
}

static void
check_declared (const TinyTarget *target, TinyNode *node)
{
  const guint32 known = target->dtypes_storage | TINY_DTYPE_BIT (TINY_DTYPE_BOOL)
                        | TINY_DTYPE_BIT (TINY_DTYPE_VOID);
  if ((known & TINY_DTYPE_BIT (node->dtype)) == 0)
    CASE_FAILS ("%s of %s, which the target does not have", tiny_op_to_string (node->op),
                tiny_dtype_to_string (node->dtype));
  if (!tiny_op_is_elementwise (node->op))
    return;
  TinyDType dtype = node->sources[node->op == TINY_OP_WHERE ? 1 : 0]->dtype;
  TinyInstrOp instr = tiny_op_infos[node->op].instr;
  if (instr == 0 || !(target->ops[dtype] & TINY_INSTR_BIT (instr))
      || (node->op == TINY_OP_CAST && !(target->ops[node->dtype] & BIT (CAST))))
    CASE_FAILS ("%s of %s is not declared", tiny_op_to_string (node->op),
                tiny_dtype_to_string (dtype));
}

/* One grid point for each block of lanes. */
static Script *
to_script (Setup *setup, TinyNode *root, guint n_elements)
{
  Script *s = g_new (Script, 1);
  g_autofree guint32 *number = g_new0 (guint32, tiny_graph_get_n_nodes (setup->graph));
  script_init (s);
  s->linear.grid[0] = n_elements / setup->lanes;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (setup->graph, &root, 1);
  for (guint slot = 0; slot < 4; slot++)
    for (guint i = 0; i < order->len; i++) {
      TinyNode *node = order->pdata[i];
      if (node->op == TINY_OP_PARAM && node->arg == slot)
        number[node->id] = emit_param (s, node->dtype, n_elements * node->ints->v[0] / N_MOST);
    }
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    g_autofree guint32 *sources = g_new (guint32, node->n_sources + 1);
    check_declared (&setup->target, node);
    if (node->op == TINY_OP_PARAM || node->op == TINY_OP_SINK)
      continue;
    for (guint j = 0; j < node->n_sources; j++)
      sources[j] = number[node->sources[j]->id];
    number[node->id] = emit_n (s, tiny_op_infos[node->op].instr, node->dtype, node->lanes,
                               node->arg, node->n_sources, sources);
  }
  return s;
}

void
run (Setup *setup, TinyNode *root, guint n_elements, void *const *data)
{
  g_autoptr (GError) error = NULL;
  gsize sizes[4];
  TinyNode *stored = store (setup, root);
  stored = tiny_node_sink (setup->graph, 1, &stored, NULL);
  TinyNode *made = tiny_decompose (setup->graph, stored, &setup->target, &error);
  g_assert_no_error (error);
  g_autofree Script *script = to_script (setup, made, n_elements);
  for (guint i = 0; i < script->linear.n_params; i++)
    sizes[i] = script->params[i].n_elements * tiny_dtype_get_n_bytes (script->params[i].dtype);
  TinyStatus status = rig_run (&rig, script, data, sizes, NULL);
  if (status != TINY_STATUS_OK)
    CASE_FAILS ("%s", rig.error.text);
}
