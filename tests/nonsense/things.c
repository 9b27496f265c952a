/* SPDX-License-Identifier: MIT
 *
 * things.c: makes files and memory, and calls, see things.h. */
#include "things.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static char long_word[5000];          /* longer than any name of a file may be */
static GPtrArray *all_bytes, *tables; /* of this episode */
static char *folder, *origin, *first_device;
static gboolean has_place;

/* ---- words ---- */
const char *const words_name[] = { "weight",
                                   "bias",
                                   "0.weight",
                                   "x",
                                   "y",
                                   "a.b",
                                   ".",
                                   "..",
                                   "running_mean",
                                   "relu",
                                   "gelu",
                                   "tanh",
                                   "softmax",
                                   "n",
                                   "lr",
                                   "betas",
                                   "momentum",
                                   "weight_decay",
                                   "eps",
                                   "same",
                                   "different",
                                   "error",
                                   "layers",
                                   "float32",
                                   "i32",
                                   "bool",
                                   "0",
                                   "1",
                                   "-1",
                                   "99999999999999999999",
                                   "fashion-mnist",
                                   long_word,
                                   NULL };
const char *const words_path[] = { "good.safetensors",
                                   "cut.safetensors",
                                   "noise.safetensors",
                                   "good.tir",
                                   "noise.tir",
                                   "none.tir",
                                   "idx",
                                   "cut.idx",
                                   "folder",
                                   "folder/new.safetensors",
                                   "new.safetensors",
                                   "new.tir",
                                   "folder/",
                                   "/",
                                   ".",
                                   "none/none.tir",
                                   "c",
                                   "webgpu",
                                   "weight",
                                   "0.weight",
                                   "CPU",
                                   "REF",
                                   "a\nb",
                                   long_word,
                                   NULL };
const char *const words_device[]
    = { "REF",  "NULL", "REF:0", "REF:1",         "REF:99",  "REF:-1",   "REF;NULL",
        "REF;", ";",    ":",     "REF:REF:REF",   "NOPE",    "NOPE|REF", "REF?x=y",
        "REF?", "help", "+",     "ISOLATED+NOPE", long_word, NULL };
const char *const words_pattern[] = { "i",       "s",  ":",   "t",  "n",   ".",
                                      "is:",     ".i", "t:t", "ss", "tn.", "nnnnnnnnnnnnnnnnn",
                                      long_word, NULL };
const char *const words_code[] = { "()",
                                   "; nothing",
                                   "%0 = const f32 () 1",
                                   "%0 = param f32 (2) 0\n%1 = sink void () %0",
                                   "%0 = %0",
                                   "%99999999999999999999 = add",
                                   "(((((((",
                                   long_word,
                                   NULL };
const char *const words_setting[]
    = { "TINY_NO_MERGE", "TINY_NO_OPT", "TINY_VERIFY", "tiny", long_word, NULL };

/* ---- numbers and memory ---- */
guint64
chance_count (Chance *c)
{
  static const guint64 some[]
      = { 0,          1,           2,          3, 4, 5,    8,
          24,         1,           2,          3, 4, 1000, (guint64) 1 << 20,
          G_MAXINT32, G_MAXUINT32, G_MAXUINT64 };
  guint64 n = some[chance_int (c, chance_int (c, 3) == 0 ? G_N_ELEMENTS (some) : 12)];
  g_string_append_printf (c->text, "%" G_GUINT64_FORMAT ", ", n);
  return n;
}

guint64 *
chance_counts (Chance *c, guint *out_n)
{
  *out_n = chance_int (c, 5);
  if (chance_int (c, 6) == 0)
    return NULL;
  guint64 *counts = g_new0 (guint64, *out_n + 1);
  g_ptr_array_add (c->lists, counts);
  for (guint i = 0; i < *out_n; i++)
    counts[i] = chance_count (c);
  return counts;
}

gint
chance_enum (Chance *c)
{
  static const gint some[] = { 0, 1, 2, 3, 255, -1, G_MAXINT, G_MININT };
  gint value = some[chance_int (c, G_N_ELEMENTS (some))];
  g_string_append_printf (c->text, "enum %d, ", value);
  return value;
}

gpointer
chance_memory (Chance *c, gsize *out_n_bytes)
{
  static const gsize some[] = { 0, 1, 4, 8, 12, 16, 24, 36, 48, 96 };
  *out_n_bytes = some[chance_int (c, G_N_ELEMENTS (some))];
  if (chance_int (c, 8) == 0) {
    g_string_append_printf (c->text, "NULL × %" G_GSIZE_FORMAT ", ", *out_n_bytes);
    return NULL;
  }
  g_string_append_printf (c->text, "%" G_GSIZE_FORMAT " bytes, ", *out_n_bytes);
  gpointer memory = g_malloc0 (MAX (*out_n_bytes, 1));
  g_ptr_array_add (c->lists, memory);
  return memory;
}

gpointer
chance_out (Chance *c, gsize n_bytes)
{
  gpointer room = chance_int (c, 8) == 0 ? NULL : g_malloc0 (n_bytes);
  g_string_append (c->text, room != NULL ? "room, " : "no room, ");
  if (room != NULL)
    g_ptr_array_add (c->lists, room);
  return room;
}

GBytes *
chance_bytes (Chance *c)
{
  gsize n;
  gpointer memory = chance_memory (c, &n);
  if (memory != NULL)
    g_ptr_array_add (all_bytes, g_bytes_new_static (memory, n));
  return memory != NULL ? all_bytes->pdata[all_bytes->len - 1] : NULL;
}

static void
unref_some (gpointer object)
{
  g_clear_object (&object);
}

GHashTable *
chance_table (Chance *c, gboolean of_texts)
{
  guint n = chance_int (c, 6);
  if (n == 5) {
    g_string_append (c->text, "no table, ");
    return NULL;
  }
  GHashTable *table
      = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, of_texts ? NULL : unref_some);
  g_ptr_array_add (tables, table);
  for (guint i = 0; i < n; i++) {
    const char *key = chance_word (c, words_name);
    TinyTensor *tensor = of_texts ? NULL : chance_tensor (c);
    key = key != NULL ? key : "";
    g_hash_table_insert (table, (gpointer) key,
                         of_texts         ? (gpointer) "text"
                         : tensor != NULL ? g_object_ref (tensor)
                                          : NULL);
  }
  return table;
}

static const char **
new_words (Chance *c, guint n)
{
  const char **words = g_new0 (const char *, n + 1);
  g_ptr_array_add (c->lists, words);
  return words;
}

const char *const *
chance_words (Chance *c, const char *const *words)
{
  guint n = chance_int (c, 5);
  if (n == 4)
    return NULL;
  const char **list = new_words (c, n);
  for (guint i = 0; i < n && (i == 0 || list[i - 1] != NULL); i++)
    list[i] = chance_word (c, words);
  return list;
}

const char *const *
chance_names (Chance *c, guint n)
{
  if (n > SLOTS || chance_int (c, 8) == 0)
    return NULL;
  const char **list = new_words (c, n);
  for (guint i = 0; i < n; i++)
    list[i] = chance_word (c, words_name);
  return list;
}

/* ---- calling ---- */
void
chance_about_to_call_of (Chance *c, gboolean has_place_for_error)
{
  has_place = has_place_for_error;
  chance_about_to_call (c);
}

/* A function that can say that it failed does not only write a message. */
static void
meet_message (const char *domain, GLogLevelFlags level, const char *message, gpointer user_data)
{
  const Chance *c = user_data;
  if (level & G_LOG_LEVEL_ERROR)
    g_log_default_handler (domain, level, message, NULL);
  else if (level & (G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING)
           && (has_place || strstr (message, "assertion '") == NULL))
    g_error ("%s (%s): %s", c->name, c->text->str, message);
}

void
check_failure (Chance *c, gboolean failed, GError **at_error)
{
  if (at_error == NULL)
    return;
  if (failed != (*at_error != NULL))
    g_error ("%s (%s): %s", c->name, c->text->str,
             failed ? "it failed without an error" : (*at_error)->message);
  if (failed && ((*at_error)->domain != TINY_ERROR || strlen ((*at_error)->message) < 8))
    g_error ("%s (%s): an error that says nothing: %s", c->name, c->text->str,
             (*at_error)->message);
  g_clear_error (at_error);
}

void
chance_result (Chance *c, gboolean is_floating, TinyTensor *tensor)
{
  if (is_floating)
    chance_take_floating (c, tensor);
  else if (tensor != NULL)
    g_ptr_array_add (c->made, tensor);
}

void
take_list (Chance *c, GPtrArray *tensors)
{
  if (tensors == NULL)
    return;
  for (guint i = 0; i < tensors->len; i++)
    if (tensors->pdata[i] != NULL)
      g_ptr_array_add (c->made, g_object_ref (tensors->pdata[i]));
  g_ptr_array_unref (tensors);
}

void
take_tiny_tensors (Chance *c, TinyTensor **tensors, guint n)
{
  for (guint i = 0; tensors != NULL && i < n; i++)
    if (tensors[i] != NULL)
      g_ptr_array_add (c->made, tensors[i]);
}

void
take_gptr_arrays (Chance *c, GPtrArray **list, guint n)
{
  if (list != NULL)
    take_list (c, *list);
}

void
take_ghash_tables (Chance *c, GHashTable **table, guint n)
{
  if (table != NULL && *table != NULL)
    g_hash_table_unref (*table);
}

void
take_tiny_idxs (Chance *c, TinyIdx *idx, guint n)
{
  chance_take_floating (c, tiny_idx_to_tensor (idx, chance_word (c, words_device)));
  tiny_idx_clear (idx);
}

void
take_tiny_data_sets (Chance *c, TinyDataSet *set, guint n)
{
  tiny_data_set_clear (set);
}

static void
call_quant (Chance *c)
{
  float weights[64] = { 1, NAN, INFINITY, -3 };
  guint8 blocks[2 * 34];
  TinyQuant format = chance_enum (c);
  gint64 n = (gint64[]){ 0, 32, 64, -32, 5 }[chance_int (c, 5)];
  float *from = chance_int (c, 4) == 0 ? NULL : weights;
  chance_about_to_call_of (c, FALSE);
  tiny_quant_encode (format, from, n, chance_int (c, 4) == 0 ? NULL : blocks);
}

static void
call_dlpack (Chance *c)
{
  TinyTensor *tensor = chance_tensor (c);
  gboolean is_versioned = chance_int (c, 2);
  GError *error = NULL;
  chance_about_to_call_of (c, TRUE);
  gpointer managed = tiny_tensor_to_dlpack (tensor, is_versioned, &error);
  check_failure (c, managed == NULL, &error);
  if (chance_int (c, 3) == 0)
    tiny_dlpack_free (managed, is_versioned);
  else
    chance_take_floating (c, tiny_tensor_new_from_dlpack (managed, is_versioned,
                                                          chance_word (c, words_device),
                                                          chance_enum (c)));
}

static void
call_blob (Chance *c)
{
  guint n;
  const gint64 *shape = chance_sizes (c, &n);
  gboolean is_small = !c->is_large && n <= 5;
  TinyDType dtype = chance_dtype (c);
  const char *device = chance_word (c, words_device);
  gpointer memory = is_small && chance_int (c, 4) != 0 ? g_malloc0 (8 * 4096) : NULL;
  chance_about_to_call_of (c, TRUE);
  chance_take_floating (
      c, tiny_tensor_new_from_blob (device, dtype, shape, n, memory, g_free, memory));
}

void
call_things (Chance *c)
{
  static void (*const calls_of_things[]) (Chance *) = { call_quant, call_dlpack, call_blob };
  calls_of_things[chance_int (c, G_N_ELEMENTS (calls_of_things))](c);
}

/* ---- files ---- */
static void
remove_tree (const char *path)
{
  g_autoptr (GDir) dir
      = g_file_test (path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open (path, 0, NULL);
  for (const char *name; dir != NULL && (name = g_dir_read_name (dir)) != NULL;) {
    g_autofree char *inside = g_build_filename (path, name, NULL);
    remove_tree (inside);
  }
  g_remove (path);
}

static void
write_part (const char *name, const char *of, gsize n)
{
  g_autofree char *text = NULL;
  gsize length = 0;
  g_file_get_contents (of, &text, &length, NULL);
  g_file_set_contents_full (name, text, (gssize) MIN (n, length), G_FILE_SET_CONTENTS_NONE,
                            0600, NULL);
}

static void
write_files (Chance *c)
{
  g_autofree char *here = g_build_filename (folder, "here", NULL);
  remove_tree (here);
  if (g_mkdir (here, 0700) != 0 || g_chdir (here) != 0 || g_mkdir ("folder", 0700) != 0)
    g_error ("%s: no folder to work in", here);
  g_autoptr (TinyModel) model = make_model ();
  g_autoptr (TinyModule) network = tiny_linear_new (3, 2, TRUE);
  g_autoptr (GError) error = NULL;
  if (model == NULL || !tiny_model_save (model, "good.tir", &error)
      || !tiny_module_save (network, "good.safetensors", NULL, &error))
    g_error ("no files to read: %s", error != NULL ? error->message : "no model");
  write_part ("cut.safetensors", "good.safetensors", 60);
  write_part ("noise.safetensors", "good.tir", 100);
  write_part ("noise.tir", "good.safetensors", 100);
  static const char idx[] = { 0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3 };
  g_file_set_contents_full ("idx", idx, sizeof idx, G_FILE_SET_CONTENTS_NONE, 0600, NULL);
  g_file_set_contents_full ("cut.idx", idx, 9, G_FILE_SET_CONTENTS_NONE, 0600, NULL);
}

/* ---- life ---- */
void
things_init (void)
{
  memset (long_word, 'a', sizeof long_word - 1);
  all_bytes = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  tables = g_ptr_array_new_with_free_func ((GDestroyNotify) g_hash_table_unref);
  origin = g_get_current_dir ();
  folder = g_dir_make_tmp ("nonsense-XXXXXX", NULL);
  first_device = g_strdup (tiny_get_default_device (NULL));
  if (folder == NULL || first_device == NULL)
    g_error ("no folder, or no device, to work with");
}

static void
forget (void)
{
  forget_things ();
  g_ptr_array_set_size (all_bytes, 0);
  g_ptr_array_set_size (tables, 0);
}

void
things_clear (void)
{
  forget ();
  g_ptr_array_unref (all_bytes);
  g_ptr_array_unref (tables);
  if (g_chdir (origin) == 0)
    remove_tree (folder);
  g_free (first_device);
  g_free (folder);
  g_free (origin);
}

void
things_run (Chance *c, guint64 seed, guint64 number)
{
  static const char *const settings[][2]
      = { { "TINY_NO_MERGE", "0" }, { "TINY_NO_OPT", "0" }, { "TINY_VERIFY", "-1" } };
  gboolean is_folder_changed = c->name == NULL || strstr (c->text->str, "_save (") != NULL
                               || strstr (c->text->str, "_export (") != NULL;
  chance_begin (c, seed, number);
  forget ();
  tiny_set_default_device (first_device, NULL);
  tiny_set_default_float (TINY_DTYPE_F32, NULL);
  tiny_set_grad_enabled (TRUE);
  for (guint i = 0; i < G_N_ELEMENTS (settings); i++)
    tiny_set_setting (settings[i][0], settings[i][1], NULL);
  if (is_folder_changed)
    write_files (c);
  g_log_set_default_handler (meet_message, c);
  guint n_calls_here = 1 + chance_int (c, 6), at = (guint) (number % n_functions);
  for (guint i = 0; i < n_calls_here && !c->is_large; i++) {
    const Call *call = &functions[at];
    g_string_append (c->text, i == 0 ? "" : "); ");
    c->name = call->name;
    c->reads = call->reads;
    g_string_append_printf (c->text, "%s (", call->name);
    call->run (c);
    /* Near in the headers is near in meaning. */
    at = chance_int (c, 2) ? chance_int (c, n_functions)
                           : (at + n_functions + chance_int (c, 17) - 8) % n_functions;
  }
  has_place = TRUE;
}
