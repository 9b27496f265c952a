#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what may only become less against the tables beside this file.

usage: check-budgets.py [--update REASON] ROOT

budgets.txt: a number a line, of a room or folder:
  lines     of code, in hundreds, begun ones counted
  openings  comments that open with What, Whether or Of
  wide      Markdown lines of more than 120 characters, but for rows of tables
A number above its row fails; so does a row that is far above its number (SLACK), which has to follow. A row that is
higher than it once was in git's history needs a reason of REASON_WORDS words that it did not have when it was lowest,
and each later rise another one.

owed.txt: what is there against the rules, a line each; a new one fails, and so does one that is gone. The lines of a
kind are never more than they were in any commit:
  private   FILE HEADER: the private header of another room that a file includes
  twice     NAME FILE…: a type of the library that is defined in several places

--update writes both tables as they are now; rows that grew get the reason."""
import collections
import pathlib
import re
import subprocess
import sys

import tree

HERE = pathlib.Path(__file__).resolve().parent
BUDGETS, OWED = HERE / "budgets.txt", HERE / "owed.txt"
CODE = (".c", ".h", ".cpp", ".def", ".py", ".pyi", ".pm", ".vala", ".js", ".tir", ".sh")
WIDEST = 120
SLACK = {"lines": 2, "openings": 3, "wide": 3}  # what a row may be above its number

OPENING = {
  "c": re.compile(r"/\*+[\s*]*(?:What|Whether|Of)\b"),
  "py": re.compile(r'(?:^|\s)#\s*(?:What|Whether|Of)\b|"""(?:What|Whether|Of)\b', re.M),
}
COMMENT = re.compile(r"/\*.*?\*/", re.S)
REASON_WORDS = 3
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+-private\.h)[">]', re.M)
DEFINED = (re.compile(r"^\} (Tiny\w+);", re.M), re.compile(r"^struct (Tiny\w+)\s*\{", re.M),
           re.compile(r"^typedef [^;{}]*\(\*(Tiny\w+)\)", re.M))
OPAQUE = re.compile(r"^typedef struct (TinyPlugin\w+) \1;", re.M)  # of the contract: each side has its own


def room_of(name):
  """libtinycore/base, plugins/cpu, … ; the first folder of others; "." at the root."""
  parts = name.split("/")[:-1]
  deep = parts and parts[0] in ("libtinycore", "plugins", "sdk", "tests")
  return "/".join(parts[:2] if deep else parts[:1]) or "."


def n_openings(name, text):
  kind = "c" if name.endswith((".c", ".h", ".cpp", ".def", ".vala", ".js")) else \
    "py" if name.endswith((".py", ".pyi", ".pm", ".sh", "meson.build")) else None
  return len(OPENING[kind].findall(text)) if kind else 0


def numbers_of(files):
  """(kind, room) → number; @files: name → text."""
  out = collections.Counter()
  for name, text in files.items():
    room = room_of(name)
    if name.endswith(CODE):
      out["lines", room] += text.count("\n")
    out["openings", room] += n_openings(name, text)
    if name.endswith(".md"):
      out["wide", room] += sum(len(line) > WIDEST and line[0] != "|" for line in text.split("\n"))
  return {key: -(-n // 100) if key[0] == "lines" else n for key, n in out.items() if n > 0}


def owed_of(files):
  """What is there against the rules, as lines of owed.txt."""
  places, opaque, out = collections.defaultdict(set), set(), set()
  for name, text in files.items():
    if not name.endswith((".c", ".h")):
      continue
    out.update(f"private {name} {header}" for header in INCLUDE.findall(text)
               if "/" in header and not header.startswith("..")
               and not name.startswith((header.rsplit("/", 1)[0] + "/", f"libtinycore/{header.split('/')[0]}/")))
    if name.startswith("libtinycore/"):
      bare = COMMENT.sub("", text)
      opaque.update(OPAQUE.findall(bare))
      for pattern in DEFINED:
        for defined in pattern.findall(bare):
          places[defined].add(name)
  out.update(f"twice {name} {' '.join(sorted(where))}" for name, where in places.items()
             if len(where) > 1 and name not in opaque)
  return out


# ---- the tables ----

def read_budgets(text):
  """(kind, room) → (number, reason)"""
  rows = [line.split(None, 3) for line in text.splitlines()]
  return {(row[0], row[1]): (int(row[2]), row[3] if len(row) > 3 else "") for row in rows}


def write_budgets(rows):
  return "".join(f"{kind} {room} {n}{' ' if why else ''}{why}\n" for (kind, room), (n, why) in sorted(rows.items()))


def history(root, name, read):
  """A table of this folder, read by @read, from each commit that changed it; none where git does not say."""
  git = ["git", "-C", str(root), "-c", f"safe.directory={root}"]
  path = f"tests/lint/{name}"

  def ask(*words):
    return subprocess.run([*git, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
  return [read(text) for commit in ask("log", "--format=%h", "--", path).split() if (text := ask("show", f"{commit}:{path}"))]


def lowest(tables):
  """Each row of the tables when its number was lowest: (kind, room) → (number, reason)."""
  out = {}
  for table in tables:
    for key, row in table.items():
      out[key] = min(out.get(key, row), row, key=lambda one: one[0])
  return out


def count_kinds(lines):
  return collections.Counter(line.split()[0] for line in lines)


def judge(numbers, budgets, least):
  """@least: each row when it was lowest, or of whom nothing is known."""
  for key, n in sorted(numbers.items()):
    most = budgets.get(key, (0, ""))[0]
    if n > most:
      yield f"{key[1]}: {n} {key[0]}, its budget is {most}: make it less, or give the row of budgets.txt a reason"
  for key, (most, why) in sorted(budgets.items()):
    if most - numbers.get(key, 0) > SLACK[key[0]]:
      yield f"{key[1]}: {numbers.get(key, 0)} {key[0]}, its budget is still {most}: check-budgets.py --update"
    low, reason_then = least.get(key, (most, ""))
    if most > low and (why == reason_then or len(why.split()) < REASON_WORDS):
      yield f"{key[1]}: {key[0]} raised to {most} from {low} in budgets.txt without a reason of its own, in words"


def judge_rises(tables):
  """@tables: the newest first. Of the last two changes, as those before were made by another rule."""
  for new, old in list(zip(tables, tables[1:]))[:2]:
    for key, (n, why) in sorted(new.items()):
      before, why_then = old.get(key, (n, ""))
      if n > before and why == why_then:
        yield f"{key[1]}: {key[0]} raised to {n} from {before} in budgets.txt with the reason of an earlier rise"


def judge_owed(found, listed, earlier=()):
  yield from (f"{line}: not in owed.txt, where nothing new goes" for line in sorted(found - listed))
  yield from (f"{line}: in owed.txt, and gone: take it out" for line in sorted(listed - found))
  for kind, n in count_kinds(listed).items():
    least = min((count_kinds(lines)[kind] for lines in earlier), default=n)
    if n > least:
      yield f"owed.txt: {n} lines {kind}, and there were {least} before: they only get fewer"


def check_itself():
  files = {"libtinycore/ir/a.c": '/* What it is. */\n#include <engine/runtime-private.h>\n} TinyA;\n' + "\n" * 100,
           "libtinycore/nn/b.h": '#include "nn/module-private.h"\n} TinyA;\n', "x.md": "y" * 121 + "\n",
           "tools/c.py": "# Whether it is.\n# It is what it is.\n"}
  numbers = numbers_of(files)
  assert numbers == {("lines", "libtinycore/ir"): 2, ("lines", "libtinycore/nn"): 1, ("lines", "tools"): 1,
                     ("openings", "libtinycore/ir"): 1, ("openings", "tools"): 1, ("wide", "."): 1}, numbers
  budgets = {key: (n, "") for key, n in numbers.items()}
  assert not list(judge(numbers, budgets, budgets))
  fewer = {**budgets, ("wide", "."): (0, "")}
  assert len(list(judge(numbers, fewer, fewer))) == 1
  assert len(list(judge({}, budgets, budgets))) == 0 and len(list(judge({}, {("wide", "."): (9, "")}, {}))) == 1
  for reason, n in (("", 1), (".", 1), ("a table that came in", 0)):  # raised
    raised = {**budgets, ("wide", "."): (1, reason)}
    assert len(list(judge(numbers, raised, lowest([budgets, fewer, raised])))) == n, reason
  tables = [{("wide", "."): row} for row in ((3, "a table that came in"), (2, "a table that came in"), (1, ""))]
  assert len(list(judge_rises(tables))) == 1 and not list(judge_rises(tables[1:])) and not list(judge_rises(tables[2:]))
  owed = owed_of(files)
  assert owed == {"private libtinycore/ir/a.c engine/runtime-private.h",
                  "twice TinyA libtinycore/ir/a.c libtinycore/nn/b.h"}, owed
  assert len(list(judge_owed(owed, {"private x y"}))) == 3
  assert not list(judge_owed(owed, owed, [owed])) and len(list(judge_owed(owed, owed, [owed, {"twice TinyA"}]))) == 1


def main():
  check_itself()
  root, reason = pathlib.Path(sys.argv[-1]), sys.argv[2] if sys.argv[1] == "--update" else None
  files = {}
  for path in tree.files(root):
    try:
      files[str(path.relative_to(root))] = path.read_text()
    except UnicodeDecodeError:  # an archive
      continue
  numbers, owed = numbers_of(files), owed_of(files)
  budgets = read_budgets(BUDGETS.read_text()) if BUDGETS.exists() else {}
  if reason is not None:
    rows = {key: (n, reason if n > budgets.get(key, (0, ""))[0] else budgets[key][1]) for key, n in numbers.items()}
    BUDGETS.write_text(write_budgets(rows))
    OWED.write_text("".join(f"{line}\n" for line in sorted(owed)))
    return 0
  listed = set(OWED.read_text().splitlines())
  tables = history(root, BUDGETS.name, read_budgets)
  found = [*judge(numbers, budgets, lowest(tables)), *judge_rises([budgets, *tables]),
           *judge_owed(owed, listed, history(root, OWED.name, lambda text: set(text.splitlines())))]
  return tree.report("budgets", found, len(files), 300)


sys.exit(main())
