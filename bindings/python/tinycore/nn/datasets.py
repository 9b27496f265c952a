# SPDX-License-Identifier: MIT
"""Data sets that the system's packages have."""
from ..errors import call, checked
from ..library import Tiny


def images(name, directory, device):
    found = call(Tiny.data_set_load, name, directory).out_data_set
    out = []
    for part in (found.images, found.labels, found.test_images, found.test_labels):
        tensor = checked(part.to_tensor(device))
        out.append(tensor if tensor.ndim == 1 else tensor.unsqueeze(1))
    found.clear()
    return tuple(out)


def fashion_mnist(directory=None, device=None):
    """Training images (60000, 1, 28, 28) and labels, test images and labels, as uint8."""
    return images("fashion-mnist", directory, device)


def mnist(directory=None, device=None, fashion=False):
    """As fashion_mnist(); the digits themselves from a folder with their four IDX files."""
    if directory is None and not fashion:
        raise ValueError("mnist: the system has no package with the digits: name the folder that has their files, "
                         "or take fashion=True")
    return images("fashion-mnist", directory, device)
