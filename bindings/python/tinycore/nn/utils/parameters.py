# SPDX-License-Identifier: MIT
"""Changes of gradients between backward() and step(), to parameters as one vector, and to a module's tensors before each forward()."""
from __future__ import annotations

from math import isfinite

from ...context import no_grad
from ...errors import call, checked, explain_all
from ...library import Tiny
from ...tensor import Base, Tensor
from ..hooks import Hook
from ..layer import Layer
from ..module import Module, Parameter


def with_gradients(parameters):
    parameters = [parameters] if isinstance(parameters, Base) else list(parameters)
    return [one for one in parameters if one.grad is not None]


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type=2.0, error_if_nonfinite=False):
    """Scales gradients down so that their norm together is @max_norm at most; gives what it was. @error_if_nonfinite: a norm that is infinite or NaN is an
    error, which has to wait for it and changes no gradient."""
    found = with_gradients(parameters)
    if error_if_nonfinite:
        kept = [one.grad.detach().clone().realize() for one in found]
    norm = checked(Tiny.clip_grad_norm(found, max_norm, norm_type))
    if error_if_nonfinite and not isfinite(norm.item()):
        for one, grad in zip(found, kept):
            one.grad.assign(grad)
        raise RuntimeError(f"clip_grad_norm_: the norm of the gradients is {norm.item()}: clip with error_if_nonfinite=False, or leave out this step")
    return norm


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


def hooks_of(module, kind: Any, name: str) -> list[tuple[Hook, Any]]:
    """The norm of class @kind that this tensor has, with each of its hooks."""
    hooks = [*(module.pre_hooks or {}).items(), *(module.post_hooks or {}).items()]
    found = [(handle, getattr(hook, "__self__", None)) for handle, hook in hooks]
    return [(handle, norm) for handle, norm in found if isinstance(norm, kind) and norm.name == name]


def put_plain(module, name: str, value: Tensor):
    """Makes @value, which is no parameter, what forward() and programs find under that name."""
    object.__setattr__(module, name, value)
    if isinstance(module, Layer):
        module.put(name, value)


def weight_norm(module, name="weight", dim: int | None = 0) -> Module:
    """@module, whose tensor @name is from now on @name_g, its length along all axes but @dim (None: along all), times the direction of @name_v; these
    are what it learns (Salimans and Kingma 2016)."""
    weight = wants_weight(module, WeightNorm, name, dim, "weight_norm")
    norm, v = WeightNorm(name, dim), weight.detach().clone()
    forget(module, name)
    setattr(module, name + "_g", Parameter(norm.norm(v).realize()))
    setattr(module, name + "_v", Parameter(v.realize()))
    return begin_norm(module, norm)


def remove_weight_norm(module, name="weight") -> Module:
    """Undoes weight_norm(): @name is one parameter again."""
    return end_norm(module, WeightNorm, name, "remove_weight_norm", ("_g", "_v"))


class SpectralNorm(WeightNorm):
    """Makes a module's tensor of itself and its largest singular value, which iterations come nearer to in training."""

    def __init__(self, name: str, dim: int, n: int, eps: float):
        super().__init__(name, dim)
        self.n, self.eps = n, eps

    def matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).reshape(weight.shape[self.dim], -1)

    def unit(self, x: Tensor) -> Tensor:
        return x / x.square().sum().sqrt().maximum(self.eps)

    def weight(self, module) -> Tensor:
        weight, u, v = (getattr(module, self.name + end) for end in ("_orig", "_u", "_v"))
        return weight / (u.detach() * (self.matrix(weight) @ v.detach())).sum()

    def before(self, module, inputs: Any):
        if module.training:
            with no_grad():
                u, v, matrix = getattr(module, self.name + "_u"), getattr(module, self.name + "_v"), self.matrix(getattr(module, self.name + "_orig"))
                new_u, new_v = u, v
                for _ in range(self.n):
                    new_v = self.unit(new_u @ matrix)
                    new_u = self.unit(matrix @ new_v)
                u.assign(new_u)
                v.assign(new_v)
                u.realize(v)  # or it would be made of all steps before
        super().before(module, inputs)


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim: int | None = None) -> Module:
    """@module, whose tensor @name is from now on parameter @name_orig divided by its largest singular value as a matrix whose rows are along @dim (None: 0,
    of transposed convolutions 1), found by @n_power_iterations more for each forward() in training (Miyato et al. 2018)."""
    dim = dim if dim is not None else int(type(module).__name__.startswith("ConvTranspose"))
    weight = wants_weight(module, SpectralNorm, name, dim, "spectral_norm")
    if n_power_iterations < 1:
        raise ValueError(f"spectral_norm: n_power_iterations: 1 or more, not {n_power_iterations}")
    norm, original = SpectralNorm(name, dim, n_power_iterations, eps), weight.detach().clone().realize()
    sizes = norm.matrix(original).shape
    forget(module, name)
    setattr(module, name + "_orig", Parameter(original))
    for end, size in (("_u", sizes[0]), ("_v", sizes[1])):
        module.register_buffer(name + end, norm.unit(Tensor.randn(size, dtype=weight.dtype, device=weight.get_device())).realize())
    return begin_norm(module, norm)


def remove_spectral_norm(module, name="weight") -> Module:
    """Undoes spectral_norm(): @name is one parameter again, divided as it is now."""
    return end_norm(module, SpectralNorm, name, "remove_spectral_norm", ("_orig", "_u", "_v"))


def wants_weight(module, kind, name, dim, owner):
    """The tensor of that name, which has no norm of class @kind yet, and an axis @dim; @owner begins what is raised."""
    if hooks_of(module, kind, name):
        raise RuntimeError(f"{owner}: {name} of this {type(module).__name__} has a norm already")
    weight = getattr(module, name, None)
    if not isinstance(weight, Base):
        raise ValueError(f"{owner}: name: {type(module).__name__} has no tensor {name}")
    if dim is not None and not -weight.ndim <= dim < weight.ndim:
        raise ValueError(f"{owner}: dim: an axis of {weight.shape}, or None, is wanted, not {dim}")
    return weight


def begin_norm(module, norm):
    put_plain(module, norm.name, norm.weight(module))
    norm.after(module, (), None)
    module.register_forward_pre_hook(norm.before)
    module.register_forward_hook(norm.after, always_call=True)
    return module


def end_norm(module, kind, name, owner, ends):
    """The module with what it has under that name now as a parameter, and without tensors of that name with @ends."""
    hooks = [row for row in hooks_of(module, kind, name) if type(row[1]) is kind]
    if not hooks:
        raise ValueError(f"{owner}: name: {name} of this {type(module).__name__} has no norm")
    weight = Parameter(hooks[0][1].weight(module).detach().clone().realize())
    for handle, _ in hooks:
        handle.remove()
    for end in ("", *ends):
        forget(module, name + end)
    if isinstance(module, Layer):
        module.put(name, weight)
    else:
        setattr(module, name, weight)
    return module


def forget(module, name: str):
    """Takes a tensor out of @module."""
    vars(module).get("buffer_kinds", {}).pop(name, None)
    if name in vars(module):
        object.__delattr__(module, name)
    if isinstance(module, Layer) and module.tensor_named(name) is not None:
        module.put(name, None)


explain_all(globals())
