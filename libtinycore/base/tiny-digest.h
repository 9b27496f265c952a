/* SPDX-License-Identifier: MIT
 *
 * tiny-digest.h: 128 bits of a sequence of numbers, to tell structures apart in one process.
 *
 * Fast, and not for what others may choose: no cryptographic hash. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
  guint64 word[2];
} TinyDigest;

static inline void
tiny_digest_absorb (TinyDigest *self, guint64 value)
{
  self->word[0] = (self->word[0] ^ value) * G_GUINT64_CONSTANT (0x9E3779B97F4A7C15);
  self->word[0] ^= self->word[0] >> 29;
  self->word[1] = (self->word[1] + value) * G_GUINT64_CONSTANT (0xD6E8FEB86659FD93);
  self->word[1] ^= self->word[1] >> 31;
}

G_END_DECLS
