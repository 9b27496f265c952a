# SPDX-License-Identifier: MIT
"""Gradients where functions have kinks, poles or ties, far out, and of what is empty or was overwritten."""
import math

import numpy
import torch
from torch.nn import functional

from harness import case, each, refuses

INF = math.inf


def array(*values):
    return numpy.array(values, dtype="float32")


SIZES = [0.125, 0.5, 1, 2, 3, 6, 20, 50, 88, 100, 1e4]
KINKS = array(0, -0.0, *SIZES, *[-x for x in SIZES])
NEAR = KINKS[numpy.abs(KINKS) < 89]

# ---- kinks, and far out ----
for name in ("abs", "sign", "relu", "relu6", "hardsigmoid", "hardswish", "sigmoid", "tanh", "logsigmoid", "silu", "selu", "mish",
             "softsign", "softplus", "leaky_relu", "elu", "celu", "hardtanh", "hardshrink", "softshrink", "floor", "round", "square"):
    case(name, [KINKS], lambda x, name=name: getattr(x, name)(), getattr(torch, name, None) or getattr(functional, name))
case("gelu", [KINKS], lambda x: x.gelu("tanh"), lambda x: functional.gelu(x, approximate="tanh"))
case("threshold", [KINKS], lambda x: x.threshold(0.5, 20), lambda x: functional.threshold(x, 0.5, 20))
for name in ("cosh", "sinh", "exp", "expm1"):
    case(name, [NEAR], lambda x, name=name: getattr(x, name)())
for name in ("sqrt", "rsqrt", "reciprocal", "log", "log2", "log1p"):
    case(name, [array(0, 1e-10, 1, 4, 1e30)], lambda x, name=name: getattr(x, name)())
case("logit", [array(0, 0.25, 1)], lambda x: x.logit(), torch.logit)
case("logit", [array(0, 0.125, 0.25, 0.875, 1)], lambda x: x.logit(0.125), lambda x: torch.logit(x, 0.125))

# ---- bounds ----
BOUNDS = [(-1, 1), (0, 6), (None, 1), (-1, None), (1, -1), (0, 0), (-0.5, 0.5), (-INF, INF), (0, None), (None, 0)]
for low, high in BOUNDS:
    case("clamp", [KINKS], lambda x, a=low, b=high: x.clamp(a, b))
each("clamp_min", [[KINKS, KINKS[::-1].copy()], [KINKS, KINKS]], lambda x, a: x.clamp_min(a))
each("clamp_max", [[KINKS, KINKS[::-1].copy()], [KINKS, KINKS]], lambda x, a: x.clamp_max(a))
case("clamp", [array(-2, -1, 0, 1, 2, 1), array(-1, -1, -1, -1, -1, 3), array(1, 1, 1, 1, 1, 2)], lambda x, a, b: x.clamp(a, b))
each("maximum", [[KINKS, KINKS], [array(1, 2, 3), array(1, 3, 2)]], lambda x, y: x.maximum(y), torch.maximum)
each("minimum", [[KINKS, KINKS], [array(1, 2, 3), array(1, 3, 2)]], lambda x, y: x.minimum(y), torch.minimum)

# ---- powers ----
SMALL = array(0, -0.0, 1, -1, 2, -2, 0.5, 3)
for exponent in (0, 1, 2, 3, 4, -1):
    case("pow", [SMALL], lambda x, e=exponent: x**e)
for exponent in (0.5, 0.25, 1.5, 2.5, -0.5):
    case("pow", [array(0, 1e-6, 1, 2)], lambda x, e=exponent: x**e)
for base in (0, 1, 0.5, 2):
    case("pow", [array(0, 1, 2, 0.5, 3, -1)], lambda x, b=base: b**x)
ZEROS = array(0, 0, 0, 0, 0, 0, 2, 2, 1)
case("pow", [ZEROS, array(0, 0.5, 1, 2, 3, 1.5, 0, -1, 0)], lambda x, y: x**y)
case("pow", [-ZEROS[:6], array(0, 0.5, 1, 2, 3, 1.5)], lambda x, y: x**y)
case("xlogy", [array(0, 0, 1, 2, 0), array(1, 2, 1, 3, 0.5)], lambda x, y: x.xlogy(y), torch.xlogy)
case("hypot", [array(0, 3, 0, 1), array(1, 4, 2, 0)], lambda x, y: x.hypot(y), torch.hypot)

# ---- rows that are equal, or 0 ----
ROWS = [array([1, 1, 1, 1]), array([0, 0, 0, 0]), array([0, 1, 0, 2]), array([3, 3, 1, 3]), array([[0, 0], [1, 2], [5, 5]])]
for name in ("std", "var", "mean", "logsumexp", "prod", "cumprod"):
    each(name, ROWS, lambda x, name=name: getattr(x, name)(-1))
each("std", ROWS, lambda x: x.std(-1, correction=0), lambda x: x.std(-1, unbiased=False))
each("std_mean", ROWS, lambda x: x.std_mean(-1)[0], lambda x: torch.std_mean(x, -1)[0])
for p in (0, 1, 2, 3, 4, 1.5, 0.5, -1, INF, -INF):
    each("norm", ROWS, lambda x, p=p: x.norm(p, -1), lambda x, p=p: torch.linalg.vector_norm(x, p, -1))
each("normalize", ROWS, lambda x: x.normalize(2, -1), lambda x: functional.normalize(x, 2, -1))
for name in ("max", "min"):
    each(name, ROWS, lambda x, name=name: getattr(x, name)(), lambda x, name=name: getattr(x, name)())
    each(name, ROWS, lambda x, name=name: getattr(x, name)(-1), lambda x, name=name: getattr(x, "a" + name)(-1))
for name in ("cummax", "cummin"):
    each(name, ROWS, lambda x, name=name: getattr(x, name)(-1)[0])

# ---- of equals in a window the first ----
TIES = [numpy.zeros((1, 1, 4, 4), "float32"), numpy.arange(16, dtype="float32").reshape(1, 1, 4, 4) // 3 - 2,
        numpy.arange(50, dtype="float32").reshape(1, 2, 5, 5) % 4]
for options in ((2, 2), (3, 1, 1), (3, 2), (2, 1, 0, 2)):
    each("max_pool2d", TIES, lambda x, o=options: x.max_pool2d(*o), lambda x, o=options: functional.max_pool2d(x, *o))
    each("max_pool2d_with_indices", TIES, lambda x, o=options: x.max_pool2d_with_indices(*o)[0],
         lambda x, o=options: functional.max_pool2d(x, *o))
each("max_pool1d", [x[0] for x in TIES], lambda x: x.max_pool1d(2), lambda x: functional.max_pool1d(x, 2))
each("max_pool3d", [x[None] for x in TIES], lambda x: x.max_pool3d((1, 2, 2)), lambda x: functional.max_pool3d(x, (1, 2, 2)))
for size in (1, 2, 3):
    each("adaptive_max_pool2d", TIES, lambda x, s=size: x.adaptive_max_pool2d(s),
         lambda x, s=size: functional.adaptive_max_pool2d(x, s))

# ---- losses ----
SURE = array(0, 0, 1, 1, 0.5, 0.5, 1e-10, 1e-10, 0, 1, 0.25)
WANTED = array(0, 1, 0, 1, 0, 1, 0, 1, 0.5, 0.5, 0.25)
for reduction in ("mean", "none"):
    case("binary_cross_entropy", [SURE[4:6], WANTED[4:6]], lambda x, y, r=reduction: x.binary_crossentropy(y, reduction=r),
         lambda x, y, r=reduction: functional.binary_cross_entropy(x, y, reduction=r))
    case("binary_cross_entropy", [SURE], lambda x, r=reduction: x.binary_crossentropy(type(x)(WANTED), reduction=r),
         lambda x, r=reduction: functional.binary_cross_entropy(x, torch.from_numpy(WANTED).to(x.dtype), reduction=r))
    for name, ours in (("binary_cross_entropy_with_logits", "binary_crossentropy_logits"), ("l1_loss", "l1_loss"), ("mse_loss", "mse_loss"),
                       ("smooth_l1_loss", "smooth_l1_loss"), ("huber_loss", "huber_loss")):
        case(name, [KINKS, numpy.resize(WANTED, KINKS.shape)], lambda x, y, o=ours, r=reduction: getattr(x, o)(y, reduction=r),
             lambda x, y, n=name, r=reduction: getattr(functional, n)(x, y, reduction=r))
SIGNS = numpy.where(KINKS >= 0, 1, -1).astype("float32")
each("hinge_embedding_loss", [[KINKS, -numpy.ones_like(KINKS)], [KINKS, SIGNS]], lambda x, y: x.hinge_embedding_loss(y.detach()),
     lambda x, y: functional.hinge_embedding_loss(x, y.detach()))
each("margin_ranking_loss", [[KINKS, KINKS, SIGNS], [NEAR, NEAR - 1, SIGNS[:len(NEAR)]]],
     lambda x, y, z: x.margin_ranking_loss(y, z.detach(), 1), lambda x, y, z: functional.margin_ranking_loss(x, y, z.detach(), 1))
case("margin_ranking_loss", [KINKS, KINKS, SIGNS], lambda x, y, z: x.margin_ranking_loss(y, z.detach()),
     lambda x, y, z: functional.margin_ranking_loss(x, y, z.detach()))
case("gaussian_nll_loss", [array(0, 1, 2, -1), array(0, 0, 1, 1), array(1, 1e-7, 0, 2)], lambda x, y, v: x.gaussian_nll_loss(y, v),
     functional.gaussian_nll_loss, backward=1e-3)  # 1e-6 as f32 is 6e-9 off

# ---- what a choice keeps away ----
SIGNED = array(-1, 0, 1, 4)
case("where", [SIGNED], lambda x: (x > 0).where(x.sqrt(), 0), lambda x: torch.where(x > 0, x.sqrt(), torch.zeros_like(x)))
case("where", [SIGNED], lambda x: (x > 0).where((x > 0).where(x, 1).log(), 0),
     lambda x: torch.where(x > 0, torch.where(x > 0, x, torch.ones_like(x)).log(), torch.zeros_like(x)))
case("masked_fill", [SIGNED], lambda x: x.sqrt().masked_fill(x <= 0, 0))

# ---- nothing is selected ----
PAIR = array(1, 2)
for name, ours, theirs in (
        ("slice", lambda x: x[2:], None),
        ("mask", lambda x: x[x > 5], None),
        ("positions", lambda x: x[(x > 5).nonzero()[:, 0]], None),
        ("columns", lambda x: x.reshape(2, 1)[:, 1:].flatten(), None),
        ("part of an expression", lambda x: (x[2:] * 3).exp(), None),
        ("sum", lambda x: x[2:].sum(), None),
        ("prod", lambda x: x[2:].prod(), None),
        ("mean", lambda x: x[2:].mean(), None),
        ("rows of nothing", lambda x: x[2:].reshape(3, 0).sum(1), None),
        ("matrices", lambda x: x[2:].reshape(0, 2) @ x.reshape(2, 1), None),
        ("sum of no products", lambda x: x[2:].reshape(2, 0) @ x[2:].reshape(0, 3), None),
        ("softmax", lambda x: x[2:].softmax(0), None),
        ("norm", lambda x: x[2:].norm(), None),
        ("sort", lambda x: x[2:].sort()[0], None),
        ("pad", lambda x: x[2:].pad((1, 1)), lambda x: functional.pad(x[2:], (1, 1))),
        ("images", lambda x: x.reshape(1, 2, 1, 1)[1:].max_pool2d(1), lambda x: functional.max_pool2d(x.reshape(1, 2, 1, 1)[1:], 1)),
        ("convolution", lambda x: x.reshape(2, 1, 1, 1)[2:].conv2d(x.reshape(2, 1, 1, 1)),
         lambda x: functional.conv2d(x.reshape(2, 1, 1, 1)[2:], x.reshape(2, 1, 1, 1))),
        ("mse_loss", lambda x: x[2:].mse_loss(x[2:] * 2, reduction="sum"), lambda x: functional.mse_loss(x[2:], x[2:] * 2, reduction="sum")),
):
    case("getitem", [PAIR], ours, theirs, label=f"empty: {name}")


def known(x, *facts):
    """The facts, as a result beside one with a gradient."""
    return [x * 1] + [x.detach() * 0 + (1 if fact else 2) for fact in facts]


def of_empty(x):
    none = x[2:]
    return known(x, none.requires_grad, none.detach().requires_grad, (none > 0).requires_grad, none.detach().sum().requires_grad,
                 none.is_leaf)


def of_empty_leaf(x):
    leaf, other = x.detach()[2:].clone().requires_grad_(), x.detach()[2:].clone()
    third = x.detach()[2:].clone().requires_grad_()
    ((leaf * 2).sum() + x.sum()).backward()
    return known(x, leaf.requires_grad, other.requires_grad, (other * 2).requires_grad, leaf.grad is not None, third.grad is None)


case("getitem", [PAIR], of_empty, label="whether what is empty requires gradients")
case("getitem", [PAIR], of_empty_leaf, label="leaves without elements", gradient=False)


# ---- leaves that are gone ----
def without_leaf(x, reads):
    leaf = x.detach().clone().requires_grad_()
    alias, result = leaf.detach(), leaf * 2
    if reads:
        result.tolist()
    del leaf
    result.sum().backward()
    result.tolist()
    return known(x, result.requires_grad, result.is_leaf, (result * 2).requires_grad, result.detach().requires_grad,
                 alias.requires_grad, (alias * 2).requires_grad)


def without_one(x):
    leaf = x.detach().exp().requires_grad_()
    result = x * leaf
    del leaf
    return result


for reads in (False, True):
    case("mul", [PAIR], lambda x, r=reads: without_leaf(x, r), label=f"a leaf that is gone, {'read' if reads else 'not read'} before")
case("mul", [PAIR], without_one, label="one of two leaves is gone")


# ---- what was overwritten ----
def overwritten(x, write, reads=False):
    result = x * 2
    if reads:
        result.tolist()
    write(result)
    return [result, *known(x, result.requires_grad)]


def fill(x):
    x[:] = 3.0


def fill_part(x):
    x[0] = 3.0


def fill_twice(x):
    x[:] = 3.0
    x[:] = 4.0


def fill_view(x):
    part = x[:]
    part[:] = 3.0


def fill_all_parts(x):
    x[0] = 3.0
    x[1] = 4.0


for write in (fill, fill_part, fill_twice, fill_view, fill_all_parts):
    for reads in (False, True):
        case("setitem", [PAIR], lambda x, w=write, r=reads: overwritten(x, w, r), label=f"{write.__name__}{', read' if reads else ''}")
for name, write in (("fill_", lambda x: x.fill_(3.0)), ("zero_", lambda x: x.zero_()), ("mul_", lambda x: x.mul_(0.0))):
    case(name, [PAIR], lambda x, w=write: overwritten(x, w))


# ---- leaves that were assigned to since ----
def assigned_since(x, y, reads, write, again):
    left, right = (t.detach().clone().requires_grad_() for t in (x, y))
    alias = left.detach() if reads is None else None
    loss = (left * right).sum()
    if reads:
        loss.item()
    # Not within no_grad (), which both libraries have by other names.
    write(left.detach() if torch.is_tensor(left) else left)
    if again:
        loss = loss + (left * 3).sum()
    loss.backward()
    return [left.grad, right.grad, alias]


for label, write in (("all", lambda x: x.add_(1.0)), ("a part", lambda x: x[:1].add_(1.0)), ("twice", lambda x: x.add_(1.0).add_(1.0))):
    for again in (False, True):
        for reads, how in ((False, "not read"), (True, "read"), (None, "memory shared")):
            refuses("add", [PAIR, PAIR], lambda x, y, r=reads, w=write, a=again: assigned_since(x, y, r, w, a),
                    label=f"one of two leaves was assigned to since, {label}, {how}{', used after' if again else ''}")

# ---- what has no axes takes those of a line of one ----
POINT = numpy.array(3.0, dtype="float32")
for axis in (0, -1):
    for name in ("sum", "mean", "prod", "amax", "amin", "logsumexp", "cumsum", "cumprod", "logcumsumexp", "softmax"):
        case(name if name[0] != "a" else name[1:], [POINT], lambda x, name=name, a=axis: getattr(x, name)(a))
    for name in ("sort", "cummax", "cummin", "median", "mode"):
        case(name, [POINT], lambda x, name=name, a=axis: getattr(x, name)(a), same_dtype=False, gradient=name != "mode")
    for name in ("all", "any", "argmax", "argmin", "argsort", "var", "std", "log_softmax", "flip", "squeeze", "unsqueeze"):
        case(name, [POINT], lambda x, name=name, a=axis: getattr(x, name)(a), same_dtype=False, gradient=False)
    case("sum", [POINT], lambda x, a=axis: x.sum(a, keepdim=True))
    case("topk", [POINT], lambda x, a=axis: x.topk(1, a), same_dtype=False)
    case("kthvalue", [POINT], lambda x, a=axis: x.kthvalue(1, a), same_dtype=False)
    case("gather", [POINT, numpy.array(0)], lambda x, i, a=axis: x.gather(a, i))
    case("scatter", [POINT, numpy.array(0), POINT - POINT], lambda x, i, y, a=axis: x.scatter(a, i, y))
for axis in (1, -2):
    for name in ("sum", "cumsum", "softmax", "sort", "squeeze"):
        refuses(name, [POINT], lambda x, name=name, a=axis: getattr(x, name)(a))

refuses("expand", [(3,)], lambda x: x.expand(-1, 3))
refuses("expand", [numpy.array(2.0)], lambda x: x.expand(-1))
# PyTorch refuses what is not finite, which it reads, and counts NaN with the first.
each("histc", [[array(1, INF, 2)], [array(1, math.nan, 2)]], lambda x: x.histc(3), lambda x: x[:1].expand(3) * math.nan, gradient=False)
case("histc", [array(1, math.nan, 2)], lambda x: x.histc(3, 0, 3), lambda x: x[::2].histc(3, 0, 3), gradient=False)
