#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files that were written to take the stack, the memory or the time of whoever reads them: an error that names the file, at once.

TAP. Run in the build's environment, by the interpreter that has gi."""
import bz2
import gzip
import io
import itertools
import lzma
import os
import pathlib
import struct
import tarfile
import tempfile
import time
import tracemalloc
import zipfile

import checks
import numpy as np
from tinycore import Tensor
from tinycore.errors import TinyError
from tinycore.nn.state import safe_load_metadata, tar_extract, torch_load, zip_extract

FOLDER = tempfile.TemporaryDirectory()
MOST_SECONDS, MOST_BYTES, LARGE = 5, 128 << 20, 70 << 20


def named(text):
    return b"c" + text.encode() + b"\n"


STORAGE = b"(X\7\0\0\0storage" + named("torch\nFloatStorage") + b"X\1\0\0\x000X\3\0\0\0cpuK\4tQ"
REBUILD = named("torch._utils\n_rebuild_tensor_v2")
DEEP = b")" + b"\x85" * 100000  # ((((…),),),)
TWICE = b"K\1" + b"".join(b"r" + i.to_bytes(4, "little") + b"j" + i.to_bytes(4, "little") + b"\x86" for i in range(64))  # t = (t, t)
HUGE = b"\x8b" + struct.pack("<I", 100000) + b"\1" * 100000  # a whole number of 800,000 bits


def archive(pickled, kind=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as out:
        out.writestr("archive/data.pkl", b"\x80\4" + pickled + b".")
        out.writestr("archive/data/0", bytes(16))
    return file.getvalue()


def tensor(offset, size, stride):
    return REBUILD + b"(" + STORAGE + offset + size + stride + b"\x89}tR"


def refused(read, data, part):
    """An error with @part, soon and with little memory."""
    tracemalloc.start()
    begin = time.monotonic()
    try:
        error = checks.raises((ValueError, OSError), read, data)
        taken, peak = time.monotonic() - begin, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    checks.true(part in str(error) and len(str(error)) < 2000, f"{str(error)[:500]}: wanted {part}")
    checks.true(taken < MOST_SECONDS, f"{part}: {taken:.1f} seconds")
    checks.true(peak < MOST_BYTES + len(data), f"{part}: {peak} bytes")


def test_keys():
    """A key is flat: to hash a tuple of tuples takes the stack, or for ever."""
    for nested in (DEEP, TWICE):
        for pickled in (b"}" + nested + b"K\1s", b"}(" + nested + b"K\1u", b"(" + nested + b"K\1d", b"\x8f(" + nested + b"\x90", b"(" + nested + b"\x91",
                        named("builtins\nset") + b"(](" + nested + b"etR", named("collections\nOrderedDict") + b"(](" + nested + b"K\1\x86etR"):
            refused(torch_load, archive(pickled), "a tuple is a key")
        refused(torch_load, archive(tensor(b"K\0", nested + b"\x85", b"K\1\x85")), "no view has offset 0, sizes (a tuple)")
    keys = b"}(" + b"".join(b"\x8a\x0a" + (i * ((1 << 61) - 1)).to_bytes(10, "little") + b"K\1" for i in range(1, 1000)) + b"u"
    refused(torch_load, archive(keys), "a int is a key")  # of one hash
    for key in (b"K\1\x8a\x08%b\x86", b"\x8a\x08%b"):  # tuples, and numbers alone
        rows = [key.replace(b"%b", (i << 40).to_bytes(8, "little")) + b"K\1" for i in range(1, 5000)]
        rows, keys = b"".join(rows), b"".join(row[:-2] for row in rows)
        for pickled in (b"}(" + rows + b"u", b"(" + rows + b"d", b"\x8f(" + keys + b"\x90", b"(" + keys + b"\x91", named("builtins\nset") + b"(](" + keys + b"etR"):
            refused(torch_load, archive(pickled), "more than 4096 keys")
    found = torch_load(archive(b"}(K\1K\2X\1\0\0\0aK\3NK\4K\1K\2\x86K\5u"))
    checks.equal(found, {1: 2, "a": 3, None: 4, (1, 2): 5})
    many = torch_load(archive(b"}(" + b"".join(b"J" + i.to_bytes(4, "little") + b"K\1" for i in range(20000)) + b"u"))  # parameters of an optimiser
    checks.equal(len(many), 20000)


def test_messages():
    """A message has no value that is without end, and no number is calculated with before it is known to be one of 64 bits."""
    for nested in (DEEP, TWICE, HUGE):
        what = "a int" if nested is HUGE else "a tuple"
        for key, place, count in ((nested, b"X\3\0\0\0cpu", b"K\4"), (b"X\1\0\0\x000", nested, b"K\4"), (b"X\1\0\0\x000", b"X\3\0\0\0cpu", nested)):
            pid = b"(X\7\0\0\0storage" + named("torch\nFloatStorage") + key + place + count + b"tQ"
            refused(torch_load, archive(pid), what)
        refused(torch_load, b"\x80\2" + nested + b".\x80\2K\1.\x80\2}.", f"no file of torch.save(): {what}")
    refused(torch_load, archive(tensor(b"K\0", HUGE + b"q\0010(" + b"h\1" * 1000 + b"t", b"(" + b"K\0" * 1001 + b"t")), "no view has offset 0")
    refused(torch_load, archive(tensor(b"K\0", b"(" + b"J\xff\xff\xff\x7f" * 100000 + b"t", b"(" + b"K\0" * 100000 + b"t")), "no view has offset 0")


def test_copies():
    """Copies that a few bytes of a pickle ask for, again and again, are counted."""
    for pickled in (named("torch\nSize") + b"q\1]q\2(" + b"K\0" * 50000 + b"e0(" + b"h\1h\2\x85R" * 20000 + b"l",
                    named("_codecs\nencode") + b"q\1X" + struct.pack("<I", 300000) + b"a" * 300000 + b"q\x020(" + b"h\1h\2\x85R" * 10000 + b"l",
                    b"(" + b"\x8f" * 1000000 + b"l"):
        refused(torch_load, archive(pickled), "times its own")
    refused(torch_load, archive(b"(" + b"]" * 2000000 + b"l", zipfile.ZIP_DEFLATED), "times its own")


def test_containers():
    """A pickle fills the containers that it makes, calls what it may, and computes nothing."""
    whole = tensor(b"K\0", b"K\4\x85", b"K\1\x85")
    for pickled in (whole + b"K\1K\7s", whole + b"(K\1K\7u", whole + b"(K\1\x90", whole + b"K\1a", whole + b"(K\1e", b"]K\0K\1s"):
        refused(torch_load, archive(pickled), "it changes a ")
    for pickled in (whole + b"K\1\x85R", named("torch\nfloat32") + b"K\1\x85R"):
        refused(torch_load, archive(pickled), "it calls a ")
    for pickled in (b"(" + named("collections\nOrderedDict") + b"o", b"(icollections\nOrderedDict\n", named("collections\nOrderedDict") + b")\x81"):
        refused(torch_load, archive(pickled), "it makes an object")
    refused(torch_load, archive(b"}(K\1u"), "damaged")


def tar_of(name, n, kind=tarfile.REGTYPE):
    info = tarfile.TarInfo(name)
    info.size, info.type = n, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def summed(head):
    head = bytearray(head)
    head[148:156] = b"%06o\0 " % (sum(head[:148]) + sum(head[156:512]) + 256)
    return bytes(head)


def test_tar():
    zeros = tar_of("a", LARGE) + bytes(LARGE + 1024)
    for pack in (gzip.compress, bz2.compress, lzma.compress):
        refused(tar_extract, pack(zeros), "times its own")
        checks.equal(tar_extract(pack(tar_of("a", 3) + b"\1\2\3" + bytes(1533)))["a"].tolist(), [1, 2, 3])
    refused(tar_extract, lzma.compress(tar_of("a", LARGE, tarfile.XHDTYPE) + bytes(LARGE + 1024)), "times its own")
    sparse = bytearray(tar_of("a", 0, tarfile.GNUTYPE_SPARSE))
    sparse[483:495] = b"%011o\0" % (1 << 30)  # the size, none of which is there
    refused(tar_extract, summed(sparse) + bytes(1024), "times its own")
    negative = bytearray(tar_of("a", 0))
    negative[124:136] = (-512).to_bytes(12, "big", signed=True)  # the next head is this one
    refused(tar_extract, summed(negative) + bytes(1024), "“a” has -512 bytes")


def zip_of(kind, n):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as out:
        out.writestr("a", bytes(n))
    return file.getvalue()


def test_zip():
    refused(zip_extract, zip_of(zipfile.ZIP_DEFLATED, LARGE), "times its own")
    for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):  # which unpack all that was read at once, whatever size is told
        refused(zip_extract, zip_of(kind, LARGE).replace(struct.pack("<I", LARGE), struct.pack("<I", 10)), "neither stored nor deflated")


def test_head():
    names = "{" + ",".join(f'"{i}":0' for i in range(30000)) + ',"29999":1}'
    refused(safe_load_metadata, struct.pack("<Q", len(names)) + names.encode(), "a name is there twice: 29999")


def test_pipes():
    """Nobody waits for a pipe to be written to."""
    path = os.path.join(FOLDER.name, "pipe")
    os.mkfifo(path)
    for read in (torch_load, zip_extract, tar_extract, safe_load_metadata):
        for given in (path, "/dev/null"):
            error = checks.raises(OSError, read, given)
            checks.true(given in str(error) and "no regular file" in str(error), str(error))
    for given in (path, "/dev/zero"):
        error = checks.raises(OSError, Tensor, pathlib.Path(given))
        checks.true(given in str(error) and "no regular file" in str(error), str(error))


class Endless(list):
    def __iter__(self):
        return itertools.repeat(1.0)


class Longer(list):
    def __len__(self):
        return 1000000


class Shorter(list):
    def __len__(self):
        return 1


def test_liars():
    """Lists that have more or less than they say: no more is read than that, and one."""
    for data, part in ((Endless([1.0, 2.0]), "more than the 2 elements"), ([Endless([1.0]), [2.0]], "more than the 1 elements"), (Longer([1.0]), "less than the 1000000 elements"),
                       (Shorter([1.0, 2.0]), "more than the 1 elements"), ([[Shorter([1.0, 2.0])]], "along axis 2 has more")):
        refused(Tensor, data, part)


def test_bools():
    """A bool of a file is a byte, of which all but 0 are true: never an index beyond 1."""
    code = "\n".join(("%y = param.f32{slot=0, shape=[8]}", "%b = param.bool{slot=1, shape=[8]}", "%z = param.f32{slot=2, shape=[2]}",
                      "%i = range.index{number=0, kind=loop}(8)", "sink(store(%y, %i, load.f32(%z, cast.index(load.bool(%b, %i)))))"))
    given = np.array([0, 1, 255, 128, 2, 3, 254, 0], dtype=np.uint8).view(bool)
    for device in ("CPU", "CPU:CLANG", "REF"):
        try:
            bools, two = Tensor(given, device=device).realize(), Tensor([5.0, 6.0], device=device).realize()
            found = bools.custom_kernel(two, code=code)[0].tolist()
        except TinyError as error:
            checks.true("no clang command" in str(error), str(error))
            print(f"# {device}: not seen: {error}")
            continue
        checks.equal(found, [5, 6, 6, 6, 6, 6, 6, 5], device)
        checks.equal((bools.cast("int32") * 2).tolist(), [0, 2, 2, 2, 2, 2, 2, 0], device)
        checks.equal(two[bools.cast("int32")].tolist(), found, device)


def test_good():
    """Files that are as they should be are still read."""
    checks.equal(torch_load(archive(b"]" + tensor(b"K\0", b"K\4\x85", b"K\1\x85") + b"a"))[0].tolist(), [0.0] * 4)
    checks.equal(zip_extract(zip_of(zipfile.ZIP_DEFLATED, 1 << 20))["a"].numel(), 1 << 20)
    checks.true(isinstance(torch_load(archive(tensor(b"K\1", b"K\2\x85", b"K\1\x85"))), Tensor))


checks.run(globals())
