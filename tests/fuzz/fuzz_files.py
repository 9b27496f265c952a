#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Archives, pickles and heads of safetensors files changed by chance: a TinyError or what they hold, within a second of
the processor.

usage: fuzz_files.py [--seed N] [--count N] [--minutes N]

Input N is made by the number N alone: --seed N --count 1 repeats it."""
import argparse
import io
import pickle
import random
import signal
import tarfile
import time
import zipfile

from tinycore import Tensor
from tinycore.errors import TinyError
from tinycore.nn.files import safe_load_metadata, tar_extract, torch_load, torch_save, zip_extract

PICKLE = "archive/data.pkl"
NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1, (1 << 64) - 1)


class Slow(BaseException):
    """Not an Exception: a reader that catches those does not hide it."""


def too_long(*_):
    raise Slow


def a_tar():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        row = tarfile.TarInfo("a/b")
        row.size = 9
        archive.addfile(row, io.BytesIO(b"some data"))
    return file.getvalue()[:2048]


def a_zip(members, kind=zipfile.ZIP_STORED):
    """With the same bytes at any time of the day."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, kind)
    return file.getvalue()


def members_of_model():
    file = io.BytesIO()
    torch_save({"w": Tensor([[1.0, 2.0], [3.0, 4.0]]), "n": [1, (2, "x")], "i": Tensor([1, 2])}, file)
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def a_head():
    text = b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"k":"v"}}'
    return len(text).to_bytes(8, "little") + text + bytes(8)


def change(chance, data, seeds):
    at = chance.randint(0, len(data))
    n = min(chance.randint(1, 16), len(data) - at)
    kind = chance.randrange(6)
    if kind == 0:
        return data[:at] + bytes([chance.randrange(256)]) + data[at + 1:]
    if kind == 1:
        return data[:at] + data[at + n:]
    if kind == 2:
        return data[:at] + data[at:at + n] * chance.randint(2, 30) + data[at:]
    if kind == 3:
        width = chance.choice((1, 2, 4, 8))
        return data[:at] + chance.choice(NUMBERS).to_bytes(8, "little")[:width] + data[at + width:]
    if kind == 4:
        other = chance.choice(seeds)
        start = chance.randint(0, len(other))
        return data[:at] + other[start:start + chance.randint(0, 64)] + data[at:]
    return data[:at]


def read(reader, data):
    """An error in words, or None."""
    signal.setitimer(signal.ITIMER_PROF, 1)
    try:
        reader(data)
    except TinyError:
        return None
    except Slow:
        return "more than a second"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=0)
    options = parser.parse_args()
    signal.signal(signal.SIGPROF, too_long)
    model, files = members_of_model(), {"a/b": b"some data" * 9, "c": b"", "d/": b""}
    targets = (
        ("tar", tar_extract, [a_tar()]), ("zip", zip_extract, [a_zip(files), a_zip(files, zipfile.ZIP_DEFLATED)]),
        ("torch", torch_load, [a_zip(model)]),
        ("pickle", lambda data: torch_load(a_zip({**model, PICKLE: data})),
         [model[PICKLE], pickle.dumps({"a": [1, 2.5, "x", b"y", {3}]}, 2)]),
        ("head", safe_load_metadata, [a_head()]))
    failed = 0
    for number, (name, reader, seeds) in enumerate(targets, 1):
        start, i, wrong = time.monotonic(), options.seed, None
        while wrong is None and (time.monotonic() - start < options.minutes * 60 if options.minutes
                                 else i < options.seed + options.count):
            chance = random.Random(i)
            data = seeds[i % len(seeds)]
            if i < len(seeds):
                reader(data)  # a kept one is good
            else:
                for _ in range(chance.randint(1, 5)):
                    data = change(chance, data, seeds)
                wrong = read(reader, data)
            i += 1
        print(f"# {i - options.seed} inputs in {time.monotonic() - start:.1f} s")
        if wrong:
            failed = 1
            print(f"# --seed {i - 1} --count 1: {wrong}\n# {data.hex()}")
        print(f"{'not ok' if wrong else 'ok'} {number} {name}", flush=True)
    print(f"1..{len(targets)}")
    return failed


raise SystemExit(main())
