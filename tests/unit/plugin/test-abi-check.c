/* SPDX-License-Identifier: MIT
 *
 * test-abi-check.c: files that are damaged in any place give findings and nothing else. What right
 * and wrong plugins are told is in tests/e2e/test-abi-check.py. */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/resource.h>

#include "plugin/tiny-abi-check.h"
#include "plugin/tiny-elf.h"
#include "plugin/tiny-library.h"
#include "plugin/tiny-manifest.h"

typedef struct {
  char *folder, *path;
  char *bytes; /* of a right plugin */
  gsize size;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer unused)
{
  fixture->folder = g_dir_make_tmp ("tiny-abi-XXXXXX", NULL);
  fixture->path = g_build_filename (fixture->folder, "plugin.so", NULL);
  g_assert_true (g_file_get_contents (REF_PLUGIN, &fixture->bytes, &fixture->size, NULL));
}

static void
tear_down (Fixture *fixture, gconstpointer unused)
{
  g_unlink (fixture->path);
  g_rmdir (fixture->folder);
  g_free (fixture->folder);
  g_free (fixture->path);
  g_free (fixture->bytes);
}

static void
look (const Fixture *fixture, const char *bytes, gsize n)
{
  g_assert_true (g_file_set_contents_full (fixture->path, bytes, (gssize) n,
                                           G_FILE_SET_CONTENTS_NONE, 0644, NULL));
  g_autoptr (GPtrArray) findings = tiny_abi_check (fixture->path, NULL);
  const char *const *names = tiny_abi_list_checks ();
  g_assert_cmpuint (findings->len, ==, g_strv_length ((char **) names));
  for (guint i = 0; i < findings->len; i++) {
    const TinyAbiFinding *finding = findings->pdata[i];
    g_assert_cmpstr (finding->check, ==, names[i]);
    g_assert_nonnull (tiny_abi_describe_check (names[i]));
    g_assert_true (g_utf8_validate (finding->text, -1, NULL));
    g_assert_cmpuint (strlen (finding->text), >, 0);
  }
  g_autoptr (GError) error = NULL;
  if (!tiny_elf_check (fixture->path, &error))
    g_assert_nonnull (error);
}

/* Where a file says how large and where its tables are, any number may stand. */
static void
test_bytes (Fixture *fixture, gconstpointer unused)
{
  guint rounds = g_test_slow () ? 4000 : 400;
  for (guint r = 0; r < rounds; r++) {
    g_autofree char *bytes = g_memdup2 (fixture->bytes, fixture->size);
    guint n = (guint) g_test_rand_int_range (1, 6);
    /* The head and the tables are in the first part; the dynamic section in the last. */
    for (guint i = 0; i < n; i++) {
      gsize room = g_test_rand_bit () ? 0x1000 : fixture->size;
      gsize at = (gsize) g_test_rand_int_range (0, (gint32) room) & ~(gsize) 3;
      guint32 word = g_test_rand_bit () ? (guint32) g_test_rand_int () : G_MAXUINT32;
      memcpy (bytes + MIN (at, fixture->size - 4), &word, g_test_rand_bit () ? 4 : 1);
    }
    look (fixture, bytes, fixture->size);
  }
}

/* ---- work ---- */
enum { N_OVERLAPPING = G_MAXUINT16, N_NOTES_BYTES = 1 << 20, SOON_S = 1, ROOM_KIB = 64 << 10 };

/* Sanitizers surround each piece of memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TIMES = 4 };
#else
enum { TIMES = 1 };
#endif

static gint64
used_us (void)
{
  struct rusage used;
  getrusage (RUSAGE_SELF, &used);
  return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * G_USEC_PER_SEC + used.ru_utime.tv_usec
         + used.ru_stime.tv_usec;
}

static glong
most_kib (void)
{
  struct rusage used;
  getrusage (RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

/* Refused for the work it makes, at once, and in bounded memory. */
static void
assert_refused (const Fixture *fixture, const GByteArray *file)
{
  g_assert_true (
      g_file_set_contents (fixture->path, (const char *) file->data, (gssize) file->len, NULL));
  const gint64 before = used_us ();
  const glong room = most_kib ();
  g_autoptr (GError) error = NULL;
  g_assert_false (tiny_elf_check (fixture->path, &error));
  g_assert_cmpint (used_us () - before, <, TIMES * SOON_S * G_USEC_PER_SEC);
  g_assert_cmpint (most_kib () - room, <, TIMES * ROOM_KIB);
  g_assert_nonnull (strstr (error->message, "its tables overlap"));
}

static GByteArray *
copy_file (const Fixture *fixture, gsize align)
{
  static const guint8 zeros[4096];
  GByteArray *file = g_byte_array_new ();
  g_byte_array_append (file, (const guint8 *) fixture->bytes, (guint) fixture->size);
  g_byte_array_append (file, zeros, (guint) (align - file->len % align));
  return file;
}

/* All of the most sections there can be are one run of empty notes, in none of which an ABI is said. */
static void
test_overlapping_notes (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GByteArray) file = copy_file (fixture, 16);
  g_autofree guint8 *notes = g_malloc0 (N_NOTES_BYTES);
  char *said = memmem (file->data, file->len, "TINY-ABI", sizeof "TINY-ABI");
  g_assert_nonnull (said);
  *said = 'X';
  const ElfW (Shdr) section
      = { .sh_type = SHT_NOTE, .sh_offset = file->len, .sh_size = N_NOTES_BYTES };
  g_byte_array_append (file, notes, N_NOTES_BYTES);
  ElfW (Ehdr) *head = (gpointer) file->data;
  head->e_shoff = file->len;
  head->e_shnum = N_OVERLAPPING;
  head->e_shstrndx = 0;
  for (guint i = 0; i < N_OVERLAPPING; i++)
    g_byte_array_append (file, (const guint8 *) &section, sizeof section);
  assert_refused (fixture, file);
}

/* Each of the most libraries there can be asks for the same list of versions, to the end of which it has one less. */
static void
test_overlapping_versions (Fixture *fixture, gconstpointer unused)
{
  const guint64 place = 0x10000000, entries = place + N_OVERLAPPING * sizeof (ElfW (Verneed));
  g_autoptr (GByteArray) file = copy_file (fixture, 4096);
  const guint at = file->len;
  for (guint i = 0; i < N_OVERLAPPING; i++) {
    const guint64 own = place + i * sizeof (ElfW (Verneed));
    const ElfW (Verneed) row = { 1, N_OVERLAPPING, 1, (guint32) (entries - own), sizeof row };
    g_byte_array_append (file, (const guint8 *) &row, sizeof row);
  }
  const ElfW (Vernaux) entry = { 0, 0, 2, 1, sizeof entry };
  for (guint i = 0; i < N_OVERLAPPING; i++)
    g_byte_array_append (file, (const guint8 *) &entry, sizeof entry);
  const guint n_bytes = file->len - at;
  const ElfW (Ehdr) *head = (gpointer) file->data;
  ElfW (Phdr) *segments = (gpointer) (file->data + head->e_phoff);
  for (guint i = 0; i < head->e_phnum; i++)
    if (segments[i].p_type == PT_GNU_STACK)
      segments[i] = (ElfW (Phdr)){ .p_type = PT_LOAD,
                                   .p_flags = PF_R,
                                   .p_offset = at,
                                   .p_vaddr = place,
                                   .p_filesz = n_bytes,
                                   .p_memsz = n_bytes };
    else if (segments[i].p_type == PT_DYNAMIC) {
      ElfW (Dyn) *row = (gpointer) (file->data + segments[i].p_offset);
      for (; row->d_tag != DT_NULL; row++)
        if (row->d_tag == DT_VERNEED || row->d_tag == DT_VERNEEDNUM)
          row->d_un.d_val = row->d_tag == DT_VERNEED ? place : N_OVERLAPPING;
    }
  assert_refused (fixture, file);
}

static void
test_lengths (Fixture *fixture, gconstpointer unused)
{
  for (gsize n = 0; n < fixture->size; n += 1 + fixture->size / 61)
    look (fixture, fixture->bytes, n);
}

/* A file of sections only loses nothing when they go: the loader does not read them either. */
static void
test_no_sections (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *bytes = g_memdup2 (fixture->bytes, fixture->size);
  ElfW (Ehdr) head;
  memcpy (&head, bytes, sizeof head);
  head.e_shoff = 0;
  head.e_shnum = head.e_shstrndx = 0;
  memcpy (bytes, &head, sizeof head);
  g_assert_true (g_file_set_contents (fixture->path, bytes, (gssize) fixture->size, NULL));
  g_autoptr (TinyElf) cut = tiny_elf_open (fixture->path, NULL);
  g_autoptr (TinyElf) whole = tiny_elf_open (REF_PLUGIN, NULL);
  g_assert_true (tiny_elf_read_symbols (cut, NULL));
  g_assert_true (tiny_elf_read_symbols (whole, NULL));
  g_assert_cmpuint (whole->n_symbols, >, 5);
  g_assert_cmpuint (cut->n_symbols, ==, whole->n_symbols);
  g_autofree char *id = tiny_elf_read_build_id (cut), *its = tiny_elf_read_build_id (whole);
  g_assert_cmpstr (id, ==, its);
  g_autoptr (GError) error = NULL;
  tiny_elf_check (fixture->path, &error);
  g_assert_no_error (error);
}

/* The library that this very process has loaded is where the loader's rules say. */
static void
test_library (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (TinyElf) elf = tiny_elf_open (REF_PLUGIN, NULL);
  for (guint i = 0; i < elf->needed->len; i++) {
    g_autofree char *path = tiny_library_find (elf, elf->needed->pdata[i]);
    g_autofree char *maps = NULL;
    g_assert_nonnull (path);
    g_assert_true (g_file_get_contents ("/proc/self/maps", &maps, NULL, NULL));
    g_autofree char *real = g_path_get_basename (path);
    g_test_message ("%s", path);
    g_assert_nonnull (strstr (maps, real));
  }
  g_assert_null (tiny_library_find (elf, "libtinycore-nobody-has-this.so.9"));
  g_assert_null (tiny_library_find (elf, "/nowhere/libm.so.6"));
  g_autofree char *needer = NULL;
  g_assert_null (tiny_library_find_missing (REF_PLUGIN, &needer));
}

/* Each row of the table of known members is read: another type in it is an error. */
static void
test_members (void)
{
  static const struct {
    const char *object, *key, *type;
  } members[] = {
#define TINY_MEMBER(object, key, type, otherwise, meaning) { object, key, type },
#include "plugin/manifest-members.def"
#undef TINY_MEMBER
  };
  for (guint i = 0; i < G_N_ELEMENTS (members); i++) {
    const char *object = members[i].object, *key = members[i].key;
    gboolean is_list = strcmp (members[i].type, "texts") == 0;
    g_autofree char *wrong = g_strdup_printf ("\"%s\": %s", key, is_list ? "1" : "[[]]");
    g_autofree char *inside = g_strdup_printf (
        strcmp (object, "exports") == 0 ? "\"%s\": {\"a\": {%s}}" : "\"%s\": {%s}", object,
        wrong);
    g_autofree char *text = g_strdup_printf ("{%s%s}", object[0] ? inside : wrong,
                                             i == 0 ? "" : ", \"format_version\": 1");
    g_autoptr (GError) error = NULL;
    g_autoptr (JsonNode) root = json_from_string (text, &error);
    g_assert_no_error (error);
    g_autoptr (GPtrArray) unknown = tiny_manifest_find_unknown (json_node_get_object (root));
    g_assert_cmpuint (unknown->len, ==, 0);
    g_assert_null (tiny_manifest_parse ("/a.json", text, -1, &error));
    g_test_message ("%s: %s", text, error->message);
    g_assert_true (strstr (error->message, "is not") != NULL);
  }
  static const char all[] = "{\"modalais\": 1, \"match\": {\"modalais\": 1, \"modalias\": []},"
                            " \"exports\": {\"a\": {\"from\": 1}}, \"isolated\": {\"env\": 1}}";
  g_autoptr (JsonNode) root = json_from_string (all, NULL);
  g_autoptr (GPtrArray) unknown = tiny_manifest_find_unknown (json_node_get_object (root));
  static const char *const wanted[]
      = { "modalais", "match.modalais", "exports.from", "isolated.env" };
  g_assert_cmpuint (unknown->len, ==, G_N_ELEMENTS (wanted));
  for (guint i = 0; i < unknown->len; i++)
    g_assert_cmpstr (unknown->pdata[i], ==, wanted[i]);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  const struct {
    const char *path;
    void (*run) (Fixture *, gconstpointer);
  } tests[] = {
    { "/plugin/abi-check/bytes", test_bytes },
    { "/plugin/abi-check/overlapping-notes", test_overlapping_notes },
    { "/plugin/abi-check/overlapping-versions", test_overlapping_versions },
    { "/plugin/abi-check/lengths", test_lengths },
    { "/plugin/abi-check/no-sections", test_no_sections },
    { "/plugin/abi-check/library", test_library },
  };
  for (guint i = 0; i < G_N_ELEMENTS (tests); i++)
    g_test_add (tests[i].path, Fixture, NULL, set_up, tests[i].run, tear_down);
  g_test_add_func ("/plugin/abi-check/members", test_members);
  return g_test_run ();
}
