/* SPDX-License-Identifier: MIT
 *
 * test-device-spec.c: the grammar of DEV=, row by row. */
#include <string.h>

#include "../case-fails.h"
#include "base/tiny-error.h"
#include "plugin/tiny-device-spec.h"

/* A spec in one line, with every part where it was put. */
static char *
describe (const TinyDeviceSpec *spec)
{
  GString *out = g_string_new (spec->is_help ? "help" : "");
  for (guint i = 0; i < spec->chains->len; i++) {
    const GPtrArray *chain = spec->chains->pdata[i];
    g_string_append (out, i ? " ; " : "");
    for (guint j = 0; j < chain->len; j++) {
      const TinyDeviceTarget *target = chain->pdata[j];
      g_string_append_printf (out, "%s%s%s%s", j ? " | " : "", target->mode ? target->mode : "",
                              target->mode ? "+" : "", target->name);
      if (target->select == TINY_SELECT_RANGE)
        g_string_append_printf (out, " #%u-%u", target->first, target->last);
      if (target->select == TINY_SELECT_ALL)
        g_string_append (out, " #all");
      if (target->select == TINY_SELECT_ID)
        g_string_append_printf (out, " #@%s", target->id);
      for (guint f = 0; f < target->n_fields; f++)
        g_string_append_printf (out, " <%s>", target->fields[f]);
      for (guint o = 0; target->options != NULL && target->options[o] != NULL; o++)
        g_string_append_printf (out, " ?%s", target->options[o]);
    }
  }
  return g_string_free (out, FALSE);
}

static const struct {
  const char *text, *wanted;
} good[] = {
  { "CPU", "CPU" },
  { "cpu", "cpu" },
  { "help", "help" },
  { "HELP", "help" },
  { "?", "help" },
  { "CUDA:1", "CUDA #1-1" },
  { "CUDA:0-3", "CUDA #0-3" },
  { "NPU:*", "NPU #all" },
  { "CUDA:@pci-0000:c1:00.0", "CUDA #@pci-0000:c1:00.0" },
  { "CUDA:@pci-0000:c1:00.0::PTX:sm_90", "CUDA #@pci-0000:c1:00.0 <PTX> <sm_90>" },
  { "CPU:LLVM", "CPU <LLVM>" },
  { "CPU:0:LLVM", "CPU #0-0 <LLVM>" },
  { "CPU::x86_64,native,-avx512f", "CPU <> <x86_64,native,-avx512f>" },
  { "CPU::x86_64,+avx2", "CPU <> <x86_64,+avx2>" },
  { "CPU:1::x86_64", "CPU #1-1 <> <x86_64>" },
  { "NV:PTX:sm_90", "NV <PTX> <sm_90>" },
  { "NULL:CPU:LLVM:x86_64", "NULL <CPU> <LLVM> <x86_64>" },
  { "KFD+AMD", "KFD+AMD" },
  { "KFD+AMD:2:HIP", "KFD+AMD #2-2 <HIP>" },
  { "ISOLATED+NPU", "ISOLATED+NPU" },
  { "CUDA|CPU", "CUDA | CPU" },
  { "CUDA:1|CPU:LLVM|REF", "CUDA #1-1 | CPU <LLVM> | REF" },
  { "CUDA:0;CUDA:1", "CUDA #0-0 ; CUDA #1-1" },
  { "CUDA|CL;CPU", "CUDA | CL ; CPU" },
  { "NPU?freq=max&determinism=1", "NPU ?freq=max ?determinism=1" },
  { "NPU:1:X?a=b|CPU", "NPU #1-1 <X> ?a=b | CPU" },
  { "CPU:3D", "CPU <3D>" }, /* a digit alone does not make an index */
};

static void
test_good (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (good); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyDeviceSpec) spec = tiny_device_spec_parse (good[i].text, &error);
    g_assert_no_error (error);
    g_autofree char *got = describe (spec);
    g_assert_cmpstr (got, ==, good[i].wanted);
  }
}

static const struct {
  const char *text;
  guint column; /* from 1 */
} bad[] = {
  { "", 1 },         { ":0", 1 },     { "CPU|", 5 },
  { "|CPU", 1 },     { "CPU;", 5 },   { "+CPU", 1 },
  { "KFD+", 5 },     { "C PU", 2 },   { "CPU:a:b:c:d", 10 },
  { "CUDA:3-1", 6 }, { "CUDA:@", 7 }, { "CUDA:9999999", 6 },
  { "CPU?", 5 },     { "CPU?x", 5 },  { "CPU?=x", 5 },
  { "CPU?a=1&", 9 }, { "A+B+C", 4 },  { "Ü", 1 },
};

/* The message points at the character. */
static void
test_bad (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;
    g_assert_null (tiny_device_spec_parse (bad[i].text, &error));
    g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
    g_autofree char *wanted = g_strdup_printf ("at character %u\n", bad[i].column);
    if (strstr (error->message, wanted) == NULL) {
      CASE_FAILS ("“%s”: %s", bad[i].text, error->message);
      continue;
    }
    const char *mark = strrchr (error->message, '\n') + 1;
    g_assert_cmpuint (strlen (mark), ==, 2 + bad[i].column);
  }
}

/* Random texts over the grammar's own characters give a spec or an error, nothing else. */
static void
test_random (void)
{
  static const char letters[] = "AB1-:;|?&=+@*,x";
  for (guint i = 0; i < 20000; i++) {
    char text[16];
    guint n = (guint) g_test_rand_int_range (0, 15);
    for (guint j = 0; j < n; j++)
      text[j] = letters[g_test_rand_int_range (0, sizeof letters - 1)];
    text[n] = 0;
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyDeviceSpec) spec = tiny_device_spec_parse (text, &error);
    g_assert_true ((spec != NULL) == (error == NULL));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/plugin/device-spec/good", test_good);
  g_test_add_func ("/plugin/device-spec/bad", test_bad);
  g_test_add_func ("/plugin/device-spec/random", test_random);
  return g_test_run ();
}
