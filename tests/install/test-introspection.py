#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls the API through its description for other languages, and makes the description again to see
that the scanner has nothing to complain of.

usage: test-introspection.py BUILD. Run in the build's environment."""
import pathlib
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(sys.argv[1])
if not (BUILD / "libtinycore" / "Tiny-1.0.typelib").exists():
    print("the build has no introspection: package gobject-introspection, option introspection, no sanitizer")
    sys.exit(77)
try:
    import gi
except ImportError:
    print(f"{sys.executable} has no module gi (package python3-gi)")
    sys.exit(77)
gi.require_version("Tiny", "1.0")
from gi.repository import GLib, Tiny  # noqa: E402


def check_calls():
    x = Tiny.Tensor.new_from_data(None, Tiny.DType.U8, [2, 3], bytes(range(6)))
    assert x.get_shape() == [2, 3], x.get_shape()
    total = x.cast(Tiny.DType.I32).sum([1], False)  # operations in between belong to the ones they are given to
    assert total.to_string() == "[ 3, 12]", total.to_string()
    assert total.get_data().get_data() == bytes([3, 0, 0, 0, 12, 0, 0, 0])
    assert Tiny.dtype_from_string("bf16") == (True, Tiny.DType.BF16)
    try:
        x.matmul(x).realize()
    except GLib.Error as error:
        assert error.matches(Tiny.error_quark(), Tiny.Error.INVALID), error
    else:
        raise AssertionError("a wrong shape is no error")
    layers = Tiny.sequential_new()
    Tiny.sequential_append(layers, Tiny.linear_new(3, 4, True))
    assert len(layers.get_parameters()) == 2
    assert layers.forward(x.cast(Tiny.DType.F32)).get_shape() == [2, 4]


def raise_error(function):
    try:
        function()
    except GLib.Error as error:
        return error.message
    raise AssertionError("there is no error")


def check_functions():
    """Functions of the program are called with lists of tensors, and give lists."""
    x = Tiny.Tensor.arange(Tiny.DType.F32, 0, 6, 1).reshape([3, 2])
    [squares] = Tiny.vmap(lambda x, *rest: [x[0].square()], None, [x], None, None)
    assert squares.to_string() == x.square().to_string(), squares.to_string()
    [both] = Tiny.vmap(lambda x, *rest: [x[0].add(x[1])], None, [x, x], [0, Tiny.NO_AXIS], None)
    assert both.get_shape() == [3, 3, 2], both.get_shape()
    [slope], [value] = Tiny.jvp(lambda x, *rest: [x[0].square()], None, [x], [x])
    assert value.to_string() == squares.to_string()
    assert slope.to_string() == squares.add(squares).to_string()

    def backward(gradients, n, inputs, *rest):
        return [gradients[0].mul(inputs[0])]

    [y] = Tiny.custom_gradient(lambda x, *rest: [x[0].square()], None, backward, None, [x])
    [gradient] = y.sum(None, False).gradient([x], None)
    assert gradient.to_string() == x.to_string(), gradient.to_string()
    [y] = Tiny.checkpoint(lambda x, *rest: [x[0].square()], None, [x])
    [gradient] = y.sum(None, False).gradient([x], None)
    assert gradient.to_string() == x.add(x).to_string(), gradient.to_string()

    def fail(x, *rest):
        raise GLib.Error("no more paper")

    [broken] = Tiny.vmap(fail, None, [x], None, None)
    assert raise_error(broken.realize) == "no more paper"
    [broken] = Tiny.vmap(lambda x, *rest: [None], None, [x], None, None)
    assert raise_error(broken.realize) == "vmap: result 0 of the function is no tensor"


def check_scanner():
    """The command that made the description, into another file."""
    commands = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "libtinycore/Tiny-1.0.gir"],
                              stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    command = next(line for line in commands if "--nsversion" in line)
    with tempfile.TemporaryDirectory() as folder:
        again = command.replace("libtinycore/Tiny-1.0.gir", f"{folder}/Tiny-1.0.gir")
        assert again != command, command
        done = subprocess.run(again, shell=True, cwd=BUILD, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    warnings = [line for line in done.stdout.splitlines() if "Warning" in line or "syntax error" in line]
    if done.returncode != 0 or warnings:
        sys.exit("\n".join(warnings or [done.stdout]))


check_calls()
check_functions()
check_scanner()
print("calls work, the scanner is content")
