/* SPDX-License-Identifier: MIT
 *
 * launches-private.h: what a list of launches is made of. */
#pragma once

#include "engine/tiny-plan.h"

G_BEGIN_DECLS

typedef struct {
  TinyDevice *device;         /* NULL: a copy of binding 1 to binding 0 */
  TinyExecutable *executable; /* (owned) once it is in a list */
  guint first_binding, n_bindings;
  guint n_written;  /* the first so many bindings */
  gboolean is_part; /* as TinyScheduleItem.is_part */
  guint first_variable, n_variables;
} Launch;

/* A launch's variable. */
typedef struct {
  TinyBoundVariable bound;
  guint number; /* of the recording's, see tiny_launches_number_variables() */
} LaunchVariable;

struct TinyLaunches {
  GArray *launches;      /* Launch */
  GArray *bindings;      /* TinyBinding, each with a reference to its buffer, or lent one */
  gboolean is_lent;      /* buffers are the caller's, and change between submissions */
  GArray *variables;     /* LaunchVariable */
  TinyCommand *commands; /* one per launch, once built */
  TinySpan *spans;       /* one per binding */
  gint64 *values;        /* one per variable */
  guint64 *ns;           /* one per launch: what it took, where that is shown or recorded */
  void *staging;         /* for copies that neither device lets the host reach */
  gsize n_staging;
  guint n_kernels;
  gboolean has_untrusted;   /* among the kernels */
  guint64 n_flops, n_bytes; /* of them all, by their own count */
  struct TinyLanes *lanes;  /* once built */
  guint n_unseen;           /* of the run that goes on, see tiny_launches_submit() */
  gboolean was_touched;     /* by the host, while recording */
  guint64 n_roots;          /* that there were before */
  GHashTable *owners; /* while recording: TinyBuffer → TinyRoot, who had it before; or NULL */
  const GPtrArray *inputs; /* while recording: TinyBuffer, what changes from run to run */
};

/* The device that runs @launch: its own, or one that runs kernels on that one's memory; NULL: a copy. */
TinyDevice *tiny_launch_get_runner (const Launch *launch);
/* Makes commands of the launches, or brings those that there are up to date. */
gboolean tiny_launches_build (TinyLaunches *self, GError **error);
/* Whether they have memory in common. */
gboolean tiny_bindings_overlap (const TinyBinding *x, const TinyBinding *y);
/* Appends a copy of @launch with other bindings; its variables are those of launches @from. */
void tiny_launches_add (TinyLaunches *self,
                        Launch launch,
                        const TinyBinding *bindings,
                        TinyLaunches *from);

G_END_DECLS
