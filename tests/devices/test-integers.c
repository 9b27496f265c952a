/* SPDX-License-Identifier: MIT
 *
 * test-integers.c: integers of every size, 0, -1 and the extremes among them, by vectors and one by one,
 * come to the same bits on every device that is there. */
#include "../device-there.h"
#include "../unit/case-fails.h"
#include "tiny.h"

#define T(name) tiny_tensor_##name

static TinyTensor *
f_idiv (TinyTensor *x, TinyTensor *y)
{
  return T (floor_divide) (x, y);
}
static TinyTensor *
f_mod (TinyTensor *x, TinyTensor *y)
{
  return T (mod) (x, y);
}
static TinyTensor *
f_wrap (TinyTensor *x, TinyTensor *y)
{
  return T (sub) (T (mul) (x, y), T (neg) (T (add) (x, x)));
}
static TinyTensor *
f_choose (TinyTensor *x, TinyTensor *y)
{
  return T (where) (T (lt) (x, y), T (maximum) (x, y), x);
}
static TinyTensor *
f_bool (TinyTensor *x, TinyTensor *y)
{
  return T (ne) (T (cast) (x, TINY_DTYPE_BOOL), T (lt) (x, y));
}
static TinyTensor *
f_float (TinyTensor *x, TinyTensor *y)
{
  return T (cast) (T (add) (T (cast) (x, TINY_DTYPE_F32), T (cast) (y, TINY_DTYPE_F32)),
                   TINY_DTYPE_F16);
}

static const struct {
  const char *name;
  TinyTensor *(*function) (TinyTensor *, TinyTensor *);
} rows[] = { { "idiv", f_idiv },     { "mod", f_mod },   { "wrap", f_wrap },
             { "choose", f_choose }, { "bool", f_bool }, { "float", f_float } };

/* @bytes: of both operands */
static GBytes *
compute (const char *device, guint row, TinyDType dtype, gint64 n, guint8 bytes[2][512])
{
  g_autoptr (GError) error = NULL;
  gsize n_bytes = (gsize) n * tiny_dtype_get_n_bytes (dtype);
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (T (new_from_data) (device, dtype, &n, 1, bytes[0], n_bytes));
  g_autoptr (TinyTensor) y
      = g_object_ref_sink (T (new_from_data) (device, dtype, &n, 1, bytes[1], n_bytes));
  g_autoptr (TinyTensor) z = g_object_ref_sink (rows[row].function (x, y));
  GBytes *found = T (get_data) (z, &error);
  g_assert_no_error (error);
  return found;
}

static void
test_dtype (const char *device, TinyDType dtype)
{
  guint8 bytes[2][512];
  for (guint i = 0; i < sizeof bytes[0]; i++) {
    guint8 edge[] = { 0, 0xff, i % 8 == 7 ? 0x80 : 0 };
    for (guint k = 0; k < 2; k++)
      bytes[k][i] = i % 64 < 24 ? edge[(i / 8 + k) % 3] : (guint8) g_test_rand_int ();
    bytes[1][i] |= 1; /* what a quotient by 0 is, targets choose */
  }
  for (guint r = 0; r < G_N_ELEMENTS (rows); r++)
    for (gint64 n = 64; n >= 37; n -= 27) {
      g_autoptr (GBytes) expected = compute ("REF", r, dtype, n, bytes);
      g_autoptr (GBytes) found = compute (device, r, dtype, n, bytes);
      if (!g_bytes_equal (found, expected))
        CASE_FAILS ("%s: %s of %" G_GINT64_FORMAT " %s differs", device, rows[r].name, n,
                    tiny_dtype_to_string (dtype));
    }
}

static void
test_device (gconstpointer device)
{
  g_autofree char *reason = device_find_obstacle (device);
  if (reason != NULL) {
    g_test_skip (reason);
    return;
  }
  for (TinyDType dtype = TINY_DTYPE_I8; dtype <= TINY_DTYPE_U64; dtype++)
    test_dtype (device, dtype);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/integers/CPU", "CPU", test_device);
  g_test_add_data_func ("/integers/CL", "CL", test_device);
  g_test_add_data_func ("/integers/WEBGPU", "WEBGPU", test_device);
  return g_test_run ();
}
