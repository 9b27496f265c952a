/* SPDX-License-Identifier: MIT
 *
 * random-kernel.c: drawing, writing, running and simplifying random kernels.
 *
 * What a step is is taken modulo what there is, as in program.c. Integers wrap alike everywhere, and sums, products and
 * comparisons of f32 are rounded alike, so a device has to agree with REF to the bit; a NaN is any NaN. */
#include "random-kernel.h"

#include <string.h>

#include "base/tiny-error.h"
#include "data.h"
#include "ir/tiny-dtype.h"
#include "oracle.h"

static const TinyDType dtypes[]
    = { TINY_DTYPE_I32, TINY_DTYPE_U32, TINY_DTYPE_U8, TINY_DTYPE_I16,
        TINY_DTYPE_I64, TINY_DTYPE_F32, TINY_DTYPE_I8, TINY_DTYPE_U64 };

/* In each $d is the dtype, $0 $1 $2 the operands in it, $n a number. */
static const struct {
  const char *integer, *real;
} rows[] = {
  { "add.$d($0, $1)", "add.$d($0, $1)" },
  { "sub.$d($0, $1)", "sub.$d($0, $1)" },
  { "mul.$d($0, $1)", "mul.$d($0, $1)" },
  { "where.$d(cmplt.bool($0, $1), $2, $0)", "where.$d(cmplt.bool($0, $1), $2, $0)" },
  { "where.$d(cmpne.bool($0, $1), $1, $2)", "where.$d(cmpne.bool($0, $1), $1, $2)" },
  { "max.$d($0, $1)", "neg.$d($0)" },
  { "neg.$d($0)", "neg.$d($0)" },
  { "and.$d($0, $1)", "add.$d($0, $1)" },
  { "or.$d($0, $1)", "sub.$d($0, $1)" },
  { "xor.$d($0, $1)", "mul.$d($0, $1)" },
  { "shl.$d($0, and.$d($1, 7))", "mul.$d($0, $n)" },
  { "shr.$d($0, and.$d($1, 7))", "add.$d($0, $n)" },
  { "idiv.$d($0, or.$d($1, 1))", "mul.$d($0, $1)" },
  { "mod.$d($0, or.$d($1, 1))", "sub.$d($0, $n)" },
  { "mulacc.$d($0, $1, $2)", "sub.$d($0, $2)" },
  { "add.$d($0, $n)", "add.$d($0, $n)" },
  { "idiv.$d($0, $n)", "mul.$d($0, $n)" },
  { "mod.$d($0, $n)", "sub.$d($0, $n)" },
};

static const char *const ways[] = {
  "none",
  NULL,
  "grid(0,0)",
  "pad(0,4) upcast(0,4)",
  "pad(0,4) lanes(0,4)",
  "pad(0,16) lanes(0,16)",
  "pad(1,8) lanes(1,8) grid(0,0)",
  "grid(0,0) grid(1,0) grid(2,0)",
  "pad(0,8) group(0,8) grid(0,0)",
  "pad(1,4) upcast(1,4) pad(0,8) lanes(0,8)",
};

/* ---- drawing ---- */
void
random_kernel_generate (RandomKernel *self, guint64 seed, gboolean no_floats)
{
  static const guint8 extents[] = { 1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 32, 33, 64 };
  const guint32 seeds[] = { (guint32) seed, (guint32) (seed >> 32), 7 };
  g_autoptr (GRand) random = g_rand_new_with_seed_array (seeds, 3);
  *self = (RandomKernel){ .n
                          = RANDOM_KERNEL_LOADS + 1
                            + g_rand_int (random) % (RANDOM_KERNEL_STEPS - RANDOM_KERNEL_LOADS),
                          .way = (guint8) (g_rand_int (random) % G_N_ELEMENTS (ways)),
                          .reduce = (guint8) (g_rand_int (random) % 3),
                          .no_floats = no_floats,
                          .seed = seed };
  const guint rank = 1 + g_rand_int (random) % 3;
  for (guint i = 0; i < rank; i++)
    self->extents[i] = extents[g_rand_int (random) % G_N_ELEMENTS (extents)];
  if (g_rand_int (random) % 3 == 0)
    self->n_reduced = extents[1 + g_rand_int (random) % (G_N_ELEMENTS (extents) - 1)];
  const guint favourite = g_rand_int (random);
  for (guint i = 0; i < self->n; i++) {
    RandomStep *step = &self->steps[i];
    step->op = (guint8) g_rand_int (random);
    step->dtype = (guint8) (g_rand_int (random) % 3 == 0 ? g_rand_int (random) : favourite);
    step->number = g_rand_int (random);
    for (guint k = 0; k < 3; k++)
      step->from[k] = (guint8) (k == 0 && i > 0 ? i - 1 : g_rand_int (random));
  }
}

/* ---- writing ---- */
static TinyDType
dtype_of (const RandomKernel *self, guint step)
{
  TinyDType dtype = dtypes[self->steps[step].dtype % G_N_ELEMENTS (dtypes)];
  return dtype == TINY_DTYPE_F32 && self->no_floats ? TINY_DTYPE_I32 : dtype;
}

/* Whole memory of one of the axes' products, and the summed one. */
static gsize
count (const RandomKernel *self, gboolean reduced)
{
  gsize n = reduced && self->n_reduced > 0 ? self->n_reduced : 1;
  for (guint i = 0; i < 3; i++)
    n *= MAX (self->extents[i], 1);
  return n;
}

gsize
random_kernel_count (const RandomKernel *self)
{
  return count (self, TRUE);
}

void
random_kernel_shorten (RandomKernel *self, gsize most)
{
  while (random_kernel_count (self) > MAX (most, 1)) {
    guint8 *longest = &self->n_reduced;
    for (guint i = 0; i < G_N_ELEMENTS (self->extents); i++)
      longest = self->extents[i] > *longest ? &self->extents[i] : longest;
    *longest /= 2;
  }
}

/* Step @of as a value of @dtype. A float becomes an integer by its sign: others may be out of range. */
static void
append_operand (const RandomKernel *self, GString *text, guint of, TinyDType dtype)
{
  const TinyDType from = dtype_of (self, of);
  const char *to = tiny_dtype_to_string (dtype);
  if (from == dtype)
    g_string_append_printf (text, "%%v%u", of);
  else if (from == TINY_DTYPE_F32)
    g_string_append_printf (text, "cast.%s(cmplt.bool(%%v%u, 0.0))", to, of);
  else
    g_string_append_printf (text, "cast.%s(%%v%u)", to, of);
}

static void
append_step (const RandomKernel *self, GString *text, guint i)
{
  const RandomStep *step = &self->steps[i];
  const TinyDType dtype = dtype_of (self, i);
  const gboolean is_real = dtype == TINY_DTYPE_F32;
  const char *p = is_real ? rows[step->op % G_N_ELEMENTS (rows)].real
                          : rows[step->op % G_N_ELEMENTS (rows)].integer;
  g_string_append_printf (text, "%%v%u = ", i);
  for (; *p; p++) {
    if (*p != '$')
      g_string_append_c (text, *p);
    else if (*++p == 'd')
      g_string_append (text, tiny_dtype_to_string (dtype));
    else if (*p == 'n')
      g_string_append_printf (text, is_real ? "%u.5" : "%u", 1 + step->number % 9);
    else
      append_operand (self, text, step->from[*p - '0'] % i, dtype);
  }
  g_string_append_c (text, '\n');
}

/* Loads are of all that there is in order, backwards, or of one row for all. */
static void
append_load (const RandomKernel *self, GString *text, guint i)
{
  const char *dtype = tiny_dtype_to_string (dtype_of (self, i));
  const gsize n = count (self, TRUE);
  g_string_append_printf (text,
                          "%%v%u = load.%s(param.%s{slot=%u, shape=[%" G_GSIZE_FORMAT "]}, ", i,
                          dtype, dtype, i + 1, n);
  switch (self->steps[i].number % 4) {
  case 0:
    g_string_append_printf (text, "add.index(mul.index(%%at, -1), %" G_GSIZE_FORMAT "))\n",
                            n - 1);
    return;
  case 1:
    g_string_append (text, "%i0)\n");
    return;
  default:
    g_string_append (text, "%at)\n");
    return;
  }
}

static void
append_loops (const RandomKernel *self, GString *text)
{
  g_autoptr (GString) index = g_string_new (NULL);
  for (guint i = 0; i < 3; i++) {
    if (self->extents[i] == 0)
      continue;
    g_string_append_printf (text, "%%i%u = range.index{number=%u, kind=loop}(%u)\n", i, i,
                            self->extents[i]);
    g_autofree char *outer = g_strdup (index->str);
    if (i == 0)
      g_string_assign (index, "add.index(%i0, 0)");
    else
      g_string_printf (index, "add.index(mul.index(%s, %u), %%i%u)", outer, self->extents[i],
                       i);
  }
  g_string_append_printf (text, "%%to = %s\n", index->str);
  if (self->n_reduced > 0)
    g_string_append_printf (text,
                            "%%k = range.index{number=3, kind=reduce}(%u)\n"
                            "%%at = add.index(mul.index(%%to, %u), %%k)\n",
                            self->n_reduced, self->n_reduced);
  else
    g_string_append (text, "%at = add.index(%to, 0)\n");
}

/* Floats are not summed: their order is the device's. */
static TinyDType
result_dtype (const RandomKernel *self)
{
  TinyDType dtype = dtype_of (self, self->n - 1);
  return self->n_reduced > 0 && dtype == TINY_DTYPE_F32 ? TINY_DTYPE_I32 : dtype;
}

char *
random_kernel_to_text (const RandomKernel *self)
{
  static const char *const reduces[] = { "add", "max", "mul" };
  GString *text = g_string_new (NULL);
  append_loops (self, text);
  for (guint i = 0; i < self->n; i++)
    if (i < RANDOM_KERNEL_LOADS)
      append_load (self, text, i);
    else
      append_step (self, text, i);
  const char *dtype = tiny_dtype_to_string (result_dtype (self));
  g_string_append (text, "%value = ");
  if (self->n_reduced > 0)
    g_string_append_printf (text, "reduce.%s{op=%s}(", dtype, reduces[self->reduce % 3]);
  append_operand (self, text, self->n - 1, result_dtype (self));
  /* What no step uses is a parameter all the same. */
  g_string_append_printf (
      text,
      "%s\nsink{name=\"random\"}(store(param.%s{slot=0, shape=[%" G_GSIZE_FORMAT
      "]}, %%to, %%value)",
      self->n_reduced > 0 ? ", %k)" : "", dtype, count (self, FALSE));
  g_string_append (text, ")\n");
  return g_string_free (text, FALSE);
}

/* ---- running ---- */
static ConfKernel *
compile (const RandomKernel *self, TinyDevice *device, const char *opts, GError **error)
{
  g_autofree char *text = random_kernel_to_text (self);
  g_autoptr (GError) unfit = NULL;
  ConfKernel *kernel = conf_kernel_get (device, text, opts, &unfit);
  if (kernel == NULL && g_error_matches (unfit, TINY_ERROR, TINY_ERROR_INVALID) && opts != NULL)
    return conf_kernel_get (device, text, NULL, error); /* these do not apply */
  if (kernel == NULL)
    g_propagate_error (error, g_steal_pointer (&unfit));
  return kernel;
}

double
random_kernel_count_work (const RandomKernel *self, TinyDevice *device)
{
  const ConfKernel *kernel
      = compile (self, device, ways[self->way % G_N_ELEMENTS (ways)], NULL);
  return kernel != NULL ? conf_kernel_count_work (kernel) : 0;
}

static gboolean
run_on (const RandomKernel *self,
        TinyDevice *device,
        const char *opts,
        ConfMemory *out,
        guint64 *out_ns,
        GError **error)
{
  ConfKernel *kernel = compile (self, device, opts, error);
  ConfMemory memory[RANDOM_KERNEL_LOADS + 1] = { { 0 } };
  const gsize n = count (self, TRUE);
  if (kernel == NULL)
    return FALSE;
  memory[0].n_bytes = count (self, FALSE) * tiny_dtype_get_n_bytes (result_dtype (self));
  memory[0].data = g_malloc0 (memory[0].n_bytes + 8);
  for (guint i = 0; i < RANDOM_KERNEL_LOADS; i++) {
    const TinyDType dtype = dtype_of (self, i);
    g_autofree gint64 *values = g_new (gint64, n + 1);
    conf_data_fill (self->seed >> i & 1 ? CONF_INTEGER : CONF_SIGNED, TINY_OP_ADD, dtype, i,
                    self->seed, values, n);
    memory[i + 1].n_bytes = n * tiny_dtype_get_n_bytes (dtype);
    memory[i + 1].data = g_malloc (memory[i + 1].n_bytes + 8);
    for (gsize k = 0; k < n; k++)
      conf_encode (dtype, memory[i + 1].data, k, values[k]);
  }
  gboolean good = conf_kernel_run (kernel, memory, RANDOM_KERNEL_LOADS + 1, 0, error);
  for (guint i = 1; i <= RANDOM_KERNEL_LOADS; i++)
    g_free (memory[i].data);
  *out = memory[0];
  if (out_ns != NULL)
    *out_ns = conf_kernel_get_ns (kernel);
  return good;
}

char *
random_kernel_run (const RandomKernel *self,
                   TinyDevice *device,
                   TinyDevice *reference,
                   guint64 *out_ns)
{
  g_autoptr (GError) error = NULL;
  ConfMemory found = { 0 }, wanted = { 0 };
  char *problem = NULL;
  const TinyDType dtype = result_dtype (self);
  const char *opts = ways[self->way % G_N_ELEMENTS (ways)];
  if (!run_on (self, reference, "none", &wanted, NULL, &error))
    problem = g_strdup_printf ("on the reference: %s", error->message);
  else if (!run_on (self, device, opts, &found, out_ns, &error))
    problem = g_strdup_printf ("error: %s", error->message);
  for (gsize i = 0; problem == NULL && i < count (self, FALSE); i++) {
    gint64 got = conf_decode (dtype, found.data, i),
           right = conf_decode (dtype, wanted.data, i);
    if (got == right || (conf_is_nan (dtype, got) && conf_is_nan (dtype, right)))
      continue;
    g_autofree char *a = conf_value_to_string (dtype, got),
                    *b = conf_value_to_string (dtype, right);
    problem = g_strdup_printf ("element %" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT
                               " is %s, wanted %s, with optimisations %s",
                               i, count (self, FALSE), a, b, opts ? opts : "by heuristic");
  }
  g_free (found.data);
  g_free (wanted.data);
  return problem;
}

/* ---- simplifying ---- */
gboolean
random_kernel_simplify (const RandomKernel *self, guint i, RandomKernel *out)
{
  enum { WAYS = 8 };
  *out = *self;
  if (i == 0)
    out->n = MAX (RANDOM_KERNEL_LOADS, self->n - 1);
  else if (i == 1)
    out->way = 0;
  else if (i == 2)
    out->n_reduced = 0;
  else if (i == 3)
    out->n_reduced /= 2;
  else if (i < 7) /* the last axes go first */
    out->extents[6 - i] = i == 6 ? MAX (1, self->extents[0] / 2) : 0;
  else {
    const guint step = (i - 7) / WAYS, way = (i - 7) % WAYS;
    if (step >= self->n)
      return FALSE;
    RandomStep *s = &out->steps[step];
    if (way < 3)
      s->from[way] = step > 0 ? (guint8) (s->from[way] % step / 2) : 0;
    else if (way == 3)
      s->op = 0;
    else if (way == 4)
      s->dtype = 0;
    else if (way == 5)
      s->number = 3;
    else if (way == 6 && step > RANDOM_KERNEL_LOADS)
      *s = self->steps[step - 1];
    else if (way == 7)
      s->dtype = self->steps[self->n - 1].dtype;
  }
  if (out->extents[1] == 0)
    out->extents[2] = 0;
  return TRUE;
}
