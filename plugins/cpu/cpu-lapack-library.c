/* SPDX-License-Identifier: MIT
 *
 * cpu-lapack-library.c: finds a LAPACK with Fortran's names and integers of 32 bits.
 *
 * The table of names goes from the fastest to the one of unknown speed. A library that lacks a symbol is left; where
 * none is whole, nothing is claimed and kernels do the work. It stays open: it may have threads. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cpu-lapack.h"

static CpuLapack found;
static bool is_found;

static bool
take_functions (void *handle, char letter, CpuLapackFunctions *out)
{
  static const struct {
    const char *name;
    size_t offset;
  } symbols[] = {
#define LAPACK_SYMBOL(name, params) { #name, offsetof (CpuLapackFunctions, name) },
#include "cpu-lapack.def"
#undef LAPACK_SYMBOL
  };
  for (unsigned i = 0; i < CPU_ARRAY_SIZE (symbols); i++) {
    char name[16] = { letter };
    strcat (strcat (name, symbols[i].name), "_");
    void *address = dlsym (handle, name);
    if (address == NULL)
      return false;
    memcpy ((char *) out + symbols[i].offset, &address, sizeof address);
  }
  return true;
}

/* Some with integers of 64 bits have the same names: their version then fills both halves of a word. */
static bool
has_words_of_32_bits (void *handle)
{
  _Alignas(int64_t) int32_t version[3][2] = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
  void (*get_version) (int32_t * major, int32_t * minor, int32_t * patch);
  void *address = dlsym (handle, "ilaver_");
  if (address == NULL)
    return false;
  memcpy (&get_version, &address, sizeof address);
  get_version (version[0], version[1], version[2]);
  return version[0][0] >= 0 && version[0][1] == -1;
}

/* Two functions or none. */
static bool
take_threads (void *handle,
              const char *const names[2],
              void (**out_set) (int n),
              int (**out_get) (void))
{
  void *set = dlsym (handle, names[0]), *get = dlsym (handle, names[1]);
  if (set == NULL || get == NULL)
    return false;
  memcpy (out_set, &set, sizeof set);
  memcpy (out_get, &get, sizeof get);
  return true;
}

/* True where OpenBLAS computes as on a processor without AVX2, and there is AVX2: one that is newer than itself it takes
 * for one of the oldest, which costs half of the speed. */
static bool
mistakes_processor (void *handle)
{
  static const char *const older[]
      = { "Prescott", "Core2", "Nehalem", "Sandybridge", "Barcelona" };
  const uint64_t wanted = CPU_BIT (AVX2) | CPU_BIT (FMA);
  void *address = dlsym (handle, "openblas_get_corename");
  char *(*get_core) (void);
  CpuArch host;
  if (address == NULL || getenv ("OPENBLAS_CORETYPE") != NULL || !cpu_arch_host (&host)
      || host.kind != CPU_ARCH_X86_64 || (host.features & wanted) != wanted)
    return false;
  memcpy (&get_core, &address, sizeof address);
  const char *core = get_core ();
  for (unsigned i = 0; i < CPU_ARRAY_SIZE (older) && core != NULL; i++)
    if (strcmp (core, older[i]) == 0)
      return true;
  return false;
}

/* OpenBLAS reads from the environment alone, when it is opened, what it is to take a processor for. */
static void *
open_for_processor (const char *name)
{
  void *handle = dlopen (name, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL || !mistakes_processor (handle))
    return handle;
  dlclose (handle);
  setenv ("OPENBLAS_CORETYPE", "Haswell", 0);
  handle = dlopen (name, RTLD_NOW | RTLD_LOCAL);
  unsetenv ("OPENBLAS_CORETYPE");
  return handle;
}

static bool
open_library (const char *name)
{
  static const char *const threads[][2]
      = { { "openblas_set_num_threads", "openblas_get_num_threads" },
          { "MKL_Set_Num_Threads", "MKL_Get_Max_Threads" } };
  static const char *const own_threads[2] = { "omp_set_num_threads", "omp_get_max_threads" };
  void *handle = open_for_processor (name);
  if (handle == NULL)
    return false;
  if (!take_functions (handle, 's', &found.of_f32)
      || !take_functions (handle, 'd', &found.of_f64) || !has_words_of_32_bits (handle)) {
    dlclose (handle);
    return false;
  }
  for (unsigned i = 0; i < CPU_ARRAY_SIZE (threads) && found.set_threads == NULL; i++)
    take_threads (handle, threads[i], &found.set_threads, &found.get_threads);
  take_threads (handle, own_threads, &found.set_own_threads, &found.get_own_threads);
  return true;
}

static void
find_library (void)
{
  static const char *const names[] = {
#define LAPACK_LIBRARY(name) name,
#include "cpu-lapack-libraries.def"
#undef LAPACK_LIBRARY
  };
  const char *wanted = tiny_getenv ("TINY_LAPACK_LIBRARY");
  if (wanted != NULL)
    is_found = strcmp (wanted, "none") != 0 && open_library (wanted);
  for (unsigned i = 0; wanted == NULL && i < CPU_ARRAY_SIZE (names) && !is_found; i++)
    is_found = open_library (names[i]);
}

const CpuLapack *
cpu_lapack_get (void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once (&once, find_library);
  return is_found ? &found : NULL;
}

TinyStatus
cpu_lapack_check (TinyPluginError *error)
{
  const char *wanted = tiny_getenv ("TINY_LAPACK_LIBRARY");
  if (wanted == NULL || strcmp (wanted, "none") == 0 || cpu_lapack_get () != NULL)
    return TINY_STATUS_OK;
  return tiny_fail (
      error, TINY_STATUS_DRIVER,
      "TINY_LAPACK_LIBRARY=%.200s: it cannot be opened, or has no LAPACK with integers "
      "of 32 bits; name one such as libopenblas.so.0, or none",
      wanted);
}
