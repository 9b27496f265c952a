/* SPDX-License-Identifier: MIT
 *
 * function-call.h: calling a TinyFunction with placeholders in place of its inputs.
 *
 * A placeholder is a PARAM of the runtime's graph whose slot no other has. What the function gives
 * is then a graph over placeholders, which a transform rewrites; afterwards none is left. Each call
 * goes: begin, add arguments, run, read results, end. */
#pragma once

#include "autograd/tiny-function.h"
#include "ir/tiny-node.h"

G_BEGIN_DECLS

typedef struct FunctionCall {
  const char *name;  /* of the transform, begins every message */
  GPtrArray *inputs; /* TinyTensor: what the caller gave */
  GPtrArray
      *arguments; /* TinyTensor: what the function gets for them, and may change in place */
  GPtrArray *placeholders;    /* TinyTensor: what they were when it got them */
  GPtrArray *outputs;         /* TinyTensor: what it gave; NULL before it ran */
  gint64 first_slot;          /* of this call's placeholders … */
  guint n_slots;              /* … and how many */
  struct FunctionCall *outer; /* the one of this thread that this one happens in */
  GError *error;
} FunctionCall;

/* Takes references of @inputs, and meets the first of their errors. Returns whether to go on;
 * function_call_end() is due in either case. */
gboolean function_call_begin (FunctionCall *self,
                              const char *name,
                              TinyFunction function,
                              TinyTensor *const *inputs,
                              guint n);
/* The next argument is the next input itself. */
void function_call_pass_input (FunctionCall *self);
/* The next argument stands for the next input or a part of it, of shape @dims. */
void function_call_add_placeholder (FunctionCall *self, const gint64 *dims, guint n);
/* (transfer full): one more placeholder, without axes, which the function does not get; once in a call. */
TinyTensor *function_call_add_hidden (FunctionCall *self, TinyDType dtype);
/* A node like @like that nothing else is. Under the lock. */
TinyNode *function_call_make_placeholder (const TinyNode *like);
/* Runs @function; from here to the end the runtime is locked, and nodes stay where they are. */
gboolean function_call_run (FunctionCall *self, TinyFunction function, gpointer user_data);
/* @results (transfer full), TinyTensors; a list of the error alone when there is one. */
GPtrArray *function_call_end (FunctionCall *self, GPtrArray *results);

/* ---- while the runtime is locked ---- */
/* Sets the error unless there is one; returns FALSE. */
gboolean function_call_fail (FunctionCall *self, const char *format, ...) G_GNUC_PRINTF (2, 3);
TinyNode *function_call_get_input (FunctionCall *self, guint i);
TinyNode *function_call_get_argument (FunctionCall *self, guint i);
TinyNode *function_call_get_output (FunctionCall *self, guint i);
/* Appends a tensor of @node on the device of @like to @results. */
void function_call_add_result (FunctionCall *self,
                               GPtrArray *results,
                               TinyNode *node,
                               TinyTensor *like);
/* Whether input and output, named so, is of a float dtype; sets the error if not. */
gboolean function_call_check_float (FunctionCall *self, const char *what, guint i, TinyNode *x);
/* Whether @x can stand beside @like: same shape and dtype. */
gboolean function_call_check_like (
    FunctionCall *self, const char *what, guint i, TinyNode *x, TinyNode *like);
/* Puts the inputs in place of the arguments in each of @nodes. */
void function_call_fill_in (FunctionCall *self, TinyNode **nodes, guint n);

/* ---- for all who take functions ---- */
GPtrArray *tensor_list_new (void);
/* A list of one tensor, in error state; takes @error. */
GPtrArray *tensor_list_new_for_error (GError *error);
/* Calls @function and checks what it gives. */
GPtrArray *function_call_checked (const char *name,
                                  TinyFunction function,
                                  gpointer user_data,
                                  TinyTensor *const *inputs,
                                  guint n,
                                  GError **error);
/* Makes a list of what a callback returned with @failure; takes both. With @may_lack there may be
 * NULLs in it. */
GPtrArray *tensor_list_check (
    const char *name, GPtrArray *given, gboolean may_lack, GError *failure, GError **error);

G_END_DECLS
