/* SPDX-License-Identifier: MIT
 *
 * cpu-caches.h: the sizes of caches that decisions may believe.
 *
 * Virtual machines and kernels report nothing, 16 KiB for all levels, or the last cache of a whole socket. Tiles, panels
 * and stores past the caches are chosen by these numbers, so each is kept within what processors have for one thread.
 * The ranges follow one another: no level is larger than the next. */
#pragma once

#include <stdint.h>

/* The size to go by where @reported is said of the data cache of @level, 1 to 3. 0 is unknown: the size that most have. */
static inline uint64_t
cpu_cache_believe (int level, uint64_t reported)
{
  static const struct {
    uint64_t least, typical, most;
  } ranges[] = {
    { 16 << 10, 32 << 10, 192 << 10 },
    { 256 << 10, 1 << 20, 4 << 20 },
    { 4 << 20, 8 << 20, 128 << 20 },
  };
  const uint64_t least = ranges[level - 1].least, most = ranges[level - 1].most;
  if (reported == 0)
    return ranges[level - 1].typical;
  return reported < least ? least : reported > most ? most : reported;
}
