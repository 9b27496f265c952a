#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Memory and start-up: the bars of bench/, with room for a busy machine."""
import json
import os
import shutil
import subprocess
import time

import small_data
from e2e import Skip, check, main, note, test

SANITIZED = os.environ.get("TINY_E2E_SANITIZED")
FIRST_ADD, EAGER_STEPS = os.environ["TINY_E2E_FIRST_ADD"], os.environ["TINY_E2E_EAGER_STEPS"]
DISCOVERY, REF_PLUGIN = os.environ["TINY_E2E_DISCOVERY"], os.environ["TINY_E2E_REF_PLUGIN"]
ROOM = 200 << 20


def run(box, *argv):
    start = time.monotonic()
    done = subprocess.run(argv, cwd=box.work, env=box.environment({"DEV": "CPU"}), check=False,
                          capture_output=True, text=True, timeout=400)
    check(done.returncode == 0 and done.stderr == "", f"{argv}: {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout), (time.monotonic() - start) * 1e3


def need_plain():
    if SANITIZED:
        raise Skip("a sanitizer's memory and time are not ours")


@test("process start to the sum of 1000 elements, caches warm")
def first_add(box):
    need_plain()
    run(box, FIRST_ADD)
    walls = sorted(run(box, FIRST_ADD)[1] for _ in range(15))
    note(f"median {walls[7]:.1f} ms, least {walls[0]:.1f} ms (bar 30)")
    check(walls[0] <= 30, walls)


@test("un-replayed training steps: no growth, and little beyond what is live")
def eager_steps(box):
    need_plain()
    result, _ = run(box, EAGER_STEPS, "100")
    note(result)
    check(result["loss"] < 1, result)
    check(result["rss_growth_bytes"] <= 1 << 20, result)
    check(result["rss_peak_bytes"] <= 1.5 * result["live_bytes"] + ROOM, result)


@test("plugins: start-up with 50 manifests, probing one, the core's part of a submit, a submit to another process")
def plugins(box):
    need_plain()
    folder = box.folder("plugins.d")
    bars = {"start_up_cold_ms": 3, "start_up_warm_ms": 0.5, "probe_ms": 10, "submit_overhead_ns": 200, "submit_worker_us": 15}
    best = {}
    # A busy machine may be some times as slow for a while, and is measured again; what a start-up asks of the system is counted as well.
    for attempt in range(12):
        result, _ = run(box, DISCOVERY, box.folder(f"plugins.d/{attempt}"), REF_PLUGIN)
        best = {name: min(result[name], best.get(name, result[name])) for name in [*bars, "start_up_system_ms"]}
        # The bars are for machines where the system itself, asked the same, takes up to 0.133 ms; where it takes longer, so may we.
        bars["start_up_warm_ms"] = max(0.5, 0.5 / 0.133 * best["start_up_system_ms"])
        bars["start_up_cold_ms"] = max(3, 3 / 0.133 * best["start_up_system_ms"])
        check(result["parsed_cold"] == result["manifests"] and result["parsed_warm"] == 0, result)
        if all(best[name] <= bar for name, bar in bars.items()):
            break
        time.sleep(attempt)
    note(f"{best} in {attempt + 1} attempts (bars {bars})")
    check(all(best[name] <= bar for name, bar in bars.items()), best)
    folder = box.path("plugins.d", "0")
    strace = shutil.which("strace")
    if strace is None:
        raise Skip("there is no strace")
    counts = []
    for where in (folder, box.folder("empty")):
        done = subprocess.run([strace, "-f", "-qq", "-o", box.path("trace"), DISCOVERY, where], check=False, cwd=box.work,
                              env=box.environment({}), capture_output=True, text=True)
        if done.returncode != 0:
            raise Skip(f"strace may not trace here: {done.stderr[:100]}")
        with open(box.path("trace"), encoding="utf-8", errors="replace") as file:
            counts.append(len([line for line in file if "plugins.d" in line or " read(" in line]))
    note(f"{counts[0] - counts[1]} calls for {result['manifests']} manifests")
    check(0 < counts[0] - counts[1] <= 2 * result["manifests"], counts)


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
