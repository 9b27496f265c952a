# SPDX-License-Identifier: MIT
"""Layers, losses, optimisers, state and data for training."""
from . import containers, data, datasets, functional, functions, init, layers, optim, padding, parallel, state, transformer, utils
from .containers import *  # noqa: F403
from .functions import *  # noqa: F403
from .layer import Layer
from .layers import *  # noqa: F403
from .module import Module, Parameter
from .padding import *  # noqa: F403
from .parallel import DataParallel
from .transformer import *  # noqa: F403


def __getattr__(name):
    from ..errors import meant
    raise AttributeError(f"nn has no {name}" + meant(name, __all__), name=name)


__all__ = ["Layer", "Module", "MultiHeadAttention", "Parameter", "data", "datasets", "functional", "init", "optim", "parallel", "state", "utils",
           *(name for part in (containers, functions, layers, padding, parallel, transformer) for name, one in vars(part).items()
             if isinstance(one, type) and issubclass(one, Module))]
