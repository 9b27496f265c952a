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
from tinycore import Device, Tensor, TinyJit, errors, no_grad


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


def test_dropped_while_others_compute():
    """A tensor with an attribute is dropped under Python's lock, which who computes may wait for: nobody waits for ever."""
    weights = [Tensor.rand(2, 2, requires_grad=True) for _ in range(8)]
    for weight in weights:
        weight.label = "weight"
    end, failures = time.monotonic() + 1, []

    def differentiate():
        try:
            while time.monotonic() < end:
                sum(weight.sum() for weight in weights).backward()
                for weight in weights:
                    weight.grad = None
        except Exception as error:
            failures.append(error)

    def drop():
        while time.monotonic() < end:
            for _ in range(50):
                tensor = Tensor([1.0], requires_grad=True)
                tensor.label = "dropped"

    threads = [threading.Thread(target=work, daemon=True) for work in (differentiate, drop, drop, differentiate)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    checks.true(not any(thread.is_alive() for thread in threads), "threads wait for each other")
    checks.equal(failures, [])


def exit_code(work):
    """How a forked child ends that works and then exits with 7; None: it did not end."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(7)
        except BaseException as error:
            print(f"# in the child: {error!r}", flush=True)
            os._exit(1)
    for _ in range(3000):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return None


def test_fork_while_a_thread_computes():
    """The child has the whole library, whatever another thread did at that moment."""
    x, stop = Tensor.rand(300, 300).realize(), threading.Event()

    def work():
        while not stop.is_set():
            (x @ x).realize()

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.05)
    codes = [exit_code(lambda: checks.equal((Tensor([1.0, 2.0]) + x[0, 0] * 0).sum().item(), 3)) for _ in range(3)]
    stop.set()
    thread.join()
    checks.equal(codes, [7] * 3)


def test_fork_with_several_devices():
    """Devices work side by side by threads, which a child does not have."""
    def work():
        a, b = Tensor([1.0, 2.0], device="CPU"), Tensor([3.0], device="REF")
        checks.equal(((a * 2).sum().to("REF") + b).item(), 9)
        left, right = a + 1, b + 1
        left.realize(right)
        checks.equal(left.tolist() + right.tolist(), [2, 3, 4])
    work()
    checks.equal(exit_code(work), 7)


def in_thread(work, *arguments):
    """Runs @work in another thread, to its end; what that raises is raised here."""
    failures = []

    def run():
        try:
            work(*arguments)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


class Neighbour:
    """What another thread does at a point of a function that is recorded, and what it has to have afterwards."""

    def __init__(self, x):
        self.x, self.n, self.count = x, 0, Tensor.zeros(3).contiguous().realize()
        self.view, self.kept, self.total = self.count[1:], [], Tensor.zeros(3).contiguous().realize()
        self.weight = Tensor([1.0, 2.0, 3.0], requires_grad=True)

    def assign(self):
        self.count.add_(1)
        self.view.mul_(1)
        self.n += 1

    def realize_equal(self):
        """Nodes that the recorded function has as well."""
        doubled, range_ = self.x * 2, Tensor.arange(3) + 0.5
        doubled.realize(range_)
        doubled.add_(100)
        range_.add_(100)
        self.kept.append((doubled, [a + 100 for a in (self.x * 2).tolist()]))
        self.kept.append((range_, [100.5, 101.5, 102.5]))

    def wait_equal(self):
        self.kept.append((self.x * 2 + 7, [a + 7 for a in (self.x * 2).tolist()]))

    def train(self):
        loss = (self.weight * self.weight).sum()
        loss.item()
        self.training = loss

    def record(self):
        function = TinyJit(lambda x: (self.total.add_(x), self.total * 2)[1])
        for i in range(4):
            function(Tensor([1.0, 0.0, i]))
        self.n += 1
        self.count.add_(1)

    def check(self, name):
        checks.equal(self.count.tolist(), [self.n] * 3, name)
        checks.equal(self.view.tolist(), [self.n] * 2, name)
        for tensor, wanted in self.kept:
            checks.equal(tensor.tolist(), wanted, name)


NEIGHBOURS = {
    "assigns": Neighbour.assign, "realises": Neighbour.realize_equal, "leaves": Neighbour.wait_equal, "trains": Neighbour.train,
    "records": Neighbour.record,
}


def test_beside_recordings():
    """What another thread does while a function is recorded is no part of the recording, and takes nothing out of it."""
    for name, does in NEIGHBOURS.items():
        state, x = Tensor.zeros(3).contiguous().realize(), Tensor([1.0, 2.0, 4.0])
        neighbour = Neighbour(x.realize())

        @TinyJit
        def function(x):
            doubled = x * 2  # noqa: B023
            range_ = Tensor.arange(3) + 0.5
            state.add_(1)  # noqa: B023
            in_thread(does, neighbour)  # noqa: B023
            early = (doubled + state).realize()  # noqa: B023
            in_thread(does, neighbour)  # noqa: B023
            return early + range_ + state  # noqa: B023
        for i in range(1, 8):
            x = x if i < 3 else Tensor([1.0 * i, 2.0, 4.0])
            wanted = [2 * a + k + 0.5 + 2 * i for k, a in enumerate(x.tolist())]
            checks.equal(function(x).tolist(), wanted, f"{name}, call {i}")
        neighbour.check(name)
        if name == "trains":
            neighbour.training.backward()
            checks.equal(neighbour.weight.grad.tolist(), [2, 4, 6])
        if name == "records":
            checks.equal(neighbour.total.tolist(), [4 * neighbour.n, 0, 6 * neighbour.n])


def test_many_recordings():
    """Threads that record, replay, assign and realise at once: each counts right."""
    failures, done = [], threading.Event()

    def assign():
        count, n = Tensor.zeros(5).contiguous().realize(), 0
        while not done.is_set():
            count.add_(1)
            n += 1
            if n % 50 == 0:
                checks.equal(count.tolist(), [n] * 5)
        checks.equal(count.tolist(), [n] * 5)

    def realize():
        n = 0
        while not done.is_set():
            n += 1
            ones = Tensor.zeros(5) + 1
            ones.realize()
            ones.add_(n)
            checks.equal(ones.tolist(), [n + 1] * 5)

    def record(turns):
        for _ in range(turns):
            state = Tensor.zeros(5).contiguous().realize()

            @TinyJit
            def function(x):
                first = Tensor.zeros(5) + 1 + x
                state.add_(x)  # noqa: B023
                return first * 2 + state  # noqa: B023
            for i in range(1, 6):
                checks.equal(function(Tensor([1.0 * i] * 5)).tolist(), [2 + 2 * i + i * (i + 1) / 2] * 5, f"call {i}")

    def watched(work, *arguments):
        try:
            work(*arguments)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    others = [threading.Thread(target=watched, args=(work,)) for work in (assign, assign, realize)]
    recorders = [threading.Thread(target=watched, args=(record, 12)) for _ in range(2)]
    for thread in others + recorders:
        thread.start()
    for thread in recorders:
        thread.join()
    done.set()
    for thread in others:
        thread.join()
    checks.equal(failures, [])


def test_reopened():
    """A device whose process was killed computes again when it is opened again, and not before."""
    name = "ISOLATED+CPU"
    old = Tensor([1.0, 2.0], device=name).realize()
    checks.equal((old + 1).tolist(), [2.0, 3.0])
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        os.kill(int(file.read().split()[-1]), 9)
    for make in (lambda: old + 1, lambda: old + 2, lambda: Tensor([5.0], device=name) + 1):
        checks.raises(errors.DeviceLostError, lambda make=make: make().tolist())
    checks.equal(str(Device[name].name), name)
    checks.equal((Tensor([5.0], device=name) + 1).tolist(), [6.0])
    checks.raises(errors.DeviceLostError, lambda: (old + 1).tolist())


checks.run(globals())
