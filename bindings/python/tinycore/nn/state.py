# SPDX-License-Identifier: MIT
"""The tensors of a network by name, whatever objects it is made of."""
from ..errors import call
from ..library import Tiny
from ..tensor import Base, Tensor
from .module import walk


def get_state_dict(model, prefix=""):
    """All tensors in @model by path, such as "layers.0.weight"."""
    return {name: tensor for name, tensor, _ in walk(model, prefix.rstrip("."))}


def get_parameters(model):
    """What an optimiser changes."""
    return [tensor for _, tensor, trainable in walk(model) if trainable]


def load_state_dict(model, state_dict, strict=True, verbose=False):
    """Copies values into the tensors of @model, which keep their memory, dtype and device."""
    own = get_state_dict(model)
    if strict:
        missing, unexpected = sorted(set(own) - set(state_dict)), sorted(set(state_dict) - set(own))
        if missing or unexpected:
            raise ValueError(f"load_state_dict: missing are {missing}, unexpected are {unexpected}")
    wrong = [f"{name}: {state_dict[name].shape} into {tensor.shape}" for name, tensor in own.items()
             if name in state_dict and tuple(state_dict[name].shape) != tensor.shape]
    if wrong:
        raise ValueError(f"load_state_dict: shapes differ: {'; '.join(wrong)}")
    loaded = []
    for name, tensor in own.items():
        if name in state_dict:
            value = state_dict[name]
            value = value if isinstance(value, Base) else Tensor(value)
            tensor.assign(value.to(tensor.device))
            loaded.append(tensor)
    if loaded:
        loaded[0].realize(*loaded[1:])
    return loaded


def safe_save(tensors, path, metadata=None):
    """Writes named tensors to a safetensors file."""
    call(Tiny.state_save, dict(tensors), str(path), metadata)


def safe_load(path, device=None):
    """The named tensors of a safetensors file."""
    found = call(Tiny.state_load, str(path), device)
    return dict(found[0] if isinstance(found, tuple) else found)
