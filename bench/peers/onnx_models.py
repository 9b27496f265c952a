# SPDX-License-Identifier: MIT
"""The models of bench/models as ONNX graphs, with the same weights."""
import math
import numpy as np
from onnx import TensorProto, helper, numpy_helper
from common import fill

GPT2 = {"gpt2": (50257, 768, 12, 12, 128), "gpt2-tiny": (101, 24, 3, 2, 7)}
RESNET = {"resnet50": ((3, 4, 6, 3), (64, 128, 256, 512), 64, 224, 1000),
          "resnet-tiny": ((2, 1), (4, 6), 8, 32, 10)}
NAMES = (*RESNET, *(f"{name}-{step}" for name in GPT2 for step in ("prefill", "decode")))
NEXT_TOKEN, TOKEN_STRIDE = 11, 37
OPSET = 20  # the first with Gelu


class Graph:
    """A growing list of nodes; values are known by their names."""

    def __init__(self):
        self.nodes, self.constants, self.infos, self.bound, self.outputs = [], [], [], {}, []

    def add(self, op, *sources, n=1, **attributes):
        names = [f"v{len(self.nodes)}.{i}" for i in range(n)]
        self.nodes.append(helper.make_node(op, list(sources), names, **attributes))
        return names if n > 1 else names[0]

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def numbers(self, *values):
        return self.constant(np.array(values, dtype=np.int64))

    def input(self, name, array):
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.infos.append(helper.make_tensor_value_info(name, kind, array.shape))
        self.bound[name] = array
        return name

    def output(self, name):
        self.outputs.append(name)

    def model(self):
        outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in self.outputs]
        graph = helper.make_graph(self.nodes, "case", self.infos, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


# ---- GPT-2 ----

def linear(g, x, name, n_in, n_out):
    weight = fill(f"{name}.weight", (n_out, n_in), scale=0.07).T
    bias = fill(f"{name}.bias", (n_out,), scale=0.07)
    return g.add("Add", g.add("MatMul", x, g.constant(weight)), g.constant(bias))


def layer_norm(g, x, name, width):
    return g.add("LayerNormalization", x, g.constant(fill(f"{name}.weight", (width,), 1, 0.07)),
                 g.constant(fill(f"{name}.bias", (width,), 0, 0.07)), axis=-1)


def heads(g, x, n_heads, d):
    """(N, D) to (H, N, d)"""
    x = g.add("Reshape", x, g.numbers(-1, n_heads, d))
    return g.add("Transpose", x, perm=[1, 0, 2])


def attention(g, q, k, v, n_heads, d, mask):
    keys = g.add("Transpose", g.add("Reshape", k, g.numbers(-1, n_heads, d)), perm=[1, 2, 0])
    scores = g.add("MatMul", heads(g, q, n_heads, d), keys)
    scores = g.add("Mul", scores, g.constant(np.array(1 / math.sqrt(d), dtype=np.float32)))
    if mask is not None:
        scores = g.add("Add", scores, mask)
    mixed = g.add("MatMul", g.add("Softmax", scores, axis=-1), heads(g, v, n_heads, d))
    return g.add("Reshape", g.add("Transpose", mixed, perm=[1, 0, 2]), g.numbers(-1, n_heads * d))


def gpt2(g, name, token_ids, past, cache):
    """@cache: keys and values of what came before, an array each; gives the scores and new ones."""
    vocabulary, width, n_heads, n_layers, _ = GPT2[name]
    n, mask = len(token_ids), None
    if n > 1:
        mask = g.constant(np.triu(np.full((n, n), -np.inf, dtype=np.float32), 1))
    table = fill("tokens", (vocabulary, width), scale=0.07)
    positions = fill("positions", (1024, width), scale=0.07)[past:past + n]
    tokens = g.input("tokens", np.array(token_ids, dtype=np.int64))
    x = g.add("Add", g.add("Gather", g.constant(table), tokens), g.constant(positions))
    kept = []
    for i in range(n_layers):
        at = f"h.{i}."
        qkv = linear(g, layer_norm(g, x, at + "norm1", width), at + "attention", width, 3 * width)
        q, *kv = g.add("Split", qkv, n=3, axis=1, num_outputs=3)
        if cache:
            kv = [g.add("Concat", g.input(f"cache{2 * i + j}", cache[2 * i + j]), kv[j], axis=0)
                  for j in range(2)]
        kept += kv
        mixed = attention(g, q, *kv, n_heads, width // n_heads, mask)
        x = g.add("Add", x, linear(g, mixed, at + "project", width, width))
        up = linear(g, layer_norm(g, x, at + "norm2", width), at + "up", width, 4 * width)
        down = linear(g, g.add("Gelu", up, approximate="tanh"), at + "down", 4 * width, width)
        x = g.add("Add", x, down)
    last = g.add("Slice", x, g.numbers(n - 1), g.numbers(n), g.numbers(0))
    g.output(g.add("MatMul", layer_norm(g, last, "norm", width), g.constant(table.T)))
    return kept


def prompt(name):
    return [i * TOKEN_STRIDE % GPT2[name][0] for i in range(GPT2[name][4])]


def build_gpt2(g, name, decode, run):
    if not decode:
        gpt2(g, name, prompt(name), 0, [])
        return
    reader = Graph()
    for kept in gpt2(reader, name, prompt(name), 0, []):
        reader.output(kept)
    gpt2(g, name, [NEXT_TOKEN], GPT2[name][4], run(reader)[1:])


# ---- ResNet ----

def unit(g, x, at, n_in, n_out, kernel, stride, gain):
    scale = math.sqrt(24 / (n_in * kernel * kernel))
    weight = fill(f"{at}.weight", (n_out, n_in, kernel, kernel), scale=scale)
    x = g.add("Conv", x, g.constant(weight), pads=[kernel // 2] * 4, strides=[stride] * 2)
    norm = [fill(f"{at}.norm.weight", (n_out,), gain, gain / 4), fill(f"{at}.norm.bias", (n_out,), 0, 0.2),
            fill(f"{at}.norm.mean", (n_out,), 0, 0.2), fill(f"{at}.norm.var", (n_out,), 1, 0.5)]
    return g.add("BatchNormalization", x, *map(g.constant, norm))


def block(g, x, at, n_in, planes, stride):
    y = g.add("Relu", unit(g, x, f"{at}.first", n_in, planes, 1, 1, 1))
    y = g.add("Relu", unit(g, y, f"{at}.second", planes, planes, 3, stride, 1))
    y = unit(g, y, f"{at}.third", planes, 4 * planes, 1, 1, 0.5)
    if stride != 1 or n_in != 4 * planes:
        x = unit(g, x, f"{at}.shortcut", n_in, 4 * planes, 1, stride, 0.7)
    return g.add("Relu", g.add("Add", y, x))


def build_resnet(g, name):
    counts, planes, n_in, size, classes = RESNET[name]
    x = g.input("image", fill("image", (1, 3, size, size)))
    x = g.add("Relu", unit(g, x, "stem", 3, n_in, 7, 2, 1))
    x, number = g.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 0
    for stage, (n, p) in enumerate(zip(counts, planes)):
        for i in range(n):
            x = block(g, x, f"blocks.{number}", n_in, p, 2 if i == 0 and stage > 0 else 1)
            n_in, number = 4 * p, number + 1
    x = g.add("Flatten", g.add("GlobalAveragePool", x))
    weight = fill("classifier.weight", (classes, n_in), scale=0.05).T
    scores = g.add("MatMul", x, g.constant(weight))
    g.output(g.add("Add", scores, g.constant(fill("classifier.bias", (classes,), scale=0.05))))


def build(g, text, run):
    """@run evaluates another graph, which decoding needs for its cache."""
    if text in RESNET:
        build_resnet(g, text)
    else:
        build_gpt2(g, text.rsplit("-", 1)[0], text.endswith("-decode"), run)
