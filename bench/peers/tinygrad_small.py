#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small work in tinygrad: `first-add` adds 1000 elements and ends; `repeated` prints the
microseconds of a + b realised anew, and of one tiny kernel in a replayed TinyJit of 100."""
import json, statistics, sys, time
from tinygrad import Tensor, TinyJit

a, b = Tensor([float(i) for i in range(1000)]).realize(), Tensor([1.0] * 1000).realize()
if sys.argv[1] == "first-add":
    assert (a + b).tolist()[7] == 8.0
    sys.exit(0)

@TinyJit
def chain(x):
    for i in range(100):
        x = (x + 1).contiguous()
    return x.realize()

def median_us(function, inner, per):
    samples = []
    for i in range(7):
        start = time.perf_counter()
        for k in range(inner):
            function()
        samples.append((time.perf_counter() - start) / inner / per * 1e6)
    return statistics.median(samples)

for i in range(3):
    (a + b).realize()
    chain(b)
print(json.dumps({"peer": "tinygrad", "add_us": median_us(lambda: (a + b).realize(), 100, 1),
                  "launch_us": median_us(lambda: chain(b), 20, 100)}))
