#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What layers, optimisers and schedules can be told beside their first settings, as PyTorch has it, and how modules describe themselves.

TAP. Run in the build's environment, by an interpreter that has gi, numpy and torch."""
import copy

import checks
import numpy as np
import tinycore
import tinycore.nn.functional as F
import torch
from tinycore import Tensor, nn, optim

MODULES = """Linear(2, 3, bias=False)|Conv2d(1, 4, 3)|Conv2d(1, 4, 3, padding=1, bias=False, stride=2, dilation=2)|Conv3d(1, 2, 3, padding=(1, 0, 2))
Conv2d(4, 4, 3, groups=2, padding='same', padding_mode='reflect')|ConvTranspose2d(1, 2, 3, stride=2, output_padding=1)|ConvTranspose1d(1, 2, 3)
BatchNorm2d(3)|BatchNorm1d(3, affine=False)|GroupNorm(2, 4)|InstanceNorm2d(3)|InstanceNorm1d(3, affine=True, track_running_stats=True)
LayerNorm(4)|LayerNorm((2, 3))|Embedding(3, 4)|Embedding(3, 4, padding_idx=0)|EmbeddingBag(3, 4)|EmbeddingBag(3, 4, mode='sum', padding_idx=1)|Dropout(0.3)|Dropout2d()|AlphaDropout()|PReLU()
ReLU()|ReLU(inplace=True)|GELU()|GELU('tanh')|LeakyReLU(0.1)|LeakyReLU()|Softmax(dim=1)|ELU()|CELU()|GLU()|Hardtanh()|Sigmoid()|Tanh()|Threshold(0.1, 20)
MaxPool2d(2)|MaxPool2d(3, 2, 1)|AvgPool2d(2)|AdaptiveAvgPool2d((1, 1))|AdaptiveAvgPool2d(1)|Flatten()|Flatten(0)|Unflatten(1, (2, 3))|PixelShuffle(2)|Unfold(2)
LSTM(2, 3)|LSTM(2, 3, proj_size=1)|LSTM(2, 3, 2, batch_first=True, bidirectional=True, dropout=0.5)|GRU(2, 3, bias=False)|RNN(2, 3)|LSTMCell(2, 3)|GRUCell(2, 3)
CrossEntropyLoss()|MSELoss()|BCEWithLogitsLoss()|Identity()|Sequential(Linear(2, 2), ReLU(), Dropout(0.5))|ModuleList([Linear(2, 2)])|Bilinear(1, 2, 3)
ZeroPad2d(1)|ConstantPad1d(2, 3.5)|ReflectionPad2d(2)|ReplicationPad1d(1)|LogSoftmax(dim=1)|TransformerEncoderLayer(4, 2, 8)|MultiheadAttention(4, 2)"""


def close(mine, theirs, what, tolerance=1e-5):
    mine, theirs = mine.detach().numpy(), theirs.detach().numpy()
    checks.equal(mine.shape, theirs.shape, what)
    worst = np.abs(mine - theirs).max() if mine.size else 0
    checks.true(worst <= tolerance * max(1, np.abs(theirs).max() if mine.size else 0), f"{what}: off by {worst}:\n{mine}\nPyTorch's:\n{theirs}")


def test_descriptions():
    """repr() is PyTorch's, letter for letter."""
    found = [(text, repr(eval(text, dict(vars(nn)))), repr(eval(text, dict(vars(torch.nn))))) for text in MODULES.replace("\n", "|").split("|")]
    checks.equal([(text, mine) for text, mine, theirs in found if mine != theirs.replace("NonDynamicallyQuantizableLinear", "Linear")], [])


def test_padding_by_name():
    """F.conv…(padding="same"), also where one side gets more, and "valid"."""
    random = np.random.default_rng(3)
    cases = ((1, (2, 4, 9), (6, 4, 3), {}), (1, (2, 4, 9), (6, 2, 4), {"groups": 2}), (2, (1, 2, 7, 8), (3, 2, 3, 4), {"dilation": (2, 1)}),
             (2, (1, 2, 7, 8), (3, 2, 2, 2), {}), (3, (1, 1, 5, 5, 6), (2, 1, 3, 2, 1), {"dilation": 2}))
    for n, shape, kernel, more in cases:
        x, w, b = (random.standard_normal(one).astype("float32") for one in (shape, kernel, kernel[:1]))
        for padding in ("same", "valid", 1):
            mine, theirs = ([make(one) for one in (x, w, b)] for make in (lambda a: Tensor(a, requires_grad=True), lambda a: torch.tensor(a, requires_grad=True)))
            a, z = getattr(F, f"conv{n}d")(*mine, padding=padding, **more), getattr(torch.nn.functional, f"conv{n}d")(*theirs, padding=padding, **more)
            close(a, z, f"conv{n}d {padding}")
            a.square().sum().backward()
            z.square().sum().backward()
            for one, other in zip(mine, theirs):
                close(one.grad, other.grad, f"gradient of conv{n}d {padding}", 1e-4)
    for wrong in ({"padding": "same", "stride": 2}, {"padding": "full"}):
        checks.raises(ValueError, F.conv1d, Tensor.ones(1, 1, 4), Tensor.ones(1, 1, 2), **wrong)


def learn(module, tensor_of, make, n=6):
    """What is learnt, and the state."""
    p = tensor_of([1.0, -2.0, 3.0, 0.5])
    optimizer = make(module, [p])
    for i in range(n):
        optimizer.zero_grad()
        ((p * p).sum() * (0.1 if i % 3 else 1.0) + p[0] * p[1]).backward()
        optimizer.step()
    return p, optimizer


def test_maximize_and_amsgrad():
    mine, theirs = lambda data: Tensor(data, requires_grad=True), lambda data: torch.tensor(data, requires_grad=True)
    kinds = (lambda m, p: m.SGD(p, lr=0.01, maximize=True), lambda m, p: m.SGD(p, lr=0.01, momentum=0.9, weight_decay=0.1, maximize=True),
             lambda m, p: m.Adam(p, lr=0.1, amsgrad=True), lambda m, p: m.Adam(p, lr=0.1, maximize=True, weight_decay=0.1),
             lambda m, p: m.AdamW(p, lr=0.1, amsgrad=True, maximize=True))
    for i, make in enumerate(kinds):
        (a, one), (z, other) = learn(optim, mine, make), learn(torch.optim, theirs, make)
        close(a, z, f"values {i}")
        group, wanted = one.param_groups[0], other.param_groups[0]
        checks.equal({name: group[name] for name in ("maximize", "amsgrad") if name in group}, {name: wanted[name] for name in ("maximize", "amsgrad") if name in group})
        if wanted.get("amsgrad"):
            close(one.state_dict()["state"][0]["max_exp_avg_sq"], other.state_dict()["state"][0]["max_exp_avg_sq"], f"state {i}")
            again = copy.deepcopy(one)
            checks.equal((again.param_groups[0]["amsgrad"], again.state_dict()["state"][0]["max_exp_avg_sq"].tolist()),
                         (True, one.state_dict()["state"][0]["max_exp_avg_sq"].tolist()))
    checks.raises(ValueError, lambda: optim.SGD([Tensor.ones(1)], maximize=2))


def test_schedules_go_on():
    """A schedule whose state is loaded has the rates of one that went on, and of PyTorch's that did the same."""
    def sequence(m, o):
        s = m.lr_scheduler
        return s.SequentialLR(o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)], [3])

    kinds = {
        "StepLR": lambda m, o: m.lr_scheduler.StepLR(o, 2, 0.5), "MultiStepLR": lambda m, o: m.lr_scheduler.MultiStepLR(o, [2, 5]),
        "CosineAnnealingLR": lambda m, o: m.lr_scheduler.CosineAnnealingLR(o, 5), "LinearLR": lambda m, o: m.lr_scheduler.LinearLR(o, 0.2, 1.0, 6),
        "CosineAnnealingWarmRestarts": lambda m, o: m.lr_scheduler.CosineAnnealingWarmRestarts(o, 2, 2), "LambdaLR": lambda m, o: m.lr_scheduler.LambdaLR(o, lambda i: 0.8 ** i),
        "MultiplicativeLR": lambda m, o: m.lr_scheduler.MultiplicativeLR(o, lambda i: 0.9), "CyclicLR": lambda m, o: m.lr_scheduler.CyclicLR(o, 0.1, 0.3, 2),
        "OneCycleLR": lambda m, o: m.lr_scheduler.OneCycleLR(o, 0.3, 12), "SequentialLR": sequence,
        "ReduceLROnPlateau": lambda m, o: m.lr_scheduler.ReduceLROnPlateau(o, patience=1, cooldown=1),
    }
    for name, make in kinds.items():
        def run(module, p, n, states=None):
            optimizer = module.SGD([p], lr=0.5, momentum=0.9)
            scheduler = make(module, optimizer)
            if states is not None:
                optimizer.load_state_dict(states[0])
                scheduler.load_state_dict(states[1])
            rates = []
            for i in range(n):
                optimizer.step()
                scheduler.step(*([1.0] if "Plateau" in name else []))
                rates.append(optimizer.param_groups[0]["lr"])
            return rates, (optimizer.state_dict(), scheduler.state_dict())
        whole = run(optim, Tensor.ones(2, requires_grad=True), 9)[0]
        first, states = run(optim, Tensor.ones(2, requires_grad=True), 4)
        rest = run(optim, Tensor.ones(2, requires_grad=True), 5, states)[0]
        theirs = run(torch.optim, torch.ones(2, requires_grad=True), 9)[0]
        checks.true(np.allclose([whole, first + rest], [theirs, theirs], atol=1e-6), f"{name}: {whole}, {first + rest}, PyTorch's {theirs}")


def test_ctc():
    """The loss and its gradient by what log_softmax is of: padded targets and one after the other, repeated ones, another blank, none, too many, one sequence."""
    random = np.random.default_rng(3)
    x = random.standard_normal((6, 3, 5)).astype("float32")
    targets = np.array([[1, 2, 3], [2, 2, 4], [4, 1, 1]])
    cases = [((x, targets, [6, 5, 4], [3, 2, 1]), {"reduction": kind}) for kind in ("mean", "sum", "none")]
    cases += [((x, np.array([1, 2, 2, 4]), [6, 6, 6], [1, 2, 1]), {"reduction": "none"}), ((x, targets, [6, 5, 4], [0, 2, 3]), {}), ((x, targets % 3, [6, 6, 6], [2, 2, 2]), {"blank": 4}),
              ((x, targets, [3, 3, 3], [3, 3, 3]), {"zero_infinity": True, "reduction": "none"}), ((x, targets, [2, 2, 2], [3, 3, 3]), {"reduction": "none"}),
              ((x[:, 0], targets[0], 6, 3), {"reduction": "none"}), ((x[:, :1], targets[:1], [6], [3]), {})]
    for (given, words, *lengths), more in cases:
        a, b = Tensor(given, requires_grad=True), torch.tensor(given, dtype=torch.float64, requires_grad=True)
        mine = nn.CTCLoss(**more)(a.log_softmax(-1), Tensor(words), *lengths)
        theirs = torch.nn.CTCLoss(**more)(b.log_softmax(-1), torch.tensor(words), *map(torch.tensor, lengths))
        checks.true(mine.shape == tuple(theirs.shape) and np.allclose(mine.numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-6), (more, lengths, mine, theirs))
        mine.sum().backward()
        theirs.sum().backward()
        if theirs.isfinite().all():
            checks.true(np.abs(a.grad.numpy() - b.grad.numpy()).max() < 1e-5, (more, lengths))
    for wrong, part in (({"target_lengths": [4, 1, 1]}, "hold less"), ({"input_lengths": [7, 1, 1]}, "input_lengths"), ({"targets": Tensor(targets + 2)}, "targets"),
                        ({"blank": 5}, "blank"), ({"reduction": "all"}, "reduction"), ({"log_probs": Tensor(x[0, 0])}, "log_probs")):
        good = {"log_probs": Tensor(x), "targets": Tensor(targets), "input_lengths": [6, 5, 4], "target_lengths": [3, 2, 1]}
        error = checks.raises((TypeError, ValueError), F.ctc_loss, **{**good, **wrong})
        checks.true(part in str(error), str(error))


def test_weight_norm():
    """Lengths and directions learn as PyTorch's do, are saved under its names, are copied, and become one tensor again."""
    random = np.random.default_rng(4)
    layers = [(lambda m: m.Linear(3, 2), (4, 3), {}), (lambda m: m.Conv2d(2, 3, 3), (2, 2, 5, 5), {}), (lambda m: m.Linear(3, 2), (4, 3), {"dim": None}),
              (lambda m: m.ConvTranspose2d(2, 3, 3), (2, 2, 4, 4), {"dim": 1}), (lambda m: m.LSTM(3, 2), (4, 2, 3), {"name": "weight_hh_l0"})]
    for make, shape, more in layers:
        x, mine, theirs = random.standard_normal(shape).astype("float32"), make(nn), make(torch.nn)
        nn.utils.weight_norm(mine, **more)
        torch.nn.utils.weight_norm(theirs, **more)
        checks.equal(sorted(name for name, _ in mine.named_parameters()), sorted(name for name, _ in theirs.named_parameters()))
        mine.load_state_dict({name: Tensor(one.numpy()) for name, one in theirs.state_dict().items()})
        steps = [optim.SGD(mine.parameters(), lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)]
        for _ in range(3):
            for model, step, given in ((mine, steps[0], Tensor(x)), (theirs, steps[1], torch.tensor(x))):
                step.zero_grad()
                result = model(given)
                (result[0] if isinstance(result, tuple) else result).square().sum().sqrt().backward()
                step.step()
        for name, one in theirs.state_dict().items():
            checks.true(np.allclose(mine.state_dict()[name].numpy(), one.numpy(), atol=2e-6), (shape, name))
        before = mine(Tensor(x))
        name = more.get("name", "weight")
        for model in (copy.deepcopy(mine), nn.utils.remove_weight_norm(mine, name)):
            after = model(Tensor(x))
            checks.true(np.allclose(*[(one[0] if isinstance(one, tuple) else one).numpy() for one in (before, after)], atol=1e-6))
        checks.true(name in dict(mine.named_parameters()) and name + "_g" not in dict(mine.named_parameters()))
        checks.raises(ValueError, nn.utils.remove_weight_norm, mine, name)
    layer = nn.utils.weight_norm(nn.Linear(3, 2))
    checks.raises(ValueError, layer, Tensor(np.zeros((1, 4), "float32")))
    checks.equal(sorted(name for name, _ in layer.named_parameters()), ["bias", "weight_g", "weight_v"])
    said = []
    layer.register_forward_hook(lambda *_: said.append("after"))
    layer.register_forward_hook(lambda module, inputs, result: said.append(result), always_call=True)
    checks.raises(ValueError, layer, Tensor(np.zeros((1, 4), "float32")))
    checks.equal(said, [None])
    checks.raises(ValueError, nn.utils.weight_norm, nn.Linear(2, 2), "heaviness")
    checks.raises(ValueError, nn.utils.weight_norm, nn.Linear(2, 2), dim=2)
    checks.raises(RuntimeError, nn.utils.weight_norm, nn.utils.weight_norm(nn.Linear(2, 2)))


def test_embedding_bag():
    random = np.random.default_rng(5)
    table = random.standard_normal((7, 3)).astype("float32")
    rows, flat, starts = random.integers(0, 7, (4, 5)), random.integers(0, 7, 9), np.array([0, 2, 2, 6])  # the second bag is empty
    shares = random.standard_normal(9).astype("float32")
    cases = [(kind, given, more) for kind in ("sum", "mean", "max") for given in ((rows,), (flat, starts)) for more in ({}, {"padding_idx": 2})]
    cases += [("sum", (flat, starts), {"per_sample_weights": shares}), ("mean", (flat, np.append(starts, 9)), {"include_last_offset": True})]
    for kind, (given, *offsets), more in cases:
        w, v = Tensor(table, requires_grad=True), torch.tensor(table, requires_grad=True)
        made = [{name: make(one) if isinstance(one, np.ndarray) else one for name, one in more.items()} for make in (Tensor, torch.tensor)]
        a = F.embedding_bag(Tensor(given), w, *map(Tensor, offsets), mode=kind, **made[0])
        z = torch.nn.functional.embedding_bag(torch.tensor(given), v, *map(torch.tensor, offsets), mode=kind, **made[1])
        what = f"{kind} {len(offsets)} {list(more)}"
        close(a, z, what)
        a.square().sum().backward()
        z.square().sum().backward()
        close(w.grad, v.grad, f"gradient of {what}")
    layer = nn.EmbeddingBag(7, 3, mode="sum")
    checks.equal((layer(Tensor([[1, 1]])) - layer.weight[1] * 2).abs().max().item(), 0)
    for wrong in (lambda: F.embedding_bag(Tensor(flat), Tensor(table)), lambda: F.embedding_bag(Tensor(rows), Tensor(table), mode="min"),
                  lambda: nn.EmbeddingBag(2, 2, max_norm=1.0)(Tensor([[0]]))):
        checks.raises(ValueError, wrong)


def test_further_keys():
    """MultiheadAttention with add_bias_kv and add_zero_attn, with masks of all kinds, and its gradients."""
    random = np.random.default_rng(8)
    q, k, v = (random.standard_normal(shape).astype("float32") for shape in ((3, 2, 8), (5, 2, 8), (5, 2, 8)))
    causal, hidden = np.triu(np.ones((3, 5), bool), 2), np.array([[0, 0, 1, 0, 1], [0, 1, 0, 0, 0]], bool)
    masks = ({}, {"attn_mask": causal}, {"key_padding_mask": hidden}, {"attn_mask": random.standard_normal((4, 3, 5)).astype("float32"), "average_attn_weights": False},
             {"attn_mask": causal, "key_padding_mask": hidden, "need_weights": False})
    kinds = ({"add_bias_kv": True}, {"add_zero_attn": True, "bias": False}, {"add_bias_kv": True, "add_zero_attn": True, "kdim": 8, "batch_first": True})
    for more in kinds:
        theirs, mine = torch.nn.MultiheadAttention(8, 2, **more), nn.MultiheadAttention(8, 2, **more)
        checks.equal(sorted(mine.state_dict()), sorted(theirs.state_dict()))
        mine.load_state_dict({name: one.numpy() for name, one in theirs.state_dict().items()})
        inputs = [one.swapaxes(0, 1).copy() for one in (q, k, v)] if "batch_first" in more else (q, k, v)
        for given in masks:
            arguments = [{name: make(one) if isinstance(one, np.ndarray) else one for name, one in given.items()} for make in (Tensor, torch.tensor)]
            a, z = mine(*map(Tensor, inputs), **arguments[0]), theirs(*map(torch.tensor, inputs), **arguments[1])
            what = f"{list(more)} {list(given)}"
            close(a[0], z[0], what)
            checks.equal((a[1] is None, z[1] is None), (z[1] is None,) * 2)
            if z[1] is not None:
                close(a[1], z[1], f"weights of {what}")
            for net, loss in ((mine, a[0]), (theirs, z[0])):
                net.zero_grad()
                loss.square().sum().backward()
            for (name, one), other in zip(sorted(mine.named_parameters()), (p for _, p in sorted(theirs.named_parameters()))):
                close(one.grad, other.grad, f"gradient of {name}, {what}", 1e-4)
    alone = nn.MultiheadAttention(8, 2, add_zero_attn=True)(Tensor(q[:, 0]), Tensor(k[:, 0]), Tensor(v[:, 0]))
    checks.equal((alone[0].shape, alone[1].shape), ((3, 8), (3, 6)))


def test_instance_norm_statistics():
    random = np.random.default_rng(6)
    for kind, shape, more in (("InstanceNorm2d", (3, 4, 5, 6), {"affine": True}), ("InstanceNorm1d", (2, 4, 7), {"eps": 1e-3}), ("InstanceNorm3d", (2, 4, 3, 2, 2), {"momentum": 0.3})):
        mine, theirs = getattr(nn, kind)(4, track_running_stats=True, **more), getattr(torch.nn, kind)(4, track_running_stats=True, **more)
        for i in range(3):
            x = (random.standard_normal(shape) * (i + 1) + i).astype("float32")
            close(mine(Tensor(x)), theirs(torch.tensor(x)), f"{kind} trains", 1e-4)
        checks.equal(list(mine.state_dict()), list(theirs.state_dict()))
        for name, one in theirs.state_dict().items():
            close(mine.state_dict()[name], one, f"{kind}.{name}", 1e-5)
        close(mine.eval()(Tensor(x)), theirs.eval()(torch.tensor(x)), f"{kind} by its statistics", 1e-4)
        other = getattr(nn, kind)(4, track_running_stats=True, **more).eval()
        other.load_state_dict(mine.state_dict())
        checks.equal([one(Tensor(x)).tolist() for one in (other, copy.deepcopy(mine))], [mine(Tensor(x)).tolist()] * 2)
    checks.raises(TypeError, nn.InstanceNorm2d, 2, momentum=None, track_running_stats=True)
    checks.equal([tinycore.nn.InstanceNorm2d(2).running_mean, list(nn.InstanceNorm2d(2).state_dict())], [None, []])


checks.run(globals())
