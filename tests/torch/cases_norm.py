# SPDX-License-Identifier: MIT
"""Normalisations, lengths, and attention."""
import itertools

import torch
import torch.nn.functional as F

from harness import case, each, numbers, refuses

for shape, training, eps in itertools.product([(4, 3), (2, 3, 5), (2, 3, 4, 5), (2, 3, 2, 2, 3)], (False, True), (1e-5, 1e-2)):
    mean, var = numbers((3,)), numbers((3,), 0.5, 2)
    case("batch_norm", [shape, (3,), (3,)],
         lambda x, w, b, t=training, e=eps, m=mean, v=var: x.batch_norm(type(x)(m), type(x)(v), w, b, t, e),
         lambda x, w, b, t=training, e=eps, m=mean, v=var: F.batch_norm(
             x, torch.tensor(m).to(x.dtype), torch.tensor(v).to(x.dtype), w, b, t, 0.1, e), label=f"{shape} {training} {eps}")
    if len(shape) > 2:
        case("instance_norm", [shape, (3,), (3,)], lambda x, w, b, e=eps: x.instance_norm(weight=w, bias=b, eps=e),
             lambda x, w, b, e=eps: F.instance_norm(x, weight=w, bias=b, eps=e))
for groups, shape in itertools.product((1, 2, 3, 6), [(2, 6), (2, 6, 4), (3, 6, 4, 2)]):
    if shape == (2, 6) and groups == 6:
        continue
    case("group_norm", [shape, (6,), (6,)], lambda x, w, b, g=groups: x.group_norm(g, w, b), lambda x, w, b, g=groups: F.group_norm(x, g, w, b))
    case("group_norm", [shape], lambda x, g=groups: x.group_norm(g), lambda x, g=groups: F.group_norm(x, g))
for shape, last in itertools.product([(4, 6), (2, 3, 6), (2, 3, 4, 6), (1, 5, 4, 6)], (1, 2)):
    tail = shape[-last:]
    case("layer_norm", [shape, tail, tail], lambda x, w, b, n=tail: x.layer_norm(n, w, b), lambda x, w, b, n=tail: F.layer_norm(x, n, w, b))
    case("layer_norm", [shape, tail], lambda x, w, n=tail: x.layer_norm(n, w, eps=1e-3), lambda x, w, n=tail: F.layer_norm(x, n, w, eps=1e-3))
    case("layer_norm", [shape], lambda x, n=tail: x.layer_norm(n), lambda x, n=tail: F.layer_norm(x, n))
    case("rms_norm", [shape, tail], lambda x, w, n=tail: x.rms_norm(n, w, 1e-5),
         lambda x, w, n=tail: x * torch.rsqrt((x * x).mean(tuple(range(-len(n), 0)), keepdim=True) + 1e-5) * w)
    case("rms_norm", [shape], lambda x, n=tail: x.rms_norm(n),
         lambda x, n=tail: x * torch.rsqrt((x * x).mean(tuple(range(-len(n), 0)), keepdim=True) + 2.0 ** -23))
def layernorm(x, axis, eps=1e-5):
    """tinygrad's, over any axes."""
    return (x - x.mean(axis, keepdim=True)) / (x.var(axis, unbiased=False, keepdim=True) + eps).sqrt()


for shape, axis in (((4, 6), -1), ((2, 3, 6), 1), ((2, 3, 6), (0, 2)), ((2, 3, 4), (-1, -2)), ((5,), 0), ((3, 1), 1), ((0, 3), 1)):
    case("layernorm", [shape], lambda x, a=axis: x.layernorm(a), lambda x, a=axis: layernorm(x, a))
    case("layernorm", [shape], lambda x, a=axis: x.layernorm(axis=a, eps=0.1), lambda x, a=axis: layernorm(x, a, 0.1), label=f"{shape} {axis} 0.1")
case("layernorm", [numbers((3, 8)).astype("float16")], lambda x: x.layernorm(), lambda x: layernorm(x.float(), -1).half(), gradient=False)
refuses("layernorm", [(3, 4)], lambda x: x.layernorm(2), lambda x: layernorm(x, 2))
for shape, axis in (((4, 3), 1), ((2, 3, 5), 1), ((2, 3, 4, 5), 1), ((2, 3, 4), (0, 2)), ((3, 4), (0, 1)), ((2, 5, 3), -1)):
    kept = [shape[a] for a in ((axis,) if isinstance(axis, int) else axis)]
    dims = [n if i in (axis if isinstance(axis, tuple) else (axis % len(shape),)) else 1 for i, n in enumerate(shape)]
    case("batchnorm", [shape] + [tuple(kept)] * 4, lambda x, w, b, m, v, a=axis: x.batchnorm(w, b, m, v, a),
         lambda x, w, b, m, v, d=dims: (x - m.reshape(d)) * v.reshape(d) * w.reshape(d) + b.reshape(d))
    case("batchnorm", [shape] + [tuple(kept)] * 2, lambda x, m, v, a=axis: x.batchnorm(None, None, m, v, axis=a),
         lambda x, m, v, d=dims: (x - m.reshape(d)) * v.reshape(d))
refuses("batchnorm", [(2, 3, 4), (4,), (3,)], lambda x, m, v: x.batchnorm(None, None, m, v), lambda x, m, v: x - m.reshape(1, 3, 1))
for size, shape in itertools.product((1, 2, 3, 5), [(2, 6, 4), (1, 4, 3, 3)]):
    case("local_response_norm", [shape], lambda x, s=size: x.local_response_norm(s, 0.1, 0.75, 1.5),
         lambda x, s=size: F.local_response_norm(x, s, 0.1, 0.75, 1.5))
for p, axis in itertools.product((1, 2, 3, 0.5, 0, float("inf"), float("-inf"), -1), (0, 1, -1)):
    case("norm", [(4, 5, 3)], lambda x, p=p, a=axis: x.norm(p, a), lambda x, p=p, a=axis: torch.linalg.vector_norm(x, p, a), low=0.2, gradient=p != 0, label=f"{p} {axis}")
    case("norm", [(4, 5, 3)], lambda x, p=p, a=axis: x.norm(p, a, keepdim=True),
         lambda x, p=p, a=axis: torch.linalg.vector_norm(x, p, a, keepdim=True), low=0.2, high=0.9, gradient=p != 0, label=f"{p} {axis} kept")
each("norm", [(3, 4), (5,), ()], lambda x: x.norm(), lambda x: torch.linalg.vector_norm(x))
case("norm", [numbers((2, 3)) * 0], lambda x: x.norm(2, 1), lambda x: torch.linalg.vector_norm(x, 2, 1))
for p, axis in itertools.product((1, 2, 3), (0, 1, -1)):
    case("normalize", [(4, 5, 3)], lambda x, p=p, a=axis: x.normalize(p, a), lambda x, p=p, a=axis: F.normalize(x, p, a), low=0.1)
refuses("layer_norm", [(3, 4)], lambda x: x.layer_norm((3,)), lambda x: F.layer_norm(x, (3,)))
refuses("layer_norm", [(3, 4), (3,)], lambda x, w: x.layer_norm((4,), w), lambda x, w: F.layer_norm(x, (4,), w))
refuses("group_norm", [(2, 6)], lambda x: x.group_norm(4), lambda x: F.group_norm(x, 4))
refuses("batch_norm", [(2, 6), (5,), (5,)], lambda x, m, v: x.batch_norm(m, v), lambda x, m, v: F.batch_norm(x, m, v))


def attention(q, k, v, mask=None, is_causal=False, scale=None):
    """PyTorch's reference; 1.13 has it under another name and without scale."""
    scale = scale or q.shape[-1] ** -0.5
    scores = q @ k.transpose(-2, -1) * scale
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    return torch.softmax(scores, -1) @ v


SIZES = [[(3, 4), (5, 4), (5, 2)], [(2, 3, 4), (2, 5, 4), (2, 5, 4)], [(2, 3, 6, 8), (2, 3, 6, 8), (2, 3, 6, 8)],
         [(2, 2, 3, 4), (2, 2, 7, 4), (2, 2, 7, 5)], [(1, 4, 3, 4), (2, 1, 5, 4), (2, 1, 5, 4)], [(2, 1, 4), (2, 9, 4), (2, 9, 4)]]
for shapes in SIZES:
    for options in ({}, {"is_causal": True}, {"scale": 0.3}):
        case("scaled_dot_product_attention", shapes, lambda q, k, v, o=options: q.scaled_dot_product_attention(k, v, **o),
             lambda q, k, v, o=options: attention(q, k, v, **o), label=f"{shapes} {options}")
    scores = (shapes[0][-2], shapes[1][-2])
    case("scaled_dot_product_attention", shapes + [scores], lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m),
         lambda q, k, v, m: attention(q, k, v, m))
    seen = numbers(scores, dtype="bool", seed=3)
    seen[..., 0] = True
    case("scaled_dot_product_attention", shapes + [seen], lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m),
         lambda q, k, v, m: attention(q, k, v, m))
for heads, shared in ((4, 2), (6, 3), (4, 1), (4, 4)):
    case("scaled_dot_product_attention", [(2, heads, 5, 4), (2, shared, 5, 4), (2, shared, 5, 3)],
         lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True, enable_gqa=True),
         lambda q, k, v, n=heads // shared: attention(q, k.repeat_interleave(n, 1), v.repeat_interleave(n, 1), is_causal=True))
refuses("scaled_dot_product_attention", [(3, 4), (5, 3), (5, 2)], lambda q, k, v: q.scaled_dot_product_attention(k, v), lambda q, k, v: attention(q, k, v))
