/* SPDX-License-Identifier: MIT
 *
 * export-c.c: a model as NAME.h, NAME.c and NAME.safetensors, in C11 without a library.
 *
 * Kernels are functions (buffers, variables, begin, end) over grid points, as docs/export.md asks of a
 * renderer whose manifest wants this form. NAME_run () calls them in order; weights and temporaries lie in memory that
 * its caller gives, so it can run on several threads at once. */
#include <string.h>

#include "base/tiny-error.h"
#include "io/export-private.h"

static const char *const c_types[TINY_N_DTYPES] = {
  [TINY_DTYPE_BOOL] = "uint8_t",   [TINY_DTYPE_I8] = "int8_t",
  [TINY_DTYPE_U8] = "uint8_t",     [TINY_DTYPE_I16] = "int16_t",
  [TINY_DTYPE_U16] = "uint16_t",   [TINY_DTYPE_I32] = "int32_t",
  [TINY_DTYPE_U32] = "uint32_t",   [TINY_DTYPE_I64] = "int64_t",
  [TINY_DTYPE_U64] = "uint64_t",   [TINY_DTYPE_F8E4M3] = "uint8_t",
  [TINY_DTYPE_F8E5M2] = "uint8_t", [TINY_DTYPE_F16] = "uint16_t",
  [TINY_DTYPE_BF16] = "uint16_t",  [TINY_DTYPE_F32] = "float",
  [TINY_DTYPE_F64] = "double",
};

/* An export, and what its functions and macros call the ports, in order. */
typedef struct {
  const TinyExport *export;
  GPtrArray *inputs, *outputs; /* of char * */
} Program;

/* "in_" or "out_" and the port's name, so it is no keyword and no other parameter's. Two that differ in
 * dots or in case alone would be one parameter or one macro: the later gets a number. */
static GPtrArray *
name_ports (const GPtrArray *ports, const char *prefix)
{
  GPtrArray *names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GHashTable) macros = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < ports->len; i++) {
    g_autofree char *plain
        = g_strconcat (prefix, ((const TinyPort *) ports->pdata[i])->name, NULL);
    char *name = g_strdup (g_strdelimit (plain, ".", '_'));
    for (guint n = 2; !g_hash_table_add (macros, g_ascii_strup (name, -1)); n++) {
      g_free (name);
      name = g_strdup_printf ("%s_%u", plain, n);
    }
    g_ptr_array_add (names, name);
  }
  return names;
}

static void
program_clear (Program *self)
{
  g_clear_pointer (&self->inputs, g_ptr_array_unref);
  g_clear_pointer (&self->outputs, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Program, program_clear)

static char *
signature (const Program *self)
{
  const TinyModel *model = self->export->model;
  GString *text = g_string_new (NULL);
  g_string_append_printf (text, "%s_run (const void *weights, void *scratch",
                          self->export->name);
  for (guint i = 0; i < model->inputs->len; i++)
    g_string_append_printf (text, ", const %s *%s",
                            c_types[((const TinyPort *) model->inputs->pdata[i])->dtype],
                            (const char *) self->inputs->pdata[i]);
  for (guint i = 0; i < model->outputs->len; i++)
    g_string_append_printf (text, ", %s *%s",
                            c_types[((const TinyPort *) model->outputs->pdata[i])->dtype],
                            (const char *) self->outputs->pdata[i]);
  g_string_append_c (text, ')');
  return g_string_free (text, FALSE);
}

/* ---- the header ---- */
static void
describe_ports (GString *out, const GPtrArray *ports, const GPtrArray *names)
{
  for (guint i = 0; i < ports->len; i++) {
    const TinyPort *port = ports->pdata[i];
    const char *name = names->pdata[i];
    g_string_append_printf (out, " *   %s: %s, (", name, tiny_dtype_to_string (port->dtype));
    for (guint d = 0; d < port->n_dims; d++)
      g_string_append_printf (out, "%s%" G_GINT64_FORMAT, d > 0 ? ", " : "", port->shape[d]);
    g_string_append_c (out, ')');
    if (!g_str_has_suffix (name, port->name))
      g_string_append_printf (out, ", which the model calls %s", port->name);
    g_string_append_c (out, '\n');
  }
}

static void
define_sizes (GString *out, const GPtrArray *ports, const GPtrArray *names, const char *upper)
{
  for (guint i = 0; i < ports->len; i++) {
    const TinyPort *port = ports->pdata[i];
    g_autofree char *macro = g_ascii_strup (names->pdata[i], -1);
    g_string_append_printf (out, "#define %s_N_%s %" G_GSIZE_FORMAT "\n", upper, macro,
                            port->n_bytes / tiny_dtype_get_n_bytes (port->dtype));
  }
}

static char *
make_header (const Program *program)
{
  const TinyExport *self = program->export;
  const TinyModel *model = self->model;
  const char *name = self->name;
  g_autofree char *upper = g_ascii_strup (name, -1), *run = signature (program);
  const gboolean has_weights = tiny_export_get_n_bytes (self) > 0;
  GString *out = g_string_new (NULL);
  g_string_append_printf (
      out,
      "/* %s.h: a computation exported by tinycore %s.\n *\n"
      " * Load the weights once, then run it as often as wanted, on several threads with a "
      "scratch\n"
      " * for each:\n *\n"
      " *   void *weights = malloc (%s_WEIGHTS_BYTES), *scratch = malloc (%s_SCRATCH_BYTES);\n"
      " *   if (%s_load (%s%s%s, weights) != 0) …\n"
      " *\n * Arrays are row-major.\n",
      name, TINY_VERSION, upper, upper, name, has_weights ? "\"" : "",
      has_weights ? name : "NULL", has_weights ? ".safetensors\"" : "");
  describe_ports (out, model->inputs, program->inputs);
  describe_ports (out, model->outputs, program->outputs);
  g_string_append_printf (out,
                          " */\n#ifndef %s_H\n#define %s_H\n\n#include <stdint.h>\n\n"
                          "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
                          "/* Bytes, never 0; aligned as malloc () does. */\n"
                          "#define %s_WEIGHTS_BYTES %" G_GSIZE_FORMAT "\n"
                          "#define %s_SCRATCH_BYTES %" G_GINT64_FORMAT "\n"
                          "/* Elements. */\n",
                          upper, upper, upper, MAX (tiny_export_get_n_bytes (self), 8), upper,
                          MAX (tiny_export_get_arena_bytes (self), 8));
  define_sizes (out, model->inputs, program->inputs, upper);
  define_sizes (out, model->outputs, program->outputs, upper);
  g_string_append_printf (out,
                          "\n/* Reads the weights: 0, or -1 when the file cannot be read or is "
                          "not the one made with this\n"
                          " * code. */\nint %s_load (const char *path, void *weights);\n\n"
                          "void %s;\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
                          name, run);
  return g_string_free (out, FALSE);
}

/* ---- the source ---- */
static gboolean
hash_data (const TinyExport *self, guint64 *out, GError **error)
{
  guint64 hash = G_GUINT64_CONSTANT (0xcbf29ce484222325); /* FNV-1a */
  for (guint i = 0; i < self->data->arrays->len; i++) {
    gsize size;
    g_autoptr (GBytes) data = tiny_array_read (self->data->arrays->pdata[i], error);
    if (data == NULL)
      return FALSE;
    const guint8 *bytes = g_bytes_get_data (data, &size);
    for (gsize b = 0; b < size; b++)
      hash = (hash ^ bytes[b]) * G_GUINT64_CONSTANT (0x100000001b3);
  }
  *out = hash;
  return TRUE;
}

static void
append_load (GString *out, const TinyExport *self, guint64 hash)
{
  gsize n = tiny_export_get_n_bytes (self);
  if (n == 0) {
    g_string_append_printf (out,
                            "int\n%s_load (const char *path, void *weights)\n{\n"
                            "  (void) path, (void) weights; /* there are none */\n"
                            "  return 0;\n}\n\n",
                            self->name);
    return;
  }
  g_string_append_printf (
      out,
      "/* The file's data follows its header; its hash is FNV-1a's. */\n"
      "int\n%s_load (const char *path, void *weights)\n{\n"
      "  const size_t n_bytes = %" G_GSIZE_FORMAT ";\n"
      "  const uint16_t one = 1;\n"
      "  unsigned char *const data = weights;\n"
      "  uint64_t hash = 0xcbf29ce484222325u;\n"
      "  FILE *file = fopen (path, \"rb\");\n"
      "  size_t n = 0;\n"
      "  if (file == NULL)\n    return -1;\n"
      "  if (*(const unsigned char *) &one == 1 && fseek (file, %" G_GSIZE_FORMAT
      ", SEEK_SET) == 0)\n"
      "    n = fread (data, 1, n_bytes, file);\n"
      "  if (fgetc (file) != EOF)\n    n = 0;\n"
      "  fclose (file);\n"
      "  for (size_t i = 0; i < n; i++)\n"
      "    hash = (hash ^ data[i]) * 0x100000001b3u;\n"
      "  return n == n_bytes && hash == 0x%" G_GINT64_MODIFIER "xu ? 0 : -1;\n}\n\n",
      self->name, n, self->data_offset, hash);
}

/* What a kernel gets for a buffer of the schedule. */
static char *
place_of (const Program *program, guint b)
{
  const TinyExport *self = program->export;
  const TinyModel *model = self->model;
  const TinySchedule *schedule = self->recipe->schedule;
  const TinyScheduleBuffer *buffer = &schedule->buffers[b];
  if (buffer->kind == TINY_SCHEDULE_TEMPORARY)
    return g_strdup_printf ("t + %" G_GINT64_FORMAT, buffer->slot);
  if (buffer->kind == TINY_SCHEDULE_OUTPUT)
    return g_strdup (program->outputs->pdata[buffer->slot]);
  if (buffer->slot < model->inputs->len)
    return g_strconcat ("(void *) ", program->inputs->pdata[buffer->slot], NULL);
  const TinyArray *weight = model->weights->pdata[buffer->slot - model->inputs->len];
  return g_strdup_printf ("(void *) (w + %" G_GSIZE_FORMAT ")",
                          tiny_export_get_offset (self, weight->name));
}

static void
append_unused (GString *out, const GPtrArray *names)
{
  for (guint i = 0; i < names->len; i++)
    g_string_append_printf (out, "  (void) %s;\n", (const char *) names->pdata[i]);
}

static void
append_run (GString *out, const Program *program)
{
  const TinyExport *self = program->export;
  const TinySchedule *schedule = self->recipe->schedule;
  g_autofree char *run = signature (program);
  g_string_append_printf (out,
                          "void\n%s\n{\n  const char *const w = weights;\n"
                          "  char *const t = scratch;\n  (void) w, (void) t;\n",
                          run);
  for (guint i = 0; i < schedule->n_items; i++) {
    const TinyScheduleItem *item = &schedule->items[i];
    const TinyRecipeKernel *kernel
        = self->recipe->kernels->pdata[self->recipe->kernel_of_item[i]];
    g_string_append (out, "  {\n    void *const buffers[] = { ");
    for (guint b = 0; b < item->n_buffers; b++) {
      g_autofree char *place = place_of (program, item->buffers[b]);
      g_string_append_printf (out, "%s%s", b > 0 ? ", " : "", place);
    }
    g_string_append_printf (
        out, " };\n    tiny_kernel_%s (buffers, NULL, 0, %" G_GINT64_FORMAT ");\n  }\n",
        kernel->name, (gint64) kernel->grid[0] * kernel->grid[1] * kernel->grid[2]);
  }
  /* no kernel may read an input, and none writes an output without elements */
  append_unused (out, program->inputs);
  append_unused (out, program->outputs);
  g_string_append (out, "}\n");
}

static char *
make_source (const Program *program, guint64 hash)
{
  const TinyExport *self = program->export;
  const char *prelude = self->target->renderer->dialect->prelude;
  GString *out = g_string_new (NULL);
  g_string_append_printf (
      out,
      "/* %s.c: made by tinycore %s; %s.h says how it is used. */\n#include \"%s.h\"\n\n"
      "#include <stddef.h>\n#include <stdio.h>\n\n"
      "/* ---- kernels: grid points begin to end - 1 ---- */\n#undef TINY_KERNEL\n#define "
      "TINY_KERNEL static\n%s",
      self->name, TINY_VERSION, self->name, self->name, prelude ? prelude : "");
  for (guint i = 0; i < self->recipe->kernels->len; i++)
    g_string_append_printf (
        out, "%s\n", ((const TinyRecipeKernel *) self->recipe->kernels->pdata[i])->source);
  g_string_append (out, "/* ---- the program ---- */\n");
  append_load (out, self, hash);
  append_run (out, program);
  return g_string_free (out, FALSE);
}

/* What of the form's demands on a renderer can be seen. */
static gboolean
check_kernels (const TinyExport *self, GError **error)
{
  for (guint i = 0; i < self->recipe->kernels->len; i++) {
    const TinyRecipeKernel *kernel = self->recipe->kernels->pdata[i];
    g_autofree char *head = g_strdup_printf ("tiny_kernel_%s (void *const *", kernel->name);
    if (strstr (kernel->source, head) != NULL
        && kernel->group[0] * kernel->group[1] * kernel->group[2] == 1)
      continue;
    g_set_error (
        error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
        "its manifest wants the form “c”, but renderer %s does not write kernel %s as "
        "“TINY_KERNEL void tiny_kernel_NAME (void *const *buffers, const int64_t "
        "*variables, int64_t begin, int64_t end)” without work-groups (docs/export.md, "
        "Forms)",
        self->target->renderer->name, kernel->name);
    return FALSE;
  }
  return TRUE;
}

gboolean
tiny_export_c (TinyExport *self, GError **error)
{
  guint64 hash = 0;
  if (!check_kernels (self, error) || !hash_data (self, &hash, error))
    return FALSE;
  g_auto (Program) program = { .export = self,
                               .inputs = name_ports (self->model->inputs, "in_"),
                               .outputs = name_ports (self->model->outputs, "out_") };
  g_autofree char *header = make_header (&program), *source = make_source (&program, hash);
  g_autofree char *header_file = g_strconcat (self->name, ".h", NULL);
  g_autofree char *source_file = g_strconcat (self->name, ".c", NULL);
  return tiny_export_write (self, header_file, header, -1, error)
         && tiny_export_write (self, source_file, source, -1, error);
}
