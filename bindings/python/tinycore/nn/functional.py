# SPDX-License-Identifier: MIT
"""Methods of tensors as functions: import tinycore.nn.functional as F; F.relu (x). And what PyTorch has as functions only."""
from __future__ import annotations

from math import floor, prod, sqrt

from ..errors import InvalidError, explain_all, explained, meant, named_as
from ..functions import of_tensor
from ..operations import Operations
from ..tensor import Base, Tensor

NAMES = {"binary_cross_entropy": "binary_crossentropy", "binary_cross_entropy_with_logits": "binary_crossentropy_logits"}


# ---- dropping ----
def dropout(input, p=0.5, training=True, inplace=False):
    """Zeroes elements with probability p where @training says so."""
    return placed(input, input.dropout(p, training=training), inplace, "dropout")


def drop_parts(n):
    """Dropout of whole channels of @n axes each."""
    def function(input, p=0.5, training=True, inplace=False):
        if not training:
            return input
        if input.ndim not in (n + 1, n + 2):
            raise InvalidError(f"dropout{n}d: a tensor of {n + 1} or {n + 2} axes is wanted, not {input.shape}")
        kept = Tensor.ones(*input.shape[:-n], *[1] * n, dtype=input.dtype, device=input.device)
        return placed(input, input * kept.dropout(p, training=True), inplace, f"dropout{n}d")
    function.__name__ = f"dropout{n}d"
    function.__doc__ = f"Zeroes whole channels, of {n} axes, with probability @p."
    return function


dropout1d, dropout2d, dropout3d = drop_parts(1), drop_parts(2), drop_parts(3)


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean 0 and variance 1 after selu() (Klambauer et al. 2017)."""
    if not 0 <= p <= 1:
        raise InvalidError(f"alpha_dropout: p: a number from 0 to 1 is wanted, not {p}")
    if not training or p == 0:
        return input
    low = -1.7580993408473766  # what selu() goes to far below 0
    a = 1 / sqrt((1 - p) * (1 + p * low * low)) if p < 1 else 0.0
    kept = Tensor.full(input.shape, 1.0 - p, device=input.device).bernoulli().cast(input.dtype)
    return placed(input, (kept * input + (1 - kept) * low) * a - a * p * low, inplace, "alpha_dropout")


def gumbel_softmax(logits, tau: float = 1, hard=False, eps=1e-10, dim=-1):
    """Draws from softmax (@logits) with a gradient (Jang et al. 2017); @hard: one 1 and zeros, with the soft gradient."""
    noise = -logits.new_empty(logits.shape).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    place = soft.argmax(dim, keepdim=True)
    return soft.zeros_like().scatter(dim, place, 1.0) - soft.detach() + soft


# ---- tables and products ----
def embedding(input, weight, padding_idx: int = None, max_norm: None = None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Rows of a table at integer positions, negative ones from the end, zeros of what is outside. The row at @padding_idx gets no gradient."""
    if max_norm is not None or scale_grad_by_freq:
        raise NotImplementedError("embedding: max_norm and scale_grad_by_freq are not there")
    found = named_as("embedding", weight.index_select, 0, input)
    if padding_idx is None:
        return found
    return (input == padding_idx % weight.shape[0]).unsqueeze(-1).where(found.detach(), found)


def embedding_bag(input, weight, offsets: Tensor = None, max_norm: None = None, norm_type=2.0, scale_grad_by_freq=False, mode="mean",
                  sparse=False, per_sample_weights: Tensor = None, include_last_offset=False, padding_idx: int = None):
    """The sum, mean or largest of rows of a table for each bag of integers: a row of @input, or what begins at each of @offsets in it. The
    row at @padding_idx is in no bag; an empty bag has zeros."""
    if mode not in ("sum", "mean", "max") or max_norm is not None or scale_grad_by_freq or per_sample_weights is not None and mode != "sum":
        raise InvalidError("embedding_bag: a mode is sum, mean or max, max_norm and scale_grad_by_freq are not there, and weights are of a sum")
    if (offsets is None) != (input.ndim == 2):
        raise InvalidError(f"embedding_bag: bags are rows of a matrix, or a vector with offsets, not {input.shape}")
    if offsets is None:
        n, size = input.shape
        bags = Tensor.arange(n, dtype="int32", device=input.device).unsqueeze(1).expand(n, size).reshape(-1)
        input, per_sample_weights = input.reshape(-1), None if per_sample_weights is None else per_sample_weights.reshape(-1)
    else:
        offsets = offsets[:-1] if include_last_offset else offsets
        n = offsets.shape[0]
        bags = (offsets.unsqueeze(1) <= Tensor.arange(input.shape[0], dtype="int32", device=input.device)).sum(0) - 1
    inside = bags == Tensor.arange(n, dtype="int32", device=input.device).unsqueeze(1)  # (bags, integers)
    if padding_idx is not None:
        inside = inside.logical_and(input != padding_idx % weight.shape[0])
    rows, counts = named_as("embedding_bag", weight.index_select, 0, input), inside.sum(1, keepdim=True)
    if mode == "max":
        found = inside.unsqueeze(-1).where(rows, float("-inf")).max(1)
        return (counts > 0).where(found, 0.0)
    shares = inside.cast(weight.dtype) * (1 if per_sample_weights is None else per_sample_weights)
    found = shares @ rows
    return found if mode == "sum" else found / counts.clamp(min=1)


def linear(input, weight, bias: Tensor = None):
    """@input @ @weightᵀ + @bias, of weights (O, I): see Operations.linear()."""
    return Operations.linear(input, weight, bias)


def bilinear(input1, input2, weight, bias: Tensor = None):
    """input1ᵀ weight[o] input2 + bias[o] for each o."""
    found = Tensor.einsum("...i,oij,...j->...o", input1, weight, input2)
    return found if bias is None else found + bias


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The length of the differences along the last axis."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def tanhshrink(input):
    """input - tanh (input)."""
    return input - input.tanh()


# ---- convolutions ----
def same_padding(kernel_size, dilation):
    """Numbers before and after each direction, the last direction first, that keep sizes as they are."""
    numbers = []
    for size, step in reversed(list(zip(kernel_size, dilation))):
        numbers += [step * (size - 1) // 2, step * (size - 1) - step * (size - 1) // 2]
    return numbers


def check_padding(padding, stride, name):
    """Of a padding by name."""
    if padding not in ("same", "valid"):
        raise ValueError(f"{name}: a padding is numbers, same or valid, not “{padding}”")
    if padding == "same" and any(one != 1 for one in (stride if isinstance(stride, (list, tuple)) else (stride,))):
        raise ValueError(f"{name}: padding of the same size wants a stride of 1, not {stride}")


def conv(n):
    def function(input, weight, bias: Tensor = None, stride=1, padding: int | Sequence[int] | str = 0, dilation=1, groups=1):
        if isinstance(padding, str):
            check_padding(padding, stride, f"conv{n}d")
            steps = dilation if isinstance(dilation, (list, tuple)) else (dilation,) * n
            input, padding = input.pad(same_padding(weight.shape[2:], steps)) if padding == "same" else input, 0
        return getattr(input, f"conv{n}d")(weight, bias, stride, padding, dilation, groups)
    function.__name__ = f"conv{n}d"
    function.__doc__ = f"Tensor.conv{n}d(), also with a padding by name: same, valid."
    return function


conv1d, conv2d, conv3d = conv(1), conv(2), conv(3)


# ---- norms with what is running ----
def running(input, mean, variance, momentum, axes):
    """Moves a running mean and variance towards those of @input over all axes but the channels'."""
    from ..context import no_grad
    with no_grad():
        rows = input.detach()
        found = rows.var(axes, correction=1), rows.mean(axes)
        for own, new in zip((variance, mean), found):
            if own is not None:
                new = new if new.ndim == 1 else new.mean(0)
                own.assign(own * (1 - momentum) + new.cast(own.dtype) * momentum)


def batch_norm(input, running_mean: Tensor | None, running_var: Tensor | None, weight=None, bias: Tensor = None, training=False, momentum=0.1, eps=1e-5):
    """(@input - mean) / sqrt (variance + @eps) * @weight + @bias, of the batch where it is @training, which moves what is running by @momentum."""
    found = input.batch_norm(running_mean, running_var, weight, bias, training, eps)
    if training and (running_mean is not None or running_var is not None):
        running(input, running_mean, running_var, momentum, [i for i in range(input.ndim) if i != 1])
    return found


def instance_norm(input, running_mean: Tensor = None, running_var: Tensor = None, weight=None, bias: Tensor = None, use_input_stats=True, momentum=0.1, eps=1e-5):
    """batch_norm() of each of a batch by itself."""
    found = input.instance_norm(running_mean, running_var, weight, bias, use_input_stats, eps)
    if use_input_stats and (running_mean is not None or running_var is not None):
        running(input, running_mean, running_var, momentum, list(range(2, input.ndim)))
    return found


# ---- images ----
def cubic(n, size, scale, align_corners, like):
    """The weights (size, n) with which cubic interpolation (Keys 1981, a = -0.75) makes @size elements of @n; outside is the border."""
    a, rows = -0.75, []
    for i in range(size):
        at = i * (n - 1) / max(size - 1, 1) if align_corners else (i + 0.5) * scale - 0.5
        row, first = [0.0] * n, floor(at)
        for k in range(first - 1, first + 3):
            d = abs(at - k)
            w = ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
            row[min(max(k, 0), n - 1)] += w
        rows.append(row)
    return like.new_tensor(rows)


def interpolate(input, size=None, scale_factor: float | Sequence[float] = None, mode="nearest", align_corners: bool = None, recompute_scale_factor: bool = None,
                antialias=False):
    """Tensor.interpolate(), and “area”, means of parts, and “bicubic”. @recompute_scale_factor: the scale is that of the sizes."""
    if antialias:
        raise NotImplementedError("interpolate: antialias: smooth the image first")
    factors = [scale_factor] * (input.ndim - 2) if isinstance(scale_factor, (int, float)) else scale_factor
    sizes = [size] * (input.ndim - 2) if isinstance(size, int) else size
    if factors is not None and (recompute_scale_factor or mode in ("area", "bicubic")):
        sizes = [floor(n * one) for n, one in zip(input.shape[2:], factors)]
    if mode == "area":
        return getattr(input, f"adaptive_avg_pool{input.ndim - 2}d")(*sizes)
    if mode != "bicubic":
        return input.interpolate(sizes, scale_factor if sizes is None else None, mode, bool(align_corners))
    if input.ndim != 4:
        raise InvalidError(f"interpolate: bicubic: images (B, C, Y, X) are wanted, not {input.shape}")
    scales = [1 / one for one in factors] if factors is not None and not recompute_scale_factor else [n / one for n, one in zip(input.shape[2:], sizes)]
    y, x = (cubic(*row, align_corners, input) for row in zip(input.shape[2:], sizes, scales))
    return y @ input @ x.transpose(0, 1)


def two(sizes, name):
    """One number for both directions, or one for each."""
    sizes = tuple(sizes) if isinstance(sizes, (list, tuple)) else (sizes, sizes)
    if len(sizes) != 2:
        raise InvalidError(f"{name}: {sizes} are not 2 sizes")
    return sizes


def pixel_shuffle(input, upscale_factor: int):
    """(…, C r², Y, X) as (…, C, Y r, X r)."""
    *more, c, y, x = input.shape
    r = upscale_factor
    if r < 1 or c % (r * r) != 0:
        raise InvalidError(f"pixel_shuffle: {c} channels in squares of {r}")
    return input.reshape(-1, c // (r * r), r, r, y, x).permute(0, 1, 4, 2, 5, 3).reshape(*more, c // (r * r), y * r, x * r)


def pixel_unshuffle(input, downscale_factor: int):
    """(…, C, Y r, X r) as (…, C r², Y, X)."""
    *more, c, y, x = input.shape
    r = downscale_factor
    if r < 1 or y % r != 0 or x % r != 0:
        raise InvalidError(f"pixel_unshuffle: an image of {y} times {x} in squares of {r}")
    return input.reshape(-1, c, y // r, r, x // r, r).permute(0, 1, 3, 5, 2, 4).reshape(*more, c * r * r, y // r, x // r)


def channel_shuffle(input, groups: int):
    """Channels of groups in turn: (B, G C, …) with axes G and C exchanged."""
    b, c, *rest = input.shape
    if groups < 1 or c % groups != 0:
        raise InvalidError(f"channel_shuffle: {c} channels in {groups} groups")
    return input.reshape(b, groups, c // groups, *rest).transpose(1, 2).reshape(input.shape)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of images (B, C, Y, X) as columns (B, C KY KX, L)."""
    if input.ndim == 3:
        return unfold(input.unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0)
    kernel_size, dilation, padding, stride = (two(one, "unfold") for one in (kernel_size, dilation, padding, stride))
    windows = input.pad((padding[1], padding[1], padding[0], padding[0]))
    for axis, size, apart, step in zip((2, 3), kernel_size, dilation, stride):
        windows = windows.unfold(axis, (size - 1) * apart + 1, step)[..., ::apart]
    b, c, y, x, ky, kx = windows.shape
    return windows.permute(0, 1, 4, 5, 2, 3).reshape(b, c * ky * kx, y * x)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Images of columns as of unfold(), whose overlaps add up."""
    if input.ndim == 2:
        return fold(input.unsqueeze(0), output_size, kernel_size, dilation, padding, stride).squeeze(0)
    output_size, kernel_size, dilation, padding, stride = (two(one, "fold") for one in (output_size, kernel_size, dilation, padding, stride))
    n, room = prod(kernel_size), [output + 2 * pad - apart * (size - 1) - 1
                                  for output, pad, apart, size in zip(output_size, padding, dilation, kernel_size)]
    places = [one // step + 1 for one, step in zip(room, stride)]
    if input.shape[1] % n != 0 or prod(places) != input.shape[2] or min(room) < 0:
        raise InvalidError(f"fold: {input.shape} are no columns of windows {kernel_size} of images {output_size}")
    c = input.shape[1] // n
    spread = Tensor.eye(n, dtype=input.dtype, device=input.device).reshape(n, 1, *kernel_size).repeat(c, 1, 1, 1)
    rest = [one - (place - 1) * step for one, place, step in zip(room, places, stride)]
    return input.reshape(input.shape[0], input.shape[1], *places).conv_transpose2d(spread, None, stride, padding, rest, c, dilation)


def lp_pool(n):
    def function(input, norm_type: float, kernel_size, stride=None, ceil_mode=False):
        size = prod(kernel_size) if isinstance(kernel_size, (list, tuple)) else kernel_size ** n
        from ..composed import rounded, wide  # which few programs need
        powers = wide(input).pow(norm_type)
        pool = powers.avg_pool1d if n == 1 else powers.avg_pool2d
        mean = pool(kernel_size, stride, 0, ceil_mode)
        return rounded((mean.sign() * mean.abs().relu() * size).pow(1.0 / norm_type), input)
    function.__name__ = f"lp_pool{n}d"
    function.__doc__ = "The norm of each window."
    return function


lp_pool1d, lp_pool2d = lp_pool(1), lp_pool(2)


def centres(n, align_corners, like):
    """Where the elements of an axis of @n are, from -1 to 1."""
    if n == 1:
        return like.new_zeros(1)
    last = 1.0 if align_corners else (n - 1) / n
    return Tensor.linspace(-last, last, n, dtype=like.dtype, device=like.device)


def affine_grid(theta, size: Sequence[int], align_corners=False):
    """The places of grid_sample() that matrices (B, 2, 3) move images of sizes (B, C, Y, X) to: (B, Y, X, 2)."""
    if theta.ndim != 3 or theta.shape[1:] != (2, 3) or len(size) != 4:
        raise InvalidError(f"affine_grid: matrices (B, 2, 3) and four sizes are wanted, not {theta.shape} and {tuple(size)}")
    y, x = Tensor.meshgrid(*(centres(n, align_corners, theta) for n in size[2:]))
    places = Tensor.stack([x, y, x.ones_like()], dim=-1).reshape(1, -1, 3)
    return (places @ theta.transpose(1, 2)).reshape(theta.shape[0], *size[2:], 2)


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners: bool = None):
    """Images (B, C, Y, X) at places (B, Y', X', 2) from -1 to 1, x before y: (B, C, Y', X'). Outside are zeros, or the border."""
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border"):
        raise InvalidError(f"grid_sample: mode “{mode}” with padding “{padding_mode}”: there are bilinear and nearest, zeros and border")
    if input.ndim != 4 or grid.ndim != 4 or grid.shape[-1] != 2 or grid.shape[0] != input.shape[0]:
        raise InvalidError(f"grid_sample: images (B, C, Y, X) and places (B, Y, X, 2) are wanted, not {input.shape} and {grid.shape}")
    b, c, *sizes = input.shape
    flat = input.reshape(b, c, -1)

    def position(axis, n):
        place = grid[..., 1 - axis]
        place = (place + 1) * ((n - 1) / 2) if align_corners else ((place + 1) * n - 1) / 2
        return place.clamp(0, n - 1) if padding_mode == "border" else place

    def pick(y, x):
        """The elements at whole places; zeros outside."""
        inside = (y >= 0).logical_and(y < sizes[0]).logical_and(x >= 0).logical_and(x < sizes[1])
        at = y.clamp(0, sizes[0] - 1).int() * sizes[1] + x.clamp(0, sizes[1] - 1).int()
        found = flat.gather(2, at.reshape(b, 1, -1).expand(b, c, at[0].numel())).reshape(b, c, *at.shape[1:])
        return inside.unsqueeze(1).where(found, 0.0)

    y, x = (position(axis, n) for axis, n in enumerate(sizes))
    if mode == "nearest":
        return pick(y.round(), x.round())
    top, left = y.floor().detach(), x.floor().detach()
    down, right = (y - top).unsqueeze(1), (x - left).unsqueeze(1)
    upper = pick(top, left).lerp(pick(top, left + 1), right)
    return upper.lerp(pick(top + 1, left).lerp(pick(top + 1, left + 1), right), down)


def upsample(input, size=None, scale_factor: float | Sequence[float] = None, mode="nearest", align_corners: bool = None):
    """interpolate()."""
    return interpolate(input, size, scale_factor, mode, align_corners)


# ---- losses ----
def reduced(loss, reduction):
    if reduction not in ("mean", "sum", "none"):
        raise InvalidError(f"a reduction “{reduction}” is none of mean, sum, none")
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[int], target_lengths: Tensor | Sequence[int], blank=0, reduction="mean",
             zero_infinity=False):
    """Minus the logarithm of how probable @targets are, as a sum over all ways in which they can lie in the steps of @log_probs, T, N, C or T, C, with
    @blank between them (Graves et al. 2006). @targets are N, S, or all one after the other. "mean" is of losses over the targets' lengths; @zero_infinity: no
    loss, and no gradient, where the targets do not fit into the steps."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"ctc_loss: reduction: none, mean or sum is wanted, not {reduction!r:.60}")
    is_one = log_probs.ndim == 2
    if not is_one and log_probs.ndim != 3:
        raise InvalidError(f"ctc_loss: log_probs: a tensor (T, N, C) or (T, C) is wanted, not {log_probs.shape}")
    rows = log_probs.unsqueeze(1) if is_one else log_probs
    steps, n, classes = rows.shape
    ends = [one.flatten().tolist() if isinstance(one, Base) else [one] if isinstance(one, int) else list(one) for one in (input_lengths, target_lengths)]
    for name, lengths, most in (("input_lengths", ends[0], steps), ("target_lengths", ends[1], targets.numel())):
        if len(lengths) != n or not all(isinstance(one, int) and 0 <= one <= most for one in lengths):
            raise InvalidError(f"ctc_loss: {name}: {n} lengths from 0 to {most} are wanted, not {lengths!r:.60}")
    if not 0 <= blank < classes:
        raise InvalidError(f"ctc_loss: blank: one of {classes} classes is wanted, not {blank}")
    longest = max(ends[1], default=0)
    flat = targets.detach().flatten().tolist()
    is_joined = targets.ndim == 1 and not (is_one or n == 1)
    starts = [sum(ends[1][:i]) if is_joined else i * (len(flat) // n) for i in range(n)]
    if any(end > (len(flat) - start if is_joined else len(flat) // n) for start, end in zip(starts, ends[1])):
        raise InvalidError(f"ctc_loss: targets: {targets.shape} hold less than the lengths {ends[1]!r:.60}")
    words = [flat[start:start + end] for start, end in zip(starts, ends[1])]
    if any(not 0 <= one < classes for word in words for one in word):
        raise InvalidError(f"ctc_loss: targets: numbers of {classes} classes are wanted")
    # Blanks around all: place 2 i + 1 has target i. What skips a blank comes from another class. A sum begins at place 0, before the first step.
    places = [[blank] + [one for target in word + [blank] * (longest - len(word)) for one in (target, blank)] for word in words]
    skips = [[0.0 if i % 2 and i > 1 and place[i] != place[i - 2] else float("-inf") for i in range(len(place))] for place in places]
    width, dtype, device = 2 * longest + 1, rows.dtype, rows.device
    index, skip = Tensor(places, dtype="int32", device=device).reshape(n, width), Tensor(skips, dtype=dtype, device=device).reshape(n, width)
    emitted = rows.gather(2, index.unsqueeze(0).expand(steps, n, width))
    never = Tensor.full((n, width), float("-inf"), dtype=dtype, device=device)
    ended = Tensor(ends[0], dtype="int32", device=device).unsqueeze(1)
    alpha = Tensor([[0.0] + [float("-inf")] * (width - 1)] * n, dtype=dtype, device=device).reshape(n, width)
    for t in range(steps):
        before = [alpha, Tensor.cat([never[:, :1], alpha[:, :-1]], dim=1), Tensor.cat([never[:, :2], alpha[:, :-2]], dim=1) + skip]
        alpha = (ended > t).where(log_sum(before) + emitted[t], alpha).contiguous()  # else each step is computed again in those after it
    last = Tensor([[2 * one - 1, 2 * one] if one else [0, 0] for one in ends[1]], dtype="int32", device=device).reshape(n, 2)
    both = alpha.gather(1, last)
    is_empty = Tensor([not one for one in ends[1]], dtype="bool", device=device)
    loss = -is_empty.where(both[:, 0], log_sum([both[:, 0], both[:, 1]]))
    if zero_infinity:
        loss = (loss == float("inf")).where(0.0, loss)
    if reduction == "mean":
        loss = (loss / Tensor([max(one, 1) for one in ends[1]], dtype=dtype, device=device)).mean()
    return loss.sum() if reduction == "sum" else loss.squeeze(0) if is_one and reduction == "none" else loss


def log_sum(parts: Sequence[Tensor]):
    """log of the sum of what @parts are the logarithms of; -infinity, with a gradient of 0, where all are."""
    largest = parts[0]
    for one in parts[1:]:
        largest = largest.maximum(one)
    nothing = largest == float("-inf")
    shift = nothing.where(0.0, largest).detach()
    total = sum((one - shift).exp() for one in parts)
    return nothing.where(float("-inf"), nothing.where(1.0, total).log() + shift)


def multi_margin_loss(input, target, p=1, margin: float = 1.0, weight=None, reduction="mean"):
    """The mean over classes of max (0, @margin - input[target] + input[class]) ** @p, but for the target's own. 0 of a target that is no class."""
    scores, labels = (input.unsqueeze(0), target.reshape(1)) if input.ndim == 1 else (input, target)
    n = scores.shape[1]
    is_it = named_as("multi_margin_loss", labels.one_hot, n) == 1
    loss = (margin - is_it.where(scores, 0.0).sum(1, keepdim=True) + scores).relu() ** p
    loss = loss if weight is None else loss * is_it.where(weight, 0.0).sum(1, keepdim=True)
    loss = (is_it.logical_not() & is_it.any(1, keepdim=True)).where(loss, 0.0).sum(1) / n
    return reduced(loss.squeeze(0) if input.ndim == 1 else loss, reduction)


def multilabel_margin_loss(input, target, reduction="mean"):
    """The mean over classes of max (0, 1 - input[of a target] + input[of what is none]), for each of the targets in a row, which end at the first below 0."""
    rows, labels = (input.unsqueeze(0), target.unsqueeze(0)) if input.ndim == 1 else (input, target)
    n = rows.shape[1]
    is_one = (labels < 0).cast("int32").cumsum(1) == 0
    classes = Tensor.arange(n, device=rows.device)
    others = ((labels.unsqueeze(2) == classes) & is_one.unsqueeze(2)).any(1).logical_not()
    loss = (1 - rows.gather(1, labels.clamp(0)).unsqueeze(2) + rows.unsqueeze(1)).relu()
    loss = (is_one.unsqueeze(2) & others.unsqueeze(1)).where(loss, 0.0).sum((1, 2)) / n
    return reduced(loss.squeeze(0) if input.ndim == 1 else loss, reduction)


def rrelu(input, lower: float = 1 / 8, upper: float = 1 / 3, training=False, inplace=False):
    """leaky_relu() with slopes by chance where it is @training, else with their mean."""
    slope = Tensor.uniform(*input.shape, low=lower, high=upper, dtype=input.dtype, device=input.device) if training else (lower + upper) / 2
    return placed(input, (input >= 0).where(input, input * slope), inplace, "rrelu")


def multilabel_soft_margin_loss(input, target, weight=None, reduction="mean"):
    """The mean over classes of the loss of a score for each."""
    loss = -(target * input.logsigmoid() + (1 - target) * (-input).logsigmoid())
    return reduced((loss if weight is None else loss * weight).mean(-1), reduction)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function: Callable[[Tensor, Tensor], Tensor] = None, margin: float = 1.0, swap=False, reduction="mean"):
    """max (0, near - far + @margin) of distances by a function."""
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    far = far.minimum(distance(positive, negative)) if swap else far
    return reduced((near - far + margin).relu(), reduction)


explain_all(globals())


# ---- methods ----
def placed(input, result, inplace, name):
    if not inplace:
        return result
    from ..in_place import put
    return put(input, result, name + "_")


def __getattr__(name):
    own = NAMES.get(name, name)
    found = getattr(Tensor, own, None) if not name.startswith("__") else None
    if found is None:
        raise AttributeError(f"tensors have no method {name}" + meant(name, [*globals(), *NAMES, *dir(Tensor)]), name=name)
    plain = next(vars(cls)[own] for cls in Tensor.__mro__ if own in vars(cls))
    if not isinstance(plain, (staticmethod, classmethod)):
        has_place = hasattr(Tensor, own + "_")
        found = explained(of_tensor(found, name, lambda input, result, inplace: placed(input, result, inplace and has_place, name)))
    globals()[name] = found
    return found
