#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What discovery makes of folders, manifests and modules that are not as they should be, and how it says so."""
import json
import os
import platform
import shutil
import subprocess
import time

from e2e import Skip, TINYCORE, check, main, note, test

BAD = os.environ["TINY_E2E_BAD_DIR"]


def manifest(box, name, module="bad-control.so", folder="plugins", file=None, **more):
    """Writes one for a module of tests/fault, or for a path."""
    return box.write(f"{folder}/{file or name}.json", json.dumps(
        {"format_version": 1, "name": name, "abi": 1, "module": os.path.join(BAD, module),
         "class": "simulator", "probe": {"timeout_ms": 700}, **more}))


def explain(box, before=(), **env):
    """Candidates by manifest, places, and the choice."""
    lines = box.run("devices", "--explain", "--json", before=before, **{"TINY_PLUGIN_PATH": box.path("plugins"), **env}).good().lines()
    found = {line["manifest"]: line for line in lines if "manifest" in line}
    return found, [line for line in lines if "searched" in line], lines[-1]["choice"]


@test("every candidate, every rung, and why it is chosen or not")
def explained(box):
    rows = {  # manifest → state, the rung that it stops at, a part of what is said there
        manifest(box, "control"): ("ready", None, None),
        manifest(box, "control", file="later"): ("shadowed", "manifest", "control.json"),
        manifest(box, "far", match={"device_nodes": ["/dev/no-such-accelerator"]}): ("no hardware", "hardware", "no-such"),
        manifest(box, "gone", module="gone.so"): ("broken", "file", "gone.so is not there"),
        manifest(box, "future", module="bad-future-note.so"): ("broken", "file", "plugin ABI 2.0"),
        manifest(box, "scan-crash", module="bad-scan-crash.so"): ("quarantined", "scan", "signal 11"),
        manifest(box, "driver", module="bad-driver.so"): ("broken", "scan", "libbad.so.1 is not there"),
        box.write("plugins/mask.json", ""): ("masked", "manifest", "it hides every later one"),
        box.write("plugins/text.json", "{"): ("broken", "manifest", "not JSON"),
    }
    for round_number in (1, 2):
        found, places, choice = explain(box, DEV="control")
        check(choice == "control" and len(found) >= len(rows), choice)
        for path, (state, rung, part) in rows.items():
            candidate = found[path]
            stop = [r for r in candidate["rungs"] if not r["good"]]
            check(candidate["state"] == state and candidate["rule"] == "TINY_PLUGIN_PATH", candidate)
            check([r["rung"] for r in stop] == ([rung] if rung else []), candidate)
            check(rung is None or part in stop[0]["text"], candidate)
            check(candidate["chosen"] == (path.endswith("/control.json")), candidate)
            for r in candidate["rungs"]:
                check(r["recalled"] == (round_number == 2 and r["rung"] in ("scan", "device")), r)
                check(0 <= r["us"] < 5e6, r)
    check([r["rung"] for r in found[box.path("plugins", "control.json")]["rungs"]]
          == ["manifest", "hardware", "file", "scan", "device"], found)
    check("chosen: DEV=control names it" == found[box.path("plugins", "control.json")]["verdict"], found)
    place = next(p for p in places if p["searched"] == box.path("plugins"))
    check(place["found"] == f"{len(rows)} manifests" and place["rule"] == "TINY_PLUGIN_PATH", places)
    check(any(p["found"] == "not there" for p in places), places)
    found, _, choice = explain(box)
    check("simulator is used only where DEV= names it" in found[box.path("plugins", "control.json")]["verdict"], found)
    found, _, choice = explain(box, DEV="NOPE|scan-crash")
    check("“NOPE”" in choice and "in quarantine" in choice, choice)
    text = box.run("devices", "--explain", TINY_PLUGIN_PATH=box.path("plugins"), DEV="control").quiet().out
    for part in ("searched, in this order", "control    chosen: DEV=control names it", "stops here: ", "remembered; it took"):
        check(part in text, text)
    note(text.split("\n\n")[1])


def compiled(box, name, *flags):
    """A right plugin of that name, compiled here; the manifest's module is a file beside it."""
    path = box.path("plugins", f"{name}.so")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    done = subprocess.run([*os.environ["TINY_E2E_CC"].split(), "-shared", "-fPIC", "-O1", "-fvisibility=hidden",
                           "-I" + os.environ["TINY_E2E_INCLUDE"], os.environ["TINY_E2E_BAD_PLUGIN"],
                           f'-DNAME="{name}"', "-o", path, *flags], capture_output=True, text=True, check=False)
    check(done.returncode == 0, done.stderr)
    manifest(box, name, module=path)
    return path


def gone_library(box):
    """For a plugin to be linked with; to be removed then."""
    library = box.path("libgone7.so.3")
    subprocess.run([*os.environ["TINY_E2E_CC"].split(), "-shared", "-fPIC", "-xc", os.devnull, "-o", library,
                    "-Wl,-soname,libgone7.so.3"], check=True)
    return library


def reason(box, name, before=(), **env):
    """State and reason in the list, which no plugin ends, and the message of DEV=."""
    env = {"TINY_PLUGIN_PATH": box.path("plugins"), **env}
    entries = box.run("devices", "--json", before=before, **env).good().lines()
    entry = next(e for e in entries if e["name"] == name)
    result = box.run("bench", "--runs", 1, "elementwise:100", before=before, DEV=name, **env)
    check(result.status == 1 and result.err.startswith("tinycore"), result)
    note(f"{name}: {entry['state']}: {entry['reason']}")
    return entry["state"], entry["reason"], result.err


def nobody(box):
    """A command in front that gives up root, where the tests run as root."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        raise Skip("there is no setpriv to give up root with")
    before = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    os.chmod(box.folder("cache"), 0o777)
    if subprocess.run([*before, TINYCORE, "--version"], capture_output=True, check=False).returncode != 0:
        raise Skip("the build folder is not open to other users")
    return before


@test("a plugin for another machine, with a sanitizer, or without its library")
def foreign(box):
    path = compiled(box, "machine")
    with open(path, "r+b") as file:
        file.seek(18)
        file.write(b"\xb7\0" if platform.machine() != "aarch64" else b"\x3e\0")
    state, why, err = reason(box, "machine")
    check(state == "broken" and f"this program is {platform.machine()}" in why and why.split("for ")[1] in err, err)
    if not os.environ.get("TINY_E2E_SANITIZED"):
        compiled(box, "asan", "-fsanitize=address")
        state, why, err = reason(box, "asan")
        check(state == "broken" and "built with AddressSanitizer" in why and "without -fsanitize" in err, err)
    library = gone_library(box)
    compiled(box, "needy", "-Wl,--no-as-needed", library)
    os.unlink(library)
    program = box.write("bin/apt-cache", '#!/bin/sh\n[ "$3" = libgone7-3 ] && echo "Package: libgone7-3"\n')
    os.chmod(program, 0o755)
    state, why, err = reason(box, "needy", PATH=box.path("bin"))
    for text in (why, err):
        check("it needs the library libgone7.so.3, which is not there; the package libgone7-3 has it" in text, text)
    manifest(box, "needy", module=box.path("plugins", "needy.so"), package="vendor-driver")
    why = reason(box, "needy", TINY_CACHE_DIR=box.path("other"))[1]
    check("libgone7.so.3, which is not there (its driver comes with the package vendor-driver)" in why, why)


@test("manifests that lie, two of one name, texts that never end")
def lies(box):
    for name, parts in {"version": ("says “1”", "says “77”"), "name": ("says “name”", "says “other”"),
                        "endless-id": ("endless id",), "huge-name": ("longer than 32",), "steers": ("????",)}.items():
        manifest(box, name, module=f"bad-{name}.so", version="1")
        state, why, err = reason(box, name)
        check(state == "broken" and len(why) < 2500 and "\x1b" not in why + err, why)
        for part in parts:
            check(part in why and part in err, f"“{part}” wanted in {why}\n{err}")
        check(f"{name} (not working)" in err and f"{name} (ready)" not in err, err)  # in the list of what there is
    for text in ('{"name": "', '{"name": "x', '"' * 3000, '{"format_version": 1, "name": "' + "x" * 60000 + '"}',
                 '{"format_version": 1, "name": "A", "abi": 1, "module": "' + "x" * 60000 + '"}', "x" * 70000):
        box.write("plugins/text.json", text)
        state, why, err = reason(box, "text")
        check(state == "broken" and len(why) < 500 and "<data>" not in why, f"{len(why)}: {why[:300]}")
    for name, part in (("pipe", "it is no file"), ("gone", "No such file"), ("loop", "symbolic links"), ("folder", "it is no file")):
        path = box.path("plugins", f"{name}.json")
        {"pipe": os.mkfifo, "gone": lambda p: os.symlink("/nowhere", p), "loop": lambda p: os.symlink(p, p), "folder": os.mkdir}[name](path)
        state, why, err = reason(box, name)
        check(state == "broken" and f"{path}: " in why and part in why and part in err, why)
    box.write("plugins/text.json", "")
    first, second = manifest(box, "twin", file="a-twin"), manifest(box, "TWIN", file="b-twin", module="bad-control.so")
    other = manifest(box, "twin", folder="more", module="bad-control.so")
    for _ in range(3):
        found = explain(box, TINY_PLUGIN_PATH=box.path("plugins") + ":" + box.path("more"))[0]
        check([found[path]["state"] == "shadowed" for path in (first, second, other)] == [False, True, True], found)
        check(all(first in found[path]["rungs"][0]["text"] for path in (second, other)), found)
    entries = box.run("devices", "--json", TINY_PLUGIN_PATH=box.path("plugins")).good().lines()
    check(len([e for e in entries if e["name"].lower() == "twin"]) == 2, entries)


@test("a device node, a folder and files without permission, each with the command that repairs it")
def permissions(box):
    before = nobody(box)
    node = box.write("dev/accel0", "")
    os.chmod(node, 0o660)
    manifest(box, "no-device", module="bad-no-device.so", match={"device_nodes": [box.path("dev/accel*")]})
    manifest(box, "driver", module="bad-driver.so", match={"device_nodes": [node]}, package="libbad1")
    if before:
        os.chown(node, 0, 4)
        group = subprocess.run(["getent", "group", "4"], capture_output=True, text=True, check=False).stdout.split(":")[0]
        for name in ("no-device", "driver"):
            state, why, err = reason(box, name, before=before)
            for part in (f"{node} belongs to root:{group} with mode 0660", f"usermod -aG {group} "):
                check(state == "broken" and part in why and part in err, f"“{part}” wanted in {why}")
        os.chmod(node, 0o666)  # and at once it is another matter
        check("belongs" not in reason(box, "no-device", before=before)[1])
    closed = box.folder("closed")
    manifest(box, "control", folder="closed")
    os.chmod(closed, 0 if before else 0o300)
    path = {"TINY_PLUGIN_PATH": closed + ":" + box.path("plugins")}
    entries = box.run("devices", "--json", before=before, **path).good().lines()
    entry = next(e for e in entries if e["name"] == "closed")
    check(entry["state"] == "broken" and "cannot be read: Permission denied: chmod a+rx" in entry["reason"], entry)
    found, places, _ = explain(box, **path, before=before)
    check(any("Permission denied" in p["found"] for p in places) and closed in found, places)
    os.chmod(closed, 0o755)
    for mode, part in ((0o777, "chmod "), (0o757, "chmod o-w"), (0o1777, "a folder of your own")):
        os.chmod(closed, mode)
        entry = next(e for e in box.run("devices", "--json", **path).good().lines() if e["name"] == "control")
        check("can be written by others" in entry["reason"] and part in entry["reason"], entry)
        check(box.run("bench", "--runs", 1, "elementwise:9", DEV="control", **path).status == 1)
    os.chmod(closed, 0o755)
    check(explain(box, DEV="control", **path)[2] == "control")


@test("a manifest that is named and not there, or a folder in its place, is said where a backend is missed")
def named(box):
    for path, part in ((box.path("none.json"), "No such file"), (box.folder("several"), "is a folder: TINY_PLUGIN_PATH names those")):
        box.run("bench", "sum:2x2", TINY_PLUGIN_FILES=path, DEV="acme").refused("no backend “acme”", "TINY_PLUGIN_FILES names manifests", path, part)
        check(part in box.run("devices", "-v", TINY_PLUGIN_FILES=path).good().out)


@test("a set-user-ID program does not look where its user says")
def set_user_id(box):
    if os.geteuid() != 0:
        raise Skip("only root can make a program that runs as another user")
    manifest(box, "control")
    program = shutil.copy(TINYCORE, box.path("tinycore"))
    os.chown(program, 65534, 65534)
    os.chmod(program, 0o4755)
    # What the caller names is written to by a plain program, and run: by the other one not.
    kept, asked = box.folder("kept"), box.path("asked")
    for name in ("dpkg-query", "apt-cache", "rpm"):
        os.chmod(box.write(f"bin/{name}", f"#!/bin/sh\ntouch {asked}\n"), 0o755)
    for folder in (kept, box.path()):
        os.chmod(folder, 0o777)
    env = {"TINY_PLUGIN_PATH": box.path("plugins"), "TINY_PLUGIN_FILES": box.path("plugins/control.json"),
           "XDG_DATA_HOME": box.path("data"), "XDG_DATA_DIRS": box.path("dirs"), "XDG_CACHE_HOME": kept,
           "TINY_CACHE_DIR": None, "TINY_PROFILE": box.path("kept/profile.json"), "PATH": box.path("bin") + ":" + os.environ["PATH"]}
    needy = compiled(box, "needy", "-Wl,--no-as-needed", gone_library(box))
    os.unlink(box.path("libgone7.so.3"))
    plain = subprocess.run([TINYCORE, "devices", "--explain", "--json"], capture_output=True, text=True, check=True,
                           env=box.environment(env)).stdout
    check("plugins/control.json" in plain and box.path("dirs") in plain, plain)
    subprocess.run([TINYCORE, "abi-check", needy], capture_output=True, check=False, env=box.environment(env))
    check(os.listdir(kept) and os.path.exists(asked), "a plain program keeps and asks")
    shutil.rmtree(kept)
    os.mkdir(kept)
    os.chmod(kept, 0o777)
    os.unlink(asked)
    done = subprocess.run([program, "devices", "--explain", "--json"], capture_output=True, text=True, check=False,
                          env=box.environment(env))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0 or not lines or "/etc/tinycore-1.0/plugins.d" not in done.stdout:
        raise Skip(f"such a program does not run here: {done.stderr[:200]}")
    if box.path("data") in done.stdout:
        raise Skip("set-user-ID is without effect in this file system")
    rules = {line["rule"] for line in lines if "searched" in line}
    check(not any("TINY_PLUGIN" in rule for rule in rules) and "the user's data folder" not in rules, rules)
    check(box.path("plugins") not in done.stdout and box.path("dirs") not in done.stdout, done.stdout)
    # Nor does it believe, or write, what is kept in a folder that its user names.
    caches = box.folder("caches")
    os.chmod(caches, 0o777)
    manifest(box, "control", folder="share/tinycore-1.0/plugins.d")
    share = os.path.dirname(os.path.dirname(next(line["searched"] for line in lines if "searched" in line
                                                 and line["rule"] == "where tinycore was installed")))
    before = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', box.path("share"), share)
    env["XDG_CACHE_HOME"], env["TINY_CACHE_DIR"] = caches, None
    time.sleep(0.2)  # a manifest of this moment is not remembered
    for command, wanted in ((TINYCORE, ["manifests.bin", "scans"]), (program, [])):
        for _, _, names in os.walk(caches):
            check(not names, names)
        done = subprocess.run([*before, command, "devices", "--explain", "--json"], capture_output=True, text=True, check=False,
                              env=box.environment({**env, "TINY_PLUGIN_PATH": None, "TINY_PLUGIN_FILES": None}))
        if "mount:" in done.stderr or "unshare:" in done.stderr:
            raise Skip(f"nothing can be mounted here: {done.stderr[:200]}")
        check("share/tinycore-1.0/plugins.d/control.json" in done.stdout, done)
        found = sorted({os.path.relpath(path, os.path.join(caches, "tinycore-1.0")).split("/")[0] for path in box.files("caches")})
        check(found == wanted, f"{command}: {found}")
        shutil.rmtree(os.path.join(caches, "tinycore-1.0"), ignore_errors=True)
    done = subprocess.run([program, "abi-check", needy], capture_output=True, text=True, check=False, env=box.environment(env))
    check("libgone7.so.3" in done.stdout + done.stderr, done)
    done = subprocess.run([program, "bench", "--runs", "1", "elementwise:100"], capture_output=True, text=True, check=False,
                          env=box.environment(env))
    note(f"bench: {done.returncode} {done.stderr[:200]}")
    check(not os.listdir(kept) and not os.path.exists(asked), f"{os.listdir(kept)} written, asked {os.path.exists(asked)}")
    # Nor is it led by the name that it was started with.
    manifest(box, "control", folder="led/tinycore-1.0/plugins.d")
    done = subprocess.run([box.path("led/tinycore"), "devices", "--explain"], executable=program, capture_output=True,
                          text=True, check=False, env=box.environment(env))
    check(done.returncode == 0 and box.path("led") not in done.stdout, done.stdout)


@test("the built backends: what is said to be chosen is what is opened")
def chosen(box):
    for dev in (None, "REF", "NULL|CPU", "REF|CPU", "ISOLATED+REF"):
        choice = explain(box, TINY_PLUGIN_PATH=os.environ["TINY_PLUGIN_PATH"], DEV=dev)[2]
        said = box.run("bench", "--runs", 1, "--json", "elementwise:100", DEV=dev).good().lines()[0]["device"]
        check(said == choice, f"{dev}: {said} is opened, {choice} said to be chosen")
    found = explain(box, TINY_PLUGIN_PATH=os.environ["TINY_PLUGIN_PATH"], DEV="ISOLATED+REF")[0]
    verdicts = {line["name"]: line["verdict"] for line in found.values()}
    check(verdicts["REF"] == "chosen: DEV=ISOLATED+REF names it" and "names another" in verdicts["CPU"], verdicts)
    # A device says more of itself than a manifest does.
    path = next(path for path, line in found.items() if line["name"] == "NULL")
    with open(path, encoding="utf-8") as file:
        told = {**json.load(file), "class": "npu"}
    told["module"] = os.path.join(os.path.dirname(path), told["module"])
    made = box.write("npu/null.json", json.dumps(told))
    verdict = explain(box, TINY_PLUGIN_PATH=f"{box.path('npu')}:{os.environ['TINY_PLUGIN_PATH']}")[0][made]["verdict"]
    check("a simulator is used only where DEV= names it" in verdict, verdict)


main()
