#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes what Vala has to be told beside the library's description: which functions give floating references.

usage: make-metadata.py OUTPUT GIR HEADER… The headers say "Returns: (transfer floating)", which the description
does not keep."""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

CORE = "{http://www.gtk.org/introspection/core/1.0}"
IDENTIFIER = "{http://www.gtk.org/introspection/c/1.0}identifier"
FLOATING = re.compile(r"/\*\*\n \* (tiny_\w+):(?:(?!\*/).)*?\n \* Returns: \(transfer floating\)", re.S)


def main():
    output, gir, *headers = map(pathlib.Path, sys.argv[1:])
    floating = {name for path in headers for name in FLOATING.findall(path.read_text())}
    assert floating, "no function gives a floating reference"
    lines = []
    namespace = ElementTree.parse(gir).getroot().find(CORE + "namespace")
    for parent in (namespace, *namespace.iter(CORE + "class")):
        prefix = "" if parent is namespace else parent.get("name") + "."
        lines += [f"{prefix}{one.get('name')} floating" for one in parent
                  if one.get(IDENTIFIER) in floating and one.get("moved-to") is None and one.get("introspectable") != "0"]
    output.write_text("\n".join(sorted(lines)) + "\n")


main()
