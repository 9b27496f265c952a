/* SPDX-License-Identifier: MIT
 *
 * test-staging.c: the ring of pinned memory gives pieces that never overlap, frees them in order, is full before it
 * overwrites, and brings downloads to where they belong. Its driver is memory of the host's. */
#include <glib.h>

#include "../../plugins/cuda/cuda.h"

enum { N_STEPS = 200000 };
CudaApi cuda;

static int
host_alloc (void **out, size_t size, unsigned flags)
{
  *out = g_malloc (size);
  return CUDA_SUCCESS;
}

static int
free_host (void *memory)
{
  g_free (memory);
  return CUDA_SUCCESS;
}

static int
create_event (CudaEvent *out, unsigned flags)
{
  *out = g_malloc (1);
  return CUDA_SUCCESS;
}

static int
destroy_event (CudaEvent event)
{
  g_free (event);
  return CUDA_SUCCESS;
}

static int
refuse_event (CudaEvent *out, unsigned flags)
{
  return CUDA_OUT_OF_MEMORY;
}

/* Each piece is filled with a letter, which has to be there still when it is freed. */
static void
test_random (void)
{
  static CudaStaging ring;
  g_autofree char *host = g_malloc (CUDA_PIECE_BYTES);
  guint8 letters[CUDA_N_PIECES];
  guint n_full = 0;
  memset (&ring, 0, sizeof ring);
  g_assert_cmpint (cuda_staging_open (&ring), ==, CUDA_SUCCESS);
  for (guint i = 0; i < N_STEPS; i++) {
    const size_t size = g_test_rand_int_range (0, 50) == 0
                            ? CUDA_PIECE_BYTES
                            : (size_t) g_test_rand_int_range (1, 300000) >> (i % 17);
    CudaPiece *piece = cuda_staging_take (&ring, MAX (size, 1));
    if (piece != NULL) {
      guint8 *letter = &letters[(ring.n_taken - 1) % CUDA_N_PIECES];
      *letter = (guint8) i;
      g_assert_cmpuint (piece->at + piece->size, <=, CUDA_RING_BYTES);
      ring.memory[piece->at] = (char) i;
      ring.memory[piece->at + piece->size - 1] = (char) i;
      piece->host = host;
      g_assert_true (cuda_staging_writes (&ring, host, 1));
      g_assert_false (cuda_staging_writes (&ring, host + CUDA_PIECE_BYTES, 9));
    }
    n_full += piece == NULL;
    while (ring.n_freed < ring.n_taken && (piece == NULL || g_test_rand_bit ())) {
      const CudaPiece *oldest = cuda_staging_get_oldest (&ring);
      const guint8 letter = letters[ring.n_freed % CUDA_N_PIECES];
      cuda_staging_free_oldest (&ring);
      g_assert_cmpuint ((guint8) host[0], ==, letter);
      g_assert_cmpuint ((guint8) host[oldest->size - 1], ==, letter);
      piece = (CudaPiece *) host; /* one is enough where it was full */
      if (g_test_rand_bit ())
        break;
    }
  }
  g_assert_cmpuint (n_full, >, 0);
  cuda_staging_close (&ring);
}

/* A ring that could not be opened is opened when it is asked for again. */
static void
test_refused (void)
{
  static CudaStaging ring;
  cuda.EventCreate = refuse_event;
  g_assert_cmpint (cuda_staging_open (&ring), ==, CUDA_OUT_OF_MEMORY);
  g_assert_null (ring.memory);
  cuda.EventCreate = create_event;
  g_assert_cmpint (cuda_staging_open (&ring), ==, CUDA_SUCCESS);
  g_assert_null (cuda_staging_get_oldest (&ring));
  cuda_staging_close (&ring);
}

int
main (int argc, char **argv)
{
  cuda = (CudaApi){ .MemHostAlloc = host_alloc,
                    .MemFreeHost = free_host,
                    .EventCreate = create_event,
                    .EventDestroy = destroy_event };
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/nvidia/staging/random", test_random);
  g_test_add_func ("/nvidia/staging/refused", test_refused);
  return g_test_run ();
}
