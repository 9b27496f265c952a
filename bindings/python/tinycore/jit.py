# SPDX-License-Identifier: MIT
"""TinyJit: a function whose kernels are recorded at its second call and replayed from the third on.

Tensors among the arguments, also in lists, tuples and dicts, are inputs: later calls may give others of the same shapes,
dtypes and devices. All other arguments are part of the recording and may not change. Results are the same tensors at
every call, with new values.

Threads may call one function: their calls are one after the other. As the results are those of the last call, a thread reads
them before others call: with function.lock: x = function (…).numpy ()."""
import threading
from functools import partial, update_wrapper

from .errors import InvalidError, call
from .library import Tiny

Base = Tiny.Tensor


class JitError(InvalidError):
    """A call that does not fit what was recorded, or a function that cannot be recorded."""

    code = InvalidError.code


class State(threading.local):
    recording = None  # the TinyJit that records on this thread


state = State()


def refuse_reading():
    """While a function is recorded nothing may be read: what depends on it would be frozen."""
    if state.recording is not None:
        raise JitError(f"{state.recording.name} reads a value while it is recorded: return the tensor and read it outside")


def take_apart(value, tensors):
    """What @value is but for its tensors, which go to @tensors."""
    if isinstance(value, Base):
        tensors.append(value)
        return Base
    if isinstance(value, (list, tuple)):
        return (type(value), [take_apart(one, tensors) for one in value])
    if isinstance(value, dict):
        return (dict, [(key, take_apart(value[key], tensors)) for key in value])
    return (type(value), value)  # 1, 1.0 and True are equal


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
        """Forgets the recording: the next call runs plainly."""
        with self.lock:
            self.n_calls, self.recorder, self.form, self.result = 0, None, None, None

    def __get__(self, instance, owner=None):
        return self if instance is None else partial(self.__call__, instance)

    @property
    def captured(self):
        """Whether there is a recording."""
        return self.recorder is not None

    @property
    def n_kernels(self):
        """How many kernels a replay launches."""
        return self.recorder.get_n_kernels() if self.recorder is not None else 0

    def __call__(self, *arguments, **more):
        if state.recording is not None:
            return self.function(*arguments, **more)
        with self.lock:
            return self.run(arguments, more)

    def run(self, arguments, more):
        inputs = []
        form = take_apart((arguments, dict(sorted(more.items()))), inputs)
        if self.recorder is not None:
            return self.replay(form, inputs)
        self.n_calls += 1
        if self.n_calls == 1:
            result = self.function(*arguments, **more)
            self.realize(result)
            return result
        return self.record(form, inputs, arguments, more)

    def realize(self, result):
        tensors = []
        take_apart(result, tensors)
        if tensors:
            call(Base.realize_many, tensors)
        return tensors

    def record(self, form, inputs, arguments, more):
        recorder = Tiny.Recorder.new()
        self.call(recorder.begin, inputs)
        state.recording = self
        try:
            result = self.function(*arguments, **more)
            check_result(result, self.name)
            of_inputs = {id(one): one.cast(one.dtype) for one in inputs}
            result = replace_tensors(result, of_inputs)
            outputs = []
            take_apart(result, outputs)
            self.call(recorder.end, outputs)
        except BaseException:
            recorder.cancel()
            raise
        finally:
            state.recording = None
        self.recorder, self.form, self.result = recorder, form, result
        return result

    def replay(self, form, inputs):
        try:
            same = form == self.form
        except Exception:  # something whose comparison is none, such as an array
            same = False
        if not (same is True):
            raise JitError(f"{self.name} was recorded with other arguments: what is no tensor may not change, nor where tensors are")
        self.call(self.recorder.replay, inputs)
        return self.result

    def call(self, function, tensors):
        try:
            call(function, tensors)
        except JitError:
            raise
        except InvalidError as error:
            raise JitError(f"{self.name}: {error}") from None
