/* SPDX-License-Identifier: MIT
 *
 * form.h: members of JSON objects that a stranger wrote, checked before they are read: those of certificates and of
 * what workers say. Errors: %TINY_ERROR_FORMAT naming the member. */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

typedef struct {
  const char *name;
  GType type; /* G_TYPE_NONE: an object; G_TYPE_INVALID: an array */
  gboolean is_optional;
} ConfMember;

/* @where stands before a member's name in the error. */
gboolean conf_form_check_members (
    JsonObject *object, const char *where, const ConfMember *members, guint n, GError **error);
/* Every element of the array @name, if it is there: an object with @members, or, without any, a text. */
gboolean conf_form_check_array (
    JsonObject *object, const char *name, const ConfMember *members, guint n, GError **error);
/* The text @name is one of @known, a list with NULL at its end. */
gboolean conf_form_check_word (JsonObject *object,
                               const char *name,
                               const char *const *known,
                               GError **error);

G_END_DECLS
