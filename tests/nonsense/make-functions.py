#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes calls of every public function that is no row of the table of operations, with arguments by chance, of the public
headers: make-functions.py LIBRARY OUTPUT DEPFILE, where LIBRARY is the folder of tiny.h. A parameter that this file knows nothing of is
an error: a new function is called from the day it is declared."""
import pathlib
import re
import sys

LIBRARY = pathlib.Path(sys.argv[1])
# Not called here, and why.
LEFT_OUT = {
    "tiny_tensors": "takes any number of arguments, NULL last",
    "tiny_tensor_new_import": "takes a driver's handle, which nobody can check",
    "tiny_tensor_new_from_blob": "takes memory without its size: things.c calls it",
    "tiny_quant_encode": "takes memory without its size: things.c calls it",
    "tiny_tensor_to_dlpack": "what it gives goes to the next two: things.c calls it",
    "tiny_tensor_new_from_dlpack": "takes a structure: things.c calls it",
    "tiny_dlpack_free": "takes a structure: things.c calls it",
    "tiny_data_set_clear": "takes what tiny_data_set_load() filled: called with it",
    "tiny_idx_clear": "takes what tiny_idx_load() filled: called with it",
    "tiny_kernel_info_get_type": "gives a type",
    "tiny_kernel_info_copy": "takes what tiny_tensor_schedule() gave",
    "tiny_kernel_info_free": "takes what tiny_tensor_schedule() gave",
    "tiny_tensor_schedule": "gives a list of what is no tensor: tests/unit/tensor/test-inspect.c",
    "tiny_idx_to_tensor": "takes what tiny_idx_load() filled: called with it",
}
# Functions whose failure need not be an error: NULL and FALSE mean something else, too.
SAYS_NOTHING = {"tiny_loader_next_batch"}
# Functions without an error that compute: not of tensors that have more elements than a test can.
COMPUTES = {"tiny_tensor_to_string"}
# One value: C type, then how it is made.
ONE = {
    "gboolean": "(gboolean) chance_int (c, 2)", "double": "chance_float (c)", "gint64": "chance_size (c)", "gint": "chance_axis (c)",
    "guint": "(guint) chance_count (c)", "guint64": "chance_count (c)", "gsize": "(gsize) chance_count (c)", "TinyDType": "chance_dtype (c)",
    "GBytes *": "chance_bytes (c)", "GHashTable *": "chance_table (c, {text})", "TinyTensor *": "chance_tensor (c)",
    "const char *": "chance_word (c, words_{word})", "const char *const *": "chance_words (c, words_device)",
}
FUNCTIONS = ["TinyFunction", "TinyBackwardFunction", "TinyGradientHook", "TinyJitFunction", "TinyInterruptFunction", "TinyItemFunction", "TinyRateFunction",
             "TinyModuleFunction", "TinyModuleVisitor", "TinyModuleCallback"]
LISTS = {"TinyTensor *const *": ("TinyTensor **", "chance_tensors (c, &{n})"), "const gint64 *": ("gint64 *", "chance_sizes (c, &{n})"),
         "const gint *": ("gint *", "chance_axes (c, &{n})"), "const guint64 *": ("guint64 *", "chance_counts (c, &{n})"),
         "TinyScheduler *const *": ("TinyScheduler **", "chance_things (c, tiny_scheduler_get_type (), &{n})")}
WORDS = {"name": "name", "device": "device", "path": "path", "folder": "path", "directory": "path", "target": "path", "activation": "name",
         "nonlinearity": "name", "code": "code", "pattern": "pattern", "text": "name", "value": "name"}
# Results by address, and what takes them; nothing where they are plain values.
OUT = {"TinyTensor **": "take_tiny_tensors", "GPtrArray **": "take_gptr_arrays", "GHashTable **": "take_ghash_tables",
       "TinyIdx *": "take_tiny_idxs", "TinyDataSet *": "take_tiny_data_sets", "double *": None, "guint *": None, "TinyDType *": None}
TYPES = ["Module", "Optimizer", "Scheduler", "Loader", "Jit", "Recorder", "Trainer", "Model", "Variable", "Progress", "GradScaler"]


def snake(name):
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def declarations():
    """(name, result, [(type, name)], documentation) of each public function."""
    for header in re.findall(r'#include "(.*)"', (LIBRARY / "tiny.h").read_text()):
        if not (LIBRARY / header).exists():
            continue  # made of the table of operations
        text = (LIBRARY / header).read_text()
        documentation = {m[1]: m[0] for m in re.finditer(r"/\*\*\n \* (\w+):[^\n]*\n.*?\*/", text, re.S)}
        bare = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        for match in re.finditer(r"TINY_API\s+(?!G_DECLARE)(\w[^;(]*?)(\w+)\s*\(([^;]*)\)\s*(?:G_GNUC_\w+\s*)?;", bare):
            result, name, parameters = match[1].strip(), match[2], re.sub(r"\s+", " ", match[3])
            split = [] if parameters == "void" else [re.match(r"(.*?)(\w+)$", p.strip()).groups() if p.strip() != "..." else ("...", "")
                                                     for p in parameters.split(",")]
            yield name, " ".join(result.split()), [(t.strip(), n) for t, n in split], documentation[name]


def word(function, parameter):
    if parameter == "name" and function in ("tiny_open_device", "tiny_set_default_device", "tiny_synchronize"):
        return "device"
    if function in ("tiny_get_setting", "tiny_set_setting") and parameter == "name":
        return "setting"
    return WORDS.get(parameter, "name")


def arguments(function, parameters, documentation):
    """Lines that make the arguments, the arguments, lines for afterwards."""
    lines, values, after, count = [], [], [], None
    for i, (kind, name) in enumerate(parameters):
        given = re.search(rf"@{name}:([^@]*)", documentation)
        note = given[1] if given else ""
        following = parameters[i + 1] if i + 1 < len(parameters) else ("", "")
        if count == name:
            count = None
        elif kind in LISTS and following[0] == "guint":
            c_type, maker = LISTS[kind]
            count = following[1]
            lines += [f"guint {count};", f"{c_type}{name} = {maker.format(n=count)};"]
        elif name in ("input_names", "output_names"):
            lines.append(f"const char *const *{name} = chance_names (c, {following[1]});")
            count = following[1]
        elif kind == "TinyTensor *const *" and following[0] == "const char *const *":
            n = parameters[i + 2][1]
            lines += [f"guint {n};", f"TinyTensor **{name} = chance_tensors (c, &{n});"]
        elif kind == "GError **":
            lines += ["GError *error = NULL;", "GError **at_error = chance_int (c, 8) == 0 ? NULL : &error;"]
            values.append("at_error")
            continue
        elif kind in ("gconstpointer", "gpointer") and following == ("gsize", "n_bytes"):
            lines += ["gsize n_bytes;", f"gpointer {name} = chance_memory (c, &n_bytes);"]
            count = "n_bytes"
        elif kind in FUNCTIONS:
            lines.append(f"{kind} {name} = chance_{snake(kind)} (c);")
        elif kind == "gpointer" and name in ("user_data", "backward_data"):
            owned = following[0] == "GDestroyNotify"
            lines.append(f"gpointer {name} = {'g_malloc (1)' if owned else 'NULL'};")
        elif kind == "GDestroyNotify":
            lines.append(f"GDestroyNotify {name} = g_free;")
        elif kind in OUT:
            n = "SLOTS" if name in ("outputs", "out_grads") else "1"
            lines.append(f"{kind}{name} = chance_out (c, {n} * sizeof *{name});")
            if OUT[kind] is not None and "borrowed" not in note:
                after.append(f"{OUT[kind]} (c, {name}, {n});")
        elif (named := re.fullmatch(r"Tiny(\w+) \*", kind)) and named[1] in TYPES:
            full = " (transfer full)" in note
            lines.append(f"{kind}{name} = chance_thing (c, tiny_{snake(named[1])}_get_type ());")
            if full:
                lines.append(f"if ({name} != NULL)\n    g_object_ref ({name});")
        elif kind in ONE:
            text = "TRUE" if "metadata" in name else "FALSE"
            maker = ONE[kind].replace("{text}", text).replace("{word}", word(function, name))
            lines.append(f"{kind}{'' if kind.endswith('*') else ' '}{name} = {maker};")
        elif kind.startswith("Tiny") and "*" not in kind:
            lines.append(f"{kind} {name} = ({kind}) chance_enum (c);")
        else:
            raise SystemExit(f"{function}: {kind} {name}: make-functions.py does not know how to make one")
        values.append(name)
    return lines, values, after


TAKES = {"TinyTensor *": "chance_result (c, {0}, result);", "GPtrArray *": "take_list (c, result);", "char *": "g_free (result);",
         "char **": "g_strfreev (result);", "GHashTable *": "g_clear_pointer (&result, g_hash_table_unref);",
         "GBytes *": "g_clear_pointer (&result, g_bytes_unref);"}


def call(name, result, parameters, documentation):
    lines, values, after = arguments(name, parameters, documentation)
    text = f"{name} ({', '.join(values)});"
    throws = "at_error" in values
    returns = re.search(r"Returns:(.*?)\n \*\n", documentation, re.S)
    gives = re.search(r"transfer (\w+)", returns[1])[1] if returns and "(transfer" in returns[1] else "none"
    object_type = re.fullmatch(r"Tiny(\w+) \*", result)
    makes = gives != "none" and "_get_" not in name
    has_place = throws or makes and (object_type is not None or result == "GPtrArray *")
    lines += [f"chance_about_to_call_of (c, {str(has_place).upper()});",
              text if result == "void" else f"{result}{'' if result.endswith('*') else ' '}result = {text}"]
    if throws:
        failed = "result < 0 && error != NULL" if result == "gint" else "!result && error != NULL" if name in SAYS_NOTHING else "!result"
        lines.append(f"check_failure (c, {failed}, at_error);")
    if gives != "none" and object_type and object_type[1] in TYPES:
        lines.append(f"keep_thing (c, result, {str(not throws).upper()});")
    elif gives != "none" and result in TAKES:
        lines.append(TAKES[result].format(str(gives == "floating").upper()))
    elif result != "void" and not throws:
        lines.append("(void) result;")
    lines += after
    return f"static void\ncall_{name} (Chance *c)\n{{\n" + "".join(f"  {line}\n" for line in lines) + "}\n\n", throws or name in COMPUTES


def main():
    rows, out = [], ["/* SPDX-License-Identifier: MIT\n *\n * functions.c: made from the public headers; change those. */\n#include \"things.h\"\n\n"]
    for declaration in declarations():
        if declaration[0] not in LEFT_OUT:
            text, reads = call(*declaration)
            out.append(text)
            rows.append(f'  {{ "{declaration[0]}", call_{declaration[0]}, {str(reads).upper()} }},\n')
    out += ["const Call functions[] = {\n", *rows, '  { "things", call_things, TRUE },\n', "};\nconst guint n_functions = G_N_ELEMENTS (functions);\n"]
    pathlib.Path(sys.argv[2]).write_text("".join(out))
    headers = " ".join(str(header) for header in sorted(LIBRARY.glob("*/*.h")) + [LIBRARY / "tiny.h"])
    pathlib.Path(sys.argv[3]).write_text(f"{sys.argv[2]}: {headers}\n")


main()
