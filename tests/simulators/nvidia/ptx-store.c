/* SPDX-License-Identifier: MIT
 *
 * ptx-store.c: the PTX of a cubin, kept in files that are named after the digest of its machine code.
 *
 * A cubin is ELF64 of machine 190. The digest is of the names and bytes of its sections ".text.KERNEL". */
#include "cuda-front.h"
#include <string.h>

enum {
  MACHINE_CUDA = 190,
  SECTION_BYTES = 64,
  HEADER_BYTES = 64,
  SECTION_NOBITS = 8,
  MAX_SECTIONS = 1 << 14,
  MAX_CUBIN = 1 << 28
};

static guint64
number_at (const guint8 *bytes, gsize offset, gsize n)
{
  guint64 value = 0;
  memcpy (&value, bytes + offset, n);
  return value;
}

static gboolean
is_cubin (const guint8 *bytes)
{
  return memcmp (bytes, "\177ELF\2\1", 6) == 0 && number_at (bytes, 18, 2) == MACHINE_CUDA
         && number_at (bytes, 58, 2) == SECTION_BYTES;
}

/* An image comes without its size, as to the driver: the table of sections, or what reaches farther, ends it. */
gsize
ptx_store_size (const void *image)
{
  const guint8 *bytes = image;
  if (!is_cubin (bytes))
    return 0;
  guint64 sections = number_at (bytes, 40, 8), n = number_at (bytes, 60, 2);
  guint64 programs
      = number_at (bytes, 32, 8) + number_at (bytes, 54, 2) * number_at (bytes, 56, 2);
  guint64 size = MAX (sections + n * SECTION_BYTES, programs);
  return sections < MAX_CUBIN && programs < MAX_CUBIN && n < MAX_SECTIONS ? size : 0;
}

gboolean
ptx_store_sm (const void *cubin, guint *out_sm)
{
  *out_sm = number_at (cubin, 48, 4) >> 8 & 0xff;
  return is_cubin (cubin);
}

typedef struct {
  guint64 name, kind, offset, n_bytes;
} Section;

/* FALSE where it is not inside of the file. */
static gboolean
read_section (const guint8 *bytes, gsize n_bytes, guint i, Section *section)
{
  guint64 at = number_at (bytes, 40, 8) + (guint64) i * SECTION_BYTES;
  if (at > n_bytes || n_bytes - at < SECTION_BYTES)
    return FALSE;
  *section = (Section){ number_at (bytes, at, 4), number_at (bytes, at + 4, 4),
                        number_at (bytes, at + 24, 8), number_at (bytes, at + 32, 8) };
  return section->kind == SECTION_NOBITS
         || (section->offset <= n_bytes && section->n_bytes <= n_bytes - section->offset);
}

static void
add_section (GChecksum *checksum,
             const guint8 *bytes,
             const Section *names,
             const Section *section)
{
  if (section->name >= names->n_bytes || section->kind == SECTION_NOBITS)
    return;
  const char *name = (const char *) bytes + names->offset + section->name;
  gsize n = strnlen (name, names->n_bytes - section->name);
  if (n <= 6 || memcmp (name, ".text.", 6) != 0)
    return;
  g_checksum_update (checksum, (const guint8 *) name, n);
  g_checksum_update (checksum, bytes + section->offset, section->n_bytes);
}

char *
ptx_store_digest (const void *cubin, gsize n_bytes)
{
  const guint8 *bytes = cubin;
  Section names, section;
  if (n_bytes < HEADER_BYTES || !is_cubin (bytes)
      || !read_section (bytes, n_bytes, number_at (bytes, 62, 2), &names))
    return NULL;
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  for (guint i = 0; i < number_at (bytes, 60, 2); i++) {
    if (!read_section (bytes, n_bytes, i, &section))
      return NULL;
    add_section (checksum, bytes, &names, &section);
  }
  return g_strdup (g_checksum_get_string (checksum));
}

char *
ptx_store_path (const char *digest)
{
  const char *folder = g_getenv ("SIMULATED_GPU_STORE");
  g_autofree char *name = g_strconcat (digest, ".ptx", NULL);
  return folder != NULL
             ? g_build_filename (folder, name, NULL)
             : g_build_filename (g_get_user_cache_dir (), "simulated-gpu", name, NULL);
}
