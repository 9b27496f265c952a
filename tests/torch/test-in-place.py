#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every row of operations.pyi that has a form in place, x.add_ (y): that it changes x to what PyTorch's gives, keeps the dtype,
lets gradients through, and refuses leaves that require gradients and results that do not fit.

usage: test-in-place.py FOLDER-OF-THE-TABLE. TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import importlib
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1] / "python"), sys.argv[1]]
sys.dont_write_bytecode = True
import checks  # noqa: E402
import harness  # noqa: E402
import numpy  # noqa: E402
import operations_table  # noqa: E402
import tinycore  # noqa: E402
import torch  # noqa: E402
from tinycore import Tensor  # noqa: E402
from tinycore.in_place import KINDS  # noqa: E402

ROWS = {operation.name: operation for family in operations_table.read() for operation in family.operations if operation.in_place}
OTHER_NAMES = {"mod": "remainder"}  # in the cases
OPERATORS = {"lshift", "rshift"}  # there


class InPlace:
    """Stands for a tensor whose methods are called by the names with an underscore."""

    def __init__(self, tensor, row):
        self.tensor, self.row = tensor, row

    def __getattr__(self, name):
        return getattr(self.tensor, name + "_" if name in (self.row, OTHER_NAMES.get(self.row)) else name)


def first_cases():
    """(result, the tensor changed, its dtype before) of the first case of each row that calls a method of that name and whose
    result fits into its first input."""
    for path in sorted(pathlib.Path(__file__).parent.glob("cases_*.py")):
        importlib.import_module(path.stem)
    found = {}
    for case in harness.CASES:
        if case.operation not in ROWS or case.operation in found or case.wrong or not case.inputs or not case.inputs[0].size:
            continue
        x, others = Tensor(case.inputs[0]), [Tensor(one) for one in case.inputs[1:]]
        dtype, result = x.dtype, case.ours(x, *others)
        if isinstance(result, Tensor) and result.shape == x.shape and KINDS[result.dtype.kind] <= KINDS[dtype.kind]:
            result = result.cast(dtype).numpy()
            try:
                changed = case.ours(InPlace(x, case.operation), *others)
            except TypeError:  # it is called as an operator
                continue
            if changed is x:
                found[case.operation] = result, x, dtype
    return found


def test_all():
    """What the row gives, in the tensor itself, of its dtype."""
    found = first_cases()
    for name, (result, x, dtype) in found.items():
        checks.equal(x.dtype, dtype, name)
        checks.true(numpy.array_equal(x.numpy(), result, equal_nan=dtype.kind == "f"), f"{name}_ is not {name}")
    checks.equal(set(ROWS) - set(found), OPERATORS, "rows without a case that changes its input")
    checks.equal(Tensor([1, 2]).lshift_(2).bitwise_right_shift_(Tensor([1, 3])).tolist(), [2, 1])


def test_names():
    """PyTorch's names of them are here."""
    absent = {name for name in dir(torch.Tensor) if name.endswith("_") and not name.startswith("_") and hasattr(Tensor, name[:-1])
              and not hasattr(Tensor, name)}
    checks.equal(absent, SHAPES, "names that are missing")


# What changes sizes, or the tensor itself and not its elements.
SHAPES = set("detach_ squeeze_ unsqueeze_ transpose_ swapaxes_ swapdims_ t_ renorm_ addbmm_ addmv_ addr_ ldexp_ float_power_".split())


def test_leaf():
    """A leaf that requires a gradient is changed where gradients do not flow; what is computed of it anywhere."""
    w = Tensor([1.0, 2.0], requires_grad=True)
    for change in (lambda: w.add_(1), lambda: w.relu_(), lambda: w.__iadd__(1), lambda: w.fill_(0), lambda: w.zero_(), lambda: w.copy_(w),
                   lambda: w.uniform_(), lambda: w.__setitem__(0, 5), lambda: w[1:].__setitem__(0, 5), lambda: w.__setitem__(w > 1, 0), lambda: w.masked_fill_(w > 1, 0), lambda: w[0].add_(1), lambda: w.flip(0)[1:].zero_()):
        checks.raises(RuntimeError, change)
        checks.equal(w.tolist(), [1, 2])
    with tinycore.no_grad():
        w.mul_(2).add_(Tensor([1.0, 1.0]), alpha=3)
        w[0] = 4
        w[:1] = w[:1] + 1
    checks.equal((w.tolist(), w.requires_grad, w.is_leaf), ([5, 7], True, True))
    w.detach()[:].sub_(1)
    checks.equal(w.tolist(), [4, 6])
    y = w * 3
    y.mul_(y).add_(w)
    y.sum().backward()
    checks.equal(w.grad.tolist(), [18 * 4 + 1, 18 * 6 + 1])


def test_misfits():
    x = Tensor([1, 2, 3])
    for change in (lambda: x.add_(Tensor.ones(2, 3, dtype="int32")), lambda: x.div_(2), lambda: x.mul_(1.5), lambda: x.add_("1")):
        checks.raises((TypeError, ValueError), change)
        checks.equal(x.tolist(), [1, 2, 3])
    view = Tensor([[1.0, 2.0], [3.0, 4.0]])
    view[0].neg_()
    view.t()[1].clamp_(max=0).exp_()
    checks.equal([[round(one, 3) for one in row] for row in view.tolist()], [[-1, 0.135], [3, 1]])


def test_random():
    """Drawn anew into the tensor, of its dtype and where it is."""
    Tensor.manual_seed(5)
    for dtype in ("float32", "float16"):
        x = Tensor.zeros(2000, dtype=dtype)
        for draw, mean, low, high in ((lambda: x.uniform_(-1, 3), 1, -1, 3), (lambda: x.normal_(2, 0.5), 2, -2, 6), (lambda: x.exponential_(2), 0.5, 0, 30),
                                      (lambda: x.bernoulli_(0.25), 0.25, 0, 1), (lambda: x.random_(2, 5), 3, 2, 4), (lambda: x.random_(3), 1, 0, 2)):
            checks.true(draw() is x)
            found = x.float()
            checks.true(abs(found.mean().item() - mean) < 0.2 and low <= found.min().item() and found.max().item() <= high, (dtype, mean))
            checks.equal(x.dtype.name, dtype)


checks.run(globals())
