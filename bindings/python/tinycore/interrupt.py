# SPDX-License-Identifier: MIT
"""Signals while the library computes: their handlers run within parts of a second. What one raises, as that of Ctrl-C raises
KeyboardInterrupt, is raised by what computed, with all tensors as they were; where it raises nothing the computation goes on.

Python notes a signal and runs its handler at the next step of a program. So the library has it do a step now and then. A
handler runs there in the middle of a computation: operations on tensors are refused to it."""
import os
import time
from functools import partial

from .errors import raised
from .library import Tiny


def step():
    """Says again and again whether a handler raised something. Handlers run when a generator goes on, which is where
    they are caught here; they would run before the first line of a function."""
    stops = False
    while True:
        try:
            while True:
                yield stops
                stops = False
        except GeneratorExit:
            return
        except BaseException as error:
            raised.by_signal, stops = error, True


steps = step()
next(steps)
Tiny.set_interrupt_check(partial(next, steps, False))
# A thread that computes may wait for Python's lock to ask, while who forks has that and waits for the thread: first it
# gets the lock.
os.register_at_fork(before=partial(time.sleep, 0.001))
