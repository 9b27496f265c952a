# SPDX-License-Identifier: MIT
"""Reads operations.pyi, the table of the tensor's methods, for all that is made from it.

read() gives the families in order, each with its operations; check() is part of it: a row that says
something this file does not know is an error that names the line."""
import ast
import dataclasses
import pathlib

TABLE = pathlib.Path(__file__).with_name("operations.pyi")

# What an annotation means. C: the parameters of the public function; BLOCK: those of the function
# that builds nodes; DOC: what is said of a parameter that the row says nothing about.
KINDS = {
    #             public C                          block                               default documentation
    "Tensor":    ("TinyTensor *{0}",                "TinyNode *{0}",                    "a tensor"),
    "Tensors":   ("TinyTensor *const *{0}, guint n_{0}", "TinyNode *const *{0}, guint n_{0}", "tensors"),
    "Axis":      ("gint {0}",                       "guint {0}",                        "an axis, a negative one from the end"),
    "Axes":      ("const gint *axes, guint n_axes", "const gint64 *axes, guint n_axes", "axes, negative ones from the end"),
    "Shape":     ("const gint64 *{0}, guint n_dims", "const gint64 *{0}, guint n_dims", "sizes"),
    "Sizes":     ("const gint64 *{0}, guint n_{0}", "const gint64 *{0}, guint n_{0}",   "numbers"),
    "Floats":    ("const double *{0}, guint n_{0}", "const double *{0}, guint n_{0}",   "numbers"),
    "DType":     ("TinyDType {0}",                  "TinyDType {0}",                    "a dtype"),
    "int":       ("gint64 {0}",                     "gint64 {0}",                       "a number"),
    "float":     ("double {0}",                     "double {0}",                       "a number"),
    "bool":      ("gboolean {0}",                   "gboolean {0}",                     "whether"),
    "str":       ("const char *{0}",                "const char *{0}",                  "a word"),
}
COUNTS = {"Tensors": "n_{0}", "Axes": "n_axes", "Shape": "n_dims", "Sizes": "n_{0}", "Floats": "n_{0}"}
TAKES = ("any", "number", "float", "integral", "integer")
GRADIENTS = ("smooth", "kinks", "none")
AUTOCASTS = ("", "narrow", "wide")


class TableError(Exception):
    """A row that cannot be."""


@dataclasses.dataclass
class Argument:
    name: str
    kind: str
    optional: bool  # annotated "| None"
    default: object  # an ast node, or None
    doc: str = ""

    @property
    def c_name(self):
        return "axes" if self.kind == "Axes" else self.name


@dataclasses.dataclass
class Operation:
    name: str
    family: "Family"
    arguments: list
    returns: list  # names of several results; ["[]"]: a list of any length; empty: one tensor
    doc: str
    takes: str
    gradient: str
    aliases: list
    body: list  # statements that define it; empty: written in C
    framed: bool  # C writes its frame as well
    wide: bool  # narrow floats are computed in f32
    autocast: str  # what tiny_set_autocast() makes of floats: narrow, wide, or nothing
    symbolic: bool  # takes axes whose size is a variable
    weak: bool  # of plain numbers alone the result is one
    gate: str  # the tensor that is a condition, or nothing
    dtyped: bool  # Python takes dtype
    view: bool  # gives views of the first tensor
    in_place: bool  # Python has NAME_ () as well
    line: int

    @property
    def tensors(self):
        return [a for a in self.arguments if a.kind in ("Tensor", "Tensors")]

    @property
    def has_keepdim(self):
        return any(a.name == "keepdim" for a in self.arguments)


@dataclasses.dataclass
class Family:
    name: str
    doc: str
    operations: list


def fail(node, text):
    raise TableError(f"{TABLE.name}:{node.lineno}: {text}")


def argument_of(node, default, position):
    if node.annotation is None:
        if node.arg != "self" and position > 1:
            fail(node, f"{node.arg} has no annotation")
        return Argument(node.arg, "Tensor", False, default)
    text = ast.unparse(node.annotation)
    optional = text.endswith(" | None")
    kind = text.removesuffix(" | None")
    if kind not in KINDS:
        fail(node, f"{kind} is none of {', '.join(KINDS)}")
    return Argument(node.arg, kind, optional, default)


def words_of(node):
    """The keywords of @op (…) among the decorators."""
    words = {}
    for decorator in node.decorator_list:
        if not isinstance(decorator, ast.Call) or ast.unparse(decorator.func) != "op":
            fail(node, "the only decorator is op(…)")
        for keyword in decorator.keywords:
            words[keyword.arg] = ast.literal_eval(keyword.value)
    return words


def split_doc(text, arguments, node):
    """Lines "@name: what" at the start are about arguments; the rest is the operation's."""
    lines, about = [line.strip() for line in (text or "").splitlines()], None
    by_name = {a.name: a for a in arguments}
    while lines and (lines[0].startswith("@") and lines[0][1:].split(":")[0] in by_name and ":" in lines[0]
                     or about is not None and lines[0]):
        line = lines.pop(0)
        if line.startswith("@") and line[1:].split(":")[0] in by_name and ":" in line:
            name, line = line[1:].split(":", 1)
            about = by_name[name]
        about.doc = (about.doc + " " + line.strip()).strip()
    doc = "\n".join(lines).strip()
    if not doc:
        fail(node, f"{node.name} says nothing of what it is")
    return doc


def returns_of(node):
    if node.returns is None:
        return []
    text = ast.unparse(node.returns)
    if text == "Tensors":
        return ["[]"]
    if isinstance(node.returns, ast.Tuple):
        return [ast.unparse(element) for element in node.returns.elts]
    fail(node, f"returns {text}, which is neither Tensors nor names")


def operation_of(node, family, defaults):
    words = {**defaults, **words_of(node)}
    unknown = set(words) - {"takes", "gradient", "alias", "framed", "symbolic", "view", "wide", "weak", "gate", "dtyped", "in_place", "autocast"}
    if unknown or words["takes"] not in TAKES or words["gradient"] not in GRADIENTS or words.get("autocast", "") not in AUTOCASTS:
        fail(node, f"{node.name}: {words} is not understood")
    given = node.args.args
    filled = [None] * (len(given) - len(node.args.defaults)) + list(node.args.defaults)
    arguments = [argument_of(a, d, i) for i, (a, d) in enumerate(zip(given, filled))]
    doc = split_doc(ast.get_docstring(node), arguments, node)
    body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return Operation(node.name, family, arguments, returns_of(node), doc, words["takes"], words["gradient"],
                     words.get("alias", "").split(), body, words.get("framed", False), words.get("wide", False),
                     words.get("autocast", ""),
                     words["symbolic"], words["weak"], words.get("gate", ""), words.get("dtyped", False), words.get("view", False),
                     words["in_place"], node.lineno)


def read(path=TABLE):
    families, seen = [], set()
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.ClassDef):
            continue
        family = Family(node.name, ast.get_docstring(node), [])
        defaults = {"takes": "any", "gradient": "smooth", "symbolic": False, "weak": False, "in_place": False}
        for row in node.body:
            if isinstance(row, ast.Assign):
                defaults[row.targets[0].id] = ast.literal_eval(row.value)
            elif isinstance(row, ast.FunctionDef):
                operation = operation_of(row, family, defaults)
                for name in [operation.name, *operation.aliases]:
                    if name in seen:
                        fail(row, f"{name} is there twice")
                    seen.add(name)
                family.operations.append(operation)
        families.append(family)
    return families
