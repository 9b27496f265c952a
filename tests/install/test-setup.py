#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""./setup and the package of the CPU backend ask for a fast LAPACK, for which Netlib's does not pass.

usage: test-setup.py SOURCE

Nothing is installed: dpkg-query, apt-get and the like are scripts that say what is there and note what is wanted."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FAST = {"libopenblas0", "libopenblas0-pthread", "libopenblas0-openmp"}
PROGRAMS = {
    "dpkg-query": 'case "${@: -1}" in $MISSING) exit 1;; *) echo installed;; esac',
    "apt-cache": "exit 0",
    "apt-get": 'echo "$@" >>"$WANTED"; [ "$1" = update ]',
    "sudo": 'exec "$@"',
    "meson": "exit 1",
}


def wanted_by(source, command, missing):
    """The packages that ./setup @command installs where those like @missing, a pattern of the shell, are not there."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, text in PROGRAMS.items():
            (folder / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
            (folder / name).chmod(0o755)
        wanted = folder / "wanted"
        wanted.touch()
        env = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "MISSING": missing, "WANTED": str(wanted),
                            "TINY_BUILD_DIR": str(folder / "build")}
        subprocess.run([source / "setup", command], env=env, check=False, capture_output=True)
        lines = [line.split() for line in wanted.read_text().splitlines()]
    return {word for line in lines if line[0] == "install" for word in line[1:] if word.startswith("lib")}


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    for command in "build", "run", "test":
        found = wanted_by(source, command, "libopenblas*")
        assert found == {"libopenblas0-pthread"}, f"setup {command} beside liblapack3 installs {found}"
        assert wanted_by(source, command, "none") == set(), command
        assert wanted_by(source, command, "libopenblas0-pthread") == set(), command
    control = (source / "debian" / "control").read_text()
    package = re.search(r"^Package: tinycore-plugin-cpu$.*?^Recommends: ([^\n]*)", control, re.M | re.S).group(1)
    names = {name.strip() for name in re.split(r"[|,]", package)}
    assert names & FAST and names <= FAST, f"the CPU backend's package recommends {names}"


main()
