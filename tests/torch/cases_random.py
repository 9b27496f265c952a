# SPDX-License-Identifier: MIT
"""Random numbers beside an implementation of their own: threefry2x32 with 20 rounds (Salmon et al. 2011) in NumPy, with the
seed as key and (element, number of the draw) as counter. So every backend has to draw the same."""
import math

import numpy
import torch

from harness import case, numbers, refuses
from tinycore import Tensor, dtypes

SEED = 2**40 + 12345


def threefry(key, counter):
    keys = [*key, 0x1BD11BDA ^ key[0] ^ key[1]]
    with numpy.errstate(over="ignore"):
        a, b = (numpy.asarray(c, numpy.uint32) + numpy.uint32(k) for c, k in zip(counter, keys))
        for four in range(5):
            for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[four % 2]:
                a = a + b
                b = (b << numpy.uint32(turn) | b >> numpy.uint32(32 - turn)) ^ a
            a = a + numpy.uint32(keys[(four + 1) % 3])
            b = b + numpy.uint32(keys[(four + 2) % 3]) + numpy.uint32(four + 1)
    return a, b


def bits(shape, draw=0):
    n = math.prod(shape)
    return [x.reshape(shape) for x in threefry((SEED % 2**32, SEED >> 32), (numpy.arange(n), numpy.full(n, draw)))]


def unit(shape, draw=0, n_bits=24):
    return (bits(shape, draw)[0] >> numpy.uint32(32 - n_bits)) / 2.0**n_bits


def given(array):
    return torch.from_numpy(numpy.array(array))


def uniform(shape, low, high):
    return given(low + (high - low) * unit(shape)).float()


def randn(shape):
    return given(numpy.sqrt(-2 * numpy.log(1 - unit(shape))) * numpy.cos(2 * math.pi * unit(shape, 1))).float()


def drawn(function):
    """What @function draws after the seed."""
    def seeded(*inputs):
        Tensor.manual_seed(SEED)
        return function(*inputs)
    return seeded


def draws(operation, inputs, ours, theirs, **options):
    case(operation, inputs, drawn(ours), theirs, gradient=False, **{"forward": 2e-6, **options})


def fans(shape):
    return math.prod(shape[1:]), math.prod(shape[1:]) + shape[0]


assert [int(x) for x in threefry((0, 0), (0, 0))] == [0x6B200159, 0x99BA4EFE]  # of the paper's known answers
for shape in ((), (0,), (1,), (7,), (3, 0, 2), (4, 5, 6)):
    label = str(shape)
    draws("random_bits", [], lambda s=shape: Tensor.random_bits(*s).bitcast(dtypes.int32), lambda s=shape: given(bits(s)[0].view("int32")), label=label)
    draws("rand", [], lambda s=shape: Tensor.rand(*s), lambda s=shape: uniform(s, 0, 1), label=label)
    draws("rand", [], lambda s=shape: Tensor.rand(*s, dtype=dtypes.float16), lambda s=shape: given(unit(s, 0, 11)).half(), label=label + " f16")
    draws("uniform", [], lambda s=shape: Tensor.uniform(*s, low=-3, high=5), lambda s=shape: uniform(s, -3, 5), label=label)
    draws("randn", [], lambda s=shape: Tensor.randn(*s), lambda s=shape: randn(s), label=label)
    draws("normal", [], lambda s=shape: Tensor.normal(*s, mean=2, std=3), lambda s=shape: 2 + 3 * randn(s), forward=6e-6, label=label)
    draws("rand_like", [numbers(shape)], lambda x: x.rand_like(), lambda x: uniform(tuple(x.shape), 0, 1))
    draws("randn_like", [numbers(shape)], lambda x: x.randn_like(), lambda x: randn(tuple(x.shape)))
    for low, high in ((0, 10), (-5, 3), (7, 8), (-2**30, 2**30)):
        draws("randint", [], lambda s=shape, l=low, h=high: Tensor.randint(*s, low=l, high=h, dtype=dtypes.int64),
              lambda s=shape, l=low, h=high: given(l + bits(s)[0].astype("int64") * (h - l) // 2**32), label=f"{shape} {low} {high}")
    for p in (0.1, 0.5, 0.9, 1.0):
        case("dropout", [shape], drawn(lambda x, p=p: x.dropout(p, training=True)),
             lambda x, p=p: torch.where(given(unit(tuple(x.shape)) > numpy.float32(p)), x / max(1 - p, 1e-30), torch.zeros((), dtype=x.dtype)))
    draws("bernoulli", [numbers(shape, 0, 1)], lambda x: x.bernoulli(), lambda x: (given(unit(tuple(x.shape))) < x).to(x.dtype))
for shape in ((5,), (4, 6), (3, 2, 3, 3)):
    fan_in, both = fans(shape)
    bounds = {"scaled_uniform": 1 / math.sqrt(math.prod(shape)), "glorot_uniform": math.sqrt(6 / both), "kaiming_uniform": math.sqrt(6 / 1.0001 / fan_in)}
    for name, bound in bounds.items():
        draws(name, [], lambda s=shape, n=name: getattr(Tensor, n)(*s), lambda s=shape, b=bound: uniform(s, -b, b), label=str(shape))
    draws("kaiming_normal", [], lambda s=shape: Tensor.kaiming_normal(*s), lambda s=shape, f=fan_in: math.sqrt(2 / 1.0001 / f) * randn(s), forward=6e-6, label=str(shape))


def multinomial(weights, n, replacement):
    w = weights.double().numpy()
    if replacement:
        at = unit(w.shape[:-1] + (n,)) * w.sum(-1, keepdims=True)
        found = (numpy.cumsum(w, -1)[..., None, :] <= at[..., None]).sum(-1)
    else:
        found = numpy.argsort(-numpy.log1p(-unit(w.shape)) / numpy.maximum(w, 1e-300), -1, "stable")[..., :n]
    return torch.from_numpy(found.astype("int32"))


for shape in ((6,), (3, 9)):
    for replacement in (False, True):
        for n in (1, 4):
            draws("multinomial", [numbers(shape, 0.1, 1)], lambda w, n=n, r=replacement: w.multinomial(n, r),
                  lambda w, n=n, r=replacement: multinomial(w, n, r), label=f"{shape} {n} {replacement}")
for n in (0, 1, 2, 5, 100, 257):
    draws("randperm", [], lambda n=n: Tensor.randperm(n).sort()[0], lambda n=n: torch.arange(n, dtype=torch.int32), label=str(n))
refuses("rand", [], lambda: Tensor.rand(-1), lambda: torch.rand(-1))
refuses("randint", [], lambda: Tensor.randint(3, low=5, high=5), lambda: torch.randint(5, 5, (3,)))
refuses("normal", [], lambda: Tensor.normal(3, std=-1), lambda: torch.normal(0.0, -1.0, (3,)))
refuses("multinomial", [(3, 2)], lambda w: w.multinomial(5), lambda w: w.abs().multinomial(5))
refuses("dropout", [(3,)], lambda x: x.dropout(1.5), lambda x: torch.nn.functional.dropout(x, 1.5))
