#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that what pages name exists: relative links, and paths between backticks.

usage: check-links.py ROOT. A path is looked for beside the page, at the root and among the include
folders; a bare file name ("pass-list.c", "tiny-elf") beside the page, or anywhere when it is in one of
the rooms. Checks itself first on made-up pages."""
import fnmatch
import pathlib
import re
import sys

import tree

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
SUFFIXES = ("c", "h", "def", "md", "py", "json", "in", "tir", "build", "1", "txt")
# Words that look like a file's and are something else: made when built, installed, or a pattern of words.
NOT_OURS = ("NAME.json.in", "test-FILE.c", "tiny-NAME.so", "*.json", ".tir", "plugins.d",
            "tinycore-1.0/plugins.d", "../../share", "unit/ROOM")

# Cases of the conformance suite, which tests/sdk/test-guide.py looks for.
CASE = re.compile(r"(faults|lifecycle|memory|order|points)/[a-z0-9/*-]+")
BUILT = re.compile(r"(tests|bench|examples)/(test|bench|example)-[\w-]+")  # programs, in the build folder


def expand(text):
    """tiny-rules.{h,c} → tiny-rules.h tiny-rules.c"""
    match = re.fullmatch(r"(.*)\{([^}]*)\}(.*)", text)
    return [match[1] + part + match[3] for part in match[2].split(",")] if match else [text]


def paths_of(text):
    """The relative links, and the words between backticks that can only be a path of this tree."""
    text = FENCE.sub("", text)
    for target in LINK.findall(text):
        if not re.match(r"[a-z]+:|#", target):
            yield target.split("#")[0]
    for code in CODE.findall(text):
        if re.search(r"[\s<>$=()\"]", code) or code.startswith(("/", "~", "-", "../share", "…")):
            continue
        for word in expand(code):
            is_file = re.fullmatch(r"[\w*./-]+\.(%s)" % "|".join(SUFFIXES), word) is not None
            is_path = re.fullmatch(r"[\w*.-]+(/[\w*.-]+)+/?", word) is not None
            if (is_file or is_path) and word not in NOT_OURS and not BUILT.fullmatch(word):
                yield word


def exists(word, page, root, names):
    """Whether @word is a file or folder as seen from @page; * stands for anything."""
    word = word.rstrip("/")
    bases = (page.parent, root, root / "libtinycore", root / "tests", page.parent.parent)
    if any((base / word).exists() for base in bases):
        return True
    if "*" in word and any(next(base.glob(word), None) for base in bases):
        return True
    if "/" in word:  # nn/tiny-loader.h; tests/ir/<pass>/…: a tail of a path, its extension left out or not
        return any(fnmatch.fnmatch(name, f"*/{word}") or fnmatch.fnmatch(name, f"*/{word}.c")
                   for name in names)
    return any(fnmatch.fnmatch(name, f"*/{word}") for name in names)


def main():
    assert list(paths_of("[a](b.md#c) [x](https://e.org) `d/e.c` `f (x)` `CPU`")) == ["b.md", "d/e.c"]
    assert list(paths_of("`a.{h,c}` ```x")) == ["a.h", "a.c"]
    assert not exists("no/such.c", pathlib.Path("/x/y.md"), pathlib.Path("/x"), ["/x/other.c"])
    root = pathlib.Path(sys.argv[1])
    files = tree.files(root)
    names = [str(path) for path in files]
    found, n = [], 0
    for page in (path for path in files if path.suffix == ".md"):
        for word in paths_of(page.read_text()):
            n += 1
            if page.parent == root / "sdk/guide" and CASE.fullmatch(word):
                continue
            if not exists(word, page, root, names):
                found.append(f"{page.relative_to(root)}: there is no {word}")
    return tree.report("links", found, n, 100)


sys.exit(main())
