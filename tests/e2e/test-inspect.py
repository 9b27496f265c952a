#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tinycore inspect: what a plugin declares, what the core makes for it, and plugins that crash meanwhile."""
import json
import os
import pathlib
import re

from e2e import check, main, note, test

BAD = os.environ["TINY_E2E_BAD_DIR"]
FLOATS = ("f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64")


def inspect(box, name, status=0, **env):
    """Its parts by kind."""
    result = box.run("inspect", name, "--json", **env)
    check(result.status == status, result)
    found = {}
    for line in result.lines():
        found.setdefault(line["part"], []).append(line)
    return found, result.err


def kernel(op, dtype):
    return (f"%0 = range.index{{number=0, kind=loop}}(4)\n%1 = param.{dtype}{{slot=0, shape=[4]}}\n"
            f"%2 = param.{dtype}{{slot=1, shape=[4]}}\n%3 = load.{dtype}(%2, %0)\n"
            f"sink{{name=\"one\"}}(store(%1, %0, {op}.{dtype}(%3)))\n")


@test("a backend by name and by file: manifest, file, module, renderers, device")
def fields(box):
    found, _ = inspect(box, "CPU")
    manifest, module, file = found["manifest"][0], found["module"][0], found["file"][0]
    check(manifest["name"] == module["name"] == "CPU" and manifest["version"] == module["version"], found)
    check(os.path.exists(manifest["path"]) and len(file["build_id"]) >= 16 and "libc.so.6" in file["needs"], file)
    check([r["name"] for r in found["renderer"]] == manifest["renderers"] == ["LLVM", "CLANG", "C"], manifest)
    check([r["way"] for r in found["renderer"]] == ["linear", "dialect", "dialect"], found)
    check(found["renderer"][1]["ops_as"] == "LLVM" and "f32" in found["renderer"][2]["dtypes_compute"], found)
    check(all(not r["renderer_flags"] for r in found["renderer"]), found)
    check([r["claims"] for r in found["renderer"]] == [True, True, False], found)  # linear algebra, where code runs here
    device = found["device"][0]
    check({"map", "submit"} < set(device["functions"]) and "sync" not in device["functions"], device)
    check(device["id"] == "cpu", device)
    check(device["flags"][0] == "host-memory" and device["memory_bytes"] > 1 << 28, device)
    again, _ = inspect(box, file["path"])
    for part in ("manifest", "file", "renderer"):
        check(again[part] == found[part], part)
    text = box.run("inspect", "cpu").quiet().out
    for part in ("manifest /", "module CPU", "renderer LLVM", "device cpu", "  mulacc ", "made of, in the core:"):
        check(part in text, text)


@test("every flag and function of the contract has its row")
def flags(_box):
    tests = pathlib.Path(__file__).resolve().parents[1]
    frozen = (tests / "abi/frozen-1.txt").read_text(encoding="utf-8")
    wanted = set(re.findall(r"^number TINY_(MODULE|RENDERER|TARGET|DEVICE)_([A-Z_]+) ", frozen, re.M))
    rows = (tests.parent / "tools/inspect-flags.def").read_text(encoding="utf-8")
    check(set(re.findall(r"^TINY_INSPECT_FLAG \((\w+), (\w+)\)", rows, re.M)) == wanted and len(wanted) > 10, wanted)
    functions = set(re.findall(r"^field TinyDeviceTable\.(\w+) .*\(\*", frozen, re.M)) - {"close"}
    calls = (tests.parent / "libtinycore/device/device-calls.def").read_text(encoding="utf-8")
    check(set(re.findall(r"^TINY_DEVICE_(?:CALL|VOID) \((\w+)", calls, re.M)) == functions and len(functions) > 10, functions)


@test("what is made of what is what a kernel becomes")
def made_of(box):
    for name, dev in (("CPU", "NULL:CPU:C"), ("REF", "NULL:REF")):
        found, _ = inspect(box, name)
        renderer = found["renderer"][-1]
        seen = 0
        for op in ("sin", "exp2", "sqrt", "neg"):
            for dtype, cell in renderer["ops"][op].items():
                if cell["state"] != "emulated":
                    check(cell["state"] == "native", cell)
                    continue
                linear = box.run("compile", box.write("one.tir", kernel(op, dtype)), "--opts", "none", DEV=dev).good()
                ops = set(re.findall(r"= ([a-z0-9]+)\b", linear.out))
                check(set(cell["as"].split()) - {"words"} <= ops, f"{op} {dtype}: {cell} and\n{linear.out}")
                seen += 1
        note(f"{name}: {seen} made")
        check(seen > 0 or name == "REF", seen)
        check(set(renderer["ops"]["sqrt"]) <= set(FLOATS) and "f32" in renderer["ops"]["sqrt"], renderer["ops"]["sqrt"])
        check(set(renderer["ops"]["xor"]).isdisjoint(FLOATS), renderer["ops"]["xor"])


@test("a target that declares nothing can do nothing, for a reason")
def nothing(box):
    found, err = inspect(box, os.path.join(BAD, "bad-control.so"))
    ops = found["renderer"][0]["ops"]
    check(err == "" and "manifest" not in found, found)
    check(ops["add"]["f32"]["state"] == "impossible" and len(ops["add"]["f32"]["reason"]) > 20, ops["add"])
    note(ops["add"]["f32"]["reason"])
    check("not possible: " in box.run("inspect", os.path.join(BAD, "bad-control.so")).good().out)


@test("a plugin that crashes, ends or hangs is shown up to there and ends nothing")
def crashes(box):
    rows = {"constructor-crash": ["in dlopen", "signal 11"], "constructor-exit": ["exit status 0", "leaving early"],
            "scan-crash": ["in scan it crashed with signal 11"], "scan-exit": ["in scan it ended"],
            "scan-hang": ["in scan it hung: not done after 1200 ms"], "info-crash": ["in target of renderer BAD", "signal 11"],
            "fini-crash": ["in fini it crashed"]}
    for name, parts in rows.items():
        module = os.path.join(BAD, f"bad-{name}.so")
        box.write("plugins/one.json", json.dumps({"format_version": 1, "name": name, "abi": 1, "module": module,
                                                  "probe": {"timeout_ms": 300}}))
        found, err = inspect(box, name, status=1, TINY_PLUGIN_PATH=box.path("plugins"))
        note(err.strip())
        for part in parts:
            check(part in err, f"“{part}” wanted in {err}")
        check(err.startswith("tinycore") and found["file"][0]["path"] == module, err)
        check(("module" in found) == (not name.startswith("constructor")), found)
        check(("device" in found) == (name == "fini-crash"), found)
    found, err = inspect(box, os.path.join(BAD, "bad-no-scan.so"))
    check("lacks the required slot scan" in found["module"][0]["error"] and err == "", found)


@test("what cannot be looked at says why")
def refused(box):
    box.run("inspect").refused("usage: tinycore inspect", status=2)
    box.run("inspect", "NOPE").refused("there is no backend “NOPE”", "CPU")
    box.run("inspect", "gone.so").refused("gone.so", "no such file")
    box.run("inspect", box.write("text.so", "text\n")).refused("not a shared object")
    box.run("inspect", os.path.join(BAD, "bad-future-note.so")).refused("plugin ABI 2.0")
    box.write("plugins/wrong.json", "{")
    box.write("plugins/mask.json", "")
    path = {"TINY_PLUGIN_PATH": box.path("plugins")}
    box.run("inspect", "wrong", **path).refused("wrong.json", "not JSON")
    box.run("inspect", "mask", **path).refused("hidden by the empty file")


main()
