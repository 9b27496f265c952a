/* SPDX-License-Identifier: MIT
 *
 * compile.c: what the chip can do, as data, and its steps from the linear program. */
#include "pebble.h"

#define BIT(op) TINY_INSTR_BIT (TINY_INSTR_##op)
/* All that the chip does. */
static const uint64_t known = BIT (LOAD) | BIT (STORE) | BIT (CAST) | BIT (BITCAST) | BIT (ADD)
                              | BIT (MUL) | BIT (CMPLT) | BIT (AND) | BIT (OR) | BIT (XOR)
                              | BIT (SHL) | BIT (SHR) | BIT (WHERE) | BIT (FDIV) | BIT (CONST)
                              | BIT (PARAM) | BIT (VARIABLE) | BIT (GRID) | BIT (REGISTER)
                              | BIT (RANGE) | BIT (END) | BIT (IF) | BIT (ENDIF);

TinyStatus
pebble_target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_TRY (tiny_check_arch (arch, "pebble1", error));
  TINY_FILL (out, .arch = "pebble1", .index_dtype = TINY_DTYPE_I32, .max_lanes = 1,
             .n_threads = 1, .n_vector_registers = 504, .max_params = CHIP_BUFFERS,
             .max_grid = { 1 << 30, 1 << 16, 1 << 16 });
  const uint64_t bits = BIT (AND) | BIT (OR) | BIT (XOR), shifts = BIT (SHL) | BIT (SHR);
  const uint64_t all = BIT (LOAD) | BIT (STORE) | BIT (CAST) | BIT (BITCAST) | BIT (ADD)
                       | BIT (MUL) | BIT (CMPLT) | BIT (WHERE);
  out->ops[TINY_DTYPE_I32] = out->ops[TINY_DTYPE_U32] = all | bits | shifts;
  out->ops[TINY_DTYPE_F32] = all | BIT (FDIV);
  out->ops[TINY_DTYPE_BOOL] = bits | BIT (CAST) | BIT (WHERE); /* in registers only */
  out->dtypes_storage = TINY_DTYPE_BIT (TINY_DTYPE_I32) | TINY_DTYPE_BIT (TINY_DTYPE_U32)
                        | TINY_DTYPE_BIT (TINY_DTYPE_F32);
  out->dtypes_compute = out->dtypes_storage | TINY_DTYPE_BIT (TINY_DTYPE_BOOL);
  return TINY_STATUS_OK;
}

static uint32_t
constant (const TinyInstr *instr)
{
  double wide;
  memcpy (&wide, &instr->arg, sizeof wide);
  const float value = (float) wide;
  uint32_t word = (uint32_t) instr->arg;
  if (instr->dtype == TINY_DTYPE_F32)
    memcpy (&word, &value, sizeof word);
  return word;
}

/* False: nothing that the chip does. */
static bool
translate (const TinyLinear *linear, uint32_t i, Step *steps)
{
  const TinyInstr *instr = &linear->instrs[i];
  const uint32_t *sources = &linear->sources[instr->sources];
  Step *step = &steps[i];
  *step
      = (Step){ .op = (uint8_t) instr->op, .to = instr->dtype, .value = (uint32_t) instr->arg };
  if (instr->lanes > 1 || instr->n_sources > 4)
    return false;
  step->n_sources = (uint8_t) instr->n_sources;
  for (uint32_t s = 0; s < instr->n_sources; s++)
    step->sources[s] = sources[s];
  step->from = instr->n_sources > 0 ? linear->instrs[sources[0]].dtype : instr->dtype;
  if (instr->op == TINY_INSTR_CONST)
    step->value = constant (instr);
  if (instr->op == TINY_INSTR_END || instr->op == TINY_INSTR_ENDIF) {
    step->other = sources[0];
    steps[sources[0]].other = i;
  }
  return instr->op < TINY_N_INSTRS && (known >> instr->op & 1) != 0;
}

TinyStatus
pebble_compile (const TinyCompileArgs *args,
                void **out_data,
                uint64_t *out_size,
                TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  if (args->linear == NULL)
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "%s: the chip runs linear programs",
                      args->name);
  TINY_TRY (TINY_CHECK_IN (args->linear, 0, error));
  const TinyLinear *linear = args->linear;
  if (linear->n_params > CHIP_BUFFERS || linear->n_variables > CHIP_VARIABLES)
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED,
                      "%s: more than %d buffers or %d variables", args->name, CHIP_BUFFERS,
                      CHIP_VARIABLES);
  const Head head = { linear->n_instrs };
  const size_t size = linear->n_instrs * sizeof (Step);
  void *steps = NULL;
  TinyPacked *packed = tiny_pack (host, &head, sizeof head, size, &steps);
  if (packed == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory", args->name);
  for (uint32_t i = 0; i < linear->n_instrs; i++)
    if (!translate (linear, i, steps)) {
      host->free (packed);
      return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "%s: the chip has no instruction %u",
                        args->name, linear->instrs[i].op);
    }
  tiny_pack_end (packed, size, out_data, out_size);
  return TINY_STATUS_OK;
}
