/* SPDX-License-Identifier: MIT
 *
 * test-control.c: lanes that part and meet again, calls, barriers, what lanes do together, faults, and texts that are wrong. */
#include "machine.h"
#include <string.h>

/* A kernel whose %r0 is the thread's number in the block, %d0 the address of its word of the first array. */
#define KERNEL_OF(more, body)                                                                  \
  MACHINE_HEAD more ".visible .entry k (.param .u64 o, .param .u64 x)\n{\n"                    \
                    ".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %q<5>; .reg .f32 %f<5>;\n"   \
                    "mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; ld.param.u64 %d0, [o]; "   \
                    "add.s64 %d0, %d0, %d1;\n"                                                 \
                    "ld.param.u64 %d2, [x]; add.s64 %d2, %d2, %d1;\n" body "\n}\n"
#define KERNEL(body) KERNEL_OF ("", body)
#define STORE        "st.global.u32 [%d0], %r1; ret;"

enum { N = 128 };
typedef guint32 (*Formula) (guint32 thread);

static PtxFault
run (const char *text, guint32 *out, guint64 seed)
{
  guint32 in[N];
  for (guint i = 0; i < N; i++)
    in[i] = 3 * i + 1;
  memset (out, 0, sizeof in);
  return machine_run (&(Machine){ .text = text,
                                  .threads = N,
                                  .seed = seed,
                                  .max_steps = 200000,
                                  .arrays = { { out, sizeof in }, { in, sizeof in } } });
}

static void
check (const char *text, Formula formula)
{
  guint32 out[N];
  for (guint64 seed = 0; seed < 8; seed++) {
    PtxFault fault = run (text, out, seed);
    g_assert_cmpstr (fault.text, ==, "");
    for (guint i = 0; i < N; i++)
      g_assert_cmpuint (out[i], ==, formula (i));
  }
}

/* ---- lanes that part ---- */

static guint32
n_collatz (guint32 thread)
{
  guint32 n = 0;
  for (guint32 x = thread + 1; x != 1; n++)
    x = x % 2 ? 3 * x + 1 : x / 2;
  return n;
}

static void
test_loops (void)
{
  check (
      KERNEL (
          "add.u32 %r2, %r0, 1; mov.u32 %r1, 0;\n"
          "LOOP: setp.eq.u32 %q0, %r2, 1; @%q0 bra DONE;\n"
          "add.u32 %r1, %r1, 1; and.b32 %r3, %r2, 1; setp.eq.u32 %q1, %r3, 0; @%q1 bra EVEN;\n"
          "mad.lo.u32 %r2, %r2, 3, 1; bra LOOP;\n"
          "EVEN: shr.u32 %r2, %r2, 1; bra LOOP;\nDONE: " STORE),
      n_collatz);
}

static guint32
nested (guint32 i)
{
  return i & 1 ? (i & 2 ? 100 + i : 200 + i) : (i % 3 == 0 ? 7 : i & 4 ? 300 : 400);
}

/* Within branches, with lanes that return and exit on the way. */
static void
test_nested (void)
{
  check (KERNEL ("and.b32 %r2, %r0, 1; setp.ne.u32 %q0, %r2, 0; @%q0 bra ODD;\n"
                 "rem.u32 %r3, %r0, 3; setp.ne.u32 %q1, %r3, 0; @%q1 bra OTHER;\n"
                 "mov.u32 %r1, 7; st.global.u32 [%d0], %r1; ret;\n"
                 "OTHER: and.b32 %r4, %r0, 4; setp.eq.u32 %q2, %r4, 0; mov.u32 %r1, 300; @%q2 "
                 "mov.u32 %r1, 400; bra END;\n"
                 "ODD: and.b32 %r4, %r0, 2; setp.eq.u32 %q2, %r4, 0; @%q2 bra TWO; add.u32 "
                 "%r1, %r0, 100;\n"
                 "st.global.u32 [%d0], %r1; exit;\nTWO: add.u32 %r1, %r0, 200;\nEND: " STORE),
         nested);
}

/* After a branch all lanes are together again: a vote sees each of them. */
static guint32
all_lanes (guint32 i)
{
  return 0xffffffff;
}

static void
test_reconvergence (void)
{
  check (
      KERNEL ("and.b32 %r2, %r0, 3; setp.eq.u32 %q0, %r2, 0; mov.u32 %r3, 0;\n"
              "LOOP: setp.ge.u32 %q1, %r3, %r2; @%q1 bra OUT; add.u32 %r3, %r3, 1; bra LOOP;\n"
              "OUT: vote.sync.ballot.b32 %r1, 1, 0xffffffff;\n" STORE
              /* never true */),
      all_lanes);
}

/* ---- calls, scopes, memory of threads ---- */

static guint32
factorial (guint32 i)
{
  guint32 result = 1;
  for (guint32 n = i % 8; n > 1; n--)
    result *= n;
  return result + 5;
}

static void
test_calls (void)
{
  check (KERNEL_OF (
             ".visible .func (.param .b32 out) fact (.param .b32 n)\n{ .reg .b32 %r<4>; .reg "
             ".pred %q;\n"
             ".local .align 4 .b8 depot[8]; .reg .b64 %a; mov.u64 %a, depot;\n"
             "ld.param.u32 %r0, [n]; st.local.u32 [%a+4], %r0; setp.le.u32 %q, %r0, 1; @%q bra "
             "ONE;\n"
             "sub.u32 %r1, %r0, 1;\n{ .param .b32 p; .param .b32 q; st.param.b32 [p+0], %r1;\n"
             "call.uni (q), fact, (p); ld.param.b32 %r2, [q+0]; }\n"
             "ld.local.u32 %r0, [%a+4]; mul.lo.u32 %r2, %r0, %r2; st.param.b32 [out+0], %r2; "
             "ret;\n"
             "ONE: st.param.b32 [out+0], 1; ret; }\n"
             ".visible .global .align 4 .u32 table[4] = {5, 6, 7, 8};\n",
             "rem.u32 %r2, %r0, 8; { .param .b32 p; .param .b32 q; st.param.b32 [p+0], %r2; "
             "call (q), fact, (p);\n"
             "ld.param.b32 %r1, [q+0]; } mov.u64 %d3, table; ld.global.u32 %r4, [%d3]; add.u32 "
             "%r1, %r1, %r4;\n" STORE),
         factorial);
}

static guint32
shadowed (guint32 i)
{
  return 2 * i + 10 + (i > 3 ? 100 : 0);
}

/* A register of a scope hides one outside of it, and labels are the scope's own. */
static void
test_scopes (void)
{
  check (KERNEL ("mov.u32 %r1, %r0; { .reg .b32 %r1; mov.u32 %r1, 77; }\n{ .reg .b32 t; "
                 "add.u32 t, %r1, 5; add.u32 %r1, t, t; }\n"
                 "{ setp.le.u32 %q0, %r0, 3; @%q0 bra L; add.u32 %r1, %r1, 50; L: }\n"
                 "{ @%q0 bra L; add.u32 %r1, %r1, 50; L: }\n" STORE),
         shadowed);
}

static guint32
reversed_bytes (guint32 i)
{
  return GUINT32_SWAP_LE_BE (3 * i + 1) + 16;
}

/* Local memory by generic and by local addresses, of bytes and of words. */
static void
test_local (void)
{
  check (KERNEL (".local .align 8 .b8 depot[16]; mov.u64 %d3, depot; cvta.local.u64 %d4, %d3; "
                 "ld.global.u32 %r2, [%d2];\n"
                 "st.local.u8 [%d3+3], %r2; shr.u32 %r2, %r2, 8; st.u8 [%d4+2], %r2; shr.u32 "
                 "%r2, %r2, 8; st.local.u8 [%d3+1], %r2;\n"
                 "shr.u32 %r2, %r2, 8; st.u8 [%d4], %r2; ld.u32 %r1, [%d4]; mov.u32 %r3, 16; "
                 "add.u32 %r1, %r1, %r3;\n" STORE),
         reversed_bytes);
}

/* ---- barriers ---- */

#define EXCHANGE(barrier)                                                                      \
  KERNEL_OF (".shared .align 4 .b8 s[512];\n",                                                 \
             "mov.u64 %d3, s; add.s64 %d4, %d3, %d1; ld.global.u32 %r2, [%d2]; st.shared.u32 " \
             "[%d4], %r2;\n" barrier                                                           \
             "sub.u32 %r3, 127, %r0; mul.wide.u32 %d5, %r3, 4; add.s64 %d5, %d3, %d5; "        \
             "ld.shared.u32 %r1, [%d5];\n" STORE)

static guint32
exchanged (guint32 i)
{
  return 3 * (N - 1 - i) + 1;
}

static gboolean
is_exchanged (const char *text, guint64 seed)
{
  guint32 out[N];
  PtxFault fault = run (text, out, seed);
  g_assert_cmpstr (fault.text, ==, "");
  gboolean is_right = TRUE;
  for (guint i = 0; i < N; i++)
    is_right &= out[i] == exchanged (i);
  return is_right;
}

/* Without the barrier some order of warps shows it; with it none does. */
static void
test_missing_barrier (void)
{
  guint n_right = 0;
  check (EXCHANGE ("bar.sync 0;\n"), exchanged);
  check (EXCHANGE ("barrier.sync.aligned 3, 128;\n"), exchanged);
  for (guint64 seed = 0; seed < 20; seed++)
    n_right += is_exchanged (EXCHANGE (""), seed);
  g_assert_cmpuint (n_right, <, 20);
}

static int
race_code (const char *text)
{
  guint32 out[N], in[N] = { 0 };
  return machine_run (&(Machine){ .text = text,
                                  .threads = N,
                                  .is_checked = TRUE,
                                  .arrays = { { out, sizeof out }, { in, sizeof in } } })
      .code;
}

static void
test_races (void)
{
  g_assert_cmpint (race_code (EXCHANGE ("bar.sync 0;\n")), ==, 0);
  g_assert_cmpint (race_code (EXCHANGE ("")), ==, PTX_FAULT_LAUNCH);
}

static guint32
half_odd (guint32 i)
{
  return N / 2 + 1000;
}

static void
test_reduction (void)
{
  check (KERNEL ("and.b32 %r2, %r0, 1; setp.ne.u32 %q0, %r2, 0; bar.red.popc.u32 %r1, 0, %q0;\n"
                 "bar.red.and.pred %q1, 0, %q0; @%q1 add.u32 %r1, %r1, 5000; bar.red.or.pred "
                 "%q2, 0, !%q0; @%q2 add.u32 %r1, %r1, 1000;\n" STORE),
         half_odd);
}

/* ---- lanes together ---- */

static guint32
shuffled (guint32 i)
{
  guint32 lane = i & 31, up = lane >= 3 ? i - 3 : i, down = lane + 5 < 32 ? i + 5 : i,
          fly = i ^ 9, first = i & ~7u;
  return up + 1000 * down + 1000000 * (fly & 127) + (first << 24) + (lane >= 3);
}

static void
test_shuffles (void)
{
  check (KERNEL ("shfl.sync.up.b32 %r2|%q0, %r0, 3, 0, 0xffffffff; shfl.sync.down.b32 %r3, "
                 "%r0, 5, 31, 0xffffffff;\n"
                 "shfl.sync.bfly.b32 %r4, %r0, 9, 31, 0xffffffff; shfl.sync.idx.b32 %r5, %r0, "
                 "0, 0x1807, 0xffffffff;\n"
                 "mad.lo.u32 %r1, %r3, 1000, %r2; mad.lo.u32 %r1, %r4, 1000000, %r1; shl.b32 "
                 "%r5, %r5, 24; add.u32 %r1, %r1, %r5;\n"
                 "selp.u32 %r6, 1, 0, %q0; add.u32 %r1, %r1, %r6;\n" STORE),
         shuffled);
}

static guint32
voted (guint32 i)
{
  return 0x11111111u + (1u << (i & 3)) * 0x11111111u + 28 * 16 + (i & ~31u) * 32;
}

static void
test_votes (void)
{
  check (KERNEL ("and.b32 %r2, %r0, 3; setp.eq.u32 %q0, %r2, 0; vote.sync.ballot.b32 %r1, %q0, "
                 "0xffffffff;\n"
                 "match.any.sync.b32 %r3, %r2, 0xffffffff; add.u32 %r1, %r1, %r3; "
                 "redux.sync.add.u32 %r4, %r0, 0xffffffff;\n"
                 "and.b32 %r5, %r0, 0xffffffe0; mul.lo.u32 %r6, %r5, 0; sub.u32 %r4, %r4, 48; "
                 "add.u32 %r1, %r1, %r4;\n"
                 "vote.sync.all.pred %q1, %q0, 0xffffffff; @%q1 add.u32 %r1, %r1, 9999; "
                 "vote.sync.any.pred %q2, %q0, 0xffffffff;\n"
                 "@!%q2 add.u32 %r1, %r1, 9999;\n" STORE),
         voted);
}

/* All threads of all blocks count in one word, and no count is lost. */
static void
test_atomics (void)
{
  static const char text[]
      = KERNEL ("ld.param.u64 %d3, [o]; atom.global.add.u32 %r1, [%d3], 1; red.global.max.u32 "
                "[%d3+4], %r1;\n"
                "atom.global.cas.b32 %r2, [%d3+8], 0, %r1; red.add.f32 [%d3+12], 0f3F000000;\n"
                "atom.global.inc.u32 %r2, [%d3+16], 9; ret;");
  guint32 out[N] = { 0 }, in[N];
  PtxFault fault
      = machine_run (&(Machine){ .text = text,
                                 .threads = N,
                                 .blocks = 50,
                                 .arrays = { { out, sizeof out }, { in, sizeof in } } });
  float half;
  memcpy (&half, &out[3], sizeof half);
  g_assert_cmpstr (fault.text, ==, "");
  g_assert_cmpuint (out[0], ==, 50 * N);
  g_assert_cmpuint (out[1], ==, 50 * N - 1);
  g_assert_cmpuint (out[2], !=, 0);
  g_assert_cmpfloat (half, ==, 25 * N);
  g_assert_cmpuint (out[4], ==, 50 * N % 10);
}

/* ---- faults ---- */

typedef struct {
  const char *name, *text, *pattern;
  int code;
} Wrong;

static const Wrong faults[] = {
  { "null", KERNEL ("mov.u64 %d3, 0; ld.global.u32 %r1, [%d3];\n" STORE),
    "*line 9*reads 4 bytes at 0x0: no memory is there", 700 },
  { "behind", KERNEL ("ld.param.u64 %d3, [x]; st.global.u32 [%d3+512], %r0;\n" STORE),
    "*thread *: writes 4 bytes*byte 512 of memory of 512 bytes", 700 },
  { "before", KERNEL ("ld.param.u64 %d3, [x]; ld.global.u32 %r1, [%d3+-4];\n" STORE),
    "*no memory is there", 700 },
  { "across", KERNEL ("ld.param.u64 %d3, [x]; ld.global.v2.u32 {%r1, %r2}, [%d3+508];\n" STORE),
    "*not aligned to 8*", 716 },
  { "misaligned", KERNEL ("ld.global.u64 %d3, [%d2];\n" STORE),
    "*thread *: 0x* is not aligned to 8 bytes", 716 },
  { "shared", KERNEL (".shared .b8 s[8]; mov.u64 %d3, s; st.shared.u32 [%d3+8], %r0;\n" STORE),
    "*beyond the block's shared memory", 700 },
  { "shared-null",
    KERNEL (".shared .b8 s[8]; mov.u64 %d3, 0; st.shared.u32 [%d3], %r0;\n" STORE),
    "*beyond the block's shared memory", 700 },
  { "local", KERNEL (".local .b8 s[8]; mov.u64 %d3, s; st.local.u32 [%d3+16], %r0;\n" STORE),
    "*beyond the thread's local memory", 700 },
  { "param", KERNEL ("ld.param.u64 %d3, [o+16];\n" STORE), "*beyond the kernel's parameters*",
    700 },
  { "forever", KERNEL ("LOOP: bra LOOP;\n"),
    "*more than 200000 instructions: does it loop for ever?", 702 },
  { "recursion", KERNEL_OF (".func f () { call f; ret; }\n", "call f;\n" STORE),
    "*more than 32 deep", 719 },
  { "trap", KERNEL ("trap;\n"), "*the kernel ends itself", 715 },
  { "barrier-parted", KERNEL ("setp.lt.u32 %q0, %r0, 5; @%q0 bar.sync 0;\n" STORE),
    "*only lanes 0x0000001f of 0xffffffff*", 719 },
  { "barrier-alone",
    KERNEL ("setp.lt.u32 %q0, %r0, 32; @%q0 bra A; bar.sync 1; ret; A: bar.sync 2;\n" STORE),
    "*barrier 1 waits for ever: 3 warps came, 4 are wanted*", 719 },
  { "shuffle-parted",
    KERNEL (
        "setp.lt.u32 %q0, %r0, 5; @%q0 shfl.sync.idx.b32 %r1, %r0, 0, 31, 0xffffffff;\n" STORE),
    "*lanes 0xffffffe0 of the mask 0xffffffff are elsewhere", 719 },
  { "matrix-parted",
    KERNEL ("setp.lt.u32 %q0, %r0, 5; @%q0 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, "
            "[%r0];\n" STORE),
    "*only lanes 0x0000001f*", 719 },
};

static void
test_fault (gconstpointer data)
{
  const Wrong *wrong = data;
  guint32 out[N];
  PtxFault fault = run (wrong->text, out, 1);
  g_test_message ("%d: %s", fault.code, fault.text);
  g_assert_cmpint (fault.code, ==, wrong->code);
  g_assert_true (g_pattern_match_simple (wrong->pattern, fault.text));
  g_assert_true (g_str_has_prefix (fault.text, "kernel k, line "));
}

/* Registers and shared memory that nobody wrote differ from run to run. */
static void
test_poison (void)
{
  guint32 a[N], b[N];
  static const char text[] = KERNEL_OF (".shared .align 4 .b8 s[512];\n",
                                        "mov.u64 %d3, s; add.s64 %d3, %d3, %d1; ld.shared.u32 "
                                        "%r1, [%d3]; mad.lo.u32 %r1, %r8, 3, %r1;\n" STORE);
  run (text, a, 1);
  run (text, b, 2);
  g_assert_cmpuint (a[0], !=, b[0]);
}

/* Ranges have their bytes and no more, and an address is never one of another range later. */
static void
test_memory (void)
{
  g_autoptr (PtxMemory) memory = ptx_memory_new (1 << 20);
  guint64 a = ptx_memory_take (memory, 1000), b = ptx_memory_take (memory, 1000), start,
          n_bytes;
  g_assert_true (a != 0 && b != 0 && a % 512 == 0 && b >= a + 1000);
  g_assert_nonnull (ptx_memory_at (memory, a + 999, 1));
  g_assert_null (ptx_memory_at (memory, a + 999, 2));
  g_assert_null (ptx_memory_at (memory, a + 999, G_MAXUINT64));
  g_assert_true (ptx_memory_range (memory, b + 5, &start, &n_bytes) && start == b
                 && n_bytes == 1000);
  g_assert_cmpuint (ptx_memory_take (memory, 1 << 20), ==, 0);
  g_assert_false (ptx_memory_give (memory, a + 1));
  g_assert_true (ptx_memory_give (memory, a));
  g_assert_false (ptx_memory_give (memory, a));
  g_autofree char *words = ptx_memory_explain (memory, a + 4);
  g_assert_cmpstr (words, ==, "the memory that was there was freed");
  g_assert_cmpuint (ptx_memory_take (memory, 1000), >, b);
  g_assert_null (ptx_memory_at (memory, a, 4));
  g_assert_cmpuint (ptx_memory_free_bytes (memory), ==, (1 << 20) - 2000);
}

/* ---- texts ---- */

static const Wrong texts[] = {
  { "unknown", KERNEL ("frobnicate.u32 %r1, %r0;\n"),
    "*line 9: the instruction frobnicate.u32 is not known" },
  { "suffix", KERNEL ("add.f16.f32 %r1, %r0;\n"), "*line 9: add has no “.f32” here" },
  { "no-type", KERNEL ("mul.lo %r1, %r0, %r0;\n"), "*line 9: mul lacks a type" },
  { "no-mode", KERNEL ("mul.s32 %r1, %r0, %r0;\n"), "*mul*" },
  { "register", KERNEL ("mov.u32 %r99, 1;\n"), "*line 9: %r99 is not defined" },
  { "label", KERNEL ("bra NOWHERE;\n"), "*line 9: the label NOWHERE is not defined" },
  { "inner-label", KERNEL ("bra IN; { IN: } ret;\n"), "*the label IN is not defined" },
  { "predicate", KERNEL ("setp.eq.u32 %r1, %r0, 1;\n"), "*a predicate is wanted*" },
  { "guard", KERNEL ("@%r1 ret;\n"), "*a predicate is wanted after @" },
  { "to-number", KERNEL ("mov.u32 5, %r1;\n"),
    "*a register is wanted where a result is written" },
  { "operands", KERNEL ("add.u32 %r1, %r0;\n"), "*',' is wanted, “;” is there" },
  { "end", MACHINE_HEAD ".entry k () { ret;", "*'}' is wanted, the text ends" },
  { "twice", MACHINE_HEAD ".entry k () { .reg .b32 a; .reg .b32 a; }", "*a is defined twice" },
  { "function-twice", MACHINE_HEAD ".entry k () { ret; } .entry k () { ret; }",
    "*the function k is defined twice" },
  { "no-body", KERNEL_OF (".func f (.param .b32 a);\n", "{ .param .b32 a; call f, (a); }\n"),
    "*f is called, and has no body" },
  { "signature", KERNEL_OF (".func f (.param .b32 a) { ret; }\n", "call f;\n"),
    "*f takes other parameters than the call has" },
  { "registers", MACHINE_HEAD ".entry k () { .reg .b32 %r<99999999>; }",
    "*at most 65536, 99999999 is there" },
  { "large", MACHINE_HEAD ".shared .b8 s[99999999];", "*s is too large*" },
  { "huge", MACHINE_HEAD ".global .b8 s[268435456][268435456];",
    "*at most 268435456 elements" },
  { "nothing", "hello", "*“hello” is not known outside of functions" },
  { "indirect", KERNEL ("call %d0;\n"), "*calls through %d0, a register, are not known here" },
};

static void
test_text (gconstpointer data)
{
  const Wrong *wrong = data;
  g_autofree char *error = machine_error (wrong->text);
  g_assert_nonnull (error);
  g_test_message ("%s", error);
  g_assert_true (g_pattern_match_simple (wrong->pattern, error));
}

int
main (int argc, char **argv)
{
  static const struct {
    const char *name;
    GTestFunc function;
  } tests[] = {
    { "loops", test_loops },
    { "nested", test_nested },
    { "reconvergence", test_reconvergence },
    { "calls", test_calls },
    { "scopes", test_scopes },
    { "local", test_local },
    { "missing-barrier", test_missing_barrier },
    { "races", test_races },
    { "reduction", test_reduction },
    { "shuffles", test_shuffles },
    { "votes", test_votes },
    { "atomics", test_atomics },
    { "poison", test_poison },
    { "memory", test_memory },
  };
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (tests); i++) {
    g_autofree char *path = g_strconcat ("/simulators/nvidia/control/", tests[i].name, NULL);
    g_test_add_func (path, tests[i].function);
  }
  for (guint i = 0; i < G_N_ELEMENTS (faults); i++) {
    g_autofree char *path = g_strconcat ("/simulators/nvidia/faults/", faults[i].name, NULL);
    g_test_add_data_func (path, &faults[i], test_fault);
  }
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    g_autofree char *path = g_strconcat ("/simulators/nvidia/texts/", texts[i].name, NULL);
    g_test_add_data_func (path, &texts[i], test_text);
  }
  return g_test_run ();
}
