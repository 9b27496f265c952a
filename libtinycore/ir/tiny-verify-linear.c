/* SPDX-License-Identifier: MIT
 *
 * tiny-verify-linear.c: the rules of linear programs.
 *
 * One pass in execution order. A value belongs to the loop or condition it is computed in and may
 * be used as long as that is open; constants and parameters belong to none. */
#include "ir/tiny-verify.h"

#include <string.h>

#include "base/tiny-error.h"
#include "ir/tiny-unit.h"

#define FAIL(...) return g_strdup_printf (__VA_ARGS__)

enum { NO_SCOPE = G_MAXUINT32 };

typedef struct {
  const TinyLinear *linear;
  const TinyTarget *target; /* or NULL */
  TinyOperand *operands;    /* the instructions so far */
  guint32 *scopes;          /* the RANGE or IF that each is in */
  guint8 *open;             /* of each RANGE and IF: not closed yet */
  GArray *stack;            /* of those that are open, innermost last */
} State;

/* The op that is instruction number @instr, or TINY_N_OPS. */
static TinyOp
op_of_instr (guint instr)
{
  for (int op = 0; instr != 0 && op < TINY_N_OPS; op++)
    if (tiny_op_infos[op].instr == instr)
      return op;
  return TINY_N_OPS;
}

static gboolean
is_leaf (TinyOp op)
{
  return op == TINY_OP_CONST || op == TINY_OP_PARAM || op == TINY_OP_VARIABLE
         || op == TINY_OP_GRID || op == TINY_OP_GROUP || op == TINY_OP_LOCAL;
}

static char *
check_encoding (const State *self, guint at, TinyOp op)
{
  const TinyInstr *instr = &self->linear->instrs[at];
  if (op == TINY_N_OPS)
    FAIL ("%u is no instruction", instr->op);
  if (instr->dtype >= TINY_N_DTYPES || instr->dtype == TINY_DTYPE_INDEX)
    FAIL ("%u is no dtype of a linear program", instr->dtype);
  if (instr->reserved != 0 || instr->reserved2 != 0)
    FAIL ("reserved fields are not 0");
  if (instr->sources > self->linear->n_sources
      || instr->n_sources > self->linear->n_sources - instr->sources)
    FAIL ("its sources are not in the list");
  for (guint i = 0; i < instr->n_sources; i++)
    if (self->linear->sources[instr->sources + i] >= at)
      FAIL ("source %u comes later", i + 1);
  return NULL;
}

static char *
check_scopes (State *self, guint at, TinyOp op)
{
  const TinyInstr *instr = &self->linear->instrs[at];
  const guint32 *sources = self->linear->sources + instr->sources;
  for (guint i = 0; i < instr->n_sources; i++) {
    guint32 scope = self->scopes[sources[i]];
    if (scope != NO_SCOPE && !self->open[scope])
      FAIL ("source %u belongs to a closed loop or condition", i + 1);
  }
  guint32 innermost = self->stack->len > 0
                          ? g_array_index (self->stack, guint32, self->stack->len - 1)
                          : NO_SCOPE;
  self->scopes[at] = is_leaf (op) ? NO_SCOPE : innermost;
  if (op == TINY_OP_RANGE || op == TINY_OP_IF) {
    guint32 opener = at;
    self->open[at] = 1;
    self->scopes[at] = at;
    g_array_append_val (self->stack, opener);
  } else if (op == TINY_OP_END || op == TINY_OP_ENDIF) {
    if (innermost != sources[0])
      FAIL ("closes what is not the innermost open one");
    self->open[innermost] = 0;
    g_array_set_size (self->stack, self->stack->len - 1);
    self->scopes[at] = NO_SCOPE;
  }
  return NULL;
}

static char *
check_parameters (const State *self, guint at, TinyOp op)
{
  const TinyLinear *linear = self->linear;
  const TinyInstr *instr = &linear->instrs[at];
  gint64 n = instr->arg;
  if (op == TINY_OP_PARAM) {
    if (n < 0 || n >= linear->n_params)
      FAIL ("parameter %" G_GINT64_FORMAT " of %u", n, linear->n_params);
    if (linear->params[n].dtype != instr->dtype)
      FAIL ("has another dtype than its parameter");
  }
  if (op == TINY_OP_VARIABLE && (n < 0 || n >= linear->n_variables))
    FAIL ("variable %" G_GINT64_FORMAT " of %u", n, linear->n_variables);
  if ((op == TINY_OP_GRID || op == TINY_OP_GROUP) && (n < 0 || n > 2))
    FAIL ("axis %" G_GINT64_FORMAT, n);
  if (op == TINY_OP_LOCAL && n < 1)
    FAIL ("%" G_GINT64_FORMAT " elements", n);
  if (op == TINY_OP_LOAD || op == TINY_OP_STORE) {
    const TinyInstr *memory = &linear->instrs[linear->sources[instr->sources]];
    guint flag = op == TINY_OP_LOAD ? TINY_PARAM_READ : TINY_PARAM_WRITE;
    if (memory->op == TINY_INSTR_PARAM && (linear->params[memory->arg].flags & flag) == 0)
      FAIL ("its parameter is not declared as %s", op == TINY_OP_LOAD ? "read" : "written");
  }
  return NULL;
}

/* The dtype by which a target declares the op: that of its operands. */
static TinyDType
declared_dtype (const State *self, guint at, TinyOp op)
{
  const TinyInstr *instr = &self->linear->instrs[at];
  if (tiny_op_infos[op].op_class != TINY_OP_CLASS_COMPARE)
    return instr->dtype;
  return self->operands[self->linear->sources[instr->sources]].dtype;
}

/* A fragment of a matrix unit may have more lanes than others, where only memory and the unit see them. */
static gboolean
may_be_wide (const State *self, guint at, TinyOp op)
{
  const TinyInstr *instr = &self->linear->instrs[at];
  const guint32 *sources = self->linear->sources + instr->sources;
  const TinyOperand *value
      = &self->operands[op == TINY_OP_STORE ? sources[instr->n_sources - 1] : at];
  const gboolean moves = op == TINY_OP_CONST || op == TINY_OP_REGISTER || op == TINY_OP_UNIT
                         || ((op == TINY_OP_LOAD || op == TINY_OP_STORE)
                             && instr->n_sources <= (op == TINY_OP_LOAD ? 2 : 3));
  return moves && tiny_target_has_fragment (self->target, value->dtype, value->lanes);
}

/* A source that has more lanes than an instruction may have. */
static char *
check_wide_sources (const State *self, guint at, TinyOp op)
{
  const TinyInstr *instr = &self->linear->instrs[at];
  const guint most = MAX (self->target->max_lanes, 1), n = instr->n_sources;
  for (guint i = 0; i < n; i++) {
    const guint lanes = self->operands[self->linear->sources[instr->sources + i]].lanes;
    const gboolean is_register = i == 0 && n == (op == TINY_OP_STORE ? 2 : 1);
    const gboolean is_stored = op == TINY_OP_STORE && i == n - 1 && n <= 3;
    const gboolean may_take = op == TINY_OP_UNIT || is_stored
                              || ((op == TINY_OP_LOAD || op == TINY_OP_STORE) && is_register);
    if (lanes > most && !may_take)
      FAIL ("source %u has %u lanes, the target has %u", i + 1, lanes, most);
  }
  return NULL;
}

/* The row that it names, and fragments of that row. */
static char *
check_unit (const State *self, guint at)
{
  const TinyInstr *instr = &self->linear->instrs[at];
  const guint n = tiny_target_count_units (self->target);
  if (instr->arg < 0 || instr->arg >= n)
    FAIL ("unit %" G_GINT64_FORMAT ", the target has %u", instr->arg, n);
  const TinyUnit *unit = &self->target->units[instr->arg];
  for (TinyUnitMatrix i = 0; i < TINY_N_UNIT_MATRICES; i++) {
    const TinyOperand *source = &self->operands[self->linear->sources[instr->sources + i]];
    const TinyDType dtype = tiny_unit_get_dtype (unit, i);
    const guint lanes = tiny_unit_get_lanes (unit, i);
    if (source->dtype != dtype || source->lanes != lanes)
      FAIL ("source %u should be %u lanes of %s, is %u of %s", i + 1, lanes,
            tiny_dtype_to_string (dtype), source->lanes, tiny_dtype_to_string (source->dtype));
  }
  if (self->linear->group[0] % (1u << unit->n_thread_bits) != 0)
    FAIL ("%u items along axis 0, and the unit takes %u together", self->linear->group[0],
          1u << unit->n_thread_bits);
  return NULL;
}

static char *
check_target (const State *self, guint at, TinyOp op)
{
  const TinyTarget *target = self->target;
  const TinyInstr *instr = &self->linear->instrs[at];
  if (target == NULL)
    return NULL;
  char *why = check_wide_sources (self, at, op);
  if (why != NULL || op == TINY_OP_UNIT)
    return why != NULL ? why : check_unit (self, at);
  if (instr->lanes > MAX (target->max_lanes, 1) && !may_be_wide (self, at, op))
    FAIL ("%u lanes, the target has %u", instr->lanes, MAX (target->max_lanes, 1));
  TinyOpClass op_class = tiny_op_infos[op].op_class;
  if (op_class == TINY_OP_CLASS_MEMORY) {
    guint gate = op == TINY_OP_LOAD ? 2 : 3;
    if (instr->n_sources > gate && instr->lanes > 1 && !(target->flags & TINY_TARGET_MASKED)
        && self->operands[self->linear->sources[instr->sources + gate]].lanes > 1)
      FAIL ("the target has no masked access");
    return NULL;
  }
  if (!tiny_op_is_elementwise (op))
    return NULL;
  TinyDType dtype = declared_dtype (self, at, op);
  if (op_class == TINY_OP_CLASS_CONVERT) {
    TinyDType from = self->operands[self->linear->sources[instr->sources]].dtype;
    guint both = TINY_DTYPE_BIT (dtype) | TINY_DTYPE_BIT (from);
    if (((target->dtypes_storage | TINY_DTYPE_BIT (TINY_DTYPE_BOOL)) & both) != both)
      FAIL ("the target does not have %s or %s", tiny_dtype_to_string (from),
            tiny_dtype_to_string (dtype));
    return NULL;
  }
  if ((target->ops[dtype] & TINY_INSTR_BIT (instr->op)) == 0)
    FAIL ("the target does not declare it for %s", tiny_dtype_to_string (dtype));
  return NULL;
}

static char *
check_instr (State *self, guint at)
{
  const TinyInstr *instr = &self->linear->instrs[at];
  TinyOp op = op_of_instr (instr->op);
  char *why = check_encoding (self, at, op);
  if (why != NULL)
    return why;
  self->operands[at]
      = (TinyOperand){ op, instr->dtype, instr->lanes, op == TINY_OP_RANGE ? 0 : instr->arg };
  g_autofree TinyOperand *sources = g_new (TinyOperand, instr->n_sources + 1u);
  for (guint i = 0; i < instr->n_sources; i++)
    sources[i] = self->operands[self->linear->sources[instr->sources + i]];
  if ((why = tiny_check_operands (&self->operands[at], sources, instr->n_sources)) != NULL
      || (why = check_scopes (self, at, op)) != NULL
      || (why = check_parameters (self, at, op)) != NULL)
    return why;
  return check_target (self, at, op);
}

static gboolean
is_identifier (const char *name)
{
  if (name == NULL || !(g_ascii_isalpha (*name) || *name == '_'))
    return FALSE;
  for (; *name != 0; name++)
    if (!g_ascii_isalnum (*name) && *name != '_')
      return FALSE;
  return TRUE;
}

static char *
check_header (const TinyLinear *linear)
{
  if (linear->struct_size < sizeof (TinyLinear) || linear->flags != 0)
    FAIL ("struct_size or flags are not those of this version");
  if (!is_identifier (linear->name))
    FAIL ("its name is no C identifier");
  if ((linear->n_instrs > 0 && linear->instrs == NULL)
      || (linear->n_sources > 0 && linear->sources == NULL)
      || (linear->n_params > 0 && linear->params == NULL))
    FAIL ("a list is missing");
  for (guint i = 0; i < 3; i++)
    if (linear->grid[i] < 1 || linear->group[i] < 1)
      FAIL ("grid and group are at least 1 along each axis");
  for (guint i = 0; i < linear->n_params; i++)
    if (linear->params[i].dtype >= TINY_N_DTYPES || linear->params[i].dtype == TINY_DTYPE_INDEX
        || linear->params[i].dtype == TINY_DTYPE_VOID)
      FAIL ("parameter %u has no dtype", i);
  return NULL;
}

/* What the target says of launches. A target that says nothing of groups has one item in each. */
static char *
check_limits (const TinyLinear *linear, const TinyTarget *target)
{
  guint64 n_items = 1, n_bytes = 0;
  for (guint i = 0; i < 3; i++) {
    n_items *= linear->group[i];
    if (target->max_grid[i] != 0 && linear->grid[i] > target->max_grid[i])
      FAIL ("a grid of %u along axis %u, the target has %u", linear->grid[i], i,
            target->max_grid[i]);
    if (linear->group[i] > MAX (target->max_group[i], 1))
      FAIL ("%u items along axis %u, the target has %u", linear->group[i], i,
            MAX (target->max_group[i], 1));
  }
  if (n_items > MAX (target->max_group_total, 1))
    FAIL ("groups of %" G_GUINT64_FORMAT " items, the target has %u", n_items,
          MAX (target->max_group_total, 1));
  for (guint i = 0; i < linear->n_instrs; i++) {
    const TinyInstr *instr = &linear->instrs[i];
    if (instr->op == TINY_INSTR_LOCAL)
      n_bytes += (guint64) instr->arg * tiny_dtype_get_n_bytes (instr->dtype);
  }
  if (n_bytes > target->local_bytes)
    FAIL ("%" G_GUINT64_FORMAT " bytes of local memory, the target has %u", n_bytes,
          target->local_bytes);
  return NULL;
}

gboolean
tiny_verify_linear (const TinyLinear *linear, const TinyTarget *target, GError **error)
{
  g_autofree char *header = check_header (linear);
  if (header != NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "linear program: %s", header);
    return FALSE;
  }
  g_autofree TinyOperand *operands = g_new0 (TinyOperand, linear->n_instrs + 1);
  g_autofree guint32 *scopes = g_new0 (guint32, linear->n_instrs + 1);
  g_autofree guint8 *open = g_new0 (guint8, linear->n_instrs + 1);
  g_autoptr (GArray) stack = g_array_new (FALSE, FALSE, sizeof (guint32));
  State self = { linear, target, operands, scopes, open, stack };
  for (guint i = 0; i < linear->n_instrs; i++) {
    g_autofree char *why = check_instr (&self, i);
    if (why == NULL)
      continue;
    TinyOp op = op_of_instr (linear->instrs[i].op);
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "linear program %s: %u %s: %s",
                 linear->name, i, op == TINY_N_OPS ? "?" : tiny_op_to_string (op), why);
    return FALSE;
  }
  if (stack->len > 0) {
    guint32 last = g_array_index (stack, guint32, stack->len - 1);
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "linear program %s: %u %s is never closed", linear->name, last,
                 tiny_op_to_string (operands[last].op));
    return FALSE;
  }
  g_autofree char *beyond = target != NULL ? check_limits (linear, target) : NULL;
  if (beyond != NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "linear program %s: %s", linear->name,
                 beyond);
    return FALSE;
  }
  return TRUE;
}
