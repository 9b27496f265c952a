#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""DEV=CL as a user meets it: what is said where the loader, its platforms, devices or their features are
missing, what a device that fails costs, what is computed, and with which speed. TINY_E2E_STEPS: how
long runs of training are."""
import array
import os
import shutil
import subprocess

import small_data
from e2e import Skip, check, main, near, note, test

FAULTS = os.environ["TINY_E2E_CL_FAULTS"]
STEPS = [int(n) for n in os.environ.get("TINY_E2E_STEPS", "6").split(",")]


def entry(box, **env):
    """CL's line of tinycore devices, looked at anew."""
    shutil.rmtree(os.path.join(box.cache, "scans"), ignore_errors=True)
    return [line for line in box.run("devices", "--json", **env).good().lines() if line["name"] == "CL"][0]


def need_device(box):
    found = entry(box)
    if found["state"] != "ready":
        absent = ("cannot open shared object", "CL_PLATFORM_NOT_FOUND", "no OpenCL platform has a device")
        check(any(part in found["reason"] for part in absent), found)
        raise Skip(found["reason"])
    return found


def refused(box, parts, state="no hardware", **env):
    found = entry(box, **env)
    check(found["state"] == state and all(part in found["reason"] for part in parts), found)
    note(found["reason"])
    box.run("bench", "--runs", 1, "elementwise:1000", DEV="CL", **env).refused(*parts)
    box.run("bench", "--runs", 1, "elementwise:1000", DEV="CL|CPU", **env).quiet()
    box.run("bench", "--runs", 1, "elementwise:1000", **env).quiet()


@test("no loader: its package is named, CPU takes its place where it may")
def no_loader(box):
    refused(box, ["TINY_OPENCL_LIBRARY: /nowhere.so", "ocl-icd-libopencl1"], "broken",
            TINY_OPENCL_LIBRARY="/nowhere.so")


@test("a loader that is none: the missing function is named")
def no_functions(box):
    refused(box, ["libc.so.6 lacks clGetPlatformIDs"], "broken", TINY_OPENCL_LIBRARY="libc.so.6")


@test("a loader without platforms: drivers are named")
def no_platforms(box):
    need_device(box)
    refused(box, ["CL_PLATFORM_NOT_FOUND", "pocl-opencl-icd"], "broken",
            OCL_ICD_VENDORS=box.folder("vendors") + "/")


@test("platforms without devices, and devices that lack what kernels need")
def no_devices(box):
    need_device(box)
    for fault, parts in {"no-devices": ["no OpenCL platform has a device"],
                         "old": ["OpenCL before 1.2"], "no-compiler": ["has no compiler"],
                         "no-nan": ["infinities and NaNs"]}.items():
        refused(box, parts, TINY_OPENCL_LIBRARY=FAULTS, CL_FAULT=fault)


@test("a failed launch, a lost device and too little memory end with a clear error")
def failures(box):
    need_device(box)
    box.run("bench", "--runs", 1, "matmul:600", DEV="CL").quiet()
    for fault, parts in {"no-context": ["CL_OUT_OF_HOST_MEMORY"], "launch": ["launching a kernel", "CL_OUT_OF_RESOURCES (-5)"],
                         "lost": ["waiting for the device", "EXEC_STATUS_ERROR"],
                         "no-memory": ["making a buffer", "CL_MEM_OBJECT_ALLOCATION_FAILURE"]}.items():
        for after in (0, 3):
            result = box.run("bench", "--runs", 3, "matmul:600", DEV="CL", CL_FAULT=fault,
                             CL_FAULT_AFTER=after, TINY_OPENCL_LIBRARY=FAULTS)
            result.refused("CL", *parts)
        note(result.err.strip())


@test("an embedded profile: 32-bit integers, no shared memory, queues in order")
def embedded(box):
    need_device(box)
    env = {"TINY_OPENCL_LIBRARY": FAULTS, "CL_FAULT": "embedded"}
    found = entry(box, **env)
    check("int64" not in found["architecture"] and "fp64" not in found["architecture"], found)
    ours, theirs = (box.path(name) for name in ("ours", "theirs"))
    box.run("bench", "--runs", 1, "--output", ours, "matmul:200", DEV="CL", **env).quiet()
    box.run("bench", "--runs", 1, "--output", theirs, "matmul:200", DEV="CPU").quiet()
    with open(ours, "rb") as a, open(theirs, "rb") as b:
        compare_floats(a.read(), b.read())


def compare_floats(a, b):
    x, y = array.array("f", a), array.array("f", b)
    check(len(x) == len(y) > 0, (len(x), len(y)))
    for one, other in zip(x, y):
        near(one, other, 1e-3, "element")


@test("architectures: parts that change it, wholes without a device, and nonsense")
def architectures(box):
    whole = need_device(box)["architecture"]
    tir = box.write("one.tir", """%0 = param.f32{slot=0, shape=[1024]}
%1 = range.index{number=0, kind=loop}(1024)
%2 = load.f32(%0, %1)
sink{name="add_one"}(store(%0, %1, add.f32(%2, 1.0)))
""")
    for dev in ("CL", "CL:0", f"CL:@{entry(box)['id']}", "CL::groups", "CL::-fp64,bits=128", f"CL::{whole}",
                "CL::params=500", "NULL:CL", "NULL:CL:cl,int64,groups,group=256,local=32768,params=16"):
        box.run("compile", tir, DEV=dev).quiet()
    for name in ("kernel", "half", "float", "main", "local", "mulacc_float"):
        named = box.write(f"{name}.tir", open(tir).read().replace("add_one", name))
        box.run("compile", named, DEV="CL").quiet()
    too_long = "cl," + ",".join(f"{name}=4294967295" for name in (
        "groups math rounded flush int64 fp64 fp16 bits threads group z local params l1 l2 l3 dev").split())
    for dev, parts in {f"NULL:CL:{too_long}": ["more than 255 letters"], "CL::nonsense": ["'nonsense'", "int64, fp64"], "CL::bits=many": ["'bits=many'"],
                       "CL:7": ["no such device"], "CL:@cl-0": ["no such device"]}.items():
        box.run("compile", tir, DEV=dev).refused(*parts)


@test("f16 arithmetic, which few devices have, is OpenCL C to another compiler")
def halves(box):
    clang = shutil.which("clang")
    if clang is None:
        raise Skip("no clang")
    tir = box.write("halves.tir", """%0 = param.f16{slot=0, shape=[1024]}
%1 = param.f16{slot=1, shape=[1024]}
%2 = range.index{number=0, kind=loop}(1024)
%3 = load.f16(%1, %2)
%4 = where.f16(cmplt.bool(%3, 2.0), neg.f16(%3), exp2.f16(%3))
sink(store(%0, %2, sqrt.f16(add.f16(mul.f16(%4, %3), cast.f16(cast.i32(%3))))))
""")
    source = box.path("halves.cl")
    for arch in ("cl,int64,fp16,bits=256", "cl,fp16", "cl,groups,math,fp16,fp64,group=64,local=4096"):
        box.run("compile", tir, "--emit", "source", "-o", source, DEV=f"NULL:CL:{arch}").quiet()
        defines = [f"-DTINY_{name.upper()}={int(name in arch)}" for name in ("int64", "fp64", "fp16")]
        made = subprocess.run([clang, "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-target",
                               "spir64", "-fsyntax-only", "-Wno-all", "-DTINY_GRID=get_global_id", "-DTINY_GROUP=",
                               *defines, source], capture_output=True, text=True, check=False)
        check(made.returncode == 0, made.stderr)


# Each step's gradients and weights are what tests/python/test_device_training.py has.
@test("training gives the losses of CPU within 1e-3")
def training(box):
    need_device(box)
    data = [] if small_data.is_installed() else ["--data", small_data.write(box, small_data.made(7000, 64))]
    differences = []
    for steps in STEPS: # a line at the first and the last step
        ours, theirs = ([line["loss"] for line in box.run(
            "train", "fashion-mnist", "--steps", steps, "--json", *data, DEV=dev, timeout=800).quiet().lines()]
            for dev in ("CL", "CPU"))
        check(len(ours) == len(theirs) >= 2, (ours, theirs))
        differences += [abs(a - b) for a, b in zip(ours, theirs)]
    note(f"losses differ by {max(differences):.2g} at most")
    check(max(differences) <= 1e-3, differences)


@test("matmul:1024 has half of the CPU backend's speed at least, launches are measured")
def speed(box):
    need_device(box)
    for attempt in range(5):
        ms = {}
        for dev in ("CPU", "CL", "CPU", "CL"):
            line = box.run("bench", "--json", "--runs", 9, "matmul:1024", DEV=dev).quiet().lines()[-1]
            ms[dev] = min(line["ms_min"], ms.get(dev, 1e9))
        ratio = ms["CPU"] / ms["CL"]
        note(f"matmul:1024 in {ms['CL']:.2f} ms, {ratio:.2f} of the CPU backend's speed (bar 0.5)")
        if ratio >= 0.5:
            break
    else:
        check(False, f"{ratio:.2f} of the CPU backend's speed")
    note(box.run("bench", "--runs", 9, "launch:100", DEV="CL").quiet().out.strip())


main()
