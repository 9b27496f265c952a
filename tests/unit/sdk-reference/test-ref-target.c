/* SPDX-License-Identifier: MIT
 *
 * test-ref-target.c: what REF looks like to the core, and that it keeps to it. */
#include "ref-harness.h"

#include "../case-fails.h"

static Rig rig;

static void
test_words (void)
{
  TinyTarget target = { .struct_size = sizeof target };
  g_assert_cmpint (rig.module->renderers->target ("x86", &target, &rig.error), ==,
                   TINY_STATUS_INVALID);
  g_assert_nonnull (strstr (rig.error.text, "x86"));
  g_assert_cmpint (rig.module->renderers->target ("words,params=0", &target, &rig.error), ==,
                   TINY_STATUS_INVALID);
  g_assert_nonnull (strstr (rig.error.text, "params"));
}

/* compile() refuses what the architecture does not have. */
static void
test_target (void)
{
  static const struct {
    const char *arch, *wrong;
  } rows[] = {
    { "ref", NULL },
    { "words", "instruction 0 (param) is of a dtype that the target does not have" },
    { "words,f16", NULL },
    { "words,f16,params=1", "has 2 buffers, the target allows 1" },
    { "words,f16,lanes=2", "has more lanes than the target" },
    { "words,f16,least", "instruction 4 (max) is not declared by the target" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    Script *s = g_new (Script, 1);
    g_autofree void *binary = NULL;
    guint64 size;
    script_init (s);
    guint32 to = emit_param (s, TINY_DTYPE_F16, 4), from = emit_param (s, TINY_DTYPE_F16, 4);
    guint32 at = emit_int (s, TINY_DTYPE_I32, 0);
    guint32 x = emit (s, LOAD, F16, 4, from, at);
    emit (s, STORE, VOID, 4, to, at, emit (s, MAX, F16, 4, x, x));
    TinyCompileArgs args = {
      .struct_size = sizeof args, .arch = rows[i].arch, .name = "script", .linear = &s->linear
    };
    TinyStatus status = rig.module->renderers->compile (&args, &binary, &size, &rig.error);
    g_assert_cmpint (status, ==, rows[i].wrong ? TINY_STATUS_COMPILE : TINY_STATUS_OK);
    if (rows[i].wrong != NULL && strstr (rig.error.text, rows[i].wrong) == NULL)
      CASE_FAILS ("%s: %s", rows[i].arch, rig.error.text);
    g_free (s);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  rig_open (&rig, REF_PLUGIN, "ref");
  g_test_add_func ("/sdk-reference/ref-target/words", test_words);
  g_test_add_func ("/sdk-reference/ref-target/programs", test_target);
  int status = g_test_run ();
  rig_close (&rig);
  return status;
}
