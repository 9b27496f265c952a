#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Milliseconds of the cases of `tinycore bench` in PyTorch or NumPy: a JSON line each.

usage: cases.py torch|numpy CASE…, cases spelled as for tinycore bench. What NumPy has no function
for (conv) is left out."""
import json, re, statistics, sys, time
import numpy as np

library, cases = sys.argv[1], sys.argv[2:]


def numpy_cases():
    def softmax(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def layernorm(x, w, b):
        d = x - x.mean(1, keepdims=True)
        return d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * w + b

    def elementwise(a, b, c, d):
        return 1 / (1 + np.exp(-(a * b + c))) * np.tanh(d)
    make = lambda *shape: np.random.rand(*shape).astype(np.float32) - np.float32(0.5)
    return make, {"matmul": np.matmul, "matvec": np.matmul, "elementwise": elementwise,
                  "sum": np.sum, "sumrows": lambda x: x.sum(1), "softmax": softmax,
                  "layernorm": layernorm}


def torch_cases():
    import torch
    import torch.nn.functional as F
    torch.set_grad_enabled(False)
    return lambda *shape: torch.rand(*shape) - 0.5, {
        "matmul": torch.matmul, "matvec": torch.matmul,
        "elementwise": lambda a, b, c, d: torch.sigmoid(a * b + c) * torch.tanh(d),
        "sum": torch.sum, "sumrows": lambda x: x.sum(1), "softmax": lambda x: F.softmax(x, 1),
        "layernorm": lambda x, w, b: F.layer_norm(x, w.shape, w, b),
        "conv": lambda x, w: F.conv2d(x, w, padding=w.shape[2] // 2)}


def shapes(name, n):
    if name == "matmul":
        m, k, p = n if len(n) == 3 else n * 3
        return [(m, k), (k, p)]
    if name == "matvec":
        m, k = n if len(n) == 2 else n * 2
        return [(m, k), (k,)]
    return {"elementwise": lambda: [(n[0],)] * 4, "layernorm": lambda: [n, n[1:], n[1:]],
            "conv": lambda: [n[:4], (n[4], n[1], *n[5:])]}.get(name, lambda: [n])()


def milliseconds(function, inputs):
    start, warm = time.perf_counter(), 0
    while warm < 3 or time.perf_counter() - start < 0.3:
        function(*inputs)
        warm += 1
    inner = max(1, int(0.02 / ((time.perf_counter() - start) / warm)))
    samples = []
    for i in range(7):
        start = time.perf_counter()
        for k in range(inner):
            function(*inputs)
        samples.append((time.perf_counter() - start) / inner * 1e3)
    return statistics.median(samples)


make, functions = {"numpy": numpy_cases, "torch": torch_cases}[library]()
for case in cases:
    name, sizes = case.split(":", 1)
    if name in functions:
        inputs = [make(*s) for s in shapes(name, tuple(int(i) for i in re.findall(r"\d+", sizes)))]
        print(json.dumps({"case": case, "ms_median": milliseconds(functions[name], inputs)}),
              flush=True)
