#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the methods of Python's Tensor from the table of operations: make-operations.py code|stubs TENSOR_ROOM OUTPUT.

code   operations.py, class Operations: plain functions with the table's names, defaults and text; their forms in place; and by
       name what composed.py has, which is loaded when it is used
stubs  operations.pyi, the same for type checkers
class  tensor.pyi, class Tensor for them, from what is written by hand

A row without self is a static method, or takes its tensors one by one. What Python calls in another way than C, such
as dropout, which only drops in training, is written once more by hand in class Tensor, which is derived from this one."""
import ast
import pathlib
import re
import sys
import textwrap

HEAD = "# SPDX-License-Identifier: MIT\n# {0}: made from operations.pyi of the tensor's room; change that.\n"
# How a value of each kind goes to C. {0} is the value, {1} the function's name.
CONVERT = {
    "Tensor": "{0} if isinstance({0}, Base) else operand({0}, {1!r})",
    "Tensors": "list_of({0}, {1!r})",
    "Axis": "as_int({0}, '{1}: {0}')",
    "Axes": "axes_of({0}, '{1}: {0}')",
    "Shape": "sizes_of({0}, '{1}: {0}')",
    "Sizes": "sizes_of({0}, '{1}: {0}')",
    "Floats": "floats_of({0})",
    "DType": "as_dtype({0}).value",
    "int": "as_int({0}, '{1}: {0}')",
    "float": "{0} if {0}.__class__ is float else as_float({0}, '{1}: {0}')",
    "bool": "as_bool({0}, '{1}: {0}')",
    "str": "as_text({0}, '{1}: {0}')",
}
ABSENT = {"Axis": "NO_AXIS", "DType": "VOID"}  # else None
INT = "builtins.int"  # int is a method of a tensor
TYPES = {
    "Tensor": "Tensor | Number", "Tensors": "Sequence[Tensor]", "Axis": INT, "Axes": f"{INT} | Sequence[{INT}]",
    "Shape": f"{INT} | Sequence[{INT}]", "Sizes": f"{INT} | Sequence[{INT}]",
    "Floats": "builtins.float | Sequence[builtins.float]", "DType": "DTypeLike", "int": INT, "float": "builtins.float",
    "bool": "builtins.bool", "str": "str",
}
# One argument under the names that it has in PyTorch and in tinygrad or NumPy.
OTHER_NAME = {"axis": "dim", "dim": "axis"}
SPREAD = ("Shape", "Sizes", "Axes")  # sizes may come one by one: reshape(2, 3)


def text_of(operation):
    """The table's text without C's spellings."""
    lines = operation.doc.splitlines()
    about = [f"{a.name}: {a.doc}" for a in operation.arguments if a.doc]
    about += ["dtype: what the elements become first, and what the result is of"] if operation.dtyped else []
    text = "\n".join(lines + ([""] + about if about else []))
    text = re.sub(r"tiny_tensor_(\w+) \(\)|tiny_tensor_(\w+)\(\)", lambda m: (m[1] or m[2]) + "()", text)
    text = re.sub(r"[@#](?:Tiny)?(\w+)", r"\1", text)
    text = re.sub(r"%TINY_(?:ERROR_|DTYPE_)?(\w+)", r"\1", text)
    text = text.replace("%NULL", "None").replace("\\", "\\\\").replace('"""', "'''")
    return text + " " if text.endswith('"') else text


def docstring(operation, indent):
    lines = text_of(operation).splitlines()
    text = f"\n{indent}".join(lines).replace(f"\n{indent}\n", "\n\n")
    return f'{indent}"""{text}' + (f"\n{indent}" if text.endswith('"') else "") + '"""\n'


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
        # What may be given one by one: the only argument (split (2, 1) is along axis 1), or the tensors that a method
        # without self is about.
        self.spread = rest[0] if len(rest) == 1 and rest[0].kind in SPREAD and not rest[0].optional else None
        self.list = next((a for a in rest[:1] + rest[-1:] if a.kind == "Tensors" and not self.is_method), None)
        # A list that comes first may begin with self: a.cat(b).
        self.is_static = not self.is_method and (self.list is None or self.list is not rest[0])
        self.rest = rest
        self.other = next((a for a in rest if a.name in OTHER_NAME and a is not self.spread), None)
        # Given by its other name, it leaves those after it to be named as well: gather (dim=1, index=i).
        after = rest[rest.index(self.other):] if self.other is not None and self.other.default is None else []
        self.wanted = [a for a in after if a.default is None and a is not self.list]

    def parameters(self, typed):
        """The text between the parentheses."""
        def one(a):
            text = a.name
            if typed:
                text += ": " + TYPES[a.kind] + (" | None" if a.optional else "")
            if a.default is not None or a in self.wanted:
                text += " = ..." if typed else "=" + ("UNSET" if a in self.wanted else default_of(a))
            return text

        out = ["self"] if self.is_method else []
        star = False
        for a in self.rest:
            if a is self.spread or a is self.list:
                out.append(f"*{a.name}" + (": " + TYPES[a.kind] if typed else ""))
                star = True
            else:
                out.append(one(a))
        if self.operation.dtyped:
            out.append(f"dtype: {TYPES['DType']} | None = ..." if typed else "dtype=None")
        if self.other is not None:
            name = OTHER_NAME[self.other.name]
            out += ([] if star else ["*"]) + [f"{name}: {TYPES[self.other.kind]} = ..." if typed else f"{name}=UNSET"]
        return ", ".join(out)

    def statements(self):
        lines = []
        if self.other is not None:
            name = OTHER_NAME[self.other.name]
            default = "UNSET" if self.other in self.wanted or self.other.default is None else default_of(self.other)
            lines += [f"if {name} is not UNSET:",
                      f"    {self.other.name} = one_of({self.operation.name!r}, {self.other.name!r}, {self.other.name}, {default}, {name!r}, {name})"]
        if self.wanted:
            names = [a.name for a in self.wanted]
            lines += [f"if {' or '.join(f'{name} is UNSET' for name in names)}:",
                      f"    raise TypeError({self.operation.name + ': not given: ' + ', '.join(names)!r})"]
        if self.spread is not None and self.spread.kind == "Axes" and self.spread.default is None:
            lines += [f"if self.get_n_dims() > 0 and {self.spread.name} in ((), ([],), ((),)):",
                      f"    raise TypeError({self.operation.name + ': no axes are given'!r})"]
        if self.list is not None:
            dim = self.other.name if self.other is not None else None
            lines.append(f"tensors, {dim or 'nothing'} = tensors_of({self.list.name}, {dim}, {self.operation.name!r})")
        return lines

    def values(self):
        out = ["self"] if self.is_method else []
        for a in self.rest:
            value = "tensors" if a is self.list else CONVERT[a.kind].format(a.name, self.operation.name)
            if a.kind in ("Shape", "Sizes", "Floats", "Axes") and a is self.spread:
                value = f"spread({a.name}, '{self.operation.name}: {a.name}')"
            if a.optional and a.kind != "Axes":
                value = f"{ABSENT.get(a.kind)} if {a.name} is None else {value}"
            out.append(value)
        return ", ".join(out)


def results_of(operation):
    """The name of the class of several results."""
    return "".join(name.capitalize() for name in operation.returns)


def function(operation):
    signature = Signature(operation)
    name, out = operation.name, []
    if signature.is_static:
        out.append("    @staticmethod\n")
    out.append(f"    def {name}({signature.parameters(False)}):\n")
    out.append(docstring(operation, "        "))
    out += [f"        {line}\n" for line in signature.statements()]
    if operation.dtyped:
        out += ["        if dtype is not None:\n", f"            dtype = dtype_of({name!r}, dtype, {operation.takes == 'float'})\n",
                f"            self = c_cast(self, dtype)\n            return checked(c_cast(c_{name}({signature.values()}), dtype))\n"]
    result = f"c_{name}({signature.values()})"
    wrapped = f"checked({result})" if not operation.returns else f"checked_all({result})"
    if len(operation.returns) > 1:
        wrapped = f"{results_of(operation)}({wrapped})"
    out.append(f"        return {wrapped}\n\n")
    out += [f"    {alias} = {name}\n\n" for alias in operation.aliases]
    if operation.in_place:
        out.append(f"    {name}_ = in_place({name})\n\n")
        out += [f"    {alias}_ = {name}_\n\n" for alias in operation.aliases]
    return "".join(out)


def composed():
    """The methods of composed.py and their other names: (name, node of the method)."""
    body = next(node for node in ast.parse((HAND / "composed.py").read_text()).body if isinstance(node, ast.ClassDef))
    methods = {}
    for node in body.body:
        if isinstance(node, ast.FunctionDef):
            methods[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            methods.update({target.id: methods[node.value.id] for target in node.targets})
    return methods


def code(operations):
    out = [HEAD.format("operations.py"), '"""The methods of a tensor."""\n', """\
from .dtypes import as_dtype
from .convert import (INFINITY, NO_AXIS, UNSET, VOID, as_bool, as_float, as_int, as_text, axes_of, checked_all, dtype_of, floats_of, list_of,
                      one_of, operand, results_class, sizes_of, spread, tensors_of)
from .errors import checked
from .in_place import Later, in_place
from .library import Tiny

Base = Tiny.Tensor
"""]
    out += [f"c_{operation.name} = Base.{operation.name}\n" for operation in operations]
    classes = {results_of(operation): operation.returns for operation in operations if len(operation.returns) > 1}
    out += [f"{name} = results_class({', '.join(map(repr, names))})\n" for name, names in classes.items()]
    out.append('\n\nclass Operations:\n    """What can be done with a tensor, a method each."""\n\n    __slots__ = ()\n\n')
    out += [function(operation) for operation in operations]
    out += [f"    {name} = Later({name!r})\n" for name in composed()]
    return "".join(out).rstrip("\n") + "\n"


def stub(operation):
    signature = Signature(operation)
    result = "Tensor" if not operation.returns else "list[Tensor]" if operation.returns == ["[]"] else results_of(operation)
    out = ["    @staticmethod\n"] if signature.is_static else []
    out.append(f"    def {operation.name}({signature.parameters(True)}) -> {result}: ...\n")
    out += [f"    {alias} = {operation.name}\n" for alias in operation.aliases]
    if operation.in_place:
        out.append(f"    def {operation.name}_({signature.parameters(True)}) -> Tensor: ...\n")
        out += [f"    {alias}_ = {operation.name}_\n" for alias in operation.aliases]
    return "".join(out)


def stubs(operations):
    out = [HEAD.format("operations.pyi"), textwrap.dedent("""\
        import builtins
        from collections.abc import Sequence

        from typing import Any

        from .tensor import DTypeLike, Number, Tensor

        """)]
    out.append("class Operations:\n")
    out += [stub(operation) for operation in operations]
    found = composed()
    out += [hand_stub(node) if name == node.name else f"    {name} = {node.name}\n" for name, node in found.items()]
    for name, names in {results_of(o): o.returns for o in operations if len(o.returns) > 1}.items():
        out.append(f"\nclass {name}(tuple[{', '.join(['Tensor'] * len(names))}]):\n")
        out += [f"    @property\n    def {one}(self) -> Tensor: ...\n" for field in names for one in {field: 0, field.capitalize(): 0}
                if one == field or len(field) <= 2]
    return "".join(out)


# ---- what is written by hand ----
HAND = pathlib.Path(__file__).with_name("tinycore")
RESULTS = {  # of methods that give no tensor
    **dict.fromkeys(("numel", "nelement", "nbytes", "element_size", "ndim", "dim", "itemsize", "__len__", "__int__", "__index__",
                     "__hash__"), INT),
    **dict.fromkeys(("is_floating_point", "requires_grad", "is_frozen", "training", "allclose", "__bool__", "__contains__"), "builtins.bool"),
    **dict.fromkeys(("device", "__repr__", "__str__", "__format__"), "str"),
    **dict.fromkeys(("__init__", "__init_subclass__", "manual_seed", "__setitem__"), "None"),
    **dict.fromkeys(("tolist", "numpy", "__array__", "__dlpack__", "__reduce__", "size", "max_pool2d", "train"), "Any"),
    "shape": f"tuple[{INT}, ...]", "dtype": "DType", "item": "Number", "__float__": "builtins.float", "data": "memoryview",
    "bytes_of": "bytes", "flat": "list[Any]", "__iter__": "Iterator[Tensor]", "__dlpack_device__": f"tuple[{INT}, {INT}]",
    "gradient": "list[Tensor]", "grad": "Tensor | None", "median": "Any", "unique": "Any", "unique_consecutive": "Any",
    "custom_kernel": "list[Tensor]", **dict.fromkeys(("tensor_split", "split_with_sizes", "hsplit", "vsplit", "dsplit"), "list[Tensor]"),
    **dict.fromkeys(("equal", "is_signed", "is_complex", "is_nonzero", "is_same_size"), "builtins.bool"), "ndimension": INT,
    **dict.fromkeys(("mode", "nanmedian"), "Any"),
}
OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()


def hand_stub(node):
    """A method that is written by hand: its names and defaults, and what it gives."""
    out = [f"    @{ast.unparse(one)}\n" for one in node.decorator_list]
    for a in [*node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]:
        if a is not None and a.arg not in ("self", "cls"):
            a.annotation = ast.Name("Any")
    some = lambda defaults: [one and ast.Constant(...) for one in defaults]  # noqa: E731
    node.args.defaults, node.args.kw_defaults = some(node.args.defaults), some(node.args.kw_defaults)
    return "".join([*out, f"    def {node.name}({ast.unparse(node.args)}) -> {RESULTS.get(node.name, 'Tensor')}: ...\n"])


def class_stubs():
    out = [HEAD.format("tensor.pyi").replace("operations.pyi of the tensor's room", "tensor.py and creation.py"), textwrap.dedent("""\
        import builtins
        from collections.abc import Iterator
        from typing import Any, TypeAlias, Union

        from .dtypes import DType
        from .operations import Operations

        Number: TypeAlias = Union[builtins.bool, builtins.int, builtins.float]
        DTypeLike: TypeAlias = Union[DType, str, type, Any]

        class Tensor(Operations):
            __hash__: Any
            __array_ufunc__: None
            training: builtins.bool
            is_frozen: builtins.bool
        """)]
    for file, name in (("creation.py", "Creation"), ("tensor.py", "Tensor")):
        body = next(node for node in ast.parse((HAND / file).read_text()).body if isinstance(node, ast.ClassDef) and node.name == name)
        out += [hand_stub(node) for node in body.body if isinstance(node, ast.FunctionDef)]
        out += [f"    {node.targets[0].id} = {node.value.id}\n" for node in body.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)]
    for sign in OPERATORS:
        out += [f"    def __{side}{sign}__(self, other: Any) -> Tensor: ...\n" for side in ("", "r", "i")]
    out += [f"    def __{sign}__(self, other: Any) -> Tensor: ...  # type: ignore[override]\n" for sign in ("eq", "ne", "lt", "le", "gt", "ge")]
    out += [f"    def __{sign}__(self) -> Tensor: ...\n" for sign in ("neg", "invert", "abs", "pos")]
    return "".join(out)


def is_creation(operation):
    """Whether it makes a tensor of a dtype and sizes: creation.py has such rows in Python's order."""
    return bool(operation.arguments) and operation.arguments[0].kind == "DType"


def main():
    kind, room, output = sys.argv[1:]
    sys.path.insert(0, room)
    import operations_table as table
    try:
        operations = [operation for family in table.read() for operation in family.operations if not is_creation(operation)]
    except table.TableError as error:
        sys.exit(f"make-operations: {error}")
    pathlib.Path(output).write_text(class_stubs() if kind == "class" else {"code": code, "stubs": stubs}[kind](operations))


main()
