/* SPDX-License-Identifier: MIT
 *
 * tiny-code.h: a kernel's binary together with what a launch of it needs.
 *
 * What tiny-executable.c caches and loads, and what tiny-search.c makes candidates of. */
#pragma once

#include "codegen/tiny-codegen.h"
#include "device/tiny-device.h"
#include "device/tiny-program.h"
#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* Fixed widths: this is what a disk entry holds before the binary, for the same machine only. */
typedef struct {
  guint32 n_params, n_variables;
  guint32 grid[3], group[3];
  guint32 dtype;           /* that most of the arithmetic is in */
  guint64 reads;           /* by parameter, of the first 64: a launch reads it */
  gint64 n_flops, n_bytes; /* estimates for one launch */
  char name[96];
  char opts[512];
} TinyCodeHead;

typedef struct {
  TinyCodeHead head;
  GBytes *binary;
  gint64 ns_codegen, ns_compile; /* that making it took */
} TinyCode;

/* Fills what a launch needs to know of @program. */
void tiny_code_head_fill (TinyCodeHead *head, const TinyLinearProgram *program);
/* Renders and compiles @program, which was made for @device. Thread-safe. @tag tells files of
 * sources that a compiler refused apart; NULL: nothing is kept and nothing shown. Errors: those of the renderer and
 * the plugin's compiler. */
GBytes *tiny_code_compile (TinyDevice *device,
                           const TinyLinearProgram *program,
                           const char *tag,
                           GError **error);
/* All of it for @kernel, in a graph of its own; @opts NULL: by heuristic. */
gboolean tiny_code_make (TinyCode *self,
                         TinyDevice *device,
                         TinyNode *kernel,
                         const TinyOpt *opts,
                         guint n_opts,
                         const char *tag,
                         GError **error);
/* The binary of what a unit of @device claimed. */
gboolean tiny_code_make_operation (TinyCode *self,
                                   TinyDevice *device,
                                   const TinyOperation *operation,
                                   GError **error);
void tiny_code_clear (TinyCode *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyCode, tiny_code_clear)

G_END_DECLS
