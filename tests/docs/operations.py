#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the generated blocks of docs/operations.md from the table of operations, and from test-inventory.py what is not there.

usage: operations.py FOLDER-OF-THE-TABLE TICKS. TICKS names, one operation to a line, the backends on which
its cases of tests/torch gave PyTorch's results when they ran last."""
import ast
import pathlib
import sys

sys.path.insert(0, sys.argv[1])
import operations_table as table  # noqa: E402

BACKENDS = ("CPU", "CL", "WEBGPU", "REF")


def signature(operation):
    parts = []
    for a in operation.arguments:
        default = f"={ast.unparse(a.default)}" if a.default is not None else ""
        parts.append(f"{a.name}{default}")
    if operation.dtyped:
        parts.append("dtype=None")
    return f"{operation.name}({', '.join(parts)})"


def summary(operation):
    """The first sentence, its argument names as code."""
    text = " ".join(operation.doc.split("\n\n")[0].split())
    end = text.find(". ")
    text = text if end < 0 else text[:end + 1]
    for a in operation.arguments:
        text = text.replace(f"@{a.c_name}", f"`{a.name}`").replace(f"@{a.name}", f"`{a.name}`")
    return text.replace("|", "\\|")


def absent():
    """What test-inventory.py says of names that tinygrad has."""
    path = pathlib.Path(sys.argv[2]).with_name("test-inventory.py")
    found = next(node.value for node in ast.parse(path.read_text()).body
                 if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "INTERNAL")
    print("\n<!-- generated: absent -->\n| name | what it is there: what to use here |\n|---|---|")
    for name, text in ast.literal_eval(found).items():
        print(f"| `{name}` | {text} |")


def main():
    ticks = {}
    path = pathlib.Path(sys.argv[2])
    for line in path.read_text().splitlines() if path.exists() else []:
        name, *backends = line.partition(" # ")[0].split()
        ticks[name] = set(backends)
    families = table.read()
    print("<!-- generated: methods -->")
    print(f"| method | takes | gradient | symbolic | {' | '.join(BACKENDS)} | is |")
    print("|---|---|---|:-:|" + ":-:|" * len(BACKENDS) + "---|")
    for family in families:
        print(f"| **{family.name}** | | | |{' |' * len(BACKENDS)} *{' '.join(family.doc.split())}* |")
        for operation in family.operations:
            marks = " | ".join("✓" if b in ticks.get(operation.name, ()) else "" for b in BACKENDS)
            print(f"| `{signature(operation)}` | {operation.takes} | {operation.gradient} | "
                  f"{'✓' if operation.symbolic else ''} | {marks} | "
                  f"{summary(operation)} |")
    absent()


main()
