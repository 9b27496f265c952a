#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tensors and the arrays of NumPy and PyTorch: copies of any array, memory shared by DLPack in both directions and kept
as long as either side has it.

TAP. Run in the build's environment, by an interpreter that has gi, numpy and torch."""
import ctypes
import gc
import weakref

import checks
import numpy
import torch
from tinycore import Device, Tensor, TinyError, Variable, dtypes


def test_arrays():
    base = numpy.arange(24).reshape(2, 3, 4)
    for array in (base, base[:, ::-1, ::2], base.T, base[1:1], base[..., None], base[0, 0, 0], numpy.array(3.5),
                  numpy.broadcast_to(base[0], (2, 3, 4)), numpy.asfortranarray(base), base[::-1, :, ::-3]):
        for dtype in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
                      "float32", "float64", ">f4", ">i8", "<u2"):
            wanted = array.astype(dtype)
            wanted = wanted if array.strides == wanted.strides else numpy.lib.stride_tricks.as_strided(wanted)
            tensor = Tensor(wanted)
            checks.equal((tensor.shape, tensor.dtype.name), (wanted.shape, wanted.dtype.newbyteorder("=").name))
            checks.true(numpy.array_equal(tensor.numpy(), wanted), f"{wanted.shape} {dtype}")
            checks.equal(tensor.tolist(), wanted.tolist())
    read_only = numpy.arange(3)
    read_only.flags.writeable = False
    checks.equal(Tensor(read_only).tolist(), [0, 1, 2])
    checks.equal(Tensor([numpy.float32(1.5), numpy.float32(2)]).dtype, dtypes.float32)
    checks.equal(Tensor([numpy.arange(2), numpy.arange(2)]).tolist(), [[0, 1], [0, 1]])
    checks.equal(Tensor(numpy.arange(2), dtype="float16").dtype, dtypes.float16)


def test_bad_arrays():
    for array in (numpy.array([1, "a"], object), numpy.array(["a"]), numpy.array([1j]), numpy.zeros(2, "M8[s]"),
                  numpy.zeros(2, [("a", "i4")]), numpy.zeros(2, "V3"), numpy.zeros(2, numpy.longdouble),
                  numpy.array([[1], [1, 2]], object), numpy.zeros([1] * 17)):
        checks.raises((TypeError, ValueError), Tensor, array)
        checks.raises((TypeError, ValueError), lambda: Tensor([1.0]) + array)


def test_numpy_is_a_copy():
    tensor = Tensor([1.0, 2.0])
    array = tensor.numpy()
    array[0] = 5
    checks.equal(tensor.tolist(), [1, 2])
    checks.equal(numpy.asarray(tensor, dtype="float64").dtype.name, "float64")
    checks.equal((numpy.float32(2) * tensor).tolist(), [2, 4])
    checks.equal((numpy.arange(2) + tensor).tolist(), [1, 3])
    checks.equal((tensor == numpy.array([1, 3])).tolist(), [True, False])
    checks.equal((tensor + numpy.int64(1)).dtype, dtypes.float32)


def test_from_torch():
    there = torch.arange(12.0).reshape(3, 4)
    here = Tensor.from_dlpack(there)
    there[0, 0] = 77
    checks.equal(here.tolist(), there.tolist())
    here += 1
    here.realize()
    checks.equal(here.tolist(), there.tolist())
    turned = Tensor.from_dlpack(there.t(), copy=False)
    there[0, 1] = 55
    checks.equal(turned.tolist(), there.t().tolist())
    checks.equal(Tensor.from_dlpack(there[:, ::2]).tolist(), there[:, ::2].tolist())
    checks.raises(BufferError, Tensor.from_dlpack, there[:, ::2], copy=False)
    copied = Tensor.from_dlpack(there, copy=True)
    there[0, 0] = -1
    checks.equal(copied[0, 0].item(), 78)
    there_again = torch.from_dlpack(Tensor.from_dlpack(there))
    checks.equal(there_again.data_ptr(), there.data_ptr())
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
                  torch.float32, torch.float64):
        checks.equal(Tensor.from_dlpack(torch.tensor([1, 2], dtype=dtype)).tolist(), [1, 2])
    checks.equal(Tensor.from_dlpack(torch.zeros(0, 3)).shape, (0, 3))
    checks.equal(Tensor.from_dlpack(torch.tensor(3)).item(), 3)
    checks.equal(Tensor(there).tolist(), there.tolist())


def test_to_torch():
    tensor = Tensor([[1.0, 2.0], [3.0, 4.0]]) * 2
    there = torch.from_dlpack(tensor)
    there[0, 0] = 9
    checks.equal(tensor.tolist(), [[9, 4], [6, 8]])
    tensor -= 1
    tensor.realize()
    checks.equal(there.tolist(), [[8, 3], [5, 7]])
    checks.equal(numpy.from_dlpack(tensor).tolist(), there.tolist())
    kept = there.data_ptr()
    del tensor
    gc.collect()
    for _ in range(50):
        Tensor([float(i) for i in range(4)]).realize()
    checks.equal((there.tolist(), there.data_ptr()), ([[8, 3], [5, 7]], kept))
    checks.equal(torch.from_dlpack(Tensor.zeros(0, 2)).shape, (0, 2))
    one = Tensor.ones(2)
    torch.from_dlpack(one)[0] = 5
    checks.equal((one.tolist(), Tensor.ones(2).tolist()), ([5, 1], [1, 1]))


def test_lifetime():
    """What is shared stays while the tensor does, and goes with it."""
    class Owner:
        def __init__(self):
            self.array = numpy.zeros(1000, "float32")

        def __dlpack__(self):
            return self.array.__dlpack__()

    owner = Owner()
    gone = weakref.ref(owner.array)
    address = owner.array.__array_interface__["data"][0]
    tensor = Tensor.from_dlpack(owner)
    del owner
    gc.collect()
    checks.equal(gone() is None, address % 64 != 0, "an array that is shared only")
    view = tensor.reshape(10, 100)
    del tensor
    checks.equal(view.sum().item(), 0)
    del view
    for i in range(3000):
        if gone() is None:
            break
        (Tensor([float(i)]) + 1).realize()
        gc.collect() if i % 100 == 0 else None
    checks.true(gone() is None, "the array is kept for nothing")


def test_capsules():
    capsule = Tensor([1, 2]).__dlpack__()
    checks.equal(Tensor.from_dlpack(capsule).tolist(), [1, 2])
    checks.raises(TypeError, Tensor.from_dlpack, capsule)
    versioned = Tensor([1, 2]).__dlpack__(max_version=(1, 3))
    checks.true("dltensor_versioned" in repr(versioned))
    checks.equal(Tensor.from_dlpack(versioned).tolist(), [1, 2])
    for _ in range(3):
        Tensor([1, 2]).__dlpack__()  # nobody takes it
    for wrong in (None, 3, "x", object(), ctypes.pythonapi):
        checks.raises(TypeError, Tensor.from_dlpack, wrong)
    tensor = Tensor([1.0])
    checks.equal(tensor.__dlpack_device__(), (1, 0))
    checks.raises(BufferError, tensor.__dlpack__, stream=1)
    checks.raises(BufferError, tensor.__dlpack__, dl_device=(2, 0))
    checks.raises(BufferError, Tensor([1], dtype="fp8e5m2").__dlpack__)
    checks.raises(TinyError, Tensor.from_dlpack, torch.zeros(2), device="NO-SUCH")
    checks.equal(Tensor.from_dlpack(torch.zeros(2), device=Device.DEFAULT).device, Device.DEFAULT)


def test_refused_is_not_taken():
    """An argument that is refused leaves the capsule to whoever made it."""
    capsule = Tensor([1, 2]).__dlpack__()
    checks.true("names of devices" in str(checks.raises(TypeError, Tensor.from_dlpack, capsule, device=3)))
    checks.raises(ValueError, Tensor.from_dlpack, capsule, copy=numpy.zeros(2))
    checks.equal(Tensor.from_dlpack(capsule).tolist(), [1, 2])
    part = Tensor.ones(8)[:Variable("v", 1, 8).bind(3)]
    checks.true(str(checks.raises(TinyError, part.__dlpack__)).startswith("to_dlpack: axis 0"))


checks.run(globals())
