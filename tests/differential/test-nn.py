#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Layers, through introspection, against PyTorch's on PyTorch's state dicts: names, shapes, values, gradients,
running statistics, and how weights are distributed.

usage: test-nn.py [NAME…]. Run in the build's environment."""
import sys

import nn_reference as reference
from nn_reference import Tiny, np, random, torch

nn = torch.nn


def layers():
    """Name, ours, theirs, shapes of inputs; None is a mask."""
    for bias in (True, False):
        yield "linear", Tiny.linear_new(5, 7, bias), nn.Linear(5, 7, bias), [(3, 5)]
    yield "linear-3d", Tiny.linear_new(5, 7, True), nn.Linear(5, 7), [(2, 3, 5)]
    yield "conv1d", Tiny.conv1d_new(4, 6, 3, 2, 1, 2, 2, True), nn.Conv1d(4, 6, 3, 2, 1, 2, 2), [(2, 4, 11)]
    yield "conv2d", Tiny.conv2d_new(4, 6, 3, 2, 1, 2, True), nn.Conv2d(4, 6, 3, 2, 1, 1, 2), [(2, 4, 9, 8)]
    yield "conv2d-plain", Tiny.conv2d_new(3, 5, 2, 1, 0, 1, False), nn.Conv2d(3, 5, 2, bias=False), [(2, 3, 6, 5)]
    yield from convolutions()
    for shape in ((4, 3), (4, 3, 5), (2, 3, 4, 5), (2, 3, 2, 3, 4)):
        ours = Tiny.batch_norm_new(3, 1e-5, 0.1, True, True)
        theirs = (nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm3d if len(shape) == 5 else nn.BatchNorm1d)(3)
        yield f"batch_norm{len(shape)}", ours, theirs, [shape]
    yield "batch_norm-cumulative", Tiny.batch_norm_new(3, 1e-3, -1, True, True), nn.BatchNorm2d(3, 1e-3, None), [(2, 3, 4, 5)]
    yield "batch_norm-bare", Tiny.batch_norm_new(3, 1e-5, 0.1, False, False), nn.BatchNorm2d(
        3, affine=False, track_running_stats=False), [(2, 3, 4, 5)]
    yield "group_norm", Tiny.group_norm_new(2, 6, 1e-5, True), nn.GroupNorm(2, 6), [(2, 6, 4, 3)]
    yield "group_norm-1", Tiny.group_norm_new(1, 6, 1e-5, False), nn.GroupNorm(1, 6, affine=False), [(2, 6)]
    yield "instance_norm", Tiny.instance_norm_new(3, 1e-5, True), nn.InstanceNorm2d(3, affine=True), [(2, 3, 4, 5)]
    yield "layer_norm", Tiny.layer_norm_new([4, 5], 1e-5, True), nn.LayerNorm([4, 5]), [(2, 3, 4, 5)]
    yield "layer_norm-bare", Tiny.layer_norm_new([5], 1e-3, False), nn.LayerNorm(5, 1e-3, False), [(2, 5)]
    yield "layer_norm2d", Tiny.layer_norm2d_new(3, 1e-5, True), reference.LayerNorm2d(3), [(2, 3, 4, 5)]
    yield "rms_norm", Tiny.rms_norm_new(6, 1e-6, True), reference.RMSNorm(6), [(2, 3, 6)]
    theirs = {"celu": nn.CELU(), "elu": nn.ELU(), "gelu": nn.GELU(), "gelu_tanh": nn.GELU(approximate="tanh"), "glu": nn.GLU(),
              "hardshrink": nn.Hardshrink(), "hardsigmoid": nn.Hardsigmoid(), "hardswish": nn.Hardswish(),
              "hardtanh": nn.Hardtanh(), "leaky_relu": nn.LeakyReLU(), "log_softmax": nn.LogSoftmax(-1),
              "logsigmoid": nn.LogSigmoid(), "mish": nn.Mish(), "quick_gelu": reference.QuickGELU(), "relu": nn.ReLU(),
              "relu6": nn.ReLU6(), "selu": nn.SELU(), "sigmoid": nn.Sigmoid(), "silu": nn.SiLU(), "softmax": nn.Softmax(-1),
              "softplus": nn.Softplus(), "softshrink": nn.Softshrink(), "softsign": nn.Softsign(), "tanh": nn.Tanh()}
    assert list(theirs) == Tiny.activation_list()
    for name in theirs:
        yield name, Tiny.activation_new(name), theirs[name], [(3, 8)]
    yield "prelu", Tiny.prelu_new(3, 0.25), nn.PReLU(3), [(2, 3, 4)]
    yield "flatten", Tiny.flatten_new(1, -1), nn.Flatten(), [(2, 3, 4)]
    yield "max_pool2d", Tiny.max_pool2d_new(3, 2, 1), nn.MaxPool2d(3, 2, 1), [(2, 3, 7, 8)]
    yield "avg_pool2d", Tiny.avg_pool2d_new(2, 0, 1), nn.AvgPool2d(2, padding=1), [(2, 3, 7, 8)]
    yield from recurrent()
    yield from attention()


def convolutions():
    yield "conv2d-sides", Tiny.conv_new(2, 4, 6, [3, 2], [2, 1], [1, 2], [1, 2], 1, True), nn.Conv2d(
        4, 6, (3, 2), (2, 1), (1, 2), (1, 2)), [(2, 4, 7, 8)]
    yield "conv3d", Tiny.conv_new(3, 2, 3, [2], [1], [1], [1], 1, True), nn.Conv3d(2, 3, 2, 1, 1), [(2, 2, 3, 4, 3)]
    yield "conv_transpose1d", Tiny.conv_transpose_new(1, 4, 6, [3], [2], [1], [1], [1], 2, True), nn.ConvTranspose1d(
        4, 6, 3, 2, 1, 1, 2), [(2, 4, 5)]
    yield "conv_transpose2d", Tiny.conv_transpose_new(2, 3, 4, [3, 2], [2, 3], [1, 0], [0, 2], [1], 1, False), nn.ConvTranspose2d(
        3, 4, (3, 2), (2, 3), (1, 0), (0, 2), bias=False), [(2, 3, 4, 3)]
    yield "conv_transpose3d", Tiny.conv_transpose_new(3, 2, 3, [2], [1], [0], [0], [2], 1, True), nn.ConvTranspose3d(
        2, 3, 2, dilation=2), [(1, 2, 2, 3, 2)]


def recurrent():
    yield "lstm_cell", Tiny.lstm_cell_new(4, 3, True), reference.Flat(nn.LSTMCell(4, 3)), [(2, 4), (2, 3), (2, 3)]
    yield "lstm_cell-zeros", Tiny.lstm_cell_new(4, 3, False), reference.Flat(nn.LSTMCell(4, 3, False)), [(2, 4)]
    yield "gru_cell", Tiny.gru_cell_new(4, 3, True), reference.Flat(nn.GRUCell(4, 3)), [(2, 4), (2, 3)]
    yield "rnn_cell", Tiny.rnn_cell_new(4, 3, True, "relu"), reference.Flat(nn.RNNCell(4, 3, True, "relu")), [(2, 4), (2, 3)]
    for layers, bias, first, both in ((1, True, False, False), (2, True, True, True), (2, False, False, False)):
        n = layers * (2 if both else 1)
        shape = (2, 4, 5) if first else (4, 2, 5)
        ours, theirs = Tiny.lstm_new(5, 3, layers, bias, first, 0, both, 0), nn.LSTM(5, 3, layers, bias, first, 0, both)
        yield f"lstm-{n}", ours, reference.Flat(theirs), [shape, (n, 2, 3), (n, 2, 3)]
        kind = "relu" if both else "tanh"
        ours = Tiny.rnn_new(5, 3, layers, kind, bias, first, 0, both)
        yield f"rnn-{n}", ours, reference.Flat(nn.RNN(5, 3, layers, bias, first, 0, both, nonlinearity=kind)), [shape, (n, 2, 3)]
        ours, theirs = Tiny.gru_new(5, 3, layers, bias, first, 0, both), nn.GRU(5, 3, layers, bias, first, 0, both)
        yield f"gru-{n}", ours, reference.Flat(theirs), [shape, (n, 2, 3)]
    yield "lstm-projected", Tiny.lstm_new(5, 4, 2, True, False, 0, True, 3), reference.Flat(nn.LSTM(5, 4, 2, bidirectional=True, proj_size=3)), [
        (4, 2, 5), (4, 2, 3), (4, 2, 4)]
    yield "lstm-single", Tiny.lstm_new(5, 3, 1, True, False, 0, False, 0), reference.Flat(nn.LSTM(5, 3)), [(4, 5)]
    yield "gru-single", Tiny.gru_new(5, 3, 1, True, False, 0, False), reference.Flat(nn.GRU(5, 3)), [(4, 5), (1, 3)]


def attention():
    def multihead(*arguments, **names):
        return reference.Attention(nn.MultiheadAttention(*arguments, **names))
    yield "attention", Tiny.multihead_attention_new(6, 2, 0, True, 6, 6, False), multihead(6, 2), [(4, 3, 6), (5, 3, 6), (5, 3, 6)]
    yield "attention-first", Tiny.multihead_attention_new(6, 3, 0, False, 6, 6, True), multihead(
        6, 3, bias=False, batch_first=True), [(3, 4, 6), (3, 5, 6), (3, 5, 6)]
    yield "attention-sizes", Tiny.multihead_attention_new(6, 2, 0, True, 5, 7, True), multihead(
        6, 2, kdim=5, vdim=7, batch_first=True), [(3, 4, 6), (3, 5, 5), (3, 5, 7)]
    for mask in ("causal", "float", "heads"):
        yield f"attention-{mask}", Tiny.multihead_attention_new(6, 2, 0, True, 6, 6, True), multihead(
            6, 2, batch_first=True), [(3, 4, 6), (3, 4, 6), (3, 4, 6), mask]
    for mask in ("none", "causal", "float"):
        yield f"attention-padding-{mask}", Tiny.multihead_attention_new(6, 2, 0, True, 6, 6, True), multihead(
            6, 2, batch_first=True), [(3, 4, 6), (3, 4, 6), (3, 4, 6), mask, "padding"]
    yield "encoder-padding", Tiny.transformer_encoder_layer_new(6, 2, 8, 0, "gelu", 1e-5, True, True), nn.TransformerEncoderLayer(
        6, 2, 8, 0, "gelu", 1e-5, True, True), [(3, 4, 6), "causal", "padding"]
    yield "decoder-padding", Tiny.transformer_decoder_layer_new(6, 2, 8, 0, "relu", 1e-5, True, False), nn.TransformerDecoderLayer(
        6, 2, 8, 0, "relu", 1e-5, True, False), [(3, 4, 6), (3, 4, 6), "causal", "float", "none", "padding"]
    for first in (True, False):
        shape, other = ((3, 4, 6), (3, 5, 6)) if first else ((4, 3, 6), (5, 3, 6))
        ours = Tiny.transformer_encoder_layer_new(6, 2, 8, 0, "relu", 1e-5, first, not first)
        theirs = nn.TransformerEncoderLayer(6, 2, 8, 0, "relu", 1e-5, first, not first)
        yield f"encoder-{first}", ours, theirs, [shape, "causal"] if first else [shape]
        ours = Tiny.transformer_decoder_layer_new(6, 2, 8, 0, "relu", 1e-5, first, not first)
        theirs = nn.TransformerDecoderLayer(6, 2, 8, 0, "relu", 1e-5, first, not first)
        yield f"decoder-{first}", ours, theirs, [shape, other]
    stack = Tiny.transformer_stack_new(Tiny.layer_norm_new([6], 1e-5, True))
    for _ in range(2):
        Tiny.transformer_stack_append(stack, Tiny.transformer_encoder_layer_new(6, 2, 8, 0, "relu", 1e-5, True, False))
    theirs = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0, "relu", 1e-5, True), 2, nn.LayerNorm(6))
    yield "encoder", stack, theirs, [(3, 4, 6), "causal", "padding"]
    stack = Tiny.transformer_stack_new(None)
    for _ in range(2):
        Tiny.transformer_stack_append(stack, Tiny.transformer_decoder_layer_new(6, 2, 8, 0, "gelu", 1e-5, True, True))
    theirs = nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8, 0, "gelu", 1e-5, True, True), 2)
    yield "decoder", stack, theirs, [(3, 4, 6), (3, 4, 6), "causal", "none", "padding", "padding"]


def check_layer(name, ours, theirs, shapes):
    """Values and gradients in training mode twice, then values in evaluation."""
    reference.spread(theirs)
    reference.copy_state(ours, theirs)
    for training in (True, True, False):
        ours.set_training(training)
        theirs.train(training)
        inputs = [reference.mask(shape, shapes[0]) if isinstance(shape, str) else random(shape) for shape in shapes]
        reference.check_call(name, ours, theirs, inputs, gradients=training)
    reference.check_buffers(name, ours, theirs)


def check_distributions():
    """What layers begin with has PyTorch's bounds and deviations."""
    pairs = [(Tiny.linear_new(300, 200, True), nn.Linear(300, 200)), (Tiny.embedding_new(300, 200), nn.Embedding(300, 200)),
             (Tiny.conv2d_new(30, 40, 5, 1, 0, 2, True), nn.Conv2d(30, 40, 5, groups=2)),
             (Tiny.conv1d_new(60, 80, 5, 1, 0, 1, 2, True), nn.Conv1d(60, 80, 5, groups=2)),
             (Tiny.conv_transpose_new(2, 30, 40, [5], [1], [0], [0], [1], 2, True), nn.ConvTranspose2d(30, 40, 5, groups=2)),
             (Tiny.lstm_new(60, 70, 1, True, True, 0, True, 0), nn.LSTM(60, 70, bidirectional=True)),
             (Tiny.gru_cell_new(60, 70, True), nn.GRUCell(60, 70)),
             (Tiny.multihead_attention_new(96, 4, 0, True, 96, 96, True), nn.MultiheadAttention(96, 4)),
             (Tiny.multihead_attention_new(96, 4, 0, True, 40, 50, True), nn.MultiheadAttention(96, 4, kdim=40, vdim=50))]
    for ours, theirs in pairs:
        for path, tensor in ours.get_state_dict().items():
            mine, other = reference.to_numpy(tensor), theirs.state_dict()[path].numpy()
            few = 4 / np.sqrt(mine.size)
            assert abs(mine.mean()) <= few * max(other.std(), 1e-9), (path, mine.mean())
            assert abs(mine.std() - other.std()) <= few * other.std(), (path, mine.std(), other.std())
            if "Embedding" not in str(theirs):
                assert mine.max() <= 1.02 * max(other.max(), 1e-9) + few * other.std(), (path, mine.max(), other.max())


def check_dropout():
    """The part that is dropped, the scale, new masks each time, nothing in evaluation."""
    layer, x = Tiny.dropout_new(0.3), reference.to_tiny(np.ones(20000, np.float32))
    masks = [reference.to_numpy(layer.forward(x)) for _ in range(2)]
    for mask in masks:
        assert set(np.unique(mask)) == {np.float32(0), np.float32(1 / 0.7)}, np.unique(mask)
        assert abs((mask == 0).mean() - 0.3) < 0.02
    assert abs(((masks[0] == 0) & (masks[1] == 0)).mean() - 0.09) < 0.02
    assert layer.get_state_dict() == {}
    layer.set_training(False)
    assert (reference.to_numpy(layer.forward(x)) == 1).all()
    assert (reference.to_numpy(Tiny.dropout_new(1).forward(x)) == 0).all()


class Doubling(Tiny.Module):
    """A kind of module written in Python: two tensors in, their sum times a parameter and the first out."""

    def __init__(self):
        super().__init__()
        self.add_parameter("scale", reference.to_tiny(np.array([2, 3], np.float32)))
        self.add_child("inner", Tiny.linear_new(2, 2, True))

    def do_forward(self, x):
        return self.get_child("inner").forward(x.mul(self.get_parameter("scale")))

    def do_forward_many(self, inputs):
        return [self.do_forward(inputs[0].add(inputs[-1])), inputs[0]]


def check_subclass():
    module, x = Doubling(), reference.to_tiny(np.array([[1, 2]], np.float32))
    assert module.get_parameter_names() == ["scale", "inner.weight", "inner.bias"]
    for name in ("inner.weight", "inner.bias"):  # quarters, of which sums are exact in any order
        module.set_tensor(name, reference.to_tiny(np.round(4 * reference.to_numpy(module.get_parameter(name))) / 4))
    expected = reference.to_numpy(module.get_child("inner").forward(reference.to_tiny(np.array([[2, 6]], np.float32))))
    assert (reference.to_numpy(module.forward(x)) == expected).all()
    half = reference.to_tiny(np.array([[0.5, 1]], np.float32))
    for _ in range(3):
        y, first = module.call([half, half])
        assert (reference.to_numpy(y) == expected).all()
        assert (reference.to_numpy(first) == [[0.5, 1]]).all()
    chain = Tiny.sequential_new()
    Tiny.sequential_append(chain, module)
    y = chain.forward(x)
    y.sum([0, 1], False).backward()
    assert module.get_parameter("scale").get_grad() is not None


def check_sharing():
    """A tensor in several modules is one, under all its names."""
    chain = Tiny.sequential_new()
    table, head = Tiny.embedding_new(5, 3), Tiny.linear_new(3, 5, True)
    head.set_tensor("weight", table.get_parameter("weight"))
    Tiny.sequential_append(chain, table)
    Tiny.sequential_append(chain, head)
    assert sorted(chain.get_state_dict()) == ["0.weight", "1.bias", "1.weight"]
    assert chain.get_parameter_names() == ["0.weight", "1.bias"]
    before = reference.to_numpy(table.get_parameter("weight")).copy()
    other = [torch.nn.Parameter(torch.tensor(before.copy())), torch.nn.Parameter(torch.zeros(5))]
    tokens = np.array([1, 2, 2], np.int64)
    optimizer, theirs = Tiny.sgd_new(chain.get_parameters(), 0.1, 0, 0, False), torch.optim.SGD(other, 0.1)
    chain.forward(reference.to_tiny(tokens)).mul(chain.forward(reference.to_tiny(tokens))).sum([0, 1], False).backward()
    bias = reference.to_numpy(head.get_parameter("bias")).copy()
    y = torch.nn.functional.linear(torch.nn.functional.embedding(torch.tensor(tokens), other[0]), other[0], torch.tensor(bias))
    (y * y).sum().backward()
    optimizer.step([])
    theirs.step()
    reference.close("tied", head.get_parameter("weight"), other[0], 1e-5, 1e-6)
    head.set_tensor("bias", None)
    assert chain.get_parameter("1.bias") is None and "1.bias" not in chain.get_state_dict()
    reference.raises("there is no tensor “2.weight”", chain.set_tensor, "2.weight", table.get_parameter("weight"))
    reference.raises("of floats, not i64", chain.set_tensor, "0.weight", reference.to_tiny(tokens))


def check_bad_input():
    layer = Tiny.linear_new(2, 3, True)
    state = layer.get_state_dict()
    for change, text in (({"weight": None}, "missing “weight”"), ({"extra": state["bias"]}, "unexpected “extra”"),
                         ({"bias": state["weight"]}, "“bias”: (3, 2), not (3,)")):
        changed = {name: tensor for name, tensor in {**state, **change}.items() if tensor is not None}
        reference.raises(text, layer.load_state_dict, changed, True)
    layer.load_state_dict({"extra": state["bias"]}, False)
    reference.raises("another shape", layer.load_state_dict, {"bias": state["weight"]}, False)
    reference.raises("has a dot", layer.add_parameter, "a.b", state["bias"])
    reference.raises("is taken", layer.add_parameter, "bias", state["bias"])
    reference.raises("is empty", layer.add_child, "", Tiny.linear_new(1, 1, True))
    reference.raises("contains", layer.add_child, "self", layer)
    reference.raises("-1 features", Tiny.linear_new(-1, 3, True).forward(state["bias"]).realize)
    reference.raises("none of celu", Tiny.activation_new("no").forward(state["bias"]).realize)
    reference.raises("2 values or more", Tiny.batch_norm2d_new(3).forward(reference.to_tiny(np.ones((1, 3), np.float32))).realize)
    reference.raises("do not belong", Tiny.multihead_attention_new(4, 2, 0, True, 4, 4, True).call(
        [reference.to_tiny(np.ones((1, n, 4), np.float32)) for n in (2, 3, 4)])[0].realize)
    attention, x = Tiny.multihead_attention_new(4, 2, 0, True, 4, 4, True), reference.to_tiny(np.ones((1, 2, 4), np.float32))
    reference.raises("(1, 2) keys, which one of 1 axes", attention.call(
        [x, x, x, None, reference.to_tiny(np.zeros(2, bool))])[0].realize)
    reference.raises("of bools or floats, not i32", attention.call(
        [x, x, x, None, reference.to_tiny(np.zeros((1, 2), np.int32))])[0].realize)
    reference.raises("takes 1 input, or 3", Tiny.lstm_cell_new(2, 2, True).call([state["weight"]] * 2)[0].realize)


wanted = sys.argv[1:]
n = 0
for row in layers():
    if not wanted or row[0] in wanted:
        check_layer(*row)
        n += 1
for check in (check_distributions, check_dropout, check_subclass, check_sharing, check_bad_input):
    if not wanted or check.__name__ in wanted:
        check()
print(f"{n} layers are PyTorch's")
