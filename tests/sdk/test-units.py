#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Claims that are wrong in one way each: the conformance suite catches every one, and the plugin without a fault passes. All
in the suite broken, a few of all kinds by default."""
import os

from e2e import check, main, note, test
from suite import BELOW, FAILED, PASSED, certificate

FAULTS = {
    "no-cost": "claim/answers", "cost-of-nan": "claim/answers", "no-reason": "claim/answers", "endless-reason": "claim/answers",
    "unknown-verdict": "claim/answers", "any-activation": "matmul/sigmoid", "any-kind": "claim/unknown-kind",
    "nothing": "claim/answers", "now-and-then": "claim/answers", "not-transposed": "matmul/transposed-b",
    "packed-rows": "matmul/padded-rows", "no-bias": "matmul/bias-columns", "no-activation": "matmul/relu", "no-scale": "matmul/scale",
    "last-k": "matmul/ragged", "one-batch": "matmul/batch-2", "no-offset": "matmul/flipped", "no-step": "convolution/step",
    "no-dilation": "convolution/dilation", "no-padding": "convolution/padding", "writes-outside": "matmul/square-32",
    "not-divided": "softmax/rows", "writes-input": "matmul/square-32",
}


def run(box, fault, status, cases="*"):
    words = ("--manifest", os.environ["TINY_UNITS_MANIFEST"], os.environ["TINY_UNITS"], "--filter", f"operations/{cases}")
    return certificate(box, *words, status=status, TINY_UNITS_FAULT=fault)[0]


def failed(found):
    return [case["name"] for case in found["cases"] if case["outcome"] not in ("passed", "recorded")]


@test("without a fault it passes")
def passes(box):
    found = run(box, None, PASSED)
    check(len(found["cases"]) > 40, f"{len(found['cases'])} cases")


FEW = ("no-cost", "no-reason", "not-transposed", "no-bias", "last-k", "no-padding")
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
