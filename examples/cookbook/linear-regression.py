# SPDX-License-Identifier: MIT
"""A line through points: by gradients, and as least squares at once."""
from tinycore import Tensor, nn

x = Tensor.linspace(-1, 1, 50)
y = 3 * x - 2
slope, offset = Tensor.zeros(1), Tensor.zeros(1)
optimizer = nn.optim.SGD([slope, offset], lr=0.3)
for _ in range(60):
    optimizer.zero_grad()
    (slope * x + offset - y).square().mean().backward()
    optimizer.step()
print(f"{slope.item():.3f} x + {offset.item():.3f}")

columns = Tensor.stack(x, Tensor.ones(50), dim=1)
print([f"{value:.3f}" for value in columns.lstsq(y.unsqueeze(1)).flatten().tolist()])
