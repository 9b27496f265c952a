/* SPDX-License-Identifier: MIT
 *
 * allocation-large.h: a reader of something large, while one request after the other of ALLOCATION_LARGE bytes or more is
 * refused, whoever makes it but json-glib. Inputs are large enough for each list and text of theirs to become so large. */
#pragma once

#include "allocation.h"

enum { MANY = 40000, LONG = 400000 };

static char *folder; /* of files, and of the cache */

static inline void
make_folder (void)
{
  g_autoptr (GError) error = NULL;
  folder = g_dir_make_tmp ("tinycore-allocation-XXXXXX", &error);
  g_assert_no_error (error);
  g_setenv ("TINY_CACHE_DIR", folder, TRUE);
}

/* (transfer full): the path of a file with that content. */
static inline char *
write_file (const char *name, gconstpointer data, gsize n)
{
  g_autoptr (GError) error = NULL;
  char *path = g_build_filename (folder, name, NULL);
  g_file_set_contents (path, data, (gssize) n, &error);
  g_assert_no_error (error);
  return path;
}

static inline char *
long_text (void)
{
  return g_strnfill (LONG, 'x');
}

static inline void
refuse (AllocationAct act, gpointer data, guint at_least)
{
  static const HeapAskers askers
      = { .large = "test-fault|libz.|libarchive", .least = ALLOCATION_LARGE };
  const guint n = allocation_refuse_each (&askers, act, data);
  if (n < at_least)
    CASE_FAILS ("%u requests, not the %u that the input was made for", n, at_least);
}
