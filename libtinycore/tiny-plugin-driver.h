/* SPDX-License-Identifier: MIT
 *
 * tiny-plugin-driver.h: for backends whose driver is a library that is opened at run time, with the C library's
 * dlopen().
 *
 * Functions of the plugin's own, as those of the kit. */
#pragma once

#include <dlfcn.h>
#include <signal.h>

#include "tiny-plugin-kit.h"

/* ---- a driver's library ---- */
typedef struct {
  const char *name;
  size_t offset;   /* of the function pointer in the table that is filled */
  int is_optional; /* NULL where the library lacks it */
} TinySymbol;

/* Opens the file that environment variable @variable names, else the first of the NULL-ended @names
 * that is there, and fills @table. The variable counts for nothing in a privileged program.
 * TINY_STATUS_DRIVER says what is missing; @hint, what to install. */
TINY_KIT TinyStatus
tiny_open_library (const char *variable,
                   const char *const *names,
                   const TinySymbol *symbols,
                   size_t n,
                   void *table,
                   const char *hint,
                   void **out,
                   TinyPluginError *error)
{
  const char *const named[] = { tiny_getenv (variable), NULL };
  const int is_named = named[0] != NULL;
  char why[512] = "";
  void *library = NULL;
  for (names = is_named ? named : names; *names != NULL && library == NULL; names++)
    if ((library = dlopen (*names, RTLD_NOW | RTLD_LOCAL)) == NULL) {
      const char *text = dlerror ();
      snprintf (why + strlen (why), sizeof why - strlen (why), "%s%.200s", why[0] ? "; " : "",
                text != NULL ? text : *names);
    }
  if (library == NULL) {
    tiny_fail (error, TINY_STATUS_DRIVER, "%s%s%s", is_named ? variable : "no library", ": ",
               why);
    return tiny_hint (TINY_STATUS_DRIVER, error, "%s", hint);
  }
  for (size_t i = 0; i < 2 * n; i++) { /* first to look, then to fill: all or none */
    const TinySymbol *symbol = &symbols[i % n];
    void *function = dlsym (library, symbol->name);
    if (function == NULL && !symbol->is_optional) {
      tiny_fail (error, TINY_STATUS_DRIVER, "%s lacks %s: another library, or an older one",
                 names[-1], symbol->name);
      dlclose (library);
      return tiny_hint (TINY_STATUS_DRIVER, error, "%s", hint);
    }
    if (i >= n)
      memcpy ((char *) table + symbol->offset, &function, sizeof function);
  }
  *out = library;
  return TINY_STATUS_OK;
}

/* ---- the process that a driver changes ----
 *
 * A plugin leaves signal handlers and the environment as it found them, and some drivers' libraries do
 * not: what they change is put back around the calls in which they do, such as the first. Around module
 * functions only, which run one at a time. */
enum { TINY_KIT_SIGNALS = 65, TINY_KIT_VARIABLES = 1024 };
typedef struct {
  struct sigaction actions[TINY_KIT_SIGNALS];
  const char *variables[TINY_KIT_VARIABLES]; /* as environ has them */
  size_t n_variables;
} TinyProcess;

extern char **environ;

TINY_KIT void
tiny_process_keep (TinyProcess *self)
{
  for (int i = 1; i < TINY_KIT_SIGNALS; i++)
    if (sigaction (i, NULL, &self->actions[i]) != 0)
      self->actions[i].sa_flags = -1;
  for (self->n_variables = 0; environ != NULL && environ[self->n_variables] != NULL
                              && self->n_variables < TINY_KIT_VARIABLES;
       self->n_variables++)
    self->variables[self->n_variables] = environ[self->n_variables];
}

/* Puts the handlers back, and takes out the variables that were not there. */
TINY_KIT void
tiny_process_restore (const TinyProcess *self)
{
  char name[256];
  for (int i = 1; i < TINY_KIT_SIGNALS; i++)
    if (self->actions[i].sa_flags != -1)
      sigaction (i, &self->actions[i], NULL);
  for (size_t at = 0; environ != NULL && environ[at] != NULL;) {
    const size_t length = strcspn (environ[at], "=");
    size_t i = 0;
    while (i < self->n_variables && self->variables[i] != environ[at])
      i++;
    if (i < self->n_variables || self->n_variables == TINY_KIT_VARIABLES
        || length >= sizeof name) {
      at++;
      continue;
    }
    memcpy (name, environ[at], length);
    name[length] = '\0';
    unsetenv (name); /* what follows moves up */
  }
}
