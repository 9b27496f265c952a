#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the commits that changed what tests/replay expects: none is titled [same], and each says why in accepted.txt.

usage: check-commits.py ROOT. Without git's history it is a skip. Checks itself first on made-up commits. Each of the
last WINDOW of these commits by which numbers grew has a line of accepted.txt that says so."""
import pathlib
import re
import subprocess
import sys

EXPECTED, LOG = "tests/replay/expected/", "tests/replay/accepted.txt"
SKIP, WINDOW, REASON_WORDS = 77, 5, 3
SAME = re.compile(r"[\[(]\s*same\s*[\])]", re.I)
SUMMARY = re.compile(r" (?:\[\d+ lines grew\] )?\((?:attention|examples|inventory|models|random|scans): .*\)$")
NUMBER = re.compile(r" (kernels|launches|bytes|temporary|memory)=(\d+)")


def commits_of(text):
  """(hash, title, files) of what git log printed."""
  for block in text.split("\0")[1:]:
    head, *files = block.strip("\n").split("\n")
    commit, _, title = head.partition(" ")
    yield commit, title, [name for name in files if name]


def complaint(title, files, reasons):
  """@reasons: the lines that accepted.txt has more."""
  if not any(name.startswith(EXPECTED) for name in files):
    return None
  if SAME.search(title):
    return "is titled [same] and changes what tests/replay expects"
  if LOG not in files:
    return f"changes what tests/replay expects without a line in {LOG}: use tests/replay/accept"
  short = [line for line in reasons if len(SUMMARY.sub("", line).split()) < REASON_WORDS]
  return f"accepts “{short[0]}”, which is no reason" if short else None


def grown(old, new):
  """The cases of expected/ with a number that is higher in @new."""
  def read(text):
    return {" ".join(line.split(" ", 2)[:2]): dict(NUMBER.findall(line)) for line in text.splitlines()}
  before, after = read(old), read(new)
  return [key for key, numbers in after.items()
          if any(int(n) > int(before.get(key, numbers).get(name, n)) for name, n in numbers.items())]


def check_itself():
  changed = [EXPECTED + "models.txt"]
  why = ["tiles are wider now [2 lines grew] (models: 2 of 3 lines, kernels +1%)"]
  for title in ("schedule: [same] x", "schedule: x (same)", "schedule: x [ Same ]"):
    assert complaint(title, changed + [LOG], why)
  assert complaint("schedule: x", changed, why) and not complaint("schedule: x", changed + [LOG], why)
  for reason in (".", "fine", ". (models: 2 of 3 lines, numbers as before)"):
    assert complaint("schedule: x", changed + [LOG], [reason]), reason
  assert not complaint("schedule: [same] x", ["x.c"], [])
  assert list(commits_of("\0ab t u\n\na\nb\n\0cd v\n")) == [("ab", "t u", ["a", "b"]), ("cd", "v", [])]
  line = "m/plain haswell plans=1 kernels=3 bytes=50 AA BB\n"
  assert not grown(line, line.replace("plans=1", "plans=2")) and not grown("", line)
  assert grown(line, line.replace("bytes=50", "bytes=51")) == ["m/plain haswell"]


def main():
  check_itself()
  git = ["git", "-C", sys.argv[1], "-c", f"safe.directory={pathlib.Path(sys.argv[1])}"]

  def ask(*words):
    return subprocess.run([*git, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
  done = ask("log", "--no-merges", "--name-only", "--format=%x00%h %s", "--", EXPECTED, LOG)
  if done.returncode != 0:
    print("no history of git here")
    return SKIP
  commits, found = list(commits_of(done.stdout)), []

  def added(commit):
    diff = ask("show", "--format=", "--unified=0", commit, "--", LOG).stdout
    return [row[1:] for row in diff.splitlines() if row.startswith("+") and not row.startswith("+++")]
  for commit, title, files in commits:
    if why := complaint(title, files, added(commit)):
      found.append(f"{commit} “{title}” {why}")
  names = ask("ls-tree", "--name-only", "HEAD", EXPECTED).stdout.split()
  for commit, title, _ in commits[:WINDOW]:
    rows = [row for name in names for row in grown(ask("show", f"{commit}~:{name}").stdout, ask("show", f"{commit}:{name}").stdout)]
    if rows and not any("lines grew]" in row for row in added(commit)):
      found.append(f"{commit} “{title}”: {len(rows)} lines grew, and {LOG} does not say so: {rows[0]}")
  print("\n".join(found) if found else "commits: nothing wrong")
  return 1 if found else 0


sys.exit(main())
