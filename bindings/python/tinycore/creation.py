# SPDX-License-Identifier: MIT
"""Tensors of constants, counters and random numbers: Tensor.zeros (2, 3, dtype=…)."""
from __future__ import annotations

from functools import wraps
from operator import index

from .convert import EXACT, as_float, as_int, number_tensor, spread
from .data import from_numbers, integer_for, tensor_of
from .dtypes import as_dtype, dtypes
from .errors import checked, explained, named_as
from .library import Tiny

Base = Tiny.Tensor
MOST = 1 << 48  # elements, which a tensor can have


def placed(tensor, device, requires_grad):
    """@tensor where it was asked for."""
    checked(tensor)
    if device is not None:
        if not isinstance(device, (str, list, tuple)):
            raise TypeError(f"device: a name is wanted, not {device!r:.60}")
        tensor = checked(tensor.to(device))
    if requires_grad is not None:
        tensor.requires_grad = requires_grad
    return tensor


def float_dtype(dtype):
    return dtypes.default_float if dtype is None else as_dtype(dtype)


def dtype_of_numbers(numbers, dtype):
    """The dtype that plain numbers choose when none is given."""
    if dtype is not None:
        return as_dtype(dtype)
    if any(isinstance(one, float) for one in numbers):
        return dtypes.default_float
    return as_dtype(bool) if all(isinstance(one, bool) for one in numbers) else integer_for(numbers)


def as_number(value, name):
    """A number as Python has it: an int, where it is whole by its kind."""
    if isinstance(value, (int, float)):
        return value
    return index(value) if hasattr(value, "__index__") and getattr(getattr(value, "dtype", None), "kind", "i") in "iub" else as_float(value, name)


def len_of(start, stop, step):
    """len (range (start, stop, step)), also beyond 63 bits."""
    return max(0, -((start - stop) // step))


def counted(start, n, step, dtype):
    """@start, @start + @step, … of integers of 64 bits, exactly: C's numbers are doubles."""
    row = checked(Base.arange(dtype.value, 0, n, 1)) if n <= MOST else named_as("arange", lambda: checked(Base.zeros(dtype.value, [n])))
    for number, combine in ((step, Base.mul), (start, Base.add)):
        row = checked(combine(row, from_numbers([number % (1 << 64) if dtype.name == "uint64" else number], [], dtype, None)))
    return row


class Creation:
    """Static methods that make tensors. All take dtype, device and requires_grad."""

    __slots__ = ()

    @staticmethod
    def zeros(*shape, dtype=None, device=None, requires_grad=None):
        """All 0."""
        return placed(Base.zeros(float_dtype(dtype).value, spread(shape)), device, requires_grad)

    @staticmethod
    def ones(*shape, dtype=None, device=None, requires_grad=None):
        """All 1."""
        return placed(Base.ones(float_dtype(dtype).value, spread(shape)), device, requires_grad)

    @staticmethod
    def empty(*shape, dtype=None, device=None, requires_grad=None):
        """Unspecified values in memory of their own."""
        return placed(Base.empty(float_dtype(dtype).value, spread(shape)), device, requires_grad)

    @staticmethod
    def full(shape, fill_value, dtype=None, device=None, requires_grad=None):
        """All @fill_value, whose dtype they have if none is given."""
        fill_value = as_number(fill_value, "full: fill_value")
        dtype, shape = dtype_of_numbers([fill_value], dtype), spread((shape,))
        if isinstance(fill_value, int) and abs(fill_value) > EXACT:
            whole = checked(from_numbers([fill_value], [1] * len(shape), dtype, None).expand(shape))
        else:
            whole = Base.full(dtype.value, shape, fill_value)
        return placed(whole, device, requires_grad)

    @staticmethod
    def arange(start: float, stop: float = None, step: float = 1, dtype=None, device=None, requires_grad=None):
        """@start, @start + @step, … up to before @stop; from 0 when one number is given."""
        if stop is None:
            start, stop = 0, start
        numbers = [as_number(one, f"arange: {name}") for one, name in ((start, "start"), (stop, "stop"), (step, "step"))]
        start, stop, step = numbers
        whole = all(isinstance(one, int) for one in numbers) and step != 0
        steps = range(start, stop, step) if whole else ()
        dtype = dtype_of_numbers([0, *steps[:1], *steps[-1:]] if whole else numbers, dtype)
        if whole and dtype.itemsize == 8 and dtype.kind in "iu":
            return placed(counted(start, len_of(start, stop, step), step, dtype), device, requires_grad)
        return placed(Base.arange(dtype.value, *numbers), device, requires_grad)

    @staticmethod
    def linspace(start: float, stop: float, steps: int, dtype=None, device=None, requires_grad=None):
        """@steps numbers from @start to @stop at equal distances."""
        return placed(Base.linspace(float_dtype(dtype).value, start, stop, as_int(steps)), device, requires_grad)

    @staticmethod
    def eye(n, m=None, dtype=None, device=None, requires_grad=None):
        """1 on the diagonal, 0 elsewhere."""
        n = as_int(n)
        return placed(Base.eye(float_dtype(dtype).value, n, n if m is None else as_int(m)), device, requires_grad)

    @staticmethod
    def invalids(*shape, dtype=None, device=None, requires_grad=None):
        """Unspecified values: tinygrad's name of empty()."""
        return Creation.empty(*shape, dtype=dtype, device=device, requires_grad=requires_grad)

    @staticmethod
    def const(value: Number, dtype=None, device=None, requires_grad=None):
        """A tensor without axes; without a dtype it takes that of what it meets, as the number itself would."""
        if dtype is None and device is None and requires_grad is None:
            return number_tensor(value)
        return Creation.full((), value, dtype, device, requires_grad)

    @staticmethod
    def from_blob(ptr: int, shape, dtype=None, device=None, requires_grad=None):
        """A tensor in memory at address @ptr, in row-major order. Where the device computes in the host's memory that
        itself is used: it has to be there as long as the tensor and what is made of it."""
        sizes = spread((shape,))
        return placed(Base.new_from_blob(device, float_dtype(dtype).value, sizes, as_int(ptr), None), None, requires_grad)

    @staticmethod
    def from_url(url: str, gunzip=False, timeout=60, sha256: str = None, dtype=None, device=None, requires_grad=None):
        """The bytes at an address with file, http or https, as uint8 or elements of @dtype as they lie in memory. What comes
        over a network is kept in the cache folder. @gunzip: whether to decompress them; @timeout: seconds without
        a byte; @sha256: what the hash of the file has to be."""
        from .fetch import bytes_at
        data = bytes_at(url, gunzip, timeout, sha256)
        return placed(tensor_of(data, None if dtype is None else as_dtype(dtype), device), None, requires_grad)

    # ---- random numbers ----
    @staticmethod
    def manual_seed(seed=0):
        """Starts the process's sequence of random numbers again. @seed: from -2**63 to 2**64 - 1; a negative one is that much below 2**64."""
        try:
            number = as_int(seed, bits=65)
            number = as_int(number - (1 << 64) if number >> 63 == 1 else number)
        except OverflowError:
            raise OverflowError(f"manual_seed: seed: a whole number from -2**63 to 2**64 - 1 is wanted, not {seed!r:.60}") from None
        Tiny.Tensor.manual_seed(number % (1 << 64))

    @staticmethod
    def rand(*shape, dtype=None, device=None, requires_grad=None):
        """Uniform over [0, 1)."""
        return placed(Base.rand(float_dtype(dtype).value, spread(shape)), device, requires_grad)

    @staticmethod
    def randn(*shape, dtype=None, device=None, requires_grad=None):
        """Normal with mean 0 and variance 1."""
        return placed(Base.randn(float_dtype(dtype).value, spread(shape)), device, requires_grad)

    @staticmethod
    def uniform(*shape, low=0.0, high=1.0, dtype=None, device=None, requires_grad=None):
        """Uniform over [@low, @high)."""
        return placed(Base.uniform(float_dtype(dtype).value, spread(shape), low, high), device, requires_grad)

    @staticmethod
    def normal(*shape: Any, mean: float | Tensor = 0.0, std: float | Tensor = 1.0, dtype=None, device=None, requires_grad=None):
        """Normal with that mean and standard deviation. Also PyTorch's order: normal (mean, std, size), without the size where one of them is a tensor."""
        if shape and isinstance(shape[0], (Base, float)) or len(shape) > 1 and isinstance(shape[-1], (list, tuple)):
            mean, *shape = shape
            if shape and not isinstance(shape[0], (list, tuple)):
                std, *shape = shape
        if isinstance(mean, Base) or isinstance(std, Base):
            from .functions import broadcast_shapes
            like = mean if isinstance(mean, Base) else std
            drawn = like.randn(broadcast_shapes(*(one.shape for one in (mean, std) if isinstance(one, Base))), dtype=dtype or like.dtype, device=device or like.get_device())
            return placed(drawn * std + mean, None, requires_grad)
        return placed(Base.normal(float_dtype(dtype).value, spread(shape), mean, std), device, requires_grad)

    @staticmethod
    def randint(*shape: int | Sequence[int], low=0, high=10, dtype=None, device=None, requires_grad=None):
        """Integers from @low up to before @high. Also PyTorch's order: randint (low, high, size)."""
        if shape and isinstance(shape[-1], (list, tuple)) and len(shape) > 1:
            *bounds, shape = shape
            low, high = bounds if len(bounds) == 2 else (0, *bounds)
            shape = (shape,)
        dtype = dtypes.default_int if dtype is None else as_dtype(dtype)
        return placed(Base.randint(dtype.value, spread(shape), as_int(low), as_int(high)), device, requires_grad)

    @staticmethod
    def randperm(n, dtype=None, device=None, requires_grad=None):
        """0 … @n - 1 in random order."""
        dtype = dtypes.default_int if dtype is None else as_dtype(dtype)
        return placed(Base.randperm(dtype.value, as_int(n)), device, requires_grad)

    @staticmethod
    def scaled_uniform(*shape, dtype=None, device=None, requires_grad=None):
        """Uniform over [-1, 1) divided by the root of the number of elements."""
        return placed(Base.scaled_uniform(float_dtype(dtype).value, spread(shape)), device, requires_grad)

    @staticmethod
    def glorot_uniform(*shape, dtype=None, device=None, requires_grad=None):
        """Uniform over ±sqrt (6 / (first size + product of the others)) (Glorot and Bengio 2010)."""
        return placed(Base.glorot_uniform(float_dtype(dtype).value, spread(shape)), device, requires_grad)

    @staticmethod
    def kaiming_uniform(*shape, a=0.01, dtype=None, device=None, requires_grad=None):
        """Uniform over ±sqrt (6 / (1 + @a²) / fan-in) (He et al. 2015)."""
        return placed(Base.kaiming_uniform(float_dtype(dtype).value, spread(shape), a), device, requires_grad)

    @staticmethod
    def kaiming_normal(*shape, a=0.01, dtype=None, device=None, requires_grad=None):
        """Normal with the variance 2 / (1 + @a²) / fan-in (He et al. 2015)."""
        return placed(Base.kaiming_normal(float_dtype(dtype).value, spread(shape), a), device, requires_grad)

    # ---- as another tensor ----
    def full_like(self, fill_value, dtype=None, device=None, requires_grad=None):
        """All @fill_value, in the shape and dtype of this tensor."""
        return self.full(self.shape, fill_value, dtype or self.dtype, device or self.get_device(), requires_grad)

    def const_like(self, value: Number, dtype=None):
        """All @value: tinygrad's name of full_like()."""
        return self.full_like(value, dtype)

    def zeros_like(self, dtype=None, device=None, requires_grad=None):
        """All 0, in the shape and dtype of this tensor."""
        return self.full_like(0, dtype, device, requires_grad)

    def ones_like(self, dtype=None, device=None, requires_grad=None):
        """All 1, in the shape and dtype of this tensor."""
        return self.full_like(1, dtype, device, requires_grad)

    def empty_like(self, dtype=None, device=None, requires_grad=None):
        """Unspecified values, in the shape and dtype of this tensor."""
        return self.empty(self.shape, dtype=dtype or self.dtype, device=device or self.get_device(),
                          requires_grad=requires_grad)

    def rand_like(self, dtype=None, device=None, requires_grad=None):
        """Uniform over [0, 1), in the shape and dtype of this tensor."""
        return self.rand(self.shape, dtype=dtype or self.dtype, device=device or self.get_device(),
                         requires_grad=requires_grad)

    def randn_like(self, dtype=None, device=None, requires_grad=None):
        """Normal with mean 0 and variance 1, in the shape and dtype of this tensor."""
        return self.randn(self.shape, dtype=dtype or self.dtype, device=device or self.get_device(),
                          requires_grad=requires_grad)


# PyTorch's names of arguments. Sizes under them are given one by one here; how and in which memory elements lie is nothing to choose.
OTHER_NAMES = {"size": "shape", "end": "stop", "input": "self"}
IGNORED = ("layout", "memory_format", "pin_memory")


def by_other_names(function):
    """@function, whose arguments have PyTorch's names as well."""
    code = getattr(function, "__wrapped__", function).__code__
    names, takes_many = code.co_varnames, code.co_flags & 4

    @wraps(function)
    def call_it(*arguments, **more):
        for name in [name for name in more if name not in names]:
            if name in IGNORED:
                del more[name]
            elif OTHER_NAMES.get(name) in names:
                own, value = OTHER_NAMES[name], more.pop(name)
                if own == "self" or own == "shape" and takes_many:
                    arguments = (value, *arguments) if own == "self" else (*arguments, value)
                else:
                    more[own] = value
        return function(*arguments, **more)
    return call_it


for name, one in list(vars(Creation).items()):
    if isinstance(one, staticmethod):
        setattr(Creation, name, staticmethod(by_other_names(explained(one.__func__))))
    elif name.endswith("_like"):
        setattr(Creation, name, by_other_names(one))
del name, one
