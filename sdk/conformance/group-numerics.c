/* SPDX-License-Identifier: MIT
 *
 * group-numerics.c: what every op gives, for every dtype, class of data and layout.
 *
 * Each case is one kernel of one op whose operands come from memory, so that nothing is folded, and whose
 * every element is judged by itself (bounds.h). An op that the target does not declare is as much a case as one
 * that it does: then what is tested is what the core makes it of, on this device. */
#include "conformance.h"
#include "element.h"
#include "ir/tiny-check.h"
#include "step.h"

enum { DENSE = 1 << 19 };

/* ---- cases of one op ---- */
static void
run_elementwise (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const ConfElementwise element = { .op = (TinyOp) self->args[0],
                                    .from = (TinyDType) self->args[1],
                                    .to = (TinyDType) self->args[2],
                                    .data = (ConfClass) self->args[3],
                                    .layout = (guint) self->args[4],
                                    .n = (gsize) self->args[5] };
  conf_elementwise_check (trial, subject, &element);
}

static void
add (ConfList *list, const ConfElementwise *element, ConfLevel level, const char *name)
{
  const ConfLayout *layout = &conf_layouts[element->layout];
  const ConfCase self = { .run = run_elementwise,
                          .level = level,
                          .args = { element->op, element->from, element->to, element->data,
                                    element->layout, (gint64) element->n } };
  const char *data = element->n == DENSE ? "dense" : conf_class_to_string (element->data);
  conf_list_add (list, &self, "%s/%s/%s%s%s", name, tiny_dtype_to_string (element->from), data,
                 *layout->name ? "-" : "", layout->name);
}

/* Whether the target computes with @dtype in some way; f64 is the one that nothing is made of. */
static gboolean
is_computed (const TinyTarget *target, TinyDType dtype)
{
  return dtype != TINY_DTYPE_F64 || (target->dtypes_compute & TINY_DTYPE_BIT (dtype)) != 0;
}

static gboolean
is_cast (TinyOp op)
{
  return op == TINY_OP_CAST || op == TINY_OP_BITCAST;
}

/* Of no element of such data is it said what an integer of it is. */
static gboolean
is_outside (const ConfElementwise *self)
{
  return self->op == TINY_OP_CAST && !tiny_dtype_is_float (self->to)
         && self->to != TINY_DTYPE_BOOL && tiny_dtype_is_float (self->from)
         && self->data == CONF_HUGE;
}

static void
list_classes (ConfElementwise element, ConfList *list, const char *name)
{
  const guint n = conf_op_get_n (element.op);
  for (guint data = 0; data < CONF_N_CLASSES; data++) {
    element.data = (ConfClass) data;
    if (!conf_class_has (element.data, element.from, n) || is_outside (&element))
      continue;
    gboolean is_wide = data == CONF_ALL && tiny_dtype_get_n_bytes (element.from) * n > 1;
    /* What a cast does hangs on sizes alone. */
    gboolean is_less = is_cast (element.op) && (data == CONF_POSITIVE || data == CONF_INTEGER);
    add (list, &element, is_wide || is_less ? CONF_FULL : CONF_CORE, name);
  }
}

/* Ops by which every layout is looked at on every device; the others' are for the longer levels. */
static gboolean
shows_layout (const ConfElementwise *element)
{
  const guint32 dtypes = TINY_DTYPE_BIT (TINY_DTYPE_I32) | TINY_DTYPE_BIT (TINY_DTYPE_F32)
                         | TINY_DTYPE_BIT (TINY_DTYPE_U8) | TINY_DTYPE_BIT (TINY_DTYPE_F16)
                         | TINY_DTYPE_BIT (TINY_DTYPE_I64);
  return (element->op == TINY_OP_MUL || element->op == TINY_OP_WHERE)
         && (dtypes & TINY_DTYPE_BIT (element->from)) != 0;
}

static void
list_layouts (ConfElementwise element,
              const ConfSubject *subject,
              ConfList *list,
              const char *name)
{
  element.data = element.from == TINY_DTYPE_BOOL ? CONF_BOUNDARY : CONF_SIGNED;
  for (element.layout = CONF_LAYOUT_SCALAR; element.layout < conf_n_layouts; element.layout++)
    if (conf_layout_fits (element.layout, subject->target, element.from, element.to))
      add (list, &element, shows_layout (&element) ? CONF_CORE : CONF_FULL, name);
  if (tiny_dtype_is_float (element.from) && conf_op_get_n (element.op) == 1
      && tiny_dtype_get_n_bytes (element.from) > 2) {
    element.layout = CONF_LAYOUT_HEURISTIC, element.n = DENSE;
    add (list, &element, CONF_FULL, name);
  }
}

/* Layouts that no kernel here has; op and class of data are any. */
static void
list_no_layouts (const ConfSubject *subject, ConfList *list)
{
  const TinyTarget *target = subject->target;
  for (guint i = CONF_LAYOUT_SCALAR; i < conf_n_layouts; i++) {
    const char *name = conf_layouts[i].name;
    if (!conf_layout_fits (i, target, TINY_DTYPE_I32, TINY_DTYPE_I32)) {
      conf_list_absent (list, "the target has not so many lanes or items of a group", "*-%s",
                        name);
      continue;
    }
    for (TinyDType dtype = TINY_DTYPE_BOOL; dtype <= TINY_DTYPE_F64; dtype++)
      if (is_computed (target, dtype) && !conf_layout_fits (i, target, dtype, dtype))
        conf_list_absent (list, "the target does not store it: it lies in words", "*/%s/*-%s",
                          tiny_dtype_to_string (dtype), name);
    if (!conf_layout_fits (i, target, TINY_DTYPE_I32, TINY_DTYPE_BOOL))
      conf_list_absent (list, "the target does not store bool: it lies in words", "cmp*-%s",
                        name);
  }
}

static void
list_op (TinyOp op, TinyDType from, TinyDType to, const ConfSubject *subject, ConfList *list)
{
  g_autofree char *name = is_cast (op) ? g_strdup_printf ("%s-%s", tiny_op_to_string (op),
                                                          tiny_dtype_to_string (to))
                                       : g_strdup (tiny_op_to_string (op));
  if (!is_computed (subject->target, from) || !is_computed (subject->target, to)) {
    conf_list_absent (list, "the device does not compute with f64", "%s/%s", name,
                      tiny_dtype_to_string (from));
    return;
  }
  const ConfElementwise element = { .op = op, .from = from, .to = to };
  list_classes (element, list, name);
  if (!is_cast (op))
    list_layouts (element, subject, list, name);
}

static void
list_casts (TinyDType from, const ConfSubject *subject, ConfList *list)
{
  for (guint to = TINY_DTYPE_BOOL; to <= TINY_DTYPE_F64; to++) {
    if (to == from)
      continue;
    list_op (TINY_OP_CAST, from, (TinyDType) to, subject, list);
    if (from != TINY_DTYPE_BOOL && to != TINY_DTYPE_BOOL
        && tiny_dtype_get_n_bytes (from) == tiny_dtype_get_n_bytes ((TinyDType) to))
      list_op (TINY_OP_BITCAST, from, (TinyDType) to, subject, list);
  }
}

static void
list_numerics (const ConfSubject *subject, ConfList *list)
{
  if (subject->target == NULL)
    return;
  if (conf_only_claims (subject)) {
    conf_list_absent (list, CONF_NO_KERNELS, "ops");
    return;
  }
  list_no_layouts (subject, list);
  for (guint from = TINY_DTYPE_BOOL; from <= TINY_DTYPE_F64; from++) {
    for (guint op = TINY_OP_NEG; op <= TINY_OP_CMPEQ; op++)
      if (tiny_op_takes_dtype ((TinyOp) op, (TinyDType) from))
        list_op ((TinyOp) op, (TinyDType) from,
                 conf_op_get_result ((TinyOp) op, (TinyDType) from), subject, list);
    list_casts ((TinyDType) from, subject, list);
  }
}

const ConfGroup conf_group_numerics
    = { "numerics", "every op on every dtype gives what bounds.def admits, element by element",
        list_numerics };
