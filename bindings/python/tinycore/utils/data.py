# SPDX-License-Identifier: MIT
"""tinycore.nn.data under PyTorch's name."""
from ..nn.data import *  # noqa: F403
from ..nn.data import __all__  # noqa: F401
