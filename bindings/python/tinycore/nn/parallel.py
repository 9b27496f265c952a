# SPDX-License-Identifier: MIT
"""PyTorch's nn.parallel: a module on one device. Tensor.shard() says several."""
from __future__ import annotations

from .module import Module


class DataParallel(Module):
    """@module as one part: devices are said by Tensor.shard()."""

    module: Any

    def __init__(self, module, device_ids: Sequence[Any] = None, output_device: Any = None, dim=0):
        self.module = module

    def forward(self, *inputs: Any, **more: Any) -> Any:
        return self.module(*inputs, **more)


def data_parallel(module, inputs: Any, device_ids: Sequence[Any] = None, output_device: Any = None, dim=0, module_kwargs: Any = None) -> Any:
    """@module of @inputs."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))
