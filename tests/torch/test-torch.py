#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the cases of families: test-torch.py [--only OPERATION] [--least N] [--ticks FILE [--update]] FAMILY…

--least fails when there are fewer cases. --ticks runs the first case of each operation on the default device, and compares
which pass with what FILE says of that backend; --update writes FILE. DEV chooses the device as ever."""
import argparse
import importlib
import pathlib
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import harness  # noqa: E402


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="+")
    parser.add_argument("--only")
    parser.add_argument("--least", type=int, default=1)
    parser.add_argument("--ticks", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    return parser.parse_args()


def failure(case, Tensor):
    try:
        return harness.check(case, Tensor)
    except Exception:  # noqa: BLE001: whatever it is belongs to the case
        return traceback.format_exc(limit=-3)


def run_all(cases, Tensor):
    """One TAP line for each operation, with what failed of it before."""
    by_operation = {}
    for case in cases:
        by_operation.setdefault(case.operation, []).append(case)
    print(f"1..{len(by_operation)}")
    n_failed = 0
    for i, (operation, some) in enumerate(by_operation.items(), 1):
        failed = 0
        for case in some:
            why = failure(case, Tensor)
            if why:
                failed += 1
                print(f"# {case}: " + why.replace("\n", "\n#   "))
        n_failed += failed
        print(f"{'not ' if failed else ''}ok {i} {operation}: {len(some) - failed} of {len(some)}", flush=True)
    print(f"# {len(cases) - n_failed} of {len(cases)} cases")
    return n_failed


def check_ticks(cases, Tensor, arguments):
    backend = Tensor([0.0]).realize().device.split(":")[0]
    first = {}
    for case in cases:
        if not case.wrong:
            first.setdefault(case.operation, case)
    passed = {name for name, case in first.items() if not failure(case, Tensor)}
    rows = {line.split()[0]: line.split()[1:] for line in arguments.ticks.read_text().splitlines()} \
        if arguments.ticks.exists() else {}
    ticked = {name for name in first if backend in rows.get(name, [])}
    if arguments.update:
        for name in first:
            row = set(rows.get(name, [])) - {backend}
            rows[name] = sorted(row | ({backend} if name in passed else set()))
        arguments.ticks.write_text("".join(f"{name} {' '.join(rows[name])}".rstrip() + "\n" for name in sorted(rows)))
        ticked = passed
    print("1..1")
    for name in sorted(passed ^ ticked):
        print(f"# {name}: {'passes' if name in passed else 'fails'} on {backend}, unlike {arguments.ticks.name}")
        if name not in passed:
            print("#   " + str(failure(first[name], Tensor)).replace("\n", "\n#   "))
    print(f"{'not ' if passed != ticked else ''}ok 1 {backend}: {len(passed)} of {len(first)} operations")
    return len(passed ^ ticked)


def main():
    arguments = parse()
    from tinycore import Tensor
    for family in arguments.families:
        importlib.import_module(f"cases_{family}")
    cases = [c for c in harness.CASES if arguments.only in (None, c.operation)]
    if len(cases) < arguments.least and arguments.only is None:
        print(f"1..1\nnot ok 1 only {len(cases)} cases, {arguments.least} are wanted")
        return 1
    return 1 if (check_ticks(cases, Tensor, arguments) if arguments.ticks else run_all(cases, Tensor)) else 0


sys.exit(main())
