#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tensors on several devices: every operation gives what it gives on one, whatever the tensors are cut along; training in parallel
is training. Devices are the default one opened several times, and the CPU beside it.

TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import itertools
import os
import tempfile

import checks
from tinycore import Device, Tensor, TinyJit, dtypes, func, nn, no_grad

HOME = Device.DEFAULT
PAIR, FOUR, MIXED = (HOME, f"{HOME}:1"), (HOME, f"{HOME}:1", f"{HOME}:2", f"{HOME}:3"), (f"{HOME}:1", "CPU:2")
PAIR_TEXT, FOUR_TEXT = ";".join(PAIR), ";".join(FOUR)


def numbers(*shape, seed=1, dtype=dtypes.float32):
    """Whole numbers, so that sums are exact in any order; signs and zeros of both kinds among them."""
    n = 1
    for size in shape:
        n *= size
    values = [((i * 7 + seed * 5) % 13) - 6 for i in range(n)]
    return Tensor([float(v) if v else -0.0 for v in values], dtype=dtypes.float32).reshape(shape).cast(dtype).mul(1).realize()


def bits(tensor):
    return bytes(tensor.contiguous().bytes_of())


def cuts(tensor, devices):
    """@tensor whole on each device, and cut along every axis that is long enough."""
    yield tensor.shard(devices)
    for axis, size in enumerate(tensor.shape):
        if size >= len(devices):
            yield tensor.shard(devices, axis)


def same(function, *tensors, devices=PAIR):
    """@function of @tensors for every way to cut each of them."""
    wanted = function(*tensors).realize()
    for cut in itertools.product(*(cuts(tensor, devices) for tensor in tensors)):
        found = function(*cut)
        checks.equal(found.device, devices)
        checks.equal(found.shape, wanted.shape)
        checks.equal(bits(found.to(Device.DEFAULT)), bits(wanted), "put together")
        checks.equal(bits(found), bits(wanted), "read")


def test_devices():
    one = Tensor([1.0, 2.0]).to(PAIR[1])
    checks.equal(one.device, PAIR[1])
    checks.equal((one + one).tolist(), [2, 4])
    checks.equal(Tensor([1.0]).to("CPU:2").device, "CPU:2")
    found = checks.raises(LookupError, Tensor([1.0]).to, f"{HOME}:64")
    checks.true(f"{HOME}:0" in str(found) and f"{HOME}:63" in str(found), str(found))
    checks.raises(ValueError, lambda: Tensor([1.0]).to(HOME) + one)
    checks.equal(Device[FOUR[3]].name, FOUR[3])


def test_places():
    x = numbers(5, 3)
    for devices in (PAIR, FOUR, MIXED):
        for cut in cuts(x, devices):
            checks.equal((cut.device, cut.shape, cut.dtype), (devices, (5, 3), dtypes.float32))
            checks.equal(bits(cut), bits(x))
            checks.true(cut.realize().is_realized())
            for back in (*devices, f"{HOME}:5"):
                checks.equal((cut.to(back).device, bits(cut.to(back))), (back, bits(x)))
    checks.equal(x.shard(f"{HOME}:0-1", 0).device, PAIR)
    checks.equal(x.shard([HOME], 0).device, HOME)
    checks.equal(x.to(PAIR_TEXT).device, PAIR)
    checks.equal(Tensor([1.0, 2.0], device=PAIR).tolist(), [1, 2])
    checks.equal(Tensor.zeros(2, device=PAIR).device, PAIR)
    checks.equal(bits(x.shard(PAIR, 0).shard(PAIR, 1)), bits(x))
    checks.equal(bits(x.shard(PAIR, 0).shard(FOUR[2:], 0)), bits(x))
    checks.equal(bits(x.shard(PAIR, 0).shard(FOUR, 0)), bits(x))
    checks.equal(x.shard(PAIR, 0)[3, 1].item(), x[3, 1].item())
    checks.equal(Tensor(3.0).shard(PAIR).item(), 3)
    checks.equal(Tensor.zeros(0, 4).shard(PAIR, 1).tolist(), [])


def test_errors():
    x = numbers(4, 3)
    for what, text in ((lambda: x.shard([], 0), "no device"), (lambda: x.shard((HOME, f"{HOME}:0")), f"{HOME} is there twice"),
                       (lambda: x.shard(FOUR, 1), f"axis 1 of shape (4, 3) has no part for each of {FOUR_TEXT}"),
                       (lambda: x.shard(PAIR, 2), "axis 2 is outside"), (lambda: x.shard(PAIR) + x, f"{PAIR_TEXT} and on {HOME}"),
                       (lambda: x.shard(PAIR) + x.shard(FOUR), f"{PAIR_TEXT} and on {FOUR_TEXT}"),
                       (lambda: x.shard((HOME, "NO-SUCH"), 0), "NO-SUCH")):
        found = checks.raises((ValueError, LookupError), what)
        checks.true(text in str(found), str(found))
    y = numbers(4, 3)
    checks.raises(LookupError, y.shard_, (HOME, f"{HOME}:77"))
    checks.equal(y.device, HOME)
    checks.raises((BufferError, ValueError, NotImplementedError, RuntimeError), x.shard(PAIR, 0).__dlpack__)


def test_elementwise():
    same(lambda x, y: (x < y).where(x * y + 2, -x), numbers(4, 5), numbers(4, 5, seed=2))
    same(lambda x, y: x.maximum(y), numbers(4, 6), numbers(6, seed=3))
    same(lambda x: x.cast(dtypes.int32) // 3, numbers(5, 3), devices=FOUR)
    same(lambda x: x * Tensor.arange(6).reshape(2, 3), numbers(2, 3))
    same(lambda x: x + 1, numbers(2, 3), devices=MIXED)
    same(lambda x: (x.exp2() + 1).contiguous().detach(), numbers(3, 4))


def test_reductions():
    for axis in (0, 1, 2, (0, 2), None):
        same(lambda x: x.sum(axis), numbers(4, 5, 6))
    same(lambda x: x.max(1), numbers(4, 5), devices=FOUR)
    same(lambda x: x.prod(0), (numbers(4, 5) / 4).realize())
    same(lambda x: (x > 3).any(), numbers(4, 5))
    same(lambda x: x.argmax(1), numbers(4, 5))
    same(lambda x: x.cast(dtypes.int8).sum(0), numbers(5, 2))
    same(lambda x: x.mean(), numbers(4, 4), devices=MIXED)
    same(lambda x: x.cumsum(1), numbers(4, 5))


def test_movement():
    x = numbers(4, 6)
    for move in (lambda x: x.reshape(2, 2, 6), lambda x: x.reshape(24), lambda x: x.reshape(8, 3), lambda x: x.reshape(4, 2, 3),
                 lambda x: x.permute(1, 0), lambda x: x.T.reshape(24), lambda x: x.expand(3, 4, 6), lambda x: x.flip(0),
                 lambda x: x.flip(1), lambda x: x.flip((0, 1)), lambda x: x.pad(((1, 2), (0, 3))), lambda x: x[1:3], lambda x: x[:, 2:],
                 lambda x: x[3:], lambda x: x[::2], lambda x: x[:, ::-2], lambda x: x[2:2], lambda x: x.unfold(1, 3, 1),
                 lambda x: x.repeat(2, 2), lambda x: x.roll(1, 0), lambda x: x.squeeze().unsqueeze(1), lambda x: x.triu()):
        same(move, x)
        same(lambda x: move(x) + move(x), x, devices=FOUR)
    same(lambda x, y: x.cat(y, dim=0), numbers(3, 2), numbers(2, 2, seed=2))
    same(lambda x, y: x.stack(y, dim=1), numbers(3, 2), numbers(3, 2, seed=2))


def test_positions():
    at = Tensor([[0, 3], [2, 2], [1, 0], [3, 3]], dtype=dtypes.int32)
    same(lambda x, p: x.gather(0, p), numbers(4, 2), at)
    same(lambda x, p: x.gather(1, p), numbers(4, 4), at)
    same(lambda w, p: w[p], numbers(5, 3), Tensor([0, 4, 2, 2], dtype=dtypes.int32))
    same(lambda x: x.sort(1)[0], numbers(4, 6))
    same(lambda x, p: x.scatter(0, p, x * 2), numbers(4, 2), at)
    same(lambda x: x.masked_fill(x > 2, 9), numbers(4, 3))


def test_products():
    same(lambda x, w: x @ w, numbers(4, 6), numbers(6, 8, seed=2))
    same(lambda x, w: x @ w, numbers(2, 4, 6), numbers(2, 6, 4, seed=2))
    same(lambda x, w: (x @ w).relu().sum(0), numbers(4, 8), numbers(8, 4, seed=2), devices=FOUR)
    same(lambda x, w: x.conv2d(w, padding=1), numbers(2, 2, 5, 5), numbers(4, 2, 3, 3, seed=2))
    same(lambda x: x.max_pool2d((2, 2)), numbers(2, 2, 4, 4))


def test_in_place():
    x = numbers(4, 3)
    y = numbers(4, 3).shard_(PAIR, 0)
    checks.equal((y.device, bits(y)), (PAIR, bits(x)))
    y.assign(y * 2 + 1)
    y.assign(y + numbers(4, 3).shard(PAIR, 1))
    checks.equal(bits(y), bits(x * 3 + 1))
    y[1] = 7
    y[:, 2] = Tensor([1.0, 2.0, 3.0, 4.0]).shard(PAIR)
    x = (x * 3 + 1).contiguous().realize()
    x[1] = 7
    x[:, 2] = Tensor([1.0, 2.0, 3.0, 4.0])
    checks.equal(bits(y), bits(x))
    before = y + 1
    y.fill_(0)
    y.realize()
    checks.equal(bits(before), bits(x + 1))
    checks.equal(y.sum().item(), 0)
    checks.equal((y.to_(PAIR[1]).device, y.to_(None).device, y.to_(PAIR).device), (PAIR[1], HOME, PAIR))
    z = numbers(4, 3).requires_grad_()
    (z * z).sum().backward()
    z.shard_(PAIR, 0)
    checks.true(z.requires_grad)
    checks.equal((z.grad.device, bits(z.grad)), (PAIR, bits(numbers(4, 3) * 2)))


def change(x):
    """Changes @x through views of it, of several kinds."""
    x[1] = 7
    x.T[0, 2:] += x[2:, 1]
    x.reshape(2, 6)[1].assign(x.flip(0).reshape(2, 6)[0].contiguous() * 3)
    rows, transposed = x[2:], x.T
    x *= 2
    rows[:, ::2] -= 1
    transposed[1] = 5
    x.reshape(12)[3:5] = 0
    return x


def test_views():
    wanted = change(numbers(4, 3))
    for x in cuts(numbers(4, 3), PAIR):
        changed = change(x.contiguous().realize())
        checks.equal((changed.device, bits(changed)), (PAIR, bits(wanted)))
        x = x.contiguous().realize()
        row, before, far = x[1], (x[1] * 1).realize(), x[3:]
        x.write_data(bits(x * 2))
        checks.equal((row.tolist(), far.tolist()), ((before * 2).tolist(), (numbers(4, 3)[3:] * 2).tolist()))
        row.write_data(bits(before))
        checks.equal((x[1].tolist(), x[0].tolist()), (before.tolist(), (numbers(4, 3)[0] * 2).tolist()))
        x.to_(HOME)  # what was a view of it stays where it is
        x.fill_(0)
        checks.equal((row.device, row.tolist(), x.sum().item()), (PAIR, before.tolist(), 0))
        checks.raises(ValueError, lambda: far.assign(Tensor([[1.0, 2.0, 3.0]]).to(f"{HOME}:3")))


def test_own_shape():
    """Leaves in another shape than they were cut in."""
    for x in cuts(numbers(4, 6), PAIR):
        w = x.realize().reshape(6, 2, 2).requires_grad_()
        y = x.reshape(24)[1:].requires_grad_()
        ((w.reshape(24)[1:] * y).sum() + (w[0] * 3).sum()).backward()
        checks.equal((w.device, w.grad.device), (PAIR, PAIR))
        wanted = numbers(4, 6).reshape(24)
        first = [0.0] + wanted[1:].tolist()
        checks.equal(w.grad.reshape(24).tolist(), [a + (3 if i < 4 else 0) for i, a in enumerate(first)])
        checks.equal(y.grad.tolist(), wanted[1:].tolist())
        with no_grad():
            w -= w.grad
        checks.equal(w.reshape(24).tolist(), (wanted - Tensor(first) - Tensor([3.0] * 4 + [0.0] * 20)).tolist())
        checks.equal(x.reshape(24).tolist(), w.reshape(24).tolist())


def test_like():
    x = numbers(6, 4)
    for like in cuts(x, PAIR):
        checks.equal(bits(x.shard_like(like)), bits(x))
        checks.equal(bits(x.shard_like(like) + like), bits(x + x))
    checks.equal(x.shard_like(numbers(2).to(PAIR[1])).device, PAIR[1])
    checks.equal(bits(x.shard_like((x.shard(PAIR, 0) @ x.T.shard(PAIR)).relu())), bits(x))
    checks.equal(Tensor(2.0).shard_like(x.shard(PAIR, 0)).item(), 2)


def test_gradients():
    def loss(x, w):
        return ((x @ w).relu() * (x @ w)).sum() + (x.flip(0)[1:] * 2).sum() + w[0].sum()

    x, w = numbers(4, 6).requires_grad_(), numbers(6, 8, seed=2).requires_grad_()
    wanted = [bits(g) for g in loss(x, w).gradient(x, w)]
    for cut_x, cut_w in itertools.product(cuts(x.detach(), PAIR), cuts(w.detach(), PAIR)):
        leaves = [cut_x.detach().requires_grad_(), cut_w.detach().requires_grad_()]
        loss(*leaves).backward()
        for leaf, want in zip(leaves, wanted):
            checks.equal((leaf.grad.device, bits(leaf.grad)), (PAIR, want))
    # Through moving: the gradient comes back to where it came from.
    loss(x.shard(PAIR, 0), w.shard(PAIR)).backward()
    checks.equal([(leaf.grad.device, bits(leaf.grad)) for leaf in (x, w)], [(HOME, want) for want in wanted])
    x.grad = w.grad = None
    middle = x.shard(PAIR, 1).realize()  # its history is kept
    loss(middle.to(HOME), w).backward()
    checks.equal(bits(x.grad), wanted[0])


def test_transforms():
    """Functions that move between devices, batched and differentiated in both directions."""
    def apart(x):
        return (x.shard(PAIR, 0) * x.shard(PAIR) + 1).sum(0).to(HOME) * x.shard(PAIR, -1).to(HOME)

    x, v = numbers(3, 4, 2), numbers(3, 4, 2, seed=2)

    def plain(x):
        return (x * x + 1).sum(0) * x

    checks.equal(bits(func.vmap(apart)(x)), bits(func.vmap(plain)(x)))
    for found, wanted in zip(func.jvp(apart, (x[0],), (v[0],)), func.jvp(plain, (x[0],), (v[0],))):
        checks.equal(bits(found), bits(wanted))
    checks.equal(bits(func.jacrev(apart)(x[0])), bits(func.jacrev(plain)(x[0])))


class Net:
    def __init__(self):
        Tensor.manual_seed(3)
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def __call__(self, x):
        return self.second(self.first(x).tanh())


def train(place, optimizer, jit=False, n=6):
    """Losses of a few steps of a net that @place puts on devices, and what is learnt."""
    net = Net()
    parameters = nn.state.get_parameters(net)
    place(net, parameters)
    steps = optimizer(parameters)

    def step(x, y):
        steps.zero_grad()
        loss = net(x).sparse_categorical_crossentropy(y)
        loss.backward()
        steps.step()
        return loss.realize()

    function, losses = TinyJit(step) if jit else step, []
    for i in range(n):
        x, y = numbers(8, 8, seed=i) / 6, (numbers(8, seed=i).cast(dtypes.int32).abs() % 4)
        if isinstance(parameters[0].device, tuple):
            x, y = x.shard(parameters[0].device, 0), y.shard(parameters[0].device, 0)
        with Tensor.train():
            losses.append(function(x.realize(), y.realize()).item())
    return losses, [p.to(HOME).tolist() for p in parameters]


def close(found, wanted, within):
    if isinstance(wanted, (list, tuple)):
        return len(found) == len(wanted) and all(close(f, w, within) for f, w in zip(found, wanted))
    return abs(found - wanted) <= within


def replicated(devices):
    def place(net, parameters):
        for p in parameters:
            p.shard_(devices)
    return place


def cut_weights(net, parameters):
    """The first layer's outputs and the second layer's inputs."""
    net.first.weight.shard_(PAIR, 0)
    net.first.bias.shard_(PAIR, 0)
    net.second.weight.shard_(PAIR, 1)
    net.second.bias.shard_(PAIR)


def test_training():
    for optimizer in (lambda p: nn.optim.SGD(p, 0.1, momentum=0.9), lambda p: nn.optim.AdamW(p, 0.01)):
        wanted = train(lambda net, parameters: None, optimizer)
        for place in (replicated(PAIR), replicated(FOUR), cut_weights):
            for jit in (False, True):
                found = train(place, optimizer, jit)
                checks.true(close(found, wanted, 1e-5), f"{found[0]} and {wanted[0]}")


def test_jit():
    w = numbers(4, 4).shard(PAIR).realize()

    @TinyJit
    def apply(x):
        return (x @ w + x.sum(0)).realize()

    for i in range(5):
        x = numbers(6, 4, seed=i)
        checks.equal(bits(apply(x.shard(PAIR, 0))), bits(x @ w.to(HOME) + x.sum(0)))
    checks.true(apply.captured)
    x = numbers(6, 4)  # cut along another axis: another recording
    found, wanted = apply(x.shard(PAIR, 1)), x @ w.to(HOME) + x.sum(0)
    checks.true(found.to(HOME).isclose(wanted, rtol=1e-5, atol=1e-5).all().item(), f"{found.tolist()} and {wanted.tolist()}")
    Tensor.manual_seed(1)
    wanted = (numbers(4, 4) * Tensor.rand(4, 4)).tolist()
    Tensor.manual_seed(1)
    checks.equal((numbers(4, 4).shard(PAIR, 0) * Tensor.rand(4, 4).to(PAIR)).tolist(), wanted)


def test_files():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.safetensors")
        nn.state.safe_save({"w": numbers(4, 3).shard(PAIR, 0), "b": numbers(3).shard(PAIR)}, path)
        found = nn.state.safe_load(path)
        checks.equal((found["w"].tolist(), found["b"].tolist()), (numbers(4, 3).tolist(), numbers(3).tolist()))
        net = Net()
        replicated(PAIR)(net, nn.state.get_parameters(net))
        state = {name: p.to(HOME) * 2 for name, p in nn.state.get_state_dict(net).items()}
        nn.state.load_state_dict(net, state)
        checks.equal(net.first.weight.device, PAIR)
        checks.equal(net.first.weight.tolist(), state["first.weight"].tolist())


def test_values():
    """What reads values, and what knows nothing of devices."""
    x = numbers(4, 3)
    cut = x.shard(PAIR, 0)
    checks.equal(repr(cut).count(PAIR[1]), 1)
    checks.equal(cut.masked_select(cut > 2).tolist(), x.masked_select(x > 2).tolist())
    checks.equal(cut.nonzero().tolist(), x.nonzero().tolist())
    with no_grad():
        checks.equal((cut * 2).tolist(), (x * 2).tolist())


checks.run(globals())
