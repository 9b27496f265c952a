# SPDX-License-Identifier: MIT
"""Modules that hold modules or parameters by number or by name: Sequential, ModuleList, ModuleDict, ParameterList,
ParameterDict."""
from __future__ import annotations

from operator import index

from ..tensor import Base
from .module import PARAMETER, Module, Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Holder(Module):
    """What has its members in a list or a dict, held."""

    kind = None  # of its members: modules

    def rows(self):
        """(name, member, key in held) of all."""
        if isinstance(self.held, dict):
            return [(name, one, name) for name, one in self.held.items()]
        names = self.__dict__.get("names") or map(str, range(len(self.held)))
        return [(name, one, i) for i, (name, one) in enumerate(zip(names, self.held))]

    def members(self):
        yield from ((name, one, self.kind) for name, one, _ in self.rows() if isinstance(one, (Module, Base)))
        yield from super().members()

    def key_of(self, name):
        """Where the member of that name is held, or None."""
        rows = self.rows() if "held" in self.__dict__ else ()
        return next((key for own, _, key in rows if own == name), None)

    def accept(self, one):
        """@one as a member."""
        if not isinstance(one, Module):
            raise TypeError(f"{type(self).__name__} holds modules, not {type(one).__name__}")
        if one.train_mode is None:
            one.train(self.training)
        return one

    def __getattr__(self, name):
        key = self.key_of(name)
        if key is None:
            raise AttributeError(f"{type(self).__name__} has no {name}", name=name, obj=self)
        return self.held[key]

    def __setattr__(self, name, value):
        key = self.key_of(name)
        if key is None:
            super().__setattr__(name, value)
        else:
            self.held[key] = self.accept(value)

    def __len__(self):
        return len(self.held)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self.held))

    def __contains__(self, one: object):
        return one in self.held if isinstance(self.held, dict) else any(one is other for other in self.held)

    def __delitem__(self, key: Any):
        del self.held[key]


class Numbered(Holder):
    """A list of members."""

    def __init__(self, modules: Iterable[Any] = None):
        object.__setattr__(self, "held", [])
        self.extend(modules or ())

    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            return type(self)(self.held[key])
        return self.held[index(key)]

    def __setitem__(self, key: int, one: Any):
        self.held[index(key)] = self.accept(one)

    def __add__(self, others: Iterable[Any]) -> Self:
        return type(self)([*self.held, *others])

    def __iadd__(self, others: Iterable[Any]) -> Self:
        return self.extend(others)

    def append(self, one: Any) -> Self:
        self.held.append(self.accept(one))
        return self

    def extend(self, others: Iterable[Any]):
        if others is self:
            others = list(others)
        for one in others:
            self.append(one)
        return self

    def insert(self, at: int, one: Any) -> Self:
        self.held.insert(index(at), self.accept(one))
        return self

    def pop(self, at=-1) -> Any:
        return self.held.pop(index(at))


class Named(Holder):
    """A dict of members."""

    def __init__(self, modules: Mapping[str, Any] | Iterable[tuple[str, Any]] = None):
        object.__setattr__(self, "held", {})
        self.update(modules or {})

    def __getitem__(self, name: str) -> Any:
        return self.held[name]

    def __setitem__(self, name: str, one: Any):
        if not isinstance(name, str) or not name or "." in name:
            raise ValueError(f"{type(self).__name__}: a name is a text without a dot, not {name!r}")
        self.held[name] = self.accept(one)

    def update(self, members: Mapping[str, Any] | Iterable[tuple[str, Any]]):
        for name, one in members.items() if hasattr(members, "items") else members:
            self[name] = one

    def keys(self) -> KeysView[str]:
        return self.held.keys()

    def values(self) -> ValuesView[Any]:
        return self.held.values()

    def items(self) -> ItemsView[str, Any]:
        return self.held.items()

    def get(self, name: str, default: Any = None) -> Any:
        return self.held.get(name, default)

    def pop(self, name: str) -> Any:
        return self.held.pop(name)

    def clear(self):
        self.held.clear()


class Sequential(Numbered):
    """Modules and functions one after the other; in a dict they have names of their own."""

    def __init__(self, *modules: Any):
        if len(modules) == 1 and isinstance(modules[0], dict):
            super().__init__(modules[0].values())
            object.__setattr__(self, "names", [str(name) for name in modules[0]])
            return
        super().__init__(modules[0] if len(modules) == 1 and isinstance(modules[0], (list, tuple)) else modules)

    def __getitem__(self, key: int | slice) -> Any:
        names = self.__dict__.get("names")
        if isinstance(key, slice) and names:
            return type(self)(dict(zip(names[key], self.held[key])))
        return super().__getitem__(key)

    def append(self, one: Any) -> Self:
        if "names" in self.__dict__:
            self.names.append(str(len(self.held)))
        return super().append(one)

    def renumber(self):
        """Members that move have no names of their own any more."""
        self.__dict__.pop("names", None)

    def insert(self, at: int, one: Any) -> Self:
        self.renumber()
        return super().insert(at, one)

    def pop(self, at=-1) -> Any:
        self.renumber()
        return super().pop(at)

    def __delitem__(self, key: Any):
        self.renumber()
        super().__delitem__(key)

    def accept(self, one):
        if isinstance(one, Module):
            return super().accept(one)
        if not callable(one):
            raise TypeError(f"Sequential: {type(one).__name__} cannot be called")
        return one

    def forward(self, input: Any) -> Any:
        for one in self.held:
            input = one(input)
        return input


class ModuleList(Numbered):
    """Modules by number."""


class ModuleDict(Named):
    """Modules by name."""


class OfParameters:
    """Members are parameters: tensors become such."""

    kind = PARAMETER

    def accept(self, one):
        if not isinstance(one, Base):
            raise TypeError(f"{type(self).__name__} holds tensors, not {type(one).__name__}")
        return one if isinstance(one, Parameter) else Parameter(one)


class ParameterList(OfParameters, Numbered):
    """Parameters by number."""


class ParameterDict(OfParameters, Named):
    """Parameters by name."""
