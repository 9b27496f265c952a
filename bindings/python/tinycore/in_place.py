# SPDX-License-Identifier: MIT
"""Methods that change their tensor: x.add_ (y) is x with the result of x.add (y) in its place, for every row of the table that
says so. And methods that are loaded when they are used."""
from weakref import ref

from .errors import InvalidError, call, owned, suggest_keywords
from .library import Tiny

Base = Tiny.Tensor
KINDS = {"b": 0, "u": 1, "i": 1, "f": 2}  # a kind holds those below it


def check_changeable(tensor, name):
    """That gradients do not end at @tensor, or at what it is a view of, while they flow: what is then done to it would be lost
    to them."""
    if tensor.get_requires_grad() and Tiny.is_grad_enabled() and Base.is_leaf(tensor.get_base()):
        what = "is" if Base.is_leaf(tensor) else "is a view of"
        raise InvalidError(f"{name}: the tensor {what} a leaf that requires a gradient: change it in “with no_grad ()”, or its detach()")


def put(tensor, result, name):
    """Makes @result the contents of @tensor, unless it is of a kind that the dtype would cut off: floats for integers,
    numbers for bool."""
    wanted, found = tensor.dtype, result.dtype
    if KINDS[found.kind] > KINDS[wanted.kind]:
        raise TypeError(f"{name}: the result is {found.name}, which cannot be kept in a tensor of {wanted.name}: "
                        "cast one of them")
    check_changeable(tensor, name)
    call(Base.assign, tensor, result)
    return tensor


def in_place(function):
    """The form of a method that puts its result into the tensor."""
    name = function.__name__

    def change(self, *arguments, **more):
        return put(self, getattr(self, name)(*arguments, **more), name + "_")

    change.__name__, change.__wrapped__ = name + "_", function
    change.__doc__ = f"{name}(), whose result takes the place of this tensor's elements."
    return change


class Values:
    """A tensor's data, as both seeds have it: called it is a memoryview of the elements, as in tinygrad; else it is used as the
    detached tensor that PyTorch has under this name, so p.data -= 0.1 * p.grad changes p and no gradient flows."""

    __slots__ = ("tensor", "__weakref__")

    def __init__(self, tensor):
        self.tensor = tensor
        others = [one for one in vars(tensor).get("values", ()) if one() is not None]
        vars(tensor)["values"] = [*others, ref(self)]

    def __call__(self) -> memoryview:
        return self.tensor.memory()

    def __getattr__(self, name):
        return getattr(self.tensor.detach(), name)


def set_data(self, value):
    """Makes the elements of another tensor those of this one, beside gradients. A p.data that a program has kept is what p was."""
    if not isinstance(value, (Base, Values)):
        raise TypeError(f"data: a tensor is wanted, not {value!r:.60}")
    value = value.tensor if isinstance(value, Values) else value
    if value is not self:
        kept = [one for one in (found() for found in vars(self).pop("values", ())) if one is not None]
        before = self.detach().clone().realize() if kept else None
        self.detach().assign(value.detach())
        for one in kept:
            one.tensor = before


def as_detached(name):
    """A method of Values that is the tensor's: one in place gives the object itself."""
    def method(self, *arguments):
        found = getattr(self.tensor.detach(), name)(*[getattr(one, "tensor", one) for one in arguments])
        return self if name.startswith("__i") and name[3:-2] in SIGNS else found
    return method


SIGNS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
for name in [*(before + sign for sign in SIGNS for before in ("", "r", "i")), *"eq ne lt le gt ge neg abs invert getitem setitem len iter repr bool int float".split()]:
    setattr(Values, f"__{name}__", as_detached(f"__{name}__"))
del name


class Later:
    """Stands for a method of composed.py until one of them is used."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __get__(self, tensor, owner):
        from .composed import Composed
        from .operations import Operations
        suggest_keywords(Composed)
        owned(vars(Composed).values(), "tinycore.tensor")
        for name, one in vars(Composed).items():
            if isinstance(vars(Operations).get(name), Later):
                setattr(Operations, name, one)
        return vars(Operations)[self.name].__get__(tensor, owner)
