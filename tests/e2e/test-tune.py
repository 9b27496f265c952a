#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""BEAM, tinycore tune and TINY_TUNED: what a search finds is cached, exported, replayed, and never trusted."""
import os
import re

import small_data
from e2e import check, main, near, test

CASE = ("bench", "--json", "--runs", 1, "matmul:32")
KERNEL = """// stage: kernel
%0 = param.f32{slot=0, shape=[4096]}
%1 = range.index{number=0, kind=loop}(4096)
%2 = load.f32(%0, %1)
sink{name="add_one"}(store(%0, %1, add.f32(%2, 1.0)))
"""
ENTRY = re.compile(r"([0-9a-f]{32}) (CPU:LLVM:\S+) ([a-z0-9(), ]+) # (\S+): [\d.]+ us, heuristic [\d.]+ us")


def applied(result):
    """The optimisations of each kernel, as DEBUG=3 shows them."""
    return {name: opts.replace("no optimisations", "none")
            for name, opts in re.findall(r"^kernel (\S+): (.*)$", result.err, re.M)}


def tune(box, *models, **env):
    path = box.path("tuned")
    box.run("tune", "--seconds", 1, "--output", path, *models, DEV="CPU", **env).quiet()
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    check(lines[0] == "tinycore-tuned 1", lines)
    entries = [ENTRY.fullmatch(line) for line in lines[1:] if not line.startswith("#")]
    check(entries and all(entries), lines)
    return path, entries


@test("tune writes an entry for each kernel; TINY_TUNED replays it, without BEAM and from anywhere")
def round_trip(box):
    kernel = box.write("k.tir", KERNEL)
    path, entries = tune(box, "matmul:32", "softmax:12x40", kernel)
    check(len({entry[1] for entry in entries}) == len(entries) >= 3, entries)
    check(any(entry[4] == "add_one" for entry in entries), entries)
    plain = applied(box.run(*CASE, DEV="CPU", DEBUG=3, TINY_NO_CACHE=1).good())
    matmul = next(entry for entry in entries if entry[4] == "matmul_32_32_r32")
    by_hand = "lanes(1,8) upcast(0,2)"
    check(by_hand not in (plain[matmul[4]], matmul[3]), "the test wants a list that nobody finds")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    edited = box.write("edited", text.replace(f" {matmul[3]} #", f" {by_hand} #"))
    for files, wanted in ((path, matmul[3]), (edited, by_hand), (f"{edited}:{path}", by_hand), (f"{path}:{edited}", matmul[3])):
        for beam in (0, 2):
            used = applied(box.run(*CASE, DEV="CPU", DEBUG=3, TINY_TUNED=files, BEAM=beam,
                                   TINY_BEAM_SECONDS=1).good())
            check(used[matmul[4]] == wanted, f"{files}: {used}")
    other = applied(box.run(*CASE, DEV="CPU:CLANG", DEBUG=3, TINY_TUNED=edited))
    check(other.get(matmul[4]) != by_hand, "a list of another target was used")


@test("a file that is damaged, foreign or wrong costs a warning and nothing else")
def damaged(box):
    path, entries = tune(box, "matmul:32")
    entry = entries[0]
    plain = applied(box.run(*CASE, DEV="CPU", DEBUG=3).good())
    head, good = "tinycore-tuned 1\n", entry[0].split(" # ")[0] + "\n"
    bad_digest, no_opts = good[1:], good.replace(entry[3], "what(1,2)")
    unfit = good.replace(entry[3], "upcast(9,4)")
    longer = good.replace(entry[2], entry[2] + ",longer")
    for name, (text, warning, used) in {
        "good": (head + good, None, entry[3]),
        "comments": (head + "\n# x\n   \n" + good, None, entry[3]),
        "another target": (head + longer, None, None),
        "a bad digest": (head + bad_digest, ":2: the digest", None),
        "no optimisations": (head + good + no_opts, ":3: these are no optimisations", entry[3]),
        "half a line": (head + good[:40], ":2: wanted", None),
        "no text": (head + good + "\udcff\udcfe\n", ":3: it is no text", entry[3]),
        "many": (head + good + "x\n" * 50, ":3: wanted: digest, target, optimisations; this line and 49 more",
                 entry[3]),
        "copies without end": (head + good.replace(entry[3], "upcast(0,32) upcast(1,32) unroll(2,32)"),
                               "it makes too many copies: the heuristic is used", None),
        "a list that does not fit": (head + unfit, "upcast(9,4): there is no such axis: the heuristic is used", None),
        "a later version": (head.replace("1", "2") + good, ":1: wanted \"tinycore-tuned 1\"", None),
        "empty": ("", ":1: wanted", None),
    }.items():
        file = box.write("wrong", text.encode("utf-8", "surrogateescape"))
        result = box.run(*CASE, DEV="CPU", DEBUG=3, TINY_TUNED=file).good()
        warnings = [line for line in result.err.splitlines() if "WARNING" in line]
        check(len(warnings) == (warning is not None), f"{name}: one warning at most\n{result}")
        check(warning is None or (warning in warnings[0] and file in warnings[0]), f"{name}: {warnings}")
        check(applied(result)[entry[4]] == (used or plain[entry[4]]), f"{name}\n{result}")
    for wrong in (box.path("none"), box.work):
        result = box.run(*CASE, DEV="CPU", TINY_TUNED=wrong).good()
        check(result.err.count("WARNING") == 1 and wrong in result.err, result)


@test("tune --check counts what of a file a model uses, and fails where something is not")
def counted(box):
    path, entries = tune(box, "matmul:32", "softmax:12x40")
    first, target = entries[0][1], entries[0][2]
    for models, used, status in ((("matmul:32",), 1, 1), (("softmax:12x40",), len(entries) - 1, 1)):
        result = box.run("tune", "--check", path, *models, DEV="CPU", BEAM=2)
        check(result.status == status, str(result))
        check(f"{path}: {used} of {len(entries)} entries for {target} are used" in result.out, result.out)
        check("tune again" in result.out and "search" not in result.err, str(result))
    with open(path, encoding="utf-8") as file:
        text = file.read()
    one = "".join(line + "\n" for line in text.splitlines() if not re.match("[0-9a-f]{32}", line) or line.startswith(first))
    whole = box.run("tune", "--check", box.write("one", one), "matmul:32", DEV="CPU").quiet()
    check("1 of 1 entries" in whole.out and "has 1 kernels, 0 without" in whole.out, whole.out)
    other = box.run("tune", "--check", box.write("other", one.replace(target, target + ",x")), "matmul:32", DEV="CPU")
    check(other.status == 1 and "0 of 0 entries" in other.out and "1 entries are for other targets" in other.out, str(other))
    check(box.run("tune", "--check", path, DEV="CPU").status == 2, "no model was taken")


@test("BEAM searches once; later runs and narrower searches read the cache, a wider one searches")
def cached(box):
    first = box.run(*CASE, DEV="CPU", DEBUG=2, BEAM=2).good()
    check(re.search(r"search matmul_32_32_r32: round 1, .* best .* us \(heuristic", first.err), first)
    check(re.search(r"search matmul_32_32_r32: .* 0 wrong, [\d.]+ s", first.err), first)
    for beam, searches in ((2, False), (1, False), (3, True)):
        result = box.run(*CASE, DEV="CPU", DEBUG=2, BEAM=beam, TINY_BEAM_SECONDS=1).good()
        check(("search matmul_32_32_r32:" in result.err) == searches, f"BEAM={beam}\n{result}")
    box.run(*CASE, DEV="CPU").quiet()
    path = box.path("tuned")
    again = box.run("tune", "--beam", 1, "-o", path, "matmul:32", DEV="CPU", DEBUG=2).good()
    check("search " not in again.err and os.path.getsize(path) > 40, again)
    off = box.run(*CASE, DEV="CPU", DEBUG=2, BEAM=1, TINY_BEAM_SECONDS=1, TINY_NO_CACHE=1).good()
    check("search matmul_32_32_r32:" in off.err, off)


@test("tune on the interpreter, and where nothing can be run")
def devices(box):
    text = box.run("tune", "--seconds", 1, "matmul:8", DEV="REF").quiet().out
    check(re.search(r"^[0-9a-f]{32} REF:REF:\S+ ", text, re.M), text)
    box.run("tune", "--seconds", 1, "matmul:8", DEV="NULL:CPU").refused("nothing could be searched")


@test("TINY_TUNED_OUT exports what any program computes, and TINY_TUNED takes it")
def exported(box):
    path = box.path("out")
    for _ in range(2):
        box.run(*CASE, "sum:40x30", DEV="CPU", BEAM=1, TINY_BEAM_SECONDS=1, TINY_TUNED_OUT=path).quiet()
    with open(path, encoding="utf-8") as file:
        head, *lines = file.read().splitlines()
    check(head == "tinycore-tuned 1" and len(lines) >= 4, lines)
    check(all(map(ENTRY.fullmatch, lines)) and len(set(lines)) * 2 == len(lines), lines)
    with open(path, "a", encoding="utf-8") as file:
        file.write(head + "\n")  # as of another process that began the file too
    box.run(*CASE, "sum:40x30", DEV="CPU", TINY_TUNED=path).quiet()
    box.run(*CASE, DEV="CPU", TINY_TUNED_OUT=path).quiet()
    with open(path, encoding="utf-8") as file:
        check(len(file.read().splitlines()) == len(lines) + 2, "a run without BEAM wrote")
    result = box.run(*CASE, DEV="CPU", BEAM=1, TINY_BEAM_SECONDS=1, TINY_TUNED_OUT=box.path("no", "such")).good()
    check(result.err.count("WARNING") == 1 and "No such file" in result.err, result)


@test("tune knows the training step, and its losses stay what they were")
def training(box):
    data, path = small_data.write(box, small_data.made(256, 100)), box.path("tuned")
    # A time-out that leaves every candidate out: what is looked at here is which kernels there are.
    box.run("tune", "--data", data, "-o", path, "fashion-mnist", DEV="CPU", TINY_BEAM_TIMEOUT=1).quiet()
    with open(path, encoding="utf-8") as file:
        check(len(file.read().splitlines()) > 20)
    job = ("train", "fashion-mnist", "--steps", 2, "--data", data, "--json")
    plain, tuned = box.run(*job, DEV="CPU").quiet(), box.run(*job, DEV="CPU", TINY_TUNED=path).quiet()
    for one, other in zip(plain.lines(), tuned.lines()):
        near(one["loss"], other["loss"], 1e-3, "loss")
    box.run("tune", "--data", box.path("none"), "fashion-mnist", DEV="CPU").refused("none")


@test("tune refuses what it does not know")
def input_(box):
    box.run("tune").refused("usage", status=2)
    box.run("tune", "--beam", 0, "--seconds", -1, "matmul:8").refused("usage", status=2)
    box.run("tune", "nonsense", DEV="CPU").refused("nonsense", "fashion-mnist", "matmul", status=2)
    box.run("tune", "/nope", DEV="CPU").refused("a .tir file, fashion-mnist or a case is wanted: there is no case “/nope”; there are matmul", status=2)
    box.run("tune", "matmul:x", DEV="CPU").refused("tune: “matmul:x” does not read as the case matmul:", status=2)
    box.run("tune", box.path("none.tir"), DEV="CPU").refused("none.tir", "No such file")
    box.run("tune", box.write("bad.tir", "sink("), DEV="CPU").refused("bad.tir")
    box.run("tune", "--seconds", 1, "-o", box.path("no", "such"), "matmul:8", DEV="CPU").refused("No such file")


main()
