# SPDX-License-Identifier: MIT
"""Data in batches: DataLoader and what it reads from, with PyTorch's names, over the library's loader."""
from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, islice
from math import floor, isclose
from operator import index
from queue import SimpleQueue
from threading import Semaphore, Thread

from ..data import raw
from ..dtypes import dtypes
from ..errors import call, explained, wants_function
from ..library import GLib, Tiny
from ..tensor import Base, Tensor

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler", "Sampler",
           "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "default_collate", "get_worker_info", "random_split"]


class Dataset:
    """What has items by number: derive from it and write __len__() and __getitem__()."""

    def __getitem__(self, i: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__()")

    def __len__(self):
        raise NotImplementedError(f"{type(self).__name__} has no __len__()")

    def __add__(self, other: Any) -> Any:
        together = ChainDataset if isinstance(self, IterableDataset) else ConcatDataset
        return together([self, other])


class IterableDataset(Dataset):
    """Items one after the other: derive from it and write __iter__(), and __len__() where that is known. An epoch of a DataLoader goes through it once,
    in its own order, on one thread."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__()")

    def __len__(self):
        raise TypeError(f"{type(self).__name__} has no length")  # which list () takes for an answer


def get_worker_info() -> None:
    """None: workers are a thread of this process, of which there is one, and items are for nobody else."""


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


class ConcatDataset(Dataset):
    """The items of several, one after the other, as a + b of two has them."""

    @explained
    def __init__(self, datasets: Iterable[Any]):
        self.datasets, self.ends = list(datasets), []
        for one in self.datasets:
            if isinstance(one, IterableDataset):
                raise TypeError("ConcatDataset takes data sets with lengths; ChainDataset takes an IterableDataset")
            self.ends.append(len(one) + (self.ends[-1] if self.ends else 0))
        if not self.datasets:
            raise ValueError("ConcatDataset: there are no data sets")

    def __getitem__(self, i: int) -> Any:
        at = i + len(self) if i < 0 else i
        if not 0 <= at < len(self):
            raise IndexError(f"ConcatDataset: item {i} of {len(self)}")
        which = bisect_right(self.ends, at)
        return self.datasets[which][at - (self.ends[which - 1] if which else 0)]

    def __len__(self):
        return self.ends[-1]


class ChainDataset(IterableDataset):
    """The items of several iterables, one after the other."""

    @explained
    def __init__(self, datasets: Iterable[Any]):
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self.datasets)


class StackDataset(Dataset):
    """Tuples, or dicts where they have names, of the items of data sets of one length."""

    @explained
    def __init__(self, *datasets: Any, **named: Any):
        self.datasets = named or datasets
        if bool(datasets) == bool(named) or len({len(one) for one in datasets or named.values()}) != 1:
            raise ValueError("StackDataset takes data sets of one length, all with names or all without")

    def __getitem__(self, i: int) -> Any:
        if isinstance(self.datasets, dict):
            return {name: one[i] for name, one in self.datasets.items()}
        return tuple(one[i] for one in self.datasets)

    def __len__(self):
        return len(next(iter(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)))


def refuse_generator(name, generator):
    if generator is not None:
        raise NotImplementedError(f"{name}: generator: all random numbers come of one state here: Tensor.manual_seed() sets it, and a DataLoader takes a seed of its own")


@explained
def random_split(dataset: Any, lengths: Sequence[float], generator: None = None) -> list[Subset]:
    """Parts of @dataset by chance (Tensor.manual_seed()): of @lengths items, or of such parts of all, where what is left over by rounding down goes to the
    first ones."""
    refuse_generator("random_split", generator)
    n, wanted = len(dataset), list(lengths)
    if isclose(sum(wanted), 1) and all(0 <= one <= 1 for one in wanted) and (n != 1 or any(isinstance(one, float) for one in wanted)):
        wanted = [floor(n * one) for one in wanted]
        rest = n - sum(wanted)
        wanted = [one + rest // len(wanted) + (i < rest % len(wanted)) for i, one in enumerate(wanted)]
    if sum(wanted) != n or any(index(one) < 0 for one in wanted):
        raise ValueError(f"random_split: {lengths} are not {n} items, nor parts that are 1 together")
    order = Tensor.randperm(n).tolist()
    return [Subset(dataset, order[end - one:end]) for one, end in zip(wanted, accumulate(wanted))]


# ---- orders ----
class Sampler:
    """Numbers of items in an order: derive from it and write __iter__() and __len__()."""

    def __init__(self, data_source: Any = None):
        pass

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__()")


class SequentialSampler(Sampler):
    """All items as they come."""

    def __init__(self, data_source: Any):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


def sampled(name, num_samples, default):
    n = default if num_samples is None else index(num_samples)
    if n < 1 and num_samples is not None:
        raise ValueError(f"{name}: num_samples: a number above 0 is wanted, not {num_samples}")
    return n


class RandomSampler(Sampler):
    """@num_samples items by chance (Tensor.manual_seed()), by default as many as there are: each once before one comes again, or @replacement."""

    @explained
    def __init__(self, data_source: Any, replacement=False, num_samples: int | None = None, generator: None = None):
        refuse_generator("RandomSampler", generator)
        self.data_source, self.replacement = data_source, bool(replacement)
        self.num_samples = sampled("RandomSampler", num_samples, len(data_source))

    def __iter__(self) -> Iterator[int]:
        n, left = len(self.data_source), self.num_samples
        if self.replacement and left > 0:
            yield from Tensor.randint(left, low=0, high=n).tolist()
            return
        while left > 0:
            yield from Tensor.randperm(n).tolist()[:left]
            left -= n

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Each of @indices once, by chance."""

    @explained
    def __init__(self, indices: Sequence[int], generator: None = None):
        refuse_generator("SubsetRandomSampler", generator)
        self.indices = list(indices)

    def __iter__(self) -> Iterator[int]:
        return (self.indices[i] for i in (Tensor.randperm(len(self.indices)).tolist() if self.indices else ()))

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """@num_samples numbers of @weights, each as often as its weight says among their sum; without @replacement none twice."""

    @explained
    def __init__(self, weights: Sequence[float] | Tensor, num_samples: int, replacement=True, generator: None = None):
        refuse_generator("WeightedRandomSampler", generator)
        self.weights = weights if isinstance(weights, Base) else Tensor(list(weights), dtype="float32")
        self.num_samples, self.replacement = sampled("WeightedRandomSampler", num_samples, 0), bool(replacement)

    def __iter__(self) -> Iterator[int]:
        return iter(self.weights.multinomial(self.num_samples, self.replacement).tolist())

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of @batch_size numbers of another; @drop_last: without a shorter last one."""

    @explained
    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last=False):
        if index(batch_size) < 1:
            raise ValueError(f"BatchSampler: batch_size: a number above 0 is wanted, not {batch_size}")
        self.sampler, self.batch_size, self.drop_last = sampler, index(batch_size), bool(drop_last)

    def __iter__(self) -> Iterator[list[int]]:
        return (one for one in chunks(self.sampler, self.batch_size) if not self.drop_last or len(one) == self.batch_size)

    def __len__(self):
        return len(self.sampler) // self.batch_size if self.drop_last else -(-len(self.sampler) // self.batch_size)


def chunks(items, n):
    """Lists of @n items, and of those that are left."""
    left = iter(items)
    while found := list(islice(left, n)):
        yield found


# ---- batches ----
WANTED = "tensors, arrays, numbers and texts, in dicts, lists and tuples, make a batch"


class Held:
    """A tensor's elements on the host."""

    def __init__(self, tensor):
        self.dtype, self.shape, self.bytes = tensor.dtype, tensor.shape, tensor.bytes_of()


def held(item):
    """@item, in which tensors are read."""
    if isinstance(item, Base):
        return Held(item)
    if isinstance(item, (list, tuple)):
        return like(item, [held(one) for one in item])
    if not hasattr(item, "__array__") and isinstance(item, Mapping):
        return like(item, {key: held(one) for key, one in item.items()})
    return item


def like(item, parts):
    """@parts in a container of @item's class, where that is made of them; in PyTorch's way a plain tuple becomes a list."""
    try:
        return type(item)(*parts) if hasattr(item, "_fields") else list(parts) if isinstance(item, tuple) else type(item)(parts)
    except TypeError:
        return parts


def dtype_of_numbers(numbers):
    """PyTorch's: float64 if the first is a float, bool if all are, else int64, or the default one where there are floats."""
    if isinstance(numbers[0], float):
        return dtypes.float64
    if all(isinstance(one, bool) for one in numbers):
        return dtypes.bool
    return dtypes.default_float if any(isinstance(one, float) for one in numbers) else dtypes.int64


def joined(column, device):
    """What lies on the host, side by side, or None where that is not so."""
    first = column[0]
    kinds = [getattr(one, "dtype", None) for one in column]
    if kinds.count(kinds[0]) < len(kinds) or any(isinstance(one, Base) for one in column):
        return None
    if isinstance(first, Held):
        return raw(device, first.dtype, [len(column), *first.shape], b"".join(one.bytes for one in column))
    import numpy
    return Tensor(numpy.stack(column) if shape_of(first) else numpy.array(column), device=device)


def tensor_like(one, device):
    return raw(device, one.dtype, one.shape, one.bytes) if isinstance(one, Held) else one if isinstance(one, Base) else Tensor(one, device=device)


def collate(column, where, device):
    """One part of all items as one; @where says which."""
    first = column[0]
    if isinstance(first, (str, bytes)):
        return column
    if isinstance(first, Mapping):
        wants_alike(column, lambda one: isinstance(one, Mapping) and set(first) <= set(one), where, f"a dict with {list(first)}")
        return like(first, {key: collate([one[key] for one in column], f"{where}[{key!r}]", device) for key in first})
    if isinstance(first, Sequence):
        wants_alike(column, lambda one: isinstance(one, Sequence) and len(one) == len(first), where, f"a list of {len(first)}")
        return like(first, [collate(part, f"{where}[{i}]", device) for i, part in enumerate(zip(*column))])
    if isinstance(first, (bool, int, float)) and not hasattr(first, "dtype"):
        wants_alike(column, lambda one: shape_of(one) == (), where, "a number")
        column = [one.item() if hasattr(one, "item") else one for one in column]
        return Tensor(column, dtype=dtype_of_numbers(column), device=device)
    if not isinstance(first, (Base, Held)) and not hasattr(first, "__array__"):
        raise TypeError(f"a batch: items{where}: {WANTED}, not {first!r:.60}: give a collate_fn")
    shape = shape_of(first)
    wants_alike(column, lambda one: shape_of(one) == shape, where, f"of {shape}")
    whole = joined(column, device)
    return Tensor.stack([tensor_like(one, device) for one in column]) if whole is None else whole


def converted(item, device):
    """@item with tensors for arrays, where no batch is made of it."""
    if isinstance(item, (Base, Held)) or hasattr(item, "__array__"):
        return tensor_like(item, device)
    if isinstance(item, Mapping):
        return like(item, {key: converted(one, device) for key, one in item.items()})
    if isinstance(item, Sequence) and not isinstance(item, (str, bytes)):
        return like(item, [converted(one, device) for one in item])
    return item


def shape_of(one):
    """The sizes of a tensor, an array or a number; None of what is none."""
    shape = getattr(one, "shape", None)
    if type(shape) is tuple:
        return shape
    if isinstance(one, (bool, int, float)):
        return ()
    if hasattr(one, "__array__") and not hasattr(one, "shape"):
        import numpy
        one = numpy.asarray(one)
    return tuple(one.shape) if hasattr(one, "shape") else None


def wants_alike(column, is_alike, where, what):
    """A ValueError unless all of @column are like the first, which is @what."""
    for i, one in enumerate(column):
        if not is_alike(one):
            found = f"of {shape_of(one)}" if shape_of(one) is not None else f"{one!r:.60}"
            raise ValueError(f"a batch: items{where}: the first is {what}, that at {i} is {found}: give a collate_fn")


@explained
def default_collate(batch: Sequence[Any]) -> Any:
    """Items as one batch, in the form of an item: tensors, arrays and numbers become one tensor, texts stay a list."""
    return collate(list(batch), "", None)


class DataLoader:
    """Batches of a Dataset, or of anything with len() and items by number, or of an IterableDataset. Each time it is iterated over is an epoch of its own:
    of what there is when it begins, and beside others that have not ended.

    @batch_size: None: each item by itself, with tensors for its arrays
    @shuffle: another order in each epoch, which follows from the seed of random numbers when it is made, or from @seed
    @sampler: numbers of items, in their order; @batch_sampler: lists of them, each a batch
    @num_workers: 0, or batches are made ahead on a thread, @prefetch_factor for each; items are read one at a time
    @collate_fn: makes a batch of a list of items, on the thread of the program
    @pin_memory, @persistent_workers: nothing: memory is as it has to be, and a thread costs little
    @progress: a progress bar on standard error, with this text if it is one
    @device: where batches are put"""

    @explained
    def __init__(self, dataset: Any, batch_size: int | None = 1, shuffle=False, sampler: Iterable[int] = None, batch_sampler: Iterable[Sequence[int]] = None,
                 num_workers=0, collate_fn: Callable[[Any], Any] = None, pin_memory=False, drop_last=False, timeout=0.0,
                 worker_init_fn: None = None, multiprocessing_context: None = None, generator: None = None, *, prefetch_factor=2, persistent_workers=False,
                 seed: int = None, progress: bool | str = False, device: str = None):
        if collate_fn is not None:
            wants_function(collate_fn, "DataLoader: collate_fn")
        if not isinstance(dataset, IterableDataset) and (not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__")):
            raise TypeError(f"DataLoader: dataset: something with items by number and len(), or an IterableDataset, is wanted, not {dataset!r:.60}")
        if isinstance(dataset, IterableDataset) and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("DataLoader: an IterableDataset has its own order: shuffle, sampler and batch_sampler do not go together with it")
        refuse_generator("DataLoader", generator)
        if timeout or worker_init_fn is not None or multiprocessing_context is not None:
            raise NotImplementedError("DataLoader: timeout, worker_init_fn, multiprocessing_context: workers are a thread of this process: what it reads is waited for, "
                                      "and there is nothing to set up")
        for name, one in (("sampler", sampler), ("batch_sampler", batch_sampler)):
            if isinstance(one, str):
                raise TypeError(f"DataLoader: {name}: numbers of items are wanted, not {one!r:.60}")
            if one is not None:
                iter(one)  # a TypeError where it is none
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: an order of its own and shuffle do not go together")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("DataLoader: batch_sampler: batches of its own do not go together with batch_size, shuffle, sampler and drop_last")
        if batch_size is None and drop_last:
            raise ValueError("DataLoader: drop_last: there are no batches where batch_size is None")
        self.dataset, self.drop_last, self.collate_fn = dataset, bool(drop_last), collate_fn
        self.batch_size = None if batch_size is None or batch_sampler is not None else index(batch_size)
        self.sampler, self.batch_sampler, self.progress, self.device, self.epoch = sampler, batch_sampler, progress, device, 0
        self.shuffle, self.num_workers, self.prefetch_factor = bool(shuffle), index(num_workers), index(prefetch_factor)
        ahead = self.num_workers * self.prefetch_factor
        for name, value, least, bits in (("batch_size", self.at_once(), 1, 32), ("num_workers", self.num_workers, 0, 31),
                                         ("prefetch_factor", self.prefetch_factor, 1, 31), ("num_workers times prefetch_factor", ahead, 0, 31)):
            if not least <= value < 1 << bits:
                raise ValueError(f"DataLoader: {name}: a number from {least} to 2**{bits} - 1 is wanted, not {value}")
        self.seed = (Tensor.randint(1, low=0, high=1 << 30).item() if shuffle else 0) if seed is None else index(seed)
        if not 0 <= self.seed < 1 << 64:
            raise ValueError(f"DataLoader: seed: a number of 64 bits is wanted, not {seed}")

    def at_once(self):
        """How many entries of order() the library's loader takes at once: a batch_sampler's are batches already."""
        return 1 if self.batch_size is None else self.batch_size

    def order(self):
        """The items that there are, or the batches of them."""
        items = self.sampler if self.batch_sampler is None else map(list, self.batch_sampler)
        return range(len(self.dataset)) if items is None else list(items)

    def count(self, n):
        """How many batches @n of order() are."""
        return n // self.at_once() if self.drop_last else -(-n // self.at_once())

    def taken(self, item: Any) -> Any:
        """An item of the dataset as batches are made of it."""
        return item if self.collate_fn is not None else held(item)

    def __len__(self):
        if isinstance(self.dataset, IterableDataset) and type(self.dataset).__len__ is IterableDataset.__len__:
            raise TypeError(f"DataLoader: {type(self.dataset).__name__} has no length")
        items = next((one for one in (self.batch_sampler, self.sampler) if one is not None), self.dataset)
        return self.count(len(items) if hasattr(items, "__len__") else len(self.order()))

    def __iter__(self) -> Iterator[Any]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        if isinstance(self.dataset, IterableDataset):
            return shown_batches(self, read_along(self), bar(self.progress, epoch, 0))
        return batches(self, epoch, self.order())


def batches(owner, epoch, order):
    """The batches of one epoch, in the order of the library's loader, which reads tensors itself."""
    total = owner.count(len(order))
    if total == 0:
        return iter(())
    shown = bar(owner.progress, epoch, total)
    if type(owner.dataset) is TensorDataset and owner.sampler is None and owner.collate_fn is None and owner.batch_size is not None:
        loader = loader_of(owner, len(order), owner.batch_size)
        loader.set_device(owner.device)
        loader.set_drop_last(owner.drop_last)
        loader.set_prefetch(owner.prefetch_factor * owner.num_workers)
        for one in owner.dataset.tensors:
            call(loader.add_array, one.dtype.value, one.shape[1:], call(Base.get_data, one))
        loader.start_epoch(epoch)
        return given((list(call(loader.next_batch)) for _ in range(total)), lambda: loader.set_prefetch(0), shown)
    if owner.shuffle:
        loader = loader_of(owner, len(order), len(order))
        call(loader.add_array, dtypes.uint32.value, [], GLib.Bytes.new(array("I", range(len(order))).tobytes()))
        loader.start_epoch(epoch)
        order = [order[i] for i in call(loader.next_batch)[0].tolist()]
    return shown_batches(owner, read(owner, order, total), shown)


def shown_batches(owner, made, shown):
    """The batches that @made gives, or makes the beginnings of, made ahead where there are workers."""
    if owner.num_workers == 0:
        return given(made if owner.collate_fn is None else map(owner.collate_fn, made), made.close, shown)
    ahead = Ahead(made, owner.prefetch_factor * owner.num_workers)
    return given(ahead.results() if owner.collate_fn is None else map(owner.collate_fn, ahead.results()), ahead.close, shown)


def loader_of(owner, n_items, batch_size):
    loader = call(Tiny.Loader.new_empty, n_items, batch_size)
    loader.set_shuffle(owner.shuffle, owner.seed)
    return loader


def read(owner, order, total):
    """@total batches of the items in @order, or, where the program makes batches of them, what it makes them of."""
    at_once = owner.at_once()
    for i in range(total):
        places = order[i * at_once:(i + 1) * at_once]
        yield made_of(owner, [owner.taken(owner.dataset[place]) for place in (places if owner.batch_sampler is None else places[0])])


def read_along(owner):
    """The same of all items of an IterableDataset."""
    for items in chunks(map(owner.taken, owner.dataset), owner.at_once()):
        if not owner.drop_last or len(items) == owner.at_once():
            yield made_of(owner, items)


def made_of(owner, items):
    if owner.batch_size is None and owner.batch_sampler is None:
        return items[0] if owner.collate_fn is not None else converted(items[0], owner.device)
    return items if owner.collate_fn is not None else collate(items, "", owner.device)


class Ahead:
    """What @source, an iterator, gives, up to @n of it ahead on a thread; what is raised there is raised by results()."""

    def __init__(self, source, n):
        self.source, self.is_closed = source, False
        self.room, self.done = Semaphore(n), SimpleQueue()
        self.thread = Thread(target=self.work, daemon=True)

    def work(self):
        try:
            while True:
                self.room.acquire()
                if self.is_closed:
                    return
                self.done.put((next(self.source), None))
        except BaseException as error:
            self.done.put((None, error))

    def results(self):
        self.thread.start()
        while True:
            one, error = self.done.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            self.room.release()
            yield one

    def close(self):
        self.is_closed = True
        self.room.release()
        if self.thread.ident is not None:
            self.thread.join()


def given(made, close, shown):
    """Batches from @made; @close ends what makes them."""
    try:
        for done, one in enumerate(made, 1):
            yield one
            if shown is not None:
                shown.update(done, None)
        if shown is not None:
            shown.finish()
    finally:
        close()


def bar(progress, epoch, total):
    if not progress:
        return None
    return Tiny.Progress.new(progress if isinstance(progress, str) else f"epoch {epoch + 1}", total, Tiny.ProgressMode.AUTO)
