# SPDX-License-Identifier: MIT
"""The gradient of a loss with respect to what it was computed from."""
from tinycore import Tensor

x = Tensor.linspace(-1, 1, 5, requires_grad=True)
loss = x.square().sum().backward()  # gives the loss back
print(loss.item(), x.grad.tolist())

y = Tensor([1.0, 2.0])
print(y.pow(3).sum().gradient(y)[0].tolist())  # without requires_grad: of one tensor by another
