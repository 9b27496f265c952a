# SPDX-License-Identifier: MIT
"""What PyTorch has under this name: utils.data."""
from . import data

__all__ = ["data"]
