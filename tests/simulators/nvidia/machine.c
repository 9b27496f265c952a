/* SPDX-License-Identifier: MIT
 *
 * machine.c: memory, module and launch of a test's kernel. */
#include "machine.h"
#include <string.h>

char *
machine_error (const char *text)
{
  g_autoptr (PtxMemory) memory = ptx_memory_new (1 << 30);
  g_autoptr (GError) error = NULL;
  g_autoptr (PtxModule) module = ptx_module_new (text, -1, memory, &error);
  g_assert_true ((module == NULL) == (error != NULL));
  return error != NULL ? g_strdup (error->message) : NULL;
}

static guint
collect (const Machine *machine, PtxMemory *memory, guint64 *addresses, guint8 *params)
{
  guint n = 0;
  while (n < MACHINE_MAX_ARRAYS && machine->arrays[n].bytes != NULL) {
    gsize n_bytes = machine->arrays[n].n_bytes;
    addresses[n] = ptx_memory_take (memory, n_bytes);
    g_assert_cmpuint (addresses[n], !=, 0);
    memcpy (ptx_memory_at (memory, addresses[n], n_bytes), machine->arrays[n].bytes, n_bytes);
    n++;
  }
  memcpy (params, addresses, n * sizeof addresses[0]);
  memcpy (params + n * sizeof addresses[0], machine->numbers,
          machine->n_numbers * sizeof machine->numbers[0]);
  return n;
}

PtxFault
machine_run (const Machine *machine)
{
  g_autoptr (PtxMemory) memory = ptx_memory_new (1 << 30);
  g_autoptr (GError) error = NULL;
  g_autoptr (PtxModule) module = ptx_module_new (machine->text, -1, memory, &error);
  g_assert_no_error (error);
  guint64 addresses[MACHINE_MAX_ARRAYS];
  guint8 params[MACHINE_MAX_ARRAYS * sizeof (guint64) + sizeof machine->numbers];
  guint n = collect (machine, memory, addresses, params);
  PtxLaunch launch = { .grid = { MAX (machine->blocks, 1), 1, 1 },
                       .block = { MAX (machine->threads, 32), 1, 1 },
                       .n_dynamic_shared = machine->n_dynamic,
                       .params = params,
                       .n_param_bytes = sizeof params,
                       .seed = machine->seed,
                       .max_steps = machine->max_steps,
                       .is_checked = machine->is_checked,
                       .n_threads = 2 };
  PtxFault fault;
  const PtxFunction *kernel
      = ptx_module_find (module, machine->kernel != NULL ? machine->kernel : "k");
  g_assert_nonnull (kernel);
  g_assert_true (ptx_launch (kernel, &launch, &fault) == (fault.code == 0));
  for (guint i = 0; i < n; i++)
    memcpy (machine->arrays[i].bytes,
            ptx_memory_at (memory, addresses[i], machine->arrays[i].n_bytes),
            machine->arrays[i].n_bytes);
  return fault;
}
