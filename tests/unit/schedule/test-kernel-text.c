/* SPDX-License-Identifier: MIT
 *
 * test-kernel-text.c: texts that are parsed and no kernels: what would stand for memory and is none, and what is so long
 * that looking at it would take the stack or minutes. */
#include <time.h>

#include "../case-fails.h"
#include "base/tiny-error.h"
#include "schedule/kernel-text.h"

#define HEAD                                                                                   \
  "%y = param.f32{slot=0, shape=[8]}\n%x = param.f32{slot=1, shape=[8]}\n"                     \
  "%i = range.index{number=0, kind=loop}(8)\n"

static gboolean
parse (const char *text, GError **error)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  KernelText kernel;
  return kernel_text_parse (&kernel, graph, text, 1, error);
}

static const struct {
  const char *text, *part;
} refused[] = {
  { HEAD "%a = after.f32(load.f32(%x, %i))\nsink(store(%y, %i, load.f32(%a, 5)))", "an after" },
  { HEAD "%a = after.f32(load.f32(%x, %i))\nsink(store(%y, %i, 1.0), store(%a, %i, 2.0))",
    "an after" },
  { HEAD "%a = after.f32(1.0:f32)\nsink(store(%y, %i, load.f32(%a)))", "an after" },
};

static void
test_refused (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (refused); i++) {
    g_autoptr (GError) error = NULL;
    if (parse (refused[i].text, &error) || strstr (error->message, refused[i].part) == NULL)
      CASE_FAILS ("text %u: %s", i, error != NULL ? error->message : "it is a kernel");
  }
}

/* @n statements in a row and @end, after which the text is no kernel, or one. */
static char *
chain (guint n, const char *end)
{
  GString *out = g_string_new (HEAD "%a0 = load.f32(%x, %i)\n");
  for (guint i = 1; i <= n; i++)
    g_string_append_printf (out, "%%a%u = add.f32(%%a%u, 1.5)\n", i, i - 1);
  g_string_append_printf (out, end, n);
  return g_string_free (out, FALSE);
}

static void
test_long (void)
{
  enum { N = 200000, MOST_S = 5 };
  g_autoptr (GError) error = NULL;
  g_autofree char *few = chain (4000, "sink(store(%%y, %%i, %%a%u))");
  g_autofree char *many = chain (N, "sink(store(%%y, %%i, %%a%u))");
  g_autofree char *wrong = chain (8000, "sink(store(%%y, cast.i32(%%i), %%a%u))");
  g_assert_true (parse (few, &error));
  g_assert_no_error (error);
  const clock_t begin = clock (); /* a busy machine counts little */
  g_assert_false (parse (many, &error));
  g_assert_nonnull (strstr (error->message, "nodes, and a kernel 8192 at most"));
  g_clear_error (&error);
  g_assert_false (parse (wrong, &error));
  g_assert_nonnull (strstr (error->message, "the index is i32, not index"));
  g_assert_cmpint (clock () - begin, <, MOST_S * CLOCKS_PER_SEC);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schedule/kernel-text/refused", test_refused);
  g_test_add_func ("/schedule/kernel-text/long", test_long);
  return g_test_run ();
}
