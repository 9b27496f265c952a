# SPDX-License-Identifier: MIT
"""Makes the wheel and the source archive: what pip and build ask for (PEP 517), without anything to be fetched.

The methods and the stubs are made from the table in the library's tree; a source archive has them made already. The wheel has no machine
code and fits every Python 3; it finds the installed library by introspection."""
import base64
import hashlib
import io
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent
TABLE = TREE / "libtinycore" / "tensor"
BEGINNING = (1980, 1, 1, 0, 0, 0)  # of zip's time: equal trees make equal files


def version():
    info = HERE / "PKG-INFO"
    if info.exists():
        return re.search(r"^Version: (.*)$", info.read_text(), re.M)[1]
    return re.search(r"^  version: '([^']*)'", (TREE / "meson.build").read_text(), re.M)[1]


def metadata():
    return (f"Metadata-Version: 2.1\nName: tinycore\nVersion: {version()}\nLicense: MIT\n"
            "Summary: Small deep-learning core: lazy tensors, fused kernels, accelerators that are plugins\n"
            "Requires-Python: >=3.10\nRequires-Dist: PyGObject>=3.42\nProvides-Extra: numpy\n"
            'Requires-Dist: numpy; extra == "numpy"\n')


def package():
    """The content of every file of the package, by path."""
    files = {path.relative_to(HERE).as_posix(): path.read_bytes() for path in sorted((HERE / "tinycore").rglob("*"))
             if path.suffix in (".py", ".pyi") or path.name == "py.typed"}
    if "tinycore/operations.py" not in files:
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder) / "tinycore"
            made.mkdir()
            subprocess.run([sys.executable, HERE / "make-operations.py", TABLE, made / "operations.py"], check=True)
            subprocess.run([sys.executable, HERE / "make-stubs.py", TABLE, made], check=True)
            files.update({path.relative_to(folder).as_posix(): path.read_bytes() for path in made.rglob("*.py*")})
    return dict(sorted(files.items()))


def digest(content):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = f"tinycore-{version()}"
    files = package()
    files[f"{name}.dist-info/METADATA"] = metadata().encode()
    files[f"{name}.dist-info/WHEEL"] = (b"Wheel-Version: 1.0\nGenerator: build_package\nRoot-Is-Purelib: true\n"
                                        b"Tag: py3-none-any\n")
    record = "".join(f"{path},{digest(content)},{len(content)}\n" for path, content in files.items())
    files[f"{name}.dist-info/RECORD"] = f"{record}{name}.dist-info/RECORD,,\n".encode()
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / f"{name}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, BEGINNING)
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
    return f"{name}-py3-none-any.whl"


def build_sdist(sdist_directory, config_settings=None):
    name = f"tinycore-{version()}"
    files = {**package(), "PKG-INFO": metadata().encode()}
    files.update({path: (HERE / path).read_bytes() for path in ("pyproject.toml", "build_package.py")})
    with tarfile.open(pathlib.Path(sdist_directory) / f"{name}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return f"{name}.tar.gz"
