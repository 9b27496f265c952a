/* SPDX-License-Identifier: MIT
 *
 * cpu-llvm-emit.c: a linear program as an LLVM module: its functions and the loop over the grid.
 *
 * Two functions are made. NAME, the CpuKernel, takes the buffers' addresses and the variables out of
 * their arrays and calls NAME.points with them as parameters, because only a parameter can say that
 * it overlaps no other (noalias). NAME.points loops over the grid points begin .. end-1. NAME.grid
 * holds the extents, which are constants of the code, for the loader. */
#include "cpu-llvm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
add_attribute (Emitter *e, LlvmRef function, int at, const char *name)
{
  unsigned kind = e->llvm->GetEnumAttributeKindForName (name, strlen (name));
  if (kind != 0) /* some come and go with the versions */
    e->llvm->AddAttributeAtIndex (function, (unsigned) at,
                                  e->llvm->CreateEnumAttribute (e->context, kind, 0));
}

static void
add_text_attribute (Emitter *e, LlvmRef function, const char *key, const char *value)
{
  LlvmRef attribute = e->llvm->CreateStringAttribute (e->context, key, (unsigned) strlen (key),
                                                      value, (unsigned) strlen (value));
  e->llvm->AddAttributeAtIndex (function, (unsigned) LLVM_ATTRIBUTE_FUNCTION, attribute);
}

static void
add_function_attributes (Emitter *e, LlvmRef function)
{
  char width[16];
  snprintf (width, sizeof width, "%u", cpu_arch_vector_bits (e->arch));
  add_attribute (e, function, LLVM_ATTRIBUTE_FUNCTION, "nounwind");
  add_text_attribute (e, function, "no-trapping-math", "true");
  add_text_attribute (e, function, "tune-cpu", cpu_arch_tune (e->arch));
  /* Without these LLVM splits 512-bit vectors for most processors. */
  add_text_attribute (e, function, "prefer-vector-width", width);
  add_text_attribute (e, function, "min-legal-vector-width", width);
}

/* Whether there are accumulators that are wider than the stack is aligned: what of them finds no place in a register
 * would lie across two lines. */
static bool
has_wide_registers (const Emitter *e)
{
  const unsigned stack_bits = 128;
  for (uint32_t i = 0; i < e->linear->n_instrs; i++) {
    const TinyInstr *instr = &e->linear->instrs[i];
    if (instr->op == TINY_INSTR_REGISTER
        && instr->lanes * dtype_bits (instr->dtype) > stack_bits)
      return true;
  }
  return false;
}

/* NAME.points (buffers…, variables…, begin, end), with parameter attributes. */
static LlvmRef
add_points_function (Emitter *e, const char *name, LlvmRef *out_type)
{
  const Llvm *llvm = e->llvm;
  const TinyLinear *linear = e->linear;
  LlvmRef types[CPU_MAX_PARAMS + CPU_MAX_VARIABLES + 2];
  unsigned n = 0;
  for (uint32_t i = 0; i < linear->n_params; i++)
    types[n++] = llvm->PointerTypeInContext (e->context, 0);
  for (uint32_t i = 0; i < linear->n_variables + 2; i++)
    types[n++] = llvm->IntTypeInContext (e->context, 64);
  *out_type = llvm->FunctionType (llvm->VoidTypeInContext (e->context), types, n, 0);

  char full_name[512];
  snprintf (full_name, sizeof full_name, CPU_ENTRY_PREFIX "%s.points", name);
  LlvmRef function = llvm->AddFunction (e->module, full_name, *out_type);
  llvm->SetLinkage (function, LLVM_LINKAGE_INTERNAL);
  add_function_attributes (e, function);
  add_attribute (e, function, LLVM_ATTRIBUTE_FUNCTION, "noinline");
  if (has_wide_registers (e))
    add_text_attribute (e, function, "stackrealign", "");
  for (uint32_t i = 0; i < linear->n_params; i++) {
    add_attribute (e, function, (int) i + 1, "noalias");
    add_attribute (e, function, (int) i + 1, "nocapture");
    if (!(linear->params[i].flags & TINY_PARAM_WRITE))
      add_attribute (e, function, (int) i + 1, "readonly");
  }
  return function;
}

static void
emit_kernel_function (Emitter *e, const char *name, LlvmRef points, LlvmRef points_type)
{
  const Llvm *llvm = e->llvm;
  const TinyLinear *linear = e->linear;
  LlvmRef pointer = llvm->PointerTypeInContext (e->context, 0);
  LlvmRef i64 = llvm->IntTypeInContext (e->context, 64);
  LlvmRef types[4] = { pointer, pointer, i64, i64 };
  LlvmRef type = llvm->FunctionType (llvm->VoidTypeInContext (e->context), types, 4, 0);
  char full_name[512];
  snprintf (full_name, sizeof full_name, CPU_ENTRY_PREFIX "%s", name);
  LlvmRef function = llvm->AddFunction (e->module, full_name, type);
  add_function_attributes (e, function);
  llvm->PositionBuilderAtEnd (e->builder,
                              llvm->AppendBasicBlockInContext (e->context, function, ""));

  LlvmRef arguments[CPU_MAX_PARAMS + CPU_MAX_VARIABLES + 2];
  unsigned n = 0;
  for (uint32_t i = 0; i < linear->n_params + linear->n_variables; i++) {
    bool is_buffer = i < linear->n_params;
    LlvmRef at = emit_int (e, 64, is_buffer ? i : i - linear->n_params);
    LlvmRef element = is_buffer ? pointer : i64;
    LlvmRef address = llvm->BuildGEP2 (
        e->builder, element, llvm->GetParam (function, is_buffer ? 0 : 1), &at, 1, "");
    arguments[n++] = llvm->BuildLoad2 (e->builder, element, address, "");
  }
  arguments[n++] = llvm->GetParam (function, 2);
  arguments[n++] = llvm->GetParam (function, 3);
  llvm->BuildCall2 (e->builder, points_type, points, arguments, n, "");
  llvm->BuildRetVoid (e->builder);
}

static void
emit_grid_global (Emitter *e, const char *name)
{
  const Llvm *llvm = e->llvm;
  char full_name[512];
  snprintf (full_name, sizeof full_name, CPU_ENTRY_PREFIX "%s.grid", name);
  LlvmRef i32 = llvm->IntTypeInContext (e->context, 32), extents[3];
  for (int axis = 0; axis < 3; axis++)
    extents[axis] = emit_int (e, 32, e->linear->grid[axis]);
  LlvmRef global = llvm->AddGlobal (e->module, llvm->ArrayType (i32, 3), full_name);
  llvm->SetInitializer (global, llvm->ConstArray (i32, extents, 3));
  llvm->SetGlobalConstant (global, 1);
  llvm->SetAlignment (global, 4);
}

/* The place along each axis of linear grid point @point. */
static void
emit_axes (Emitter *e, LlvmRef point)
{
  const uint32_t *grid = e->linear->grid;
  for (int axis = 0; axis < 3; axis++) {
    bool is_last = true;
    for (int k = axis + 1; k < 3; k++)
      is_last = is_last && grid[k] == 1;
    LlvmRef extent = emit_int (e, 64, grid[axis]);
    if (grid[axis] == 1) {
      e->axes[axis] = emit_int (e, 64, 0);
    } else if (is_last) {
      e->axes[axis] = point;
      point = emit_int (e, 64, 0);
    } else {
      e->axes[axis] = e->llvm->BuildBinOp (e->builder, LLVM_UREM, point, extent, "");
      point = e->llvm->BuildBinOp (e->builder, LLVM_UDIV, point, extent, "");
    }
  }
}

static bool
emit_instructions (Emitter *e)
{
  const TinyLinear *linear = e->linear;
  if (e->tiles.of != NULL && !emit_has_all_sources (e))
    return false;
  for (uint32_t i = 0; i < linear->n_instrs; i++) {
    const TinyInstr *instr = &linear->instrs[i];
    if (!emit_is_right (e, instr))
      return false;
    if (emit_is_fragment (e, instr)) {
      if ((e->values[i] = emit_fragment (e, instr)) == NULL)
        return false;
      continue;
    }
    EmitFunc func
        = emit_ops[instr->op] != NULL ? emit_ops[instr->op] : emit_structure[instr->op];
    e->values[i] = emit_with_table (e, instr, func);
    if (e->values[i] == NULL)
      return false;
  }
  if (e->depth > 0)
    return emit_fail (e, &linear->instrs[e->blocks[e->depth - 1].instr], "is never closed")
           != NULL;
  return true;
}

static bool
emit_points (Emitter *e)
{
  const Llvm *llvm = e->llvm;
  /* The first block, and without an end until the body is built: only its allocas become registers. */
  e->entry = llvm->AppendBasicBlockInContext (e->context, e->function, "");

  EmitBlock loop = { 0 };
  loop.body = llvm->AppendBasicBlockInContext (e->context, e->function, "");
  loop.exit = llvm->AppendBasicBlockInContext (e->context, e->function, "");
  unsigned n_before = e->linear->n_params + e->linear->n_variables;
  LlvmRef begin = llvm->GetParam (e->function, n_before);
  loop.bound = llvm->GetParam (e->function, n_before + 1);
  LlvmRef i64 = llvm->IntTypeInContext (e->context, 64);
  llvm->PositionBuilderAtEnd (e->builder, loop.body);
  loop.counter = llvm->BuildPhi (e->builder, i64, "");
  llvm->AddIncoming (loop.counter, &begin, &e->entry, 1);
  e->scratch = emit_place (e, llvm->ArrayType (i64, CPU_MAX_LANES), 64);
  emit_axes (e, loop.counter);
  if (!emit_instructions (e))
    return false;
  emit_loop_end (e, &loop, emit_int (e, 64, 1));
  if (!emit_prefetches (e))
    return false;
  if (emit_streams (e))
    emit_intrinsic (e, "llvm.x86.sse.sfence", NULL, NULL, 0);
  emit_tiles_end (e);
  llvm->BuildRetVoid (e->builder);
  llvm->PositionBuilderAtEnd (e->builder, e->entry);
  emit_tiles_begin (e);
  LlvmRef is_entered = llvm->BuildICmp (e->builder, LLVM_INT_SLT, begin, loop.bound, "");
  llvm->BuildCondBr (e->builder, is_entered, loop.body, loop.exit);
  return true;
}

static TinyStatus
no_memory (const char *name, TinyPluginError *error)
{
  return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory to compile it", name);
}

TinyStatus
cpu_llvm_emit (const Llvm *llvm,
               LlvmRef context,
               LlvmRef module,
               const TinyLinear *linear,
               const char *name,
               const CpuArch *arch,
               TinyPluginError *error)
{
  if (linear->n_params > CPU_MAX_PARAMS || linear->n_variables > CPU_MAX_VARIABLES
      || linear->grid[0] < 1 || linear->grid[1] < 1 || linear->grid[2] < 1
      || linear->group[0] != 1 || linear->group[1] != 1 || linear->group[2] != 1)
    return tiny_fail (error, TINY_STATUS_INVALID,
                      "%s: %u parameters, grid (%u, %u, %u), group (%u, %u, %u)", name,
                      linear->n_params, linear->grid[0], linear->grid[1], linear->grid[2],
                      linear->group[0], linear->group[1], linear->group[2]);
  Emitter e = { .llvm = llvm,
                .context = context,
                .module = module,
                .linear = linear,
                .name = name,
                .arch = arch,
                .error = error };
  const bool wants_tables = cpu_arch_vector_bits (arch) == 512;
  e.values = calloc (linear->n_instrs + 1, sizeof *e.values);
  if (wants_tables)
    e.tables = calloc (linear->n_instrs + 1, sizeof *e.tables);
  if (e.values == NULL || (wants_tables && e.tables == NULL) || !emit_tiles_init (&e)) {
    free (e.tables);
    free (e.values);
    return no_memory (name, error);
  }
  if (error != NULL && error->struct_size >= TINY_SIZE_0_PLUGIN_ERROR)
    error->text[0] = '\0';

  LlvmRef points_type;
  e.builder = llvm->CreateBuilderInContext (context);
  e.function = add_points_function (&e, name, &points_type);
  bool ok = emit_points (&e);
  if (ok) {
    emit_kernel_function (&e, name, e.function, points_type);
    emit_grid_global (&e, name);
  }
  llvm->DisposeBuilder (e.builder);
  free (e.tiles.of);
  free (e.tables);
  free (e.values);
  if (e.lacks_memory)
    return no_memory (name, error);
  return ok ? TINY_STATUS_OK : TINY_STATUS_UNSUPPORTED;
}
