# SPDX-License-Identifier: MIT
"""torch.special's names: methods of tensors, and a few that are made of them."""
from __future__ import annotations

from math import log, pi, sqrt

from .errors import explain_all
from .tensor import Tensor

erf, erfc, exp2, expm1, log1p, logit, log_softmax, logsumexp, round, sinc, softmax = (
    getattr(Tensor, name) for name in "erf erfc exp2 expm1 log1p logit log_softmax logsumexp round sinc softmax".split())
expit, xlogy = Tensor.sigmoid, Tensor.xlogy
digamma = psi = Tensor.digamma
erfinv, gammaln = Tensor.erfinv, Tensor.lgamma


def entr(input):
    """-x log x; 0 at 0, -infinity below."""
    inside = input > 0
    return (input < 0).where(float("-inf"), inside.where(-input * inside.where(input, 1.0).log(), input * 0))


def ndtr(input):
    """The part of a normal distribution below @input."""
    return (-input / sqrt(2)).erfc() / 2


def log_ndtr(input):
    """log (ndtr (@input)), by a series of 1 / x² far below 0 (Abramowitz and Stegun 26.2.12)."""
    far = input < -12
    x = far.where(input, -12.0)
    y = 1 / (x * x)
    tail = -x * x / 2 - (-x).log() - log(2 * pi) / 2 + (-y + 3 * y * y - 15 * y * y * y).log1p()
    return far.where(tail, ndtr(far.where(0.0, input)).log())


def xlog1py(input, other):
    """x log (1 + y); 0 where x is 0, unless y is NaN."""
    is_none = (input == 0).logical_and(other == other)
    return is_none.where(0.0, input * is_none.where(0.0, other).log1p())


explain_all(globals())
