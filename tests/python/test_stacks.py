#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Threads whose stack is small, as those of some C libraries and embedders: graphs that are much deeper are computed there.

TAP. Run in the build's environment, by the interpreter that has PyGObject. Each graph has a process, whose end by a signal
is seen."""
import subprocess
import sys
import textwrap

import checks

BEGIN = """
import os, tempfile, threading
from tinycore import Tensor, TinyJit, func, nn

def build(x, n):
    y = x
    for i in range(n):
        y = step(y, x, i)
    return y

def compute(n):
    x = Tensor([[0.5, -0.25], [1.0, 2.0]], requires_grad=True)
    y = build(x, n)
    found = y.tolist()
    build(x, n).sum().backward()
    assert x.grad.isfinite().all().item()
    y = build(x.detach() + 0, n)
    assert len(y.uop.toposort()) > n and str(y.uop)
    assert repr(build(x.detach() + 0, n)).startswith("Tensor")
    with tempfile.TemporaryDirectory() as folder:
        nn.state.safe_save({"y": build(x.detach() + 0, n)}, folder + "/y")
        assert nn.state.safe_load(folder + "/y")["y"].tolist() == found
    value, tangent = func.jvp(lambda x: build(x, n), (x.detach(),), (Tensor.ones(2, 2),))
    assert value.tolist() == found and tangent.isfinite().all().item()
    return found

def move(n):
    x = Tensor.arange(24).reshape(2, 3, 4).float().realize()
    y = build(x, n)
    assert y.sum(0).sum().item() == x.sum().item()
    assert y.pad(((1, 1),) * 3).sum(1).sum().item() == x.sum().item()
    assert sorted(y.flatten().tolist()) == x.flatten().tolist()
    x = x.requires_grad_()
    build(x, n).square().sum().backward()
    assert x.grad.tolist() == (2 * x).tolist()

def repeat(n):
    jit = TinyJit(lambda x: build(x, n).realize())
    found = [jit(Tensor([[float(i), 0.5], [1.0, 2.0]])).tolist() for i in range(4)]
    assert found == [build(Tensor([[float(i), 0.5], [1.0, 2.0]]), n).tolist() for i in range(4)]
"""
END = """
def guarded():
    work()
    print("done")
threading.stack_size({kib} << 10)
thread = threading.Thread(target=guarded)
thread.start()
thread.join()
"""
# A step makes this of y, given x and the number i; this is done with n steps; on a stack of so many KiB.
CHAINS = [
    ("y + x", "compute(100000)", 256),
    ("y + x", "repeat(10000)", 128),
    ("(y * x).tanh() - y.maximum(x)", "compute(1000)", 128),
    ("(y > i).where(y, y * 0.5 + x)", "compute(1000)", 128),
    ("y.flip(i % 2) + x", "compute(1000)", 128),
    ("Tensor.cat(y[:1], x[1:])", "compute(1000)", 128),
    ("y.pad(((0, 0), (1, 0)))[:, :2] * x + 1", "compute(1000)", 128),
    ("(y @ x).tanh()", "compute(1000)", 128),
    ("y - y.mean(1, keepdim=True)", "compute(500)", 128),
    ("y.flip(i % 3)", "move(4000)", 128),
    ("y.pad(((0, 0), (0, 1), (0, 0))).shrink(((0, 2), (0, 3), (0, 4)))", "move(4000)", 128),
    ("y.permute(2, 0, 1).reshape(2, 3, 4)", "move(2000)", 128),
]


def test_deep():
    """Forward, gradients, tangents, printed, saved, recorded: nothing calls itself once for each node."""
    for step, work, kib in CHAINS:
        program = BEGIN + textwrap.dedent(f"""
            step = lambda y, x, i: {step}
            work = lambda: {work}
        """) + END.format(kib=kib)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
        checks.equal((done.returncode, done.stdout, done.stderr), (0, "done\n", ""), step)


if __name__ == "__main__":
    checks.run(globals())
