# SPDX-License-Identifier: MIT
"""Operations at sizes that programs have, for bench/operations: name, inputs, the function here and in PyTorch.

An input is a shape (f32 from -1 to 1), integers (high, shape), or a function of NumPy's random state. A name is
that of a row of operations.pyi, with what it is about behind a colon where there are several."""
import typing

import numpy
import tinycore.nn.functional as ours
import torch
import torch.nn.functional as F

LONG, SQUARE = (1_000_000,), (1024, 1024)
IMAGES = (8, 64, 56, 56)


class Case(typing.NamedTuple):
  name: str
  inputs: list
  ours: object
  theirs: object


class Integers(typing.NamedTuple):
  high: int
  shape: tuple


CASES = []


def case(name, inputs, ours, theirs=None):
  CASES.append(Case(name, inputs, ours, theirs or ours))


def each(names, inputs, *args):
  """Methods of these names, which PyTorch has as well."""
  for name in names.split():
    case(name, inputs, lambda x, *rest, n=name: getattr(x, n)(*rest, *args))


def positive(shape):
  return lambda random: random.uniform(0.1, 0.9, shape).astype("float32")


def near_one(shape):
  return lambda random: random.uniform(0.97, 1.03, shape).astype("float32")


def true_or_false(shape):
  return lambda random: random.rand(*shape) < 0.5


def ordered(shape):
  return lambda random: numpy.sort(random.uniform(-1, 1, shape).astype("float32"))


def definite(n):
  def make(random):
    x = random.uniform(-1, 1, (n, n))
    return (x @ x.T / n + numpy.eye(n)).astype("float32")
  return make


def in_training(function):
  def run(x):
    with type(x).train():
      return function(x)
  return run


def make(given, random):
  if callable(given):
    return given(random)
  if isinstance(given, Integers):
    return random.randint(0, given.high, given.shape)
  return random.uniform(-1, 1, given).astype("float32")


# ---- one element by another ----
each("add sub mul div maximum minimum fmod fmax fmin copysign hypot logaddexp atan2 floor_divide eq lt", [LONG, LONG])
each("neg abs sign square reciprocal floor ceil round trunc frac exp exp2 expm1 sin cos tan atan sinh cosh tanh asinh erf erfc sinc isnan isinf "
     "isfinite signbit relu sigmoid erfinv", [LONG])
each("sqrt rsqrt log log2 log10 log1p logit asin acos atanh lgamma digamma", [positive(LONG)])
each("acosh", [lambda random: random.uniform(1, 5, LONG).astype("float32")])
each("pow", [positive(LONG), LONG])
each("clamp", [LONG], -0.5, 0.5)
each("lerp addcmul addcdiv", [LONG, LONG, positive(LONG)])
each("nan_to_num", [LONG])
each("isclose", [LONG, LONG])
each("logical_and", [true_or_false(LONG)] * 2)
each("bitwise_and bitwise_xor", [Integers(1000, LONG)] * 2)
case("where", [true_or_false(LONG), LONG, LONG], lambda m, x, y: m.where(x, y), torch.where)
each("masked_fill", [LONG, true_or_false(LONG)], 2.0)
for name in ("relu6 hardtanh hardsigmoid hardswish leaky_relu elu celu selu logsigmoid softplus mish softsign gelu silu hardshrink softshrink"
             .split()):
  case(name, [LONG], lambda x, n=name: getattr(x, n)(), getattr(F, name))
case("glu", [SQUARE], lambda x: x.glu(), F.glu)
case("cast", [LONG], lambda x: x.half())
case("cast:int", [LONG], lambda x: x.int())

# ---- reductions and scans ----
for axis, inside in (None, ""), (0, ":columns"), (1, ":rows"):
  args = () if axis is None else (axis,)
  case("prod" + inside, [near_one(SQUARE)], lambda x, a=args: x.prod(*a))  # no product becomes subnormal
  for name in "sum mean var std argmax argmin logsumexp amax".split():
    if (name, axis) in (("logsumexp", None),):
      continue
    here = {"amax": "max"}.get(name, name)
    case(here + inside, [SQUARE], lambda x, n=here, a=args: getattr(x, n)(*a), lambda x, n=name, a=args: getattr(x, n)(*a))
  case("any" + inside, [lambda random: random.rand(*SQUARE) < 0], lambda x, a=args: x.any(*a))
  case("norm" + inside, [SQUARE], lambda x, a=args: x.norm(2, *a), lambda x, a=args: x.norm(2, *a))
each("count_nonzero nansum", [SQUARE], 1)
case("aminmax", [SQUARE], lambda x: x.aminmax(1), lambda x: x.aminmax(dim=1))
case("median", [SQUARE], lambda x: x.median(1))
for axis, inside in (0, ":columns"), (1, ":rows"):
  each("cumsum cumprod cummax logcumsumexp", [SQUARE], axis)
  for i in range(4):
    CASES[-1 - i] = CASES[-1 - i]._replace(name=CASES[-1 - i].name + inside)
each("cumsum", [LONG], 0)
each("diff", [LONG])

# ---- movement ----
case("transpose", [SQUARE], lambda x: x.T.contiguous())
case("permute", [IMAGES], lambda x: x.permute(0, 2, 3, 1).contiguous())
case("pad", [IMAGES], lambda x: x.pad((1, 1, 1, 1)), lambda x: F.pad(x, (1, 1, 1, 1)))
case("pad:reflect", [IMAGES], lambda x: x.pad((1, 1, 1, 1), mode="reflect"), lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"))
case("flip", [SQUARE], lambda x: x.flip((0, 1)))
case("roll", [SQUARE], lambda x: x.roll((3, 5), (0, 1)))
case("repeat", [SQUARE], lambda x: x.repeat((2, 2)))
case("repeat_interleave", [SQUARE], lambda x: x.repeat_interleave(3, 1))
case("cat", [SQUARE, SQUARE], lambda x, y: type(x).cat(x, y, dim=1), lambda x, y: torch.cat((x, y), 1))
case("stack", [SQUARE, SQUARE], lambda x, y: type(x).stack(x, y, dim=1), lambda x, y: torch.stack((x, y), 1))
case("unfold", [LONG], lambda x: x.unfold(0, 4, 1).contiguous())
each("triu tril", [SQUARE])
case("diagonal", [SQUARE], lambda x: x.diagonal().contiguous())
case("rot90", [SQUARE], lambda x: x.rot90().contiguous())

# ---- positions that are data ----
case("gather", [SQUARE, Integers(1024, SQUARE)], lambda x, i: x.gather(1, i))
case("index_select", [(32000, 256), Integers(32000, (4096,))], lambda x, i: x.index_select(0, i))
case("take", [LONG, Integers(1_000_000, (100_000,))], lambda x, i: x.take(i))
case("index", [(32000, 256), Integers(32000, (4096,))], lambda x, i: x[i])
case("scatter", [SQUARE, Integers(1024, SQUARE), SQUARE], lambda x, i, s: x.scatter(1, i, s))
case("scatter:1d", [LONG, Integers(1_000_000, (100_000,)), (100_000,)], lambda x, i, s: x.scatter(0, i, s))
case("scatter_add", [SQUARE, Integers(1024, SQUARE), SQUARE], lambda x, i, s: x.scatter_add(1, i, s))
case("scatter_add:1d", [LONG, Integers(1_000_000, (100_000,)), (100_000,)], lambda x, i, s: x.scatter_add(0, i, s))
for reduce in "prod", "mean", "amax", "amin":
  case("scatter_reduce:" + reduce, [(10_000,), Integers(10_000, (100_000,)), (100_000,)],
       lambda x, i, s, r=reduce: x.scatter_reduce(0, i, s, r))
case("scatter_reduce:rows", [(1024, 256), Integers(1024, (1024, 256)), (1024, 256)], lambda x, i, s: x.scatter_reduce(0, i, s, "amax"))
case("index_add", [(4096, 256), Integers(4096, (4096,)), (4096, 256)], lambda x, i, s: x.index_add(0, i, s))
case("index_add:1d", [(10_000,), Integers(10_000, (100_000,)), (100_000,)], lambda x, i, s: x.index_add(0, i, s))
case("index_add:columns", [(256, 4096), Integers(4096, (4096,)), (256, 4096)], lambda x, i, s: x.index_add(1, i, s))
case("index_copy", [(4096, 256), Integers(4096, (4096,)), (4096, 256)], lambda x, i, s: x.index_copy(0, i, s))
case("index_fill", [(4096, 256), Integers(4096, (1000,))], lambda x, i: x.index_fill(0, i, 3.0))
case("index_put", [(4096, 256), Integers(4096, (1000,)), (1000, 256)], lambda x, i, v: x.index_put((i,), v))
case("masked_select", [LONG, true_or_false(LONG)], lambda x, m: x.masked_select(m))
case("masked_scatter", [LONG, true_or_false(LONG), LONG], lambda x, m, s: x.masked_scatter(m, s))
case("nonzero", [true_or_false(LONG)], lambda x: x.nonzero())
case("bincount", [Integers(1000, LONG)], lambda x: x.bincount())
case("histc", [LONG], lambda x: x.histc(100, -1, 1))
case("unique", [Integers(1000, LONG)], lambda x: x.unique())
case("unique:100000", [Integers(100_000, (100_000,))], lambda x: x.unique())
case("unique_consecutive", [lambda random: numpy.sort(random.randint(0, 1000, LONG))], lambda x: x.unique_consecutive())
case("one_hot", [Integers(1000, (1024,))], lambda x: x.one_hot(1000), lambda x: F.one_hot(x, 1000))

# ---- sorting ----
for shape in LONG, (1000, 1000), (100, 10_000), (64, 50):
  label = ":" + "x".join(map(str, shape))
  case("sort" + label, [shape], lambda x: x.sort())
  case("argsort" + label, [shape], lambda x: x.argsort())
case("sort:columns", [(1000, 1000)], lambda x: x.sort(0))
case("sort:int", [Integers(1_000_000, LONG)], lambda x: x.sort())
for shape, k in (LONG, 10), ((64, 50_000), 50), ((1000, 1000), 5):
  case("topk:" + "x".join(map(str, shape)), [shape], lambda x, k=k: x.topk(k))
case("kthvalue", [(100, 10_000)], lambda x: x.kthvalue(500))
case("searchsorted", [ordered(LONG), (100_000,)], lambda x, v: x.searchsorted(v), torch.searchsorted)
case("bucketize", [LONG, ordered((100,))], lambda x, b: x.bucketize(b), torch.bucketize)
case("isin", [Integers(10_000, LONG), Integers(10_000, (1000,))], lambda x, y: x.isin(y), torch.isin)
case("multinomial", [positive((64, 1000))], lambda x: x.multinomial(10, True))
case("randperm", [(1,)], lambda x: type(x).randperm(100_000), lambda x: torch.randperm(100_000))
case("rand", [(1,)], lambda x: type(x).rand(1_000_000), lambda x: torch.rand(1_000_000))
case("randn", [(1,)], lambda x: type(x).randn(1_000_000), lambda x: torch.randn(1_000_000))

# ---- products ----
each("matmul", [(512, 512), (512, 512)])
each("matmul", [(2, 3), (3, 2)])
CASES[-1] = CASES[-1]._replace(name="matmul:tiny")
each("mv", [SQUARE, (1024,)])
each("bmm", [(64, 128, 64), (64, 64, 128)])
each("outer", [(1024,), (1024,)])
each("dot", [LONG, LONG])
each("kron", [(32, 32), (32, 32)])
case("einsum", [(16, 8, 128, 64), (16, 8, 128, 64)], lambda x, y: type(x).einsum("bhqd,bhkd->bhqk", x, y),
     lambda x, y: torch.einsum("bhqd,bhkd->bhqk", x, y))
case("einsum:three", [(64, 64), (64, 64), (64, 64)], lambda x, y, z: type(x).einsum("ij,jk,kl->il", x, y, z),
     lambda x, y, z: torch.einsum("ij,jk,kl->il", x, y, z))
case("cross", [(100_000, 3), (100_000, 3)], lambda x, y: x.cross(y), lambda x, y: torch.cross(x, y, dim=-1))
case("linear", [(128, 768), (3072, 768), (3072,)], ours.linear, F.linear)

# ---- networks ----
case("conv1d", [(16, 64, 1000), (64, 64, 3)], lambda x, w: x.conv1d(w, padding=1), lambda x, w: F.conv1d(x, w, padding=1))
case("conv2d", [IMAGES, (64, 64, 3, 3)], lambda x, w: x.conv2d(w, padding=1), lambda x, w: F.conv2d(x, w, padding=1))
case("conv2d:stride", [IMAGES, (128, 64, 3, 3)], lambda x, w: x.conv2d(w, stride=2, padding=1), lambda x, w: F.conv2d(x, w, stride=2, padding=1))
case("conv2d:groups", [IMAGES, (64, 8, 3, 3)], lambda x, w: x.conv2d(w, padding=1, groups=8), lambda x, w: F.conv2d(x, w, padding=1, groups=8))
case("conv2d:1x1", [IMAGES, (64, 64, 1, 1)], lambda x, w: x.conv2d(w), F.conv2d)
case("conv3d", [(2, 16, 16, 28, 28), (16, 16, 3, 3, 3)], lambda x, w: x.conv3d(w, padding=1), lambda x, w: F.conv3d(x, w, padding=1))
case("conv_transpose2d", [(8, 64, 28, 28), (64, 32, 4, 4)], lambda x, w: x.conv_transpose2d(w, stride=2, padding=1),
     lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1))
for kind in "max_pool2d", "avg_pool2d":
  case(kind, [IMAGES], lambda x, k=kind: getattr(x, k)(2), lambda x, k=kind: getattr(F, k)(x, 2))
  case(kind + ":3", [IMAGES], lambda x, k=kind: getattr(x, k)(3, stride=2, padding=1),
       lambda x, k=kind: getattr(F, k)(x, 3, stride=2, padding=1))
case("max_pool1d", [(16, 64, 1000)], lambda x: x.max_pool1d(2), lambda x: F.max_pool1d(x, 2))
case("max_pool2d_with_indices", [IMAGES], lambda x: x.max_pool2d(2, return_indices=True), lambda x: F.max_pool2d(x, 2, return_indices=True))
case("max_unpool2d", [(8, 64, 28, 28)], lambda x: (lambda v, i: v.max_unpool2d(i, 2))(*x.max_pool2d(2, return_indices=True)),
     lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2))
case("adaptive_avg_pool2d", [IMAGES], lambda x: x.adaptive_avg_pool2d((7, 7)), lambda x: F.adaptive_avg_pool2d(x, (7, 7)))
case("adaptive_max_pool2d", [IMAGES], lambda x: x.adaptive_max_pool2d((5, 5)), lambda x: F.adaptive_max_pool2d(x, (5, 5)))
for mode, more in ("nearest", {}), ("bilinear", {"align_corners": False}):
  case("interpolate:" + mode, [IMAGES], lambda x, m=mode: x.interpolate(scale_factor=(2, 2), mode=m),
       lambda x, m=mode, more=more: F.interpolate(x, scale_factor=2, mode=m, **more))
each("softmax log_softmax", [SQUARE], 1)
case("softmax:columns", [SQUARE], lambda x: x.softmax(0))
CHANNELS = (64,)
case("batch_norm", [IMAGES, CHANNELS, CHANNELS], lambda x, w, b: x.batch_norm(None, None, w, b, training=True),
     lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True))
case("instance_norm", [IMAGES], lambda x: x.instance_norm(), F.instance_norm)
case("group_norm", [IMAGES], lambda x: x.group_norm(8), lambda x: F.group_norm(x, 8))
case("layer_norm", [(1024, 768), (768,), (768,)], lambda x, w, b: x.layer_norm((768,), w, b), lambda x, w, b: F.layer_norm(x, (768,), w, b))
case("local_response_norm", [IMAGES], lambda x: x.local_response_norm(5), lambda x: F.local_response_norm(x, 5))
case("normalize", [SQUARE], lambda x: x.normalize(), F.normalize)
case("scaled_dot_product_attention", [(2, 8, 256, 64)] * 3, lambda q, k, v: q.scaled_dot_product_attention(k, v),
     lambda q, k, v: F.softmax(q @ k.transpose(-1, -2) / 8, -1) @ v)
case("dropout", [LONG], in_training(lambda x: x.dropout(0.5)), lambda x: F.dropout(x, 0.5, True))
case("cross_entropy", [(1024, 1000), Integers(1000, (1024,))], lambda x, y: x.cross_entropy(y), F.cross_entropy)
case("nll_loss", [(1024, 1000), Integers(1000, (1024,))], lambda x, y: x.nll_loss(y), F.nll_loss)
for name in "mse_loss l1_loss smooth_l1_loss huber_loss kl_div soft_margin_loss poisson_nll_loss".split():
  case(name, [LONG, LONG], lambda x, y, n=name: getattr(x, n)(y, reduction="mean"), lambda x, y, n=name: getattr(F, n)(x, y, reduction="mean"))
case("binary_crossentropy", [positive(LONG), positive(LONG)], lambda x, y: x.binary_crossentropy(y), F.binary_cross_entropy)
case("binary_crossentropy_logits", [LONG, positive(LONG)], lambda x, y: x.binary_crossentropy_logits(y), F.binary_cross_entropy_with_logits)
case("cosine_similarity", [SQUARE, SQUARE], lambda x, y: x.cosine_similarity(y), F.cosine_similarity)
case("triplet_margin_loss", [SQUARE] * 3, lambda x, y, z: x.triplet_margin_loss(y, z), F.triplet_margin_loss)

# ---- linear algebra, Fourier ----
SMALL = (100, 100)
case("cholesky", [definite(200)], lambda x: x.cholesky(), torch.linalg.cholesky)
case("cholesky:batch", [lambda random: numpy.stack([definite(8)(random) for _ in range(256)])], lambda x: x.cholesky(), torch.linalg.cholesky)
case("solve", [definite(200), (200, 10)], lambda x, y: x.solve(y), torch.linalg.solve)
case("solve_triangular", [definite(200), (200, 10)], lambda x, y: x.solve_triangular(y, False),
     lambda x, y: torch.linalg.solve_triangular(x, y, upper=False))
case("inv", [definite(200)], lambda x: x.inv(), torch.linalg.inv)
case("inv:batch", [lambda random: numpy.stack([definite(4)(random) for _ in range(1000)])], lambda x: x.inv(), torch.linalg.inv)
case("det", [definite(100)], lambda x: x.det(), torch.linalg.det)
case("slogdet", [definite(100)], lambda x: x.slogdet(), torch.linalg.slogdet)
case("qr", [SMALL], lambda x: x.qr(), torch.linalg.qr)
case("svd", [SMALL], lambda x: x.svd(), torch.linalg.svd)
case("svd:tall", [(1000, 20)], lambda x: x.svd(full_matrices=False), lambda x: torch.linalg.svd(x, full_matrices=False))
case("lstsq", [(1000, 20), (1000, 1)], lambda x, y: x.lstsq(y), lambda x, y: torch.linalg.lstsq(x, y).solution)
case("matrix_power", [SMALL], lambda x: x.matrix_power(5))


def complex_parts(x):
  return torch.view_as_real(x)


for shape in (256, 1024), (1, 65_536), (16, 1000):
  label = ":" + "x".join(map(str, shape))
  case("rfft" + label, [shape], lambda x: x.rfft(), lambda x: complex_parts(torch.fft.rfft(x)))
case("fft", [(256, 1024, 2)], lambda x: x.fft(), lambda x: complex_parts(torch.fft.fft(torch.view_as_complex(x))))
