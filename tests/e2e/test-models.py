#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The models of bench/, tiny, beside a second implementation: loops over lists, in doubles. Decoding is
compared with reading the whole text at once, so that the cache of keys and values counts too."""
import array
import itertools
import math
import os
import struct
import subprocess

from e2e import check, main, note, test

PROMPT, NEXT_TOKEN, VOCABULARY, LAYERS = 7, 11, 101, 2
TINY, SMALL = (24, 3), (64, 4)  # width, heads
STAGES, STEM, SIZE, CLASSES = ((2, 4), (1, 6)), 8, 32, 10  # blocks and planes of each
BOUND = 1e-5  # of the largest value


def output_of(box, case):
    path = box.path("output")
    done = subprocess.run([os.environ["TINY_E2E_BENCH_MODEL"], case, "--json", "--runs", "1",
                           "--output", path], env=box.environment(), text=True, capture_output=True)
    check(done.returncode == 0 and done.stderr == "", f"{case}: {done.returncode} {done.stderr}")
    values = array.array("f")
    with open(path, "rb") as file:
        values.frombytes(file.read())
    return list(values)


def same(values, expected):
    check(len(values) == len(expected), f"{len(values)} values, {len(expected)} expected")
    largest = max(map(abs, expected))
    error = max(abs(a - b) for a, b in zip(values, expected)) / largest
    note(f"largest difference {error:.2g} of the largest value")
    check(error <= BOUND, f"{values[:4]}… and {expected[:4]}… differ by {error}")


def fill(name, n, offset=0.0, scale=1.0):
    """offset + scale times numbers in [-1/2, 1/2) that follow from the name."""
    seed = 2166136261
    for byte in name.encode():
        seed = (seed ^ byte) * 16777619 & 0xffffffff
    values = []
    for i in range(n):
        v = (i * 2654435761 + seed * 40503) & 0xffffffff
        v = (v ^ v >> 15) * 2246822519 & 0xffffffff
        v ^= v >> 13
        values.append(((v >> 8) / 2 ** 24 - 0.5) * scale + offset)
    return values


def rows(values, n):
    return [values[i:i + n] for i in range(0, len(values), n)]


# ---- GPT-2: x is a list of T rows of D numbers ----

def half(v):
    return struct.unpack("<e", struct.pack("<e", v))[0]


def brain(v):
    bits = struct.unpack("<I", struct.pack("<f", v))[0]
    return struct.unpack("<f", struct.pack("<I", (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000))[0]


def q8_0(block):
    """What a block of 32 weights has become."""
    d = max(map(abs, block)) / 127
    return [half(d) * math.floor(abs(v) / d + 0.5) * (1 if v > 0 else -1) for v in block]


def q4_0(block):
    d = max(block, key=abs) / -8
    return [half(d) * (min(15, int(v / d + 8.5)) - 8) for v in block]


FORMATS = {"f32": float, "f16": half, "bf16": brain, "q8_0": q8_0, "q4_0": q4_0}


def matrix(name, n, form):
    """The weights as the format keeps them."""
    values, keep = fill(name, n, 0, 0.07), FORMATS[form]
    if form.startswith("q"):
        return [v for block in rows(values, 32) for v in keep(block)]
    return list(map(keep, values))


def linear(x, name, n_out, form):
    n_in = len(x[0])
    w = rows(matrix(f"{name}.weight", n_out * n_in, form), n_in)
    b = fill(f"{name}.bias", n_out, 0, 0.07)
    return [[sum(map(float.__mul__, row, column)) + c for column, c in zip(w, b)] for row in x]


def layer_norm(x, name):
    weight, bias = fill(f"{name}.weight", len(x[0]), 1, 0.07), fill(f"{name}.bias", len(x[0]), 0, 0.07)
    result = []
    for row in x:
        mean = sum(row) / len(row)
        scale = 1 / math.sqrt(sum((v - mean) ** 2 for v in row) / len(row) + 1e-5)
        result.append([(v - mean) * scale * w + b for v, w, b in zip(row, weight, bias)])
    return result


def gelu(v):
    return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3)))


def add(x, y):
    return [[a + b for a, b in zip(p, q)] for p, q in zip(x, y)]


def attention(qkv, width, n_heads):
    d = width // n_heads
    result = [[0.0] * width for _ in qkv]
    for t, h in itertools.product(range(len(qkv)), range(n_heads)):
        at = lambda row, part: row[part * width + h * d:part * width + (h + 1) * d]
        scores = [sum(map(float.__mul__, at(qkv[t], 0), at(row, 1))) / math.sqrt(d)
                  for row in qkv[:t + 1]]
        weights = [math.exp(s - max(scores)) for s in scores]
        for w, row in zip(weights, qkv):
            for i, v in enumerate(at(row, 2)):
                result[t][h * d + i] += w / sum(weights) * v
    return result


def gpt2(tokens, size=TINY, form="f32"):
    """The scores of what follows @tokens."""
    width, n_heads = size
    embedding = rows(matrix("tokens", VOCABULARY * width, form), width)
    positions = rows(matrix("positions", len(tokens) * width, "f32"), width)
    x = add([embedding[t] for t in tokens], positions)
    for at in (f"h.{i}." for i in range(LAYERS)):
        qkv = linear(layer_norm(x, at + "norm1"), at + "attention", 3 * width, form)
        x = add(x, linear(attention(qkv, width, n_heads), at + "project", width, form))
        up = linear(layer_norm(x, at + "norm2"), at + "up", 4 * width, form)
        x = add(x, linear([list(map(gelu, row)) for row in up], at + "down", width, form))
    last = layer_norm(x[-1:], "norm")[0]
    return [sum(map(float.__mul__, last, row)) for row in embedding]


TOKENS = [i * 37 % VOCABULARY for i in range(PROMPT)]


@test("models/gpt2-prefill")
def gpt2_prefill(box):
    same(output_of(box, "gpt2-tiny-prefill"), gpt2(TOKENS))


@test("models/gpt2-decode")
def gpt2_decode(box):
    same(output_of(box, "gpt2-tiny-decode"), gpt2(TOKENS + [NEXT_TOKEN]))


@test("models/gpt2-formats")
def gpt2_formats(box):
    """Beside the same weights rounded by other code, and not far from those that were not."""
    exact = gpt2(TOKENS + [NEXT_TOKEN], SMALL)
    largest = max(map(abs, exact))
    for form, bound in (("f32", 1e-5), ("f16", 2e-3), ("bf16", 2e-2), ("q8_0", 2e-2), ("q4_0", 0.3)):
        case = "gpt2-small-decode" + (":" + form if form != "f32" else "")
        values = output_of(box, case)
        same(values, gpt2(TOKENS + [NEXT_TOKEN], SMALL, form))
        error = max(abs(a - b) for a, b in zip(values, exact)) / largest
        note(f"{form}: {error:.2g} from f32")
        check(error <= bound, f"{form}: {error} from f32")


# ---- ResNet: x is a list of C images, each a list of rows ----

def convolve(x, weight, n_out, k, stride):
    """Same padding; @weight is flat (O, C, k, k)."""
    n, pad = len(x[0]), k // 2
    padded = [[[0.0] * (n + 2 * pad)] * pad + [[0.0] * pad + row + [0.0] * pad for row in image]
              + [[0.0] * (n + 2 * pad)] * pad for image in x]
    result = []
    for taps in rows(weight, len(x) * k * k):
        lines = rows(taps, k)
        result.append([[sum(sum(map(float.__mul__, image[i + y][j:j + k], lines[c * k + y]))
                            for c, image in enumerate(padded) for y in range(k))
                        for j in range(0, n, stride)] for i in range(0, n, stride)])
    return result


def unit(x, at, n_out, k, stride, gain):
    """Convolution and batch-norm."""
    n_in = len(x)
    weight = fill(f"{at}.weight", n_out * n_in * k * k, 0, math.sqrt(24 / (n_in * k * k)))
    y = convolve(x, weight, n_out, k, stride)
    norms = zip(fill(f"{at}.norm.weight", n_out, gain, gain / 4), fill(f"{at}.norm.bias", n_out, 0, 0.2),
                fill(f"{at}.norm.mean", n_out, 0, 0.2), fill(f"{at}.norm.var", n_out, 1, 0.5))
    return [[[(v - mean) / math.sqrt(var + 1e-5) * w + b for v in row] for row in image]
            for image, (w, b, mean, var) in zip(y, norms)]


def relu(x):
    return [[[max(v, 0.0) for v in row] for row in image] for image in x]


def max_pool(x):
    """3×3 windows at every second place; relu came before, so zeros around change nothing."""
    n = len(x[0])
    inside = lambda i: [j for j in (i - 1, i, i + 1) if 0 <= j < n]
    return [[[max(image[a][b] for a in inside(i) for b in inside(j)) for j in range(0, n, 2)]
             for i in range(0, n, 2)] for image in x]


def resnet():
    x = [rows(image, SIZE) for image in rows(fill("image", 3 * SIZE * SIZE), SIZE * SIZE)]
    x, number = max_pool(relu(unit(x, "stem", STEM, 7, 2, 1))), 0
    for stage, (n_blocks, planes) in enumerate(STAGES):
        for i in range(n_blocks):
            at, stride = f"blocks.{number}", 2 if i == 0 and stage > 0 else 1
            y = relu(unit(x, at + ".first", planes, 1, 1, 1))
            y = unit(relu(unit(y, at + ".second", planes, 3, stride, 1)), at + ".third", 4 * planes, 1, 1, 0.5)
            if i == 0:
                x = unit(x, at + ".shortcut", 4 * planes, 1, stride, 0.7)
            x, number = relu([add(a, b) for a, b in zip(x, y)]), number + 1
    pooled = [sum(map(sum, image)) / len(image) ** 2 for image in x]
    weight = rows(fill("classifier.weight", CLASSES * len(pooled), 0, 0.05), len(pooled))
    return [sum(map(float.__mul__, pooled, w)) + b
            for w, b in zip(weight, fill("classifier.bias", CLASSES, 0, 0.05))]


@test("models/resnet")
def resnet_tiny(box):
    same(output_of(box, "resnet-tiny"), resnet())


if __name__ == "__main__":
    main()
