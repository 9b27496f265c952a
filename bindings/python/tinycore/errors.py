# SPDX-License-Identifier: MIT
"""Exceptions for the codes of the library's errors, with the library's message.

Each is a TinyError, and also what Python programs catch for such a thing: a wrong shape is a ValueError, too
little memory a MemoryError."""
from __future__ import annotations

import math
import re
import threading
from functools import wraps
from itertools import count
from types import FunctionType

from .library import GLibError, Tiny


class TinyError(RuntimeError):
    """Whatever the library refused or failed at."""

    code: Any = None

    def __init_subclass__(cls, code=None, **more):
        super().__init_subclass__(**more)
        if code is not None:
            cls.code = code
            by_code[code] = cls


by_code = {}


class NoDeviceError(TinyError, LookupError, code=Tiny.Error.NO_DEVICE):
    """No device fits what was asked for."""


class PluginError(TinyError, ImportError, code=Tiny.Error.PLUGIN):
    """A backend's file, manifest or table is unusable."""


class AbiError(TinyError, ImportError, code=Tiny.Error.ABI):
    """A backend was built for another contract."""


class AccessError(TinyError, PermissionError, code=Tiny.Error.PERMISSION):
    """The system refuses access."""


class DriverError(TinyError, OSError, code=Tiny.Error.DRIVER):
    """A driver or library that a backend needs is absent or of a wrong version."""


class OutOfMemoryError(TinyError, MemoryError, code=Tiny.Error.OUT_OF_MEMORY):
    """No memory of the wanted kind."""


class CompileError(TinyError, code=Tiny.Error.COMPILE):
    """A kernel does not compile."""


class LaunchError(TinyError, code=Tiny.Error.LAUNCH):
    """A device refused or failed a launch."""


class DeviceLostError(TinyError, code=Tiny.Error.DEVICE_LOST):
    """A device stopped working."""


class TimeLimitError(TinyError, TimeoutError, code=Tiny.Error.TIMEOUT):
    """Something took longer than allowed."""


class InvalidError(TinyError, ValueError, code=Tiny.Error.INVALID):
    """An argument, shape or dtype does not fit."""


class UnsupportedError(TinyError, NotImplementedError, code=Tiny.Error.UNSUPPORTED):
    """The target cannot do this."""


class FormatError(TinyError, ValueError, code=Tiny.Error.FORMAT):
    """A file or text is malformed."""


class FileError(TinyError, OSError, code=Tiny.Error.IO):
    """The system could not read or write."""


by_code[Tiny.Error.INTERRUPTED] = KeyboardInterrupt  # see interrupt.py


class OutsideError(InvalidError, IndexError):
    """An axis, or a position along one, that there is not."""

    code = InvalidError.code


OUTSIDE = re.compile(r"(?:axis|position) -?\d+ (?:on axis \d+ )?is outside of (?!variable)")


def exception_of(error):
    """The exception for a GError; what a function of the program raised is that exception itself."""
    if error.domain == RAISED:
        number, found = raised.last
        raised.last = 0, None
        return found if number == error.code else InvalidError(error.message)
    if error.domain == "tiny-error-quark":
        if error.code == InvalidError.code and OUTSIDE.search(error.message):
            return OutsideError(error.message)
        return by_code.get(error.code, TinyError)(error.message)
    return TinyError(f"{error.domain}: {error.message}")


get_error = Tiny.Tensor.get_error


def checked(result):
    """@result, unless it carries an error, which is raised here and now."""
    error = get_error(result)
    if error is not None:
        raise exception_of(error)
    return result


# ---- functions of the program that the library calls ----
RAISED = "tinycore-raised-quark"


class Raised(threading.local):
    last = 0, None  # a number, and what a function of the program raised last when the library called it on this thread
    unsaid = None  # likewise, where the library has no way to carry it


raised, numbers = Raised(), count(1)


def heard(function, name):
    """@function of the program as the library calls it: what it raises is raised again where the library was called, by call() and checked().
    The library carries a number for it from here to there."""
    def called(*arguments):
        try:
            return function(*arguments)
        except BaseException as error:
            vars(error)["is_of_program"] = True
            raised.last = next(numbers) & 0x3fffffff, error
            raise GLibError(f"{name}: {type(error).__name__}: {error}", domain=RAISED, code=raised.last[0]) from None
    return called


def heard_number(function):
    """Likewise a function that gives a number, and has no other way to fail than a NaN, which the library refuses."""
    def called(*arguments):
        try:
            return float(function(*arguments))
        except BaseException as error:
            raised.unsaid = error
            return math.nan
    return called


def fail(error: Exception):
    """Raises the exception for @error, which a function of the library raised."""
    found, raised.unsaid = raised.unsaid or exception_of(error), None
    context = found.__context__
    try:
        raise found
    finally:
        found.__context__ = context  # which is not that the library raised it


def call(function, *arguments):
    """What a function of the library returns that reports errors by itself."""
    try:
        return function(*arguments)
    except GLibError as error:
        fail(error)


# ---- what was given to a function of the package ----
# Messages of conversions, which name no argument, and what is wanted.
RAW = (
    (r"Must be number, not (?P<type>\w+)|could not convert (?P<text>str)ing to float", "a number"),
    (r"argument must be a string or a real number, not '(?P<type>\w+)'", "a number"),
    (r"'(?P<type>\w+)' object cannot be interpreted as an integer", "a whole number"),
    (r"Must be string, not (?P<type>\w+)|expected str, bytes or os.PathLike object, not (?P<text>\w+)", "a text"),
    (r"Argument \d+ does not allow (?P<text>None) as a value", "a value"),
    (r"object of type '(?P<text>\w+)' has no len|'(?P<type>\w+)' object is not iterable|can only join an iter(?P<able>able)", "a list"),
    (r"argument of type '(?P<type>\w+)' is not iterable|Must be mapping, not (?P<text>\w+)", "a dict"),
    (r"'(?P<type>\w+)' object is not callable", "a function"),
    (r"'(?P<type>\w+)' object is not subscriptable|'(?P<text>\w+)' object has no attribute '(?:items|keys|get)'", "a dict or a list"),
    (r"Expected (?:[\w.]*\.)?Tensor, but got (?P<type>\w+)", "a tensor"),
    (r"'(?P<type>\w+)' object has no attribute 'handle'", "an optimiser or a schedule"),
    (r"'(?P<type>\w+)' object has no attribute 'optimizer'", "a schedule"),
    (r"not supported between instances of '(?P<left>\w+)' and '(?P<right>\w+)'", "a number"),
    (r"bad operand type for [^:]*: '(?P<type>\w+)'|unsupported operand type\(s\) for [^:]*: '(?P<left>\w+)' and '(?P<right>\w+)'",
     "a tensor or a number"),
    (r"'(?P<type>\w+)' object has no attribute '\w+'", "a tensor"))
OURS = r"(a whole number(?: of \d+ bits)?|a number) is wanted, not (.*)"
RANGE = r"(?:Item \d+: )?(?P<shown>-?\d+) (?:not in range (?P<least>-?\d+) to (?P<most>\d+)|does not fit .*)"


def meant(name, names):
    """The end of a message about an unknown @name: which of @names is like it."""
    from difflib import get_close_matches  # only where something is wrong
    found = get_close_matches(name, names, 1)
    return f". Did you mean {found[0]}?" if found else ""


def located(module, error):
    """Puts the way from @module to the layer inside of it that raised @error before the message, as in layers.0.linear: matmul: …; the name of
    @module's class where there is none."""
    inside, text, way = getattr(error, "place", (None, str(error), ""))
    if inside is not None:
        name = next((name for name, one in module.named_modules() if one is inside and name), None)
        way = way if name is None else f"{name}.{way}" if way else name
    own = type(module).__name__
    is_said = own.casefold() == text.partition(":")[0].replace("_", "").casefold()  # linear of a Linear
    error.args = (f"{way}: {text}" if way else text if is_said else f"{own}: {text}",)
    error.place = module, text, way


def named_as(name, function, *arguments):
    """Calls @function; an error of it names the operation @name, which does so."""
    try:
        return function(*arguments)
    except InvalidError as error:
        own, _, text = str(error).partition(": ")
        error.args = (f"{name}: {text or own}",)
        raise


def is_wrong(value, kinds, shown):
    """Whether @value, or what is in it, is what a message is about."""
    if shown is not None:
        found = f"{value!r:.60}" == shown
    else:
        found = type(value).__name__ in kinds
    return found or isinstance(value, (list, tuple, bytes)) and any(is_wrong(one, kinds, shown) for one in value)


def of_keyword(function: Callable[..., Any], more: dict[str, Any], error: Exception):
    """@error of a keyword among @more that @function does not have, with that which was meant; None if it is another error."""
    from inspect import signature
    unknown = re.fullmatch(r".* got an unexpected keyword argument '(\w+)'", str(error))
    if unknown is None or unknown[1] not in more:
        return None
    return type(error)(str(error) + meant(unknown[1], signature(function).parameters))


def named(function, arguments, more, error):
    """What a conversion said, with the function and the argument that it is about; None where that is not clear."""
    from inspect import signature
    unknown = of_keyword(function, more, error)
    if unknown is not None:
        return unknown
    text, kinds, shown, wanted = str(error), (), None, None
    ours, beyond = re.fullmatch(OURS, text, re.S), re.fullmatch(RANGE, text)
    if ours is not None:
        wanted, shown = ours.groups()
    elif beyond is not None:
        shown, within = beyond["shown"], beyond["least"] is not None
        wanted = f"a number from {beyond['least']} to {beyond['most']} is wanted, not {shown}" if within else text
    for pattern, what in RAW if wanted is None else ():
        match = re.search(pattern, text)
        if match is not None:
            kinds, wanted = [{"None": "NoneType"}.get(kind, kind) for kind in match.groupdict().values() if kind], what
            break
    if wanted is None:
        return None
    bound = signature(function).bind(*arguments, **more)
    defaults = {name: one.default for name, one in bound.signature.parameters.items()}
    for name, value in bound.arguments.items():
        if name != "self" and is_wrong(value, kinds, shown) and (beyond or "bits" in wanted or type(defaults[name]) is not type(value)):
            owner = type(arguments[0]).__name__ if function.__name__ in ("__init__", "forward") else function.__name__
            return type(error)(f"{owner}: {name}: {wanted}" + (f" is wanted, not {value!r:.60}" if beyond is None else ""))
    return None


def about_self(error: TypeError, tensor: Any, name: str) -> TypeError:
    """@error of what the library was given; the library's words about a first argument that is no tensor name nothing."""
    return error if isinstance(tensor, Tiny.Tensor) else TypeError(f"{name}: a tensor is wanted first, not {tensor!r:.60}")


def owned(methods: Iterable[Any], module: str):
    """Makes @methods of a base class those of Tensor, which is what Python's messages then say."""
    for one in list(methods):
        one = getattr(one, "__func__", one)
        while isinstance(one, FunctionType):
            one.__module__, one.__qualname__ = module, f"Tensor.{one.__name__}"
            one = getattr(one, "__wrapped__", None)


def suggesting(function):
    """@function, which says which keyword was meant."""
    @wraps(function)
    def call_it(*arguments, **more):
        try:
            return function(*arguments, **more)
        except TypeError as error:
            better = of_keyword(function, more, error) if more else None
            if better is None:
                raise
            raise better from None
    return call_it


def suggest_keywords(owner: type):
    """For a class of methods: those of axes say which keyword was meant, as NumPy's keepdims."""
    for name, one in list(vars(owner).items()):
        code = getattr(one, "__code__", None)
        if code is not None and not {"dim", "keepdim"}.isdisjoint(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]):
            setattr(owner, name, suggesting(one))


def explained(function):
    """@function, whose arguments are named in what conversions of them raise."""
    @wraps(function)
    def call_it(*arguments, **more):
        try:
            return function(*arguments, **more)
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            if type(error) not in (TypeError, ValueError, AttributeError, OverflowError) or hasattr(error, "is_of_program"):
                raise
            better = named(function, arguments, more, error)
            if better is None:
                raise
            raise (TypeError(str(better)) if isinstance(better, AttributeError) else better) from None
    return call_it


def explain_making(cls):
    """For classes of the package: __init__() and forward() say what is wrong with their arguments."""
    for name in ("__init__", "forward"):
        if cls.__module__.startswith(__package__ + ".") and name in vars(cls):
            setattr(cls, name, explained(vars(cls)[name]))


def explain_all(namespace):
    """For a module's globals: so do its functions."""
    for name, one in list(namespace.items()):
        if type(one) is type(explain_all) and one.__module__ == namespace["__name__"] and not name.startswith("_"):
            namespace[name] = explained(one)


def wants_function(function, name):
    """A TypeError unless @function is one; @name begins it."""
    if not callable(function):
        raise TypeError(f"{name}: a function is wanted, not {function!r:.60}")
