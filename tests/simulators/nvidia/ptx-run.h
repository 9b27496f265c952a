/* SPDX-License-Identifier: MIT
 *
 * ptx-run.h: a function for each way that an instruction is run: ptx_run_NAME (), once for each NAME in ptx-ops.def. */
#pragma once

#include "ptx-program.h"

/* clang-format off */
#define PTX_RUNS(R) \
  R (branch) R (call) R (return) R (exit) R (trap) R (nothing) \
  R (add) R (sub) R (mul) R (mad) R (div) R (rem) R (abs) R (neg) R (min) R (max) R (sad) R (dp4a) \
  R (and) R (or) R (xor) R (not) R (cnot) R (lop3) R (shl) R (shr) R (shf_l) R (shf_r) R (bfe) R (bfi) R (bfind) R (brev) \
  R (clz) R (popc) R (prmt) R (setp) R (set) R (selp) R (slct) R (mov) \
  R (fadd) R (fsub) R (fmul) R (fma) R (fdiv) R (fmin) R (fmax) R (fabs) R (fneg) R (rcp) R (sqrt) R (rsqrt) R (ex2) R (lg2) \
  R (sin) R (cos) R (tanh) R (copysign) R (testp) R (fsetp) R (fset) \
  R (cvt) R (cvta) R (isspacep) R (ld) R (st) R (atom) R (red) R (cp_async) R (commit_group) R (wait_group) R (wait_all) \
  R (bar_sync) R (bar_arrive) R (bar_red) R (shfl) R (vote) R (ballot) R (match_any) R (match_all) R (redux) R (activemask) \
  R (elect) R (mma) R (ldmatrix) R (stmatrix)
/* clang-format on */
#define PTX_RUN_DECLARE(name) void ptx_run_##name (PtxWarp *warp, const PtxInstr *instr);
PTX_RUNS (PTX_RUN_DECLARE)
