# SPDX-License-Identifier: MIT
"""Places and sizes that are variables: what Python's subscripts, shrink() and narrow() make of them, read and written, recorded once
for all values; and what is refused says what can be."""
import numpy

import checks
from tinycore import Tensor, TinyJit, Variable, dtypes

SIZE = 8
NUMBERS = numpy.arange(SIZE * 4, dtype="float32").reshape(SIZE, 4)


def same(found, wanted, what=""):
    checks.equal((found.shape, found.tolist()), (wanted.shape, wanted.tolist()), what)


READS = {
    "x[:v]": lambda x, v: x[:v], "x[v]": lambda x, v: x[v], "x[v, 1]": lambda x, v: x[v, 1], "x[v:v + 2]": lambda x, v: x[v:v + 2],
    "x[v:]": lambda x, v: x[v:], "x[1:v + 1]": lambda x, v: x[1:v + 1], "x[-6:v + 2]": lambda x, v: x[-6:v + 2],
    "x[v:-1]": lambda x, v: x[v:-1], "x[:v, 1:3]": lambda x, v: x[:v, 1:3], "x[..., v - 1]": lambda x, v: x[..., (v - 1) // 2],
    "x[None, :v, None]": lambda x, v: x[None, :v, None], "x[:v][-1]": lambda x, v: x[:v][-1], "x[:v][0]": lambda x, v: x[:v][0],
    "x[:v][-1:]": lambda x, v: x[:v][-1:], "x[:v][:, 2]": lambda x, v: x[:v][:, 2], "x[v - 1:2 * v - 1]": lambda x, v: x[v - 1:2 * v - 1][:1],
    "x[v:v + 2, [0, 3]]": lambda x, v: x[v:v + 2, [0, 3]], "a mean": lambda x, v: x[:v].mean(0),
    "exp and abs": lambda x, v: numpy.abs(x[:v] - 9) if x is NUMBERS else abs(x[:v] - 9).exp().log(), "argmax": lambda x, v: (x[:v] % 5).argmax(1),
}


def test_reads():
    """Each read gives what NumPy gives for the value, from one recording."""
    x, variable = Tensor(NUMBERS).realize(), Variable("v", 1, 4)
    for name, read in READS.items():
        recorded = TinyJit(lambda x, v, read=read: read(x, v) + 0)
        for value in (2, 4, 1, 3, 4):
            bound, wanted = variable.bind(value), numpy.asarray(read(NUMBERS, value))
            for found in (read(x, bound) + 0, recorded(x, bound)):
                checks.equal(found.shape, wanted.shape, f"{name} of {value}")
                checks.true(numpy.allclose(found.numpy(), wanted, 1e-5), f"{name} of {value}: {found.tolist()}")
        checks.true(recorded.captured, name)
    v = variable.bind(3)
    same(x.shrink(((1, v + 2), None)), NUMBERS[1:5])
    same(x.narrow(0, 1, v), NUMBERS[1:4])
    same(x.narrow(dim=1, start=0, length=v), NUMBERS[:, :3])
    same(x.narrow(-2, v, v), NUMBERS[3:6])
    checks.true((v + 1).is_symbolic() and not Tensor(3).is_symbolic() and not x.is_symbolic(), "is_symbolic")


WRITES = {
    "x[v] = row": lambda x, v, y: x.__setitem__(v, y[0]), "x[v:v + 2] = rows": lambda x, v, y: x.__setitem__(slice(v, v + 2), y[:2]),
    "x[v, 1] = 7": lambda x, v, y: x.__setitem__((v, 1), 7), "x[:v] = 5": lambda x, v, y: x.__setitem__(slice(None, v), 5),
    "x[v:] = row": lambda x, v, y: x.__setitem__(slice(v, None), y[1]), "x[:, v - 1] = 3": lambda x, v, y: x.__setitem__((slice(None), v - 1), 3),
    "x[:v] = y[:v]": lambda x, v, y: x.__setitem__(slice(None, v), y[:v]), "x[1:v + 1] += 1": lambda x, v, y: x.__setitem__(slice(1, v + 1), x[1:v + 1] + 1),
}


def test_writes():
    """As NumPy writes, also recorded: memory is changed by each call."""
    y, variable = Tensor(-NUMBERS).realize(), Variable("v", 1, 4)
    for name, write in WRITES.items():
        x, wanted = Tensor(NUMBERS).realize(), NUMBERS.copy()

        def function(v):
            write(x, v, y)
            return x.sum().realize()
        recorded = TinyJit(function)
        for value in (1, 3, 4, 2):
            recorded(variable.bind(value))
            write(wanted, value, -NUMBERS)
            same(x, wanted, f"{name} of {value}")


def test_refused():
    """What cannot be for all values of a variable is an error that says what can."""
    x = Tensor(NUMBERS).realize()
    v = Variable("v", 1, 4).bind(3)
    for words, wrong in {
        "stay inside": lambda: x[:Variable("w", 1, 9).bind(2)], "no value here": lambda: x[:Variable("w", 1, 9)],
        "has no value": lambda: x[Variable("w", 1, 9)], "a slice's step is a number": lambda: x[::v], "step of 1": lambda: x[:v:2],
        "steps of 1": lambda: x[:v][::2], "may be below 3": lambda: x[:v][3], "differ in size": lambda: x.__setitem__(slice(None, v), x[:5]),
        "may end before": lambda: x[3:v], "whole, and shorten": lambda: x[:v].flip(0), "shorten the result": lambda: x[:v].sort(0),
        "it counts as its largest": lambda: x[:, :v].layer_norm((3,)), "that are data": lambda: x[:v][Tensor([0, 1])],
        "-1 where a shape": lambda: x[:v].reshape(3, 4), "elements": lambda: Tensor.zeros(8, 0)[:v], "is a variable: do": lambda: x[:v].split(1),
        "no bounds": lambda: Variable("i", 5, 2), "max: a whole number": lambda: Variable("i", 5, "a"), "name: a text": lambda: Variable(3, 1, 2),
        "bind: a whole number": lambda: Variable("i", 1, 2).bind("a"), "outside of variable": lambda: Variable("i", 1, 2).bind(3),
    }.items():
        error = checks.raises((TypeError, ValueError, NotImplementedError, IndexError), wrong)
        checks.true(words in str(error), f"{error}, not “{words}”")
        checks.true("tiny_" not in str(error), str(error))
    same(x[Variable("w", -2, 9).bind(-1)], NUMBERS[-1])  # beyond an axis for some values: a position like those that are data
    checks.equal(x[:Tensor(3)].shape, (3, 4))  # a number that was computed is read
    checks.equal(x[:3].dtype, dtypes.float32)


checks.run(globals())
