#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What Python pays: building the graph, and starting. In time of the processor, so that a busy machine counts little, and
the least of several runs: what is above that is the machine's. A limit is the project's bar; where the least is above it
more runs are made, for half a minute.

TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import os
import sys
import tempfile
import time

import checks
from tinycore import Tensor

OP_US, START_TIMES = 5.0, 6.0  # the latter of what the interpreter itself takes, on the same machine
PROGRAM = "from tinycore import Tensor; (Tensor([1.0, 2.0]) + 1).tolist()"


def least(take, total, limit, runs=6, patience_s=30):
    """For each name the least of what take() finds in several runs; of more where their total () is above a limit."""
    end, found, done = time.monotonic() + patience_s, {}, 0
    while done < runs or total(found) > limit and time.monotonic() < end:
        for name, value in take().items():
            found[name] = min(value, found.get(name, value))
        done += 1
    return found


def us_per_op(y, n_rounds=30):
    """What an operation of a program costs whose nodes are all new."""
    h = Tensor.rand(4, 4).realize()
    before = time.thread_time()
    for _ in range(n_rounds):
        h = ((h * 2.0 + y).relu() @ y - h.sum(1, keepdim=True)).exp().reshape(16)[1:].pad((1, 0)).reshape(4, 4).permute(1, 0)
    return (time.thread_time() - before) / (n_rounds * 11) * 1e6


def test_operations():
    y = Tensor.rand(4, 4).realize()
    us = least(lambda: {"": us_per_op(y)}, lambda found: found[""], OP_US, runs=50)[""]
    print(f"# {us:.2f} µs per operation")
    checks.true(us <= OP_US, f"{us:.2f} µs per operation, {OP_US} are allowed")


def ms_of(program):
    """Processor time of a new interpreter."""
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", program], os.environ)
    _, status, usage = os.wait4(pid, 0)
    checks.equal(status, 0, program)
    return (usage.ru_utime + usage.ru_stime) * 1e3


def test_start():
    """Warm, and without the checks of the test environment, which verify the IR after every pass."""
    for name in ("TINY_VERIFY", "MALLOC_PERTURB_", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:  # for what an installed package has compiled
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        ms_of(PROGRAM)  # makes what is kept for later starts

        def above(found):
            return found["whole"] - (1 + START_TIMES) * found["bare"]
        found = least(lambda: {"bare": ms_of("pass"), "whole": ms_of(PROGRAM)}, above, 0)
    more = found["whole"] - found["bare"]
    print(f"# {found['bare']:.0f} ms for Python, {more:.0f} ms more for import and a first result")
    checks.true(above(found) <= 0, f"import and a first result take {more:.0f} ms, {START_TIMES:.0f} times {found['bare']:.0f} ms are allowed")


checks.run(globals())
