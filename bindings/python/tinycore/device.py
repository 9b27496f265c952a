# SPDX-License-Identifier: MIT
"""Device: where tensors are computed. Device.DEFAULT, Device["CPU"], Device.get_available_devices ()."""
from __future__ import annotations

from .convert import as_text
from .errors import call
from .library import Tiny


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
        call(Tiny.set_default_device, name)

    def __getitem__(self, name: str) -> OpenDevice:
        return OpenDevice(call(Tiny.open_device, as_text(name, "Device")))

    def canonicalize(self, name: str = None) -> str:
        """The name of a device as tensors have it; opens it."""
        return self.DEFAULT if name is None else call(Tiny.open_device, name)

    def get_available_devices(self) -> list[str]:
        """The names of all devices that can be used."""
        return list(Tiny.list_devices())

    def synchronize(self, name: str = None):
        """Waits until a device has done all that it was given."""
        call(Tiny.synchronize, name)


Device = Devices()
