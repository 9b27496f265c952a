# SPDX-License-Identifier: MIT
"""tinycore.nn.data under PyTorch's name."""
from ..nn.data import *  # noqa: F403
