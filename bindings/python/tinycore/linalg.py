# SPDX-License-Identifier: MIT
"""torch.linalg's names: methods of tensors, and what is made of them. Of matrices in the last two axes, each by itself."""
from __future__ import annotations

from math import inf, prod

from .composed import check_rank
from .convert import results_class
from .dtypes import dtypes
from .errors import InvalidError, explain_all
from .tensor import Tensor

cholesky, cross, det, inv, lu, lu_factor, matmul, matrix_exp, matrix_power, qr, slogdet, solve, solve_triangular, svd = (
    getattr(Tensor, name) for name in
    "cholesky cross det inv lu lu_factor matmul matrix_exp matrix_power qr slogdet solve solve_triangular svd".split())
LinAlgError = InvalidError
Inverse = results_class("inverse", "info")
Triangle = results_class("l", "info")
Solution = results_class("result", "info")
Factors = results_class("LU", "pivots", "info")
LeastSquares = results_class("solution", "residuals")
Eigen = results_class("eigenvalues", "eigenvectors")


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """Diagonals, along a new last axis."""
    return A.diagonal(offset, dim1, dim2)


def vector_norm(x, ord: float = 2, dim: int | Sequence[int] = None, keepdim=False):
    """The length of vectors along @dim, of all elements if that is None."""
    return x.norm(ord, dim, keepdim)


def matrix_norm(A, ord: str | float = "fro", dim: Sequence[int] = (-2, -1), keepdim=False):
    """fro: the root of the sum of squares; nuc: the sum of singular values; 2, -2: the largest, the least; inf, -inf: the largest
    and least sum of a row; 1, -1: of a column."""
    check_rank(A, 2, "matrix_norm")
    rows, columns = (one % A.ndim for one in dim)
    if ord == "fro":
        return A.norm(2, (rows, columns), keepdim)
    if ord in ("nuc", 2, -2):
        values = svdvals(A.movedim((rows, columns), (-2, -1)))
        found = values.sum(-1) if ord == "nuc" else values.max(-1) if ord == 2 else values.min(-1)
    elif ord in (1, -1, inf, -inf):
        along, rest = (columns, rows) if abs(ord) == inf else (rows, columns)
        sums = A.abs().sum(along)
        rest -= rest > along
        found = sums.max(rest) if ord > 0 else sums.min(rest)
    else:
        raise InvalidError(f"matrix_norm: {ord!r} is none of fro, nuc, 1, -1, 2, -2, inf, -inf")
    return found.unsqueeze(min(rows, columns)).unsqueeze(max(rows, columns)) if keepdim else found


def norm(A, ord: str | float = None, dim: int | Sequence[int] = None, keepdim=False):
    """vector_norm() of all, or along one axis; matrix_norm() along two."""
    if isinstance(dim, (tuple, list)) and len(dim) == 2:
        return matrix_norm(A, "fro" if ord is None else ord, dim, keepdim)
    if ord is None or dim is not None or A.ndim == 1:
        return vector_norm(A, 2 if ord is None else ord, dim, keepdim)
    check_rank(A, 2, "norm", 2)
    return matrix_norm(A, ord, keepdim=keepdim)


def svdvals(A):
    """Singular values, from the largest down."""
    return A.svd(full_matrices=False)[1]


def lstsq(A, B) -> LeastSquares:
    """.solution: X for which the length of each column of A X - B is least; .residuals: their squares, where there are more rows
    than columns."""
    check_rank(A, 2, "lstsq")
    found = A.lstsq(B)
    much = A.shape[-2] > A.shape[-1]
    return LeastSquares((found, ((A @ found - B) ** 2).sum(-2) if much else A.new_zeros(0)))


def least_value(values, A, atol, rtol):
    """Below what a singular value is none."""
    if rtol is None:
        rtol = 0.0 if atol is not None else max(A.shape[-2:]) * dtypes.finfo(A.dtype).eps
    largest = values.max(-1, keepdim=True) if values.shape[-1] else values.sum(-1, keepdim=True)
    relative = largest * rtol
    return relative if atol is None else relative.maximum(atol)


def pinv(A, rcond: float = None, hermitian=False, *, atol: float = None, rtol: float = None):
    """The pseudoinverse (Moore and Penrose). A singular value is none where it is at most @atol, or @rtol times the largest."""
    check_rank(A, 2, "pinv")
    u, values, vh = A.svd(full_matrices=False)
    counts = values > least_value(values, A, atol, rcond if rtol is None else rtol)
    inverse = counts.where(1 / counts.where(values, 1.0), 0.0)
    return (vh.transpose(-2, -1) * inverse.unsqueeze(-2)) @ u.transpose(-2, -1)


def matrix_rank(A, *, atol: float = None, rtol: float = None, hermitian=False):
    """How many singular values there are: see pinv()."""
    check_rank(A, 2, "matrix_rank")
    values = svdvals(A)
    return (values > least_value(values, A, atol, rtol)).sum(-1)


def cond(A, p: str | float = None):
    """How much errors grow by solve(): matrix_norm() times that of the inverse."""
    check_rank(A, 2, "cond")
    if p in (None, 2, -2):
        values = svdvals(A)
        found = values.max(-1) / values.min(-1)
        return 1 / found if p == -2 else found
    return matrix_norm(A, p) * matrix_norm(A.inv(), p)


def lu_solve(LU: Tensor, pivots: Tensor, B):
    """X with A X = @B for the A whose lu_factor() gave @LU and @pivots."""
    return LU.lu_solve(pivots, B)


def eigh(A, UPLO="L") -> Eigen:
    """Eigenvalues of symmetric matrices, from the least up, and vectors of length 1 in columns, whose signs are any. One triangle is
    read."""
    check_rank(A, 2, "eigh")
    if UPLO not in ("L", "U"):
        raise InvalidError(f"eigh: “{UPLO}” is none of L, U")
    return Eigen(A.eigh(UPLO == "U"))


def eigvalsh(A, UPLO="L"):
    """eigh() without vectors."""
    return eigh(A, UPLO).eigenvalues


def multi_dot(tensors: Sequence[Tensor]):
    """The product of matrices, of which the first and the last may be vectors, in the cheapest order."""
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    if len(tensors) < 2:
        raise InvalidError("multi_dot: at least two matrices are wanted")
    inner = [next(letters) for _ in range(len(tensors) - 1)]
    first = next(letters) if tensors[0].ndim == 2 else ""
    last = next(letters) if tensors[-1].ndim == 2 else ""
    sides = [first, *inner, last]
    return Tensor.einsum(",".join(a + b for a, b in zip(sides, sides[1:])) + "->" + first + last, *tensors)


def vecdot(x, y, *, dim=-1):
    """The sum of products along @dim."""
    return (x * y).sum(dim)


def vander(x, *, N: int = None):
    """Powers 0 … N - 1 of each element of a vector, along a new last axis."""
    powers = [x.ones_like()]
    for _ in range(1, x.shape[-1] if N is None else N):
        powers.append(powers[-1] * x)
    return Tensor.stack(powers, dim=-1)


# ---- with a number that says where it failed, in the place of an error ----
def failure(bad, check_errors, name):
    """0, or which of a matrix's rows is the first that @bad says of, from 1."""
    info = bad.any(-1).where(bad.argmax(-1) + 1, 0).cast("int32")
    if check_errors and info.any().item():
        raise InvalidError(f"{name}: a matrix is singular, or not positive definite: row {info.max().item()}")
    return info


def lu_factor_ex(A, *, pivot=True, check_errors=False) -> Factors:
    """lu_factor(), and where a pivot is 0."""
    found = A.lu_factor()
    return Factors([*found, failure(found[0].diagonal(0, -2, -1) == 0, check_errors, "lu_factor_ex")])


def inv_ex(A, *, check_errors=False) -> Inverse:
    """inv(), and where a matrix is singular."""
    return Inverse([A.inv(), failure(A.detach().lu_factor()[0].diagonal(0, -2, -1) == 0, check_errors, "inv_ex")])


def solve_ex(A, B, *, left=True, check_errors=False) -> Solution:
    """solve(), and where a matrix is singular."""
    found = A.solve(B) if left else A.transpose(-2, -1).solve(B.transpose(-2, -1)).transpose(-2, -1)
    return Solution([found, failure(A.detach().lu_factor()[0].diagonal(0, -2, -1) == 0, check_errors, "solve_ex")])


def cholesky_ex(A, *, upper=False, check_errors=False) -> Triangle:
    """cholesky(), and 1 where a matrix is not positive definite."""
    found = A.cholesky(upper)
    diagonal = found.detach().diagonal(0, -2, -1)
    return Triangle([found, failure((diagonal > 0).logical_not(), check_errors, "cholesky_ex")])


def tensorinv(A, ind=2):
    """The inverse of @A as a matrix whose rows are its first @ind axes."""
    rows = prod(A.shape[:ind])
    return A.reshape(rows, -1).inv().reshape(A.shape[ind:] + A.shape[:ind])


def tensorsolve(A, B, dims: Sequence[int] = None):
    """X with tensordot (A, X, X.ndim) = @B, of an A whose axes @dims come last."""
    if dims is not None:
        A = A.movedim(list(dims), list(range(-len(dims), 0)))
    return A.reshape(B.numel(), -1).solve(B.flatten()).reshape(A.shape[B.ndim:])


explain_all(globals())
