/* SPDX-License-Identifier: MIT
 *
 * ladder.c: --ladder: how far a plugin that is being written has come, and what to write next. */
#include "ladder.h"

#include <stdio.h>
#include <string.h>

#include "base/tiny-clean.h"
#include "base/tiny-error.h"
#include "run.h"

enum { RUNG_SECONDS = 30 };

static const struct {
  const char *name, *function, *contract;
} rungs[CONF_N_RUNGS] = {
  [CONF_RUNG_FILE]
  = { "file", "the build",
      "The file is a shared object for this machine that exports tiny_plugin_entry_1 and "
      "nothing else. "
      "Declare the function TINY_PLUGIN_EXPORT, and build with -fvisibility=hidden." },
  [CONF_RUNG_LOAD] = { "load", "the build",
                       "The file can be loaded with every library and symbol that it needs. "
                       "Open a driver's library at "
                       "run time (tiny_open_library() in the kit), so that the plugin loads on "
                       "machines without it; nothing "
                       "runs at load time." },
  [CONF_RUNG_ENTRY] = { "entry", "tiny_plugin_entry_1()",
                        "Returns the address of a constant TinyPluginModule. It may return "
                        "NULL, with a text in the error, when "
                        "it cannot serve a host of that minor version. It does nothing else." },
  [CONF_RUNG_TABLE] = { "table", "the TinyPluginModule",
                        "A static const struct: struct_size = sizeof (TinyPluginModule), "
                        "abi_major and abi_minor as in "
                        "the header it was built with, abi_minor_min the oldest minor it "
                        "serves, name as in the manifest, "
                        "reserved fields zero." },
  [CONF_RUNG_INIT] = { "init", "init()",
                       "Keeps the host table, whose alloc() is what compile() gives binaries "
                       "in. It touches no device and "
                       "takes less than 50 ms. Where a driver's library is missing it may say "
                       "so here: TINY_STATUS_DRIVER, with "
                       "the library's name in the text and what to install in the hint." },
  [CONF_RUNG_SCAN] = { "scan", "scan()",
                       "Fills up to *n candidates and sets *n to how many devices there are: a "
                       "stable id, a name for people, "
                       "the driver's version, the class. It opens no device: look into /sys, "
                       "or ask the driver for a list." },
  [CONF_RUNG_OPEN]
  = { "open", "open()",
      "Opens the device that scan() gave this id, and sets *out to it and *out_table to a "
      "static const "
      "TinyDeviceTable with struct_size = sizeof (TinyDeviceTable). An unknown id is "
      "TINY_STATUS_NO_DEVICE." },
  [CONF_RUNG_INFO] = { "info", "info()",
                       "Says what the device is: name, arch (what target() begins from), "
                       "memory, the alignment of buffers, "
                       "and flags: TINY_DEVICE_HOST_MEMORY where map() always works and costs "
                       "nothing. Touches no byte behind the "
                       "struct_size that it is given." },
  [CONF_RUNG_ALLOC] = { "alloc", "alloc() and free()",
                        "alloc() gives a buffer of n_bytes of device memory, contents "
                        "undefined, aligned to info's alignment; "
                        "0 bytes give a buffer as well. Where there is no memory it is "
                        "TINY_STATUS_OUT_OF_MEMORY and the device "
                        "goes on working. free() takes it back. Both from any thread." },
  [CONF_RUNG_QUEUE] = { "queue", "queue_create() and queue_destroy()",
                        "A queue is where commands go, one after the other; a device may have "
                        "several, each used by one thread "
                        "at a time. Where submit() needs none leave both slots empty." },
  [CONF_RUNG_COPY] = { "first copy", "submit()",
                       "Runs commands in their order and returns when all are done and "
                       "visible. Step from one to the next by "
                       "its own struct_size. UPLOAD copies host memory to dst, DOWNLOAD src to "
                       "host memory, COPY src to dst; a span "
                       "is a buffer, an offset and a size in bytes; the core has seen "
                       "that it lies in its buffer. Refuse an unknown type "
                       "with TINY_STATUS_UNSUPPORTED." },
  [CONF_RUNG_TARGET]
  = { "target", "the renderer's target()",
      "Fills the TinyTarget: arch, the ops that the hardware has for each "
      "dtype, dtypes_storage (at least i32 "
      "and u32), limits. The core makes every other op of these. It is "
      "data: no device need be there. The "
      "least is LOAD STORE CAST BITCAST ADD MUL CMPLT AND OR XOR SHL SHR "
      "WHERE on i32 and u32. A renderer with TINY_RENDERER_CLAIMS_ONLY has a "
      "claim() instead, which accepts what the device computes, at a cost, and "
      "declines all else with a reason." },
  [CONF_RUNG_COMPILE]
  = { "compile", "the renderer's compile()",
      "Makes a binary of a kernel: of args->source, which the core has rendered by your "
      "dialect, or of "
      "args->linear, a flat list of instructions. The binary comes from host->alloc() and "
      "becomes the core's. A "
      "compiler's log goes into the error's text with TINY_STATUS_COMPILE." },
  [CONF_RUNG_PROGRAM]
  = { "program", "program_load() and program_unload()",
      "Loads a binary that compile() made, in this process or another one "
      "long ago: check it, and answer "
      "TINY_STATUS_CORRUPT to one that is damaged or foreign (tiny_pack() and "
      "tiny_unpack() in the kit). The data may be "
      "gone after the call." },
  [CONF_RUNG_OP] = { "first op", "submit() of a DISPATCH",
                     "Runs the program over the grid: grid[0] * grid[1] * grid[2] work-groups, "
                     "each of the group that the program "
                     "was loaded with. Parameter n is buffers[n]: its buffer from its offset "
                     "on. Variables are int64_t. The "
                     "results are visible to the next command." },
  [CONF_RUNG_OFFSET]
  = { "offset", "submit() of a DISPATCH",
      "A span begins anywhere in its buffer, at a multiple of info's alignment. A driver that "
      "takes whole buffers has to be given the offset beside the handle, and the kernel adds "
      "it." },
  [CONF_RUNG_SECOND]
  = { "second", "program_load()",
      "Several programs are loaded at once, each its own, also where a driver or the system's "
      "loader finds them by name or path: give each a name or file of its own." },
  [CONF_RUNG_CLOSE] = { "close", "close() and fini()",
                        "close() ends the device after all of its buffers, programs and queues "
                        "are gone: it joins its threads and "
                        "closes its files. fini() may be empty." },
};

/* Behind two spaces, in lines of at most 78 characters. */
static void
print_wrapped (const char *text)
{
  enum { WIDTH = 76 };
  g_auto (GStrv) words = g_strsplit (text, " ", -1);
  gsize column = 0;
  for (guint i = 0; words[i] != NULL; i++) {
    gsize length = strlen (words[i]);
    if (column > 0 && column + 1 + length > WIDTH) {
      putchar ('\n');
      column = 0;
    }
    printf (column == 0 ? "  %s" : " %s", words[i]);
    column += length + 1;
  }
  putchar ('\n');
}

static int
print_gap (guint rung, const char *why, const char *stack)
{
  g_autofree char *clean = tiny_clean_text (why, strlen (why)); /* of the plugin's words */
  printf ("%-12s no\n\nNext: %s\n\n", rungs[rung].name, rungs[rung].function);
  print_wrapped (clean);
  if (stack != NULL) {
    g_autofree char *frames = tiny_clean_text (stack, strlen (stack));
    printf ("\n%s", frames);
  }
  printf ("\nIts contract:\n");
  print_wrapped (rungs[rung].contract);
  return CONF_EXIT_FAILED;
}

/* An answer that can follow rung @rung. */
static gboolean
is_next (JsonObject *answer, int rung)
{
  if (json_object_has_member (answer, "rung"))
    return json_object_get_int_member (answer, "rung") > rung;
  return rung >= 0
         && (json_object_has_member (answer, "gap") || json_object_has_member (answer, "top"));
}

/* Hears the worker climb; returns the exit status. */
static int
follow (ConfWorker *worker, const ConfOptions *options)
{
  gint64 limit_us = (gint64) (options->timeout_scale * RUNG_SECONDS * G_USEC_PER_SEC);
  int rung = -1;
  for (;;) {
    g_autoptr (JsonNode) answer = conf_worker_wait (worker, limit_us);
    JsonObject *object = answer ? json_node_get_object (answer) : NULL;
    if (object == NULL && rung >= 0) {
      g_autofree char *how = conf_worker_explain (worker);
      g_autofree char *why = g_strconcat ("it ", how, NULL);
      print_gap ((guint) rung, why, worker->stack ? worker->stack->str : NULL);
      return CONF_EXIT_CRASHED;
    }
    if (object == NULL) {
      g_autofree char *how = conf_worker_explain (worker);
      g_printerr ("tinycore conformance: before the first rung the worker %s\n", how);
      return CONF_EXIT_CRASHED;
    }
    if (!is_next (object, rung)) {
      conf_worker_refuse (worker, "it is none of the next rung");
      continue;
    }
    if (json_object_has_member (object, "gap"))
      return print_gap ((guint) rung, json_object_get_string_member (object, "gap"), NULL);
    if (rung >= 0)
      printf ("%-12s yes\n", rungs[rung].name);
    if (json_object_has_member (object, "top"))
      break;
    rung = (int) json_object_get_int_member (object, "rung");
  }
  g_autofree char *manifest
      = options->manifest ? g_strconcat ("--manifest ", options->manifest, " ", NULL) : NULL;
  printf ("\nIt computes. Next: tinycore conformance %s%s\n", manifest ? manifest : "",
          options->spec);
  return CONF_EXIT_PASSED;
}

int
conf_ladder (const ConfOptions *options)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (ConfWanted) wanted = conf_wanted_new (options->spec, options->manifest, &error);
  if (wanted == NULL) {
    g_printerr ("tinycore conformance: %s\n", error->message);
    return g_error_matches (error, TINY_ERROR, TINY_ERROR_NO_DEVICE) ? CONF_EXIT_ABSENT
                                                                     : CONF_EXIT_USAGE;
  }
  g_auto (GStrv) environment = g_get_environ ();
  g_autoptr (ConfFolder) folder = conf_folder_new (&error);
  if (folder == NULL) {
    conf_folder_fail (error);
    return CONF_EXIT_FAILED;
  }
  const ConfWorkerSetup setup = { .program = (char *) options->program,
                                  .folder = conf_folder_get_path (folder),
                                  .environment = environment,
                                  .device = (char *) "",
                                  .path = wanted->path,
                                  .id = (char *) "" };
  g_autoptr (ConfWorker) worker = conf_worker_new (&setup, CONF_WORKER_CLIMB, &error);
  if (worker == NULL) {
    g_printerr ("tinycore conformance: %s\n", error->message);
    return CONF_EXIT_FAILED;
  }
  return follow (worker, options);
}
