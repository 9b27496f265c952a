# SPDX-License-Identifier: MIT
"""Data in batches: DataLoader and what it reads from, with PyTorch's names, over the library's loader."""
from __future__ import annotations

from itertools import accumulate
from operator import index

from ..convert import operand
from ..data import tensor_of
from ..dtypes import dtypes
from ..errors import call, explained, wants_function
from ..library import GLib, Tiny
from ..tensor import Base, Tensor

__all__ = ["DataLoader", "Dataset", "Subset", "TensorDataset", "default_collate", "random_split"]


class Dataset:
    """What has items by number: derive from it and write __len__() and __getitem__()."""

    def __getitem__(self, i: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__()")

    def __len__(self):
        raise NotImplementedError(f"{type(self).__name__} has no __len__()")


class TensorDataset(Dataset):
    """Items are what tensors of the same length have at one place."""

    @explained
    def __init__(self, *tensors: Tensor):
        if not tensors or any(len(one) != len(tensors[0]) for one in tensors):
            raise ValueError(f"TensorDataset: tensors of {[one.shape for one in tensors]} have no items together")
        self.tensors = tensors

    def __getitem__(self, i: int) -> tuple[Tensor, ...]:
        return tuple(one[i] for one in self.tensors)

    def __len__(self):
        return len(self.tensors[0])


class Subset(Dataset):
    """Some items of another."""

    @explained
    def __init__(self, dataset: Any, indices: Iterable[int]):
        self.dataset, self.indices = dataset, list(indices)

    def __getitem__(self, i: int) -> Any:
        return self.dataset[self.indices[i]]

    def __len__(self):
        return len(self.indices)


@explained
def random_split(dataset: Any, lengths: Sequence[int]) -> list[Subset]:
    """Parts of @dataset with @lengths items, by chance (Tensor.manual_seed())."""
    if sum(lengths) != len(dataset):
        raise ValueError(f"random_split: {lengths} are not {len(dataset)} items")
    order = Tensor.randperm(len(dataset)).tolist()
    return [Subset(dataset, order[end - n:end]) for n, end in zip(lengths, accumulate(lengths))]


# ---- batches ----
def element(value):
    """One part of an item as a tensor: Python's numbers become int64 and float64, as PyTorch has them."""
    if isinstance(value, Base):
        return value
    if isinstance(value, bool):
        return operand(value, "DataLoader")
    if isinstance(value, (int, float)):
        return Tensor(value, dtype=dtypes.int64 if isinstance(value, int) else dtypes.float64)
    return tensor_of(value, None, None)


def parts_of(item):
    """The parts of an item: of a dict its values, of a tuple or list its elements, else itself."""
    return list(item.values()) if isinstance(item, dict) else list(item) if isinstance(item, (list, tuple)) else [item]


def like_item(item, parts):
    """@parts in the form of @item."""
    if isinstance(item, dict):
        return dict(zip(item, parts))
    return parts if isinstance(item, (list, tuple)) else parts[0]


def default_collate(batch: Sequence[Any]) -> Any:
    """Items as one batch, in the form of an item."""
    columns = zip(*map(parts_of, batch))
    return like_item(batch[0], [Tensor.stack([element(one) for one in column]) for column in columns])


class DataLoader:
    """Batches of a Dataset, or of anything with len() and items by number. Each time it is iterated over is an epoch.

    @shuffle: another order in each epoch, which follows from the seed of random numbers when it is made, or from @seed
    @num_workers: 0, or read ahead on a thread, 2 batches for each; items are read one at a time
    @collate_fn: makes a batch of a list of items, on the thread of the program
    @progress: a progress bar on standard error, with this text if it is one
    @device: where batches are put"""

    @explained
    def __init__(self, dataset: Any, batch_size=1, shuffle=False, sampler: Iterable[int] = None, num_workers=0,
                 collate_fn: Callable[[list[Any]], Any] = None, pin_memory=False, drop_last=False, seed: int = None, progress: bool | str = False,
                 device: str = None):
        if collate_fn is not None:
            wants_function(collate_fn, "DataLoader: collate_fn")
        if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
            raise TypeError(f"DataLoader: dataset: something with items by number and len() is wanted, not {dataset!r:.60}")
        if sampler is not None:
            iter(sampler)  # a TypeError where it is none
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: an order of its own and shuffle do not go together")
        self.dataset, self.batch_size, self.drop_last, self.collate_fn = dataset, index(batch_size), bool(drop_last), collate_fn
        self.sampler, self.progress, self.device, self.epoch = sampler, progress, device, 0
        self.shuffle, self.num_workers, self.loader, self.form = bool(shuffle), index(num_workers), None, None
        if not 0 < self.batch_size < 1 << 32 or not 0 <= self.num_workers < 1 << 31:
            raise ValueError(f"DataLoader: batches of {batch_size}, {num_workers} workers")
        self.seed = (Tensor.randint(1, low=0, high=1 << 30).item() if shuffle else 0) if seed is None else index(seed)
        if not 0 <= self.seed < 1 << 64:
            raise ValueError(f"DataLoader: seed: a number of 64 bits is wanted, not {seed}")

    def order(self):
        """The items that there are."""
        return range(len(self.dataset)) if self.sampler is None else list(self.sampler)

    def __len__(self):
        n = len(self.order())
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def make_loader(self, order):
        """The library's loader. What tensors hold it reads by itself, else the dataset is asked for each item."""
        loader = call(Tiny.Loader.new_empty, len(order), self.batch_size)
        loader.set_device(self.device)
        loader.set_drop_last(self.drop_last)
        loader.set_shuffle(self.shuffle, self.seed)
        loader.set_prefetch(2 * self.num_workers)
        if type(self.dataset) is TensorDataset and self.sampler is None and self.collate_fn is None:
            self.form = self.dataset.tensors
            for one in self.dataset.tensors:
                call(loader.add_array, one.dtype.value, one.shape[1:], GLib.Bytes.new(one.bytes_of()))
            return loader
        if self.collate_fn is not None:  # only which items there are in a batch
            call(loader.add_array, dtypes.uint32.value, [], GLib.Bytes.new(Tensor(list(order), dtype="uint32").bytes_of()))
            return loader
        self.form = self.dataset[order[0]]
        fields = [element(one) for one in parts_of(self.form)]
        for one in fields:
            call(loader.add_field, one.dtype.value, one.shape)

        def read(i, *_):
            parts = [element(one) for one in parts_of(self.dataset[order[i]])]
            for one, field in zip(parts, fields, strict=True):
                if one.shape != field.shape:
                    raise ValueError(f"DataLoader: item {order[i]} is {one.shape}, the first is {field.shape}: give a collate_fn")
            return GLib.Bytes.new(b"".join(one.cast(field.dtype).bytes_of() for one, field in zip(parts, fields)))
        loader.set_function(Reader(self, read))
        return loader

    def __iter__(self) -> Iterator[Any]:
        order = self.order()
        if len(order) == 0:
            return
        self.failure = None
        if self.loader is None or self.sampler is not None:
            self.loader = self.make_loader(order)
        loader, total = self.loader, len(self)
        loader.start_epoch(self.epoch)
        self.epoch += 1
        bar = self.bar(total)
        for done in range(1, total + 1):
            yield self.next_batch(loader)
            if bar is not None:
                bar.update(done, None)
        if bar is not None:
            bar.finish()

    def bar(self, total):
        if not self.progress:
            return None
        label = self.progress if isinstance(self.progress, str) else f"epoch {self.epoch}"
        return Tiny.Progress.new(label, total, Tiny.ProgressMode.AUTO)

    def next_batch(self, loader):
        try:
            tensors = call(loader.next_batch)
        except Exception:
            if self.failure is not None:
                raise self.failure from None
            raise
        if self.collate_fn is not None:
            return self.collate_fn([self.dataset[i] for i in tensors[0].tolist()])
        return like_item(self.form, tensors)


class Reader:
    """A function that the loader calls; what it raises is raised where the batch is asked for."""

    def __init__(self, owner, function):
        self.owner, self.function = owner, function

    def __call__(self, *arguments):
        try:
            return self.function(*arguments)
        except BaseException as error:
            self.owner.failure = error
            return None
