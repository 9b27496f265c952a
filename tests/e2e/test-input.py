#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bad input to the command: arguments, data sets, IR files. Each is refused in clear words that name the
thing, without a crash and without a stray file."""
import os
import pathlib
import random
import re
import struct

import small_data
from e2e import check, main, note, test
from small_data import IMAGES, LABELS, TEST_IMAGES, TEST_LABELS

KERNEL = """%0 = param.f32{slot=0, shape=[64]}
%1 = range.index{number=0, kind=loop}(64)
%2 = load.f32(%0, %1)
sink{name="add_one"}(store(%0, %1, add.f32(%2, 1.0)))
"""


@test("wrong command lines: status 2 and what would be right")
def usage(box):
    tir = box.write("k.tir", KERNEL)
    for argv, parts in (
            (["nope"], ["“nope”", "usage", "devices"]), ([""], ["usage"]), ([], ["usage"]),
            (["devices", "x"], ["“x”"]), (["devices", "--nope"], ["--nope"]),
            (["train"], ["fashion-mnist"]), (["train", "mnist"], ["fashion-mnist"]),
            (["train", "fashion-mnist", "more"], ["one name"]),
            (["train", "fashion-mnist", "--nope"], ["--nope"]),
            (["train", "fashion-mnist", "--steps"], ["--steps"]),
            *((["train", "fashion-mnist", option, value], [option]) for option, value in (
                ("--steps", "x"), ("--steps", "0"), ("--steps", "-1"), ("--steps", "1e3"), ("--steps", "1" * 30),
                ("--epochs", "0"), ("--epochs", "-2"), ("--epochs", ""), ("--batch", "0"), ("--batch", "x"),
                ("--batch", "60001"), ("--lr", "0"), ("--lr", "-1"), ("--lr", "nan"), ("--lr", "inf"),
                ("--lr", "x"), ("--optimizer", "adagrad"), ("--seed", "x"), ("--seed", "9" * 30))),
            (["compile"], ["usage"]), (["compile", tir, tir], ["usage"]),
            (["compile", tir, "--emit", "x"], ["usage", "--emit: source, binary or linear"]),
            (["explain"], ["usage"]), (["explain", tir, "--emit", "linear"], ["--emit"]),
            (["explain", "matmul:0"], ["“matmul:0”", "sizes from 1"]), (["explain", "nope"], ["no file nope", "“nope”", "matmul"]),
            (["compile", tir, "--emit", "linear", "--emit=source"], ["--emit is given twice"]),
            (["new-plugin", "x", "--kind", "linear", "--kind", "offload"], ["--kind is given twice"]),
            (["compile", tir, "-o", "a", "--output", "b"], ["--output is given twice"]),
            *((argv, [argv[-2] if argv[-2].startswith("--") else "“”", "empty"]) for argv in (
                ["new-plugin", "x", "--dir", ""], ["plugin", "install", ""], ["replay", ""], ["replay", "x", "--device", ""],
                ["replay", "x", "--beside", ""], ["compile", tir, "--dev", ""], ["train", "fashion-mnist", "--data", ""])),
            (["compile", tir, "--output="], ["--output", "empty"]), (["compile", tir, "--dev", "\udcff"], ["--dev", "\\377"]),
            *((["replay", "x", option, value], [f"{option} ", value]) for option, value in (
                ("--until", "0"), ("--until", "-1"), ("--tolerance", "nan"), ("--tolerance", "-1"), ("--tolerance", "inf"),
                ("--tolerance", "x"))),
            (["bench"], ["usage"]), (["bench", "--runs", "0", "sum:2x2"], ["usage", "--runs: from 1 to"]),
            (["bench", "--runs", "x", "sum:2x2"], ["--runs"]),
            *((["bench", "sum:2x2", case], [f"“{case}”"]) for case in (
                "nope:3", "matmul", "matmul:", "matmul:0", "matmul:-3", "matmul:4:f99", "matmul:4x5",
                "matmul:4x5x6x7", "matmul:1e3", "sum:4", "sum:4x4x4", "conv:8x64x56x56", "launch:0", "sum:4x4:",
                "launch:99999999", "matmul:" + "9" * 30, "", ":", "matmul:4 ", "matmul:4:f16:f16"))):
        result = box.run(*argv).refused(*parts, status=2)
        check(result.out == "", f"nothing on standard output wanted\n{result}")


@test("help and version")
def help_texts(box):
    for argv in (["--help"], ["-h"], ["help"]):
        check("usage: tinycore" in box.run(*argv).quiet().out)
    for command in ("devices", "train", "compile", "explain", "bench"):
        check("--" in box.run(command, "--help").quiet().out)
    check(box.run("--version").quiet().out.startswith("tinycore "))


@test("what a case cannot do is said before memory is asked for")
def too_much(box):
    for case, part in (("matmul:16:i32", "i32"), ("sum:4x4:bool", "bool"), ("matmul:4294967296", "elements"),
                       ("sum:4294967296x4294967296", "elements")):
        box.run("bench", case, DEV="CPU").refused(case, part)


@test("numbers in the environment that are none, or none that is allowed: one warning, the default")
def environment(box):
    tir = box.write("k.tir", KERNEL)
    for name, value, part in (("DEBUG", "x", "is no whole number"), ("DEBUG", "1e", "is no whole number"), ("DEBUG", "9" * 20, "is not from 0 to"),
                              ("DEBUG", "-5", "is not from 0 to"), ("BEAM", "-1", "is not from 0 to"), ("TINY_NO_OPT", "yes", "is no whole number"),
                              ("TINY_VERIFY", "-2", "is not from -1 to")):
        result = box.run("compile", tir, **{name: value}).good()
        check(result.err.count(f"{name}={value} {part}") == 1 and len(result.err) < 300, result)
    for threads in ("0", "100000", "1"):
        box.run("bench", "--runs", 1, "matmul:16", DEV="CPU", TINY_THREADS=threads).quiet()
    result = box.run("bench", "--runs", 1, "matmul:16", DEV="CPU", TINY_THREADS="-3").good()
    check(result.err.count("TINY_THREADS=-3 is not from 0 to") == 1, result)


# By variable, of docs/env.md: values that make no sense, what is said of them beside the name and the value, and what else is set. None: a number,
# which is tried with three values. A name of a file has one that cannot be.
NOWHERE = "/proc/nowhere/x"
SENSELESS = {
    "DEV": [("nonsense", "there is no backend", {})], "BACKEND": [("nonsense", "there is no backend", {"DEV": None})], "DEBUG": None,
    "TINY_PLUGIN_FILES": [(NOWHERE, "is not there", {})], "TINY_PLUGIN_PATH": [(f"{os.environ['TINY_PLUGIN_PATH']}:{NOWHERE}", "is not there", {})],
    "TINY_TRACE_REWRITE": None, "TINY_VERIFY": None, "TINY_CHECK": None, "TINY_NO_OPT": None, "TINY_NO_MERGE": None, "TINY_NO_CLAIM": None,
    "TINY_EXPLAIN": None, "BEAM": None, "TINY_BEAM_SECONDS": None, "TINY_BEAM_TIMEOUT": None, "TINY_TUNED": [(NOWHERE, "No such file", {})],
    "TINY_TUNED_OUT": [(NOWHERE, "No such file", {"BEAM": 1, "TINY_BEAM_SECONDS": 1})], "TINY_NO_CACHE": None,
    "TINY_CACHE_DIR": [(NOWHERE, "No such file", {})], "TINY_CACHE_MB": None, "TINY_THREADS": None, "TINY_ISOLATED_TIMEOUT": None,
    "TINY_CRASH_NOTES": None, "TINY_PROFILE": [(NOWHERE, "No such file", {})], "TINY_RECORD": [(NOWHERE, "No such file", {})], "TINY_RECORD_MB": None,
    "TINY_AFFINITY": [("abc", "a list of processors such as", {}), ("3-1", "a range is FIRST-LAST", {})],
    "TINY_LLVM_LIBRARY": [(NOWHERE, "cannot open", {"TINY_NO_CACHE": 1}), ("libc.so.6", "it is no libLLVM", {"TINY_NO_CACHE": 1})],
    "TINY_LAPACK_LIBRARY": [(NOWHERE, "cannot be opened", {}), ("libm.so.6", "LAPACK with integers of 32 bits", {})],
    "TINY_LLVM_PASSES": [("nonsense", "unknown pass", {"TINY_NO_CACHE": 1})],
    "TINY_CLANG": [(NOWHERE, "no clang command", {"DEV": "CPU:CLANG", "TINY_NO_CACHE": 1})],
    "TINY_CPU_CACHES": [(value, "sizes of the caches", {}) for value in ("x", "-3", "48K,2M,1G,5", "48Q", "1M;2M")],
    "TINY_OPENCL_LIBRARY": [(NOWHERE, "cannot open", {"DEV": "CL"})], "TINY_WEBGPU_LIBRARY": [(NOWHERE, "cannot open", {"DEV": "WEBGPU"})],
    "TINY_NVRTC_LIBRARY": [(NOWHERE, "cannot open", {"DEV": "NULL:CUDA:sm_90a"})], "TINY_CUDA_LIBRARY": [(NOWHERE, "cannot open", {"DEV": "CUDA"})],
    "TINY_SCAN_HELPER": [(NOWHERE, "is no program", {}), ("/proc", "is no program", {})]}


@test("every variable of docs/env.md: a value that makes no sense is named, with what is wanted")
def senseless(box):
    page = pathlib.Path(__file__).parents[2] / "docs" / "env.md"
    listed = set(re.findall(r"^\| `(\w+)` \|", page.read_text(), re.M)) | {"TINY_SCAN_HELPER"}
    check(listed == set(SENSELESS), listed ^ set(SENSELESS))
    for name, rows in SENSELESS.items():
        rows = rows or [("x", "is no whole number from", {}), ("1e9", "is no whole number from", {}), ("-7", "is not from", {})]
        for value, part, more in rows:
            result = box.run("bench", "--runs", 1, "sum:3x5", **{"DEV": "CPU", **more, name: value})
            check(name in result.err and value.split(":")[-1] in result.err and part in result.err, f"{name}={value}: {result}")
            check(len(result.err) < 1200, result)


@test("a device that a wrong setting keeps from opening is not passed over silently")
def affinity(box):
    says = "TINY_AFFINITY=abc: a list of processors such as 0-3,8 is wanted"
    box.run("bench", "--runs", 1, "matmul:16", DEV="CPU", TINY_AFFINITY="abc").refused(says)
    result = box.run("bench", "--runs", 1, "matmul:16", "sum:4x4", DEV="CPU|REF", TINY_AFFINITY="abc").good()
    check(result.err.count(says) == 1 and "another device is used" in result.err, result)
    box.run("bench", "--runs", 1, "matmul:16", DEV="CPU|REF").quiet()


def refuse_data(box, name, *parts, **changes):
    files = {**small_data.made(40, 8), **{{"images": IMAGES, "labels": LABELS, "test_images": TEST_IMAGES,
                                           "test_labels": TEST_LABELS}[key]: value for key, value in changes.items()}}
    for packed in (False, True):
        folder = small_data.write(box, files, f"{name}-{packed}".replace(" ", "-"), packed)
        result = box.run("train", "fashion-mnist", "--steps", 1, "--batch", 4, "--data", folder, DEV="CPU",
                         timeout=30).refused(*parts)
    note(f"{name}: {result.err.strip().replace(box.root, '')}")


@test("damaged IDX files: the file, the place and what is wrong")
def idx(box):
    good = small_data.made(40, 8)
    image, label = good[IMAGES], good[LABELS]
    refuse_data(box, "empty", IMAGES, images=b"")
    refuse_data(box, "magic cut", IMAGES, "at byte", images=image[:3])
    refuse_data(box, "sizes cut", IMAGES, "at byte", "sizes", images=image[:9])
    refuse_data(box, "elements cut", IMAGES, "truncated", "31360", images=image[:-1])
    refuse_data(box, "one byte more", IMAGES, "goes on", images=image + b"x")
    refuse_data(box, "wrong magic", LABELS, "magic", "ff ff", labels=b"\xff\xff" + label[2:])
    refuse_data(box, "unknown type", LABELS, "magic", labels=b"\0\0\x42\x01" + label[4:])
    refuse_data(box, "a text", LABELS, "magic", labels=b"hello, this is no IDX file at all\n" * 9)
    refuse_data(box, "no axes", LABELS, "axes", labels=b"\0\0\x08\0" + label[4:])
    refuse_data(box, "too many axes", LABELS, "axes", labels=b"\0\0\x08\xff" + label[4:])
    refuse_data(box, "hostile size", IMAGES, "allowed", images=struct.pack(">IIII", 0x803, 0xffffffff, 28, 28))
    refuse_data(box, "overflowing", IMAGES, "allowed", images=struct.pack(">IIII", 0x803, *[0x80000000] * 3))
    refuse_data(box, "large but absent", IMAGES, "truncated", images=struct.pack(">IIII", 0x803, 1000000, 28, 28))
    refuse_data(box, "floats", LABELS, "u8", "f32", labels=struct.pack(">II", 0xd01, 40) + bytes(160))
    refuse_data(box, "labels as images", IMAGES, "wanted u8 with 3 axes", images=label)


@test("data that does not fit: both sides are named")
def fit(box):
    good = small_data.made(40, 8)
    refuse_data(box, "fewer labels", "40", "39", labels=small_data.labels([1] * 39))
    refuse_data(box, "fewer test labels", "8", "7", test_labels=small_data.labels([1] * 7))
    refuse_data(box, "none", "0", images=small_data.images(b"", 0), labels=small_data.labels([]))
    refuse_data(box, "smaller images", "20×20", "28×28", images=small_data.images(bytes(40 * 400), 40, 20, 20),
                test_images=small_data.images(bytes(8 * 400), 8, 20, 20))
    refuse_data(box, "other test images", "test set",
                test_images=small_data.images(bytes(8 * 400), 8, 20, 20))
    folder = small_data.write(box, good)
    box.run("train", "fashion-mnist", "--steps", 1, "--batch", 41, "--data", folder,
            DEV="CPU").refused("--batch", "41", "40")


@test("missing data: which file, which package, which option")
def missing(box):
    for folder in (box.folder("empty"), box.path("none"), box.write("file", "x"), box.folder("a b €")):
        result = box.run("train", "fashion-mnist", "--data", folder, DEV="CPU")
        result.refused(IMAGES, "dataset-fashion-mnist", "--data")
    files = small_data.made(8, 4)
    for name in files:
        folder = small_data.write(box, {**files, name: None}, "without-" + name)
        box.run("train", "fashion-mnist", "--data", folder, "--batch", 4,
                DEV="CPU").refused(name, "dataset-fashion-mnist")
    os.makedirs(box.path("folder", IMAGES))
    box.run("train", "fashion-mnist", "--data", box.path("folder"), DEV="CPU").refused(IMAGES, "regular file")


@test("gzip that is damaged")
def gzip_damage(box):
    folder = small_data.write(box, small_data.made(40, 8))
    path = os.path.join(folder, IMAGES + ".gz")
    with open(path, "rb") as file:
        good = file.read()
    numbers = random.Random(1)
    flipped = bytearray(good)
    for _ in range(20):
        flipped[numbers.randrange(100, len(good))] ^= 1 << numbers.randrange(8)
    for bad in (good[: len(good) // 2], good[:5], bytes(flipped), b"\x1f\x8b" + b"\0" * 50):
        with open(path, "wb") as file:
            file.write(bad)
        result = box.run("train", "fashion-mnist", "--steps", 1, "--batch", 4, "--data", folder, DEV="CPU",
                         timeout=30).refused(IMAGES, "at byte")
        note(result.err.strip().replace(box.root, ""))


@test("a loss that is no number ends the run and says what to try")
def diverged(box):
    folder = small_data.write(box, small_data.made(64, 8))
    result = box.run("train", "fashion-mnist", "--steps", 40, "--batch", 8, "--lr", "1e30", "--data", folder,
                     "--json", DEV="CPU").refused("step", "--lr")
    check("nan" in result.err or "inf" in result.err, result)
    check("NaN" not in result.out and "nan" not in result.out and "test_accuracy" not in result.out, result)
    result.lines()


def variants():
    """Texts that are no IR, or IR that is no kernel: what each message must hold."""
    p, r = "%p = param.f32{slot=0, shape=[64]}\n", "%r = range.index{number=0, kind=loop}(64)\n"
    yield "empty", "", []
    yield "blank", "\n\n// nothing\n", []
    yield "rubbish", "hello world", ["1:"]
    yield "binary", "\x7fELF\x01\x02\x03", ["1:"]
    yield "NUL", "sink(\0)", []
    yield "unknown op", p + "sink(frobnicate.f32(%p))\n", ["2:", "frobnicate"]
    yield "unknown dtype", "sink(add.f99(1.0, 2.0))\n", ["1:", "f99"]
    yield "unknown name", p + "sink(%q)\n", ["2:", "%q"]
    yield "twice", p + p + "sink(%p)\n", ["2:", "%p"]
    yield "open bracket", p + "sink(neg.f32(%p\n", ["3:"]
    yield "open brace", "sink{name=", ["1:"]
    yield "open text", 'sink{name="abc\n', ["1:"]
    yield "attribute", "%p = param.f32{slat=0, shape=[64]}\nsink(%p)\n", ["1:", "slat"]
    yield "shape", "%p = param.f32{slot=0, shape=[-4]}\nsink(contiguous.f32(%p))\n", []
    yield "huge shape", "%p = param.f32{slot=0, shape=[9223372036854775807, 4]}\nsink(contiguous.f32(%p))\n", []
    yield "huge number", "%p = param.f32{slot=99999999999999999999999, shape=[4]}\nsink(%p)\n", ["1:"]
    yield "dtypes", p + "%q = param.i32{slot=1, shape=[64]}\nsink(contiguous.f32(add.f32(%p, %q)))\n", ["3:", "add"]
    yield "shapes", p + "%q = param.f32{slot=1, shape=[63]}\nsink(contiguous.f32(add.f32(%p, %q)))\n", ["3:", "add"]
    yield "reshape", p + "sink(contiguous.f32(reshape.f32{shape=[63]}(%p)))\n", ["2:", "reshape"]
    yield "permute", p + "sink(contiguous.f32(permute.f32{axes=[1]}(%p)))\n", ["2:", "permute"]
    yield "axes", p + "sink(reduce.f32{op=add, axes=[7]}(%p))\n", ["2:", "reduce"]
    yield "arity", p + "sink(add.f32(%p))\n", ["2:", "add"]
    yield "deep", "sink(" + "neg.f32(" * 5000 + "1.0" + ")" * 5001, ["1:"]
    yield "wide", p + "sink(" + ", ".join(["%p"] * 20000) + ")", []
    yield "stored nothing", "sink()", []
    yield "empty range", p + r.replace("64", "0") + "sink(store(%p, %r, 1.0))\n", []
    yield "negative range", p + r.replace("(64)", "(-5)") + "sink(store(%p, %r, 1.0))\n", []
    yield "endless range", p + r.replace("(64)", "(9223372036854775807)") + "sink(store(%p, mul.index(%r, 9223372036854775807), 1.0))\n", []
    yield "same range twice", p + r + "%s = range.index{number=0, kind=loop}(8)\nsink(store(%p, add.index(%r, %s), 1.0))\n", []
    yield "float address", p + "sink(store(%p, 1.5, 1.0))\n", ["2:"]
    yield "vector", p + r + "sink(store(%p, %r, vector.f32x4(1.0)))\n", []
    yield "lanes", "%p = param.f32x99999{slot=0, shape=[64]}\nsink(%p)\n", ["1:"]


@test("malformed IR files: the file, the line and what is wrong; never a crash")
def malformed(box):
    for name, text, parts in variants():
        path = box.write("bad.tir", text)
        for command in (["compile", path], ["explain", path]):
            result = box.run(*command, DEV="CPU", timeout=30)
            if not parts and result.status == 0:
                note(f"{name}: taken")
                continue
            result.refused("bad.tir", *parts)
            check(len(result.err) < 600, result)
        note(f"{name}: {result.err.strip().replace(box.root, '')[:200]}")


@test("large sizes that are legal")
def large(box):
    for text in ("%p = param.f32{slot=0, shape=[1099511627776], device=\"CPU\"}\nsink(contiguous.f32(neg.f32(%p)))\n",
                 "%p = param.f32{slot=0, shape=[2147483648, 16], device=\"CPU\"}\nsink(reduce.f32{op=add, axes=[0]}(%p))\n",
                 "sink(contiguous.f32(expand.f32{shape=[65536, 65536]}(reshape.f32{shape=[1, 1]}(1.0))))\n"):
        path = box.write("large.tir", text)
        for command in (["compile", path], ["explain", path]):
            result = box.run(*command, DEV="CPU", timeout=30)
            if result.status != 0:
                note(result.refused("large.tir").err)


@test("IR files damaged at random are taken or refused, never worse")
def mutated(box):
    numbers = random.Random(20)
    words = [b"0", b"-1", b"9223372036854775807", b"f32", b"u8", b"bool", b"index", b"(", b")", b"{", b"}", b"%0",
             b"%1", b"sink", b"load", b"add", b"reduce", b"range", b",", b"\n", b"x4", b"nan", b"\xff", b"\0"]
    counts = [0, 0]
    for _ in range(120):
        text = bytearray(KERNEL.encode())
        for _ in range(numbers.randrange(1, 4)):
            at = numbers.randrange(len(text))
            text[at:at + numbers.randrange(0, 6)] = numbers.choice(words)
        path = box.write("bad.tir", bytes(text))
        result = box.run("compile", path, DEV="CPU", timeout=30)
        counts[result.status != 0] += 1
        if result.status != 0:
            result.refused()
    note(f"{counts[0]} taken, {counts[1]} refused")


main()
