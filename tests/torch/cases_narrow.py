# SPDX-License-Identifier: MIT
"""f16 and bf16: what is made of numbers is computed wide and rounded once, also where squares and sums on the way are larger than the
dtype holds. PyTorch's are of f64; half a unit of the last place is 2^-11 of a number of f16 and 2^-8 of one of bf16. Gradients arrive
rounded, and differences of such are no part of this."""
import numpy
import torch
from torch.nn import functional

from harness import case, numbers

HALF = {"half": 2.0 ** -11, "bfloat16": 2.0 ** -8}


def whole(shape, most, seed=0):
    """Whole numbers, of which both dtypes have each up to 256, and even ones up to 512."""
    return numpy.round(numbers(shape, -most, most, seed=seed) / 4) * 4


def narrow(operation, inputs, ours, theirs=None, times=1.1):
    """@ours of @inputs in each dtype; an error may be @times the rounding."""
    for dtype, half in HALF.items():
        def run(*x, dtype=dtype):
            found = ours(*(getattr(one, dtype)() if one.is_floating_point() else one for one in x))
            found = found if isinstance(found, (tuple, list)) else (found,)
            assert all(one.dtype == getattr(found[0], dtype)().dtype for one in found), [one.dtype for one in found]
            return [one.float() for one in found]

        case(operation, inputs, run, lambda *x: (theirs or ours)(*(one.double() if one.is_floating_point() else one for one in x)),
             gradient=False, forward=times * half, same_dtype=False, label=f"{operation} of {dtype}")


X, Y = whole((6, 8), 300), whole((6, 8), 300, 1)
IMAGE = whole((2, 4, 6, 6), 300)
NEAR, OTHER = whole((6, 8), 48), whole((6, 8), 48, 1)
POSITIVE = numpy.abs(whole((6, 8), 300)) + 4
LABELS = numpy.arange(6) % 8

narrow("layer_norm", [X], lambda x: x.layer_norm((8,)), lambda x: functional.layer_norm(x, (8,)))
narrow("layer_norm", [X + 200], lambda x: x.layer_norm((8,)), lambda x: functional.layer_norm(x, (8,)))
narrow("group_norm", [IMAGE], lambda x: x.group_norm(2), lambda x: functional.group_norm(x, 2))
narrow("instance_norm", [IMAGE], lambda x: x.instance_norm(), functional.instance_norm)
narrow("batch_norm", [IMAGE], lambda x: x.batch_norm(None, None, training=True), lambda x: functional.batch_norm(x, None, None, training=True))
narrow("rms_norm", [X], lambda x: x.rms_norm((8,), eps=1e-6), lambda x: x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt())
narrow("local_response_norm", [IMAGE], lambda x: x.local_response_norm(3), lambda x: functional.local_response_norm(x, 3))
narrow("softmax", [NEAR], lambda x: x.softmax(-1))
narrow("log_softmax", [X], lambda x: x.log_softmax(-1))
narrow("logsumexp", [X], lambda x: x.logsumexp(-1))
narrow("std", [X], lambda x: x.std(1))
narrow("var", [NEAR], lambda x: x.var(1))
narrow("std_mean", [X + 200], lambda x: x.std_mean(1), lambda x: torch.std_mean(x, 1))
narrow("var_mean", [NEAR], lambda x: x.var_mean(1), lambda x: torch.var_mean(x, 1))
for p in (1, 2, 3, 0.5, float("inf")):
    narrow("norm", [X[:, :3]], lambda x, p=p: x.norm(p, 1))
narrow("normalize", [X], lambda x: x.normalize(), functional.normalize)
narrow("cosine_similarity", [X, Y], lambda x, y: x.cosine_similarity(y), functional.cosine_similarity)
narrow("cumsum", [NEAR], lambda x: x.cumsum(1))
narrow("cumprod", [NEAR / 32 + 1], lambda x: x.cumprod(1))
narrow("prod", [NEAR / 32 + 1], lambda x: x.prod(1))
narrow("mean", [X], lambda x: x.mean(1))
narrow("diff", [X], lambda x: x.diff())
narrow("hypot", [X, Y], lambda x, y: x.hypot(y))
narrow("lerp", [X, Y], lambda x, y: x.lerp(y, 0.3))
narrow("addcmul", [X, NEAR, OTHER], lambda x, y, z: x.addcmul(y, z, value=-0.75))
narrow("addcdiv", [X, NEAR, POSITIVE], lambda x, y, z: x.addcdiv(y, z, value=3))
narrow("logaddexp", [X, Y], lambda x, y: x.logaddexp(y))
narrow("xlogy", [X, POSITIVE], lambda x, y: x.xlogy(y))
narrow("interpolate", [IMAGE], lambda x: x.interpolate((9, 11), mode="bilinear"), lambda x: functional.interpolate(x, (9, 11), mode="bilinear"))
narrow("avg_pool2d", [IMAGE], lambda x: x.avg_pool2d(3), lambda x: functional.avg_pool2d(x, 3))
narrow("histc", [numpy.float32([0, 500, 999, 1000, 3, 700])], lambda x: x.histc(100, 0, 1000))
narrow("mse_loss", [NEAR, OTHER], lambda x, y: x.mse_loss(y), functional.mse_loss)
narrow("huber_loss", [X, Y], lambda x, y: x.huber_loss(y, delta=3.0), lambda x, y: functional.huber_loss(x, y, delta=3.0))
narrow("smooth_l1_loss", [X, Y], lambda x, y: x.smooth_l1_loss(y), functional.smooth_l1_loss)
narrow("cross_entropy", [X, LABELS], lambda x, y: x.cross_entropy(y), functional.cross_entropy)
narrow("binary_crossentropy_logits", [NEAR, numpy.float32(OTHER > 0)], lambda x, y: x.binary_crossentropy_logits(y),
       functional.binary_cross_entropy_with_logits)
narrow("gaussian_nll_loss", [X, Y, POSITIVE], lambda x, y, v: x.gaussian_nll_loss(y, v), functional.gaussian_nll_loss)
narrow("matmul", [NEAR, OTHER.T.copy()], lambda x, y: x @ y)
narrow("addmm", [whole((6, 6), 48), NEAR, OTHER.T.copy()], lambda x, y, z: x.addmm(y, z, alpha=0.75))
narrow("conv2d", [IMAGE / 64, whole((3, 4, 3, 3), 48) / 16], lambda x, w: x.conv2d(w), functional.conv2d)
narrow("fft", [whole((3, 8, 2), 48)], lambda x: x.fft(), lambda x: torch.view_as_real(torch.fft.fft(torch.view_as_complex(x))))
MATRIX = whole((2, 4, 4), 16) / 16 + 4 * numpy.eye(4, dtype="float32")
narrow("det", [MATRIX], lambda x: x.det())
narrow("inv", [MATRIX], lambda x: x.inv(), torch.linalg.inv)
narrow("gelu", [NEAR / 16], lambda x: x.gelu(), functional.gelu)
narrow("scaled_dot_product_attention", [numpy.full((1, 2, 128), 32, "float32"), numpy.full((1, 2, 128), 32, "float32"), NEAR[None, :2]],
       lambda q, k, v: q.scaled_dot_product_attention(k, v), lambda q, k, v: (q @ k.mT / 128 ** 0.5).softmax(-1) @ v, times=2)
narrow("scaled_dot_product_attention", [NEAR[None] / 16, OTHER[None] / 16, NEAR[None] / 64],  # of which the weights are rounded as well
       lambda q, k, v: q.scaled_dot_product_attention(k, v), lambda q, k, v: (q @ k.mT / 8 ** 0.5).softmax(-1) @ v, times=4)
# What Python makes of rows.
narrow("cdist", [NEAR, OTHER], lambda x, y: x.cdist(y, 2.0), lambda x, y: torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"))
narrow("cov", [NEAR], lambda x: x.cov())
narrow("corrcoef", [X], lambda x: x.corrcoef())
narrow("lp_pool2d", [IMAGE[:, :1]], lambda x: (functional.lp_pool2d if torch.is_tensor(x) else F().lp_pool2d)(x, 2, 2))
for length in (7, 10001, 100000):
    narrow("quantile", [numpy.float32(numpy.arange(length) % 200 - 100)], lambda x: x.quantile(torch.tensor([0.0, 0.25, 0.5, 1.0]).double())
           if torch.is_tensor(x) else x.quantile([0.0, 0.25, 0.5, 1.0]))


def F():
    from tinycore.nn import functional as ours
    return ours
