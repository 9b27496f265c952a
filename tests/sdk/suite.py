# SPDX-License-Identifier: MIT
"""What the tests of the conformance suite share."""
import json
import os

from e2e import check

BAD = os.environ["TINY_SDK_BAD"]
GROUPS = ("load", "hygiene", "skew", "lifecycle", "memory", "limits", "order", "exec", "numerics", "tensors", "kernels",
          "claims", "random", "faults", "replay", "pair")
PASSED, FAILED, USAGE, BELOW, CRASHED, ABSENT = 0, 1, 2, 3, 4, 77


def bad(name):
    """The file of a plugin that is wrong in one way."""
    return os.path.join(BAD, f"bad-{name}.so")


def conformance(box, *argv, status, **env):
    result = box.run("conformance", *argv, **env)
    check(result.status == status, f"exit status {status} wanted\n{result}")
    return result


def certificate(box, *argv, status, **env):
    """The certificate of a run, and what it printed."""
    path = box.path("certificate.json")
    result = conformance(box, *argv, "--json", path, status=status, **env)
    with open(path, encoding="utf-8") as file:
        return json.load(file), result


def case(found, name):
    cases = [c for c in found["cases"] if c["name"] == name]
    check(len(cases) == 1, f"{len(cases)} cases {name}")
    return cases[0]


def every_group_passed(found):
    """Level core, whole: no false alarm, and something that must pass in each of its groups."""
    wrong = [c for c in found["cases"] if c["outcome"] not in ("passed", "recorded")]
    check(not wrong, wrong[:5])
    check(found["score"]["must"] == found["score"]["passed"] > 2000, found["score"])
    check(found["certified"] == "core", found["certified"])
    for group in GROUPS:
        check(any(c["name"].startswith(group + "/") and c["must"] for c in found["cases"]), group)
