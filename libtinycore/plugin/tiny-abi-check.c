/* SPDX-License-Identifier: MIT
 *
 * tiny-abi-check.c: the list of checks, and those of them that need only a few lines. */
#include "plugin/tiny-abi-check.h"

#include <elf.h>
#include <string.h>

#include "base/tiny-clean.h"
#include "plugin/abi-private.h"
#include "plugin/tiny-library.h"
#include "tiny-plugin.h"

enum { MAX_TEXT = 8192 };

/* ---- findings ---- */
const char *
tiny_abi_state_to_string (TinyAbiState state)
{
  static const char *const names[] = { "ok", "note", "warning", "failed", "unknown" };
  return state < G_N_ELEMENTS (names) ? names[state] : "unknown";
}

void
tiny_abi_say (
    TinyAbiFinding *self, TinyAbiState state, const char *hint, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_free (self->text);
  g_free (self->hint);
  self->state = state;
  self->text = tiny_clean_text (text, MAX_TEXT); /* names come out of files */
  self->hint = g_strdup (hint);
}

char *
tiny_abi_join (const GPtrArray *names)
{
  const guint most = 8;
  GString *out = g_string_new (NULL);
  for (guint i = 0; i < names->len && i < most; i++)
    g_string_append_printf (out, "%s%.512s", i ? ", " : "", (const char *) names->pdata[i]);
  if (names->len > most)
    g_string_append_printf (out, " and %u more", names->len - most);
  return g_string_free (out, FALSE);
}

static void
finding_free (gpointer data)
{
  TinyAbiFinding *self = data;
  g_free (self->text);
  g_free (self->hint);
  g_free (self);
}

/* ---- small checks ---- */
static void
check_file (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  if (self->elf == NULL)
    tiny_abi_say (
        out, TINY_ABI_FAILED,
        "a plugin is a shared object for the machine that it runs on: link with -shared "
        "-fPIC, and check what was copied",
        "%s", self->error->message);
  else
    tiny_abi_say (out, TINY_ABI_OK, NULL, "a shared object for %s, %" G_GUINT64_FORMAT " bytes",
                  tiny_elf_name_machine (self->elf->head.e_machine), self->elf->size);
}

static void
check_note (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  gboolean has_note = FALSE;
  g_autoptr (GError) error = NULL;
  guint64 size;
  if (!tiny_elf_check_note (self->elf, &has_note, &error)) {
    tiny_abi_say (out, TINY_ABI_FAILED, "build it against this core's tiny-plugin.h", "%s",
                  error->message);
    return;
  }
  if (!has_note) {
    tiny_abi_say (out, TINY_ABI_WARNING,
                  "write TINY_PLUGIN_NOTE (0); in one source file: with it the file is refused "
                  "in words, and packages find out what it needs",
                  "no note says which plugin ABI it speaks");
    return;
  }
  g_autofree guint32 *abi = tiny_elf_read_note (self->elf, "TINY-ABI", 1, &size);
  tiny_abi_say (out, TINY_ABI_OK, NULL, "plugin ABI %u.%u, serves cores from %u.%u on", abi[0],
                abi[1], abi[0], abi[2]);
}

static void
check_relocations (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  guint64 flags = 0, unused;
  tiny_elf_find_tag (self->elf, DT_FLAGS, &flags);
  if (tiny_elf_find_tag (self->elf, DT_TEXTREL, &unused) || (flags & DF_TEXTREL) != 0)
    tiny_abi_say (
        out, TINY_ABI_FAILED,
        "compile everything in it with -fPIC, static libraries too; -Wl,-z,text makes "
        "the linker name what was not",
        "its code is rewritten when it is loaded (text relocations), which hardened "
        "systems refuse");
  else
    tiny_abi_say (out, TINY_ABI_OK, NULL, "none in its code");
}

static void
check_memory (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  gboolean has_stack = FALSE, runs_stack = FALSE, writes_code = FALSE;
  for (guint i = 0; i < self->elf->n_segments; i++) {
    const ElfW (Phdr) *segment = &self->elf->segments[i];
    if (segment->p_type == PT_GNU_STACK) {
      has_stack = TRUE;
      runs_stack = (segment->p_flags & PF_X) != 0;
    }
    if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) && (segment->p_flags & PF_X))
      writes_code = TRUE;
  }
  if (runs_stack || !has_stack)
    tiny_abi_say (out, TINY_ABI_FAILED,
                  "give assembler files .section .note.GNU-stack,\"\",@progbits, or link with "
                  "-Wl,-z,noexecstack",
                  "asks for a stack that can be executed%s, for the whole program",
                  has_stack ? "" : " (it has no PT_GNU_STACK)");
  else if (writes_code)
    tiny_abi_say (out, TINY_ABI_FAILED, "link without -N and without such a linker script",
                  "has a segment that can be both written and executed");
  else
    tiny_abi_say (out, TINY_ABI_OK, NULL, "neither stack nor data can be executed");
}

static void
check_paths (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  static const gint64 tags[] = { DT_RPATH, DT_RUNPATH };
  g_autoptr (GPtrArray) outside = g_ptr_array_new_with_free_func (g_free);
  GString *all = g_string_new (NULL);
  for (guint t = 0; t < G_N_ELEMENTS (tags); t++) {
    guint64 at;
    const char *text = tiny_elf_find_tag (self->elf, tags[t], &at)
                           ? tiny_elf_get_text (self->elf, at)
                           : NULL;
    g_auto (GStrv) parts = g_strsplit (text ? text : "", ":", -1);
    for (guint i = 0; parts[i] != NULL; i++) {
      /* An empty part is the working folder of whoever runs the program. */
      gboolean inside
          = g_str_has_prefix (parts[i], "$ORIGIN") || g_str_has_prefix (parts[i], "${ORIGIN}");
      if (!inside)
        g_ptr_array_add (outside, g_strdup (parts[i][0] ? parts[i] : "(the working folder)"));
      g_string_append_printf (all, "%s%s", all->len ? ", " : "", parts[i]);
    }
  }
  if (outside->len > 0) {
    g_autofree char *list = tiny_abi_join (outside);
    tiny_abi_say (out, TINY_ABI_FAILED,
                  "link without -rpath, or with one that begins with $ORIGIN for libraries in "
                  "the package; patchelf --remove-rpath FILE takes it away",
                  "libraries are looked for outside its package: %s", list);
  } else if (all->len > 0) {
    tiny_abi_say (out, TINY_ABI_OK, NULL, "inside its package: %s", all->str);
  } else {
    tiny_abi_say (out, TINY_ABI_OK, NULL, "none");
  }
  g_string_free (all, TRUE);
}

static void
check_build_id (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  g_autofree char *id = tiny_elf_read_build_id (self->elf);
  if (id != NULL)
    tiny_abi_say (out, TINY_ABI_OK, NULL, "%s", id);
  else
    tiny_abi_say (out, TINY_ABI_WARNING,
                  "link with -Wl,--build-id: reports and certificates name the file by it",
                  "it has none");
}

static void
check_debug (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  guint64 debug = tiny_elf_measure_sections (self->elf, ".debug_");
  guint64 symbols = tiny_elf_measure_sections (self->elf, ".symtab")
                    + tiny_elf_measure_sections (self->elf, ".strtab");
  if (debug > 0)
    tiny_abi_say (
        out, TINY_ABI_NOTE,
        "packages are usually shipped without: strip --strip-unneeded FILE, and keep a "
        "copy to read crash reports with",
        "%" G_GUINT64_FORMAT " KiB of debug information", (debug + 1023) >> 10);
  else if (symbols > 0)
    tiny_abi_say (out, TINY_ABI_NOTE, "strip --strip-unneeded FILE takes it away",
                  "not stripped: %" G_GUINT64_FORMAT " KiB of names that only debuggers read",
                  (symbols + 1023) >> 10);
  else
    tiny_abi_say (out, TINY_ABI_OK, NULL, "stripped");
}

/* ---- the list ---- */
static const struct {
  const char *name;
  void (*run) (const TinyAbiSubject *self, TinyAbiFinding *out);
  gboolean without_elf; /* runs on a file that is no shared object as well */
  const char *about;
} checks[] = {
  { "file", check_file, TRUE, "a shared object for this machine" },
  { "exports", tiny_abi_check_exports, FALSE, "the entry function and nothing else" },
  { "note", check_note, FALSE, "which plugin ABI it speaks" },
  { "needs", tiny_abi_check_needs, FALSE, "the libraries it needs are there" },
  { "symbols", tiny_abi_check_symbols, FALSE, "what it uses is in the libraries it needs" },
  { "versions", tiny_abi_check_versions, FALSE, "the versions of those libraries" },
  { "core", tiny_abi_check_core, FALSE, "nothing of tinycore or GLib is linked" },
  { "constructors", tiny_abi_check_constructors, FALSE, "nothing runs when it is loaded" },
  { "relocations", check_relocations, FALSE, "code is not rewritten when it is loaded" },
  { "memory", check_memory, FALSE, "what is executed cannot be written" },
  { "paths", check_paths, FALSE, "where it looks for libraries" },
  { "instruments", tiny_abi_check_instruments, FALSE, "no sanitizer, coverage or profile" },
  { "build-id", check_build_id, FALSE, "what identifies the file" },
  { "debug", check_debug, FALSE, "what only debuggers read" },
  { "manifest", tiny_abi_check_manifest, TRUE, "every member of its manifest" },
  { "agreement", tiny_abi_check_agreement, FALSE, "manifest and file say the same" },
};

const char *const *
tiny_abi_list_checks (void)
{
  static const char *names[G_N_ELEMENTS (checks) + 1];
  static gsize done = 0;
  if (g_once_init_enter (&done)) {
    for (guint i = 0; i < G_N_ELEMENTS (checks); i++)
      names[i] = checks[i].name;
    g_once_init_leave (&done, 1);
  }
  return names;
}

const char *
tiny_abi_describe_check (const char *check)
{
  for (guint i = 0; i < G_N_ELEMENTS (checks); i++)
    if (g_str_equal (checks[i].name, check))
      return checks[i].about;
  return NULL;
}

static void
library_free (gpointer data)
{
  TinyAbiLibrary *self = data;
  g_free (self->name);
  g_free (self->path);
  g_free (self->needer);
  g_clear_pointer (&self->elf, tiny_elf_close);
  g_clear_pointer (&self->names, g_hash_table_unref);
  g_free (self);
}

GPtrArray *
tiny_abi_check (const char *path, const char *manifest)
{
  GPtrArray *out = g_ptr_array_new_with_free_func (finding_free);
  g_autofree char *absolute = g_canonicalize_filename (path, NULL);
  TinyAbiSubject subject = { .path = absolute, .manifest = manifest };
  subject.libraries = g_ptr_array_new_with_free_func (library_free);
  subject.elf = tiny_elf_open (absolute, &subject.error);
  if (subject.elf != NULL && !tiny_elf_read_symbols (subject.elf, &subject.error))
    g_clear_pointer (&subject.elf, tiny_elf_close);
  if (subject.elf != NULL)
    tiny_abi_read_libraries (&subject);
  for (guint i = 0; i < G_N_ELEMENTS (checks); i++) {
    TinyAbiFinding *finding = g_new0 (TinyAbiFinding, 1);
    finding->check = checks[i].name;
    if (subject.elf != NULL || checks[i].without_elf)
      checks[i].run (&subject, finding);
    else
      tiny_abi_say (finding, TINY_ABI_UNKNOWN, NULL, "not looked at, see “file”");
    g_ptr_array_add (out, finding);
  }
  g_ptr_array_unref (subject.libraries);
  g_clear_pointer (&subject.elf, tiny_elf_close);
  g_clear_error (&subject.error);
  return out;
}

gboolean
tiny_abi_is_good (const GPtrArray *findings)
{
  for (guint i = 0; i < findings->len; i++)
    if (((const TinyAbiFinding *) findings->pdata[i])->state >= TINY_ABI_FAILED)
      return FALSE;
  return findings->len > 0;
}
