/* SPDX-License-Identifier: MIT
 *
 * tiny-settings.c: environment variables by name, for programs. */
#include "base/tiny-settings.h"

#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"

/* TINY_N_ENVS: there is none. */
static TinyEnv
find_env (const char *name)
{
  TinyEnv env = 0;
  while (env < TINY_N_ENVS && (name == NULL || strcmp (tiny_env_get_name (env), name) != 0))
    env++;
  return env;
}

char *
tiny_get_setting (const char *name)
{
  TinyEnv env = find_env (name);
  if (env == TINY_N_ENVS)
    return NULL;
  return tiny_env_is_int (env) ? g_strdup_printf ("%d", tiny_env_get_int (env))
                               : g_strdup (tiny_env_get_text (env));
}

gboolean
tiny_set_setting (const char *name, const char *value, GError **error)
{
  TinyEnv env = find_env (name);
  gint64 number = 0;
  if (env == TINY_N_ENVS) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "%s is no setting of the library: docs/env.md lists them",
                 name != NULL ? name : "NULL");
    return FALSE;
  }
  if (!tiny_env_is_int (env)) {
    tiny_env_set_text (env, value);
    return TRUE;
  }
  if (value == NULL
      || !g_ascii_string_to_signed (value, 10, tiny_env_get_least (env),
                                    tiny_env_get_most (env), &number, NULL)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "%s wants a whole number from %d to %d, not “%s”", name,
                 tiny_env_get_least (env), tiny_env_get_most (env),
                 value != NULL ? value : "NULL");
    return FALSE;
  }
  tiny_env_set_int (env, (int) number);
  return TRUE;
}
