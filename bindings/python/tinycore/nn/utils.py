# SPDX-License-Identifier: MIT
"""What is done to gradients between backward() and step()."""
from ..errors import call, checked
from ..library import Tiny
from ..tensor import Base


def with_gradients(parameters):
    parameters = [parameters] if isinstance(parameters, Base) else list(parameters)
    return [one for one in parameters if one.grad is not None]


def clip_grad_norm_(parameters, max_norm, norm_type=2.0):
    """Scales gradients down so that their norm together is @max_norm at most; gives what it was."""
    return checked(Tiny.clip_grad_norm(with_gradients(parameters), max_norm, norm_type))


def clip_grad_value_(parameters, clip_value):
    """Moves elements of gradients to the nearer of ±@clip_value."""
    call(Tiny.clip_grad_value, with_gradients(parameters), clip_value)
