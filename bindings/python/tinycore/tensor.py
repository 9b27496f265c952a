# SPDX-License-Identifier: MIT
"""Tensor: the library's tensor as Python's arrays are.

The class is the wrapper that PyGObject itself makes for a TinyTensor, so what the library returns is a Tensor
without another object around it. Operations come from the table (operations.py), creation from creation.py."""
from __future__ import annotations

import struct
from array import array
from ctypes import addressof, c_char
from typing import TYPE_CHECKING, Any, Literal, overload

from . import indexing
from .calls import Calls
from .context import Training
from .convert import EXACT, NO_AXIS, UNSET, Base, Size, as_axis, checked_all, kept_sizes, names_of, one_name, one_of, operand, pairs_of
from .creation import Creation
from .data import TYPECODES, nested, nested_empty, tensor_of
from .device import Device, named_device
from .dtypes import as_dtype, by_value, dtypes
from .errors import InvalidError, OutsideError, call, checked, fail, owned, suggest_keywords
from .in_place import Values, check_changeable, set_data
from .jit import refuse_reading
from .library import GLibError, Tiny
from .operations import Operations
from .operators import add_operators, is_operand

c_realize, c_item, c_copy_data, c_get_dtype, c_get_shape = Base.realize, Base.item, Base.copy_data, Base.get_dtype, Base.get_shape


class Tensor(Creation, Calls, Base):
    """An array of numbers, computed when it is asked for.

    Tensor(data, device=None, dtype=None, requires_grad=None): @data is a number, nested lists, a NumPy array, bytes,
    a memoryview, a path, or a tensor, through which gradients flow; of a tensor it is a copy."""

    __gtype__ = Base.__gtype__
    __array_ufunc__ = None  # NumPy leaves array + tensor to us
    __array_priority__ = 1000
    training: bool = False

    def __new__(cls, data: Any = None, device=None, dtype=None, requires_grad=None):
        dtype = None if dtype is None else as_dtype(dtype)
        device = None if device is None else one_name(device)
        if isinstance(data, Base):
            tensor = data.cast(dtype or data.dtype)
            tensor = tensor if device is None else tensor.to(device)
        else:
            tensor = tensor_of(data, dtype, device)
        if requires_grad is not None:
            tensor.requires_grad = requires_grad
        return tensor

    def __init__(self, *arguments, **more):
        pass

    def __init_subclass__(cls, **more):
        raise TypeError("Tensor cannot be derived from: hold one in an object of your own")

    # ---- what is known without computing ----
    @property
    def shape(self) -> Size:
        return Size(self.get_shape())

    @property
    def dtype(self) -> DType:
        return by_value[c_get_dtype(self)]

    @property
    def device(self) -> Any:
        """Where it is or will be computed: a name, or a tuple of them."""
        name = self.get_device() or Device.DEFAULT
        return tuple(name.split(";")) if ";" in name else named_device(name)

    @property
    def ndim(self) -> int:
        return self.get_n_dims()

    dim: Callable[[], int] = Base.get_n_dims

    def numel(self) -> int:
        """How many elements there are."""
        return self.get_n_elements()

    nelement = numel

    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.get_n_bytes()

    def element_size(self) -> int:
        """The bytes of one element."""
        return self.dtype.itemsize

    itemsize = property(element_size)

    def is_floating_point(self) -> bool:
        return self.dtype.kind == "f"

    def size(self, dim=None) -> Any:
        """The sizes, or that of one axis."""
        return self.shape if dim is None else self.shape[dim]

    @property
    def T(self):
        return self.permute(*range(self.ndim)[::-1])

    # ---- reading ----
    def realize(self, *others: Tensor):
        """Computes this and @others together."""
        if others:
            call(Base.realize_many, [self, *others])
            return self
        try:
            c_realize(self)
        except GLibError as error:
            fail(error)
        return self

    def bytes_of(self):
        refuse_reading()
        return call(Base.get_data, self).get_data() or b""

    data: Any = property(Values, set_data, doc="data(): a memoryview of the elements. Without a call, what PyTorch's programs change: p.data -= 1, p.data = x.")

    def memory(self) -> memoryview:
        """The elements on the host."""
        dtype, shape = self.dtype, self.shape
        if dtype.fmt is None:
            raise TypeError(f"Python has no number like {dtype.name}: cast first")
        view = memoryview(self.bytes_of())
        return view.cast(dtype.fmt, shape) if all(shape) else view.cast(dtype.fmt)

    def numpy(self, *, force=False) -> Any:
        """A NumPy array with the elements; what NumPy has no dtype for comes as float32. @force is PyTorch's, and changes nothing."""
        import numpy
        dtype = by_value[c_get_dtype(self)]
        if dtype.fmt is None:
            return self.cast(dtypes.float32).numpy()
        refuse_reading()
        out = numpy.empty(c_get_shape(self), dtype.name)
        n_bytes = out.nbytes
        try:
            c_copy_data(self, addressof(c_char.from_buffer(out)) if n_bytes else 0, n_bytes)
        except GLibError as error:
            fail(error)
        return out

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def flat(self) -> list[Any]:
        """All elements as Python's numbers."""
        dtype = self.dtype
        if dtype.fmt is None:
            return self.cast(dtypes.float32).flat()
        data = self.bytes_of()
        if dtype.name in TYPECODES:
            return array(dtype.fmt, data).tolist()
        return list(struct.unpack(f"={len(data) // dtype.itemsize}{dtype.fmt}", data))

    def tolist(self) -> Any:
        """The elements as numbers in nested lists; one number when there are no axes."""
        shape = self.shape
        if not all(shape):
            return nested_empty(shape)
        flat = self.flat()
        return nested(flat, shape) if shape else flat[0]

    def item(self) -> Any:
        """The element of a tensor that has one."""
        refuse_reading()
        dtype = by_value[c_get_dtype(self)]
        if dtype.itemsize == 8 and dtype.kind != "f" and self.get_n_elements() == 1:
            return self.flat()[0]  # a double does not hold them all
        try:
            value = c_item(self)[1]
        except GLibError as error:
            fail(error)
        return value if dtype.kind == "f" else bool(value) if dtype.kind == "b" else int(value)

    def __len__(self):
        if self.get_n_dims() == 0:
            raise TypeError("a tensor without axes has no length")
        return self.get_shape()[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __bool__(self):
        if self.get_n_elements() != 1:
            raise TypeError(f"a tensor of {self.get_n_elements()} elements is neither true nor false: use any() or all()")
        return bool(self.item())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __index__(self):
        if self.dtype.kind == "f":
            raise TypeError(f"a tensor of {self.dtype.name} is no index")
        return int(self.item())

    def __contains__(self, value: Operand):
        if not isinstance(value, Base) and not is_operand(value):
            raise TypeError(f"a tensor holds numbers, not {type(value).__name__}")
        return bool((self == value).any().item())

    def __repr__(self):
        text = self.to_string().replace("\n", "\n       ")
        return f"Tensor({text}, {self.dtype!r}, device={self.device!r})"

    def __str__(self):
        return repr(self)

    def _repr_html_(self):
        """What notebooks show."""
        from html import escape
        size = " × ".join(map(str, self.shape)) or "a number"
        return f"<pre>{escape(self.to_string())}</pre><small>{size}, {self.dtype.name}, on {escape(str(self.device))}</small>"

    def __format__(self, spec: str):
        return format(self.item(), spec) if spec and self.get_n_elements() == 1 else format(str(self), spec)

    __hash__ = Base.__hash__

    # ---- copies ----
    def clone(self):
        """The same values in memory of their own."""
        if not self.is_realized():
            return self.contiguous()
        where = self.device if isinstance(self.device, str) else ";".join(self.device)
        return Tensor.full((), True, dtype="bool", device=where).where(self, self).contiguous()

    def __copy__(self):
        return self.detach()

    @property
    def marks(self):
        """What Python knows of it beside the library: whether it is frozen, and a module's parameter."""
        return {name: value for name, value in vars(self).items() if name in ("is_frozen", "is_parameter") and value}

    @marks.setter
    def marks(self, marks):
        for name, value in marks.items():
            setattr(self, name, value)

    def __deepcopy__(self, memo):
        return restored(self.bytes_of(), self.dtype, self.shape, self.requires_grad and self.is_leaf, self.get_device(), self.marks)

    def __reduce__(self):
        return (restored, (self.bytes_of(), self.dtype, self.shape, self.requires_grad and self.is_leaf, None, self.marks))

    # ---- memory ----
    def contiguous(self, memory_format: Any = None):
        """In memory of its own in row-major order, which is the only @memory_format."""
        return checked(Base.contiguous(self))

    def detach(self):
        """The same values, through which no gradient flows."""
        return checked(Base.detach(self))

    def to(self, device: DeviceLike | DTypeLike | Tensor = None, dtype=None, non_blocking=False, copy=False, *, memory_format: Any = None, other: Tensor = None):
        """On another device, or as another dtype, or both as @other's; @copy: never itself. Copies wait for nothing anyway, and there is one @memory_format."""
        other = device if isinstance(device, Base) else other
        if other is not None:
            device, dtype = other.get_device(), other.dtype
        if isinstance(dtype, bool):  # PyTorch's to (device, non_blocking)
            dtype = None
        if copy:
            self = self.clone()
        if dtype is not None:
            self = self.cast(dtype)
        if device is None:
            return self
        if not isinstance(device, (str, tuple, list)):
            return self.cast(device)
        return checked(Base.to(self, one_name(device)))

    def to_(self, device):
        """Moves it, and its gradient, to another device."""
        call(Base.to_, self, one_name(device))
        return self

    def shard(self, devices: DeviceLike, axis=None):
        """On several devices: cut along @axis, or whole on each."""
        return checked(Base.shard(self, names_of(devices), NO_AXIS if axis is None else as_axis(axis)))

    def shard_(self, devices: DeviceLike, axis=None):
        """Moves it, and its gradient, to several devices."""
        call(Base.shard_, self, names_of(devices), NO_AXIS if axis is None else as_axis(axis))
        return self

    def shard_like(self, other: Tensor):
        """On the devices of @other, and cut as that is."""
        return checked(Base.shard_like(self, other))

    def cpu(self):
        return self.to("CPU")

    def assign(self, value: ArrayLike):
        """Makes @value the contents of this tensor."""
        if not isinstance(value, Base):
            if value is None:
                raise TypeError("assign: a tensor or a number is wanted, not None")
            value = operand(value, "assign") if is_operand(value) else Tensor(value)
            try:
                value = value.expand(self.shape)
            except InvalidError:
                raise InvalidError(f"assign: {value.shape} does not fit into {self.shape}") from None
        call(Base.assign, self, value)
        return self

    def replace(self, value: ArrayLike):
        return self.assign(value)

    def copy_(self, value: Operand, non_blocking=False):
        """Makes @value, broadcast and cast, the contents of this tensor."""
        check_changeable(self, "copy_")
        return self.assign(value.expand(self.shape) if isinstance(value, Base) else value)

    def fill_(self, value: Operand):
        check_changeable(self, "fill_")
        return self.assign(self.full_like(value.item() if isinstance(value, Base) else value))

    def zero_(self):
        return self.fill_(0)

    def type(self, dtype: Any = None, non_blocking=False) -> Any:
        """As another dtype, also by PyTorch's names of kinds of tensors; without one, this kind's name."""
        from .functions import KINDS
        if dtype is None:
            return next((f"torch.{name}" for name, one in KINDS.items() if one == self.dtype.name), self.dtype.name)
        return self.cast(KINDS.get(dtype.rpartition(".")[2], dtype) if isinstance(dtype, str) else getattr(dtype, "dtype", dtype))

    def view_as(self, other: Tensor):
        return self.reshape(other.shape)

    reshape_as = view_as

    def expand_as(self, other: Tensor):
        return self.expand(other.shape)

    def type_as(self, other: Tensor):
        return self.cast(other.dtype)

    # ---- called in another way than in C ----
    def add(self, other, *, alpha: float = 1):
        """self + @alpha * other; of bool: or."""
        return Operations.add(self, other if alpha == 1 else other * alpha)

    def sub(self, other, *, alpha: float = 1):
        """self - @alpha * other."""
        return Operations.sub(self, other if alpha == 1 else other * alpha)

    subtract = sub

    def pad(self, padding: Sequence[int | Sequence[int] | None] = UNSET, mode="constant", value: float = 0.0, *, pad: Sequence[int | Sequence[int] | None] = UNSET):
        """With more around it. @padding: numbers before and after as in PyTorch, the last axis first; or a pair for each axis,
        None for none. @pad is the same."""
        padding, value = padding if pad is UNSET else one_of("pad", "padding", padding, UNSET, "pad", pad), 0.0 if value is None else value
        if padding is UNSET:
            raise TypeError("pad: not given: padding")
        pairs = pairs_of(self, padding)
        if mode != "constant" or not isinstance(value, int) or abs(value) <= EXACT or self.dtype.itemsize < 8:
            return Operations.pad(self, pairs, mode, value)
        inside = Operations.pad(self.ones_like(dtype="bool"), pairs, mode, 0)  # a number that C's double does not hold
        return inside.where(Operations.pad(self, pairs, mode, 0), Tensor(value, dtype=self.dtype))

    def shrink(self, bounds: Sequence[Sequence[Any] | None]):
        """The part from a begin to before an end: a pair for each axis, None for all of it."""
        bounds = [pair if pair is None else tuple(pair) for pair in bounds]
        if any(indexing.is_symbolic(one) for pair in bounds if pair is not None for one in pair):
            if len(bounds) != self.ndim:
                raise ValueError(f"shrink: {len(bounds)} pairs for {self.ndim} axes")
            return self[tuple(slice(*(pair or (None, None))) for pair in bounds)]
        pairs = []
        for size, pair in zip(self.shape, bounds, strict=True):
            pairs += (0, size) if pair is None else pair
        return Operations.shrink(self, pairs)

    def narrow(self, axis=UNSET, start: int | Tensor = UNSET, length: int | Tensor = UNSET, *, dim=UNSET):
        """The @length elements along @axis from @start on; variables say either or both. See Operations.narrow()."""
        axis = axis if dim is UNSET else dim
        missing = [name for name, value in (("axis", axis), ("start", start), ("length", length)) if value is UNSET]
        if missing:
            raise TypeError(f"narrow: not given: {', '.join(missing)}")
        if not indexing.is_symbolic(length):
            return Operations.narrow(self, axis, start, length)
        before = as_axis(axis, "narrow: axis")
        if not -self.ndim <= before < self.ndim:
            raise OutsideError(f"narrow: axis {before} is outside of {self.ndim} axes")
        return self[(slice(None),) * (before % self.ndim) + (slice(start, start + length),)]

    def pad_to(self, shape: int | Sequence[int | None] | None, *more: Any, value: float = 0.0):
        """At the beginning of a tensor of these sizes, as a list or one by one; None keeps one."""
        if isinstance(shape, (list, tuple)) and more:
            value, *more = more
        return Operations.pad_to(self, kept_sizes(shape, more), value)

    def shrink_to(self, shape: int | Sequence[int | None] | None, *more: int | None):
        """The beginning, of these sizes, as a list or one by one; None keeps one."""
        return Operations.shrink_to(self, kept_sizes(shape, more))

    def linear(self, weight, bias: Tensor = None):
        """self @ @weight + @bias as tinygrad has it, of a vector self * @weight; nn.functional.linear() is PyTorch's, with weights (O, I)."""
        found = self.mul(weight) if weight.ndim == 1 else self.dot(weight)
        return found if bias is None else found.add(bias)

    def topk(self, k: int, axis=-1, largest=True, sorted=True, *, dim=UNSET, sorted_=True) -> ValuesIndices:
        """The @k largest, or least, along @axis in order, and where they were: sorted also where that is not asked for."""
        return Operations.topk(self, k, axis if dim is UNSET else dim, largest, sorted)

    def rearrange(self, formula: str, **sizes):
        """Reshaped, permuted and reshaped as "b (h w) c -> b c h w" says, with the sizes of some axes by name."""
        return Operations.rearrange(self, formula, " ".join(sizes), list(sizes.values()))

    if TYPE_CHECKING:
        @overload
        def max_pool2d(self, kernel_size=(2, 2), stride=None, padding=0, dilation=1, ceil_mode: bool = ..., return_indices: Literal[False] = ...) -> Tensor: ...
        @overload
        def max_pool2d(self, kernel_size=(2, 2), stride=None, padding=0, dilation=1, ceil_mode: bool = ..., *, return_indices: bool) -> Any: ...

    def max_pool2d(self, kernel_size=(2, 2), stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False) -> Any:
        """The largest of each window, and its position when @return_indices."""
        function = Operations.max_pool2d_with_indices if return_indices else Operations.max_pool2d
        return function(self, kernel_size, stride, padding, dilation, ceil_mode)

    def avg_pool2d(self, kernel_size=(2, 2), stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=0):
        """The mean of each window."""
        return Operations.avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    def dropout(self, p=0.5, training=None):
        """Zeroes elements with probability @p and scales the others, where Tensor.training or @training says so."""
        is_on = Tensor.training if training is None else training
        return Operations.dropout(self, p) if is_on or not 0 <= p <= 1 else self

    def median(self, axis=None, keepdim=False, *, dim=UNSET) -> Any:
        """The element in the middle, the lower of two; along @axis, which is named, with where it was."""
        axis = axis if dim is UNSET else dim
        found = Operations.median(self, axis, keepdim)
        return found if axis is not None else found.values

    def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None, *, axis=UNSET) -> Any:
        """The different elements in order, or parts along @dim. With @return_inverse also where each element of this tensor
        is among them, with @return_counts how often it is there."""
        found = Operations.unique(self, sorted, return_inverse, return_counts, dim if axis is UNSET else axis)
        return tuple(found) if len(found) > 1 else found[0]

    def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None, *, axis=UNSET) -> Any:
        """As unique(), of neighbours that are equal only."""
        found = Operations.unique_consecutive(self, return_inverse, return_counts, dim if axis is UNSET else axis)
        return tuple(found) if len(found) > 1 else found[0]

    def allclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False) -> bool:
        """Whether isclose() holds everywhere; reads the answer."""
        return bool(self.isclose(other, rtol, atol, equal_nan).all().item())

    # ---- shared with other libraries ----
    def __dlpack__(self, stream: Any = None, max_version: tuple[int, int] = None, dl_device: tuple[int, int] = None, copy: bool = None) -> Any:
        from .dlpack import HOST, export
        if stream is not None:
            raise BufferError("memory of the host has no streams")
        if dl_device not in (None, HOST):
            raise BufferError(f"only memory of the host is exported, DLPack's device {HOST}, not {dl_device}")
        return export(self.clone() if copy else self, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        from .dlpack import HOST
        return HOST

    @staticmethod
    def from_dlpack(source: Any, device=None, copy: bool = None):
        """A tensor that shares the memory of another library's array where that can be; @copy: False never copies,
        True always."""
        from .dlpack import take
        return take(source, device, copy)

    # ---- gradients ----
    is_frozen: bool = False  # whether it was said that no optimiser changes it

    @property
    def is_leaf(self) -> bool:
        """Whether gradients end at it: none flows to it, or it was told to have one."""
        return Base.is_leaf(self)

    @property
    def requires_grad(self) -> bool:
        return self.get_requires_grad()

    @requires_grad.setter
    def requires_grad(self, requires_grad):
        if not requires_grad and not Base.is_leaf(self):
            raise InvalidError("requires_grad: the tensor is computed from one that requires gradients: detach() it")
        if requires_grad and self.get_error() is None and self.dtype.kind != "f":
            raise InvalidError(f"requires_grad: only floats have gradients, not {self.dtype.name}")
        self.set_requires_grad(bool(requires_grad))
        checked(self)
        if not requires_grad:
            self.is_frozen = True
        elif self.is_frozen:
            self.is_frozen = False

    def requires_grad_(self, requires_grad=True):
        self.requires_grad = requires_grad
        return self

    def is_param_(self, is_param=True):
        """Whether optimisers change it: tinygrad's name of requires_grad_()."""
        return self.requires_grad_(is_param)

    @property
    def grad(self) -> Tensor | Any:
        return self.get_grad()

    @grad.setter
    def grad(self, grad: Tensor | Any):
        if grad is not None and not isinstance(grad, Base):
            raise TypeError(f"a gradient is a tensor or None, not {type(grad).__name__}")
        call(Base.set_grad, self, grad)

    def backward(self, gradient: ArrayLike = None, retain_graph: bool = None, create_graph: bool = False, inputs: Tensor | Sequence[Tensor] = None):
        """Adds its gradient, or that of what @gradient is the gradient of, to .grad of every tensor that requires one, or of @inputs alone. Graphs stay as
        long as they are used, and gradients have some: the other arguments are PyTorch's, and change nothing."""
        if inputs is not None:
            inputs = [inputs] if isinstance(inputs, Base) else list(inputs)
            for one, found in zip(inputs, self.gradient(*inputs, gradient=gradient)):
                one.grad = found if one.grad is None else one.grad + found
            return self
        call(Base.backward_with, self, gradient if gradient is None or isinstance(gradient, Base) else Tensor(gradient))
        return self

    def gradient(self, *targets: Tensor, gradient: Tensor = None) -> list[Tensor]:
        """Its gradient with respect to each of @targets, as a list."""
        for one in targets:
            if not isinstance(one, Base):
                raise TypeError(f"gradient: tensors are wanted, not {one!r:.60}")
        return checked_all(Base.gradient(self, list(targets), gradient))

    train: type[Training] = staticmethod(Training)

    # ---- indexing ----
    def __getitem__(self, key: Index):
        return indexing.get(self, key)

    def __setitem__(self, key: Index, value: ArrayLike):
        indexing.put(self, key, value)


def restored(data, dtype, shape, requires_grad, device=None, marks=None):
    """A tensor of what __reduce__() gave. A device is no part of a pickle: where that is read there may be others."""
    tensor = Tensor(data, dtype=dtype, device=device).reshape(shape)
    if requires_grad:
        tensor.requires_grad = True
    tensor.marks = marks or {}
    return tensor


add_operators(Tensor)
Tensor.__neg__ = Operations.neg
Tensor.__invert__ = Operations.bitwise_not
Tensor.__abs__ = Operations.abs
Tensor.__pos__ = lambda self: self
for found in dtypes.all:
    setattr(Tensor, found.name, lambda self, dtype=found: self.cast(dtype))
for name in ("float", "half", "int", "bool", "long", "double", "short"):
    setattr(Tensor, name, lambda self, dtype=as_dtype(name): self.cast(dtype))
for base in (Creation, Operations, Calls):
    owned(vars(base).values(), __name__)
for base in (Operations, Calls, Tensor):
    suggest_keywords(base)
del name, found, base
Base.__gtype__.pytype = Tensor  # from now on the library's tensors are these
