# SPDX-License-Identifier: MIT
"""What a Python program gives as an argument, as what the library takes."""
from functools import lru_cache
from math import copysign, inf as INFINITY
from operator import index as as_int

from .data import tensor_of
from .dtypes import by_name
from .errors import TinyError, checked
from .library import Tiny

Base = Tiny.Tensor
VOID = Tiny.DType.VOID
NO_AXIS = getattr(Tiny, "NO_AXIS", -(1 << 31))
UNSET = type("Unset", (), {"__repr__": lambda self: "UNSET", "__slots__": ()})()
EXACT = 1 << 53  # up to here a double holds every integer

scalar, scalar_float, full = Base.scalar, Base.scalar_float, Base.full
BOOL = by_name["bool"]


def make_number(number):
    if number.__class__ is float or isinstance(number, float):
        return scalar_float(number)
    if isinstance(number, bool):
        return checked(full(BOOL.value, [], float(number)))
    if -EXACT <= number <= EXACT:
        return scalar(float(number))
    for name in ("int64", "uint64"):
        try:
            return tensor_of(int(number), by_name[name], None)
        except OverflowError:
            pass
    raise OverflowError(f"{number} does not fit into an integer of 64 bits")


remembered = lru_cache(maxsize=256, typed=True)(make_number)


def number_tensor(number):
    """A plain number, which takes the dtype of what it meets. Those in use are made once."""
    if number == 0 and copysign(1.0, number) < 0:
        return make_number(number)  # -0.0 is equal to 0.0
    return remembered(number)


def operand(value, name):
    """A tensor of what is none: a number or an array."""
    if isinstance(value, (bool, int, float)):
        return number_tensor(value)
    if hasattr(value, "__array__"):
        if getattr(value, "ndim", None) != 0:
            return tensor_of(value, None, None)
        value = value.item()
        if isinstance(value, (bool, int, float)):
            return number_tensor(value)
    raise TypeError(f"{name}: a tensor or a number is wanted, not {type(value).__name__}")


def axes_of(axes):
    """Axes as a list; None stays: all."""
    if axes is None:
        return None
    try:
        return [as_int(axes)]
    except TypeError:
        return list(map(as_int, axes))


def sizes_of(sizes):
    """Numbers as a list; one number stands for a list of it."""
    try:
        return list(map(as_int, sizes))
    except TypeError:
        return [as_int(sizes)]


def floats_of(numbers):
    return list(map(float, numbers)) if hasattr(numbers, "__iter__") else [float(numbers)]


def spread(sizes):
    """Sizes that were given one by one, or as one list or tuple."""
    if len(sizes) == 1:
        return sizes_of(sizes[0])
    return list(map(as_int, sizes))


def list_of(given, name):
    return [one if isinstance(one, Base) else operand(one, name) for one in given]


def tensors_of(given, dim, name):
    """Tensors that were given one by one, or as a list that an axis may follow, and the axis."""
    if given and isinstance(given[0], (list, tuple)):
        if len(given) == 2 and dim is not None:
            dim = given[1]
        elif len(given) > 1:
            raise TypeError(f"{name}: one list of tensors is wanted, not {len(given)} arguments")
        given = given[0]
    return list_of(given, name), dim


def checked_all(results):
    """Several results, unless one carries an error."""
    for one in results:
        checked(one)
    return results if isinstance(results, list) else tuple(results)
