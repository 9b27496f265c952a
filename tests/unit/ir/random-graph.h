/* SPDX-License-Identifier: MIT
 *
 * random-graph.h: random legal graphs of every op, for tests. */
#pragma once

#include "ir/tiny-node.h"

/* A SINK over up to @n nodes that tiny_check_node() accepts; the same @rand gives the same graph. */
TinyNode *random_graph (TinyGraph *graph, GRand *rand, guint n);
