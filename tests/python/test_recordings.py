#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that keep something between calls of a function give the same whether TinyJit records that function or not.

A program is a function of what makes functions recorded (TinyJit, or nothing) that gives a function of the number of a turn: what
that gives, lists of numbers, is compared over several turns. TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import checks
from tinycore import Tensor, TinyJit, nn

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


checks.run(globals())
