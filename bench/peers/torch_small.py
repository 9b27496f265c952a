#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small work in PyTorch: `first-add` adds 1000 elements and ends; `repeated` prints the
microseconds of an eager a + b."""
import json, statistics, sys, time
import torch

a, b = torch.rand(1000), torch.ones(1000)
if sys.argv[1] == "first-add":
    assert abs((a + b)[7].item() - a[7].item() - 1) < 1e-6
    sys.exit(0)
samples = []
for i in range(9):
    start = time.perf_counter()
    for k in range(5000):
        c = a + b
    samples.append((time.perf_counter() - start) / 5000 * 1e6)
print(json.dumps({"peer": "torch", "add_us": statistics.median(samples)}))
