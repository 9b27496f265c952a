# SPDX-License-Identifier: MIT
"""The linear example: an accelerator with its own instructions, asynchronous and with memory that is not
coherent. What `tinycore new-plugin` makes of it builds from an installation and computes what it should; what
a driver may forget there is noticed."""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from prefix import SANITIZED_FLAGS, SANITIZED_OPTIONS, Prefix
from e2e import check, main, note, test

PROGRAMS = {path.rpartition("/")[2]: path for path in os.environ["TINY_SDK_DEVICE_TESTS"].split(":")}
HERE = pathlib.Path(__file__).parent
folder = tempfile.TemporaryDirectory(prefix="tiny-sdk-")
prefix = Prefix(folder.name)


class Loom:
    """A backend LOOM made from the template, built once for all tests."""

    def __init__(self):
        self.env = prefix.environment({"HOME": folder.name, "TINY_CACHE_DIR": f"{folder.name}/cache"})
        prefix.call("tinycore", "new-plugin", "loom", "--kind", "linear", folder=folder.name, env=self.env)
        self.folder = pathlib.Path(folder.name, "tiny-loom")
        self.made = sorted(self.folder.rglob("*"))
        self.build = prefix.build(self.folder, *SANITIZED_OPTIONS)
        self.env.update(TINY_PLUGIN_FILES=str(self.build / "uninstalled.json"), DEV="LOOM",
                        TINY_PLUGIN_PATH=str(prefix.root / "share/tinycore-1.0/plugins.d"),
                        TINY_SCAN_HELPER=str(prefix.root / "libexec/tinycore-1.0/tiny-scan"))

    @contextlib.contextmanager
    def changed(self, name, before, after):
        """Built with another text in one of its files."""
        path = self.folder / name
        text = path.read_text()
        check(before in text, f"{name} has no “{before}” any more")
        try:
            path.write_text(text.replace(before, after))
            prefix.call("ninja", "-C", "build", folder=self.folder, env=self.env)
            yield self
        finally:
            path.write_text(text)
            prefix.call("ninja", "-C", "build", folder=self.folder, env=self.env)

    def run(self, name, *words, board="", good=True):
        start = time.monotonic()
        done = subprocess.run([PROGRAMS[name], *words], env={**self.env, "LOOM_BOARD": board}, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, encoding="utf-8",
                              errors="replace")
        said = f"{name}, board “{board}”: status {done.returncode}\n{done.stdout[-2000:]}"
        if not good: # a number is not what it should be; a crash of the program would be no notice
            compared = r"ERROR:.*assertion failed \(.*: \(\S+ == \S+\)$|: element \d+ is \S+ on the device, \S+ by the oracle$"
            check(re.search(compared, done.stdout, re.M), f"nobody noticed: {said}")
            return
        check(done.returncode == 0, said)
        note(f"{name}, board “{board}”: {time.monotonic() - start:.1f} s")
        if name != "test-differential":
            ran = [line for line in done.stdout.splitlines() if line.startswith("ok ") and "SKIP" not in line]
            check(ran and "not ok" not in done.stdout, said)


loom = Loom()


@test("a linear plugin is found, and computes what every op should")
def computes(box):
    for path in [path for path in loom.made if path.is_file()]:
        check("sample" not in (path.name + path.read_text()).lower(), f"{path} still speaks of the template")
    listed = prefix.call("tinycore", "devices", "--json", env=loom.env).splitlines()
    check(("LOOM", "ready") in [(d["name"], d["state"]) for d in map(json.loads, listed)], listed)
    shown = [json.loads(line) for line in prefix.call("tinycore", "inspect", "loom", "--json", env=loom.env).splitlines()]
    (renderer,) = [line for line in shown if line["part"] == "renderer"]
    check(renderer["way"] == "linear" and renderer["ops"]["add"]["f32"]["state"] == "native", renderer)
    for name in PROGRAMS:
        loom.run(name, *(["--seed", "2200001", "--count", "150", "--no-f64"] if name == "test-differential" else []))


@test("so it does without windows to its memory, and when it is late")
def boards(box):
    for name in "test-tensor-device", "test-tensor-index", "test-stress-threads":
        loom.run(name, board="card,latency=50")
        loom.run(name, board="latency=50")


@test("level core's cases of memory and queues pass on boards without windows, and on late ones")
def conforms(box):
    groups = [word for name in ("memory", "limits", "order", "points", "claims") for word in ("--filter", f"{name}/*")]
    for board, is_mapped in ("card", False), ("latency=50", True):
        path = box.path("certificate.json")
        prefix.call("tinycore", "conformance", "LOOM", *groups, "--json", path, env={**loom.env, "LOOM_BOARD": board})
        found = json.loads(pathlib.Path(path).read_text())
        check(found["score"]["must"] == found["score"]["passed"] > 100, found["score"])
        check(any(row["name"] == "memory/map/coherent" for row in found["absent"]) != is_mapped, f"{board}: {found['absent']}")


@test("values that find no register are kept in the stash")
def few_registers(box):
    with loom.changed("tiny-loom-isa.h", "LOOM_REGISTERS = 64", "LOOM_REGISTERS = 6"):
        loom.run("test-tensor-device")
        loom.run("test-differential", "--seed", "2210001", "--count", "100", "--no-f64")


@test("a driver that forgets to synchronise memory, or to wait, is noticed")
def forgets(box):
    either = "direction == TINY_SYNC_TO_HOST ? board_invalidate : board_clean"
    for before, after in ((either, "true ? board_clean : board_invalidate"),
                          (either, "true ? board_invalidate : board_clean"),
                          ("board_ring_wait (queue->ring, point, timeout_ns)", "BOARD_OK")):
        with loom.changed("loom.c", before, after):
            loom.run("test-tensor-device", board="latency=50", good=False)


def say(mode, board):
    program = pathlib.Path(folder.name, "reads-failures")
    flags = prefix.call("pkg-config", "--cflags", "--libs", "tinycore-1.0", env=loom.env).split()
    prefix.call("cc", HERE / "reads-failures.c", "-o", program, *SANITIZED_FLAGS, *flags, env=loom.env)
    return prefix.call(program, mode, env={**loom.env, "LOOM_BOARD": board})


@test("work goes on after realize returned, and failures come with what they spoilt")
def failures(box):
    text = say("late", "latency=300000")
    check(text == "read first: 4 4\nread a: 4 4\nin time\n", text)
    why = "LOOM: running commands: a fault was asked for at run 2"
    text = say("fault", "fault=2")
    check(re.fullmatch(rf"read b: \d+: {why}\nread b: \d+: {why}\nrealize c: {why}\n"
                       "read a: 4 4\nread x: 2 2\nread d: 16 16\n", text), text)
    text = say("lost", "lost=2")
    check("read b: " in text and "the board does not answer any more" in text and "device was lost" in text
          and "16" not in text, text)
    text = prefix.call("tinycore", "bench", "matmul:64", env={**loom.env, "LOOM_BOARD": "fault=1"}, status=1)
    check("LOOM: running commands: a fault was asked for at run 1" in text, text)


@test("what a vendor writes for it is at most 600 lines of code")
def short(box):
    n = 0
    for path in pathlib.Path(os.environ["TINY_SDK_EXAMPLES"], "linear").glob("*sample*.[ch]"): # the rest is hardware
        code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        n += len([line for line in code.splitlines() if line.strip()])
    check(400 < n <= 600, f"{n} lines")


if __name__ == "__main__":
    sys.exit(main())
