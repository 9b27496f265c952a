/* SPDX-License-Identifier: MIT
 *
 * pass-place.c: what a grid point keeps in LOCAL memory lies in the part of an output that it
 * writes last.
 *
 * A softmax keeps a row's exponentials and then stores each, divided by their sum. In LOCAL memory
 * they take room in a near cache, and the output's lines are first asked for in the last loop, when
 * there is nothing to compute while they come. In the output's place they come while the
 * exponentials are computed.
 *
 * It is done where it can be seen to be right: the loop that reads the LOCAL last stores, in each
 * round, to one output just where it read, every element of the LOCAL has its place there, no other
 * grid point comes near, and nobody else reads or writes that output. An output that does not fit
 * the last cache together with what the kernel reads is better written once, past the caches. */
#include "codegen/linear-copy.h"

#include <string.h>

enum { MAX_ACCESSES = 128 };

#define MANY G_MAXUINT32

/* An index as constant + grid * (point along axis 0) + round * (rounds of a loop). */
typedef struct {
  gboolean is_known;
  guint32
      loop; /* its RANGE; 0: none, since a RANGE has a bound before it; MANY: several, and round is of no account */
  gint64 constant, grid, round;
  gint64 least, most; /* what it can be for point 0 */
} Form;

typedef struct {
  guint32 instr, loop; /* of a LOAD or STORE; the outermost RANGE around it */
  gboolean is_nested;  /* there are others */
  guint lanes;
  Form form;
} Access;

typedef struct {
  const TinyLinear *linear;
  Form *forms;
  guint32 *
      loops; /* the outermost RANGE around each instruction, 0: none, MANY: it is behind an IF */
  guint32 *depths;                                  /* how many there are */
  Access local[MAX_ACCESSES], output[MAX_ACCESSES]; /* of the LOCAL; of the output */
  guint n_local, n_output;
  guint32 last;  /* the loop that reads the LOCAL last */
  guint32 param; /* the output, by a PARAM of it */
  gint64 row, n; /* elements of the output between grid points; of the LOCAL */
  gint64 first;  /* element of the output for point 0 */
  TinyDType index_dtype;
} Place;

static const TinyInstr *
source_of (const TinyLinear *linear, const TinyInstr *instr, guint i)
{
  return &linear->instrs[linear->sources[instr->sources + i]];
}

/* ---- indices ---- */
static Form
combine (Form x, Form y, gint64 sign)
{
  gboolean one_loop = x.loop == 0 || y.loop == 0 || x.loop == y.loop;
  return (Form){ x.is_known && y.is_known,
                 one_loop ? MAX (x.loop, y.loop) : MANY,
                 x.constant + sign * y.constant,
                 x.grid + sign * y.grid,
                 x.round + sign * y.round,
                 x.least + (sign > 0 ? y.least : -y.most),
                 x.most + (sign > 0 ? y.most : -y.least) };
}

static gboolean
is_moderate (Form x)
{
  const gint64 most = G_MAXINT32;
  return ABS (x.constant) <= most && ABS (x.grid) <= most && ABS (x.round) <= most
         && ABS (x.least) <= most && ABS (x.most) <= most;
}

static Form
scale (Form x, Form by)
{
  if (x.loop == 0 && x.grid == 0) {
    Form other = x;
    x = by;
    by = other;
  }
  gboolean is_known = x.is_known && by.is_known && by.loop == 0 && by.grid == 0
                      && is_moderate (x) && is_moderate (by);
  gint64 n = is_known ? by.constant : 0;
  return (Form){ is_known,
                 x.loop,
                 x.constant * n,
                 x.grid * n,
                 x.round * n,
                 (n < 0 ? x.most : x.least) * n,
                 (n < 0 ? x.least : x.most) * n };
}

/* The rounds of a loop, 0: not known. */
static gint64
count_rounds (const Place *self, guint32 loop)
{
  const TinyInstr *bound = source_of (self->linear, &self->linear->instrs[loop], 0);
  return bound->op == TINY_INSTR_CONST ? bound->arg : 0;
}

static Form
find_form (const Place *self, guint32 at)
{
  const TinyInstr *instr = &self->linear->instrs[at];
  Form of[2] = { { FALSE } };
  if (instr->lanes != 1 || tiny_dtype_is_float (instr->dtype)
      || tiny_dtype_get_n_bytes (instr->dtype) < 4)
    return of[0];
  for (guint i = 0; i < MIN (instr->n_sources, 2); i++)
    of[i] = self->forms[self->linear->sources[instr->sources + i]];
  switch (instr->op) {
  case TINY_INSTR_CONST:
    return (Form){
      .is_known = TRUE, .constant = instr->arg, .least = instr->arg, .most = instr->arg
    };
  case TINY_INSTR_GRID:
    return (Form){ .is_known = instr->arg == 0, .grid = 1 };
  case TINY_INSTR_RANGE:
    return (Form){ .is_known = count_rounds (self, at) > 0,
                   .loop = at,
                   .round = 1,
                   .most = count_rounds (self, at) - 1 };
  case TINY_INSTR_ADD:
    return combine (of[0], of[1], 1);
  case TINY_INSTR_SUB:
    return combine (of[0], of[1], -1);
  case TINY_INSTR_MUL:
    return scale (of[0], of[1]);
  default:
    return (Form){ FALSE };
  }
}

static void
find_forms (Place *self)
{
  guint32 open = 0, depth = 0;
  for (guint32 i = 0; i < self->linear->n_instrs; i++) {
    const TinyInstr *instr = &self->linear->instrs[i];
    gboolean opens = instr->op == TINY_INSTR_RANGE || instr->op == TINY_INSTR_IF;
    depth -= instr->op == TINY_INSTR_END || instr->op == TINY_INSTR_ENDIF;
    self->forms[i] = find_form (self, i);
    self->loops[i] = depth == 0 ? 0 : open;
    self->depths[i] = depth;
    if (opens && (depth++ == 0 || instr->op == TINY_INSTR_IF))
      open = instr->op == TINY_INSTR_RANGE ? i : MANY;
  }
}

/* ---- whether ---- */
/* Lists the accesses of memory @at; FALSE: one is gated or in no loop. */
static gboolean
list_accesses (const Place *self, guint32 at, Access *out, guint *out_n)
{
  const TinyLinear *linear = self->linear;
  *out_n = 0;
  for (guint32 i = 0; i < linear->n_instrs; i++) {
    const TinyInstr *instr = &linear->instrs[i], *memory = &linear->instrs[at];
    if ((instr->op != TINY_INSTR_LOAD && instr->op != TINY_INSTR_STORE))
      continue;
    const TinyInstr *other = source_of (linear, instr, 0);
    if (other->op != memory->op || other->arg != memory->arg
        || (memory->op == TINY_INSTR_LOCAL && other != memory))
      continue;
    gboolean stores = instr->op == TINY_INSTR_STORE;
    guint lanes
        = stores ? MAX (instr->lanes, source_of (linear, instr, 2)->lanes) : instr->lanes;
    Form form = self->forms[linear->sources[instr->sources + 1]];
    guint32 loop = self->loops[i];
    if (instr->n_sources != (stores ? 3 : 2) || !form.is_known || loop == 0 || loop == MANY
        || form.loop == 0 || *out_n == MAX_ACCESSES)
      return FALSE;
    out[(*out_n)++] = (Access){ i, loop, self->depths[i] > 1, lanes, form };
  }
  return TRUE;
}

static gboolean
is_store (const Place *self, const Access *access)
{
  return self->linear->instrs[access->instr].op == TINY_INSTR_STORE;
}

/* The output that the last loop stores to, of the LOCAL's dtype. */
static gboolean
find_output (Place *self, TinyDType dtype)
{
  const TinyLinear *linear = self->linear;
  for (guint32 i = self->last; i < linear->n_instrs; i++) {
    const TinyInstr *instr = &linear->instrs[i];
    if (self->loops[i] != self->last || instr->op != TINY_INSTR_STORE)
      continue;
    const TinyInstr *memory = source_of (linear, instr, 0);
    self->param = (guint32) (memory - linear->instrs);
    if (memory->op == TINY_INSTR_PARAM && memory->dtype == dtype
        && linear->params[memory->arg].flags == TINY_PARAM_WRITE)
      return TRUE;
  }
  return FALSE;
}

/* The last loop's stores go through the output's row once, without a gap, and through no other's. */
static gboolean
covers_row (Place *self)
{
  const Form *form = &self->output[0].form;
  gint64 n_covered = 0;
  self->first = form->constant;
  for (guint i = 0; i < self->n_output; i++)
    self->first = MIN (self->first, self->output[i].form.constant);
  for (guint i = 0; i < self->n_output; i++) {
    const Access *store = &self->output[i];
    gint64 at = store->form.constant - self->first;
    if (!is_store (self, store) || store->is_nested || store->loop != self->last
        || store->form.loop != self->last || store->form.grid != form->grid
        || store->form.round != form->round || at + store->lanes > form->round)
      return FALSE;
    for (guint j = 0; j < i; j++) {
      gint64 other = self->output[j].form.constant - self->first;
      if (other < at + store->lanes && at < other + self->output[j].lanes)
        return FALSE;
    }
    n_covered += store->lanes;
  }
  self->row = form->grid;
  return n_covered == form->round && count_rounds (self, self->last) * n_covered == self->n
         && self->row >= self->n && self->first >= 0;
}

/* Whether @access of the LOCAL is inside of it, and in the last loop reads what is stored there then. */
static gboolean
is_in_place (const Place *self, const Access *access)
{
  const Form *form = &access->form;
  if (form->grid != 0 || form->least < 0 || form->most + access->lanes > self->n)
    return FALSE;
  for (guint i = 0; i < self->n_output && access->loop == self->last; i++) {
    const Access *store = &self->output[i];
    if (store->form.constant - self->first == form->constant && store->form.round == form->round
        && store->lanes == access->lanes && store->instr > access->instr
        && form->loop == self->last && !access->is_nested && !is_store (self, access))
      return TRUE;
  }
  return access->loop != self->last;
}

static gboolean
can_place (Place *self, guint32 at)
{
  const TinyLinear *linear = self->linear;
  const TinyInstr *local = &linear->instrs[at];
  self->n = local->arg;
  if (!list_accesses (self, at, self->local, &self->n_local) || self->n_local == 0)
    return FALSE;
  self->last = self->local[self->n_local - 1].loop;
  if (!find_output (self, local->dtype)
      || !list_accesses (self, self->param, self->output, &self->n_output)
      || !covers_row (self))
    return FALSE;
  self->index_dtype = linear->instrs[self->last].dtype;
  for (guint i = 0; i < self->n_local; i++)
    if (!is_in_place (self, &self->local[i])
        || source_of (linear, &linear->instrs[self->local[i].instr], 1)->dtype
               != self->index_dtype)
      return FALSE;
  return TRUE;
}

/* ---- the new list ---- */
static guint32
append_index (LinearCopy *list,
              const Place *self,
              TinyInstrOp op,
              gint64 arg,
              guint n,
              guint32 x,
              guint32 y)
{
  TinyInstr like = { .op = op, .dtype = self->index_dtype, .lanes = 1, .arg = arg };
  return linear_copy_append (list, like, n, (guint32[]){ x, y });
}

/* Where the grid point's part of the output begins. */
static guint32
append_base (LinearCopy *list, const Place *self)
{
  guint32 point = append_index (list, self, TINY_INSTR_GRID, 0, 0, 0, 0);
  guint32 row = append_index (list, self, TINY_INSTR_CONST, self->row, 0, 0, 0);
  guint32 first = append_index (list, self, TINY_INSTR_CONST, self->first, 0, 0, 0);
  guint32 base = append_index (list, self, TINY_INSTR_MUL, 0, 2, point, row);
  return self->first == 0 ? base : append_index (list, self, TINY_INSTR_ADD, 0, 2, base, first);
}

/* Instruction @i, which reads or writes the LOCAL, in the output. */
static void
append_access (LinearCopy *list, const Place *self, guint32 i, guint32 param, guint32 base)
{
  const TinyInstr *instr = &list->from->instrs[i];
  g_autofree guint32 *sources = g_new (guint32, instr->n_sources);
  for (guint s = 0; s < instr->n_sources; s++)
    sources[s] = list->at[list->from->sources[instr->sources + s]];
  sources[0] = param;
  sources[1] = append_index (list, self, TINY_INSTR_ADD, 0, 2, base, sources[1]);
  list->at[i] = linear_copy_append (list, *instr, instr->n_sources, sources);
}

static void
rewrite (TinyLinear *linear, const Place *self, guint32 local)
{
  LinearCopy list;
  guint32 base = 0, param = 0;
  linear_copy_begin (&list, linear);
  for (guint32 i = 0; i < linear->n_instrs; i++) {
    const TinyInstr *instr = &linear->instrs[i];
    if (i == local)
      continue;
    if (i == self->local[0].loop) {
      param = linear_copy_append (&list, linear->instrs[self->param], 0, NULL);
      base = append_base (&list, self);
    }
    if ((instr->op == TINY_INSTR_LOAD || instr->op == TINY_INSTR_STORE)
        && linear->sources[instr->sources] == local)
      append_access (&list, self, i, param, base);
    else
      linear_copy_instr (&list, i);
  }
  linear_copy_end (&list, linear);
}

static gboolean
place_one (TinyLinear *linear)
{
  g_autofree Place *self = g_new0 (Place, 1);
  g_autofree Form *forms = g_new0 (Form, linear->n_instrs);
  g_autofree guint32 *loops = g_new0 (guint32, linear->n_instrs);
  g_autofree guint32 *depths = g_new0 (guint32, linear->n_instrs);
  self->linear = linear;
  self->forms = forms;
  self->loops = loops;
  self->depths = depths;
  find_forms (self);
  for (guint32 i = 0; i < linear->n_instrs; i++)
    if (linear->instrs[i].op == TINY_INSTR_LOCAL && can_place (self, i)) {
      guint32 slot = (guint32) linear->instrs[self->param].arg;
      rewrite (linear, self, i);
      ((TinyParam *) linear->params)[slot].flags |= TINY_PARAM_READ;
      return TRUE;
    }
  return FALSE;
}

gboolean
tiny_pass_place (TinyCodegen *cg, GError **error)
{
  TinyLinear *linear = &cg->program->linear;
  const guint64 cache = cg->target->cache_bytes[2];
  guint64 n_bytes = 0;
  for (guint i = 0; i < linear->n_params; i++)
    n_bytes += linear->params[i].n_elements
               * tiny_dtype_get_n_bytes ((TinyDType) linear->params[i].dtype);
  if ((cg->target->flags & TINY_TARGET_GROUPS) || n_bytes > cache || linear->grid[1] != 1
      || linear->grid[2] != 1)
    return TRUE;
  while (place_one (linear))
    ;
  return TRUE;
}
