#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Views: what is changed in place through one, or in what it is a view of, is changed in both, as in NumPy.

TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import copy
import time

import checks
import numpy
from tinycore import Tensor, TinyJit, Variable, no_grad


def made():
    """The same numbers as tensors of every kind: read, computed, moved, assigned."""
    array = numpy.arange(24, dtype="float32").reshape(2, 3, 4)
    yield lambda: Tensor(array)
    yield lambda: Tensor(array) * 1
    yield lambda: (Tensor(array) * 1).realize()
    yield lambda: (Tensor(array.transpose(2, 0, 1).copy()) * 1).permute(1, 2, 0)
    yield lambda: (Tensor(array.reshape(24)) * 1).reshape(2, 3, 4)
    yield lambda: Tensor.zeros(2, 3, 4).contiguous().realize().assign(Tensor(array))


VIEWS = [  # here, in NumPy
    (lambda t: t[0], lambda a: a[0]),
    (lambda t: t[0][1], lambda a: a[0, 1]),
    (lambda t: t[..., ::2], lambda a: a[..., ::2]),
    (lambda t: t[:, ::-2, 3:0:-2], lambda a: a[:, ::-2, 3:0:-2]),
    (lambda t: t[None, 0, :, None], lambda a: a[None, 0, :, None]),
    (lambda t: t.T, lambda a: a.T),
    (lambda t: t.T[1:].T, lambda a: a[..., 1:]),
    (lambda t: t.reshape(4, 6)[1:3], lambda a: a.reshape(4, 6)[1:3]),
    (lambda t: t.detach(), lambda a: a),
    (lambda t: t.flip(1), lambda a: a[:, ::-1]),
    (lambda t: t[0, :, :3].diagonal(), lambda a: a.reshape(-1)[:11:5]),
    (lambda t: t[:1].squeeze(0), lambda a: a[0]),
    (lambda t: t.split(2, 1)[1], lambda a: a[:, 2:]),
    (lambda t: t.chunk(1)[0], lambda a: a),
    (lambda t: t.unbind(1)[1], lambda a: a[:, 1]),
    (lambda t: t.select(1, -1), lambda a: a[:, -1]),
    (lambda t: t.narrow(1, 1, 2), lambda a: a[:, 1:]),
    (lambda t: t.movedim(0, 2), lambda a: numpy.moveaxis(a, 0, 2)),
    (lambda t: t.unflatten(2, (2, 2))[:, :, 1], lambda a: a.reshape(2, 3, 2, 2)[:, :, 1]),
    (lambda t: t.shrink(((0, 1), None, (1, 3))), lambda a: a[:1, :, 1:3]),
    (lambda t: t.rearrange("a b (c d) -> d b a c", c=2)[0], lambda a: a.reshape(2, 3, 2, 2).transpose(3, 1, 0, 2)[0]),
]


def change(x, how):
    if how == 0:
        x *= 2
    elif how == 1:
        x[...] = 7
    elif how == 2:
        x[0] += 10
    else:
        x[..., -1] = -1


def test_both_ways():
    for kind, make in enumerate(made()):
        for number, (ours, theirs) in enumerate(VIEWS):
            how = (kind + number) % 4
            tensor = make()
            array = tensor.numpy().copy()
            before, copied = array.copy(), tensor + 0
            view, other, view_there, other_there = ours(tensor), tensor[1], theirs(array), array[1]
            if number % 2:
                view.realize()
            for x in ((view, view_there), (other, other_there), (tensor, array), (view, view_there)):
                change(x[0], how)
                change(x[1], how)
            for x, wanted in ((tensor, array), (view, view_there), (other, other_there), (copied, before)):
                checks.true(numpy.array_equal(x.numpy(), wanted), f"{kind} {number} {how}")


def test_loops():
    matrix = Tensor.zeros(3, 2)
    for row in matrix.T:
        row += 1
        row[0] = 9
    checks.equal(matrix.tolist(), [[9, 9], [1, 1], [1, 1]])


def test_what_goes():
    """A view of a view stays one of what is there."""
    flat = Tensor.arange(6)
    square = flat.reshape(2, 3)
    row = square.T[0]
    row += 10
    checks.equal(flat.tolist(), [10, 1, 2, 13, 4, 5])
    del flat
    row += 10
    checks.equal((square.tolist(), row.tolist()), ([[20, 1, 2], [23, 4, 5]], [20, 23]))
    del square
    row += 10
    checks.equal(row.tolist(), [30, 33])


def test_many():
    """Parts of parts: what they cost together grows with how many there are, also when those in the midst go."""
    times = []
    for n in (3000, 24000):
        x = Tensor.zeros(n + 2).contiguous().realize()
        held, seconds = [x[1:]], time.process_time()
        for _ in range(n):
            held.append(held[-1][1:])
        x.assign(x + 1).realize()
        last = held[n // 2]
        del held
        times.append(time.process_time() - seconds)
        x[n // 2 + 1].assign(Tensor(7.0))
        checks.equal(last[:2].tolist(), [7, 1])
    checks.true(times[1] < 40 * max(times[0], 0.02), f"{times}")


def test_copies():
    """What computes, and reads at positions, is no view; nor are copies."""
    x = Tensor([1.0, 2.0, 3.0])
    for other in (x + 0, x.clone(), x.contiguous(), x[[0, 1, 2]], x[x > 0], copy.deepcopy(x), x.cast(x.dtype), Tensor(x),
                  x.roll([0]), x.repeat(1), Tensor.cat(x), x.to(x.device), x.round()):
        other += 1
        checks.equal(x.tolist(), [1, 2, 3])
        x *= 1
        checks.equal(other.tolist(), [2, 3, 4])


def test_expanded():
    x = Tensor.ones(1, 3)
    many = x.expand(2, 3)
    error = checks.raises(ValueError, many.assign, many + 1)
    checks.true("contiguous()" in str(error), str(error))
    x[0, 1] = 5
    checks.equal(many.tolist(), [[1, 5, 1]] * 2)


def test_gradients():
    w = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = w * 2
    y[0] *= 5
    y[1:].assign(y[1:] * w[1:])
    y.sum().backward()
    checks.equal(w.grad.tolist(), [10, 8, 12])
    w[0].assign(Tensor(7.0))
    w.detach()[1] = 8
    with no_grad():
        w[2:] += 6
    checks.equal((w.tolist(), w.requires_grad), ([7, 8, 9], True))
    w.grad = None
    (w * w).sum().backward()
    checks.equal(w.grad.tolist(), [14, 16, 18])


def test_variables():
    """A view that requires gradients stays one, and gradients end at it and at no other sight of the same elements."""
    s = Tensor([0.0, 1.0, 2.0, 3.0, 4.0])
    v, other = s[1:3].requires_grad_(), s[1:3]
    checks.equal((v.is_leaf, other.requires_grad, s.requires_grad), (True, False, False))
    (v * v + other).sum().backward()
    checks.equal((v.grad.tolist(), other.grad), ([2, 4], None))
    with no_grad():
        v -= v.grad
    checks.equal((s.tolist(), other.tolist()), ([0, -1, -2, 3, 4], [-1, -2]))
    s.assign(s * 2)
    v.grad = None
    part = v.reshape(2, 1).T
    (part * part).sum().realize().backward()
    checks.equal((v.grad.tolist(), v.tolist(), v.requires_grad), ([-4, -8], [-2, -4], True))
    for i in range(2):
        v.assign(v * v)
        v.grad = None
        (v * 3).sum().backward()
        checks.equal(v.grad.tolist(), [3, 3])
    checks.equal((v.tolist(), s.tolist(), s.requires_grad), ([16, 256], [0, 16, 256, 6, 8], False))
    del s
    v.assign(v + 1)
    v.grad = None
    v.sum().backward()
    checks.equal((v.grad.tolist(), v.tolist(), other.tolist()), ([1, 1], [17, 257], [16, 256]))
    v.requires_grad = False
    checks.equal((v * 2).requires_grad, False)

    weights = Tensor.zeros(4).contiguous().realize()
    w = weights[1:3].requires_grad_()

    @TinyJit
    def step(x):
        w.grad = None
        loss = ((w - x) * (w - x)).sum()
        loss.backward()
        with no_grad():
            w.assign(w - 0.25 * w.grad)
        return loss

    losses = [step(Tensor([1.0, 2.0]).realize()).item() for _ in range(4)]
    checks.equal((losses, weights.tolist()), ([5, 1.25, 0.3125, 0.078125], [0, 0.9375, 1.875, 0]))


def test_assigned_since():
    """A loss that was made of a variable before that was assigned to says so."""
    for read in (False, True):
        s = Tensor([1.0, 2.0, 3.0])
        w, v = Tensor([1.0, 2.0], requires_grad=True), s[1:].requires_grad_()
        for x in (w, v):
            loss = (x * x).sum()
            if read:
                loss.realize()
            with no_grad():
                x += 1
            error = checks.raises(ValueError, loss.backward)
            checks.true("before that was assigned to" in str(error), str(error))
            (x * x).sum().backward()
            checks.equal(x.grad.tolist(), (2 * x).tolist())
    for other in (False, True):  # also where another leaf has a gradient, and where it is asked for by name
        w, u = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0], requires_grad=True)
        for change in (lambda: w.add_(1), lambda: w.to_("CPU:1")):
            loss = (w * u).sum()
            with no_grad():
                change()
            error = checks.raises(ValueError, (lambda: loss.gradient(w)) if other else loss.backward)
            checks.true("before that was assigned to" in str(error), str(error))
            checks.equal(loss.gradient(u)[0].tolist(), [1, 2] if w.device == "CPU" else [2, 3])


def test_exported():
    """Another library's array of a view is that part of the memory, or a copy where no strides say which."""
    array = numpy.arange(24, dtype="float32").reshape(2, 3, 4)
    for number, (ours, theirs) in enumerate(VIEWS):
        base = Tensor(array)
        view, wanted = ours(base), theirs(array)
        if number % 2:
            view.realize()
        there = numpy.from_dlpack(view)
        checks.true(numpy.array_equal(there, wanted), f"{number}")
        shares = all(stride > 0 or size == 1 for stride, size in zip(wanted.strides, wanted.shape))
        base += 100
        base.realize()
        followed = numpy.array_equal(there, wanted + 100)
        checks.equal(view.tolist(), (wanted + 100).tolist(), f"{number}")
        checks.equal(followed, shares, f"{number} follows")


def test_captured():
    """What a recorded function writes through a view is written by replays; its results are views of nothing."""
    cache = Tensor.zeros(2, 3).contiguous().realize()

    @TinyJit
    def keep(x):
        cache[1][:2] += x
        return cache[1]

    for i in range(5):
        result = keep(Tensor([1.0, i]))
    checks.equal((cache.tolist(), result.tolist()), ([[0, 0, 0], [5, 10, 0]], [5, 10, 0]))
    cache.assign(cache * 0).realize()
    checks.equal(keep(Tensor([1.0, 1.0])).tolist(), [1, 1, 0])


def test_recorded_state():
    """Held views of memory that a recorded function writes are read anew by each replay; so is the memory of what is written through one."""
    flat = Tensor.zeros(6).contiguous().realize()
    w, b = flat[:4].reshape(2, 2), flat[4:]

    @TinyJit
    def step(x):
        y = (x @ w + b).sum()
        flat.assign(flat + 1)
        return y

    checks.equal([step(Tensor.ones(1, 2).realize()).item() for _ in range(5)], [0, 6, 12, 18, 24])
    state = Tensor.zeros(4).contiguous().realize()
    part = state[1:3]

    @TinyJit
    def add(x):
        part.assign(part + x)
        return state * 1

    checks.equal([add(Tensor([1.0, 2.0]).realize()).tolist() for _ in range(4)], [[0, n, 2 * n, 0] for n in range(1, 5)])


def test_parts():
    """A part at a place that a variable says is no view: writing to it is refused, not lost."""
    x, place = Tensor.zeros(8).contiguous().realize(), Variable("place", 0, 6).bind(3)
    error = checks.raises(ValueError, x.narrow(0, place, 2).assign, Tensor([1.0, 1.0]))
    checks.true("variable" in str(error), str(error))
    part = x.narrow(0, place, 2)
    checks.raises(ValueError, part.reshape(2, 1).assign, Tensor([[1.0], [1.0]]))
    checks.equal((part + 1).tolist(), [1, 1])


def write(x, numbers):
    """The host's bytes, where assign() takes a tensor."""
    x.write_data(numpy.array(numbers, dtype="float32").tobytes())


def test_written():
    """What the host writes changes views, and neither copies nor what waits, as an assignment does."""
    x = Tensor([1.0, 2.0, 3.0, 4.0]).realize()
    square, copied, turned = x.reshape(2, 2), x.contiguous(), x.contiguous().reshape(2, 2).T
    waiting, other = x + 1, Tensor([1.0, 2.0, 3.0, 4.0]).realize()
    other.assign(other + x)
    read = TinyJit(lambda y: x * y)
    one = Tensor([1.0]).realize()
    for i in range(3):
        read(one)
    write(x, [5, 6, 7, 8])
    checks.equal((square.tolist(), x.tolist()), ([[5, 6], [7, 8]], [5, 6, 7, 8]))
    checks.equal((copied.tolist(), turned.tolist()), ([1, 2, 3, 4], [[1, 3], [2, 4]]))
    checks.equal((waiting.tolist(), other.tolist()), ([2, 3, 4, 5], [2, 4, 6, 8]))
    checks.equal(read(one).tolist(), [5, 6, 7, 8])
    copied, waiting = x.contiguous(), x + 1
    write(square[1], [0, 1])
    checks.equal((x.tolist(), copied.tolist(), waiting.tolist()), ([5, 6, 0, 1], [5, 6, 7, 8], [6, 7, 8, 9]))
    checks.equal(read(one).tolist(), [5, 6, 0, 1])


def test_recorded_inputs():
    """An argument that is a view stays one: each call reads it anew, and what the function writes to it is written there."""
    s = Tensor.zeros(5).contiguous().realize()
    v, w = s[1:3], s[1:3]
    w.realize()
    add = TinyJit(lambda x: x + 1)
    for i in range(6):
        s.assign(s + 1) if i % 2 else s[1].assign(Tensor(float(i)))
        here = s.numpy()
        checks.equal((add(w if i == 4 else v).tolist(), v.tolist()), ((here[1:3] + 1).tolist(), here[1:3].tolist()))
        v += 1
        checks.equal((s[1:3].tolist(), w.tolist()), ((here[1:3] + 1).tolist(),) * 2)
    checks.equal(add(Tensor([1.0, 2.0])).tolist(), [2, 3])

    @TinyJit
    def grow(x):
        x += 1

    base, first = Tensor.zeros(4).contiguous().realize(), Tensor.zeros(2).contiguous().realize()
    for x in (first, first, first, base[:2], base[1:3], base.reshape(2, 2)[1], first):
        grow(x)
    checks.equal((base.tolist(), first.tolist()), ([1, 2, 2, 1], [4, 4]))

    @TinyJit
    def through(x):
        x *= 2
        return s.sum()

    s.assign(Tensor([0.0, 1, 2, 3, 4]))
    checks.equal([through(v).item() for _ in range(4)], [13, 19, 31, 55])
    checks.equal((v.tolist(), w.tolist(), through(s[1:3]).item()), ([16, 32], [16, 32], 103))
    checks.equal((through(s[2:4]).item(), through(v).item()), (170, 330))


def test_recorded_copies():
    """State that was not computed yet, copies that share its memory, and what waits: a recording leaves them what they are."""
    state = Tensor([1.0, 2.0]) * 1
    step = TinyJit(lambda x: (state.assign(state + x), state * 1)[1])
    one = Tensor([1.0, 1.0]).realize()
    step(one)
    copied, waiting = state.contiguous(), state * 10
    checks.equal([step(one).tolist() for _ in range(3)], [[n, n + 1] for n in range(3, 6)])
    checks.equal((copied.tolist(), waiting.tolist(), state.tolist()), ([2, 3], [20, 30], [5, 6]))


def test_recorded_views():
    """Views of memory that replays write, computed before or not, and what waits and is made of it."""
    state = Tensor.zeros(4).contiguous().realize()
    row, turned = state[1:3], state.reshape(2, 2).T

    @TinyJit
    def step(x):
        state.assign(state + x)
        return state[:2]

    one = Tensor.ones(4).realize()
    for i in range(1, 6):
        row.realize()
        waiting = state * 10
        result = step(one)
        checks.equal((row.tolist(), turned.tolist(), state.tolist()), ([i, i], [[i, i]] * 2, [i] * 4), f"{i}")
        checks.equal((result.tolist(), waiting.tolist()), ([i, i], [10 * i - 10] * 4), f"{i}")
    state.assign(state * 0)
    checks.equal((step(one).tolist(), row.tolist()), ([1, 1], [1, 1]))


checks.run(globals())
