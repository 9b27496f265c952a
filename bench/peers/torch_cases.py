#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Milliseconds of a case in PyTorch: a JSON line. Threads as in OMP_NUM_THREADS."""
import torch
import torch.nn.functional as F
import torch_models
from common import arguments, inputs, read_case, report


def elementwise(inputs):
    """Into memory of its own, in place where it can be: the fastest that was found."""
    a, b, c, d = inputs
    x, y = torch.empty_like(a), torch.empty_like(a)

    def run():
        torch.mul(a, b, out=x).add_(c).sigmoid_()
        torch.tanh(d, out=y)
        return x.mul_(y)
    return run


def chain(x, n):
    for i in range(n):
        x = x + 1
    return x


FUNCTIONS = {
    "matmul": torch.matmul, "matvec": torch.matmul, "sum": torch.sum, "sumrows": lambda x: x.sum(1),
    "softmax": lambda x: F.softmax(x, 1), "layernorm": lambda x, w, b: F.layer_norm(x, w.shape, w, b),
    "conv": lambda x, w: F.conv2d(x, w, padding=w.shape[2] // 2),
    "depthwise": lambda x, w: F.conv2d(x, w, padding=w.shape[2] // 2, groups=w.shape[0])}


def prepared(text):
    """(function to time, whether it computes gradients)"""
    if text in torch_models.NAMES:
        return torch_models.prepared(text)
    name, sizes = read_case(text)
    given = [torch.from_numpy(x) for x in inputs(text)]
    if name == "elementwise":
        return elementwise(given), False
    if name == "launch":
        traced = torch.jit.trace(lambda x: chain(x, sizes[0]), given[0])
        return lambda: traced(given[0]), False
    return lambda: FUNCTIONS[name](*given), False


def main():
    args = arguments(__doc__, [*FUNCTIONS, "elementwise", "launch", *torch_models.NAMES])
    with torch.no_grad():
        function, gradients = prepared(args.case)
    with torch.enable_grad() if gradients else torch.inference_mode():
        report(args, function, lambda result: result.numpy(), version=torch.__version__)


main()
