#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Costs that must not grow faster than the work, from Python: one JSON object.

usage: cliffs.py [CASE…], all where none is named.

slices      ms a step of batches cut by slices, each offset seen for the first time, after two steps
states      seconds of 400 rounds of a state that is read only through something else
interrupt   seconds from Ctrl-C during a long realise until it is raised"""
import json
import os
import signal
import sys
import threading
import time

from tinycore import Tensor

BATCH, N_BATCHES, ROUNDS = 128, 100, 400


def slices():
    x, w = Tensor.rand(BATCH * N_BATCHES, 64).realize(), Tensor.rand(64, 10).realize()
    for i in range(N_BATCHES):
        if i == 2:
            start = time.perf_counter()
        (x[i * BATCH:(i + 1) * BATCH] @ w).relu().sum().item()
    return {"slices_ms": (time.perf_counter() - start) / (N_BATCHES - 2) * 1e3}


def states():
    h, w = Tensor.rand(16, 16).realize(), (Tensor.rand(16, 16) * 0.1).realize()
    start = time.perf_counter()
    for _ in range(ROUNDS):
        h = (h @ w + 1).tanh()
        (h * 2).sum().item()
    return {"states_s": time.perf_counter() - start}


def interrupt():
    w, sent = (Tensor.rand(1024, 1024) * 1e-3).realize(), []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    x = w
    for _ in range(1000):
        x = (x @ w).tanh()
    timer = threading.Timer(0.5, send)
    timer.start()
    try:
        x.realize()
    except KeyboardInterrupt:
        return {"interrupt_s": time.perf_counter() - sent[0]}
    sys.exit("cliffs: the realise was over before the signal")


cases = {case.__name__: case for case in (slices, states, interrupt)}
found = {}
for name in sys.argv[1:] or cases:
    found.update(cases[name]())
print(json.dumps(found))
