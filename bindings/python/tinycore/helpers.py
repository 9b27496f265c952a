# SPDX-License-Identifier: MIT
"""tinygrad's names of what programs use beside tensors: Timing, getenv, GlobalCounters, trange, …"""
from __future__ import annotations

import os
import time
from contextlib import ContextDecorator
from math import prod
from typing import Any

from .context import Context
from .library import Tiny

__all__ = ["Context", "Counters", "GlobalCounters", "Timing", "colored", "flatten", "getenv", "prod", "round_up", "tqdm", "trange"]
COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def getenv(key: str, default: Any = 0) -> Any:
    """An environment variable as something of the kind of @default, which it is where there is none."""
    return type(default)(os.environ.get(key, default))


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


def round_up(num: int, amt: int) -> int:
    """The least multiple of @amt that is at least @num."""
    return -(-num // amt) * amt
