# SPDX-License-Identifier: MIT
"""The steps that random programs are made of: what a step needs of its operands, what it computes here and in NumPy.

A value is exact (integers, bools, and floats that are small multiples of 1/4, on which f32 makes no error) or not. Only
exact values may be compared, rounded or sorted, so that nothing but a wrong result can differ.

A value that another one is a view of shares its storage: it knows the positions of its elements there. NumPy's own views
would not do, as it copies where strides cannot say what a reshape is."""
import dataclasses

import numpy

# Quarters below this are exact. Of f16 there are no other values: NumPy adds such up in f16.
HOLDS = {"float16": 2.0 ** 8, "float32": 2.0 ** 21, "float64": 2.0 ** 50}
COMMON = 6  # half of the inputs are of the first dtypes
DTYPES = ("float32", "int32", "int64", "uint8", "int8", "bool", "float16", "float64", "int16", "uint16", "uint32", "uint64")


@dataclasses.dataclass
class Storage:
    flat: numpy.ndarray
    exact: bool


class Value:
    def __init__(self, array, exact, storage=None, positions=None):
        self.storage = storage or Storage(array.ravel().copy(), exact)
        self.positions = numpy.arange(array.size).reshape(array.shape) if positions is None else positions
        self.read()

    def read(self):
        self.array = self.storage.flat[self.positions]

    def moved(self, move):
        """A view."""
        positions = numpy.array(move(self.positions))
        return Value(None, None, self.storage, positions)

    def change(self, array, exact):
        self.storage.flat[self.positions] = array
        self.storage.exact = self.storage.exact and exact

    @property
    def exact(self):
        return self.storage.exact

    @property
    def is_one_to_one(self):
        return numpy.unique(self.positions).size == self.positions.size

    @property
    def kind(self):
        return self.array.dtype.kind

    @property
    def room(self):
        return HOLDS.get(self.array.dtype.name, numpy.inf)

    @property
    def size(self):
        return float(numpy.max(numpy.abs(self.array.astype("float64")), initial=0))


@dataclasses.dataclass
class Step:
    name: str
    arity: int
    fits: object  # (rng, values) -> parameters, or None
    numpy: object  # (parameters, *arrays) -> array
    ours: object  # (parameters, *tensors) -> tensor
    keeps: bool = True  # an exact value stays exact
    is_view: bool = False  # only moves elements: the result is a view of the operand
    changes: bool = False  # the first operand, in place; the result is that


STEPS = []


def step(name, arity, fits, theirs, ours, keeps=True, is_view=False):
    STEPS.append(Step(name, arity, fits, theirs, ours, keeps, is_view))


def change(name, arity, fits, theirs, ours):
    def fits_place(rng, values):
        return fits(rng, values) if values[0].is_one_to_one else None
    STEPS.append(Step(name, arity, fits_place, theirs, ours, True, False, True))


def broadcasts(values):
    try:
        shape = numpy.broadcast_shapes(*[v.array.shape for v in values])
    except ValueError:
        return None
    return shape if numpy.prod(shape, dtype=float) <= 4096 and len(shape) <= 6 else None


def alike(values):
    return len({v.array.dtype for v in values}) == 1 and broadcasts(values) is not None


# ---- element by element ----
def bounded(growth):
    """Operands of one dtype whose result stays exact where floats are concerned."""
    def fits(rng, values):
        if not alike(values) or values[0].kind == "b":
            return None
        return () if values[0].kind != "f" or growth(*[v.size for v in values]) < values[0].room else None
    return fits


def quiet(function):
    def run(parameters, *arrays):
        with numpy.errstate(all="ignore"):
            return function(*arrays)
    return run


step("add", 2, bounded(lambda a, b: a + b), quiet(numpy.add), lambda p, a, b: a + b)
step("sub", 2, bounded(lambda a, b: a + b), quiet(numpy.subtract), lambda p, a, b: a - b)
step("mul", 2, bounded(lambda a, b: 1e99 if a * b > 1000 else a * b), quiet(numpy.multiply), lambda p, a, b: a * b, keeps=False)
step("maximum", 2, bounded(max), quiet(numpy.maximum), lambda p, a, b: a.maximum(b))
step("minimum", 2, bounded(max), quiet(numpy.minimum), lambda p, a, b: a.minimum(b))


def exact(rng, values):
    return () if alike(values) and all(v.exact for v in values) else None


for name, theirs in (("lt", numpy.less), ("le", numpy.less_equal), ("eq", numpy.equal), ("ne", numpy.not_equal),
                     ("gt", numpy.greater), ("ge", numpy.greater_equal)):
    step(name, 2, exact, quiet(theirs), lambda p, a, b, name=name: getattr(a, name)(b))


def of_kind(kinds):
    return lambda rng, values: () if alike(values) and values[0].kind in kinds else None


step("and", 2, of_kind("biu"), quiet(numpy.bitwise_and), lambda p, a, b: a & b)
step("or", 2, of_kind("biu"), quiet(numpy.bitwise_or), lambda p, a, b: a | b)
step("xor", 2, of_kind("biu"), quiet(numpy.bitwise_xor), lambda p, a, b: a ^ b)


def divides(rng, values):
    ok = alike(values) and values[0].kind in "iu" and values[1].array.all()
    lowest = ok and values[0].kind == "i" and (values[1].array == -1).any()  # the least number / -1 overflows
    return () if ok and not lowest else None


step("floor_divide", 2, divides, quiet(numpy.floor_divide), lambda p, a, b: a // b)
step("mod", 2, divides, quiet(numpy.mod), lambda p, a, b: a % b)
step("where", 3, lambda rng, v: () if v[0].kind == "b" and alike(v[1:]) and broadcasts(v) is not None else None,
     quiet(numpy.where), lambda p, g, a, b: g.where(a, b))

number = of_kind("fiu")
step("neg", 1, of_kind("fi"), quiet(numpy.negative), lambda p, a: -a)
step("abs", 1, number, quiet(numpy.abs), lambda p, a: a.abs())
step("relu", 1, number, quiet(lambda a: numpy.maximum(a, 0).astype(a.dtype)), lambda p, a: a.relu())
step("sign", 1, lambda rng, v: () if v[0].exact and v[0].kind in "fi" else None, quiet(numpy.sign), lambda p, a: a.sign())
step("logical_not", 1, lambda rng, v: () if v[0].exact else None, quiet(numpy.logical_not), lambda p, a: a.logical_not())
for name in ("floor", "ceil", "round", "trunc"):
    step(name, 1, lambda rng, v: () if v[0].exact and v[0].kind == "f" else None, quiet(getattr(numpy, name)),
         lambda p, a, name=name: getattr(a, name)())


def fits_cast(rng, values):
    to = DTYPES[rng.randint(len(DTYPES))]
    v = values[0]
    inside = v.kind != "f" or (v.exact and v.size < 100 and (to[0] != "u" or v.array.min(initial=0) >= 0))
    return (to,) if inside and v.size < HOLDS.get(to, numpy.inf) and (v.exact or to != "float16") else None


step("cast", 1, fits_cast, lambda p, a: a.astype(p[0]), lambda p, a: a.cast(p[0]))


def floats(low, high):
    return lambda rng, v: () if v[0].kind == "f" and low <= v[0].array.min(initial=low) \
        and v[0].array.max(initial=high) <= high else None


for name, low, high, theirs in (
        ("exp", -20, 5, numpy.exp), ("sin", -100, 100, numpy.sin), ("tanh", -50, 50, numpy.tanh),
        ("sqrt", 0, 1e6, numpy.sqrt), ("sigmoid", -50, 50, lambda a: 1 / (1 + numpy.exp(-a.astype("float64")))),
        ("log", 1e-3, 1e6, numpy.log)):
    step(name, 1, floats(low, high), quiet(lambda a, f=theirs: f(a.astype("float64")).astype(a.dtype)),
         lambda p, a, name=name: getattr(a, name)(), keeps=False)

step("reciprocal", 1, lambda rng, v: () if v[0].exact and v[0].kind == "f" and v[0].array.all() else None,
     quiet(numpy.reciprocal), lambda p, a: a.reciprocal(), keeps=False)


# ---- movement ----
def fits_reshape(rng, values):
    n, shape = values[0].array.size, []
    while n > 1 and len(shape) < 4:
        factors = [d for d in range(2, n + 1) if n % d == 0]
        shape.append(factors[rng.randint(len(factors))])
        n //= shape[-1]
    shape = shape + [n] if n != 1 or not shape else shape
    rng.shuffle(shape)
    return (tuple(int(s) for s in shape),)


def some_axis(rng, values):
    rank = values[0].array.ndim
    return (int(rng.randint(-rank, rank)),) if rank else None


def fits_slice(rng, values):
    out = []
    for size in values[0].array.shape:
        begin, end = sorted(int(x) for x in rng.randint(-size - 1, size + 2, size=2))
        out.append(slice(begin, end, [1, 1, 2, 3, -1, -2][rng.randint(6)]))
    return (tuple(out),)


def fits_expand(rng, values):
    shape = values[0].array.shape
    to = tuple(int(rng.randint(1, 5)) if s == 1 else s for s in shape)
    to = (int(rng.randint(1, 4)),) * int(rng.randint(2)) + to
    return (to,) if numpy.prod(to, dtype=float) <= 4096 and len(to) <= 6 else None


step("reshape", 1, fits_reshape, lambda p, a: a.reshape(p[0]), lambda p, a: a.reshape(p[0]), is_view=True)
step("permute", 1, lambda rng, v: (tuple(int(x) for x in rng.permutation(v[0].array.ndim)),),
     lambda p, a: a.transpose(p[0]), lambda p, a: a.permute(p[0]), is_view=True)
step("flip", 1, some_axis, lambda p, a: numpy.flip(a, p[0]), lambda p, a: a.flip(p[0]), is_view=True)
step("slice", 1, fits_slice, lambda p, a: a[p[0]], lambda p, a: a[p[0]] if p[0] else a, is_view=True)
step("expand", 1, fits_expand, lambda p, a: numpy.broadcast_to(a, p[0]), lambda p, a: a.expand(p[0]), is_view=True)
step("unsqueeze", 1, lambda rng, v: (int(rng.randint(v[0].array.ndim + 1)),) if v[0].array.ndim < 6 else None,
     lambda p, a: numpy.expand_dims(a, p[0]), lambda p, a: a.unsqueeze(p[0]), is_view=True)
step("cat", 2, lambda rng, v: some_axis(rng, v) if v[0].array.dtype == v[1].array.dtype
     and v[0].array.shape == v[1].array.shape and v[0].array.size <= 2048 else None,
     lambda p, a, b: numpy.concatenate([a, b], p[0]), lambda p, a, b: a.cat(b, dim=p[0]))


# ---- reductions ----
def fits_reduction(exact_only=False, not_empty=False, grows=False):
    def fits(rng, values):
        v = values[0]
        axes = tuple(i for i in range(v.array.ndim) if rng.randint(2)) or tuple(range(v.array.ndim))
        count = numpy.prod([v.array.shape[i] for i in axes], dtype=float)
        if (exact_only and not v.exact) or (not_empty and count == 0) or v.array.ndim == 0:
            return None
        if grows and v.size * count >= v.room:
            return None
        return (axes, bool(rng.randint(2)))
    return fits


def total(parameters, a):
    narrow = {"b": "int32", "i": "int32", "u": "uint32"}
    to = narrow[a.dtype.kind] if a.dtype.kind in narrow and a.dtype.itemsize < 4 else a.dtype
    return a.astype(to).sum(parameters[0], keepdims=parameters[1], dtype=to)


step("sum", 1, fits_reduction(grows=True), total, lambda p, a: a.sum(p[0], keepdim=p[1]))
for name in ("max", "min"):
    step(name, 1, fits_reduction(not_empty=True), lambda p, a, name=name: getattr(a, name)(p[0], keepdims=p[1]),
         lambda p, a, name=name: getattr(a, name)(p[0], keepdim=p[1]))
for name in ("any", "all"):
    step(name, 1, fits_reduction(exact_only=True), lambda p, a, name=name: getattr(a, name)(p[0], keepdims=p[1]),
         lambda p, a, name=name: getattr(a, name)(p[0], keepdim=p[1]))


def fits_position(rng, values):
    axis = some_axis(rng, values)
    return axis if axis and values[0].exact and values[0].array.shape[axis[0]] > 0 else None


for name in ("argmax", "argmin"):
    step(name, 1, fits_position, lambda p, a, name=name: getattr(a, name)(p[0]).astype("int32"),
         lambda p, a, name=name: getattr(a, name)(p[0]).cast("int32"))


def fits_matmul(rng, values):
    a, b = values
    ok = a.kind == b.kind and a.array.dtype == b.array.dtype and a.kind in "fi" and a.array.ndim == b.array.ndim == 2 \
        and a.array.dtype.itemsize >= 4 and a.array.shape[1] == b.array.shape[0]
    return () if ok and (a.kind != "f" or a.size * b.size * max(a.array.shape[1], 1) < a.room / 4) else None


step("matmul", 2, fits_matmul, quiet(numpy.matmul), lambda p, a, b: a @ b, keeps=False)


# ---- positions that are data ----
def fits_take(rng, values):
    axis = some_axis(rng, values)
    if axis is None or values[0].array.shape[axis[0]] == 0:
        return None
    return (axis[0], tuple(int(x) for x in rng.randint(0, values[0].array.shape[axis[0]], size=rng.randint(1, 6))))


step("index_select", 1, fits_take, lambda p, a: numpy.take(a, p[1], p[0]),
     lambda p, a: a.index_select(p[0], type(a)(list(p[1]))))


def fits_gather(rng, values):
    axis = some_axis(rng, values)
    if axis is None or values[0].array.size == 0:
        return None
    return axis[0], rng.randint(0, values[0].array.shape[axis[0]], size=values[0].array.shape).astype("int32")


def fits_scatter(rng, values):
    """Each position along an axis once."""
    axis = some_axis(rng, values)
    if axis is None or not alike(values) or values[0].array.shape != values[1].array.shape or values[0].array.size == 0:
        return None
    return axis[0], numpy.argsort(rng.rand(*values[0].array.shape), axis[0]).astype("int32")


def put_along(parameters, a, b):
    out = a.copy()
    numpy.put_along_axis(out, parameters[1], b, parameters[0])
    return out


step("gather", 1, fits_gather, lambda p, a: numpy.take_along_axis(a, p[1], p[0]), lambda p, a: a.gather(p[0], type(a)(p[1])))
step("scatter", 2, fits_scatter, put_along, lambda p, a, b: a.scatter(p[0], type(a)(p[1]), b))
step("sort", 1, lambda rng, v: some_axis(rng, v) if v[0].exact and v[0].array.size else None,
     lambda p, a: numpy.sort(a, p[0]), lambda p, a: a.sort(p[0])[0])


def fits_cumsum(rng, values):
    v, axis = values[0], some_axis(rng, values)
    wide = v.array.dtype.itemsize >= 4 or v.kind == "f"
    return axis if wide and axis and v.size * v.array.shape[axis[0]] < v.room else None


def fits_pad(rng, values):
    v = values[0]
    pairs = tuple((int(x), int(y)) for x, y in rng.randint(0, 3, size=(v.array.ndim, 2)))
    size = numpy.prod([s + x + y for s, (x, y) in zip(v.array.shape, pairs)], dtype=float)
    return (pairs, int(rng.randint(3))) if 0 < v.array.ndim and size <= 4096 and v.kind != "b" else None


def same_shape(rng, values):
    ok = values[0].kind == "b" and values[1].kind != "b" and values[0].array.shape == values[1].array.shape
    return (int(rng.randint(5)),) if ok else None


step("cumsum", 1, fits_cumsum, lambda p, a: numpy.cumsum(a, p[0], dtype=a.dtype),
     lambda p, a: a.cumsum(p[0]))
step("pad", 1, fits_pad, lambda p, a: numpy.pad(a, p[0], constant_values=p[1]), lambda p, a: a.pad(p[0], value=p[1]))
step("masked_fill", 2, same_shape, lambda p, m, a: numpy.where(m, p[0], a).astype(a.dtype), lambda p, m, a: a.masked_fill(m, p[0]))


# ---- in place ----
def into_first(growth):
    fits = bounded(growth)
    return lambda rng, v: fits(rng, v) if broadcasts(v) == v[0].array.shape else None


def wrote(where, value):
    """What NumPy makes of a copy of the first operand."""
    def run(parameters, a, *others):
        out = a.copy()
        out[where(parameters, *others)] = value(parameters, *others)
        return out
    return run


def put(where, value):
    def run(parameters, a, *others):
        a[where(parameters, *others)] = value(parameters, *others)
        return a
    return run


def fits_part(rng, values):
    """A slice that the second operand broadcasts to."""
    a, b = values
    part = fits_slice(rng, values)
    try:
        ok = a.array.dtype == b.array.dtype and numpy.broadcast_to(b.array, a.array[part[0]].shape) is not None
    except ValueError:
        return None
    return part if ok and part[0] else None


def fits_rows(rng, values):
    n = values[0].array.shape[0] if values[0].array.ndim else 0
    return (tuple(int(x) for x in rng.randint(-n, n, size=rng.randint(1, 4))), int(rng.randint(2))) if n else None


def add_in_place(parameters, a, b):
    a += b
    return a


def multiply_in_place(parameters, a, b):
    a *= b
    return a


def add_to_part(parameters, a, b):
    a[parameters[0]] += b
    return a


def summed_part(parameters, a, b):
    out = a.copy()
    out[parameters[0]] += b
    return out


def fits_sum_of_part(rng, values):
    return fits_part(rng, values) if bounded(lambda a, b: a + b)(rng, values[:1] + values[:1]) is not None \
        and values[0].size + values[1].size < values[0].room else None


change("assign", 2, lambda rng, v: () if v[0].array.dtype == v[1].array.dtype and v[0].array.shape == v[1].array.shape else None,
       lambda p, a, b: b, lambda p, a, b: a.assign(b))
change("iadd", 2, into_first(lambda a, b: a + b), quiet(numpy.add), add_in_place)
change("imul", 2, into_first(lambda a, b: 1e99 if a * b > 1000 else a * b), quiet(numpy.multiply), multiply_in_place)
change("put", 2, fits_part, wrote(lambda p, b: p[0], lambda p, b: b), put(lambda p, b: p[0], lambda p, b: b))
change("iadd_part", 2, fits_sum_of_part, summed_part, add_to_part)
change("put_rows", 1, fits_rows, wrote(lambda p: list(p[0]), lambda p: p[1]), put(lambda p: list(p[0]), lambda p: p[1]))
change("put_mask", 1, lambda rng, v: (rng.rand(*v[0].array.shape) < 0.5, int(rng.randint(2))) if v[0].array.ndim else None,
       wrote(lambda p: p[0], lambda p: p[1]), lambda p, a: put(lambda p: type(a)(p[0]), lambda p: p[1])(p, a))
change("realize", 1, lambda rng, v: (), lambda p, a: a, lambda p, a: a.realize())
