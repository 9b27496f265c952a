/* SPDX-License-Identifier: MIT
 *
 * element.c: making the kernel of an op, running it on made data and judging each element. */
#include "element.h"

#include <math.h>
#include <string.h>

/* A prime, so that vectors, groups and unrolled copies end in a tail, and more than the pairs of all edges. */
enum { N_ELEMENTS = 1327, MAX_OPERANDS = 3 };

/* clang-format off */
const ConfLayout conf_layouts[] = {
  { .name = "", .lanes = 1 },
  { "scalar",  "none",                         { 1009 },       0, 1 },
  { "offset",  "none",                         { 1009 },       0, 1, 0, 3 },
  { "lanes2",  "lanes(0,%u)",                  { 29 },         0, 2 },
  { "lanes4",  "lanes(0,%u)",                  { 29 },         0, 4 },
  { "lanes8",  "lanes(0,%u)",                  { 29 },         0, 8 },
  { "lanes16", "lanes(0,%u)",                  { 29 },         0, 16 },
  { "lanes32", "lanes(0,%u)",                  { 29 },         0, 32 },
  { "lanes64", "lanes(0,%u)",                  { 29 },         0, 64 },
  { "tail4",   "pad(0,%u) lanes(0,%u)",        { 29 },         3, 4 },
  { "tail16",  "pad(0,%u) lanes(0,%u)",        { 29 },         9, 16 },
  { "rows16",  "lanes(1,%u)",           { 13, 3 },      0, 16, 0, 1 },
  { "copies",  "upcast(0,4)",                  { 1012 },       0, 1 },
  { "grid",    "grid(0,0)",                    { 1009 },       0, 1 },
  { "grid3",   "grid(0,0) grid(1,0) grid(2,0)", { 11, 13, 7 }, 0, 1 },
  { "group",   "group(0,32) grid(0,0)",        { 1024 },       0, 1, TINY_TARGET_GROUPS },
  { "group2",  "group(1,8) group(0,4) grid(0,0)", { 12, 88 },  0, 1, TINY_TARGET_GROUPS },
};
/* clang-format on */
const guint conf_n_layouts = G_N_ELEMENTS (conf_layouts);

/* Whether elements of @dtype are memory's own, and not parts of words that the core makes. */
static gboolean
is_stored (const TinyTarget *target, TinyDType dtype)
{
  return tiny_dtype_get_n_bytes (dtype) >= 4
         || (target->dtypes_storage & TINY_DTYPE_BIT (dtype)) != 0;
}

gboolean
conf_layout_fits (guint layout, const TinyTarget *target, TinyDType from, TinyDType to)
{
  const ConfLayout *self = &conf_layouts[layout];
  if (layout > CONF_LAYOUT_SCALAR && (!is_stored (target, from) || !is_stored (target, to)))
    return FALSE; /* the loop is over words then, and its optimisations are others */
  return (target->flags & self->needs) == self->needs && self->lanes <= target->max_lanes
         && (!(self->needs & TINY_TARGET_GROUPS) || target->max_group_total >= 32);
}

/* ---- the kernel ---- */
guint
conf_op_get_n (TinyOp op)
{
  return (guint) tiny_op_infos[op].most;
}

TinyDType
conf_op_get_result (TinyOp op, TinyDType from)
{
  return tiny_op_infos[op].op_class == TINY_OP_CLASS_COMPARE ? TINY_DTYPE_BOOL : from;
}

static TinyDType
operand_dtype (const ConfElementwise *self, guint slot)
{
  return self->op == TINY_OP_WHERE && slot == 0 ? TINY_DTYPE_BOOL : self->from;
}

/* The extents of the axes; gives how many there are. */
static guint
get_shape (const ConfElementwise *self, gint64 shape[3])
{
  const ConfLayout *layout = &conf_layouts[self->layout];
  guint rank = 0;
  if (layout->opts == NULL || self->n > 0) {
    /* One more than all there are, which is a tail. Mostly it is the same kernel for every class. */
    gsize needed = conf_class_get_n_needed (self->data, self->from, conf_op_get_n (self->op));
    shape[0] = (gint64) (self->n > 0 ? self->n : MAX (N_ELEMENTS, needed | 1));
    return 1;
  }
  while (rank < 3 && layout->shape[rank] > 0) {
    shape[rank] = layout->shape[rank];
    rank++;
  }
  if (layout->lanes > 1)
    shape[rank - 1] *= layout->lanes;
  shape[rank - 1] += layout->extra;
  return rank;
}

static gsize
get_n (const ConfElementwise *self)
{
  gint64 shape[3], n = 1;
  guint rank = get_shape (self, shape);
  for (guint i = 0; i < rank; i++)
    n *= shape[i];
  return (gsize) n;
}

char *
conf_elementwise_to_text (const ConfElementwise *self)
{
  gint64 shape[3];
  const guint rank = get_shape (self, shape), n_operands = conf_op_get_n (self->op);
  const gsize n = get_n (self);
  GString *text = g_string_new (NULL);
  g_autoptr (GString) index = g_string_new ("%i0");
  for (guint i = 0; i < rank; i++)
    g_string_append_printf (text,
                            "%%i%u = range.index{number=%u, kind=loop}(%" G_GINT64_FORMAT ")\n",
                            i, i, shape[i]);
  for (guint i = 1; i < rank; i++) {
    g_autofree char *outer = g_strdup (index->str);
    g_string_printf (index, "add.index(mul.index(%s, %" G_GINT64_FORMAT "), %%i%u)", outer,
                     shape[i], i);
  }
  g_string_append_printf (text, "%%at = %s\n", rank > 1 ? index->str : "add.index(%i0, 0)");
  for (guint i = 0; i < n_operands; i++) {
    const char *dtype = tiny_dtype_to_string (operand_dtype (self, i));
    g_string_append_printf (
        text, "%%x%u = load.%s(param.%s{slot=%u, shape=[%" G_GSIZE_FORMAT "]}, %%at)\n", i,
        dtype, dtype, i + 1, n);
  }
  const char *op = tiny_op_to_string (self->op), *to = tiny_dtype_to_string (self->to);
  g_string_append_printf (text,
                          "sink{name=\"%s_%s\"}(store(param.%s{slot=0, shape=[%" G_GSIZE_FORMAT
                          "]}, %%at, %s.%s(%s)))\n",
                          op, tiny_dtype_to_string (self->from), to, n, op, to,
                          n_operands == 1   ? "%x0"
                          : n_operands == 2 ? "%x0, %x1"
                                            : "%x0, %x1, %x2");
  return g_string_free (text, FALSE);
}

static char *
get_opts (const ConfElementwise *self)
{
  const ConfLayout *layout = &conf_layouts[self->layout];
  if (layout->opts == NULL)
    return NULL;
  g_autofree char *lanes = g_strdup_printf ("%u", layout->lanes);
  g_auto (GStrv) parts = g_strsplit (layout->opts, "%u", -1);
  return g_strjoinv (lanes, parts);
}

/* ---- running it ---- */
typedef struct {
  gsize n;
  guint n_operands;
  gint64 *operands[MAX_OPERANDS];
  ConfMemory memory[MAX_OPERANDS + 1]; /* the result first */
} Run;

static void
run_clear (Run *self)
{
  for (guint i = 0; i < MAX_OPERANDS; i++)
    g_free (self->operands[i]);
  for (guint i = 0; i <= MAX_OPERANDS; i++)
    g_free (self->memory[i].data);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Run, run_clear)

static void
set_memory (ConfMemory *self, TinyDType dtype, gsize n)
{
  self->n_bytes = n * tiny_dtype_get_n_bytes (dtype);
  self->data = g_malloc (self->n_bytes + 8);
  memset (self->data, 0x5a, self->n_bytes); /* a result that was not written is seen */
}

/* Operands of element @i for a run of one element. */
static void
run_pick (const Run *self, gsize i, Run *out)
{
  out->n = 1;
  out->n_operands = self->n_operands;
  for (guint k = 0; k < self->n_operands; k++)
    out->operands[k] = g_memdup2 (self->operands[k] + i, sizeof (gint64));
}

static const TinyTarget *
get_target (const ConfElementwise *self, const ConfSubject *subject)
{
  return self->target != NULL ? self->target : subject->target;
}

ConfKernel *
conf_elementwise_compile (const ConfElementwise *self,
                          const ConfSubject *subject,
                          GError **error)
{
  g_autofree char *text = conf_elementwise_to_text (self), *opts = get_opts (self);
  return conf_kernel_get_for (subject->device, get_target (self, subject), text, opts, error);
}

/* Every other NaN is one of ones only: what rounds by adding to the bits makes a number of it. A BITCAST shows
 * which one it was. */
static void
put_operand (const ConfElementwise *self, TinyDType dtype, guint8 *data, gsize i, gint64 value)
{
  conf_encode (dtype, data, i, value);
  if (!tiny_dtype_is_float (dtype) || self->op == TINY_OP_BITCAST || i % 2 == 0
      || !isnan (conf_to_double (value)))
    return;
  const gsize n = tiny_dtype_get_n_bytes (dtype);
  memset (data + i * n, 0xff, n);
  data[(i + 1) * n - 1] = 0x7f;
}

static gboolean
run_on (const ConfElementwise *self, const ConfSubject *subject, Run *run, GError **error)
{
  ConfKernel *kernel = conf_elementwise_compile (self, subject, error);
  if (kernel == NULL)
    return FALSE;
  set_memory (&run->memory[0], self->to, run->n);
  for (guint k = 0; k < run->n_operands; k++) {
    TinyDType dtype = operand_dtype (self, k);
    set_memory (&run->memory[k + 1], dtype, run->n);
    for (gsize i = 0; i < run->n; i++)
      put_operand (self, dtype, run->memory[k + 1].data, i, run->operands[k][i]);
  }
  return conf_kernel_run (kernel, run->memory, run->n_operands + 1,
                          conf_layouts[self->layout].offset, error);
}

/* ---- judging ---- */
typedef struct {
  gsize n_right, n_wrong, n_unspecified, first_wrong, last_wrong;
  double worst, most;
} Tally;

static ConfOperation
operation_at (const ConfElementwise *self, const Run *run, gsize i)
{
  ConfOperation operation
      = { .op = self->op, .from = self->from, .to = self->to, .n = run->n_operands };
  for (guint k = 0; k < run->n_operands; k++)
    operation.args[k] = run->operands[k][i];
  return operation;
}

static void
judge_all (const ConfElementwise *self,
           const ConfSubject *subject,
           const Run *run,
           Tally *tally)
{
  for (gsize i = 0; i < run->n; i++) {
    ConfOperation operation = operation_at (self, run, i);
    ConfJudgement judgement;
    conf_judge (&operation, get_target (self, subject),
                conf_decode (self->to, run->memory[0].data, i), &judgement);
    tally->most = judgement.most;
    if (judgement.verdict == CONF_UNSPECIFIED) {
      tally->n_unspecified++;
      continue;
    }
    /* What is no number at all is as far off as can be said in a report. */
    tally->worst = MAX (tally->worst, MIN (judgement.ulps, 0x1p1000));
    if (judgement.verdict == CONF_RIGHT) {
      tally->n_right++;
      continue;
    }
    if (tally->n_wrong++ == 0)
      tally->first_wrong = i;
    tally->last_wrong = i;
  }
}

static char *
describe (const ConfElementwise *self, const ConfSubject *subject, const Run *run, gsize i)
{
  static const char *const names[] = { "x", "y", "z" };
  ConfOperation operation = operation_at (self, run, i);
  ConfJudgement judgement;
  gint64 found = conf_decode (self->to, run->memory[0].data, i);
  conf_judge (&operation, get_target (self, subject), found, &judgement);
  GString *text = g_string_new (NULL);
  for (guint k = 0; k < run->n_operands; k++) {
    g_autofree char *value = conf_value_to_string (operand_dtype (self, k), operation.args[k]);
    g_string_append_printf (text, "%s%s = %s", k ? ", " : "", names[k], value);
  }
  g_autofree char *got = conf_value_to_string (self->to, found),
                  *wanted = conf_value_to_string (self->to, judgement.truth.bits);
  g_string_append_printf (text, ": got %s, wanted %s", got, wanted);
  if (tiny_dtype_is_float (self->to) && isfinite (judgement.ulps) && judgement.most > 0)
    g_string_append_printf (text, "; %.4g ULP off, %.4g times the bound of %g", judgement.ulps,
                            judgement.ulps / judgement.most, judgement.most);
  else if (tiny_dtype_is_float (self->to) && isfinite (judgement.ulps))
    g_string_append_printf (text, "; %.4g ULP off, must be rounded to nearest", judgement.ulps);
  return g_string_free (text, FALSE);
}

static void
attach (ConfTrial *trial, const ConfElementwise *self, const char *about)
{
  g_autofree char *kernel = conf_elementwise_to_text (self), *opts = get_opts (self);
  g_autofree char *text = g_strdup_printf ("// %s\n// optimisations: %s\n%s", about,
                                           opts != NULL ? opts : "by heuristic", kernel);
  conf_attach (trial, ".tir", text);
}

/* The smallest kernel with element @i that is still wrong. */
static void
attach_smallest (ConfTrial *trial,
                 const ConfElementwise *self,
                 const ConfSubject *subject,
                 const Run *run,
                 gsize i)
{
  ConfElementwise one = *self;
  g_auto (Run) alone = { 0 };
  Tally tally = { 0 };
  g_autofree char *about = describe (self, subject, run, i);
  one.n = 1, one.layout = CONF_LAYOUT_SCALAR;
  run_pick (run, i, &alone);
  if (run_on (&one, subject, &alone, NULL))
    judge_all (&one, subject, &alone, &tally);
  attach (trial, tally.n_wrong > 0 ? &one : self, about);
}

void
conf_elementwise_check (ConfTrial *trial,
                        const ConfSubject *subject,
                        const ConfElementwise *self)
{
  g_autoptr (GError) error = NULL;
  g_auto (Run) run = { .n = get_n (self), .n_operands = conf_op_get_n (self->op) };
  for (guint k = 0; k < run.n_operands; k++) {
    run.operands[k] = g_new (gint64, run.n + 1);
    conf_data_fill (self->data, self->op, self->from, k, subject->seed, run.operands[k], run.n);
  }
  if (!run_on (self, subject, &run, &error)) {
    conf_check_error (trial, g_steal_pointer (&error), tiny_op_to_string (self->op));
    attach (trial, self, "cannot be compiled or run");
    return;
  }
  Tally tally = { 0 };
  judge_all (self, subject, &run, &tally);
  if (tiny_dtype_is_float (self->to) && tally.n_right + tally.n_wrong > 0)
    conf_record_error (trial, (TinyInstrOp) tiny_op_infos[self->op].instr, self->from,
                       tally.worst, tally.most, "ulp");
  if (tally.n_wrong > 0) {
    g_autofree char *first = describe (self, subject, &run, tally.first_wrong);
    conf_fail (trial,
               "%s of %s: %" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT
               " elements wrong, the first at %" G_GSIZE_FORMAT ", the last at %" G_GSIZE_FORMAT
               ": %s",
               tiny_op_to_string (self->op), tiny_dtype_to_string (self->from), tally.n_wrong,
               run.n, tally.first_wrong, tally.last_wrong, first);
    attach_smallest (trial, self, subject, &run, tally.first_wrong);
  }
  conf_check (trial, tally.n_right + tally.n_wrong > 0,
              "nothing was checked: the contract says of no element what it is");
}
