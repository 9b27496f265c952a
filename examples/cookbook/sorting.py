# SPDX-License-Identifier: MIT
"""The order of elements and the largest of them."""
from tinycore import Tensor

x = Tensor([3, 1, 4, 1, 5, 9, 2, 6])
values, positions = x.sort()
print(values.tolist(), positions.tolist())
best, where = x.topk(3)
print(best.tolist(), where.tolist(), x.argmax().item())
