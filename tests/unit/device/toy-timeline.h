/* SPDX-License-Identifier: MIT
 *
 * toy-timeline.h: the toy device of test-timeline.c, whose kernel adds one to each byte of its second buffer, made
 * asynchronous by ../asynchronous.c. Where it is mapped, host and device have a view each, and only sync() carries
 * bytes from one to the other. */
#pragma once

#include "device/tiny-device.h"

typedef struct {
  gint n_buffers, n_syncs;
  gulong run_us;  /* a command takes as long */
  uint32_t flags; /* TINY_DEVICE_* */
  gboolean lacks_sync, lacks_reached, lacks_queues;
} Toy;
extern Toy toy;

/* As @toy says. */
TinyDevice *try_toy (GError **error);
/* One with nothing special about it. */
TinyDevice *open_toy (void);
