#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench/run: it measures without any peer, compares outputs and says when they differ, keeps a history
and names what became slower, and refuses what it does not know."""
import array
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

from e2e import Skip, check, main, test

FILL = """import sys
sys.path.insert(0, sys.argv[1])
import common
print(*common.fill("input.0", (5,)))
print(*common.np.linalg.cholesky(common.inputs("cholesky:3")[0]).ravel())
sys.argv = ["", "sum:5x1", "--runs", "1"]
common.report(common.arguments("", ["sum"]), lambda: 0)"""
# A peer that computes nothing: its output is what the test wants it to be. It takes its turns.
FAKE = """#!{python}
import json, struct, sys
if sys.argv[1] == "-c":
    sys.exit()
output = sys.argv[sys.argv.index("--output") + 1]
if [{values}]:
    open(output, "wb").write(struct.pack("<3f", {values}))
runs = int(sys.argv[sys.argv.index("--runs") + 1])
for i in range(runs if "--turns" in sys.argv else 0):
    print("turn", flush=True)
    if sys.stdin.readline() != "\\n":
        sys.exit("no turn")
print(json.dumps({{"case": sys.argv[2], "ms_median": 1000.0, "growth_bytes": 5,
                  "ms": [{times}[i % len ({times})] for i in range(runs)]}}))
"""


def run(box, *arguments, peers="none", status=0, quick=True):
    done = subprocess.run(
        [sys.executable, os.environ["TINY_E2E_BENCH_RUN"], "--build", os.environ["TINY_E2E_BUILD"],
         *(["--quick"] if quick else []), *(["--peers", peers] if peers else []), *arguments],
        env=box.environment(), text=True, capture_output=True)
    check(done.returncode == status, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


@test("bench/no-peers")
def no_peers(box):
    row, summary = lines(run(box, "--json", "sum:30x40"))
    check(row["case"] == "sum:30x40" and row["ms"] > 0 and row["peers_ms"] == {}, row)
    check(row["difference"] is None and row["ok"] is None and summary["bars"] == 0, row)
    check("sum:30x40" in run(box, "sum:30x40").stdout)


@test("bench/limits")
def limits(box):
    """A bar that needs no peer: launch:100 is ours alone."""
    row, summary = lines(run(box, "--json", "launch:100"))
    check(row["ok"] is True and summary["bars"] == summary["held"] == 1, row)


@test("bench/weights")
def weights(box):
    """A convolution's filter is put in order when it is recorded, not in each call; a product's matrices come with one."""
    kernels = [line["kernels"] for line in lines(run(box, "--json", "conv:1x16x14x14:16x3x3", "matmul:16"))
               if "case" in line]
    check(kernels == [1, 1], kernels)


@test("bench/caches")
def caches(box):
    """Each report's share of the best one's time, by the time of a call; reports that change no program have one. Whether
    the bar holds is for a quiet machine."""
    script = pathlib.Path(os.environ["TINY_E2E_BENCH_RUN"]).with_name("caches")
    done = subprocess.run([sys.executable, script, "--build", os.environ["TINY_E2E_BUILD"], "--json", "--rounds", "1",
                           "--runs", "2", "--each", "matmul:64", "matmul:512"],
                          env=box.environment(), text=True, capture_output=True)
    small, large = lines(done)
    for row in small, large:
        check(len(row["over_best"]) == 13 and min(row["over_best"].values()) == 1 and row["ms"] > 0, row)
    check(small["programs"] == 1 and max(small["over_best"].values()) == 1, small)
    check(large["programs"] > 1 and large["ms"] > 20 * small["ms"], f"512 times the work: {small}, {large}")
    check(done.returncode == (0 if small["ok"] and large["ok"] else 1), f"{done.returncode}: {done.stderr}")


@test("bench/unknown")
def unknown(box):
    check("no case" in run(box, "nothing:*", status=1).stderr)
    done = run(box, "--json", "nothing:3", "sum:3x4", status=1)
    check("no case “nothing:3”" in done.stderr, done.stderr)
    check(lines(done)[-1]["not_measured"] == ["nothing:3"] and lines(done)[0]["case"] == "sum:3x4", done.stdout)


def fake_peer(box, *values, times=(1000.0,)):
    path = box.write("peer", FAKE.format(python=sys.executable, values=", ".join(values), times=list(times)))
    os.chmod(path, 0o755)
    return path


@test("bench/outputs")
def outputs(box):
    """The softmax of one element is 1."""
    def once(*values, status=0):
        done = run(box, "--json", "--peers-python", fake_peer(box, *values), "softmax:3x1",
                   peers="PyTorch", status=status)
        return lines(done)[0]
    row = once("1", "1", "1")
    check(abs(row["ratios"]["PyTorch"] * row["ms"] / 1000 - 1) < 0.5, row)
    low, high = row["intervals"]["PyTorch"]
    check(0 < low <= row["ratios"]["PyTorch"] <= high, row)
    check(row["mean_ms"]["PyTorch"] == 1000 and row["deviation_ms"]["PyTorch"] == 0 < row["deviation_ms"]["ours"], row)
    check(12 <= row["costs"]["ours"]["temporary_bytes"] < row["costs"]["ours"]["peak_bytes"], row)
    check("growth_bytes" not in row["costs"]["ours"] and row["costs"]["PyTorch"] == {"growth_bytes": 5}, row)
    check(row["difference"] == 0 and row["difference_from"] == "PyTorch" and row["best"] == "PyTorch", row)
    for value in ("1.001", "float('nan')"):
        row = once("1", value, "1", status=1)
        check("DIFFERS" in row["why"][0] and row["ok"] is False, row)


@test("bench/bars")
def bars(box):
    """matmul:256 has a bar, which lies below all ratios, above all, or between them, where more turns are taken."""
    def once(*times, runs=7, status=0):
        done = run(box, "--json", "--rounds", "1", "--runs", str(runs), "--peers-python", fake_peer(box, times=times),
                   "matmul:256", peers="PyTorch", status=status, quick=False)
        row, summary = lines(done)
        verdict = row["ok"], summary["held"], summary["unsure"], summary["failed"]
        return *verdict, summary["bars"]
    check(once(1e6) == (True, 1, [], [], 1))
    check(once(1e-6, status=1) == (False, 0, [], ["matmul:256"], 1))
    for runs in (7, 3):
        check(once(1e-6, 1e6, runs=runs, status=3) == ("unsure", 0, ["matmul:256"], [], 1))
    # One of seven is no reason to be sure after seven turns, and two of 14 are after 14.
    check(once(1e-6, *[1e6] * 6) == (True, 1, [], [], 1))
    check(once(1e6, *[1e-6] * 6, status=1) == (False, 0, [], ["matmul:256"], 1))
    done = run(box, "--rounds", "1", "--peers-python", fake_peer(box, times=(1e-6, 1e6)), "matmul:256", peers="PyTorch", quick=False,
               status=3)
    check(done.stdout.splitlines()[-1] == "held 0; unsure 1: matmul:256", done.stdout)


@test("bench/bars-of-peers")
def bars_of_peers(box):
    """A case may hold single peers against bars of their own, besides the fastest."""
    path = pathlib.Path(os.environ["TINY_E2E_BENCH_RUN"])
    sys.path.insert(0, str(path.parent))
    loader = importlib.machinery.SourceFileLoader("bench_run", str(path))
    program = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
    loader.exec_module(program)
    case = program.cases.Case("chain", 1.2, others=(("PyTorch", 3.0), ("tinygrad", 9.0)))

    def row(fused, unfused):
        times = {"ours": [1.0] * 7, "OpenVINO": fused, "PyTorch": unfused}
        return program.Row(case, {name: [{"ms": ms}] for name, ms in times.items()}, None, None)
    check(row([1.3] * 7, [3.1] * 7).holds() is True)
    check(row([1.3] * 7, [2.0] * 3 + [4.0] * 4).holds() == "unsure")
    check(list(row([1.3] * 7, [2.9] * 7).failures()) == ["2.9 of 3 × PyTorch"])
    check(list(row([1.1] * 7, [3.1] * 7).failures()) == ["1.1 of 1.2 × OpenVINO"])
    check(row([1.1] * 7, [3.1] * 7).holds() is False)
    unlike = program.cases.Case("decode", 1.0, unlike=("PyTorch",))
    found = program.Row(unlike, {"ours": [{"ms": [2.0] * 7}], "PyTorch": [{"ms": [1.0] * 7}]}, None, None)
    check(found.best is None and found.holds() is None and found.ratios == {"PyTorch": 0.5})
    # A peer that ran once, beside all of our turns, is not what the bar is held against.
    once = program.Row(case, {"ours": [{"ms": [1.0] * 7}], "OpenVINO": [{"ms": [1.3] * 7}], "tinygrad": [{"ms": [1.0]}]}, None, None)
    check(once.best == "OpenVINO" and list(once.failures()) == ["1 of 9 × tinygrad"], list(once.failures()))


@test("bench/own")
def own(box):
    """A narrow float is held against our own f32."""
    done = subprocess.run([sys.executable, os.environ["TINY_E2E_BENCH_RUN"], "--build", os.environ["TINY_E2E_BUILD"], "--json",
                           "--rounds", "1", "--runs", "2", "resnet-train:bf16"], env=box.environment(), text=True, capture_output=True)
    row, summary = lines(done)
    check(row["best"] == row["difference_from"] == "ours, resnet-train" and 0 < row["difference"] < 0.05, row)
    check(row["bar"] == 1 and summary["bars"] == 1 and done.returncode == {True: 0, False: 1, "unsure": 3}[row["ok"]], row)


@test("bench/factors")
def factors(box):
    texts = ("inv:8", "solve:8x3", "cholesky:8", "qr:8", "svd:8", "eigh:8")
    rows = lines(run(box, "--json", *texts))
    check([row["case"] for row in rows[:-1]] == list(texts) and all(row["ms"] > 0 for row in rows[:-1]), rows)


@test("bench/turns")
def turns(box):
    """A peer that ends before its last turn is an error with its last words."""
    path = fake_peer(box, "1", "1", "1")
    box.write("peer", pathlib.Path(path).read_text().replace('!= "\\n"', '== "\\n"'))
    done = run(box, "--peers-python", path, "softmax:3x1", peers="PyTorch", status=1)
    check("no turn" in done.stderr and "held 0; not measured 1: softmax:3x1" in done.stdout, done)


@test("bench/history")
def history(box):
    path = box.path("history")
    run(box, "--history", path, "sum:300x40")
    with open(path, encoding="utf-8") as file:
        entry = json.loads(file.read())
    check({"commit", "date", "case", "ms", "ratios"} <= set(entry), entry)
    entry["ms"] /= 1000
    box.write("history", json.dumps(entry) + "\n")
    check("times slower" in run(box, "--history", path, "sum:300x40", status=1).stdout)
    entry["ms"] *= 1e6
    box.write("history", json.dumps(entry) + "\n")
    check("slid" not in run(box, "--history", path, "sum:300x40").stdout)
    with open(path, encoding="utf-8") as file:
        check(len(file.readlines()) == 2)
    box.write("history", "nothing\n")
    check("no history" in run(box, "--history", path, "sum:300x40", status=1).stderr)


@test("bench/same-numbers")
def same_numbers(box):
    """The peers' inputs are ours: the sum of five of them."""
    peers = os.path.join(os.path.dirname(os.environ["TINY_E2E_BENCH_RUN"]), "peers")
    python = next((p for p in (sys.executable, "/usr/bin/python3", os.environ.get("TINYCORE_PEERS_PYTHON", ""))
                   if p and subprocess.run([p, "-c", "import numpy"], capture_output=True).returncode == 0), None)
    if python is None:
        raise Skip("no NumPy")
    done = subprocess.run([python, "-c", FILL, peers], text=True, capture_output=True)
    check(done.returncode == 0, done.stderr)
    sums, factor, report = done.stdout.splitlines()
    for case, line, bound in (("sumrows:5x1", sums, 1e-7), ("cholesky:3", factor, 1e-6)):
        path = box.path("output")
        box.run("bench", "--json", "--runs", 1, "--output", path, case).quiet()
        values, expected = array.array("f"), [float(v) for v in line.split()]
        with open(path, "rb") as file:
            values.frombytes(file.read())
        check(len(values) == len(expected) and all(abs(a - b) < bound for a, b in zip(values, expected)), (values, expected))
    check("growth_bytes" in json.loads(report) and "temporary_bytes" not in report, report)


if __name__ == "__main__":
    main()
