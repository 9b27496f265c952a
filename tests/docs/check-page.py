#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the generated blocks of a page with what a program prints.

usage: check-page.py [--update] PAGE COMMAND…

A block begins with the line "<!-- generated: NAME -->" and is the fenced code, or else the paragraph
or table, that follows. COMMAND prints blocks in the same form; page and program must have the same blocks.
--update writes them into the page. Exits 1 where they differ."""
import difflib
import pathlib
import re
import subprocess
import sys

BLOCK = re.compile(r"^<!-- generated: (\S+) -->\n(```.*?^```$|(?:[^\n]+\n?)+)", re.M | re.S)


def blocks(text):
    found = [(m.group(1), m.group(2).rstrip("\n")) for m in BLOCK.finditer(text)]
    names = [name for name, body in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        sys.exit(f"check-page: twice: {', '.join(sorted(twice))}")
    return dict(found)


def check(page, printed):
    """What differs, as lines."""
    ours, theirs = blocks(page), blocks(printed)
    out = [f"the page lacks the block {name}" for name in theirs if name not in ours]
    out += [f"nothing prints the block {name}" for name in ours if name not in theirs]
    for name, body in ours.items():
        if name in theirs and body != theirs[name]:
            out += difflib.unified_diff(body.split("\n"), theirs[name].split("\n"),
                                        f"{name} in the page", f"{name} as printed", lineterm="")
    return out


def main():
    arguments = sys.argv[1:]
    update = arguments[:1] == ["--update"]
    path, command = arguments[update], arguments[update + 1:]
    mark = "<!-- generated: a -->\n"
    assert not check(mark + "```\n1\n\n2\n```\n", mark + "```\n1\n\n2\n```\n")
    assert check(mark + "```\n1\n\n2\n```\n", mark + "```\n1\n\n3\n```\n")
    assert check("", mark + "1\n") and check(mark + "1\n", "x")
    if command[0].endswith(".py"):
        command.insert(0, sys.executable)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:  # 77: the program cannot say it here; meson shows that as a skip
        return done.returncode
    printed = done.stdout
    page = pathlib.Path(path).read_text()
    if update:
        new = blocks(printed)
        page = BLOCK.sub(lambda m: f"<!-- generated: {m.group(1)} -->\n"
                         + new.get(m.group(1), m.group(2).rstrip("\n"))
                         + ("\n" if m.group(2).endswith("\n") else ""), page)
        pathlib.Path(path).write_text(page)
    wrong = check(page, printed)
    if wrong:
        print("\n".join(wrong))
        print(f"{path} is not up to date: look at what changed, then run ninja -C BUILD update-docs")
        return 1
    print(f"{len(blocks(page))} blocks agree")
    return 0 if blocks(page) else 1


sys.exit(main())
