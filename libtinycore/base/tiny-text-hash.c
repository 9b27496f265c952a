/* SPDX-License-Identifier: MIT
 *
 * tiny-text-hash.c: eight bytes at a time, folded from a product of 128 bits. */
#include "base/tiny-text-hash.h"

#include <string.h>
#include <sys/random.h>

guint64
tiny_hash_secret (void)
{
  static gsize secret = 0;
  if (g_once_init_enter (&secret)) {
    guint64 drawn = 0;
    if (getrandom (&drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn)
      drawn = (guint64) g_get_monotonic_time () ^ GPOINTER_TO_SIZE (&drawn);
    g_once_init_leave (&secret, (gsize) (drawn | 1));
  }
  return secret;
}

guint
tiny_text_hash (gconstpointer text)
{
  const guint64 secret = tiny_hash_secret ();
  gsize left = strlen (text);
  guint64 hash = secret ^ left;
  for (const char *at = text; left > 0;) {
    const gsize n = MIN (left, sizeof (guint64));
    guint64 word = 0;
    memcpy (&word, at, n);
    const unsigned __int128 product
        = (unsigned __int128) (hash ^ word ^ G_GUINT64_CONSTANT (0x9E3779B97F4A7C15)) * secret;
    hash = (guint64) product ^ (guint64) (product >> 64);
    at += n;
    left -= n;
  }
  return (guint) (hash ^ (hash >> 32));
}
