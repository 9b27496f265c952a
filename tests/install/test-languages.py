#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs an example in another language, and makes the reference pages.

usage: test-languages.py vala|js|reference SOURCE BUILD. Run in the build's environment; a tool that is not there is a skip."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

KIND, SOURCE, BUILD = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
SAYS = "3.00 x + -2.00\nmatmul: inner sizes 32 and 3 differ for (32,) @ (3, 3)\n"
TOOLS = {"vala": "valac", "js": "gjs", "reference": "gi-docgen"}
GIR = BUILD / "libtinycore" / "Tiny-1.0.gir"


def run(command, **more):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100, **more)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def check_example(command):
    said, complained = run(command)
    assert said == SAYS and not complained, f"{said}{complained}"


def check_vala(work):
    env = {**os.environ, "PKG_CONFIG_PATH": str(BUILD / "meson-uninstalled")}
    run(["valac", f"--girdir={GIR.parent}", f"--metadatadir={BUILD}/bindings/vala", "--pkg", "Tiny-1.0", "-X", "-w", "-X", "-lm",
         "-d", work, "-o", "example", SOURCE / "examples/least-squares.vala"], env=env)
    check_example([work / "example"])


def check_reference(work):
    """Pages of every class and method."""
    run(["gi-docgen", "generate", "--quiet", "-C", SOURCE / "docs/reference.toml", "--no-namespace-dir", "--output-dir", work, GIR])
    for page, has in (("method.Tensor.matmul.html", "inner"), ("func.vmap.html", "in_axes"), ("class.Optimizer.html", "step")):
        assert has in (work / page).read_text(), f"{page} has no {has}"


def main():
    for wanted, name in ((shutil.which(TOOLS[KIND]), f"program {TOOLS[KIND]}"), (GIR.exists(), f"description of the API, {GIR}")):
        if not wanted:
            print(f"skipped: there is no {name}")
            return 77
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        if KIND == "js":
            check_example(["gjs", SOURCE / "examples/least-squares.js"])
        elif KIND == "vala":
            check_vala(work)
        else:
            check_reference(work)
    return 0


sys.exit(main())
