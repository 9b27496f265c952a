#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the commits that changed what tests/replay expects: none is titled [same], and each says why in accepted.txt.

usage: check-commits.py ROOT. Without git's history it is a skip. Checks itself first on made-up commits."""
import pathlib
import subprocess
import sys

EXPECTED, LOG = "tests/replay/expected/", "tests/replay/accepted.txt"
SKIP = 77


def commits_of(text):
  """(hash, title, files) of what git log printed."""
  for block in text.split("\0")[1:]:
    head, *files = block.strip("\n").split("\n")
    commit, _, title = head.partition(" ")
    yield commit, title, [name for name in files if name]


def complaint(title, files):
  if not any(name.startswith(EXPECTED) for name in files):
    return None
  if "[same]" in title.lower():
    return "is titled [same] and changes what tests/replay expects"
  return None if LOG in files else f"changes what tests/replay expects without a line in {LOG}: use tests/replay/accept"


def main():
  changed = [EXPECTED + "models.txt"]
  assert complaint("schedule: [same] x", changed + [LOG]) and complaint("schedule: x", changed)
  assert not complaint("schedule: x", changed + [LOG]) and not complaint("schedule: [same] x", ["x.c"])
  assert list(commits_of("\0ab t u\n\na\nb\n\0cd v\n")) == [("ab", "t u", ["a", "b"]), ("cd", "v", [])]
  root = pathlib.Path(sys.argv[1])
  done = subprocess.run(["git", "-C", str(root), "-c", f"safe.directory={root}", "log", "--no-merges", "--name-only",
                         "--format=%x00%h %s", "--", EXPECTED, LOG],
                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
  if done.returncode != 0:
    print("no history of git here")
    return SKIP
  found = [f"{commit} “{title}” {why}" for commit, title, files in commits_of(done.stdout)
           if (why := complaint(title, files))]
  print("\n".join(found) if found else "commits: nothing wrong")
  return 1 if found else 0


sys.exit(main())
