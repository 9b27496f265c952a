# SPDX-License-Identifier: MIT
"""What is done to gradients between backward() and step(), and to parameters as one vector."""
from __future__ import annotations

from ..errors import call, checked, explain_all
from ..library import Tiny
from ..tensor import Base, Tensor


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


explain_all(globals())
