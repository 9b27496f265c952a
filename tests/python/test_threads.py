#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Threads: Python goes on while the library computes, threads compute at the same time, and tensors may be let go of
anywhere.

TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import gc
import os
import threading
import time

import checks
from tinycore import Tensor, no_grad


def test_python_goes_on():
    """While one thread waits for a long computation another one counts."""
    n, ticks, done = 1200, 0, threading.Event()
    x = Tensor.rand(n, n).realize()
    product = x
    for _ in range(6):
        product = (product @ x).contiguous() * (1 / n)

    def work():
        product.realize()
        done.set()

    start = time.perf_counter()
    thread = threading.Thread(target=work)
    thread.start()
    longest = 0.0
    while not done.is_set():
        before = time.perf_counter()
        time.sleep(0.001)
        longest = max(longest, time.perf_counter() - before)
        ticks += 1
    thread.join()
    took = time.perf_counter() - start
    print(f"# {ticks} ticks in {took:.3f} s, the longest {longest:.3f} s")
    checks.true(ticks > 5 and longest < max(took / 2, 0.05), f"{ticks} ticks in {took} s, the longest {longest} s")


def test_many_threads():
    """The same results from threads that make, compute and drop tensors at once."""
    failures = []

    def work(seed):
        try:
            for i in range(60):
                x = Tensor([[float(seed), i], [1.0, 2.0]])
                found = ((x @ x).sum(1) * 2 + seed).tolist()
                wanted = [2 * (seed * seed + i + seed * i + 2 * i) + seed, 2 * (seed + 2 + i + 4) + seed]
                if found != wanted:
                    failures.append((seed, i, found, wanted))
                if i % 20 == 0:
                    gc.collect()
        except Exception as error:
            failures.append((seed, error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    checks.equal(failures, [])


def test_modes_are_of_a_thread():
    found = []
    with no_grad():
        thread = threading.Thread(target=lambda: found.append(grad_of(Tensor([3.0], requires_grad=True))))
        thread.start()
        thread.join()
    checks.equal(found, [6.0])


def grad_of(w):
    (w * w).sum().backward()
    return w.grad.item()


def test_handed_over():
    """Made by one thread, computed by another, let go of by a third."""
    box, results = [Tensor([1.0, 2.0]) * i for i in range(50)], []
    compute = threading.Thread(target=lambda: results.extend(one.sum().item() for one in box))
    compute.start()
    compute.join()
    drop = threading.Thread(target=box.clear)
    drop.start()
    drop.join()
    checks.equal(results, [3.0 * i for i in range(50)])


def test_fork_of_a_child():
    """A child that only ends leaves the parent alone."""
    x = Tensor([1.0]).realize()
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    checks.equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 7)
    checks.equal((x + 1).item(), 2)


checks.run(globals())
