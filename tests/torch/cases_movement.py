# SPDX-License-Identifier: MIT
"""Movement: other shapes, orders and parts of the same elements."""
import torch
import torch.nn.functional as F

from harness import case, each, numbers, refuses


def pairs_of(numbers):
    """Two for each axis, as pairs: one after the other they would be the last axis first."""
    return list(zip(numbers[::2], numbers[1::2]))


DTYPES = ("float64", "int32", "int64", "uint8", "bool")


def method(name, shape, *arguments, dtypes=DTYPES, theirs=None, **more):
    """The same method with the same arguments; other dtypes only move."""
    call = lambda a: getattr(a, name)(*arguments, **more)
    case(name, [shape], call, theirs)
    for dtype in dtypes[:2 if len(arguments) % 2 else 5]:
        case(name, [numbers(shape, -5, 5, dtype) if dtype != "uint8" else numbers(shape, 0, 9, dtype)], call, theirs,
             gradient=dtype == "float64")


for shape, to in (((3, 4), (4, 3)), ((3, 4), (2, -1)), ((2, 3, 4), (24,)), ((0, 3), (3, 0, 2)), ((), (1, 1)), ((1,), ()),
                  ((6,), (1, 2, 1, 3, 1)), ((4, 0), (-1, 4))):
    each("reshape", [shape], lambda a, to=to: a.reshape(to))
    case("reshape", [shape], lambda a, to=to: a.view(to))
refuses("reshape", [(3, 4)], lambda a: a.reshape(5, -1))
refuses("reshape", [(3, 4)], lambda a: a.reshape(-1, -1))
refuses("reshape", [(3, 4)], lambda a: a.reshape(2, 5))
refuses("reshape", [(0, 4)], lambda a: a.reshape(-1, 0))
for axes in ((0, 1, 2), (2, 0, 1), (-1, 0, 1), (1, 2, 0)):
    method("permute", (2, 3, 4), axes, dtypes=("int32",))
refuses("permute", [(2, 3)], lambda a: a.permute(0, 0))
refuses("permute", [(2, 3)], lambda a: a.permute(0))
for pair in ((0, 1), (-1, 0), (1, 1)):
    method("transpose", (2, 3, 4), *pair, dtypes=())
refuses("transpose", [(2, 3)], lambda a: a.transpose(0, 2))
for shape, to in (((3, 1), (3, 4)), ((3,), (2, 3)), ((1, 3), (-1, 3)), ((), (2, 2)), ((1, 0), (5, 0)), ((2, 1, 3), (4, 2, 5, 3))):
    method("expand", shape, to, dtypes=("int32",))
refuses("expand", [(3, 2)], lambda a: a.expand(3, 4))
refuses("expand", [(3, 2)], lambda a: a.expand(2))
for axes in ((0,), (1,), (0, 1), (-1,), (0, -1)):
    method("flip", (3, 4), axes, dtypes=("int64",))
case("flip", [(0, 3)], lambda a: a.flip(0, 1))
refuses("flip", [(3, 4)], lambda a: a.flip(0, 0))
refuses("flip", [(3, 4)], lambda a: a.flip(2))
for shape in ((1, 3, 1), (3,), (1,), (), (1, 0)):
    case("squeeze", [shape], lambda a: a.squeeze())
case("squeeze", [(1, 3, 1)], lambda a: a.squeeze(0))
case("squeeze", [(1, 3, 1)], lambda a: a.squeeze(1))
case("squeeze", [(1, 3, 1)], lambda a: a.squeeze((0, 2)), lambda a: a.squeeze(2).squeeze(0))
refuses("squeeze", [(1, 3)], lambda a: a.squeeze(2))
for dim in (0, 1, 2, -1, -3):
    method("unsqueeze", (3, 4), dim, dtypes=())
case("unsqueeze", [()], lambda a: a.unsqueeze(0))
refuses("unsqueeze", [(3, 4)], lambda a: a.unsqueeze(3))
for start, end in ((0, -1), (1, 2), (0, 1), (-2, -1), (1, 1)):
    method("flatten", (2, 3, 4), start, end, dtypes=("bool",))
case("flatten", [()], lambda a: a.flatten())
case("flatten", [(2, 0)], lambda a: a.ravel())
refuses("flatten", [(2, 3)], lambda a: a.flatten(1, 0))
for dim, sizes in ((0, (2, 3)), (1, (2, -1)), (-1, (1, 4)), (0, (6,)), (0, (-1, 1, 3))):
    method("unflatten", (6, 4), dim, sizes, dtypes=("int32",))
refuses("unflatten", [(6, 4)], lambda a: a.unflatten(0, (4, 2)))
refuses("unflatten", [(6, 4)], lambda a: a.unflatten(0, (-1, -1)))

# ---- padding: pairs of all axes here, PyTorch's order and last axes there ----
for shape, pairs in (((3,), (1, 2)), ((2, 3), (1, 0, 0, 2)), ((3, 4), (-1, 1, 2, -2)), ((2, 3, 4), (0, 0, 1, 1, 2, 0)),
                     ((0, 2), (1, 1, 0, 0)), ((4,), (-2, -2)), ((3,), (0, 0))):
    there = [p for i in reversed(range(len(shape))) for p in pairs[2 * i:2 * i + 2]]
    for value in (0.0, 1.5, float("-inf")):
        case("pad", [shape], lambda a, p=pairs, v=value: a.pad(pairs_of(p), value=v), lambda a, p=there, v=value: F.pad(a, p, value=v))
    for dtype in ("int32", "bool"):
        case("pad", [numbers(shape, 0, 9, dtype)], lambda a, p=pairs: a.pad(pairs_of(p), value=1), lambda a, p=there: F.pad(a, p, value=1))
for mode in ("reflect", "replicate", "circular"):
    for shape, pairs in (((2, 3, 5), (2, 3)), ((1, 2, 4), (0, 1)), ((1, 1, 5), (3, 0)), ((2, 1, 4), (0, 0))):
        case("pad", [shape], lambda a, p=pairs, m=mode: a.pad(pairs_of([0] * (2 * a.ndim - len(p)) + list(p)), mode=m),
             lambda a, p=pairs, m=mode: F.pad(a, p, mode=m))
    for pairs in ((1, 2, 2, 1), (0, 3, 1, 0), (2, 2, 0, 0)):
        case("pad", [(2, 3, 4, 5)], lambda a, p=pairs, m=mode: a.pad(p, mode=m),
             lambda a, p=pairs, m=mode: F.pad(a, p, mode=m))
for mode in ("reflect", "replicate"):
    for pairs in ((-1, 2), (2, -2), (-1, -1)):
        case("pad", [(1, 2, 5)], lambda a, p=pairs, m=mode: a.pad(p, mode=m),
             lambda a, p=pairs, m=mode: F.pad(a, p, mode=m))
refuses("pad", [(1, 2, 3)], lambda a: a.pad((3, 0), mode="reflect"), lambda a: F.pad(a, (3, 0), mode="reflect"))
refuses("pad", [(1, 2, 3)], lambda a: a.pad((4, 0), mode="circular"), lambda a: F.pad(a, (4, 0), mode="circular"))
refuses("pad", [(3,)], lambda a: a.pad([-2, -2]), lambda a: F.pad(a, (-2, -2)))
refuses("pad", [(3,)], lambda a: a.pad([1, 1], mode="mirror"), lambda a: F.pad(a, (1, 1), mode="mirror"))
case("pad_to", [(2, 3)], lambda a: a.pad_to([4, -1]), lambda a: F.pad(a, (0, 0, 0, 2)))
case("pad_to", [(2, 3)], lambda a: a.pad_to([2, 5], 7), lambda a: F.pad(a, (0, 2), value=7))
case("shrink_to", [(4, 3)], lambda a: a.shrink_to(2, -1), lambda a: a[:2])
case("shrink_to", [(4, 3)], lambda a: a.shrink_to(0, 3), lambda a: a[:0])
case("shrink", [(4, 3)], lambda a: a.shrink([(1, 3), (0, 2)]), lambda a: a[1:3, :2])
refuses("shrink", [(4, 3)], lambda a: a.shrink([(1, 5), (0, 2)]), lambda a: a.narrow(0, 1, 4))
for start, stop, step in ((0, 4, 1), (1, 9, 2), (-3, -1, 1), (3, 1, 1), (0, 7, 3)):
    case("slice", [(7, 2)], lambda a, s=(start, stop, step): a.slice(0, *s), lambda a, s=slice(start, stop, step): a[s])
for start, stop, step in ((-1, -9, -1), (5, 0, -2), (2, 5, -1)):
    case("slice", [(7, 2)], lambda a, s=(start, stop, step): a.slice(0, *s),
         lambda a, s=slice(start, stop, step): a[list(range(7))[s]])

# ---- parts ----
for shape, size, dim in (((7, 2), 3, 0), ((7, 2), [2, 5], 0), ((2, 6), 2, 1), ((2, 6), [1, 0, 5], -1), ((3,), 5, 0), ((0,), 2, 0)):
    method("split", shape, size, dim, dtypes=())
refuses("split", [(5,)], lambda a: a.split([2, 2]))
refuses("split", [(5,)], lambda a: a.split(0))
refuses("split", [(5,)], lambda a: a.split(-1))
for shape, n, dim in (((7, 2), 3, 0), ((6,), 3, 0), ((2, 5), 4, 1), ((2,), 5, 0), ((5, 1), 1, -2)):
    method("chunk", shape, n, dim, dtypes=("int32",))
refuses("chunk", [(5,)], lambda a: a.chunk(0))
for shape, dim in (((3, 2), 0), ((3, 2), -1), ((2, 0), 0)):
    method("unbind", shape, dim, dtypes=())
refuses("unbind", [()], lambda a: a.unbind())
for start, length in ((0, 2), (1, 3), (-2, 2), (4, 0), (0, 0), (-4, 4)):
    method("narrow", (4, 3), 0, start, length, dtypes=())
refuses("narrow", [(4, 3)], lambda a: a.narrow(0, 2, 3))
refuses("narrow", [(4, 3)], lambda a: a.narrow(0, 0, -1))
for dim, index in ((0, 0), (0, -1), (1, 2), (-1, -3)):
    method("select", (4, 3), dim, index, dtypes=("bool",))
refuses("select", [(4, 3)], lambda a: a.select(0, 4))
for shape, dim, size, step in (((7,), 0, 3, 2), ((7, 2), 0, 2, 1), ((2, 5), -1, 5, 1), ((4,), 0, 1, 3), ((3, 6), 1, 2, 3), ((4,), 0, 0, 1)):
    method("unfold", shape, dim, size, step, dtypes=("int32",))
refuses("unfold", [(4,)], lambda a: a.unfold(0, 5, 1))
refuses("unfold", [(4,)], lambda a: a.unfold(0, 2, 0))
for shape in ((3, 3), (2, 5), (5, 2), (0, 2)):
    for offset in (0, 1, -1, 4, -9):
        case("diagonal", [shape], lambda a, o=offset: a.diagonal(o))
        case("triu", [shape], lambda a, o=offset: a.triu(o))
        case("tril", [shape], lambda a, o=offset: a.tril(o))
        if 0 not in shape and abs(offset) < 2:  # beyond the edge PyTorch's gradient fails
            case("diag", [shape], lambda a, o=offset: a.diag(o))
for dims in ((0, 1), (1, 0), (-1, 0), (1, 2)):
    method("diagonal", (2, 3, 4), 0, *dims, dtypes=("int32",))
refuses("diagonal", [(2, 3)], lambda a: a.diagonal(0, 1, 1))
for n in (1, 3, 0):
    for offset in (0, 2, -1):
        case("diag", [(n,)], lambda a, o=offset: a.diag(o))
refuses("diag", [(2, 2, 2)], lambda a: a.diag())
for name in ("triu", "tril"):
    method(name, (2, 3, 4), 1)
    refuses(name, [(3,)], lambda a, name=name: getattr(a, name)())

# ---- order ----
for shape, shifts, dims in (((5,), 2, 0), ((3, 4), 1, 1), ((3, 4), -5, 0), ((3, 4), (1, 2), (0, 1)), ((3, 4), 5, None), ((0, 2), 1, 0),
                            ((), 3, None), ((3, 2), (1, 1), (0, 0))):
    case("roll", [shape], lambda a, s=shifts, d=dims: a.roll(s) if d is None else a.roll(s, d))
refuses("roll", [(3, 4)], lambda a: a.roll((1, 2)))
refuses("roll", [(3, 4)], lambda a: a.roll(1, 2))
for k in range(-2, 6):
    case("rot90", [(2, 3)], lambda a, k=k: a.rot90(k), lambda a, k=k: torch.rot90(a, k))
    case("rot90", [(2, 3, 2)], lambda a, k=k: a.rot90(k, (1, 2)), lambda a, k=k: torch.rot90(a, k, (1, 2)))
refuses("rot90", [(2, 3)], lambda a: a.rot90(1, (0, 0)), lambda a: torch.rot90(a, 1, (0, 0)))
for name in ("flipud", "fliplr"):
    method(name, (2, 3, 2))
refuses("flipud", [()], lambda a: a.flipud())
refuses("fliplr", [(3,)], lambda a: a.fliplr())
for source, destination in ((0, 2), (-1, 0), ((0, 1), (1, 2)), ((2, 0), (0, 1)), ((), ())):
    method("movedim", (2, 3, 4), source, destination, dtypes=())
refuses("movedim", [(2, 3)], lambda a: a.movedim((0, 1), (0, 0)))
refuses("movedim", [(2, 3)], lambda a: a.movedim(0, (0, 1)))
for repeats in ((2, 1), (1, 0), (2, 1, 3), (1, 1)):
    method("repeat", (2, 3), *repeats, dtypes=())
    case("tile", [(2, 3)], lambda a, r=repeats: a.tile(r))
case("tile", [(2, 3)], lambda a: a.tile(2))
case("tile", [(2, 3)], lambda a: a.tile((2,)))
refuses("repeat", [(2, 3)], lambda a: a.repeat(2))
refuses("repeat", [(2, 3)], lambda a: a.repeat(2, -1))
for repeats, dim in ((2, 0), (3, 1), (0, 0), (1, -1), (2, None)):
    case("repeat_interleave", [(2, 3)], lambda a, r=repeats, d=dim: a.repeat_interleave(r, dim=d))
case("repeat_interleave", [(3,)], lambda a: a.repeat_interleave(2))
refuses("repeat_interleave", [(3,)], lambda a: a.repeat_interleave(-1))

# ---- several ----
def ours_of(name):
    from tinycore import Tensor
    return getattr(Tensor, name)


def together(name, inputs, *arguments, **more):
    case(name, inputs, lambda *x: ours_of(name)(list(x), *arguments, **more),
         lambda *x: getattr(torch, name)(x, *arguments, **more))


for inputs, dim in (([(2, 3), (1, 3)], 0), ([(2, 3), (2, 1), (2, 0)], 1), ([(3,)], 0), ([(2, 3), (2, 3)], -1),
                    ([(0,), (2, 3)], 0), ([(2, 3), (0,)], 1)):
    together("cat", inputs, dim)
together("cat", [numbers((2, 3), dtype="int32"), numbers((2, 3))], 0)
together("cat", [numbers((2, 3), dtype="bool"), numbers((2, 3), dtype="int64")], 0)
for dim in (0, 1, 2, -1):
    together("stack", [(2, 3), (2, 3), (2, 3)], dim)
for inputs in ([(3,), (2,)], [(2, 3), (2, 1)], [(), ()], [(2, 1, 2), (2, 3, 2)]):
    together("hstack", inputs)
for inputs in ([(3,), (3,)], [(2, 3), (3,)], [(), ()], [(2, 1, 2), (1, 1, 2)]):
    together("vstack", inputs)
for inputs in ([(3,), (3,)], [(2, 3), (2, 3, 2)], [(), (1,)]):
    together("dstack", inputs)
for indexing in ("ij", "xy"):
    for inputs in ([(3,), (2,)], [(3,), (), (2,)], [(3,)], [(2,), (0,)]):
        together("meshgrid", inputs, indexing=indexing)
for name in ("cat", "stack"):
    refuses(name, [(2, 3), (3, 2)], lambda *x, n=name: ours_of(n)(list(x)), lambda *x, n=name: getattr(torch, n)(x))
refuses("meshgrid", [(2, 3)], lambda x: ours_of("meshgrid")([x]), lambda x: torch.meshgrid(x, indexing="ij"))
refuses("meshgrid", [(2,)], lambda x: ours_of("meshgrid")([x], indexing="yx"), lambda x: torch.meshgrid(x, indexing="yx"))

# ---- by formula ----
for formula, names, sizes, shape, theirs in (
        ("a b -> b a", "", [], (2, 3), lambda x: x.permute(1, 0)),
        ("b (h w) c -> b c h w", "h", [2], (2, 6, 3), lambda x: x.reshape(2, 2, 3, 3).permute(0, 3, 1, 2)),
        ("... c -> c ...", "", [], (2, 3, 4), lambda x: x.permute(2, 0, 1)),
        ("a ... -> (... a)", "", [], (2, 3, 4), lambda x: x.permute(1, 2, 0).reshape(24)),
        ("(a b) 1 -> a 1 b", "b", [3], (6, 1), lambda x: x.reshape(2, 1, 3)),
        ("h w -> (h w)", "", [], (2, 3), lambda x: x.reshape(6)),
        ("b (c p q) -> (b c) (q p)", "p q", [2, 3], (2, 12),
         lambda x: x.reshape(2, 2, 2, 3).permute(0, 1, 3, 2).reshape(4, 6)),
        ("... -> ... 1", "", [], (), lambda x: x.reshape(1)),
        ("a b -> 1 a b", "", [], (0, 2), lambda x: x.reshape(1, 0, 2))):
    case("rearrange", [shape], lambda x, f=formula, n=names, s=sizes: x.rearrange(f, **dict(zip(n.split(), s))), theirs, label=formula)
for formula, names, sizes in (("a b -> a", "", []), ("a -> a b", "", []), ("a b c -> a b c", "", []), ("a b", "", []),
                              ("(a b -> a b", "", []), ("a a -> a a", "", []), ("(a b) c -> a b c", "", []),
                              ("(a b) c -> a b c", "a", [4]), ("a b -> b a", "z", [2]), ("a b -> b a", "a", [3]),
                              ("a b -> a b ->", "", []), ("a, b -> b a", "", []), ("... ... -> ...", "", []), ("1 b -> b", "", [])):
    refuses("rearrange", [(2, 3)], lambda x, f=formula, n=names, s=sizes: x.rearrange(f, **dict(zip(n.split(), s))), lambda x: x.reshape(7),
            label=f"{formula} {names} {sizes}")


def bound(value, longest=6):
    from tinycore import Variable
    return Variable("length", 1, longest).bind(value)


# The first elements, as many as a variable says.
for shape, axis in (((6, 3), 0), ((2, 6), 1), ((2, 3, 7), -1)):
    for n in (1, 4, 6):
        case("shorten", [shape], lambda a, axis=axis, n=n: a.shorten(axis, bound(n)) * 2, lambda a, axis=axis, n=n: a.narrow(axis, 0, n) * 2,
             gradient=False)
refuses("shorten", [(4, 3)], lambda a: a.shorten(0, bound(3)), lambda a: a.narrow(0, 0, 6))
