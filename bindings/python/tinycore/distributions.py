# SPDX-License-Identifier: MIT
"""Random variables, under torch.distributions' names: sample(), log_prob(), entropy(), kl_divergence()."""
from __future__ import annotations

from math import log, pi
from typing import Any

from .context import no_grad
from .convert import Size
from .errors import InvalidError
from .functions import broadcast_tensors
from .tensor import Base, Tensor


def tensors_of(*given):
    """Parameters as tensors of the same sizes."""
    like = next((one for one in given if isinstance(one, Base)), None)
    made = [one if isinstance(one, Base) else Tensor(float(one)) if like is None else like.new_tensor(float(one)) for one in given]
    return broadcast_tensors(*made)


class Distribution:
    """A random variable for each element of its parameters. Derive from it and write draw() of a shape, log_prob(), entropy()."""

    has_rsample = False
    batch_shape: Size
    event_shape: Size = Size()

    def shape_of(self, sample_shape: Any) -> Size:
        return Size((*sample_shape, *self.batch_shape, *self.event_shape))

    def draw(self, shape: Any) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no draw()")

    def log_prob(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no log_prob()")

    def entropy(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no entropy()")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """@sample_shape values of each, through which no gradient flows."""
        with no_grad():
            return self.draw(self.shape_of(sample_shape)).detach().contiguous()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Likewise with gradients of the parameters."""
        if not self.has_rsample:
            raise NotImplementedError(f"{type(self).__name__}: samples have no gradient: take log_prob() of sample()")
        return self.draw(self.shape_of(sample_shape))


class Normal(Distribution):
    """Normal with mean @loc and standard deviation @scale."""

    has_rsample = True

    def __init__(self, loc: float | Tensor, scale: float | Tensor, validate_args: bool = None):
        self.loc, self.scale = tensors_of(loc, scale)
        self.batch_shape = self.loc.shape

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def draw(self, shape: Any) -> Tensor:
        return self.loc + self.scale * Tensor.randn(*shape, dtype=self.loc.dtype, device=self.loc.get_device())

    def log_prob(self, value: Tensor) -> Tensor:
        return -((value - self.loc) / self.scale).square() / 2 - self.scale.log() - log(2 * pi) / 2

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + log(2 * pi)) / 2

    def cdf(self, value: Tensor) -> Tensor:
        return (1 + ((value - self.loc) / (self.scale * 2 ** 0.5)).erf()) / 2


class LogNormal(Normal):
    """The exponential of a normal variable."""

    def draw(self, shape: Any) -> Tensor:
        return super().draw(shape).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        return super().log_prob(value.log()) - value.log()

    def entropy(self) -> Tensor:
        return super().entropy() + self.loc

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def variance(self) -> Tensor:
        return (self.scale.square().exp() - 1) * (2 * self.loc + self.scale.square()).exp()

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def cdf(self, value: Tensor) -> Tensor:
        return super().cdf(value.log())


class Uniform(Distribution):
    """Uniform over [@low, @high)."""

    has_rsample = True

    def __init__(self, low: float | Tensor, high: float | Tensor, validate_args: bool = None):
        self.low, self.high = tensors_of(low, high)
        self.batch_shape = self.low.shape

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    def draw(self, shape: Any) -> Tensor:
        return self.low + (self.high - self.low) * Tensor.rand(*shape, dtype=self.low.dtype, device=self.low.get_device())

    def log_prob(self, value: Tensor) -> Tensor:
        return ((value >= self.low) & (value < self.high)).where(-(self.high - self.low).log(), float("-inf"))

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class Exponential(Distribution):
    """Exponential with mean 1 / @rate."""

    has_rsample = True

    def __init__(self, rate: float | Tensor, validate_args: bool = None):
        self.rate, = tensors_of(rate)
        self.batch_shape = self.rate.shape

    def draw(self, shape: Any) -> Tensor:
        return -(1 - Tensor.rand(*shape, dtype=self.rate.dtype, device=self.rate.get_device())).log() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        return self.rate.log() - self.rate * value

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()


class OfProbabilities(Distribution):
    """One of two ways to say probabilities: @probs themselves or @logits."""

    def __init__(self, probs: float | Tensor | None, logits: float | Tensor | None):
        if (probs is None) == (logits is None):
            raise ValueError(f"{type(self).__name__}: either probs or logits are wanted")
        self.given, = tensors_of(probs if logits is None else logits)
        self.is_logits = probs is None
        self.batch_shape = self.given.shape


class Bernoulli(OfProbabilities):
    """1 with probability @probs, which is sigmoid (@logits), else 0."""

    def __init__(self, probs: float | Tensor | None = None, logits: float | Tensor | None = None, validate_args: bool = None):
        super().__init__(probs, logits)

    @property
    def probs(self) -> Tensor:
        return self.given.sigmoid() if self.is_logits else self.given

    mean = probs

    @property
    def logits(self) -> Tensor:
        return self.given if self.is_logits else self.given.logit(1e-7)

    def draw(self, shape: Any) -> Tensor:
        return self.probs.expand(shape).bernoulli().cast(self.given.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_tensors(self.logits, *tensors_of(value))
        return -logits.binary_crossentropy_logits(value.cast(self.given.dtype), reduction="none")

    def entropy(self) -> Tensor:
        return self.logits.binary_crossentropy_logits(self.probs, reduction="none")


class Categorical(OfProbabilities):
    """Numbers of the last axis by @probs, which need not add up to 1, or by softmax (@logits)."""

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool = None):
        super().__init__(probs, logits)
        if self.given.ndim < 1:
            raise InvalidError("Categorical: an axis of probabilities is wanted")
        self.batch_shape = Size(self.given.shape[:-1])

    @property
    def probs(self) -> Tensor:
        return self.given.softmax(-1) if self.is_logits else self.given / self.given.sum(-1, keepdim=True)

    @property
    def logits(self) -> Tensor:
        return self.given.log_softmax(-1) if self.is_logits else self.probs.clamp(1e-7, 1 - 1e-7).log()

    def draw(self, shape: Any) -> Tensor:
        n = 1
        for size in shape[:len(shape) - len(self.batch_shape)]:
            n *= size
        rows = self.probs.reshape(-1, self.given.shape[-1]).multinomial(n, True)
        return rows.transpose(0, 1).reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        found, value = self.logits, value.int().unsqueeze(-1)
        shape = broadcast_tensors(found[..., :1], value)[0].shape
        return found.expand(*shape[:-1], found.shape[-1]).gather(-1, value.expand(shape)).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.probs * self.logits).sum(-1)


def sum_last(found: Tensor, n: int) -> Tensor:
    """The sum over the last @n axes; of none it is @found."""
    return found.sum(tuple(range(-n, 0))) if n > 0 else found


class Independent(Distribution):
    """@base_distribution, whose last axes are one variable."""

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool = None):
        self.base_dist, self.n = base_distribution, reinterpreted_batch_ndims
        self.has_rsample = base_distribution.has_rsample
        shape = base_distribution.batch_shape
        self.batch_shape, self.event_shape = Size(shape[:len(shape) - self.n]), Size(shape[len(shape) - self.n:])

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    def draw(self, shape: Any) -> Tensor:
        return self.base_dist.draw(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_last(self.base_dist.log_prob(value), self.n)

    def entropy(self) -> Tensor:
        return sum_last(self.base_dist.entropy(), self.n)


class MultivariateNormal(Distribution):
    """Normal vectors with mean @loc, and a covariance that is given itself or by its Cholesky factor."""

    has_rsample = True

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None, *, scale_tril: Tensor | None = None, validate_args: bool = None):
        if (covariance_matrix is None) == (scale_tril is None):
            raise ValueError("MultivariateNormal: either covariance_matrix or scale_tril is wanted")
        self.loc, self.scale_tril = loc, covariance_matrix.cholesky() if covariance_matrix is not None else scale_tril
        self.batch_shape, self.event_shape = Size(loc.shape[:-1]), Size(loc.shape[-1:])

    @property
    def mean(self) -> Tensor:
        return self.loc

    def draw(self, shape: Any) -> Tensor:
        noise = Tensor.randn(*shape, dtype=self.loc.dtype, device=self.loc.get_device())
        return self.loc + (self.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def half_log_det(self):
        return self.scale_tril.diagonal(0, -2, -1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        rest = self.scale_tril.solve_triangular((value - self.loc).unsqueeze(-1), upper=False).squeeze(-1)
        return -rest.square().sum(-1) / 2 - self.half_log_det() - self.loc.shape[-1] * log(2 * pi) / 2

    def entropy(self) -> Tensor:
        return self.half_log_det() + self.loc.shape[-1] * (1 + log(2 * pi)) / 2


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """How much @q differs from @p, of the same class: Normal, Bernoulli, Categorical, or Independent ones of these."""
    if isinstance(p, Independent) and isinstance(q, Independent):
        return sum_last(kl_divergence(p.base_dist, q.base_dist), p.n)
    if type(p) is Normal and type(q) is Normal:
        ratio = (p.scale / q.scale).square()
        return (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log()) / 2
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        return (p.probs * (p.logits - q.logits)).sum(-1)
    if isinstance(p, Bernoulli) and isinstance(q, Bernoulli):
        logits, probs = broadcast_tensors(q.logits, p.probs)
        return logits.binary_crossentropy_logits(probs, reduction="none") - p.entropy()
    raise NotImplementedError(f"kl_divergence: of {type(p).__name__} and {type(q).__name__}")
