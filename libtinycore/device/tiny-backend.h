/* SPDX-License-Identifier: MIT
 *
 * tiny-backend.h: one loaded plugin module, as the core sees it.
 *
 * The module's tables are copied, as far as both sides know them, into memory of the core; what is
 * required and missing refuses the plugin by name, what is optional and missing is answered with
 * TINY_ERROR_UNSUPPORTED. A module stays initialised as long as its backend lives. */
#pragma once

#include <glib-object.h>

#include "base/tiny-macros.h"
#include "tiny-plugin.h"

G_BEGIN_DECLS

#define TINY_TYPE_BACKEND (tiny_backend_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyBackend, tiny_backend, TINY, BACKEND, GObject)

/**
 * tiny_backend_new: (skip)
 * @module: what the plugin's entry function returned
 * @path: (nullable): the plugin's file, for messages and code stamps
 * @error: return location of an error
 *
 * Checks, copies and initialises a module.
 *
 * Errors: %TINY_ERROR_PLUGIN for a table that breaks a law of tiny-plugin.h, %TINY_ERROR_ABI for
 * one that serves other cores, or what init() reports.
 *
 * Returns: (transfer full): the backend
 */
TinyBackend *
tiny_backend_new (const TinyPluginModule *module, const char *path, GError **error);

/* What is called instead of a module's functions when they are elsewhere, such as in another process, each with
 * @data; @renderer is the number of one. They serialise themselves. */
typedef struct {
  gpointer data;
  void (*free) (gpointer data); /* with the backend */
  TinyStatus (*scan) (gpointer data, TinyCandidate *out, uint32_t *n, TinyPluginError *error);
  TinyStatus (*open) (gpointer data,
                      const char *id,
                      TinyPluginDevice **out,
                      const TinyDeviceTable **out_table,
                      TinyPluginError *error);
  TinyStatus (*target) (
      gpointer data, guint renderer, const char *arch, TinyTarget *out, TinyPluginError *error);
  TinyStatus (*compile) (gpointer data,
                         guint renderer,
                         const TinyCompileArgs *args,
                         void **out_data,
                         uint64_t *out_size,
                         TinyPluginError *error);
  TinyStatus (*disassemble) (gpointer data,
                             guint renderer,
                             const void *code,
                             uint64_t size,
                             char **out_text,
                             TinyPluginError *error);
  TinyStatus (*claim) (gpointer data,
                       guint renderer,
                       const char *arch,
                       const TinyOperation *operation,
                       TinyClaim *out,
                       TinyPluginError *error);
} TinyModuleProxy;

/* As tiny_backend_new() for a module that @module only describes: of its functions no more counts than which
 * there are. @proxy is copied, and freed also on failure. */
TinyBackend *tiny_backend_new_proxy (const TinyPluginModule *module,
                                     const char *path,
                                     const TinyModuleProxy *proxy,
                                     GError **error);

/* Whether it is such a one. */
gboolean tiny_backend_is_proxy (const TinyBackend *self);

typedef struct TinyWatch TinyWatch;

/* Opens a shared object and its module. The object stays loaded for the life of the process.
 * Errors as above, and %TINY_ERROR_PLUGIN if it cannot be loaded. */
TinyBackend *tiny_backend_load (const char *path, GError **error);
/* The same; @watch (nullable), which it takes, is told of every call. */
TinyBackend *tiny_backend_load_watched (const char *path, TinyWatch *watch, GError **error);
/* Or NULL. */
TinyWatch *tiny_backend_get_watch (TinyBackend *self);

TINY_API const char *tiny_backend_get_name (TinyBackend *self);
TINY_API const char *tiny_backend_get_path (TinyBackend *self);
/* Changes whenever the plugin's file does; part of the key of cached code. */
const char *tiny_backend_get_stamp (TinyBackend *self);
/* The core's copy of the table; its renderers are copies too. */
const TinyPluginModule *tiny_backend_get_module (TinyBackend *self);
/* The renderer of that name (any case), the first for "" or NULL; NULL if there is none. */
const TinyRenderer *tiny_backend_find_renderer (TinyBackend *self, const char *name);
/* The names of all renderers, "A, B", for messages. */
char *tiny_backend_list_renderers (TinyBackend *self);
/* TRUE if its devices take programs of every backend's renderers. */
gboolean tiny_backend_takes_any_renderer (TinyBackend *self);
/* Its devices only compute what they claim; another backend runs the rest on their memory. */
gboolean tiny_backend_runs_beside_host (TinyBackend *self);

/* Its functions are in another process. */
gboolean tiny_backend_is_elsewhere (TinyBackend *self);

/* Opens a device, asks it what it is and closes it again, without renderer and memory. @out_table, if not NULL, is
 * its table, to be looked at: there is no device any more that its functions could be called with. */
gboolean tiny_backend_try_device (TinyBackend *self,
                                  const char *id,
                                  TinyDeviceInfo *out_info,
                                  TinyDeviceTable *out_table,
                                  GError **error);

/* The module's scan(), wherever that runs. */
TinyStatus tiny_backend_call_scan (TinyBackend *self,
                                   TinyCandidate *out,
                                   uint32_t *n,
                                   TinyPluginError *plugin_error);
/* The devices that scan() found; freed by g_free(). */
typedef struct {
  guint n;
  TinyCandidate at[];
} TinyCandidates;
/* Looks for devices (transfer full): possibly none, or NULL. That there is none is an error, %TINY_ERROR_NO_DEVICE, only
 * where the plugin says more about it. */
TinyCandidates *tiny_backend_scan (TinyBackend *self, GError **error);

G_END_DECLS
