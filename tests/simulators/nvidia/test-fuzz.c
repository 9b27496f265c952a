/* SPDX-License-Identifier: MIT
 *
 * test-fuzz.c: texts changed by chance are an error, a fault or a result, and never a crash or a hang.
 *
 * usage: test-fuzz FOLDER [--count N | --minutes N] [--seed N]. FOLDER has the texts, files *.ptx. A text that ends the
 * program is repeated by the number that was last said, as --seed with --count 1. */
#include "ptx.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXTS = 16, MAX_STEPS = 4000, N_THREADS = 64, N_BYTES = 16384 };

static char *texts[MAX_TEXTS];
static guint n_texts;

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

static void
read_texts (const char *folder)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GDir) dir = g_dir_open (folder, 0, &error);
  g_assert_no_error (error);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  for (const char *name; (name = g_dir_read_name (dir)) != NULL;)
    if (g_str_has_suffix (name, ".ptx"))
      g_ptr_array_add (names, g_build_filename (folder, name, NULL));
  g_ptr_array_sort (names, compare_names);
  for (guint i = 0; i < names->len && n_texts < MAX_TEXTS; i++)
    g_assert_true (g_file_get_contents (names->pdata[i], &texts[n_texts++], NULL, &error));
}

/* The next digit: of a register, an offset, a type. */
static void
change_digit (GString *text, GRand *rand, gsize at)
{
  while (at < text->len && !g_ascii_isdigit (text->str[at]))
    at++;
  if (at < text->len)
    text->str[at] = (char) g_rand_int_range (rand, '0', '9' + 1);
}

/* The register at @from, where one of the same kind is at @at. */
static void
change_register (GString *text, gsize at, gsize from)
{
  while (at < text->len && text->str[at] != '%')
    at++;
  while (from < text->len && text->str[from] != '%')
    from++;
  gsize n = strspn (text->str + at, "%rdfps"), n_from = strspn (text->str + from, "%rdfps");
  gsize digits = strspn (text->str + at + n, "0123456789");
  g_autofree char *number
      = g_strndup (text->str + from + n_from, strspn (text->str + from + n_from, "0123456789"));
  if (n != n_from || digits == 0 || *number == '\0'
      || strncmp (text->str + at, text->str + from, n) != 0)
    return;
  g_string_erase (text, at + n, digits);
  g_string_insert (text, at + n, number);
}

static const char signs[] = "0123456789%[]{}();,.+-@!rdfpu";

/* A byte, a piece of the text in the place of another, a piece left out or said twice. */
static void
change (GString *text, GRand *rand)
{
  gsize at = g_rand_int_range (rand, 0, text->len),
        other = g_rand_int_range (rand, 0, text->len);
  gsize most = text->len - MAX (at, other), n = g_rand_int_range (rand, 1, 40);
  n = MIN (n, most);
  g_autofree char *piece = g_strndup (text->str + other, n);
  switch (g_rand_int_range (rand, 0, 10)) {
  case 0:
    text->str[at] = (char) g_rand_int_range (rand, 1, 256);
    break;
  case 1:
    text->str[at] = signs[g_rand_int_range (rand, 0, strlen (signs))];
    break;
  case 2:
    g_string_erase (text, at, n);
    break;
  case 3:
    g_string_insert (text, at, piece);
    break;
  case 4:
    g_string_overwrite (text, at, piece);
    break;
  case 5:
    change_digit (text, rand, at);
    break;
  default:
    change_register (text, at, other);
  }
}

static void
run (const PtxModule *module, PtxMemory *memory, guint64 seed)
{
  const PtxFunction *kernel = ptx_module_find (module, "k");
  guint64 params[16];
  PtxFault fault;
  for (guint i = 0; i < G_N_ELEMENTS (params); i++)
    params[i] = ptx_memory_take (memory, N_BYTES);
  PtxLaunch launch = { .grid = { 2, 1, 1 },
                       .block = { N_THREADS, 1, 1 },
                       .n_dynamic_shared = 32,
                       .params = params,
                       .n_param_bytes = sizeof params,
                       .seed = seed,
                       .max_steps = MAX_STEPS,
                       .n_threads = 1,
                       .is_checked = seed & 1 };
  if (kernel != NULL && !ptx_launch (kernel, &launch, &fault))
    g_assert_true (fault.code != 0 && fault.text[0] != '\0');
}

static guint
try_one (guint64 seed)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  g_autoptr (GString) text = g_string_new (texts[seed % n_texts]);
  g_autoptr (PtxMemory) memory = ptx_memory_new (64 << 20);
  g_autoptr (GError) error = NULL;
  for (guint n = g_rand_int_range (rand, 1, 5); n > 0 && text->len > 1; n--)
    change (text, rand);
  g_autoptr (PtxModule) module = ptx_module_new (text->str, text->len, memory, &error);
  g_assert_true ((module == NULL) == (error != NULL));
  if (module != NULL)
    run (module, memory, seed);
  return module != NULL;
}

int
main (int argc, char **argv)
{
  guint64 seed = 1, count = 1500, minutes = 0, n_read = 0, n = 0;
  for (int i = 2; i + 1 < argc; i += 2) {
    guint64 *number = strcmp (argv[i], "--seed") == 0    ? &seed
                      : strcmp (argv[i], "--count") == 0 ? &count
                                                         : &minutes;
    *number = g_ascii_strtoull (argv[i + 1], NULL, 10);
  }
  g_assert_true (argc > 1);
  read_texts (argv[1]);
  gint64 end = g_get_monotonic_time () + (gint64) minutes * 60 * G_USEC_PER_SEC;
  for (; minutes > 0 ? g_get_monotonic_time () < end : n < count; n++) {
    if (n % 1000 == 0)
      g_print ("# from %" G_GUINT64_FORMAT "\n", seed + n);
    n_read += try_one (seed + n);
  }
  g_print ("# %" G_GUINT64_FORMAT " texts, %" G_GUINT64_FORMAT " could be read\n", n, n_read);
  /* A check of this program: some changes spoil a text, and some do not. */
  gboolean is_even = count < 100 || (n_read > n / 50 && n_read < n);
  g_print ("1..1\n%sok 1 changed texts\n", is_even ? "" : "not ");
  for (guint i = 0; i < n_texts; i++)
    g_free (texts[i]);
  return is_even ? 0 : 1;
}
