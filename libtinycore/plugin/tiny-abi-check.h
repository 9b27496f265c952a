/* SPDX-License-Identifier: MIT
 *
 * tiny-abi-check.h: what can be said of a plugin's file before it is shipped, running nothing of it.
 *
 * Every check gives one finding, in a fixed order and whatever the others say, so that the list is
 * the same for every file. Libraries that the file needs are looked up as the loader would and read as files;
 * none is loaded. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum {
  TINY_ABI_OK,
  TINY_ABI_NOTE,    /* worth knowing, nothing to do */
  TINY_ABI_WARNING, /* works, but not everywhere or not for ever */
  TINY_ABI_FAILED,  /* is not to be shipped */
  TINY_ABI_UNKNOWN, /* not looked at: something else is in the way, which has failed */
} TinyAbiState;

typedef struct {
  const char *check; /* a name of tiny_abi_list_checks(), static */
  TinyAbiState state;
  char *text; /* what was found, UTF-8 */
  char *hint; /* what to do, or NULL */
} TinyAbiFinding;

/* "ok", "note", "warning", "failed", "unknown". */
const char *tiny_abi_state_to_string (TinyAbiState state);

/* The names of the checks in their order, NULL-terminated, static. */
const char *const *tiny_abi_list_checks (void);
/* What a check is about, in a few words, or NULL for a name that is none. */
const char *tiny_abi_describe_check (const char *check);

/* Looks at the plugin @path. @manifest: the manifest to hold it against, NULL: one beside it, or else an installed one
 * that names it. Never NULL; elements are TinyAbiFinding, freed with the array. */
GPtrArray *tiny_abi_check (const char *path, const char *manifest);
/* The manifest of that plugin, as above (transfer full), or NULL. */
char *tiny_abi_find_manifest (const char *path);
/* Whether none has failed (or is unknown). */
gboolean tiny_abi_is_good (const GPtrArray *findings);

G_END_DECLS
