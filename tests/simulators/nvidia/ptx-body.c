/* SPDX-License-Identifier: MIT
 *
 * ptx-body.c: reads the body of a function: registers, variables, labels, instructions with their operands, calls.
 *
 * A label is known in the braces that it stands in, before and after it; branches that are open when braces close look
 * for it there first, then in those around them. */
#include "ptx-reader.h"
#include <string.h>

enum { MAX_OPERANDS = 40 };

/* ---- declarations ---- */

static void
name_registers (
    PtxReader *reader, const char *name, guint64 n, guint16 bits, gboolean is_numbered)
{
  PtxFunction *function = reader->function;
  PtxName what
      = { .kind = PTX_NAME_REGISTER, .index = function->n_registers, .bits = bits, .value = n };
  if (n > PTX_MAX_REGISTERS - function->n_registers) {
    ptx_reader_fail (reader, "a function has at most %d registers", PTX_MAX_REGISTERS);
    return;
  }
  g_autofree char *prefix = g_strconcat (name, "<", NULL);
  ptx_reader_name (reader,
                   is_numbered ? g_string_chunk_insert (reader->module->strings, prefix) : name,
                   &what);
  function->n_registers += n;
}

static PtxType
read_type (PtxReader *reader)
{
  const PtxToken *token = &reader->token;
  PtxType type = token->kind == PTX_TOKEN_WORD && token->n_chars > 1
                     ? ptx_type_of (token->text + 1, token->n_chars - 1)
                     : PTX_none;
  if (type == PTX_none || token->text[0] != '.')
    ptx_reader_fail (reader, "a type is wanted, “%.*s” is there",
                     (int) MIN (token->n_chars, 60), token->text);
  else
    ptx_reader_next (reader);
  return type;
}

void
ptx_read_registers (PtxReader *reader)
{
  PtxType type = read_type (reader);
  do {
    const char *name = ptx_reader_want_word (reader, "a register's name");
    if (ptx_reader_take_sign (reader, '<')) {
      guint64 n
          = ptx_reader_want_integer (reader, "the number of registers", PTX_MAX_REGISTERS);
      ptx_reader_want (reader, '>');
      name_registers (reader, name, n, ptx_types[type].bits, TRUE);
    } else {
      name_registers (reader, name, 1, ptx_types[type].bits, FALSE);
    }
  } while (ptx_reader_take_sign (reader, ','));
  ptx_reader_want (reader, ';');
}

/* ---- operands ---- */

typedef struct {
  PtxReader *reader;
  PtxInstr *instr;
  PtxOperand operands[MAX_OPERANDS];
  guint n;
} Statement;

static PtxOperand
constant (PtxReader *reader, guint64 value)
{
  return (PtxOperand){ .lanes = ptx_module_constant (reader->module, value), .bits = 64 };
}

/* The type of the values of a group of operands. */
static PtxType
type_of_group (const PtxInstr *instr, guint group)
{
  gboolean is_last = g_strcmp0 (instr->op->name, "slct") == 0 ? group == 3 : group > 0;
  return instr->n_types == 2 && is_last ? instr->type[1] : instr->type[0];
}

/* The bits of a number as a value of @type. */
static guint64
number_bits (const PtxToken *token, PtxType type, gboolean is_negative)
{
  if (token->number == PTX_INTEGER)
    return is_negative ? -token->bits : token->bits;
  double wide;
  float narrow;
  guint32 bits = token->bits;
  memcpy (&narrow, &bits, sizeof narrow);
  memcpy (&wide, &token->bits, sizeof wide);
  if (token->number == PTX_SINGLE && ptx_types[type].bits != 64)
    return bits ^ (is_negative ? 1u << 31 : 0);
  if (token->number == PTX_SINGLE)
    wide = narrow;
  wide = is_negative ? -wide : wide;
  narrow = wide;
  guint64 out = 0;
  if (ptx_types[type].bits == 64)
    memcpy (&out, &wide, sizeof wide);
  else
    memcpy (&out, &narrow, sizeof narrow);
  return out;
}

static PtxOperand
read_named (Statement *statement)
{
  PtxReader *reader = statement->reader;
  const PtxToken *token = &reader->token;
  PtxName name;
  if (token->n_chars == 1 && token->text[0] == '_') {
    ptx_reader_next (reader);
    return (PtxOperand){ .is_sink = TRUE, .bits = 64 };
  }
  if (ptx_reader_is_word (reader, "WARP_SZ")) {
    ptx_reader_next (reader);
    return constant (reader, PTX_N_LANES);
  }
  if (!ptx_reader_find (reader, token->text, token->n_chars, &name)) {
    ptx_reader_fail (reader, "%.*s is not defined", (int) MIN (token->n_chars, 60),
                     token->text);
    return (PtxOperand){ 0 };
  }
  ptx_reader_next (reader);
  PtxOperand operand = name.kind == PTX_NAME_VALUE ? constant (reader, name.value)
                                                   : (PtxOperand){ .index = name.index };
  operand.bits = name.bits;
  operand.space = name.space;
  return operand;
}

static PtxOperand
read_value (Statement *statement, PtxType type)
{
  PtxReader *reader = statement->reader;
  gboolean is_inverted = ptx_reader_take_sign (reader, '!');
  gboolean is_negative = ptx_reader_take_sign (reader, '-');
  PtxOperand operand;
  if (reader->token.kind == PTX_TOKEN_NUMBER) {
    operand = constant (reader, number_bits (&reader->token, type, is_negative));
    ptx_reader_next (reader);
  } else if (reader->token.kind == PTX_TOKEN_WORD && !is_negative) {
    operand = read_named (statement);
  } else {
    ptx_reader_fail (reader, "an operand is wanted, “%.*s” is there",
                     (int) MIN (reader->token.n_chars, 60), reader->token.text);
    return (PtxOperand){ 0 };
  }
  operand.is_negated = is_inverted;
  if (ptx_reader_is_sign (reader, '+') && operand.lanes != NULL) {
    ptx_reader_next (reader);
    operand.lanes = ptx_module_constant (
        reader->module,
        operand.lanes[0] + ptx_reader_want_integer (reader, "an offset", G_MAXINT32));
  }
  return operand;
}

static PtxOperand
read_address (Statement *statement)
{
  PtxReader *reader = statement->reader;
  ptx_reader_want (reader, '[');
  PtxOperand operand = read_value (statement, PTX_u64);
  if (ptx_reader_take_sign (reader, '+')) {
    gboolean is_negative = ptx_reader_take_sign (reader, '-');
    gint64 offset = ptx_reader_want_integer (reader, "an offset", (guint64) 1 << 40);
    operand.offset = is_negative ? -offset : offset;
  } else if (ptx_reader_take_sign (reader, '-')) {
    operand.offset = -(gint64) ptx_reader_want_integer (reader, "an offset", (guint64) 1 << 40);
  }
  ptx_reader_want (reader, ']');
  return operand;
}

static void
add (Statement *statement, PtxOperand operand)
{
  if (statement->n == MAX_OPERANDS)
    ptx_reader_fail (statement->reader, "an instruction has at most %d operands", MAX_OPERANDS);
  else
    statement->operands[statement->n++] = operand;
}

static void
read_vector (Statement *statement, PtxType type)
{
  PtxReader *reader = statement->reader;
  ptx_reader_want (reader, '{');
  do
    add (statement, read_value (statement, type));
  while (ptx_reader_take_sign (reader, ','));
  ptx_reader_want (reader, '}');
}

static gboolean
is_written (char letter)
{
  return strchr ("dDpo", letter) != NULL;
}

static void
check_operand (PtxReader *reader, const PtxOperand *operand, char letter)
{
  if (is_written (letter) && operand->lanes != NULL)
    ptx_reader_fail (reader, "a register is wanted where a result is written");
  else if (strchr ("pqo", letter) != NULL && operand->lanes == NULL && !operand->is_sink
           && operand->bits != 1)
    ptx_reader_fail (reader, "a predicate is wanted");
  else if (letter == 'i' && operand->lanes == NULL)
    ptx_reader_fail (reader, "a number is wanted, no register");
  else if (!is_written (letter) && operand->is_sink)
    ptx_reader_fail (reader, "_ is no value");
}

static void
read_label (PtxReader *reader, PtxInstr *instr)
{
  instr->label = ptx_reader_want_word (reader, "a label");
}

static void
read_group (Statement *statement, char letter, guint group)
{
  PtxReader *reader = statement->reader;
  PtxType type = type_of_group (statement->instr, group);
  guint first = statement->n;
  if (letter == 'l')
    read_label (reader, statement->instr);
  else if (letter == 'a')
    add (statement, read_address (statement));
  else if (strchr ("DS", letter) != NULL && ptx_reader_is_sign (reader, '{'))
    read_vector (statement, type);
  else
    add (statement, read_value (statement, type));
  for (guint i = first; i < statement->n && letter != 'a'; i++)
    check_operand (reader, &statement->operands[i], letter);
}

/* By the pattern of the op's row; 'o' is a predicate behind '|'. */
static void
read_operands (Statement *statement)
{
  PtxReader *reader = statement->reader;
  PtxInstr *instr = statement->instr;
  guint group = 0;
  for (const char *letter = instr->op->operands; *letter != '\0' && reader->error == NULL;
       letter++) {
    gboolean is_optional = letter[1] == '?';
    instr->start[group] = statement->n;
    if (*letter == 'o') {
      if (ptx_reader_take_sign (reader, '|'))
        read_group (statement, 'o', group);
      else
        add (statement, (PtxOperand){ .is_sink = TRUE });
    } else if (!is_optional || !ptx_reader_is_sign (reader, ';')) {
      if (group > 0)
        ptx_reader_want (reader, ',');
      read_group (statement, *letter, group);
    }
    letter += is_optional;
    group++;
  }
  instr->n_groups = group;
  for (; group <= PTX_MAX_GROUPS; group++)
    instr->start[group] = statement->n;
}

/* ---- calls ---- */

static void
read_slots (Statement *statement)
{
  PtxReader *reader = statement->reader;
  while (!ptx_reader_is_sign (reader, ')') && reader->error == NULL) {
    PtxName name;
    if (!ptx_reader_find (reader, reader->token.text, reader->token.n_chars, &name)
        || name.space != PTX_LOCAL || name.n_bytes == 0)
      ptx_reader_fail (reader, "a .param variable is wanted in a call, “%.*s” is there",
                       (int) MIN (reader->token.n_chars, 60), reader->token.text);
    ptx_reader_next (reader);
    add (statement, (PtxOperand){ .index = name.n_bytes,
                                  .offset = (gint64) name.value,
                                  .space = PTX_LOCAL });
    if (!ptx_reader_take_sign (reader, ','))
      break;
  }
  ptx_reader_want (reader, ')');
}

static void
read_call (Statement *statement)
{
  PtxReader *reader = statement->reader;
  PtxInstr *instr = statement->instr;
  if (ptx_reader_take_sign (reader, '(')) {
    read_slots (statement);
    ptx_reader_want (reader, ',');
  }
  instr->start[1] = statement->n;
  instr->callee_name = ptx_reader_want_word (reader, "a function's name");
  if (instr->callee_name[0] == '%')
    ptx_reader_fail (reader, "calls through %s, a register, are not known here",
                     instr->callee_name);
  if (ptx_reader_take_sign (reader, ',')) {
    ptx_reader_want (reader, '(');
    read_slots (statement);
  }
  instr->start[2] = statement->n;
  instr->n_groups = 2;
  if (reader->error == NULL)
    instr->callee = ptx_reader_function (reader, instr->callee_name);
}

/* ---- statements ---- */

static void
keep_operands (Statement *statement)
{
  PtxOperand *operands
      = g_memdup2 (statement->operands, sizeof (PtxOperand) * MAX (statement->n, 1));
  g_ptr_array_add (statement->reader->module->operands, operands);
  statement->instr->operands = operands;
}

static void
read_guard (Statement *statement)
{
  if (!ptx_reader_take_sign (statement->reader, '@'))
    return;
  statement->instr->has_guard = TRUE;
  statement->instr->guard = read_value (statement, PTX_pred);
  if (statement->instr->guard.bits != 1)
    ptx_reader_fail (statement->reader, "a predicate is wanted after @");
}

static void
read_opcode (PtxReader *reader, PtxInstr *instr)
{
  g_autofree char *reason = NULL;
  char text[128];
  g_strlcpy (text, reader->token.text, MIN (sizeof text, reader->token.n_chars + 1));
  if (reader->token.kind != PTX_TOKEN_WORD)
    ptx_reader_fail (reader, "an instruction is wanted, “%s” is there", text);
  else if (!ptx_read_opcode (text, instr, &reason))
    ptx_reader_fail (reader, "%s", reason);
  else
    ptx_reader_next (reader);
}

static void
read_instruction (PtxReader *reader)
{
  PtxInstr instr = { .line = reader->token.line, .target = G_MAXUINT32 };
  Statement statement = { .reader = reader, .instr = &instr };
  read_guard (&statement);
  read_opcode (reader, &instr);
  if (reader->error != NULL)
    return;
  if (strcmp (instr.op->name, "call") == 0)
    read_call (&statement);
  else
    read_operands (&statement);
  ptx_reader_want (reader, ';');
  keep_operands (&statement);
  g_array_append_val (reader->function->instrs, instr);
}

static gboolean
is_label (const PtxReader *reader)
{
  const char *after = reader->at;
  while (after < reader->end && (*after == ' ' || *after == '\t'))
    after++;
  return reader->token.kind == PTX_TOKEN_WORD && after < reader->end && *after == ':';
}

static void
read_label_here (PtxReader *reader)
{
  PtxLabel label = { .place = reader->function->instrs->len };
  label.name = ptx_reader_want_word (reader, "a label");
  ptx_reader_want (reader, ':');
  g_array_append_val (reader->labels, label);
}

static void
skip_line (PtxReader *reader)
{
  const char *end = memchr (reader->at, '\n', reader->end - reader->at);
  reader->at = end != NULL ? end : reader->end;
  ptx_reader_next (reader);
}

static void
skip_to (PtxReader *reader, char sign)
{
  while (!ptx_reader_is_sign (reader, sign) && reader->token.kind != PTX_TOKEN_END)
    ptx_reader_next (reader);
  ptx_reader_want (reader, sign);
}

void
ptx_read_statement (PtxReader *reader)
{
  static const struct {
    const char *word;
    guint8 space;
  } variables[] = { { ".local", PTX_LOCAL },
                    { ".shared", PTX_SHARED },
                    { ".param", PTX_PARAM },
                    { ".global", PTX_GLOBAL },
                    { ".const", PTX_CONST } };
  for (guint i = 0; i < G_N_ELEMENTS (variables); i++)
    if (ptx_reader_take_word (reader, variables[i].word)) {
      ptx_read_variable (reader, variables[i].space, FALSE);
      return;
    }
  if (ptx_reader_take_word (reader, ".reg"))
    ptx_read_registers (reader);
  else if (ptx_reader_is_word (reader, ".loc") || ptx_reader_is_word (reader, ".file"))
    skip_line (reader);
  else if (ptx_reader_is_word (reader, ".pragma"))
    skip_to (reader, ';');
  else if (is_label (reader))
    read_label_here (reader);
  else if (!ptx_reader_take_sign (reader, ';'))
    read_instruction (reader);
}

/* Branches from @first_instr on whose label is among those from @first_label on. */
static void
resolve (PtxReader *reader, guint first_instr, guint first_label, gboolean is_last)
{
  GArray *instrs = reader->function->instrs;
  for (guint i = first_instr; i < instrs->len; i++) {
    PtxInstr *instr = &g_array_index (instrs, PtxInstr, i);
    for (guint j = first_label; j < reader->labels->len && instr->label != NULL; j++) {
      const PtxLabel *label = &g_array_index (reader->labels, PtxLabel, j);
      if (strcmp (label->name, instr->label) == 0) {
        instr->target = label->place;
        instr->label = NULL;
      }
    }
    if (is_last && instr->label != NULL) {
      reader->token.line = instr->line;
      ptx_reader_fail (reader, "the label %s is not defined", instr->label);
    }
  }
}

static void
read_block (PtxReader *reader, gboolean is_outer)
{
  guint first_instr = reader->function->instrs->len, first_label = reader->labels->len;
  ptx_reader_open_scope (reader);
  ptx_reader_want (reader, '{');
  while (!ptx_reader_is_sign (reader, '}') && reader->error == NULL) {
    if (reader->token.kind == PTX_TOKEN_END)
      ptx_reader_want (reader, '}');
    else if (ptx_reader_is_sign (reader, '{'))
      read_block (reader, FALSE);
    else
      ptx_read_statement (reader);
  }
  if (reader->error == NULL)
    resolve (reader, first_instr, first_label, is_outer);
  ptx_reader_take_sign (reader, '}');
  g_array_set_size (reader->labels, first_label);
  ptx_reader_close_scope (reader);
}

void
ptx_read_body (PtxReader *reader)
{
  read_block (reader, TRUE);
  if (reader->error == NULL)
    ptx_find_reconvergence (reader->function);
}
