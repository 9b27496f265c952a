#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random programs around functions that TinyJit records, with and without recording: test-sessions.py [--seed N] [--count N].

A session is Python text: state, views of it, functions that read and change it, their arguments and gradients, and turns that call them
with one tensor for several arguments, with state, views and results, and change, copy and keep tensors between calls. What
differs is made smaller by leaving out lines as long as it still differs, and printed."""
import argparse
import random
import sys

TURNS = 6
HEAD = """def session(record):
    a, b, c = made(1), made(2), made(3)
    v, u = a[:2], b[1:3]
    w, z = leaf(1), leaf(2)
    x0, x1, kept = Tensor(a), b.contiguous(), []
"""
TAIL = """    def seen():
        return [a, b, c, v, u, w, z, x0, x1, w.grad, z.grad, *kept]
    return turn, seen
"""
# Names of four numbers and of two, of what has gradients, everywhere; and those that only turns have.
FOUR, TWO, LEAVES, OUTER = ["a", "b", "c"], ["v", "u"], ["w", "z"], ["x0", "x1"]
FRESH = ["{0} + {1}", "{0} * 3 - {1}", "{0}.maximum({1})", "Tensor({0})", "{0}.contiguous()", "{0}.clone()", '{0}.cast("int32")', "{0}.cumsum(0)", "{0} * 1"]
VIEWS = ["{0}.reshape(2, 2).reshape(4)", "{0}.detach()", "{0}[:]"]
PARTS = ["{0}[:2]", "{0}[1:3]", "{0}[2:]"]
CHANGES = ["{0}.add_({1})", "{0}.mul_(2)", "{0}.assign({1})", "{0}.copy_({1})", "{0}.zero_()", "{0}.fill_({n})", "{0}.assign({0} + {1})"]
PUTS = ["{0}[1:3] = {2}", "{0}[:2] = {2}"]
GRADIENTS = ["({3} * {0}.cast(\"float32\") * 0.25).sum().backward()", "({3} * {4}).sum().backward()", "{3}.grad = None", "halve({3})", "step({3})"]


class Maker:
    """Lines of a function or of a turn, and the names that there are in it."""

    def __init__(self, rng, four, two):
        self.rng, self.four, self.two, self.fresh, self.n = rng, list(four), list(two), [], 0

    def fill(self, form, two=False):
        some = self.two if two else self.four
        pick = self.rng.choice
        return form.format(pick(some), pick(some), pick(self.two), pick(LEAVES), pick(LEAVES), n=self.rng.randint(-3, 3))

    def name(self):
        self.n += 1
        return f"t{self.n}"

    def line(self, no_gradients=False):
        kind = self.rng.randrange(5 if no_gradients else 7)
        if kind == 0:
            name, two = self.name(), self.rng.random() < 0.3
            text = f"{name} = {self.fill(self.rng.choice(FRESH), two)}"
            (self.two if two else self.four).append(name)
            self.fresh.append(name)
        elif kind == 1:
            name = self.name()
            if self.rng.random() < 0.5:
                text = f"{name} = {self.fill(self.rng.choice(PARTS))}"
                self.two.append(name)
            else:
                text = f"{name} = {self.fill(self.rng.choice(VIEWS))}"
                self.four.append(name)
        elif kind < 5:
            text = self.fill(self.rng.choice(PUTS)) if self.rng.random() < 0.2 else self.fill(self.rng.choice(CHANGES), self.rng.random() < 0.3)
        else:
            text = self.fill(self.rng.choice(GRADIENTS))
            if self.rng.random() < 0.3:
                name = self.name()
                text = f"{name} = gradient({self.rng.choice(LEAVES)})"
                self.fresh.append(name)
        return text


def make_function(rng, number):
    parameters = [("x", True), ("y", rng.random() < 0.7), ("p", True)][:rng.randint(1, 3)]
    maker = Maker(rng, FOUR + [n for n, four in parameters if four], TWO + [n for n, four in parameters if not four])
    lines = [maker.line() for _ in range(rng.randint(1, 5))]
    results = rng.sample(maker.fresh, min(len(maker.fresh), rng.randint(0, 2)))
    results.append(maker.fill("{0} * 1"))
    text = [f"    def f{number}({', '.join(name for name, _ in parameters)}):"] + [f"        {one}" for one in lines]
    text += [f"        return [{', '.join(results)}]", f"    f{number} = record(f{number})"]
    return text, [four for _, four in parameters]


def argument(rng, four, results):
    if not four:
        return rng.choice(TWO + ["a[:2]", "x0[1:3]", "made(i)[2:]"])
    choices = FOUR + OUTER + results + ["made(i)", "Tensor(a)", "x1[:]", "made(i) * 2"]
    if rng.random() < 0.4:
        return f"[{', '.join(rng.choice(choices) for _ in range(rng.randint(2, 3)))}][i % {rng.choice([2, 3])} % 2]"
    return rng.choice(choices)


def make(seed):
    rng = random.Random(seed)
    lines, kinds = [], []
    for number in range(rng.randint(1, 2)):
        text, parameters = make_function(rng, number)
        lines += text
        kinds.append(parameters)
    lines.append("    def turn(i):")
    lines.append("        nonlocal x0, x1")
    results = []
    for _ in range(rng.randint(1, 3)):
        for _ in range(rng.randint(0, 2)):
            maker = Maker(rng, FOUR + OUTER + results, TWO)
            pick = rng.randrange(5)
            if pick == 0:
                lines.append(f"        kept.append({maker.fill(rng.choice(FRESH), rng.random() < 0.3)})")
            elif pick == 1:
                lines.append(f"        {rng.choice(OUTER)} = {maker.fill(rng.choice(FRESH + ['made(i)', 'Tensor(a)']))}")
            elif pick == 2:
                lines.append(f"        {maker.fill(rng.choice(GRADIENTS))}")
            else:
                lines.append(f"        {maker.fill(rng.choice(CHANGES + PUTS))}")
        number = rng.randrange(len(kinds))
        lines.append(f"        r{number} = f{number}({', '.join(argument(rng, four, results) for four in kinds[number])})")
        if f"r{number}[-1]" not in results:
            results.append(f"r{number}[-1]")
        lines.append(f"        look(r{number})")
    return lines


# ---- running ----
class Looked(list):
    """What a session computed, in the order of looking."""

    def look(self, tensors):
        self.append([None if one is None else one.tolist() for one in tensors])


def run(lines, record):
    from tinycore import Tensor, no_grad
    looked = Looked()

    def leaf(n):
        return Tensor([n * 0.5, -1.0, 2.0, 0.25]).requires_grad_()

    def halve(one):
        if one.grad is not None:
            one.grad.mul_(0.5)

    def step(one):
        if one.grad is not None:
            with no_grad():
                one.assign((one - one.grad * 0.125).clamp(-4, 4))

    names = {"Tensor": Tensor, "made": lambda n: Tensor([n, n + 1, 2 * n, -n]).cast("int32").realize(), "leaf": leaf, "halve": halve, "step": step,
             "look": looked.look, "gradient": lambda one: one * 0 if one.grad is None else one.grad * 2}
    exec(HEAD + "\n".join(lines) + "\n" + TAIL, names)
    turn, seen = names["session"](record)
    for i in range(TURNS):
        turn(i)
        looked.look(seen())
    return looked


def is_close(found, wanted):
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(is_close, found, wanted))
    return found is None if wanted is None else found == wanted or abs(found - wanted) <= 1e-4 * max(1, abs(wanted))


def difference(lines):
    """What differs, or None; None as well where the session cannot be run at all."""
    from tinycore import TinyJit
    try:
        wanted = run(lines, lambda function: function)
    except Exception:  # noqa: BLE001: lines were left out that others need, or the library refuses what they do
        return None
    try:
        found = run(lines, TinyJit)
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    for i, (one, other) in enumerate(zip(found, wanted)):
        if not is_close(one, other):
            return f"look {i}: {one}, not {other}"
    return None


def shrink(lines):
    again = True
    while again:
        again = False
        for at in reversed(range(len(lines))):
            fewer = lines[:at] + lines[at + 1:]
            if difference(fewer):
                lines, again = fewer, True
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    n_failed, n_run = 0, 0
    print("1..1")
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        lines = make(seed)
        if arguments.show:
            print("\n".join(lines))
        if difference(lines):
            small = shrink(lines)
            print(f"# seed {seed}: {difference(small)}\n# " + "\n# ".join(small), flush=True)
            n_failed += 1
        n_run += 1
    print(f"{'not ' if n_failed else ''}ok 1 {n_run} sessions")
    return 1 if n_failed else 0


sys.exit(main())
