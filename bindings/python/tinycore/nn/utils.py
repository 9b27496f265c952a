# SPDX-License-Identifier: MIT
"""What is done to gradients between backward() and step(), to parameters as one vector, and to a module's tensors before each forward()."""
from __future__ import annotations

from ..errors import call, checked, explain_all
from ..library import Tiny
from ..tensor import Base, Tensor
from .layer import Layer
from .module import Hook, Module, Parameter


def with_gradients(parameters):
    parameters = [parameters] if isinstance(parameters, Base) else list(parameters)
    return [one for one in parameters if one.grad is not None]


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type=2.0):
    """Scales gradients down so that their norm together is @max_norm at most; gives what it was."""
    return checked(Tiny.clip_grad_norm(with_gradients(parameters), max_norm, norm_type))


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float):
    """Moves elements of gradients to the nearer of ±@clip_value."""
    call(Tiny.clip_grad_value, with_gradients(parameters), clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]):
    """All elements of some tensors, one after the other."""
    return Tensor.cat([one.flatten() for one in parameters])


def vector_to_parameters(vec, parameters: Iterable[Tensor]):
    """Puts the elements of a vector into tensors, one after the other."""
    start = 0
    for one in parameters:
        one.assign(vec.narrow(0, start, one.numel()).reshape(one.shape).detach())
        start += one.numel()


class WeightNorm:
    """Makes a module's tensor of its direction and its length for each forward(), as hooks before and after that."""

    def __init__(self, name: str, dim: Any):
        self.name, self.dim = name, dim

    def norm(self, v: Tensor) -> Tensor:
        axes = [i for i in range(v.ndim) if self.dim is None or i != self.dim % v.ndim]
        squares = v.square()
        return (squares.sum(axes, keepdim=self.dim is not None) if axes else squares).sqrt()

    def weight(self, module) -> Tensor:
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / self.norm(v))

    def before(self, module, inputs: Any):
        put_plain(module, self.name, self.weight(module))

    def after(self, module, inputs: Any, result: Any):
        if isinstance(module, Layer):
            module.put(self.name, None)  # what is computed is none of its parameters

    @staticmethod
    def hooks_of(module, name: str) -> list[tuple[Hook, WeightNorm]]:
        """The norm of that tensor, with each of its hooks."""
        hooks = [*(module.pre_hooks or {}).items(), *(module.post_hooks or {}).items()]
        found = [(handle, getattr(hook, "__self__", None)) for handle, hook in hooks]
        return [(handle, norm) for handle, norm in found if isinstance(norm, WeightNorm) and norm.name == name]


def put_plain(module, name: str, value: Tensor):
    """Makes @value, which is no parameter, what forward() and programs find under that name."""
    object.__setattr__(module, name, value)
    if isinstance(module, Layer):
        module.put(name, value)


def weight_norm(module, name="weight", dim: int | None = 0) -> Module:
    """@module, whose tensor @name is from now on @name_g, its length along all axes but @dim (None: along all), times the direction of @name_v; these
    are what it learns (Salimans and Kingma 2016)."""
    if WeightNorm.hooks_of(module, name):
        raise RuntimeError(f"weight_norm: {name} of this {type(module).__name__} has a norm already")
    weight = getattr(module, name, None)
    if not isinstance(weight, Base):
        raise ValueError(f"weight_norm: name: {type(module).__name__} has no tensor {name}")
    if dim is not None and not -weight.ndim <= dim < weight.ndim:
        raise ValueError(f"weight_norm: dim: an axis of {weight.shape}, or None, is wanted, not {dim}")
    norm, v = WeightNorm(name, dim), weight.detach().clone()
    forget(module, name)
    setattr(module, name + "_g", Parameter(norm.norm(v).realize()))
    setattr(module, name + "_v", Parameter(v.realize()))
    norm.before(module, ())
    norm.after(module, (), None)
    module.register_forward_pre_hook(norm.before)
    module.register_forward_hook(norm.after, always_call=True)
    return module


def remove_weight_norm(module, name="weight") -> Module:
    """Undoes weight_norm(): @name is one parameter again."""
    hooks = WeightNorm.hooks_of(module, name)
    if not hooks:
        raise ValueError(f"remove_weight_norm: name: {name} of this {type(module).__name__} has no norm")
    weight = Parameter(hooks[0][1].weight(module).detach().clone().realize())
    for handle, _ in hooks:
        handle.remove()
    for one in (name, name + "_g", name + "_v"):
        forget(module, one)
    if isinstance(module, Layer):
        module.put(name, weight)
    else:
        setattr(module, name, weight)
    return module


def forget(module, name: str):
    """Takes a tensor out of @module."""
    if name in vars(module):
        object.__delattr__(module, name)
    if isinstance(module, Layer) and module.tensor_named(name) is not None:
        module.put(name, None)


explain_all(globals())
