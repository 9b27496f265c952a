# SPDX-License-Identifier: MIT
"""All derivatives: a step of Newton's method finds the minimum of a square form at once."""
from tinycore import Tensor
from tinycore.func import hessian, jacrev

a = Tensor([[3.0, 1.0], [1.0, 2.0]])


def f(x):
    return (x @ a @ x) / 2 - x.sum()


x = Tensor([5.0, -5.0])
first, second = jacrev(f)(x), hessian(f)(x)
print(first.tolist(), second.tolist())
print([f"{value:.3f}" for value in (x - second.solve(first)).tolist()])
print(jacrev(lambda x: x.cumprod(0))(Tensor([2.0, 3.0])).tolist())
