/* SPDX-License-Identifier: MIT
 *
 * ptx-module.c: reads a PTX text: directives, variables, functions and their parameters.
 *
 * Variables in memory are of the device from the moment the module is read; shared ones of the module lie before those of
 * a function, and what a launch adds lies behind both. */
#include "ptx-reader.h"
#include "ptx-warp.h"
#include <string.h>

PtxFunction *
ptx_reader_function (PtxReader *reader, const char *name)
{
  PtxFunction *function = ptx_module_function (reader->module, name);
  function->line = function->line != 0 ? function->line : reader->token.line;
  return function;
}

/* ---- variables ---- */

typedef struct {
  PtxType type;
  guint64 align, n_elements, n_bytes;
  gboolean is_open; /* "name[]" */
  const char *name;
} Declaration;

static guint64
round_up (guint64 value, guint64 align)
{
  return (value + align - 1) & ~(align - 1);
}

/* Words that say how a parameter's pointer is used, or how a variable is seen, and change nothing. */
static void
skip_notes (PtxReader *reader, Declaration *declaration)
{
  static const char *const notes[] = { ".ptr",   ".global",  ".shared",   ".const",
                                       ".local", ".managed", ".volatile", ".visible" };
  for (gboolean is_more = TRUE; is_more;) {
    is_more = FALSE;
    for (guint i = 0; i < G_N_ELEMENTS (notes); i++)
      is_more |= ptx_reader_take_word (reader, notes[i]);
    if (ptx_reader_take_word (reader, ".align")) {
      guint64 align = ptx_reader_want_integer (reader, "an alignment", 1024);
      if (reader->error == NULL && (align == 0 || (align & (align - 1)) != 0))
        ptx_reader_fail (reader, "an alignment is a power of two");
      if (declaration->type == PTX_none)
        declaration->align = MAX (align, 1);
      is_more = TRUE;
    }
  }
}

static void
read_declared_type (PtxReader *reader, Declaration *declaration)
{
  const PtxToken *token = &reader->token;
  PtxType type = token->kind == PTX_TOKEN_WORD && token->n_chars > 1
                     ? ptx_type_of (token->text + 1, token->n_chars - 1)
                     : PTX_none;
  if (type == PTX_none || ptx_types[type].bits < 8) {
    ptx_reader_fail (reader, "a type of a variable is wanted, “%.*s” is there",
                     (int) MIN (token->n_chars, 60), token->text);
    type = PTX_b8;
  } else {
    ptx_reader_next (reader);
  }
  declaration->type = type;
}

static void
read_dimensions (PtxReader *reader, Declaration *declaration)
{
  declaration->n_elements = 1;
  while (ptx_reader_take_sign (reader, '[')) {
    if (ptx_reader_take_sign (reader, ']')) {
      declaration->is_open = TRUE;
      declaration->n_elements = 0;
      continue;
    }
    guint64 n = ptx_reader_want_integer (reader, "a number of elements", PTX_MAX_VARIABLE);
    ptx_reader_want (reader, ']');
    if (n != 0 && declaration->n_elements > PTX_MAX_VARIABLE / n)
      ptx_reader_fail (reader, "a variable has at most %d elements", PTX_MAX_VARIABLE);
    else
      declaration->n_elements *= n;
  }
}

static Declaration
read_declaration (PtxReader *reader)
{
  Declaration declaration = { .align = 0 };
  skip_notes (reader, &declaration);
  guint64 width = ptx_reader_take_word (reader, ".v2")   ? 2
                  : ptx_reader_take_word (reader, ".v4") ? 4
                                                         : 1;
  read_declared_type (reader, &declaration);
  skip_notes (reader, &declaration);
  declaration.name = ptx_reader_want_word (reader, "a variable's name");
  read_dimensions (reader, &declaration);
  guint64 size = ptx_types[declaration.type].bits / 8 * width;
  declaration.n_bytes = size * declaration.n_elements;
  declaration.align = MAX (declaration.align, size);
  return declaration;
}

static void
put_element (PtxReader *reader, const Declaration *declaration, guint8 *bytes, guint64 i)
{
  gboolean is_negative = ptx_reader_take_sign (reader, '-');
  guint64 value = reader->token.bits, size = ptx_types[declaration->type].bits / 8;
  PtxName name;
  if (reader->token.kind == PTX_TOKEN_WORD
      && ptx_reader_find (reader, reader->token.text, reader->token.n_chars, &name)
      && name.kind == PTX_NAME_VALUE)
    value = name.value;
  else if (reader->token.kind != PTX_TOKEN_NUMBER)
    ptx_reader_fail (reader, "a number is wanted, “%.*s” is there",
                     (int) MIN (reader->token.n_chars, 60), reader->token.text);
  else if (is_negative && reader->token.number == PTX_INTEGER)
    value = -value;
  if (reader->error == NULL && i >= declaration->n_elements)
    ptx_reader_fail (reader, "%s has %" G_GUINT64_FORMAT " elements", declaration->name,
                     declaration->n_elements);
  if (reader->error != NULL)
    return;
  memcpy (bytes + i * size, &value, MIN (size, sizeof value));
  ptx_reader_next (reader);
}

static void
read_initial (PtxReader *reader, const Declaration *declaration, guint8 *bytes)
{
  guint64 n = 0;
  if (!ptx_reader_take_sign (reader, '=')) {
    return;
  } else if (!ptx_reader_take_sign (reader, '{')) {
    put_element (reader, declaration, bytes, 0);
    return;
  }
  do
    put_element (reader, declaration, bytes, n++);
  while (ptx_reader_take_sign (reader, ','));
  ptx_reader_want (reader, '}');
}

/* Global and constant memory: of the device. */
static guint64
place_in_memory (PtxReader *reader, const Declaration *declaration)
{
  guint64 n_bytes = MAX (declaration->n_bytes, 1);
  guint64 address
      = n_bytes <= PTX_MAX_VARIABLE ? ptx_memory_take (reader->module->memory, n_bytes) : 0;
  if (address == 0) {
    ptx_reader_fail (reader, "no memory for %s, %" G_GUINT64_FORMAT " bytes", declaration->name,
                     n_bytes);
    return 0;
  }
  guint8 *bytes = ptx_memory_at (reader->module->memory, address, n_bytes);
  memset (bytes, 0, n_bytes);
  PtxVariable variable = { .address = address, .n_bytes = n_bytes };
  g_hash_table_insert (reader->module->variables, (char *) declaration->name,
                       g_memdup2 (&variable, sizeof variable));
  read_initial (reader, declaration, bytes);
  return address;
}

/* The next place in an area that is @*n_bytes long so far. */
static guint64
place_in (PtxReader *reader, guint32 *n_bytes, const Declaration *declaration)
{
  guint64 start = round_up (*n_bytes, declaration->align);
  if (declaration->n_bytes > PTX_MAX_BYTES || start + declaration->n_bytes > PTX_MAX_BYTES) {
    ptx_reader_fail (reader, "%s is too large: all of its kind have at most %d bytes",
                     declaration->name, PTX_MAX_BYTES);
    return 0;
  }
  *n_bytes = start + declaration->n_bytes;
  return start;
}

/* The bytes of a frame, whose place is known when it is entered. */
static PtxName
place_in_frame (PtxReader *reader, const Declaration *declaration)
{
  PtxName name = {
    .kind = PTX_NAME_ENTRY, .bits = 64, .space = PTX_LOCAL, .n_bytes = declaration->n_bytes
  };
  name.value = place_in (reader, &reader->function->n_local, declaration);
  name.index = ptx_reader_entry (reader, PTX_ENTRY_LOCAL, 0, name.value);
  return name;
}

static PtxName
place_shared (PtxReader *reader, const Declaration *declaration, gboolean is_extern)
{
  PtxName name = { .kind = PTX_NAME_VALUE, .bits = 64 };
  /* Dynamic memory is behind what the kernel has: the mark has ptx_reader_find () take a register for its place. */
  gboolean is_dynamic = is_extern || declaration->is_open,
           is_of_kernel = reader->function != NULL && reader->function->is_entry;
  if (is_dynamic)
    name.space = PTX_SHARED;
  else if (!is_of_kernel && reader->module->has_kernel)
    ptx_reader_fail (reader,
                     "%s: shared variables of several kernels have to stand before the kernels",
                     declaration->name);
  else
    name.value
        = PTX_SHARED_START
          + place_in (reader,
                      is_of_kernel ? &reader->function->n_shared : &reader->module->n_shared,
                      declaration);
  return name;
}

void
ptx_read_variable (PtxReader *reader, guint8 space, gboolean is_extern)
{
  do {
    Declaration declaration = read_declaration (reader);
    if (reader->error != NULL)
      return;
    PtxName name = { .kind = PTX_NAME_VALUE, .bits = 64 };
    if (space == PTX_SHARED)
      name = place_shared (reader, &declaration, is_extern);
    else if (reader->function != NULL && (space == PTX_LOCAL || space == PTX_PARAM))
      name = place_in_frame (reader, &declaration);
    else if (space == PTX_GLOBAL || space == PTX_CONST)
      name.value = place_in_memory (reader, &declaration);
    else
      ptx_reader_fail (reader, "%s: local variables are of functions", declaration.name);
    if (reader->error == NULL)
      ptx_reader_name (reader, declaration.name, &name);
  } while (ptx_reader_take_sign (reader, ','));
  ptx_reader_want (reader, ';');
}

/* ---- functions ---- */

/* Parameters of a kernel lie in the buffer of its launch, those of a function in its frame. */
static void
read_parameters (PtxReader *reader, GArray *slots)
{
  PtxFunction *function = reader->function;
  while (ptx_reader_take_word (reader, ".param")) {
    Declaration declaration = read_declaration (reader);
    PtxName name = { .kind = PTX_NAME_VALUE, .bits = 64, .space = PTX_PARAM };
    if (reader->error != NULL)
      return;
    if (function->is_entry)
      name.value = place_in (reader, &function->info.n_param_bytes, &declaration);
    else
      name = place_in_frame (reader, &declaration);
    PtxSlot slot = { name.value, declaration.n_bytes };
    g_array_append_val (slots, slot);
    ptx_reader_name (reader, declaration.name, &name);
    if (!ptx_reader_take_sign (reader, ','))
      break;
  }
  ptx_reader_want (reader, ')');
}

static void
read_up_to_three (PtxReader *reader, guint32 *out)
{
  for (guint i = 0; i < 3; i++) {
    out[i] = ptx_reader_want_integer (reader, "a number of threads", 1024);
    if (!ptx_reader_take_sign (reader, ','))
      break;
  }
}

/* The words between a function's parameters and its body. */
static void
read_performance (PtxReader *reader)
{
  PtxKernelInfo *info = &reader->function->info;
  while (reader->token.kind == PTX_TOKEN_WORD && reader->token.text[0] == '.'
         && reader->error == NULL) {
    guint32 numbers[3] = { 1, 1, 1 };
    if (ptx_reader_take_word (reader, ".maxntid")) {
      read_up_to_three (reader, numbers);
      info->max_threads = numbers[0] * numbers[1] * numbers[2];
    } else if (ptx_reader_take_word (reader, ".reqntid")) {
      read_up_to_three (reader, numbers);
      memcpy (info->required, numbers, sizeof numbers);
    } else if (ptx_reader_is_word (reader, ".pragma")) {
      while (!ptx_reader_take_sign (reader, ';') && reader->token.kind != PTX_TOKEN_END)
        ptx_reader_next (reader);
    } else {
      ptx_reader_next (reader);
      while (reader->token.kind == PTX_TOKEN_NUMBER || ptx_reader_is_sign (reader, ','))
        ptx_reader_next (reader);
    }
  }
}

/* The results of a function, or FALSE where it is named before. */
static void
begin_function (PtxReader *reader, gboolean is_entry)
{
  /* Results are written before the name, and need a function to be of. */
  g_autoptr (GArray) results = g_array_new (FALSE, TRUE, sizeof (PtxSlot));
  PtxFunction aside = { .module = reader->module,
                        .entries = g_array_new (FALSE, TRUE, sizeof (PtxEntryValue)) };
  g_autoptr (GArray) entries = aside.entries;
  reader->function = &aside;
  if (!is_entry && ptx_reader_take_sign (reader, '('))
    read_parameters (reader, results);
  const char *name = ptx_reader_want_word (reader, "a function's name");
  reader->function = NULL;
  if (reader->error != NULL)
    return;
  PtxFunction *function = ptx_reader_function (reader, name);
  if (function->is_defined) {
    ptx_reader_fail (reader, "the function %s is defined twice", name);
    return;
  }
  reader->function = function;
  function->is_entry = is_entry;
  function->n_shared = is_entry ? reader->module->n_shared : 0;
  reader->module->has_kernel |= is_entry;
  function->n_registers = aside.n_registers;
  function->n_local = aside.n_local;
  function->info.n_param_bytes = 0;
  g_array_set_size (function->params, 0);
  g_array_set_size (function->results, 0);
  g_array_set_size (function->entries, 0);
  g_array_append_vals (function->results, results->data, results->len);
  g_array_append_vals (function->entries, entries->data, entries->len);
}

static void
read_function (PtxReader *reader, gboolean is_entry)
{
  ptx_reader_open_scope (reader);
  begin_function (reader, is_entry);
  if (reader->error == NULL && ptx_reader_take_sign (reader, '('))
    read_parameters (reader, reader->function->params);
  if (reader->error == NULL)
    read_performance (reader);
  if (reader->error == NULL && !ptx_reader_take_sign (reader, ';')) {
    reader->function->is_defined = TRUE;
    ptx_read_body (reader);
  }
  ptx_reader_close_scope (reader);
  reader->function = NULL;
}

/* ---- the text ---- */

static void
read_target (PtxReader *reader)
{
  g_free (reader->module->target);
  reader->module->target = g_strdup (ptx_reader_want_word (reader, "a target"));
  while (ptx_reader_take_sign (reader, ','))
    ptx_reader_want_word (reader, "a target");
}

/* A section of data for debuggers, with braces. */
static void
skip_section (PtxReader *reader)
{
  while (!ptx_reader_take_sign (reader, '}') && reader->token.kind != PTX_TOKEN_END)
    ptx_reader_next (reader);
}

static void
read_directive (PtxReader *reader)
{
  gboolean is_extern = FALSE;
  for (gboolean is_more = TRUE; is_more;) {
    gboolean is_outside = ptx_reader_take_word (reader, ".extern");
    is_extern |= is_outside;
    is_more = is_outside || ptx_reader_take_word (reader, ".visible")
              || ptx_reader_take_word (reader, ".weak")
              || ptx_reader_take_word (reader, ".common");
  }
  if (ptx_reader_take_word (reader, ".version")
      || ptx_reader_take_word (reader, ".address_size"))
    ptx_reader_next (reader);
  else if (ptx_reader_take_word (reader, ".target"))
    read_target (reader);
  else if (ptx_reader_take_word (reader, ".entry"))
    read_function (reader, TRUE);
  else if (ptx_reader_take_word (reader, ".func"))
    read_function (reader, FALSE);
  else if (ptx_reader_take_word (reader, ".shared"))
    ptx_read_variable (reader, PTX_SHARED, is_extern);
  else if (ptx_reader_take_word (reader, ".global"))
    ptx_read_variable (reader, PTX_GLOBAL, is_extern);
  else if (ptx_reader_take_word (reader, ".const"))
    ptx_read_variable (reader, PTX_CONST, is_extern);
  else if (ptx_reader_take_word (reader, ".section"))
    skip_section (reader);
  else if (ptx_reader_is_word (reader, ".file") || ptx_reader_is_word (reader, ".pragma"))
    ptx_read_statement (reader);
  else
    ptx_reader_fail (reader, "“%.*s” is not known outside of functions",
                     (int) MIN (reader->token.n_chars, 60), reader->token.text);
}

/* The same slots as the caller's: number, and sizes. */
static gboolean
is_same_signature (const PtxInstr *call)
{
  const PtxFunction *callee = call->callee;
  guint n_results = call->start[1], n_params = call->start[2] - call->start[1];
  gboolean is_same = callee->is_defined && !callee->is_entry
                     && callee->results->len == n_results && callee->params->len == n_params;
  for (guint i = 0; i < call->start[2] && is_same; i++) {
    GArray *slots = i < n_results ? callee->results : callee->params;
    is_same = g_array_index (slots, PtxSlot, i < n_results ? i : i - n_results).n_bytes
              == call->operands[i].index;
  }
  return is_same;
}

static void
check_calls (PtxReader *reader, const PtxFunction *function)
{
  for (guint i = 0; i < function->instrs->len; i++) {
    const PtxInstr *instr = &g_array_index (function->instrs, PtxInstr, i);
    if (instr->callee == NULL || is_same_signature (instr))
      continue;
    reader->token.line = instr->line;
    ptx_reader_fail (reader, "%s %s", instr->callee_name,
                     instr->callee->is_defined ? "takes other parameters than the call has"
                                               : "is called, and has no body");
  }
}

static void
finish_functions (PtxReader *reader)
{
  GHashTableIter iter;
  PtxFunction *function;
  g_hash_table_iter_init (&iter, reader->module->functions);
  while (g_hash_table_iter_next (&iter, NULL, (gpointer *) &function)) {
    check_calls (reader, function);
    function->info.n_registers = function->n_registers;
    function->info.n_local_bytes = function->n_local;
    function->info.n_shared_bytes = function->n_shared;
  }
}

PtxModule *
ptx_module_new (const char *text, gssize n_bytes, PtxMemory *memory, GError **error)
{
  g_autoptr (PtxModule) module = ptx_module_empty (memory);
  gsize n = n_bytes < 0 ? strlen (text) : strnlen (text, n_bytes);
  PtxReader reader = { .module = module, .at = text, .end = text + n, .line = 1 };
  g_autoptr (GPtrArray) scopes
      = g_ptr_array_new_with_free_func ((GDestroyNotify) g_hash_table_unref);
  g_autoptr (GArray) labels = g_array_new (FALSE, TRUE, sizeof (PtxLabel));
  reader.scopes = scopes;
  reader.labels = labels;
  ptx_reader_open_scope (&reader);
  ptx_reader_next (&reader);
  while (reader.token.kind != PTX_TOKEN_END && reader.error == NULL)
    read_directive (&reader);
  if (reader.error == NULL)
    finish_functions (&reader);
  g_autofree char *reason = reader.error;
  if (reason == NULL)
    return g_steal_pointer (&module);
  g_set_error (error, PTX_ERROR, PTX_ERROR_SYNTAX, "PTX: %s", reason);
  return NULL;
}
