#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cost of an eager operation from Python in instructions, which are the same on a busy machine.

The bar is half as much again as Debian 12's interpreter and libraries need: a second call of the library for each
operation, or one that is looked up anew, is above it. bench/eager-add.py has the times.

TAP. Run in the build's environment, by the interpreter that has PyGObject; argument 1 is the source folder."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import checks

N_INSTRUCTIONS = 42000
TURNS = 41  # of eager-add.py


def instructions(folder, iterations, tool="callgrind"):
    """Those of a whole process that adds and realises so often."""
    program = pathlib.Path(sys.argv[1], "bench", "eager-add.py")
    out = [f"--callgrind-out-file={folder}/out"] if tool == "callgrind" else []
    env = {**os.environ, "DEV": "CPU", "TINY_CACHE_DIR": folder, "TINY_THREADS": "1", "MALLOC_PERTURB_": "0", "PYTHONHASHSEED": "0"}
    done = subprocess.run(["valgrind", f"--tool={tool}", *out, sys.executable, program, str(iterations), "add"], env=env,
                          check=False, capture_output=True, text=True)
    checks.equal(done.returncode, 0, done.stderr)
    found = re.search(r"Collected : (\d+)", done.stderr)
    return int(found[1]) if found else 0


def test_add():
    with tempfile.TemporaryDirectory() as folder:
        instructions(folder, 1, tool="none")  # compiles for the processor that valgrind shows
        few, more = (instructions(folder, n) for n in (5, 30))
    found = (more - few) // (25 * TURNS)
    print(f"# {found} instructions (bar {N_INSTRUCTIONS})")
    checks.true(found <= N_INSTRUCTIONS, f"{found} instructions")


if shutil.which("valgrind") is None or "libasan" in os.environ.get("LD_PRELOAD", "") or "libtsan" in os.environ.get("LD_PRELOAD", ""):
    print("1..0 # SKIP there is no valgrind, or a sanitizer in its place")
    sys.exit(0)
sys.exit(checks.run(globals()))
