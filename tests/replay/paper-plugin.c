/* SPDX-License-Identifier: MIT
 *
 * paper-plugin.c: hardware on paper. DEV=PAPER::NAME is a target of targets.def, for which a program is a digest and a launch
 * is noted.
 *
 * Targets are described by the backends' own modules, without their drivers and compilers. Memory is that of NULL; it
 * does not say that it runs nothing, so that what reads results goes on, with zeros. */
#include <dlfcn.h>
#include <pthread.h>

#include "paper.h"
#include "tiny-plugin-kit.h"

static const struct {
  const char *name, *path, *arch;
  uint32_t n_threads;
  uint64_t cache_kib[3];
} targets[] = {
#define REPLAY_TARGET(name, module, arch, threads, ...)                                        \
  { name, module##_PLUGIN, arch, threads, { __VA_ARGS__ } },
#include "targets.def"
#undef REPLAY_TARGET
};

static const TinyHost *host;
static const TinyPluginModule *null_module;
static const TinyDeviceTable *null_table;
static TinyDeviceTable table;

static const TinyPluginModule *
open_module (const char *path, TinyPluginError *error)
{
  TinyPluginEntry entry = NULL;
  void *library = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  if (library != NULL)
    *(void **) &entry = dlsym (library, TINY_PLUGIN_ENTRY_SYMBOL);
  if (entry == NULL)
    tiny_fail (error, TINY_STATUS_DRIVER, "cannot open %s", path);
  return entry != NULL ? entry (0, error) : NULL;
}

/* ---- the renderer ---- */
static TinyStatus
describe (const char *name, TinyTarget *out, TinyPluginError *error)
{
  size_t i = 0;
  while (i < TINY_KIT_N (targets) && strcmp (targets[i].name, name) != 0)
    i++;
  if (i == TINY_KIT_N (targets))
    return tiny_fail (error, TINY_STATUS_INVALID, "no target '%s'", name);
  const TinyPluginModule *module = open_module (targets[i].path, error);
  if (module == NULL)
    return TINY_STATUS_DRIVER;
  out->arch[0] = '\0'; /* not NULL's, which the device has */
  TINY_TRY (module->renderers[0].target (targets[i].arch, out, error));
  snprintf (out->arch, sizeof out->arch, "%s", name);
  if (targets[i].n_threads == 0)
    return TINY_STATUS_OK;
  out->n_threads = targets[i].n_threads;
  /* The CPU's module has read what TINY_CPU_CACHES reports. */
  const int is_reported = tiny_getenv ("TINY_CPU_CACHES") != NULL;
  for (int level = 0; level < 3 && !is_reported; level++)
    out->cache_bytes[level] = targets[i].cache_kib[level] << 10;
  return TINY_STATUS_OK;
}

static uint64_t
absorb (uint64_t digest, uint64_t value)
{
  digest = (digest ^ value) * UINT64_C (0x9E3779B97F4A7C15);
  return digest ^ digest >> 29;
}

static uint64_t
digest_of (const TinyLinear *linear)
{
  uint64_t digest = absorb (linear->n_variables, linear->n_params);
  for (int axis = 0; axis < 3; axis++)
    digest = absorb (absorb (digest, linear->grid[axis]), linear->group[axis]);
  for (uint32_t i = 0; i < linear->n_params; i++) {
    const TinyParam *param = &linear->params[i];
    digest = absorb (absorb (absorb (digest, param->dtype), param->flags), param->n_elements);
  }
  for (uint32_t i = 0; i < linear->n_instrs; i++) {
    const TinyInstr *instr = &linear->instrs[i];
    digest = absorb (digest, instr->op | instr->dtype << 8 | (uint64_t) instr->lanes << 16);
    digest = absorb (digest, (uint64_t) instr->arg);
    for (uint32_t s = 0; s < instr->n_sources; s++)
      digest = absorb (digest, linear->sources[instr->sources + s]);
  }
  return digest;
}

static TinyStatus
compile (const TinyCompileArgs *args, void **out, uint64_t *out_size, TinyPluginError *error)
{
  PaperProgram *binary = host->alloc (sizeof *binary);
  if (binary == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "out of host memory");
  binary->digest = digest_of (args->linear);
  *out = binary;
  *out_size = sizeof *binary;
  return TINY_STATUS_OK;
}

static const TinyRenderer renderer = { .struct_size = sizeof renderer,
                                       .name = "PAPER",
                                       .code_version = "1",
                                       .target = describe,
                                       .compile = compile };

/* ---- the device ---- */
static struct {
  pthread_mutex_t lock;
  PaperProgram **programs;
  uint32_t n, n_room, n_taken;
} launches = { .lock = PTHREAD_MUTEX_INITIALIZER };

TINY_PLUGIN_EXPORT PaperProgram *const *paper_take_launches (uint32_t *out_n);

PaperProgram *const *
paper_take_launches (uint32_t *out_n)
{
  PaperProgram *const *first = launches.programs + launches.n_taken;
  *out_n = launches.n - launches.n_taken;
  launches.n_taken = launches.n;
  return first;
}

static void
note_launch (PaperProgram *program)
{
  pthread_mutex_lock (&launches.lock);
  if (launches.n == launches.n_room) {
    launches.n_room = 2 * launches.n_room + 64;
    launches.programs
        = realloc (launches.programs, launches.n_room * sizeof *launches.programs);
  }
  launches.programs[launches.n++] = program;
  pthread_mutex_unlock (&launches.lock);
}

static TinyStatus
submit (TinyPluginDevice *device,
        TinyPluginQueue *queue,
        const TinySubmit *work,
        TinyPluginError *error)
{
  for (uint32_t i = 0; i < work->n_commands; i++)
    if (work->commands[i].type == TINY_COMMAND_DISPATCH)
      note_launch (work->commands[i].program);
  return null_table->submit (device, queue, work, error);
}

static TinyStatus
info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  TINY_TRY (null_table->info (device, out, error));
  out->flags &= ~TINY_DEVICE_RUNS_NOTHING;
  return TINY_STATUS_OK;
}

static TinyStatus
program_load (TinyPluginDevice *device,
              const TinyProgramArgs *args,
              TinyPluginProgram **out,
              TinyPluginError *error)
{
  *out = malloc (sizeof **out);
  if (*out == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "out of host memory");
  memcpy (*out, args->data, sizeof **out);
  return TINY_STATUS_OK;
}

static void
program_unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
  free (program);
}

/* ---- the module ---- */
static TinyStatus
init (const TinyHost *given, TinyPluginError *error)
{
  host = given;
  null_module = open_module (NULL_PLUGIN, error);
  return null_module != NULL ? null_module->init (given, error) : TINY_STATUS_DRIVER;
}

static TinyStatus
scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  return null_module->scan (out, n, error);
}

static TinyStatus
open_device (const char *id,
             TinyPluginDevice **out,
             const TinyDeviceTable **out_table,
             TinyPluginError *error)
{
  TINY_TRY (null_module->open (id, out, &null_table, error));
  table = *null_table;
  table.info = info;
  table.submit = submit;
  table.program_load = program_load;
  table.program_unload = program_unload;
  *out_table = &table;
  return TINY_STATUS_OK;
}

TINY_PLUGIN_NOTE (0);

static const TinyPluginModule module = { .struct_size = sizeof module,
                                         .abi_major = TINY_PLUGIN_ABI_MAJOR,
                                         .name = "PAPER",
                                         .vendor = "tinycore",
                                         .version = "1",
                                         .license = "MIT",
                                         .n_renderers = 1,
                                         .renderers = &renderer,
                                         .init = init,
                                         .scan = scan,
                                         .open = open_device };

TINY_PLUGIN_EXPORT const TinyPluginModule *tiny_plugin_entry_1 (uint32_t host_minor,
                                                                TinyPluginError *error);

const TinyPluginModule *
tiny_plugin_entry_1 (uint32_t host_minor, TinyPluginError *error)
{
  return &module;
}
