/* SPDX-License-Identifier: MIT
 *
 * cpu-llvm-structure.c: LLVM code of values, memory, parameters and control flow.
 *
 * A register is an alloca that LLVM's sroa turns into values. Loops test at their end, so that no
 * pass need rotate them. An access whose scalar gate is false goes to a scratch place instead of around a
 * branch; a gate of many lanes is a masked access, which touches nothing where it is false. One that may
 * lie far outside goes to the scratch place, too, when no lane is on (cpu-llvm-outside.c). */
#include "cpu-llvm.h"

#include <string.h>

/* ---- dtypes ---- */

static const struct {
  uint8_t n_bits, is_float, is_signed;
} dtypes[TINY_N_DTYPES] = {
  [TINY_DTYPE_F8E4M3] = { 8, 0, 0 }, [TINY_DTYPE_F8E5M2] = { 8, 0, 0 },
  [TINY_DTYPE_BOOL] = { 8, 0, 0 },   [TINY_DTYPE_I8] = { 8, 0, 1 },
  [TINY_DTYPE_U8] = { 8, 0, 0 },     [TINY_DTYPE_I16] = { 16, 0, 1 },
  [TINY_DTYPE_U16] = { 16, 0, 0 },   [TINY_DTYPE_I32] = { 32, 0, 1 },
  [TINY_DTYPE_U32] = { 32, 0, 0 },   [TINY_DTYPE_I64] = { 64, 0, 1 },
  [TINY_DTYPE_U64] = { 64, 0, 0 },   [TINY_DTYPE_F16] = { 16, 0, 0 },
  [TINY_DTYPE_BF16] = { 16, 0, 0 },  [TINY_DTYPE_F32] = { 32, 1, 0 },
  [TINY_DTYPE_F64] = { 64, 1, 0 },
};

bool
dtype_is_float (unsigned dtype)
{
  return dtypes[dtype].is_float;
}

bool
dtype_is_signed (unsigned dtype)
{
  return dtypes[dtype].is_signed;
}

unsigned
dtype_bits (unsigned dtype)
{
  return dtype < TINY_N_DTYPES ? dtypes[dtype].n_bits : 0;
}

static LlvmRef
scalar_type (const Emitter *e, unsigned dtype, bool in_memory)
{
  if (dtype == TINY_DTYPE_F32)
    return e->llvm->FloatTypeInContext (e->context);
  if (dtype == TINY_DTYPE_F64)
    return e->llvm->DoubleTypeInContext (e->context);
  unsigned n_bits = dtype == TINY_DTYPE_BOOL && !in_memory ? 1 : dtypes[dtype].n_bits;
  return e->llvm->IntTypeInContext (e->context, n_bits);
}

static LlvmRef
vector_type (const Emitter *e, LlvmRef scalar, unsigned lanes)
{
  return lanes > 1 ? e->llvm->VectorType (scalar, lanes) : scalar;
}

LlvmRef
emit_type (const Emitter *e, unsigned dtype, unsigned lanes)
{
  return vector_type (e, scalar_type (e, dtype, false), lanes);
}

LlvmRef
emit_memory_type (const Emitter *e, unsigned dtype, unsigned lanes)
{
  return vector_type (e, scalar_type (e, dtype, true), lanes);
}

/* ---- values ---- */

LlvmRef
emit_fail (Emitter *e, const TinyInstr *instr, const char *why)
{
  tiny_fail (e->error, TINY_STATUS_UNSUPPORTED,
             "%s: instruction %u (op %u, dtype %u, %u lanes): %s", e->linear->name,
             (unsigned) (instr - e->linear->instrs), instr->op, instr->dtype, instr->lanes,
             why);
  return NULL;
}

LlvmRef
emit_int (const Emitter *e, unsigned n_bits, int64_t value)
{
  return e->llvm->ConstInt (e->llvm->IntTypeInContext (e->context, n_bits),
                            (unsigned long long) value, 1);
}

LlvmRef
emit_broadcast (Emitter *e, LlvmRef scalar, unsigned lanes)
{
  if (lanes <= 1)
    return scalar;
  if (e->llvm->IsConstant (scalar)) {
    LlvmRef copies[CPU_MAX_LANES];
    for (unsigned i = 0; i < lanes; i++)
      copies[i] = scalar;
    return e->llvm->ConstVector (copies, lanes);
  }
  const Llvm *llvm = e->llvm;
  LlvmRef nothing = llvm->GetPoison (llvm->VectorType (llvm->TypeOf (scalar), lanes));
  LlvmRef mask
      = llvm->ConstNull (llvm->VectorType (llvm->IntTypeInContext (e->context, 32), lanes));
  LlvmRef first
      = llvm->BuildInsertElement (e->builder, nothing, scalar, emit_int (e, 32, 0), "");
  return llvm->BuildShuffleVector (e->builder, first, nothing, mask, "");
}

const TinyInstr *
emit_source_instr (const Emitter *e, const TinyInstr *instr, unsigned n)
{
  return &e->linear->instrs[e->linear->sources[instr->sources + n]];
}

LlvmRef
emit_source (Emitter *e, const TinyInstr *instr, unsigned n)
{
  uint32_t i = e->linear->sources[instr->sources + n];
  unsigned lanes = e->linear->instrs[i].lanes;
  return lanes == 1 ? emit_broadcast (e, e->values[i], instr->lanes) : e->values[i];
}

LlvmRef
emit_intrinsic (Emitter *e, const char *name, LlvmRef type, LlvmRef *arguments, unsigned n)
{
  const Llvm *llvm = e->llvm;
  unsigned id = llvm->LookupIntrinsicID (name, strlen (name));
  LlvmRef function = llvm->GetIntrinsicDeclaration (e->module, id, &type, type != NULL);
  return llvm->BuildCall2 (e->builder, llvm->GlobalGetValueType (function), function, arguments,
                           n, "");
}

/* The bits of @value in a float of @n_bits with @n_mantissa explicit ones, rounded to even. */
static uint16_t
round_to_bits (double value, unsigned n_bits, unsigned n_mantissa)
{
  uint64_t bits;
  memcpy (&bits, &value, sizeof bits);
  const unsigned n_exponent = n_bits - 1 - n_mantissa;
  const int bias = (1 << (n_exponent - 1)) - 1;
  const uint16_t sign = (uint16_t) (bits >> 63 << (n_bits - 1));
  /* f8e4m3 has none: its last code is NaN. */
  const uint16_t infinity
      = n_exponent == 4 ? 0x7f : (uint16_t) (((1u << n_exponent) - 1) << n_mantissa);
  int exponent = (int) (bits >> 52 & 0x7ff);
  uint64_t mantissa = bits & ((UINT64_C (1) << 52) - 1);
  if (exponent == 0x7ff)
    return (uint16_t) (sign | infinity | (mantissa != 0 ? 1u << (n_mantissa - 1) : 0));
  if (exponent == 0)
    return sign;
  exponent += bias - 1023;
  mantissa |= UINT64_C (1) << 52;
  unsigned shift = 52 - n_mantissa;
  if (exponent <= 0) {
    shift += (unsigned) (1 - exponent);
    exponent = 0;
  }
  if (shift > 60)
    return sign;
  uint64_t kept = mantissa >> shift, rest = mantissa & ((UINT64_C (1) << shift) - 1);
  uint64_t half = UINT64_C (1) << (shift - 1);
  kept += rest > half || (rest == half && (kept & 1));
  /* A normal number's hidden bit counts one exponent step, so a carry moves into the exponent. */
  uint64_t whole = exponent > 0 ? ((uint64_t) (exponent - 1) << n_mantissa) + kept : kept;
  return (uint16_t) (sign | (whole > infinity ? infinity : whole));
}

static LlvmRef
emit_constant (Emitter *e, const TinyInstr *instr)
{
  double real;
  memcpy (&real, &instr->arg, sizeof real);
  LlvmRef type = emit_type (e, instr->dtype, 1), value;
  switch (instr->dtype) {
  case TINY_DTYPE_F32:
  case TINY_DTYPE_F64:
    value = e->llvm->ConstReal (type, real);
    break;
  case TINY_DTYPE_F16:
    value = e->llvm->ConstInt (type, round_to_bits (real, 16, 10), 0);
    break;
  case TINY_DTYPE_BF16:
    value = e->llvm->ConstInt (type, round_to_bits (real, 16, 7), 0);
    break;
  case TINY_DTYPE_F8E4M3:
    value = e->llvm->ConstInt (type, round_to_bits (real, 8, 3), 0);
    break;
  case TINY_DTYPE_F8E5M2:
    value = e->llvm->ConstInt (type, round_to_bits (real, 8, 2), 0);
    break;
  case TINY_DTYPE_BOOL:
    value = e->llvm->ConstInt (type, instr->arg != 0, 0);
    break;
  default:
    value = e->llvm->ConstInt (type, (unsigned long long) instr->arg, 1);
  }
  return emit_broadcast (e, value, instr->lanes);
}

/* ---- memory ---- */

/* A mutable place, made in the entry block so that it becomes a register. */
LlvmRef
emit_place (Emitter *e, LlvmRef type, unsigned n_align)
{
  LlvmRef here = e->llvm->GetInsertBlock (e->builder);
  e->llvm->PositionBuilderAtEnd (e->builder, e->entry);
  LlvmRef place = e->llvm->BuildAlloca (e->builder, type, "");
  if (n_align > 0)
    e->llvm->SetAlignment (place, n_align);
  e->llvm->PositionBuilderAtEnd (e->builder, here);
  return place;
}

static LlvmRef
emit_register (Emitter *e, const TinyInstr *instr)
{
  return emit_place (e, emit_type (e, instr->dtype, instr->lanes), 0);
}

static LlvmRef
emit_local (Emitter *e, const TinyInstr *instr)
{
  const int64_t most_bytes = CPU_LOCAL_BYTES;
  if (instr->arg < 0 || instr->arg > most_bytes / (dtypes[instr->dtype].n_bits / 8))
    return emit_fail (e, instr, "too much local memory");
  LlvmRef element = emit_memory_type (e, instr->dtype, 1);
  return emit_place (e, e->llvm->ArrayType (element, (unsigned) instr->arg), 64);
}

/* The value in the form memory has, and back: they differ for bool only. */
static LlvmRef
to_memory (Emitter *e, unsigned dtype, unsigned lanes, LlvmRef value)
{
  if (dtype != TINY_DTYPE_BOOL)
    return value;
  return e->llvm->BuildCast (e->builder, LLVM_ZEXT, value, emit_memory_type (e, dtype, lanes),
                             "");
}

static LlvmRef
from_memory (Emitter *e, unsigned dtype, unsigned lanes, LlvmRef value)
{
  if (dtype != TINY_DTYPE_BOOL)
    return value;
  LlvmRef zero = e->llvm->ConstNull (emit_memory_type (e, dtype, lanes));
  return e->llvm->BuildICmp (e->builder, LLVM_INT_NE, value, zero, "");
}

const TinyInstr *
emit_split_index (const Emitter *e, const TinyInstr *index, int64_t *out_added)
{
  *out_added = 0;
  if (index->op != TINY_INSTR_ADD || index->dtype != TINY_DTYPE_I64)
    return index;
  const TinyInstr *x = emit_source_instr (e, index, 0), *y = emit_source_instr (e, index, 1);
  const TinyInstr *constant = y->op == TINY_INSTR_CONST ? y : x;
  if (constant->op != TINY_INSTR_CONST)
    return index;
  *out_added = constant->arg;
  return constant == y ? x : y;
}

/* The address of an element. A constant that is added to the index goes last: the accesses of an
 * unrolled loop then share what comes before it and differ in what an instruction can hold, which
 * LLVM would else find out by looking at the bits of every sum. */
LlvmRef
emit_address (Emitter *e, const TinyInstr *buffer, const TinyInstr *index)
{
  const Llvm *llvm = e->llvm;
  LlvmRef i64 = llvm->IntTypeInContext (e->context, 64);
  LlvmRef type = emit_memory_type (e, buffer->dtype, 1);
  LlvmRef address = e->values[buffer - e->linear->instrs];
  int64_t added;
  index = emit_split_index (e, index, &added);
  LlvmRef element = llvm->BuildIntCast2 (e->builder, e->values[index - e->linear->instrs], i64,
                                         dtype_is_signed (index->dtype), "");
  address = llvm->BuildGEP2 (e->builder, type, address, &element, 1, "");
  LlvmRef distance = emit_int (e, 64, added);
  return added == 0 ? address : llvm->BuildGEP2 (e->builder, type, address, &distance, 1, "");
}

/* Without a branch: an access that must not happen goes to the scratch place. */
static void
go_to_scratch (Emitter *e, LlvmRef unless, EmitAccess *access)
{
  access->address = e->llvm->BuildSelect (e->builder, unless, access->address, e->scratch, "");
}

/* One bool: a lane of @gates is on. */
static LlvmRef
any_lane (Emitter *e, LlvmRef gates, unsigned lanes)
{
  LlvmRef bits = e->llvm->IntTypeInContext (e->context, lanes);
  gates = e->llvm->BuildCast (e->builder, LLVM_BITCAST, gates, bits, "");
  return e->llvm->BuildICmp (e->builder, LLVM_INT_NE, gates, e->llvm->ConstNull (bits), "");
}

bool
emit_has_address (Emitter *e, const TinyInstr *instr)
{
  const TinyInstr *buffer = emit_source_instr (e, instr, 0);
  const TinyInstr *index = emit_source_instr (e, instr, 1);
  if (buffer->op != TINY_INSTR_PARAM && buffer->op != TINY_INSTR_LOCAL)
    return emit_fail (e, instr, "source 0 is no memory") != NULL;
  if (index->lanes != 1 || dtype_is_float (index->dtype) || index->dtype == TINY_DTYPE_BOOL)
    return emit_fail (e, instr, "the index is no scalar integer") != NULL;
  return true;
}

static bool
prepare_access (
    Emitter *e, const TinyInstr *instr, unsigned lanes, unsigned gate, EmitAccess *out)
{
  if (!emit_has_address (e, instr))
    return false;
  const TinyInstr *buffer = emit_source_instr (e, instr, 0);
  const TinyInstr *index = emit_source_instr (e, instr, 1);
  *out = (EmitAccess){
    buffer->dtype, lanes, dtypes[buffer->dtype].n_bits / 8, NULL, NULL, NULL
  };
  out->address = emit_address (e, buffer, index);
  if (instr->n_sources <= gate)
    return true;
  const TinyInstr *gate_instr = emit_source_instr (e, instr, gate);
  LlvmRef value = e->values[gate_instr - e->linear->instrs];
  if (gate_instr->dtype != TINY_DTYPE_BOOL
      || (gate_instr->lanes != 1 && gate_instr->lanes != lanes))
    return emit_fail (e, instr, "the gate is no bool of one or as many lanes") != NULL;
  if (gate_instr->lanes > 1) {
    out->lane_gates = value;
    if (emit_may_leave (e, instr, lanes))
      go_to_scratch (e, any_lane (e, value, lanes), out);
    return true;
  }
  out->gate = value;
  go_to_scratch (e, value, out);
  return true;
}

static LlvmRef
emit_load (Emitter *e, const TinyInstr *instr)
{
  unsigned dtype = instr->dtype, lanes = instr->lanes;
  const TinyInstr *buffer = emit_source_instr (e, instr, 0);
  if (buffer->dtype != dtype)
    return emit_fail (e, instr, "another dtype than the memory's");
  if (buffer->op == TINY_INSTR_REGISTER) {
    if (buffer->lanes != lanes)
      return emit_fail (e, instr, "another width than the register's");
    return e->llvm->BuildLoad2 (e->builder, emit_type (e, dtype, lanes),
                                e->values[buffer - e->linear->instrs], "");
  }
  EmitAccess access;
  if (instr->n_sources < 2 || !prepare_access (e, instr, lanes, 2, &access))
    return instr->n_sources < 2 ? emit_fail (e, instr, "no index") : NULL;
  LlvmRef type = emit_memory_type (e, dtype, lanes);
  LlvmRef alternative = instr->n_sources > 3
                            ? to_memory (e, dtype, lanes, emit_source (e, instr, 3))
                            : e->llvm->ConstNull (type);
  if (access.lane_gates != NULL)
    return from_memory (
        e, dtype, lanes,
        emit_masked_load (e, &access, emit_source_instr (e, instr, 2), 0, alternative));
  LlvmRef value = e->llvm->BuildLoad2 (e->builder, type, access.address, "");
  e->llvm->SetAlignment (value, access.n_align);
  if (access.gate == NULL)
    emit_ahead (e, instr, access.address);
  if (access.gate != NULL)
    value = e->llvm->BuildSelect (e->builder, access.gate, value, alternative, "");
  return from_memory (e, dtype, lanes, value);
}

static LlvmRef
emit_store (Emitter *e, const TinyInstr *instr)
{
  const TinyInstr *buffer = emit_source_instr (e, instr, 0);
  bool is_register = buffer->op == TINY_INSTR_REGISTER;
  if (!is_register && instr->n_sources < 3)
    return emit_fail (e, instr, "no value");
  const TinyInstr *source = emit_source_instr (e, instr, is_register ? 1 : 2);
  LlvmRef value = e->values[source - e->linear->instrs];
  if (source->dtype != buffer->dtype)
    return emit_fail (e, instr, "another dtype than the memory's");
  if (is_register) {
    if (source->lanes == 1 && buffer->lanes <= CPU_MAX_LANES)
      value = emit_broadcast (e, value, buffer->lanes);
    else if (source->lanes != buffer->lanes)
      return emit_fail (e, instr, "another width than the register's");
    return e->llvm->BuildStore (e->builder, value, e->values[buffer - e->linear->instrs]);
  }
  /* The width is the instruction's, or the value's where a VOID instruction says 1. */
  unsigned lanes = instr->lanes > source->lanes ? instr->lanes : source->lanes;
  if (source->lanes == 1)
    value = emit_broadcast (e, value, lanes);
  else if (source->lanes != lanes)
    return emit_fail (e, instr, "the value has another width");
  EmitAccess access;
  if (!prepare_access (e, instr, lanes, 3, &access))
    return NULL;
  value = to_memory (e, access.dtype, lanes, value);
  if (access.lane_gates != NULL) {
    LlvmRef arguments[3] = { value, access.address, access.lane_gates };
    return emit_masked (e, "llvm.masked.store", &access, arguments, 3, 1);
  }
  LlvmRef store = e->llvm->BuildStore (e->builder, value, access.address);
  e->llvm->SetAlignment (store, access.n_align);
  return store;
}

/* ---- parameters ---- */

static LlvmRef
emit_param (Emitter *e, const TinyInstr *instr)
{
  if (instr->arg < 0 || instr->arg >= e->linear->n_params)
    return emit_fail (e, instr, "no such parameter");
  return e->llvm->GetParam (e->function, (unsigned) instr->arg);
}

static LlvmRef
emit_variable (Emitter *e, const TinyInstr *instr)
{
  if (instr->arg < 0 || instr->arg >= e->linear->n_variables || dtype_is_float (instr->dtype))
    return emit_fail (e, instr, "no such variable");
  LlvmRef value = e->llvm->GetParam (e->function, e->linear->n_params + (unsigned) instr->arg);
  value = e->llvm->BuildIntCast2 (e->builder, value, emit_type (e, instr->dtype, 1), 1, "");
  return emit_broadcast (e, value, instr->lanes);
}

static LlvmRef
emit_grid (Emitter *e, const TinyInstr *instr)
{
  if (instr->arg < 0 || instr->arg > 2 || dtype_is_float (instr->dtype))
    return emit_fail (e, instr, "no such axis");
  LlvmRef value = e->axes[instr->arg];
  value = e->llvm->BuildIntCast2 (e->builder, value, emit_type (e, instr->dtype, 1), 1, "");
  return emit_broadcast (e, value, instr->lanes);
}

static LlvmRef
emit_group (Emitter *e, const TinyInstr *instr)
{
  return e->llvm->ConstNull (emit_type (e, instr->dtype, instr->lanes));
}

/* ---- control flow ---- */

static EmitBlock *
push_block (Emitter *e, const TinyInstr *instr)
{
  if (e->depth == EMIT_MAX_DEPTH) {
    emit_fail (e, instr, "nested too deep");
    return NULL;
  }
  EmitBlock *block = &e->blocks[e->depth++];
  *block = (EmitBlock){ .instr = (uint32_t) (instr - e->linear->instrs) };
  block->body = e->llvm->AppendBasicBlockInContext (e->context, e->function, "");
  block->exit = e->llvm->AppendBasicBlockInContext (e->context, e->function, "");
  return block;
}

/* A loop that tests at its end, entered only when it runs at least once. */
static LlvmRef
emit_range (Emitter *e, const TinyInstr *instr)
{
  const Llvm *llvm = e->llvm;
  if (instr->lanes != 1 || dtype_is_float (instr->dtype) || instr->dtype == TINY_DTYPE_BOOL)
    return emit_fail (e, instr, "the counter is no scalar integer");
  EmitBlock *block = push_block (e, instr);
  if (block == NULL)
    return NULL;
  const TinyInstr *source = emit_source_instr (e, instr, 0);
  LlvmRef type = emit_type (e, instr->dtype, 1), zero = llvm->ConstNull (type);
  block->bound = llvm->BuildIntCast2 (e->builder, e->values[source - e->linear->instrs], type,
                                      dtype_is_signed (source->dtype), "");
  LlvmRef from = llvm->GetInsertBlock (e->builder);
  LlvmRef is_entered = llvm->BuildICmp (e->builder, LLVM_INT_SGT, block->bound, zero, "");
  llvm->BuildCondBr (e->builder, is_entered, block->body, block->exit);
  llvm->PositionBuilderAtEnd (e->builder, block->body);
  block->counter = llvm->BuildPhi (e->builder, type, "");
  llvm->AddIncoming (block->counter, &zero, &from, 1);
  return block->counter;
}

void
emit_loop_end (Emitter *e, const EmitBlock *block, LlvmRef one)
{
  const Llvm *llvm = e->llvm;
  LlvmRef next = llvm->BuildNUWAdd (e->builder, block->counter, one, "");
  LlvmRef again = llvm->BuildICmp (e->builder, LLVM_INT_SLT, next, block->bound, "");
  LlvmRef from = llvm->GetInsertBlock (e->builder);
  llvm->AddIncoming (block->counter, &next, &from, 1);
  llvm->BuildCondBr (e->builder, again, block->body, block->exit);
  llvm->PositionBuilderAtEnd (e->builder, block->exit);
}

static LlvmRef
emit_end (Emitter *e, const TinyInstr *instr)
{
  const TinyInstr *range = emit_source_instr (e, instr, 0);
  EmitBlock *block = e->depth > 0 ? &e->blocks[e->depth - 1] : NULL;
  if (block == NULL || range->op != TINY_INSTR_RANGE
      || block->instr != (uint32_t) (range - e->linear->instrs))
    return emit_fail (e, instr, "closes another loop than the innermost");
  emit_loop_end (e, block, emit_int (e, dtype_bits (range->dtype), 1));
  e->depth--;
  return block->counter;
}

static LlvmRef
emit_if (Emitter *e, const TinyInstr *instr)
{
  const TinyInstr *condition = emit_source_instr (e, instr, 0);
  if (condition->dtype != TINY_DTYPE_BOOL || condition->lanes != 1)
    return emit_fail (e, instr, "the condition is no scalar bool");
  EmitBlock *block = push_block (e, instr);
  if (block == NULL)
    return NULL;
  LlvmRef value = e->values[condition - e->linear->instrs];
  LlvmRef branch = e->llvm->BuildCondBr (e->builder, value, block->body, block->exit);
  e->llvm->PositionBuilderAtEnd (e->builder, block->body);
  return branch;
}

static LlvmRef
emit_endif (Emitter *e, const TinyInstr *instr)
{
  const TinyInstr *condition = emit_source_instr (e, instr, 0);
  EmitBlock *block = e->depth > 0 ? &e->blocks[e->depth - 1] : NULL;
  if (block == NULL || condition->op != TINY_INSTR_IF
      || block->instr != (uint32_t) (condition - e->linear->instrs))
    return emit_fail (e, instr, "closes another if than the innermost");
  e->depth--;
  LlvmRef branch = e->llvm->BuildBr (e->builder, block->exit);
  e->llvm->PositionBuilderAtEnd (e->builder, block->exit);
  return branch;
}

static LlvmRef
emit_barrier (Emitter *e, const TinyInstr *instr)
{
  return e->scratch; /* a work-group is one thread */
}

const EmitFunc emit_structure[TINY_N_INSTRS] = {
  [TINY_INSTR_LOAD] = emit_load,
  [TINY_INSTR_STORE] = emit_store,
  [TINY_INSTR_CONST] = emit_constant,
  [TINY_INSTR_PARAM] = emit_param,
  [TINY_INSTR_VARIABLE] = emit_variable,
  [TINY_INSTR_GRID] = emit_grid,
  [TINY_INSTR_GROUP] = emit_group,
  [TINY_INSTR_LOCAL] = emit_local,
  [TINY_INSTR_BARRIER] = emit_barrier,
  [TINY_INSTR_REGISTER] = emit_register,
  [TINY_INSTR_RANGE] = emit_range,
  [TINY_INSTR_END] = emit_end,
  [TINY_INSTR_IF] = emit_if,
  [TINY_INSTR_ENDIF] = emit_endif,
};
