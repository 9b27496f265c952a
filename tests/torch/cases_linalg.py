# SPDX-License-Identifier: MIT
"""Factors of matrices and what they solve. Matrices are made well conditioned, by what is added to a diagonal."""
import os

import numpy
import torch

from harness import case, numbers, refuses

BATCHES = [(), (2,), (2, 1, 3)]


def regular(batch, n, seed=0):
    return numpy.asarray(numbers(batch + (n, n), seed=seed) + 3 * numpy.eye(n, dtype="float32"), "float32")


def definite(batch, n):
    x = numbers(batch + (n, n))
    return numpy.asarray(x @ x.swapaxes(-1, -2) / n + numpy.eye(n, dtype="float32"), "float32")


def spread(batch, m, n):
    """Matrices whose singular values differ from each other."""
    steps = numpy.zeros((m, n), "float32")
    for i in range(min(m, n)):
        steps[i, i] = 4 * i + 4
    return numbers(batch + (m, n), seed=9) + steps


def parts(u, s, vh):
    return abs(u), s, abs(vh), (u * s.unsqueeze(-2)) @ vh


def pieces(values, vectors):
    """Values, what vectors are without signs, and the matrix."""
    return values, abs(vectors), (vectors * values.unsqueeze(-2)) @ vectors.transpose(-1, -2)


def squares(u, s, vh):
    """Both are square, and multiplied with themselves 1."""
    return s, u.transpose(-1, -2) @ u, vh @ vh.transpose(-1, -2)


def whole(u, s, vh):
    return s, (u[..., :s.shape[-1]] * s.unsqueeze(-2)) @ vh[..., :s.shape[-1], :], u.transpose(-1, -2) @ u, vh @ vh.transpose(-1, -2)


for batch in BATCHES:
    for n in (1, 2, 3, 5, 8):
        case("cholesky", [definite(batch, n)], lambda x: x.cholesky(), torch.linalg.cholesky)
        case("inv", [regular(batch, n)], lambda x: x.inv(), torch.linalg.inv)
        case("det", [numbers(batch + (n, n), -1.5, 1.5, seed=2)], lambda x: x.det(), torch.linalg.det)
        case("slogdet", [regular(batch, n)], lambda x: x.slogdet(), torch.linalg.slogdet)
        case("solve", [regular(batch, n), batch + (n, 3)], lambda x, y: x.solve(y), torch.linalg.solve)
        if n > 1:  # PyTorch 1.13 fails at the gradient of one number
            case("solve", [regular(batch, n, 1), batch + (n,)], lambda x, y: x.solve(y), torch.linalg.solve)
        for upper in (False, True):
            case("solve_triangular", [regular(batch, n), batch + (n, 2)], lambda x, y, u=upper: x.solve_triangular(y, u),
                 lambda x, y, u=upper: torch.linalg.solve_triangular(x, y, upper=u))
    for m, n in ((3, 3), (5, 3), (3, 5), (1, 4), (4, 1)):
        case("qr", [numbers(batch + (m, n), seed=4)], lambda x: x.qr(), torch.linalg.qr, gradient=m >= n)
    case("qr", [batch + (5, 3)], lambda x: x.qr("complete"), lambda x: torch.linalg.qr(x, "complete"), gradient=False)
    for m, n in ((3, 3), (5, 3), (3, 5)):
        case("lu", [numbers(batch + (m, n), seed=4)], lambda x: x.lu(), torch.linalg.lu)
    case("lu_factor", [regular(batch, 4)], lambda x: x.lu_factor()[0], lambda x: torch.linalg.lu_factor(x)[0])
    case("lu_factor", [numbers(batch + (5, 3))], lambda x: x.lu_factor()[1], lambda x: torch.linalg.lu_factor(x)[1], gradient=False)
    case("lu_solve", [regular(batch, 4, 2), batch + (4, 2)], lambda x, y: x.lu_factor()[0].lu_solve(x.lu_factor()[1], y), torch.linalg.solve)
    for upper in (False, True):  # PyTorch's gradient is that of both triangles
        case("eigh", [spread(batch, 4, 4)], lambda x, u=upper: pieces(*(x + x.transpose(-1, -2)).eigh(u)),
             lambda x, u=upper: pieces(*torch.linalg.eigh(x + x.transpose(-1, -2), UPLO="U" if u else "L")), forward=5e-6)
    case("lstsq", [numbers(batch + (6, 3)), batch + (6, 2)], lambda x, y: x.lstsq(y), lambda x, y: torch.linalg.lstsq(x, y).solution)
    case("lstsq", [numbers(batch + (3, 6)), batch + (3, 2)], lambda x, y: x.lstsq(y), lambda x, y: torch.linalg.pinv(x) @ y)
    for power in (0, 1, 2, 5, -2):
        case("matrix_power", [regular(batch, 3) / numpy.float32(3)], lambda x, p=power: x.matrix_power(p),
             lambda x, p=power: torch.linalg.matrix_power(x, p), gradient=power != 0)
    for m, n in ((3, 3), (5, 3), (2, 5), (4, 1)) if batch else ((1, 1), (6, 6), (7, 4)):
        # Vectors have any sign, so what is compared has none.
        case("svd", [spread(batch, m, n)], lambda x: parts(*x.svd(False)), lambda x: parts(*torch.linalg.svd(x, False)))
        if len(batch) < 2:
            case("svd", [spread(batch, m, n)], lambda x: squares(*x.svd()), lambda x: squares(*torch.linalg.svd(x)), gradient=False)
for upper in (False, True):
    case("solve_triangular", [regular((), 4), (2, 4)], lambda x, y, u=upper: x.solve_triangular(y, u, left=False),
         lambda x, y, u=upper: torch.linalg.solve_triangular(x, y, upper=u, left=False))
    case("solve_triangular", [(4, 4), (4, 2)], lambda x, y, u=upper: x.solve_triangular(y, u, unitriangular=True),
         lambda x, y, u=upper: torch.linalg.solve_triangular(x, y, upper=u, unitriangular=True), low=-0.5, high=0.5)
    case("cholesky", [definite((2,), 4)], lambda x, u=upper: x.cholesky(u), lambda x, u=upper: torch.linalg.cholesky(x, upper=u))
case("solve", [regular((2,), 3), (3, 2)], lambda x, y: x.solve(y), torch.linalg.solve)
case("det", [numpy.array([[1, 2], [2, 4]], "float32")], lambda x: x.det(), torch.linalg.det, gradient=False)
case("det", [numpy.zeros((0, 0), "float32")], lambda x: x.det(), torch.linalg.det, gradient=False)
case("inv", [numpy.array([[0, 1], [1, 0]], "float32")], lambda x: x.inv(), torch.linalg.inv)
case("inv", [regular((), 24)], lambda x: x.inv(), torch.linalg.inv)
case("cholesky", [definite((), 24)], lambda x: x.cholesky(), torch.linalg.cholesky)
for name in ("inv", "det", "cholesky"):
    refuses(name, [(3, 4)], lambda x, n=name: getattr(x, n)(), lambda x, n=name: getattr(torch.linalg, n)(x))
    refuses(name, [(3,)], lambda x, n=name: getattr(x, n)(), lambda x, n=name: getattr(torch.linalg, n)(x))
refuses("solve", [(3, 3), (4, 2)], lambda x, y: x.solve(y), torch.linalg.solve)
for shape in (9, 4), (2, 12, 3), (20, 1):  # tall: no more columns of Q than are asked for
    case("qr", [numbers(shape)], lambda x: x.qr(), torch.linalg.qr)
refuses("qr", [(3,)], lambda x: x.qr(), torch.linalg.qr)
refuses("qr", [(3, 3)], lambda x: x.qr("thin"), lambda x: torch.linalg.qr(x, "thin"))

for name, matrix in (("rank 1", [[1, 2], [2, 4], [3, 6]]), ("zeros", [[0, 0, 0], [0, 0, 0]]), ("equal", [[0, 3], [3, 0]]),
                     ("large", [[1e30, 2e30], [3e30, -1e30]]), ("small", [[1e-30, 2e-30], [3e-30, -1e-30]]), ("a zero column", [[0, 1], [0, 2], [0, 3]]),
                     ("diagonal", [[1, 0, 0], [0, 3, 0], [0, 0, 2]])):
    case("svd", [numpy.array(matrix, "float32")], lambda x: whole(*x.svd()), lambda x: whole(*torch.linalg.svd(x)), gradient=False,
         label=name)
case("svd", [numpy.array([[1, 0, 0], [0, 3, 0], [0, 0, 2]], "float32")], lambda x: parts(*x.svd()), lambda x: parts(*torch.linalg.svd(x)),
     label="gradient of a diagonal matrix")
case("svd", [numbers((20, 12), dtype="float64")], lambda x: whole(*x.svd()), lambda x: whole(*torch.linalg.svd(x)), gradient=False, forward=1e-12)
case("svd", [numbers((2, 30, 30))], lambda x: whole(*x.svd(False)), lambda x: whole(*torch.linalg.svd(x, False)), gradient=False,
     forward=2e-5)  # columns are turned about 200 times, a rounding of 6e-8 of the largest at every turn
case("svd", [numbers((2, 5, 0))], lambda x: x.svd(), torch.linalg.svd, gradient=False)
case("svd", [numbers((0, 3))], lambda x: x.svd(False), lambda x: torch.linalg.svd(x, False), gradient=False)
case("svd", [numbers((0, 2, 3))], lambda x: x.svd(), torch.linalg.svd, gradient=False)
refuses("svd", [(3,)], lambda x: x.svd(), torch.linalg.svd)
if os.environ.get("TINY_LAPACK_LIBRARY") == "none":  # a walk has an end, a LAPACK has not
    refuses("svd", [numpy.zeros((600, 700), "float32")], lambda x: x.svd(), lambda x: torch.linalg.svd(x, "too large"))
