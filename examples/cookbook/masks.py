# SPDX-License-Identifier: MIT
"""Subscripts with masks and with tensors of positions, read and assigned."""
from tinycore import Tensor

x = Tensor.arange(12).reshape(3, 4)
print(x[x % 5 == 0].tolist(), x[[2, 0], [1, 3]].tolist(), x[..., -1].tolist())
x[x > 8] = 0
x[1] = Tensor([1, 1, 2, 3])
print(x.tolist())
print((x > 2).where(x, -1).tolist())
