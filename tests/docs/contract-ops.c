/* SPDX-License-Identifier: MIT
 *
 * contract-ops.c: prints the tables of docs/contract-ops.md: what each op is (ir/ops.def, ir/contract.def), how
 * far it may be off (sdk/conformance/bounds.def), and what it makes of special operands, which the
 * oracle of the conformance suite is asked for. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bounds.h"
#include "ir/tiny-op.h"
#include "oracle.h"

static const struct {
  TinyOp op;
  const char *dtypes, *formula, *rounding, *open;
} ops[] = {
#define TINY_CONTRACT(op, dtypes, formula, rounding, open)                                     \
  { TINY_OP_##op, dtypes, formula, rounding, open },
#include "ir/contract.def"
};

static const struct {
  TinyOp op;
  double made, made_f64;
  int least, most;
} bounds[] = {
#define CONF_BOUND(op, f64, f32, f16, small, made, made_f64, least, most)                      \
  { TINY_OP_##op, made, made_f64, least, most },
#include "bounds.def"
#undef CONF_BOUND
};

/* Operands worth a line: floats as they are, integers as their values. */
typedef struct {
  TinyOp op;
  TinyDType from, to; /* to VOID: from */
  guint n;
  double args[3];
} Special;

#define F32(op, ...)                                                                           \
  {                                                                                            \
    TINY_OP_##op, TINY_DTYPE_F32, TINY_DTYPE_VOID, __VA_ARGS__                                 \
  }
#define I32(op, ...)                                                                           \
  {                                                                                            \
    TINY_OP_##op, TINY_DTYPE_I32, TINY_DTYPE_VOID, __VA_ARGS__                                 \
  }
#define LEAST_INT -2147483648.0
static const Special specials[] = {
  { TINY_OP_CAST, TINY_DTYPE_F32, TINY_DTYPE_I32, 1, { -1.75 } },
  { TINY_OP_CAST, TINY_DTYPE_F32, TINY_DTYPE_I32, 1, { 3e9 } },
  { TINY_OP_CAST, TINY_DTYPE_F32, TINY_DTYPE_I32, 1, { NAN } },
  { TINY_OP_CAST, TINY_DTYPE_F32, TINY_DTYPE_BOOL, 1, { NAN } },
  { TINY_OP_CAST, TINY_DTYPE_F32, TINY_DTYPE_BOOL, 1, { -0.0 } },
  { TINY_OP_CAST, TINY_DTYPE_F32, TINY_DTYPE_F16, 1, { 65520 } },
  { TINY_OP_CAST, TINY_DTYPE_F32, TINY_DTYPE_F16, 1, { 2049 } },
  { TINY_OP_CAST, TINY_DTYPE_F32, TINY_DTYPE_F8E4M3, 1, { 1000 } },
  { TINY_OP_CAST, TINY_DTYPE_F32, TINY_DTYPE_F8E5M2, 1, { 100000 } },
  { TINY_OP_CAST, TINY_DTYPE_I32, TINY_DTYPE_I8, 1, { 300 } },
  { TINY_OP_CAST, TINY_DTYPE_I32, TINY_DTYPE_U8, 1, { -1 } },
  { TINY_OP_CAST, TINY_DTYPE_I32, TINY_DTYPE_F32, 1, { 16777217 } },
  I32 (NEG, 1, { LEAST_INT }),
  F32 (NEG, 1, { 0 }),
  F32 (RECIP, 1, { 0 }),
  F32 (RECIP, 1, { -0.0 }),
  F32 (RECIP, 1, { -INFINITY }),
  F32 (RECIP, 1, { NAN }),
  F32 (SQRT, 1, { -0.0 }),
  F32 (SQRT, 1, { -1 }),
  F32 (SQRT, 1, { INFINITY }),
  F32 (SQRT, 1, { NAN }),
  F32 (EXP2, 1, { -INFINITY }),
  F32 (EXP2, 1, { 128 }),
  F32 (EXP2, 1, { -150 }),
  F32 (EXP2, 1, { NAN }),
  F32 (LOG2, 1, { 0 }),
  F32 (LOG2, 1, { -1 }),
  F32 (LOG2, 1, { INFINITY }),
  F32 (LOG2, 1, { NAN }),
  F32 (SIN, 1, { -0.0 }),
  F32 (SIN, 1, { INFINITY }),
  F32 (SIN, 1, { NAN }),
  I32 (ADD, 2, { 2147483647, 1 }),
  F32 (ADD, 2, { INFINITY, -INFINITY }),
  F32 (ADD, 2, { 0, -0.0 }),
  F32 (ADD, 2, { NAN, 1 }),
  { TINY_OP_ADD, TINY_DTYPE_BOOL, TINY_DTYPE_VOID, 2, { 1, 1 } },
  F32 (SUB, 2, { 1, 1 }),
  I32 (SUB, 2, { LEAST_INT, 1 }),
  F32 (MUL, 2, { 0, INFINITY }),
  F32 (MUL, 2, { NAN, 0 }),
  F32 (MUL, 2, { 1e-30, 1e-15 }),
  I32 (MUL, 2, { 65536, 65537 }),
  I32 (IDIV, 2, { -7, 2 }),
  I32 (IDIV, 2, { LEAST_INT, -1 }),
  I32 (IDIV, 2, { 1, 0 }),
  I32 (MOD, 2, { -7, 2 }),
  I32 (MOD, 2, { 7, -2 }),
  I32 (MOD, 2, { LEAST_INT, -1 }),
  I32 (MOD, 2, { 1, 0 }),
  F32 (MAX, 2, { NAN, 1 }),
  F32 (MAX, 2, { -0.0, 0 }),
  F32 (CMPLT, 2, { NAN, 1 }),
  F32 (CMPLT, 2, { -0.0, 0 }),
  F32 (CMPNE, 2, { NAN, NAN }),
  F32 (CMPEQ, 2, { -0.0, 0 }),
  I32 (SHL, 2, { 1, 31 }),
  I32 (SHL, 2, { 1, 32 }),
  I32 (SHR, 2, { -5, 1 }),
  { TINY_OP_SHR, TINY_DTYPE_U32, TINY_DTYPE_VOID, 2, { 4294967291.0, 1 } },
  F32 (MULACC, 3, { 1.000244140625, 1.000244140625, -1.00048828125 }),
  F32 (TRUNC, 1, { -0.5 }),
  F32 (TRUNC, 1, { 1e30 }),
  F32 (TRUNC, 1, { NAN }),
  F32 (FDIV, 2, { 0, 0 }),
  F32 (FDIV, 2, { -1, 0 }),
  F32 (FDIV, 2, { 1, NAN }),
};

/* ---- how values are written ---- */
static char *
to_text (TinyDType dtype, gint64 bits)
{
  if (!tiny_dtype_is_float (dtype))
    return conf_value_to_string (dtype, bits);
  double value = conf_to_double (bits);
  if (isnan (value))
    return g_strdup ("NaN");
  if (isinf (value))
    return g_strdup (value > 0 ? "∞" : "-∞");
  return g_strdup_printf (value == 0 && signbit (value) ? "-0" : "%.9g", value);
}

static gint64
to_bits (TinyDType dtype, double value)
{
  return tiny_dtype_is_float (dtype) ? conf_from_double ((double) (float) value)
                                     : (gint64) value;
}

/* ---- tables ---- */
static const char *
or_dash (const char *text)
{
  return text[0] != '\0' ? text : "–";
}

static void
print_ops (void)
{
  puts ("<!-- generated: ops -->\n"
        "| number | op | operands | result | rounding | left open |\n"
        "|---|---|---|---|---|---|");
  for (guint i = 0; i < G_N_ELEMENTS (ops); i++)
    printf ("| %u | %s | %s | %s | %s | %s |\n", tiny_op_infos[ops[i].op].instr,
            tiny_op_to_string (ops[i].op), ops[i].dtypes, ops[i].formula,
            or_dash (ops[i].rounding), or_dash (ops[i].open));
}

/* What is promised of an op that the core makes of others. */
static void
print_made (TinyOp op)
{
  for (guint i = 0; i < G_N_ELEMENTS (bounds); i++)
    if (bounds[i].op == op && bounds[i].least == bounds[i].most)
      printf (" %g | %g | all |\n", bounds[i].made_f64, bounds[i].made);
    else if (bounds[i].op == op)
      printf (" %g | %g | the last one's size from 2^%d to 2^%d; else nothing is promised |\n",
              bounds[i].made_f64, bounds[i].made, bounds[i].least, bounds[i].most);
}

static void
print_bounds (void)
{
  static const TinyDType dtypes[]
      = { TINY_DTYPE_F64, TINY_DTYPE_F32, TINY_DTYPE_F16, TINY_DTYPE_BF16 };
  puts (
      "\n<!-- generated: bounds -->\n"
      "| op | f64 | f32 | f16 | bf16, f8 | made, f64 | made, f32 | of operands, where made |\n"
      "|---|---|---|---|---|---|---|---|");
  for (guint i = 0; i < G_N_ELEMENTS (ops); i++) {
    double sum = 0;
    for (guint d = 0; d < G_N_ELEMENTS (dtypes); d++)
      sum += conf_bound_get_ulps (ops[i].op, dtypes[d], NULL);
    if (sum == 0)
      continue;
    printf ("| %s |", tiny_op_to_string (ops[i].op));
    for (guint d = 0; d < G_N_ELEMENTS (dtypes); d++)
      printf (" %g |", conf_bound_get_ulps (ops[i].op, dtypes[d], NULL));
    print_made (ops[i].op);
  }
}

static void
print_special (const Special *self)
{
  TinyDType to = self->to != TINY_DTYPE_VOID                                 ? self->to
                 : tiny_op_infos[self->op].op_class == TINY_OP_CLASS_COMPARE ? TINY_DTYPE_BOOL
                                                                             : self->from;
  gint64 args[3];
  ConfTruth truth;
  g_autoptr (GString) line = g_string_new (NULL);
  for (guint i = 0; i < self->n; i++) {
    args[i] = to_bits (self->from, self->args[i]);
    g_autofree char *text = to_text (self->from, args[i]);
    g_string_append_printf (line, "%s%s", i > 0 ? ", " : "", text);
  }
  conf_oracle (self->op, self->from, to, args, self->n, &truth);
  g_autofree char *one = to_text (to, truth.bits), *other = to_text (to, truth.other);
  printf ("| %s.%s (%s) | %s", tiny_op_to_string (self->op), tiny_dtype_to_string (self->from),
          line->str, tiny_dtype_to_string (to));
  if (truth.kind == CONF_TRUTH_ANY)
    puts (" | anything |");
  else if (strcmp (one, other) != 0)
    printf (" | %s or %s |\n", one, other);
  else
    printf (" | %s |\n", one);
}

int
main (void)
{
  print_ops ();
  print_bounds ();
  puts (
      "\n<!-- generated: specials -->\n| operation | result's dtype | result |\n|---|---|---|");
  for (guint i = 0; i < G_N_ELEMENTS (specials); i++)
    print_special (&specials[i]);
  return 0;
}
