# SPDX-License-Identifier: MIT
"""Functions of numbers and activations: many shapes, dtypes, edges and arguments far out."""
import math

import numpy
import torch
from torch.nn import functional

from harness import case, each, numbers, refuses

SHAPES = [(3, 5), (2, 3, 4), (), (0,), (7,)]
INF, NAN = math.inf, math.nan
EDGES = numpy.array([0.0, -0.0, INF, -INF, NAN, 1e-45, -1e-40, 1e-30, 1e-10, -1e-8, 1e-5, -1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, -0.5,
                     0.7, 0.9, 0.99, 1, -1, 1.5, 2, -2, 3, -3, 5, 10, -10, 20, -20, 50, -50, 80, -87, 88.5, -103, -110, 1e3,
                     1e4, 1e5, 1e6, -1e6, 1e10, 1e20, -1e20], dtype="float32")


def rounded(x):
    return x.float() if x.is_floating_point() else x


def unary(name, low, high, theirs=None, edges=EDGES, ours=None, gradient=True):
    """Of shapes, in f32 with gradients; in f64, f16 and of integers; of edges."""
    ours = ours or (lambda x: getattr(x, name)())
    theirs = theirs or getattr(torch, name)
    each(name, SHAPES, ours, theirs, low=low, high=high, gradient=gradient)
    case(name, [(64,)], ours, theirs, low=low, high=high, dtype="float64", forward=1e-12, gradient=False)
    half = numbers((64,), low, high).astype("float16")
    # PyTorch has no halves on the processor for most of these.
    case(name, [half], ours, lambda x: theirs(x.float()).to(x.dtype) if x.dtype == torch.float16 else theirs(x),
         gradient=False)
    if edges is not None:  # rounded to f32, whose range is what counts
        case(name, [edges], ours, lambda x: rounded(theirs(x)), gradient=False, label="edges")


DOMAIN = {
    "asin": (-0.95, 0.95), "acos": (-0.95, 0.95), "atan": (-5, 5), "sinh": (-4, 4), "cosh": (-4, 4), "asinh": (-5, 5),
    "acosh": (1.1, 9), "atanh": (-0.95, 0.95), "exp": (-5, 5), "exp2": (-5, 5), "expm1": (-2, 2), "log": (0.1, 9),
    "log2": (0.1, 9), "log10": (0.1, 9), "log1p": (-0.9, 9), "erf": (-3, 3), "erfc": (-3, 3), "sinc": (-3, 3),
    "sin": (-9, 9), "cos": (-9, 9), "tan": (-1.4, 1.4), "tanh": (-4, 4), "sqrt": (0.1, 9), "rsqrt": (0.1, 9),
    "sigmoid": (-6, 6), "square": (-3, 3), "neg": (-3, 3), "abs": (-3, 3), "reciprocal": (0.5, 3), "relu": (-3, 3),
    "erfinv": (-0.99, 0.99), "lgamma": (0.1, 9), "digamma": (0.2, 9),
    "deg2rad": (-400, 400), "rad2deg": (-9, 9), "frac": (-3, 3),
}
for name, (low, high) in DOMAIN.items():
    unary(name, low, high)
for name in ("asin", "atan", "exp", "log1p", "erf", "sin", "cos", "sigmoid", "sinh"):
    case(name, [numpy.arange(0, 9, dtype="int32")], lambda x, name=name: getattr(x, name)(),
         lambda x, name=name: getattr(torch, name)(x))
for name in ("floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "logical_not"):
    each(name, SHAPES, lambda x, name=name: getattr(x, name)(), getattr(torch, name), gradient=False)
    case(name, [EDGES], lambda x, name=name: getattr(x, name)(), getattr(torch, name), gradient=False, label="edges")
case("sign", [(3, 5)], lambda x: x.sign(), gradient=False)
case("round", [numpy.arange(-4, 4.5, 0.5, dtype="float32")], lambda x: x.round(), gradient=False)
far = numpy.array([1e6, -1e6, 12345.678, 3e9, 1e20, 355.0, 103993 / 33102 * 1e3], dtype="float32")
for name in ("sin", "cos", "tan"):
    case(name, [far], lambda x, name=name: getattr(x, name)(), lambda x, name=name: getattr(torch, name)(x), label="far out",
         backward=1e-3 if name == "tan" else 1e-4)
case("exp", [numpy.linspace(-100, 88, 999, dtype="float32")], lambda x: x.exp(), label="wide", backward=1e-6)
case("expm1", [numpy.logspace(-9, 1, 200, dtype="float32")], lambda x: x.expm1(), label="small")
case("log1p", [numpy.logspace(-9, 9, 200, dtype="float32")], lambda x: x.log1p(), label="small")
case("tan", [numbers((200,), 1.5, 4.6)], lambda x: x.tan(), label="by its pole", gradient=False)
case("erfc", [numpy.linspace(-6, 9, 300, dtype="float32")], lambda x: x.erfc(), label="wide")
case("erfinv", [1 - numpy.logspace(-7, 0, 200, dtype="float32")], lambda x: x.erfinv(), label="by its pole", gradient=False)
for name in ("lgamma", "digamma"):
    case(name, [numpy.logspace(-20, 20, 300, dtype="float32")], lambda x, name=name: getattr(x, name)(), label="wide", gradient=False)
    # lgamma is a difference of logarithms of up to 6 there, which have the roundings of f32, and is as small as it likes.
    case(name, [numpy.linspace(-6.93, 3, 200, dtype="float32")], lambda x, name=name: getattr(x, name)(), label="below 0",
         forward=4e-6 if name == "lgamma" else 1e-6)
    case(name, [numpy.array([1, 2, 1.46163, 1.46164, 0.999999, 2.000001, 3], dtype="float32")], lambda x, name=name: getattr(x, name)(), label="by zeros")

ACTIVATIONS = {
    "relu6": functional.relu6, "hardsigmoid": functional.hardsigmoid, "hardswish": functional.hardswish,
    "selu": functional.selu, "logsigmoid": functional.logsigmoid, "mish": functional.mish, "softsign": functional.softsign,
    "silu": functional.silu,
}
for name, theirs in ACTIVATIONS.items():
    unary(name, -8, 8, theirs)
for approximate in ("none", "tanh"):
    unary("gelu", -6, 6, lambda x, a=approximate: functional.gelu(x, approximate=a), edges=EDGES[numpy.isfinite(EDGES)],
          ours=lambda x, a=approximate: x.gelu(a))
for slope in (0.01, 0.3):
    unary("leaky_relu", -3, 3, lambda x, s=slope: functional.leaky_relu(x, s), ours=lambda x, s=slope: x.leaky_relu(s))
for alpha in (1.0, 0.4):
    unary("elu", -3, 3, lambda x, a=alpha: functional.elu(x, a), ours=lambda x, a=alpha: x.elu(a))
    unary("celu", -3, 3, lambda x, a=alpha: functional.celu(x, a), ours=lambda x, a=alpha: x.celu(a))
for beta, limit in ((1, 20), (2, 3)):
    unary("softplus", -9, 9, lambda x, b=beta, t=limit: functional.softplus(x, b, t),
          ours=lambda x, b=beta, t=limit: x.softplus(b, t))
unary("hardtanh", -3, 3, lambda x: functional.hardtanh(x, -0.5, 1.5), ours=lambda x: x.hardtanh(-0.5, 1.5))
unary("threshold", -3, 3, lambda x: functional.threshold(x, 0.125, 20), ours=lambda x: x.threshold(0.125, 20))
unary("hardshrink", -3, 3, functional.hardshrink)
unary("softshrink", -3, 3, functional.softshrink, edges=EDGES[~numpy.isnan(EDGES)])
unary("logit", 0.01, 0.99, torch.logit)
unary("logit", -1, 2, lambda x: torch.logit(x, 0.1), ours=lambda x: x.logit(0.1), gradient=False)
unary("quick_gelu", -6, 6, lambda x: x * torch.sigmoid(1.702 * x))
unary("nan_to_num", -3, 3, torch.nan_to_num, edges=None)
case("nan_to_num", [EDGES], lambda x: x.nan_to_num(1, 2, 3), lambda x: torch.nan_to_num(x, 1, 2, 3), gradient=False)
for axis, shape in ((-1, (3, 4)), (0, (6,)), (1, (2, 4, 3))):
    case("glu", [shape], lambda x, a=axis: x.glu(a), lambda x, a=axis: functional.glu(x, a))
for shapes in ([(2, 3, 4), (3,)], [(5,), (1,)], [(2, 3), (1,)]):
    case("prelu", shapes, lambda x, w: x.prelu(w), functional.prelu)
refuses("glu", [(3, 5)], lambda x: x.glu(1), lambda x: functional.glu(x, 1))
refuses("prelu", [(2, 3), (2,)], lambda x, w: x.prelu(w), functional.prelu)
refuses("gelu", [(3,)], lambda x: x.gelu("erf"), lambda x: functional.gelu(x, approximate="erf"))

PAIRS = [[(4, 5), (4, 5)], [(5,), (4, 5)], [(4, 1, 3), (2, 1)], [(), (3,)], [(0, 3), (1, 3)]]
ODD = numpy.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, INF, -INF, NAN, 7.5], dtype="float32")
LEFT, RIGHT = [x.ravel().copy() for x in numpy.meshgrid(ODD, ODD)]
PLAIN = [x.ravel().copy() for x in numpy.meshgrid(ODD[numpy.isfinite(ODD) & (ODD != 0)], ODD[numpy.isfinite(ODD) & (ODD != 0)])]
for name in ("maximum", "minimum", "fmax", "fmin", "atan2", "hypot", "copysign", "logaddexp", "logaddexp2"):
    each(name, PAIRS, lambda a, b, name=name: getattr(a, name)(b), lambda a, b, name=name: getattr(torch, name)(a, b))
    case(name, [LEFT, RIGHT], lambda a, b, name=name: getattr(a, name)(b), lambda a, b, name=name: getattr(torch, name)(a, b),
         gradient=False, label="edges")
    case(name, [(50,), (50,)], lambda a, b, name=name: getattr(a, name)(b), lambda a, b, name=name: getattr(torch, name)(a, b),
         dtype="float64", forward=1e-12, gradient=False)
for name, low in (("xlogy", 0.2), ("heaviside", -2)):
    each(name, PAIRS, lambda a, b, name=name: getattr(a, name)(b), lambda a, b, name=name: getattr(torch, name)(a, b), low=low,
         gradient=name == "xlogy")
    case(name, [LEFT, RIGHT], lambda a, b, name=name: getattr(a, name)(b), lambda a, b, name=name: getattr(torch, name)(a, b),
         gradient=False, label="edges")
each("pow", PAIRS, lambda a, b: a.pow(b), lambda a, b: torch.pow(a, b), low=0.2)
case("pow", [LEFT, RIGHT], lambda a, b: a.pow(b), lambda a, b: torch.pow(a, b), gradient=False, label="edges")
for exponent in (0, 1, 2, 3, 7, -1, -2, 0.5, 1.5, -0.5):
    case("pow", [(3, 5)], lambda a, e=exponent: a.pow(e), low=0.2)
    if exponent == int(exponent):
        case("pow", [(3, 5)], lambda a, e=exponent: a.pow(e), low=-2, high=-0.5)
for dtype in ("int32", "int64", "uint8", "int8", "int16"):
    low = 0 if dtype == "uint8" else -9
    whole = [numbers((40,), low, 9, dtype, 1), numbers((40,), 1, 9, dtype, 2)]
    signed = [whole[0], whole[1] * (1 if dtype == "uint8" else numbers((40,), 0, 2, dtype, 3) * 2 - 1).astype(dtype)] \
        if dtype != "uint8" else whole
    case("pow", whole, lambda a, b: a.pow(b))
    case("pow", [whole[0]], lambda a: a.pow(3))
    for name, theirs in (("fmod", torch.fmod), ("mod", torch.remainder), ("floor_divide", torch.floor_divide)):
        case(name, signed, lambda a, b, name=name: getattr(a, name)(b), theirs)
    for mode in (None, "trunc", "floor"):
        case("div", signed, lambda a, b, m=mode: a.div(b, m), lambda a, b, m=mode: torch.div(a, b, rounding_mode=m))
    for name in ("maximum", "minimum", "add", "mul", "bitwise_and", "bitwise_or", "bitwise_xor"):
        case(name, whole, lambda a, b, name=name: getattr(a, name)(b), lambda a, b, name=name: getattr(torch, name)(a, b))
    case("bitwise_not", whole[:1], lambda a: a.bitwise_not())
    for name in ("abs", "sign", "neg", "square"):
        case(name, whole[:1], lambda a, name=name: getattr(a, name)(), lambda a, name=name: getattr(torch, name)(a))
for name, theirs in (("fmod", torch.fmod), ("mod", torch.remainder)):
    case(name, [(4, 5), numbers((4, 5), 0.5, 2, seed=9)], lambda a, b, name=name: getattr(a, name)(b), theirs, low=-9, high=9)
    case(name, PLAIN, lambda a, b, name=name: getattr(a, name)(b), theirs, gradient=False)
for mode in (None, "trunc", "floor"):
    case("div", [(4, 5), numbers((4, 5), 0.5, 2, seed=9)], lambda a, b, m=mode: a.div(b, m),
         lambda a, b, m=mode: torch.div(a, b, rounding_mode=m), low=-9, high=9)
    case("div", PLAIN, lambda a, b, m=mode: a.div(b, m), lambda a, b, m=mode: torch.div(a, b, rounding_mode=m), gradient=False)
# Integers and bool beside floats, where constants that are no whole numbers are among them.
for dtype in ("int16", "uint8", "bool"):
    whole, real = numbers((3, 4), 0 if dtype == "uint8" else -3, 4, dtype, 5), numbers((3, 4), seed=6)
    for name in ("atan2", "hypot", "copysign"):
        for pair in ([whole, real], [real, whole]):
            case(name, pair, lambda a, b, name=name: getattr(a, name)(b), lambda a, b, name=name: getattr(torch, name)(a.to(b.dtype), b)
                 if b.is_floating_point() else getattr(torch, name)(a, b.to(a.dtype)), gradient=False)
    case("logaddexp", [whole, real], lambda a, b: a.logaddexp(b), lambda a, b: torch.logaddexp(a.to(b.dtype), b), gradient=False)
# Quotients of and by infinities, zeros and NaN, every one with every other.
ENDS = numpy.array([-1.5, 2.5, math.inf, -math.inf, math.nan, 7, -7, 3e38, 0.0], dtype="float32")
BY = numpy.array([math.inf, -math.inf, 0.0, -0.0, math.nan, 2, -2, 4], dtype="float32")
for name, theirs in (("floor_divide", torch.floor_divide), ("fmod", torch.fmod), ("mod", torch.remainder)):
    case(name, [ENDS[:, None], BY], lambda a, b, name=name: getattr(a, name)(b), theirs, gradient=False)
for mode in ("trunc", "floor"):
    case("div", [ENDS[:, None], BY], lambda a, b, m=mode: a.div(b, m), lambda a, b, m=mode: torch.div(a, b, rounding_mode=m),
         gradient=False)
refuses("div", [(3,), (3,)], lambda a, b: a.div(b, "up"), lambda a, b: torch.div(a, b, rounding_mode="up"))
for name in ("logical_and", "logical_or", "logical_xor", "eq", "ne", "lt", "le", "gt", "ge"):
    case(name, [LEFT, RIGHT], lambda a, b, name=name: getattr(a, name)(b), lambda a, b, name=name: getattr(torch, name)(a, b),
         gradient=False, label="edges")
    case(name, [(9,), (9,)], lambda a, b, name=name: getattr(a, name)(b), lambda a, b, name=name: getattr(torch, name)(a, b),
         dtype="bool")
case("bitwise_xor", [(9,), (9,)], lambda a, b: a.bitwise_xor(b), torch.bitwise_xor, dtype="bool")
for equal_nan in (False, True):
    case("isclose", [LEFT, RIGHT], lambda a, b, e=equal_nan: a.isclose(b, 0.1, 0.1, e),
         lambda a, b, e=equal_nan: torch.isclose(a, b, 0.1, 0.1, e), gradient=False)
each("lerp", [[(3, 4), (3, 4), (3, 4)], [(4,), (3, 4), (1,)]], lambda a, b, c: a.lerp(b, c), torch.lerp)
each("addcmul", [[(3, 4), (3, 4), (4,)]], lambda a, b, c: a.addcmul(b, c, 0.3), lambda a, b, c: torch.addcmul(a, b, c, value=0.3))
each("addcdiv", [[(3, 4), (3, 4), (4,)]], lambda a, b, c: a.addcdiv(b, c, 0.3), lambda a, b, c: torch.addcdiv(a, b, c, value=0.3),
     low=0.5)
for low, high in ((-0.5, 0.7), (None, 0.7), (-0.5, None), (1, -1)):
    case("clamp", [(5, 7)], lambda x, a=low, b=high: x.clamp(a, b))
    case("clamp", [EDGES], lambda x, a=low, b=high: x.clamp(a, b), gradient=False, label="edges")
each("clamp", [[(4, 5), (5,), (4, 1)]], lambda x, a, b: x.clamp(a, b))
case("clamp", [(9,)], lambda x: x.clamp(-1, 3), dtype="int32", low=-9, high=9)
refuses("clamp", [(3,)], lambda x: x.clamp())
case("clamp_min", [(4, 5), (5,)], lambda x, a: x.clamp_min(a))
case("clamp_max", [(4, 5), (5,)], lambda x, a: x.clamp_max(a))
case("masked_fill", [(4, 5), numbers((4, 5), dtype="bool")], lambda x, m: x.masked_fill(m, 3.5))
case("where", [numbers((4, 5), dtype="bool"), (4, 5), (5,)], lambda m, a, b: m.where(a, b), torch.where)
for name in ("float", "half", "int", "bool", "double", "long", "short"):
    case(name, [(3, 4)], lambda x, name=name: getattr(x, name)(), gradient=False)
    case(name, [numpy.arange(-3, 4)], lambda x, name=name: getattr(x, name)())
