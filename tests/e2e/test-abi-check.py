#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tinycore abi-check: plugins that are each wrong in one way, compiled here, and the one check that says so."""
import json
import os
import subprocess
import time

from e2e import check, main, note, test

CC = os.environ["TINY_E2E_CC"].split()
SOURCE, INCLUDE = os.environ["TINY_E2E_BAD_PLUGIN"], os.environ["TINY_E2E_INCLUDE"]
PLAIN = ["-shared", "-fPIC", "-O1", "-fvisibility=hidden", "-Wl,--build-id", "-Wl,-z,relro", "-I" + INCLUDE]
MANIFEST = {"format_version": 1, "name": "GOOD", "vendor": "tests", "version": "1", "license": "MIT",
            "class": "simulator", "abi": 1, "module": "tiny-good.so", "renderers": ["BAD"]}


def compile_c(box, out, *flags, code=None, plugin=True):
    """A shared object from the plugin of tests/fault and further code."""
    sources = [SOURCE, "-DNAME=\"GOOD\"", "-DFAULT_NOTE"] if plugin else []
    if code:
        sources.append(box.write(out + ".more.c", code))
    path = box.path(out)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    done = subprocess.run([*CC, *PLAIN, *sources, "-o", path, *flags], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"the compiler refuses {flags}:\n{done.stderr}")
    return path


def findings(box, path, *arguments, status=None, **env):
    result = box.run("abi-check", path, "--json", *arguments, **env)
    found = {line["check"]: line for line in result.lines()}
    failed = any(line["state"] in ("failed", "unknown") for line in found.values())
    check(result.status == (1 if failed else 0), result)
    check(status is None or result.status == status, result)
    check(len(found) == len(result.lines()) >= 16, result)
    for line in found.values():
        check(line["text"] and (line["hint"] or line["state"] in ("ok", "note", "unknown")), line)
    return found


def bad(found, name, *parts, state="failed"):
    """@name alone is not as it should be, and says so."""
    note(f"{name}: {found[name]['text']}")
    check(found[name]["state"] == state, found[name])
    for part in parts:
        check(part in found[name]["text"] + " " + (found[name]["hint"] or ""), f"“{part}” wanted: {found[name]}")
    others = [line for line in found.values() if line["check"] != name and line["state"] not in ("ok", "note")]
    check(not others, others)


def with_manifest(box, folder="p", **changes):
    manifest = {key: value for key, value in {**MANIFEST, **changes}.items() if value is not None}
    return box.write(f"{folder}/good.json", json.dumps(manifest))


@test("a good plugin has nothing to do, and a word for everything")
def good(box):
    with_manifest(box)
    path = compile_c(box, "p/tiny-good.so", "-s")
    found = findings(box, path, status=0)
    check({line["state"] for line in found.values()} == {"ok"}, found)
    text = box.run("abi-check", path).quiet().out.splitlines()
    check(len(text) == len(found), text)
    box.run("abi-check").refused("usage: tinycore abi-check", status=2)
    box.run("abi-check", path, "--nope").refused("--nope", status=2)
    bad(findings(box, compile_c(box, "p/tiny-good.so", "-g"), status=0), "debug", "strip", state="note")


@test("what is compiled or linked wrongly is found by its check and by no other")
def flags(box):
    with_manifest(box)
    early = "volatile int n;\n__attribute__ ((constructor)) static void start_early (void) { n++; }\n"
    rows = [
        ("exports", "vendor_helper", [], "void vendor_helper (void);\n#pragma GCC visibility push(default)\n"
                                         "void vendor_helper (void) {}\n"),
        ("exports", "tiny_plugin_entry_1 is not exported; there is tiny_other", ["-DFAULT_ENTRY=tiny_other"], None),
        ("note", "plugin ABI 2.0", ["-DFAULT_NOTE_MAJOR=2"], None),
        ("symbols", "no library that it needs has vendor_gone", [], "void vendor_gone (void);\n"
         "void *p (void); void *p (void) { return (void *) vendor_gone; }\n"),
        ("core", "libglib-2.0.so.0", ["-Wl,--no-as-needed", "-l:libglib-2.0.so.0"], None),
        ("constructors", "start_early", [], early),
        ("constructors", "a function at 0x", ["-s"], early),
        ("constructors", "start_init", ["-Wl,-init,start_init"], "void start_init (void); void start_init (void) {}\n"),
        ("relocations", "text relocations", ["-Wl,-z,notext"], "__asm__ (\".text\\n.balign 8\\n"
         ".quad here\\nhere: .previous\");\n"),
        ("memory", "stack that can be executed", ["-Wl,-z,execstack"], None),
        ("paths", "/opt/vendor/lib", ["-Wl,-rpath,/opt/vendor/lib"], None),
        ("paths", "/opt/vendor/lib", ["-Wl,--disable-new-dtags,-rpath,$ORIGIN:/opt/vendor/lib"], None),
        ("paths", "the working folder", ["-Wl,-rpath,$ORIGIN::/"], None),
        ("instruments", "AddressSanitizer", ["-fsanitize=address"], "int look (int *p);\n"
                                                                  "int look (int *p) { return p[1]; }\n"),
        ("instruments", "UndefinedBehaviorSanitizer", ["-fsanitize=undefined"], None),
        ("instruments", "coverage", ["--coverage"], None),
        ("build-id", "-Wl,--build-id", ["-Wl,--build-id=none"], None),
    ]
    for name, part, more, code in rows:
        found = findings(box, compile_c(box, "p/tiny-good.so", *more, code=code))
        if name == "instruments":
            found["constructors"]["state"] = found["exports"]["state"] = "ok"  # the instruments' own
        if name == "note":
            found["agreement"]["state"] = "ok"  # the manifest is for this core, and says so
        bad(found, name, part, state="warning" if name == "build-id" else "failed")
    inside = findings(box, compile_c(box, "p/tiny-good.so", "-Wl,-rpath,$ORIGIN/../lib"), status=0)
    check("$ORIGIN/../lib" in inside["paths"]["text"], inside)
    plain = subprocess.run([*CC, *PLAIN, SOURCE, '-DNAME="GOOD"', "-o", box.path("p/tiny-good.so")], check=False)
    check(plain.returncode == 0)
    bad(findings(box, box.path("p/tiny-good.so"), status=0), "note", "TINY_PLUGIN_NOTE (0);", state="warning")


@test("libraries: missing, missing behind another, needed and not declared, too old")
def libraries(box):
    with_manifest(box)
    low = compile_c(box, "l/libtinytestlow.so.1", "-Wl,-soname,libtinytestlow.so.1", plugin=False,
                    code="#pragma GCC visibility push(default)\nint low (void); int low (void) { return 1; }\n")
    high = compile_c(box, "l/libtinytesthigh.so.1", "-Wl,-soname,libtinytesthigh.so.1", low, plugin=False,
                     code="#pragma GCC visibility push(default)\nint low (void); int high (void);\n"
                          "int high (void) { return low (); }\n")
    use_high = "int high (void); int use (void); int use (void) { return high (); }\n"
    use_low = "int low (void); int use (void); int use (void) { return low (); }\n"
    path = compile_c(box, "p/tiny-good.so", high, code=use_high)
    there = {"LD_LIBRARY_PATH": box.path("l") + ":" + os.environ.get("LD_LIBRARY_PATH", "")}
    check(findings(box, path, status=0, **there)["needs"]["text"].startswith("libtinytesthigh.so.1, "))
    found = findings(box, path)
    check("no library that it needs has high" in found["symbols"]["text"], found)
    found["symbols"]["state"] = "ok"
    bad(found, "needs", "libtinytesthigh.so.1", "dlopen")
    # The linker lets a symbol of a library's library pass only when it is told to.
    undeclared = compile_c(box, "p/tiny-good.so", "-Wl,--no-as-needed", high, "-Wl,--allow-shlib-undefined",
                           code=use_high + use_low.replace("use", "use_low"))
    bad(findings(box, undeclared, **there), "symbols", "low of libtinytestlow.so.1", "for libtinytesthigh.so.1")
    os.unlink(low)
    path = compile_c(box, "p/tiny-good.so", high, "-Wl,--allow-shlib-undefined", code=use_high)
    bad(findings(box, path, **there), "needs", "libtinytestlow.so.1 for libtinytesthigh.so.1")
    # A library that a package has where the loader does not look, or would bring: as each system's tool says it.
    gone = compile_c(box, "l/gone.so", "-Wl,-soname,libgone2.so.1", plugin=False, code="int z;\n")
    path = compile_c(box, "p/tiny-good.so", "-Wl,--no-as-needed", gone)
    os.unlink(gone)
    for tool, says, package in (("dpkg-query", "vendor-gone:amd64: /opt/lib/libgone2.so.1", "vendor-gone"),
                                ("apt-cache", "Package: libgone2-1", "libgone2-1"),
                                ("rpm", "gone-libs-2.1.x86_64", "gone-libs-2.1.x86_64")):
        program = box.write(f"{tool}/{tool}", f'#!/bin/sh\ncase "$*" in *gone2*) echo "{says}";; *) exit 1;; esac\n')
        os.chmod(program, 0o755)
        bad(findings(box, path, PATH=box.path(tool)), "needs", f"libgone2.so.1, of the package {package}")
    bad(findings(box, path, PATH=box.path("nothing")), "needs", "not there: libgone2.so.1")
    os.chmod(box.write("slow/dpkg-query", "#!/bin/sh\nexec /bin/sleep 60\n"), 0o755)
    start = time.monotonic()
    bad(findings(box, path, PATH=box.path("slow")), "needs", "not there: libgone2.so.1")
    check(time.monotonic() - start < 30, "an answer is waited for for a second")
    with open(compile_c(box, "p/tiny-good.so"), "rb") as file:
        data = file.read()
    at = data.index(b"\0GLIBC_2.") + 1
    box.write("p/tiny-good.so", data[:at] + data[at:].replace(b"GLIBC_2.", b"GLIBC_9."))
    bad(findings(box, box.path("p/tiny-good.so")), "versions", "this system lacks GLIBC_9.")


@test("manifests: every member, and whether it is this file's")
def manifests(box):
    path = compile_c(box, "p/tiny-good.so", "-s")
    bad(findings(box, path, status=0), "manifest", "there is no manifest", state="warning")
    rows = [
        ("manifest", "failed", {"name": "no name"}, "“name” is “no name”"),
        ("manifest", "failed", {"abi": "1"}, "“abi” is not a whole number"),
        ("manifest", "failed", {"vendor": "x" * 300}, "“vendor” has a text of 300 characters"),
        ("manifest", "failed", {"vendor": "\u001b[31mred"}, "a character that cannot be shown"),
        ("manifest", "failed", {"match": {"modalias": ["*"]}}, "does not begin with a bus"),
        ("manifest", "failed", {"match": {"device_nodes": ["dev/x"]}}, "no absolute path"),
        ("manifest", "failed", {"probe": {"files": ["proc/x"]}}, "no absolute path"),
        ("manifest", "failed", {"probe": {"env": ["A B"]}}, "no name of a variable"),
        ("manifest", "failed", {"exports": {"a": {"renderer": "BAD", "form": "exe"}}}, "not c or files"),
        ("manifest", "failed", {"exports": {"a": {"renderer": "X", "form": "c"}}}, "not among “renderers”"),
        ("manifest", "failed", {"exports": {"a": {"form": "c", "folder": "gone"}}}, "which is not there"),
        ("manifest", "warning", {"vendor": None, "class": None}, "“vendor” is not said, “class” is not said"),
        ("manifest", "warning", {"match": {"modalais": []}}, "“match.modalais” is ignored"),
        ("manifest", "warning", {"colour": 1}, "“colour” is ignored"),
        ("manifest", "warning", {"module": path}, "an absolute path"),
        ("agreement", "failed", {"name": "OTHER"}, "“name” is “OTHER”, which is nowhere in the file"),
        ("agreement", "failed", {"version": "1.2.3"}, "“version”"),
        ("agreement", "failed", {"renderers": ["BAD", "WORSE"]}, "“WORSE”"),
        ("agreement", "failed", {"module": "tiny-else.so"}, "another file or none"),
        ("agreement", "failed", {"module": f"tiny-{'e' * 150}.so"}, "e.so, another file or none"),
    ]
    for name, state, changes, part in rows:
        manifest = with_manifest(box, "m", **{"module": "../p/tiny-good.so", **changes})
        found = findings(box, path, "--manifest", manifest)
        if name == "manifest" and state == "failed":
            found["agreement"]["state"] = "ok"
        bad(found, name, part, state=state)
    found = findings(box, path, "--manifest", box.path("gone.json"), status=1)
    check("gone.json" in found["manifest"]["text"], found)
    # Beside the file by its name even where it leads elsewhere; installed, wherever it lies.
    with_manifest(box, module="../elsewhere.so")
    bad(findings(box, path), "agreement", "another file or none")
    os.unlink(box.path("p/good.json"))
    with_manifest(box, "plugins.d", module="../p/tiny-good.so")
    found = findings(box, path, status=0, TINY_PLUGIN_PATH=box.path("plugins.d"))
    check(found["manifest"]["text"].endswith("plugins.d/good.json"), found)


@test("files that are no plugins")
def no_plugins(box):
    with open(compile_c(box, "p/tiny-good.so", "-s"), "rb") as file:
        module = file.read()
    kinds = {"head": module[:40], "cut": module[:-200],
             "machine": module[:18] + b"\x08\0" + module[20:], "executable": module[:16] + b"\2" + module[17:]}
    for name, content in kinds.items():
        found = findings(box, box.write(f"{name}.so", content), status=1)
        note(f"{name}: {found['file']['text']}")
        check(found["file"]["state"] == "failed" and found["symbols"]["state"] == "unknown", found)
        text = box.run("abi-check", box.path(f"{name}.so")).out
        check(text.count("unknown") == 1 and "other checks were not made" in text, text)
    closed = box.write("closed.so", module)
    os.chmod(closed, 0)
    for path, part in ((box.path("gone.so"), "there is no such file"), (box.root, "it is a folder"), ("/dev/zero", "it is no file"),
                       (box.write("empty.so", ""), "it is empty"), (box.write("text.so", "#!/bin/sh\n"), "not begin as an ELF"),
                       (closed, "Permission denied")):
        # One line says it, whether for people or programs.
        before = ["setpriv", "--reuid", "65534", "--clear-groups"] if path == closed and os.geteuid() == 0 else ()
        for arguments in [], ["--json"]:
            result = box.run("abi-check", path, *arguments, before=before).refused(f"tinycore abi-check: {path}: ", part)
            check(result.out == "" and result.err.count("\n") == 1, result)


main()
