/* SPDX-License-Identifier: MIT
 *
 * tensor-text.c: tensors as NumPy writes them: nested brackets, columns aligned, long ones with
 * their middle left out. */
#include <math.h>
#include <string.h>

#include "base/tiny-float.h"
#include "tensor/tiny-tensor-private.h"

double
tiny_tensor_decode (TinyDType dtype, gconstpointer data, gsize i)
{
#define ELEMENT(type) (double) ((const type *) data)[i]
  switch (dtype) {
  case TINY_DTYPE_BOOL:
  case TINY_DTYPE_U8:
    return ELEMENT (guint8);
  case TINY_DTYPE_I8:
    return ELEMENT (gint8);
  case TINY_DTYPE_I16:
    return ELEMENT (gint16);
  case TINY_DTYPE_U16:
    return ELEMENT (guint16);
  case TINY_DTYPE_I32:
    return ELEMENT (gint32);
  case TINY_DTYPE_U32:
    return ELEMENT (guint32);
  case TINY_DTYPE_I64:
    return ELEMENT (gint64);
  case TINY_DTYPE_U64:
    return ELEMENT (guint64);
  case TINY_DTYPE_F32:
    return ELEMENT (float);
  case TINY_DTYPE_F64:
    return ELEMENT (double);
  case TINY_DTYPE_F16:
  case TINY_DTYPE_BF16:
    return tiny_float_from_bits (dtype, ((const guint16 *) data)[i]);
  default:
    return tiny_float_from_bits (dtype, ((const guint8 *) data)[i]);
  }
#undef ELEMENT
}

enum { THRESHOLD = 1000, EDGE = 3 };

typedef struct {
  const TinyTensor *tensor;
  gconstpointer data;
  gboolean shortened;
  int width;
  GString *text;
} Writer;

static char *
element_text (const Writer *self, gsize i)
{
  TinyDType dtype = self->tensor->dtype;
  double value = tiny_tensor_decode (dtype, self->data, i);
  if (dtype == TINY_DTYPE_BOOL)
    return g_strdup (value != 0 ? "True" : "False");
  if (dtype == TINY_DTYPE_I64)
    return g_strdup_printf ("%" G_GINT64_FORMAT, ((const gint64 *) self->data)[i]);
  if (dtype == TINY_DTYPE_U64)
    return g_strdup_printf ("%" G_GUINT64_FORMAT, ((const guint64 *) self->data)[i]);
  if (!tiny_dtype_is_float (dtype))
    return g_strdup_printf ("%.0f", value);
  if (isnan (value))
    return g_strdup ("nan");
  if (isinf (value))
    return g_strdup (value < 0 ? "-inf" : "inf");
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  g_ascii_formatd (number, sizeof number, dtype == TINY_DTYPE_F64 ? "%.8g" : "%.6g", value);
  gboolean plain = strpbrk (number, ".e") == NULL;
  return g_strconcat (number, plain ? "." : "", NULL);
}

/* Calls itself for each part along @axis; without @measure it writes, with it, it only finds the
 * widest element. */
static void
walk (Writer *self, guint axis, gsize start, gsize n_inside, gboolean measure)
{
  if (axis == self->tensor->n_dims) {
    g_autofree char *text = element_text (self, start);
    if (measure)
      self->width = MAX (self->width, (int) strlen (text));
    else
      g_string_append_printf (self->text, "%*s", self->width, text);
    return;
  }
  gint64 size = self->tensor->shape[axis];
  gsize step = size > 0 ? n_inside / (gsize) size : 0;
  gboolean last = axis + 1 == self->tensor->n_dims;
  if (!measure)
    g_string_append_c (self->text, '[');
  for (gint64 i = 0; i < size; i++) {
    if (!measure && i > 0) {
      g_string_append (self->text, last ? ", " : ",");
      for (guint j = axis + 1; !last && j < self->tensor->n_dims; j++)
        g_string_append_c (self->text, '\n');
      for (guint j = 0; !last && j <= axis; j++)
        g_string_append_c (self->text, ' ');
    }
    if (self->shortened && size > 2 * EDGE && i == EDGE) {
      if (!measure)
        g_string_append (self->text, "...");
      i = size - EDGE - 1;
      continue;
    }
    walk (self, axis + 1, start + (gsize) i * step, step, measure);
  }
  if (!measure)
    g_string_append_c (self->text, ']');
}

char *
tiny_tensor_to_string (TinyTensor *self)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = tiny_tensor_get_data (self, &error);
  if (bytes == NULL)
    return g_strdup_printf ("<%s>", error->message);
  Writer writer = { .tensor = self,
                    .data = g_bytes_get_data (bytes, NULL),
                    .shortened = tiny_tensor_get_n_elements (self) > THRESHOLD,
                    .text = g_string_new (NULL) };
  gsize n = (gsize) tiny_tensor_get_n_elements (self);
  walk (&writer, 0, 0, n, TRUE);
  walk (&writer, 0, 0, n, FALSE);
  return g_string_free (writer.text, FALSE);
}
