# SPDX-License-Identifier: MIT
"""Attention over a growing cache: one recording, in which the position and the number of keys are a variable."""
from tinycore import Tensor, TinyJit, Variable, nn

LONGEST, DIM = 32, 16
Tensor.manual_seed(3)
query, key, value = (nn.Linear(DIM, DIM, bias=False) for _ in range(3))
keys, values = (Tensor.zeros(LONGEST, DIM).contiguous().realize() for _ in range(2))
position = Variable("position", 0, LONGEST - 1)


@TinyJit
def step(x, at):
    keys[at], values[at] = key(x), value(x)  # x (DIM)
    seen = (at + 1)
    scores = (keys[:seen] @ query(x)) * DIM ** -0.5
    return (scores.softmax(0).unsqueeze(0) @ values[:seen]).squeeze(0).realize()


tokens = Tensor.randn(LONGEST, DIM).realize()
found = [step(tokens[i].contiguous().realize(), position.bind(i)).tolist() for i in range(LONGEST)]
wanted = query(tokens).scaled_dot_product_attention(key(tokens), value(tokens), is_causal=True)
print("all positions at once:", (Tensor(found) - wanted).abs().max().item() < 1e-5)
print("recorded once:", step.captured)
