/* SPDX-License-Identifier: MIT
 *
 * faults-copies.c: uploads, downloads and copies that move other bytes than those they are told to. */
#include <unistd.h>

#include "broken.h"

static int
is (const TinyCommand *command, uint32_t type)
{
  return command->type == type;
}

/* The part of the command that is in a buffer: an upload's, a download's. */
static TinySpan *
span_of (TinyCommand *command)
{
  return is (command, TINY_COMMAND_DOWNLOAD) ? &command->src : &command->dst;
}

/* ---- offsets ---- */
EDIT (upload_to_start)
{
  const int wrong = is (command, TINY_COMMAND_UPLOAD) && command->dst.offset > 0;
  command->dst.offset = wrong ? 0 : command->dst.offset;
  return wrong;
}

EDIT (download_from_start)
{
  const int wrong = is (command, TINY_COMMAND_DOWNLOAD) && command->src.offset > 0;
  command->src.offset = wrong ? 0 : command->src.offset;
  return wrong;
}

EDIT (copy_from_start)
{
  const int wrong = is (command, TINY_COMMAND_COPY) && command->src.offset > 0;
  command->src.offset = wrong ? 0 : command->src.offset;
  return wrong;
}

EDIT (copy_to_start)
{
  const int wrong = is (command, TINY_COMMAND_COPY) && command->dst.offset > 0;
  command->dst.offset = wrong ? 0 : command->dst.offset;
  return wrong;
}

EDIT (copy_offsets_swapped)
{
  const uint64_t offset = command->src.offset;
  if (!is (command, TINY_COMMAND_COPY) || offset == command->dst.offset)
    return 0;
  command->src.offset = command->dst.offset;
  command->dst.offset = offset;
  return 1;
}

EDIT (offsets_of_16_bits)
{
  TinySpan *span = span_of (command);
  const int wrong = !is (command, TINY_COMMAND_DISPATCH) && span->offset > UINT16_MAX;
  span->offset = wrong ? span->offset & UINT16_MAX : span->offset;
  return wrong;
}

EDIT (offsets_of_words)
{
  TinySpan *span = span_of (command);
  const int wrong = !is (command, TINY_COMMAND_DISPATCH) && span->offset % 4 != 0;
  span->offset = wrong ? span->offset / 4 * 4 : span->offset;
  return wrong;
}

/* ---- sizes ---- */
static int
shorten (TinyCommand *command, uint32_t type, uint64_t by)
{
  if (!is (command, type) || by == 0)
    return 0;
  command->dst.n_bytes -= type != TINY_COMMAND_DOWNLOAD ? by : 0;
  command->src.n_bytes -= type != TINY_COMMAND_UPLOAD ? by : 0;
  return 1;
}

EDIT (upload_whole_words)
{
  return shorten (command, TINY_COMMAND_UPLOAD, command->dst.n_bytes % 4);
}

EDIT (download_last_byte)
{
  return shorten (command, TINY_COMMAND_DOWNLOAD, command->src.n_bytes > 1);
}

EDIT (copy_whole_lines)
{
  return shorten (command, TINY_COMMAND_COPY, command->src.n_bytes % 64);
}

EDIT (copy_whole_pages)
{
  return shorten (command, TINY_COMMAND_COPY,
                  command->src.n_bytes > 65536 ? command->src.n_bytes % 4096 : 0);
}

EDIT (upload_of_one_mib)
{
  const uint64_t most = 1 << 20, n_bytes = command->dst.n_bytes;
  return shorten (command, TINY_COMMAND_UPLOAD, n_bytes > most ? n_bytes - most : 0);
}

/* Also writes the word behind what it is to write. */
SUBMIT (upload_beyond)
{
  TINY_TRY (inside.device->submit (device, queue, submit, error));
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    const TinyCommand *command = &submit->commands[i];
    const uint64_t end = command->dst.offset + command->dst.n_bytes;
    static const char zeros[4];
    if (!is (command, TINY_COMMAND_UPLOAD) || end % 4 == 0
        || end / 4 * 4 + 4 > sizes_get (command->dst.buffer))
      continue;
    TinyCommand more = *command;
    more.dst.offset = end;
    more.dst.n_bytes = 4 - end % 4;
    more.host = (void *) zeros;
    broken_note ();
    TINY_TRY (submit_others (device, queue, submit, &more, 1, error));
  }
  return TINY_STATUS_OK;
}

SUBMIT (download_beyond)
{
  TINY_TRY (inside.device->submit (device, queue, submit, error));
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    const TinyCommand *command = &submit->commands[i];
    const uint64_t n = command->src.n_bytes;
    if (!is (command, TINY_COMMAND_DOWNLOAD) || n % 4 == 0)
      continue;
    memset ((char *) command->host + n, 0, 4 - n % 4);
    broken_note ();
  }
  return TINY_STATUS_OK;
}

/* A copy of no bytes fails. */
SUBMIT (nothing_fails)
{
  for (uint32_t i = 0; i < submit->n_commands; i++)
    if (!is (&submit->commands[i], TINY_COMMAND_DISPATCH)
        && span_of ((TinyCommand *) &submit->commands[i])->n_bytes == 0) {
      broken_note ();
      return tiny_fail (error, TINY_STATUS_INVALID, "a copy of 0 bytes");
    }
  return inside.device->submit (device, queue, submit, error);
}

/* ---- what is seen ---- */

/* A line of the cache that a download left is what the next one of this buffer gives. */
SUBMIT (stale_line)
{
  enum { LINE = 64, SLOTS = 256 };
  static _Thread_local struct {
    const void *buffer;
    uint64_t offset;
    char bytes[LINE];
  } lines[SLOTS];
  TINY_TRY (inside.device->submit (device, queue, submit, error));
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    const TinyCommand *command = &submit->commands[i];
    if (!is (command, TINY_COMMAND_DOWNLOAD) || command->src.n_bytes < LINE)
      continue;
    char *last = (char *) command->host + command->src.n_bytes - LINE, now[LINE];
    const uint64_t offset = command->src.offset + command->src.n_bytes - LINE;
    const unsigned slot = (unsigned) (((uintptr_t) command->src.buffer >> 4) % SLOTS);
    memcpy (now, last, LINE);
    if (lines[slot].buffer == command->src.buffer && lines[slot].offset == offset
        && memcmp (lines[slot].bytes, now, LINE) != 0) {
      memcpy (last, lines[slot].bytes, LINE);
      broken_note ();
    }
    lines[slot].buffer = command->src.buffer;
    lines[slot].offset = offset;
    memcpy (lines[slot].bytes, now, LINE);
  }
  return TINY_STATUS_OK;
}

/* The host's bytes of an upload are overwritten: it was to be read only. */
SUBMIT (upload_swaps_bytes)
{
  TINY_TRY (inside.device->submit (device, queue, submit, error));
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    const TinyCommand *command = &submit->commands[i];
    if (is (command, TINY_COMMAND_UPLOAD) && command->dst.n_bytes >= 16) {
      memset (command->host, 0, 1);
      broken_note ();
    }
  }
  return TINY_STATUS_OK;
}

EDIT (second_half_twice)
{
  /* Copies above 64 KiB go in two halves, of which the second begins where the first did. */
  const uint64_t n = command->src.n_bytes;
  if (!is (command, TINY_COMMAND_DOWNLOAD) || n <= 65536)
    return 0;
  command->src.n_bytes = n / 2;
  return 1;
}

#define CASES             "memory/*|order/*"
#define SUBMITS(function) .device = { .submit = function }, .cases = CASES
static const Fault rows[] = {
  /* clang-format off */
  { "upload-offset", "uploads ignore their offset", "an offset forgotten in one of three paths", SUBMITS (upload_to_start) },
  { "download-offset", "downloads ignore their offset", "an offset forgotten in one of three paths", SUBMITS (download_from_start) },
  { "copy-source-offset", "copies ignore their source's offset", "an offset forgotten in one of three paths", SUBMITS (copy_from_start) },
  { "copy-target-offset", "copies ignore their target's offset", "an offset forgotten in one of three paths", SUBMITS (copy_to_start) },
  { "copy-offsets-swapped", "copies swap their offsets", "drivers whose calls take source first, or target first", SUBMITS (copy_offsets_swapped) },
  { "offset-16-bits", "offsets of copies have 16 bits", "DMA descriptors with short fields", SUBMITS (offsets_of_16_bits) },
  { "offset-words", "offsets of copies are rounded down to words", "DMA engines that move words", SUBMITS (offsets_of_words) },
  { "upload-words", "uploads leave out the bytes behind the last word", "DMA engines that move words", SUBMITS (upload_whole_words) },
  { "download-last-byte", "downloads leave out the last byte", "a size and a last index confused", SUBMITS (download_last_byte) },
  { "copy-lines", "copies leave out what is no whole cache line", "vector loops without the tail", SUBMITS (copy_whole_lines) },
  { "copy-pages", "large copies leave out what is no whole page", "pages handed to a DMA engine", SUBMITS (copy_whole_pages) },
  { "upload-1-mib", "uploads stop after 1 MiB", "a staging buffer's size", SUBMITS (upload_of_one_mib) },
  { "download-half", "large downloads stop half-way", "transfers in two parts", SUBMITS (second_half_twice) },
  { "upload-beyond", "uploads write zeros behind the last byte", "sizes rounded up to words", .device = { .alloc = sizes_alloc, .free = sizes_free, .submit = upload_beyond }, .cases = CASES },
  { "download-beyond", "downloads write zeros behind the last byte", "sizes rounded up to words", SUBMITS (download_beyond) },
  { "copy-of-nothing", "copies of 0 bytes fail", "drivers that refuse a size of 0", SUBMITS (nothing_fails) },
  { "stale-line", "a download gives a line of the one before", "caches that are not invalidated", SUBMITS (stale_line) },
  { "upload-writes-host", "uploads change the host's memory", "byte swapping in place", SUBMITS (upload_swaps_bytes) },
  /* clang-format on */
};
FAULT_TABLE (faults_copies);
