/* SPDX-License-Identifier: MIT
 *
 * group-faults.c: what cannot be done is refused: the right status, a text that says why, and the
 * device works afterwards as before. */
#include <string.h>

#include "device/device-private.h"
#include "device/tiny-table.h"
#include "faults.h"
#include "fresh.h"

static void
fresh_error (ConfRaw *raw)
{
  tiny_plugin_error_init (&raw->error);
}

/* ---- the device ---- */
/* A command behind it is not done either. */
static void
run_unknown_command (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { N_BYTES = 192, BEHIND = 128 };
  guint8 before[N_BYTES], data[N_BYTES];
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  TinyPluginBuffer *buffer = conf_raw_alloc (&raw, N_BYTES);
  conf_fill (before, N_BYTES, 1);
  conf_fill (data, N_BYTES, 2);
  TinyCommand commands[] = {
    { .struct_size = sizeof *commands, .type = (uint32_t) self->args[0], .grid = { 1, 1, 1 } },
    { .struct_size = sizeof *commands,
      .type = TINY_COMMAND_UPLOAD,
      .dst = { buffer, BEHIND, N_BYTES - BEHIND },
      .host = data }
  };
  if (buffer != NULL && conf_raw_upload (&raw, buffer, 0, before, N_BYTES)) {
    for (guint n = 1; n <= G_N_ELEMENTS (commands); n++) {
      TinySubmit work = { .struct_size = sizeof work, .commands = commands, .n_commands = n };
      fresh_error (&raw);
      TinyStatus status
          = conf_table_submit (raw.table, raw.device, raw.queue, &work, &raw.error);
      conf_raw_check_failure (&raw, status, TINY_STATUS_UNSUPPORTED,
                              "a command of unknown type");
    }
    if (!conf_has_failed (trial) && conf_raw_download (&raw, buffer, 0, data, N_BYTES))
      conf_check_fill (trial, data, N_BYTES, 1, 0, "behind a command that was refused");
  }
  conf_raw_free (&raw, buffer);
  conf_raw_end (&raw);
  conf_fresh_use (trial, subject);
}

/* ---- binaries ---- */
static void
write_program (ConfScript *script, const char *name, guint32 add)
{
  conf_script_init (script, name);
  conf_script_set_grid (script, 0, 16);
  guint32 out = conf_emit_param (script, TINY_DTYPE_U32, TINY_PARAM_WRITE, 16);
  guint32 i = conf_emit_index (script, 0);
  guint32 x = CONF_EMIT (script, CAST, U32, i);
  guint32 more = conf_emit_int (script, TINY_DTYPE_U32, add);
  guint32 sum = CONF_EMIT (script, ADD, U32, x, more);
  CONF_EMIT (script, STORE, VOID, out, i, sum);
}

static GBytes *
compile (ConfTrial *trial, const ConfSubject *subject, ConfScript *script)
{
  GError *error = NULL;
  GBytes *binary = conf_linear_compile (tiny_device_get_renderer (subject->device),
                                        subject->target, tiny_device_get_name (subject->device),
                                        conf_script_get (script), &error);
  conf_check_error (trial, error, "compile");
  return binary;
}

/* A binary that is not what compile() made: it is refused. With @may_work it may be taken, where what is
 * wrong with it is nowhere seen; the core itself guards what it keeps by a checksum. It is not run. */
static void
check_refused (
    ConfRaw *raw, ConfStep *step, GBytes *binary, gboolean may_work, const char *what)
{
  gsize size;
  const void *data = g_bytes_get_data (binary, &size);
  /* Where it ends no memory follows. */
  guint8 *copy = conf_guarded_new (size);
  TinyPluginProgram *program = NULL;
  if (size > 0)
    memcpy (copy, data, size);
  TinyStatus status = conf_step_load (step, raw, copy, size, &program);
  conf_guarded_free (copy, size);
  if (status == TINY_STATUS_OK)
    conf_raw_unload (raw, program);
  if (status == TINY_STATUS_OK && may_work)
    return;
  /* Where a binary is text, the compiler sees it, and quotes what may be no text any more. */
  g_autofree char *valid
      = g_utf8_make_valid (raw->error.text, strnlen (raw->error.text, sizeof raw->error.text));
  g_strlcpy (raw->error.text, valid, sizeof raw->error.text - 4);
  const gboolean has_source = !conf_only_claims (step->subject)
                              && tiny_device_get_renderer (step->subject->device)->dialect;
  const TinyStatus wanted
      = has_source && status == TINY_STATUS_COMPILE ? status : TINY_STATUS_CORRUPT;
  conf_raw_check_failure (raw, status, wanted, what);
}

typedef enum { DAMAGE_TRUNCATE, DAMAGE_FLIP, DAMAGE_GARBAGE, DAMAGE_LONGER } Damage;

static void
damage (ConfRaw *raw, ConfStep *step, GBytes *binary, Damage how, guint64 salt)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (binary, &size);
  g_autofree guint8 *copy = g_malloc (size + 64);
  guint8 random[8];
  conf_fill (random, sizeof random, salt + step->subject->seed);
  guint64 draw;
  memcpy (&draw, random, sizeof draw);
  gsize at = size > 0 ? draw % size : 0;
  g_autofree char *what = NULL;
  memcpy (copy, data, size);
  if (how == DAMAGE_TRUNCATE) {
    /* The first lacks its last byte only, which a text might do without. */
    size = salt == 0 && size > 0 ? size - 1 : at;
    what = g_strdup_printf ("a binary that ends after %" G_GSIZE_FORMAT " bytes", size);
  } else if (how == DAMAGE_FLIP) {
    copy[at] ^= (guint8) (1u << (draw >> 60 & 7));
    what = g_strdup_printf ("a binary with a bit of byte %" G_GSIZE_FORMAT " changed", at);
  } else if (how == DAMAGE_GARBAGE) {
    conf_fill (copy, size, salt);
    what = g_strdup ("a binary of random bytes");
  } else {
    memset (copy + size, 0x5a, 64);
    size += 64;
    what = g_strdup ("a binary with 64 more bytes");
  }
  g_autoptr (GBytes) damaged = g_bytes_new (copy, size);
  check_refused (raw, step, damaged, how == DAMAGE_FLIP || how == DAMAGE_LONGER, what);
}

static void
run_damage (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  g_auto (ConfStep) step;
  GError *error = NULL;
  g_autoptr (GBytes) binary
      = conf_step_init (&step, trial, subject) ? conf_step_compile (&step, &error) : NULL;
  conf_check_error (trial, error, "compile");
  for (guint i = 0; binary != NULL && i < (guint) self->args[1] && !conf_has_failed (trial);
       i++)
    damage (&raw, &step, binary, (Damage) self->args[0], i);
  conf_raw_end (&raw);
  conf_fresh_use (trial, subject);
}

static void
run_empty_binary (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  g_auto (ConfStep) step;
  g_autoptr (GBytes) nothing = g_bytes_new (NULL, 0);
  if (conf_step_init (&step, trial, subject))
    check_refused (&raw, &step, nothing, FALSE, "a binary of no bytes");
  conf_raw_end (&raw);
  conf_fresh_use (trial, subject);
}

/* A good binary that has no program of the name it is asked for: refused, or names mean nothing there. */
static void
run_wrong_name (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  g_auto (ConfScript) script;
  ConfStep other = { .subject = subject };
  write_program (&script, "one_name", 1);
  write_program (&other.script, "another_name", 1);
  g_autoptr (GBytes) binary = compile (trial, subject, &script);
  if (binary != NULL)
    check_refused (&raw, &other, binary, TRUE, "a binary without the program's name");
  conf_step_clear (&other);
  conf_raw_end (&raw);
}

/* Programs with one name and others with many, all loaded at once. */
static void
run_many_programs (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { MANY = 24 };
  TinyPluginProgram *programs[MANY] = { NULL };
  ConfScript scripts[MANY];
  guint32 out[16];
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  TinyPluginBuffer *buffer = conf_raw_alloc (&raw, sizeof out);
  const TinySpan span = { buffer, 0, sizeof out };
  for (guint i = 0; i < MANY; i++) {
    g_autofree char *name
        = self->args[0] ? g_strdup ("same") : g_strdup_printf ("program_%u", i);
    write_program (&scripts[i], name, i * 100);
    programs[i] = conf_raw_build (&raw, subject, &scripts[i]);
  }
  for (guint k = 0; k < 2 * MANY && !conf_has_failed (trial); k++) {
    guint i = k * 7 % MANY;
    if (k >= MANY && i % 2 != 0) { /* half of them go, and the others stay */
      conf_raw_unload (&raw, g_steal_pointer (&programs[i]));
      continue;
    }
    const TinyCommand command
        = conf_dispatch (programs[i], conf_script_get (&scripts[i]), &span, NULL);
    if (conf_raw_submit (&raw, &command, 1, "one of many programs")
        && conf_raw_download (&raw, buffer, 0, out, sizeof out))
      conf_check (trial, out[5] == 5 + i * 100, "program %u of %u gives %u, and %u is right", i,
                  MANY, out[5], 5 + i * 100);
  }
  for (guint i = 0; i < MANY; i++) {
    conf_raw_unload (&raw, programs[i]);
    conf_script_clear (&scripts[i]);
  }
  conf_raw_free (&raw, buffer);
  conf_raw_end (&raw);
}

/* The same where names mean nothing: an operation many times, of which half go. */
static void
run_many_steps (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { MANY = 24 };
  TinyPluginProgram *programs[MANY] = { NULL };
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  g_auto (ConfStep) step;
  const gboolean good = conf_step_init (&step, trial, subject);
  for (guint i = 0; i < MANY && good; i++)
    programs[i] = conf_step_build (&step, &raw);
  for (guint k = 0; k < 2 * MANY && !conf_has_failed (trial); k++) {
    const guint i = k * 7 % MANY;
    if (k >= MANY && i % 2 != 0)
      conf_raw_unload (&raw, g_steal_pointer (&programs[i]));
    else
      conf_step_use (&step, &raw, programs[i], k);
  }
  for (guint i = 0; i < MANY; i++)
    conf_raw_unload (&raw, programs[i]);
  conf_raw_end (&raw);
}

/* ---- code ---- */
/* What is no operation is nothing that compile() makes; args[0]: a kernel, or nothing at all. */
static void
run_no_operation (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  g_auto (ConfScript) script;
  write_program (&script, "kernel", 1);
  const TinyCompileArgs args = { .struct_size = sizeof args,
                                 .arch = tiny_device_get_claim_arch (subject->device),
                                 .name = "kernel",
                                 .linear = self->args[0] ? conf_script_get (&script) : NULL };
  void *data = NULL;
  uint64_t size = 0;
  fresh_error (&raw);
  TinyStatus status
      = tiny_device_get_claimer (subject->device)->compile (&args, &data, &size, &raw.error);
  conf_raw_check_failure (&raw, status, TINY_STATUS_UNSUPPORTED,
                          "compile() of what is no operation");
  if (status == TINY_STATUS_OK)
    tiny_host_get ()->free (data);
  conf_raw_end (&raw);
  conf_fresh_use (trial, subject);
}

/* Text that no compiler takes: compile() says so, or program_load() where that is where it is read. */
static void
run_bad_source (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const TinyRenderer *renderer = tiny_device_get_renderer (subject->device);
  TinyPluginProgram *program = NULL;
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  g_auto (ConfScript) script;
  write_program (&script, "bad_source", 1);
  static const char source[] = "this is ( no program { in any language;\n";
  const TinyCompileArgs args = { .struct_size = sizeof args,
                                 .arch = subject->target->arch,
                                 .name = "bad_source",
                                 .source = source,
                                 .source_size = strlen (source),
                                 .linear = conf_script_get (&script) };
  void *data = NULL;
  uint64_t size = 0;
  fresh_error (&raw);
  TinyStatus status = tiny_renderer_call_compile (renderer, &args, &data, &size, &raw.error);
  if (status == TINY_STATUS_OK) {
    status = conf_raw_load (&raw, subject->target, conf_script_get (&script), data, size,
                            &program);
    tiny_host_get ()->free (data);
  }
  conf_raw_check_failure (&raw, status, TINY_STATUS_COMPILE, "source that is no program");
  conf_raw_end (&raw);
  conf_fresh_use (trial, subject);
}

/* An instruction that there is not. */
static void
run_bad_linear (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const TinyRenderer *renderer = tiny_device_get_renderer (subject->device);
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  g_auto (ConfScript) script;
  write_program (&script, "bad_linear", 1);
  conf_emit_arg (&script, (TinyInstrOp) self->args[0], TINY_DTYPE_U32, 0);
  const TinyCompileArgs args = { .struct_size = sizeof args,
                                 .arch = subject->target->arch,
                                 .name = "bad_linear",
                                 .linear = conf_script_get (&script) };
  void *data = NULL;
  uint64_t size = 0;
  fresh_error (&raw);
  TinyStatus status = tiny_renderer_call_compile (renderer, &args, &data, &size, &raw.error);
  const TinyStatus wanted
      = status == TINY_STATUS_COMPILE ? TINY_STATUS_COMPILE : TINY_STATUS_UNSUPPORTED;
  conf_raw_check_failure (&raw, status, wanted, "a linear program with an unknown instruction");
  if (status == TINY_STATUS_OK)
    tiny_host_get ()->free (data);
  conf_raw_end (&raw);
  conf_fresh_use (trial, subject);
}

/* Architectures that are none: a target, or a reason why not. */
static void
run_bad_arch (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const TinyRenderer *renderer = tiny_device_get_renderer (subject->device);
  g_autofree char *long_text = g_strnfill (20000, 'x');
  const char *texts[] = { "no-such-architecture",      ",,,===", "%n%s%s%s", long_text,
                          "a,b,c,d,e,f,g,h,i,j,k,l,m", "=",      ":" };
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    TinyTarget target = { .struct_size = sizeof target };
    fresh_error (&raw);
    TinyStatus status = tiny_renderer_call_target (renderer, texts[i], &target, &raw.error);
    g_autofree char *what = g_strdup_printf ("target(“%.30s”)", texts[i]);
    if (status != TINY_STATUS_OK)
      conf_raw_check_failure (&raw, status, status, what);
    else
      conf_check (trial, memchr (target.arch, 0, sizeof target.arch) != NULL && target.arch[0],
                  "%s: OK, and no arch", what);
  }
  conf_raw_end (&raw);
  conf_fresh_use (trial, subject);
}

/* ---- the module ---- */
static void
run_unknown_id (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  g_autofree char *long_id = g_strnfill (5000, 'x');
  const char *ids[] = { "no such device", "-1", "../../etc/passwd", long_id, "%s%n" };
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (ids); i++) {
    TinyPluginDevice *device = NULL;
    const TinyDeviceTable *table = NULL;
    g_autofree char *what = g_strdup_printf ("open(“%.30s”)", ids[i]);
    fresh_error (&raw);
    TinyStatus status
        = tiny_backend_open_device (subject->backend, ids[i], &device, &table, &raw.error);
    conf_raw_check_failure (&raw, status, TINY_STATUS_NO_DEVICE, what);
    if (status == TINY_STATUS_OK && table != NULL)
      table->close (device);
  }
  conf_raw_end (&raw);
  conf_fresh_use (trial, subject);
}

/* scan() with little room says how many there are, and writes no more than there is room for. */
static void
run_scan_room (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  TinyPluginError error;
  tiny_plugin_error_init (&error);
  uint32_t none = 0, one = 1;
  TinyCandidate *room = conf_guarded_new (sizeof *room);
  memset (room, 0, sizeof *room);
  room->struct_size = sizeof *room;
  TinyStatus status
      = tiny_backend_call_scan (subject->backend, (TinyCandidate *) (room + 1), &none, &error);
  conf_check (trial, status == TINY_STATUS_OK && none >= 1,
              "scan() with no room: %s, %u devices", conf_status_to_string (status), none);
  status = tiny_backend_call_scan (subject->backend, room, &one, &error);
  conf_check (trial, status == TINY_STATUS_OK && one == none,
              "scan() with room for one: %s, %u devices, and %u without room",
              conf_status_to_string (status), one, none);
  conf_check (trial, memchr (room->id, 0, sizeof room->id) != NULL && room->id[0] != 0,
              "the first device has no id");
  conf_guarded_free (room, sizeof *room);
}

/* Those of a device that runs kernels, whose code the core writes down. */
static void
list_code (const ConfSubject *subject, ConfList *out)
{
  static const gint64 ops[] = { 0, 39, 63, 200, 65535 };
  const ConfCase source = { .run = run_bad_source }, name = { .run = run_wrong_name },
                 arch = { .run = run_bad_arch };
  conf_list_add (out, &name, "binary/wrong-name");
  for (gint64 i = 0; i < 2; i++) {
    const ConfCase many = { .run = run_many_programs, .args = { i } };
    conf_list_add (out, &many, i ? "programs/same-name" : "programs/many");
  }
  conf_list_add (out, &arch, "arch");
  const gboolean has_source = tiny_device_get_renderer (subject->device)->dialect != NULL;
  if (has_source)
    conf_list_add (out, &source, "compile/no-source");
  else
    conf_list_absent (out, "the renderer has no dialect", "compile/no-source");
  for (guint i = 0; i < G_N_ELEMENTS (ops); i++) {
    const ConfCase linear = { .run = run_bad_linear, .args = { ops[i] } };
    if (has_source)
      conf_list_absent (out, "compile() is given source", "compile/instruction-%d",
                        (int) ops[i]);
    else
      conf_list_add (out, &linear, "compile/instruction-%d", (int) ops[i]);
  }
}

static void
list_operations (ConfList *out)
{
  const ConfCase many = { .run = run_many_steps }, nothing = { .run = run_no_operation },
                 kernel = { .run = run_no_operation, .args = { 1 } };
  conf_list_add (out, &many, "programs/many");
  conf_list_add (out, &nothing, "compile/nothing");
  conf_list_add (out, &kernel, "compile/kernel");
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  static const struct {
    const char *name;
    ConfCase self;
  } cases[] = {
    { "command/0", { .run = run_unknown_command, .args = { 0 } } },
    { "command/99", { .run = run_unknown_command, .args = { 99 } } },
    { "command/huge", { .run = run_unknown_command, .args = { 0xffffffff } } },
    { "binary/empty", { .run = run_empty_binary } },
    { "binary/truncated", { .run = run_damage, .args = { DAMAGE_TRUNCATE, 64 } } },
    { "binary/changed", { .run = run_damage, .args = { DAMAGE_FLIP, 64 } } },
    { "binary/random", { .run = run_damage, .args = { DAMAGE_GARBAGE, 16 } } },
    { "binary/longer", { .run = run_damage, .args = { DAMAGE_LONGER, 1 } } },
    { "id", { .run = run_unknown_id } },
    { "scan-room", { .run = run_scan_room } },
  };
  if (subject->device == NULL)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    conf_list_add (out, &cases[i].self, "%s", cases[i].name);
  conf_list_listing (subject, out);
  if (conf_only_claims (subject))
    list_operations (out);
  else
    list_code (subject, out);
}

const ConfGroup conf_group_faults
    = { "faults", "what cannot be done is refused with a reason, and the device goes on",
        list };
