/* SPDX-License-Identifier: MIT
 *
 * test-record.c: what a record has of the calls that were made, and that no file, whatever is in it, is more than
 * refused: cut off at every byte, a bit changed anywhere, any number in any field with checksums that fit. */
#include "../../fault/use-device.h"

#include <glib/gstdio.h>
#include <unistd.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "plugin/record-private.h"
#include "plugin/tiny-registry.h"

static char *path, *other;
static guint8 *content;
static gsize size;

/* Every function of REF, recorded; what was written while the program still runs is all there. */
static void
make_record (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *folder = g_dir_make_tmp ("tiny-record-XXXXXX", NULL);
  path = g_build_filename (folder, "whole", NULL);
  other = g_build_filename (folder, "other", NULL);
  tiny_env_set_text (TINY_ENV_RECORD, path);
  TinyDevice *device = tiny_registry_open (tiny_registry_get_default (), "REF", &error);
  g_assert_no_error (error);
  g_assert_true (use (device, 3, &error));
  g_assert_no_error (error);
  g_object_unref (device);
  g_assert_true (g_file_get_contents (path, (char **) &content, &size, NULL));
}

static TinyRecord *
open_bytes (const guint8 *bytes, gsize n, GError **error)
{
  g_assert_true (g_file_set_contents_full (other, (const char *) bytes, (gssize) n,
                                           G_FILE_SET_CONTENTS_NONE, 0600, NULL));
  return tiny_record_open (other, error);
}

static guint
count_kind (const TinyRecord *record, TinyRecordKind kind, TinyRecordFrame *out_last)
{
  TinyRecordFrame frame;
  guint n = 0;
  for (guint i = 0; i < tiny_record_get_n_frames (record); i++) {
    tiny_record_get_frame (record, i, &frame);
    if (frame.kind != kind)
      continue;
    *out_last = frame;
    n++;
  }
  return n;
}

/* Reads all that can be read. */
static void
walk (const TinyRecord *record)
{
  TinyRecordFrame frame, result;
  TinyRecordCommand command;
  TinyLinear linear;
  for (guint i = 0; i < tiny_record_get_n_frames (record); i++) {
    tiny_record_get_frame (record, i, &frame);
    tiny_record_get_result (record, frame.call, &result);
    guint64 sum = 0;
    if (frame.kind == TINY_RECORD_SUBMIT)
      for (TinyRecordField field = frame.fields[2];
           tiny_record_next_command (&field, &command);) {
        for (guint b = 0; b < command.n_buffers; b++)
          sum += command.buffers[b].offset;
        for (guint v = 0; v < command.n_variables; v++)
          sum += (guint64) command.variables[v];
      }
    g_autoptr (GBytes) data = NULL;
    if (frame.kind == TINY_RECORD_COMPILE
        && tiny_record_get_data (record, frame.fields[6].number, &data, NULL) && data != NULL
        && tiny_record_read_linear (g_bytes_get_data (data, NULL), g_bytes_get_size (data),
                                    &linear))
      for (guint k = 0; k < linear.n_instrs; k++)
        sum += linear.instrs[k].op + strlen (linear.name);
    g_assert_cmpuint (sum, !=, G_MAXUINT64); /* it was read */
  }
}

static void
test_frames (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyRecord) record = tiny_record_open (path, &error);
  TinyRecordFrame frame = { 0 };
  g_autoptr (GBytes) data = NULL;
  g_assert_no_error (error);
  g_assert_cmpuint (tiny_record_get_cut (record), ==, 0);
  g_assert_cmpuint (count_kind (record, TINY_RECORD_BACKEND, &frame), ==, 1);
  g_assert_cmpstr (frame.fields[0].bytes, ==, "REF");
  g_assert_cmpuint (count_kind (record, TINY_RECORD_COMPILE, &frame), ==, 1);
  g_assert_cmpstr (frame.fields[4].bytes, ==, "put");
  g_assert_cmpuint (count_kind (record, TINY_RECORD_CLOSE, &frame), ==, 1);
  g_assert_cmpuint (count_kind (record, TINY_RECORD_DOWNLOADED, &frame), >=, 1);
  g_assert_cmpuint (frame.fields[2].number, ==, N * sizeof (float));
  g_assert_true (tiny_record_get_data (record, frame.fields[4].number, &data, &error));
  g_assert_cmpuint (g_bytes_get_size (data), ==, N * sizeof (float));
  const float *values = g_bytes_get_data (data, NULL);
  g_assert_cmpfloat (values[0], ==, 3);
  g_assert_cmpfloat (values[7], ==, 7);
  walk (record);
}

/* Every prefix is a record that ends earlier, or none yet. */
static void
test_cut (void)
{
  const gsize step = size / 3000 + 1;
  guint n_frames = 0;
  for (gsize n = 0; n < size; n += n < 2048 ? 1 : step) {
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyRecord) record = open_bytes (content, n, &error);
    if (record == NULL) {
      g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
      g_assert_cmpuint (n_frames, ==, 0);
      continue;
    }
    g_assert_cmpuint (tiny_record_get_n_frames (record), >=, n_frames);
    g_assert_cmpuint (tiny_record_get_cut (record), <, n);
    n_frames = tiny_record_get_n_frames (record);
  }
  g_assert_cmpuint (n_frames, >, 10);
}

/* Nothing is read that is not what was written. */
static void
test_spoilt (void)
{
  g_autofree guint8 *bytes = g_memdup2 (content, size);
  for (guint i = 0; i < 500; i++) {
    const gsize at = (gsize) g_test_rand_int_range (0, (gint) size);
    const guint8 bit = (guint8) (1 << g_test_rand_int_range (0, 8));
    g_autoptr (GError) error = NULL;
    bytes[at] ^= bit;
    g_autoptr (TinyRecord) record = open_bytes (bytes, size, &error);
    g_assert_null (record);
    g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
    g_assert_nonnull (strstr (error->message, "byte "));
    bytes[at] ^= bit;
  }
}

/* Writes another word into a frame, and the checksums that fit. */
static void
change (guint8 *bytes, gsize frame)
{
  static const guint64 odd[] = { 0,
                                 1,
                                 2,
                                 5,
                                 8,
                                 255,
                                 1 << 20,
                                 G_MAXUINT32,
                                 G_GUINT64_CONSTANT (1) << 32,
                                 G_GUINT64_CONSTANT (1) << 61,
                                 G_MAXINT64,
                                 G_MAXUINT64 - 7,
                                 G_MAXUINT64 };
  guint64 *head = (guint64 *) (void *) (bytes + frame);
  guint64 *words = head + RECORD_HEAD_WORDS;
  const gint n = (gint) (head[RECORD_N_BYTES] / 8);
  const guint64 value = odd[g_test_rand_int_range (0, G_N_ELEMENTS (odd))];
  const gint at = g_test_rand_int_range (-2, MAX (n, -1));
  if (at < 0)
    head[at == -1 ? RECORD_KIND : RECORD_CALL_NUMBER] = value % 64;
  else
    words[at] = value;
  head[RECORD_CHECK] = record_checksum (words, head[RECORD_N_BYTES]);
  head[RECORD_HEAD_CHECK] = record_checksum (head, 8 * RECORD_HEAD_CHECK);
}

static void
test_hostile (void)
{
  g_autoptr (GArray) frames = g_array_new (FALSE, FALSE, sizeof (gsize));
  for (gsize at = strlen (TINY_RECORD_MAGIC); at < size;) {
    const guint64 *head = (const guint64 *) (const void *) (content + at);
    g_array_append_val (frames, at);
    at += RECORD_HEAD_BYTES + head[RECORD_N_BYTES];
  }
  guint n_opened = 0;
  for (guint i = 0; i < 1500; i++) {
    g_autofree guint8 *bytes = g_memdup2 (content, size);
    for (gint changes = g_test_rand_int_range (1, 4); changes > 0; changes--)
      change (bytes, g_array_index (frames, gsize,
                                    (guint) g_test_rand_int_range (0, (gint) frames->len)));
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyRecord) record = open_bytes (bytes, size, &error);
    g_assert_true ((record != NULL) == (error == NULL));
    if (record != NULL)
      walk (record);
    n_opened += record != NULL;
  }
  g_assert_cmpuint (n_opened, >, 100);
}

/* Data that are gone from the file are an error; those of a file that another took the place of are there. */
static void
test_other_writers (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyRecord) record = open_bytes (content, size, &error);
  TinyRecordFrame frame = { 0 };
  g_autoptr (GBytes) data = NULL, none = NULL;
  g_assert_no_error (error);
  g_assert_cmpuint (count_kind (record, TINY_RECORD_DOWNLOADED, &frame), >=, 1);
  g_autoptr (TinyRecord) cut = open_bytes (content, size, &error); /* in its place */
  g_assert_true (tiny_record_get_data (record, frame.fields[4].number, &data, &error));
  g_assert_true (truncate (other, 8) == 0);
  g_assert_false (tiny_record_get_data (cut, frame.fields[4].number, &none, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_IO);
  g_assert_nonnull (strstr (error->message, other));
  walk (cut);
  walk (record);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  make_record ();
  g_test_add_func ("/plugin/record/frames", test_frames);
  g_test_add_func ("/plugin/record/cut", test_cut);
  g_test_add_func ("/plugin/record/spoilt", test_spoilt);
  g_test_add_func ("/plugin/record/hostile", test_hostile);
  g_test_add_func ("/plugin/record/other-writers", test_other_writers);
  const int status = g_test_run ();
  g_autofree char *folder = g_path_get_dirname (path);
  g_unlink (path);
  g_unlink (other);
  g_rmdir (folder);
  return status;
}
