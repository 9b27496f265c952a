#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the compiler makes of the corpora of this folder, beside what was accepted in expected/.

usage: replay.py check --program REPLAY [--texts DIR] CORPUS
       replay.py caches --program REPLAY
       replay.py accept [--build DIR] [--worse] REASON

check prints each line that is another one, its numbers and its kernels, and exits 1. accept writes what there is now to
expected/ and the reason to accepted.txt; numbers that grew are refused unless --worse says that they are meant.
caches plans the models for a machine that reports nonsense of its caches, and holds the numbers beside those of expected/."""
import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = HERE / "expected"
LOG = HERE / "accepted.txt"
CORPORA = ("attention", "examples", "inventory", "models", "random")
# Numbers that may not grow without a reason; "plans" may.
BARS = ("kernels", "launches", "bytes", "temporary", "memory")
MOST_SHOWN = 25
# Nothing, 16 KiB and 1 GiB, of each level alone beside CACHES_TARGET's own, and of all.
CACHES_OWN = ("32K", "1M", "22M")
CACHES_REPORTS = [",".join(size if level in (i, 3) else own for i, own in enumerate(CACHES_OWN))
                  for size in ("0", "16K", "1G") for level in range(4)]
CACHES_TARGET = "skylake-avx512"
CACHES_SHARE = 1.3
NUMBER = re.compile(r"(\w+)=(\d+) ")
# Captured steps that take more than the plain step beside them, and why. A row that is not needed is an error.
APART = "what depends on weights alone is a plan of its own in a recording"
MORE_WHEN_CAPTURED = {
  "attention-backward/captured": "each gradient is a plan of its own in a recording",
  "attention-backward:4096/captured": "each gradient is a plan of its own in a recording",
  "gpt2-tiny-prefill/captured": "a recording knows its inputs as a whole, where a plain step is given a run of one's elements",
  "resnet-tiny/captured": APART,
  "resnet-tiny/backward-captured": APART,
  "resnet50/backward-captured": APART,
}


class Line:
  """One line: what it is about, its numbers, its schedule and kernels, and what stopped it."""

  def __init__(self, text):
    self.text = text
    rest, _, self.error = text.partition(" error: ")
    self.case, self.target, *_ = rest.split(" ", 2)
    self.numbers = {name: int(value) for name, value in NUMBER.findall(rest)}
    words = NUMBER.sub("", rest).split()[2:]
    self.schedule, self.kernels = (words[0], words[1:]) if words else ("", [])

  @property
  def key(self):
    return self.case, self.target

  def grown(self, old):
    """The bars that are higher than in @old."""
    return [name for name in BARS if self.numbers.get(name, 0) > old.numbers.get(name, 0)]


def read_lines(text):
  lines = [Line(row) for row in text.splitlines()]
  out = {line.key: line for line in lines}
  assert len(out) == len(lines), "a case is there twice: regenerate the file"
  return out


def load(corpus):
  path = EXPECTED / f"{corpus}.txt"
  return read_lines(path.read_text()) if path.exists() else {}


def run(program, corpus, *more):
  done = subprocess.run([program, corpus, *more], stdout=subprocess.PIPE, text=True)
  if done.returncode != 0:
    sys.exit(f"replay {corpus}: status {done.returncode}")
  return read_lines(done.stdout)


# ---- what changed ----

def number_change(name, before, after):
  share = f" ({(after - before) / before:+.1%})" if before and after != before else ""
  return f"{name} {before} → {after}{share}"


def describe(old, new, texts):
  """The lines that say how @new differs from @old; @texts: of the new kernels, in order, or []."""
  if old is None or new is None:
    return [f"{(new or old).case} {(new or old).target}: {'gone' if new is None else 'new'}"]
  changes = [number_change(name, old.numbers.get(name, 0), value)
             for name, value in new.numbers.items() if value != old.numbers.get(name, 0)]
  changes += ["another schedule"] if old.schedule != new.schedule else []
  changes += [f"error “{old.error}” → “{new.error}”"] if old.error != new.error else []
  grown = new.grown(old)
  head = f"{new.case} {new.target}: {'GREW: ' if grown else ''}{', '.join(changes) or 'other kernels'}"
  out, names = [head], dict(enumerate(texts))
  matcher = difflib.SequenceMatcher(None, old.kernels, new.kernels, autojunk=False)
  for tag, i, i_end, j, j_end in matcher.get_opcodes():
    if tag == "equal":
      continue
    pairs = min(i_end - i, j_end - j)
    for k in range(pairs):
      same_opts = old.kernels[i + k][:2] == new.kernels[j + k][:2]
      what = "another linear program" if same_opts else "other optimisations"
      out.append(f"    kernel {j + k + 1} of {len(new.kernels)}: {what}; now {names.get(j + k, new.kernels[j + k])}")
    out += [f"    kernel {n + 1} of the {len(old.kernels)} before is gone" for n in range(i + pairs, i_end)]
    out += [f"    kernel {n + 1} of {len(new.kernels)} is new: {names.get(n, new.kernels[n])}"
            for n in range(j + pairs, j_end)]
  return out


def changed_keys(old, new):
  return [key for key in sorted(set(old) | set(new))
          if key not in old or key not in new or old[key].text != new[key].text]


def kernel_heads(folder, key):
  """The heads of the kernels in the text that --dump wrote."""
  name = re.sub("[/:]", "-", f"{key[0]}.{key[1]}")
  path = folder / name
  return re.findall(r"^---- (.*)$", path.read_text(), re.M) if path.exists() else []


def summary(old, new):
  """Which numbers became how many times more or fewer, over the lines of both."""
  both = [key for key in new if key in old]
  parts = []
  for name in BARS:
    before = sum(old[key].numbers.get(name, 0) for key in both)
    after = sum(new[key].numbers.get(name, 0) for key in both)
    if before != after:
      parts.append(f"{name} {(after - before) / max(before, 1):+.2%}")
  return ", ".join(parts) or "numbers as before"


def captured_breaches(lines):
  """Captured steps that launch, move or hold more than the plain step, beyond the table; and rows that are not needed."""
  more = {}
  for line in lines.values():
    plain = lines.get((line.case.replace("captured", "plain"), line.target))
    if plain in (None, line):
      continue
    found = [number_change(name, plain.numbers[name], line.numbers[name]) for name in ("launches", "bytes", "temporary")
             if line.numbers[name] > plain.numbers[name]]
    if found:
      more.setdefault(line.case, []).append(f"{line.target}: {', '.join(found)}")
  has_any = any("captured" in case for case, _ in lines)
  return [f"{case}: more than the plain step; {'; '.join(on)}" for case, on in sorted(more.items())
          if case not in MORE_WHEN_CAPTURED] + \
         [f"{case}: no more than the plain step now; take it out of MORE_WHEN_CAPTURED" for case in MORE_WHEN_CAPTURED
          if has_any and case not in more]


def check(options):
  old, new = load(options.corpus), run(options.program, options.corpus)
  keys = changed_keys(old, new)
  breaches = captured_breaches(new)
  texts = pathlib.Path(options.texts or tempfile.mkdtemp(prefix="replay-")) / options.corpus
  texts.mkdir(parents=True, exist_ok=True)
  for at, key in enumerate(keys):
    if at < MOST_SHOWN and key in new:
      run(options.program, options.corpus, "--case", key[0].replace("[", "[[]"), "--target", key[1], "--dump", str(texts))
    for line in describe(old.get(key), new.get(key), kernel_heads(texts, key))[:None if at < MOST_SHOWN else 1]:
      print(line)
  print("\n".join(breaches))
  if keys:
    n_grown = sum(bool(new[key].grown(old[key])) for key in keys if key in old and key in new)
    print(f"\n{options.corpus}: {len(keys)} of {len(new)} lines changed, {n_grown} grew: {summary(old, new)}\n"
          f"The texts are in {texts}; those of another commit: build it, run\n"
          f"  replay {options.corpus} --case CASE --target TARGET --dump DIR\nand compare the folders with diff -r. "
          'If the change is meant: tests/replay/accept "reason"')
  else:
    print(f"{options.corpus}: {len(new)} lines as accepted")
  return 1 if keys or breaches or not new else 0


# ---- caches ----

def check_caches(options):
  """Whatever is reported of each level, launches and bytes are at most CACHES_SHARE times those of a machine's own report."""
  accepted, bad, n_seen = load("models"), [], 0
  for report in CACHES_REPORTS:
    os.environ["TINY_CPU_CACHES"] = report
    new = run(options.program, "models", "--case", "*plain", "--target", CACHES_TARGET)
    for key, line in new.items():
      if key not in accepted or line.error:
        bad.append(f"{report}: {line.text[:200]}")
        continue
      n_seen += 1
      for name in ("launches", "bytes"):
        was, now = accepted[key].numbers[name], line.numbers[name]
        if now > was * CACHES_SHARE:
          bad.append(f"{report}: {key[0]}: {number_change(name, was, now)}")
  print("\n".join(bad))
  least = len(CACHES_REPORTS) * sum(case.endswith("plain") and target == CACHES_TARGET for case, target in accepted)
  print(f"{n_seen} of {least} cases under {len(CACHES_REPORTS)} reports")
  return 1 if bad or n_seen < least or least == 0 else 0


# ---- accepting ----

def accept(options):
  build = pathlib.Path(options.build)
  program = build / "tests" / "replay" / "replay"
  subprocess.run(["ninja", "-C", str(build), "all"], check=True, stdout=subprocess.DEVNULL)
  os.environ["TINY_VERIFY"] = "0"
  command = ["meson", "devenv", "-C", str(build)]
  notes, grown, files = [], [], {}
  for corpus in CORPORA:
    old = load(corpus)
    done = subprocess.run([*command, str(program.resolve()), corpus], stdout=subprocess.PIPE, text=True, check=True)
    new = read_lines(done.stdout)
    keys = changed_keys(old, new)
    grown += [describe(old[key], new[key], [])[0] for key in keys
              if key in old and key in new and new[key].grown(old[key])]
    if keys:
      notes.append(f"{corpus}: {len(keys)} of {len(new)} lines, {summary(old, new)}")
      files[EXPECTED / f"{corpus}.txt"] = "".join(f"{new[key].text}\n" for key in sorted(new))
  if not files:
    print("nothing changed")
    return 0
  if grown and not options.worse:
    print("\n".join(grown))
    print(f"{len(grown)} lines grew. If that is meant, say --worse and why.")
    return 1
  for path, text in files.items():
    path.write_text(text)
  note = f"{options.reason}{f' [{len(grown)} lines grew]' if grown else ''} ({'; '.join(notes)})"
  with LOG.open("a") as log:
    log.write(note + "\n")
  print(note)
  return 0


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  commands = parser.add_subparsers(required=True)
  one = commands.add_parser("check")
  one.add_argument("--program", required=True)
  one.add_argument("--texts")
  one.add_argument("corpus", choices=CORPORA)
  one.set_defaults(call=check)
  one = commands.add_parser("caches")
  one.add_argument("--program", required=True)
  one.set_defaults(call=check_caches)
  one = commands.add_parser("accept")
  one.add_argument("--build", default="build")
  one.add_argument("--worse", action="store_true")
  one.add_argument("reason")
  one.set_defaults(call=accept)
  options = parser.parse_args()
  return options.call(options)


if __name__ == "__main__":
  sys.exit(main())
