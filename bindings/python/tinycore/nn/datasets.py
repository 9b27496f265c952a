# SPDX-License-Identifier: MIT
"""Data sets: those that the system's packages have, and one that is fetched when it is asked for."""
from __future__ import annotations

import os

from ..data import open_regular
from ..errors import FileError, FormatError, call, checked, explained
from ..library import Tiny
from ..tensor import Tensor
from .files import tar_extract

CIFAR = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
CIFAR_MD5 = "c32a1d4ab5d03f1284b67883e8d87530"  # as its page says; it keeps from damage, not from attackers
CIFAR_PARTS = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")
CIFAR_ITEM = 1 + 3 * 32 * 32


def images(name, directory, device):
    found = call(Tiny.data_set_load, name, directory).out_data_set
    out = []
    for part in (found.images, found.labels, found.test_images, found.test_labels):
        tensor = checked(part.to_tensor(device))
        out.append(tensor if tensor.ndim == 1 else tensor.unsqueeze(1))
    found.clear()
    return tuple(out)


@explained
def fashion_mnist(directory: str = None, device: str = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training images (60000, 1, 28, 28) and labels, test images and labels, as uint8."""
    return images("fashion-mnist", directory, device)


@explained
def mnist(directory: str = None, device: str = None, fashion=False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The digits, in the form of fashion_mnist(): from their four IDX files in @directory, or in mnist/ of the library's cache folder. The distribution has no package of the digits; of clothes it has one, which mnist (fashion=True) reads."""
    if directory is None and not fashion:
        from ..fetch import cache_folder
        directory = os.path.join(cache_folder().parent, "mnist")
        if not os.path.isdir(directory):
            raise FileError(f"mnist: the digits are not on this machine: put train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz and "
                            f"t10k-labels-idx1-ubyte.gz into {directory}, name their folder, or take mnist (fashion=True), the clothes of package dataset-fashion-mnist")
    return images("fashion-mnist", directory, device)


def archive_of(url):
    """The path of what is at @url: a file, or what is kept of an address in the library's cache."""
    from urllib.parse import unquote, urlsplit
    parts = urlsplit(url)
    if parts.scheme == "file":
        return unquote(parts.path)
    from ..fetch import TIMEOUT, kept_file
    return kept_file(url, TIMEOUT, None)


def check_md5(path, wanted):
    import hashlib
    with open(path, "rb", opener=open_regular) as file:
        found = hashlib.md5(file.read(), usedforsecurity=False).hexdigest()
    if found != wanted:
        raise FormatError(f"{path} is damaged: its MD5 is {found}, not {wanted}")


@explained
def cifar(device: str = None, directory: str = None, url: str = CIFAR) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """CIFAR-10 (Krizhevsky 2009): training images (50000, 3, 32, 32) and labels, test images and labels, as uint8. Its archive of
    162 MB is in @directory, or is fetched from @url once and kept in the library's cache."""
    path = os.path.join(directory, os.path.basename(url)) if directory is not None else archive_of(url)
    if url == CIFAR:
        check_md5(path, CIFAR_MD5)
    files = {os.path.basename(name): tensor for name, tensor in tar_extract(path).items()}
    items = []
    for name in CIFAR_PARTS:
        part = files.get(f"{name}.bin")
        if part is None or part.numel() == 0 or part.numel() % CIFAR_ITEM != 0:
            raise FormatError(f"{path}: “{name}.bin” is {'missing' if part is None else 'no whole number of images'}")
        items.append(part.reshape(-1, CIFAR_ITEM))
    out = []
    for part in (Tensor.cat(*items[:5]), items[5]):
        out += [part[:, 1:].reshape(-1, 3, 32, 32).contiguous(), part[:, 0].contiguous()]
    out[0].realize(*out[1:])
    return tuple(out if device is None else (one.to(device) for one in out))
