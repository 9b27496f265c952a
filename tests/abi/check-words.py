#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every field, function and number of the contract's header has words: behind it or right above it.

usage: check-words.py HEADER. A line that holds several fields has words for all of them. Checks itself first."""
import pathlib
import re
import sys

BLOCK = re.compile(r"^enum \{([^\n]*)\};([^\n]*)|^(?:typedef )?(?:struct|enum)\b[^;{\n]*\{\n(.*?)^\}", re.S | re.M)


def entries(body):
    """Declarations of a block with whether words belong to each."""
    has_words, pending = False, ""
    for part in re.split(r"(/\*.*?\*/|\n)", body, flags=re.S):
        if part.startswith("/*"):
            if pending:
                yield pending, True
                pending = ""
            else:
                has_words = True
        elif part == "\n":
            if pending and re.search(r"[,;]\s*$", pending) and pending.count("(") == pending.count(")"):
                yield pending, has_words
                pending, has_words = "", False
        elif part.strip():
            if pending:
                pending += " " + part.strip()
            else:
                pending = part.strip()
    if pending:
        yield pending, has_words


def missing(header):
    """Names without words, and how many have them."""
    found, n = [], 0
    for block in BLOCK.finditer(header):
        if block[3] is None: # one line: the words stand above or behind it
            above = header[:block.start()].rstrip("\n")
            n += 1
            if "/*" not in block[2] and "/*" not in block[1] and not above.endswith("*/"):
                found.append(block[1].split("=")[0].strip())
            continue
        for text, has_words in entries(block[3]):
            n += 1
            if not has_words:
                found.append(text)
    return found, n


def check_itself():
    good = ["typedef struct A {\n  int a; /* words */\n  /* words */\n  int (*f) (int x,\n            int y);\n  int b; /* long\n  * words */\n} A;",
            "enum { A = 1, B = 2 }; /* words */", "/* words */\nenum { A = 1 };", "enum {\n  A = 1, /* a */\n  B = 2 /* b */\n};"]
    bad = ["typedef struct A {\n  int a; /* words */\n  int b;\n} A;", "enum {\n  A = 1,\n  B = 2 /* b */\n};", "enum { A = 1 };",
           "typedef struct A {\n  /* words */\n  int a;\n  int (*f) (int x,\n            int y);\n} A;"]
    for text in good:
        assert not missing(text + "\n")[0], missing(text + "\n")
    for text in bad:
        assert len(missing(text + "\n")[0]) == 1, (text, missing(text + "\n"))


def main():
    check_itself()
    header = pathlib.Path(sys.argv[1]).read_text()
    header = re.sub(r"^enum \{\n  TINY_SIZE_0_.*?^\};", "", header, flags=re.S | re.M) # their names and the words above say all
    found, n = missing(header)
    if n < 300:
        sys.exit(f"only {n} fields and numbers were found in {sys.argv[1]}: the header is not understood")
    for text in found:
        print(f"no words: {text}")
    print(f"{n - len(found)} of {n} have words")
    return 1 if found else 0


sys.exit(main())
