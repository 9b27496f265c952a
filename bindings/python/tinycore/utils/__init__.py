# SPDX-License-Identifier: MIT
"""What PyTorch has under this name: utils.data, utils.checkpoint."""
from . import checkpoint, data

__all__ = ["checkpoint", "data"]
