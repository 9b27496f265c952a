/* SPDX-License-Identifier: MIT
 *
 * chance.c: makes arguments, see chance.h. */
#include "chance.h"

#include <math.h>
#include <string.h>

enum { LARGE = 64 /* a size beyond this is not computed with */, MAX_DEPTH = 2 };

/* splitmix64 (Steele et al. 2014). */
static guint64
next (Chance *c)
{
  guint64 z = c->state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

guint
chance_int (Chance *c, guint n)
{
  return (guint) (next (c) % n);
}

/* ---- tensors that every call may take ---- */
static void
add_input (Chance *c, TinyTensor *tensor)
{
  g_ptr_array_add (c->inputs, g_object_ref_sink (tensor));
}

static TinyTensor *
new_numbers (TinyDType dtype, const gint64 *shape, guint n_dims)
{
  gint64 n = 1;
  for (guint i = 0; i < n_dims; i++)
    n *= shape[i];
  gsize n_bytes = (gsize) n * tiny_dtype_get_n_bytes (dtype);
  g_autofree guint8 *data = g_malloc0 (n_bytes + 1);
  for (gint64 i = 0; i < n; i++) {
    double value = i % 7 == 5 ? NAN : (double) (i * 5 % 9) - 3;
    float narrow = (float) value;
    if (dtype == TINY_DTYPE_F32)
      memcpy (data + 4 * i, &narrow, 4);
    else if (dtype == TINY_DTYPE_F64)
      memcpy (data + 8 * i, &value, 8);
    else if (dtype == TINY_DTYPE_BOOL)
      data[i] = i % 3 != 1;
    else if (!tiny_dtype_is_float (dtype)) {
      gint64 whole = i * 5 % 9 - 3;
      memcpy (data + (gsize) i * tiny_dtype_get_n_bytes (dtype), &whole,
              tiny_dtype_get_n_bytes (dtype));
    } else
      memset (data + (gsize) i * tiny_dtype_get_n_bytes (dtype), (int) (i * 37 % 120),
              tiny_dtype_get_n_bytes (dtype));
  }
  return tiny_tensor_new_from_data (NULL, dtype, shape, n_dims, data, n_bytes);
}

static void
add_inputs (Chance *c)
{
  static const struct {
    guint n;
    gint64 sizes[6];
  } shapes[] = { { 0, { 0 } },    { 1, { 3 } },       { 2, { 2, 3 } },
                 { 2, { 3, 3 } }, { 3, { 2, 3, 4 } }, { 4, { 1, 2, 5, 4 } },
                 { 1, { 0 } },    { 3, { 2, 0, 3 } }, { 1, { 8 } },
                 { 2, { 4, 2 } }, { 1, { 1 } },       { 5, { 1, 2, 3, 3, 3 } } };
  static const TinyDType dtypes[]
      = { TINY_DTYPE_F32, TINY_DTYPE_I32, TINY_DTYPE_BOOL, TINY_DTYPE_I64,  TINY_DTYPE_F16,
          TINY_DTYPE_F64, TINY_DTYPE_U8,  TINY_DTYPE_U64,  TINY_DTYPE_BF16, TINY_DTYPE_F8E4M3 };
  for (guint s = 0; s < G_N_ELEMENTS (shapes); s++)
    for (guint d = 0; d < G_N_ELEMENTS (dtypes); d += s % 3 + 1)
      add_input (c, new_numbers (dtypes[d], shapes[s].sizes, shapes[s].n));
  for (guint i = 0; i < c->inputs->len; i++)
    if (tiny_dtype_is_float (tiny_tensor_get_dtype (c->inputs->pdata[i])) && i % 3 != 0)
      tiny_tensor_set_requires_grad (c->inputs->pdata[i], TRUE);
  add_input (c, tiny_tensor_scalar (2));
  add_input (c, tiny_tensor_scalar_float (-0.5));
  add_input (c, tiny_tensor_full (TINY_DTYPE_F32, (gint64[]){ 2, 2 }, 2, 0.5));
  add_input (c, tiny_tensor_add (new_numbers (TINY_DTYPE_F32, (gint64[]){ 2 }, 1),
                                 new_numbers (TINY_DTYPE_F32, (gint64[]){ 3 }, 1)));
  add_input (c, tiny_tensor_ones (TINY_DTYPE_F32,
                                  (gint64[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2 },
                                  16));
  add_input (c, tiny_tensor_to (new_numbers (TINY_DTYPE_F32, (gint64[]){ 2, 3 }, 2), "NULL"));
  add_input (c, g_object_new (TINY_TYPE_TENSOR, NULL));
  add_input (c, new_numbers (TINY_DTYPE_F32, (gint64[]){ 2, 3 }, 2));
  g_object_run_dispose (c->inputs->pdata[c->inputs->len - 1]);
  for (guint i = 0; i < 4; i++)
    g_ptr_array_add (c->inputs, NULL);
}

/* What there is more of than can be computed: built anew, for it is seldom. */
static TinyTensor *
large_tensor (Chance *c)
{
  static const gint64 sizes[] = { 1000, (gint64) 1 << 20, (gint64) 1 << 33, (gint64) 1 << 48 };
  guint n = 1 + chance_int (c, 3);
  gint64 shape[3] = { 1, 1, 1 };
  gint64 all = 1;
  for (guint i = 0; i < n; i++) {
    gint64 size = sizes[chance_int (c, G_N_ELEMENTS (sizes))];
    shape[i] = all > ((gint64) 1 << 48) / size ? 3 : size;
    all *= shape[i];
  }
  TinyDType dtype = chance_int (c, 2) ? TINY_DTYPE_F32 : TINY_DTYPE_I32;
  return tiny_tensor_full (dtype, shape, n, 1);
}

static void
write_tensor (Chance *c, TinyTensor *tensor)
{
  guint n = 0;
  const gint64 *shape = tensor != NULL ? tiny_tensor_get_shape (tensor, &n) : NULL;
  if (tensor == NULL || tiny_tensor_get_error (tensor) != NULL) {
    g_string_append (c->text, tensor == NULL ? "NULL, " : "error, ");
    return;
  }
  g_string_append_printf (c->text, "%s[",
                          tiny_dtype_to_string (tiny_tensor_get_dtype (tensor)));
  for (guint i = 0; i < n; i++)
    g_string_append_printf (c->text, i == 0 ? "%" G_GINT64_FORMAT : " %" G_GINT64_FORMAT,
                            shape[i]);
  g_string_append (c->text, "], ");
}

/* The result of another call. */
static TinyTensor *
made_tensor (Chance *c)
{
  GString *text = c->text;
  const char *name = c->name;
  gboolean reads = c->reads;
  const Call *call = &calls[chance_int (c, n_calls)];
  guint before = c->made->len;
  c->text = g_string_new (NULL);
  c->name = call->name;
  c->reads = call->reads;
  c->depth++;
  call->run (c);
  c->depth--;
  c->reads = reads;
  c->name = name;
  g_string_append_printf (text, "%s (%s) = ", call->name, c->text->str);
  g_string_free (c->text, TRUE);
  c->text = text;
  return c->made->len > before ? c->made->pdata[before] : NULL;
}

TinyTensor *
chance_tensor (Chance *c)
{
  TinyTensor *tensor;
  guint kind = chance_int (c, 40);
  if (kind == 0 && !c->reads) {
    tensor = g_object_ref_sink (large_tensor (c));
    g_ptr_array_add (c->made, tensor);
  } else if (kind < 8 && c->depth < MAX_DEPTH && !c->reads) {
    tensor = made_tensor (c);
  } else {
    tensor = c->inputs->pdata[chance_int (c, c->inputs->len)];
  }
  if (tensor != NULL && tiny_tensor_get_n_elements (tensor) > LARGE * LARGE)
    c->is_large = TRUE;
  write_tensor (c, tensor);
  return tensor;
}

/* ---- numbers ---- */
gint
chance_axis (Chance *c)
{
  static const gint odd[] = { 15, 16, 17, -16, -17, 1000, G_MAXINT, G_MININT, TINY_NO_AXIS };
  gint axis = chance_int (c, 5) == 0 ? odd[chance_int (c, G_N_ELEMENTS (odd))]
                                     : (gint) chance_int (c, 7) - 3;
  g_string_append_printf (c->text, "%d, ", axis);
  return axis;
}

static gint64
any_size (Chance *c)
{
  static const gint64 odd[] = { -1,
                                -1,
                                -2,
                                7,
                                12,
                                17,
                                1000,
                                1 << 16,
                                G_MAXINT,
                                G_MININT,
                                (gint64) 1 << 31,
                                (gint64) 1 << 32,
                                (gint64) 1 << 40,
                                (gint64) 1 << 48,
                                G_MAXINT64,
                                G_MININT64,
                                G_MAXINT64 - 1 };
  gint64 size
      = chance_int (c, 6) == 0 ? odd[chance_int (c, G_N_ELEMENTS (odd))] : chance_int (c, 6);
  if (size > LARGE || size < -LARGE)
    c->is_large = TRUE;
  return size;
}

gint64
chance_size (Chance *c)
{
  gint64 size = any_size (c);
  g_string_append_printf (c->text, "%" G_GINT64_FORMAT ", ", size);
  return size;
}

static double
any_float (Chance *c)
{
  static const double some[]
      = { 0,    1,     -1,     0.5,    2,   3,        -0.25,     1e-5,
          1e30, 1e300, -1e300, 1e-300, NAN, INFINITY, -INFINITY, 9.3e18 };
  return some[chance_int (c, G_N_ELEMENTS (some))];
}

double
chance_float (Chance *c)
{
  double value = any_float (c);
  g_string_append_printf (c->text, "%g, ", value);
  return value;
}

TinyDType
chance_dtype (Chance *c)
{
  static const guint odd[]
      = { TINY_DTYPE_VOID, TINY_DTYPE_INDEX, TINY_N_DTYPES, 255, G_MAXINT };
  guint dtype = chance_int (c, 6) == 0 ? odd[chance_int (c, G_N_ELEMENTS (odd))]
                                       : chance_int (c, TINY_N_DTYPES);
  g_string_append_printf (c->text, "dtype %u, ", dtype);
  return (TinyDType) dtype;
}

const char *
chance_word (Chance *c, const char *const *words)
{
  static const char *const odd[] = { NULL,
                                     "",
                                     "x",
                                     "mean",
                                     "none",
                                     "%s%n",
                                     "\xff\xfe",
                                     "ij,jk",
                                     "((((((((((((((((((((",
                                     "->",
                                     "i i i i i i i i i i i i i i i i i i i" };
  guint n = g_strv_length ((char **) words);
  const char *word = n == 0 || chance_int (c, 4) == 0 ? odd[chance_int (c, G_N_ELEMENTS (odd))]
                                                      : words[chance_int (c, n)];
  g_string_append_printf (c->text, "“%.40s”, ", word != NULL ? word : "NULL");
  return word;
}

/* ---- lists ---- */
/* How many; memory for them or NULL, with which the count may be anything. */
static gpointer
new_list (Chance *c, gsize n_bytes_each, guint *out_n)
{
  static const guint odd[] = { 0, 1, 3, 17, 1000, G_MAXUINT / 2, G_MAXUINT };
  if (chance_int (c, 8) == 0) {
    *out_n = odd[chance_int (c, G_N_ELEMENTS (odd))];
    g_string_append_printf (c->text, "NULL × %u, ", *out_n);
    return NULL;
  }
  *out_n = chance_int (c, 16) == 0 ? 15 + chance_int (c, 30) : chance_int (c, 5);
  /* Of this size exactly: AddressSanitizer sees who reads on. */
  gpointer memory = g_malloc (MAX (*out_n * n_bytes_each, 1));
  g_ptr_array_add (c->lists, memory);
  return memory;
}

gint *
chance_axes (Chance *c, guint *out_n)
{
  gint *axes = new_list (c, sizeof *axes, out_n);
  for (guint i = 0; axes != NULL && i < *out_n; i++)
    axes[i] = chance_axis (c);
  return axes;
}

gint64 *
chance_sizes (Chance *c, guint *out_n)
{
  gint64 *sizes = new_list (c, sizeof *sizes, out_n);
  for (guint i = 0; sizes != NULL && i < *out_n; i++)
    sizes[i] = chance_size (c);
  return sizes;
}

double *
chance_floats (Chance *c, guint *out_n)
{
  double *floats = new_list (c, sizeof *floats, out_n);
  for (guint i = 0; floats != NULL && i < *out_n; i++)
    floats[i] = chance_float (c);
  return floats;
}

TinyTensor **
chance_tensors (Chance *c, guint *out_n)
{
  TinyTensor **tensors = new_list (c, sizeof *tensors, out_n);
  for (guint i = 0; tensors != NULL && i < *out_n; i++)
    tensors[i] = chance_tensor (c);
  return tensors;
}

/* ---- results ---- */
void
chance_about_to_call (Chance *c)
{
  c->about_to_call (c->name, c->text->str);
}

void
chance_take (Chance *c, gboolean wanted, TinyTensor *tensor)
{
  if (wanted != (tensor != NULL))
    g_error ("%s (%s): %s", c->name, c->text->str,
             wanted ? "there is no result" : "an unwanted result");
  if (tensor != NULL)
    g_ptr_array_add (c->made, tensor);
}

void
chance_take_floating (Chance *c, TinyTensor *tensor)
{
  chance_take (c, TRUE, tensor != NULL ? g_object_ref_sink (tensor) : NULL);
}

void
chance_take_list (Chance *c, GPtrArray *tensors)
{
  if (tensors == NULL)
    g_error ("%s (%s): there is no list of results", c->name, c->text->str);
  for (guint i = 0; i < tensors->len; i++)
    chance_take (c, TRUE, g_object_ref (tensors->pdata[i]));
  g_ptr_array_unref (tensors);
}

/* ---- life ---- */
static void
unref_some (gpointer object)
{
  if (object != NULL)
    g_object_unref (object);
}

void
chance_init (Chance *c)
{
  c->text = g_string_new (NULL);
  c->inputs = g_ptr_array_new_with_free_func (unref_some);
  c->made = g_ptr_array_new_with_free_func (g_object_unref);
  c->lists = g_ptr_array_new_with_free_func (g_free);
  add_inputs (c);
}

void
chance_clear (Chance *c)
{
  g_string_free (c->text, TRUE);
  g_ptr_array_unref (c->inputs);
  g_ptr_array_unref (c->made);
  g_ptr_array_unref (c->lists);
}

void
chance_begin (Chance *c, guint64 seed, guint64 number)
{
  g_string_truncate (c->text, 0);
  g_ptr_array_set_size (c->made, 0);
  g_ptr_array_set_size (c->lists, 0);
  c->state = seed * 0x2545f4914f6cdd1du + number;
  c->is_large = FALSE;
  c->depth = 0;
  tiny_tensor_manual_seed (seed + number);
}

void
chance_call (Chance *c, const Call *call)
{
  c->name = call->name;
  c->reads = call->reads;
  call->run (c);
}
