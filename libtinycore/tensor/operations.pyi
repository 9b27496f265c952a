# SPDX-License-Identifier: MIT
"""The methods of a tensor, one row each: the one place from which C declarations and frames, the
reference page, Python's signatures and its stubs are made (make-operations.py and its like; nothing
runs this file).

A row is a function in Python's notation. Its annotations say what C takes:
  Tensor      TinyTensor *               | None: may be absent; the first of a family's is self
  Tensors     an array of them           as the result: a list
  Axis        gint, checked and made positive before it is used;  | None: TINY_NO_AXIS, self flattened
  Axes        gint array, likewise       | None: all
  Shape, Sizes, Floats                   arrays of gint64 or double; Python takes one number for one element
  DType       TinyDType                  | None: TINY_DTYPE_VOID, the default that the text names
  int float bool str                     gint64, double, gboolean, a word out of those that the text names
Defaults are Python's: in C every argument is given. Where an argument is called axis, Python takes dim as
well. A row with keepdim leaves reduced axes of size 1; the frame drops them. Several named results are
"-> (values, indices)".

Lines "@name: …" at the start of the text are about that argument. The rest says what it is, with shapes by
letter, what happens at the edges, errors beyond a wrong shape or dtype, and the source of a method.

A family's or a row's words (@op (…)):
  takes       any; number: bool counts as i32; float: integers and bool become f32; integral: integers
              or bool, floats are an error; integer: bool is an error as well
  gradient    smooth: of any order; kinks: wherever it exists; none: there is none, or it is 0
  alias       other names in Python
  framed      C has the whole function, not just op_NAME() of operations-private.h

A body is the definition: + - * / ** and comparisons of tensors and numbers, other rows by name, IR ops in
capitals. Rows without one are op_NAME() in the tensor-*.c of their kind."""


class Arithmetic:
    """Shapes broadcast as in NumPy. Dtypes promote: bool to integers to floats, two of different width to the
    smallest that holds both; a scalar (tiny_tensor_scalar()) takes the other side's dtype."""

    def add(self, other: Tensor):
        """@self + @other. On bool: or."""
        return ADD(self, other)

    @op(takes="number", alias="subtract")
    def sub(self, other: Tensor):
        """@self - @other."""
        return SUB(self, other)

    @op(alias="multiply")
    def mul(self, other: Tensor):
        """@self * @other. On bool: and."""
        return MUL(self, other)

    @op(takes="float", alias="divide true_divide")
    def div(self, other: Tensor):
        """@self / @other as floats; integers become f32 first."""
        return FDIV(self, other)

    @op(takes="number", gradient="none")
    def floor_divide(self, other: Tensor):
        """@self / @other rounded down, of integers or floats. An integer divided by zero is unspecified."""

    @op(takes="number", gradient="kinks", alias="remainder")
    def mod(self, other: Tensor):
        """@self - @other * floor (@self / @other): has the sign of @other."""
        return self - other * floor_divide(self, other)

    def pow(self, other: Tensor):
        """@self to the power @other, as floats. A negative base has a value where the exponent is whole."""

    @op(gradient="kinks")
    def maximum(self, other: Tensor):
        """The larger of @self and @other."""

    @op(gradient="kinks")
    def minimum(self, other: Tensor):
        """The smaller of @self and @other."""

    @op(takes="number", alias="negative")
    def neg(self):
        """-@self."""
        return NEG(self)

    @op(takes="float")
    def reciprocal(self):
        """1 / @self."""
        return RECIP(self)

    @op(alias="absolute", gradient="kinks")
    def abs(self):
        """@self without its sign."""

    @op(takes="number", gradient="none")
    def sign(self):
        """-1, 0 or 1; zeros keep their sign, NaNs stay."""

    def square(self):
        """@self * @self."""
        return self * self

    @op(framed=True, gradient="kinks", alias="clip")
    def clamp(self, min: float = -inf, max: float = inf):
        """@min: the least value
        @max: the greatest value

        @self with what is outside @min … @max moved to the nearer of them. Infinite bounds bound nothing."""

    @op(framed=True)
    def add_number(self, other: float):
        """@self + @other in @self's dtype, or f32 when that is an integer's and @other is not whole."""

    @op(framed=True)
    def mul_number(self, other: float):
        """@self * @other, dtypes as in tiny_tensor_add_number()."""


class Comparison:
    """Bool results; shapes broadcast, dtypes promote. A NaN is neither less than, equal to nor greater than anything."""

    gradient = "none"

    def eq(self, other: Tensor):
        """Where @self equals @other."""
        return CMPEQ(self, other)

    def ne(self, other: Tensor):
        """Where @self differs from @other; a NaN differs from everything."""
        return CMPNE(self, other)

    def lt(self, other: Tensor):
        """Where @self < @other."""
        return CMPLT(self, other)

    def le(self, other: Tensor):
        """Where @self <= @other."""

    def gt(self, other: Tensor):
        """Where @self > @other."""
        return CMPLT(other, self)

    def ge(self, other: Tensor):
        """Where @self >= @other."""
        return le(other, self)

    def isnan(self):
        """Where @self is not a number."""
        return CMPNE(self, self)

    def isinf(self):
        """Where @self is infinite."""


class Logic:
    """Truth values and bits."""

    gradient = "none"

    def logical_and(self, other: Tensor):
        """Where both are not zero, as bool."""

    def logical_or(self, other: Tensor):
        """Where either is not zero, as bool."""

    def logical_xor(self, other: Tensor):
        """Where exactly one is not zero, as bool."""

    def logical_not(self):
        """Where @self is zero, as bool."""

    @op(takes="integral")
    def bitwise_and(self, other: Tensor):
        """Bits that are in both."""

    @op(takes="integral")
    def bitwise_or(self, other: Tensor):
        """Bits that are in either."""

    @op(takes="integral")
    def bitwise_xor(self, other: Tensor):
        """Bits that are in exactly one."""

    @op(takes="integral")
    def bitwise_not(self):
        """All bits reversed."""

    @op(takes="integral", alias="bitwise_left_shift")
    def lshift(self, other: Tensor):
        """@other: how far, from 0 to below the number of bits

        Bits moved up, in @self's dtype."""

    @op(takes="integral", alias="bitwise_right_shift")
    def rshift(self, other: Tensor):
        """@other: how far, from 0 to below the number of bits

        Bits moved down, in @self's dtype; the sign is kept."""

    @op(gradient="smooth")
    def where(self, input: Tensor, other: Tensor):
        """@self: a tensor, taken as bool
        @input: values where @self is true
        @other: values elsewhere

        @input where @self is true, @other elsewhere. All broadcast."""


class Rounding:
    """To whole numbers, in the same dtype. Integers are whole already."""

    gradient = "none"

    def floor(self):
        """Rounded down."""

    def ceil(self):
        """Rounded up."""

    def round(self):
        """Rounded to the nearest whole number, halves to the even one."""

    def trunc(self):
        """Rounded towards zero."""


class Exponential:
    """Roots, exponentials and logarithms."""

    takes = "float"

    def sqrt(self):
        """The square root; NaN below zero."""
        return SQRT(self)

    def rsqrt(self):
        """1 / sqrt (@self)."""
        return RECIP(SQRT(self))

    def exp(self):
        """e to the power @self."""
        return EXP2(self * (1 / log(2)))

    def exp2(self):
        """2 to the power @self."""
        return EXP2(self)

    def log(self):
        """The natural logarithm; -infinity at zero, NaN below."""
        return LOG2(self) * log(2)

    def log2(self):
        """The logarithm to base 2."""
        return LOG2(self)


class Trigonometric:
    """Of angles in radians."""

    takes = "float"

    def sin(self):
        """The sine."""
        return SIN(self)

    def cos(self):
        """The cosine."""
        return SIN(self + pi / 2)

    def tan(self):
        """The tangent."""
        return SIN(self) / cos(self)

    def tanh(self):
        """The hyperbolic tangent."""
        return sigmoid(self * 2) * 2 + -1


class Activations:
    """What networks put between their layers."""

    takes = "float"

    @op(takes="any", gradient="kinks")
    def relu(self):
        """max (@self, 0)."""
        return maximum(self, 0)

    def sigmoid(self):
        """1 / (1 + exp (-@self))."""
        return RECIP(exp(-self) + 1)

    def gelu(self):
        """@self * Φ (@self) by the approximation with tanh (Hendrycks and Gimpel 2016)."""
        inner = (self + self * (self * self) * 0.044715) * sqrt(2 / pi)
        return self * sigmoid(inner * 2)

    @op(alias="swish")
    def silu(self):
        """@self * sigmoid (@self)."""
        return self * sigmoid(self)


class Conversion:
    """The same numbers, or the same bits, in another dtype."""

    def cast(self, dtype: DType):
        """The values in another dtype. Floats to integers truncate; to bool: what is not zero."""

    @op(gradient="none")
    def bitcast(self, dtype: DType):
        """@dtype: a dtype of the same size

        The bits taken as another dtype."""


class Reductions:
    """Axes combined to one element each."""

    def sum(self, axis: Axes | None = None, keepdim: bool = False):
        """The sum over @axes. Narrow integers and bool add up in 32 bits, f16 and bf16 accumulate in f32."""

    @op(takes="float")
    def mean(self, axis: Axes | None = None, keepdim: bool = False):
        """The mean over @axes."""

    @op(gradient="kinks")
    def max(self, axis: Axes | None = None, keepdim: bool = False):
        """The largest over @axes, none of which may be empty."""

    @op(gradient="kinks")
    def min(self, axis: Axes | None = None, keepdim: bool = False):
        """The smallest over @axes, none of which may be empty."""

    def prod(self, axis: Axes | None = None, keepdim: bool = False):
        """The product over @axes."""

    @op(gradient="none")
    def any(self, axis: Axes | None = None, keepdim: bool = False):
        """Whether any over @axes is not zero, as bool."""

    @op(gradient="none")
    def all(self, axis: Axes | None = None, keepdim: bool = False):
        """Whether none over @axes is zero, as bool."""

    @op(takes="float")
    def var(self, axis: Axes | None = None, correction: int = 1, keepdim: bool = False):
        """@correction: 1 for the unbiased estimate, 0 for the population's

        The variance over @axes: squared distances to the mean, their sum divided by the count less @correction."""

    @op(takes="float")
    def std(self, axis: Axes | None = None, correction: int = 1, keepdim: bool = False):
        """@correction: 1 for the unbiased estimate, 0 for the population's

        The square root of tiny_tensor_var()."""

    @op(gradient="none")
    def argmax(self, axis: Axis | None = None, keepdim: bool = False):
        """The position of the largest along @axis, the first of equals, as i32."""

    @op(gradient="none")
    def argmin(self, axis: Axis | None = None, keepdim: bool = False):
        """The position of the smallest along @axis, the first of equals, as i32."""


class Movement:
    """Other shapes of the same elements: none of these copies."""

    @op(alias="view")
    def reshape(self, shape: Shape):
        """The elements in row-major order in another shape; one size may be -1 and follows from the others."""

    def permute(self, axis: Axes):
        """@axis: a permutation

        Axis @axes[i] becomes axis i."""

    @op(alias="swapaxes swapdims")
    def transpose(self, dim0: Axis = 1, dim1: Axis = 0):
        """Axes @dim0 and @dim1 exchanged."""

    @op(alias="broadcast_to")
    def expand(self, shape: Shape):
        """@self broadcast to @shape; -1 keeps a size."""

    def pad(self, pairs: Sizes, mode: str = "constant", value: float = 0):
        """@pairs: before and after of each axis; negative ones cut off
        @mode: constant, reflect (without the edge), replicate (the edge) or circular
        @value: what to pad with; of mode constant only

        @self with more around it. What is cut off is cut after the others were added. Reflect continues by less than an
        axis has, circular by no more."""

    def pad_to(self, shape: Sizes, value: float = 0):
        """@shape: sizes, none smaller than @self's; -1 keeps one
        @value: what to pad with

        @self at the beginning of a tensor of @shape."""

    def shrink_to(self, shape: Sizes):
        """@shape: sizes, none larger than @self's; -1 keeps one

        The beginning of @self."""

    def shrink(self, pairs: Sizes):
        """@pairs: begin and end of each axis

        The part of @self from begin up to before end."""

    def flip(self, axis: Axes):
        """@self with @axes reversed."""

    def squeeze(self, axis: Axes | None = None):
        """@self without those of @axes that have size 1."""

    def unsqueeze(self, dim: int):
        """@dim: where, from -rank-1 to rank

        @self with a new axis of size 1 at @dim."""

    @op(alias="ravel")
    def flatten(self, start_dim: int = 0, end_dim: int = -1):
        """@start_dim: the first axis
        @end_dim: the last axis

        Axes @start_dim to @end_dim made one."""

    def slice(self, axis: Axis, start: int, stop: int, step: int = 1):
        """@start: where to start
        @stop: where to stop, not included
        @step: not 0

        The part of @self along @axis that Python's start:stop:step takes: negative positions count from the end,
        those outside are moved inside. Use %TINY_SLICE_END and %TINY_SLICE_BEGIN for an open stop."""

    def repeat(self, repeats: Sizes):
        """@repeats: how often, for each axis; at least as many as @self has

        @self laid side by side @repeats times."""

    def tile(self, repeats: Sizes):
        """@repeats: how often, for each of the last axes

        As tiny_tensor_repeat(), whichever has more axes."""

    def repeat_interleave(self, repeats: int, axis: Axis | None = None):
        """@repeats: how often

        Every element along @axis @repeats times in a row."""

    def roll(self, shifts: Sizes, dims: Sizes | None = None):
        """@shifts: how far, for each of @dims
        @dims: axes, negative ones from the end; without them the elements roll as one row

        @self moved along @dims; what leaves at the end comes in at the beginning."""

    def rot90(self, k: int = 1, axis: Axes = (0, 1)):
        """@k: how many quarters of a turn
        @axis: two axes

        @self turned from the first of @axes to the second."""

    def flipud(self):
        """@self with its first axis reversed."""

    def fliplr(self):
        """@self with its second axis reversed."""

    @op(alias="moveaxis")
    def movedim(self, source: Sizes, destination: Sizes):
        """@source: axes, negative ones from the end
        @destination: where they go, as many

        @self with some axes elsewhere; the others keep their order."""

    def unflatten(self, axis: Axis, sizes: Sizes):
        """@sizes: at least one; one of them may be -1

        @axis made several."""

    def rearrange(self, formula: str, names: str | None = None, sizes: Sizes | None = None):
        """@formula: axes before and after, as "b (h w) c -> b c h w"
        @names: of axes whose sizes are given, separated by spaces
        @sizes: their sizes

        @self reshaped, permuted and reshaped as @formula says (Rogozhnikov 2022): names in parentheses are one axis, "..."
        are those not named, 1 is an axis of size 1. In each parenthesis on the left all sizes but one are given."""

    def narrow(self, axis: Axis, start: int, length: int):
        """@start: the first, a negative one from the end
        @length: how many

        @length elements along @axis."""

    def select(self, axis: Axis, index: int):
        """@index: a negative one counts from the end

        The part of @self at @index, without @axis."""

    def split(self, sizes: Sizes, axis: Axis = 0) -> Tensors:
        """@sizes: one size of all pieces, of which the last may be smaller; or that of each

        @self cut into pieces along @axis."""

    def chunk(self, chunks: int, axis: Axis = 0) -> Tensors:
        """@chunks: how many at most

        @self cut into equal pieces along @axis, of which the last may be smaller."""

    def unbind(self, axis: Axis = 0) -> Tensors:
        """The parts of @self along @axis, without it."""

    def unfold(self, axis: Axis, size: int, step: int):
        """@size: of a window
        @step: from one to the next, at least 1

        Windows along @axis, their elements a new last axis."""

    def diagonal(self, offset: int = 0, dim1: Axis = 0, dim2: Axis = 1):
        """@offset: how far above the main diagonal

        The diagonals of the matrices along @dim1 and @dim2, as a new last axis."""

    def diag(self, diagonal: int = 0):
        """@diagonal: how far above the main one

        A vector as the diagonal of a square matrix; of a matrix its diagonal."""

    def triu(self, diagonal: int = 0):
        """@diagonal: how far above the main one the triangle begins

        Matrices with 0 below a diagonal."""

    def tril(self, diagonal: int = 0):
        """@diagonal: how far above the main one the triangle ends

        Matrices with 0 above a diagonal."""

    @op(alias="concat concatenate")
    def cat(tensors: Tensors, axis: Axis = 0):
        """@tensors: at least one, equal in all sizes but that of @axis

        The tensors one after the other along @axis."""

    def stack(tensors: Tensors, dim: int = 0):
        """@tensors: at least one, of equal shape
        @dim: where the new axis goes, from -rank-1 to rank

        The tensors side by side along a new axis."""

    def hstack(tensors: Tensors):
        """@tensors: at least one

        The tensors one after the other along the second axis, or the first of vectors."""

    @op(alias="row_stack")
    def vstack(tensors: Tensors):
        """@tensors: at least one

        The tensors one below the other; a vector is a row."""

    def dstack(tensors: Tensors):
        """@tensors: at least one

        The tensors one behind the other along the third axis."""

    def meshgrid(tensors: Tensors, indexing: str = "ij") -> Tensors:
        """@tensors: vectors, or numbers
        @indexing: ij, or xy, which exchanges the first two axes

        Each tensor along its axis of a grid of all."""


class Indexing:
    """Elements picked by positions that are data. Indices are integers; no kernel stops for one that is outside."""

    @op(framed=True)
    def index(self, pattern: str, numbers: Sizes | None = None, tensors: Tensors | None = None):
        """@pattern: what the subscript consists of, one letter for each part
        @numbers: of the parts i and s, in order
        @tensors: of the parts t, in order

        `@self[…]` of Python. The parts are: `i` a number, which takes its axis away; `s` a slice (start, stop and step as
        in tiny_tensor_slice()); `:` a whole axis; `n` a new axis of size 1; `.` as many whole axes as are left (there may
        be one; without it they are at the end); `t` a tensor. So x[2, ..., None, ::2] is "i.ns" with the numbers
        2, %TINY_SLICE_BEGIN, %TINY_SLICE_END, 2 (a start far below the first is the first).

        Tensors of integers pick along their axis, negative ones from the end; several broadcast and are one pick,
        whose axes come where the first one was, or first of all when a slice parts them (PyTorch's rule: numbers and
        tensors without axes part nothing). Positions outside give 0 and have no gradient. A bool tensor of rank k
        stands for the positions of what is true in it along the next k axes; how many they are is a size, so it is
        realised.

        A number outside of its axis, more parts than axes, index tensors that do not broadcast and a mask of
        another shape are errors."""

    @op(framed=True)
    def index_put(self, indices: Tensors, values: Tensor, accumulate: bool = False):
        """@indices: integers or bool, one for each of the first axes
        @values: what to write, broadcast to what tiny_tensor_index() gives
        @accumulate: whether to add instead

        @self with @values at @indices, in @self's dtype. Of several at one position the last wins, or with
        @accumulate all are added."""

    @op(framed=True, gradient="none")
    def one_hot(self, num_classes: int = -1):
        """@self: integers
        @num_classes: how many classes; -1: one more than the largest label, which is read then

        A new last axis that is 1 at the position the label says and 0 elsewhere, as i32."""

    def index_select(self, axis: Axis, index: Tensor):
        """@index: integers of any shape

        The parts of @self along @axis at @index, whose shape replaces that axis: rows of an embedding
        (V, D) at tokens (B, T) along axis 0 are (B, T, D). NumPy's `take`, ONNX's `Gather`.

        A position below 0 or beyond the last gives zeros and has no gradient. (Negative positions do not count from
        the end.) What is read at equal positions adds up in the gradient of @self. One load for each element of the
        result, whatever the size of @self."""

    def gather(self, axis: Axis, index: Tensor):
        """@index: integers with as many axes as @self, on the others of which it is no larger

        The elements of @self whose position along @axis is what @index says and along the other axes is that of the
        index, in @index's shape: of scores (B, K) the label's is gather (scores, 1, labels (B, 1)), (B, 1). ONNX's
        `GatherElements`. Positions outside and gradients: as tiny_tensor_index_select()."""

    def take_along_dim(self, indices: Tensor, axis: Axis | None = None):
        """@indices: integers with as many axes as @self

        As tiny_tensor_gather(), but on the other axes both broadcast. NumPy's `take_along_axis`."""

    def take(self, index: Tensor):
        """@index: integers, negative ones from the end

        The elements of @self, as a vector, at @index."""

    def scatter(self, axis: Axis, index: Tensor, src: Tensor, reduce: str | None = None):
        """@index: integers with as many axes as @self, no larger than @self on the others
        @src: as large as @index at least, or a number; cast to @self's dtype
        @reduce: add or multiply, instead of writing over

        @self with the elements of @src at the positions along @axis that @index says. Of several at one position the last
        wins; those outside of @self write nothing. The work is that of comparing every position of @self along @axis with
        every one of @index."""

    def scatter_add(self, axis: Axis, index: Tensor, src: Tensor):
        """@index: as in tiny_tensor_scatter()
        @src: as in tiny_tensor_scatter()

        The elements of @src added to @self at the positions along @axis that @index says."""

    @op(gradient="kinks")
    def scatter_reduce(self, axis: Axis, index: Tensor, src: Tensor, reduce: str, include_self: bool = True):
        """@index: as in tiny_tensor_scatter()
        @src: as in tiny_tensor_scatter()
        @reduce: sum, prod, mean, amax or amin
        @include_self: whether @self counts where something is written

        The elements of @src combined with @self, or with each other, at the positions along @axis that @index says."""

    def index_add(self, axis: Axis, index: Tensor, source: Tensor, alpha: float = 1):
        """@index: a vector of integers
        @source: of @self's shape but along @axis, where it is as long as @index
        @alpha: a factor

        @alpha * @source added to @self at the positions @index along @axis."""

    def index_copy(self, axis: Axis, index: Tensor, source: Tensor):
        """@index: a vector of integers
        @source: of @self's shape but along @axis, where it is as long as @index

        @self with @source at the positions @index along @axis."""

    def index_fill(self, axis: Axis, index: Tensor, value: Tensor):
        """@index: a vector of integers, negative ones from the end
        @value: of shape ()

        @self with @value at the positions @index along @axis."""

    @op(framed=True, gradient="none", alias="argwhere")
    def nonzero(self):
        """The positions of what is not zero, one in each row of a matrix, as i32. How many they are is a size: @self is
        realised and read."""

    @op(framed=True)
    def masked_select(self, mask: Tensor):
        """@mask: bool

        The elements of @self where @mask is true, as a vector; both broadcast. @mask is realised and read."""

    @op(framed=True)
    def masked_scatter(self, mask: Tensor, source: Tensor):
        """@mask: bool; both broadcast
        @source: at least as many elements as are true

        @self with the elements of @source, one after the other, where @mask is true. @mask is realised and read."""

    @op(framed=True, gradient="none")
    def bincount(self, weights: Tensor | None = None, minlength: int = 0):
        """@self: a vector of integers from 0
        @weights: what each counts; without it 1, as i32
        @minlength: how long the result is at least

        How often each number is in @self. The largest is read."""

    @op(gradient="none")
    def histc(self, bins: int = 100, min: float = 0, max: float = 0):
        """@bins: how many
        @min: where the first begins
        @max: where the last ends; if it is @min, they are those of @self

        How many elements are in each of @bins intervals of equal width, in @self's dtype; those outside do not count."""

    @op(framed=True)
    def unique(self, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
               axis: Axis | None = None) -> Tensors:
        """@sorted: they always are; for PyTorch's sake
        @return_inverse: whether to tell where each element of @self is among them
        @return_counts: whether to tell how often each is there
        @axis: of parts to be compared as a whole

        The different elements of @self in order, then what else is asked for, as i32. Every NaN differs from all others.
        @self is realised and compared on the host."""

    @op(framed=True)
    def unique_consecutive(self, return_inverse: bool = False, return_counts: bool = False,
                           axis: Axis | None = None) -> Tensors:
        """@return_inverse: whether to tell where each element of @self is among them
        @return_counts: whether to tell how often each is there in a row
        @axis: of parts to be compared as a whole

        @self without elements that equal the one before, then what else is asked for, as i32. @self is realised and
        compared on the host."""


class Sorting:
    """Elements in order, from the least or with @descending from the greatest; NaNs are greater than all. Positions
    are i32. Equal elements keep their order."""

    gradient = "kinks"

    def sort(self, axis: Axis = -1, descending: bool = False, stable: bool = False) -> (values, indices):
        """@descending: from the greatest to the least
        @stable: it always is; for PyTorch's sake

        @self in order along @axis, and where each element was. A merge sort: n log² n reads along an axis of n."""

    @op(gradient="none")
    def argsort(self, axis: Axis = -1, descending: bool = False, stable: bool = False):
        """@descending: from the greatest to the least
        @stable: it always is; for PyTorch's sake

        The positions along @axis that put @self in order, as i32."""

    def msort(self):
        """@self in order along its first axis."""

    def topk(self, k: int, axis: Axis = -1, largest: bool = True, sorted: bool = True) -> (values, indices):
        """@k: how many, at most as many as the axis has
        @largest: or the least
        @sorted: they always are; for PyTorch's sake

        The @k largest along @axis in order, the first of equals first, and where they were."""

    def kthvalue(self, k: int, axis: Axis = -1, keepdim: bool = False) -> (values, indices):
        """@k: which one, from 1

        The @k-th least along @axis, and where it was."""

    def median(self, axis: Axis | None = None, keepdim: bool = False) -> (values, indices):
        """The element in the middle along @axis, the lower of two, a NaN where there is one; and where it was."""

    @op(gradient="none")
    def searchsorted(self, values: Tensor, right: bool = False, sorter: Tensor | None = None):
        """@self: in order along its last axis
        @values: of any shape; or where @self has more axes than one, of the same but for the last
        @right: whether to go behind equal ones
        @sorter: integers that put @self in order, if it is not

        Where each of @values belongs in @self, as i32: how many are less than it, or with @right not greater."""

    @op(gradient="none")
    def bucketize(self, boundaries: Tensor, right: bool = False):
        """@boundaries: a vector in order
        @right: whether a boundary belongs to what is above it

        Between which of @boundaries each element is, as i32: tiny_tensor_searchsorted() the other way round."""

    @op(gradient="none")
    def isin(self, test_elements: Tensor, invert: bool = False):
        """@test_elements: a tensor
        @invert: whether to tell what is not

        Which elements of @self are among @test_elements, as bool."""


class Products:
    """Sums of products."""

    def matmul(self, other: Tensor):
        """The matrix product (…, M, K) @ (…, K, N) = (…, M, N); leading axes broadcast, a vector is a row on
        the left and a column on the right. f16 and bf16 accumulate in f32."""

    def dot(self, other: Tensor):
        """The same as tiny_tensor_matmul()."""
        return matmul(self, other)

    def linear(self, weight: Tensor, bias: Tensor | None = None):
        """@self: of shape (…, I)
        @weight: of shape (O, I)
        @bias: of shape (O)

        @self @ @weightᵀ + @bias, (…, O)."""

    @op(framed=True)
    def conv2d(self, weight: Tensor, bias: Tensor | None = None, stride: int = 1, padding: int = 0, dilation: int = 1,
               groups: int = 1):
        """@self: of shape (B, C, Y, X)
        @weight: of shape (O, C / @groups, KY, KX)
        @bias: of shape (O)
        @stride: of both directions, at least 1
        @padding: zeros on each side
        @dilation: distance between taps, at least 1
        @groups: divides C and O

        The convolution (without flipping the kernel) of images, (B, O, Y', X') with
        Y' = (Y + 2 padding - dilation (KY - 1) - 1) / stride + 1. The result is stored channels-last."""


class Pooling:
    """Windows of images combined."""

    @op(framed=True, gradient="kinks")
    def max_pool2d(self, kernel_size: int, stride: int = 0, padding: int = 0):
        """@self: of shape (B, C, Y, X)
        @kernel_size: side of the window
        @stride: distance of windows; 0: @kernel_size
        @padding: on each side, at most half of @kernel_size

        The largest of each window; padding never wins."""

    @op(framed=True)
    def avg_pool2d(self, kernel_size: int, stride: int = 0, padding: int = 0):
        """@self: of shape (B, C, Y, X)
        @kernel_size: side of the window
        @stride: distance of windows; 0: @kernel_size
        @padding: on each side, at most half of @kernel_size

        The mean of each window; padding counts as zeros."""


class Normalisation:
    """Values brought to a common scale."""

    takes = "float"

    def softmax(self, axis: Axis = -1):
        """exp (@self) / sum (exp (@self)) over @axis."""

    def log_softmax(self, axis: Axis = -1):
        """The logarithm of tiny_tensor_softmax()."""

    @op(framed=True)
    def batch_norm(self, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float = 1e-5):
        """@self: of shape (B, C, …)
        @weight: of shape (C)
        @bias: of shape (C)
        @mean: of shape (C)
        @var: of shape (C)
        @eps: added to @var

        (@self - @mean) / sqrt (@var + @eps) * @weight + @bias."""

    @op(framed=True)
    def layer_norm(self, n_axes: int = 1, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5):
        """@n_axes: how many of the last axes are normalised together
        @weight: of the shape of those axes
        @bias: likewise
        @eps: added to the variance

        @self with mean 0 and variance 1 over its last axes, times @weight plus @bias."""


class Losses:
    """How far from what was wanted."""

    takes = "float"

    @op(framed=True)
    def cross_entropy(self, labels: Tensor):
        """@self: scores before softmax, (B, K)
        @labels: integers from 0 to K-1, (B)

        The mean over B of -log_softmax (@self) at the label. A label outside counts as 0 loss."""


class Creation:
    """Tensors of constants and counters: they have no memory until realised."""

    gradient = "none"

    def zeros(dtype: DType, shape: Shape):
        """All 0."""

    def ones(dtype: DType, shape: Shape):
        """All 1."""

    def full(dtype: DType, shape: Shape, fill_value: float):
        """All @fill_value."""

    def arange(dtype: DType, start: float, stop: float, step: float):
        """@start: the first
        @stop: not reached
        @step: not 0

        @start, @start + @step, … up to before @stop, a vector."""

    def linspace(dtype: DType, start: float, stop: float, steps: int):
        """@start: the first
        @stop: the last
        @steps: how many

        @steps numbers from @start to @stop at equal distances."""

    def eye(dtype: DType, n: int, m: int):
        """@n: rows
        @m: columns

        1 on the diagonal, 0 elsewhere."""


class Random:
    """Random numbers: threefry2x32-20, counter based, the same on every device (Salmon et al. 2011)."""

    gradient = "none"

    def rand(dtype: DType, shape: Shape):
        """@dtype: a float dtype

        Uniform over [0, 1)."""

    def randn(dtype: DType, shape: Shape):
        """@dtype: a float dtype

        Normal with mean 0 and variance 1 (Box and Muller 1958)."""

    def uniform(dtype: DType, shape: Shape, low: float = 0, high: float = 1):
        """@dtype: a float dtype
        @low: the least
        @high: not reached

        Uniform over [@low, @high)."""

    def randint(dtype: DType, shape: Shape, low: int, high: int):
        """@dtype: an integer dtype
        @low: the least
        @high: not reached, at most 2³² more than @low

        Integers from @low up to before @high."""

    def kaiming_uniform(dtype: DType, shape: Shape, a: float = 0.01):
        """@dtype: a float dtype
        @a: slope of the leaky rectifier; sqrt (5) gives ±1 / sqrt (fan-in)

        Uniform over ±sqrt (6 / (1 + @a²) / fan-in), fan-in being the product of all sizes but the first
        (He et al. 2015)."""

    @op(takes="float", gradient="smooth")
    def dropout(self, p: float = 0.5):
        """@p: probability of zero, from 0 to below 1

        Zeroes elements with probability @p and divides the others by 1 - @p. The numbers are drawn when this is called:
        a captured step (#TinyJit) replays the same ones."""
