# SPDX-License-Identifier: MIT
"""Pools, their inverse, those to a size, and images in other sizes."""
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
SHAPES = {"linear": (2, 2, 5), "bilinear": (1, 2, 4, 5), "trilinear": (1, 1, 3, 4, 2), "nearest": (2, 2, 4, 5), "nearest-exact": (2, 2, 4, 5)}
for mode, shape in SHAPES.items():
    for options in ({"size": 7}, {"size": 3}, {"size": 1}, {"scale_factor": 2}, {"scale_factor": 1.5}, {"scale_factor": 0.6}):
        for align in (False, True) if mode.endswith("linear") else (False,):
            case("interpolate", [shape], lambda x, o=options, m=mode, a=align: x.interpolate(mode=m, align_corners=a, **o),
                 lambda x, o=options, m=mode, a=align: F.interpolate(x, mode=m, align_corners=a if m.endswith("linear") else None, **o),
                 label=f"{shape} {mode} {align} {options}", forward=3e-6)  # differences of neighbours, to a tenth of what they are of
case("interpolate", [(1, 2, 6, 9)], lambda x: x.interpolate((3, 12), mode="bilinear"), lambda x: F.interpolate(x, (3, 12), mode="bilinear"))
case("interpolate", [(1, 1, 4, 4)], lambda x: x.interpolate(scale_factor=(2, 3)), lambda x: F.interpolate(x, scale_factor=(2, 3)))
refuses("interpolate", [(1, 1, 4, 4)], lambda x: x.interpolate(), lambda x: F.interpolate(x))
refuses("interpolate", [(1, 1, 4, 4)], lambda x: x.interpolate(3, mode="linear"), lambda x: F.interpolate(x, 3, mode="linear"))
refuses("interpolate", [(1, 1, 4, 4)], lambda x: x.interpolate(0), lambda x: F.interpolate(x, 0))
refuses("interpolate", [(4, 4)], lambda x: x.interpolate(2), lambda x: F.interpolate(x, 2))
for options in ({"kernel_size": 0}, {"kernel_size": 2, "stride": -1}, {"kernel_size": 2, "padding": 2}, {"kernel_size": 9},
                {"kernel_size": (2, 2), "stride": (1, 1, 1)}):
    refuses("max_pool2d", [(1, 1, 4, 4)], lambda x, o=options: x.max_pool2d(**o), lambda x, o=options: F.max_pool2d(x, **o), label=str(options))
    refuses("avg_pool2d", [(1, 1, 4, 4)], lambda x, o=options: x.avg_pool2d(**o), lambda x, o=options: F.avg_pool2d(x, **o), label=str(options))
refuses("max_pool2d", [(4, 4)], lambda x: x.max_pool2d(2), lambda x: F.max_pool2d(x, 2))
