/* SPDX-License-Identifier: MIT
 *
 * tensor-shard.c: tensors from device to device, and on several at once.
 *
 * A tensor on several devices is an UNSHARD (ir/tiny-shard.h) and whatever is built on it. Its device is
 * the list of theirs, so that operands on different ones are found like those on different single devices. */
#include "base/tiny-guard.h"
#include "engine/tiny-history.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-shard.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-place.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-tensor-shard.h"
#include "tensor/tiny-view.h"

/* ---- another place ---- */
static TinyNode *
move_whole (TinyBuild *self, const TinyPlace *place)
{
  TinyNode *node = self->x[0];
  const char *here
      = self->device != NULL ? self->device : tiny_runtime_get_default_device (NULL);
  self->device = place->name;
  if (g_strcmp0 (here, place->name) == 0 || tiny_build_is_empty (node))
    return node;
  if (node->limits != NULL && tiny_devices_count (place->name) > 1)
    return tiny_build_fail (
        self, "a size that is a variable can be on one device only, not on %s", place->name);
  return tiny_node_to (self->graph, node, place->name, TINY_SHARD_WHOLE);
}

TinyTensor *
tiny_tensor_to (TinyTensor *self, const char *device_name)
{
  TinyBuild b;
  TinyNode *node = NULL;
  g_auto (TinyPlace) place = tiny_place_open (device_name);
  if (TINY_IS_TENSOR (self) && self->device == NULL)
    tiny_runtime_open_default_device ();
  if (tiny_build_begin_some (&b, "to", 1, &self, 0, TINY_TAKES_SYMBOLIC)
      && tiny_place_check (&b, &place))
    node = move_whole (&b, &place);
  return tiny_build_end (&b, node);
}

static TinyNode *
shard (TinyBuild *self, const TinyPlace *place, gint axis)
{
  TinyNode *node = self->x[0];
  guint along;
  if (place->devices->len == 1)
    return move_whole (self, place);
  if (axis == TINY_NO_AXIS) {
    self->device = place->name;
    return tiny_build_is_empty (node)
               ? node
               : tiny_node_to (self->graph, node, place->name, TINY_SHARD_WHOLE);
  }
  if (!tiny_build_axis (self, node, axis, &along))
    return NULL;
  if (!tiny_build_is_empty (node) && node->shape->v[along] < (gint64) place->devices->len) {
    g_autofree char *text = tiny_shape_to_string (node->shape);
    return tiny_build_fail (self, "axis %u of shape %s has no part for each of %s", along, text,
                            place->name);
  }
  self->device = place->name;
  return tiny_build_is_empty (node) ? node
                                    : tiny_node_to (self->graph, node, place->name, along);
}

TinyTensor *
tiny_tensor_shard (TinyTensor *self, const char *const *devices, gint axis)
{
  TinyBuild b;
  TinyNode *node = NULL;
  g_auto (TinyPlace) place = tiny_place_open_all (devices);
  if (TINY_IS_TENSOR (self) && self->device == NULL)
    tiny_runtime_open_default_device ();
  if (tiny_build_begin (&b, "shard", 1, &self) && tiny_place_check (&b, &place))
    node = shard (&b, &place, axis);
  return tiny_build_end (&b, node);
}

/* @self cut along the axis of @cut; where that is as long, at the same places. */
static TinyNode *
shard_like (TinyBuild *self, const TinyPlace *place, TinyTensor *other)
{
  const TinyNode *cut = tiny_place_find_cut (self, other);
  TinyNode *node = self->x[0];
  if (self->error != NULL)
    return NULL;
  if (cut == NULL || cut->arg == TINY_SHARD_WHOLE || node->shape->n == 0)
    return shard (self, place, TINY_NO_AXIS);
  if (cut->arg >= (gint64) node->shape->n || cut->shape->v[cut->arg] != node->shape->v[cut->arg]
      || tiny_build_is_empty (node))
    return shard (self, place, (gint) cut->arg);
  self->device = place->name;
  return tiny_node_to_like (self->graph, node, cut);
}

TinyTensor *
tiny_tensor_shard_like (TinyTensor *self, TinyTensor *other)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (!TINY_IS_TENSOR (other) || other->error != NULL) {
    tiny_build_begin (&b, "shard_like", 2, (TinyTensor *[]){ self, other });
    return tiny_build_end (&b, NULL);
  }
  g_autoptr (TinyTensor) owned = g_object_ref_sink (other);
  g_auto (TinyPlace) place = tiny_place_open (other->device);
  if (TINY_IS_TENSOR (self) && self->device == NULL)
    tiny_runtime_open_default_device ();
  if (tiny_build_begin (&b, "shard_like", 1, &self) && tiny_place_check (&b, &place))
    node = other->device == NULL ? b.x[0] : shard_like (&b, &place, other);
  return tiny_build_end (&b, node);
}

/* ---- in place ---- */

/* @self becomes what @moved, which it takes, is. */
static gboolean
become (TinyTensor *self, TinyTensor *moved, GError **error)
{
  g_autoptr (TinyTensor) owned = g_object_ref_sink (moved);
  if (moved->error != NULL) {
    g_propagate_error (error, g_error_copy (moved->error));
    return FALSE;
  }
  tiny_runtime_lock ();
  if (moved->root.node != self->root.node)
    tiny_view_forget (self); /* views of it stay where they are */
  if (moved->root.node != self->root.node && self->requires_grad) {
    tiny_history_leave (self->root.node, self->variable);
    tiny_tensor_set_node (
        moved, tiny_layout_unary (tiny_runtime_get_graph (), TINY_OP_DETACH, moved->root.node));
  }
  tiny_tensor_set_node (self, moved->root.node);
  self->device = moved->device;
  tiny_runtime_unlock ();
  return !self->requires_grad || tiny_tensor_own_memory (self, "to", error);
}

/* Where to: names, or a device where that is NULL. */
static gboolean
move (
    TinyTensor *self, const char *const *devices, const char *device, gint axis, GError **error)
{
  const gboolean floating = g_object_is_floating (self);
  if (floating)
    g_object_ref (self); /* what moves takes it */
  gboolean good = become (self,
                          devices != NULL ? tiny_tensor_shard (self, devices, axis)
                                          : tiny_tensor_to (self, device),
                          error);
  if (floating)
    g_object_force_floating (G_OBJECT (self));
  return good && (self->grad == NULL || move (self->grad, devices, device, axis, error));
}

gboolean
tiny_tensor_to_ (TinyTensor *self, const char *device, GError **error)
{
  tiny_return_error_unless (TINY_IS_TENSOR (self), error, FALSE, "no tensor given");
  return move (self, NULL, device, TINY_NO_AXIS, error);
}

gboolean
tiny_tensor_shard_ (TinyTensor *self, const char *const *devices, gint axis, GError **error)
{
  tiny_return_error_unless (TINY_IS_TENSOR (self), error, FALSE, "no tensor given");
  const char *const none[] = { NULL };
  return move (self, devices != NULL ? devices : none, NULL, axis, error);
}
