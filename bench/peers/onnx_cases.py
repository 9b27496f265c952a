#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Milliseconds of a case in ONNX Runtime, or with --openvino in OpenVINO: a JSON line. Threads as in OMP_NUM_THREADS.

The model is made here, kept in a temporary folder while it is loaded, and has its weights inside."""
import os, tempfile, time
import numpy as np
import onnx
import onnxruntime
import onnx_models
from common import arguments, inputs, read_case, report
from onnx_models import Graph


def matmul(g, x, w):
    return g.add("MatMul", x, g.constant(w))


def elementwise(g, a, b, c, d):
    gate = g.add("Sigmoid", g.add("Add", g.add("Mul", a, b), c))
    return g.add("Mul", gate, g.add("Tanh", d))


def convolution(g, x, w):
    pad = w.shape[2] // 2
    return g.add("Conv", x, g.constant(w), pads=[pad] * 4, group=w.shape[0] if w.shape[1] == 1 else 1)


# Each builds the result; weights come as arrays, other inputs as names.
BUILDERS = {
    "matmul": (1, matmul), "elementwise": (4, elementwise), "conv": (1, convolution),
    "depthwise": (1, convolution),
    "matvec": (0, lambda g, w, x: g.add("MatMul", g.constant(w), g.input("x", x))),
    "sum": (1, lambda g, x: g.add("ReduceSum", x, keepdims=0)),
    "sumrows": (1, lambda g, x: g.add("ReduceSum", x, g.constant(np.array([1])), keepdims=0)),
    "softmax": (1, lambda g, x: g.add("Softmax", x, axis=-1)),
    "layernorm": (1, lambda g, x, w, b: g.add("LayerNormalization", x, g.constant(w), g.constant(b),
                                              axis=-1)),
    "transpose": (1, lambda g, x: g.add("Transpose", x, perm=[1, 0])),
    "cumsum": (1, lambda g, x: g.add("CumSum", x, g.numbers(0))),
}


def build(text):
    """A graph with its inputs bound and one output."""
    g = Graph()
    if text in onnx_models.NAMES:
        onnx_models.build(g, text, evaluate)
        return g
    name, sizes = read_case(text)
    given = inputs(text)
    if name == "launch":
        x, one = g.input("x", given[0]), g.input("one", np.ones(1, np.float32))
        for i in range(sizes[0]):
            x = g.add("Add", x, one)
        g.output(x)
        return g
    n_bound, builder = BUILDERS[name]
    bound = [g.input(f"x{i}", x) for i, x in enumerate(given[:n_bound])]
    g.output(builder(g, *bound, *given[n_bound:]))
    return g


THREADS = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))


def onnx_runtime(path):
    """A function of inputs by name that gives all outputs."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda bound: session.run(None, bound)


def openvino_request(path):
    """The same in OpenVINO, in f32, which it would leave where the CPU has bf16."""
    import openvino
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": THREADS, "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()
    return lambda bound: list(request.infer(bound, share_inputs=True, share_outputs=True).values())


def loaded(g, load):
    with tempfile.TemporaryDirectory(prefix="tinycore-onnx-") as folder:
        path = os.path.join(folder, "model.onnx")
        onnx.save(g.model(), path)
        return load(path)


def evaluate(g):
    return loaded(g, onnx_runtime)(g.bound)


args = arguments(__doc__, [*BUILDERS, "launch", *onnx_models.NAMES], ["--openvino"])
graph = build(args.case)
start = time.perf_counter()
run = loaded(graph, openvino_request if args.openvino else onnx_runtime)
report(args, lambda: run(graph.bound)[0], compile_ms=(time.perf_counter() - start) * 1e3)
