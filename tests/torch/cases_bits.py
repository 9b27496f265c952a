# SPDX-License-Identifier: MIT
"""Hashes beside hashlib's, the generator beside known answers, halves of bytes beside shifts."""
import hashlib

import numpy
import torch

from harness import case, numbers, refuses


def message(*shape):
    return numbers(shape, 0, 256, "uint8") if shape[-1] else numpy.zeros(shape, "uint8")


def digests(name, n_bytes=()):
    """Of each row, by Python's library."""
    def run(x):
        rows = x.reshape(-1, x.shape[-1]) if x.shape[-1] else torch.zeros(x.shape[:-1].numel(), 0, dtype=torch.uint8)
        found = [list(hashlib.new(name, bytes(row.tolist())).digest(*n_bytes)) for row in rows]
        return torch.tensor(found, dtype=torch.uint8).reshape(*x.shape[:-1], -1)
    return run


# About the sizes at which another block begins.
for name, rate in (("sha3_256", 136), ("sha3_224", 144), ("sha3_384", 104), ("sha3_512", 72)):
    for n in (0, 1, rate - 1, rate, rate + 1, 2 * rate + 5):
        case("keccak", [message(n)], lambda x, f=name: x.keccak(f), digests(name), label=f"{name} {n}")
for name, rate, n_bytes in (("shake_128", 168, 16), ("shake_256", 136, 32)):
    for n in (0, rate - 1, rate, 3 * rate):
        case("keccak", [message(n)], lambda x, f=name: x.keccak(f), digests(name, (n_bytes,)), label=f"{name} {n}")
case("keccak", [message(2, 3, 50)], lambda x: x.keccak(), digests("sha3_256"))
case("keccak", [numpy.zeros((0, 5), "uint8")], lambda x: x.keccak(), lambda x: torch.zeros(0, 32, dtype=torch.uint8))
# From before the standard: the Keccak team's answer for nothing.
case("keccak", [message(0)], lambda x: x.keccak("keccak_256"),
     lambda x: torch.tensor(list(bytes.fromhex("c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")), dtype=torch.uint8))
refuses("keccak", [message(5)], lambda x: x.keccak("md5"), lambda x: digests("md6")(x))
refuses("keccak", [(5,)], lambda x: x.keccak(), lambda x: digests("sha3_256")(x))


def tree(x):
    """The 16 bytes of a tensor, page by page and chunk by chunk."""
    data, more = x.numpy().tobytes(), True
    while more:
        chunks = max(-(-len(data) // 2**20), 1)
        data, more = data.ljust(chunks * 2**20, b"\0"), chunks > 1
        pages = [hashlib.shake_128(data[i:i + 4096]).digest(16) for i in range(0, len(data), 4096)]
        data = b"".join(hashlib.shake_128(b"".join(pages[i:i + 256])).digest(16) for i in range(0, len(pages), 256))
    return torch.tensor(list(data), dtype=torch.uint8)


case("hash", [numbers((300,), 0, 1000, "int16")], lambda x: x.hash(), tree)
case("hash", [numbers((700, 400), 0, 1000, "int32")], lambda x: x.hash(), tree, label="two chunks")
case("hash", [numpy.zeros((0, 2), "bool")], lambda x: x.hash(), tree)

# Random123's known answers for threefry2x32 of 20 rounds: counter, key, result.
ANSWERS = numpy.array([(0, 0, 0x99ba4efe6b200159), (2**64 - 1, 2**64 - 1, 0xbb002be71cb996fc),
                       (0x85a308d3243f6a88, 0x0370734413198a2e, 0x483df7a0c4923a9c)], "uint64").astype("int64")
case("threefry", [ANSWERS[:, 0], ANSWERS[:, 1]], lambda x, k: x.bitcast("uint64").threefry(k.bitcast("uint64")).bitcast("int64"),
     lambda x, k: torch.from_numpy(ANSWERS[:, 2]))
case("threefry", [ANSWERS[:1, 0], ANSWERS[:1, 1].reshape(1, 1)], lambda x, k: x.long().threefry(k).bitcast("int64"),
     lambda x, k: torch.from_numpy(ANSWERS[:1, 2].reshape(1, 1)), label="of integers, broadcast")
case("threefry", [ANSWERS[:0, 0], ANSWERS[:1, 1]], lambda x, k: x.threefry(k).bitcast("int64"), lambda x, k: x)
refuses("threefry", [(3,), (3,)], lambda x, k: x.threefry(k), lambda x, k: x & k)


def packed(x):
    x = torch.nn.functional.pad(x.long(), (0, x.shape[-1] % 2)) & 15
    return (x[..., 0::2] | x[..., 1::2] << 4).to(torch.uint8)


def unpacked(x, is_signed=True):
    x = torch.stack([x & 15, x >> 4], -1).reshape(*x.shape[:-1], 2 * x.shape[-1])
    return torch.where(x > 7, x.to(torch.int8) - 16, x.to(torch.int8)) if is_signed else x


for shape in ((8,), (7,), (1,), (3, 6), (2, 3, 5), (0,), (2, 0)):
    for dtype, low in (("int32", -8), ("int8", -8), ("uint8", 0), ("int64", -99)):
        case("pack_int4", [numbers(shape, low, low + 16, dtype)], lambda x: x.pack_int4(), packed)
for shape in ((4,), (1,), (3, 5), (2, 1, 3), (0,), (2, 0)):
    for is_signed in (True, False):
        case("unpack_int4", [message(*shape)], lambda x, s=is_signed: x.unpack_int4(is_signed=s), lambda x, s=is_signed: unpacked(x, s))
    if shape[-1]:
        case("unpack_int4", [message(*shape)], lambda x, n=2 * shape[-1] - 1: x.unpack_int4(n), lambda x: unpacked(x)[..., :-1])
refuses("pack_int4", [(3,)], lambda x: x.pack_int4(), lambda x: x & 15)
refuses("unpack_int4", [(3,)], lambda x: x.unpack_int4(), lambda x: x & 15)
refuses("unpack_int4", [message(3)], lambda x: x.unpack_int4(4), lambda x: x.reshape(4))
