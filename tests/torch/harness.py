# SPDX-License-Identifier: MIT
"""Cases of tensor methods: the same function of the same numbers here and in PyTorch.

A family's cases are a module cases_NAME.py of calls of case(), each() and refuses(). Values are compared with
what PyTorch computes in f64 from the same (f32) numbers, so that its own rounding does not count; the result's dtype with
what it gives for the dtypes themselves. Gradients are those of the sum of the result with random weights."""
import dataclasses
import zlib

import numpy
import torch

# An error is a part of the larger of the value and floor_of(): a small number beside large ones may be off by 1e-7 of those.
FORWARD, GRADIENT = 1e-6, 1e-4
# Where sums of many terms nearly cancel, as in what solves equations, no f32 arithmetic gives that: there an error may be so many
# times the largest that PyTorch makes in f32, from the same numbers.
TIMES_THEIRS = 2
CANCELS = set("""conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d newton_schulz inv det slogdet solve solve_triangular qr
    logdet dot mv mm bmm addmm baddbmm tensordot linear cdist index_add scatter_add scatter_reduce triplet_margin_loss quantile nanquantile lstsq lu lu_factor lu_solve svd eigh cholesky matrix_power group_norm layer_norm batch_norm instance_norm scaled_dot_product_attention cumsum matmul einsum fft ifft rfft
    irfft fftn ifftn rfftn nn.functional.grid_sample""".split())


@dataclasses.dataclass
class Case:
    operation: str  # the row of operations.pyi
    inputs: list
    ours: object
    theirs: object
    gradient: bool
    forward: float
    backward: float
    same_dtype: bool
    relative: bool  # an error is a part of the number itself
    wrong: bool  # both are to refuse
    label: str
    normwise: bool = False  # an error is a part of the largest number
    random: tuple = ()  # for each input that is random numbers of a shape: the shape, their limits and dtype; None for others

    def __str__(self):
        shapes = " ".join(f"{x.dtype}{list(x.shape)}" if isinstance(x, numpy.ndarray) else repr(x) for x in self.inputs)
        return f"{self.operation} {self.label or shapes}"


CASES = []
DEVICES = None  # names of several, over which inputs are spread
SIZE = None  # axes of that many elements have a variable as their size, …
LIMITS = 1, 2  # … which is at least the first, and at most that more


def numbers(shape, low=-2.0, high=2.0, dtype="float32", seed=0):
    """Random numbers that depend on the arguments alone."""
    key = zlib.crc32(repr((shape, low, high, str(dtype), seed)).encode())
    random = numpy.random.RandomState(key)
    if numpy.dtype(dtype) == numpy.bool_:
        return random.rand(*shape) < 0.5
    if numpy.issubdtype(numpy.dtype(dtype), numpy.integer):
        return numpy.asarray(random.randint(int(low), int(high), size=shape), dtype=dtype)
    return numpy.asarray(random.uniform(low, high, size=shape), dtype=dtype)


def case(operation, inputs, ours, theirs=None, *, gradient=None, low=-2.0, high=2.0, dtype="float32", forward=FORWARD,
         backward=GRADIENT, same_dtype=True, relative=False, label=""):
    """One case. An input is a shape (random numbers from @low to @high), or an array. @theirs is @ours where both libraries
    spell it alike. @gradient: None where all float inputs have one."""
    arrays = [numbers(x, low, high, dtype, i) if isinstance(x, tuple) else numpy.asarray(x) for i, x in enumerate(inputs)]
    if gradient is None:
        gradient = any(numpy.issubdtype(x.dtype, numpy.floating) for x in arrays)
    random = tuple((x, low, high, dtype) if isinstance(x, tuple) else None for x in inputs)
    CASES.append(Case(operation, arrays, ours, theirs or ours, gradient, forward, backward, same_dtype, relative, False, label, random=random))


def each(operation, many, ours, theirs=None, **options):
    """The same function of several lists of inputs."""
    for inputs in many:
        case(operation, inputs if isinstance(inputs, list) else [inputs], ours, theirs, **options)


def refuses(operation, inputs, ours, theirs=None, label=""):
    """What neither library does: an exception, not a crash or a number."""
    arrays = [numbers(x) if isinstance(x, tuple) else numpy.asarray(x) for x in inputs]
    CASES.append(Case(operation, arrays, ours, theirs or ours, False, 0, 0, True, False, True, label))


ENLARGED_ELEMENTS = 20000
# Their cases give sizes of the inputs as numbers, which PyTorch's side of the case does not use.
OF_SIZES = {"pad_to", "shrink_to", "rms_norm"}


def enlarged(case):
    """The case with larger inputs, or None where it names its numbers or PyTorch does not take them. Each size but 1 grows alike,
    beyond tiles and to no multiple of a vector, as far as the inputs keep to ENLARGED_ELEMENTS. Sums are longer by the same
    factor, and every n-th number of a smooth function lies near a zero, so errors are held against the largest number."""
    if case.wrong or case.operation in OF_SIZES or not case.random or None in case.random:
        return None
    for factor in (16, 8, 4, 2):
        shapes = [tuple(n * factor + 3 if n > 1 else n for n in shape) for shape, *_ in case.random]
        if sum(numpy.prod(shape) for shape in shapes) <= ENLARGED_ELEMENTS:
            break
    else:
        return None
    if all(shape == before for shape, (before, *_) in zip(shapes, case.random)):
        return None
    arrays = [numbers(shape, *limits, i) for i, (shape, (_, *limits)) in enumerate(zip(shapes, case.random))]
    larger = dataclasses.replace(case, inputs=arrays, normwise=True, random=(), label=f"{case.label} enlarged {shapes}")
    try:
        run_theirs(larger, False)
    except Exception:  # noqa: BLE001: PyTorch has many
        return None
    return larger


def several(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def weights(arrays):
    return [numbers(tuple(a.shape), 0.5, 1.5, "float64", 77 + i) for i, a in enumerate(arrays)]


# ---- PyTorch ----
def run_theirs(case, wide, gradient=None):
    """Its results, and gradients, which those of f64 have if nothing else is said."""
    inputs = [torch.from_numpy(x.copy()) for x in case.inputs]
    if wide:
        inputs = [x.double() if x.is_floating_point() else x for x in inputs]
    gradient = case.gradient and (wide if gradient is None else gradient)
    for x in inputs:
        x.requires_grad_(gradient and x.is_floating_point())
    results = several(case.theirs(*inputs))
    if not gradient:
        return results, []
    loss = 0
    for result, weight in zip(results, weights(results)):
        if result.is_floating_point() and result.requires_grad:
            loss = loss + (result * torch.from_numpy(weight).to(result.dtype)).sum()
    if torch.is_tensor(loss):
        loss.backward()
    return results, [x.grad if x.grad is not None else torch.zeros_like(x) for x in inputs if x.is_floating_point()]


# ---- here ----
def spread(tensor, i):
    """Input @i on all of DEVICES: cut along one of its axes, each input along another, or whole on each."""
    axes = [axis for axis, size in enumerate(tensor.shape) if size >= len(DEVICES)]
    return tensor.shard(DEVICES, axes[i % len(axes)] if axes else None)


def shortened(array, Tensor):
    """@array where axes of SIZE are parts of longer ones, as long as a variable says. Behind are numbers that would be seen."""
    from tinycore import Variable
    array = numpy.asarray(array)
    axes = [axis for axis, size in enumerate(array.shape) if size == SIZE]
    if not axes:
        return Tensor(array)
    least, longest = LIMITS[0], SIZE + LIMITS[1]
    beyond = 50 if array.dtype.kind == "f" else 1
    tensor = Tensor(numpy.pad(array, [(0, LIMITS[1] * (axis in axes)) for axis in range(array.ndim)], constant_values=beyond))
    for axis in axes:
        tensor = tensor.shorten(axis, Variable("size", least, longest).bind(SIZE))
    return tensor


def run_ours(case, Tensor):
    inputs = [Tensor(x) if SIZE is None else shortened(x, Tensor) for x in case.inputs]
    if DEVICES is not None:
        inputs = [spread(x, i) for i, x in enumerate(inputs)]
    floats = [t for t, x in zip(inputs, case.inputs) if numpy.issubdtype(x.dtype, numpy.floating)]
    if case.gradient and SIZE is None:
        for x in floats:
            x.requires_grad = True
    results = several(case.ours(*inputs))
    if not case.gradient or SIZE is not None:
        return [r.numpy() for r in results], []
    loss = None
    for result, weight in zip(results, weights(results)):
        if result.is_floating_point():
            part = (result * Tensor(weight.astype("float32"), device=result.device)).sum()
            loss = part if loss is None else loss + part
    if loss is not None:
        loss.backward()
    grads = [x.grad for x in floats]
    Tensor.realize(*results, *[g for g in grads if g is not None])
    return [r.numpy() for r in results], [numpy.zeros(x.shape) if g is None else g.numpy() for x, g in zip(floats, grads)]


# ---- comparison ----
def floor_of(wanted, relative, normwise=False):
    """What an error is a part of at least: a tenth of the largest number there, and never more than 1; normwise that number."""
    sizes = numpy.abs(wanted[numpy.isfinite(wanted)])
    if normwise:
        return sizes.max(initial=0)
    return 0 if relative else min(1, 0.1 * sizes.max()) if sizes.size else 1


def error_of(theirs, wanted):
    """The largest that PyTorch makes itself, in f32."""
    theirs = theirs.detach().numpy()
    if theirs.dtype != numpy.float32:
        return 0
    with numpy.errstate(invalid="ignore"):
        errors = numpy.abs(theirs.astype("float64") - wanted)
    return errors[numpy.isfinite(errors)].max(initial=0)


def differs(found, wanted, tolerance, relative=False, theirs=None, normwise=False):
    """Why, or None. NaNs and infinities are to be the same ones. @theirs: gives what PyTorch has in f32."""
    found, wanted = numpy.asarray(found), numpy.asarray(wanted)
    if found.shape != wanted.shape:
        return f"shape {found.shape}, not {wanted.shape}"
    if wanted.dtype.kind in "biu":
        wrong = found.astype("int64") != wanted.astype("int64") if found.dtype.kind in "biu" else found != wanted
    else:
        f, w = found.astype("float64"), wanted.astype("float64")
        with numpy.errstate(invalid="ignore"):
            errors = numpy.abs(f - w)
            wrong = ~((errors <= tolerance * numpy.maximum(floor_of(w, relative, normwise), numpy.abs(w))) | (f == w) | (numpy.isnan(f) & numpy.isnan(w)))
            if wrong.any() and theirs is not None and not relative:
                wrong &= ~(errors <= TIMES_THEIRS * error_of(theirs(), w))
    if not wrong.any():
        return None
    at = tuple(numpy.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} differ, at {at} {found[at]} and not {wanted[at]}"


def check_refusal(case, Tensor):
    for name, run in (("PyTorch", lambda: run_theirs(case, False)), ("tinycore", lambda: run_ours(case, Tensor))):
        try:
            run()
        except (AttributeError, NameError):
            raise  # a mistake of the case
        except Exception as error:  # noqa: BLE001: PyTorch has many
            if name == "tinycore" and (not str(error) or not isinstance(error, (TypeError, ValueError, IndexError, NotImplementedError))):
                return f"{type(error).__name__}: {error} is no refusal"
            continue
        return f"{name} does not refuse"
    return None


def cancels(case):
    return case.operation in CANCELS or case.operation.startswith("linalg.")


def check(case, Tensor):
    """Why the case fails, or None."""
    if case.wrong:
        return check_refusal(case, Tensor)
    narrow, _ = run_theirs(case, False)
    wide, gradients = run_theirs(case, True)
    results, our_gradients = run_ours(case, Tensor)
    if len(results) != len(wide):
        return f"{len(results)} results, not {len(wide)}"
    for i, (found, same, wanted) in enumerate(zip(results, narrow, wide)):
        wanted_dtype = same.detach().numpy().dtype
        if case.same_dtype and found.dtype != wanted_dtype:
            return f"result {i} is {found.dtype}, not {wanted_dtype}"
        tolerance = case.forward if wanted_dtype != numpy.float16 else max(case.forward, 2e-3)
        why = differs(found, wanted.detach().numpy(), tolerance, case.relative, (lambda same=same: same) if cancels(case) else None,
                      case.normwise)
        if why:
            return f"result {i}: {why}"
    for i, (found, wanted) in enumerate(zip(our_gradients, gradients)):
        why = differs(found, wanted.numpy(), case.backward,
                      theirs=(lambda i=i: run_theirs(case, False, True)[1][i]) if cancels(case) else None, normwise=case.normwise)
        if why:
            return f"gradient {i}: {why}"
    return None
