/* SPDX-License-Identifier: MIT
 *
 * group-pair.c: beside another backend in one process: each computes what it does alone, copies go
 * both ways, and they end in every order. */
#include <string.h>

#include "fresh.h"
#include "plugin/tiny-discovery.h"
#include "plugin/tiny-registry.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-shard.h"

enum { N = 5000 };

static const char *const others[] = { "REF", "CPU" };

/* There and back, with something computed at each end. */
static void
run_copies (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const char *own = tiny_device_get_name (subject->device);
  const char *other = others[self->args[0]];
  const gint64 shape[] = { N };
  gint32 values[N];
  GError *error = NULL;
  for (gint32 i = 0; i < N; i++)
    values[i] = i * 31 - 7;
  TinyTensor *here
      = tiny_tensor_new_from_data (own, TINY_DTYPE_I32, shape, 1, values, sizeof values);
  g_autoptr (TinyTensor) doubled = g_object_ref_sink (tiny_tensor_add (here, here));
  g_autoptr (TinyTensor) there = g_object_ref_sink (tiny_tensor_to (doubled, other));
  g_autoptr (TinyTensor) tripled = g_object_ref_sink (tiny_tensor_add (there, there));
  g_autoptr (TinyTensor) back = g_object_ref_sink (tiny_tensor_to (tripled, own));
  g_autoptr (TinyTensor) all = g_object_ref_sink (tiny_tensor_add (back, doubled));
  if (!tiny_tensor_copy_data (all, values, sizeof values, &error)) {
    conf_check_error (trial, error, "copies between devices");
    return;
  }
  for (gint32 i = 0; i < N; i++)
    if (!conf_check (trial, values[i] == (i * 31 - 7) * 6,
                     "element %d is %d after a way through %s and back, and %d is right", i,
                     values[i], other, (i * 31 - 7) * 6))
      break;
}

/* args: which other, whether the subject is opened first, and whether it is closed first. */
static void
run_endings (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  gboolean opens_first = self->args[1] != 0, closes_first = self->args[2] != 0;
  GError *error = NULL;
  ConfSubject own, other = *subject;
  if (opens_first && !conf_fresh_open (trial, subject, &own))
    return;
  other.device
      = tiny_registry_open (tiny_registry_get_default (), others[self->args[0]], &error);
  if (!conf_check_error (trial, error, "the other backend"))
    return;
  other.backend = g_object_ref (tiny_device_get_backend (other.device));
  other.target = tiny_device_get_target (other.device);
  if (!opens_first && !conf_fresh_open (trial, subject, &own))
    return;
  for (guint round = 0; round < 2; round++) {
    conf_fresh_use (trial, &own);
    conf_fresh_use (trial, &other);
  }
  conf_fresh_close (closes_first ? &own : &other);
  conf_fresh_use (trial, closes_first ? &other : &own);
  conf_fresh_close (closes_first ? &other : &own);
  if (!conf_has_failed (trial) && conf_fresh_open (trial, subject, &own)) {
    conf_fresh_use (trial, &own);
    conf_fresh_close (&own);
  }
}

/* Why it cannot be the other one, or NULL. */
static const char *
find_obstacle (const ConfSubject *subject, const char *name)
{
  g_autoptr (GPtrArray) all = tiny_discover (NULL, NULL, NULL);
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    if (found->manifest == NULL || found->shadower != NULL
        || g_ascii_strcasecmp (found->name, name) != 0)
      continue;
    g_autofree char *path = g_canonicalize_filename (found->manifest->module, NULL);
    return g_str_equal (path, subject->path) ? "it is the subject itself" : NULL;
  }
  return "it is not installed";
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  for (guint o = 0; o < G_N_ELEMENTS (others); o++) {
    const ConfCase copies = { .run = run_copies, .args = { o } };
    const char *obstacle = find_obstacle (subject, others[o]);
    g_autofree char *name = g_ascii_strdown (others[o], -1);
    if (obstacle != NULL) {
      conf_list_absent (out, obstacle, "%s", name);
      continue;
    }
    for (guint order = 0; order < 4; order++) {
      const ConfCase endings
          = { .run = run_endings, .flags = CONF_FRESH, .args = { o, order & 1, order >> 1 } };
      conf_list_add (out, &endings, "%s/opened-%s-closed-%s", name,
                     order & 1 ? "first" : "second", order >> 1 ? "first" : "second");
    }
    if (subject->device != NULL)
      conf_list_add (out, &copies, "%s/copies", name);
  }
}

const ConfGroup conf_group_pair = { "pair", "beside another backend in one process", list };
