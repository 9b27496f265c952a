# SPDX-License-Identifier: MIT
"""How far results are from those of f64 as a part of themselves: near 0, near zeros of the function, and far out. 2^-23 is one unit
of the last place at 1. Absent: what PyTorch in f32 has no better (sinc by its zeros, logit by 1/2, gelu below -4), and cos by its
zeros, where 1 - 2 sin² (x / 2) is within 2^-23 of the value."""
import math

import numpy
import torch
from torch.nn import functional

from harness import case

SMALL = numpy.concatenate([numpy.logspace(-37, 0, 400), numpy.linspace(1e-3, 1, 200)]).astype("float32")
AROUND = numpy.concatenate([SMALL, -SMALL])
REAL = numpy.concatenate([AROUND, numpy.linspace(-12, 12, 400).astype("float32")])
WIDE = numpy.logspace(-37, 37, 800).astype("float32")
FAR = numpy.linspace(-80, 80, 500).astype("float32")


def by(zero):
    steps = numpy.logspace(-7, -0.01, 200) * max(abs(zero), 1)
    return numpy.concatenate([zero + steps, zero - steps]).astype("float32")


def within(x, low, high):
    return x[(x > low) & (x < high)]


UNARY = {  # what of, and how many units of 2^-23
    "sin": (numpy.concatenate([REAL, by(math.pi), by(100 * math.pi)]), 2),
    "tan": (numpy.concatenate([REAL, by(math.pi), by(math.pi / 2)]), 3),
    "asin": (within(numpy.concatenate([AROUND, by(1)]), -1, 1), 3),
    "acos": (within(numpy.concatenate([AROUND, by(1)]), -1, 1), 3),
    "atan": (numpy.concatenate([REAL, WIDE]), 3),
    "sinh": (REAL, 3),
    "cosh": (REAL, 3),
    "tanh": (REAL, 2),
    "asinh": (numpy.concatenate([REAL, WIDE]), 3),
    "acosh": (numpy.concatenate([1 + SMALL, within(WIDE, 1, 1e38)]), 3),
    "atanh": (within(numpy.concatenate([AROUND, by(1)]), -1, 1), 3),
    "exp": (FAR, 2),
    "exp2": (FAR, 1),
    "expm1": (REAL, 3),
    "log": (numpy.concatenate([WIDE, within(by(1), 0, 9)]), 2),
    "log2": (numpy.concatenate([WIDE, within(by(1), 0, 9)]), 1),
    "log10": (numpy.concatenate([WIDE, within(by(1), 0, 9)]), 2),
    "log1p": (numpy.concatenate([WIDE, within(numpy.concatenate([AROUND, by(-1)]), -1, 9)]), 3),
    "sqrt": (WIDE, 1),
    "rsqrt": (WIDE, 1),
    "reciprocal": (WIDE, 1),
    "square": (within(WIDE, 1e-18, 1e18), 1),
    "erf": (REAL, 3),
    "erfc": (numpy.linspace(-6, 8.5, 800).astype("float32"), 4),
    "sigmoid": (numpy.concatenate([AROUND, FAR]), 2),
    "silu": (numpy.concatenate([AROUND, within(FAR, -79, 81)]), 3),
    "logsigmoid": (numpy.concatenate([AROUND, FAR]), 3),
    "softplus": (numpy.concatenate([AROUND, within(FAR, -81, 15)]), 3),
    "softsign": (REAL, 2),
    "mish": (numpy.concatenate([AROUND, within(FAR, -79, 81)]), 3),
}
for name, (numbers, units) in UNARY.items():
    case(name, [numbers], lambda x, n=name: getattr(x, n)(), getattr(torch, name, None) or getattr(functional, name), gradient=False,
         forward=units * 2.0**-23, relative=True)

# ---- powers: 2^(y log2 x), where errors of the product would be those of the exponent ----
random = numpy.random.RandomState(3)
for size, most in ((37, 1), (3, 12), (0.1, 360), (1e-4, 3e5)):
    base = (10.0 ** random.uniform(-size, size, 4000)).astype("float32")
    exponent = random.uniform(-most, most, 4000).astype("float32")
    case("pow", [base, exponent], lambda x, y: x.pow(y), torch.pow, gradient=False, forward=2 * 2.0**-23, relative=True)
for exponent in (2, 3, 4, 5, 7, 12, 20, 0.3, 1.5, -0.5, -3, -7):
    base = (random.choice([-1, 1], 1000) * random.uniform(0.05, 3, 1000)).astype("float32")
    case("pow", [base if exponent == int(exponent) else abs(base)], lambda x, e=exponent: x**e, gradient=False, forward=2 * 2.0**-23, relative=True)
case("pow", [numpy.linspace(-100, 100, 999, dtype="float32")], lambda x: 2.0**x, gradient=False, forward=2.0**-23, relative=True)

# ---- remainders are exact: to the last bit those of C ----
EDGES = numpy.array([0, -0.0, 1, -1, numpy.inf, -numpy.inf, numpy.nan, 1e-45, 1e-40, 1e-38, 1.5, 7, 72, 0.1, 3e38, 2, -2], dtype="float32")


def exact(operation, ours, theirs, pairs):
    for x, y in pairs:
        with numpy.errstate(all="ignore"):
            wanted = theirs(x, y)
        case(operation, [x, y], lambda a, b, f=ours: f(a, b), lambda a, b, w=wanted: torch.from_numpy(w.copy()), gradient=False, forward=0)


def pairs(dtype, most):
    def signed(x):
        return (x * random.choice([-1, 1], x.shape)).astype(dtype)

    yield signed(10.0 ** random.uniform(-most, most, 3000)), signed(10.0 ** random.uniform(-most, most, 3000))
    yield signed(random.uniform(0, 100, 3000)), signed(random.uniform(0.01, 3, 3000))
    y = signed(random.uniform(0.1, 3, 3000))
    yield random.randint(-50, 50, 3000).astype(dtype) * y, y  # almost nothing is left
    yield tuple(x.ravel().astype(dtype) for x in numpy.meshgrid(EDGES, EDGES))


for dtype, most in (("float32", 37), ("float64", 300)):
    exact("fmod", lambda x, y: x.fmod(y), numpy.fmod, pairs(dtype, most))
    exact("mod", lambda x, y: x % y, numpy.remainder, pairs(dtype, most))
    exact("floor_divide", lambda x, y: x // y, numpy.floor_divide, pairs(dtype, most))
exact("mod", lambda x, y: x % 0.1, lambda x, y: numpy.remainder(x, numpy.float32(0.1)), [(numpy.arange(-99, 99, dtype="float32"), EDGES)])
# Numbers that are constants, powers of two among them, up to the largest quotients, and the sign of 0.
LARGE = numpy.concatenate([10.0 ** numpy.linspace(-3, 38.5, 99), numpy.arange(9)]).astype("float32")
LARGE = numpy.concatenate([LARGE, -LARGE])
for by in (2.0**-15, 0.5, 1.0, 2.0, -4.0, 3.0):
    exact("fmod", lambda x, y, by=by: x.fmod(by), lambda x, y, by=by: numpy.fmod(x, numpy.float32(by)), [(LARGE, EDGES)])
    exact("fmod", lambda x, y, by=by: x.fmod(by).signbit(), lambda x, y, by=by: numpy.signbit(numpy.fmod(x, numpy.float32(by))), [(LARGE, EDGES)])
    exact("mod", lambda x, y, by=by: x % by, lambda x, y, by=by: numpy.remainder(x, numpy.float32(by)), [(LARGE, EDGES)])
exact("mod", lambda x, y: x % 0.25, lambda x, y: numpy.remainder(x, numpy.float32(0.25)), [(numpy.linspace(-9, 9, 99, dtype="float32"), EDGES)])
exact("floor_divide", lambda x, y: x // 0.1, lambda x, y: numpy.floor_divide(x, numpy.float32(0.1)), [(numpy.arange(-99, 99, dtype="float32"), EDGES)])
