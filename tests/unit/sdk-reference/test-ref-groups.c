/* SPDX-License-Identifier: MIT
 *
 * test-ref-groups.c: REF finds items of a work-group that do not wait for each other, and looks to
 * the core as its architecture says. */
#include "ref-harness.h"

static Rig rig;

/* Items exchange values in local memory: by each two of accesses, with a barrier between and without. */
static void
test_races (void)
{
  enum { STORE_OWN, STORE_OTHER, LOAD_FIRST, LOAD_LAST };
  struct {
    int first, second;
    const char *says;
  } cases[] = { { STORE_OWN, LOAD_FIRST, "reads local memory that another item wrote" },
                { LOAD_LAST, STORE_OWN, "writes local memory that other items read" },
                { STORE_OWN, STORE_OTHER, "writes local memory that another item wrote" } };
  for (guint i = 0; i < 2 * G_N_ELEMENTS (cases); i++) {
    Script s;
    script_init (&s);
    s.linear.group[2] = 3;
    guint32 me = emit_arg (&s, TINY_INSTR_GROUP, TINY_DTYPE_I32, 2);
    guint32 local = emit_arg (&s, TINY_INSTR_LOCAL, TINY_DTYPE_I32, 3);
    guint32 other = emit (&s, SUB, I32, 1, emit_int (&s, TINY_DTYPE_I32, 2), me);
    for (guint step = 0; step < 2; step++) {
      int access = step == 0 ? cases[i / 2].first : cases[i / 2].second;
      if (step == 1 && i % 2 == 0)
        emit_n (&s, TINY_INSTR_BARRIER, 0, 1, 0, 0, NULL);
      if (access == LOAD_FIRST || access == LOAD_LAST)
        emit (&s, LOAD, I32, 1, local,
              emit_int (&s, TINY_DTYPE_I32, access == LOAD_FIRST ? 0 : 2));
      else
        emit (&s, STORE, VOID, 1, local, access == STORE_OWN ? me : other, me);
    }
    TinyStatus status = rig_run (&rig, &s, NULL, NULL, NULL);
    g_assert_cmpint (status, ==, i % 2 == 0 ? TINY_STATUS_OK : TINY_STATUS_LAUNCH);
    if (i % 2 == 1)
      g_assert_nonnull (strstr (rig.error.text, cases[i / 2].says));
  }
}

/* Words after DEV=REF:: change what the core may use; what is none is refused by name. */
static void
test_architectures (void)
{
  const TinyRenderer *renderer = rig.module->renderers;
  TinyTarget target = { .struct_size = sizeof target };
  g_assert_cmpint (renderer->target ("", &target, &rig.error), ==, TINY_STATUS_OK);
  g_assert_cmpuint (target.flags & TINY_TARGET_GROUPS, ==, 0);
  const char *arch = "groups,items=16,local=2048,grid=7,lanes=4";
  g_assert_cmpint (renderer->target (arch, &target, &rig.error), ==, TINY_STATUS_OK);
  g_assert_cmpuint (target.flags & TINY_TARGET_GROUPS, !=, 0);
  g_assert_cmpstr (target.arch, ==, arch);
  g_assert_cmpuint (target.max_group_total, ==, 16);
  g_assert_cmpuint (target.local_bytes, ==, 2048);
  g_assert_cmpuint (target.max_grid[2], ==, 7);
  g_assert_cmpuint (target.vector_bits, ==, 128);
  const char *bad[]
      = { "group", "groups=1", "items", "items=0", "items=2000", "ref,", "lanes=4x" };
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    g_assert_cmpint (renderer->target (bad[i], &target, &rig.error), ==, TINY_STATUS_INVALID);
  g_assert_nonnull (strstr (rig.error.text, "lanes"));
}

/* Items of a group, or of two, store to one element of a buffer: what another item wrote or read
 * there may change only after a barrier that both come to, and storing the same is no change. What the
 * buffer held before, which may be anything, decides nothing. */
static void
test_buffer_races (void)
{
  static const struct {
    guint items, groups;
    gboolean is_same, has_barrier, reads_first;
    const char *says; /* or NULL */
  } cases[] = {
    { 2, 1, FALSE, FALSE, FALSE, "writes a buffer's element that another item wrote" },
    { 1, 2, FALSE, FALSE, FALSE, "writes a buffer's element that another item wrote" },
    { 2, 1, TRUE, FALSE, FALSE, NULL },
    { 1, 2, TRUE, FALSE, FALSE, NULL },
    { 2, 1, FALSE, FALSE, TRUE, "reads a buffer's element that another item wrote" },
    { 2, 1, FALSE, TRUE, TRUE, NULL },
    { 1, 2, FALSE, TRUE, TRUE, "reads a buffer's element that another item wrote" },
  };
  static const gint32 before[] = { 7, 0, 1 };
  for (guint n = 0; n < G_N_ELEMENTS (cases) * G_N_ELEMENTS (before); n++) {
    const guint i = n % G_N_ELEMENTS (cases);
    const gint32 held = before[n / G_N_ELEMENTS (cases)];
    Script s;
    script_init (&s);
    gint32 data[2] = { held, held };
    s.linear.group[0] = cases[i].items;
    s.linear.grid[0] = cases[i].groups;
    guint32 me = emit_arg (&s, cases[i].items > 1 ? TINY_INSTR_GROUP : TINY_INSTR_GRID,
                           TINY_DTYPE_I32, 0);
    guint32 p0 = emit_param (&s, TINY_DTYPE_I32, 2);
    guint32 zero = emit_int (&s, TINY_DTYPE_I32, 0), one = emit_int (&s, TINY_DTYPE_I32, 1);
    if (cases[i].reads_first)
      emit (&s, LOAD, I32, 1, p0, emit (&s, SUB, I32, 1, one, me));
    if (cases[i].has_barrier)
      emit_n (&s, TINY_INSTR_BARRIER, 0, 1, 0, 0, NULL);
    emit (&s, STORE, VOID, 1, p0, cases[i].reads_first ? me : zero,
          cases[i].is_same ? one : me);
    TinyStatus status = rig_run (&rig, &s, (void *[]){ data }, (gsize[]){ sizeof data }, NULL);
    g_assert_cmpint (status, ==, cases[i].says ? TINY_STATUS_LAUNCH : TINY_STATUS_OK);
    if (cases[i].says != NULL)
      g_assert_nonnull (strstr (rig.error.text, cases[i].says));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  rig_open (&rig, REF_PLUGIN, "ref");
  g_test_add_func ("/sdk-reference/ref/architectures", test_architectures);
  g_test_add_func ("/sdk-reference/ref/races", test_races);
  g_test_add_func ("/sdk-reference/ref/buffer-races", test_buffer_races);
  int result = g_test_run ();
  rig_close (&rig);
  return result;
}
