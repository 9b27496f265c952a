#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plugin binaries as they were shipped with each released contract: every build installs and uses them.

usage: museum.py            TAP; with patterns, the tests they match
       museum.py --add      puts today's three examples into the museum, as bundles for this architecture;
                            what a release has shipped is never replaced

tests/abi/museum/1.MINOR/KIND-MACHINE.tar.xz. One of another architecture is only read."""
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "sdk")]
from e2e import Skip, check, main, note, test  # noqa: E402

MUSEUM, HEADER = HERE / "museum", HERE.parents[1] / "libtinycore/tiny-plugin.h"
KINDS = ("dialect", "linear", "offload")
# What each part of the contract's tables is needed for, without the thousands of cases of arithmetic.
CASES = ("load/*", "skew/*", "lifecycle/*", "memory/*", "order/*", "limits/*", "exec/variables*", "replay/*")


def number(name):
    return int(re.search(rf"^#define TINY_PLUGIN_ABI_{name}\s+(\d+)", HEADER.read_text(), re.M)[1])


def add():
    from prefix import Prefix
    room = MUSEUM / f"{number('MAJOR')}.{number('MINOR')}"
    room.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tiny-museum-") as folder:
        prefix = Prefix(folder)
        for kind in KINDS:
            bundle = room / f"{kind}-{platform.machine()}.tar.xz"
            if bundle.exists():
                sys.exit(f"{bundle}: is there; only before the release that ships it may it be deleted and made anew")
            env = prefix.environment()
            prefix.call("tinycore", "new-plugin", kind, "--kind", kind, folder=folder, env=env)
            build = prefix.build(pathlib.Path(folder, f"tiny-{kind}"))
            prefix.call("strip", build / f"tiny-{kind}.so")
            (build / "uninstalled.json").rename(build / f"{kind}.json")
            prefix.call("tinycore", "plugin", "bundle", build / f"{kind}.json", "-o", bundle, env=env)
            print(bundle, bundle.stat().st_size)


def use(box, bundle):
    env = {"XDG_DATA_HOME": box.path("data")}
    name = bundle.name.split("-")[0].upper()
    box.run("plugin", "install", str(bundle), **env).good()
    shown, = [line for line in box.run("devices", "--json", **env).good().lines() if line["name"] == name]
    check(shown["state"] == "ready" and shown["plugin"].startswith(box.path("data")), shown)
    filters = [word for case in CASES for word in ("--filter", case)]
    done = box.run("conformance", name, "--jobs", "2", "--json", box.path("certificate.json"), *filters, timeout=600, **env)
    with open(box.path("certificate.json"), encoding="utf-8") as file:
        score = json.load(file)["score"]
    check(done.status == 0 and score["must"] == score["passed"] > 100, f"{score}\n{done}")
    note(f"{score['passed']} cases")
    computed = box.run("bench", "matmul:32", "--json", **{**env, "DEV": name})
    check(computed.status == 0, computed)
    box.run("plugin", "remove", name, **env).good()


def exhibit(bundle):
    @test(f"{bundle.parent.name}: {bundle.name}")
    def shown(box):
        with tarfile.open(bundle) as tar:
            check(any(name.endswith(".so") for name in tar.getnames()), tar.getnames())
        if not bundle.name.endswith(f"-{platform.machine()}.tar.xz"):
            raise Skip("for another architecture")
        use(box, bundle)


if sys.argv[1:] == ["--add"]:
    sys.exit(add())
for found in sorted(MUSEUM.glob("*/*.tar.xz")):
    exhibit(found)


@test("every minor version of the contract before this header's has its binaries")
def complete(box):
    for minor in range(number("MINOR") + 1):
        kept = {path.name for path in (MUSEUM / f"{number('MAJOR')}.{minor}").glob("*")}
        lacking = {f"{kind}-x86_64.tar.xz" for kind in KINDS} - kept
        check(not lacking, f"1.{minor}: {lacking}")


main()
