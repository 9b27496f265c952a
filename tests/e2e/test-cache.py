#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cache on disk: read-only, full, damaged, shared by two processes, or off; a result never depends on it."""
import os
import re
import shutil
import subprocess

from e2e import Skip, TINYCORE, check, main, need, note, test

JOB = ("bench", "--json", "--runs", 1, "matmul:24", "sum:40x30")


def programs(box, folder="cache"):
    """The entries; beside them lies the account of what they take together."""
    return [path for path in box.files(folder, "programs") if not path.endswith("/account")]


def as_nobody(box):
    """A command in front that runs the rest without privileges, or nothing when there are none."""
    if os.geteuid() != 0:
        return []
    setpriv = need("setpriv")
    before = [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*before, TINYCORE, "--version"], cwd="/", check=False, capture_output=True).returncode:
        raise Skip("the build folder cannot be read by another user")
    return before


@test("a first run fills the cache, a second only reads it")
def fills(box):
    check(not os.path.exists(box.cache))
    box.run(*JOB, DEV="CPU").quiet()
    first = {path: os.stat(path).st_ino for path in programs(box)}
    check(len(first) >= 2, first)
    check(all(os.stat(path).st_mode & 0o077 == 0 for path in first), "others can read or write the cache")
    box.run(*JOB, DEV="CPU").quiet()
    check(first == {path: os.stat(path).st_ino for path in programs(box)}, "a warm run wrote")


@test("without TINY_CACHE_DIR it is in the XDG folder, or in the home")
def xdg(box):
    box.run(*JOB, DEV="CPU", TINY_CACHE_DIR=None).quiet()
    check(box.files("xdg", "tinycore-1.0", "programs") and not os.path.exists(box.cache), box.files())
    box.run(*JOB, DEV="CPU", TINY_CACHE_DIR=None, XDG_CACHE_HOME=None).quiet()
    check(box.files(".cache", "tinycore-1.0", "programs"), box.files())
    unknown = [path for path in box.files() if "/tinycore-1.0/" not in path]
    check(not unknown, unknown)


@test("TINY_NO_CACHE=1 writes no program")
def off(box):
    box.run(*JOB, DEV="CPU", TINY_NO_CACHE=1).quiet()
    check(not programs(box), programs(box))


@test("a damaged entry is made anew, with one warning each, and is whole afterwards")
def damaged(box):
    box.run(*JOB, DEV="CPU").quiet()
    good = {}
    for path in programs(box):
        with open(path, "rb") as file:
            good[path] = file.read()
    for name, damage in {
        "a byte flipped at the end": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        "a byte flipped at the start": lambda data: bytes([data[0] ^ 1]) + data[1:],
        "a byte flipped in the sum": lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:],
        "cut in half": lambda data: data[: len(data) // 2],
        "cut to the head": lambda data: data[:40],
        "empty": lambda data: b"",
        "longer": lambda data: data + b"more",
        "text": lambda data: b"no program at all\n",
    }.items():
        for path, data in good.items():
            with open(path, "wb") as file:
                file.write(damage(data))
        result = box.run(*JOB, DEV="CPU").good()
        check(result.err.count("damaged") == len(good), f"{name}: one warning each wanted\n{result}")
        for path, data in good.items():
            with open(path, "rb") as file:
                check(file.read() == data, f"{name}: {path} is not whole again")
        box.run(*JOB, DEV="CPU").quiet()


@test("an entry with a right sum but a useless program is made anew")
def useless(box):
    import hashlib
    box.run(*JOB, DEV="CPU").quiet()
    for number, path in enumerate(programs(box)):
        with open(path, "rb") as file:
            magic, payload = file.read(8), file.read()[32:]
        payload = [payload[:len(payload) - 700], payload[:300] + b"\0" * 600, b"", payload[:100]][number % 4]
        with open(path, "wb") as file:
            file.write(magic + hashlib.sha256(payload).digest() + payload)
    box.run(*JOB, DEV="CPU").good()
    box.run(*JOB, DEV="CPU").quiet()


@test("a folder or a link where an entry should be costs nothing")
def folders(box):
    box.run(*JOB, DEV="CPU").quiet()
    for path in programs(box):
        os.unlink(path)
        os.mkdir(path)
    box.run(*JOB, DEV="CPU").good()


@test("a cache that cannot be made: one warning, the same results")
def unwritable(box):
    box.write("file", "in the way")
    for wrong in (box.path("file"), box.path("file", "below"), "/proc/nothing"):
        result = box.run(*JOB, DEV="CPU", TINY_CACHE_DIR=wrong).good()
        check(result.err.count("cached") == 1 and wrong.split("/")[-1] in result.err, result)
        check(len(result.lines()) == 2, result)
    box.run("devices", TINY_CACHE_DIR=box.path("file")).good()


@test("a read-only cache is read, and a new program costs one warning")
def read_only(box):
    before = as_nobody(box)
    box.run(*JOB, DEV="CPU").quiet()
    subprocess.run(["chmod", "-R", "a+rX,a-w", box.cache], check=True)
    os.chmod(box.work, 0o777)
    result = box.run(*JOB, DEV="CPU", before=before).good()
    check("damaged" not in result.err, result)
    result = box.run("bench", "--json", "--runs", 1, "matmul:9", DEV="CPU", before=before).good()
    check(result.err.count("cannot be cached") == 1, result)
    check(re.search("Permission denied|Read-only", result.err), result)


@test("a full disk: one warning, the same results, nothing half written")
def full(box):
    if os.geteuid() != 0:
        raise Skip("only root can mount a small disk")
    disk = box.folder("disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", disk], check=False,
                             capture_output=True, text=True)
    if mounted.returncode != 0:
        raise Skip("no small disk can be mounted here: " + mounted.stderr.strip())
    try:
        result = box.run(*JOB, "matmul:9", DEV="CPU", TINY_CACHE_DIR=disk).good()
        check(result.err.count("No space left") == 1, result)
        left = [path for path in box.files("disk") if re.search(r"\.\w{6}$", path)]
        check(not left, f"temporary files stayed: {left}")
        again = box.run(*JOB, "matmul:9", DEV="CPU", TINY_CACHE_DIR=disk).good()
        check("damaged" not in again.err, again)
        box.run("devices", TINY_CACHE_DIR=disk).good()
    finally:
        subprocess.run(["umount", disk], check=True)


@test("several processes at once on one empty cache")
def together(box):
    jobs = [box.start(*JOB, "softmax:8x30", DEV=dev) for dev in ("CPU", "CPU", "CPU", "REF")]
    jobs.append(box.start("devices", "--json"))
    for job in jobs:
        box.finish(job).quiet()
    check(not [path for path in box.files("cache") if re.search(r"\.\w{6}$", path)], box.files("cache"))
    before = {path: os.stat(path).st_ino for path in programs(box)}
    box.run(*JOB, "softmax:8x30", DEV="CPU").quiet()
    check(before == {path: os.stat(path).st_ino for path in programs(box)}, "an entry was missing")


@test("a compiler that refuses: its words, the source kept, nothing cached")
def refused(box):
    script = box.write("bin/clang", "#!/bin/sh\ncat >/dev/null\necho 'error: no such luck' >&2\nexit 1\n")
    os.chmod(script, 0o755)
    result = box.run(*JOB, DEV="CPU:CLANG", TINY_CLANG=script)
    result.refused("error: no such luck", "kernel", box.path("cache", "failed"))
    kept = box.files("cache", "failed")
    named = [path for path in kept if path in result.err]
    check(len(named) == 1 and named[0].endswith(".c"), (kept, str(result)))
    with open(named[0], encoding="utf-8") as file:
        check("float" in file.read(), "the kept file is no source")
    check(not programs(box), programs(box))
    need("clang")
    box.run(*JOB, DEV="CPU:CLANG").quiet()


@test("a compiler that is missing, silent, talkative, crashes or writes rubbish")
def compilers(box):
    def script(text):
        path = box.write("bin/clang", "#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path
    box.run(*JOB, DEV="CPU:CLANG", TINY_CLANG=box.path("none")).refused("clang", "install")
    box.run(*JOB, DEV="CPU:CLANG", TINY_CLANG=box.work).refused("clang")
    for text, parts in {
        "exit 3": ["clang"], "cat >/dev/null; exit 0": ["no object"], "kill -SEGV $$": ["clang"],
        "exec <&-; head -c 300000 /dev/zero | tr '\\0' x; exit 1": ["xxx"],
        "cat >/dev/null; printf rubbish >&3": [],
        "cat >/dev/null; printf '\\177ELF' >&3": [], "cat >/dev/null; head -c 5000 /dev/urandom >&3": [],
    }.items():
        result = box.run(*JOB, DEV="CPU:CLANG", TINY_CLANG=script(text)).refused("tinycore:", *parts)
        note(f"{text}: {result.err.strip()[:200]}")
        check(not result.err.rstrip().endswith(":"), f"a reason wanted\n{result}")
    # What it leaves where it is told to keep temporary files goes with it.
    temporary = box.folder("t")
    stopped = script('cat >/dev/null; echo half >"$TMPDIR/cc1.s"; echo "$TMPDIR" >"$0.told"; kill -KILL $$')
    box.run(*JOB, DEV="CPU:CLANG", TINY_CLANG=stopped, TMPDIR=temporary).refused("signal 9")
    with open(stopped + ".told", encoding="utf-8") as file:
        check(os.path.dirname(file.read().strip()) == temporary, "a folder of its own was wanted")
    check(os.listdir(temporary) == [], os.listdir(temporary))
    shutil.rmtree(box.path("bin"))


main()
