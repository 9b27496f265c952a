# SPDX-License-Identifier: MIT
"""What programs ask torch.cuda: whether there is such a device, and to wait for it."""
from __future__ import annotations

from . import amp as amp
from .device import Device
from .tensor import Tensor

manual_seed = manual_seed_all = Tensor.manual_seed


def device_count() -> int:
    """How many devices of CUDA can be used."""
    return sum(name.split(":")[0] == "CUDA" for name in Device.get_available_devices())


def is_available() -> bool:
    """Whether one can be used."""
    return device_count() > 0


def synchronize(device: str = None):
    """Waits until it has done all that it was given."""
    Device.synchronize("CUDA" if device is None else device)
