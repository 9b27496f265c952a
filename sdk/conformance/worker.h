/* SPDX-License-Identifier: MIT
 *
 * worker.h: a worker, from its outside: a process of our own program that has the plugin. */
#pragma once

#include <json-glib/json-glib.h>
#include <sys/types.h>

#include "base/tiny-memory.h"

G_BEGIN_DECLS

/* What every worker of a run is started with. */
typedef struct {
  char *program;      /* our own file */
  char **environment; /* whole, but TMPDIR */
  const char *folder; /* where each gets one for its temporary files */
  char *device, *path, *id;
  guint64 seed;
} ConfWorkerSetup;

/* What a worker is for. */
typedef enum {
  CONF_WORKER_OPEN,  /* cases, on the opened subject */
  CONF_WORKER_FRESH, /* one case, in a process that has not loaded the plugin */
  CONF_WORKER_CLIMB, /* the ladder */
} ConfWorkerKind;

/* What ended a worker. */
typedef enum {
  CONF_END_NONE,   /* it is still there */
  CONF_END_SIGNAL, /* it crashed */
  CONF_END_EXIT,   /* something in it called exit() */
  CONF_END_TIME,   /* we killed it, it took too long */
  CONF_END_WORDS,  /* we killed it, it said what no worker says */
  CONF_END_MEMORY, /* we killed it, we had no memory for what it said */
} ConfEnd;

typedef struct {
  pid_t pid;
  int socket, said;    /* our ends */
  char *temporary;     /* its folder for temporary files, which goes with it */
  TinyVector received; /* answers */
  GString *said_text;  /* the end of what it wrote to its standard streams */
  gsize n_taken;       /* bytes of @received that were taken */
  gsize n_answer;      /* bytes of the answer that was taken last */
  GError *wrong;       /* what was wrong with its words, or NULL */
  GString *stack;      /* what it said of its end, or NULL */
  ConfEnd end;
  int status; /* of waitpid(), or a signal that it announced */
} ConfWorker;

/* Errors: %TINY_ERROR_IO. */
ConfWorker *conf_worker_new (const ConfWorkerSetup *setup, ConfWorkerKind kind, GError **error);
/* Kills it and whatever it started. */
void conf_worker_free (ConfWorker *self);

gboolean conf_worker_ask (ConfWorker *self, const char *request);
/* Reads what there is. Then conf_worker_take() gives it, line by line, each an answer as answer.h has it. After the
 * worker has ended, and all was taken, @end says why. */
void conf_worker_read (ConfWorker *self);
/* The next answer (transfer full), or NULL where none is complete. */
JsonNode *conf_worker_take (ConfWorker *self);
/* As conf_worker_take() until there is an answer or @timeout_us is over, when the worker is killed. */
JsonNode *conf_worker_wait (ConfWorker *self, gint64 timeout_us);
/* It took too long. */
void conf_worker_stop (ConfWorker *self);
/* An answer was none to what it was asked: “case twice”. */
void conf_worker_refuse (ConfWorker *self, const char *why);

/* What ended it, in words: "crashed with signal 11 (Segmentation fault), saying “…”". */
char *conf_worker_explain (const ConfWorker *self);
/* The end of what it wrote to its standard streams. */
char *conf_worker_quote (const ConfWorker *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (ConfWorker, conf_worker_free)

G_END_DECLS
