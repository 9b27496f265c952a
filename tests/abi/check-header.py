#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles the contract's header alone, as every kind of program may include it, with every warning an error.

usage: check-header.py HEADER. A compiler that is not there is named and left out; cc has to be."""
import pathlib
import shutil
import subprocess
import sys
import time

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wconversion", "-Wshadow"]
WAYS = [["cc", "-std=c11"], ["cc", "-std=c17"], ["cc", "-std=c11", "-m32", "-ffreestanding"], ["c++", "-std=c++17"],
        ["c++", "-std=c++20"], ["clang", "-std=c11"], ["clang++", "-std=c++17"],
        ["clang", "-std=c11", "--target=x86_64-windows-msvc", "-ffreestanding"],
        ["clang", "-std=c11", "--target=aarch64-linux-gnu", "-ffreestanding"]]


def main():
    header = pathlib.Path(sys.argv[1]).resolve()
    failed = []
    for way in WAYS:
        if shutil.which(way[0]) is None:
            print(f"{way[0]}: not there")
            failed += [way] if way[0] == "cc" else []
            continue
        language = "c++" if "++" in way[0] else "c"
        begin = time.monotonic()
        done = subprocess.run([*way, *WARNINGS, "-fsyntax-only", "-x", language, "-"], text=True, stderr=subprocess.PIPE,
                              input=f'#include "{header}"\nTINY_PLUGIN_NOTE (0);\n' if "windows" not in "".join(way)
                              else f'#include "{header}"\n')
        print(f"{' '.join(way)}: {'good' if done.returncode == 0 else done.stderr}, {1e3 * (time.monotonic() - begin):.0f} ms")
        failed += [way] if done.returncode else []
    return 1 if failed else 0


sys.exit(main())
