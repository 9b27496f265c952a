/* SPDX-License-Identifier: MIT
 *
 * kernel-files.c: the kernels of a file in the IR's text form. */
#include "tools/kernel-files.h"

#include <glib/gstdio.h>

#include "base/tiny-error.h"
#include "ir/tiny-text.h"
#include "ir/tiny-verify.h"

enum { MAX_FILE = 64 << 20 };

void
kernels_clear (Kernels *self)
{
  g_clear_pointer (&self->graph, tiny_graph_free);
  g_clear_pointer (&self->schedule, tiny_schedule_free);
  g_clear_pointer (&self->kernels, g_ptr_array_unref);
  g_clear_pointer (&self->verdicts, g_array_unref);
}

TinyGraph *
kernels_get_graph (const Kernels *self)
{
  return self->schedule ? self->schedule->graph : self->graph;
}

static gboolean
is_kernel (const TinyNode *sink)
{
  for (guint i = 0; i < sink->n_sources; i++)
    if (sink->sources[i]->op != TINY_OP_STORE)
      return FALSE;
  return sink->op == TINY_OP_SINK && sink->n_sources > 0;
}

/* Whatever device a file names, its kernels are made for the one that is asked for. */
static const TinyTarget *
get_target (const char *name, gpointer device)
{
  return tiny_device_get_target (device);
}

typedef struct {
  TinyDevice *device;
  GArray *verdicts;
} Asked;

static const TinyTarget *
find_target (const char *name, gpointer asked)
{
  return get_target (name, ((Asked *) asked)->device);
}

static gboolean
claim (const char *name, const TinyOperation *operation, double own_ns, gpointer data)
{
  Asked *asked = data;
  return tiny_claims_decide (asked->device, operation, own_ns, asked->verdicts);
}

gboolean
kernels_read (const char *path, TinyDevice *device, Kernels *out, GError **error)
{
  g_autofree char *text = NULL;
  gsize size;
  g_autoptr (GError) io_error = NULL;
  GStatBuf info;
  if (g_stat (path, &info) == 0 && (!S_ISREG (info.st_mode) || info.st_size > MAX_FILE)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: wanted a file of at most 64 MiB", path);
    return FALSE;
  }
  if (!g_file_get_contents (path, &text, &size, &io_error)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: %s", path, io_error->message);
    return FALSE;
  }
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *root = tiny_graph_parse (graph, text, error);
  if (root == NULL) {
    g_prefix_error (error, "%s: ", path);
    return FALSE;
  }
  gboolean kernel = is_kernel (root);
  if (!kernel && root->op != TINY_OP_SINK)
    root = tiny_node_sink (graph, 1, &root, NULL);
  if (!tiny_graph_verify (graph, root, kernel ? TINY_STAGE_KERNEL : TINY_STAGE_TENSOR, error)) {
    g_prefix_error (error, "%s: ", path);
    return FALSE;
  }
  out->kernels = g_ptr_array_new ();
  if (kernel) {
    out->graph = g_steal_pointer (&graph);
    g_ptr_array_add (out->kernels, root);
    return TRUE;
  }
  out->verdicts = g_array_new (FALSE, FALSE, sizeof (TinyVerdict));
  Asked asked = { device, out->verdicts };
  const TinyScheduleOptions options
      = { .find_target = find_target, .data = &asked, .claim = claim };
  out->schedule = tiny_schedule_new_with (g_steal_pointer (&graph), root, &options, error);
  for (guint i = 0; out->schedule != NULL && i < out->schedule->n_items; i++)
    if (out->schedule->items[i].kind == TINY_SCHEDULE_KERNEL)
      g_ptr_array_add (out->kernels, out->schedule->items[i].kernel);
  return out->schedule != NULL;
}
