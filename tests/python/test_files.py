#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tensors in files of others, and data in batches: PyTorch's archives read without running what is in them, tar and zip,
damaged files of each, a data set that is fetched, the loader.

TAP. Run in the build's environment, by the interpreter that has gi, numpy and torch."""
import collections
import functools
import gzip
import hashlib
import http.server
import io
import json
import os
import pathlib
import pickle
import random
import stat
import struct
import tarfile
import tempfile
import threading
import tracemalloc
import unittest.mock
import zipfile

import checks
import numpy as np
import tinycore
import torch
from tinycore import Tensor, dtypes, nn
from tinycore.fetch import whole_file
from tinycore.library import Tiny
from tinycore.nn import datasets
from tinycore.nn.data import DataLoader, Dataset, TensorDataset, default_collate, random_split
from tinycore.nn.state import load_state_dict, safe_load_metadata, safe_save, tar_extract, torch_load, zip_extract
from tinycore.utils.data import Subset

FOLDER = tempfile.TemporaryDirectory()


def at(name):
    return os.path.join(FOLDER.name, name)


def saved(value, name="some.pt", **more):
    torch.save(value, at(name), **more)
    return at(name)


def test_torch_load():
    """All dtypes, views of every kind, shared ones, and what is around them."""
    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    kinds = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
    state = {kind: torch.tensor([[0, 1], [1, 0]]).to(getattr(torch, kind)) for kind in kinds}
    state.update(whole=base, turned=base.permute(2, 0, 1), part=base[:, 1:, ::2], row=base[1, 2], wide=base[0, 0, :1].expand(3, 1),
                 empty=torch.zeros(0, 3), scalar=torch.tensor(2.5), parameter=torch.nn.Parameter(base[0]), again=base)
    found = torch_load(saved({"state": state, "epoch": 3, "names": ("a", [1.5, None, True]), "size": base.shape, "bytes": b"\0\xff",
                              "kind": torch.float16, "set": {1, 2}, "ordered": collections.OrderedDict(x=1)}))
    for name, wanted in state.items():
        tensor = found["state"][name]
        checks.equal((tensor.shape, tensor.dtype.name), (tuple(wanted.shape), str(wanted.dtype)[6:]), name)
        checks.equal(tensor.tolist(), wanted.tolist(), name)
    checks.true(found["state"]["again"] is found["state"]["whole"])
    checks.equal({name: found[name] for name in ("epoch", "names", "size", "bytes", "kind", "set", "ordered")},
                 {"epoch": 3, "names": ("a", [1.5, None, True]), "size": (2, 3, 4), "bytes": b"\0\xff", "kind": dtypes.float16,
                  "set": {1, 2}, "ordered": {"x": 1}})
    theirs, mine = torch.nn.TransformerEncoderLayer(8, 2, 16), nn.TransformerEncoderLayer(8, 2, 16)
    mine.load_state_dict(torch_load(saved(theirs.state_dict())))
    checks.equal(mine.linear1.weight.tolist(), theirs.linear1.weight.tolist())
    optimizer = torch.optim.Adam(theirs.parameters(), lr=0.25)
    theirs(torch.ones(2, 1, 8)).sum().backward()
    optimizer.step()
    ours = nn.optim.Adam(mine.parameters())
    ours.load_state_dict(torch_load(pathlib.Path(saved(optimizer.state_dict()))))
    checks.equal((ours.lr, ours.state_dict()["state"][0]["exp_avg"].tolist()), (0.25, optimizer.state_dict()["state"][0]["exp_avg"].tolist()))
    with open(saved([base]), "rb") as file:
        data = file.read()
    checks.equal(torch_load(data)[0].tolist(), base.tolist())
    checks.equal(torch_load(Tensor(data))[0].tolist(), base.tolist())


def test_torch_save():
    """PyTorch reads what we write."""
    model = nn.TransformerEncoderLayer(8, 2, 16)
    kinds = {kind: Tensor([[1, 0]], dtype=kind) for kind in ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8",
                                                            "uint8", "bool")}
    kinds["turned"] = Tensor(np.arange(6.0).reshape(2, 3)).T
    kinds["again"] = kinds["int8"]
    optimizer = nn.optim.AdamW(model.parameters())
    model(Tensor.ones(2, 1, 8)).sum().backward()
    optimizer.step()
    tinycore.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "kinds": kinds, "more": [1, "two", None, (3.5,)]}, at("ours.pt"))
    for found in (torch.load(at("ours.pt")), tinycore.load(at("ours.pt"))):
        theirs = torch.nn.TransformerEncoderLayer(8, 2, 16)
        for name, one in model.state_dict().items():
            checks.equal(found["model"][name].tolist(), one.tolist(), name)
        for name, one in kinds.items():
            checks.equal((found["kinds"][name].tolist(), str(found["kinds"][name].dtype).split(".")[1]), (one.tolist(), one.dtype.name), name)
        checks.equal((found["more"], found["kinds"]["again"] is found["kinds"]["int8"]), ([1, "two", None, (3.5,)], True))
    theirs.load_state_dict(torch.load(at("ours.pt"))["model"])
    other = torch.optim.AdamW(theirs.parameters(), amsgrad=False)
    other.load_state_dict({**torch.load(at("ours.pt"))["optimizer"], "param_groups": [
        {**other.state_dict()["param_groups"][0], **torch.load(at("ours.pt"))["optimizer"]["param_groups"][0]}]})
    checks.equal(other.state_dict()["state"][0]["exp_avg"].tolist(), optimizer.state_dict()["state"][0]["exp_avg"].tolist())
    synced = []
    with unittest.mock.patch("os.fsync", synced.append):
        tinycore.save([1], at("synced.pt"))
    checks.equal(len(synced), 1)
    checks.raises(TypeError, tinycore.save, Tensor([1], dtype="uint16"), at("none.pt"))
    checks.raises(OSError, tinycore.save, [1], at("no/such/folder.pt"))
    checks.true(not os.path.exists(at("none.pt")) and not [name for name in os.listdir(FOLDER.name) if "writing" in name])


def test_missing_folder():
    """A file that cannot be made is named as the program named it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "missing", "f.pt")
        try:
            tinycore.save({"x": Tensor([1.0])}, path)
        except FileNotFoundError as error:
            checks.equal((error.filename, str(error)), (path, f"[Errno 2] No such file or directory: {path!r}"))
        else:
            raise AssertionError("a file in a folder that is not there")


def test_places():
    """A file replaces what a link leads to and keeps its permissions; what is no file stays, and is named in an error."""
    states = {"a": Tensor([1.0, 2.0])}
    for name, save in (("torch", tinycore.save), ("safe", nn.state.safe_save)):
        folder = at(f"places-{name}")
        os.makedirs(f"{folder}/inner")
        real, link, missing, pipe = (os.path.join(folder, end) for end in ("inner/real", "link", "missing", "pipe"))
        pathlib.Path(real).write_bytes(b"old")
        os.chmod(real, 0o640)
        os.symlink("inner/real", link)
        os.symlink("inner/new", missing)
        os.mkfifo(pipe)
        os.symlink("pipe", f"{folder}/to-pipe")
        before = os.umask(0o027)
        for path in (link, missing):
            save(states, path)
        os.umask(before)
        checks.equal((os.readlink(link), os.readlink(missing)), ("inner/real", "inner/new"), name)
        checks.equal([oct(os.stat(path).st_mode & 0o777) for path in (real, missing)], ["0o640", "0o640"], name)
        checks.true(os.path.getsize(real) == os.path.getsize(missing) > 64)
        for path, why in ((pipe, "no regular file"), (f"{folder}/to-pipe", "no regular file"), (f"{folder}/inner", "folder")):
            checks.true(why in str(checks.raises(OSError, save, states, path)))
        checks.true(stat.S_ISFIFO(os.stat(pipe).st_mode))
        checks.equal(sorted(os.listdir(folder) + os.listdir(f"{folder}/inner")), ["inner", "link", "missing", "new", "pipe", "real", "to-pipe"], name)


def test_memory():
    """What is written to tensors is not written to the file, and what becomes of the file changes no tensor."""
    path = saved({"x": torch.arange(1000000, dtype=torch.float32)})
    before = os.path.getsize(path), hashlib.md5(open(path, "rb").read()).hexdigest()
    x, y = torch_load(path)["x"], torch_load(path)["x"]
    x.assign(x + 1).realize()
    checks.equal((x[:2].tolist(), (os.path.getsize(path), hashlib.md5(open(path, "rb").read()).hexdigest())), ([1, 2], before))
    torch.save({"x": torch.zeros(1)}, path)  # in place, and shorter
    checks.equal((y[:2].tolist(), y[-1].item()), ([0, 1], 999999))


class Evil:
    def __reduce__(self):
        return os.mkdir, (at("evil"),)


def with_pickle(data, name="evil.pt"):
    """PyTorch's archive with a pickle of one's own."""
    with zipfile.ZipFile(at(name), "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/data/0", bytes(16))
    return at(name)


class Pid(pickle.Pickler):
    def persistent_id(self, one):
        return one.pid if isinstance(one, Held) else None


class Held:
    def __init__(self, *pid):
        self.pid = pid


def global_of(text):
    return b"\x80\x02c" + text.encode() + b"\n"


def test_refused():
    """Nothing of a file is run, and whatever is wrong with it is said."""
    for value in (Evil(), [Evil()], torch.nn.Linear(1, 1), {"f": os.system}, np.float64(1)):
        error = checks.raises(ValueError, torch_load, saved(value))
        checks.true("is not read" in str(error), str(error))
    checks.true(not os.path.exists(at("evil")))
    for text in ("os\nsystem", "builtins\neval", "builtins\ngetattr", "torch.nn.modules.linear\nLinear", "functools\npartial", "torch\nload",
                 "torch\nStorage", "collections\nUserDict", "torch._utils\n_rebuild_sparse_tensor"):
        error = checks.raises(ValueError, torch_load, with_pickle(global_of(text) + b"X\x01\0\0\0a\x85R."))
        checks.true(text.replace("\n", ".") in str(error), str(error))
    rebuild = global_of("torch._utils\n_rebuild_tensor_v2")
    storage = b"(X\x07\0\0\0storage" + global_of("torch\nFloatStorage")[2:] + b"X\x01\0\0\x000X\x03\0\0\0cpuK\x04tQ"
    def view(offset, size, stride):
        return rebuild + b"(" + storage + b"".join(pickle.dumps(one, 2)[2:-1] for one in (offset, size, stride, False)) + b"}tR."
    checks.equal(torch_load(with_pickle(view(0, (2, 2), (2, 1)))).shape, (2, 2))
    for offset, size, stride in ((3, (2,), (1,)), (0, (5,), (1,)), (0, (3, 2), (1, 2)), (-1, (2,), (1,)), (0, (2,), (-1,)), (0, (2, 2), (1,)), (0, (-2,), (1,)),
                                 (0, ("a",), (1,)), (0, (2**62,), (2**62,)), (2**70, (1,), (1,)), (0, (2**40, 2**40), (0, 0)), (0, 3, (1,)),
                                 (0, (1,) * 20, (1,) * 20)):
        checks.raises(ValueError, torch_load, with_pickle(view(offset, size, stride)))
    for data in (b"", b".", b"\x80\x02", b"\x80\x02}q\x00", b"\x80\x02K\x01", rebuild + b")R.", b"\x80\x02r\xff\xff\xff\x7f.",
                 rebuild + b"}X\x08\0\0\0__code__K\x01sb.", rebuild + b"N}X\x08\0\0\0__call__K\x01s\x86b)R.", rebuild + b")\x81.",
                 b"\x80\x02(X\x07\0\0\0storageK\x01X\x01\0\0\x000X\x03\0\0\0cpuK\x04tQ.",
                 b"\x80\x02" + storage.replace(b"K\x04", b"K\x05") + b".", b"\x80\x02" + storage.replace(b"\0\0\x000X", b"\0\0\x009X") + b".",
                 b"\x80\x02X\x01\0\0\0aQ.", b"(" * 100000 + b"."):
        checks.raises(ValueError, torch_load, with_pickle(data))
    checks.raises(ValueError, torch_load, with_pickle(b"\x80\x02K\x01.")[:-3] and b"PK\3\4")
    checks.raises(OSError, torch_load, at("nothing"))
    for data in (b"", b"PK", b"text" * 10):
        for read in (torch_load, zip_extract, tar_extract, safe_load_metadata):
            checks.raises(ValueError, read, data)


def test_unchanged():
    """A pickle changes no object that others have: not a dtype, not a storage, not a tensor."""
    double, text = global_of("torch\nDoubleStorage")[2:], b"X\x08\0\0\0itemsizeK\x01s"
    storage = b"(X\x07\0\0\0storage" + double + b"X\x01\0\0\x000X\x03\0\0\0cpuK\x02tQ"
    made = global_of("torch._utils\n_rebuild_tensor_v2")[2:] + b"(" + storage + b"K\0K\x02\x85K\x01\x85\x89}tR"
    mapping = global_of("collections\nOrderedDict")[2:] + b")R"
    left_out = torch_load(with_pickle(b"\x80\x02" + mapping + b"}" + text + b"b."))
    checks.equal((dict(left_out), vars(left_out)), ({}, {}))
    for value in (double, storage, made, mapping, b"}"):
        for state in (b"N}" + text + b"\x86", b"}" + text)[:1 if value is mapping else 2]:
            error = checks.raises(ValueError, torch_load, with_pickle(b"\x80\x02" + value + state + b"b."))
            checks.true("changes a" in str(error), str(error))
    for change in (lambda: setattr(dtypes.float64, "itemsize", 1), lambda: delattr(dtypes.float64, "itemsize"),
                   lambda: setattr(dtypes.float64, "other", 1)):
        checks.true("whole process" in str(checks.raises(AttributeError, change)))
    checks.equal((dtypes.float64.itemsize, dtypes.float64.name), (8, "float64"))
    checks.true(pickle.loads(pickle.dumps(dtypes.float64)) is dtypes.float64)
    model = torch.nn.BatchNorm1d(2)  # with the versions of its modules
    checks.equal(list(torch_load(saved(model.state_dict()))), list(model.state_dict()))



def test_killed_writer():
    """Nothing is there of a file whose writer would be killed now, where files without a name are; it is replaced at once."""
    folder = at("writer")
    os.mkdir(folder)
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600))
    except OSError:
        return
    for content in (b"first", b"second"):
        there = os.listdir(folder)
        with whole_file(os.path.join(folder, "a")) as file:
            file.write(content)
            file.flush()
            checks.equal(os.listdir(folder), there)
        checks.equal((os.listdir(folder), open(os.path.join(folder, "a"), "rb").read()), (["a"], content))


def test_other_writers():
    """A model whose weights are gone from their file says so; a file that another one takes the place of stays."""
    path, weights, graph = at("shared.tir"), at("shared.safetensors"), "\n".join((
        "// stage: tensor", "%x = param.f32{slot=0, shape=[65536]}", "%weights.w = param.f32{slot=1, shape=[65536]}",
        "%o = add.f32(%x, %weights.w)", "sink(%o)"))
    with open(path, "w") as file:
        file.write(graph)

    def use(model):
        return model.apply([Tensor.ones(65536)])[0].numpy()[-1]
    safe_save({"w": Tensor.full((65536,), 4.0)}, weights)
    replaced = Tiny.Model.load(path)
    safe_save({"w": Tensor.full((65536,), 9.0)}, weights)
    checks.equal((use(replaced), use(Tiny.Model.load(path))), (5.0, 10.0))
    cut = Tiny.Model.load(path)
    os.truncate(weights, 4096)
    checks.true(f"{weights}: wanted 262144 bytes from byte " in str(checks.raises(Exception, use, cut)))


def test_legacy():
    """Files as PyTorch wrote them before version 1.6: pickles one behind the other, then the elements."""
    base = torch.arange(12.0)
    value = {"part": base[2:8].reshape(2, 3), "turned": base.reshape(3, 4).t(), "long": torch.tensor([1 << 60]), "none": torch.ones(0, 3),
             "parameter": torch.nn.Parameter(torch.ones(2).half()), "rest": [1, "text", (2.5, None)]}
    path = saved(value, _use_new_zipfile_serialization=False)
    found = torch_load(path)
    for name, wanted in value.items():
        checks.equal(found[name].tolist() if name != "rest" else found[name], wanted.tolist() if name != "rest" else wanted, name)
    checks.equal((found["parameter"].dtype.name, found["none"].shape), ("float16", (0, 3)))
    data = open(path, "rb").read()
    for i in (*range(1, len(data), 97), len(data) - 1, len(data) - 130):
        checks.raises(ValueError, torch_load, data[:i])
    for i in range(0, len(data), 41):  # something else, or an error that says so
        try:
            torch_load(data[:i] + bytes([data[i] ^ 0x55]) + data[i + 1:])
        except (ValueError, MemoryError):
            pass
    for wrong in (Evil(), {"f": os.system}):
        checks.true("is not read" in str(checks.raises(ValueError, torch_load, saved(wrong, _use_new_zipfile_serialization=False))))
    checks.true(not os.path.exists(at("evil")))


def test_size_in_a_pickle():
    """A number of bytes in a pickle is no reason to ask for so much memory."""
    def archive(pickled):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as out:
            out.writestr("archive/data.pkl", pickled)
        return buffer.getvalue()
    whole = pickle.dumps({"b": bytearray(b"abc")}, 5)
    checks.equal(torch_load(archive(whole)), {"b": bytearray(b"abc")})
    at_size = whole.index(b"\x96\3") + 1
    tracemalloc.start()
    checks.raises(ValueError, torch_load, archive(whole[:at_size] + (1 << 28).to_bytes(8, "little") + whole[at_size + 8:]))
    checks.true(tracemalloc.get_traced_memory()[1] < 1 << 24)
    tracemalloc.stop()


def test_damaged():
    """What has single bytes changed, or lacks its end, is read or refused, and nothing else."""
    chance = random.Random(4)
    whole = {torch_load: open(saved({"a": torch.arange(6.0).reshape(2, 3), "b": [1, "two"]}), "rb").read()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"x" * 100)
    whole[zip_extract] = buffer.getvalue()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(__file__, "b")
    whole[tar_extract] = buffer.getvalue()[:20000]
    safe_save({"x": Tensor.ones(3)}, at("x.safetensors"))
    whole[safe_load_metadata] = open(at("x.safetensors"), "rb").read()
    for read, data in whole.items():
        n_read = 0
        for i in range(150):
            changed = bytearray(data)
            for _ in range(chance.randint(1, 3)):
                changed[chance.randrange(len(data))] = chance.randrange(256)
            try:
                read(bytes(changed if i % 5 else data[:chance.randrange(len(data))]))
                n_read += 1
            except (ValueError, OSError):
                pass
        checks.true(n_read < 150, f"{read.__name__} reads everything")


def test_archives():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in (("folder/a.bin", b"\1\2\3"), ("empty", b"")):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    for data in (buffer.getvalue(), gzip.compress(buffer.getvalue())):
        with open(at("some.tar"), "wb") as file:
            file.write(data)
        for source in (at("some.tar"), data, Tensor(data)):
            found = tar_extract(source)
            checks.equal({name: one.tolist() for name, one in found.items()}, {"folder/a.bin": [1, 2, 3], "empty": []})
            checks.equal(found["folder/a.bin"].dtype, dtypes.uint8)
    with zipfile.ZipFile(at("some.zip"), "w") as archive:
        archive.writestr("a", b"\1\2\3")
        archive.writestr("folder/", b"")
        archive.writestr("folder/b", b"\4" * 1000, zipfile.ZIP_DEFLATED)
    found = zip_extract(at("some.zip"))
    checks.equal({name: (one.numel(), one[0].item()) for name, one in found.items()}, {"a": (3, 1), "folder/b": (1000, 4)})
    # A member without a name is no folder.
    nameless = io.BytesIO()
    with zipfile.ZipFile(nameless, "w") as archive:
        archive.writestr(zipfile.ZipInfo(""), b"\5")
    checks.equal(list(zip_extract(nameless.getvalue())), [""])


def test_metadata():
    safe_save({"x": Tensor([1.0, 2.0]), "y": Tensor([[3]])}, at("two.safetensors"), {"who": "me"})
    data, start, head = safe_load_metadata(at("two.safetensors"))
    checks.equal((head["__metadata__"], head["x"]["shape"], head["y"]["dtype"]), ({"who": "me"}, [2], "I32"))
    first, last = head["x"]["data_offsets"]
    checks.equal(data[start + first:start + last].numpy().view(np.float32).tolist(), [1, 2])
    for head in (b"[]", b"{", b"\xff\xff", b"[" * 5000, b'{"a": {}, "a": {}}', b'{"a": {"x": 1, "x": 1}}'):
        checks.raises(ValueError, safe_load_metadata, struct.pack("<Q", len(head)) + head)
    checks.raises(ValueError, safe_load_metadata, struct.pack("<Q", 2**63) + b"{}")
    checks.equal(json.dumps(safe_load_metadata(struct.pack("<Q", 2) + b"{}")[2]), "{}")


def test_cifar():
    """An archive of the data set's layout, fetched once."""
    rng = np.random.default_rng(2)
    parts = {name: rng.integers(0, 256, (3, datasets.CIFAR_ITEM), dtype=np.uint8) for name in datasets.CIFAR_PARTS}
    with tarfile.open(at("small.tar.gz"), "w:gz") as archive:
        for name, part in parts.items():
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}.bin")
            info.size = part.nbytes
            archive.addfile(info, io.BytesIO(part.tobytes()))
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *about):
            asked.append(self.path)
    asked, before = [], os.environ.get("TINY_CACHE_DIR")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=FOLDER.name))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["TINY_CACHE_DIR"] = at("cache")
    address = f"http://127.0.0.1:{server.server_port}/small.tar.gz"
    for more in ({"url": "file://" + at("small.tar.gz")}, {"url": address}, {"url": address}, {"directory": FOLDER.name, "url": "x/small.tar.gz"}):
        images, labels, test_images, test_labels = datasets.cifar(**more)
        checks.equal((images.shape, test_images.shape, labels.shape, images.dtype), ((15, 3, 32, 32), (3, 3, 32, 32), (15,), dtypes.uint8))
        train = np.concatenate([parts[name] for name in datasets.CIFAR_PARTS[:5]])
        checks.true((images.numpy() == train[:, 1:].reshape(-1, 3, 32, 32)).all() and (labels.numpy() == train[:, 0]).all())
        checks.equal(test_labels.tolist(), parts["test_batch"][:, 0].tolist())
    checks.equal(asked, ["/small.tar.gz"])
    with open(at("wrong"), "wb") as file:
        file.write(b"wrong")
    checks.raises(OSError, datasets.cifar, url=address.replace("small", "none"))
    server.shutdown()
    checks.raises(OSError, datasets.cifar, url="file://" + at("nothing"))
    checks.raises(ValueError, datasets.cifar, url="file://" + at("wrong"))
    checks.raises(ValueError, datasets.check_md5, at("wrong"), datasets.CIFAR_MD5)
    os.environ.pop("TINY_CACHE_DIR")
    if before is not None:
        os.environ["TINY_CACHE_DIR"] = before


class Squares(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return {"x": np.array([i, i * i], np.float32), "label": i, "part": i / 2}


def test_loader():
    """Batches in order and shuffled, from tensors and from a class, read ahead, and errors from there."""
    x, y = Tensor(np.arange(20, dtype=np.float32).reshape(10, 2)), Tensor(np.arange(10))
    loader = DataLoader(TensorDataset(x, y), batch_size=4)
    checks.equal(([(a.shape, b.tolist()) for a, b in loader], len(loader)), (
        [((4, 2), [0, 1, 2, 3]), ((4, 2), [4, 5, 6, 7]), ((2, 2), [8, 9])], 3))
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, drop_last=True, seed=3, num_workers=1)
    epochs = [[b.tolist() for a, b in loader] for _ in range(2)]
    checks.true(epochs[0] != epochs[1] and [len(one) for one in epochs] == [2, 2], epochs)
    again = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, drop_last=True, seed=3)
    checks.equal([[b.tolist() for a, b in again] for _ in range(2)], epochs)
    for mine, theirs in zip(DataLoader(Squares(), 4), torch.utils.data.DataLoader(Squares(), 4), strict=True):
        for name in theirs:
            checks.equal((mine[name].tolist(), mine[name].dtype.name), (theirs[name].tolist(), str(theirs[name].dtype)[6:]), name)
    ahead = DataLoader(Squares(), 3, shuffle=True, num_workers=2)
    checks.equal(sorted(sum((batch["label"].tolist() for batch in ahead), [])), list(range(10)))
    for batch in ahead:
        break  # a loop may be left
    checks.equal(len(list(ahead)), 4)
    checks.equal([batch.tolist() for batch in DataLoader([5, 6, 7], 2)], [[5, 6], [7]])
    checks.equal([batch.tolist() for batch in DataLoader(Subset([5, 6, 7], [2, 0]))], [[7], [5]])
    checks.equal([batch["label"].tolist() for batch in DataLoader(Squares(), 2, sampler=[9, 1, 4])], [[9, 1], [4]])
    checks.equal(list(DataLoader(Squares(), 5, collate_fn=lambda items: [one["label"] for one in items])), [list(range(5)), list(range(5, 10))])
    checks.equal(list(DataLoader([], 5)), [])
    checks.equal(len(list(DataLoader(TensorDataset(x), 5, progress="reading"))), 2)
    checks.equal(sorted(i for part in random_split(range(7), [4, 3]) for i in part), list(range(7)))

    class Fails(Squares):
        def __getitem__(self, i):
            return np.zeros(2 if i == 7 else 1) if self.ragged else 1 / (i - 7)
    for workers in (0, 2):
        for Fails.ragged, kind in ((False, ZeroDivisionError), (True, ValueError)):
            checks.raises(kind, list, DataLoader(Fails(), 4, num_workers=workers))
    for bad in (lambda: DataLoader(Squares(), 0), lambda: TensorDataset(x, y[:3]), lambda: random_split(range(7), [4]),
                lambda: DataLoader(Squares(), shuffle=True, sampler=[1])):
        checks.raises(ValueError, bad)


def test_loader_options():
    """Batches of a program's own, items without batches and parts by fractions are PyTorch's; what has no meaning here is refused."""
    def plain(one):
        return [plain(part) for part in one] if isinstance(one, list) else {key: plain(part) for key, part in one.items()} if isinstance(one, dict) else (
            one.tolist() if hasattr(one, "tolist") else one)
    for more in ({"batch_sampler": [[3, 1], [4], [0, 2, 9]]}, {"batch_size": None}, {"batch_size": None, "sampler": [5, 2]}, {"sampler": [5, 2, 4], "drop_last": True, "batch_size": 2},
                 {"batch_size": None, "collate_fn": lambda item: item["label"]}, {"batch_sampler": [(1, 2), (3,)], "collate_fn": len}, {"batch_sampler": []}):
        for data in (Squares(), [(np.float32(2), i, "a") for i in range(10)]) if "label" not in str(more) and "collate_fn" not in more else (Squares(),):
            theirs = torch.utils.data.DataLoader(data, **more)
            for workers in (0, 2):
                mine = DataLoader(data, num_workers=workers, prefetch_factor=3, **more)
                checks.equal((plain(list(mine)), len(mine)), (plain(list(theirs)), len(theirs)), more)
    x = Tensor([1.0, 2.0, 3.0])
    checks.equal([one[0].tolist() for one in DataLoader(TensorDataset(x), None)], [1.0, 2.0, 3.0])
    checks.equal([one[0].tolist() for one in DataLoader(TensorDataset(x), batch_sampler=[[2, 0]])], [[3.0, 1.0]])
    class Bulk:  # takes lists, and gives batches
        def __len__(self):
            return 4

        def __getitem__(self, places):
            return np.array(places) * 10
    checks.equal([one.tolist() for one in DataLoader(Bulk(), None, sampler=[[0, 1], [2, 3]])], [[0, 10], [20, 30]])
    for n, parts in ((10, [0.5, 0.25, 0.25]), (7, [0.5, 0.5]), (11, [0.3, 0.3, 0.4]), (1, [1]), (1, [1.0]), (5, [1.0, 0.0]), (4, [1, 3])):
        mine, theirs = random_split(range(n), parts), torch.utils.data.random_split(range(n), parts)
        checks.equal((list(map(len, mine)), sorted(i for one in mine for i in one)), (list(map(len, theirs)), list(range(n))), parts)
    for more in ({"batch_sampler": [[1]], "batch_size": 2}, {"batch_sampler": [[1]], "shuffle": True}, {"batch_sampler": [[1]], "drop_last": True}, {"batch_size": None, "drop_last": True},
                 {"batch_sampler": [[1]], "sampler": [1]}, {"num_workers": 1, "prefetch_factor": -1}, {"num_workers": 1, "prefetch_factor": 0},
                 {"num_workers": -1, "prefetch_factor": -1}, {"num_workers": -1}):
        checks.raises(ValueError, DataLoader, Squares(), **more)
    for more in ({"timeout": 1}, {"worker_init_fn": print}, {"multiprocessing_context": "fork"}, {"generator": torch.Generator()}):
        checks.true(next(iter(more)) in str(checks.raises(NotImplementedError, DataLoader, Squares(), **more)))
    checks.true("manual_seed" in str(checks.raises(NotImplementedError, random_split, range(2), [1, 1], torch.Generator())))
    for parts in ([0.5, 0.6], [-0.5, 1.5], [3, -1]):
        checks.raises((ValueError, TypeError), random_split, range(2), parts)


Pair = collections.namedtuple("Pair", "image name")


def test_items():
    """Items of any form are batches as PyTorch makes them; what makes none is refused, with its place."""
    def plain(batch):
        if isinstance(batch, (Tensor, torch.Tensor)):
            return str(batch.dtype).split(".")[-1], tuple(batch.shape), batch.tolist()
        if isinstance(batch, dict):
            return type(batch), [(key, plain(one)) for key, one in batch.items()]
        return (type(batch), *map(plain, batch)) if isinstance(batch, (list, tuple)) else batch

    for items in ([1, 2], [1.0, 2], [1, 2.5], [True, False], [True, 3], ["a", "b"], [b"a", b"b"], [np.float32(1), np.float32(2)], [3, np.int16(4)],
                  [np.arange(3), np.arange(3)], [np.arange(3, dtype=np.float32), np.arange(3)], [(1, "x"), (2, "y")], [range(3), range(3)],
                  [{"a": (1, {"b": "text"}), "c": [1.5, 2]}] * 2, [Pair(np.ones(2), "x"), Pair(np.zeros(2), "y")], [[[1, [2.0, "z"]]]] * 3,
                  [collections.OrderedDict(a=1)] * 2, [np.bool_(True), np.bool_(False)]):
        checks.equal(plain(default_collate(items)), plain(torch.utils.data.default_collate(items)), items)
        for workers in (0, 1):
            checks.equal(plain(next(iter(DataLoader(items, 3, num_workers=workers)))), plain(next(iter(torch.utils.data.DataLoader(items, 3)))), items)
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    default_collate([x[1], x[0]]).square().sum().backward()
    checks.equal(x.grad.tolist(), [[2.0, 4.0], [6.0, 8.0]])
    for items, *texts in (([None, None], "not None", "collate_fn"), ([1, None], "at 1 is None"), ([(1, {"k": None})] * 2, "items[1]['k']", "not None"),
                          ([np.zeros(2), np.zeros(3)], "(2,)", "at 1 is of (3,)"), ([{"a": 1}, {"b": 1}], "['a']", "{'b': 1}"),
                          ([[1], [1, 2]], "a list of 1", "[1, 2]"), ([Tensor.zeros(2), 3], "of (2,)", "of ()")):
        for call in (lambda: default_collate(items), lambda: list(DataLoader(items, 2)), lambda: list(DataLoader(items, 2, num_workers=1))):
            error = checks.raises((TypeError, ValueError), call)
            checks.true(all(text in str(error) for text in texts), error)


def test_epochs():
    """Each iterator is an epoch of its own, of what there is when it begins."""
    numbers, x = list(range(5)), Tensor(list(range(5))).realize()
    for data in (numbers, TensorDataset(x)):
        for workers in (0, 1):
            loader = DataLoader(data, 2, num_workers=workers)
            pairs = [[one[0] if isinstance(one, list) else one for one in pair] for pair in zip(loader, loader)]
            checks.equal([[one.tolist() for one in pair] for pair in pairs], [[[0, 1]] * 2, [[2, 3]] * 2, [[4]] * 2])
    loader = DataLoader(numbers, 2, shuffle=True, seed=1)
    one, other = iter(loader), iter(loader)
    mixed = [next(one), next(other), next(one), next(other), next(one), next(other)]
    orders = [sum((batch.tolist() for batch in mixed[i::2]), []) for i in (0, 1)]
    again = DataLoader(numbers, 2, shuffle=True, seed=1)
    checks.equal(orders, [sum((batch.tolist() for batch in again), []) for _ in range(2)])
    loader, names = DataLoader(numbers, 4), DataLoader(numbers, 4, collate_fn=list)
    list(loader), list(names), numbers.extend([5, 6, 7])
    checks.equal(([batch.tolist() for batch in loader], len(loader), list(names)), ([[0, 1, 2, 3], [4, 5, 6, 7]], 2, [[0, 1, 2, 3], [4, 5, 6, 7]]))
    loader = DataLoader(TensorDataset(x), 5)
    checks.equal([batch[0].tolist() for batch in loader], [[0, 1, 2, 3, 4]])
    x[1] = 9
    x += 1
    checks.equal([batch[0].tolist() for batch in loader], [[1, 10, 3, 4, 5]])

    class Where(Squares):
        def __getitem__(self, i):
            return threading.get_ident() == threading.main_thread().ident
    checks.equal([next(iter(DataLoader(Where(), 10, num_workers=workers))).any().item() for workers in (0, 1)], [True, False])
    checks.equal([batch.tolist() for batch in DataLoader(numbers, 2, sampler=iter([3, 1, 2]))], [[3, 1], [2]])


def test_plain_state():
    """What tinygrad's programs do with what they have loaded."""
    class Small:
        def __init__(self):
            self.layers = [nn.Linear(2, 2), Tensor.relu, nn.Linear(2, 1)]
    theirs, mine = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)), Small()
    load_state_dict(mine, {f"layers.{name}": one for name, one in torch_load(saved(theirs.state_dict())).items()})
    checks.equal(mine.layers[2].weight.tolist(), theirs[2].weight.tolist())


checks.run(globals())
