# SPDX-License-Identifier: MIT
"""A small deep-learning core: lazy tensors, fused kernels, accelerators that are plugins.

from tinycore import Tensor, nn, Device, TinyJit, dtypes"""
from .context import Context, enable_grad, no_grad
from .device import Device
from .dtypes import dtypes
from .errors import TinyError
from .jit import TinyJit
from .tensor import Tensor

__all__ = ["Context", "Device", "Tensor", "TinyError", "TinyJit", "dtypes", "enable_grad", "no_grad"]
