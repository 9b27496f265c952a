/* SPDX-License-Identifier: MIT
 *
 * contract.c: whatever a plugin and the core say to one another is reached from this one function. */
#include "tiny-plugin.h"

TINY_PLUGIN_EXPORT const TinyPluginModule *tiny_plugin_entry_1 (uint32_t host_minor,
                                                                TinyPluginError *error);

const TinyPluginModule *
tiny_plugin_entry_1 (uint32_t host_minor, TinyPluginError *error)
{
  return NULL;
}
