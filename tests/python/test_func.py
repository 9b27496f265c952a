#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Functions made of Python functions: batched, derived forward, backward and twice; what they raise is raised.

TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import checks
from tinycore import Tensor, func, no_grad


def test_vmap():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    checks.equal(func.vmap(lambda row: (row * row).sum())(x).tolist(), [5, 25])
    checks.equal(func.vmap(lambda column: column.sum(), in_dims=1)(x).tolist(), [4, 6])
    checks.equal(func.vmap(lambda row, y: row + y, in_dims=(0, None))(x, Tensor([10.0, 20.0])).tolist(), [[11, 22], [13, 24]])
    one, two = func.vmap(lambda row: (row * 2, row.sum()), out_dims=(0, 0))(x)
    checks.equal((one.tolist(), two.tolist()), ([[2, 4], [6, 8]], [3, 7]))


def test_derivatives():
    x = Tensor([1.0, 2.0])
    value, tangent = func.jvp(lambda t: t * t, (x,), (Tensor([1.0, 0.5]),))
    checks.equal((value.tolist(), tangent.tolist()), ([1, 4], [2, 2]))
    checks.equal(func.jacrev(lambda t: t * t)(x).tolist(), [[2, 0], [0, 4]])
    checks.equal(func.hessian(lambda t: (t * t * t).sum())(x).tolist(), [[6, 0], [0, 12]])
    checks.equal(func.grad(lambda t, k: (t * t * k).sum())(x, 3.0).tolist(), [6, 12])
    value, pull = func.vjp(lambda t: t * t, x)
    checks.equal((value.tolist(), pull(Tensor([1.0, 1.0])).tolist()), ([1, 4], [2, 4]))
    w = Tensor([2.0], requires_grad=True)
    func.checkpoint(lambda t: t * t * 3, w).sum().backward()
    checks.equal(w.grad.tolist(), [12])


def test_in_place():
    """A function may change what it was given: that is its own."""
    def one_more(a):
        a += 1
        return a

    def set_first(a):
        a[0] = 5
        return a

    def twice(a):
        a *= 2
        return a

    x = Tensor([1.0, 2.0])
    checks.equal(func.vmap(one_more)(x).tolist(), [2, 3])
    checks.equal(func.vmap(set_first)(Tensor.zeros(2, 2)).tolist(), [[5, 0], [5, 0]])
    value, tangent = func.jvp(one_more, (x,), (x,))
    checks.equal((value.tolist(), tangent.tolist()), ([2, 3], [1, 2]))
    checks.equal(func.jacrev(twice)(x).tolist(), [[2, 0], [0, 2]])
    checks.equal(func.hessian(lambda a: (twice(a) * a).sum())(x).tolist(), [[8, 0], [0, 8]])
    checks.equal(x.tolist(), [1, 2])


def test_read_before():
    """What is read before backward() has the gradient of what was not."""
    w = Tensor([1.0, 2.0], requires_grad=True)
    h = w * w
    a, b = h * 3, h * 5
    checks.equal((a.tolist(), str(h) != ""), ([3, 12], True))
    loss = (a + b).sum()
    checks.equal(loss.item(), 40)
    loss.backward()
    checks.equal(w.grad.tolist(), [16, 32])
    with no_grad():
        cut = (w * 2).sum()
    checks.raises(ValueError, cut.backward)


def test_errors():
    x = Tensor([1.0, 2.0])

    def fails(t):
        raise KeyError("mine")

    for transform in (lambda f: func.vmap(f)(x), lambda f: func.jvp(f, (x,), (x,)), lambda f: func.jacrev(f)(x),
                      lambda f: func.hessian(f)(x), lambda f: func.checkpoint(f, x)):
        checks.raises(KeyError, transform, fails)
        checks.raises(TypeError, transform, lambda t: 3)
        checks.raises(TypeError, transform, lambda t: [])
        checks.raises(ValueError, transform, lambda t: t.reshape(3))
    checks.raises((ValueError, TypeError), func.vmap(lambda t: t, in_dims=5), x)
    checks.raises(TypeError, func.vmap(lambda t: t), "x")
    checks.raises((ValueError, RuntimeError), func.vmap(lambda t: Tensor(t.item())), x)


def test_many():
    """References come out even."""
    x = Tensor([1.0, 2.0])
    for _ in range(300):
        found = func.vmap(lambda t: t * 2)(x)
        func.jvp(lambda t: t * t, (x,), (x,))
    checks.equal(found.tolist(), [2, 4])


checks.run(globals())
