# SPDX-License-Identifier: MIT
"""What the contract's ops leave open and tensors do not: integers divided by 0, shifts by all bits and more, as NumPy has them; of
numbers that are read, of plain ones, and of what is known before anything is compiled."""
import numpy
import torch

from harness import case

X = {"int32": [7, -7, 0, 2**31 - 1], "int64": [7, -7, 0, -2**63], "uint8": [7, 1, 0, 255], "int8": [7, -7, 0, -128], "int16": [7, -7, 0, 99],
     "uint32": [7, 1, 0, 2**32 - 1]}


def beside(operation, inputs, ours, wanted):
    wanted = torch.tensor(wanted).to(torch.from_numpy(inputs[0]).dtype)
    case(operation, inputs, lambda *args: ours(*args).cast(str(inputs[0].dtype)), lambda *_: wanted)


def shifted(x, count, n_bits):
    if 0 <= count < n_bits:
        return None
    return [-1 if v < 0 else 0 for v in x]


for dtype, values in X.items():
    n_bits = 8 * numpy.dtype(dtype).itemsize
    x = numpy.array(values, "int64" if dtype == "uint32" else dtype)  # PyTorch has no uint32
    zeros = numpy.zeros_like(x)

    def given(t, d=dtype):
        return t if d != "uint32" else t.cast("uint32")

    def known(like, d=dtype, v=values):
        return type(like)(v, dtype=d)

    for operation, ours in (("floor_divide", lambda a, b: a // b), ("mod", lambda a, b: a % b), ("fmod", lambda a, b: a.fmod(b)),
                            ("div", lambda a, b: a.div(b if isinstance(b, type(a)) else type(a)(b, dtype=a.dtype), "trunc"))):
        beside(operation, [x, zeros], lambda a, b, f=ours, g=given: f(g(a), g(b)), zeros)
        beside(operation, [x], lambda a, f=ours, g=given: f(g(a), 0), zeros)
        beside(operation, [x], lambda a, f=ours, k=known: f(k(a), 0), zeros)
        beside(operation, [x], lambda a, f=ours, k=known: f(k(a), k(a) - k(a)), zeros)
    for count in (n_bits, n_bits + 1, 64, 100, -1):
        wanted = shifted(values, count, n_bits)
        counts = numpy.full(len(values), count, "int32")
        if wanted is None:
            continue
        for operation, ours, result in (("lshift", lambda a, b: a << b, zeros), ("rshift", lambda a, b: a >> b, wanted)):
            beside(operation, [x, counts], lambda a, b, f=ours, g=given: f(g(a), b), result)
            if count > 0:
                beside(operation, [x], lambda a, f=ours, g=given, n=count: f(g(a), n), result)
                beside(operation, [x], lambda a, f=ours, k=known, n=count: f(k(a), n), result)
