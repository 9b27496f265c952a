# SPDX-License-Identifier: MIT
"""What the peers' programs share: the numbers that inputs and weights are made of, and timing.

Values follow from a tensor's name alone, as in tools/bench-data.c."""
import argparse, json, re, resource, statistics, sys, time
import numpy as np

MAX_WRITTEN = 65536


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


def rounded(x, form):
    """@x as numbers of a narrower format hold it: f16, or a block format of 32 along the rows."""
    if form == "f32":
        return x
    if form == "f16":
        return x.astype(np.float16).astype(np.float32)
    blocks = x.reshape(-1, 32)
    if form == "q8_0":  # a scale in f16 and 32 integers of 8 bits
        scale = np.abs(blocks).max(1, keepdims=True) / np.float32(127)
        q = np.floor(np.abs(blocks / np.where(scale == 0, 1, scale)) + np.float32(0.5)) * np.sign(blocks)
    elif form == "q4_0":  # 4 bits; the largest value is -8
        largest = np.take_along_axis(blocks, np.abs(blocks).argmax(1)[:, None], 1)
        scale = largest / np.float32(-8)
        q = np.clip(np.floor(blocks / np.where(scale == 0, 1, scale) + np.float32(8.5)), 0, 15) - 8
    else:
        raise SystemExit(f"no format {form}")
    return (q * scale.astype(np.float16).astype(np.float32)).astype(np.float32).reshape(x.shape)


# As for tinycore bench: the inputs' shapes, from all the sizes of a case's text.
SHAPES = {
    "matmul": lambda m, k=None, n=None: [(m, k or m), (k or m, n or m)],
    "matvec": lambda m, k=None: [(m, k or m), (k or m,)],
    "elementwise": lambda n: [(n,)] * 4,
    "sum": lambda m, n: [(m, n)], "sumrows": lambda m, n: [(m, n)], "softmax": lambda m, n: [(m, n)],
    "layernorm": lambda m, n: [(m, n), (n,), (n,)],
    "conv": lambda b, c, y, x, o, i, j: [(b, c, y, x), (o, c, i, j)],
    "depthwise": lambda b, c, y, x, i, j: [(b, c, y, x), (c, 1, i, j)],
    "transpose": lambda m, n: [(m, n)], "cumsum": lambda n: [(n,)],
    "inv": lambda n: [(n, n)], "solve": lambda n, m: [(n, n), (n, m)], "cholesky": lambda n: [(n, n)],
    "qr": lambda n: [(n, n)], "svd": lambda n: [(n, n)], "eigh": lambda n: [(n, n)],
    "launch": lambda n: [(1,)],
}

DEFINITE = ("inv", "solve", "cholesky")  # the first input is x + xᵀ with N added to the diagonal


def read_case(text):
    """(name, sizes) of a text such as conv:8x64x56x56:64x3x3"""
    name, _, sizes = text.partition(":")
    return name, [int(n) for n in re.findall(r"\d+", sizes)]


def inputs(text):
    name, sizes = read_case(text)
    offset = 0.5 if name in ("sum", "cumsum") else 0.0
    out = [fill(f"input.{i}", shape, offset) for i, shape in enumerate(SHAPES[name](*sizes))]
    if name in DEFINITE:
        out[0] = out[0] + out[0].T + np.float32(sizes[0]) * np.eye(sizes[0], dtype=np.float32)
    return out


def arguments(description, names, options=()):
    """The command line of a peer's program; ends where there is no such case here."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("case")
    parser.add_argument("--output", metavar="FILE", help="where the result's elements go, as f32")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--turns", action="store_true", help="each run waits for a line on standard input")
    for option in options:
        parser.add_argument(option, action="store_true")
    args = parser.parse_args()
    kind, _, sizes = args.case.partition(":")
    if args.case not in names and (kind not in names or not sizes[:1].isdigit()):
        print(json.dumps({"case": args.case, "missing": True}))
        sys.exit()
    return args


def write_output(array, path):
    """Every n-th element, 65536 of them at most."""
    flat = np.asarray(array, dtype=np.float32).reshape(-1)
    np.ascontiguousarray(flat[::max(1, -(-flat.size // MAX_WRITTEN))]).tofile(path)


def wait_for_turn():
    """As bench/run asks for, see measure.py."""
    print("turn", flush=True)
    if not sys.stdin.readline():
        sys.exit("no turn was given")


def memory(field):
    """Bytes of this process: VmRSS, or VmHWM, the most since forget_peak()."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


def forget_peak():
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def report(args, function, as_array=lambda result: result, **more):
    """Times function() and prints a JSON line; the third call's result is what is written. The growth is by how
    much the process is larger at most in the first three calls."""
    forget_peak()
    resident = memory("VmRSS")
    start = time.perf_counter()
    function()
    first = (time.perf_counter() - start) * 1e3
    function()
    result = function()
    more["growth_bytes"] = memory("VmHWM") - resident
    if args.output:
        write_output(as_array(result), args.output)
    start, warm = time.perf_counter(), 0
    while warm < 1 or time.perf_counter() - start < 0.3:
        function()
        warm += 1
    inner = max(1, int(0.02 / ((time.perf_counter() - start) / warm)))
    samples = []
    for i in range(args.runs):
        if args.turns:
            wait_for_turn()
            for k in range(inner):
                function()
        start = time.perf_counter()
        for k in range(inner):
            function()
        samples.append((time.perf_counter() - start) / inner * 1e3)
    print(json.dumps({"case": args.case, "ms_median": statistics.median(samples),
                      "ms_min": min(samples), "first_ms": first, "ms": samples,
                      "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, **more}), flush=True)
