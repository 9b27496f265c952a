/* SPDX-License-Identifier: MIT
 *
 * tiny-variable.c: variables, and the nodes that they become once they have a value. */
#include "tensor/tiny-variable.h"

#include "tensor/tiny-build.h"
#include "tensor/tiny-tensor-private.h"

struct _TinyVariable {
  GObject parent_instance;
  char *name;
  gint64 min, max;
};

G_DEFINE_FINAL_TYPE (TinyVariable, tiny_variable, G_TYPE_OBJECT)

static void
tiny_variable_finalize (GObject *object)
{
  g_free (TINY_VARIABLE (object)->name);
  G_OBJECT_CLASS (tiny_variable_parent_class)->finalize (object);
}

static void
tiny_variable_class_init (TinyVariableClass *class)
{
  G_OBJECT_CLASS (class)->finalize = tiny_variable_finalize;
}

static void
tiny_variable_init (TinyVariable *self)
{
  self->name = g_strdup ("");
}

TinyVariable *
tiny_variable_new (const char *name, gint64 min, gint64 max)
{
  TinyVariable *self = g_object_new (TINY_TYPE_VARIABLE, NULL);
  g_free (self->name);
  self->name = g_strdup (name != NULL ? name : "");
  self->min = min;
  self->max = max;
  return self;
}

const char *
tiny_variable_get_name (TinyVariable *self)
{
  g_return_val_if_fail (TINY_IS_VARIABLE (self), NULL);
  return self->name;
}

gint64
tiny_variable_get_min (TinyVariable *self)
{
  g_return_val_if_fail (TINY_IS_VARIABLE (self), 0);
  return self->min;
}

gint64
tiny_variable_get_max (TinyVariable *self)
{
  g_return_val_if_fail (TINY_IS_VARIABLE (self), 0);
  return self->max;
}

static TinyNode *
bound_node (TinyBuild *b, TinyVariable *self, gint64 value)
{
  if (self == NULL || *self->name == 0)
    return tiny_build_fail (b, self == NULL ? "no variable is given" : "it has no name");
  if (self->min > self->max || self->min < G_MININT32 || self->max > G_MAXINT32)
    return tiny_build_fail (b,
                            "variable %s has bounds %" G_GINT64_FORMAT " … %" G_GINT64_FORMAT
                            ", which are not in order within i32",
                            self->name, self->min, self->max);
  if (value < self->min || value > self->max)
    return tiny_build_fail (b,
                            "%" G_GINT64_FORMAT " is outside of variable %s, %" G_GINT64_FORMAT
                            " … %" G_GINT64_FORMAT,
                            value, self->name, self->min, self->max);
  return tiny_node_new (b->graph, TINY_OP_VARIABLE, TINY_DTYPE_I32, 1, 0, NULL, value,
                        tiny_graph_ints (b->graph, (gint64[]){ self->min, self->max }, 2),
                        self->name);
}

TinyTensor *
tiny_variable_bind (TinyVariable *self, gint64 value)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, "bind", 0, NULL))
    node = bound_node (&b, TINY_IS_VARIABLE (self) ? self : NULL, value);
  return tiny_build_end (&b, node);
}
