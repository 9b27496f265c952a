/* SPDX-License-Identifier: MIT
 *
 * probe.c: what a backend does, written down: two transcripts that differ show that a fault is one.
 *
 *   broken-probe --list        every fault, as lines of JSON
 *   broken-probe FILE.so [all|device|ops]
 *                              the transcript of a plugin: module, process, and what the device does, what its
 *                              programs compute */
#include "probe.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static FILE *transcript;

void
say (const char *where, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  fprintf (transcript, "%s: ", where);
  vfprintf (transcript, format, arguments);
  fputc ('\n', transcript);
  va_end (arguments);
}

void
say_status (Probe *self, const char *where, TinyStatus status)
{
  const char *end = memchr (self->error.text, 0, sizeof self->error.text);
  if (status == TINY_STATUS_OK)
    say (where, "OK");
  else
    say (where, "%d, %s, %s", status,
         end == NULL              ? "no end"
         : end > self->error.text ? "a text"
                                  : "no text",
         (unsigned char) self->error.text[0] >= 0x80 ? "strange" : "clear");
  memset (self->error.text, 0, sizeof self->error.text);
}

/* ---- the process ---- */
static unsigned
count_entries (const char *path)
{
  unsigned n = 0;
  DIR *dir = opendir (path);
  while (dir != NULL && readdir (dir) != NULL)
    n++;
  if (dir != NULL)
    closedir (dir);
  return n;
}

static uint32_t
hash_signals (void)
{
  uint32_t hash = 0;
  for (int i = 1; i < NSIG; i++) {
    struct sigaction action = { 0 };
    if (sigaction (i, NULL, &action) == 0)
      hash = tiny_hash (
          hash, (const char[]){ action.sa_handler == SIG_DFL, action.sa_handler == SIG_IGN },
          2);
    sigset_t mask;
    pthread_sigmask (SIG_SETMASK, NULL, &mask);
    hash = tiny_hash (hash, (const char[]){ (char) sigismember (&mask, i) }, 1);
  }
  return hash;
}

static void
say_process (const char *when)
{
  struct rlimit limit = { 0 };
  struct itimerval timer = { 0 };
  cpu_set_t set;
  char folder[4096] = "";
  uint32_t hash = 0;
  volatile double tiny = 0x1p-1022;
  for (char **variable = environ; *variable != NULL; variable++)
    if (strncmp (*variable, "TINY_", 5) != 0) /* which tell what is wrong */
      hash = tiny_hash (hash, *variable, strlen (*variable));
  const mode_t mask = umask (0);
  umask (mask);
  getrlimit (RLIMIT_NOFILE, &limit);
  getitimer (ITIMER_REAL, &timer);
  sched_getaffinity (0, sizeof set, &set);
  say (when, "locale %s, rounding %d, traps %d, subnormals %d", setlocale (LC_ALL, NULL),
       fegetround (), fegetexcept (), tiny / 2 != 0);
  say (when, "signals %08x, folder %d, umask %o, environment %08x", hash_signals (),
       getcwd (folder, sizeof folder) != NULL && strcmp (folder, "/") != 0, (unsigned) mask,
       hash);
  say (when, "limit %llu, timer %d, processors %d, priority %d",
       (unsigned long long) limit.rlim_cur, timer.it_value.tv_sec != 0, CPU_COUNT (&set),
       getpriority (PRIO_PROCESS, 0));
  say (when, "standard input %d, random %d", fcntl (STDIN_FILENO, F_GETFD) >= 0, rand ());
}

static void
say_resources (const char *when)
{
  say (when, "%u files, %u threads, children %d", count_entries ("/proc/self/fd"),
       count_entries ("/proc/self/task"), waitpid (-1, NULL, WNOHANG) == 0);
}

/* ---- the host ---- */
static void *
host_alloc (uint64_t n_bytes)
{
  return malloc ((size_t) n_bytes);
}

static void
host_log (int32_t level, const char *domain, const char *text)
{
  if (level == TINY_LOG_ERROR)
    say ("log", "%s", text);
}

static const TinyHost the_host = { .struct_size = sizeof (TinyHost),
                                   .abi_major = 1,
                                   .alloc = host_alloc,
                                   .free = free,
                                   .log = host_log };

/* The host with nothing behind it: to read there ends the process. */
static const TinyHost *
guarded_host (void)
{
  const long page = sysconf (_SC_PAGESIZE);
  char *pages = mmap (NULL, 2 * (size_t) page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || mprotect (pages + page, (size_t) page, PROT_NONE) != 0)
    abort ();
  TinyHost *host = (TinyHost *) (void *) (pages + page) - 1;
  *host = the_host;
  return host;
}

/* ---- the module ---- */
static void
say_candidates (Probe *self)
{
  TinyCandidate found[4] = { 0 };
  uint32_t n = 0;
  memset (found, 0x33, sizeof found);
  say_status (self, "scan for none", self->module->scan (found, &n, &self->error));
  say ("scan for none", "%u, written %d", n, found[0].flags != 0x33333333);
  for (int time = 0; time < 2; time++) {
    n = 1;
    memset (found, 0x33, sizeof found);
    const uint64_t start = tiny_now_ns ();
    say_status (self, "scan", self->module->scan (found, &n, &self->error));
    say ("scan", "%u, slow %d, beyond %d", n, tiny_now_ns () - start > 500000000,
         found[1].flags != 0x33333333);
    say ("scan", "%.64s, %.128s, class %u, size %u, reserved %d", found[0].id, found[0].name,
         found[0].device_class, found[0].struct_size, found[0].reserved[0] != 0);
  }
}

static int
open_device (Probe *self, const char *id)
{
  const TinyStatus status = self->module->open (id, &self->device, &self->table, &self->error);
  if (status != TINY_STATUS_OK)
    say_status (self, "open", status);
  return status == TINY_STATUS_OK;
}

static void
say_open (Probe *self, char id[64])
{
  TinyCandidate found = { .struct_size = sizeof found };
  uint32_t n = 1;
  self->module->scan (&found, &n, &self->error);
  memcpy (id, found.id, 64);
  id[63] = '\0';
  open_device (self, "no such device");
  TinyPluginError shorter = { .struct_size = offsetof (TinyPluginError, text) };
  const TinyStatus status
      = self->module->open ("no such device", &self->device, &self->table, &shorter);
  say ("short error", "%d, beyond %d", status, shorter.text[0] != 0 || shorter.hint[0] != 0);
  if (!open_device (self, id))
    return;
  say ("table", "%d", self->table != NULL);
  say ("table", "%u, free %d, destroy %d, map %d, reserved %d", self->table->struct_size,
       self->table->free != NULL, self->table->queue_destroy != NULL, self->table->map != NULL,
       self->table->reserved[0] != 0);
}

/* Two handles, one closed; then again. */
static void
say_handles (Probe *self, const char *id)
{
  Probe other = *self;
  if (!open_device (&other, id))
    return;
  TinyPluginBuffer *buffer = probe_alloc (self, 64);
  other.table->close (other.device);
  say_status (self, "after close", probe_upload (self, buffer, 0, "12345678", 8));
  self->table->free (self->device, buffer);
}

static void
say_info (Probe *self)
{
  struct {
    TinyDeviceInfo info;
    char behind[32];
  } room = { .info = { .struct_size = sizeof room.info } };
  TinyDeviceInfo *info = &room.info;
  for (int time = 0; time < 2; time++) {
    say_status (self, "info", self->table->info (self->device, info, &self->error));
    say ("info",
         "flags %x, %.128s, %.256s, buffers of %d, alignment %u, transfers %u, reserved %d, "
         "beyond %d",
         info->flags, info->name, info->arch,
         info->max_buffer_bytes > 4096 || info->max_buffer_bytes == 0, info->alignment,
         info->transfer_bytes, info->reserved[0] != 0, room.behind[0] != 0);
    say ("info", "memory %d", info->memory_bytes == 0 || info->memory_bytes > 1 << 24);
  }
  memset (&room, 0x44, sizeof room);
  info->struct_size = offsetof (TinyDeviceInfo, memory_bytes);
  const TinyStatus status = self->table->info (self->device, info, &self->error);
  say ("short info", "%d, beyond %d", status == TINY_STATUS_OK, info->alignment != 0x44444444);
}

static void
say_target (Probe *self)
{
  struct {
    TinyTarget target;
    char behind[32];
  } room;
  TinyTarget *target = &room.target;
  for (int time = 0; time < 3; time++) {
    memset (&room, 0, sizeof room);
    target->struct_size = sizeof *target;
    say_status (self, "target",
                self->renderer->target (time == 2 ? "nonsense" : "", target, &self->error));
    if (time < 2)
      say ("target", "%08x, reserved %d, beyond %d, %.40s",
           tiny_hash (0, target, sizeof *target), target->reserved[0] != 0, room.behind[0] != 0,
           target->arch);
    if (time == 1)
      self->target = *target;
  }
}

/* What a thousand rounds of the same lose. */
static void
say_losses (Probe *self, const char *id)
{
  Rewrite *k = kernel_simple (self, "loss", 4);
  const TinyLinear linear = kernel_linear (k);
  TinyPluginProgram *program = probe_load (self, &linear);
  if (program != NULL)
    self->table->program_unload (self->device, program);
  const size_t before = mallinfo2 ().uordblks + mallinfo2 ().hblkhd;
  for (int i = 0; i < 16; i++) {
    TinyPluginBuffer *buffer = probe_alloc (self, 1 << 17);
    probe_upload (self, buffer, 0, "12345678", 8);
    if (buffer != NULL)
      self->table->free (self->device, buffer);
    program = probe_load (self, &linear);
    if (program != NULL)
      self->table->program_unload (self->device, program);
  }
  for (int i = 0; i < 16; i++) {
    Probe other = *self;
    if (open_device (&other, id))
      other.table->close (other.device);
  }
  say ("losses", "%d", mallinfo2 ().uordblks + mallinfo2 ().hblkhd > before + (1 << 19));
  say_resources ("losses");
  kernel_free (k);
}

static int
say_loaded (Probe *self, const char *path)
{
  void *library = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    fprintf (stderr, "broken-probe: %s\n", dlerror ());
  const TinyPluginEntry entry
      = library != NULL ? (TinyPluginEntry) dlsym (library, TINY_PLUGIN_ENTRY_SYMBOL) : NULL;
  self->module = entry != NULL ? entry (0, &self->error) : NULL;
  if (self->module == NULL) {
    fprintf (stderr, "broken-probe: %s\n", self->error.text);
    return 0;
  }
  say ("module", "%s %s, flags %x, ABI %u.%u, %u renderers, licence %s, reserved %d",
       self->module->name, self->module->vendor, self->module->flags, self->module->abi_major,
       self->module->abi_minor, self->module->n_renderers, self->module->license,
       self->module->reserved[3] != 0);
  self->renderer = self->module->renderers;
  say ("renderer", "version %d, reserved %d", self->renderer->code_version != NULL,
       self->renderer->reserved[0] != 0);
  return 1;
}

static void
say_module (Probe *self)
{
  struct {
    TinyHost host;
    uint64_t more[4];
  } longer = { .host = the_host };
  const TinyHost *host = guarded_host ();
  longer.host.struct_size = sizeof longer;
  for (int time = 0; time < 2; time++) {
    const uint64_t start = tiny_now_ns ();
    say_status (self, "init", self->module->init (time ? &longer.host : host, &self->error));
    say ("init", "slow %d", tiny_now_ns () - start > 500000000);
    if (self->module->fini != NULL)
      self->module->fini ();
  }
  if (self->module->fini != NULL)
    self->module->fini ();
  say_status (self, "init", self->module->init (host, &self->error));
}

static void
print_string (const char *key, const char *text)
{
  printf (", \"%s\": \"", key);
  for (; text != NULL && *text != '\0'; text++)
    printf (*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
  putchar ('"');
}

static int
list (void)
{
  const Fault *fault;
  for (size_t i = 0; (fault = fault_at (i)) != NULL; i++) {
    const int rewrites = fault->rewrite != NULL || fault->source != NULL;
    printf ("{\"number\": %zu", i);
    print_string ("section", rewrites ? "ops"
                             : fault->renderer.compile != NULL && !fault->is_of_operations
                                 ? "all"
                                 : "device");
    print_string ("name", fault->name);
    print_string ("what", fault->what);
    print_string ("seen", fault->seen);
    print_string ("around", fault->around != NULL ? fault->around : "REF");
    print_string ("arch", fault->arch);
    print_string ("cases", fault->cases);
    puts ("}");
  }
  return 0;
}

int
main (int argc, char **argv)
{
  Probe self = { .error = { .struct_size = sizeof self.error } };
  char id[64];
  if (argc == 2 && strcmp (argv[1], "--list") == 0)
    return list ();
  /* What the plugin writes to the standard output goes among our lines. */
  transcript = fdopen (dup (STDOUT_FILENO), "w");
  const char *section = argc > 2 ? argv[2] : "all";
  if (argc < 2 || transcript == NULL)
    return 2;
  setvbuf (transcript, NULL, _IOLBF, 0);
  say_process ("start");
  if (!say_loaded (&self, argv[1]))
    return 1;
  say_module (&self);
  say_candidates (&self);
  say_open (&self, id);
  say_process ("opened");
  if (self.device == NULL)
    return 1;
  say_info (&self);
  if (self.renderer->target != NULL)
    say_target (&self);
  if (self.table->queue_create != NULL)
    say_status (&self, "queue",
                self.table->queue_create (self.device, &self.queue, &self.error));
  say_handles (&self, id);
  const int has_kernels = (self.renderer->flags & TINY_RENDERER_CLAIMS_ONLY) == 0;
  if (has_kernels) {
    say_losses (&self, id);
    say_process ("used");
    probe_structure (&self);
  }
  if (has_kernels && strcmp (section, "device") != 0) {
    probe_arithmetic (&self);
    probe_lanes (&self);
    probe_units (&self);
  }
  if (strcmp (section, "ops") != 0)
    probe_device (&self);
  probe_operations (&self);
  probe_vendor_tables (&self, id);
  say_process ("done");
  if (self.table->queue_destroy != NULL)
    self.table->queue_destroy (self.device, self.queue);
  self.table->close (self.device);
  if (self.module->fini != NULL)
    self.module->fini ();
  say_resources ("closed");
  return 0;
}
