/* SPDX-License-Identifier: MIT
 *
 * group-claims.c: what a target declares is so, and what it does not declare is not needed.
 *
 * Both ways: an op that is declared is used as it is, in vectors as long as declared, and gives what it should;
 * a limit is gone up to; a flag that was left out is looked for. What a target declares beyond what was found
 * (it need not flush subnormals because it may) is recorded and is no failure. */
#include <math.h>
#include <string.h>

#include "conformance.h"
#include "device/tiny-buffer.h"
#include "element.h"
#include "ir/tiny-check.h"
#include "kernel.h"
#include "oracle.h"
#include "step.h"

/* ---- an op that is declared is there ---- */
static void
run_native (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  g_autoptr (GError) error = NULL;
  const TinyOp op = (TinyOp) self->args[0];
  const ConfElementwise element = { .op = op,
                                    .from = (TinyDType) self->args[1],
                                    .to = (TinyDType) self->args[2],
                                    .data = (ConfClass) self->args[3],
                                    .layout = CONF_LAYOUT_SCALAR };
  ConfKernel *kernel = conf_elementwise_compile (&element, subject, &error);
  if (!conf_check_error (trial, g_steal_pointer (&error), "compiling a kernel with it"))
    return;
  /* Of bools the core has some made of others that are as good. */
  conf_check (trial,
              element.from == TINY_DTYPE_BOOL
                  || conf_kernel_count (kernel, tiny_op_infos[op].instr, element.from, 1) > 0,
              "the kernel was made without the instruction");
  conf_elementwise_check (trial, subject, &element);
}

static void
list_native (const ConfSubject *subject, ConfList *out)
{
  for (TinyDType from = TINY_DTYPE_BOOL; from <= TINY_DTYPE_F64; from++)
    for (guint op = TINY_OP_NEG; op <= TINY_OP_CMPEQ; op++) {
      const TinyDType to = conf_op_get_result ((TinyOp) op, from);
      const ConfCase self
          = { .run = run_native,
              .args = { op, from, to, from == TINY_DTYPE_BOOL ? CONF_BOUNDARY : CONF_SIGNED } };
      const char *dtype = tiny_dtype_to_string (from);
      if (!tiny_op_takes_dtype ((TinyOp) op, from))
        continue;
      if (conf_is_native (subject->target, (TinyOp) op, from, to))
        conf_list_add (out, &self, "native/%s/%s", tiny_op_to_string ((TinyOp) op), dtype);
      else
        conf_list_absent (out, "not declared: the core makes it of others", "native/%s/%s",
                          tiny_op_to_string ((TinyOp) op), dtype);
    }
}

/* ---- an op that is not declared is not needed ---- */

/* The least that a target has to declare: design section 4. */
static TinyTarget
least_of (const TinyTarget *target)
{
#define OP(name) TINY_INSTR_BIT (TINY_INSTR_##name)
  const guint64 ops = OP (LOAD) | OP (STORE) | OP (CAST) | OP (BITCAST) | OP (ADD) | OP (MUL)
                      | OP (CMPLT) | OP (AND) | OP (OR) | OP (XOR) | OP (SHL) | OP (SHR)
                      | OP (WHERE);
#undef OP
  TinyTarget least = *target;
  for (guint i = 0; i < TINY_N_DTYPES; i++)
    least.ops[i] &= ops;
  return least;
}

static void
run_made (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const TinyTarget least = least_of (subject->target);
  const ConfElementwise element = { .op = (TinyOp) self->args[0],
                                    .from = (TinyDType) self->args[1],
                                    .to = (TinyDType) self->args[2],
                                    .data = CONF_SIGNED,
                                    .target = &least };
  conf_elementwise_check (trial, subject, &element);
}

static void
list_made (const ConfSubject *subject, ConfList *out)
{
  for (TinyDType from = TINY_DTYPE_I8; from <= TINY_DTYPE_F64; from++)
    for (guint op = TINY_OP_NEG; op <= TINY_OP_CMPEQ; op++) {
      const TinyDType to = conf_op_get_result ((TinyOp) op, from);
      const TinyTarget least = least_of (subject->target);
      const gboolean is_shown = from == TINY_DTYPE_F32 || from == TINY_DTYPE_I32;
      const ConfCase self = { .run = run_made,
                              .level = is_shown ? CONF_CORE : CONF_FULL,
                              .args = { op, from, to } };
      if (tiny_op_takes_dtype ((TinyOp) op, from)
          && conf_is_native (subject->target, (TinyOp) op, from, to)
          && !conf_is_native (&least, (TinyOp) op, from, to))
        conf_list_add (out, &self, "made/%s/%s", tiny_op_to_string ((TinyOp) op),
                       tiny_dtype_to_string (from));
      else if (tiny_op_takes_dtype ((TinyOp) op, from))
        conf_list_absent (out, "not declared, or every target has it", "made/%s/%s",
                          tiny_op_to_string ((TinyOp) op), tiny_dtype_to_string (from));
    }
}

/* ---- storage: memory of every dtype that is declared is its own, and keeps every bit pattern ---- */
static char *
copy_text (TinyDType dtype, gsize n, guint shift)
{
  const char *d = tiny_dtype_to_string (dtype);
  return g_strdup_printf ("%%i = range.index{number=0, kind=loop}(%" G_GSIZE_FORMAT ")\n"
                          "sink{name=\"copy\"}(store(param.%s{slot=0, shape=[%" G_GSIZE_FORMAT
                          "]}, %%i, load.%s(param.%s{slot=1, shape=[%" G_GSIZE_FORMAT
                          "]}, add.index(%%i, %u))))\n",
                          n, d, n, d, d, n + shift, shift);
}

static void
check_copy (ConfTrial *trial,
            const ConfSubject *subject,
            TinyDType dtype,
            const char *opts,
            gsize n,
            guint shift,
            guint lanes)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = copy_text (dtype, n, shift);
  const gsize width = tiny_dtype_get_n_bytes (dtype);
  g_autofree guint8 *from = g_malloc ((n + shift) * width + 8), *to = g_malloc0 (n * width + 8);
  for (gsize i = 0; i < n + shift; i++) {
    guint64 bits = i * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
    bits = width <= 2 ? i : bits ^ bits >> 29;
    memcpy (from + i * width, &bits, width);
  }
  ConfMemory memory[] = { { to, n * width }, { from, (n + shift) * width } };
  ConfKernel *kernel = conf_kernel_get (subject->device, text, opts, &error);
  if (kernel == NULL || !conf_kernel_run (kernel, memory, 2, 0, &error)) {
    conf_check_error (trial, g_steal_pointer (&error), "copying by a kernel");
    return;
  }
  conf_check (trial, conf_kernel_count (kernel, TINY_INSTR_STORE, dtype, lanes) > 0,
              "the kernel stores no %s of %u lanes", tiny_dtype_to_string (dtype), lanes);
  for (gsize i = 0; i < n; i++) {
    gint64 wanted = conf_decode (dtype, from, i + shift), got = conf_decode (dtype, to, i);
    if (wanted == got)
      continue;
    conf_fail (trial,
               "element %" G_GSIZE_FORMAT " of %s was %" G_GINT64_MODIFIER
               "x in memory and is %" G_GINT64_MODIFIER "x in the copy",
               i, tiny_dtype_to_string (dtype), (guint64) wanted, (guint64) got);
    return;
  }
}

static void
run_storage (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  check_copy (trial, subject, (TinyDType) self->args[0], "grid(0,0)", 65536, 0, 1);
}

/* ---- lanes: vectors as long as declared; with UNALIGNED also where an element is not a vector's first ---- */
static void
run_lanes (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const guint lanes = (guint) self->args[1];
  g_autofree char *opts = g_strdup_printf ("lanes(0,%u)", lanes);
  check_copy (trial, subject, (TinyDType) self->args[0], opts, lanes * 17,
              (guint) self->args[2], lanes);
}

static void
list_storage (const ConfSubject *subject, ConfList *out)
{
  enum { MOST_LANES = 1024 };
  const TinyTarget *target = subject->target;
  if (!(target->flags & TINY_TARGET_UNALIGNED))
    conf_list_absent (out, "the target has not TINY_TARGET_UNALIGNED", "unaligned");
  for (guint lanes = 2; lanes <= MOST_LANES; lanes *= 2)
    if (lanes > target->max_lanes) {
      conf_list_absent (out, "the target has not so many lanes", "lanes/*/%u", lanes);
      conf_list_absent (out, "the target has not so many lanes", "unaligned/*/%u", lanes);
    }
  for (TinyDType dtype = TINY_DTYPE_I8; dtype <= TINY_DTYPE_F64; dtype++) {
    const char *d = tiny_dtype_to_string (dtype);
    if (!(target->dtypes_storage & TINY_DTYPE_BIT (dtype))) {
      static const char *const names[] = { "storage", "lanes", "unaligned" };
      for (guint i = 0; i < G_N_ELEMENTS (names); i++)
        conf_list_absent (out, "not declared: it lies in words", "%s/%s", names[i], d);
      continue;
    }
    const ConfCase storage = { .run = run_storage, .args = { dtype } };
    conf_list_add (out, &storage, "storage/%s", d);
    for (guint lanes = 2; lanes <= MIN (target->max_lanes, MOST_LANES); lanes *= 2) {
      const gboolean is_core = lanes * 2 > target->max_lanes || lanes == 4;
      ConfCase self = { .run = run_lanes,
                        .level = is_core ? CONF_CORE : CONF_FULL,
                        .args = { dtype, lanes } };
      conf_list_add (out, &self, "lanes/%s/%u", d, lanes);
      self.args[2] = 3;
      if (target->flags & TINY_TARGET_UNALIGNED)
        conf_list_add (out, &self, "unaligned/%s/%u", d, lanes);
    }
  }
}

/* ---- rounding: what the flags say of whole expressions ---- */
typedef struct {
  const char *name, *text; /* of %x %y %z, loaded */
  guint32 flag;            /* with which it may be otherwise */
  double x, y, z, wanted, otherwise;
} Expression;

/* otherwise: what it is where floats are taken for real numbers, or subnormals for zeros. */
static const Expression expressions[] = {
  { "sum-and-back", "sub.f32(add.f32(%x, %y), %y)", TINY_TARGET_REASSOCIATES, 1, 0x1p25, 0, 0,
    1 },
  { "lost-by-sum", "sub.f32(%x, sub.f32(add.f32(%x, %y), %y))", TINY_TARGET_REASSOCIATES, 1,
    0x1p25, 0, 1, 0 },
  { "product-and-back", "fdiv.f32(mul.f32(%x, %y), %y)", TINY_TARGET_REASSOCIATES, 0x1p-100,
    0x1p100, 0, 0x1p-100, 0x1p-100 },
  { "overflow-and-back", "fdiv.f32(mul.f32(%x, %y), %y)", TINY_TARGET_REASSOCIATES, 0x1p100,
    0x1p100, 0, INFINITY, 0x1p100 },
  { "not-fused", "add.f32(mul.f32(%x, %y), %z)", TINY_TARGET_REASSOCIATES, 1 + 0x1p-12,
    1 + 0x1p-12, -1 - 0x1p-11, 0, 0x1p-24 },
  { "order-of-sum", "add.f32(add.f32(%x, %y), %z)", TINY_TARGET_REASSOCIATES, 0x1p25, 1, 1,
    0x1p25, 0x1p25 + 2 },
  { "difference-of-infinities", "sub.f32(%x, %x)", TINY_TARGET_REASSOCIATES, INFINITY, 0, 0,
    NAN, 0 },
  { "not-a-number", "where.f32(cmpne.bool(%x, %x), 1.0, 2.0)", TINY_TARGET_REASSOCIATES, NAN, 0,
    0, 1, 2 },
  { "zero-times", "mul.f32(%x, sub.f32(%y, %z))", TINY_TARGET_REASSOCIATES, INFINITY, 3, 3, NAN,
    0 },
  { "subnormal-sum", "add.f32(%x, %y)", TINY_TARGET_FLUSHES_SUBNORMALS, 0x1p-130, 0x1p-131, 0,
    0x1.8p-130, 0 },
  { "subnormal-product", "mul.f32(%x, %y)", TINY_TARGET_FLUSHES_SUBNORMALS, 0x1p-100, 0x1p-40,
    0, 0x1p-140, 0 },
  { "subnormal-operand", "mul.f32(%x, %y)", TINY_TARGET_FLUSHES_SUBNORMALS, 0x1p-140, 0x1p100,
    0, 0x1p-40, 0 },
};

static gboolean
is_same (double a, double b)
{
  return a == b || (isnan (a) && isnan (b));
}

static void
run_expression (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { N = 64 };
  const Expression *e = self->data;
  const double values[] = { 0, e->x, e->y, e->z };
  const gboolean is_declared = (subject->target->flags & e->flag) != 0;
  g_autoptr (GError) error = NULL;
  float data[4][N];
  ConfMemory memory[4];
  /* All are parameters, so that every expression may name each. */
  g_autofree char *text
      = g_strdup_printf ("%%i = range.index{number=0, kind=loop}(64)\n"
                         "%%x = load.f32(param.f32{slot=1, shape=[64]}, %%i)\n"
                         "%%y = load.f32(param.f32{slot=2, shape=[64]}, %%i)\n"
                         "%%z = load.f32(param.f32{slot=3, shape=[64]}, %%i)\n"
                         "%%never = cmplt.bool(%%z, -1000000000.0)\n"
                         "sink{name=\"expression\"}(store(param.f32{slot=0, shape=[64]}, %%i, "
                         "where.f32(%%never, add.f32(%%y, %%z), %s)))\n",
                         e->text);
  for (guint k = 0; k < 4; k++) {
    memory[k] = (ConfMemory){ data[k], sizeof data[k] };
    for (guint i = 0; i < N; i++)
      data[k][i] = (float) values[k];
  }
  ConfKernel *kernel = conf_kernel_get (subject->device, text, NULL, &error);
  if (kernel == NULL || !conf_kernel_run (kernel, memory, 4, 0, &error)) {
    conf_check_error (trial, g_steal_pointer (&error), e->text);
    return;
  }
  const double got = data[0][0];
  for (guint i = 1; i < N; i++)
    conf_check (trial, is_same (got, data[0][i]), "the same operands gave %a and %a", got,
                data[0][i]);
  conf_record (trial, e->name, is_same (got, e->wanted) ? 1 : 0, "as rounded");
  conf_check (
      trial,
      is_same (got, e->wanted)
          || (is_declared
              && (is_same (got, e->otherwise) || isnan (e->wanted) || isinf (e->wanted))),
      "%s of %a, %a, %a is %a, wanted %a%s", e->text, e->x, e->y, e->z, got, e->wanted,
      is_same (got, e->otherwise) && !is_declared
          ? e->flag == TINY_TARGET_REASSOCIATES
                ? ": floats are taken for real numbers, and the target does not declare "
                  "TINY_TARGET_REASSOCIATES"
                : ": subnormals are flushed, and the target does not declare "
                  "TINY_TARGET_FLUSHES_SUBNORMALS"
          : "");
}

/* ---- limits ---- */

/* One axis of the grid as long as declared, or longer than 16 bits. */
static void
run_grid (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const guint axis = (guint) self->args[0];
  g_autoptr (GError) error = NULL;
  gint64 shape[3] = { 2, 2, 2 };
  shape[axis] = 66001;
  const gsize n = (gsize) (shape[0] * shape[1] * shape[2]);
  g_autofree gint32 *from = g_new (gint32, n), *to = g_new0 (gint32, n);
  g_autofree char *text = g_strdup_printf (
      "%%i = range.index{number=0, kind=loop}(%" G_GINT64_FORMAT ")\n"
      "%%j = range.index{number=1, kind=loop}(%" G_GINT64_FORMAT ")\n"
      "%%k = range.index{number=2, kind=loop}(%" G_GINT64_FORMAT ")\n"
      "%%at = add.index(mul.index(add.index(mul.index(%%i, %" G_GINT64_FORMAT
      "), %%j), %" G_GINT64_FORMAT "), %%k)\n"
      "%%x = load.i32(param.i32{slot=1, shape=[%" G_GSIZE_FORMAT "]}, %%at)\n"
      "sink{name=\"grid\"}(store(param.i32{slot=0, shape=[%" G_GSIZE_FORMAT
      "]}, %%at, xor.i32(%%x, 21845)))\n",
      shape[0], shape[1], shape[2], shape[1], shape[2], n, n);
  for (gsize i = 0; i < n; i++)
    from[i] = (gint32) (i * 2654435761u);
  ConfMemory memory[] = { { to, n * 4 }, { from, n * 4 } };
  ConfKernel *kernel
      = conf_kernel_get (subject->device, text, "grid(0,0) grid(1,0) grid(2,0)", &error);
  if (kernel == NULL || !conf_kernel_run (kernel, memory, 2, 0, &error)) {
    conf_check_error (trial, g_steal_pointer (&error), "launching it");
    return;
  }
  for (gsize i = 0; i < n; i++)
    if (!conf_check (trial, to[i] == (from[i] ^ 21845), "point %" G_GSIZE_FORMAT " is wrong",
                     i))
      return;
}

/* out[r] = sum over k of a[r, k] b[k], with @lanes items of a group, or with b in local memory. */
static void
run_local (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const gsize k = (gsize) self->args[0], rows = 3;
  g_autoptr (GError) error = NULL;
  g_autofree gint32 *a = g_new (gint32, rows * k), *b = g_new (gint32, k);
  gint32 out[3] = { 0 }, wanted[3] = { 0 };
  g_autofree char *text
      = g_strdup_printf ("%%r = range.index{number=0, kind=loop}(3)\n"
                         "%%k = range.index{number=1, kind=reduce}(%" G_GSIZE_FORMAT ")\n"
                         "%%a = load.i32(param.i32{slot=1, shape=[%" G_GSIZE_FORMAT
                         "]}, add.index(mul.index(%%r, %" G_GSIZE_FORMAT "), %%k))\n"
                         "%%b = load.i32(param.i32{slot=2, shape=[%" G_GSIZE_FORMAT "]}, %%k)\n"
                         "sink{name=\"local\"}(store(param.i32{slot=0, shape=[3]}, %%r, "
                         "reduce.i32{op=add}(mul.i32(%%a, %%b), %%k)))\n",
                         k, rows * k, k, k);
  for (gsize i = 0; i < rows * k; i++) {
    a[i] = (gint32) (i % 17) - 3;
    b[i % k] = (gint32) (i % k % 13) + 1;
  }
  for (gsize i = 0; i < rows * k; i++)
    wanted[i / k] += a[i] * b[i % k];
  ConfMemory memory[] = { { out, sizeof out }, { a, rows * k * 4 }, { b, k * 4 } };
  ConfKernel *kernel = conf_kernel_get (subject->device, text, self->data, &error);
  if (kernel == NULL || !conf_kernel_run (kernel, memory, 3, 0, &error)) {
    conf_check_error (trial, g_steal_pointer (&error), "launching it");
    return;
  }
  for (guint i = 0; i < 3; i++)
    conf_check (trial, out[i] == wanted[i], "row %u is %d, wanted %d", i, out[i], wanted[i]);
}

static void
run_group (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  g_autofree char *opts
      = g_strdup_printf ("group(1,%" G_GINT64_FORMAT ") grid(0,0)", self->args[1]);
  const ConfCase with = { .args = { self->args[0] }, .data = opts };
  run_local (trial, subject, &with);
}

static void
list_limits (const ConfSubject *subject, ConfList *out)
{
  const TinyTarget *target = subject->target;
  for (guint axis = 0; axis < 3; axis++) {
    const ConfCase self = { .run = run_grid, .args = { axis } };
    conf_list_add (out, &self, "grid/axis%u", axis);
  }
  if (!(target->flags & TINY_TARGET_GROUPS)) {
    conf_list_absent (out, "the target has no work-groups", "group");
    return;
  }
  for (guint items = 2; items <= 1024; items *= 2) {
    const ConfCase self = { .run = run_group, .args = { items * 4, items } };
    if (items <= target->max_group_total && items <= target->max_group[0]
        && items * 4 <= target->local_bytes)
      conf_list_add (out, &self, "group/%u", items);
    else
      conf_list_absent (out, "the target has not so many items of a group, or local memory",
                        "group/%u", items);
  }
}

/* ---- flags of the device ---- */
static void
run_host_memory (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  for (gsize n = 1; n <= 1 << 20; n *= 32) {
    g_autoptr (GError) error = NULL;
    g_autofree guint8 *data = g_malloc (n);
    TinyBuffer *buffer = tiny_buffer_new (subject->device, n);
    for (gsize i = 0; i < n; i++)
      data[i] = (guint8) (i * 37 + n);
    if (tiny_buffer_upload (buffer, 0, data, n, &error)) {
      guint8 *there = tiny_buffer_map (buffer);
      if (conf_check (trial, there != NULL,
                      "a buffer of %" G_GSIZE_FORMAT " bytes has no address", n)) {
        if (tiny_buffer_begin_access (buffer, FALSE, 0, n, &error))
          conf_check (trial, memcmp (there, data, n) == 0, "what was uploaded is not there");
        if (error == NULL && tiny_buffer_begin_access (buffer, TRUE, 0, n, &error)) {
          memset (there, 0x3c, n);
          tiny_buffer_end_access (buffer, TRUE, 0, n, &error);
        }
        if (error == NULL)
          tiny_buffer_download (buffer, 0, data, n, &error);
        conf_check (trial, data[0] == 0x3c && data[n - 1] == 0x3c,
                    "what was written at the address does not come down");
      }
    }
    conf_check_error (trial, g_steal_pointer (&error), "copying");
    tiny_buffer_unref (buffer);
  }
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  const ConfCase mapped = { .run = run_host_memory };
  if (subject->target == NULL)
    return;
  if (tiny_device_get_info (subject->device)->flags & TINY_DEVICE_HOST_MEMORY)
    conf_list_add (out, &mapped, "host-memory");
  else
    conf_list_absent (out, "not declared", "host-memory");
  if (conf_only_claims (subject)) {
    conf_list_absent (out, CONF_NO_KERNELS, "target");
    return;
  }
  list_native (subject, out);
  list_made (subject, out);
  list_storage (subject, out);
  for (guint i = 0; i < G_N_ELEMENTS (expressions); i++) {
    const ConfCase self = { .run = run_expression, .data = &expressions[i] };
    conf_list_add (out, &self, "%s/%s",
                   expressions[i].flag == TINY_TARGET_REASSOCIATES ? "reassociates" : "flushes",
                   expressions[i].name);
  }
  list_limits (subject, out);
}

const ConfGroup conf_group_claims
    = { "claims", "what the target and the device declare is so, and nothing else is needed",
        list };
