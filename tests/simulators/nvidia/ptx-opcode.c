/* SPDX-License-Identifier: MIT
 *
 * ptx-opcode.c: finds the row of an opcode and the meaning of its suffixes. */
#include "ptx-run.h"
#include <string.h>

#define UNI       PTX_FLAG_UNI
#define SAT       PTX_FLAG_SAT
#define CC        PTX_FLAG_CC
#define FTZ       PTX_FLAG_FTZ
#define APPROX    PTX_FLAG_APPROX
#define FULL      PTX_FLAG_FULL
#define RELU      PTX_FLAG_RELU
#define TO        PTX_FLAG_TO
#define TRANS     PTX_FLAG_TRANS
#define SHIFTAMT  PTX_FLAG_SHIFTAMT
#define SATFINITE PTX_FLAG_SATFINITE
#undef NAN
#define NAN PTX_FLAG_NAN
#define OP(name, classes, flags, types, operands, run, modes)                                  \
  { name, classes, flags, types, operands, ptx_run_##run, modes },
static const PtxOp ops[] = {
#include "ptx-ops.def"
};
#undef OP

static const struct {
  const char *name;
  PtxClass class;
  guint value;
} suffixes[] = {
  { "rn", PTX_CLASS_ROUND, PTX_RN },
  { "rz", PTX_CLASS_ROUND, PTX_RZ },
  { "rm", PTX_CLASS_ROUND, PTX_RM },
  { "rp", PTX_CLASS_ROUND, PTX_RP },
  { "rna", PTX_CLASS_ROUND, PTX_RNA },
  { "rni", PTX_CLASS_ROUND, PTX_RNI },
  { "rzi", PTX_CLASS_ROUND, PTX_RZI },
  { "rmi", PTX_CLASS_ROUND, PTX_RMI },
  { "rpi", PTX_CLASS_ROUND, PTX_RPI },
  { "eq", PTX_CLASS_COMPARE, PTX_EQ },
  { "ne", PTX_CLASS_COMPARE, PTX_NE },
  { "lt", PTX_CLASS_COMPARE, PTX_LT },
  { "le", PTX_CLASS_COMPARE, PTX_LE },
  { "gt", PTX_CLASS_COMPARE, PTX_GT },
  { "ge", PTX_CLASS_COMPARE, PTX_GE },
  { "lo", PTX_CLASS_COMPARE, PTX_LO },
  { "ls", PTX_CLASS_COMPARE, PTX_LS },
  { "hi", PTX_CLASS_COMPARE, PTX_HI },
  { "hs", PTX_CLASS_COMPARE, PTX_HS },
  { "equ", PTX_CLASS_COMPARE, PTX_EQU },
  { "neu", PTX_CLASS_COMPARE, PTX_NEU },
  { "ltu", PTX_CLASS_COMPARE, PTX_LTU },
  { "leu", PTX_CLASS_COMPARE, PTX_LEU },
  { "gtu", PTX_CLASS_COMPARE, PTX_GTU },
  { "geu", PTX_CLASS_COMPARE, PTX_GEU },
  { "num", PTX_CLASS_COMPARE, PTX_NUM },
  { "nan", PTX_CLASS_COMPARE, PTX_NAN },
  { "and", PTX_CLASS_BOOL, PTX_AND },
  { "or", PTX_CLASS_BOOL, PTX_OR },
  { "xor", PTX_CLASS_BOOL, PTX_XOR },
  { "global", PTX_CLASS_SPACE, PTX_GLOBAL },
  { "shared", PTX_CLASS_SPACE, PTX_SHARED },
  { "shared::cta", PTX_CLASS_SPACE, PTX_SHARED },
  { "local", PTX_CLASS_SPACE, PTX_LOCAL },
  { "param", PTX_CLASS_SPACE, PTX_PARAM },
  { "param::entry", PTX_CLASS_SPACE, PTX_PARAM },
  { "param::func", PTX_CLASS_SPACE, PTX_PARAM },
  { "const", PTX_CLASS_SPACE, PTX_CONST },
  { "v2", PTX_CLASS_VECTOR, 2 },
  { "v4", PTX_CLASS_VECTOR, 4 },
  { "v8", PTX_CLASS_VECTOR, 8 },
  { "m16n8k4", PTX_CLASS_SHAPE, PTX_M16N8K4 },
  { "m16n8k8", PTX_CLASS_SHAPE, PTX_M16N8K8 },
  { "m16n8k16", PTX_CLASS_SHAPE, PTX_M16N8K16 },
  { "m16n8k32", PTX_CLASS_SHAPE, PTX_M16N8K32 },
  { "m8n8", PTX_CLASS_SHAPE, PTX_M8N8 },
  { "x1", PTX_CLASS_COUNT, 1 },
  { "x2", PTX_CLASS_COUNT, 2 },
  { "x4", PTX_CLASS_COUNT, 4 },
  { "ftz", PTX_CLASS_FLAG, PTX_FLAG_FTZ },
  { "sat", PTX_CLASS_FLAG, PTX_FLAG_SAT },
  { "cc", PTX_CLASS_FLAG, PTX_FLAG_CC },
  { "approx", PTX_CLASS_FLAG, PTX_FLAG_APPROX },
  { "full", PTX_CLASS_FLAG, PTX_FLAG_FULL },
  { "NaN", PTX_CLASS_FLAG, PTX_FLAG_NAN },
  { "relu", PTX_CLASS_FLAG, PTX_FLAG_RELU },
  { "trans", PTX_CLASS_FLAG, PTX_FLAG_TRANS },
  { "to", PTX_CLASS_FLAG, PTX_FLAG_TO },
  { "uni", PTX_CLASS_FLAG, PTX_FLAG_UNI },
  { "satfinite", PTX_CLASS_FLAG, PTX_FLAG_SATFINITE },
  { "shiftamt", PTX_CLASS_FLAG, PTX_FLAG_SHIFTAMT },
};

/* Suffixes of memory order, scope and caches, and those that a row has no choice of. */
static const char *const unheard[] = {
  "nc",  "volatile", "relaxed", "weak",    "acquire", "release", "acq_rel",     "sc",
  "cta", "gpu",      "sys",     "cluster", "ca",      "cg",      "cs",          "lu",
  "cv",  "wb",       "wt",      "aligned", "row",     "col",     "gl",          "noftz",
  "L1",  "L2",       "proxy",   "async",   "alias",   "global",  "shared::cta",
};

static const char *const mode_names[PTX_N_MODES] = {
#define PTX_MODE_ROW(name) [PTX_MODE_##name] = #name,
  PTX_MODES (PTX_MODE_ROW)
};

/* True if the words of @list, parted by spaces, have @word. */
static gboolean
has_word (const char *list, const char *word)
{
  gsize n = strlen (word);
  for (const char *at = list; at != NULL && (at = strstr (at, word)) != NULL; at += n)
    if ((at == list || at[-1] == ' ' || at[-1] == ';')
        && (at[n] == '\0' || at[n] == ' ' || at[n] == ';'))
      return TRUE;
  return FALSE;
}

static char
letter_of (PtxClass class)
{
  return "RCBSVMHN-K"[class];
}

static gboolean
choose (PtxInstr *instr, PtxClass class, guint value)
{
  gboolean is_free
      = strchr (instr->op->classes, letter_of (class)) != NULL && instr->chosen[class] == 0;
  if (is_free)
    instr->chosen[class] = value;
  return is_free;
}

static gboolean
take_named (PtxInstr *instr, const char *suffix)
{
  for (guint i = 0; i < G_N_ELEMENTS (suffixes); i++) {
    if (strcmp (suffixes[i].name, suffix) != 0)
      continue;
    if (suffixes[i].class == PTX_CLASS_FLAG
            ? (instr->op->flags & suffixes[i].value) != 0
            : choose (instr, suffixes[i].class, suffixes[i].value)) {
      instr->flags |= suffixes[i].class == PTX_CLASS_FLAG ? suffixes[i].value : 0;
      return TRUE;
    }
  }
  return FALSE;
}

static gboolean
take_mode (PtxInstr *instr, const char *suffix)
{
  for (guint i = 1; i < PTX_N_MODES; i++)
    if (strcmp (mode_names[i], suffix) == 0)
      return has_word (instr->op->modes, suffix) && choose (instr, PTX_CLASS_MODE, i);
  return FALSE;
}

/* "L1::evict_last", "L2::128B" as well */
static gboolean
take_unheard (const PtxInstr *instr, const char *suffix)
{
  for (guint i = 0; i < G_N_ELEMENTS (unheard); i++) {
    gsize n = strlen (unheard[i]);
    if (strncmp (suffix, unheard[i], n) == 0
        && (suffix[n] == '\0' || (unheard[i][0] == 'L' && suffix[n] == ':')))
      return strchr (instr->op->classes, 'K') != NULL;
  }
  return FALSE;
}

/* The list of the type that is next. */
static const char *
list_of (const PtxOp *op, guint n)
{
  const char *list = op->types;
  for (; n > 0 && list != NULL; n--)
    list = strchr (list, ';') != NULL ? strchr (list, ';') + 1 : NULL;
  return list != NULL && *list != '\0' ? list : NULL;
}

static gboolean
take_type (PtxInstr *instr, const char *suffix)
{
  PtxType type = ptx_type_of (suffix, strlen (suffix));
  const char *list
      = instr->n_types < PTX_MAX_TYPES ? list_of (instr->op, instr->n_types) : NULL;
  if (type == PTX_none || list == NULL)
    return FALSE;
  g_autofree char *own = g_strndup (list, strcspn (list, ";"));
  if (!has_word (own, suffix))
    return FALSE;
  instr->type[instr->n_types++] = type;
  return TRUE;
}

static gboolean
take_one (PtxInstr *instr, const char *suffix)
{
  return *suffix != '\0'
         && (take_type (instr, suffix) || take_mode (instr, suffix)
             || take_named (instr, suffix) || take_unheard (instr, suffix));
}

/* The number of suffixes that were taken; a reason unless all were, and nothing lacks. */
static guint
take_all (PtxInstr *instr, char **suffixes_of, char **out_reason)
{
  const PtxOp *op = instr->op;
  guint n = 0;
  while (suffixes_of[n] != NULL && take_one (instr, suffixes_of[n]))
    n++;
  gboolean needs_mode = strchr (op->classes, 'M') != NULL && op->modes[0] != '?';
  if (suffixes_of[n] != NULL)
    *out_reason = g_strdup_printf ("%s has no “.%s” here", op->name, suffixes_of[n]);
  else if (needs_mode && instr->chosen[PTX_CLASS_MODE] == 0)
    *out_reason = g_strdup_printf ("%s lacks a mode", op->name);
  else if (list_of (op, instr->n_types) != NULL)
    *out_reason = g_strdup_printf ("%s lacks a type", op->name);
  return n;
}

/* @op with the suffixes that are behind its name; @n_best: how many of them another row took, whose reason is kept if
 * this one takes no more. */
static gboolean
try_row (const PtxOp *op, const char *rest, PtxInstr *instr, guint *n_best, char **out_reason)
{
  PtxInstr tried = *instr;
  g_auto (GStrv) list = *rest != '\0' ? g_strsplit (rest + 1, ".", -1) : g_new0 (char *, 1);
  g_autofree char *reason = NULL;
  tried.op = op;
  tried.run = op->run;
  guint n = take_all (&tried, list, &reason);
  if (reason == NULL) {
    *instr = tried;
    return TRUE;
  }
  if (*out_reason == NULL || n > *n_best) {
    g_free (*out_reason);
    *out_reason = g_steal_pointer (&reason);
    *n_best = n;
  }
  return FALSE;
}

gboolean
ptx_read_opcode (const char *text, PtxInstr *instr, char **out_reason)
{
  guint n_best = 0;
  for (guint i = 0; i < G_N_ELEMENTS (ops); i++) {
    gsize n = strlen (ops[i].name);
    if (strncmp (text, ops[i].name, n) == 0 && (text[n] == '\0' || text[n] == '.')
        && try_row (&ops[i], text + n, instr, &n_best, out_reason))
      return TRUE;
  }
  if (*out_reason == NULL)
    *out_reason = g_strdup_printf ("the instruction %s is not known", text);
  return FALSE;
}
