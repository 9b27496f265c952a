# SPDX-License-Identifier: MIT
"""The operators of Tensor: + and its like, which are methods of the library's tensor with numbers and arrays beside it."""
from .convert import Base, operand
from .errors import checked, get_error
from .in_place import put

NUMBERS = (bool, int, float)
OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "mod", "pow": "pow",
    "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "lshift",
    "rshift": "rshift",
}


def is_operand(value):
    return isinstance(value, NUMBERS) or hasattr(value, "__array__")


def operator(function, name):
    """The method of an operator, and the one for the tensor on its right."""
    def left(self, other):
        if not isinstance(other, Base):
            if not is_operand(other):
                return NotImplemented
            other = operand(other, name)
        result = function(self, other)
        return result if get_error(result) is None else checked(result)

    def right(self, other):
        return checked(function(operand(other, name), self)) if is_operand(other) else NotImplemented

    def in_place(self, other):
        if not isinstance(other, Base):
            if not is_operand(other):
                return NotImplemented
            other = operand(other, name)
        return put(self, checked(function(self, other)), name)

    return left, right, in_place


def add_operators(cls):
    """Puts them on @cls."""
    for sign, name in OPERATORS.items():
        function = getattr(Base, name)
        if name == "div":
            function = lambda left, right: Base.div(left, right, None)  # noqa: E731: of no rounding mode
        left, right, in_place = operator(function, name)
        setattr(cls, f"__{sign}__", left)
        setattr(cls, f"__r{sign}__", right)
        setattr(cls, f"__i{sign}__", in_place)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(cls, f"__{name}__", operator(getattr(Base, name), name)[0])
