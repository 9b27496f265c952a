# SPDX-License-Identifier: MIT
"""A device chosen by name, and two at once: copies between them are made where they are asked for."""
from tinycore import Device, Tensor

print(sorted(name for name in ("CPU", "REF") if name in Device.get_available_devices()))
Device.DEFAULT = "CPU"
x = Tensor([1.0, 2, 3])
y = x.to("REF")
print(x.device, y.device, (y * 2).to("CPU").tolist())
try:
    x + y
except Exception as error:
    print(error)
