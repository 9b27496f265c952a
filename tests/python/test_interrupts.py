#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ctrl-C while the library computes: it stops soon, and what tensors hold is what it was before or what it was to become.

TAP. Run in the build's environment, by the interpreter that has PyGObject. Each test runs a program, which is sent a SIGINT."""
import os
import signal
import subprocess
import sys
import tempfile
import textwrap

import checks

# A program of these has work (), which takes several times as long as the signal waits, and look (), after it.
BEGIN = """
import os, signal, sys, threading, time
from tinycore import Tensor, TinyJit
sent = []

def send(seconds):
    def go():
        time.sleep(seconds)
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=go, daemon=True).start()

def timed(function):
    start = time.process_time()
    function()
    return time.process_time() - start
"""
END = """
try:
    send(0.1)
    work()
    print("went on")
except KeyboardInterrupt:
    print("stopped", time.process_time() - sent[0])
"""
MATRICES = """
x = Tensor.full((1024, 1024), 1 / 1024).contiguous().realize()
def chain(y, n):
    for _ in range(n):
        y = y @ x
    return y
"""


def run(program):
    """The lines that the program prints. It compiles everything anew."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=100,
                              env={**os.environ, "TINY_CACHE_DIR": cache})
    checks.equal((done.returncode, done.stderr), (0, ""))
    return done.stdout.splitlines()


def check_soon(lines, least=10):
    """The first line says how long it went on, the second how long all of it takes: CPU time of all threads."""
    word, *seconds = lines[0].split()
    checks.equal(word, "stopped")
    latency, whole = float(seconds[0]), float(lines[1])
    print(f"# {latency:.3f} s of {whole:.3f} s")
    most = min(0.5 * len(os.sched_getaffinity(0)), max(whole / least, 0.1))
    checks.true(latency < most, f"it went on for {latency} s of {whole} s")


def test_kernels():
    """Many kernels: nothing of them is there, all can be asked for again."""
    lines = run(BEGIN + MATRICES + """
y = chain(Tensor.ones(1024, 1024), 150)
work = y.realize
""" + END + """
print(timed(work))
print(abs(y - 1).max().item() < 1e-3)
""")
    check_soon(lines)
    checks.equal(lines[2], "True")


def test_making_kernels():
    """While kernels are scheduled and compiled."""
    check_soon(run(BEGIN + """
x = Tensor.rand(32, 32).realize()
def make(i):
    y = x
    for k in range(6):
        y = (y.softmax(k % 2) @ (x * (i + k))).cumsum(0) + y.sin()
    return y.contiguous()
tensors = [make(i) for i in range(400)]
work = lambda: Tensor.realize(*tensors)
""" + END + """
print(timed(work))
"""), 3)


def test_long_chain():
    """While twenty thousand kernels that need each other are asked for and scheduled, in CPU time of the process."""
    lines = run("""
import os, signal, threading, time
from tinycore import Tensor
w = Tensor.full((16, 16), 1 / 64).contiguous().realize()
def make():
    y = w
    for _ in range(20000):
        y = (y @ w + y.sum()).tanh()
    return y
def signalled(seconds, until=time.process_time):
    start = until()
    while until() - start < seconds:
        time.sleep(0.005)
    sent.append(until())
    os.kill(os.getpid(), signal.SIGINT)
sent, y = [], make()
for seconds in (0.02, 0.7):
    thread = threading.Thread(target=signalled, args=(seconds,), daemon=True)
    thread.start()
    try:
        y.realize()
        print("went on")
    except KeyboardInterrupt:
        print("stopped", time.process_time() - sent[-1])
print(y.sum().item() == make().sum().item())
""")
    checks.equal(lines[2:], ["True"])
    for line in lines[:2]:
        word, latency = line.split()
        print(f"# {latency} s of CPU")
        checks.equal(word, "stopped")
        checks.true(float(latency) < 0.4, f"it went on for {latency} s")


def test_long_gradient():
    """While gradients of a long chain are taken, in CPU time of the process: none is there, all can be asked for again."""
    lines = run("""
import os, signal, threading, time
from tinycore import Tensor
w = Tensor.full((16, 16), 1 / 64).contiguous().realize().requires_grad_()
y, sent = w, []
for _ in range(30000):
    y = (y @ w + y.sum()).tanh()
loss = y.sum()
def signalled(start):
    while time.process_time() - start < 0.02:
        time.sleep(0.005)
    sent.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=signalled, args=(time.process_time(),), daemon=True).start()
try:
    loss.backward()
    print("went on")
except KeyboardInterrupt:
    print("stopped", time.process_time() - sent[-1])
print(w.grad)
loss.backward()
print(w.grad.shape)
""")
    word, latency = lines[0].split()
    print(f"# {latency} s of CPU")
    checks.equal([word, *lines[1:]], ["stopped", "None", "(16, 16)"])
    checks.true(float(latency) < 0.4, f"it went on for {latency} s")


def test_hooks():
    """A Ctrl-C in a function of gradients, or while one is about to be called, stops what called it."""
    for seen_by in ("y.register_hook(lambda gradient: send())", "Base.add_gradient_hook(y, at_once)\n    y.register_hook(lambda gradient: None)",
                    "y = Function.apply(y)", "func.vmap(lambda row: send() or row)(y)"):
        lines = run(f"""
import ctypes, os, signal, time
from itertools import repeat
from functools import partial
from tinycore import Tensor, autograd, func
from tinycore.tensor import Base
def send():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.2)
class Function(autograd.Function):
    forward = staticmethod(lambda ctx, x: x * 2)
    backward = staticmethod(lambda ctx, gradient: send())
# A step of Python would run the handler: this signal is left for whoever comes next.
at_once = partial(next, map({{}}.get, map(ctypes.PyDLL(None)["raise"], repeat(2))))
x = Tensor([1.0, 2.0], requires_grad=True)
y = x * 2
try:
    {seen_by}
    y.sum().backward()
    print("went on")
except KeyboardInterrupt:
    print("stopped")
""")
        checks.equal(lines, ["stopped"], seen_by)


def test_waiting():
    """While another thread computes, which goes on; by the clock, as this one only waits."""
    lines = run((BEGIN + MATRICES + """
y, z = chain(Tensor.ones(1024, 1024), 100), Tensor.ones(4).realize()
def other():
    y.realize()
    print(abs(y - 1).max().item() < 1e-3, time.perf_counter() - start)
start = time.perf_counter()
thread = threading.Thread(target=other)
thread.start()
time.sleep(0.2)
work = lambda: (z + 1).sum().item()
""" + END + """
thread.join()
""").replace("process_time", "perf_counter"))
    checks.equal(lines[1].split()[0], "True")
    check_soon([lines[0], lines[1].split()[1]])


def test_assigned():
    """A tensor that was assigned to has its new value once, whether what reads it was stopped or not."""
    lines = run(BEGIN + MATRICES + """
a = Tensor.zeros(1024, 1024).contiguous().realize()
a.assign(a + 1)
y = chain(a, 100)
work = y.realize
""" + END + """
print(a.min().item(), a.max().item(), abs(y - 1).max().item() < 1e-3)
""")
    checks.equal(lines[-1], "1.0 1.0 True")


def test_recorded():
    """Replays: all that one assigns is assigned, or nothing."""
    lines = run(BEGIN + MATRICES + """
a, b = (Tensor.zeros(1024, 1024).contiguous().realize() for _ in range(2))
@TinyJit
def step():
    y = chain(a + 1, 3)
    b.assign(b + 1)
    a.assign(a + chain(y * 0, 3) + 1)
    return Tensor.realize(a, b)
for i in range(6):
    try:
        send(0.05 + 0.1 * i)
        while True:
            step()
    except KeyboardInterrupt:
        print(a.min().item() == a.max().item() == b.min().item() == b.max().item())
""")
    checks.equal(lines, ["True"] * 6)


def test_own_handler():
    """A handler of the program's own is called after the work, which is done."""
    lines = run(BEGIN + MATRICES + """
heard = []
signal.signal(signal.SIGINT, lambda *_: heard.append(1))
y = chain(Tensor.ones(1024, 1024), 100)
work = y.realize
""" + END + """
print(heard, abs(y - 1).max().item() < 1e-3)
""")
    checks.equal(lines, ["went on", "[1] True"])


def test_fork():
    """Another thread forks while this one computes and is asked: nobody waits for the other."""
    lines = run(BEGIN + MATRICES + """
y = chain(Tensor.ones(1024, 1024), 60)
took = []
def fork():
    time.sleep(0.2)
    for _ in range(3):
        start = time.perf_counter()
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        took.append(time.perf_counter() - start)
thread = threading.Thread(target=fork)
thread.start()
start = time.perf_counter()
y.realize()
whole = time.perf_counter() - start
thread.join()
print(max(took) < max(whole, 1) + 1, abs(y - 1).max().item() < 1e-3)
""")
    checks.equal(lines, ["True True"])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    checks.run(globals())
