#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tinycore plugin: bundles that install, are replaced and go without a trace, and archives that do nothing."""
import gzip
import io
import json
import os
import shutil
import stat
import subprocess
import tarfile
import threading
import time
import zipfile

from e2e import Skip, check, main, note, test

BAD = os.environ["TINY_E2E_BAD_DIR"]
SANITIZED = os.environ.get("TINY_E2E_SANITIZED")


def ref(version="0.1.0"):
    """Manifest and module of REF as a bundle has them; the version is the module's own."""
    for folder in os.environ["TINY_PLUGIN_PATH"].split(":"):
        path = os.path.join(folder, "ref.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                manifest = json.load(file)
            with open(os.path.join(folder, manifest["module"]), "rb") as file:
                return {**manifest, "module": "tiny-ref.so"}, file.read()
    raise Skip("REF is not built")


def archive(box, name, members, kind="gz"):
    """A tar of (name, bytes or TarInfo) pairs."""
    path = box.path(name)
    with tarfile.open(path, f"w:{kind}") as tar:
        for member, data in members:
            info = member if isinstance(member, tarfile.TarInfo) else tarfile.TarInfo(member)
            if data is not None:
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data) if data is not None else None)
    return path


def good_members(**changes):
    manifest, module = ref()
    return [("ref.json", json.dumps({**manifest, **changes}).encode()), ("tiny-ref.so", module)]


def certificate_of(build_id, **changes):
    """One of a whole run, of a single case."""
    score = {name: 0 for name in ("must", "passed", "failed", "crashed", "hung", "expected", "not run", "recorded", "absent")}
    made = {"format": "tinycore-conformance 1", "subject": {"spec": "REF", "sha256": "00", "build_id": build_id},
            "suite": {"version": "1", "build_id": "00"}, "run": {"level": "core", "seed": "1", "filters": [], "complete": True},
            "score": {**score, "must": 1, "passed": 1}, "certified": "core", "status": 0, "absent": [], "worst": [],
            "capabilities": [], "cases": [{"name": "load/open", "outcome": "passed", "level": "core", "must": True}]}
    return {**made, **changes}


def build_id_of(box, path):
    lines = box.run("inspect", path, "--json").good().lines()
    return next(line["build_id"] for line in lines if line["part"] == "file")


def env(box):
    return {"XDG_DATA_HOME": box.path("data"), "XDG_DATA_DIRS": box.path("system"), "TINY_PLUGIN_PATH": None}


def plugin(box, *arguments):
    return box.run("plugin", *arguments, **env(box))


def listed(box):
    return {line["name"]: line for line in plugin(box, "list", "--json").quiet().lines()}


def states(box):
    return {line["name"]: line["state"] for line in box.run("devices", "--json", **env(box)).good().lines()}


@test("made, installed, found, replaced, listed and removed without a trace")
def life(box):
    if SANITIZED:
        raise Skip("what a sanitizer instruments is not to be shipped, and refused")
    manifest, module = ref()
    box.write("src/tiny-ref.so", module)
    box.write("src/web/page.html", "page")
    box.write("src/ref.json", json.dumps({**manifest, "exports": {"w": {"renderer": "REF", "form": "files", "folder": "web"}}}))
    build_id = build_id_of(box, box.path("src/tiny-ref.so"))
    certificate = box.write("src/made.json", json.dumps(certificate_of(build_id)))
    for end in ("tar.gz", "tar.zst", "tar.xz", "tar", "zip"):
        output = box.path(f"ref.{end}")
        said = plugin(box, "bundle", box.path("src/ref.json"), "--output", output, "--certificate", certificate).quiet()
        check("4 files" in said.out and os.listdir(box.path()).count(f"ref.{end}.part") == 0, said)
        with open(output, "rb") as file:
            first = file.read()
        plugin(box, "bundle", box.path("src/ref.json"), "-o", output, "--certificate", certificate).quiet()
        with open(output, "rb") as file:
            check(end == "zip" or file.read() == first, f"{end}: another archive of the same files")
        said = plugin(box, "install", output).quiet()
        check("note:" not in said.out, said)
        entry = listed(box)["REF"]
        check(entry["source"] == output and entry["certificate"].endswith("/ref.cert.json"), entry)
        check(os.path.exists(entry["certificate"]) and not entry["system"], entry)
        check(len(os.listdir(box.path("data/tinycore-1.0/plugins"))) == 1, "the version before is still there")
        check(states(box) == {"REF": "ready"}, states(box))
    installed = box.run("devices", "--json", **env(box)).lines()[0]["plugin"]
    check(installed.startswith(box.path("data/tinycore-1.0/plugins/ref-")), installed)
    box.run("export", "sum:4x4", "--target", "nope", "--output", box.path("x"), DEV="REF", **env(box)) \
        .refused("there is: w, or")
    said = plugin(box, "install", archive(box, "plain.tgz", good_members())).quiet()
    check("no certificate" in said.out and listed(box)["REF"]["certificate"] is None, said)
    check("plain.tgz" in plugin(box, "list").quiet().out)
    plugin(box, "remove", "ref").quiet()
    check(box.files("data") == [] and not os.path.exists(box.path("data/tinycore-1.0")), box.files("data"))
    kept = [path for path in box.files("cache") if os.path.basename(os.path.dirname(path)) == "scans"]
    check(all("tiny-ref" not in open(path, encoding="utf-8").read() for path in kept), kept)
    check("no bundle" in plugin(box, "list").quiet().out and states(box) == {}, "something is left")
    plugin(box, "remove", "REF").refused("was not installed by this command")


@test("for all users; in one folder of its own; with umask 0")
def system(box):
    if SANITIZED:
        raise Skip("what a sanitizer instruments is not to be shipped, and refused")
    path = archive(box, "ref.tar", [(f"ref-1/{name}", data) for name, data in good_members()], kind="")
    old = os.umask(0)
    try:
        plugin(box, "install", path, "--system").quiet()
    finally:
        os.umask(old)
    check(listed(box)["REF"]["system"] is True and box.files("data") == [], listed(box))
    for folder, _, files in os.walk(box.path("system/tinycore-1.0")):
        for name in [".", *files]:
            check(os.stat(os.path.join(folder, name)).st_mode & 0o022 == 0, f"others may write {folder}/{name}")
    check(states(box) == {"REF": "ready"}, states(box))
    said = plugin(box, "install", path).quiet()  # the user's comes first
    check(len(plugin(box, "list", "--json").lines()) == 2 and "hidden" not in said.out, said)
    plugin(box, "remove", "REF", "--system").quiet()
    check(box.files("system") == [] and list(listed(box)) == ["REF"], box.files("system"))


@test("a certificate of this module is believed as far as its own cases bear it out")
def certificates(box):
    if SANITIZED:
        raise Skip("what a sanitizer instruments is not to be shipped, and refused")
    whole = certificate_of(build_id_of(box, box.write("tiny-ref.so", ref()[1])))
    (passed,) = whole["cases"]

    def changed(**changes):
        return {**whole, **changes}

    def failed(level, **changes):
        return changed(cases=[passed, {**passed, "name": "memory/zero", "level": level, "outcome": "failed"}], status=1,
                       score={**whole["score"], "must": 2, "failed": 1}, **changes)

    refusals = {
        "certified": (changed(certified="models"), "it says certified: models, and by its cases it is core"),
        "status": (changed(status=1), "its status is 1, and by its cases 0"),
        "score": (changed(score={**whole["score"], "passed": 9}), "its score says 9 passed"),
        "cases": (changed(cases=[]), "was changed"),
        "outcome": (changed(cases=[{**passed, "outcome": "crashed"}]), "was changed"),
        "unknown": (changed(cases=[{**passed, "outcome": "fine"}]), "cases[0].outcome is “fine”"),
        "filters": (changed(run={**whole["run"], "filters": ["load/*"]}), "by its cases it is none"),
        "type": (changed(absent=3), "absent is of another type"),
        "failed": (failed("core", certified="none"), "is of a run that failed: 1 cases failed, and 1 of 2"),
    }
    for name, (certificate, part) in refusals.items():
        members = [*good_members(), ("ref.cert.json", json.dumps(certificate).encode())]
        plugin(box, "install", archive(box, "ref.tar.gz", members)).refused(part)
        check(box.files("data") == [], name)
    for certificate, part in ((changed(run={**whole["run"], "filters": ["load/*"]}, certified="none"), "it certifies nothing"),
                              (failed("full", run={**whole["run"], "level": "full"}), "is of level core; of what is above")):
        members = [*good_members(), ("ref.cert.json", json.dumps(certificate).encode())]
        said = plugin(box, "install", archive(box, "ref.tar.gz", members)).quiet()
        check("note: its certificate" in said.out and part in said.out, said)


@test("hostile archives are refused by the member, and nothing is written")
def hostile(box):
    manifest, module = ref()

    def info(name, **fields):
        out = tarfile.TarInfo(name)
        for key, value in fields.items():
            setattr(out, key, value)
        return out

    good = good_members()
    rows = {
        "up": ([*good, ("../evil.so", b"x")], "“../evil.so” is no name"),
        "deep up": ([*good, ("a/../../evil", b"x")], "is no name"),
        "absolute": ([*good, ("/etc/evil", b"x")], "“/etc/evil” is no name"),
        "backslash": ([*good, ("a\\..\\evil", b"x")], "is no name"),
        "escape": ([*good, ("a\x1b[31m", b"x")], "is no name"),
        "long": ([*good, ("a" * 300, b"x")], "is no name"),
        "symlink": ([*good, (info("a", type=tarfile.SYMTYPE, linkname="/etc/passwd"), None)], "“a” is a link"),
        "hard link": ([*good, (info("a", type=tarfile.LNKTYPE, linkname="ref.json"), None)], "“a” is a link"),
        "device": ([*good, (info("a", type=tarfile.CHRTYPE, devmajor=1, devminor=5), None)], "neither a file"),
        "pipe": ([*good, (info("a", type=tarfile.FIFOTYPE), None)], "neither a file"),
        "twice": ([*good, ("tiny-ref.so", b"x")], "“tiny-ref.so” is there twice"),
        "case": ([*good, ("Tiny-REF.so", b"x")], "is there twice"),
        "many": ([*good, *((f"f{i}", b"") for i in range(1000))], "more than 1000 files"),
        "empty": ([], "it is empty"),
        "no manifest": (good[1:], "it has no manifest"),
        "two manifests": ([*good, ("other.json", b"{}")], "two manifests"),
        "two certificates": ([*good, ("a.cert.json", b"{}"), ("certificate.json", b"{}")], "two certificates"),
        "no module": (good[:1], "the manifest's module “tiny-ref.so” is not in it"),
        "module up": (good_members(module="../../tiny-ref.so"), "the manifest's module “../../tiny-ref.so”"),
        "module absolute": (good_members(module="/tiny-ref.so"), "the manifest's module “/tiny-ref.so”"),
        "export": (good_members(exports={"w": {"renderer": "REF", "form": "files", "folder": "/etc"}}), "export “w”"),
        "bad manifest": ([("ref.json", b"{"), good[1]], "ref.json: not JSON"),
        "name": (good_members(name="../x"), "“name” is “../x”"),
        "abi": (good_members(abi=2), "plugin ABI 2"),
        "other binary": ([*good, ("ref.cert.json", json.dumps(certificate_of("00")).encode())], "is for another binary: build-id 00"),
        "no binary": ([*good, ("ref.cert.json", json.dumps(certificate_of("")).encode())], "build-id not said"),
        "something": ([*good, ("ref.cert.json", b'{"build_id": "00"}')], "ref.cert.json is no certificate"),
        "certificate": ([*good, ("ref.cert.json", b"[]")], "ref.cert.json: not a JSON object"),
        "no plugin": ([good[0], ("tiny-ref.so", b"text")], "does not begin as an ELF file"),
        "cut plugin": ([good[0], ("tiny-ref.so", module[:5000])], "truncated"),
        "disagrees": (good_members(version="77.1"), "“77.1”, which is nowhere in the file"),
    }
    for name, (members, part) in rows.items():
        if SANITIZED and name in ("other binary", "no binary", "something", "certificate", "disagrees"):
            continue  # abi-check comes first, and names the sanitizer
        result = plugin(box, "install", archive(box, "bad.tar.gz", members))
        note(result.err.strip()[:200])
        result.refused("bad.tar.gz", part)
        check("\x1b" not in result.err, "a terminal is steered")
        check(box.files("data") == [] and not os.path.exists(box.path("data/tinycore-1.0")), name)
    for name, content, part in (("text", b"text" * 500, "no archive"), ("nothing", b"", "no archive"),
                                ("zeros", b"\0" * 100000, "it is empty"), ("cut", None, "")):
        path = box.path(f"{name}.tar.gz")
        if content is None:
            archive(box, f"{name}.tar.gz", good)
            with open(path, "r+b") as file:
                file.truncate(os.path.getsize(path) // 2)
        else:
            box.write(f"{name}.tar.gz", content)
        result = plugin(box, "install", path)
        note(result.err.strip()[:200])
        result.refused(f"{name}.tar.gz", part)
    plugin(box, "install", box.path("gone.tar")).refused("gone.tar", "No such file")
    with open(box.path("huge.tar"), "wb") as file:
        file.truncate(6 << 30)
    start = time.monotonic()
    plugin(box, "install", box.path("huge.tar")).refused("huge.tar", "more than 512 MiB")
    check(time.monotonic() - start < 5, "it was read")
    plugin(box, "install", box.root).refused("it is no file")
    with zipfile.ZipFile(box.path("link.zip"), "w") as made:
        for member, data in good:
            made.writestr(member, data)
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        made.writestr(link, "/etc/passwd")
    plugin(box, "install", box.path("link.zip")).refused("“link” is a link")
    bomb = info("zeros")
    bomb.size = 600 << 20
    mebibyte = gzip.compress(bytes(1 << 20))  # a gzip file may consist of many
    box.write("bomb.tar.gz", gzip.compress(bomb.tobuf()) + 600 * mebibyte)
    plugin(box, "install", box.path("bomb.tar.gz")).refused("more than 512 MiB")
    check(box.files("data") == [])


@test("a module that crashes or is another's is not installed; the one before stays")
def crashes(box):
    if SANITIZED:
        raise Skip("what a sanitizer instruments is not to be shipped, and refused")
    plugin(box, "install", archive(box, "good.tgz", good_members())).quiet()
    before = listed(box)
    for name, part in (("scan-crash", "signal 11"), ("constructor-exit", "constructors"), ("fini-crash", "signal 11"),
                       ("driver", "libbad.so.1"), ("no-scan", "slot scan")):
        with open(os.path.join(BAD, f"bad-{name}.so"), "rb") as file:
            module = file.read()
        manifest = {"format_version": 1, "name": "REF", "abi": 1, "module": "m.so", "renderers": [], "version": "1"}
        if name != "constructor-exit":
            module = module.replace(name.encode() + b"\0", b"REF\0" + b"\0" * (len(name) - 3))
        members = [("x.json", json.dumps(manifest).encode()), ("m.so", module)]
        result = plugin(box, "install", archive(box, "bad.tgz", members))
        note(result.err.strip()[:200])
        result.refused(part)
        check("/tmp" not in result.err.replace(box.root, ""), result)
        check(listed(box) == before and states(box)["REF"] == "ready", name)
    box.write("data/tinycore-1.0/plugins.d/null.json", "{}")
    manifest = {"format_version": 1, "name": "NULL", "abi": 1, "module": "m.so"}
    members = [("x.json", json.dumps(manifest).encode()), ("m.so", b"x")]
    plugin(box, "install", archive(box, "n.tgz", members)).refused("null.json is there and was not installed by this")
    plugin(box, "remove", "null").refused("was not installed by this command")
    check(os.path.exists(box.path("data/tinycore-1.0/plugins.d/null.json")))


@test("a folder that cannot be written, a full disk, and two at once")
def places(box):
    if SANITIZED:
        raise Skip("what a sanitizer instruments is not to be shipped, and refused")
    path = archive(box, "good.tgz", good_members())
    box.write("data", "a file")
    plugin(box, "install", path).refused("good.tgz", "data")
    os.unlink(box.path("data"))
    other = archive(box, "other.tgz", [*good_members(), ("README", b"x")])
    results = []
    threads = [threading.Thread(target=lambda p=p: results.append(
        subprocess.run([os.environ["TINY_E2E_COMMAND"], "plugin", "install", p], env=box.environment(env(box)),
                       capture_output=True, text=True, check=False))) for p in (path, other) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check([r.returncode for r in results] == [0] * 6, [r.stderr for r in results])
    check(states(box) == {"REF": "ready"} and len(os.listdir(box.path("data/tinycore-1.0/plugins"))) == 1, states(box))
    # Left by an installation that was killed half way.
    home = listed(box)["REF"]["folder"]
    shutil.copytree(home, home + ".part")
    plugin(box, "remove", "REF").quiet()
    plugin(box, "install", path).quiet()
    plugin(box, "install", other).quiet()
    plugin(box, "remove", "REF").quiet()
    check(not [f for f in box.files("data") if ".part" in f], box.files("data"))
    plugin(box, "frob").refused("usage: tinycore plugin install", status=2)
    plugin(box, "install").refused("usage:", status=2)
    plugin(box, "bundle", box.path("gone.json"), "-o", box.path("x.tar")).refused("gone.json")
    plugin(box, "bundle", box.path("gone.json")).refused("--output", status=2)
    whole = os.path.join(os.environ["TINY_PLUGIN_PATH"].split(":")[0], "ref.json")
    os.mkfifo(box.path("pipe.tar"))
    plugin(box, "bundle", whole, "-o", box.path("pipe.tar")).refused("pipe.tar: it is no regular file")
    check(stat.S_ISFIFO(os.stat(box.path("pipe.tar")).st_mode), "the pipe is replaced")
    open(box.path("real.tar"), "w").close()
    os.symlink("real.tar", box.path("link.tar"))
    os.symlink(box.path("victim"), box.path("link.tar.part"))
    plugin(box, "bundle", whole, "-o", box.path("link.tar")).quiet()
    check(os.path.islink(box.path("link.tar")) and os.path.getsize(box.path("real.tar")) > 0, "the link is not followed")
    check(not os.path.exists(box.path("victim")), "what lies beside is written to")
    plugin(box, "bundle", os.path.join(os.environ["TINY_PLUGIN_PATH"].split(":")[0], "ref.json"), "-o",
           box.path("x.rar")).refused(".tar.gz, .tar.zst")
    plugin(box, "bundle", os.path.join(os.environ["TINY_PLUGIN_PATH"].split(":")[0], "ref.json"), "-o",
           box.path("nowhere", "x.zip")).refused("nowhere/x.zip", "No such file or directory")


main()
