/* SPDX-License-Identifier: MIT
 *
 * registry-private.h: what the registry's files share. All of it under the registry's lock.
 *
 * What may take long, as it runs a plugin, happens without the lock: whoever begins it says so by a key, such
 * as a module's path, and only those who want the same wait for it. What is found and scanned stays in memory
 * until nobody is in the registry any more. */
#pragma once

#include "plugin/tiny-device-spec.h"
#include "plugin/tiny-discovery.h"
#include "plugin/tiny-registry.h"
#include "plugin/tiny-scan-cache.h"

G_BEGIN_DECLS

struct _TinyRegistry {
  GObject parent_instance;
  GMutex lock;
  guint n_users;      /* calls that are in progress, also without the lock */
  GHashTable *begun;  /* keys of what some thread does without the lock */
  GCond done;         /* one of them fewer */
  GPtrArray *retired; /* arrays of found and places that users may still look at */
  char **folders;     /* searched instead of the usual places, or NULL */
  GPtrArray *added;   /* further folders, of char * */
  GPtrArray *found;   /* of TinyFound, once discovered */
  GPtrArray *places;  /* of TinyPlace: where that was */
  gboolean is_short;  /* something lacked for that: it is done again for the next user */
  TinyScanCache *cache;
  TinyManifestCache *manifests;
  char *crashes;       /* the folder of notes of crashes, or NULL */
  GHashTable *scanned; /* module paths that this very process has scanned */
  GHashTable *
      backends; /* module path → TinyBackend, loaded in this process; with "ISOLATED+" before it: in another */
  GHashTable *loaded;  /* module path → TinyScan, as it was when it was loaded */
  GHashTable *devices; /* name → GWeakRef of TinyDevice */
};

/* Around every public function: the lock, and that what it finds stays. */
void tiny_registry_enter (TinyRegistry *self);
void tiny_registry_leave (TinyRegistry *self);
/* Gives up the lock for what @kind and @key name, if no other thread is at it; else waits until that has
 * ended, and is FALSE: it is to be looked up again. */
gboolean tiny_registry_begin (TinyRegistry *self, const char *kind, const char *key);
void tiny_registry_end (TinyRegistry *self, const char *kind, const char *key);

/* Every manifest, of TinyFound. */
const GPtrArray *tiny_registry_get_found (TinyRegistry *self);
/* The one of that name (any case) that counts, or NULL. */
const TinyFound *tiny_registry_find (TinyRegistry *self, const char *name);

/* Whether its module's file is there, trusted, and a plugin of this core. */
gboolean tiny_registry_check_module (const TinyFound *found, GError **error);
/* The result of scanning the backend: remembered, or made now. NULL with the reason if its files
 * are not to be used. With @again a remembered failure is not taken for granted, once per process;
 * quarantine for a crash or exit is. */
const TinyScan *
tiny_registry_scan (TinyRegistry *self, const TinyFound *found, gboolean again, GError **error);
/* What is remembered, without running anything, or NULL. */
const TinyScan *tiny_registry_recall (TinyRegistry *self, const TinyFound *found);
/* Its error where the backend cannot be loaded; the scan's reasons as an error. */
gboolean tiny_scan_check_loaded (const TinyScan *scan, const TinyFound *found, GError **error);
gboolean tiny_scan_check_devices (const TinyScan *scan, const TinyFound *found, GError **error);

/* Loads a backend that was scanned, once (transfer none); with @isolated in a process of its own. */
TinyBackend *tiny_registry_load (TinyRegistry *self,
                                 const TinyFound *found,
                                 gboolean isolated,
                                 GError **error);

/* What opening is to give. */
typedef enum {
  TINY_WANT_FIRST, /* the first device that the spec names */
  TINY_WANT_ALL,
  TINY_WANT_NAME, /* the first one's canonical name (char *): nothing is loaded */
} TinyWant;
/* @spec NULL: as the environment says, else the best. */
gboolean tiny_registry_open_any (
    TinyRegistry *self, const char *spec, TinyWant want, GPtrArray *out, GError **error);

/* The class of the device that @found is opened with, which may be less than its manifest promises: a
 * driver for accelerators may have only processors. */
guint tiny_registry_find_class (TinyRegistry *self, const TinyFound *found);

/* The backend that an older spelling of DEV=, such as CUDA=1, names, or NULL. */
const char *tiny_registry_find_old_spelling (TinyRegistry *self);

/* "CPU (ready), CUDA (no hardware: …)", for messages; runs nothing. */
char *tiny_registry_summarise (TinyRegistry *self);

/* ---- registry-code.c ---- */

/* @text as @list spells it, in any case of letters; or NULL. */
const char *tiny_registry_find_text (char *const *list, const char *text);
/* What scanning @found gave, if its renderers can be used. */
const TinyScan *
tiny_registry_scan_code (TinyRegistry *self, const TinyFound *found, GError **error);
/* For @self_found, where nobody is named. What is to run kernels as well (@runs) is the processor's. */
const TinyFound *tiny_registry_find_default_code (TinyRegistry *self,
                                                  const TinyFound *self_found,
                                                  gboolean runs);
void tiny_registry_fail_default_code (const TinyFound *found, gboolean runs, GError **error);
const TinyFound *tiny_registry_find_by_renderer (TinyRegistry *self, const char *renderer);
gboolean tiny_registry_fail_foreign (TinyRegistry *self, const char *wanted, GError **error);

/* Says once in a process which files, folders and programs that variables name are not there: an error says so itself. Returns
 * TRUE. */
gboolean registry_warn_of_absent (TinyRegistry *self);

G_END_DECLS
