#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the contract's types, as a compiler wrote them down, with the ones that are kept here.

usage: check-abi.py MODULE BASELINE [--update FROZEN…]

MODULE is contract.c, compiled with debugging information. Exits 1 where abidiff sees a difference: one that only appends
is kept by --update, when frozen.py, whose command FROZEN… is, has allowed it and kept it itself. 77: there is no abidiff
(package abigail-tools)."""
import pathlib
import re
import shutil
import subprocess
import sys

module, baseline = sys.argv[1], pathlib.Path(sys.argv[2])
PLAIN = ["--no-corpus-path", "--no-show-locs", "--no-comp-dir-path", "--no-elf-needed", "--no-architecture"]


def main():
    if shutil.which("abidiff") is None:
        print("there is no abidiff: it comes with the package abigail-tools")
        return 77
    if sys.argv[3:4] == ["--update"]:
        if len(sys.argv) < 7:
            sys.exit(__doc__)
        if subprocess.run([sys.executable, *sys.argv[4:], "--update"]).returncode:
            print(f"{baseline} stays as it was")
            return 1
        done = subprocess.run(["abidw", *PLAIN, "--out-file", baseline, module])
        if done.returncode == 0: # the build folder's place is nobody's
            baseline.write_text(re.sub(r" path='[^']*/contract\.c'", " path='../tests/abi/contract.c'", baseline.read_text()))
        return done.returncode
    text = baseline.read_text()
    kept = [name for name in ("TinyPluginModule", "TinyDeviceTable", "TinyTarget", "TinySubmit") if f"'{name}'" in text]
    if len(kept) < 4:
        sys.exit(f"{baseline} has only {kept}: it does not reach the contract's types")
    return 1 if subprocess.run(["abidiff", "--no-architecture", baseline, module]).returncode else 0


sys.exit(main())
