/* SPDX-License-Identifier: MIT
 *
 * tiny-device-spec.h: the grammar of DEV=.
 *
 *   DEV      = "help" | chain { ";" chain }             several devices, the first is the default
 *   chain    = target { "|" target }                    alternatives, the first that works
 *   target   = [ MODE "+" ] NAME [ ":" selector ] [ ":" RENDERER [ ":" ARCH ] ] [ "?" option { "&" option } ]
 *   selector = INDEX | FIRST "-" LAST | "*" | "@" ID
 *   option   = KEY "=" VALUE
 *
 * An empty RENDERER is the default one: CPU::x86_64,znver2. An ID may contain colons and ends at a
 * double one: CUDA:@pci-0000:c1:00.0::PTX. Where a backend takes foreign renderers, RENDERER may
 * be BACKEND or BACKEND:RENDERER: NULL:CPU:CLANG:x86_64. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum {
  TINY_SELECT_NONE, /* nothing said: the first */
  TINY_SELECT_RANGE,
  TINY_SELECT_ALL,
  TINY_SELECT_ID,
} TinySelect;

typedef struct {
  char *mode; /* what stands before '+', or NULL */
  char *name;
  TinySelect select;
  guint first, last; /* RANGE; equal for an index */
  char *id;          /* ID */
  char *fields[3];   /* what follows, up to three: RENDERER ARCH, or BACKEND RENDERER ARCH */
  guint n_fields;
  char **options; /* "key=value", NULL-terminated, or NULL */
  char *text;     /* the target as written */
} TinyDeviceTarget;

typedef struct {
  gboolean is_help;
  GPtrArray *chains; /* of GPtrArray of TinyDeviceTarget */
} TinyDeviceSpec;

/* Errors: %TINY_ERROR_INVALID with the text and a mark under the offending character. */
TinyDeviceSpec *tiny_device_spec_parse (const char *text, GError **error);
void tiny_device_spec_free (TinyDeviceSpec *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyDeviceSpec, tiny_device_spec_free)

G_END_DECLS
