/* SPDX-License-Identifier: MIT
 *
 * test-loader.c: batches of arrays and of what a function reads, with and without a thread that reads ahead;
 * errors reach who asks; epochs and loaders that end early. */
#include <string.h>
#include <sys/wait.h>
#include <tiny.h>
#include <unistd.h>

#include "../default-device.h"

typedef struct {
  gint n_calls, n_destroyed;
  guint64 bad;      /* the item that cannot be read */
  gint wrong_bytes; /* too many, or too few */
  GThread *thread;
  gulong wait_us;
} Source;

/* Item i is an i16 of -i and two f32 of i and i / 2. */
static GBytes *
read_item (guint64 index, gpointer user_data, GError **error)
{
  Source *self = user_data;
  g_atomic_int_inc (&self->n_calls);
  self->thread = g_thread_self ();
  g_usleep (self->wait_us);
  if (index == self->bad) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "item %u is gone", (guint) index);
    return NULL;
  }
  guint8 bytes[16] = { 0 };
  const gint16 x = (gint16) - (gint64) index;
  const float y[] = { (float) index, (float) index / 2 };
  memcpy (bytes, &x, sizeof x);
  memcpy (bytes + sizeof x, y, sizeof y);
  return g_bytes_new (bytes, (gsize) ((gint) (sizeof x + sizeof y) + self->wrong_bytes));
}

static void
count_destroyed (gpointer user_data)
{
  ((Source *) user_data)->n_destroyed++;
}

/* An array of u8, whose elements are 3 i, between the two fields of the function. */
static TinyLoader *
loader_new (Source *source, guint n, guint batch, guint prefetch)
{
  g_autoptr (GError) error = NULL;
  g_autofree guint8 *bytes = g_malloc (n + 1);
  for (guint i = 0; i < n; i++)
    bytes[i] = (guint8) (3 * i);
  g_autoptr (GBytes) array = g_bytes_new (bytes, n);
  TinyLoader *self = tiny_loader_new_empty (n, batch, &error);
  tiny_loader_add_field (self, TINY_DTYPE_I16, NULL, 0, &error);
  tiny_loader_add_array (self, TINY_DTYPE_U8, (gint64[]){ 1, 1 }, 2, array, &error);
  tiny_loader_add_field (self, TINY_DTYPE_F32, (gint64[]){ 2 }, 1, &error);
  g_assert_no_error (error);
  tiny_loader_set_function (self, read_item, source, count_destroyed);
  tiny_loader_set_shuffle (self, TRUE, 7);
  tiny_loader_set_prefetch (self, prefetch);
  return self;
}

/* Reads an epoch of @n items, checks every batch, and writes the order to @out. */
static void
read_epoch (TinyLoader *self, guint n, guint batch, gint16 *out)
{
  g_autoptr (GError) error = NULL;
  guint at = 0;
  GPtrArray *tensors;
  while ((tensors = tiny_loader_next_batch (self, &error)) != NULL) {
    gint16 x[64] = { 0 };
    guint8 u[64] = { 0 };
    float y[128] = { 0 };
    guint found = MIN (batch, n - at);
    guint n_dims;
    const gint64 *shape = tiny_tensor_get_shape (tensors->pdata[1], &n_dims);
    g_assert_cmpuint (n_dims, ==, 3);
    g_assert_cmpint (shape[0], ==, found);
    g_assert_true (tiny_tensor_copy_data (tensors->pdata[0], x, 2 * found, &error));
    g_assert_true (tiny_tensor_copy_data (tensors->pdata[1], u, found, &error));
    g_assert_true (tiny_tensor_copy_data (tensors->pdata[2], y, 8 * found, &error));
    for (guint i = 0; i < found; i++) {
      g_assert_cmpint (u[i], ==, (guint8) (-3 * x[i]));
      g_assert_cmpfloat (y[2 * i], ==, -x[i]);
      g_assert_cmpfloat (y[2 * i + 1], ==, -x[i] / 2.0f);
      out[at++] = x[i];
    }
    g_ptr_array_unref (tensors);
  }
  g_assert_no_error (error);
  g_assert_cmpuint (at, ==, n);
  g_assert_null (tiny_loader_next_batch (self, &error));
}

/* With a thread and without, all items once, in the same order, which is another in the next epoch. */
static void
test_orders (void)
{
  if (skips_without_device ())
    return;
  enum { ITEMS = 53, BATCH = 8 };
  gint16 orders[3][2][ITEMS];
  static const guint prefetch[] = { 0, 1, 5 };
  for (guint k = 0; k < 3; k++) {
    Source source = { .bad = G_MAXUINT64 };
    g_autoptr (TinyLoader) loader = loader_new (&source, ITEMS, BATCH, prefetch[k]);
    g_assert_cmpuint (tiny_loader_get_n_batches (loader), ==, 7);
    for (guint epoch = 0; epoch < 2; epoch++) {
      guint64 seen = 0;
      tiny_loader_start_epoch (loader, epoch);
      read_epoch (loader, ITEMS, BATCH, orders[k][epoch]);
      for (guint i = 0; i < ITEMS; i++)
        seen |= (guint64) 1 << -orders[k][epoch][i];
      g_assert_cmphex (seen, ==, ((guint64) 1 << ITEMS) - 1);
      g_assert_cmpmem (orders[k][epoch], sizeof orders[0][0], orders[0][epoch],
                       sizeof orders[0][0]);
    }
    g_assert_true ((source.thread == g_thread_self ()) == (prefetch[k] == 0));
    g_assert_cmpint (source.n_calls, ==, 2 * ITEMS);
    tiny_loader_set_drop_last (loader, TRUE);
    g_assert_cmpuint (tiny_loader_get_n_batches (loader), ==, 6);
    g_clear_object (&loader);
    g_assert_cmpint (source.n_destroyed, ==, 1);
  }
  g_assert_true (memcmp (orders[0][0], orders[0][1], sizeof orders[0][0]) != 0);
}

/* The thread reads no further ahead than it may, and ends in the middle of an epoch. */
static void
test_bounds (void)
{
  if (skips_without_device ())
    return;
  Source source = { .bad = G_MAXUINT64, .wait_us = 100 };
  for (guint i = 0; i < 20; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyLoader) loader = loader_new (&source, 100, 4, 2);
    source.n_calls = 0;
    for (guint k = 0; k < i % 4; k++) {
      g_autoptr (GPtrArray) tensors = tiny_loader_next_batch (loader, &error);
      g_assert_cmpuint (tensors->len, ==, 3);
    }
    if (i == 3) {
      g_usleep (100000);
      g_assert_cmpint (g_atomic_int_get (&source.n_calls), ==, 4 * (3 + 2 + 0));
    }
    if (i % 2 == 1)
      tiny_loader_start_epoch (loader, i);
  }
  g_assert_cmpint (source.n_destroyed, ==, 20);
}

static void
test_errors (void)
{
  if (skips_without_device ())
    return;
  for (guint prefetch = 0; prefetch < 3; prefetch++) {
    Source source = { .bad = 10 };
    g_autoptr (TinyLoader) loader = loader_new (&source, 20, 4, prefetch);
    tiny_loader_set_shuffle (loader, FALSE, 0);
    for (guint round = 0; round < 2; round++) {
      g_autoptr (GError) error = NULL;
      TinyTensor *x, *y;
      guint n = 0;
      tiny_loader_start_epoch (loader, 0);
      for (GPtrArray *tensors; (tensors = tiny_loader_next_batch (loader, &error)) != NULL; n++)
        g_ptr_array_unref (tensors);
      g_assert_cmpuint (n, ==, 2);
      g_assert_error (error, TINY_ERROR, TINY_ERROR_IO);
      g_clear_error (&error);
      g_assert_null (tiny_loader_next_batch (loader, &error));
      g_assert_error (error, TINY_ERROR, TINY_ERROR_IO);
      /* Two tensors at a time: they carry it, and then there is an end. */
      tiny_loader_start_epoch (loader, 0);
      for (n = 0; tiny_loader_next (loader, &x, &y); n++) {
        g_assert_true ((tiny_tensor_get_error (x) != NULL) == (n == 2));
        g_object_unref (x);
        g_object_unref (y);
      }
      g_assert_cmpuint (n, ==, 3);
    }
    g_autoptr (GError) error = NULL;
    source = (Source){ .bad = G_MAXUINT64, .wrong_bytes = 1 };
    tiny_loader_start_epoch (loader, 0);
    g_assert_null (tiny_loader_next_batch (loader, &error));
    g_assert_nonnull (strstr (error->message, "another number of bytes for item 0"));
    g_clear_error (&error);
    source.wrong_bytes = -1;
    tiny_loader_start_epoch (loader, 0);
    g_assert_null (tiny_loader_next_batch (loader, &error));
    g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  }
}

static void
test_bad_sizes (void)
{
  if (skips_without_device ())
    return;
  static const struct {
    guint64 n_items;
    guint batch;
  } rows[] = { { 5, 0 }, { G_MAXUINT64, 1 }, { G_MAXUINT32, 1 } };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (GError) error = NULL;
    g_assert_null (tiny_loader_new_empty (rows[i].n_items, rows[i].batch, &error));
    g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  }
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) five = g_bytes_new ("abcde", 5);
  g_autoptr (TinyLoader) loader = tiny_loader_new_empty (5, 3, &error);
  static const gint64 shapes[][2]
      = { { 2, 1 }, { -1, 1 }, { G_MAXINT64, G_MAXINT64 }, { 0, 1 } };
  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++) {
    g_autoptr (GError) wrong = NULL;
    g_assert_false (tiny_loader_add_array (loader, TINY_DTYPE_U8, shapes[i], 2, five, &wrong));
    g_assert_error (wrong, TINY_ERROR, TINY_ERROR_INVALID);
  }
  g_autoptr (GError) wrong = NULL;
  g_assert_false (tiny_loader_add_array (loader, TINY_DTYPE_VOID, NULL, 0, five, &wrong));
  g_clear_error (&wrong);
  g_assert_false (
      tiny_loader_add_field (loader, TINY_DTYPE_U8, (gint64[]){ G_MAXINT64 }, 1, &wrong));
  g_clear_error (&wrong);
  tiny_loader_add_field (loader, TINY_DTYPE_U8, NULL, 0, &error);
  g_assert_no_error (error);
  g_assert_null (tiny_loader_next_batch (loader, &wrong));
  g_assert_nonnull (strstr (wrong->message, "no function for item 0"));
  g_autoptr (TinyLoader) none = tiny_loader_new_empty (0, 3, &error);
  tiny_loader_set_prefetch (none, 2);
  g_assert_null (tiny_loader_next_batch (none, &error));
  g_assert_no_error (error);
}

/* ---- who uses it ---- */
typedef struct {
  TinyLoader *loader;
  TinyLoader *dropped; /* the last reference, or NULL */
  gint n_errors, n_destroyed;
} Meddler;

static gint n_criticals;

static void
count_critical (const char *domain, GLogLevelFlags level, const char *text, gpointer unused)
{
  g_assert_nonnull (strstr (text, "loader: it is used by "));
  g_atomic_int_inc (&n_criticals);
}

/* A function that uses its loader while it is read. */
static GBytes *
meddle (guint64 index, gpointer user_data, GError **error)
{
  Meddler *self = user_data;
  g_autoptr (GError) wrong = NULL, again = NULL;
  guint8 byte = (guint8) index;
  g_assert_null (tiny_loader_next_batch (self->loader, &wrong));
  g_assert_error (wrong, TINY_ERROR, TINY_ERROR_INVALID);
  g_assert_nonnull (strstr (wrong->message, "used by its own function"));
  g_assert_false (tiny_loader_add_field (self->loader, TINY_DTYPE_F32, NULL, 0, &again));
  g_assert_error (again, TINY_ERROR, TINY_ERROR_INVALID);
  tiny_loader_set_function (self->loader, NULL, NULL, NULL);
  tiny_loader_set_shuffle (self->loader, TRUE, 1);
  tiny_loader_set_drop_last (self->loader, TRUE);
  tiny_loader_set_prefetch (self->loader, 3);
  tiny_loader_set_device (self->loader, "REF");
  tiny_loader_start_epoch (self->loader, 1);
  self->n_errors += 2;
  return g_bytes_new (&byte, 1);
}

static void
free_meddler (gpointer data)
{
  g_atomic_int_inc (&((Meddler *) data)->n_destroyed);
}

static TinyLoader *
loader_new_of (TinyItemFunction function, Meddler *source, guint prefetch)
{
  g_autoptr (GError) error = NULL;
  TinyLoader *self = source->loader = tiny_loader_new_empty (8, 2, &error);
  tiny_loader_add_field (self, TINY_DTYPE_U8, NULL, 0, &error);
  tiny_loader_set_function (self, function, source, free_meddler);
  tiny_loader_set_prefetch (self, prefetch);
  g_assert_no_error (error);
  return self;
}

static void
test_own_function (void)
{
  if (skips_without_device ())
    return;
  for (guint prefetch = 0; prefetch < 3; prefetch += 2) {
    enum { CALLS = 6 };
    Meddler source = { NULL };
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyLoader) loader = loader_new_of (meddle, &source, prefetch);
    const guint handler
        = g_log_set_handler ("tinycore", G_LOG_LEVEL_CRITICAL, count_critical, NULL);
    n_criticals = 0;
    for (guint at = 0; at < 4; at++) {
      guint8 found[2];
      g_autoptr (GPtrArray) tensors = tiny_loader_next_batch (loader, &error);
      g_assert_no_error (error);
      g_assert_true (tiny_tensor_copy_data (tensors->pdata[0], found, 2, &error));
      g_assert_cmpuint (found[0], ==, 2 * at);
      g_assert_cmpuint (found[1], ==, 2 * at + 1);
    }
    g_assert_null (tiny_loader_next_batch (loader, &error));
    g_assert_no_error (error);
    g_log_remove_handler ("tinycore", handler);
    g_assert_cmpint (source.n_errors, ==, 8 * 2);
    g_assert_cmpint (n_criticals, ==, 8 * CALLS);
    g_assert_cmpint (source.n_destroyed, ==, 0);
  }
}

/* The last reference goes on the thread that reads ahead, as with a garbage collector there. */
static GBytes *
drop_last (guint64 index, gpointer user_data, GError **error)
{
  Meddler *self = user_data;
  for (guint i = 0; index == 4 && g_atomic_pointer_get (&self->dropped) == NULL; i++) {
    g_assert_cmpuint (i, <, 10000);
    g_usleep (1000);
  }
  if (index == 4) {
    g_object_unref (self->dropped);
    g_atomic_pointer_set (&self->dropped, NULL);
  }
  return g_bytes_new ("x", 1);
}

static void
test_last_reference (void)
{
  if (skips_without_device ())
    return;
  Meddler source = { NULL };
  g_autoptr (GError) error = NULL;
  TinyLoader *loader = loader_new_of (drop_last, &source, 4);
  g_autoptr (GPtrArray) tensors = tiny_loader_next_batch (loader, &error);
  g_assert_no_error (error);
  g_atomic_pointer_set (&source.dropped, loader);
  for (guint i = 0; g_atomic_int_get (&source.n_destroyed) == 0; i++) {
    g_assert_cmpuint (i, <, 10000);
    g_usleep (1000);
  }
  g_assert_null (source.dropped);
}

/* A child of the process has no thread that reads ahead: it starts its own where the parent is, and reads the same. */
static void
test_fork (void)
{
  if (skips_without_device ())
    return;
#ifdef __SANITIZE_THREAD__
  g_test_skip ("ThreadSanitizer ends a child that starts threads");
  return;
#endif
  enum { ITEMS = 40, FORKS = 8 };
  for (guint k = 0; k < FORKS; k++) {
    Source source = { .bad = G_MAXUINT64, .wait_us = k * 100 };
    g_autoptr (TinyLoader) loader = loader_new (&source, ITEMS, 1, 2);
    g_autoptr (GError) error = NULL;
    for (guint at = 0; at < k; at++)
      g_ptr_array_unref (tiny_loader_next_batch (loader, &error));
    const pid_t child = fork ();
    guint n = 0;
    alarm (child == 0 ? 60 : 0);
    for (GPtrArray *tensors; (tensors = tiny_loader_next_batch (loader, &error)) != NULL; n++)
      g_ptr_array_unref (tensors);
    g_assert_no_error (error);
    g_assert_cmpuint (n, ==, ITEMS - k);
    if (child == 0) {
      tiny_loader_start_epoch (loader, 1);
      g_clear_object (&loader);
      _exit (source.n_destroyed == 1 ? 0 : 1);
    }
    int status;
    g_assert_cmpint (waitpid (child, &status, 0), ==, child);
    g_assert_cmpint (status, ==, 0);
  }
}

/* Takes batches and starts again, now and then while another thread does. */
static gpointer
take_and_restart (gpointer loader)
{
  enum { ROUNDS = 300 };
  guint n_refused = 0;
  for (guint i = 0; i < ROUNDS; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GPtrArray) tensors = tiny_loader_next_batch (loader, &error);
    if (error != NULL) {
      g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
      g_assert_nonnull (strstr (error->message, "two threads at once"));
      n_refused++;
    } else if (tensors == NULL || i % 7 == 0)
      tiny_loader_start_epoch (loader, i);
  }
  return GUINT_TO_POINTER (n_refused);
}

static void
test_threads (void)
{
  if (skips_without_device ())
    return;
  enum { THREADS = 3 };
  for (guint prefetch = 0; prefetch < 3; prefetch += 2) {
    Source source = { .bad = G_MAXUINT64 };
    GThread *threads[THREADS];
    guint n_refused = 0;
    g_autoptr (TinyLoader) loader = loader_new (&source, 53, 8, prefetch);
    const guint handler
        = g_log_set_handler ("tinycore", G_LOG_LEVEL_CRITICAL, count_critical, NULL);
    for (guint i = 0; i < THREADS; i++)
      threads[i] = g_thread_new ("reader", take_and_restart, loader);
    for (guint i = 0; i < THREADS; i++)
      n_refused += GPOINTER_TO_UINT (g_thread_join (threads[i]));
    g_log_remove_handler ("tinycore", handler);
    g_test_message ("%u calls were refused", n_refused);
    gint16 order[53];
    tiny_loader_start_epoch (loader, 0);
    read_epoch (loader, 53, 8, order);
  }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR);
  g_test_add_func ("/loader/orders", test_orders);
  g_test_add_func ("/loader/bounds", test_bounds);
  g_test_add_func ("/loader/errors", test_errors);
  g_test_add_func ("/loader/bad-sizes", test_bad_sizes);
  g_test_add_func ("/loader/own-function", test_own_function);
  g_test_add_func ("/loader/last-reference", test_last_reference);
  g_test_add_func ("/loader/fork", test_fork);
  g_test_add_func ("/loader/threads", test_threads);
  return g_test_run ();
}
