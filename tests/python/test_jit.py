#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TinyJit: the third call replays what the second recorded, with other inputs; what does not fit is refused.

TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import threading
import time
from array import array
from collections import deque
from dataclasses import dataclass
from types import SimpleNamespace

import checks
import numpy as np
from tinycore import Device, JitError, Tensor, TinyJit, dtypes


def test_replay():
    calls = []

    @TinyJit
    def twice(x):
        """Doubles."""
        calls.append(1)
        return x * 2

    for i in range(5):
        checks.equal(twice(Tensor([1.0, i])).tolist(), [2.0, 2.0 * i])
    checks.equal((len(calls), twice.captured, twice.n_kernels), (2, True, 1))
    checks.equal((twice.__name__, twice.__doc__), ("twice", "Doubles."))
    twice.reset()
    checks.equal(twice(Tensor([1.0, 2.0, 3.0])).tolist(), [2, 4, 6])
    checks.equal(len(calls), 3)


def test_structure():
    """Inputs and results may be in lists and dicts."""
    @TinyJit
    def both(pair, scale=1, *, named):
        return {"sum": pair[0] + pair[1], "all": [pair[0] * scale, (named["x"],)], "text": "kept"}

    for i in range(4):
        x, y, z = (Tensor([float(i + k)]) for k in range(3))
        result = both([x, y], 3, named={"x": z})
        checks.equal((result["sum"].item(), result["all"][0].item(), result["all"][1][0].item(), result["text"]),
                     (2.0 * i + 1, 3.0 * i, i + 2.0, "kept"))
    checks.raises(ValueError, both, [x, y], 4, named={"x": z})
    checks.raises(ValueError, both, (x, y), 3, named={"x": z})
    checks.raises(ValueError, both, [x, y], 3.0, named={"x": z})
    checks.raises(ValueError, both, [x], 3, named={"x": z})
    checks.equal(both([x, y], 3, named={"x": z})["sum"].item(), 7)


def test_state():
    """What the function assigns is assigned again by each replay."""
    counter = Tensor.zeros(1).contiguous().realize()

    @TinyJit
    def count(x):
        counter.assign(counter + x).realize()
        return counter + 0

    for i in range(1, 6):
        checks.equal(count(Tensor([2.0])).item(), 2.0 * i)


def test_pending():
    """What a function assigns and leaves to be computed later is computed by each replay."""
    @TinyJit
    def grow(a):
        a += 1
        return a * 1

    a = Tensor.ones(1).contiguous().realize()
    checks.equal([grow(a).item() for i in range(5)] + [a.item()], [2, 3, 4, 5, 6, 6])
    total = Tensor.zeros(1).contiguous().realize()

    @TinyJit
    def add(x):
        total.assign(total + x)
        return x * 2

    for i in range(5):
        checks.equal(add(Tensor([10.0 ** i])).item(), 2 * 10.0 ** i)
    checks.equal(total.item(), 11111)
    cache = Tensor.zeros(3).contiguous().realize()

    @TinyJit
    def keep(x):
        cache[1] = x[0]
        return x + 0

    for i in range(5):
        keep(Tensor([float(i)]))
        checks.equal(cache.tolist(), [0, float(i), 0])


def test_random():
    """A replay draws anew, and what a plain call would draw."""
    def draw(x):
        return x + Tensor.rand(3), Tensor.randint(4, low=0, high=100)

    def draw_all(function):
        Tensor.manual_seed(3)
        return [[t.tolist() for t in function(Tensor([0.0]))] for i in range(6)]

    plain = draw_all(draw)
    checks.equal(draw_all(TinyJit(draw)), plain)
    checks.equal(len({str(numbers) for numbers in plain}), 6)


def test_methods():
    class Model:
        def __init__(self, weight):
            self.weight = Tensor([weight])

        @TinyJit
        def apply(self, x):
            return self.weight * x

    first = Model(3.0)
    for i in range(4):
        checks.equal(first.apply(Tensor([float(i)])).item(), 3.0 * i)
    checks.raises(ValueError, Model(4.0).apply, Tensor([1.0]))


def test_refused():
    add = TinyJit(lambda x, y: x + y)
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    checks.equal(add(x, y).tolist(), [4, 6])
    checks.equal(add(x, x).tolist(), [2, 4])
    for _ in range(3):
        checks.equal(add(x, y).tolist(), [4, 6])
    checks.raises(ValueError, add, x, 3.0)
    checks.equal(add(y, y).tolist(), [6, 8])
    checks.raises(TypeError, TinyJit, 3)
    reads = TinyJit(lambda x: x if x.sum().item() > 0 else -x)
    checks.equal(reads(x).tolist(), [1, 2])
    for read in (lambda x: x.sum().item(), Tensor.numpy, Tensor.tolist, bool, lambda x: x.sum() > 3 and x):
        function = TinyJit(read)
        one = Tensor([1.0])
        function(one)
        checks.raises(ValueError, function, one)
    fails = TinyJit(lambda x: x.reshape(3))
    for _ in range(3):
        checks.raises(ValueError, fails, x)
    checks.equal((Tensor([1.0]) + 1).item(), 2)  # nothing is recorded any more
    nothing = TinyJit(lambda x: x + 1)
    empty = Tensor([])
    nothing(empty)
    checks.raises(ValueError, nothing, empty)


def test_kinds():
    """Inputs of another shape or dtype have a recording of their own beside the first; the last eight are kept."""
    calls, w = [], Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()

    @TinyJit
    def apply(x):
        calls.append(x.shape)
        return (x @ w).sum(1), x.shape[0]

    for epoch in range(3):
        for rows in (4, 4, 3):
            found, n = apply(Tensor([[epoch + 1.0, i] for i in range(rows)]))
            checks.equal((found.tolist(), n), ([3 * (epoch + 1) + 7.0 * i for i in range(rows)], rows), f"epoch {epoch}")
    checks.equal(calls, [(4, 2), (4, 2), (3, 2)])
    checks.equal(apply(Tensor([[1, 1]], dtype=dtypes.int32))[0].tolist(), [10])
    for n_calls, sizes in ((8, range(5, 9)), (8, range(3, 9)), (12, range(9, 13)), (13, (3,)), (13, range(9, 13))):
        for rows in sizes:
            checks.equal(apply(Tensor.ones(rows, 2))[0].tolist(), [10.0] * rows)
        checks.equal(len(calls), n_calls, str(sizes))


def test_equal_inputs():
    """Inputs that are equal expressions are different memory."""
    add = TinyJit(lambda x, y: x + 2 * y)
    for _ in range(3):
        checks.equal(add(Tensor.ones(2), Tensor.ones(2)).tolist(), [3, 3])
    same = TinyJit(lambda x: (x, x.reshape(1, 2)))
    for i in range(4):
        given = Tensor([float(i), 1.0])
        found = same(given)
        checks.equal((found[0].tolist(), found[1].tolist(), given.tolist()), ([i, 1], [[i, 1]], [i, 1]))
    row = TinyJit(lambda x: x.max(0))  # of one row: that itself
    for i in range(4):
        checks.equal(row(Tensor([[i, 1]])).tolist(), [i, 1])
    views = TinyJit(lambda x: (x.unsqueeze(1), x.unsqueeze(1).expand(2, 2)))
    both = TinyJit(lambda x: [view for view in [x.unsqueeze(1)] for view in (view, view.expand(2, 2))])
    for i in range(4):
        for function in (views, both):
            checks.equal([one.tolist() for one in function(Tensor([i, 1]))], [[[i], [1]], [[i, i], [1, 1]]])


def test_nested():
    inner = TinyJit(lambda x: x + 1)
    outer = TinyJit(lambda x: inner(x) * 2)
    for i in range(4):
        checks.equal(outer(Tensor([float(i)])).item(), 2.0 * i + 2)


def test_threads():
    """Each thread records its own function."""
    failures = []

    def work(scale):
        function = TinyJit(lambda x: (x * scale).sum())
        for i in range(20):
            found = function(Tensor([float(i), 1.0])).item()
            if found != scale * (i + 1):
                failures.append((scale, i, found))

    threads = [threading.Thread(target=work, args=(scale,)) for scale in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    checks.equal(failures, [])


def test_shared():
    """Threads call one function: one after the other, from the first call on."""
    for scale in range(3):
        failures, start, inside = [], threading.Barrier(4), []

        @TinyJit
        def function(x):
            inside.append(1)
            time.sleep(0.01)
            if len(inside) > 1:
                failures.append("two at once")
            inside.pop()
            return (x * 3 + scale).sum()

        def work(seed):
            start.wait()
            try:
                for i in range(12):
                    function(Tensor([1.0, 2.0]))
                    with function.lock:
                        found = function(Tensor([float(i), float(seed)])).item()
                    if found != 3 * (i + seed) + 2 * scale:
                        failures.append((seed, i, found))
            except Exception as error:
                failures.append((seed, error))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        checks.equal((failures, function.captured), ([], True))


def test_results_of_other_kinds():
    """A tensor in an object that nobody looks into would stay what it was in the recording."""
    class Holder:
        def __init__(self, tensor):
            self.tensor = tensor

    for make in (lambda x: Holder(x + 1), lambda x: (one for one in (x,)), lambda x: {1, 2}, lambda x: [{"a": (x, Holder(x))}]):
        function = TinyJit(make)
        function(Tensor([1.0]))
        error = checks.raises(JitError, function, Tensor([2.0]))
        checks.true("gives" in str(error), str(error))
    function = TinyJit(lambda x: {"a": [x + 1, None], "b": ("text", 2.5)})
    for i in range(4):
        checks.equal(function(Tensor([float(i)]))["a"][0].tolist(), [i + 1.0])


def test_changed_copies():
    """What shares an input's memory until it is changed is that of the input of each call."""
    def added(x):
        x = x.cast("float32")
        x += 1
        return x

    def replaced(x):
        x = Tensor(x)
        x.assign(x * 2)
        return x

    def written(x):
        x = x.cast("float32").reshape(1, 4).reshape(4)
        x[0] = 9
        return x

    for plain in (added, replaced, written):
        recorded = TinyJit(plain)
        for i in range(5):
            numbers = [i + 0.0, i + 1.0, i + 2.0, i * 3.0]
            given = Tensor(numbers)
            checks.equal(recorded(given).tolist(), plain(Tensor(numbers)).tolist(), plain.__name__)
            checks.equal(given.tolist(), numbers, plain.__name__)


def test_changed_outside():
    """The state of a recording stays its state when it is changed outside while others look at it."""
    copies = Tensor.contiguous, Tensor, Tensor.cpu, Tensor.clone, lambda state: state[:1], lambda state: state.reshape(2, 1)
    for copy in copies:
        seen = []
        for record in (lambda function: function, TinyJit):
            state, kept, found = Tensor([1.0, 2.0]).realize(), [], []
            scaled = record(lambda x: state * x)  # noqa: B023
            for _ in range(5):
                found.append(scaled(Tensor([1.0, 1.0])).tolist())
                kept.append(copy(state))
                state.add_(1)
            seen.append((found, [one.tolist() for one in kept]))
        checks.equal(seen[1], seen[0], repr(copy))


@dataclass
class Settings:
    scale: float
    table: list
    shift: Tensor


def test_constants():
    """What is no tensor may not change where it is: it is compared by what is in it now, and an equal one is as good."""
    table, names, raw, space = np.array([1.0, 2.0], np.float32), {"double"}, bytearray(b"\x01"), SimpleNamespace(scale=2.0)
    numbers, queue = array("f", [2.0]), deque([1])
    settings, longer = (Settings(2.0, [1], Tensor([1.0])) for _ in range(2))
    for name, body, argument, equal, change in (
            ("array", lambda x, a: x * Tensor(a), table, table.copy(), lambda: table.fill(7)),
            ("array of Python", lambda x, a: x * a[0], numbers, array("f", numbers), lambda: numbers.append(2)),
            ("deque", lambda x, a: x * len(a), queue, deque(queue), lambda: queue.append(2)),
            ("set", lambda x, a: x * (2 if "double" in a else 1), names, {"double"}, names.clear),
            ("bytes", lambda x, a: x * a[0], raw, bytearray(raw), lambda: raw.append(2)),
            ("namespace", lambda x, a: x * a.scale, space, SimpleNamespace(scale=2.0), lambda: setattr(space, "scale", 3.0)),
            ("data class", lambda x, a: x * a.scale + a.shift, settings, Settings(2.0, [1], Tensor([1.0])), lambda: setattr(settings, "scale", 3.0)),
            ("list in it", lambda x, a: x * a.table[0], longer, Settings(2.0, [1], Tensor([1.0])), lambda: longer.table.append(2))):
        function = TinyJit(body)
        for i in range(4):
            x = Tensor([1.0 + i, 2.0])
            checks.equal(function(x, equal if i == 3 else argument).tolist(), body(x, argument).tolist(), name)
        change()
        error = checks.raises(JitError, function, x, argument)
        checks.true("argument 2" in str(error), f"{name}: {error}")
        checks.true(name != "array" or "Tensor (array) is an input" in str(error), str(error))
    function = TinyJit(lambda x, a: x + a.shift)
    for i in range(4):
        found = function(Tensor([1.0]), Settings(1.0, [], Tensor([1.0 * i]))).tolist()
        checks.equal(found, [1.0 + i], "a tensor of a data class is an input")


def test_odd_constants():
    """NaN is NaN, and what leads back to itself is the same there."""
    space = SimpleNamespace(scale=2.0)
    space.itself = [space]
    function, refuses = TinyJit(lambda x, a: x * a.scale), Refuses()
    for i in range(4):
        checks.equal(function(Tensor([1.0 + i]), space).tolist(), [2.0 + 2 * i])
    for odd in (float("nan"), refuses):
        function = TinyJit(lambda x, a: x + 1)
        for i in range(4):
            checks.equal(function(Tensor([1.0 * i]), odd).tolist(), [1.0 + i])
    checks.raises(JitError, function, Tensor([1.0]), Refuses())


class Refuses:
    def __array__(self, dtype=None):
        raise RuntimeError("is on another machine")


def test_defaults():
    """The float and the device that tensors are made of and on belong to what is recorded."""
    function, before = TinyJit(lambda: Tensor.rand(2) * 0 + 1), Device.DEFAULT
    for i in range(9):
        try:
            dtypes.default_float = dtypes.float16 if i in (3, 4) else dtypes.float32
            Device.DEFAULT = "REF" if i in (6, 7) else before
            found = function()
            checks.equal((found.dtype, found.device, found.tolist()), (dtypes.default_float, Device.DEFAULT, [1.0, 1.0]), f"call {i}")
        finally:
            dtypes.default_float, Device.DEFAULT = dtypes.float32, before


def test_backward_outside():
    """The loss of a recorded function has no gradients behind it, and the message says so."""
    w = Tensor([1.0, 2.0], requires_grad=True)
    function = TinyJit(lambda x: (w * x).sum())
    for i in range(4):
        loss = function(Tensor([1.0, 1.0 * i]))
        if i > 0:
            checks.true("TinyJit" in str(checks.raises(ValueError, loss.backward)), f"call {i}")


def test_steps():
    """The steps of a recurrence over weights alone, which are one kernel with other places, are not repeated by replays."""
    weights = Tensor([[t + 0.25 * i for i in range(6)] for t in range(10)]).realize()

    def plain(x):
        h = weights[0]
        for t in range(1, 10):
            h = (h.flip(0) * 0.5 + weights[t]).contiguous()
        return x + h

    recorded = TinyJit(plain)
    for i in range(4):
        given = [float(i)] * 6
        checks.equal(recorded(Tensor(given)).tolist(), plain(Tensor(given)).tolist())
    checks.equal(recorded.n_kernels, 1)


def test_refused_inputs():
    """Inputs that cannot be recorded leave the recordings that there are."""
    step = TinyJit(lambda x: (x + 1).realize())
    for _ in range(3):
        step(Tensor([1.0, 2.0]).realize())
    checks.raises(JitError, step, Tensor.zeros(0))
    checks.equal(step(Tensor([3.0, 4.0]).realize()).tolist(), [4.0, 5.0])


# PyTorch 2.15's, of the same numbers and a mask of bool or of 0 and -infinity: the result, and gradients of its sum.
UNSEEN = ([0.0, 0.4794, 0.0, 0.0, 0.7352, 0.7319, 0.6119, 0.5098],
          [[0.0, 0.0, 0.0, 0.0, 0.0853, 0.0614, 0.079, 0.1449], [-0.1645, -0.1653, 0.2431, 0.2327, 0.1083, 0.0983, -0.1869, -0.1656],
           [1.2952, 1.2952, 0.6851, 0.6851, 0.8158, 0.8158, 0.2038, 0.2038]])


def test_masks_that_show_nothing():
    """Row 1 sees no key: as PyTorch's in both forms of a mask, at once and replayed. A softmax of -infinity alone is NaN."""
    shows = [[j <= i != 1 for j in range(4)] for i in range(4)]
    for dtype, bound in (("float32", 1e-4), ("bfloat16", 8e-3)):
        for mask in (Tensor(shows), Tensor([[0.0 if one else float("-inf") for one in row] for row in shows], dtype=dtype)):
            mask.realize()

            def step(q, k, v):
                operands = [one.detach().requires_grad_() for one in (q, k, v)]
                found = operands[0].scaled_dot_product_attention(*operands[1:], attn_mask=mask)
                gradients = found.float().sum().gradient(*operands)
                return Tensor.cat(*(one.float().flatten() for one in (found, *gradients))).realize()
            replayed = TinyJit(step)
            x = [(Tensor.arange(8).float().reshape(1, 1, 4, 2) * (.3 + i * .1)).sin().cast(dtype).realize() for i in range(3)]
            wanted = UNSEEN[0] + sum(UNSEEN[1], [])
            for one in (step, replayed, replayed, replayed):
                found = one(*x).tolist()
                checks.true(all(abs(a - b) < bound for a, b in zip(found, wanted)), f"{dtype} {mask.dtype}: {found}")
    least = Tensor.full((1, 1, 1, 2), -3.4028234663852886e38)  # hides nothing: both keys are seen alike
    keys, values = Tensor([[[[1.0], [2.0]]]]), Tensor([[[[4.0], [8.0]]]])
    checks.equal(Tensor.ones(1, 1, 1, 1).scaled_dot_product_attention(keys, values, attn_mask=least).item(), 6.0)
    for name in ("softmax", "log_softmax"):
        x = Tensor([[1.0, 2.0], [float("-inf")] * 2], requires_grad=True)
        found = getattr(x, name)(1)
        (found * Tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
        checks.equal([one.isnan().tolist() for one in (found, x.grad)], [[[False, False], [True, True]]] * 2)


checks.run(globals())
