# SPDX-License-Identifier: MIT
"""Layers in a class, an optimiser with a schedule, training mode for dropout."""
from tinycore import Tensor, nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer, self.drop = nn.Linear(8, 64), nn.Linear(64, 1), nn.Dropout(0.1)

    def forward(self, x):
        return self.outer(self.drop(self.inner(x).relu()))


Tensor.manual_seed(2)
net, x = Net(), Tensor.randn(128, 8)
y = x.max(axis=1, keepdim=True)
optimizer = nn.optim.AdamW(net.parameters(), lr=0.01)
schedule = nn.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=60)
for step in range(60):
    optimizer.zero_grad()
    loss = (net(x) - y).square().mean().backward()
    optimizer.step()
    schedule.step()
    if step == 0:
        first = loss.item()
print(f"ten times better: {loss.item() < first / 10}, rate at the end {optimizer.lr:.3f}")
net.eval()
print(net(x).shape, sum(p.numel() for p in net.parameters()), "weights")
