# SPDX-License-Identifier: MIT
"""The memory of a tensor of PyTorch, used without a copy, and the other way round."""
import torch
from tinycore import Tensor

theirs = torch.arange(4, dtype=torch.float32)
ours = Tensor.from_dlpack(theirs)
print((ours * 2).tolist())

made = (ours + 1).realize()
print(torch.from_dlpack(made))
