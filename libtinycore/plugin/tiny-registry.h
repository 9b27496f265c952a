/* SPDX-License-Identifier: MIT
 *
 * tiny-registry.h: which backends there are, what is wrong with the others, and devices by name.
 *
 * Nothing of a plugin runs in this process before it has been loaded and scanned once in a helper
 * process, whose result is remembered on disk. Thread-safe. */
#pragma once

#include "device/tiny-device.h"

G_BEGIN_DECLS

#define TINY_TYPE_REGISTRY (tiny_registry_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyRegistry, tiny_registry, TINY, REGISTRY, GObject)

/**
 * TinyEntryState:
 * @TINY_ENTRY_READY: works as far as the helper process could see
 * @TINY_ENTRY_NO_HARDWARE: the machine has nothing for it
 * @TINY_ENTRY_BROKEN: its files, table or driver are unusable; the reason says why
 * @TINY_ENTRY_QUARANTINED: it crashed, ended or hung its helper process
 * @TINY_ENTRY_MASKED: an empty manifest in the administrator's folder hides it
 * @TINY_ENTRY_SHADOWED: a manifest of the same name was found before
 *
 * What is to be thought of a backend's device.
 */
typedef enum {
  TINY_ENTRY_READY,
  TINY_ENTRY_NO_HARDWARE,
  TINY_ENTRY_BROKEN,
  TINY_ENTRY_QUARANTINED,
  TINY_ENTRY_MASKED,
  TINY_ENTRY_SHADOWED,
} TinyEntryState;
/* "ready", "no hardware", … */
TINY_API const char *tiny_entry_state_to_string (TinyEntryState state);

/* One device, or one backend that has none. What is not known is "", NULL or 0. */
typedef struct {
  char *name; /* the backend's, "CUDA" */
  int index;  /* of the device, -1 where there is none */
  TinyEntryState state;
  char *reason; /* why it is not ready, or runs in a process of its own though it is; or NULL */
  char *title;  /* of the device, for people */
  char *id;     /* stable over reboots */
  char *driver;
  char *device_class; /* "cpu", "gpu", "npu", "remote", "simulator" */
  char **renderers;   /* the first is the default */
  char *arch;
  guint64 memory_bytes;
  char *vendor, *version, *license, *package;
  char *manifest_path, *module_path;
} TinyEntry;
TINY_API void tiny_entry_free (TinyEntry *self);

/**
 * tiny_registry_get_default:
 *
 * The registry of this process, made at first use.
 *
 * Returns: (transfer none): the registry
 */
TINY_API TinyRegistry *tiny_registry_get_default (void);
/* One that looks only into @folders (NULL-terminated) and keeps its results in @cache_dir, or
 * nowhere if that is NULL; for tests. */
TinyRegistry *tiny_registry_new (const char *const *folders, const char *cache_dir);

/* A further folder of manifests, searched after TINY_PLUGIN_PATH. Before the first listing. */
TINY_API void tiny_registry_add_path (TinyRegistry *self, const char *folder);

/**
 * tiny_registry_list: (skip)
 * @self: a registry
 *
 * Every device and every backend without one, best first; backends that were not looked at before
 * are looked at in a helper process.
 *
 * Returns: (transfer full) (element-type TinyEntry): entries, freed with the array
 */
TINY_API GPtrArray *tiny_registry_list (TinyRegistry *self);

/* A rung of the ladder that a backend was on. */
typedef struct {
  const char *rung;     /* "manifest", "hardware", "file", "scan", "device"; static */
  gboolean is_good;     /* it went on from here */
  gboolean is_recalled; /* known from before: nothing was run */
  char *text;           /* what was found */
  guint64 took_us;      /* now, or when it was run */
} TinyRung;

/* What became of one manifest, or of a folder that cannot be read. */
typedef struct {
  char *name, *manifest_path;
  const char *rule;     /* the place it was found in, static */
  TinyEntryState state; /* of its best device */
  gboolean is_chosen;   /* DEV=, or what is best, comes to it */
  char *verdict;        /* why, or why not */
  GPtrArray *rungs;     /* of TinyRung */
} TinyCandidacy;

/* Where manifests were looked for. */
typedef struct {
  char *rule, *path, *text; /* "TINY_PLUGIN_PATH", the folder, "3 manifests" */
} TinySearched;

/**
 * tiny_registry_explain: (skip)
 * @self: a registry
 * @out_searched: (out) (optional) (element-type TinySearched): every place that was looked into
 * @out_choice: (out) (optional): the name of the device that opening without a name would give, or the reason why
 *   there is none
 *
 * Every manifest that was found, in the order in which they count, with each rung that it was looked at on, and
 * why it is chosen or not. Loads nothing in this process; what was not scanned before is scanned.
 *
 * Returns: (transfer full) (element-type TinyCandidacy): freed with the array
 */
TINY_API GPtrArray *
tiny_registry_explain (TinyRegistry *self, GPtrArray **out_searched, char **out_choice);

/**
 * tiny_registry_open:
 * @self: a registry
 * @spec: (nullable): what to open, in the grammar of DEV=; %NULL: as the environment says, else
 *   the best device
 * @error: return location of an error
 *
 * Opens a device. The same resolved name gives the same device as long as anybody holds it. Loads
 * the named backend and no other.
 *
 * Errors: %TINY_ERROR_INVALID for a spec that does not parse, pointing at the character;
 * %TINY_ERROR_NO_DEVICE with what was asked, why each candidate failed and what there is;
 * %TINY_ERROR_PLUGIN, %TINY_ERROR_ABI, … when a single candidate failed for that reason.
 *
 * Returns: (transfer full): the device
 */
TINY_API TinyDevice *tiny_registry_open (TinyRegistry *self, const char *spec, GError **error);
/* Every device that a spec with ';', ranges or '*' names, in order; elements are TinyDevice. */
TINY_API GPtrArray *
tiny_registry_open_all (TinyRegistry *self, const char *spec, GError **error);

/* What code is written for that runs elsewhere. */
typedef struct {
  TinyBackend *backend; /* whose renderer it is */
  const TinyRenderer *renderer;
  TinyTarget target;
  char *form;   /* how kernels are written, see docs/export.md, Forms */
  char *folder; /* of files that go with them, or NULL */
} TinyCodeTarget;
void tiny_code_target_clear (TinyCodeTarget *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyCodeTarget, tiny_code_target_clear)

/* Finds a target by its name in a manifest's "exports", or as BACKEND[:RENDERER[:ARCH]], whose form
 * is "files". No device is opened, and none need be there.
 *
 * Errors: %TINY_ERROR_NO_DEVICE with what there is; those of loading a backend. */
gboolean tiny_registry_find_code_target (TinyRegistry *self,
                                         const char *name,
                                         TinyCodeTarget *out,
                                         GError **error);
/* The names of all exports, for messages: "a, b". */
char *tiny_registry_list_code_targets (TinyRegistry *self);

/* Forgets what is remembered of backend @name (NULL: all), so that it is looked at again: how a
 * person takes a plugin out of quarantine. */
TINY_API void tiny_registry_retry (TinyRegistry *self, const char *name);

G_END_DECLS
