#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is no argument is refused, in words that name it; what is odd but has an answer gets that.

TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import os
import pickle
import subprocess
import sys
import tempfile

import checks
import numpy as np
import tinycore
import torch
from tinycore import Device, Tensor, TinyJit, dtypes, nn, optim
from tinycore.nn import state
from tinycore.nn.data import DataLoader, TensorDataset

X = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
I = Tensor([1, 2])  # noqa: E741
NAN = float("nan")


def refused(rows):
    """Each row: a call, and what is in its error."""
    for call, *texts in rows:
        error = checks.raises((TypeError, ValueError, IndexError, OverflowError, LookupError, OSError), call)
        for text in texts:
            checks.true(text in str(error), f"{type(error).__name__}: {error}: lacks {text!r}")


def test_kinds_of_arguments():
    refused([
        (lambda: X.sum(0, "no"), "sum: keepdim", "'no'"), (lambda: X.sum(0, [1]), "keepdim"), (lambda: X.sum(0, None), "keepdim"),
        (lambda: X.sort(True), "sort: axis", "True"), (lambda: X.sum(True), "axis", "True"), (lambda: X.max(X), "axis"),
        (lambda: X.amax(Tensor([])), "axis"), (lambda: X.softmax("a"), "softmax: axis", "'a'"), (lambda: X.rot90(False), "rot90: k"),
        (lambda: X.leaky_relu("a"), "leaky_relu: negative_slope", "'a'"), (lambda: X.leaky_relu(None), "negative_slope"),
        (lambda: X.mse_loss(X, 3), "mse_loss: reduction", "3"), (lambda: X.reshape(-1, -1), "axes 0 and 1"),
        (lambda: X.split([1, 1], 1), "pieces of (1, 1)", "axis 1 of 3"), (lambda: Tensor.stack([X, I]), "tensor 1 is (2,)", "(2, 3)"),
        (lambda: X.tile("a"), "tile: ", "'a'"), (lambda: X.logsumexp("a"), "logsumexp: axis"), (lambda: X.reshape("a"), "reshape: shape"),
        (lambda: X.narrow(0, 1, 5), "5 elements from 1 on leave axis 0 of 2"), (lambda: nn.Linear(2, 2)(None), "Linear", "NoneType"),
        (lambda: X.quantile(1.5), "quantile: q", "1.5"), (lambda: X.quantile([0.5, -1]), "quantile: q", "-1"), (lambda: X.nanquantile(NAN), "q"),
        (lambda: Tensor([1.0], device="CPU\0X"), "device: a text without NUL"), (lambda: X.to("CPU\0"), "NUL"), (lambda: Tensor.zeros(3, device="CPU\0"), "NUL"),
        (lambda: Device["CPU\0X"], "NUL"), (lambda: Device.canonicalize("CPU\0"), "NUL"), (lambda: setattr(Device, "DEFAULT", "CPU\0X"), "NUL"),
        (lambda: Tensor([1.0], device=""), "without a name"), (lambda: X.to(""), "without a name"),
    ])
    checks.equal(X.sum(0, 1).shape, (1, 3))


def test_numbers_beyond_a_dtype():
    """An integer that would become another one."""
    refused([
        (lambda: Tensor.full((2,), 3e9, dtype="int32"), "full", "3e+09", "i32"), (lambda: I.full_like(1e300), "1e+300"),
        (lambda: Tensor.full((2,), NAN, dtype="int32"), "nan"), (lambda: Tensor.full((2,), 300, dtype="uint8"), "300"),
        (lambda: I.pad([1, 1], value=1e300), "pad"), (lambda: I.hardtanh(-3e9, 3e9), "hardtanh"), (lambda: I.threshold(0, 1e300), "threshold"),
        (lambda: Tensor.randint(3, low=-5, high=5, dtype="uint8"), "u8"), (lambda: Tensor.randint(3, low=0, high=1000, dtype="int8"), "i8"),
    ])
    checks.equal(Tensor.full((2,), -1, dtype="uint8").tolist(), [255, 255])
    checks.equal(Tensor.full((1,), 2.0 ** 63, dtype="uint64").tolist(), [2 ** 63])
    checks.equal(Tensor.full((1,), -2.0 ** 63, dtype="int64").tolist(), [-2 ** 63])


def test_numbers_beyond_words():
    """Sizes and axes that C has no words for; what is called without a tensor."""
    refused([
        (lambda: Tensor.zeros(2 ** 100), "zeros: shape: a whole number of 64 bits is wanted", str(2 ** 100)),
        (lambda: Tensor.ones(3, 2 ** 70), "ones: shape", "64 bits"), (lambda: Tensor.full((2 ** 64,), 1), "full: shape", "64 bits"),
        (lambda: Tensor.randint(2, low=0, high=2 ** 70), "randint: high", "64 bits"), (lambda: X.reshape(2 ** 80), "reshape: shape", "64 bits"),
        (lambda: X.sum(2 ** 80), "sum: axis: a whole number of 32 bits is wanted", str(2 ** 80)), (lambda: X.sum(-2 ** 40), "sum: axis", "32 bits"),
        (lambda: X.permute(1, 2 ** 40), "permute: axis", "32 bits"), (lambda: X.softmax(2 ** 40), "softmax: axis", "32 bits"),
        (lambda: nn.Linear(2 ** 70, 1), "Linear: in_features: a number from -9223372036854775808 to 9223372036854775807 is wanted", str(2 ** 70)),
        (lambda: Tensor.sum(), "Tensor.sum() missing"), (lambda: tinycore.sum(3), "sum: a tensor is wanted first, not 3"),
        (lambda: nn.Sequential(Tensor.relu)("a"), "relu: a tensor is wanted first, not 'a'"), (lambda: Tensor.add(3, X), "add: a tensor is wanted first"),
        (lambda: Tensor.quantile(), "Tensor.quantile() missing"), (lambda: Tensor.full(), "Tensor.full() missing"),
    ])
    checks.equal(X.sum(-2).shape, (3,))
    checks.true(pickle.loads(pickle.dumps([Tensor.relu, Tensor.quantile, Tensor.zeros])) == [Tensor.relu, Tensor.quantile, Tensor.zeros])


def test_no_gi():
    """An interpreter without PyGObject says which one it is, and which has it."""
    script = "import sys; sys.modules['gi'] = None; import tinycore"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False).stderr.splitlines()[-1]
    checks.true(said.startswith("ImportError: tinycore needs PyGObject") and sys.executable in said and "python3-gi" in said, said)


def test_subscripts():
    refused([
        (lambda: X[2 ** 70], str(2 ** 70)), (lambda: X["a"], "str"), (lambda: X["a":], "slice", "'a'"), (lambda: X[..., ...], "more than one"),
        (lambda: X.__setitem__(0, None), "None"), (lambda: X.assign(None), "assign", "None"), (lambda: X.assign([1, 2]), "assign: (2,)"),
        (lambda: "a" in X, "str"),
    ])
    checks.true(2.0 in X and 7.0 not in X)


def test_modules():
    refused([
        (lambda: nn.optim.SGD([X], lr=-1), "learning rate", "-1"), (lambda: nn.optim.SGD([X], lr=NAN), "learning rate"),
        (lambda: nn.optim.SGD([X], momentum=-1), "momentum"), (lambda: nn.optim.SGD([X], nesterov=True), "momentum"),
        (lambda: nn.optim.Adam([X], betas=(2, 3)), "beta1"), (lambda: nn.optim.Adam([X], betas=(1,)), "betas"),
        (lambda: Tensor([1], requires_grad=True), "int32"), (lambda: nn.optim.SGD([I, I > 1], lr=1), "SGD: params: tensors of floats", "bool, int32"),
        (lambda: nn.optim.Adam([]), "Adam: params", "none at all"),
    ])

    class Ring(nn.Module):
        def __init__(self):
            self.layer, self.me, self.all = nn.Linear(2, 2), self, [self]

    ring = Ring()
    checks.equal([name for name, _ in ring.named_modules()], ["", "layer"])
    checks.true("layer" in repr(ring) and len(list(ring.parameters())) == 2)
    ring.eval()
    checks.true(not ring.layer.training)
    deep = None
    for _ in range(100):
        outer = nn.Module()
        outer.inside = deep
        deep = outer
    checks.equal(len(list(deep.modules())), 100)


def test_states():
    net = nn.Linear(2, 3)
    before = net.weight.tolist()
    good = {"weight": [[9.0, 9], [9, 9], [9, 9]], "bias": Tensor.zeros(3)}
    refused([
        (lambda: net.load_state_dict(None), "NoneType"), (lambda: net.load_state_dict([1]), "list"),
        (lambda: net.load_state_dict({**good, "bias": None}), "bias", "None"), (lambda: net.load_state_dict({**good, "bias": "a"}), "bias", "str"),
        (lambda: net.load_state_dict({**good, "bias": [1, 2]}), "bias: (2,) into (3,)"), (lambda: net.load_state_dict({**good, 3: X}), "Linear: unexpected 3"), (lambda: net.load_state_dict({"bias": X}), "Linear: missing weight"),
    ])
    checks.equal(net.weight.tolist(), before, "what was refused changed the weight")
    net.load_state_dict(good)
    checks.equal(net.weight.tolist(), good["weight"])


def test_files():
    with tempfile.TemporaryDirectory() as folder:
        path, pipe = os.path.join(folder, "a.safetensors"), os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        refused([
            (lambda: state.safe_save({"a": X}, pipe), "regular file"), (lambda: state.safe_load(pipe), "regular file"),
            (lambda: state.safe_save({"a": X}, folder), "folder"), (lambda: state.safe_load(folder), "folder"),
            (lambda: state.safe_save({"a\0b": X}, path), "NUL"), (lambda: state.safe_save({"a": X}, path + "\0x"), "NUL"),
            (lambda: state.safe_save({"a": 3}, path), "a is no tensor"), (lambda: state.safe_save({3: X}, path), "3"),
            (lambda: state.safe_save([X], path), "list"), (lambda: state.safe_load(None), "NoneType"), (lambda: state.safe_load(""), "“”"),
        ])
        checks.equal(sorted(os.listdir(folder)), ["pipe"])
        state.safe_save({"a": X}, path)
        checks.equal(state.safe_load(path)["a"].tolist(), X.tolist())
        for name in ("ä.safetensors", os.path.join(os.fsencode(folder), b"\xff.safetensors"), os.fsdecode(b"\xfe.safetensors")):  # bytes that are no UTF-8
            name = os.path.join(folder, name) if isinstance(name, str) else name
            refused([(lambda: state.safe_load(name), "No such file")])
            state.safe_save({"a": X}, name)
            checks.equal(state.safe_load(name)["a"].tolist(), X.tolist())
            refused([(lambda: state.safe_load(name, device="no such"), "no such")])


def test_of_too_many_elements():
    image = Tensor.zeros(1 << 20, 3, 1 << 20)
    refused([
        (lambda: nn.functional.adaptive_max_pool2d(image, 65536), "2^48"), (lambda: nn.functional.adaptive_avg_pool2d(image, 65536), "2^48"),
        (lambda: nn.RNN(3, 4)(Tensor.zeros(1 << 33, 3)), "a sequence of 8589934592 steps"),
        (lambda: nn.LSTM(3, 4, batch_first=True)(Tensor.zeros(1, 1 << 33, 3)), "steps")])


def test_of_no_elements():
    for dtype in (dtypes.float32, dtypes.int32):
        none = Tensor.zeros(3, 0, dtype=dtype)
        checks.equal([none.softmax(1).shape, none.log_softmax(0).shape, none.softmin(1).shape], [(3, 0)] * 3)
        checks.equal(none.logsumexp(1).tolist(), [float("-inf")] * 3)
        checks.equal(none.logsumexp(0).shape, (0,))
    w = Tensor.zeros(0, requires_grad=True)
    w.softmax(0).sum().backward()
    checks.equal(w.grad.shape, (0,))


def test_deep_and_shared():
    """Expressions that are deep, or that would be large if what is shared were not."""
    x = y = Tensor([1.0])
    for _ in range(20000):
        y = y + x
    checks.equal(y.item(), 20001)
    start = Tensor.full((), 1, dtype="int32")
    for _ in range(100):
        start = start * start
    checks.equal(X.narrow(1, start, 1).tolist(), [[2.0], [5.0]])
    for _ in range(20000):
        start = start * 1
    checks.equal(X.narrow(1, start, 1).tolist(), [[2.0], [5.0]])
    checks.equal(Device.DEFAULT, X.device)


def test_conversions():
    """What cannot be converted is said with the function and the argument, not in the words of PyGObject."""
    one = [Tensor([1.0])]
    sgd = optim.SGD(one)
    refused([
        (lambda: nn.Dropout("a"), "Dropout: p: a number is wanted, not 'a'"), (lambda: nn.Linear(2.5, 2), "Linear: in_features: a whole number is wanted, not 2.5"),
        (lambda: nn.LayerNorm(3, eps="x"), "LayerNorm: eps: a number"), (lambda: nn.BatchNorm1d(3, momentum="x"), "BatchNorm1d: momentum: a number"),
        (lambda: nn.datasets.fashion_mnist(5), "fashion_mnist: directory: a text"), (lambda: nn.Conv2d(1, 2, "a"), "Conv2d: kernel_size: a whole number"), (lambda: nn.LSTM(3, 4, dropout="a"), "LSTM: dropout"),
        (lambda: optim.SGD(one, lr="a"), "SGD: lr: a number"), (lambda: optim.Adam(one, lr=None), "Adam: lr: a value is wanted, not None"),
        (lambda: optim.Adam(one, eps="q"), "Adam: eps: a number"), (lambda: setattr(sgd, "lr", "a"), "lr: a number"),
        (lambda: sgd.param_groups[0].update(momentum="a"), "momentum: a number"), (lambda: optim.lr_scheduler.StepLR(sgd, 2, gamma="a"), "StepLR: gamma: a number"),
        (lambda: optim.lr_scheduler.StepLR(None, 2), "StepLR: optimizer: an optimiser"), (lambda: optim.lr_scheduler.MultiStepLR(sgd, 3), "MultiStepLR: milestones: a list"),
        (lambda: optim.lr_scheduler.OneCycleLR(sgd, "a", 5), "OneCycleLR: max_lr: a number"),
        (lambda: Tensor.full((2,), "a"), "full: fill_value: a number"), (lambda: Tensor.uniform(3, low="a"), "uniform: low: a number"),
        (lambda: Tensor.zeros("a"), "zeros: shape: a whole number"), (lambda: Tensor.linspace("a", 1, 3), "linspace: start: a number"),
        (lambda: Tensor.zeros(3, device=5), "device: a name"), (lambda: X.shard(["REF", 3]), "names of devices"), (lambda: Device[3], "Device: a text"),
        (lambda: nn.utils.clip_grad_norm_(one, "a"), "clip_grad_norm_: max_norm: a number"), (lambda: nn.init.normal_(X, 0, "a"), "normal: std: a number"),
        (lambda: X.gradient("a"), "gradient: tensors"), (lambda: X.custom_kernel(code=3), "custom_kernel: code: a text"),
        (lambda: X.mean(axis=0, dim=1), "mean: axis and dim are the same"), (lambda: X.sum(0, dim=0), "sum: axis and dim"), (lambda: X.permute(), "permute: no axes"),
        (lambda: X.permute(()), "permute: no axes"), (lambda: Tensor.einsum("ij,jk->ik", Tensor.ones(2, 4), Tensor.ones(3, 2)), "letter j is of size 3 in (3, 2) and of size 4"),
        (lambda: Tensor.einsum("ii->i", Tensor.ones(2, 3)), "letter i is of size 3 in (2, 3) and of size 2"),
        (lambda: Tensor.einsum("abcdefgh,ijklmnopq", Tensor.ones(*[1] * 8), Tensor.ones(2, *[1] * 8)), "einsum: the result has more than 16 axes"),
        (lambda: Tensor.einsum("...,q->q...", Tensor.ones(*[1] * 15, 2), Tensor.ones(3)), "einsum: the result has more than 16 axes"),
        (lambda: Tensor.einsum("abcdefghijklmnopq", Tensor.ones(1)), "einsum: an operand has more than 16 axes"),
    ])
    checks.equal((Tensor(3.0).permute().item(), X.mean(dim=0).shape, Tensor.einsum("ij,jk->ik", Tensor.ones(2, 1), Tensor.ones(3, 2)).tolist()),
                 (3, X.shape[1:], [[3, 3], [3, 3]]))
    double = TinyJit(lambda x: x * 2)
    for n in (3, 3):
        double(Tensor.ones(n).realize())
    error = str(checks.raises(ValueError, double, Tensor([])))
    checks.true("input 0 has no elements" in error and "tiny_" not in error, error)


def test_positions_at_hand():
    """Positions in lists and arrays that are outside of their axis are refused at once, in reading and writing; what is inside is read."""
    x = Tensor(np.arange(30, dtype="float32").reshape(2, 3, 5))
    bools = Tensor(np.ones((2, 3), bool))
    for key in (([0, 1], [2, -3]), (0, ..., [4, -5]), (None, [1], slice(None), [[0], [4]]), (bools, [0] * 6), (..., [4]), ([-2],), ([], 1), np.array([1, 0]), ([True, False], 1)):
        plain = tuple(one.numpy() if isinstance(one, Tensor) else one for one in key) if isinstance(key, tuple) else key
        checks.true(np.array_equal(x[key].numpy(), torch.tensor(x.numpy())[plain].numpy()), key)
    for key, text in (([2], "position 2 is outside of axis 0"), (([0], [1, 3]), "3 is outside of axis 1"), ((0, [-4]), "-4 is outside of axis 1"), ((..., [0, 5]), "5 is outside of axis 2"),
                      ((..., [3], slice(None)), "3 is outside of axis 1"), (np.array([[0, -3]]), "-3 is outside of axis 0"), ((bools, [5] * 6), "5 is outside of axis 2"),
                      ((None, slice(1), [0, 3]), "3 is outside of axis 1"), (([np.int64(7)],), "7 is outside of axis 0")):
        for call in (lambda: x[key], lambda: x.__setitem__(key, 0)):
            checks.true(text in str(checks.raises(IndexError, call)), key)


def test_numbers_out_of_range():
    """A number that does not do is named, with what would."""
    x = TensorDataset(Tensor.ones(3))
    for call, text in ((lambda: DataLoader(x, batch_size=0), "DataLoader: batch_size: a number from 1 to 2**32 - 1 is wanted, not 0"),
                       (lambda: DataLoader(x, num_workers=-1), "DataLoader: num_workers: a number from 0 to 2**31 - 1 is wanted, not -1"),
                       (lambda: DataLoader(x, prefetch_factor=0), "DataLoader: prefetch_factor: a number from 1 to 2**31 - 1 is wanted, not 0"),
                       (lambda: Tensor.manual_seed(2**80), f"manual_seed: seed: a whole number from -2**63 to 2**64 - 1 is wanted, not {2**80}"),
                       (lambda: Tensor.manual_seed(-2**63 - 1), f"manual_seed: seed: a whole number from -2**63 to 2**64 - 1 is wanted, not {-2**63 - 1}")):
        checks.equal(str(checks.raises((ValueError, OverflowError), call)), text)
    for name, call in (("arange", lambda: Tensor.arange(1 << 62)), ("linspace", lambda: Tensor.linspace(0, 1, 1 << 60)), ("full", lambda: Tensor.full((1 << 50,), 1))):
        checks.equal(str(checks.raises(ValueError, call)), f"{name}: more than 2^48 elements are not possible")


checks.run(globals())
