/* SPDX-License-Identifier: MIT
 *
 * evaluate.h: two ways to know what a tensor graph means, for the tests of the scheduler.
 *
 * evaluate_graph() computes each tensor node in full from the definition of its op;
 * evaluate_schedule() runs a schedule's kernels by walking their expressions for every value of
 * their loops, and checks that an operation, where one stands for a kernel, gives the same. Floats are doubles,
 * everything else is 64-bit integers wrapped to the dtype. */
#pragma once

#include "schedule/tiny-schedule.h"

/* An element; which member holds depends on the dtype. */
typedef union {
  double f;
  gint64 i;
} Element;

typedef struct {
  TinyDType dtype;
  gint64 n;
  Element *v;
} Array;

Array *array_new (TinyDType dtype, gint64 n);
void array_free (Array *self);

/* The value of an elementwise op of @dtype over @x, which are of dtype @from. */
Element element_compute (TinyOp op, TinyDType dtype, TinyDType from, const Element *x);
/* Of a CONST. */
Element element_get_const (const TinyNode *node);
/* What a REDUCE with @op begins with. */
Element element_get_identity (TinyOp op, TinyDType dtype);

/* @inputs by slot. Returns the values of the roots; an ASSIGN's is its value. */
GPtrArray *evaluate_graph (TinyGraph *graph, TinyNode *sink, GPtrArray *inputs);

/* Runs @schedule on copies of @inputs. Returns the outputs; fails the test when a kernel reads or
 * writes outside its buffers or temporaries overlap in time. */
GPtrArray *evaluate_schedule (TinySchedule *schedule, GPtrArray *inputs);

/* The output of @operation over @slots, by plain loops over its axes, as tiny-plugin.h defines it; fails the
 * test when it names memory outside of its buffers, or does not write all of its output. */
Array *evaluate_operation (const TinyOperation *operation, Array *const *slots);

/* Fails the test unless every kernel is legal. */
void verify_schedule (TinySchedule *schedule);

gboolean arrays_equal (const Array *a, const Array *b, char **out_difference);
