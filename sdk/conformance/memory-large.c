/* SPDX-License-Identifier: MIT
 *
 * memory-large.c: transfers of more than a staging buffer holds, from and to every kind of offset, and host memory at
 * any address. */
#include "memory.h"

enum { WHOLE = 3 << 20, ZONE = 64 };

typedef enum { LARGE_UPLOAD, LARGE_DOWNLOAD, LARGE_COPY } Direction;

/* The first of no offset, the last up to the last byte of the buffer. */
static const struct {
  const char *name;
  guint64 offset;
} places[] = { { "start", 0 },         { "unit", 1 },         { "line", 64 },
               { "page", 4096 },       { "64k-unit", 65537 }, { "1m", 1 << 20 },
               { "1m-line", 1048640 }, { "end", G_MAXUINT64 } };

/* @n bytes from @at on are @other's from @other_first on, all else is @salt's. */
static gboolean
check_whole (ConfRaw *raw,
             TinyPluginBuffer *buffer,
             guint8 *room,
             guint64 salt,
             guint64 at,
             guint64 n,
             guint64 other,
             guint64 other_first)
{
  return conf_raw_download (raw, buffer, 0, room, WHOLE)
         && conf_check_fill (raw->trial, room, at, salt, 0, "before a large transfer")
         && conf_check_fill (raw->trial, room + at, n, other, other_first, "a large transfer")
         && conf_check_fill (raw->trial, room + at + n, WHOLE - at - n, salt, at + n,
                             "behind a large transfer");
}

static gboolean
transfer (ConfRaw *raw, Direction direction, guint64 at, guint64 n, TinyPluginBuffer **buffers)
{
  g_autofree guint8 *room = g_malloc (WHOLE + ZONE);
  const guint64 from = WHOLE - n - conf_raw_round (raw, at / 3 % (WHOLE - n));
  switch (direction) {
  case LARGE_UPLOAD:
    conf_fill (room, n, n);
    return conf_raw_upload (raw, buffers[0], at, room, n)
           && check_whole (raw, buffers[0], room, 1, at, n, n, 0);
  case LARGE_DOWNLOAD:
    conf_fill (room + n, ZONE, 3);
    return conf_raw_download (raw, buffers[0], at, room, n)
           && conf_check_fill (raw->trial, room, n, 1, at, "a large download")
           && conf_check_fill (raw->trial, room + n, ZONE, 3, 0, "behind a large download");
  default:
    return conf_raw_copy (raw, buffers[0], at, buffers[1], from, n)
           && check_whole (raw, buffers[0], room, 1, at, n, 2, from);
  }
}

/* args: the direction, the place. */
static void
run_large (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  static const guint64 sizes[] = { 65536 + 192, (1 << 20) + 8256 };
  const Direction direction = (Direction) self->args[0];
  const guint64 offset = places[self->args[1]].offset;
  TinyPluginBuffer *buffers[2] = { NULL };
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  g_autofree guint8 *data = g_malloc (WHOLE);
  gboolean good = TRUE;
  for (guint size = 0; size < G_N_ELEMENTS (sizes) && good; size++) {
    const guint64 n = sizes[size];
    const guint64 at = offset == G_MAXUINT64 ? WHOLE - n : conf_raw_round (&raw, offset);
    for (guint i = 0; i < (direction == LARGE_COPY ? 2 : 1) && good; i++) {
      if (buffers[i] == NULL)
        buffers[i] = conf_raw_alloc (&raw, WHOLE);
      conf_fill (data, WHOLE, i + 1);
      good = buffers[i] != NULL && conf_raw_upload (&raw, buffers[i], 0, data, WHOLE);
    }
    good = good && transfer (&raw, direction, at, n, buffers);
  }
  for (guint i = 0; i < 2; i++)
    conf_raw_free (&raw, buffers[i]);
  conf_raw_end (&raw);
}

/* Host memory that is aligned to nothing. */
static void
run_host (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { N = 131072 };
  static const guint shifts[] = { 0, 1, 2, 4, 8, 12, 16, 33 };
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  g_autofree guint8 *up = g_malloc (N + 2 * ZONE), *down = g_malloc (N + 2 * ZONE);
  TinyPluginBuffer *buffer = conf_raw_alloc (&raw, N);
  for (guint i = 0; i < G_N_ELEMENTS (shifts) && buffer != NULL; i++) {
    guint8 *from = up + shifts[i], *to = down + ZONE - shifts[i];
    conf_fill (up, N + 2 * ZONE, 9);
    conf_fill (from, N, i);
    conf_fill (down, N + 2 * ZONE, 8);
    if (!conf_raw_upload (&raw, buffer, 0, from, N)
        || !conf_raw_download (&raw, buffer, 0, to, N)
        || !conf_check_fill (trial, to, N, i, 0, "from and to host memory at any address")
        || !conf_check_fill (trial, down, (gsize) (to - down), 8, 0, "host memory before it")
        || !conf_check_fill (trial, to + N, ZONE, 8, (guint64) (to + N - down),
                             "host memory behind it"))
      break;
  }
  conf_raw_free (&raw, buffer);
  conf_raw_end (&raw);
}

void
conf_list_large (ConfList *out)
{
  static const char *const directions[] = { "upload", "download", "copy" };
  for (guint d = 0; d < G_N_ELEMENTS (directions); d++)
    for (guint i = 0; i < G_N_ELEMENTS (places); i++)
      conf_list_add (out, &(const ConfCase){ .run = run_large, .args = { d, i } },
                     "large/%s/%s", directions[d], places[i].name);
  conf_list_add (out, &(const ConfCase){ .run = run_host }, "host-address");
}
