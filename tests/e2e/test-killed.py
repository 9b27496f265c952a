#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two processes that are killed while they fill one cache and save to the same files: every entry and every file is whole,
whenever that was. TINY_E2E_ROUNDS: how often (50)."""
import hashlib
import json
import os
import random
import re
import struct
import subprocess
import tempfile
import time

from e2e import check, main, note, test

ROUNDS = int(os.environ.get("TINY_E2E_ROUNDS", "50"))
WORK = os.environ["TINY_E2E_KILLED_WORK"]
MAGIC = b"TINYPRG2"


def has_unnamed():
    """True if the file system of temporary files has such without a name."""
    try:
        os.close(os.open(tempfile.gettempdir(), os.O_TMPFILE | os.O_RDWR, 0o600))
    except (OSError, AttributeError):
        note("no files without a name here: what a killed process was writing may be left")
        return False
    return True


HAS_UNNAMED = has_unnamed()


def check_entries(box, seen):
    """How many there are; those that are as they were seen before are not read again."""
    folder = os.path.join(box.cache, "programs")
    entries = [name for name in os.listdir(folder) if re.fullmatch("[0-9a-f]{32}", name)] if os.path.isdir(folder) else []
    for name in entries:
        path = os.path.join(folder, name)
        identity = os.stat(path).st_ino
        if seen.get(name) == identity:
            continue
        with open(path, "rb") as file:
            content = file.read()
        digest = hashlib.sha256(name.encode() + b"\0" + content[40:]).digest()
        check(content[:8] == MAGIC and content[8:40] == digest, f"{path} is damaged")
        seen[name] = identity
    return len(entries)


def arrays_of(path, content):
    """The arrays of a safetensors file, each with one value in all places."""
    check(len(content) > 8, f"{path} has {len(content)} bytes")
    length = struct.unpack("<Q", content[:8])[0]
    check(length <= len(content) - 8, f"{path} is cut off")
    data, found = content[8 + length:], {}
    for name, one in json.loads(content[8:8 + length]).items():
        begin, end = one["data_offsets"]
        found[name] = (end - begin, set(data[i:i + 4] for i in range(begin, end, 4)))
    check(sum(n for n, _ in found.values()) == len(data), f"{path} has {len(data)} bytes of data")
    return found


def check_files(folder):
    """Files that are saved are whole, and so are those that have not taken their place: no part of one is there."""
    for name in os.listdir(folder):
        if name.startswith(".") and not HAS_UNNAMED:
            continue
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            content = file.read()
        if name.endswith(".tir") or content.startswith(b"//"):
            check(content.startswith(b"// stage: tensor\n") and content.endswith(b")\n") and b"sink" in content, f"{path} is cut off")
            continue
        found = arrays_of(path, content)
        check(found.keys() in ({"a", "b"}, {"constant0"}), f"{path}: {list(found)}")
        check(len(set.union(*(values for _, values in found.values()))) == 1, f"{path} is of more than one saving")


@test(f"killed {ROUNDS} times, two processes leave no damaged entry and no half of a file")
def killed(box):
    folder, random_delay, seen, begin = box.path("saved"), random.Random(5), {}, time.monotonic()
    os.mkdir(folder)
    for i in range(ROUNDS):
        processes = [subprocess.Popen([WORK, folder, str(i * 40 + which * 20)], env=box.environment({"DEV": "CPU"}), cwd=box.work,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for which in range(2)]
        for process in processes:  # they work, and are somewhere in that
            process.stdout.read(1)
        time.sleep(random_delay.uniform(0, 0.03))
        for process in processes:
            process.kill()
        for process in processes:
            err = process.communicate()[1].decode(errors="replace")
            check(err == "" and process.returncode == -9, f"exit status {process.returncode}\n{err}")
        n_entries = check_entries(box, seen)
        check_files(folder)
    n_left = sum(name.startswith(".") for name in os.listdir(folder))
    note(f"{n_entries} entries, {n_left} whole files under another name, {time.monotonic() - begin:.1f} s")
    check(n_entries >= min(ROUNDS, 90), f"{n_entries} entries")


main()
