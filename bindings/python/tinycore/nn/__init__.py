# SPDX-License-Identifier: MIT
"""Layers, losses, optimisers, state and data for training."""
from . import datasets, functional, layers, optim, state, utils
from .layers import *  # noqa: F403
from .module import Layer, Module, Parameter

__all__ = ["Layer", "Module", "Parameter", "datasets", "functional", "optim", "state", "utils",
           *(name for name, one in vars(layers).items() if isinstance(one, type) and issubclass(one, Module))]
