# SPDX-License-Identifier: MIT
"""What programs ask torch.cuda: whether there is such a device, and to wait for it."""
from __future__ import annotations

import sys

from . import cuda_amp as amp
from .device import Device
from .tensor import Tensor

sys.modules[__name__ + ".amp"] = amp  # which from tinycore.cuda.amp import … finds
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


def accepted(*arguments: Any, **more: Any):
    """Nothing: memory is given back when it is needed, and where tensors go is said of each."""


empty_cache = set_device = ipc_collect = reset_peak_memory_stats = accepted


def is_bf16_supported() -> bool:
    return is_available()


def current_device() -> int:
    return 0


def get_device_name(device: int | str = None) -> str:
    return f"CUDA:{device}" if isinstance(device, int) else device or "CUDA"
