# SPDX-License-Identifier: MIT
"""Device: where tensors are computed. Device.DEFAULT, Device["CPU"], Device.get_available_devices ()."""
from __future__ import annotations

from functools import lru_cache

from .convert import as_text
from .errors import call
from .library import Tiny


class device(str):
    """The name of a device, as tensors have and take it: a text with PyTorch's parts, which case does not make another. With "with" it is the default for a
    while."""

    def __new__(cls, type: str, index: int = None):
        return str.__new__(cls, type if index is None else f"{type}:{index}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.lower() == other.lower()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self):
        return hash(self.upper())

    @property
    def type(self) -> str:
        """Its kind, in small letters."""
        return self.partition(":")[0].lower()

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """Its number, where the name says one."""
        number = self.rpartition(":")[2]
        return int(number) if number.isdigit() else None

    def __enter__(self):
        vars(self).setdefault("before", []).append(Device.DEFAULT)
        Device.DEFAULT = self
        return self

    def __exit__(self, *error):
        Device.DEFAULT = vars(self)["before"].pop()


named_device = lru_cache(maxsize=64)(device)


class OpenDevice:
    """A device that is open."""

    name: str

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def synchronize(self):
        """Waits until it has done all that it was given."""
        call(Tiny.synchronize, self.name)

    def __repr__(self):
        return f"Device[{self.name!r}]"


class Devices:
    """All devices. DEFAULT is the one that tensors are made on; it can be set."""

    @property
    def DEFAULT(self) -> str:
        return call(Tiny.get_default_device)

    @DEFAULT.setter
    def DEFAULT(self, name: str):
        call(Tiny.set_default_device, as_text(name, "Device"))

    def __getitem__(self, name: str) -> OpenDevice:
        return OpenDevice(call(Tiny.open_device, as_text(name, "Device")))

    def canonicalize(self, name: str = None) -> str:
        """The name of a device as tensors have it; opens it."""
        return self.DEFAULT if name is None else call(Tiny.open_device, as_text(name, "Device"))

    def get_available_devices(self) -> list[str]:
        """The names of all devices that can be used."""
        return list(Tiny.list_devices())

    def synchronize(self, name: str = None):
        """Waits until a device has done all that it was given."""
        call(Tiny.synchronize, name if name is None else as_text(name, "Device"))


Device = Devices()
