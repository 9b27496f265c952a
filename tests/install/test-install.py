#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Installs the build into a folder that it was not configured for, and uses it as others do: by
pkg-config, with nothing of the source tree or the build folder.

usage: test-install.py SOURCE BUILD

Every installed header compiles alone; the examples compile, in C and C++, and what new-plugin makes builds; an example computes with the moved tree's CPU backend; the plugin appears beside
it; in the guide and what it links to no link is dead."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
STRICT = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-fsyntax-only"]


def run(command, env, **more):
    done = subprocess.run([str(word) for word in command], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}\nfailed with {done.returncode}")
    return done.stdout


def outside(work):
    """The environment without anything that leads into the build folder."""
    env = {name: text for name, text in os.environ.items()
           if not name.startswith("TINY_") and name not in ("DEV", "DEBUG", "LD_LIBRARY_PATH", "GI_TYPELIB_PATH", "PYTHONPATH",
                                                            "PKG_CONFIG_PATH", "MALLOC_PERTURB_")}
    env["PATH"] = os.pathsep.join(part for part in env["PATH"].split(os.pathsep)
                                  if BUILD not in [pathlib.Path(part), *pathlib.Path(part).parents])
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "HOME"):
        env[name] = str(work / "home")
    (work / "home").mkdir()
    return env


def install(work, env):
    """The moved tree, and the environment of one who uses it."""
    options = json.loads(run(["meson", "introspect", BUILD, "--buildoptions"], env))
    prefix, libdir = (next(o["value"] for o in options if o["name"] == name) for name in ("prefix", "libdir"))
    run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", work / "as-configured"], env)
    moved = work / "moved"
    shutil.move(work / "as-configured" / prefix.lstrip("/"), moved)
    for path in (moved / libdir / "pkgconfig").iterdir():
        text = path.read_text()
        assert f"prefix={prefix}\n" in text, path
        path.write_text(text.replace(f"prefix={prefix}\n", f"prefix={moved}\n"))
    return moved, {**env, "PKG_CONFIG_PATH": str(moved / libdir / "pkgconfig"),
                   "LD_LIBRARY_PATH": str(moved / libdir)}


def flags(package, env, what=("--cflags", "--libs")):
    return run(["pkg-config", *what, package], env).split()


def include(header, compiler, env):
    run([*compiler, *STRICT, "-"], env, input=f'#include "{header}"\n')


def check_headers(moved, env):
    headers = sorted((moved / "include" / "tinycore-1.0").rglob("*.h"))
    of_programs = flags("tinycore-1.0", env, ["--cflags"])
    for header in headers:
        include(header, ["cc", "-std=c11", "-D_GNU_SOURCE", "-x", "c", *of_programs], env)
    assert len(headers) > 15, headers
    of_plugins = flags("tinycore-plugin-1.0", env)
    include("tiny-plugin.h", ["cc", "-std=c11", "-pedantic", "-x", "c", *of_plugins], env)
    if shutil.which("c++"):
        include("tiny-plugin.h", ["c++", "-std=c++17", "-pedantic", "-x", "c++", *of_plugins], env)
    built = flags("tinycore-plugin-1.0", {**env, "PKG_CONFIG_PATH": str(BUILD / "meson-uninstalled")}, ["--cflags"])
    for header in ("tiny-plugin-driver.h", "tiny-plugin-host.h", "tiny-plugin-kit.h"):
        for found in (of_plugins, built):
            include(header, ["cc", "-std=gnu11", "-x", "c", *found], env)
    assert str(SOURCE / "libtinycore") in " ".join(built), built
    print(f"{len(headers)} headers compile alone")


def check_examples(work, env):
    """Returns one of the programs."""
    programs = sorted([*(SOURCE / "examples").glob("*.c"), *(SOURCE / "examples").glob("*.cpp")])
    for path in programs:
        if path.suffix == ".c" or shutil.which("c++"):
            compiler = ["cc", "-std=gnu11"] if path.suffix == ".c" else ["c++", "-std=c++17"]
            run([*compiler, "-Wall", "-Werror", path, "-o", work / path.name.replace(".", "-"),
                 *flags("tinycore-1.0", env)], env, cwd=work)
    for name, answer in (("expression-c", "91"), ("expression-cpp", "12")):
        if (work / name).exists():
            said = run([work / name], {**env, "DEV": "CPU"})
            assert answer in said, f"{name} printed {said}"
    return work / "expression-c"


def check_linked(moved, work, program, env):
    """As /lib is a link to /usr/lib: the way up from there is the link's target's."""
    libdir = pathlib.Path(env["LD_LIBRARY_PATH"])
    (work / "root").mkdir()
    (work / "root/lib").symlink_to(moved / "lib")
    linked = work / "root/lib" / libdir.relative_to(moved / "lib")
    said = run([program], {**env, "DEV": "CPU", "LD_LIBRARY_PATH": str(linked)})
    assert "91" in said, f"through a link: {said}"
    print("examples compile and compute, also with the library's folder behind a link")


def check_plugin(moved, work, env):
    plugin_dir, manifest_dir = (pathlib.Path(run(["pkg-config", f"--variable={name}", "tinycore-plugin-1.0"],
                                                 env).strip()) for name in ("plugindir", "manifestdir"))
    assert (plugin_dir / "tiny-cpu.so").exists() and (manifest_dir / "cpu.json").exists()
    run([moved / "bin" / "tinycore", "new-plugin", "sample", "--kind", "linear", "--dir", work / "sample"], env)
    run(["meson", "setup", work / "plugin", work / "sample", "--werror"], env)
    run(["ninja", "-C", work / "plugin", "install"], env)
    lines = run([moved / "bin" / "tinycore", "devices", "--json"], env).splitlines()
    found = {entry["name"]: entry for entry in map(json.loads, lines)}
    for name in ("CPU", "REF", "SAMPLE"):
        assert found[name]["state"] == "ready", f"{name}: {found.get(name)}"
        assert found[name]["plugin"].startswith(str(moved)), found[name]
    print("a plugin built outside stands beside the others:", ", ".join(found))


def check_documents(moved):
    pages = sorted((moved / "share/doc/tinycore-sdk").rglob("*.md"))
    dead = [f"{page}: {link}" for page in pages for link in re.findall(r"\]\(([^)#\s]+)", page.read_text())
            if not re.match("[a-z]+:", link) and not (page.parent / link).exists()]
    assert len(pages) > 10 and not dead, dead
    print(f"{len(pages)} pages for those who write backends")


def main():
    with tempfile.TemporaryDirectory(prefix="install-", dir=BUILD) as folder:
        work = pathlib.Path(folder)
        moved, env = install(work, outside(work))
        check_documents(moved)
        check_headers(moved, env)
        check_linked(moved, work, check_examples(work, env), env)
        check_plugin(moved, work, env)


main()
