# SPDX-License-Identifier: MIT
"""A training step whose kernels are recorded at the second call and replayed from the third on."""
from tinycore import Tensor, TinyJit, nn

Tensor.manual_seed(1)
weight = Tensor.zeros(3, 1)
optimizer = nn.optim.SGD([weight], lr=0.1)


@TinyJit
def step(x, y):
    optimizer.zero_grad()
    loss = (x @ weight - y).square().mean().backward()
    optimizer.step()
    return loss


wanted = Tensor([[1.0], [-2.0], [3.0]])
for i in range(100):
    x = Tensor.randn(32, 3).realize()
    loss = step(x, (x @ wanted).realize())
print(f"loss {loss.item():.4f}", [f"{w:.2f}" for w in weight.flatten().tolist()], step.captured)
