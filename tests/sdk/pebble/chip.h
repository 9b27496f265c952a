/* SPDX-License-Identifier: MIT
 *
 * chip.h: what the vendor has already: a chip with 64 MiB of memory and words of 32 bits, as its driver in the kernel shows
 * it. One program can have it; it runs one kernel at a time and has no clock and nothing that copies. The host sees its
 * memory through a cache of its own, line by line. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CHIP_MOST_BYTES = 64 << 20, CHIP_LINE = 64, CHIP_BUFFERS = 16, CHIP_VARIABLES = 16 };

typedef struct Chip Chip;

/* One step of a kernel: registers have the numbers of the steps that set them. */
typedef struct {
  uint8_t op, from, to,
      n_sources; /* TinyInstrOp, TinyDType of the first source and of the result */
  uint32_t sources[4];
  uint32_t value; /* of a constant, or a number */
  uint32_t other; /* the step that ends a block, or begins it */
} Step;

/* A kernel to be run. Addresses are the chip's. */
typedef struct {
  const Step *steps;
  uint32_t n_steps;
  uint32_t grid[3];
  uint32_t addresses[CHIP_BUFFERS], sizes[CHIP_BUFFERS];
  int64_t variables[CHIP_VARIABLES];
} Run;

typedef enum { CHIP_DONE, CHIP_FAULT, CHIP_GONE } ChipState;

uint32_t chip_get_bytes (void); /* of memory */
Chip *chip_open (void);         /* NULL: somebody has it */
void chip_close (Chip *chip);
/* Others can have it, and find it as new; its memory here is left as it is until chip_close(). */
void chip_let_go (Chip *chip);
/* Runs a kernel, and returns when the chip has said that it is done. After CHIP_GONE it does not answer any more. */
ChipState chip_run (Chip *chip, const Run *run);

/* The host's cached view of all of the memory, and what moves whole lines of it, from multiples of CHIP_LINE. */
uint8_t *chip_get_window (Chip *chip);
void chip_write_back (Chip *chip, uint32_t address, uint32_t n_bytes);
void chip_invalidate (Chip *chip, uint32_t address, uint32_t n_bytes);
/* One word past the cache. */
uint32_t chip_peek (Chip *chip, uint32_t address);
void chip_poke (Chip *chip, uint32_t address, uint32_t word);
