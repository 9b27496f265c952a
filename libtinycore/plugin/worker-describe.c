/* SPDX-License-Identifier: MIT
 *
 * worker-describe.c: what a module's tables hold beside functions, as bytes.
 *
 * Numbers first, then texts in a fixed order, each a byte that says whether it is there and, if it is, its characters
 * with the NUL. All of a dialect is texts. */
#include "plugin/worker-describe.h"

#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-memory.h"

typedef struct {
  guint32 flags, n_renderers;
} Numbers;

enum {
  MAX_RENDERERS = 256,
  N_DIALECT_TEXTS
  = (G_STRUCT_OFFSET (TinyDialect, reserved) - G_STRUCT_OFFSET (TinyDialect, prelude))
    / sizeof (char *)
};
G_STATIC_ASSERT (G_STRUCT_OFFSET (TinyDialect, prelude) + N_DIALECT_TEXTS * sizeof (char *)
                 == G_STRUCT_OFFSET (TinyDialect, reserved));
/* Whoever adds to a renderer says here what becomes of it. */
G_STATIC_ASSERT (G_STRUCT_OFFSET (TinyRenderer, reserved)
                 == G_STRUCT_OFFSET (TinyRenderer, claim_kinds) + sizeof (guint64));

static void
put_text (TinyVector *out, const char *text)
{
  const guint8 is_there = text != NULL;
  tiny_vector_append (out, &is_there, 1);
  if (text != NULL)
    tiny_vector_append (out, text, strlen (text) + 1);
}

GBytes *
worker_description_write (const TinyPluginModule *module)
{
  TinyVector out = { NULL };
  const Numbers numbers = { module->flags, module->n_renderers };
  tiny_vector_append (&out, &numbers, sizeof numbers);
  put_text (&out, module->name);
  put_text (&out, module->vendor);
  put_text (&out, module->version);
  put_text (&out, module->license);
  for (guint i = 0; i < module->n_renderers; i++) {
    const TinyRenderer *renderer = &module->renderers[i];
    put_text (&out, renderer->name);
    put_text (&out, renderer->code_version);
    put_text (&out, renderer->target != NULL ? "" : NULL);
    put_text (&out, renderer->disassemble != NULL ? "" : NULL);
    put_text (&out, renderer->claim != NULL ? "" : NULL);
    g_autofree char *kinds = g_strdup_printf ("%" G_GUINT64_FORMAT, renderer->claim_kinds);
    put_text (&out, kinds);
    put_text (&out, (renderer->flags & TINY_RENDERER_CLAIMS_ONLY) != 0 ? "" : NULL);
    put_text (&out, renderer->dialect != NULL ? "" : NULL);
    const char *const *texts = renderer->dialect ? &renderer->dialect->prelude : NULL;
    for (guint t = 0; texts != NULL && t < N_DIALECT_TEXTS; t++)
      put_text (&out, texts[t]);
  }
  return tiny_vector_steal_bytes (&out);
}

/* ---- reading ---- */
typedef struct {
  const char *at;
  gsize left;
  gboolean is_wrong;
} Reader;

static const char *
take_text (Reader *reader)
{
  if (reader->left == 0) {
    reader->is_wrong = TRUE;
    return NULL;
  }
  const gboolean is_there = *reader->at != 0;
  reader->at++;
  reader->left--;
  const char *text = reader->at, *end = is_there ? memchr (text, 0, reader->left) : NULL;
  if (end == NULL) {
    reader->is_wrong = reader->is_wrong || is_there;
    return NULL;
  }
  reader->left -= (gsize) (end + 1 - text);
  reader->at = end + 1;
  return text;
}

static TinyStatus
stub_init (const TinyHost *host, TinyPluginError *error)
{
  return TINY_STATUS_INTERNAL;
}

static TinyStatus
stub_scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  return TINY_STATUS_INTERNAL;
}

static TinyStatus
stub_open (const char *id,
           TinyPluginDevice **out,
           const TinyDeviceTable **out_table,
           TinyPluginError *error)
{
  return TINY_STATUS_INTERNAL;
}

static TinyStatus
stub_target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  return TINY_STATUS_INTERNAL;
}

static TinyStatus
stub_compile (const TinyCompileArgs *args,
              void **out_data,
              uint64_t *out_size,
              TinyPluginError *error)
{
  return TINY_STATUS_INTERNAL;
}

static TinyStatus
stub_disassemble (const void *data, uint64_t size, char **out_text, TinyPluginError *error)
{
  return TINY_STATUS_INTERNAL;
}

static TinyStatus
stub_claim (const char *arch,
            const TinyOperation *operation,
            TinyClaim *out,
            TinyPluginError *error)
{
  return TINY_STATUS_INTERNAL;
}

static void
read_renderer (Reader *reader, TinyRenderer *out, TinyDialect *dialect)
{
  *out = (TinyRenderer){ .struct_size = sizeof *out, .compile = stub_compile };
  out->name = take_text (reader);
  out->code_version = take_text (reader);
  if (take_text (reader) != NULL)
    out->target = stub_target;
  if (take_text (reader) != NULL)
    out->disassemble = stub_disassemble;
  if (take_text (reader) != NULL)
    out->claim = stub_claim;
  const char *kinds = take_text (reader);
  out->claim_kinds = kinds != NULL ? g_ascii_strtoull (kinds, NULL, 10) : 0;
  if (take_text (reader) != NULL)
    out->flags = TINY_RENDERER_CLAIMS_ONLY;
  if (take_text (reader) == NULL)
    return;
  dialect->struct_size = sizeof *dialect;
  const char **texts = &dialect->prelude;
  for (guint t = 0; t < N_DIALECT_TEXTS; t++)
    texts[t] = take_text (reader);
  out->dialect = dialect;
}

static gboolean
fail (GError **error)
{
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                       "its process describes it wrongly");
  return FALSE;
}

gboolean
worker_description_read (GBytes *bytes,
                         TinyPluginModule *out,
                         TinyRenderer **out_renderers,
                         TinyDialect **out_dialects,
                         GError **error)
{
  gsize n_bytes;
  const char *data = g_bytes_get_data (bytes, &n_bytes);
  Numbers numbers;
  if (n_bytes < sizeof numbers)
    return fail (error);
  memcpy (&numbers, data, sizeof numbers);
  if (numbers.n_renderers > MAX_RENDERERS)
    return fail (error);
  Reader reader = { data + sizeof numbers, n_bytes - sizeof numbers, FALSE };
  const gsize n_dialects = (numbers.n_renderers + 1) * sizeof (TinyDialect);
  *out_renderers = g_new0 (TinyRenderer, numbers.n_renderers + 1);
  *out_dialects = tiny_memory_try (n_dialects, "what its process says of it", error);
  if (*out_dialects == NULL)
    return FALSE;
  memset (*out_dialects, 0, n_dialects);
  *out = (TinyPluginModule){ .struct_size = sizeof *out,
                             .flags = numbers.flags,
                             .abi_major = TINY_PLUGIN_ABI_MAJOR,
                             .abi_minor = TINY_PLUGIN_ABI_MINOR,
                             .n_renderers = numbers.n_renderers,
                             .renderers = *out_renderers,
                             .init = stub_init,
                             .scan = stub_scan,
                             .open = stub_open };
  out->name = take_text (&reader);
  out->vendor = take_text (&reader);
  out->version = take_text (&reader);
  out->license = take_text (&reader);
  for (guint i = 0; i < numbers.n_renderers; i++)
    read_renderer (&reader, &(*out_renderers)[i], &(*out_dialects)[i]);
  return (!reader.is_wrong && reader.left == 0) || fail (error);
}
