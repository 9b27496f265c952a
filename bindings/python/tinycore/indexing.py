# SPDX-License-Identifier: MIT
"""t[…] and t[…] = …: slices, new axes, positions, lists and tensors of positions, masks.

Slices, new axes and single positions are movement: nothing is copied. Lists and tensors of positions are looked up,
in NumPy's way: they broadcast with each other, and what they make takes the place of their axes, or goes first where
slices stand between them."""
from operator import index

from .convert import tensor_of
from .data import BOOL
from .errors import InvalidError, checked
from .library import Tiny

Base = Tiny.Tensor
BEGIN, END = -(1 << 63), (1 << 63) - 1  # TINY_SLICE_BEGIN, TINY_SLICE_END: open stops
MOST = 1 << 62  # positions beyond are beyond any axis


def is_lookup(item):
    return isinstance(item, (Base, list)) or hasattr(item, "__array__") and getattr(item, "ndim", 0) > 0


def expand_ellipsis(items, n_dims):
    """Items for all axes; there is one Ellipsis at most."""
    used = 0
    for item in items:
        if item is None or item is Ellipsis:
            continue
        used += mask_rank(item)
    places = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(places) > 1:
        raise IndexError("an index has one … at most")
    if used > n_dims:
        raise IndexError(f"{used} axes are indexed, the tensor has {n_dims}")
    rest = [slice(None)] * (n_dims - used)
    if not places:
        return [*items, *rest]
    return [*items[:places[0]], *rest, *items[places[0] + 1:]]


def mask_rank(item):
    """How many axes an item is about."""
    if isinstance(item, Base) and item.get_dtype() == BOOL.value:
        return item.get_n_dims()
    return 1


def bound(value, default):
    if value is None:
        return default
    return max(-MOST, min(MOST, index(value)))


def take_slice(tensor, axis, item):
    step = bound(item.step, 1)
    if step == 0:
        raise ValueError("a slice's step is not 0")
    start = bound(item.start, 0 if step > 0 else MOST)
    stop = bound(item.stop, END if step > 0 else BEGIN)
    return checked(slice_axis(tensor, axis, start, stop, step))


slice_axis, squeeze, unsqueeze = Base.slice, Base.squeeze, Base.unsqueeze


def take_position(tensor, axis, position, size, place):
    if not -size <= position < size:
        raise IndexError(f"index {position} is outside of axis {place}, whose size is {size}")
    if position < 0:
        position += size
    return checked(slice_axis(tensor, axis, position, position + 1, 1))


def get(tensor, key):
    items = list(key) if isinstance(key, tuple) else [key]
    items = [tensor_of(item, None, None) if is_lookup(item) and not isinstance(item, Base) else item for item in items]
    items = expand_ellipsis(items, tensor.get_n_dims())
    shape = tensor.get_shape() or []
    axis = place = 0  # of the result, of @tensor
    drops, lookups = [], []
    for item in items:
        if item is None:
            tensor = checked(unsqueeze(tensor, axis))
            axis += 1
            continue
        if isinstance(item, bool):
            raise IndexError("a plain bool is no index; None makes a new axis")
        if isinstance(item, slice):
            if item != slice(None):
                tensor = take_slice(tensor, axis, item)
        elif isinstance(item, Base):
            lookups.append((axis, place, item))
            axis += mask_rank(item) - 1
            place += mask_rank(item) - 1
        else:
            try:
                position = index(item)
            except TypeError:
                raise IndexError(f"an index is made of integers, slices, None, … and tensors or lists of positions, "
                                 f"not {type(item).__name__}") from None
            tensor = take_position(tensor, axis, position, shape[place], place)
            drops.append(axis)
        axis += 1
        place += 1
    if lookups:
        raise InvalidError("indices that are tensors are not there yet")
    if drops:
        kept = [size for i, size in enumerate(tensor.get_shape()) if i not in drops]
        tensor = checked(tensor.reshape(kept))
    return tensor


# ---- assigning ----
def region_of(items, shape):
    """Of every axis (start, step, count) of what slices and positions take."""
    region, place = [], 0
    for item in items:
        if item is None:
            continue
        size = shape[place]
        if isinstance(item, slice):
            start, stop, step = item.indices(size)
            region.append((start, step, len(range(start, stop, step))))
        else:
            position = index(item)
            region.append((position + size if position < 0 else position, 1, 1))
        place += 1
    return region


def positions_of(region, shape):
    """For each element of the tensor which element of the region it is, and whether it is in there; None: all are."""
    where, inside, stride = None, None, 1
    for axis in reversed(range(len(shape))):
        start, step, count = region[axis]
        sizes = [shape[axis] if i == axis else 1 for i in range(len(shape))]
        distance = checked(Base.arange(Tiny.DType.I32, 0, shape[axis], 1)).reshape(sizes) - start
        number = distance // step
        if (start, step, count) != (0, 1, shape[axis]):
            hit = (number >= 0) & (number < count)
            if abs(step) != 1:
                hit = hit & (distance % step == 0)
            inside = hit if inside is None else inside & hit
        where = number * stride if where is None else where + number * stride
        stride *= count
    return where, inside


def put(tensor, key, value):
    if not isinstance(value, Base):
        value = tensor_of(value, tensor.dtype if isinstance(value, (bool, int, float, list, tuple)) else None, None)
    shape, taken = tensor.shape, get(tensor, key).shape
    value = value.expand(taken).cast(tensor.dtype)
    if 0 in taken:
        return
    items = expand_ellipsis(list(key) if isinstance(key, tuple) else [key], len(shape))
    region = region_of(items, shape)
    if all(part == (0, 1, size) for part, size in zip(region, shape)):
        tensor.assign(value.reshape(shape))
        return
    where, inside = positions_of(region, shape)
    n = 1
    for size in taken:
        n *= size
    moved = value.reshape(n).index_select(0, inside.where(where, -1).expand(shape))
    tensor.assign(inside.where(moved, tensor))
