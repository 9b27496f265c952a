/* SPDX-License-Identifier: MIT
 *
 * cpu-llvm-ops.c: LLVM code of the instructions that compute.
 *
 * All act on scalars and vectors alike. A bool is an i1; f16 and bf16, which are only stored and
 * cast, are carried as i16. No fast-math flag is ever set, so that the rounding is the program's.
 * What C and LLVM leave undefined is made harmless: a quotient by zero, a shift count beyond the
 * width and a float outside an integer's range give some value, never a trap. */
#include "cpu-llvm.h"

#include <string.h>

static LlvmRef
binop (Emitter *e, int opcode, LlvmRef left, LlvmRef right)
{
  return e->llvm->BuildBinOp (e->builder, opcode, left, right, "");
}

static LlvmRef
select_value (Emitter *e, LlvmRef condition, LlvmRef if_true, LlvmRef if_false)
{
  return e->llvm->BuildSelect (e->builder, condition, if_true, if_false, "");
}

static LlvmRef
cast_to (Emitter *e, int opcode, LlvmRef value, LlvmRef type)
{
  return e->llvm->BuildCast (e->builder, opcode, value, type, "");
}

/* ---- arithmetic ---- */

/* The opcode of an op for floats, integers and bools; 0 where it has none. */
static const struct {
  uint8_t on_float, on_int, on_bool;
} opcodes[TINY_N_INSTRS] = {
  [TINY_INSTR_ADD] = { LLVM_FADD, LLVM_ADD, LLVM_OR },
  [TINY_INSTR_SUB] = { LLVM_FSUB, LLVM_SUB, LLVM_XOR },
  [TINY_INSTR_MUL] = { LLVM_FMUL, LLVM_MUL, LLVM_AND },
  [TINY_INSTR_FDIV] = { LLVM_FDIV, 0, 0 },
  [TINY_INSTR_AND] = { 0, LLVM_AND, LLVM_AND },
  [TINY_INSTR_OR] = { 0, LLVM_OR, LLVM_OR },
  [TINY_INSTR_XOR] = { 0, LLVM_XOR, LLVM_XOR },
};

static int
get_opcode (unsigned op, unsigned dtype)
{
  if (dtype == TINY_DTYPE_BOOL)
    return opcodes[op].on_bool;
  return dtype_is_float (dtype) ? opcodes[op].on_float : opcodes[op].on_int;
}

/* Whether source @n is made of integers that 16 bits with a sign hold. */
static bool
is_short (const Emitter *e, const TinyInstr *instr, unsigned n)
{
  const TinyInstr *cast = emit_source_instr (e, instr, n);
  if (cast->op != TINY_INSTR_CAST || cast->lanes != instr->lanes)
    return false;
  unsigned from = emit_source_instr (e, cast, 0)->dtype;
  return from == TINY_DTYPE_I8 || from == TINY_DTYPE_U8 || from == TINY_DTYPE_I16;
}

/* A product of short integers: 32-bit products are slow, sums of two 16-bit ones are not, and one of
 * the two is 0 here because one factor's upper half is. With a sum after it LLVM makes it one
 * dot-product instruction (VNNI). NULL: there is no such product. */
static LlvmRef
emit_short_product (Emitter *e, const TinyInstr *instr)
{
  const char *name = instr->lanes == 16  ? "llvm.x86.avx512.pmaddw.d.512"
                     : instr->lanes == 8 ? "llvm.x86.avx2.pmadd.wd"
                                         : "llvm.x86.sse2.pmadd.wd";
  unsigned id = e->llvm->LookupIntrinsicID (name, strlen (name));
  if (e->arch->kind != CPU_ARCH_X86_64 || instr->op != TINY_INSTR_MUL
      || dtype_bits (instr->dtype) != 32 || dtype_is_float (instr->dtype) || instr->lanes < 4
      || instr->lanes > 16 || instr->lanes * 32 > cpu_arch_vector_bits (e->arch) || id == 0
      || !is_short (e, instr, 0) || !is_short (e, instr, 1))
    return NULL;
  LlvmRef low = emit_broadcast (e, emit_int (e, 32, 0xffff), instr->lanes);
  LlvmRef factors[2] = { emit_source (e, instr, 0), emit_source (e, instr, 1) };
  factors[1] = binop (e, LLVM_AND, factors[1], low);
  LlvmRef type = emit_type (e, TINY_DTYPE_I16, 2 * instr->lanes);
  for (unsigned i = 0; i < 2; i++)
    factors[i] = cast_to (e, LLVM_BITCAST, factors[i], type);
  LlvmRef function = e->llvm->GetIntrinsicDeclaration (e->module, id, NULL, 0);
  return e->llvm->BuildCall2 (e->builder, e->llvm->GlobalGetValueType (function), function,
                              factors, 2, "");
}

static bool
is_and (const Emitter *e, LlvmRef value)
{
  while (e->llvm->IsAInstruction (value) != NULL
         && e->llvm->GetInstructionOpcode (value) == LLVM_BITCAST)
    value = e->llvm->GetOperand (value, 0);
  return e->llvm->IsAInstruction (value) != NULL
         && e->llvm->GetInstructionOpcode (value) == LLVM_AND;
}

/* @value, of @instr's type, which the code generator cannot see through. The fence is no instruction of
 * the processor and takes floats. */
static LlvmRef
fence_bits (Emitter *e, const TinyInstr *instr, LlvmRef value)
{
  unsigned n_bits = dtype_bits (instr->dtype) * instr->lanes;
  LlvmRef floats = emit_type (e, TINY_DTYPE_F32, n_bits / 32);
  value = cast_to (e, LLVM_BITCAST, value, floats);
  value = emit_intrinsic (e, "llvm.arithmetic.fence", floats, &value, 1);
  return cast_to (e, LLVM_BITCAST, value, emit_type (e, instr->dtype, instr->lanes));
}

/* The bits that a constant mask takes from one operand, joined with the others of another operand, are one
 * AVX-512 instruction. LLVM gives it a wrong truth table where a choice between the result and one of the operands
 * follows (issue 157929, seen in 14 and 15). A fence before the OR or XOR keeps the two apart. */
static bool
joins_masked_bits (const Emitter *e, const TinyInstr *instr, const LlvmRef operands[2])
{
  return (instr->op == TINY_INSTR_OR || instr->op == TINY_INSTR_XOR)
         && e->arch->kind == CPU_ARCH_X86_64 && (e->arch->features & CPU_BIT (AVX512F))
         && instr->lanes > 1 && dtype_bits (instr->dtype) * instr->lanes % 32 == 0
         && instr->dtype != TINY_DTYPE_BOOL && !e->llvm->IsConstant (operands[0])
         && !e->llvm->IsConstant (operands[1]);
}

static LlvmRef
emit_binary (Emitter *e, const TinyInstr *instr)
{
  int opcode = get_opcode (instr->op, instr->dtype);
  if (opcode == 0)
    return emit_fail (e, instr, "not for this dtype");
  LlvmRef product = emit_short_product (e, instr);
  if (product != NULL)
    return product;
  LlvmRef operands[2] = { emit_source (e, instr, 0), emit_source (e, instr, 1) };
  for (unsigned i = 0; i < 2 && joins_masked_bits (e, instr, operands); i++)
    if (is_and (e, operands[i])) {
      operands[i] = fence_bits (e, instr, operands[i]);
      break;
    }
  return binop (e, opcode, operands[0], operands[1]);
}

/* LLVM's code generator (15 and others) takes a lane for 0 where both operands are, a quotient's too:
 * it would drop the choice that keeps an unwanted 0 / 0 out of a result. What lies behind a fence it
 * cannot know; the fence is no instruction of the processor. */
static LlvmRef
emit_float_divide (Emitter *e, const TinyInstr *instr)
{
  LlvmRef quotient = emit_binary (e, instr);
  if (quotient == NULL || instr->lanes == 1)
    return quotient;
  return emit_intrinsic (e, "llvm.arithmetic.fence", emit_type (e, instr->dtype, instr->lanes),
                         &quotient, 1);
}

static LlvmRef
emit_max (Emitter *e, const TinyInstr *instr)
{
  LlvmRef left = emit_source (e, instr, 0), right = emit_source (e, instr, 1);
  if (instr->dtype == TINY_DTYPE_BOOL)
    return binop (e, LLVM_OR, left, right);
  /* The order of the float operands is that of x86's maxps, one instruction. */
  LlvmRef is_more
      = dtype_is_float (instr->dtype)
            ? e->llvm->BuildFCmp (e->builder, LLVM_REAL_OGT, left, right, "")
            : e->llvm->BuildICmp (e->builder,
                                  dtype_is_signed (instr->dtype) ? LLVM_INT_SGT : LLVM_INT_UGT,
                                  left, right, "");
  return select_value (e, is_more, left, right);
}

static LlvmRef
emit_negate (Emitter *e, const TinyInstr *instr)
{
  LlvmRef value = emit_source (e, instr, 0);
  if (dtype_is_float (instr->dtype))
    return e->llvm->BuildFNeg (e->builder, value, "");
  LlvmRef zero = e->llvm->ConstNull (emit_type (e, instr->dtype, instr->lanes));
  return binop (e, LLVM_SUB, zero, value);
}

static LlvmRef
emit_reciprocal (Emitter *e, const TinyInstr *instr)
{
  LlvmRef one = e->llvm->ConstReal (emit_type (e, instr->dtype, 1), 1.0);
  if (!dtype_is_float (instr->dtype))
    return emit_fail (e, instr, "not for this dtype");
  return binop (e, LLVM_FDIV, emit_broadcast (e, one, instr->lanes), emit_source (e, instr, 0));
}

static LlvmRef
emit_float_intrinsic (Emitter *e, const TinyInstr *instr)
{
  LlvmRef value = emit_source (e, instr, 0);
  if (!dtype_is_float (instr->dtype))
    return emit_fail (e, instr, "not for this dtype");
  return emit_intrinsic (e, instr->op == TINY_INSTR_SQRT ? "llvm.sqrt" : "llvm.trunc",
                         emit_type (e, instr->dtype, instr->lanes), &value, 1);
}

static LlvmRef
emit_mulacc (Emitter *e, const TinyInstr *instr)
{
  LlvmRef values[3]
      = { emit_source (e, instr, 0), emit_source (e, instr, 1), emit_source (e, instr, 2) };
  bool is_float = dtype_is_float (instr->dtype);
  if (is_float && (e->arch->kind == CPU_ARCH_AARCH64 || (e->arch->features & CPU_BIT (FMA))))
    return emit_intrinsic (e, "llvm.fma", emit_type (e, instr->dtype, instr->lanes), values, 3);
  LlvmRef product = binop (e, is_float ? LLVM_FMUL : LLVM_MUL, values[0], values[1]);
  return binop (e, is_float ? LLVM_FADD : LLVM_ADD, product, values[2]);
}

/* ---- integer division and shifts ---- */

/* Integers of up to 32 bits divide exactly in double: the quotient of two of them is further from
 * the next integer than half an ulp. Vectors have no integer division, and this one cannot trap. The
 * one quotient that the dtype does not have, its least number's by -1, wraps: a negation does. */
static LlvmRef
divide_by_double (Emitter *e, unsigned dtype, unsigned lanes, LlvmRef left, LlvmRef right)
{
  bool is_signed = dtype_is_signed (dtype);
  LlvmRef real = emit_type (e, TINY_DTYPE_F64, lanes);
  int to_real = is_signed ? LLVM_SITOFP : LLVM_UITOFP;
  LlvmRef quotient = binop (e, LLVM_FDIV, cast_to (e, to_real, left, real),
                            cast_to (e, to_real, right, real));
  LlvmRef whole = cast_to (e, is_signed ? LLVM_FPTOSI : LLVM_FPTOUI, quotient,
                           emit_type (e, dtype, lanes));
  whole = e->llvm->BuildFreeze (e->builder, whole, "");
  if (!is_signed)
    return whole;
  LlvmRef minus_one = emit_broadcast (e, emit_int (e, dtype_bits (dtype), -1), lanes);
  LlvmRef zero = e->llvm->ConstNull (emit_type (e, dtype, lanes));
  LlvmRef negates = e->llvm->BuildICmp (e->builder, LLVM_INT_EQ, right, minus_one, "");
  return select_value (e, negates, binop (e, LLVM_SUB, zero, left), whole);
}

/* @right, but 1 where dividing @left by it would trap. */
static LlvmRef
guard_divisor (Emitter *e, unsigned dtype, unsigned lanes, LlvmRef left, LlvmRef right)
{
  const Llvm *llvm = e->llvm;
  unsigned n_bits = dtype_bits (dtype);
  LlvmRef zero = llvm->ConstNull (emit_type (e, dtype, lanes));
  LlvmRef one = emit_broadcast (e, emit_int (e, n_bits, 1), lanes);
  LlvmRef is_bad = llvm->BuildICmp (e->builder, LLVM_INT_EQ, right, zero, "");
  if (dtype_is_signed (dtype)) {
    LlvmRef minus_one = emit_broadcast (e, emit_int (e, n_bits, -1), lanes);
    int64_t least = (int64_t) (UINT64_MAX << (n_bits - 1));
    LlvmRef lowest = emit_broadcast (e, emit_int (e, n_bits, least), lanes);
    LlvmRef overflows
        = binop (e, LLVM_AND, llvm->BuildICmp (e->builder, LLVM_INT_EQ, right, minus_one, ""),
                 llvm->BuildICmp (e->builder, LLVM_INT_EQ, left, lowest, ""));
    is_bad = binop (e, LLVM_OR, is_bad, overflows);
  }
  return select_value (e, is_bad, one, right);
}

static LlvmRef
emit_divide (Emitter *e, const TinyInstr *instr)
{
  unsigned dtype = instr->dtype, lanes = instr->lanes;
  bool is_mod = instr->op == TINY_INSTR_MOD, is_signed = dtype_is_signed (dtype);
  if (dtype_is_float (dtype) || dtype == TINY_DTYPE_BOOL)
    return emit_fail (e, instr, "not for this dtype");
  LlvmRef left = emit_source (e, instr, 0), right = emit_source (e, instr, 1);
  if (lanes > 1 && dtype_bits (dtype) <= 32 && !e->llvm->IsConstant (right)) {
    LlvmRef quotient = divide_by_double (e, dtype, lanes, left, right);
    if (!is_mod)
      return quotient;
    return binop (e, LLVM_SUB, left, binop (e, LLVM_MUL, quotient, right));
  }
  /* Frozen so that an undefined divisor cannot be zero after the guard saw something else. */
  right = e->llvm->BuildFreeze (e->builder, right, "");
  left = e->llvm->BuildFreeze (e->builder, left, "");
  right = guard_divisor (e, dtype, lanes, left, right);
  int opcode = is_mod ? (is_signed ? LLVM_SREM : LLVM_UREM) : is_signed ? LLVM_SDIV : LLVM_UDIV;
  return binop (e, opcode, left, right);
}

static LlvmRef
emit_shift (Emitter *e, const TinyInstr *instr)
{
  unsigned n_bits = dtype_bits (instr->dtype);
  if (dtype_is_float (instr->dtype) || instr->dtype == TINY_DTYPE_BOOL)
    return emit_fail (e, instr, "not for this dtype");
  LlvmRef count = e->llvm->BuildIntCast2 (e->builder, emit_source (e, instr, 1),
                                          emit_type (e, instr->dtype, instr->lanes), 0, "");
  LlvmRef most = emit_broadcast (e, emit_int (e, n_bits, (int64_t) n_bits - 1), instr->lanes);
  int opcode = instr->op == TINY_INSTR_SHL      ? LLVM_SHL
               : dtype_is_signed (instr->dtype) ? LLVM_ASHR
                                                : LLVM_LSHR;
  return binop (e, opcode, emit_source (e, instr, 0), binop (e, LLVM_AND, count, most));
}

/* ---- comparisons ---- */

static LlvmRef
emit_compare (Emitter *e, const TinyInstr *instr)
{
  unsigned dtype = emit_source_instr (e, instr, 0)->dtype;
  LlvmRef left = emit_source (e, instr, 0), right = emit_source (e, instr, 1);
  if (dtype_is_float (dtype)) {
    int predicate = instr->op == TINY_INSTR_CMPLT   ? LLVM_REAL_OLT
                    : instr->op == TINY_INSTR_CMPNE ? LLVM_REAL_UNE
                                                    : LLVM_REAL_OEQ;
    return e->llvm->BuildFCmp (e->builder, predicate, left, right, "");
  }
  int predicate = instr->op == TINY_INSTR_CMPNE   ? LLVM_INT_NE
                  : instr->op == TINY_INSTR_CMPEQ ? LLVM_INT_EQ
                  : dtype_is_signed (dtype)       ? LLVM_INT_SLT
                                                  : LLVM_INT_ULT;
  return e->llvm->BuildICmp (e->builder, predicate, left, right, "");
}

static LlvmRef
emit_where (Emitter *e, const TinyInstr *instr)
{
  return select_value (e, emit_source (e, instr, 0), emit_source (e, instr, 1),
                       emit_source (e, instr, 2));
}

/* ---- conversions ---- */

/* LLVM compares halves and chooses among them where it finds f32 that were halves. On processors that do neither with
 * vectors of halves it takes one lane after the other, so there a fence, which is no instruction, stands between. */
static LlvmRef
f32_from_f16 (Emitter *e, LlvmRef bits, unsigned lanes)
{
  bool is_fenced = lanes > 1 && e->arch->kind == CPU_ARCH_X86_64
                   && (e->arch->features & CPU_BIT (AVX512FP16)) == 0;
  LlvmRef half = e->llvm->HalfTypeInContext (e->context);
  LlvmRef type = lanes > 1 ? e->llvm->VectorType (half, lanes) : half;
  LlvmRef wide = emit_type (e, TINY_DTYPE_F32, lanes);
  LlvmRef value = cast_to (e, LLVM_FPEXT, cast_to (e, LLVM_BITCAST, bits, type), wide);
  return is_fenced ? emit_intrinsic (e, "llvm.arithmetic.fence", wide, &value, 1) : value;
}

static LlvmRef
f16_from_f32 (Emitter *e, LlvmRef value, unsigned lanes)
{
  LlvmRef half = e->llvm->HalfTypeInContext (e->context);
  LlvmRef type = lanes > 1 ? e->llvm->VectorType (half, lanes) : half;
  return cast_to (e, LLVM_BITCAST, cast_to (e, LLVM_FPTRUNC, value, type),
                  emit_type (e, TINY_DTYPE_F16, lanes));
}

/* To f32 rounding to odd, so that a further rounding to f16 is as if from f64 at once. */
static LlvmRef
f32_from_f64_to_odd (Emitter *e, LlvmRef value, unsigned lanes)
{
  const Llvm *llvm = e->llvm;
  LlvmRef bits_type = emit_type (e, TINY_DTYPE_U32, lanes);
  LlvmRef narrow = cast_to (e, LLVM_FPTRUNC, value, emit_type (e, TINY_DTYPE_F32, lanes));
  LlvmRef wide = cast_to (e, LLVM_FPEXT, narrow, emit_type (e, TINY_DTYPE_F64, lanes));
  LlvmRef absolute[2] = { value, wide };
  for (int i = 0; i < 2; i++)
    absolute[i] = emit_intrinsic (e, "llvm.fabs", emit_type (e, TINY_DTYPE_F64, lanes),
                                  &absolute[i], 1);
  LlvmRef is_inexact = llvm->BuildFCmp (e->builder, LLVM_REAL_UNE, value, wide, "");
  LlvmRef is_up = llvm->BuildFCmp (e->builder, LLVM_REAL_OGT, absolute[1], absolute[0], "");
  LlvmRef bits = cast_to (e, LLVM_BITCAST, narrow, bits_type);
  bits = binop (e, LLVM_SUB, bits, cast_to (e, LLVM_ZEXT, is_up, bits_type));
  bits = binop (e, LLVM_OR, bits, cast_to (e, LLVM_ZEXT, is_inexact, bits_type));
  return cast_to (e, LLVM_BITCAST, bits, emit_type (e, TINY_DTYPE_F32, lanes));
}

static LlvmRef
cast_float_to (Emitter *e, LlvmRef value, unsigned from, unsigned to, unsigned lanes)
{
  LlvmRef type = emit_type (e, to, lanes);
  if (to == TINY_DTYPE_BOOL)
    return e->llvm->BuildFCmp (e->builder, LLVM_REAL_UNE, value,
                               e->llvm->ConstNull (emit_type (e, from, lanes)), "");
  if (dtype_is_float (to))
    return cast_to (e, to == TINY_DTYPE_F64 ? LLVM_FPEXT : LLVM_FPTRUNC, value, type);
  value = cast_to (e, dtype_is_signed (to) ? LLVM_FPTOSI : LLVM_FPTOUI, value, type);
  return e->llvm->BuildFreeze (e->builder, value, "");
}

static LlvmRef
cast_int_to (Emitter *e, LlvmRef value, unsigned from, unsigned to, unsigned lanes)
{
  LlvmRef type = emit_type (e, to, lanes);
  bool is_signed = dtype_is_signed (from); /* false for bool: true is 1 */
  if (to == TINY_DTYPE_BOOL)
    return e->llvm->BuildICmp (e->builder, LLVM_INT_NE, value,
                               e->llvm->ConstNull (emit_type (e, from, lanes)), "");
  if (dtype_is_float (to))
    return cast_to (e, is_signed ? LLVM_SITOFP : LLVM_UITOFP, value, type);
  return e->llvm->BuildIntCast2 (e->builder, value, type, is_signed, "");
}

static bool
is_only_stored (unsigned dtype)
{
  return dtype == TINY_DTYPE_BF16 || dtype == TINY_DTYPE_F8E4M3 || dtype == TINY_DTYPE_F8E5M2;
}

static LlvmRef
emit_cast (Emitter *e, const TinyInstr *instr)
{
  unsigned from = emit_source_instr (e, instr, 0)->dtype, to = instr->dtype;
  unsigned lanes = instr->lanes;
  LlvmRef value = emit_source (e, instr, 0);
  if (from == to)
    return value;
  if (is_only_stored (from) || is_only_stored (to))
    return emit_fail (e, instr, "bf16 and fp8 are only stored");
  bool has_f16 = e->arch->kind == CPU_ARCH_AARCH64 || (e->arch->features & CPU_BIT (F16C)) != 0;
  if ((from == TINY_DTYPE_F16 || to == TINY_DTYPE_F16) && !has_f16)
    return emit_fail (e, instr, "f16 is only stored without f16c");

  /* f16 goes by way of f32. */
  if (from == TINY_DTYPE_F16) {
    value = f32_from_f16 (e, value, lanes);
    from = TINY_DTYPE_F32;
  }
  unsigned between = to == TINY_DTYPE_F16 ? TINY_DTYPE_F32 : to;
  if (from == TINY_DTYPE_F64 && to == TINY_DTYPE_F16)
    value = f32_from_f64_to_odd (e, value, lanes);
  else if (from != between)
    value = dtype_is_float (from) ? cast_float_to (e, value, from, between, lanes)
                                  : cast_int_to (e, value, from, between, lanes);
  return to == TINY_DTYPE_F16 ? f16_from_f32 (e, value, lanes) : value;
}

static LlvmRef
emit_bitcast (Emitter *e, const TinyInstr *instr)
{
  const TinyInstr *source = emit_source_instr (e, instr, 0);
  LlvmRef value = e->values[source - e->linear->instrs];
  unsigned from = source->dtype, to = instr->dtype;
  if (dtype_bits (from) * source->lanes != dtype_bits (to) * instr->lanes)
    return emit_fail (e, instr, "sizes differ");
  if (from == TINY_DTYPE_BOOL && to != TINY_DTYPE_BOOL)
    value = cast_to (e, LLVM_ZEXT, value, emit_type (e, TINY_DTYPE_U8, source->lanes));
  if (to == TINY_DTYPE_BOOL && from != TINY_DTYPE_BOOL)
    return cast_int_to (
        e, cast_to (e, LLVM_BITCAST, value, emit_type (e, TINY_DTYPE_U8, instr->lanes)),
        TINY_DTYPE_U8, to, instr->lanes);
  return cast_to (e, LLVM_BITCAST, value, emit_type (e, to, instr->lanes));
}

/* ---- vectors ---- */

/* @instr as a choice among the lanes of one vector or two of the same type; NULL: it is none. */
static LlvmRef
emit_shuffle (Emitter *e, const TinyInstr *instr)
{
  const TinyInstr *vectors[2] = { NULL, NULL };
  LlvmRef lanes[CPU_MAX_LANES];
  for (unsigned i = 0; i < instr->lanes; i++) {
    const TinyInstr *source = emit_source_instr (e, instr, i);
    const TinyInstr *from
        = source->op == TINY_INSTR_EXTRACT ? emit_source_instr (e, source, 0) : NULL;
    unsigned which = vectors[0] != NULL && vectors[0] != from;
    if (from == NULL || from->lanes == 1 || (vectors[which] != NULL && vectors[which] != from)
        || (which == 1 && from->lanes != vectors[0]->lanes))
      return NULL;
    vectors[which] = from;
    lanes[i] = emit_int (e, 32, source->arg + which * from->lanes);
  }
  LlvmRef value = e->values[vectors[0] - e->linear->instrs];
  LlvmRef other = vectors[1] != NULL ? e->values[vectors[1] - e->linear->instrs]
                                     : e->llvm->GetPoison (e->llvm->TypeOf (value));
  return e->llvm->BuildShuffleVector (e->builder, value, other,
                                      e->llvm->ConstVector (lanes, instr->lanes), "");
}

static LlvmRef
emit_vector (Emitter *e, const TinyInstr *instr)
{
  if (instr->n_sources == 1)
    return emit_source (e, instr, 0);
  if (instr->n_sources != instr->lanes)
    return emit_fail (e, instr, "as many sources as lanes are wanted");
  LlvmRef shuffled = emit_shuffle (e, instr);
  if (shuffled != NULL)
    return shuffled;
  LlvmRef scalars[CPU_MAX_LANES];
  bool is_constant = true;
  for (unsigned i = 0; i < instr->lanes; i++) {
    const TinyInstr *source = emit_source_instr (e, instr, i);
    if (source->lanes != 1)
      return emit_fail (e, instr, "a source is no scalar");
    scalars[i] = e->values[source - e->linear->instrs];
    is_constant = is_constant && e->llvm->IsConstant (scalars[i]);
  }
  if (is_constant)
    return e->llvm->ConstVector (scalars, instr->lanes);
  LlvmRef vector = e->llvm->GetPoison (emit_type (e, instr->dtype, instr->lanes));
  for (unsigned i = 0; i < instr->lanes; i++)
    vector
        = e->llvm->BuildInsertElement (e->builder, vector, scalars[i], emit_int (e, 32, i), "");
  return vector;
}

static LlvmRef
emit_extract (Emitter *e, const TinyInstr *instr)
{
  const TinyInstr *source = emit_source_instr (e, instr, 0);
  LlvmRef vector = e->values[source - e->linear->instrs];
  if (instr->arg < 0 || instr->arg >= source->lanes)
    return emit_fail (e, instr, "no such lane");
  if (source->lanes == 1)
    return vector;
  return e->llvm->BuildExtractElement (e->builder, vector, emit_int (e, 32, instr->arg), "");
}

const EmitFunc emit_ops[TINY_N_INSTRS] = {
  [TINY_INSTR_CAST] = emit_cast,
  [TINY_INSTR_BITCAST] = emit_bitcast,
  [TINY_INSTR_NEG] = emit_negate,
  [TINY_INSTR_RECIP] = emit_reciprocal,
  [TINY_INSTR_SQRT] = emit_float_intrinsic,
  [TINY_INSTR_TRUNC] = emit_float_intrinsic,
  [TINY_INSTR_ADD] = emit_binary,
  [TINY_INSTR_SUB] = emit_binary,
  [TINY_INSTR_MUL] = emit_binary,
  [TINY_INSTR_FDIV] = emit_float_divide,
  [TINY_INSTR_AND] = emit_binary,
  [TINY_INSTR_OR] = emit_binary,
  [TINY_INSTR_XOR] = emit_binary,
  [TINY_INSTR_IDIV] = emit_divide,
  [TINY_INSTR_MOD] = emit_divide,
  [TINY_INSTR_MAX] = emit_max,
  [TINY_INSTR_CMPLT] = emit_compare,
  [TINY_INSTR_CMPNE] = emit_compare,
  [TINY_INSTR_CMPEQ] = emit_compare,
  [TINY_INSTR_SHL] = emit_shift,
  [TINY_INSTR_SHR] = emit_shift,
  [TINY_INSTR_WHERE] = emit_where,
  [TINY_INSTR_MULACC] = emit_mulacc,
  [TINY_INSTR_VECTOR] = emit_vector,
  [TINY_INSTR_EXTRACT] = emit_extract,
};
