# SPDX-License-Identifier: MIT
"""Indexing: subscripts read and written, elements picked and written at positions that are data."""
import numpy
import torch

from harness import case, numbers, refuses

FIRST, LAST = -(1 << 63), (1 << 63) - 1


def subscript(key, Tensor):
    """The pattern, numbers and tensors of a subscript, as the rows index() and set_index() take them."""
    pattern, numbers_, tensors = "", [], []
    for part in key if isinstance(key, tuple) else (key,):
        if part is Ellipsis or part is None:
            pattern += "n" if part is None else "."
        elif isinstance(part, slice):
            back = part.step is not None and part.step < 0
            pattern += ":" if part == slice(None) else "s"
            if part != slice(None):
                numbers_ += [(LAST if back else FIRST) if part.start is None else part.start,
                             (FIRST if back else LAST) if part.stop is None else part.stop, part.step or 1]
        elif isinstance(part, int) and not isinstance(part, bool):
            pattern, numbers_ = pattern + "i", numbers_ + [part]
        else:
            pattern, tensors = pattern + "t", tensors + [Tensor(numpy.asarray(part))]
    return pattern, numbers_, tensors


def reads(x, key):
    from tinycore import Tensor
    return x.index(*subscript(key, Tensor))


def writes(x, key, value):
    from tinycore import Tensor
    from tinycore.errors import call
    x = x * 1
    pattern, numbers_, tensors = subscript(key, Tensor)
    call(Tensor.set_index, x, pattern, numbers_, tensors, value)
    return x


def for_torch(key):
    def one(part):
        return torch.from_numpy(numpy.asarray(part)) if isinstance(part, (list, numpy.ndarray)) else part
    return tuple(map(one, key)) if isinstance(key, tuple) else one(key)


def writes_there(x, key, value):
    x = x * 1
    x[for_torch(key)] = value
    return x


def at(*values):
    return numpy.array(values, dtype="int64")


MASK = numbers((2, 3, 4), dtype="bool")
KEYS = [0, -1, (0, 1), (slice(None), 1), (slice(1, None), Ellipsis, 0), (Ellipsis, 0), None, (None, 0, None), (Ellipsis, None),
        (slice(None, None, 2), slice(0, 3, 2)), slice(5, 1), slice(-9, 9), (Ellipsis, slice(None, None, 3)), (), (0, 1, 2),
        at(0, 1, 0), at(1), numpy.array([[0, 1], [-1, 0]]), (slice(None), at(2, 0)), (at(0, 1), at(2, -1)),
        (at(0, 1), slice(None), at(2, -1)), (slice(None), at(0, 1), at(2, -1)), (slice(None), at(0, 1)[:, None], at(2, -1)),
        (0, slice(None), at(1, 2)), (numpy.array(1), slice(None), at(1, 2)), (at(1, 0), slice(None), numpy.array(2)),
        numpy.array(1), (numpy.array(1), numpy.array(2)), (slice(None), 0, at(0, 1)), (at(0, 1), 0, at(1, 2)),
        (at(0, 1), None, at(1, 2)), (None, at(0, 1), at(1, 2)), (slice(None), at(0, 1), None, at(1, 2)),
        (Ellipsis, at(3, 0)), (at(0, 1), at(0, 2), at(3, 1)), (slice(None, None, 2), at(1, 1), slice(1, 3)),
        MASK, MASK[:, :, 0], MASK[:, 0, 0], (slice(None), MASK[0]), (Ellipsis, MASK[0, 0]), (0, MASK[0, :, 0], at(0)),
        numpy.array(True), numpy.array(False), (0, numpy.array(True)), (at(0, 1), numpy.array([True, True, False])),
        numpy.zeros((2, 3), "bool"), numpy.ones(2, "bool"), at()]
TWICE = (KEYS[15], KEYS[17], KEYS[35])
for key in KEYS:
    case("index", [(2, 3, 4)], lambda x, k=key: reads(x, k), lambda x, k=key: x[for_torch(k)], label=f"[{key}]")
    shape = tuple(torch.zeros(2, 3, 4)[for_torch(key)].shape)
    for values in {(), shape, shape[-1:], (1, 1) + shape}:
        if 0 in values:
            continue
        # Of equal positions PyTorch's gradient goes to all, ours to the one that was kept.
        case("index_put", [(2, 3, 4), values], lambda x, v, k=key: writes(x, k, v), lambda x, v, k=key: writes_there(x, k, v),
             label=f"[{key}] = {values}", gradient=not any(key is one for one in TWICE))
for dtype in ("float64", "int32", "int64", "uint8", "bool"):
    x = numbers((4, 5), 0, 9, dtype)
    for key in ((slice(None, None, 2), -1), at(1, -1, 1), x > 0):
        case("index", [x], lambda x, k=key: reads(x, k), lambda x, k=key: x[for_torch(k)], gradient=dtype == "float64")
        if dtype != "bool":
            case("index_put", [x, numbers((), 0, 9, dtype)], lambda x, v, k=key: writes(x, k, v),
                 lambda x, v, k=key: writes_there(x, k, v), gradient=False)
for kind in ("int8", "int16", "int32", "uint8", "int64"):
    key = numpy.array([2, 0, 2, 1], dtype=kind)
    case("index", [(3, 2)], lambda x, k=key: reads(x, k), lambda x, k=key: x[torch.from_numpy(k).long()], label=kind)
for start, stop, step in ((None, None, -1), (-1, 0, -2), (3, None, -3), (0, 2, -1), (-2, -9, -1)):
    key = slice(start, stop, step)
    places = list(range(5))[key]
    case("index", [(5, 2)], lambda x, k=key: reads(x, k), lambda x, p=places: x[p], label=f"{key}")
    if places:
        case("index_put", [(5, 2), (len(places), 2)], lambda x, v, k=key: writes(x, k, v),
             lambda x, v, p=places: writes_there(x, numpy.array(p), v), label=f"{key}")
for key in (2, (0, 0, 0, 0), at(0, 1).astype("float32"), (at(0, 1), at(0, 1, 2)), numpy.array([True, False, True]), (0, 3),
            (0, 0, 4)):
    refuses("index", [(2, 3, 4)], lambda x, k=key: reads(x, k), lambda x, k=key: x[for_torch(k)], label=f"[{key}]")
for key, values in ((0, (4, 3)), (slice(0, 2), (3, 3, 4)), (at(0, 1), (3, 3, 4)), (MASK, (3,)), ((0, 0, 0), (2,))):
    refuses("index_put", [(2, 3, 4), values], lambda x, v, k=key: writes(x, k, v), lambda x, v, k=key: writes_there(x, k, v),
            label=f"[{key}]")
for accumulate in (False, True):
    for keys, values in (([at(0, 2)], (2, 4)), ([at(0, 2), at(3, 1)], (2,)), ([at(2, 0), at(1, -1)], ()), ([at(1, 0)[:, None], at(1, 2)], (2, 2))):
        case("index_put", [(3, 4), values, *keys], lambda x, v, *k, a=accumulate: x.index_put(list(k), v, a),
             lambda x, v, *k, a=accumulate: x.index_put(k, v, a), same_dtype=False)
case("index_put", [(3, 4), (5, 4), at(0, 1, 1, 2, 1)], lambda x, v, k: x.index_put([k], v, True), lambda x, v, k: x.index_put((k,), v, True))

# ---- picking ----
for shape, index, axis in (((3, 4), (3, 2), 1), ((3, 4), (2, 4), 0), ((3, 4), (2, 2), 1), ((5,), (9,), 0), ((2, 3, 4), (2, 1, 3), -1),
                           ((2, 3, 4), (1, 5, 4), 1), ((3, 4), (0, 4), 0), ((3, 4), (3, 7), -1)):
    where = numbers(index, 0, shape[axis], "int64")
    case("gather", [shape, where], lambda x, i, a=axis: x.gather(a, i))
    if 0 not in index:
        case("scatter", [shape, numbers(index, 0, 1, "int64") * 0 + numpy.arange(index[axis]).reshape(
            [-1 if k == axis % len(shape) else 1 for k in range(len(shape))]) % shape[axis], index],
            lambda x, i, v, a=axis: x.scatter(a, i, v), gradient=index[axis] <= shape[axis])
    for reduce in ("add", "multiply"):
        case("scatter", [shape, where, index], lambda x, i, v, a=axis, r=reduce: x.scatter(a, i, v, r),
             lambda x, i, v, a=axis, r=reduce: x.scatter(a, i, v, reduce=r), gradient=False)
    case("scatter", [shape, where], lambda x, i, a=axis: x.scatter(a, i, 1.25))
    case("scatter_add", [shape, where, index], lambda x, i, v, a=axis: x.scatter_add(a, i, v))
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include in (True, False):
            case("scatter_reduce", [shape, where, index], lambda x, i, v, a=axis, r=reduce, n=include: x.scatter_reduce(a, i, v, r, n),
                 lambda x, i, v, a=axis, r=reduce, n=include: x.scatter_reduce(a, i, v, r, include_self=n))
    if 0 not in index:
        broad = numbers(tuple(n if k == axis % len(shape) else 1 for k, n in enumerate(index)), 0, shape[axis], "int64")
        case("take_along_dim", [shape, broad], lambda x, i, a=axis: x.take_along_dim(i, a))
for dtype in ("int32", "uint8", "float64", "bool"):
    x, i, v = numbers((3, 4), 0, 9, dtype), numbers((2, 3), 0, 3, "int64"), numbers((2, 3), 0, 9, dtype)
    case("gather", [x, i], lambda x, i: x.gather(0, i), gradient=False)
    if dtype != "bool":
        for reduce in ("sum", "prod", "mean", "amax", "amin"):
            case("scatter_reduce", [x, i, v], lambda x, i, v, r=reduce: x.scatter_reduce(0, i, v, r), gradient=False)
case("scatter", [(3, 4), at(2, 0, 1, 1).reshape(1, 4), (5, 6)], lambda x, i, v: x.scatter(0, i, v), label="larger values",
     gradient=False)
refuses("gather", [(3, 4), at(0, 1)], lambda x, i: x.gather(0, i))
refuses("gather", [(3, 4), numpy.zeros((4, 2), "int64")], lambda x, i: x.gather(1, i))
refuses("gather", [(3, 4), (3, 4)], lambda x, i: x.gather(1, i))
refuses("scatter", [(3, 4), numpy.zeros((3, 2), "int64"), (2, 2)], lambda x, i, v: x.scatter(1, i, v))
refuses("scatter", [(3, 4), numpy.zeros((4, 2), "int64"), (4, 2)], lambda x, i, v: x.scatter(1, i, v))
refuses("scatter_reduce", [(3,), at(0), (1,)], lambda x, i, v: x.scatter_reduce(0, i, v, "median"))
case("take_along_dim", [(3, 4), at(0, 5, 11)], lambda x, i: x.take_along_dim(i, None), lambda x, i: x.take_along_dim(i))
refuses("take_along_dim", [(3, 4), numpy.zeros((2, 1), "int64")], lambda x, i: x.take_along_dim(i, 1))
for index in (at(0, 5, -1, 11), at(3).reshape(1, 1), numpy.array(7), at()):
    case("take", [(3, 4), index], lambda x, i: x.take(i))
refuses("take", [(3, 4), (2,)], lambda x, i: x.take(i))
for shape, axis, index in (((5, 3), 0, at(0, 4, 2)), ((5, 3), 1, at(2, 0)), ((2, 3, 4), -1, at(3, 0, 1, 2)), ((4,), 0, at(1)), ((3, 2), 0, at())):
    values = tuple(index.size if k == axis % len(shape) else n for k, n in enumerate(shape))
    case("index_select", [shape, index], lambda x, i, a=axis: x.index_select(a, i))
    case("index_copy", [shape, index, values], lambda x, i, v, a=axis: x.index_copy(a, i, v))
    for alpha in (1, -0.5):
        case("index_add", [shape, index, values], lambda x, i, v, a=axis, f=alpha: x.index_add(a, i, v, f),
             lambda x, i, v, a=axis, f=alpha: x.index_add(a, i, v, alpha=f))
    case("index_fill", [shape, index], lambda x, i, a=axis: x.index_fill(a, i, 7.5))
    case("index_fill", [shape, index - 1, ()], lambda x, i, v, a=axis: x.index_fill(a, i, v), gradient=False)
case("index_add", [(4, 3), at(1, 1, 3, 1), (4, 3)], lambda x, i, v: x.index_add(0, i, v))
refuses("index_add", [(4, 3), at(1, 1), (3, 3)], lambda x, i, v: x.index_add(0, i, v))
# So many that they are sorted instead of compared.
many = numbers((6000,), 0, 6000, "int64")
case("index_add", [(6000,), many, (6000,)], lambda x, i, v: x.index_add(0, i, v), label="many")
case("index_select", [(6000, 3), many], lambda x, i: x.index_select(0, i), label="many")
case("index_copy", [(6000, 2), numpy.random.RandomState(1).permutation(6000), (6000, 2)], lambda x, i, v: x.index_copy(0, i, v), label="many")
case("scatter_add", [(3, 6000), many[:5100].reshape(3, 1700), (3, 1700)], lambda x, i, v: x.scatter_add(1, i, v), label="many in rows")
for reduce in ("mean", "prod", "amax", "amin"):
    case("scatter_reduce", [(6000,), many, (6000,)], lambda x, i, v, r=reduce: x.scatter_reduce(0, i, v, r, include_self=False), label="many")
    # Equals, zeros, and positions that have none; then in rows.
    few = [numbers((5000,), 0, 5000, "int64"), numpy.round(numbers((5000,), -1.5, 1.5))]
    case("scatter_reduce", [(5000,), *few], lambda x, i, v, r=reduce: x.scatter_reduce(0, i, v, r), label="many equals")
    case("scatter_reduce", [(5000,), few[0] // 100, few[1]], lambda x, i, v, r=reduce: x.scatter_reduce(0, i, v, r), gradient=reduce != "prod",
         label="many of one")
    case("scatter_reduce", [(1700, 3), many[:5100].reshape(1700, 3) % 1700, (1700, 3)], lambda x, i, v, r=reduce: x.scatter_reduce(0, i, v, r),
         gradient=False, label="many in columns")
    for size in (6, 5000):  # NaNs, before and behind numbers
        nans = numbers((size,), -2, 2)
        nans[::3] = numpy.nan
        for include in (True, False):
            case("scatter_reduce", [(size,), numbers((size,), 0, size, "int64") // 2, nans],
                 lambda x, i, v, r=reduce, n=include: x.scatter_reduce(0, i, v, r, n),
                 lambda x, i, v, r=reduce, n=include: x.scatter_reduce(0, i, v, r, include_self=n), gradient=False, label=f"NaNs among {size}")
    case("scatter_reduce", [numbers((5000,), -9, 9, "int32"), few[0], numbers((5000,), -9, 9, "int32")],
         lambda x, i, v, r=reduce: x.scatter_reduce(0, i, v, r), label="many integers")
refuses("index_copy", [(4, 3), at(1, 1).reshape(1, 2), (2, 3)], lambda x, i, v: x.index_copy(0, i, v))
refuses("index_fill", [(4, 3), at(1), (2,)], lambda x, i, v: x.index_fill(0, i, v))
