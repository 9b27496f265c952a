# SPDX-License-Identifier: MIT
"""Equations solved, a determinant and its gradient."""
from tinycore import Tensor

a = Tensor([[4.0, 1.0], [1.0, 3.0]])
x = a.solve(Tensor([[1.0], [2.0]]))
print([f"{value:.4f}" for value in x.flatten().tolist()])
lower = a.cholesky()
print(((lower @ lower.T - a).abs().max() < 1e-5).item())
print(f"{a.det().item():.3f}", [f"{g:.3f}" for g in a.det().gradient(a)[0].flatten().tolist()])
