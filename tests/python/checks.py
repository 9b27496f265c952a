# SPDX-License-Identifier: MIT
"""What the tests of the Python package share: comparisons that say what they compared, and TAP."""
import sys
import traceback


def true(good, text="is not so"):
    if not good:
        raise AssertionError(text)


def equal(found, wanted, what=""):
    same = found == wanted
    if not (same if isinstance(same, bool) else bool(same)):
        raise AssertionError(f"{what} gives {found!r}, wanted is {wanted!r}")


def raises(kinds, function, *arguments, **more):
    """The exception that a call has to raise."""
    try:
        result = function(*arguments, **more)
    except kinds as error:
        return error
    raise AssertionError(f"{function} {arguments} {more} raises nothing and gives {result!r}")


def run(names):
    """Runs every function test_…, in the order in which they stand, with the same random numbers each time."""
    if "tinycore" in sys.modules:
        sys.modules["tinycore"].Tensor.manual_seed(0)
    tests = [(name, test) for name, test in names.items() if name.startswith("test_")]
    failed = 0
    print(f"1..{len(tests)}", flush=True)
    for i, (name, test) in enumerate(tests, 1):
        try:
            test()
        except Exception:
            failed += 1
            print("# " + traceback.format_exc().rstrip().replace("\n", "\n# "))
            print("not ", end="")
        print(f"ok {i} {name}", flush=True)
    sys.exit(failed > 0)
