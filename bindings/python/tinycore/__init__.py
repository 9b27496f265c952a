# SPDX-License-Identifier: MIT
"""A small deep-learning core: lazy tensors, fused kernels, accelerators that are plugins.

from tinycore import Tensor, nn, Device, TinyJit, dtypes

What Tensor has as static methods and methods is here as functions too: tinycore.zeros (2), tinycore.exp (x); so are
the dtypes, and tensor (), optim, linalg, fft and more under PyTorch's names (functions.py)."""
from __future__ import annotations

from importlib import import_module
from math import e, inf, nan, pi

from . import errors, interrupt  # noqa: F401: this acts when it is loaded
from .context import Context, enable_grad, no_grad, set_grad_enabled
from .convert import Size
from .device import Device, device
from .dtypes import DType, DType as dtype, dtypes
from .errors import TinyError
from .jit import JitError, TinyJit
from .library import Tiny as _library
from .tensor import Tensor
from .variable import Variable

__all__ = ["Context", "DType", "Device", "JitError", "Tensor", "TinyError", "TinyJit", "Variable", "amp", "autograd", "backends", "cuda",
           "distributions", "dtypes", "enable_grad", "fft", "func", "helpers", "linalg", "nn", "no_grad", "optim", "set_grad_enabled", "special", "utils"]
__version__ = _library.get_version()
OWN = ("gradient", "lu", "pow", "svd")  # functions of PyTorch's, of which tensors have methods that mean something else
CONSTANTS = {"pi": pi, "e": e, "inf": inf, "nan": nan, "newaxis": None, **dict.fromkeys(("strided", "contiguous_format", "channels_last", "channels_last_3d", "preserve_format"))}
# Loaded when they are used: a first result is sooner.
LATER = {name: "." + name for name in ("amp", "autograd", "backends", "cuda", "distributions", "fft", "func", "helpers", "linalg", "nn", "optim", "special", "utils")}


def tensor(data: Any, dtype=None, device=None, requires_grad=None) -> Tensor:
    """A tensor of @data."""
    return Tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def max(input, dim: int | Tensor = None, keepdim=False, *, other: Tensor = None) -> Any:  # noqa: A001
    """PyTorch's: the largest of all elements; along @dim a pair, values and indices; of two tensors maximum(). The method
    x.max (1) is tinygrad's, the values alone."""
    return import_module(".functions", __name__).extreme("max", input, dim, keepdim, other)


def min(input, dim: int | Tensor = None, keepdim=False, *, other: Tensor = None) -> Any:  # noqa: A001
    """PyTorch's, as max() is."""
    return import_module(".functions", __name__).extreme("min", input, dim, keepdim, other)


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2):
    """nn.state.torch_save() under PyTorch's name. How it is pickled is nothing to choose."""
    import_module(".nn.state", __name__).torch_save(obj, f)


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool = None, mmap: bool = None) -> Any:
    """nn.state.torch_load() under PyTorch's name. Nothing that a file says is run, whatever @weights_only says."""
    return import_module(".nn.state", __name__).torch_load(f, map_location)


def __dir__():
    methods = (name for name in dir(Tensor) if callable(getattr(Tensor, name, None)))
    return sorted(name for name in {*globals(), *CONSTANTS, *LATER, *dtypes.names, *methods, *dir(import_module(".functions", __name__))} if not name.startswith("_"))


def __getattr__(name):
    if name in CONSTANTS:
        found = CONSTANTS[name]
    elif name in LATER:
        found = import_module(LATER[name], __name__)
    elif name in dtypes.names:
        found = getattr(dtypes, name)
    elif not name.startswith("_") and name not in OWN and callable(getattr(Tensor, name, None)):
        found = getattr(Tensor, name)
        if not isinstance(next(vars(cls)[name] for cls in Tensor.__mro__ if name in vars(cls)), staticmethod):
            found = errors.explained(import_module(".functions", __name__).of_tensor(found, name))
    elif name.startswith("_") or not hasattr(functions := import_module(".functions", __name__), name):
        from .errors import meant
        raise AttributeError(f"tinycore has no {name}" + meant(name, __dir__()), name=name)
    else:
        found = getattr(functions, name)
    globals()[name] = found
    return found


errors.explain_all(globals())
