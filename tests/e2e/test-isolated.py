#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""DEV=ISOLATED+NAME: training in another process gives the numbers of this one to the last bit, and what becomes of
that process is said."""
import os
import re
import signal
import subprocess
import time

import small_data
from e2e import check, main, test

ARGS = ["train", "fashion-mnist", "--seed", 3, "--json"]


def losses(text):
    return re.findall(r'"loss": ([^,]+)', text)


@test("training has the losses of the same backend in this process")
def same(box):
    data = small_data.write(box, small_data.made(600, 100))
    runs = [box.run(*ARGS, "--steps", 12, "--batch", 32, "--data", data, DEV=dev).quiet()
            for dev in ("CPU", "ISOLATED+CPU")]
    check(len(losses(runs[0].out)) >= 2 and losses(runs[0].out) == losses(runs[1].out), runs[1])
    check('"ISOLATED+CPU"' in runs[1].out, runs[1])


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


@test("a process that is killed while it trains is an error that says so, and the program ends in order")
def killed(box):
    data = small_data.write(box, small_data.made(600, 100))
    command = box.start(*ARGS, "--steps", 100000, "--batch", 32, "--data", data, DEV="ISOLATED+CPU")
    command.stdout.readline()  # it trains
    os.kill(children(command.pid)[0], signal.SIGKILL)
    out, err = command.communicate(timeout=60)
    check(command.returncode == 1, (command.returncode, err))
    check(b"ISOLATED+CPU: " in err and b"its process was killed (signal 9) during " in err, err)
    check(err.count(b"\n") == 1, err)


@test("the end of the program is the end of the process, whatever ends it")
def ends(box):
    data = small_data.write(box, small_data.made(600, 100))
    for number in (signal.SIGINT, signal.SIGKILL):
        command = box.start(*ARGS, "--steps", 100000, "--batch", 32, "--data", data, DEV="ISOLATED+CPU")
        command.stdout.readline()
        worker = children(command.pid)
        command.send_signal(number)
        command.communicate(timeout=60)
        deadline = time.monotonic() + 10
        while any(is_running(pid) for pid in worker) and time.monotonic() < deadline:
            time.sleep(0.05)
        check(worker and not any(is_running(pid) for pid in worker), worker)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return ") Z " not in file.read()
    except FileNotFoundError:
        return False


main()
