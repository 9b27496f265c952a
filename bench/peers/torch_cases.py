#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Milliseconds of a case in PyTorch, eager or with --compile: a JSON line. Threads as in OMP_NUM_THREADS."""
import sys
import torch
import torch._inductor.config
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


class Filtered(torch.nn.Module):
    """A convolution whose filter is its own, as compiled code is frozen by: an argument stays what it is."""

    def __init__(self, w, groups):
        super().__init__()
        self.filter, self.groups = torch.nn.Parameter(w, requires_grad=False), groups

    def forward(self, x):
        return F.conv2d(x, self.filter, padding=self.filter.shape[2] // 2, groups=self.groups)


FUNCTIONS = {
    "matmul": torch.matmul, "matvec": torch.matmul, "sum": torch.sum, "sumrows": lambda x: x.sum(1),
    "softmax": lambda x: F.softmax(x, 1), "layernorm": lambda x, w, b: F.layer_norm(x, w.shape, w, b),
    "conv": lambda w: Filtered(w, 1), "depthwise": lambda w: Filtered(w, w.shape[0]),
    "transpose": lambda x: x.T.contiguous(), "cumsum": lambda x: x.cumsum(0),
    "inv": torch.linalg.inv, "solve": torch.linalg.solve, "cholesky": torch.linalg.cholesky,
    "qr": lambda x: torch.linalg.qr(x)[1], "svd": lambda x: torch.linalg.svd(x)[1],
    "eigh": lambda x: torch.linalg.eigh(x)[0]}
KEEP_WEIGHTS = ("conv", "depthwise")
EAGER_ONLY = ("elementwise", "launch")  # compiled they would be other programs: no memory of their own, one launch


def compiled(function):
    torch._inductor.config.freezing = not torch.is_grad_enabled()
    return torch.compile(function, dynamic=False)


def prepared(text, wrap):
    """The function to time; @wrap is given what may be compiled."""
    if text in torch_models.NAMES:
        return torch_models.prepared(text, wrap)
    name, sizes = read_case(text)
    given = [torch.from_numpy(x) for x in inputs(text)]
    if name == "elementwise":
        return elementwise(given)
    if name == "launch":
        return lambda: chain(given[0], sizes[0])
    if name in KEEP_WEIGHTS:
        function, given = wrap(FUNCTIONS[name](given[1])), given[:1]
    else:
        function = wrap(FUNCTIONS[name])
    return lambda: function(*given)


def main():
    more = () if "--compile" in sys.argv else EAGER_ONLY
    args = arguments(__doc__, [*FUNCTIONS, *more, *torch_models.NAMES], ["--compile"])
    with torch.enable_grad() if torch_models.has_gradients(args.case) else torch.inference_mode():
        report(args, prepared(args.case, compiled if args.compile else lambda function: function),
               lambda result: result.numpy(), version=torch.__version__)


main()
