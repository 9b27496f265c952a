/* SPDX-License-Identifier: MIT
 *
 * climb.c: the ladder, from inside a worker: calls what a program would call, one function after the
 * other, and stops at the first that is not there or not right.
 *
 * It looks at the plugin's own tables, since the core's copy refuses a table that is not complete, and
 * a table that is being written is not. */
#include <dlfcn.h>
#include <string.h>

#include "ladder.h"
#include "plugin/tiny-elf.h"
#include "operation.h"
#include "raw.h"
#include "script.h"
#include "device/tiny-table.h"

enum { N_ELEMENTS = 64 };

/* x + 5, and x + 7, of one name; the first is the accepted operation where only that is claimed. */
typedef struct {
  ConfScript script;
  GBytes *binary;
  TinyPluginProgram *program;
} Kernel;
static const guint addends[] = { 5, 7 };

typedef struct {
  const char *path;
  char *gap; /* why it goes no further, or NULL */
  void *library;
  TinyPluginEntry entry;
  const TinyPluginModule *module;
  TinyPluginDevice *device;
  const TinyDeviceTable *table;
  TinyCandidate candidates[16];
  TinyDeviceInfo info;
  TinyPluginQueue *queue;
  TinyTarget target;
  gboolean only_claims;
  TinyOperation operation; /* that it accepted, where it only claims */
  Kernel kernels[2];
  TinyPluginError error;
} Climb;

typedef gboolean (*Step) (Climb *self);

G_GNUC_PRINTF (2, 3)
static gboolean
give_way (Climb *self, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  self->gap = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  return FALSE;
}

static TinyPluginError *
fresh_error (Climb *self)
{
  tiny_plugin_error_init (&self->error);
  return &self->error;
}

static gboolean
is_ok (Climb *self, TinyStatus status, const char *what)
{
  if (status == TINY_STATUS_OK)
    return TRUE;
  self->error.text[sizeof self->error.text - 1] = 0;
  self->error.hint[sizeof self->error.hint - 1] = 0;
  const gboolean is_machine = status == TINY_STATUS_DRIVER || status == TINY_STATUS_PERMISSION;
  return give_way (
      self, "%s answers %s: %s%s%s%s%s", what, conf_status_to_string (status),
      self->error.text[0] ? self->error.text : "and no text that says why",
      self->error.hint[0] ? " (" : "", self->error.hint, self->error.hint[0] ? ")" : "",
      is_machine ? ". If that is so, it is for this machine to mend, not for code" : "");
}

/* ---- the module ---- */
static gboolean
step_file (Climb *self)
{
  g_autoptr (GError) error = NULL;
  return tiny_elf_check (self->path, &error) || give_way (self, "%s", error->message);
}

static gboolean
step_load (Climb *self)
{
  self->library = dlopen (self->path, RTLD_NOW | RTLD_LOCAL);
  return self->library != NULL || give_way (self, "%s", dlerror ());
}

static gboolean
step_entry (Climb *self)
{
  self->entry = (TinyPluginEntry) dlsym (self->library, TINY_PLUGIN_ENTRY_SYMBOL);
  if (self->entry == NULL)
    return give_way (self, "%s", dlerror ());
  self->module = self->entry (TINY_PLUGIN_ABI_MINOR, fresh_error (self));
  return self->module != NULL
         || give_way (self, "it returns NULL: %s",
                      self->error.text[0] ? self->error.text : "and no text that says why");
}

static gboolean
step_table (Climb *self)
{
  const TinyPluginModule *module = self->module;
  if (module->struct_size < G_STRUCT_OFFSET (TinyPluginModule, reserved))
    return give_way (self,
                     "its struct_size is %u: write .struct_size = sizeof (TinyPluginModule)",
                     module->struct_size);
  if (module->abi_major != TINY_PLUGIN_ABI_MAJOR)
    return give_way (self, "its abi_major is %u: write .abi_major = TINY_PLUGIN_ABI_MAJOR",
                     module->abi_major);
  return (module->name != NULL && module->name[0] != 0)
         || give_way (self, "its name is not set: users write it in DEV=");
}

static gboolean
step_init (Climb *self)
{
  if (self->module->init == NULL)
    return give_way (self, "the slot init of the module table is empty");
  return is_ok (self, self->module->init (tiny_host_get (), fresh_error (self)), "init()");
}

static gboolean
step_scan (Climb *self)
{
  uint32_t n = G_N_ELEMENTS (self->candidates);
  if (self->module->scan == NULL)
    return give_way (self, "the slot scan of the module table is empty");
  for (guint i = 0; i < n; i++)
    self->candidates[i].struct_size = sizeof self->candidates[i];
  if (!is_ok (self, self->module->scan (self->candidates, &n, fresh_error (self)), "scan()"))
    return FALSE;
  if (n == 0)
    return give_way (self, "scan() finds no device");
  return memchr (self->candidates[0].id, 0, sizeof self->candidates[0].id) != NULL
         || give_way (self, "the id of the first device has no NUL");
}

/* ---- the device ---- */
static gboolean
step_open (Climb *self)
{
  if (self->module->open == NULL)
    return give_way (self, "the slot open of the module table is empty");
  if (!is_ok (self,
              self->module->open (self->candidates[0].id, &self->device, &self->table,
                                  fresh_error (self)),
              "open()"))
    return FALSE;
  if (self->table == NULL)
    return give_way (self, "open() answers OK and sets no device table");
  return self->table->struct_size >= G_STRUCT_OFFSET (TinyDeviceTable, map)
         || give_way (self,
                      "the device table's struct_size is %u: write .struct_size = sizeof "
                      "(TinyDeviceTable)",
                      self->table->struct_size);
}

static gboolean
step_info (Climb *self)
{
  if (self->table->info == NULL)
    return give_way (self, "the slot info of the device table is empty");
  self->info.struct_size = sizeof self->info;
  if (!is_ok (self, self->table->info (self->device, &self->info, fresh_error (self)),
              "info()"))
    return FALSE;
  return self->info.arch[0] != 0 || give_way (self, "info() leaves arch empty");
}

static gboolean
step_alloc (Climb *self)
{
  TinyPluginBuffer *buffer = NULL;
  if (self->table->alloc == NULL || self->table->free == NULL)
    return give_way (self, "the slot %s of the device table is empty",
                     self->table->alloc == NULL ? "alloc" : "free");
  if (!is_ok (self, self->table->alloc (self->device, 4096, &buffer, fresh_error (self)),
              "alloc() of 4096 bytes"))
    return FALSE;
  if (buffer == NULL)
    return give_way (self, "alloc() answers OK and sets no buffer");
  self->table->free (self->device, buffer);
  return TRUE;
}

static gboolean
step_queue (Climb *self)
{
  const TinyDeviceTable *table = self->table;
  if ((table->queue_create == NULL) != (table->queue_destroy == NULL))
    return give_way (self,
                     "of queue_create and queue_destroy one is empty: fill both, or none");
  return table->queue_create == NULL
         || is_ok (self, table->queue_create (self->device, &self->queue, fresh_error (self)),
                   "queue_create()");
}

static gboolean
submit (Climb *self, const TinyCommand *commands, guint n, const char *what)
{
  TinySubmit work = { .struct_size = sizeof work, .commands = commands, .n_commands = n };
  return is_ok (
      self,
      conf_table_submit (self->table, self->device, self->queue, &work, fresh_error (self)),
      what);
}

static gboolean
copy_there_and_back (Climb *self, TinyPluginBuffer *buffer)
{
  guint32 there[N_ELEMENTS], back[N_ELEMENTS] = { 0 };
  const TinySpan span = { buffer, 0, sizeof there };
  for (guint i = 0; i < N_ELEMENTS; i++)
    there[i] = 0x01020304u * (i + 1);
  const TinyCommand up
      = { .struct_size = sizeof up, .type = TINY_COMMAND_UPLOAD, .dst = span, .host = there };
  const TinyCommand down = {
    .struct_size = sizeof down, .type = TINY_COMMAND_DOWNLOAD, .src = span, .host = back
  };
  if (!submit (self, &up, 1, "submit() of an UPLOAD of 256 bytes")
      || !submit (self, &down, 1, "submit() of a DOWNLOAD of 256 bytes"))
    return FALSE;
  for (guint i = 0; i < N_ELEMENTS; i++)
    if (back[i] != there[i])
      return give_way (self, "word %u was uploaded as 0x%08x and comes back as 0x%08x", i,
                       there[i], back[i]);
  return TRUE;
}

static gboolean
step_copy (Climb *self)
{
  TinyPluginBuffer *buffer = NULL;
  if (self->table->submit == NULL)
    return give_way (self, "the slot submit of the device table is empty");
  if (!is_ok (self, self->table->alloc (self->device, 256, &buffer, fresh_error (self)),
              "alloc() of 256 bytes"))
    return FALSE;
  gboolean good = copy_there_and_back (self, buffer);
  self->table->free (self->device, buffer);
  return good;
}

/* ---- code ---- */
/* claim() accepts something of what the suite offers. */
static gboolean
find_operation (Climb *self)
{
  const TinyRenderer *renderer = self->module->renderers;
  char reason[256] = "";
  if ((self->module->flags & TINY_MODULE_BESIDE_HOST) == 0)
    return give_way (self, "its renderer only claims: write .flags = TINY_MODULE_BESIDE_HOST");
  if (renderer->struct_size < G_STRUCT_OFFSET (TinyRenderer, reserved)
      || renderer->claim == NULL)
    return give_way (self, "the slot claim of the renderer is empty");
  for (guint i = 0; i < conf_offers_count (); i++) {
    ConfOffer offer;
    TinyClaim claim = { .struct_size = sizeof claim };
    conf_offers_get (i, &offer);
    if (!is_ok (self,
                renderer->claim (self->info.arch, &offer.operation, &claim, fresh_error (self)),
                "claim()"))
      return FALSE;
    if (claim.verdict == TINY_CLAIM_ACCEPTED) {
      self->operation = offer.operation;
      return TRUE;
    }
    g_strlcpy (reason, claim.reason, sizeof reason);
  }
  return give_way (self, "claim() accepts none of %u operations; of the last it says: %s",
                   conf_offers_count (), reason[0] ? reason : "nothing");
}

static gboolean
step_target (Climb *self)
{
  g_autoptr (GError) error = NULL;
  const TinyRenderer *renderer = self->module->renderers;
  if (self->module->n_renderers == 0 || renderer == NULL)
    return give_way (self, "the module table has no renderers");
  if (renderer->struct_size < G_STRUCT_OFFSET (TinyRenderer, disassemble))
    return give_way (self,
                     "the renderer's struct_size is %u: write .struct_size = sizeof "
                     "(TinyRenderer)",
                     renderer->struct_size);
  self->only_claims = (renderer->flags & TINY_RENDERER_CLAIMS_ONLY) != 0;
  if (renderer->name != NULL && self->only_claims)
    return find_operation (self);
  if (renderer->name == NULL || renderer->target == NULL)
    return give_way (self, "the slot %s of the renderer is empty",
                     renderer->name == NULL ? "name" : "target");
  memcpy (self->target.arch, self->info.arch, sizeof self->target.arch);
  return tiny_renderer_read_target (renderer, "", self->module->name, &self->target, &error)
         || give_way (self, "%s", error->message);
}

/* out[i] = in[i] + 5, or 7, of u32. */
static void
write_kernel (Climb *self, guint k)
{
  ConfScript *script = &self->kernels[k].script;
  conf_script_init (script, "op");
  conf_script_set_grid (script, 0, N_ELEMENTS);
  guint32 out = conf_emit_param (script, TINY_DTYPE_U32, TINY_PARAM_WRITE, N_ELEMENTS);
  guint32 in = conf_emit_param (script, TINY_DTYPE_U32, TINY_PARAM_READ, N_ELEMENTS);
  guint32 i = conf_emit_index (script, 0);
  guint32 x = CONF_EMIT (script, LOAD, U32, in, i);
  guint32 addend = conf_emit_int (script, TINY_DTYPE_U32, addends[k]);
  guint32 sum = CONF_EMIT (script, ADD, U32, x, addend);
  CONF_EMIT (script, STORE, VOID, out, i, sum);
}

static gboolean
compile_kernel (Climb *self, guint k)
{
  g_autoptr (GError) error = NULL;
  Kernel *kernel = &self->kernels[k];
  write_kernel (self, k);
  const TinyCompileArgs args = { .struct_size = sizeof args,
                                 .arch = self->info.arch,
                                 .name = "op",
                                 .operation = &self->operation };
  kernel->binary
      = self->only_claims
            ? tiny_renderer_compile (self->module->renderers, self->module->name, &args, &error)
            : conf_linear_compile (self->module->renderers, &self->target, self->module->name,
                                   conf_script_get (&kernel->script), &error);
  return kernel->binary != NULL || give_way (self, "%s", error->message);
}

static gboolean
step_compile (Climb *self)
{
  if (self->module->renderers->compile == NULL)
    return give_way (self, "the slot compile of the renderer is empty");
  return compile_kernel (self, 0);
}

static gboolean
load_kernel (Climb *self, guint k)
{
  Kernel *kernel = &self->kernels[k];
  const TinyLinear *linear = conf_script_get (&kernel->script);
  gsize size;
  const void *data = g_bytes_get_data (kernel->binary, &size);
  const TinyProgramArgs args
      = { .struct_size = sizeof args,
          .name = linear->name,
          .arch = self->only_claims ? self->info.arch : self->target.arch,
          .data = data,
          .size = size,
          .n_params = self->only_claims ? self->operation.n_buffers : linear->n_params,
          .group = { 1, 1, 1 } };
  return is_ok (
      self,
      self->table->program_load (self->device, &args, &kernel->program, fresh_error (self)),
      "program_load()");
}

static gboolean
step_program (Climb *self)
{
  if (self->table->program_load == NULL || self->table->program_unload == NULL)
    return give_way (self, "the slot %s of the device table is empty",
                     self->table->program_load == NULL ? "program_load" : "program_unload");
  return load_kernel (self, 0);
}

/* Both spans begin at @offset of their buffers. */
static gboolean
run_kernel (Climb *self, guint k, TinyPluginBuffer *const *buffers, guint64 offset)
{
  guint32 in[N_ELEMENTS], out[N_ELEMENTS] = { 0 };
  TinySpan spans[2];
  for (guint i = 0; i < 2; i++)
    spans[i] = (TinySpan){ buffers[i], offset, sizeof in };
  for (guint i = 0; i < N_ELEMENTS; i++)
    in[i] = 1000u * i + 1;
  const TinyCommand commands[] = {
    { .struct_size = sizeof (TinyCommand),
      .type = TINY_COMMAND_UPLOAD,
      .dst = spans[1],
      .host = in },
    conf_dispatch (self->kernels[k].program, conf_script_get (&self->kernels[k].script), spans,
                   NULL),
    { .struct_size = sizeof (TinyCommand),
      .type = TINY_COMMAND_DOWNLOAD,
      .src = spans[0],
      .host = out },
  };
  if (!submit (self, commands, G_N_ELEMENTS (commands),
               "submit() of an UPLOAD, a DISPATCH and a DOWNLOAD"))
    return FALSE;
  for (guint i = 0; i < N_ELEMENTS; i++)
    if (out[i] != in[i] + addends[k])
      return give_way (self, "element %u of x + %u is %u, not %u", i, addends[k], out[i],
                       in[i] + addends[k]);
  return TRUE;
}

/* Bytes in front of a span: no command with that span may touch them. */
enum { FRONT_BYTES = 64, FRONT = 0x5a };

static gboolean
copy_fronts (Climb *self, TinyPluginBuffer *const *buffers, guint32 type, guint8 *fronts)
{
  TinyCommand commands[2];
  for (guint i = 0; i < 2; i++) {
    const TinySpan span = { buffers[i], 0, FRONT_BYTES };
    commands[i] = (TinyCommand){ .struct_size = sizeof (TinyCommand),
                                 .type = type,
                                 .host = fronts + i * FRONT_BYTES };
    *(type == TINY_COMMAND_UPLOAD ? &commands[i].dst : &commands[i].src) = span;
  }
  return submit (self, commands, 2, "submit() of two copies");
}

/* A driver that ignores all offsets alike computes right, at the wrong place. */
static gboolean
fronts_are_kept (Climb *self, TinyPluginBuffer *const *buffers)
{
  guint8 fronts[2 * FRONT_BYTES] = { 0 };
  if (!copy_fronts (self, buffers, TINY_COMMAND_DOWNLOAD, fronts))
    return FALSE;
  for (guint i = 0; i < sizeof fronts; i++)
    if (fronts[i] != FRONT)
      return give_way (self,
                       "byte %u of a buffer was written by commands whose spans begin behind "
                       "it: add a span's offset in UPLOAD, DOWNLOAD, COPY and DISPATCH",
                       i % FRONT_BYTES);
  return TRUE;
}

static gboolean
put_fronts (Climb *self, TinyPluginBuffer *const *buffers)
{
  guint8 fronts[2 * FRONT_BYTES];
  memset (fronts, FRONT, sizeof fronts);
  return copy_fronts (self, buffers, TINY_COMMAND_UPLOAD, fronts);
}

/* The kernels of @order, on buffers of their own, whose spans begin at @offset. */
static gboolean
run_kernels (Climb *self, const guint *order, guint n, guint64 offset)
{
  TinyPluginBuffer *buffers[2] = { NULL, NULL };
  gboolean good = TRUE;
  for (guint i = 0; i < 2 && good; i++)
    good = is_ok (
        self, self->table->alloc (self->device, offset + 256, &buffers[i], fresh_error (self)),
        "alloc()");
  good = good && (offset == 0 || put_fronts (self, buffers));
  for (guint i = 0; i < n && good; i++)
    good = run_kernel (self, order[i], buffers, offset);
  good = good && (offset == 0 || fronts_are_kept (self, buffers));
  for (guint i = 0; i < 2; i++)
    if (buffers[i] != NULL)
      self->table->free (self->device, buffers[i]);
  return good;
}

/* The same of the operation that was accepted, compared by a trial of its own. */
static gboolean
run_operation (Climb *self)
{
  TinyPluginBuffer *buffers[TINY_OPERATION_MAX_OPERANDS] = { NULL };
  guint8 *memory[TINY_OPERATION_MAX_OPERANDS] = { NULL };
  TinySpan spans[TINY_OPERATION_MAX_OPERANDS];
  GArray *commands = g_array_new (FALSE, TRUE, sizeof (TinyCommand));
  gboolean good = TRUE;
  for (guint i = 0; i < self->operation.n_buffers && good; i++) {
    const gsize n = (conf_operation_get_n_bytes (&self->operation, i) + 63) / 64 * 64;
    memory[i] = g_malloc0 (n);
    conf_operation_fill (&self->operation, i, CONF_NUMBERS_WHOLE, 1, memory[i]);
    good = is_ok (self, self->table->alloc (self->device, n, &buffers[i], fresh_error (self)),
                  "alloc() of an operand");
    spans[i] = (TinySpan){ buffers[i], 0, n };
    const TinyCommand up = {
      .struct_size = sizeof up, .type = TINY_COMMAND_UPLOAD, .dst = spans[i], .host = memory[i]
    };
    g_array_append_val (commands, up);
  }
  const TinyCommand last[] = { { .struct_size = sizeof (TinyCommand),
                                 .type = TINY_COMMAND_DISPATCH,
                                 .program = self->kernels[0].program,
                                 .buffers = spans,
                                 .n_buffers = self->operation.n_buffers,
                                 .grid = { 1, 1, 1 } },
                               { .struct_size = sizeof (TinyCommand),
                                 .type = TINY_COMMAND_DOWNLOAD,
                                 .src = spans[0],
                                 .host = memory[0] } };
  g_array_append_vals (commands, last, 2);
  good = good
         && submit (self, (const TinyCommand *) (gconstpointer) commands->data, commands->len,
                    "submit() of UPLOADs, a DISPATCH and a DOWNLOAD");
  if (good && !conf_operation_check (NULL, &self->operation, memory, ""))
    good = give_way (self, "what it accepted gives something else: tinycore conformance, group "
                           "operations, says what");
  for (guint i = 0; i < self->operation.n_buffers; i++) {
    if (buffers[i] != NULL)
      self->table->free (self->device, buffers[i]);
    g_free (memory[i]);
  }
  g_array_unref (commands);
  return good;
}

static gboolean
step_op (Climb *self)
{
  return self->only_claims ? run_operation (self) : run_kernels (self, (guint[]){ 0 }, 1, 0);
}

static gboolean
step_offset (Climb *self)
{
  const guint64 offset = MAX (self->info.alignment, FRONT_BYTES);
  return self->only_claims || run_kernels (self, (guint[]){ 0 }, 1, offset);
}

static gboolean
step_second (Climb *self)
{
  if (self->only_claims)
    return TRUE;
  return compile_kernel (self, 1) && load_kernel (self, 1)
         && run_kernels (self, (guint[]){ 0, 1, 0 }, 3, 0);
}

static gboolean
step_close (Climb *self)
{
  if (self->table->close == NULL)
    return give_way (self, "the slot close of the device table is empty");
  for (guint k = 0; k < G_N_ELEMENTS (self->kernels); k++)
    if (self->kernels[k].program != NULL)
      self->table->program_unload (self->device, self->kernels[k].program);
  if (self->table->queue_destroy != NULL)
    self->table->queue_destroy (self->device, self->queue);
  self->table->close (self->device);
  if (self->module->fini != NULL)
    self->module->fini ();
  return TRUE;
}

void
conf_climb (const char *path, void (*say) (const char *word, const char *text, gint64 number))
{
  static const Step steps[CONF_N_RUNGS] = {
    [CONF_RUNG_FILE] = step_file,       [CONF_RUNG_LOAD] = step_load,
    [CONF_RUNG_ENTRY] = step_entry,     [CONF_RUNG_TABLE] = step_table,
    [CONF_RUNG_INIT] = step_init,       [CONF_RUNG_SCAN] = step_scan,
    [CONF_RUNG_OPEN] = step_open,       [CONF_RUNG_INFO] = step_info,
    [CONF_RUNG_ALLOC] = step_alloc,     [CONF_RUNG_QUEUE] = step_queue,
    [CONF_RUNG_COPY] = step_copy,       [CONF_RUNG_TARGET] = step_target,
    [CONF_RUNG_COMPILE] = step_compile, [CONF_RUNG_PROGRAM] = step_program,
    [CONF_RUNG_OP] = step_op,           [CONF_RUNG_OFFSET] = step_offset,
    [CONF_RUNG_SECOND] = step_second,   [CONF_RUNG_CLOSE] = step_close,
  };
  Climb self = { .path = path };
  for (guint i = 0; i < CONF_N_RUNGS; i++) {
    say ("rung", NULL, i);
    if (!steps[i](&self)) {
      say ("gap", self.gap, 0);
      return;
    }
  }
  say ("top", NULL, 0);
}
