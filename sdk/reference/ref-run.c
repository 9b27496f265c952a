/* SPDX-License-Identifier: MIT
 *
 * ref-run.c: runs a checked program over its grid.
 *
 * Groups run one after the other. The items of a group take turns: each runs up to its next
 * barrier, then the next item does, so that what was written before a barrier is there after it.
 *
 * An access outside its span, a read of a register never written and a barrier that not all items
 * reach end the launch with an error that names the instruction. So does an element of memory
 * that two items use, one of them to write it, unless they are of one group and a barrier comes
 * between: each element knows who wrote and read it last, whatever order the items ran in. To write
 * what is there already is no mistake in a buffer: blocks that overlap do. */
#include "ref.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- running ---- */
typedef struct {
  uint64_t *values;
  uint32_t next; /* instruction; n_instrs: done */
  uint32_t index[3];
} Item;

/* Who used an element of memory, and in which phase of the launch: a number from 1, which grows with
 * each barrier and each group. */
typedef struct {
  uint32_t write_phase, read_phase, writer, reader; /* SEVERAL readers */
} Use;

enum { SEVERAL = UINT32_MAX };

/* One work-group in flight. */
typedef struct {
  const TinyPluginProgram *program;
  const TinyCommand *command;
  uint32_t grid[3];
  unsigned char *local;
  Use *local_uses;   /* by byte: those of elements at their first; NULL: there is one item */
  Use **buffer_uses; /* by parameter and element; NULL: nothing of it is written */
  uint32_t first_phase, phase; /* of this group; now */
} Group;

static const uint64_t *
operand (const TinyPluginProgram *program, const Item *item, const TinyInstr *instr, unsigned i)
{
  return &item->values[program->slots[program->sources[instr->sources + i]]];
}

static TinyStatus
run_fail (const Group *group, const Item *item, const char *what, TinyPluginError *error)
{
  const TinyPluginProgram *program = group->program;
  return tiny_fail (error, TINY_STATUS_LAUNCH,
                    "%s: instruction %u (%s) %s, at grid (%u, %u, %u), item (%u, %u, %u)",
                    program->name, item->next, ref_ops[program->instrs[item->next].op].name,
                    what, group->grid[0], group->grid[1], group->grid[2], item->index[0],
                    item->index[1], item->index[2]);
}

static uint64_t
read_element (const unsigned char *from, unsigned n_bytes)
{
  uint8_t u8;
  uint16_t u16;
  uint32_t u32;
  uint64_t u64;
  switch (n_bytes) {
  case 1:
    return memcpy (&u8, from, 1), u8;
  case 2:
    return memcpy (&u16, from, 2), u16;
  case 4:
    return memcpy (&u32, from, 4), u32;
  default:
    return memcpy (&u64, from, 8), u64;
  }
}

static void
write_element (unsigned char *to, unsigned n_bytes, uint64_t bits)
{
  uint8_t u8 = (uint8_t) bits;
  uint16_t u16 = (uint16_t) bits;
  uint32_t u32 = (uint32_t) bits;
  switch (n_bytes) {
  case 1:
    memcpy (to, &u8, 1);
    break;
  case 2:
    memcpy (to, &u16, 2);
    break;
  case 4:
    memcpy (to, &u32, 4);
    break;
  default:
    memcpy (to, &bits, 8);
    break;
  }
}

static TinyStatus
run_register (const Group *group,
              const Item *item,
              const TinyInstr *instr,
              uint64_t *result,
              TinyPluginError *error)
{
  const TinyPluginProgram *program = group->program;
  const TinyInstr *variable = ref_source (program, instr, 0);
  uint64_t *lanes = &item->values[program->slots[variable - program->instrs]];
  if (instr->op == TINY_INSTR_STORE) {
    memcpy (lanes, operand (program, item, instr, 1), variable->lanes * sizeof *lanes);
    lanes[variable->lanes] = true;
    return TINY_STATUS_OK;
  }
  if (!lanes[variable->lanes])
    return run_fail (group, item, "reads a register that was never written", error);
  memcpy (result, lanes, variable->lanes * sizeof *lanes);
  return TINY_STATUS_OK;
}

/* Whether what @other did in @phase is another item's than @me and no barrier parts them. LOCAL
 * memory is a group's own. */
static bool
is_beside (const Group *group, bool is_local, uint32_t phase, uint32_t other, uint32_t me)
{
  if (phase < group->first_phase)
    return phase != 0 && !is_local;
  return phase == group->phase && other != me;
}

/* Notes that @item uses an element of memory. */
static TinyStatus
note_use (const Group *group,
          const Item *item,
          bool stores,
          bool is_local,
          Use *use,
          TinyPluginError *error)
{
  const uint32_t *size = group->program->group;
  uint32_t me = item->index[0] + size[0] * (item->index[1] + size[1] * item->index[2]);
  bool written = is_beside (group, is_local, use->write_phase, use->writer, me);
  bool read = is_beside (group, is_local, use->read_phase, use->reader, me);
  if (written || (stores && read)) {
    char what[160];
    snprintf (what, sizeof what, "%s %s that %s %s, without a barrier between",
              stores ? "writes" : "reads", is_local ? "local memory" : "a buffer's element",
              written ? "another item" : "other items", written ? "wrote" : "read");
    return run_fail (group, item, what, error);
  }
  if (stores) {
    use->write_phase = group->phase;
    use->writer = me;
  } else {
    use->reader = read ? SEVERAL : me;
    use->read_phase = group->phase;
  }
  return TINY_STATUS_OK;
}

/* LOAD and STORE: element by element, each within its memory or not at all. */
static TinyStatus
run_access (const Group *group,
            const Item *item,
            const TinyInstr *instr,
            uint64_t *result,
            TinyPluginError *error)
{
  const TinyPluginProgram *program = group->program;
  const TinyInstr *target = ref_source (program, instr, 0);
  if (target->op == TINY_INSTR_REGISTER)
    return run_register (group, item, instr, result, error);

  bool stores = instr->op == TINY_INSTR_STORE, is_param = target->op == TINY_INSTR_PARAM;
  unsigned n_bytes = ref_n_bytes (target->dtype), gate_at = stores ? 3 : 2;
  const TinySpan *span = is_param ? &group->command->buffers[target->arg] : NULL;
  unsigned char *memory = is_param ? span->buffer->data + span->offset
                                   : group->local + *operand (program, item, instr, 0);
  uint64_t n_elements = is_param ? span->n_bytes / n_bytes : (uint64_t) target->arg;
  const TinyInstr *index = ref_source (program, instr, 1);
  uint64_t first = (uint64_t) ref_to_signed (index->dtype, *operand (program, item, instr, 1));

  const uint64_t *gate = NULL;
  unsigned gate_step = 0;
  if (instr->n_sources == 4) {
    gate = operand (program, item, instr, gate_at);
    gate_step = ref_source (program, instr, gate_at)->lanes > 1;
  }
  for (unsigned i = 0; i < instr->lanes; i++) {
    if (gate != NULL && !gate[i * gate_step]) {
      if (!stores)
        result[i] = operand (program, item, instr, 3)[i];
      continue;
    }
    /* A negative index is a huge one here. */
    uint64_t at = first + i;
    if (at >= n_elements) {
      char what[160];
      snprintf (what, sizeof what,
                "at index %" PRId64 " is outside %s %" PRId64 " of %" PRIu64 " elements",
                (int64_t) at, is_param ? "parameter" : "local memory",
                is_param ? target->arg : 0, n_elements);
      return run_fail (group, item, what, error);
    }
    Use *use = !is_param ? group->local_uses : group->buffer_uses[target->arg];
    if (use != NULL)
      use += is_param ? at : (uint64_t) (memory - group->local) + at * n_bytes;
    /* Writing what is there already is no race; but a buffer begins with anything, so what lies in an
     * element that nobody has used yet says nothing. */
    bool changes = use == NULL || !is_param || !stores
                   || (use->write_phase == 0 && use->read_phase == 0)
                   || read_element (memory + at * n_bytes, n_bytes)
                          != (operand (program, item, instr, 2)[i] & ref_mask (target->dtype));
    if (use != NULL && changes) {
      TinyStatus status = note_use (group, item, stores, !is_param, use, error);
      if (status != TINY_STATUS_OK)
        return status;
    }
    if (stores)
      write_element (memory + at * n_bytes, n_bytes, operand (program, item, instr, 2)[i]);
    else {
      uint64_t bits = read_element (memory + at * n_bytes, n_bytes);
      result[i] = target->dtype == TINY_DTYPE_BOOL ? bits != 0 : bits;
    }
  }
  return TINY_STATUS_OK;
}

/* VECTOR, EXTRACT and what is known without sources. */
static void
run_value (const Group *group, const Item *item, const TinyInstr *instr, uint64_t *result)
{
  const TinyPluginProgram *program = group->program;
  uint64_t value = (uint64_t) instr->arg;
  switch (instr->op) {
  case TINY_INSTR_CONST:
    value = ref_constant (instr->dtype, instr->arg);
    break;
  case TINY_INSTR_VARIABLE:
    value = (uint64_t) group->command->variables[instr->arg];
    break;
  case TINY_INSTR_GRID:
    value = group->grid[instr->arg];
    break;
  case TINY_INSTR_GROUP:
    value = item->index[instr->arg];
    break;
  case TINY_INSTR_EXTRACT:
    value = operand (program, item, instr, 0)[instr->arg];
    break;
  case TINY_INSTR_REGISTER:
    result[instr->lanes] = false;
    return;
  case TINY_INSTR_VECTOR:
    for (unsigned i = 0; i < instr->lanes; i++)
      result[i] = *operand (program, item, instr, instr->n_sources == 1 ? 0 : i);
    return;
  default:
    return; /* PARAM, LOCAL: found through the instruction, see place_locals() */
  }
  for (unsigned i = 0; i < instr->lanes; i++)
    result[i] = value & ref_mask (instr->dtype);
}

/* Gives every LOCAL of @item its place in the group's memory. */
static void
place_locals (const TinyPluginProgram *program, Item *item)
{
  uint64_t used = 0;
  for (uint32_t i = 0; i < program->n_instrs; i++) {
    const TinyInstr *instr = &program->instrs[i];
    if (instr->op != TINY_INSTR_LOCAL)
      continue;
    used = (used + 63) & ~UINT64_C (63);
    item->values[program->slots[i]] = used;
    used += (uint64_t) instr->arg * ref_n_bytes (instr->dtype);
  }
}

static void
run_element (const TinyPluginProgram *program,
             const Item *item,
             const TinyInstr *instr,
             uint64_t *result)
{
  const uint64_t *a = operand (program, item, instr, 0);
  const uint64_t *b = instr->n_sources > 1 ? operand (program, item, instr, 1) : a;
  const uint64_t *c = instr->n_sources > 2 ? operand (program, item, instr, 2) : a;
  unsigned dtype = ref_source (program, instr, instr->op == TINY_INSTR_WHERE)->dtype;
  for (unsigned i = 0; i < instr->lanes; i++)
    result[i] = ref_element (instr->op, dtype, instr->dtype, a[i], b[i], c[i]);
}

/* Where to go on after a block instruction. A loop's counter is the RANGE's own value. */
static uint32_t
run_block (const TinyPluginProgram *program, const Item *item, const TinyInstr *instr)
{
  uint32_t here = item->next, partner = program->partner[here];
  if (instr->op == TINY_INSTR_IF)
    return *operand (program, item, instr, 0) ? here + 1 : partner + 1;
  if (instr->op == TINY_INSTR_ENDIF)
    return here + 1;

  bool starts = instr->op == TINY_INSTR_RANGE;
  const TinyInstr *range = starts ? instr : &program->instrs[partner];
  uint64_t *counter = &item->values[program->slots[starts ? here : partner]];
  *counter = starts ? 0 : *counter + 1;
  uint64_t bound = *operand (program, item, range, 0);
  bool goes_on = ref_is_less (range->dtype, *counter, bound);
  uint32_t first = (starts ? here : partner) + 1, after = (starts ? partner : here) + 1;
  return goes_on ? first : after;
}

/* A unit's work-items, from @items on, each at the instruction. */
static TinyStatus
run_unit (const Group *group, Item *items, const TinyInstr *instr, TinyPluginError *error)
{
  const TinyPluginProgram *program = group->program;
  const uint64_t *const fragments[]
      = { operand (program, items, instr, 0), operand (program, items, instr, 1),
          operand (program, items, instr, 2) };
  return ref_multiply (ref_find_unit (instr->arg), fragments, program->n_slots,
                       &items->values[program->slots[items->next]])
             ? TINY_STATUS_OK
             : tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory for a product",
                          program->name);
}

/* True if @instr is for several work-items together. */
static bool
is_shared (const TinyInstr *instr)
{
  return instr->op == TINY_INSTR_UNIT && ref_find_unit (instr->arg)->n_thread_bits > 0;
}

/* The instruction that all items of the group have come to, set after set; they go on behind it. */
static TinyStatus
run_shared (const Group *group, Item *items, uint32_t n_items, TinyPluginError *error)
{
  const TinyInstr *instr = &group->program->instrs[items[0].next];
  const uint32_t n_together = 1u << ref_find_unit (instr->arg)->n_thread_bits;
  for (uint32_t i = 0; i < n_items; i += n_together)
    TINY_TRY (run_unit (group, &items[i], instr, error));
  for (uint32_t i = 0; i < n_items; i++)
    items[i].next++;
  return TINY_STATUS_OK;
}

/* Runs @item up to its next BARRIER, to what it does with others, or its end. */
static TinyStatus
run_item (const Group *group, Item *item, TinyPluginError *error)
{
  const TinyPluginProgram *program = group->program;
  while (item->next < program->n_instrs) {
    const TinyInstr *instr = &program->instrs[item->next];
    uint64_t *result = &item->values[program->slots[item->next]];
    TinyStatus status = TINY_STATUS_OK;
    switch (ref_ops[instr->op].form) {
    case 'E':
      run_element (program, item, instr, result);
      break;
    case 'M':
      status = run_access (group, item, instr, result, error);
      break;
    case 'V':
      if (instr->op != TINY_INSTR_LOCAL)
        run_value (group, item, instr, result);
      break;
    case 'U':
      if (is_shared (instr))
        return TINY_STATUS_OK;
      status = run_unit (group, item, instr, error);
      break;
    default:
      if (instr->op == TINY_INSTR_BARRIER) {
        item->next++;
        return TINY_STATUS_OK;
      }
      item->next = run_block (program, item, instr);
      continue;
    }
    if (status != TINY_STATUS_OK)
      return status;
    item->next++;
  }
  return TINY_STATUS_OK;
}

/* One work-group: each item in turn up to the next barrier, until all are done. */
static TinyStatus
run_group (Group *group, Item *items, uint32_t n_items, TinyPluginError *error)
{
  const TinyPluginProgram *program = group->program;
  memset (group->local, 0xff, program->n_local_bytes); /* undefined: NaN or -1 shows misuse */
  for (uint32_t i = 0; i < n_items; i++)
    items[i].next = 0;
  group->first_phase = group->phase + 1;
  group->phase++;
  do {
    for (uint32_t i = 0; i < n_items; i++) {
      TinyStatus status = run_item (group, &items[i], error);
      if (status != TINY_STATUS_OK)
        return status;
      if (items[i].next != items[0].next)
        return tiny_fail (
            error, TINY_STATUS_LAUNCH,
            "%s: item %u of group (%u, %u, %u) stops before instruction %u, item 0 before "
            "%u: not all items reach the same barrier",
            program->name, i, group->grid[0], group->grid[1], group->grid[2], items[i].next,
            items[0].next);
    }
    if (items[0].next < program->n_instrs && is_shared (&program->instrs[items[0].next]))
      TINY_TRY (run_shared (group, items, n_items, error));
    else
      group->phase++;
  } while (items[0].next < program->n_instrs);
  return TINY_STATUS_OK;
}

static TinyStatus
run_grid (Group *group, Item *items, uint32_t n_items, TinyPluginError *error)
{
  const uint32_t *grid = group->command->grid;
  for (group->grid[2] = 0; group->grid[2] < grid[2]; group->grid[2]++)
    for (group->grid[1] = 0; group->grid[1] < grid[1]; group->grid[1]++)
      for (group->grid[0] = 0; group->grid[0] < grid[0]; group->grid[0]++) {
        TinyStatus status = run_group (group, items, n_items, error);
        if (status != TINY_STATUS_OK)
          return status;
      }
  return TINY_STATUS_OK;
}

bool
ref_span_is_inside (const TinySpan *span)
{
  return span->buffer != NULL && span->offset <= span->buffer->n_bytes
         && span->n_bytes <= span->buffer->n_bytes - span->offset;
}

/* Memory, and who uses it where there are several items. */
static bool
group_init (Group *self, uint32_t n_items)
{
  const TinyPluginProgram *program = self->program;
  const uint32_t *grid = self->command->grid;
  bool is_alone = n_items == 1 && grid[0] == 1 && grid[1] == 1 && grid[2] == 1;
  self->local = malloc (program->n_local_bytes + 1);
  self->buffer_uses = calloc (program->n_params + 1, sizeof *self->buffer_uses);
  if (self->local == NULL || self->buffer_uses == NULL)
    return false;
  if (n_items > 1) {
    self->local_uses = calloc (program->n_local_bytes + 1, sizeof (Use));
    if (self->local_uses == NULL)
      return false;
  }
  for (uint32_t i = 0; i < program->n_params && !is_alone; i++) {
    const TinyParam *param = &program->params[i];
    uint64_t n = self->command->buffers[i].n_bytes / ref_n_bytes (param->dtype);
    if ((param->flags & TINY_PARAM_WRITE) == 0)
      continue;
    self->buffer_uses[i] = calloc (n + 1, sizeof (Use));
    if (self->buffer_uses[i] == NULL)
      return false;
  }
  return true;
}

static void
group_clear (Group *self)
{
  for (uint32_t i = 0; i < self->program->n_params && self->buffer_uses != NULL; i++)
    free (self->buffer_uses[i]);
  free (self->buffer_uses);
  free (self->local_uses);
  free (self->local);
}

TinyStatus
ref_dispatch (const TinyCommand *command, TinyPluginError *error)
{
  const TinyPluginProgram *program = command->program;
  if (program == NULL)
    return tiny_fail (error, TINY_STATUS_INVALID, "dispatch without a program");
  if (command->n_buffers != program->n_params || command->n_variables != program->n_variables)
    return tiny_fail (error, TINY_STATUS_INVALID,
                      "%s: takes %u buffers and %u variables, was given %u and %u",
                      program->name, program->n_params, program->n_variables,
                      command->n_buffers, command->n_variables);
  for (uint32_t i = 0; i < command->n_buffers; i++)
    if (!ref_span_is_inside (&command->buffers[i]))
      return tiny_fail (error, TINY_STATUS_INVALID, "%s: span %u is outside its buffer",
                        program->name, i);

  const uint32_t *size = program->group;
  uint32_t n_items = size[0] * size[1] * size[2];
  Item *items = calloc (n_items, sizeof *items);
  uint64_t *values = calloc (n_items * program->n_slots + 1, sizeof *values);
  Group group = { .program = program, .command = command };
  TinyStatus status;
  if (items == NULL || values == NULL || !group_init (&group, n_items)) {
    status = tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY,
                        "%s: no memory for the values of %u items", program->name, n_items);
  } else {
    for (uint32_t i = 0; i < n_items; i++) {
      items[i].values = values + i * program->n_slots;
      items[i].index[0] = i % size[0];
      items[i].index[1] = i / size[0] % size[1];
      items[i].index[2] = i / size[0] / size[1];
      place_locals (program, &items[i]);
    }
    status = run_grid (&group, items, n_items, error);
  }
  group_clear (&group);
  free (values);
  free (items);
  return status;
}
