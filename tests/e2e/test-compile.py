#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tinycore compile, explain, bench and DEBUG: each form for each backend, and every kind of case."""
import os
import json
import re

from e2e import check, main, need, test

KERNEL = """// stage: kernel
%0 = param.f32{slot=0, shape=[1024]}
%1 = range.index{number=0, kind=loop}(1024)
%2 = load.f32(%0, %1)
sink{name="add_one"}(store(%0, %1, add.f32(%2, 1.0)))
"""
TENSOR = """%a = param.f32{slot=0, shape=[8, 16], device="CPU"}
%b = param.f32{slot=1, shape=[16, 4], device="CPU"}
%x = expand.f32{shape=[8, 16, 4]}(reshape.f32{shape=[8, 16, 1]}(%a))
%y = expand.f32{shape=[8, 16, 4]}(reshape.f32{shape=[1, 16, 4]}(%b))
%m = reshape.f32{shape=[8, 4]}(reduce.f32{op=add, axes=[1]}(mul.f32(%x, %y)))
sink(max.f32(%m, 0.0))
"""
TWO = """%a = param.f32{slot=0, shape=[8, 16], device="CPU"}
%s = reduce.f32{op=add, axes=[1]}(%a)
%c = contiguous.f32(%s)
%d = expand.f32{shape=[8, 16]}(flip.f32{axes=[0]}(%c))
sink(contiguous.f32(mul.f32(%a, %d)), contiguous.f32(add.f32(%c, 1.0)))
"""
DEVICES = ("CPU", "CPU:LLVM", "CPU:CLANG", "REF", "NULL:CPU", "NULL:CPU:CLANG", "NULL:CPU:LLVM:aarch64",
           "NULL:CPU:LLVM:x86_64,znver2,-avx512f")
MAGIC = {"REF": b"TINYREF"}
CASES = ("matmul:24", "matmul:5x7x3", "matvec:33", "matvec:8x5", "elementwise:1000", "sum:30x20",
         "sumrows:30x20", "softmax:12x40", "layernorm:10x24", "conv:2x3x8x8:4x3x3", "launch:10")
FIELDS = {"case": str, "device": str, "ms_median": (int, float), "ms_min": (int, float), "calls": int,
          "gflops": (int, float), "gbps": (int, float), "kernels": int, "compile_ms": (int, float)}
LONG = """// stage: kernel
%y = param.f32{slot=0, shape=[33554432]}
%i = range.index{number=0, kind=loop}(33554432)
sink{name="k"}(store(%y, %i, 1.0))
"""
WIDE = """// stage: kernel
%y = param.f32{slot=0, shape=[4294967296]}
%i = range.index{number=0, kind=loop}(1024)
%j = range.index{number=1, kind=loop}(1024)
%k = range.index{number=2, kind=loop}(4096)
%a = add.index(add.index(mul.index(%i, 4194304), mul.index(%j, 4096)), %k)
sink{name="k"}(store(%y, %a, 1.0))
"""


@test("linear, source and binary of a kernel and of a tensor graph, for every backend")
def forms(box):
    need("clang")
    for name, text, kernel in (("k.tir", KERNEL, "add_one"), ("t.tir", TENSOR, "matmul_relu_8_4_r16")):
        path = box.write(name, text)
        for dev in DEVICES:
            linear = box.run("compile", path, DEV=dev).quiet()
            check("// stage: linear" in linear.out and kernel in linear.out, linear)
            again = box.run("compile", path, "--emit", "linear", "--dev", dev).quiet()
            check(again.out == linear.out, "--dev and DEV differ")
            source = box.run("compile", path, "--emit", "source", DEV=dev)
            if "CLANG" in dev:
                check(kernel in source.quiet().out and "float" in source.out, source)
            else:
                source.refused("has no source", "CPU:CLANG")
            binary = box.run("compile", path, "--emit", "binary", DEV=dev)
            check(binary.status == 0 and binary.err == "", binary.err)
            check(binary.raw.startswith(MAGIC.get(dev, b"\x7fELF")), binary.raw[:16])
            check(box.run("compile", path, "--emit", "binary", DEV=dev).raw == binary.raw,
                  "the same kernel gave other bytes")


@test("a kernel is called as it likes")
def names(box):
    need("clang")
    for name in ("float", "half", "main", "kernel", "memset", "int64_t", "whole", "fn"):
        path = box.write("named.tir", KERNEL.replace("add_one", name))
        for dev in ("CPU:C", "CPU:CLANG", "CPU:LLVM", "NULL:WEBGPU:WGSL"):
            check(f" {name}" in box.run("compile", path, DEV=dev).quiet().out, dev)
            result = box.run("compile", path, "--emit", "binary", DEV=dev)
            check(result.status == 0 and result.err == "" and f"tiny_kernel_{name}".encode() in result.raw, f"{dev}: {result}")


@test("--output writes the file and nothing else; several kernels are one text, not one binary")
def output(box):
    path, out = box.write("k.tir", KERNEL), box.path("out.o")
    check(box.run("compile", path, "--emit", "binary", "-o", out, DEV="CPU").quiet().out == "")
    with open(out, "rb") as file:
        check(file.read(4) == b"\x7fELF")
    box.run("compile", path, "-o", box.path("no", "such", "x"), DEV="CPU").refused("No such file")
    two = box.write("two.tir", TWO)
    check(box.run("compile", two, DEV="CPU").quiet().out.count("// stage: linear") >= 2)
    box.run("compile", two, "--emit", "binary", DEV="CPU").refused("a binary holds one")
    if os.path.exists("/dev/full"):
        box.run("compile", path, "-o", "/dev/full", DEV="CPU")


@test("--opts replays a list by hand; the heuristic's list is printed first and replays itself")
def by_hand(box):
    path = box.write("k.tir", KERNEL)
    for dev in DEVICES:
        chosen = box.run("compile", path, DEV=dev).quiet().out
        opts = re.match(r"// opts: (.*)\n// stage: linear", chosen)[1]
        check(box.run("compile", path, "--opts", opts, DEV=dev).quiet().out == chosen, f"{dev}: {opts}")
    plain = box.run("compile", path, "--opts", "none", DEV="CPU").quiet().out
    check(plain.startswith("// opts: none\n") and "x16" not in plain, plain)
    edited = box.run("compile", path, "--opts", "lanes(0,4) upcast(0,2)", DEV="CPU").quiet().out
    check(edited.startswith("// opts: lanes(0,4) upcast(0,2)\n") and "load.f32x4" in edited, edited)
    binaries = {box.run("compile", path, "--emit", "binary", "--opts", opts, DEV="CPU").raw
                for opts in ("none", "lanes(0,4)", "lanes(0,4) upcast(0,2)")}
    check(len(binaries) == 3, "lists gave the same binary")
    for opts, parts in {"lanes(0,3)": ["lanes(0,3)", "does not divide"], "upcast(7,2)": ["upcast(7,2)", "no such axis"],
                        "unroll(0,2)": ["unroll(0,2)", "not reduced"], "lanes": ["kind(axis,amount)", "lanes"],
                        "grid(0,0) lanes(0,4)": ["lanes(0,4)", "on the grid"]}.items():
        for form in ("linear", "binary"):
            box.run("compile", path, "--emit", form, "--opts", opts, DEV="CPU").refused(*parts)
    # Each of these is modest; together they are 2^25 and 2^32 copies.
    for form in ("linear", "binary"):
        box.run("compile", box.write("long.tir", LONG), "--emit", form, "--opts", "upcast(0,2) " * 25,
                DEV="CPU").refused("upcast(0,2): it makes too many copies")
        for last in ("upcast(2,64) upcast(2,64)", "upcast(2,32)"):
            opts = "upcast(0,32) upcast(0,32) upcast(1,32) upcast(1,32) " + last
            box.run("compile", box.write("wide.tir", WIDE), "--emit", form, "--opts", opts,
                    DEV="CPU").refused("upcast(1,32): it makes too many copies")
    box.run("compile", box.write("two.tir", TWO), "--opts", "none", DEV="CPU").refused("--opts is for one")


@test("explain shows kernels, ranges, strides and optimisations")
def explain(box):
    path, two = box.write("t.tir", TENSOR), box.write("two.tir", TWO)
    for dev in ("CPU", "CPU:CLANG", "REF", "NULL:CPU"):
        text = box.run("explain", path, DEV=dev).quiet().out
        for part in ("1 kernel", "matmul_relu_8_4_r16", "reduce, 16 times", "strides", "optimisations on",
                     "instructions", "temporaries: 0 bytes"):
            check(part in text, f"“{part}” in\n{text}")
    text = box.run("explain", two, "--dev", "CPU").quiet().out
    check(re.search(r"two\.tir: [2-4] kernels", text), text)
    text = box.run("explain", two, "--dev", "CPU", "--fusion").quiet().out
    check(re.search(r"-> [a-z_]+_8_16: 32 bytes written and read, which cost \d+\n"
                    r"  stored: the program asks for it\n  apart: their loops do not fit", text),
          f"no reason for the boundary: {text}")
    text = box.run("explain", box.write("k.tir", KERNEL), "--dev", "CPU").quiet().out
    check("add_one" in text and "1024 times" in text, text)
    found = box.run("explain", path, "--dev", "CPU", "--json").quiet()
    kernel, = json.loads(found.out)["schedules"][0]["kernels"]
    check(kernel["runs_on"] == "CPU" and len(kernel["ranges"]) == 3 and len(kernel["accesses"]) >= 3, found)
    check(any(each["strides"].get("range2") for each in kernel["accesses"]), found)
    box.run("explain", "matmul:32", "--dev", "REF").quiet()


@test("each level of DEBUG adds what it promises, on standard error")
def debug(box):
    promised = {1: r"device CPU.*renderer", 2: r"matmul_\S+ .* us .*GFLOP/s", 3: r"kernel matmul_.*lanes|opts",
                4: r"stage: linear|%\d+ = ", 5: r"// after \w+:", 6: r"// stage: linear", 7: r"\b(ret|vmovups|movups)"}
    before = 0
    plain = box.run("bench", "--json", "--runs", 1, "matmul:16", DEV="CPU").quiet()
    for level, pattern in promised.items():
        path = box.write("t.tir", TENSOR)
        result = box.run("bench", "--json", "--runs", 1, "matmul:16", DEV="CPU", DEBUG=level).good()
        check(set(result.lines()[-1]) == set(plain.lines()[-1]), result)
        check(re.search(pattern, result.err), f"DEBUG={level} lacks {pattern}\n{result.err[:3000]}")
        kinds = len({re.sub(r"\d+(\.\d+)?", "", line) for line in result.err.splitlines()})
        check(kinds > before or level in (3, 6), f"DEBUG={level} says no more than {level - 1}: {kinds}")
        before = kinds
        for dev in ("CPU:CLANG", "REF", "NULL:CPU"):
            box.run("compile", path, "--emit", "binary", DEV=dev, DEBUG=level)
            box.run("compile", path, DEV=dev, DEBUG=level).good()


@test("bench has a line with every field for every kind of case and float")
def bench(box):
    cases = [case + dtype for case in CASES for dtype in ("", ":f16", ":bf16", ":f64")]
    result = box.run("bench", "--json", "--runs", 1, *cases[::4], DEV="CPU").quiet()
    for rest in (1, 2, 3):
        result.out += box.run("bench", "--json", "--runs", 1, *cases[rest::4], DEV="CPU").quiet().out
    lines = {line["case"]: line for line in result.lines()}
    check(set(lines) == set(cases), set(cases) - set(lines))
    for line in lines.values():
        for name, kind in FIELDS.items():
            check(isinstance(line.get(name), kind), f"{name} in {line}")
        check(0 < line["ms_min"] <= line["ms_median"] and line["kernels"] >= 1, line)
        check(line["device"] == "CPU", line)
    check(lines["launch:10"]["kernels"] == 10, lines["launch:10"])
    text = box.run("bench", "--runs", 2, "matmul:16", DEV="CPU").quiet().out
    check(re.match(r"matmul:16 +[\d.]+ ms +[\d.]+ GFLOP/s", text), text)


@test("bench on the other backends")
def bench_others(box):
    for dev in ("REF", "NULL:CPU", "CPU:CLANG"):
        if "CLANG" in dev:
            need("clang")
        for line in box.run("bench", "--json", "--runs", 1, "matmul:8", "softmax:4x8", "launch:3",
                            DEV=dev).quiet().lines():
            check(line["device"].startswith(dev), line)
            check((line["gflops"] is None and line["gbps"] is None) == dev.startswith("NULL"), line)
    for text, wanted in (("matmul:64", r"matmul:64 +[\d.]+ ms  not run +1 kernel"), ("launch:3", r"3 kernels, not run$")):
        said = box.run("bench", "--runs", 1, text, DEV="NULL:CPU").quiet().out
        check(re.search(wanted, said.strip()) and "GFLOP/s" not in said and "GB/s" not in said, said)
    box.run("bench", "--roofline", "matmul:64", DEV="NULL:CPU").refused("NULL:CPU", "runs nothing")


main()
