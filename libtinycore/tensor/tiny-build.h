/* SPDX-License-Identifier: MIT
 *
 * tiny-build.h: the frame every tensor operation runs in, and checked building of nodes.
 *
 * An operation begins with tiny_build_begin(), which takes the runtime's lock, sinks its
 * arguments, meets the first of their errors and finds their nodes; it builds with the functions
 * below and ends with tiny_build_end(), which wraps the result and lets go of everything.
 * Every function here gives NULL where an earlier step failed, so a chain needs no checks; the
 * first failure is what the resulting tensor carries. */
#pragma once

#include "ir/tiny-node.h"
#include "tensor/tiny-default-float.h"
#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

enum { TINY_MAX_RANK = 16 /* of a tensor; nodes may have more axes while building */ };

typedef struct {
  const char *name; /* the operation, starts every message */
  TinyGraph *graph;
  guint n;
  TinyTensor **tensors;
  TinyNode **x;            /* the node of each argument */
  const char *device;      /* where they are; NULL: anywhere */
  TinyDType narrow;        /* what tiny_build_widen() widened; VOID: nothing */
  gboolean is_locked;      /* else it was stopped before it began, and touches nothing */
  gboolean is_raised;      /* tiny_build_raise() did */
  gboolean is_weak;        /* made of plain numbers alone: the result is one */
  TinyNode *base, *viewed; /* the first argument and what stands for it, see tiny-view.h */
  GError *error;
  TinyTensor *few_tensors[4];
  TinyNode *few_x[4];
} TinyBuild;

/* Whether building may go on. tiny_build_end() is due in either case. */
gboolean
tiny_build_begin (TinyBuild *self, const char *name, guint n, TinyTensor *const *tensors);
/* The same for a row of the table of operations: the tensors in the bits of @optional may be NULL,
 * and are as nodes; the others become what the operation @takes. */
typedef enum {
  TINY_TAKES_ANY,
  TINY_TAKES_NUMBER,   /* bool becomes i32 */
  TINY_TAKES_FLOAT,    /* the floats' dtype, the default float when none is one */
  TINY_TAKES_INTEGRAL, /* floats are an error */
  TINY_TAKES_INTEGER,  /* floats and bool are */
  TINY_TAKES_SYMBOLIC
  = 0x100, /* besides: axes whose size is a variable; to others these are an error */
  TINY_TAKES_WEAK = 0x200, /* besides: of plain numbers alone the result is one */
  TINY_TAKES_GATE
  = 0x400, /* << i: argument i is a condition, whose dtype plain numbers do not take */
} TinyTakes;
gboolean tiny_build_begin_some (TinyBuild *self,
                                const char *name,
                                guint n,
                                TinyTensor *const *tensors,
                                guint optional,
                                TinyTakes takes);
/* f16, bf16 and 8-bit floats become f32 where no wider float is among them; results of f32 are rounded back. */
gboolean tiny_build_widen (TinyBuild *self);
/* Floats of 32 bits and less become what tiny_set_autocast() says where @is_narrow, else f32; outside of it they stay. */
gboolean tiny_build_autocast (TinyBuild *self, gboolean is_narrow);
/* (transfer floating): of @node, or of the error when it is NULL. */
TinyTensor *tiny_build_end (TinyBuild *self, TinyNode *node);
/* (transfer full): @n results, or so many tensors with the error. A NULL among @results is not wanted. */
void tiny_build_end_many (TinyBuild *self,
                          guint n,
                          TinyNode *const *nodes,
                          TinyTensor **const *results);
/* (transfer full): a list of any length; of one tensor with the error. */
GPtrArray *tiny_build_end_list (TinyBuild *self, GPtrArray *nodes);
/* Sets the error unless there is one; returns NULL. */
TinyNode *tiny_build_fail (TinyBuild *self, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* @x, through which no gradient flows. */
TinyNode *tiny_build_detach (TinyBuild *self, TinyNode *x);

/* ---- checks ---- */
/* That a list of tensors is not empty. */
gboolean tiny_build_check_any (TinyBuild *self);
/* That a list of numbers is there when @n is not 0. */
gboolean tiny_build_check_list (TinyBuild *self, const char *name, gconstpointer list, guint n);
/* That a method does not give more results than a program can want. */
gboolean tiny_build_check_n_results (TinyBuild *self, gint64 n);
/* -1 is the last axis. */
gboolean tiny_build_axis (TinyBuild *self, TinyNode *x, gint axis, guint *out_axis);
/* What has no axes, all of it, becomes lines of one element for an operation along @axis, if that is one of those; TRUE. */
gboolean tiny_build_raise (TinyBuild *self, gint axis);
/* A result of such lines without its axis. */
TinyNode *tiny_build_lower (TinyBuild *self, TinyNode *node);
/* Distinct normalised axes, none where @x has none and the axis is that of a line of one; all of them when @n is 0 and @axes is NULL. */
gboolean tiny_build_axes (
    TinyBuild *self, TinyNode *x, const gint *axes, guint n, gint64 *out_axes, guint *out_n);
/* As tiny_build_axis(); TINY_NO_AXIS makes a vector of @x. */
gboolean tiny_build_one_axis (TinyBuild *self, TinyNode **x, gint axis, guint *out_axis);
/* @x, of one element, with the rank of @tensor; @x itself when that is NULL. */
TinyNode *tiny_build_keep_all (TinyBuild *self, TinyNode *x, TinyTensor *tensor);
/* Which of @words, separated by |, @word is. */
gboolean
tiny_build_word (TinyBuild *self, const char *word, const char *words, guint *out_which);
/* Sizes at least 0 whose product is small enough. */
gboolean tiny_build_check_shape (TinyBuild *self, const gint64 *shape, guint n);
gboolean tiny_build_check_dtype (TinyBuild *self, TinyDType dtype);
/* FALSE: @x is no integer without axes. Else its least and largest value where it is calculated from numbers and
 * variables alone; lo > hi where it is data. A plain number among floats has become one of those, and counts. */
gboolean tiny_build_get_bounds (TinyBuild *self, TinyNode *x, gint64 *out_lo, gint64 *out_hi);

/* ---- values ---- */
/* The smallest dtype that both go into. */
TinyDType tiny_dtype_promote (TinyDType a, TinyDType b);
TinyNode *tiny_build_number (TinyBuild *self, TinyDType dtype, double value);
/* A constant of @like's dtype. */
TinyNode *tiny_build_like (TinyBuild *self, TinyNode *like, double value);
/* 0 1 … n-1 as a vector. */
TinyNode *tiny_build_iota (TinyBuild *self, TinyDType dtype, gint64 n);

/* ---- elementwise; shapes broadcast, dtypes promote ---- */
TinyNode *tiny_build_cast (TinyBuild *self, TinyNode *x, TinyDType dtype);
/* Makes them what an operation takes; absent ones stay. */
gboolean tiny_build_take (TinyBuild *self, TinyTakes takes, guint n, TinyNode **x);
/* Bool as i32. */
TinyNode *tiny_build_numeric (TinyBuild *self, TinyNode *x);
/* Integers and bool as the default float. */
TinyNode *tiny_build_float (TinyBuild *self, TinyNode *x);
TinyNode *tiny_build_unary (TinyBuild *self, TinyOp op, TinyNode *x);
TinyNode *tiny_build_binary (TinyBuild *self, TinyOp op, TinyNode *x, TinyNode *y);
/* @value, whose derivative by @x is @slope; of floats. */
TinyNode *tiny_build_sloped (TinyBuild *self, TinyNode *value, TinyNode *x, TinyNode *slope);
/* @value, a number in which nothing of @x is, as that is empty: what @x was made of gets zeros as its gradient. */
TinyNode *tiny_build_beside (TinyBuild *self, TinyNode *value, TinyNode *x);
/* c[0] + x (c[1] + x (c[2] + …)), of @wide in f64 and of @narrow otherwise. */
TinyNode *tiny_build_polynomial (TinyBuild *self,
                                 TinyNode *x,
                                 const double *narrow,
                                 guint n_narrow,
                                 const double *wide,
                                 guint n_wide);
/* e to the power @x in one step, good where @x is no larger than a few: a large one loses |x| / 2^24. */
TinyNode *tiny_build_exp (TinyBuild *self, TinyNode *x);
TinyNode *tiny_build_where (TinyBuild *self, TinyNode *gate, TinyNode *x, TinyNode *y);
TinyNode *tiny_build_not (TinyBuild *self, TinyNode *x);
static inline TinyNode *
tiny_build_add (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  return tiny_build_binary (self, TINY_OP_ADD, x, y);
}
static inline TinyNode *
tiny_build_sub (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  return tiny_build_binary (self, TINY_OP_SUB, x, y);
}
static inline TinyNode *
tiny_build_mul (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  return tiny_build_binary (self, TINY_OP_MUL, x, y);
}
/* As floats: of integers the default one. */
TinyNode *tiny_build_div (TinyBuild *self, TinyNode *x, TinyNode *y);

/* ---- sizes that are variables (ir/tiny-limit.h) ---- */
/* That the size of @axis is no variable. */
gboolean tiny_build_check_number (TinyBuild *self, const TinyNode *x, guint axis);
/* For tiny_build_begin() and tiny_build_end(): that no argument has such an axis; that this is said in the error
 * where one has; and that @node has elements then, as one without has lost which of its sizes are variables. */
void tiny_build_refuse_symbolic (TinyBuild *self);
void tiny_build_explain_symbolic (TinyBuild *self);
void tiny_build_check_left (TinyBuild *self, const TinyNode *node);

static inline TinyNode *
tiny_build_add_number (TinyBuild *self, TinyNode *x, double number)
{
  return tiny_build_add (self, x, tiny_build_like (self, x, number));
}
static inline TinyNode *
tiny_build_mul_number (TinyBuild *self, TinyNode *x, double number)
{
  return tiny_build_mul (self, x, tiny_build_like (self, x, number));
}
static inline TinyNode *
tiny_build_less (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  return tiny_build_binary (self, TINY_OP_CMPLT, x, y);
}
/* By an order-reversing map that is its own inverse: negation, of integers reversal of the bits. */
TinyNode *tiny_build_reversed (TinyBuild *self, TinyNode *x);
/* What is below every other number of @x's dtype. */
double tiny_build_get_lowest (const TinyNode *x);
/* @x in memory, where it is not: what is read more than once is not computed for each. */
TinyNode *tiny_build_store (TinyBuild *self, TinyNode *x);
/* Likewise, and so are its gradients of any order, by a rule of autograd/custom-rules.c. */
enum { TINY_RULE_STORED = 1 };
TinyNode *tiny_build_store_gradients (TinyBuild *self, TinyNode *x);
gboolean tiny_build_is_empty (const TinyNode *x);

/* ---- movement ---- */
TinyNode *tiny_build_reshape (TinyBuild *self, TinyNode *x, const gint64 *dims, guint n);
TinyNode *tiny_build_permute (TinyBuild *self, TinyNode *x, const gint64 *axes, guint n);
/* Broadcasts, numpy's way. */
TinyNode *tiny_build_expand (TinyBuild *self, TinyNode *x, const gint64 *dims, guint n);
TinyNode *tiny_build_pad (TinyBuild *self, TinyNode *x, const gint64 *pairs, double value);
TinyNode *tiny_build_shrink (TinyBuild *self, TinyNode *x, const gint64 *pairs);
TinyNode *tiny_build_unsqueeze (TinyBuild *self, TinyNode *x, guint axis);
TinyNode *tiny_build_squeeze (TinyBuild *self, TinyNode *x, const gint64 *axes, guint n);
TinyNode *tiny_build_transpose (TinyBuild *self, TinyNode *x, guint a, guint b);
/* The part of @x along @axis at @start, @start + @step, … (@n of them). */
TinyNode *tiny_build_slice (
    TinyBuild *self, TinyNode *x, guint axis, gint64 start, gint64 step, gint64 n);
/* What start:stop:step of Python takes of an axis of @size: @start inside and how many. */
gboolean tiny_build_slice_bounds (
    TinyBuild *self, gint64 size, gint64 *start, gint64 stop, gint64 step, gint64 *out_n);
TinyNode *tiny_build_cat (TinyBuild *self, TinyNode *const *x, guint n, guint axis);

/* ---- reductions; @axes are normalised, and are left as size 1 ---- */
TinyNode *
tiny_build_reduce (TinyBuild *self, TinyOp op, TinyNode *x, const gint64 *axes, guint n);
/* What narrow integers are added up in. */
TinyDType tiny_build_sum_dtype (TinyDType dtype);
/* With the dtype of accumulation that sums have: at least 32 bits for integers. */
TinyNode *tiny_build_sum (TinyBuild *self, TinyNode *x, const gint64 *axes, guint n);
TinyNode *tiny_build_mean (TinyBuild *self, TinyNode *x, const gint64 *axes, guint n);
/* The square root, whose gradient at 0 is 0. */
TinyNode *tiny_build_root (TinyBuild *self, TinyNode *x);
/* The mean of the squared distances to @mean; the sum is divided by the count less @correction. */
TinyNode *tiny_build_var (TinyBuild *self,
                          TinyNode *x,
                          TinyNode *mean,
                          const gint64 *axes,
                          guint n,
                          gint64 correction);
gint64 tiny_build_count (TinyNode *x, const gint64 *axes, guint n);

/* ---- products and networks ---- */
TinyNode *tiny_build_matmul (TinyBuild *self, TinyNode *x, TinyNode *y);
TinyNode *tiny_build_log_softmax (TinyBuild *self, TinyNode *x, guint axis);
/* TRUE where @labels (integers) equals the position along a new last axis of @n. */
TinyNode *tiny_build_one_hot (TinyBuild *self, TinyNode *labels, gint64 n);

G_END_DECLS
