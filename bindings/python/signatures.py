# SPDX-License-Identifier: MIT
"""How Python calls the operations of the table: the parameters of each, their defaults and their types. Read by make-operations.py
and make-stubs.py."""
import ast
import pathlib

HAND = pathlib.Path(__file__).with_name("tinycore")  # what is written by hand
# How a value of each kind goes to C. {0} is the value, {1} the function's name.
CONVERT = {
    "Tensor": "{0} if isinstance({0}, Base) else operand({0}, {1!r})",
    "Tensors": "list_of({0}, {1!r})",
    "Axis": "as_axis({0}, '{1}: {0}')",
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
TYPES = {
    "Tensor": "Operand", "Tensors": "Sequence[Tensor]", "Axis": "int", "Axes": "int | Sequence[int]", "Shape": "int | Sequence[int]",
    "Sizes": "int | Sequence[int]", "Floats": "float | Sequence[float]", "DType": "DTypeLike", "int": "int", "float": "float",
    "bool": "bool", "str": "str",
}
SPREAD_TYPES = {"Tensors": "Tensor | Sequence[Tensor] | int"}  # one by one, or a list that an axis may follow
# One argument under the names that it has in PyTorch and in tinygrad or NumPy.
OTHER_NAME = {"axis": "dim", "dim": "axis"}
SPREAD = ("Shape", "Sizes", "Axes")  # sizes may come one by one: reshape(2, 3)
# PyTorch's names of arguments that the table calls otherwise, or that may come one by one: to be given by name only.
BY_NAME = {
    "reshape": {"shape": ("shape", "size")}, "expand": {"shape": ("size",)}, "permute": {"axis": ("dims",)}, "flip": {"axis": ("dims",)},
    "repeat": {"repeats": ("repeats",)}, "tile": {"repeats": ("dims",)}, "pow": {"other": ("exponent",)}, "transpose": {"dim0": ("axis0",), "dim1": ("axis1",)},
    "split": {"sizes": ("split_size_or_sections", "split_size")}, "unfold": {"axis": ("dimension",)}, "scatter": {"src": ("value",)},
    "cosine_similarity": {"other": ("x2",)}, "cosine_embedding_loss": {"other": ("input2",)}, "margin_ranking_loss": {"other": ("input2",)},
    "searchsorted": {"values": ("input",)}, "tensordot": {"other": ("b",)}, "solve": {"right": ("B",)}, "cholesky_solve": {"L": ("input2",)},
    **dict.fromkeys(("cat", "stack", "hstack", "vstack", "dstack"), {"tensors": ("tensors",)}),
    **{f"adaptive_{kind}_pool{n}d": {"output_size": ("output_size",)} for kind in ("avg", "max") for n in (1, 2, 3)},
}


def default_of(argument):
    text = ast.unparse(argument.default)
    return {"inf": "INFINITY", "-inf": "-INFINITY"}.get(text, text)


def type_of(argument):
    return TYPES[argument.kind] + (" | None" if argument.optional else "")


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
        self.by_name = BY_NAME.get(operation.name, {})
        renamed = next((i for i, a in enumerate(rest) if a.name in self.by_name and a is not self.spread and a is not self.list), len(rest))
        self.wanted = [a for i, a in enumerate(rest) if (a in after or i >= renamed) and a.default is None and a is not self.list]
        # PyTorch's unbiased, a bool that may stand where the correction or the axes do.
        self.unbiased = any(a.name == "axis" for a in rest) and any(a.name == "correction" for a in rest)

    def star(self, argument):
        """The name of what is given one by one."""
        return "given" if argument.name in self.by_name.get(argument.name, ()) else argument.name

    def parameters(self, typed):
        """The text between the parentheses."""
        def one(a):
            text = a.name
            if typed:
                text += ": " + type_of(a)
            if a.default is not None or a in self.wanted:
                text += " = ..." if typed else "=" + ("UNSET" if a in self.wanted else default_of(a))
            return text

        out = ["self"] if self.is_method else []
        star = False
        for a in self.rest:
            if a is self.spread or a is self.list:
                out.append(f"*{self.star(a)}" + (": " + SPREAD_TYPES.get(a.kind, TYPES[a.kind]) if typed else ""))
                star = True
            else:
                out.append(one(a))
        if self.operation.dtyped:
            out.append(f"dtype: {TYPES['DType']} | None = ..." if typed else "dtype=None")
        if self.other is not None:
            name = OTHER_NAME[self.other.name]
            out += ([] if star else ["*"]) + [f"{name}: {TYPES[self.other.kind]} = ..." if typed else f"{name}=UNSET"]
            star = True
        for a in (a for a in self.rest if a.name in self.by_name):
            names = self.by_name[a.name]
            out += [] if star else ["*"]
            out += [f"{name}: {TYPES[a.kind]} = ..." if typed else f"{name}=UNSET" for name in names]
            star = True
        if self.unbiased:
            out.append("unbiased: bool = ..." if typed else "unbiased=UNSET")
        return ", ".join(out)

    def statements(self):
        lines = []
        if self.other is not None:
            name = OTHER_NAME[self.other.name]
            default = "UNSET" if self.other in self.wanted or self.other.default is None else default_of(self.other)
            lines += [f"if {name} is not UNSET:",
                      f"    {self.other.name} = one_of({self.operation.name!r}, {self.other.name!r}, {self.other.name}, {default}, {name!r}, {name})"]
        for a in (a for a in self.rest if a.name in self.by_name):
            spread = a is self.spread or a is self.list
            own, default = self.star(a), "()" if spread else "UNSET" if a.default is None else default_of(a)
            for name in self.by_name[a.name]:
                value = f"({name},)" if spread else name
                lines += [f"if {name} is not UNSET:", f"    {own} = one_of({self.operation.name!r}, {own!r}, {own}, {default}, {name!r}, {value})"]
        if self.unbiased:
            lines.append(f"axis, correction = corrected({self.operation.name!r}, axis, correction, unbiased)")
        if self.wanted:
            names = [a.name for a in self.wanted]
            lines += [f"if {' or '.join(f'{name} is UNSET' for name in names)}:",
                      f"    raise TypeError({self.operation.name + ': not given: ' + ', '.join(names)!r})"]
        if self.spread is not None and self.spread.kind == "Axes" and self.spread.default is None:
            lines += [f"if {self.star(self.spread)} in ((), ([],), ((),)) and self.get_n_dims() > 0:",
                      f"    raise TypeError({self.operation.name + ': no axes are given'!r})"]
        if self.list is not None:
            dim = self.other.name if self.other is not None else None
            lines.append(f"tensors, {dim or 'nothing'} = tensors_of({self.star(self.list)}, {dim}, {self.operation.name!r})")
        return lines

    def values(self):
        out = ["self"] if self.is_method else []
        for a in self.rest:
            value = "tensors" if a is self.list else CONVERT[a.kind].format(a.name, self.operation.name)
            if a.kind in ("Shape", "Sizes", "Floats", "Axes") and a is self.spread:
                value = f"spread({self.star(a)}, '{self.operation.name}: {a.name}')"
                value = f"axes_of({value}, '{self.operation.name}: {a.name}')" if a.kind == "Axes" else value
            if a.optional and a.kind != "Axes":
                value = f"{ABSENT.get(a.kind)} if {a.name} is None else {value}"
            out.append(value)
        return ", ".join(out)


def results_of(operation):
    """The name of the class of several results."""
    return "".join(name.capitalize() for name in operation.returns)


def is_creation(operation):
    """Whether it makes a tensor of a dtype and sizes: creation.py has such rows in Python's order."""
    return bool(operation.arguments) and operation.arguments[0].kind == "DType"


def read(room):
    """The operations that are methods, from the table in the tensor's room."""
    import operations_table as table
    try:
        return [operation for family in table.read() for operation in family.operations if not is_creation(operation)]
    except table.TableError as error:
        raise SystemExit(f"{pathlib.Path(room).name}: {error}") from None
