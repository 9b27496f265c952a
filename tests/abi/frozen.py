#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares tiny-plugin.h with what was promised of it: frozen-1.txt, which only ever grows.

usage: frozen.py HEADER FROZEN CC… [--update | --begin]

FROZEN has a line for each struct (its size), field (offset, size, declaration), number and macro (its text, but for the
minor version) of the header. A line that is there stays as it is, but for reserved fields: what is new takes their place, from their start, or comes after the
end. --update adds what is new, and refuses what changes the rest; --begin writes the file anew, as before the first
release. Exits 1 where they differ; checks itself first on made-up breaches."""
import pathlib
import re
import subprocess
import sys
import tempfile

COMMENT = re.compile(r"/\*.*?\*/", re.S)
STRUCT = re.compile(r"typedef struct (\w+) \{(.*?)\n\} \1;|\nstruct (\w+) \{(.*?)\n\};", re.S)
ENUM = re.compile(r"enum \{(.*?)\}", re.S)
MACRO = re.compile(r"^#define (TINY_\w+)((?:\([^)]*\))?)[ \t]+(.*)$", re.M)
GROWS = ("TINY_PLUGIN_ABI_MINOR",)
COUNTS = ("TINY_N_DTYPES",) # may become more
FUNCTION = re.compile(r"^(?P<type>.*?)\(\*(?P<name>\w+)\) *\((?P<rest>.*)\)$", re.S)


def fields_of(body):
    """Names and declarations of a struct's fields, in order."""
    for declaration in body.split(";"):
        text = " ".join(declaration.split())
        if not text:
            continue
        function = FUNCTION.match(text)
        if function:
            yield function["name"], text
            continue
        base, *others = text.split(",")
        for i, part in enumerate([base, *others]):
            name = re.search(r"(\w+)((?: *\[[^]]*\])*)$", part.strip())
            type_text = base[:base.rindex(re.search(r"(\w+)((?: *\[[^]]*\])*)$", base)[1])].strip()
            stars = "*" * part.count("*") if i else ""
            plain = type_text if not i else type_text.rstrip("* ") + (" " + stars if stars else "")
            yield name[1], f"{plain} {name[1]}{name[2]}"


def read_header(text):
    """Structs with their fields, and the names of all numbers."""
    text = COMMENT.sub("", text)
    structs = [(m[1] or m[3], list(fields_of(m[2] or m[4]))) for m in STRUCT.finditer(text)]
    numbers = [m for body in ENUM.findall(text) for m in re.findall(r"\b(TINY_\w+)\s*(?:=|,|$)", body)]
    return structs, list(dict.fromkeys(numbers))


def read_macros(text):
    """Lines of the macros, whose text is part of what a plugin was compiled of."""
    found = {}
    for name, arguments, body in MACRO.findall(COMMENT.sub("", text).replace("\\\n", " ")):
        if name not in GROWS:
            found.setdefault(name, []).append(" ".join((arguments + " " + body).split()))
    return [f"macro {name} 0 0 {' | '.join(bodies)}" for name, bodies in found.items()]


def measure(header, compiler):
    """The lines of a header, as its compiler sees it."""
    structs, numbers = read_header(header.read_text())
    lines = ["#include <stdio.h>", f'#include "{header}"', "int main (void) {"]
    for struct, fields in structs:
        lines.append(f'printf ("struct {struct} %zu\\n", sizeof ({struct}));')
        for name, text in fields:
            lines.append(f'printf ("field {struct}.{name} %zu %zu {text}\\n", offsetof ({struct}, {name}), '
                         f"sizeof ((({struct} *) 0)->{name}));")
    lines += [f'printf ("number {name} %lld\\n", (long long) {name});' for name in numbers]
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "measure")
        subprocess.run([*compiler, "-std=c11", "-w", "-x", "c", "-o", program, "-"], text=True, check=True,
                       input="\n".join([*lines, "return 0; }"]))
        done = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout.splitlines() + read_macros(header.read_text())


def parse(lines):
    """What is frozen by its kind and name: (size) or (offset, size, declaration) or (value)."""
    out = {}
    for line in lines:
        kind, name, *rest = line.split(" ", 4)
        out[kind, name] = [int(word) for word in rest[:2]] + rest[2:]
    return out


def is_reserved(name):
    return re.search(r"\.reserved\d*$", name) is not None


def breaches(old, new):
    """What of @old is not as it was in @new."""
    found, room = [], {}
    for (kind, name), was in old.items():
        now = new.get((kind, name))
        struct = name.split(".")[0]
        if kind == "field" and is_reserved(name):
            room.setdefault(struct, []).append((was[0], was[0] + was[1]))
            if now is not None and not (was[0] <= now[0] and now[0] + now[1] <= was[0] + was[1]
                                        or now[0] >= old["struct", struct][0]):
                found.append(f"{name} lies outside of what was reserved")
        elif now is None:
            found.append(f"{kind} {name} is gone")
        elif kind == "struct":
            if now[0] < was[0]:
                found.append(f"{name} has become smaller: {was[0]} bytes, now {now[0]}")
        elif kind == "macro" and name in COUNTS and now[2].isdecimal() and int(now[2]) >= int(was[2]):
            continue
        elif now != was:
            found.append(f"{kind} {name} was {was}, now is {now}")
    for (kind, name), now in new.items():
        struct = name.split(".")[0]
        if kind != "field" or (kind, name) in old or ("struct", struct) not in old:
            continue
        inside = any(begin <= now[0] and now[0] + now[1] <= end for begin, end in room.get(struct, []))
        if not inside and now[0] < old["struct", struct][0]:
            found.append(f"{name} takes the place of something that was not reserved")
    return found


def check_itself():
    old = parse(["struct A 24", "field A.x 0 8 int64_t x", "field A.reserved 8 16 uint64_t reserved[2]", "number N 3",
                 "macro M 0 0 (x) 1 << x"])
    same = "macro M 0 0 (x) 1 << x"
    for lines in (["struct A 24", "field A.x 0 8 int64_t x", "field A.y 8 8 int64_t y",
                   "field A.reserved 16 8 uint64_t reserved[1]", "number N 3", "number M 4", same],
                  ["struct A 32", "field A.x 0 8 int64_t x", "field A.y 8 16 char y[16]",
                   "field A.reserved 24 8 uint64_t reserved[1]", "number N 3", same]):
        assert not breaches(old, parse(lines)), breaches(old, parse(lines))
    count = [parse([f"macro TINY_N_DTYPES 0 0 {n}"]) for n in (17, 18)]
    assert not breaches(count[0], count[1]) and breaches(count[1], count[0])
    for lines in (["struct A 24", "field A.x 0 8 uint64_t x", "field A.reserved 8 16 uint64_t reserved[2]", "number N 3", same],
                  ["struct A 24", "field A.y 0 8 int64_t y", "field A.x 8 8 int64_t x",
                   "field A.reserved 16 8 uint64_t reserved[1]", "number N 3", same],
                  ["struct A 16", "field A.x 0 8 int64_t x", "field A.reserved 8 8 uint64_t reserved[1]", "number N 3", same],
                  ["struct A 24", "field A.x 0 8 int64_t x", "field A.reserved 8 16 uint64_t reserved[2]", "number N 4", same],
                  ["struct A 24", "field A.x 0 8 int64_t x", "field A.reserved 8 16 uint64_t reserved[2]", "number N 3",
                   "macro M 0 0 (x) 2 << x"],
                  ["struct A 24", "field A.x 0 8 int64_t x", "field A.reserved 8 16 uint64_t reserved[2]", same]):
        assert breaches(old, parse(lines)), lines


def main():
    header, frozen = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    mode = sys.argv[-1] if sys.argv[-1] in ("--update", "--begin") else ""
    compiler = sys.argv[3:-1] if mode else sys.argv[3:]  # with what stands before it, such as ccache
    check_itself()
    lines = measure(header, compiler)
    if len(lines) < 200:
        sys.exit(f"only {len(lines)} lines were made of {header}: the header is not understood")
    if mode == "--begin":
        frozen.write_text("\n".join(lines) + "\n")
        return 0
    old, new = parse(frozen.read_text().splitlines()), parse(lines)
    found = breaches(old, new)
    if mode == "--update" and not found:
        frozen.write_text("\n".join(lines) + "\n")
        return 0
    if not found and old != new:
        missing = [" ".join(key) for key in new if old.get(key) != new[key]]
        found = [f"{frozen} does not have {name} as it is: add it with {pathlib.Path(__file__).name} --update"
                 for name in missing]
    print("\n".join(found) if found else f"{len(lines)} lines hold")
    return 1 if found else 0


sys.exit(main())
