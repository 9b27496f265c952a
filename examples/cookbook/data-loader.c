/* SPDX-License-Identifier: MIT
 *
 * data-loader.c: batches of arrays in memory, in the order of an epoch. */
#include <stdio.h>

#include <tiny.h>

int
main (void)
{
  float squares[5];
  for (int i = 0; i < 5; i++)
    squares[i] = (float) i * i;
  g_autoptr (GBytes) data = g_bytes_new (squares, sizeof squares);
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyLoader) loader = tiny_loader_new_empty (5, /* batch */ 2, &error);
  if (loader == NULL
      || !tiny_loader_add_array (loader, TINY_DTYPE_F32, NULL, 0, data, &error)) {
    fprintf (stderr, "%s\n", error->message);
    return 1;
  }
  tiny_loader_set_drop_last (loader, FALSE);
  tiny_loader_start_epoch (loader, 0);
  for (guint i = 0; i < tiny_loader_get_n_batches (loader); i++) {
    g_autoptr (GPtrArray) batch = tiny_loader_next_batch (loader, &error);
    g_autofree char *text = batch != NULL ? tiny_tensor_to_string (batch->pdata[0]) : NULL;
    printf ("%s\n", text != NULL ? text : error->message);
  }
  return 0;
}
