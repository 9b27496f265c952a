# SPDX-License-Identifier: MIT
"""Calls as PyTorch's programs write them give here what they give there: forms.txt has one a line, which runs with PyTorch under the
name torch and then with this package.

Values have to be equal within rounding, and shapes and lengths; a dtype may be a narrower integer (docs/dtypes.md). Statements stand before the
expression, each ended by ;; and \\n within one. TAP, a test for each heading; test_forms.py HEADING… runs those alone."""
import pathlib
import sys
import warnings

import checks
import numpy as np
import tinycore
import tinycore.nn.functional
import tinycore.optim
import torch

warnings.simplefilter("ignore")
FILE = pathlib.Path(__file__).with_name("forms.txt")
GIVEN = """
x = torch.tensor([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])
i = torch.tensor([[0, 2, 1], [2, 1, 0]])
p = torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
image = torch.arange(384.0).reshape(2, 3, 8, 8) / 100 - 1
labels = torch.tensor([2, 0])
target = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
"""


def plain(value):
    """Arrays and Python's own values in the place of tensors and of what has a name."""
    if isinstance(value, (torch.Tensor, tinycore.Tensor)):
        return value.detach().numpy()
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return value if value is None or isinstance(value, (bool, int, float, str, np.ndarray)) else str(value).rpartition(".")[2]


def compare(found, wanted, line):
    if isinstance(wanted, np.ndarray):
        checks.equal((type(found), np.shape(found)), (type(wanted), wanted.shape), line)
        checks.equal(found.dtype.kind, wanted.dtype.kind, line)
        np.testing.assert_allclose(found.astype("float64"), wanted.astype("float64"), rtol=2e-4, atol=2e-5, err_msg=line)
    elif isinstance(wanted, (list, dict)):
        checks.equal((type(found), len(found)), (type(wanted), len(wanted)), line)
        for one, other in zip(*(value.values() if isinstance(value, dict) else value for value in (found, wanted))):
            compare(one, other, line)
    elif isinstance(wanted, float):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, err_msg=line)
    else:
        checks.equal(found, wanted, line)


def run(line, module):
    names = {"torch": module, "nn": module.nn, "F": module.nn.functional, "np": np}
    *statements, expression = line.replace("\\n", "\n").split(";;")
    exec("\n".join([GIVEN, *statements]), names)
    return plain(eval(expression.strip(), names))


def forms():
    """The lines under each heading."""
    found = {}
    for line in FILE.read_text().splitlines():
        if line.startswith("# ---- "):
            rows = found.setdefault(line.strip("#- "), [])
        elif line and not line.startswith("#"):
            rows.append(line)
    return found


def test_of(lines):
    def test():
        wrong = []
        for line in lines:
            try:
                compare(run(line, tinycore), run(line, torch), line)
            except Exception as error:
                wrong.append(f"{line}: {type(error).__name__}: {error}")
        checks.true(not wrong, "\n".join(wrong))
    return test


checks.run({f"test_{name.replace(' ', '_')}": test_of(lines) for name, lines in forms().items() if name in (sys.argv[1:] or forms())})
