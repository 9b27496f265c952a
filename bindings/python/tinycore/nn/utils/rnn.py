# SPDX-License-Identifier: MIT
"""Sequences of several lengths as one tensor: padded, or packed as PyTorch has it, time after time without what is behind their ends."""
from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from ...errors import explain_all
from ...tensor import Base, Tensor

__all__ = ["PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence", "unpad_sequence"]


class PackedSequence(NamedTuple):
    """Sequences in order of their lengths, the longest first. data: rows of all at time 0, then at time 1, …; batch_sizes: how many there are at each time;
    sorted_indices and unsorted_indices: from the order here to that of the program, and back."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Any = None
    unsorted_indices: Any = None

    @property
    def lengths(self) -> list[int]:
        """In the order here."""
        sizes = self.batch_sizes.tolist()
        return [sum(size > i for size in sizes) for i in range(sizes[0])]

    def to(self, *where: Any, **more: Any) -> PackedSequence:
        """With its data elsewhere, or of another dtype."""
        return self._replace(data=self.data.to(*where, **more))

    @property
    def is_cuda(self) -> bool:
        return str(self.data.device).startswith("CUDA")


def lengths_of(lengths, name):
    found = [int(one) for one in (lengths.tolist() if isinstance(lengths, Base) or hasattr(lengths, "tolist") else lengths)]
    if not found or min(found) < 1:
        raise ValueError(f"{name}: lengths: numbers above 0 are wanted, not {found}")
    return found


def pad_sequence(sequences: Sequence[Tensor], batch_first=False, padding_value=0.0, padding_side="right"):
    """Tensors (Tᵢ, …) as one (T, B, …), or (B, T, …) where @batch_first, with @padding_value behind the shorter ones, or before them (@padding_side "left")."""
    sequences = list(sequences)
    if not sequences or padding_side not in ("left", "right"):
        raise ValueError(f"pad_sequence: {len(sequences)} sequences to pad on the {padding_side}: one or more, “left” or “right”")
    longest = max(len(one) for one in sequences)
    pairs = [(longest - len(one), 0) if padding_side == "left" else (0, longest - len(one)) for one in sequences]
    rows = [one.pad((pair, *[None] * (one.ndim - 1)), value=padding_value) for one, pair in zip(sequences, pairs)]
    return Tensor.stack(rows, dim=0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Sequence[int] | Tensor, batch_first=False) -> list[Tensor]:
    """Undoes pad_sequence()."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [rows[i, :n] for i, n in enumerate(lengths_of(lengths, "unpad_sequence"))]


def places(lengths, width):
    """Where in (B·@width) the rows of a packed sequence are, in its order."""
    return [i * width + t for t in range(lengths[0]) for i, n in enumerate(lengths) if n > t]


def pack_padded_sequence(input: Tensor, lengths: Sequence[int] | Tensor, batch_first=False, enforce_sorted=True) -> PackedSequence:
    """The result of pad_sequence(), packed; @enforce_sorted: the longest has to be first, else they are sorted."""
    lengths = lengths_of(lengths, "pack_padded_sequence")
    rows = input if batch_first else input.transpose(0, 1)
    if len(lengths) != len(rows) or max(lengths) > rows.shape[1]:
        raise ValueError(f"pack_padded_sequence: lengths {lengths} of {len(rows)} sequences of up to {rows.shape[1]}")
    order = None
    if enforce_sorted and lengths != sorted(lengths, reverse=True):
        raise RuntimeError(f"pack_padded_sequence: lengths {lengths} do not fall: sort the sequences, or take enforce_sorted=False")
    if not enforce_sorted:
        order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
        rows, lengths = rows[Tensor(order, dtype="int64")], [lengths[i] for i in order]
    at = Tensor(places(lengths, rows.shape[1]), dtype="int64", device=input.get_device())
    sizes = Tensor([sum(n > t for n in lengths) for t in range(lengths[0])], dtype="int64")
    indices = [None, None]
    if order is not None:
        back = sorted(range(len(order)), key=order.__getitem__)
        indices = [Tensor(one, dtype="int64") for one in (order, back)]
    return PackedSequence(rows.reshape(-1, *rows.shape[2:])[at], sizes, *indices)


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted=True) -> PackedSequence:
    """Tensors (Tᵢ, …), packed."""
    return pack_padded_sequence(pad_sequence(sequences, True), [len(one) for one in sequences], True, enforce_sorted)


def pad_packed_sequence(sequence: PackedSequence, batch_first=False, padding_value=0.0, total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """The padded tensor in the order that the program gave, and the lengths; @total_length: padded to so many times."""
    lengths, sizes = sequence.lengths, sequence.batch_sizes.tolist()
    width = len(sizes) if total_length is None else total_length
    if width < len(sizes):
        raise ValueError(f"pad_packed_sequence: total_length: {total_length} are less than the {len(sizes)} of the longest")
    starts = [0, *accumulate(sizes)]
    order = range(len(lengths)) if sequence.unsorted_indices is None else sequence.unsorted_indices.tolist()
    filler = sequence.data.new_full((1, *sequence.data.shape[1:]), padding_value)
    rows = Tensor.cat([sequence.data, filler])
    at = [[starts[t] + i if t < lengths[i] else starts[-1] for t in range(width)] for i in order]
    found = rows[Tensor(at, dtype="int64", device=sequence.data.get_device())]
    return found if batch_first else found.transpose(0, 1), Tensor([lengths[i] for i in order], dtype="int64")


explain_all(globals())
