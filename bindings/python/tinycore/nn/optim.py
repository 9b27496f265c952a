# SPDX-License-Identifier: MIT
"""Optimisers, with the arguments of PyTorch's and of tinygrad's."""
from ..errors import call
from ..library import Tiny
from ..tensor import Base
from . import lr_scheduler

__all__ = ["Adam", "AdamW", "LAMB", "LARS", "Muon", "Optimizer", "SGD", "lr_scheduler"]


def trainable(parameters):
    """What an optimiser changes, made to require gradients: tensors of float dtypes but those with requires_grad=False.

    Also what Module.named_parameters() gives, and PyTorch's groups, [{"params": …}], without settings of their own."""
    found, seen = [], set()
    if isinstance(parameters, Base):
        raise TypeError("an optimiser wants a list of tensors, not one tensor")
    for one in parameters:
        if isinstance(one, dict):
            if set(one) != {"params"}:
                raise NotImplementedError(f"groups with settings of their own: {sorted(set(one) - {'params'})}")
            found += [tensor for tensor in trainable(one["params"]) if id(tensor) not in seen]
            seen.update(map(id, found))
            continue
        if isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str):
            one = one[1]
        if not isinstance(one, Base):
            raise TypeError(f"an optimiser wants tensors, not {type(one).__name__}")
        if one.dtype.kind == "f" and not one.is_frozen and id(one) not in seen:
            seen.add(id(one))
            found.append(one)
    if not found:
        raise ValueError("an optimiser without a tensor to change")
    for one in found:
        if not one.requires_grad:
            one.requires_grad = True
    return found


class Group(dict):
    """What PyTorch's programs change the learning rate by: optimizer.param_groups[0]["lr"] = 0.1."""

    def __init__(self, optimizer):
        super().__init__(params=optimizer.params, lr=optimizer.lr)
        self.optimizer = optimizer

    def __setitem__(self, name, value):
        if name != "lr":
            raise NotImplementedError(f"of a group only lr can be changed, not {name}")
        self.optimizer.lr = value
        super().__setitem__(name, value)


class Optimizer:
    """Changes parameters along their gradients."""

    def take(self, make, parameters, *settings):
        self.params = trainable(parameters)
        self.handle = make(self.params, *settings)

    @property
    def lr(self):
        """The learning rate; setting it changes captured functions too."""
        return self.handle.get_lr()

    @lr.setter
    def lr(self, lr):
        call(self.handle.set_lr, float(lr))

    @property
    def param_groups(self):
        return [Group(self)]

    def step(self, closure=None):
        """New values for all parameters that have a gradient; the gradients are used up."""
        loss = closure() if closure is not None else None
        call(self.handle.step, [])
        return loss

    def zero_grad(self, set_to_none=True):
        for one in self.params:
            one.clear_grad()

    def state_dict(self):
        """What load_state_dict() goes on from."""
        return self.handle.get_state_dict()

    def load_state_dict(self, state):
        call(self.handle.load_state_dict, state)

    def __repr__(self):
        return f"{type(self).__name__}({len(self.params)} tensors, lr={self.lr:g})"


class SGD(Optimizer):
    """Stochastic gradient descent with momentum."""

    def __init__(self, params, lr=0.001, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
        self.take(Tiny.sgd_new, params, lr, momentum, weight_decay, bool(nesterov))
        if dampening:
            call(self.handle.set_dampening, dampening)


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015). Betas as b1 and b2, or as a pair."""

    make, decay = "adam_new", 0.0

    def __init__(self, params, lr=0.001, b1=0.9, b2=0.999, eps=1e-8, weight_decay=None, betas=None):
        if isinstance(b1, (tuple, list)):  # PyTorch's third argument; its fourth is eps
            betas, b1 = b1, 0.9
            b2, eps = 0.999, b2 if b2 != 0.999 else eps
        if betas is not None:
            b1, b2 = betas
        self.take(getattr(Tiny, self.make), params, lr, b1, b2, eps, self.decay if weight_decay is None else weight_decay)


class AdamW(Adam):
    """Adam with weight decay beside the gradient (Loshchilov and Hutter 2019)."""

    make, decay = "adamw_new", 0.01


class LAMB(Adam):
    """Adam scaled by layer, for large batches (You et al. 2020)."""

    make = "lamb_new"


class LARS(Optimizer):
    """SGD scaled by layer, for large batches (You, Gitman and Ginsburg 2017)."""

    def __init__(self, params, lr=0.001, momentum=0.9, weight_decay=1e-4, nesterov=False, tcoef=0.001):
        self.take(Tiny.lars_new, params, lr, momentum, weight_decay, bool(nesterov), tcoef)


class Muon(Optimizer):
    """Momentum made orthogonal (Jordan 2024), for matrices."""

    def __init__(self, params, lr=0.02, momentum=0.95, weight_decay=0.1, ns_steps=5, nesterov=True):
        self.take(Tiny.muon_new, params, lr, momentum, weight_decay, ns_steps, bool(nesterov))
