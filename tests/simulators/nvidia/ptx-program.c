/* SPDX-License-Identifier: MIT
 *
 * ptx-program.c: modules and functions: what they own, and what is asked of them. */
#include "ptx-program.h"

const guint64 *
ptx_module_constant (PtxModule *module, guint64 value)
{
  guint64 *lanes = g_hash_table_lookup (module->constants, &value);
  if (lanes == NULL) {
    lanes = g_new (guint64, PTX_N_LANES);
    for (guint i = 0; i < PTX_N_LANES; i++)
      lanes[i] = value;
    g_hash_table_insert (module->constants, lanes, lanes);
  }
  return lanes;
}

static void
free_function (gpointer data)
{
  PtxFunction *function = data;
  g_array_unref (function->instrs);
  g_array_unref (function->params);
  g_array_unref (function->results);
  g_array_unref (function->entries);
  g_free (function->name);
  g_free (function);
}

PtxFunction *
ptx_module_function (PtxModule *module, const char *name)
{
  PtxFunction *function = g_hash_table_lookup (module->functions, name);
  if (function != NULL)
    return function;
  function = g_new0 (PtxFunction, 1);
  function->module = module;
  function->name = g_strdup (name);
  function->instrs = g_array_new (FALSE, TRUE, sizeof (PtxInstr));
  function->params = g_array_new (FALSE, TRUE, sizeof (PtxSlot));
  function->results = g_array_new (FALSE, TRUE, sizeof (PtxSlot));
  function->entries = g_array_new (FALSE, TRUE, sizeof (PtxEntryValue));
  g_hash_table_insert (module->functions, function->name, function);
  return function;
}

PtxModule *
ptx_module_empty (PtxMemory *memory)
{
  PtxModule *module = g_new0 (PtxModule, 1);
  module->memory = memory;
  module->strings = g_string_chunk_new (4096);
  module->functions = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, free_function);
  module->variables = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, g_free);
  module->constants = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free);
  module->operands = g_ptr_array_new_with_free_func (g_free);
  return module;
}

/* Its variables are freed with it. */
void
ptx_module_free (PtxModule *module)
{
  GHashTableIter iter;
  PtxVariable *variable;
  g_hash_table_iter_init (&iter, module->variables);
  while (g_hash_table_iter_next (&iter, NULL, (gpointer *) &variable))
    ptx_memory_give (module->memory, variable->address);
  g_hash_table_unref (module->variables);
  g_hash_table_unref (module->functions);
  g_hash_table_unref (module->constants);
  g_ptr_array_unref (module->operands);
  g_string_chunk_free (module->strings);
  g_free (module->target);
  g_free (module);
}

const PtxFunction *
ptx_module_find (const PtxModule *module, const char *kernel)
{
  const PtxFunction *function = g_hash_table_lookup (module->functions, kernel);
  return function != NULL && function->is_entry && function->is_defined ? function : NULL;
}

gboolean
ptx_module_variable (const PtxModule *module,
                     const char *name,
                     guint64 *out_address,
                     guint64 *out_n_bytes)
{
  const PtxVariable *variable = g_hash_table_lookup (module->variables, name);
  if (variable == NULL)
    return FALSE;
  *out_address = variable->address;
  *out_n_bytes = variable->n_bytes;
  return TRUE;
}

const char *
ptx_module_target (const PtxModule *module)
{
  return module->target != NULL ? module->target : "";
}

PtxKernelInfo
ptx_function_info (const PtxFunction *kernel)
{
  return kernel->info;
}
