/* SPDX-License-Identifier: MIT
 *
 * cpu-llvm-unit.c: matrix units: tiles of x86's AMX.
 *
 * A fragment is a tile of 16 rows of 64 bytes, and lies in memory like that. LLVM's instructions for tiles name the tile, so
 * that each fragment is given one here, from where it is made to where it is used last. A tile cannot be
 * copied but by way of memory: a fragment of a register stands in the register's own tile while that does not change, and a sum
 * takes over the tile of what it adds to where that is not needed afterwards, as in "store (r, unit (a, b, load (r)))". */
#include "cpu-llvm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_BYTES = 64, N_ROWS = 16, NO_TILE = 0xff };

/* clang-format off */
#define M(n) (TINY_UNIT_M | (n))
#define N(n) (TINY_UNIT_N | (n))
#define K(n) (TINY_UNIT_K | (n))
/* In b, numbers that are summed together lie side by side. */
static const struct {
  uint64_t needs;
  const char *intrinsic;
  TinyUnit unit;
} rows[] = {
  { CPU_BIT (AMXBF16), "llvm.x86.tdpbf16ps",
    { .a_dtype = TINY_DTYPE_BF16, .b_dtype = TINY_DTYPE_BF16, .c_dtype = TINY_DTYPE_F32,
      .m_bits = 4, .n_bits = 4, .k_bits = 5, .n_fragments = CPU_N_TILES,
      .a = { K (0), K (1), K (2), K (3), K (4), M (0), M (1), M (2), M (3) },
      .b = { K (0), N (0), N (1), N (2), N (3), K (1), K (2), K (3), K (4) },
      .c = { N (0), N (1), N (2), N (3), M (0), M (1), M (2), M (3) } } },
  { CPU_BIT (AMXINT8), "llvm.x86.tdpbssd",
    { .a_dtype = TINY_DTYPE_I8, .b_dtype = TINY_DTYPE_I8, .c_dtype = TINY_DTYPE_I32,
      .m_bits = 4, .n_bits = 4, .k_bits = 6, .n_fragments = CPU_N_TILES,
      .a = { K (0), K (1), K (2), K (3), K (4), K (5), M (0), M (1), M (2), M (3) },
      .b = { K (0), K (1), N (0), N (1), N (2), N (3), K (2), K (3), K (4), K (5) },
      .c = { N (0), N (1), N (2), N (3), M (0), M (1), M (2), M (3) } } },
};
/* clang-format on */

TinyStatus
cpu_llvm_target (const char *text, TinyTarget *out, TinyPluginError *error)
{
  CpuArch arch;
  TinyTarget target = { .struct_size = sizeof target };
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_TRY (cpu_target (text, &target, error));
  TINY_TRY (cpu_arch_parse (text, &arch, error));
  unsigned n = 0;
  for (unsigned i = 0; i < CPU_ARRAY_SIZE (rows); i++)
    if (arch.features & rows[i].needs)
      target.units[n++] = rows[i].unit;
  tiny_fill_struct (out, &target, sizeof target);
  return TINY_STATUS_OK;
}

/* The row of unit @number of the target; -1: it has none. */
static int
find_row (const Emitter *e, int64_t number)
{
  for (unsigned i = 0; i < CPU_ARRAY_SIZE (rows); i++)
    if ((e->arch->features & rows[i].needs) && number-- == 0)
      return (int) i;
  return -1;
}

/* ---- which instructions ---- */
static const TinyInstr *
value_of (const Emitter *e, const TinyInstr *instr)
{
  return instr->op == TINY_INSTR_STORE && instr->n_sources > 1
             ? emit_source_instr (e, instr, instr->n_sources == 2 ? 1 : 2)
             : instr;
}

bool
emit_is_fragment (const Emitter *e, const TinyInstr *instr)
{
  if (e->tiles.of == NULL)
    return false;
  switch (instr->op) {
  case TINY_INSTR_UNIT:
    return true;
  case TINY_INSTR_LOAD:
  case TINY_INSTR_STORE:
  case TINY_INSTR_CONST:
  case TINY_INSTR_REGISTER: {
    const TinyInstr *value = value_of (e, instr);
    return value->lanes * dtype_bits (value->dtype) == N_ROWS * ROW_BYTES * 8;
  }
  default:
    return false;
  }
}

bool
emit_tiles_init (Emitter *e)
{
  bool has_units = false;
  for (uint32_t i = 0; i < e->linear->n_instrs && !has_units; i++)
    has_units = e->linear->instrs[i].op == TINY_INSTR_UNIT;
  if (!has_units || find_row (e, 0) < 0)
    return true;
  e->tiles.of = malloc (e->linear->n_instrs);
  if (e->tiles.of != NULL)
    memset (e->tiles.of, NO_TILE, e->linear->n_instrs);
  return e->tiles.of != NULL;
}

/* ---- which tile ---- */
static bool
uses (const Emitter *e, uint32_t at, uint32_t what)
{
  const TinyInstr *instr = &e->linear->instrs[at];
  for (unsigned i = 0; i < instr->n_sources; i++)
    if (e->linear->sources[instr->sources + i] == what)
      return true;
  return false;
}

/* The last instruction at which @at is needed: of a loop that uses it, and does not make it, the end. */
static uint32_t
find_last_use (const Emitter *e, uint32_t at)
{
  uint32_t last = at;
  unsigned depth = 0;
  bool waits = false; /* for the end of the loops that it is used in */
  for (uint32_t i = at + 1; i < e->linear->n_instrs; i++) {
    const unsigned op = e->linear->instrs[i].op;
    if ((op == TINY_INSTR_END || op == TINY_INSTR_ENDIF) && depth-- == 0)
      break;
    if (uses (e, i, at)) {
      last = i;
      waits = depth > 0;
    }
    if (waits && depth == 0) {
      last = i;
      waits = false;
    }
    depth += op == TINY_INSTR_RANGE || op == TINY_INSTR_IF;
  }
  return last;
}

/* A tile for @instr up to instruction @until; -1: there is none left. */
static int
take_tile (Emitter *e, const TinyInstr *instr, uint32_t until)
{
  const uint32_t at = (uint32_t) (instr - e->linear->instrs);
  for (int i = 0; i < CPU_N_TILES; i++)
    if (e->tiles.until[i] <= at) {
      e->tiles.until[i] = until + 1;
      return i;
    }
  emit_fail (e, instr, "more matrices at once than there are tiles, 8");
  return -1;
}

/* ---- what tiles do ---- */
static LlvmRef
tile_number (const Emitter *e, unsigned tile)
{
  return emit_int (e, 8, tile);
}

/* The bytes of a tile at @address come or go. */
static LlvmRef
move_tile (Emitter *e, const char *intrinsic, unsigned tile, LlvmRef address)
{
  LlvmRef arguments[] = { tile_number (e, tile), address, emit_int (e, 64, ROW_BYTES) };
  return emit_intrinsic (e, intrinsic, NULL, arguments, 3);
}

static LlvmRef
load_tile (Emitter *e, unsigned tile, LlvmRef address)
{
  return move_tile (e, "llvm.x86.tileloadd64", tile, address);
}

static LlvmRef
store_tile (Emitter *e, unsigned tile, LlvmRef address)
{
  return move_tile (e, "llvm.x86.tilestored64", tile, address);
}

static LlvmRef
get_place (Emitter *e)
{
  LlvmRef i8 = e->llvm->IntTypeInContext (e->context, 8);
  if (e->tiles.place == NULL)
    e->tiles.place = emit_place (e, e->llvm->ArrayType (i8, N_ROWS * ROW_BYTES), ROW_BYTES);
  return e->tiles.place;
}

static LlvmRef
fill_tile (Emitter *e, unsigned tile, const TinyInstr *constant)
{
  if (constant->arg == 0) {
    LlvmRef number = tile_number (e, tile);
    return emit_intrinsic (e, "llvm.x86.tilezero", NULL, &number, 1);
  }
  LlvmRef place = get_place (e), i8 = e->llvm->IntTypeInContext (e->context, 8);
  TinyInstr row = *constant;
  row.lanes = (uint16_t) (ROW_BYTES * 8 / dtype_bits (constant->dtype));
  LlvmRef value = emit_structure[TINY_INSTR_CONST](e, &row);
  for (int i = 0; i < N_ROWS; i++) {
    LlvmRef distance = emit_int (e, 64, i * ROW_BYTES);
    e->llvm->BuildStore (e->builder, value,
                         e->llvm->BuildGEP2 (e->builder, i8, place, &distance, 1, ""));
  }
  return load_tile (e, tile, place);
}

/* @tile becomes the fragment @value. */
static LlvmRef
copy_tile (Emitter *e, unsigned tile, const TinyInstr *value)
{
  const unsigned from = e->tiles.of[value - e->linear->instrs];
  if (value->op == TINY_INSTR_CONST)
    return fill_tile (e, tile, value);
  if (from == tile)
    return tile_number (e, tile);
  store_tile (e, from, get_place (e));
  return load_tile (e, tile, get_place (e));
}

/* ---- instructions ---- */
static uint32_t
index_of (const Emitter *e, const TinyInstr *instr)
{
  return (uint32_t) (instr - e->linear->instrs);
}

/* A tile of @instr's own up to its last use. */
static bool
own_tile (Emitter *e, const TinyInstr *instr)
{
  const uint32_t at = index_of (e, instr);
  const int tile = take_tile (e, instr, find_last_use (e, at));
  if (tile >= 0)
    e->tiles.of[at] = (uint8_t) tile;
  return tile >= 0;
}

/* True if a STORE changes register @place after instruction @after, up to @until. */
static bool
changes (const Emitter *e, const TinyInstr *place, uint32_t after, uint32_t until)
{
  for (uint32_t i = after + 1; i <= until; i++)
    if (e->linear->instrs[i].op == TINY_INSTR_STORE
        && emit_source_instr (e, &e->linear->instrs[i], 0) == place)
      return true;
  return false;
}

/* The tile is taken up to instruction @until at least. */
static void
keep_tile (Emitter *e, unsigned tile, uint32_t until)
{
  if (e->tiles.until[tile] <= until)
    e->tiles.until[tile] = until + 1;
}

static LlvmRef
load_register (Emitter *e, const TinyInstr *instr, const TinyInstr *place)
{
  const uint32_t at = index_of (e, instr);
  const unsigned tile = e->tiles.of[index_of (e, place)];
  if (place->lanes != instr->lanes)
    return emit_fail (e, instr, "another width than the register's");
  const uint32_t last = find_last_use (e, at);
  if (!changes (e, place, at, last)) {
    e->tiles.of[at] = (uint8_t) tile;
    keep_tile (e, tile, last);
    return tile_number (e, tile);
  }
  if (!own_tile (e, instr))
    return NULL;
  store_tile (e, tile, get_place (e));
  return load_tile (e, e->tiles.of[at], get_place (e));
}

static LlvmRef
load_fragment (Emitter *e, const TinyInstr *instr)
{
  const TinyInstr *from = emit_source_instr (e, instr, 0);
  if (from->dtype != instr->dtype)
    return emit_fail (e, instr, "another dtype than the memory's");
  if (from->op == TINY_INSTR_REGISTER)
    return load_register (e, instr, from);
  if (instr->n_sources != 2)
    return emit_fail (e, instr, "a gate, or no index");
  if (!emit_has_address (e, instr) || !own_tile (e, instr))
    return NULL;
  return load_tile (e, e->tiles.of[index_of (e, instr)],
                    emit_address (e, from, emit_source_instr (e, instr, 1)));
}

/* The tile that holds @value while @instr runs: a constant gets one for that. */
static int
tile_for (Emitter *e, const TinyInstr *instr, const TinyInstr *value)
{
  if (value->op != TINY_INSTR_CONST)
    return e->tiles.of[index_of (e, value)];
  const int tile = take_tile (e, instr, index_of (e, instr));
  if (tile >= 0)
    fill_tile (e, (unsigned) tile, value);
  return tile;
}

static LlvmRef
store_fragment (Emitter *e, const TinyInstr *instr)
{
  const TinyInstr *to = emit_source_instr (e, instr, 0), *value = value_of (e, instr);
  if (value->dtype != to->dtype)
    return emit_fail (e, instr, "another dtype than the memory's");
  if (to->op == TINY_INSTR_REGISTER)
    return to->lanes != value->lanes ? emit_fail (e, instr, "another width than the register's")
                                     : copy_tile (e, e->tiles.of[index_of (e, to)], value);
  if (instr->n_sources != 3)
    return emit_fail (e, instr, "a gate, or no index");
  if (!emit_has_address (e, instr))
    return NULL;
  const int tile = tile_for (e, instr, value);
  return tile < 0 ? NULL
                  : store_tile (e, (unsigned) tile,
                                emit_address (e, to, emit_source_instr (e, instr, 1)));
}

/* True if instruction @at takes the register of @tile, or what was read of it. */
static bool
uses_tile (const Emitter *e, uint32_t at, unsigned tile)
{
  const TinyInstr *instr = &e->linear->instrs[at];
  for (unsigned i = 0; i < instr->n_sources; i++)
    if (e->tiles.of[e->linear->sources[instr->sources + i]] == tile)
      return true;
  return false;
}

/* True if the sum can be made in the tile of @c: it is not needed afterwards, or is what a register held that the sum
 * goes to next. */
static bool
takes_over (const Emitter *e, const TinyInstr *instr, const TinyInstr *c)
{
  const uint32_t at = index_of (e, instr), last = find_last_use (e, at);
  if (c->op == TINY_INSTR_CONST || find_last_use (e, index_of (e, c)) != at)
    return false;
  const TinyInstr *place = c->op == TINY_INSTR_LOAD ? emit_source_instr (e, c, 0) : c;
  if (place->op != TINY_INSTR_REGISTER
      || e->tiles.of[index_of (e, place)] != e->tiles.of[index_of (e, c)])
    return true;
  const TinyInstr *user = &e->linear->instrs[last];
  if (user->op != TINY_INSTR_STORE || emit_source_instr (e, user, 0) != place)
    return false;
  const unsigned tile = e->tiles.of[index_of (e, place)];
  for (uint32_t i = at + 1; i < last; i++)
    if (uses (e, i, at) || uses_tile (e, i, tile))
      return false;
  return true;
}

/* The tile of the sum, in which c is. */
static int
prepare_sum (Emitter *e, const TinyInstr *instr, const TinyInstr *c)
{
  const uint32_t until = find_last_use (e, index_of (e, instr));
  if (takes_over (e, instr, c)) {
    const unsigned tile = e->tiles.of[index_of (e, c)];
    keep_tile (e, tile, until);
    return (int) tile;
  }
  const int tile = take_tile (e, instr, until);
  if (tile >= 0)
    copy_tile (e, (unsigned) tile, c);
  return tile;
}

static const TinyUnit *
check_unit (Emitter *e, const TinyInstr *instr, int row)
{
  if (row < 0)
    return (const TinyUnit *) emit_fail (e, instr, "the processor has no such unit");
  const TinyUnit *unit = &rows[row].unit;
  const unsigned dtypes[] = { unit->a_dtype, unit->b_dtype, unit->c_dtype };
  for (unsigned i = 0; i < 3; i++) {
    const TinyInstr *source = emit_source_instr (e, instr, i);
    if (source->dtype != dtypes[i] || !emit_is_fragment (e, source)
        || source->op == TINY_INSTR_STORE || source->op == TINY_INSTR_REGISTER) {
      emit_fail (e, instr, "a source is no matrix of the unit's");
      return NULL;
    }
  }
  if (instr->dtype == unit->c_dtype && instr->lanes == N_ROWS * N_ROWS)
    return unit;
  emit_fail (e, instr, "gives no matrix of the unit's");
  return NULL;
}

static LlvmRef
emit_unit (Emitter *e, const TinyInstr *instr)
{
  const int row = find_row (e, instr->arg);
  if (check_unit (e, instr, row) == NULL)
    return NULL;
  int tiles[3];
  for (unsigned i = 0; i < 2; i++)
    if ((tiles[i + 1] = tile_for (e, instr, emit_source_instr (e, instr, i))) < 0)
      return NULL;
  if ((tiles[0] = prepare_sum (e, instr, emit_source_instr (e, instr, 2))) < 0)
    return NULL;
  e->tiles.of[index_of (e, instr)] = (uint8_t) tiles[0];
  LlvmRef arguments[3];
  for (unsigned i = 0; i < 3; i++)
    arguments[i] = tile_number (e, (unsigned) tiles[i]);
  return emit_intrinsic (e, rows[row].intrinsic, NULL, arguments, 3);
}

LlvmRef
emit_fragment (Emitter *e, const TinyInstr *instr)
{
  switch (instr->op) {
  case TINY_INSTR_UNIT:
    return emit_unit (e, instr);
  case TINY_INSTR_LOAD:
    return load_fragment (e, instr);
  case TINY_INSTR_STORE:
    return store_fragment (e, instr);
  case TINY_INSTR_CONST:
    return emit_int (e, 8, 0); /* made where it is used */
  default:
    return own_tile (e, instr) ? tile_number (e, e->tiles.of[index_of (e, instr)]) : NULL;
  }
}

/* ---- the frame ---- */
void
emit_tiles_begin (Emitter *e)
{
  if (e->tiles.of == NULL)
    return;
  const Llvm *llvm = e->llvm;
  enum {
    PALETTE = 1,
    N_BYTES = 64,
    WIDTHS = 16,
    HEIGHTS = 48
  }; /* of tiles: u16 each, a byte each */
  LlvmRef bytes[N_BYTES], i8 = llvm->IntTypeInContext (e->context, 8);
  for (int i = 0; i < N_BYTES; i++)
    bytes[i] = emit_int (e, 8, i == 0 ? PALETTE : 0);
  for (int i = 0; i < CPU_N_TILES; i++) {
    bytes[WIDTHS + 2 * i] = emit_int (e, 8, ROW_BYTES);
    bytes[HEIGHTS + i] = emit_int (e, 8, N_ROWS);
  }
  char name[512];
  snprintf (name, sizeof name, CPU_ENTRY_PREFIX "%s.tiles",
            e->name); /* which the loader looks for */
  LlvmRef place = llvm->AddGlobal (e->module, llvm->ArrayType (i8, N_BYTES), name);
  llvm->SetInitializer (place, llvm->ConstArray (i8, bytes, N_BYTES));
  llvm->SetGlobalConstant (place, 1);
  llvm->SetAlignment (place, N_BYTES);
  emit_intrinsic (e, "llvm.x86.ldtilecfg", NULL, &place, 1);
}

void
emit_tiles_end (Emitter *e)
{
  if (e->tiles.of != NULL)
    emit_intrinsic (e, "llvm.x86.tilerelease", NULL, NULL, 0);
}
