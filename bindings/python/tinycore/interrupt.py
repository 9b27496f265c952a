# SPDX-License-Identifier: MIT
"""Ctrl-C while the library computes: KeyboardInterrupt within parts of a second, with all tensors as they were.

Python notes a signal and runs its handler at the next step of a program, which is when the library returns. So the
library asks meanwhile whether there was one. The answer comes from functions in C alone: a step of Python would run the
handler then and there. A handler of the program's own is left to run after the call, as ever."""
import ctypes
import os
import time
from _signal import SIGINT, default_int_handler, getsignal
from functools import partial
from itertools import repeat
from operator import is_, methodcaller

from .library import Tiny

# Each answer is PyOS_InterruptOccurred () where the handler is Python's own, else bool (), which is False.
is_default = map(is_, map(getsignal, repeat(int(SIGINT))), repeat(default_int_handler))
choice = {True: ctypes.pythonapi.PyOS_InterruptOccurred, False: bool}
answers = map(methodcaller("__call__"), map(choice.__getitem__, is_default))
Tiny.set_interrupt_check(partial(next, answers))
# A thread that computes may wait for Python's lock to ask, while who forks has that and waits for the thread: first it
# gets the lock.
os.register_at_fork(before=partial(time.sleep, 0.001))
