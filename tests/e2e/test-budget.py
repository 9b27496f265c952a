#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The costs of start-up, plugins and memory, in numbers that are the same on a busy machine: instructions by callgrind,
system calls by strace, bytes. Seconds are bench/'s.

Bars are half as much again as Debian 12's compiler and libraries need; a number that doubles is above its bar. Calls
that sleep for a time have a bar of their own, as they cost neither instructions nor many calls."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import small_data
from e2e import Skip, check, main, note, test

SANITIZED = os.environ.get("TINY_E2E_SANITIZED")
FIRST_ADD, EAGER_STEPS = os.environ["TINY_E2E_FIRST_ADD"], os.environ["TINY_E2E_EAGER_STEPS"]
EAGER_ADD, KEPT = os.environ["TINY_E2E_EAGER_ADD"], os.environ["TINY_E2E_KEPT"]
DISCOVERY, REF_PLUGIN = os.environ["TINY_E2E_DISCOVERY"], os.environ["TINY_E2E_REF_PLUGIN"]
ROOM = 200 << 20
# As a user has it: meson has malloc () fill all memory, and the loader look through a folder for each test's library.
PLAIN = {"DEV": "CPU", "MALLOC_PERTURB_": "0", "LD_LIBRARY_PATH": None}
# Calls that other processes have a say in.
WAITS = ("futex", "sched_yield", "restart_syscall")
SPINS = ("worker_look", "tiny_timing_now_ns")  # functions that look again and again
SLEEPS = ("nanosleep", "clock_nanosleep", "select", "pselect6", "epoll_wait")


def run(box, *argv, before=(), **options):
    done = subprocess.run([*before, *argv], cwd=box.work, env=box.environment(PLAIN), check=False,
                          capture_output=True, text=True, timeout=400, **options)
    check(done.returncode == 0 and done.stderr == "", f"{argv}: {done.returncode}\n{done.stderr}")
    return done.stdout


def need_plain(*commands):
    if SANITIZED:
        raise Skip("a sanitizer's memory and time are not ours")
    for command in commands:
        if shutil.which(command) is None:
            raise Skip(f"there is no {command}")


def instructions(box, *argv, tool="callgrind", without=()):
    """Those inside of main (), of the program and what it starts, but for functions named in @without."""
    folder = pathlib.Path(box.folder("counts"))
    for old in folder.iterdir():
        old.unlink()
    options = ["--toggle-collect=main", f"--callgrind-out-file={folder}/%p"] if tool == "callgrind" else []
    run(box, *argv, before=["valgrind", f"--tool={tool}", "--trace-children=yes", "--log-file=/dev/null", *options])
    return sum(cost for path in folder.iterdir() for function, cost in costs(path.read_text())
               if function not in without)


def costs(text):
    """Pairs of a function and instructions of its own, as callgrind writes them."""
    names, function, of_call = {}, None, False
    for line in text.splitlines():
        if found := re.match(r"fn=\((\d+)\)(?: (.*))?$", line):
            function = names.setdefault(found[1], found[2])
        elif found := re.match(r"c?fn=\((\d+)\) (.*)$", line):
            names.setdefault(found[1], found[2])
        elif line.startswith("calls="):
            of_call = True  # whose line is next
        elif found := re.match(r"[+*\-\d]\S* (\d+)$", line):
            if not of_call:
                yield function, int(found[1])
            of_call = False


def calls(box, *argv, after=None, processor=None):
    """Names of the system calls of the program and what it starts, from the first that speaks of @after. @processor: on
    that one alone."""
    trace = pathlib.Path(box.path("trace"))
    run(box, *argv, before=["strace", "-f", "-qq", "-o", trace],
        preexec_fn=None if processor is None else lambda: os.sched_setaffinity(0, {processor}))
    lines = [line.split(None, 1)[1] for line in trace.read_text(errors="replace").splitlines()]
    first = 0 if after is None else next(i for i, line in enumerate(lines) if after in line)
    names = [line.split("(")[0] for line in lines[first:] if re.match(r"\w+\(", line)]
    return [name for name in names if name not in WAITS]


def need_strace(box):
    need_plain("strace")
    done = subprocess.run(["strace", "-o", box.path("trace"), "true"], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise Skip(f"strace may not trace here: {done.stderr[:100]}")


def hold(found, bars):
    note(", ".join(f"{name} {value} (bar {bars[name]})" for name, value in found.items()))
    check(set(found) == set(bars), "each has a bar")
    check(all(found[name] <= bars[name] for name in bars), "over the bar")


def n_devices():
    """Devices whose names start-up reads and holds patterns against."""
    return sum(len(list(pathlib.Path(f"/sys/bus/{bus}/devices").glob("*"))) for bus in ("pci", "usb"))


@test("process start to the sum of 1000 elements, caches warm: instructions")
def first_add(box):
    need_plain("valgrind")
    instructions(box, FIRST_ADD, tool="none")  # compiles for the processor that valgrind shows
    hold({"instructions": instructions(box, FIRST_ADD)}, {"instructions": 2600000 + 10000 * n_devices()})


@test("process start to the sum of 1000 elements, caches warm: system calls")
def first_add_calls(box):
    need_strace(box)
    run(box, FIRST_ADD)
    found = calls(box, FIRST_ADD, after="plugins.d")
    hold({"calls": len(found), "sleeps": sum(name in SLEEPS for name in found)},
         {"calls": 260 + 5 * n_devices(), "sleeps": 0})


@test("an eager operation, alone and as the mean of three beside 20 and 1000 kept tensors: instructions")
def eager_add(box):
    need_plain("valgrind")
    found = {}
    for name, n, command in (("add", 900, [EAGER_ADD, "{}", "16"]), ("beside 20", 4800, [KEPT, "20", "{}"]),
                             ("beside 1000", 4800, [KEPT, "1000", "{}"])):
        few, more = ([part.format(k) for part in command] for k in (100, 200))
        instructions(box, *few, tool="none")
        found[name] = (instructions(box, *more, without=SPINS) - instructions(box, *few, without=SPINS)) // n
    hold(found, {"add": 20000, "beside 20": 37000, "beside 1000": 46000})


@test("un-replayed training steps: no growth, and little beyond what is live")
def eager_steps(box):
    need_plain()
    result = json.loads(run(box, EAGER_STEPS, "100"))
    note(result)
    check(result["loss"] < 1, result)
    check(result["rss_growth_bytes"] <= 1 << 20, result)
    check(result["rss_peak_bytes"] <= 1.5 * result["live_bytes"] + ROOM, result)


def manifests(box):
    """A folder of 50."""
    folder = box.folder("plugins.d")
    result = json.loads(run(box, DISCOVERY, folder, REF_PLUGIN))
    note(f"by the clock: {result}")
    check(result["parsed_cold"] == result["manifests"] == 50 and result["parsed_warm"] == 0, result)
    return folder


def cold_and_warm(count, folder, empty):
    """The part of 50 manifests: without a cache of theirs, and with it."""
    count(empty)
    none = count(empty)
    shutil.rmtree(os.path.join(folder, "cache"))
    return {"cold": count(folder) - none, "warm": count(folder) - none}


@test("plugins: start-up with 50 manifests, probing one, submits: instructions")
def plugins(box):
    need_plain("valgrind")
    found = cold_and_warm(lambda folder: instructions(box, DISCOVERY, folder), manifests(box), box.folder("empty"))
    for what, n in (("probes", 2), ("submits", 1000), ("direct", 1000), ("worker", 1000)):
        some, more = (instructions(box, DISCOVERY, f"--{what}", REF_PLUGIN, str(k * n), without=SPINS) for k in (1, 2))
        found[what] = (more - some) // n
    found["submits"] -= found.pop("direct")  # of the plugin itself
    hold(found, {"cold": 18000000, "warm": 1200000 + 10000 * n_devices(), "probes": 740000, "submits": 160,
                 "worker": 1500})


@test("plugins: start-up with 50 manifests, probing one, submits: system calls")
def plugins_calls(box):
    need_strace(box)
    found = cold_and_warm(lambda folder: len(calls(box, DISCOVERY, folder)), manifests(box), box.folder("empty"))
    sleeps = 0
    one = min(os.sched_getaffinity(0))
    for what, n, processor in (("probes", 2, None), ("submits", 1000, None), ("worker", 100, one)):
        some, more = (calls(box, DISCOVERY, f"--{what}", REF_PLUGIN, str(k * n), processor=processor) for k in (1, 2))
        found[what] = (len(more) - len(some)) / n
        sleeps += sum(name in SLEEPS for name in more)
    hold({**found, "sleeps": sleeps}, {"cold": 660, "warm": 125, "probes": 550, "submits": 0, "worker": 2, "sleeps": 0})


@test("the peak of a training run stays near what it holds")
def train_peak(box):
    need_plain()
    if not small_data.is_installed():
        raise Skip("the package dataset-fashion-mnist is not installed")
    process = box.start("train", "fashion-mnist", "--steps", 20, DEV="CPU")
    process.stdout.read()
    process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    live = (56 << 20) + 70000 * 785  # of a step, as the test above measures it, and the data set
    note(f"{used.ru_maxrss >> 10} MiB")
    check(status == 0, status)
    check(used.ru_maxrss << 10 <= 1.5 * live + ROOM, used.ru_maxrss)


main()
