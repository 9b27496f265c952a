#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the Debian packages as a distribution does, from the tarball of `meson dist`, and uses them in a
minimal system of their own: the core without a backend, the CPU backend, a vendor's package built in
there, other languages, and what is left when all is purged.

usage: test-packaging.py SOURCE FOLDER

TAP. FOLDER keeps the minimal system and downloaded packages for the next run. 77: not root, not apt, or
the tools of `./setup packaging` are not there."""
import filecmp
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import system
from system import Failure, run

SOURCE, FOLDER = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path[:0] = [str(SOURCE / "tests/e2e"), str(SOURCE / "tests/lint")]
import small_data  # noqa: E402
import tree  # noqa: E402

TOOLS = ("dpkg-buildpackage", "dh", "dh_girepository", "dh_python3", "dpkg-scanpackages", "lintian", "mmdebstrap", "appstreamcli",
         "meson", "git")
CORE = ("libtinycore-1.0-0", "tinycore")
ALL = {*CORE, "libtinycore-dev", "gir1.2-tiny-1.0", "python3-tinycore", "tinycore-sdk", "tinycore-plugin-cpu", "tinycore-plugin-cl",
       "tinycore-plugin-cuda", "tinycore-plugin-webgpu"}
VENDOR = "tinycore-plugin-orbit"
CACHE = ".cache/tinycore-1.0"


def check(good, text):
    if not good:
        raise Failure(text)


def has(text, *parts):
    for part in parts:
        check(part in text, f"“{part}” is not in:\n{text}")


# ---- building ----
def clean_environment(**more):
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "GIT_CONFIG_GLOBAL": "/dev/null", "DEB_BUILD_OPTIONS": "nocheck parallel=2", **more}


def make_tarball(work):
    """What meson dist makes of the working tree, committed or not."""
    copy, env = work / "tree", clean_environment()
    names = [path.relative_to(SOURCE) for path in tree.files(SOURCE)]
    for name in names:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(SOURCE / name, copy / name)
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost"]
    for command in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-qm", "tree"]):
        run([*git, *command], env=env, cwd=copy)
    run(["meson", "setup", "build", "--buildtype=release"], env=env, cwd=copy)
    run(["meson", "dist", "-C", "build", "--no-tests"], env=env, cwd=copy)
    tarball, = (copy / "build/meson-dist").glob("*.tar.xz")
    inside = run(["tar", "-tf", tarball]).split()
    wanted = {str(name) for name in names}
    found = {"/".join(name.split("/")[1:]) for name in inside if not name.endswith("/")}
    check(found == wanted, f"the tarball lacks {sorted(wanted - found)[:9]} and has {sorted(found - wanted)[:9]} besides")
    return tarball


def build(tarball, work, name, what, **env):
    """Unpacks the tarball in folder @name and returns the folder of packages."""
    out = work / name
    out.mkdir(parents=True)
    run(["tar", "-C", out, "-xf", tarball])
    unpacked, = out.iterdir()
    run(["dpkg-buildpackage", "-us", "-uc", what], env=clean_environment(**env), cwd=unpacked)
    shutil.rmtree(unpacked)
    built = {path.name.split("_")[0] for path in out.glob("*.deb")}
    check({one for one in built if not one.endswith("-dbgsym")} == ALL, f"built were {sorted(built)}")
    return out


def check_reproducible(first, second):
    for path in sorted(first.glob("*.deb")):
        if not filecmp.cmp(path, second / path.name, shallow=False):
            differs = run(["sh", "-c", 'for d; do dpkg-deb --fsys-tarfile "$d" | tar -tv --full-time; done | sort | uniq -u',
                           "sh", path, second / path.name])
            raise Failure(f"{path.name} is another when built again elsewhere:\n{differs}")


def lint(folder):
    changes = sorted(folder.glob("*.changes"))
    run(["lintian", "--allow-root", "--no-cfg", "--fail-on", "error,warning", *changes], "lintian")


def check_metainfo(root, modalias):
    """AppStream's own check, and the modaliases that the manifest has."""
    files = sorted((root / "usr/share/metainfo").glob("*.xml"))
    check(files, f"no metainfo in {root}")
    run(["appstreamcli", "validate", "--no-net", *files])
    found = re.findall("<modalias>(.*?)</modalias>", "".join(path.read_text() for path in files))
    check(found == modalias, f"modaliases in the metainfo: {found}, in the manifest: {modalias}")


def check_description(debs, work):
    for path in sorted(debs.glob("tinycore-plugin-*_*.deb")):
        if "-dbgsym_" not in path.name:
            root = work / "unpacked" / path.name
            root.mkdir(parents=True)
            run(["dpkg-deb", "-x", path, root])
            check_metainfo(root, [])


# ---- using ----
def devices(box):
    lines = box.program("tinycore", "devices", "--json").splitlines()
    return {entry["name"]: entry["state"] for entry in map(json.loads, lines)}


def check_without_backend(box, work, debs):
    """What a user sees who has the core alone. The program is compiled outside, against the packages."""
    simulated = box.inside(["apt-get", "-s", "install", "tinycore"])
    has(simulated, "Inst tinycore-plugin-cpu ", "Inst libllvm")
    box.install("tinycore")
    ours = {name for name in box.installed() if "tinycore" in name}
    check(ours == set(CORE), f"tinycore came with {sorted(ours)}")
    has(box.program("tinycore", "devices"), "no backends were found", "tinycore-plugin-cpu")
    has(box.program("tinycore", "bench", "matmul:64", good=(1,)), "none, since no manifest", "tinycore-plugin-cpu")
    for command in (["conformance", "CPU"], ["new-plugin", "acme", "--kind", "dialect"]):
        has(box.program("tinycore", *command, good=(1, 2, 3)), "tinycore-sdk")
    root = work / "development"
    root.mkdir()
    for name in ("libtinycore-dev", "libtinycore-1.0-0"):
        path, = debs.glob(f"{name}_*.deb")
        run(["dpkg-deb", "-x", path, root])
    program = box.root / "home" / system.USER / "expression"
    glib = run(["pkg-config", "--cflags", "--libs", "gobject-2.0"]).split()
    library, = root.glob("usr/lib/*/libtinycore-1.0.so")
    run(["cc", SOURCE / "examples/expression.c", "-o", program, f"-I{root}/usr/include/tinycore-1.0",
         f"-L{library.parent}", "-ltinycore-1.0", *glib])
    has(box.program("./expression"), "tinycore-plugin-cpu")


def check_cpu(box):
    box.install("tinycore-plugin-cpu")
    check(devices(box) == {"CPU": "ready"}, f"devices: {devices(box)}")
    has(box.program("./expression"), "91", "[ 8., 10., 12.]", "inner sizes 3 and 2 differ")
    box.program("tinycore", "bench", "matmul:64")
    data = box.root / "home" / system.USER / "data"
    data.mkdir()
    for name, content in small_data.made(200, 100).items():
        (data / name).write_bytes(content)
    has(box.program("tinycore", "train", "fashion-mnist", "--steps", "3", "--batch", "50", "--data", "data"),
        "loss")


def check_sdk(box):
    box.install("tinycore-sdk", "tinycore-plugin-webgpu", "tinycore-plugin-cl", "tinycore-plugin-cuda", "python3-tinycore", "python3-numpy",
                "build-essential", "debhelper", "meson", "pkgconf")
    states = devices(box)
    wanted = {"CPU": "ready", "REF": "ready", "NULL": "ready", "CL": "broken", "WEBGPU": "broken"}
    gpu = states.pop("CUDA")  # the machine around has one, or not; there is no driver
    check(states == wanted and gpu in ("no hardware", "broken"), f"devices: {states}, CUDA {gpu}")
    has(box.program("tinycore", "devices", "-v"), "CL_PLATFORM_NOT_FOUND", "pocl-opencl-icd", "TINY_WEBGPU_LIBRARY")
    box.program("tinycore", "export", "matmul:64", "--target", "webgpu", "--output", "page")
    check((box.root / "home" / system.USER / "page/index.html").exists(), "no page was exported")
    for name, wanted in (("build-examples", "91"), ("introspection", "6."), ("python", "[[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]")):
        script = box.root / "home" / system.USER / name
        shutil.copy(SOURCE / "debian/tests" / name, script)
        has(box.program(f"./{name}", AUTOPKGTEST_TMP=f"/home/{system.USER}"), wanted)


def check_template(box):
    """What new-plugin makes builds from the installed packages alone, and is found."""
    box.program("tinycore", "new-plugin", "acme", "--kind", "dialect")
    box.program("meson", "setup", "build", folder="tiny-acme")
    box.program("ninja", "-C", "build", folder="tiny-acme")
    there = {"TINY_PLUGIN_FILES": f"/home/{system.USER}/tiny-acme/build/uninstalled.json", "DEV": "ACME"}
    has(box.program("tinycore", "bench", "matmul:64", **there), "1 kernel")


# What a vendor of hardware writes into the manifest of a simulated one.
HARDWARE = (
    ('"class": "simulator"', '"class": "npu"'),
    ('"match": {}', '"match": { "modalias": ["pci:v0000FFFEd00000001sv*", "usb:vFFFEp0001d*"], "device_nodes": ["/dev/null"] }'),
)


def check_vendor(box, work):
    """A package of what new-plugin makes, which knows only what is installed: built as a user, its tests run,
    linted, installed, found."""
    home = box.root / "home" / system.USER
    box.program("tinycore", "new-plugin", "orbit", "--kind", "linear")
    manifest = home / "tiny-orbit/orbit.json.in"
    text = manifest.read_text()
    for before, after in HARDWARE:
        check(before in text, f"the manifest has no {before}")
        text = text.replace(before, after)
    manifest.write_text(text)
    box.program("dpkg-buildpackage", "-us", "-uc", "-b", folder="tiny-orbit")
    out = work / "vendor"
    out.mkdir()
    for path in [*home.glob(f"{VENDOR}*.deb"), *home.glob("*.changes"), *home.glob("*.buildinfo")]:
        shutil.copy(path, out / path.name)
    lint(out)
    package, = out.glob(f"{VENDOR}_*.deb")
    fields = run(["dpkg-deb", "-f", package])
    has(fields, "tinycore-core-abi-1 (>= 1.0)", "Provides: tinycore-plugin-abi-1")
    run(["dpkg-deb", "-x", package, out / "root"])
    text = (out / "root/usr/share/tinycore-1.0/plugins.d/orbit.json").read_text()
    check_metainfo(out / "root", json.loads(text)["match"]["modalias"])
    box.inside([*system.APT, "install", f"/home/{system.USER}/{package.name}"])
    states = devices(box)
    check(states.get("ORBIT") == states.get("CPU") == "ready", f"devices: {states}")


# A change to that manifest, and what dh_tinycore_plugin says of it.
WRONG = (
    ('"abi": 1,', "", "“abi” is missing"),
    ('"name": "ORBIT"', '"name": "OTHER"', "should be called other.json"),
    ('"@MODULE@"', '"../nowhere.so"', "is not in this package"),
    ('"format_version": 1,', '"format_version": 1', "no JSON"),
    ('"abi_minor_min": 0', '"abi_minor_min": 1', "abi-check"),
)


def check_refusals(box):
    manifest = box.root / "home" / system.USER / "tiny-orbit/orbit.json.in"
    text = manifest.read_text()
    for before, after, said in WRONG:
        check(before in text, f"the manifest has no {before}")
        manifest.write_text(text.replace(before, after))
        answer = box.program("dpkg-buildpackage", "-us", "-uc", "-b", good=(2, 25, 255), folder="tiny-orbit", DEB_BUILD_OPTIONS="nocheck")
        has(answer, "dh_tinycore_plugin", said)
        check("dpkg-deb: building" not in answer, f"a package in spite of {after or 'nothing for ' + before}")


def check_purge(box, work, debs):
    """What is there after purging, and not in a system that never had the packages."""
    ours = sorted(name for name in box.installed() if name in ALL | {VENDOR})
    check(len(ours) == len(ALL) + 1, f"installed are {ours}")
    home = box.root / "home" / system.USER
    made = {str(path.relative_to(home)) for path in (home / ".cache").glob("*")}
    check(made == {CACHE}, f"programs left in their user's home: {sorted(made)}")
    (box.root / "var/lib/left-over").mkdir()  # so that this is known to see what is left
    box.inside([*system.APT, "purge", *ours])
    kept = box.installed()
    control = system.System(work, "control", debs)
    control.install(*sorted(kept - control.installed()))
    missing = kept ^ control.installed()
    check(not missing, f"the system to compare with has other packages: {sorted(missing)}")
    shutil.rmtree(home)
    shutil.copytree(control.root / "home" / system.USER, home)
    left = box.files() - control.files()
    control.remove()
    check(left == {"var/lib/left-over"}, "left after purging:\n" + "\n".join(sorted(left)[:40]))


def steps(work):
    """Name and function of each point; one that fails ends the run, since the next need it."""
    made = {}

    def first():
        made["debs"] = build(made["tarball"], work, "first", "-F", TZ="UTC", LC_ALL="C.UTF-8")

    def second():
        again = build(made["tarball"], work, "again/in/another-folder", "-b", TZ="Asia/Tokyo", LC_ALL="C")
        check_reproducible(made["debs"], again)

    def boxed(function, *more):
        return lambda: function(made["box"], *(made[name] if isinstance(name, str) else name for name in more))

    yield "meson dist holds the tree", lambda: made.update(tarball=make_tarball(work))
    yield "source and binary packages build from it", first
    yield "lintian has no warning", lambda: lint(made["debs"])
    yield "AppStream metadata is valid", lambda: check_description(made["debs"], work)
    yield "built again elsewhere, they are the same", second
    yield "a minimal system", lambda: made.update(box=system.System(FOLDER, "system", made["debs"]))
    yield "without a backend, programs say which package to install", boxed(check_without_backend, work, "debs")
    yield "with the CPU backend they compute and train", boxed(check_cpu)
    yield "development files: examples, C++, Python", boxed(check_sdk)
    yield "a project of new-plugin computes", boxed(check_template)
    yield "a vendor's package, built there, stands beside the CPU", boxed(check_vendor, work)
    yield "manifests that are wrong are refused", boxed(check_refusals)
    yield "purging leaves nothing", boxed(check_purge, FOLDER, "debs")


def main():
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if os.geteuid() != 0 or missing:
        print("1..0 # SKIP " + (f"./setup packaging installs {', '.join(missing)}" if missing else "only root can make a system"))
        return 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("system", "control"):
        shutil.rmtree(FOLDER / name, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="packaging-") as folder:
        points = list(steps(pathlib.Path(folder)))
        print(f"1..{len(points)}", flush=True)
        for number, (name, function) in enumerate(points, 1):
            try:
                function()
            except (Failure, OSError, subprocess.SubprocessError) as failure:
                print(f"not ok {number} {name}")
                print("\n".join("# " + line for line in str(failure).splitlines()[-200:]))
                print("Bail out! the next steps need it")
                return 1
            print(f"ok {number} {name}", flush=True)
    for name in ("system", "control"):
        shutil.rmtree(FOLDER / name, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
