/* SPDX-License-Identifier: MIT
 *
 * sample-compile.c: the compiler: what the core may use, and from its linear program to instructions.
 *
 * The core has done what is common to all hardware: tiles, loops, local memory, ops that we lack. Left is
 * one walk over the list. Every value gets a register when it is made and gives it back after its last use;
 * what finds none lives in the stash. A value that is used inside a loop which began after it was made is
 * needed until that loop's end. */
#include "tiny-sample.h"

enum {
  TRUE_REGISTER = 0,
  SCRATCH = 1,
  FIRST_PLACE = 4,
  N_PLACES = SAMPLE_REGISTERS + SAMPLE_STASH_SLOTS
};

/* ---- the hardware, as data ---- */
TinyStatus
tiny_sample_target (const char *arch, TinyTarget *out, Error *error)
{
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_TRY (tiny_check_arch (arch, "sample16", error));
  TINY_FILL (
      out, .flags = TINY_TARGET_GROUPS, .arch = "sample16", .index_dtype = TINY_DTYPE_I32,
      .n_vector_registers = SAMPLE_REGISTERS - FIRST_PLACE,
      .max_lanes = 1, /* of one item: the hardware's lanes are the items */
      .n_threads = 1, .max_params = SAMPLE_BUFFERS, .max_grid = { 1 << 20, 1 << 16, 1 << 16 },
      .max_group = { SAMPLE_LANES, SAMPLE_LANES, SAMPLE_LANES },
      .max_group_total = SAMPLE_LANES, .local_bytes = SAMPLE_LOCAL_WORDS * 4);
  const uint32_t words = TINY_DTYPE_BIT (TINY_DTYPE_I32) | TINY_DTYPE_BIT (TINY_DTYPE_U32)
                         | TINY_DTYPE_BIT (TINY_DTYPE_F32);
  tiny_target_declare (out, words | TINY_DTYPE_BIT (TINY_DTYPE_BOOL), 0, 0);
  out->dtypes_storage = words; /* bools are in registers only */
  out->ops[TINY_DTYPE_BOOL]
      &= ~(TINY_INSTR_BIT (TINY_INSTR_LOAD) | TINY_INSTR_BIT (TINY_INSTR_STORE));
  return TINY_STATUS_OK;
}

/* What one instruction does, by TinyInstrOp: ops, */
static const uint8_t elementwise[TINY_N_INSTRS] = {
  [TINY_INSTR_CAST] = SAMPLE_CAST,     [TINY_INSTR_BITCAST] = SAMPLE_MOVE,
  [TINY_INSTR_NEG] = SAMPLE_NEG,       [TINY_INSTR_RECIP] = SAMPLE_RECIP,
  [TINY_INSTR_SQRT] = SAMPLE_SQRT,     [TINY_INSTR_TRUNC] = SAMPLE_TRUNC,
  [TINY_INSTR_ADD] = SAMPLE_ADD,       [TINY_INSTR_SUB] = SAMPLE_SUB,
  [TINY_INSTR_MUL] = SAMPLE_MUL,       [TINY_INSTR_IDIV] = SAMPLE_DIV,
  [TINY_INSTR_FDIV] = SAMPLE_DIV,      [TINY_INSTR_MOD] = SAMPLE_MOD,
  [TINY_INSTR_MAX] = SAMPLE_MAX,       [TINY_INSTR_CMPLT] = SAMPLE_LESS,
  [TINY_INSTR_CMPNE] = SAMPLE_DIFFERS, [TINY_INSTR_CMPEQ] = SAMPLE_EQUALS,
  [TINY_INSTR_AND] = SAMPLE_AND,       [TINY_INSTR_OR] = SAMPLE_OR,
  [TINY_INSTR_XOR] = SAMPLE_XOR,       [TINY_INSTR_SHL] = SAMPLE_SHL,
  [TINY_INSTR_SHR] = SAMPLE_SHR,       [TINY_INSTR_WHERE] = SAMPLE_SELECT,
  [TINY_INSTR_MULACC] = SAMPLE_MULACC,
};
/* and what is known without a source. */
static const uint8_t numbers[TINY_N_INSTRS] = {
  [TINY_INSTR_CONST] = SAMPLE_CONST,
  [TINY_INSTR_VARIABLE] = SAMPLE_VARIABLE,
  [TINY_INSTR_GRID] = SAMPLE_GRID,
  [TINY_INSTR_GROUP] = SAMPLE_GROUP,
};

/* ---- the compiler's notes ---- */
typedef struct {
  uint32_t last;  /* the last instruction of the list that needs the value */
  uint32_t place; /* a register; from SAMPLE_REGISTERS on: a slot of the stash */
  uint32_t again; /* RANGE: where in the code a round begins; before that: the list's END */
  uint32_t leave; /* RANGE, IF: the MASK in the code that leaves it */
} Value;

typedef struct {
  const TinyLinear *linear;
  Value *values;             /* by instruction of the list */
  uint32_t owners[N_PLACES]; /* the instruction whose value is there, plus 1; 0: free */
  uint32_t n_places;         /* that ever had an owner */
  uint32_t n_local, depth;
  SampleInstr *code;
  uint32_t n;
  const char *wrong; /* why it cannot be compiled, or NULL */
} Compiler;

enum { MOST = 8 }; /* that one instruction of the list becomes */

static uint32_t
source_of (const Compiler *self, uint32_t i, uint32_t s)
{
  return self->linear->sources[self->linear->instrs[i].sources + s];
}

static void
emit (Compiler *self, SampleInstr instr)
{
  self->code[self->n++] = instr;
}

/* ---- how long each value is needed ---- */

/* @at uses value @used: it has to last to the end of the outermost loop that began in between. */
static void
need (Compiler *self, uint32_t used, uint32_t at, const uint32_t *open, uint32_t n_open)
{
  uint32_t i = 0;
  while (i < n_open && open[i] <= used)
    i++;
  const uint32_t last = i < n_open ? self->values[open[i]].again : at;
  if (self->values[used].last < last)
    self->values[used].last = last;
}

static void
find_lives (Compiler *self)
{
  const TinyLinear *linear = self->linear;
  uint32_t open[SAMPLE_DEPTH],
      n_open = 0; /* the loops around an instruction, outermost first */
  for (uint32_t i = 0; i < linear->n_instrs; i++)
    if (linear->instrs[i].op == TINY_INSTR_END)
      self->values[source_of (self, i, 0)].again = i;
  for (uint32_t i = 0; i < linear->n_instrs && self->wrong == NULL; i++) {
    const TinyInstr *instr = &linear->instrs[i];
    n_open -= instr->op == TINY_INSTR_END;
    for (uint32_t s = 0; s < instr->n_sources; s++)
      need (self, source_of (self, i, s), i, open, n_open);
    if (instr->op == TINY_INSTR_END) /* each round looks at the bound */
      need (self, source_of (self, source_of (self, i, 0), 0), i, open, n_open);
    if (instr->op == TINY_INSTR_RANGE && n_open == SAMPLE_DEPTH)
      self->wrong = "loops are nested too deeply";
    else if (instr->op == TINY_INSTR_RANGE)
      open[n_open++] = i;
  }
}

/* ---- registers ---- */

/* The register with value @i; one from the stash comes to the @k-th scratch register. */
static uint8_t
operand (Compiler *self, uint32_t i, uint32_t k)
{
  const uint32_t place = self->values[i].place, slot = place - SAMPLE_REGISTERS;
  if (place < SAMPLE_REGISTERS)
    return (uint8_t) place;
  emit (self, (SampleInstr){ .op = SAMPLE_FETCH, .d = (uint8_t) (SCRATCH + k), .n = slot });
  return (uint8_t) (SCRATCH + k);
}

/* Writes value @i by @instr, which has read by then what is not needed after @i. */
static void
emit_value (Compiler *self, uint32_t i, SampleInstr instr)
{
  const uint32_t place = self->values[i].place, slot = place - SAMPLE_REGISTERS;
  instr.d = (uint8_t) (place < SAMPLE_REGISTERS ? place : SCRATCH);
  emit (self, instr);
  if (place >= SAMPLE_REGISTERS)
    emit (self, (SampleInstr){ .op = SAMPLE_STASH, .a = SCRATCH, .n = slot });
}

/* The same where @i makes the value, which has no place yet. */
static void
emit_new (Compiler *self, uint32_t i, SampleInstr instr)
{
  uint32_t place = FIRST_PLACE;
  for (uint32_t p = FIRST_PLACE; p < self->n_places; p++)
    if (self->owners[p] != 0 && self->values[self->owners[p] - 1].last <= i)
      self->owners[p] = 0;
  while (place < N_PLACES - 1 && self->owners[place] != 0)
    place++;
  if (self->owners[place] != 0)
    self->wrong = "more values at once than there is room for";
  self->owners[place] = i + 1;
  self->n_places = place >= self->n_places ? place + 1 : self->n_places;
  self->values[i].place = place;
  if (instr.op != SAMPLE_END)
    emit_value (self, i, instr);
}

/* ---- instruction by instruction ---- */
static uint8_t
type_of (const TinyInstr *instr)
{
  return instr->dtype == TINY_DTYPE_F32   ? SAMPLE_F32
         : instr->dtype == TINY_DTYPE_I32 ? SAMPLE_I32
         : instr->dtype == TINY_DTYPE_U32 ? SAMPLE_U32
                                          : SAMPLE_BOOL;
}

static uint32_t
number_of (const TinyInstr *instr)
{
  double number;
  uint32_t bits = (uint32_t) instr->arg;
  memcpy (&number, &instr->arg, sizeof number);
  const float single = (float) number;
  if (instr->op == TINY_INSTR_CONST && instr->dtype == TINY_DTYPE_F32)
    memcpy (&bits, &single, sizeof bits);
  return bits;
}

static void
compile_element (Compiler *self, uint32_t i, const TinyInstr *instr)
{
  uint8_t from[3] = { 0 };
  for (uint32_t s = 0; s < instr->n_sources; s++)
    from[s] = operand (self, source_of (self, i, s), s);
  const uint32_t typed = source_of (self, i, instr->op == TINY_INSTR_WHERE);
  SampleInstr out = { .op = elementwise[instr->op], .a = from[0], .b = from[1], .c = from[2] };
  out.type = type_of (&self->linear->instrs[typed]);
  if (instr->op == TINY_INSTR_CAST)
    out.p = type_of (instr);
  emit_new (self, i, out);
}

/* LOAD and STORE: index, then gate and alternative, or value and gate. */
static void
compile_access (Compiler *self, uint32_t i, const TinyInstr *instr)
{
  const uint32_t to = source_of (self, i, 0);
  const TinyInstr *memory = &self->linear->instrs[to];
  const bool stores = instr->op == TINY_INSTR_STORE, is_local = memory->op == TINY_INSTR_LOCAL;
  uint8_t from[3] = { 0, TRUE_REGISTER, TRUE_REGISTER };
  for (uint32_t s = 1; s < instr->n_sources; s++)
    from[s - 1] = operand (self, source_of (self, i, s), s - 1);
  SampleInstr out = { .op = is_local ? SAMPLE_LOAD_LOCAL : SAMPLE_LOAD };
  if (stores)
    out.op = is_local ? SAMPLE_STORE_LOCAL : SAMPLE_STORE;
  out.a = from[0];
  out.b = from[1];
  out.c = from[2];
  out.p = (uint16_t) (is_local ? self->values[to].place : (uint32_t) memory->arg);
  if (memory->op != TINY_INSTR_REGISTER && stores)
    emit (self, out);
  else if (memory->op != TINY_INSTR_REGISTER)
    emit_new (self, i, out);
  else if (stores)
    emit_value (self, to, (SampleInstr){ .op = SAMPLE_MOVE, .a = from[0] });
  else
    emit_new (self, i, (SampleInstr){ .op = SAMPLE_MOVE, .a = operand (self, to, 0) });
}

/* A loop is CONST counter, PUSH, LESS counter < bound, MASK, …, INC counter, JUMP to LESS, POP; an IF
 * is PUSH, MASK, …, POP. */
static void
compile_begin (Compiler *self, uint32_t i, const TinyInstr *instr)
{
  uint8_t gate = SCRATCH;
  if (instr->op == TINY_INSTR_RANGE)
    emit_new (self, i, (SampleInstr){ .op = SAMPLE_CONST });
  emit (self, (SampleInstr){ .op = SAMPLE_PUSH });
  self->values[i].again = self->n;
  if (instr->op == TINY_INSTR_IF)
    gate = operand (self, source_of (self, i, 0), 0);
  else {
    SampleInstr less = { .op = SAMPLE_LESS, .type = SAMPLE_I32, .d = SCRATCH };
    less.a = operand (self, i, 0);
    less.b = operand (self, source_of (self, i, 0), 1);
    emit (self, less);
  }
  self->values[i].leave = self->n;
  emit (self, (SampleInstr){ .op = SAMPLE_MASK, .a = gate });
  if (++self->depth > SAMPLE_DEPTH)
    self->wrong = "loops are nested too deeply";
}

static void
compile_end (Compiler *self, uint32_t i, const TinyInstr *instr)
{
  const uint32_t begin = source_of (self, i, 0);
  if (instr->op == TINY_INSTR_END) {
    emit_value (self, begin, (SampleInstr){ .op = SAMPLE_INC, .a = operand (self, begin, 0) });
    emit (self, (SampleInstr){ .op = SAMPLE_JUMP, .n = self->values[begin].again });
  }
  self->code[self->values[begin].leave].n = self->n;
  emit (self, (SampleInstr){ .op = SAMPLE_POP });
  self->depth--;
}

static void
compile_instr (Compiler *self, uint32_t i)
{
  const TinyInstr *instr = &self->linear->instrs[i];
  const uint32_t op = instr->op < TINY_N_INSTRS ? instr->op : 0;
  if (numbers[op] != 0)
    emit_new (self, i, (SampleInstr){ .op = numbers[op], .n = number_of (instr) });
  else if (elementwise[op] != 0 && instr->lanes == 1)
    compile_element (self, i, instr);
  else if (op == TINY_INSTR_LOAD || op == TINY_INSTR_STORE)
    compile_access (self, i, instr);
  else if (op == TINY_INSTR_RANGE || op == TINY_INSTR_IF)
    compile_begin (self, i, instr);
  else if (op == TINY_INSTR_END || op == TINY_INSTR_ENDIF)
    compile_end (self, i, instr);
  else if (op == TINY_INSTR_REGISTER)
    emit_new (self, i, (SampleInstr){ .op = SAMPLE_END }); /* a place and nothing in it */
  else if (op == TINY_INSTR_LOCAL) {
    self->values[i].place = self->n_local;
    self->n_local += (uint32_t) instr->arg;
  } else if (op != TINY_INSTR_PARAM && op != TINY_INSTR_BARRIER) /* the lanes are in step */
    self->wrong = "an op that the target does not declare";
  if (self->n_local > SAMPLE_LOCAL_WORDS)
    self->wrong = "too much local memory";
}

static TinyStatus
finish (Compiler *self, void **out_data, uint64_t *out_size, Error *error)
{
  const uint32_t n_stash
      = self->n_places > SAMPLE_REGISTERS ? self->n_places - SAMPLE_REGISTERS : 0;
  const SampleHead head = { self->n, n_stash };
  const size_t size = self->n * sizeof *self->code;
  void *code = NULL;
  if (self->wrong != NULL)
    return tiny_fail (error, TINY_STATUS_COMPILE, "%s: %s", self->linear->name, self->wrong);
  TinyPacked *packed = tiny_pack (host, &head, sizeof head, size, &code);
  if (packed == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory", self->linear->name);
  memcpy (code, self->code, size);
  tiny_pack_end (packed, size, out_data, out_size);
  return TINY_STATUS_OK;
}

TinyStatus
tiny_sample_compile (const TinyCompileArgs *args,
                     void **out_data,
                     uint64_t *out_size,
                     Error *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  TINY_TRY (TINY_CHECK_IN (args->linear, 0, error));
  const uint32_t n = args->linear->n_instrs;
  Compiler *self = calloc (1, sizeof *self);
  Value *values = calloc (n + 1, sizeof *values);
  SampleInstr *code = calloc ((size_t) MOST * n + 1, sizeof *code);
  TinyStatus status = tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory", args->name);
  if (self != NULL && values != NULL && code != NULL) {
    *self = (Compiler){ .linear = args->linear, .values = values, .code = code };
    find_lives (self);
    for (uint32_t i = 0; i < n && self->wrong == NULL; i++)
      compile_instr (self, i);
    emit (self, (SampleInstr){ .op = SAMPLE_END });
    status = finish (self, out_data, out_size, error);
  }
  free (self);
  free (values);
  free (code);
  return status;
}
