/* SPDX-License-Identifier: MIT
 *
 * loader-private.h: a loader as both of its files see it: how it is made (tiny-loader.c) and read (loader-read.c). */
#pragma once

#include "nn/tiny-loader.h"

G_BEGIN_DECLS

enum { MAX_ITEM_DIMS = 15 };

typedef struct {
  TinyDType dtype;
  gint64 shape[MAX_ITEM_DIMS + 1]; /* of a batch; its first is set for each */
  guint n_dims;                    /* of a batch */
  gsize item_bytes;
  GBytes *data; /* NULL: from the function */
} TinyLoaderField;

struct _TinyLoader {
  GObject parent_instance;
  GArray *fields;
  gsize item_bytes; /* of all fields */
  guint32 n_items;
  guint batch, at, epoch;
  gboolean shuffle, drop_last;
  guint64 seed;
  char *device;
  guint32 *order;
  TinyItemFunction function;
  gpointer user_data;
  GDestroyNotify destroy;
  GError *error; /* of this epoch */
  gint used;     /* a call is under way: 1 and the forks up to its process; or 0 */
  guint prefetch;
  GThread *thread;  /* or NULL */
  guint n_forks;    /* when it was started: a child of the process has none */
  gboolean is_left; /* nobody but the thread has the loader any more */
  GMutex lock;      /* for what follows */
  GCond changed;
  GQueue ready; /* batches */
  gboolean stop;
};

/* FALSE with an error: it is used already; else tiny_loader_leave() follows. */
gboolean tiny_loader_enter (TinyLoader *self, GError **error);
/* Where there is no place for an error. */
gboolean tiny_loader_enter_or_warn (TinyLoader *self);
void tiny_loader_leave (TinyLoader *self);
/* This thread is in the loader's function. */
gboolean tiny_loader_is_within (const TinyLoader *self);

void tiny_loader_end_thread (TinyLoader *self);
/* (transfer full): the fields of the next batch. NULL without an error at the end of the epoch. */
GPtrArray *tiny_loader_read_next (TinyLoader *self, GError **error);

G_END_DECLS
