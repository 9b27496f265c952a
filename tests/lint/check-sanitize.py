#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks tests/sanitize.sh with a meson, a ninja and a compiler of its own: the parts of address together run each suite
once; a suite that fails hides none after it; a report of a process turns a run red that is green otherwise.

usage: check-sanitize.py ROOT"""
import os
import pathlib
import subprocess
import sys
import tempfile

MESON = """#!/usr/bin/env python3
import os, pathlib, sys
if sys.argv[1] == "setup":
    folder = pathlib.Path(sys.argv[2])
    for name in ("build.ninja", "tests/differential/test-differential", "tools/tinycore"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("#!/bin/sh\\necho ran ${0##*/} $DEV $2\\n")
        (folder / name).chmod(0o755)
if sys.argv[1] == "compile":
    print("ran compile")
if sys.argv[1] == "test":
    words = [word for word in sys.argv[6:] if word != "--suite"]
    print("ran", *words, flush=True)
    for word in words:
        if word == os.environ.get("REPORTS"):
            (path,) = [part[9:] for part in os.environ["ASAN_OPTIONS"].split(":") if part.startswith("log_path=")]
            pathlib.Path(path + ".7").write_text(os.environ["REPORT"])
    sys.exit(os.environ.get("FAILS") in words)
"""
STUBS = {"meson": MESON, "ninja": "#!/bin/sh\n", "cc": '#!/bin/sh\n[ "$2" != -o ] || { echo "#!/bin/sh" >"$3"; chmod +x "$3"; }\n'}
SUITES = {"unit", "gradient", "nonsense", "stress", "fault", "sdk", "e2e"}
root = pathlib.Path(sys.argv[1])


def sanitize(folder, *argv, **more):
    """The status, what ran, and all that was said."""
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "CC": "cc", **more}
    done = subprocess.run(["bash", root / "tests" / "sanitize.sh", argv[0], folder / "build" / "tests" / "sanitize", *argv[1:]],
                          check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
    ran = [word for line in done.stdout.splitlines() if line.startswith("ran ") for word in line.split()[1:]]
    return done.returncode, ran, done.stdout


def main(folder):
    for name, text in STUBS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    ran = []
    for part in ("unit", "programs", "vendor", "commands"):
        status, some, said = sanitize(folder, "address", part)
        assert status == 0, said
        ran += [word for word in some if word in SUITES]
    assert sorted(ran) == sorted(SUITES), ran
    status, ran, said = sanitize(folder, "address", "python")
    assert status == 77 and ran == ["compile"], said  # no introspection
    status, ran, said = sanitize(folder, "address", "vendor", FAILS="fault")
    assert status == 1 and {"fault", "sdk"} <= set(ran), said
    report = {"REPORTS": "fault", "REPORT": "==7==ERROR: AddressSanitizer: heap-use-after-free\n"}
    status, ran, said = sanitize(folder, "address", "vendor", **report)
    assert status == 1 and "sdk" in ran and "heap-use-after-free" in said, said
    status, _, said = sanitize(folder, "address", "vendor", REPORTS="sdk", REPORT="==7==WARNING: it gives NULL\n")
    assert status == 0, said
    status, ran, said = sanitize(folder, "thread", FAILS="device/device")
    assert status == 1 and {"stress", "test-differential"} <= set(ran), said
    status, ran, said = sanitize(folder, "thread")
    assert status == 0 and {"stress", "fault/worker", "device/device", "tinycore", "test-differential"} <= set(ran), said


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(pathlib.Path(name))
