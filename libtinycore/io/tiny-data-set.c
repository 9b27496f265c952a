/* SPDX-License-Identifier: MIT
 *
 * tiny-data-set.c: finds and loads data sets by name. One row each. */
#include "io/tiny-data-set.h"

#include <string.h>

#include "base/tiny-guard.h"

typedef struct {
  const char *name, *package, *directory; /* the directory where the package puts it */
} Known;

static const Known known_sets[] = {
  { "fashion-mnist", "dataset-fashion-mnist", "/usr/share/datasets/fashion-mnist" },
};

/* What each of the four files is; the sets of the MNIST family share these names. */
static const struct {
  const char *name;
  guint n_dims;
  gsize offset;
} parts[] = {
  { "train-images-idx3-ubyte", 3, G_STRUCT_OFFSET (TinyDataSet, images) },
  { "train-labels-idx1-ubyte", 1, G_STRUCT_OFFSET (TinyDataSet, labels) },
  { "t10k-images-idx3-ubyte", 3, G_STRUCT_OFFSET (TinyDataSet, test_images) },
  { "t10k-labels-idx1-ubyte", 1, G_STRUCT_OFFSET (TinyDataSet, test_labels) },
};

#define MAX_BYTES ((gsize) 1 << 30)

static gboolean
load_part (
    const Known *known, const char *directory, guint part, TinyDataSet *out, GError **error)
{
  TinyIdx *idx = G_STRUCT_MEMBER_P (out, parts[part].offset);
  g_autofree char *plain = g_build_filename (directory, parts[part].name, NULL);
  g_autofree char *packed = g_strconcat (plain, ".gz", NULL);
  const char *path = g_file_test (packed, G_FILE_TEST_EXISTS) ? packed : plain;
  if (!g_file_test (path, G_FILE_TEST_EXISTS)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO,
                 "%s: no such file; %s is in the package %s (apt install %s), or in the folder "
                 "given with --data",
                 packed, known->name, known->package, known->package);
    return FALSE;
  }
  if (!tiny_idx_load (path, MAX_BYTES, idx, error))
    return FALSE;
  if (idx->dtype == TINY_DTYPE_U8 && idx->n_dims == parts[part].n_dims)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
               "%s: at byte 0: wanted u8 with %u axes, found %s with %u", path,
               parts[part].n_dims, tiny_dtype_to_string (idx->dtype), idx->n_dims);
  return FALSE;
}

static gboolean
check_pair (const char *what, const TinyIdx *images, const TinyIdx *labels, GError **error)
{
  if (images->shape[0] == labels->shape[0] && images->shape[0] > 0 && images->shape[1] > 0
      && images->shape[2] > 0)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
               "%s: at byte 4: %" G_GINT64_FORMAT " images of %" G_GINT64_FORMAT
               "×%" G_GINT64_FORMAT " and %" G_GINT64_FORMAT " labels do not fit each other",
               what, images->shape[0], images->shape[1], images->shape[2], labels->shape[0]);
  return FALSE;
}

/* Labels of the known sets are below this. */
enum { N_CLASSES = 10 };

static gboolean
check_labels (TinyDataSet *self, const char *what, const TinyIdx *labels, GError **error)
{
  gsize n;
  const guint8 *label = g_bytes_get_data (labels->data, &n);
  for (gsize i = 0; i < n; i++) {
    if (label[i] >= N_CLASSES) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                   "%s: at byte %" G_GSIZE_FORMAT ": label %u is not below %d", what, i + 8,
                   label[i], N_CLASSES);
      return FALSE;
    }
    self->n_classes = MAX (self->n_classes, label[i] + 1u);
  }
  return TRUE;
}

static gboolean
check (TinyDataSet *self, GError **error)
{
  if (!check_pair ("training set", &self->images, &self->labels, error)
      || !check_pair ("test set", &self->test_images, &self->test_labels, error))
    return FALSE;
  if (self->images.shape[1] != self->test_images.shape[1]
      || self->images.shape[2] != self->test_images.shape[2]) {
    g_set_error_literal (
        error, TINY_ERROR, TINY_ERROR_FORMAT,
        "test set: at byte 8: images of another size than in the training set");
    return FALSE;
  }
  return check_labels (self, "labels of the training set", &self->labels, error)
         && check_labels (self, "labels of the test set", &self->test_labels, error);
}

gboolean
tiny_data_set_load (const char *name,
                    const char *directory,
                    TinyDataSet *out_data_set,
                    GError **error)
{
  tiny_return_error_unless (name != NULL, error, FALSE, "no name given");
  tiny_return_error_unless (out_data_set != NULL, error, FALSE,
                            "no room for the data set given");
  const Known *known = NULL;
  memset (out_data_set, 0, sizeof *out_data_set);
  for (guint i = 0; i < G_N_ELEMENTS (known_sets); i++)
    if (strcmp (known_sets[i].name, name) == 0)
      known = &known_sets[i];
  if (known == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "data set: %s is not known; there is %s", name, known_sets[0].name);
    return FALSE;
  }
  gboolean good = TRUE;
  for (guint part = 0; good && part < G_N_ELEMENTS (parts); part++)
    good = load_part (known, directory ? directory : known->directory, part, out_data_set,
                      error);
  if (good && check (out_data_set, error))
    return TRUE;
  tiny_data_set_clear (out_data_set);
  return FALSE;
}

void
tiny_data_set_clear (TinyDataSet *self)
{
  if (self == NULL)
    return;
  for (guint part = 0; part < G_N_ELEMENTS (parts); part++)
    tiny_idx_clear (G_STRUCT_MEMBER_P (self, parts[part].offset));
  memset (self, 0, sizeof *self);
}
