#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Factors of matrices by the CPU's LAPACK: that it is used where there is one, gives what kernels give, has derivatives of any
order forward, backward and batched, and that no input hangs or ends the program. Eigenvalues of kernels are as exact as LAPACK's.

TAP. Run in the build's environment, by the interpreter that has PyGObject. With --own the results of kernels alone are printed."""
import ctypes
import os
import pathlib
import re
import subprocess
import sys

import checks
import numpy
from tinycore import Tensor, TinyJit, dtypes, func, linalg
from tinycore.errors import InvalidError
from tinycore.helpers import GlobalCounters

TABLE = pathlib.Path(__file__).resolve().parents[2] / "plugins" / "cpu" / "cpu-lapack-libraries.def"
LIBRARIES = re.findall(r'^LAPACK_LIBRARY \("(.*)"\)', TABLE.read_text(), re.M)
RANDOM = numpy.random.default_rng(7)
N = 24
PLAIN = RANDOM.standard_normal((2, N, N))
DEFINITE = PLAIN @ PLAIN.swapaxes(-1, -2) / N + numpy.eye(N)
RIGHT = RANDOM.standard_normal((2, N, 3))


def has_lapack():
    for name in LIBRARIES:
        try:
            ctypes.CDLL(name)
            return True
        except OSError:
            pass
    return False


def wide(x):
    return Tensor(x, dtype=dtypes.float64)


def unsigned(u, s, vh):
    return u.abs(), s, vh.abs()


def results(make):
    """What every method gives, without signs that are free."""
    a, s, y = make(PLAIN), make(DEFINITE), make(RIGHT)
    lu, pivots = a.lu_factor()
    values, vectors = s.eigh()
    found = [a.inv(), a.solve(y), s.cholesky(), s.cholesky(upper=True), a.det(), *a.slogdet(), *a.qr(), *a[:, :, :5].qr(),
             *a[:, :5].qr(), *unsigned(*a[:, :6].svd(False)), *unsigned(*a[:, :, :6].svd(False)), values, vectors.abs(), *a.lu(),
             *a[:, :5].lu(), *a[:, :, :5].lu(), lu, pivots, lu.lu_solve(pivots, y), a[:, :, :4].lstsq(y), a[:, :4].lstsq(y[:, :4]),
             s.cholesky().solve_triangular(y, upper=False), a.solve_triangular(y, upper=True, unitriangular=True)]
    return [one.numpy() for one in found]


def count_kernels(make):
    before = GlobalCounters.kernel_count
    make().realize()
    return GlobalCounters.kernel_count - before


def test_is_used():
    """A walk over 64 columns takes more kernels than there are columns."""
    a = Tensor(RANDOM.standard_normal((64, 64)), dtype=dtypes.float32).realize()
    for make in a.inv, lambda: a.qr()[0], lambda: a.svd()[1], lambda: (a @ a.T).cholesky(), lambda: (a @ a.T).eigh()[0], a.det:
        n = count_kernels(make)
        checks.true(n < 32 if has_lapack() else n > 32, f"{n} kernels")


def test_like_kernels():
    """A process without a library computes the same with kernels."""
    env = os.environ | {"TINY_LAPACK_LIBRARY": "none"}
    own = subprocess.run([sys.executable, __file__, "--own"], env=env, stdout=subprocess.PIPE, check=True).stdout
    own = numpy.frombuffer(own, "float64")
    ours = numpy.concatenate([one.astype("float64").ravel() for one in results(wide)])
    checks.equal(own.shape, ours.shape)
    checks.true(numpy.allclose(own, ours, rtol=1e-9, atol=1e-9), abs(own - ours).max())
    for found, right in zip(results(lambda x: Tensor(x, dtype=dtypes.float32)), results(wide)):
        checks.true(numpy.allclose(found, right, rtol=0.02, atol=0.02), abs(found - right).max())


def symmetric(kind, n):
    random = numpy.random.default_rng(n)
    x = random.standard_normal((n, n))
    q = numpy.linalg.qr(x)[0]
    values = {"equal": numpy.where(numpy.arange(n) < n // 2, 1.0, -2.0), "graded": 10.0 ** -numpy.linspace(0, 7, n),
              "negative": -numpy.ones(n)}
    found = (q * values[kind]) @ q.T if kind in values else numpy.outer(x[0], x[0]) if kind == "of rank 1" else x
    return (found + found.T) / 2


def check_eigh(dtype, n):
    """Errors of LAPACK's methods are at most a number near 1 times N roundings of the largest eigenvalue."""
    kinds = "normal", "equal", "graded", "negative", "of rank 1"
    a = numpy.stack([symmetric(kind, n) for kind in kinds]).astype(dtype)
    values, vectors = (one.numpy().astype("float64") for one in Tensor(a).eigh())
    a = a.astype("float64")
    right = numpy.linalg.eigvalsh(a)
    unit = n * numpy.finfo(dtype).eps
    largest = abs(right).max(-1)
    errors = {"values": abs(values - right).max(-1) / largest, "A v - λ v": abs(a @ vectors - vectors * values[:, None]).max((1, 2)) / largest,
              "v·v": abs(vectors.swapaxes(1, 2) @ vectors - numpy.eye(n)).max((1, 2))}
    for name, error in errors.items():
        for kind, one in zip(kinds, error / unit):
            checks.true(one < (1 if name == "values" else 4), f"{dtype}, {n} columns, {kind}: {name}: {one:.2f} times N roundings")
    checks.true((numpy.diff(values) >= 0).all(), f"{dtype}, {n} columns: values in no order")


def test_exact_kernels():
    """A process without a library."""
    env = os.environ | {"TINY_LAPACK_LIBRARY": "none"}
    done = subprocess.run([sys.executable, __file__, "--eigh"], env=env, stderr=subprocess.PIPE, text=True, check=False)
    checks.equal(done.returncode, 0, done.stderr)


def weigh(*parts):
    """A number that is a function of all elements."""
    weights = wide(numpy.cos(numpy.arange(64.0)))
    return sum((one.reshape(-1) * weights[:one.numel()]).sum() for one in parts)


def squares(u, s, vh):
    return u * u, s, vh * vh


CASES = {
    "cholesky": ((3, 3), lambda a: weigh((a @ a.T + wide(numpy.eye(3))).cholesky())),
    "inv": ((3, 3), lambda a: weigh(a.inv())),
    "solve": ((3, 3), lambda a: weigh(a.solve(a[:, :2] * a[:, 1:]))),
    "det": ((3, 3), lambda a: a.det()),
    "triangular": ((3, 3), lambda a: weigh(a.solve_triangular(a[:2] * 2.0, upper=True, left=False))),
    "unit": ((3, 3), lambda a: weigh(a.solve_triangular(a[:, :2] * 2.0, upper=False, unitriangular=True))),
    "qr": ((4, 3), lambda a: weigh(*a.qr())),
    "qr, wide": ((3, 4), lambda a: weigh(*a.qr())),
    "svd": ((4, 3), lambda a: weigh(*squares(*a.svd(False)))),
    "svd, wide": ((3, 4), lambda a: weigh(*squares(*a.svd(False)))),
    "eigh": ((3, 3), lambda a: weigh(*(lambda w, v: (w, v * v))(*(a + a.T).eigh()))),
    "lu": ((3, 3), lambda a: weigh(*a.lu()[1:])),
    "lu, tall": ((4, 3), lambda a: weigh(*a.lu()[1:])),
    "lu, wide": ((3, 4), lambda a: weigh(*a.lu()[1:])),
    "lstsq": ((4, 3), lambda a: weigh(a.lstsq(a[:, :2] * a[:, 1:]))),
}


def slope(f, a, t, step=1e-5):
    return (f(wide(a + step * t)).item() - f(wide(a - step * t)).item()) / (2 * step)


def test_derivatives():
    """Against differences: backward, forward, twice, and each of a batch."""
    for name, (shape, f) in CASES.items():
        a, t, w = (RANDOM.standard_normal(shape) for _ in range(3))
        right = slope(f, a, t)
        close = lambda x, y, bound: checks.true(abs(x - y) < bound * (1 + abs(y)), f"{name}: {x}, not {y}")
        found = func.grad(f)(wide(a))
        close((found.numpy() * t).sum(), right, 1e-6)
        close(func.jvp(f, (wide(a),), (wide(t),))[1].item(), right, 1e-6)
        once = lambda x: (func.grad(f)(x) * wide(w)).sum()
        close((func.grad(once)(wide(a)).numpy() * t).sum(), slope(once, a, t), 1e-4)
        both = func.vmap(func.grad(f))(wide(numpy.stack([a + t, a]))).numpy()
        checks.true(numpy.allclose(both[1], found.numpy(), atol=1e-9), name)


def test_equal_values():
    """Where values are equal, functions of the matrix still have their gradients."""
    x = wide(numpy.eye(3) * 2)
    checks.true(numpy.allclose(func.grad(lambda a: (a.svd()[1] ** 2).sum())(x).numpy(), 4 * numpy.eye(3)))
    checks.true(numpy.isfinite(func.grad(lambda a: weigh(*a.eigh()))(x).numpy()).all())


def test_triangles():
    """By the library, and by kernels in a process without one."""
    check_triangles()
    env = os.environ | {"TINY_LAPACK_LIBRARY": "none"}
    done = subprocess.run([sys.executable, __file__, "--triangles"], env=env, stderr=subprocess.PIPE, text=True, check=False)
    checks.equal(done.returncode, 0, done.stderr)


def check_triangles():
    """Cholesky's method and eigenvalues read one triangle, whatever is in the other, and their gradients are symmetric."""
    for n in 2, 3, 8:
        plain = DEFINITE[0, :n, :n]
        for upper in False, True:
            junk = numpy.where((numpy.tri(n, k=-1).T if not upper else numpy.tri(n, k=-1)) > 0, numpy.nan, plain)
            uplo = "U" if upper else "L"
            for name, f in (("cholesky", lambda a: a.cholesky(upper=upper)), ("eigvalsh", lambda a: linalg.eigvalsh(a, uplo)),
                            ("eigh", lambda a: linalg.eigh(a, uplo)[1].square())):
                checks.true(numpy.allclose(f(wide(junk)).numpy(), f(wide(plain)).numpy(), atol=1e-9), f"{name} {n} {upper}")
                found = func.grad(lambda a: weigh(f(a)))(wide(junk)).numpy()
                whole = func.grad(lambda a: weigh(f((a + a.T) / 2)))(wide(plain)).numpy()
                checks.true(numpy.allclose(found, found.T, atol=1e-9) and numpy.allclose(found, whole, atol=1e-7), f"{name} {n} {upper}")
    s = wide([[2.0, 1.0], [1.0, 3.0]])
    checks.true(numpy.allclose(func.grad(lambda a: linalg.eigvalsh(a).square().sum())(s).numpy(), [[4, 2], [2, 6]]))
    checks.true(numpy.allclose(wide([[4.0, 99.0], [1.0, 3.0]]).cholesky().numpy(), [[2, 0], [0.5, 2.75 ** 0.5]]))


def test_bad_input():
    """NaNs, in the matrices that have no result alone."""
    for bad in numpy.nan, numpy.inf:
        a = numpy.stack([DEFINITE[0], DEFINITE[0]])
        a[1, 0, 0] = bad
        for method in "inv", "cholesky", "det", "qr", "svd", "eigh", "lu_factor":
            found = getattr(wide(a), method)()
            found = (found if isinstance(found, tuple) else (found,))[0].numpy()
            checks.true(numpy.isfinite(found[0]).all() and not numpy.isfinite(found[1]).all(), method)
    checks.true(numpy.isnan(Tensor([[1.0, 2.0], [2.0, 4.0]]).inv().numpy()).all())
    checks.true(numpy.isnan(Tensor([[1.0, 2.0], [2.0, 4.0]]).solve(Tensor([1.0, 1.0])).numpy()).all())
    checks.true(numpy.isnan(Tensor([[1.0, 2.0], [2.0, 1.0]]).cholesky().numpy()).any())
    checks.equal(Tensor([[1.0, 2.0], [2.0, 4.0]]).det().item(), 0)
    checks.raises(InvalidError, lambda: Tensor.zeros(0, 3).lu_factor()[0].realize())
    checks.raises(InvalidError, lambda: Tensor.eye(3).lu_solve(Tensor([1.0, 2.0, 3.0]), Tensor.ones(3, 1)).realize())
    checks.raises(InvalidError, lambda: Tensor.ones(2, 2).custom_kernel(code="factor svd f32 0 1 2 2 2 2"))


def test_replay():
    """A recording launches it with other inputs."""
    step = TinyJit(lambda a: a.inv().realize())
    for k in range(4):
        a = DEFINITE[0] + k * numpy.eye(N)
        checks.true(numpy.allclose(step(wide(a)).numpy(), numpy.linalg.inv(a)), k)


def test_many():
    """The threads share a batch."""
    a = RANDOM.standard_normal((40, 6, 6))
    checks.true(numpy.allclose(wide(a).inv().numpy(), numpy.linalg.inv(a)))
    checks.true(numpy.allclose(wide(a).svd()[1].numpy(), numpy.linalg.svd(a, compute_uv=False)))


def test_functions():
    """torch.linalg's names."""
    p, l, u = linalg.lu(wide(PLAIN))
    checks.true(numpy.allclose((p @ l @ u).numpy(), PLAIN))
    checks.true(numpy.allclose(linalg.lu_solve(*linalg.lu_factor(wide(PLAIN)), wide(RIGHT)).numpy(), numpy.linalg.solve(PLAIN, RIGHT)))
    checks.true(numpy.allclose(linalg.eigh(wide(DEFINITE), "U").eigenvalues.numpy(), numpy.linalg.eigvalsh(DEFINITE)))


if __name__ == "__main__":
    if "--own" in sys.argv:
        sys.stdout.buffer.write(numpy.concatenate([one.astype("float64").ravel() for one in results(wide)]).tobytes())
    elif "--triangles" in sys.argv:
        check_triangles()
    elif "--eigh" in sys.argv:
        for dtype, sizes in ("float32", (3, 4, 7, 8, 16, 33, 64)), ("float64", (5, 24)):
            for n in sizes:
                check_eigh(dtype, n)
    else:
        checks.run(globals())
