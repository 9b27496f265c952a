# SPDX-License-Identifier: MIT
"""Reads and writes at positions that are data."""
from tinycore import Tensor

scores = Tensor([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]])
labels = Tensor([[1], [2]])
print(scores.gather(1, labels).numpy())

words, counts = Tensor([2, 0, 2, 1, 2]), Tensor([1, 1, 1, 1, 1])
print(Tensor.zeros(4).cast(counts.dtype).scatter_add(0, words, counts).tolist())
