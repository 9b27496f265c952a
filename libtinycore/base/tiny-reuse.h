/* SPDX-License-Identifier: MIT
 *
 * tiny-reuse.h: arrays that are kept from one call to the next, and how many objects are.
 *
 * What runs for each operation of a program and needs lists for its own time alone would spend more on making and
 * freeing them than on what is in them. One that grew large is let go. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

enum { TINY_REUSE_MOST = 4096 }; /* elements */

/* Objects of one kind that are kept for what is made next; none where a sanitizer is to see use after their end. */
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { TINY_REUSE_OBJECTS = 0 };
#else
enum { TINY_REUSE_OBJECTS = 64 };
#endif

/* *@array, empty; a new one where there is none. It frees no elements. */
static inline GPtrArray *
tiny_reuse_ptrs (GPtrArray **array)
{
  if (*array != NULL && (*array)->len > TINY_REUSE_MOST)
    g_clear_pointer (array, g_ptr_array_unref);
  if (*array == NULL)
    *array = g_ptr_array_new ();
  (*array)->len = 0; /* what g_ptr_array_set_size() comes to here, in a tenth of its time */
  return *array;
}

/* Likewise, with elements of @size bytes. */
static inline GArray *
tiny_reuse_array (GArray **array, guint size)
{
  if (*array != NULL && (*array)->len > TINY_REUSE_MOST)
    g_clear_pointer (array, g_array_unref);
  if (*array == NULL)
    *array = g_array_new (FALSE, FALSE, size);
  (*array)->len = 0;
  return *array;
}

G_END_DECLS
