/* SPDX-License-Identifier: MIT
 *
 * saving.c: the state of a model into a safetensors file, and back into another. */
#include <stdio.h>

#include <glib/gstdio.h>
#include <tiny.h>

int
main (void)
{
  g_autoptr (TinyModule) model = tiny_linear_new (3, 2, TRUE);
  g_autoptr (TinyModule) other = tiny_linear_new (3, 2, TRUE);
  g_autoptr (GError) error = NULL;
  g_autofree char *folder = g_dir_make_tmp ("tinycore-XXXXXX", &error);
  if (folder == NULL)
    return 1;
  g_autofree char *path = g_build_filename (folder, "model.safetensors", NULL);
  if (!tiny_module_save (model, path, NULL, &error)
      || !tiny_module_load (other, path, /* strict */ TRUE, &error)) {
    fprintf (stderr, "%s\n", error->message);
    return 1;
  }
  g_auto (GStrv) names = tiny_module_get_parameter_names (other);
  for (char **name = names; *name != NULL; name++) {
    double same;
    TinyTensor *a = tiny_module_get_parameter (model, *name);
    TinyTensor *b = tiny_module_get_parameter (other, *name);
    g_autoptr (TinyTensor) equal
        = g_object_ref_sink (tiny_tensor_all (tiny_tensor_eq (a, b), NULL, 0, FALSE));
    if (tiny_tensor_item (equal, &same, &error))
      printf ("%s: %s\n", *name, same != 0 ? "the same" : "another");
  }
  g_remove (path);
  g_rmdir (folder);
  return 0;
}
