/* SPDX-License-Identifier: MIT
 *
 * tiny-table.c: the laws of tiny-plugin.h, applied. */
#include "device/tiny-table.h"

#include <stdlib.h>
#include <string.h>

#include "base/tiny-clean.h"
#include "base/tiny-error.h"

static const struct {
  TinyStatus status;
  TinyError code;
  const char *text; /* when the plugin says nothing */
} statuses[] = {
  { TINY_STATUS_UNSUPPORTED, TINY_ERROR_UNSUPPORTED, "not supported" },
  { TINY_STATUS_INVALID, TINY_ERROR_INVALID, "invalid argument" },
  { TINY_STATUS_OUT_OF_MEMORY, TINY_ERROR_OUT_OF_MEMORY, "out of memory" },
  { TINY_STATUS_BUSY, TINY_ERROR_PERMISSION, "in use by another process" },
  { TINY_STATUS_TIMEOUT, TINY_ERROR_TIMEOUT, "took too long" },
  { TINY_STATUS_PERMISSION, TINY_ERROR_PERMISSION, "permission denied" },
  { TINY_STATUS_NO_DEVICE, TINY_ERROR_NO_DEVICE, "no such device" },
  { TINY_STATUS_DRIVER, TINY_ERROR_DRIVER, "driver missing or unsuitable" },
  { TINY_STATUS_DEVICE_LOST, TINY_ERROR_DEVICE_LOST, "the device stopped working" },
  { TINY_STATUS_COMPILE, TINY_ERROR_COMPILE, "the kernel does not compile" },
  { TINY_STATUS_CORRUPT, TINY_ERROR_FORMAT, "damaged program" },
  { TINY_STATUS_LAUNCH, TINY_ERROR_LAUNCH, "launch failed" },
  { TINY_STATUS_INTERNAL, TINY_ERROR_PLUGIN, "internal error of the plugin" },
};

gboolean
tiny_status_check (TinyStatus status,
                   const TinyPluginError *plugin_error,
                   const char *device,
                   const char *what,
                   GError **error)
{
  if (status >= 0)
    return TRUE;
  if (error == NULL)
    return FALSE;
  TinyError code = TINY_ERROR_PLUGIN;
  g_autofree char *text = NULL, *hint = NULL;
  if (plugin_error != NULL) {
    text = tiny_clean_text (plugin_error->text, sizeof plugin_error->text);
    hint = tiny_clean_text (plugin_error->hint, sizeof plugin_error->hint);
  }
  const char *said = text != NULL && text[0] != 0 ? text : NULL;
  g_autofree char *unknown = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (statuses); i++)
    if (statuses[i].status == status) {
      code = statuses[i].code;
      said = said ? said : statuses[i].text;
    }
  if (said == NULL)
    said = unknown = g_strdup_printf ("status %d", status);
  gboolean has_hint = hint != NULL && hint[0] != 0;
  g_set_error (error, TINY_ERROR, (gint) code, "%s: %s: %s%s%s%s", device, what, said,
               has_hint ? " (" : "", has_hint ? hint : "", has_hint ? ")" : "");
  return FALSE;
}

gboolean
tiny_status_is_silent (TinyError code, const char *message)
{
  for (guint i = 0; i < G_N_ELEMENTS (statuses); i++)
    if (statuses[i].code == code && g_str_has_suffix (message, statuses[i].text))
      return TRUE;
  return FALSE;
}

gboolean
tiny_table_copy (
    void *to, gsize size, const void *from, gsize least, const char *what, GError **error)
{
  guint32 given = 0;
  memset (to, 0, size);
  if (from == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN, "%s is missing", what);
    return FALSE;
  }
  memcpy (&given, from, sizeof given);
  if (given < least || given > 1u << 20) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "%s says that it has %u bytes, from %" G_GSIZE_FORMAT " on are needed", what,
                 given, least);
    return FALSE;
  }
  memcpy (to, from, MIN (given, size));
  return TRUE;
}

/* ---- the laws, by struct ---- */
#define ROW(name, type, least, flags, padding)                                                 \
  {                                                                                            \
    name, sizeof (type), least, flags, G_STRUCT_OFFSET (type, reserved),                       \
        sizeof (((type *) NULL)->reserved) / sizeof (guint64), padding                         \
  }
const TinyTableRow tiny_table_rows[TINY_N_TABLES] = {
  [TINY_TABLE_MODULE] = ROW ("the module table",
                             TinyPluginModule,
                             G_STRUCT_OFFSET (TinyPluginModule, reserved),
                             TINY_MODULE_ANY_RENDERER | TINY_MODULE_BESIDE_HOST,
                             0),
  [TINY_TABLE_RENDERER] = ROW ("the renderer",
                               TinyRenderer,
                               G_STRUCT_OFFSET (TinyRenderer, disassemble),
                               TINY_RENDERER_CLAIMS_ONLY,
                               0),
  [TINY_TABLE_DIALECT]
  = ROW ("the dialect", TinyDialect, G_STRUCT_OFFSET (TinyDialect, types), 0, 0),
  [TINY_TABLE_DEVICE]
  = ROW ("the device table", TinyDeviceTable, G_STRUCT_OFFSET (TinyDeviceTable, map), 0, 0),
  [TINY_TABLE_INFO] = ROW ("info",
                           TinyDeviceInfo,
                           0,
                           TINY_DEVICE_HOST_MEMORY | TINY_DEVICE_OVERLAPS
                               | TINY_DEVICE_RUNS_NOTHING | TINY_DEVICE_NON_COHERENT,
                           G_STRUCT_OFFSET (TinyDeviceInfo, reserved0)),
  [TINY_TABLE_TARGET] = ROW ("the target",
                             TinyTarget,
                             0,
                             TINY_TARGET_MASKED | TINY_TARGET_GROUPS | TINY_TARGET_GRID_CHUNKS
                                 | TINY_TARGET_FLUSHES_SUBNORMALS | TINY_TARGET_UNALIGNED
                                 | TINY_TARGET_REASSOCIATES,
                             0),
  [TINY_TABLE_CANDIDATE]
  = ROW ("a candidate", TinyCandidate, 0, 0, G_STRUCT_OFFSET (TinyCandidate, reserved0)),
  [TINY_TABLE_CLAIM]
  = ROW ("the claim", TinyClaim, 0, 0, G_STRUCT_OFFSET (TinyClaim, reserved0)),
};
#undef ROW

static guint32
read_word (const void *table, gsize offset)
{
  guint32 word;
  memcpy (&word, (const guint8 *) table + offset, sizeof word);
  return word;
}

gboolean
tiny_table_check (TinyTableKind kind, const void *table, const char *who, GError **error)
{
  const TinyTableRow *row = &tiny_table_rows[kind];
  const char *before = who != NULL ? who : "", *colon = who != NULL ? ": " : "";
  const guint32 flags = read_word (table, sizeof (guint32)) & ~row->flags;
  if (flags != 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "%s%s%s has flags 0x%x, which this core does not know", before, colon,
                 row->name, flags);
    return FALSE;
  }
  const guint8 *bytes = table;
  const gsize n = row->n_reserved * sizeof (guint64);
  gboolean is_set = row->padding != 0 && read_word (table, row->padding) != 0;
  gsize at = is_set ? row->padding : row->reserved;
  while (!is_set && at < row->reserved + n && !(is_set = bytes[at] != 0))
    at++;
  if (is_set)
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "%s%s%s has reserved bits set (byte %" G_GSIZE_FORMAT
                 "), which this core does "
                 "not know",
                 before, colon, row->name, at);
  return !is_set;
}

gboolean
tiny_table_take (
    TinyTableKind kind, void *to, const void *from, const char *who, GError **error)
{
  const TinyTableRow *row = &tiny_table_rows[kind];
  if (tiny_table_copy (to, row->size, from, row->least, row->name, error))
    return tiny_table_check (kind, to, who, error);
  if (who != NULL)
    g_prefix_error (error, "%s: ", who);
  return FALSE;
}

/* ---- devices ---- */
static gboolean
check_table (const TinyDeviceTable *table, const char *name, GError **error)
{
  const struct {
    gboolean there;
    const char *slot;
  } required[] = {
    { table->close != NULL, "close" },
    { table->info != NULL, "info" },
    { table->alloc != NULL, "alloc" },
    { table->free != NULL, "free" },
    { table->queue_create != NULL || table->queue_destroy == NULL, "queue_create" },
    { table->queue_destroy != NULL || table->queue_create == NULL, "queue_destroy" },
    { table->submit != NULL, "submit" },
    { table->program_load != NULL, "program_load" },
    { table->program_unload != NULL, "program_unload" },
    { table->wait != NULL || table->reached == NULL, "wait" },
    { table->reached != NULL || table->wait == NULL, "reached" },
    { table->wait == NULL || table->queue_create != NULL, "queue_create" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (required); i++)
    if (!required[i].there) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                   "%s: the device table lacks the required slot %s", name, required[i].slot);
      return FALSE;
    }
  return TRUE;
}

gboolean
tiny_device_table_copy (TinyDeviceTable *to,
                        const TinyDeviceTable *from,
                        const char *name,
                        GError **error)
{
  return tiny_table_take (TINY_TABLE_DEVICE, to, from, name, error)
         && check_table (to, name, error);
}

/* ---- what plugins are given ---- */
static void *
host_alloc (uint64_t n_bytes)
{
  void *memory = NULL;
  if (n_bytes > G_MAXSIZE / 2 || posix_memalign (&memory, 64, n_bytes ? n_bytes : 1) != 0)
    return NULL;
  return memory;
}

static void
host_free (void *memory)
{
  free (memory);
}

static void
host_log (int32_t level, const char *domain, const char *text)
{
  static const GLogLevelFlags levels[]
      = { G_LOG_LEVEL_MESSAGE, G_LOG_LEVEL_MESSAGE, G_LOG_LEVEL_INFO, G_LOG_LEVEL_DEBUG };
  g_log (domain ? domain : "tinycore-plugin", levels[CLAMP (level, 0, 3)], "%s",
         text ? text : "");
}

const TinyHost *
tiny_host_get (void)
{
  static const TinyHost host = {
    .struct_size = sizeof (TinyHost),
    .abi_major = TINY_PLUGIN_ABI_MAJOR,
    .abi_minor = TINY_PLUGIN_ABI_MINOR,
    .alloc = host_alloc,
    .free = host_free,
    .log = host_log,
  };
  return &host;
}
