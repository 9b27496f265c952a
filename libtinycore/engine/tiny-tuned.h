/* SPDX-License-Identifier: MIT
 *
 * tiny-tuned.h: lists of optimisations that were found for kernels: in files that TINY_TUNED names,
 * in the cache on disk, and in this process.
 *
 * A tuned file is text. Its first line is "tinycore-tuned 1"; every other is empty, a comment after
 * #, or an entry: digest of the kernel (32 hexadecimal digits), target (BACKEND:RENDERER:ARCH, no
 * spaces), optimisations ("none", or as in `tinycore compile --opts`), and a comment for people:
 * the kernel's name and what it took. Of two entries of one file for one kernel the later is used, of
 * two files' that of the first. */
#pragma once

#include "device/tiny-device.h"
#include "engine/tiny-search.h"

G_BEGIN_DECLS

/* What a kernel is looked up by. */
typedef struct {
  TinyDevice *device;
  TinyNode *kernel;
  char digest[33]; /* of the kernel alone, hexadecimal */
  char key[33];    /* of the kernel, the target and all code that takes part */
} TinyTunedKey;

/* (transfer full) (nullable): the list to use for a kernel: from TINY_TUNED, else with BEAM set from
 * the caches, else with BEAM set from a search now. NULL: the heuristic. *out_origin (transfer none,
 * may be NULL) names the file it is from. The one error is that the thread was told to stop while it searched. */
char *tiny_tuned_get_opts (const TinyTunedKey *key, const char **out_origin, GError **error);

/* Whether any kernel may get such a list: BEAM or TINY_TUNED is set. */
gboolean tiny_tuned_is_wanted (void);

/* Everything that searches and the cache gave this process, as a tuned file; *out_n: entries. */
char *tiny_tuned_export (guint *out_n);

/* What became of the files of TINY_TUNED: a list is for one kernel as it was scheduled, so another
 * version of the scheduler may leave it without one. */
typedef struct {
  guint n_entries; /* for @device's target */
  guint n_foreign; /* for others */
  guint n_used;    /* of n_entries */
  guint n_kernels; /* that were looked up for it, each once */
} TinyTunedUse;
void tiny_tuned_get_use (TinyDevice *device, TinyTunedUse *out);
/* What was looked up so far does not count. */
void tiny_tuned_reset_use (void);

/* BACKEND:RENDERER:ARCH. */
char *tiny_tuned_target_of (TinyDevice *device);

G_END_DECLS
