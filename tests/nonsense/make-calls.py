#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes calls of every method of a tensor, with arguments by chance, of the table of operations: make-calls.py ROOM OUTPUT."""
import pathlib
import re
import sys

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import operations_table as table  # noqa: E402

LISTS = {"Axes": "axes", "Shape": "sizes", "Sizes": "sizes", "Floats": "floats", "Tensors": "tensors"}
TYPES = {"Axes": "gint", "Shape": "gint64", "Sizes": "gint64", "Floats": "double", "Tensors": "TinyTensor *"}
ONE = {"Tensor": "chance_tensor (c)", "Axis": "chance_axis (c)", "DType": "chance_dtype (c)", "int": "chance_size (c)",
       "float": "chance_float (c)", "bool": "chance_int (c, 2)"}
# Words that no text of a row spells out.
WORDS = {
    "index": ["i", "s", ":", "t", "n", ".", "is:", ".i", "t:t", "ss", "tn.", "nnnnnnnnnnnnnnnnn"],
    "einsum": ["i,i->", "ij,jk->ik", "ij->ji", "ii->i", "...i,i...->...", "->", "ij->k", "i..j", ",", "i,i,i,i,i"],
    "rearrange": ["a b -> b a", "(a b) c -> a b c", "... a -> a ...", "a -> a a", "-> ", "a b", "((a) b)", "a -> (a 1)"],
    "names": ["a", "a b", "h w", " ", "a a"],
}


def words_of(operation, argument):
    words = re.findall(r"[a-z_]{2,}", argument.doc) + WORDS.get(operation.name, []) * (argument.name != "names")
    return words + WORDS.get(argument.name, []) + (["backward", "ortho", "forward"] if argument.name == "norm" else [])


def call(operation):
    lines, arguments = [], []
    for a in operation.arguments:
        if a.kind in LISTS:
            # The count is known when the list is made: before the arguments of the call, whose order is not.
            lines.append(f"guint n_{a.name};")
            lines.append(f"{TYPES[a.kind]} {'' if a.kind == 'Tensors' else '*'}{'*' if a.kind == 'Tensors' else ''}{a.name} "
                         f"= chance_{LISTS[a.kind]} (c, &n_{a.name});")
            arguments += [a.name, f"n_{a.name}"]
            continue
        kind, _ = table.KINDS[a.kind][0].rsplit("{0}", 1)
        if a.kind == "str":
            words = ", ".join(f'"{w}"' for w in dict.fromkeys(words_of(operation, a)))
            lines.append(f"static const char *const words_{a.name}[] = {{ {words}{', ' if words else ''}NULL }};")
            value = f"chance_word (c, words_{a.name})"
        else:
            value = ONE[a.kind]
        lines.append(f"{kind}{a.name} = {value};")
        arguments.append(a.name)
    several = operation.returns and operation.returns != ["[]"]
    if several:
        lines += [f"TinyTensor *out_{name} = NULL;" for name in operation.returns]
        wanted = [f"chance_int (c, 8) == 0 ? NULL : &out_{name}" for name in operation.returns]
        lines += [f"TinyTensor **at_{name} = {text};" for name, text in zip(operation.returns, wanted)]
        arguments += [f"at_{name}" for name in operation.returns]
    lines.append("chance_about_to_call (c);")
    made = f"tiny_tensor_{operation.name} ({', '.join(arguments)})"
    if several:
        lines.append(made + ";")
        lines += [f"chance_take (c, at_{name} != NULL, out_{name});" for name in operation.returns]
    else:
        lines.append(f"chance_take_{'list' if operation.returns else 'floating'} (c, {made});")
    return f"static void\ncall_{operation.name} (Chance *c)\n{{\n" + "".join(f"  {line}\n" for line in lines) + "}\n\n"


def main():
    operations = [operation for family in table.read() for operation in family.operations]
    out = ["/* SPDX-License-Identifier: MIT\n *\n * calls.c: made from operations.pyi; change that. */\n#include \"chance.h\"\n\n"]
    out += [call(operation) for operation in operations]
    # What C writes whole reads values while it builds.
    out.append("const Call calls[] = {\n")
    out += [f'  {{ "{o.name}", call_{o.name}, {"TRUE" if o.framed else "FALSE"} }},\n' for o in operations]
    out.append("};\nconst guint n_calls = G_N_ELEMENTS (calls);\n")
    pathlib.Path(sys.argv[2]).write_text("".join(out))


main()
