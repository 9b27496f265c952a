#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that a command's --help, its manual page and its bash completion list the same options, and
that the page lists every environment variable and formats without a warning.

usage: check-options.py ROOT TINYCORE"""
import pathlib
import re
import shutil
import subprocess
import sys

OPTION = re.compile(r"--[a-z][a-z-]*")


def plain(page):
    """The manual page without the macros that split words."""
    page = re.sub(r"^\.(RB|BR|RI|IR|B|I) ?", "", page, flags=re.M)
    return page.replace("\\-", "-").replace('"', "")


def options_of_help(tinycore, command):
    said = subprocess.run([tinycore, *command, "--help"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", said, re.M)) - {"--help"}, said


def options_of_page(page, command):
    """What the synopsis lists for one command."""
    synopsis = page.split(".SH SYNOPSIS")[1].split(".SH")[0]
    parts = [part for part in synopsis.split(".br") if f"tinycore {command}" in plain(part)]
    return set(OPTION.findall(plain("".join(parts)))), len(parts)


def options_of_completion(text, command):
    """The words of the case branch whose pattern names the command."""
    for pattern, body in re.findall(r"^  ([a-z| -]+)\)(.*?);;", text.split("case $command in")[1], re.M | re.S):
        if command in re.split(r"[ |]+", pattern):
            return set(OPTION.findall(body)) - {"--help"}
    return set()


def main():
    root, tinycore = pathlib.Path(sys.argv[1]), sys.argv[2]
    page = (root / "tools/tinycore.1").read_text()
    completion = (root / "tools/completion/tinycore").read_text()
    overview = options_of_help(tinycore, [])[1]
    commands = re.findall(r"^  ([a-z-]+) +\S", overview, re.M)
    found = [] if len(commands) >= 5 else [f"--help lists only {commands}"]
    for command in commands:
        helped = options_of_help(tinycore, [command])[0]
        paged, n_parts = options_of_page(page, command)
        completed = options_of_completion(completion, command)
        if n_parts != 1:
            found.append(f"the manual page's synopsis has {n_parts} entries for {command}")
        if command not in re.search(r'compgen -W "([^"]*--version[^"]*)"', completion)[1].split():
            found.append(f"completion does not offer {command}")
        for where, options in (("manual page", paged), ("completion", completed)):
            found += [f"{command}: {where} lacks {o}" for o in sorted(helped - options)]
            found += [f"{command}: {where} has {o}, which --help has not" for o in sorted(options - helped)]
    text = plain(page)
    table = (root / "libtinycore/base/tiny-env.def").read_text()
    for name in re.findall(r'^TINY_ENV_\w+ *\(\w+, *"(\w+)"', table, re.M):
        if not re.search(rf"\b{name}\b", text.split(".SH ENVIRONMENT")[1]):
            found.append(f"the manual page does not list {name}")
    if shutil.which("man"):
        said = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z",
                               str(root / "tools/tinycore.1")], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
        found += said.stderr.splitlines()
    print("\n".join(found) if found else f"{len(commands)} commands agree")
    return 1 if found else 0


sys.exit(main())
