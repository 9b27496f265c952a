#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The wheel: made without a network by pip, twice the same, from the tree and from the source archive; installed beside
the system's PyGObject it finds the library.

TAP. usage: test_wheel.py SOURCE. Run in the build's environment, by an interpreter with pip and gi."""
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import venv

import checks

SOURCE = pathlib.Path(sys.argv[1]).resolve()
ENV = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
PROGRAM = "import tinycore; print(tinycore.__file__); print((tinycore.Tensor([1, 2]) + 1).tolist())"


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], env=ENV, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)
    checks.equal(done.returncode, 0, f"{command} says {done.stdout}")
    return done.stdout


def make(folder, what):
    """What a frontend calls."""
    run(sys.executable, "-c", f"import build_package; build_package.build_{what}({str(folder)!r})",
        cwd=SOURCE / "bindings/python")
    made, = folder.iterdir()
    return made


def test_wheel():
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for name in ("first", "sources", "second"):
            (work / name).mkdir()
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check",
            "-w", work / "first", SOURCE / "bindings/python")
        wheel, = (work / "first").iterdir()
        archive = make(work / "sources", "sdist")
        with tarfile.open(archive) as opened:
            opened.extractall(work)
        unpacked = work / archive.name[:-len(".tar.gz")]
        run(sys.executable, "-c", f"import build_package; build_package.build_wheel({str(work / 'second')!r})", cwd=unpacked)
        again, = (work / "second").iterdir()
        checks.equal(again.name, wheel.name)
        checks.true(again.read_bytes() == wheel.read_bytes(), "another wheel is made of the source archive")
        venv.create(work / "venv", system_site_packages=True, with_pip=False)
        python = work / "venv/bin/python"
        run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index",
            "--disable-pip-version-check", wheel)
        where, values = run(python, "-c", PROGRAM, cwd=work).splitlines()
        checks.equal((work in pathlib.Path(where).parents, values), (True, "[2, 3]"))
        missing = subprocess.run([python, "-c", PROGRAM], env={**ENV, "GI_TYPELIB_PATH": "/nowhere"}, cwd=work, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if missing.returncode != 0:  # else the library is installed on this system as well
            checks.true("gir1.2-tiny-1.0" in missing.stdout, missing.stdout)


checks.run(globals())
