/* SPDX-License-Identifier: MIT
 *
 * values.h: one element of any dtype, and what C calls them. */
#pragma once

#include <stdint.h>

#include "tiny-plugin.h"

typedef union {
  uint8_t b;
  int8_t i8;
  uint8_t u8;
  int16_t i16;
  uint16_t u16;
  int32_t i32;
  uint32_t u32;
  int64_t i64;
  uint64_t u64;
  float f32;
  double f64;
} Value;

/* clang-format off */
#define INT_TYPES(X)                                                                           \
  X (I8, i8, int8_t) X (I16, i16, int16_t) X (I32, i32, int32_t) X (I64, i64, int64_t)         \
  X (U8, u8, uint8_t) X (U16, u16, uint16_t) X (U32, u32, uint32_t) X (U64, u64, uint64_t)
/* clang-format on */
#define FLOAT_TYPES(X) X (F32, f32, float) X (F64, f64, double)

static inline unsigned
size_of (unsigned dtype)
{
  static const unsigned sizes[TINY_N_DTYPES]
      = { 0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 1, 1, 2, 2, 4, 8, 0 };
  return sizes[dtype];
}
