# SPDX-License-Identifier: MIT
"""Seeds are data: a process without one draws numbers of its own, and no seed has kernels of its own."""
import ast
import os
import subprocess
import sys
import tempfile

import checks
from tinycore import Tensor

PROGRAM = """
import sys
from tinycore import Tensor, TinyJit, nn
from gi.repository import Tiny
if len(sys.argv) > 1:
    Tensor.manual_seed(int(sys.argv[1]))
layer, drop = nn.Linear(5, 4), nn.Dropout(0.5)
step = TinyJit(lambda x: (x + Tensor.rand(6)).realize())
x = Tensor.zeros(6).realize()
Tensor.training = True
drawn = [Tensor.rand(6), Tensor.randn(6), Tensor.randint(6, low=0, high=1 << 20), layer.weight, layer(drop(Tensor.ones(5))),
         Tensor.ones(64).dropout(0.5), Tensor.randperm(20)]
print(([one.tolist() for one in drawn] + [step(x).tolist() for i in range(4)], Tiny.get_counter("compiles")))
"""


def draw(folder, *seed):
    done = subprocess.run([sys.executable, "-c", PROGRAM, *map(str, seed)], env={**os.environ, "TINY_CACHE_DIR": folder, "DEV": "CPU"},
                          check=True, text=True, stdout=subprocess.PIPE, timeout=100)
    return ast.literal_eval(done.stdout)


def test_processes():
    """Another process draws other numbers with the kernels of the first; with one seed both draw the same."""
    with tempfile.TemporaryDirectory() as folder:
        (first, n_first), (second, n_second) = draw(folder), draw(folder)
        checks.true(n_first > 0, "the first process compiles nothing: its cache is empty, so this counts nothing")
        checks.equal(n_second, 0, "programs that the second process compiles")
        for i, (a, b) in enumerate(zip(first, second)):
            checks.true(a != b, f"two processes draw the same {i}: {a}")
        for seed in (0, 1, 3, -1):
            (first, n_first), (second, n_second) = draw(folder, seed), draw(folder, seed)
            checks.equal(first, second, f"seed {seed}")
            checks.equal((n_first, n_second), (0, 0), f"programs compiled for seed {seed}")


def test_seeds():
    """A seed means what it always meant: threefry's words of (element, draw) under the seed's two words."""
    for seed, wanted in ((0, [1797259609, 1351547692, 1688610540]), (1, [3023415290, 247883890, 43444564]),
                         (0x123456789abcdef0, [1593802813, 961273596, 1379882886])):
        Tensor.manual_seed(seed)
        checks.equal(Tensor.random_bits(3).tolist(), wanted, f"seed {seed}")


checks.run(globals())
