/* SPDX-License-Identifier: MIT
 *
 * trial-message.h: what a search and the process that runs its programs say to each other. Both are of
 * one build on one machine, so structs go as they are. */
#pragma once

#include <glib.h>

enum { TRIAL_MAX_REQUEST = 1 << 30 }; /* bytes of a payload */

typedef enum {
  TRIAL_OPEN, /* payload: TrialOpen, TinyParam × n_params, texts; answer: the target's arch */
  TRIAL_ADD,  /* payload: TinyCodeHead, binary */
  TRIAL_RUN,  /* answer, as of the next two: ns */
  TRIAL_RUN_WARM,
  TRIAL_TIME,
  TRIAL_RESET,
  TRIAL_KEEP,
  TRIAL_COMPARE, /* answer: TRIAL_DIFFERS with where */
} TrialVerb;

typedef struct {
  guint32 verb, id, slice, n_payload;
  guint64 first_ns, best_ns; /* of TRIAL_TIME */
  guint32 seconds; /* after which the process ends itself, should nobody be there to do it */
} TrialRequest;

typedef struct {
  char version[32];         /* of the program's core, first in each version's */
  guint32 n_params, n_name; /* of the device's name with its NUL; the kernel's text follows */
} TrialOpen;

typedef enum { TRIAL_GOOD, TRIAL_FAILED, TRIAL_DIFFERS } TrialStatus;

typedef struct {
  guint32 status, code; /* of TinyError */
  guint32 n_payload;    /* text, with its NUL, or 0 */
  guint64 ns;
} TrialAnswer;
