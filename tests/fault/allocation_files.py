#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each request for 128 KiB or more is refused once while the Python package reads a file: OutOfMemoryError or what it holds.

The heap that refuses (../heap.c) is in front of the system's: LD_PRELOAD, in the environment."""
import ctypes
import gc
import io
import tarfile
import zipfile

from tinycore import Tensor
from tinycore.errors import OutOfMemoryError
from tinycore.nn.files import safe_load_metadata, tar_extract, torch_load, torch_save, zip_extract

LARGE, LONG, ROUNDS = 128 << 10, 400000, 4


class Askers(ctypes.Structure):
    _fields_ = [("always", ctypes.c_char_p), ("large", ctypes.c_char_p), ("least", ctypes.c_size_t),
                ("helper", ctypes.c_void_p), ("times", ctypes.c_uint)]


heap = ctypes.CDLL(None)
heap.heap_refuse.argtypes = [ctypes.POINTER(Askers), ctypes.c_uint]
heap.heap_stop_refusing.argtypes = [ctypes.c_void_p]
heap.heap_stop_refusing.restype = ctypes.c_size_t
heap.heap_get_n_bytes.restype = ctypes.c_int64


def a_tar(mode):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        row = tarfile.TarInfo("a")
        row.size = LONG
        archive.addfile(row, io.BytesIO(bytes(LONG)))
    return file.getvalue()


def a_zip(kind):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        archive.writestr("a", bytes(LONG))
    return file.getvalue()


def a_model():
    file = io.BytesIO()
    torch_save({"w": Tensor.zeros(LONG).contiguous().realize(), "text": "x" * LONG, "bytes": b"x" * LONG}, file)
    return file.getvalue()


def a_head():
    text = b'{"__metadata__":{"k":"' + b"x" * LONG + b'"}}'
    return len(text).to_bytes(8, "little") + text + bytes(LONG)


def refuse_each(read, data):
    """The fault, or None; the number of requests."""
    askers, n, wrong = Askers(None, None, LARGE, None, 1), 0, None
    for _ in range(ROUNDS):
        read(io.BytesIO(data))
    while wrong is None:
        n += 1
        left = LARGE
        for _ in range(ROUNDS):
            gc.collect()
            before, error = heap.heap_get_n_bytes(), None
            file = io.BytesIO(data)
            heap.heap_refuse(ctypes.byref(askers), n)
            try:
                read(file)
            except BaseException as caught:
                error = caught
            refused = heap.heap_stop_refusing(None)
            if refused == 0:
                return (f"{error!r} with all memory" if error else None), n - 1
            if error is not None and not isinstance(error, OutOfMemoryError):
                wrong = f"request {n}, {refused} bytes: {error!r}"
            del file, error
            gc.collect()
            left = min(left, heap.heap_get_n_bytes() - before)
        if left >= LARGE:
            wrong = f"request {n}: it leaves {left} bytes behind"
    return wrong, n


def main():
    rows = (("tar", tar_extract, a_tar("w"), 1), ("tar.gz", tar_extract, a_tar("w:gz"), 1), ("tar.xz", tar_extract, a_tar("w:xz"), 1),
            ("zip", zip_extract, a_zip(zipfile.ZIP_STORED), 1), ("zip/deflate", zip_extract, a_zip(zipfile.ZIP_DEFLATED), 1),
            ("torch", torch_load, a_model(), 1), ("head", safe_load_metadata, a_head(), 1))
    failed = 0
    for number, (name, read, data, at_least) in enumerate(rows, 1):
        wrong, n = refuse_each(read, data)
        if wrong is None and n < at_least:
            wrong = f"{n} requests, not the {at_least} that the file was made for"
        print(f"# {n} requests were refused" + (f"\n# {wrong}" if wrong else ""))
        print(f"{'not ok' if wrong else 'ok'} {number} {name}", flush=True)
        failed |= wrong is not None
    print(f"1..{len(rows)}")
    return int(failed)


raise SystemExit(main())
