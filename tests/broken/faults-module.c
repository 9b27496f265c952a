/* SPDX-License-Identifier: MIT
 *
 * faults-module.c: modules that are loaded, scanned, opened and closed otherwise than the contract says. */
#include <unistd.h>

#include "broken.h"

/* ---- init and fini ---- */
#define INIT(name) static TinyStatus name (const TinyHost *host, TinyPluginError *error)

static unsigned n_inits;

INIT (init_once)
{
  if (n_inits++ > 0) {
    broken_note ();
    return tiny_fail (error, TINY_STATUS_INTERNAL, "initialised before");
  }
  return inside_init (host, error);
}

INIT (init_exact_size)
{
  if (host->struct_size == sizeof *host)
    return inside_init (host, error);
  broken_note ();
  return tiny_fail (error, TINY_STATUS_INVALID, "a host of %u bytes, not %zu",
                    host->struct_size, sizeof *host);
}

INIT (init_reads_beyond)
{
  /* Behind what this ABI minor has. */
  const volatile char *behind = (const char *) host + sizeof *host;
  broken_note ();
  for (unsigned i = 0; i < 64; i++)
    (void) behind[i];
  return inside_init (host, error);
}

INIT (init_slow)
{
  broken_note ();
  usleep (700000);
  return inside_init (host, error);
}

INIT (init_without_text)
{
  broken_note ();
  return TINY_STATUS_DRIVER;
}

static unsigned n_finis;

static void
fini_once (void)
{
  if (n_finis++ > 0) {
    broken_note ();
    abort ();
  }
  if (inside.module->fini != NULL)
    inside.module->fini ();
}

static void
fini_needs_init (void)
{
  if (inside.host == NULL) {
    broken_note ();
    abort ();
  }
  inside.host = NULL;
  if (inside.module->fini != NULL)
    inside.module->fini ();
}

/* ---- scan ---- */
#define SCAN(name)                                                                             \
  static TinyStatus name (TinyCandidate *out, uint32_t *n, TinyPluginError *error)

SCAN (scan_many)
{
  TINY_TRY (inside.module->scan (out, n, error));
  broken_note ();
  *n += 2;
  return TINY_STATUS_OK;
}

SCAN (scan_beyond)
{
  const uint32_t room = *n;
  TINY_TRY (inside.module->scan (out, n, error));
  broken_note ();
  memset (&out[room], 0, sizeof *out);
  return TINY_STATUS_OK;
}

SCAN (scan_without_room)
{
  if (*n == 0)
    broken_note ();
  out[0].flags = 0;
  return inside.module->scan (out, n, error);
}

SCAN (scan_none)
{
  broken_note ();
  *n = 0;
  return TINY_STATUS_NO_DEVICE;
}

SCAN (scan_slow)
{
  broken_note ();
  usleep (3000000);
  return inside.module->scan (out, n, error);
}

#define SCANNED(name, change)                                                                  \
  SCAN (name)                                                                                  \
  {                                                                                            \
    const uint32_t room = *n;                                                                  \
    TINY_TRY (inside.module->scan (out, n, error));                                            \
    if (room > 0) {                                                                            \
      broken_note ();                                                                          \
      change;                                                                                  \
    }                                                                                          \
    return TINY_STATUS_OK;                                                                     \
  }
static unsigned n_scans;
SCANNED (scan_no_id, out->id[0] = '\0')
SCANNED (scan_endless_id, memset (out->id, 'i', sizeof out->id))
SCANNED (scan_other_id,
         snprintf (out->id, sizeof out->id, "device-%d-%u", (int) getpid (), n_scans++))
SCANNED (scan_no_class, out->device_class = 0)
SCANNED (scan_no_size, out->struct_size = 0)
SCANNED (scan_reserved, out->reserved[0] = 1)

/* ---- open and close ---- */
#define OPEN(name)                                                                             \
  static TinyStatus name (const char *id, TinyPluginDevice **out,                              \
                          const TinyDeviceTable **out_table, TinyPluginError *error)

OPEN (open_of_other_id)
{
  /* What scan() calls the device is not what open() takes. */
  char real[64] = "";
  TinyCandidate found = { .struct_size = sizeof found };
  uint32_t n = 1;
  if (inside.module->scan (&found, &n, error) == TINY_STATUS_OK)
    snprintf (real, sizeof real, "%s", found.id);
  return inside_open (real, out, out_table, error);
}

OPEN (open_anything)
{
  TinyCandidate found = { .struct_size = sizeof found };
  uint32_t n = 1;
  TINY_TRY (inside.module->scan (&found, &n, error));
  if (strcmp (id, found.id) != 0)
    broken_note ();
  return inside_open (found.id, out, out_table, error);
}

OPEN (open_unknown_crashes)
{
  const TinyStatus status = inside_open (id, out, out_table, error);
  if (status != TINY_STATUS_OK) {
    broken_note ();
    *(volatile char *) NULL = 0;
  }
  return status;
}

static unsigned n_opens;

OPEN (open_once)
{
  if (n_opens++ > 0) {
    broken_note ();
    return tiny_fail (error, TINY_STATUS_BUSY, "the device was opened before");
  }
  return inside_open (id, out, out_table, error);
}

static int n_open;

OPEN (open_alone)
{
  if (n_open > 0) {
    broken_note ();
    return tiny_fail (error, TINY_STATUS_BUSY, "the device is open");
  }
  TINY_TRY (inside_open (id, out, out_table, error));
  n_open++;
  return TINY_STATUS_OK;
}

static void
close_and_count (TinyPluginDevice *device)
{
  n_open--;
  inside.device->close (device);
}

/* Closing one of two handles ends the other. */
static int is_closed;

OPEN (open_and_count)
{
  TINY_TRY (inside_open (id, out, out_table, error));
  if (n_open++ == 0)
    is_closed = 0;
  return TINY_STATUS_OK;
}

static void
close_for_all (TinyPluginDevice *device)
{
  is_closed = 1;
  n_open--;
  inside.device->close (device);
}

SUBMIT (submit_unless_closed)
{
  if (!is_closed)
    return inside.device->submit (device, queue, submit, error);
  broken_note ();
  return tiny_fail (error, TINY_STATUS_DEVICE_LOST, "the device is closed");
}

OPEN (open_table_null)
{
  TINY_TRY (inside_open (id, out, out_table, error));
  broken_note ();
  *out_table = NULL;
  return TINY_STATUS_OK;
}

#define TABLE(name, change)                                                                    \
  OPEN (name)                                                                                  \
  {                                                                                            \
    static TinyDeviceTable table;                                                              \
    TINY_TRY (inside_open (id, out, out_table, error));                                        \
    broken_note ();                                                                            \
    table = **out_table;                                                                       \
    change;                                                                                    \
    *out_table = &table;                                                                       \
    return TINY_STATUS_OK;                                                                     \
  }
TABLE (table_without_free, table.free = NULL)
TABLE (table_half_queues, table.queue_destroy = NULL)
TABLE (table_short, table.struct_size = offsetof (TinyDeviceTable, program_load))
TABLE (table_reserved, memset (table.reserved, 1, sizeof table.reserved[0]))
TABLE (table_without_map, table.map = NULL)

OPEN (open_without_text)
{
  const TinyStatus status = inside_open (id, out, out_table, error);
  if (status != TINY_STATUS_OK && error->struct_size == sizeof *error) {
    broken_note ();
    error->text[0] = '\0';
  }
  return status;
}

/* A text longer than there is room, in a struct of an older core. */
OPEN (error_beyond)
{
  const TinyStatus status = inside_open (id, out, out_table, error);
  if (status != TINY_STATUS_OK) {
    broken_note ();
    memset (error->text, 'x', sizeof error->text - 1);
    memset (error->hint, 'y', sizeof error->hint - 1);
  }
  return status;
}

/* ---- queues ---- */
static TinyStatus
queue_one (TinyPluginDevice *device, TinyPluginQueue **out, TinyPluginError *error)
{
  static TinyPluginQueue *only;
  static unsigned n;
  if (n++ > 1 && only != NULL) {
    broken_note ();
    return tiny_fail (error, TINY_STATUS_BUSY, "two queues are the most");
  }
  TINY_TRY (inside.device->queue_create (device, &only, error));
  *out = only;
  return TINY_STATUS_OK;
}

/* ---- the tables ---- */
static void
module_name (TinyPluginModule *module, TinyRenderer *renderer)
{
  module->name = "";
  broken_note ();
}

static void
module_major (TinyPluginModule *module, TinyRenderer *renderer)
{
  module->abi_major = 2;
  broken_note ();
}

static void
module_flag (TinyPluginModule *module, TinyRenderer *renderer)
{
  module->flags |= 1u << 30;
  broken_note ();
}

static void
module_reserved (TinyPluginModule *module, TinyRenderer *renderer)
{
  module->reserved[3] = 1;
  broken_note ();
}

static void
module_no_license (TinyPluginModule *module, TinyRenderer *renderer)
{
  module->license = NULL;
  broken_note ();
}

static void
module_no_renderers (TinyPluginModule *module, TinyRenderer *renderer)
{
  module->n_renderers = 0;
  broken_note ();
}

static void
renderer_no_version (TinyPluginModule *module, TinyRenderer *renderer)
{
  renderer->code_version = NULL;
  broken_note ();
}

static void
renderer_reserved (TinyPluginModule *module, TinyRenderer *renderer)
{
  renderer->reserved[0] = 1;
  broken_note ();
}

#define CASES             "declared/*|tables/*|lifecycle/*|hygiene/*|skew/*"
#define MODULE(...)       .module = { __VA_ARGS__ }, .cases = CASES
#define CHANGES(function) .change = function, .cases = CASES
static const Fault rows[] = {
  /* clang-format off */
  { "init-once", "a second init() fails", "state that fini() leaves", MODULE (.init = init_once) },
  { "init-exact-size", "init() refuses a host of another struct_size", "struct_size compared for equality", MODULE (.init = init_exact_size) },
  { "init-reads-beyond", "init() reads beyond the host's struct_size", "a newer header, without a check", MODULE (.init = init_reads_beyond) },
  { "init-slow", "init() takes 0.7 seconds", "devices touched at start-up", MODULE (.init = init_slow) },
  { "init-no-text", "init() fails without a text", "codes only", MODULE (.init = init_without_text) },
  { "fini-once", "a second fini() aborts", "double frees at exit", MODULE (.fini = fini_once) },
  { "fini-needs-init", "fini() without init() aborts", "tear-down of what was never built", MODULE (.fini = fini_needs_init) },
  { "scan-count", "scan() counts two candidates too many", "a count of slots, not of devices", MODULE (.scan = scan_many) },
  { "scan-beyond", "scan() writes beyond its room", "off by one", MODULE (.scan = scan_beyond) },
  { "scan-needs-room", "scan() with room for none writes one", "the count-only call forgotten", MODULE (.scan = scan_without_room) },
  { "scan-no-text", "scan() finds no device and does not say why", "codes only", MODULE (.scan = scan_none) },
  { "scan-slow", "scan() takes 3 seconds", "devices touched by a scan", MODULE (.scan = scan_slow) },
  { "scan-no-id", "the candidate has no id", "a field that is not set", MODULE (.scan = scan_no_id, .open = open_of_other_id) },
  { "scan-endless-id", "the candidate's id has no end", "strncpy", MODULE (.scan = scan_endless_id, .open = open_of_other_id) },
  { "scan-unstable-id", "the candidate has another id each time", "handles for names", MODULE (.scan = scan_other_id, .open = open_of_other_id) },
  { "scan-no-class", "the candidate has no class", "a field that is not set", MODULE (.scan = scan_no_class) },
  { "scan-no-size", "the candidate has no struct_size", "a field that is not set", MODULE (.scan = scan_no_size) },
  { "scan-reserved", "the candidate's reserved fields are not 0", "memory that is not zeroed", MODULE (.scan = scan_reserved) },
  { "open-anything", "open() takes every id", "the id ignored", MODULE (.open = open_anything) },
  { "open-unknown-crashes", "open() of an unknown id crashes", "a search whose end is not looked at", MODULE (.open = open_unknown_crashes) },
  { "open-once", "a device that was closed cannot be opened again", "state that close() leaves", MODULE (.open = open_once) },
  { "open-alone", "a device cannot be opened twice at once", "one context per process", .module = { .open = open_alone }, .device = { .close = close_and_count }, .cases = CASES },
  { "close-for-all", "close() of one handle ends the others", "one context per process", .module = { .open = open_and_count }, .device = { .close = close_for_all, .submit = submit_unless_closed }, .cases = CASES },
  { "open-no-text", "open() fails without a text", "codes only", MODULE (.open = open_without_text) },
  { "error-beyond", "errors are written beyond struct_size", "structs that have grown", MODULE (.open = error_beyond) },
  { "table-null", "open() gives no table", "an unchecked driver call", MODULE (.open = open_table_null) },
  { "table-without-free", "the table lacks free()", "functions left out", MODULE (.open = table_without_free) },
  { "table-half-queues", "the table has queue_create() without queue_destroy()", "functions left out", MODULE (.open = table_half_queues) },
  { "table-short", "the table's struct_size ends before program_load()", "a size that was not updated with the struct", MODULE (.open = table_short) },
  { "table-reserved", "the table's reserved fields are not 0", "memory that is not zeroed", MODULE (.open = table_reserved) },
  { "table-without-map", "the device says that memory is the host's, and has no map()", "flags that are copied from another device", MODULE (.open = table_without_map) },
  { "queues-two", "a third queue cannot be made", "rings of the hardware, not shared", .device = { .queue_create = queue_one }, .cases = CASES },
  { "module-no-name", "the module has no name", "a field that is not set", CHANGES (module_name) },
  { "module-major", "the module is of another major", "a plugin of tomorrow", CHANGES (module_major) },
  { "module-unknown-flag", "the module has an unknown flag", "memory that is not zeroed", CHANGES (module_flag) },
  { "module-reserved", "the module's reserved fields are not 0", "memory that is not zeroed", CHANGES (module_reserved) },
  { "module-no-license", "the module's licence is NULL", "a field that is not set", CHANGES (module_no_license) },
  { "module-no-renderers", "the module has no renderer", "a count that is not set", CHANGES (module_no_renderers) },
  { "renderer-no-version", "the renderer's code_version is NULL", "a field that is not set", CHANGES (renderer_no_version) },
  { "renderer-reserved", "the renderer's reserved fields are not 0", "memory that is not zeroed", CHANGES (renderer_reserved) },
  /* clang-format on */
};
FAULT_TABLE (faults_module);
