#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks tests/rotation.py with a meson of its own, which has two tests in each suite and sleeps or fails when told: each
test has one turn, and a part that fails or does not end is a failure that names what did not end.

usage: check-rotation.py ROOT"""
import os
import pathlib
import subprocess
import sys
import tempfile

MESON = """#!/usr/bin/env python3
import json, os, sys, time
if sys.argv[1] == "introspect":
    suites = ("slow", "fuzz", "sanitize", "packaging")
    print(json.dumps([{"name": f"{s}/{i}", "suite": ["p:" + s]} for s in suites for i in range(6)]))
else:
    print("ran", *sys.argv[sys.argv.index("--suite") + 2:], flush=True)
    time.sleep(float(os.environ["SLEEPS"]))
    sys.exit(int(os.environ["STATUS"]))
"""
root = pathlib.Path(sys.argv[1])


def rotation(folder, *argv, sleeps=0, status=0):
    path = f"{folder}:{os.environ['PATH']}"
    return subprocess.run([sys.executable, root / "tests" / "rotation.py", folder, *argv], check=False, text=True,
                          capture_output=True, env={**os.environ, "PATH": path, "SLEEPS": str(sleeps), "STATUS": str(status)})


with tempfile.TemporaryDirectory() as folder:
    stub = pathlib.Path(folder) / "meson"
    stub.write_text(MESON)
    stub.chmod(0o755)
    n = sum(not line.startswith(" ") for line in rotation(folder, "list").stdout.splitlines())
    ran = [name for turn in range(n) for line in rotation(folder, str(turn)).stdout.splitlines()
           if line.startswith("ran") for name in line.split()[1:]]
    assert sorted(ran) == sorted(f"{s}/{i}" for s in ("slow", "fuzz", "sanitize", "packaging") for i in range(6)), ran
    assert rotation(folder, str(n)).stdout.splitlines()[0] == rotation(folder, "0").stdout.splitlines()[0]
    assert rotation(folder, "0", status=1).returncode == 1
    hung = rotation(folder, "0", "0.01", sleeps=60)
    assert hung.returncode == 1 and "did not end within 0.01 minutes. Not ended: slow/0 slow/1" in hung.stderr, hung
print(f"rotation: {n} parts, nothing wrong")
