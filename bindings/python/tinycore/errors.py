# SPDX-License-Identifier: MIT
"""Exceptions for the codes of the library's errors, with the library's message.

Each is a TinyError, and also what Python programs catch for such a thing: a wrong shape is a ValueError, too
little memory a MemoryError."""
from .library import GLibError, Tiny


class TinyError(RuntimeError):
    """Whatever the library refused or failed at."""

    code = None

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


def exception_of(error):
    """The exception for a GError."""
    if error.domain == "tiny-error-quark":
        return by_code.get(error.code, TinyError)(error.message)
    return TinyError(f"{error.domain}: {error.message}")


get_error = Tiny.Tensor.get_error


def checked(result):
    """@result, unless it carries an error, which is raised here and now."""
    error = get_error(result)
    if error is not None:
        raise exception_of(error)
    return result


def call(function, *arguments):
    """What a function of the library returns that reports errors by itself."""
    try:
        return function(*arguments)
    except GLibError as error:
        raise exception_of(error) from None
