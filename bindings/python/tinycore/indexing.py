# SPDX-License-Identifier: MIT
"""t[…] and t[…] = …: a subscript as the pattern, numbers and tensors that the library takes (tiny_tensor_index())."""
from operator import index

from .convert import number_tensor
from .data import tensor_of
from .errors import InvalidError, call, checked
from .in_place import check_changeable
from .library import Tiny
from .variable import Variable

Base = Tiny.Tensor
BEGIN, END = -(1 << 63), (1 << 63) - 1  # TINY_SLICE_BEGIN, TINY_SLICE_END: open stops
MOST = 1 << 62  # positions beyond are beyond any axis
FAR = 1 << 50  # so is this, which a plain number holds
get_index, set_index = Base.index, Base.set_index


def bound(value, default):
    try:
        return default if value is None else max(-MOST, min(MOST, index(value)))
    except TypeError:
        raise TypeError(f"a slice is made of integers and None, not {value!r:.60}") from None


def is_symbolic(value):
    """Whether it is a size or a place that variables say."""
    if value is None or value.__class__ is int:
        return False
    if isinstance(value, Variable):
        raise TypeError(f"variable {value.name} has no value here: {value.name}.bind(…) gives it one")
    return isinstance(value, Base) and value.is_symbolic()


def places(item):
    """The two ends of a slice that variables say, as tensors."""
    if item.step is not None and bound(item.step, 1) != 1:
        raise ValueError("a slice from or to a variable has a step of 1: take other steps of the whole before, or of what is "
                         "contiguous() after it")
    return [one if isinstance(one, Base) else number_tensor(max(-FAR, min(FAR, bound(one, default))))
            for one, default in ((item.start, 0), (item.stop, FAR))]


def add_slice(item, numbers):
    step = bound(item.step, 1)
    if step == 0:
        raise ValueError("a slice's step is not 0")
    numbers += (bound(item.start, 0 if step > 0 else MOST), bound(item.stop, END if step > 0 else BEGIN), step)


def position(item):
    try:
        number = index(item)
    except TypeError:
        raise IndexError("a subscript is made of integers, slices, None, … and tensors or lists of positions, "
                         f"not {type(item).__name__}") from None
    if abs(number) > MOST:
        raise IndexError(f"position {number} is beyond any axis")
    return number


def positions(item):
    """A tensor of what is none: a list, an array, or a plain bool."""
    tensor = tensor_of(item, None, None)
    if isinstance(item, (list, tuple)) and not item:  # positions, of which there are none
        tensor = checked(tensor.cast(Tiny.DType.I32))
    if tensor.dtype.kind == "f":
        raise IndexError(f"positions are integers or bools, not {tensor.dtype.name}")
    return tensor


def extent(item):
    """The least and the largest of integers in lists and arrays; None where they are none or are not at hand."""
    if isinstance(item, (list, tuple)):
        if all(one.__class__ is int for one in item):
            return (min(item), max(item)) if item else None
        ends = [extent(one) for one in item]
        return None if None in ends else (min(low for low, _ in ends), max(high for _, high in ends))
    if item.__class__ is int:
        return item, item
    kind = getattr(getattr(item, "dtype", None), "kind", None)
    return (int(item.min()), int(item.max())) if kind in ("i", "u") and not isinstance(item, Base) and getattr(item, "size", 0) else None


def check_known(shape, key, pattern, tensors):
    """A SubscriptError where positions that are at hand are outside of their axis; of those in tensors nobody knows before they are computed."""
    items, left = list(key) if isinstance(key, tuple) else [key], list(tensors)
    widths = []
    for what in pattern:
        given = [left.pop(0) for _ in range("tv".find(what) + 1)]
        widths.append(0 if what in "n." else given[0].ndim if what == "t" and given[0].dtype.kind == "b" else 1)
    if len(pattern) != len(items):
        return
    for i, (what, item) in enumerate(zip(pattern, items)):
        known = extent(item) if what == "t" and not isinstance(item, (Base, bool)) else None
        axis = len(shape) - sum(widths[i:]) if "." in pattern[:i] else sum(widths[:i])
        if known is not None and 0 <= axis < len(shape):
            wrong = next((one for one in known if not -shape[axis] <= one < shape[axis]), None)
            if wrong is not None:
                raise SubscriptError(f"index: position {wrong} is outside of axis {axis}, whose size is {shape[axis]}")


def parse(tensor, key):
    """A subscript's pattern, numbers and tensors."""
    if key.__class__ is int:
        return "i", [position(key)], []
    pattern, numbers, tensors, is_known = "", [], [], False
    for item in key if isinstance(key, tuple) else (key,):
        if isinstance(item, slice):
            if is_symbolic(item.step):
                raise TypeError("a slice's step is a number, not a variable")
            if is_symbolic(item.start) or is_symbolic(item.stop):
                pattern += "v"
                tensors += places(item)
            elif item.start is item.stop is item.step is None:
                pattern += ":"
            else:
                pattern += "s"
                add_slice(item, numbers)
        elif item is None:
            pattern += "n"
        elif item is Ellipsis:
            pattern += "."
        elif isinstance(item, Base) or isinstance(item, (list, tuple, bool)) or getattr(item, "ndim", 0) > 0:
            pattern += "t"
            is_known = is_known or not isinstance(item, Base)
            tensors.append(item if isinstance(item, Base) else positions(item))
        elif not is_symbolic(item):
            pattern += "i"
            numbers.append(position(item))
    if is_known:
        check_known(tensor.shape, key, pattern, tensors)
    return pattern, numbers, tensors


def get(tensor, key):
    try:
        return checked(get_index(tensor, *parse(tensor, key)))
    except InvalidError as error:
        raise SubscriptError(str(error)) from None


def put(tensor, key, value):
    if value is None:
        raise TypeError("what is set is a tensor or a number, not None")
    check_changeable(tensor, "x[…] = …")
    if not isinstance(value, Base):
        plain = isinstance(value, (bool, int, float, list, tuple))
        value = tensor_of(value, tensor.dtype if plain else None, tensor.get_device())
    try:
        call(set_index, tensor, *parse(tensor, key), value)
    except InvalidError as error:
        raise SubscriptError(str(error)) from None


class SubscriptError(InvalidError, IndexError):
    """A subscript that does not fit."""

    code = InvalidError.code
