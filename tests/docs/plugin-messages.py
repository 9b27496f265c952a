#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the generated blocks of docs/plugins.md: what tinycore says to DEV= and of plugins in each state.

usage: plugin-messages.py TINYCORE SCAN-HELPER BUILD-ROOT. Runs the command on a folder of manifests made
for this, away from the user's and the system's folders; paths and dates are replaced by words."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

KERNEL = """%0 = param.f32{slot=0, shape=[4]}
%1 = range.index{number=0, kind=loop}(4)
sink{name="ones"}(store(%0, %1, 1.0))
"""

# Name of the block → what DEV is.
REQUESTS = {
    "unknown-backend": ["CPUU"],
    "unknown-renderer": ["CPU:NOPE"],
    "no-such-device": ["CPU:77"],
    "alternatives": ["NPU|REF:88"],
    "unsupported": ["KFD+CPU", "CPU?cores=2"],
    "grammar": ["CPU|", "CPU:0:LLVM:x86_64:more"],
    "foreign": ["NULL:NOPE"],
}

# Name → module below tests/fault (or None), further members of the manifest. The order is that of the page.
PLUGINS = {
    "ABSENT": ("bad-control.so", {"match": {"device_nodes": ["/dev/no-such-accelerator"]}}),
    "DRIVER": ("bad-driver.so", {"package": "libexample1"}),
    "FUTURE": ("bad-future-note.so", {}),
    "GONE": (None, {}),
    "SYMBOL": ("bad-no-symbol.so", {}),
    "TEXT": ("text.so", {}),
    "CRASHES": ("bad-scan-crash.so", {}),
    "HANGS": ("bad-constructor-hang.so", {"probe": {"timeout_ms": 300}}),
    "LEAVES": ("bad-constructor-exit.so", {}),
}


def manifest(name, module, more=None):
    return json.dumps({"format_version": 1, "name": name, "version": "1", "abi": 1, "class": "simulator",
                       "module": str(module), **(more or {})})


class Stage:
    """A folder with manifests, an environment that sees nothing else, and the command."""

    def __init__(self, arguments, folder):
        self.tinycore, helper, self.build = arguments
        self.folder = pathlib.Path(folder).resolve()
        self.build = pathlib.Path(self.build)
        self.kernel = self.folder / "ones.tir"
        self.kernel.write_text(KERNEL)
        self.env = {"PATH": os.environ["PATH"], "HOME": folder, "LC_ALL": "C.UTF-8",
                    "XDG_DATA_HOME": folder, "XDG_DATA_DIRS": folder, "TINY_SCAN_HELPER": helper,
                    "TINY_CACHE_DIR": f"{folder}/cache"}
        for name in ("LSAN_OPTIONS", "ASAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]

    def run(self, *arguments, **env):
        done = subprocess.run([self.tinycore, *arguments], text=True, env={**self.env, **env},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        text = done.stdout.replace(f"{self.build}/tests/fault", "…").replace(str(self.build), "…")
        text = text.replace(str(self.folder), "…")
        text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "DATE", text)
        return re.sub(r" +$", "", text, flags=re.M)

    def show(self, block, text):
        print(f"<!-- generated: {block} -->\n```text\n{text.rstrip()}\n```\n")


def show_manifest():
    """The table of members, from the one that the core is built with."""
    table = pathlib.Path(__file__).parents[2] / "libtinycore/plugin/manifest-members.def"
    rows = re.findall(r'^TINY_MEMBER \("(.*?)",\s*"(.*?)",\s*"(.*?)",\s*(NULL|"(.*?)"),\s*"(.*)"\)$', table.read_text(), re.M)
    print("<!-- generated: manifest -->\n| member | JSON | where it is left out | meaning |\n|---|---|---|---|")
    for parent, key, kind, word, otherwise, meaning in rows:
        name = {"": key, "exports": f"exports.NAME.{key}"}.get(parent, f"{parent}.{key}")
        kind = "list of texts" if kind == "texts" else kind
        print(f"| `{name}` | {kind} | {'it has to be there' if word == 'NULL' else otherwise} | {meaning} |")
    print()


def show_requests(stage):
    good = stage.folder / "good"
    good.mkdir()
    for name, module in (("CPU", "cpu/tiny-cpu.so"), ("NULL", "null/tiny-null.so")):
        own = json.loads((stage.build / "plugins.d" / f"{name.lower()}.json").read_text())
        own["module"] = str(stage.build / "plugins" / module)
        (good / f"{name.lower()}.json").write_text(json.dumps(own))
    own = json.loads((stage.build / "plugins.d" / "ref.json").read_text())
    own["module"] = str(stage.build / "sdk/reference/tiny-ref.so")
    (good / "ref.json").write_text(json.dumps(own))
    stage.run("devices", TINY_PLUGIN_PATH=str(good))  # so that the lists of what there is say "ready"
    for block, specs in REQUESTS.items():
        lines = []
        for spec in specs:
            said = stage.run("compile", str(stage.kernel), DEV=spec, TINY_PLUGIN_PATH=str(good))
            lines.append(f"$ DEV='{spec}' tinycore compile ones.tir\n{said}")
        stage.show(block, "".join(lines))


def show_states(stage):
    bad = stage.folder / "plugins.d"
    bad.mkdir()
    (stage.folder / "text.so").write_text("this is no program\n")
    for name, (module, more) in PLUGINS.items():
        where = stage.folder if module in (None, "text.so") else stage.build / "tests/fault"
        (bad / f"{name.lower()}.json").write_text(manifest(name, where / (module or "gone.so"), more))
    (bad / "hidden.json").write_text("")
    late = stage.folder / "later"
    late.mkdir()
    (late / "text.json").write_text(manifest("TEXT", stage.folder / "text.so"))
    said = stage.run("devices", "--verbose", TINY_PLUGIN_PATH=f"{bad}:{late}")
    entries = re.split(r"^(?=\S)", said, flags=re.M)
    stage.show("states", "".join(e for e in entries if e.split(" ")[0].upper() in {*PLUGINS, "HIDDEN"}))
    said = stage.run("compile", str(stage.kernel), DEV="CRASHES", TINY_PLUGIN_PATH=str(bad))
    stage.show("quarantine", "$ DEV=CRASHES tinycore compile ones.tir\n" + said)


def main():
    for folder in ("/etc/tinycore-1.0/plugins.d", "/usr/local/share/tinycore-1.0/plugins.d"):
        if any(pathlib.Path(folder).glob("*.json")):
            print(f"skipped: {folder} has manifests, which the messages would name", file=sys.stderr)
            return 77
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(sys.argv[1:4], folder)
        show_manifest()
        show_requests(stage)
        show_states(stage)
    return 0


sys.exit(main())
