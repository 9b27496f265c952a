/* SPDX-License-Identifier: MIT
 *
 * abi-private.h: what the files of the ABI check share. */
#pragma once

#include "plugin/tiny-abi-check.h"
#include "plugin/tiny-elf.h"

G_BEGIN_DECLS

/* A library that the plugin needs, itself or by another one. */
typedef struct {
  char *name;        /* as DT_NEEDED says it */
  char *path;        /* or NULL: it is not there */
  char *needer;      /* the name of the library that needs it, NULL: the plugin */
  TinyElf *elf;      /* of path */
  GHashTable *names; /* of what it exports */
} TinyAbiLibrary;

typedef struct {
  const char *path;
  const char *manifest; /* named by the caller, or NULL */
  TinyElf *elf;         /* with symbols, or NULL and @error */
  GError *error;
  GPtrArray *libraries; /* of TinyAbiLibrary, nearest first */
} TinyAbiSubject;

/* Sets what a finding says; @hint may be NULL. */
void tiny_abi_say (TinyAbiFinding *self,
                   TinyAbiState state,
                   const char *hint,
                   const char *format,
                   ...) G_GNUC_PRINTF (4, 5);
/* "a, b, c and 12 more"; takes nothing. */
char *tiny_abi_join (const GPtrArray *names);

void tiny_abi_read_libraries (TinyAbiSubject *self);

/* abi-symbols.c */
void tiny_abi_check_exports (const TinyAbiSubject *self, TinyAbiFinding *out);
void tiny_abi_check_needs (const TinyAbiSubject *self, TinyAbiFinding *out);
void tiny_abi_check_symbols (const TinyAbiSubject *self, TinyAbiFinding *out);
void tiny_abi_check_versions (const TinyAbiSubject *self, TinyAbiFinding *out);
void tiny_abi_check_core (const TinyAbiSubject *self, TinyAbiFinding *out);
void tiny_abi_check_instruments (const TinyAbiSubject *self, TinyAbiFinding *out);
/* abi-constructors.c */
void tiny_abi_check_constructors (const TinyAbiSubject *self, TinyAbiFinding *out);
/* abi-manifest.c; these look at the manifest even where the file cannot be read */
void tiny_abi_check_manifest (const TinyAbiSubject *self, TinyAbiFinding *out);
void tiny_abi_check_agreement (const TinyAbiSubject *self, TinyAbiFinding *out);

G_END_DECLS
