/* SPDX-License-Identifier: MIT
 *
 * chance.h: arguments by chance for the public functions of tensors, most of them wrong.
 *
 * A call's arguments depend on the seed and its number alone. Each is written down before it is used, so that a signal
 * handler can say what a call was. Lists and tensors live until the next call. */
#pragma once

#include <tiny.h>

typedef struct {
  guint64 state;
  const char *name;  /* of the function */
  GString *text;     /* its arguments so far */
  GPtrArray *inputs; /* tensors that every call may take; NULLs among them */
  GPtrArray *made;   /* results of this call and those before it that made its arguments */
  GPtrArray *lists;  /* memory of its arguments */
  gboolean reads;    /* the function reads values while it builds */
  gboolean is_large; /* an argument says that there is more to compute than a test can */
  guint depth;
  void (*about_to_call) (const char *name, const char *arguments);
} Chance;

typedef struct {
  const char *name;
  void (*run) (Chance *c);
  gboolean reads;
} Call;
extern const Call calls[];
extern const guint n_calls;

void chance_init (Chance *c);
void chance_clear (Chance *c);
/* Forgets the last call, and begins number @number of @seed. */
void chance_begin (Chance *c, guint64 seed, guint64 number);
void chance_call (Chance *c, const Call *call);

/* 0 to below @n. */
guint chance_int (Chance *c, guint n);
TinyTensor *chance_tensor (Chance *c);
gint chance_axis (Chance *c);
gint64 chance_size (Chance *c);
double chance_float (Chance *c);
TinyDType chance_dtype (Chance *c);
const char *chance_word (Chance *c, const char *const *words);
/* Lists may be NULL, with any count. */
gint *chance_axes (Chance *c, guint *out_n);
gint64 *chance_sizes (Chance *c, guint *out_n);
double *chance_floats (Chance *c, guint *out_n);
TinyTensor **chance_tensors (Chance *c, guint *out_n);

void chance_about_to_call (Chance *c);
/* Of the results. NULL where one was wanted is a failure. */
void chance_take (Chance *c, gboolean wanted, TinyTensor *tensor);
void chance_take_floating (Chance *c, TinyTensor *tensor);
void chance_take_list (Chance *c, GPtrArray *tensors);
