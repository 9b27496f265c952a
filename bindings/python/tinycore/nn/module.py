# SPDX-License-Identifier: MIT
"""Module: what has parameters and modules in it, as PyTorch has it. Parameter. Walking through any object.

A network is an object of any class with tensors and layers among its attributes, as in tinygrad, or a Module with forward(),
parameters() and train(), as in PyTorch. In a Module only parameters, registered buffers and modules count; in any other
object all tensors, also those in lists and dicts."""
from __future__ import annotations

import os
from collections import namedtuple
from collections.abc import Mapping
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

from ..errors import InvalidError, TinyError, checked, explained, located
from ..jit import note_mode, note_set_mode
from ..tensor import Base, Tensor

SHOWS_KERNELS = os.environ.get("DEBUG", "").isdigit() and int(os.environ["DEBUG"]) >= 2  # beside the modules that they are of
PARAMETER, BUFFER, TRANSIENT = "parameter", "buffer", "transient"  # a transient one is a buffer that is not saved
Loaded = namedtuple("Loaded", ("missing_keys", "unexpected_keys"))


class ParameterType(type):
    def __call__(cls, data=None, requires_grad=True):
        tensor = data if isinstance(data, Base) else Tensor([] if data is None else data)
        tensor.requires_grad = bool(requires_grad)
        tensor.is_parameter = True
        return tensor

    def __instancecheck__(cls, one):
        return isinstance(one, Base) and getattr(one, "is_parameter", False)


class Parameter(metaclass=ParameterType):
    """Parameter(data, requires_grad=True): @data itself, as what a Module lists among its parameters."""


# ---- through objects ----
def members_of(value):
    """(name, value, kind) of what may have tensors directly in @value; the kind is that of a tensor, else None."""
    if isinstance(value, Base):
        return
    if hasattr(value, "members"):
        yield from value.members()
        return
    if isinstance(value, (list, tuple)):
        named = getattr(value, "_fields", None)
        children = zip(named, value) if named else ((str(i), one) for i, one in enumerate(value))
    elif isinstance(value, dict):
        children = ((str(name), one) for name, one in value.items())
    elif isinstance(value, (str, bytes, type)):
        return
    else:
        children = list(getattr(value, "__dict__", {}).items())
    for name, one in children:
        if isinstance(one, Base):
            yield name, one, PARAMETER if one.dtype.kind == "f" and not one.is_frozen else BUFFER
        else:
            yield name, one, None


def joined(prefix, name):
    return f"{prefix}.{name}" if prefix else name


def walk(value, prefix="", above=()):
    """(path, tensor, kind) of all tensors in @value, of one with several names once under each."""
    if id(value) in above:
        return
    if getattr(value, "is_unready", False):
        kind = type(value).__name__
        raise InvalidError(f"{prefix or kind}: a {kind} has its tensors after its first call, which says their sizes: call the network once before "
                           "parameters(), state_dict() or an optimiser")
    if isinstance(value, Base):
        yield prefix, value, PARAMETER if value.dtype.kind == "f" and not value.is_frozen else BUFFER
    for name, one, kind in members_of(value):
        if kind is not None:
            yield joined(prefix, name), one, kind
        else:
            yield from walk(one, joined(prefix, name), (*above, id(value)))


def once(rows, remove_duplicate=True):
    """(name, value, …) of each value once, under its first name."""
    seen = {}  # with the values: what is gone leaves its id to others
    for row in rows:
        if not remove_duplicate or id(row[1]) not in seen:
            seen[id(row[1])] = row[1]
            yield row


# ---- modules ----
class Module:
    """A function of tensors with parameters: derive from it and write forward()."""

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...

    is_unready = False  # its tensors are made by its first call
    train_mode = None  # of training: True, False, or None: as Tensor.training says

    def __init__(self):
        pass

    def forward(self, *inputs: Any, **more: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    pre_hooks = post_hooks = backward_hooks = backward_pre_hooks = None  # functions by handle

    def __call__(self, *inputs: Any, **more: Any) -> Any:
        if SHOWS_KERNELS:
            for name, one in self.named_parameters():
                one.set_label(name)
        try:
            if self.pre_hooks or self.post_hooks or self.backward_hooks or self.backward_pre_hooks:
                from .hooks import call_hooked
                return call_hooked(self, inputs, more)
            return self.forward(*inputs, **more)
        except TinyError as error:
            located(self, error)
            raise

    def __setattr__(self, name, value):
        if isinstance(value, Base) and isinstance(vars(self).get(name), Parameter) and not isinstance(value, Parameter):
            raise TypeError(f"{type(self).__name__}.{name} is a parameter: only a Parameter, or None, takes its place")
        object.__setattr__(self, name, value)
        if isinstance(value, Module) and value.train_mode is None:
            value.train()

    def swap(self, name, value):
        """Makes @value what forward() finds as its tensor of that name, whether it is a parameter or not."""
        object.__setattr__(self, name, value)

    # ---- what is in it ----
    def members(self):
        """(name, value, kind) of its own parameters, then of its buffers, then of the modules directly in it."""
        kinds, buffers, modules = vars(self).get("buffer_kinds", {}), [], []
        for name, one in vars(self).items():
            if isinstance(one, Module):
                modules.append((name, one, None))
            elif isinstance(one, Base):
                if name in kinds:
                    buffers.append((name, one, kinds[name]))
                elif getattr(one, "is_parameter", False):
                    yield name, one, PARAMETER
        yield from buffers
        yield from modules

    def own(self, kinds, recurse, prefix, remove_duplicate):
        rows = walk(self) if recurse else (row for row in self.members() if row[2] is not None)
        return ((joined(prefix, name), one) for name, one, kind in once(rows, remove_duplicate) if kind in kinds)

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True) -> Iterator[tuple[str, Tensor]]:
        """(path, tensor) of what an optimiser changes; a tensor with several names has its first."""
        return self.own((PARAMETER,), recurse, prefix, remove_duplicate)

    def parameters(self, recurse=True) -> Iterator[Tensor]:
        return (one for _, one in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True) -> Iterator[tuple[str, Tensor]]:
        """(path, tensor) of state that no optimiser changes."""
        return self.own((BUFFER, TRANSIENT), recurse, prefix, remove_duplicate)

    def buffers(self, recurse=True) -> Iterator[Tensor]:
        return (one for _, one in self.named_buffers(recurse=recurse))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        return once((name, one) for name, one, kind in self.members() if kind is None)

    def children(self) -> Iterator[Module]:
        """The modules directly in it."""
        return (one for _, one in self.named_children())

    def named_modules(self, memo: set[int] = None, prefix="", remove_duplicate=True) -> Iterator[tuple[str, Module]]:
        """(path, module) of this module, whose path is @prefix, and all in it."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        if remove_duplicate:
            memo.add(id(self))
        yield prefix, self
        for name, one, kind in self.members():
            if kind is None:
                yield from one.named_modules(memo, joined(prefix, name), remove_duplicate)

    def modules(self, remove_duplicate=True) -> Iterator[Module]:
        """This module and all in it."""
        return (one for _, one in self.named_modules(remove_duplicate=remove_duplicate))

    def get_submodule(self, target: str) -> Module:
        """The module at a path."""
        found = self
        for name in target.split(".") if target else ():
            found = {key: one for key, one, kind in found.members() if kind is None}.get(name)
            if found is None:
                raise AttributeError(f"{type(self).__name__} has no module “{target}”")
        return found

    def get_tensor(self, target, names):
        found = dict(names(remove_duplicate=False)).get(target)
        if found is None:
            raise AttributeError(f"{type(self).__name__} has no such tensor: “{target}”")
        return found

    def get_parameter(self, target: str) -> Tensor:
        return self.get_tensor(target, self.named_parameters)

    def get_buffer(self, target: str) -> Tensor:
        return self.get_tensor(target, self.named_buffers)

    # ---- making ----
    def register_buffer(self, name, tensor: Tensor | None, persistent=True):
        """A tensor that no optimiser changes; a @persistent one is part of the state dict."""
        if "buffer_kinds" not in vars(self):
            object.__setattr__(self, "buffer_kinds", {})
        self.buffer_kinds[name] = BUFFER if persistent else TRANSIENT
        setattr(self, name, tensor)

    def register_parameter(self, name, param: Tensor | None):
        setattr(self, name, param if param is None else Parameter(param, not param.is_frozen))

    def add_module(self, name, module: Module | None):
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__}: “{name}” is no Module but a {type(module).__name__}")
        setattr(self, name, module)

    register_module = add_module

    def add_hook(self, *arguments):
        from .hooks import Hook
        return Hook(self, *arguments)

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend=False, with_kwargs=False) -> Hook:
        """Calls @hook (module, inputs) before forward(); what it gives takes their place, unless it is None. @with_kwargs: it gets what is given by name too, and
        gives both. @prepend: before those that there are."""
        return self.add_hook("pre_hooks", hook, prepend, with_kwargs)

    def register_forward_hook(self, hook: Callable[..., Any], *, prepend=False, with_kwargs=False, always_call=False) -> Hook:
        """Calls @hook (module, inputs, result) after forward(); what it gives takes the result's place, unless it is None. @with_kwargs: (module, inputs, dict,
        result). @always_call: also after an exception, with no result."""
        return self.add_hook("post_hooks", hook, prepend, with_kwargs, always_call)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend=False) -> Hook:
        """Calls @hook (module, gradients of inputs, gradients of results) when backward() finds these, which is before they are computed; what it gives takes the
        place of the former. The former are of tensors among the inputs by position, None where none is wanted."""
        return self.add_hook("backward_hooks", hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend=False) -> Hook:
        """Calls @hook (module, gradients of results) before that; what it gives takes their place."""
        return self.add_hook("backward_pre_hooks", hook, prepend)

    # ---- doing something with all of it ----
    @property
    def training(self) -> bool:
        note_mode(self)
        return self.train_mode is not False

    @training.setter
    def training(self, mode: bool):
        object.__setattr__(self, "train_mode", bool(mode))
        note_set_mode(self)

    def train(self, mode=True):
        """Batch statistics are the batch's and dropout drops, in all modules in it."""
        for one in self.modules():
            one.training = mode
        return self

    def eval(self) -> Self:
        return self.train(False)

    def apply(self, fn: Callable[[Module], Any]):
        """Calls @fn once with every module in it, and with itself last."""
        for one in after_parts(self, set()):
            fn(one)
        return self

    def zero_grad(self, set_to_none=True):
        for module in self.modules():
            for _, one, kind in module.members():
                if kind == PARAMETER:
                    one.grad = None

    def requires_grad_(self, requires_grad=True):
        for one in self.parameters():
            one.requires_grad = requires_grad
        return self

    def replace_tensors(self, make):
        """Puts make (tensor) in the place of every tensor, one for all names of a shared one."""
        made = {}
        for one in list(self.modules()):
            if one.is_unready:
                one.later.append(make)
            for name, tensor, kind in list(one.members()):
                if kind is not None:
                    if id(tensor) not in made:
                        made[id(tensor)] = tensor, like(make(tensor), tensor)
                    setattr(one, name, made[id(tensor)][1])
        realize_all([new for _, new in made.values()])
        return self

    def to(self, *where: Any, device=None, dtype=None, non_blocking=False) -> Self:
        """To a device, as a dtype, or as another tensor is. Tensors are new ones then: make the optimiser after this."""
        for one in where:
            if isinstance(one, Base):
                device, dtype = one.device, one.dtype
            elif isinstance(one, str):
                device = one
            elif one is not None and not isinstance(one, bool):  # non_blocking: copies wait for nothing anyway
                dtype = one

        def moved(tensor):
            tensor = tensor.to(device) if device is not None else tensor
            return tensor.cast(dtype) if dtype is not None and tensor.dtype.kind == "f" else tensor
        return self if device is None and dtype is None else self.replace_tensors(moved)

    def type(self, dst_type: DTypeLike) -> Self:
        return self.to(dtype=dst_type)

    def float(self) -> Self:
        return self.to(dtype="float32")

    def double(self) -> Self:
        return self.to(dtype="float64")

    def half(self) -> Self:
        return self.to(dtype="float16")

    def bfloat16(self) -> Self:
        return self.to(dtype="bfloat16")

    def cpu(self) -> Self:
        return self.to("CPU")

    def cuda(self, device: int | str = None) -> Self:
        return self.to(f"CUDA:{device}" if isinstance(device, int) else device or "CUDA")

    def share_memory(self) -> Self:
        """Itself: threads share memory, and processes nothing."""
        return self

    # ---- state ----
    def state_dict(self, destination: dict[str, Tensor] = None, prefix="", keep_vars=False) -> dict[str, Tensor]:
        """All tensors by path but transient buffers, no copies: what is written to one changes the module; @keep_vars: its own tensors, which may require
        gradients. A shared one is there under each name."""
        if isinstance(destination, str):
            destination, prefix = None, destination
        found, made = {} if destination is None else destination, {}
        for name, tensor, kind in walk(self):
            if kind != TRANSIENT:
                if id(tensor) not in made:  # with the tensor: what is gone leaves its id to others
                    made[id(tensor)] = tensor, tensor if keep_vars else tensor.detach()
                found[prefix + name] = made[id(tensor)][1]
        return found

    @explained
    def load_state_dict(self, state_dict, strict=True) -> Loaded:
        """Copies values into the module's tensors, which keep their memory, dtype and device; gives the names that were
        missing and those that were not expected."""
        return load_into(self, self.state_dict(keep_vars=True), state_dict, strict)[1]

    # ---- as text ----
    def extra_repr(self):
        """What repr() says of it beside the modules in it."""
        return ""

    @recursive_repr("…")
    def __repr__(self):
        inside = "".join(f"\n  ({name}): " + repr(one).replace("\n", "\n  ") for name, one in self.named_children())
        return f"{type(self).__name__}({self.extra_repr()}{inside}{chr(10) if inside else ''})"


def after_parts(module, seen):
    """@module and all in it, each after what is in it."""
    seen.add(id(module))
    for one in module.children():
        if id(one) not in seen:
            yield from after_parts(one, seen)
    yield module


def like(new, tensor):
    """@new as what takes the place of @tensor: with its marks, and with no history."""
    if new is tensor:
        return tensor
    new = new.detach().contiguous()
    if tensor.requires_grad:
        new.requires_grad = True
    new.marks = tensor.marks
    return new


def value_of(name, value):
    if isinstance(value, Base):
        return checked(value)
    try:
        if value is not None:
            return Tensor(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise type(error)(f"load_state_dict: {name}: {error}") from None
    raise TypeError(f"load_state_dict: {name} is no tensor but None")


def load_into(model, own, given, strict):
    """Copies @given into the tensors @own, or nothing where anything is wrong; gives what was loaded, and the names that did
    not fit."""
    if not isinstance(given, Mapping):
        raise TypeError(f"load_state_dict: tensors by name are wanted, not {type(given).__name__}")
    missing, unexpected = (sorted(map(str, set(a) - set(b))) for a, b in ((own, given), (given, own)))
    values = {name: value_of(name, given[name]) for name in own if name in given}
    wrong = [f"{what} {', '.join(names)}" for what, names in (("missing", missing), ("unexpected", unexpected)) if strict and names]
    wrong += [f"{name}: {one.shape} into {own[name].shape}" for name, one in values.items() if one.shape != own[name].shape]
    if wrong:
        raise InvalidError(f"load_state_dict of {type(model).__name__}: {'; '.join(wrong)}")
    for name, value in values.items():  # computed before the first is written: reading a value may fail
        values[name] = value.detach().to(own[name].device).cast(own[name].dtype)
    realize_all(list(values.values()))
    loaded = [own[name].assign(value) for name, value in values.items()]
    realize_all(loaded)
    return loaded, Loaded(missing, unexpected)


def realize_all(tensors):
    first, *others = tensors or [None]
    if first is not None:
        first.realize(*others)
