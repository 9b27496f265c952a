/* SPDX-License-Identifier: MIT
 *
 * things.h: what the functions that are no methods take beside tensors: objects, callbacks, files, memory; by chance.
 *
 * An episode is a few calls that share their objects. It depends on its seed and number alone: the folder that it
 * works in and the library's settings are set anew before it. */
#pragma once

#include "chance.h"

enum { SLOTS = 64 /* more than any list of chance has */ };

extern const Call functions[];
extern const guint n_functions;

void things_init (void);
void things_clear (void);
/* One episode: its calls, each of whose failures it checks. */
void things_run (Chance *c, guint64 seed, guint64 number);

/* ---- arguments ---- */
extern const char *const words_name[],
    *const words_path[], *const words_device[], *const words_pattern[],
                                                    *const words_code[], *const words_setting[];
gpointer chance_thing (Chance *c, GType type); /* NULL and objects of other types among them */
TinyModel *make_model (void);
void forget_things (void);
gpointer chance_things (Chance *c, GType type, guint *out_n);
guint64 chance_count (Chance *c);
guint64 *chance_counts (Chance *c, guint *out_n);
gint chance_enum (Chance *c);
GBytes *chance_bytes (Chance *c);
/* Of texts, or of tensors with a NULL among them. */
GHashTable *chance_table (Chance *c, gboolean of_texts);
gpointer chance_memory (Chance *c, gsize *out_n_bytes);
/* Room for results, of zeros, or NULL. */
gpointer chance_out (Chance *c, gsize n_bytes);
const char *const *chance_words (Chance *c, const char *const *words); /* NULL last */
const char *const *chance_names (Chance *c, guint n);                  /* @n of them */
TinyFunction chance_tiny_function (Chance *c);
TinyBackwardFunction chance_tiny_backward_function (Chance *c);
TinyGradientHook chance_tiny_gradient_hook (Chance *c);
TinyJitFunction chance_tiny_jit_function (Chance *c);
TinyInterruptFunction chance_tiny_interrupt_function (Chance *c);
TinyItemFunction chance_tiny_item_function (Chance *c);
TinyRateFunction chance_tiny_rate_function (Chance *c);
TinyModuleFunction chance_tiny_module_function (Chance *c);
TinyModuleVisitor chance_tiny_module_visitor (Chance *c);
TinyModuleCallback chance_tiny_module_callback (Chance *c);

/* ---- calling ---- */
/* @has_place: the function can say that it failed, so nothing else may. */
void chance_about_to_call_of (Chance *c, gboolean has_place);
/* That there is an error just where it failed; frees it. */
void check_failure (Chance *c, gboolean failed, GError **at_error);
/* Takes them. */
void keep_thing (Chance *c, gpointer thing, gboolean wanted);
void chance_result (Chance *c, gboolean is_floating, TinyTensor *tensor);
void take_list (Chance *c, GPtrArray *tensors);
void take_tiny_tensors (Chance *c, TinyTensor **tensors, guint n);
void take_gptr_arrays (Chance *c, GPtrArray **list, guint n);
void take_ghash_tables (Chance *c, GHashTable **table, guint n);
void take_tiny_idxs (Chance *c, TinyIdx *idx, guint n);
void take_tiny_data_sets (Chance *c, TinyDataSet *set, guint n);
/* What make-functions.py leaves out. */
void call_things (Chance *c);
