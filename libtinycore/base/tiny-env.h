/* SPDX-License-Identifier: MIT
 *
 * tiny-env.h: environment variables, declared once in tiny-env.def, read once at first use. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum {
#define TINY_ENV_INT(id, name, helpers, value, least, most, meaning) TINY_ENV_##id,
#define TINY_ENV_TEXT(id, name, helpers, value, meaning)             TINY_ENV_##id,
#include "base/tiny-env.def"
#undef TINY_ENV_INT
#undef TINY_ENV_TEXT
  TINY_N_ENVS
} TinyEnv;

/* TRUE in a program that has more rights than whoever runs it, such as one that is set-user-ID: whatever the
 * environment names is then that person's, not the program's. Only numbers, DEV and BACKEND are heeded there, nothing
 * is kept on disk, and no other programs are asked. */
gboolean tiny_env_is_privileged (void);

int tiny_env_get_int (TinyEnv env);
const char *tiny_env_get_text (TinyEnv env);
const char *tiny_env_get_name (TinyEnv env);
const char *tiny_env_get_meaning (TinyEnv env);
gboolean tiny_env_is_int (TinyEnv env);
int tiny_env_get_least (TinyEnv env); /* of a number */
int tiny_env_get_most (TinyEnv env);

/* Overrides a value for this process; for tests and the command line. */
void tiny_env_set_int (TinyEnv env, int value);
void tiny_env_set_text (TinyEnv env, const char *value);

/* (transfer full): this process's environment for one that works for it: without what would make that one choose
 * another device, search, print or record as well, and without notes of crashes. */
char **tiny_env_for_helper (void);

/* TRUE when DEBUG is at least @level. */
#define TINY_DEBUG(level) (G_UNLIKELY (tiny_env_get_int (TINY_ENV_DEBUG) >= (level)))

G_END_DECLS
