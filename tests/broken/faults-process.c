/* SPDX-License-Identifier: MIT
 *
 * faults-process.c: what a plugin leaves behind in the process: its state changed, memory, files and threads lost. */
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "broken.h"

/* ---- what is done ---- */
static void
ignore_signal (int number)
{
}

static void
set_locale (void)
{
  setlocale (LC_ALL, strcmp (setlocale (LC_ALL, NULL), "C") == 0 ? "C.UTF-8" : "C");
}

static void
round_up (void)
{
  fesetround (FE_UPWARD);
}

static void
flush_subnormals (void)
{
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr (__builtin_ia32_stmxcsr () | 0x8040);
#elif defined(__aarch64__)
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | UINT64_C (1) << 24));
#endif
}

static void
trap_floats (void)
{
  feenableexcept (FE_DIVBYZERO | FE_INVALID);
}

static void
handle_crashes (void)
{
  signal (SIGSEGV, ignore_signal);
}

static void
handle_interrupts (void)
{
  signal (SIGINT, ignore_signal);
}

static void
ignore_pipes (void)
{
  signal (SIGPIPE, SIG_IGN);
}

static void
block_signals (void)
{
  sigset_t set;
  sigemptyset (&set);
  sigaddset (&set, SIGUSR1);
  sigaddset (&set, SIGCHLD);
  pthread_sigmask (SIG_BLOCK, &set, NULL);
}

static void
change_folder (void)
{
  if (chdir ("/") != 0)
    abort ();
}

static void
change_umask (void)
{
  umask (0);
}

static void
change_environment (void)
{
  setenv ("CUDA_CACHE_DISABLE", "1", 1);
}

static void
write_out (void)
{
  if (write (STDOUT_FILENO, "broken: loaded\n", 15) != 15)
    abort ();
}

static void
write_err (void)
{
  if (write (STDERR_FILENO, "broken: loaded\n", 15) != 15)
    abort ();
}

static void
close_input (void)
{
  close (STDIN_FILENO);
}

static void
leak_file (void)
{
  if (open ("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
    abort ();
}

static void
leak_memory (void)
{
  enum { SIZE = 1 << 18 };
  char *volatile lost = malloc (SIZE);
  if (lost != NULL)
    memset (lost, 1, SIZE);
}

static void *
sleep_on (void *data)
{
  for (;;)
    pause ();
  return NULL;
}

static void
leak_thread (void)
{
  pthread_t thread;
  if (pthread_create (&thread, NULL, sleep_on, NULL) == 0)
    pthread_detach (thread);
}

static void
leak_child (void)
{
  if (fork () == 0) {
    sleep (30);
    _exit (0);
  }
}

static void
limit_files (void)
{
  struct rlimit limit;
  getrlimit (RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_cur > 200 ? limit.rlim_cur - 100 : limit.rlim_cur;
  setrlimit (RLIMIT_NOFILE, &limit);
}

static void
set_timer (void)
{
  const struct itimerval timer = { .it_value = { .tv_sec = 3600 } };
  setitimer (ITIMER_REAL, &timer, NULL);
}

static void
bind_thread (void)
{
  cpu_set_t set;
  CPU_ZERO (&set);
  CPU_SET (sched_getcpu (), &set);
  sched_setaffinity (0, sizeof set, &set);
}

static void
lower_priority (void)
{
  if (nice (1) == -1)
    abort ();
}

static void
crash_at_exit (void)
{
  abort ();
}

static void
register_exit (void)
{
  atexit (crash_at_exit);
}

/* ---- when ---- */
#define AT_OPEN(action)                                                                        \
  static TinyStatus action##_at_open (const char *id, TinyPluginDevice **out,                  \
                                      const TinyDeviceTable **out_table,                       \
                                      TinyPluginError *error)                                  \
  {                                                                                            \
    TINY_TRY (inside_open (id, out, out_table, error));                                        \
    broken_note ();                                                                            \
    action ();                                                                                 \
    return TINY_STATUS_OK;                                                                     \
  }
#define AT_SUBMIT(action)                                                                      \
  SUBMIT (action##_at_submit)                                                                  \
  {                                                                                            \
    TINY_TRY (inside.device->submit (device, queue, submit, error));                           \
    broken_note ();                                                                            \
    action ();                                                                                 \
    return TINY_STATUS_OK;                                                                     \
  }
#define AT_COMPILE(action)                                                                     \
  static TinyStatus action##_at_compile (const TinyCompileArgs *args, void **out_data,         \
                                         uint64_t *out_size, TinyPluginError *error)           \
  {                                                                                            \
    TINY_TRY (inside.renderer->compile (args, out_data, out_size, error));                     \
    broken_note ();                                                                            \
    action ();                                                                                 \
    return TINY_STATUS_OK;                                                                     \
  }
#define AT_LOAD(action)                                                                        \
  static TinyStatus action##_at_load (TinyPluginDevice *device, const TinyProgramArgs *args,   \
                                      TinyPluginProgram **out, TinyPluginError *error)         \
  {                                                                                            \
    TINY_TRY (inside.device->program_load (device, args, out, error));                         \
    broken_note ();                                                                            \
    action ();                                                                                 \
    return TINY_STATUS_OK;                                                                     \
  }
#define AT_ALLOC(action)                                                                       \
  static TinyStatus action##_at_alloc (TinyPluginDevice *device, uint64_t n_bytes,             \
                                       TinyPluginBuffer **out, TinyPluginError *error)         \
  {                                                                                            \
    TINY_TRY (inside.device->alloc (device, n_bytes, out, error));                             \
    broken_note ();                                                                            \
    action ();                                                                                 \
    return TINY_STATUS_OK;                                                                     \
  }
#define AT_SCAN(action)                                                                        \
  static TinyStatus action##_at_scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error) \
  {                                                                                            \
    TINY_TRY (inside.module->scan (out, n, error));                                            \
    broken_note ();                                                                            \
    action ();                                                                                 \
    return TINY_STATUS_OK;                                                                     \
  }
AT_OPEN (set_locale)
AT_SUBMIT (round_up)
AT_COMPILE (round_up)
AT_SUBMIT (flush_subnormals)
AT_OPEN (trap_floats)
AT_OPEN (handle_crashes)
AT_OPEN (handle_interrupts)
AT_OPEN (ignore_pipes)
AT_SUBMIT (block_signals)
AT_COMPILE (change_folder)
AT_OPEN (change_umask)
AT_SCAN (change_environment)
AT_OPEN (write_out)
AT_COMPILE (write_out)
AT_SUBMIT (write_err)
AT_OPEN (close_input)
AT_OPEN (leak_file)
AT_LOAD (leak_file)
AT_ALLOC (leak_file)
AT_SUBMIT (leak_memory)
AT_OPEN (leak_memory)
AT_LOAD (leak_memory)
AT_COMPILE (leak_memory)
AT_OPEN (leak_thread)
AT_OPEN (leak_child)
AT_OPEN (limit_files)
AT_OPEN (set_timer)
AT_OPEN (bind_thread)
AT_OPEN (lower_priority)
AT_OPEN (register_exit)

#define CASES            "hygiene/*|lifecycle/*"
#define OPENS(action)    .module = { .open = action##_at_open }, .cases = CASES
#define SCANS(action)    .module = { .scan = action##_at_scan }, .cases = CASES
#define SUBMITS(action)  .device = { .submit = action##_at_submit }, .cases = CASES
#define ALLOCS(action)   .device = { .alloc = action##_at_alloc }, .cases = CASES
#define LOADS(action)    .device = { .program_load = action##_at_load }, .cases = CASES
#define COMPILES(action) .renderer = { .compile = action##_at_compile }, .cases = CASES
static const Fault rows[] = {
  /* clang-format off */
  { "locale", "open() sets the locale", "setlocale in a library", OPENS (set_locale) },
  { "rounding-submit", "submit() leaves another rounding mode", "interval arithmetic, a forgotten fesetround", SUBMITS (round_up) },
  { "rounding-compile", "compile() leaves another rounding mode", "constant folding in a compiler", COMPILES (round_up) },
  { "ftz-left-on", "submit() leaves the flushing of subnormals on", "FTZ and DAZ set for speed", SUBMITS (flush_subnormals) },
  { "float-traps", "open() has floating-point exceptions trap", "debugging left in", OPENS (trap_floats) },
  { "signal-segv", "open() handles SIGSEGV", "crash reporters of drivers", OPENS (handle_crashes) },
  { "signal-int", "open() handles SIGINT", "runtimes that shut down on an interrupt", OPENS (handle_interrupts) },
  { "signal-pipe", "open() ignores SIGPIPE", "network layers", OPENS (ignore_pipes) },
  { "signal-mask", "submit() leaves signals blocked", "a mask that is not restored", SUBMITS (block_signals) },
  { "folder", "compile() leaves another current folder", "compilers that work in /tmp", COMPILES (change_folder) },
  { "umask", "open() sets the umask", "caches that others may write", OPENS (change_umask) },
  { "environment", "scan() sets an environment variable", "setenv as a way to talk to a driver", SCANS (change_environment) },
  { "stdout-open", "open() writes to the standard output", "banners", OPENS (write_out) },
  { "stdout-compile", "compile() writes to the standard output", "a compiler's messages", COMPILES (write_out) },
  { "stderr-submit", "submit() writes to the standard error", "traces left in", SUBMITS (write_err) },
  { "stdin-closed", "open() closes the standard input", "file descriptor 0 closed twice", OPENS (close_input) },
  { "leak-file-open", "each open() leaves a file open", "device nodes that are not closed", OPENS (leak_file) },
  { "leak-file-load", "each program_load() leaves a file open", "programs mapped from files", LOADS (leak_file) },
  { "leak-file-alloc", "each alloc() leaves a file open", "a dma-buf per buffer", ALLOCS (leak_file) },
  { "leak-submit", "each submit() loses memory", "events that are not released", SUBMITS (leak_memory) },
  { "leak-open", "each open() loses memory", "contexts that are not freed", OPENS (leak_memory) },
  { "leak-load", "each program_load() loses memory", "the binary's copy", LOADS (leak_memory) },
  { "leak-compile", "each compile() loses memory", "compiler contexts that are not freed", COMPILES (leak_memory) },
  { "leak-thread", "close() leaves a thread", "pools that are not joined", OPENS (leak_thread) },
  { "leak-child", "close() leaves a child process", "compile servers", OPENS (leak_child) },
  { "limits", "open() changes a limit of the process", "setrlimit in a library", OPENS (limit_files) },
  { "timer", "open() sets the process's timer", "profilers left in", OPENS (set_timer) },
  { "affinity", "open() binds the thread to one processor", "runtimes that pin their caller", OPENS (bind_thread) },
  { "priority", "open() lowers the priority", "runtimes that set their caller's priority", OPENS (lower_priority) },
  { "crash-at-exit", "the process crashes at exit", "handlers of a library that is torn down", OPENS (register_exit) },
  /* clang-format on */
};
FAULT_TABLE (faults_process);
