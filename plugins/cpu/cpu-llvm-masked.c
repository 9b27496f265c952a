/* SPDX-License-Identifier: MIT
 *
 * cpu-llvm-masked.c: loads and stores of vectors with a gate for each lane. */
#include "cpu-llvm.h"

#include <string.h>

/* llvm.masked.load and llvm.masked.store: up to LLVM 21 the alignment is an argument, from 22 on an
 * attribute of the pointer. @before and @after surround the alignment. */
LlvmRef
emit_masked (Emitter *e,
             const char *name,
             const EmitAccess *access,
             LlvmRef *arguments,
             unsigned n_arguments,
             unsigned pointer_at)
{
  const Llvm *llvm = e->llvm;
  LlvmRef types[2] = { emit_memory_type (e, access->dtype, access->lanes),
                       llvm->PointerTypeInContext (e->context, 0) };
  unsigned id = llvm->LookupIntrinsicID (name, strlen (name));
  LlvmRef function = llvm->GetIntrinsicDeclaration (e->module, id, types, 2);
  LlvmRef all[4];
  unsigned n = 0;
  bool has_argument = llvm->CountParams (function) == 4;
  for (unsigned i = 0; i < n_arguments; i++) {
    all[n++] = arguments[i];
    if (i == pointer_at && has_argument)
      all[n++] = emit_int (e, 32, access->n_align);
  }
  LlvmRef call = llvm->BuildCall2 (e->builder, llvm->GlobalGetValueType (function), function,
                                   all, n, "");
  if (!has_argument) {
    unsigned kind = llvm->GetEnumAttributeKindForName ("align", 5);
    llvm->AddCallSiteAttribute (call, pointer_at + 1,
                                llvm->CreateEnumAttribute (e->context, kind, access->n_align));
  }
  return call;
}

/* TRUE: lane @lane of @gate is false whatever is computed. */
static bool
is_never (Emitter *e, const TinyInstr *gate, unsigned lane)
{
  LlvmRef value = e->values[gate - e->linear->instrs];
  if (gate->op == TINY_INSTR_AND)
    return is_never (e, emit_source_instr (e, gate, 0), lane)
           || is_never (e, emit_source_instr (e, gate, 1), lane);
  return e->llvm->IsConstant (value)
         && e->llvm->BuildExtractElement (e->builder, value, emit_int (e, 32, lane), "")
                == emit_int (e, 1, 0);
}

/* Lanes @first … @first + @n - 1 of @vector. */
static LlvmRef
emit_part (Emitter *e, LlvmRef vector, unsigned first, unsigned n)
{
  LlvmRef lanes[CPU_MAX_LANES];
  for (unsigned i = 0; i < n; i++)
    lanes[i] = emit_int (e, 32, first + i);
  return e->llvm->BuildShuffleVector (e->builder, vector,
                                      e->llvm->GetPoison (e->llvm->TypeOf (vector)),
                                      e->llvm->ConstVector (lanes, n), "");
}

/* @access as loads of at most a register, from lane @first of @gate on. Where LLVM 15 splits one itself, for AVX2, and knows
 * all gates of a half to be false, it loads that half without them. */
LlvmRef
emit_masked_load (Emitter *e,
                  const EmitAccess *access,
                  const TinyInstr *gate,
                  unsigned first,
                  LlvmRef alternative)
{
  const Llvm *llvm = e->llvm;
  const unsigned n = access->lanes, half = n / 2;
  unsigned n_never = 0;
  for (unsigned i = 0; i < n; i++)
    n_never += is_never (e, gate, first + i);
  if (n_never == n)
    return alternative;
  if (n % 2 != 0 || n * 8 * access->n_align <= cpu_arch_vector_bits (e->arch)) {
    LlvmRef arguments[3] = { access->address, access->lane_gates, alternative };
    return emit_masked (e, "llvm.masked.load", access, arguments, 3, 0);
  }
  LlvmRef distance = emit_int (e, 64, half), values[2], lanes[CPU_MAX_LANES];
  for (unsigned i = 0; i < 2; i++) {
    EmitAccess part = *access;
    part.lanes = half;
    part.lane_gates = emit_part (e, access->lane_gates, i * half, half);
    if (i == 1)
      part.address = llvm->BuildGEP2 (e->builder, emit_memory_type (e, access->dtype, 1),
                                      access->address, &distance, 1, "");
    values[i] = emit_masked_load (e, &part, gate, first + i * half,
                                  emit_part (e, alternative, i * half, half));
  }
  for (unsigned i = 0; i < n; i++)
    lanes[i] = emit_int (e, 32, i);
  return llvm->BuildShuffleVector (e->builder, values[0], values[1],
                                   llvm->ConstVector (lanes, n), "");
}
