/* SPDX-License-Identifier: MIT
 *
 * ref-program.c: programs as bytes, and the complete check of them.
 *
 * Whoever makes linear programs can be wrong, and a file from a cache can be damaged: nothing is
 * run before op numbers, arity, dtypes, lanes, the order of sources and the nesting of blocks have
 * been found right, so that the interpreter need not look again. */
#include "ref.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- programs ---- */

/* What compile() writes and program_load() reads: this, then instructions, sources, parameters. */
typedef struct {
  char magic[8];     /* "TINYREF" and the version of this layout */
  uint64_t checksum; /* of everything that follows it */
  uint32_t n_instrs, n_sources, n_params, n_variables;
  uint32_t group[3], reserved;
} Blob;

static const char blob_magic[8] = "TINYREF1";

/* Of all that follows the sum itself in the blob at @data: FNV-1a, 64 bits (Fowler, Noll, Vo). */
static uint64_t
checksum (const void *data, uint64_t size)
{
  const unsigned char *bytes = data;
  uint64_t hash = UINT64_C (0xcbf29ce484222325);
  for (uint64_t i = offsetof (Blob, n_instrs); i < size; i++)
    hash = (hash ^ bytes[i]) * UINT64_C (0x100000001b3);
  return hash;
}

static bool
is_memory (const TinyInstr *instr)
{
  return instr->op == TINY_INSTR_PARAM || instr->op == TINY_INSTR_LOCAL;
}

/* A buffer, register, or block is no value: only some sources may be one. */
static bool
is_value (const TinyInstr *instr)
{
  return !is_memory (instr) && instr->op != TINY_INSTR_REGISTER
         && instr->dtype != TINY_DTYPE_VOID;
}

static bool
is_scalar_integer (const TinyInstr *instr)
{
  return is_value (instr) && instr->lanes == 1 && (INTS & TINY_DTYPE_BIT (instr->dtype)) != 0;
}

/* A gate, that is: a bool for the whole access or one for each lane. */
static bool
is_gate (const TinyInstr *instr, unsigned lanes)
{
  return is_value (instr) && instr->dtype == TINY_DTYPE_BOOL
         && (instr->lanes == 1 || instr->lanes == lanes);
}

/* The checks below answer what is wrong with an instruction, or NULL. */
static const char *
check_element (const TinyPluginProgram *self, const TinyInstr *instr)
{
  bool is_where = instr->op == TINY_INSTR_WHERE;
  bool converts = instr->op == TINY_INSTR_CAST || instr->op == TINY_INSTR_BITCAST;
  bool compares = instr->op == TINY_INSTR_CMPLT || instr->op == TINY_INSTR_CMPNE
                  || instr->op == TINY_INSTR_CMPEQ;
  const TinyInstr *first = ref_source (self, instr, is_where);
  for (unsigned i = 0; i < instr->n_sources; i++) {
    const TinyInstr *operand = ref_source (self, instr, i);
    if (!is_value (operand))
      return "takes what is no value";
    if (operand->lanes != instr->lanes)
      return "has sources of other lanes than its own";
    if (operand->dtype != (is_where && i == 0 ? TINY_DTYPE_BOOL : first->dtype))
      return "has sources of the wrong dtype";
  }
  if ((ref_ops[instr->op].dtypes & TINY_DTYPE_BIT (first->dtype)) == 0)
    return "does not exist for its sources' dtype";
  if (instr->dtype == TINY_DTYPE_VOID)
    return "has no dtype";
  if (instr->op == TINY_INSTR_BITCAST
      && (instr->dtype == TINY_DTYPE_BOOL
          || ref_n_bytes (instr->dtype) != ref_n_bytes (first->dtype)))
    return "changes the size";
  if (!converts && instr->dtype != (compares ? TINY_DTYPE_BOOL : first->dtype))
    return "has the wrong dtype for its sources";
  return NULL;
}

static const char *
check_access (const TinyPluginProgram *self, const TinyInstr *instr)
{
  const TinyInstr *target = ref_source (self, instr, 0);
  bool stores = instr->op == TINY_INSTR_STORE;
  if (stores
      && (instr->dtype != TINY_DTYPE_VOID
          || !is_value (ref_source (self, instr, instr->n_sources == 2 ? 1 : 2))))
    return "is of a dtype, or of no value";
  if (target->op == TINY_INSTR_REGISTER) {
    const TinyInstr *value = stores ? ref_source (self, instr, 1) : instr;
    if (instr->n_sources != 1u + stores)
      return "of a register has too many sources";
    return value->dtype == target->dtype && value->lanes == target->lanes
               ? NULL
               : "does not have the register's dtype and lanes";
  }
  if (!is_memory (target))
    return "goes to what is no buffer";
  if (instr->n_sources < 2u + stores || (!stores && instr->n_sources == 3))
    return "has too few sources";
  if (!is_scalar_integer (ref_source (self, instr, 1)))
    return "has an index that is no integer scalar";
  const TinyInstr *value = stores ? ref_source (self, instr, 2) : instr;
  if (value->dtype != target->dtype)
    return "does not have the buffer's dtype";
  if (stores && value->lanes != instr->lanes)
    return "has other lanes than its value";
  if (instr->n_sources == 4) {
    if (!is_gate (ref_source (self, instr, stores ? 3 : 2), instr->lanes))
      return "has a gate that is no bool of 1 or as many lanes";
    const TinyInstr *other = ref_source (self, instr, 3);
    if (!stores
        && (!is_value (other) || other->dtype != instr->dtype || other->lanes != instr->lanes))
      return "has an alternative of another type";
  }
  if (target->op == TINY_INSTR_PARAM) {
    uint32_t flag = stores ? TINY_PARAM_WRITE : TINY_PARAM_READ;
    if ((self->params[target->arg].flags & flag) == 0)
      return stores ? "writes a parameter without WRITE" : "reads a parameter without READ";
  }
  return NULL;
}

static const char *
check_value (const TinyPluginProgram *self, const TinyInstr *instr)
{
  if ((ref_ops[instr->op].dtypes & TINY_DTYPE_BIT (instr->dtype)) == 0)
    return "does not exist for its dtype";
  bool can_be_vector = instr->op == TINY_INSTR_CONST || instr->op == TINY_INSTR_REGISTER
                       || instr->op == TINY_INSTR_VECTOR;
  if (instr->lanes != 1 && !can_be_vector)
    return "has more than one lane";
  for (unsigned i = 0; i < instr->n_sources; i++)
    if (!is_value (ref_source (self, instr, i))
        || ref_source (self, instr, i)->dtype != instr->dtype
        || (instr->op == TINY_INSTR_VECTOR && ref_source (self, instr, i)->lanes != 1))
      return "has a source of another type";
  switch (instr->op) {
  case TINY_INSTR_PARAM:
    if (instr->arg < 0 || instr->arg >= self->n_params
        || self->params[instr->arg].dtype != instr->dtype)
      return "is no parameter of that dtype";
    return NULL;
  case TINY_INSTR_VARIABLE:
    return instr->arg >= 0 && instr->arg < self->n_variables ? NULL : "is no variable";
  case TINY_INSTR_GRID:
  case TINY_INSTR_GROUP:
    return instr->arg >= 0 && instr->arg < 3 ? NULL : "has no such axis";
  case TINY_INSTR_LOCAL:
    return instr->arg >= 0 && instr->arg <= 1 << 24 ? NULL : "has a wrong size";
  case TINY_INSTR_VECTOR:
    return instr->n_sources == 1 || instr->n_sources == instr->lanes
               ? NULL
               : "has a wrong number of lanes";
  case TINY_INSTR_EXTRACT:
    return instr->arg >= 0 && instr->arg < ref_source (self, instr, 0)->lanes
               ? NULL
               : "has no such lane";
  default:
    return NULL;
  }
}

/* Fragments of the unit, and work-items that all hold one. */
static const char *
check_unit (const TinyPluginProgram *self, const TinyInstr *instr)
{
  const TinyUnit *unit = ref_find_unit (instr->arg);
  if (unit == NULL)
    return "is no matrix unit";
  const struct {
    unsigned dtype, lanes;
  } wanted[] = { { unit->a_dtype, tiny_count_in_unit (unit, unit->a) },
                 { unit->b_dtype, tiny_count_in_unit (unit, unit->b) },
                 { unit->c_dtype, tiny_count_in_unit (unit, unit->c) } };
  for (unsigned i = 0; i < 3; i++) {
    const TinyInstr *source = ref_source (self, instr, i);
    if (!is_value (source) || source->dtype != wanted[i].dtype
        || source->lanes != wanted[i].lanes)
      return "has a source that is no fragment of its";
  }
  if (instr->dtype != wanted[2].dtype || instr->lanes != wanted[2].lanes)
    return "gives what is no fragment of its";
  return self->group[0] % (1u << unit->n_thread_bits) == 0
             ? NULL
             : "wants more work-items along axis 0 of the group";
}

/* Beyond MAX_LANES there are only fragments, and those are carried, not computed with. */
static const char *
check_lanes (const TinyPluginProgram *self, const TinyInstr *instr)
{
  const bool may_be_wide = ref_may_be_wide (self->instrs, self->sources, instr);
  if (instr->lanes < 1 || (instr->lanes > MAX_LANES && !may_be_wide))
    return "has no lanes or too many";
  for (unsigned i = 0; i < instr->n_sources; i++)
    if (ref_source (self, instr, i)->lanes > MAX_LANES && !may_be_wide
        && ref_ops[instr->op].form != 'U')
      return "takes a fragment";
  return NULL;
}

/* @open is the innermost open RANGE or IF, plus 1. */
static const char *
check_block (TinyPluginProgram *self, uint32_t i, uint32_t *open)
{
  const TinyInstr *instr = &self->instrs[i];
  bool closes = instr->op == TINY_INSTR_END || instr->op == TINY_INSTR_ENDIF;
  if (instr->lanes != 1)
    return "has more than one lane";
  if (instr->op != TINY_INSTR_RANGE && instr->dtype != TINY_DTYPE_VOID)
    return "has a dtype";
  if (instr->op == TINY_INSTR_RANGE
      && (!is_scalar_integer (ref_source (self, instr, 0))
          || ref_source (self, instr, 0)->dtype != instr->dtype))
    return "has a bound that is no integer scalar of its dtype";
  if (instr->op == TINY_INSTR_IF && (!is_gate (ref_source (self, instr, 0), 1)))
    return "has a condition that is no bool scalar";
  if (!closes) {
    if (instr->op != TINY_INSTR_BARRIER)
      *open = i + 1;
    return NULL;
  }
  uint32_t opener = self->sources[instr->sources];
  unsigned wanted = instr->op == TINY_INSTR_END ? TINY_INSTR_RANGE : TINY_INSTR_IF;
  if (*open != opener + 1 || self->instrs[opener].op != wanted)
    return "does not close the innermost open block";
  self->partner[i] = opener;
  self->partner[opener] = i;
  *open = self->scope[opener];
  return NULL;
}

/* Sources come before their user and from a block that is still open. */
static const char *
check_sources (const TinyPluginProgram *self, uint32_t i, uint32_t open)
{
  const TinyInstr *instr = &self->instrs[i];
  if (instr->sources > self->n_sources || instr->n_sources > self->n_sources - instr->sources)
    return "has sources outside the list";
  for (unsigned j = 0; j < instr->n_sources; j++) {
    uint32_t s = self->sources[instr->sources + j];
    if (s >= i)
      return "uses an instruction that comes later";
    const TinyInstr *used = &self->instrs[s];
    bool opens = used->op == TINY_INSTR_RANGE || used->op == TINY_INSTR_IF;
    uint32_t home = opens ? s + 1 : self->scope[s], around = open;
    while (around != 0 && around != home)
      around = self->scope[around - 1];
    if (around != home)
      return "uses a value of a block that is closed";
  }
  return NULL;
}

static const char *
check_instr (TinyPluginProgram *self, uint32_t i, uint32_t *open)
{
  const TinyInstr *instr = &self->instrs[i];
  const OpRow *row = instr->op < TINY_N_INSTRS ? &ref_ops[instr->op] : &ref_ops[0];
  if (row->name == NULL)
    return "is unknown";
  if (instr->reserved != 0 || instr->reserved2 != 0)
    return "has reserved fields that are not zero";
  if (instr->dtype > TINY_DTYPE_F64)
    return "has an unknown dtype";
  if (instr->n_sources < row->least || instr->n_sources > row->most)
    return "has a wrong number of sources";
  const char *wrong = check_sources (self, i, *open);
  if (wrong != NULL)
    return wrong;
  if ((wrong = check_lanes (self, instr)) != NULL)
    return wrong;
  self->scope[i] = *open;
  switch (row->form) {
  case 'E':
    return check_element (self, instr);
  case 'M':
    return check_access (self, instr);
  case 'V':
    return check_value (self, instr);
  case 'U':
    return check_unit (self, instr);
  default:
    return check_block (self, i, open);
  }
}

/* Checks every instruction and gives each its place in memory. */
static TinyStatus
check_program (TinyPluginProgram *self, TinyStatus status, TinyPluginError *error)
{
  uint32_t open = 0;
  for (uint32_t i = 0; i < self->n_params; i++)
    if (self->params[i].dtype == TINY_DTYPE_VOID || self->params[i].dtype > TINY_DTYPE_F64)
      return tiny_fail (error, status, "%s: parameter %u has an unknown dtype", self->name, i);
  for (uint32_t i = 0; i < self->n_instrs; i++) {
    const TinyInstr *instr = &self->instrs[i];
    const char *wrong = check_instr (self, i, &open);
    if (wrong != NULL) {
      const char *name = instr->op < TINY_N_INSTRS ? ref_ops[instr->op].name : NULL;
      return tiny_fail (error, status, "%s: instruction %u (%s %u) %s", self->name, i,
                        name != NULL ? name : "op", instr->op, wrong);
    }
    self->slots[i] = (uint32_t) self->n_slots;
    if (instr->op == TINY_INSTR_LOCAL) {
      /* Its one slot holds where it starts in the group's memory. */
      self->n_local_bytes = (self->n_local_bytes + 63) & ~UINT64_C (63);
      self->n_local_bytes += (uint64_t) instr->arg * ref_n_bytes (instr->dtype);
    }
    /* A register has one more: whether it was written. */
    self->n_slots += instr->lanes + (instr->op == TINY_INSTR_REGISTER);
  }
  if (open != 0)
    return tiny_fail (error, status, "%s: instruction %u is never closed", self->name,
                      open - 1);
  return TINY_STATUS_OK;
}

void
ref_program_free (TinyPluginProgram *self)
{
  if (self == NULL)
    return;
  free (self->blob);
  free (self->slots);
  free (self->partner);
  free (self->scope);
  free (self);
}

/* The bytes that follow a blob's header. */
static uint64_t
body_size (const Blob *blob)
{
  return blob->n_instrs * (uint64_t) sizeof (TinyInstr)
         + blob->n_params * (uint64_t) sizeof (TinyParam)
         + blob->n_sources * (uint64_t) sizeof (uint32_t);
}

TinyStatus
ref_program_new (const char *name,
                 const void *data,
                 uint64_t size,
                 TinyStatus status,
                 TinyPluginProgram **out,
                 TinyPluginError *error)
{
  Blob head;
  if (data == NULL || size < sizeof head)
    return tiny_fail (error, status, "%s: not a program of REF: too short", name);
  memcpy (&head, data, sizeof head);
  if (memcmp (head.magic, blob_magic, sizeof head.magic) != 0)
    return tiny_fail (error, status, "%s: not a program of this version of REF", name);
  if (head.checksum != checksum (data, size))
    return tiny_fail (error, status, "%s: the program is damaged", name);
  uint64_t n_items = (uint64_t) head.group[0] * head.group[1];
  if (head.n_instrs > MAX_INSTRS || head.n_params > MAX_PARAMS || head.reserved != 0
      || size != sizeof head + body_size (&head) || n_items == 0 || n_items > MAX_GROUP
      || head.group[2] == 0 || head.group[2] > MAX_GROUP || n_items * head.group[2] > MAX_GROUP)
    return tiny_fail (error, status, "%s: sizes in the program are wrong", name);

  TinyPluginProgram *self = calloc (1, sizeof *self);
  if (self != NULL) {
    self->blob = malloc (size);
    self->slots = calloc (head.n_instrs + 1, sizeof (uint32_t));
    self->partner = calloc (head.n_instrs + 1, sizeof (uint32_t));
    self->scope = calloc (head.n_instrs + 1, sizeof (uint32_t));
  }
  if (self == NULL || self->blob == NULL || !self->slots || !self->partner || !self->scope) {
    ref_program_free (self);
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory to load it", name);
  }
  snprintf (self->name, sizeof self->name, "%s", name);
  memcpy (self->blob, data, size);
  self->instrs = (const TinyInstr *) ((char *) self->blob + sizeof (Blob));
  self->params = (const TinyParam *) (self->instrs + head.n_instrs);
  self->sources = (const uint32_t *) (self->params + head.n_params);
  self->n_instrs = head.n_instrs;
  self->n_sources = head.n_sources;
  self->n_params = head.n_params;
  self->n_variables = head.n_variables;
  memcpy (self->group, head.group, sizeof self->group);
  status = check_program (self, status, error);
  if (status != TINY_STATUS_OK)
    ref_program_free (self);
  else
    *out = self;
  return status;
}

static Blob
blob_head (const TinyLinear *linear)
{
  Blob head = { .n_instrs = linear->n_instrs,
                .n_sources = linear->n_sources,
                .n_params = linear->n_params,
                .n_variables = linear->n_variables };
  memcpy (head.magic, blob_magic, sizeof head.magic);
  memcpy (head.group, linear->group, sizeof head.group);
  return head;
}

uint64_t
ref_blob_size (const TinyLinear *linear)
{
  Blob head = blob_head (linear);
  return sizeof head + body_size (&head);
}

void
ref_blob_write (const TinyLinear *linear, void *data)
{
  Blob head = blob_head (linear);
  const void *parts[] = { &head, linear->instrs, linear->params, linear->sources };
  const uint64_t sizes[]
      = { sizeof head, head.n_instrs * sizeof (TinyInstr), head.n_params * sizeof (TinyParam),
          head.n_sources * sizeof (uint32_t) };
  char *at = data;
  for (int i = 0; i < 4; at += sizes[i], i++)
    if (sizes[i] != 0)
      memcpy (at, parts[i], sizes[i]);
  head.checksum = checksum (data, (uint64_t) (at - (char *) data));
  memcpy (data, &head, sizeof head);
}
