/* SPDX-License-Identifier: MIT
 *
 * nvidia-nvrtc.c: NVIDIA's run-time compiler, opened when a kernel is to be compiled; it needs neither driver nor GPU.
 *
 * Several versions may be installed. The newest is taken that knows the architecture and is no newer than the
 * driver's major version, as a driver refuses code of later ones. NVRTC opens a library of its own, the builtins, by
 * its bare name: where NVRTC lies outside of the loader's folders, they are opened here first, by the full path of the
 * same folder. Declared is what is used, as NVIDIA documents it in the NVRTC manual. */
#include <pthread.h>

#include "nvidia.h"
#include "tiny-plugin-driver.h"

typedef struct NvrtcProgram NvrtcProgram;
enum { NVRTC_INVALID_OPTION = 5 };

/* clang-format off */
#define NVRTC_FUNCTIONS(F) \
  F (Version, (int *major, int *minor)) \
  F (GetNumSupportedArchs, (int *n)) \
  F (GetSupportedArchs, (int *archs)) \
  F (CreateProgram, (NvrtcProgram **out, const char *source, const char *name, int n_headers, const char *const *headers, const char *const *names)) \
  F (CompileProgram, (NvrtcProgram *program, int n, const char *const *options)) \
  F (GetCUBINSize, (NvrtcProgram *program, size_t *size)) \
  F (GetCUBIN, (NvrtcProgram *program, char *out)) \
  F (GetProgramLogSize, (NvrtcProgram *program, size_t *size)) \
  F (GetProgramLog, (NvrtcProgram *program, char *out)) \
  F (DestroyProgram, (NvrtcProgram **program))
/* clang-format on */
#define FIELD(name, parameters) int (*name) parameters;
struct NvidiaNvrtc {
  NVRTC_FUNCTIONS (FIELD)
  void *library; /* stays open */
  int major, minor, n_archs, archs[64];
};
#undef FIELD

static const char *const names[]
    = { "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", NULL };
static const char variable[] = "TINY_NVRTC_LIBRARY";
static const char missing[] = "install NVRTC 11.2 or newer, NVIDIA's cuda-nvrtc or the "
                              "distribution's libnvrtc12, or name its "
                              "file in TINY_NVRTC_LIBRARY";

/* ---- libraries ---- */

/* A library that is not there stays so for the process, so that target() gives the same each time. */
static struct {
  pthread_mutex_t lock;
  bool was_tried[TINY_KIT_N (names)];
  NvidiaNvrtc found[TINY_KIT_N (names)];
} libraries = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
open_builtins (const NvidiaNvrtc *self)
{
  Dl_info info;
  char path[4096];
  void *function;
  memcpy (&function, &self->Version, sizeof function);
  const char *slash = dladdr (function, &info) != 0 ? strrchr (info.dli_fname, '/') : NULL;
  if (slash == NULL)
    return;
  const int n
      = snprintf (path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d",
                  (int) (slash - info.dli_fname), info.dli_fname, self->major, self->minor);
  if (n > 0 && (size_t) n < sizeof path)
    dlopen (path,
            RTLD_NOW
                | RTLD_LOCAL); /* without it NVRTC looks by itself, and says what it lacks */
}

static TinyStatus
open_library (const char *const *name, NvidiaNvrtc *self, TinyPluginError *error)
{
#define SYMBOL(name, parameters) { "nvrtc" #name, offsetof (NvidiaNvrtc, name), 0 },
  static const TinySymbol symbols[] = { NVRTC_FUNCTIONS (SYMBOL) };
#undef SYMBOL
  TINY_TRY (tiny_open_library (variable, name, symbols, TINY_KIT_N (symbols), self, missing,
                               &self->library, error));
  int n = 0;
  if (self->Version (&self->major, &self->minor) == 0 && self->GetNumSupportedArchs (&n) == 0
      && n > 0 && (size_t) n <= TINY_KIT_N (self->archs)
      && self->GetSupportedArchs (self->archs) == 0) {
    self->n_archs = n;
    open_builtins (self);
    return TINY_STATUS_OK;
  }
  self->library = NULL;
  tiny_fail (error, TINY_STATUS_DRIVER, "NVRTC does not say which architectures it knows");
  return tiny_hint (TINY_STATUS_DRIVER, error, "%s", missing);
}

static bool
knows (const NvidiaNvrtc *self, uint32_t sm)
{
  for (int i = 0; i < self->n_archs; i++)
    if (self->archs[i] == (int) sm)
      return true;
  return false;
}

static TinyStatus
fail_unfit (const NvidiaNvrtc *self, const NvidiaArch *arch, TinyPluginError *error)
{
  if (!knows (self, arch->sm)) {
    tiny_fail (error, TINY_STATUS_DRIVER,
               "NVRTC %d.%d knows no %s: it compiles for sm_%d to sm_%d", self->major,
               self->minor, arch->head, self->archs[0], self->archs[self->n_archs - 1]);
    return tiny_hint (TINY_STATUS_DRIVER, error,
                      "install a version that knows it, or name its file in %s", variable);
  }
  tiny_fail (error, TINY_STATUS_DRIVER, "NVRTC %d.%d is newer than the driver's CUDA %llu",
             self->major, self->minor, (unsigned long long) arch->cuda);
  return tiny_hint (TINY_STATUS_DRIVER, error,
                    "install a newer driver, or NVRTC of version %llu or older",
                    (unsigned long long) arch->cuda);
}

static bool
fits (const NvidiaNvrtc *self, const NvidiaArch *arch)
{
  const uint64_t version = nvidia_nvrtc_version (self);
  return knows (self, arch->sm) && (arch->cuda == 0 || (uint64_t) self->major <= arch->cuda)
         && (arch->nvrtc == 0 || version == arch->nvrtc);
}

/* With the lock held. */
static TinyStatus
find (const NvidiaArch *arch, const NvidiaNvrtc **out, TinyPluginError *error)
{
  const NvidiaNvrtc *unfit = NULL;
  const size_t n = tiny_getenv (variable) != NULL ? 1 : TINY_KIT_N (names) - 1;
  for (size_t i = 0; i < n; i++) {
    NvidiaNvrtc *self = &libraries.found[i];
    const char *const one[] = { names[i], NULL };
    if (!libraries.was_tried[i])
      open_library (one, self, NULL);
    libraries.was_tried[i] = true;
    *out = self;
    if (self->library != NULL && fits (self, arch))
      return TINY_STATUS_OK;
    unfit = self->library != NULL && unfit == NULL ? self : unfit;
  }
  NvidiaNvrtc none = { 0 };
  if (unfit == NULL)
    return open_library (names, &none, error); /* to say why */
  if (arch->nvrtc == 0 || !knows (unfit, arch->sm))
    return fail_unfit (unfit, arch, error);
  return tiny_fail (
      error, TINY_STATUS_DRIVER,
      "the architecture names NVRTC %llu, and there is %u: major times 100 and minor",
      (unsigned long long) arch->nvrtc, nvidia_nvrtc_version (unfit));
}

TinyStatus
nvidia_find_nvrtc (const NvidiaArch *arch, const NvidiaNvrtc **out, TinyPluginError *error)
{
  pthread_mutex_lock (&libraries.lock);
  TinyStatus status = find (arch, out, error);
  pthread_mutex_unlock (&libraries.lock);
  return status;
}

uint32_t
nvidia_nvrtc_version (const NvidiaNvrtc *self)
{
  return (uint32_t) (self->major * 100 + self->minor);
}

/* ---- compiling ---- */
typedef struct {
  const NvidiaNvrtc *nvrtc;
  const TinyCompileArgs *args;
  char arch[48], items[48];
} Compilation;

static TinyStatus
fail_with_log (const Compilation *self, NvrtcProgram *program, int code, TinyPluginError *error)
{
  size_t size = 0;
  char *log = NULL;
  if (self->nvrtc->GetProgramLogSize (program, &size) == 0 && size > 1)
    log = calloc (1, size + 1);
  if (log == NULL || self->nvrtc->GetProgramLog (program, log) != 0)
    tiny_fail (error, TINY_STATUS_COMPILE, "%s: NVRTC answers %d", self->args->name, code);
  else
    tiny_fail (error, TINY_STATUS_COMPILE, "%s: %s", self->args->name, log);
  free (log);
  if (error != NULL && error->struct_size >= TINY_SIZE_0_PLUGIN_ERROR)
    error->vendor_code = code;
  return TINY_STATUS_COMPILE;
}

/* Makes and compiles the program, with the options beside which others are possible only in newer versions. */
static int
build (const Compilation *self, bool newest, NvrtcProgram **out)
{
  const char *const options[] = { self->arch, self->items, "--fmad=false", "-default-device",
                                  "-w",       "--minimal", "--no-cache" };
  const int n = (int) TINY_KIT_N (options) - (newest ? 0 : 2);
  int code
      = self->nvrtc->CreateProgram (out, self->args->source, self->args->name, 0, NULL, NULL);
  return code != 0 ? code : self->nvrtc->CompileProgram (*out, n, options);
}

static TinyStatus
take_cubin (const Compilation *self,
            const TinyHost *host,
            NvrtcProgram *program,
            void **out,
            uint64_t *out_size,
            TinyPluginError *error)
{
  size_t size = 0;
  int code = self->nvrtc->GetCUBINSize (program, &size);
  char *data = code == 0 && size > 0 ? host->alloc (size) : NULL;
  if (code == 0 && size > 0 && data == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory for its code",
                      self->args->name);
  if (data != NULL)
    code = self->nvrtc->GetCUBIN (program, data);
  if (code != 0 || data == NULL) {
    host->free (data);
    return fail_with_log (self, program, code, error);
  }
  *out = data;
  *out_size = size;
  return TINY_STATUS_OK;
}

static TinyStatus
check_arguments (const TinyCompileArgs *args, TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  if (args->linear == NULL || args->source == NULL)
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "no operation is claimed here");
  TINY_TRY (TINY_CHECK_IN (args->linear, 0, error));
  const uint64_t n = (uint64_t) args->linear->n_params + args->linear->n_variables;
  return n <= NVIDIA_ARGUMENT_BYTES / 8
             ? TINY_STATUS_OK
             : tiny_fail (error, TINY_STATUS_UNSUPPORTED,
                          "%s: its %llu arguments are more than the %d that a launch takes",
                          args->name, (unsigned long long) n, NVIDIA_ARGUMENT_BYTES / 8);
}

TinyStatus
nvidia_compile (const TinyHost *host,
                const TinyCompileArgs *args,
                void **out,
                uint64_t *out_size,
                TinyPluginError *error)
{
  NvidiaArch arch = { 0 };
  NvrtcProgram *program = NULL;
  TINY_TRY (check_arguments (args, error));
  TINY_TRY (nvidia_arch_parse (args->arch, &arch, error));
  Compilation self = { .args = args };
  TINY_TRY (nvidia_find_nvrtc (&arch, &self.nvrtc, error));
  const uint32_t *group = args->linear->group;
  snprintf (self.arch, sizeof self.arch, "--gpu-architecture=%s", arch.head);
  snprintf (self.items, sizeof self.items, "-DTINY_ITEMS=%u", group[0] * group[1] * group[2]);
  int code = build (&self, true, &program);
  if (code == NVRTC_INVALID_OPTION && program != NULL) {
    self.nvrtc->DestroyProgram (&program);
    code = build (&self, false, &program);
  }
  TinyStatus status = code == 0 ? take_cubin (&self, host, program, out, out_size, error)
                                : fail_with_log (&self, program, code, error);
  if (program != NULL)
    self.nvrtc->DestroyProgram (&program);
  return status;
}
