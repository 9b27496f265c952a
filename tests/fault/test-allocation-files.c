/* SPDX-License-Identifier: MIT
 *
 * test-allocation-files.c: a reader of files from strangers has an error where there is no memory for what the file holds.
 *
 * Each request of ALLOCATION_LARGE bytes or more is refused once, whoever makes it but json-glib. Inputs are large enough for
 * each list and text of theirs to become so large. */
#include <elf.h>
#include <glib/gstdio.h>
#include <link.h>
#include <zlib.h>

#include "../record-sum.h"
#include "allocation-large.h"
#include "codegen/tiny-codegen.h"
#include "engine/tiny-cache.h"
#include "io/tiny-idx.h"
#include "io/tiny-model.h"
#include "io/tiny-safetensors.h"
#include "ir/tiny-text.h"
#include "ir/tiny-verify.h"
#include "plugin/tiny-elf.h"
#include "plugin/tiny-json.h"
#include "plugin/tiny-record.h"
#include "schedule/kernel-text.h"
#include "tools/bundle.h"

/* ---- IDX ---- */
static gboolean
read_idx (gpointer path, GError **error)
{
  g_auto (TinyIdx) idx = { 0 };
  return tiny_idx_load (path, 1 << 22, &idx, error);
}

static void
test_idx (void)
{
  g_autofree guint8 *data = g_malloc0 (8 + LONG);
  const guint8 head[]
      = { 0, 0, 8, 1, LONG >> 24, LONG >> 16 & 255, LONG >> 8 & 255, LONG & 255 };
  memcpy (data, head, sizeof head);
  g_autofree char *path = write_file ("plain", data, sizeof head + LONG);
  refuse (read_idx, path, 1);
  g_autofree char *packed = g_strconcat (path, ".gz", NULL);
  gzFile file = gzopen (packed, "wb");
  g_assert_cmpint (gzwrite (file, data, sizeof head + LONG), ==, sizeof head + LONG);
  gzclose (file);
  refuse (read_idx, packed, 1);
}

/* ---- JSON and safetensors ---- */
static gboolean
read_json (gpointer text, GError **error)
{
  g_autoptr (JsonNode) root = tiny_json_parse (text, -1, error);
  return root != NULL;
}

static void
test_json (void)
{
  g_autofree char *x = long_text ();
  g_autofree char *text = g_strdup_printf ("{\"a\": \"%s\\n\", \"%s\": 1}", x, x);
  refuse (read_json, text, 2);
}

static gboolean
read_safetensors (gpointer path, GError **error)
{
  g_autoptr (TinySafetensors) file = tiny_safetensors_load (path, error);
  if (file == NULL)
    return FALSE;
  g_autoptr (GBytes) data = tiny_array_read (tiny_safetensors_find (file, "a"), error);
  return data != NULL;
}

static void
test_safetensors (void)
{
  g_autofree char *x = long_text (), *elements = g_malloc0 (LONG);
  g_autoptr (GString) text = g_string_new (NULL);
  g_string_append_printf (
      text,
      "{\"__metadata__\": {\"k\": \"%s\"}, \"a\": {\"dtype\": \"U8\", \"shape\": "
      "[%d], \"data_offsets\": [0, %d]}",
      x, LONG, LONG);
  for (guint i = 0; i < MANY; i++)
    g_string_append_printf (
        text, ", \"%u\": {\"dtype\": \"U8\", \"shape\": [], \"data_offsets\": [%u, %u]}", i,
        LONG + i, LONG + i + 1);
  g_string_append_c (text, '}');
  const guint64 length = GUINT64_TO_LE ((guint64) text->len);
  g_autoptr (GByteArray) file = g_byte_array_new ();
  g_byte_array_append (file, (const guint8 *) &length, sizeof length);
  g_byte_array_append (file, (const guint8 *) text->str, (guint) text->len);
  g_byte_array_append (file, (const guint8 *) elements, LONG);
  g_byte_array_append (file, (const guint8 *) elements, MANY);
  g_autofree char *path = write_file ("x.safetensors", file->data, file->len);
  refuse (read_safetensors, path, 4);
}

/* ---- what the library keeps ---- */
static gboolean
read_cache (gpointer key, GError **error)
{
  g_autoptr (GBytes) entry = tiny_cache_load (key);
  if (entry != NULL)
    return TRUE;
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY, "there is no entry");
  return FALSE;
}

static void
test_cache (void)
{
  static char key[] = "00000000000000000000000000000000";
  g_autofree char *x = long_text ();
  g_autoptr (GBytes) entry = g_bytes_new (x, LONG);
  tiny_cache_store (key, entry);
  refuse (read_cache, key, 1);
}

/* ---- texts ---- */
static gboolean
read_ir (gpointer text, GError **error)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *root = tiny_graph_parse (graph, text, error);
  return root != NULL && tiny_graph_verify (graph, root, TINY_STAGE_KERNEL, error);
}

static gboolean
read_kernel (gpointer text, GError **error)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  KernelText kernel;
  return kernel_text_parse (&kernel, graph, text, 1, error);
}

static void
test_ir (void)
{
  g_autofree char *x = long_text ();
  g_autofree char *text
      = g_strdup_printf ("%%y = param.f32{slot=0, shape=[64]}\n"
                         "%%a = param.f32{slot=1, shape=[64]}\n"
                         "%%i = range.index{number=0, kind=loop}(64)\n"
                         "sink{name=\"%s\"}(store(%%y, %%i, load.f32(%%a, %%i)))\n",
                         x);
  refuse (read_ir, text, 2);
  refuse (read_kernel, text, 2);
}

static gboolean
read_opts (gpointer text, GError **error)
{
  guint n;
  g_autofree TinyOpt *opts = tiny_opts_from_string (text, &n, error);
  return opts != NULL;
}

static void
test_opts (void)
{
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint i = 0; i < MANY; i++)
    g_string_append (text, "swap(0,1) ");
  refuse (read_opts, text->str, 1);
}

static gboolean
read_model (gpointer path, GError **error)
{
  g_autoptr (TinyModel) model = tiny_model_load (path, error);
  return model != NULL;
}

static void
test_model (void)
{
  g_autofree char *x = long_text ();
  g_autofree char *text = g_strdup_printf ("// %s\n%%a = param.f32{text=\"a\", shape=[64]}\n"
                                           "sink{name=\"y\"}(neg.f32(%%a))\n",
                                           x);
  g_autofree char *path = write_file ("x.tir", text, strlen (text));
  refuse (read_model, path, 1);
}

/* ---- plugins ---- */
enum { N_SEGMENTS = 4000, N_SYMBOLS = 10000, N_TEXTS = 200000, N_NOTES = 200000 };
#define AT(member) G_STRUCT_OFFSET (ElfFile, member)

/* A shared object with long tables and texts, and an identification behind a long note. */
typedef struct {
  ElfW (Ehdr) head;
  ElfW (Phdr) segments[N_SEGMENTS];
  ElfW (Shdr) sections[N_SEGMENTS];
  ElfW (Dyn) dynamic[6];
  ElfW (Sym) symbols[N_SYMBOLS];
  guint32 hash[N_SYMBOLS + 3];
  ElfW (Nhdr) note;
  char padding[N_NOTES];
  ElfW (Nhdr) last;
  char owner[4];
  guint8 id[8];
  char texts[N_TEXTS];
} ElfFile;

static ElfFile *
make_elf (void)
{
  ElfFile *file = g_new0 (ElfFile, 1);
  file->head = (ElfW (Ehdr)){ .e_type = ET_DYN,
                              .e_machine = EM_X86_64,
                              .e_version = EV_CURRENT,
                              .e_phoff = AT (segments),
                              .e_ehsize = sizeof file->head,
                              .e_phentsize = sizeof file->segments[0],
                              .e_phnum = N_SEGMENTS,
                              .e_shoff = AT (sections),
                              .e_shentsize = sizeof file->sections[0],
                              .e_shnum = N_SEGMENTS };
  memcpy (file->head.e_ident, ELFMAG, SELFMAG);
  file->head.e_ident[EI_CLASS] = sizeof (void *) == 8 ? ELFCLASS64 : ELFCLASS32;
  file->head.e_ident[EI_DATA] = G_BYTE_ORDER == G_LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
  file->head.e_ident[EI_VERSION] = EV_CURRENT;
  file->segments[0] = (ElfW (Phdr)){ .p_type = PT_LOAD, .p_filesz = sizeof *file };
  file->segments[1] = (ElfW (Phdr)){ .p_type = PT_DYNAMIC,
                                     .p_offset = AT (dynamic),
                                     .p_filesz = sizeof file->dynamic };
  file->segments[2] = (ElfW (
      Phdr)){ .p_type = PT_NOTE, .p_offset = AT (note), .p_filesz = AT (texts) - AT (note) };
  const ElfW (Dyn) dynamic[] = { { DT_STRTAB, { AT (texts) } },
                                 { DT_STRSZ, { N_TEXTS } },
                                 { DT_SYMTAB, { AT (symbols) } },
                                 { DT_HASH, { AT (hash) } },
                                 { DT_NULL, { 0 } } };
  memcpy (file->dynamic, dynamic, sizeof dynamic);
  for (guint i = 1; i < N_SYMBOLS; i++)
    file->symbols[i] = (ElfW (Sym)){ .st_name = 1, .st_shndx = 1 };
  file->hash[0] = 1;
  file->hash[1] = N_SYMBOLS;
  file->note = (ElfW (Nhdr)){ .n_namesz = 0, .n_descsz = N_NOTES, .n_type = 77 };
  file->last = (ElfW (Nhdr)){ .n_namesz = 4, .n_descsz = 8, .n_type = NT_GNU_BUILD_ID };
  memcpy (file->owner, "GNU", 4);
  return file;
}

static gboolean
read_elf (gpointer path, GError **error)
{
  g_autoptr (TinyElf) elf = tiny_elf_open (path, error);
  if (elf == NULL || !tiny_elf_read_symbols (elf, error))
    return FALSE;
  g_autofree char *id = tiny_elf_read_build_id (elf);
  return tiny_elf_check_work (elf, error);
}

static void
test_elf (void)
{
  g_autofree ElfFile *file = make_elf ();
  g_autofree char *path = write_file ("x.so", file, sizeof *file);
  refuse (read_elf, path, 6);
}

static gboolean
read_bundle (gpointer path, GError **error)
{
  g_autoptr (Bundle) bundle = bundle_read (path, error);
  return bundle != NULL;
}

static void
test_bundle (void)
{
  static const char manifest[]
      = "{\"format_version\": 1, \"name\": \"Y\", \"vendor\": \"v\", \"version\": \"1\", "
        "\"license\": \"MIT\", \"module\": \"y.so\", \"abi\": 1, \"abi_minor_min\": 0, "
        "\"class\": \"cpu\"}";
  static const char *const kinds[] = { "y.tar", "y.tar.gz", "y.tar.xz", "y.zip" };
  g_autofree char *x = long_text ();
  g_autofree char *from = write_file ("Y.json", manifest, strlen (manifest));
  g_free (write_file ("y.so", x, LONG));
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *path = g_build_filename (folder, kinds[i], NULL);
    bundle_make (from, NULL, path, &error);
    g_assert_no_error (error);
    refuse (read_bundle, path, 2);
  }
}

/* ---- records ---- */
/* The words before the bytes of a frame. */
enum { KIND, CALL, N_BYTES, CHECK, HEAD_CHECK, HEAD_WORDS };

static void
add_frame (GByteArray *file, guint kind, guint64 call, const void *data, gsize n)
{
  guint64 head[HEAD_WORDS] = { [KIND] = GUINT64_TO_LE (kind),
                               [CALL] = GUINT64_TO_LE (call),
                               [N_BYTES] = GUINT64_TO_LE ((guint64) n) };
  head[CHECK] = GUINT64_TO_LE (sum_words (data, n));
  head[HEAD_CHECK] = GUINT64_TO_LE (sum_words (head, 8 * HEAD_CHECK));
  g_byte_array_append (file, (const guint8 *) head, sizeof head);
  g_byte_array_append (file, data, (guint) n);
}

static void
add_text (GByteArray *words, const char *text)
{
  static const guint8 none[8];
  const guint64 n = GUINT64_TO_LE ((guint64) strlen (text) + 1);
  g_byte_array_append (words, (const guint8 *) &n, sizeof n);
  g_byte_array_append (words, (const guint8 *) text, (guint) strlen (text) + 1);
  g_byte_array_append (words, none, -words->len & 7u);
}

static void
add_number (GByteArray *words, guint64 number)
{
  number = GUINT64_TO_LE (number);
  g_byte_array_append (words, (const guint8 *) &number, sizeof number);
}

static gboolean
read_record (gpointer path, GError **error)
{
  g_autoptr (TinyRecord) record = tiny_record_open (path, error);
  g_autoptr (GBytes) data = NULL;
  return record != NULL && tiny_record_get_data (record, 1, &data, error);
}

static void
test_record (void)
{
  enum { FRAMES = 4000 };
  g_autofree char *x = long_text (),
                  *digest = g_compute_checksum_for_string (G_CHECKSUM_SHA256, x, -1);
  g_autoptr (GByteArray) file = g_byte_array_new (), words = g_byte_array_new ();
  guint64 call = 0;
  digest[32] = 0;
  g_byte_array_append (file, (const guint8 *) TINY_RECORD_MAGIC, 8);
  add_number (words, TINY_RECORD_FORMAT);
  add_text (words, x);
  add_text (words, "");
  add_number (words, 1);
  for (guint i = 0; i < 3; i++)
    add_text (words, "");
  add_frame (file, TINY_RECORD_HEAD, ++call, words->data, words->len);
  for (guint id = 1; id <= FRAMES; id++) {
    g_byte_array_set_size (words, 0);
    add_number (words, id);
    add_text (words, digest);
    add_number (words, id == 1 ? LONG : 0);
    if (id == 1)
      g_byte_array_append (words, (const guint8 *) x, LONG);
    add_frame (file, TINY_RECORD_DATA, ++call, words->data, words->len);
    add_frame (file, TINY_RECORD_END, ++call, NULL, 0);
  }
  g_autofree char *path = write_file ("x.record", file->data, file->len);
  refuse (read_record, path, 5);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  make_folder ();
  g_test_add_func ("/fault/allocation/idx", test_idx);
  g_test_add_func ("/fault/allocation/json", test_json);
  g_test_add_func ("/fault/allocation/safetensors", test_safetensors);
  g_test_add_func ("/fault/allocation/cache", test_cache);
  g_test_add_func ("/fault/allocation/ir", test_ir);
  g_test_add_func ("/fault/allocation/opts", test_opts);
  g_test_add_func ("/fault/allocation/model", test_model);
  g_test_add_func ("/fault/allocation/elf", test_elf);
  g_test_add_func ("/fault/allocation/bundle", test_bundle);
  g_test_add_func ("/fault/allocation/record", test_record);
  return g_test_run ();
}
