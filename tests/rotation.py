#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs one part of the suites that ./setup test leaves out: another one for each commit, so that all of them have run
after as many commits as there are parts.

usage: rotation.py BUILD [TURN [MINUTES]]

BUILD is a build folder. TURN is a number, by default the number of commits; the part is the TURN-th, modulo the number
of parts. The last line says which part ran, how many tests it has and how long they took. A part that has not ended
after MINUTES is ended, which is a failure; the tests that were still to end are named. rotation.py BUILD list prints
the parts with their tests."""
import json
import pathlib
import re
import signal
import subprocess
import sys
import time

# The suite, and the number of its parts: each n-th test by name, so that tests of one kind are spread over the parts.
PARTS = (("slow", 1), ("fuzz", 3), ("sanitize", 4), ("packaging", 1))
MINUTES = 48
ENDING_S = 20


def parts_of(build):
    """All parts: their name and the names of their tests. Suites take turns, so that no suite waits long."""
    text = subprocess.run(["meson", "introspect", build, "--tests"], check=True, capture_output=True, text=True).stdout
    names = {suite: sorted(row["name"] for row in json.loads(text)
                           if any(one.split(":")[-1] == suite for one in row["suite"])) for suite, _ in PARTS}
    parts = [(i / n, f"{suite} {i + 1}/{n}", suite, names[suite][i::n]) for suite, n in PARTS for i in range(n)]
    return [part[1:] for part in sorted(parts, key=lambda part: part[0])]


def turn_of_commit():
    done = subprocess.run(["git", "-C", pathlib.Path(__file__).parent, "rev-list", "--count", "HEAD"], check=False,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("rotation: no commits are to be counted here; give a number: rotation.py BUILD TURN")
    return int(done.stdout)


def main():
    build, turn = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    parts = parts_of(build)
    if turn == "list":
        for i, (name, _, tests) in enumerate(parts):
            print(f"{i}: {name}\n  " + "\n  ".join(tests))
        return 0
    name, suite, tests = parts[(turn_of_commit() if turn is None else int(turn)) % len(parts)]
    if not tests:
        print(f"rotation: {name} has no tests", file=sys.stderr)
        return 1
    start, most = time.monotonic(), float(sys.argv[3]) if len(sys.argv) > 3 else MINUTES
    print(f"rotation: {name}, {len(tests)} tests, {most:g} minutes at most", flush=True)
    log = f"rotation-{suite}"
    run = subprocess.Popen(["meson", "test", "-C", build, "--print-errorlogs", "--logbase", log, "--suite", suite,
                            *tests])
    try:
        status = run.wait(most * 60)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGTERM)  # which has meson end its tests
        try:
            run.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            run.kill()
        return too_long(build, name, log, tests, most)
    minutes = (time.monotonic() - start) / 60
    print(f"rotation: {name}, {len(tests)} tests, {minutes:.1f} minutes, {'none failed' if status == 0 else 'FAILED'}")
    return 1 if status else 0


def too_long(build, name, log, tests, most):
    path = pathlib.Path(build) / "meson-logs" / f"{log}.json"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    ended = {row["name"].split(" / ")[-1] for row in rows if row["result"] != "INTERRUPT"}
    print(f"rotation: {name} did not end within {most:g} minutes. Not ended: "
          + " ".join(test for test in tests if test not in ended), file=sys.stderr)
    return 1


sys.exit(main())
