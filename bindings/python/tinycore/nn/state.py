# SPDX-License-Identifier: MIT
"""The tensors of a network by name, whatever objects it is made of, and files of them."""
from __future__ import annotations

from collections.abc import Mapping
from os import fsdecode

from ..convert import one_name
from ..errors import call
from ..library import Tiny
from ..tensor import Base
from .files import safe_load_metadata, tar_extract, torch_load, torch_save, zip_extract
from .module import PARAMETER, TRANSIENT, load_into, once, walk

__all__ = ["get_parameters", "get_state_dict", "load_state_dict", "safe_load", "safe_load_metadata", "safe_save", "tar_extract",
           "torch_load", "torch_save", "zip_extract"]


def get_state_dict(model: Any, prefix="") -> dict[str, Tensor]:
    """All tensors in @model by path, such as "layers.0.weight"; a shared one under each of its names."""
    return {name: tensor for name, tensor, kind in walk(model, prefix.rstrip(".")) if kind != TRANSIENT}


def get_parameters(model: Any) -> list[Tensor]:
    """What an optimiser changes, each once."""
    return [tensor for _, tensor, kind in once(walk(model)) if kind == PARAMETER]


def load_state_dict(model: Any, state_dict, strict=True, verbose=False, consume=False, realize=True) -> list[Tensor]:
    """Copies values into the tensors of @model, which keep their memory, dtype and device. @consume: takes them out of
    @state_dict."""
    if hasattr(model, "load_flat_state"):
        return model.load_flat_state(state_dict)
    loaded = load_into(model, get_state_dict(model), state_dict, strict)[0]
    if consume:
        for name in get_state_dict(model):
            state_dict.pop(name, None)
    return loaded


def path_of(path):
    """A path as C takes it, for which it ends at a NUL."""
    text = fsdecode(path)
    if "\0" in text:
        raise ValueError(f"a path has no NUL in it, as {text!r:.80}")
    return text


def safe_save(tensors: Mapping[str, Tensor], path: str | PathLike[str], metadata: Mapping[str, str] = None):
    """Writes named tensors to a safetensors file."""
    if not isinstance(tensors, Mapping):
        raise TypeError(f"safe_save: tensors by name are wanted, not {type(tensors).__name__}")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or "\0" in name:
            raise TypeError(f"safe_save: a name is a text without NUL, not {name!r:.80}")
        if not isinstance(tensor, Base):
            raise TypeError(f"safe_save: {name} is no tensor but {type(tensor).__name__}")
    call(Tiny.state_save, dict(tensors), path_of(path), metadata)


def safe_load(path: str | PathLike[str], device: str = None) -> dict[str, Tensor]:
    """The named tensors of a safetensors file."""
    found = call(Tiny.state_load, path_of(path), one_name(device))
    return dict(found[0] if isinstance(found, tuple) else found)
