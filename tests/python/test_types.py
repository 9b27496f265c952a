#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The package's types by mypy: that all that is public has one, that programs as they are written are found right, and wrong ones
wrong. TAP. usage: test_types.py SOURCE CACHE. Run in the build's environment, by an interpreter that has gi and numpy."""
import importlib
import os
import pathlib
import re
import subprocess
import sys

import checks
import tinycore

HERE, SOURCE, CACHE = pathlib.Path(__file__).resolve().parent, pathlib.Path(sys.argv[1]), sys.argv[2]
PACKAGE = pathlib.Path(tinycore.__file__).parent
FLAGS = ["--python-executable", sys.executable, "--cache-dir", CACHE, "--config-file", HERE / "mypy.ini", "--no-error-summary",
         "--no-color-output"]


def mypy(*arguments):
    """What mypy says: (file, line, message) of each error."""
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    found = subprocess.run(["mypy", *FLAGS, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
                           cwd=PACKAGE.parent, check=False)
    if found.returncode not in (0, 1):
        raise AssertionError(f"mypy fails: {found.stdout}")
    errors = [re.match(r"(.*?):(\d+): error: (.*)", line) for line in found.stdout.splitlines()]
    return [(pathlib.Path(one[1]).name, int(one[2]), one[3]) for one in errors if one is not None]


def test_package():
    """Everything that the stubs name has a type, and they agree with each other."""
    stubs = sorted(PACKAGE.rglob("*.pyi"))
    checks.true(len(stubs) > 30, stubs)
    checks.equal(mypy("--strict", "--no-warn-unused-ignores", "--follow-imports=silent", *stubs), [])


def test_public_names():
    """No public name of a module is missing in its stub."""
    absent = []
    for name in ("", "nn", "nn.functional", "nn.init", "nn.utils", "nn.data", "nn.state", "nn.optim", "nn.lr_scheduler", "linalg", "fft", "special",
                 "func", "amp", "autograd", "cuda", "functions"):
        module = importlib.import_module(f"tinycore.{name}".rstrip("."))
        path = pathlib.Path(module.__file__).with_suffix(".pyi")
        text = path.read_text()
        text += "".join(path.with_name(f"{one}.pyi").read_text() for one in re.findall(r"from \.(\w+) import \*", text))
        public = getattr(module, "__all__", [one for one, what in vars(module).items() if not one.startswith("_") and callable(what)
                                             and getattr(what, "__doc__", None) and getattr(what, "__module__", "") == module.__name__])
        absent += [f"{name}.{one}" for one in public if not re.search(rf"^(def|class) {one}\b|^{one}\b|\bas {one}\b", text, re.M)]
    own = re.search(r'INTERNAL = set\("""(.*?)"""', (SOURCE / "bindings/python/make-stubs.py").read_text(), re.S)[1].split()
    checks.equal([one for one in absent if one.rpartition(".")[2] not in own], [])


def test_program():
    checks.equal(mypy("--strict", "--no-warn-unused-ignores", HERE / "typed_program.py"), [])


def test_program_runs():
    """What its types say is so."""
    subprocess.run([sys.executable, HERE / "typed_program.py"], check=True, timeout=100)


def test_errors():
    path = HERE / "typed_errors.py"
    wanted = {i: line.partition("# error: ")[2] for i, line in enumerate(path.read_text().splitlines(), 1) if "# error: " in line}
    found = {}
    for _, line, message in mypy("--show-error-codes", path):
        found.setdefault(line, []).append(message)
    checks.equal([f"line {i}: {wanted[i]}" for i in wanted if not any(wanted[i] in one for one in found.get(i, ()))], [], "not found")
    checks.equal({i: found[i] for i in found if i not in wanted}, {}, "found besides")


def test_examples():
    """The programs of the cookbook and the quick start, in which nothing else has types."""
    programs = sorted([*(SOURCE / "examples").glob("cookbook/*.py"), *(SOURCE / "examples").glob("quick-start/*.py")])
    checks.true(len(programs) > 20, programs)
    checks.equal(mypy("--check-untyped-defs", "--scripts-are-modules", *programs), [])


checks.run(globals())
