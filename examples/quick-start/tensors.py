# SPDX-License-Identifier: MIT
"""Making tensors and computing with them."""
from tinycore import Tensor

a = Tensor([[1.0, 2, 3], [4, 5, 6]])
row = Tensor.arange(10, 40, 10)

b = (a + row) * 0.5
product = a @ a.T
print(a.shape, a.dtype, b.mean().item())  # nothing was computed before item () asked for a value
print(b.tolist())
print(product.numpy())  # an array of NumPy

try:
    a @ a
except Exception as error:
    print(error)
