#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs as users of tinygrad and of PyTorch write them, with the import lines changed: plain classes, layers, modules,
optimisers, captured steps, saved states, training on Fashion-MNIST.

TAP. usage: test_programs.py SOURCE. Run in the build's environment, by an interpreter that has gi and numpy."""
import os
import sys
import tempfile
import textwrap

import checks
import numpy as np
import tinycore as torch
import tinycore.nn.functional as F
from tinycore import Context, Device, Tensor, TinyJit, dtypes, nn, optim
from tinycore.nn.datasets import fashion_mnist
from tinycore.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save


def test_matrix_product():
    """A product and a reduction, fused or not, as one expression over broadcast views."""
    n = 64
    a, b = Tensor.rand(n, n), Tensor.rand(n, n)
    c = (a.reshape(n, 1, n) * b.T.reshape(1, n, n)).sum(axis=2)
    checks.true(np.abs(c.numpy() - a.numpy() @ b.numpy()).max() < 1e-3, "the product differs")


def test_plain_class():
    """A network without any layer: tensors in an object."""
    class Small:
        def __init__(self):
            self.l1 = Tensor.kaiming_uniform(784, 32)
            self.l2 = Tensor.kaiming_uniform(32, 10)

        def __call__(self, x: Tensor) -> Tensor:
            return x.flatten(1).dot(self.l1).relu().dot(self.l2)

    Tensor.manual_seed(3)
    model = Small()
    optimizer = nn.optim.Adam([model.l1, model.l2], lr=0.01)
    x, y = Tensor.rand(4, 1, 28, 28), Tensor([2, 4, 3, 7])
    losses = []
    with Tensor.train():
        for _ in range(10):
            optimizer.zero_grad()
            loss = model(x).sparse_categorical_crossentropy(y).backward()
            optimizer.step()
            losses.append(loss.item())
    checks.true(losses[-1] < losses[0] / 3, losses)


def test_first_steps():
    """Making tensors and computing with them."""
    t1 = Tensor([1, 2, 3, 4, 5])
    t2 = Tensor(np.array([1, 2, 3, 4, 5]))
    checks.equal((t1.dtype, t2.dtype), (dtypes.int32, dtypes.int64))
    full = Tensor.full(shape=(2, 3), fill_value=5)
    checks.equal([Tensor.full_like(full, fill_value=2).tolist(), Tensor.zeros_like(full).tolist()], [[[2] * 3] * 2, [[0] * 3] * 2])
    checks.equal(Tensor.eye(3).sum().item(), 3)
    checks.equal(Tensor.arange(start=0, stop=10, step=2).tolist(), [0, 2, 4, 6, 8])
    for made in (Tensor.rand(2, 3), Tensor.randn(2, 3), Tensor.uniform(2, 3, low=0, high=10), Tensor.ones(2, 3), Tensor.zeros(2, 3)):
        checks.equal((made.shape, made.dtype), ((2, 3), dtypes.float32))
    t4 = Tensor([1, 2, 3, 4, 5])
    t6 = ((t4 + 1) * 2 * t4).relu().log_softmax()
    wanted = np.array([4.0, 12, 24, 40, 60])
    wanted = wanted - np.log(np.exp(wanted - 60).sum()) - 60
    checks.true(np.abs(t6.numpy() - wanted).max() < 1e-4, t6.numpy())
    x = Tensor.eye(3, requires_grad=True)
    y = Tensor([[2.0, 0, -2.0]], requires_grad=True)
    y.matmul(x).sum().backward()
    checks.equal((x.grad.tolist(), y.grad.tolist()), ([[2] * 3, [0] * 3, [-2] * 3], [[1, 1, 1]]))


def test_layers_in_a_class():
    """Layers as attributes, a captured step, and the state of all of it saved and loaded."""
    class Net:
        def __init__(self):
            self.conv = nn.Conv2d(1, 8, kernel_size=(3, 3))
            self.norm = nn.BatchNorm(8)
            self.parts = [nn.Linear(8 * 13 * 13, 32), Tensor.relu, nn.Linear(32, 10)]

        def __call__(self, x):
            return self.norm(self.conv(x)).relu().max_pool2d((2, 2)).flatten(1).sequential(self.parts)

    Tensor.manual_seed(1)
    images, labels, *_ = fashion_mnist()
    net = Net()
    step_optimizer = nn.optim.AdamW(get_parameters(net), lr=0.002)

    @TinyJit
    @Tensor.train()
    def step(x, y):
        step_optimizer.zero_grad()
        loss = net(x).sparse_categorical_crossentropy(y).backward()
        step_optimizer.step()
        return loss

    losses = [step(images[i:i + 32].float().div(255), labels[i:i + 32]).item() for i in range(0, 40 * 32, 32)]
    checks.true(sum(losses[-8:]) < 0.6 * sum(losses[:8]), losses)
    test = net(images[2000:2200].float() / 255)
    accuracy = (test.argmax(axis=1) == labels[2000:2200]).mean().item()
    checks.true(accuracy > 0.55, accuracy)
    names = set(get_state_dict(net))
    checks.true({"conv.weight", "conv.bias", "norm.running_mean", "parts.0.weight", "parts.2.bias"} <= names, names)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.safetensors")
        safe_save(get_state_dict(net), path)
        other = Net()
        load_state_dict(other, safe_load(path))
    again = other(images[2000:2200].float() / 255)
    checks.true(np.abs((again - test).numpy()).max() < 1e-4, "the loaded network differs")
    checks.raises(ValueError, load_state_dict, other, {"conv.weight": net.conv.weight})
    checks.raises(ValueError, load_state_dict, other, {"conv.weight": net.conv.bias}, strict=False)


class Net(nn.Module):
    """In PyTorch's way."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.dropout = nn.Dropout(0.1)
        self.fc1 = nn.Linear(1352, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        x = self.dropout(F.relu(self.fc1(x)))
        return F.log_softmax(self.fc2(x), dim=1)


def test_training_loop():
    """Epochs over batches, a schedule of rates, evaluation without gradients."""
    torch.manual_seed(7)
    images, labels, *_ = fashion_mnist()
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    losses = []
    for _ in range(2):
        model.train()
        for i in range(0, 25 * 32, 32):
            data, target = images[i:i + 32].float() / 255, labels[i:i + 32].long()
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    checks.true(sum(losses[-5:]) < 0.6 * sum(losses[:5]), losses)
    checks.true(abs(optimizer.param_groups[0]["lr"] - 0.0125) < 1e-6, optimizer.lr)
    model.eval()
    correct = 0
    with torch.no_grad():
        for i in range(1000, 1200, 100):
            output = model(images[i:i + 100].float() / 255)
            prediction = output.argmax(dim=1, keepdim=True)
            correct += prediction.eq(labels[i:i + 100].view_as(prediction)).sum().item()
    checks.true(correct > 100, correct)
    saved = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    other = Net()
    other.load_state_dict(saved)
    other.eval()
    checks.true(np.abs((other(images[:2].float()) - model(images[:2].float())).numpy()).max() < 1e-3, "loaded differs")


def test_readme():
    """The program of the README learns."""
    text = open(os.path.join(sys.argv[1], "README.md")).read().split("## From Python")[1].split("## ")[0]
    program = textwrap.dedent("".join(line for line in text.splitlines(True) if line.startswith("    ") or not line.strip()))
    names = {}
    exec(program, names)
    checks.true(len(names["losses"]) == 50 and names["losses"][-1] < 0.8 * names["losses"][0], names["losses"])


def test_modes():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.9), nn.Flatten())
    checks.equal(len(list(model.parameters())), 2)
    checks.equal([name for name, _ in model.named_parameters()], ["0.weight", "0.bias"])
    x = Tensor.ones(64, 4)
    model.eval()
    checks.equal((model(x) == model(x)).all().item(), True)
    checks.equal((model.training, nn.Dropout().training, nn.Dropout().eval().training), (False, True, False))
    checks.equal(nn.Dropout(0.5).eval()(x).tolist(), x.tolist())
    checks.true(0 < (nn.Dropout(0.5)(x) == 0).sum().item() < 256, "dropout drops nothing or all")
    checks.true(0 < (nn.Sequential(nn.Dropout(0.5))(x) == 0).sum().item() < 256, "a Sequential's dropout drops nothing or all")
    norm = nn.BatchNorm(4)  # in a plain object, tinygrad's way: as Tensor.train () says
    checks.equal((norm.training, norm(x).allclose(x, atol=1e-4), nn.Sequential(nn.BatchNorm(4))[0].training), (False, True, True))
    with Tensor.train():
        checks.equal(norm.training, True)
        checks.true(0 < (x.dropout(0.5) == 0).sum().item() < 256, "dropout drops nothing or all")
    checks.true("Linear(in_features=4" in repr(model), repr(model))
    with Context(DEBUG=0):
        checks.equal(Device[Device.DEFAULT].name, Device.DEFAULT)


checks.run(globals())
