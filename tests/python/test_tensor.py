#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Tensor of Python: made from data, operators, slices, reading, protocols, errors.

TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import ast
import copy
import inspect
import os
import pickle
import types

import checks
import tinycore
from tinycore import Context, Device, Tensor, TinyError, dtypes, no_grad
from tinycore.creation import Creation
from tinycore.operations import Operations


def test_lists():
    for data, dtype in (([[1, 2], [3, 4]], dtypes.int32), ([1, 2.5], dtypes.float32), ([True, False], dtypes.bool),
                        ([[[]]], dtypes.float32), (7, dtypes.int32), (True, dtypes.bool), ((1, (2)), dtypes.int32)):
        tensor = Tensor(data)
        checks.equal(tensor.dtype, dtype)
        checks.equal(tensor.tolist(), list(data) if isinstance(data, tuple) else data)
    checks.equal(Tensor(range(3)).tolist(), [0, 1, 2])
    checks.equal(Tensor([2**40], dtype=dtypes.int64).item(), 2**40)
    checks.equal(Tensor(2**64 - 1, dtype="uint64").item(), 2**64 - 1)
    checks.equal(Tensor([Tensor([1, 2]), Tensor([3, 4])]).tolist(), [[1, 2], [3, 4]])
    for dtype in dtypes.all:
        checks.equal(Tensor([0, 1], dtype=dtype).dtype, dtype)
        checks.equal(Tensor([0, 1], dtype=dtype).tolist(), [0, 1])


def test_bytes():
    checks.equal(Tensor(b"\1\2").tolist(), [1, 2])
    checks.equal(Tensor(bytearray(b"\1\0\2\0"), dtype=dtypes.int16).tolist(), [1, 2])
    view = memoryview(bytes(8)).cast("H", (2, 2))
    checks.equal((Tensor(view).dtype, Tensor(view).shape), (dtypes.uint16, (2, 2)))
    checks.equal(Tensor([1.0, 2.0]).data().tolist(), [1.0, 2.0])


def test_bad_data():
    inside = []
    inside.append(inside)
    for data in ("text", object(), [object()], [[1], [1, 2]], [1, [2]], [[1], 2], inside, 1j, [None], {1: 2}, {1, 2},
                 [[1, 2], "ab"], lambda: 0, [float], b"abc", [[]] + [[1]]):
        dtype = dtypes.int32 if data == b"abc" else None
        checks.raises((TypeError, ValueError), Tensor, data, dtype=dtype)
    checks.raises(OverflowError, Tensor, 2**31)
    checks.raises(OverflowError, Tensor, [2**70])
    checks.raises(OverflowError, Tensor, [-1], dtype="uint8")
    checks.raises((OverflowError, ValueError), Tensor, [float("inf")], dtype="int32")
    checks.raises(TypeError, Tensor, [1], dtype="float31")
    checks.raises(TypeError, type, "Mine", (Tensor,), {})


def test_operators():
    x, y = Tensor([1, 2, 3]), Tensor([4, 5, 6])
    for text in ("x + y", "x - y", "x * y", "y // x", "y % x", "x & y", "x | y", "x ^ y", "x << y", "y >> x", "-x",
                 "~x", "abs(-x)", "x + 2", "2 - x", "2 * x", "7 // x", "7 % x", "2 << x", "x == y", "x != 2", "x < 2",
                 "x >= 2", "x > y", "x <= y", "6 & y", "1 | y", "1 ^ x", "True & (x < 2)"):
        wanted = [eval(text, {"x": a, "y": b}) for a, b in ((1, 4), (2, 5), (3, 6))]
        checks.equal(eval(text, {"x": x, "y": y}).tolist(), wanted, text)
    checks.equal((x / 2).tolist(), [0.5, 1, 1.5])
    checks.equal((6 / x).tolist(), [6, 3, 2])
    checks.equal((x ** 2.0).tolist(), [1, 4, 9])
    checks.equal((x @ y).item(), 32)
    checks.equal((x + 0.5).dtype, dtypes.float32)
    checks.equal((x.half() + 0.5).dtype, dtypes.float16)
    checks.equal((Tensor([1], dtype="int64") + 2**60).tolist(), [2**60 + 1])
    checks.equal(str((Tensor([1.0]) * -0.0).item()), "-0.0")
    checks.equal(str((Tensor([1.0]) * 0.0).item()), "0.0")
    kept = x
    x += 1
    x *= y
    checks.equal((x is kept, x.tolist()), (True, [8, 15, 24]))
    for bad in ("x + None", "x + 'a'", "None - x", "x @ [1]", "x < 'a'", "x ** {}", "x + [1, 2, 3]"):
        checks.raises(TypeError, eval, bad, {"x": x})


def test_slices():
    data = [[[100 * i + 10 * j + k for k in range(4)] for j in range(3)] for i in range(2)]
    tensor = Tensor(data)
    for key, wanted in ((0, data[0]), (-1, data[-1]), ((1, 2, 3), 123), ((0, slice(None, None, -1)), data[0][::-1]),
                        (slice(5, 9), []), ((Ellipsis, 0), [[row[0] for row in part] for part in data]),
                        ((1, slice(0, 3, 2), slice(3, 0, -2)), [row[3:0:-2] for row in data[1][0:3:2]]),
                        (slice(-1, None), data[-1:]), (Ellipsis, data), ((0, ..., -1), [row[-1] for row in data[0]])):
        checks.equal(tensor[key].tolist(), wanted, key)
    checks.equal(tensor[None].shape, (1, 2, 3, 4))
    checks.equal(tensor[:, None, 0, ..., None].shape, (2, 1, 4, 1))
    checks.equal(tensor[2**70:].shape, (0, 3, 4))
    for key in (2, -3, (0, 3), (0, 0, 0, 0), "a", 1.5, (..., ...), object(), 2**70):
        checks.raises(IndexError, tensor.__getitem__, key)
    checks.raises(ValueError, tensor.__getitem__, slice(None, None, 0))
    checks.equal([part.tolist() for part in tensor], data)
    checks.equal(len(tensor), 2)
    checks.raises(TypeError, len, Tensor(1))


def test_positions():
    data = [[10 * i + j for j in range(4)] for i in range(3)]
    tensor = Tensor(data)
    checks.equal(tensor[[2, 0]].tolist(), [data[2], data[0]])
    checks.equal(tensor[Tensor([2, -1]), Tensor([0, 1])].tolist(), [20, 21])
    checks.equal(tensor[:, Tensor([[1], [3]])].shape, (3, 2, 1))
    checks.equal(tensor[tensor > 20].tolist(), [21, 22, 23])
    checks.equal(tensor[[True, False, True]].tolist(), [data[0], data[2]])
    checks.equal(tensor[[]].shape, (0, 4))
    checks.equal(tensor[Tensor(1)].tolist(), data[1])
    for key in ([0.5], Tensor([0.5]), ["a"], [[1], [1, 2]], Tensor([True]), (Tensor([0, 1]), Tensor([0, 1, 2]))):
        checks.raises((IndexError, TypeError, ValueError), tensor.__getitem__, key)
    tensor[tensor > 12] = -1
    tensor[[0, 0], [1, 2]] = Tensor([7, 8])
    checks.equal(tensor.tolist(), [[0, 7, 8, 3], [10, 11, 12, -1], [-1, -1, -1, -1]])
    tensor[Tensor([2])] = [[1, 2, 3, 4]]
    checks.equal(tensor[2].tolist(), [1, 2, 3, 4])


def test_assigning():
    tensor = Tensor.zeros(3, 4).contiguous().realize()
    tensor[1] = 5
    tensor[:, 0] = Tensor([1.0, 2.0, 3.0])
    tensor[::-2, -1:1:-1] = [[7, 8], [9, 10]]
    checks.equal(tensor.tolist(), [[1, 0, 10, 9], [2, 5, 5, 5], [3, 0, 8, 7]])
    tensor[...] = 1
    tensor[5:] = 3
    checks.equal(tensor.sum().item(), 12)
    checks.raises(ValueError, tensor.__setitem__, 0, [1, 2, 3])
    checks.raises(IndexError, tensor.__setitem__, 3, 0)


def test_names():
    x = Tensor([[3.0, 1.0], [2.0, 4.0]])
    checks.equal(x.sum(axis=0).tolist(), x.sum(dim=0).tolist())
    checks.equal(x.sum((0, 1)).item(), 10)
    checks.equal(x.max(-1, keepdim=True).shape, (2, 1))
    checks.equal(x.reshape(4).shape, x.reshape((4,)).shape)
    checks.equal(x.permute(1, 0).tolist(), x.T.tolist())
    checks.equal(Tensor.cat(x, x, dim=1).tolist(), Tensor.cat([x, x], 1).tolist())
    checks.equal(Tensor.stack([x, x]).shape, (2, 2, 2))
    checks.equal((x > 1.5).where(x, 0).tolist(), [[3, 0], [2, 4]])
    checks.equal(x.subtract(1).tolist(), (x - 1).tolist())
    checks.equal(x.pad((1, 0)).tolist(), [[0, 3, 1], [0, 2, 4]])
    checks.equal(x.pad((0, 0, 1, 0), value=5).tolist(), [[5, 5], [3, 1], [2, 4]])
    checks.equal(x.pad(((0, 1), None)).tolist(), [[3, 1], [2, 4], [0, 0]])
    checks.equal(x.shrink((None, (1, 2))).tolist(), [[1], [4]])
    checks.equal(x.rearrange("(a b) c -> c a b", a=2).shape, (2, 2, 1))
    checks.equal([part.tolist() for part in x.split(1, 1)], [[[3], [2]], [[1], [4]]])
    checks.equal(x.cat(x, dim=1).shape, (2, 4))
    checks.equal(x.repeat(2, 1).shape, (4, 2))
    checks.equal([one.shape for one in x.reshape(1, 1, 2, 2).max_pool2d(2, return_indices=True)], [(1, 1, 1, 1)] * 2)
    checks.equal(x.sequential([Tensor.relu, lambda t: t + 1]).tolist(), [[4, 2], [3, 5]])
    checks.raises((TypeError, ValueError), x.pad, 3)
    checks.raises(ValueError, x.pad, (1, 2, 3))
    checks.raises(ValueError, x.shrink, ((0, 1),))
    checks.raises(TypeError, x.sum, axis=0.5)
    checks.raises(TypeError, x.reshape, 2.5)
    checks.raises(TypeError, x.reshape, "ab")
    checks.raises(TypeError, x.cast, "complex64")
    checks.raises(TypeError, Tensor.cat, [x], [x], [x])
    checks.raises(TypeError, x.sum, 0, True, 3)


def test_errors():
    x = Tensor([[1, 2]])
    for call, text in ((lambda: x @ x, "inner sizes"), (lambda: x.reshape(3), "does not fit"), (lambda: x.sum(2), "axis 2"),
                       (lambda: x + Tensor([1, 2, 3]), "(3,)"), (lambda: Tensor.zeros(-1), "negative"),
                       (lambda: Tensor.zeros(2**40, 2**40), "2^48"), (lambda: Tensor.zeros([1] * 17), "16")):
        error = checks.raises(ValueError, call)
        checks.true(isinstance(error, TinyError) and text in str(error), repr(error))
    checks.raises((OverflowError, ValueError), Tensor.zeros, 2**70)
    checks.raises(LookupError, Tensor, [1], device="NO-SUCH")
    checks.raises(MemoryError, lambda: Tensor.empty(2**47))
    for wrong in (None, 3, "x", object()):
        checks.raises(TypeError, Tensor.relu, wrong)
        checks.raises(TypeError, x.matmul, wrong) if wrong != 3 else None


def test_reading():
    x = Tensor([[1, 2], [3, 4]])
    checks.equal((x.shape, x.ndim, x.numel(), len(x), x.size(0), x.nbytes(), x.element_size()), ((2, 2), 2, 4, 2, 2, 16, 4))
    checks.equal(repr(Tensor([1.5])), f"Tensor([1.5], dtypes.float32, device={Device.DEFAULT!r})")
    checks.equal((int(x[0, 0]), float(x[1, 1]), bool(x[0, 0]), [5, 6][x[0, 0]]), (1, 4.0, True, 6))
    checks.equal(f"{Tensor(1.25):.1f}", "1.2")
    checks.true(3 in x and 5 not in x)
    checks.raises(TypeError, bool, x)
    checks.raises(ValueError, x.item)
    checks.raises(TypeError, lambda: [1][Tensor(0.0)])
    for dtype in dtypes.all:
        again = pickle.loads(pickle.dumps(Tensor([0, 1], dtype=dtype)))
        checks.equal((again.dtype, again.tolist()), (dtype, [0, 1]))
    checks.equal(copy.deepcopy(x).tolist(), x.tolist())
    checks.equal({x: 1}[x], 1)


def test_gradients():
    w = Tensor([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    checks.equal(w.grad.tolist(), [2, 4])
    w.grad = None
    checks.equal((w.grad, w.requires_grad), (None, True))
    grad, = (w * w).sum().gradient(w)
    checks.equal(grad.tolist(), [2, 4])
    (w * w).backward(Tensor([1.0, 0.5]))
    checks.equal(w.grad.tolist(), [2, 2])
    with no_grad():
        frozen = w * w
    w.grad = None
    (w * frozen).sum().backward()
    checks.equal(w.grad.tolist(), [1, 4])
    w.grad = None
    checks.raises(TypeError, setattr, w, "grad", w)
    checks.raises(ValueError, (Tensor([1.0]) * 2).sum().backward)
    checks.raises(ValueError, (w * w).backward)


def test_modes():
    checks.equal(Tensor.training, False)
    with Tensor.train():
        checks.equal(Tensor.training, True)
        with Tensor.train(False):
            checks.equal(Tensor.training, False)
    checks.equal(Tensor.train()(lambda: Tensor.training)(), True)
    checks.equal(Tensor.training, False)
    with Context(TINY_NO_OPT=1):
        checks.equal(Context(TINY_NO_OPT=2).__enter__().before, [{"TINY_NO_OPT": "1"}])
    checks.raises(ValueError, Context(NO_SUCH=1).__enter__)
    checks.raises(ValueError, Context(DEBUG="loud").__enter__)


def test_devices():
    name = Device.DEFAULT
    checks.true(name in Device.get_available_devices())
    Device[name].synchronize()
    checks.equal(Tensor([1]).device, name)
    checks.equal(Tensor.ones(2).to(name).device, name)
    checks.raises(LookupError, lambda: Device["NO-SUCH"])
    checks.raises(LookupError, setattr, Device, "DEFAULT", "NO-SUCH")
    checks.raises(ValueError, lambda: Device[""])
    checks.raises(TypeError, lambda: Device[3])
    checks.equal(Device.DEFAULT, name)


def stub_of(name):
    """The methods in a stub file, with the names of their arguments."""
    text = open(os.path.join(os.path.dirname(tinycore.__file__), name)).read()
    found, body = {}, next(node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)).body
    for node in body:
        if isinstance(node, ast.FunctionDef):
            if any(ast.unparse(one).endswith(".setter") for one in node.decorator_list):
                continue
            a = node.args
            found[node.name] = [one.arg for one in (*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg) if one is not None]
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            found[node.targets[0].id] = found[node.value.id]
    return found


def test_stubs():
    """Type checkers see every method with the arguments that it has."""
    stubs, seen = {**stub_of("operations.pyi"), **stub_of("tensor.pyi")}, 0
    for one in (Operations, Creation, Tensor):
        for name, what in vars(one).items():
            function = what.__func__ if isinstance(what, staticmethod) else what.fget if isinstance(what, property) else what
            if getattr(Tensor, name) is not getattr(one, name):
                continue  # written by hand
            if name.startswith("_") or not isinstance(function, types.FunctionType) or function.__name__ not in (name, *stubs):
                continue
            if function.__name__ != name and name not in stubs:
                continue  # x.add_ and other forms of an operator
            seen += 1
            checks.equal(stubs.get(name), list(inspect.signature(function).parameters), f"the stub of {name}")
    checks.true(seen > 250, seen)


def test_allclose():
    x = Tensor([1.0, float("nan")])
    checks.equal((x.allclose(x), x.allclose(x, equal_nan=True), x.allclose(x + 1, equal_nan=True)), (False, True, False))


checks.run(globals())
