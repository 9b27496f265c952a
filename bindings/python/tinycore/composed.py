# SPDX-License-Identifier: MIT
"""PyTorch's further methods of a tensor, made of the table's. make-operations.py puts their names into class Operations; this
module is loaded when one is used."""
from __future__ import annotations

from math import frexp, isfinite, prod
from weakref import ref

from .convert import UNSET, as_text, checked_all, results_class, sizes_of, spread_tensors
from .dtypes import dtypes
from .errors import InvalidError
from .in_place import check_changeable, put
from .library import Tiny

Base = Tiny.Tensor
Found = results_class("values", "indices")
INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def check_rank(tensor, least, name, most=None):
    if tensor.ndim < least or most is not None and tensor.ndim > most:
        number = f"{least}" if most == least else f"{least} to {most}" if most is not None else f"at least {least}"
        raise InvalidError(f"{name}: a tensor of {number} axes is wanted, not {tensor.shape}")


def wide(tensor):
    """Floats narrower than f32 in that: what is made of them is rounded once."""
    return tensor.float() if tensor.dtype.kind == "f" and tensor.dtype.itemsize < 4 else tensor


def rounded(found, like):
    """@found of what was wide (@like), in the dtype of that."""
    return found.cast(like.dtype) if like.is_floating_point() else found


# ---- rows of a tensor: what is left of its axes without one ----
def rows_of(tensor, dim, name):
    """@tensor with axis @dim last; its elements as one row where that is None. No row is empty."""
    if tensor.numel() == 0:
        raise InvalidError(f"{name}: there is none of no elements")
    return tensor.flatten() if dim is None or tensor.ndim == 0 else tensor.movedim(dim, -1)


def with_axis(result, tensor, dim, keepdim):
    """One element of each row: again with the axis @dim of @tensor, of size 1, where that is wanted."""
    if not keepdim or tensor.ndim == 0:
        return result
    return result.reshape((1,) * tensor.ndim) if dim is None else result.unsqueeze(dim % tensor.ndim)


def quantiles(tensor, q, dim, keepdim, interpolation, skips):
    """The elements of each row that are @q of the way from the least to the greatest. NaNs are skipped, or make it NaN."""
    name = "nanquantile" if skips else "quantile"
    if interpolation not in INTERPOLATIONS:
        raise InvalidError(f"{name}: “{interpolation}” is none of {', '.join(INTERPOLATIONS)}")
    if tensor.dtype.kind != "f":
        raise InvalidError(f"{name}: only of floats, not of {tensor.dtype.name}")
    if not isinstance(q, Base):
        if not all(0 <= one <= 1 for one in (q if isinstance(q, (list, tuple)) else [q])):
            raise InvalidError(f"{name}: q: numbers from 0 to 1 are wanted, not {q!r:.60}")
        q = tensor.new_tensor(q, dtype=dtypes.float64)
    check_rank(q, 0, name, 1)
    rows = wide(rows_of(tensor, dim, name).sort(-1).values)
    n = rows.shape[-1]
    q = q.cast(rows.dtype if n < 1 << 24 else dtypes.float64)  # which has each of @n places
    last = ((rows == rows).sum(-1, keepdim=True) - 1).clamp(0, n - 1) if skips else n - 1
    place = (q.reshape(-1) * last).expand(*rows.shape[:-1], q.numel())
    low, high = place.floor(), place.ceil()
    if interpolation in ("higher", "nearest"):
        low = high if interpolation == "higher" else place.round()
    found = rows.gather(-1, low.int())
    if interpolation in ("linear", "midpoint"):
        found = found.lerp(rows.gather(-1, high.int()), 0.5 if interpolation == "midpoint" else (place - low).detach().cast(rows.dtype))
    if not skips:  # NaNs are the greatest
        found = rows[..., -1:].isnan().where(rows[..., -1:], found)
    found = ((q >= 0) & (q <= 1)).reshape(-1).where(found.cast(tensor.dtype), float("nan"))  # of numbers, which were looked at, all are
    found = [with_axis(found[..., i], tensor, dim, keepdim) for i in range(q.numel())]
    return found[0] if q.ndim == 0 else found[0].stack(*found[1:]) if found else tensor.new_zeros(0)


def evenly(tensor, parts, dim, name):
    """tensor_split(), where so many parts are to be equal."""
    if not hasattr(parts, "__iter__") and (parts < 1 or tensor.shape[dim] % parts != 0):
        raise InvalidError(f"{name}: an axis of {tensor.shape[dim]} in {parts} equal parts")
    return tensor.tensor_split(parts, dim)


def scaled(tensor, beta, product, alpha):
    """beta tensor + alpha product; a tensor times 0 is not read."""
    product = product * alpha if alpha != 1 else product
    return product if beta == 0 else product + (tensor * beta if beta != 1 else tensor)


def drawn(tensor, values, name):
    """Puts random numbers into @tensor, which are of a dtype of floats or cast to its own."""
    check_changeable(tensor, name)
    return tensor.assign(values)


class Composed:
    """Methods made of methods."""

    # ---- other shapes ----
    def t(self):
        """A matrix with rows and columns exchanged; a vector or number as it is."""
        check_rank(self, 0, "t", 2)
        return self.transpose(0, 1) if self.ndim == 2 else self

    def adjoint(self):
        """The last two axes exchanged: there are only real numbers."""
        check_rank(self, 2, "adjoint")
        return self.transpose(-2, -1)

    @property
    def mT(self):
        """The last two axes exchanged."""
        return self.adjoint()

    @property
    def mH(self):
        """The last two axes exchanged: there are only real numbers."""
        return self.adjoint()

    @property
    def H(self):
        """A matrix with rows and columns exchanged."""
        return self.t()

    def split_with_sizes(self, split_sizes: Sequence[int], dim=0) -> list[Tensor]:
        """Parts of these sizes along @dim."""
        return self.split(sizes_of(split_sizes, "split_with_sizes"), dim)

    def tensor_split(self, indices_or_sections: int | Sequence[int] | Tensor, dim=0) -> list[Tensor]:
        """So many parts along @dim, the first ones longer where it does not divide; or cut before each of some positions."""
        check_rank(self, 1, "tensor_split")
        ends = indices_or_sections.tolist() if hasattr(indices_or_sections, "tolist") else indices_or_sections
        size = self.shape[dim]
        if not hasattr(ends, "__iter__"):
            if ends < 1:
                raise InvalidError(f"tensor_split: {ends} parts")
            ends = [i * (size // ends) + min(i, size % ends) for i in range(1, ends)]
        ends = sizes_of([*ends, size], "tensor_split")
        return [self.slice(dim, start, end) for start, end in zip([0, *ends], ends)]

    def hsplit(self, indices_or_sections: int | Sequence[int] | Tensor) -> list[Tensor]:
        """tensor_split() along the second axis, or the only one."""
        check_rank(self, 1, "hsplit")
        return evenly(self, indices_or_sections, min(self.ndim - 1, 1), "hsplit")

    def vsplit(self, indices_or_sections: int | Sequence[int] | Tensor) -> list[Tensor]:
        """tensor_split() along the first axis."""
        check_rank(self, 2, "vsplit")
        return evenly(self, indices_or_sections, 0, "vsplit")

    def dsplit(self, indices_or_sections: int | Sequence[int] | Tensor) -> list[Tensor]:
        """tensor_split() along the third axis."""
        check_rank(self, 3, "dsplit")
        return evenly(self, indices_or_sections, 2, "dsplit")

    def diagflat(self, offset=0):
        """All elements as a diagonal of a square matrix."""
        return self.flatten().diag(offset)

    def diag_embed(self, offset=0, dim1=-2, dim2=-1):
        """The last axis as diagonals of square matrices along new axes @dim1 and @dim2."""
        n = (self.shape[-1] if self.ndim > 0 else 1) + abs(offset)
        rows = self.pad((max(-offset, 0), max(offset, 0))).unsqueeze(-1) if self.ndim else self.reshape(1, 1)
        columns = self.new_tensor(range(n), dtype="int32")
        found = (columns.unsqueeze(1) + offset == columns).where(rows, 0)
        return found.movedim((-2, -1), (dim1, dim2))

    def sum_to_size(self, *size: int | Sequence[int]):
        """Summed over what broadcasting from @size gave."""
        size = tuple(sizes_of(size[0] if len(size) == 1 else size, "sum_to_size"))
        more = self.ndim - len(size)
        if more < 0 or any(b not in (1, a) for a, b in zip(self.shape[more:], size)):
            raise InvalidError(f"sum_to_size: {size} does not broadcast to {self.shape}")
        axes = [i for i in range(self.ndim) if i < more or size[i - more] != self.shape[i]]
        return self.sum(axes, keepdim=True).reshape(size) if axes else self

    # ---- statistics ----
    def quantile(self, q: Tensor | float | Sequence[float], dim=None, keepdim=False, *, interpolation="linear", axis=UNSET):
        """What is @q of the way from the least to the greatest along @dim, for each of @q along a new first axis. Between two
        elements: linear, lower, higher, midpoint or nearest. NaN where there is one."""
        return quantiles(self, q, dim if axis is UNSET else axis, keepdim, interpolation, False)

    def nanquantile(self, q: Tensor | float | Sequence[float], dim=None, keepdim=False, *, interpolation="linear", axis=UNSET):
        """quantile() of what is no NaN."""
        return quantiles(self, q, dim if axis is UNSET else axis, keepdim, interpolation, True)

    def nanmedian(self, dim=None, keepdim=False, *, axis=UNSET) -> Any:
        """median() of what is no NaN."""
        dim = dim if axis is UNSET else axis
        rows = rows_of(self, dim, "nanmedian")
        values, indices = rows.sort(-1)
        middle = ((rows == rows).sum(-1, keepdim=True) - 1).clamp(0) // 2
        found = Found(with_axis(one.gather(-1, middle).squeeze(-1), self, dim, keepdim) for one in (values, indices))
        return found.values if dim is None else found

    def mode(self, dim=-1, keepdim=False, *, axis=UNSET) -> Found:
        """The most frequent element along @dim, the least of several, and where its last one is."""
        dim = dim if axis is UNSET else axis
        values, indices = rows_of(self, dim, "mode").sort(-1)
        first, after = values.searchsorted(values), values.searchsorted(values, right=True)
        start = (after - first).argmax(-1, keepdim=True)
        last = after.gather(-1, start) - 1
        return Found(with_axis(one.gather(-1, last).squeeze(-1), self, dim, keepdim) for one in (values, indices))

    def cov(self, correction=1, fweights: Tensor = None, aweights: Tensor = None):
        """The covariances of variables, which are rows of observations, in a matrix. @fweights: how often each observation was
        made; @aweights: how much each counts."""
        check_rank(self, 0, "cov", 2)
        x = self if self.ndim == 2 else self.reshape(1, -1)
        x = wide(x) if x.is_floating_point() else x.cast(dtypes.default_float)
        weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
        if weights is None:
            x, total, norm = x - x.mean(1, keepdim=True), None, max(x.shape[1] - correction, 0)
        else:
            total = weights.sum()
            x = x - (x * weights).sum(1, keepdim=True) / total
            norm = total - correction * ((weights * aweights).sum() / total if aweights is not None else 1)
        found = (x if weights is None else x * weights) @ x.transpose(0, 1) / norm
        return rounded(found if x.shape[0] != 1 else found.reshape(()), self)

    def corrcoef(self):
        """The correlations of variables, which are rows of observations, in a matrix."""
        found = wide(self).cov()
        if found.ndim == 0:
            return rounded(found / found, self)
        length = found.diagonal().sqrt()
        return rounded((found / length.unsqueeze(1) / length).clamp(-1, 1), self)

    def renorm(self, p, dim, maxnorm: float):
        """Parts along @dim that are longer than @maxnorm, by norm(@p), made that long."""
        axes = [i for i in range(self.ndim) if i != dim % self.ndim]
        length = self.norm(p, axes, keepdim=True)
        return self * (length > maxnorm).where(maxnorm / (length + 1e-7), 1.0)

    # ---- distances and products ----
    def dist(self, other: Operand, p=2):
        """The length of the difference."""
        return (self - other).norm(p)

    def cdist(self, x2, p=2.0):
        """The distance of each vector (…, P, M) to each of @x2 (…, R, M): (…, P, R)."""
        check_rank(self, 2, "cdist")
        check_rank(x2, 2, "cdist")
        return (self.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, -1)

    def pdist(self, p=2.0):
        """The distances of each two of some vectors (N, M), (N (N - 1) / 2)."""
        check_rank(self, 2, "pdist", 2)
        n = self.shape[0]
        first = [i for i in range(n) for j in range(i + 1, n)]
        second = [j for i in range(n) for j in range(i + 1, n)]
        return (self[first] - self[second]).norm(p, -1)

    def vdot(self, other: Tensor):
        """The sum of products of two vectors."""
        return self.dot(other)

    def addmv(self, mat, vec, *, beta=1, alpha=1):
        """@beta times this and @alpha times @mat @ @vec."""
        check_rank(vec, 1, "addmv", 1)
        return scaled(self, beta, mat.mv(vec), alpha)

    def addr(self, vec1, vec2, *, beta=1, alpha=1):
        """@beta times this and @alpha times the products of each two elements."""
        return scaled(self, beta, vec1.outer(vec2), alpha)

    def addbmm(self, batch1, batch2, *, beta=1, alpha=1):
        """@beta times this and @alpha times the sum of the products of matrices."""
        return scaled(self, beta, batch1.bmm(batch2).sum(0), alpha)

    def logdet(self):
        """The logarithm of the determinant; NaN where that is below 0."""
        sign, size = self.slogdet()
        return (sign < 0).where(float("nan"), size)

    def cholesky_solve(self, L: Tensor, upper=False):
        """X with A X = this, for A whose cholesky() @L is."""
        L = L.adjoint() if upper else L
        return L.adjoint().solve_triangular(L.solve_triangular(self, upper=False), upper=True)

    def pinverse(self, rcond=1e-15):
        """linalg.pinv()."""
        from .linalg import pinv
        return pinv(self, rcond)

    def positive(self):
        """This tensor."""
        return self

    def float_power(self, exponent: Operand):
        """pow() in float64."""
        return self.double().pow(exponent.double() if isinstance(exponent, Base) else float(exponent))

    def ldexp(self, other: Operand):
        """This times 2 to the power @other."""
        return self * (other if isinstance(other, Base) else self.new_tensor(other)).exp2()

    # ---- questions ----
    def equal(self, other: Tensor) -> bool:
        """Whether the sizes and all elements are the same; reads the answer."""
        return self.shape == other.shape and bool((self == other).all().item())

    def is_same_size(self, other: Tensor) -> bool:
        return self.shape == other.shape

    def is_nonzero(self) -> bool:
        """Whether the one element is not 0; reads it."""
        return bool(self)

    def is_complex(self) -> bool:
        return False

    def is_signed(self) -> bool:
        return self.dtype.is_signed

    @property
    def is_cuda(self) -> bool:
        return self.device == "CUDA" or self.device[:5] == "CUDA:"

    @property
    def is_cpu(self) -> bool:
        return self.device == "CPU" or self.device[:4] == "CPU:"

    def ndimension(self) -> int:
        return self.ndim

    # ---- others of the same kind ----
    def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
        """A tensor of @data where this is."""
        return type(self)(data, dtype=dtype, device=device or self.get_device(), requires_grad=requires_grad or None)

    def new_zeros(self, *size, dtype=None, device=None, requires_grad=False):
        """All 0, of this dtype unless another is given, where this is."""
        return self.zeros(*size, dtype=dtype or self.dtype, device=device or self.get_device(), requires_grad=requires_grad or None)

    def new_ones(self, *size, dtype=None, device=None, requires_grad=False):
        """All 1, of this dtype unless another is given, where this is."""
        return self.ones(*size, dtype=dtype or self.dtype, device=device or self.get_device(), requires_grad=requires_grad or None)

    def new_empty(self, *size, dtype=None, device=None, requires_grad=False):
        """Unspecified values, of this dtype unless another is given, where this is."""
        return self.empty(*size, dtype=dtype or self.dtype, device=device or self.get_device(), requires_grad=requires_grad or None)

    def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False):
        """All @fill_value, of this dtype unless another is given, where this is."""
        return self.full(size, fill_value, dtype or self.dtype, device or self.get_device(), requires_grad or None)

    def byte(self):
        """As uint8."""
        return self.cast(dtypes.uint8)

    def char(self):
        """As int8."""
        return self.cast(dtypes.int8)

    def cuda(self, device: str | int = None):
        """On a device of CUDA."""
        return self.to("CUDA" if device is None else f"CUDA:{device}" if isinstance(device, int) else device)

    @property
    def uop(self) -> UOp:
        """The node of the tensor graph that it is, with its sources: made to be looked at."""
        from .uop import uop_of
        return uop_of(self)

    def schedule(self, *others: Tensor) -> list[Kernel]:
        """The kernels that realize (*@others) would run, in their order. Nothing runs."""
        from .uop import schedule_of
        return schedule_of(self, others)

    schedule_linear = schedule

    # ---- tinygrad's names ----
    @property
    def is_param(self) -> bool:
        """False if optimisers are not to change it, as is_param_() and requires_grad say."""
        return not self.is_frozen

    @property
    def max_shape(self) -> tuple[int, ...]:
        """The sizes, of an axis whose size is a variable the largest one."""
        return self.shape

    def max_numel(self) -> int:
        """The elements of max_shape."""
        return self.numel()

    def ufix(self, x: Operand):
        """A tensor as it is, a number as one of this dtype."""
        return x if isinstance(x, Base) else self.full((), x, dtype=self.dtype, device=self.get_device())

    def image_dot(self, w: Tensor, dtype=None):
        """dot(): memory of images is none of its own here."""
        return self.dot(w) if dtype is None else self.dot(w).cast(dtype)

    def image_conv2d(self, weight, bias: Tensor = None, groups=1, stride=1, dilation=1, padding=0, dtype=None):
        """conv2d(): memory of images is none of its own here."""
        found = self.conv2d(weight, bias, stride, padding, dilation, groups)
        return found if dtype is None else found.cast(dtype)

    def register_hook(self, hook: Callable[[Any], Any]) -> GradientHook:
        """Calls @hook with its gradient, a lazy tensor, whenever that is found; a tensor that it gives takes its place. A hook that refers to
        a computed tensor, or a layer's, that it is of keeps both until remove(). See autograd.GradientHook."""
        from .autograd import GradientHook
        return GradientHook(self, hook)

    def retain_grad(self):
        """Gives a computed tensor its gradient as .grad, of what is made of it from now on."""
        if self.is_leaf or vars(self).get("retains_grad"):
            return
        own = ref(self)
        self.retains_grad = True

        def keep(gradient):
            tensor = own()
            if tensor is not None:
                tensor.grad = gradient if tensor.grad is None else tensor.grad + gradient
        self.register_hook(keep)

    @property
    def grad_fn(self) -> Any:
        """The node that a gradient goes back from; None of what gradients end at."""
        return self.uop if self.requires_grad and not self.is_leaf else None

    # ---- in memory, of which a program sees rows of elements without gaps ----
    def is_contiguous(self, memory_format: Any = None) -> bool:
        """True: view() takes every tensor."""
        return True

    def stride(self, dim: int = None) -> Any:
        """How many elements there are from one position to the next along each axis, or along @dim."""
        found = tuple(prod(self.shape[i + 1:]) for i in range(self.ndim))
        return found if dim is None else found[dim]

    def storage_offset(self) -> int:
        return 0

    @property
    def is_sparse(self) -> bool:
        return False

    def new(self, *data: Any):
        """A tensor of this dtype of these sizes, or of this data."""
        return self.new_empty(*data) if all(isinstance(one, int) for one in data) else self.new_tensor(*data)

    # ---- a part replaced ----
    def slice_scatter(self, src, dim=0, start: int = None, end: int = None, step=1):
        """@src in the place of a slice along @dim."""
        found = self.clone()
        found[(slice(None),) * (dim % self.ndim) + (slice(start, end, step),)] = src
        return found

    def select_scatter(self, src, dim: int, index: int):
        """@src in the place of position @index along @dim."""
        found = self.clone()
        found[(slice(None),) * (dim % self.ndim) + (index,)] = src
        return found

    # ---- of matrices ----
    def matrix_exp(self):
        """The exponential of matrices: their halves' until the norm is below 1, a series of 12 terms, and squares (Moler and Van Loan 2003)."""
        check_rank(self, 2, "matrix_exp")
        norm = self.detach().abs().sum(-1).max().item() if self.numel() else 0.0
        squarings = max(0, frexp(norm)[1]) if isfinite(norm) else 0
        x = self / 2.0 ** squarings
        found = one = self.new_ones(self.shape[-1]).diag_embed().expand(self.shape)
        for n in range(12, 0, -1):
            found = one + x @ found / n
        for _ in range(squarings):
            found = found @ found
        return found

    def cholesky_inverse(self, upper=False):
        """The inverse of the matrix whose cholesky() this is."""
        return self.new_ones(self.shape[-1]).diag_embed().expand(self.shape).cholesky_solve(self, upper)

    # ---- random numbers and constants in the place of the elements ----
    def uniform_(self, low=0.0, high=1.0):
        """Uniform over [@low, @high)."""
        return drawn(self, self.uniform(self.shape, low=low, high=high, device=self.get_device()), "uniform_")

    def normal_(self, mean=0.0, std=1.0):
        """Normal with that mean and standard deviation."""
        return drawn(self, self.normal(self.shape, mean=mean, std=std, device=self.get_device()), "normal_")

    def exponential_(self, lambd=1.0):
        """Distributed as @lambd exp (-@lambd x)."""
        return drawn(self, -(1 - self.rand(self.shape, device=self.get_device())).log() / lambd, "exponential_")

    def bernoulli_(self, p: Operand = 0.5):
        """1 with that probability, 0 otherwise."""
        p = p if isinstance(p, Base) else self.full(self.shape, float(p), device=self.get_device())
        return drawn(self, p.expand(self.shape).bernoulli(), "bernoulli_")

    def random_(self, low: int = 0, high: int = None):
        """Whole numbers from @low up to before @high, or of one number from 0 up to before it; of none to what the dtype has exactly."""
        if high is None:
            most = 1 << {"float16": 11, "bfloat16": 8, "float32": 24}.get(self.dtype.name, min(self.dtype.bitsize - self.dtype.is_signed, 31))
            low, high = (0, low) if low else (0, most)
        return drawn(self, self.randint(*self.shape, low=low, high=high, device=self.get_device()), "random_")

    def fill_diagonal_(self, fill_value):
        """@fill_value where all positions are equal."""
        check_rank(self, 2, "fill_diagonal_")
        if self.ndim > 2 and len(set(self.shape)) > 1:
            raise InvalidError(f"fill_diagonal_: all axes of {self.shape} have to be of one size")
        where = True
        for i in range(1, self.ndim):
            positions = [self.new_tensor(range(self.shape[k]), dtype="int32").reshape([-1 if j == k else 1 for j in range(self.ndim)]) for k in (0, i)]
            where = (positions[0] == positions[1]) * where
        return put(self, where.where(fill_value, self), "fill_diagonal_")

    # ---- tinygrad's ----
    def usum(self, *others: Operand):
        """The sum of this and @others; of bool: or."""
        for other in spread_tensors(others):
            self = self + other
        return self

    def uprod(self, *others: Operand):
        """The product of this and @others; of bool: and."""
        for other in spread_tensors(others):
            self = self * other
        return self

    def custom_kernel(self, *others: Tensor | Sequence[Tensor], code: str) -> list[Tensor]:
        """The results of a kernel written in the IR's text (docs/ir.md), whose inputs are this and @others."""
        code = as_text(code, "custom_kernel: code")
        return list(checked_all(Tiny.custom_kernel(code, [self, *spread_tensors(others)])))

    def sequential(self, functions: Sequence[Callable[[Any], Any]]):
        """What a list of functions makes of it, one after the other."""
        for function in functions:
            self = function(self)
        return self
