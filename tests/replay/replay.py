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
CORPORA = ("attention", "examples", "inventory", "models", "random", "scans")
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
# Captured steps of which some numbers are higher than those of the plain step beside them: which, and why. A number that
# is not higher on any target is an error.
APART = "what depends on weights alone is a plan of its own in a recording"
EACH = "each gradient is a plan of its own in a recording"
MORE_WHEN_CAPTURED = {
  "attention-backward/captured": ({"temporary"}, EACH),
  "attention-backward:4096/captured": ({"temporary", "kernels"}, EACH),
  "gpt2-tiny-prefill/captured": ({"launches", "bytes", "kernels"},
                                 "a recording knows its inputs as a whole, where a plain step is given a run of one's elements"),
  "resnet-tiny/captured": ({"launches", "kernels"}, APART),
  "resnet-tiny/backward-captured": ({"launches", "bytes", "kernels"}, APART),
  "resnet50/backward-captured": ({"launches", "bytes", "kernels"}, APART),
  **{f"resnet-train{form}/captured": ({"launches", "bytes", "kernels"}, "one kernel more, copy_32_x2 of 768 bytes")
     for form in ("", ":bf16", ":f16", ":autocast-bf16", ":autocast-f16")},
}
# Bytes by which the memory of a captured step may be more than that of the plain one, and what they are. A row of which less
# than KEPT_SHARE is needed is an error.
WEIGHTS = "what is computed of weights alone (packed, converted) is kept"
KEPT_WHEN_CAPTURED = {
  "gpt2-decode/captured": (511_000_000, WEIGHTS),
  "gpt2-decode:q4_0/captured": (5_300_000, WEIGHTS),
  "gpt2-decode:q8_0/captured": (5_300_000, WEIGHTS),
  "gpt2-prefill/captured": (835_000_000, WEIGHTS),
  "gpt2-prefill/backward-captured": (166_000_000, WEIGHTS),
  "gpt2-small-decode/captured": (420_000, WEIGHTS),
  "gpt2-tiny-decode/captured": (67_000, WEIGHTS),
  "gpt2-tiny-prefill/captured": (60_000, WEIGHTS),
  "lstm-train:64/captured": (99_000, "results have memory of their own"),
  "resnet-tiny/captured": (14_000, WEIGHTS),
  "resnet-tiny/backward-captured": (49_000, WEIGHTS),
  "resnet50/captured": (95_000_000, WEIGHTS),
  "resnet50/backward-captured": (194_000_000, WEIGHTS),
  **{f"resnet-train{form}/captured": (152_000, "what copy_32_x2 gives, and blocks around it")
     for form in ("", ":autocast-bf16", ":autocast-f16")},
}
KEPT_SHARE = 0.9


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
  """Captured steps of which a number is higher than the plain step's, beyond the tables; and rows that are not needed.

  A line that makes no plan says nothing of its temporary values: memory does."""
  out, more, kept = [], {}, {}
  for line in lines.values():
    plain = lines.get((line.case.replace("captured", "plain"), line.target))
    if plain in (None, line):
      continue
    for name in BARS:
      before, now = plain.numbers[name], line.numbers[name]
      if name == "memory":
        kept[line.case] = max(kept.get(line.case, 0), now - before)
        before += KEPT_WHEN_CAPTURED.get(line.case, (0,))[0]
      elif now > before:
        more.setdefault(line.case, set()).add(name)
        if name in MORE_WHEN_CAPTURED.get(line.case, ((),))[0]:
          continue
      if now > before:
        out.append(f"{line.case} {line.target}: more than the plain step: {number_change(name, before, now)}")
  if not kept:
    return out
  out += [f"{case}: {name} is no more than the plain step's now; take it out of MORE_WHEN_CAPTURED"
          for case, (names, _) in MORE_WHEN_CAPTURED.items() for name in sorted(names - more.get(case, set()))]
  return out + [f"{case}: {kept.get(case, 0)} bytes more than the plain step; lower its row of KEPT_WHEN_CAPTURED"
                for case, (most, _) in KEPT_WHEN_CAPTURED.items() if kept.get(case, 0) < most * KEPT_SHARE]


def holes(lines):
  """Numbers of captured steps without a row that could be twice the plain step's unseen, and rows that nothing needs."""
  out, first = [], len(captured_breaches(lines))
  for line in [line for line in lines.values() if line.case == "chain:100/captured"]:
    plain = lines[line.case.replace("captured", "plain"), line.target]
    for name in BARS:
      own, line.numbers[name] = line.numbers[name], plain.numbers[name] * 2 + 1
      if len(captured_breaches(lines)) != first + 1:
        out.append(f"{name} of {line.case} {line.target} may grow unseen")
      line.numbers[name] = own
  for table in (MORE_WHEN_CAPTURED, KEPT_WHEN_CAPTURED):
    for case in list(table):
      row = table.pop(case)
      out += [] if not first and captured_breaches(lines) else [f"the row of {case} is not needed"]
      table[case] = row
  return out


def check(options):
  old, new = load(options.corpus), run(options.program, options.corpus)
  keys = changed_keys(old, new)
  breaches = captured_breaches(new)
  if options.corpus == "models" and not breaches:
    breaches = holes(new)
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
