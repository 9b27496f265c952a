#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Milliseconds a training step of the Fashion-MNIST network takes in PyTorch: one JSON line.

usage: torch_train.py STEPS. Threads as in OMP_NUM_THREADS. On CPUs that OpenBLAS does not know by
name OPENBLAS_CORETYPE=SkylakeX selects its AVX-512 kernels; bench/bars sets it where it applies."""
import json, statistics, sys, time
import torch, torch.nn as nn, torch.nn.functional as F

steps = int(sys.argv[1])
torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 32, 5), nn.ReLU(), nn.Conv2d(32, 32, 5), nn.ReLU(),
                    nn.BatchNorm2d(32), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(),
                    nn.Conv2d(64, 64, 3), nn.ReLU(), nn.BatchNorm2d(64), nn.MaxPool2d(2),
                    nn.Flatten(), nn.Linear(576, 10))
optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
images, labels = torch.rand(128, 1, 28, 28), torch.arange(128) % 10

def step():
    optimiser.zero_grad()
    loss = F.cross_entropy(net(images), labels)
    loss.backward()
    optimiser.step()
    return loss.item()

times = []
for i in range(steps + 3):
    start = time.perf_counter()
    step()
    times.append((time.perf_counter() - start) * 1e3)
print(json.dumps({"peer": "torch", "version": torch.__version__, "first_step_ms": times[0],
                  "ms_per_step_median": statistics.median(times[3:])}))
