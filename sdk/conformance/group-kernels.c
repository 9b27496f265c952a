/* SPDX-License-Identifier: MIT
 *
 * group-kernels.c: what goes wrong with a kernel as a whole and not with an op: many buffers, gates, memory
 * of a group, barriers, loops of sums, a million elements.
 *
 * All numbers are whole and small, so that every result is exact in any order and one that is missing shows. A
 * kernel runs twice on different data where something of the first time could be left. */
#include "conformance.h"
#include "element.h"
#include "kernel.h"
#include "oracle.h"
#include "scale.h"
#include "step.h"

enum { MAX_BUFFERS = 64, MANY = 3000001, PART = 46877 };

/* ---- what all have in common ---- */
typedef struct {
  guint n;
  TinyDType dtypes[MAX_BUFFERS];
  gsize sizes[MAX_BUFFERS];
  gint64 *values[MAX_BUFFERS]; /* parameter 0 is the result: what it has to be */
  gint64 *before;              /* the result's, or NULL: anything */
  const char *opts;
  char *text;
} Test;

static void
test_clear (Test *self)
{
  for (guint i = 0; i < self->n; i++)
    g_free (self->values[i]);
  g_free (self->before);
  g_free (self->text);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Test, test_clear)

/* Whole numbers as CONSTs of @dtype. */
static gint64
whole (TinyDType dtype, gint64 value)
{
  return tiny_dtype_is_float (dtype) ? conf_from_double ((double) value) : value;
}

static gint64
number_of (TinyDType dtype, gint64 bits)
{
  return tiny_dtype_is_float (dtype) ? (gint64) conf_to_double (bits) : bits;
}

static void
add_buffer (Test *self, TinyDType dtype, gsize n)
{
  self->dtypes[self->n] = dtype;
  self->sizes[self->n] = n;
  self->values[self->n++] = g_new0 (gint64, n + 1);
}

static void
fill (Test *self, guint i, guint64 seed)
{
  conf_data_fill (CONF_INTEGER, TINY_OP_MUL, self->dtypes[i], i, seed, self->values[i],
                  self->sizes[i]);
}

static void
upload_of (const Test *self, guint i, ConfMemory *out)
{
  const gint64 *values = i > 0 ? self->values[i] : self->before;
  out->n_bytes = self->sizes[i] * tiny_dtype_get_n_bytes (self->dtypes[i]);
  out->data = g_malloc0 (out->n_bytes + 8);
  for (gsize k = 0; k < self->sizes[i] && values != NULL; k++)
    conf_encode (self->dtypes[i], out->data, k, values[k]);
}

static void
judge (ConfTrial *trial, const Test *self, const ConfMemory *result)
{
  gsize n_wrong = 0, first = 0, last = 0;
  for (gsize i = 0; i < self->sizes[0]; i++) {
    gint64 got = conf_decode (self->dtypes[0], result->data, i);
    if (got == self->values[0][i]
        || (number_of (self->dtypes[0], self->values[0][i]) == 0
            && number_of (self->dtypes[0], got) == 0))
      continue;
    if (n_wrong++ == 0)
      first = i;
    last = i;
  }
  if (n_wrong == 0)
    return;
  g_autofree char *got = conf_value_to_string (
      self->dtypes[0], conf_decode (self->dtypes[0], result->data, first));
  g_autofree char *wanted = conf_value_to_string (self->dtypes[0], self->values[0][first]);
  conf_fail (trial,
             "%" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT
             " elements wrong, the first at %" G_GSIZE_FORMAT ", the last at %" G_GSIZE_FORMAT
             ": got %s, wanted %s",
             n_wrong, self->sizes[0], first, last, got, wanted);
}

static void
check (ConfTrial *trial, const ConfSubject *subject, const Test *self)
{
  g_autoptr (GError) error = NULL;
  ConfMemory memory[MAX_BUFFERS];
  ConfKernel *kernel = conf_kernel_get (subject->device, self->text, self->opts, &error);
  for (guint i = 0; i < self->n; i++)
    upload_of (self, i, &memory[i]);
  if (kernel != NULL && conf_kernel_run (kernel, memory, self->n, 0, &error))
    judge (trial, self, &memory[0]);
  else
    conf_check_error (trial, g_steal_pointer (&error), "running the kernel");
  for (guint i = 0; i < self->n; i++)
    g_free (memory[i].data);
  if (!conf_has_failed (trial))
    return;
  g_autofree char *text = g_strdup_printf (
      "// optimisations: %s\n%s", self->opts ? self->opts : "by heuristic", self->text);
  conf_attach (trial, ".tir", text);
}

/* ---- many buffers: out = 1 a + 2 b + 3 c … ---- */
static void
run_buffers (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const gsize n = 37;
  const guint n_inputs = (guint) self->args[0] - 1;
  g_auto (Test) test = { 0 };
  GString *text = g_string_new ("%i = range.index{number=0, kind=loop}(37)\n");
  g_autoptr (GString) sum = g_string_new ("load.i32(param.i32{slot=1, shape=[37]}, %i)");
  add_buffer (&test, TINY_DTYPE_I32, n);
  for (guint k = 1; k <= n_inputs; k++) {
    add_buffer (&test, TINY_DTYPE_I32, n);
    fill (&test, k, subject->seed + k);
    for (gsize i = 0; i < n; i++)
      test.values[0][i] += test.values[k][i] * k;
    if (k == 1)
      continue;
    g_string_append_printf (text, "%%s%u = %s\n", k, sum->str);
    g_string_printf (
        sum, "add.i32(%%s%u, mul.i32(load.i32(param.i32{slot=%u, shape=[37]}, %%i), %u))", k, k,
        k);
  }
  g_string_append_printf (
      text, "sink{name=\"buffers\"}(store(param.i32{slot=0, shape=[37]}, %%i, %s))\n",
      sum->str);
  test.text = g_string_free (text, FALSE);
  test.opts = "none";
  check (trial, subject, &test);
}

/* ---- gates: a store where i is no multiple of 3, of a load inside its buffer where it is none of 5 ---- */
static void
run_gates (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const TinyDType dtype = (TinyDType) self->args[0];
  const char *d = tiny_dtype_to_string (dtype);
  const gsize n = 64 * 9, half = 301;
  g_auto (Test) test = { .opts = self->data, .before = g_new (gint64, 64 * 9) };
  add_buffer (&test, dtype, n);
  add_buffer (&test, dtype, half);
  fill (&test, 1, subject->seed);
  for (gsize i = 0; i < n; i++) {
    test.before[i] = whole (dtype, 77);
    test.values[0][i] = i % 3 == 0               ? whole (dtype, 77)
                        : i < half && i % 5 != 0 ? test.values[1][i]
                                                 : whole (dtype, 5);
  }
  const char *five = tiny_dtype_is_float (dtype) ? "5.0" : "5";
  test.text = g_strdup_printf (
      "%%i = range.index{number=0, kind=loop}(576)\n"
      "%%x = load.%s(param.%s{slot=1, shape=[301]}, %%i, "
      "and.bool(cmplt.bool(%%i, 301), cmplt.bool(0, floormod.index(%%i, 5))), %s)\n"
      "sink{name=\"gates\"}(store(param.%s{slot=0, shape=[576]}, %%i, %%x, "
      "cmplt.bool(0, floormod.index(%%i, 3))))\n",
      d, d, five, d);
  check (trial, subject, &test);
}

/* ---- masks that differ from lane to lane and are known when the kernel is compiled ----
 *
 * Elements (r, l) with l in lanes: %p, %q and %t are constant vectors of bools, %s is the same for all
 * lanes of a row and comes from memory. Where the mask is false both operands of the quotient are 0, so
 * that a mask that is lost leaves a NaN; of integers they are multiplied. */
typedef struct {
  const char *name, *text;
} Mask;

static const Mask masks[] = { { "constant", "%p" },
                              { "and", "and.bool(%s, %p)" },
                              { "or", "or.bool(%s, %p)" },
                              { "xor", "xor.bool(%s, %t)" },
                              { "cmpne", "cmpne.bool(%s, %q)" },
                              { "where", "where.bool(%s, %p, %q)" },
                              { "where-constants", "where.bool(%p, %s, %t)" },
                              { "and-constants", "and.bool(%s, xor.bool(%q, %t))" },
                              { "or-constants", "and.bool(%s, or.bool(%p, %q))" } };

static gboolean
mask_at (guint mask, gboolean s, guint lane, guint lanes)
{
  const gboolean p = lane < 1, q = lane % 2 != 0, t = lane + 1 < lanes;
  const gboolean values[G_N_ELEMENTS (masks)]
      = { p, s && p, s || p, s != t, s != q, s ? p : q, p ? s : t, s && q != t, s && (p || q) };
  return values[mask];
}

/* args: dtype, mask, lanes, whether operands are one for a row or one for an element. */
static void
run_masks (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { ROWS = 6 };
  const TinyDType dtype = (TinyDType) self->args[0];
  const char *d = tiny_dtype_to_string (dtype);
  const guint mask = (guint) self->args[1], lanes = (guint) self->args[2];
  const gboolean is_float = tiny_dtype_is_float (dtype), is_wide = self->args[3] != 0;
  const guint width = is_wide ? lanes : 1; /* elements of a row of the operands */
  g_autofree char *opts = lanes > 1 ? g_strdup_printf ("lanes(1,%u)", lanes) : NULL;
  g_auto (Test) test = { .opts = opts != NULL ? opts : "none" };
  add_buffer (&test, dtype, (gsize) ROWS * lanes);
  add_buffer (&test, dtype, (gsize) ROWS * width);
  add_buffer (&test, dtype, (gsize) ROWS * width);
  if (strstr (masks[mask].text, "%s") != NULL)
    add_buffer (&test, TINY_DTYPE_I32, ROWS);
  for (guint r = 0; r < ROWS; r++) {
    if (test.n == 4)
      test.values[3][r] = r % 2;
    for (guint i = r * width; i < (r + 1) * width; i++) {
      test.values[1][i] = whole (dtype, 8 * (1 + i % 7));
      test.values[2][i] = whole (dtype, 2);
    }
    for (guint lane = 0; lane < lanes; lane++) {
      const gint64 x = number_of (dtype, test.values[1][r * width + (is_wide ? lane : 0)]);
      const gboolean is_chosen = mask_at (mask, r % 2 != 0, lane, lanes);
      test.values[0][r * lanes + lane] = whole (dtype, !is_chosen ? 0
                                                       : is_float ? x / 2
                                                                  : x * 2);
    }
  }
  const char *zero = is_float ? "0.0" : "0";
  test.text = g_strdup_printf (
      "%%r = range.index{number=0, kind=loop}(%u)\n"
      "%%l = range.index{number=1, kind=loop}(%u)\n"
      "%%s = cmplt.bool(0, load.i32(param.i32{slot=3, shape=[%u]}, %%r))\n"
      "%%p = cmplt.bool(%%l, 1)\n"
      "%%q = cmpne.bool(floormod.index(%%l, 2), 0)\n"
      "%%t = cmplt.bool(%%l, %u)\n"
      "%%at = add.index(mul.index(%%r, %u), %%l)\n"
      "%%mask = %s\n"
      "%%x = load.%s(param.%s{slot=1, shape=[%u]}, %s, %%mask, %s)\n"
      "%%y = load.%s(param.%s{slot=2, shape=[%u]}, %s, %%mask, %s)\n"
      "sink{name=\"masks\"}(store(param.%s{slot=0, shape=[%u]}, %%at, "
      "where.%s(%%mask, %s.%s(%%x, %%y), %s)))\n",
      ROWS, lanes, ROWS, lanes - 1, lanes, masks[mask].text, d, d, ROWS * width,
      is_wide ? "%at" : "%r", zero, d, d, ROWS * width, is_wide ? "%at" : "%r", zero, d,
      ROWS * lanes, d, is_float ? "fdiv" : "mul", d, zero);
  check (trial, subject, &test);
}

/* ---- sums over rows: out[r] = sum over k of a[r, k] b[k] ---- */
static void
run_dot (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const TinyDType dtype = (TinyDType) self->args[0];
  const gint64 rows = self->args[1], k = self->args[2];
  const char *d = tiny_dtype_to_string (dtype);
  for (guint time = 0; time < 2 && !conf_has_failed (trial); time++) {
    g_auto (Test) test = { .opts = self->data };
    add_buffer (&test, dtype, (gsize) rows);
    add_buffer (&test, dtype, (gsize) (rows * k));
    add_buffer (&test, dtype, (gsize) k);
    fill (&test, 1, subject->seed + time);
    fill (&test, 2, subject->seed + time);
    /* No term is 0 where leaving one out is easy: the first and the last. */
    test.values[2][0] = test.values[2][k - 1] = whole (dtype, 3);
    for (gint64 r = 0; r < rows; r++) {
      gint64 sum = 0;
      test.values[1][r * k] = test.values[1][r * k + k - 1] = whole (dtype, 1 + (r + time) % 3);
      for (gint64 i = 0; i < k; i++)
        sum += number_of (dtype, test.values[1][r * k + i])
               * number_of (dtype, test.values[2][i]);
      test.values[0][r] = whole (dtype, sum);
    }
    test.text = g_strdup_printf (
        "%%r = range.index{number=0, kind=loop}(%" G_GINT64_FORMAT ")\n"
        "%%k = range.index{number=1, kind=reduce}(%" G_GINT64_FORMAT ")\n"
        "%%a = load.%s(param.%s{slot=1, shape=[%" G_GINT64_FORMAT "]}, "
        "add.index(mul.index(%%r, %" G_GINT64_FORMAT "), %%k))\n"
        "%%b = load.%s(param.%s{slot=2, shape=[%" G_GINT64_FORMAT "]}, %%k)\n"
        "sink{name=\"dot\"}(store(param.%s{slot=0, shape=[%" G_GINT64_FORMAT "]}, %%r, "
        "reduce.%s{op=add}(mul.%s(%%a, %%b), %%k)))\n",
        rows, k, d, d, rows * k, k, d, d, k, d, rows, d, d);
    check (trial, subject, &test);
  }
}

/* ---- a value that is kept for a row: out[r, k] = a[r, k] - (max of row r) ---- */
static void
run_rows (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const gint64 rows = self->args[0], k = self->args[1];
  for (guint time = 0; time < 2 && !conf_has_failed (trial); time++) {
    g_auto (Test) test = { .opts = self->data };
    add_buffer (&test, TINY_DTYPE_I32, (gsize) (rows * k));
    add_buffer (&test, TINY_DTYPE_I32, (gsize) (rows * k));
    fill (&test, 1, subject->seed + time);
    for (gint64 r = 0; r < rows; r++) {
      gint64 most = G_MININT32, *row = &test.values[1][r * k];
      row[k - 1] = 5 + (r + time) % 7; /* the largest comes last */
      for (gint64 i = 0; i < k; i++)
        most = MAX (most, row[i]);
      for (gint64 i = 0; i < k; i++)
        test.values[0][r * k + i] = row[i] - most;
    }
    test.text = g_strdup_printf (
        "%%r = range.index{number=0, kind=loop}(%" G_GINT64_FORMAT ")\n"
        "%%k = range.index{number=1, kind=reduce}(%" G_GINT64_FORMAT ")\n"
        "%%j = range.index{number=2, kind=loop}(%" G_GINT64_FORMAT ")\n"
        "%%row = mul.index(%%r, %" G_GINT64_FORMAT ")\n"
        "%%a = param.i32{slot=1, shape=[%" G_GINT64_FORMAT "]}\n"
        "%%most = reduce.i32{op=max}(load.i32(%%a, add.index(%%row, %%k)), %%k)\n"
        "sink{name=\"rows\"}(store(param.i32{slot=0, shape=[%" G_GINT64_FORMAT "]}, "
        "add.index(%%row, %%j), sub.i32(load.i32(%%a, add.index(%%row, %%j)), %%most)))\n",
        rows, k, k, k, rows * k, rows * k);
    check (trial, subject, &test);
  }
}

/* ---- millions: one wrong element is seen wherever it is ---- */
/* A part of them first: a device that is slow at that, twice, gets fewer. */
static void
run_many (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  ConfElementwise element = { .op = (TinyOp) self->args[0],
                              .from = (TinyDType) self->args[1],
                              .to = (TinyDType) self->args[1],
                              .data = CONF_SIGNED,
                              .layout = (guint) self->args[2] };
  const gsize n_bytes = tiny_dtype_get_n_bytes (element.from);
  const gsize most = conf_scale_to_memory (subject->device, MANY,
                                           n_bytes * (conf_op_get_n (element.op) + 1), n_bytes);
  gsize n = 0;
  element.n = MIN (PART, most);
  for (guint time = 0; time < 2 && n < most && !conf_has_failed (trial); time++) {
    conf_elementwise_check (trial, subject, &element);
    const ConfKernel *kernel = conf_elementwise_compile (&element, subject, NULL);
    n = kernel ? conf_scale_to_time (most, element.n, conf_kernel_get_ns (kernel)) : 0;
  }
  element.n = n;
  if (n > PART && !conf_has_failed (trial))
    conf_elementwise_check (trial, subject, &element);
}

/* ---- the list ---- */
static void
list_buffers (const ConfSubject *subject, ConfList *out)
{
  const guint most = MIN (subject->target->max_params, MAX_BUFFERS);
  for (guint n = 2; n <= MAX_BUFFERS; n++) {
    if (n > most) {
      conf_list_absent (out, "the target takes not so many buffers", "buffers/%u", n);
      continue;
    }
    const ConfCase self = { .run = run_buffers,
                            .level = n <= 12 || n % 8 < 2 || n == most ? CONF_CORE : CONF_FULL,
                            .args = { n } };
    conf_list_add (out, &self, "buffers/%u", n);
  }
}

static void
list_gates (const ConfSubject *subject, ConfList *out)
{
  static const TinyDType dtypes[]
      = { TINY_DTYPE_I32, TINY_DTYPE_F32, TINY_DTYPE_U8, TINY_DTYPE_F16, TINY_DTYPE_I64 };
  static const struct {
    const char *name, *opts;
    guint lanes;
  } ways[] = { { "plain", "none", 1 },           { "chosen", NULL, 1 },
               { "lanes4", "lanes(0,4)", 4 },    { "lanes16", "lanes(0,16)", 16 },
               { "lanes64", "lanes(0,64)", 64 }, { "grid", "grid(0,0)", 1 } };
  for (guint d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (guint i = 0; i < G_N_ELEMENTS (ways); i++) {
      const ConfCase self = { .run = run_gates, .args = { dtypes[d] }, .data = ways[i].opts };
      gboolean is_stored = (subject->target->dtypes_storage & TINY_DTYPE_BIT (dtypes[d])) != 0
                           || tiny_dtype_get_n_bytes (dtypes[d]) >= 4;
      if (ways[i].lanes <= subject->target->max_lanes && (is_stored || ways[i].opts == NULL))
        conf_list_add (out, &self, "gates/%s/%s", tiny_dtype_to_string (dtypes[d]),
                       ways[i].name);
      else
        conf_list_absent (out,
                          is_stored ? "the target has not so many lanes"
                                    : "the target does not store it: it lies in words",
                          "gates/%s/%s", tiny_dtype_to_string (dtypes[d]), ways[i].name);
    }
}

static void
list_masks (const ConfSubject *subject, ConfList *out)
{
  static const TinyDType dtypes[] = { TINY_DTYPE_F32, TINY_DTYPE_I32, TINY_DTYPE_F64 };
  for (guint d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (guint lanes = 2; lanes <= 16; lanes *= 2)
      for (guint i = 0; i < 2 * G_N_ELEMENTS (masks); i++) {
        const ConfCase self
            = { .run = run_masks,
                .level = d == 0 && lanes == 2 && i % 2 == 0 ? CONF_CORE : CONF_FULL,
                .args = { dtypes[d], i / 2, lanes, i % 2 } };
        g_autofree char *name
            = g_strdup_printf ("masks/%s/%s-%s%u", tiny_dtype_to_string (dtypes[d]),
                               masks[i / 2].name, i % 2 ? "lanes" : "row", lanes);
        const gboolean has_dtype
            = dtypes[d] != TINY_DTYPE_F64
              || (subject->target->dtypes_compute & TINY_DTYPE_BIT (TINY_DTYPE_F64)) != 0;
        if (has_dtype && lanes <= subject->target->max_lanes)
          conf_list_add (out, &self, "%s", name);
        else
          conf_list_absent (out,
                            has_dtype ? "the target has not so many lanes"
                                      : "the device does not compute with f64",
                            "%s", name);
      }
}

static void
list_sums (const ConfSubject *subject, ConfList *out)
{
  static const gint64 lengths[]
      = { 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 256, 1000, 4096 };
  static const TinyDType dtypes[] = { TINY_DTYPE_F32, TINY_DTYPE_I32, TINY_DTYPE_F64 };
  for (guint d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (guint i = 0; i < G_N_ELEMENTS (lengths); i++) {
      const ConfCase self = { .run = run_dot,
                              .level = d == 0 ? CONF_CORE : CONF_FULL,
                              .args = { dtypes[d], 37, lengths[i] } };
      if (dtypes[d] != TINY_DTYPE_F64
          || (subject->target->dtypes_compute & TINY_DTYPE_BIT (TINY_DTYPE_F64)) != 0)
        conf_list_add (out, &self, "dot/%s/%" G_GINT64_FORMAT, tiny_dtype_to_string (dtypes[d]),
                       lengths[i]);
    }
  if ((subject->target->dtypes_compute & TINY_DTYPE_BIT (TINY_DTYPE_F64)) == 0)
    conf_list_absent (out, "the device does not compute with f64", "dot/f64");
}

static void
list_groups (const ConfSubject *subject, ConfList *out)
{
  static const struct {
    const char *name, *opts;
    guint items;
  } sums[] = { { "share8", "group(1,8) grid(0,0)", 8 },
               { "share32", "group(1,32) grid(0,0)", 32 },
               { "share64", "group(1,64) grid(0,0)", 64 },
               { "share256", "group(1,256) grid(0,0)", 256 } };
  if (!(subject->target->flags & TINY_TARGET_GROUPS)) {
    conf_list_absent (out, "the target has no work-groups", "groups");
    return;
  }
  for (guint i = 0; i < G_N_ELEMENTS (sums); i++) {
    const ConfCase sum
        = { .run = run_dot, .args = { TINY_DTYPE_I32, 37, 1024 }, .data = sums[i].opts };
    if (sums[i].items > subject->target->max_group_total
        || sums[i].items * 4 > subject->target->local_bytes)
      conf_list_absent (out, "the target has not so many items of a group, or local memory",
                        "groups/%s", sums[i].name);
    else
      conf_list_add (out, &sum, "groups/%s", sums[i].name);
  }
}

static void
list_many (ConfList *out)
{
  static const struct {
    TinyOp op;
    TinyDType dtype;
    const char *name;
  } rows[] = { { TINY_OP_MUL, TINY_DTYPE_F32, "mul-f32" },
               { TINY_OP_ADD, TINY_DTYPE_I32, "add-i32" },
               { TINY_OP_XOR, TINY_DTYPE_U8, "xor-u8" },
               { TINY_OP_NEG, TINY_DTYPE_I16, "neg-i16" } };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    const ConfCase self = { .run = run_many, .args = { rows[i].op, rows[i].dtype } };
    conf_list_add (out, &self, "many/%s", rows[i].name);
  }
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  if (subject->target == NULL)
    return;
  if (conf_only_claims (subject)) {
    conf_list_absent (out, CONF_NO_KERNELS, "kernels");
    return;
  }
  list_buffers (subject, out);
  list_gates (subject, out);
  list_masks (subject, out);
  list_sums (subject, out);
  /* One loop of more rounds than 16 bits count. */
  const ConfCase loop = {
    .run = run_dot, .level = CONF_STRESS, .args = { TINY_DTYPE_I32, 2, 70001 }, .data = "none"
  };
  conf_list_add (out, &loop, "loop/70001");
  for (gint64 k = 3; k <= 771; k *= 4) {
    const ConfCase self = { .run = run_rows, .args = { 29, k } };
    conf_list_add (out, &self, "rows/%" G_GINT64_FORMAT, k);
  }
  list_groups (subject, out);
  list_many (out);
}

const ConfGroup conf_group_kernels
    = { "kernels", "buffers, gates, sums, groups and millions of elements, to the bit", list };
