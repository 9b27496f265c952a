#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TINY_RECORD=FILE and tinycore replay: what is recorded plays again with the same answers, elsewhere with near ones; what differs is
named; and no file, whatever is in it, does more than be refused."""
import fcntl
import hashlib
import json
import os
import random
import resource
import struct
import subprocess

from e2e import check, main, test

PROGRAM = os.environ["TINY_E2E_SMALL_STEPS"]
MASK = (1 << 64) - 1


def record(box, what="train", name="out.rec", **env):
    """Runs the program recorded and the same without: what it says is the same. The record's path."""
    path = box.path(name)
    runs = [subprocess.run([PROGRAM, what], env=box.environment({**env, **more}), stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, timeout=120)
            for more in ({}, {"TINY_RECORD": path})]
    check(runs[0].stdout == runs[1].stdout != "", runs)
    check(runs[0].stderr == runs[1].stderr == "", runs)
    return path


def outcome(result, status):
    check(result.status == status, result)
    return result.lines()[-1]


def frames(content):
    """Offset, kind, and the bytes of each frame."""
    at = 8
    while at < len(content):
        kind, _, n_bytes = struct.unpack_from("<QQQ", content, at)
        yield at, kind, content[at + 40:at + 40 + n_bytes]
        at += 40 + n_bytes


def checksum(data):
    total = 0xcbf29ce484222325
    for (word,) in struct.iter_unpack("<Q", data):
        total = ((total ^ word) * 0x100000001b3) & MASK
        total ^= total >> 32
    return total


def rewrite(content, at, payload):
    """The record with other bytes, of the same number, in the frame at @at, and checksums that fit."""
    head = content[at:at + 24] + struct.pack("<Q", checksum(payload))
    return content[:at] + head + struct.pack("<Q", checksum(head)) + payload + content[at + 40 + len(payload):]


@test("a training step plays again with the same answers: on its own backend, with its own binaries, and on others")
def same(box):
    path = record(box, DEV="CPU")
    for more in ([], ["--binaries"], ["--device", "REF"], ["--device", "ISOLATED+CPU"]):
        result = outcome(box.run("replay", path, "--json", *more).quiet(), 0)
        check(result["outcome"] == "same" and result["n_compared"] >= 2 and result["n_calls"] > 20, result)
    for device, other in (("REF", "CPU"), ("ISOLATED+CPU", "REF")):
        path = record(box, DEV=device)
        check("CPU" in box.run("replay", path).quiet().out or device == "REF")
        box.run("replay", path, "--device", other).quiet()


@test("a record says of what it is, and lists its calls")
def listing(box):
    path = record(box, DEV="CPU")
    head = box.run("replay", path).quiet().out
    for part in ("recorded by ", "small-steps", "backend CPU", "build-id", "same: ", " answers compared"):
        check(part in head, head)
    lines = box.run("replay", path, "--list", "--json").quiet().lines()
    names = [line["function"] for line in lines]
    for name in ("head", "backend", "open", "info", "target", "compile", "program_load", "alloc", "submit", "downloaded", "end"):
        check(name in names, names)
    check("DEV=CPU\n" in lines[0]["environment"], lines[0])
    text = box.run("replay", path, "--list").quiet().out
    check(" dispatch program=" in text and " → ok" in text and "upload to=" in text, text[:3000])
    half = len(lines) // 2
    until = outcome(box.run("replay", path, "--json", "--until", lines[half]["call"]), 3)
    check(until["outcome"] == "nothing compared" and until["n_calls"] > 5, until)


@test("several threads and several devices in one record")
def several(box):
    for what, device in (("threads", "CPU"), ("devices", "CPU")):
        path = record(box, what, DEV=device)
        result = outcome(box.run("replay", path, "--json").quiet(), 0)
        check(result["n_compared"] >= (20 if what == "threads" else 2), result)
    lines = box.run("replay", path, "--list", "--json").quiet().lines()
    check({line["name"] for line in lines if line["function"] == "backend"} == {"CPU", "REF"}, lines)


@test("what a program that was killed leaves plays up to there")
def killed(box):
    path = box.path("killed.rec")
    run = subprocess.run([PROGRAM, "killed"], env=box.environment({"DEV": "CPU", "TINY_RECORD": path}), stdout=subprocess.PIPE,
                         timeout=60)
    check(run.returncode == -9, run)
    check(outcome(box.run("replay", path, "--json").quiet(), 0)["n_compared"] == 2)
    check("end" not in [line["function"] for line in box.run("replay", path, "--list", "--json").quiet().lines()])


@test("a backend that computes something else: the kernel, the element, what was expected and found")
def broken(box):
    manifest = json.loads(open(os.path.join(os.environ["TINY_PLUGIN_PATH"].split(":")[0], "ref.json")).read())
    manifest.update(name="BROKEN", module=os.environ["TINY_E2E_BROKEN_PLUGIN"])
    files = box.write("plugins/broken.json", json.dumps(manifest))
    env = {"TINY_PLUGIN_FILES": files, "TINY_BROKEN_AROUND": os.environ["TINY_E2E_REF_PLUGIN"]}
    path = record(box, DEV="BROKEN", TINY_BROKEN="none", **env)
    outcome(box.run("replay", path, "--json", TINY_BROKEN="none", **env).quiet(), 0)
    result = outcome(box.run("replay", path, "--json", TINY_BROKEN="scale-1015", **env), 1)
    check(result["outcome"] == "differs" and result["in"] == "download" and result["kernel"], result)
    expected, found = float(result["expected"]), float(result["found"])
    check(abs(found / expected - 1) > 0.004 and result["n_different"] <= result["n_elements"], result)
    text = box.run("replay", path, TINY_BROKEN="scale-1015", **env)
    check(f"which kernel last wrote: {result['kernel']}: element" in text.out, text)
    beside = outcome(box.run("replay", path, "--json", "--beside", "REF", TINY_BROKEN="scale-1015", **env), 1)
    check(beside["in"] == "dispatch" and beside["kernel"] and beside["call"] <= result["call"], (beside, result))
    check(abs(float(beside["found"]) / float(beside["expected"]) - 1.015) < 1e-5, beside)
    text = box.run("replay", path, "--beside", "REF", TINY_BROKEN="scale-1015", **env)
    check(f"which is written by kernel {beside['kernel']}: element" in text.out and ": REF " in text.out, text)
    check(outcome(box.run("replay", path, "--json", "--beside", "REF", TINY_BROKEN="none", **env).quiet(), 0)["n_compared"] > 20)
    # On REF the loss is the recorded one; of the broken backend it is not.
    bad = box.path("bad.rec")
    subprocess.run([PROGRAM], env=box.environment({"DEV": "BROKEN", "TINY_BROKEN": "scale-1015", "TINY_RECORD": bad, **env}),
                   stdout=subprocess.DEVNULL, check=True, timeout=60)
    outcome(box.run("replay", bad, "--json", TINY_BROKEN="scale-1015", **env).quiet(), 0)
    outcome(box.run("replay", bad, "--json", "--device", "REF", TINY_BROKEN="scale-1015", **env), 1)


@test("a record that was changed: the first answer that differs; --tolerance lets it pass")
def changed(box):
    path = record(box, DEV="CPU")
    content = open(path, "rb").read()
    kinds = [(at, kind, payload) for at, kind, payload in frames(content)]
    last = kinds[-2]  # of the last download: a loss, and its digest
    block = [entry for entry in kinds if entry[1] == 1 and struct.unpack_from("<Q", entry[2])[0]
             == struct.unpack_from("<Q", last[2], len(last[2]) - 8)[0]][0]
    value = bytearray(block[2])
    place = len(value) - 8
    check(struct.unpack_from("<Q", value, place - 8)[0] == 4, (kinds[-3:], block))
    loss = struct.unpack_from("<f", value, place)[0]
    struct.pack_into("<f", value, place, loss * 1.001)
    damaged = box.write("damaged.rec", rewrite(content, block[0], bytes(value)))
    box.run("replay", damaged).refused("a block of data is not what its digest says", status=3)
    digest = hashlib.sha256(bytes(value[place:place + 4])).hexdigest()[:32].encode()
    old = bytes(value[16:48])
    value[16:48] = digest
    content = rewrite(content, block[0], bytes(value))
    check(last[2].count(old) == 1, last)
    other = box.write("other.rec", rewrite(content, last[0], last[2].replace(old, digest)))
    result = outcome(box.run("replay", other, "--json"), 1)
    check(abs(float(result["found"]) - loss) < 1e-6 and abs(float(result["expected"]) / loss - 1.001) < 1e-5, result)
    check(result["n_elements"] == 1 and result["kernel"], result)
    outcome(box.run("replay", other, "--json", "--tolerance", "0.01").quiet(), 0)
    outcome(box.run("replay", other, "--json", "--device", "REF"), 1)


@test("files that are cut off, damaged or none: refused with the place")
def bad_files(box):
    path = record(box, DEV="CPU")
    content = open(path, "rb").read()
    numbers = random.Random(5)
    ends = [at for at, _, _ in frames(content)]
    for at in [0, 5, 8, 20, *numbers.sample(range(len(content)), 12)]:
        cut = box.write("cut.rec", content[:at])
        result = box.run("replay", "--list", cut)
        check(result.status == (0 if at >= ends[1] else 2), (at, result))
        check(at in ends or "cut off at byte" in result.err or result.status == 2, (at, result))
    for _ in range(12):
        at = numbers.randrange(8, len(content))
        spoilt = content[:at] + bytes([content[at] ^ 1 << numbers.randrange(8)]) + content[at + 1:]
        box.run("replay", box.write("spoilt.rec", spoilt)).refused("damaged", "byte ", status=2)
    box.run("replay", box.write("text.rec", "hello")).refused("no record", status=2)
    box.run("replay", box.root).refused("it is a folder", status=2)
    box.run("replay", box.path("absent.rec")).refused("absent.rec", status=2)
    for argv in ([], [path, path]):
        box.run("replay", *argv).refused("usage", status=2)
    box.run("replay", path, "--device", "NOPE").refused("NOPE", status=3)


@test("numbers that name nothing, or too much, in frames that are whole")
def hostile(box):
    path = record(box, DEV="REF")
    content = open(path, "rb").read()
    numbers = random.Random(11)
    all_frames = [entry for entry in frames(content) if len(entry[2]) >= 8 and entry[1] not in (0, 1)]
    for _ in range(40):
        at, _, payload = numbers.choice(all_frames)
        words = bytearray(payload)
        struct.pack_into("<Q", words, 8 * numbers.randrange(len(words) // 8),
                         numbers.choice((0, 1, 3, 77, 1 << 31, 1 << 32, 1 << 63, MASK)))
        result = box.run("replay", box.write("hostile.rec", rewrite(content, at, bytes(words))), timeout=30)
        check(result.status in (0, 1, 2, 3) and "Sanitizer" not in result.err, result)


@test("no room: one warning, and the program goes on; the record has whole frames")
def full(box):
    os.mkfifo(box.path("pipe"))
    for path, most, words in ((box.path("rlimit.rec"), 20000, "(ulimit -f); nothing more"), (box.path("none.rec"), 2000, "too few bytes"),
                              ("/dev/full", None, "no plain file"), (box.path("pipe"), None, "nothing is recorded")):
        run = subprocess.run([PROGRAM], env=box.environment({"DEV": "REF", "TINY_RECORD": path, "TINY_NO_CACHE": "1"}),
                             preexec_fn=most and (lambda n=most: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        check(run.returncode == 0 and run.stdout.count("loss") == 2, run)
        check(run.stderr.count("TINY_RECORD=") == 1 and words in run.stderr, run)
    check(not os.path.exists(box.path("none.rec")), "a file that holds nothing")
    run = subprocess.run([PROGRAM], env=box.environment({"DEV": "REF", "TINY_RECORD": box.path("r"), "TINY_RECORD_MB": "-1"}),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    check("TINY_RECORD_MB=-1 is not from 0" in run.stderr, run)
    lines = box.run("replay", box.path("rlimit.rec"), "--list", "--json").quiet().lines()
    check(lines[-1]["function"] == "stopped", lines[-1])


@test("a file that another process records into is left alone; %p makes two of them")
def shared(box):
    path = box.path("shared.rec")
    with open(path, "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        run = subprocess.run([PROGRAM], env=box.environment({"DEV": "REF", "TINY_RECORD": path}), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=60)
        check(run.returncode == 0 and "another process" in run.stderr and os.path.getsize(path) == 0, run)
    subprocess.run([PROGRAM], env=box.environment({"DEV": "REF", "TINY_RECORD": box.path("a-%p.rec")}), stdout=subprocess.DEVNULL,
                   check=True, timeout=60)
    check(any(os.path.basename(name).startswith("a-") and "%" not in name for name in box.files()), box.files())


main()
