#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what every file of the tree has and has not: a licence line in sources, no tab and no space at
a line's end, at most 600 lines, no path of somebody's machine, nothing that a build makes; and that each room has a README.

usage: check-files.py ROOT. Checks itself first on made-up texts."""
import pathlib
import re
import sys

import tree

MOST_LINES = 600
# Longer files, each with its reason.
LONG = {
    "CHANGELOG.md": "all that is new in the first release",
    "docs/cookbook.md": "a program for each idea, printed by a test",
    "libtinycore/tensor/operations.pyi": "a row for each operation",
    "tests/abi/tiny-plugin-1.abi": "written by abidw",
    "libtinycore/tiny-plugin.h": "the whole contract in one file that stands alone",
}
DIGESTS = "tests/replay/expected/"  # letters by chance, a line for each case and target
SOURCES = (".c", ".h", ".cpp", ".py", ".pm", ".in", "debian/rules")
NO_LICENCE_LINE = ("json.in",)
# Paths that only one machine has, and marks of unfinished work. Spelt so that this file has none of them.
FOREIGN = re.compile("|".join([
    "/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/[a-z]", r"/tm" + r"p/[a-z]+[-_/]", "TO" + "DO", "FIX" + "ME"]), re.I)
MADE = re.compile(r"\.(o|so|a|pyc|orig|rej|gcda|gcno)$|(^|/)(__pycache__|core)$")
# A shift into the sign bit of an int is undefined, and no constant: UndefinedBehaviourSanitizer does not compile it.
SIGN_SHIFT = re.compile(r"(?<![\w)] )(?<![\w.])1 << 31\b")
# A file that is mapped ends the program when another process makes it shorter: base/tiny-opened-file.h reads.
MAPS = re.compile(r"g_mapped_" + r"file|GMapped" + "File")
BINARY = re.compile(r"^tests/abi/museum/[^/]+/[^/]+\.tar\.xz$")  # kept as they were shipped


def complaints(name, text):
    if name.endswith(SOURCES) and not name.endswith(NO_LICENCE_LINE) \
            and "SPDX-License-Identifier: MIT" not in "\n".join(text.split("\n")[:3]):
        yield "no SPDX line"
    for i, line in enumerate(text.split("\n"), 1):
        if "\t" in line and not name.endswith("debian/rules"):
            yield f"{i}: a tab"
        if line.endswith((" ", "\r")):
            yield f"{i}: a space at the end"
        if FOREIGN.search(line):
            yield f"{i}: “{FOREIGN.search(line)[0]}” does not belong into the tree"
        if name.endswith((".c", ".h", ".cpp")) and SIGN_SHIFT.search(line):
            yield f"{i}: 1 << 31 shifts into the sign bit of an int; (guint32) 1 << 31 does not"
        if MAPS.search(line):
            yield f"{i}: a file is mapped; tiny_opened_file_read () reads it"
    n = text.count("\n")
    if n > MOST_LINES and name not in LONG and not name.endswith(".def"):
        yield f"{n} lines, more than {MOST_LINES}, and no reason in check-files.py"
    if text and not text.endswith("\n"):
        yield "no newline at the end"


def rooms(readme):
    """The folders of the first column of the house's table: after `a/b`, `c` is a/c, and a is a room as well."""
    found, parent = set(), ""
    for row in re.findall(r"^\| (`.*?) \|", readme.partition("## The house")[2], re.M):
        for name in re.findall("`(.*?)`", row):
            if "/" in name.rstrip("/"):
                parent = name.partition("/")[0]
                found.add(parent)
            found.add(name.rstrip("/") if "/" in name else f"{parent}/{name}")
    return found


def main():
    assert rooms("## The house\n| `a/b` `c` | x `y` |\n| `d/` `e/` | z |\n") == {"a", "a/b", "a/c", "d", "e"}
    head = "/* SPDX-License-Identifier: MIT */\n"
    assert not list(complaints("a.c", head + "int x = (guint32) 1 << 31 | 1u << 31 | (gint64) 1 << 31;\n"))
    for bad in ("int x;\n", head + "enum { X = 1 << 31 };\n", head + "\tint x;\n", head + "int x; \n", head + "int x;",
                head + "/* /ro" + "ot/x */\n", head + "g_mapped_" + "file_new (path);\n", head + "\n" * MOST_LINES):
        assert len(list(complaints("a.c", bad))) == 1, bad
    root = pathlib.Path(sys.argv[1])
    found, n = [], 0
    for path in tree.files(root):
        name = str(path.relative_to(root))
        n += 1
        if BINARY.search(name) or name.startswith(DIGESTS):
            continue
        if MADE.search(name):
            found.append(f"{name}: made by a build or a tool")
            continue
        try:
            found += [f"{name}: {why}" for why in complaints(name, path.read_text())]
        except UnicodeDecodeError:
            found.append(f"{name}: no UTF-8 text")
    for name in LONG:
        path = root / name
        if not path.exists() or path.read_text().count("\n") <= MOST_LINES:
            found.append(f"check-files.py: {name} needs no exception any more")
    found += [f"{room}: a room of the house without a README.md" for room in sorted(rooms((root / "README.md").read_text()))
              if not (root / room / "README.md").exists()]
    return tree.report("files", found, n, 300)


sys.exit(main())
