# SPDX-License-Identifier: MIT
"""DLPack's protocol: capsules around the structures that the library reads and writes.

A capsule is named "dltensor", or "dltensor_versioned" since version 1; whoever takes what is in it renames it to
"used_…". What nobody took is freed with the capsule."""
import ctypes

from .convert import one_name
from .errors import TinyError, UnsupportedError, checked, exception_of
from .library import GLibError, Tiny

NAMES = (b"dltensor", b"dltensor_versioned")
USED = (b"used_dltensor", b"used_dltensor_versioned")
HOST = (1, 0)  # DLPack's name for the host's memory

DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
API = ctypes.pythonapi


def function(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, API))


new_capsule = function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
is_valid = function("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
get_pointer = function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
set_name = function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
# A destructor is given an object without a reference, which must not become one.
is_valid_raw = function("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
get_pointer_raw = function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)


@DESTRUCTOR
def free_capsule(capsule):
    for is_versioned, name in enumerate(NAMES):
        if is_valid_raw(capsule, name):
            Tiny.dlpack_free(get_pointer_raw(capsule, name), bool(is_versioned))


def export(tensor, max_version):
    """A capsule with the tensor's memory."""
    is_versioned = max_version is not None and max_version[0] >= 1
    try:
        address = Tiny.Tensor.to_dlpack(tensor, is_versioned)
    except GLibError as error:
        error = exception_of(error)
        if isinstance(error, UnsupportedError):
            raise BufferError(str(error)) from error
        raise error from None
    return new_capsule(address, NAMES[is_versioned], ctypes.cast(free_capsule, ctypes.c_void_p))


def capsule_of(source):
    """What @source exports, in the newest form that both sides know."""
    if not hasattr(source, "__dlpack__"):
        return source
    try:
        return source.__dlpack__(max_version=(1, 0))
    except TypeError:  # from before there were versions
        return source.__dlpack__()


def take(source, device, copy):
    """A tensor of another library's array or capsule."""
    # Arguments first: nobody frees what a capsule has given up.
    device = one_name(device)
    kind = Tiny.DlpackCopy.IF_NEEDED if copy is None else Tiny.DlpackCopy.ALWAYS if copy else Tiny.DlpackCopy.NEVER
    capsule = capsule_of(source)
    for is_versioned, name in enumerate(NAMES):
        if is_valid(capsule, name):
            break
    else:
        raise TypeError(f"from_dlpack wants an array with __dlpack__(), or a capsule that was not used, "
                        f"not {type(source).__name__}")
    address = get_pointer(capsule, name)
    set_name(capsule, USED[is_versioned])
    try:
        return checked(Tiny.Tensor.new_from_dlpack(address, bool(is_versioned), device, kind))
    except TinyError as error:
        if isinstance(error, UnsupportedError):
            raise BufferError(str(error)) from error
        raise
