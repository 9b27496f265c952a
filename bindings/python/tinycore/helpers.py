# SPDX-License-Identifier: MIT
"""tinygrad's names of what programs use beside tensors: Timing, getenv, GlobalCounters, trange, …"""
from __future__ import annotations

import os
import time
from contextlib import ContextDecorator
from math import prod
from pathlib import Path
from typing import Any

from .context import Context
from .library import Tiny

__all__ = ["BEAM", "Context", "Counters", "DEBUG", "GlobalCounters", "Profiling", "Setting", "TRAINING", "Timing", "all_same", "argfix", "argsort", "colored", "dedup",
           "fetch", "flatten", "getenv", "make_tuple", "merge_dicts", "partition", "prod", "round_up", "tqdm", "trange"]
COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def getenv(key: str, default: Any = 0) -> Any:
    """An environment variable as something of the kind of @default, which it is where there is none."""
    return type(default)(os.environ.get(key, default))


class Setting:
    """A number of the library's settings as it is now, within Context() too: if DEBUG >= 2."""

    def __init__(self, name: str):
        self.key = name

    @property
    def value(self) -> int:
        if self.key == "TRAINING":
            from .tensor import Tensor
            return int(Tensor.training)
        return int(Tiny.get_setting(self.key) or 0)

    def __bool__(self) -> bool:
        return self.value != 0

    def __eq__(self, other: object) -> bool:
        return self.value == other

    def __lt__(self, other: float) -> bool:
        return self.value < other

    def __le__(self, other: float) -> bool:
        return self.value <= other

    def __gt__(self, other: float) -> bool:
        return self.value > other

    def __ge__(self, other: float) -> bool:
        return self.value >= other

    def __int__(self) -> int:
        return self.value

    __index__, __hash__ = __int__, object.__hash__


DEBUG, BEAM, TRAINING = Setting("DEBUG"), Setting("BEAM"), Setting("TRAINING")


class Timing(ContextDecorator):
    """with Timing ("step: "): prints how long it took. @on_exit: a function of the nanoseconds whose text is printed after that."""

    def __init__(self, prefix="", on_exit: Callable[[int], str] = None, enabled=True):
        self.prefix, self.on_exit, self.enabled, self.et = prefix, on_exit, enabled, 0

    def __enter__(self):
        self.st = time.perf_counter_ns()
        return self

    def __exit__(self, *error):
        self.et = time.perf_counter_ns() - self.st
        if self.enabled:
            print(f"{self.prefix}{self.et * 1e-6:6.2f} ms" + (self.on_exit(self.et) if self.on_exit else ""))


class Profiling(ContextDecorator):
    """with Profiling (): prints the functions of Python that took longest, a part @frac of them, by @sort as pstats has it, or writes them to @fn."""

    def __init__(self, enabled=True, sort="cumtime", frac=0.2, fn: str = None):
        self.enabled, self.sort, self.frac, self.fn = enabled, sort, frac, fn

    def __enter__(self):
        from cProfile import Profile
        self.profile = Profile()
        if self.enabled:
            self.profile.enable()
        return self

    def __exit__(self, *error):
        from pstats import Stats
        if not self.enabled:
            return
        self.profile.disable()
        stats = Stats(self.profile).sort_stats(self.sort)
        if self.fn is None:
            stats.print_stats(self.frac)
        else:
            stats.dump_stats(self.fn)


class Counters:
    """What was computed since reset(): kernels launched, what they calculated and moved by their own count, seconds of running them.
    What a TinyJit replays counts as what it recorded."""

    @property
    def kernel_count(self) -> int:
        return Tiny.get_counter("kernels")

    @property
    def global_ops(self) -> int:
        return Tiny.get_counter("flops")

    @property
    def global_mem(self) -> int:
        return Tiny.get_counter("bytes")

    @property
    def time_sum_s(self) -> float:
        return Tiny.get_counter("ns-run") * 1e-9

    def reset(self):
        Tiny.reset_counters()


GlobalCounters = Counters()


class tqdm:
    """A progress bar on standard error around what is iterated over."""

    def __init__(self, iterable: Iterable[Any] = None, desc="", disable=False, total: int = None, **more):
        self.iterable, self.label, self.disable, self.done, self.note, self.bar = iterable, desc, disable, 0, None, None
        self.total = total if total is not None else len(iterable) if hasattr(iterable, "__len__") else 0

    def set_description(self, desc: str):
        """A text beside the bar."""
        self.note = desc

    def update(self, n=1):
        """So many more are done."""
        self.done += n
        if not self.disable:
            self.bar = self.bar or Tiny.Progress.new(self.label, self.total, Tiny.ProgressMode.AUTO)
            self.bar.update(self.done, self.note)

    def close(self):
        if self.bar is not None:
            self.bar.finish()
            self.bar = None

    def __iter__(self) -> Iterator[Any]:
        try:
            for one in self.iterable:
                yield one
                self.update()
        finally:
            self.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def trange(n: int, **more) -> tqdm:
    """tqdm (range (n))."""
    return tqdm(range(n), **more)


def colored(st: str, color: str | None, background=False) -> str:
    """A text in a colour, brighter where the name is in capitals, on a terminal; NO_COLOR in the environment: as it is."""
    if color is None or "NO_COLOR" in os.environ:
        return st
    return f"\u001b[{10 * background + 60 * (color.upper() == color) + 30 + COLORS.index(color.lower())}m{st}\u001b[0m"


def flatten(l: Iterable[Iterable[Any]]) -> list[Any]:  # noqa: E741
    """The elements of lists in one."""
    return [one for part in l for one in part]


def all_same(items: Sequence[Any]) -> bool:
    """True if each is as the first."""
    return all(one == items[0] for one in items)


def argsort(x: Sequence[Any]) -> Any:
    """The order that sorts them, in a list or tuple as @x is."""
    return type(x)(sorted(range(len(x)), key=lambda i: x[i]))


def make_tuple(x: Any, cnt: int) -> tuple[Any, ...]:
    """@x so many times, or what a list of them has."""
    return (x,) * cnt if isinstance(x, int) else tuple(x)


def merge_dicts(ds: Iterable[dict[Any, Any]]) -> dict[Any, Any]:
    """All entries of several; where two have a key, their values are the same."""
    merged: dict[Any, Any] = {}
    for key, value in (item for one in ds for item in one.items()):
        if merged.setdefault(key, value) != value:
            raise ValueError(f"merge_dicts: {key} has two values, {merged[key]} and {value}")
    return merged


def round_up(num: int, amt: int) -> int:
    """The least multiple of @amt that is at least @num."""
    return -(-num // amt) * amt


def partition(itr: Iterable[Any], fxn: Callable[[Any], Any]) -> tuple[list[Any], list[Any]]:
    """Those of which @fxn is true, and the others."""
    lists: tuple[list[Any], list[Any]] = [], []
    for one in itr:
        lists[not fxn(one)].append(one)
    return lists


def dedup(x: Iterable[Any]) -> list[Any]:
    """Each element where it comes first."""
    return list({one: None for one in x})


def argfix(*x: Any) -> tuple[Any, ...]:
    """Arguments that may be given as one list."""
    if x and isinstance(x[0], (tuple, list)):
        if len(x) > 1:
            raise ValueError(f"argfix: a list and {len(x) - 1} more arguments: give one list, or no list")
        return tuple(x[0])
    return x


def fetch(url: str, name: Any = None, subdir: str = None, gunzip=False, *, sha256: str = None) -> Any:
    """The file at @url, kept in the cache folder as Tensor.from_url() keeps it; a path is itself. @name: what to call it, below @subdir
    of that folder, or a path; @sha256: what the hash of the file has to be."""
    from . import fetch as files
    if url.startswith(("/", ".")):
        return Path(url)
    if name is None and subdir is None and not gunzip and not url.startswith("file:"):
        return files.kept_file(url, files.TIMEOUT, sha256)
    folder = files.cache_folder() / (subdir or "")
    path = folder / (name or files.hash_of(url.encode()).hexdigest() + ".file")
    if not path.exists() or sha256 is not None and not gunzip and files.digest_of(path) != sha256:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_whole(path, [files.bytes_at(url, gunzip, sha256=sha256)])
    return path
