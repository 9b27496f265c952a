# SPDX-License-Identifier: MIT
"""nn.optim under PyTorch's name: import tinycore.optim as optim."""
import sys

from .nn import optim

sys.modules[__name__] = optim
