# SPDX-License-Identifier: MIT
"""The guide's pages on devices that lack something: their code is PEBBLE's, the cases that they name are there, and
PEBBLE, which opens once, passes level core and goes on after a fault and after it was lost."""
import fcntl
import json
import os
import pathlib
import re
import subprocess
import tempfile

from e2e import check, main, test
from suite import OWN, PATIENT, core_passed

COMMAND = os.environ["TINY_E2E_COMMAND"]
PAGES = sorted(pathlib.Path(os.environ["TINY_SDK_GUIDE"]).glob("*.md"))
SOURCES = [path.read_text() for path in sorted(pathlib.Path(__file__).parent.glob("pebble/*.c"))]
folder = tempfile.TemporaryDirectory(prefix="tiny-guide-")
LOCK = pathlib.Path(folder.name, "lock")
ENV = {**os.environ, "TINY_PLUGIN_FILES": os.environ["TINY_PEBBLE_MANIFEST"], "CHIP_LOCK": str(LOCK),
       "TINY_CACHE_DIR": f"{folder.name}/cache"}


def call(*argv, status=0, **changes):
    done = subprocess.run(argv, env={**ENV, **changes}, text=True, check=False, timeout=500, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    check(done.returncode == status, f"$ {' '.join(argv)}\nstatus {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def run_program(**changes):
    return call(os.environ["TINY_PEBBLE_PROGRAM"], **changes).splitlines()


@test("the code of each page is compiled")
def compiled(box):
    blocks = [(page.name, block) for page in PAGES for block in re.findall(r"^```c\n(.*?)^```$", page.read_text(), re.M | re.S)]
    check(len(blocks) > 6, f"{len(blocks)} pieces of code")
    for page, block in blocks:
        check(any(block in source for source in SOURCES), f"{page}: PEBBLE has not\n{block}")


@test("the cases that pages name are in the suite")
def named(box):
    listed = call(COMMAND, "conformance", "PEBBLE", "--level", "full", "--list")
    names = re.findall(r"^[a-z]+ +([a-z]+/\S+)$", listed, re.M)
    check(len(names) > 3000, listed[:500])
    groups = "|".join({name.partition("/")[0] for name in names})
    for page in PAGES:
        for word in re.findall(rf"[`' ]((?:{groups})/[a-z0-9/*-]+)[`' ]", page.read_text()):
            check(any(re.fullmatch(word.replace("*", ".*"), name) for name in names), f"{page.name}: there is no case {word}")


@test("a chip that opens once passes level core, whatever number of workers is asked for")
def certified(box):
    report = box.path("certificate.json")
    said = call(COMMAND, "conformance", "PEBBLE", "--jobs", "4", "--json", report, *PATIENT, status=OWN)
    check("one worker runs at a time" in said, said[-2000:])
    core_passed(json.loads(pathlib.Path(report).read_text()))


@test("a kernel that fails costs its own result")
def fault(box):
    lines = run_program(CHIP_FAULT_AT="2")
    check("a kernel left its memory" in lines[1] and lines[:1] + lines[2:] == ["9", "15", "18", "21"], lines)


@test("a chip that was lost is opened again before it is closed")
def lost(box):
    lines = run_program(CHIP_GONE_AT="2")
    check("does not answer (switch it off and on); again: opened" in lines[1], lines)
    check(lines[:1] + lines[2:] == ["9", "15", "18", "21"], lines)


@test("a chip that another program has is in use, and nothing worse")
def busy(box):
    with LOCK.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        line = run_program()[0]
        check("the chip is in use by another program" in line, line)
        devices = call(COMMAND, "devices")
        check("quarantined" not in devices, devices)
        check("REF" in call(COMMAND, "bench", "elementwise:64", DEV="PEBBLE|REF", DEBUG="1"), "REF is not tried")
    check(run_program() == ["9", "12", "15", "18", "21"], "it is not tried again")


main()
