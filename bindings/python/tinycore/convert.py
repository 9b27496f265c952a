# SPDX-License-Identifier: MIT
"""What a Python program gives as an argument, as what the library takes."""
from functools import lru_cache
from math import copysign, inf as INFINITY, prod
from operator import index, itemgetter

from .data import tensor_of
from .dtypes import as_dtype, by_name
from .errors import TinyError, checked
from .library import Tiny

Base = Tiny.Tensor
VOID = Tiny.DType.VOID
NO_AXIS = getattr(Tiny, "NO_AXIS", -(1 << 31))
UNSET = type("Unset", (), {"__repr__": lambda self: "UNSET", "__slots__": ()})()
EXACT = 1 << 53  # up to here a double holds every integer

scalar, scalar_float, full = Base.scalar, Base.scalar_float, Base.full
BOOL = by_name["bool"]


class Size(tuple[int, ...]):
    """The sizes of a tensor: a tuple that knows how many elements there are."""

    __slots__ = ()

    def numel(self) -> int:
        return prod(self)


def make_number(number):
    if number.__class__ is float or isinstance(number, float):
        return checked(scalar_float(number))
    if isinstance(number, bool):
        return checked(full(BOOL.value, [], float(number)))
    if -EXACT <= number <= EXACT:
        return checked(scalar(float(number)))
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
        try:
            return number_tensor(value)
        except OverflowError as error:
            raise OverflowError(f"{name}: {error}") from None
    if hasattr(value, "__array__"):
        if getattr(value, "ndim", None) != 0:
            return tensor_of(value, None, None)
        value = value.item()
        if isinstance(value, (bool, int, float)):
            return number_tensor(value)
    raise TypeError(f"{name}: a tensor or a number is wanted, not {type(value).__name__}")


# ---- what is given for an argument; @name says which in errors ----
def wrong(name, wanted, value):
    return TypeError(f"{name + ': ' if name else ''}{wanted} is wanted, not {value!r:.60}")


def as_int(number, name="", bits=64):
    """A whole number. A bool was meant for another argument."""
    if number is not True and number is not False:
        try:
            number = index(number)
        except TypeError:
            pass
        else:
            if -1 << bits - 1 <= number < 1 << bits - 1:
                return number
            raise OverflowError(str(wrong(name, f"a whole number of {bits} bits", number)))
    raise wrong(name, "a whole number", number)


def as_axis(axis, name=""):
    return as_int(axis, name, 32)


def one_of(function, name, value, default, other_name, other):
    """What was given under one of two names."""
    if value is not default:
        raise TypeError(f"{function}: {name} and {other_name} are the same: one of them is wanted")
    return other


def corrected(function, axis, correction, unbiased):
    """Axes and correction of a variance, for which PyTorch has @unbiased: also in the place of either."""
    if axis is True or axis is False:
        axis, unbiased = None, one_of(function, "unbiased", unbiased, UNSET, "unbiased", axis)
    if unbiased is not UNSET:
        correction = one_of(function, "correction", correction, 1, "unbiased", as_bool(unbiased, f"{function}: unbiased"))
    return axis, int(correction) if correction is True or correction is False else correction


def as_bool(value, name):
    """True or False, also NumPy's, or 1 or 0; of all else it would have to be guessed what is meant."""
    if value is True or value is False:
        return value
    if type(value).__name__ in ("bool_", "bool") or type(value) is int and value in (0, 1):
        return bool(value)
    raise wrong(name, "True or False", value)


def as_float(number, name):
    try:
        if not isinstance(number, (str, bytes)):
            return float(number)
    except TypeError:
        pass
    raise wrong(name, "a number", number)


def as_text(text, name):
    """A text as C takes it, for which it ends at a NUL."""
    if isinstance(text, str) and "\0" not in text:
        return text
    raise wrong(name, "a text without NUL" if isinstance(text, str) else "a text", text)


def axes_of(axes, name="axis"):
    """Axes as a list; None stays: all."""
    if axes is None:
        return None
    if isinstance(axes, (list, tuple, range)):
        return [as_axis(one, name) for one in axes]
    return [as_axis(axes, name)]


def sizes_of(sizes, name=""):
    """Numbers as a list; one number stands for a list of it."""
    if hasattr(sizes, "__iter__") and not isinstance(sizes, str) and getattr(sizes, "ndim", 1) > 0:
        return [as_int(one, name) for one in sizes]
    return [as_int(sizes, name)]


def kept_sizes(shape, more):
    """Sizes of one list or one by one, -1 for None: as it is."""
    if more and isinstance(shape, (list, tuple)):
        raise TypeError("sizes are one list, or given one by one")
    return [-1 if one is None else one for one in (shape if isinstance(shape, (list, tuple)) else (shape, *more))]


def floats_of(numbers):
    return list(map(float, numbers)) if hasattr(numbers, "__iter__") else [float(numbers)]


def spread(sizes, name=""):
    """Sizes that were given one by one, or as one list or tuple."""
    return sizes_of(sizes[0] if len(sizes) == 1 else sizes, name)


def names_of(devices):
    """A list of devices' names: of one name, of several, or of one text with all."""
    given = [devices] if isinstance(devices, str) else devices
    if not isinstance(given, (list, tuple)) or not all(isinstance(one, str) for one in given):
        raise TypeError(f"names of devices are wanted, not {devices!r:.60}")
    return [as_text(one, "device") for one in given]


def one_name(device):
    """The text that names a device, or several."""
    return device if device is None else ";".join(names_of(device))


def pairs_of(tensor, padding):
    """Numbers before and after each axis, the first axis first."""
    n = tensor.ndim
    if isinstance(padding, int):
        raise TypeError("pad: a list of numbers or of pairs is wanted, not one number")
    if all(pair is None or isinstance(pair, (list, tuple)) for pair in padding):
        pairs = [(0, 0) if pair is None else tuple(pair) for pair in padding]
        if len(pairs) > n or any(len(pair) != 2 for pair in pairs):
            raise ValueError(f"pad: {padding} are not {n} pairs")
        pairs = [(0, 0)] * (n - len(pairs)) + pairs
    else:
        if len(padding) % 2 != 0 or len(padding) > 2 * n:
            raise ValueError(f"pad: {len(padding)} numbers are not two for each of at most {n} axes")
        pairs = [(0, 0)] * (n - len(padding) // 2) + [(padding[i], padding[i + 1]) for i in range(len(padding) - 2, -1, -2)]
    return [number for pair in pairs for number in pair]


def spread_tensors(given):
    """Tensors that were given one by one or as one list."""
    return given[0] if len(given) == 1 and isinstance(given[0], (list, tuple)) else given


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


def results_class(*names):
    """Tuples whose elements have names too, as PyTorch's: x.sort ().values. A matrix's one letter may be a capital."""
    def show(self):
        return "(" + ", ".join(f"{name}={one!r}" for name, one in zip(names, self)) + ")"

    fields = {name: property(itemgetter(i)) for i, name in enumerate(names)}
    fields.update({name.capitalize(): field for name, field in fields.items() if len(name) <= 2})
    return type("Results", (tuple,), {"__slots__": (), "__repr__": show, "_fields": names, **fields})


def dtype_of(name, dtype, is_float):
    """The dtype that a sum is asked for in; a mean is a float."""
    dtype = as_dtype(dtype)
    if is_float and dtype.kind != "f":
        raise TypeError(f"{name}: the result is no {dtype.name}: a dtype of floats is wanted")
    return dtype.value
