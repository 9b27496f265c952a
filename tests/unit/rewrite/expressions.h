/* SPDX-License-Identifier: MIT
 *
 * expressions.h: random expressions and their values, for the proofs of rules. */
#pragma once

#include "ir/tiny-node.h"

enum { MAX_LANES = 4, N_RANGES = 5, PARAM_SIZE = 64 };

/* What goes into expressions of one instance. */
typedef struct {
  TinyGraph *graph;
  GRand *random;
  TinyNode *ranges[N_RANGES];
  guint n_variables;
  gboolean exact;  /* floats that add up exactly in any order */
  gboolean affine; /* INDEX leaves: ranges only */
} Maker;

void maker_init (Maker *self, TinyGraph *graph, GRand *random);
gint64 random_bits (Maker *self, TinyDType dtype);
TinyNode *random_const (Maker *self, TinyDType dtype, guint lanes);
TinyNode *random_index (Maker *self, guint lanes, guint depth);
TinyNode *random_bool (Maker *self, guint lanes, guint depth);
TinyNode *random_leaf (Maker *self, TinyDType dtype, guint lanes);
/* Any small expression of that dtype. */
TinyNode *random_expression (Maker *self, TinyDType dtype, guint lanes);

/* The value of a node, lane by lane; lanes that are not ok have no specified value. */
typedef struct {
  gint64 v[MAX_LANES];
  gboolean ok[MAX_LANES];
} Value;

/* Values of RANGEs and VARIABLEs by node id; missing ones are drawn. */
typedef struct {
  GRand *random;
  guint64 salt; /* of memory */
  GHashTable *leaves;
  gboolean exact;
} Assignment;

Value evaluate (Assignment *self, TinyNode *node);
void assignment_init (Assignment *self, GRand *random);
void assignment_clear (Assignment *self);
