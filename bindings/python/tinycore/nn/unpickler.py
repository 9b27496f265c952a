# SPDX-License-Identifier: MIT
"""Pickles of PyTorch's files: tensors, numbers, texts and containers, and nothing else of them is made.

A pickle is a program, and a short one makes much: what it copies and makes is counted (Room in files.py), and what it hashes, calculates with or has
in a message is known to have an end."""
import pickle
from collections import OrderedDict

from ..dtypes import by_name, dtypes
from ..errors import FormatError

__all__ = []  # it is for files.py

SET_TAKES, TENSOR_TAKES = 240, 4096  # bytes of memory
SMALL, MOST_CHOSEN = 1 << 20, 4096  # of numbers from SMALL on, and of tuples, so many are keys: they can be chosen to have one hash, and n of them take n²
STORAGES = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
            "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "Untyped": "uint8", "_Untyped": "uint8"}
SIMPLE = (str, bytes, int, float, bool, type(None), type(dtypes.uint8))


def is_simple(value):
    return type(value) in SIMPLE and (type(value) is not int or -1 << 63 <= value < 1 << 64)


def key_of(value):
    """@value as a key. To hash tuples of tuples takes the stack of the process, or for ever."""
    if not is_simple(value) and not (type(value) is tuple and all(map(is_simple, value))):
        raise ValueError(f"a {type(value).__name__} is a key: a text, a number or a tuple of them is wanted")
    return value


def is_chosen(key):
    """True if the writer of a file knows the hash of @key; that of a text is another one in each process."""
    return type(key) in (int, float, tuple) and not (type(key) is int and 0 <= key < SMALL)


def shown(value):
    """A value of a file in a message; of what has parts its type alone, as they may be without end."""
    if not is_simple(value):
        return f"a {type(value).__name__}"
    return repr(value[:40] if isinstance(value, (str, bytes)) else value)


class Known:
    """What a pickle may call. It has nothing that a pickle could change."""

    __slots__ = ()
    takes = 0  # bytes of memory for each element of its first argument, which a pickle may give again and again

    def count(self, arguments):
        return self.takes and self.takes * sum(map(len, arguments[:1]))

    def keys(self, *arguments):
        return ()


class MakeTensor(Known):
    __slots__ = ()

    def count(self, arguments):
        return TENSOR_TAKES

    def __call__(self, storage, offset, size, stride, *rest):
        return storage.tensor(offset, tuple(size), tuple(stride))


class MakeTensorAs(MakeTensor):
    """With a dtype of its own, of a storage of bytes."""

    __slots__ = ()

    def __call__(self, storage, offset, size, stride, requires_grad, hooks, dtype, *rest):
        return storage.tensor(offset, tuple(size), tuple(stride), dtype)


class First(Known):
    """Of several arguments the first: the data of a parameter, the name of a device."""

    __slots__ = ()

    def __call__(self, first, *rest):
        return first


class MakeDict(Known):
    __slots__ = ()
    takes = 128

    def keys(self, rows=()):
        return [key for key, value in rows]

    def __call__(self, rows=()):
        return OrderedDict(rows)


class MakeTuple(Known):
    __slots__ = ()
    takes = 8

    def __call__(self, rows=()):
        return tuple(rows)


class MakeSet(Known):
    __slots__ = ()
    takes = 64

    def keys(self, rows=()):
        return rows

    def __call__(self, rows=()):
        return set(rows)


class Encode(Known):
    """How protocol 2 writes bytes."""

    __slots__ = ()
    takes = 1

    def __call__(self, text, encoding="latin1"):
        return text.encode("latin1")


KNOWN = {
    ("collections", "OrderedDict"): MakeDict(), ("torch", "Size"): MakeTuple(), ("builtins", "set"): MakeSet(),
    ("__builtin__", "set"): MakeSet(), ("_codecs", "encode"): Encode(), ("torch", "device"): First(),
    ("torch._utils", "_rebuild_tensor"): MakeTensor(), ("torch._utils", "_rebuild_tensor_v2"): MakeTensor(),
    ("torch._utils", "_rebuild_tensor_v3"): MakeTensorAs(), ("torch._utils", "_rebuild_parameter"): First(),
}


class Unpickler(pickle._Unpickler):  # in Python, whose memo is a dict: a number in a file is no size of an array
    """Reads what is in KNOWN, and refuses all else before anything of it is made. @find gives the storage of a key, dtype and
    number of elements. A pickle changes no object but the containers that it makes."""

    dispatch = dict(pickle._Unpickler.dispatch)

    def __init__(self, room, file, find, where):
        super().__init__(file, encoding="utf-8")
        self.name, self.room, self.find, self.where, self.n_chosen = room.name, room, find, where, 0

    def find_class(self, module, name):
        found = KNOWN.get((module, name))
        if found is not None:
            return found
        if module in ("torch", "torch.storage") and name.endswith("Storage") and name[:-7] in STORAGES:
            return by_name[STORAGES[name[:-7]]]
        if module == "torch" and name in by_name:
            return by_name[name]
        raise FormatError(f"{self.name}: it names {module}.{name}, which is not read: only tensors, numbers, texts and "
                          "containers are. Save the state_dict() rather than the module")

    def load_build(self):
        """The versions of modules, which PyTorch hangs on a state_dict(), are all that is set on an object; what a program hung there is left out."""
        state, made = self.stack.pop(), self.stack[-1]
        if type(made) is not OrderedDict or type(state) is not dict:
            raise FormatError(f"{self.name}: it changes a {type(made).__name__}, which no file of a state_dict() does")
        vars(made).update((name, value) for name, value in state.items() if name == "_metadata")

    dispatch[pickle.BUILD[0]] = load_build

    def top(self, *kinds):
        """The container that is filled, which is the pickle's own: not a tensor, of which elements are set."""
        if type(self.stack[-1]) not in kinds:
            raise FormatError(f"{self.name}: it changes a {type(self.stack[-1]).__name__}, not a {kinds[0].__name__}")
        return self.stack[-1]

    def keys(self, values):
        """@values, which may be keys of this file."""
        self.n_chosen += sum(map(is_chosen, map(key_of, values)))
        if self.n_chosen > MOST_CHOSEN:
            raise FormatError(f"{self.name}: more than {MOST_CHOSEN} keys are tuples or numbers from {SMALL} on")
        return values

    def put(self, items, made):
        made.update(zip(self.keys(items[::2]), items[1::2], strict=True))

    def load_setitem(self):
        value, key = self.stack.pop(), self.stack.pop()
        self.put([key, value], self.top(dict, OrderedDict))

    def load_setitems(self):
        items = self.pop_mark()
        self.put(items, self.top(dict, OrderedDict))

    def load_dict(self):
        items = self.pop_mark()
        self.append({})
        self.put(items, self.stack[-1])

    def load_append(self):
        value = self.stack.pop()
        self.top(list).append(value)

    def load_appends(self):
        items = self.pop_mark()
        self.top(list).extend(items)

    def load_empty_set(self):
        self.room.take(SET_TAKES)
        self.append(set())

    def load_additems(self):
        items = self.pop_mark()
        self.top(set).update(self.keys(items))

    def load_frozenset(self):
        self.append(frozenset(self.keys(self.pop_mark())))

    def load_reduce(self):
        arguments, function = self.stack.pop(), self.stack[-1]
        if not isinstance(function, Known):
            raise FormatError(f"{self.name}: it calls a {type(function).__name__}")
        self.room.take(function.count(arguments))
        self.keys(function.keys(*arguments))
        self.stack[-1] = function(*arguments)

    def refuse(self, *about):
        raise FormatError(f"{self.name}: it makes an object of a class, as no file of torch.save() does")

    _instantiate = refuse

    for name, load in (("SETITEM", load_setitem), ("SETITEMS", load_setitems), ("DICT", load_dict), ("APPEND", load_append),
                       ("APPENDS", load_appends), ("EMPTY_SET", load_empty_set), ("ADDITEMS", load_additems), ("FROZENSET", load_frozenset),
                       ("REDUCE", load_reduce), ("NEWOBJ", refuse), ("NEWOBJ_EX", refuse)):
        dispatch[getattr(pickle, name)[0]] = load
    del name, load

    def load_bytearray8(self):
        """Memory is asked for once the bytes are there."""
        size = int.from_bytes(self.read(8), "little")
        data = bytearray(self.read(size))
        if len(data) != size:
            raise EOFError(f"{size} bytes are wanted, {len(data)} are there")
        self.append(data)

    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8

    def persistent_load(self, pid):
        kind, dtype, key, place, count, *view = pid
        if kind != "storage" or dtype not in dtypes.all or type(key) is not str or type(place) not in (str, type(None)) \
                or type(count) is not int or not 0 <= count < 1 << 63 or view not in ([], [None]):
            raise FormatError(f"{self.name}: no storage: " + ", ".join(map(shown, (kind, dtype, key, place, count, *view[:1]))))
        found = self.find(key, dtype, count)
        found.device = self.where(place)
        return found
