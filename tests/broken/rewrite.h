/* SPDX-License-Identifier: MIT
 *
 * rewrite.h: a linear program becomes another one, instruction by instruction.
 *
 * A rule sees each instruction of the program with its sources where they are in the new one. It answers KEEP, DROP,
 * or what stands for the instruction's value from now on, made by the functions below, which append to the new
 * program: what they make lies before whatever uses it, and in the same block. */
#pragma once

#include "tiny-plugin.h"

typedef uint32_t Value; /* an instruction of the new program */
enum { KEEP = UINT32_MAX, DROP = UINT32_MAX - 1 };

typedef struct {
  const TinyLinear *in;
  uint32_t at; /* the instruction of @in that is looked at */
  /* The new program. */
  TinyInstr *instrs;
  uint32_t *sources;
  TinyParam *params;
  uint32_t n_instrs, n_sources, max_instrs, max_sources;
  uint32_t *place; /* of each instruction of @in */
  int has_changed;
} Rewrite;

typedef Value (*RewriteRule) (Rewrite *self, const TinyInstr *instr, const Value *s);

/* @out is valid until rewrite_end(). */
void rewrite_run (Rewrite *self, const TinyLinear *in, RewriteRule rule, TinyLinear *out);
void rewrite_end (Rewrite *self);

/* ---- to look ---- */
const TinyInstr *at (const Rewrite *self, Value value);
/* Whether @instr is @op and what it works on is of one of @dtypes (TINY_DTYPE_BIT). */
int is_of (
    const Rewrite *self, const TinyInstr *instr, const Value *s, unsigned op, uint32_t dtypes);
/* The same, and what it works on was read from memory: it is no index. */
int is_data (
    const Rewrite *self, const TinyInstr *instr, const Value *s, unsigned op, uint32_t dtypes);
/* A STORE to a buffer parameter of such a dtype. */
int is_store (const Rewrite *self, const TinyInstr *instr, const Value *s, uint32_t dtypes);
/* A LOAD or STORE of memory, not of a register. */
int is_access (const Rewrite *self, const TinyInstr *instr, const Value *s);

/* @op of a LOCAL, PARAM or REGISTER. */
int is_of_memory (
    const Rewrite *self, const TinyInstr *instr, const Value *s, unsigned op, unsigned memory);
/* A dtype's size in memory. */
unsigned bytes_of_dtype (unsigned dtype);

#define BIT(dtype) TINY_DTYPE_BIT (TINY_DTYPE_##dtype)
enum {
  SIGNED_INTS
  = 1u << TINY_DTYPE_I8 | 1u << TINY_DTYPE_I16 | 1u << TINY_DTYPE_I32 | 1u << TINY_DTYPE_I64,
  UNSIGNED_INTS
  = 1u << TINY_DTYPE_U8 | 1u << TINY_DTYPE_U16 | 1u << TINY_DTYPE_U32 | 1u << TINY_DTYPE_U64,
  INTS = SIGNED_INTS | UNSIGNED_INTS,
  FLOATS = 1u << TINY_DTYPE_F8E4M3 | 1u << TINY_DTYPE_F8E5M2 | 1u << TINY_DTYPE_F16
           | 1u << TINY_DTYPE_BF16 | 1u << TINY_DTYPE_F32 | 1u << TINY_DTYPE_F64
};

/* ---- to make ---- */
Value emit (Rewrite *self,
            unsigned op,
            unsigned dtype,
            unsigned lanes,
            int64_t arg,
            unsigned n,
            const Value *s);
/* The instruction as it is, with sources @s. */
Value same (Rewrite *self, const TinyInstr *instr, const Value *s);
/* The same with source @i being @value. */
Value with (Rewrite *self, const TinyInstr *instr, const Value *s, unsigned i, Value value);

Value op1 (Rewrite *self, unsigned op, Value a);
Value op2 (Rewrite *self, unsigned op, Value a, Value b);
Value choose (Rewrite *self, Value condition, Value a, Value b);
Value cast (Rewrite *self, unsigned dtype, Value a);
Value bits (Rewrite *self, unsigned dtype, Value a); /* BITCAST */
/* Constants of @like's dtype and lanes; integer() is of integers and bools only. */
Value number (Rewrite *self, Value like, double x);
Value integer (Rewrite *self, Value like, int64_t x);
/* @a between -@most and @most, neither included. */
Value is_within (Rewrite *self, Value a, double most);
Value is_nan (Rewrite *self, Value a);
Value is_zero (Rewrite *self, Value a);
Value is_not (Rewrite *self, Value a);
/* An f32 without the bits of @mask. */
Value without_bits (Rewrite *self, Value a, uint32_t mask);
/* A scalar in all lanes; one lane of a vector. What fits already is itself. */
Value spread (Rewrite *self, Value scalar, unsigned lanes);
Value lane (Rewrite *self, Value vector, unsigned i);
