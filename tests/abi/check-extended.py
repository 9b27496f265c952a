#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds a plugin against a header of a minor version that does not exist yet, and runs it on this core.

usage: check-extended.py INCLUDE SAMPLE MANIFEST TINYCORE

INCLUDE has tiny-plugin.h and the kit. Fields are appended to every struct that can grow, and the minor becomes one more;
SAMPLE, a whole plugin, fills and reads these fields as the kit says that it is done. This core's structs lack
them. (What an older plugin does with a newer core's structs, the conformance group skew sees.)"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

GROWS = ["TinyPluginError", "TinyLinear", "TinyTarget", "TinyDialect", "TinyOperation", "TinyClaim", "TinyCompileArgs", "TinyRenderer",
         "TinyHost", "TinyCandidate", "TinyDeviceInfo", "TinyCommand", "TinySubmit", "TinyProgramArgs", "TinyDeviceTable",
         "TinyPluginModule"]
GROUPS = ["--filter=load/*", "--filter=lifecycle/*", "--filter=exec/variables/*", "--filter=exec/spans/*"]
USES = (("TINY_FILL (out, .flags", "TINY_FILL (out, .later = { 1, 2, 3, 4 }, .flags"),
        ("TINY_FILL (out, .arch", "TINY_FILL (out, .later = { 1, 2, 3, 4 }, .arch"),
        (".id = \"sample\"", ".later = { 1, 2, 3, 4 }, .id = \"sample\""),
        ("  return tiny_submit_each", "  if (TINY_HAS (work, later) && work->later[0] != 0)\n    return TINY_STATUS_INTERNAL;\n"
                                      "  return tiny_submit_each"))


def extend(header):
    """The header with four more words at the end of each struct that can grow."""
    for name in GROWS:
        header, n = re.subn(rf"(\nstruct {name} \{{.*?|\ntypedef struct {name} \{{.*?)(\n\}}( {name})?;)",
                            r"\1\n  uint64_t later[4]; /* of a version to come */\2", header, count=1, flags=re.S)
        if n != 1:
            sys.exit(f"{name}: no such struct in the header")
    header, n = re.subn(r"(TINY_PLUGIN_ABI_MINOR) (\d+)u", lambda m: f"{m[1]} {int(m[2]) + 1}u", header)
    if n != 1:
        sys.exit("the header has no minor version")
    return header


def main():
    include, sample, manifest, tinycore = (pathlib.Path(word) for word in sys.argv[1:5])
    source = sample.read_text()
    for old, new in USES:
        if old not in source:
            sys.exit(f"{sample} has no {old}: say here where it fills what")
        source = source.replace(old, new)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path in include.glob("tiny-plugin-*.h"):
            (folder / path.name).write_text(path.read_text())
        (folder / "tiny-plugin.h").write_text(extend((include / "tiny-plugin.h").read_text()))
        (folder / "sample.c").write_text(source)
        module = folder / "tiny-sample.so"
        subprocess.run(["cc", "-std=gnu11", "-O1", "-Wall", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{folder}",
                        "-o", module, folder / "sample.c"], check=True)
        text = manifest.read_text().replace("@VERSION@", "1.0").replace("@MODULE@", str(module))
        (folder / "sample.json").write_text(text)
        env = {**os.environ, "TINY_CACHE_DIR": str(folder / "cache"), "HOME": name}
        done = subprocess.run([tinycore, "conformance", "--jobs", "2", *GROUPS, "--manifest", folder / "sample.json", module],
                              env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        print(done.stdout[-3000:])
        return 1 if done.returncode or "level core" not in done.stdout else 0


sys.exit(main())
