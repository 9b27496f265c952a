/* SPDX-License-Identifier: MIT
 *
 * tir-passes.c: the table of passes for golden files; a new pass is a function and a row. */
#include "tir-passes.h"

#include "base/tiny-error.h"
#include "ir/tiny-verify.h"

/* The text form alone: what was read is written again. */
static TinyNode *
run_parse (TinyGraph *graph, TinyNode *root, const char *args, GError **error)
{
  return root;
}

static TinyNode *
run_verify (TinyGraph *graph, TinyNode *root, const char *args, GError **error)
{
  TinyStage stage;
  if (!tiny_stage_from_string (args, &stage)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "unknown stage %s", args);
    return NULL;
  }
  return tiny_graph_verify (graph, root, stage, error) ? root : NULL;
}

const TirPassRow tir_passes[] = {
  { "parse", run_parse },
  { "verify", run_verify },
  { NULL, NULL },
};
