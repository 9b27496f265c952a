# SPDX-License-Identifier: MIT
"""What the peers' programs share: the numbers that inputs and weights are made of, and timing.

Values follow from a tensor's name alone, as in tools/bench-fill.c."""
import argparse, json, statistics, time
import numpy as np


def fill(name, shape, offset=0.0, scale=1.0):
    """offset + scale times numbers in [-1/2, 1/2) that follow from the name, as f32."""
    seed = 2166136261
    for byte in name.encode():
        seed = (seed ^ byte) * 16777619 & 0xffffffff
    v = np.arange(int(np.prod(shape)), dtype=np.uint32) * np.uint32(2654435761)
    v += np.uint32(seed * 40503 & 0xffffffff)
    v ^= v >> np.uint32(15)
    v *= np.uint32(2246822519)
    v ^= v >> np.uint32(13)
    u = (v >> np.uint32(8)).astype(np.float32) * np.float32(2 ** -24) - np.float32(0.5)
    return (u * np.float32(scale) + np.float32(offset)).reshape(shape)


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("case")
    parser.add_argument("--output", metavar="FILE", help="where the result goes, as f32")
    parser.add_argument("--runs", type=int, default=7)
    return parser


def report(args, function, as_array, prepare=None, **more):
    """Times function() and prints a JSON line; the third call's result is what is written."""
    start = time.perf_counter()
    function()
    first = (time.perf_counter() - start) * 1e3
    function()
    result = function()
    if args.output:
        np.ascontiguousarray(as_array(result), dtype=np.float32).tofile(args.output)
    start, warm = time.perf_counter(), 0
    while warm < 1 or time.perf_counter() - start < 0.3:
        function()
        warm += 1
    inner = max(1, int(0.02 / ((time.perf_counter() - start) / warm)))
    samples = []
    for i in range(args.runs):
        start = time.perf_counter()
        for k in range(inner):
            function()
        samples.append((time.perf_counter() - start) / inner * 1e3)
    print(json.dumps({"case": args.case, "ms_median": statistics.median(samples),
                      "ms_min": min(samples), "first_ms": first, **more}), flush=True)
