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


def test_range_of_seeds():
    """A seed is what 64 bits hold, with a sign or without."""
    drawn = {}
    for seed in (-2**63, 2**63, 2**64 - 1, -1, 0, 1):
        Tensor.manual_seed(seed)
        drawn[seed] = Tensor.rand(4).tolist()
    checks.equal([drawn[-2**63], drawn[-1]], [drawn[2**63], drawn[2**64 - 1]])
    checks.equal(len(set(map(tuple, drawn.values()))), 4)
    for seed in (2**64, -2**63 - 1):
        checks.raises(OverflowError, Tensor.manual_seed, seed)


def test_rows():
    """Numbers that are read row by row are drawn in the first two rounds and stored in the third."""
    drawn = Tensor.rand(6, 4)
    rows = []
    for i in range(6):
        rows.append(drawn[i].tolist())
        checks.equal(drawn.is_realized(), i >= 2, f"after row {i}")
    checks.equal(rows, drawn.tolist())


def test_fork():
    """A child that was forked has its parent's state."""
    Tensor.manual_seed(3)
    Tensor.rand(1).tolist()
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, str(Tensor.rand(4).tolist()).encode())
        os._exit(0)
    os.wait()
    checks.equal(ast.literal_eval(os.read(reader, 1000).decode()), Tensor.rand(4).tolist())


checks.run(globals())
