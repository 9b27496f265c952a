# SPDX-License-Identifier: MIT
"""Pools, their inverse, and those to a size."""
import itertools

import torch.nn.functional as F

from harness import case, numbers, refuses

SHAPES = {1: (2, 3, 11), 2: (2, 3, 9, 8), 3: (1, 2, 5, 6, 4)}


def pool(name, shape, *arguments, **options):
    case(name, [shape], lambda x: getattr(x, name)(*arguments, **options), lambda x: getattr(F, name)(x, *arguments, **options),
         label=f"{shape} {arguments} {options}",
         gradient=False if 0 in shape else None)


def with_places(n, shape, *arguments, **options):
    name = f"max_pool{n}d_with_indices"
    case(name, [shape], lambda x: getattr(x, name)(*arguments, **options), lambda x: getattr(F, name)(x, *arguments, **options))


for n, kernel, stride, ceil in itertools.product((1, 2, 3), (1, 2, 3), (None, 1, 2), (False, True)):
    for padding in range(kernel // 2 + 1):
        pool(f"max_pool{n}d", SHAPES[n], kernel, stride, padding, ceil_mode=ceil)
        pool(f"avg_pool{n}d", SHAPES[n], kernel, stride, padding, ceil_mode=ceil)
        if padding:
            pool(f"avg_pool{n}d", SHAPES[n], kernel, stride, padding, ceil_mode=ceil, count_include_pad=False)
    if kernel > 1:
        with_places(n, SHAPES[n], kernel, stride, kernel // 2, ceil_mode=ceil)
for n in (1, 2, 3):
    pool(f"max_pool{n}d", SHAPES[n], 2, 1, 1, 2)
    pool(f"max_pool{n}d", SHAPES[n][1:], 2)
    pool(f"avg_pool{n}d", SHAPES[n][1:], 2)
pool("max_pool2d", SHAPES[2], (3, 2), (1, 2), (1, 0), (1, 2))
pool("avg_pool2d", SHAPES[2], (3, 2), (1, 2), (1, 0))
pool("avg_pool2d", SHAPES[2], 3, 2, 1, divisor_override=5)
pool("avg_pool3d", SHAPES[3], 2, divisor_override=3)
pool("max_pool2d", (0, 3, 8, 8), 2)
for n, size in itertools.product((1, 2, 3), (1, 2, 3, 4)):
    pool(f"adaptive_avg_pool{n}d", SHAPES[n], size)
    pool(f"adaptive_max_pool{n}d", SHAPES[n], size)
pool("adaptive_avg_pool2d", (3, 7, 7), (2, 3))
pool("adaptive_max_pool2d", (3, 7, 7), (7, 5))
for options in ({"kernel_size": 2}, {"kernel_size": 2, "stride": 1}, {"kernel_size": (2, 3), "stride": 3}, {"kernel_size": 3, "stride": 2, "padding": 1}):
    image = numbers((2, 2, 6, 7))
    case("max_unpool2d", [image], lambda x, o=options: x.max_pool2d_with_indices(**o)[0].max_unpool2d(
        x.max_pool2d_with_indices(**o)[1], output_size=(6, 7), **o) if o.get("stride", 9) >= 3 else x.max_pool2d(**o),
        lambda x, o=options: F.max_unpool2d(*F.max_pool2d_with_indices(x, **o), output_size=(6, 7), **o)
        if o.get("stride", 9) >= 3 else F.max_pool2d(x, **o), label=str(options))
for options in ({"kernel_size": 0}, {"kernel_size": 2, "stride": -1}, {"kernel_size": 2, "padding": 2}, {"kernel_size": 9},
                {"kernel_size": (2, 2), "stride": (1, 1, 1)}):
    refuses("max_pool2d", [(1, 1, 4, 4)], lambda x, o=options: x.max_pool2d(**o), lambda x, o=options: F.max_pool2d(x, **o), label=str(options))
    refuses("avg_pool2d", [(1, 1, 4, 4)], lambda x, o=options: x.avg_pool2d(**o), lambda x, o=options: F.avg_pool2d(x, **o), label=str(options))
refuses("max_pool2d", [(4, 4)], lambda x: x.max_pool2d(2), lambda x: F.max_pool2d(x, 2))
