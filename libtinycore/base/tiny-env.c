/* SPDX-License-Identifier: MIT
 *
 * tiny-env.c: environment variables, read once at first use.
 *
 * In privileged programs texts are ignored, as nearly all name files to read or write; those that name a device
 * are not, as that is one of the program's own. */
#include "base/tiny-env.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum { SHARED, OWN }; /* with processes that work for this one */

static struct {
  const char *name;
  guint helpers;
  gboolean is_int;
  int int_value, least, most;
  const char *text_value;
  const char *meaning;
} table[] = {
#define TINY_ENV_INT(id, name, helpers, value, least, most, meaning)                           \
  { name, helpers, TRUE, value, least, most, NULL, meaning },
#define TINY_ENV_TEXT(id, name, helpers, value, meaning)                                       \
  { name, helpers, FALSE, 0, 0, 0, value, meaning },
#include "base/tiny-env.def"
#undef TINY_ENV_INT
#undef TINY_ENV_TEXT
};

gboolean
tiny_env_is_privileged (void)
{
  return getauxval (AT_SECURE) != 0;
}

static gboolean
is_heeded (guint row)
{
  return !tiny_env_is_privileged () || table[row].is_int || row == TINY_ENV_DEV
         || row == TINY_ENV_BACKEND;
}

/* A text that is no number, or one that is not allowed, leaves the default. */
static void
read_int (guint row, const char *text)
{
  char *end;
  const gint64 value = g_ascii_strtoll (text, &end, 10); /* the nearest where it is beyond */
  const gboolean is_number = end != text && *end == 0;
  if (is_number && value >= table[row].least && value <= table[row].most)
    table[row].int_value = (int) value;
  else if (is_number)
    g_warning ("%s=%.99s is not from %d to %d; %d is used", table[row].name, text,
               table[row].least, table[row].most, table[row].int_value);
  else
    g_warning ("%s=%.99s is no whole number from %d to %d; %d is used", table[row].name, text,
               table[row].least, table[row].most, table[row].int_value);
}

static void
read_environment (void)
{
  static gsize done = 0;
  if (!g_once_init_enter (&done))
    return;
  for (guint i = 0; i < TINY_N_ENVS; i++) {
    const char *text = g_getenv (table[i].name);
    if (text == NULL || text[0] == 0 || !is_heeded (i))
      continue;
    if (table[i].is_int)
      read_int (i, text);
    else
      table[i].text_value = g_intern_string (text);
  }
  g_once_init_leave (&done, 1);
}

int
tiny_env_get_int (TinyEnv env)
{
  read_environment ();
  return table[env].int_value;
}

const char *
tiny_env_get_text (TinyEnv env)
{
  read_environment ();
  return table[env].text_value;
}

const char *
tiny_env_get_name (TinyEnv env)
{
  return table[env].name;
}

const char *
tiny_env_get_meaning (TinyEnv env)
{
  return table[env].meaning;
}

gboolean
tiny_env_is_int (TinyEnv env)
{
  return table[env].is_int;
}

int
tiny_env_get_least (TinyEnv env)
{
  return table[env].least;
}

int
tiny_env_get_most (TinyEnv env)
{
  return table[env].most;
}

void
tiny_env_set_int (TinyEnv env, int value)
{
  read_environment ();
  table[env].int_value = value;
}

void
tiny_env_set_text (TinyEnv env, const char *value)
{
  read_environment ();
  table[env].text_value = value ? g_intern_string (value) : NULL;
}

char **
tiny_env_for_helper (void)
{
  char **out = g_get_environ ();
  for (guint i = 0; i < TINY_N_ENVS; i++)
    if (table[i].helpers == OWN)
      out = g_environ_unsetenv (out, table[i].name);
  return g_environ_setenv (out, table[TINY_ENV_CRASH_NOTES].name, "0", TRUE);
}
