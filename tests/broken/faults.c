/* SPDX-License-Identifier: MIT
 *
 * faults.c: all faults, table by table. */
#include "broken.h"

static const Fault rows[] = {
  /* clang-format off: one a line */
  { "none", "nothing is wrong", "the measure of false alarms" },
  /* clang-format on */
};
static FAULT_TABLE (faults_none);

/* clang-format off: one a line */
#define TABLES(X)                                                                              \
  X (floats)                                                                                   \
  X (integers)                                                                                 \
  X (casts)                                                                                    \
  X (structure)                                                                                \
  X (memory)                                                                                   \
  X (copies)                                                                                   \
  X (submit)                                                                                   \
  X (launch)                                                                                   \
  X (claims)                                                                                   \
  X (module)                                                                                   \
  X (process)                                                                                  \
  X (stops)
/* clang-format on */
#define DECLARE(name) extern const FaultTable faults_##name;
TABLES (DECLARE)

/* Pointers, as another file's table is no constant. */
#define LIST(name) &faults_##name,
static const FaultTable *const tables[] = { &faults_none, TABLES (LIST) };

const Fault *
fault_at (size_t i)
{
  for (size_t table = 0; table < TINY_KIT_N (tables); table++) {
    if (i < tables[table]->n)
      return &tables[table]->faults[i];
    i -= tables[table]->n;
  }
  return NULL;
}

const Fault *
fault_find (const char *name)
{
  const Fault *fault;
  for (size_t i = 0; (fault = fault_at (i)) != NULL; i++)
    if (strcmp (fault->name, name) == 0)
      return fault;
  return NULL;
}
