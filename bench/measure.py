# SPDX-License-Identifier: MIT
"""What bench/bars and bench/run share: the build, the peers, running in turn, medians.

A candidate is a command that prints JSON lines. Candidates of one comparison run one after the
other, in turn and in alternating order, so that a slow minute of the machine falls on all of them.
Programs that understand --turns run at the same time and take turns run by run, so that a slow second
falls on all of them too: they print "turn" when they are ready and wait for a line.
"""
import json
import math
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

TURN = "turn"  # a program's word that it is ready
PATIENCE_S = 600
# After a turn threads wait for work in a loop (GNU OpenMP's for a tenth of a second) before they sleep.
CALM_S, CALM_NS, MOST_CALM_S = 0.01, 500_000, 0.5

HERE = pathlib.Path(__file__).resolve().parent


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
  modules: tuple       # a python that can import these has it
  script: str          # its program in bench/peers
  arguments: tuple = ()


PEERS = {
  "PyTorch": Peer(("torch", "numpy"), "torch_cases.py"),
  "PyTorch compiled": Peer(("torch", "numpy"), "torch_cases.py", ("--compile",)),
  "ONNX Runtime": Peer(("onnxruntime", "onnx", "numpy"), "onnx_cases.py"),
  "OpenVINO": Peer(("openvino", "onnxruntime", "onnx", "numpy"), "onnx_cases.py", ("--openvino",)),
  "llama.cpp": Peer(("xllamacpp", "gguf", "numpy"), "llama_cases.py"),
  "tinygrad": Peer(("tinygrad", "numpy"), "tinygrad_cases.py"),
}


def peers_python():
  """The python of what bench/peers/setup made, or else the one found first."""
  made = HERE.parent / "build/peers/bin/python"
  return os.environ.get("TINYCORE_PEERS_PYTHON") or str(made if made.exists() else "python3")


def environment_of(peer):
  """What a peer wants beyond what all get."""
  return {"DEV": "CPU"} if peer == "tinygrad" else {}


class Bench:
  """One run of measurements: where things are, and caches of its own that go away with it."""

  def __init__(self, args, with_peers=True):
    self.build = pathlib.Path(args.build).resolve()
    self.boost = args.boost
    self.python = args.peers_python
    self.folder = tempfile.TemporaryDirectory(prefix="tinycore-bench-")
    self.n_caches = 0
    self.warm = self.new_cache()
    self.threads = str(len(os.sched_getaffinity(0)))
    self.missing, self.peers, self.notes = {}, [], []
    if with_peers:
      self.find_peers(getattr(args, "peers", None))

  def find_peers(self, asked):
    """Which are installed; what is worth knowing of them."""
    self.notes = [f"{self.threads} CPUs; peers run with OMP_NUM_THREADS={self.threads}"]
    for name, peer in PEERS.items():
      if asked is not None and name not in asked.split(","):
        self.missing[name] = "not asked for"
      elif not self.can_import(peer.modules):
        self.missing[name] = "not installed"
        self.notes.append(f"{name} is not installed for {self.python}: no ratio to it")
      else:
        self.peers.append(name)

  def can_import(self, modules):
    python = shutil.which(self.python)
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
               TINY_CACHE_DIR=cache or self.warm, OMP_NUM_THREADS=self.threads,
               TORCHINDUCTOR_CACHE_DIR=os.path.join(self.folder.name, "inductor"), **more)
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
    return [self.python, HERE / "peers" / script, *arguments]

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


def median_interval(values, outside=0.05):
  """(low, high) around the median by the order of @values alone (binomial): the median of all lies beyond with a chance
  of at most @outside. As few values as allow no such interval give their smallest and largest."""
  ordered, n, beyond = sorted(values), len(values), 0.0
  for rank in range(n // 2):
    beyond += 2 * math.comb(n, rank) / 2 ** n
    if beyond > outside:
      return ordered[max(rank - 1, 0)], ordered[-max(rank, 1)]
  return ordered[0], ordered[-1]


def add_arguments(parser):
  parser.add_argument("--build", default=HERE.parent / "build", metavar="DIR",
                      help="a release build (default: build beside bench)")
  parser.add_argument("--peers-python", default=peers_python(), metavar="PATH",
                      help="a python that has the peers ($TINYCORE_PEERS_PYTHON; default: what bench/peers/setup made)")
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
