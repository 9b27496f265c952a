# SPDX-License-Identifier: MIT
"""nn.optim under PyTorch's name: import tinycore.optim as optim."""
import sys
from typing import TYPE_CHECKING

from .nn import optim

if TYPE_CHECKING:
    from .nn.optim import *  # noqa: F403
sys.modules[__name__], sys.modules[__name__ + ".lr_scheduler"] = optim, optim.lr_scheduler
