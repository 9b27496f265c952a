#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Claims that are wrong in one way each: the conformance suite catches every one, and the plugin without a fault passes. All
in the suite broken, a few of all kinds by default."""
import os
import re
import subprocess

from e2e import check, main, note, test
from suite import BELOW, FAILED, PASSED, certificate

MEANS = """%0 = param.f32{slot=0, shape=[64, 33], device="SAMPLE"}
sink(mul.f32(reduce.f32{op=add, axes=[1]}(%0), 0.25))
"""
ATTENTION = """%0 = param.f32{slot=0, shape=[16, 1, 8], device="SAMPLE"}
%1 = param.f32{slot=1, shape=[1, 12, 8], device="SAMPLE"}
%2 = param.f32{slot=2, shape=[1, 12, 4], device="SAMPLE"}
%3 = mul.f32(expand.f32{shape=[16, 12, 8]}(%0), expand.f32{shape=[16, 12, 8]}(%1))
%4 = reduce.f32{op=add, axes=[2]}(%3)
%5 = expand.f32{shape=[16, 12, 1]}(reduce.f32{op=max, axes=[1]}(%4))
%6 = exp2.f32(mul.f32(sub.f32(%4, %5), 1.4426950408889634))
%7 = recip.f32(reduce.f32{op=add, axes=[1]}(%6))
%8 = mul.f32(%6, expand.f32{shape=[16, 12, 1]}(%7))
%9 = mul.f32(expand.f32{shape=[16, 12, 4]}(%8), expand.f32{shape=[16, 12, 4]}(%2))
sink(reduce.f32{op=add, axes=[1]}(%9))
"""
FAULTS = {
    "no-cost": "claim/answers", "cost-of-nan": "claim/answers", "no-reason": "claim/answers", "endless-reason": "claim/answers",
    "unknown-verdict": "claim/answers", "any-activation": "matmul/sigmoid", "any-kind": "claim/unknown-kind",
    "nothing": "claim/answers", "now-and-then": "claim/answers", "by-thread": "claim/threads", "not-transposed": "matmul/transposed-b",
    "packed-rows": "matmul/padded-rows", "no-bias": "matmul/bias-columns", "no-activation": "matmul/relu", "no-scale": "matmul/scale",
    "last-k": "matmul/ragged", "one-batch": "matmul/batch-2", "no-offset": "matmul/flipped", "no-step": "convolution/step",
    "no-dilation": "convolution/dilation", "no-padding": "convolution/padding", "writes-outside": "matmul/square-32",
    "not-divided": "softmax/rows", "writes-input": "matmul/square-32",
    "no-mask": "attention/mask", "not-causal": "attention/causal", "last-key": "attention/ragged",
    "sum-for-product": "reduction/product",
}


def run(box, fault, status, cases="*"):
    words = ("--manifest", os.environ["TINY_UNITS_MANIFEST"], os.environ["TINY_UNITS"], "--filter", f"operations/{cases}")
    return certificate(box, *words, status=status, TINY_UNITS_FAULT=fault)[0]


def failed(found):
    return [case["name"] for case in found["cases"] if case["outcome"] not in ("passed", "recorded")]


@test("without a fault it passes")
def passes(box):
    found = run(box, None, PASSED)
    for kind, n in {"matmul": 20, "convolution": 12, "reduction": 8, "softmax": 5, "attention": 9}.items():
        ran = [case["name"] for case in found["cases"] if case["name"].startswith(f"operations/{kind}/")]
        check(len(ran) >= n, f"{kind}: {ran}")


@test("programs find their attention and sums there, and nothing between is stored")
def programs(box):
    with open(os.environ["TINY_UNITS_MANIFEST"], encoding="utf-8") as file:
        box.write("manifests/units.json", file.read())
    env = {"TINY_PLUGIN_PATH": os.environ["TINY_PLUGIN_PATH"] + ":" + box.path("manifests"), "DEV": "SAMPLE", "DEBUG": "2"}
    for name, ending in {"forward": "_scale", "forward-masked": "_mask", "forward-causal": "_causal"}.items():
        words = (os.environ["TINY_STRESS_ATTENTION"], "-p", f"/stress/attention/{name}")
        result = subprocess.run(words, env=box.environment(env), capture_output=True, text=True, timeout=240, check=False)
        launched = re.findall(r"^SAMPLE +(attention\w+)", result.stderr, re.M)
        check(result.returncode == 0 and any(each.endswith(ending) for each in launched), f"{launched}\n{result}")
    for program, part in {MEANS: "a unit computes reduction", ATTENTION: "query 16 key 12 depth 8 value 4"}.items():
        text = box.run("explain", box.write("m.tir", program), "--dev", "SAMPLE", **env).good().out
        check(part in text and "on CPU" not in text, text)


FEW = ("no-cost", "no-reason", "by-thread", "not-transposed", "no-bias", "last-k", "no-padding", "not-causal")
for name, case in FAULTS.items():
    if name not in FEW and os.environ.get("TINY_SDK_WHOLE") != "1":
        continue

    @test(f"{name} is caught")
    def caught(box, name=name, case=case):
        wrong = failed(run(box, name, FAILED, case))
        check(f"operations/{case}" in wrong, f"{case} is not among {wrong}")


@test("with a filter that leaves nothing to run it is no success")
def empty(box):
    words = ("--manifest", os.environ["TINY_UNITS_MANIFEST"], os.environ["TINY_UNITS"], "--filter", "operations/none/*")
    note(certificate(box, *words, status=BELOW)[0]["score"])


if __name__ == "__main__":
    main()
