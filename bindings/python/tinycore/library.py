# SPDX-License-Identifier: MIT
"""The library as introspection describes it: the one place that opens it."""
import sys

try:
    import gi
except ImportError as error:
    raise ImportError(f"tinycore needs PyGObject, the module gi, which {sys.executable} lacks: the system's own interpreter, /usr/bin/python3, has it with the "
                      f"package python3-gi; for this one, {sys.executable} -m pip install PyGObject", name="gi") from error
try:
    gi.require_version("Tiny", "1.0")
    from gi.repository import GLib, Tiny
except (ImportError, ValueError) as error:
    raise ImportError("tinycore needs the description of libtinycore, Tiny-1.0.typelib: package gir1.2-tiny-1.0, or "
                      f"GI_TYPELIB_PATH where the library lies elsewhere ({error})", name="Tiny") from error

GLibError = gi._error.GError
__all__ = ["GLib", "GLibError", "Tiny"]
