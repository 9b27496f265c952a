/* SPDX-License-Identifier: MIT
 *
 * tiny-schedule.h: a tensor graph as a list of kernels over buffers.
 *
 * A schedule names no memory: its inputs are slots, its outputs and temporaries are sizes. The
 * same structure therefore gives the same schedule, whatever buffers stand behind it. */
#pragma once

#include "ir/tiny-node.h"
#include "tiny-plugin.h"

G_BEGIN_DECLS

typedef enum {
  TINY_SCHEDULE_INPUT,     /* slot is the PARAM's number; an ASSIGN writes into one */
  TINY_SCHEDULE_OUTPUT,    /* slot is the root's number; fresh memory that outlives the run */
  TINY_SCHEDULE_TEMPORARY, /* slot is the byte offset in arenas[arena] */
} TinyScheduleBufferKind;

typedef struct {
  TinyScheduleBufferKind kind;
  TinyDType dtype;
  gint64 n_elements;
  const char *device;
  gint64 slot;
  guint arena;
} TinyScheduleBuffer;

typedef enum { TINY_SCHEDULE_KERNEL, TINY_SCHEDULE_COPY } TinyScheduleItemKind;

/* One kernel, or a copy of buffers[1] to buffers[0] between devices. */
typedef struct {
  TinyScheduleItemKind kind;
  TinyNode *kernel;   /* SINK in the schedule's graph; PARAM slot i is buffers[i] */
  const char *device; /* that runs it; of a copy: the destination's */
  guint n_buffers;
  guint *buffers; /* indices in TinySchedule.buffers; those written come first */
  guint n_written;
  gboolean
      is_part; /* with another item that writes the same: neither is of use without the other */
  guint n_variables;
  guint *variables; /* VARIABLE i of the kernel is number variables[i] of the graph */
  guint n_numbers;
  gint64 *numbers; /* VARIABLE n_variables + i of the kernel is numbers[i] in this launch */
  TinyOperation
      *operation; /* that a unit of the device computes instead of the kernel, or NULL */
} TinyScheduleItem;

typedef struct {
  const char *device;
  gint64 n_bytes;
} TinyScheduleArena;

/* A root that is on several devices: an output for each. */
typedef struct {
  guint first, n;      /* of the outputs */
  gint64 axis;         /* along which they are the whole; or TINY_SHARD_WHOLE: each is */
  const char *devices; /* of an UNSHARD; NULL: an output like others */
} TinySpread;

typedef struct {
  TinyGraph *graph;
  guint n_items, n_buffers, n_inputs, n_outputs, n_arenas;
  TinyScheduleItem *items; /* in the order to run them */
  TinyScheduleBuffer *buffers;
  TinyScheduleArena
      *arenas;         /* of a device that needs temporaries as many as its limit asks for */
  guint *outputs;      /* root i is in buffers[outputs[i]], row-major */
  TinySpread *spreads; /* of each root, where any is on several devices; else NULL */
  GArray *log;         /* where constants were unknown: what they might refuse; else NULL */
  char *explanation;   /* with TINY_EXPLAIN: why kernels are apart; else NULL */
} TinySchedule;

/* Takes @graph (and frees it in any case). @sink is SINK(roots…) of a normalised tensor graph: its
 * leaves are CONST, IOTA and PARAM; a root is a value or ASSIGN(PARAM, value), whose output is
 * that input's buffer. A root may be on several devices (UNSHARD, ir/tiny-shard.h), ASSIGN to an UNSHARD of PARAMs
 * as well: it has an output for each. The sink's text names the device of what no leaf places. Reads of a PARAM see
 * the value before any ASSIGN to it.
 *
 * Errors: %TINY_ERROR_INVALID for a graph that cannot be scheduled (mixed devices without COPY). */
TinySchedule *tiny_schedule_new (TinyGraph *graph, TinyNode *sink, GError **error);

/* What a schedule is made for. */
typedef struct {
  /* What the device of that name can do, or NULL; the same in every call. @device may be NULL: what
   * nothing places. The width of its vectors, its caches and threads count. */
  const TinyTarget *(*find_target) (const char *device, gpointer data);
  /* The most bytes that @device has in one piece, or 0; the same in every call. NULL: there is no limit. */
  guint64 (*find_limit) (const char *device, gpointer data);
  gpointer data;
  /* By slot, or NULL: inputs that stay as they are from run to run. What reads nothing else is kept
   * apart, as those who run it again and again need not run it again. */
  const gboolean *constants;
  /* Whether a unit of @device is to compute @operation, which as a kernel would take about @own_ns;
   * the same in every call. @operation NULL: whether it has units at all. NULL: no device has. */
  gboolean (*claim) (const char *device,
                     const TinyOperation *operation,
                     double own_ns,
                     gpointer data);
} TinyScheduleOptions;

/* As above; @options may be NULL. */
TinySchedule *tiny_schedule_new_with (TinyGraph *graph,
                                      TinyNode *sink,
                                      const TinyScheduleOptions *options,
                                      GError **error);
void tiny_schedule_free (TinySchedule *self);

/* TRUE if @self, which was made without constants, is what would be made for these. */
gboolean tiny_schedule_serves (const TinySchedule *self, const gboolean *constants);

/* Makes one kernel of those that differ in the places that they read and write, or in whole numbers that they add or
 * compare: such as the steps of a recurrence. What differs is in the items' @numbers. */
void tiny_schedule_join_series (TinySchedule *self);

/* The buffers and items, one a line with each kernel's expression below it; free with g_free(). */
char *tiny_schedule_to_string (const TinySchedule *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinySchedule, tiny_schedule_free)

G_END_DECLS
