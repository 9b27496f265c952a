#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every method is called with nonsense, seeded: what comes is an exception or a result that can be read, never a crash.

TAP. usage: test_nonsense.py [SEED [COUNT]]. Run in the build's environment, by an interpreter with gi and numpy."""
import random
import sys

import checks
import numpy
from tinycore import Tensor, dtypes
from tinycore.creation import Creation
from tinycore.operations import Operations

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 4000
# Protocols beside the methods with names.
PROTOCOLS = {"__getitem__", "__setitem__", "__add__", "__rsub__", "__pow__", "__matmul__", "__lt__", "__eq__", "__dlpack__",
             "__contains__", "__array__", "__format__", "__iadd__", "__bool__", "__index__", "__iter__", "__len__", "__new__"}
MAY_RAISE = (TypeError, ValueError, IndexError, OverflowError, MemoryError, RuntimeError, NotImplementedError, BufferError,
             AttributeError, LookupError, OSError, AssertionError, RecursionError)


def nested():
    inside = [1]
    inside.append(inside)
    return inside


def odd_tensors():
    return [Tensor([[1.0, -2.0], [3.0, 0.5]]), Tensor([1, 2, 3]), Tensor(True), Tensor([]), Tensor.zeros(0, 3), Tensor(2.5),
            Tensor([float("nan"), float("inf")]), Tensor.ones(2, 1, 2).half(), Tensor([True, False]), Tensor.ones(1, 2, 4, 4),
            Tensor([5, -7], dtype="int64"), Tensor([1, 2], dtype="uint8"), Tensor.ones(2, 2, dtype="float64")]


VALUES = [None, True, False, 0, 1, -1, 2, 3, 17, 2**31, -2**31, 2**63, -2**70, 0.0, -0.0, 0.5, 1e300, float("nan"), float("inf"), "",
          "mean", "x", "\0", b"", b"ab", [], [0], [1, 1], [0, 0], [-1], [2, 3], [2**40, 2**40], [2**64], [0.5], ["a"], [None], [[]],
          (), (0, 1), (1, 0), (0, -1), ((0, 1), (1, 1)), {}, {"a": 1}, set(), object(), 1j, slice(None), Ellipsis, lambda x: x,
          numpy.zeros(0), numpy.arange(3), numpy.array([1, "a"], object), numpy.array(1.5), numpy.int8(3), numpy.float64("nan"),
          numpy.zeros((2, 2), ">f4"), numpy.arange(8.0)[::-2], dtypes.float32, dtypes.bool, "float16", float, range(3), Tensor]


def value(chance, tensors):
    return chance.choice(tensors) if chance.random() < 0.35 else chance.choice(VALUES) if chance.random() < 0.97 else nested()


def read(result):
    """Whatever is lazy is computed now."""
    for one in result if isinstance(result, (list, tuple)) else [result]:
        if isinstance(one, Tensor) and one.numel() < 10000:
            one.tolist()


def test_nonsense():
    chance = random.Random(SEED)
    names = sorted(name for one in (Operations, Creation, Tensor) for name, what in vars(one).items()
                   if (not name.startswith("_") or name in PROTOCOLS) and callable(getattr(Tensor, name)))
    checks.true(len(names) > 150, names)
    worked = raised = 0
    tensors = odd_tensors()
    for i in range(COUNT):
        name = chance.choice(names)
        arguments = [value(chance, tensors) for _ in range(chance.randrange(4))]
        target = chance.choice(tensors)
        if i % 100 == 99:
            tensors = odd_tensors()
        try:
            read(getattr(target, name)(*arguments))
            worked += 1
        except MAY_RAISE:
            raised += 1
        except Exception as error:
            raise AssertionError(f"{name}{tuple(arguments)!r} of {target!r} raises {type(error).__name__}: {error}") from error
    print(f"# {len(names)} methods, {worked} calls gave a result, {raised} an exception")
    checks.true(worked > COUNT / 50 and raised > COUNT / 10, "hardly anything is tested")


checks.run(globals())
