# SPDX-License-Identifier: MIT
"""What `tinycore new-plugin` makes builds from an installation and works as it stands."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from prefix import Prefix
from e2e import check, main, test



def make(box, name, kind):
    prefix = Prefix(box.folder("prefix"))
    env = prefix.environment({"HOME": box.root, "TINY_CACHE_DIR": box.cache})
    prefix.call("tinycore", "new-plugin", name, "--kind", kind, folder=box.work, env=env)
    return prefix, env, pathlib.Path(box.work) / f"tiny-{name}"


def passes(box, kind, whole=True):
    """The generated project's own tests, which are conformance of level core; else its groups but those of numbers and
    of other sizes of structs, where each kernel is a run of cc."""
    prefix, env, folder = make(box, "acme", kind)
    build = prefix.build(folder)
    for path in [p for p in folder.rglob("*") if p.is_file() and build not in p.parents]:
        check("sample" not in (path.name + path.read_text()).lower(), f"{path} still speaks of the template")
    found = {**env, "TINY_PLUGIN_FILES": str(build / "uninstalled.json")}
    listed = [json.loads(line) for line in prefix.call("tinycore", "devices", "--json", env=found).splitlines()]
    check(("ACME", "ready") in [(d["name"], d["state"]) for d in listed], listed)
    shown = [json.loads(line) for line in prefix.call("tinycore", "inspect", "acme", "--json", env=found).splitlines()]
    check([line["way"] for line in shown if line["part"] == "renderer"] == [kind], shown)
    if not whole:
        groups = [f"--filter={group}/*" for group in ("load", "hygiene", "lifecycle", "memory", "limits", "order",
                                                      "exec", "faults", "pair")]
        text = prefix.call("tinycore", "conformance", "--jobs", "2", *groups, "--manifest", build / "uninstalled.json",
                           build / "tiny-acme.so", env=env)
        check("level core" in text, text)
        return
    text = prefix.call("meson", "test", "-C", build, "--print-errorlogs", env=env)
    check("conformance" in text and re.search(r"^Ok: +1\b", text, re.M), text)
    check("certified" in (build / "meson-logs/testlog.txt").read_text() or re.search(r"[0-9]{4} subtests passed", text), text)


WHOLE = os.environ.get("TINY_SDK_WHOLE") == "1"


@test("a dialect plugin builds, is found, and passes " + ("level core" if WHOLE else "level core but for its numbers and skew"))
def dialect(box):
    passes(box, "dialect", whole=WHOLE)


@test("a linear plugin builds, is found, and passes level core")
def linear(box):
    passes(box, "linear")


@test("what a vendor writes for it is at most 150 lines of code")
def short(box):
    source = pathlib.Path(os.environ["TINY_SDK_EXAMPLES"], "dialect/sample.c").read_text()
    lines = [line for line in re.sub(r"/\*.*?\*/", "", source, flags=re.S).splitlines() if line.strip()]
    check(50 < len(lines) <= 150, f"{len(lines)} lines")


def make_library(folder):
    """A vendor's library: acme.h declares acme_compile(), which libacme.so has."""
    for name in ("include", "lib"):
        (folder / name).mkdir(parents=True)
    (folder / "include/acme.h").write_text("int acme_compile (int number);\n")
    source = folder / "acme.c"
    source.write_text("#include <acme.h>\nint acme_compile (int number) { return number; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{folder}/include", source, "-o", folder / "lib/libacme.so"], check=True)


@test("a project takes the vendor's own header and library, of the plugin's name, where they are")
def library(box):
    vendor = pathlib.Path(box.folder("opt"), "acme")
    make_library(vendor)
    for kind, file in (("dialect", "acme.c"), ("linear", "acme-compile.c"), ("offload", "acme-compute.c")):
        prefix, env, folder = make(box, "acme", kind)
        source = folder / file
        source.write_text(source.read_text() + '#include "acme.h"\nint uses_acme (void);\nint uses_acme (void) { return acme_compile (1); }\n')
        prefix.build(folder, "-Dvendor_libs=acme", f"-Dvendor_dir={vendor}")
        prefix.call("meson", "install", "-C", folder / "build", "--quiet", env=env)
        listed = [json.loads(line) for line in prefix.call("tinycore", "devices", "--json", env=env).splitlines()]
        check(("ACME", "ready") in [(d["name"], d["state"]) for d in listed], listed)
        for path in (folder, prefix.root):
            shutil.rmtree(path)


@test("a project says nothing of hardware that it cannot know, and marks what is open")
def gaps(box):
    for kind in ("dialect", "linear", "offload"):
        _, _, folder = make(box, f"acme{kind}", kind)
        for name in ("README.md", "debian/control", "debian/copyright", "debian/changelog"):
            text = (folder / name).read_text()
            check("GAP" in text, f"{kind}: {name} has no gap")
            for word in ("Example Devices", "invented", "made-up", "accelerators"):
                check(word not in text, f"{kind}: {name} says {word}")
        shutil.rmtree(box.folder("prefix"))


@test("an installed one is found without a variable, and removed without a trace")
def installed(box):
    prefix, env, folder = make(box, "acme", "dialect")
    source = folder / "acme.c"  # a row behind the common ones takes the place of one of them, without a warning
    source.write_text(source.read_text().replace("TINY_C_OPS,", 'TINY_C_OPS, [TINY_INSTR_XOR] = "(($t) ($1 ^ $0))",', 1))
    check("$1 ^ $0" in source.read_text())
    before = sorted(prefix.root.rglob("*"))
    build = prefix.build(folder)
    prefix.call("meson", "install", "-C", build, "--quiet", env=env)
    check("1 kernel" in prefix.call("tinycore", "bench", "matmul:64", env={**env, "DEV": "ACME"}))
    new = [path for path in sorted(prefix.root.rglob("*")) if path not in before]
    text = prefix.call("tinycore", "abi-check", next(path for path in new if path.suffix == ".so"), env=env)
    check(not re.search("^(warning|failed|unknown)", text, re.M), text)
    check(sorted(p.name for p in new) == ["acme.json", "tiny-acme.so"], new)
    for path in new:
        path.unlink()
    text = prefix.call("tinycore", "bench", "matmul:64", env={**env, "DEV": "ACME"}, status=1)
    check("no backend “ACME”" in text and "empty" not in text, text)
    check_bundle(prefix, {**env, "XDG_DATA_HOME": box.path("data")}, build, box)


def check_bundle(prefix, env, build, box):
    """The generated plugin with the certificate that the suite gives it, as users get it and are rid of it."""
    run = ("conformance", build / "tiny-acme.so", "--manifest", build / "uninstalled.json", "--json")
    prefix.call("tinycore", *run, box.path("part.json"), "--filter", "memory/zero", "--filter", "exec/add/f32/1", env=env)
    text = prefix.call("tinycore", "plugin", "bundle", build / "uninstalled.json", "-o", box.path("acme.tar.gz"), env=env)
    check("acme.tar.gz: ACME 1.0, 2 files" in text, text)
    bundle = ("plugin", "bundle", build / "acme.json", "--output", box.path("acme.tar.gz"), "--certificate")
    prefix.call("tinycore", *bundle, box.path("part.json"), env=env)
    text = prefix.call("tinycore", "plugin", "install", box.path("acme.tar.gz"), env=env)
    check("of a part of the suite" in text and "certifies nothing" in text, text)
    listed = [json.loads(line) for line in prefix.call("tinycore", "plugin", "list", "--json", env=env).splitlines()]
    check([line["name"] for line in listed] == ["ACME"], listed)
    kept = json.loads(pathlib.Path(listed[0]["certificate"]).read_text())
    check(kept == json.loads(pathlib.Path(box.path("part.json")).read_text()), kept)
    check("1 kernel" in prefix.call("tinycore", "bench", "matmul:64", env={**env, "DEV": "ACME"}))
    prefix.call("tinycore", "plugin", "remove", "acme", env=env)
    check(not box.files("data"), box.files("data"))
    kept["subject"]["build_id"] = "00" + kept["subject"]["build_id"][2:]
    text = prefix.call("tinycore", *bundle, box.write("other.json", json.dumps(kept)), env=env, status=1)
    check("another binary" in text and not os.path.exists(box.path("acme.tar.gz")), text)


@test("names, kinds and folders that cannot be are refused, and nothing is written")
def refused(box):
    prefix = Prefix(box.folder("prefix"))
    env = prefix.environment({"HOME": box.root, "TINY_CACHE_DIR": box.cache})
    full = box.folder("work", "full")
    pathlib.Path(full, "file").write_text("mine")
    for words, wanted, status in ((["9x"], "cannot be a backend's name", 1), (["a-b"], "a letter, then", 1),
                                  (["a" * 33], "32 in all", 1), (["cpu"], "there is a backend CPU already", 1),
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
