# SPDX-License-Identifier: MIT
"""TinyJit: a function whose kernels are recorded at its second call and replayed from the third on.

Tensors among the arguments, also in lists, tuples, dicts and data classes, are inputs: later calls may give others. Inputs of
another shape, dtype or device, as a smaller last batch, are recorded once more; the last eight recordings are kept. All other arguments are part of the recording and may not change: arrays, sets and bytes are compared
by what is in them at each call, other objects as == does, which looks into none that does not say how. Results are the same tensors at
every call, with new values.

Threads may call one function: their calls are one after the other. As the results are those of the last call, a thread reads
them before others call: with function.lock: x = function (…).numpy ()."""
import os
import threading
import weakref
from array import array
from collections import deque
from dataclasses import fields, is_dataclass
from functools import partial, update_wrapper
from types import SimpleNamespace
from typing import Any

from .errors import InvalidError, call
from .library import Tiny

Base = Tiny.Tensor


class JitError(InvalidError):
    """A call that does not fit what was recorded, or a function that cannot be recorded."""

    code = InvalidError.code


class State(threading.local):
    recording = None  # the TinyJit that records on this thread
    autocast = 0  # the dtype of amp.autocast(), by its number: each replay looks, and asking the library takes longer


state = State()


class Modes:
    n_changes = 0  # how often a module was told whether to train


def note_mode(module):
    """The recorded function asks whether @module trains: in another mode it is another recording."""
    if state.recording is not None:
        state.recording.modules.setdefault(id(module), weakref.ref(module))


def note_set_mode(module):
    """Whether @module trains was said; a recorded function that says so first does not depend on what it was."""
    Modes.n_changes += 1
    if state.recording is not None:
        state.recording.modules.setdefault(id(module), lambda: None)


def mode_of(module):
    """Whether it trains; of a layer the library knows it then."""
    if hasattr(module, "set_mode"):
        module.begin()
    return module is not None and module.training


def thread_modes():
    """Tensor.training, on which layers depend that are in no module, and the dtype of autocast()."""
    return Base.__gtype__.pytype.training, state.autocast


def refuse_reading():
    """While a function is recorded nothing may be read: what depends on it would be frozen."""
    if state.recording is not None:
        raise JitError(f"{state.recording.name} reads a value while it is recorded: return the tensor and read it outside")


def take_apart(value, tensors, above=()):
    """What @value is but for its tensors, which go to @tensors. @above: what it is part of, as id()s."""
    if isinstance(value, Base):
        tensors.append(value)
        return Base
    if id(value) in above:
        return (type(value), f"the one {len(above) - above.index(id(value))} above")
    above = (*above, id(value))
    if isinstance(value, (list, tuple, deque)):
        return (type(value), [take_apart(one, tensors, above) for one in value])
    if isinstance(value, dict):
        return (dict, [(key, take_apart(value[key], tensors, above)) for key in value])
    named = [field.name for field in fields(value)] if is_dataclass(value) and not isinstance(value, type) \
        else vars(value) if isinstance(value, SimpleNamespace) else None
    if named is not None:
        return (type(value), [(name, take_apart(getattr(value, name, None), tensors, above)) for name in named])
    return (type(value), content_of(value))  # 1, 1.0 and True are equal


class Content(tuple[Any, ...]):
    """The dtype, shape and bytes of an array."""

    def __repr__(self):
        return f"an array of {self[1]} {self[0]}"


def content_of(value):
    """@value, or what is in it now, where that may change without its becoming another object."""
    if isinstance(value, set):
        return frozenset(value)
    if isinstance(value, (bytearray, memoryview, array)):
        return bytes(value)
    if isinstance(value, float):
        return value if value == value and value != 0 else repr(value)  # a NaN equals itself here, and 0.0 is not -0.0
    if hasattr(value, "__array__") and not isinstance(value, type):
        import numpy
        try:
            found = numpy.asarray(value)
        except Exception:  # noqa: BLE001: other libraries' tensors may refuse it
            return value
        return Content((str(found.dtype), found.shape, found.tolist() if found.dtype.hasobject else found.tobytes()))
    return value


def is_named(form: tuple[Any, ...]) -> bool:
    """Whether its parts have names: a dict or an object, no list."""
    return isinstance(form[1], list) and not issubclass(form[0], (list, tuple, deque))


def in_words(form):
    """What was taken apart, in a few letters."""
    if form is Base:
        return "a tensor"
    kind, rest = form
    if is_named(form):
        return f"a {kind.__name__} of " + (", ".join(str(key) for key, _ in rest) or "nothing")
    if isinstance(rest, list) and kind in (list, tuple, deque):
        return f"a {kind.__name__} of {len(rest)}"
    text = repr(rest)
    return text if len(text) <= 60 else text[:57] + "…"


def describe_change(before, now):
    """Which argument is not what it was in the recording, and what it is."""
    (_, (positions, names)), (_, (others, other_names)) = before, now
    was, found = ({**dict(enumerate(one[1])), **dict(two[1])} for one, two in ((positions, names), (others, other_names)))
    for name in {**was, **found}:
        at = f"argument {name + 1}" if isinstance(name, int) else f"argument {name!r}"
        if name not in found or name not in was:
            return f"{at} was {'not ' if name not in was else ''}there when it was recorded"
        path = find_change(was[name], found[name], at)
        if path is not None:
            return path
    return "it was recorded with other arguments"


def find_change(before, now, at):
    try:
        same = before == now
    except Exception:
        same = False
    if same is True:
        return None
    is_of_parts = before is not Base and now is not Base and before[0] is now[0] and isinstance(before[1], list)
    if is_of_parts and len(before[1]) == len(now[1]):
        pairs = [(key, was, found) for (key, was), (other, found) in zip(before[1], now[1]) if key == other] \
            if is_named(before) else [(i, was, found) for i, (was, found) in enumerate(zip(before[1], now[1]))]
        for key, was, found in pairs:
            path = find_change(was, found, f"{at}[{key!r}]")
            if path is not None:
                return path
    both = [one is not Base and isinstance(one[1], Content) for one in (before, now)]
    if any(both):
        how = "an array with other elements" if all(both) and before[1][:2] == now[1][:2] else in_words(now)
        return f"{at} was recorded as {in_words(before)} and is now {how} (an array is a constant: Tensor (array) is an input)"
    return f"{at} was recorded as {in_words(before)} and is now {in_words(now)}"


PLAIN = (type(None), bool, int, float, complex, str, bytes)


def check_result(value, name):
    """Tensors would be found in no other objects, and stay what they were in the recording."""
    if isinstance(value, (list, tuple)):
        for one in value:
            check_result(one, name)
    elif isinstance(value, dict):
        check_result(list(value.values()), name)
    elif not isinstance(value, (Base, *PLAIN)):
        raise JitError(f"{name} gives {type(value).__name__}: a recorded function gives tensors, plain values, and lists, tuples "
                       "and dicts of them")


def replace_tensors(value, by_id):
    """@value with tensors of which there is another in @by_id replaced."""
    if isinstance(value, Base):
        return by_id.get(id(value), value)
    if type(value) in (list, tuple):
        return type(value)(replace_tensors(one, by_id) for one in value)
    if type(value) is dict:
        return {key: replace_tensors(one, by_id) for key, one in value.items()}
    return value


CHECKS = os.environ.get("TINY_CHECK", "") not in ("", "0")  # which read positions in each call


class TinyJit:
    """A function that is recorded and replayed: @TinyJit before its definition."""

    def __init__(self, function):
        if not callable(function):
            raise TypeError(f"TinyJit wants a function, not {type(function).__name__}")
        update_wrapper(self, function, updated=())
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.lock = threading.RLock()
        self.reset()

    def reset(self):
        """Forgets all recordings: the next call runs plainly."""
        with self.lock:
            self.n_calls, self.recorders, self.last = 0, {}, None
            self.modules, self.modes, self.seen = {}, (), None

    def __get__(self, instance, owner=None):
        return self if instance is None else partial(self.__call__, instance)

    @property
    def captured(self):
        """Whether there is a recording."""
        return self.last is not None

    @property
    def n_kernels(self):
        """How many kernels a replay launches, of the recording that was made or replayed last."""
        return self.last.get_n_kernels() if self.last is not None else 0

    def __call__(self, *arguments, **more):
        if state.recording is not None:
            return self.function(*arguments, **more)
        with self.lock:
            return self.run(arguments, more)

    def run(self, arguments, more):
        inputs = []
        form = take_apart((arguments, dict(sorted(more.items()))), inputs)
        if self.last is not None:
            return self.replay(form, inputs, arguments, more)
        self.n_calls += 1
        if self.n_calls == 1 or CHECKS:
            self.call(Tiny.Recorder.new().prepare, inputs)
            result = self.function(*arguments, **more)
            self.realize(result)
            return result
        self.form = form
        return self.record(inputs, arguments, more)

    def realize(self, result):
        tensors = []
        take_apart(result, tensors)
        if tensors:
            call(Base.realize_many, tensors)
        return tensors

    def find_modes(self):
        """Those of the modules that ask for theirs: for each set of modes there is a recorder."""
        now = Modes.n_changes, thread_modes()
        if now != self.seen:
            self.modes = (now[1], *(mode_of(one()) for one in self.modules.values()))
            self.seen = now
        return self.modes

    def record(self, inputs, arguments, more):
        n_modules = len(self.modules)
        modes = self.find_modes()
        recorder, results = self.recorders.setdefault(modes, (Tiny.Recorder.new(), {}))
        is_open = False
        try:
            self.call(recorder.begin, inputs)
            is_open, state.recording = True, self
            result = self.function(*arguments, **more)
            check_result(result, self.name)
            of_inputs = {id(one): one.cast(one.dtype) for one in inputs}
            result = replace_tensors(result, of_inputs)
            outputs = []
            take_apart(result, outputs)
            is_open, state.recording = False, None
            results[self.call(recorder.finish, outputs)] = result
        except BaseException as error:
            is_stopped = not isinstance(error, Exception)  # Ctrl-C: it may have begun, or ended, unknown to us
            if is_open or is_stopped:
                recorder.cancel()
            if is_stopped:
                self.recorders.pop(modes, None)
            raise
        finally:
            state.recording = None
        if len(self.modules) > n_modules:  # whose modes earlier recordings did not ask for
            self.seen = None
            self.recorders = {self.find_modes(): (recorder, results)}
        self.last = recorder
        return result

    def replay(self, form, inputs, arguments, more):
        try:
            same = form == self.form
        except Exception:  # something whose comparison is none, such as an array
            same = False
        if not (same is True):
            raise JitError(f"{self.name}: {describe_change(self.form, form)}: what is no tensor may not change, nor where tensors are")
        recorder, results = self.recorders.get(self.find_modes(), (None, None))
        number = self.call(recorder.try_replay, inputs) if recorder is not None else -1
        if number < 0:
            return self.record(inputs, arguments, more)
        self.last = recorder
        return results[number]

    def call(self, function, tensors):
        try:
            return call(function, tensors)
        except JitError:
            raise
        except InvalidError as error:
            raise JitError(f"{self.name}: {error}") from None
