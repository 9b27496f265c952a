# SPDX-License-Identifier: MIT
"""Convolutions and their transposes, in one to three directions."""
import itertools

import torch.nn.functional as F

from harness import case, numbers, refuses


def conv(n, shapes, **options):
    """Of an image, a weight and perhaps a bias."""
    name = f"conv{n}d"
    theirs = getattr(F, name)
    case(name, shapes, lambda *x: getattr(x[0], name)(*x[1:], **options), lambda *x: theirs(*x, **options), low=-1.0, high=1.0,
         gradient=False if isinstance(shapes[0], tuple) and 0 in shapes[0] else None)


def transposed(n, shapes, **options):
    name = f"conv_transpose{n}d"
    theirs = getattr(F, name)
    case(name, shapes, lambda *x: getattr(x[0], name)(*x[1:], **options), lambda *x: theirs(*x, **options), low=-1.0, high=1.0)


for stride, padding, dilation, groups in itertools.product((1, 2, 3), (0, 1, 2), (1, 2), (1, 2)):
    conv(2, [(2, 4, 9, 8), (6, 4 // groups, 3, 2), (6,)], stride=stride, padding=padding, dilation=dilation, groups=groups)
for stride, padding, dilation, groups in itertools.product((1, 3), (0, 2), (1, 2), (1, 3)):
    conv(1, [(2, 3, 11), (6, 3 // groups, 3), (6,)], stride=stride, padding=padding, dilation=dilation, groups=groups)
    transposed(1, [(2, 3, 5), (3, 2, 4), (2 * groups,)], stride=stride, padding=padding, dilation=dilation, groups=groups)
for stride, padding, groups in itertools.product((1, 2), (0, 1), (1, 2)):
    conv(3, [(1, 2, 4, 5, 4), (4, 2 // groups, 2, 3, 2), (4,)], stride=stride, padding=padding, groups=groups)
    transposed(3, [(1, 2, 2, 3, 2), (2, 2, 2, 3, 2), (2 * groups,)], stride=stride, padding=padding, groups=groups)
for stride, padding, dilation, groups in itertools.product((1, 2, 3), (0, 1), (1, 2), (1, 2)):
    transposed(2, [(2, 4, 4, 3), (4, 3, 3, 2), (3 * groups,)], stride=stride, padding=padding, dilation=dilation, groups=groups)
for stride, more in ((2, 1), (3, 1), (3, 2), ((2, 3), (1, 2)), ((3, 2), (0, 1))):
    transposed(2, [(1, 2, 3, 4), (2, 2, 3, 3), (2,)], stride=stride, padding=1, output_padding=more)
for options in ({"stride": (2, 1)}, {"padding": (2, 0)}, {"dilation": (1, 3)}, {"stride": (3, 2), "padding": (0, 1), "dilation": (2, 1)}):
    conv(2, [(2, 3, 8, 9), (4, 3, 3, 2)], **options)
    transposed(2, [(2, 3, 4, 5), (3, 4, 3, 2)], **options)
conv(2, [(3, 7, 7), (2, 3, 3, 3), (2,)])
conv(1, [(3, 7), (2, 3, 3), (2,)])
conv(3, [(2, 4, 4, 4), (2, 2, 2, 2, 2)])
transposed(2, [(3, 4, 4), (3, 2, 2, 2), (2,)])
conv(2, [(1, 1, 1, 1), (1, 1, 1, 1)])
conv(2, [(1, 8, 6, 6), (8, 1, 3, 3)], groups=8, padding=1)
conv(2, [(0, 2, 5, 5), (3, 2, 3, 3)])
conv(2, [numbers((2, 3, 20, 20), -0.5, 0.5), numbers((8, 3, 5, 5), -0.5, 0.5), (8,)], padding=2)
case("conv2d", [(1, 2, 5, 6), (3, 2, 2, 3)], lambda x, w: x.conv2d(w, padding=(1, 2, 3, 0)),
     lambda x, w: F.conv2d(F.pad(x, (1, 2, 3, 0)), w), label="padding of each side")
for shapes in ([(1, 2, 4, 4), (2, 3, 2, 2)], [(1, 2, 4, 4), (2, 2, 5, 5)], [(1, 2, 4, 4), (2, 2, 2, 2), (3,)], [(4, 4), (2, 2, 2, 2)]):
    refuses("conv2d", shapes, lambda *x: x[0].conv2d(*x[1:]), lambda *x: F.conv2d(*x))
for options in ({"stride": 0}, {"padding": -1}, {"dilation": 0}, {"groups": 0}, {"groups": 3}, {"stride": (1, 1, 1)}):
    refuses("conv2d", [(1, 2, 6, 6), (2, 2, 3, 3)], lambda x, w, o=options: x.conv2d(w, **o),
            lambda x, w, o=options: F.conv2d(x, w, **o), label=str(options))
for options in ({"output_padding": 1}, {"output_padding": -1}, {"padding": 9}, {"groups": 4}):
    refuses("conv_transpose2d", [(1, 2, 3, 3), (2, 2, 3, 3)], lambda x, w, o=options: x.conv_transpose2d(w, **o),
            lambda x, w, o=options: F.conv_transpose2d(x, w, **o), label=str(options))
