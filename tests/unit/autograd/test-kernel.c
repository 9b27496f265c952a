/* SPDX-License-Identifier: MIT
 *
 * test-kernel.c: kernels in IR text: alone, among other operations, recorded, batched and with a
 * gradient; that they reach no memory but their own; and what is said of wrong ones. */
#include "../case-fails.h"
#include "autograd/tiny-custom.h"
#include "autograd/tiny-gradient.h"
#include "autograd/tiny-transforms.h"
#include "function-cases.h"
#include "nn/tiny-jit.h"
#include "tensor/tiny-tensor-kernel.h"
#include "tensor/tiny-tensor-operations.h"

#define T(name) tiny_tensor_##name

/* x + 1, of 2 rows of 3. */
static const char add_one[]
    = "%y = param.f32{slot=0, shape=[2, 3]}\n"
      "%x = param.f32{slot=1, shape=[6]}\n"
      "%i = range.index{number=0, kind=loop}(6)\n"
      "sink{name=\"add_one\"}(store(%y, %i, add.f32(load.f32(%x, %i), 1.0)))\n";

/* The sum of each row of x times w, and the largest of it. */
static const char rows[]
    = "%sum = param.f32{slot=0, shape=[2]}\n"
      "%most = param.f32{slot=1, shape=[2]}\n"
      "%x = param.f32{slot=2, shape=[2, 3]}\n"
      "%w = param.f32{slot=3, shape=[3]}\n"
      "%i = range.index{number=0, kind=loop}(2)\n"
      "%j = range.index{number=1, kind=reduce}(3)\n"
      "%v = mul.f32(load.f32(%x, add.index(mul.index(%i, 3), %j)), load.f32(%w, %j))\n"
      "sink{name=\"rows\"}(store(%sum, %i, reduce.f32{op=add}(%v, %j)),\n"
      "  store(%most, %i, reduce.f32{op=max}(%v, %j)))\n";

static TinyTensor *
count (double first, const gint64 *shape, guint n)
{
  gint64 size = 1;
  for (guint i = 0; i < n; i++)
    size *= shape[i];
  return g_object_ref_sink (
      T (reshape) (T (arange) (TINY_DTYPE_F32, first, first + (double) size, 1), shape, n));
}
#define COUNT(first, ...)                                                                      \
  count (first, (gint64[]){ __VA_ARGS__ }, G_N_ELEMENTS (((gint64[]){ __VA_ARGS__ })))

static void
check_values (TinyTensor *tensor, guint n, const float *expected)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) owned = g_object_ref_sink (tensor);
  g_autoptr (GBytes) data = T (get_data) (owned, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (g_bytes_get_size (data), ==, n * sizeof (float));
  const float *found = g_bytes_get_data (data, NULL);
  for (guint i = 0; i < n; i++)
    g_assert_cmpfloat (found[i], ==, expected[i]);
}
#define CHECK(tensor, ...)                                                                     \
  check_values (tensor, G_N_ELEMENTS (((float[]){ __VA_ARGS__ })), (float[]){ __VA_ARGS__ })

static TinyTensor *
only (GPtrArray *list)
{
  g_assert_cmpuint (list->len, ==, 1);
  g_assert_no_error (T (get_error) (list->pdata[0]));
  TinyTensor *tensor = g_object_ref (list->pdata[0]);
  g_ptr_array_unref (list);
  return tensor;
}

static TinyTensor *
plus_one (TinyTensor *x)
{
  return only (tiny_custom_kernel (add_one, &x, 1));
}

static void
test_alone (void)
{
  g_autoptr (TinyTensor) x = COUNT (0, 2, 3);
  g_autoptr (TinyTensor) y = plus_one (x);
  guint rank;
  const gint64 *shape = T (get_shape) (y, &rank);
  g_assert_cmpuint (rank, ==, 2);
  g_assert_cmpint (shape[0], ==, 2);
  CHECK (y, 1, 2, 3, 4, 5, 6);
}

/* Inputs that are computed first, views and numbers; results that are used; one that is not. */
static void
test_among_others (void)
{
  g_autoptr (TinyTensor) x = COUNT (0, 3, 2);
  g_autoptr (TinyTensor) turned = g_object_ref_sink (T (permute) (x, (gint[]){ 1, 0 }, 2));
  g_autoptr (TinyTensor) y = plus_one (turned);
  CHECK (T (mul) (y, y), 1, 9, 25, 4, 16, 36);
  g_autoptr (TinyTensor) squares = g_object_ref_sink (T (square) (x));
  g_autoptr (TinyTensor) twice = plus_one (squares);
  g_autoptr (TinyTensor) again = plus_one (twice);
  CHECK (T (add) (again, turned), 2, 5, 10, 12, 21, 32);
  TinyTensor *inputs[] = { turned, COUNT (1, 3) };
  g_autoptr (GPtrArray) found = tiny_custom_kernel (rows, inputs, 2);
  g_assert_cmpuint (found->len, ==, 2);
  CHECK (T (add) (found->pdata[0], found->pdata[1]), 16 + 12, 22 + 15);
  g_autoptr (TinyTensor) ones
      = g_object_ref_sink (T (ones) (TINY_DTYPE_F32, (gint64[]){ 3 }, 1));
  TinyTensor *others[] = { turned, ones };
  g_autoptr (GPtrArray) most = tiny_custom_kernel (rows, others, 2);
  CHECK (most->pdata[1], 4, 5);
  g_object_unref (inputs[1]);
}

/* The same tensor as two inputs; and a result that becomes the input. */
static void
test_same_memory (void)
{
  static const char product[]
      = "%y = param.f32{slot=0, shape=[3]}\n"
        "%a = param.f32{slot=1, shape=[3]}\n"
        "%b = param.f32{slot=2, shape=[3]}\n"
        "%i = range.index{number=0, kind=loop}(3)\n"
        "%back = sub.index(2, %i)\n"
        "sink(store(%y, %i, mul.f32(load.f32(%a, %i), load.f32(%b, %back))))\n";
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = COUNT (1, 3);
  g_assert_true (T (realize) (x, &error));
  TinyTensor *both[] = { x, x };
  TinyTensor *y = only (tiny_custom_kernel (product, both, 2));
  g_assert_true (T (assign) (x, y, &error));
  g_assert_no_error (error);
  g_object_unref (y); /* nobody wants it but x */
  CHECK (x, 3, 4, 3);
}

/* An address outside of the memory reads 0, and nothing is stored there. */
static void
test_outside (void)
{
  static const char shifted[]
      = "%y = param.f32{slot=0, shape=[4]}\n"
        "%x = param.f32{slot=1, shape=[4]}\n"
        "%at = param.i32{slot=2, shape=[6]}\n"
        "%i = range.index{number=0, kind=loop}(6)\n"
        "%v = load.f32(%x, cast.index(load.i32(%at, %i)))\n"
        "sink(store(%y, %i, add.f32(%v, load.f32(%x, sub.index(%i, 2)))))\n";
  static const gint32 positions[] = { -1, 3, G_MAXINT32, 1, G_MININT32, 0 };
  TinyTensor *inputs[]
      = { COUNT (1, 4),
          g_object_ref_sink (tiny_tensor_new_from_data (NULL, TINY_DTYPE_I32, (gint64[]){ 6 },
                                                        1, positions, sizeof positions)) };
  g_autoptr (TinyTensor) y = only (tiny_custom_kernel (shifted, inputs, 2));
  CHECK (y, 0, 4, 1, 4);
  g_object_unref (inputs[0]);
  g_object_unref (inputs[1]);
}

/* ---- whatever an address is ---- */
#define LOADS(input, index)                                                                    \
  "%y = param.f32{slot=0, shape=[4]}\n" input "%z = param.f32{slot=2, shape=[16]}\n"           \
  "%r = range.index{number=0, kind=loop}(4)\n"                                                 \
  "%i = add.index(" index ", %r)\n"                                                            \
  "sink(store(%y, %r, load.f32(%z, %i)))\n"
#define STORES(input, index)                                                                   \
  "%y = param.f32{slot=0, shape=[16]}\n" input "%z = param.f32{slot=2, shape=[16]}\n"          \
  "%r = range.index{number=0, kind=loop}(3)\n"                                                 \
  "%i = add.index(" index ", %r)\n"                                                            \
  "sink(store(%y, %i, load.f32(%z, 0)))\n"
#define I64   "%x = param.i64{slot=1, shape=[2]}\n"
#define U64   "%x = param.u64{slot=1, shape=[2]}\n"
#define F32   "%x = param.f32{slot=1, shape=[2]}\n"
#define EMPTY "%e = range.index{number=1, kind=reduce}(0)\n"
#define READ  "cast.index(load.i64(%x, 0))"
#define ODD   "floormod.index(" READ ", 2)"
#define AGAIN "cast.index(load.i64(%x, 1))"
#define ABOVE "max.index(" READ ", 0)"

/* Indices that wrap, to what would be an element of the buffer or not, and what is there of them. */
static const struct {
  const char *text;
  TinyDType dtype;
  gint64 number;  /* both of them */
  double real;    /* where they are floats */
  float expected; /* all elements; 7: what is loaded or stored */
} wraps[] = {
  { STORES (I64, "mul.index(" ABOVE ", 2)"), TINY_DTYPE_I64, (gint64) 1 << 62, 0, 0 },
  { STORES (I64, "mul.index(" ABOVE ", 2)"), TINY_DTYPE_I64, ((gint64) 1 << 62) + 5, 0, 0 },
  { STORES (I64, "add.index(" ABOVE ", 1099511627776)"), TINY_DTYPE_I64,
    G_MAXINT64 - ((gint64) 1 << 40) + 1, 0, 0 },
  { STORES (I64, "shl.index(" ABOVE ", 3)"), TINY_DTYPE_I64, ((gint64) 1 << 60) + 1, 0, 0 },
  { LOADS (I64, "mul.index(" ABOVE ", 2)"), TINY_DTYPE_I64, (gint64) 1 << 62, 0, 0 },
  { LOADS (I64, "mul.index(" ABOVE ", 2)"), TINY_DTYPE_I64, ((gint64) 1 << 62) + 6, 0, 0 },
  { LOADS (I64, "mul.index(" ABOVE ", 8)"), TINY_DTYPE_I64, (gint64) 1 << 60, 0, 0 },
  { LOADS (I64, "add.index(" ABOVE ", 1099511627776)"), TINY_DTYPE_I64,
    G_MAXINT64 - ((gint64) 1 << 40) + 1, 0, 0 },
  { LOADS (I64, "add.index(" ABOVE ", max.index(" AGAIN ", 0))"), TINY_DTYPE_I64,
    G_MAXINT64 - 1, 0, 0 },
  { LOADS (I64, "shl.index(" ABOVE ", 3)"), TINY_DTYPE_I64, ((gint64) 5 << 58) + 4, 0, 0 },
  { LOADS (I64, "max.index(" READ ", neg.index(" READ "))"), TINY_DTYPE_I64, G_MININT64, 0, 0 },
  /* 2^63 negated is itself, and 0 is more: the first elements. */
  { LOADS (I64, "max.index(neg.index(" READ "), 0)"), TINY_DTYPE_I64, G_MININT64, 0, 7 },
  { LOADS (U64, "cast.index(load.u64(%x, 0))"), TINY_DTYPE_U64, -((gint64) 1 << 20), 0, 0 },
  { LOADS (U64, "max.index(cast.index(load.u64(%x, 0)), 16)"), TINY_DTYPE_U64,
    G_MININT64 + ((gint64) 1 << 40), 0, 0 },
  { LOADS (F32, "cast.index(load.f32(%x, 0))"), TINY_DTYPE_F32, 0, -1e12, 0 },
  { LOADS (F32, "mul.index(cast.index(max.f32(load.f32(%x, 0), 0.0)), 4)"), TINY_DTYPE_F32, 0,
    4e18, 0 },
  /* The largest of nothing is the least number. */
  { STORES (I64 EMPTY, "add.index(" ODD ", cast.index(reduce.i32{op=max}(3, %e)))"),
    TINY_DTYPE_I64, 0, 0, 0 },
  { LOADS (I64 EMPTY, "add.index(" ODD ", reduce.index{op=max}(1, %e))"), TINY_DTYPE_I64, 0, 0,
    0 },
  { LOADS (I64, "mul.index(floormod.index(" READ ", 2), 2)"), TINY_DTYPE_I64, 1 - G_MAXINT64, 0,
    7 },
};

static TinyTensor *
new_repeated (TinyDType dtype, gconstpointer value, gsize size, guint n)
{
  g_autofree guint8 *data = g_malloc (size * n);
  for (guint i = 0; i < n; i++)
    memcpy (data + size * i, value, size);
  return g_object_ref_sink (
      T (new_from_data) (NULL, dtype, (gint64[]){ n }, 1, data, size * n));
}

static void
test_wraps (void)
{
  const float seven = 7;
  g_autoptr (TinyTensor) z = new_repeated (TINY_DTYPE_F32, &seven, sizeof seven, 16);
  for (guint i = 0; i < G_N_ELEMENTS (wraps); i++) {
    g_autoptr (GError) error = NULL;
    const float real = (float) wraps[i].real;
    const gboolean is_float = wraps[i].dtype == TINY_DTYPE_F32;
    gconstpointer value = is_float ? (gconstpointer) &real : &wraps[i].number;
    g_autoptr (TinyTensor) x
        = new_repeated (wraps[i].dtype, value, is_float ? sizeof real : sizeof (gint64), 2);
    TinyTensor *inputs[] = { x, z };
    g_autoptr (TinyTensor) y = only (tiny_custom_kernel (wraps[i].text, inputs, 2));
    g_autoptr (GBytes) data = T (get_data) (y, &error);
    if (data == NULL) {
      CASE_FAILS ("text %u: %s", i, error->message);
      continue;
    }
    const float *found = g_bytes_get_data (data, NULL);
    for (guint j = 0; j < g_bytes_get_size (data) / sizeof *found; j++)
      if (found[j] != wraps[i].expected)
        CASE_FAILS ("text %u: element %u is %g, not %g", i, j, found[j], wraps[i].expected);
  }
}

/* Each element of a batch reaches its own part only. */
static GPtrArray *
call_shifted (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  static const char shifted[]
      = "%y = param.f32{slot=0, shape=[3]}\n"
        "%x = param.f32{slot=1, shape=[3]}\n"
        "%at = param.i64{slot=2, shape=[1]}\n"
        "%i = range.index{number=0, kind=loop}(3)\n"
        "sink(store(%y, %i, load.f32(%x, add.index(cast.index(load.i64(%at, 0)), %i))))\n";
  return tiny_custom_kernel (shifted, x, n);
}

static void
test_batch_outside (void)
{
  static const gint64 at[] = { 1, -1, G_MININT64, 3 };
  g_autoptr (TinyTensor) x = COUNT (1, 4, 3);
  g_autoptr (TinyTensor) positions = g_object_ref_sink (
      T (new_from_data) (NULL, TINY_DTYPE_I64, (gint64[]){ 4, 1 }, 2, at, sizeof at));
  g_autoptr (GPtrArray) found
      = tiny_vmap (call_shifted, NULL, (TinyTensor *[]){ x, positions }, 2, NULL, 0, NULL, 0);
  CHECK (found->pdata[0], 2, 3, 0, 0, 4, 5, 0, 0, 0, 0, 0, 0);
}

/* ---- what is not stored ---- */
#define HALF                                                                                   \
  "%y = param.f32{slot=0, shape=[1024]}\n"                                                     \
  "%x = param.f32{slot=1, shape=[2]}\n"
static const struct {
  const char *text;
  gint64 n_stored; /* the first ones, which are x[0] */
} parts[] = {
  { HALF "%i = range.index{number=0, kind=loop}(512)\nsink(store(%y, %i, load.f32(%x, 0)))\n",
    512 },
  { HALF "%i = range.index{number=0, kind=loop}(1024)\n"
         "sink(store(%y, %i, load.f32(%x, 0), cmplt.bool(%i, 100)))\n",
    100 },
  { HALF "%i = range.index{number=0, kind=loop}(1024)\n"
         "sink(store(%y, cast.index(load.f32(%x, 1)), load.f32(%x, 0)))\n",
    1 },
  { HALF
    "%i = range.index{number=0, kind=loop}(1024)\n%j = range.index{number=1, kind=loop}(0)\n"
    "sink(store(%y, %i, add.f32(cast.f32(%j), load.f32(%x, 0))))\n",
    0 },
  { HALF "%i = range.index{number=0, kind=loop}(0)\nsink(store(%y, %i, load.f32(%x, 0)))\n",
    0 },
  { HALF
    "%i = range.index{number=0, kind=loop}(32)\n%j = range.index{number=1, kind=loop}(31)\n"
    "sink(store(%y, add.index(mul.index(%i, 31), %j), load.f32(%x, 0)))\n",
    992 },
  { HALF
    "%i = range.index{number=0, kind=loop}(32)\n%j = range.index{number=1, kind=loop}(32)\n"
    "sink(store(%y, add.index(mul.index(%i, 32), %j), load.f32(%x, 0)))\n",
    1024 },
};

/* Fills memory that the device has for the next who asks. */
static void
leave_sevens (void)
{
  enum { N = 1024, BUFFERS = 8 };
  const float seven = 7;
  TinyTensor *all[BUFFERS];
  for (guint i = 0; i < BUFFERS; i++) {
    g_autoptr (TinyTensor) x = new_repeated (TINY_DTYPE_F32, &seven, sizeof seven, N);
    all[i] = g_object_ref_sink (T (mul) (x, x));
    g_assert_true (T (realize) (all[i], NULL));
  }
  for (guint i = 0; i < BUFFERS; i++)
    g_object_unref (all[i]);
}

static void
test_zeros (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = COUNT (1, 2);
  g_autoptr (TinyTensor) first
      = g_object_ref_sink (T (sub) (x, T (arange) (TINY_DTYPE_F32, 0, 2, 1)));
  g_assert_true (T (realize) (first, &error)); /* 1, 1 */
  g_autoptr (TinyTensor) input
      = g_object_ref_sink (T (mul) (first, T (arange) (TINY_DTYPE_F32, 3, -3, -3)));
  g_assert_true (T (realize) (input, &error)); /* 3, 0 */
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++) {
    leave_sevens ();
    TinyTensor *inputs[] = { input };
    g_autoptr (TinyTensor) y = only (tiny_custom_kernel (parts[i].text, inputs, 1));
    g_autoptr (GError) failure = NULL;
    g_autoptr (GBytes) data = T (get_data) (y, &failure);
    if (data == NULL) {
      CASE_FAILS ("text %u: %s", i, failure->message);
      continue;
    }
    const float *found = g_bytes_get_data (data, NULL);
    for (gint64 j = 0; j < 1024; j++)
      if (found[j] != (j < parts[i].n_stored ? 3 : 0)) {
        CASE_FAILS ("text %u: element %" G_GINT64_FORMAT " is %g", i, j, found[j]);
        break;
      }
  }
}

static const char put[] = "%y = param.f32{slot=0, shape=[4]}\n"
                          "%z = param.i32{slot=1, shape=[2]}\n"
                          "%x = param.f32{slot=2, shape=[4]}\n"
                          "%at = cast.index(load.f32(%x, 0))\n"
                          "sink(store(%y, %at, load.f32(%x, 3)), store(%z, 1, 5))\n";

/* x[0] is where: its result has zeros but for x[3] there; those of the run before are gone. */
static gboolean
put_step (TinyTensor *const *inputs,
          guint n_inputs,
          TinyTensor **outputs,
          guint n_outputs,
          gpointer user_data,
          GError **error)
{
  g_autoptr (GPtrArray) found = tiny_custom_kernel (put, inputs, 1);
  TinyTensor *both = T (add) (
      T (cast) (T (sum) (found->pdata[1], NULL, 0, FALSE), TINY_DTYPE_F32), found->pdata[0]);
  outputs[0] = g_object_ref_sink (both);
  return T (realize) (outputs[0], error);
}

static void
test_zeros_recorded (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyJit) jit = tiny_jit_new (put_step, NULL, NULL, 1);
  for (guint i = 0; i < 4; i++) {
    float expected[4] = { 5, 5, 5, 5 };
    TinyTensor *x = COUNT (i, 4), *y;
    leave_sevens ();
    g_assert_true (tiny_jit_call (jit, &x, 1, &y, &error));
    expected[i] += (float) i + 3;
    check_values (y, 4, expected);
    g_object_unref (x);
  }
}

/* The result goes where the input is that the kernel and others read. */
static void
test_zeros_assigned (void)
{
  static const char first_two[] = "%y = param.f32{slot=0, shape=[3]}\n"
                                  "%a = param.f32{slot=1, shape=[3]}\n"
                                  "%i = range.index{number=0, kind=loop}(2)\n"
                                  "sink(store(%y, %i, load.f32(%a, sub.index(2, %i))))\n";
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = COUNT (1, 3);
  g_assert_true (T (realize) (x, &error));
  TinyTensor *twice = g_object_ref_sink (T (add) (x, x));
  TinyTensor *y = only (tiny_custom_kernel (first_two, &x, 1));
  g_assert_true (T (assign) (x, y, &error));
  g_object_unref (y);
  CHECK (x, 3, 2, 0);
  CHECK (twice, 2, 4, 6);
  g_object_unref (twice);
}

/* ---- with the rest ---- */
static gboolean
step (TinyTensor *const *inputs,
      guint n_inputs,
      TinyTensor **outputs,
      guint n_outputs,
      gpointer user_data,
      GError **error)
{
  outputs[0] = plus_one (inputs[0]);
  return T (realize) (outputs[0], error);
}

static void
test_recorded (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyJit) jit = tiny_jit_new (step, NULL, NULL, 1);
  for (guint i = 0; i < 4; i++) {
    TinyTensor *x = COUNT (10 * i, 2, 3), *y;
    float first = 10.f * (float) i;
    g_assert_true (tiny_jit_call (jit, &x, 1, &y, &error));
    CHECK (y, first + 1, first + 2, first + 3, first + 4, first + 5, first + 6);
    g_object_unref (x);
  }
  g_assert_cmpuint (tiny_jit_get_n_kernels (jit), ==, 1);
}

static GPtrArray *
call_rows (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  return tiny_custom_kernel (rows, x, n);
}

static void
test_batched (void)
{
  g_autoptr (TinyTensor) x = COUNT (0, 2, 2, 3);
  g_autoptr (TinyTensor) w = COUNT (1, 3);
  g_autoptr (TinyTensor) several = COUNT (1, 2, 3);
  gint axes[] = { 0, TINY_NO_AXIS };
  g_autoptr (GPtrArray) shared
      = tiny_vmap (call_rows, NULL, (TinyTensor *[]){ x, w }, 2, axes, 2, NULL, 0);
  CHECK (shared->pdata[0], 8, 26, 44, 62);
  CHECK (shared->pdata[1], 6, 15, 24, 33);
  g_autoptr (GPtrArray) own
      = tiny_vmap (call_rows, NULL, (TinyTensor *[]){ x, several }, 2, NULL, 0, NULL, 0);
  CHECK (own->pdata[0], 8, 26, 107, 152);
  g_autoptr (TinyTensor) matrix = COUNT (0, 2, 3);
  axes[0] = TINY_NO_AXIS;
  axes[1] = 0;
  g_autoptr (GPtrArray) weights
      = tiny_vmap (call_rows, NULL, (TinyTensor *[]){ matrix, several }, 2, axes, 2, NULL, 0);
  CHECK (weights->pdata[0], 8, 26, 17, 62);
}

static GPtrArray *
gradient_of_rows (TinyTensor *const *g,
                  guint n_g,
                  TinyTensor *const *x,
                  guint n_x,
                  TinyTensor *const *y,
                  guint n_y,
                  gpointer data,
                  GError **error)
{
  TinyTensor *column = T (reshape) (g[0], (gint64[]){ 2, 1 }, 2);
  GPtrArray *list = tiny_tensors (T (mul) (column, x[1]), NULL);
  g_ptr_array_add (list, NULL);
  return list;
}

static void
test_gradient (void)
{
  TinyTensor *x[] = { COUNT (0, 2, 3), COUNT (1, 3) };
  g_autoptr (GPtrArray) y
      = tiny_custom_gradient (call_rows, NULL, gradient_of_rows, NULL, NULL, x, 2);
  g_autoptr (GPtrArray) found
      = T (gradient) (T (sum) (T (square) (y->pdata[0]), NULL, 0, FALSE), x, 1, NULL);
  CHECK (found->pdata[0], 16, 32, 48, 52, 104, 156);
  g_autoptr (GPtrArray) plain = tiny_custom_kernel (rows, x, 2);
  g_assert_only_error (T (gradient) (T (sum) (plain->pdata[0], NULL, 0, FALSE), x, 1, NULL),
                       "custom_kernel: nothing is known of its derivative; call it in a "
                       "function with a custom gradient");
  g_assert_only_error (tiny_jvp (call_rows, NULL, x, 2, x, 2, NULL),
                       "custom_kernel: nothing is known of its derivative; call it in a "
                       "function with a custom gradient");
  /* What does not depend on what is asked for needs none. */
  TinyTensor *other = COUNT (5, 2);
  g_autoptr (GPtrArray) beside = T (gradient) (
      T (sum) (T (mul) (plain->pdata[0], other), NULL, 0, FALSE), &other, 1, NULL);
  CHECK (beside->pdata[0], 8, 26);
  g_object_unref (other);
  g_object_unref (x[0]);
  g_object_unref (x[1]);
}

/* ---- wrong texts ---- */
#define Y "%y = param.f32{slot=0, shape=[6]}\n"
#define X "%x = param.f32{slot=1, shape=[6]}\n"
#define I "%i = range.index{number=0, kind=loop}(6)\n"
static const struct {
  const char *text, *message;
} wrong[] = {
  { NULL, "custom_kernel: there is no text" },
  { Y "%x = parm.f32{slot=1}\n", "custom_kernel: 2:6: " },
  { Y X I "add.index(%i, 1)\n",
    "custom_kernel: the last statement is a add, not the sink of the kernel's stores" },
  { Y I "sink(store(%y, %i, 1.0))\n",
    "custom_kernel: there are 1 params, for 1 inputs and at least one output" },
  { Y "%x = param.f32{slot=2, shape=[6]}\n" I "sink(store(%y, %i, load.f32(%x, %i)))\n",
    "custom_kernel: there is no param of slot 1, but one of slot 2" },
  { Y X I "sink(store(%x, %i, load.f32(%y, %i)))\n",
    "custom_kernel: it loads from param 0, which is an output" },
  { Y X I "sink(store(%y, %i, load.f32(%x, %i)), store(%x, %i, 1.0))\n",
    "custom_kernel: it stores to param 1, which is an input" },
  { Y X I "sink(store(%y, %i, load.f32(%x, %i)), store(%y, %i, 1.0))\n",
    "custom_kernel: there are two stores to output 0" },
  { "%y = param.f32{slot=0, shape=[6], device=\"CPU\"}\n" X I
    "sink(store(%y, %i, load.f32(%x, %i)))\n",
    "custom_kernel: param 0 names a device; a kernel runs where its inputs are" },
  { Y "%x = param.i32{slot=1, shape=[6]}\n" I
      "sink(store(%y, %i, cast.f32(load.i32(%x, %i))))\n",
    "custom_kernel: input 0 is (2, 3) of f32, param 1 of the kernel (6,) of i32" },
  { Y "%x = param.f32{slot=1, shape=[5]}\n" I "sink(store(%y, %i, load.f32(%x, 0)))\n",
    "custom_kernel: input 0 is (2, 3) of f32, param 1 of the kernel (5,) of f32" },
  { Y "%x = param.f32{slot=99, shape=[6]}\n" I "sink(store(%y, %i, load.f32(%x, %i)))\n",
    "custom_kernel: slot 99 is not between 0 and 31" },
  { Y X "%n = variable.index{number=0, bounds=[1, 6]}\n"
        "sink(store(%y, %n, load.f32(%x, %n)))\n",
    "custom_kernel: a variable has no value here" },
  { Y X I "sink(store(%y, %i, add.f32(%x, 1.0)))\n",
    "custom_kernel: a add has param 1 as a value; load from it" },
  { Y X "%i = range.index{number=3, kind=lanes}(6)\nsink(store(%y, %i, load.f32(%x, %i)))\n",
    "custom_kernel: range 3 is of kind lanes; it is a loop or a reduce, what that becomes is "
    "decided later" },
  { Y X I "%m = local.f32{number=0, size=[6]}(%i)\n"
          "sink(store(%m, %i, 1.0), store(%y, %i, load.f32(%m, 1000)))\n",
    "custom_kernel: it has local memory; which values are kept there is found out later" },
  { Y X I "%v = iota.f32{size=[6]}\nsink(store(%y, %i, load.f32(%x, %i)),\n"
          "  store(%y, %i, 1.0))\n",
    "custom_kernel: there are two stores to output 0" },
  { Y X I "%v = iota.f32{size=[6]}\n%w = add.f32(load.f32(%x, %i), 1.0)\n"
          "sink(store(%y, %i, add.f32(%v, %w)),\n  end(%i))\n",
    "custom_kernel: 4:1: kernel stage: iota.f32{size=[6]}: does not belong to this stage" },
};

static void
test_wrong (void)
{
  g_autoptr (TinyTensor) x = COUNT (0, 2, 3);
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GPtrArray) found = tiny_custom_kernel (wrong[i].text, &x, 1);
    g_assert_cmpuint (found->len, ==, 1);
    const GError *error = T (get_error) (found->pdata[0]);
    g_assert_nonnull (error);
    if (!g_str_has_prefix (error->message, wrong[i].message))
      CASE_FAILS ("text %u: “%s”, not “%s”", i, error->message, wrong[i].message);
  }
  g_assert_only_error (tiny_custom_kernel (add_one, NULL, 1),
                       "custom_kernel: 1 tensors wanted, none given");
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, function) g_test_add_func ("/autograd/kernel/" name, function)
  ADD ("alone", test_alone);
  ADD ("among-others", test_among_others);
  ADD ("same-memory", test_same_memory);
  ADD ("outside", test_outside);
  ADD ("wraps", test_wraps);
  ADD ("batch-outside", test_batch_outside);
  ADD ("zeros", test_zeros);
  ADD ("zeros-recorded", test_zeros_recorded);
  ADD ("zeros-assigned", test_zeros_assigned);
  ADD ("recorded", test_recorded);
  ADD ("batched", test_batched);
  ADD ("gradient", test_gradient);
  ADD ("wrong", test_wrong);
  return g_test_run ();
}
