# SPDX-License-Identifier: MIT
"""Tensors of constants, counters and random numbers: Tensor.zeros (2, 3, dtype=…)."""
from math import sqrt

from .convert import as_int, spread
from .data import from_numbers
from .dtypes import as_dtype, dtypes
from .errors import checked
from .library import Tiny

Base = Tiny.Tensor
EXACT = 1 << 53


def placed(tensor, device, requires_grad):
    """@tensor where it was asked for."""
    checked(tensor)
    if device is not None:
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
    return as_dtype(bool) if all(isinstance(one, bool) for one in numbers) else dtypes.default_int


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
        dtype, shape = dtype_of_numbers([fill_value], dtype), spread((shape,))
        if isinstance(fill_value, int) and abs(fill_value) > EXACT:
            whole = checked(from_numbers([fill_value], [1] * len(shape), dtype, None).expand(shape))
        else:
            whole = Base.full(dtype.value, shape, fill_value)
        return placed(whole, device, requires_grad)

    @staticmethod
    def arange(start, stop=None, step=1, dtype=None, device=None, requires_grad=None):
        """@start, @start + @step, … up to before @stop; from 0 when one number is given."""
        if stop is None:
            start, stop = 0, start
        dtype = dtype_of_numbers([start, stop, step], dtype)
        return placed(Base.arange(dtype.value, start, stop, step), device, requires_grad)

    @staticmethod
    def linspace(start, stop, steps, dtype=None, device=None, requires_grad=None):
        """@steps numbers from @start to @stop at equal distances."""
        return placed(Base.linspace(float_dtype(dtype).value, start, stop, as_int(steps)), device, requires_grad)

    @staticmethod
    def eye(n, m=None, dtype=None, device=None, requires_grad=None):
        """1 on the diagonal, 0 elsewhere."""
        n = as_int(n)
        return placed(Base.eye(float_dtype(dtype).value, n, n if m is None else as_int(m)), device, requires_grad)

    # ---- random numbers ----
    @staticmethod
    def manual_seed(seed=0):
        """Starts the process's sequence of random numbers again."""
        Tiny.Tensor.manual_seed(as_int(seed) % (1 << 64))

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
    def normal(*shape, mean=0.0, std=1.0, dtype=None, device=None, requires_grad=None):
        """Normal with that mean and standard deviation."""
        normal = checked(Base.randn(float_dtype(dtype).value, spread(shape)))
        return placed(normal * std + mean, device, requires_grad)

    @staticmethod
    def randint(*shape, low=0, high=10, dtype=None, device=None, requires_grad=None):
        """Integers from @low up to before @high. Also PyTorch's order: randint (low, high, size)."""
        if shape and isinstance(shape[-1], (list, tuple)) and len(shape) > 1:
            *bounds, shape = shape
            low, high = bounds if len(bounds) == 2 else (0, *bounds)
            shape = (shape,)
        dtype = dtypes.default_int if dtype is None else as_dtype(dtype)
        return placed(Base.randint(dtype.value, spread(shape), as_int(low), as_int(high)), device, requires_grad)

    @staticmethod
    def scaled_uniform(*shape, dtype=None, device=None, requires_grad=None):
        """Uniform over [-1, 1) divided by the root of the number of elements."""
        sizes, n = spread(shape), 1
        for size in sizes:
            n *= size
        bound = 1 / sqrt(max(n, 1))
        return placed(Base.uniform(float_dtype(dtype).value, sizes, -bound, bound), device, requires_grad)

    @staticmethod
    def glorot_uniform(*shape, dtype=None, device=None, requires_grad=None):
        """Uniform over ±sqrt (6 / (first size + product of the others)) (Glorot and Bengio 2010)."""
        sizes, n = spread(shape), 1
        for size in sizes[1:]:
            n *= size
        bound = sqrt(6 / max((sizes[0] if sizes else 1) + n, 1))
        return placed(Base.uniform(float_dtype(dtype).value, sizes, -bound, bound), device, requires_grad)

    @staticmethod
    def kaiming_uniform(*shape, a=0.01, dtype=None, device=None, requires_grad=None):
        """Uniform over ±sqrt (6 / (1 + @a²) / fan-in) (He et al. 2015)."""
        return placed(Base.kaiming_uniform(float_dtype(dtype).value, spread(shape), a), device, requires_grad)

    @staticmethod
    def kaiming_normal(*shape, a=0.01, dtype=None, device=None, requires_grad=None):
        """Normal with the variance 2 / (1 + @a²) / fan-in (He et al. 2015)."""
        sizes, n = spread(shape), 1
        for size in sizes[1:]:
            n *= size
        normal = checked(Base.randn(float_dtype(dtype).value, sizes))
        return placed(normal * sqrt(2 / (1 + a * a) / max(n, 1)), device, requires_grad)

    # ---- as another tensor ----
    def full_like(self, fill_value, dtype=None, device=None, requires_grad=None):
        """All @fill_value, in the shape and dtype of this tensor."""
        return self.full(self.shape, fill_value, dtype or self.dtype, device or self.get_device(), requires_grad)

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
