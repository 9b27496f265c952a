#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""DEV=WEBGPU as a user meets it: listed, refused with a reason where something is missing, and learning as
the CPU does. TINY_E2E_STEPS is how many steps of training there are, TINY_E2E_BATCH how many images a step has."""
import os

import small_data
from e2e import check, main, near, test

ADD_ONE = """// stage: kernel
%0 = param.f32{slot=0, shape=[64]}
%1 = range.index{number=0, kind=loop}(64)
%2 = load.f32(%0, %1)
%3 = store(%0, %1, add.f32(%2, 1.0))
sink{name="get"}(%3)
"""
NOWHERE = {"VK_DRIVER_FILES": "/nowhere.json", "VK_ICD_FILENAMES": "/nowhere.json"}


@test("it is listed with its adapter, as a simulator that nobody gets unasked")
def listed(box):
    found = [entry for entry in box.run("devices", "--json").quiet().lines() if entry["name"] == "WEBGPU"]
    check(len(found) == 1 and found[0]["state"] == "ready", found)
    check(found[0]["renderers"] == ["WGSL"], found)
    check(found[0]["architecture"].startswith("wgsl,"), found)
    check("llvmpipe" in str(found[0]), found)


@test("without library, adapter or device the reason is said, and the CPU works")
def missing(box):
    tir = box.write("one.tir", ADD_ONE)
    for env, parts in ((NOWHERE, ("no adapter", "Vulkan driver")),
                       ({"TINY_WEBGPU_LIBRARY": "/nowhere.so"}, ("TINY_WEBGPU_LIBRARY", "/nowhere.so")),
                       ({"TINY_WEBGPU_LIBRARY": "/etc/passwd"}, ("/etc/passwd",))):
        box.run("compile", tir, DEV="WEBGPU", **env).refused("WEBGPU", *parts)
        box.run("compile", tir, DEV="CPU", **env).quiet()
    box.run("compile", tir, DEV="WEBGPU:7").refused("WEBGPU:7", "no such device")
    box.run("compile", tir, DEV="WEBGPU::wgsl,f64").refused("f64", "no part of an architecture of wgsl")
    box.run("compile", tir, DEV="WEBGPU::items=0").refused("items=0", "no adapter has items=0")


@test("code is made for adapters that are not there")
def elsewhere(box):
    for arch in ("", ":wgsl", ":wgsl,f16,buffers=10,items=1024"):
        made = box.run("bench", "--runs", 1, "matmul:9", DEV="NULL:WEBGPU:WGSL" + arch, DEBUG=4, **NOWHERE).good()
        check("@compute @workgroup_size" in made.out + made.err, made)


def losses(box, data, dev, steps, batch):
    # Adam's first steps have the size of the rate whatever a gradient's size is: what rounding makes of the
    # smallest gradients grows tenfold a step there. These steps are as small as the gradients.
    result = box.run("train", "fashion-mnist", "--steps", steps, "--batch", batch, "--data", data, "--json",
                     "--optimizer", "sgd", "--lr", 0.001, DEV=dev, timeout=3500).quiet()
    return [line["loss"] for line in result.lines()]


# Each step's gradients and weights, with Adam, are what tests/python/test_device_training.py has.
@test("training gives the losses of CPU within 1e-3")
def learns(box):
    steps, batch = int(os.environ.get("TINY_E2E_STEPS", 3)), int(os.environ.get("TINY_E2E_BATCH", 4))
    data = small_data.write(box, small_data.made(steps * batch, 4))
    ours, theirs = losses(box, data, "WEBGPU", steps, batch), losses(box, data, "CPU", steps, batch)
    check(len(ours) == len(theirs) > 1, (ours, theirs))
    for a, b in zip(ours, theirs):
        near(a, b, 1e-3, "loss")


main()
