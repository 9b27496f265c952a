/* SPDX-License-Identifier: MIT
 *
 * tiny-rule-text.h: the parsed form of a rule's two sides; private to the engine and its tests. */
#pragma once

#include "rewrite/tiny-rules.h"

G_BEGIN_DECLS

enum { TINY_RULE_MAX_PARTS = 24, TINY_RULE_MAX_SOURCES = 4 };

typedef enum {
  TINY_PART_VAR,     /* binds or compares var */
  TINY_PART_CONST,   /* the same, and it is a CONST */
  TINY_PART_LITERAL, /* a CONST of that value */
  TINY_PART_COMPUTE, /* only in results: + - * / % m M of two parts */
  TINY_PART_OP
} TinyPartKind;

typedef struct {
  guint8 kind; /* TinyPartKind */
  guint8 op;   /* TinyOp, TINY_N_OPS: any elementwise; or the operator of COMPUTE */
  gint8 var;   /* 0 to 25, or -1 */
  guint8 n_sources;
  guint8 sources[TINY_RULE_MAX_SOURCES]; /* numbers of parts */
  gboolean open;                         /* any further sources */
  gboolean is_float;                     /* of LITERAL: the bits of a double */
  gint64 value;                          /* of LITERAL */
  int arg;                               /* of OP: the node's arg, or -1: any */
  guint32 dtypes;                        /* mask; of the operands on comparisons */
  gint8 type_var; /* in results, of OP: what its operands' dtype follows from, or -1 */
} TinyPart;

/* Part 0 is the root. */
typedef struct {
  guint n;
  TinyPart parts[TINY_RULE_MAX_PARTS];
} TinyPattern;

/* NULL, or what is wrong with @text (free with g_free()). */
char *tiny_pattern_parse (const char *text, gboolean is_result, TinyPattern *out);
/* The dtypes of a class name, 0 when there is none of that name. */
guint32 tiny_dtype_class_from_string (const char *text, gsize length);

G_END_DECLS
