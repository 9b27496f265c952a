# SPDX-License-Identifier: MIT
"""Methods of tensors as modules without parameters: activations, windows, losses. Arguments have PyTorch's names and order."""
from ..errors import explained, meant
from ..functions import older_reduction
from ..tensor import Base, Tensor
from . import functional
from .module import Module

OTHER_NAMES = {"unflattened_size": "sizes", "dim": "axis"}  # what methods call settings of modules


class OfMethod(Module):
    """A module that calls a tensor's method, or a function of functional.py, whose @training it says if that @drops. Settings that
    are not given are the method's; those that are @shown are part of its text also then. A class with the name "inplace" takes
    PyTorch's flag, which changes nothing but its text."""

    method, function, names, defaults, drops, shown, inplace = None, None, (), {}, False, (), False

    def __init_subclass__(cls, method=None, function=None, names="", defaults=None, drops=False, shown="", **more):
        super().__init_subclass__(**more)
        if method is not None or function is not None:
            cls.method, cls.function, cls.names, cls.defaults, cls.drops = method, function, tuple(names.split()), defaults or {}, drops
            cls.shown = tuple(shown.split())

    def __init__(self, *given, **more):
        if len(given) > len(self.names):
            raise TypeError(f"{type(self).__name__} takes {len(self.names)} arguments, not {len(given)}")
        if ("size_average" in more or "reduce" in more) and "reduction" in self.names:
            more["reduction"] = older_reduction(more.pop("size_average", None), more.pop("reduce", None))
        unknown = [name for name in more if name not in self.names or self.names.index(name) < len(given)]
        if unknown:
            raise TypeError(f"{type(self).__name__} has no further argument {unknown[0]}" + meant(unknown[0], self.names))
        settings = {**self.defaults, **dict(zip(self.names, given)), **more}
        if "kernel_size" in settings and settings.get("stride") is None:
            settings["stride"] = settings["kernel_size"]
        if settings.pop("inplace", False):
            self.inplace = True
        self.settings = list(settings)
        for name, value in settings.items():
            self.register_buffer(name, value) if isinstance(value, Base) else setattr(self, name, value)

    @explained
    def forward(self, input, *others, **named):
        settings = {OTHER_NAMES.get(name, name): getattr(self, name) for name in self.settings}
        if "output_size" in settings:  # which a method takes one by one
            others = (*others, settings.pop("output_size"))
        settings.update(named)
        if self.function is not None:
            return getattr(functional, self.function)(input, *others, **settings, **({"training": self.training} if self.drops else {}))
        return getattr(input, self.method)(*others, **settings)

    def setting(self, name):
        """What was given, or the default of what is called."""
        if name in self.settings or name == "inplace":
            return getattr(self, name)
        from inspect import signature  # only where something is described
        called = getattr(functional, self.function) if self.function is not None else getattr(Tensor, self.method)
        return signature(called).parameters[OTHER_NAMES.get(name, name)].default

    def extra_repr(self):
        names = dict.fromkeys([*self.shown, *self.settings, *(["inplace"] if self.inplace else [])])
        return ", ".join(f"{name}={self.setting(name)!r}" for name in names if not isinstance(self.setting(name), Base))


# ---- activations ----
class ReLU(OfMethod, method="relu", names="inplace"):
    """Tensor.relu() as a module."""


class ReLU6(OfMethod, method="relu6", names="inplace"):
    """Tensor.relu6() as a module."""


class LeakyReLU(OfMethod, method="leaky_relu", names="negative_slope inplace", shown="negative_slope"):
    """Tensor.leaky_relu() as a module."""


class ELU(OfMethod, method="elu", names="alpha inplace", defaults={"alpha": 1.0}):
    """Tensor.elu() as a module."""


class SELU(OfMethod, method="selu", names="inplace"):
    """Tensor.selu() as a module."""


class CELU(OfMethod, method="celu", names="alpha inplace", defaults={"alpha": 1.0}):
    """Tensor.celu() as a module."""


class GELU(OfMethod, method="gelu", names="approximate", shown="approximate"):
    """Tensor.gelu() as a module."""


class GLU(OfMethod, method="glu", names="dim", shown="dim"):
    """Tensor.glu() as a module."""


class SiLU(OfMethod, method="silu", names="inplace"):
    """Tensor.silu() as a module."""


class Mish(OfMethod, method="mish", names="inplace"):
    """Tensor.mish() as a module."""


class Sigmoid(OfMethod, method="sigmoid"):
    """Tensor.sigmoid() as a module."""


class LogSigmoid(OfMethod, method="logsigmoid"):
    """Tensor.logsigmoid() as a module."""


class Tanh(OfMethod, method="tanh"):
    """Tensor.tanh() as a module."""


class Softplus(OfMethod, method="softplus", names="beta threshold", shown="beta threshold"):
    """Tensor.softplus() as a module."""


class Softsign(OfMethod, method="softsign"):
    """Tensor.softsign() as a module."""


class Hardtanh(OfMethod, method="hardtanh", names="min_val max_val inplace", defaults={"min_val": -1.0, "max_val": 1.0}):
    """Tensor.hardtanh() as a module."""


class Hardswish(OfMethod, method="hardswish", names="inplace"):
    """Tensor.hardswish() as a module."""


class Hardsigmoid(OfMethod, method="hardsigmoid", names="inplace"):
    """Tensor.hardsigmoid() as a module."""


class Hardshrink(OfMethod, method="hardshrink", names="lambd"):
    """Tensor.hardshrink() as a module."""


class Softshrink(OfMethod, method="softshrink", names="lambd"):
    """Tensor.softshrink() as a module."""


class Tanhshrink(OfMethod, function="tanhshrink"):
    """functional.tanhshrink() as a module."""


class Threshold(OfMethod, method="threshold", names="threshold value inplace"):
    """Tensor.threshold() as a module."""


class Softmax(OfMethod, method="softmax", names="dim"):
    """Tensor.softmax() as a module."""


class LogSoftmax(OfMethod, method="log_softmax", names="dim"):
    """Tensor.log_softmax() as a module."""


class Softmax2d(OfMethod, method="softmax", defaults={"dim": -3}):
    """Tensor.softmax() over the channels of images."""


class Softmin(OfMethod, method="softmin", names="dim"):
    """Tensor.softmin() as a module."""


# ---- shapes and windows ----
class Flatten(OfMethod, method="flatten", names="start_dim end_dim", defaults={"start_dim": 1}, shown="start_dim end_dim"):
    """Tensor.flatten() as a module."""


class Unflatten(OfMethod, method="unflatten", names="dim unflattened_size"):
    """Tensor.unflatten() as a module."""


class Upsample(OfMethod, method="interpolate", names="size scale_factor mode align_corners"):
    """Tensor.interpolate() as a module."""


class MaxPool1d(OfMethod, method="max_pool1d", names="kernel_size stride padding dilation", shown="kernel_size stride padding dilation"):
    """Tensor.max_pool1d() as a module."""


class MaxPool2d(OfMethod, method="max_pool2d", names="kernel_size stride padding dilation return_indices ceil_mode", shown="kernel_size stride padding dilation ceil_mode"):
    """Tensor.max_pool2d() as a module."""


class MaxPool3d(OfMethod, method="max_pool3d", names="kernel_size stride padding dilation", shown="kernel_size stride padding dilation"):
    """Tensor.max_pool3d() as a module."""


class AvgPool1d(OfMethod, method="avg_pool1d", names="kernel_size stride padding ceil_mode count_include_pad", shown="kernel_size stride padding"):
    """Tensor.avg_pool1d() as a module."""


class AvgPool2d(OfMethod, method="avg_pool2d", names="kernel_size stride padding ceil_mode count_include_pad", shown="kernel_size stride padding"):
    """Tensor.avg_pool2d() as a module."""


class AvgPool3d(OfMethod, method="avg_pool3d", names="kernel_size stride padding ceil_mode count_include_pad", shown="kernel_size stride padding"):
    """Tensor.avg_pool3d() as a module."""


class AdaptiveAvgPool1d(OfMethod, method="adaptive_avg_pool1d", names="output_size"):
    """Tensor.adaptive_avg_pool1d() as a module."""


class AdaptiveAvgPool2d(OfMethod, method="adaptive_avg_pool2d", names="output_size"):
    """Tensor.adaptive_avg_pool2d() as a module."""


class AdaptiveAvgPool3d(OfMethod, method="adaptive_avg_pool3d", names="output_size"):
    """Tensor.adaptive_avg_pool3d() as a module."""


class AdaptiveMaxPool1d(OfMethod, method="adaptive_max_pool1d", names="output_size"):
    """Tensor.adaptive_max_pool1d() as a module."""


class AdaptiveMaxPool2d(OfMethod, method="adaptive_max_pool2d", names="output_size"):
    """Tensor.adaptive_max_pool2d() as a module."""


class AdaptiveMaxPool3d(OfMethod, method="adaptive_max_pool3d", names="output_size"):
    """Tensor.adaptive_max_pool3d() as a module."""


class MaxUnpool2d(OfMethod, method="max_unpool2d", names="kernel_size stride padding"):
    """Tensor.max_unpool2d() as a module."""


class LPPool1d(OfMethod, function="lp_pool1d", names="norm_type kernel_size stride ceil_mode"):
    """functional.lp_pool1d() as a module."""


class LPPool2d(OfMethod, function="lp_pool2d", names="norm_type kernel_size stride ceil_mode"):
    """functional.lp_pool2d() as a module."""


class UpsamplingNearest2d(OfMethod, method="interpolate", names="size scale_factor", defaults={"mode": "nearest"}):
    """Tensor.interpolate() as a module, of images."""


class UpsamplingBilinear2d(OfMethod, method="interpolate", names="size scale_factor", defaults={"mode": "bilinear", "align_corners": True}):
    """Tensor.interpolate() as a module, of images, whose corners stay where they are."""


class PixelShuffle(OfMethod, function="pixel_shuffle", names="upscale_factor"):
    """functional.pixel_shuffle() as a module."""


class PixelUnshuffle(OfMethod, function="pixel_unshuffle", names="downscale_factor"):
    """functional.pixel_unshuffle() as a module."""


class ChannelShuffle(OfMethod, function="channel_shuffle", names="groups"):
    """functional.channel_shuffle() as a module."""


class Unfold(OfMethod, function="unfold", names="kernel_size dilation padding stride", defaults={"stride": 1}, shown="kernel_size dilation padding stride"):
    """functional.unfold() as a module."""


class Fold(Module):
    """functional.fold() as a module."""

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        self.settings = {"output_size": output_size, "kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}

    def forward(self, input):
        return functional.fold(input, **self.settings)

    def extra_repr(self):
        return ", ".join(f"{name}={value}" for name, value in self.settings.items())


# ---- dropping ----
class Dropout1d(OfMethod, function="dropout1d", names="p inplace", drops=True, shown="p inplace"):
    """functional.dropout1d() as a module."""


class Dropout2d(OfMethod, function="dropout2d", names="p inplace", drops=True, shown="p inplace"):
    """functional.dropout2d() as a module."""


class Dropout3d(OfMethod, function="dropout3d", names="p inplace", drops=True, shown="p inplace"):
    """functional.dropout3d() as a module."""


class AlphaDropout(OfMethod, function="alpha_dropout", names="p inplace", drops=True, shown="p inplace"):
    """functional.alpha_dropout() as a module."""


class LocalResponseNorm(OfMethod, method="local_response_norm", names="size alpha beta k"):
    """Tensor.local_response_norm() as a module."""


class CosineSimilarity(OfMethod, method="cosine_similarity", names="dim eps"):
    """Tensor.cosine_similarity() as a module."""


class PairwiseDistance(OfMethod, function="pairwise_distance", names="p eps keepdim"):
    """functional.pairwise_distance() as a module."""


# ---- losses ----
class CrossEntropyLoss(OfMethod, method="cross_entropy", names="weight ignore_index reduction label_smoothing"):
    """Tensor.cross_entropy() as a module."""


class NLLLoss(OfMethod, method="nll_loss", names="weight ignore_index reduction"):
    """Tensor.nll_loss() as a module."""


class MSELoss(OfMethod, method="mse_loss", names="reduction"):
    """Tensor.mse_loss() as a module."""


class L1Loss(OfMethod, method="l1_loss", names="reduction"):
    """Tensor.l1_loss() as a module."""


class SmoothL1Loss(OfMethod, method="smooth_l1_loss", names="reduction beta"):
    """Tensor.smooth_l1_loss() as a module."""


class HuberLoss(OfMethod, method="huber_loss", names="reduction delta"):
    """Tensor.huber_loss() as a module."""


class KLDivLoss(OfMethod, method="kl_div", names="reduction log_target"):
    """Tensor.kl_div() as a module."""


class BCELoss(OfMethod, method="binary_crossentropy", names="weight reduction"):
    """Tensor.binary_crossentropy() as a module."""


class BCEWithLogitsLoss(OfMethod, method="binary_crossentropy_logits", names="weight reduction pos_weight"):
    """Tensor.binary_crossentropy_logits() as a module."""


class PoissonNLLLoss(OfMethod, method="poisson_nll_loss", names="log_input full eps reduction"):
    """Tensor.poisson_nll_loss() as a module."""


class GaussianNLLLoss(OfMethod, method="gaussian_nll_loss", names="full eps reduction"):
    """Tensor.gaussian_nll_loss() as a module."""


class MarginRankingLoss(OfMethod, method="margin_ranking_loss", names="margin reduction"):
    """Tensor.margin_ranking_loss() as a module."""


class HingeEmbeddingLoss(OfMethod, method="hinge_embedding_loss", names="margin reduction"):
    """Tensor.hinge_embedding_loss() as a module."""


class SoftMarginLoss(OfMethod, method="soft_margin_loss", names="reduction"):
    """Tensor.soft_margin_loss() as a module."""


class CosineEmbeddingLoss(OfMethod, method="cosine_embedding_loss", names="margin reduction"):
    """Tensor.cosine_embedding_loss() as a module."""


class TripletMarginLoss(OfMethod, method="triplet_margin_loss", names="margin p eps swap reduction"):
    """Tensor.triplet_margin_loss() as a module."""


class MultiMarginLoss(OfMethod, function="multi_margin_loss", names="p margin weight reduction"):
    """functional.multi_margin_loss() as a module."""


class MultiLabelMarginLoss(OfMethod, function="multilabel_margin_loss", names="reduction"):
    """functional.multilabel_margin_loss() as a module."""


class RReLU(OfMethod, function="rrelu", names="lower upper inplace", defaults={"lower": 0.125, "upper": 0.3333333333333333}, drops=True):
    """functional.rrelu() as a module."""


class MultiLabelSoftMarginLoss(OfMethod, function="multilabel_soft_margin_loss", names="weight reduction"):
    """functional.multilabel_soft_margin_loss() as a module."""


class TripletMarginWithDistanceLoss(OfMethod, function="triplet_margin_with_distance_loss", names="distance_function margin swap reduction"):
    """functional.triplet_margin_with_distance_loss() as a module."""


class CTCLoss(OfMethod, function="ctc_loss", names="blank reduction zero_infinity"):
    """functional.ctc_loss() as a module."""
