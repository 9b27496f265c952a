#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that every public symbol is described: functions, their parameters and results, types, their fields and
values, constants; and that each says since when it is there.

usage: check-documentation.py GIR. What a function returns does not stand for what it does. The contract with plugins
(tiny-plugin.h) is plain C with comments of its own and is left out. Checks itself first on a made-up description."""
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

CORE = "{http://www.gtk.org/introspection/core/1.0}"
GLIB = "{http://www.gtk.org/introspection/glib/1.0}"
C = "{http://www.gtk.org/introspection/c/1.0}"
FUNCTIONS = {"function", "method", "constructor", "callback", "virtual-method"}
TYPES = {"class", "interface", "record", "union", "enumeration", "bitfield", "alias", "constant"}
PARTS = {"member", "field", "parameter", "property"}
PRIVATE = {"parent_class", "parent_instance", "reserved"}
OTHERS = ("tiny-plugin.h",)


def tag(element):
    return element.tag.rpartition("}")[2]


def name_of(element):
    return element.get(C + "identifier") or element.get("name") or ""


def has_doc(element):
    doc = element.find(CORE + "doc")
    return doc is not None and bool((doc.text or "").strip())


def is_other(element):
    """Whether it is none of what is described here."""
    place = element.find(CORE + "source-position")
    elsewhere = place is not None and place.get("filename", "").endswith(OTHERS)
    made = element.get(GLIB + "is-gtype-struct-for") is not None
    return (elsewhere and not has_doc(element)) or made or element.get("name") in PRIVATE


def gives_nothing(result):
    kind = result.find(CORE + "type")
    return kind is not None and kind.get("name") == "none"


def has_room_unknown(parameter):
    """True if a caller gives room for a list and nothing says for how many: other languages would give none, and crash."""
    kind = parameter.find(CORE + "array")
    return (parameter.get("caller-allocates") == "1" and kind is not None and kind.get("length") is None
            and kind.get("fixed-size") is None)


def check_function(element, path):
    if element.get("introspectable") != "0":
        for parameter in element.iter(CORE + "parameter"):
            if has_room_unknown(parameter):
                yield f"{path}: the length of {parameter.get('name')}, or (skip)"
    result = element.find(CORE + "return-value")
    described = result is not None and has_doc(result)
    if result is not None and not described and not gives_nothing(result):
        yield f"{path}: what it returns"
    if not has_doc(element):
        yield f"{path}: what it does"
    if element.get("version") is None:
        yield f"{path}: Since"
    for parameter in element.iter(CORE + "parameter"):
        varargs = parameter.find(CORE + "varargs") is not None
        if not has_doc(parameter) and not varargs:
            yield f"{path}: parameter {parameter.get('name')}"


def check(element, path=""):
    """What is missing in @element, as lines."""
    for child in element:
        kind, here = tag(child), f"{path}{name_of(child)}"
        if is_other(child):
            continue
        if kind in FUNCTIONS:
            yield from check_function(child, here)
        elif kind in TYPES:
            if not has_doc(child):
                yield f"{here}: what it is"
            if child.get("version") is None:
                yield f"{here}: Since"
            yield from check(child, f"{here}.")
        elif kind in PARTS and not has_doc(child) and child.find(CORE + "callback") is None:
            yield f"{here}: what it is"


def check_itself():
    made_up = """<namespace xmlns="http://www.gtk.org/introspection/core/1.0">
      <function name="bare"><return-value><type name="gint"/></return-value>
        <parameters><parameter name="n"><type name="gint"/></parameter></parameters></function>
      <function name="result" version="1"><return-value><doc>it</doc><type name="gint"/></return-value></function>
      <function name="good" version="1"><doc>does it</doc><return-value><doc>it</doc><type name="gint"/></return-value></function>
      <function name="room" version="1"><doc>does it</doc><return-value><type name="none"/></return-value><parameters>
        <parameter name="out" caller-allocates="1"><doc>it</doc><array><type name="gint"/></array></parameter></parameters></function>
      <enumeration name="Kind" version="1"><doc>kinds</doc><member name="a"/><member name="b"><doc>b</doc></member></enumeration>
      <constant name="THEIRS"><source-position filename="x/tiny-plugin.h" line="1"/></constant></namespace>"""
    found = list(check(ElementTree.fromstring(made_up)))
    assert found == ["bare: what it returns", "bare: what it does", "bare: Since", "bare: parameter n", "result: what it does",
                     "room: the length of out, or (skip)", "Kind.a: what it is"], found


def main():
    check_itself()
    path = pathlib.Path(sys.argv[1])
    if not path.exists():
        print("the build has no description of the API: option introspection, no sanitizer")
        return 77
    namespace = ElementTree.parse(path).getroot().find(CORE + "namespace")
    n_symbols = sum(tag(one) in FUNCTIONS | TYPES for one in namespace.iter())
    assert n_symbols > 500, f"only {n_symbols} symbols: not the library's"
    missing = list(check(namespace))
    for line in missing:
        print(f"not described: {line}")
    print(f"{n_symbols} symbols, {len(missing)} descriptions missing")
    return 1 if missing else 0


sys.exit(main())
