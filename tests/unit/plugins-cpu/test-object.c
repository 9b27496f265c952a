/* SPDX-License-Identifier: MIT
 *
 * Proves that the loader survives every damage: objects cut at each length and with each byte changed
 * are loaded or refused, and never crash it. */
#include "harness.h"

#include <elf.h>
#include <stdlib.h>

static void *object;
static uint64_t object_size;

/* A kernel with constants, a table in memory and a call out of the code. */
static void
make_object (void)
{
  Program *p = program_new ("victim");
  uint32_t out = program_param (p, TINY_DTYPE_F64, 64, TINY_PARAM_WRITE);
  uint32_t zero = ADD (CONST, I64, 1, 0), lanes[8];
  for (int i = 0; i < 8; i++)
    lanes[i] = ADD (CONST, F64, 1, bits_of (i * 1.25 + 0.1));
  uint32_t vector = ADD (VECTOR, F64, 8, 0, lanes[0], lanes[1], lanes[2], lanes[3], lanes[4],
                         lanes[5], lanes[6], lanes[7]);
  uint32_t x = ADD (LOAD, F64, 8, 0, out, zero), y = ADD (ADD, F64, 8, 0, x, vector);
  ADD (STORE, VOID, 8, 0, out, zero, y);
  TinyPluginError error = new_error ();
  g_assert_cmpint (program_compile (p, &object, &object_size, &error), ==, 0);
  g_free (p);
}

static TinyStatus
load (const void *data, uint64_t size, TinyPluginError *error)
{
  *error = new_error ();
  TinyProgramArgs args = { .struct_size = sizeof args,
                           .name = "victim",
                           .arch = h.target.arch,
                           .data = data,
                           .size = size,
                           .n_params = 1,
                           .group = { 1, 1, 1 } };
  TinyPluginProgram *program = NULL;
  TinyStatus status = h.table->program_load (h.device, &args, &program, error);
  if (status == TINY_STATUS_OK)
    h.table->program_unload (h.device, program);
  else
    g_assert_cmpstr (error->text, !=, "");
  return status;
}

static void
test_whole (void)
{
  TinyPluginError error;
  g_assert_cmpint (load (object, object_size, &error), ==, TINY_STATUS_OK);
  /* Any alignment. */
  char *moved = g_malloc (object_size + 1);
  memcpy (moved + 1, object, object_size);
  g_assert_cmpint (load (moved + 1, object_size, &error), ==, TINY_STATUS_OK);
  g_free (moved);
}

static void
test_truncated (void)
{
  TinyPluginError error;
  for (uint64_t n = 0; n < object_size; n++) {
    void *copy
        = g_memdup2 (object, n > 0 ? n : 1); /* exact, so that a sanitizer sees overreads */
    g_assert_cmpint (load (copy, n, &error), ==, TINY_STATUS_CORRUPT);
    g_free (copy);
  }
}

static void
test_flipped (void)
{
  static const uint8_t flips[] = { 0x01, 0x80, 0xff };
  TinyPluginError error;
  unsigned n_refused = 0;
  uint8_t *copy = g_memdup2 (object, object_size);
  for (uint64_t at = 0; at < object_size; at++)
    for (unsigned i = 0; i < G_N_ELEMENTS (flips); i++) {
      copy[at] ^= flips[i];
      n_refused += load (copy, object_size, &error) != TINY_STATUS_OK;
      copy[at] ^= flips[i];
    }
  GRand *random = g_rand_new_with_seed (7);
  for (int round = 0; round < 3000; round++) {
    memcpy (copy, object, object_size);
    for (int i = 0; i < 8; i++)
      copy[g_rand_int_range (random, 0, (gint32) object_size)] = (uint8_t) g_rand_int (random);
    n_refused += load (copy, object_size, &error) != TINY_STATUS_OK;
    char *text = NULL;
    if (round % 100 == 0 && h.llvm->disassemble (copy, object_size, &text, &error) == 0)
      free (text);
  }
  g_rand_free (random);
  g_free (copy);
  g_assert_cmpuint (n_refused, >, 100);
}

static void
test_names (void)
{
  TinyPluginError error = new_error ();
  TinyProgramArgs args = { .struct_size = sizeof args,
                           .name = "absent",
                           .arch = h.target.arch,
                           .data = object,
                           .size = object_size,
                           .n_params = 1 };
  TinyPluginProgram *program = NULL;
  g_assert_cmpint (h.table->program_load (h.device, &args, &program, &error), ==,
                   TINY_STATUS_CORRUPT);
  g_assert_nonnull (strstr (error.text, "absent"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  harness_open ();
  make_object ();
  g_test_add_func ("/plugins-cpu/object/whole", test_whole);
  g_test_add_func ("/plugins-cpu/object/truncated", test_truncated);
  g_test_add_func ("/plugins-cpu/object/flipped", test_flipped);
  g_test_add_func ("/plugins-cpu/object/names", test_names);
  int result = g_test_run ();
  free (object);
  harness_close ();
  return result;
}
