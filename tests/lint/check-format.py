#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that clang-format leaves every .c and .h as it is.

usage: check-format.py [--fix] ROOT. Other major versions than 14 lay out differently: without that one
the check is a skip. --fix rewrites the files."""
import pathlib
import re
import shutil
import subprocess
import sys

import tree

MAJOR = "14"
# Laid out by hand, each with its reason; an entry that clang-format would leave as it is fails the run.
BY_HAND = {
    "libtinycore/ir/tiny-node.h": "columns of shorthands",
    "libtinycore/tiny-plugin.h": "columns of members and their meaning",
    "tests/unit/plugins-cpu/test-clang.c": "tables of instructions",
    "tools/bench-cases.c": "one row a case",
}


def find_program():
    for name in (f"clang-format-{MAJOR}", "clang-format"):
        path = shutil.which(name)
        if path is None:
            continue
        said = subprocess.run([path, "--version"], stdout=subprocess.PIPE, text=True).stdout
        if re.search(rf"version {MAJOR}\.", said):
            return path
    return None


def main():
    fix = sys.argv[1] == "--fix"
    root = pathlib.Path(sys.argv[-1])
    program = find_program()
    if program is None:
        print(f"skipped: there is no clang-format {MAJOR}")
        return 77
    names = [str(path.relative_to(root)) for path in tree.files(root) if path.suffix in (".c", ".h")]
    # One process for all: starting it takes longer than a file.
    said = subprocess.run([program, "--style=file", "--dry-run", *names], cwd=root, check=True, text=True,
                          stderr=subprocess.PIPE).stderr
    wrong = set(re.findall(r"^([^\s:][^:\n]*):\d+:\d+: warning: code should be clang-formatted", said, flags=re.M))
    found = [f"check-format.py: {name} needs no exception any more" for name in BY_HAND if name not in wrong]
    wrong = sorted(wrong - BY_HAND.keys())
    found += [f"{name}: run clang-format -i on it" for name in wrong]
    if fix and wrong:
        subprocess.run([program, "--style=file", "-i", *wrong], cwd=root, check=True)
    return tree.report("format", found, len(names), 200)


sys.exit(main())
