/* SPDX-License-Identifier: MIT
 *
 * targets.c: the readers, each with a few inputs that it accepts. */
#include "fuzz.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gio/gio.h>

#include "../record-sum.h"
#include "codegen/tiny-codegen.h"
#include "io/tiny-idx.h"
#include "io/tiny-safetensors.h"
#include "ir/tiny-text.h"
#include "ir/tiny-verify.h"
#include "plugin/tiny-device-spec.h"
#include "plugin/tiny-elf.h"
#include "plugin/tiny-json.h"
#include "plugin/tiny-manifest.h"
#include "plugin/tiny-record.h"
#include "plugin/tiny-scan.h"
#include "schedule/kernel-text.h"

enum { MAX_TEXT = 4000 };

const char *
fuzz_as_file (const void *data, gsize size)
{
  static int fd = -1;
  static char path[64];
  if (fd < 0) {
    fd = memfd_create ("fuzz", MFD_CLOEXEC);
    g_snprintf (path, sizeof path, "/proc/self/fd/%d", fd);
  }
  if (ftruncate (fd, 0) != 0 || pwrite (fd, data, size, 0) != (gssize) size)
    g_error ("no memory for a file of %" G_GSIZE_FORMAT " bytes", size);
  return path;
}

static char *
as_text (const guint8 *data, gsize size)
{
  return g_strndup ((const char *) data, MIN (size, MAX_TEXT));
}

static void
add_text (GPtrArray *seeds, const char *text)
{
  g_ptr_array_add (seeds, g_bytes_new (text, strlen (text)));
}

/* ---- JSON, and what is made of it ---- */
static gboolean
read_json (const guint8 *data, gsize size)
{
  g_autoptr (JsonNode) root = tiny_json_parse ((const char *) data, (gssize) size, NULL);
  g_autoptr (TinyScan) scan
      = root ? tiny_scan_from_json (json_node_get_object (root), NULL) : NULL;
  return root != NULL;
}

static void
seed_json (GPtrArray *seeds)
{
  add_text (
      seeds,
      "{\"a\": [1, -2.5e3, true, null, {\"b\": \"\\u00e9\\ud83d\\ude00\\n\"}], \"c\": {}}");
  add_text (seeds, "{\"devices\": [{\"id\": \"0\", \"name\": \"chip\", \"memory\": 1048576}], "
                   "\"status\": 0}");
}

static gboolean
read_manifest (const guint8 *data, gsize size)
{
  g_autoptr (TinyManifest) manifest
      = tiny_manifest_parse ("/x/y.json", (const char *) data, (gssize) size, NULL);
  return manifest != NULL;
}

static void
seed_manifest (GPtrArray *seeds)
{
  add_text (seeds,
            "{\"format_version\": 1, \"name\": \"Y\", \"vendor\": \"v\", \"version\": \"1\", "
            "\"license\": \"MIT\", \"module\": \"y.so\", \"abi\": 1, \"abi_minor_min\": 0, "
            "\"class\": \"cpu\", \"max_devices\": 64, \"renderers\": [\"C\"], "
            "\"exports\": {\"c\": {\"renderer\": \"C\", \"form\": \"c\"}}, \"match\": {}, "
            "\"probe\": {\"timeout_ms\": 2000, \"env\": [\"Y\"], \"files\": []}}");
}

/* ---- model files and data sets ---- */
/* The length of the header is ours; the first byte says how many bytes of data follow it. */
static gboolean
read_safetensors (const guint8 *data, gsize size)
{
  if (size == 0)
    return FALSE;
  const gsize rest = data[0];
  const guint64 length = GUINT64_TO_LE (size - 1);
  g_autofree guint8 *whole = g_malloc0 (sizeof length + size - 1 + rest);
  memcpy (whole, &length, sizeof length);
  memcpy (whole + sizeof length, data + 1, size - 1);
  g_autoptr (TinySafetensors) file
      = tiny_safetensors_load (fuzz_as_file (whole, sizeof length + size - 1 + rest), NULL);
  return file != NULL;
}

static void
seed_safetensors (GPtrArray *seeds)
{
  add_text (seeds, "\x18{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
                   "\"b\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[16,24]},"
                   "\"__metadata__\":{\"format\":\"pt\"}}");
}

static gboolean
read_idx (const guint8 *data, gsize size)
{
  TinyIdx idx;
  if (!tiny_idx_load (fuzz_as_file (data, size), 1 << 22, &idx, NULL))
    return FALSE;
  tiny_idx_clear (&idx);
  return TRUE;
}

static void
seed_idx (GPtrArray *seeds)
{
  static const guint8 plain[] = { 0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6 };
  g_autoptr (GZlibCompressor) packer = g_zlib_compressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP, 9);
  guint8 packed[128];
  gsize n_read, n_packed;
  if (g_converter_convert (G_CONVERTER (packer), plain, sizeof plain, packed, sizeof packed,
                           G_CONVERTER_INPUT_AT_END, &n_read, &n_packed, NULL)
      != G_CONVERTER_FINISHED)
    g_error ("zlib does not pack");
  g_ptr_array_add (seeds, g_bytes_new (plain, sizeof plain));
  g_ptr_array_add (seeds, g_bytes_new (packed, n_packed));
}

/* ---- IR ---- */
static gboolean
read_ir (const guint8 *data, gsize size)
{
  g_autofree char *text = as_text (data, size);
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *root = tiny_graph_parse (graph, text, NULL);
  if (root == NULL)
    return FALSE;
  for (int stage = TINY_STAGE_TENSOR; stage <= TINY_STAGE_KERNEL; stage++)
    tiny_graph_verify (graph, root, (TinyStage) stage, NULL);
  g_autofree char *printed = tiny_graph_print (graph, root);
  if (tiny_graph_parse (graph, printed, NULL) != root)
    g_error ("what was printed is another node:\n%s", printed);
  return TRUE;
}

/* Compiling is for differential/kernel-texts. */
static gboolean
read_kernel (const guint8 *data, gsize size)
{
  g_autofree char *text = as_text (data, size);
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  KernelText kernel;
  return kernel_text_parse (&kernel, graph, text, 1, NULL);
}

static void
seed_ir (GPtrArray *seeds)
{
  add_text (seeds, "%y = param.f32{slot=0, shape=[64]}\n%a = param.f32{slot=1, shape=[8, 8]}\n"
                   "%i = range.index{number=0, kind=loop}(64)\n"
                   "sink(store(%y, %i, add.f32(load.f32(%a, %i), 1.5)))\n");
  add_text (
      seeds,
      "%0 = param.f32{slot=0, shape=[256]}\n%1 = param.i32{slot=1, shape=[512]}\n"
      "%i = range.index{number=0, kind=loop}(16)\n"
      "%k = range.index{number=2, kind=reduce}(32)\n"
      "%a = load.i32(%1, add.index(mul.index(%i, 32), %k))\n"
      "%r = reduce.f32{op=add}(cast.f32(%a), %k)\nsink{name=\"mm\"}(store(%0, %i, %r))\n");
}

static gboolean
read_opts (const guint8 *data, gsize size)
{
  guint n;
  g_autofree char *text = as_text (data, size);
  g_autofree TinyOpt *opts = tiny_opts_from_string (text, &n, NULL);
  g_autofree char *printed = opts != NULL ? tiny_opts_to_string (opts, n) : NULL;
  return opts != NULL;
}

static void
seed_opts (GPtrArray *seeds)
{
  add_text (
      seeds,
      "pad(1,16) lanes(1,16) group(1,8) split(0,4) upcast(0,0) swap(0,1) grid(0,0) stage(0,1)");
}

/* ---- devices and plugins ---- */
static gboolean
read_device (const guint8 *data, gsize size)
{
  g_autofree char *text = as_text (data, size);
  g_autoptr (TinyDeviceSpec) spec = tiny_device_spec_parse (text, NULL);
  return spec != NULL;
}

static void
seed_device (GPtrArray *seeds)
{
  add_text (seeds, "CUDA:@pci-0000:c1:00.0;ISOLATED+NPU|CPU::x86_64,native,-avx512f?a=b&c=d");
}

/* A shared object of two segments. */
static void
seed_elf (GPtrArray *seeds)
{
  struct {
    ElfW (Ehdr) head;
    ElfW (Phdr) segments[3];
    ElfW (Dyn) dynamic[6];
    ElfW (Sym) symbols[2];
    guint32 hash[5];
    ElfW (Nhdr) note;
    char owner[4];
    guint8 id[8];
    char texts[48];
  } file = { .texts = "\0tiny_plugin_entry_1\0libc.so.6" };
#define AT(member) G_STRUCT_OFFSET (__typeof__ (file), member)
  memcpy (file.head.e_ident, ELFMAG, SELFMAG);
  file.head.e_ident[EI_CLASS] = sizeof (void *) == 8 ? ELFCLASS64 : ELFCLASS32;
  file.head.e_ident[EI_DATA] = G_BYTE_ORDER == G_LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
  file.head.e_ident[EI_VERSION] = EV_CURRENT;
  file.head.e_type = ET_DYN;
  file.head.e_machine = EM_X86_64;
  file.head.e_version = EV_CURRENT;
  file.head.e_phoff = AT (segments);
  file.head.e_ehsize = sizeof file.head;
  file.head.e_phentsize = sizeof file.segments[0];
  file.head.e_phnum = G_N_ELEMENTS (file.segments);
  file.segments[0]
      = (ElfW (Phdr)){ .p_type = PT_LOAD, .p_filesz = sizeof file, .p_memsz = sizeof file };
  file.segments[1] = (ElfW (Phdr)){ .p_type = PT_DYNAMIC,
                                    .p_offset = AT (dynamic),
                                    .p_vaddr = AT (dynamic),
                                    .p_filesz = sizeof file.dynamic,
                                    .p_memsz = sizeof file.dynamic };
  file.segments[2] = (ElfW (Phdr)){ .p_type = PT_NOTE,
                                    .p_offset = AT (note),
                                    .p_vaddr = AT (note),
                                    .p_filesz = AT (texts) - AT (note),
                                    .p_memsz = AT (texts) - AT (note),
                                    .p_align = 4 };
  const ElfW (Dyn) dynamic[]
      = { { DT_STRTAB, { AT (texts) } },   { DT_STRSZ, { sizeof file.texts } },
          { DT_SYMTAB, { AT (symbols) } }, { DT_HASH, { AT (hash) } },
          { DT_NEEDED, { 21 } },           { DT_NULL, { 0 } } };
  memcpy (file.dynamic, dynamic, sizeof dynamic);
  file.symbols[1] = (ElfW (Sym)){
    .st_name = 1, .st_shndx = 1, .st_value = 64, .st_info = ELF64_ST_INFO (STB_GLOBAL, STT_FUNC)
  };
  const guint32 hash[] = { 1, 2, 1, 0, 0 };
  memcpy (file.hash, hash, sizeof hash);
  file.note
      = (ElfW (Nhdr)){ .n_namesz = 4, .n_descsz = sizeof file.id, .n_type = NT_GNU_BUILD_ID };
  memcpy (file.owner, "GNU", 4);
#undef AT
  g_ptr_array_add (seeds, g_bytes_new (&file, sizeof file));
}

static gboolean
read_elf (const guint8 *data, gsize size)
{
  const char *path = fuzz_as_file (data, size);
  const gboolean good = tiny_elf_check (path, NULL);
  g_autoptr (TinyElf) elf = tiny_elf_open (path, NULL);
  if (elf == NULL)
    return FALSE;
  g_autofree char *id = tiny_elf_read_build_id (elf);
  tiny_elf_read_symbols (elf, NULL);
  tiny_elf_measure_sections (elf, ".debug");
  return good;
}

/* ---- records ---- */
/* The words before the bytes of a frame. */
enum { KIND, CALL, N_BYTES, CHECK, HEAD_CHECK, HEAD_WORDS, DIGEST_BYTES = 33 };

#define LETTERS G_GUINT64_CONSTANT (0x6161616161616161)

static void
add_word (GByteArray *out, guint64 word)
{
  word = GUINT64_TO_LE (word);
  g_byte_array_append (out, (const guint8 *) &word, sizeof word);
}

/* Frames whose checksums are right: each a byte for its kind, a byte for its number of words, and these. */
static gboolean
read_record (const guint8 *data, gsize size)
{
  g_autoptr (GByteArray) file = g_byte_array_new ();
  guint64 call = 0;
  g_byte_array_append (file, (const guint8 *) TINY_RECORD_MAGIC, 8);
  for (gsize at = 0; at + 2 <= size;) {
    const gsize n = MIN (8u * data[at + 1], (size - at - 2) & ~(gsize) 7);
    guint64 head[HEAD_WORDS] = { [KIND] = GUINT64_TO_LE (data[at]),
                                 [CALL] = GUINT64_TO_LE (++call),
                                 [N_BYTES] = GUINT64_TO_LE (n) };
    head[CHECK] = GUINT64_TO_LE (sum_words (data + at + 2, n));
    head[HEAD_CHECK] = GUINT64_TO_LE (sum_words (head, HEAD_CHECK * sizeof *head));
    g_byte_array_append (file, (const guint8 *) head, sizeof head);
    g_byte_array_append (file, data + at + 2, (guint) n);
    at += 2 + n;
  }
  g_autoptr (TinyRecord) record = tiny_record_open (fuzz_as_file (file->data, file->len), NULL);
  for (guint i = 0; record != NULL && i < tiny_record_get_n_frames (record); i++) {
    TinyRecordFrame frame, result;
    tiny_record_get_frame (record, i, &frame);
    tiny_record_get_result (record, frame.call, &result);
  }
  return record != NULL;
}

/* A frame of each kind, whose numbers are small, texts of a byte or, of a block of data, as long as a digest, and data
 * empty. */
static void
seed_record (GPtrArray *seeds)
{
  g_autoptr (GByteArray) all = g_byte_array_new ();
  for (guint kind = 0; kind < TINY_N_RECORD_KINDS; kind++) {
    const TinyRecordRow *row = tiny_record_get_row ((TinyRecordKind) kind);
    g_autoptr (GByteArray) words = g_byte_array_new ();
    const char *name;
    gsize length;
    char type;
    for (guint i = 0; tiny_record_row_get_field (row, i, &name, &length, &type); i++) {
      const guint n_text = kind == TINY_RECORD_DATA ? DIGEST_BYTES : 1;
      add_word (words, type == 't' ? n_text : strchr ("uihd", type) != NULL);
      for (guint word = 0; type == 't' && word < (n_text + 7) / 8; word++)
        add_word (words, word < n_text / 8 ? LETTERS : 0);
    }
    const guint8 head[2] = { (guint8) kind, (guint8) (words->len / 8) };
    g_byte_array_append (all, head, sizeof head);
    g_byte_array_append (all, words->data, words->len);
  }
  g_ptr_array_add (seeds, g_bytes_new (all->data, all->len));
}

const FuzzTarget fuzz_targets[] = {
  { "json", read_json, seed_json },
  { "manifest", read_manifest, seed_manifest },
  { "safetensors", read_safetensors, seed_safetensors },
  { "idx", read_idx, seed_idx },
  { "ir", read_ir, seed_ir },
  { "kernel", read_kernel, seed_ir },
  { "opts", read_opts, seed_opts },
  { "device", read_device, seed_device },
  { "elf", read_elf, seed_elf },
  { "record", read_record, seed_record },
  { "bundle", fuzz_read_bundle, fuzz_seed_bundle },
  { "answer", fuzz_read_answer, fuzz_seed_answer },
  { "description", fuzz_read_description, fuzz_seed_description },
  { "entry", fuzz_read_entry, fuzz_seed_entry },
};
const guint fuzz_n_targets = G_N_ELEMENTS (fuzz_targets);
