# SPDX-License-Identifier: MIT
"""A small deep-learning core: lazy tensors, fused kernels, accelerators that are plugins.

from tinycore import Tensor, nn, Device, TinyJit, dtypes

What Tensor has as static methods and methods is here as functions too: tinycore.zeros (2), tinycore.exp (x); so are
the dtypes, and tensor () and optim under PyTorch's names."""
from importlib import import_module

from .context import Context, enable_grad, no_grad, set_grad_enabled
from .device import Device
from .dtypes import DType, dtypes
from .errors import TinyError
from .jit import JitError, TinyJit
from .tensor import Tensor

__all__ = ["Context", "DType", "Device", "JitError", "Tensor", "TinyError", "TinyJit", "dtypes", "enable_grad", "nn", "no_grad",
           "set_grad_enabled"]
LATER = {"func": ".func", "nn": ".nn", "optim": ".nn.optim"}  # loaded when they are used: a first result is sooner


def tensor(data, dtype=None, device=None, requires_grad=None):
    """A tensor of @data."""
    return Tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def __getattr__(name):
    if name in LATER:
        found = import_module(LATER[name], __name__)
    elif name in dtypes.names:
        found = getattr(dtypes, name)
    elif not name.startswith("_") and callable(getattr(Tensor, name, None)):
        found = getattr(Tensor, name)
    else:
        raise AttributeError(f"tinycore has no {name}")
    globals()[name] = found
    return found
