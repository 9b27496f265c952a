#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Number formats: every conversion beside exact rational arithmetic, promotion beside a table written out, limits.

The reference here is Python's fractions and knows of a format only how many bits it has. TAP. Run in the build's
environment, by the interpreter that has PyGObject: test_dtypes.py [TEST…]; DEV= says where."""
import os
import sys
from fractions import Fraction

import checks
import numpy
from tinycore import Tensor, dtypes, nn

FLOATS = {"fp8e4m3": (3, 4), "fp8e5m2": (2, 5), "float16": (10, 5), "bfloat16": (7, 8), "float32": (23, 8), "float64": (52, 11)}
NAN = "nan"
DEVICE_HAS_F64 = os.environ.get("DEV") not in ("WEBGPU",)
ALL = [d for d in dtypes.all if d.name != "float64" or DEVICE_HAS_F64]
WORDS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}


def last_code(name):
    """The code of the largest number."""
    mantissa, exponent = FLOATS[name]
    return 0x7E if name == "fp8e4m3" else (((1 << exponent) - 1) << mantissa) - 1


def decode(name, code):
    """(is negative, what is left: a fraction, infinity or NAN)."""
    mantissa, exponent = FLOATS[name]
    negative, code = bool(code >> (mantissa + exponent)), code & ((1 << (mantissa + exponent)) - 1)
    if code > last_code(name):
        is_infinity = name != "fp8e4m3" and code == last_code(name) + 1
        return negative, float("inf") if is_infinity else NAN
    high, low = code >> mantissa, code & ((1 << mantissa) - 1)
    whole = low | (1 << mantissa) if high else low
    return negative, whole * Fraction(2) ** (max(high, 1) - (1 << (exponent - 1)) + 1 - mantissa)


def encode(name, negative, size):
    """The code of the nearest number, ties to even; NAN where there is none."""
    mantissa, exponent = FLOATS[name]
    sign = negative << (mantissa + exponent)
    beyond = NAN if name == "fp8e4m3" else sign | (last_code(name) + 1)
    if size == NAN or size == float("inf"):
        return NAN if size == NAN else beyond
    low, high = 0, last_code(name)
    while low < high:  # the largest code that is not above
        middle = (low + high + 1) // 2
        low, high = (middle, high) if decode(name, middle)[1] <= size else (low, middle - 1)
    here = decode(name, low)[1]
    # Past the end the next number would be as far away again.
    after = decode(name, low + 1)[1] if low < last_code(name) else 2 * here - decode(name, low - 1)[1]
    up = size - here > after - size or (size - here == after - size and low & 1)
    return beyond if low + up > last_code(name) else sign | (low + up)


def value_of(dtype, code):
    if dtype.kind == "f":
        return decode(dtype.name, code)
    if dtype.kind == "i" and code >> (dtype.bitsize - 1):
        return True, Fraction((1 << dtype.bitsize) - code)
    return False, Fraction(code)


def converted(source, target, code):
    """The code in @target of the number that @code is in @source; None where that is left open."""
    negative, size = value_of(source, code)
    if target.kind == "b":
        return int(size != 0)
    if target.kind == "f":
        return encode(target.name, negative, size)
    if size in (NAN, float("inf")):
        return None
    whole = -int(size) if negative else int(size)
    if source.kind == "f" and not dtypes.min(target) <= whole <= dtypes.max(target):
        return None
    return whole & ((1 << target.bitsize) - 1)


def edges(dtype):
    """Codes of @dtype: what it ends with, what is half way between two numbers of narrower formats, and beside that."""
    bits = dtype.bitsize
    if dtype.kind == "b":
        return [0, 1]
    if dtype.kind != "f":
        near = {base + off for k in range(bits + 1) for base in (1 << k, 3 << k, 17 << k, 257 << k) for off in (-1, 0, 1)}
        near |= {(2**24 + 1) << k for k in range(40)} | {2**53 + 1, 2**53 + 3, 464, 465, 61439, 61440, 65519, 65520}
        return sorted({(s * n) & ((1 << bits) - 1) for n in near | {0} for s in (1, -1)})
    if bits == 8:
        return list(range(256))
    found = {0, 1, 2, last_code(dtype.name) - 1, last_code(dtype.name), last_code(dtype.name) + 1, last_code(dtype.name) + 2}
    halves = [Fraction(n, 2) for n in range(0, 40)] + [Fraction(2) ** k + d for k in range(7, 65, 4) for d in (-1, 0, 1)]
    for name in FLOATS:
        if FLOATS[name] == FLOATS[dtype.name] or name == "float64":
            continue
        for low in (0, 1, 2, 3, 1 << FLOATS[name][0], (1 << FLOATS[name][0]) - 1, last_code(name) // 2, last_code(name) - 1):
            halves.append((decode(name, low)[1] + decode(name, low + 1)[1]) / 2)
        halves.append((3 * decode(name, last_code(name))[1] - decode(name, last_code(name) - 1)[1]) / 2)
    for half in halves:
        code = encode(dtype.name, False, half)
        found |= {c for c in (code - 1, code, code + 1) if c >= 0}
    return sorted(found | {c | (1 << (bits - 1)) for c in found})


def tensor_of(dtype, codes):
    words = Tensor(numpy.array(codes, dtype=WORDS[dtype.itemsize]))
    return words.bool() if dtype.kind == "b" else words.bitcast(dtype)


def codes_of(tensor):
    dtype = tensor.dtype
    return tensor.numpy().astype("uint8") if dtype.kind == "b" else tensor.bitcast(WORDS[dtype.itemsize]).numpy()


def is_nan(dtype, code):
    return dtype.kind == "f" and decode(dtype.name, code)[1] == NAN


def differences(source, target, codes, found):
    out = []
    for code, answer in zip(codes, found):
        wanted = converted(source, target, code)
        if wanted is None or (wanted == NAN and is_nan(target, int(answer))):
            continue
        if wanted == NAN or int(answer) != wanted:
            out.append(f"{source.name} {code:#x} to {target.name} gives {int(answer):#x}, not {wanted if wanted == NAN else hex(wanted)}")
    return out


def test_casts():
    """Every format to every one, at the edges: zeros, subnormals, half way, overflow, NaNs, infinities, extremes."""
    wrong = []
    for source in ALL:
        codes = edges(source)
        x = tensor_of(source, codes).realize()
        targets = [d for d in ALL if d is not source]
        results = [x.cast(d).contiguous() for d in targets]
        Tensor.realize(*results)
        for target, result in zip(targets, results):
            checks.equal(result.dtype, target)
            wrong += differences(source, target, codes, codes_of(result))
    checks.true(not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40]))


# Rows and columns in the order of dtypes.all: b bool, i and u integers, e4 and e5 fp8, h float16, g bfloat16, f and d.
PROMOTION = """
      b   i8  u8  i16 u16 i32 u32 i64 u64 e4  e5  h   g   f   d
b     b   i8  u8  i16 u16 i32 u32 i64 u64 e4  e5  h   g   f   d
i8    i8  i8  i16 i16 i32 i32 i64 i64 f   e4  e5  h   g   f   d
u8    u8  i16 u8  i16 u16 i32 u32 i64 u64 e4  e5  h   g   f   d
i16   i16 i16 i16 i16 i32 i32 i64 i64 f   e4  e5  h   g   f   d
u16   u16 i32 u16 i32 u16 i32 u32 i64 u64 e4  e5  h   g   f   d
i32   i32 i32 i32 i32 i32 i32 i64 i64 f   e4  e5  h   g   f   d
u32   u32 i64 u32 i64 u32 i64 u32 i64 u64 e4  e5  h   g   f   d
i64   i64 i64 i64 i64 i64 i64 i64 i64 f   e4  e5  h   g   f   d
u64   u64 f   u64 f   u64 f   u64 f   u64 e4  e5  h   g   f   d
e4    e4  e4  e4  e4  e4  e4  e4  e4  e4  e4  h   h   g   f   d
e5    e5  e5  e5  e5  e5  e5  e5  e5  e5  h   e5  h   g   f   d
h     h   h   h   h   h   h   h   h   h   h   h   h   f   f   d
g     g   g   g   g   g   g   g   g   g   g   g   f   g   f   d
f     f   f   f   f   f   f   f   f   f   f   f   f   f   f   d
d     d   d   d   d   d   d   d   d   d   d   d   d   d   d   d
"""


def test_promotion():
    """Every pair, in both orders, of arithmetic, comparison, a choice and a quotient; nothing is computed."""
    head, *rows = PROMOTION.strip().splitlines()
    by_letter = dict(zip(head.split(), dtypes.all))
    wanted = {(a, by_letter[b]): by_letter[cell] for a, row in zip(dtypes.all, rows)
              for b, cell in zip(head.split(), row.split()[1:])}
    checks.equal(len(wanted), 15 * 15)
    ones = {d: Tensor([1], dtype=d) for d in dtypes.all}
    for (a, b), both in wanted.items():
        x, y, what = ones[a], ones[b], f"{a.name}, {b.name}"
        checks.equal((x + y).dtype, both, what + ": +")
        checks.equal(x.maximum(y).dtype, both, what + ": maximum")
        checks.equal(ones[dtypes.bool].where(x, y).dtype, both, what + ": where")
        checks.equal((x < y).dtype, dtypes.bool, what + ": <")
        checks.equal((x / y).dtype, both if both.kind == "f" else dtypes.float32, what + ": /")
        number = dtypes.int32 if both.kind == "b" else both
        checks.equal((x - y).dtype, number, what + ": -")
        checks.equal((x ** y).dtype, number, what + ": **")


def test_numbers():
    """A plain number takes the dtype of what it meets, unless that has no such kind: then the default of its own kind."""
    for d in dtypes.all:
        x = Tensor([1, 0], dtype=d)
        whole = dtypes.int32 if d.kind == "b" else d
        real = d if d.kind == "f" else dtypes.float32
        for number, wanted in ((True, d), (1, whole), (2.5, real), (float("nan"), real)):
            for result in (x + number, number + x, x * number, x.maximum(number), (x == 0).where(x, number),
                           (x == 0).where(number, x)):
                checks.equal(result.dtype, wanted, f"{d.name} and {number}")
            checks.equal((x / number).dtype, real, f"{d.name} / {number}")
            checks.equal((x < number).dtype, dtypes.bool)
    gate = Tensor([True])
    checks.equal(gate.where(1, 2).dtype, dtypes.int32)
    checks.equal(gate.where(1, 2.5).dtype, dtypes.float32)
    checks.equal(gate.where(1.0, True).dtype, dtypes.float32)
    checks.equal((Tensor([1], dtype="uint8") + 300).tolist(), [45])


def test_in_place():
    """The dtype stays; what it has no such kind for is refused rather than cut. What is assigned is cast."""
    rank = {"b": 0, "u": 1, "i": 1, "f": 2}
    for d in dtypes.all:
        for other in dtypes.all:
            x, y = Tensor([1, 0], dtype=d), Tensor([1, 1], dtype=other)
            if rank[(x + y).dtype.kind] > rank[d.kind]:  # i64 and u64 meet in f32
                checks.raises(TypeError, x.__iadd__, y)
                checks.equal(x.tolist(), [1, 0])
            else:
                x += y
                checks.equal(x.dtype, d)
        x = Tensor([1, 0], dtype=d)
        if d.kind != "f":
            checks.raises(TypeError, x.__iadd__, 1.5)
            checks.raises(TypeError, x.__itruediv__, 2)
        if d.kind == "b":
            checks.raises(TypeError, x.__iadd__, 1)
        x.assign(Tensor([2.5, 0.0]))
        checks.equal(x.tolist(), [2.5, 0.0] if d.kind == "f" else [d.kind == "b" or 2, 0], d.name)
        x[1] = 3.5
        checks.equal(x.tolist()[1], 3.5 if d.kind == "f" else d.kind == "b" or 3, d.name)


def test_every_code():
    """All 65536 codes of the 16-bit formats: to f32 and back they are themselves."""
    for name in ("float16", "bfloat16"):
        codes = numpy.arange(65536, dtype="uint16")
        x = Tensor(codes).bitcast(name)
        wide = x.cast("float32").realize()
        theirs = codes.view("float16").astype("float32") if name == "float16" else (codes.astype("uint32") << 16).view("float32")
        numpy.testing.assert_array_equal(wide.numpy(), theirs)
        back, numbers = codes_of(wide.cast(name)), ~numpy.isnan(theirs)
        checks.true((back[numbers] == codes[numbers]).all(), name)
        checks.true(all(is_nan(dtypes.from_name(name), int(code)) for code in back[~numbers]), name)


def test_every_half():
    """The f32 half way between every two neighbours of a narrow format goes to the even one, those beside it to theirs."""
    for name in ("fp8e4m3", "fp8e5m2", "float16", "bfloat16"):
        dtype, n = dtypes.from_name(name), last_code(name)
        numbers = numpy.array([float(decode(name, code)[1]) for code in range(n + 1)])
        middle = ((numbers[:-1] + numbers[1:]) / 2).astype("float32")
        low = numpy.arange(n)
        below, above = numpy.nextafter(middle, numpy.float32(-1)), numpy.nextafter(middle, numpy.float32(numpy.inf))
        exact = middle.astype("float64") == (numbers[:-1] + numbers[1:]) / 2
        checks.true(exact.all(), name)
        sizes = numpy.concatenate([middle, below, above])
        wanted = numpy.concatenate([low + (low & 1), low, low + 1]).astype(WORDS[dtype.itemsize])
        sign = 1 << (dtype.bitsize - 1)
        for x, codes in ((sizes, wanted), (-sizes, wanted | sign)):
            found = codes_of(Tensor(x).realize().cast(name))
            at = numpy.flatnonzero(found != codes)
            checks.true(at.size == 0, f"{name}: {x[at[:5]]} give {found[at[:5]]}, not {codes[at[:5]]}")


def test_limits():
    """What a format says of itself, beside NumPy, and the fractions of this file."""
    for d in dtypes.floats:
        info, one = dtypes.finfo(d), encode(d.name, False, Fraction(1))
        checks.equal(info.max, float(decode(d.name, last_code(d.name))[1]))
        checks.equal((info.min, info.bits), (-info.max, d.bitsize))
        checks.equal(info.eps, float(decode(d.name, one + 1)[1] - 1))
        checks.equal(info.tiny, float(decode(d.name, 1 << FLOATS[d.name][0])[1]))
        checks.equal(info.smallest_subnormal, float(decode(d.name, 1)[1]))
        checks.equal(dtypes.max(d), 448.0 if d.name == "fp8e4m3" else float("inf"))
        checks.equal(dtypes.min(d), -dtypes.max(d))
    for d in dtypes.ints:
        info, theirs = dtypes.iinfo(d), numpy.iinfo(d.name)
        checks.equal((info.min, info.max, info.bits), (theirs.min, theirs.max, theirs.bits))
        checks.equal((dtypes.min(d), dtypes.max(d)), (theirs.min, theirs.max))
    checks.equal((dtypes.min("bool"), dtypes.max("bool")), (False, True))
    checks.raises(TypeError, dtypes.finfo, "int32")
    checks.raises(TypeError, dtypes.iinfo, "float32")
    checks.raises(TypeError, dtypes.iinfo, "bool")


def test_default_float():
    """Whatever makes floats of integers or of plain numbers makes the default ones."""
    x, b = Tensor([1, 2, 4]), Tensor([True, False])
    made = {
        "quotient": lambda: x / 2, "two integers": lambda: 1 / x, "mean": lambda: x.mean(), "var": lambda: x.var(), "exp": lambda: x.exp(),
        "sqrt of bool": lambda: b.sqrt(), "plain": lambda: x + 0.5, "plain and bool": lambda: b * 2.5, "i64 and u64":
        lambda: x.cast("int64") + x.cast("uint64"), "softmax": lambda: x.softmax(0), "ones": lambda: Tensor.ones(2), "list": lambda:
        Tensor([0.5]), "rand": lambda: Tensor.rand(2), "where": lambda: b.where(0.5, 1.5), "pow": lambda: x ** 0.5,
        "layer": lambda: nn.Linear(2, 3).weight, "running": lambda: nn.BatchNorm1d(3).running_mean,
    }
    kept = {"float": lambda: Tensor([1.0], dtype="float64") / 2, "half": lambda: Tensor([1.0], dtype="float16") + 0.5}
    try:
        for dtype in (dtypes.float16, dtypes.float64, dtypes.bfloat16, dtypes.float32):
            dtypes.default_float = dtype
            checks.equal(dtypes.default_float, dtype)
            for name, make in made.items():
                checks.equal(make().dtype, dtype, f"{name}, {dtype.name}")
            checks.equal([make().dtype.name for make in kept.values()], ["float64", "float16"])
            checks.equal(((x / 4).tolist(), x.cast("float32").dtype), ([0.25, 0.5, 1], dtypes.float32))
    finally:
        dtypes.default_float = "float32"
    checks.raises(TypeError, setattr, dtypes, "default_float", "int32")


def test_products_of_matrices():
    """All ways to multiply matrices of integers keep the dtype and its low bits, as NumPy's do."""
    for name in ("int8", "uint8", "int16", "uint16", "int32"):
        x, y = numpy.full((3, 5), 100, name), numpy.full((5, 2), 101, name)
        a, b = Tensor(x), Tensor(y)
        ways = {
            "@": a @ b, "matmul": a.matmul(b), "mm": a.mm(b), "dot": a.dot(b), "einsum": Tensor.einsum("ij,jk->ik", a, b),
            "bmm": a.unsqueeze(0).bmm(b.unsqueeze(0))[0], "linear": a.linear(b), "addmm": Tensor.zeros(2, dtype=name).addmm(a, b),
        }
        for way, product in ways.items():
            checks.equal((product.dtype.name, product.tolist()), (name, (x @ y).tolist()), f"{way}, {name}")


if __name__ == "__main__":
    chosen = ["test_" + name for name in sys.argv[1:]] or list(globals())
    checks.run({name: globals()[name] for name in chosen})
