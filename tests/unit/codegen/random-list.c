/* SPDX-License-Identifier: MIT
 *
 * random-list.c: lists of optimisations as somebody may write them. */
#include "random-list.h"

static gint64
draw_amount (GRand *rand)
{
  static const gint64 likely[] = { 0, 1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 12, 16, 32, 64, 127, 128 };
  static const gint64 wild[] = { -1,
                                 G_MININT64,
                                 255,
                                 256,
                                 1024,
                                 65536,
                                 G_MAXINT32,
                                 G_MAXUINT32,
                                 G_GINT64_CONSTANT (1) << 32,
                                 G_GINT64_CONSTANT (1) << 62,
                                 G_MAXINT64 };
  return g_rand_int_range (rand, 0, 8) > 0
             ? likely[g_rand_int_range (rand, 0, G_N_ELEMENTS (likely))]
             : wild[g_rand_int_range (rand, 0, G_N_ELEMENTS (wild))];
}

static TinyOpt
draw_opt (GRand *rand)
{
  static const TinyOptKind copying[] = { TINY_OPT_UPCAST, TINY_OPT_UNROLL, TINY_OPT_LANES };
  const gboolean copies = g_rand_int_range (rand, 0, 3) == 0;
  TinyOpt opt = { copies ? copying[g_rand_int_range (rand, 0, 3)]
                         : (TinyOptKind) g_rand_int_range (rand, 0, TINY_N_OPTS),
                  (guint) g_rand_int_range (rand, 0, 5), draw_amount (rand) };
  if ((opt.kind == TINY_OPT_SWAP || opt.kind == TINY_OPT_STAGE) && g_rand_boolean (rand))
    opt.amount = g_rand_int_range (rand, 0, 4);
  if (opt.kind == TINY_OPT_MERGE && g_rand_boolean (rand))
    opt.amount = (gint64) opt.axis + 1;
  if (g_rand_int_range (rand, 0, 100) == 0)
    opt.axis = (guint) g_rand_int_range (rand, 0, 65536);
  return opt;
}

char *
random_list_draw (GRand *rand, TinyOptSpace *space)
{
  const guint most = g_rand_int_range (rand, 0, 20) == 0 ? 300 : 24;
  GString *list = g_string_new (NULL);
  for (guint n = 1 + (guint) g_rand_int_range (rand, 0, (gint) most); n > 0; n--) {
    const TinyOpt opt = draw_opt (rand);
    g_autofree char *text = tiny_opts_to_string (&opt, 1);
    const gsize before = list->len;
    g_string_append_printf (list, " %s", text);
    if (space != NULL && !tiny_opt_space_check (space, list->str, NULL))
      g_string_truncate (list, before);
  }
  return g_string_free (list, FALSE);
}
