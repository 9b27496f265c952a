# SPDX-License-Identifier: MIT
"""Module: what has parameters and modules in it. Layer: one that the library makes.

A network is an object of any class with tensors and layers among its attributes, or a Module as in PyTorch, with
forward(), parameters() and train(). A layer by itself trains in "with Tensor.train ()"; one that is in a Module trains unless
eval() was called."""
from ..errors import checked, exception_of
from ..tensor import Base, Tensor

OPTIONAL = ("weight", "bias", "running_mean", "running_var")  # of layers that may lack them


def children_of(value):
    """The names and values within @value that may have tensors."""
    if isinstance(value, (list, tuple)):
        named = getattr(value, "_fields", None)
        return list(zip(named, value)) if named else [(str(i), one) for i, one in enumerate(value)]
    if isinstance(value, dict):
        return [(str(name), one) for name, one in value.items()]
    if isinstance(value, (str, bytes, type)) or callable(value) and not hasattr(value, "__dict__"):
        return []
    return list(getattr(value, "__dict__", {}).items())


def walk(value, prefix="", seen=None):
    """(path, tensor, whether it is a parameter) of all tensors in @value; shared objects once."""
    seen = set() if seen is None else seen
    if isinstance(value, Base):
        if id(value) not in seen:
            seen.add(id(value))
            yield prefix, value, value.dtype.kind == "f" and not getattr(value, "is_frozen", False)
        return
    if id(value) in seen:
        return
    children = children_of(value)
    if isinstance(value, Layer):
        yield from ((f"{prefix}.{name}" if prefix else name, *rest) for name, *rest in value.own_tensors())
    if children:
        seen.add(id(value))
    for name, one in children:
        yield from walk(one, f"{prefix}.{name}" if prefix else name, seen)


def modules_in(value, seen):
    """All modules in @value, outer ones first."""
    if id(value) in seen or isinstance(value, Base):
        return
    children = children_of(value)
    if children or isinstance(value, Module):
        seen.add(id(value))
    if isinstance(value, Module):
        yield value
    for _, one in children:
        yield from modules_in(one, seen)


class Module:
    """A function of tensors with parameters: derive from it and write forward()."""

    def forward(self, *inputs):
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *inputs, **more):
        return self.forward(*inputs, **more)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        if isinstance(value, (Module, list, tuple, dict)):
            for module in modules_in(value, set()):
                if module.mode is None:
                    object.__setattr__(module, "mode", True)

    mode = None  # of training: True, False, or None: as Tensor.training says

    @property
    def training(self):
        return self.mode if self.mode is not None else True

    def modules(self):
        """This module and all in it."""
        return modules_in(self, set())

    def children(self):
        """The modules directly in it."""
        return [one for _, one in self.named_children()]

    def named_children(self):
        return [(name, one) for name, one in vars(self).items() if isinstance(one, Module)]

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, one in self.named_children():
            yield from one.named_modules(f"{prefix}.{name}" if prefix else name)

    def apply(self, function):
        """Calls @function with every module in it, and with itself last."""
        for one in reversed(list(self.modules())):
            function(one)
        return self

    def train(self, mode=True):
        """Batch statistics are the batch's and dropout drops, in all modules in it."""
        for one in self.modules():
            object.__setattr__(one, "mode", bool(mode))
        return self

    def eval(self):
        return self.train(False)

    def named_parameters(self):
        """(path, tensor) of what an optimiser changes."""
        return ((name, tensor) for name, tensor, trainable in walk(self) if trainable)

    def parameters(self):
        return [tensor for _, tensor in self.named_parameters()]

    def named_buffers(self):
        return ((name, tensor) for name, tensor, trainable in walk(self) if not trainable)

    def buffers(self):
        return [tensor for _, tensor in self.named_buffers()]

    def state_dict(self):
        """All tensors by path."""
        return {name: tensor for name, tensor, _ in walk(self)}

    def load_state_dict(self, state, strict=True):
        from .state import load_state_dict
        load_state_dict(self, state, strict=strict)
        return self

    def zero_grad(self):
        for one in self.parameters():
            one.grad = None

    def requires_grad_(self, requires_grad=True):
        for one in self.parameters():
            one.requires_grad = requires_grad
        return self

    def register_buffer(self, name, tensor, persistent=True):
        """A tensor that no optimiser changes."""
        if tensor is not None:
            tensor.is_frozen = True
        setattr(self, name, tensor)

    def register_parameter(self, name, tensor):
        setattr(self, name, tensor)

    def add_module(self, name, module):
        setattr(self, name, module)

    def __repr__(self):
        inside = "".join(f"\n  ({name}): " + repr(one).replace("\n", "\n  ") for name, one in self.named_children())
        return f"{type(self).__name__}({inside}{chr(10) if inside else ''})"


def Parameter(data, requires_grad=True):
    """A tensor that requires gradients."""
    tensor = data if isinstance(data, Base) else Tensor(data)
    tensor.requires_grad = requires_grad
    return tensor


class Layer(Module):
    """A module of the library's."""

    def take(self, handle, **shown):
        """Makes @handle the library's module; @shown is what it is described by."""
        error = handle.get_error()
        if error is not None:
            raise exception_of(error)
        object.__setattr__(self, "handle", handle)
        object.__setattr__(self, "shown", shown)
        object.__setattr__(self, "set_mode", True)

    def own_tensors(self):
        state = self.handle.get_state_dict()
        for names, tensors, trainable in (
                (self.handle.get_parameter_names(), self.handle.get_parameters(), True),
                (self.handle.get_buffer_names(), self.handle.get_buffers(), False)):
            yield from ((name, one, trainable) for name, one in zip(names, tensors) if name in state)

    def own(self, name):
        """The library's tensor of that name, or None."""
        found = self.handle.get_parameter(name)
        return found if found is not None else self.handle.get_buffer(name)

    def begin(self):
        """Before each call: training or not, as it is now."""
        mode = self.mode if self.mode is not None else Tensor.training
        if mode != self.set_mode:
            self.handle.set_training(mode)
            object.__setattr__(self, "set_mode", mode)

    def forward(self, x):
        self.begin()
        return checked(self.handle.forward(x))

    def call_many(self, *inputs):
        """The results for several inputs."""
        self.begin()
        results = self.handle.call([one if one is None or isinstance(one, Base) else Tensor(one) for one in inputs])
        for one in results:
            checked(one)
        return results

    @property
    def training(self):
        return self.mode if self.mode is not None else Tensor.training

    def __getattr__(self, name):
        handle = self.__dict__.get("handle")
        if handle is not None:
            found = self.own(name)
            if found is not None:
                return found
            child = handle.get_child(name) if not name.startswith("_") else None
            if child is not None:
                inner = Layer()
                inner.take(child)
                return inner
        if name in OPTIONAL and handle is not None:
            return None
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def __setattr__(self, name, value):
        held = self.own(name) if "handle" in self.__dict__ else None
        if held is None:
            super().__setattr__(name, value)
        elif isinstance(value, Base):
            held.assign(value)
            held.realize()
        else:
            raise TypeError(f"{type(self).__name__}.{name} is a tensor: it cannot become {value!r:.40}")

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self.shown.items())})"
