# SPDX-License-Identifier: MIT
"""Tensors in files of others: PyTorch's, archives, the head of a safetensors file.

A file is read at once, and tensors share that memory where the device computes in the host's. What a file says is believed only as far as it fits the file; nothing in it is run: of PyTorch's pickles only tensors, numbers, texts
and containers are read."""
from __future__ import annotations

import io
import json
import os
import pickle
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import contextmanager

from ..convert import Size
from ..data import open_regular, raw
from ..device import device
from ..dtypes import dtypes
from ..errors import FormatError, OutOfMemoryError, TinyError, checked, wants_function
from ..tensor import Base, Tensor
from .unpickler import STORAGES, Unpickler, is_simple, key_of, shown

__all__ = ["safe_load_metadata", "tar_extract", "torch_load", "torch_save", "zip_extract"]

LONGEST_HEAD = 100 << 20
MOST_TIMES, LEAST_ROOM = 100, 64 << 20  # bytes that a file may become in memory, for each of its own, and in any case


def bytes_of(source):
    """A file, a tensor or bytes as one memoryview of bytes. What a file holds is read, and stays what it was."""
    if isinstance(source, Base):
        return memoryview(source.bytes_of())
    if isinstance(source, (bytes, bytearray, memoryview)):
        return memoryview(source).cast("B")
    try:
        if hasattr(source, "read"):  # from where it is
            return memoryview(bytearray(source.read()))
        with open(source, "rb", opener=open_regular) as file:
            content = bytearray(os.fstat(file.fileno()).st_size)
            return memoryview(content)[:file.readinto(content)]
    except MemoryError:
        raise no_memory(name_of(source)) from None


def no_memory(name):
    return OutOfMemoryError(f"{name}: no memory to read it")


class Room:
    """The memory that may still be made of a file."""

    def __init__(self, name, n_bytes):
        self.name, self.most = name, max(LEAST_ROOM, MOST_TIMES * n_bytes)
        self.left = self.most

    def take(self, n_bytes):
        self.left -= n_bytes
        if self.left < 0:
            raise FormatError(f"{self.name}: it would take more than {self.most} bytes of memory, {MOST_TIMES} times its own: "
                              "unpack it first if it is meant to")


class Window(io.RawIOBase):
    """Memory as a file, without a copy. What it does not have is not asked for memory."""

    def __init__(self, view):
        self.view, self.at = view, 0

    def readable(self):
        return True

    seekable = readable

    def seek(self, to, whence=io.SEEK_SET):
        self.at = max(0, to + (0, self.at, len(self.view))[whence])
        return self.at

    def read(self, size=-1):
        end = len(self.view) if size is None or size < 0 else self.at + size
        part = bytes(self.view[self.at:end])
        self.at += len(part)
        return part

    def readinto(self, buffer):
        part = self.view[self.at:self.at + len(buffer)]
        buffer[:len(part)] = part
        self.at += len(part)
        return len(part)


def shared(view, dtype, shape):
    """A tensor of the elements in @view, which shares its memory where that can be written and the device computes in it."""
    if len(view) == 0:
        return raw(None, dtype, list(shape), view)
    import ctypes
    if view.readonly:
        try:
            view = memoryview(bytearray(view))
        except MemoryError:
            raise no_memory("the data") from None
    held = (ctypes.c_char * len(view)).from_buffer(view)  # keeps the memory
    return checked(Base.new_from_blob(None, dtype.value, list(shape), ctypes.addressof(held), lambda *_, held=held: None))


def name_of(source):
    return "the data" if isinstance(source, (Base, bytes, bytearray, memoryview)) or hasattr(source, "read") else str(source)


@contextmanager
def reading(name, what):
    """Whatever a damaged file leads to is an error that says @what it is; want of memory is none of the file's."""
    try:
        yield
    except TinyError:
        raise
    except MemoryError:
        raise no_memory(name) from None
    except Exception as error:
        raise FormatError(f"{name}: {what(error)}") from None


# ---- safetensors ----
def once(members):
    """An object of JSON; a name that is there twice means two things."""
    found = dict(members)
    if len(found) < len(members):
        seen = set()
        raise ValueError("a name is there twice: " + next(name for name, _ in members if name in seen or seen.add(name)))
    return found


def safe_load_metadata(path: Any) -> Any:
    """All bytes of a safetensors file as a tensor, where its data begins, and its head as a dict."""
    name, view = name_of(path), bytes_of(path)
    length = int.from_bytes(view[:8], "little")
    if len(view) < 8 or length > min(LONGEST_HEAD, len(view) - 8):
        raise FormatError(f"{name}: a head of {length} bytes does not fit into {len(view)} bytes")
    with reading(name, "the head is no JSON: {}".format):
        head = json.loads(bytes(view[8:8 + length]).decode(), object_pairs_hook=once)
    if not isinstance(head, dict):
        raise FormatError(f"{name}: the head is a {type(head).__name__}, not names and arrays")
    return shared(view, dtypes.uint8, (len(view),)), 8 + length, head


# ---- archives ----
PACKERS = ((b"\x1f\x8b", "gzip"), (b"BZh", "bz2"), (b"\xfd7zXZ", "lzma"), (b"]\0\0", "lzma"))


def unpacked(view, room):
    """The bytes that a compressed file holds, and other bytes as they are."""
    from importlib import import_module  # archives' modules load slowly
    for magic, module in PACKERS:
        if view[:len(magic)] == magic:
            whole, file = bytearray(), import_module(module).open(Window(view))
            while part := file.read(1 << 20):
                room.take(len(part))
                whole += part
            return memoryview(whole)
    return view


def tar_extract(source: Any) -> dict[str, Tensor]:
    """The files of a tar archive, compressed or not, as tensors of bytes by name."""
    import tarfile
    found, name, view = {}, name_of(source), bytes_of(source)
    room = Room(name, len(view))
    with reading(name, "no tar archive: {}".format):
        view = unpacked(view, room)
        with tarfile.open(fileobj=Window(view), mode="r:") as archive:
            for one in archive:
                if one.size < 0:  # the next one would be this one
                    raise FormatError(f"{name}: “{one.name}” has {one.size} bytes")
                if not one.isreg():
                    continue
                if one.sparse is not None:  # it has what no byte of the file says
                    room.take(one.size)
                data = view[one.offset_data:one.offset_data + one.size] if one.sparse is None else archive.extractfile(one).read()
                if len(data) != one.size:
                    raise FormatError(f"{name}: “{one.name}” has {len(data)} bytes, not {one.size}")
                found[one.name] = shared(memoryview(data), dtypes.uint8, (len(data),))
    return found


class Zip:
    """A zip archive whose stored members are parts of its memory."""

    def __init__(self, source):
        import zipfile
        self.name, self.view = name_of(source), bytes_of(source)
        self.room = Room(self.name, len(self.view))
        with reading(self.name, "no zip archive: {}".format):
            self.archive = zipfile.ZipFile(Window(self.view))

    def names(self):
        return [one.filename for one in self.archive.infolist() if not one.filename.endswith("/")]

    def read(self, name, times=1):
        """A member as a memoryview, of which @times its bytes of memory are made."""
        with reading(self.name, lambda error: f"“{name}” cannot be read: {error}"):
            info = self.archive.getinfo(name)
            if info.compress_type not in (0, 8):  # others are unpacked without a bound
                raise FormatError(f"{self.name}: “{name}” is packed by method {info.compress_type}, and neither stored nor deflated")
            if info.compress_type != 0:
                self.room.take(info.file_size * times)
                return memoryview(self.archive.read(info))
            at = info.header_offset
            at += 30 + int.from_bytes(self.view[at + 26:at + 28], "little") + int.from_bytes(self.view[at + 28:at + 30], "little")
            found = self.view[at:at + info.file_size]
        if len(found) != info.file_size:
            raise FormatError(f"{self.name}: “{name}” has {len(found)} bytes, not {info.file_size}")
        return found


def zip_extract(source: Any) -> dict[str, Tensor]:
    """The files of a zip archive as tensors of bytes by name."""
    archive = Zip(source)
    return {name: shared(part, dtypes.uint8, (len(part),)) for name in archive.names() for part in [archive.read(name)]}


# ---- PyTorch's files ----
MOST_AXES = 64


class Storage:
    """The elements that tensors are views of."""

    __slots__ = ("name", "view", "dtype", "views", "device")

    def __init__(self, name, view, dtype):
        self.name, self.view, self.dtype, self.views, self.device = name, view, dtype, {}, None

    def tensor(self, offset, size, stride, dtype=None):
        dtype = dtype or self.dtype
        if len(size) > MOST_AXES or len(size) != len(stride) or not all(is_simple(one) and isinstance(one, int) and one >= 0
                                                                        for one in (offset, *size, *stride)):
            size, stride = (", ".join(map(shown, some[:MOST_AXES])) for some in (size, stride))
            raise FormatError(f"{self.name}: no view has offset {shown(offset)}, sizes ({size}) and strides ({stride})")
        key = offset, size, stride, dtype.name
        if key not in self.views:  # tensors that are one stay one
            self.views[key] = self.make(offset, size, stride, dtype).to(self.device)
        return self.views[key]

    def make(self, offset, size, stride, dtype):
        n = len(self.view) // dtype.itemsize
        count, dense = 1, True
        for one, step in reversed(list(zip(size, stride))):
            dense = dense and (one == 1 or step == count)
            count *= one
        last = offset + sum((one - 1) * step for one, step in zip(size, stride)) if count > 0 else offset - 1
        if last >= n:
            raise FormatError(f"{self.name}: a view up to element {last} of {n}")
        if dense or count == 0:
            return shared(self.view[offset * dtype.itemsize:(offset + count) * dtype.itemsize], dtype, size)
        place = Tensor.full((1,) * len(size), offset, dtype=dtypes.int64)
        for axis, (one, step) in enumerate(zip(size, stride)):
            shape = [1] * len(size)
            shape[axis] = one
            place = place + (Tensor.arange(one, dtype=dtypes.int64) * step).reshape(shape)
        return shared(self.view[:n * dtype.itemsize], dtype, (n,))[place.expand(size)]


class Name:
    """A name in a module of PyTorch's, which need not be here."""

    def __init__(self, module, name):
        self.text = f"{module}\n{name}\n".encode()

    def __call__(self):
        raise NotImplementedError("only the name is here")  # pickle wants something that can be called


class Stored:
    """A tensor's elements, as a file of their own in the archive."""

    def __init__(self, tensor):
        self.tensor = tensor


class Pickler(pickle._Pickler):  # in Python, so that names can be written of what is not here
    """Writes tensors as PyTorch does."""

    dispatch = dict(pickle._Pickler.dispatch)

    def __init__(self, file):
        super().__init__(file, 2)
        self.stored = []

    def save_name(self, name):
        self.write(pickle.GLOBAL + name.text)
        self.memoize(name)

    dispatch[Name] = save_name

    def persistent_id(self, value):
        if not isinstance(value, Stored):
            return None
        self.stored.append(value.tensor)
        kind = KINDS.get(value.tensor.dtype.name)
        if kind is None:
            raise TypeError(f"torch_save: PyTorch's files have no {value.tensor.dtype.name}: cast first")
        return "storage", kind, str(len(self.stored) - 1), "cpu", value.tensor.numel()

    def reducer_override(self, value):
        if isinstance(value, (Size, device)):
            return (SIZE, (tuple(value),)) if isinstance(value, Size) else (DEVICE, (value.lower(),))
        if not isinstance(value, Base):
            return NotImplemented
        strides, step = [], 1
        for size in reversed(value.shape):
            strides.insert(0, step)
            step *= size
        return REBUILD, (Stored(value), 0, tuple(value.shape), tuple(strides), value.requires_grad, OrderedDict())


REBUILD, SIZE, DEVICE = Name("torch._utils", "_rebuild_tensor_v2"), Name("torch", "Size"), Name("torch", "device")
KINDS = {dtype: Name("torch", f"{name}Storage") for name, dtype in STORAGES.items() if "Untyped" not in name}


def torch_save(value: Any, path: Any):
    """Writes tensors in dicts, lists and tuples, with numbers and texts, as a file that torch.load() and torch_load() read. It is
    there whole or not at all; or @path is an open file, where it is written."""
    import zipfile
    from contextlib import nullcontext

    from ..fetch import whole_file
    pickled = io.BytesIO()
    pickler = Pickler(pickled)
    pickler.dump(value)
    with nullcontext(path) if hasattr(path, "write") else whole_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled.getvalue())
        archive.writestr("archive/version", "3\n")
        for i, tensor in enumerate(pickler.stored):
            archive.writestr(f"archive/data/{i}", tensor.detach().bytes_of())


def load_archive(path, where):
    """What is in a zip archive, as torch.save() has written since version 1.6."""
    archive, storages = Zip(path), {}
    roots = [name[:-len("data.pkl")] for name in archive.names() if name == "data.pkl" or name.endswith("/data.pkl")]
    if len(roots) != 1:
        raise FormatError(f"{archive.name}: {len(roots)} files data.pkl, not one")
    order = f"{roots[0]}byteorder"
    if order in archive.names() and bytes(archive.read(order)) != b"little":
        raise FormatError(f"{archive.name}: its bytes are not in little-endian order")

    def find(key, dtype, count):
        if key not in storages:
            view = archive.read(f"{roots[0]}data/{key}")
            if count * dtype.itemsize > len(view):
                raise FormatError(f"{archive.name}: storage {key} has {len(view)} bytes, not {count} elements of {dtype.name}")
            storages[key] = Storage(archive.name, view, dtype)
        return storages[key]
    pickled = archive.read(f"{roots[0]}data.pkl", MOST_TIMES)  # a list is a byte of it
    return Unpickler(archive.room, io.BytesIO(pickled), find, where).load()


# Before version 1.6, and with _use_new_zipfile_serialization=False: pickles of a number, of a version, of what the machine was, of what was
# saved and of the storages' keys; then of each storage how many elements it has, and these.
LEGACY = 0x1950a86a20f9469cfc6c


class Unread:
    """A storage whose place in the file is not known yet."""

    def tensor(self, *view):
        return None


def load_legacy(path, where):
    """What torch.save() wrote before version 1.6."""
    name, view, kinds, storages = name_of(path), bytes_of(path), {}, {}

    def note(key, dtype, count):
        if kinds.setdefault(key, (dtype, count)) != (dtype, count):
            raise FormatError(f"{name}: storage {key} is of several dtypes or sizes")
        return Unread()

    def load(file, find=note):
        return Unpickler(Room(name, len(view)), file, find, where).load()
    file = Window(view)
    magic, version, machine = load(file), load(file), load(file)
    if magic != LEGACY or version != 1001 or not isinstance(machine, dict):
        raise FormatError(f"{name}: no file of torch.save(): {shown(magic)}, version {shown(version)}")
    if machine.get("little_endian") is not True:
        raise FormatError(f"{name}: its bytes are not in little-endian order")
    start = file.tell()
    load(file)
    keys, at = load(file), file.tell()
    for key in keys:
        if key_of(key) not in kinds:
            raise FormatError(f"{name}: nothing is in storage {shown(key)}")
        dtype, count = kinds[key]
        end = at + 8 + count * dtype.itemsize
        if int.from_bytes(view[at:at + 8], "little") != count or end > len(view):
            raise FormatError(f"{name}: storage {key} has no {count} elements of {dtype.name}: the file is cut off or damaged")
        storages[key] = Storage(name, view[at + 8:end], dtype)
        at = end
    file.seek(start)
    return load(file, lambda key, dtype, count: storages[key])


def where_of(map_location):
    """The function from the name of a device in a file to that of the device where its tensors go; None: the default."""
    if map_location is None or isinstance(map_location, (str, Mapping)):
        return map_location.get if isinstance(map_location, Mapping) else lambda place: map_location
    wants_function(map_location, "load: map_location")
    return lambda place: None


def torch_load(path: Any, map_location: Any = None) -> Any:
    """What torch.save() wrote, of any version: tensors in dicts, lists and tuples, with numbers and texts. @path may be an open file. Tensors are on the default
    device; on @map_location, or where that dict says for their device's name in the file. A function is not called, as there is no storage to give it: it
    stands for the default device."""
    name = name_of(path)
    path = bytes_of(path) if hasattr(path, "read") else path
    first = bytes(bytes_of(path)[:4])
    if first != b"PK\3\4" and first[:2] != b"\x80\2":
        raise FormatError(f"{name}: neither a zip archive nor a pickle, one of which torch.save() writes")
    where = where_of(map_location)
    with reading(name, lambda error: f"damaged: {type(error).__name__}: {error}"):
        return load_archive(path, where) if first == b"PK\3\4" else load_legacy(path, where)
