#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tinycore train fashion-mnist: it learns, its summary has every field, a seed fixes the run, and every
backend and compiler computes the same losses."""
import json
import os
import re
import signal
import time

import small_data
from e2e import Skip, check, main, near, need, note, test

FIELDS = {"device": str, "steps": int, "loss": float, "test_accuracy": float,
          "ms_per_step_median": float, "first_step_ms": float, "kernels": int}


def summary_of(result):
    last = result.quiet().lines()[-1]
    for name, kind in FIELDS.items():
        check(isinstance(last.get(name), kind), f"{name} is missing in {last}")
    return last


def losses(result):
    return [line["loss"] for line in result.quiet().lines()]


def loss_texts(result):
    return re.findall(r'"loss": ([^,]+)', result.out)


@test("60 steps on the installed data set learn, and the summary has its fields")
def learns(box):
    if not small_data.is_installed():
        raise Skip("the package dataset-fashion-mnist is not installed")
    result = box.run("train", "fashion-mnist", "--steps", 60, "--json", DEV="CPU")
    last = summary_of(result)
    note(last)
    check(last["device"] == "CPU" and last["steps"] == 60, last)
    check(0.2 < last["loss"] < 0.8, last)
    check(0.7 < last["test_accuracy"] <= 1, last)
    check(0 < last["ms_per_step_median"] < last["first_step_ms"], last)
    check(20 < last["kernels"] < 400, last)
    first, *rest = result.lines()
    check(first["step"] == 1 and 2 < first["loss"] < 4, first)
    for line in [first, *rest[:-1]]:
        check(set(line) == {"step", "loss", "images_per_second"}, line)


@test("--no-test leaves out the test images: no accuracy, the same losses")
def no_test(box):
    data = ["--data", small_data.write(box, small_data.made(24, 4))]
    common = ["train", "fashion-mnist", "--steps", 2, "--batch", 4, *data]
    whole = box.run(*common, "--json", DEV="CPU").quiet()
    bare = box.run(*common, "--json", "--no-test", DEV="CPU").quiet()
    check(loss_texts(whole) == loss_texts(bare), (whole, bare))
    check(set(whole.lines()[-1]) - set(bare.lines()[-1]) == {"test_accuracy"}, bare)
    said = box.run(*common, "--no-test", DEV="CPU").quiet().out
    check("accuracy" not in said.split("next:")[0] and "\nafter 2 steps on CPU: " in said, said)


@test("a device of 64 MiB, whose buffers are at most 31 MiB, trains with the batches that others have")
def small_chip(box):
    data = ["--data", small_data.write(box, small_data.made(256, 500))]
    common = ["train", "fashion-mnist", "--steps", 2, "--json", *data]
    manifest = {"format_version": 1, "name": "BROKEN", "abi": 1, "module": os.environ["TINY_E2E_BROKEN_PLUGIN"]}
    env = {"DEV": "BROKEN", "TINY_PLUGIN_FILES": box.write("broken.json", json.dumps(manifest)), "TINY_BROKEN": "none-small",
           "TINY_BROKEN_AROUND": os.path.join(os.environ["TINY_E2E_BUILD"], "plugins", "cpu", "tiny-cpu.so")}
    small = box.run(*common, TINY_BROKEN_MEMORY=64, timeout=300, **env)
    large = box.run(*common, TINY_BROKEN_MEMORY=1024, timeout=300, **env)
    check(loss_texts(small.good()) == loss_texts(large.good()), (small, large))
    check(summary_of(small)["test_accuracy"] == summary_of(large)["test_accuracy"], (small, large))


@test("the seed decides the run: the same twice, whatever the threads, another with another")
def seeds(box):
    data = small_data.write(box, small_data.made(600, 500))

    def texts(seed, **env):
        result = box.run("train", "fashion-mnist", "--steps", 12, "--batch", 32, "--seed", seed,
                         "--data", data, "--json", DEV="CPU", **env).quiet()
        return loss_texts(result), summary_of(result)["test_accuracy"]
    once = texts(3)
    check(texts(3) == once, "the same seed gave another curve")
    check(texts(3, TINY_THREADS=1) == once, "one thread gave another curve")
    check(texts(4)[0] != once[0], "another seed gave the same curve")
    check(len(once[0]) == 3 and float(once[0][-1]) < float(once[0][0]), once)


@test("a made data set is learnt, plain or packed, whatever the batch")
def made_data(box):
    files = small_data.made(200, 40)
    plain = small_data.write(box, files, "plain", packed=False)
    packed = small_data.write(box, files, "packed")
    runs = [summary_of(box.run("train", "fashion-mnist", "--epochs", 3, "--batch", 20, "--data", data,
                               "--json", DEV="CPU")) for data in (plain, packed)]
    check(runs[0]["steps"] == 30, runs)
    check(runs[0]["loss"] == runs[1]["loss"] < 0.5, runs)
    check(runs[0]["test_accuracy"] > 0.5, runs)
    odd = box.run("train", "fashion-mnist", "--steps", 2, "--batch", 7, "--data", plain, DEV="CPU")
    odd.quiet()
    check("test accuracy" in odd.out and "next:" in odd.out, odd)


def few_steps(box, dev, batch, steps=3):
    data = small_data.write(box, small_data.made(24, 4))
    return losses(box.run("train", "fashion-mnist", "--steps", steps, "--batch", batch, "--data", data,
                          "--json", DEV=dev, timeout=400))


@test("CPU:CLANG gives the losses of CPU:LLVM")
def clang(box):
    need("clang")
    for a, b in zip(few_steps(box, "CPU:LLVM", 8), few_steps(box, "CPU:CLANG", 8)):
        near(a, b, 1e-3, "loss")


@test("REF gives the losses of CPU")
def reference(box):
    ours, theirs = few_steps(box, "CPU", 2), few_steps(box, "REF", 2)
    check(len(ours) == len(theirs) == 3, (ours, theirs))
    for a, b in zip(ours, theirs):
        near(a, b, 1e-3, "loss")


@test("a device that runs nothing gives no losses and no accuracy: the command says so and fails")
def nothing_runs(box):
    data = small_data.write(box, small_data.made(24, 4))
    box.run("train", "fashion-mnist", "--steps", 2, "--batch", 4, "--data", data, DEV="NULL:CPU").refused("NULL:CPU", "runs nothing")


@test("an unset DEV picks the CPU; alternatives and older spellings work")
def choice(box):
    data = small_data.write(box, small_data.made(24, 4))
    for env in ({}, {"DEV": "CPU"}, {"DEV": "NOPE|CPU"}, {"BACKEND": "CPU"}, {"CPU": "1"}):
        result = box.run("train", "fashion-mnist", "--steps", 1, "--batch", 4, "--data", data, "--json",
                         **env)
        check(summary_of(result)["device"] == "CPU", result)


@test("a run that is killed leaves a cache that the next can use")
def killed(box):
    data = small_data.write(box, small_data.made(64, 8))
    for wait in (0.1, 0.4, 0.8):
        process = box.start("train", "fashion-mnist", "--steps", 2000, "--batch", 16, "--data", data,
                            DEV="CPU")
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    result = box.run("train", "fashion-mnist", "--steps", 2, "--batch", 16, "--data", data, DEV="CPU")
    result.quiet()


main()
