/* SPDX-License-Identifier: MIT
 *
 * lying-worker.h: the worker of worker-serve.c, which lies as TINY_TEST_LIE says. */
#pragma once

/* As many answers as it makes before it lies for good: "SEED" is a number that chooses all of it by chance, a word one of
 * those in lying-worker.c. Does not return. */
void lying_worker_serve (int socket);
