# SPDX-License-Identifier: MIT
"""What PyTorch has as functions and not as methods: tinycore.column_stack ([x, y]). Loaded when one is used."""
from __future__ import annotations

from functools import wraps
from itertools import combinations as choices, combinations_with_replacement
from math import cos, log, pi

from .amp import autocast as autocast, get_autocast_dtype as get_autocast_dtype, is_autocast_enabled as is_autocast_enabled
from .context import no_grad
from .convert import Size, as_axis, operand, results_class, spread_tensors
from .creation import float_dtype
from .device import Device, named_device
from .dtypes import as_dtype, dtypes
from .errors import InvalidError, explain_all
from .helpers import GlobalCounters as GlobalCounters
from .library import Tiny
from .tensor import Base, Tensor


class inference_mode(no_grad):
    """no_grad() under PyTorch's newer name; @mode False: gradients flow."""

    def __init__(self, mode=True):
        super().__init__(not mode)


def function(fxn: Callable[..., Any] = None, *, precompile=False, precompile_backward=False, allow_implicit=False, grad_fxn: None = None) -> Any:
    """tinygrad's decorator for parts of a network that are scheduled by themselves: @fxn itself, as a plan is found for what was seen before anyway. A gradient of
    its own is autograd.custom_gradient()."""
    if grad_fxn is not None:
        raise NotImplementedError("function: grad_fxn: take autograd.custom_gradient() or autograd.Function")
    return (lambda found: found) if fxn is None else fxn


finfo, iinfo = dtypes.finfo, dtypes.iinfo
Found = results_class("values", "indices")
Factors = results_class("u", "s", "v")
# How PyTorch's functions call their first argument, where that is not input. Some take no tensor but several.
FIRST = {"where": "condition", "isin": "elements", "searchsorted": "sorted_sequence", "split": "tensor", "tensordot": "a", "triplet_margin_loss": "anchor",
         **dict.fromkeys(("cdist", "cosine_similarity"), "x1"), **dict.fromkeys(("cosine_embedding_loss", "margin_ranking_loss"), "input1"),
         **dict.fromkeys("cholesky inv det slogdet lu lu_factor qr svd solve solve_triangular".split(), "A"), "scaled_dot_product_attention": "query"}


def older_reduction(size_average, reduce):
    """The reduction of losses as PyTorch's older programs say it."""
    return "none" if reduce is False else "sum" if size_average is False else "mean"


def of_tensor(method, name, finish=None):
    """A method as a function of a tensor, also by the name that this has in PyTorch. @finish (tensor, result, inplace) makes the result where it is given."""
    first, n_most = FIRST.get(name, "input"), getattr(getattr(getattr(method, "__wrapped__", method), "__code__", None), "co_argcount", 0)

    @wraps(method)
    def function(*arguments, **more):
        if first in more:
            arguments = (more.pop(first), *arguments)
        if "size_average" in more or "reduce" in more and name.endswith(("loss", "entropy", "logits")):
            more["reduction"] = older_reduction(more.pop("size_average", None), more.pop("reduce", None))
        if finish is None:
            return method(*arguments, **more)
        if len(arguments) == n_most + 1 and isinstance(arguments[-1], bool):  # relu (x, True)
            *arguments, more["inplace"] = arguments
        if not arguments or not isinstance(arguments[0], Base):
            raise TypeError(f"{name}: {first}: a tensor is wanted, not {arguments[0]!r:.60}" if arguments else f"{name}: not given: {first}")
        inplace = more.pop("inplace", False)
        return finish(arguments[0], method(*arguments, **more), inplace)
    return function


# ---- what there is ----
def is_tensor(obj: Any) -> bool:
    return isinstance(obj, Base)


class KindOfTensor:
    """PyTorch's older names: LongTensor ([1, 2]) is a tensor of these, FloatTensor (2, 3) and FloatTensor (x.size ()) one of this shape. Also a dtype."""

    name: str

    def __init__(self, name: str):
        self.name = name

    def __call__(self, *data: Any):
        data = data[0] if len(data) == 1 and isinstance(data[0], Size) else data
        is_shape = isinstance(data, Size) or all(isinstance(one, int) for one in data)
        return Tensor.empty(*data or (0,), dtype=self.name) if is_shape else Tensor(*data, dtype=self.name)


KINDS = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16", "LongTensor": "int64", "IntTensor": "int32",
         "ShortTensor": "int16", "CharTensor": "int8", "ByteTensor": "uint8", "BoolTensor": "bool"}
FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, LongTensor, IntTensor, ShortTensor, CharTensor, ByteTensor, BoolTensor = map(KindOfTensor, KINDS.values())


def typename(obj: Any) -> str:
    return obj.type() if is_tensor(obj) else f"{type(obj).__module__}.{type(obj).__qualname__}"


def is_grad_enabled() -> bool:
    """Whether gradients flow through what is computed on this thread."""
    return Tiny.is_grad_enabled()


def is_inference_mode_enabled() -> bool:
    return not Tiny.is_grad_enabled()


def get_default_dtype() -> DType:
    """The format of floats that nothing else decides."""
    return dtypes.default_float


def set_default_dtype(d: DTypeLike):
    dtypes.default_float = as_dtype(d)


def promote_types(type1: DTypeLike, type2: DTypeLike) -> DType:
    """The dtype of what is computed of both."""
    return result_type(Tensor.zeros(1, dtype=type1), Tensor.zeros(1, dtype=type2))


def result_type(tensor1: Operand, tensor2: Operand) -> DType:
    """The dtype of the sum of two tensors or numbers."""
    return ((tensor1 if is_tensor(tensor1) else operand(tensor1, "result_type")) + tensor2).dtype


def can_cast(from_: DTypeLike, to: DTypeLike) -> bool:
    """Whether numbers of one kind are numbers of another: no floats as integers."""
    kinds = "buif"
    return kinds.index(as_dtype(from_).kind) <= kinds.index(as_dtype(to).kind) or as_dtype(to).kind == "u" and as_dtype(from_).kind == "i"


# ---- making ----
def as_tensor(data, dtype=None, device=None):
    """@data itself where it is such a tensor; else one of it."""
    if not is_tensor(data):
        return Tensor(data, dtype=dtype, device=device)
    return data.to(device, dtype) if device is not None or dtype not in (None, data.dtype) else data


def asarray(obj: Any, *, dtype=None, device=None):
    """as_tensor()."""
    return as_tensor(obj, dtype, device)


def from_numpy(ndarray: Array):
    """A tensor of an array's elements: a copy."""
    return Tensor(ndarray)


def frombuffer(buffer: Any, *, dtype, count=-1, offset=0):
    """A tensor of @count elements in a buffer from byte @offset on: a copy."""
    size = as_dtype(dtype).itemsize
    data = memoryview(buffer).cast("B")[offset:]
    return Tensor(bytes(data[:count * size] if count >= 0 else data[:len(data) // size * size]), dtype=dtype)


def scalar_tensor(s: Number, dtype=None, device=None):
    return Tensor(s, dtype=float_dtype(dtype), device=device)


def logspace(start: float, end: float, steps: int, base=10.0, dtype=None, device=None, requires_grad=None):
    """@steps powers of @base with exponents from @start to @end at equal distances."""
    found = (Tensor.linspace(start, end, steps, dtype="float64", device=device) * log(base)).exp().cast(float_dtype(dtype))
    return found if requires_grad is None else found.requires_grad_(requires_grad)


def randint_like(input, low: int, high: int = None, *, dtype=None, device=None):
    """Integers from @low up to before @high, in the shape and dtype of @input."""
    low, high = (0, low) if high is None else (low, high)
    return Tensor.randint(*input.shape, low=low, high=high, device=device or input.get_device()).cast(dtype or input.dtype)


def triangle(row, col, offset, is_lower, dtype, device):
    places = [(i, j) for i in range(row) for j in range(col) if (j - i <= offset if is_lower else j - i >= offset)]
    return Tensor([[i for i, _ in places], [j for _, j in places]], dtype=dtype, device=device)


def tril_indices(row, col, offset=0, dtype="int64", device=None):
    """The rows and columns of what is on and below a diagonal of a matrix."""
    return triangle(row, col, offset, True, dtype, device)


def triu_indices(row, col, offset=0, dtype="int64", device=None):
    """The rows and columns of what is on and above a diagonal of a matrix."""
    return triangle(row, col, offset, False, dtype, device)


def window(n, periodic, dtype, weights):
    """A sum of cosines, the factors of which alternate in sign."""
    whole = (n if periodic else n - 1) or 1
    return Tensor([sum((-1) ** k * w * cos(2 * pi * k * i / whole) for k, w in enumerate(weights)) if n > 1 else 1.0 for i in range(n)],
                  dtype=float_dtype(dtype))


def hann_window(window_length: int, periodic=True, *, dtype=None):
    return window(window_length, periodic, dtype, (0.5, 0.5))


def hamming_window(window_length: int, periodic=True, alpha=0.54, beta=0.46, *, dtype=None):
    return window(window_length, periodic, dtype, (alpha, beta))


def blackman_window(window_length: int, periodic=True, *, dtype=None):
    return window(window_length, periodic, dtype, (0.42, 0.5, 0.08))


def vander(x, N: int = None, increasing=False):
    """Powers of each element of a vector in a row, from N - 1 down, or from 0 up."""
    from .linalg import vander as rows
    found = rows(x, N=N)
    return found if increasing else found.flip(-1)


# ---- several tensors ----
def raised(given, rank):
    """Tensors with at least so many axes; of one, not a list."""
    if len(given) != 1 or not is_tensor(given[0]):
        return tuple(raised([one], rank) for one in spread_tensors(given))
    one = given[0]
    if one.ndim == 0:
        return one.reshape((1,) * rank)
    one = one.unsqueeze(0) if one.ndim == 1 and rank > 1 else one
    return one.unsqueeze(-1) if one.ndim == 2 and rank > 2 else one


def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    return raised(tensors, 1)


def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """A vector is a row."""
    return raised(tensors, 2)


def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """A vector is (1, N, 1), a matrix (M, N, 1)."""
    return raised(tensors, 3)


def column_stack(tensors: Sequence[Tensor]):
    """Tensors side by side; a vector is a column."""
    return Tensor.hstack([one.reshape(-1, 1) if one.ndim < 2 else one for one in tensors])


def block_diag(*tensors):
    """Matrices along the diagonal of one."""
    tensors = raised([spread_tensors(tensors)], 2)
    width, rows, left = sum(one.shape[1] for one in tensors), [], 0
    for one in tensors:
        if one.ndim > 2:
            raise InvalidError(f"block_diag: matrices are wanted, not {one.shape}")
        rows.append(one.pad((left, width - left - one.shape[1])))
        left += one.shape[1]
    return Tensor.cat(rows)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The sizes of what is computed of tensors of these sizes."""
    rank = max((len(shape) for shape in shapes), default=0)
    found = [1] * rank
    for shape in shapes:
        for i, size in enumerate(shape, rank - len(shape)):
            if size != 1 and found[i] not in (1, size):
                raise InvalidError(f"broadcast_shapes: sizes {found[i]} and {size} do not go together")
            found[i] = size if size != 1 else found[i]
    return tuple(found)


def broadcast_tensors(*tensors) -> tuple[Tensor, ...]:
    """Tensors expanded to the sizes of what is computed of them."""
    tensors = spread_tensors(tensors)
    shape = broadcast_shapes(*(one.shape for one in tensors))
    return tuple(one.expand(shape) for one in tensors)


def cartesian_prod(*tensors):
    """Each element of a vector with each of the others, in rows."""
    if len(tensors) == 1:
        return tensors[0]
    return Tensor.stack([one.flatten() for one in Tensor.meshgrid(*tensors)], dim=1)


def combinations(input, r=2, with_replacement=False):
    """Each choice of @r elements of a vector, in rows."""
    rows = list((combinations_with_replacement if with_replacement else choices)(range(input.shape[0]), r))
    return input[Tensor(rows, dtype="int32").reshape(len(rows), r)] if rows and r else input.new_zeros(0)


def chain_matmul(*matrices: Tensor):
    """linalg.multi_dot()."""
    from .linalg import multi_dot
    return multi_dot(matrices)


# ---- where the two that names are from differ: methods are tinygrad's, functions PyTorch's ----
def extreme(name, input, dim, keepdim, other):
    """PyTorch's max() and min(), which are Tensor.@name of all elements, of those at the same place of two tensors, or
    along @dim with where they were."""
    if other is not None or is_tensor(dim):
        return getattr(input, name + "imum")(dim if other is None else other)
    if dim is None:
        return getattr(input, name)()
    at = getattr(input, "arg" + name)(as_axis(dim, f"{name}: dim"), True)
    found = Found([input.take_along_dim(at, dim) if input.ndim else input, at])
    return found if keepdim or not input.ndim else Found([one.squeeze(dim) for one in found])


def svd(input, some=True, compute_uv=True) -> Factors:
    """PyTorch's: U, S and V, of which linalg.svd() and the method give the transpose; @some: no more columns than needed."""
    u, values, vh = input.svd(full_matrices=not some)
    found = Factors([u, values, vh.transpose(-2, -1)])
    return found if compute_uv else Factors([u.zeros_like(), values, found[2].zeros_like()])


def lu(A, pivot=True, get_infos=False) -> tuple[Tensor, ...]:
    """PyTorch's older lu_factor(): both factors in one matrix, and the pivots; linalg.lu() and the method give three matrices."""
    found = A.lu_factor()
    return (*found, A.new_zeros(A.shape[:-2], dtype="int32")) if get_infos else tuple(found)


def pow(input: Operand, exponent: Operand, *, out: None = None):  # noqa: A001
    """@input to the power @exponent, one of which may be a number."""
    return (input if is_tensor(input) else operand(input, "pow")).pow(exponent)


def rsub(input, other: Operand, *, alpha: float = 1):
    """@other - @alpha * @input."""
    return other - input * alpha


def gradient(input, *, spacing: float = 1, dim: int | Sequence[int] = None, edge_order=1) -> list[Tensor]:
    """How @input changes along its axes, or along @dim, by differences of neighbours at distances of @spacing; the method is tinygrad's, of gradients of a loss."""
    if edge_order != 1 or not isinstance(spacing, (int, float)):
        raise NotImplementedError("gradient: spacing is one number, and edge_order 1")
    found = []
    for axis in range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim:
        n = input.shape[axis]
        steps = input.diff(axis=axis) / spacing
        first, last = steps.narrow(axis, 0, 1), steps.narrow(axis, n - 2, 1)
        inner = (steps.narrow(axis, 0, n - 2) + steps.narrow(axis, 1, n - 2)) / 2
        found.append(Tensor.cat([first, inner, last], dim=axis))
    return found


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness="error", *, chunk_size: int = None) -> Callable[..., Any]:
    """func.vmap()."""
    from .func import vmap as made
    return made(func, in_dims, out_dims, randomness, chunk_size=chunk_size)


# ---- settings that PyTorch's programs make ----
def compile(model: Callable[..., Any] = None, **options: Any) -> Any:  # noqa: A001
    """@model itself, also as a decorator: all is compiled, and what was planned is found again. TinyJit records a whole function."""
    return model if model is not None else lambda found: found


def accepted(*arguments: Any, **more: Any):
    """Nothing: what it sets in PyTorch is so anyway, or is nothing to choose here."""


set_num_threads = set_num_interop_threads = use_deterministic_algorithms = set_float32_matmul_precision = accepted
set_printoptions = set_warn_always = set_flush_denormal = set_deterministic_debug_mode = accepted


def get_num_threads() -> int:
    """How many processors there are for this process."""
    import os
    return int(os.environ.get("TINY_THREADS") or len(os.sched_getaffinity(0)))


def are_deterministic_algorithms_enabled() -> bool:
    """True: the same program gives the same results on one device."""
    return True


def get_float32_matmul_precision() -> str:
    return "highest"


def set_default_device(device):
    """Device.DEFAULT = @device."""
    Device.DEFAULT = device


def get_default_device() -> str:
    return named_device(Device.DEFAULT)


# ---- integrals ----
def slabs(y, x, dx, dim):
    """Areas between neighbours along @dim."""
    n = y.shape[dim]
    both = y.narrow(dim, 1, max(n - 1, 0)) + y.narrow(dim, 0, max(n - 1, 0))
    if x is None:
        return both * (dx / 2)
    width = x.diff(axis=dim if x.ndim > 1 else -1)
    return both * (width if x.ndim > 1 else width.reshape([-1 if i == dim % y.ndim else 1 for i in range(y.ndim)])) / 2


def trapezoid(y, x=None, *, dx=1.0, dim=-1):
    """The integral along @dim of what is @y at @x, or at distances of @dx."""
    return slabs(y, x, dx, dim).sum(dim)


def cumulative_trapezoid(y, x=None, *, dx=1.0, dim=-1):
    """The integrals along @dim up to each element but the first."""
    return slabs(y, x, dx, dim).cumsum(dim)


trapz = trapezoid


explain_all(globals())
