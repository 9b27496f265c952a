#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random tensor programs here and in NumPy: test-programs.py [--seed N] [--count N] [--steps N].

A program is a list of steps (steps.py) over a few inputs; its last values are compared, and all where something is changed in
place. One in six is a function that TinyJit records, called three times. One that differs is made smaller, by
leaving out steps and shrinking inputs as long as it still differs, and printed as a program to run."""
import argparse
import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from steps import COMMON, DTYPES, STEPS, Value  # noqa: E402

TOLERANCE = {"float32": 2e-5, "float64": 1e-12}  # of the larger of 1 and the value, for values that are not exact


class Program:
    """@inputs: arrays. @lines: (step, operands, parameters); an operand is the number of an input or of a line after them.
    @is_recorded: run by TinyJit, three times with other inputs."""

    def __init__(self, inputs, lines, is_recorded=False):
        self.inputs, self.lines, self.is_recorded = inputs, lines, is_recorded

    def values(self, checks_fit=False):
        """As NumPy has them; None where a line cannot be (any more)."""
        values = [Value(a, True) for a in self.inputs]
        for step, operands, parameters in self.lines:
            given = [values[i] for i in operands]
            try:
                if checks_fit and step.fits(numpy.random.RandomState(0), given) is None:
                    return None
                if step.changes and not given[0].is_one_to_one:
                    return None
                values.append(self.value(step, given, parameters, values))
            except (ValueError, IndexError):
                return None
        return values

    def value(self, step, given, parameters, values):
        if step.is_view:
            return given[0].moved(lambda positions: step.numpy(parameters, positions))
        array = numpy.array(step.numpy(parameters, *[v.array for v in given]))
        keeps = all(v.exact for v in given) and (step.keeps or array.dtype.kind != "f")
        if not step.changes:
            return Value(array, keeps)
        if array.dtype != given[0].array.dtype:
            raise ValueError
        given[0].change(array, keeps)
        for value in values:
            if value.storage is given[0].storage:
                value.read()
        return given[0]

    def compute(self, tensors):
        """All values, of lines too; what is changed in place is what it was changed to in the end."""
        tensors = list(tensors)
        for step, operands, parameters in self.lines:
            tensors.append(step.ours(parameters, *[tensors[i] for i in operands]))
        return tensors

    def run(self, Tensor):
        tensors, roots = self.compute([Tensor(a) for a in self.inputs]), self.roots()
        Tensor.realize(*[tensors[i] for i in roots])
        return {i: tensors[i].numpy() for i in roots}

    def roots(self):
        """Values that nothing uses, at least the last; and whatever is changed or shares memory with what is."""
        used = {i for step, operands, _ in self.lines for i in operands if not step.is_view and not step.changes}
        n = len(self.inputs)
        if any(step.changes and step.name != "realize" for step, _, _ in self.lines):
            return list(range(n + len(self.lines)))
        used |= {i for _, operands, _ in self.lines for i in operands}
        return [i for i in range(n, n + len(self.lines)) if i not in used] or [n + len(self.lines) - 1]

    def replayed(self, TinyJit, Tensor):
        """Pairs of this program with other inputs and what it gave, from a function that is recorded at its second call."""
        roots = [i for i in self.roots() if i >= len(self.inputs)]
        function = TinyJit(lambda *tensors: [all_of[i] for all_of in [self.compute(tensors)] for i in roots])
        for turn in range(3):
            rng = numpy.random.RandomState(turn)
            other = Program([rng.permutation(a.ravel()).reshape(a.shape) if turn else a for a in self.inputs], self.lines)
            if other.values(turn > 0) is None:
                other = self
            found = function(*[Tensor(a) for a in other.inputs])
            yield other, {i: one.numpy() for i, one in zip(roots, found)}

    def __str__(self):
        out = ["recorded:"] if self.is_recorded else []
        for i, a in enumerate(self.inputs):
            out.append(f"v{i} = numpy.array({a.tolist()}, '{a.dtype}').reshape({a.shape})")
        for i, (step, operands, parameters) in enumerate(self.lines, len(self.inputs)):
            out.append(f"v{i} = {step.name}({', '.join(f'v{o}' for o in operands)}) {list(parameters) or ''}")
        return "\n".join(out)


def difference(program, Tensor):
    """What differs, or None; None as well for a program that NumPy cannot run."""
    if program.values() is None:
        return None
    try:
        if not program.is_recorded:
            return compare(program, program.run(Tensor))
        from tinycore import TinyJit
        for turn, (other, found) in enumerate(program.replayed(TinyJit, Tensor), 1):
            wrong = compare(other, found)
            if wrong:
                return f"call {turn} of the recorded program: {wrong}"
    except Exception as error:  # noqa: BLE001: a refusal is a difference as well
        return f"{type(error).__name__}: {error}"
    return None


def compare(program, found):
    values = program.values()
    for i, array in found.items():
        wanted = values[i]
        if array.shape != wanted.array.shape or array.dtype != wanted.array.dtype:
            return f"v{i} is {array.dtype} {array.shape}, not {wanted.array.dtype} {wanted.array.shape}"
        if wanted.exact:
            wrong = array != wanted.array
        else:
            f, w = array.astype("float64"), wanted.array.astype("float64")
            wrong = ~((numpy.abs(f - w) <= TOLERANCE[array.dtype.name] * numpy.maximum(1, numpy.abs(w))) | (f == w)
                      | (numpy.isnan(f) & numpy.isnan(w)))
        if wrong.any():
            at = tuple(numpy.argwhere(wrong)[0])
            return f"v{i}{list(at)} is {array[at]}, not {wanted.array[at]}"
    return None


# ---- making ----
def make_input(rng):
    shape = tuple(int(x) for x in rng.randint(0 if rng.randint(12) == 0 else 1, 7, size=rng.randint(0, 4)))
    dtype = DTYPES[rng.randint(COMMON if rng.randint(2) else len(DTYPES))]
    if dtype[0] == "f":
        return numpy.asarray(rng.randint(-40, 41, size=shape) / 4, dtype=dtype)
    if dtype == "bool":
        return numpy.asarray(rng.rand(*shape) < 0.5)
    return numpy.asarray(rng.randint(0 if dtype[0] == "u" else -9, 10, size=shape), dtype=dtype)


def pick(rng, values, n):
    """Numbers of values; mostly of one dtype, as most steps want."""
    first = int(rng.randint(len(values)))
    like = [i for i, v in enumerate(values) if v.array.dtype == values[first].array.dtype]
    return [first] + [like[rng.randint(len(like))] if rng.randint(4) else int(rng.randint(len(values)))
                      for _ in range(n - 1)]


def make(rng, n_steps):
    inputs = [make_input(rng) for _ in range(rng.randint(2, 5))]
    if rng.randint(3) == 0:  # operands that fit a product
        m, k, n = (int(x) for x in rng.randint(1, 6, size=3))
        inputs += [numpy.asarray(rng.randint(-8, 9, size=s) / 4, dtype="float32") for s in ((m, k), (k, n))]
    if rng.randint(2) == 0:  # and some that fit each other
        inputs.append(rng.permutation(inputs[0].ravel()).reshape(inputs[0].shape))
    program = Program(inputs, [])
    values = program.values()
    for _ in range(60):
        if len(program.lines) == n_steps:
            break
        step = STEPS[rng.randint(len(STEPS))]
        operands = pick(rng, values, step.arity)
        parameters = step.fits(rng, [values[i] for i in operands])
        is_rounded = not step.keeps or step.name == "imul"
        if parameters is None or is_rounded and any(values[i].array.dtype == "float16" for i in operands):
            continue
        program.lines.append((step, operands, parameters))
        new = program.values()
        if new is None or new[-1].array.size > 4096:
            program.lines.pop()
        else:
            values = new
    return program


# ---- making smaller ----
def without(program, at):
    """@program without line @at: what used it uses its first operand instead."""
    n = len(program.inputs)
    instead = program.lines[at][1][0]
    lines = [(s, [instead if o == n + at else o - (o > n + at) for o in operands], p)
             for i, (s, operands, p) in enumerate(program.lines) if i != at]
    return Program(program.inputs, lines, program.is_recorded)


def cut(program, n_lines):
    return Program(program.inputs, program.lines[:n_lines], program.is_recorded)


def shrink(program, Tensor):
    """As small a program as removing lines gives that still differs."""
    for n in range(1, len(program.lines)):
        if difference(cut(program, n), Tensor):
            program = cut(program, n)
            break
    again = True
    while again:
        again = False
        for at in reversed(range(len(program.lines) - 1)):
            smaller = without(program, at)
            if len(smaller.lines) and difference(smaller, Tensor):
                program, again = smaller, True
                break
    used = sorted({o for _, operands, _ in program.lines for o in operands if o < len(program.inputs)})
    place = {o: i for i, o in enumerate(used)}
    gone = len(program.inputs) - len(used)
    lines = [(s, [place[o] if o in place else o - gone for o in operands], p) for s, operands, p in program.lines]
    return Program([program.inputs[i] for i in used], lines, program.is_recorded)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=8)
    arguments = parser.parse_args()
    from tinycore import Tensor
    seen, n_failed = {}, 0
    print("1..1")
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        rng = numpy.random.RandomState(seed)
        program = make(rng, 1 + int(rng.randint(arguments.steps)))
        program.is_recorded = seed % 6 == 0 and all(a.size for a in program.inputs)
        for step, _, _ in program.lines:
            seen[step.name] = seen.get(step.name, 0) + 1
        if program.lines and difference(program, Tensor):
            small = shrink(program, Tensor)
            why = difference(small, Tensor) or "differs only in the whole program"
            print(f"# seed {seed}: {why}\n#   " + str(small).replace("\n", "\n#   "), flush=True)
            n_failed += 1
    unseen = [s.name for s in STEPS if s.name not in seen]
    if unseen and arguments.count >= 500:
        print(f"# never made: {', '.join(unseen)}")
        n_failed += 1
    print(f"{'not ' if n_failed else ''}ok 1 {arguments.count} programs, {sum(seen.values())} steps of {len(seen)} kinds")
    return 1 if n_failed else 0


sys.exit(main())
