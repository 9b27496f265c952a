# SPDX-License-Identifier: MIT
"""What bench/bars and bench/run share: the build, the peers, running in turn, medians.

A candidate is a command that prints JSON lines. Candidates of one comparison run one after the
other, in turn and in alternating order, so that a slow minute of the machine falls on all of them.
Programs that understand --turns run at the same time and take turns run by run, so that a slow second
falls on all of them too: they print "turn" when they are ready and wait for a line.
"""
import json
import os
import pathlib
import selectors
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import typing

TUNED_BLAS = ("openblas", "mkl", "blis", "atlas")
# What a python has mapped after a product, by file name.
FIND_BLAS = """
import re, {0} as m
m.matmul(m.ones((64, 64)), m.ones((64, 64)))
names = set(l.split("/")[-1].strip() for l in open("/proc/self/maps") if "/" in l)
print(*sorted(n for n in names if re.search(r"lib.*(blas|mkl_core|blis)", n)))
"""

TURN = "turn"  # a program's word that it is ready
PATIENCE_S = 600
# After a turn threads wait for work in a loop (GNU OpenMP's for a tenth of a second) before they sleep.
CALM_S, CALM_NS, MOST_CALM_S = 0.01, 500_000, 0.5

HERE = pathlib.Path(__file__).resolve().parent


def has_avx512():
  try:
    return "avx512f" in pathlib.Path("/proc/cpuinfo").read_text()
  except OSError:
    return False


def raise_priority():
  """In the child: a session of its own whose autogroup goes before the others (root only)."""
  os.setsid()
  try:
    pathlib.Path("/proc/self/autogroup").write_text("-20")
  except OSError:
    pass


class Failed(Exception):
  pass


class Player:
  """A program that runs when it is its turn."""

  def __init__(self, bench, command, env):
    self.name, self.result, self.errors = os.path.basename(str(command[0])), None, tempfile.TemporaryFile("w+")
    try:
      self.process = subprocess.Popen(
        [str(c) for c in command], env=env or bench.environment(), text=True, stdin=subprocess.PIPE, bufsize=1,
        stdout=subprocess.PIPE, stderr=self.errors, preexec_fn=raise_priority if bench.boost else None)
    except OSError as error:
      raise Failed(str(error)) from error
    self.wait()

  def wait(self):
    """Until it is ready for another turn, or has printed its result."""
    limit, line = time.monotonic() + PATIENCE_S, ""
    with selectors.DefaultSelector() as selector:
      selector.register(self.process.stdout, selectors.EVENT_READ)
      while self.result is None and line.strip() != TURN:
        if not selector.select(max(0, limit - time.monotonic())):
          raise Failed(f"{self.name}: no answer within {PATIENCE_S} s")
        line = self.process.stdout.readline()
        if line.startswith("{"):
          self.result = json.loads(line)
        elif not line:
          self.process.wait()
          self.errors.seek(0)
          words = self.errors.read().strip().splitlines() or ["no message"]
          raise Failed(f"{self.name}: {words[-1]}")

  def cpu_ns(self):
    """The time its threads have run; 0 when it is gone."""
    try:
      return sum(int(path.read_text().split()[0])
                 for path in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat"))
    except (OSError, IndexError):
      return 0

  def turn(self):
    """One run, and then until its threads sleep, so that the next program has the machine."""
    try:
      print(file=self.process.stdin, flush=True)
    except BrokenPipeError:
      pass  # wait () says why
    self.wait()
    limit, before = time.monotonic() + MOST_CALM_S, -CALM_NS
    while time.monotonic() < limit and (now := self.cpu_ns()) - before >= CALM_NS:
      before = now
      time.sleep(CALM_S)

  def stop(self):
    self.process.kill()
    self.process.communicate()
    self.errors.close()


class Peer(typing.NamedTuple):
  modules: tuple  # a python that can import these has it
  option: str     # which names that python
  script: str     # its program in bench/peers


PEERS = {
  "PyTorch": Peer(("torch", "numpy"), "torch_python", "torch_cases.py"),
  "NumPy": Peer(("numpy",), "torch_python", "numpy_cases.py"),
  "ONNX Runtime": Peer(("onnxruntime", "onnx", "numpy"), "onnx_python", "onnx_cases.py"),
  "tinygrad": Peer(("tinygrad", "numpy"), "tinygrad_python", "tinygrad_cases.py"),
}
GGML = "ggml"  # a peer that is compiled: --ggml names a source tree with a build in it


def environment_of(peer):
  """What a peer wants beyond what all get."""
  return {"DEV": "CPU"} if peer == "tinygrad" else {}


class Bench:
  """One run of measurements: where things are, and caches of its own that go away with it."""

  def __init__(self, args, with_peers=True):
    self.build = pathlib.Path(args.build).resolve()
    self.boost = args.boost
    self.blas = args.blas
    self.python = {name: getattr(args, peer.option) for name, peer in PEERS.items()}
    self.folder = tempfile.TemporaryDirectory(prefix="tinycore-bench-")
    self.n_caches = 0
    self.warm = self.new_cache()
    self.threads = str(len(os.sched_getaffinity(0)))
    self.missing, self.peers, self.notes = {}, [], []
    self.ggml = getattr(args, "ggml", None)
    if with_peers:
      self.find_peers(getattr(args, "peers", None))

  def find_peers(self, asked):
    """Which are installed; what is worth knowing of them."""
    self.notes = [f"{self.threads} CPUs; peers run with OMP_NUM_THREADS={self.threads}"]
    if has_avx512():
      self.notes.append("this CPU has AVX-512: PyTorch and NumPy run with OPENBLAS_CORETYPE=SkylakeX")
    for name, peer in PEERS.items():
      if asked is not None and name not in asked.split(","):
        self.missing[name] = "not asked for"
      elif not self.can_import(name, peer.modules):
        self.missing[name] = "not installed"
        self.notes.append(f"{name} is not installed for {self.python[name]}: no ratio to it")
      else:
        self.peers.append(name)
    self.find_ggml(asked)
    self.note_blas()

  def find_ggml(self, asked):
    """Compiles its program against the build that was named."""
    if asked is not None and GGML not in asked.split(","):
      self.missing[GGML] = "not asked for"
      return
    if self.ggml is None:
      self.missing[GGML] = "no build named with --ggml"
      self.notes.append("ggml: no build is named with --ggml: no ratio to it")
      return
    folders = sorted({str(p.parent) for p in pathlib.Path(self.ggml).rglob("libggml-base.so*")})
    if not folders:
      raise Failed(f"there is no libggml-base.so in {self.ggml}")
    self.ggml_program = os.path.join(self.folder.name, "ggml_cases")
    self.run(["cc", "-O2", HERE / "peers/ggml_cases.c", "-I", pathlib.Path(self.ggml) / "include",
              "-o", self.ggml_program, *(f"-L{f}" for f in folders), *(f"-Wl,-rpath,{f}" for f in folders),
              "-lggml", "-lggml-base", "-lggml-cpu", "-lm"])
    self.peers.append(GGML)

  def note_blas(self):
    """Which BLAS the peers multiply with: without a tuned one, beating them says nothing."""
    for name, module in (("PyTorch", "torch"), ("NumPy", "numpy")):
      if name in self.missing:
        continue
      out = self.run([self.python[name], "-c", FIND_BLAS.format(module)])
      libraries = out.split()
      tuned = any(t in l for l in libraries for t in TUNED_BLAS)
      self.notes.append(f"{name} multiplies with {', '.join(libraries) or 'a BLAS of its own'}" +
                        ("" if tuned or not libraries else ", the slow REFERENCE BLAS: its matmul and "
                         "matvec are no yardstick (install OpenBLAS, or point --blas at its folder)"))

  def can_import(self, name, modules):
    python = shutil.which(self.python[name])
    return python is not None and subprocess.run(
      [python, "-c", f"import {', '.join(modules)}"], capture_output=True).returncode == 0

  def leave_out(self, names):
    self.peers = [n for n in self.peers if n not in names]
    self.missing.update({n: "not asked for" for n in names})

  def new_cache(self):
    self.n_caches += 1
    return os.path.join(self.folder.name, f"cache-{self.n_caches}")

  def environment(self, cache=None, **more):
    env = {k: v for k, v in os.environ.items() if k not in ("DEV", "DEBUG", "BACKEND")}
    env.update(TINY_PLUGIN_PATH=str(self.build / "plugins.d"),
               TINY_SCAN_HELPER=str(self.build / "tools/tiny-scan"),
               TINY_CACHE_DIR=cache or self.warm, OMP_NUM_THREADS=self.threads, **more)
    if has_avx512():
      env["OPENBLAS_CORETYPE"] = "SkylakeX"
    if self.blas:
      env["LD_LIBRARY_PATH"] = os.pathsep.join(
        filter(None, [self.blas, env.get("LD_LIBRARY_PATH")]))
    return env

  def run(self, command, env=None, timeout=600):
    """What a command printed; raises Failed with its last words."""
    try:
      done = subprocess.run([str(c) for c in command], env=env or self.environment(), text=True,
                            capture_output=True, timeout=timeout,
                            preexec_fn=raise_priority if self.boost else None)
    except (OSError, subprocess.TimeoutExpired) as error:
      raise Failed(str(error)) from error
    if done.returncode != 0:
      words = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
      raise Failed(f"{os.path.basename(str(command[0]))}: {words[-1]}")
    return done.stdout

  def json(self, command, env=None):
    """The last JSON line a command printed."""
    lines = [l for l in self.run(command, env).splitlines() if l.startswith("{")]
    if not lines:
      raise Failed(f"{command[0]} printed no result")
    return json.loads(lines[-1])

  def tool(self, *arguments):
    return [self.build / "tools/tinycore", *arguments]

  def program(self, name, *arguments):
    return [self.build / "bench" / f"bench-{name}", *arguments]

  def peer(self, name, script, *arguments):
    """A peer's command, or None where it is not installed."""
    if name in self.missing:
      return None
    if name == GGML:
      return [self.ggml_program, *arguments]
    return [self.python[name], HERE / "peers" / script, *arguments]

  def in_turn(self, candidates, rounds):
    """candidates: {name: function without arguments}; {name: [result of each round]}."""
    results = {name: [] for name in candidates}
    for i in range(rounds):
      for name in list(candidates) if i % 2 == 0 else reversed(list(candidates)):
        results[name].append(candidates[name]())
    return results

  def by_turns(self, commands, rounds, runs):
    """commands: {name: (command, environment)} of programs that understand --turns and were told so and
    to make so many runs; as in_turn ()."""
    results = {name: [] for name in commands}
    for i in range(rounds):
      players = {}
      try:
        for name, (command, env) in commands.items():
          players[name] = Player(self, command, env)
        for k in range(runs):
          for name in list(players) if (i + k) % 2 == 0 else reversed(list(players)):
            players[name].turn()
        for name, player in players.items():
          results[name].append(player.result)
      finally:
        for player in players.values():
          player.stop()
    return results


def median(values):
  return statistics.median(values)


def add_arguments(parser):
  parser.add_argument("--build", default=HERE.parent / "build", metavar="DIR",
                      help="a release build (default: build beside bench)")
  parser.add_argument("--tinygrad-python", default=os.environ.get("TINYGRAD_PYTHON", "python3"),
                      metavar="PATH", help="a python that has tinygrad ($TINYGRAD_PYTHON)")
  parser.add_argument("--torch-python", default=os.environ.get("TORCH_PYTHON", "/usr/bin/python3"), metavar="PATH",
                      help="a python that has PyTorch and NumPy ($TORCH_PYTHON; default: the system's)")
  parser.add_argument("--onnx-python", default=os.environ.get("ONNX_PYTHON", "python3"), metavar="PATH",
                      help="a python that has onnxruntime, onnx and NumPy ($ONNX_PYTHON)")
  parser.add_argument("--blas", metavar="DIR",
                      help="a folder with the libblas.so.3 that PyTorch and NumPy are to use")
  parser.add_argument("--boost", action="store_true",
                      help="put what is measured before other sessions (root; for busy machines)")
  parser.add_argument("--json", action="store_true", help="one JSON object a row")


def check_build(bench):
  if not (bench.build / "tools/tinycore").exists():
    sys.exit(f"no build in {bench.build}: run ./setup build, or name another with --build DIR")
  try:
    bench.run(bench.tool("devices"))  # finds devices once, so that later runs are warm
  except Failed as error:
    sys.exit(f"the build in {bench.build} does not run: {error}")
