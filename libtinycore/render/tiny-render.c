/* SPDX-License-Identifier: MIT
 *
 * tiny-render.c: one pass over a linear program that appends a line for each instruction.
 *
 * An instruction's value is a text: a name, or an expression that stands at its only use
 * (render-inline.c decides which). Everything a language may spell differently comes from the
 * dialect's templates, or is C where it leaves them out; what remains fixed is what C-like languages
 * share: `if (…) {`, assignments, semicolons and braces. */
#include "render/tiny-render.h"

#include <string.h>

#include "base/tiny-error.h"
#include "ir/tiny-dtype.h"
#include "ir/tiny-op.h"
#include "render/render-private.h"

enum { MAX_INLINE = 72 }; /* characters; a longer expression gets a name */

const TinyInstr *
render_source (const TinyLinear *linear, const TinyInstr *instr, guint i)
{
  return &linear->instrs[linear->sources[instr->sources + i]];
}

static const char *
text_of (Render *self, const TinyInstr *instr, guint i)
{
  return self->texts[self->linear->sources[instr->sources + i]];
}

static char *
instr_to_string (guint op)
{
  for (guint i = 0; i < TINY_N_OPS; i++)
    if (tiny_op_infos[i].instr == op && op != 0)
      return g_strdup (tiny_op_to_string (i));
  return g_strdup_printf ("instruction number %u", op);
}

static void
fail (Render *self, const TinyInstr *instr, guint dtype)
{
  g_autofree char *name = instr_to_string (instr->op);
  if (self->error == NULL)
    self->error = g_error_new (
        TINY_ERROR, TINY_ERROR_UNSUPPORTED, "%s: the dialect has no spelling for %s of %s%s",
        self->linear->name, name, dtype < TINY_N_DTYPES ? tiny_dtype_to_string (dtype) : "?",
        instr->lanes > 1 ? " vectors" : "");
}

/* ---- types and templates ---- */

/* Interned; NULL when the dialect has none. */
static const char *
type_of (Render *self, guint dtype, guint lanes)
{
  const TinyDialect *dialect = self->dialect;
  const char *scalar = dtype < TINY_N_DTYPES ? dialect->types[dtype] : NULL;
  if (scalar == NULL || lanes == 1)
    return scalar;
  if (dialect->vector_type == NULL)
    return NULL;
  RenderArgs args = { .scalar_type = scalar, .lanes = lanes };
  g_autofree char *name = render_template (dialect->vector_type, &args);
  return g_string_chunk_insert_const (self->chunk, name);
}

/* @template with what is known of @instr; a STORE is of its value's type. */
static char *
spell (Render *self,
       const TinyInstr *instr,
       const char *template,
       const char *const *sources,
       guint n_sources)
{
  const TinyInstr *value = instr;
  if (instr->op == TINY_INSTR_STORE)
    value = render_source (self->linear, instr, instr->n_sources == 2 ? 1 : 2);
  const char *type = type_of (self, value->dtype, value->lanes);
  if (template == NULL || type == NULL) {
    fail (self, instr,
          instr->n_sources > 0 && template == NULL
              ? render_source (self->linear, instr, 0)->dtype
              : value->dtype);
    return g_strdup ("");
  }
  const TinyInstr *first
      = instr->n_sources > 0 ? render_source (self->linear, instr, 0) : instr;
  RenderArgs args = { .type = type,
                      .scalar_type = self->dialect->types[value->dtype],
                      .source_type = type_of (self, first->dtype, first->lanes),
                      .lanes = value->lanes,
                      .arg = instr->arg };
  for (guint i = 0; i < n_sources && i < G_N_ELEMENTS (args.texts); i++)
    args.texts[i] = sources[i];
  return render_template (template, &args);
}

/* ---- lines ---- */
static void add_line (Render *self, const char *format, ...) G_GNUC_PRINTF (2, 3);

static void
add_line (Render *self, const char *format, ...)
{
  va_list args;
  g_string_append_printf (self->out, "%*s", 2 * (gint) self->depth, "");
  va_start (args, format);
  g_string_append_vprintf (self->out, format, args);
  va_end (args);
  g_string_append_c (self->out, '\n');
}

static const char *
keep (Render *self, const char *text)
{
  return g_string_chunk_insert (self->chunk, text);
}

/* Gives the instruction's value a name: prefix and the prefix's own count. */
static const char *
new_name (Render *self, const char *prefix, guint *count)
{
  char name[32];
  g_snprintf (name, sizeof name, "%s%u", prefix, (*count)++);
  return keep (self, name);
}

/* @text becomes the value's text, by a name of its own where it cannot stand at its use. */
static void
set_value (Render *self, guint i, const char *text)
{
  const TinyInstr *instr = &self->linear->instrs[i];
  if (self->error != NULL)
    return;
  if (self->inlined[i] == RENDER_INLINE
      || (self->inlined[i] == RENDER_INLINE_SHORT && strlen (text) <= MAX_INLINE)) {
    self->texts[i] = keep (self, text);
    return;
  }
  const char *type = type_of (self, instr->dtype, instr->lanes);
  if (type == NULL) {
    fail (self, instr, instr->dtype);
    return;
  }
  self->texts[i] = new_name (self, "val", &self->n_values);
  g_autofree char *line = render_constant (self->dialect, type, self->texts[i], text);
  add_line (self, "%s;", line);
}

/* ---- values ---- */
static char *
broadcast (Render *self, const TinyInstr *instr, const char *scalar)
{
  const char *sources[] = { scalar };
  if (self->dialect->broadcast != NULL)
    return spell (self, instr, self->dialect->broadcast, sources, 1);
  g_autoptr (GString) lanes = g_string_new (scalar);
  for (guint i = 1; i < instr->lanes; i++)
    g_string_append_printf (lanes, ", %s", scalar);
  sources[0] = lanes->str;
  return spell (self, instr, self->dialect->vector_literal, sources, 1);
}

static char *
constant (Render *self, const TinyInstr *instr)
{
  g_autofree char *scalar = render_literal (self->dialect, instr->dtype, instr->arg);
  if (scalar == NULL)
    fail (self, instr, instr->dtype);
  if (scalar == NULL || instr->lanes == 1)
    return g_steal_pointer (&scalar);
  return broadcast (self, instr, scalar);
}

static char *
vector (Render *self, const TinyInstr *instr)
{
  if (instr->n_sources == 1)
    return broadcast (self, instr, text_of (self, instr, 0));
  g_autoptr (GString) lanes = g_string_new (text_of (self, instr, 0));
  for (guint i = 1; i < instr->n_sources; i++)
    g_string_append_printf (lanes, ", %s", text_of (self, instr, i));
  const char *sources[] = { lanes->str };
  return spell (self, instr, self->dialect->vector_literal, sources, 1);
}

static char *
elementwise (Render *self, const TinyInstr *instr)
{
  const char *sources[3] = { NULL };
  guint n = MIN (instr->n_sources, 3);
  for (guint i = 0; i < n; i++)
    sources[i] = text_of (self, instr, i);
  const char *template = instr->lanes > 1 ? self->dialect->vector_ops[instr->op] : NULL;
  if (template == NULL)
    template = self->dialect->ops[instr->op];
  return spell (self, instr, template, sources, n);
}

/* Parameters that are numbers come as i64. */
static char *
variable (Render *self, const TinyInstr *instr)
{
  g_autofree char *name = g_strdup_printf ("var%" G_GINT64_FORMAT, instr->arg);
  const char *sources[] = { name };
  if (instr->dtype == TINY_DTYPE_I64)
    return g_steal_pointer (&name);
  return spell (self, instr, self->dialect->ops[TINY_INSTR_CAST], sources, 1);
}

/* GRID and GROUP: a constant with a telling name at its place. */
static void
grid_index (Render *self, guint i)
{
  const TinyInstr *instr = &self->linear->instrs[i];
  gboolean is_grid = instr->op == TINY_INSTR_GRID;
  RenderArgs args = { .arg = instr->arg };
  for (guint j = 0; j < 3; j++)
    args.texts[j] = self->sizes[j];
  g_autofree char *text
      = render_template (is_grid ? self->dialect->grid : self->dialect->group, &args);
  const char *type = type_of (self, instr->dtype, 1);
  if (text == NULL || type == NULL) {
    fail (self, instr, instr->dtype);
    return;
  }
  guint *count = &self->n_indices[is_grid][instr->arg % 3];
  char name[32];
  g_snprintf (name, sizeof name, "%s%d", is_grid ? "gidx" : "lidx", (int) instr->arg % 3);
  if ((*count)++ > 0) /* the same axis in a second dtype */
    g_snprintf (name + strlen (name), sizeof name - strlen (name), "_%u", *count);
  self->texts[i] = keep (self, name);
  g_autofree char *line = render_constant (self->dialect, type, name, text);
  add_line (self, "%s;", line);
}

/* ---- memory ---- */

/* One lane of a named vector. */
static char *
lane_of (Render *self, const TinyInstr *instr, const char *text, guint lane)
{
  if (instr->lanes == 1)
    return g_strdup (text);
  TinyInstr extract
      = { .op = TINY_INSTR_EXTRACT, .dtype = instr->dtype, .lanes = 1, .arg = lane };
  const char *sources[] = { text };
  return spell (self, &extract, self->dialect->extract, sources, 1);
}

/* A vector access lane by lane: the k-th element's place in the buffer. */
static char *
element_place (Render *self, const TinyInstr *instr, guint k)
{
  g_autofree char *index = g_strdup_printf ("(%s + %u)", text_of (self, instr, 1), k);
  const char *sources[] = { text_of (self, instr, 0), index };
  TinyInstr scalar = { .op = TINY_INSTR_LOAD,
                       .dtype = render_source (self->linear, instr, 0)->dtype,
                       .lanes = 1 };
  return spell (self, &scalar, self->dialect->ops[TINY_INSTR_LOAD], sources, 2);
}

static char *
load_by_lanes (Render *self, const TinyInstr *instr)
{
  g_autoptr (GString) lanes = g_string_new ("");
  for (guint k = 0; k < instr->lanes; k++) {
    g_autofree char *place = element_place (self, instr, k);
    g_string_append (lanes, k == 0 ? "" : ", ");
    if (instr->n_sources < 4) {
      g_string_append (lanes, place);
      continue;
    }
    g_autofree char *gate
        = lane_of (self, render_source (self->linear, instr, 2), text_of (self, instr, 2), k);
    g_autofree char *other
        = lane_of (self, render_source (self->linear, instr, 3), text_of (self, instr, 3), k);
    g_autofree char *chosen = render_choice (self->dialect, gate, place, other);
    g_string_append (lanes, chosen);
  }
  const char *sources[] = { lanes->str };
  return spell (self, instr, self->dialect->vector_literal, sources, 1);
}

static char *
load (Render *self, const TinyInstr *instr)
{
  const TinyDialect *dialect = self->dialect;
  if (render_source (self->linear, instr, 0)->op == TINY_INSTR_REGISTER)
    return g_strdup (text_of (self, instr, 0));
  const char *sources[4] = { NULL };
  for (guint i = 0; i < MIN (instr->n_sources, 4); i++)
    sources[i] = text_of (self, instr, i);
  gboolean is_masked
      = instr->n_sources == 4 && render_source (self->linear, instr, 2)->lanes > 1;
  if (instr->lanes > 1 && (is_masked ? dialect->load_masked : dialect->load_vector) == NULL)
    return load_by_lanes (self, instr);
  if (instr->lanes > 1)
    return is_masked ? spell (self, instr, dialect->load_masked, sources, 4)
                     : spell (self, instr, dialect->load_vector, sources, 2);
  g_autofree char *plain = spell (self, instr, dialect->ops[TINY_INSTR_LOAD], sources, 2);
  return instr->n_sources == 4 ? render_choice (self->dialect, sources[2], plain, sources[3])
                               : g_steal_pointer (&plain);
}

/* A vector behind one gate: not by ?:, of whose arms languages ask more than that they are vectors. */
static void
load_gated_vector (Render *self, guint i)
{
  const TinyInstr *instr = &self->linear->instrs[i];
  TinyInstr plain = *instr;
  plain.n_sources = 2;
  g_autofree char *text
      = render_truth (self->dialect, self->linear, instr, load (self, &plain));
  const char *type = type_of (self, instr->dtype, instr->lanes);
  if (self->error != NULL)
    return;
  self->texts[i] = new_name (self, "val", &self->n_values);
  g_autofree char *open = render_mutable (self->dialect, type, self->texts[i]);
  add_line (self, "%s = %s;", open, text_of (self, instr, 3));
  add_line (self, "if (%s) {", text_of (self, instr, 2));
  self->depth++;
  add_line (self, "%s = %s;", self->texts[i], text);
  self->depth--;
  add_line (self, "}");
}

static void
store_by_lanes (Render *self, const TinyInstr *instr)
{
  const TinyInstr *value = render_source (self->linear, instr, 2);
  for (guint k = 0; k < value->lanes; k++) {
    g_autofree char *place = element_place (self, instr, k);
    g_autofree char *lane = lane_of (self, value, text_of (self, instr, 2), k);
    g_autofree char *gate = NULL;
    if (instr->n_sources == 4)
      gate
          = lane_of (self, render_source (self->linear, instr, 3), text_of (self, instr, 3), k);
    if (gate != NULL)
      add_line (self, "if (%s) %s = %s;", gate, place, lane);
    else
      add_line (self, "%s = %s;", place, lane);
  }
}

static void
store (Render *self, const TinyInstr *instr)
{
  const TinyDialect *dialect = self->dialect;
  const char *sources[4] = { NULL };
  for (guint i = 0; i < MIN (instr->n_sources, 4); i++)
    sources[i] = text_of (self, instr, i);
  if (render_source (self->linear, instr, 0)->op == TINY_INSTR_REGISTER) {
    add_line (self, "%s = %s;", sources[0], sources[1]);
    return;
  }
  guint lanes = render_source (self->linear, instr, 2)->lanes;
  gboolean is_masked
      = instr->n_sources == 4 && render_source (self->linear, instr, 3)->lanes > 1;
  const char *template = is_masked   ? dialect->store_masked
                         : lanes > 1 ? dialect->store_vector
                                     : dialect->ops[TINY_INSTR_STORE];
  gboolean has_gate = instr->n_sources == 4 && !is_masked;
  if (has_gate) {
    add_line (self, "if (%s) {", sources[3]);
    self->depth++;
  }
  if (template == NULL && lanes > 1) {
    TinyInstr plain = *instr;
    plain.n_sources = is_masked ? 4 : 3;
    store_by_lanes (self, &plain);
  } else {
    g_autofree char *text = spell (self, instr, template, sources, 4);
    add_line (self, "%s;", text);
  }
  if (has_gate) {
    self->depth--;
    add_line (self, "}");
  }
}

/* ---- structure ---- */
static void
declare (Render *self, guint i)
{
  const TinyInstr *instr = &self->linear->instrs[i];
  const char *type = type_of (self, instr->dtype, instr->lanes);
  if (type == NULL || (instr->op == TINY_INSTR_LOCAL && self->dialect->local_open == NULL)) {
    fail (self, instr, instr->dtype);
    return;
  }
  if (instr->op == TINY_INSTR_REGISTER) {
    self->texts[i] = new_name (self, "acc", &self->n_registers);
    g_autofree char *open = render_mutable (self->dialect, type, self->texts[i]);
    add_line (self, "%s;", open);
    return;
  }
  self->texts[i] = new_name (self, "local", &self->n_locals);
  const char *sources[] = { self->texts[i] }, *shared = self->dialect->local_shared;
  gboolean is_outside = shared != NULL && render_has_groups (self->linear);
  g_autofree char *text
      = spell (self, instr, is_outside ? shared : self->dialect->local_open, sources, 1);
  g_autofree char *line = g_strconcat (text, ";\n", NULL);
  if (is_outside)
    g_string_insert (self->out, (gssize) self->kernel_at, line);
  else
    add_line (self, "%s;", text);
}

static void
open_range (Render *self, guint i)
{
  const TinyInstr *instr = &self->linear->instrs[i];
  const char *type = type_of (self, instr->dtype, 1);
  if (type == NULL) {
    fail (self, instr, instr->dtype);
    return;
  }
  const char *name = self->texts[i] = new_name (self, "ridx", &self->n_ranges);
  g_autofree char *loop = render_loop (self->dialect, type, name, text_of (self, instr, 0));
  add_line (self, "%s {", loop);
  self->depth++;
}

static void
close_block (Render *self)
{
  self->depth -= self->depth > 1;
  add_line (self, "}");
}

static void
render_instr (Render *self, guint i)
{
  const TinyInstr *instr = &self->linear->instrs[i];
  g_autofree char *text = NULL;
  if (self->inlined[i] == RENDER_UNUSED)
    return;
  switch (instr->op) {
  case TINY_INSTR_CONST:
    text = constant (self, instr);
    break;
  case TINY_INSTR_VECTOR:
    text = vector (self, instr);
    break;
  case TINY_INSTR_VARIABLE:
    text = variable (self, instr);
    break;
  case TINY_INSTR_LOAD:
    if (instr->lanes > 1 && instr->n_sources == 4
        && render_source (self->linear, instr, 2)->lanes == 1) {
      load_gated_vector (self, i);
      return;
    }
    text = render_truth (self->dialect, self->linear, instr, load (self, instr));
    break;
  case TINY_INSTR_EXTRACT:
    text = lane_of (self, render_source (self->linear, instr, 0), text_of (self, instr, 0),
                    (guint) instr->arg);
    break;
  case TINY_INSTR_PARAM:
    text = g_strdup_printf ("data%" G_GINT64_FORMAT, instr->arg);
    self->texts[i] = keep (self, text);
    return;
  case TINY_INSTR_GRID:
  case TINY_INSTR_GROUP:
    grid_index (self, i);
    return;
  case TINY_INSTR_LOCAL:
  case TINY_INSTR_REGISTER:
    declare (self, i);
    return;
  case TINY_INSTR_STORE:
    store (self, instr);
    return;
  case TINY_INSTR_RANGE:
    open_range (self, i);
    return;
  case TINY_INSTR_IF:
    add_line (self, "if (%s) {", text_of (self, instr, 0));
    self->depth++;
    return;
  case TINY_INSTR_END:
  case TINY_INSTR_ENDIF:
    close_block (self);
    return;
  case TINY_INSTR_BARRIER:
    if (self->dialect->barrier == NULL)
      fail (self, instr, instr->dtype);
    else if (self->dialect->barrier[0] != '\0' && render_has_groups (self->linear))
      add_line (self, "%s;", self->dialect->barrier);
    return;
  default:
    if (instr->op >= TINY_N_INSTRS) {
      fail (self, instr, instr->dtype);
      return;
    }
    text = elementwise (self, instr);
  }
  if (text != NULL)
    set_value (self, i, text);
}

/* ---- around the body ---- */

/* Each used vector type once. */
static void
define_types (Render *self)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < self->linear->n_instrs && self->dialect->vector_typedef; i++) {
    const TinyInstr *instr = &self->linear->instrs[i];
    const char *type = instr->lanes > 1 ? type_of (self, instr->dtype, instr->lanes) : NULL;
    if (type == NULL || instr->dtype == TINY_DTYPE_VOID
        || !g_hash_table_add (seen, (gpointer) type))
      continue;
    RenderArgs args = { .type = type,
                        .scalar_type = self->dialect->types[instr->dtype],
                        .lanes = instr->lanes };
    g_autofree char *text = render_template (self->dialect->vector_typedef, &args);
    g_string_append (self->out, text);
  }
}

static char *
parameters (Render *self)
{
  const TinyLinear *linear = self->linear;
  const TinyDialect *dialect = self->dialect;
  GString *text = g_string_new ("");
  for (guint i = 0; i < linear->n_params + linear->n_variables; i++) {
    gboolean is_buffer = i < linear->n_params;
    guint n = is_buffer ? i : i - linear->n_params;
    g_autofree char *name = g_strdup_printf (is_buffer ? "data%u" : "var%u", n);
    RenderArgs args = { .texts = { name }, .arg = n };
    const char *template = dialect->variable;
    if (is_buffer) {
      gboolean writes = (linear->params[n].flags & TINY_PARAM_WRITE) != 0;
      template = writes ? dialect->param_write : dialect->param_read;
      args.type = args.scalar_type = type_of (self, linear->params[n].dtype, 1);
      if (args.type == NULL) {
        TinyInstr param = { .op = TINY_INSTR_PARAM, .lanes = 1 };
        fail (self, &param, linear->params[n].dtype);
      }
    }
    g_autofree char *one = render_template (template, &args);
    g_string_append_printf (text, "%s%s", i == 0 ? "" : dialect->param_separator, one);
  }
  return g_string_free (text, FALSE);
}

static void
open_kernel (Render *self)
{
  const TinyLinear *linear = self->linear;
  g_autofree char *params = parameters (self);
  RenderArgs args = { .name = linear->name, .params = params };
  for (guint i = 0; i < 3; i++) {
    g_snprintf (self->sizes[i], sizeof self->sizes[i], "%u", linear->grid[i]);
    args.texts[i] = self->sizes[i];
  }
  g_autofree char *open = render_template (self->dialect->kernel_open, &args);
  g_string_append (self->out, open);
}

char *
tiny_render_source (const TinyLinear *linear, const TinyDialect *dialect, GError **error)
{
  if (dialect->kernel_open == NULL || dialect->kernel_close == NULL
      || dialect->param_separator == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "%s: the dialect says not how a kernel begins and ends", linear->name);
    return NULL;
  }
  g_autoptr (GString) out = g_string_new (dialect->prelude != NULL ? dialect->prelude : "");
  g_autoptr (GStringChunk) chunk = g_string_chunk_new (4096);
  g_autofree const char **texts = g_new0 (const char *, linear->n_instrs + 1);
  g_autofree guint8 *inlined = render_inline (linear, dialect);
  Render self = { .linear = linear,
                  .dialect = dialect,
                  .out = out,
                  .chunk = chunk,
                  .texts = texts,
                  .inlined = inlined,
                  .depth = 1 };
  define_types (&self);
  self.kernel_at = out->len;
  open_kernel (&self);
  for (guint i = 0; i < linear->n_instrs && self.error == NULL; i++)
    render_instr (&self, i);
  g_string_append (out, dialect->kernel_close);
  if (self.error != NULL) {
    g_propagate_error (error, self.error);
    return NULL;
  }
  return g_string_free (g_steal_pointer (&out), FALSE);
}
