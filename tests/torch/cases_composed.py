# SPDX-License-Identifier: MIT
"""What PyTorch has and Python makes of the table's rows: further methods, functions, linalg, fft, special."""
import itertools
import math
from operator import attrgetter

import numpy
import tinycore
import torch
from tinycore import Tensor

from harness import case, each, numbers, refuses

INF, NAN = math.inf, math.nan
HOLES = numpy.array([[3.0, NAN, 1, 2, NAN], [NAN, NAN, NAN, NAN, 4], [5, 1, 1, 0, 2], [2, INF, -INF, NAN, 0]], "float32")
MATRIX, SQUARE = (4, 5), (4, 4)


def method(name, inputs, *arguments, **options):
    """A method, which is a function of the same name there as well as here."""
    theirs = options.pop("theirs", None) or (lambda x, *rest: getattr(torch, name)(x, *rest, *arguments))
    case(name, inputs, lambda x, *rest: getattr(x, name)(*rest, *arguments), theirs, **options)


def function(name, inputs, module="", **options):
    """A function of tensors of a module, under one name in both."""
    of = attrgetter(f"{module}.{name}".strip("."))
    label = options.pop("label", "")
    more, extra = options.pop("more", {}), options.pop("extra", ())
    case(f"{module}.{name}".strip("."), inputs, lambda *x: of(tinycore)(*x, *extra, **more), lambda *x: of(torch)(*x, *extra, **more),
         label=label or f"{inputs} {extra} {more}", **options)


# ---- statistics ----
for q, dim, keepdim in itertools.product((0.3, [0.0, 0.45, 1.0]), (None, 0, -1), (False, True)):
    for name in ("quantile", "nanquantile"):
        case(name, [MATRIX], lambda x, n=name, q=q, d=dim, k=keepdim: getattr(x, n)(q, d, k),
             lambda x, n=name, q=q, d=dim, k=keepdim: getattr(torch, n)(x, torch.tensor(q, dtype=x.dtype), d, k))
for kind in ("linear", "lower", "higher", "midpoint", "nearest"):
    for name in ("quantile", "nanquantile"):
        case(name, [HOLES[:3]], lambda x, n=name, k=kind: getattr(x, n)(0.5, 1, interpolation=k),
             lambda x, n=name, k=kind: getattr(torch, n)(x, 0.5, 1, interpolation=k), gradient=False, label=kind)
refuses("quantile", [(0,)], lambda x: x.quantile(0.5), lambda x: torch.quantile(x, 0.5))
refuses("quantile", [(3,)], lambda x: x.quantile(0.5, interpolation="cubic"), lambda x: torch.quantile(x, 0.5, interpolation="cubic"))
refuses("quantile", [numpy.arange(3)], lambda x: x.quantile(0.5), lambda x: torch.quantile(x, 0.5))
case("nanmedian", [HOLES], lambda x: x.nanmedian(), torch.nanmedian, gradient=False)
for dim, keepdim in itertools.product((0, 1), (False, True)):
    case("nanmedian", [HOLES], lambda x, d=dim, k=keepdim: x.nanmedian(d, k).values, lambda x, d=dim, k=keepdim: torch.nanmedian(x, d, k).values, gradient=False)
    case("mode", [numbers((5, 6), 0, 3, "int32")], lambda x, d=dim, k=keepdim: x.mode(d, k), lambda x, d=dim, k=keepdim: torch.mode(x, d, k), same_dtype=False)
case("mode", [numbers((3, 9), 0, 3, "int32").astype("float32")], lambda x: x.mode().values, lambda x: torch.mode(x).values)
for shape in ((4, 7), (6,), (1, 5)):
    method("cov", [shape])
    method("corrcoef", [shape])
counts, weights = numpy.array([1, 2, 1, 3, 2, 1, 1]), numpy.linspace(0.5, 2, 7, dtype="float32")
case("cov", [(3, 7)], lambda x: x.cov(fweights=Tensor(counts)), lambda x: torch.cov(x, fweights=torch.tensor(counts)))
case("cov", [(3, 7)], lambda x: x.cov(0, aweights=Tensor(weights)), lambda x: torch.cov(x, correction=0, aweights=torch.tensor(weights, dtype=x.dtype)))
case("cov", [(3, 7)], lambda x: x.cov(fweights=Tensor(counts), aweights=Tensor(weights)),
     lambda x: torch.cov(x, fweights=torch.tensor(counts), aweights=torch.tensor(weights, dtype=x.dtype)))

# ---- distances and products ----
for p in (0, 1, 2, 3, INF):
    method("cdist", [(2, 4, 3), (2, 5, 3)], p, gradient=p != 0)
    case("pdist", [(5, 3)], lambda x, p=p: x.pdist(p), lambda x, p=p: torch.pdist(x, p), gradient=p in (1, 2, 3))
    method("dist", [MATRIX, (5,)], p, gradient=p not in (0, INF))
method("renorm", [(4, 3, 2)], 2, 1, 1.5)
method("vdot", [(5,), (5,)])
method("addmv", [(4,), (4, 3), (3,)])
case("addmv", [(4,), (4, 3), (3,)], lambda x, a, b: x.addmv(a, b, beta=0.5, alpha=2), lambda x, a, b: torch.addmv(x, a, b, beta=0.5, alpha=2))
method("addr", [(4, 3), (4,), (3,)])
method("addbmm", [(4, 3), (2, 4, 5), (2, 5, 3)])
case("addbmm", [(4, 3), (2, 4, 5), (2, 5, 3)], lambda x, a, b: x.addbmm(a, b, beta=0, alpha=2), lambda x, a, b: torch.addbmm(x, a, b, beta=0, alpha=2))
case("add", [(3,), (2, 3)], lambda x, y: x.add(y, alpha=3), lambda x, y: x.add(y, alpha=3))
case("sub", [(3,), (2, 3)], lambda x, y: x.sub(y, alpha=0.5), lambda x, y: x.sub(y, alpha=0.5))
case("float_power", [(5,)], lambda x: x.float_power(1.5), lambda x: torch.float_power(x, 1.5), low=0.1)
case("ldexp", [(4,), numpy.array([0, 3, -2, 10], "int32")], lambda x, e: x.ldexp(e), torch.ldexp)

# ---- shapes ----
each("t", [MATRIX, (3,), ()], lambda x: x.t())
for name in ("mT", "mH"):
    case(name, [(2, 3, 4)], lambda x, n=name: getattr(x, n), lambda x, n=name: getattr(x, n))
for name, shape in (("tensor_split", (7, 2)), ("hsplit", (4, 6)), ("vsplit", (6,)), ("vsplit", (6, 2)), ("dsplit", (2, 3, 6)), ("hsplit", (6,))):
    check = refuses if (name, shape) == ("vsplit", (6,)) else method
    for parts in (3, [1, 4], [4, 1, -1, 9]):
        if check is refuses:
            refuses(name, [shape], lambda x, p=parts: x.vsplit(p), lambda x, p=parts: x.vsplit(p))
        else:
            method(name, [shape], parts)
refuses("hsplit", [(4, 5)], lambda x: x.hsplit(2), lambda x: x.hsplit(2))
refuses("tensor_split", [(4,)], lambda x: x.tensor_split(0), lambda x: x.tensor_split(0))
for offset, dims in ((0, (-2, -1)), (1, (0, 2)), (-2, (1, 0))):
    case("diag_embed", [(2, 3)], lambda x, o=offset, d=dims: x.diag_embed(o, *d), lambda x, o=offset, d=dims: torch.diag_embed(x, o, *d))
case("diagflat", [(2, 2)], lambda x: x.diagflat(1), lambda x: torch.diagflat(x, 1))
case("sum_to_size", [(2, 3, 4)], lambda x: x.sum_to_size(3, 1), lambda x: x.sum_to_size(3, 1))
refuses("sum_to_size", [(2, 3)], lambda x: x.sum_to_size(2), lambda x: x.sum_to_size(2))
case("logdet", [SQUARE], lambda x: (x @ x.mT + 1).logdet(), lambda x: (x @ x.mT + 1).logdet())
for upper in (False, True):
    case("cholesky_solve", [(3, 2), SQUARE], lambda b, x, u=upper: b.cholesky_solve((x[:3] @ x[:3].mT + x.eye(3)).cholesky(upper=u), u),
         lambda b, x, u=upper: b.cholesky_solve(torch.linalg.cholesky(x[:3] @ x[:3].mT + torch.eye(3, dtype=x.dtype), upper=u), u))

# ---- functions ----
for shapes in ([(2, 3), (2,), (2, 1)], [(3,), (3,)]):
    case("column_stack", shapes, lambda *x: tinycore.column_stack(x), lambda *x: torch.column_stack(x))
function("block_diag", [(2, 3), (), (4,), (1, 2)])
function("broadcast_tensors", [(2, 1), (3,), ()])
function("cartesian_prod", [(3,), (2,), (2,)])
for rank, shape in itertools.product((1, 2, 3), ((), (3,), (2, 3), (2, 3, 4))):
    function(f"atleast_{rank}d", [shape])
for more in ({}, {"r": 3}, {"with_replacement": True}):
    function("combinations", [(4,)], more=more)
for offset in (-1, 0, 2):
    for name in ("tril_indices", "triu_indices"):
        function(name, [], extra=(3, 4, offset))
for name in ("hann_window", "hamming_window", "blackman_window"):
    for n, periodic in ((8, True), (7, False), (1, True)):
        function(name, [], extra=(n, periodic))
function("logspace", [], extra=(-1, 2, 5))
function("vander", [(4,)], more={"N": 3}, gradient=False)
function("vander", [(4,)], more={"increasing": True}, gradient=False)
function("trapezoid", [(3, 5)])
function("trapezoid", [(3, 5), (5,)])
function("trapezoid", [(3, 5)], more={"dx": 0.5, "dim": 0})
function("cumulative_trapezoid", [(3, 5), (5,)])
function("chain_matmul", [(2, 3), (3, 4), (4, 2)])
case("broadcast_shapes", [], lambda: Tensor(list(tinycore.broadcast_shapes((2, 1), (3,), ()))), lambda: torch.tensor(list(torch.broadcast_shapes((2, 1), (3,), ()))), same_dtype=False)
case("result_type", [], lambda: Tensor(0, dtype=tinycore.promote_types("uint8", "int8")), lambda: torch.tensor(0, dtype=torch.promote_types(torch.uint8, torch.int8)))

# ---- linalg ----
for order in ("fro", "nuc", 1, -1, 2, -2, INF, -INF):
    function("matrix_norm", [(2, 3, 4)], "linalg", extra=(order,))
    function("norm", [(3, 4)], "linalg", extra=(order,), gradient=False)
function("matrix_norm", [(3, 2, 4)], "linalg", more={"ord": 1, "dim": (2, 0), "keepdim": True})
for order in (0, 1, 2, 3.5, INF):
    function("vector_norm", [(3, 4)], "linalg", extra=(order, 1), gradient=order not in (0, INF))
function("svdvals", [(2, 4, 3)], "linalg")
function("pinv", [(2, 4, 3)], "linalg", gradient=False)
function("pinv", [numpy.array([[1, 2], [2, 4], [0, 0]], "float32")], "linalg", gradient=False)
function("matrix_rank", [numpy.array([[[1, 2], [2, 4]], [[1, 2], [3, 4]], [[0, 0], [0, 0]]], "float32")], "linalg", gradient=False, same_dtype=False)
for shape in ((0, 3), (3, 0), (2, 0, 3), (0, 2, 3)):
    function("pinv", [shape], "linalg", gradient=False)
    function("matrix_rank", [shape], "linalg", gradient=False, same_dtype=False)
for p in (None, 1, INF, "fro", -2):
    function("cond", [SQUARE], "linalg", extra=(p,), gradient=False)


def put_together(values, vectors):
    """Values, the matrix again, and vectors among each other: a vector alone is only as sure as its value is far from the next."""
    return values, (vectors * values.unsqueeze(-2)) @ vectors.mT, vectors.mT @ vectors


for triangle in ("L", "U"):
    case("linalg.eigh", [(2, 4, 4)], lambda x, u=triangle: put_together(*tinycore.linalg.eigh(x, u)),
         lambda x, u=triangle: put_together(*torch.linalg.eigh(x, u)), gradient=False, forward=3e-6)
    case("linalg.eigh", [(2, 4, 4)], lambda x, u=triangle: (lambda e: (e.eigenvalues, e.eigenvectors.abs()))(tinycore.linalg.eigh(x, u)),
         lambda x, u=triangle: (lambda e: (e.eigenvalues, e.eigenvectors.abs()))(torch.linalg.eigh(x, u)), gradient=False,
         forward=3e-6)  # of numbers up to 4, whose roundings are added to the least one
case("linalg.eigvalsh", [SQUARE], lambda x: tinycore.linalg.eigvalsh(x + x.mT), lambda x: torch.linalg.eigvalsh(x + x.mT))
case("linalg.lstsq", [(5, 3), (5, 2)], lambda a, b: tinycore.linalg.lstsq(a, b).solution, lambda a, b: torch.linalg.lstsq(a, b).solution, gradient=False)
for shapes in ([(3, 4), (4, 5), (5, 2)], [(4,), (4, 5), (5,)]):
    case("linalg.multi_dot", shapes, lambda *x: tinycore.linalg.multi_dot(x), lambda *x: torch.linalg.multi_dot(x))
function("vecdot", [(2, 3), (3,)], "linalg")
function("vander", [(2, 3)], "linalg", more={"N": 4})
function("diagonal", [(2, 3, 4)], "linalg", more={"offset": 1})
# The columns are far from each other: where they are near, PyTorch's own error is chance.
case("linalg.inv", [SQUARE], lambda x: tinycore.linalg.inv(x + len(x) * tinycore.Tensor.eye(len(x))),
     lambda x: torch.linalg.inv(x + len(x) * torch.eye(len(x), dtype=x.dtype)))
function("solve", [SQUARE, (4, 2)], "linalg")

# ---- fft ----
pairs, complexes = torch.view_as_real, torch.view_as_complex
for name, shape, wide, settings in (
        ("fft", (3, 5, 2), True, {"n": 4, "norm": "ortho"}), ("ifft", (3, 5, 2), True, {"dim": 0}), ("fft2", (2, 3, 4, 2), True, {}),
        ("ifft2", (2, 3, 4, 2), True, {"s": (2, 5)}), ("fftn", (3, 4, 2), True, {"s": (5,)}), ("ifftn", (3, 4, 2), True, {"dim": (0,)}),
        ("rfft", (3, 5), False, {}), ("rfft2", (3, 5), False, {"norm": "forward"}), ("rfftn", (2, 3, 4), False, {})):
    case(f"fft.{name}", [shape], lambda x, n=name, s=settings: getattr(tinycore.fft, n)(x, **s),
         lambda x, n=name, s=settings, w=wide: pairs(getattr(torch.fft, n)(complexes(x) if w else x, **s)))
for name, settings in (("irfft", {"n": 7}), ("irfft2", {}), ("irfftn", {"s": (3, 5)})):
    case(f"fft.{name}", [(3, 4, 2)], lambda x, n=name, s=settings: getattr(tinycore.fft, n)(x, **s),
         lambda x, n=name, s=settings: getattr(torch.fft, n)(complexes(x), **s))
for name, dim in itertools.product(("fftshift", "ifftshift"), (None, 1, (0, 1))):
    function(name, [(4, 5)], "fft", more={"dim": dim})
for name, n in itertools.product(("fftfreq", "rfftfreq"), (1, 5, 8)):
    function(name, [], "fft", extra=(n, 0.1))
refuses("fft.fft", [(4, 2)], lambda x: tinycore.fft.fft(x, 0), lambda x: torch.fft.fft(complexes(x), 0))

# ---- special ----
WIDE = numpy.array([-40, -13, -12, -11, -5, -1, 0, 0.5, 3, 8, 40, INF, NAN], "float32")
for name in ("entr", "ndtr", "log_ndtr", "expit"):
    function(name, [(7,)], "special", gradient=name != "entr")
    function(name, [WIDE], "special", gradient=False)
function("xlog1py", [(3, 4), (4,)], "special", low=0.1)

# ---- nn.functional ----
NN = "nn.functional"
function("pixel_shuffle", [(2, 8, 2, 3)], NN, extra=(2,))
function("pixel_unshuffle", [(8, 4, 6)], NN, extra=(2,))
function("channel_shuffle", [(2, 6, 3)], NN, extra=(3,), gradient=False)
for extra in ((2,), ((2, 3), 1, 1, 2), (2, 2, (0, 1), (2, 1))):
    function("unfold", [(2, 3, 5, 6)], NN, extra=extra)
function("fold", [(2, 12, 20)], NN, extra=((5, 6), 2))
function("fold", [(2, 12, 16)], NN, extra=((8, 7), 2, 1, (0, 1), 2))
function("fold", [(12, 6)], NN, extra=((5, 4), (3, 2), (1, 2), 0, (1, 1)))
function("bilinear", [(2, 3), (2, 4), (5, 3, 4), (5,)], NN)
function("pairwise_distance", [(4, 3), (4, 3)], NN, extra=(1,))
function("tanhshrink", [(3, 4)], NN, low=1, high=3)
function("lp_pool1d", [(2, 3, 8)], NN, extra=(2, 3), low=0.1)
function("lp_pool2d", [(2, 6, 7)], NN, extra=(3, (2, 3), 2), low=0.1)
function("embedding", [numpy.array([[0, 2], [1, 2]]), (3, 4)], NN, extra=(2,))
function("multi_margin_loss", [(4, 5), numpy.array([0, 4, 2, 1])], NN, extra=(2, 0.7))
function("multi_margin_loss", [(5,), numpy.array(3)], NN, more={"reduction": "none"})
function("multilabel_soft_margin_loss", [(4, 5), numbers((4, 5), 0, 2, "int32").astype("float32")], NN, more={"reduction": "none"})
for swap in (False, True):
    function("triplet_margin_with_distance_loss", [(4, 5)] * 3, NN, more={"swap": swap, "margin": 2.0})
refuses("nn.functional.fold", [(2, 12, 19)], lambda x: tinycore.nn.functional.fold(x, (5, 6), 2), lambda x: torch.nn.functional.fold(x, (5, 6), 2))
refuses("nn.functional.pixel_shuffle", [(2, 6, 2, 3)], lambda x: tinycore.nn.functional.pixel_shuffle(x, 2), lambda x: torch.nn.functional.pixel_shuffle(x, 2))
for align_corners in (False, True):
    for mode, padding_mode in (("bilinear", "zeros"), ("bilinear", "border"), ("nearest", "zeros")):
        function("grid_sample", [(2, 3, 5, 4), numbers((2, 3, 6, 2), -1.3, 1.3)], NN,
                 more={"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners})
    function("affine_grid", [(2, 2, 3)], NN, extra=((2, 1, 3, 5),), more={"align_corners": align_corners})
refuses("nn.functional.grid_sample", [(2, 3, 5, 4), (1, 3, 6, 2)], tinycore.nn.functional.grid_sample, torch.nn.functional.grid_sample)
