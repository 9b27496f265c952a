/* SPDX-License-Identifier: MIT
 *
 * tiny-recipe.h: a computation as source text or code, buffers and launches, for a target that need
 * not be here. What a plan is for a device, a recipe is for a file. */
#pragma once

#include "codegen/tiny-codegen.h"
#include "device/tiny-device.h"
#include "schedule/tiny-schedule.h"

G_BEGIN_DECLS

typedef struct {
  char *name;   /* a C identifier, no other kernel of the recipe has it */
  char *source; /* without the dialect's prelude, or NULL */
  GBytes *code; /* or, instead: what the renderer's compile() gives */
  guint32 grid[3], group[3];
  guint n_params;
  guint64 local_bytes;   /* of LOCAL memory */
  guint64 binding_bytes; /* of the largest buffer that it is given */
} TinyRecipeKernel;

/* Items of the schedule are all kernels, those of kernels->pdata[kernel_of_item[i]]. */
typedef struct {
  TinySchedule *schedule;
  GPtrArray *kernels; /* of TinyRecipeKernel; equal ones are one */
  guint *kernel_of_item;
} TinyRecipe;

/* For whom. */
typedef struct {
  const TinyRenderer *renderer;
  const TinyTarget *target;
  const char *prefix;  /* names of kernels begin with it */
  gboolean wants_code; /* what compile() gives; else the source, by the renderer's dialect */
} TinyRecipeOptions;

/* Schedules @sink (as tiny_schedule_new(), which takes @graph) for one device of the target and makes
 * its kernels.
 *
 * Errors: %TINY_ERROR_UNSUPPORTED for what the target or its dialect cannot do, naming the kernel;
 * those of scheduling and compiling. */
TinyRecipe *tiny_recipe_new (TinyGraph *graph,
                             TinyNode *sink,
                             const TinyRecipeOptions *options,
                             GError **error);
void tiny_recipe_free (TinyRecipe *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyRecipe, tiny_recipe_free)

G_END_DECLS
