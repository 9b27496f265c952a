/* SPDX-License-Identifier: MIT
 *
 * group-skew.c: structs of other sizes than the plugin was built with, as older and newer cores pass
 * them, and with bits set that it cannot know.
 *
 * Every struct lies where no memory follows its struct_size. A short one may be refused; a long one is
 * taken, and what the plugin does not know of it stays as it was. Reserved fields and unknown flags
 * are refused (the laws of tiny-plugin.h). */
#include <string.h>

#include "device/device-private.h"
#include "device/tiny-table.h"
#include "fresh.h"
#include "render/tiny-render.h"

enum { TAIL = 64, POISON = 0xa5 };

/* A copy of @from (@known bytes of it are meant) whose struct_size is @size; what is behind is poison. */
static void *
new_struct (const void *from, gsize known, gsize size)
{
  guint8 *out = conf_guarded_new (size);
  guint32 given = (guint32) size;
  memset (out, POISON, size);
  memcpy (out, from, MIN (known, size));
  if (size >= sizeof given)
    memcpy (out, &given, sizeof given);
  return out;
}

/* Frees it; says where the poison behind @known is gone. */
static void
end_struct (ConfTrial *trial, void *memory, gsize known, gsize size, const char *what)
{
  const guint8 *bytes = memory;
  for (gsize i = known; i < size; i++)
    if (!conf_check (trial, bytes[i] == POISON,
                     "%s: byte %" G_GSIZE_FORMAT " behind what it knows was written", what,
                     i - known))
      break;
  conf_guarded_free (memory, size);
}

/* ---- a rig: a program and what a launch of it takes ---- */
typedef struct {
  ConfTrial *trial;
  const ConfSubject *subject;
  ConfRaw raw;
  ConfStep step;
  GBytes *binary;
  TinyPluginProgram *program;
  TinyPluginBuffer *buffers[TINY_OPERATION_MAX_OPERANDS];
  TinySpan spans[TINY_OPERATION_MAX_OPERANDS];
  guint8 *out;
} Rig;

static void
rig_end (Rig *self)
{
  conf_raw_unload (&self->raw, self->program);
  conf_step_free (&self->step, &self->raw, self->buffers);
  conf_step_clear (&self->step);
  g_clear_pointer (&self->binary, g_bytes_unref);
  g_free (self->out);
  conf_raw_end (&self->raw);
}

static void
upload_inputs (Rig *self)
{
  for (guint i = 1; i < self->step.n_buffers && !conf_has_failed (self->trial); i++) {
    const gsize n = conf_raw_round (&self->raw, self->step.n_bytes[i]);
    g_autofree guint8 *data = g_malloc0 (n + 8);
    conf_step_fill (&self->step, i, 1, data);
    conf_raw_upload (&self->raw, self->buffers[i], 0, data, n);
  }
}

static gboolean
rig_begin (Rig *self, ConfTrial *trial, const ConfSubject *subject)
{
  GError *error = NULL;
  memset (self, 0, sizeof *self);
  self->trial = trial;
  self->subject = subject;
  if (!conf_raw_begin (&self->raw, trial, subject))
    return FALSE;
  if (conf_step_init (&self->step, trial, subject)) {
    self->binary = conf_step_compile (&self->step, &error);
    conf_check_error (trial, error, "compile");
    self->program = self->binary ? conf_step_build (&self->step, &self->raw) : NULL;
    conf_step_alloc (&self->step, &self->raw, self->buffers);
    conf_step_get_spans (&self->step, self->buffers, self->spans);
    self->out = g_malloc0 (conf_raw_round (&self->raw, self->step.n_bytes[0]) + 8);
    upload_inputs (self);
  }
  if (!conf_has_failed (trial))
    return TRUE;
  rig_end (self);
  return FALSE;
}

static TinyCommand
rig_dispatch (Rig *self)
{
  return conf_step_dispatch (&self->step, self->program, self->spans);
}

static TinyCommand
rig_download (Rig *self)
{
  TinySpan whole = self->spans[0];
  whole.n_bytes = conf_raw_round (&self->raw, whole.n_bytes);
  return (TinyCommand){ .struct_size = sizeof (TinyCommand),
                        .type = TINY_COMMAND_DOWNLOAD,
                        .src = whole,
                        .host = self->out };
}

static void
rig_check (Rig *self, const char *what)
{
  conf_step_check (&self->step, self->trial, self->out, 1, what);
}

/* Whose compile() the program is of: a renderer of kernels, or of operations. */
static const TinyRenderer *
rig_get_renderer (const Rig *self)
{
  return self->step.is_claimed ? tiny_device_get_claimer (self->subject->device)
                               : tiny_device_get_renderer (self->subject->device);
}

static const char *
rig_get_arch (const Rig *self)
{
  return self->step.is_claimed ? tiny_device_get_claim_arch (self->subject->device)
                               : self->subject->target->arch;
}

/* ---- how each struct is passed ---- */
/* Passes a struct of @size bytes of which @known are meant, and @flags; answers the plugin's status. What
 * came of it is checked where @is_good: then it ought to have worked. */
typedef TinyStatus (*Pass) (Rig *rig, gsize size, const void *given, gboolean is_good);

static TinyStatus
pass_submit (Rig *rig, gsize size, const void *given, gboolean is_good)
{
  TinyStatus status = conf_table_submit (rig->raw.table, rig->raw.device, rig->raw.queue,
                                         (TinySubmit *) given, &rig->raw.error);
  if (status == TINY_STATUS_OK && is_good)
    rig_check (rig, "a submit");
  return status;
}

/* Two commands, each of @size bytes. */
static TinyStatus
pass_commands (Rig *rig, gsize size, const void *given, gboolean is_good)
{
  const TinyCommand download = rig_download (rig);
  guint8 *both = conf_guarded_new (2 * size);
  void *second = new_struct (&download, sizeof download, size);
  memcpy (both, given, size);
  memcpy (both + size, second, size);
  conf_guarded_free (second, size);
  TinySubmit work = { .struct_size = sizeof work,
                      .commands = (const TinyCommand *) (gconstpointer) both,
                      .n_commands = 2 };
  TinyStatus status = conf_table_submit (rig->raw.table, rig->raw.device, rig->raw.queue, &work,
                                         &rig->raw.error);
  if (status == TINY_STATUS_OK && is_good)
    rig_check (rig, "a submit of two commands of that size");
  conf_guarded_free (both, 2 * size);
  return status;
}

static TinyStatus
pass_program (Rig *rig, gsize size, const void *given, gboolean is_good)
{
  TinyPluginProgram *program = NULL;
  TinyStatus status
      = rig->raw.table->program_load (rig->raw.device, given, &program, &rig->raw.error);
  if (status == TINY_STATUS_OK)
    conf_raw_unload (&rig->raw, program);
  return status;
}

static TinyStatus
pass_compile (Rig *rig, gsize size, const void *given, gboolean is_good)
{
  void *data = NULL;
  uint64_t n_bytes = 0;
  TinyStatus status = rig_get_renderer (rig)->compile (given, &data, &n_bytes, &rig->raw.error);
  if (status == TINY_STATUS_OK)
    tiny_host_get ()->free (data);
  return status;
}

static TinyStatus
pass_info (Rig *rig, gsize size, const void *given, gboolean is_good)
{
  TinyDeviceInfo *out = (TinyDeviceInfo *) given;
  TinyStatus status = rig->raw.table->info (rig->raw.device, out, &rig->raw.error);
  if (status == TINY_STATUS_OK && is_good)
    conf_check (rig->trial, strcmp (out->name, rig->raw.info->name) == 0,
                "info: the name is another one");
  return status;
}

static TinyStatus
pass_target (Rig *rig, gsize size, const void *given, gboolean is_good)
{
  TinyTarget *out = (TinyTarget *) given;
  TinyStatus status
      = tiny_renderer_call_target (tiny_device_get_renderer (rig->subject->device),
                                   rig->subject->target->arch, out, &rig->raw.error);
  if (status == TINY_STATUS_OK && is_good)
    conf_check (rig->trial, out->dtypes_storage == rig->subject->target->dtypes_storage,
                "target: other dtypes");
  return status;
}

static TinyStatus
pass_candidate (Rig *rig, gsize size, const void *given, gboolean is_good)
{
  uint32_t n = 1;
  return tiny_backend_get_module (rig->subject->backend)
      ->scan ((TinyCandidate *) given, &n, &rig->raw.error);
}

/* open() of what there is not fills it. */
static TinyStatus
pass_error (Rig *rig, gsize size, const void *given, gboolean is_good)
{
  TinyPluginDevice *device = NULL;
  const TinyDeviceTable *table = NULL;
  const TinyPluginError *error = given;
  TinyStatus status = tiny_backend_open_device (rig->subject->backend, "no such device",
                                                &device, &table, (TinyPluginError *) given);
  conf_check (rig->trial, status < 0, "open of no device: %s", conf_status_to_string (status));
  if (is_good)
    conf_check (rig->trial, error->text[0] != 0, "open of no device: no text");
  return TINY_STATUS_OK;
}

/* ---- the structs ---- */
typedef enum {
  STRUCT_SUBMIT,
  STRUCT_COMMAND,
  STRUCT_PROGRAM,
  STRUCT_COMPILE,
  STRUCT_LINEAR,
  STRUCT_OPERATION,
  STRUCT_CLAIM,
  STRUCT_INFO,
  STRUCT_TARGET,
  STRUCT_CANDIDATE,
  STRUCT_ERROR,
  N_STRUCTS
} StructKind;

typedef union {
  TinySubmit submit;
  TinyCommand command;
  TinyProgramArgs program;
  TinyCompileArgs compile;
  TinyLinear linear;
  TinyOperation operation;
  TinyClaim claim;
  TinyDeviceInfo info;
  TinyTarget target;
  TinyCandidate candidate;
  TinyPluginError error;
} AnyStruct;

/* compile() is given a linear program of that size. */
static TinyStatus
pass_linear (Rig *rig, gsize size, const void *given, gboolean is_good)
{
  const TinyRenderer *renderer = tiny_device_get_renderer (rig->subject->device);
  g_autofree char *source
      = renderer->dialect
            ? tiny_render_source (conf_script_get (&rig->step.script), renderer->dialect, NULL)
            : NULL;
  const TinyCompileArgs args = { .struct_size = sizeof args,
                                 .arch = rig->subject->target->arch,
                                 .name = rig->step.script.name,
                                 .source = source,
                                 .source_size = source ? strlen (source) : 0,
                                 .linear = given };
  return pass_compile (rig, sizeof args, &args, is_good);
}

/* claim() is given an operation of that size, and what it accepts of it goes to compile(). Declined is a way to
 * refuse. */
static TinyStatus
pass_operation (Rig *rig, gsize size, const void *given, gboolean is_good)
{
  const TinyCompileArgs args = {
    .struct_size = sizeof args, .arch = rig_get_arch (rig), .name = "skewed", .operation = given
  };
  TinyClaim claim = { .struct_size = sizeof claim };
  TinyStatus status = tiny_renderer_call_claim (rig_get_renderer (rig), rig_get_arch (rig),
                                                given, &claim, &rig->raw.error);
  if (status == TINY_STATUS_OK && claim.verdict == TINY_CLAIM_DECLINED) {
    g_strlcpy (rig->raw.error.text, claim.reason, sizeof rig->raw.error.text);
    status = TINY_STATUS_UNSUPPORTED;
  }
  return status == TINY_STATUS_OK ? pass_compile (rig, sizeof args, &args, is_good) : status;
}

static TinyStatus
pass_claim (Rig *rig, gsize size, const void *given, gboolean is_good)
{
  TinyClaim *claim = (TinyClaim *) given;
  TinyStatus status = tiny_renderer_call_claim (rig_get_renderer (rig), rig_get_arch (rig),
                                                &rig->step.operation, claim, &rig->raw.error);
  if (status == TINY_STATUS_OK && is_good)
    conf_check (rig->trial, claim->verdict == TINY_CLAIM_ACCEPTED,
                "claim: what it accepted it declines");
  return status;
}

#define KIND(name, type, is_input, pass)                                                       \
  {                                                                                            \
    name, sizeof (type), G_STRUCT_OFFSET (type, reserved), is_input, pass                      \
  }
static const struct {
  const char *name;
  gsize size, reserved;
  gboolean is_input; /* the core fills it */
  Pass pass;
} kinds[N_STRUCTS] = {
  [STRUCT_SUBMIT] = KIND ("submit", TinySubmit, TRUE, pass_submit),
  [STRUCT_COMMAND] = KIND ("command", TinyCommand, TRUE, pass_commands),
  [STRUCT_PROGRAM] = KIND ("program-args", TinyProgramArgs, TRUE, pass_program),
  [STRUCT_COMPILE] = KIND ("compile-args", TinyCompileArgs, TRUE, pass_compile),
  [STRUCT_LINEAR] = KIND ("linear", TinyLinear, TRUE, pass_linear),
  [STRUCT_OPERATION] = KIND ("operation", TinyOperation, TRUE, pass_operation),
  [STRUCT_CLAIM] = KIND ("claim", TinyClaim, FALSE, pass_claim),
  [STRUCT_INFO] = KIND ("device-info", TinyDeviceInfo, FALSE, pass_info),
  [STRUCT_TARGET] = KIND ("target", TinyTarget, FALSE, pass_target),
  [STRUCT_CANDIDATE] = KIND ("candidate", TinyCandidate, FALSE, pass_candidate),
  [STRUCT_ERROR] = KIND ("error", TinyPluginError, FALSE, pass_error),
};

/* As the core fills it; @commands and @source are kept by the caller. */
static void
fill_struct (Rig *rig, StructKind kind, AnyStruct *out, TinyCommand commands[2], char **source)
{
  const TinyLinear *linear = rig->step.is_claimed ? NULL : conf_script_get (&rig->step.script);
  const char *name = linear ? linear->name : "step";
  gsize n_bytes;
  const void *data = g_bytes_get_data (rig->binary, &n_bytes);
  memset (out, 0, sizeof *out);
  commands[0] = rig_dispatch (rig);
  commands[1] = rig_download (rig);
  if (kind == STRUCT_COMPILE && rig_get_renderer (rig)->dialect != NULL)
    *source = tiny_render_source (linear, rig_get_renderer (rig)->dialect, NULL);
  switch (kind) {
  case STRUCT_SUBMIT:
    out->submit = (TinySubmit){ .commands = commands, .n_commands = 2 };
    break;
  case STRUCT_COMMAND:
    out->command = commands[0];
    break;
  case STRUCT_PROGRAM:
    out->program = (TinyProgramArgs){ .name = name,
                                      .arch = rig_get_arch (rig),
                                      .data = data,
                                      .size = n_bytes,
                                      .n_params = rig->step.n_buffers,
                                      .group = { 1, 1, 1 } };
    break;
  case STRUCT_COMPILE:
    out->compile
        = (TinyCompileArgs){ .arch = rig_get_arch (rig),
                             .name = name,
                             .source = *source,
                             .source_size = *source ? strlen (*source) : 0,
                             .linear = linear,
                             .operation = linear == NULL ? &rig->step.operation : NULL };
    break;
  case STRUCT_LINEAR:
    out->linear = *linear;
    break;
  case STRUCT_OPERATION:
    out->operation = rig->step.operation;
    break;
  case STRUCT_TARGET:
    memcpy (out->target.arch, rig->raw.info->arch, sizeof out->target.arch);
    break;
  default:
    break;
  }
  ((TinySubmit *) out)->struct_size = (guint32) kinds[kind].size;
}

/* ---- cases ---- */
/* args: the kind, and how many bytes it has more, or fewer, than the plugin knows. */
static void
run_size (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  StructKind kind = (StructKind) self->args[0];
  gsize known = kinds[kind].size, size = (gsize) ((gint64) known + self->args[1]);
  g_autofree char *source = NULL;
  g_autofree char *what = g_strdup_printf (
      "%s of %" G_GSIZE_FORMAT " bytes, not %" G_GSIZE_FORMAT, kinds[kind].name, size, known);
  TinyCommand commands[2];
  AnyStruct any;
  Rig rig;
  if (!rig_begin (&rig, trial, subject))
    return;
  fill_struct (&rig, kind, &any, commands, &source);
  void *given = new_struct (&any, known, size);
  gboolean is_whole = size >= known;
  memset (&rig.raw.error, 0, sizeof rig.raw.error);
  rig.raw.error.struct_size = sizeof rig.raw.error;
  TinyStatus status = kinds[kind].pass (&rig, size, given, is_whole);
  /* A newer core's is longer by what the plugin need not know: the rest is poison, which it does not
   * look at. An older one's lacks what the plugin may need. */
  if (is_whole)
    conf_check (trial, status == TINY_STATUS_OK, "%s: %s: %s", what,
                conf_status_to_string (status), rig.raw.error.text);
  end_struct (trial, given, MIN (known, size), size, what);
  rig_end (&rig);
  conf_fresh_use (trial, subject);
}

/* Several candidates, args[0] bytes longer than the plugin knows: each lies where the core's length says. */
static void
run_candidates (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { ROOM = 4 };
  const gsize known = sizeof (TinyCandidate), size = known + (gsize) self->args[0];
  const TinyPluginModule *module = tiny_backend_get_module (subject->backend);
  TinyCandidate plain[ROOM] = { 0 };
  TinyPluginError error = { .struct_size = sizeof error };
  uint32_t n = ROOM, n_longer = ROOM;
  guint8 *longer = conf_guarded_new (ROOM * size);
  memset (longer, POISON, ROOM * size);
  for (guint i = 0; i < ROOM; i++) {
    const TinyCandidate empty = { .struct_size = (guint32) size };
    plain[i].struct_size = sizeof *plain;
    memcpy (longer + i * size, &empty, known);
  }
  TinyStatus status = module->scan (plain, &n, &error);
  if (status == TINY_STATUS_OK)
    status = module->scan ((TinyCandidate *) (gpointer) longer, &n_longer, &error);
  conf_check (trial, status == TINY_STATUS_OK, "scan: %s: %s", conf_status_to_string (status),
              error.text);
  conf_check (trial, n == n_longer, "scan: there are %u candidates, then %u", n, n_longer);
  for (guint i = 0; i < MIN (n, ROOM) && !conf_has_failed (trial); i++) {
    const TinyCandidate *one = (const TinyCandidate *) (gconstpointer) (longer + i * size);
    conf_check (trial, strcmp (one->id, plain[i].id) == 0,
                "candidate %u of %" G_GSIZE_FORMAT " bytes each is “%.64s”, not “%s”", i, size,
                one->id, plain[i].id);
    for (gsize at = known; at < size; at++)
      if (!conf_check (trial, longer[i * size + at] == POISON,
                       "candidate %u: byte %" G_GSIZE_FORMAT
                       " behind what it knows was written",
                       i, at - known))
        break;
  }
  conf_guarded_free (longer, ROOM * size);
}

/* A bit that nobody knows yet: args[1] the byte, from the struct's start. */
static void
run_bit (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  StructKind kind = (StructKind) self->args[0];
  g_autofree char *source = NULL;
  g_autofree char *what = g_strdup_printf ("%s with an unknown bit in byte %d",
                                           kinds[kind].name, (int) self->args[1]);
  TinyCommand commands[2];
  AnyStruct any;
  Rig rig;
  if (!rig_begin (&rig, trial, subject))
    return;
  fill_struct (&rig, kind, &any, commands, &source);
  ((guint8 *) &any)[self->args[1]] |= 0x80;
  memset (&rig.raw.error, 0, sizeof rig.raw.error);
  rig.raw.error.struct_size = sizeof rig.raw.error;
  TinyStatus status = kinds[kind].pass (&rig, kinds[kind].size, &any, FALSE);
  TinyStatus wanted = status == TINY_STATUS_UNSUPPORTED ? status : TINY_STATUS_INVALID;
  conf_raw_check_failure (&rig.raw, status, wanted, what);
  rig_end (&rig);
  conf_fresh_use (trial, subject);
}

/* ---- the plugin's own tables, shorter ---- */
/* The core takes a table that ends at any slot, or refuses it by name, and the plugin goes on. */
static void
run_short_module (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  GError *error = NULL;
  TinyBackend *whole = tiny_backend_load (subject->path, &error);
  if (!conf_check_error (trial, error, "load"))
    return;
  TinyPluginModule module = *tiny_backend_get_module (whole);
  g_object_unref (whole);
  for (gsize size = 0; size <= sizeof module && !conf_has_failed (trial); size += 8) {
    g_autoptr (GError) why = NULL;
    /* The renderers are the core's copies, as whole as before; they end with their backend. */
    module.n_renderers = 0;
    module.renderers = NULL;
    module.flags = 0; /* one of these says that there are some */
    TinyPluginModule *cut = new_struct (&module, sizeof module, MAX (size, 8));
    cut->struct_size = (guint32) size;
    TinyBackend *backend = tiny_backend_new (cut, subject->path, &why);
    gboolean is_whole = size >= G_STRUCT_OFFSET (TinyPluginModule, reserved);
    conf_check (trial, (backend != NULL) == is_whole,
                "a module table of %" G_GSIZE_FORMAT " bytes: %s", size,
                why ? why->message : "it is taken");
    g_clear_object (&backend);
    conf_guarded_free (cut, MAX (size, 8));
  }
}

static void
list_kind (ConfList *out, StructKind kind)
{
  static const gint shorter[] = { 8, 16, 24, 32, 64 };
  gsize size = kinds[kind].size, reserved = kinds[kind].reserved;
  const char *name = kinds[kind].name;
  static const gint longer[] = { 0, 8, TAIL };
  for (guint i = 0; i < G_N_ELEMENTS (longer); i++) {
    const ConfCase it = { .run = run_size, .args = { kind, longer[i] } };
    conf_list_add (out, &it, "%s/longer-%d", name, longer[i]);
  }
  for (guint i = 0; i < G_N_ELEMENTS (shorter); i++)
    if ((gsize) shorter[i] < size) {
      const ConfCase it = { .run = run_size,
                            .level = i % 2 == 0 ? CONF_CORE : CONF_FULL,
                            .args = { kind, shorter[i] - (gint) size } };
      conf_list_add (out, &it, "%s/only-%d", name, shorter[i]);
    }
  if (!kinds[kind].is_input)
    return;
  const gsize flags = kind == STRUCT_COMMAND ? G_STRUCT_OFFSET (TinyCommand, flags) : 4;
  const gsize bytes[] = { flags + 3, reserved, reserved + 15 };
  static const char *const names[] = { "flag", "reserved-first", "reserved-second" };
  for (guint i = 0; i < G_N_ELEMENTS (bytes); i++) {
    const ConfCase it = { .run = run_bit, .args = { kind, (gint64) bytes[i] } };
    conf_list_add (out, &it, "%s/%s", name, names[i]);
  }
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  const ConfCase module = { .run = run_short_module, .flags = CONF_FRESH };
  conf_list_add (out, &module, "module/cut");
  if (subject->device == NULL)
    return;
  for (guint kind = 0; kind < N_STRUCTS; kind++) {
    const gboolean is_kernels = kind == STRUCT_LINEAR || kind == STRUCT_TARGET,
                   is_operations = kind == STRUCT_OPERATION || kind == STRUCT_CLAIM;
    if (conf_only_claims (subject) ? is_kernels : is_operations)
      continue;
    if (tiny_backend_is_proxy (subject->backend))
      conf_list_absent (out,
                        "the core's own tables stand between, of the core's own sizes: it is "
                        "asked of the plugin without ISOLATED",
                        "%s", kinds[kind].name);
    else
      list_kind (out, (StructKind) kind);
  }
  const ConfCase several = { .run = run_candidates, .args = { TAIL } };
  if (!tiny_backend_is_proxy (subject->backend))
    conf_list_add (out, &several, "candidate/several");
}

const ConfGroup conf_group_skew
    = { "skew", "structs of older and newer cores are taken for what they are", list };
