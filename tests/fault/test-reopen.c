/* SPDX-License-Identifier: MIT
 *
 * test-reopen.c: a device that was lost is opened again under its name when a program asks for that, as the message says:
 * what is new computes, what had its data there goes on saying that it was lost. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/tiny-error.h"
#include "engine/tiny-devices.h"
#include "tiny.h"

#define NAME "ISOLATED+CPU"

/* The only child of this process, in which the device is. */
static pid_t
find_worker (void)
{
  g_autofree char *path = g_strdup_printf ("/proc/self/task/%d/children", (int) getpid ()),
                  *text = NULL;
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  return (pid_t) g_ascii_strtoll (text, NULL, 10);
}

static TinyTensor *
new_tensor (const char *device)
{
  static const float data[] = { 1, 2, 3 };
  static const gint64 shape[] = { 3 };
  return g_object_ref_sink (
      tiny_tensor_new_from_data (device, TINY_DTYPE_F32, shape, 1, data, sizeof data));
}

/* The sum of @x with a number is as it has to be, or an error of a lost device. */
static gboolean
computes (TinyTensor *x, double number, GError **error)
{
  g_autoptr (TinyTensor) sum
      = g_object_ref_sink (tiny_tensor_add (x, tiny_tensor_scalar (number)));
  float data[3];
  if (!tiny_tensor_copy_data (sum, data, sizeof data, error))
    return FALSE;
  for (guint i = 0; i < 3; i++)
    g_assert_cmpfloat (data[i], ==, (float) (i + 1 + number));
  return TRUE;
}

static void
is_lost (TinyTensor *x, double number)
{
  g_autoptr (GError) error = NULL;
  g_assert_false (computes (x, number, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST);
}

static void
test_again (void)
{
  g_autoptr (GError) error = NULL;
  g_assert_true (tiny_set_default_device (NAME, &error));
  for (guint round = 0; round < 3; round++) {
    g_autoptr (TinyTensor) x = new_tensor (NULL);
    g_assert_true (computes (x, 1, &error));
    g_assert_true (computes (x, round + 10, &error));
    const pid_t worker = find_worker ();
    g_assert_cmpint (worker, >, 0);
    g_assert_cmpint (kill (worker, SIGKILL), ==, 0);
    is_lost (x, 1); /* with a program that is loaded */
    is_lost (x, round + 20);
    g_autoptr (TinyTensor) early = new_tensor (NULL);
    is_lost (early, 1); /* nothing is opened again by itself */
    const char *name = round == 1 ? (tiny_set_default_device (NAME, &error) ? NAME : NULL)
                                  : tiny_open_device (NAME, &error);
    g_assert_no_error (error);
    g_assert_cmpstr (name, ==, NAME);
    g_autoptr (TinyTensor) y = new_tensor (NULL);
    computes (y, 1, &error);
    g_assert_no_error (error);
    computes (y, round + 30, &error);
    g_assert_no_error (error);
    is_lost (x, 1);
    g_assert_cmpstr (tiny_open_device (NAME, &error), ==, NAME);
    g_assert_true (computes (y, 2, &error)); /* it was not opened once more */
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/fault/reopen/again", test_again);
  return g_test_run ();
}
