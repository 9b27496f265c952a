/* SPDX-License-Identifier: MIT
 *
 * capabilities.c: what the subject has of each op on each dtype, and how far off it was at worst.
 *
 * "native" is what its target declares; "emulated" what the core makes of other ops; "unsupported"
 * what it can make of nothing: arithmetic on floats where there is none, and on f64 where that is
 * only moved. */
#include "certificate.h"
#include "ir/tiny-dtype.h"
#include "ir/tiny-op.h"

static const char *
find_how (TinyOp op, TinyDType dtype, guint64 declared, gboolean has_floats, gboolean has_f64)
{
  const TinyOpInfo *info = &tiny_op_infos[op];
  gboolean moves = info->op_class == TINY_OP_CLASS_MEMORY || op == TINY_OP_BITCAST;
  if ((declared & TINY_INSTR_BIT (info->instr)) != 0)
    return "native";
  if (moves || !tiny_dtype_is_float (dtype))
    return "emulated";
  return has_floats && (dtype != TINY_DTYPE_F64 || has_f64) ? "emulated" : "unsupported";
}

/* Whether the op means anything on it. */
static gboolean
means_something (TinyOp op, TinyDType dtype)
{
  gboolean is_float = tiny_dtype_is_float (dtype), is_bool = dtype == TINY_DTYPE_BOOL;
  switch (op) {
  case TINY_OP_RECIP:
  case TINY_OP_SQRT:
  case TINY_OP_EXP2:
  case TINY_OP_LOG2:
  case TINY_OP_SIN:
  case TINY_OP_TRUNC:
  case TINY_OP_FDIV:
    return is_float;
  case TINY_OP_AND:
  case TINY_OP_OR:
  case TINY_OP_XOR:
    return !is_float;
  case TINY_OP_IDIV:
  case TINY_OP_MOD:
  case TINY_OP_SHL:
  case TINY_OP_SHR:
    return !is_float && !is_bool;
  case TINY_OP_NEG:
  case TINY_OP_SUB:
  case TINY_OP_MULACC:
    return !is_bool;
  default:
    return TRUE;
  }
}

JsonArray *
conf_capabilities_new (JsonObject *facts)
{
  JsonArray *out = json_array_new ();
  if (json_object_get_boolean_member_with_default (facts, "only_claims", FALSE))
    return out; /* what it has is operations, which are cases */
  JsonArray *ops = json_object_get_array_member (facts, "ops");
  guint64 f32 = (guint64) json_array_get_int_element (ops, TINY_DTYPE_F32);
  guint64 f64 = (guint64) json_array_get_int_element (ops, TINY_DTYPE_F64);
  for (guint op = 0; op < TINY_N_OPS; op++) {
    const TinyOpInfo *info = &tiny_op_infos[op];
    if (info->instr == 0 || info->instr >= TINY_INSTR_CONST)
      continue;
    JsonObject *row = json_object_new (), *dtypes = json_object_new ();
    for (guint dtype = TINY_DTYPE_BOOL; dtype <= TINY_DTYPE_F64; dtype++)
      if (means_something (op, dtype))
        json_object_set_string_member (
            dtypes, tiny_dtype_to_string (dtype),
            find_how (op, dtype, (guint64) json_array_get_int_element (ops, dtype),
                      (f32 & TINY_INSTR_BIT (TINY_INSTR_ADD)) != 0,
                      (f64 & TINY_INSTR_BIT (TINY_INSTR_ADD)) != 0));
    json_object_set_string_member (row, "op", info->text);
    json_object_set_object_member (row, "dtypes", dtypes);
    json_array_add_object_element (out, row);
  }
  return out;
}

/* ---- the worst errors ---- */
static const char *
name_of_instr (gint64 instr)
{
  for (guint op = 0; op < TINY_N_OPS; op++)
    if (tiny_op_infos[op].instr != 0 && tiny_op_infos[op].instr == instr)
      return tiny_op_infos[op].text;
  return "?";
}

static void
keep_worst (GHashTable *known, JsonArray *out, JsonObject *error, const char *name)
{
  gint64 dtype = json_object_get_int_member (error, "dtype");
  const char *op = name_of_instr (json_object_get_int_member (error, "op"));
  const char *type
      = dtype > 0 && dtype < TINY_N_DTYPES ? tiny_dtype_to_string ((TinyDType) dtype) : "?";
  const char *unit = json_object_get_string_member (error, "unit");
  double worst = json_object_get_double_member (error, "worst");
  g_autofree char *key = g_strdup_printf ("%s %s %s", op, type, unit);
  JsonObject *row = g_hash_table_lookup (known, key);
  if (row == NULL) {
    row = json_object_new ();
    g_hash_table_insert (known, g_steal_pointer (&key), row);
    json_object_set_string_member (row, "op", op);
    json_object_set_string_member (row, "dtype", type);
    json_object_set_string_member (row, "unit", unit);
    json_array_add_object_element (out, row);
  } else if (!(worst > json_object_get_double_member (row, "worst")))
    return;
  json_object_set_double_member (row, "worst", worst);
  json_object_set_double_member (row, "most", json_object_get_double_member (error, "most"));
  json_object_set_string_member (row, "case", name);
}

JsonArray *
conf_worst_errors_new (JsonArray *cases)
{
  JsonArray *out = json_array_new ();
  g_autoptr (GHashTable) known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < json_array_get_length (cases); i++) {
    JsonObject *it = json_array_get_object_element (cases, i);
    JsonArray *errors = json_object_has_member (it, "errors")
                            ? json_object_get_array_member (it, "errors")
                            : NULL;
    for (guint e = 0; errors != NULL && e < json_array_get_length (errors); e++)
      keep_worst (known, out, json_array_get_object_element (errors, e),
                  json_object_get_string_member (it, "name"));
  }
  return out;
}
