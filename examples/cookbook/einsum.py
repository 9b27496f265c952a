# SPDX-License-Identifier: MIT
"""Sums of products by formula: traces, batches of products, outer products."""
from tinycore import Tensor

a = Tensor.arange(6).reshape(2, 3)
b = Tensor.arange(12).reshape(2, 3, 2)
print(Tensor.einsum("ij,ij->", a, a).item())
print(Tensor.einsum("bi,bij->bj", a, b).tolist())
print(Tensor.einsum("i,j->ij", a[0], a[1]).tolist())
print(b.rearrange("b i j -> i (b j)").tolist())
