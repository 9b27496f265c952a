/* SPDX-License-Identifier: MIT
 *
 * tiny-export.c: a model as a folder of files that need nothing of this library.
 *
 * The target's renderer writes the kernels; how they and what launches them become files is the target's
 * form. All is written to a folder beside the wanted one, which it becomes at the end. */
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#include "base/tiny-clean.h"
#include "base/tiny-guard.h"
#include "base/tiny-whole-file.h"
#include "io/export-private.h"

static const struct {
  const char *name;
  gboolean (*write) (TinyExport *self, GError **error);
  gboolean wants_code, with_examples;
} forms[] = {
  /* one C file around kernels that are C functions */
  { "c", tiny_export_c, .wants_code = FALSE, .with_examples = FALSE },
  /* a file for each kernel, and as JSON what to do with them */
  { "files", tiny_export_files, .wants_code = TRUE, .with_examples = TRUE },
};

/* ---- for the forms ---- */
gboolean
tiny_export_write (
    TinyExport *self, const char *file, const char *data, gssize n_bytes, GError **error)
{
  g_autofree char *path = g_build_filename (self->folder, file, NULL);
  return tiny_whole_file_write (path, data, n_bytes, error);
}

gsize
tiny_export_get_offset (const TinyExport *self, const char *array)
{
  gsize offset = 0;
  for (guint i = 0; i < self->data->arrays->len; i++) {
    const TinyArray *at = self->data->arrays->pdata[i];
    if (g_str_equal (at->name, array))
      return offset;
    offset += tiny_array_get_n_bytes (at);
  }
  g_return_val_if_reached (0);
}

gsize
tiny_export_get_n_bytes (const TinyExport *self)
{
  gsize n = 0;
  for (guint i = 0; i < self->data->arrays->len; i++)
    n += tiny_array_get_n_bytes (self->data->arrays->pdata[i]);
  return n;
}

gint64
tiny_export_get_arena_bytes (const TinyExport *self)
{
  const TinySchedule *schedule = self->recipe->schedule;
  gint64 n = 0;
  for (guint i = 0; i < schedule->n_arenas; i++)
    n = MAX (n, schedule->arenas[i].n_bytes);
  return n;
}

/* ---- the folder ---- */
static void
remove_folder (const char *path)
{
  g_autoptr (GDir) folder = g_dir_open (path, 0, NULL);
  const char *name;
  while (folder != NULL && (name = g_dir_read_name (folder)) != NULL) {
    g_autofree char *inner = g_build_filename (path, name, NULL);
    if (g_file_test (inner, G_FILE_TEST_IS_DIR) && !g_file_test (inner, G_FILE_TEST_IS_SYMLINK))
      remove_folder (inner);
    else
      g_unlink (inner);
  }
  g_rmdir (path);
}

static gboolean
fail_io (GError **error, const char *path, int reason)
{
  g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: %s", path,
               reason == ENOTEMPTY || reason == EEXIST
                   ? "there is something in it; name a folder that is not there yet, or empty"
                   : g_strerror (reason));
  return FALSE;
}

/* Refuses a folder that is in use before anything is done. */
static gboolean
check_folder (const char *path, GError **error)
{
  g_autoptr (GDir) folder = g_dir_open (path, 0, NULL);
  if (folder != NULL && g_dir_read_name (folder) != NULL)
    return fail_io (error, path, ENOTEMPTY);
  if (folder == NULL && g_file_test (path, G_FILE_TEST_EXISTS))
    return fail_io (error, path, ENOTDIR);
  return TRUE;
}

/* The files that the target adds, such as the page around its kernels. */
static gboolean
copy_files (TinyExport *self, GError **error)
{
  const char *from = self->target->folder;
  g_autoptr (GError) why = NULL;
  g_autoptr (GDir) folder = from != NULL ? g_dir_open (from, 0, &why) : NULL;
  const char *name;
  while (folder != NULL && (name = g_dir_read_name (folder)) != NULL) {
    g_autofree char *path = g_build_filename (from, name, NULL), *text = NULL;
    gsize size;
    if (!g_file_get_contents (path, &text, &size, &why))
      break;
    if (!tiny_export_write (self, name, text, (gssize) size, error))
      return FALSE;
  }
  if (why != NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "the target's own files: %s", why->message);
  return why == NULL;
}

/* ---- all of it ---- */

/* The model's graph once more, for the schedule to take. */
static TinyRecipe *
make_recipe (const TinyExport *self, gboolean wants_code, GError **error)
{
  const TinyCodeTarget *target = self->target;
  g_autofree char *prefix = g_strconcat (self->name, "_", NULL);
  const TinyRecipeOptions options = { .renderer = target->renderer,
                                      .target = &target->target,
                                      .prefix = prefix,
                                      .wants_code = wants_code };
  TinyGraph *graph = tiny_graph_new ();
  TinyNode *sink = tiny_graph_import (graph, self->model->sink);
  g_autofree TinyNode **roots = g_new (TinyNode *, sink->n_sources);
  for (guint i = 0; i < sink->n_sources; i++)
    roots[i] = tiny_node_new (graph, TINY_OP_CONTIGUOUS, sink->sources[i]->dtype, 1, 1,
                              &sink->sources[i], 0, NULL, NULL);
  sink = tiny_node_sink (graph, sink->n_sources, roots, target->target.arch);
  return tiny_recipe_new (graph, sink, &options, error);
}

/* Every output has memory of its own, and is computed. */
static gboolean
check_outputs (const TinyExport *self, GError **error)
{
  const TinySchedule *schedule = self->recipe->schedule;
  for (guint i = 0; i < schedule->n_outputs; i++) {
    gboolean is_own = schedule->buffers[schedule->outputs[i]].kind == TINY_SCHEDULE_OUTPUT;
    for (guint j = 0; j < i; j++)
      is_own = is_own && schedule->outputs[j] != schedule->outputs[i];
    if (!is_own) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                   "output “%s” is an input, a weight or another output as it is",
                   ((const TinyPort *) self->model->outputs->pdata[i])->name);
      return FALSE;
    }
  }
  return TRUE;
}

static void
collect_data (TinyExport *self)
{
  const TinyModel *model = self->model;
  for (guint i = 0; i < model->weights->len; i++) {
    const TinyArray *a = model->weights->pdata[i];
    g_ptr_array_add (self->data->arrays, tiny_array_rename (a, a->name));
  }
  for (guint i = 0; self->with_examples && i < model->examples->len; i++) {
    const TinyArray *a = model->examples->pdata[i];
    g_autofree char *name = g_strconcat ("examples.", a->name, NULL);
    g_ptr_array_add (self->data->arrays, tiny_array_rename (a, name));
  }
}

static gboolean
write_all (TinyExport *self, guint form, GError **error)
{
  g_autofree char *file = g_strconcat (self->name, ".safetensors", NULL);
  g_autofree char *path = g_build_filename (self->folder, file, NULL);
  collect_data (self);
  if (self->data->arrays->len > 0
      && !tiny_safetensors_write (self->data, path, &self->data_offset, error))
    return FALSE;
  return forms[form].write (self, error) && copy_files (self, error);
}

/* Writes to a folder beside @folder and puts it there. */
static gboolean
write_folder (TinyExport *self, guint form, const char *folder, GError **error)
{
  g_autofree char *plain = g_canonicalize_filename (folder, NULL);
  g_autofree char *beside = g_strconcat (plain, ".XXXXXX", NULL);
  if (g_mkdtemp_full (beside, 0777) == NULL)
    return fail_io (error, folder, errno);
  self->folder = beside;
  gboolean good = write_all (self, form, error);
  if (good && g_rename (beside, plain) != 0)
    good = fail_io (error, folder, errno);
  if (!good)
    remove_folder (beside);
  return good;
}

/* @text as a C identifier. */
static char *
make_identifier (const char *text)
{
  GString *name = g_string_new (text);
  for (gsize i = 0; i < name->len; i++)
    if (!g_ascii_isalnum (name->str[i]))
      name->str[i] = '_';
  if (name->len == 0 || !g_ascii_isalpha (name->str[0]))
    g_string_prepend (name, "model_");
  return g_string_free (name, FALSE);
}

static gboolean
export_for (TinyExport *self, const char *folder, GError **error)
{
  guint form = 0;
  while (form < G_N_ELEMENTS (forms) && !g_str_equal (forms[form].name, self->target->form))
    form++;
  if (form == G_N_ELEMENTS (forms)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "its manifest wants the form “%s”, this library writes c and files",
                 self->target->form);
    return FALSE;
  }
  if (!forms[form].wants_code && self->target->renderer->dialect == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "renderer %s makes code for one machine and no source text",
                 self->target->renderer->name);
    return FALSE;
  }
  self->with_examples = forms[form].with_examples;
  self->recipe = make_recipe (self, forms[form].wants_code, error);
  return self->recipe != NULL && check_outputs (self, error)
         && write_folder (self, form, folder, error);
}

gboolean
tiny_model_export (
    TinyModel *self, const char *target, const char *name, const char *folder, GError **error)
{
  g_auto (TinyMessage) message = error;
  tiny_return_error_unless (TINY_IS_MODEL (self), error, FALSE, "no model given");
  tiny_return_error_unless (target != NULL, error, FALSE, "no target given");
  tiny_return_error_unless (folder != NULL, error, FALSE, "no folder given");
  g_auto (TinyCodeTarget) code = { 0 };
  if (!check_folder (folder, error)
      || !tiny_registry_find_code_target (tiny_registry_get_default (), target, &code, error))
    return FALSE;
  g_autofree char *last = g_path_get_basename (folder);
  g_autofree char *identifier = make_identifier (name != NULL ? name : last);
  g_autoptr (TinySafetensors) data = tiny_safetensors_new ();
  TinyExport export = { .model = self, .target = &code, .name = identifier, .data = data };
  gboolean good = export_for (&export, folder, error);
  if (!good)
    g_prefix_error (error, "export for “%s”: ", target);
  tiny_recipe_free (export.recipe);
  return good;
}
