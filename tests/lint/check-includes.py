#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks who includes whom: a room only rooms above it, a plugin only tiny-plugin.h and its kit, and no file a header twice.

usage: check-includes.py ROOT. Prints each breach and exits 1 if there is any; checks itself first
on made-up breaches, so that it cannot pass by seeing nothing."""
import collections
import pathlib
import re
import sys

import tree

ROOMS = ["base", "ir", "rewrite", "device", "plugin", "schedule", "codegen", "render", "engine",
         "tensor", "autograd", "nn", "io"]
APART = {"schedule", "codegen", "render"}  # these never include one another
# In quotation marks; and in angle brackets, where systems' headers are, what is of one of the rooms all the same.
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<((?:%s)/[^>]+)>)' % "|".join(ROOMS), re.M)
ANY = re.compile(r'^#include\s+([<"][^">]+\.h[">])', re.M)  # tables (.def) are included as often as they are wanted


def included_by(text):
    return [quoted or angle for quoted, angle in INCLUDE.findall(text)]


def breaches_of_room(room, included):
    """Why file text of `room` may not include the path `included`, or None."""
    other = included.split("/")[0] if "/" in included else None
    if other not in ROOMS:
        return None if included in ("tiny-plugin.h", "tiny.h") or other is None else \
            f"includes {included}, which is in no room"
    if ROOMS.index(other) > ROOMS.index(room):
        return f"includes {included} from a room below it"
    if room in APART and other in APART and room != other:
        return f"includes {included}: schedule, codegen and render keep apart"
    return None


# The header of a library that several plugins have linked in.
COMMON = {"cuda": ["nvidia.h"]}


def breaches_of_plugin(folder, included):
    if included in ("tiny-plugin.h", "tiny-plugin-driver.h", "tiny-plugin-host.h", "tiny-plugin-kit.h") or (folder / included).is_file():
        return None
    if included in COMMON.get(folder.name, []):
        return None
    return f"includes {included}: a plugin sees tiny-plugin.h, its kit and its own files only"


def repeats(text):
    """The headers that file text includes more than once."""
    return sorted(header for header, n in collections.Counter(ANY.findall(text)).items() if n > 1)


def main():
    assert repeats('#include "a.h"\n#include <b.h>\n#include "a.h"\n#include "c.def"\n#include "c.def"\n') == ['"a.h"']
    assert included_by('#include "a.h"\n# include <engine/tiny-plan.h>\n#include <glib/gstdio.h>\n') == \
        ["a.h", "engine/tiny-plan.h"]
    assert breaches_of_room("ir", "engine/tiny-plan.h")
    assert breaches_of_room("render", "codegen/tiny-codegen.h")
    assert not breaches_of_room("engine", "codegen/tiny-codegen.h")
    assert breaches_of_plugin(pathlib.Path("/nonexistent"), "ir/tiny-node.h")
    root = pathlib.Path(sys.argv[1])
    found, seen = [], 0
    for path in sorted(root.glob("libtinycore/*/*.[ch]")):
        room = path.parent.name
        for included in included_by(path.read_text()):
            seen += 1
            why = breaches_of_room(room, included)
            if why:
                found.append(f"{path.relative_to(root)} {why}")
    # The conformance suite is a tool: it looks at plugins from the core's side.
    of_sdk = [path for path in root.glob("sdk/**/*.[ch]") if "conformance" not in path.parts]
    for path in sorted([*root.glob("plugins/*/*.[ch]"), *of_sdk]):
        for included in included_by(path.read_text()):
            seen += 1
            why = breaches_of_plugin(path.parent, included)
            if why:
                found.append(f"{path.relative_to(root)} {why}")
    for path in tree.files(root):
        if path.suffix in (".c", ".h"):
            found += [f"{path.relative_to(root)} includes {header} twice" for header in repeats(path.read_text())]
    print("\n".join(found) if found else f"{seen} includes follow the rules")
    return 1 if found or seen < 50 else 0


sys.exit(main())
