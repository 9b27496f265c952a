#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks tests/rotation.py with a meson of its own, which has six tests in each suite and sleeps or fails when told: each
test has one turn; a part that fails is a failure; one that does not end is none, but names what was left; a test that
could outlast a part is refused; parts of which all is left out have no turn.

usage: check-rotation.py ROOT"""
import os
import pathlib
import subprocess
import sys
import tempfile

MESON = """#!/usr/bin/env python3
import json, os, signal, sys, time
if sys.argv[1] == "introspect":
    suites = ("slow", "fuzz", "sanitize", "packaging")
    print(json.dumps([{"name": f"{s}/{i}", "suite": ["p:" + s], "timeout": int(os.environ["TIMEOUT"])}
                      for s in suites for i in range(6)]))
    sys.exit()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
tests = sys.argv[sys.argv.index("--suite") + 2:]
print("ran", *tests, flush=True)
log = os.path.join(sys.argv[3], "meson-logs", sys.argv[sys.argv.index("--logbase") + 1] + ".json")
for i, test in enumerate(tests):
    time.sleep(float(os.environ["SLEEPS"]) * (i > 0))
    with open(log, "a") as file:
        result = "FAIL" if test == os.environ["FAILS"] else "OK"
        file.write(json.dumps({"name": "p:s / " + test, "result": result}) + "\\n")
sys.exit(os.environ["FAILS"] in tests)
"""
root = pathlib.Path(sys.argv[1])


def rotation(folder, *argv, sleeps=0, fails="none", timeout=60):
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SLEEPS": str(sleeps), "FAILS": fails, "TIMEOUT": str(timeout)}
    done = subprocess.run([sys.executable, root / "tests" / "rotation.py", folder, *argv], check=False, text=True,
                          capture_output=True, env=env)
    return done.returncode, done.stdout.splitlines(), done.stderr


def main(folder):
    (folder / "meson-logs").mkdir()
    stub = folder / "meson"
    stub.write_text(MESON)
    stub.chmod(0o755)
    n = sum(not line.startswith(" ") for line in rotation(folder, "list")[1])
    ran = [name for turn in range(n) for line in rotation(folder, str(turn))[1] if line.startswith("ran")
           for name in line.split()[1:]]
    assert sorted(ran) == sorted(f"{s}/{i}" for s in ("slow", "fuzz", "sanitize", "packaging") for i in range(6)), ran
    status, lines, _ = rotation(folder, str(n), "--after", "rotation-fuzz")
    assert status == 0 and lines[0] == rotation(folder, "0")[1][0], lines
    assert "3 of 3 tests passed, 0 failed, 0 left" in lines[-1] and "before: 2 tests passed" in lines[-1], lines
    status, lines, _ = rotation(folder, "0", fails="slow/2")
    assert status == 1 and "2 of 3 tests passed, 1 failed, 0 left" in lines[-1] and "failed: slow/2" in lines[-1], lines
    status, lines, _ = rotation(folder, "0", "--minutes", "0.02", sleeps=60)
    assert status == 0 and "1 of 3 tests passed, 0 failed, 2 left" in lines[-1], lines
    assert lines[-1].endswith("not ended in time: slow/2 slow/4"), lines
    status, lines, _ = rotation(folder, "0", "--minutes", "0.02", sleeps=60, fails="slow/0")
    assert status == 1 and "1 failed, 2 left" in lines[-1], lines
    status, lines, errors = rotation(folder, "0", timeout=7200)
    assert status == 1 and not lines and "could hang unseen" in errors, errors
    return n


with tempfile.TemporaryDirectory() as name:
    print(f"rotation: {main(pathlib.Path(name))} parts, nothing wrong")
