# SPDX-License-Identifier: MIT
"""Number formats, under the names that PyTorch, NumPy and tinygrad have for them."""
from __future__ import annotations

from .library import Tiny


class DType:
    """A number format; equal ones are the same object, which nothing changes."""

    name: str
    itemsize: int
    kind: str
    fmt: str | None

    __slots__ = ("value", "name", "itemsize", "kind", "fmt")

    def __init__(self, value: Any, name: str, itemsize: int, kind: str, fmt: str | None):
        # value: of the library's enumeration. kind: 'b' bool, 'i' signed, 'u' unsigned, 'f' float. fmt: of struct and memoryview; None
        # where Python has no such number.
        for slot, held in zip(self.__slots__, (value, name, itemsize, kind, fmt)):
            object.__setattr__(self, slot, held)

    def __setattr__(self, name, value):
        raise AttributeError(f"{self!r} is the same for the whole process: its {name} is not changed")

    def __delattr__(self, name):
        raise AttributeError(f"{self!r} is the same for the whole process: its {name} is not removed")

    def __repr__(self):
        return f"dtypes.{self.name}"

    def __reduce__(self):
        return (as_dtype, (self.name,))

    @property
    def bitsize(self) -> int:
        return self.itemsize * 8

    @property
    def is_floating_point(self) -> bool:
        return self.kind == "f"

    @property
    def is_signed(self) -> bool:
        return self.kind in "if"


T = Tiny.DType
ALL = [DType(*row) for row in (
    (T.BOOL, "bool", 1, "b", "?"),
    (T.I8, "int8", 1, "i", "b"),
    (T.U8, "uint8", 1, "u", "B"),
    (T.I16, "int16", 2, "i", "h"),
    (T.U16, "uint16", 2, "u", "H"),
    (T.I32, "int32", 4, "i", "i"),
    (T.U32, "uint32", 4, "u", "I"),
    (T.I64, "int64", 8, "i", "q"),
    (T.U64, "uint64", 8, "u", "Q"),
    (T.F8E4M3, "fp8e4m3", 1, "f", None),
    (T.F8E5M2, "fp8e5m2", 1, "f", None),
    (T.F16, "float16", 2, "f", "e"),
    (T.BF16, "bfloat16", 2, "f", None),
    (T.F32, "float32", 4, "f", "f"),
    (T.F64, "float64", 8, "f", "d"),
)]
ALIASES = {
    "half": "float16", "float": "float32", "double": "float64", "char": "int8", "uchar": "uint8", "short": "int16",
    "ushort": "uint16", "int": "int32", "uint": "uint32", "long": "int64", "ulong": "uint64", "float8_e4m3fn": "fp8e4m3",
    "float8_e5m2": "fp8e5m2", "bool_": "bool",
}
by_value = {int(dtype.value): dtype for dtype in ALL}
by_name = {dtype.name: dtype for dtype in ALL}
by_name.update({alias: by_name[name] for alias, name in ALIASES.items()})
by_type = {bool: by_name["bool"], int: by_name["int32"], float: by_name["float32"]}


def as_dtype(dtype) -> DType:
    """The DType that @dtype means: one of ours, a name, a Python type, or what NumPy or PyTorch has."""
    if type(dtype) is DType:
        return dtype
    if isinstance(dtype, str):
        found = by_name.get(dtype.rpartition(".")[2])
    elif isinstance(dtype, type) and dtype in by_type:
        found = by_type[dtype]
    elif isinstance(dtype, T):
        found = by_value.get(int(dtype))
    else:  # numpy.dtype and numpy.float32 have a name, torch.float32 reads as its name
        name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
        found = by_name.get(name.rpartition(".")[2]) if isinstance(name, str) else None
    if found is None:
        raise TypeError(f"{dtype!r} is no dtype: one of {', '.join(d.name for d in ALL)}")
    return found


class IntegerInfo:
    """The limits of an integer format, as torch.iinfo."""

    dtype: DType
    bits: int
    max: int
    min: int

    def __init__(self, dtype):
        self.dtype = as_dtype(dtype)
        if self.dtype.kind not in "iu":
            raise TypeError(f"iinfo: {self.dtype!r} is no integer format; dtypes.finfo is for floats")
        self.bits = self.dtype.bitsize
        self.max = (1 << (self.bits - (self.dtype.kind == "i"))) - 1
        self.min = -self.max - 1 if self.dtype.kind == "i" else 0

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"


class FloatInfo:
    """The limits of a float format, as torch.finfo."""

    dtype: DType
    bits: int
    max: float
    min: float
    eps: float
    tiny: float
    smallest_normal: float
    smallest_subnormal: float

    def __init__(self, dtype):
        self.dtype = as_dtype(dtype)
        if self.dtype.kind != "f":
            raise TypeError(f"finfo: {self.dtype!r} is no float format; dtypes.iinfo is for integers")
        self.bits = self.dtype.bitsize
        self.max = Tiny.dtype_get_largest(self.dtype.value)
        self.min = -self.max
        self.eps = Tiny.dtype_get_epsilon(self.dtype.value)
        self.tiny = self.smallest_normal = Tiny.dtype_get_smallest_normal(self.dtype.value)
        self.smallest_subnormal = self.tiny * self.eps

    def __repr__(self):
        return f"finfo(min={self.min}, max={self.max}, eps={self.eps}, tiny={self.tiny}, dtype={self.dtype.name})"


class Defaults(type):
    """dtypes.default_float, which the library knows."""

    @property
    def default_float(cls) -> DType:
        """The format of floats that nothing else decides; it can be set, for the process."""
        return by_value[int(Tiny.get_default_float())]

    @default_float.setter
    def default_float(cls, dtype: Any):
        from .convert import remembered
        dtype = as_dtype(dtype)
        if dtype.kind != "f":
            raise TypeError(f"the default float is one of {', '.join(d.name for d in dtypes.floats)}, not {dtype.name}")
        Tiny.set_default_float(dtype.value)
        remembered.cache_clear()  # plain numbers are tensors of the default


class dtypes(metaclass=Defaults):
    """The number formats there are, and what may be asked of them."""

    finfo = FloatInfo
    iinfo = IntegerInfo

    default_int: DType = by_name["int32"]
    floats: tuple[DType, ...] = tuple(d for d in ALL if d.kind == "f")
    ints: tuple[DType, ...] = tuple(d for d in ALL if d.kind in "iu")
    uints: tuple[DType, ...] = tuple(d for d in ALL if d.kind == "u")
    sints: tuple[DType, ...] = tuple(d for d in ALL if d.kind == "i")
    all: tuple[DType, ...] = tuple(ALL)
    names: frozenset[str] = frozenset(by_name)

    @staticmethod
    def is_float(dtype) -> bool:
        return as_dtype(dtype).kind == "f"

    @staticmethod
    def is_int(dtype) -> bool:
        return as_dtype(dtype).kind in "iu"

    @staticmethod
    def is_unsigned(dtype) -> bool:
        return as_dtype(dtype).kind == "u"

    @staticmethod
    def is_bool(dtype) -> bool:
        return as_dtype(dtype).kind == "b"

    @staticmethod
    def from_name(name: str) -> DType:
        return as_dtype(name)

    @staticmethod
    def min(dtype) -> float:
        """The least number; of floats minus infinity, or where there is none the least finite one."""
        dtype = as_dtype(dtype)
        return -dtypes.max(dtype) if dtype.kind == "f" else False if dtype.kind == "b" else IntegerInfo(dtype).min

    @staticmethod
    def max(dtype) -> float:
        """The largest number; of floats infinity, or where there is none the largest finite one."""
        dtype = as_dtype(dtype)
        if dtype.kind == "f":
            return FloatInfo(dtype).max if dtype.name == "fp8e4m3" else float("inf")
        return True if dtype.kind == "b" else IntegerInfo(dtype).max


for name, found in by_name.items():
    setattr(dtypes, name, found)
del name, found
