# SPDX-License-Identifier: MIT
"""What the tests of the conformance suite share."""
import json
import os

from e2e import check

BAD = os.environ["TINY_SDK_BAD"]
GROUPS = ("load", "hygiene", "skew", "lifecycle", "memory", "limits", "order", "exec", "numerics", "tensors", "kernels",
          "claims", "random", "faults", "replay", "pair")
PASSED, FAILED, USAGE, BELOW, CRASHED, ABSENT = 0, 1, 2, 3, 4, 77
# A build with sanitizers is not to be shipped, which these cases say of its plugins.
SANITIZED = bool(os.environ.get("TINY_E2E_SANITIZED"))
INSTRUMENTED = {"hygiene/file/constructors", "hygiene/file/instruments"} if SANITIZED else set()
PATIENT = ("--timeout-scale", "4") if SANITIZED else ()
OWN = FAILED if SANITIZED else PASSED  # the status of a whole run on a plugin of this build


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


def core_passed(found):
    """Level core, whole: no false alarm."""
    wrong = [c for c in found["cases"] if c["outcome"] not in ("passed", "recorded")]
    check({c["name"] for c in wrong} == INSTRUMENTED, wrong[:5])
    check(found["score"]["must"] - len(INSTRUMENTED) == found["score"]["passed"] > 2000, found["score"])
    check(found["certified"] == ("none" if INSTRUMENTED else "core"), found["certified"])


def every_group_passed(found):
    """The same, and something that must pass in each of its groups."""
    core_passed(found)
    for group in GROUPS:
        check(any(c["name"].startswith(group + "/") and c["must"] for c in found["cases"]), group)
