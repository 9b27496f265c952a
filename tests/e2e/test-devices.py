#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tinycore devices and DEV=: the fields, the warm time, what is opened, and that a backend's files are all
there is to it: take one away and the device is gone and nothing else."""
import glob
import json
import os
import re
import shutil

from e2e import TINYCORE, check, main, need, note, test

FIELDS = {"name": str, "index": int, "state": str, "renderers": list, "architecture": str,
          "memory_bytes": int, "plugin": str}
# Those that need nothing but what this tree brings; others need a driver, which may be absent.
OWN = ("CPU", "NULL", "REF")
ADD_ONE = """%0 = param.f32{slot=0, shape=[1024]}
%1 = range.index{number=0, kind=loop}(1024)
%2 = load.f32(%0, %1)
sink{name="add_one"}(store(%0, %1, add.f32(%2, 1.0)))
"""


def manifests():
    found = {}
    for folder in os.environ["TINY_PLUGIN_PATH"].split(":"):
        for path in glob.glob(os.path.join(folder, "*.json")):
            with open(path, encoding="utf-8") as file:
                manifest = json.load(file)
            manifest["module"] = os.path.normpath(os.path.join(folder, manifest["module"]))
            found.setdefault(manifest["name"], manifest)
    return found


def own_plugins(box, *names):
    """A folder of manifests and modules of the box's own, copied from the built ones."""
    for name in names or manifests():
        manifest = manifests()[name]
        module = shutil.copy(manifest["module"], box.folder("plugins"))
        box.write(f"plugins/{name}.json", json.dumps({**manifest, "module": os.path.basename(module)}))
    return box.folder("plugins")


def states(box, **env):
    return {entry["name"]: entry["state"] for entry in box.run("devices", "--json", **env).good().lines()}


@test("every field of the manual page is there, and every built backend is ready or lacks a package")
def fields(box):
    entries = box.run("devices", "--json").quiet().lines()
    for entry in entries:
        for name, kind in FIELDS.items():
            check(isinstance(entry.get(name), kind), f"{name} in {entry}")
        check("reason" in entry and os.path.exists(entry["plugin"]), entry)
        check((entry["reason"] is None) == (entry["state"] == "ready"), entry)
        if entry["state"] != "ready":
            check(entry["name"] not in OWN and "package" in entry["reason"], entry)
    by_name = {entry["name"]: entry for entry in entries}
    check(set(OWN) <= set(by_name), by_name)
    check(by_name["CPU"]["renderers"][:2] == ["LLVM", "CLANG"], entries)
    check(by_name["CPU"]["memory_bytes"] > 1 << 28, entries)


@test("the list for people, and DEV=help, have a line for each device; with -v its plugin too")
def for_people(box):
    listed, long = box.run("devices").quiet().out, box.run("devices", "-v").quiet().out
    entries = box.run("devices", "--json").quiet().lines()
    check([line.split()[0].split(":")[0] for line in listed.splitlines()] == [entry["name"] for entry in entries], listed)
    for name in ("CPU", "REF", "NULL", "ready", "renderers", "plugin", *(entry["reason"] or "" for entry in entries)):
        check(name in long, long)
    for command in ((), ("train", "fashion-mnist"), ("nonsense",)):
        check(box.run(*command, DEV="help").quiet().out == listed, command)


@test("a reason has one line of 120 characters, and keeps what to do; all of it is in -v")
def one_line(box):
    folder, path = box.folder("plugins"), {"TINY_PLUGIN_PATH": box.path("plugins")}
    for name, nodes in (("SHORT", ["/dev/none"]), ("LONG", [f"/dev/no-such-accelerator-{i}" for i in range(20)])):
        with open(os.path.join(folder, f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump({"format_version": 1, "name": name, "version": "1", "abi": 1, "class": "simulator", "module": "none.so",
                       "match": {"device_nodes": nodes}}, file)
    reasons = {entry["name"]: entry["reason"] for entry in box.run("devices", "--json", **path).good().lines()}
    listed = {line.split()[0]: line for line in box.run("devices", **path).good().out.splitlines()}
    check(len(reasons["LONG"]) > 200 and all(len(line) <= 120 for line in listed.values()), listed)
    check(reasons["SHORT"] in listed["SHORT"], listed)
    check("(looked for /dev/no-such-accelerator-0" in listed["LONG"] and listed["LONG"].endswith("…"), listed)
    check(reasons["LONG"] in box.run("devices", "-v", **path).good().out)


@test("a warm list takes little time")
def warm(box):
    box.run("devices").quiet()
    runs = sorted(box.run("devices").quiet().cpu_ms for _ in range(9))
    walls = sorted(box.run("devices").quiet().wall_ms for _ in range(9))
    note(f"user and system {runs[4]:.1f} ms, wall {walls[4]:.1f} ms (bar 20)")
    check(runs[4] <= 60, runs)


@test("DEV=CPU opens no other plugin")
def opens(box):
    strace = need("strace")
    box.write("one.tir", ADD_ONE)
    modules = {os.path.basename(manifest["module"]): name for name, manifest in manifests().items()}
    for warm_up in (True, False):
        trace = box.path("trace")
        result = box.run("bench", "--runs", 1, "elementwise:1000", DEV="CPU",
                         before=[strace, "-f", "-e", "trace=open,openat,execve", "-o", trace],
                         ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")  # it traces as well
        if result.status != 0 and "ptrace" in result.err.lower():
            from e2e import Skip
            raise Skip("strace may not trace here")
        result.good()
        with open(trace, encoding="utf-8", errors="replace") as file:
            text = file.read()
        touched = {name for module, name in modules.items() if module in text}
        check(touched == {"CPU"}, f"DEV=CPU opened {touched}")
        if not warm_up:
            check(TINYCORE in text and "tiny-scan" not in text, "a warm start ran the scan helper")


@test("without its module, or its manifest, a device is gone and nothing else")
def removed(box):
    folder = own_plugins(box, *OWN)
    path = {"TINY_PLUGIN_PATH": folder}
    tir = box.write("one.tir", ADD_ONE)
    check(all(states(box, **path)[name] == "ready" for name in OWN), states(box, **path))

    os.unlink(glob.glob(os.path.join(folder, "*ref*.so"))[0])
    now = states(box, **path)
    check(now["REF"] != "ready", now)
    check(now["CPU"] == now["NULL"] == "ready", now)
    result = box.run("devices", "--json", **path).good()
    reason = [entry["reason"] for entry in result.lines() if entry["name"] == "REF"][0]
    check("tiny-ref.so" in reason, reason)
    box.run("compile", tir, "--dev", "REF", **path).refused("REF", "tiny-ref.so", "CPU")
    box.run("compile", tir, "--dev", "CPU", **path).quiet()

    os.unlink(os.path.join(folder, "REF.json"))
    check("REF" not in states(box, **path), "REF is still listed")
    box.run("compile", tir, "--dev", "REF", **path).refused("there is no backend “REF”", "CPU")
    box.run("compile", tir, "--dev", "REF|CPU", **path).quiet()

    os.unlink(os.path.join(folder, "CPU.json"))
    box.run("compile", tir, **path).refused()
    box.run("devices", **path).quiet()


@test("no backend at all says how to get one")
def none(box):
    path = {"TINY_PLUGIN_PATH": box.folder("empty")}
    tir = box.write("one.tir", ADD_ONE)
    if states(box, **path):
        from e2e import Skip
        raise Skip("backends are installed beside the built ones")
    check("install" in box.run("devices", **path).quiet().out)
    box.run("compile", tir, **path).refused("install")


@test("DEV has spellings for what is there, and clear words for what is not")
def spellings(box):
    tir = box.write("one.tir", ADD_ONE)
    for good in ("CPU", "cpu", "CPU:", "CPU:0", "CPU::", "CPU:*", "CPU:LLVM", "CPU:0:LLVM", "CPU::x86_64",
                 "CPU::x86_64,-avx512f", "CPU::x86_64,znver2", "CPU::aarch64", "CPU:@cpu", "NOPE|CPU",
                 "NULL", "NULL:CPU", "NULL:CPU:CLANG", "NULL:LLVM", "NULL:REF", "REF", ""):
        if "aarch64" in good or "x86_64" in good:
            good = "NULL:CPU" + good[3:].replace("::", ":")
        box.run("compile", tir, DEV=good).quiet()
    for bad, parts in {
        "NOPE": ["there is no backend “NOPE”", "CPU", "REF", "NULL"],
        "CPUU": ["did you mean CPU?"],
        "A|B": ["“A”", "“B”", "backends: ", "CPU (ready)"],
        "CPU:NOPE": ["no renderer “NOPE”", "LLVM, CLANG"],
        "CPU:77": ["no such device", "CPU:0"],
        "CPU:@x": ["no such device", "@cpu"],
        "CPU::vax": ["“vax”", "x86_64"],
        "CPU::x86_64,zen9": ["'zen9'", "native"],
        "CPU:LLVM:x86_64:y": ["one field too many"],
        "NULL:VAX:780": ["“VAX”", "LLVM"],
        "REF:LLVM": ["no renderer “LLVM”", "REF"],
        "X+CPU": ["no interface “X”"],
        "CPU?a=b": ["no option “a=b”"],
        "CPU?a": ["key=value", "character 5"], ":": ["missing at character 1"],
        "CPU||REF": ["character 5"], "CPU:1-0": ["range"], "CPU:99999999": ["too large"],
        "CPU:@": ["identifier"], "€": ["letters"], "CPU:" + "x" * 3000: ["no renderer"],
    }.items():
        result = box.run("compile", tir, DEV=bad)
        if len(bad) > 1000:
            check(result.status == 1, result)
        else:
            result.refused(*parts)
            check(not re.search(r"(\b\S+: )\1", result.err), f"says it twice\n{result}")
        same = box.run("compile", tir, "--dev", bad)
        check(same.status == 1 and same.err == result.err, f"--dev differs from DEV\n{same}\n{result}")


@test("what is no plugin is refused, with a reason, and costs nothing else")
def no_plugins(box):
    folder = own_plugins(box, "CPU")
    path = {"TINY_PLUGIN_PATH": folder}
    tir = box.write("one.tir", ADD_ONE)
    library = next(iter(glob.glob("/lib/*/libm.so.6") + glob.glob("/usr/lib/*/libm.so.6")), None)
    with open(os.path.join(folder, os.path.basename(manifests()["CPU"]["module"])), "rb") as file:
        module = file.read()
    kinds = {"TEXT": b"this is no plugin\n", "EMPTY": b"", "CUT": module[:4000], "ELF": module[:16],
             "BYTES": bytes(range(256)) * 64}
    if library:
        with open(library, "rb") as file:
            kinds["OTHER"] = file.read()
    for name, content in kinds.items():
        box.write(f"plugins/{name}.so", content)
        box.write(f"plugins/{name}.json", json.dumps(
            {"format_version": 1, "name": name, "abi": 1, "module": f"{name}.so", "class": "gpu"}))
    for name, content in {"n1": "{", "n2": "[]", "n3": "", "n4": '{"name": 5}', "n5": "\0" * 100,
                          "n6": "[" * 100000, "n7": '{"format_version": 99, "name": "F"}'}.items():
        box.write(f"plugins/{name}.json", content)
    entries = box.run("devices", "--json", **path).good().lines()
    by_name = {entry["name"]: entry for entry in entries}
    check(by_name["CPU"]["state"] == "ready", by_name)
    for name in kinds:
        check(by_name[name]["state"] != "ready" and by_name[name]["reason"], by_name[name])
        note(f"{name}: {by_name[name]['reason'][:150]}")
        box.run("compile", tir, DEV=name, **path).refused(name)
    if "OTHER" in kinds:
        check("tiny_plugin_entry_1" in by_name["OTHER"]["reason"], by_name["OTHER"])
    for entry in entries:
        note(f"{entry['name']}: {entry['state']}: {(entry['reason'] or '')[:150]}")
    box.run("compile", tir, **path).good()


@test("a folder or a file may be named from the working folder")
def relative(box):
    folder = os.path.relpath(own_plugins(box, "CPU"), box.work)
    for env in ({"TINY_PLUGIN_PATH": folder}, {"TINY_PLUGIN_PATH": None, "TINY_PLUGIN_FILES": f"{folder}/CPU.json"}):
        entries = box.run("devices", "--json", **env).quiet().lines()
        check([entry["state"] for entry in entries if entry["name"] == "CPU"] == ["ready"], entries)


@test("results of scans that are damaged are rebuilt")
def registry(box):
    tir = box.write("one.tir", ADD_ONE)
    box.run("devices").quiet()
    paths = [path for path in box.files("cache") if os.path.basename(os.path.dirname(path)) == "scans"]
    check(len(paths) >= 3, paths)
    for damage in (lambda good: b"", lambda good: b"{", lambda good: good[: len(good) // 2], lambda good: good.replace(b"key", b"k\0y"),
                   lambda good: b"[" * 5000, lambda good: b"\xff" * 100, lambda good: good.replace(b"{", b"[", 1),
                   lambda good: b'{"format": 1}', lambda good: good.replace(b'"module" : "/', b'"module" : "/other/')):
        for path in paths:
            with open(path, "rb") as file:
                good = file.read()
            with open(path, "wb") as file:
                file.write(damage(good))
        result = box.run("devices", "--json").good()
        check([entry["state"] for entry in result.lines()].count("ready") >= 3, result)
        check(all(result.err.count(path) <= 1 for path in paths), result)
        box.run("compile", tir).quiet()
        box.run("devices").quiet()


main()
