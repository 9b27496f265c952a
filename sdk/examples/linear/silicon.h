/* SPDX-License-Identifier: MIT
 *
 * silicon.h: what stands for the hardware, and for the part of its driver that is in the kernel: a board
 * with memory and command rings. A vendor has this already; here silicon.c simulates it.
 *
 * A ring's commands are executed one after the other by the board, while the program goes on. What the host
 * writes in a window to the board's memory stays in the host's caches until it is cleaned; what it reads there may
 * be old until it is invalidated. Every function may be called from any thread, those that write to a ring from
 * one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tiny-sample-isa.h"

typedef struct Board Board;
typedef struct Ring Ring;

typedef enum { BOARD_OK, BOARD_TIMEOUT, BOARD_FAULT, BOARD_GONE } BoardState;

Board *board_open (void); /* NULL: no memory */
void board_close (Board *board);
bool board_has_windows (const Board *board);
uint64_t board_memory_bytes (const Board *board);

/* Addresses of the board's memory, multiples of 64; 0: full. */
uint64_t board_alloc (Board *board, uint64_t n_bytes);
void board_free (Board *board, uint64_t address);
/* The same with the bytes of @data in it. */
uint64_t board_upload (Board *board, const void *data, uint64_t n_bytes);
/* How the host sees memory that begins at @address; NULL: not at all. */
void *board_window (Board *board, uint64_t address);
void board_clean (Board *board, uint64_t address, uint64_t offset, uint64_t n_bytes);
void board_invalidate (Board *board, uint64_t address, uint64_t offset, uint64_t n_bytes);

/* What a ring understands. Addresses are the board's or the host's. */
typedef struct {
  uint64_t to, from, n_bytes; /* a copy, where there is no code */
  uint64_t code;
  uint32_t n_instrs, n_stash, n_buffers, n_variables;
  uint32_t grid[3], group[3];
  uint64_t buffers[SAMPLE_BUFFERS], sizes[SAMPLE_BUFFERS];
  const int64_t *variables;
  uint64_t *out_ns; /* NULL, or where to write what it took */
} RingCommand;

Ring *board_ring_new (Board *board);
void board_ring_free (Ring *ring); /* after what is running */
/* Writes a command, with its variables, behind those that are there. FALSE: no memory. */
bool board_ring_write (Ring *ring, const RingCommand *command);
/* Has the board execute what was written since; the ring's fence then becomes @fence. */
void board_ring_doorbell (Ring *ring, uint64_t fence);
/* Takes back what was written since. */
void board_ring_rewind (Ring *ring);
/* The fence that was reached, and whether the ring goes on. A fault stops it for good. */
uint64_t board_ring_reached (Ring *ring, BoardState *out_state);
BoardState board_ring_wait (Ring *ring, uint64_t fence, uint64_t timeout_ns);
/* After BOARD_FAULT: what it was. */
const char *board_ring_fault (const Ring *ring);
