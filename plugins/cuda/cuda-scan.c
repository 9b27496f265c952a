/* SPDX-License-Identifier: MIT
 *
 * cuda-scan.c: GPUs of NVIDIA's, by the files of the PCI bus and of the kernel's driver.
 *
 * The driver's library is not asked: its first call takes some hundred milliseconds and opens devices. */
#include <dirent.h>
#include <fcntl.h>

#include "cuda.h"

/* Reads the start of a file as text without the line's end; false where there is none. */
static bool
read_file (const char *root, const char *folder, const char *name, char *out, size_t room)
{
  char path[512];
  snprintf (path, sizeof path, "%s%s/%s", root, folder, name);
  FILE *file = fopen (path, "re");
  out[0] = '\0';
  if (file == NULL)
    return false;
  const size_t n = fread (out, 1, room - 1, file);
  fclose (file);
  out[n] = '\0';
  return true;
}

/* Copies what stands in @text behind @key, up to the line's end. */
static void
copy_value (const char *text, const char *key, char *out, size_t room)
{
  const char *at = strstr (text, key);
  if (at == NULL)
    return;
  at += strlen (key);
  at += strspn (at, " \t");
  snprintf (out, room, "%.*s", (int) strcspn (at, "\n"), at);
}

/* True if the function at @address is a display or 3D controller of NVIDIA's. */
static bool
is_gpu (const char *root, const char *address)
{
  char folder[320], vendor[32], class[32];
  snprintf (folder, sizeof folder, "/sys/bus/pci/devices/%s", address);
  return read_file (root, folder, "vendor", vendor, sizeof vendor)
         && read_file (root, folder, "class", class, sizeof class)
         && strtoul (vendor, NULL, 16) == 0x10de
         && (strtoul (class, NULL, 16) >> 8 == 0x0300
             || strtoul (class, NULL, 16) >> 8 == 0x0302);
}

static void
fill_candidate (const char *root, const char *address, TinyCandidate *out)
{
  char folder[320], text[1024];
  *out = (TinyCandidate){ .struct_size = sizeof *out, .device_class = TINY_CLASS_GPU };
  snprintf (out->id, sizeof out->id, "pci-%.58s", address);
  snprintf (out->name, sizeof out->name, "NVIDIA GPU");
  snprintf (folder, sizeof folder, "/proc/driver/nvidia/gpus/%s", address);
  if (read_file (root, folder, "information", text, sizeof text))
    copy_value (text, "Model:", out->name, sizeof out->name);
  if (read_file (root, "/sys/module/nvidia", "version", text, sizeof text)) {
    char version[48] = "";
    copy_value (text, "", version, sizeof version);
    snprintf (out->driver, sizeof out->driver, "nvidia %s", version);
  }
}

static int
compare_ids (const void *a, const void *b)
{
  return strcmp (((const TinyCandidate *) a)->id, ((const TinyCandidate *) b)->id);
}

/* Says why GPUs that are there cannot be used, as far as files tell it. */
static TinyStatus
check_driver (const char *root, CudaError *error)
{
  char path[512];
  snprintf (path, sizeof path, "%s/proc/driver/nvidia", root);
  if (access (path, F_OK) != 0) {
    tiny_fail (error, TINY_STATUS_DRIVER,
               "there is an NVIDIA GPU, and the kernel's module nvidia is not loaded");
    return tiny_hint (TINY_STATUS_DRIVER, error,
                      "install NVIDIA's driver, package nvidia-driver, and start again");
  }
  snprintf (path, sizeof path, "%s/dev/nvidiactl", root);
  if (access (path, F_OK) == 0 && faccessat (AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0) {
    tiny_fail (error, TINY_STATUS_PERMISSION, "/dev/nvidiactl may not be read and written");
    return tiny_hint (TINY_STATUS_PERMISSION, error,
                      "join the group that owns it, video on most systems");
  }
  return TINY_STATUS_OK;
}

TinyStatus
cuda_scan_files (const char *root,
                 TinyCandidate out[CUDA_MAX_DEVICES],
                 uint32_t *n,
                 CudaError *error)
{
  char path[512];
  snprintf (path, sizeof path, "%s/sys/bus/pci/devices", root);
  DIR *folder = opendir (path);
  *n = 0;
  for (struct dirent *i;
       folder != NULL && *n < CUDA_MAX_DEVICES && (i = readdir (folder)) != NULL;)
    if (i->d_name[0] != '.' && is_gpu (root, i->d_name))
      fill_candidate (root, i->d_name, &out[(*n)++]);
  if (folder != NULL)
    closedir (folder);
  if (*n == 0) {
    tiny_fail (error, TINY_STATUS_NO_DEVICE, "no NVIDIA GPU is on the PCI bus");
    return tiny_hint (TINY_STATUS_NO_DEVICE, error,
                      "it wants one, and NVIDIA's driver with package libcuda1");
  }
  qsort (out, *n, sizeof out[0], compare_ids);
  return check_driver (root, error);
}
