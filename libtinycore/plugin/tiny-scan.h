/* SPDX-License-Identifier: MIT
 *
 * tiny-scan.h: a plugin loaded and scanned in a helper process, so that what it does there costs
 * the program nothing. */
#pragma once

#include <json-glib/json-glib.h>

#include "base/tiny-error.h"
#include "plugin/tiny-manifest.h"

G_BEGIN_DECLS

/* One device that the plugin found and, unless @error says why not, opened. */
typedef struct {
  char *id, *title, *driver, *arch;
  guint device_class;
  guint64 memory_bytes;
  TinyError code; /* of error */
  char *error;    /* or NULL */
  guint open_us;  /* that opening and closing it took */
} TinyScanDevice;

/* What came of scanning a module. */
typedef struct {
  gboolean is_loaded;      /* its table is fine and init() worked; its renderers can be used */
  gboolean is_quarantined; /* it crashed, ended or hung the helper process */
  gboolean
      is_passing; /* it failed for want of what may be there the next moment: no verdict on the plugin */
  TinyError code;                /* of reason */
  char *reason;                  /* why there are no devices, or NULL */
  char *name, *vendor, *version; /* as the module's table says */
  char *missing; /* the library for want of which it cannot be loaded, or NULL */
  gboolean
      takes_any_renderer; /* of other backends: it runs their programs, or they do beside it */
  gboolean runs_beside_host; /* they run them: its devices only compute what they claim */
  gboolean imports_host;     /* all of its devices that can be opened take memory of the host */
  char **renderers;
  GPtrArray *devices;     /* of TinyScanDevice */
  gint64 when;            /* seconds since 1970 */
  guint took_us;          /* of all, with the helper process */
  guint load_us, scan_us; /* of that: the module up to init(), and scan() */
} TinyScan;

/* The reason where the plugin gives none. */
#define TINY_SCAN_NO_REASON "the plugin finds no device of its kind"

void tiny_scan_free (TinyScan *self);
TinyScan *tiny_scan_copy (const TinyScan *self);
/* A result that is nothing but a failure; takes @reason. */
TinyScan *tiny_scan_new_failed (TinyError code, char *reason);

/* Its devices can be used in a process of their own. */
gboolean tiny_scan_can_isolate (const TinyScan *self);

/* As JSON and back: the packet of the helper process, and what the registry's file keeps. Of each text so many bytes. */
enum { TINY_SCAN_MOST_TEXT = 4096 };
JsonNode *tiny_scan_to_json (const TinyScan *self);
TinyScan *tiny_scan_from_json (JsonObject *object, GError **error);

/* What the helper reports before it touches the plugin; the number is that of the packet's form. */
#define TINY_SCAN_GREETING "tiny-scan 1\n"

/* The helper's second argument where it is to run a search's programs (engine/tiny-trial-host.h). */
#define TINY_SCAN_TRIALS "trials"

/* The path of the helper program (transfer full), or %TINY_ERROR_PLUGIN. */
char *tiny_scan_find_helper (GError **error);
/* True if @text, of an error of that code, says that memory, descriptors or processes lack: it passes. */
gboolean tiny_scan_is_shortage (TinyError code, const char *text);
/* FALSE with an error where TINY_SCAN_HELPER names none. */
gboolean tiny_scan_check_named_helper (GError **error);

/* In the helper: loads, scans, opens and closes. Never NULL. */
TinyScan *tiny_scan_module (const char *module_path);

/* In the program: runs the helper on the manifest's module, within its time-out. What goes wrong
 * with the plugin is in the result; NULL is for a helper that cannot be run (%TINY_ERROR_PLUGIN), or no
 * memory for what it says (%TINY_ERROR_OUT_OF_MEMORY). */
TinyScan *tiny_scan_run (const TinyManifest *manifest, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyScan, tiny_scan_free)

G_END_DECLS
