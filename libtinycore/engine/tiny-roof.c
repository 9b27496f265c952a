/* SPDX-License-Identifier: MIT
 *
 * tiny-roof.c: measures what a device can do at most.
 *
 * Arithmetic: independent chains of multiply-adds on every element of a vector that stays in a
 * near cache. Reading: a sum over blocks, one for each thread and read again and again, of half the
 * size of the cache in question. Triad: STREAM's kernel (McCalpin). Of many runs the fastest
 * counts: other work on the machine only ever takes away. */
#include "engine/tiny-roof.h"

#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-timing.h"
#include "device/tiny-buffer.h"
#include "engine/tiny-cache.h"
#include "engine/tiny-code.h"
#include "engine/tiny-executable.h"
#include "ir/tiny-dtype.h"
#include "ir/tiny-text.h"

enum {
  N_CHAINS = 8,
  CHAIN_LENGTH = 24,
  N_ELEMENTS = 1 << 16,  /* of the vector that is computed on */
  SECTIONS = 8,          /* of a block, so that reading it twice is two different sums */
  LEAST_BYTES = 1 << 26, /* that a run reads, over and over, to hide what a launch costs */
  MAX_BYTES = 1 << 28,   /* of the largest array */
  N_TURNS = 3, /* each probe runs in turn, so that a busy moment hits none of them always */
  NS_PER_TURN = 8000000,
  TOO_LONG_NS = 20000000, /* a simulator has no roof worth knowing */
  TOO_SHORT_NS = 500,     /* nor has what only compiles */
};

/* ---- kernels, as text ---- */

/* y[i] = sum over k of (…((x[i] + k) * x[i] + c) * x[i] + c …). */
static char *
chains_text (TinyDType dtype)
{
  const char *t = tiny_dtype_to_string (dtype);
  GString *s = g_string_new (NULL);
  g_string_append_printf (s,
                          "%%y = param.%s{slot=0, shape=[%d]}\n"
                          "%%a = param.%s{slot=1, shape=[%d]}\n"
                          "%%i = range.index{number=0, kind=loop}(%d)\n"
                          "%%x = load.%s(%%a, %%i)\n",
                          t, N_ELEMENTS, t, N_ELEMENTS, N_ELEMENTS, t);
  for (guint k = 0; k < N_CHAINS; k++)
    g_string_append_printf (s, "%%c%u_0 = add.%s(%%x, %u.0)\n", k, t, k + 1);
  for (guint i = 0; i < CHAIN_LENGTH; i++)
    for (guint k = 0; k < N_CHAINS; k++)
      g_string_append_printf (s, "%%c%u_%u = mulacc.%s(%%c%u_%u, %%x, 0.25)\n", k, i + 1, t, k,
                              i);
  g_string_append_printf (s, "%%s0 = add.%s(%%c0_%u, 0.5)\n", t, CHAIN_LENGTH);
  for (guint k = 1; k < N_CHAINS; k++)
    g_string_append_printf (s, "%%s%u = add.%s(%%s%u, %%c%u_%u)\n", k, t, k - 1, k,
                            CHAIN_LENGTH);
  g_string_append_printf (s, "sink{name=\"roof_%s\"}(store(%%y, %%i, %%s%u))\n", t,
                          N_CHAINS - 1);
  return g_string_free (s, FALSE);
}

/* y[g] = sum over r, s, i of x[g, (r + s) mod SECTIONS, i]: @n_blocks blocks read @n_rounds times. */
static char *
read_text (const char *name, gint64 n_blocks, gint64 n_rounds, gint64 section)
{
  return g_strdup_printf (
      "%%y = param.f32{slot=0, shape=[%" G_GINT64_FORMAT "]}\n"
      "%%x = param.f32{slot=1, shape=[%" G_GINT64_FORMAT "]}\n"
      "%%g = range.index{number=0, kind=loop}(%" G_GINT64_FORMAT ")\n"
      "%%r = range.index{number=1, kind=reduce}(%" G_GINT64_FORMAT ")\n"
      "%%s = range.index{number=2, kind=reduce}(%d)\n"
      "%%i = range.index{number=3, kind=reduce}(%" G_GINT64_FORMAT ")\n"
      "%%section = add.index(mul.index(%%g, %d), floormod.index(add.index(%%r, %%s), %d))\n"
      "%%at = add.index(mul.index(%%section, %" G_GINT64_FORMAT "), %%i)\n"
      "%%sum = reduce.f32{op=add}(load.f32(%%x, %%at), %%r, %%s, %%i)\n"
      "sink{name=\"roof_read_%s\"}(store(%%y, %%g, %%sum))\n",
      n_blocks, n_blocks * SECTIONS * section, n_blocks, n_rounds, SECTIONS, section, SECTIONS,
      SECTIONS, section, name);
}

static char *
triad_text (const char *name, gint64 n)
{
  return g_strdup_printf ("%%a = param.f32{slot=0, shape=[%" G_GINT64_FORMAT "]}\n"
                          "%%b = param.f32{slot=1, shape=[%" G_GINT64_FORMAT "]}\n"
                          "%%c = param.f32{slot=2, shape=[%" G_GINT64_FORMAT "]}\n"
                          "%%i = range.index{number=0, kind=loop}(%" G_GINT64_FORMAT ")\n"
                          "%%v = mulacc.f32(load.f32(%%b, %%i), 0.5, load.f32(%%c, %%i))\n"
                          "sink{name=\"roof_triad_%s\"}(store(%%a, %%i, %%v))\n",
                          n, n, n, n, name);
}

/* ---- what is measured ---- */
enum { MAX_PROBES = 16, MAX_BUFFERS = 3 };

typedef struct {
  TinyProgram *program;
  guint32 grid[3];
  gsize n_bytes[MAX_BUFFERS]; /* of its buffers, 0 behind the last */
  double work;                /* operations or bytes of one run */
  double *out;                /* where work in a nanosecond goes */
  guint64 least_ns;
} Probe;

typedef struct {
  TinyDevice *device;
  Probe probes[MAX_PROBES];
  guint n_probes;
  TinyBuffer *buffers[MAX_BUFFERS]; /* large enough for all */
} Measuring;

static gboolean
add_probe (Measuring *self, const char *text, const Probe *like, GError **error)
{
  g_auto (TinyCode) code = { 0 };
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *kernel = tiny_graph_parse (graph, text, error);
  /* Not by way of the caches, where a search may have left something else. */
  if (kernel == NULL || !tiny_code_make (&code, self->device, kernel, NULL, 0, "roof", error))
    return FALSE;
  TinyProgram *program
      = tiny_program_new (self->device, code.head.name, code.binary, code.head.n_params,
                          code.head.n_variables, code.head.group, error);
  if (program == NULL)
    return FALSE;
  g_assert (self->n_probes < MAX_PROBES);
  Probe *probe = &self->probes[self->n_probes++];
  *probe = *like;
  probe->program = program;
  probe->least_ns = G_MAXUINT64;
  memcpy (probe->grid, code.head.grid, sizeof probe->grid);
  return TRUE;
}

static gboolean
add_gflops (Measuring *self, TinyRoof *roof, GError **error)
{
  static const TinyDType dtypes[]
      = { TINY_DTYPE_F32, TINY_DTYPE_F64, TINY_DTYPE_F16, TINY_DTYPE_BF16 };
  for (guint i = 0; i < G_N_ELEMENTS (dtypes); i++) {
    const TinyDType dtype = dtypes[i];
    if ((tiny_device_get_target (self->device)->dtypes_compute & TINY_DTYPE_BIT (dtype)) == 0)
      continue;
    const gsize size = N_ELEMENTS * tiny_dtype_get_n_bytes (dtype);
    const Probe probe = { .n_bytes = { size, size },
                          .work = (2.0 * CHAIN_LENGTH + 2) * N_CHAINS * N_ELEMENTS,
                          .out = &roof->gflops[dtype] };
    g_autofree char *text = chains_text (dtype);
    if (!add_probe (self, text, &probe, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
add_read (
    Measuring *self, TinyRoofLevel *level, gint64 n_blocks, gint64 n_bytes, GError **error)
{
  const gint64 section
      = MAX (n_bytes / n_blocks / SECTIONS / 1024, 1) * 1024 / (gint64) sizeof (float);
  const gsize size = (gsize) (n_blocks * SECTIONS * section) * sizeof (float);
  const gint64 n_rounds = MAX (LEAST_BYTES / (gint64) size, 1);
  const Probe probe = { .n_bytes = { (gsize) n_blocks * sizeof (float), size },
                        .work = (double) size * (double) n_rounds,
                        .out = &level->read };
  g_autofree char *text = read_text (level->name, n_blocks, n_rounds, section);
  return add_probe (self, text, &probe, error);
}

static gboolean
add_triad (Measuring *self, TinyRoofLevel *level, gint64 n_bytes, GError **error)
{
  const gint64 n = n_bytes / 3 / 1024 * 1024 / (gint64) sizeof (float);
  const gsize size = (gsize) n * sizeof (float);
  const Probe probe
      = { .n_bytes = { size, size, size }, .work = 3.0 * (double) size, .out = &level->triad };
  g_autofree char *text = triad_text (level->name, n);
  return add_probe (self, text, &probe, error);
}

/* The levels that the target tells of, and the memory behind them. */
static void
list_levels (TinyDevice *device, TinyRoof *roof)
{
  const TinyTarget *target = tiny_device_get_target (device);
  const guint64 n_threads = MAX (target->n_threads, 1);
  for (guint i = 0; i < 3; i++) {
    guint64 n_bytes = target->cache_bytes[i] * (i < 2 ? n_threads : 1);
    /* A cache no larger than those before it holds nothing more. */
    if (n_bytes < 4096
        || (roof->n_levels > 0 && n_bytes <= roof->levels[roof->n_levels - 1].n_bytes))
      continue;
    TinyRoofLevel *level = &roof->levels[roof->n_levels++];
    g_snprintf (level->name, sizeof level->name, "L%u", i + 1);
    level->n_bytes = n_bytes;
  }
  TinyRoofLevel *memory = &roof->levels[roof->n_levels++];
  g_strlcpy (memory->name, "memory", sizeof memory->name);
  memory->n_bytes = G_MAXUINT64;
}

static gboolean
add_levels (Measuring *self, TinyRoof *roof, GError **error)
{
  const gint64 n_threads = MAX (tiny_device_get_target (self->device)->n_threads, 1);
  guint64 below = 0;
  for (guint i = 0; i < roof->n_levels; i++) {
    TinyRoofLevel *level = &roof->levels[i];
    gboolean is_memory = level->n_bytes == G_MAXUINT64;
    /* Half of a cache; twice what all caches hold. */
    gint64 n_bytes = is_memory ? (gint64) CLAMP (2 * below, MAX_BYTES / 4, MAX_BYTES)
                               : (gint64) MIN (level->n_bytes / 2, MAX_BYTES / 4);
    /* In the nearest cache a triad is over before a launch is. */
    if (!add_read (self, level, n_threads, n_bytes, error)
        || (i > 0 && !add_triad (self, level, n_bytes, error)))
      return FALSE;
    below = level->n_bytes;
  }
  return TRUE;
}

/* ---- running it ---- */

/* Buffers for the largest, full of zeros: a number in every dtype, and one that arithmetic is not
 * slow on. */
static gboolean
make_buffers (Measuring *self, GError **error)
{
  for (guint i = 0; i < MAX_BUFFERS; i++) {
    gsize n_bytes = 0;
    for (guint p = 0; p < self->n_probes; p++)
      n_bytes = MAX (n_bytes, self->probes[p].n_bytes[i]);
    self->buffers[i] = tiny_buffer_new (self->device, n_bytes);
    if (!tiny_buffer_ensure (self->buffers[i], error))
      return FALSE;
    void *host = tiny_buffer_map (self->buffers[i]);
    if (host != NULL) {
      if (!tiny_buffer_begin_access (self->buffers[i], TRUE, 0, n_bytes, error))
        return FALSE;
      memset (host, 0, n_bytes);
      if (!tiny_buffer_end_access (self->buffers[i], TRUE, 0, n_bytes, error))
        return FALSE;
      continue;
    }
    g_autofree void *zeros = g_try_malloc0 (MAX (n_bytes, 1));
    if (zeros == NULL) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY,
                   "no host memory for %" G_GSIZE_FORMAT " bytes", n_bytes);
      return FALSE;
    }
    if (!tiny_buffer_upload (self->buffers[i], 0, zeros, n_bytes, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
check_time (guint64 ns, GError **error)
{
  if (ns >= TOO_SHORT_NS && ns <= TOO_LONG_NS)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
               ns > TOO_LONG_NS ? "it takes %.3g ms where a real device takes less than one"
                                : "it says that %.3g ms were enough, so it ran nothing",
               (double) ns * 1e-6);
  return FALSE;
}

/* Runs the probe for a while. */
static gboolean
run_probe (Measuring *self, Probe *probe, GError **error)
{
  TinySpan spans[MAX_BUFFERS];
  guint n = 0;
  for (; n < MAX_BUFFERS && probe->n_bytes[n] > 0; n++) {
    spans[n] = tiny_buffer_get_span (self->buffers[n]);
    spans[n].n_bytes = probe->n_bytes[n];
  }
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_DISPATCH,
                          .program = tiny_program_get_handle (probe->program),
                          .buffers = spans,
                          .n_buffers = n };
  memcpy (command.grid, probe->grid, sizeof command.grid);
  guint64 total = 0, first_ns = 0;
  for (guint i = 0; i < 2 || total < NS_PER_TURN; i++) {
    guint64 ns = 0;
    if (!tiny_device_submit (self->device, &command, 1, &ns, error))
      return FALSE;
    first_ns = i == 0 ? ns : first_ns;
    /* The first probe, which waits for no memory, tells what kind of device this is. */
    if (i > 0 && probe == self->probes && !check_time (MIN (ns, first_ns), error))
      return FALSE;
    if (i > 0) /* the first fills caches */
      probe->least_ns = MIN (probe->least_ns, ns);
    total += ns;
  }
  return TRUE;
}

static gboolean
run_probes (Measuring *self, GError **error)
{
  for (guint turn = 0; turn < N_TURNS; turn++)
    for (guint i = 0; i < self->n_probes; i++)
      if (!run_probe (self, &self->probes[i], error))
        return FALSE;
  for (guint i = 0; i < self->n_probes; i++) {
    Probe *probe = &self->probes[i];
    *probe->out = probe->work / (double) probe->least_ns;
  }
  return TRUE;
}

static gboolean
measure (TinyDevice *device, TinyRoof *out, GError **error)
{
  TINY_TIMED ("engine", "measure roof");
  Measuring self = { .device = device };
  *out = (TinyRoof){ 0 };
  list_levels (device, out);
  gboolean good = add_gflops (&self, out, error) && add_levels (&self, out, error)
                  && make_buffers (&self, error) && run_probes (&self, error);
  for (guint i = 0; i < self.n_probes; i++)
    g_object_unref (self.probes[i].program);
  for (guint i = 0; i < MAX_BUFFERS; i++)
    g_clear_pointer (&self.buffers[i], tiny_buffer_unref);
  if (!good)
    g_prefix_error (error, "%s: measuring its roof: ", tiny_device_get_name (device));
  return good;
}

/* ---- what is kept ---- */
typedef struct {
  TinyRoof roof;
  gboolean is_there, was_looked_for;
} Known;

static GMutex lock;
static GHashTable *known; /* TinyDevice → Known */

static void
make_key (TinyDevice *device, char key[33])
{
  g_autofree char *text = g_strdup_printf ("roof 1 %s %s", tiny_device_get_name (device),
                                           tiny_device_get_title (device));
  tiny_executable_make_key (device, text, strlen (text), key);
}

static Known *
look_up (TinyDevice *device)
{
  if (known == NULL)
    known = g_hash_table_new_full (NULL, NULL, g_object_unref, g_free);
  Known *found = g_hash_table_lookup (known, device);
  if (found == NULL) {
    found = g_new0 (Known, 1);
    g_hash_table_insert (known, g_object_ref (device), found);
  }
  if (!found->was_looked_for) {
    char key[33];
    gsize size = 0;
    make_key (device, key);
    g_autoptr (GBytes) entry = tiny_cache_load (key);
    const void *data = entry ? g_bytes_get_data (entry, &size) : NULL;
    found->was_looked_for = TRUE;
    found->is_there = size == sizeof (TinyRoof);
    if (found->is_there)
      memcpy (&found->roof, data, size);
  }
  return found;
}

const TinyRoof *
tiny_roof_find (TinyDevice *device)
{
  device = tiny_device_get_runner (device);
  g_mutex_lock (&lock);
  const Known *found = look_up (device);
  const TinyRoof *roof = found->is_there ? &found->roof : NULL;
  g_mutex_unlock (&lock);
  return roof;
}

const TinyRoof *
tiny_roof_measure (TinyDevice *device, gboolean again, GError **error)
{
  TinyRoof roof;
  device = tiny_device_get_runner (device);
  const TinyRoof *found = again ? NULL : tiny_roof_find (device);
  if (found != NULL)
    return found;
  if (!measure (device, &roof, error))
    return NULL;
  char key[33];
  make_key (device, key);
  g_autoptr (GBytes) payload = g_bytes_new (&roof, sizeof roof);
  tiny_cache_store (key, payload);
  g_mutex_lock (&lock);
  Known *kept = look_up (device);
  kept->roof = roof;
  kept->is_there = TRUE;
  g_mutex_unlock (&lock);
  return &kept->roof;
}

/* ---- what it says of a kernel ---- */
TinyRoofBound
tiny_roof_bound (const TinyRoof *self, TinyDType dtype, double n_flops, double n_bytes)
{
  const TinyRoofLevel *level = &self->levels[0];
  while (level < &self->levels[self->n_levels - 1] && n_bytes > (double) level->n_bytes)
    level++;
  TinyRoofBound bound = { .level = level->name, .gbps = MAX (level->read, level->triad) };
  /* What it does not compute in is computed in f32. */
  bound.gflops = dtype < TINY_N_DTYPES ? self->gflops[dtype] : 0;
  if (bound.gflops == 0)
    bound.gflops = self->gflops[TINY_DTYPE_F32];
  double by_flops = bound.gflops > 0 ? n_flops / bound.gflops : 0;
  double by_bytes = bound.gbps > 0 ? n_bytes / bound.gbps : 0;
  bound.by_memory = by_bytes >= by_flops;
  bound.ns = MAX (by_flops, by_bytes);
  return bound;
}
