/* SPDX-License-Identifier: MIT
 *
 * webgpu-dialect.c: how the core spells a kernel in WGSL.
 *
 * Every buffer is bound for reading and writing, since the parts of one buffer may not be bound for
 * reading here and for writing there. What has constants alone is computed by the shader's
 * compiler, which refuses infinities and NaNs: these come from a function, which is never computed
 * so. Nor is != used: some compilers take it for “less or greater”, which a NaN is not. A
 * product with 0 would be 0 also of an infinity, were the 0 known: it is computed from the grid, which
 * has an extent of 1 along z. From the same come the bits, all 0, by which results of AND are kept apart for adapters that
 * need that. A kernel may be called as a function of the prelude, hence the longer
 * beginning of its function's name. An access behind a gate may be made anyway: WGSL keeps it inside the buffer. */
#include "webgpu.h"

static const char prelude[]
    = "var<private> tiny_none: u32;\n"
      "fn tiny_and_bool (a: bool, b: bool) -> bool { return a & b; }\n"
      "fn tiny_float (bits: u32) -> f32 { return bitcast<f32> (bits); }\n"
      "fn tiny_xor_bool (a: bool, b: bool) -> bool { return a != b; }\n"
      "fn tiny_xor_i32 (a: i32, b: i32) -> i32 { return a ^ b; }\n"
      "fn tiny_xor_u32 (a: u32, b: u32) -> u32 { return a ^ b; }\n";

/* clang-format off */
#define OP(name) [TINY_INSTR_##name]
#define DTYPE(name) [TINY_DTYPE_##name]
const TinyDialect webgpu_dialect = {
  .struct_size = sizeof (TinyDialect),
  .prelude = prelude,
  .types = { DTYPE (VOID) = "void", DTYPE (BOOL) = "bool", DTYPE (I32) = "i32", DTYPE (U32) = "u32",
             DTYPE (F16) = "f16", DTYPE (F32) = "f32" },
  .kernel_open
  = "$params\n"
    "@compute @workgroup_size (tiny_items_x, tiny_items_y, tiny_items_z)\n"
    "fn tiny_kernel_$name (@builtin(workgroup_id) tiny_group: vec3<u32>,\n"
    "    @builtin(num_workgroups) tiny_groups: vec3<u32>,\n"
    "    @builtin(local_invocation_id) tiny_item: vec3<u32>) {\n"
    "  let tiny_point = tiny_point_of (tiny_group.x + tiny_group.y * tiny_groups.x, "
    "tiny_item.x);\n"
    "  tiny_none = tiny_groups.z - 1u;\n"
    "  let tiny_zero = bitcast<f32> (tiny_none);\n"
    "  if (tiny_point >= $0u * $1u * $2u) { return; }\n"
    "  let tiny_grid = vec3<i32> (vec3<u32> (tiny_point % $0u, tiny_point / $0u % $1u, "
    "tiny_point / ($0u * $1u)));\n",
  .kernel_close = "}\n",
  .param_read = "@group(0) @binding($a) var<storage, read_write> $0: array<$T>;",
  .param_write = "@group(0) @binding($a) var<storage, read_write> $0: array<$T>;",
  .param_separator = "\n",
  .variable = "@group(1) @binding($a) var<uniform> $0: i32;",
  .grid = "tiny_grid.$x", .group = "i32 (tiny_item.$x)",
  .local_open = "var $0: array<$T, $a>", .local_shared = "var<workgroup> $0: array<$T, $a>",
  .barrier = "workgroupBarrier ()",
  .constant = "let $0: $t = $1", .mutable_open = "var $0: $t",
  .loop = "for (var $0: $t = 0; $0 < $1; $0++)",
  .choose = "select ($2, $1, $0)", .truth = { "false", "true" },
  .ops = { OP (LOAD) = "$0[$1]", OP (STORE) = "$0[$1] = $2", OP (CAST) = "$t ($0)",
           OP (BITCAST) = "bitcast<$t> ($0)", OP (NEG) = "(-$0)", OP (RECIP) = "(1 / $0)",
           OP (SQRT) = "sqrt ($0)", OP (TRUNC) = "trunc ($0)", OP (ADD) = "($0 + $1)",
           OP (SUB) = "($0 - $1)", OP (MUL) = "($0 * $1)", OP (FDIV) = "($0 / $1)", OP (IDIV) = "($0 / $1)",
           OP (MOD) = "($0 % $1)", OP (MAX) = "max ($0, $1)", OP (CMPLT) = "($0 < $1)",
           OP (CMPNE) = "(!($0 == $1))", OP (CMPEQ) = "($0 == $1)", OP (AND) = "tiny_and_$T ($0, $1)",
           OP (OR) = "($0 | $1)", OP (XOR) = "tiny_xor_$T ($0, $1)", OP (SHL) = "($0 << u32 ($1))",
           OP (SHR) = "($0 >> u32 ($1))", OP (WHERE) = "select ($2, $1, $0)" },
  .inf = "tiny_float (0x7f800000u)", .neg_inf = "tiny_float (0xff800000u)",
  .nan = "tiny_float (0x7fc00000u)", .zero = "tiny_zero",
  .suffix = { DTYPE (F32) = "f", DTYPE (F16) = "h", DTYPE (I32) = "i", DTYPE (U32) = "u" },
};
