/* SPDX-License-Identifier: MIT
 *
 * silicon.c: simulates the hardware: a thread for each ring executes what a doorbell was rung for.
 *
 * The board's memory and the host's window to it are two pieces of host memory, and only
 * board_clean() and board_invalidate() carry bytes between them: what is forgotten there is seen at once.
 * SAMPLE_BOARD=word,word=number,… makes it another board: "card" has no windows; "latency=200"
 * finishes 200 microseconds late; "hold=6" begins at the 6th doorbell; "fault=7" fails the 7th run;
 * "lost=7" stops answering then; "memory=64" has 64 MiB. */
#include "silicon.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "silicon-core.h"

enum { RING_SLOTS = 64 }; /* doorbells that are not answered yet */

typedef struct {
  uint64_t n_bytes;
  void *window; /* made when it is asked for */
  char unused[48];
} Block; /* before the bytes of a piece of memory, which then are at a multiple of 64 */

struct Board {
  pthread_mutex_t lock;
  uint64_t free_bytes;
  uint64_t n_runs, n_doorbells;
  long latency_us, hold_to, fault_at, lost_at, memory_mb;
  bool is_card, is_lost;
};

/* Commands in a ring, each with its variables behind it. */
typedef struct Entry {
  RingCommand command;
  struct Entry *next;
  int64_t variables[];
} Entry;

/* What a doorbell was rung for. */
typedef struct {
  Entry *entries;
  uint64_t fence;
} Push;

struct Ring {
  Board *board;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  Entry *written, **end; /* no doorbell yet */
  Push pushes[RING_SLOTS];
  uint64_t n_pushed, n_done, reached;
  BoardState state; /* OK, FAULT or GONE */
  bool ends;
  char fault[256];
};

/* ---- the board ---- */
static long
read_word (const char *text, const char *word, long otherwise)
{
  const size_t n = strlen (word);
  for (const char *at = text; at != NULL && *at != '\0'; at = strchr (at, ',')) {
    at += *at == ',';
    if (strncmp (at, word, n) == 0 && (at[n] == '=' || at[n] == ',' || at[n] == '\0'))
      return at[n] == '=' ? strtol (at + n + 1, NULL, 10) : 1;
  }
  return otherwise;
}

Board *
board_open (void)
{
  const char *text = getenv ("SAMPLE_BOARD");
  Board *board = calloc (1, sizeof *board);
  if (board == NULL)
    return NULL;
  pthread_mutex_init (&board->lock, NULL);
  board->is_card = read_word (text, "card", 0) != 0;
  board->latency_us = read_word (text, "latency", 0);
  board->hold_to = read_word (text, "hold", 0);
  board->fault_at = read_word (text, "fault", 0);
  board->lost_at = read_word (text, "lost", 0);
  board->memory_mb = read_word (text, "memory", 2048);
  board->free_bytes = board_memory_bytes (board);
  return board;
}

void
board_close (Board *board)
{
  pthread_mutex_destroy (&board->lock);
  free (board);
}

bool
board_has_windows (const Board *board)
{
  return !board->is_card;
}

uint64_t
board_memory_bytes (const Board *board)
{
  return (uint64_t) board->memory_mb << 20;
}

static Block *
block_of (uint64_t address)
{
  return (Block *) (uintptr_t) address - 1;
}

uint64_t
board_alloc (Board *board, uint64_t n_bytes)
{
  pthread_mutex_lock (&board->lock);
  const bool fits = n_bytes <= board->free_bytes;
  board->free_bytes -= fits ? n_bytes : 0;
  pthread_mutex_unlock (&board->lock);
  Block *block = fits ? aligned_alloc (64, sizeof *block + (n_bytes / 64 + 1) * 64) : NULL;
  if (block == NULL) {
    pthread_mutex_lock (&board->lock);
    board->free_bytes += fits ? n_bytes : 0;
    pthread_mutex_unlock (&board->lock);
    return 0;
  }
  *block = (Block){ .n_bytes = n_bytes };
  memset (block + 1, 0xd5,
          n_bytes < 4096 ? n_bytes : 4096); /* anything but what is hoped for */
  return (uint64_t) (uintptr_t) (block + 1);
}

void
board_free (Board *board, uint64_t address)
{
  Block *block = block_of (address);
  pthread_mutex_lock (&board->lock);
  board->free_bytes += block->n_bytes;
  pthread_mutex_unlock (&board->lock);
  memset (block + 1, 0xde, block->n_bytes < 4096 ? block->n_bytes : 4096);
  free (block->window);
  free (block);
}

uint64_t
board_upload (Board *board, const void *data, uint64_t n_bytes)
{
  const uint64_t address = board_alloc (board, n_bytes);
  if (address != 0)
    memcpy ((void *) (uintptr_t) address, data, n_bytes);
  return address;
}

void *
board_window (Board *board, uint64_t address)
{
  Block *block = block_of (address);
  pthread_mutex_lock (&board->lock);
  if (block->window == NULL && !board->is_card) {
    block->window = aligned_alloc (64, (block->n_bytes / 64 + 1) * 64);
    if (block->window != NULL)
      memset (block->window, 0xa5, block->n_bytes < 4096 ? block->n_bytes : 4096);
  }
  void *window = block->window;
  pthread_mutex_unlock (&board->lock);
  return window;
}

void
board_clean (Board *board, uint64_t address, uint64_t offset, uint64_t n_bytes)
{
  memcpy ((char *) (uintptr_t) address + offset,
          (const char *) block_of (address)->window + offset, n_bytes);
}

void
board_invalidate (Board *board, uint64_t address, uint64_t offset, uint64_t n_bytes)
{
  memcpy ((char *) block_of (address)->window + offset,
          (const char *) (uintptr_t) address + offset, n_bytes);
}

/* ---- rings ---- */
static uint64_t
now_ns (void)
{
  struct timespec now;
  clock_gettime (CLOCK_MONOTONIC, &now);
  return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* Counts the runs of the board: at some it was told to fail. */
static BoardState
count_run (Ring *ring)
{
  Board *board = ring->board;
  pthread_mutex_lock (&board->lock);
  const uint64_t n = ++board->n_runs;
  board->is_lost = board->is_lost || (board->lost_at > 0 && n >= (uint64_t) board->lost_at);
  const bool is_lost = board->is_lost, fails = n == (uint64_t) board->fault_at;
  pthread_mutex_unlock (&board->lock);
  if (fails)
    snprintf (ring->fault, sizeof ring->fault, "a fault was asked for at run %llu",
              (unsigned long long) n);
  return is_lost ? BOARD_GONE : fails ? BOARD_FAULT : BOARD_OK;
}

/* True until the doorbells have been rung that the board was told to wait for. */
static bool
is_held (Board *board)
{
  pthread_mutex_lock (&board->lock);
  const bool held = board->n_doorbells < (uint64_t) board->hold_to;
  pthread_mutex_unlock (&board->lock);
  return held;
}

static BoardState
execute (Ring *ring, const RingCommand *command)
{
  const uint64_t start = now_ns ();
  if (command->code != 0) {
    const BoardState state = count_run (ring);
    if (state != BOARD_OK)
      return state;
    if (!core_run (command, ring->fault))
      return BOARD_FAULT;
  } else if (command->n_bytes > 0)
    memmove ((void *) (uintptr_t) command->to, (const void *) (uintptr_t) command->from,
             command->n_bytes);
  if (command->out_ns != NULL)
    *command->out_ns = now_ns () - start;
  return BOARD_OK;
}

static BoardState
execute_all (Ring *ring, const Entry *entries)
{
  const long us = ring->board->latency_us;
  BoardState state = BOARD_OK;
  for (const Entry *entry = entries; entry != NULL && state == BOARD_OK; entry = entry->next)
    state = execute (ring, &entry->command);
  if (us > 0)
    nanosleep (&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
  return state;
}

static void
free_entries (Entry *entries)
{
  for (Entry *next; entries != NULL; entries = next) {
    next = entries->next;
    free (entries);
  }
}

static void *
run_ring (void *data)
{
  Ring *ring = data;
  pthread_mutex_lock (&ring->lock);
  for (;;) {
    while ((ring->n_done == ring->n_pushed || is_held (ring->board)) && !ring->ends)
      pthread_cond_wait (&ring->changed, &ring->lock);
    if (ring->n_done == ring->n_pushed)
      break;
    const Push push = ring->pushes[ring->n_done % RING_SLOTS];
    if (ring->state == BOARD_OK) { /* behind a fault nothing runs */
      pthread_mutex_unlock (&ring->lock);
      const BoardState state = execute_all (ring, push.entries);
      pthread_mutex_lock (&ring->lock);
      ring->state = state;
      if (state == BOARD_OK)
        ring->reached = push.fence;
    }
    free_entries (push.entries);
    ring->n_done++;
    pthread_cond_broadcast (&ring->changed);
  }
  pthread_mutex_unlock (&ring->lock);
  return NULL;
}

Ring *
board_ring_new (Board *board)
{
  Ring *ring = calloc (1, sizeof *ring);
  if (ring == NULL)
    return NULL;
  ring->board = board;
  ring->end = &ring->written;
  pthread_condattr_t clock;
  pthread_condattr_init (&clock);
  pthread_condattr_setclock (&clock, CLOCK_MONOTONIC);
  pthread_mutex_init (&ring->lock, NULL);
  pthread_cond_init (&ring->changed, &clock);
  pthread_condattr_destroy (&clock);
  sigset_t all, before; /* signals are the program's affair */
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  const int code = pthread_create (&ring->thread, NULL, run_ring, ring);
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  if (code == 0)
    return ring;
  free (ring);
  return NULL;
}

void
board_ring_free (Ring *ring)
{
  pthread_mutex_lock (&ring->lock);
  ring->ends = true;
  pthread_cond_broadcast (&ring->changed);
  pthread_mutex_unlock (&ring->lock);
  pthread_join (ring->thread, NULL);
  pthread_mutex_destroy (&ring->lock);
  pthread_cond_destroy (&ring->changed);
  free (ring);
}

bool
board_ring_write (Ring *ring, const RingCommand *command)
{
  const size_t n_bytes = command->n_variables * sizeof *command->variables;
  Entry *entry = malloc (sizeof *entry + n_bytes);
  if (entry == NULL)
    return false;
  *entry = (Entry){ .command = *command };
  if (n_bytes > 0)
    memcpy (entry->variables, command->variables, n_bytes);
  entry->command.variables = entry->variables;
  *ring->end = entry;
  ring->end = &entry->next;
  return true;
}

void
board_ring_doorbell (Ring *ring, uint64_t fence)
{
  pthread_mutex_lock (&ring->board->lock);
  ring->board->n_doorbells++;
  pthread_mutex_unlock (&ring->board->lock);
  pthread_mutex_lock (&ring->lock);
  while (ring->n_pushed - ring->n_done == RING_SLOTS)
    pthread_cond_wait (&ring->changed, &ring->lock);
  ring->pushes[ring->n_pushed++ % RING_SLOTS] = (Push){ ring->written, fence };
  ring->written = NULL;
  ring->end = &ring->written;
  pthread_cond_broadcast (&ring->changed);
  pthread_mutex_unlock (&ring->lock);
}

void
board_ring_rewind (Ring *ring)
{
  free_entries (ring->written);
  ring->written = NULL;
  ring->end = &ring->written;
}

/* Under the ring's lock. A board that is gone is so for every ring. */
static BoardState
state_of (Ring *ring)
{
  pthread_mutex_lock (&ring->board->lock);
  const bool is_lost = ring->board->is_lost;
  pthread_mutex_unlock (&ring->board->lock);
  return is_lost ? BOARD_GONE : ring->state;
}

uint64_t
board_ring_reached (Ring *ring, BoardState *out_state)
{
  pthread_mutex_lock (&ring->lock);
  const uint64_t reached = ring->reached;
  *out_state = state_of (ring);
  pthread_mutex_unlock (&ring->lock);
  return reached;
}

BoardState
board_ring_wait (Ring *ring, uint64_t fence, uint64_t timeout_ns)
{
  struct timespec until;
  const uint64_t now = now_ns (), end = timeout_ns < UINT64_MAX - now ? now + timeout_ns : 0;
  until.tv_sec = (time_t) (end / 1000000000u);
  until.tv_nsec = (long) (end % 1000000000u);
  BoardState state = BOARD_OK;
  pthread_mutex_lock (&ring->lock);
  while (ring->reached < fence && (state = state_of (ring)) == BOARD_OK) {
    const int code = end == 0 ? pthread_cond_wait (&ring->changed, &ring->lock)
                              : pthread_cond_timedwait (&ring->changed, &ring->lock, &until);
    if (code == ETIMEDOUT && ring->reached < fence && state_of (ring) == BOARD_OK) {
      state = BOARD_TIMEOUT;
      break;
    }
  }
  if (ring->reached >= fence)
    state = BOARD_OK;
  pthread_mutex_unlock (&ring->lock);
  return state;
}

const char *
board_ring_fault (const Ring *ring)
{
  return ring->fault;
}
