# SPDX-License-Identifier: MIT
"""Tensors of what Python programs have: numbers, nested lists, bytes, memoryviews, arrays. And nested lists of numbers.

Plain numbers choose a dtype as a whole: float32 when one of them is a float, bool when all are, else int32, or int64 where
that does not hold one of them.
Whatever has a dtype of its own keeps it."""
import os
import stat
import sys
from array import array
from itertools import chain, islice

from .dtypes import as_dtype, by_name, dtypes
from .errors import FileError, InvalidError, checked
from .library import Tiny

MOST_AXES = 16
new_from_data, new_from_memory = Tiny.Tensor.new_from_data, Tiny.Tensor.new_from_memory
BOOL, INT, FLOAT = by_name["bool"], by_name["int32"], by_name["float32"]
TYPECODES = {name: dtype.fmt for name, dtype in by_name.items() if dtype.fmt not in (None, "?", "e")}


def raw(device, dtype, shape, data):
    """A tensor of bytes in row-major order."""
    if isinstance(data, array):
        return checked(new_from_memory(device, dtype.value, shape, data.buffer_info()[0], len(data) * data.itemsize))
    return checked(new_from_data(device, dtype.value, shape, bytes(data)))


def open_regular(path, flags):
    """A regular file, for open(): others are waited for, or have no end."""
    file = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise FileError(f"{path}: it is no regular file")
    return file


# ---- nested lists ----
def nested_empty(shape):
    return [] if not shape or shape[0] == 0 else [nested_empty(shape[1:]) for _ in range(shape[0])]


def nested(flat, shape):
    """Lists in lists."""
    for size in reversed(shape[1:]):
        flat = [flat[i:i + size] for i in range(0, len(flat), size)] if size > 0 else None
    return flat


def shape_of(data):
    """The sizes of nested lists, by what comes first in each."""
    shape, seen = [], []
    while isinstance(data, (list, tuple)):
        if len(shape) == MOST_AXES or any(data is one for one in seen):
            raise InvalidError(f"lists are nested in each other deeper than {MOST_AXES} axes, or one is in itself")
        shape.append(len(data))
        seen.append(data)
        if not data:
            break
        data = data[0]
    return shape


def flatten(data, shape):
    """All numbers of nested lists, which have to be as long as each other."""
    flat = [data]
    for axis, size in enumerate(shape):
        for one in flat:
            if not isinstance(one, (list, tuple)) or len(one) != size:
                found = len(one) if isinstance(one, (list, tuple)) else f"a {type(one).__name__}"
                raise InvalidError(f"lists are ragged: along axis {axis} one has {size} elements, another {found}")
        n = len(flat) * size
        flat = list(islice(chain.from_iterable(flat), n + 1))
        if len(flat) != n:
            raise InvalidError(f"a list along axis {axis} has {'more' if len(flat) > n else 'less'} than the {size} elements that it says")
    return flat


def plain(number):
    """@number as bool, int or float."""
    if isinstance(number, (bool, int, float)):
        return number
    if isinstance(number, (list, tuple)):
        raise InvalidError("lists are ragged: a number in one is a list in another")
    if hasattr(number, "__index__"):
        return number.__index__()
    if hasattr(number, "__float__") and not isinstance(number, (str, bytes)):
        return float(number)
    raise TypeError(f"a tensor holds numbers, not {type(number).__name__}: {number!r:.80}")


def dtype_of(numbers):
    types = set(map(type, numbers))
    if types and types <= {bool}:
        return BOOL
    if any(issubclass(one, float) for one in types) or not types:
        return dtypes.default_float
    return dtypes.default_int


def integer_for(numbers):
    """The dtype of plain integers that are given none: the default one, or int64 where that does not hold them."""
    default = dtypes.default_int
    end = 1 << (default.bitsize - (default.kind == "i"))
    fits = (-end if default.kind == "i" else 0) <= min(numbers) and max(numbers) < end
    return default if fits else by_name["int64"]


def pack(numbers, dtype):
    """The bytes of plain numbers, and the dtype that they have."""
    if dtype.kind == "b":
        return bytes(map(bool, numbers)), dtype
    if dtype.kind != "f":
        try:
            return array(dtype.fmt, map(int, numbers)), dtype
        except OverflowError as error:
            raise OverflowError(f"a number does not fit into {dtype.name}: {error}") from None
    held = dtype if dtype.name in TYPECODES else FLOAT
    return array(held.fmt, numbers), held


def from_numbers(numbers, shape, dtype, device):
    if dtype is None:
        dtype = dtype_of(numbers)
        if dtype is dtypes.default_int:
            dtype = integer_for(numbers)
    data, held = pack(numbers, dtype)
    tensor = raw(device, held, shape, data)
    return tensor if held is dtype else checked(tensor.cast(dtype.value))


def from_lists(data, dtype, device):
    shape = shape_of(data)
    flat = flatten(data, shape)
    if not set(map(type, flat)) <= {bool, int, float}:
        if any(isinstance(one, Tiny.Tensor) for one in flat):
            parts = [one if isinstance(one, Tiny.Tensor) else tensor_of(one, None, device) for one in flat]
            whole = checked(Tiny.Tensor.stack(parts, 0))
            whole = checked(whole.reshape([*shape, *whole.get_shape()[1:]]))
            return whole if dtype is None else checked(whole.cast(dtype.value))
        numpy = sys.modules.get("numpy")
        if numpy is not None and any(isinstance(one, (numpy.generic, numpy.ndarray)) for one in flat):
            return from_array(numpy.array(data), dtype, device)
        flat = [plain(one) for one in flat]
    return from_numbers(flat, shape, dtype, device)


# ---- arrays ----
def from_array(held, dtype, device):
    """A copy of a NumPy array."""
    if held.dtype.kind not in "biufV" or held.dtype.names is not None:
        raise TypeError(f"an array of {held.dtype} holds no numbers that a tensor can: bool, integers or floats")
    if not held.dtype.isnative:
        held = held.astype(held.dtype.newbyteorder("="))
    if held.ndim > MOST_AXES:
        raise InvalidError(f"the array has {held.ndim} axes, at most {MOST_AXES} are possible")
    own = as_dtype(held.dtype)
    if not held.flags.c_contiguous:
        held = held.copy("C")
    address = held.__array_interface__["data"][0] if held.size > 0 else 0
    tensor = checked(new_from_memory(device, own.value, held.shape, address, held.nbytes))
    return tensor if dtype in (None, own) else checked(tensor.cast(dtype.value))


def from_memoryview(view, dtype, device):
    for own in dtypes.all:
        if own.fmt == view.format.lstrip("@=<") or (own.name, view.format) in (("int64", "l"), ("uint64", "L")):
            tensor = raw(device, own, list(view.shape), view.tobytes())
            return tensor if dtype in (None, own) else checked(tensor.cast(dtype.value))
    raise TypeError(f"a memoryview of format {view.format!r} holds no numbers that a tensor can")


def from_bytes(data, dtype, device):
    """Elements as they lie in memory."""
    dtype = dtype or by_name["uint8"]
    if len(data) % dtype.itemsize != 0:
        raise InvalidError(f"{len(data)} bytes are no whole number of elements of {dtype.name}")
    return raw(device, dtype, [len(data) // dtype.itemsize], data)


def tensor_of(data, dtype, device):
    """A new tensor of @data; @dtype is ours or None."""
    if data is None:
        return from_numbers([], [0], dtype, device)
    if isinstance(data, (bool, int, float)) and not hasattr(data, "dtype"):  # NumPy's numbers have one of their own
        return from_numbers([data], [], dtype, device)
    if isinstance(data, (list, tuple)):
        return from_lists(data, dtype, device)
    if isinstance(data, range):
        return from_lists(list(data), dtype, device)
    if isinstance(data, (bytes, bytearray)):
        return from_bytes(data, dtype, device)
    if isinstance(data, memoryview):
        return from_memoryview(data, dtype, device)
    if hasattr(data, "__fspath__"):
        with open(data, "rb", opener=open_regular) as file:
            return from_bytes(file.read(), dtype, device)
    if hasattr(data, "__array__"):
        import numpy
        return from_array(numpy.asarray(data), dtype, device)
    return from_numbers([plain(data)], [], dtype, device)
