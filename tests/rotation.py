#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs one part of the suites that ./setup test leaves out: another one for each commit, so that all of them have run
after as many commits as there are parts.

usage: rotation.py BUILD [TURN] [--minutes N] [--after LOG]

BUILD is a build folder. TURN is a number, by default the number of commits; the part is the TURN-th, modulo the number
of parts. The last line says which part ran, how many of its tests passed and how long they took.

--after names the log of another run, whose counts are put into the last line as well.

A part has so many minutes, then it is ended and the last line names the tests that were left. That alone is no failure:
a slow machine is no fault of a commit. A test that hangs is one, as each has a time-out of its own, which is shorter than
a part. rotation.py BUILD list prints the parts with their tests."""
import argparse
import json
import pathlib
import signal
import subprocess
import sys
import time

# The suite, and the number of its parts: each n-th test by name, so that tests of one kind are spread over the parts.
PARTS = (("slow", 2), ("fuzz", 3), ("sanitize", 6), ("packaging", 1))
MINUTES = 40
ENDING_S = 20
FAILED = ("FAIL", "ERROR", "TIMEOUT", "UNEXPECTEDPASS")


def tests_of(build):
    """The tests of each suite, sorted by name: their names and time-outs in seconds."""
    text = subprocess.run(["meson", "introspect", build, "--tests"], check=True, capture_output=True, text=True).stdout
    return {suite: sorted((row["name"], row["timeout"]) for row in json.loads(text)
                          if any(one.split(":")[-1] == suite for one in row["suite"])) for suite, _ in PARTS}


def parts_of(tests):
    """All parts: their name, suite and the names of their tests. Suites take turns, so that no suite waits long."""
    parts = [(i / n, f"{suite} {i + 1}/{n}", suite, [name for name, _ in tests[suite][i::n]])
             for suite, n in PARTS for i in range(n)]
    return [part[1:] for part in sorted(parts, key=lambda part: part[0])]


def turn_of_commit():
    done = subprocess.run(["git", "-C", pathlib.Path(__file__).parent, "rev-list", "--count", "HEAD"], check=False,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("rotation: no commits are to be counted here; give a number: rotation.py BUILD TURN")
    return int(done.stdout)


def run_part(build, suite, log, tests, minutes):
    """Gives the exit status, or None where the part had to be ended."""
    run = subprocess.Popen(["meson", "test", "-C", build, "--print-errorlogs", "--logbase", log, "--suite", suite,
                            *tests])
    try:
        return run.wait(minutes * 60)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGTERM)  # which has meson end its tests
        try:
            run.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            run.kill()
        return None


def results_of(build, log):
    """Each test of a run that has ended, and how."""
    path = pathlib.Path(build) / "meson-logs" / f"{log}.json"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {row["name"].split(" / ")[-1]: row["result"] for row in rows if row["result"] != "INTERRUPT"}


def counts(results):
    n_failed, n_skipped = (sum(result in group for result in results.values()) for group in (FAILED, ("SKIP",)))
    return f"{len(results) - n_failed - n_skipped} tests passed, {n_failed} failed, {n_skipped} skipped"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("turn", nargs="?")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--after", metavar="LOG")
    options = parser.parse_args()
    found = tests_of(options.build)
    parts = parts_of(found)
    endless = [name for rows in found.values() for name, timeout in rows if not 0 < timeout < MINUTES * 60]
    if endless:
        print(f"rotation: these could hang unseen, as their time-outs are not below {MINUTES} minutes: "
              + " ".join(endless), file=sys.stderr)
        return 1
    if options.turn == "list":
        for i, (name, _, tests) in enumerate(parts):
            print(f"{i}: {name}\n  " + "\n  ".join(tests))
        return 0
    name, suite, tests = parts[(turn_of_commit() if options.turn is None else int(options.turn)) % len(parts)]
    if not tests:
        print(f"rotation: {name} has no tests", file=sys.stderr)
        return 1
    start, log = time.monotonic(), f"rotation-{suite}"
    (pathlib.Path(options.build) / "meson-logs" / f"{log}.json").unlink(missing_ok=True)
    print(f"rotation: {name}, {len(tests)} tests, {options.minutes:g} minutes at most", flush=True)
    status = run_part(options.build, suite, log, tests, options.minutes)
    results = results_of(options.build, log)
    failed = [test for test in tests if results.get(test) in FAILED]
    left = [test for test in tests if test not in results] if status is None else []
    good = sum(test in results for test in tests) - len(failed)
    print(f"rotation: {name}: {good} of {len(tests)} tests passed, {len(failed)} failed, {len(left)} left, "
          f"{(time.monotonic() - start) / 60:.1f} minutes" + "".join("; failed: " + test for test in failed)
          + ("; not ended in time: " + " ".join(left) if left else "")
          + ("; before: " + counts(results_of(options.build, options.after)) if options.after else ""), flush=True)
    return 1 if failed or status else 0


sys.exit(main())
