/* SPDX-License-Identifier: MIT
 *
 * launch-variables.c: what a recording is given anew for each replay besides memory, and what would not be. */
#include "engine/launches-private.h"

gboolean
tiny_launches_number_variables (TinyLaunches *self,
                                const TinyBoundVariable *variables,
                                guint n,
                                TinyBoundVariable *out_other)
{
  for (guint i = 0; i < self->variables->len; i++) {
    LaunchVariable *variable = &g_array_index (self->variables, LaunchVariable, i);
    guint at = 0;
    if (variable->bound.name == NULL) /* nobody's input: it stays what it was */
      continue;
    while (at < n
           && (!tiny_bound_variable_is_same (&variables[at], &variable->bound)
               || variables[at].value != variable->bound.value))
      at++;
    *out_other = variable->bound;
    variable->number = at;
    if (at == n)
      return FALSE;
  }
  return TRUE;
}

void
tiny_launches_bind (TinyLaunches *self, const TinyBoundVariable *variables)
{
  for (guint i = 0; i < self->variables->len; i++) {
    LaunchVariable *variable = &g_array_index (self->variables, LaunchVariable, i);
    if (variable->bound.name == NULL)
      continue;
    variable->bound = variables[variable->number];
    if (self->values != NULL)
      self->values[i] = variable->bound.value;
  }
}

void
tiny_launches_touch (TinyLaunches *self)
{
  self->was_touched = TRUE;
}

gboolean
tiny_launches_was_touched (TinyLaunches *self)
{
  return self->was_touched;
}
