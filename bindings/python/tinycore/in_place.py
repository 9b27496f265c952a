# SPDX-License-Identifier: MIT
"""Methods that change their tensor: x.add_ (y) is x with the result of x.add (y) in its place, for every row of the table that
says so. And methods that are loaded when they are used."""
from .errors import InvalidError, call, owned
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


class Later:
    """Stands for a method of composed.py until one of them is used."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __get__(self, tensor, owner):
        from .composed import Composed
        from .operations import Operations
        owned(vars(Composed).values(), "tinycore.tensor")
        for name, one in vars(Composed).items():
            if isinstance(vars(Operations).get(name), Later):
                setattr(Operations, name, one)
        return vars(Operations)[self.name].__get__(tensor, owner)
