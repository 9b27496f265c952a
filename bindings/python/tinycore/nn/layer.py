# SPDX-License-Identifier: MIT
"""Layer: a module that the library makes, with its tensors and settings as attributes."""
from __future__ import annotations

from ..errors import call, checked, exception_of, explain_making
from ..jit import note_mode, note_set_mode
from ..library import Tiny
from ..tensor import Base, Tensor
from .module import BUFFER, PARAMETER, TRANSIENT, Module

OWN = ("handle", "made_with", "set_mode")  # what a copy makes anew


class MakingSignature:
    """The arguments of a class's __init__(), which __new__() passes on: the first line of help()."""

    def __get__(self, instance, owner):
        from inspect import signature
        found = signature(owner.__init__)
        return found.replace(parameters=list(found.parameters.values())[1:], return_annotation=found.empty)


class Layer(Module):
    """A module of the library's. It trains unless eval() was called, as PyTorch's."""

    __signature__ = MakingSignature()
    follows = False  # by itself, outside of a Module, it trains where Tensor.training says so, as tinygrad's

    n_plain = 0  # so many settings are described by their values alone
    unless = {}  # settings that are described where they are something else

    optional = ("weight", "bias", "running_mean", "running_var")  # tensors that are None where a layer lacks them

    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        explain_making(cls)

    def __new__(cls, *arguments, **more):
        self = object.__new__(cls)
        object.__setattr__(self, "made_with", (arguments, more))
        return self

    def take(self, make, *arguments, device=None, dtype=None, **settings):
        """Makes the library's module; @settings are attributes, and what it is described by."""
        self.hold(getattr(Tiny, make)(*arguments), settings)
        self.to(device=device, dtype=dtype)

    def hold(self, handle, settings):
        error = handle.get_error()
        if error is not None:
            raise exception_of(error)
        for name, value in (("handle", handle), ("settings", settings), ("set_mode", True)):
            object.__setattr__(self, name, value)
        for one in handle.get_parameters():
            one.is_parameter = True

    def adopt(self, name, inner, settings):
        """Makes @inner, of a class of ours, stand for the library's module of that name in this one."""
        inner.hold(self.handle.get_child(name), settings)
        setattr(self, name, inner)

    # ---- its tensors ----
    def named_tensors(self):
        """(path, tensor, kind) of all tensors that the library knows in it."""
        handle = self.handle
        yield from ((name, one, PARAMETER) for name, one in zip(handle.get_parameter_names(), handle.get_parameters()))
        names = handle.get_buffer_names()
        if names:
            saved = handle.get_state_dict()
            yield from ((name, one, BUFFER if name in saved else TRANSIENT) for name, one in zip(names, handle.get_buffers()))

    def members(self):
        yield from (row for row in self.named_tensors() if "." not in row[0])
        yield from super().members()

    def tensor_named(self, name):
        found = self.handle.get_parameter(name)
        return found if found is not None else self.handle.get_buffer(name)

    def put(self, path, value):
        """Makes @value itself its tensor of that name; None: none."""
        if value is not None and self.tensor_named(path) is None:
            call(self.handle.add_parameter, path, value)
        else:
            call(self.handle.set_tensor, path, value)
        if value is not None and self.handle.get_parameter(path) is not None and not value.is_frozen and not value.requires_grad:
            value.requires_grad = True

    def swap(self, name, value):
        if self.tensor_named(name) is None:
            super().swap(name, value)
        else:
            call(self.handle.set_tensor, name, value)

    def __getattr__(self, name):
        own = self.__dict__
        if "handle" in own:
            found = self.tensor_named(name)
            if found is not None:
                return found
            if name in self.optional:
                return None
            if name in own["settings"]:
                return own["settings"][name]
        raise AttributeError(f"{type(self).__name__} has no {name}", name=name, obj=self)  # Python looks for what was meant

    def __dir__(self):
        return [*super().__dir__(), *self.settings, *(path for path, *_ in self.named_tensors() if "." not in path)]

    def __setattr__(self, name, value):
        held = self.tensor_named(name) if "handle" in self.__dict__ else None
        if held is not None and value is not None and not isinstance(value, Base):
            raise TypeError(f"{type(self).__name__}.{name} is a tensor: it cannot become {value!r:.40}")
        if held is not None or name in self.optional and isinstance(value, Base) and "handle" in self.__dict__:
            self.put(name, value)
            return
        if isinstance(value, Module) and "handle" in self.__dict__:
            child = self.handle.get_child(name)
            if child is not None and getattr(value, "handle", None) != child:
                raise TypeError(f"{type(self).__name__}.{name} cannot be replaced: assign to its tensors")
        super().__setattr__(name, value)

    # ---- applying ----
    @property
    def training(self) -> bool:
        note_mode(self)
        return self.train_mode if self.train_mode is not None else not self.follows or Tensor.training

    @training.setter
    def training(self, mode: bool):
        object.__setattr__(self, "train_mode", bool(mode))
        note_set_mode(self)

    def begin(self):
        """Before each call: training or not, as it is now."""
        mode = self.training
        if mode != self.set_mode:
            self.handle.set_training(mode)
            object.__setattr__(self, "set_mode", mode)

    def forward(self, x):
        if not isinstance(x, Base):
            raise TypeError(f"{type(self).__name__}: a tensor is wanted, not {type(x).__name__}")
        self.begin()
        return checked(self.handle.forward(x))

    def call_many(self, *inputs):
        """The results for several inputs."""
        self.begin()
        results = self.handle.call([one if one is None or isinstance(one, Base) else Tensor(one) for one in inputs])
        for one in results:
            checked(one)
        return results

    def reset_parameters(self):
        """Draws its tensors once more, as a new layer has them; what is running begins again."""
        self.reset(lambda name: True)

    def reset_running_stats(self):
        """Running values begin again."""
        self.reset(lambda name: name.startswith(("running_", "num_batches")))

    def reset(self, wants):
        arguments, more = self.made_with
        for name, one, _ in type(self)(*arguments, **more).named_tensors():
            if wants(name):
                self.tensor_named(name).detach().assign(one.detach())

    # ---- copies ----
    def __reduce__(self):
        arguments, more = self.made_with
        rest = {name: one for name, one in vars(self).items() if name not in OWN and self.handle.get_child(name) is None}
        tensors = {name: one for name, one, kind in self.named_tensors()}
        return made_again, (type(self), arguments, more), (rest, tensors)

    def __setstate__(self, state):
        rest, tensors = state
        for name, one in rest.items():
            object.__setattr__(self, name, one)
        for name in {row[0] for row in self.named_tensors()} - set(tensors):
            self.put(name, None)
        for name, one in tensors.items():
            self.put(name, one)

    def extra_repr(self):
        rows = list(self.settings.items())
        named = [f"{name}={value}" for name, value in rows[self.n_plain:] if name not in self.unless or value not in self.unless[name]]
        return ", ".join([*(str(value) for _, value in rows[:self.n_plain]), *named])


def made_again(kind, arguments, more):
    return kind(*arguments, **more)
