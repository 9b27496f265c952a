/* SPDX-License-Identifier: MIT
 *
 * run-matrix.c: products of small matrices by a warp, and loads and stores of their fragments.
 *
 * Lane 4g + t. Register i of A (16 × K) holds row g + 8 (i & 1) and as many columns as there are elements in 32 bits, p: from
 * p t + 4 p (i >> 1) on. Register i of B (K × 8) holds rows from p t + 4 p i on, column g. C and D (16 × 8) have columns 2t and
 * 2t + 1 of rows g and g + 8. Products are summed as doubles and rounded once; how a device rounds inside is not known. */
#include "ptx-number.h"
#include "ptx-run.h"
#include "ptx-warp.h"
#include <math.h>
#include <string.h>

enum { M = 16, N = 8, MAX_K = 32 };

typedef struct {
  double a[M][MAX_K], b[MAX_K][N], c[M][N]; /* integers of 32 bits are doubles as well */
} Matrices;

static guint
depth_of (guint shape)
{
  static const guint depths[] = { [PTX_M16N8K4] = 4,
                                  [PTX_M16N8K8] = 8,
                                  [PTX_M16N8K16] = 16,
                                  [PTX_M16N8K32] = 32,
                                  [PTX_M8N8] = 0 };
  return depths[shape];
}

static double
element_of (PtxType type, guint64 word, guint i)
{
  guint bits = ptx_types[type].bits;
  guint64 value = ptx_truncate (bits, word >> (i * bits));
  if (type == PTX_tf32)
    return ptx_decode (PTX_tf32, value & ~(guint64) 0x1fff);
  return ptx_is_float (type) ? ptx_decode (type, value)
                             : (double) (gint64) ptx_extend (type, value);
}

static guint
per_word (PtxType type)
{
  return 32 / ptx_types[type].bits;
}

static void
gather_a (const PtxWarp *warp, const PtxInstr *instr, Matrices *matrices)
{
  PtxType type = instr->type[1];
  guint p = per_word (type);
  for (guint i = 0; i < ptx_n_operands (instr, 1); i++) {
    const guint64 *words = ptx_lanes (warp, ptx_operand (instr, 1) + i);
    for (guint lane = 0; lane < PTX_N_LANES; lane++)
      for (guint j = 0; j < p; j++)
        matrices->a[lane / 4 + 8 * (i & 1)][p * (lane % 4) + 4 * p * (i >> 1) + j]
            = element_of (type, words[lane], j);
  }
}

static void
gather_b (const PtxWarp *warp, const PtxInstr *instr, Matrices *matrices)
{
  PtxType type = instr->type[2];
  guint p = per_word (type);
  for (guint i = 0; i < ptx_n_operands (instr, 2); i++) {
    const guint64 *words = ptx_lanes (warp, ptx_operand (instr, 2) + i);
    for (guint lane = 0; lane < PTX_N_LANES; lane++)
      for (guint j = 0; j < p; j++)
        matrices->b[p * (lane % 4) + 4 * p * i + j][lane / 4]
            = element_of (type, words[lane], j);
  }
}

/* The row and column of element @j of register @i of C or D. */
static void
place_of (PtxType type, guint lane, guint i, guint j, guint *row, guint *column)
{
  guint number = i * per_word (type) + j;
  *row = lane / 4 + 8 * (number >> 1);
  *column = 2 * (lane % 4) + (number & 1);
}

static void
gather_c (const PtxWarp *warp, const PtxInstr *instr, Matrices *matrices)
{
  PtxType type = instr->type[3];
  for (guint i = 0; i < ptx_n_operands (instr, 3); i++)
    for (guint lane = 0; lane < PTX_N_LANES; lane++)
      for (guint j = 0; j < per_word (type); j++) {
        guint row, column;
        place_of (type, lane, i, j, &row, &column);
        matrices->c[row][column]
            = element_of (type == PTX_s32 ? PTX_s32 : type,
                          ptx_lanes (warp, ptx_operand (instr, 3) + i)[lane], j);
      }
}

static double
product_at (const Matrices *matrices, guint row, guint column, guint depth)
{
  double sum = 0;
  for (guint k = 0; k < depth; k++)
    sum += matrices->a[row][k] * matrices->b[k][column];
  return sum + matrices->c[row][column];
}

static guint64
result_of (const PtxInstr *instr, double value)
{
  PtxType type = instr->type[0];
  if (ptx_is_float (type))
    return ptx_encode (type, value, PTX_RN, FALSE);
  gboolean is_cut = (instr->flags & PTX_FLAG_SATFINITE) != 0;
  return (guint32) (is_cut ? (gint64) CLAMP (value, G_MININT32, G_MAXINT32) : (gint64) value);
}

static void
scatter_d (PtxWarp *warp, const PtxInstr *instr, const Matrices *matrices, guint depth)
{
  PtxType type = instr->type[0];
  guint bits = ptx_types[type].bits;
  for (guint i = 0; i < ptx_n_operands (instr, 0); i++)
    for (guint lane = 0; lane < PTX_N_LANES; lane++) {
      guint64 word = 0;
      for (guint j = 0; j < per_word (type); j++) {
        guint row, column;
        place_of (type, lane, i, j, &row, &column);
        word
            |= ptx_truncate (bits, result_of (instr, product_at (matrices, row, column, depth)))
               << (j * bits);
      }
      ptx_put (warp, ptx_operand (instr, 0) + i, lane, word);
    }
}

static gboolean
is_whole (PtxWarp *warp, const PtxInstr *instr)
{
  if (warp->active != G_MAXUINT32)
    ptx_fault (warp, instr, __builtin_ctz (warp->active), PTX_FAULT_LAUNCH, 0,
               "only lanes 0x%08x do what a whole warp does", warp->active);
  return warp->active == G_MAXUINT32;
}

/* As many registers as the shape and the types have elements. */
static gboolean
check_shape (PtxWarp *warp, const PtxInstr *instr, guint depth)
{
  guint p = per_word (instr->type[1]);
  const guint wanted[] = { 4 / per_word (instr->type[0]), depth / (2 * p), depth / (4 * p),
                           4 / per_word (instr->type[3]) };
  gboolean is_right = depth > 0 && per_word (instr->type[2]) == p;
  for (guint i = 0; i < G_N_ELEMENTS (wanted); i++)
    is_right &= wanted[i] > 0 && ptx_n_operands (instr, i) == wanted[i];
  if (!is_right)
    ptx_fault (warp, instr, G_MAXUINT, PTX_FAULT_INSTRUCTION, 0,
               "registers and types do not fit the shape");
  return is_right;
}

void
ptx_run_mma (PtxWarp *warp, const PtxInstr *instr)
{
  Matrices matrices;
  guint depth = depth_of (instr->chosen[PTX_CLASS_SHAPE]);
  if (!is_whole (warp, instr) || !check_shape (warp, instr, depth))
    return;
  gather_a (warp, instr, &matrices);
  gather_b (warp, instr, &matrices);
  gather_c (warp, instr, &matrices);
  scatter_d (warp, instr, &matrices, depth);
}

/* ---- fragments in memory: 8 × 8 elements of 16 bits; lane l has the address of row l % 8 of matrix l / 8 ---- */

/* The bytes of a row; NULL after a fault. */
static guint8 *
row_at (PtxWarp *warp,
        const PtxInstr *instr,
        const PtxOperand *address,
        guint lane,
        PtxAccess access)
{
  guint64 place
      = ptx_truncate (address->bits, ptx_lanes (warp, address)[lane]) + address->offset;
  return ptx_at (warp, instr, lane, instr->chosen[PTX_CLASS_SPACE], place, 16, access);
}

static gboolean
take_rows (
    PtxWarp *warp, const PtxInstr *instr, guint address_group, PtxAccess access, guint8 **rows)
{
  guint n = instr->chosen[PTX_CLASS_COUNT];
  if (!is_whole (warp, instr))
    return FALSE;
  if (n == 0 || ptx_n_operands (instr, 1 - address_group) != n) {
    ptx_fault (warp, instr, G_MAXUINT, PTX_FAULT_INSTRUCTION, 0,
               "registers do not fit the number of matrices");
    return FALSE;
  }
  for (guint i = 0; i < 8 * n; i++)
    if ((rows[i] = row_at (warp, instr, ptx_operand (instr, address_group), i, access)) == NULL)
      return FALSE;
  return TRUE;
}

/* Where element @j of a lane's register is: its row, and bytes into it. */
static guint8 *
element_at (const PtxInstr *instr, guint8 **rows, guint lane, guint j)
{
  guint row = lane / 4, column = 2 * (lane % 4) + j;
  return instr->flags & PTX_FLAG_TRANS ? rows[column] + 2 * row : rows[row] + 2 * column;
}

void
ptx_run_ldmatrix (PtxWarp *warp, const PtxInstr *instr)
{
  guint8 *rows[PTX_N_LANES];
  if (!take_rows (warp, instr, 1, PTX_READ, rows))
    return;
  for (guint m = 0; m < instr->chosen[PTX_CLASS_COUNT]; m++)
    for (guint lane = 0; lane < PTX_N_LANES; lane++) {
      guint16 parts[2];
      for (guint j = 0; j < 2; j++)
        memcpy (&parts[j], element_at (instr, rows + 8 * m, lane, j), sizeof parts[j]);
      ptx_put (warp, ptx_operand (instr, 0) + m, lane, parts[0] | (guint64) parts[1] << 16);
    }
}

void
ptx_run_stmatrix (PtxWarp *warp, const PtxInstr *instr)
{
  guint8 *rows[PTX_N_LANES];
  if (!take_rows (warp, instr, 0, PTX_WRITE, rows))
    return;
  for (guint m = 0; m < instr->chosen[PTX_CLASS_COUNT]; m++)
    for (guint lane = 0; lane < PTX_N_LANES; lane++) {
      guint64 word = ptx_lanes (warp, ptx_operand (instr, 1) + m)[lane];
      for (guint j = 0; j < 2; j++) {
        guint16 part = word >> (16 * j);
        memcpy (element_at (instr, rows + 8 * m, lane, j), &part, sizeof part);
      }
    }
}
