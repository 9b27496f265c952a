/* SPDX-License-Identifier: MIT
 *
 * tiny-recurrent-layers.h: layers that go along a sequence, and one step of them. */
#pragma once

#include "nn/tiny-module.h"

G_BEGIN_DECLS

/**
 * tiny_lstm_new:
 * @n_in: features of the input
 * @n_hidden: features of the state
 * @n_layers: layers, each on the results of the one before
 * @bias: whether there are biases
 * @batch_first: whether inputs are (B, T, I) instead of (T, B, I)
 * @dropout: the part of the results that is dropped between layers in training mode
 * @bidirectional: whether a second one goes from the end to the beginning
 * @n_projected: features of h, fewer than @n_hidden, or 0: as many
 *
 * Long short-term memory (Hochreiter and Schmidhuber 1997): for each time i, f, g and o are the
 * quarters of x @ weight_ihᵀ + bias_ih + h @ weight_hhᵀ + bias_hh, c = σ(f) c + σ(i) tanh (g) and
 * h = σ(o) tanh (c), times weight_hrᵀ where @n_projected is not 0 (Sak et al. 2014).
 *
 * tiny_module_call() takes x, or x, h and c with the states at the start (L·D, B, H), zeros if not given; it gives
 * y (T, B, D·H), h and c at the end, where D is 2 if @bidirectional. Inputs may lack the axis B. After the states it takes
 * the lengths of sequences, integers (B): a shorter one ends, and the second direction begins, at its own end, behind
 * which y is 0. Tensors are
 * "weight_ih_l0" (4H, I), "weight_hh_l0" (4H, H), "bias_ih_l0" and "bias_hh_l0" (4H), with "_reverse" for
 * the second direction, uniform over ±1 / sqrt (H). Where h has P features it is H that is P in what h and y are, in
 * "weight_hh_l0" (4H, P) and in D·H; "weight_hr_l0" is (P, H).
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_lstm_new (gint64 n_in,
                                    gint64 n_hidden,
                                    guint n_layers,
                                    gboolean bias,
                                    gboolean batch_first,
                                    double dropout,
                                    gboolean bidirectional,
                                    gint64 n_projected);

/**
 * tiny_gru_new:
 * @n_in: features of the input
 * @n_hidden: features of the state
 * @n_layers: layers, each on the results of the one before
 * @bias: whether there are biases
 * @batch_first: whether inputs are (B, T, I) instead of (T, B, I)
 * @dropout: the part of the results that is dropped between layers in training mode
 * @bidirectional: whether a second one goes from the end to the beginning
 *
 * Gated recurrent units (Cho et al. 2014) in PyTorch's form: r, z = σ of the first thirds of
 * x @ weight_ihᵀ + bias_ih and h @ weight_hhᵀ + bias_hh added, n = tanh of the input's last third plus r times the
 * state's, h = (1 - z) n + z h.
 *
 * tiny_module_call() takes x, or x and h; it gives y and h. Shapes and names are those of
 * tiny_lstm_new(), with 3H for 4H.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_gru_new (gint64 n_in,
                                   gint64 n_hidden,
                                   guint n_layers,
                                   gboolean bias,
                                   gboolean batch_first,
                                   double dropout,
                                   gboolean bidirectional);

/**
 * tiny_rnn_new:
 * @n_in: features of the input
 * @n_hidden: features of the state
 * @n_layers: layers, each on the results of the one before
 * @nonlinearity: tanh or relu
 * @bias: whether there are biases
 * @batch_first: whether inputs are (B, T, I) instead of (T, B, I)
 * @dropout: the part of the results that is dropped between layers in training mode
 * @bidirectional: whether a second one goes from the end to the beginning
 *
 * Plain recurrence (Elman 1990): h = tanh or relu of x @ weight_ihᵀ + bias_ih + h @ weight_hhᵀ + bias_hh.
 *
 * tiny_module_call() takes x, or x and h; it gives y and h. Shapes and names are those of
 * tiny_lstm_new(), with H for 4H.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_rnn_new (gint64 n_in,
                                   gint64 n_hidden,
                                   guint n_layers,
                                   const char *nonlinearity,
                                   gboolean bias,
                                   gboolean batch_first,
                                   double dropout,
                                   gboolean bidirectional);

/**
 * tiny_lstm_cell_new:
 * @n_in: features of the input
 * @n_hidden: features of the state
 * @bias: whether there are biases
 *
 * One time of tiny_lstm_new(): tiny_module_call() takes x (B, I), or x, h and c (B, H), and gives h and c. Tensors
 * are "weight_ih", "weight_hh", "bias_ih" and "bias_hh".
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_lstm_cell_new (gint64 n_in, gint64 n_hidden, gboolean bias);

/**
 * tiny_gru_cell_new:
 * @n_in: features of the input
 * @n_hidden: features of the state
 * @bias: whether there are biases
 *
 * One time of tiny_gru_new(): tiny_module_call() takes x (B, I), or x and h (B, H), and gives h.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_gru_cell_new (gint64 n_in, gint64 n_hidden, gboolean bias);

/**
 * tiny_rnn_cell_new:
 * @n_in: features of the input
 * @n_hidden: features of the state
 * @bias: whether there are biases
 * @nonlinearity: tanh or relu
 *
 * One time of tiny_rnn_new(): tiny_module_call() takes x (B, I), or x and h (B, H), and gives h.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *
tiny_rnn_cell_new (gint64 n_in, gint64 n_hidden, gboolean bias, const char *nonlinearity);

G_END_DECLS
