/* SPDX-License-Identifier: MIT
 *
 * tiny-crash.h: backends in which a program has crashed, remembered from one start to the next.
 *
 * Notes are files in a folder, one for each backend, that tiny-watch.h writes as the program dies. One counts as
 * long as the backend's file is the same build. */
#pragma once

#include "device/tiny-watch.h"
#include "plugin/tiny-manifest.h"

G_BEGIN_DECLS

typedef struct {
  char *function; /* "submit" */
  char *build;    /* of the backend: its build-id, or its size and date */
  int signal;     /* 0: it called exit() */
  gint64 when;    /* seconds since 1970 */
} TinyCrash;

/* To be given to tiny_backend_load_watched(); NULL where nothing is kept (@folder is NULL, TINY_CRASH_NOTES=0). */
TinyWatch *tiny_crash_watch (const char *folder, const TinyManifest *manifest);
/* What is known, or NULL. A note of another build, or a damaged one, is removed. */
TinyCrash *tiny_crash_recall (const char *folder, const TinyManifest *manifest);
void tiny_crash_free (TinyCrash *self);
/* Forgets a backend; NULL: all. */
void tiny_crash_forget (const char *folder, const TinyManifest *manifest);
/* "a program crashed with signal 11 (Segmentation fault) in its submit on 2026-01-01 10:00 (build-id …)" */
char *tiny_crash_to_string (const TinyCrash *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyCrash, tiny_crash_free)

G_END_DECLS
