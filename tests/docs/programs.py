#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the generated blocks of a page of programs: for each program its text, then what it prints.

usage: programs.py FOLDER BUILT. FOLDER has programs in C and Python, BUILT the built ones, NAME.c as NAME-c. Run in the
build's environment, by an interpreter that has gi, numpy and torch. A program that fails, says something on its
error stream or is long is an error."""
import concurrent.futures
import pathlib
import re
import subprocess
import sys

MOST_LINES = 45
HEADS = {".c": re.compile(r"/\*.*?\*/\n", re.S), ".py": re.compile(r"(# .*\n)*")}
LANGUAGES = {".c": "c", ".py": "python"}


def command(path, built):
    if path.suffix == ".py":
        return [sys.executable, str(path)]
    return [str(built / f"{path.parent.name}-{path.stem}")]


def run(path, built):
    """What the program prints, and what is wrong with it or None."""
    done = subprocess.run(command(path, built), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100)
    if done.returncode != 0 or done.stderr:
        return "", f"{path.name}: exit status {done.returncode}\n{done.stderr}"
    if not done.stdout.strip():
        return "", f"{path.name} prints nothing"
    return done.stdout, None


def blocks(path, printed):
    text = path.read_text()
    if text.count("\n") > MOST_LINES:
        sys.exit(f"programs: {path.name} has more than {MOST_LINES} lines")
    text = text[HEADS[path.suffix].match(text).end():]
    return (f"<!-- generated: {path.name} -->\n```{LANGUAGES[path.suffix]}\n{text.strip()}\n```\n\n"
            f"<!-- generated: {path.name}-prints -->\n```text\n{printed.rstrip()}\n```\n")


def main():
    folder, built = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    programs = sorted(path for path in folder.iterdir() if path.suffix in HEADS)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda path: run(path, built), programs))
    wrong = [error for printed, error in results if error is not None]
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    for path, (printed, error) in zip(programs, results):
        print(blocks(path, printed))
    return 0


sys.exit(main())
