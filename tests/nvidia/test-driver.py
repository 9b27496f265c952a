#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""DEV=CUDA as a user meets it, on the simulated GPU: results are those of the CPU, and what is said where the driver
refuses, loses a device, is older than the compiler, or shows no device."""
import os

from e2e import Skip, check, main, test

SIMULATED = {name: os.environ[name] for name in os.environ if name.startswith("SIMULATED_GPU_")}
SIMULATED.update({name: os.environ[name] for name in ("TINY_CUDA_LIBRARY", "TINY_NVRTC_LIBRARY")})
CASES = ("matmul:24", "softmax:12x40", "layernorm:10x24", "conv:2x3x8x8:4x3x3", "elementwise:1000")


def need_compiler():
    if not os.path.exists(SIMULATED["SIMULATED_GPU_NVRTC"]):
        raise Skip(f"there is no {SIMULATED['SIMULATED_GPU_NVRTC']}: ./setup test fetches it")


def run(box, *cases, dev="CUDA", **env):
    return box.run("bench", "--runs", 1, *cases, DEV=dev, **{**SIMULATED, **env})


@test("results are the CPU's")
def results(box):
    need_compiler()
    for case in CASES:
        files = []
        for dev in ("CPU", "CUDA"):
            files.append(box.path(f"{dev}.f32"))
            box.run("bench", "--runs", 1, "--output", files[-1], case, DEV=dev, **SIMULATED).quiet()
        here, there = (memoryview(open(path, "rb").read()).cast("f") for path in files)
        check(len(here) == len(there) > 0, case)
        check(all(abs(a - b) <= 1e-5 * max(1, abs(a)) for a, b in zip(here, there)), case)


@test("a driver that refuses to begin is a reason in words, and another device takes its place")
def refuses(box):
    for code, words in ((3, "NOT_INITIALIZED"), (34, "STUB_LIBRARY"), (46, "DEVICE_UNAVAILABLE"), (100, "NO_DEVICE"),
                        (800, "NOT_PERMITTED"), (803, "SYSTEM_DRIVER_MISMATCH")):
        faults = {"SIMULATED_GPU_FAULTS": f"cuInit={code}"}
        run(box, "elementwise:64", **faults).refused(f"CUDA_ERROR_{words}", "libcuda1")
        box.run("bench", "--runs", 1, "elementwise:64", DEV="CUDA|CPU", **SIMULATED, **faults).quiet()


@test("no device that CUDA_VISIBLE_DEVICES shows, and one of another time")
def devices(box):
    run(box, "elementwise:64", SIMULATED_GPU_FAULTS="cuDeviceGet=101").refused("INVALID_DEVICE", "CUDA_VISIBLE_DEVICES")
    run(box, "elementwise:64", SIMULATED_GPU_ARCH="sm_61").refused("is an sm_61", "sm_75 to sm_121")


@test("a driver that is older than the compiler is told before it is given code")
def old_driver(box):
    need_compiler()
    run(box, "elementwise:64", SIMULATED_GPU_DRIVER="12040").refused("newer than the driver's CUDA 12", "version 12 or older")


@test("what fails while it runs is named: memory, code, launches, copies, and the first reason of a lost device")
def fails(box):
    need_compiler()
    for fault, words in {"cuMemAlloc_v2=2": "CUDA_ERROR_OUT_OF_MEMORY (2)", "cuModuleGetFunction=500": "CUDA_ERROR_NOT_FOUND (500)",
                         "cuLaunchKernel=701": "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)",
                         "cuLaunchKernel=700": "CUDA_ERROR_ILLEGAL_ADDRESS (700)",
                         "cuMemcpyDtoHAsync_v2=719": "CUDA_ERROR_LAUNCH_FAILED (719)",
                         "cuStreamCreate=2": "CUDA_ERROR_OUT_OF_MEMORY (2)",
                         "cuEventQuery=702": "the device was lost"}.items():
        told = run(box, "matmul:24", "--output", box.path("result.f32"), SIMULATED_GPU_FAULTS=fault)
        check(told.status == 1 and words in told.err and "(null)" not in told.err, f"{fault}: {told}")


@test("memory that runs out once is asked for again")
def memory(box):
    need_compiler()
    run(box, "matmul:24", SIMULATED_GPU_FAULTS="cuMemAlloc_v2:2=2").quiet()
    run(box, "matmul:24", SIMULATED_GPU_FAULTS="cuMemAlloc_v2:2=2,cuMemAlloc_v2:3=2").refused("CUDA_ERROR_OUT_OF_MEMORY")


main()
