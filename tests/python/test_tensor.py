#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Tensor of Python: made from data, operators, slices, reading, protocols, errors.

TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import array
import ast
import copy
import ctypes
import gzip
import hashlib
import http.server
import inspect
import math
import os
import pathlib
import pickle
import tempfile
import threading
import time
import types
import unittest.mock

import checks
import tinycore
from tinycore import Context, Device, Tensor, TinyError, autograd, dtypes, no_grad
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
    checks.equal((Tensor(2**31).dtype, Tensor([1, -2**40]).tolist(), Tensor(2**31 - 1).dtype), (dtypes.int64, [1, -2**40], dtypes.int32))
    checks.raises(OverflowError, Tensor, [2**70])
    checks.raises(OverflowError, Tensor, [-1], dtype="uint8")
    checks.raises((OverflowError, ValueError), Tensor, [float("inf")], dtype="int32")
    checks.raises(TypeError, Tensor, [1], dtype="float31")
    checks.raises(TypeError, type, "Mine", (Tensor,), {})


def test_wide_integers():
    """Integers beyond 32 and 53 bits stay what they are, as PyTorch's."""
    big = (1 << 53) + 1
    for found, wanted in ((Tensor.arange(2**31, 2**31 + 4), range(2**31, 2**31 + 4)), (Tensor.arange(big, big + 6, 2), range(big, big + 6, 2)),
                          (Tensor.arange(-2**63, -2**63 + 2), range(-2**63, -2**63 + 2)), (Tensor.arange(2**62, -2**62, -big * 400), range(2**62, -2**62, -big * 400)),
                          (Tensor.arange(2**63 - 3, 2**63 - 1), range(2**63 - 3, 2**63 - 1)),
                          (Tensor.arange(2**64 - 2, 2**64 - 1, dtype="uint64"), [2**64 - 2]), (Tensor.full((2,), big), [big] * 2),
                          (Tensor.full((1,), -2**40), [-2**40]), (Tensor([1, 2], dtype="int64").pad((1, 1), value=big), [big, 1, 2, big]),
                          (Tensor([0], dtype="int64").full_like(big), [big]), (Tensor([0], dtype="int64").fill_(big), [big])):
        checks.equal(found.tolist(), list(wanted))
        checks.true(found.dtype.itemsize == 8, found.dtype)
    checks.equal((Tensor.arange(4).dtype, Tensor.arange(2**31 - 1, 2**31).dtype, Tensor.arange(0, 2**40, 2**39, dtype="int64").tolist()),
                 (dtypes.int32, dtypes.int32, [0, 2**39]))
    checks.equal((Tensor.arange(5, 0).tolist(), Tensor.arange(0, 10, 3).tolist(), Tensor.arange(0, 1, 0.25).tolist(), Tensor.arange(3, dtype="int64").tolist()),
                 ([], [0, 3, 6, 9], [0, 0.25, 0.5, 0.75], [0, 1, 2]))
    checks.equal((Tensor.full((2,), True).dtype, Tensor.eye(2, dtype="int64").tolist()), (dtypes.bool, [[1, 0], [0, 1]]))
    for wrong in (lambda: Tensor.arange(0, 5, 0), lambda: Tensor.arange("a"), lambda: Tensor.arange(2**70), lambda: Tensor.full((1,), 2**70)):
        checks.raises((TypeError, ValueError, OverflowError), wrong)


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
    where = Tensor([[0], [1]])
    checks.equal(x.gather(dim=1, index=where).tolist(), x.gather(1, where).tolist())
    checks.equal(x.unflatten(dim=1, sizes=(2, 1)).shape, (2, 2, 1))
    checks.raises(TypeError, x.gather, index=where)
    checks.raises(TypeError, x.gather, dim=1)
    checks.equal(sorted(Tensor.randperm(9).tolist()), list(range(9)))
    checks.raises((TypeError, ValueError), x.pad, 3)
    checks.raises(ValueError, x.pad, (1, 2, 3))
    checks.raises(ValueError, x.shrink, ((0, 1),))
    checks.raises(TypeError, x.sum, axis=0.5)
    checks.raises(TypeError, x.reshape, 2.5)
    checks.raises(TypeError, x.reshape, "ab")
    checks.raises(TypeError, x.cast, "complex64")
    checks.raises(TypeError, Tensor.cat, [x], [x], [x])
    checks.raises(TypeError, x.sum, 0, True, 3)


def test_results():
    """Several results are a tuple with names, as PyTorch's."""
    x = Tensor([[3.0, 1.0, 2.0]])
    found = x.sort(dim=1)
    checks.equal((found.values.tolist(), found.indices.tolist()), ([[1, 2, 3]], [[1, 2, 0]]))
    checks.true(isinstance(found, tuple) and found[0] is found.values and len(found) == 2)
    checks.equal([one.shape for one in x.svd()], [(1, 1), (1,), (3, 3)])
    checks.equal(x.svd(full_matrices=False).Vh.shape, (1, 3))
    checks.equal((x.median().item(), x.median(1).values.tolist(), x.median(dim=1, keepdim=True).indices.tolist()), (2, [2], [[2]]))
    checks.true(repr(x.std_mean()).startswith("(std=Tensor(1."), repr(x.std_mean()))
    y = Tensor([2, 1, 2, 2])
    checks.equal(y.unique().tolist(), [1, 2])
    checks.equal([one.tolist() for one in y.unique(return_inverse=True, return_counts=True)], [[1, 2], [1, 0, 1, 1], [1, 3]])
    checks.equal([one.tolist() for one in y.unique_consecutive(return_counts=True)], [[2, 1, 2], [1, 1, 2]])
    checks.equal(Tensor([[1, 2], [1, 2]]).unique(dim=0).tolist(), [[1, 2]])
    checks.equal(Tensor.gather(x, dim=1, index=Tensor([[2]])).tolist(), [[2]])
    checks.equal(x.cumsum(dim=1).tolist(), [[3, 4, 6]])
    for call in (lambda: x.gather(dim=1), lambda: x.gather(index=Tensor([[2]])), x.index_select):
        checks.true("not given" in str(checks.raises(TypeError, call)))


def test_dtype_of_sums():
    x = Tensor([[60000.0, 60000.0]]).half()
    checks.equal((x.sum().item(), x.sum(dtype="float32").item()), (float("inf"), 120000))
    checks.equal((x.mean(dtype=dtypes.float64).dtype, x.int().sum(dtype=dtypes.int64).dtype), (dtypes.float64, dtypes.int64))
    checks.equal(Tensor([True, True]).cumsum(0, dtype=dtypes.int8).dtype, dtypes.int8)
    for dtype in ("float31", 3, object()):
        checks.raises(TypeError, x.sum, dtype=dtype)
    checks.raises(TypeError, x.mean, dtype=dtypes.int32)


def test_other_names():
    """What tinygrad calls by another name, or has beside PyTorch."""
    x = Tensor([1, 2])
    checks.equal((x.usum(x, 3).tolist(), x.uprod([x, x]).tolist(), x.usum().tolist()), ([5, 7], [1, 8], [1, 2]))
    gate = Tensor([True, False])
    checks.equal((gate.usum(gate).tolist(), gate.uprod(~gate).tolist()), ([True, False], [False, False]))
    checks.equal((x.half() + Tensor.const(2.5)).dtype, dtypes.float16)
    checks.equal((Tensor.const(2.5, dtype="float64").dtype, x.const_like(7).tolist()), (dtypes.float64, [7, 7]))
    checks.equal((Tensor.invalids(2, 3).shape, Tensor.invalids((4,), dtype="int8").dtype), ((2, 3), dtypes.int8))
    checks.equal((x.half().is_param_().requires_grad, x.half().is_param_(False).requires_grad), (True, False))
    checks.equal(sorted(Tensor.randperm(9).tolist()), list(range(9)))
    checks.equal((Tensor.randperm(3, dtype="int64").dtype, Tensor.randperm(0).shape), (dtypes.int64, (0,)))
    checks.raises(ValueError, Tensor.randperm, -1)
    code = """
%y = param.f32{slot=0, shape=[4]}
%x = param.f32{slot=1, shape=[4]}
%i = range.index{number=0, kind=loop}(4)
sink{name="add_one"}(store(%y, %i, add.f32(load.f32(%x, %i), 1.0)))
"""
    given = Tensor([1.0, 2.0, 3.0, 4.0])
    checks.equal([one.tolist() for one in given.custom_kernel(code=code)], [[2, 3, 4, 5]])
    checks.raises(ValueError, given.custom_kernel, code="nonsense")
    checks.raises(ValueError, x.custom_kernel, code=code)
    checks.raises(TypeError, given.custom_kernel, code=None)


def test_blob():
    memory = array.array("f", range(6))
    address = memory.buffer_info()[0]
    tensor = Tensor.from_blob(address, (2, 3))
    checks.equal((tensor.tolist(), tensor.dtype), ([[0, 1, 2], [3, 4, 5]], dtypes.float32))
    checks.equal(Tensor.from_blob(address, 6, dtype=dtypes.int32)[1].item(), 0x3f800000)
    checks.equal(Tensor.from_blob(0, (0, 3)).shape, (0, 3))
    checks.raises(ValueError, Tensor.from_blob, 0, (1,))
    checks.raises(ValueError, Tensor.from_blob, address, (-1,))
    checks.raises((TypeError, ValueError), Tensor.from_blob, "address", (1,))
    aligned = memoryview(bytearray(256)).cast("B")
    start = ctypes.addressof(ctypes.c_char.from_buffer(aligned))
    at = -start % 64
    shared = Tensor.from_blob(start + at, (4,), dtype=dtypes.uint8, device="CPU")
    aligned[at] = 7
    checks.equal(shared.tolist(), [7, 0, 0, 0])


class Answers(http.server.BaseHTTPRequestHandler):
    """What a server has, and how often it was asked."""

    asked = []
    files = {"/plain": b"\1\2\3", "/packed": gzip.compress(b"abc" * 100), "/short": b"12"}

    def do_GET(self):
        self.asked.append(self.path)
        if self.path == "/slow":
            return time.sleep(3)
        found = self.files.get(self.path)
        self.send_response(200 if found is not None else 404)
        if found is not None:
            self.send_header("Content-Length", str(len(found) + (5 if self.path == "/short" else 0)))
        self.end_headers()
        self.wfile.write(found or b"")

    def log_message(self, *rest):
        pass


def test_url():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, TINY_CACHE_DIR=folder):
        base = f"http://127.0.0.1:{server.server_port}"
        for _ in range(2):
            checks.equal(Tensor.from_url(base + "/plain").tolist(), [1, 2, 3])
        checks.equal(Answers.asked, ["/plain"])
        kept, = (path for path in pathlib.Path(folder, "downloads").iterdir() if not path.suffix)
        kept.write_bytes(b"damaged")
        checks.equal(Tensor.from_url(base + "/plain").tolist(), [1, 2, 3])
        checks.equal(len(Answers.asked), 2)
        checks.equal(bytes(Tensor.from_url(base + "/packed", gunzip=True).tolist()), b"abc" * 100)
        checks.equal(Tensor.from_url(base + "/packed", gunzip=True, dtype="int32").shape, (75,))
        good = hashlib.sha256(b"\1\2\3").hexdigest()
        asked = len(Answers.asked)
        checks.equal(Tensor.from_url(base + "/plain", sha256=good.upper()).shape, (3,))
        checks.equal(len(Answers.asked), asked)
        n = len(list(kept.parent.iterdir()))
        for path, kind, options in (("/plain", ValueError, {"sha256": "00" * 32}), ("/plain", ValueError, {"gunzip": True}),
                                    ("/plain", ValueError, {"dtype": "int32"}), ("/none", OSError, {}), ("/short", OSError, {}),
                                    ("/slow", OSError, {"timeout": 0.3})):
            error = checks.raises(kind, Tensor.from_url, base + path, **options)
            checks.true(isinstance(error, TinyError), repr(error))
        checks.true(len(list(kept.parent.iterdir())) <= n, "something half was kept")
        local = pathlib.Path(folder, "a file")
        local.write_bytes(b"xy")
        checks.equal(Tensor.from_url(local.as_uri()).tolist(), [120, 121])
        checks.raises(OSError, Tensor.from_url, local.as_uri() + "z")
        for url in ("ftp://127.0.0.1/x", "nothing", "data:text/plain,x", ""):
            checks.raises(ValueError, Tensor.from_url, url)
    server.shutdown()


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


def test_large_numbers():
    """A whole number takes the dtype of the integers that it meets, also beyond 32 bits."""
    t = Tensor([2**31 + 1, 7], dtype=dtypes.int64)
    checks.equal((t + 4294967295).tolist(), [2**31 + 2**32, 2**32 + 6])
    checks.equal((t % 2**31).tolist(), [1, 7])
    checks.equal((t == 2**31).tolist(), [False, False])
    checks.equal((t & 2**31).tolist(), [2**31, 0])
    checks.equal(t.maximum(2**40).tolist(), [2**40, 2**40])
    t += 2**33
    checks.equal((t.dtype, t.tolist()), (dtypes.int64, [2**33 + 2**31 + 1, 2**33 + 7]))
    checks.equal(((Tensor([3], dtype="uint64") * 2**40).dtype, (Tensor([True]) + 2**40).tolist()), (dtypes.uint64, [2**40 + 1]))
    checks.equal((Tensor([1.5]) * 2**40).dtype, dtypes.float32)


def test_gradient_of_sinc():
    """Near 0, where cos x - sinc x is nearly nothing, at the joint of both forms, and once more at 0."""
    for dtype, most in (("float32", 1e-6), ("float64", 4e-15)):
        x = Tensor([1e-30, 1e-4, -1e-4, 1e-2, 0.2228, 0.2229, 0.5, 1.3], dtype=dtype, requires_grad=True)
        x.sinc().sum().backward()
        for at, found in zip(x.tolist(), x.grad.tolist()):
            y = math.pi * at
            wanted = math.pi * ((math.cos(y) - math.sin(y) / y) / y if abs(at) > 0.1 else y * (-1 / 3 + y * y / 30 - y**4 / 840 + y**6 / 45360))
            checks.true(abs(found - wanted) < most * abs(wanted), f"{dtype} at {at}: {found} instead of {wanted}")
    x = Tensor([0.0], requires_grad=True)
    slope, = autograd.grad(x.sinc().sum(), x, create_graph=True)
    checks.true(abs(autograd.grad(slope.sum(), x)[0].item() + math.pi**2 / 3) < 1e-6)


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
    for realize in (False, True):  # a variable whose memory had another shape, moved on
        moved = Tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).reshape(2, 3)
        moved = (moved.realize() if realize else moved).requires_grad_()
        (Tensor([[1.0, 2.0, 3.0]]) @ moved.T).sum().backward()
        checks.equal(moved.grad.tolist(), [[1, 2, 3]] * 2)
    with no_grad():
        frozen = w * w
    w.grad = None
    (w * frozen).sum().backward()
    checks.equal(w.grad.tolist(), [1, 4])
    w.grad = None
    checks.raises(TypeError, setattr, w, "grad", 3)
    checks.raises(ValueError, setattr, w, "grad", Tensor([1.0]))
    checks.raises(ValueError, (Tensor([1.0]) * 2).sum().backward)
    checks.raises(ValueError, (w * w).backward)


def test_requiring():
    """What is computed from what requires gradients requires them, until it is detached; a gradient can be changed and set."""
    w = Tensor([1.0, 2.0], requires_grad=True)
    y = w * 2
    checks.equal([(t.requires_grad, t.is_leaf) for t in (w, y, y[0], y.realize(), y.detach(), y > 1, Tensor(w, dtype="float64"))],
                 [(True, True)] + 3 * [(True, False)] + 2 * [(False, True)] + [(True, False)])
    with no_grad():
        checks.equal((w * 2).requires_grad, False)
    checks.raises(ValueError, setattr, y, "requires_grad", False)
    checks.equal(copy.deepcopy(y).requires_grad, False)
    (Tensor(w) * Tensor(w, dtype="float64")).sum().backward()
    checks.equal((w.grad.tolist(), w.grad.dtype), ([2, 4], dtypes.float32))
    w.grad *= 0.5
    checks.equal(w.grad.tolist(), [1, 2])
    w.grad = Tensor([10.0, 20.0])
    (w * 3).sum().backward()
    checks.equal(w.grad.tolist(), [13, 23])
    optimizer = tinycore.nn.optim.SGD([w], lr=1)
    optimizer.step()
    checks.equal((w.tolist(), w.grad.tolist()), ([-12, -21], [13, 23]))
    optimizer.zero_grad()
    optimizer.step()
    checks.equal((w.tolist(), w.grad), ([-12, -21], None))
    checks.raises(ValueError, tinycore.nn.optim.SGD, [w * 2])


def test_modes():
    checks.equal(Tensor.training, False)
    with Tensor.train():
        checks.equal(Tensor.training, True)
        with Tensor.train(False):
            checks.equal(Tensor.training, False)
    checks.equal(Tensor.train()(lambda: Tensor.training)(), True)
    checks.equal(Tensor.training, False)
    with Context(TINY_NO_OPT=1):
        checks.equal(Context(TINY_NO_OPT=0).__enter__().before, [{"TINY_NO_OPT": "1"}])
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


CLASSES = ("Operations", "Composed", "Creation", "Tensor")


def stub_of(name):
    """The methods in a stub file, with the names of their arguments."""
    text = open(os.path.join(os.path.dirname(tinycore.__file__), name)).read()
    found, body = {}, next(node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name in CLASSES).body
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
    stubs, seen = {name: one for file in ("operations", "composed", "creation", "tensor") for name, one in stub_of(f"{file}.pyi").items()}, 0
    for one in (Operations, Creation, Tensor):
        for name, what in vars(one).items():
            function = what.__func__ if isinstance(what, staticmethod) else what.fget if isinstance(what, property) else what
            if getattr(Tensor, name) is not getattr(one, name):
                continue  # written by hand
            if name.startswith("_") or name in ("bytes_of", "marks") or not isinstance(function, types.FunctionType) or function.__name__ not in (name, *stubs):
                continue
            if function.__name__ != name and name not in stubs:
                continue  # x.add_ and other forms of an operator
            seen += 1
            if hasattr(function, "__wrapped__") and function.__name__.endswith("_"):  # in place: it takes what the method takes, also where that is written by hand
                function = getattr(Tensor, function.__name__[:-1], function)
            checks.equal(stubs.get(name), list(inspect.signature(function).parameters), f"the stub of {name}")
    checks.true(seen > 250, seen)


def test_allclose():
    x = Tensor([1.0, float("nan")])
    checks.equal((x.allclose(x), x.allclose(x, equal_nan=True), x.allclose(x + 1, equal_nan=True)), (False, True, False))


def test_clone():
    """Each dtype stays, each bit does, and nothing is shared."""
    for values, dtype in (([True, False], "bool"), ([-0.0, float("inf")], "float32"), ([-3, 2**31 - 1], "int32"), ([255, 0], "uint8")):
        x = Tensor(values, dtype=dtype).realize()
        y = x.clone()
        checks.equal((y.dtype, repr(y.tolist())), (x.dtype, repr(x.tolist())))
        y[0] = 1
        checks.equal(repr(x.tolist()), repr(values))
    w = Tensor([2.0], requires_grad=True)
    loss = (w.clone() * 3).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    checks.equal(w.grad.tolist(), [6.0])


def test_clone_elsewhere():
    """A copy lies where the tensor does."""
    for x in (Tensor([1.0, 2.0], device="REF"), Tensor([[1.0], [2.0]]).to("REF;REF:1"), Tensor([[1.0], [2.0]]).shard(("REF", "REF:1"), 0)):
        copy = x.realize().clone()
        x += 1
        checks.equal((copy.device, copy.flatten().tolist(), x.flatten().tolist()), (x.device, [1.0, 2.0], [2.0, 3.0]))


def test_quantile_beyond():
    """Places that are read with the data and are outside of it have no number."""
    checks.equal(str(Tensor([1.0, 2.0]).quantile(Tensor([0.5, 2.0, -1.0])).tolist()), "[1.5, nan, nan]")


def test_constant_read():
    """A constant that is read goes to memory alone: others of its value stay numbers, of no device."""
    x = Tensor([1.0, 2.0])
    for number in (0, 5, 1.5):
        plus = lambda: ((x + number).tolist(), x.narrow(0, 0, 1).tolist(), (Tensor([1.0], device="REF") + number).tolist())  # noqa: B023, E731
        before = plus()
        constant = Tensor.full((), number)
        checks.equal(constant.item(), number)
        constant += 1
        checks.equal((constant.item(), plus(), Tensor.full((), number).item()), (number + 1, before, number))


def test_number_of_other_device():
    """What operations make of a tensor without looking at it, as the place of the least of one, is on its device."""
    for device in ("REF:1", "REF;REF:1"):
        x = Tensor([1.0], device=device)
        for place in (lambda: x.kthvalue(1)[1], lambda: x.kthvalue(1)[1] + 2, lambda: x.argsort()):  # noqa: B023, E731
            read, assigned = place(), place()
            value = read.tolist()
            checks.equal((read.device, (read + x).device), (x.device, x.device))
            checks.equal((read + x).sum().item(), (x + place()).sum().item())
            read += 1
            assigned += 1
            checks.equal((read.tolist(), assigned.tolist()), ((place() + 1).tolist(),) * 2)
            checks.equal(place().tolist(), value)
    nothing = Tensor([], dtype="uint8")
    checks.equal(nothing.keccak().to("REF;REF:1").tolist(), nothing.keccak().tolist())


checks.run(globals())
