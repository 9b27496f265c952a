/* SPDX-License-Identifier: MIT
 *
 * test-cubin.c: the reader of cubins finds the figures of a kernel that the compiler was made to give it, and takes
 * nothing that is cut off, changed or of another kind; whatever it is given, it reads inside of it. */
#include "nvidia-harness.h"

enum { N_ITEMS = 64, LOCAL_BYTES = 1024, N_CHANGES = 20000 };

static Compiled
make_cubin (const char *arch)
{
  g_autoptr (Program) p = program_new (N_ITEMS);
  const guint f32 = TINY_DTYPE_F32;
  const uint32_t in = program_param (p, f32, TINY_PARAM_READ);
  const uint32_t out = program_param (p, f32, TINY_PARAM_WRITE);
  const uint32_t at = ADD (GROUP, TINY_DTYPE_I32, 1, 0);
  const uint32_t local = ADD (LOCAL, f32, 1, LOCAL_BYTES / 4);
  const uint32_t x = ADD (LOAD, f32, 1, 0, in, at);
  ADD (STORE, TINY_DTYPE_VOID, 1, 0, local, at, x);
  ADD (BARRIER, TINY_DTYPE_VOID, 1, 0);
  const uint32_t last = ADD (CONST, TINY_DTYPE_I32, 1, N_ITEMS - 1);
  const uint32_t from = ADD (SUB, TINY_DTYPE_I32, 1, 0, last, at);
  const uint32_t y = ADD (LOAD, f32, 1, 0, local, from);
  const uint32_t z = ADD (SIN, f32, 1, 0, y);
  ADD (STORE, TINY_DTYPE_VOID, 1, 0, out, at, z);
  g_autofree char *source = program_render (p);
  Compiled made = program_compile (p, arch, source);
  g_assert_cmpint (made.status, ==, TINY_STATUS_OK);
  return made;
}

static TinyStatus
read_cubin (const void *data, uint64_t size, const char *name, NvidiaKernel *out)
{
  return nvidia_cubin_read (data, size, name, out, NULL);
}

static void
test_figures (void)
{
  static const struct {
    const char *arch;
    guint kept; /* of shared memory, by the system */
  } rows[] = { { "sm_80", 0 }, { "sm_90a", 1024 }, { "sm_120", 1024 } };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_auto (Compiled) made = make_cubin (rows[i].arch);
    NvidiaKernel kernel, first;
    g_assert_cmpint (read_cubin (made.data, made.size, "tiny_kernel_k", &kernel), ==,
                     TINY_STATUS_OK);
    g_assert_cmpint (read_cubin (made.data, made.size, NULL, &first), ==, TINY_STATUS_OK);
    g_assert_cmpmem (&kernel, sizeof kernel, &first, sizeof first);
    g_assert_cmpuint (kernel.shared_bytes, ==, LOCAL_BYTES + rows[i].kept);
    g_assert_cmpuint (kernel.argument_bytes, ==, 16);
    g_assert_cmpuint (kernel.n_registers, >=, 8);
    g_assert_cmpuint (kernel.n_registers, <=, 255);
    g_assert_cmpuint (kernel.n_code, >=, 256);
    g_assert_cmpuint (kernel.n_code % 128, ==, 0);
    g_autofree char *text = NULL;
    g_assert_cmpint (nvidia_describe (&test_host, made.data, made.size, &text, NULL), ==,
                     TINY_STATUS_OK);
    g_assert_nonnull (strstr (text, "16 bytes of arguments"));
    guint n_lines = 0;
    for (const char *at = text; (at = strchr (at, '\n')) != NULL; at++)
      n_lines++;
    g_assert_cmpuint (n_lines, ==, 1 + kernel.n_code / 16);
  }
}

static void
test_another (void)
{
  g_auto (Compiled) made = make_cubin ("sm_80");
  NvidiaKernel kernel;
  TinyPluginError error = { .struct_size = sizeof error };
  g_assert_cmpint (
      nvidia_cubin_read (made.data, made.size, "tiny_kernel_other", &kernel, &error), ==,
      TINY_STATUS_CORRUPT);
  g_assert_nonnull (strstr (error.text, "tiny_kernel_other: a cubin with this kernel"));
  g_assert_cmpint (read_cubin ("", 0, NULL, &kernel), ==, TINY_STATUS_CORRUPT);
  g_autofree char *self = NULL;
  gsize size;
  g_assert_true (g_file_get_contents ("/proc/self/exe", &self, &size, NULL));
  g_assert_cmpint (read_cubin (self, size, NULL, &kernel), ==, TINY_STATUS_CORRUPT);
}

/* Each length that is less is refused; a copy of just that length is read, so that a sanitizer sees a byte too far. */
static void
test_cut (void)
{
  g_auto (Compiled) made = make_cubin ("sm_90a");
  NvidiaKernel kernel;
  for (uint64_t size = 0; size < made.size; size++) {
    g_autofree guint8 *cut = g_memdup2 (made.data, size);
    g_assert_cmpint (read_cubin (cut, size, "tiny_kernel_k", &kernel), ==, TINY_STATUS_CORRUPT);
  }
}

/* Changed bytes and words, of which many are offsets, sizes and counts: refused, or read to an end. */
static void
test_changed (void)
{
  static const guint32 words[] = { 0, 1, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff };
  g_auto (Compiled) made = make_cubin ("sm_90a");
  guint n_refused = 0;
  for (guint i = 0; i < N_CHANGES; i++) {
    g_autofree guint8 *changed = g_memdup2 (made.data, made.size);
    const guint n = (guint) g_test_rand_int_range (1, 4);
    for (guint k = 0; k < n; k++) {
      const gsize at = (gsize) g_test_rand_int_range (0, (gint32) made.size - 8);
      const guint32 word = words[(guint) g_test_rand_int_range (0, G_N_ELEMENTS (words))];
      if (g_test_rand_bit ())
        memcpy (changed + at, &word, sizeof word);
      else
        changed[at] = (guint8) g_test_rand_int ();
    }
    NvidiaKernel kernel;
    n_refused += read_cubin (changed, made.size, "tiny_kernel_k", &kernel) != TINY_STATUS_OK;
  }
  g_assert_cmpuint (n_refused, >, 0);
}

int
main (int argc, char **argv)
{
  if (!nvrtc_is_there ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/nvidia/cubin/figures", test_figures);
  g_test_add_func ("/nvidia/cubin/another", test_another);
  g_test_add_func ("/nvidia/cubin/cut", test_cut);
  g_test_add_func ("/nvidia/cubin/changed", test_changed);
  return g_test_run ();
}
