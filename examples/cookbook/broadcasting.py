# SPDX-License-Identifier: MIT
"""Axes of size 1 are repeated: all distances between two sets of points."""
from tinycore import Tensor

a = Tensor([[0.0, 0.0], [3.0, 4.0]])
b = Tensor([[0.0, 0.0], [0.0, 4.0], [3.0, 0.0]])
distances = (a.unsqueeze(1) - b.unsqueeze(0)).square().sum(-1).sqrt()  # (2, 1, 2) - (1, 3, 2)
print(distances.tolist())
