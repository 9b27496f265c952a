/* SPDX-License-Identifier: MIT
 *
 * group-units.c: every matrix unit that a target has, against the formula, element by element of the fragments of
 * every work-item.
 *
 * A program reads fragments, which the host has laid out by the row's lists, and writes fragments. Whole numbers of few bits are
 * exact in every dtype, however they are added, so that an element that stands for another is seen at once. */
#include <math.h>
#include <string.h>

#include "exec.h"
#include "ir/tiny-dtype.h"
#include "ir/tiny-unit.h"
#include "oracle.h"

enum { MOST_SETS = 8, N_BITS = G_N_ELEMENTS (((TinyUnit *) 0)->a) };

/* All fragments of one matrix and number, and what they hold: of each unit's work-items a matrix. */
typedef struct {
  TinyUnitMatrix matrix;
  guint32 value; /* the instruction */
  double *host;  /* by matrix, row and column */
  double *size;  /* of c: the sum of the sizes of what was added */
} Fragment;

typedef struct {
  const TinyUnit *unit;
  ConfRig rig;
  const ConfSubject *subject;
  guint n_items, n_matrices; /* work-items of the group; units that they are */
  GRand *random;
  gboolean is_wild;  /* numbers that round */
  guint8 *memory[4]; /* a, b, c, and what is written */
  guint32 params[4];
  guint n_sets[4];
  Fragment all[64]; /* owned */
  guint n_all;
  const Fragment *stored[MOST_SETS];
  guint32 item; /* the number of the work-item */
} Units;

static const guint8 *
list_of (const TinyUnit *unit, TinyUnitMatrix matrix)
{
  return matrix == TINY_UNIT_A ? unit->a : matrix == TINY_UNIT_B ? unit->b : unit->c;
}

/* Rows and columns of a matrix, as powers of two. */
static void
get_extents (const TinyUnit *unit, TinyUnitMatrix matrix, guint *out_rows, guint *out_columns)
{
  *out_rows = matrix == TINY_UNIT_B ? unit->k_bits : unit->m_bits;
  *out_columns = matrix == TINY_UNIT_A ? unit->k_bits : unit->n_bits;
}

static guint
count_elements (const TinyUnit *unit, TinyUnitMatrix matrix)
{
  guint rows, columns;
  get_extents (unit, matrix, &rows, &columns);
  return 1u << (rows + columns);
}

/* Where element @element of work-item @item is in its matrix: row * columns + column. Made from the header's
 * words, not from the kit's function. */
static guint
find_element (const TinyUnit *unit, TinyUnitMatrix matrix, guint item, guint element)
{
  const guint8 *list = list_of (unit, matrix);
  const guint row_axis = matrix == TINY_UNIT_B ? TINY_UNIT_K : TINY_UNIT_M;
  guint rows, columns, row = 0, column = 0;
  get_extents (unit, matrix, &rows, &columns);
  for (guint i = 0; i < N_BITS && list[i] != 0; i++) {
    const guint bit
        = i < unit->n_thread_bits ? item >> i & 1 : element >> (i - unit->n_thread_bits) & 1;
    if ((list[i] & 0xf0) == TINY_UNIT_SAME)
      continue;
    guint *number = (list[i] & 0xf0) == row_axis ? &row : &column;
    *number += bit << (list[i] & 0x0f);
  }
  return (row << columns) + column;
}

static gsize
bytes_of_set (const Units *self, TinyUnitMatrix matrix)
{
  return (gsize) self->n_items * tiny_unit_get_lanes (self->unit, matrix)
         * tiny_dtype_get_n_bytes (tiny_unit_get_dtype (self->unit, matrix));
}

/* ---- the program ---- */
static gboolean
units_begin (Units *self, ConfTrial *trial, const ConfSubject *subject, const ConfCase *it)
{
  static const guint32 flags[]
      = { TINY_PARAM_READ, TINY_PARAM_READ, TINY_PARAM_READ, TINY_PARAM_WRITE };
  *self = (Units){ .unit = &subject->target->units[it->args[0]], .subject = subject };
  if (!conf_rig_begin (&self->rig, trial, subject, "unit"))
    return FALSE;
  ConfScript *script = &self->rig.script;
  const guint n_together = 1u << self->unit->n_thread_bits;
  const TinyTarget *target = subject->target;
  const gboolean has_two = n_together > 1 && 2 * n_together <= target->max_group[0]
                           && 2 * n_together <= target->max_group_total;
  self->n_items = has_two ? 2 * n_together : n_together;
  self->n_matrices = self->n_items / n_together;
  self->random = g_rand_new_with_seed ((guint32) it->args[0] + 1);
  if (self->n_items > 1)
    conf_script_set_group (script, 0, self->n_items);
  for (guint i = 0; i < 4; i++) {
    const TinyUnitMatrix matrix = MIN (i, TINY_UNIT_C);
    self->memory[i] = g_malloc (MOST_SETS * bytes_of_set (self, matrix));
    memset (self->memory[i], 0x5a, MOST_SETS * bytes_of_set (self, matrix));
    self->params[i] = conf_emit_param (
        script, tiny_unit_get_dtype (self->unit, matrix), flags[i],
        (guint64) MOST_SETS * self->n_items * tiny_unit_get_lanes (self->unit, matrix));
  }
  self->item = self->n_items > 1 ? conf_emit_arg (script, TINY_INSTR_GROUP, TINY_DTYPE_I32, 0)
                                 : conf_emit_int (script, TINY_DTYPE_I32, 0);
  return TRUE;
}

static void
units_end (Units *self)
{
  for (guint i = 0; i < 4; i++)
    g_free (self->memory[i]);
  for (guint i = 0; i < self->n_all; i++) {
    g_free (self->all[i].host);
    g_free (self->all[i].size);
  }
  g_clear_pointer (&self->random, g_rand_free);
  conf_rig_end (&self->rig);
}

static Fragment *
add_fragment (Units *self, TinyUnitMatrix matrix, guint32 value)
{
  const gsize n = (gsize) self->n_matrices * count_elements (self->unit, matrix);
  g_assert (self->n_all < G_N_ELEMENTS (self->all));
  self->all[self->n_all] = (Fragment){ matrix, value, g_new0 (double, n), g_new0 (double, n) };
  return &self->all[self->n_all++];
}

/* Where this work-item's fragment number @set, a value of i32, begins. */
static guint32
emit_place (Units *self, TinyUnitMatrix matrix, guint32 set)
{
  ConfScript *script = &self->rig.script;
  guint32 items = conf_emit_int (script, TINY_DTYPE_I32, self->n_items);
  guint32 lanes
      = conf_emit_int (script, TINY_DTYPE_I32, tiny_unit_get_lanes (self->unit, matrix));
  guint32 first = CONF_EMIT (script, MUL, I32, set, items);
  guint32 number = CONF_EMIT (script, ADD, I32, first, self->item);
  return CONF_EMIT (script, MUL, I32, number, lanes);
}

static guint32
emit_load (Units *self, TinyUnitMatrix matrix, guint32 set)
{
  const guint32 sources[] = { self->params[matrix], emit_place (self, matrix, set) };
  return conf_emit_lanes (&self->rig.script, TINY_INSTR_LOAD,
                          tiny_unit_get_dtype (self->unit, matrix),
                          tiny_unit_get_lanes (self->unit, matrix), 2, sources);
}

static double
draw (Units *self, TinyUnitMatrix matrix)
{
  const TinyDType dtype = tiny_unit_get_dtype (self->unit, matrix);
  if (self->is_wild && tiny_dtype_is_float (dtype))
    return ldexp (g_rand_double_range (self->random, -1, 1),
                  g_rand_int_range (self->random, -6, 7));
  if (self->is_wild && matrix != TINY_UNIT_C && tiny_dtype_get_n_bytes (dtype) == 1)
    return dtype == TINY_DTYPE_U8 ? g_rand_int_range (self->random, 0, 256)
                                  : g_rand_int_range (self->random, -128, 128);
  if (self->is_wild && matrix == TINY_UNIT_C && tiny_dtype_get_n_bytes (dtype) == 4) {
    const guint32 bits = g_rand_int (self->random);
    return dtype == TINY_DTYPE_U32 ? (double) bits : (double) (gint32) bits;
  }
  /* Sums of these are exact where they have 8 bits, and c's floats have. */
  const TinyDType sums = (TinyDType) self->unit->c_dtype;
  const gboolean is_short = tiny_dtype_is_float (sums) && tiny_dtype_get_n_bytes (sums) <= 2;
  const gint most = is_short ? 1 : 7;
  return g_rand_int_range (self->random, tiny_dtype_is_unsigned (dtype) ? 0 : -most, most + 1);
}

/* New numbers for fragment number @set of the matrix, in memory and for the host. */
static Fragment *
fill_set (Units *self, TinyUnitMatrix matrix, guint set)
{
  Fragment *fragment = add_fragment (self, matrix, 0);
  const TinyUnit *unit = self->unit;
  const guint n = count_elements (unit, matrix), lanes = tiny_unit_get_lanes (unit, matrix),
              n_together = 1u << unit->n_thread_bits;
  const TinyDType dtype = tiny_unit_get_dtype (unit, matrix);
  guint8 *memory = self->memory[matrix] + set * bytes_of_set (self, matrix);
  for (guint i = 0; i < n * self->n_matrices; i++)
    fragment->host[i] = draw (self, matrix);
  for (guint item = 0; item < self->n_items; item++)
    for (guint i = 0; i < lanes; i++) {
      double *number = &fragment->host[item / n_together * n
                                       + find_element (unit, matrix, item % n_together, i)];
      const gsize at = (gsize) item * lanes + i;
      conf_encode (dtype, memory, at,
                   tiny_dtype_is_float (dtype) ? conf_from_double (*number) : (gint64) *number);
      if (tiny_dtype_is_float (dtype)) /* as the dtype has it */
        *number = conf_to_double (conf_decode (dtype, memory, at));
    }
  for (guint i = 0; i < n * self->n_matrices; i++)
    fragment->size[i] = fabs (fragment->host[i]);
  return fragment;
}

/* A new fragment, read. */
static Fragment *
emit_new (Units *self, TinyUnitMatrix matrix)
{
  const guint set = self->n_sets[matrix]++;
  Fragment *fragment = fill_set (self, matrix, set);
  fragment->value
      = emit_load (self, matrix, conf_emit_int (&self->rig.script, TINY_DTYPE_I32, set));
  return fragment;
}

static guint32
emit_product (Units *self, guint32 a, guint32 b, guint32 c)
{
  const guint32 sources[] = { a, b, c };
  guint32 value
      = conf_emit_lanes (&self->rig.script, TINY_INSTR_UNIT, (TinyDType) self->unit->c_dtype,
                         tiny_unit_get_lanes (self->unit, TINY_UNIT_C), 3, sources);
  const gint64 number = self->unit - self->subject->target->units;
  g_array_index (self->rig.script.instrs, TinyInstr, value).arg = number;
  return value;
}

/* @to becomes c + a b. */
static void
multiply (
    const Units *self, const Fragment *a, const Fragment *b, const Fragment *c, Fragment *to)
{
  const TinyUnit *unit = self->unit;
  const guint m_bits = unit->m_bits, n_bits = unit->n_bits, k_bits = unit->k_bits;
  for (guint matrix = 0; matrix < self->n_matrices; matrix++)
    for (guint i = 0; i < 1u << (m_bits + n_bits); i++) {
      const guint row = i >> n_bits, column = i & ((1u << n_bits) - 1);
      const gsize at = ((gsize) matrix << (m_bits + n_bits)) + i;
      double sum = c->host[at], size = c->size[at];
      for (guint k = 0; k < 1u << k_bits; k++) {
        const double product
            = a->host[(matrix << (m_bits + k_bits)) + (row << k_bits) + k]
              * b->host[(matrix << (k_bits + n_bits)) + (k << n_bits) + column];
        sum += product;
        size += fabs (product);
      }
      to->host[at] = sum;
      to->size[at] = size;
    }
}

static Fragment *
emit_unit (Units *self, const Fragment *a, const Fragment *b, const Fragment *c)
{
  Fragment *result
      = add_fragment (self, TINY_UNIT_C, emit_product (self, a->value, b->value, c->value));
  multiply (self, a, b, c, result);
  return result;
}

static void
emit_store_at (Units *self, guint32 value, const Fragment *is)
{
  const guint set = self->n_sets[3]++;
  ConfScript *script = &self->rig.script;
  const guint32 at
      = emit_place (self, TINY_UNIT_C, conf_emit_int (script, TINY_DTYPE_I32, set));
  const guint32 sources[] = { self->params[3], at, value };
  conf_emit_lanes (script, TINY_INSTR_STORE, TINY_DTYPE_VOID,
                   tiny_unit_get_lanes (self->unit, TINY_UNIT_C), 3, sources);
  self->stored[set] = is;
}

static void
emit_store (Units *self, const Fragment *is)
{
  emit_store_at (self, is->value, is);
}

/* A register of c's. */
static guint32
emit_register (Units *self)
{
  return conf_emit_lanes (&self->rig.script, TINY_INSTR_REGISTER,
                          (TinyDType) self->unit->c_dtype,
                          tiny_unit_get_lanes (self->unit, TINY_UNIT_C), 0, NULL);
}

static guint32
emit_get (Units *self, guint32 place)
{
  return conf_emit_lanes (&self->rig.script, TINY_INSTR_LOAD, (TinyDType) self->unit->c_dtype,
                          tiny_unit_get_lanes (self->unit, TINY_UNIT_C), 1, &place);
}

static void
emit_set (Units *self, guint32 place, guint32 value)
{
  const guint32 sources[] = { place, value };
  conf_emit_lanes (&self->rig.script, TINY_INSTR_STORE, TINY_DTYPE_VOID,
                   tiny_unit_get_lanes (self->unit, TINY_UNIT_C), 2, sources);
}

/* ---- what came ---- */

/* How far a sum may be off that adds up to @size: a rounding for each number. */
static double
get_bound (const Units *self, double size)
{
  const TinyDType dtype = (TinyDType) self->unit->c_dtype;
  if (!self->is_wild || !tiny_dtype_is_float (dtype))
    return 0;
  const double n = 1 + (1u << self->unit->k_bits);
  return n * (double) conf_ulp_of (dtype, 1) * size + conf_least_normal (dtype);
}

/* An integer as it wraps. */
static double
wrap (TinyDType dtype, double value)
{
  const double period = ldexp (1, (int) (8 * tiny_dtype_get_n_bytes (dtype)));
  value -= floor (value / period) * period;
  return !tiny_dtype_is_unsigned (dtype) && value >= period / 2 ? value - period : value;
}

static gboolean
check_set (Units *self, guint set)
{
  const TinyUnit *unit = self->unit;
  const TinyDType dtype = (TinyDType) unit->c_dtype;
  const guint lanes = tiny_unit_get_lanes (unit, TINY_UNIT_C),
              n_together = 1u << unit->n_thread_bits, n = count_elements (unit, TINY_UNIT_C);
  const guint8 *memory = self->memory[3] + set * bytes_of_set (self, TINY_UNIT_C);
  for (guint item = 0; item < self->n_items; item++)
    for (guint i = 0; i < lanes; i++) {
      const guint at = find_element (unit, TINY_UNIT_C, item % n_together, i);
      const gsize number = item / n_together * n + at;
      const gint64 bits = conf_decode (dtype, memory, (gsize) item * lanes + i);
      const gboolean is_float = tiny_dtype_is_float (dtype);
      const double got = is_float ? conf_to_double (bits) : (double) bits;
      const double host = self->stored[set]->host[number];
      const double wanted = is_float ? host : wrap (dtype, host);
      const double bound = get_bound (self, self->stored[set]->size[number]);
      if (!conf_check (
              self->rig.raw.trial, fabs (got - wanted) <= bound,
              "result %u, work-item %u, element %u (row %u, column %u) is %.9g, and %.9g "
              "is right, or %.3g off that",
              set, item, i, at >> unit->n_bits, at & ((1u << unit->n_bits) - 1), got, wanted,
              bound))
        return FALSE;
    }
  return TRUE;
}

static void
run_and_check (Units *self)
{
  guint32 *words[4];
  gsize sizes[4];
  for (guint i = 0; i < 4; i++) {
    words[i] = (guint32 *) (gpointer) self->memory[i];
    sizes[i] = MOST_SETS * bytes_of_set (self, MIN (i, TINY_UNIT_C)) / sizeof (guint32);
  }
  if (!conf_rig_run (&self->rig, self->subject, 4, words, sizes, NULL))
    return;
  for (guint set = 0; set < self->n_sets[3]; set++)
    if (!check_set (self, set))
      return;
}

/* ---- the programs ---- */
static void
emit_one (Units *self)
{
  const Fragment *a = emit_new (self, TINY_UNIT_A), *b = emit_new (self, TINY_UNIT_B);
  emit_store (self, emit_unit (self, a, b, emit_new (self, TINY_UNIT_C)));
}

static void
emit_wild (Units *self)
{
  self->is_wild = TRUE;
  emit_one (self);
  emit_one (self);
}

/* C stays, and so does the sum while it is added to. */
static void
emit_kept (Units *self)
{
  const Fragment *a = emit_new (self, TINY_UNIT_A), *b = emit_new (self, TINY_UNIT_B),
                 *c = emit_new (self, TINY_UNIT_C);
  const Fragment *first = emit_unit (self, a, b, c), *second = emit_unit (self, a, b, first);
  emit_store (self, second);
  emit_store (self, c);
  emit_store (self, first);
}

/* A constant for each matrix in turn. */
static void
emit_constants (Units *self)
{
  const double numbers[] = { 3, 2, 0, 5 };
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++) {
    const Fragment *of[TINY_N_UNIT_MATRICES];
    for (TinyUnitMatrix matrix = 0; matrix < TINY_N_UNIT_MATRICES; matrix++) {
      if (matrix != MIN (i, TINY_UNIT_C)) {
        of[matrix] = emit_new (self, matrix);
        continue;
      }
      const TinyDType dtype = tiny_unit_get_dtype (self->unit, matrix);
      guint32 value = conf_emit_lanes (&self->rig.script, TINY_INSTR_CONST, dtype,
                                       tiny_unit_get_lanes (self->unit, matrix), 0, NULL);
      g_array_index (self->rig.script.instrs, TinyInstr, value).arg
          = tiny_dtype_is_float (dtype) ? conf_from_double (numbers[i]) : (gint64) numbers[i];
      Fragment *constant = add_fragment (self, matrix, value);
      for (guint k = 0; k < self->n_matrices * count_elements (self->unit, matrix); k++)
        constant->host[k] = constant->size[k] = numbers[i];
      of[matrix] = constant;
    }
    emit_store (self, emit_unit (self, of[TINY_UNIT_A], of[TINY_UNIT_B], of[TINY_UNIT_C]));
  }
}

/* Two rows and two columns of units, whose sums stand in registers while a loop goes along what is summed over. */
static void
emit_tile (Units *self)
{
  enum { ROUNDS = 3 };
  ConfScript *script = &self->rig.script;
  guint32 places[4], factors[2][2];
  Fragment *sums[4];
  for (guint i = 0; i < 4; i++) {
    const Fragment *c = emit_new (self, TINY_UNIT_C);
    places[i] = emit_register (self);
    emit_set (self, places[i], c->value);
    sums[i] = add_fragment (self, TINY_UNIT_C, 0);
    const gsize n
        = self->n_matrices * count_elements (self->unit, TINY_UNIT_C) * sizeof (double);
    memcpy (sums[i]->host, c->host, n);
    memcpy (sums[i]->size, c->size, n);
  }
  guint32 bound = conf_emit_int (script, TINY_DTYPE_I32, ROUNDS);
  guint32 two = conf_emit_int (script, TINY_DTYPE_I32, 2);
  guint32 round = CONF_EMIT (script, RANGE, I32, bound);
  guint32 first = CONF_EMIT (script, MUL, I32, round, two);
  for (TinyUnitMatrix matrix = TINY_UNIT_A; matrix <= TINY_UNIT_B; matrix++)
    for (guint i = 0; i < 2; i++) {
      guint32 one = conf_emit_int (script, TINY_DTYPE_I32, i);
      factors[matrix][i] = emit_load (self, matrix, CONF_EMIT (script, ADD, I32, first, one));
    }
  for (guint i = 0; i < 4; i++) {
    guint32 before = emit_get (self, places[i]);
    emit_set (
        self, places[i],
        emit_product (self, factors[TINY_UNIT_A][i / 2], factors[TINY_UNIT_B][i % 2], before));
  }
  CONF_EMIT (script, END, VOID, round);
  for (guint k = 0; k < ROUNDS; k++) {
    const Fragment *of[2][2];
    for (TinyUnitMatrix matrix = TINY_UNIT_A; matrix <= TINY_UNIT_B; matrix++)
      for (guint i = 0; i < 2; i++)
        of[matrix][i] = fill_set (self, matrix, 2 * k + i);
    for (guint i = 0; i < 4; i++)
      multiply (self, of[TINY_UNIT_A][i / 2], of[TINY_UNIT_B][i % 2], sums[i], sums[i]);
  }
  for (guint i = 0; i < 4; i++)
    emit_store_at (self, emit_get (self, places[i]), sums[i]);
}

/* A register is read before it changes, and what was read stays. */
static void
emit_exchange (Units *self)
{
  const Fragment *a = emit_new (self, TINY_UNIT_A), *b = emit_new (self, TINY_UNIT_B),
                 *c = emit_new (self, TINY_UNIT_C), *d = emit_new (self, TINY_UNIT_C);
  guint32 x = emit_register (self), y = emit_register (self);
  emit_set (self, x, c->value);
  emit_set (self, y, d->value);
  guint32 of_x = emit_get (self, x), of_y = emit_get (self, y);
  emit_set (self, x, of_y);
  emit_set (self, y, of_x);
  Fragment *sum = add_fragment (self, TINY_UNIT_C,
                                emit_product (self, a->value, b->value, emit_get (self, x)));
  multiply (self, a, b, d, sum);
  emit_store_at (self, emit_get (self, y), c);
  emit_store_at (self, emit_get (self, x), d);
  emit_store (self, sum);
}

/* A register is read for the last time before factors come; read twice, and one value used while a sum is made of the other. */
static void
emit_twice (Units *self)
{
  const Fragment *c = emit_new (self, TINY_UNIT_C);
  guint32 x = emit_register (self), y = emit_register (self);
  emit_set (self, x, c->value);
  guint32 once = emit_get (self, x);
  const Fragment *a = emit_new (self, TINY_UNIT_A), *b = emit_new (self, TINY_UNIT_B);
  Fragment *sum
      = add_fragment (self, TINY_UNIT_C, emit_product (self, a->value, b->value, once));
  multiply (self, a, b, c, sum);
  emit_store (self, sum);
  const Fragment *d = emit_new (self, TINY_UNIT_C);
  emit_set (self, y, d->value);
  guint32 first = emit_get (self, y), second = emit_get (self, y);
  sum = add_fragment (self, TINY_UNIT_C, emit_product (self, a->value, b->value, first));
  multiply (self, a, b, d, sum);
  emit_store_at (self, second, d);
  emit_set (self, y, sum->value);
  emit_store_at (self, emit_get (self, y), sum);
}

static const struct {
  const char *name;
  void (*emit) (Units *self);
  guint n_fragments; /* at once */
} programs[] = {
  { "one", emit_one, 3 },     { "rounded", emit_wild, 3 },
  { "kept", emit_kept, 5 },   { "constant", emit_constants, 4 },
  { "tile", emit_tile, 8 },   { "exchange", emit_exchange, 8 },
  { "twice", emit_twice, 8 },
};

static void
run_program (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  Units units;
  if (!units_begin (&units, trial, subject, self))
    return;
  programs[self->args[1]].emit (&units);
  run_and_check (&units);
  units_end (&units);
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  const TinyTarget *target = subject->target;
  if (subject->device == NULL)
    return;
  if (conf_only_claims (subject)) {
    conf_list_absent (out, CONF_NO_KERNELS, "kernels");
    return;
  }
  const guint n = tiny_target_count_units (target);
  for (guint row = n; row < TINY_MAX_UNITS; row++)
    conf_list_absent (out, "the target has fewer matrix units", "%u", row);
  for (guint row = 0; row < n; row++)
    for (guint i = 0; i < G_N_ELEMENTS (programs); i++) {
      const ConfCase it = { .run = run_program, .level = CONF_CORE, .args = { row, i } };
      const guint most = target->units[row].n_fragments;
      if (most != 0 && most < programs[i].n_fragments)
        conf_list_absent (out, "the unit keeps fewer matrices", "%u/%s", row, programs[i].name);
      else
        conf_list_add (out, &it, "%u/%s", row, programs[i].name);
    }
}

const ConfGroup conf_group_units = { "units", "matrix units, by their rows", list };
