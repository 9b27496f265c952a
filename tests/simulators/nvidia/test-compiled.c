/* SPDX-License-Identifier: MIT
 *
 * test-compiled.c: kernels as NVIDIA's compiler makes them compute what the same lines of C compute here.
 *
 * SIMULATED_GPU_NVRTC names the library; without it the tests are skipped. Tolerances are in units of the last place, for
 * functions that the device's library rounds otherwise. */
#include "machine.h"
#include <dlfcn.h>
#include <math.h>
#include <string.h>

enum { N = 256 };

typedef void (*Host) (void *o, const void *a, const void *b, int i);

typedef struct {
  const char *name, *source;
  Host host;
  guint size, n_ulps;
} Kernel;

/* @T of the arrays; the lines set o[i] from a, b and i, for the host and for the device. */
#define ELEMENT(name, T, ...)                                                                  \
  static void host_##name (void *out, const void *left, const void *right, int i)              \
  {                                                                                            \
    T *o = out;                                                                                \
    const T *a = left, *b = right;                                                             \
    (void) b;                                                                                  \
    __VA_ARGS__                                                                                \
  }                                                                                            \
  static const char source_##name[]                                                            \
      = "extern \"C\" __global__ void k (" #T " *o, const " #T " *__restrict__ a, const " #T   \
        " *__restrict__ b) { int i = blockIdx.x * blockDim.x + threadIdx.x; " #__VA_ARGS__     \
        " }";
/* clang-format off */
typedef unsigned char uchar;
typedef signed char schar;
typedef long long wide;
typedef unsigned long long uwide;
ELEMENT (sum, float, o[i] = a[i] + b[i] * 2.0f;)
ELEMENT (fused, float, o[i] = fmaf (a[i], b[i], a[i]);)
ELEMENT (quotient, float, o[i] = a[i] / b[i] + 1.0f / a[i];)
ELEMENT (root, float, o[i] = sqrtf (fabsf (a[i]));)
ELEMENT (sine, float, o[i] = sinf (a[i]);)
ELEMENT (far_sine, float, o[i] = sinf (a[i] * 1e9f);)
ELEMENT (power, float, o[i] = exp2f (a[i]);)
ELEMENT (logarithm, float, o[i] = log2f (fabsf (a[i]));)
ELEMENT (choice, float, o[i] = a[i] < b[i] ? a[i] : a[i] != a[i] ? 3.0f : fmaxf (b[i], 0.5f);)
ELEMENT (loop, float, float s = 0; for (int j = 0; j < i % 37; j++) s += a[j] * b[(i + j) % 256]; o[i] = s;)
ELEMENT (table, float, float t[8]; for (int j = 0; j < 8; j++) t[j] = a[(i + j) % 256] * (float) j;
         o[i] = t[i * 5 % 8] + t[i % 3];)
ELEMENT (real, double, o[i] = sqrt (fabs (a[i])) / b[i] + a[i] * b[i];)
ELEMENT (truncated, double, o[i] = (double) (int) a[i] + (double) (unsigned char) (int) b[i] + trunc (a[i]);)
ELEMENT (words, int, o[i] = a[i] / b[i] + a[i] % b[i] + (a[i] >> (i & 31)) + (int) ((unsigned) b[i] << (i & 7));)
ELEMENT (constant_quotients, int, o[i] = a[i] / 7 + a[i] % 10 + (int) ((unsigned) a[i] / 1000u);)
ELEMENT (collatz, unsigned, unsigned n = 0; for (unsigned x = a[i] % 1000 + 1; x != 1; n++) x = x & 1 ? 3 * x + 1 : x / 2; o[i] = n;)
ELEMENT (branches, int, int x = a[i]; if (x & 1) { if (x & 2) x += 5; else x -= b[i]; } else if (x > 0) { while (x > 10) x /= 2; }
         else x = -1; switch (i % 6) { case 0: x += 1; break; case 1: x *= 3; break; case 2: x ^= 77; break; case 3: x -= 9; break;
         case 4: x = x * x; break; default: x = 0; } o[i] = x;)
ELEMENT (long_long, long long, o[i] = a[i] / b[i] + a[i] % b[i] + (a[i] >> (i & 63)) + a[i] * b[i];)
ELEMENT (bytes, unsigned char, o[i] = (unsigned char) (a[i] * b[i] + (a[i] > b[i] ? 3 : a[i] - b[i]));)
ELEMENT (signed_bytes, signed char, o[i] = (signed char) ((a[i] * b[i] >> 2) + (a[i] < b[i]));)
ELEMENT (halves_of_words, short, o[i] = (short) (a[i] * 3 - (b[i] >> 2) + (a[i] < 0 ? 7 : b[i]));)
/* clang-format on */

#define ROW(name, T, ulps)                                                                     \
  {                                                                                            \
#name, source_##name, host_##name, sizeof(T), ulps                                         \
  }
static const Kernel kernels[] = {
  ROW (sum, float, 0),        ROW (fused, float, 0),        ROW (quotient, float, 0),
  ROW (root, float, 0),       ROW (sine, float, 2),         ROW (far_sine, float, 2),
  ROW (power, float, 2),      ROW (logarithm, float, 1),    ROW (choice, float, 0),
  ROW (loop, float, 0),       ROW (table, float, 0),        ROW (real, double, 0),
  ROW (truncated, double, 0), ROW (words, int, 0),          ROW (constant_quotients, int, 0),
  ROW (collatz, unsigned, 0), ROW (branches, int, 0),       ROW (long_long, wide, 0),
  ROW (bytes, uchar, 0),      ROW (signed_bytes, schar, 0), ROW (halves_of_words, short, 0),
};

/* ---- the compiler ---- */

static struct {
  int (*create) (
      void **, const char *, const char *, int, const char *const *, const char *const *);
  int (*compile) (void *, int, const char *const *);
  int (*size) (void *, size_t *);
  int (*text) (void *, char *);
  int (*log_size) (void *, size_t *);
  int (*log) (void *, char *);
  int (*destroy) (void **);
} nvrtc;

static gboolean
open_compiler (const char *path)
{
  g_autofree char *folder = g_path_get_dirname (path);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  for (const char *name; dir != NULL && (name = g_dir_read_name (dir)) != NULL;)
    if (g_str_has_prefix (name, "libnvrtc-builtins")) {
      g_autofree char *full = g_build_filename (folder, name, NULL);
      dlopen (full, RTLD_NOW | RTLD_GLOBAL);
    }
  void *library = dlopen (path, RTLD_NOW);
  if (library == NULL)
    return FALSE;
  static const char *const names[]
      = { "nvrtcCreateProgram",     "nvrtcCompileProgram", "nvrtcGetPTXSize",    "nvrtcGetPTX",
          "nvrtcGetProgramLogSize", "nvrtcGetProgramLog",  "nvrtcDestroyProgram" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    ((void **) &nvrtc)[i] = dlsym (library, names[i]);
  return TRUE;
}

static char *
compile (const char *source)
{
  static const char *const options[]
      = { "--gpu-architecture=sm_90a", "--minimal", "--fmad=false", "-default-device" };
  void *program;
  size_t n;
  g_assert_cmpint (nvrtc.create (&program, source, "k.cu", 0, NULL, NULL), ==, 0);
  int status = nvrtc.compile (program, G_N_ELEMENTS (options), options);
  g_assert_cmpint (nvrtc.log_size (program, &n), ==, 0);
  g_autofree char *log = g_malloc0 (n + 1);
  nvrtc.log (program, log);
  if (status != 0)
    g_error ("%s", log);
  g_assert_cmpint (nvrtc.size (program, &n), ==, 0);
  char *text = g_malloc0 (n + 1);
  g_assert_cmpint (nvrtc.text (program, text), ==, 0);
  nvrtc.destroy (&program);
  return text;
}

static gboolean
is_skipped (void)
{
  if (nvrtc.create == NULL)
    g_test_skip ("needs NVIDIA's compiler, which ./setup test fetches");
  return nvrtc.create == NULL;
}

/* ---- elements ---- */

static void
draw (const Kernel *kernel, void *array)
{
  gboolean is_double = kernel->host == host_real || kernel->host == host_truncated;
  gboolean is_float
      = !is_double && kernel->size == 4 && g_strstr_len (kernel->source, 60, "float") != NULL;
  for (guint i = 0; i < N; i++) {
    float single = (float) g_test_rand_double_range (-20, 20);
    double real = g_test_rand_double_range (0, 200);
    guint64 bits = (guint64) g_test_rand_int () << 32 | (guint32) g_test_rand_int ();
    /* a quotient by 0, or of the least by -1, is undefined in C */
    bits = (bits & 0x3fffffff7fffffff) | 1;
    memcpy ((guint8 *) array + i * kernel->size,
            is_float    ? (void *) &single
            : is_double ? (void *) &real
                        : (void *) &bits,
            kernel->size);
  }
}

static guint64
distance (const Kernel *kernel, const guint8 *x, const guint8 *y)
{
  guint32 a = 0, b = 0;
  if (memcmp (x, y, kernel->size) == 0)
    return 0;
  memcpy (&a, x, MIN (kernel->size, 4));
  memcpy (&b, y, MIN (kernel->size, 4));
  return kernel->n_ulps == 0 ? G_MAXUINT64 : a > b ? a - b : b - a;
}

static void
test_kernel (gconstpointer data)
{
  const Kernel *kernel = data;
  guint64 a[N], b[N], out[N], wanted[N];
  if (is_skipped ())
    return;
  draw (kernel, a);
  draw (kernel, b);
  g_autofree char *text = compile (kernel->source);
  gsize n_bytes = (gsize) N * kernel->size;
  for (guint64 seed = 0; seed < 2; seed++) {
    PtxFault fault = machine_run (
        &(Machine){ .text = text,
                    .blocks = 2,
                    .threads = N / 2,
                    .seed = seed,
                    .arrays = { { out, n_bytes }, { a, n_bytes }, { b, n_bytes } } });
    g_assert_cmpstr (fault.text, ==, "");
  }
  for (guint i = 0; i < N; i++)
    kernel->host (wanted, a, b, i);
  for (guint i = 0; i < N; i++) {
    guint64 ulps = distance (kernel, (guint8 *) out + i * kernel->size,
                             (guint8 *) wanted + i * kernel->size);
    if (ulps > kernel->n_ulps)
      g_test_message ("element %u", i);
    g_assert_cmpuint (ulps, <=, kernel->n_ulps);
  }
}

/* ---- blocks ---- */

static void
fill (float *array, guint n)
{
  for (guint i = 0; i < n; i++)
    array[i] = (float) g_test_rand_int_range (-8, 9);
}

static const char matmul[]
    = "extern \"C\" __global__ void k (float *c, const float *__restrict__ a, const float "
      "*__restrict__ b)\n"
      "{ __shared__ __align__ (16) float s[16][16], t[16][16]; int x = threadIdx.x % 16, y = "
      "threadIdx.x / 16; float4 sum = {0, 0, 0, 0};\n"
      "  for (int k = 0; k < 64; k += 16) {\n"
      "    for (int i = y; i < 16; i += 4) { s[i][x] = a[(blockIdx.x * 16 + i) * 64 + k + x]; "
      "t[i][x] = b[(k + i) * 16 + x]; }\n"
      "    __syncthreads ();\n"
      "    for (int j = 0; j < 16; j++) { float4 v = *(const float4 *) &t[j][y * 4]; float w = "
      "s[x][j];\n"
      "      sum.x += w * v.x; sum.y += w * v.y; sum.z += w * v.z; sum.w += w * v.w; }\n"
      "    __syncthreads (); }\n"
      "  *(float4 *) &c[(blockIdx.x * 16 + x) * 16 + y * 4] = sum; }\n";

/* (64, 64) @ (64, 16) in blocks of 16 rows, through shared memory and by vectors of four. */
static void
check_matmul (const char *text)
{
  static float a[64 * 64], b[64 * 16], c[64 * 16];
  fill (a, G_N_ELEMENTS (a));
  fill (b, G_N_ELEMENTS (b));
  for (guint64 seed = 0; seed < 8; seed++) {
    PtxFault fault = machine_run (
        &(Machine){ .text = text,
                    .blocks = 4,
                    .threads = 64,
                    .seed = seed,
                    .is_checked = seed & 1,
                    .arrays = { { c, sizeof c }, { a, sizeof a }, { b, sizeof b } } });
    g_assert_cmpstr (fault.text, ==, "");
    for (guint i = 0; i < G_N_ELEMENTS (c); i++) {
      float sum = 0;
      for (guint j = 0; j < 64; j++)
        sum += a[i / 16 * 64 + j] * b[j * 16 + i % 16];
      g_assert_cmpfloat (c[i], ==, sum);
    }
  }
}

static void
test_matmul (void)
{
  if (is_skipped ())
    return;
  g_autofree char *text = compile (matmul);
  check_matmul (text);
}

/* The text that a compiler made once, where there is none. */
static void
test_matmul_kept (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  g_file_get_contents (TEXTS "/matmul.ptx", &text, NULL, &error);
  g_assert_no_error (error);
  check_matmul (text);
}

static const char reduction[]
    = "extern \"C\" __global__ void k (float *o, const float *a)\n"
      "{ extern __shared__ float s[]; int t = threadIdx.x; float v = a[t];\n"
      "  for (int k = 16; k > 0; k >>= 1) v += __shfl_xor_sync (0xffffffffu, v, k);\n"
      "  if (t % 32 == 0) s[t / 32] = v; __syncthreads (); if (t < 32) { v = t < blockDim.x / "
      "32 ? s[t] : 0.0f;\n"
      "  for (int k = 16; k > 0; k >>= 1) v += __shfl_down_sync (0xffffffffu, v, k); if (t == "
      "0) o[0] = v; atomicAdd (&o[1], (float) t); } }\n";

/* By shuffles, dynamic shared memory, and an atomic sum. */
static void
test_reduction (void)
{
  float a[N], o[2] = { 0, 0 }, sum = 0;
  if (is_skipped ())
    return;
  fill (a, N);
  for (guint i = 0; i < N; i++)
    sum += a[i];
  g_autofree char *text = compile (reduction);
  PtxFault fault = machine_run (&(Machine){ .text = text,
                                            .threads = N,
                                            .n_dynamic = N / 32 * 4,
                                            .arrays = { { o, sizeof o }, { a, sizeof a } } });
  g_assert_cmpstr (fault.text, ==, "");
  g_assert_cmpfloat (o[0], ==, sum);
  g_assert_cmpfloat (o[1], ==, 31 * 16);
}

static const char halves[]
    = "extern \"C\" __global__ void k (unsigned short *o, const unsigned short *a, const "
      "unsigned short *b)\n"
      "{ int i = threadIdx.x; float x, y; unsigned short h;\n"
      "  asm (\"{ cvt.f32.f16 %0, %1; }\" : \"=f\" (x) : \"h\" (a[i])); asm (\"{ cvt.f32.f16 "
      "%0, %1; }\" : \"=f\" (y) : \"h\" (b[i]));\n"
      "  float z = x * y; asm (\"{ .reg .b16 t; cvt.rn.f16.f32 t, %1; add.rn.f16 %0, t, %2; "
      "}\" : \"=h\" (h) : \"f\" (z), \"h\" (a[i])); o[i] = h; }\n";

static double
half_value (guint16 bits)
{
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double size = exponent == 0 ? ldexp (mantissa, -24) : ldexp (mantissa + 1024, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

/* A number of 11 bits that is nearest, ties to even; @value is within the normal numbers. */
static double
nearest_half (double value)
{
  double unit = value == 0 ? 1 : ldexp (1, MAX (ilogb (value), -14) - 10);
  return rint (value / unit) * unit;
}

static void
test_halves (void)
{
  guint16 a[N], b[N], o[N];
  if (is_skipped ())
    return;
  for (guint i = 0; i < N; i++) {
    a[i] = g_test_rand_int_range (0x2000, 0x4800) | (i & 1) << 15;
    b[i] = g_test_rand_int_range (0x2000, 0x4800);
  }
  g_autofree char *text = compile (halves);
  PtxFault fault = machine_run (
      &(Machine){ .text = text,
                  .threads = N,
                  .arrays = { { o, sizeof o }, { a, sizeof a }, { b, sizeof b } } });
  g_assert_cmpstr (fault.text, ==, "");
  for (guint i = 0; i < N; i++)
    g_assert_cmpfloat (half_value (o[i]), ==,
                       nearest_half (nearest_half (half_value (a[i]) * half_value (b[i]))
                                     + half_value (a[i])));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  const char *path = g_getenv ("SIMULATED_GPU_NVRTC");
  if (path != NULL)
    open_compiler (path);
  for (guint i = 0; i < G_N_ELEMENTS (kernels); i++) {
    g_autofree char *name = g_strconcat ("/simulators/nvidia/compiled/", kernels[i].name, NULL);
    g_test_add_data_func (name, &kernels[i], test_kernel);
  }
  g_test_add_func ("/simulators/nvidia/compiled/matmul", test_matmul);
  g_test_add_func ("/simulators/nvidia/compiled/matmul-kept", test_matmul_kept);
  g_test_add_func ("/simulators/nvidia/compiled/reduction", test_reduction);
  g_test_add_func ("/simulators/nvidia/compiled/halves-by-ptx", test_halves);
  return g_test_run ();
}
