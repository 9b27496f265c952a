/* SPDX-License-Identifier: MIT
 *
 * cpu-caches.h: the sizes of caches that decisions may believe.
 *
 * Virtual machines and kernels report nothing, 16 KiB for all levels, or the last cache of a whole socket. Tiles, panels
 * and stores past the caches are chosen by these numbers, so each is kept within what processors have for one thread.
 * The ranges follow one another: no level is larger than the next. */
#pragma once

#include <stdint.h>

/* The size to go by where @reported is said of the data cache of @level, 1 to 3. Less than any processor has is taken for
 * what most have. */
static inline uint64_t
cpu_cache_believe (int level, uint64_t reported)
{
  static const struct {
    uint64_t least, typical, most;
  } ranges[] = {
    { 24 << 10, 32 << 10, 192 << 10 },
    { 256 << 10, 1 << 20, 2 << 20 },
    { 2 << 20, 8 << 20, 128 << 20 },
  };
  if (reported < ranges[level - 1].least)
    return ranges[level - 1].typical;
  return reported > ranges[level - 1].most ? ranges[level - 1].most : reported;
}
