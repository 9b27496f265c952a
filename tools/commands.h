/* SPDX-License-Identifier: MIT
 *
 * commands.h: the subcommands of tinycore and what they share. */
#pragma once

#include <json-glib/json-glib.h>

#include "device/tiny-device.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Each gets its own name as argv[0] and returns the exit status. */
int tinycore_devices (int argc, char **argv);
int tinycore_abi_check (int argc, char **argv);
int tinycore_plugin (int argc, char **argv);
int tinycore_inspect (int argc, char **argv);
int tinycore_train (int argc, char **argv);
int tinycore_compile (int argc, char **argv);
int tinycore_explain (int argc, char **argv);
int tinycore_bench (int argc, char **argv);
int tinycore_tune (int argc, char **argv);
int tinycore_replay (int argc, char **argv);
int tinycore_export (int argc, char **argv);
int tinycore_new_plugin (int argc, char **argv);
int tinycore_conformance (int argc, char **argv);

/* What `train` and `tune` know by name. */
#define TINYCORE_TRAINABLE "fashion-mnist"
/* A few steps and a test of it, silently; @directory as of train --data. */
gboolean tinycore_train_briefly (const char *directory, GError **error);

/* The device of that name, or DEV's for NULL (transfer none). */
TinyDevice *tinycore_open_device (const char *dev, GError **error);
/* Writes to the file of that name, or to standard output for NULL. */
gboolean tinycore_write (const char *path, const void *data, gsize size, GError **error);

/* A file or folder of ours: the one that environment variable @variable names, else @moved beside the
 * library (a tree that was moved), else @installed. NULL: it is not there. */
char *tinycore_find_installed (const char *variable, const char *installed, const char *moved);
/* Adds a member to an object: a text, or null. */
void tinycore_add_text (JsonBuilder *builder, const char *name, const char *value);
/* Prints what was built as one line. */
void tinycore_print_json (JsonBuilder *builder);

/* Prints the error, which it takes, and returns the status of failure. */
int tinycore_fail (GError *error);

/* Prints what is wrong with the command line and where it is said, and returns the status of that. */
int tinycore_fail_usage (const char *format, ...) G_GNUC_PRINTF (1, 2);

/* Reads options; prints what is wrong and sets @out_status if they are. */
gboolean tinycore_parse (int *argc,
                         char ***argv,
                         const char *parameters,
                         const char *summary,
                         const GOptionEntry *entries,
                         int *out_status);
