/* SPDX-License-Identifier: MIT
 *
 * claims.h: graphs that are operations, and a device that claims them, for the tests of recognition. */
#pragma once

#include "evaluate.h"

typedef struct {
  TinyGraph *graph;
  GRand *random;
  GPtrArray *inputs;
  GArray *offered;                   /* TinyOperation */
  guint n_accepted, most_activation; /* accepts only so much of an epilogue */
  gboolean takes_bias, takes_all;
  guint without; /* 1 << kind: it has no unit for these */
} Test;

void test_begin (Test *self, guint seed);
void test_end (Test *self);
int claims_pick (Test *self, int n);
TinyNode *claims_add_input (Test *self, TinyDType dtype, const gint64 *dims, guint n);
TinyNode *claims_as_cast (Test *self, TinyNode *x, TinyDType dtype);
TinyNode *claims_add_view (Test *self, TinyDType dtype, const gint64 *dims, guint n);
TinyNode *claims_multiply (Test *self, TinyNode *x, TinyNode *y, TinyDType wide);
TinyNode *claims_number (Test *self, const TinyNode *like, double value);
TinyNode *claims_apply (Test *self, TinyOp op, TinyNode *x, double value);
TinyNode *claims_add_activation (Test *self, TinyNode *x, guint activation);
gboolean
claims_offer (const char *device, const TinyOperation *operation, double own_ns, gpointer data);
TinySchedule *claims_run (Test *self, TinyNode *const *roots, guint n_roots);
const TinyOperation *claims_find_operation (TinySchedule *schedule);
