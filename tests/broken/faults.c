/* SPDX-License-Identifier: MIT
 *
 * faults.c: all faults, table by table. */
#include "broken.h"

/* ---- controls: the ways in which faults are put around a backend, with no fault ---- */
static Value
keep (Rewrite *r, const TinyInstr *instr, const Value *s)
{
  return KEEP;
}

static TinyStatus
load (TinyPluginDevice *device,
      const TinyProgramArgs *args,
      TinyPluginProgram **out,
      TinyPluginError *error)
{
  return inside.device->program_load (device, args, out, error);
}

EDIT (edit_nothing) { return 0; }

static const Fault rows[] = {
  /* clang-format off */
  { "none", "nothing is wrong", "the measure of false alarms" },
  { "none-rewritten", "nothing is wrong, programs are rewritten", "the measure of false alarms", .rewrite = keep },
  { "none-edited", "nothing is wrong, submissions are copied", "the measure of false alarms", .device = { .submit = edit_nothing, .program_load = load } },
  /* clang-format on */
};
static FAULT_TABLE (faults_none);

/* clang-format off */
#define TABLES(X)                                                                              \
  X (small)                                                                                    \
  X (floats)                                                                                   \
  X (integers)                                                                                 \
  X (casts)                                                                                    \
  X (values)                                                                                   \
  X (structure)                                                                                \
  X (lanes)                                                                                    \
  X (vectors)                                                                                  \
  X (units)                                                                                    \
  X (memory)                                                                                   \
  X (import)                                                                                   \
  X (copies)                                                                                   \
  X (submit)                                                                                   \
  X (launch)                                                                                   \
  X (late)                                                                                     \
  X (state)                                                                                    \
  X (async)                                                                                    \
  X (claims)                                                                                   \
  X (operations)                                                                               \
  X (factors)                                                                                  \
  X (vendor)                                                                                   \
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
