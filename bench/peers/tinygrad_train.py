#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Milliseconds a training step of the Fashion-MNIST network takes in tinygrad: one JSON line.

usage: tinygrad_train.py STEPS, with DEV=CPU. The step runs under TinyJit."""
import json, statistics, sys, time
from tinygrad import Tensor, TinyJit, nn, dtypes
from tinygrad.nn.state import get_parameters
from tinygrad.helpers import Context

steps = int(sys.argv[1])
layers = [nn.Conv2d(1, 32, 5), Tensor.relu, nn.Conv2d(32, 32, 5), Tensor.relu, nn.BatchNorm(32),
          Tensor.max_pool2d, nn.Conv2d(32, 64, 3), Tensor.relu, nn.Conv2d(64, 64, 3), Tensor.relu,
          nn.BatchNorm(64), Tensor.max_pool2d, lambda x: x.flatten(1), nn.Linear(576, 10)]
optimiser = nn.optim.Adam(get_parameters(layers))
images = Tensor.rand(128, 1, 28, 28).realize()
labels = Tensor([i % 10 for i in range(128)], dtype=dtypes.int32).realize()

def step(x, y):
    optimiser.zero_grad()
    loss = x.sequential(layers).sparse_categorical_crossentropy(y).backward()
    return loss.realize(*optimiser.schedule_step())

jitted = TinyJit(step)
times = []
with Context(TRAINING=1):
    for i in range(steps + 3):
        start = time.perf_counter()
        jitted(images, labels).item()
        times.append((time.perf_counter() - start) * 1e3)
print(json.dumps({"peer": "tinygrad", "first_step_ms": times[0],
                  "ms_per_step_median": statistics.median(times[3:])}))
