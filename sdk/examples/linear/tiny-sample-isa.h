/* SPDX-License-Identifier: MIT
 *
 * tiny-sample-isa.h: the instruction set: what sample-compile.c writes and the silicon executes.
 *
 * A core runs one work-group: lane l of every register belongs to item l, and all lanes are in step, so that
 * a barrier is nothing to do. An instruction acts on the lanes of the mask. An IF narrows the mask, a loop
 * does so until it is empty; PUSH and POP keep and restore it. All numbers have 32 bits, a bool is 0 or 1. */
#pragma once

#include <stdint.h>

enum {
  SAMPLE_LANES = 16,
  SAMPLE_REGISTERS = 64,     /* register 0 is always 1 */
  SAMPLE_STASH_SLOTS = 4032, /* more of them in memory, reached by FETCH and STASH only */
  SAMPLE_LOCAL_WORDS = 4096,
  SAMPLE_BUFFERS = 16,
  SAMPLE_DEPTH = 32 /* of PUSHes without a POP */
};

/* clang-format off */
/* d is written; a, b and c are registers that are read; p and n are numbers. */
typedef enum {
  SAMPLE_END,
  SAMPLE_CONST, SAMPLE_GRID, SAMPLE_GROUP, SAMPLE_VARIABLE, /* d n */
  SAMPLE_FETCH, SAMPLE_STASH,            /* d n; a n */
  SAMPLE_LOAD, SAMPLE_LOAD_LOCAL,        /* d; a: index, b: gate, c: else, p: buffer, or first word */
  SAMPLE_STORE, SAMPLE_STORE_LOCAL,      /* a: index, b: value, c: gate, p: likewise */
  SAMPLE_PUSH, SAMPLE_POP,
  SAMPLE_MASK, SAMPLE_JUMP,              /* a n: to instruction n where no lane is left; n */
  SAMPLE_INC, SAMPLE_MOVE, SAMPLE_CAST,  /* d a; d a; d a, p: the type it becomes */
  SAMPLE_NEG, SAMPLE_RECIP, SAMPLE_SQRT, SAMPLE_TRUNC,      /* d a */
  SAMPLE_ADD, SAMPLE_SUB, SAMPLE_MUL, SAMPLE_DIV, SAMPLE_MOD, SAMPLE_MAX, /* d a b */
  SAMPLE_LESS, SAMPLE_DIFFERS, SAMPLE_EQUALS,
  SAMPLE_AND, SAMPLE_OR, SAMPLE_XOR, SAMPLE_SHL, SAMPLE_SHR,
  SAMPLE_SELECT, SAMPLE_MULACC           /* d a b c */
} SampleOp;
/* clang-format on */

typedef enum { SAMPLE_I32, SAMPLE_U32, SAMPLE_F32, SAMPLE_BOOL } SampleType;

typedef struct {
  uint8_t op, type; /* type: of what is read */
  uint8_t d, a;
  union {
    struct {
      uint8_t b, c;
      uint16_t p;
    };
    uint32_t n;
  };
} SampleInstr;
