/* SPDX-License-Identifier: MIT
 *
 * decompose-words.c: values of dtypes that a target does not know at all, in words of 32 bits.
 *
 *   i64 u64 f64           two u32, low and high (decompose-pairs.c); f64 is moved, not computed
 *   u8 u16, small floats  their bits in a u32, zeros above
 *   i8 i16                an i32 of the same value
 *
 * tiny_decompose() first makes everything of a few operations on these, as if the target had them
 * (dec_words_add()): moving, converting, and the arithmetic of 64 bits. This walk then writes each
 * node down in words. A node becomes one, or two where it is a pair; what has no value (STORE, END)
 * becomes as many as it takes. Registers and LOCAL memory of such a dtype are some of words; a buffer
 * of pairs is one of twice as many words. Smaller elements of buffers are pass-words.c's. */
#include "codegen/decompose-private.h"

#include "base/tiny-error.h"
#include "base/tiny-float.h"

#define BIT(op) TINY_INSTR_BIT (TINY_INSTR_##op)

typedef struct {
  Decompose *d;
  guint32 words;     /* TINY_DTYPE_BIT of what is in words */
  GPtrArray *parts;  /* what nodes have become, each list ended by NULL */
  TinyNodeMap first; /* of a node: where its list begins, plus 1 */
  gint64 n_registers, n_locals;
} Walk;

/* ---- what is in words ---- */
gboolean
dec_is_pair (TinyDType dtype)
{
  return dtype != TINY_DTYPE_INDEX && tiny_dtype_get_n_bytes (dtype) == 8;
}

guint32
dec_words_of (const TinyTarget *target)
{
  const guint32 longs = TINY_DTYPE_BIT (TINY_DTYPE_I64) | TINY_DTYPE_BIT (TINY_DTYPE_U64);
  guint32 words = 0;
  for (guint i = TINY_DTYPE_I8; i <= TINY_DTYPE_F64; i++) {
    gsize n_bytes = tiny_dtype_get_n_bytes (i);
    gboolean lacks = (longs & TINY_DTYPE_BIT (i)) != 0
                         ? (target->ops[i] & BIT (ADD)) == 0
                         : (target->dtypes_storage & TINY_DTYPE_BIT (i)) == 0;
    if (lacks && n_bytes != 4)
      words |= TINY_DTYPE_BIT (i);
  }
  return words & longs ? words | longs : words;
}

void
dec_words_add (TinyTarget *target, guint32 words)
{
  const guint64 moves = BIT (LOAD) | BIT (STORE) | BIT (BITCAST) | BIT (WHERE);
  const guint64 counts = BIT (CAST) | BIT (ADD) | BIT (SUB) | BIT (MUL) | BIT (CMPLT)
                         | BIT (CMPNE) | BIT (CMPEQ) | BIT (AND) | BIT (OR) | BIT (XOR)
                         | BIT (SHL) | BIT (SHR);
  for (guint i = TINY_DTYPE_I8; i <= TINY_DTYPE_F64; i++) {
    gboolean has_code
        = tiny_dtype_get_n_bytes (i) != 4 && (words & TINY_DTYPE_BIT (dec_unsigned (i))) != 0;
    if ((words & TINY_DTYPE_BIT (i)) == 0) {
      if (has_code && tiny_dtype_get_n_bytes (i) <= 2)
        target->ops[i] |= BIT (BITCAST);
      continue;
    }
    gboolean is_float = tiny_dtype_is_float (i), is_long = dec_is_pair (i) && !is_float;
    target->ops[i] = is_long ? moves | counts : is_float ? moves : moves | BIT (CAST);
    target->dtypes_storage |= TINY_DTYPE_BIT (i);
    target->dtypes_compute &= ~TINY_DTYPE_BIT (i);
    if (is_long)
      target->dtypes_compute |= TINY_DTYPE_BIT (i);
  }
}

static gboolean
is_in_words (const Walk *self, TinyDType dtype)
{
  return (self->words & TINY_DTYPE_BIT (dtype)) != 0;
}

static gboolean
is_pair (const Walk *self, TinyDType dtype)
{
  return is_in_words (self, dtype) && dec_is_pair (dtype);
}

/* In which word a dtype is, where it is in one. */
static TinyDType
word_for (TinyDType dtype)
{
  return tiny_dtype_is_signed (dtype) && !dec_is_pair (dtype) ? TINY_DTYPE_I32 : TINY_DTYPE_U32;
}

static TinyDType
word_of (const Walk *self, TinyDType dtype)
{
  return is_in_words (self, dtype) ? word_for (dtype) : dtype;
}

/* ---- what nodes have become ---- */

/* Valid until the next part is added. */
static TinyNode *const *
parts_of (const Walk *self, const TinyNode *node)
{
  guint first = GPOINTER_TO_UINT (tiny_node_map_get (&self->first, node));
  g_assert (first > 0);
  return (TinyNode *const *) &self->parts->pdata[first - 1];
}

static void
add_part (Walk *self, TinyNode *part)
{
  g_ptr_array_add (self->parts, part);
}

static void
add_pair (Walk *self, DecPair pair)
{
  add_part (self, pair.low);
  add_part (self, pair.high);
}

static DecPair
pair_of (const Walk *self, const TinyNode *node)
{
  TinyNode *const *parts = parts_of (self, node);
  return (DecPair){ parts[0], parts[1] };
}

static TinyNode *
make (Walk *self, TinyOp op, TinyDType dtype, guint lanes, guint n, TinyNode *const *sources)
{
  return tiny_node_new (self->d->graph, op, dtype, lanes, n, sources, 0, NULL, NULL);
}

/* ---- conversions ---- */

/* @x, a word, with what is above @dtype's bits as @dtype has it. */
static TinyNode *
wrap (Walk *self, TinyNode *x, TinyDType dtype)
{
  Decompose *d = self->d;
  guint n_bits = 8 * tiny_dtype_get_n_bytes (dtype);
  x = dec_bits (d, x, word_for (dtype));
  if (x->dtype == TINY_DTYPE_U32)
    return dec_with_int (d, TINY_OP_AND, x, (G_GINT64_CONSTANT (1) << n_bits) - 1);
  return dec_with_int (d, TINY_OP_SHR, dec_with_int (d, TINY_OP_SHL, x, 32 - n_bits),
                       32 - n_bits);
}

static void
convert_cast (Walk *self, TinyNode *node)
{
  Decompose *d = self->d;
  TinyNode *source = node->sources[0];
  TinyDType from = source->dtype, to = node->dtype;
  gboolean narrows = is_in_words (self, to) && !is_pair (self, to);
  if (is_pair (self, from) && is_pair (self, to)) {
    add_pair (self, pair_of (self, source));
    return;
  }
  if (is_pair (self, to)) {
    add_pair (self, dec_pair_from (d, parts_of (self, source)[0], to));
    return;
  }
  TinyNode *value = is_pair (self, from)
                        ? dec_pair_to (d, pair_of (self, source), from, word_of (self, to))
                        : dec_cast (d, parts_of (self, source)[0], word_of (self, to));
  add_part (self, narrows ? wrap (self, value, to) : value);
}

/* The bits of @x, which the target has, in a word; all but the lowest ones are anything. */
static TinyNode *
word_from_native (Walk *self, TinyNode *x, TinyDType from)
{
  if (!tiny_dtype_is_float (from))
    return dec_cast (self->d, x, TINY_DTYPE_U32);
  return dec_float_to_code (self->d, dec_cast (self->d, x, TINY_DTYPE_F32), from);
}

static TinyNode *
native_from_word (Walk *self, TinyNode *word, TinyDType to)
{
  if (!tiny_dtype_is_float (to))
    return dec_cast (self->d, word, to);
  return dec_cast (self->d, dec_float_from_code (self->d, word, to), to);
}

/* Between words, or between a word and a dtype of 8 or 16 bits that the target has. */
static void
convert_bitcast (Walk *self, TinyNode *node)
{
  TinyNode *source = node->sources[0];
  TinyDType from = source->dtype, to = node->dtype;
  TinyNode *x = parts_of (self, source)[0];
  if (is_pair (self, from) && is_pair (self, to))
    add_pair (self, pair_of (self, source));
  else if (dec_is_pair (from))
    add_part (self, dec_fail (self->d, TINY_OP_BITCAST, TINY_DTYPE_F64, node->lanes));
  else if (!is_in_words (self, from))
    add_part (self, wrap (self, word_from_native (self, x, from), to));
  else if (!is_in_words (self, to))
    add_part (self, native_from_word (self, wrap (self, x, dec_unsigned (from)), to));
  else
    add_part (self, word_of (self, from) == word_of (self, to) ? x : wrap (self, x, to));
}

static void
convert_where (Walk *self, TinyNode *node)
{
  TinyNode *gate = parts_of (self, node->sources[0])[0], *made[2];
  guint n = is_pair (self, node->dtype) ? 2 : 1;
  for (guint i = 0; i < n; i++)
    made[i] = dec_where (self->d, gate, parts_of (self, node->sources[1])[i],
                         parts_of (self, node->sources[2])[i]);
  for (guint i = 0; i < n; i++)
    add_part (self, made[i]);
}

static void
convert_constant (Walk *self, TinyNode *node)
{
  TinyDType word = word_of (self, node->dtype);
  guint64 value = (guint64) node->arg;
  if (!is_pair (self, node->dtype)) {
    gint64 arg = tiny_dtype_is_float (node->dtype)
                     ? (gint64) tiny_float_to_bits (node->dtype, tiny_node_get_float (node))
                     : node->arg;
    add_part (self, dec_int (self->d, word, node, arg));
    return;
  }
  add_part (self, dec_int (self->d, word, node, (gint64) (value & G_MAXUINT32)));
  add_part (self, dec_int (self->d, word, node, (gint64) (value >> 32)));
}

static void
convert_elementwise (Walk *self, TinyNode *node)
{
  TinyOpClass op_class = tiny_op_infos[node->op].op_class;
  TinyDType dtype = node->sources[0]->dtype;
  DecPair pairs[3];
  if (node->op == TINY_OP_CAST) {
    convert_cast (self, node);
  } else if (node->op == TINY_OP_BITCAST) {
    convert_bitcast (self, node);
  } else if (node->op == TINY_OP_WHERE) {
    convert_where (self, node);
  } else if (!is_pair (self, dtype) || node->n_sources != 2) {
    add_part (self, dec_fail (self->d, node->op, dtype, node->lanes));
  } else {
    for (guint i = 0; i < 2; i++)
      pairs[i] = pair_of (self, node->sources[i]);
    if (op_class == TINY_OP_CLASS_COMPARE)
      add_part (self, dec_pair_compare (self->d, node->op, dtype, pairs[0], pairs[1]));
    else
      add_pair (self, dec_pair_op (self->d, node->op, dtype, pairs));
  }
}

/* ---- buffers of pairs ---- */

static TinyNode *
lane_of (Walk *self, TinyNode *x, guint lane)
{
  if (x->lanes == 1)
    return x;
  if (x->op == TINY_OP_CONST)
    return tiny_node_new (self->d->graph, TINY_OP_CONST, x->dtype, 1, 0, NULL, x->arg, NULL,
                          NULL);
  if (x->op == TINY_OP_VECTOR)
    return x->sources[x->n_sources == 1 ? 0 : lane];
  return tiny_node_new (self->d->graph, TINY_OP_EXTRACT, x->dtype, 1, 1, &x, lane, NULL, NULL);
}

/* low 0, high 0, low 1, …: the words as they lie in memory. */
static TinyNode *
interleave (Walk *self, DecPair pair, guint lanes)
{
  g_autofree TinyNode **words = g_new (TinyNode *, 2 * lanes);
  for (guint i = 0; i < lanes; i++) {
    words[2 * i] = lane_of (self, pair.low, i);
    words[2 * i + 1] = lane_of (self, pair.high, i);
  }
  return make (self, TINY_OP_VECTOR, TINY_DTYPE_U32, 2 * lanes, 2 * lanes, words);
}

static DecPair
separate (Walk *self, TinyNode *const *words, guint lanes)
{
  g_autofree TinyNode **split = g_new (TinyNode *, 2 * lanes);
  if (lanes == 1)
    return (DecPair){ words[0], words[1] };
  for (guint i = 0; i < 2 * lanes; i++)
    split[i % 2 * lanes + i / 2] = words[i];
  return (DecPair){ make (self, TINY_OP_VECTOR, TINY_DTYPE_U32, lanes, lanes, split),
                    make (self, TINY_OP_VECTOR, TINY_DTYPE_U32, lanes, lanes, split + lanes) };
}

static TinyNode *
word_buffer (Walk *self, TinyNode *param)
{
  gint64 n = param->ints != NULL && param->ints->n > 0 ? param->ints->v[0] : 1;
  TinyGraph *graph = self->d->graph;
  if (n > G_MAXINT32 / 2 && self->d->error == NULL)
    self->d->error = g_error_new (
        TINY_ERROR, TINY_ERROR_UNSUPPORTED,
        "a buffer of %" G_GINT64_FORMAT
        " elements of %s is more words than an index of the target %s counts; split the tensor",
        n, tiny_dtype_to_string (param->dtype), self->d->target->arch);
  n *= 2;
  return tiny_node_new (graph, TINY_OP_PARAM, TINY_DTYPE_U32, 1, 0, NULL, param->arg,
                        tiny_graph_ints (graph, &n, 1), param->text);
}

/* The index of an access, which fits into a word. */
static TinyNode *
address_of (Walk *self, TinyNode *access)
{
  TinyNode *index = parts_of (self, access->sources[1])[0];
  return is_pair (self, access->sources[1]->dtype) ? dec_bits (self->d, index, TINY_DTYPE_I32)
                                                   : index;
}

/* How an access of pairs is made: all its words at once, or word by word. */
typedef struct {
  TinyNode *buffer, *index, *gate; /* the first word's; gate may be NULL */
  guint lanes;                     /* pairs */
  gboolean at_once;
} Access;

static Access
begin_access (Walk *self, TinyNode *node, guint lanes, guint gate_at)
{
  Decompose *d = self->d;
  TinyNode *index = address_of (self, node);
  Access access
      = { .buffer = word_buffer (self, node->sources[0]),
          .index = dec_with_int (d, TINY_OP_MUL, index, 2),
          .gate = node->n_sources > gate_at ? parts_of (self, node->sources[gate_at])[0] : NULL,
          .lanes = lanes };
  access.at_once = lanes > 1 && 2 * lanes <= d->target->max_lanes
                   && (access.gate == NULL || access.gate->lanes == 1);
  return access;
}

static TinyNode *
index_of (Walk *self, const Access *access, guint word)
{
  return word == 0 ? access->index : dec_with_int (self->d, TINY_OP_ADD, access->index, word);
}

static void
load_pairs (Walk *self, TinyNode *node)
{
  guint lanes = node->lanes, n = node->n_sources;
  Access access = begin_access (self, node, lanes, 2);
  DecPair other = n == 4 ? pair_of (self, node->sources[3]) : (DecPair){ NULL, NULL };
  g_autofree TinyNode **words = g_new (TinyNode *, 2 * lanes);
  TinyNode *sources[4] = { access.buffer, access.index, access.gate };
  if (access.at_once) {
    sources[3] = n == 4 ? interleave (self, other, lanes) : NULL;
    TinyNode *all = make (self, TINY_OP_LOAD, TINY_DTYPE_U32, 2 * lanes, n, sources);
    for (guint i = 0; i < 2 * lanes; i++)
      words[i] = lane_of (self, all, i);
  }
  for (guint i = 0; i < 2 * lanes && !access.at_once; i++) {
    sources[1] = index_of (self, &access, i);
    if (n == 4) {
      sources[2] = lane_of (self, access.gate, i / 2);
      sources[3] = lane_of (self, i % 2 == 0 ? other.low : other.high, i / 2);
    }
    words[i] = make (self, TINY_OP_LOAD, TINY_DTYPE_U32, 1, n, sources);
  }
  add_pair (self, separate (self, words, lanes));
}

static void
store_pairs (Walk *self, TinyNode *node)
{
  TinyNode *value = node->sources[2];
  guint lanes = value->lanes, n = node->n_sources;
  Access access = begin_access (self, node, lanes, 3);
  DecPair pair = pair_of (self, value);
  TinyNode *sources[4] = { access.buffer, access.index, NULL, access.gate };
  if (access.at_once) {
    sources[2] = interleave (self, pair, lanes);
    add_part (self, make (self, TINY_OP_STORE, TINY_DTYPE_VOID, 2 * lanes, n, sources));
    return;
  }
  for (guint i = 0; i < 2 * lanes; i++) {
    sources[1] = index_of (self, &access, i);
    sources[2] = lane_of (self, i % 2 == 0 ? pair.low : pair.high, i / 2);
    sources[3] = n == 4 ? lane_of (self, access.gate, i / 2) : NULL;
    add_part (self, make (self, TINY_OP_STORE, TINY_DTYPE_VOID, 1, n, sources));
  }
}

/* ---- the rest ---- */

/* @node's part @part: over part @part of those of its sources that are pairs, and over all that
 * sources without a value have become. */
static TinyNode *
make_part (Walk *self, TinyNode *node, guint part)
{
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  gboolean has_index = (node->op == TINY_OP_LOAD && node->n_sources > 1)
                       || (node->op == TINY_OP_STORE && node->n_sources > 2);
  gint64 arg = node->arg;
  for (guint i = 0; i < node->n_sources; i++) {
    TinyNode *source = node->sources[i];
    TinyNode *const *parts = parts_of (self, source);
    if (has_index && i == 1)
      g_ptr_array_add (sources, address_of (self, node));
    else if (source->dtype == TINY_DTYPE_VOID)
      for (guint j = 0; parts[j] != NULL; j++)
        g_ptr_array_add (sources, parts[j]);
    else
      g_ptr_array_add (sources, parts[parts[1] != NULL ? part : 0]);
  }
  if (part == 1 && node->op == TINY_OP_REGISTER)
    arg += self->n_registers;
  if (part == 1 && node->op == TINY_OP_LOCAL)
    arg += self->n_locals;
  return tiny_node_new (self->d->graph, node->op, word_of (self, node->dtype), node->lanes,
                        sources->len, (TinyNode *const *) sources->pdata, arg, node->ints,
                        node->text);
}

static void
convert (Walk *self, TinyNode *node)
{
  Decompose *d = self->d;
  gboolean accesses = node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE;
  TinyNode *memory = accesses ? dec_memory_of (node) : NULL;
  gboolean in_words = is_in_words (self, memory != NULL ? memory->dtype : node->dtype);
  for (guint i = 0; i < node->n_sources && !in_words && !accesses; i++)
    in_words = is_in_words (self, node->sources[i]->dtype);
  if (tiny_op_is_elementwise (node->op) && in_words) {
    convert_elementwise (self, node);
  } else if (tiny_op_is_elementwise (node->op)) {
    TinyNode *sources[3];
    for (guint i = 0; i < node->n_sources; i++)
      sources[i] = parts_of (self, node->sources[i])[0];
    add_part (self, dec_op (d, node->op, node->dtype, node->n_sources, sources));
  } else if (node->op == TINY_OP_CONST && in_words) {
    convert_constant (self, node);
  } else if (node->op == TINY_OP_PARAM) {
    add_part (self, node); /* its accesses name what it has become */
  } else if (node->n_sources == 0 && in_words && node->op != TINY_OP_LOCAL
             && node->op != TINY_OP_REGISTER) {
    add_part (self, dec_fail (d, node->op, node->dtype, node->lanes));
  } else if (memory != NULL && memory->op == TINY_OP_PARAM && in_words) {
    if (!dec_is_pair (memory->dtype))
      add_part (self, dec_fail (d, node->op, memory->dtype, node->lanes));
    else if (node->op == TINY_OP_LOAD)
      load_pairs (self, node);
    else
      store_pairs (self, node);
  } else if (memory != NULL && memory->op != TINY_OP_REGISTER
             && !dec_has (d, node->op, word_of (self, memory->dtype))) {
    add_part (self, dec_fail (d, node->op, memory->dtype, node->lanes));
  } else {
    TinyDType dtype = memory != NULL ? memory->dtype : node->dtype;
    for (guint i = 0; i < (is_pair (self, dtype) ? 2 : 1); i++)
      add_part (self, make_part (self, node, i));
  }
}

TinyNode *
dec_to_words (Decompose *d, TinyNode *root, guint32 words)
{
  Walk self = { .d = d, .words = words };
  g_autoptr (GPtrArray) parts = self.parts = g_ptr_array_new ();
  g_autoptr (GPtrArray) order = tiny_graph_toposort (d->graph, &root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_REGISTER)
      self.n_registers = MAX (self.n_registers, node->arg + 1);
    if (node->op == TINY_OP_LOCAL)
      self.n_locals = MAX (self.n_locals, node->arg + 1);
  }
  for (guint i = 0; i < order->len && d->error == NULL; i++) {
    guint first = parts->len + 1;
    convert (&self, order->pdata[i]);
    add_part (&self, NULL);
    tiny_node_map_set (&self.first, order->pdata[i], GUINT_TO_POINTER (first));
  }
  TinyNode *made = d->error == NULL ? parts_of (&self, root)[0] : root;
  tiny_node_map_clear (&self.first);
  return made;
}
