# SPDX-License-Identifier: MIT
"""A function of one example, applied to a batch: gradients for each example."""
from tinycore import Tensor
from tinycore.func import grad, vmap


def loss(w, x, y):
    return ((w * x).sum() - y).square()


w = Tensor([1.0, -1.0])
xs, ys = Tensor([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]]), Tensor([0.0, 1.0, -1.0])
print(vmap(loss, in_dims=(None, 0, 0))(w, xs, ys).tolist())
print(vmap(grad(loss), in_dims=(None, 0, 0))(w, xs, ys).tolist())
