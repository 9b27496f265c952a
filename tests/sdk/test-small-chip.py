# SPDX-License-Identifier: MIT
"""A chip of 16 MiB at 1 MFLOP/s, which PEBBLE is when asked, is certified: cases are as large as it has memory and time
for, and none is taken for one that hangs. By default the largest cases are run; with TINY_SDK_WHOLE the levels core and full."""
import json
import os
import pathlib

from e2e import check, main, test
from suite import OWN, PASSED, PATIENT, core_passed

CORE_SECONDS = 300
# Cases that once needed more memory than there is, or more than a minute. A quarter of that is enough.
LARGEST = ("kernels/many/*", "memory/many/*", "random/kernel/64", "random/kernel/362")
WHOLE = bool(os.environ.get("TINY_SDK_WHOLE"))


def run(box, *argv, status):
    report = box.path("certificate.json")
    said = box.run("conformance", "PEBBLE", "--json", report, *argv, timeout=7200, CHIP_MIB=16, CHIP_SPEED=1000000,
                   CHIP_LOCK=box.path("lock"), TINY_PLUGIN_FILES=os.environ["TINY_PEBBLE_MANIFEST"])
    check(said.status == status, f"exit status {status} wanted\n{said}")
    return json.loads(pathlib.Path(report).read_text(encoding="utf-8"))


@test("the largest cases are as large as the chip")
def largest(box):
    filters = [word for glob in LARGEST for word in ("--filter", glob)]
    found = run(box, "--level", "full", "--timeout-scale", "1" if PATIENT else "0.25", *filters, status=PASSED)
    check(found["score"]["passed"] == found["score"]["must"] == 8, found["score"])


if WHOLE:
    @test("level core is certified within five minutes")
    def core(box):
        found = run(box, *PATIENT, status=OWN)
        core_passed(found)
        check(found["run"]["seconds"] < CORE_SECONDS, f"{found['run']['seconds']} s")

    @test("level full is certified")
    def full(box):
        found = run(box, "--level", "full", *PATIENT, status=OWN)
        check(found["score"]["passed"] + (OWN != PASSED) >= found["score"]["must"] > 6000, found["score"])


main()
