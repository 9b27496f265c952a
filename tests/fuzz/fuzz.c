/* SPDX-License-Identifier: MIT
 *
 * fuzz.c: inputs changed by chance end no reader, and make it take neither long nor much.
 *
 *   fuzz [TARGET …] [--seed N] [--count N] [--minutes N]
 *
 * Input N of a target is made of its kept ones by the number N alone: --seed N --count 1 repeats it. An input fails when
 * it ends the program, takes more than a second of the processor, more than 100 times its size and 64 MB of memory, or
 * leaves memory behind each time it is read. The failing input is written in hexadecimal. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "../heap.h"
#include "fuzz.h"

enum {
  MAX_BYTES = 1 << 14,
  MOST_CHANGES = 6,
  MOST_MEMORY = 64 << 20,
  MOST_TIMES = 100,
  LEAK_ROUNDS = 4
};

static gint64 option_seed = 1, option_count = 2000, option_minutes = 0;
static char **option_targets = NULL;

static struct {
  char text[128];
  const guint8 *data;
  gsize size;
} current; /* a signal handler writes it */

static void
write_current (const char *reason)
{
  static const char digits[] = "0123456789abcdef";
  char line[2 * MAX_BYTES + 2];
  gsize n = 0;
  for (gsize i = 0; i < current.size; i++) {
    line[n++] = digits[current.data[i] >> 4];
    line[n++] = digits[current.data[i] & 15];
  }
  line[n++] = '\n';
  if (write (STDOUT_FILENO, "# ", 2) < 0 || write (STDOUT_FILENO, reason, strlen (reason)) < 0
      || write (STDOUT_FILENO, current.text, strlen (current.text)) < 0
      || write (STDOUT_FILENO, line, n) < 0)
    _exit (2);
}

static void
on_signal (int number)
{
  write_current (number == SIGPROF ? "more than a second: " : "it ends the program: ");
  _exit (1);
}

/* ---- changing ---- */
static const guint64 numbers[]
    = { 0,      1,          7,          8,          0x7f,       0x80,       0xff,
        0xffff, 0x7fffffff, 0x80000000, 0xffffffff, G_MAXINT64, G_MAXUINT64 };
static const char *const words[] = { "{",
                                     "}",
                                     "[",
                                     "]",
                                     "(",
                                     ")",
                                     ",",
                                     ":",
                                     "\"",
                                     "\\u0000",
                                     "-",
                                     "1e999",
                                     "9223372036854775808",
                                     "%0",
                                     "null",
                                     "\n",
                                     "|",
                                     ";",
                                     "=",
                                     "\xff" };

static guint
pick (GRand *random, gsize n)
{
  return n > 1 ? (guint) g_rand_int_range (random, 0, (gint32) n) : 0;
}

static void
insert (GByteArray *input, gsize at, const void *bytes, gsize n)
{
  n = MIN (n, (gsize) MAX_BYTES - input->len);
  g_autofree guint8 *copy = g_memdup2 (bytes, n);
  const gsize old = input->len;
  g_byte_array_set_size (input, (guint) (old + n));
  memmove (input->data + at + n, input->data + at, old - at);
  if (n > 0)
    memcpy (input->data + at, copy, n);
}

static void
change (GRand *random, GByteArray *input, GPtrArray *seeds)
{
  const guint at = pick (random, input->len + 1u), left = input->len - at;
  const guint wanted = 1 + pick (random, pick (random, 4) == 0 ? 512 : 16),
              n = MIN (wanted, left);
  switch (pick (random, 8)) {
  case 0:
    if (left > 0)
      input->data[at] ^= (guint8) (1u << pick (random, 8));
    break;
  case 1:
    if (left > 0)
      input->data[at] = (guint8) g_rand_int (random);
    break;
  case 2:
    g_byte_array_remove_range (input, at, n);
    break;
  case 3: /* a part, again and again */
    for (guint i = 0, times = 1 + pick (random, 32); i < times; i++)
      insert (input, at, input->data + at, MIN (n, input->len - at));
    break;
  case 4: {
    const guint64 number = numbers[pick (random, G_N_ELEMENTS (numbers))];
    const guint width = 1u << pick (random, 4);
    memcpy (input->data + at, &number, MIN (left, width));
    break;
  }
  case 5: {
    const char *word = words[pick (random, G_N_ELEMENTS (words))];
    insert (input, at, word, strlen (word));
    break;
  }
  case 6: { /* a part of another */
    gsize size;
    const guint8 *other = g_bytes_get_data (seeds->pdata[pick (random, seeds->len)], &size);
    const guint from = pick (random, size);
    insert (input, at, other + from, pick (random, size - from + 1));
    break;
  }
  default:
    g_byte_array_set_size (input, at);
  }
}

static GByteArray *
make_input (GPtrArray *seeds, guint64 number)
{
  const guint32 start[] = { (guint32) number, (guint32) (number >> 32) };
  g_autoptr (GRand) random = g_rand_new_with_seed_array (start, G_N_ELEMENTS (start));
  GByteArray *input = g_byte_array_sized_new (MAX_BYTES);
  gsize size;
  const guint8 *data = g_bytes_get_data (seeds->pdata[number % seeds->len], &size);
  g_byte_array_append (input, data, (guint) size);
  for (guint i = number < seeds->len ? 0 : 1 + pick (random, MOST_CHANGES); i > 0; i--)
    change (random, input, seeds);
  return input;
}

/* ---- reading ---- */
static gboolean
read_one (const FuzzTarget *target, const GByteArray *input, gboolean is_seed)
{
  const struct itimerval second = { .it_value.tv_sec = 1 }, none = { 0 };
  /* A block of its size, so that a sanitizer sees a read behind it. */
  g_autofree guint8 *data = g_memdup2 (input->data, input->len);
  static const guint8 nothing;
  const gint64 most = MAX ((gint64) MOST_TIMES * input->len, MOST_MEMORY);
  gint64 left = G_MAXINT64;
  gboolean is_accepted = FALSE;
  current.data = data;
  current.size = input->len;
  heap_reset_peak ();
  const gint64 before = heap_get_n_bytes ();
  setitimer (ITIMER_PROF, &second, NULL);
  /* A block that is kept on purpose is kept once: a leak grows each time. */
  for (guint i = 0; i < LEAK_ROUNDS && left > 0; i++) {
    const gint64 n_blocks = heap_get_n_blocks ();
    is_accepted = target->read (data != NULL ? data : &nothing, input->len);
    left = heap_get_n_blocks () - n_blocks;
  }
  setitimer (ITIMER_PROF, &none, NULL);
  if (left > 0)
    write_current ("it leaves memory behind: ");
  else if (heap_get_peak () - before > most)
    write_current ("it takes too much memory: ");
  else if (is_seed && !is_accepted)
    write_current ("it is kept as a good one, and is refused: ");
  else
    return TRUE;
  return FALSE;
}

static gboolean
run_target (const FuzzTarget *target)
{
  g_autoptr (GPtrArray) seeds = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  const gint64 start = g_get_monotonic_time (), most = option_minutes * 60 * G_USEC_PER_SEC;
  gint64 n = 0;
  gboolean good = TRUE;
  target->add_seeds (seeds);
  for (; good && (most > 0 ? g_get_monotonic_time () - start < most : n < option_count); n++) {
    g_autoptr (GByteArray) input = make_input (seeds, (guint64) (option_seed + n));
    g_snprintf (current.text, sizeof current.text,
                "%s --seed %" G_GINT64_FORMAT " --count 1: ", target->name, option_seed + n);
    good = read_one (target, input, (guint64) (option_seed + n) < seeds->len);
  }
  g_print ("# %" G_GINT64_FORMAT " inputs in %.1f s\n", n,
           (double) (g_get_monotonic_time () - start) / G_USEC_PER_SEC);
  return good;
}

static const GOptionEntry options[] = {
  { "seed", 0, 0, G_OPTION_ARG_INT64, &option_seed, "number of the first input", "N" },
  { "count", 0, 0, G_OPTION_ARG_INT64, &option_count, "inputs for each target", "N" },
  { "minutes", 0, 0, G_OPTION_ARG_INT64, &option_minutes,
    "time for each target, in place of a count", "N" },
  { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_STRING_ARRAY, &option_targets, NULL, "[TARGET …]" },
  { 0 },
};

int
main (int argc, char **argv)
{
  static const int ends[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGPROF };
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_autoptr (GError) error = NULL;
  guint n = 0;
  gboolean good = TRUE;
  setlocale (LC_ALL, "");
  g_option_context_add_main_entries (context, options, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error) || option_seed < 0) {
    g_printerr ("fuzz: %s\n", error != NULL ? error->message : "a seed is not negative");
    return 2;
  }
  /* A message that says that something is wrong with the program ends it. */
  g_log_set_always_fatal (G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL);
  for (guint i = 0; i < G_N_ELEMENTS (ends); i++)
    signal (ends[i], on_signal);
  for (guint i = 0; i < fuzz_n_targets; i++) {
    const FuzzTarget *target = &fuzz_targets[i];
    if (option_targets != NULL
        && !g_strv_contains ((const char *const *) option_targets, target->name))
      continue;
    const gboolean passed = run_target (target);
    good = good && passed;
    g_print ("%s %u %s\n", passed ? "ok" : "not ok", ++n, target->name);
  }
  g_print ("1..%u\n", n);
  return n == 0 ? 2 : good ? 0 : 1;
}
