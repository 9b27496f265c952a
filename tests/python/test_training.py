#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training as PyTorch's programs do it: narrow floats, gradients of what is named, hooks, calls with other tensors, sequences of several
lengths, spectral norms, orders of items. Beside PyTorch where that is there.

TAP. Run in the build's environment, by an interpreter that has gi; with torch more is compared."""
import gc
import traceback
import weakref

import checks
import tinycore
from tinycore import Tensor, TinyError, TinyJit, amp, autograd, dtypes, func, nn, optim
from tinycore.nn.utils import rnn
from tinycore.utils import data

try:
    import torch
except ImportError:
    torch = None


def close(found, wanted, bound=1e-5):
    found, wanted = Tensor(found.detach().numpy()) if not isinstance(found, Tensor) else found, Tensor(wanted.detach().numpy() if hasattr(wanted, "detach") else wanted)
    checks.equal(found.shape, wanted.shape)
    # Relative to the largest number: an error of a hundredth is no rounding, however small all of them are.
    most = bound * wanted.abs().max().item()
    checks.true((found - wanted).abs().max().item() <= most, f"{found.tolist()} is not {wanted.tolist()}")


# ---- narrow floats ----
def test_autocast():
    x, w = Tensor.ones(4, 8), Tensor.ones(8, 8, requires_grad=True)
    image, kernel = Tensor.ones(1, 2, 5, 5), Tensor.ones(3, 2, 3, 3)
    checks.equal([amp.is_autocast_enabled(), amp.get_autocast_dtype()], [False, None])
    for dtype in (dtypes.bfloat16, dtypes.float16):
        with amp.autocast("cpu", dtype=dtype):
            checks.equal([amp.is_autocast_enabled(), amp.get_autocast_dtype()], [True, dtype])
            product = x @ w
            checks.equal([one.dtype for one in (product, x.linear(w), nn.Linear(8, 2)(x), image.conv2d(kernel), product + 1, product.relu())], [dtype] * 6)
            checks.equal([one.dtype for one in (product + x, product.softmax(), product.exp(), product.sum(), product.layer_norm((8,)),
                                                product.cross_entropy(Tensor([0, 1, 2, 3])), x * 2, x.sqrt())], [dtypes.float32] * 8)
            checks.equal([(x.double() @ w.double()).dtype, (Tensor([[1]]) @ Tensor([[2]])).dtype], [dtypes.float64, dtypes.int32])
            with amp.autocast(enabled=False):
                checks.equal((x @ w).dtype, dtypes.float32)
            loss = product.square().mean()
        checks.equal([amp.is_autocast_enabled(), (x @ w).dtype], [False, dtypes.float32])
        w.grad = None
        loss.backward()
        checks.equal([w.grad.dtype, w.grad[0, 0].item()], [dtypes.float32, 2.0])
    checks.equal([amp.autocast("cuda").dtype, tinycore.autocast("cpu").dtype], [dtypes.float16, dtypes.bfloat16])
    checks.raises(ValueError, amp.autocast, "cpu", dtype="float32")


def test_autocast_rounds():
    """The product is of rounded numbers, and the sum of its elements is not rounded again."""
    x, w = Tensor([[1.001, 1.0]]), Tensor([[1.0], [0.0]])
    with amp.autocast(dtype=dtypes.bfloat16):
        found = x @ w
    checks.equal([found.float().item(), (x @ w).item() == found.float().item()], [1.0, False])


def test_autocast_as_theirs():
    if torch is None:
        return
    names = ["softmax", "log_softmax", "exp", "log", "pow", "sum", "prod", "cumsum", "norm", "reciprocal", "rsqrt", "sinh", "cosh", "tan", "acos", "asin"]
    ours, theirs = Tensor.ones(2, 2).bfloat16(), torch.ones(2, 2, dtype=torch.bfloat16)
    calls = {"softmax": (-1,), "log_softmax": (-1,), "pow": (2,), "cumsum": (0,)}
    with amp.autocast(dtype=dtypes.bfloat16):
        found = {name: getattr(ours, name)(*calls.get(name, ())).dtype.name for name in names}
    checks.equal(found, dict.fromkeys(names, "float32"))  # their list for CUDA; the one for the CPU is shorter
    with torch.autocast("cpu", dtype=torch.bfloat16), amp.autocast(dtype=dtypes.bfloat16):
        checks.equal(str((theirs.float() @ theirs.float()).dtype), f"torch.{(ours.float() @ ours.float()).dtype.name}")


def test_jit_knows_autocast():
    """A recording is of one mode: the other one is recorded as well."""
    w = Tensor([[1.0], [0.0]]).realize()

    @TinyJit
    def product(x):
        return (x @ w).float().realize()

    x = Tensor([[1.001, 1.0]]).realize()
    plain = [product(x).item() for _ in range(3)]
    with amp.autocast(dtype=dtypes.bfloat16):
        narrow = [product(x).item() for _ in range(3)]
    checks.equal([narrow, plain[-1] == narrow[-1], product(x).item()], [[1.0] * 3, False, plain[-1]])


def scaled_step(scaler, optimizer, w, factor):
    optimizer.zero_grad()
    scaler.scale((w * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_scaler_state():
    w = Tensor([1.0], requires_grad=True)
    optimizer = nn.optim.SGD([w], lr=0.1)
    one = amp.GradScaler(init_scale=8.0, growth_factor=4.0, backoff_factor=0.25, growth_interval=3)
    for _ in range(2):
        scaled_step(one, optimizer, w, 1.0)
    state = one.state_dict()
    checks.equal(state, {"scale": 8.0, "growth_factor": 4.0, "backoff_factor": 0.25, "growth_interval": 3, "_growth_tracker": 2})
    two = amp.GradScaler()
    two.load_state_dict(state)
    checks.equal(two.state_dict(), state)
    scaled_step(two, optimizer, w, 1.0)
    checks.equal([two.get_scale(), one.get_scale()], [32.0, 8.0])
    scaled_step(two, optimizer, w, float("inf"))
    checks.equal(two.get_scale(), 8.0)
    scaled_step(two, optimizer, w, 1.0)
    checks.equal(two.state_dict()["_growth_tracker"], 1)
    if torch is not None:
        theirs = torch.amp.GradScaler("cpu", enabled=True) if hasattr(torch.amp, "GradScaler") else None
        if theirs is not None:
            theirs.load_state_dict(state)
            checks.equal({name: theirs.state_dict()[name] for name in state}, state)
    for wrong in ({}, {**state, "scale": 0.0}, {**state, "_growth_tracker": 9}):
        checks.raises(ValueError, two.load_state_dict, wrong)
        checks.equal(two.get_scale(), 8.0)
    checks.equal([amp.GradScaler(enabled=False).state_dict(), amp.GradScaler(2.0).get_scale(), amp.GradScaler("cpu", 2.0).get_scale()], [{}, 2.0, 2.0])
    two.scale(w.sum()).backward()
    two.unscale_(optimizer)
    checks.raises(ValueError, two.load_state_dict, state)
    two.update(16.0)
    checks.equal(two.get_scale(), 16.0)


# ---- gradients ----
def test_grad():
    x, y, other = (Tensor([float(i), 2.0], requires_grad=True) for i in (1, 3, 5))
    found = autograd.grad((x * x * y).sum(), (x, y))
    checks.equal([[one.tolist() for one in found], x.grad], [[[6.0, 8.0], [1.0, 4.0]], None])
    checks.equal([one.tolist() for one in autograd.grad([x * 2, (y * y).sum()], [x, y], [Tensor([1.0, 10.0]), None])], [[2.0, 20.0], [6.0, 4.0]])
    slope, = autograd.grad((x * x * x).sum(), x, create_graph=True)
    checks.equal(autograd.grad(slope.sum(), x)[0].tolist(), [6.0, 12.0])
    checks.equal([str(one is None) for one in autograd.grad(x.sum(), [x, other], allow_unused=True)], ["False", "True"])
    checks.equal(autograd.grad(x.sum(), [other], materialize_grads=True)[0].tolist(), [0.0, 0.0])
    checks.true("input 1 is not used" in str(checks.raises(TinyError, autograd.grad, x.sum(), [x, other])))
    checks.raises(TinyError, autograd.grad, x.detach().sum(), [x])
    checks.raises(ValueError, autograd.grad, x.sum(), [x], [None, None])
    autograd.backward([x.sum(), (x * y).sum()])
    checks.equal([x.grad.tolist(), y.grad.tolist()], [[4.0, 3.0], [1.0, 2.0]])


def test_func_grad():
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    product = lambda a, b: (a * a * b).sum()  # noqa: E731
    checks.equal(func.grad(product, 1)(x, y).tolist(), [1.0, 4.0])
    checks.equal([one.tolist() for one in func.grad(product, (1, 0))(x, y)], [[1.0, 4.0], [6.0, 16.0]])
    checks.equal([one.tolist() for one in func.grad(product, argnums=(-1,))(x, y)], [[1.0, 4.0]])
    found, aux = func.grad(lambda a: ((a * a).sum(), "more"), has_aux=True)(x)
    checks.equal([found.tolist(), aux], [[2.0, 4.0], "more"])
    found, (value, aux) = func.grad_and_value(lambda a: ((a * a).sum(), a), has_aux=True)(x)
    checks.equal([found.tolist(), value.item(), aux is x], [[2.0, 4.0], 5.0, True])
    found = func.grad(lambda p, k: (p["w"] * p["w"]).sum() * k + p["more"][0].sum())({"w": x, "more": (y,)}, 3.0)
    checks.equal([found["w"].tolist(), found["more"][0].tolist()], [[6.0, 12.0], [1.0, 1.0]])
    checks.raises(ValueError, func.grad(product, 2), x, y)
    checks.raises(TypeError, func.grad(lambda a: 1.0), x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.bias = nn.Linear(2, 2), nn.Parameter(Tensor([1.0, 1.0]))
        self.register_buffer("scale", Tensor([2.0]))
        self.again = self.first

    def forward(self, x, more=0.0):
        return self.again(self.first(x)) * self.scale + self.bias + more


def test_functional_call():
    net = Net()
    before = {name: one.tolist() for name, one in net.state_dict().items()}
    own = {name: one for name, one in net.named_parameters()}
    x = Tensor([[1.0, 2.0]])
    plain = net(x).tolist()
    zeros = {name: one.zeros_like() for name, one in own.items()}
    checks.equal(func.functional_call(net, zeros, (x,)).tolist(), [[0.0, 0.0]])
    checks.equal(func.functional_call(net, ({"bias": Tensor([5.0, 6.0])}, {"first.weight": Tensor.zeros(2, 2), "first.bias": Tensor.zeros(2), "scale": Tensor([0.0])}),
                                      x, {"more": 1.0}).tolist(), [[6.0, 7.0]])
    checks.equal([net(x).tolist(), {name: one.tolist() for name, one in net.state_dict().items()} == before], [plain, True])
    checks.equal([zeros["bias"].requires_grad, isinstance(net.bias, nn.Parameter)], [False, True])
    gradients = func.grad(lambda p: func.functional_call(net, p, x).sum())({name: one.detach() for name, one in own.items()})
    net(x).sum().backward()
    for name, one in own.items():
        checks.equal(gradients[name].tolist(), one.grad.tolist(), name)
    checks.raises(ValueError, func.functional_call, net, {"nothing": x}, x)
    checks.raises(ValueError, func.functional_call, net, {"bias": x[0]}, x, strict=True)
    checks.raises(TinyError, func.functional_call, net, {"first.weight": Tensor.zeros(3, 3)}, x)
    checks.equal(net(x).tolist(), plain)


# ---- hooks ----
def test_hook_of_leaf():
    x, seen = Tensor([1.0, 2.0], requires_grad=True), []
    before = x * 3
    handle = x.register_hook(lambda gradient: seen.append(gradient.tolist()))
    double = x.register_hook(lambda gradient: gradient * 2)
    (before.sum() + (x * x).sum()).backward()
    checks.equal([seen, x.grad.tolist()], [[[5.0, 7.0]], [10.0, 14.0]])
    checks.equal([one.tolist() for one in autograd.grad((x * x).sum(), [x])], [[4.0, 8.0]])
    handle.remove()
    with double:
        pass
    x.grad = None
    (x * x).sum().backward()
    checks.equal([len(seen), x.grad.tolist()], [2, [2.0, 4.0]])


def test_hook_on_the_way():
    x, seen = Tensor([1.0, 2.0], requires_grad=True), []

    def middle(x):
        h = x * x
        h.register_hook(lambda gradient: seen.append(gradient.tolist()))
        h.register_hook(lambda gradient: gradient.clamp(-1, 1))
        return (h * Tensor([5.0, 0.5])).sum()  # h itself goes: its hooks stay

    loss = middle(x)
    loss.backward()
    checks.equal([seen, x.grad.tolist(), loss.item()], [[[5.0, 0.5]], [2.0, 2.0], 7.0])
    h = x * 3
    handle = h.register_hook(lambda gradient: gradient * 0)
    checks.equal([h.tolist(), autograd.grad(h.sum(), h)[0].tolist(), autograd.grad(h.sum(), x)[0].tolist()], [[3.0, 6.0], [0.0, 0.0], [0.0, 0.0]])
    handle.remove()
    checks.equal([autograd.grad(h.sum(), h)[0].tolist(), autograd.grad(h.sum(), x)[0].tolist()], [[1.0, 1.0], [3.0, 3.0]])


def test_hook_errors():
    x = Tensor([1.0, 2.0], requires_grad=True)
    checks.raises(TinyError, Tensor([1.0]).register_hook, lambda gradient: None)
    checks.raises(TypeError, x.register_hook, 3)
    for y in (x, x * 2):
        for hook, kind, text in ((lambda gradient: 1 / 0, ZeroDivisionError, "division by zero"), (lambda gradient: 3, TypeError, "a tensor or None"),
                                 (lambda gradient: gradient.sum(), TinyError, "another shape")):
            handle = y.register_hook(hook)
            checks.true(text in str(checks.raises(kind, (y * 3).sum().backward)))
            handle.remove()
        checks.equal([x.grad, (y * 3).sum().backward() is not None], [None, True])
        x.grad = None


class Mine(Exception):
    pass


def raising(error):
    def function(*arguments):
        raise error
    return function


def test_raised_as_it_is():
    """An exception in a function of the program that the library calls comes out of that call: the same object, with the way to it."""
    x = Tensor([1.0, 2.0], requires_grad=True)

    def backward_of(error):
        class Wrong(autograd.Function):
            forward = staticmethod(lambda ctx, x: x * 2)
            backward = staticmethod(raising(error))
        return Wrong.apply(x).sum().backward

    def hook_of(error):
        y = x * 2
        y.register_hook(raising(error))
        return lambda: y.sum().backward()

    def leaf_hook_of(error):
        def run():
            with x.register_hook(raising(error)):
                (x * 2).sum().backward()
        return run
    ways = {"hook": hook_of, "hook of a leaf": leaf_hook_of, "Function.backward": backward_of,
            "gradient": lambda error: lambda: autograd.grad(autograd.custom_gradient(lambda t: t * 1, raising(error))(x).sum(), x),
            "vmap": lambda error: lambda: func.vmap(raising(error))(x), "jvp": lambda error: lambda: func.jvp(raising(error), (x,), (x,)),
            "jacrev": lambda error: lambda: func.jacrev(raising(error))(x), "checkpoint": lambda error: lambda: func.checkpoint(raising(error), x),
            "TinyJit": lambda error: lambda: TinyJit(raising(error))(x),
            "LambdaLR": lambda error: lambda: optim.lr_scheduler.LambdaLR(optim.SGD([x], lr=0.1), raising(error))}
    for name, way in ways.items():
        for error in (Mine("x"), KeyboardInterrupt(), SystemExit(3), MemoryError(), StopIteration(1), TypeError("'NoneType' object is not iterable")):
            cause = error.__cause__ = ValueError("before")
            found = checks.raises(BaseException, way(error))
            checks.equal((name, found is error, found.__cause__ is cause, found.__context__), (name, True, True, None))
            checks.true("function" in [frame.name for frame in traceback.extract_tb(found.__traceback__)], name)
    checks.equal((x * 2).sum().gradient(x)[0].tolist(), [2.0, 2.0])


def test_nothing_given():
    """A function that returns None is named, with what it should give."""
    x = Tensor([1.0, 2.0], requires_grad=True)

    class Wrong(autograd.Function):
        forward = staticmethod(lambda ctx, x: None)
    for name, one in (("vmap", lambda: func.vmap(lambda t: None)(x)), ("Wrong.forward()", lambda: Wrong.apply(x)), ("jvp", lambda: func.jvp(lambda t: None, (x,), (x,)))):
        checks.equal(str(checks.raises(TypeError, one)), f"{name}: the function gives a tensor or a tuple of them, not None")


def test_saved_tensors_go():
    """A Function's tensors go with what was made of them: none is held by what backward() gets."""
    class Square(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2 * ctx.saved_tensors[0]
    alive = []
    for _ in range(40):
        x = Tensor.ones(8).contiguous().realize()
        x.requires_grad = True
        alive.append(weakref.ref(x))
        Square.apply(x).sum().backward()
        x.grad.realize()
    checks.equal([x.grad.tolist(), sum(one() is not None for one in alive)], [[2.0] * 8, 1])


def test_hook_refers_to_its_tensor():
    """Python's gc finds a tensor that its hook refers to; one that only the library holds keeps its hooks."""
    x, seen = Tensor.ones(3, requires_grad=True), []
    x.register_hook(lambda gradient, x=x: seen.append(x.tolist()))
    gone = weakref.ref(x)
    (x * 2).sum().backward()
    del x
    gc.collect()
    checks.equal([seen, gone()], [[[1.0] * 3], None])
    layer = nn.Linear(2, 1)
    layer.weight.register_hook(lambda gradient: seen.append(len(seen)))
    gc.collect()
    layer(Tensor.ones(1, 2)).sum().backward()
    checks.equal(seen, [[1.0] * 3, 1])


def test_attention_that_sees_nothing():
    """A query that a mask shows no key gives zeros, and gradients stay finite, in blocks as well; -infinity is as False."""
    for size, is_float in ((4, False), (700, False), (4, True), (700, True)):
        x = Tensor.randn(2, size, 5).realize()
        q, m = Tensor(x, requires_grad=True), Tensor.arange(size).reshape(-1, 1) != 0
        m = m.expand(size, size).contiguous().realize()
        if is_float:
            m = m.where(0.0, float("-inf")).contiguous().realize()
        found = q.scaled_dot_product_attention(q, q, attn_mask=m)
        checks.equal(found[:, 0].abs().max().item(), 0)
        gradient, = (found * found).sum().gradient(q)
        seen = Tensor(x, requires_grad=True)
        wanted = seen[:, 1:].scaled_dot_product_attention(seen, seen)
        checks.true((found[:, 1:] - wanted).abs().max().item() < 1e-5)
        wanted, = (wanted * wanted).sum().gradient(seen)
        checks.true((gradient - wanted).abs().max().item() < 1e-4, f"{size}: {gradient.isnan().sum().item()} NaNs")


def test_hook_in_recording():
    """It is called while that is recorded, and what it made of the gradient is replayed."""
    x, calls = Tensor([1.0, 2.0], requires_grad=True), []

    def doubled(gradient):
        calls.append(1)
        return gradient * 2
    x.register_hook(doubled)

    @TinyJit
    def step(k):
        x.grad = None
        (x * k).sum().backward()
        return x.grad.realize()
    found = [step(Tensor([float(i)]).realize()).tolist() for i in range(5)]
    checks.equal([found, len(calls)], [[[2.0 * i] * 2 for i in range(5)], 2])


def test_hook_goes():
    """A hook goes with what it is for."""
    class Gone:
        def __call__(self, gradient):
            return None
    for make in (lambda: Tensor([1.0], requires_grad=True), lambda: Tensor([1.0], requires_grad=True) * 2):
        hook, tensor = Gone(), make()
        gone = weakref.ref(hook)
        handle = tensor.register_hook(hook)
        handle.remove()
        del hook, handle
        checks.equal(gone(), None)


def test_hook_removes_itself():
    """A hook may be gone before it returns."""
    w = Tensor.ones(3, requires_grad=True)
    for make in (lambda: w * 1, lambda: w):
        w.grad = None
        tensor, handles = make(), []

        def once(gradient):
            with handles.pop():
                pass
            return gradient * 2
        handles.append(tensor.register_hook(once))
        loss = (tensor * 3).sum()
        loss.backward()
        loss.backward()
        checks.equal([w.grad.tolist(), handles], [[9.0] * 3, []])


# ---- sequences of several lengths ----
LENGTHS = [1, 3, 2]


def sequences():
    Tensor.manual_seed(3)
    return [Tensor.randn(n, 4).realize() for n in LENGTHS]


def test_padding():
    one, two = Tensor([1.0, 2.0, 3.0]), Tensor([4.0])
    checks.equal(rnn.pad_sequence([one, two], True, -1).tolist(), [[1, 2, 3], [4, -1, -1]])
    checks.equal(rnn.pad_sequence([one, two]).tolist(), [[1, 4], [2, 0], [3, 0]])
    checks.equal(rnn.pad_sequence([one, two], True, padding_side="left").tolist(), [[1, 2, 3], [0, 0, 4]])
    checks.equal([row.tolist() for row in rnn.unpad_sequence(rnn.pad_sequence([one, two]), [3, 1])], [[1, 2, 3], [4]])
    packed = rnn.pack_sequence([one, two])
    checks.equal([packed.data.tolist(), packed.batch_sizes.tolist(), packed.sorted_indices], [[1, 4, 2, 3], [2, 1, 1], None])
    packed = rnn.pack_sequence([two, one], enforce_sorted=False)
    checks.equal([packed.data.tolist(), packed.sorted_indices.tolist(), packed.unsorted_indices.tolist()], [[1, 4, 2, 3], [1, 0], [1, 0]])
    padded, lengths = rnn.pad_packed_sequence(packed, True, -1, 4)
    checks.equal([padded.tolist(), lengths.tolist()], [[[4, -1, -1, -1], [1, 2, 3, -1]], [1, 3]])
    checks.raises(RuntimeError, rnn.pack_sequence, [two, one])
    for wrong in (lambda: rnn.pad_sequence([]), lambda: rnn.pack_padded_sequence(padded, [3, 0], True), lambda: rnn.pack_padded_sequence(padded, [9, 1], True),
                  lambda: rnn.pad_packed_sequence(packed, total_length=2)):
        checks.raises(ValueError, wrong)


def test_packing_as_theirs():
    if torch is None:
        return
    theirs = torch.nn.utils.rnn.pack_sequence([torch.tensor(one.numpy()) for one in sequences()], enforce_sorted=False)
    ours = rnn.pack_sequence(sequences(), enforce_sorted=False)
    for a, b in zip(ours, theirs):
        close(a, b)
    close(rnn.pad_packed_sequence(ours)[0], torch.nn.utils.rnn.pad_packed_sequence(theirs)[0])


def test_packed_layers():
    """Results, states and gradients of each sequence are those that it has by itself."""
    for make, options in ((nn.LSTM, {"proj_size": 2, "batch_first": True}), (nn.GRU, {"bidirectional": True})):
        layer, rows = make(4, 3, **options), sequences()
        y, state = layer(rnn.pack_sequence(rows, enforce_sorted=False))
        padded, lengths = rnn.pad_packed_sequence(y, batch_first=True)
        checks.equal(lengths.tolist(), LENGTHS)
        alone = [layer(one) for one in rows]
        for i, (wanted, states) in enumerate(alone):
            close(padded[i, :LENGTHS[i]], wanted)
            checks.equal(padded[i, LENGTHS[i]:].abs().sum().item(), 0)
            for a, b in zip(state if isinstance(state, tuple) else (state,), states if isinstance(states, tuple) else (states,)):
                close(a[:, i], b)
        parameters = list(layer.parameters())
        found = autograd.grad((padded * padded).sum(), parameters)
        for a, b in zip(found, autograd.grad(Tensor.usum(*((wanted * wanted).sum() for wanted, _ in alone)), parameters)):
            close(a, b, 1e-4)


def test_packed_as_theirs():
    if torch is None:
        return
    ours, theirs = nn.LSTM(4, 3, 2, bidirectional=True), torch.nn.LSTM(4, 3, 2, bidirectional=True)
    theirs.load_state_dict({name: torch.tensor(one.numpy()) for name, one in ours.state_dict().items()})
    start = [Tensor.randn(4, 3, 3).realize() for _ in range(2)]
    y, states = ours(rnn.pack_sequence(sequences(), enforce_sorted=False), tuple(start))
    wanted, their_states = theirs(torch.nn.utils.rnn.pack_sequence([torch.tensor(one.numpy()) for one in sequences()], enforce_sorted=False),
                                  tuple(torch.tensor(one.numpy()) for one in start))
    close(y.data, wanted.data)
    for a, b in zip(states, their_states):
        close(a, b)


# ---- spectral norm ----
def test_spectral_norm():
    layer = nn.utils.spectral_norm(nn.Linear(4, 3), n_power_iterations=30)
    checks.equal(sorted(layer.state_dict()), ["bias", "weight_orig", "weight_u", "weight_v"])
    checks.equal(sorted(name for name, _ in layer.named_parameters()), ["bias", "weight_orig"])
    x = Tensor.randn(2, 4).realize()
    y = layer(x)
    largest = layer.weight_orig.svd()[1].max().item()
    close(y, (x @ (layer.weight_orig / largest).T + layer.bias).numpy(), 1e-4)
    before = layer.weight_u.tolist()
    layer.eval()
    layer(x)
    checks.equal(layer.weight_u.tolist(), before)
    layer.train()
    y = layer(x).sum()
    y.backward()
    checks.true(layer.weight_orig.grad is not None and layer.weight_orig.grad.shape == (3, 4))
    checks.raises(RuntimeError, nn.utils.spectral_norm, layer)
    nn.utils.remove_spectral_norm(layer)
    checks.equal(sorted(layer.state_dict()), ["bias", "weight"])
    checks.true(abs(layer.weight.svd()[1].max().item() - 1) < 1e-4)
    checks.raises(ValueError, nn.utils.remove_spectral_norm, layer)
    checks.raises(ValueError, nn.utils.spectral_norm, nn.Linear(2, 2), "nothing")


def test_parametrizations():
    x, layer = Tensor.randn(2, 4).realize(), nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3), n_power_iterations=30)
    largest = layer.weight_orig.svd()[1].max().item()
    close(layer(x), (x @ (layer.weight_orig / largest).T + layer.bias).numpy(), 1e-4)
    checks.equal(nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))(x).shape, (2, 3))


def test_spectral_norm_as_theirs():
    if torch is None:
        return
    for ours, theirs, shape in ((nn.Conv2d(2, 3, 3), torch.nn.Conv2d(2, 3, 3), (1, 2, 5, 5)), (nn.ConvTranspose2d(2, 3, 3), torch.nn.ConvTranspose2d(2, 3, 3), (1, 2, 5, 5))):
        ours, theirs = nn.utils.spectral_norm(ours), torch.nn.utils.spectral_norm(theirs)
        theirs.load_state_dict({name: torch.tensor(one.numpy()) for name, one in ours.state_dict().items()})
        x = Tensor.randn(*shape).realize()
        for _ in range(3):
            y, wanted = ours(x), theirs(torch.tensor(x.numpy()))
            close(y, wanted)
        y.square().sum().backward()
        wanted.square().sum().backward()
        close(ours.weight_orig.grad, theirs.weight_orig.grad.numpy(), 1e-4)
        close(ours.weight_u, theirs.weight_u.numpy())


# ---- data ----
class Words(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return ((Tensor([float(i)]), i) for i in range(self.n))


def test_iterable():
    for workers in (0, 2):
        batches = list(data.DataLoader(Words(5), batch_size=2, num_workers=workers))
        checks.equal([[part.tolist() for part in batch] for batch in batches], [[[[0], [1]], [0, 1]], [[[2], [3]], [2, 3]], [[[4]], [4]]])
    checks.equal(len(list(data.DataLoader(Words(5), batch_size=2, drop_last=True))), 2)
    checks.equal([one[1] for one in data.DataLoader(Words(3), batch_size=None)], [0, 1, 2])
    checks.equal([len(one) for one in data.DataLoader(Words(3), batch_size=2, collate_fn=lambda rows: rows)], [2, 1])
    loader = data.DataLoader(Words(3), batch_size=2)
    checks.equal([len(list(loader)) for _ in range(2)], [2, 2])
    checks.raises(TypeError, len, loader)
    checks.equal(data.get_worker_info(), None)
    for wrong in ({"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}):
        checks.raises(ValueError, data.DataLoader, Words(3), **wrong)


def test_samplers():
    rows = data.TensorDataset(Tensor([float(i) for i in range(10)]))
    Tensor.manual_seed(5)
    checks.equal([list(data.SequentialSampler(rows)), sorted(data.RandomSampler(rows))], [list(range(10)), list(range(10))])
    sampler = data.RandomSampler(rows, num_samples=25)
    found = list(sampler)
    checks.equal([len(found), len(sampler), sorted(found[:10]), sorted(found[10:20]), len(set(found[20:]))], [25, 25, list(range(10)), list(range(10)), 5])
    found = list(data.RandomSampler(rows, True, 200))
    checks.true(len(found) == 200 and set(found) == set(range(10)), found)
    checks.true(list(data.RandomSampler(rows)) != list(data.RandomSampler(rows)))
    checks.equal(sorted(data.SubsetRandomSampler([7, 3, 5])), [3, 5, 7])
    found = list(data.WeightedRandomSampler([0.0, 3.0, 1.0], 400))
    checks.true(found.count(0) == 0 and 250 < found.count(1) < 350, found.count(1))
    checks.equal(sorted(data.WeightedRandomSampler([1.0, 2.0, 3.0], 3, replacement=False)), [0, 1, 2])
    checks.equal([list(data.BatchSampler(range(5), 2)), list(data.BatchSampler(range(5), 2, True)), len(data.BatchSampler(range(5), 2)), len(data.BatchSampler(range(5), 2, True))],
                 [[[0, 1], [2, 3], [4]], [[0, 1], [2, 3]], 3, 2])
    loader = data.DataLoader(rows, batch_sampler=data.BatchSampler(data.SubsetRandomSampler([1, 2, 3]), 2))
    checks.equal([len(loader), sorted(sum((batch[0].tolist() for batch in loader), []))], [2, [1, 2, 3]])
    loader = data.DataLoader(rows, batch_size=4, sampler=data.RandomSampler(rows))
    checks.equal([sorted(sum((batch[0].tolist() for batch in loader), [])) for _ in range(2)], [list(range(10))] * 2)
    for wrong in (lambda: data.RandomSampler(rows, num_samples=0), lambda: data.BatchSampler([1], 0), lambda: data.WeightedRandomSampler([1.0], 0)):
        checks.raises(ValueError, wrong)


def test_data_sets_together():
    a, b = data.TensorDataset(Tensor([1.0, 2.0])), data.TensorDataset(Tensor([3.0, 4.0, 5.0]))
    both = a + b
    checks.equal([len(both), [both[i][0].item() for i in (0, 2, 4, -1)]], [5, [1.0, 3.0, 5.0, 5.0]])
    checks.equal([one[0].tolist() for one in data.DataLoader(both, 2)], [[1.0, 2.0], [3.0, 4.0], [5.0]])
    checks.raises(IndexError, both.__getitem__, 5)
    chained = data.ChainDataset([Words(2), Words(3)])
    checks.equal([len(list(chained)), len(list(Words(2) + Words(3)))], [5, 5])
    checks.raises(TypeError, data.ConcatDataset, [Words(2)])
    checks.raises(ValueError, data.ConcatDataset, [])
    pairs, named = data.StackDataset(range(3), "abc"), data.StackDataset(x=range(3), y="abc")
    checks.equal([len(pairs), pairs[1], len(named), named[2]], [3, (1, "b"), 3, {"x": 2, "y": "c"}])
    for wrong in (lambda: data.StackDataset(), lambda: data.StackDataset([1], [1, 2]), lambda: data.StackDataset([1], x=[1])):
        checks.raises(ValueError, wrong)


checks.run(globals())
