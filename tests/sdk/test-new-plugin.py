# SPDX-License-Identifier: MIT
"""What `tinycore new-plugin` makes builds from an installation and works as it stands."""
import json
import os
import pathlib
import re
import sys

from prefix import Prefix
from e2e import check, main, test

OPS = os.environ["TINY_SDK_OP_TESTS"].split(":")


def make(box, name, kind):
    prefix = Prefix(box.folder("prefix"))
    env = prefix.environment({"HOME": box.root, "TINY_CACHE_DIR": box.cache})
    prefix.call("tinycore", "new-plugin", name, "--kind", kind, folder=box.work, env=env)
    return prefix, env, pathlib.Path(box.work) / f"tiny-{name}"


@test("a dialect plugin builds, is found, and computes what every op should")
def dialect(box):
    prefix, env, folder = make(box, "acme", "dialect")
    build = prefix.build(folder)
    for path in [p for p in folder.rglob("*") if p.is_file() and build not in p.parents]:
        check("sample" not in (path.name + path.read_text()).lower(), f"{path} still speaks of the template")
    env["TINY_PLUGIN_FILES"] = str(build / "uninstalled.json")
    listed = [json.loads(line) for line in prefix.call("tinycore", "devices", "--json", env=env).splitlines()]
    check(("ACME", "ready") in [(d["name"], d["state"]) for d in listed], listed)
    env.update(DEV="ACME", TINY_PLUGIN_PATH=str(prefix.root / "share/tinycore-1.0/plugins.d"),
               TINY_SCAN_HELPER=str(prefix.root / "libexec/tinycore-1.0/tiny-scan"))
    for program in OPS:
        text = prefix.call(program, env=env)
        check("not ok" not in text and text.count("\nok ") >= 5, text[-2000:])


@test("what a vendor writes for it is at most 150 lines of code")
def short(box):
    source = pathlib.Path(os.environ["TINY_E2E_BUILD"], os.environ["TINY_SDK_EXAMPLES"], "dialect/sample.c").read_text()
    code = re.sub(r"/\*.*?\*/", "", source, flags=re.S)
    lines = [line for line in code.splitlines() if line.strip()]
    check(50 < len(lines) <= 150, f"{len(lines)} lines")


@test("an installed one is found without a variable, and removed without a trace")
def installed(box):
    prefix, env, folder = make(box, "acme", "dialect")
    before = sorted(prefix.root.rglob("*"))
    build = prefix.build(folder)
    prefix.call("meson", "install", "-C", build, "--quiet", env=env)
    check("1 kernel" in prefix.call("tinycore", "bench", "matmul:64", env={**env, "DEV": "ACME"}))
    new = [path for path in sorted(prefix.root.rglob("*")) if path not in before]
    check(sorted(p.name for p in new) == ["acme.json", "tiny-acme.so"], new)
    for path in new:
        path.unlink()
    text = prefix.call("tinycore", "bench", "matmul:64", env={**env, "DEV": "ACME"}, status=1)
    check("no backend “ACME”" in text, text)


@test("names, kinds and folders that cannot be are refused, and nothing is written")
def refused(box):
    prefix = Prefix(box.folder("prefix"))
    env = prefix.environment({"HOME": box.root, "TINY_CACHE_DIR": box.cache})
    full = box.folder("work", "full")
    pathlib.Path(full, "file").write_text("mine")
    for words, wanted, status in ((["9x"], "cannot be a backend's name", 1), (["a-b"], "a letter, then", 1),
                                  (["a" * 25], "24 in all", 1), (["cpu"], "there is a backend CPU already", 1),
                                  (["foo", "--kind", "bar"], "there is no kind “bar”; there is:", 1),
                                  (["foo", "--kind", "../kind"], "there is no kind", 1),
                                  (["foo", "--dir", full], "not an empty folder", 1),
                                  (["foo", "--dir", "/proc/no"], "/proc/no", 1), ([], "usage:", 2)):
        text = prefix.call("tinycore", "new-plugin", *words, folder=box.work, env=env, status=status)
        check(wanted in text, f"{words}: {text}")
    check(os.listdir(box.work) == ["full"] and os.listdir(full) == ["file"], os.listdir(box.work))
    env["TINY_TEMPLATE_DIR"] = box.path("none")
    text = prefix.call("tinycore", "new-plugin", "foo", folder=box.work, env=env, status=1)
    check("tinycore-sdk" in text, text)


if __name__ == "__main__":
    sys.exit(main())
