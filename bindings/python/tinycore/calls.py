# SPDX-License-Identifier: MIT
"""Rows of the table of operations that take more in Python than in C: PyTorch's further arguments."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from .convert import UNSET, Base, one_of
from .dtypes import as_dtype, by_value
from .operations import QR, Operations

c_get_dtype = Base.get_dtype


class Calls(Operations):
    """Methods that are called in another way than in C."""

    __slots__ = ()

    if TYPE_CHECKING:
        @overload
        def where(self, input: Operand, other: Operand) -> Tensor: ...
        @overload
        def where(self, input: None = ..., other: None = ...) -> tuple[Tensor, ...]: ...
        @overload
        def nonzero(self, as_tuple: Literal[False] = ...) -> Tensor: ...
        @overload
        def nonzero(self, as_tuple: bool) -> Any: ...

    def where(self, input: Operand = UNSET, other: Operand = UNSET) -> Any:
        """@input where self is true, elsewhere @other. PyTorch's method too, self where @input is true, which is so where @input alone is bool; of a condition
        alone where it is true, as nonzero (as_tuple=True)."""
        if input is UNSET:
            return self.nonzero(as_tuple=True)
        if isinstance(input, Base) and by_value[c_get_dtype(input)].kind == "b" and by_value[c_get_dtype(self)].kind != "b":
            self, input = input, self
        return Operations.where(self, input, other)

    def nonzero(self, as_tuple=False) -> Any:
        """The positions of what is not 0: a row for each; @as_tuple: a tensor for each axis."""
        found = Operations.nonzero(self)
        return tuple(found.unbind(1)) if as_tuple else found

    def norm(self, p: float | str = 2, axis: int | Sequence[int] | None = None, keepdim=False, dtype=None, *, dim: int | Sequence[int] | None = UNSET):
        """The length over axes, or another norm: see Operations.norm(). @p: also “fro”, which is 2, and “nuc” of matrices. @dtype: what the elements become
        first."""
        axis = axis if dim is UNSET else one_of("norm", "axis", axis, None, "dim", dim)
        self = self if dtype is None else self.cast(dtype)
        if p == "nuc":
            from .linalg import matrix_norm
            return matrix_norm(self, p, (-2, -1) if axis is None else axis, keepdim)
        return Operations.norm(self, 2 if p == "fro" else p, axis, keepdim)

    def round(self, decimals=0):
        """To the nearest whole number, halves to even ones; @decimals: to so many places."""
        if decimals == 0:
            return Operations.round(self)
        scale = 10.0 ** decimals
        return Operations.round(self * scale) / scale

    def diff(self, n=1, axis=-1, prepend: Tensor = None, append: Tensor = None, *, dim=UNSET):
        """Differences of neighbours along @axis, @n times, with what is before and after it."""
        axis = axis if dim is UNSET else one_of("diff", "axis", axis, -1, "dim", dim)
        parts = [one for one in (prepend, self, append) if one is not None]
        return Operations.diff(parts[0].cat(*parts[1:], axis=axis) if len(parts) > 1 else self, n, axis)

    def repeat_interleave(self, repeats: int | Tensor | Sequence[int] = None, axis: int | None = None, *, dim: int | None = UNSET, output_size: int = None):
        """Each element along @axis so many times, or element i @repeats[i] times; of numbers alone, i so many times as number i says. Numbers in a tensor are
        read."""
        axis = axis if dim is UNSET else one_of("repeat_interleave", "axis", axis, None, "dim", dim)
        if repeats is None:
            return self.arange(self.shape[0], dtype=self.dtype, device=self.get_device()).repeat_interleave(self)
        counts = repeats.tolist() if isinstance(repeats, Base) else repeats
        counts = counts[0] if isinstance(counts, list) and len(counts) == 1 else counts
        if not isinstance(counts, (list, tuple)):
            return Operations.repeat_interleave(self, counts, axis)
        self, axis = (self.flatten(), 0) if axis is None else (self, axis)
        if len(counts) != self.shape[axis]:
            raise ValueError(f"repeat_interleave: {len(counts)} numbers for an axis of {self.shape[axis]}")
        return self.index_select(axis, self.new_tensor([i for i, n in enumerate(counts) for _ in range(n)], dtype="int32"))

    def searchsorted(self, values: Operand = UNSET, right=False, sorter: Tensor | None = None, *, input: Operand = UNSET, side: str = None, out_int32=False):
        """Where @values go into this sorted tensor: see Operations.searchsorted(). @side: “left” or “right”, which is @right."""
        if side not in (None, "left", "right"):
            raise ValueError(f"searchsorted: side: left or right is wanted, not {side!r:.60}")
        return Operations.searchsorted(self, values, right if side is None else side == "right", sorter, input=input)

    def bucketize(self, boundaries: Operand, right=False, *, out_int32=False):
        """The interval between @boundaries in which each element is: see Operations.bucketize()."""
        return Operations.bucketize(self, boundaries, right)

    def tensordot(self, other: Operand = UNSET, dims: int | Sequence[Any] = 2, self_dims: Sequence[int] | None = None, other_dims: Sequence[int] | None = None, *,
                  b: Operand = UNSET):
        """Sums of products over axes: see Operations.tensordot(). @dims: how many, or a list of this tensor's and one of @other's."""
        if isinstance(dims, (list, tuple)):
            self_dims, other_dims = ([one] if isinstance(one, int) else list(one) for one in dims)
            dims = len(self_dims)
        return Operations.tensordot(self, other, dims, self_dims, other_dims, b=b)

    def qr(self, mode="reduced", *, some: bool = None) -> QR:
        """Q and R of matrices: see Operations.qr(). @mode “r”: an empty Q. @some: False is “complete”."""
        mode = mode if some is None else "reduced" if some else "complete"
        q, r = Operations.qr(self, "reduced" if mode == "r" else mode)
        return QR([self.new_empty(0) if mode == "r" else q, r])

    def view(self, *given: Any, shape: int | Sequence[int] = UNSET, size: int | Sequence[int] = UNSET):
        """reshape(), which shares memory; of a dtype bitcast(), which has its own: what is written to one is not in the other."""
        if len(given) == 1 and hasattr(given[0], "kind"):
            return self.bitcast(as_dtype(given[0]))
        return self.reshape(*given, shape=shape, size=size)
