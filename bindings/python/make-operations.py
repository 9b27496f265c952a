#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the methods of Python's Tensor from the table of operations: make-operations.py TENSOR_ROOM OUTPUT.

It is class Operations: plain functions with the table's names, defaults and text; their forms in place; and by name what
composed.py has, which is loaded when it is used. A row without self is a static method, or takes its tensors one by one. What
Python calls in another way than C, such as dropout, which only drops in training, is written once more by hand in class Tensor,
which is derived from this one."""
import ast
import pathlib
import re
import sys

import signatures
from signatures import HAND, Signature, results_of

HEAD = "# SPDX-License-Identifier: MIT\n# {0}: made from operations.pyi of the tensor's room; change that.\n"


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
    if signature.is_method:
        out += ["        try:\n", f"            return {wrapped}\n", "        except TypeError as error:\n",
                f"            raise about_self(error, self, {name!r})\n\n"]
    else:
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
from .convert import (INFINITY, NO_AXIS, UNSET, VOID, as_axis, as_bool, as_float, as_int, as_text, axes_of, checked_all, corrected, dtype_of, floats_of,
                      list_of, one_of, operand, results_class, sizes_of, spread, tensors_of)
from .errors import about_self, checked
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


def main():
    room, output = sys.argv[1:]
    sys.path.insert(0, room)
    pathlib.Path(output).write_text(code(signatures.read(room)))


main()
