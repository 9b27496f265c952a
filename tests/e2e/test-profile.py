# SPDX-License-Identifier: MIT
"""TINY_PROFILE as a user meets it: a file however the program ends, and a clear word when there is none."""
import json
import os
import time

from e2e import check, main, test


def events(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["traceEvents"]


def count(found, category):
    return sum(event.get("cat") == category for event in found)


@test("every kind of span, from the command")
def spans(box):
    path = box.path("trace.json")
    box.run("bench", "--runs", 1, "matmul:16", "launch:3", DEV="CPU", TINY_PROFILE=path).quiet()
    found = events(path)
    for category in ("engine", "schedule", "codegen", "compile", "submit", "kernel"):
        check(count(found, category) > 0, f"no {category} span")
    for name in ("LLVM", "open device", "schedule", "realize", "replay"):
        check(any(event["name"] == name for event in found), f"no span {name}")


@test("a program that exits in the middle leaves a whole file")
def exits(box):
    path = box.path("trace.json")
    box.run("bench", "--runs", 1, "matmul:16", "conv:1x1x1x1:1x9x9", DEV="CPU", TINY_PROFILE=path)
    check(count(events(path), "kernel") > 0, "no kernels")


@test("a program that is killed leaves a whole file")
def killed(box):
    path = box.path("trace.json")
    process = box.start("bench", "--runs", 4096, "matmul:64", DEV="CPU", TINY_PROFILE=path)
    until = time.monotonic() + 60
    while time.monotonic() < until and not (os.path.exists(path) and os.path.getsize(path) > 300000):
        time.sleep(0.02)
    process.kill()
    box.finish(process)
    check(count(events(path), "kernel") > 100, "no kernels")


@test("a file that cannot be written is said once, and the program goes on")
def unwritable(box):
    fifo = box.path("fifo")
    os.mkfifo(fifo)
    for path, reason in ((box.path("no", "such", "trace.json"), "No such file"), (fifo, "No such device"),
                         (box.root, "Is a directory"), ("/dev/full", "No space left")):
        result = box.run("bench", "--runs", 1, "matmul:16", DEV="CPU", TINY_PROFILE=path)
        check(result.status == 0, result)
        check(result.err.count("TINY_PROFILE=") == 1 and reason in result.err, result)


@test("unset, nothing is written")
def unset(box):
    box.run("bench", "--runs", 1, "matmul:16", DEV="CPU", TINY_PROFILE="").quiet()
    check(not [name for name in os.listdir(box.root) if "trace" in name], os.listdir(box.root))


main()
