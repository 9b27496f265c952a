/* SPDX-License-Identifier: MIT
 *
 * test-plugins.c: what bad plugins cost: themselves, with a reason, and nothing else. */
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/case-fails.h"
#include "base/tiny-error.h"
#include "plugin/tiny-registry.h"

enum { TIMEOUT_MS = 700 };

static const struct {
  const char *name;
  TinyEntryState state;
  TinyError code;
  const char *reason; /* what the recorded reason must hold */
} faults[] = {
  { "control", TINY_ENTRY_READY, 0, NULL },
  { "constructor-crash", TINY_ENTRY_QUARANTINED, TINY_ERROR_PLUGIN,
    "signal 11 (Segmentation fault)" },
  { "constructor-exit", TINY_ENTRY_QUARANTINED, TINY_ERROR_PLUGIN,
    "exit status 0, saying “leaving early”" },
  { "constructor-letters", TINY_ENTRY_QUARANTINED, TINY_ERROR_PLUGIN,
    "exit status 0, saying “aéé" },
  { "constructor-forges", TINY_ENTRY_QUARANTINED, TINY_ERROR_PLUGIN, "because?[2J" },
  { "constructor-hang", TINY_ENTRY_QUARANTINED, TINY_ERROR_TIMEOUT, "not done after 700 ms" },
  { "constructor-fork", TINY_ENTRY_QUARANTINED, TINY_ERROR_PLUGIN, "exit status 3" },
  { "scan-crash", TINY_ENTRY_QUARANTINED, TINY_ERROR_PLUGIN, "signal 11" },
  { "scan-exit", TINY_ENTRY_QUARANTINED, TINY_ERROR_PLUGIN, "exit status 0" },
  { "scan-hang", TINY_ENTRY_QUARANTINED, TINY_ERROR_TIMEOUT, "not done after 700 ms" },
  { "info-crash", TINY_ENTRY_QUARANTINED, TINY_ERROR_PLUGIN, "signal 11" },
  { "fini-crash", TINY_ENTRY_QUARANTINED, TINY_ERROR_PLUGIN, "signal 11" },
  { "no-symbol", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN, "does not export tiny_plugin_entry_1" },
  { "future-symbol", TINY_ENTRY_BROKEN, TINY_ERROR_ABI, "it exports tiny_plugin_entry_2" },
  { "future-note", TINY_ENTRY_BROKEN, TINY_ERROR_ABI, "built for plugin ABI 2.0" },
  { "future-major", TINY_ENTRY_BROKEN, TINY_ERROR_ABI,
    "built for plugin ABI 2, this core has 1" },
  { "future-minor", TINY_ENTRY_BROKEN, TINY_ERROR_ABI, "(from 1.7 on)" },
  { "future-minor-unnoted", TINY_ENTRY_BROKEN, TINY_ERROR_ABI, "plugin ABI 1.7 or newer" },
  { "no-scan", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN, "lacks the required slot scan" },
  { "no-alloc", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN, "lacks the required slot alloc" },
  { "half-queues", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN,
    "lacks the required slot queue_create" },
  { "no-compile", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN, "lacks the required slot compile" },
  { "reserved", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN,
    "the module table has reserved bits set" },
  { "table-reserved", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN,
    "the device table has reserved bits set" },
  { "flags", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN, "flags 0x40000000" },
  { "short", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN, "says that it has 48 bytes" },
  { "name", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN, "the module it names says “other”" },
  { "refuses", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN, "this core is not good enough" },
  { "no-device", TINY_ENTRY_NO_HARDWARE, TINY_ERROR_NO_DEVICE, "finds no device of its kind" },
  { "steers", TINY_ENTRY_BROKEN, TINY_ERROR_DRIVER, "init: ????????" },
  { "version", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN, "says “77” (version)" },
  { "no-version", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN, "says “” (version)" },
  { "endless-id", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN, "candidate 0 has an endless id" },
  { "endless-info", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN, "an endless name or arch" },
  { "huge-name", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN,
    "the module table's name is longer than 32" },
  { "huge-version", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN, "version is longer than 256" },
  { "huge-renderer", TINY_ENTRY_BROKEN, TINY_ERROR_PLUGIN, "renderer 0: its name is not of" },
  { "driver", TINY_ENTRY_BROKEN, TINY_ERROR_DRIVER, "libbad.so.1 is not there (install it)" },
};

typedef struct {
  char *folder; /* of manifests */
  char *cache;
} Fixture;

static void
write_manifest (const Fixture *fixture, const char *name, const char *module)
{
  g_autofree char *file = g_strdup_printf ("%s/%s.json", fixture->folder, name);
  g_autofree char *text = g_strdup_printf (
      "{\"format_version\": 1, \"name\": \"%s\", \"abi\": 1, \"module\": \"%s\", \"class\": "
      "\"simulator\", \"version\": \"1\", \"probe\": {\"timeout_ms\": %d}}",
      name, module, TIMEOUT_MS);
  g_assert_true (g_file_set_contents (file, text, -1, NULL));
}

static void
set_up (Fixture *fixture, gconstpointer unused)
{
  fixture->folder = g_dir_make_tmp ("tiny-fault-XXXXXX", NULL);
  fixture->cache = g_dir_make_tmp ("tiny-fault-XXXXXX", NULL);
}

static void
remove_folder (char *path)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  for (const char *name = g_dir_read_name (dir); name != NULL; name = g_dir_read_name (dir)) {
    g_autofree char *file = g_build_filename (path, name, NULL);
    g_unlink (file);
  }
  g_rmdir (path);
  g_free (path);
}

static void
tear_down (Fixture *fixture, gconstpointer unused)
{
  remove_folder (fixture->folder);
  remove_folder (fixture->cache);
}

static TinyRegistry *
new_registry (const Fixture *fixture)
{
  const char *folders[] = { fixture->folder, NULL };
  return tiny_registry_new (folders, fixture->cache);
}

static const TinyEntry *
find_entry (const GPtrArray *list, const char *name)
{
  for (guint i = 0; i < list->len; i++)
    if (g_str_equal (((const TinyEntry *) list->pdata[i])->name, name))
      return list->pdata[i];
  return NULL;
}

static char *
module_of (const char *name)
{
  return g_strdup_printf ("%s/bad-%s.so", BAD_DIR, name);
}

static void
assert_has (const char *text, const char *part)
{
  if (text == NULL || strstr (text, part) == NULL)
    CASE_FAILS ("“%s” does not hold “%s”", text ? text : "(nothing)", part);
}

/* Every fault gets its state and reason within its time, and the right one beside them works. */
static void
test_listed (Fixture *fixture, gconstpointer unused)
{
  for (guint i = 0; i < G_N_ELEMENTS (faults); i++) {
    g_autofree char *module = module_of (faults[i].name);
    write_manifest (fixture, faults[i].name, module);
  }
  g_autoptr (TinyRegistry) registry = new_registry (fixture);
  gint64 begin = g_get_monotonic_time ();
  g_autoptr (GPtrArray) list = tiny_registry_list (registry);
  gint64 cold = g_get_monotonic_time () - begin;
  for (guint i = 0; i < G_N_ELEMENTS (faults); i++) {
    const TinyEntry *entry = find_entry (list, faults[i].name);
    g_test_message ("%s: %s: %s", faults[i].name, tiny_entry_state_to_string (entry->state),
                    entry->reason);
    g_assert_cmpstr (tiny_entry_state_to_string (entry->state), ==,
                     tiny_entry_state_to_string (faults[i].state));
    g_assert_true (entry->reason == NULL || g_utf8_validate (entry->reason, -1, NULL));
    if (faults[i].reason != NULL)
      assert_has (entry->reason, faults[i].reason);
  }
  g_assert_cmpint (cold, <, 20 * G_USEC_PER_SEC);
  /* Everything is remembered, the crashes too: a new registry runs nothing. */
  g_autoptr (TinyRegistry) second = new_registry (fixture);
  begin = g_get_monotonic_time ();
  g_autoptr (GPtrArray) again = tiny_registry_list (second);
  gint64 warm = g_get_monotonic_time () - begin;
  g_test_message ("cold %.1f ms, warm %.2f ms", (double) cold / 1e3, (double) warm / 1e3);
  g_assert_cmpuint (again->len, ==, list->len);
  g_assert_cmpint (warm, <, TIMEOUT_MS * 1000);
}

/* Opening a faulty one is an error of the right code that names it; the others still open. */
static void
test_opened (Fixture *fixture, gconstpointer unused)
{
  for (guint i = 0; i < G_N_ELEMENTS (faults); i++) {
    g_autofree char *module = module_of (faults[i].name);
    write_manifest (fixture, faults[i].name, module);
  }
  g_autoptr (TinyRegistry) registry = new_registry (fixture);
  for (guint i = 0; i < G_N_ELEMENTS (faults); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyDevice) device = tiny_registry_open (registry, faults[i].name, &error);
    if (faults[i].reason == NULL) {
      g_assert_no_error (error);
      continue;
    }
    g_assert_null (device);
    g_test_message ("%s", error->message);
    g_assert_error (error, TINY_ERROR, (gint) faults[i].code);
    assert_has (error->message, faults[i].name);
    assert_has (error->message, faults[i].reason);
  }
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyDevice) fallback = tiny_registry_open (registry, "scan-crash|control", &error);
  g_assert_no_error (error);
  g_assert_cmpstr (tiny_device_get_name (fallback), ==, "control");
}

static void
copy_file (const char *from, const char *to)
{
  g_autofree char *data = NULL;
  gsize size;
  g_assert_true (g_file_get_contents (from, &data, &size, NULL));
  g_unlink (to);
  g_assert_true (g_file_set_contents (to, data, (gssize) size, NULL));
}

/* Quarantine ends when the module changes, and when a person asks for another try. */
static void
test_quarantine (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *bad = module_of ("scan-crash"), *good = module_of ("control");
  g_autofree char *module = g_build_filename (fixture->cache, "module.so", NULL);
  write_manifest (fixture, "control", module);
  copy_file (bad, module);
  g_autoptr (TinyRegistry) registry = new_registry (fixture);
  g_autoptr (GPtrArray) first = tiny_registry_list (registry);
  g_assert_cmpint (find_entry (first, "control")->state, ==, TINY_ENTRY_QUARANTINED);
  g_autoptr (GError) error = NULL;
  g_assert_null (tiny_registry_open (registry, "control", &error));
  assert_has (error->message, "in quarantine since");
  copy_file (good, module);
  g_autoptr (GPtrArray) second = tiny_registry_list (registry);
  g_assert_cmpint (find_entry (second, "control")->state, ==, TINY_ENTRY_READY);
  /* A quarantine that nothing but an environment variable explains. */
  g_autofree char *file = g_build_filename (fixture->folder, "control.json", NULL);
  g_autofree char *text = g_strdup_printf (
      "{\"format_version\": 1, \"name\": \"control\", \"abi\": 1, \"module\": \"%s\", "
      "\"probe\": "
      "{\"timeout_ms\": 700, \"env\": [\"TINY_FAULT\"], \"files\": [\"%s/trigger\"]}}",
      module, fixture->cache);
  g_assert_true (g_file_set_contents (file, text, -1, NULL));
  copy_file (bad, module);
  const struct {
    const char *what;
    gboolean scans_again;
  } steps[] = { { "nothing", FALSE },
                { "env", TRUE },
                { "named file", TRUE },
                { "file", TRUE },
                { "retry", TRUE } };
  g_autofree char *named = g_strdup_printf ("/nowhere/a.so:%s/named", fixture->cache);
  tiny_registry_retry (registry, "control");
  g_autoptr (GPtrArray) before = tiny_registry_list (registry);
  g_assert_cmpint (find_entry (before, "control")->state, ==, TINY_ENTRY_QUARANTINED);
  g_autofree char *scans = g_build_filename (fixture->cache, "scans", NULL);
  g_autoptr (GDir) dir = g_dir_open (scans, 0, NULL);
  g_assert_nonnull (dir);
  g_autofree char *kept = g_build_filename (scans, g_dir_read_name (dir), NULL);
  g_assert_null (g_dir_read_name (dir));
  for (guint i = 0; i < G_N_ELEMENTS (steps); i++) {
    struct stat old, new;
    g_assert_cmpint (stat (kept, &old), ==, 0);
    g_usleep (30000); /* beyond the grain of file times */
    if (g_str_equal (steps[i].what, "env"))
      g_setenv ("TINY_FAULT", named, TRUE);
    if (g_str_equal (steps[i].what, "named file"))
      g_assert_true (g_file_set_contents (strrchr (named, ':') + 1, "x", 1, NULL));
    g_autofree char *trigger = g_build_filename (fixture->cache, "trigger", NULL);
    if (g_str_equal (steps[i].what, "file"))
      g_assert_true (g_file_set_contents (trigger, "x", 1, NULL));
    if (g_str_equal (steps[i].what, "retry"))
      tiny_registry_retry (registry, "control");
    g_autoptr (GPtrArray) list = tiny_registry_list (registry);
    g_assert_cmpint (stat (kept, &new), ==, 0);
    gboolean rewritten = old.st_mtim.tv_sec != new.st_mtim.tv_sec
                         || old.st_mtim.tv_nsec != new.st_mtim.tv_nsec;
    g_assert_cmpint (rewritten, ==, steps[i].scans_again);
  }
  g_unsetenv ("TINY_FAULT");
}

/* Folders that cannot be read for want of descriptors are no folders without manifests, and are looked into again. */
static void
test_descriptors (Fixture *fixture, gconstpointer unused)
{
  struct rlimit before, now;
  g_autofree char *module = module_of ("control");
  write_manifest (fixture, "control", module);
  g_autoptr (TinyRegistry) registry = new_registry (fixture);
  g_autoptr (GError) error = NULL;
  g_assert_cmpint (getrlimit (RLIMIT_NOFILE, &before), ==, 0);
  now = (struct rlimit){ 3, before.rlim_max }; /* those there are stay open */
  g_assert_cmpint (setrlimit (RLIMIT_NOFILE, &now), ==, 0);
  TinyDevice *none = tiny_registry_open (registry, "control", &error);
  g_assert_cmpint (setrlimit (RLIMIT_NOFILE, &before), ==, 0);
  g_assert_null (none);
  assert_has (error->message, g_strerror (EMFILE));
  g_clear_error (&error);
  g_autoptr (TinyDevice) device = tiny_registry_open (registry, "control", &error);
  g_assert_no_error (error);
}

/* A helper that is killed, or has too little memory, is no quarantine, neither in this process nor in the next, and the
 * message names the shortage. */
static void
test_shortage (Fixture *fixture, gconstpointer unused)
{
  static const struct {
    const char *what, *part;
    rlim_t most;
  } cases[]
      = { { "kill", "was killed with signal 9 (Killed), by the system for want of memory", 0 },
          { "limit", "4096 MiB of memory each (ulimit -v or -d)", (rlim_t) 4 << 30 } };
  g_autofree char *module = module_of ("scan-shortage");
  write_manifest (fixture, "scan-shortage", module);
  g_autoptr (TinyRegistry) registry = new_registry (fixture);
  struct rlimit before;
  g_assert_cmpint (getrlimit (RLIMIT_AS, &before), ==, 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const guint n = 1; /* a sanitizer wants more addresses than that */
#else
  const guint n = G_N_ELEMENTS (cases);
#endif
  for (guint i = 0; i < n; i++) {
    g_autoptr (TinyRegistry) other = new_registry (fixture);
    const struct rlimit limited = { cases[i].most, before.rlim_max };
    tiny_registry_retry (other, NULL); /* nothing is known of it */
    g_setenv ("FAULT_SHORTAGE", cases[i].what, TRUE);
    if (cases[i].most != 0)
      g_assert_cmpint (setrlimit (RLIMIT_AS, &limited), ==, 0);
    g_autoptr (GError) error = NULL;
    g_assert_null (tiny_registry_open (other, "scan-shortage", &error));
    g_assert_cmpint (setrlimit (RLIMIT_AS, &before), ==, 0);
    assert_has (error->message, cases[i].part);
    assert_has (error->message, "which is tried again");
    g_assert_null (strstr (error->message, "quarantine"));
    g_unsetenv ("FAULT_SHORTAGE");
    g_autoptr (TinyRegistry) next = new_registry (fixture);
    g_autoptr (GPtrArray) list = tiny_registry_list (next);
    g_assert_cmpint (find_entry (list, "scan-shortage")->state, ==, TINY_ENTRY_READY);
    g_usleep (2100000); /* what one listing keeps */
    g_autoptr (TinyDevice) device = tiny_registry_open (other, "scan-shortage", NULL);
    g_assert_nonnull (device);
  }
}

/* Its target is asked for when it is used: an error then, and the others go on. */
static void
test_endless_target (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *module = module_of ("endless-target");
  write_manifest (fixture, "endless-target", module);
  g_autoptr (TinyRegistry) registry = new_registry (fixture);
  g_autoptr (GError) error = NULL;
  g_assert_null (tiny_registry_open (registry, "endless-target", &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
  assert_has (error->message, "the target's arch is endless");
}

/* A program goes on with what it has loaded when a package puts another file in its place; the next
 * program sees that one. */
static void
test_replaced (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *good = module_of ("control"), *bad = module_of ("scan-crash");
  g_autofree char *module = g_build_filename (fixture->cache, "module.so", NULL);
  write_manifest (fixture, "control", module);
  copy_file (good, module);
  g_autoptr (TinyRegistry) registry = new_registry (fixture);
  g_autoptr (GError) error = NULL;
  TinyDevice *device = tiny_registry_open (registry, "control", &error);
  g_assert_no_error (error);
  copy_file (bad, module); /* another file under that name */
  g_autoptr (TinyDevice) again = tiny_registry_open (registry, "control", &error);
  g_assert_no_error (error);
  g_assert_true (again == device);
  g_clear_object (&device);
  g_clear_object (&again);
  g_autoptr (TinyDevice) anew = tiny_registry_open (registry, "control", &error);
  g_assert_no_error (error);
  g_autoptr (GPtrArray) list = tiny_registry_list (registry);
  g_assert_cmpint (find_entry (list, "control")->state, ==, TINY_ENTRY_READY);
  g_autoptr (TinyRegistry) next = new_registry (fixture);
  g_autoptr (GPtrArray) its = tiny_registry_list (next);
  g_assert_cmpint (find_entry (its, "control")->state, ==, TINY_ENTRY_QUARANTINED);
}

static gboolean
is_gone (int pid)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d/stat", pid), *text = NULL;
  return !g_file_get_contents (path, &text, NULL, NULL) || strstr (text, ") Z") != NULL
         || strstr (text, ") X") != NULL;
}

/* Children of a plugin in the helper end with it, whatever ends the plugin. */
static void
test_orphans (Fixture *fixture, gconstpointer unused)
{
  static const struct {
    const char *name, *end;
  } rows[] = { { "constructor-fork", "exit status 3" },
               { "session-leave", "exit status 0" },
               { "session-hang", "not done after 700 ms" },
               { "session-crash", "signal 11" } };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *module = module_of (rows[i].name);
    write_manifest (fixture, rows[i].name, module);
  }
  g_autoptr (TinyRegistry) registry = new_registry (fixture);
  g_autoptr (GPtrArray) list = tiny_registry_list (registry);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    const char *reason = find_entry (list, rows[i].name)->reason;
    const char *left = strstr (reason, "left ");
    assert_has (reason, rows[i].end);
    g_assert_nonnull (left);
    const int pid = atoi (left + strlen ("left "));
    for (guint t = 0; t < 200 && !is_gone (pid); t++) /* killed, but perhaps not yet reaped */
      g_usleep (10000);
    if (!is_gone (pid)) {
      kill (pid, SIGKILL);
      CASE_FAILS ("process %d of %s is there after the scan", pid, rows[i].name);
    }
  }
}

/* No helper, no plugin: never loaded in process instead. */
static void
test_no_helper (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *helper = g_strdup (g_getenv ("TINY_SCAN_HELPER"));
  g_autofree char *module = module_of ("control");
  write_manifest (fixture, "control", module);
  const char *helpers[] = { "/nowhere/tiny-scan", "/bin/false" };
  g_autoptr (TinyRegistry) registry = new_registry (fixture);
  for (guint i = 0; i < G_N_ELEMENTS (helpers); i++) {
    g_setenv ("TINY_SCAN_HELPER", helpers[i], TRUE);
    g_autoptr (GError) error = NULL;
    g_assert_null (tiny_registry_open (registry, "control", &error));
    g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
    assert_has (error->message, helpers[i]);
  }
  /* Nothing of that was held against the plugin. */
  g_setenv ("TINY_SCAN_HELPER", helper, TRUE);
  g_autoptr (TinyDevice) device = tiny_registry_open (registry, "control", NULL);
  g_assert_nonnull (device);
}

/* Files that are no modules at all. */
static void
test_files (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *good = module_of ("control"), *data = NULL;
  gsize size;
  g_assert_true (g_file_get_contents (good, &data, &size, NULL));
  const struct {
    const char *name, *reason;
  } cases[] = {
    { "text", "does not begin as an ELF file" },
    { "empty", "not a shared object: it is empty" },
    { "head", "truncated" },
    { "half", "truncated" },
    { "machine", "this program is" },
    { "bits", "(32-bit)" },
    { "executable", "not a shared object" },
    { "missing", "is not there" },
    { "folder", "it is a folder, not a shared object" },
    { "writable", "chmod go-w" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *path = g_strdup_printf ("%s/%s.so", fixture->cache, cases[i].name);
    g_autofree char *bytes = g_memdup2 (data, size);
    gsize n = size;
    const char *name = cases[i].name;
    if (g_str_equal (name, "text"))
      n = (gsize) g_snprintf (bytes, 64, "#!/bin/sh\necho I am no module\n");
    else if (g_str_equal (name, "empty"))
      n = 0;
    else if (g_str_equal (name, "head"))
      n = 30;
    else if (g_str_equal (name, "half"))
      n = size / 2;
    else if (g_str_equal (name, "machine"))
      bytes[18] = 8; /* EM_MIPS */
    else if (g_str_equal (name, "bits"))
      bytes[4] = 1;
    else if (g_str_equal (name, "executable"))
      bytes[16] = 2;
    if (g_str_equal (name, "folder"))
      g_mkdir (path, 0755);
    else if (!g_str_equal (name, "missing"))
      g_assert_true (g_file_set_contents (path, bytes, (gssize) n, NULL));
    if (g_str_equal (name, "writable"))
      g_chmod (path, 0777);
    write_manifest (fixture, name, path);
  }
  g_autoptr (TinyRegistry) registry = new_registry (fixture);
  g_autoptr (GPtrArray) list = tiny_registry_list (registry);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const TinyEntry *entry = find_entry (list, cases[i].name);
    g_test_message ("%s: %s", cases[i].name, entry->reason);
    g_assert_cmpint (entry->state, ==, TINY_ENTRY_BROKEN);
    if (!g_str_equal (cases[i].name, "writable"))
      assert_has (entry->reason, cases[i].reason);
    else
      assert_has (entry->reason, "can be written by others");
  }
  g_autofree char *folder = g_strdup_printf ("%s/folder.so", fixture->cache);
  g_rmdir (folder);
}

/* Every truncation of a right module is refused or taken, and nothing else happens. */
static void
test_truncations (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *good = module_of ("control"), *data = NULL;
  g_autofree char *path = g_build_filename (fixture->cache, "cut.so", NULL);
  gsize size;
  g_assert_true (g_file_get_contents (good, &data, &size, NULL));
  write_manifest (fixture, "control", path);
  for (gsize n = 0; n < size - 1; n += 1 + size / 97) {
    g_unlink (path);
    g_assert_true (g_file_set_contents_full (path, data, (gssize) n, G_FILE_SET_CONTENTS_NONE,
                                             0644, NULL));
    g_autoptr (TinyRegistry) registry = new_registry (fixture);
    g_autoptr (GPtrArray) list = tiny_registry_list (registry);
    g_assert_cmpint (find_entry (list, "control")->state, ==, TINY_ENTRY_BROKEN);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  const struct {
    const char *path;
    void (*run) (Fixture *, gconstpointer);
  } tests[] = {
    { "/fault/plugins/listed", test_listed },
    { "/fault/plugins/opened", test_opened },
    { "/fault/plugins/quarantine", test_quarantine },
    { "/fault/plugins/descriptors", test_descriptors },
    { "/fault/plugins/shortage", test_shortage },
    { "/fault/plugins/endless-target", test_endless_target },
    { "/fault/plugins/replaced", test_replaced },
    { "/fault/plugins/orphans", test_orphans },
    { "/fault/plugins/no-helper", test_no_helper },
    { "/fault/plugins/files", test_files },
    { "/fault/plugins/truncations", test_truncations },
  };
  for (guint i = 0; i < G_N_ELEMENTS (tests); i++)
    g_test_add (tests[i].path, Fixture, NULL, set_up, tests[i].run, tear_down);
  return g_test_run ();
}
