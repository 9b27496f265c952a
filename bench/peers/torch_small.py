#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small work in PyTorch: `first-add` adds 1000 elements and ends; `repeated` prints the
microseconds of an eager a + b, and the least of some more (bench/eager-add.py)."""
import json, statistics, sys, time
import torch

a, b = torch.rand(1000), torch.ones(1000)
if sys.argv[1] == "first-add":
    assert abs((a + b)[7].item() - a[7].item() - 1) < 1e-6
    sys.exit(0)
w, x = torch.rand(16, 16), torch.rand(16, 16)


def turns(case, n, many):
    samples = []
    for i in range(many):
        start = time.perf_counter()
        for k in range(n):
            case()
        samples.append((time.perf_counter() - start) / n * 1e6)
    return samples


cases = {"add": lambda: a + b, "relu": lambda: (w @ x).relu(), "item": lambda: w.sum().item(), "numpy": lambda: (a + b).numpy()}
result = {f"least_{name}_us": min(turns(case, 200, 40)) for name, case in cases.items()}
print(json.dumps({"peer": "torch", "add_us": statistics.median(turns(cases["add"], 5000, 9)), **result}))
