#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the contract's types, as a compiler wrote them down, with the ones that are kept here.

usage: check-abi.py MODULE BASELINE [--update]

MODULE is contract.c, compiled with debugging information. Exits 1 where abidiff sees a difference: one that only appends
is kept by --update, when frozen.py allows it. 77: there is no abidiff (package abigail-tools)."""
import pathlib
import shutil
import subprocess
import sys

module, baseline = sys.argv[1], pathlib.Path(sys.argv[2])
PLAIN = ["--no-corpus-path", "--no-show-locs", "--no-comp-dir-path", "--no-elf-needed", "--no-architecture"]


def main():
    if shutil.which("abidiff") is None:
        print("there is no abidiff: it comes with the package abigail-tools")
        return 77
    if "--update" in sys.argv:
        return subprocess.run(["abidw", *PLAIN, "--out-file", baseline, module]).returncode
    text = baseline.read_text()
    kept = [name for name in ("TinyPluginModule", "TinyDeviceTable", "TinyTarget", "TinySubmit") if f"'{name}'" in text]
    if len(kept) < 4:
        sys.exit(f"{baseline} has only {kept}: it does not reach the contract's types")
    return 1 if subprocess.run(["abidiff", "--no-architecture", baseline, module]).returncode else 0


sys.exit(main())
