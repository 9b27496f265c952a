/* SPDX-License-Identifier: MIT
 *
 * cpu-clang.c: the CLANG renderer's compiler: C source to object file by the clang command.
 *
 * The source goes to clang's standard input, its messages come back through a pipe, the object through
 * a memory file. No shell is involved, and nothing is written to disk but by a clang that needs temporary files: their
 * folder is its own, so that one that is stopped leaves none. The target's features
 * are given one by one, so that the code never needs more than its architecture string says. */
#include "cpu-lapack.h"
#include "tiny-plugin-host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { TIMEOUT_MS = 60000, MAX_ARGUMENTS = 96 };

/* A running clang: what it still has to read, and what it has said. */
typedef struct {
  pid_t pid;
  int in, log, object;               /* our ends; -1: closed */
  char temporary[TINY_FOLDER_BYTES]; /* clang's TMPDIR */
  const char *source;
  uint64_t n_source, n_written;
  char text[900];
  size_t n_text;
} Run;

static void
close_fd (int *fd)
{
  if (*fd >= 0)
    close (*fd);
  *fd = -1;
}

/* ---- arguments ---- */

typedef struct {
  const char *words[MAX_ARGUMENTS + 1];
  unsigned n;
  char text[2048]; /* of the words made here */
  size_t used;
} Arguments;

static void
add_word (Arguments *a, const char *word)
{
  if (a->n < MAX_ARGUMENTS)
    a->words[a->n++] = word;
}

static void
add_joined (Arguments *a, const char *before, const char *word)
{
  int n = snprintf (a->text + a->used, sizeof a->text - a->used, "%s%s", before, word);
  if (n < 0 || (size_t) n >= sizeof a->text - a->used)
    return;
  add_word (a, a->text + a->used);
  a->used += (size_t) n + 1;
}

static void
fill_arguments (Arguments *a, const char *command, const CpuArch *arch)
{
  static const char *const fixed[] = { "-c",
                                       "-x",
                                       "c",
                                       "-std=gnu11",
                                       "-O2",
                                       "-w",
                                       "-ffreestanding",
                                       "-fno-math-errno",
                                       "-fno-trapping-math",
                                       "-ffp-contract=off",
                                       "-fwrapv",
                                       "-fno-strict-aliasing",
                                       "-fPIC",
                                       "-fno-stack-protector",
                                       "-fno-asynchronous-unwind-tables",
                                       "-fcf-protection=none",
                                       "-fno-strict-float-cast-overflow",
                                       "-fno-ident" };
  bool is_arm = arch->kind == CPU_ARCH_AARCH64;
  add_word (a, command);
  for (unsigned i = 0; i < CPU_ARRAY_SIZE (fixed); i++)
    if (!is_arm || strncmp (fixed[i], "-fcf-", 5) != 0)
      add_word (a, fixed[i]);
  add_word (a, is_arm ? "--target=aarch64-unknown-linux-gnu"
                      : "--target=x86_64-unknown-linux-gnu");
  char march[256] = "-march=armv8-a";
  for (unsigned i = 0; i < CPU_N_FEATURES; i++) {
    const char *feature = cpu_arch_clang_feature (arch, i);
    if (feature != NULL && is_arm)
      snprintf (march + strlen (march), sizeof march - strlen (march), "+%s", feature);
    else if (feature != NULL)
      add_joined (a, "-m", feature);
  }
  add_joined (a, is_arm ? march : "-march=x86-64", "");
  add_joined (a, "-mtune=", cpu_arch_tune (arch));
  if (cpu_arch_vector_bits (arch) == 512)
    add_word (a, "-mprefer-vector-width=512");
  add_word (a, "-o");
  add_word (a, "/dev/fd/3");
  add_word (a, "-");
  a->words[a->n] = NULL;
}

/* ---- the process ---- */

/* Moves a descriptor above those that the child gives a meaning. */
static void
raise_fd (int *fd)
{
  int raised = *fd >= 0 ? fcntl (*fd, F_DUPFD_CLOEXEC, 10) : -1;
  close_fd (fd);
  *fd = raised;
}

static bool
open_pipe (int ends[2])
{
  if (pipe2 (ends, O_CLOEXEC) != 0)
    return false;
  raise_fd (&ends[0]);
  raise_fd (&ends[1]);
  return ends[0] >= 0 && ends[1] >= 0;
}

/* Ours, with TMPDIR @temporary if that is one, put into @variable; NULL where there is no memory. */
static char **
make_environment (const char *temporary, char variable[TINY_FOLDER_BYTES + 8])
{
  size_t n = 0, kept = 0;
  while (environ[n] != NULL)
    n++;
  char **out = malloc ((n + 2) * sizeof *out);
  snprintf (variable, TINY_FOLDER_BYTES + 8, "TMPDIR=%s", temporary);
  for (size_t i = 0; i < n && out != NULL; i++)
    if (temporary[0] == '\0' || strncmp (environ[i], "TMPDIR=", 7) != 0)
      out[kept++] = environ[i];
  if (out != NULL && temporary[0] != '\0')
    out[kept++] = variable;
  if (out != NULL)
    out[kept] = NULL;
  return out;
}

/* 0, or the reason why the command did not start. */
static int
spawn (const char *command, const CpuArch *arch, Run *run)
{
  Arguments arguments = { .n = 0 };
  fill_arguments (&arguments, command, arch);
  int in[2] = { -1, -1 }, log[2] = { -1, -1 };
  if (!open_pipe (in) || !open_pipe (log)) {
    int reason = errno;
    for (int i = 0; i < 2; i++) {
      close_fd (&in[i]);
      close_fd (&log[i]);
    }
    return reason;
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, defaults;
  sigemptyset (&none);
  sigemptyset (&defaults);
  sigaddset (&defaults, SIGPIPE);
  posix_spawnattr_init (&attributes);
  posix_spawnattr_setsigmask (&attributes, &none);
  posix_spawnattr_setsigdefault (&attributes, &defaults);
  posix_spawnattr_setflags (&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_init (&actions);
  posix_spawn_file_actions_adddup2 (&actions, run->object, 3);
  posix_spawn_file_actions_adddup2 (&actions, in[0], 0);
  posix_spawn_file_actions_adddup2 (&actions, log[1], 1);
  posix_spawn_file_actions_adddup2 (&actions, log[1], 2);
  char usual[64]; /* PATH is not a privileged program's own */
  snprintf (usual, sizeof usual, "/usr/bin/%s", command);
  char variable[TINY_FOLDER_BYTES + 8];
  char **environment = make_environment (run->temporary, variable);
  int reason
      = environment == NULL
            ? ENOMEM
            : posix_spawnp (&run->pid, getauxval (AT_SECURE) != 0 ? usual : command, &actions,
                            &attributes, (char *const *) arguments.words, environment);
  free (environment);
  posix_spawn_file_actions_destroy (&actions);
  posix_spawnattr_destroy (&attributes);
  close_fd (&in[0]);
  close_fd (&log[1]);
  run->in = in[1];
  run->log = log[0];
  if (reason != 0) {
    close_fd (&run->in);
    close_fd (&run->log);
  }
  return reason;
}

/* TINY_CLANG, or the first clang there is. */
static int
spawn_any (const CpuArch *arch, Run *run)
{
  static const char *const commands[]
      = { "clang",    "clang-19", "clang-22", "clang-21", "clang-20",
          "clang-18", "clang-17", "clang-16", "clang-15", "clang-14" };
  const char *wanted = tiny_getenv ("TINY_CLANG");
  if (wanted != NULL)
    return spawn (wanted, arch, run);
  int reason = ENOENT;
  for (unsigned i = 0; i < CPU_ARRAY_SIZE (commands) && reason == ENOENT; i++)
    reason = spawn (commands[i], arch, run);
  return reason;
}

/* A write to a pipe whose reader is gone must not raise SIGPIPE in the program's thread. */
static ssize_t
write_quietly (int fd, const char *data, size_t n)
{
  sigset_t pipe_set, before, pending;
  sigemptyset (&pipe_set);
  sigaddset (&pipe_set, SIGPIPE);
  pthread_sigmask (SIG_BLOCK, &pipe_set, &before);
  ssize_t written = write (fd, data, n);
  int reason = errno;
  if (written < 0 && reason == EPIPE && sigpending (&pending) == 0
      && sigismember (&pending, SIGPIPE) == 1) {
    const struct timespec now = { 0, 0 };
    sigtimedwait (&pipe_set, NULL, &now);
  }
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  errno = reason;
  return written;
}

/* Feeds and listens until clang closes its output; false when the time is over. */
static bool
converse (Run *run)
{
  uint64_t deadline = tiny_now_ns () + (uint64_t) TIMEOUT_MS * 1000000;
  fcntl (run->in, F_SETFL, O_NONBLOCK);
  while (run->log >= 0) {
    uint64_t now = tiny_now_ns ();
    if (now >= deadline)
      return false;
    struct pollfd fds[2] = { { run->log, POLLIN, 0 }, { run->in, POLLOUT, 0 } };
    int n = poll (fds, 2, (int) ((deadline - now) / 1000000) + 1);
    if (n < 0 && errno != EINTR)
      return false;
    if (n <= 0)
      continue;
    if (fds[1].revents != 0) {
      ssize_t written = write_quietly (run->in, run->source + run->n_written,
                                       run->n_source - run->n_written);
      if (written > 0)
        run->n_written += (uint64_t) written;
      if (run->n_written == run->n_source || (written < 0 && errno != EAGAIN && errno != EINTR))
        close_fd (&run->in);
    }
    if (fds[0].revents != 0) {
      char rest[512];
      size_t room = sizeof run->text - 1 - run->n_text;
      ssize_t got = read (run->log, room > 0 ? run->text + run->n_text : rest,
                          room > 0 ? room : sizeof rest);
      if (got > 0 && room > 0)
        run->n_text += (size_t) got;
      if (got == 0 || (got < 0 && errno != EINTR))
        close_fd (&run->log);
    }
  }
  return true;
}

static TinyStatus
read_object (Run *run, void **out_data, uint64_t *out_size, TinyPluginError *error)
{
  struct stat info;
  if (fstat (run->object, &info) != 0 || info.st_size <= 0)
    return tiny_fail (error, TINY_STATUS_COMPILE, "clang wrote no object");
  *out_size = (uint64_t) info.st_size;
  char *data = *out_data = cpu_host->alloc (*out_size);
  if (data == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for an object of %llu bytes",
                      (unsigned long long) *out_size);
  uint64_t done = 0;
  while (done < *out_size) {
    ssize_t n = pread (run->object, data + done, *out_size - done, (off_t) done);
    if (n <= 0)
      break;
    done += (uint64_t) n;
  }
  if (done == *out_size)
    return TINY_STATUS_OK;
  cpu_host->free (data);
  *out_data = NULL;
  return tiny_fail (error, TINY_STATUS_INTERNAL, "clang's object cannot be read back");
}

static TinyStatus
run_clang (Run *run, const CpuArch *arch, const char *name, TinyPluginError *error)
{
  int reason = spawn_any (arch, run);
  if (reason == ENOMEM || reason == EAGAIN) /* it may be there another time */
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: clang does not start: %s", name,
                      strerror (reason));
  if (reason != 0) {
    const char *wanted = tiny_getenv ("TINY_CLANG");
    tiny_fail (error, TINY_STATUS_DRIVER, "%s%.200s: no clang command: %s",
               wanted != NULL ? "TINY_CLANG=" : "", wanted != NULL ? wanted : "clang",
               strerror (reason));
    return tiny_hint (TINY_STATUS_DRIVER, error,
                      "install the package clang, or name the command in TINY_CLANG");
  }
  bool in_time = converse (run);
  close_fd (&run->in);
  close_fd (&run->log);
  if (!in_time)
    kill (run->pid, SIGKILL);
  int exit_status = -1;
  while (waitpid (run->pid, &exit_status, 0) < 0 && errno == EINTR)
    ;
  run->text[run->n_text] = '\0';
  if (!in_time)
    return tiny_fail (error, TINY_STATUS_TIMEOUT, "%s: clang took over %d s", name,
                      TIMEOUT_MS / 1000);
  if (WIFSIGNALED (exit_status))
    return tiny_fail (error, TINY_STATUS_COMPILE, "%s: clang was ended by signal %d%s%s", name,
                      WTERMSIG (exit_status), run->n_text > 0 ? ": " : "", run->text);
  if (WEXITSTATUS (exit_status) == 0)
    return TINY_STATUS_OK;
  if (run->n_text == 0)
    return tiny_fail (error, TINY_STATUS_COMPILE,
                      "%s: clang ended with status %d and no message", name,
                      WEXITSTATUS (exit_status));
  return tiny_fail (error, TINY_STATUS_COMPILE, "%s: clang: %s", name, run->text);
}

TinyStatus
cpu_clang_compile (const TinyCompileArgs *args,
                   void **out_data,
                   uint64_t *out_size,
                   TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  if (args->operation != NULL)
    return cpu_lapack_compile (args, out_data, out_size, error);
  if (args->linear != NULL)
    TINY_TRY (TINY_CHECK_IN (args->linear, 0, error));
  if (args->source == NULL || args->name == NULL)
    return tiny_fail (error, TINY_STATUS_INVALID, "compile: no source");
  CpuArch arch;
  TinyStatus status = cpu_arch_parse (args->arch, &arch, error);
  if (status != TINY_STATUS_OK)
    return status;
  Run run = { .in = -1, .log = -1, .source = args->source, .n_source = args->source_size };
  run.object = memfd_create ("tiny-cpu-object", MFD_CLOEXEC);
  raise_fd (&run.object);
  if (run.object < 0)
    return tiny_fail (error, TINY_STATUS_INTERNAL, "no memory file: %s", strerror (errno));
  TinyPluginError ignored = { .struct_size = sizeof ignored };
  tiny_make_folder (run.temporary, &ignored); /* most of the time clang needs none */
  status = run_clang (&run, &arch, args->name, error);
  tiny_remove_folder (run.temporary);
  if (status == TINY_STATUS_OK)
    status = read_object (&run, out_data, out_size, error);
  close_fd (&run.object);
  return status;
}
