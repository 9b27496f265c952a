# SPDX-License-Identifier: MIT
"""Optimisers, with the arguments of PyTorch's and of tinygrad's."""
from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, MutableMapping
from typing import Any

from ..context import enable_grad
from ..convert import as_float
from ..errors import call, exception_of, explain_making, explained
from ..library import Tiny
from ..tensor import Base, Tensor
from . import lr_scheduler
from .module import BUFFER

__all__ = ["Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "LAMB", "LARS", "LBFGS", "Muon", "NAdam", "Optimizer", "OptimizerGroup", "RAdam",
           "RMSprop", "SGD", "lr_scheduler"]
sys.modules[__name__ + ".lr_scheduler"] = lr_scheduler  # also to be imported from here
BETAS = ("beta1", "beta2")  # PyTorch's betas
FLAGS = ("nesterov", "centered", "maximize", "amsgrad")
OTHER_NAMES = {"b1": "beta1", "b2": "beta2", "tcoef": "trust"}  # tinygrad's


def kinds_of(parameters) -> str:
    """The dtypes of tensors, for messages."""
    return ", ".join(sorted({one.dtype.name for one in parameters if isinstance(one, Base)})) or "none at all"


def trainable(parameters) -> list[Tensor]:
    """What an optimiser changes: tensors of float dtypes, each once, made to require gradients but those that had
    requires_grad=False. Also of what Module.named_parameters() gives."""
    found = {}
    if isinstance(parameters, Base):
        raise TypeError("params: an optimiser wants a list of tensors, not one tensor")
    for one in parameters:
        if isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str):
            one = one[1]
        if not isinstance(one, Base):
            raise TypeError(f"params: an optimiser wants tensors, not {type(one).__name__}")
        if one.dtype.kind == "f":
            found[id(one)] = one
    for one in found.values():
        if not one.is_leaf:
            raise ValueError("an optimiser changes no tensor that is computed from others that require gradients: detach() it")
        if not one.requires_grad and not one.is_frozen:
            one.requires_grad = True
    return list(found.values())


class Group(MutableMapping[str, Any]):
    """Parameters and their settings, as PyTorch's programs read and change them: optimizer.param_groups[0]["lr"] = 0.1."""

    def __init__(self, optimizer, number: int, parameters):
        self.handle, self.number, self.params, self.notes = optimizer.handle, number, parameters, {}
        self.names = self.handle.list_settings()

    def read(self, name):
        _, value = call(self.handle.get_setting, self.number, name)
        return bool(value) if name in FLAGS else value

    def __getitem__(self, name: str) -> Any:
        if name == "params":
            return self.params
        if name == "betas" and BETAS[0] in self.names:
            return tuple(map(self.read, BETAS))
        return self.read(name) if name in self.names else self.notes[name]

    def __setitem__(self, name: str, value: Any):
        name = OTHER_NAMES.get(name, name)
        if name == "params":
            raise NotImplementedError("the parameters of a group cannot be exchanged: add_param_group() adds some")
        if name == "betas" and BETAS[0] in self.names:
            for one, number in zip(BETAS, value, strict=True):
                self[one] = number
        elif name in self.names:
            call(self.handle.set_setting, self.number, name, as_float(value, name))
        else:
            self.notes[name] = value  # a schedule's, or a program's own

    def __delitem__(self, name: str):
        del self.notes[name]

    def __iter__(self) -> Iterator[str]:
        yield "params"
        for name in self.names:
            if name not in BETAS:
                yield name
            elif name == BETAS[0]:
                yield "betas"
        yield from self.notes

    def __len__(self):
        return len(list(iter(self)))

    def __repr__(self):
        return repr({name: len(one) if name == "params" else one for name, one in self.items()})


class Optimizer:
    """Changes parameters along their gradients. @params: tensors, or PyTorch's groups, dicts of "params" and settings of
    their own."""

    param_groups: list[Group]
    defaults: dict[str, Any]

    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        explain_making(cls)

    def __new__(cls, *arguments, **more):
        self = object.__new__(cls)
        code = getattr(cls.__init__, "__wrapped__", cls.__init__).__code__
        given = {**more, **dict(zip(code.co_varnames[1:code.co_argcount], arguments))}
        self.made_with = {name: one for name, one in given.items() if name != "params"}
        return self

    def __init__(self, params, defaults: dict[str, Any]):
        """For a class of the program's, which writes step(): groups have @defaults, and state is a dict for each parameter."""
        self.take(Tiny.sgd_new, params, defaults.get("lr", 0.001), 0.0, 0.0, False, **{name: one for name, one in defaults.items() if name != "lr"})
        self.state = defaultdict(dict)

    def __reduce__(self):
        """Copies change copies of the parameters: those of a network that is copied together with it, copy.deepcopy ((net, optimizer))."""
        return remade, (type(self), [dict(group) for group in self.param_groups], self.made_with), self.state_dict()["state"]

    def __setstate__(self, state):
        own = self.state_dict()
        self.load_state_dict({**own, "state": state})

    def take(self, make, params, *defaults, **more):
        """@make of the library takes @defaults; @more are settings that it does not take."""
        params = [params] if isinstance(params, dict) else params if isinstance(params, Base) else list(params)
        groups = params if not isinstance(params, Base) and params and isinstance(params[0], dict) else [{"params": params}]
        first = trainable(groups[0]["params"])
        if not first and len(groups) == 1:
            raise ValueError(f"{type(self).__name__}: params: tensors of floats are wanted, which alone are changed, not {kinds_of(groups[0]['params'])}")
        self.handle = make(first, *defaults)
        error = self.handle.get_error()
        if error is not None:
            raise exception_of(error)
        self.param_groups = [Group(self, 0, first)]
        for name, value in more.items():
            self.param_groups[0][name] = value
        self.defaults = {name: value for name, value in self.param_groups[0].items() if name != "params"}
        self.set_group(groups[0])
        for group in groups[1:]:
            self.add_param_group(group)

    def set_group(self, given):
        group = self.param_groups[-1]
        for name, value in given.items():
            if name != "params":
                group[name] = value

    @explained
    def add_param_group(self, param_group: dict[str, Any]):
        """More parameters, with settings of their own where @param_group has them."""
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise TypeError(f"add_param_group: param_group: a dict with params is wanted, not {param_group!r:.60}")
        parameters = trainable(param_group["params"])
        call(self.handle.add_group, parameters, self.defaults["lr"], 0.0)
        self.param_groups.append(Group(self, len(self.param_groups), parameters))
        self.set_group({**self.defaults, **param_group})

    @property
    def params(self) -> list[Tensor]:
        """What it changes."""
        return [one for group in self.param_groups for one in group["params"]]

    @property
    def lr(self) -> float:
        """The learning rate; setting it changes captured functions too."""
        return self.handle.get_lr()

    @lr.setter
    def lr(self, lr: float):
        call(self.handle.set_lr, as_float(lr, "lr"))

    @explained
    def step(self, closure: Callable[[], Any] = None) -> Any:
        """New values for all parameters that have a gradient; the gradients stay until zero_grad()."""
        with enable_grad():
            loss = closure() if closure is not None else None
        call(self.handle.step, [])
        return loss

    def schedule_step(self) -> list[Tensor]:
        """step() as tinygrad's programs write it, loss.realize (*opt.schedule_step ()): what else is to be computed is nothing."""
        self.step()
        return []

    def zero_grad(self, set_to_none=True):
        for one in self.params:
            one.clear_grad()

    # ---- state ----
    @property
    def state(self) -> Any:
        """The state of each parameter, by names, as PyTorch's programs read it; of a class of the program's its own."""
        if "own_state" in vars(self):
            return self.own_state
        found, own, params = {one: {} for one in self.params}, self.handle.get_state_dict(), self.params
        for path, number, name in self.spots():
            found[params[number]][name] = own[path]
        return found

    @state.setter
    def state(self, state: Any):
        self.own_state = state

    def members(self):
        """Its state in the library's names, "0.3.exp_avg": what safetensors files can hold."""
        yield from ((name, one, BUFFER) for name, one in sorted(self.handle.get_state_dict().items()))

    def load_flat_state(self, state):
        """Goes on from what get_state_dict() gave of another."""
        call(self.handle.load_state_dict, state)
        return list(self.handle.get_state_dict().values())

    def firsts(self):
        """The number that PyTorch gives to the first parameter of each group."""
        counts = [0]
        for group in self.param_groups:
            counts.append(counts[-1] + len(group["params"]))
        return counts

    def spots(self):
        """(name in the library's state, number of the parameter, name there) of all state as PyTorch lists it."""
        firsts = self.firsts()
        for path in self.handle.get_state_dict():
            group, *rest = path.split(".")
            first, n = firsts[int(group)], len(self.param_groups[int(group)]["params"])
            if len(rest) == 2:
                yield path, first + int(rest[0]), rest[1]
            elif rest[0] != "lr":  # one for all parameters of a group
                yield from ((path, first + i, rest[0]) for i in range(n))

    def state_dict(self) -> dict[str, Any]:
        """What load_state_dict() goes on from, in PyTorch's form: state by parameter's number, and the groups' settings.
        Tensors are the optimiser's own."""
        own, state, firsts = self.handle.get_state_dict(), {}, self.firsts()
        for path, number, name in self.spots():
            state.setdefault(number, {})[name] = own[path]
        groups = [{**group, "params": list(range(firsts[i], firsts[i + 1]))} for i, group in enumerate(self.param_groups)]
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    @explained
    def load_state_dict(self, state_dict):
        """Goes on from where another stopped. State that is not in @state_dict stays as it is."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"load_state_dict: state_dict: a dict is wanted, not {state_dict!r:.60}")
        if "param_groups" not in state_dict:
            self.load_flat_state(state_dict)
            return
        counts = [[len(group["params"]) for group in groups] for groups in (state_dict["param_groups"], self.param_groups)]
        if counts[0] != counts[1]:
            raise ValueError(f"load_state_dict: groups of {counts[0]} parameters, not of {counts[1]}")
        new = self.handle.get_state_dict()
        settings = [group for group in state_dict["param_groups"] for _ in group["params"]]  # of each parameter
        for path, number, name in self.spots():
            rows = state_dict["state"].get(number, {})
            value = rows.get(name)
            if name == "damping" and value is None and rows.get("momentum_buffer") is not None:  # PyTorch's: not the first
                value = 1 - settings[number]["dampening"]
            if value is not None:
                new[path] = value if isinstance(value, Base) else Tensor(value)
        call(self.handle.load_state_dict, new)
        for group, given in zip(self.param_groups, state_dict["param_groups"]):
            for name, value in given.items():
                if name != "params" and value is not None:
                    group[name] = value

    def __repr__(self):
        return f"{type(self).__name__}({len(self.params)} tensors, lr={self.lr:g})"


def remade(kind, groups, settings):
    return kind(groups, **settings)


def check_how(differentiable):
    """Of the settings that say how PyTorch computes a step this one alone would make another result."""
    if differentiable:
        raise NotImplementedError("differentiable: no gradient flows through a step")


class SGD(Optimizer):
    """Stochastic gradient descent with momentum. PyTorch's foreach, fused and capturable, here and below, change nothing: a step is
    always a few kernels, which a TinyJit can record."""

    def __init__(self, params, lr=0.001, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, *, maximize=False,
                 foreach: bool = None, differentiable=False, fused: bool = None):
        check_how(differentiable)
        self.take(Tiny.sgd_new, params, lr, momentum, weight_decay, bool(nesterov),
                  **{name: one for name, one in (("dampening", dampening), ("maximize", maximize)) if one})


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015). Betas as b1 and b2, or as a pair."""

    make, decay = "adam_new", 0.0

    def __init__(self, params, lr=0.001, b1: float | Sequence[float] = 0.9, b2=0.999, eps=1e-8, weight_decay: float = None, betas: Sequence[float] = None,
                 amsgrad=False, *, maximize=False, foreach: bool = None, capturable=False, differentiable=False, fused: bool = None):
        check_how(differentiable)
        if isinstance(b1, (tuple, list)):  # PyTorch's third argument
            if b2 != 0.999:  # and its fourth, eps; weight_decay and amsgrad come after it
                amsgrad = weight_decay if isinstance(weight_decay, bool) else amsgrad
                weight_decay = eps if eps != 1e-8 else None if isinstance(weight_decay, bool) else weight_decay
                eps = b2
            betas, b1, b2 = b1, 0.9, 0.999
        if betas is not None:
            if not isinstance(betas, (tuple, list)) or len(betas) != 2:
                raise TypeError(f"betas: two numbers are wanted, not {betas!r:.60}")
            b1, b2 = betas
        self.take(getattr(Tiny, self.make), params, lr, b1, b2, eps, self.decay if weight_decay is None else weight_decay,
                  **{name: one for name, one in (("amsgrad", amsgrad), ("maximize", maximize)) if one})


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


class RMSprop(Optimizer):
    """Gradients divided by the root of their mean square (Tieleman and Hinton 2012)."""

    def __init__(self, params, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False, *,
                 foreach: bool = None, capturable=False, differentiable=False):
        check_how(differentiable)
        self.take(Tiny.rmsprop_new, params, lr, alpha, eps, weight_decay, momentum, bool(centered))


class Adagrad(Optimizer):
    """Gradients divided by the root of the sum of their squares (Duchi, Hazan and Singer 2011)."""

    def __init__(self, params, lr=0.01, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10, *,
                 foreach: bool = None, differentiable=False, fused: bool = None):
        check_how(differentiable)
        self.take(Tiny.adagrad_new, params, lr, lr_decay, weight_decay, initial_accumulator_value, eps)


class Adadelta(Optimizer):
    """Changes as large as those before (Zeiler 2012)."""

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0, *,
                 foreach: bool = None, capturable=False, differentiable=False):
        check_how(differentiable)
        self.take(Tiny.adadelta_new, params, lr, rho, eps, weight_decay)


class Adamax(Optimizer):
    """Adam by the largest gradient (Kingma and Ba 2015)."""

    def __init__(self, params, lr=0.002, betas: Sequence[float] = (0.9, 0.999), eps=1e-8, weight_decay=0.0, *,
                 foreach: bool = None, capturable=False, differentiable=False):
        check_how(differentiable)
        self.take(Tiny.adamax_new, params, lr, *betas, eps, weight_decay)


class NAdam(Optimizer):
    """Adam with Nesterov's momentum (Dozat 2016)."""

    def __init__(self, params, lr=0.002, betas: Sequence[float] = (0.9, 0.999), eps=1e-8, weight_decay=0.0, momentum_decay=0.004, *,
                 foreach: bool = None, capturable=False, differentiable=False):
        check_how(differentiable)
        self.take(Tiny.nadam_new, params, lr, *betas, eps, weight_decay, momentum_decay)


class RAdam(Optimizer):
    """Adam that trusts its second moment once that is of enough gradients (Liu et al. 2020)."""

    def __init__(self, params, lr=0.001, betas: Sequence[float] = (0.9, 0.999), eps=1e-8, weight_decay=0.0, *,
                 foreach: bool = None, capturable=False, differentiable=False):
        check_how(differentiable)
        self.take(Tiny.radam_new, params, lr, *betas, eps, weight_decay)


class OptimizerGroup:
    """Several optimisers that step together, as tinygrad has them: Muon for matrices and AdamW for the rest."""

    def __init__(self, *optimizers: Optimizer):
        if not optimizers:
            raise ValueError("an OptimizerGroup of no optimiser")
        self.optimizers = optimizers

    @property
    def params(self) -> list[Tensor]:
        return [one for optimizer in self.optimizers for one in optimizer.params]

    @property
    def param_groups(self) -> list[Group]:
        return [group for optimizer in self.optimizers for group in optimizer.param_groups]

    def __getitem__(self, i: int) -> Optimizer:
        return self.optimizers[i]

    def __len__(self):
        return len(self.optimizers)

    def step(self):
        for one in self.optimizers:
            one.step()

    schedule_step = Optimizer.schedule_step

    def zero_grad(self, set_to_none=True):
        for one in self.optimizers:
            one.zero_grad()

    def state_dict(self) -> list[Any]:
        return [one.state_dict() for one in self.optimizers]

    def load_state_dict(self, state_dict: Sequence[Any]):
        for one, state in zip(self.optimizers, state_dict, strict=True):
            one.load_state_dict(state)


from .lbfgs import LBFGS  # noqa: E402, F401: made of what is above
