/* SPDX-License-Identifier: MIT
 *
 * tiny-executable.h: a kernel made runnable on a device, through the caches.
 *
 * The way of a kernel: already loaded on the device → on disk under the digest of its IR, the
 * target, the renderer and this very library → generated, rendered, compiled, stored. */
#pragma once

#include "codegen/tiny-codegen.h"
#include "device/tiny-device.h"
#include "device/tiny-program.h"
#include "ir/tiny-node.h"

G_BEGIN_DECLS

typedef struct {
  char *name;
  char *opts;            /* the optimisations that made it */
  gboolean is_untrusted; /* its kernel was given as text */
  TinyProgram *program;
  guint n_params, n_variables;
  guint grid[3];
  guint64 reads;           /* by parameter, of the first 64: a launch reads it */
  gint64 n_flops, n_bytes; /* estimates for one launch */
  TinyDType dtype;         /* that most of the arithmetic is in */
  /* private */
  char *key;
  gsize n_code;
  guint n_users;
  GList spare; /* among those that have no users */
} TinyExecutable;

/* Plans and launches have a part in what they run. What nobody has a part in stays loaded for who asks next, up to
 * TINY_MAX_SPARES programs whose binaries have TINY_MAX_SPARE_BYTES together; then those that were let go of first are
 * unloaded. */
enum { TINY_MAX_SPARES = 512, TINY_MAX_SPARE_BYTES = 64 << 20 };
TinyExecutable *tiny_executable_ref (TinyExecutable *self);
void tiny_executable_unref (TinyExecutable *self); /* NULL is fine */
/* How many are loaded. */
guint tiny_executables_count (void);

/* Makes executables of @kernels (SINKs of @graph, which is only read), on all cores; out_executables[i] (transfer full).
 * @device is one that is open. Where operations[i] is not NULL (@operations may be) a unit of the device computes that
 * instead. An executable runs on its program's device: kernels of one that runs beside another run there.
 *
 * Errors: those of codegen, the plugin's compiler and its loader, naming the kernel. */
gboolean tiny_executables_get (TinyDevice *device,
                               TinyGraph *graph,
                               TinyNode *const *kernels,
                               const TinyOperation *const *operations,
                               guint n,
                               TinyExecutable **out_executables,
                               GError **error);

/* One kernel's binary without a device to load it, for `tinycore compile`; (transfer full). @opts
 * as in tiny_codegen_compile(). */
GBytes *tiny_kernel_compile (
    TinyDevice *device, TinyNode *kernel, const TinyOpt *opts, guint n_opts, GError **error);

/* A key for the caches of what is made of @what on @device by this very library. */
void
tiny_executable_make_key (TinyDevice *device, gconstpointer what, gsize size, char out[33]);

G_END_DECLS
