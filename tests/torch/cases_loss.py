# SPDX-License-Identifier: MIT
"""Losses with each reduction."""
import itertools

import numpy
import torch
import torch.nn.functional as F

from harness import case, numbers, refuses

REDUCTIONS = ("mean", "sum", "none")
PAIR = [(4, 5), (4, 5)]


def loss(name, inputs, theirs, low=-2.0, high=2.0, **options):
    for reduction in REDUCTIONS:
        case(name, inputs, lambda *x, o=options, r=reduction: getattr(x[0], name)(*x[1:], reduction=r, **o),
             lambda *x, o=options, r=reduction: theirs(*x, reduction=r, **o), low=low, high=high, label=f"{reduction} {options}")


for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
    for shapes in (PAIR, [(3,), (3,)], [(2, 3, 4), (2, 3, 4)]):
        loss(name, shapes, getattr(F, name))
for shape in ((4, 5), (3,)):
    loss("soft_margin_loss", [shape, numpy.array(numbers(shape) > 0, "int64") * 2 - 1], F.soft_margin_loss)
for beta in (0, 0.5, 2):
    loss("smooth_l1_loss", PAIR, F.smooth_l1_loss, beta=beta)
for delta in (0.5, 2):
    loss("huber_loss", PAIR, F.huber_loss, delta=delta)
loss("binary_crossentropy", PAIR, F.binary_cross_entropy, 0.05, 0.95)
case("binary_crossentropy", PAIR, lambda x, y: x.binary_crossentropy(y, type(x)([1.0, 2, 3, 4, 5])),
     lambda x, y: F.binary_cross_entropy(x, y, torch.arange(1.0, 6)), low=0.05, high=0.95)
edges = numpy.array([0, 1, 0.5, 1], "float32")
case("binary_crossentropy", [edges, edges[::-1].copy()], lambda x, y: x.binary_crossentropy(y), lambda x, y: F.binary_cross_entropy(x, y), gradient=False)
for scale in (1, 30, 200):
    loss("binary_crossentropy_logits", [numbers((4, 5)) * numpy.float32(scale), numbers((4, 5), 0, 1)], F.binary_cross_entropy_with_logits)
case("binary_crossentropy_logits", [(4, 5), numbers((4, 5), 0, 1)],
     lambda x, y: x.binary_crossentropy_logits(y, type(x)([1.0, 2, 3, 4, 5]), pos_weight=type(x)([5.0, 4, 3, 2, 1])),
     lambda x, y: F.binary_cross_entropy_with_logits(x, y, torch.arange(1.0, 6), pos_weight=torch.arange(5.0, 0, -1)))
case("binary_crossentropy_logits", [numpy.zeros(3, "float32"), (3,)], lambda x, y: x.binary_crossentropy_logits(y, reduction="sum"),
     lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="sum"))
for shape in ((4, 5), (4, 5, 2), (3, 4, 2, 3)):
    k = shape[1]
    labels = numbers(shape[:1] + shape[2:], 0, k, "int64")
    for weighted, smoothing, ignore in itertools.product((False, True), (0, 0.3), (-100, 1)):
        weight = [(k,)] if weighted else []
        for reduction in REDUCTIONS:
            options = {"label_smoothing": smoothing, "ignore_index": ignore, "reduction": reduction}
            # PyTorch's weight has no gradient; ours has none to compare with.
            w = numbers((k,), 0.2, 2)
            case("cross_entropy", [shape, labels],
                 lambda x, y, o=options, w=w, g=weighted: x.cross_entropy(y, type(x)(w) if g else None, **o),
                 lambda x, y, o=options, w=w, g=weighted: F.cross_entropy(x, y, torch.tensor(w).to(x.dtype) if g else None, **o),
                 label=f"{shape} {weighted} {options}")
    for reduction in REDUCTIONS:
        case("cross_entropy", [shape, shape], lambda x, y, r=reduction: x.cross_entropy(y, reduction=r, label_smoothing=0.1),
             lambda x, y, r=reduction: F.cross_entropy(x, y, reduction=r, label_smoothing=0.1), low=0.0)
        for ignore in (-100, 2):
            case("nll_loss", [shape, labels], lambda x, y, r=reduction, i=ignore: x.nll_loss(y, ignore_index=i, reduction=r),
                 lambda x, y, r=reduction, i=ignore: F.nll_loss(x, y, ignore_index=i, reduction=r))
        case("sparse_categorical_crossentropy", [shape[:1] + shape[2:] + (k,), labels],
             lambda x, y, r=reduction: x.sparse_categorical_crossentropy(y, reduction=r),
             lambda x, y, r=reduction: F.cross_entropy(x.movedim(-1, 1), y, reduction=r))
case("cross_entropy", [(5,), numpy.array(3)], lambda x, y: x.cross_entropy(y), lambda x, y: F.cross_entropy(x, y))
case("cross_entropy", [(2, 3), numpy.array([-100, -100])], lambda x, y: x.cross_entropy(y), lambda x, y: F.cross_entropy(x, y), gradient=False)
for dtype in ("int32", "uint8"):
    case("cross_entropy", [(4, 3), numpy.array([0, 2, 1, 1], dtype)], lambda x, y: x.cross_entropy(y), lambda x, y: F.cross_entropy(x, y.long()))
for log_target in (False, True):
    for reduction in REDUCTIONS + ("batchmean",):
        case("kl_div", PAIR, lambda x, y, r=reduction, g=log_target: x.kl_div(y, r, g),
             lambda x, y, r=reduction, g=log_target: F.kl_div(x, y, reduction=r, log_target=g), low=0.1)
case("kl_div", [(4,), numpy.array([0, 1, 0.5, 0], "float32")], lambda x, y: x.kl_div(y), lambda x, y: F.kl_div(x, y),
     gradient=False)
for full in (False, True):
    loss("poisson_nll_loss", [(4, 5), numpy.array([[0, 1, 2, 3, 9]] * 4, "int64")], F.poisson_nll_loss, full=full)
    loss("poisson_nll_loss", [numbers((4, 5), 0.5, 3), numpy.array([[0, 1, 2, 3, 9]] * 4, "int64")], F.poisson_nll_loss, full=full, log_input=False)
    loss("gaussian_nll_loss", [(4, 5), (4, 5), (4, 5)], F.gaussian_nll_loss, 0.3, full=full)
    loss("gaussian_nll_loss", [(4, 5), (4, 5), (4, 1)], F.gaussian_nll_loss, 0.3, full=full)
case("binary_crossentropy", [(4,), numpy.array([0, 1, 1, 0], "uint8")], lambda x, y: x.binary_crossentropy(y),
     lambda x, y: F.binary_cross_entropy(x, y.to(x.dtype)), low=0.1, high=0.9)
for axis in (0, 1, -1):
    case("cosine_similarity", [(4, 5, 3), (4, 5, 3)], lambda x, y, a=axis: x.cosine_similarity(y, a), lambda x, y, a=axis: F.cosine_similarity(x, y, a))
case("cosine_similarity", [(4, 5), (5,)], lambda x, y: x.cosine_similarity(y), lambda x, y: F.cosine_similarity(x, y))
signs = numpy.array([1, -1, 1, -1], "int64")
for margin in (0.0, 0.3):
    loss("cosine_embedding_loss", [(4, 5), (4, 5), signs], F.cosine_embedding_loss, margin=margin)
    loss("margin_ranking_loss", [(4,), (4,), signs], F.margin_ranking_loss, margin=margin)
loss("hinge_embedding_loss", [(4,), signs], F.hinge_embedding_loss, margin=0.7)
for p, swap in itertools.product((1, 2), (False, True)):
    loss("triplet_margin_loss", [(4, 5), (4, 5), (4, 5)], F.triplet_margin_loss, p=p, swap=swap)
refuses("mse_loss", PAIR, lambda x, y: x.mse_loss(y, "average"), lambda x, y: F.mse_loss(x, y, reduction="average"))
refuses("cross_entropy", [(4, 5), numpy.array([1, 2, 3])], lambda x, y: x.cross_entropy(y), lambda x, y: F.cross_entropy(x, y))
refuses("binary_crossentropy", [(4, 5), (4,)], lambda x, y: x.binary_crossentropy(y), lambda x, y: F.binary_cross_entropy(x, y))
