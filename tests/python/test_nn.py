#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Layers, containers, optimisers and data of the package beside PyTorch's: the same source, run with "import torch" and with
"import tinycore", from the same weights; copies, shared tensors, state.

TAP. Run in the build's environment, by the interpreter that has gi, numpy and torch."""
import ast
import copy
import pathlib
import pickle
import sys
import tempfile
import types
import warnings

import checks
import numpy as np
import tinycore
import torch
from tinycore import Tensor, TinyJit, Variable, dtypes, nn, optim
from tinycore.autograd import Function
from tinycore.nn.state import get_parameters, get_state_dict, load_state_dict

warnings.simplefilter("ignore")
torch.set_num_threads(1)

TRANSLATOR = """
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Translator(nn.Module):
    def __init__(self, tokens, d):
        super().__init__()
        self.embedding = nn.Embedding(tokens, d, padding_idx=0)
        self.positions = nn.Parameter(torch.zeros(6, d))
        layer = nn.TransformerEncoderLayer(d, 2, 2 * d, 0.0, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(d))
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(d, 2, 2 * d, 0.0, batch_first=True), 1)
        self.head = nn.Linear(d, tokens, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.tensor([0.5]))

    def forward(self, source, target):
        padding = source == 0
        memory = self.encoder(self.embedding(source) + self.positions, src_key_padding_mask=padding)
        later = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        y = self.decoder(self.embedding(target) + self.positions, memory, tgt_mask=later, memory_key_padding_mask=padding)
        return self.head(y) * self.scale


def groups(model):
    plain = [p for name, p in model.named_parameters() if p.ndim < 2]
    return [{"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.1},
            {"params": plain, "betas": (0.8, 0.95), "weight_decay": 0.0}]


def train(model, source, target, scaler, epochs=2):
    optimizer = torch.optim.AdamW(groups(model), lr=3e-3, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=20, cycle_momentum=False)
    loader = DataLoader(TensorDataset(source, target), batch_size=4, shuffle=False, drop_last=True)
    criterion = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)
    losses = []
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            logits = model(x, y)
            loss = criterion(logits.reshape(-1, logits.shape[-1]), x.reshape(-1))
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            losses += [loss.item(), float(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5))]
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
    model.eval()
    with torch.no_grad():
        result = model(source, target)
    return losses, result.detach().numpy(), [group["lr"] for group in optimizer.param_groups]
"""


def both(source):
    """What a program defines, with PyTorch and with us."""
    modules = types.ModuleType("with_torch"), types.ModuleType("with_tinycore")
    for module, text in zip(modules, (source, source.replace("torch", "tinycore"))):
        sys.modules[module.__name__] = module
        exec(text, vars(module))
    return map(vars, modules)


def close(mine, theirs, what, tolerance=1e-4):
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    checks.equal(mine.shape, theirs.shape, what)
    worst = np.abs(mine - theirs).max()
    checks.true(worst <= tolerance * max(1, np.abs(theirs).max()), f"{what}: off by {worst}:\n{mine}\nPyTorch's:\n{theirs}")


def test_translator():
    """A transformer with shared weights, padding, groups of parameters, a schedule, clipping and a scaled loss."""
    theirs, ours = both(TRANSLATOR)
    torch.manual_seed(5)
    model, mine = theirs["Translator"](12, 8), ours["Translator"](12, 8)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1 * torch.randn_like(p))
    checks.equal(list(mine.state_dict()), list(model.state_dict()), "the state")
    checks.equal([name for name, _ in mine.named_parameters()], [name for name, _ in model.named_parameters()], "parameters")
    checks.equal([name for name, _ in mine.named_modules()], [name for name, _ in model.named_modules()], "modules")
    mine.load_state_dict({name: one.numpy().copy() for name, one in model.state_dict().items()})
    rng = np.random.default_rng(1)
    source = rng.integers(1, 12, (8, 6))
    source[:, 4:] *= rng.integers(0, 2, (8, 2))
    target = np.roll(source, 1, 1)
    wanted = theirs["train"](model, torch.tensor(source), torch.tensor(target), torch.cuda.amp.GradScaler(enabled=False))
    scaler = tinycore.amp.GradScaler(1024.0, growth_interval=3)
    found = ours["train"](mine, Tensor(source), Tensor(target), scaler)
    close(found[0], wanted[0], "losses and norms")
    close(found[1], wanted[1], "the trained model", 2e-3)
    close(found[2], wanted[2], "rates", 1e-6)
    checks.equal(scaler.get_scale(), 2048.0)
    checks.true(mine.head.weight is mine.embedding.weight)


def test_language_model():
    """Attention by hand, gradients of several batches, rates set in groups, a checkpoint, tokens drawn one by one."""
    theirs, ours = both(pathlib.Path(__file__).with_name("language_model.py").read_text())
    torch.manual_seed(1)
    model, mine = theirs["GPT"](theirs["Config"]()), ours["GPT"](ours["Config"]())
    checks.equal(list(mine.state_dict()), list(model.state_dict()))
    transfer(mine, model)
    tokens = np.random.default_rng(0).integers(0, 16, (2, 4, 8))
    wanted = theirs["train"](model, torch.tensor(tokens), torch.tensor(np.roll(tokens, -1, 2)))
    found = ours["train"](mine, Tensor(tokens), Tensor(np.roll(tokens, -1, 2)))
    close(found[0], wanted[0], "losses", 1e-5)
    checks.equal(found[1].tolist(), wanted[1].tolist())
    with tempfile.TemporaryDirectory() as folder:
        torch.save(wanted[2], f"{folder}/theirs.pt")
        tinycore.save(found[2], f"{folder}/ours.pt")
        checkpoint, other = tinycore.load(f"{folder}/theirs.pt"), torch.load(f"{folder}/ours.pt")
    checks.equal((checkpoint["config"], checkpoint["it"]), (other["config"], other["it"]))
    mine.load_state_dict(checkpoint["model"])
    optimizer = mine.configure_optimizers(0.0, 1.0, (0.5, 0.5))
    optimizer.load_state_dict(checkpoint["optimizer"])
    for i, rows in optimizer.state_dict()["state"].items():
        for name, one in rows.items():
            close(other["optimizer"]["state"][i][name].numpy(), one.numpy(), f"{name} of parameter {i}")
    checks.equal([group["betas"] for group in optimizer.param_groups], [(0.9, 0.95)] * 2)


def transfer(mine, theirs):
    mine.load_state_dict({name: one.numpy().copy() for name, one in theirs.state_dict().items()})


def test_transformers():
    """Layers in training's first values and gradients, with masks of every kind; unbatched attention; a whole Transformer."""
    torch.manual_seed(2)
    x, m = torch.randn(2, 5, 8), torch.randn(2, 5, 8)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    causal = torch.ones(5, 5).triu(1).bool()
    for norm_first in (False, True):
        theirs = torch.nn.Transformer(8, 2, 1, 2, 16, 0.0, norm_first=norm_first, batch_first=True)
        mine = nn.Transformer(8, 2, 1, 2, 16, 0.0, norm_first=norm_first, batch_first=True)
        checks.equal(list(mine.state_dict()), list(theirs.state_dict()))
        transfer(mine, theirs)
        masks = {"tgt_mask": causal, "src_key_padding_mask": padding, "memory_key_padding_mask": padding}
        wanted = theirs(x, m, **masks)
        wanted.square().mean().backward()
        found = mine(Tensor(x.numpy()), Tensor(m.numpy()), **{name: Tensor(mask.numpy()) for name, mask in masks.items()})
        close(found.numpy(), wanted.detach().numpy(), "Transformer")
        found.square().mean().backward()
        for (name, p), (_, q) in zip(mine.named_parameters(), theirs.named_parameters(), strict=True):
            close(p.grad.numpy(), q.grad.numpy(), f"the gradient of {name}")
    theirs, mine = torch.nn.MultiheadAttention(8, 2, kdim=4, vdim=6), nn.MultiHeadAttention(8, 2, kdim=4, vdim=6)
    transfer(mine, theirs)
    given = [torch.randn(*shape) for shape in ((5, 8), (3, 4), (3, 6))]
    for each in (True, False):
        wanted = theirs(*given, average_attn_weights=each)
        found = mine(*(Tensor(one.numpy()) for one in given), average_attn_weights=each)
        for a, b in zip(found, wanted):
            close(a.numpy(), b.detach().numpy(), "attention of one item")
    q, k, v = (Tensor(one.numpy()) for one in given)
    checks.equal(mine(q, k, v, need_weights=False)[1], None)
    close(mine(q, q[:, :4], q[:, :6], is_causal=True)[0].numpy(), mine(q, q[:, :4], q[:, :6], attn_mask=Tensor(causal.numpy()))[0].numpy(),
          "causal", 0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation=Tensor.tanh)
    checks.equal(layer(Tensor.zeros(3, 8)).shape, (3, 8))
    for bad in ({"activation": "sine"}, {"nhead": 3}):
        checks.raises(ValueError, nn.TransformerEncoderLayer, **{"d_model": 8, "nhead": 2, **bad})


def test_attributes():
    """Settings of layers under PyTorch's names, and repr."""
    pairs = [(nn.Linear(3, 4), torch.nn.Linear(3, 4), "in_features out_features"),
             (nn.Conv2d(4, 6, 3, (2, 1), 1, groups=2), torch.nn.Conv2d(4, 6, 3, (2, 1), 1, groups=2),
              "in_channels out_channels kernel_size stride padding dilation groups padding_mode"),
             (nn.ConvTranspose1d(4, 6, 3), torch.nn.ConvTranspose1d(4, 6, 3), "kernel_size stride padding output_padding"),
             (nn.BatchNorm2d(3, 1e-3), torch.nn.BatchNorm2d(3, 1e-3), "num_features eps momentum affine track_running_stats"),
             (nn.LayerNorm((2, 3)), torch.nn.LayerNorm((2, 3)), "normalized_shape eps elementwise_affine"),
             (nn.Embedding(5, 2, 1), torch.nn.Embedding(5, 2, 1), "num_embeddings embedding_dim padding_idx"),
             (nn.LSTM(3, 4, 2), torch.nn.LSTM(3, 4, 2), "input_size hidden_size num_layers bias batch_first bidirectional"),
             (nn.MultiheadAttention(8, 2), torch.nn.MultiheadAttention(8, 2), "embed_dim num_heads head_dim kdim vdim batch_first"),
             (nn.MaxPool2d(3), torch.nn.MaxPool2d(3), "kernel_size stride"), (nn.Dropout(0.3), torch.nn.Dropout(0.3), "p"),
             (nn.Softmax(dim=1), torch.nn.Softmax(dim=1), "dim"), (nn.LeakyReLU(0.2), torch.nn.LeakyReLU(0.2), "negative_slope")]
    for mine, theirs, names in pairs:
        for name in names.split():
            checks.equal(getattr(mine, name), getattr(theirs, name), f"{mine}.{name}")
    checks.equal((nn.Linear(2, 2, bias=False).bias, nn.LayerNorm(3, elementwise_affine=False).weight), (None, None))
    checks.equal(repr(nn.Sequential(nn.Linear(1, 2), nn.Flatten())),
                 "Sequential(\n  (0): Linear(in_features=1, out_features=2, bias=True)\n  (1): Flatten(start_dim=1, end_dim=-1)\n)")
    checks.raises(AttributeError, getattr, nn.Linear(1, 1), "kernel_size")
    checks.raises(ValueError, nn.Conv2d, 3, 4, 3, groups=2)
    checks.raises(ValueError, nn.Conv2d, 3, 4, (3, 3, 3))
    checks.raises(TypeError, nn.Linear, 2.5, 3)
    checks.equal(nn.Linear(2, 2, dtype="float64").weight.dtype, dtypes.float64)


def test_layers():
    """Values of layers whose settings are the package's own."""
    torch.manual_seed(3)
    x = torch.randn(2, 4, 7, 6)
    for theirs, mine in ((torch.nn.Conv2d(4, 6, (4, 3), padding="same", dilation=2), nn.Conv2d(4, 6, (4, 3), padding="same", dilation=2)),
                         (torch.nn.Conv2d(4, 4, 3, 2, (1, 2), padding_mode="reflect"), nn.Conv2d(4, 4, 3, 2, (1, 2), padding_mode="reflect")),
                         (torch.nn.ConvTranspose2d(4, 2, 3, 2, 1, 1), nn.ConvTranspose2d(4, 2, 3, 2, 1, 1)),
                         (torch.nn.InstanceNorm2d(4), nn.InstanceNorm2d(4)), (torch.nn.PReLU(4), nn.PReLU(4))):
        transfer(mine, theirs)
        close(mine(Tensor(x.numpy())).numpy(), theirs(x).detach().numpy(), repr(mine))
    for name, settings in (("AdaptiveAvgPool2d", (2,)), ("AdaptiveMaxPool2d", ((3, 2),)), ("AvgPool2d", (2, 1, 1, True, False)), ("MaxPool2d", (3,)),
                           ("Upsample", (None, 2)), ("LocalResponseNorm", (2,)), ("Flatten", ()), ("Softplus", (2.0,)), ("Unflatten", (1, (2, 2))),
                           ("Threshold", (0.1, 20.0)), ("Softmax", (1,)), ("GELU", ("tanh",)), ("Hardtanh", (-0.5, 0.3))):
        mine, theirs = getattr(nn, name)(*settings), getattr(torch.nn, name)(*settings)
        close(mine(Tensor(x.numpy())).numpy(), theirs(x).numpy(), repr(mine))
    for name, settings in (("ReflectionPad2d", (1,)), ("ReplicationPad2d", ((1, 2, 0, 3),)), ("ConstantPad2d", (1, 2.5)), ("ZeroPad2d", (-1,)), ("Unfold", (3,)),
                           ("PixelShuffle", (2,)), ("PixelUnshuffle", (1,)), ("ChannelShuffle", (2,)), ("Softmax2d", ()), ("Tanhshrink", ()), ("Dropout2d", (0,)),
                           ("UpsamplingBilinear2d", (None, 2)), ("LPPool2d", (2, 3)), ("AdaptiveMaxPool3d", (2,))):
        mine, theirs = getattr(nn, name)(*settings), getattr(torch.nn, name)(*settings)
        close(mine(Tensor(x.numpy())).numpy(), theirs(x).numpy(), repr(mine))
    checks.raises(ValueError, nn.ReflectionPad1d(1), Tensor(x.numpy()))
    mine, theirs = nn.Bilinear(7, 6, 3), torch.nn.Bilinear(7, 6, 3)
    transfer(mine, theirs)
    left, right = torch.rand(5, 7), torch.rand(5, 6)
    close(mine(Tensor(left.numpy()), Tensor(right.numpy())).numpy(), theirs(left, right).detach().numpy(), "Bilinear")
    weight, labels = torch.rand(4), torch.tensor([1, 3])
    for name, given in (("CrossEntropyLoss", {"label_smoothing": 0.1}), ("NLLLoss", {"reduction": "sum"})):
        mine, theirs = getattr(nn, name)(Tensor(weight.numpy()), **given), getattr(torch.nn, name)(weight, **given)
        close(mine(Tensor(x[:, :, 0, 0].numpy()), Tensor(labels.numpy())).numpy(), theirs(x[:, :, 0, 0], labels).numpy(), name)
        checks.equal(list(mine.state_dict()), list(theirs.state_dict()))
    for bad in (lambda: nn.ReLU(True, 1), lambda: nn.Softmax(axis=1), lambda: nn.Softmax(1, dim=1)):
        checks.raises(TypeError, bad)
    theirs, mine = torch.nn.Embedding(4, 3, padding_idx=-1), nn.Embedding(4, 3, padding_idx=-1)
    checks.equal(mine.weight[3].tolist(), [0, 0, 0])
    transfer(mine, theirs)
    tokens = np.array([[0, 3], [3, 1]])
    mine(Tensor(tokens)).square().sum().backward()
    theirs(torch.tensor(tokens)).square().sum().backward()
    close(mine.weight.grad.numpy(), theirs.weight.grad.numpy(), "the gradient of padded rows")


def test_names():
    """What the package gives is found by those who only read its source: type checkers, editors."""
    def defined(path):
        found = set()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                found.add(node.name)
            elif isinstance(node, ast.Assign):
                found.update(name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name))
            elif isinstance(node, ast.ImportFrom):
                found.update(alias.asname or alias.name for alias in node.names if alias.name != "*")
                if node.names[0].name == "*":
                    found |= defined(path.parent / f"{node.module}.py")
        return found
    folder = pathlib.Path(nn.__file__).parent
    checks.equal(set(nn.__all__) - defined(folder / "__init__.py"), set())
    for name in ("optim", "data", "state"):
        module = getattr(nn, name)
        checks.equal(set(module.__all__) - defined(folder / f"{name}.py"), set())
    checks.true(len(nn.__all__) > 90, len(nn.__all__))


def test_init():
    """Values at the start are distributed as PyTorch's."""
    torch.manual_seed(1)
    Tensor.manual_seed(1)
    for name, settings in (("uniform_", (-1, 3)), ("normal_", (1, 2)), ("trunc_normal_", (0.5, 1, -1, 1)), ("constant_", (3,)), ("zeros_", ()), ("ones_", ()),
                           ("xavier_uniform_", (2,)), ("xavier_normal_", ()), ("kaiming_uniform_", (0.3,)),
                           ("kaiming_normal_", (0, "fan_out", "relu"))):
        mine, theirs = nn.Conv2d(16, 24, 5).weight, torch.nn.Conv2d(16, 24, 5).weight
        checks.true(getattr(nn.init, name)(mine, *settings) is mine)
        getattr(torch.nn.init, name)(theirs, *settings)
        a, b = mine.numpy(), theirs.detach().numpy()
        few = 5 * max(b.std(), 1e-6) / np.sqrt(b.size)
        checks.true(abs(a.mean() - b.mean()) < 2 * few and abs(a.std() - b.std()) < 2 * few, f"{name}: {a.mean()}, {a.std()}, not {b.mean()}, {b.std()}")
        if "uniform" in name or "trunc" in name:
            checks.true(a.max() <= b.max() * 1.01 + few and a.min() >= b.min() * 1.01 - few, name)
    checks.equal(nn.init.eye_(nn.Linear(2, 2).weight).tolist(), [[1, 0], [0, 1]])
    for shape in ((3, 5), (6, 2, 2)):
        w = nn.init.orthogonal_(Tensor.ones(*shape), 2.0).reshape(shape[0], -1)
        close((w @ w.mT if shape[0] < w.shape[1] else w.mT @ w).numpy(), 4 * np.eye(min(w.shape)), "orthogonal_", 1e-5)
    theirs = torch.nn.init.dirac_(torch.ones(6, 2, 3, 4), 2)
    close(nn.init.dirac_(Tensor.ones(6, 2, 3, 4), 2).numpy(), theirs.numpy(), "dirac_")
    for bad in (lambda: nn.init.xavier_uniform_(Tensor.ones(2)), lambda: nn.init.calculate_gain("sine"),
                lambda: nn.init.kaiming_normal_(Tensor.ones(2, 2), mode="both")):
        checks.raises(ValueError, bad)


def test_containers():
    three = nn.ModuleList([nn.Linear(i, 1) for i in range(1, 4)])
    three.append(nn.Linear(4, 1)).insert(0, nn.Linear(9, 1))
    checks.equal([one.in_features for one in three], [9, 1, 2, 3, 4])
    checks.equal(([one.in_features for one in three[1:-1]], three[-1].in_features, len(three), three[2] in three), ([1, 2, 3], 4, 5, True))
    three[0] = nn.Linear(7, 1)
    del three[1]
    three.extend([nn.ReLU()])
    checks.equal(list(three.state_dict())[:2], ["0.weight", "0.bias"])
    checks.equal([name for name, _ in three.named_children()], ["0", "1", "2", "3", "4"])
    both = nn.ModuleDict({"a": nn.Linear(1, 1)})
    both["b"] = nn.Sequential({"first": nn.Linear(1, 2), "second": nn.ReLU()})
    checks.equal((list(both), list(both.state_dict()), "b" in both), (["a", "b"], ["a.weight", "a.bias", "b.first.weight", "b.first.bias"], True))
    checks.equal((both["b"].first.out_features, both["b"][:1].first.out_features), (2, 2))
    checks.equal(both.get_submodule("b.first").out_features, 2)
    some = nn.ParameterList([Tensor.ones(2), Tensor.zeros(3)])
    checks.equal(([name for name, _ in some.named_parameters()], some[0].requires_grad), (["0", "1"], True))
    checks.equal(list(nn.ParameterDict({"x": Tensor.ones(2)}).state_dict()), ["x"])
    for bad in (lambda: nn.ModuleList([3]), lambda: nn.Sequential(3), lambda: nn.ModuleDict({"a.b": nn.ReLU()}), lambda: three[9],
                lambda: nn.ParameterList([nn.ReLU()]), lambda: both.get_submodule("b.third")):
        checks.raises((TypeError, ValueError, IndexError, AttributeError), bad)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head, self.norm, self.drop = nn.Embedding(5, 3), nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Dropout(0.5)
        self.head.weight = self.table.weight
        self.scale = nn.Parameter(Tensor.ones(1))
        self.plain = Tensor.ones(2)
        self.register_buffer("offset", Tensor.zeros(5))
        self.register_buffer("hidden", Tensor.zeros(5), persistent=False)
        self.register_parameter("missing", None)

    def forward(self, x):
        return self.drop(self.norm(self.head(self.table(x)) * self.scale + self.offset))


STATE = ["table.weight", "head.bias", "head.weight", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var",
         "norm.num_batches_tracked", "scale", "offset"]


def test_modules():
    net = Net()
    checks.equal(sorted(net.state_dict()), sorted(STATE))
    checks.equal(sorted(name for name, _ in net.named_parameters()), sorted(set(STATE[:5] + ["scale"]) - {"head.weight"}))
    checks.true("hidden" in dict(net.named_buffers()) and "plain" not in dict(net.named_buffers()))
    checks.equal((isinstance(net.scale, nn.Parameter), isinstance(net.plain, nn.Parameter)), (True, False))
    seen = []
    net.apply(lambda one: seen.append(type(one).__name__))
    checks.equal(seen, ["Embedding", "Linear", "BatchNorm1d", "Dropout", "Net"])
    checks.equal((net.training, net.norm.training, net.eval().norm.training, net.train().drop.training), (True, True, False, True))
    net.norm.eval()
    before = net.norm.running_mean.tolist()
    net(Tensor([1, 2])).realize()
    checks.equal(net.norm.running_mean.tolist(), before)
    net.requires_grad_(False)
    checks.true(not any(one.requires_grad for one in net.parameters()))
    net.requires_grad_(True)
    loaded = net.load_state_dict({"scale": [3.0], "other": [1.0]}, strict=False)
    checks.equal((loaded.unexpected_keys, "head.bias" in loaded.missing_keys, net.scale.tolist()), (["other"], True, [3]))
    checks.raises(RuntimeError, net.load_state_dict, {"scale": [3.0]})
    checks.raises(ValueError, net.load_state_dict, {"scale": [3.0, 4.0]}, strict=False)
    net.half()
    checks.equal((net.head.weight.dtype, net.head.weight is net.table.weight, net.norm.num_batches_tracked.dtype, net.scale.requires_grad),
                 (dtypes.float16, True, dtypes.int64, True))
    net.to(net.scale.device, dtypes.float32)
    checks.equal(net.offset.dtype, dtypes.float32)
    for state, text in ((None, "NoneType"), ([1], "list"), ({"scale": None}, "scale is no tensor"), ({"scale": "a"}, "scale: "), ({3: [1.0]}, "unexpected 3"),
                        ({"scale": [1.0, 2.0]}, "scale: (2,) into (1,)")):
        checks.true(text in str(checks.raises((TypeError, ValueError), net.load_state_dict, state)), text)

    class Ring(nn.Module):
        def __init__(self):
            self.layer, self.me = nn.Linear(2, 2), self
    ring, seen = Ring(), []
    ring.apply(lambda one: seen.append(type(one).__name__))
    checks.equal((seen, [name for name, _ in ring.named_modules()], len(list(ring.parameters()))), (["Linear", "Ring"], ["", "layer"], 2))
    checks.true("(me): …" in repr(ring.eval()) and not ring.layer.training, repr(ring))
    net.head.bias = None
    checks.equal((net.head.bias, net.head(Tensor.ones(1, 3)).shape), (None, (1, 5)))
    net.head.bias = nn.Parameter(Tensor.zeros(5))
    checks.true("head.bias" in net.state_dict())
    checks.raises(TypeError, setattr, net.head, "weight", 3)
    checks.raises(TypeError, setattr, net, "scale", Tensor.ones(1))
    net.offset = Tensor.ones(5)
    checks.true("offset" in net.state_dict())
    checks.raises(NotImplementedError, nn.Module(), 1)


def test_sharing():
    """A shared weight is one: in the state under both names, in an optimiser once."""
    net = Net()
    checks.true(net.head.weight is net.table.weight)
    rows = list(net.parameters())
    checks.equal(len(rows), len({id(one) for one in rows}))
    optimizer = optim.SGD(rows, lr=0.5)
    before = net.table.weight.numpy()
    net.head(net.table(Tensor([1, 2]))).square().sum().backward()
    gradient = net.table.weight.grad.numpy()
    optimizer.step()
    close(net.head.weight.numpy(), before - 0.5 * gradient, "one step", 1e-6)
    class Plain:
        def __init__(self):
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
            self.b.weight = self.a.weight
    plain = Plain()
    checks.equal(sorted(get_state_dict(plain)), ["a.bias", "a.weight", "b.bias", "b.weight"])
    checks.equal(len(get_parameters(plain)), 3)


def test_copies():
    """Deep copies and pickles of modules and tensors share nothing, and what is shared in them stays so."""
    net = Net()
    net.offset.assign(Tensor([1.0] * 5)).realize()
    net.norm.weight.requires_grad = False
    net.eval()
    x = Tensor([1, 3])
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        close(other(x).numpy(), net(x).numpy(), "a copy", 0)
        checks.equal(list(other.state_dict()), list(net.state_dict()))
        checks.equal((other.head.weight is other.table.weight, other.head.weight is net.head.weight, other.training), (True, False, False))
        checks.equal((other.norm.weight.is_frozen, other.norm.bias.requires_grad, isinstance(other.scale, nn.Parameter)), (True, True, True))
        other.head.bias.assign(other.head.bias + 1).realize()
        checks.true(np.abs((other(x) - net(x)).numpy()).max() > 0.1)
    for layer in (nn.MultiheadAttention(4, 2), nn.LSTM(2, 3), nn.Conv1d(2, 3, 2, bias=False), nn.Softmax(-1), nn.Sequential(nn.ReLU()),
                  nn.TransformerEncoderLayer(4, 2, 8), nn.ModuleDict({"a": nn.Linear(1, 1)}), nn.MultiheadAttention(4, 2).out_proj):
        for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            checks.equal((repr(other), list(other.state_dict())), (repr(layer), list(layer.state_dict())))
            for name, one in layer.state_dict().items():
                checks.equal(other.state_dict()[name].tolist(), one.tolist())
    t = Tensor([1.0, 2.0], requires_grad=True)
    two = copy.deepcopy([t, t])
    checks.equal((two[0] is two[1], two[0].requires_grad, two[0].tolist()), (True, True, [1, 2]))
    again = pickle.loads(pickle.dumps({"a": t, "b": t}))
    checks.true(again["a"] is again["b"] and again["a"].requires_grad)


def optimizers():
    """PyTorch's and ours, and settings of both."""
    kinds = [(torch.optim.AdamW, optim.AdamW, {"lr": 0.05, "betas": (0.8, 0.99), "eps": 1e-6}),
             (torch.optim.SGD, optim.SGD, {"lr": 0.05, "momentum": 0.9, "dampening": 0.3}),
             (torch.optim.SGD, optim.SGD, {"lr": 0.05})]
    kinds += [(getattr(torch.optim, name), getattr(optim, name), {"lr": 0.05, **settings}) for name, settings in (
        ("RMSprop", {"alpha": 0.8}), ("RMSprop", {"momentum": 0.7, "centered": True, "eps": 1e-3}), ("Adadelta", {"rho": 0.7}), ("RAdam", {}),
        ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.3}), ("Adamax", {"betas": (0.7, 0.9)}), ("RAdam", {"betas": (0.8, 0.6)}))]
    # Of one tensor at a time PyTorch 1.13 multiplies the momentum in twice.
    kinds.append((lambda *given, **more: torch.optim.NAdam(*given, foreach=True, **more), optim.NAdam, {"lr": 0.05, "momentum_decay": 0.1}))
    return kinds


def test_steps_of_doubles():
    """Rates, momenta and what a rule counts are as exact as the parameters."""
    rng = np.random.default_rng(4)
    start, gradients = rng.normal(size=5), rng.normal(size=(6, 5))
    for theirs, ours, settings in optimizers():
        a, b = torch.nn.Parameter(torch.tensor(start)), Tensor(start, dtype="float64", requires_grad=True)
        first, second = theirs([a], **settings), ours([b], **settings)
        for i, gradient in enumerate(gradients):
            a.grad = torch.tensor(gradient)
            second.zero_grad()
            (b * Tensor(gradient, dtype="float64")).sum().backward()
            first.param_groups[0]["lr"] = second.param_groups[0]["lr"] = 0.1 / (i + 1)
            first.step()
            second.step()
        bound = 1e-7 if ours in (optim.NAdam, optim.RAdam) else 1e-13  # PyTorch's product of NAdam and our series of RAdam are of f32
        close(b.numpy(), a.detach().numpy(), f"{ours.__name__} {settings}", bound)


def test_optimizer_state():
    """State in PyTorch's form goes from PyTorch's optimiser to ours and back into another of ours."""
    rng = np.random.default_rng(3)
    starts = [rng.normal(size=shape).astype(np.float32) for shape in ((3, 2), (2,), (4,))]
    steps = [[rng.normal(size=one.shape).astype(np.float32) for one in starts] for _ in range(5)]
    for theirs, ours, settings in optimizers():
        def groups(parameters, settings=settings):
            return [{"params": parameters[:2], "lr": 0.01}, {"params": parameters[2:], "weight_decay": 0.1}]

        def go_on(optimizer, parameters, gradients):
            for p, g in zip(parameters, gradients):
                if isinstance(p, Tensor):
                    optimizer.zero_grad() if p is parameters[0] else None
                    (p * Tensor(g)).sum().backward()
                else:
                    p.grad = torch.tensor(g)
            optimizer.step()
        other = [torch.nn.Parameter(torch.tensor(one.copy())) for one in starts]
        first = theirs(groups(other), **settings)
        for gradients in steps[:2]:
            go_on(first, other, gradients)
        mine = [Tensor(one.detach().numpy().copy(), requires_grad=True) for one in other]
        second = ours(groups(mine), **settings)
        state = first.state_dict()
        second.load_state_dict({"param_groups": state["param_groups"], "state": {
            i: {name: np.asarray(value) for name, value in rows.items() if value is not None} for i, rows in state["state"].items()}})
        saved = pickle.loads(pickle.dumps(second.state_dict()))
        checks.equal({name for rows in saved["state"].values() for name in rows} - {"damping"},
                     {name for rows in state["state"].values() for name, value in rows.items() if value is not None})
        for gradients in steps[2:4]:
            go_on(first, other, gradients)
            go_on(second, mine, gradients)
        for a, b in zip(mine, other):
            close(a.numpy(), b.detach().numpy(), f"{ours.__name__} {settings}", 1e-5)
        third_parameters = [Tensor(one.numpy(), requires_grad=True) for one in mine]
        third = ours(groups(third_parameters), **settings)
        third.load_state_dict(pickle.loads(pickle.dumps(second.state_dict())))
        checks.equal([dict(group, params=0) for group in third.param_groups], [dict(group, params=0) for group in second.param_groups])
        go_on(second, mine, steps[4])
        go_on(third, third_parameters, steps[4])
        for a, b in zip(mine, third_parameters):
            checks.equal(a.tolist(), b.tolist())
        flat = ours(groups(third_parameters), **settings)
        load_state_dict(flat, get_state_dict(third))
        checks.raises(ValueError, third.load_state_dict, {"param_groups": [{"params": [0]}], "state": {}})
    w = Tensor([1.0], requires_grad=True)
    adam = optim.Adam([w], lr=0.1)
    adam.param_groups[0]["lr"] = 0.5
    adam.param_groups[0]["betas"] = (0.5, 0.6)
    adam.param_groups[0]["initial_lr"] = 3
    checks.equal((adam.lr, adam.param_groups[0]["betas"], adam.param_groups[0]["initial_lr"]), (0.5, (0.5, 0.6), 3))
    checks.raises(ValueError, adam.param_groups[0].__setitem__, "betas", (0.5, 1.0))
    checks.raises(ValueError, adam.add_param_group, {"params": [w]})
    checks.raises(ValueError, optim.SGD, [])
    a, b = Tensor([1.0], requires_grad=True), Tensor([[2.0]], requires_grad=True)
    pair = optim.OptimizerGroup(optim.SGD([a], lr=0.5), optim.SGD([b], lr=0.25))
    pair.zero_grad()
    (a * b).sum().backward()
    pair.step()
    checks.equal((a.item(), b.item(), len(pair), len(pair.params)), (0, 1.75, 2, 2))


class Cube(Function):
    @staticmethod
    def forward(ctx, x, factor):
        square = x * x
        ctx.save_for_backward(x, square, None)
        ctx.factor = factor
        return square * x * factor

    @staticmethod
    def backward(ctx, gradient):
        x, square, nothing = ctx.saved_tensors
        checks.equal(nothing, None)
        return gradient * square * 3 * ctx.factor, None


def test_functions():
    """Gradients that a program writes itself."""
    w = Tensor([1.0, 2.0], requires_grad=True)
    Cube.apply(w, 2).sum().backward()
    checks.equal(w.grad.tolist(), [6, 24])
    first, = Cube.apply(w, 1).sum().gradient(w)
    checks.equal(first.sum().gradient(w)[0].tolist(), [6, 12])

    class Wrong(Function):
        def forward(ctx, x):
            return x * 2

        def backward(ctx, gradient):
            raise KeyError("mine")
    Wrong.forward, Wrong.backward = staticmethod(Wrong.forward), staticmethod(Wrong.backward)
    error = checks.raises(KeyError, Wrong.apply(w).sum().backward)
    checks.equal((error.args, error.__cause__, error.__context__), (("mine",), None, None))
    Wrong.backward = staticmethod(lambda ctx, gradient: (gradient, gradient))
    checks.true("2 gradients for 1" in str(checks.raises(ValueError, Wrong.apply(w).sum().backward)))
    w.grad = None
    tinycore.autograd.custom_gradient(lambda x: x.exp(), lambda gradients, inputs, outputs: [gradients[0] * 7])(w).sum().backward()
    checks.equal(w.grad.tolist(), [7, 7])


def test_variables():
    """A value that is bound per call: one recording for all."""
    n, at = Variable("n", 1, 6), Variable("at", 0, 3)
    x = Tensor([float(i) for i in range(6)]).realize()
    checks.equal((n.name, n.min, n.max, x.shorten(0, n.bind(2)).tolist()), ("n", 1, 6, [0, 1]))

    @TinyJit
    def total(x, size, start):
        return x.shorten(0, size).sum(), x.narrow(0, start, 2) * 10

    for size, start in ((3, 0), (6, 1), (2, 2), (5, 3), (1, 0)):
        found = total(x, n.bind(size), at.bind(start))
        checks.equal((found[0].item(), found[1].tolist()), (size * (size - 1) / 2, [10 * start, 10 * start + 10]))
    checks.equal(total.captured, True)
    checks.raises(ValueError, n.bind, 7)
    found = total(x, at.bind(1), at.bind(1))  # another variable: another recording
    checks.equal((found[0].item(), found[1].tolist()), (0, [10, 20]))


checks.run(globals())
