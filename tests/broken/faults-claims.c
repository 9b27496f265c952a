/* SPDX-License-Identifier: MIT
 *
 * faults-claims.c: devices and targets that say of themselves what is not so. */
#include "broken.h"

/* ---- the target ---- */
#define TARGET(name)                                                                           \
  static TinyStatus name (const char *arch, TinyTarget *out, TinyPluginError *error)
#define OP(name) TINY_INSTR_BIT (TINY_INSTR_##name)

static TinyStatus
real_target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  const char *wanted = getenv ("TINY_BROKEN_ARCH");
  return inside.renderer->target (*arch == '\0' && wanted != NULL ? wanted : arch, out, error);
}

#define CLAIM(name, change)                                                                    \
  TARGET (name)                                                                                \
  {                                                                                            \
    TINY_TRY (real_target (arch, out, error));                                                 \
    broken_note ();                                                                            \
    change;                                                                                    \
    return TINY_STATUS_OK;                                                                     \
  }
CLAIM (many_lanes, {
  out->max_lanes = 256;
  out->vector_bits = 8192;
})
CLAIM (no_lanes, out->max_lanes = 0)
CLAIM (odd_lanes, out->max_lanes = 7)
CLAIM (many_items, {
  out->max_group_total = 1 << 20;
  for (int i = 0; i < 3; i++)
    out->max_group[i] = 1 << 20;
})
CLAIM (much_local, out->local_bytes = 1 << 30)
CLAIM (without_less, out->ops[TINY_DTYPE_I32] &= ~OP (CMPLT))
CLAIM (without_words, out->dtypes_storage &= ~BIT (I32))
CLAIM (index_of_float, out->index_dtype = TINY_DTYPE_F32)
CLAIM (unknown_flag, out->flags |= 1u << 30)
CLAIM (reserved_set, out->reserved[0] = 1)
CLAIM (no_arch, out->arch[0] = '\0')
CLAIM (endless_arch, memset (out->arch, 'a', sizeof out->arch))
CLAIM (no_params, out->max_params = 0)
CLAIM (no_grid, out->max_grid[1] = 0)
CLAIM (claims_no_subnormals, out->flags |= TINY_TARGET_FLUSHES_SUBNORMALS)
CLAIM (unknown_op, out->ops[TINY_DTYPE_F32] |= UINT64_C (1) << 36)

TARGET (other_arch_each_time)
{
  static unsigned n;
  TINY_TRY (real_target (arch, out, error));
  broken_note ();
  out->reserved[6] = 0;
  out->local_bytes -= 64 * (n++ % 8);
  return TINY_STATUS_OK;
}

TARGET (any_arch)
{
  if (real_target (arch, out, error) == TINY_STATUS_OK)
    return TINY_STATUS_OK;
  broken_note ();
  return inside.renderer->target ("", out, error);
}

TARGET (beyond_the_target)
{
  TINY_TRY (real_target (arch, out, error));
  broken_note ();
  memset ((char *) out + out->struct_size, 0x5a, 16);
  return TINY_STATUS_OK;
}

/* What is claimed and not there is refused by compile(). */
#define REFUSES(function, is_refused, why)                                                     \
  static TinyStatus function (const TinyCompileArgs *args, void **out_data,                    \
                              uint64_t *out_size, TinyPluginError *error)                      \
  {                                                                                            \
    for (uint32_t i = 0; i < args->linear->n_instrs; i++) {                                    \
      const TinyInstr *instr = &args->linear->instrs[i];                                       \
      if (is_refused) {                                                                        \
        broken_note ();                                                                        \
        return tiny_fail (error, TINY_STATUS_COMPILE, "%s: %s", args->name, why);              \
      }                                                                                        \
    }                                                                                          \
    return inside.renderer->compile (args, out_data, out_size, error);                         \
  }
REFUSES (lacks_sin, instr->op == TINY_INSTR_SIN, "no SIN")
REFUSES (lacks_mod, instr->op == TINY_INSTR_MOD, "no MOD")
REFUSES (lacks_f64, instr->dtype == TINY_DTYPE_F64, "no f64")
REFUSES (lacks_f16,
         instr->dtype == TINY_DTYPE_F16 && instr->op == TINY_INSTR_ADD,
         "no arithmetic of f16")
REFUSES (lacks_i64_shr,
         instr->dtype == TINY_DTYPE_I64 && instr->op == TINY_INSTR_SHR,
         "no SHR of i64")
REFUSES (lacks_lanes, instr->lanes > 4, "vectors of more than 4 lanes")
REFUSES (lacks_gates, instr->op == TINY_INSTR_STORE && instr->n_sources == 4, "no gates")
REFUSES (lacks_cast,
         instr->op == TINY_INSTR_CAST && instr->dtype == TINY_DTYPE_BF16,
         "no conversion to bf16")
REFUSES (lacks_locals,
         instr->op == TINY_INSTR_LOCAL && instr->arg > 1024,
         "LOCAL memory of more than 1024 elements")

static TinyStatus
few_params (TinyPluginDevice *device,
            const TinyProgramArgs *args,
            TinyPluginProgram **out,
            TinyPluginError *error)
{
  if (args->n_params <= 8)
    return inside.device->program_load (device, args, out, error);
  broken_note ();
  return tiny_fail (error, TINY_STATUS_INVALID, "%s: %u buffers, 8 is the most", args->name,
                    args->n_params);
}

static TinyStatus
few_items (TinyPluginDevice *device,
           const TinyProgramArgs *args,
           TinyPluginProgram **out,
           TinyPluginError *error)
{
  if (args->group[0] * args->group[1] * args->group[2] <= 16)
    return inside.device->program_load (device, args, out, error);
  broken_note ();
  return tiny_fail (error, TINY_STATUS_INVALID, "%s: groups of 16 items are the largest",
                    args->name);
}

SUBMIT (small_grids)
{
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    const uint32_t *grid = submit->commands[i].grid;
    if (submit->commands[i].type == TINY_COMMAND_DISPATCH
        && (grid[0] > UINT16_MAX || grid[1] > UINT16_MAX || grid[2] > UINT16_MAX)) {
      broken_note ();
      return tiny_fail (error, TINY_STATUS_LAUNCH, "a grid of more than 65535");
    }
  }
  return inside.device->submit (device, queue, submit, error);
}

/* ---- the device ---- */
#define INFO(name, change)                                                                     \
  static TinyStatus name (TinyPluginDevice *device, TinyDeviceInfo *out,                       \
                          TinyPluginError *error)                                              \
  {                                                                                            \
    TINY_TRY (inside.device->info (device, out, error));                                       \
    broken_note ();                                                                            \
    change;                                                                                    \
    return TINY_STATUS_OK;                                                                     \
  }
INFO (aligned_to_pages, out->alignment = 4096)
INFO (aligned_to_24, out->alignment = 24)
INFO (aligned_to_0, out->alignment = 0)
INFO (transfers_of_3, out->transfer_bytes = 3)
INFO (transfers_of_pages, out->transfer_bytes = 4096)
INFO (info_reserved, out->reserved[0] = 1)
INFO (info_flag, out->flags |= 1u << 30)
INFO (info_no_name, out->name[0] = '\0')
INFO (info_endless_name, memset (out->name, 'a', sizeof out->name))
INFO (info_not_utf8, memcpy (out->name, "\xff\xfe", 3))
INFO (info_beyond, memset ((char *) out + out->struct_size, 0x5a, 16))
INFO (info_no_buffer, out->max_buffer_bytes = 64)

/* Writes all it knows although it was given less. */
static TinyStatus
info_whole (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  const uint32_t size = out->struct_size;
  if (size < sizeof *out)
    broken_note ();
  out->struct_size = sizeof *out;
  const TinyStatus status = inside.device->info (device, out, error);
  out->struct_size = size;
  return status;
}

static TinyStatus
info_nothing (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  broken_note ();
  return TINY_STATUS_OK;
}

static TinyStatus
info_changes (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  static unsigned n;
  TINY_TRY (inside.device->info (device, out, error));
  broken_note ();
  out->alignment = n++ % 2 == 0 ? out->alignment : out->alignment * 2;
  return TINY_STATUS_OK;
}

#define CASES              "declared/*|claims/*|exec/*|hygiene/*|lifecycle/*"
#define SAYS(function)     .renderer = { .target = function }, .cases = CASES
#define COMPILES(function) .renderer = { .compile = function }, .cases = CASES
#define TELLS(function)    .device = { .info = function }, .cases = CASES
static const Fault rows[] = {
  /* clang-format off */
  { "claims-lanes", "max_lanes is 256, 4 is the most", "claims copied from another device", .around = "CPU", .renderer = { .target = many_lanes, .compile = lacks_lanes }, .cases = CASES },
  { "claims-no-lanes", "max_lanes is 0", "a field that is not set", SAYS (no_lanes) },
  { "claims-7-lanes", "max_lanes is 7", "a field that is not checked", SAYS (odd_lanes) },
  { "claims-items", "groups are claimed of items that program_load() refuses", "limits of the API, not of the device", .arch = "groups,items=64", .renderer = { .target = many_items }, .device = { .program_load = few_items }, .cases = CASES },
  { "claims-local", "LOCAL memory is claimed that compile() refuses", "limits of the API, not of the device", .arch = "groups,items=64", .renderer = { .target = much_local, .compile = lacks_locals }, .cases = CASES },
  { "claims-params", "buffers are claimed that program_load() refuses", "8 bindings, as WebGPU's least", .device = { .program_load = few_params }, .cases = CASES },
  { "claims-grid", "grids are claimed that submit() refuses", "65535 on axes 1 and 2", .device = { .submit = small_grids }, .cases = CASES },
  { "claims-sin", "SIN is claimed, compile() refuses it", "claims copied from another device", COMPILES (lacks_sin) },
  { "claims-mod", "MOD is claimed, compile() refuses it", "claims copied from another device", COMPILES (lacks_mod) },
  { "claims-f64", "f64 is claimed, compile() refuses it", "doubles that only some chips of a family have", COMPILES (lacks_f64) },
  { "claims-f16", "ADD of f16 is claimed, compile() refuses it", "halves that are storage only", COMPILES (lacks_f16) },
  { "claims-i64-shr", "SHR of i64 is claimed, compile() refuses it", "64 bits in part", COMPILES (lacks_i64_shr) },
  { "claims-gates", "gates are taken for granted, compile() refuses them", "claims copied from another device", COMPILES (lacks_gates) },
  { "claims-cast-bf16", "CAST to bf16 is claimed, compile() refuses it", "conversions in one direction", COMPILES (lacks_cast) },
  { "claims-flush", "subnormals are said to be flushed and are not", "a flag that nobody measured", SAYS (claims_no_subnormals) },
  { "target-without-less", "CMPLT of i32, which everybody has, is not declared", "a table with a hole", SAYS (without_less) },
  { "target-without-i32", "i32, which everybody has, is not stored", "a table with a hole", SAYS (without_words) },
  { "target-index-f32", "indices are f32", "enums confused", SAYS (index_of_float) },
  { "target-unknown-flag", "the target has an unknown flag", "memory that is not zeroed", SAYS (unknown_flag) },
  { "target-unknown-op", "the target declares an op that there is not", "memory that is not zeroed", SAYS (unknown_op) },
  { "target-reserved", "the target's reserved fields are not 0", "memory that is not zeroed", SAYS (reserved_set) },
  { "target-no-arch", "the target has no arch", "a field that is not set", SAYS (no_arch) },
  { "target-endless-arch", "the target's arch has no end", "strncpy", SAYS (endless_arch) },
  { "target-no-params", "max_params is 0", "a field that is not set", SAYS (no_params) },
  { "target-no-grid", "max_grid of an axis is 0", "a field that is not set", SAYS (no_grid) },
  { "target-changes", "target() says something else each time", "free memory taken for a limit", SAYS (other_arch_each_time) },
  { "target-any-arch", "target() takes every arch", "options that are not checked", SAYS (any_arch) },
  { "target-beyond", "target() writes beyond struct_size", "structs that have grown", SAYS (beyond_the_target), .is_of_sizes = 1 },
  { "info-alignment-4096", "buffers are said to be aligned to pages", "claims copied from another device", TELLS (aligned_to_pages) },
  { "info-alignment-24", "the alignment is 24", "a field that is not checked", TELLS (aligned_to_24) },
  { "info-alignment-0", "the alignment is 0", "a field that is not set", TELLS (aligned_to_0) },
  { "info-transfer-3", "transfer_bytes is 3", "a field that is not checked", TELLS (transfers_of_3) },
  { "info-transfer-4096", "transfer_bytes is 4096", "a field that is not checked", TELLS (transfers_of_pages) },
  { "info-reserved", "the info's reserved fields are not 0", "memory that is not zeroed", TELLS (info_reserved) },
  { "info-unknown-flag", "the info has an unknown flag", "memory that is not zeroed", TELLS (info_flag) },
  { "info-no-name", "the device has no name", "a field that is not set", TELLS (info_no_name) },
  { "info-endless-name", "the device's name has no end", "strncpy", TELLS (info_endless_name) },
  { "info-not-utf8", "the device's name is no UTF-8", "names in the firmware's encoding", TELLS (info_not_utf8) },
  { "info-beyond", "info() writes beyond struct_size", "structs that have grown", TELLS (info_beyond), .is_of_sizes = 1 },
  { "info-whole", "info() writes all it knows into a shorter struct", "struct_size that nobody reads", TELLS (info_whole), .is_of_sizes = 1 },
  { "info-nothing", "info() answers OK and writes nothing", "a stub", TELLS (info_nothing) },
  { "info-changes", "info() says something else each time", "state taken for a limit", TELLS (info_changes) },
  { "info-max-buffer", "max_buffer_bytes is 64", "a limit of another kind", TELLS (info_no_buffer) },
  /* clang-format on */
};
FAULT_TABLE (faults_claims);
