#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the cases of families, on the device that DEV says.

usage: test-torch.py [--only OPERATION] [--least N] [--ticks FILE [--sample N | --update]] [--spread DEVICES] [--enlarge]
                     [--symbolic TABLE] [--most N] FAMILY…

--least N          fails where fewer cases are compared, of --symbolic where fewer operations work
--ticks FILE       holds each operation against FILE, which says on which backends all of its cases pass; one that
                   passes without a tick is red too. --update writes FILE. --sample runs the first case of each
                   operation that has a tick, and up to N with small ones of other dtypes or ranks
--enlarge          up to --most cases of each operation with larger inputs
--symbolic TABLE   sizes of the inputs are variables, one after the other: the result is PyTorch's or an exception says
                   why not; rows of TABLE, the folder of operations.pyi, that are symbolic work in one of their cases
--spread DEVICES   the first case of each operation, its inputs spread over devices: names with semicolons between"""
import argparse
import importlib
import pathlib
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import harness  # noqa: E402

MOST_ELEMENTS = 300  # of a case that is not the first


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="+")
    parser.add_argument("--only")
    parser.add_argument("--least", type=int, default=1)
    parser.add_argument("--ticks", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--spread")
    parser.add_argument("--symbolic")
    parser.add_argument("--most", type=int, default=1)
    parser.add_argument("--enlarge", action="store_true")
    return parser.parse_args()


def failure(case, Tensor):
    try:
        return harness.check(case, Tensor)
    except Exception:  # noqa: BLE001: whatever it is belongs to the case
        return traceback.format_exc(limit=-3)


def lacks_f64(why):
    """What the device says that it has not got, which is no result that could be compared."""
    last = [line for line in why.splitlines() if line.strip()][-1]
    return "UnsupportedError: " in last and "f64" in last


class Ticks:
    """The table of --ticks: on which backends all cases of an operation give PyTorch's result, and behind # why not on others."""

    def __init__(self, path, Tensor, is_sample):
        self.path, self.is_sample = path, is_sample
        self.backend = Tensor([0.0]).realize().device.split(":")[0]
        self.rows, self.reasons = {}, {}
        for line in path.read_text().splitlines():
            row, _, reason = line.partition(" # ")
            name, *backends = row.split()
            self.rows[name], self.reasons[name] = set(backends), reason

    def has(self, operation):
        return self.backend in self.rows.get(operation, ())

    def wrong(self, operation, is_passed):
        """Says why the table is wrong about @operation, or None. A sample says nothing of those without a tick."""
        if self.has(operation) and not is_passed:
            return f"fails on {self.backend}, where it has a tick"
        if is_passed and not self.has(operation) and not self.is_sample:
            return f"passes on {self.backend}, where it has no tick"
        if not is_passed and self.backend not in self.reasons.get(operation, ""):
            return f"fails on {self.backend}, and no reason is given"
        return None

    def update(self, passed):
        for operation, is_passed in passed.items():
            row = self.rows.setdefault(operation, set())
            row.discard(self.backend)
            if is_passed:
                row.add(self.backend)
        reasons = {name: f" # {self.reasons[name]}" if self.reasons.get(name) else "" for name in self.rows}
        lines = [f"{name} {' '.join(sorted(row))}".rstrip() + reasons[name] + "\n" for name, row in sorted(self.rows.items())]
        self.path.write_text("".join(lines))


def run_all(cases, Tensor, least, ticks=None, update=False):
    """One TAP line for each operation, with what failed of it before. Cases that were skipped count as neither."""
    by_operation, passed = {}, {}
    for case in cases:
        by_operation.setdefault(case.operation, []).append(case)
    print(f"1..{len(by_operation) + 1}")
    n_passed = n_skipped = n_red = 0
    for i, (operation, some) in enumerate(by_operation.items(), 1):
        failed = skipped = 0
        for case in some:
            why = failure(case, Tensor)
            if why and lacks_f64(why):
                skipped += 1
            elif why:
                failed += 1
                print(f"# {case}: " + why.replace("\n", "\n#   "))
        n_skipped += skipped
        compared = len(some) - skipped
        n_passed += compared - failed
        passed[operation] = compared > 0 and not failed
        is_red = failed > 0
        if ticks and not update and (compared or not ticks.is_sample):
            why = ticks.wrong(operation, passed[operation])
            is_red = why is not None
            if why:
                print(f"# {operation} {why}: {ticks.path.name}")
        n_red += is_red
        print(f"{'not ' if is_red else ''}ok {i} {operation}: {compared - failed} of {compared}"
              f"{f', {skipped} without f64' if skipped else ''}{'' if compared else ' # SKIP no f64'}", flush=True)
    if update:
        ticks.update(passed)
    compared = len(cases) - n_skipped
    print(f"# {n_passed} of {compared} cases, {n_skipped} skipped")
    print(f"{'not ' if compared < least else ''}ok {len(by_operation) + 1} at least {least} cases were compared")
    return n_red + (compared < least)


def enlarge(cases, most):
    """Of each operation the first @most cases that there are with larger inputs."""
    larger = {}
    for case in cases:
        some = larger.setdefault(case.operation, [])
        if len(some) < most and (more := harness.enlarged(case)) is not None:
            some.append(more)
    return [case for some in larger.values() for case in some]


# Operations whose cases make tensors of their own, which are on one device.
ON_ONE_DEVICE = {"batch_norm"}


def first_of_each(cases):
    first = {}
    for case in cases:
        if not case.wrong and case.operation not in ON_ONE_DEVICE:
            first.setdefault(case.operation, case)
    return list(first.values())


def kind_of(case):
    """Dtypes and ranks: what makes another kernel of it."""
    return case.gradient, [(getattr(x, "dtype", type(x)), getattr(x, "ndim", 0)) for x in case.inputs]


def add_other(some, case, most):
    """@case to the first case of an operation, if it is small, of another kind, and not one too many."""
    small = sum(getattr(x, "size", 1) for x in case.inputs) <= MOST_ELEMENTS
    if not some or small and len(some) < most and all(kind_of(one) != kind_of(case) for one in some):
        some.append(case)


def sample(cases, ticks, most):
    """The first case of each operation with a tick, and up to @most with small ones of other kinds."""
    some = {}
    for case in cases:
        if ticks.has(case.operation) and not case.wrong:
            add_other(some.setdefault(case.operation, []), case, most)
    return [case for rows in some.values() for case in rows]


# Rows whose cases give sizes as numbers, which a size that is a variable is not: tests/unit/tensor/test-symbolic.c has them.
OF_NUMBERS = {"expand", "pad", "reshape", "shrink"}


LIMITS = ((1, 2), (0, 3), (2, 1))  # of the variable: the least value, and how much more than its value is the largest


def is_refusal(why):
    last = why.splitlines()[-1] if why else ""
    return "InvalidError: " in last and "variable" in last


def check_symbolic(cases, Tensor, arguments):
    """Each size of each case as a variable's value: PyTorch's result, or an exception that says why not."""
    sys.path.insert(0, arguments.symbolic)
    import operations_table as table
    rows = {row.name for family in table.read() for row in family.operations if row.symbolic}
    cases = [case for case in cases if not case.wrong]
    works, tried, n_of, bad = set(), set(), {}, 0
    for case in cases:
        sizes = sorted({size for x in case.inputs for size in x.shape if size > 1})
        n = n_of[case.operation] = n_of.get(case.operation, -1) + 1
        if n >= arguments.most or sum(x.size for x in case.inputs) > MOST_ELEMENTS:
            continue
        for size in sizes:
            harness.SIZE, harness.LIMITS = size, LIMITS[n % len(LIMITS)]
            why = failure(case, Tensor)
            tried.add(case.operation)
            if why is None:
                works.add(case.operation)
            elif not is_refusal(why):
                bad += 1
                print(f"# {case}: size {size} as a variable: " + why.replace("\n", "\n#   "))
    for name in sorted(rows & tried - works - OF_NUMBERS):
        bad += 1
        print(f"# {name} is called symbolic and refuses each size that is a variable")
    if len(works) < arguments.least:
        bad += 1
        print(f"# at least {arguments.least} operations are wanted to work")
    print("1..1")
    print(f"{'not ' if bad else ''}ok 1 of {len(tried)} operations {len(works)} work with sizes that are variables")
    return bad


def main():
    arguments = parse()
    from tinycore import Tensor
    for family in arguments.families:
        importlib.import_module(f"cases_{family}")
    cases = [c for c in harness.CASES if arguments.only in (None, c.operation)]
    if arguments.enlarge:
        cases = enlarge(cases, arguments.most)
    if arguments.spread:
        harness.DEVICES = arguments.spread.split(";")
        cases = first_of_each(cases)
    if len(cases) < arguments.least and arguments.only is None:
        print(f"1..1\nnot ok 1 only {len(cases)} cases, {arguments.least} are wanted")
        return 1
    if arguments.symbolic:
        return 1 if check_symbolic(cases, Tensor, arguments) else 0
    ticks = Ticks(arguments.ticks, Tensor, arguments.sample is not None) if arguments.ticks else None
    if arguments.sample is not None:
        cases = sample(cases, ticks, arguments.sample)
    return 1 if run_all(cases, Tensor, 0 if arguments.only else arguments.least, ticks, arguments.update) else 0


sys.exit(main())
