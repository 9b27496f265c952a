/* SPDX-License-Identifier: MIT
 *
 * abi-symbols.c: what a plugin gives to and takes from other files.
 *
 * A symbol that no library it needs has, itself, still resolves where the program happens to have loaded
 * one that does: such a plugin works on its maker's machine. So names are looked for in the
 * libraries of DT_NEEDED first; one that only those libraries' libraries have is a need that is not declared. */
#include <string.h>

#include "plugin/abi-private.h"
#include "plugin/tiny-library.h"
#include "tiny-plugin.h"

enum { MAX_LIBRARIES = 512 };

/* ---- libraries ---- */
static gboolean
is_known (const TinyAbiSubject *self, const char *name)
{
  for (guint i = 0; i < self->libraries->len; i++)
    if (g_str_equal (((const TinyAbiLibrary *) self->libraries->pdata[i])->name, name))
      return TRUE;
  return FALSE;
}

static void
add_library (TinyAbiSubject *self, const TinyElf *needer, const char *name, const char *by)
{
  TinyAbiLibrary *out = g_new0 (TinyAbiLibrary, 1);
  out->name = g_strdup (name);
  out->needer = g_strdup (by);
  out->names = g_hash_table_new (g_str_hash, g_str_equal);
  out->path = tiny_library_find (needer, name);
  g_ptr_array_add (self->libraries, out);
  out->elf = out->path ? tiny_elf_open (out->path, NULL) : NULL;
  if (out->elf == NULL || !tiny_elf_read_symbols (out->elf, NULL))
    return;
  for (guint i = 0; i < out->elf->n_symbols; i++) {
    const TinyElfSymbol *symbol = &out->elf->symbols[i];
    if (symbol->is_exported)
      g_hash_table_add (out->names, (gpointer) symbol->name);
  }
}

void
tiny_abi_read_libraries (TinyAbiSubject *self)
{
  for (guint i = 0; i < self->elf->needed->len; i++)
    if (!is_known (self, self->elf->needed->pdata[i]))
      add_library (self, self->elf, self->elf->needed->pdata[i], NULL);
  for (guint l = 0; l < self->libraries->len && self->libraries->len < MAX_LIBRARIES; l++) {
    const TinyAbiLibrary *library = self->libraries->pdata[l];
    for (guint i = 0; library->elf != NULL && i < library->elf->needed->len; i++)
      if (!is_known (self, library->elf->needed->pdata[i]))
        add_library (self, library->elf, library->elf->needed->pdata[i], library->name);
  }
}

/* The nearest library that has it, or NULL. */
static const TinyAbiLibrary *
find_owner (const TinyAbiSubject *self, const char *name)
{
  for (guint i = 0; i < self->libraries->len; i++) {
    const TinyAbiLibrary *library = self->libraries->pdata[i];
    if (g_hash_table_contains (library->names, name))
      return library;
  }
  return NULL;
}

/* The loader is in every process and need not be asked for. */
static gboolean
is_declared (const TinyAbiLibrary *library)
{
  return library->needer == NULL || g_str_has_prefix (library->name, "ld-")
         || g_str_has_prefix (library->name, "ld64.");
}

void
tiny_abi_check_needs (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  g_autoptr (GPtrArray) missing = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < self->libraries->len; i++) {
    const TinyAbiLibrary *library = self->libraries->pdata[i];
    if (library->path != NULL)
      continue;
    g_autofree char *package = tiny_library_find_package (library->name);
    g_ptr_array_add (
        missing, g_strdup_printf ("%s%s%s%s%s", library->name, library->needer ? " for " : "",
                                  library->needer ? library->needer : "",
                                  package ? ", of the package " : "", package ? package : ""));
  }
  if (missing->len > 0) {
    g_autofree char *list = tiny_abi_join (missing);
    tiny_abi_say (out, TINY_ABI_FAILED,
                  "install it; better, open a driver's library with dlopen() when a device is "
                  "asked for, so that the plugin loads and says what is missing, and name the "
                  "package in the manifest",
                  "not there: %s", list);
    return;
  }
  g_autofree char *list = tiny_abi_join (self->elf->needed);
  tiny_abi_say (out, TINY_ABI_OK, NULL, "%s", list[0] ? list : "no library");
}

/* ---- symbols ---- */
/* What old linkers export of themselves. */
static gboolean
is_linkers (const char *name)
{
  static const char *const names[]
      = { "_init", "_fini", "_edata", "_end", "__bss_start", "_etext", "__end__", NULL };
  return g_strv_contains (names, name);
}

void
tiny_abi_check_exports (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  g_autoptr (GPtrArray) others = g_ptr_array_new ();
  gboolean has_entry = FALSE;
  for (guint i = 0; i < self->elf->n_symbols; i++) {
    const TinyElfSymbol *symbol = &self->elf->symbols[i];
    if (!symbol->is_exported || is_linkers (symbol->name))
      continue;
    if (g_str_equal (symbol->name, TINY_PLUGIN_ENTRY_SYMBOL))
      has_entry = TRUE;
    else
      g_ptr_array_add (others, (gpointer) symbol->name);
  }
  g_autofree char *list = tiny_abi_join (others);
  if (!has_entry)
    tiny_abi_say (out, TINY_ABI_FAILED,
                  "define it, marked TINY_PLUGIN_EXPORT (and extern \"C\" in C++)",
                  "%s is not exported%s%s", TINY_PLUGIN_ENTRY_SYMBOL,
                  others->len ? "; there is " : "", list);
  else if (others->len > 0)
    tiny_abi_say (out, TINY_ABI_FAILED,
                  "compile with -fvisibility=hidden and mark only the entry function "
                  "TINY_PLUGIN_EXPORT; what static libraries and C++ templates still export "
                  "goes with -Wl,--version-script and { global: " TINY_PLUGIN_ENTRY_SYMBOL
                  "; local: *; };",
                  "exports %u symbol%s that could meet another plugin's: %s", others->len,
                  others->len > 1 ? "s" : "", list);
  else
    tiny_abi_say (out, TINY_ABI_OK, NULL, "%s alone", TINY_PLUGIN_ENTRY_SYMBOL);
}

void
tiny_abi_check_symbols (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  g_autoptr (GPtrArray) nobody = g_ptr_array_new ();
  g_autoptr (GPtrArray) indirect = g_ptr_array_new_with_free_func (g_free);
  guint n = 0;
  for (guint i = 0; i < self->elf->n_symbols; i++) {
    const TinyElfSymbol *symbol = &self->elf->symbols[i];
    if (symbol->is_defined || symbol->is_weak)
      continue;
    const TinyAbiLibrary *owner = find_owner (self, symbol->name);
    n++;
    if (owner == NULL)
      g_ptr_array_add (nobody, (gpointer) symbol->name);
    else if (!is_declared (owner))
      g_ptr_array_add (indirect, g_strdup_printf ("%s of %s, which is there for %s",
                                                  symbol->name, owner->name, owner->needer));
  }
  g_autofree char *nowhere = tiny_abi_join (nobody), *elsewhere = tiny_abi_join (indirect);
  gboolean incomplete = FALSE;
  for (guint i = 0; i < self->libraries->len; i++)
    incomplete |= ((const TinyAbiLibrary *) self->libraries->pdata[i])->path == NULL;
  if (nobody->len > 0)
    tiny_abi_say (out, TINY_ABI_FAILED,
                  incomplete
                      ? "see “needs”: a library is missing, and may be the one that has them"
                      : "link the library that has them (-lNAME); -Wl,-z,defs makes the "
                        "linker refuse what is open",
                  "undeclared need: no library that it needs has %s", nowhere);
  else if (indirect->len > 0)
    tiny_abi_say (out, TINY_ABI_FAILED,
                  "link these libraries too (-lNAME): who needs them today may not tomorrow",
                  "undeclared need: %s", elsewhere);
  else
    tiny_abi_say (out, TINY_ABI_OK, NULL, "%u used, all in the libraries it needs", n);
}

/* ---- versions ---- */
static const TinyAbiLibrary *
find_library (const TinyAbiSubject *self, const char *name)
{
  for (guint i = 0; i < self->libraries->len; i++) {
    const TinyAbiLibrary *library = self->libraries->pdata[i];
    if (g_str_equal (library->name, name))
      return library;
  }
  return NULL;
}

static gboolean
has_version (const TinyElf *library, const char *version)
{
  for (guint i = 0; i < library->versions->len; i++)
    if (g_str_equal (library->versions->pdata[i], version))
      return TRUE;
  return library->versions->len == 0; /* it has none at all: the loader lets that pass */
}

/* "GLIBC_2.9" before "GLIBC_2.34"; of different families the order of letters. */
static gint
compare_versions (const char *a, const char *b)
{
  for (; *a != 0 || *b != 0;) {
    if (g_ascii_isdigit (*a) && g_ascii_isdigit (*b)) {
      guint64 x = g_ascii_strtoull (a, (char **) &a, 10);
      guint64 y = g_ascii_strtoull (b, (char **) &b, 10);
      if (x != y)
        return x < y ? -1 : 1;
    } else if (*a != *b) {
      return *a < *b ? -1 : 1;
    } else {
      a++, b++;
    }
  }
  return 0;
}

void
tiny_abi_check_versions (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  g_autoptr (GHashTable) highest = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GPtrArray) lacking = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) wanted = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < self->elf->wanted->len; i++) {
    const TinyElfVersion *row = &g_array_index (self->elf->wanted, TinyElfVersion, i);
    const TinyAbiLibrary *library = find_library (self, row->library);
    const char *known = g_hash_table_lookup (highest, row->library);
    if (known == NULL || compare_versions (known, row->version) < 0)
      g_hash_table_insert (highest, (gpointer) row->library, (gpointer) row->version);
    if (library != NULL && library->elf != NULL && !has_version (library->elf, row->version))
      g_ptr_array_add (lacking, g_strdup_printf ("%s of %s", row->version, row->library));
  }
  for (guint i = 0; i < self->elf->needed->len; i++) {
    const char *name = self->elf->needed->pdata[i],
               *version = g_hash_table_lookup (highest, name);
    if (version != NULL)
      g_ptr_array_add (wanted, g_strdup_printf ("%s from %s on", name, version));
  }
  g_autofree char *list = tiny_abi_join (lacking), *all = tiny_abi_join (wanted);
  if (lacking->len > 0)
    tiny_abi_say (out, TINY_ABI_FAILED, "build it on the oldest system that it is to run on",
                  "this system lacks %s", list);
  else
    tiny_abi_say (out, TINY_ABI_OK, NULL, "%s", wanted->len ? all : "it asks for none");
}

/* ---- ours and GLib's ---- */
void
tiny_abi_check_core (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  static const char *const libraries[] = { "libtinycore-", "libglib-2.",    "libgobject-2.",
                                           "libgio-2.",    "libgmodule-2.", "libjson-glib-" };
  g_autoptr (GPtrArray) found = g_ptr_array_new ();
  for (guint i = 0; i < self->elf->needed->len; i++)
    for (guint l = 0; l < G_N_ELEMENTS (libraries); l++)
      if (g_str_has_prefix (self->elf->needed->pdata[i], libraries[l]))
        g_ptr_array_add (found, self->elf->needed->pdata[i]);
  for (guint i = 0; i < self->elf->n_symbols; i++) {
    const TinyElfSymbol *symbol = &self->elf->symbols[i];
    gboolean ours = g_str_has_prefix (symbol->name, "tiny_");
    gboolean glibs = g_str_has_prefix (symbol->name, "g_")
                     && find_owner (self, symbol->name) == NULL; /* else its library is named */
    if (!symbol->is_defined && (ours || glibs))
      g_ptr_array_add (found, (gpointer) symbol->name);
  }
  g_autofree char *list = tiny_abi_join (found);
  if (found->len > 0)
    tiny_abi_say (
        out, TINY_ABI_FAILED,
        "a plugin includes tiny-plugin.h and links neither tinycore nor GLib: else it "
        "breaks with their versions, and with programs that bring their own",
        "uses %s", list);
  else
    tiny_abi_say (out, TINY_ABI_OK, NULL, "nothing of tinycore or GLib");
}

/* ---- instruments ---- */
void
tiny_abi_check_instruments (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  static const struct {
    const char *prefix, *name;
  } kinds[] = { { "__asan_", "AddressSanitizer" },
                { "__tsan_", "ThreadSanitizer" },
                { "__msan_", "MemorySanitizer" },
                { "__hwasan_", "HWAddressSanitizer" },
                { "__ubsan_", "UndefinedBehaviorSanitizer" },
                { "__lsan_", "LeakSanitizer" },
                { "__sanitizer_cov_", "coverage for fuzzing" },
                { "__gcov_", "gcov's coverage" },
                { "__llvm_profile_", "LLVM's coverage" },
                { "mcount", "a profile for gprof" },
                { "__fentry__", "calls for tracing" } };
  g_autoptr (GPtrArray) found = g_ptr_array_new ();
  for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
    for (guint i = 0; i < self->elf->n_symbols; i++) {
      const TinyElfSymbol *symbol = &self->elf->symbols[i];
      if (g_str_has_prefix (symbol->name, kinds[k].prefix)) {
        g_ptr_array_add (found, (gpointer) kinds[k].name);
        break;
      }
    }
  g_autofree char *list = tiny_abi_join (found);
  if (found->len > 0)
    tiny_abi_say (
        out, TINY_ABI_FAILED,
        "build what is shipped without -fsanitize, --coverage, -fprofile-generate and "
        "-pg",
        "built with %s", list);
  else
    tiny_abi_say (out, TINY_ABI_OK, NULL, "none");
}
