#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Microseconds of small expressions from Python, each realised or read by itself and dropped, with nothing captured.

usage: eager-add.py [ITERATIONS [CASE]]. Cases: add, relu, item, numpy; all where none is named. What is printed is the
least of many short turns, as others have the machine as well. After the first time the plans come from the cache."""
import json
import sys
import time

from tinycore import Tensor

TURNS = 40
a, b, w, x = (Tensor.rand(*shape).realize() for shape in ((1000,), (1000,), (16, 16), (16, 16)))


def add():
    c = a + b
    c.realize()


def relu():
    c = (w @ x).relu()
    c.realize()


def item():
    w.sum().item()


def numpy():
    (a + b).numpy()


def measure(case, n):
    best = float("inf")
    for turn in range(TURNS + 1):
        start = time.perf_counter()
        for _ in range(n):
            case()
        if turn > 0:
            best = min(best, (time.perf_counter() - start) / n * 1e6)
    return best


cases = {case.__name__: case for case in (add, relu, item, numpy)}
iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 200
names = sys.argv[2:] or list(cases)
print(json.dumps({f"us_{name}": round(measure(cases[name], iterations), 3) for name in names}))
