/* SPDX-License-Identifier: MIT
 *
 * tiny-check.c: arity, dtypes and lanes of one operation. Shapes are in tiny-check-shape.c. */
#include "ir/tiny-check.h"

#include <string.h>

#include "ir/tiny-check-private.h"
#include "ir/tiny-eval.h"
#include "ir/tiny-shard.h"

#define T (1u << TINY_STAGE_TENSOR)
#define K (1u << TINY_STAGE_KERNEL)
#define E (1u << TINY_STAGE_EXPANDED)
const TinyOpRule tiny_op_rules[TINY_N_OPS] = {
#define TINY_OP_RULE(id, kinds, stages, style, arg, ints, text)                                \
  [TINY_OP_##id] = { kinds, stages, TINY_ARG_##style, arg, ints, text },
#include "ir/op-rules.def"
#undef TINY_OP_RULE
};
#undef T
#undef K
#undef E

gboolean
tiny_op_takes_dtype (TinyOp op, TinyDType dtype)
{
  char kind = dtype == TINY_DTYPE_INDEX ? 'X' : tiny_dtype_infos[dtype].kind;
  return strchr (tiny_op_rules[op].kinds, kind) != NULL;
}

#define FAIL(...) return g_strdup_printf (__VA_ARGS__)

static const char *
name_of (TinyDType dtype)
{
  return tiny_dtype_infos[dtype].text;
}

static gboolean
is_memory (TinyOp op)
{
  return op == TINY_OP_PARAM || op == TINY_OP_LOCAL || op == TINY_OP_AFTER;
}

static char *
check_lanes (const TinyOperand *source, guint i, guint lanes)
{
  if (source->lanes != lanes)
    FAIL ("source %u should have %u lanes, has %u", i + 1, lanes, source->lanes);
  return NULL;
}

static char *
check_dtype (const TinyOperand *source, guint i, TinyDType dtype)
{
  if (source->dtype != dtype)
    FAIL ("source %u should be %s, is %s", i + 1, name_of (dtype), name_of (source->dtype));
  return NULL;
}

/* Sources from @first on: the same dtype and lanes. */
static char *
check_alike (const TinyOperand *sources, guint first, guint n, TinyDType dtype, guint lanes)
{
  for (guint i = first; i < n; i++) {
    char *why = check_dtype (&sources[i], i, dtype);
    if (why == NULL)
      why = check_lanes (&sources[i], i, lanes);
    if (why != NULL)
      return why;
  }
  return NULL;
}

static char *
check_elementwise (const TinyOperand *self, const TinyOperand *x, guint n)
{
  char *why;
  switch (tiny_op_infos[self->op].op_class) {
  case TINY_OP_CLASS_COMPARE:
    if (self->dtype != TINY_DTYPE_BOOL)
      FAIL ("a comparison is bool, not %s", name_of (self->dtype));
    if (!tiny_op_takes_dtype (self->op, x[0].dtype))
      FAIL ("does not take %s", name_of (x[0].dtype));
    return check_alike (x, 0, n, x[0].dtype, self->lanes);
  case TINY_OP_CLASS_CONVERT:
    if (!tiny_op_takes_dtype (self->op, self->dtype))
      FAIL ("does not give %s", name_of (self->dtype));
    if (!tiny_op_takes_dtype (self->op, x[0].dtype))
      FAIL ("does not take %s", name_of (x[0].dtype));
    if (self->op == TINY_OP_BITCAST
        && tiny_dtype_get_n_bytes (self->dtype) != tiny_dtype_get_n_bytes (x[0].dtype))
      FAIL ("%s and %s differ in size", name_of (x[0].dtype), name_of (self->dtype));
    return check_lanes (&x[0], 0, self->lanes);
  default:
    break;
  }
  if (!tiny_op_takes_dtype (self->op, self->dtype))
    FAIL ("does not take %s", name_of (self->dtype));
  if (self->op != TINY_OP_WHERE)
    return check_alike (x, 0, n, self->dtype, self->lanes);
  why = check_alike (x, 0, 1, TINY_DTYPE_BOOL, self->lanes);
  return why != NULL ? why : check_alike (x, 1, n, self->dtype, self->lanes);
}

static char *
check_index (const TinyOperand *index, guint lanes)
{
  if (!tiny_dtype_is_integer (index->dtype))
    FAIL ("an index is an integer, not %s", name_of (index->dtype));
  if (index->lanes != 1 && index->lanes != lanes)
    FAIL ("the index has %u lanes, the access %u", index->lanes, lanes);
  return NULL;
}

static char *
check_gate (const TinyOperand *gate, guint lanes)
{
  if (gate->dtype != TINY_DTYPE_BOOL)
    FAIL ("a gate is bool, not %s", name_of (gate->dtype));
  if (gate->lanes != 1 && gate->lanes != lanes)
    FAIL ("the gate has %u lanes, the access %u", gate->lanes, lanes);
  return NULL;
}

static char *
check_load (const TinyOperand *self, const TinyOperand *x, guint n)
{
  char *why = check_dtype (&x[0], 0, self->dtype);
  if (why != NULL)
    return why;
  if (n == 1) {
    if (x[0].op != TINY_OP_REGISTER && x[0].op != TINY_OP_AFTER)
      FAIL ("only a register is read without an index");
    return check_lanes (&x[0], 0, self->lanes);
  }
  if (!is_memory (x[0].op))
    FAIL ("%s is no memory", tiny_op_infos[x[0].op].text);
  if (n == 3)
    FAIL ("a gate wants an alternative");
  if ((why = check_index (&x[1], self->lanes)) != NULL || n == 2)
    return why;
  why = check_gate (&x[2], self->lanes);
  return why != NULL ? why : check_alike (x, 3, 4, self->dtype, self->lanes);
}

static char *
check_store (const TinyOperand *self, const TinyOperand *x, guint n)
{
  char *why;
  if (n == 2) {
    if (x[0].op != TINY_OP_REGISTER && x[0].op != TINY_OP_AFTER)
      FAIL ("only a register is written without an index");
    return check_alike (x, 1, 2, x[0].dtype, x[0].lanes);
  }
  if (!is_memory (x[0].op))
    FAIL ("%s is no memory", tiny_op_infos[x[0].op].text);
  if (self->lanes != 1 && self->lanes != x[2].lanes)
    FAIL ("the store has %u lanes, the value %u", self->lanes, x[2].lanes);
  if ((why = check_dtype (&x[2], 2, x[0].dtype)) != NULL
      || (why = check_index (&x[1], x[2].lanes)) != NULL)
    return why;
  return n == 4 ? check_gate (&x[3], x[2].lanes) : NULL;
}

static char *
check_reduce (const TinyOperand *self, const TinyOperand *x, guint n)
{
  if (self->arg != TINY_OP_ADD && self->arg != TINY_OP_MUL && self->arg != TINY_OP_MAX)
    FAIL ("combines by add, mul or max");
  char *why = check_dtype (&x[0], 0, self->dtype);
  if (why != NULL)
    return why;
  if (x[0].lanes != self->lanes && self->lanes != 1)
    FAIL ("has %u lanes, its value %u", self->lanes, x[0].lanes);
  for (guint i = 1; i < n; i++)
    if (x[i].op != TINY_OP_RANGE)
      FAIL ("source %u should be a range, is %s", i + 1, tiny_op_infos[x[i].op].text);
  return NULL;
}

static char *
check_vector (const TinyOperand *self, const TinyOperand *x, guint n)
{
  if (n != 1 && n != self->lanes)
    FAIL ("%u sources for %u lanes", n, self->lanes);
  return check_alike (x, 0, n, self->dtype, 1);
}

static char *
check_extract (const TinyOperand *self, const TinyOperand *x, guint n)
{
  if (self->lanes != 1)
    FAIL ("is a scalar, not %u lanes", self->lanes);
  if (self->arg < 0 || self->arg >= x[0].lanes)
    FAIL ("lane %" G_GINT64_FORMAT " of %u", self->arg, x[0].lanes);
  return check_dtype (&x[0], 0, self->dtype);
}

/* Which dtypes and lanes go together is the target's to say: tiny_verify_linear (). */
static char *
check_unit (const TinyOperand *self, const TinyOperand *x, guint n)
{
  return check_alike (x, 2, 3, self->dtype, self->lanes);
}

static char *
check_range (const TinyOperand *self, const TinyOperand *x, guint n)
{
  if (self->arg < 0 || self->arg >> 32 >= TINY_N_RANGE_KINDS)
    FAIL ("%" G_GINT64_FORMAT " is no kind of range", self->arg >> 32);
  if (self->lanes != 1)
    FAIL ("is a scalar, not %u lanes", self->lanes);
  return check_alike (x, 0, 1, self->dtype, 1);
}

static char *
check_closing (const TinyOperand *self, const TinyOperand *x, guint n)
{
  TinyOp opener = self->op == TINY_OP_END ? TINY_OP_RANGE : TINY_OP_IF;
  if (x[0].op != opener)
    FAIL ("closes %s, not %s", tiny_op_infos[opener].text, tiny_op_infos[x[0].op].text);
  return NULL;
}

static char *
check_condition (const TinyOperand *self, const TinyOperand *x, guint n)
{
  return check_alike (x, 0, 1, TINY_DTYPE_BOOL, 1);
}

static char *
check_same_as_first (const TinyOperand *self, const TinyOperand *x, guint n)
{
  return check_alike (x, 0, 1, self->dtype, self->lanes);
}

static char *
check_same_as_all (const TinyOperand *self, const TinyOperand *x, guint n)
{
  return check_alike (x, 0, n, self->dtype, self->lanes);
}

static char *
check_assign (const TinyOperand *self, const TinyOperand *x, guint n)
{
  return check_alike (x, 0, 2, self->dtype, self->lanes);
}

static char *
check_sloped (const TinyOperand *self, const TinyOperand *x, guint n)
{
  return check_alike (x, 0, 3, self->dtype, self->lanes);
}

static char *
check_gather (const TinyOperand *self, const TinyOperand *x, guint n)
{
  if (!tiny_dtype_is_integer (x[1].dtype) || x[1].dtype == TINY_DTYPE_INDEX)
    FAIL ("positions are integers, not %s", name_of (x[1].dtype));
  return check_alike (x, 0, 1, self->dtype, self->lanes);
}

static char *
check_limit (const TinyOperand *self, const TinyOperand *x, guint n)
{
  if (!tiny_dtype_is_integer (x[1].dtype))
    FAIL ("a size is an integer, not %s", name_of (x[1].dtype));
  return check_alike (x, 0, 1, self->dtype, self->lanes);
}

static char *
check_constant (const TinyOperand *self, const TinyOperand *x, guint n)
{
  if (!tiny_eval_is_canonical (self->dtype, self->arg))
    FAIL ("its bits are not those of a %s", name_of (self->dtype));
  return NULL;
}

typedef char *(*Check) (const TinyOperand *self, const TinyOperand *sources, guint n);
static const struct {
  Check check;
  enum { ANY, VALUE, NOTHING } gives; /* the dtype of the op itself */
  gboolean scalar;
} checks[TINY_N_OPS] = {
  [TINY_OP_LOAD] = { check_load, VALUE },
  [TINY_OP_STORE] = { check_store, NOTHING },
  [TINY_OP_CONST] = { check_constant, VALUE },
  [TINY_OP_PARAM] = { NULL, VALUE, TRUE },
  [TINY_OP_VARIABLE] = { NULL, VALUE, TRUE },
  [TINY_OP_GRID] = { NULL, VALUE, TRUE },
  [TINY_OP_GROUP] = { NULL, VALUE, TRUE },
  [TINY_OP_LOCAL] = { NULL, VALUE, TRUE },
  [TINY_OP_REGISTER] = { NULL, VALUE },
  [TINY_OP_RANGE] = { check_range, VALUE },
  [TINY_OP_END] = { check_closing, NOTHING, TRUE },
  [TINY_OP_IF] = { check_condition, NOTHING, TRUE },
  [TINY_OP_ENDIF] = { check_closing, NOTHING, TRUE },
  [TINY_OP_BARRIER] = { NULL, NOTHING, TRUE },
  [TINY_OP_VECTOR] = { check_vector, VALUE },
  [TINY_OP_EXTRACT] = { check_extract, VALUE },
  [TINY_OP_UNIT] = { check_unit, VALUE },
  [TINY_OP_LANES] = { NULL, VALUE },
  [TINY_OP_REDUCE] = { check_reduce, VALUE },
  [TINY_OP_AFTER] = { check_same_as_first, ANY },
  [TINY_OP_SINK] = { NULL, NOTHING, TRUE },
  [TINY_OP_BUFFER] = { NULL, VALUE, TRUE },
  [TINY_OP_IOTA] = { NULL, VALUE, TRUE },
  [TINY_OP_GATHER] = { check_gather, VALUE, TRUE },
  [TINY_OP_CONTIGUOUS] = { check_same_as_first, VALUE, TRUE },
  [TINY_OP_DETACH] = { check_same_as_first, VALUE, TRUE },
  [TINY_OP_SLOPED] = { check_sloped, VALUE, TRUE },
  [TINY_OP_COPY] = { check_same_as_first, VALUE, TRUE },
  [TINY_OP_UNSHARD] = { check_same_as_all, VALUE, TRUE },
  [TINY_OP_LIMIT] = { check_limit, VALUE, TRUE },
  [TINY_OP_ASSIGN] = { check_assign, VALUE, TRUE },
  [TINY_OP_KERNEL] = { NULL, VALUE, TRUE },
  [TINY_OP_GRADIENT] = { NULL, VALUE, TRUE }, /* of one of its sources: tiny_check_shapes() */
};

char *
tiny_check_operands (const TinyOperand *self, const TinyOperand *sources, guint n)
{
  const TinyOpInfo *info = &tiny_op_infos[self->op];
  if ((int) n < info->least || (info->most >= 0 && (int) n > info->most))
    FAIL (info->most < 0              ? "wants at least %d sources, has %u"
          : info->least == info->most ? "wants %d sources, has %u"
                                      : "wants %d sources or more, has %u",
          info->least, n);
  if (self->lanes == 0 || self->lanes > G_MAXUINT16)
    FAIL ("%u lanes", self->lanes);
  if (tiny_op_is_elementwise (self->op))
    return check_elementwise (self, sources, n);
  if (tiny_op_is_movement (self->op)) {
    if (self->lanes != 1)
      FAIL ("is a scalar, not %u lanes", self->lanes);
    return check_same_as_first (self, sources, n);
  }
  if (checks[self->op].gives == NOTHING && self->dtype != TINY_DTYPE_VOID)
    FAIL ("is void, not %s", name_of (self->dtype));
  if (checks[self->op].gives == VALUE && !tiny_op_takes_dtype (self->op, self->dtype))
    FAIL ("does not give %s", name_of (self->dtype));
  if (checks[self->op].scalar && self->lanes != 1)
    FAIL ("is a scalar, not %u lanes", self->lanes);
  return checks[self->op].check != NULL ? checks[self->op].check (self, sources, n) : NULL;
}

char *
tiny_check_node (TinyOp op,
                 TinyDType dtype,
                 guint lanes,
                 guint n_sources,
                 TinyNode *const *sources,
                 gint64 arg,
                 const TinyInts *ints,
                 const char *text)
{
  TinyOperand self = { op, dtype, lanes, arg }, few[8];
  g_autofree TinyOperand *many = n_sources > 8 ? g_new (TinyOperand, n_sources) : NULL;
  TinyOperand *operands = many != NULL ? many : few;
  for (guint i = 0; i < n_sources; i++)
    operands[i] = (TinyOperand){ sources[i]->op, sources[i]->dtype, sources[i]->lanes,
                                 sources[i]->arg };
  char *why = tiny_check_operands (&self, operands, n_sources);
  if (why == NULL)
    why = tiny_check_shapes (op, n_sources, sources, arg, ints);
  if (why == NULL && op == TINY_OP_KERNEL && text == NULL)
    why = g_strdup ("has no code");
  if (why == NULL && op == TINY_OP_UNSHARD && tiny_devices_count (text) != n_sources)
    why = g_strdup_printf ("%u sources on the devices %s", n_sources, text ? text : "(none)");
  if (why == NULL && op == TINY_OP_GRADIENT)
    why = check_dtype (&operands[ints->v[0]], (guint) ints->v[0], dtype);
  return why;
}
