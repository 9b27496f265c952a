#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""DEV=NULL:CUDA:sm_… as a user meets it: cubins without a driver or GPU, and what is said where NVIDIA's compiler is
not there, is no library, is too old, or does not know the architecture."""
import os
import statistics
import struct

from e2e import Skip, check, main, note, test

NVRTC = os.environ["TINY_NVRTC_LIBRARY"]
OLD, NOTHING, LACKING = (os.environ["TINY_OLD_NVRTC_" + name] for name in ("PLAIN", "NOTHING", "LACKING"))
ADD_ONE = """// stage: kernel
%0 = param.f32{slot=0, shape=[1024]}
%1 = range.index{number=0, kind=loop}(1024)
%2 = load.f32(%0, %1)
sink{name="add_one"}(store(%0, %1, add.f32(%2, 1.0)))
"""


def need_compiler():
    if not os.path.exists(NVRTC):
        raise Skip(f"there is no {NVRTC}: ./setup test fetches it")


def emit(box, form, arch, library=NVRTC):
    tir = box.write("one.tir", ADD_ONE)
    return box.run("compile", tir, "--dev", "NULL:CUDA" + arch, "--emit", form, TINY_NVRTC_LIBRARY=library)


@test("an IR file becomes a cubin of the architecture")
def cubins(box):
    need_compiler()
    for arch, number in (("sm_75", 75), ("sm_80", 80), ("sm_90a", 90), ("sm_90", 90), ("sm_120", 120), ("sm_121a", 121)):
        raw = emit(box, "binary", ":" + arch).quiet().raw
        machine, = struct.unpack_from("<H", raw, 18)
        flags, = struct.unpack_from("<I", raw, 48)
        check(raw[:4] == b"\x7fELF" and machine == 190 and flags >> 8 & 255 == number, f"{arch}: {raw[:64]}")
    check(raw != emit(box, "binary", ":sm_80").quiet().raw, "one code for two architectures")


@test("the source includes nothing, and its architecture is all of its key")
def sources(box):
    need_compiler()
    source = emit(box, "source", ":sm_90a").quiet().out
    check("#include" not in source and "tiny_kernel_add_one (float *__restrict__ data0)" in source, source)
    told = box.run("bench", "--runs", 1, "elementwise:64", DEV="NULL:CUDA:sm_90a,threads=7", DEBUG=1,
                   TINY_NVRTC_LIBRARY=NVRTC).good()
    check("sm_90a,threads=7,l2=52428800,nvrtc=" in told.err, told)


@test("an architecture that nobody has is refused, and one of another compiler")
def architectures(box):
    for bad in ("sm_91", "sm_80a", "sm_", "sm_90ab", "sm_-80", "sm_4294967386"):
        emit(box, "source", ":" + bad).refused(f"'{bad}'", "sm_ and one of 75, 80")
    emit(box, "source", ":sm_80,cores=3").refused("'cores=3'", "threads, l2, cuda, nvrtc")
    emit(box, "source", ":vax").refused("'vax'")
    need_compiler()
    emit(box, "binary", ":sm_80,nvrtc=1108").refused("the architecture names NVRTC 1108")
    emit(box, "binary", ":sm_80,cuda=3").refused("newer than the driver's CUDA 3", "version 3 or older")


@test("without the compiler there is source, and a hint to install it")
def absent(box):
    emit(box, "source", ":sm_90a", "/nowhere.so").quiet()
    emit(box, "binary", ":sm_90a", "/nowhere.so").refused("TINY_NVRTC_LIBRARY: /nowhere.so", "libnvrtc12")
    tir = box.write("one.tir", ADD_ONE)
    told = box.run("compile", tir, "--dev", "NULL:CUDA:sm_80", "--emit", "binary", TINY_NVRTC_LIBRARY=None)
    if told.status != 0:  # nobody installed one where the loader looks
        told.refused("libnvrtc.so.13", "libnvrtc.so.11.2", "libnvrtc12")


@test("what is no such library is refused: a text, a library without the functions, one that knows nothing")
def no_libraries(box):
    emit(box, "binary", ":sm_80", box.write("text.so", "no library\n")).refused("text.so", "libnvrtc12")
    emit(box, "binary", ":sm_80", "libc.so.6").refused("libc.so.6 lacks nvrtcVersion", "older one")
    emit(box, "binary", ":sm_80", LACKING).refused("lacks nvrtcGetCUBIN", "NVRTC 11.2 or newer")
    emit(box, "binary", ":sm_80", NOTHING).refused("does not say which architectures")


@test("a compiler that is too old for the architecture is named, with what it knows")
def too_old(box):
    emit(box, "binary", ":sm_90a", OLD).refused("NVRTC 11.2 knows no sm_90a", "sm_35 to sm_86", "install a version")


@test("builtins that lie beside the compiler, outside of the loader's folders, are open when it looks for them")
def builtins(box):
    emit(box, "binary", ":sm_86", OLD).refused("add_one: NVRTC answers 9")


@test("networks compile whole, for each generation")
def networks(box):
    need_compiler()
    for arch in ("sm_80", "sm_90a", "sm_120"):
        times = []
        for case in ("matmul:64", "softmax:12x40", "layernorm:10x24", "conv:2x3x8x8:4x3x3", "sumrows:300x20"):
            line, = box.run("bench", "--json", "--runs", 1, case, DEV="NULL:CUDA:" + arch, TINY_NVRTC_LIBRARY=NVRTC).quiet().lines()
            times.append(line["compile_ms"] / line["kernels"])
        note(f"{arch}: {statistics.median(times):.0f} ms a kernel")


main()
