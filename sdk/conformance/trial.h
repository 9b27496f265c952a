/* SPDX-License-Identifier: MIT
 *
 * trial.h: the two things that conformance.h leaves opaque, for those who make and read them. */
#pragma once

#include <json-glib/json-glib.h>

#include "conformance.h"

G_BEGIN_DECLS

/* ---- lists ---- */
typedef struct {
  char *name; /* "group/name" */
  const ConfGroup *group;
  ConfCase self; /* its name is the part after the slash */
} ConfListed;

typedef struct {
  char *name, *reason;
} ConfAbsent;

struct _ConfList {
  const ConfGroup *group; /* that is asked now */
  GPtrArray *cases;       /* of ConfListed */
  GPtrArray *absent;      /* of ConfAbsent */
  GHashTable *by_name;    /* of the cases */
  char *mistake;          /* of a group, such as a name that is there twice, or NULL */
};

/* Asks every group. */
ConfList *conf_list_new (const ConfSubject *subject);
void conf_list_free (ConfList *self);
const ConfListed *conf_list_find (const ConfList *self, const char *name);

/* ---- trials ---- */

/* Runs a case and gives what came of it, as a worker sends it: an object with "name", "outcome"
 * ("passed", "failed"; "recorded" of one that only measures, with messages where it could not), "us", and where there are any "messages", "records", "errors",
 * "files". */
JsonNode *conf_trial_run (const ConfListed *listed, const ConfSubject *subject);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (ConfList, conf_list_free)

G_END_DECLS
