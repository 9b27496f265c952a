# SPDX-License-Identifier: MIT
"""Two layers that learn whether the two numbers of a row have the same sign."""
from tinycore import Tensor, dtypes, nn

Tensor.manual_seed(1)
x = Tensor.randn(256, 2)
y = (x.prod(1) > 0).cast(dtypes.int32)

model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.02)

for step in range(101):
    optimizer.zero_grad()
    loss = model(x).cross_entropy(y).backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step:3}  loss {loss.item():.2f}")

accuracy = (model(x).argmax(1) == y).mean().item()
print(f"right: {accuracy:.1f}")
