# SPDX-License-Identifier: MIT
"""The models of bench/models in PyTorch, with the same weights."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from common import fill, rounded

GPT2 = {"gpt2": (50257, 768, 12, 12, 256, 128), "gpt2-tiny": (101, 24, 3, 2, 16, 7)}
RESNET = {"resnet50": ((3, 4, 6, 3), (64, 128, 256, 512), 64, 224, 1000),
          "resnet-tiny": ((2, 1), (4, 6), 8, 32, 10)}
NAMES = ("attention", "attention-backward", "attention:4096", "attention-backward:4096", "cnn-train", *RESNET,
         *(f"{name}-{step}" for name in GPT2 for step in ("prefill", "decode")),
         "gpt2-decode:f16", "gpt2-decode:q8_0", "gpt2-decode:q4_0")
NEXT_TOKEN, TOKEN_STRIDE, POSITIONS = 11, 37, 1024


def weight(name, *shape, offset=0.0, scale=1.0, form="f32"):
    return torch.from_numpy(rounded(fill(name, shape, offset, scale), form))


class Layer:
    def __init__(self, at, width, form):
        norm = lambda name: (weight(f"{at}{name}.weight", width, offset=1, scale=0.07),
                             weight(f"{at}{name}.bias", width, scale=0.07))
        linear = lambda name, rows, columns: (
            weight(f"{at}{name}.weight", rows, columns, scale=0.07, form=form),
            weight(f"{at}{name}.bias", rows, scale=0.07))
        self.norm1, self.norm2 = norm("norm1"), norm("norm2")
        self.attention = linear("attention", 3 * width, width)
        self.project = linear("project", width, width)
        self.up, self.down = linear("up", 4 * width, width), linear("down", width, 4 * width)


class Gpt2(nn.Module):
    """forward(tokens, keys and values of what came before): scores, keys and values of all. Weights of
    another form than f32 are rounded to it and computed with as f32, so their outputs count and their time
    does not (unlike, cases.py)."""

    def __init__(self, name, form):
        super().__init__()
        self.vocabulary, self.width, self.heads, layers, self.context, self.prompt = GPT2[name]
        self.tokens = weight("tokens", self.vocabulary, self.width, scale=0.07, form=form)
        self.positions = weight("positions", POSITIONS, self.width, scale=0.07)
        self.norm = (weight("norm.weight", self.width, offset=1, scale=0.07),
                     weight("norm.bias", self.width, scale=0.07))
        self.layers = [Layer(f"h.{i}.", self.width, form) for i in range(layers)]

    def attend(self, q, k, v):
        heads = lambda x: x.view(1, -1, self.heads, self.width // self.heads).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(heads(q), heads(k), heads(v), is_causal=q.shape[0] > 1)
        return mixed[0].transpose(0, 1).reshape(-1, self.width)

    def forward(self, tokens, cache):
        past = cache[0].shape[0] if cache else 0
        n = tokens.shape[0]
        x = self.tokens[tokens] + self.positions[past:past + n]
        kept = []
        for i, layer in enumerate(self.layers):
            y = F.linear(F.layer_norm(x, (self.width,), *layer.norm1), *layer.attention)
            q, k, v = y.split(self.width, 1)
            if cache:
                k, v = torch.cat((cache[2 * i], k)), torch.cat((cache[2 * i + 1], v))
            kept += [k, v]
            x = x + F.linear(self.attend(q, k, v), *layer.project)
            y = F.linear(F.layer_norm(x, (self.width,), *layer.norm2), *layer.up)
            x = x + F.linear(self.gelu(y), *layer.down)
        return F.linear(F.layer_norm(x[-1:], (self.width,), *self.norm), self.tokens), kept

    gelu = staticmethod(lambda x: F.gelu(x, approximate="tanh"))

    def prompt_tokens(self):
        return torch.arange(self.prompt) * TOKEN_STRIDE % self.vocabulary


class CachedDecode:
    """One token after the prompt, with the cache in memory of its own that is written in place."""

    def __init__(self, net):
        self.net, self.token = net, torch.tensor([NEXT_TOKEN])
        _, kept = net(net.prompt_tokens(), [])
        self.cache = [torch.zeros(net.context, net.width) for _ in kept]
        for to, rows in zip(self.cache, kept):
            to[:net.prompt] = rows

    def step(self):
        net, at = self.net, self.net.prompt
        x = net.tokens[self.token] + net.positions[at:at + 1]
        for i, layer in enumerate(net.layers):
            y = F.linear(F.layer_norm(x, (net.width,), *layer.norm1), *layer.attention)
            q, *new = y.split(net.width, 1)
            k, v = self.cache[2 * i:2 * i + 2]
            k[at:at + 1], v[at:at + 1] = new
            x = x + F.linear(net.attend(q, k[:at + 1], v[:at + 1]), *layer.project)
            y = F.linear(F.layer_norm(x, (net.width,), *layer.norm2), *layer.up)
            x = x + F.linear(net.gelu(y), *layer.down)
        return F.linear(F.layer_norm(x, (net.width,), *net.norm), net.tokens)


def unit(at, n_in, n_out, kernel, stride, gain):
    convolution = nn.Conv2d(n_in, n_out, kernel, stride, kernel // 2, bias=False)
    norm = nn.BatchNorm2d(n_out)
    convolution.weight.data = weight(f"{at}.weight", n_out, n_in, kernel, kernel,
                                     scale=math.sqrt(24 / (n_in * kernel * kernel)))
    norm.weight.data = weight(f"{at}.norm.weight", n_out, offset=gain, scale=gain / 4)
    norm.bias.data = weight(f"{at}.norm.bias", n_out, scale=0.2)
    norm.running_mean = weight(f"{at}.norm.mean", n_out, scale=0.2)
    norm.running_var = weight(f"{at}.norm.var", n_out, offset=1, scale=0.5)
    return nn.Sequential(convolution, norm)


class Block(nn.Module):
    def __init__(self, at, n_in, planes, stride):
        super().__init__()
        out = 4 * planes
        self.first = unit(f"{at}.first", n_in, planes, 1, 1, 1)
        self.second = unit(f"{at}.second", planes, planes, 3, stride, 1)
        self.third = unit(f"{at}.third", planes, out, 1, 1, 0.5)
        self.shortcut = (unit(f"{at}.shortcut", n_in, out, 1, stride, 0.7)
                         if stride != 1 or n_in != out else nn.Identity())

    def forward(self, x):
        y = self.third(F.relu(self.second(F.relu(self.first(x)))))
        return F.relu(y + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, name):
        super().__init__()
        counts, planes, n_in, self.size, classes = RESNET[name]
        self.stem, blocks = unit("stem", 3, n_in, 7, 2, 1), []
        for stage, (n, p) in enumerate(zip(counts, planes)):
            for i in range(n):
                stride = 2 if i == 0 and stage > 0 else 1
                blocks.append(Block(f"blocks.{len(blocks)}", n_in, p, stride))
                n_in = 4 * p
        self.blocks, self.classifier = nn.Sequential(*blocks), nn.Linear(n_in, classes)
        self.classifier.weight.data = weight("classifier.weight", classes, n_in, scale=0.05)
        self.classifier.bias.data = weight("classifier.bias", classes, scale=0.05)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.stem(x)), 3, 2, 1)
        return self.classifier(self.blocks(x).mean((2, 3)))

    def image(self):
        return weight("image", 1, 3, self.size, self.size)


class CnnStep:
    """A training step, which gives the loss before it."""

    def __init__(self, wrap):
        self.net = nn.Sequential(
            nn.Conv2d(1, 32, 5), nn.ReLU(), nn.Conv2d(32, 32, 5), nn.ReLU(), nn.BatchNorm2d(32),
            nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
            nn.BatchNorm2d(64), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(576, 10))
        for i, p in enumerate(self.net.parameters()):
            vector = p.dim() == 1
            p.data = weight(f"parameter.{i}", *p.shape, offset=0.5 if vector else 0,
                            scale=0.1 if vector else 0.2)
        self.adam = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.images = weight("images", 128, 1, 28, 28, offset=127.5, scale=255)
        self.labels = torch.arange(128) % 10
        self.loss = wrap(lambda x: F.cross_entropy(self.net(x * (1 / (255 * 0.353)) - 0.286 / 0.353), self.labels))

    def __call__(self):
        self.adam.zero_grad()
        loss = self.loss(self.images)
        loss.backward()
        self.adam.step()
        return loss.detach()


class Attention:
    """On (1, H, T, d), and its gradients against @weights."""

    def __init__(self, shape, backward, wrap):
        self.inputs = [weight(n, *shape, scale=4).requires_grad_(backward) for n in "qkv"]
        self.weights = weight("weights", *shape) if backward else None
        self.attention = wrap(F.scaled_dot_product_attention)

    def __call__(self):
        y = self.attention(*self.inputs)
        if self.weights is None:
            return y
        return torch.cat(torch.autograd.grad((y * self.weights).sum(), self.inputs))


def has_gradients(case):
    return case == "cnn-train" or case.startswith("attention-backward")


def prepared(case, wrap):
    """The function to time; @wrap is given what may be compiled."""
    if case == "cnn-train":
        return CnnStep(wrap)
    if case.startswith("attention"):
        rows = case.partition(":")[2]
        return Attention((1, 12, int(rows or 1024), 64), has_gradients(case), wrap)
    if case in RESNET:
        net = ResNet(case).eval()
        image, forward = net.image(), wrap(net)
        return lambda: forward(image)
    case, *form = case.split(":")
    name, step = case.rsplit("-", 1)
    net = Gpt2(name, *form or ["f32"])
    if step == "decode":
        return wrap(CachedDecode(net).step)
    tokens, forward = net.prompt_tokens(), wrap(lambda tokens: net(tokens, [])[0])
    return lambda: forward(tokens)
