#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Milliseconds of a case in tinygrad under TinyJit, with DEV=CPU: a JSON line."""
import math
import numpy as np
from tinygrad import Context, Device, Tensor, TinyJit, nn
from common import arguments, fill, inputs, read_case, report

RESNET = {"resnet50": ((3, 4, 6, 3), (64, 128, 256, 512), 64, 224, 1000),
          "resnet-tiny": ((2, 1), (4, 6), 8, 32, 10)}
GPT2 = {"gpt2": (50257, 768, 12, 12, 128), "gpt2-tiny": (101, 24, 3, 2, 7)}


def weight(name, *shape, offset=0.0, scale=1.0):
    return Tensor(fill(name, shape, offset, scale)).contiguous().realize()


def chain(n, x):
    for i in range(n):
        x = (x + 1).contiguous().realize()
    return x


# ---- ResNet ----

def unit(at, n_in, n_out, kernel, stride, gain):
    w = weight(f"{at}.weight", n_out, n_in, kernel, kernel, scale=math.sqrt(24 / (n_in * kernel ** 2)))
    norm = [weight(f"{at}.norm.weight", n_out, offset=gain, scale=gain / 4),
            weight(f"{at}.norm.bias", n_out, scale=0.2), weight(f"{at}.norm.mean", n_out, scale=0.2),
            (weight(f"{at}.norm.var", n_out, offset=1, scale=0.5) + 1e-5).rsqrt().realize()]
    return lambda x: x.conv2d(w, stride=stride, padding=kernel // 2).batchnorm(*norm)


def block(at, n_in, planes, stride):
    first, second = unit(f"{at}.first", n_in, planes, 1, 1, 1), unit(f"{at}.second", planes, planes, 3, stride, 1)
    third, shortcut = unit(f"{at}.third", planes, 4 * planes, 1, 1, 0.5), lambda x: x
    if stride != 1 or n_in != 4 * planes:
        shortcut = unit(f"{at}.shortcut", n_in, 4 * planes, 1, stride, 0.7)
    return lambda x: (third(second(first(x).relu()).relu()) + shortcut(x)).relu()


def resnet(name):
    counts, planes, n_in, size, classes = RESNET[name]
    stem, blocks = unit("stem", 3, n_in, 7, 2, 1), []
    for stage, (n, p) in enumerate(zip(counts, planes)):
        for i in range(n):
            blocks.append(block(f"blocks.{len(blocks)}", n_in, p, 2 if i == 0 and stage > 0 else 1))
            n_in = 4 * p
    w, b = weight("classifier.weight", classes, n_in, scale=0.05), weight("classifier.bias", classes, scale=0.05)

    def forward(x):
        x = stem(x).relu().max_pool2d(3, 2, padding=1)
        return x.sequential(blocks).mean((2, 3)).linear(w.T, b)
    return forward, [weight("image", 1, 3, size, size)]


# ---- GPT-2 ----

def gpt2(name, decode):
    vocabulary, width, n_heads, n_layers, n_prompt = GPT2[name]
    table = weight("tokens", vocabulary, width, scale=0.07)
    positions = weight("positions", 1024, width, scale=0.07)
    linear = lambda at, i, o: (weight(f"{at}.weight", o, i, scale=0.07), weight(f"{at}.bias", o, scale=0.07))
    norm = lambda at: (weight(f"{at}.weight", width, offset=1, scale=0.07), weight(f"{at}.bias", width, scale=0.07))
    layers = [[norm(f"h.{i}.norm1"), linear(f"h.{i}.attention", width, 3 * width),
               linear(f"h.{i}.project", width, width), norm(f"h.{i}.norm2"),
               linear(f"h.{i}.up", width, 4 * width), linear(f"h.{i}.down", 4 * width, width)]
              for i in range(n_layers)]
    last_norm = norm("norm")
    apply = lambda x, wb: x.linear(wb[0].T, wb[1])
    normalise = lambda x, wb: x.layernorm(-1, 1e-5) * wb[0] + wb[1]
    heads = lambda x: x.reshape(-1, n_heads, width // n_heads).transpose(0, 1)

    def forward(tokens, *cache):
        past, n = (cache[0].shape[0] if cache else 0), tokens.shape[0]
        x, kept = table[tokens] + positions[past:past + n], []
        for i, (norm1, attend, project, norm2, up, down) in enumerate(layers):
            q, k, v = apply(normalise(x, norm1), attend).split(width, 1)
            if cache:
                k, v = cache[2 * i].cat(k), cache[2 * i + 1].cat(v)
            kept += [k, v]
            mixed = heads(q).scaled_dot_product_attention(heads(k), heads(v), is_causal=n > 1)
            x = x + apply(mixed.transpose(0, 1).reshape(n, width), project)
            x = x + apply(apply(normalise(x, norm2), up).gelu(), down)
        return normalise(x[-1:], last_norm).linear(table.T), kept
    prompt = Tensor(np.arange(n_prompt, dtype=np.int32) * 37 % vocabulary).realize()
    if not decode:
        return lambda tokens: forward(tokens)[0], [prompt]
    cache = [rows.contiguous().realize() for rows in forward(prompt)[1]]
    return lambda *given: forward(*given)[0], [Tensor(np.array([11], dtype=np.int32)).realize(), *cache]


def training():
    layers = [lambda x: x * (1 / (255 * 0.353)) - 0.286 / 0.353,
              nn.Conv2d(1, 32, 5), Tensor.relu, nn.Conv2d(32, 32, 5), Tensor.relu, nn.BatchNorm(32),
              Tensor.max_pool2d, nn.Conv2d(32, 64, 3), Tensor.relu, nn.Conv2d(64, 64, 3), Tensor.relu,
              nn.BatchNorm(64), Tensor.max_pool2d, lambda x: x.flatten(1), nn.Linear(576, 10)]
    trained = [t for layer in layers for t in (getattr(layer, "weight", None), getattr(layer, "bias", None))
               if t is not None]
    for i, p in enumerate(trained):
        vector = len(p.shape) == 1
        p.assign(weight(f"parameter.{i}", *p.shape, offset=0.5 if vector else 0, scale=0.1 if vector else 0.2)).realize()
    adam = nn.optim.Adam(trained)

    def step(x, y):
        with Context(TRAINING=1):
            adam.zero_grad()
            loss = x.sequential(layers).sparse_categorical_crossentropy(y).backward()
            return loss.realize(*adam.schedule_step())
    return step, [weight("images", 128, 1, 28, 28, offset=127.5, scale=255),
                  Tensor(np.arange(128, dtype=np.int32) % 10).realize()]


FUNCTIONS = {
    "matmul": Tensor.matmul, "matvec": Tensor.matmul, "sum": Tensor.sum, "sumrows": lambda x: x.sum(1),
    "elementwise": lambda a, b, c, d: (a * b + c).sigmoid() * d.tanh(), "softmax": lambda x: x.softmax(1),
    "layernorm": lambda x, w, b: x.layernorm(-1, 1e-5) * w + b,
    "conv": lambda x, w: x.conv2d(w, padding=w.shape[2] // 2),
    "depthwise": lambda x, w: x.conv2d(w, padding=w.shape[2] // 2, groups=w.shape[0]),
    "transpose": lambda x: x.T.contiguous(), "cumsum": lambda x: x.cumsum(0)}
MODELS = (*RESNET, *(f"{name}-{step}" for name in GPT2 for step in ("prefill", "decode")), "cnn-train")


def prepared(text):
    """(function, its arguments)"""
    if text in RESNET:
        return resnet(text)
    if text == "cnn-train":
        return training()
    if text in MODELS:
        return gpt2(text.rsplit("-", 1)[0], text.endswith("-decode"))
    name, sizes = read_case(text)
    given = [Tensor(x).contiguous().realize() for x in inputs(text)]
    return (lambda x: chain(sizes[0], x)) if name == "launch" else FUNCTIONS[name], given


args = arguments(__doc__, [*FUNCTIONS, "launch", *MODELS])
function, given = prepared(args.case)
jitted = TinyJit(lambda *x: function(*x).realize())


def run():
    result = jitted(*given)
    Device[Device.DEFAULT].synchronize()
    return result


report(args, run, lambda result: result.numpy())
