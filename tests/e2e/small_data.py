# SPDX-License-Identifier: MIT
"""IDX files for the tests: parts of the real data set where it is installed, or made ones."""
import gzip
import os
import random
import struct

INSTALLED = "/usr/share/datasets/fashion-mnist"
IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"


def is_installed():
    return os.path.exists(os.path.join(INSTALLED, IMAGES + ".gz"))


def images(pixels, n, rows=28, columns=28):
    return struct.pack(">IIII", 0x803, n, rows, columns) + bytes(pixels)


def labels(values):
    return struct.pack(">II", 0x801, len(values)) + bytes(values)


def made(n, n_test, seed=7):
    """Ten classes of noisy images, each brighter in a band of its own: something to learn."""
    numbers = random.Random(seed)

    def part(count):
        answers = [numbers.randrange(10) for _ in range(count)]
        pixels = bytearray()
        for answer in answers:
            noise = bytearray(numbers.getrandbits(6) for _ in range(784))
            for at in range(answer * 78, answer * 78 + 78):
                noise[at] += 190
            pixels += noise
        return images(pixels, count), labels(answers)

    train, test = part(n), part(n_test)
    return {IMAGES: train[0], LABELS: train[1], TEST_IMAGES: test[0], TEST_LABELS: test[1]}


def write(box, files, folder="data", packed=True):
    for name, content in files.items():
        if content is not None:
            data = gzip.compress(content, 1) if packed else content
            box.write(os.path.join(folder, name + (".gz" if packed else "")), data)
    return box.folder(folder)
