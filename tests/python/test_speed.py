#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What Python pays: building the graph, and starting. In time of the processor, so that a busy machine counts little; the
best of several runs; limits are the project's bars.

TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import os
import sys
import tempfile
import time

import checks
from tinycore import Tensor

OP_US, START_MS = 5.0, 60.0
PROGRAM = "from tinycore import Tensor; (Tensor([1.0, 2.0]) + 1).tolist()"


def us_per_op(build, n=2000):
    best = float("inf")
    for _ in range(7):
        before = time.thread_time()
        for _ in range(n):
            build()
        best = min(best, (time.thread_time() - before) / n * 1e6)
    return best


def test_operations():
    x, y = Tensor.rand(4, 4).realize(), Tensor.rand(4, 4).realize()
    found = {
        "x + y": us_per_op(lambda: x + y), "x * 2.0": us_per_op(lambda: x * 2.0), "x.relu()": us_per_op(lambda: x.relu()),
        "x.sum(1)": us_per_op(lambda: x.sum(1)), "x.reshape(16)": us_per_op(lambda: x.reshape(16)),
        "x @ y": us_per_op(lambda: x @ y), "x[1]": us_per_op(lambda: x[1]), "x[:, 1:3]": us_per_op(lambda: x[:, 1:3]),
        "x.permute(1, 0)": us_per_op(lambda: x.permute(1, 0)), "x.exp()": us_per_op(lambda: x.exp()),
    }
    mean = sum(found.values()) / len(found)
    print("# µs per operation: " + ", ".join(f"{name} {us:.2f}" for name, us in found.items()) + f"; mean {mean:.2f}")
    checks.true(mean <= OP_US, f"{mean:.2f} µs per operation, {OP_US} are allowed: {found}")


def ms_of(program):
    """Processor time of a new interpreter, the least of several."""
    best = float("inf")
    for _ in range(6):
        pid = os.posix_spawn(sys.executable, [sys.executable, "-c", program], os.environ)
        _, status, usage = os.wait4(pid, 0)
        checks.equal(status, 0, program)
        best = min(best, (usage.ru_utime + usage.ru_stime) * 1e3)
    return best


def test_start():
    """Warm, and without the checks of the test environment, which verify the IR after every pass."""
    for name in ("TINY_VERIFY", "MALLOC_PERTURB_", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:  # for what an installed package has compiled
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        bare, whole = ms_of("pass"), ms_of(PROGRAM)
    print(f"# {bare:.0f} ms for Python, {whole - bare:.0f} ms more for import and a first result")
    checks.true(whole - bare <= START_MS, f"import and a first result take {whole - bare:.0f} ms, {START_MS:.0f} are allowed")


checks.run(globals())
