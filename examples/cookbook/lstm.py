# SPDX-License-Identifier: MIT
"""A recurrent layer that learns to add up what it has seen."""
from tinycore import Tensor, TinyJit, nn

Tensor.manual_seed(4)
lstm, head = nn.LSTM(1, 16, batch_first=True), nn.Linear(16, 1)
optimizer = nn.optim.Adam([*nn.state.get_parameters(lstm), *nn.state.get_parameters(head)], lr=0.02)
x = Tensor.rand(64, 6, 1).realize()


@TinyJit
def step():
    optimizer.zero_grad()
    out, (hidden, cell) = lstm(x)
    loss = (head(hidden[-1]) - x.sum(1)).square().mean().backward()
    optimizer.step()
    return loss


losses = [step().item() for _ in range(60)]
print(f"a tenth of the loss at first: {losses[-1] < losses[0] / 10}")
