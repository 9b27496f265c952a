#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs as tinygrad's README, quick start and examples have them, and its names beside tensors. The programs make the calls of today's (August
2026) with their imports naming this package; docs/names.md has what differs. The digits are a part of Fashion-MNIST, convolutions are narrower, and
what today's README compares with PyTorch says requires_grad=True here. Programs of before 0.14 are beside them.

TAP. Run in the build's environment, by an interpreter that has gi and numpy."""
import contextlib
import gzip
import io
import os
import sys
import tempfile

import checks
import tinycore
from tinycore import Tensor, TinyJit, helpers
from tinycore.nn import datasets

whole = datasets.fashion_mnist


def part(*arguments, **more):
    """Enough to learn from and soon done."""
    return tuple(one[:2048 if i < 2 else 256] for i, one in enumerate(whole()))


def run(text):
    """What the program leaves, and what it prints."""
    names, out = {"__name__": "__main__"}, io.StringIO()
    before, datasets.mnist, training = datasets.mnist, part, Tensor.training
    Tensor.manual_seed(7)
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(text.replace("tinygrad", "tinycore"), "program", "exec"), names)
    finally:
        datasets.mnist, Tensor.training = before, training
    return names, out.getvalue()


def test_readme():
    names, text = run("""
from tinygrad import Tensor, nn

N = 64
a, b = Tensor.empty(N, N), Tensor.empty(N, N)
(a.reshape(N, 1, N) * b.T.reshape(1, N, N)).sum(axis=2).realize()

x = Tensor.eye(3, requires_grad=True)
y = Tensor([[2.0,0,-2.0]], requires_grad=True)
z = y.matmul(x).sum()
z.backward()
print(x.grad.tolist())  # dz/dx
print(y.grad.tolist())  # dz/dy

class LinearNet:
  def __init__(self):
    self.l1 = Tensor.kaiming_uniform(784, 128)
    self.l2 = Tensor.kaiming_uniform(128, 10)
  def __call__(self, x:Tensor) -> Tensor:
    return x.flatten(1).dot(self.l1).relu().dot(self.l2)

model = LinearNet()
optim = nn.optim.Adam([model.l1, model.l2], lr=0.001)

x, y = Tensor.rand(4, 1, 28, 28), Tensor([2,4,3,7])  # replace with real mnist dataloader

losses = []
with Tensor.train():
  for i in range(10):
    optim.zero_grad()
    loss = model(x).sparse_categorical_crossentropy(y).backward()
    optim.step()
    print(i, loss.item())
    losses.append(loss.item())
""")
    checks.true(text.startswith("[[2.0, 2.0, 2.0], [0.0, 0.0, 0.0], [-2.0, -2.0, -2.0]]\n[[1.0, 1.0, 1.0]]\n"), text)
    checks.true(names["losses"][-1] < names["losses"][0] / 2, names["losses"])


def test_readme_of_today():
    """Parameters are what is there, and Context says that it is training."""
    names, _ = run("""
from tinygrad import Tensor, nn, Context

class LinearNet:
  def __init__(self):
    self.l1 = Tensor.kaiming_uniform(784, 128)
    self.l2 = Tensor.kaiming_uniform(128, 10)
  def __call__(self, x:Tensor) -> Tensor:
    return x.flatten(1).dot(self.l1).relu().dot(self.l2)

model = LinearNet()
optim = nn.optim.Adam([model.l1, model.l2], lr=0.001)

x, y = Tensor.rand(4, 1, 28, 28), Tensor([2,4,3,7])  # replace with real mnist dataloader

losses = []
with Context(TRAINING=1):
  for i in range(10):
    optim.zero_grad()
    loss = model(x).sparse_categorical_crossentropy(y).backward()
    optim.step()
    losses.append(loss.item())
""")
    checks.true(names["losses"][-1] < names["losses"][0] / 2, names["losses"])


def test_training_context():
    x = Tensor.ones(1000)
    checks.equal([Tensor.training, x.dropout(0.5).sum().item()], [False, 1000])
    with helpers.Context(TRAINING=1, DEBUG=0):
        checks.equal([Tensor.training, x.dropout(0.5).sum().item() != 1000], [True, True])
        with helpers.Context(TRAINING=0):
            checks.equal(Tensor.training, False)
    checks.equal(Tensor.training, False)
    checks.raises(ValueError, helpers.Context(TRAINING=1, NO_SUCH_SETTING=1).__enter__)
    checks.equal(Tensor.training, False)


def test_function():
    @tinycore.function
    def twice(x):
        return x * 2

    @tinycore.function(precompile=True)
    def thrice(x):
        return x * 3
    checks.equal([twice(Tensor([1.0])).tolist(), thrice(Tensor([1.0])).tolist()], [[2.0], [3.0]])
    checks.raises(NotImplementedError, tinycore.function, twice, grad_fxn=twice)


def test_digits_are_no_clothes():
    """Without the digits there is an error that says where they go; with them they are read."""
    before = os.environ.get("TINY_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TINY_CACHE_DIR"] = folder
        try:
            text = str(checks.raises(OSError, datasets.mnist))
            checks.true(os.path.join(folder, "mnist") in text and "train-images-idx3-ubyte.gz" in text and "fashion=True" in text, text)
            place = os.path.join(folder, "mnist")
            os.mkdir(place)
            checks.true(place in str(checks.raises((OSError, ValueError), datasets.mnist)))
        finally:
            os.environ.pop("TINY_CACHE_DIR")
            os.environ.update({} if before is None else {"TINY_CACHE_DIR": before})
    checks.equal(datasets.mnist(fashion=True)[0].shape, (60000, 1, 28, 28))


def test_quick_start():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        names, text = run("""
import numpy as np
from tinygrad import Tensor, Device, dtypes, TinyJit
from tinygrad.nn import Linear
from tinygrad.nn.optim import SGD
from tinygrad.nn.state import safe_save, safe_load, get_state_dict, load_state_dict
from tinygrad.nn.datasets import mnist
from tinygrad.helpers import Timing

print(Device.DEFAULT)
t1 = Tensor([1, 2, 3, 4, 5])
na = np.array([1, 2, 3, 4, 5])
t2 = Tensor(na)
full = Tensor.full(shape=(2, 3), fill_value=5)
zeros, ones = Tensor.zeros(2, 3), Tensor.ones(2, 3)
full_like = Tensor.full_like(full, fill_value=2)
eye = Tensor.eye(3)
arange = Tensor.arange(start=0, stop=10, step=1)
rand, randn = Tensor.rand(2, 3), Tensor.randn(2, 3)
uniform = Tensor.uniform(2, 3, low=0, high=10)
t3 = Tensor([1, 2, 3, 4, 5], dtype=dtypes.int32)
t4 = Tensor([1, 2, 3, 4, 5])
t5 = (t4 + 1) * 2
t6 = (t5 * t4).relu().log_softmax()

class TinyNet:
  def __init__(self):
    self.l1 = Linear(784, 128, bias=False)
    self.l2 = Linear(128, 10, bias=False)

  def __call__(self, x):
    x = self.l1(x)
    x = x.leaky_relu()
    x = self.l2(x)
    return x

net = TinyNet()
opt = SGD([net.l1.weight, net.l2.weight], lr=3e-4)
X_train, Y_train, X_test, Y_test = mnist()

accs = []
with Tensor.train():
  for step in range(60):
    samples = Tensor.randint(64, high=X_train.shape[0])
    batch = X_train[samples].reshape(64, 784)
    labels = Y_train[samples]
    out = net(batch)
    loss = out.sparse_categorical_crossentropy(labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    pred = out.argmax(axis=-1)
    acc = (pred == labels).mean()
    accs.append(acc.item())

with Timing("Time: "):
  avg_acc = 0
  for step in range(3):
    samp = np.random.randint(0, X_test.shape[0], size=(64))
    batch = Tensor(X_test.numpy()[samp].reshape(64, 784), requires_grad=False)
    labels = Y_test.numpy()[samp]
    out = net(batch)
    pred = out.argmax(axis=-1).numpy()
    avg_acc += (pred == labels).mean()
  print(f"Test Accuracy: {avg_acc / 3}")

@TinyJit
def jit(x):
  return net(x).realize()

for step in range(4):
  out = jit(Tensor.rand(64, 784, requires_grad=False))

state_dict = get_state_dict(net)
safe_save(state_dict, "model.safetensors")
state_dict = safe_load("model.safetensors")
load_state_dict(net, state_dict)
""")
        os.chdir("/")
    checks.true(sum(names["accs"][-10:]) / 10 > 0.5, names["accs"])
    checks.true("Time: " in text and " ms" in text and "Test Accuracy: " in text, text)
    checks.equal((sorted(names["state_dict"]), names["out"].shape), (["l1.weight", "l2.weight"], (64, 10)))


def test_mnist_tutorial():
    names, _ = run("""
from tinygrad import Tensor, nn, Device, TinyJit
from tinygrad.nn.datasets import mnist

class Model:
  def __init__(self):
    self.l1 = nn.Conv2d(1, 32, kernel_size=(3,3))
    self.l2 = nn.Conv2d(32, 64, kernel_size=(3,3))
    self.l3 = nn.Linear(1600, 10)

  def __call__(self, x:Tensor) -> Tensor:
    x = self.l1(x).relu().max_pool2d((2,2))
    x = self.l2(x).relu().max_pool2d((2,2))
    return self.l3(x.flatten(1).dropout(0.5))

X_train, Y_train, X_test, Y_test = mnist()
model = Model()
first = (model(X_test).argmax(axis=1) == Y_test).mean().item()
optim = nn.optim.Adam(nn.state.get_parameters(model))
batch_size = 32

def step():
  Tensor.training = True  # makes dropout work
  samples = Tensor.randint(batch_size, high=X_train.shape[0])
  X, Y = X_train[samples], Y_train[samples]
  optim.zero_grad()
  loss = model(X).sparse_categorical_crossentropy(Y).backward()
  optim.step()
  return loss

jit_step = TinyJit(step)
for i in range(40):
  loss = jit_step()
  if i%20 == 19:
    Tensor.training = False
    acc = (model(X_test).argmax(axis=1) == Y_test).mean().item()
    print(f"step {i:4d}, loss {loss.item():.2f}, acc {acc*100.:.2f}%")
""")
    checks.true(names["acc"] > 0.5 > names["first"], (names["first"], names["acc"]))


def test_beautiful_mnist_of_today():
    """A model whose methods are recorded, each with its instance."""
    os.environ.update(BS="32", STEPS="30")
    names, _ = run("""
from typing import Callable
from tinygrad import Tensor, TinyJit, nn, GlobalCounters, function, Context
from tinygrad.helpers import getenv, colored, trange
from tinygrad.nn.datasets import mnist

class Model:
  def __init__(self):
    self.layers: list[Callable[[Tensor], Tensor]] = [nn.Conv2d(1, 8, 5), Tensor.relu, nn.BatchNorm(8), Tensor.max_pool2d, lambda x: x.flatten(1),
                                                     nn.Linear(1152, 10)]

  @function
  def __call__(self, x:Tensor) -> Tensor: return x.sequential(self.layers)

  @TinyJit
  @Context(TRAINING=1)
  def learn(self, xs:Tensor, ys:Tensor) -> Tensor:
    opt.zero_grad()
    chosen = Tensor.randint(getenv("BS", 512), high=xs.shape[0])
    loss = self(xs[chosen]).sparse_categorical_crossentropy(ys[chosen]).backward()
    return loss.realize(*opt.schedule_step())

  @TinyJit
  def accuracy(self, xs:Tensor, ys:Tensor) -> Tensor: return (self(xs).argmax(axis=1) == ys).mean()*100

xs, ys, test_xs, test_ys = mnist(fashion=getenv("FASHION"))
model, losses = Model(), []
opt = nn.optim.Adam(nn.state.get_parameters(model))
for i in (t:=trange(getenv("STEPS", 70))):
  GlobalCounters.reset()
  losses.append(model.learn(xs, ys).item())
  t.set_description(f"loss: {losses[-1]:6.2f}")
  if i%10 == 9: test_acc = model.accuracy(test_xs, test_ys).item()
""")
    checks.true(sum(names["losses"][-5:]) < sum(names["losses"][:5]) * 0.7, names["losses"])
    checks.true(names["test_acc"] > 30, names["test_acc"])


def test_beautiful_mnist():
    os.environ.update(BS="32", STEPS="30")
    names, text = run("""
from typing import List, Callable
from tinygrad import Tensor, TinyJit, nn, GlobalCounters
from tinygrad.helpers import getenv, colored, trange
from tinygrad.nn.datasets import mnist

class Model:
  def __init__(self):
    self.layers: List[Callable[[Tensor], Tensor]] = [
      nn.Conv2d(1, 8, 5), Tensor.relu,
      nn.Conv2d(8, 8, 5), Tensor.relu,
      nn.BatchNorm(8), Tensor.max_pool2d,
      nn.Conv2d(8, 16, 3), Tensor.relu,
      nn.Conv2d(16, 16, 3), Tensor.relu,
      nn.BatchNorm(16), Tensor.max_pool2d,
      lambda x: x.flatten(1), nn.Linear(144, 10)]

  def __call__(self, x:Tensor) -> Tensor: return x.sequential(self.layers)

if __name__ == "__main__":
  X_train, Y_train, X_test, Y_test = mnist(fashion=getenv("FASHION"))

  model = Model()
  opt = (nn.optim.Muon if getenv("MUON") else nn.optim.SGD if getenv("SGD") else nn.optim.Adam)(nn.state.get_parameters(model))

  @TinyJit
  @Tensor.train()
  def train_step() -> Tensor:
    opt.zero_grad()
    samples = Tensor.randint(getenv("BS", 512), high=X_train.shape[0])
    loss = model(X_train[samples]).sparse_categorical_crossentropy(Y_train[samples]).backward()
    return loss.realize(*opt.schedule_step())

  @TinyJit
  def get_test_acc() -> Tensor: return (model(X_test).argmax(axis=1) == Y_test).mean()*100

  test_acc, losses = float('nan'), []
  for i in (t:=trange(getenv("STEPS", 70))):
    GlobalCounters.reset()   # NOTE: this makes it nice for DEBUG=2 timing
    loss = train_step()
    if i%10 == 9: test_acc = get_test_acc().item()
    t.set_description(f"loss: {loss.item():6.2f} test_accuracy: {test_acc:5.2f}%")
    losses.append(loss.item())

  # verify eval acc
  if target := getenv("TARGET_EVAL_ACC_PCT", 0.0):
    if test_acc >= target and test_acc != 100.0: print(colored(f"{test_acc=} >= {target}", "green"))
    else: raise ValueError(colored(f"{test_acc=} < {target}", "red"))
""")
    checks.true(sum(names["losses"][-5:]) < sum(names["losses"][:5]) * 0.7, names["losses"])
    checks.true(names["test_acc"] > 30, names["test_acc"])


def test_helpers():
    helpers.GlobalCounters.reset()
    checks.equal(helpers.GlobalCounters.kernel_count, 0)
    (Tensor.rand(16, 16).realize() @ Tensor.rand(16, 16).realize()).realize()
    counters = tinycore.GlobalCounters
    checks.true(counters.kernel_count >= 1 and counters.global_ops >= 2 * 16 ** 3 and counters.global_mem > 0 and counters.time_sum_s > 0,
                [counters.kernel_count, counters.global_ops, counters.global_mem, counters.time_sum_s])
    os.environ["TINY_TEST_NUMBER"] = "3"
    checks.equal([helpers.getenv("TINY_TEST_NUMBER"), helpers.getenv("TINY_TEST_NUMBER", ""), helpers.getenv("TINY_TEST_NONE", 1.5)], [3, "3", 1.5])
    checks.equal([helpers.partition(range(5), lambda i: i % 2), helpers.dedup("abca"), helpers.argfix([1, 2]), helpers.argfix(1, 2)],
                 [([1, 3], [0, 2, 4]), ["a", "b", "c"], (1, 2), (1, 2)])
    checks.raises(ValueError, helpers.argfix, [1], 2)
    with helpers.Context(BEAM=3, TRAINING=1):
        checks.equal([helpers.BEAM >= 3, helpers.BEAM == 3, bool(helpers.BEAM), helpers.BEAM < 3, helpers.TRAINING.value, [7, 8][helpers.TRAINING]],
                     [True, True, True, False, 1, 8])
    checks.equal([bool(helpers.BEAM), helpers.BEAM <= 0, helpers.BEAM > 0, int(helpers.TRAINING)], [False, True, False, 0])
    out = io.StringIO()
    with contextlib.redirect_stdout(out), helpers.Profiling(frac=1.0):
        sorted("ab")
    checks.true("built-in method builtins.sorted" in out.getvalue(), out.getvalue())
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "some")
        with open(path, "wb") as file:
            file.write(gzip.compress(b"text"))
        place = helpers.fetch(f"file://{path}", os.path.join(folder, "other"), gunzip=True)
        checks.equal([place.read_bytes(), str(helpers.fetch(path)), os.listdir(folder).count("other")], [b"text", path, 1])
    out = io.StringIO()
    with contextlib.redirect_stdout(out), helpers.Timing("it took ", on_exit=lambda ns: f", {ns > 0}") as timing:
        pass
    checks.true(out.getvalue().startswith("it took ") and out.getvalue().endswith(" ms, True\n") and timing.et > 0, out.getvalue())
    checks.equal([helpers.all_same([1, 1]), helpers.all_same([1, 2]), helpers.argsort((3, 1, 2)), helpers.make_tuple(2, 3), helpers.make_tuple([2, 3], 2),
                  helpers.merge_dicts([{"a": 1}, {"a": 1, "b": 2}])], [True, False, (1, 2, 0), (2, 2, 2), (2, 3), {"a": 1, "b": 2}])
    checks.equal([helpers.prod((2, 3, 4)), helpers.flatten([[1, 2], [3]]), helpers.round_up(5, 4)], [24, [1, 2, 3], 8])
    os.environ.pop("NO_COLOR", None)
    checks.equal([helpers.colored("a", "red"), helpers.colored("a", None), helpers.colored("a", "GREEN", True)], ["\u001b[31ma\u001b[0m", "a", "\u001b[102ma\u001b[0m"])
    checks.equal([list(helpers.trange(3, disable=True)), list(helpers.tqdm("ab", disable=True))], [[0, 1, 2], ["a", "b"]])


def test_names():
    """What tinygrad's methods take and others do not."""
    x = Tensor([[3.0, 1.0], [2.0, 4.0]])
    checks.equal([x.is_param, x.clone().is_param_(False).is_param, x.max_shape, x.max_numel(), x.ufix(2).tolist(), x.ufix(x) is x, len(x.exp().schedule_linear())],
                 [True, False, (2, 2), 4, 2.0, True, 1])
    image, weight = Tensor.rand(1, 4, 3, 3).realize(), Tensor.rand(4, 1, 2, 2).realize()
    checks.equal([x.image_dot(x).tolist(), image.image_conv2d(weight, groups=4, padding=1).tolist()], [x.dot(x).tolist(), image.conv2d(weight, groups=4, padding=1).tolist()])
    checks.equal([x.cumsum().tolist(), x.cumprod().tolist(), x.cummax().values.tolist(), x.logcumsumexp().shape], [
        [[3, 1], [5, 5]], [[3, 1], [6, 4]], [[3, 1], [3, 4]], (2, 2)])
    checks.equal(x.topk(1, sorted_=False).values.tolist(), [[3.0], [4.0]])
    checks.equal([x.pad_to(3, None).tolist(), x.pad_to((None, 3), 1.0).tolist(), x.pad_to(2, 3, value=2).tolist()], [
        [[3, 1], [2, 4], [0, 0]], [[3, 1, 1], [2, 4, 1]], [[3, 1, 2], [2, 4, 2]]])
    checks.equal([x.shrink_to(1, None).tolist(), x.shrink_to((None, 1)).tolist()], [[[3, 1]], [[3], [2]]])
    w, b = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), Tensor([1.0, 0.0, 0.0])
    checks.equal([x.linear(w, b).tolist(), x.linear(Tensor([1.0, 10.0])).tolist()], [[[8, 11, 15], [19, 24, 30]], [[3, 10], [2, 40]]])
    checks.equal(tinycore.nn.functional.linear(x, w.T, b).tolist(), x.linear(w, b).tolist())
    for wrong in (lambda: x.pad_to(1, None), lambda: x.shrink_to(3, None), lambda: x.shrink_to((1, 1), 1), lambda: x.shrink_to(1), lambda: x.linear(x.T[:1])):
        checks.raises((TypeError, ValueError), wrong)


checks.run(globals())
