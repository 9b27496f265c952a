#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the methods of Python's Tensor from the table of operations: make-operations.py code|stubs TENSOR_ROOM OUTPUT.

code   operations.py, class Operations: plain functions with the table's names, defaults and text
stubs  operations.pyi, the same for type checkers

A row without self is a static method. What Python calls in another way than C (zeros (2, 3), dropout in training)
is written by hand in class Tensor, which is derived from this one; HAND names such rows, and they get no text here."""
import ast
import pathlib
import re
import sys
import textwrap

HEAD = "# SPDX-License-Identifier: MIT\n# {0}: made from operations.pyi of the tensor's room; change that.\n"
# Families whose rows begin with a dtype: creation.py has them in Python's order.
HAND_FAMILIES = ("Creation", "Random")
# How a value of each kind goes to C. {0} is the value, {1} the function's name.
CONVERT = {
    "Tensor": "{0} if isinstance({0}, Base) else operand({0}, {1!r})",
    "Tensors": "tensors",
    "Axis": "as_int({0})",
    "Axes": "axes_of({0})",
    "Shape": "sizes_of({0})",
    "Sizes": "sizes_of({0})",
    "Floats": "floats_of({0})",
    "DType": "as_dtype({0}).value",
    "int": "as_int({0})",
    "float": "{0}",
    "bool": "{0}",
    "str": "{0}",
}
ABSENT = {"Axis": "NO_AXIS", "DType": "VOID"}  # else None
TYPES = {
    "Tensor": "Tensor | Number", "Tensors": "Sequence[Tensor]", "Axis": "int", "Axes": "int | Sequence[int]",
    "Shape": "int | Sequence[int]", "Sizes": "int | Sequence[int]", "Floats": "float | Sequence[float]",
    "DType": "DTypeLike", "int": "int", "float": "float", "bool": "bool", "str": "str",
}
# One argument under the names that it has in PyTorch and in tinygrad or NumPy.
OTHER_NAME = {"axis": "dim", "dim": "axis"}
SPREAD = ("Shape", "Sizes", "Axes")  # sizes may come one by one: reshape(2, 3)


def text_of(operation):
    """The table's text without C's spellings."""
    lines = operation.doc.splitlines()
    about = [f"{a.name}: {a.doc}" for a in operation.arguments if a.doc]
    text = "\n".join(lines + ([""] + about if about else []))
    text = re.sub(r"tiny_tensor_(\w+) \(\)|tiny_tensor_(\w+)\(\)", lambda m: (m[1] or m[2]) + "()", text)
    text = re.sub(r"[@#](?:Tiny)?(\w+)", r"\1", text)
    text = re.sub(r"%TINY_(?:ERROR_|DTYPE_)?(\w+)", r"\1", text)
    return text.replace("\\", "\\\\").replace('"""', "'''")


def docstring(operation, indent):
    lines = text_of(operation).splitlines()
    return f'{indent}"""' + f"\n{indent}".join(lines).replace(f"\n{indent}\n", "\n\n") + '"""\n'


def default_of(argument):
    text = ast.unparse(argument.default)
    return {"inf": "INFINITY", "-inf": "-INFINITY"}.get(text, text)


class Signature:
    """How Python calls an operation."""

    def __init__(self, operation):
        self.operation = operation
        arguments = operation.arguments
        self.is_method = arguments and arguments[0].kind == "Tensor" and arguments[0].name == "self"
        rest = arguments[1:] if self.is_method else arguments
        self.spread = None
        if rest and rest[0].kind in SPREAD and not rest[0].optional \
                and all(a.default is not None and a.kind not in ("Tensor", "Sizes") for a in rest[1:]):
            self.spread = rest[0]
        self.list = next((a for a in rest if a.kind == "Tensors"), None)
        self.rest = rest
        self.other = next((a for a in rest if a.name in OTHER_NAME and a is not self.spread), None)

    def parameters(self, typed):
        """The text between the parentheses."""
        def one(a):
            text = a.name
            if typed:
                text += ": " + TYPES[a.kind] + (" | None" if a.optional else "")
            if a.default is not None:
                text += (" = " if typed else "=") + ("..." if typed else default_of(a))
            return text

        out = ["self"] if self.is_method else []
        star = False
        for a in self.rest:
            if a is self.spread or a is self.list:
                out.append(f"*{a.name}" + (": " + TYPES[a.kind] if typed else ""))
                star = True
            else:
                out.append(one(a))
        if self.other is not None:
            name = OTHER_NAME[self.other.name]
            out += ([] if star else ["*"]) + [f"{name}: {TYPES[self.other.kind]} = ..." if typed else f"{name}=UNSET"]
        return ", ".join(out)

    def statements(self):
        lines = []
        if self.other is not None:
            name = OTHER_NAME[self.other.name]
            lines += [f"if {name} is not UNSET:", f"    {self.other.name} = {name}"]
        if self.list is not None:
            dim = self.other.name if self.other is not None else None
            lines.append(f"{'tensors, ' + (dim or '_')} = tensors_of({self.list.name}, {dim}, {self.operation.name!r})")
        return lines

    def values(self):
        out = ["self"] if self.is_method else []
        for a in self.rest:
            value = CONVERT[a.kind].format(a.name, self.operation.name)
            if a.kind in ("Shape", "Sizes", "Floats", "Axes") and a is self.spread:
                value = f"spread({a.name})"
            if a.optional and a.kind != "Axes":
                value = f"{ABSENT.get(a.kind)} if {a.name} is None else {value}"
            out.append(value)
        return ", ".join(out)


def function(operation):
    signature = Signature(operation)
    name, out = operation.name, []
    if not signature.is_method and signature.list is None:  # a list of tensors may begin with self: a.cat(b)
        out.append("    @staticmethod\n")
    out.append(f"    def {name}({signature.parameters(False)}):\n")
    out.append(docstring(operation, "        "))
    out += [f"        {line}\n" for line in signature.statements()]
    wrap = {0: "checked"}.get(len(operation.returns), "checked_all")
    out.append(f"        return {wrap}(c_{name}({signature.values()}))\n\n")
    out += [f"    {alias} = {name}\n\n" for alias in operation.aliases]
    return "".join(out)


def code(operations):
    out = [HEAD.format("operations.py"), '"""The methods of a tensor."""\n', """\
from .dtypes import as_dtype
from .convert import INFINITY, NO_AXIS, UNSET, VOID, as_int, axes_of, checked_all, floats_of, operand, sizes_of, spread, tensors_of
from .errors import checked
from .library import Tiny

Base = Tiny.Tensor
"""]
    out += [f"c_{operation.name} = Base.{operation.name}\n" for operation in operations]
    out.append('\n\nclass Operations:\n    """What can be done with a tensor, a method each."""\n\n    __slots__ = ()\n\n')
    out += [function(operation) for operation in operations]
    return "".join(out).rstrip("\n") + "\n"


def stub(operation):
    signature = Signature(operation)
    result = "Tensor" if not operation.returns else "list[Tensor]" if operation.returns == ["[]"] else \
        f"tuple[{', '.join(['Tensor'] * len(operation.returns))}]"
    out = [] if signature.is_method or signature.list else ["    @staticmethod\n"]
    out.append(f"    def {operation.name}({signature.parameters(True)}) -> {result}: ...\n")
    out += [f"    {alias} = {operation.name}\n" for alias in operation.aliases]
    return "".join(out)


def stubs(operations):
    out = [HEAD.format("operations.pyi"), textwrap.dedent("""\
        from collections.abc import Sequence

        from .dtypes import DTypeLike
        from .tensor import Number, Tensor

        class Operations:
        """)]
    return "".join(out + [stub(operation) for operation in operations])


def main():
    kind, room, output = sys.argv[1:]
    sys.path.insert(0, room)
    import operations_table as table
    try:
        operations = [operation for family in table.read() if family.name not in HAND_FAMILIES
                      for operation in family.operations]
    except table.TableError as error:
        sys.exit(f"make-operations: {error}")
    pathlib.Path(output).write_text({"code": code, "stubs": stubs}[kind](operations))


main()
