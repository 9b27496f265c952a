/* SPDX-License-Identifier: MIT
 *
 * trial-serve.c: the side of a search that runs programs, in a process of its own.
 *
 * It may be ended at any moment, so it keeps nothing that others need. */
#include <string.h>
#include <unistd.h>

#include "base/tiny-descriptor.h"
#include "base/tiny-error.h"
#include "base/tiny-memory.h"
#include "base/tiny-version.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-trial-host.h"
#include "engine/trial-message.h"
#include "ir/tiny-text.h"
#include "plugin/tiny-helper.h"

typedef struct {
  TinyProgram *program;
  guint32 grid[3];
} Program;

typedef struct {
  int socket;
  TinyDevice *device;
  TinyTrial *trial;
  GArray *programs; /* Program, by number - 1; places may be empty */
} Server;

static void
program_clear (gpointer data)
{
  g_clear_object (&((Program *) data)->program);
}

static void
forget (Server *self)
{
  g_array_set_size (self->programs, 0);
  g_clear_pointer (&self->trial, tiny_trial_free);
}

static gboolean
open_trial (Server *self, GBytes *payload, GError **error)
{
  gsize n;
  const guint8 *data = g_bytes_get_data (payload, &n);
  const TrialOpen *head = (const TrialOpen *) data;
  if (n < sizeof *head || strcmp (head->version, tiny_get_version ()) != 0) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_PLUGIN, TINY_HELPER_OTHER_TEXT);
    return FALSE;
  }
  const TinyParam *params = (const TinyParam *) (data + sizeof *head);
  const char *name = (const char *) (params + head->n_params);
  forget (self);
  self->device = tiny_engine_get_device (name, error);
  if (self->device == NULL)
    return FALSE;
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *kernel = tiny_graph_parse (graph, name + head->n_name, error);
  if (kernel != NULL)
    self->trial = tiny_trial_new (self->device, kernel, params, head->n_params, error);
  return self->trial != NULL;
}

static gboolean
add_program (Server *self, guint id, GBytes *payload, GError **error)
{
  TinyCodeHead head;
  memcpy (&head, g_bytes_get_data (payload, NULL), sizeof head);
  g_autoptr (GBytes) binary
      = g_bytes_new_from_bytes (payload, sizeof head, g_bytes_get_size (payload) - sizeof head);
  Program added = { tiny_program_new (self->device, head.name, binary, head.n_params,
                                      head.n_variables, head.group, error),
                    { head.grid[0], head.grid[1], head.grid[2] } };
  if (added.program == NULL)
    return FALSE;
  if (self->programs->len < id)
    g_array_set_size (self->programs, id);
  Program *place = &g_array_index (self->programs, Program, id - 1);
  program_clear (place);
  *place = added;
  return TRUE;
}

static gboolean
run_program (Server *self, const TrialRequest *request, guint64 *out_ns, GError **error)
{
  const Program *program = &g_array_index (self->programs, Program, request->id - 1);
  TinyTrial *trial = self->trial;
  alarm (request->seconds);
  gboolean good
      = request->verb == TRIAL_RUN ? tiny_trial_run (trial, program->program, program->grid,
                                                     request->slice != 0, out_ns, error)
        : request->verb == TRIAL_RUN_WARM
            ? tiny_trial_run_warm (trial, program->program, program->grid, out_ns, error)
            : tiny_trial_time (trial, program->program, program->grid, request->first_ns,
                               request->best_ns, out_ns, error);
  alarm (0);
  return good;
}

/* FALSE without @error: it differs, and @text says where. */
static gboolean
obey (Server *self,
      const TrialRequest *request,
      GBytes *payload,
      guint64 *out_ns,
      char **out_text,
      GError **error)
{
  if (payload == NULL)
    return tiny_memory_fail (request->n_payload, "search: a request", error);
  switch ((TrialVerb) request->verb) {
  case TRIAL_OPEN:
    if (!open_trial (self, payload, error))
      return FALSE;
    *out_text = g_strdup (tiny_device_get_arch (self->device));
    return TRUE;
  case TRIAL_ADD:
    return add_program (self, request->id, payload, error);
  case TRIAL_RUN:
  case TRIAL_RUN_WARM:
  case TRIAL_TIME:
    return run_program (self, request, out_ns, error);
  case TRIAL_RESET:
    return tiny_trial_reset (self->trial, error);
  case TRIAL_KEEP:
    return tiny_trial_keep_outputs (self->trial, error);
  case TRIAL_COMPARE:
    return tiny_trial_compare_outputs (self->trial, out_text, error);
  }
  return FALSE;
}

/* @payload: (nullable): there was no memory for it. */
static gboolean
answer (Server *self, const TrialRequest *request, GBytes *payload)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  guint64 ns = 0;
  gboolean good = obey (self, request, payload, &ns, &text, &error);
  const char *said = error != NULL ? error->message : text;
  const TrialAnswer head = { .status = good            ? TRIAL_GOOD
                                       : error != NULL ? TRIAL_FAILED
                                                       : TRIAL_DIFFERS,
                             .code = error != NULL ? (guint32) error->code : 0,
                             .n_payload = said != NULL ? (guint32) strlen (said) + 1 : 0,
                             .ns = ns };
  return tiny_write_all (self->socket, &head, sizeof head)
         && tiny_write_all (self->socket, said, head.n_payload);
}

static gboolean
skip (int socket, gsize n)
{
  guint8 part[4096];
  gboolean good = TRUE;
  for (; n > 0 && good; n -= MIN (n, sizeof part))
    good = tiny_read_all (socket, part, MIN (n, sizeof part));
  return good;
}

static gboolean
serve (Server *self, const TrialRequest *request)
{
  const gsize n = request->n_payload;
  guint8 *memory = g_try_malloc (n + 1);
  g_autoptr (GBytes) payload = memory != NULL ? g_bytes_new_take (memory, n) : NULL;
  return (memory != NULL ? tiny_read_all (self->socket, memory, n) : skip (self->socket, n))
         && answer (self, request, payload);
}

void
tiny_trial_serve (int socket)
{
  Server self = { .socket = socket, .programs = g_array_new (FALSE, TRUE, sizeof (Program)) };
  g_array_set_clear_func (self.programs, program_clear);
  TrialRequest request;
  while (tiny_read_all (socket, &request, sizeof request)
         && request.n_payload <= TRIAL_MAX_REQUEST && serve (&self, &request))
    ;
  forget (&self);
  g_array_unref (self.programs);
}
