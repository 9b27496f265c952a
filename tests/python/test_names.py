# SPDX-License-Identifier: MIT
"""Names that tinygrad or PyTorch has mean here what they mean there; where the two differ, docs/names.md says which is meant."""
import os
import pathlib
import pydoc
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch

import checks
import tinycore
from tinycore import InvalidError, Tensor, TinyJit, func, nn, no_grad
from tinycore.helpers import GlobalCounters

ROWS = [[1.0, 5.0, 5.0], [7.0, float("nan"), 3.0]]


def same(mine, theirs, what):
    np.testing.assert_allclose(np.asarray(mine), np.asarray(theirs), rtol=1e-6, err_msg=what)


def test_extremes():
    """max() and min() as functions are PyTorch's: pairs along an axis, whose gradient flows to the first of equals; methods are tinygrad's."""
    for name in ("max", "min"):
        mine, theirs = getattr(tinycore, name), getattr(torch, name)
        x, t = Tensor(ROWS), torch.tensor(ROWS)
        for arguments, more in (((1,), {}), ((0, True), {}), ((), {"dim": -1, "keepdim": True})):
            found, wanted = mine(x, *arguments, **more), theirs(t, *arguments, **more)
            same(found.values, wanted.values, f"{name} values")
            checks.equal(found.indices.tolist(), wanted.indices.tolist(), f"{name} indices")
        same(mine(x), theirs(t), name)
        same(mine(x, -x), theirs(t, -t), f"{name} of two")
        same(mine(x, other=-x), theirs(t, other=-t), f"{name} of two")
        checks.equal(mine(Tensor(3.0), 0).values.item(), theirs(torch.tensor(3.0), 0).values.item())
        x, t = Tensor(ROWS[:1], requires_grad=True), torch.tensor(ROWS[:1], requires_grad=True)
        mine(x, 1)[0].sum().backward()
        theirs(t, 1)[0].sum().backward()
        checks.equal(x.grad.tolist(), t.grad.tolist(), f"{name} gradient")
        checks.equal(getattr(Tensor([[1.0, 2.0]]), name)(1).shape, (1,))


def test_data():
    """p.data is changed as in PyTorch, beside gradients; p.data() is tinygrad's memoryview."""
    p = Tensor([1.0, 2.0], requires_grad=True)
    (p * p).sum().backward()
    p.data -= 0.5 * p.grad
    checks.equal(p.tolist(), [0.0, 0.0])
    p.data.add_(3.0)
    p.data[0] = 7
    checks.equal(p.tolist(), [7.0, 3.0])
    p.data *= p.data
    checks.equal((p.tolist(), p.data().tolist(), (p.data + 1).tolist(), p.data[1].item()), ([49.0, 9.0], [49.0, 9.0], [50.0, 10.0], 9.0))
    p.data = p.data.clamp(0, 10)
    checks.equal((p.tolist(), p.requires_grad, p.data.requires_grad), ([10.0, 9.0], True, False))
    p.data = Tensor([1.0, -1.0])
    checks.equal(p.tolist(), [1.0, -1.0])
    checks.equal(p.grad.tolist(), [2.0, 4.0])
    for wrong in ([1.0, 2.0], None, Tensor([1.0, 2.0, 3.0])):
        checks.raises((TypeError, ValueError), setattr, p, "data", wrong)
    checks.equal(p.tolist(), [1.0, -1.0])


def test_kept_data():
    """A p.data that is kept has the elements that p had before p.data = …, and is p's own before that; two change places."""
    p, q, shadow = (Tensor(list(one), requires_grad=True) for one in ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0)))
    backup = p.data
    p.data += 1
    checks.equal(backup.tolist(), [2.0, 3.0])
    p.data = shadow.data
    checks.equal((p.tolist(), backup.tolist()), ([5.0, 6.0], [2.0, 3.0]))
    p.data.add_(1)
    checks.equal((p.tolist(), backup.tolist(), shadow.tolist()), ([6.0, 7.0], [2.0, 3.0], [5.0, 6.0]))
    p.data = backup
    p.data, q.data = q.data, p.data
    checks.equal((p.tolist(), q.tolist(), p.requires_grad), ([3.0, 4.0], [2.0, 3.0], True))


def test_cuda_amp():
    """torch.cuda.amp is a module, whose autocast takes enabled first and is of float16."""
    from tinycore.cuda.amp import GradScaler, autocast
    x = Tensor.ones(2, 2)
    with autocast():
        checks.equal((x @ x).dtype, tinycore.float16)
    for form in autocast(False), autocast(enabled=False), tinycore.cuda.amp.autocast(False):
        with form:
            checks.equal((x @ x).dtype, tinycore.float32)
    with autocast(True, tinycore.bfloat16):
        checks.equal((x @ x).dtype, tinycore.bfloat16)
    checks.equal(GradScaler(enabled=False).state_dict(), {})


def test_vjp_gives_a_tuple():
    found = func.vjp(lambda x: x * 3, Tensor([1.0, 2.0]))[1](Tensor([1.0, 1.0]))
    checks.equal((type(found), [one.tolist() for one in found]), (tuple, [[3.0, 3.0]]))


def test_one_cycle_has_as_many_steps_as_it_says():
    rates = []
    for module, make in ((nn.optim, Tensor), (torch.optim, torch.tensor)):
        optimizer = module.SGD([make([1.0], requires_grad=True)], lr=0.1)
        schedule, seen = module.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=5, cycle_momentum=False), []
        for _ in range(5):
            optimizer.step()
            schedule.step()
            seen.append(optimizer.param_groups[0]["lr"])
        checks.raises(ValueError, schedule.step)
        rates.append(seen)
    same(*rates, "rates")


def test_arguments_of_pytorch():
    """Arguments that PyTorch's programs give: of what happens in place, of variances, and of how a step is computed."""
    x, t = Tensor([[1.0, -2.0, 4.0], [3.0, 8.0, 0.0]]), torch.tensor([[1.0, -2.0, 4.0], [3.0, 8.0, 0.0]])
    for name, before in (("ReLU", ()), ("ReLU6", ()), ("SELU", ()), ("SiLU", ()), ("Mish", ()), ("Hardswish", ()), ("Hardsigmoid", ()), ("LeakyReLU", (0.2,)),
                         ("ELU", (0.5,)), ("CELU", (0.5,)), ("Hardtanh", (-1.0, 2.0)), ("Threshold", (1.0, 0.5)), ("Dropout2d", (0.5,))):
        mine, theirs = getattr(nn, name)(*before, True), getattr(torch.nn, name)(*before, True)
        checks.equal(mine.inplace, True, name)
        if "Drop" not in name:
            np.testing.assert_allclose(mine(x).numpy(), theirs(t.clone()).numpy(), rtol=1e-4, atol=1e-6, err_msg=name)
    checks.raises(TypeError, nn.Softmax, 1, True)
    checks.raises(TypeError, nn.Softmax, 1, inplace=True)
    for arguments, more in (((), {"unbiased": False}), ((), {"unbiased": True}), ((1,), {"unbiased": False}), ((1, False), {}), ((1, True, True), {}),
                            ((False,), {}), ((True,), {}), ((), {"dim": 0, "unbiased": False, "keepdim": True})):
        for name in ("var", "std", "var_mean", "std_mean"):
            found, wanted = getattr(x, name, None)(*arguments, **more), getattr(torch, name)(t, *arguments, **more)
            for one, other in zip(*((found, wanted) if "mean" in name else ([found], [wanted]))):
                np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, err_msg=f"{name} {arguments} {more}")
    checks.raises(TypeError, x.var, 1, 0, unbiased=False)
    p = [Tensor([1.0], requires_grad=True)]
    for make in (nn.optim.SGD, nn.optim.Adam, nn.optim.AdamW, nn.optim.Adagrad):
        make(p, lr=0.1, foreach=False, fused=True)
    for make in (nn.optim.RMSprop, nn.optim.Adadelta, nn.optim.Adamax, nn.optim.NAdam, nn.optim.RAdam):
        make(p, lr=0.1, foreach=True, capturable=True)
    checks.raises(NotImplementedError, nn.optim.Adam, p, differentiable=True)


def test_sums_of_integers():
    """docs/dtypes.md says of which dtype they are, and of which PyTorch's are."""
    wanted = {"bool": "int32", "int8": "int32", "int16": "int32", "int32": "int32", "int64": "int64", "uint8": "uint32", "uint16": "uint32", "uint32": "uint32", "uint64": "uint64"}
    for of, dtype in wanted.items():
        x = Tensor([1, 1]).cast(of)
        checks.equal([one.dtype.name for one in (x.sum(), x.prod(), x.cumsum(0), x.cumprod(0))], [dtype] * 4, of)
        checks.equal(x.sum(dtype="int64").dtype.name, "int64")
        if hasattr(torch, of) and of != "uint16":
            checks.equal(torch.ones(2, dtype=getattr(torch, of)).sum().dtype, torch.int64)
    checks.equal(Tensor([2**31 - 1, 1]).sum().item(), -2**31)


def test_version():
    released = (pathlib.Path(__file__).parents[2] / "meson.build").read_text()
    checks.equal(tinycore.__version__, re.search(r"^  version: '([^']*)'", released, re.M)[1])


def test_files_follow_the_umask():
    before = os.umask(0o026)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name, write in (("a.safetensors", nn.state.safe_save), ("a.pt", lambda values, path: tinycore.save(values, path))):
                path = os.path.join(folder, name)
                for _ in range(2):
                    write({"a": Tensor([1.0])}, path)
                    checks.equal(oct(os.stat(path).st_mode & 0o777), "0o640", name)
            checks.equal(sorted(os.listdir(folder)), ["a.pt", "a.safetensors"])
    finally:
        os.umask(before)


def test_clip_of_what_is_not_finite():
    """A norm that is no number is an error where that is asked for, and gradients stay what they were."""
    for bad in (float("nan"), float("inf")):
        p = Tensor([1.0, 2.0], requires_grad=True)
        (p * Tensor([3.0, bad])).sum().backward()
        checks.raises(RuntimeError, nn.utils.clip_grad_norm_, [p], 1.0, error_if_nonfinite=True)
        checks.equal(str(p.grad.tolist()), str([3.0, bad]))
    p = Tensor([1.0], requires_grad=True)
    (p * 3).sum().backward()
    checks.equal((nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True).item(), round(p.grad.item(), 4)), (3.0, 1.0))


def test_what_the_page_says_of_copies_and_singular_matrices():
    a = np.ones(2, dtype=np.float32)
    x = tinycore.from_numpy(a)
    a[0] = x.numpy()[1:][0] = 5
    checks.equal((x.tolist(), nn.BatchNorm2d(2).training, tinycore.arange(3).dtype.name), ([1.0, 1.0], False, "int32"))
    ones = Tensor([[1.0, 1.0], [1.0, 1.0]])
    for found in (tinycore.linalg.inv(ones), tinycore.linalg.solve(ones, ones), tinycore.linalg.cholesky(-ones)):
        assert np.isnan(found.numpy()).any()


def test_backward_twice():
    """A second backward() adds the gradients once more, and says that it is one where it cannot."""
    p = Tensor([1.0, 2.0], requires_grad=True)
    loss = (p * p).sum()
    loss.backward()
    loss.backward()
    checks.equal(p.grad.tolist(), [4.0, 8.0])
    with no_grad():
        p -= 0.1 * p.grad
    error = str(checks.raises(ValueError, loss.backward))
    checks.true("called on this loss before" in error and "loss anew" in error, error)
    optimizer = nn.optim.SGD([p], lr=0.1)
    loss = (p * p).sum()
    loss.backward()
    optimizer.step()
    error = str(checks.raises(ValueError, loss.backward))
    checks.true("called on this loss before" in error, error)
    error = str(checks.raises(ValueError, Tensor([1.0]).sum().backward))
    checks.true("before;" not in error, error)


def test_counters_count_replays():
    @TinyJit
    def double(x):
        return (x * 2).realize()
    x, found = Tensor([1.0, 2.0]).realize(), []
    for _ in range(4):
        GlobalCounters.reset()
        double(x)
        found.append((GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem))
        checks.true(GlobalCounters.time_sum_s > 0, "no time is counted")
    checks.equal(found, [(1, 2, 16)] * 4)


def test_did_you_mean():
    """Messages about unknown names have the name that was meant."""
    for use, wanted in ((lambda: tinycore.softmx, "softmax"), (lambda: nn.Liner, "Linear"), (lambda: nn.functional.gellu, "gelu"),
                        (lambda: nn.Linear(3, 4, bais=False), "bias"), (lambda: nn.ReLU(inplce=True), "inplace"), (lambda: nn.LSTM(3, 4, num_layer=2), "num_layers"),
                        (lambda: nn.optim.Adam([Tensor([1.0])], weight_dcay=1), "weight_decay"), (lambda: nn.functional.conv2d(Tensor.ones(1, 1, 2, 2), weigt=1), "weight"),
                        (lambda: tinycore.softmax(Tensor.ones(2), dimm=0), "dim"), (lambda: tinycore.sum(Tensor.ones(2), keepdims=True), "keepdim"),
                        (lambda: tinycore.norm(Tensor.ones(2), keepdims=True), "keepdim"), (lambda: tinycore.var_mean(Tensor.ones(2), keepdims=True), "keepdim"),
                        (lambda: tinycore.clamp(Tensor.ones(2), minn=0), "min"), (lambda: tinycore.max(Tensor.ones(2), keepdims=True), "keepdim"),
                        (lambda: tinycore.trapezoid(Tensor.ones(2), dimm=0), "dim"), (lambda: Tensor.ones(2).sum(keepdims=True), "keepdim"),
                        (lambda: Tensor.ones(2).norm(keepdims=True), "keepdim"), (lambda: Tensor.ones(2).logsumexp(0, keepdims=True), "keepdim"),
                        (lambda: Tensor.ones(2).nansum(keepdims=True), "keepdim"), (lambda: Tensor.ones(2).var(corection=0), "correction"),
                        (lambda: tinycore.linalg.norm(Tensor.ones(2), keepdims=True), "keepdim"), (lambda: tinycore.fft.rfft(Tensor.ones(2), dimm=0), "dim")):
        error = str(checks.raises((AttributeError, TypeError), use))
        checks.true(error.endswith(f"Did you mean {wanted}?"), error)
    checks.true("Did" not in str(checks.raises(AttributeError, lambda: tinycore.xyzzyplugh)))
    found = subprocess.run([sys.executable, "-c", "import tinycore; tinycore.nn.Linear(2, 3).wieght"], capture_output=True, text=True)
    checks.true("Did you mean: 'weight'?" in found.stderr, found.stderr)


def test_lazy():
    """A lazy layer before its first call gives no empty list of parameters; a dtype and a mode that it gets then hold after it."""
    network = nn.Sequential(nn.Linear(3, 3), nn.LazyLinear(4))
    for use in (lambda: list(network.parameters()), network.state_dict, lambda: nn.optim.SGD(network.parameters(), 0.1), lambda: nn.state.get_parameters(network)):
        checks.true("1: a LazyLinear has its tensors after its first call" in str(checks.raises(InvalidError, use)))
    checks.true("before its first call" in str(checks.raises(AttributeError, lambda: network[1].weight)))
    checks.equal(hasattr(network[1], "weight"), False)
    network.half().eval().zero_grad()
    network(Tensor.ones(2, 3, dtype="float16"))
    checks.equal([(one.shape, one.dtype.name) for one in network[1].parameters()], [((4, 3), "float16"), ((4,), "float16")])
    checks.equal((type(network[1]), network[1].training), (nn.Linear, False))


def test_kl_divergence():
    """Distributions of other shapes go together, which PyTorch's do not."""
    ours = [tinycore.distributions.Bernoulli(Tensor(probs)) for probs in ([0.5, 0.25], [[0.5], [0.25]])]
    found = tinycore.distributions.kl_divergence(*ours)
    checks.equal(found.shape, (2, 2))
    checks.true(abs(found.numpy() - [[0, 0.1308], [0.1438, 0]]).max() < 1e-3, found.numpy())


def test_errors_say_where():
    """An error in a network has the way to the layer before it, in whatever modules that is."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Linear(5, 2)))
    x = Tensor([[1.0, 2.0, 3.0]])
    checks.equal(str(checks.raises(ValueError, model, x)), "1.1: linear: inner sizes 4 and 5 differ for (1, 4) @ (5, 2)")
    checks.equal(str(checks.raises(ValueError, model[1][1], x)), "linear: inner sizes 3 and 5 differ for (1, 3) @ (5, 2)")

    checks.equal(str(checks.raises(ValueError, nn.BatchNorm2d(3), x[0])).partition(":")[0], "BatchNorm2d")
    checks.equal(str(checks.raises(ValueError, nn.Sequential(nn.BatchNorm2d(3)), x[0])).partition(":")[0], "0")

    class Net(nn.Module):
        def __init__(self):
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)

        def forward(self, x):
            return self.encoder(x)
    net = Net()
    net.encoder.layers[1].linear1 = nn.Linear(9, 16)
    error = checks.raises(ValueError, net, Tensor.ones(2, 3, 8))
    checks.true(str(error).startswith("encoder.layers.1.linear1: linear: inner sizes 8 and 9 differ"), str(error))


def test_html():
    text = Tensor([[1.0, 2.0]])._repr_html_()
    checks.true("<pre>[[1., 2.]]</pre>" in text and "1 × 2, float32" in text, text)


TABLE = [10.0, 20.0, 30.0]
READS = {
    "x[i]": lambda x, i: x[i], "gather": lambda x, i: x.gather(0, i), "index_select": lambda x, i: x.index_select(0, i), "take": lambda x, i: x.take(i),
    "take_along_dim": lambda x, i: x.take_along_dim(i, 0), "embedding": lambda x, i: nn.functional.embedding(i, x.unsqueeze(1)).squeeze(1),
    "narrow": lambda x, i: Tensor.cat([x.narrow(0, one, 1) for one in i]), "two axes": lambda x, i: x.unsqueeze(1)[i, i * 0],
}
WRITES = {
    "scatter": lambda x, i: x.scatter(0, i, Tensor([9.0])), "scatter_add": lambda x, i: x.scatter_add(0, i, Tensor([9.0]) - x.take(i)),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, i, Tensor([9.0]), "amax", include_self=False), "index_put": lambda x, i: x.index_put((i,), Tensor([9.0])),
    "index_copy": lambda x, i: x.index_copy(0, i, Tensor([9.0])), "index_add": lambda x, i: x.index_add(0, i, Tensor([9.0]) - x.take(i)),
    "index_fill": lambda x, i: x.index_fill(0, i, 9.0), "x[i] =": lambda x, i: written(x.clone(), i),
}
LABELS = {
    "one_hot": lambda x, i: i.one_hot(3).sum(), "cross_entropy": lambda x, i: x.log().reshape(1, 3).cross_entropy(i, ignore_index=-7),
    "nll_loss": lambda x, i: x.reshape(1, 3).nll_loss(i, ignore_index=-7),
    "multi_margin_loss": lambda x, i: nn.functional.multi_margin_loss(x.reshape(1, 3), i),
    "sparse_categorical_crossentropy": lambda x, i: x.reshape(1, 3).sparse_categorical_crossentropy(i, ignore_index=-7),
}


def written(x, i):
    x[i] = 9.0
    return x


def test_positions():
    """Positions mean one thing in all operations (docs/indexing.md): from either end, and outside 0, or nothing."""
    for dtype in ("int32", "int64", "int8"):
        for at in (0, 2, -1, -3, 3, -4, 100, -100):
            i, inside = Tensor([at], dtype=dtype), -3 <= at < 3
            for name, read in READS.items():
                checks.equal(read(Tensor(TABLE), i).tolist(), [TABLE[at] if inside else 0.0], f"{name} at {at} of {dtype}")
            for name, write in WRITES.items():
                wanted = list(TABLE)
                if inside:
                    wanted[at] = 9.0
                checks.equal(write(Tensor(TABLE), i).tolist(), wanted, f"{name} at {at} of {dtype}")
    for at in (-1, 3):
        for name, loss in LABELS.items():
            checks.equal(loss(Tensor(TABLE), Tensor([at])).item(), 0, f"{name} of {at}")
    for key in (7, [0, 7], np.array([1, -4]), slice(None, 2), Tensor.full((2,), 3, dtype="int32")):
        if not isinstance(key, slice):
            error = str(checks.raises(IndexError, lambda key=key: Tensor(TABLE)[key]))
            checks.true(error.startswith("index: ") and ("outside" in error or "out of range" in error), error)
    x = Tensor(TABLE)  # data that only just was on the host is data, also one number (docs/indexing.md)
    checks.equal([x.gather(0, Tensor([7])).tolist(), x[Tensor([4])].tolist(), x[Tensor(5)].item()], [[0.0], [0.0], 0.0])
    checks.equal(str(checks.raises(IndexError, lambda: x[Tensor.full((), 5)])), "index: position 5 is outside of axis 0, whose size is 3")
    checks.equal(str(checks.raises(IndexError, lambda: x[[0, 5]])), "index: position 5 is outside of axis 0, whose size is 3")


CHECKED = """
import sys
sys.path.insert(0, sys.argv[1])
import checks
from test_names import *
x = Tensor(TABLE)
for name, use in {**READS, **WRITES}.items():
    for at in (0, -3, 2):
        use(x, Tensor([at])).realize()
    for at in (3, -4, 200):
        error = str(checks.raises(ValueError, use, x, Tensor([at])))
        checks.true(f"position {at} is outside of axis 0, whose size is 3" in error, f"{name}: {error}")
for operation, use in (("embedding", nn.Embedding(3, 4)), ("embedding", nn.Embedding(3, 4, padding_idx=0)), ("embedding_bag", nn.EmbeddingBag(3, 4))):
    error = str(checks.raises(ValueError, use, Tensor([[7]])))
    checks.equal(error, f"{operation}: position 7 is outside of axis 0, whose size is 3")
for name, use in LABELS.items():
    for at in (0, 2, -7) if name not in ("one_hot", "multi_margin_loss") else (0, 2):
        use(x, Tensor([at])).realize()
    for at in (3, -1):
        error = str(checks.raises(ValueError, use, x, Tensor([at])))
        checks.equal(error, f"{name}: label {at} is none of 3 classes")
    checks.raises(ValueError, use, x.reshape(1, 3).expand(2, 3).flatten()[:3], Tensor([5]))
for weights in ([0.0, 0.0], [[1.0, 1.0], [0.0, 0.0]], [1.0, -1.0], [1.0, float("nan")], [float("inf"), 1.0]):
    for replacement in (False, True):
        error = str(checks.raises(ValueError, Tensor(weights).multinomial, 2, replacement))
        checks.true(error.startswith("multinomial: ") and "weight" in error, error)
checks.equal(sorted(Tensor([1.0, 2.0]).multinomial(2).tolist()), [0, 1])
for p in (-0.1, 1.5, float("nan")):
    checks.equal(str(checks.raises(ValueError, Tensor([0.5, p]).bernoulli)), "bernoulli: a probability is not from 0 to 1")
checks.equal(Tensor([0.0, 1.0]).bernoulli().tolist(), [0.0, 1.0])
pooled, places = Tensor.ones(1, 4, 4).max_pool2d_with_indices(2) if hasattr(Tensor, "max_pool2d_with_indices") else Tensor.ones(1, 4, 4).max_pool2d(2, return_indices=True)
checks.equal(pooled.max_unpool2d(places, 2).sum().item(), 4)
for at in (16, -1):
    error = str(checks.raises(ValueError, pooled.max_unpool2d, Tensor.full((1, 2, 2), at, dtype="int64").contiguous(), 2))
    checks.equal(error, "max_unpool2d: places are from 0 to below 16, those of the output")
jit = TinyJit(lambda x, i: x.gather(0, i).realize())
for _ in range(3):
    jit(x, Tensor([1]).realize())
checks.raises(ValueError, jit, x, Tensor([3]).realize())
checks.equal(func.vmap(lambda i: x.take(i))(Tensor([0, -1, 9])).tolist(), [10.0, 30.0, 0.0])
"""


def test_checked_positions():
    """With TINY_CHECK=1 all of them are errors, which name operation, position and size, also in what TinyJit would replay."""
    folder = os.path.dirname(os.path.abspath(__file__))
    for device in ("CPU", "REF"):
        found = subprocess.run([sys.executable, "-c", CHECKED, folder], env={**os.environ, "TINY_CHECK": "1", "DEV": device}, capture_output=True, text=True)
        checks.equal((found.returncode, found.stderr), (0, ""), device)


def test_axes_outside():
    """An axis that there is not is an IndexError, as PyTorch's, and an InvalidError as all that does not fit."""
    x = Tensor.ones(2, 3)
    for call in (lambda: x.sum(5), lambda: x.squeeze(7), lambda: x.softmax(-3), lambda: x.unsqueeze(5), lambda: x.permute(0, 7), lambda: Tensor.cat(x, x, dim=5),
                 lambda: x.gather(3, x.cast("int32")), lambda: x.narrow(5, 0, 1), lambda: Tensor.stack(x, dim=7), lambda: x.sum((0, 5)), lambda: x[0, 0, 0]):
        checks.true(isinstance(checks.raises(IndexError, call), InvalidError))
    checks.true(not isinstance(checks.raises(InvalidError, x.reshape, 5), IndexError))


def test_help_begins_with_arguments():
    for name in ("Conv2d", "GRU", "LSTMCell", "Linear", "BatchNorm1d"):
        text = pydoc.render_doc(getattr(nn, name), renderer=pydoc.plaintext)
        line = next(one for one in text.splitlines() if f"class {name}(" in one)
        inner = next(one for one in text.splitlines() if one.strip().removeprefix("|").strip().startswith(f"{name}("))
        checks.true("*arguments" not in inner and ("in_" in inner or "_size" in inner or "num_features" in inner), (line, inner))


def test_graph_and_kernels():
    """A tensor's graph and kernels can be looked at, and looking computes nothing."""
    a, b = Tensor.rand(4, 3).realize(), Tensor.rand(3, 2).realize()
    y, other = (a @ b).relu(), Tensor.rand(1000).realize()
    GlobalCounters.reset()
    root = y.uop
    checks.equal([root.op, root.dtype, len(root.src)], ["max", "f32", 2])
    nodes = root.toposort()
    checks.true(nodes[-1] is root and "param" in [one.op for one in nodes] and "reduce" in [one.op for one in nodes], nodes)
    checks.equal(next(one for one in nodes if one.op == "reduce").arg, {"op": "add", "axes": [2]})
    checks.equal(next(one for one in nodes if one.op == "param").arg["shape"], [4, 3])
    checks.true(all(nodes.index(source) < i for i, one in enumerate(nodes) for source in one.src))
    checks.true("reduce.f32" in str(root) and "max" in repr(root))
    deep = a
    for _ in range(3000):
        deep = (deep + 1).relu()
    checks.true(len(deep.uop.toposort()) > 6000)
    kernels = y.schedule()
    checks.true(all(len(repr(kernel)) < 120 and kernel.name in repr(kernel) for kernel in kernels), kernels)
    checks.equal([len(kernels), GlobalCounters.kernel_count, kernels[0].device], [1, 0, y.device])
    checks.true(kernels[0].name in kernels[0].text and kernels[0].source and kernels[0].flops >= 48, kernels[0])
    checks.equal(len(y.schedule(other.exp())), 2)
    y.realize()
    checks.equal([y.schedule(), y.uop.op, GlobalCounters.kernel_count], [[], "param", 1])


SHOWN = """
from tinycore import Tensor, TinyJit, nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.fc = nn.Conv2d(1, 2, 3), nn.Linear(32, 5)
    def forward(self, x):
        return self.fc(self.conv1(x).relu().flatten(1))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(Block(), nn.Linear(5, 3))
    def forward(self, x):
        return self.layer1(x)
net = Net()
step = TinyJit(lambda x: net(x).realize())
for i in range(3):
    step(Tensor.rand(4, 1, 6, 6))
"""


def test_kernels_of_modules():
    """DEBUG=2 says of which module a kernel's weights are, also of what is replayed; without it nothing is printed, and kernels are the same."""
    env = {**os.environ, "DEV": "REF", "TINY_CACHE_DIR": tempfile.mkdtemp()}
    found = subprocess.run([sys.executable, "-c", SHOWN], capture_output=True, text=True, env={**env, "DEBUG": "2"})
    lines = [line.split("GB/s")[1].strip() for line in found.stderr.splitlines() if "linear_" in line or "conv" in line.split()[1]]
    checks.equal([lines[-3:], lines[-6:-3]], [["layer1.0.conv1", "layer1.0.fc", "layer1.1"]] * 2)
    checks.equal(subprocess.run([sys.executable, "-c", SHOWN], capture_output=True, text=True, env=env).stderr, "")


def test_hooks_with_names():
    """Hooks that see what is given by name, those that come first, and those of gradients of modules whose inputs and results are in lists and dicts."""
    class Scaled(nn.Module):
        def forward(self, x, *, by=1.0):
            return {"y": x * by, "n": [x.sum()]}

    module, seen, x = Scaled(), [], Tensor([1.0, 2.0], requires_grad=True)
    first = module.register_forward_pre_hook(lambda module, inputs, more: seen.append("last") or (inputs, {"by": more["by"] * 2}), with_kwargs=True)
    module.register_forward_pre_hook(lambda module, inputs: seen.append("first"), prepend=True)
    after = module.register_forward_hook(lambda module, inputs, more, result: seen.append(more["by"]) or {**result, "more": more["by"]}, with_kwargs=True)
    with module.register_full_backward_pre_hook(lambda module, gradients: [one * 10 for one in gradients]), \
            module.register_full_backward_hook(lambda module, given, wanted: seen.append((len(given), len(wanted)))):
        found = module(x, by=3.0)
        (found["y"].sum() + found["n"][0]).backward()
    checks.equal((seen, found["more"], x.grad.tolist()), (["first", "last", 6.0, (1, 2)], 6.0, [70.0, 70.0]))
    first.remove()
    after.remove()
    seen.clear()
    checks.equal((module(x, by=2.0)["y"].tolist(), seen), ([2.0, 4.0], ["first"]))
    module.register_forward_pre_hook(lambda module, inputs, more: 3, with_kwargs=True)
    checks.raises(TypeError, module, x)
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda *given: 1 / 0)
    checks.raises(ZeroDivisionError, layer(x).sum().backward)


def test_modules_to_import():
    """The modules that PyTorch's programs import by their whole names, in a fresh process."""
    names = ["nn.functional", "nn.init", "nn.parallel", "nn.utils", "nn.utils.rnn", "nn.utils.parametrizations", "optim.lr_scheduler", "nn.optim.lr_scheduler", "utils.data",
             "utils.checkpoint", "backends.cudnn", "backends.mps", "amp", "autograd", "distributions", "fft", "func", "linalg", "special"]
    text = "\n".join(f"import tinycore.{name} as found; assert found is not None" for name in names) + """
from tinycore.optim.lr_scheduler import StepLR
from tinycore.distributions import Categorical
import tinycore.optim as optim
assert optim.lr_scheduler.StepLR is StepLR
"""
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    checks.equal((found.returncode, found.stderr), (0, ""))


if __name__ == "__main__":
    checks.run(globals())
