/* SPDX-License-Identifier: MIT
 *
 * tiny-affine.c: reads strides and offset off a canonical INDEX sum. */
#include "rewrite/tiny-affine.h"

#include "rewrite/tiny-bounds.h"
#include "rewrite/tiny-simplify.h"
#include "rewrite/tiny-sum.h"

gboolean
tiny_affine (TinyGraph *graph, TinyNode *index, TinyAffine *out)
{
  TinySum sum, rest;
  out->n_terms = 0;
  out->offset = 0;
  out->rest = NULL;
  tiny_sum_clear (&sum);
  tiny_sum_clear (&rest);
  if (!tiny_sum_add (&sum, index, 1) || !tiny_sum_normalize (&sum, graph)) {
    out->rest = index;
    return FALSE;
  }
  for (guint i = 0; i < sum.n; i++) {
    TinyTerm t = sum.terms[i];
    if (t.atom->op == TINY_OP_RANGE && out->n_terms < TINY_AFFINE_MAX_TERMS)
      out->terms[out->n_terms++] = (TinyAffineTerm){ t.atom, t.coef };
    else
      tiny_sum_add_term (&rest, t.atom, t.coef);
  }
  out->offset = sum.constant;
  if (rest.n > 0)
    out->rest = tiny_sum_build (&rest, graph, index);
  return rest.n == 0;
}
