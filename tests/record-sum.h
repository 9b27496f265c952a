/* SPDX-License-Identifier: MIT
 *
 * record-sum.h: the checksum of a record's frames, for tests that make some. */
#pragma once

#include <string.h>

#include <glib.h>

/* FNV-1a of whole words, as records have it. */
static inline guint64
sum_words (const void *data, gsize size)
{
  guint64 sum = G_GUINT64_CONSTANT (0xcbf29ce484222325);
  for (gsize i = 0; i < size; i += 8) {
    guint64 word;
    memcpy (&word, (const guint8 *) data + i, sizeof word);
    sum = (sum ^ GUINT64_FROM_LE (word)) * G_GUINT64_CONSTANT (0x100000001b3);
    sum ^= sum >> 32;
  }
  return sum;
}
