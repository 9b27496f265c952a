#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes C of the table of operations: make-operations.py header|private|source OUTPUT.

header   tiny-tensor-operations.h, what programs include
private  operations-private.h: op_NAME(), which builds the nodes of each operation inside of a frame
source   operations.c: the frame of each operation, and op_NAME() of those that the table defines"""
import ast
import pathlib
import sys
import textwrap

import operations_table as table

HEAD = "/* SPDX-License-Identifier: MIT\n *\n * {0}: made from operations.pyi; change that. */\n"


# ---- the public header ----
def prototype(operation, ending):
    parameters = [table.KINDS[a.kind][0].format(a.c_name) for a in operation.arguments]
    if operation.returns and operation.returns != ["[]"]:
        parameters += [f"TinyTensor **out_{name}" for name in operation.returns]
        result = "void "
    else:
        result = "GPtrArray *" if operation.returns else "TinyTensor *"
    return f"{result}tiny_tensor_{operation.name} ({', '.join(parameters) or 'void'}){ending}"


def documentation(operation):
    lines = [f"tiny_tensor_{operation.name}:"]
    for a in operation.arguments:
        notes = []
        if a.kind in table.COUNTS:
            notes.append(f"(array length={table.COUNTS[a.kind].format(a.name)})")
        if a.optional and a.kind in ("Tensor", "Tensors", "Axes", "Sizes", "Shape", "Floats", "str"):
            notes.append("(nullable)")
        text = a.doc or table.KINDS[a.kind][2]
        if a.name == "keepdim" and not a.doc:
            text = "whether reduced axes stay, of size 1"
        if a.kind == "Axes" and a.optional:
            text += "; %NULL: all"
        elif a.kind == "Axis" and a.optional:
            text += "; %TINY_NO_AXIS: @self as a vector"
        elif a.kind == "DType" and a.optional:
            text += "; %TINY_DTYPE_VOID: the default"
        lines.append(f"@{a.c_name}: {' '.join(notes)}{': ' if notes else ''}{text}")
        if a.kind in table.COUNTS:
            lines.append(f"@{table.COUNTS[a.kind].format(a.name)}: how many")
    lines += [f"@out_{name}: (out) (transfer full): {name}" for name in operation.returns if name != "[]"]
    lines += ["", *operation.doc.splitlines(), ""]
    if operation.view:
        lines += ["What is assigned to " + ("one of these views" if operation.returns else "this view")
                  + " is assigned to @self, and the other way round (tiny_tensor_assign()).", ""]
    if operation.returns == ["[]"]:
        lines += ["Returns: (transfer container) (element-type TinyTensor): the results, which the array unrefs", ""]
    elif not operation.returns:
        lines += ["Returns: (transfer floating): the result", ""]
    lines.append("Since: 0.1")
    return "/**\n" + "".join(f" * {line}".rstrip() + "\n" for line in lines) + " */\n"


def header(families):
    out = [HEAD.format("tiny-tensor-operations.h"), "#pragma once\n\n#include \"tensor/tiny-tensor.h\"\n\nG_BEGIN_DECLS\n"]
    for family in families:
        comment = "\n * ".join(textwrap.wrap(family.doc.replace("\n", " "), 92))
        out.append(f"\n/* ---- {family.name}: {comment} */\n")
        for operation in family.operations:
            out.append("\n" + documentation(operation) + "TINY_API " + prototype(operation, ";\n"))
    return "".join(out) + "\nG_END_DECLS\n"


# ---- blocks ----
def block_prototype(operation, ending):
    parameters = ["TinyBuild *b"]
    parameters += [table.KINDS[a.kind][1].format(a.c_name) for a in operation.arguments if a.name != "keepdim"]
    result = "TinyNode *"
    if operation.returns:
        result = "void "
        parameters.append("GPtrArray *out" if operation.returns == ["[]"] else "TinyNode **out")
    return f"{result}op_{operation.name} ({', '.join(parameters)}){ending}"


def private(families):
    out = [HEAD.format("operations-private.h"), """\
#pragma once

#include "tensor/tiny-build.h"

G_BEGIN_DECLS

/* Axes are normalised; reduced ones stay, of size 1; an absent tensor is NULL. Several results go to @out. */
"""]
    for operation in every(families):
        if not operation.framed:
            out.append(block_prototype(operation, ";\n"))
    return "".join(out) + "\nG_END_DECLS\n"


# ---- frames ----
def frame(operation):
    """The public function: begins, normalises axes, builds, ends."""
    tensors, lines = operation.tensors, []
    name = operation.name
    several = operation.returns and operation.returns != ["[]"]
    lines.append("  TinyBuild build, *b = &build;")
    if any(a.kind == "Tensors" for a in tensors):
        if len(tensors) > 1:
            raise table.TableError(f"line {operation.line}: a list of tensors is the only tensor argument")
        count, array = f"n_{tensors[0].name}", tensors[0].name
    elif tensors:
        count, array = str(len(tensors)), "tensors"
        lines.append(f"  TinyTensor *tensors[] = {{ {', '.join(a.name for a in tensors)} }};")
    else:
        count, array = "0", "NULL"
    optional = sum(1 << i for i, a in enumerate(tensors) if a.optional)
    if several:
        lines.append(f"  TinyNode *nodes[{len(operation.returns)}] = {{ NULL }};")
        lines.append(f"  TinyTensor **results[] = {{ {', '.join('out_' + r for r in operation.returns)} }};")
    elif operation.returns:
        lines.append("  g_autoptr (GPtrArray) nodes = g_ptr_array_new ();")
    else:
        lines.append("  TinyNode *node = NULL;")
    axes = [a for a in operation.arguments if a.kind in ("Axis", "Axes")]
    for a in axes:
        lines.append("  gint64 at_axes[TINY_MAX_RANK + 1];\n  guint n_at = 0;" if a.kind == "Axes"
                     else f"  guint at_{a.name} = 0;")
    keepdim = operation.has_keepdim and axes
    if keepdim:
        lines.append("  gboolean whole = FALSE;" if axes[0].kind == "Axis" and axes[0].optional else "")
    takes = f"TINY_TAKES_{operation.takes.upper()}" + (" | TINY_TAKES_SYMBOLIC" if operation.symbolic else "")
    takes += " | TINY_TAKES_WEAK" if operation.weak else ""
    takes += "".join(f" | TINY_TAKES_GATE << {i}" for i, a in enumerate(tensors) if a.name == operation.gate)
    conditions = [f'tiny_build_begin_some (b, "{name}", {count}, {array}, 0x{optional:x}, {takes})']
    if operation.autocast:
        conditions.append(f"tiny_build_autocast (b, {str(operation.autocast == 'narrow').upper()})")
    if operation.wide:
        conditions.append("tiny_build_widen (b)")
    if any(a.kind == "Tensors" for a in tensors):
        conditions.append("tiny_build_check_any (b)")
    for a in operation.arguments:
        if a.kind in ("Sizes", "Floats") or a.kind == "Shape" and operation.tensors:
            count_name = table.COUNTS[a.kind].format(a.name)
            conditions.append(f'tiny_build_check_list (b, "{a.name}", {a.name}, {count_name})')
    if len(axes) == 1 and axes[0].kind == "Axis" and not operation.view and operation.returns != ["[]"]:
        conditions.append(f"tiny_build_raise (b, {axes[0].name})")
    for a in axes:
        if a.kind == "Axes":
            conditions.append("tiny_build_axes (b, b->x[0], axes, n_axes, at_axes, &n_at)")
        elif a.optional:
            conditions.append(f"tiny_build_one_axis (b, &b->x[0], {a.name}, &at_{a.name})")
        else:
            conditions.append(f"tiny_build_axis (b, b->x[0], {a.name}, &at_{a.name})")
    if operation.view:
        conditions.append("tiny_view_begin (b)")
    arguments, n = ["b"], 0
    for a in operation.arguments:
        if a.kind == "Tensor":
            arguments.append(f"b->x[{n}]")
            n += 1
        elif a.kind == "Tensors":
            arguments += ["b->x", f"n_{a.name}"]
        elif a.kind == "Axes":
            arguments += ["at_axes", "n_at"]
        elif a.kind == "Axis":
            arguments.append(f"at_{a.name}")
        elif a.kind in table.COUNTS:
            arguments += [a.name, table.COUNTS[a.kind].format(a.name)]
        elif a.name != "keepdim":
            arguments.append(a.name)
    call = f"op_{name} ({', '.join(arguments + (['nodes'] if operation.returns else []))})"
    lines.append(f"  if ({' && '.join(conditions)})" + (" {" if keepdim else ""))
    lines.append(f"    {'' if operation.returns else 'node = '}{call};")
    if keepdim:
        a = axes[0]
        where = "at_axes, n_at" if a.kind == "Axes" else f"(gint64[]){{ at_{a.name} }}, 1"
        if a.kind == "Axis" and a.optional:
            raise_rank = f"tiny_build_keep_all (b, %s, {a.name} == TINY_NO_AXIS ? tensors[0] : NULL)"
        else:
            raise_rank = "%s"
        for target in [f"nodes[{i}]" for i in range(len(operation.returns))] if several else ["node"]:
            lines.append("    if (!keepdim)")
            lines.append(f"      {target} = tiny_build_squeeze (b, {target}, {where});")
            if raise_rank != "%s":
                lines.append(f"    else\n      {target} = {raise_rank % target};")
        lines.append("  }")
    lines = [line for line in lines if line and "whole" not in line]
    if several:
        lines.append(f"  tiny_build_end_many (b, {len(operation.returns)}, nodes, results);")
    elif operation.returns:
        lines.append("  return tiny_build_end_list (b, nodes);")
    else:
        lines.append("  return tiny_build_end (b, node);")
    return prototype(operation, "\n") + "{\n" + "\n".join(lines) + "\n}\n"


# ---- bodies ----
BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.BitAnd: "bitwise_and",
          ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor", ast.Mod: "mod", ast.FloorDiv: "floor_divide"}
COMPARE = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
C_COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
NUMBERS = {"pi": "G_PI", "inf": "INFINITY", "nan": "NAN", "None": "NULL"}
DTYPES = ("BOOL", "I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64", "F16", "BF16", "F32", "F64")


class Body:
    """C statements of a row's statements: every node gets a name, so that nothing is built twice."""

    def __init__(self, operation, by_name):
        self.operation, self.by_name = operation, by_name
        self.lines, self.names, self.n = [], {}, 0
        for a in operation.arguments:
            kind = "node" if a.kind == "Tensor" else "number" if a.kind in ("float", "int") else a.kind
            text = f"{a.c_name}, {table.COUNTS[a.kind].format(a.name)}" if a.kind in table.COUNTS else a.name
            self.names[a.name] = (kind, text)

    def fail(self, node, text):
        raise table.TableError(f"{table.TABLE.name}:{node.lineno}: {self.operation.name}: {text}")

    def keep(self, text):
        self.n += 1
        self.lines.append(f"TinyNode *t{self.n} = {text};")
        return ("node", f"t{self.n}")

    def as_node(self, value, like):
        if value[0] == "node":
            return value[1]
        return f"tiny_build_like (b, {like}, {value[1]})"

    def nodes(self, values):
        like = next((v[1] for v in values if v[0] == "node"), self.names["self"][1])
        return ", ".join(self.as_node(v, like) for v in values)

    def binary(self, name, x, y):
        if name == "div":
            return self.keep(f"tiny_build_div (b, {self.nodes([x, y])})")
        return self.keep(f"op_{name} (b, {self.nodes([x, y])})")

    def name(self, node):
        if node.id in NUMBERS:
            return ("number", NUMBERS[node.id])
        if node.id in DTYPES:
            return ("DType", f"TINY_DTYPE_{node.id}")
        if node.id not in self.names:
            self.fail(node, f"{node.id} is unknown")
        return self.names[node.id]

    def unary(self, node):
        x = self.value(node.operand)
        if isinstance(node.op, ast.USub):
            return ("number", f"-({x[1]})") if x[0] == "number" else self.keep(f"op_neg (b, {x[1]})")
        return self.keep(f"op_{'logical' if isinstance(node.op, ast.Not) else 'bitwise'}_not (b, {x[1]})")

    def choice(self, node):
        """x if test else y: of elements, or, where the test is of numbers, of what is built."""
        test, x, y = self.value(node.test), self.value(node.body), self.value(node.orelse)
        if test[0] == "number":
            kind = "number" if x[0] == y[0] == "number" else "node"
            if kind == "node":
                like = x[1] if x[0] == "node" else y[1]
                x, y = (kind, self.as_node(x, like)), (kind, self.as_node(y, like))
            return (kind, f"({test[1]} ? {x[1]} : {y[1]})")
        return self.keep(f"tiny_build_where (b, {test[1]}, {self.nodes([x, y])})")

    def value(self, node):
        if isinstance(node, ast.Constant) and node.value is None:
            return ("number", "NULL")
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return ("number", repr(float(node.value)))
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.List):
            return ("list", f"(const double[]){{ {', '.join(self.value(e)[1] for e in node.elts)} }}, {len(node.elts)}")
        if isinstance(node, ast.UnaryOp):
            return self.unary(node)
        if isinstance(node, ast.BinOp):
            x, y, name = self.value(node.left), self.value(node.right), BINARY[type(node.op)]
            if x[0] == "number" and y[0] == "number":
                return ("number", f"({x[1]} {SIGNS[name]} {y[1]})")
            return self.binary(name, x, y)
        if isinstance(node, ast.BoolOp):
            name, values = "and" if isinstance(node.op, ast.And) else "or", [self.value(v) for v in node.values]
            result = values[0]
            for value in values[1:]:
                result = self.binary(f"logical_{name}", result, value)
            return result
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            x, y = self.value(node.left), self.value(node.comparators[0])
            if x[0] == y[0] == "number":
                return ("number", f"({x[1]} {C_COMPARE[type(node.ops[0])]} {y[1]})")
            return self.binary(COMPARE[type(node.ops[0])], x, y)
        if isinstance(node, ast.IfExp):
            return self.choice(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        self.fail(node, f"{ast.unparse(node)} is not understood")

    def arguments(self, node, callee, given):
        """The C arguments of a call of another row; defaults are filled in."""
        wanted = [a for a in callee.arguments if a.name != "keepdim"]
        named = {k.arg: self.value(k.value) for k in node.keywords}
        texts, like = [], next((v[1] for v in given if v[0] == "node"), self.names["self"][1])
        for i, a in enumerate(wanted):
            if i < len(given):
                value = given[i]
            elif a.name in named:
                value = named.pop(a.name)
            elif a.default is not None:
                value = self.value(a.default)
            else:
                self.fail(node, f"{callee.name} has no {a.name}")
            absent = value == ("number", "NULL")
            texts.append(self.as_node(value, like) if a.kind == "Tensor" and not absent
                         else f"(gint64) {value[1]}" if a.kind == "int" else value[1])
        if named or len(given) > len(wanted):
            self.fail(node, f"{callee.name} has other arguments")
        return texts

    def call(self, node):
        name, given = ast.unparse(node.func), [self.value(a) for a in node.args]
        if name == "polynomial":
            return self.keep(f"tiny_build_polynomial (b, {', '.join(v[1] for v in given)})")
        if all(v[0] == "number" for v in given):
            return ("number", f"{name} ({', '.join(v[1] for v in given)})")
        if name.isupper():
            function = ("unary", "binary", "sloped")[len(given) - 1]
            op = "" if len(given) == 3 else f"TINY_OP_{name}, "
            return self.keep(f"tiny_build_{function} (b, {op}{self.nodes(given)})")
        callee = self.by_name.get(name)
        if callee is None or callee.returns:
            self.fail(node, f"there is no {name} of one result")
        return self.keep(f"op_{name} ({', '.join(['b'] + self.arguments(node, callee, given))})")

    def statements(self):
        if self.operation.takes != "any":
            names = [a.name for a in self.operation.tensors]
            self.lines.append(f"TinyNode *taken[] = {{ {', '.join(names)} }};")
            self.lines.append(f"tiny_build_take (b, TINY_TAKES_{self.operation.takes.upper()}, {len(names)}, taken);")
            self.names.update({name: ("node", f"taken[{i}]") for i, name in enumerate(names)})
        for node in self.operation.body:
            if isinstance(node, ast.Assign):
                self.names[node.targets[0].id] = self.value(node.value)
            elif isinstance(node, ast.Return):
                result = self.value(node.value)
                self.lines.append(f"return {result[1]};")
            else:
                self.fail(node, "only assignments and a return")
        return self.lines


def block(operation, by_name):
    lines = Body(operation, by_name).statements()
    return block_prototype(operation, "\n") + "{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def every(families):
    return [operation for family in families for operation in family.operations]


def source(families):
    by_name = {operation.name: operation for operation in every(families)}
    out = [HEAD.format("operations.c"), """\
#include "tensor/tiny-tensor-operations.h"

#include <math.h>

#include "tensor/operations-private.h"
#include "tensor/tiny-view.h"
"""]
    for operation in every(families):
        if operation.body:
            out.append("\n" + block(operation, by_name))
        if not operation.framed:
            out.append("\n" + frame(operation))
    return "".join(out)


def main():
    kind, output = sys.argv[1:]
    try:
        text = {"header": header, "private": private, "source": source}[kind](table.read())
    except table.TableError as error:
        sys.exit(f"make-operations: {error}")
    pathlib.Path(output).write_text(text)


main()
