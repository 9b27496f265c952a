#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the stubs of modules, by which type checkers know the package: make-stubs.py TENSOR_ROOM FOLDER MODULE…, or of all
that have stubs: make-stubs.py TENSOR_ROOM FOLDER.

They have what the modules have, without what it does. The type of an argument is that of its annotation, else what its name means
everywhere (NAMES), else that of its default; what a function gives is its annotation, else nothing where it returns nothing, else a
tensor. An argument that has no type so is an error. A class with forward() is called with the arguments of that. Methods of tensors
that are functions elsewhere, and classes that call one (nn/functions.py), have their types from there; the methods themselves are of the
table of operations."""
import ast
import copy
import pathlib
import sys

import signatures
from signatures import HAND, OTHER_NAME, Signature, results_of, type_of

HEAD = "# SPDX-License-Identifier: MIT\n# Made by make-stubs.py; change what it is made from.\n"
# What arguments of these names are, wherever they are, None besides where that is the default.
NAMES = {
    **dict.fromkeys(("input", "tensor", "tensor1", "tensor2", "x", "x1", "x2", "y", "A", "B", "target", "weight", "query", "key", "value", "src", "tgt",
                     "memory", "input1", "input2", "anchor", "positive", "negative", "mat", "vec", "vec1", "vec2", "batch1", "batch2",
                     "key_padding_mask", "attn_mask", "src_mask", "tgt_mask", "memory_mask", "src_key_padding_mask", "tgt_key_padding_mask",
                     "memory_key_padding_mask", "logits", "grid", "theta", "mask"), "Tensor"),
    **dict.fromkeys(("dim", "axis", "offset", "n", "m", "index", "row", "col"), "int"),
    **dict.fromkeys(("keepdim", "bias", "inplace", "training", "requires_grad", "is_causal", "need_weights"), "bool"),
    **dict.fromkeys(("shape", "size", "sizes", "kernel_size", "stride", "padding", "dilation", "output_padding", "output_size"), "int | Sequence[int]"),
    **dict.fromkeys(("p", "eps", "lr", "low", "high", "mean", "std", "momentum", "alpha", "beta", "weight_decay", "dropout", "ord", "d", "gain"), "float"),
    **dict.fromkeys(("params", "parameters"), "Iterable[Any]"),
    **dict.fromkeys(("name", "url", "norm"), "str"),
    "dtype": "DTypeLike", "device": "DeviceLike", "other": "Operand", "fill_value": "Number", "optimizer": "Optimizer", "module": "Module",
    "function": "Callable[..., Any]", "func": "Callable[..., Any]", "tensors": "Tensor | Sequence[Tensor]", "data": "Any", "state_dict": "Mapping[Any, Any]", "fn": "Callable[..., Any]",
}
RESULTS = {"__len__": "int", "__repr__": "str", "__str__": "str", "__format__": "str", "__bool__": "bool", "__int__": "int", "__index__": "int",
           "__float__": "float", "__contains__": "bool", "__init__": "None", "__exit__": "None", "extra_repr": "str", "__array__": "Any"}
OVERRIDES = {"forward", "__call__", "step"}  # which classes take what they want for
# What the package calls itself.
HIDDEN = {"take", "hold", "add_hook", "adopt", "members", "named_tensors", "tensor_named", "put", "begin", "note_rates", "repeat", "setting", "call_many", "call_hooked", "own", "get_tensor",
          "replace_tensors", "save_name", "rows", "key_of", "accept", "renumber", "read", "set_group", "load_flat_state", "firsts", "spots", "make_loader",
          "of_all", "reset", "run_first", "run_pair", "swap", "call_packed", "load", "taken", "bar", "next_batch", "order", "run", "marks", "bytes_of", "feed_forward", "attend_to_more", "__new__", "__getattr__", "__setattr__", "__reduce__", "__setstate__", "__deepcopy__", "__copy__", "__get__", "__init_subclass__",
          "__hash__", "__dir__"}
# Names that stubs use, and where they are. What the package's classes are is found.
PLACES = {"Any": "typing", "Generic": "typing", "Literal": "typing", "NamedTuple": "typing", "overload": "typing", "ParamSpec": "typing_extensions",
          "Self": "typing_extensions", "TypeVar": "typing", "ContextDecorator": "contextlib", "MutableMapping": "collections.abc",
          **dict.fromkeys(("Callable", "ItemsView", "Iterable", "Iterator", "KeysView", "Mapping", "Sequence", "ValuesView"), "collections.abc"), "PathLike": "os"}
TYPES_OF_TENSORS = '''
Number: TypeAlias = Union[builtins.bool, builtins.int, builtins.float]
DeviceLike: TypeAlias = Union[builtins.str, Sequence[builtins.str]]

class Array(Protocol):
    def __array__(self) -> Any: ...

class Named(Protocol):
    @property
    def name(self) -> builtins.str: ...

DTypeLike: TypeAlias = Union[Named, builtins.str, builtins.type]
Operand: TypeAlias = Union[Tensor, Number, Array]
ArrayLike: TypeAlias = Union[Operand, list[Any], tuple[Any, ...]]
Index: TypeAlias = Union[None, builtins.int, builtins.slice, EllipsisType, Array, list[Any], tuple[Any, ...]]
'''
OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
BUILTINS = {"bool", "int", "float", "type", "slice"}  # which are methods of a tensor as well


# Functions and classes that modules have for themselves and for each other.
INTERNAL = set("""check_rank rows_of with_axis quantiles evenly scaled drawn dtype_of_numbers as_number len_of counted placed float_dtype
    check_result replace_tensors take_apart refuse_reading thread_modes in_words describe_change find_change Modes note_mode note_set_mode mode_of find_modes State exception_of checked heard heard_number call fail is_wrong meant located named explained explain_making
    Raised Traced results_list batch_axes Backward along sized several shifted least_value triangle window raised slabs restored operator is_operand
    members_of joined walk once after_parts like value_of load_into realize_all made_again sizes_of same_padding drop_parts two lp_pool centres
    reduced with_inplace check_padding conv with_gradients trainable remade place deviation images archive_of check_md5 element parts_of like_item path_of
    activation_of causal_mask derived fans_of wide rounded of_tensor explain_all wants_function wants_tensor
    from_the_start older_reduction running cubic given_to dims_of split_aux without_aux chosen call_hooked failure marked between_boundaries where_of by_other_names of_tensor listed parts_of filled gradients_of wants_result lengths_of places hooks_of wants_weight begin_norm end_norm sampled uop_of schedule_of Reader MakingSignature chunks read_along made_of shown_batches""".split())
# Modules without stubs: what is in them is the package's own, or a name of another module.
PLAIN = {"convert", "data", "dlpack", "fetch", "in_place", "indexing", "library", "operators", "optim", "utils/__init__", "utils/checkpoint", "utils/data"}
untyped = []  # whose type is not known
FIRST = {}  # how functions call their tensor, of functions.py


def read_first():
    value = next(node.value for node in ast.parse((HAND / "functions.py").read_text()).body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FIRST")
    return eval(compile(ast.Expression(value), "FIRST", "eval"))




class Qualify(ast.NodeTransformer):
    def visit_Name(self, node):
        return ast.Name("builtins." + node.id) if node.id in BUILTINS else node

    def visit_Constant(self, node):  # an annotation in quotes
        return Qualify().visit(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else node

    def visit_Subscript(self, node):
        return node if isinstance(node.value, ast.Name) and node.value.id == "Literal" else self.generic_visit(node)


def text_of(annotation):
    node = ast.parse(annotation, mode="eval").body if isinstance(annotation, str) else copy.deepcopy(annotation)
    return ast.unparse(Qualify().visit(node))


def class_named(body, name):
    return next(node for node in body if isinstance(node, ast.ClassDef) and node.name == name)


def functions_of(body):
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def inner_of(value, functions):
    """The function that @value, a call of a function that makes one, is; else None."""
    maker = functions.get(value.func.id) if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else None
    return maker and next((node for node in maker.body if isinstance(node, ast.FunctionDef)), None)


def functions_of_module(tree):
    """Its functions, also those that others made: dropout1d = drop_parts (1)."""
    found = functions_of(tree.body)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            made = {name.id: inner_of(value, found) for name, value in zip(node.targets[0].elts, node.value.elts)}
            found.update({name: one for name, one in made.items() if one is not None})
    return found


def is_typing(node):
    """Whether it is "if TYPE_CHECKING:", whose contents are for type checkers alone."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


# ---- signatures ----
def type_of_argument(argument, default, where):
    if argument.annotation is not None:
        text = text_of(argument.annotation)
    else:
        literal = default.value if isinstance(default, ast.Constant) else None
        if isinstance(default, ast.UnaryOp) and isinstance(default.operand, ast.Constant):
            literal = default.operand.value
        found = NAMES.get(argument.arg) or (type(literal).__name__ if literal is not None and literal is not ... else None)
        if found is None:
            untyped.append(f"{where}: {argument.arg} has no type")
            return "Any"
        text = text_of(found)
    is_absent = isinstance(default, ast.Constant) and default.value is None
    return text + (" | None" if is_absent and "None" not in text and text != "Any" else "")


def arguments_of(node, where):
    """The text between the parentheses."""
    a, out = node.args, []
    plain = [*a.posonlyargs, *a.args]
    defaults = [None] * (len(plain) - len(a.defaults)) + list(a.defaults)

    def one(argument, default):
        is_unset = isinstance(default, ast.Name) and default.id == "UNSET"
        return f"{argument.arg}: {type_of_argument(argument, None if is_unset else default, where)}" + (" = ..." if default is not None else "")

    for i, (argument, default) in enumerate(zip(plain, defaults)):
        out.append(argument.arg if i == 0 and argument.arg in ("self", "cls") else one(argument, default))
    if a.vararg is not None:
        known = a.vararg.annotation is not None or a.vararg.arg in NAMES
        out.append(f"*{a.vararg.arg}: " + (type_of_argument(a.vararg, None, where) if known else "Any"))
    elif a.kwonlyargs:
        out.append("*")
    out += [one(argument, default) for argument, default in zip(a.kwonlyargs, a.kw_defaults)]
    if a.kwarg is not None:
        out.append(f"**{a.kwarg.arg}: Any")
    return ", ".join(out)


def own_nodes(function):
    """All nodes of a function but those of functions in it."""
    left = list(function.body)
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            left += list(ast.iter_child_nodes(node))


def result_of(node, where, gives):
    """The type of the result; @gives: of one that nothing else says."""
    if node.returns is not None:
        return text_of(node.returns)
    if node.name in RESULTS:
        return text_of(RESULTS[node.name])
    found = [one for one in own_nodes(node) if isinstance(one, (ast.Return, ast.Yield, ast.YieldFrom))]
    values = [one.value for one in found if getattr(one, "value", None) is not None]
    if not values and not any(not isinstance(one, ast.Return) for one in found):
        return "None"
    is_other = any(isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "self" for one in own_nodes(node))
    if not is_other and all(isinstance(one, ast.Return) for one in found) and all(ast.unparse(one) == "self" for one in values):
        return "Self"
    if gives is None or not all(isinstance(one, ast.Return) for one in found):
        untyped.append(f"{where}: the result has no type")
    return gives


def function_stub(node, where, gives, indent="", name=None):
    where = f"{where}.{node.name}"
    kept = [ast.unparse(one) for one in node.decorator_list]
    ignored = "  # type: ignore[override]" if (name or node.name) in OVERRIDES else ""
    out = [f"{indent}@{one}{ignored}\n" for one in kept if one in ("property", "staticmethod", "classmethod", "overload") or one.endswith(".setter")]
    text = f"{indent}def {name or node.name}({arguments_of(node, where)}) -> {result_of(node, where, gives)}: ..."
    return "".join(out) + text + ignored + "\n"


# ---- classes ----
def attributes_of(body, known, where):
    """The arguments of __init__() that become attributes, with their types."""
    init = functions_of(body).get("__init__")
    if init is None:
        return
    types = {}
    plain = [*init.args.args, *init.args.kwonlyargs]
    defaults = [None] * (len(init.args.args) - len(init.args.defaults)) + list(init.args.defaults) + list(init.args.kw_defaults)
    for argument, default in zip(plain[1:], defaults[1:]):
        types[argument.arg] = type_of_argument(argument, default, where)
    for node in ast.walk(init):
        if isinstance(node, ast.Assign):
            pairs = [(node.targets[0], node.value)]
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(node.targets[0].elts, node.value.elts)
            names = {target.attr: value.id for target, value in pairs if isinstance(target, ast.Attribute) and isinstance(value, ast.Name)
                     and ast.unparse(target.value) == "self"}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "self.take":
            names = {one.arg: one.arg for one in node.keywords if one.arg not in (None, "device", "dtype")}
        else:
            continue
        for attribute, argument in names.items():
            if argument in types and attribute not in known:
                known.add(attribute)
                yield f"    {attribute}: {types[argument]}\n"


def class_stub(node, tree, gives, where):
    where = f"{where}.{node.name}"
    methods = functions_of(node.body)
    if "__new__" in methods and methods["__new__"].args.vararg is None:  # which takes what the class is called with
        methods["__init__"].args, methods["__new__"].args.args[0].arg = methods["__new__"].args, "self"
    words = [one for one in node.keywords if one.arg == "metaclass" and one.value.id != "ParameterType"]
    bases = ", ".join([*(ast.unparse(one) for one in node.bases), *(f"{one.arg}={ast.unparse(one.value)}" for one in words)])
    typing = [one for block in node.body if is_typing(block) for one in block.body]
    typed = set(functions_of(typing))
    annotated = {one.target.id for one in node.body if isinstance(one, ast.AnnAssign)}
    out = [f"    {one.target.id}: {text_of(one.annotation)}\n" for one in node.body if isinstance(one, ast.AnnAssign)]
    out += [function_stub(one, where, gives, "    ") if isinstance(one, ast.FunctionDef) else f"    {ast.unparse(one)}\n" for one in typing]
    out += attributes_of(node.body, annotated | set(methods), where)
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and one.name not in HIDDEN and one.name not in typed:
            out.append(function_stub(one, where, gives, "    "))
            if one.name == "forward" and "__call__" not in methods and "__call__" not in typed:
                out.append(function_stub(one, where, gives, "    ", "__call__"))
        elif isinstance(one, ast.Assign):
            name = one.targets[0].id if isinstance(one.targets[0], ast.Name) else None
            value = one.value
            if name == "forward" and isinstance(value, ast.Attribute):  # another class's
                other = functions_of(class_named(tree.body, value.value.id).body)["forward"]
                out += [function_stub(other, where, gives, "    ", alias) for alias in ("forward", "__call__")]
            elif isinstance(value, ast.Name) and (value.id in methods or value.id in typed):
                out.append(f"    {name} = {value.id}\n")
            elif isinstance(value, ast.Call) and ast.unparse(value.func) == "property":
                function = methods[value.args[0].id]
                out.append(f"    @property\n    def {name}(self) -> {result_of(function, where, gives)}: ...\n")
            elif isinstance(value, ast.Name) and value.id[0].isupper() and not value.id.isupper():
                out.append(f"    {name} = {value.id}\n")
    if node.name == "dtypes":
        out += [f"    {name}: DType\n" for name in sum(dtype_names(), [])]
    return f"class {node.name}{f'({bases})' if bases else ''}:\n" + ("".join(out) or "    ...\n")


def results_class(name, fields):
    out = [f"class {name}(tuple[{', '.join(['Tensor'] * len(fields))}]):\n"]
    names = [one for field in fields for one in {field: 0, field.capitalize(): 0} if one == field or len(field) <= 2]
    return "".join([*out, *(f"    @property\n    def {one}(self) -> Tensor: ...\n" for one in names)])


# ---- modules ----
def made_stub(names, value, tree, where):
    """Of an assignment to names in a module."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "results_class":
        return results_class(names[0], [one.value for one in value.args])
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "namedtuple":
        return f"class {names[0]}(NamedTuple):\n" + "".join(f"    {one.value}: Any\n" for one in value.args[1].elts)
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "map":  # objects of a class
        return "".join(f"{name}: {ast.unparse(value.args[0])}\n" for name in names)
    if isinstance(value, ast.GeneratorExp):
        value = value.elt
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "getattr":
            return "".join(f"{name} = Tensor.{name}\n" for name in names)
        values = [value] * len(names)
    else:
        values = value.elts if isinstance(value, ast.Tuple) and len(names) > 1 else [value] * len(names)
    out = []
    for name, one in zip(names, values):
        inner = inner_of(one, functions_of(tree.body))
        if inner is not None:
            out.append(function_stub(inner, where, "Tensor", "", name))
        elif isinstance(one, (ast.Name, ast.Attribute)) and ast.unparse(one).split(".")[0] not in ("Tiny", "Base") and name[0] != "_":
            out.append(f"{name} = {ast.unparse(one)}\n")
        elif name in SINGLE:
            out.append(f"{name}: {SINGLE[name]}\n")
    return "".join(out)


SINGLE = {"Device": "Devices", "GlobalCounters": "Counters"}  # objects of a class that is made once


def module_stub(name, tree, gives="Tensor"):
    public = None if name == "__init__" else next((node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"), None)
    public = [one.value for one in public.elts] if isinstance(public, ast.List) and not any(isinstance(one, ast.Starred) for one in public.elts) else None
    wanted = None if public is None else needed(public, tree)
    out = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if wanted is not None and node.name not in wanted or node.name in INTERNAL or node.name == "__getattr__":
                continue
            if node.name in SPECIAL:
                out.append(SPECIAL[node.name])
            elif isinstance(node, ast.FunctionDef):
                out.append(function_stub(node, name, gives))
            else:
                out.append(class_stub(node, tree, gives, name))
        elif isinstance(node, ast.Assign):
            targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
            names = [one.id for one in targets if isinstance(one, ast.Name)]
            if names and not names[0].isupper() and (wanted is None or names[0] in wanted):
                out.append(made_stub(names, node.value, tree, name))
        elif isinstance(node, ast.ImportFrom) and node.level > 0:
            if name.endswith("__init__") and node.names[0].name != "*":
                out.append(f"from {'.' * node.level}{node.module or ''} import {', '.join(f'{one.name} as {one.name}' for one in node.names)}\n")
            elif node.names[0].name == "*":
                out.append(f"from {'.' * node.level}{node.module or ''} import *\n")
            else:
                again = [one.name for one in node.names if one.asname == one.name or public is not None and one.name in public]
                out += [f"from {'.' * node.level}{node.module or ''} import {', '.join(f'{one} as {one}' for one in again)}\n"] if again else []
    return "".join(out)


def needed(public, tree):
    """Public names, and the classes that theirs are made of and speak of."""
    found, left, bases = set(), list(public), {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            said = [one.annotation for one in node.body if isinstance(one, ast.AnnAssign)]
            bases[node.name] = [one.id for part in (*node.bases, *said) for one in ast.walk(part) if isinstance(one, ast.Name)]
    while left:
        name = left.pop()
        found.add(name)
        left += [one for one in bases.get(name, ()) if one not in found]
    return found


def imports_of(name, text, places):
    """Import statements for what a stub uses and has not."""
    tree = ast.parse(text)
    defined = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    defined |= {target.id for node in tree.body if isinstance(node, ast.Assign) for target in node.targets if isinstance(target, ast.Name)}
    defined |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    defined |= {one.asname or one.name for node in tree.body if isinstance(node, ast.ImportFrom) for one in node.names}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - defined
    up = "." * (1 + name.count("/"))
    found = {}
    for one in sorted(used):
        if one in PLACES:
            found.setdefault(PLACES[one], []).append(one)
        elif one in places and places[one] != name:
            found.setdefault(up + places[one].replace("/", "."), []).append(one)
    lines = [f"from {place} import {', '.join(names)}\n" for place, names in sorted(found.items(), key=lambda row: (row[0][0] == ".", row[0]))]
    return ("import builtins\n" if "builtins" in used else "") + "".join(lines)


def places_of_classes():
    """In which module each class of the package is."""
    found = dict.fromkeys(("Number", "Operand", "DTypeLike", "DeviceLike", "ArrayLike", "Index", "Array", "Tensor"), "tensor")
    found["Operations"] = "operations"
    for path in sorted(HAND.rglob("*.py")):
        module = path.relative_to(HAND).with_suffix("").as_posix()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, module)
    return found


# ---- modules that are made of tensors' methods ----
def hand_methods():
    """Methods that are written by hand, with those of composed.py."""
    found = {}
    for file, name in (("composed.py", "Composed"), ("creation.py", "Creation"), ("calls.py", "Calls"), ("tensor.py", "Tensor")):
        found.update(functions_of(class_named(ast.parse((HAND / file).read_text()).body, name).body))
    return found


def operation_stub(operation, by_hand):
    signature = Signature(operation)
    result = "Tensor" if not operation.returns else "list[Tensor]" if operation.returns == ["[]"] else results_of(operation)
    name, parameters = operation.name, text_of_parameters(signature.parameters(True))
    out = []
    if name not in by_hand:
        out += ["    @staticmethod\n"] if signature.is_static else []
        out.append(f"    def {name}({parameters}) -> {result}: ...\n")
        out += [f"    {alias} = {name}\n" for alias in operation.aliases if alias not in by_hand]
    if operation.in_place:
        out.append(f"    def {name}_({hand_parameters(by_hand[name]) if name in by_hand else parameters}) -> Tensor: ...\n")
        out += [f"    {alias}_ = {name}_\n" for alias in operation.aliases]
    return "".join(out)


def text_of_parameters(text):
    node = ast.parse(f"def f({text}): ...").body[0]
    for one in ast.walk(node):
        if isinstance(one, ast.arg) and one.annotation is not None:
            one.annotation = Qualify().visit(one.annotation)
    return ast.unparse(node.args)


def hand_parameters(node):
    return arguments_of(node, node.name)


def operations_stub(operations, methods):
    out = ["class Operations:\n", *(operation_stub(one, methods) for one in operations)]
    for name, fields in {results_of(one): one.returns for one in operations if len(one.returns) > 1}.items():
        out.append("\n" + results_class(name, fields))
    return "".join(out)


def dtype_names():
    """Names of dtypes, and their other names, of the lists in dtypes.py."""
    body = {ast.unparse(node.targets[0]): node.value for node in ast.parse((HAND / "dtypes.py").read_text()).body if isinstance(node, ast.Assign)}
    return [row.elts[1].value for row in body["ALL"].generators[0].iter.elts], list(ast.literal_eval(body["ALIASES"]))


def tensor_stub(tree):
    text = class_stub(class_named(tree.body, "Tensor"), tree, "Tensor", "tensor")
    out = [text.replace("class Tensor(Creation, Calls, Base):", "class Tensor(Creation, Composed, Calls):")]
    out += [f"    def {name}(self) -> Tensor: ...\n" for name in [*dtype_names()[0], "float", "half", "int", "long", "double", "short"]]
    for sign in OPERATORS:
        out += [f"    def __{side}{sign}__(self, other: Operand) -> Tensor: ...{ignored}\n"
                for side, ignored in (("", ""), ("r", "  # type: ignore[misc]"), ("i", "  # type: ignore[misc]"))]
    out += [f"    def __{sign}__(self, other: Operand) -> Tensor: ...{'  # type: ignore[override]' if sign in ('eq', 'ne') else ''}\n"
            for sign in ("eq", "ne", "lt", "le", "gt", "ge")]
    out += [f"    def __{sign}__(self) -> Tensor: ...\n" for sign in ("neg", "invert", "abs", "pos")]
    out += ["    __hash__: Any\n"]
    return "from collections.abc import Sequence\nfrom types import EllipsisType\nfrom typing import Any, Protocol, TypeAlias, Union\n" + TYPES_OF_TENSORS + "\n" + "".join(out)


def static_names(operations, methods):
    """What a program finds as functions elsewhere: names of methods, without operators and words of Python."""
    names = [one for operation in operations for one in (operation.name, *operation.aliases)]
    names += [name for name, node in methods.items() if not name.startswith("_") and name not in HIDDEN and not any(
        ast.unparse(one) == "property" or ast.unparse(one).endswith(".setter") for one in node.decorator_list)]
    return list(dict.fromkeys(names))


def of_tensor_stub(name, operation, placed):
    """A method of the table as a function, whose first argument has PyTorch's name."""
    text = Signature(operation).parameters(True)
    if not text.startswith("self"):
        return f"{name} = Tensor.{operation.name}\n"
    parameters = text_of_parameters(text).removeprefix("self")
    if placed:
        parameters += ("" if "*" in parameters else ", *") + ", inplace: builtins.bool = ..."
    result = "Tensor" if not operation.returns else "list[Tensor]" if operation.returns == ["[]"] else results_of(operation)
    return f"def {name}({FIRST.get(name, 'input')}: Tensor{parameters}) -> {result}: ...\n"


def functional_stub(tree, operations, methods):
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    own |= {one.id for node in tree.body if isinstance(node, ast.Assign) for one in ast.walk(node.targets[0]) if isinstance(one, ast.Name)}
    other = next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "NAMES")
    out = [module_stub("nn/functional", tree)]
    rows = {name: one for one in operations for name in (one.name, *one.aliases)}
    for name in dict.fromkeys([one for one in static_names(operations, methods) if one not in own] + list(other)):
        method = other.get(name, name)
        plain = method in rows and method not in methods
        out.append(of_tensor_stub(name, rows[method], rows[method].in_place) if plain else f"{name} = Tensor.{method}\n")
    return "".join(out)


def package_stub(tree, operations, methods):
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    later = next(node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LATER")
    modules = [one.value for one in later.generators[0].iter.elts]
    dtypes = sum(dtype_names(), [])
    out = [module_stub("__init__", tree, "Any"), f"from . import {', '.join(f'{one} as {one}' for one in modules)}\n", "from .functions import *\n"]
    out += [f"{name}: DType\n" for name in dtypes]
    rows = {name: one for one in operations for name in (one.name, *one.aliases)}
    functions = functions_of(ast.parse((HAND / "functions.py").read_text()).body)
    out += [of_tensor_stub(name, rows[name], False) if name in rows and name not in methods else f"{name} = Tensor.{name}\n"
            for name in static_names(operations, methods) if name not in (*own, *dtypes, *modules, *functions)]
    return "".join(out)


def function_modules_stub(tree, operations, methods, functional):
    """Classes of nn/functions.py: of the table, tensor.py or functional.py is what their settings are."""
    by_name, out = {one.name: one for one in operations}, []
    other_names = {"unflattened_size": "sizes"}
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        words = {one.arg: ast.literal_eval(one.value) for one in node.keywords}
        if "method" not in words and "function" not in words:
            out.append(class_stub(node, tree, "Tensor", "nn/functions"))
            continue
        name = words.get("method") or words["function"]
        hand = methods if "method" in words else functional
        if name in by_name and name not in hand:
            rows = [(a.name, text_of(type_of(a)), a.default is not None) for a in Signature(by_name[name]).rest]
        else:
            function = ast.parse(f"def f({arguments_of(hand[name], name)}): ...").body[0].args
            plain = [*function.args, *function.kwonlyargs]
            defaults = [None] * (len(function.args) - len(function.defaults)) + list(function.defaults) + list(function.kw_defaults)
            rows = [(a.arg, ast.unparse(a.annotation), default is not None) for a, default in zip(plain, defaults) if a.annotation is not None]
            rows = rows if hand is methods else rows[1:]
        settings, types = words.get("names", "").split(), {one: (kind, filled) for one, kind, filled in rows}
        types["inplace"] = "builtins.bool", True
        called, parameters, filled = {"input"}, [], False
        for one in settings:
            key = next((key for key in (one, other_names.get(one), OTHER_NAME.get(one)) if key in types), None)
            if key is None:
                untyped.append(f"nn/functions: {node.name}: {name}() has no {one}")
                continue
            called.add(key)
            kind, has_default = types[key]
            filled = filled or has_default or one in words.get("defaults", {})
            parameters.append(f"{one}: {kind}" + (" = ..." if filled else ""))
        called |= set(words.get("defaults", {})) | {OTHER_NAME.get(one) for one in words.get("defaults", {})} | {"training", "inplace"}
        rest = [f"{one}: {kind}" + (" = ..." if has else "") for one, kind, has in rows if one not in called]
        result = result_of(hand[name], name, "Tensor") if name in hand else "Tensor"
        settings = ", ".join(["self", *parameters])
        out.append(f"class {node.name}(Module):\n    def __init__({settings}) -> None: ...\n")
        out.append(f"    def __call__(self, {', '.join(['input: Tensor', *rest])}) -> {result}: ...\n")
    return "".join(out)


SPECIAL = {
    "device": """class device(str):
    def __init__(self, type: str, index: builtins.int | None = ...) -> None: ...
    @property
    def type(self) -> str: ...
    @property
    def index(self) -> builtins.int | None: ...  # type: ignore[override]
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: Any) -> None: ...
""",
    "Parameter": "class Parameter(Tensor):\n    def __init__(self, data: Any = ..., requires_grad: builtins.bool = ...) -> None: ...\n",
    "ParameterType": "",
    "TinyJit": """P = ParamSpec("P")
R = TypeVar("R")

class TinyJit(Generic[P, R]):
    lock: Any
    def __init__(self, function: Callable[P, R]) -> None: ...
    def __call__(self, *arguments: P.args, **more: P.kwargs) -> R: ...
    def __get__(self, instance: Any, owner: Any = ...) -> Callable[..., R]: ...
    def reset(self) -> None: ...
    @property
    def captured(self) -> builtins.bool: ...
    @property
    def n_kernels(self) -> builtins.int: ...
""",
}


def stub_of(name, operations, methods):
    if name == "operations":
        return operations_stub(operations, methods)
    tree = ast.parse((HAND / f"{name}.py").read_text())
    if name == "tensor":
        return tensor_stub(tree)
    if name == "__init__":
        return package_stub(tree, operations, methods)
    if name == "nn/functional":
        return functional_stub(tree, operations, methods)
    if name == "nn/functions":
        return function_modules_stub(tree, operations, methods, functions_of_module(ast.parse((HAND / "nn/functional.py").read_text())))
    return module_stub(name, tree)


def main():
    room, folder, *modules = sys.argv[1:]
    sys.path.insert(0, room)
    operations, methods, places = signatures.read(room), hand_methods(), places_of_classes()
    FIRST.update(read_first())
    places.update({results_of(one): "operations" for one in operations})
    for name in modules or sorted({path.relative_to(HAND).with_suffix("").as_posix() for path in HAND.rglob("*.py")} - PLAIN | {"operations"}):
        text = stub_of(name, operations, methods)
        output = pathlib.Path(folder) / f"{name if not modules else name.rpartition('/')[2]}.pyi"
        output.parent.mkdir(exist_ok=True)
        output.write_text(HEAD + imports_of(name, text, places) + "\n" + text)
    if untyped:
        sys.exit("\n".join(f"make-stubs: {one}" for one in dict.fromkeys(untyped)))


main()
