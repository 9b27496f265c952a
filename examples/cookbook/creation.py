# SPDX-License-Identifier: MIT
"""Ways to make a tensor."""
from tinycore import Tensor, dtypes

print(Tensor([[1, 2], [3, 4]]).dtype, Tensor([1.5, True]).dtype)
print(Tensor.zeros(2, 3).tolist(), Tensor.full((2,), 7).tolist())
print(Tensor.arange(5).tolist(), Tensor.linspace(0, 1, 5).tolist())
print(Tensor.eye(2, dtype=dtypes.int32).tolist())
Tensor.manual_seed(1)
x = Tensor.randn(1000)
print(f"mean {x.mean().item():.1f}, standard deviation {x.std().item():.1f}")
print(Tensor.randint(3, low=0, high=10).shape)
