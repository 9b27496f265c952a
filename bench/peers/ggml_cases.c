/* SPDX-License-Identifier: MIT
 *
 * ggml_cases.c: milliseconds of a case in ggml: a JSON line. bench/run compiles it against the build
 * that --ggml names.
 *
 * usage: ggml_cases CASE [--runs N] [--output FILE] [--turns]. Threads as in OMP_NUM_THREADS. Shapes in
 * comments are ggml's: the axis that is consecutive in memory comes first. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"

enum {
  MAX_NODES = 8192,
  MAX_WRITTEN = 65536,
  WIDTH = 768,
  HEADS = 12,
  LAYERS = 12,
  VOCABULARY = 50257
};
enum { CONTEXT = 256, PROMPT = 128, NEXT_TOKEN = 11, TOKEN_STRIDE = 37, POSITIONS = 1024 };

typedef struct ggml_tensor Tensor;

/* A case: its tensors' memory, the graph that is timed, and what it gives. */
typedef struct {
  ggml_backend_t backend;
  struct ggml_context *kept, *nodes; /* inputs and weights; what is computed */
  struct ggml_cgraph *graph;
  Tensor *result;
  struct {
    Tensor *tensor;
    char name[48];
    float offset, scale;
  } fills[256];
  int n_fills;
} Case;

static double
now_ms (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double) t.tv_sec * 1e3 + (double) t.tv_nsec * 1e-6;
}

/* ---- numbers that follow from names, as in tools/bench-data.c ---- */

static void
fill (const char *name, float *out, size_t n, float offset, float scale)
{
  uint32_t start = 2166136261u;
  for (; *name != 0; name++)
    start = (start ^ (uint8_t) *name) * 16777619u;
  start *= 40503u;
  for (size_t i = 0; i < n; i++) {
    uint32_t v = (uint32_t) i * 2654435761u + start;
    v ^= v >> 15;
    v *= 2246822519u;
    v ^= v >> 13;
    out[i] = ((float) (v >> 8) * (1.0f / 16777216.0f) - 0.5f) * scale + offset;
  }
}

/* A tensor of numbers, which get their values when there is memory. */
static Tensor *
numbers (Case *self, const char *name, float offset, float scale, Tensor *tensor)
{
  int i = self->n_fills++;
  self->fills[i].tensor = tensor;
  self->fills[i].offset = offset;
  self->fills[i].scale = scale;
  snprintf (self->fills[i].name, sizeof self->fills[i].name, "%s", name);
  return tensor;
}

static void
set_numbers (Tensor *tensor, const char *name, float offset, float scale)
{
  size_t n = (size_t) ggml_nelements (tensor), n_bytes = ggml_nbytes (tensor);
  float *values = malloc (n * sizeof *values);
  fill (name, values, n, offset, scale);
  if (tensor->type == GGML_TYPE_F32) {
    ggml_backend_tensor_set (tensor, values, 0, n_bytes);
  } else {
    void *narrow = malloc (n_bytes);
    ggml_quantize_chunk (tensor->type, values, narrow, 0, ggml_nrows (tensor), tensor->ne[0],
                         NULL);
    ggml_backend_tensor_set (tensor, narrow, 0, n_bytes);
    free (narrow);
  }
  free (values);
}

static Tensor *
matrix (Case *self,
        enum ggml_type type,
        const char *name,
        float scale,
        int64_t columns,
        int64_t rows)
{
  return numbers (self, name, 0, scale, ggml_new_tensor_2d (self->kept, type, columns, rows));
}

static Tensor *
vector (Case *self, const char *name, float offset, float scale, int64_t n)
{
  return numbers (self, name, offset, scale, ggml_new_tensor_1d (self->kept, GGML_TYPE_F32, n));
}

static Tensor *
integers (Case *self, int n)
{
  return ggml_new_tensor_1d (self->kept, GGML_TYPE_I32, n);
}

/* ---- single operations ---- */

static int
read_sizes (const char *text, int64_t *sizes)
{
  int n = 0;
  for (const char *p = text; *p != 0 && n < 8;) {
    char *end;
    sizes[n++] = strtoll (p, &end, 10);
    p = *end != 0 ? end + 1 : end;
  }
  return n;
}

static Tensor *
build_matvec (Case *self, const int64_t *s, int n)
{
  int64_t M = s[0], K = n == 2 ? s[1] : M;
  Tensor *x = matrix (self, GGML_TYPE_F32, "input.0", 1, K, M);
  return ggml_mul_mat (self->nodes, x, vector (self, "input.1", 0, 1, K));
}

static Tensor *
build_softmax (Case *self, const int64_t *s, int n)
{
  return ggml_soft_max (self->nodes, matrix (self, GGML_TYPE_F32, "input.0", 1, s[1], s[0]));
}

static Tensor *
build_sum_rows (Case *self, const int64_t *s, int n)
{
  return ggml_sum_rows (self->nodes, matrix (self, GGML_TYPE_F32, "input.0", 1, s[1], s[0]));
}

static Tensor *
layer_norm (Case *self, Tensor *x, Tensor *weight, Tensor *bias)
{
  x = ggml_norm (self->nodes, x, 1e-5f);
  return ggml_add (self->nodes, ggml_mul (self->nodes, x, weight), bias);
}

static Tensor *
build_layer_norm (Case *self, const int64_t *s, int n)
{
  Tensor *x = matrix (self, GGML_TYPE_F32, "input.0", 1, s[1], s[0]);
  return layer_norm (self, x, vector (self, "input.1", 0, 1, s[1]),
                     vector (self, "input.2", 0, 1, s[1]));
}

static Tensor *
build_launches (Case *self, const int64_t *s, int n)
{
  Tensor *x = vector (self, "input.0", 0, 1, 1), *one = vector (self, "one", 1, 0, 1);
  for (int64_t i = 0; i < s[0]; i++)
    x = ggml_add (self->nodes, x, one);
  return x;
}

/* ---- GPT-2 ---- */

static Tensor *
linear (Case *self, enum ggml_type type, Tensor *x, const char *name, int64_t in, int64_t out)
{
  char whole[48];
  snprintf (whole, sizeof whole, "%s.weight", name);
  x = ggml_mul_mat (self->nodes, matrix (self, type, whole, 0.07f, in, out), x);
  snprintf (whole, sizeof whole, "%s.bias", name);
  return ggml_add (self->nodes, x, vector (self, whole, 0, 0.07f, out));
}

static Tensor *
norm (Case *self, Tensor *x, const char *name)
{
  char weight[48], bias[48];
  snprintf (weight, sizeof weight, "%s.weight", name);
  snprintf (bias, sizeof bias, "%s.bias", name);
  return layer_norm (self, x, vector (self, weight, 1, 0.07f, WIDTH),
                     vector (self, bias, 0, 0.07f, WIDTH));
}

/* qkv (3 D, T) to (D, T), with keys and values put into a cache that has T rows already if @past. */
static Tensor *
attention (Case *self, Tensor *qkv, Tensor *keys, Tensor *values, int n, int past)
{
  struct ggml_context *c = self->nodes;
  const int64_t d = WIDTH / HEADS, all = past + n;
  const size_t f = sizeof (float);
  Tensor *q = ggml_view_3d (c, qkv, d, HEADS, n, (size_t) d * f, qkv->nb[1], 0);
  Tensor *k = ggml_view_2d (c, qkv, WIDTH, n, qkv->nb[1], WIDTH * f);
  Tensor *v = ggml_view_2d (c, qkv, WIDTH, n, qkv->nb[1], 2 * WIDTH * f);
  Tensor *to_k = ggml_view_2d (c, keys, WIDTH, n, keys->nb[1], (size_t) past * keys->nb[1]);
  Tensor *to_v = ggml_view_2d (c, values, n, WIDTH, values->nb[1], (size_t) past * f);
  ggml_build_forward_expand (self->graph, ggml_cpy (c, k, to_k));
  ggml_build_forward_expand (self->graph, ggml_cpy (c, ggml_transpose (c, v), to_v));
  Tensor *seen = ggml_view_3d (c, keys, d, HEADS, all, (size_t) d * f, keys->nb[1], 0);
  Tensor *scores
      = ggml_mul_mat (c, ggml_permute (c, seen, 0, 2, 1, 3), ggml_permute (c, q, 0, 2, 1, 3));
  scores = ggml_scale (c, scores, 1 / sqrtf ((float) d));
  if (n > 1)
    scores = ggml_diag_mask_inf (c, scores, past);
  scores = ggml_soft_max (c, scores);
  Tensor *rows
      = ggml_view_3d (c, values, all, d, HEADS, values->nb[1], values->nb[1] * (size_t) d, 0);
  Tensor *mixed = ggml_permute (c, ggml_mul_mat (c, rows, scores), 0, 2, 1, 3);
  return ggml_cont_2d (c, mixed, WIDTH, n);
}

/* Prefill reads the prompt; decoding runs it too, once, for the cache: @cache is what both share. */
static Tensor *
build_gpt2 (Case *self,
            enum ggml_type type,
            int n,
            int past,
            Tensor **cache,
            Tensor **out_tokens,
            Tensor **out_positions)
{
  struct ggml_context *c = self->nodes;
  Tensor *table = matrix (self, type, "tokens", 0.07f, WIDTH, VOCABULARY);
  Tensor *places = matrix (self, GGML_TYPE_F32, "positions", 0.07f, WIDTH, POSITIONS);
  *out_tokens = integers (self, n);
  *out_positions = integers (self, n);
  Tensor *x = ggml_add (c, ggml_get_rows (c, table, *out_tokens),
                        ggml_get_rows (c, places, *out_positions));
  for (int i = 0; i < LAYERS; i++) {
    char at[5][24];
    const char *const names[] = { "norm1", "attention", "project", "norm2", "up" };
    for (int j = 0; j < 5; j++)
      snprintf (at[j], sizeof at[j], "h.%d.%s", i, names[j]);
    char down[24];
    snprintf (down, sizeof down, "h.%d.down", i);
    Tensor *qkv = linear (self, type, norm (self, x, at[0]), at[1], WIDTH, 3 * WIDTH);
    Tensor *mixed = attention (self, qkv, cache[2 * i], cache[2 * i + 1], n, past);
    x = ggml_add (c, x, linear (self, type, mixed, at[2], WIDTH, WIDTH));
    Tensor *up = linear (self, type, norm (self, x, at[3]), at[4], WIDTH, 4 * WIDTH);
    x = ggml_add (c, x, linear (self, type, ggml_gelu (c, up), down, 4 * WIDTH, WIDTH));
  }
  if (n > 1)
    x = ggml_view_2d (c, x, WIDTH, 1, x->nb[1], (size_t) (n - 1) * x->nb[1]);
  return ggml_mul_mat (c, table, norm (self, x, "norm"));
}

/* ---- running ---- */

static void
begin (Case *self, ggml_backend_t backend)
{
  struct ggml_init_params small = { 1024 * (ggml_tensor_overhead () + 64), NULL, true };
  struct ggml_init_params large
      = { MAX_NODES * ggml_tensor_overhead () + ggml_graph_overhead_custom (MAX_NODES, false),
          NULL, true };
  memset (self, 0, sizeof *self);
  self->backend = backend;
  self->kept = ggml_init (small);
  self->nodes = ggml_init (large);
  self->graph = ggml_new_graph_custom (self->nodes, MAX_NODES, false);
}

static void
finish (Case *self, Tensor *result)
{
  self->result = result;
  ggml_build_forward_expand (self->graph, result);
  ggml_backend_alloc_ctx_tensors (self->kept, self->backend);
  for (int i = 0; i < self->n_fills; i++)
    set_numbers (self->fills[i].tensor, self->fills[i].name, self->fills[i].offset,
                 self->fills[i].scale);
  ggml_gallocr_t allocator
      = ggml_gallocr_new (ggml_backend_get_default_buffer_type (self->backend));
  ggml_gallocr_alloc_graph (allocator, self->graph);
}

static void
run (Case *self)
{
  ggml_backend_graph_compute (self->backend, self->graph);
}

static void
read_text (Tensor *tokens, Tensor *positions, int n, int past)
{
  int32_t values[PROMPT], places[PROMPT];
  for (int i = 0; i < n; i++) {
    values[i] = past ? NEXT_TOKEN : i * TOKEN_STRIDE % VOCABULARY;
    places[i] = past + i;
  }
  ggml_backend_tensor_set (tokens, values, 0, (size_t) n * sizeof *values);
  ggml_backend_tensor_set (positions, places, 0, (size_t) n * sizeof *places);
}

static Case
make_gpt2 (ggml_backend_t backend, int decode, enum ggml_type type)
{
  struct ggml_init_params params = { 64 * ggml_tensor_overhead (), NULL, true };
  struct ggml_context *shared = ggml_init (params);
  Tensor *cache[2 * LAYERS], *tokens, *positions;
  for (int i = 0; i < LAYERS; i++) {
    cache[2 * i] = ggml_new_tensor_2d (shared, GGML_TYPE_F32, WIDTH, CONTEXT);
    cache[2 * i + 1] = ggml_new_tensor_2d (shared, GGML_TYPE_F32, CONTEXT, WIDTH);
  }
  ggml_backend_alloc_ctx_tensors (shared, backend);
  Case self;
  begin (&self, backend);
  finish (&self, build_gpt2 (&self, type, PROMPT, 0, cache, &tokens, &positions));
  read_text (tokens, positions, PROMPT, 0);
  if (!decode)
    return self;
  run (&self);
  begin (&self, backend);
  finish (&self, build_gpt2 (&self, type, 1, PROMPT, cache, &tokens, &positions));
  read_text (tokens, positions, 1, PROMPT);
  return self;
}

static void
write_output (Case *self, const char *path)
{
  size_t n = (size_t) ggml_nelements (self->result);
  size_t step = (n + MAX_WRITTEN - 1) / MAX_WRITTEN;
  float *values = malloc (n * sizeof *values);
  ggml_backend_tensor_get (self->result, values, 0, n * sizeof *values);
  FILE *file = fopen (path, "wb");
  for (size_t i = 0; file != NULL && i < n; i += step)
    fwrite (&values[i], sizeof *values, 1, file);
  if (file != NULL)
    fclose (file);
  free (values);
}

static int
compare_doubles (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return x < y ? -1 : x > y;
}

/* As bench/run asks for, see measure.py. */
static void
wait_for_turn (void)
{
  char line[16];
  puts ("turn");
  fflush (stdout);
  if (fgets (line, sizeof line, stdin) == NULL)
    exit (1);
}

static void
measure (Case *self, const char *name, int n_runs, int turns)
{
  double *ms = calloc ((size_t) n_runs, sizeof *ms), start = now_ms ();
  double *sorted = calloc ((size_t) n_runs, sizeof *ms);
  int warm = 0;
  for (; warm < 3 || now_ms () - start < 300; warm++)
    run (self);
  int inner = (int) (20 / ((now_ms () - start) / warm)) + 1;
  for (int i = 0; i < n_runs; i++) {
    if (turns)
      wait_for_turn ();
    for (int k = 0; turns && k < inner; k++)
      run (self);
    start = now_ms ();
    for (int k = 0; k < inner; k++)
      run (self);
    sorted[i] = ms[i] = (now_ms () - start) / inner;
  }
  qsort (sorted, (size_t) n_runs, sizeof *ms, compare_doubles);
  printf ("{\"case\": \"%s\", \"ms_median\": %.6g, \"ms_min\": %.6g, \"ms\": [", name,
          sorted[n_runs / 2], sorted[0]);
  for (int i = 0; i < n_runs; i++)
    printf ("%s%.6g", i == 0 ? "" : ", ", ms[i]);
  puts ("]}");
  free (ms);
  free (sorted);
}

static const struct {
  const char *name;
  Tensor *(*build) (Case *, const int64_t *sizes, int n);
} operations[] = {
  { "matvec:", build_matvec },    { "softmax:", build_softmax },
  { "sumrows:", build_sum_rows }, { "layernorm:", build_layer_norm },
  { "launch:", build_launches },
};

static const struct {
  const char *name;
  int decode;
  enum ggml_type type;
} models[] = {
  { "gpt2-prefill", 0, GGML_TYPE_F32 },      { "gpt2-decode", 1, GGML_TYPE_F32 },
  { "gpt2-decode:f16", 1, GGML_TYPE_F16 },   { "gpt2-decode:q8_0", 1, GGML_TYPE_Q8_0 },
  { "gpt2-decode:q4_0", 1, GGML_TYPE_Q4_0 },
};

int
main (int argc, char **argv)
{
  const char *threads = getenv ("OMP_NUM_THREADS"), *output = NULL,
             *name = argc > 1 ? argv[1] : "";
  int n_runs = 7, found = 0, turns = 0;
  for (int i = 2; i < argc; i++) {
    if (strcmp (argv[i], "--turns") == 0)
      turns = 1;
    else if (i + 1 < argc && strcmp (argv[i], "--runs") == 0)
      n_runs = atoi (argv[++i]);
    else if (i + 1 < argc && strcmp (argv[i], "--output") == 0)
      output = argv[++i];
  }
  ggml_backend_t backend = ggml_backend_cpu_init ();
  ggml_backend_cpu_set_n_threads (backend, threads ? atoi (threads) : 2);
  Case self;
  for (size_t i = 0; i < sizeof operations / sizeof *operations && !found; i++) {
    int64_t sizes[8];
    size_t length = strlen (operations[i].name);
    if (strncmp (name, operations[i].name, length) == 0) {
      begin (&self, backend);
      int n = read_sizes (name + length, sizes);
      finish (&self, operations[i].build (&self, sizes, n));
      found = 1;
    }
  }
  for (size_t i = 0; i < sizeof models / sizeof *models && !found; i++)
    if (strcmp (name, models[i].name) == 0) {
      self = make_gpt2 (backend, models[i].decode, models[i].type);
      found = 1;
    }
  if (!found || n_runs < 1) {
    printf ("{\"case\": \"%s\", \"missing\": true}\n", name);
    return 0;
  }
  run (&self);
  if (output != NULL)
    write_output (&self, output);
  measure (&self, name, n_runs, turns);
  return 0;
}
