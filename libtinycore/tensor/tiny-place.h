/* SPDX-License-Identifier: MIT
 *
 * tiny-place.h: the device or devices that a tensor is to be on, and memory there.
 *
 * Memory is a BUFFER, or on several devices an UNSHARD of BUFFERs (ir/tiny-shard.h). */
#pragma once

#include "base/tiny-opened-file.h"
#include "device/tiny-device.h"
#include "tensor/tiny-build.h"

G_BEGIN_DECLS

/* Devices that are opened before tiny_build_begin(), which takes the lock of all tensors: opening may take
 * long, and other threads do not wait for it. */
typedef struct {
  const char *name;   /* interned: theirs as tensors have them, or NULL */
  GPtrArray *devices; /* TinyDevice, in that order; NULL after an error */
  GError *error;
  gboolean is_default;
} TinyPlace;

void tiny_place_clear (TinyPlace *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyPlace, tiny_place_clear)

/* @names: one name, several with semicolons between, or NULL for the default device. */
TinyPlace tiny_place_open (const char *names);
TinyPlace tiny_place_open_all (const char *const *names);

/* Whether they are open; else @build gets the error. */
gboolean tiny_place_check (TinyBuild *build, const TinyPlace *self);
/* The one device; NULL and an error where there are several or none. */
TinyDevice *tiny_place_get_device (TinyBuild *build, const TinyPlace *self);

/* Memory that is not there yet. On several devices it is cut as @like where that is cut on the same ones, else whole
 * on each. NULL after an error. */
TinyNode *tiny_place_new_memory (TinyBuild *build,
                                 const TinyPlace *self,
                                 TinyDType dtype,
                                 const gint64 *shape,
                                 guint n,
                                 const TinyNode *like);

/* What @node is once it is computed, NULL after an error. The operands of @build are kept up to date meanwhile. */
TinyNode *tiny_build_compute (TinyBuild *build, TinyNode *node);
/* How @tensor is cut that is on several devices: an UNSHARD of its shape, or of any where each device has all of it.
 * What is not known before is computed. NULL: it is on one device or has no elements, or an error. */
const TinyNode *tiny_place_find_cut (TinyBuild *build, TinyTensor *tensor);

/* All elements of a realised @node, in row-major order, from the host and to it. */
gboolean tiny_memory_upload (TinyNode *node, gconstpointer data, GError **error);
/* The same from @file, where they begin at @offset; one part after the other is in the host's memory. */
gboolean tiny_memory_upload_file (TinyNode *node,
                                  const TinyOpenedFile *file,
                                  guint64 offset,
                                  GError **error);
gboolean tiny_memory_download (TinyNode *node, gpointer out, GError **error);

G_END_DECLS
