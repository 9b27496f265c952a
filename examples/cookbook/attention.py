# SPDX-License-Identifier: MIT
"""Attention of queries to keys, by hand and in one call."""
from tinycore import Tensor

Tensor.manual_seed(3)
q, k, v = (Tensor.randn(2, 4, 16, 8) for _ in range(3))  # batch, heads, positions, width
past = Tensor.ones(16, 16).tril().cast("bool")

scores = (q @ k.transpose(-2, -1) / 8**0.5).masked_fill(~past, float("-inf"))
by_hand = scores.softmax(-1) @ v
at_once = q.scaled_dot_product_attention(k, v, is_causal=True)
print(at_once.shape, "same:", ((by_hand - at_once).abs().max() < 1e-5).item())
