#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that keep something between calls of a function give the same whether TinyJit records that function or not.

A program is a function of what makes functions recorded (TinyJit, or nothing) that gives a function of the number of a turn: what
that gives, lists of numbers, is compared over several turns. TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import checks
from tinycore import JitError, Tensor, TinyJit, amp, nn

N_TURNS = 7


def compare(program, *, name=None, like=1e-5):
    plain, recorded = program(lambda function: function), program(TinyJit)
    for i in range(N_TURNS):
        wanted, found = plain(i), recorded(i)
        checks.true(is_close(found, wanted, like), f"{name or program.__name__}, turn {i}: {found} is not {wanted}")


def is_close(found, wanted, like):
    if isinstance(wanted, (list, tuple)):
        return isinstance(found, (list, tuple)) and len(found) == len(wanted) and all(is_close(x, y, like) for x, y in zip(found, wanted))
    return found is None if wanted is None else abs(found - wanted) <= like * max(1, abs(wanted))


# ---- gradients ----
class Training:
    """A small network, its optimiser, and batches by number."""

    def __init__(self, make=lambda parameters: nn.optim.SGD(parameters, lr=0.1, momentum=0.9)):
        Tensor.manual_seed(3)
        self.net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
        self.parameters = list(self.net.parameters())
        self.optimizer = make(self.parameters)

    def batch(self, i):
        return Tensor([[1.0 + i, 2.0], [0.5, -1.0 * i]]), Tensor([[1.0], [float(i)]])

    def backward(self, x, y):
        loss = (self.net(x) - y).square().mean()
        loss.backward()
        return loss

    def all_in_one(self, x, y):
        self.optimizer.zero_grad()
        loss = self.backward(x, y)
        self.optimizer.step()
        return loss

    def seen(self):
        return [[None if p.grad is None else p.grad.flatten().tolist(), p.flatten().tolist()] for p in self.parameters]


def test_modes():
    """A function that says itself whether a module trains is recorded once; another once for each mode."""
    for sets_it, most in ((True, 3), (False, 4)):
        runs, net = [], nn.Sequential(nn.Linear(3, 4), nn.Dropout(1.0))

        @TinyJit
        def forward(x):
            runs.append(1)
            if sets_it:
                net.eval()
            return net(x)
        for i in range(12):
            net.train(i % 2 == 1)
            found = forward(Tensor([[1.0 + i, 2.0, 3.0]])).abs().sum().item()
            checks.true((found == 0) == (i % 2 == 1 and not sets_it), f"call {i}: {found}")
        checks.true(len(runs) <= most, f"{len(runs)} runs, {most} are enough")


def adam(parameters):
    return nn.optim.Adam(parameters, lr=0.1)


def test_backward_recorded():
    """Who reads gradients, steps and clears them outside sees those of each call."""
    def program(record, make, clip, scale):
        training = Training(make)
        backward = record(training.backward)

        def turn(i):
            training.optimizer.zero_grad()
            loss = backward(*training.batch(i)).item()
            if clip:
                nn.utils.clip_grad_norm_(training.parameters, 0.1)
            for p in training.parameters if scale else ():
                p.grad.mul_(0.5)
            seen = training.seen()
            training.optimizer.step()
            return [loss, seen, training.seen()]
        return turn

    for make in (Training.__init__.__defaults__[0], adam):
        for clip in (False, True):
            for scale in (False, True):
                compare(lambda record: program(record, make, clip, scale), name=f"clip {clip}, scale {scale}")  # noqa: B023


def test_step_recorded():
    """A recorded step reads the gradients that there are, and those that it clears are gone; one that is not there is skipped."""
    def program(record, clears, lacks):
        training = Training()

        def step():
            training.optimizer.step()
            if clears:
                training.optimizer.zero_grad()

        step = record(step)

        def turn(i):
            training.optimizer.zero_grad()
            training.backward(*training.batch(i))
            if lacks and i % 3 == 1:
                training.parameters[0].grad = None
            step()
            return training.seen()
        return turn

    for clears in (False, True):
        for lacks in (False, True):
            compare(lambda record: program(record, clears, lacks), name=f"clears {clears}, lacks {lacks}")  # noqa: B023


def test_left_out():
    """A parameter that is left out of one step has a count of its own from then on."""
    def program(record, make, whole):
        training = Training(make)
        step = record(lambda: training.optimizer.step() and None)
        all_in_one = record(training.all_in_one)

        def turn(i):
            if whole and i != 3:
                all_in_one(*training.batch(i))
                return training.seen()
            training.optimizer.zero_grad()
            training.backward(*training.batch(i))
            if i == 3:
                training.parameters[1].grad = None
            step()
            return training.seen()
        return turn

    for rule in (nn.optim.Adam, nn.optim.NAdam, nn.optim.RAdam, nn.optim.Adagrad, nn.optim.Adamax):
        for whole in (False, True):
            compare(lambda record: program(record, lambda p: rule(p, lr=0.1), whole), name=f"{rule.__name__}, whole {whole}")  # noqa: B023


def test_frozen():
    """What no longer requires a gradient, or does again, or is an argument that does, is another recording."""
    def program(record):
        training = Training()
        step = record(training.all_in_one)

        def turn(i):
            training.parameters[0].requires_grad_(i not in (2, 3, 4))
            x, y = training.batch(i)
            x.requires_grad_(i in (1, 4, 5))
            step(x, y)
            return [training.seen(), None if x.grad is None else x.grad.flatten().tolist()]
        return turn

    compare(program)


def test_scaler():
    """What a scaler knows on the host is of one recorded function, or of none."""
    def program(record, recorded):
        training, scaler = Training(), amp.GradScaler(init_scale=4.0)

        def backward(x, y):
            training.optimizer.zero_grad()
            scaler.scale((training.net(x) - y).square().mean()).backward()
            return x.sum()

        def rest():
            scaler.unscale_(training.optimizer)
            scaler.step(training.optimizer)
            scaler.update()
        backward, rest = (record(one) if one.__name__ in recorded else one for one in (backward, rest))

        def turn(i):
            backward(*training.batch(i))
            rest()
            return training.seen()
        return turn

    for recorded in ("backward", "rest", "backward rest"):
        compare(lambda record: program(record, recorded), name=recorded)  # noqa: B023
    training, scaler = Training(), amp.GradScaler()
    unscale = TinyJit(lambda: scaler.unscale_(training.optimizer))
    for refused in (False, True):
        scaler.scale(training.backward(*training.batch(1)))
        if refused:
            checks.true("unscale_ (), step () and update ()" in str(checks.raises(JitError, unscale)))
        else:
            unscale()
        scaler.step(training.optimizer)
        scaler.update()


def test_accumulated():
    """Gradients of several calls add up, from nothing or from what there is."""
    def program(record, n, clears, steps_too):
        training = Training(adam)
        backward = record(training.backward)
        step = record(training.optimizer.step) if steps_too else training.optimizer.step

        def turn(i):
            if clears:
                training.optimizer.zero_grad()
            losses = [backward(*training.batch(n * i + k)).item() for k in range(n)]
            seen = training.seen()
            step()
            return [losses, seen, training.seen()]
        return turn

    for n in (1, 3):
        for clears in (True, False):
            for steps_too in (False, True):
                compare(lambda record: program(record, n, clears, steps_too), name=f"{n} calls, clears {clears}")  # noqa: B023


def test_all_recorded():
    def program(record, kind):
        training = Training(adam)

        def clears_last(x, y):
            loss = training.backward(x, y)
            training.optimizer.step()
            training.optimizer.zero_grad()
            return loss

        def never_clears(x, y):
            loss = training.backward(x, y)
            training.optimizer.step()
            return loss

        function = record({"first": training.all_in_one, "last": clears_last, "outside": never_clears}[kind])

        def turn(i):
            if kind == "outside" and i % 2 == 0:
                training.optimizer.zero_grad()
            return [function(*training.batch(i)).item(), training.seen()]
        return turn

    for kind in ("first", "last", "outside"):
        compare(lambda record: program(record, kind), name=kind)  # noqa: B023


def test_gradients_read():
    """Functions that only look at gradients, or change them in place."""
    def program(record, kind):
        training = Training()

        def norm():
            return sum(p.grad.square().sum() for p in training.parameters)

        def clip():
            return nn.utils.clip_grad_norm_(training.parameters, 0.1)

        def halve():
            for p in training.parameters:
                p.grad.mul_(0.5)
            return training.parameters[0].grad.sum()

        function = record({"norm": norm, "clip": clip, "halve": halve}[kind])

        def turn(i):
            training.optimizer.zero_grad()
            training.backward(*training.batch(i))
            found = function().item()
            seen = training.seen()
            training.optimizer.step()
            return [found, seen, training.seen()]
        return turn

    for kind in ("norm", "clip", "halve"):
        compare(lambda record: program(record, kind), name=kind)  # noqa: B023


def test_equal_gradients():
    """Two leaves whose gradients are one value do not share it."""
    def program(record):
        a, b = (Tensor(one).requires_grad_() for one in ([1.0, 2.0], [3.0, 4.0]))
        backward = record(lambda x: ((a + b) * x).sum().backward())

        def turn(i):
            if i % 2 == 0:
                a.grad = b.grad = None
            backward(Tensor([1.0 + i, 2.0]))
            a.grad.mul_(2)
            return [a.grad.tolist(), b.grad.tolist()]
        return turn

    compare(program)


# ---- what is no tensor ----
def test_settings():
    """Settings of an optimiser are those of each step."""
    changes = {"momentum": 0.5, "weight_decay": 0.1, "nesterov": True, "lr": 0.01}
    for changed in ({name: value} for name, value in changes.items()):
        def program(record):
            training = Training()
            step = record(training.all_in_one)

            def turn(i):
                for name, value in changed.items() if i in (3, 4) else ():  # noqa: B023
                    training.optimizer.param_groups[0][name] = value if i == 3 else training.optimizer.defaults[name]
                step(*training.batch(i))
                return training.seen()
            return turn

        compare(program, name=str(changed))


def test_modes():
    """A module trains or not in each call as it is told."""
    def program(record, make):
        Tensor.manual_seed(3)
        net = make()
        function = record(lambda x: net(x))

        def turn(i):
            if i in (0, 2, 3, 5):
                net.train(i in (0, 3))
            return function(Tensor([[1.0 + i, 2.0], [0.5, -1.0 * i]])).tolist()
        return turn

    class Own(nn.Module):
        def forward(self, x):
            return x * 2 if self.training else x

    for make in (lambda: nn.BatchNorm1d(2), lambda: nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), Own, lambda: nn.Sequential(Own(), Own())):
        compare(lambda record: program(record, make), name=str(make()))  # noqa: B023


# ---- memory ----
COPIES = {
    "Tensor": Tensor, "contiguous": Tensor.contiguous, "clone": Tensor.clone, "cpu": Tensor.cpu, "cast": lambda x: x.cast("float32"),
    "copy of a detached one": lambda x: x.detach().contiguous(), "view": lambda x: x[:1], "other shape": lambda x: x.reshape(2, 1),
    "copy of a view": lambda x: x[:1].contiguous(), "copy of another shape": lambda x: Tensor(x.reshape(2, 1)), "product": lambda x: x * 1,
}


def made(*numbers):
    return Tensor(list(numbers)).realize()


def all_of(tensors):
    return [one.tolist() for one in tensors]


def each(programs, make):
    """Compares make (record, …) for all values of @programs, by name."""
    for name, value in programs.items():
        compare(lambda record: make(record, value), name=name)  # noqa: B023


def test_copies_of_state():
    """What was copied between calls stays what it was; views follow."""
    def program(record, copy):
        state, kept = made(1.0, 2.0), []
        function = record(lambda x: (state.add_(x), state * 1)[1])

        def turn(i):
            found = function(made(1.0, 1.0)).tolist()
            kept.append(copy(state))
            return [found, all_of(kept), state.tolist()]
        return turn

    each(COPIES, program)


def test_copies_of_results():
    """Those who copied a result keep that; the result itself, and its views, are those of the last call."""
    def program(record, copy):
        function, kept = record(lambda x: x * 2), []

        def turn(i):
            result = function(made(1.0 + i, 1.0))
            kept.append(copy(result))
            return [result.tolist(), all_of(kept)]
        return turn

    each({name: copy for name, copy in COPIES.items() if name not in ("view", "other shape")}, program)


def test_copies_of_inputs():
    def program(record, given):
        copy, is_new = given
        function, kept, state = record(lambda x: (x.add_(1), x * 2)[1]), [], made(0.0, 0.0)

        def turn(i):
            x = made(1.0 * i, 2.0) if is_new else state
            kept.append(copy(x))
            found = function(x).tolist()
            kept.append(copy(x))
            return [found, all_of(kept), x.tolist()]
        return turn

    each({f"{name}, {is_new}": (copy, is_new) for name, copy in COPIES.items() for is_new in (False, True)}, program)


BODIES = {
    "copied, set": (1, lambda a: [v := a * 1, a.fill_(3.0), v.copy_(a), a.zero_(), v][-1]),
    "view of the end": (1, lambda a: [v := a[-1:], v.fill_(5.0), c := v.cumsum(0), a[-1:].mul_(2), c][-1]),
    "copy changed": (1, lambda a: [v := Tensor(a), v.add_(1), a.mul_(2), v][-1]),
    "copy kept": (1, lambda a: [v := Tensor(a), a.mul_(2), v * 1][-1]),
    "view kept": (1, lambda a: [v := a[:1], a.mul_(2), v * 1][-1]),
    "view, copy": (1, lambda a: [v := a[:1], v.mul_(2), w := a.contiguous(), a.zero_(), w][-1]),
    "turned": (1, lambda a: [v := a.reshape(3, 1), v.add_(1), a.mul_(2), v][-1]),
    "there and back": (2, lambda a, b: [a.add_(b), b.copy_(a), a.zero_(), a * 1][-1]),
    "copied over": (2, lambda a, b: [b.copy_(a), a.add_(1), b * 1][-1]),
    "both": (2, lambda a, b: [a.copy_(b), a + b][-1]),
}


def test_shared_within():
    """Arguments that share memory with others while the function runs are changed by each call all the same."""
    def program(record, given):
        (n, body), is_new = given
        function, same = record(body), [made(1.0 + k, 2.0, 3.0 * k) for k in range(n)]

        def turn(i):
            arguments = [made(1.0 * i + k, 2.0, 3.0 * k) for k in range(n)] if is_new else same
            return [function(*arguments).tolist(), all_of(arguments)]
        return turn

    each({f"{name}, {is_new}": (body, is_new) for name, body in BODIES.items() for is_new in (False, True)}, program)


FUNCTIONS = {
    "reads": lambda x, y: x + 2 * y, "writes first": lambda x, y: (x.add_(1), x * y)[1], "writes second": lambda x, y: (y.add_(1), x * y)[1],
    "writes both": lambda x, y: (y.add_(x), x.mul_(y), x * y)[-1],
}
PAIRS = {
    "two": lambda a, b: (a, b), "one twice": lambda a, b: (a, a), "view second": lambda a, b: (a, a[:]), "view first": lambda a, b: (b[:], b),
    "copy": lambda a, b: (a, Tensor(a)),
}
PARTS = {"two": lambda a, b: (a[:1], b[:1]), "of one": lambda a, b: (a[:1], a[1:]), "same": lambda a, b: (a[:1], a[:1])}


def test_equal_arguments():
    """The same tensor for two arguments, or views of one, in some calls and not in others."""
    def program(record, given):
        body, pairs = given
        function = record(body)

        def turn(i):
            a, b = made(1.0 * i, 2.0), made(3.0, 4.0 + i)
            return [function(*pairs[i % len(pairs)](a, b)).tolist(), a.tolist(), b.tolist()]
        return turn

    for kinds in (PAIRS, PARTS):
        two = kinds["two"]
        for name, other in kinds.items():
            for order, pairs in {"": [other], " at last": [two, two, other], " at first": [other, other, two], " at once": [two, other]}.items():
                each({f"{name}{order}, {what}": (body, pairs) for what, body in FUNCTIONS.items()}, program)


def test_state_as_argument():
    """What the function has by itself is also given to it, in some calls."""
    bodies = {"reads": lambda a, s: a + s, "writes it": lambda a, s: (a.add_(1), a + s)[1], "writes state": lambda a, s: (s.add_(1), a + s)[1]}

    def program(record, given):
        body, order = given
        names = {"s": made(1.0, 2.0), "o": made(5.0, 6.0), "p": made(7.0, 8.0)}
        function = record(lambda a: body(a, names["s"]))
        return lambda i: [function(names[order[i % len(order)]]).tolist(), all_of(names.values())]

    for order in ("sso", "sspo", "oos", "osp", "osop", "opsop"):
        each({f"{order}, {name}": (body, order) for name, body in bodies.items()}, program)


def test_views_of_state():
    """Views that were made, and read, before the recording are views of what state is at each call."""
    def program(record, given):
        view, body, outside = given
        state = made(1.0, 2.0, 3.0)
        v = view(state)
        v.tolist()
        function = record(lambda x: body(state, v, x))

        def turn(i):
            found = function(made(2.0)).tolist()
            if outside:
                state.add_(1)
            return [found, v.tolist(), state.tolist()]
        return turn

    bodies = {"reads": lambda s, v, x: v * x, "state is written": lambda s, v, x: (s.add_(x), v * x)[1], "it is written": lambda s, v, x: (v.add_(x), s * 1)[1]}
    views = {"part": lambda s: s[:1], "all": lambda s: s.reshape(3, 1)}
    each({f"{name}, {what}, {outside}": (view, body, outside) for name, view in views.items() for what, body in bodies.items()
          for outside in (False, True)}, program)


def test_results_of_state():
    """Results that are state, or a copy of it, while both are changed outside."""
    results = {
        "a copy": lambda s, x: (s.add_(x), Tensor(s))[1], "memory of its own": lambda s, x: (s.add_(x), s.contiguous())[1], "state": lambda s, x: (s.add_(x), s)[1],
        "a view": lambda s, x: (s.add_(x), s[:1])[1], "a copy, unchanged": lambda s, x: Tensor(s), "a view, unchanged": lambda s, x: s[:1],
        "copy of a view": lambda s, x: s[:1].contiguous(), "made of it": lambda s, x: s * x,
    }
    changes = {"nothing": lambda s, r: None, "state": lambda s, r: s.add_(1), "the result": lambda s, r: r.add_(1), "assigned": lambda s, r: s.assign(made(9.0, 9.0))}

    def program(record, given):
        body, change = given
        state = made(1.0, 2.0)
        function = record(lambda x: body(state, x))

        def turn(i):
            result = function(made(1.0, 1.0 * i))
            before = result.tolist()
            change(state, result)
            return [before, result.tolist(), state.tolist()]
        return turn

    each({f"{name}, {what} changes": (body, change) for name, body in results.items() for what, change in changes.items()}, program)


def test_copies_in_functions():
    """Copies of state that a function has, or makes."""
    def program(record, body):
        state = made(1.0, 2.0)
        copy, average = Tensor(state), state.contiguous()
        function = record(lambda x: body(state, copy, average, x))

        def turn(i):
            found = function(made(2.0, 2.0)).tolist()
            kept = Tensor(state)
            state.mul_(2)
            copy.add_(1)
            return [found, all_of((state, copy, average, kept))]
        return turn

    each({
        "read": lambda s, c, e, x: c * x, "written": lambda s, c, e, x: (c.add_(x), c * s)[1], "average": lambda s, c, e, x: (e.assign(e * 0.5 + s * 0.5), e + c)[1],
        "made": lambda s, c, e, x: (t := Tensor(s), t.add_(x), t * s)[2], "made before": lambda s, c, e, x: (t := Tensor(s), s.add_(x), t * s)[2],
    }, program)


def test_gradients_of_arguments():
    """Tensors that are given get the gradients of their own calls."""
    def program(record, given):
        n, is_new = given
        function = record(lambda w, x: ((w * w * x).sum().backward(), x * 1)[1])
        leaves = [made(1.0, 2.0).requires_grad_() for _ in range(n)]

        def turn(i):
            if is_new:
                leaves[i % n] = made(1.0, 2.0 + i).requires_grad_()
            elif i % 5 == 4:
                leaves[i % n].grad = None
            function(leaves[i % n], made(1.0, 1.0 * i))
            return [None if w.grad is None else w.grad.tolist() for w in leaves]
        return turn

    each({f"{n}, {is_new}": (n, is_new) for n in (1, 2, 3) for is_new in (False, True)}, program)


def test_once_more():
    """Functions are recorded once for each kind of call, not for each call."""
    calls = []
    function = TinyJit(lambda x, y: (calls.append(1), x + y)[1])
    batches = [made(1.0, 1.0 * i) for i in range(6)]
    for i in range(12):
        checks.equal(function(batches[i % 6], batches[(i + 1) % 6]).tolist(), [2.0, i % 6 + (i + 1) % 6])
        checks.equal(function(batches[i % 6], batches[i % 6]).tolist(), [2.0, i % 6 * 2.0])
    checks.true(len(calls) <= 5, str(len(calls)))
    calls, state = [], made(1.0)
    function = TinyJit(lambda x: (calls.append(1), state.add_(x), state * 1)[2])
    for i in range(6):
        function(made(1.0))
    checks.equal(len(calls), 2)


def test_messages():
    """A refusal says which argument is not as it was, and what it is."""
    function = TinyJit(lambda x, pair=None, *, scale=1: x * scale)
    x = made(1.0)
    for _ in range(3):
        function(x, [x, {"a": 1}], scale=2)
    for wanted, arguments, more in (
            ("argument 'scale' was recorded as 2 and is now 3", (x, [x, {"a": 1}]), {"scale": 3}),
            ("argument 2[1]['a'] was recorded as 1 and is now 1.0", (x, [x, {"a": 1.0}]), {"scale": 2}),
            ("argument 2[0] was recorded as a tensor and is now None", (x, [None, {"a": 1}]), {"scale": 2}),
            ("argument 2 was recorded as a list of 2 and is now a list of 1", (x, [x]), {"scale": 2}),
            ("argument 'scale' was there when it was recorded", (x, [x, {"a": 1}]), {}),
            ("argument 3 was not there when it was recorded", (x, [x, {"a": 1}], 3), {"scale": 2})):
        error = checks.raises(ValueError, function, *arguments, **more)
        checks.true(wanted in str(error), str(error))


checks.run(globals())
