/* SPDX-License-Identifier: MIT
 *
 * corpus-examples.c: the programs of docs/quick-start.md and docs/cookbook.md that are in C, whole. */
#include <stdio.h>

#include "replay.h"

#define EXAMPLE(id, name) int example_##id (void);
REPLAY_EXAMPLES
#undef EXAMPLE

typedef struct {
  const char *name;
  int (*main) (void);
} Example;

static const Example examples[] = {
#define EXAMPLE(id, name) { #name, example_##id },
  REPLAY_EXAMPLES
#undef EXAMPLE
};

/* Their output is not looked at. */
static gboolean
run (gconstpointer data, GError **error)
{
  const Example *what = data;
  return freopen ("/dev/null", "w", stdout) != NULL && what->main () == 0;
}

void
replay_add_examples (GArray *cases)
{
  for (guint i = 0; i < G_N_ELEMENTS (examples); i++)
    replay_add (cases, run, &examples[i], "%s", examples[i].name);
}
