/* SPDX-License-Identifier: MIT
 *
 * chip.c: simulates the chip. A file that is locked, CHIP_LOCK, stands for the one program that can have it.
 * CHIP_FAULT_AT=n and CHIP_GONE_AT=n have the nth kernel of this process fail, or the chip not answer any more.
 * CHIP_MIB=n makes a smaller chip, CHIP_SPEED=n a slow one, which computes n floats a second;
 * all else that a kernel does is four times as fast. */
#include "chip.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tiny-plugin.h"

struct Chip {
  int lock;
  bool is_gone;
  uint8_t *memory, *window;
  double owed_ns; /* that its kernels take, beyond what it has waited */
};

enum { STEPS_OF_FLOAT = 4 };

static uint32_t n_runs; /* of this process */

static double
read_number (const char *variable, double otherwise)
{
  const char *text = getenv (variable);
  return text != NULL && atof (text) > 0 ? atof (text) : otherwise;
}

uint32_t
chip_get_bytes (void)
{
  const double bytes = read_number ("CHIP_MIB", CHIP_MOST_BYTES >> 20) * (1 << 20);
  return bytes < CHIP_MOST_BYTES ? (uint32_t) bytes / CHIP_LINE * CHIP_LINE : CHIP_MOST_BYTES;
}

static void *
map_memory (void)
{
  void *memory = mmap (NULL, CHIP_MOST_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory != MAP_FAILED ? memory : NULL;
}

static bool
lock_chip (Chip *chip)
{
  const char *path = getenv ("CHIP_LOCK");
  chip->lock
      = open (path != NULL ? path : "/tmp/chip.lock", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  return chip->lock >= 0 && flock (chip->lock, LOCK_EX | LOCK_NB) == 0;
}

Chip *
chip_open (void)
{
  Chip *chip = calloc (1, sizeof *chip);
  if (chip == NULL)
    return NULL;
  if (lock_chip (chip) && (chip->memory = map_memory ()) != NULL
      && (chip->window = map_memory ()) != NULL)
    return chip;
  chip_close (chip);
  return NULL;
}

void
chip_let_go (Chip *chip)
{
  if (chip->lock >= 0)
    close (chip->lock);
  chip->lock = -1;
}

void
chip_close (Chip *chip)
{
  if (chip->memory != NULL)
    munmap (chip->memory, CHIP_MOST_BYTES);
  if (chip->window != NULL)
    munmap (chip->window, CHIP_MOST_BYTES);
  chip_let_go (chip);
  free (chip);
}

uint8_t *
chip_get_window (Chip *chip)
{
  return chip->window;
}

/* All bytes of the lines that hold some of these. */
static void
move_lines (uint8_t *to, const uint8_t *from, uint32_t address, uint32_t n_bytes)
{
  const uint32_t first = address / CHIP_LINE * CHIP_LINE;
  const uint32_t end = (address + n_bytes + CHIP_LINE - 1) / CHIP_LINE * CHIP_LINE;
  if (n_bytes > 0)
    memcpy (to + first, from + first, end - first);
}

void
chip_write_back (Chip *chip, uint32_t address, uint32_t n_bytes)
{
  move_lines (chip->memory, chip->window, address, n_bytes);
}

void
chip_invalidate (Chip *chip, uint32_t address, uint32_t n_bytes)
{
  move_lines (chip->window, chip->memory, address, n_bytes);
}

uint32_t
chip_peek (Chip *chip, uint32_t address)
{
  uint32_t word;
  memcpy (&word, chip->memory + address, sizeof word);
  return word;
}

void
chip_poke (Chip *chip, uint32_t address, uint32_t word)
{
  memcpy (chip->memory + address, &word, sizeof word);
}

/* ---- kernels ---- */
static float
as_float (uint32_t word)
{
  float value;
  memcpy (&value, &word, sizeof value);
  return value;
}

static uint32_t
as_word (float value)
{
  uint32_t word;
  memcpy (&word, &value, sizeof word);
  return word;
}

static uint32_t
convert (uint32_t x, unsigned from, unsigned to)
{
  if (from == to)
    return x;
  if (to == TINY_DTYPE_BOOL)
    return from == TINY_DTYPE_F32 ? as_float (x) != 0 : x != 0;
  if (to == TINY_DTYPE_F32)
    return as_word (from == TINY_DTYPE_I32 ? (float) (int32_t) x : (float) x);
  if (from != TINY_DTYPE_F32)
    return x;
  const double value = (double) as_float (x);
  if (to == TINY_DTYPE_I32)
    return value >= 0x1p31    ? INT32_MAX
           : value >= -0x1p31 ? (uint32_t) (int32_t) value
                              : (uint32_t) INT32_MIN;
  return value >= 0x1p32 ? UINT32_MAX : value > -1 ? (uint32_t) value : 0;
}

static uint32_t
compute (const Step *step, uint32_t x, uint32_t y, uint32_t z)
{
  const bool is_float = step->from == TINY_DTYPE_F32, is_bool = step->from == TINY_DTYPE_BOOL;
  switch (step->op) {
  case TINY_INSTR_CAST:
    return convert (x, step->from, step->to);
  case TINY_INSTR_BITCAST:
    return x;
  case TINY_INSTR_ADD:
    return is_float ? as_word (as_float (x) + as_float (y)) : is_bool ? x | y : x + y;
  case TINY_INSTR_MUL:
    return is_float ? as_word (as_float (x) * as_float (y)) : is_bool ? x & y : x * y;
  case TINY_INSTR_FDIV:
    return as_word (as_float (x) / as_float (y));
  case TINY_INSTR_CMPLT:
    return is_float                       ? as_float (x) < as_float (y)
           : step->from == TINY_DTYPE_I32 ? (int32_t) x < (int32_t) y
                                          : x < y;
  case TINY_INSTR_AND:
    return x & y;
  case TINY_INSTR_OR:
    return x | y;
  case TINY_INSTR_XOR:
    return x ^ y;
  case TINY_INSTR_SHL:
    return x << (y & 31);
  case TINY_INSTR_SHR:
    return step->from == TINY_DTYPE_I32 ? (uint32_t) ((int32_t) x >> (y & 31)) : x >> (y & 31);
  default: /* WHERE */
    return x ? y : z;
  }
}

typedef struct {
  const Chip *chip;
  const Run *run;
  uint32_t *registers;
  uint32_t at[3];
  uint64_t n_steps; /* that took time: a float is four */
} Core;

/* The word of a buffer that a step names, or NULL: outside of it. */
static uint8_t *
find_word (const Core *core, const Step *step)
{
  const uint32_t buffer = core->run->steps[step->sources[0]].value;
  const uint32_t index = core->registers[step->sources[1]];
  return index < core->run->sizes[buffer] / 4
             ? core->chip->memory + core->run->addresses[buffer] + (uint64_t) index * 4
             : NULL;
}

static bool
load (const Core *core, const Step *step, uint32_t *out)
{
  const bool is_register = step->n_sources == 1;
  if (is_register)
    *out = core->registers[step->sources[0]];
  else if (step->n_sources > 2 && core->registers[step->sources[2]] == 0)
    *out = core->registers[step->sources[3]];
  else {
    const uint8_t *word = find_word (core, step);
    if (word == NULL)
      return false;
    memcpy (out, word, sizeof *out);
  }
  return true;
}

static bool
store (const Core *core, const Step *step)
{
  const bool is_register = core->run->steps[step->sources[0]].op == TINY_INSTR_REGISTER;
  if (is_register)
    core->registers[step->sources[0]] = core->registers[step->sources[1]];
  else if (step->n_sources < 4 || core->registers[step->sources[3]] != 0) {
    uint8_t *word = find_word (core, step);
    if (word == NULL)
      return false;
    memcpy (word, &core->registers[step->sources[2]], 4);
  }
  return true;
}

/* One point of the grid. */
static bool
run_point (Core *core)
{
  const Run *run = core->run;
  uint32_t *registers = core->registers;
  for (uint32_t i = 0; i < run->n_steps; i++) {
    const Step *step = &run->steps[i];
    switch (step->op) {
    case TINY_INSTR_CONST:
      registers[i] = step->value;
      break;
    case TINY_INSTR_VARIABLE:
      registers[i] = (uint32_t) run->variables[step->value];
      break;
    case TINY_INSTR_GRID:
      registers[i] = core->at[step->value];
      break;
    case TINY_INSTR_PARAM:
    case TINY_INSTR_REGISTER:
    case TINY_INSTR_ENDIF:
      break;
    case TINY_INSTR_LOAD:
      core->n_steps++;
      if (!load (core, step, &registers[i]))
        return false;
      break;
    case TINY_INSTR_STORE:
      core->n_steps++;
      if (!store (core, step))
        return false;
      break;
    case TINY_INSTR_RANGE:
      registers[i] = 0;
      if ((int32_t) registers[step->sources[0]] <= 0)
        i = step->other;
      break;
    case TINY_INSTR_END:
      if (++registers[step->other] < registers[run->steps[step->other].sources[0]])
        i = step->other;
      break;
    case TINY_INSTR_IF:
      if (registers[step->sources[0]] == 0)
        i = step->other;
      break;
    default:
      core->n_steps += step->from == TINY_DTYPE_F32 ? STEPS_OF_FLOAT : 1;
      registers[i] = compute (step, registers[step->sources[0]], registers[step->sources[1]],
                              registers[step->sources[2]]);
    }
  }
  return true;
}

static bool
is_asked (const char *variable)
{
  const char *text = getenv (variable);
  return text != NULL && (uint32_t) atoi (text) == n_runs;
}

/* A wait is rounded up by the system, so that many short ones are waited for as one. */
static void
wait_for (Chip *chip, uint64_t n_steps)
{
  enum { LEAST_NS = 1000000 };
  const double speed = read_number ("CHIP_SPEED", 0);
  struct timespec begin, end;
  chip->owed_ns += speed > 0 ? (double) n_steps / STEPS_OF_FLOAT / speed * 1e9 : 0;
  if (chip->owed_ns < LEAST_NS)
    return;
  const uint64_t ns = (uint64_t) chip->owed_ns;
  const struct timespec wanted = { (time_t) (ns / 1000000000), (long) (ns % 1000000000) };
  clock_gettime (CLOCK_MONOTONIC, &begin);
  nanosleep (&wanted, NULL);
  clock_gettime (CLOCK_MONOTONIC, &end);
  chip->owed_ns
      -= (double) (end.tv_sec - begin.tv_sec) * 1e9 + (double) (end.tv_nsec - begin.tv_nsec);
}

ChipState
chip_run (Chip *chip, const Run *run)
{
  n_runs++;
  chip->is_gone = chip->is_gone || is_asked ("CHIP_GONE_AT");
  if (chip->is_gone)
    return CHIP_GONE;
  if (is_asked ("CHIP_FAULT_AT"))
    return CHIP_FAULT;
  Core core = { .chip = chip,
                .run = run,
                .registers = malloc ((run->n_steps + 1) * sizeof (uint32_t)) };
  bool good = core.registers != NULL;
  for (core.at[2] = 0; good && core.at[2] < run->grid[2]; core.at[2]++)
    for (core.at[1] = 0; good && core.at[1] < run->grid[1]; core.at[1]++)
      for (core.at[0] = 0; good && core.at[0] < run->grid[0]; core.at[0]++)
        good = run_point (&core);
  free (core.registers);
  wait_for (chip, core.n_steps);
  return good ? CHIP_DONE : CHIP_FAULT;
}
