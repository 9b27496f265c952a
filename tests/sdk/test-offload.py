#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sdk/examples/offload, built against an installation: its unit computes what it claims, the processor the rest,
and a network learns as it does on the processor alone."""
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import tempfile

import e2e
import small_data
from prefix import Prefix
from e2e import check, main, near, note, test

TRAIN = ("train", "fashion-mnist", "--steps", 4, "--batch", 16, "--json", "--data")
MATMUL = """%0 = param.f32{slot=0, shape=[8, 9, 1], device="UNITS"}
%1 = param.f32{slot=1, shape=[1, 9, 4], device="UNITS"}
%2 = mul.f32(expand.f32{shape=[8, 9, 4]}(%0), expand.f32{shape=[8, 9, 4]}(%1))
sink(reduce.f32{op=add, axes=[1]}(%2))
"""
SOFTMAX = """%0 = param.f32{slot=0, shape=[512, 64], device="UNITS"}
%1 = expand.f32{shape=[512, 64]}(reduce.f32{op=max, axes=[1]}(%0))
%2 = exp2.f32(mul.f32(sub.f32(%0, %1), 1.4426950408889634))
%3 = recip.f32(reduce.f32{op=add, axes=[1]}(%2))
sink(mul.f32(%2, expand.f32{shape=[512, 64]}(%3)))
"""
installed = {}


def installation():
    """Made by the first test that wants it, for all."""
    if not installed:
        folder = installed["folder"] = tempfile.mkdtemp(prefix="tiny-sdk-")
        here = installed["prefix"] = Prefix(os.path.join(folder, "system"))
        env = here.environment({"HOME": folder})
        here.call("tinycore", "new-plugin", "units", "--kind", "offload", folder=folder, env=env)
        make_mortal(os.path.join(folder, "tiny-units"))
        build = here.build(os.path.join(folder, "tiny-units"))
        installed["build"] = build
        here.call("meson", "install", "-C", build, "--quiet", env=env)
        installed["commands"] = [each["command"] for each in json.loads((build / "compile_commands.json").read_text())]
        e2e.TINYCORE = str(here.root / "bin/tinycore")
        here.env = {"TINY_SCAN_HELPER": here.root / "libexec/tinycore-1.0/tiny-scan", "TINY_PLUGIN_PATH": None,
                    "LD_LIBRARY_PATH": here.packages.parent}
    return installed["prefix"]


def make_mortal(folder):
    """With UNITS_CRASH set it crashes in submit()."""
    path = next(str(each) for each in pathlib.Path(folder).glob("*.c") if "tiny_submit_each (work" in each.read_text())
    with open(path, encoding="utf-8") as file:
        text = file.read()
    changed = text.replace("  return tiny_submit_each (work", '  if (getenv ("UNITS_CRASH"))\n    raise (SIGSEGV);\n'
                           "  return tiny_submit_each (work")
    check(changed != text, text)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#include <signal.h>\n" + changed)


def kernels(result):
    """What ran, as DEBUG=2 shows it: names by device."""
    found = collections.defaultdict(list)
    for device, name in re.findall(r"^([\w+]+) +(\w+) +[0-9.]+ us", result.err, re.M):
        found[device].append(name)
    return found


def losses(result):
    return [line["loss"] for line in result.good().lines()], result.lines()[-1]["test_accuracy"]


@test("it is built from the installation alone, and found")
def is_found(box):
    here = installation()
    for command in installed["commands"]:
        check(os.environ["TINY_SDK_EXAMPLES"] not in command and str(here.root) in command, command)
    result = box.run("devices", **here.env).good()
    check(re.search(r"^UNITS +ready", result.out, re.M), result)
    # A renderer that only claims has no target to look at.
    shown = {line["part"]: line for line in box.run("inspect", "UNITS", "--json", **here.env).quiet().lines()}
    renderer, device = shown["renderer"], shown["device"]
    check(shown["module"]["flags"] == ["beside-host"] and renderer["renderer_flags"] == ["claims-only"], shown)
    check(renderer["way"] == "claims" and renderer["claims"] and "ops" not in renderer and "error" not in renderer, renderer)
    check("error" not in device and "host-memory" in device["flags"] and "map" in device["functions"], device)
    result = box.run("train", "fashion-mnist", "--steps", 0, "--data", "x", DEV="UNITS", DEBUG=1, **here.env)
    check(result.status != 0, result)


@test("as it stands it passes conformance of level core, by its project's own test")
def passes(box):
    here = installation()
    env = here.environment({"HOME": box.root, "TINY_CACHE_DIR": box.cache})
    text = here.call("meson", "test", "-C", installed["build"], "--print-errorlogs", env=env)
    check("conformance" in text and re.search(r"^Ok: +1\b", text, re.M), text)
    report = box.path("certificate.json")
    here.call("tinycore", "conformance", "--filter", "operations/*", "--json", report, "--manifest", installed["build"] / "uninstalled.json",
              installed["build"] / "tiny-units.so", env=env)
    with open(report, encoding="utf-8") as file:
        found = json.load(file)
    accepted = [case["name"] for case in found["cases"] if case["name"].startswith("operations/")]
    declined = {case["name"]: case["reason"] for case in found["absent"] if case["name"].startswith("operations/")}
    for name in ("matmul/transposed-b", "matmul/batch-shared", "matmul/bias-relu", "convolution/step-padding", "convolution/groups"):
        check(f"operations/{name}" in accepted, f"{name} in {accepted}")
    check("f32 operands" in declined["operations/matmul/f16"], declined)
    check("relu" in declined["operations/matmul/bias-gelu"], declined)
    check(found["capabilities"] == [], "the processor's are none of its own")
    unrecorded = box.run("bench", "matmul:16", DEV="UNITS", TINY_RECORD=box.path("units.rec"), **here.env)
    unrecorded.refused("(offload), which cannot be recorded: unset TINY_RECORD")
    check(not os.path.exists(box.path("units.rec")), "a record of nothing")


@test("in a process of its own it gives the same, claim by claim")
def isolated(box):
    here = installation()
    data = small_data.write(box, small_data.made(200, 48))
    own = losses(box.run(*TRAIN, data, DEV="UNITS", **here.env))
    result = box.run(*TRAIN, data, DEV="ISOLATED+UNITS", DEBUG=2, **here.env)
    check(losses(result) == own, f"{result}\n{own} in the program's process")
    check(any(name.startswith("convolution") for names in kernels(result).values() for name in names), result)
    check("tiles of 16 x 16 x 16" in result.err, "the reasons of a process of its own\n" + str(result))


@test("a network learns on it as on the processor: convolutions are the unit's, the rest is the processor's")
def learns(box):
    here = installation()
    data = small_data.write(box, small_data.made(200, 48))
    on_cpu = losses(box.run(*TRAIN, data, DEV="CPU", **here.env))
    result = box.run(*TRAIN, data, DEV="UNITS", DEBUG=2, **here.env)
    on_units = losses(result)
    note(f"{on_cpu} on CPU, {on_units} on UNITS")
    check(len(on_cpu[0]) == len(on_units[0]) >= 2, on_units)
    # Sums are rounded in another order; a relu that goes the other way for it is a gradient that Adam makes larger.
    near(on_cpu[0][0], on_units[0][0], 1e-5, "the first loss")
    near(on_cpu[0][-1], on_units[0][-1], 0.01, "the last loss")
    check(on_units[0][-1] < on_units[0][0] / 2, on_units)
    near(on_cpu[1], on_units[1], 0.05, "accuracy")
    ran = kernels(result)
    note({device: len(names) for device, names in ran.items()})
    check(set(ran) == {"UNITS", "CPU"}, result)
    forward = [name for name in ran["UNITS"] if name.startswith("convolution") and name.endswith("bias_relu")]
    check(len(set(forward)) >= 4, ran["UNITS"])
    check(len(set(ran["UNITS"])) >= 9, "forward, and gradients of inputs and weights, of four convolutions")
    check(not any(name.startswith(("convolution", "matmul")) for name in ran["CPU"]), ran["CPU"])
    check("not worth it" in result.err and "tiles of 16 x 16 x 16" in result.err, result)
    again = losses(box.run(*TRAIN, data, DEV="UNITS", **here.env))
    check(again == on_units, f"{again} from the cache, {on_units} before")


@test("in a process of its own it computes the same: where DEV= asks for that, and after a crash")
def isolated(box):
    here = installation()
    numbers = []

    def bench(**env):
        path = box.path(f"numbers-{len(numbers)}")
        result = box.run("bench", "--runs", 1, "--output", path, "matmul:96", DEBUG=2, **{"DEV": "UNITS", **env, **here.env}).good()
        check(re.search(r"^(ISOLATED\+)?UNITS +matmul", result.err, re.M), result)
        with open(path, "rb") as file:
            numbers.append(file.read())
        return result

    bench()
    bench(DEV="ISOLATED+UNITS")
    process = box.start("bench", "--runs", 1, "matmul:96", DEV="UNITS", UNITS_CRASH=1, **here.env)
    said = process.communicate()[1]
    check(process.returncode == -signal.SIGSEGV, said)
    check("runs in a process of its own now" in bench().err, "no warning")
    check(len(numbers[0]) >= 4 * 96 * 96 and len(set(numbers)) == 1, [len(each) for each in numbers])
    listed = box.run("devices", **here.env).good().out
    check(re.search(r"^UNITS +ready.*process of its own", listed, re.M | re.S), listed)
    box.run("devices", "--retry", **here.env).good()


@test("explain says what is computed where, as text and as JSON, for files, cases and models")
def explains(box):
    here = installation()
    case = "conv:8x16x28x28:32x3x3"
    text = box.run("explain", case, "--dev", "UNITS", **here.env).good().out
    for part in ("on UNITS", "on CPU", "a unit computes convolution", "in_channel 16", "asked about", "accepted, ",
                 "tiles of 16 x 16 x 16"):
        check(part in text, f"“{part}” in\n{text}")
    found = box.run("explain", case, "--dev", "UNITS", "--json", **here.env).good()
    whole = json.loads(found.out)
    check(whole["device"] == "UNITS" and whole["runner"] == "CPU", found)
    taken = [each for schedule in whole["schedules"] for each in schedule["asked"] if each["taken"]]
    check(len(taken) == 1 and 0 < taken[0]["cost_ns"] < taken[0]["own_ns"] and "tiles" in taken[0]["reason"], taken)
    kernels_ = [each for schedule in whole["schedules"] for each in schedule["kernels"]]
    check({each["runs_on"] for each in kernels_} == {"UNITS", "CPU"}, kernels_)
    for each in kernels_:
        check(("operation" in each) == (each["runs_on"] == "UNITS") != ("accesses" in each), each)
    path = box.write("m.tir", MATMUL)
    text = box.run("explain", path, "--dev", "UNITS", **here.env).good().out
    check("kernel matmul_8_4_r9, on CPU" in text and "declined: its tiles" in text, text)
    data = small_data.write(box, small_data.made(160, 140))
    text = box.run("explain", "fashion-mnist", "--data", data, "--dev", "UNITS", TINY_NO_CLAIM=1, **here.env).good().out
    check(text.count(", on CPU") >= 60 and "a unit computes" not in text, text)


@test("a softmax, which is three kernels' worth of reductions, is one operation")
def softmax(box):
    here = installation()
    path = box.write("s.tir", SOFTMAX)
    text = box.run("explain", path, "--dev", "UNITS", **here.env).good().out
    for part in ("a unit computes softmax", "kept0 512 axis 64", "rows of 64 in one pass"):
        check(part in text, f"“{part}” in\n{text}")
    check("on CPU" not in text, text)


@test("TINY_NO_CLAIM=1 leaves all to the processor")
def claims_nothing(box):
    here = installation()
    data = small_data.write(box, small_data.made(200, 48))
    result = box.run(*TRAIN, data, DEV="UNITS", DEBUG=2, TINY_NO_CLAIM=1, **here.env)
    check(set(kernels(result)) == {"CPU"}, result)
    check(losses(result) == losses(box.run(*TRAIN, data, DEV="CPU", **here.env)), result)


@test("without a backend for the rest there is an error that says so")
def nothing_for_the_rest(box):
    here = installation()
    box.write("masks/cpu.json", "")
    env = {**here.env, "TINY_PLUGIN_PATH": box.path("masks")}
    box.run(*TRAIN, "x", DEV="UNITS", **env).refused("UNITS", "class cpu", "install")
    box.run(*TRAIN, "x", DEV="UNITS:NOTHING", **here.env).refused("NOTHING", "CPU")


@test("another backend can be named for the rest, if it can use the memory")
def another_for_the_rest(box):
    here = installation()
    box.write("x.tir", '%0 = param.f32{slot=0, shape=[8], device="UNITS"}\nsink(add.f32(%0, 1.0))\n')
    result = box.run("compile", box.path("x.tir"), "--dev", "UNITS:REF", DEBUG=1, **here.env).good()
    check("REF" in result.err and "does not claim run on REF" in result.err, result)
    result = box.run("compile", box.path("x.tir"), "--dev", "UNITS:NULL", **here.env)
    check(result.status != 0, result)


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(installed.get("folder", "/nowhere"), ignore_errors=True)
