#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite's runner: what a run's exit status says, and that no plugin ends it.

Every way in which a plugin can go wrong while it is loaded, opened or used is one failed case here, with
its stack; what is not there is 77, and a run in which nothing ran is no success."""
import fnmatch
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import stat
import subprocess
import time

from e2e import TINYCORE, check, main, test
from suite import ABSENT, BAD, BELOW, CRASHED, FAILED, OWN, PASSED, PATIENT, SANITIZED, USAGE, bad, case, certificate, conformance, every_group_passed


@test("level core passes on CPU, every group of it, with no false alarm and in its time")
def core_cpu(box):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found, _ = certificate(box, "CPU", *PATIENT, status=OWN)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    every_group_passed(found)
    # The processors' time: that of the clock is whatever else a machine does.
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    check(1 <= seconds <= 60, seconds)
    check({r["what"] for c in found["cases"] for r in c.get("records", [])} >= {"upload", "first result", "submit of one launch"})


@test("behind a worker the same holds; what cannot be asked there is absent with its reason")
def isolated(box):
    groups = [word for group in ("skew", "memory", "order", "exec", "faults", "replay") for word in ("--filter", f"{group}/*")]
    found, _ = certificate(box, "ISOLATED+CPU", *groups, status=PASSED)
    bare, _ = certificate(box, "CPU", "--filter", "faults/*", status=PASSED)
    check(found["score"]["must"] == found["score"]["passed"] > 100, found["score"])
    faults = {c["name"] for c in bare["cases"]}
    check(len(faults) > 10 and faults <= {c["name"] for c in found["cases"]}, faults)
    skew = [row for row in found["absent"] if row["name"].startswith("skew/")]
    check(len(skew) > 5 and all("without ISOLATED" in row["reason"] for row in skew), found["absent"])


@test("a crash, exit or hang while it is loaded is a failed case")
def load(box):
    for name, at, outcome in [("constructor-crash", "load/scan", "crashed"), ("constructor-exit", "load/scan", "ended"),
                              ("scan-crash", "load/scan", "crashed"), ("info-crash", "load/scan", "crashed"),
                              ("fini-crash", "load/scan", "crashed"), ("target-crash", "load/open", "crashed")]:
        found, _ = certificate(box, bad(name), status=CRASHED)
        check(case(found, at)["outcome"] == outcome, f"{name}: {found['cases']}")
        check(found["certified"] == "none")
    for name in ("constructor-hang", "scan-hang"):
        manifest = {"format_version": 1, "name": name, "abi": 1, "module": bad(name), "probe": {"timeout_ms": 300}}
        path = box.write("hangs.json", json.dumps(manifest))
        found, _ = certificate(box, bad(name), "--manifest", path, status=CRASHED)
        check(case(found, "load/scan")["outcome"] == "hung" and found["certified"] == "none", f"{name}: {found['cases']}")
    found, _ = certificate(box, bad("no-alloc"), status=FAILED)
    check("required slot alloc" in case(found, "load/open" if len(found["cases"]) > 1 else "load/scan")["messages"][0])


@test("a crash, exit or hang of a function is one failed case with its stack, and the others run")
def function(box):
    for name, outcome, word in [("submit-crash", "crashed", "signal 11"), ("submit-exit", "ended", "exit status 0"),
                                ("submit-hang", "hung", "not done in time")]:
        found, result = certificate(box, bad(name), "--filter", "memory/size/1", "--filter", "memory/zero",
                                    "--timeout-scale", "0.03", "--progress", "0.5", status=CRASHED)
        one = case(found, "memory/size/1")
        check(one["outcome"] == outcome and word in one["messages"][0], one)
        if outcome == "hung":  # nothing ends for two seconds, and yet it says how far it is and what runs
            check(re.search(r"^[01] of 2 cases done, [01] failed, [0-9.]+ a second.*; memory/\S+ runs for [0-9]+ s", result.err, re.M),
                  result)
            check("about 0 s left" not in result.err, result)
        else:
            check(f"bad-{name}.so" in one["stack"], one)
            check(f"bad-{name}.so" in result.out, result)
        check(case(found, "memory/zero")["outcome"] == "passed", found["cases"])


@test("wrong results are status 1")
def wrong(box):
    found, result = certificate(box, bad("control"), "--filter", "memory/size/*", status=FAILED)
    check(found["score"]["failed"] == found["score"]["must"] > 0, found["score"])
    check("0 of " in result.out, result)


@test("of many failures a few of each group are shown, and where to begin")
def many(box):
    found, result = certificate(box, bad("control"), "--filter", "memory/size/*", "--filter", "exec/grid/*", status=FAILED)
    failed = [c["name"] for c in found["cases"] if c["outcome"] != "passed"]
    shown = [name for name in failed if f"\n{name} failed\n" in result.out]
    groups = {name.split("/")[0] for name in failed}
    check(groups == {name.split("/")[0] for name in shown} and len(failed) > 6 and len(shown) <= 8, f"{shown} of {failed}")
    check("more of memory" in result.out, result)
    found, result = certificate(box, bad("control"), "--filter", "memory/*", status=FAILED)
    check(found["score"]["failed"] > 20 and "conformance --ladder" in result.out, result)


@test("--fail-fast ends a run at the first case that fails; it says so and certifies nothing")
def fail_fast(box):
    found, result = certificate(box, bad("control"), "--filter", "memory/size/*", "--fail-fast", "--jobs", "1", status=FAILED)
    score = found["score"]
    check(score["failed"] == 1 and score["not run"] == score["must"] - 1 > 5, score)
    check(found["certified"] == "none" and not found["run"]["complete"], found["run"])
    check("stopped at the first case that failed" in result.out, result)
    found, result = certificate(box, "REF", "--filter", "memory/size/*", "--fail-fast", status=PASSED)
    check(found["score"]["not run"] == 0 and found["run"]["complete"] and "stopped" not in result.out, found["score"])


@test("what a run that was killed leaves behind, the next one removes; what is still used it leaves")
def killed(box):
    temporary = box.folder("temporary")
    process = box.start("conformance", bad("submit-hang"), "--filter", "memory/size/1", TMPDIR=temporary)
    for _ in range(200):
        folders = os.listdir(temporary)
        if len(folders) == 2:  # one of its own, one of the manifest that was made
            break
        time.sleep(0.05)
    conformance(box, "REF", "--filter", "memory/zero", status=PASSED, TMPDIR=temporary)
    check(len(folders) == 2 and set(os.listdir(temporary)) == set(folders), folders)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    conformance(box, "REF", "--filter", "memory/zero", status=PASSED, TMPDIR=temporary)
    check(not os.listdir(temporary), os.listdir(temporary))


@test("what is not there is 77, and no usage error is")
def absent(box):
    conformance(box, "NOSUCHBACKEND", status=ABSENT).refused("there is no backend", status=ABSENT)
    conformance(box, "CPU:99", status=ABSENT).refused("there is no such device", status=ABSENT)
    conformance(box, bad("driver"), status=ABSENT).refused("libbad.so.1", status=ABSENT)
    for argv in [[], ["CPU", "REF"], ["CPU|REF"], ["CPU", "--level", "most"], ["CPU", "--jobs", "0"], [":1"],
                 ["CPU", "--seed", "x"], ["CPU", "--ladder", "--json", "x"], ["CPU", "--list", "--html", "x"], ["./nothing.so"], ["CPU", "--timeout-scale", "nan"], ["CPU", "--manifest", "x"]]:
        conformance(box, *argv, status=USAGE).refused(status=USAGE)
    for argv, words in ((["CPU", "--part", "0.5"], ["--part", "--verify"]), (["CPU", "--ladder", "--filter", "x"], ["--filter", "--ladder"]),
                        (["--verify", "x", "--tap"], ["--tap", "--verify"]), (["CPU", "--list", "--fail-fast"], ["--fail-fast", "--list"]),
                        (["CPU", "--filter", "\udcff"], ["--filter", "\\377"]), (["CPU", "--filter", ""], ["--filter", "empty"]),
                        (["CPU", "--level", "core", "--level", "full"], ["--level is given twice"]), ([""], ["empty"]),
                        (["CPU", "--seed", "9" * 30], ["--seed", "18446744073709551615"])):
        conformance(box, *argv, status=USAGE).refused(*words, status=USAGE)


@test("a run in which nothing ran is 3")
def nothing(box):
    found, result = certificate(box, "REF", "--filter", "nosuch/*", status=BELOW)
    check("no case is called so" in result.err, result)
    check(found["score"]["must"] == 0 and found["certified"] == "none", found)


@test("a file with a manifest, without one, and with a wrong one")
def files(box):
    copy = box.path("copy.so")
    shutil.copy(bad("control"), copy)
    run = ("--filter", "memory/zero")
    found, _ = certificate(box, copy, *run, status=PASSED)
    check(found["subject"]["name"] == "control")
    manifest = {"format_version": 1, "name": "control", "abi": 1, "module": "copy.so"}
    path = box.write("copy.json", json.dumps(manifest))
    certificate(box, copy, *run, status=PASSED)
    other = box.write("other/wrong.json", json.dumps({**manifest, "name": "other", "module": "../copy.so"}))
    found, _ = certificate(box, copy, "--manifest", other, *run, status=FAILED)
    check("the module says" in case(found, "load/scan")["messages"][0], found)
    os.unlink(path)
    conformance(box, copy, "--manifest", path, status=FAILED).refused("copy.json")


@test("TAP names every case once")
def tap(box):
    lines = conformance(box, "REF", "--tap", "--progress", "0.01", "--filter", "memory/*", status=PASSED).out.splitlines()
    check(any(re.match("# [0-9]+ of [0-9]+ cases done, 0 failed", line) for line in lines), lines[:5])
    plan = [line for line in lines if line.startswith("1..")]
    results = [line for line in lines if line.startswith(("ok ", "not ok "))]
    check(lines[0] == "TAP version 13" and len(plan) == 1 and int(plan[0][3:]) == len(results))
    listed = conformance(box, "REF", "--list", "--filter", "memory/*", status=PASSED).out.splitlines()
    names = [line.split()[1] for line in listed if not line.startswith("absent ")]
    check(len(set(names)) == len(names) > 10)
    check(all(line.split()[1].startswith("memory/") for line in listed), "what the filter does not choose is not listed")


@test("what is absent is counted as far as the filter chooses it")
def absent_chosen(box):
    found, result = certificate(box, "REF", "--filter", "memory/*", status=PASSED)
    names = [row["name"] for row in found["absent"]]
    check(0 < len(names) == found["score"]["absent"] < 5 and all(name.startswith("memory/") for name in names), names)
    check(f"{len(names)} absent" in result.out, result)
    one, _ = certificate(box, "REF", "--filter", names[0] + "/x?y", status=BELOW)
    check([row["name"] for row in one["absent"]] == names[:1], "what begins so is absent as well")


@test("a file of gigabytes is refused by its header or its size, not read; what steers a terminal does not")
def hostile_files(box):
    start = time.monotonic()
    for name, head, words in (("huge.so", b"", "does not begin as an ELF file"), ("large.so", None, "1024 MiB at most")):
        if head is None:
            shutil.copy(bad("control"), box.path(name))
        with open(box.path(name), "ab") as file:
            file.truncate(6 << 30)
        found, _ = certificate(box, box.path(name), status=FAILED)
        check(words in case(found, "load/scan")["messages"][0] and found["subject"]["sha256"] == "", found)
    check(time.monotonic() - start < 10, "it was read")
    for argv in ((), ("--ladder",), ("--tap",)):
        result = box.run("conformance", bad("steers"), *argv)
        check("\x1b" not in result.out + result.err and "???" in result.out + result.err, result)
    copy = box.path("steer.so")
    with open(bad("control"), "rb") as file:
        content = file.read()
    with open(copy, "wb") as file:  # what scan() and info() call it
        file.write(content.replace(b"\0tests\0", b"\0t\x1b]0;\0"))
    found, result = certificate(box, copy, "--filter", "memory/zero", status=PASSED)
    check(found["subject"]["vendor"] == "t?]0;", found["subject"])


# Words of a worker that are no answer, or none to the question.
WORDS = (
    b'{"result": {"outcome": "passed", "us": 1}}\n', b'{"result": {"name": 7, "outcome": "passed", "us": 1}}\n', b'{"case": {}}\n', b'{"case": null}\n',
    b'{"result": {"name": "memory/size/1", "outcome": "certified", "us": 1}}\n', b'{"ready": {}}\n', b'{"ready": {"name": "x"}}\n',
    b'{"case": {"name": "a", "level": -1, "flags": 1e300, "seconds": 1}}\n', b'{"end": "x"}\n', b'{"error": {}}\n', b'{"error": {"text": "x", "code": 99999}}\n',
    b'{"end": 0}\n{"end": 0}\n', b'{"rung": 9999}\n', b'{"top": 1}\n', b'{' * 5000 + b'\n', b'{"a": ' * 5000 + b'\n', b'{"x": [' + b'1,' * 20000 + b'1]}\n', b'{\n', b'{}\n',
    b'\0' * 5000 + b'\n', b'{"\xff": 1}\n', b'!\n' * 2000, b'! #0 at\n' + b'x' * 30000 + b'\n', b'no words\n' * 3000, b'x' * (1 << 20), b'{' + b'x' * ((1 << 20) - 1),
    b'{"absent": {"name": "a/b", "reason": "c"}}\n' * 2000, b'{"case": {"name": "a/b", "level": 0, "flags": 0, "seconds": 1}}\n' * 1000)


@test("whatever a worker with damaged memory sends, the run and the ladder end: in bounded time and memory, with a last line and a status")
def damaged(box):
    random.seed(18)
    words = [(one, False) for one in WORDS] + [(one, True) for one in WORDS[-8:]]
    for _ in range(8):
        one = bytearray(random.choice([one for one in WORDS if len(one) < 1000]))
        for _ in range(random.randrange(1, 4)):
            one[random.randrange(len(one))] = random.randrange(256)
        words.append((bytes(one) + b"\n", False))
    limit = () if SANITIZED else ("prlimit", "--as=2000000000") # addresses, of which a sanitizer takes terabytes
    for i, (one, again) in enumerate(words):
        env = {"FAULT_WORDS": box.write("words", one), **({"FAULT_AGAIN": "1"} if again else {})}
        name = ("info-words", "submit-words")[i % 2]
        argv = ("--timeout-scale", "0.03", *(("--ladder",) if i % 5 == 4 else ("--filter", "memory/size/1")))
        start = time.monotonic()
        result = box.run("conformance", bad(name), *argv, before=limit, timeout=60, **env)
        check(result.status in (FAILED, BELOW, CRASHED) and time.monotonic() - start < (90 if SANITIZED else 30), (one[:80], again, argv, str(result)))
        last = (result.out + result.err).strip().splitlines()[-1]
        check("--ladder" in argv or "level core: " in last or "conformance: " in last, (one[:80], again, str(result)))


@test("on a chip of 16 MiB that is slow everything is measured, and no measurement decides")
def small_chip(box):
    env = {"TINY_BROKEN": "none-small", "TINY_BROKEN_AROUND": os.environ["TINY_SDK_REF"], "TINY_BROKEN_MEMORY": 16, "TINY_BROKEN_SPEED": 8000000}
    argv = (os.environ["TINY_SDK_BROKEN"], "--level", "full", "--filter", "record/*", "--filter", "memory/size/1")
    found, result = certificate(box, *argv, status=PASSED, **env)
    records = [c for c in found["cases"] if c["name"].startswith("record/")]
    check(len(records) == 4 and all(c["outcome"] == "recorded" and c["records"] for c in records), result)


@test("what a compiler that is stopped leaves among temporary files goes with its worker")
def stopped_compilers(box):
    temporary, clang = box.folder("t"), box.write("clang", '#!/bin/sh\necho "$TMPDIR" >>"$0.told"; echo half >"$TMPDIR/half"; exec sleep 60\n')
    os.chmod(clang, 0o755)
    found, _ = certificate(box, "CPU:CLANG", "--filter", "exec/grid/*", "--timeout-scale", "0.02", "--fail-fast", status=CRASHED,
                           TINY_CLANG=clang, TMPDIR=temporary)
    check(found["score"]["hung"] > 0 and os.listdir(temporary) == [], (found["score"], os.listdir(temporary)))
    with open(clang + ".told", encoding="utf-8") as file:
        check(all(line.startswith(temporary + "/tiny-conformance-") for line in file), "the worker's own folder was wanted")


@test("what one subject is asked every other is as well, or it is absent with a reason: nothing goes in silence")
def names(box):
    cases, absent = {}, {}
    for subject in ("REF", "CPU", "REF::words,least,lanes=4,params=4", "REF::groups,items=64", os.path.join(BAD, "sample-linear.so")):
        listed = conformance(box, subject, "--level", "stress", "--list", status=PASSED).out.splitlines()
        cases[subject] = {line.split()[1] for line in listed if not line.startswith("absent ")}
        rows = [line[8:].split(": ", 1) for line in listed if line.startswith("absent ")]
        absent[subject] = [row[0] for row in rows]
        check(all(len(row) == 2 and row[1] for row in rows) and len(set(absent[subject])) == len(absent[subject]), subject)
    everything = set().union(*cases.values())
    check(len(everything) > 20000)
    for subject, own in cases.items():
        whole = {name for name in absent[subject] if "*" not in name}
        globs = [re.compile(fnmatch.translate(name)) for name in absent[subject] if "*" in name]

        def is_absent(name):
            starts = (name[:i] for i in range(len(name) + 1) if i == len(name) or name[i] == "/")
            return any(start in whole for start in starts) or any(glob.match(name) for glob in globs)

        silent, both = sorted(filter(lambda name: not is_absent(name), everything - own)), sorted(filter(is_absent, own))
        check(not silent and not both, f"{subject}: in silence {silent[:9]}, a case and absent {both[:9]}")


@test("the ladder stops at what is missing, and at what crashes")
def ladder(box):
    check("It computes. Next: tinycore conformance REF\n" in conformance(box, "--ladder", "REF", status=PASSED).out)
    manifest = os.path.join(os.environ["TINY_PLUGIN_PATH"], "ref.json")
    with open(manifest, encoding="utf-8") as file:
        module = os.path.realpath(os.path.join(os.environ["TINY_PLUGIN_PATH"], json.load(file)["module"]))
    out = conformance(box, "--ladder", module, "--manifest", manifest, status=PASSED).out
    check(f"Next: tinycore conformance --manifest {manifest} {module}\n" in out, out)
    for name, last, words, status in [
            ("no-symbol", "file", ["does not export tiny_plugin_entry_1"], FAILED),
            ("no-scan", "scan", ["Next: scan()", "the slot scan"], FAILED), ("no-alloc", "alloc", ["Next: alloc()"], FAILED),
            ("half-queues", "queue", ["fill both, or none"], FAILED), ("no-compile", "first copy", ["Next: submit()"], FAILED),
            ("driver", "init", ["libbad.so.1"], FAILED), ("info-crash", "info", ["signal 11", "bad-info-crash.so"], CRASHED)]:
        out = conformance(box, "--ladder", bad(name), status=status).out
        rungs = [line for line in out.splitlines() if line.endswith((" yes", " no")) and line[0] != " "]
        check(rungs[-1].split() == [*last.split(), "no"], f"{name}: {out}")
        check(all(word in out for word in [*words, "Its contract:"]), f"{name}: {out}")


@test("nor do launches at an offset, nor programs that are one, come by it")
def ladder_launches(box):
    for fault, last in (("none", None), ("span-offset", "offset"), ("span-offset-everywhere", "offset"),
                        ("load-by-name", "second"), ("load-first-again", "second")):
        out = conformance(box, "--ladder", os.environ["TINY_SDK_BROKEN"], status=FAILED if last else PASSED, TINY_BROKEN=fault,
                          TINY_BROKEN_AROUND=os.environ["TINY_SDK_REF"]).out
        rungs = [line.split() for line in out.splitlines() if line.endswith((" yes", " no")) and line[0] != " "]
        check(rungs[-1] == ([last, "no"] if last else ["close", "yes"]), f"{fault}: {out}")


@test("reports go where links lead, into devices, and over nothing that is read")
def outputs(box):
    run = ("--filter", "memory/zero")
    copy = box.path("copy.so")
    shutil.copy(bad("control"), copy)
    with open(copy, "rb") as file:
        before = file.read()
    for argv in ((copy, "--json", copy), ("REF", "--json", box.path("x"), "--html", box.path("x"))):
        conformance(box, *argv, *run, status=USAGE)
    with open(copy, "rb") as file:
        check(file.read() == before, "the plugin was written over")
    real = box.write("real.json", "")
    os.symlink(real, box.path("link.json"))
    conformance(box, "REF", *run, "--json", box.path("link.json"), status=PASSED)
    check(os.path.islink(box.path("link.json")) and os.path.getsize(real) > 1000, "the link was replaced")
    node = box.path("full")
    try:
        os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
    except PermissionError:
        node = "/dev/full"
    result = conformance(box, "REF", *run, "--json", node, status=FAILED)
    check("No space left" in result.err and stat.S_ISCHR(os.stat(node).st_mode), result)
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([TINYCORE, "conformance", "REF", *run], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                              env=box.environment())
    check(done.returncode == FAILED and "standard output cannot be written" in done.stderr, done)


@test("no folder for temporary files, a pipe, and a file that changes meanwhile end a run with a message and no success")
def ends(box):
    result = conformance(box, "REF", "--filter", "memory/zero", status=FAILED, TMPDIR=box.path("nowhere"))
    check("TMPDIR names another" in result.err and "passed" not in result.out, result)
    os.mkfifo(box.path("pipe.so"))
    conformance(box, box.path("pipe.so"), status=USAGE).refused("it is no file", status=USAGE)
    copy = box.path("copy.so")
    shutil.copy(bad("submit-hang"), copy)
    process = box.start("conformance", copy, "--filter", "memory/size/1", "--timeout-scale", "0.05", "--json", box.path("c.json"))
    time.sleep(1.5)  # it is loaded, and its one case hangs for three seconds
    with open(copy, "ab") as file:
        file.write(b"x")
    result = box.finish(process)
    check(result.status == FAILED and "changed during the run" in result.err and not os.path.exists(box.path("c.json")), result)


@test("what the ladder names is in the headers")
def ladder_names(_box):
    root = pathlib.Path(__file__).resolve().parents[2]
    texts = " ".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', (root / "sdk/conformance/ladder.c").read_text()))
    headers = "".join(path.read_text() for path in (root / "libtinycore").glob("tiny-plugin*.h"))
    named = set(re.findall(r"\b(?:tiny|TINY)_\w+", texts)) | set(re.findall(r"\bTiny[A-Z]\w+", texts))
    missing = sorted(name for name in named if not re.search(rf"\b{name}\b", headers))
    check(len(named) > 15 and not missing, missing)


@test("the command says what is missing when the suite is not installed")
def missing(box):
    box.run("conformance", "REF", TINY_CONFORMANCE_HELPER="/nowhere/tiny-conformance").refused(
        "/nowhere/tiny-conformance", "tinycore-sdk")


main()
