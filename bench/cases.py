# SPDX-License-Identifier: MIT
"""The cases that bench/run measures and the bar of each: one table."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Limit:
  """A number of our own result that may not be more than so much."""
  what: str
  value: object  # function of the JSON object that our program printed
  most: float


@dataclasses.dataclass(frozen=True)
class Streams:
  """Our time is at most so many times what bench-streams takes in the same run, in turn with us, for
  reading so many arrays of f32 once and writing one: what memory allows."""
  arrays: int
  elements: int
  most: float


@dataclasses.dataclass(frozen=True)
class Case:
  name: str             # what it is called here, and, if argument is empty, by every program
  ratio: float = None   # the fastest peer's time over ours is at least this
  limits: tuple = ()
  tolerance: float = 1e-5  # of outputs, relative to the largest value
  argument: str = ""
  model: bool = False   # ours is bench-model, not tinycore bench
  field: str = "ms"     # a list: of each turn
  cold: bool = False    # nothing compiled before, one run
  slow: bool = False    # measured when it is named or with --all
  streams: Streams = None
  # Ours is compared with ours alone: without this environment (pairs), or with another case of ours.
  environment: tuple = ()
  beside: str = ""
  runs: int = 0         # at most so many in each round; 0: as many as were asked for
  unlike: tuple = ()    # peers that compute other things with the same numbers: outputs are compared, no bar is held against them
  others: tuple = ()    # (name, ratio): bars of single peers besides, each where the peer is there

  @property
  def text(self):
    return self.argument or self.name

  @property
  def own(self):
    """The name of what of ours it is compared with, or None."""
    return "ours, plain" if self.environment else f"ours, {self.beside}" if self.beside else None

  def count_runs(self, asked):
    return min(asked, self.runs or asked)


def each_us(n):
  return lambda result: result["ms_median"] * 1e3 / n


def front_ms(result):
  return result["schedule_ms"] + result["codegen_ms"]


def memory_growth(result):
  return result["temporary_bytes"] / result["set_up_bytes"]


# Of the inputs' memory: one matrix of scores is 4 times as much with 1024 rows, 16 times with 4096.
LINEAR = (Limit("memory / inputs", memory_growth, 3),)
PYTORCH = ("PyTorch", "PyTorch compiled")
ONE_KERNEL = (Limit("kernels", lambda result: result["kernels"], 1),)


def cold(model, most_ms):
  """The first call, compared with a peer's first call."""
  limits = (Limit("first call ms", lambda result: result["first_ms"], most_ms),
            Limit("schedule + codegen ms", front_ms, 60))
  return Case(f"cold:{model}", limits=limits, argument=model, model=True, field="first_ms",
              cold=True, tolerance=1e-2)


CASES = [
  Case("matmul:256", 0.8), Case("matmul:512", 1.0), Case("matmul:1024", 1.0), Case("matmul:2048", 1.0),
  Case("matmul:1000", 0.85), Case("matmul:1023", 0.85), Case("matmul:17x4096x33", 0.85),
  Case("matvec:4096", 1.0),
  # Memory decides, so the bars are arrays moved. Ours are 5: 4 read, 1 stored past the caches. A peer that makes one
  # kernel of it and stores plainly moves 6, as a line is read before it is stored: 6 / 5. PyTorch has 5 kernels that read
  # 8 arrays and store 5, of which 2 were not read before: 15 / 5.
  Case("elementwise:16777216", 1.2, others=(("PyTorch", 3.0),), streams=Streams(4, 1 << 24, 1.3)),
  Case("sum:4096x4096", 1.0), Case("sumrows:4096x4096", 1.0),
  Case("softmax:4096x4096", 1.2, ONE_KERNEL), Case("layernorm:4096x1024", 1.1, ONE_KERNEL),
  Case("transpose:2048x2048", 1.0), Case("cumsum:4194304", 0.9),
  Case("conv:8x64x56x56:64x3x3", 1.0), Case("depthwise:8x64x56x56:3x3", 1.0),
  # As fast as the LAPACK that the CPU backend finds; Debian's liblapack3 alone is several times slower than MKL.
  *(Case(text, 0.5, tolerance=1e-4)
    for text in ("inv:512", "solve:512x16", "cholesky:512", "qr:512", "svd:256", "eigh:256")),
  Case("attention", 1.5, LINEAR, model=True, tolerance=1e-4),
  Case("attention-backward", 1.2, LINEAR, model=True, tolerance=1e-4),
  Case("attention:4096", 1.2, LINEAR, model=True, tolerance=1e-4),
  Case("attention-backward:4096", 1.0, LINEAR, model=True, tolerance=1e-4, runs=2),
  # Adam moves weights by the signs of gradients near zero, which differ between libraries.
  Case("cnn-train", 1.0, model=True, tolerance=1e-2),
  Case("resnet50", 0.95, model=True),
  # Not slower than f32 where a CPU converts in one instruction. A step's loss is rounded in them.
  *(Case(f"resnet-train:{form}", 1.0, model=True, beside="resnet-train", tolerance=0.05) for form in ("bf16", "f16")),
  Case("gpt2-prefill", 1.0, model=True), Case("gpt2-decode", 1.0, model=True),
  # Products of narrow weights round differently; PyTorch's are rounded weights in f32.
  Case("gpt2-decode:f16", 1.0, model=True, tolerance=1e-4, unlike=PYTORCH),
  # A weight halfway between two numbers of a block becomes the one here and the other there.
  *(Case(f"gpt2-decode:{form}", 1.0, model=True, tolerance=1e-3, unlike=PYTORCH) for form in ("q8_0", "q4_0")),
  Case("launch:100", limits=(Limit("µs a kernel", each_us(100), 0.5),)),
  cold("cnn-train", 1200), cold("resnet50", 1000),
  # A searched kernel beside the heuristic's; a twentieth is noise.
  Case("beam:matmul:1024", 0.95, (Limit("search s", lambda result: result["compile_ms"] * 1e-3, 20),),
       argument="matmul:1024", cold=True, slow=True, environment=(("BEAM", "2"),)),
]
MODELS = ("gpt2-tiny-prefill", "gpt2-tiny-decode", "resnet-tiny", "resnet-train",
          *(f"resnet-train:{form}" for form in ("bf16", "f16", "autocast-bf16", "autocast-f16")))


def by_name(name):
  """The case of the table, or one without a bar."""
  known = [case for case in CASES if case.name == name]
  return known[0] if known else Case(name, model=name in MODELS)
