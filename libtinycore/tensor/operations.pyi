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
  symbolic    takes axes whose size is a variable (shorten); others refuse such tensors. True where what the row builds goes by
              the limits of its arguments (ir/tiny-limit.h) and never by the largest sizes, which their shapes have
  alias       other names in Python
  framed      C has the whole function, not just op_NAME() of operations-private.h

A body is the definition: + - * / ** and comparisons of tensors and numbers, other rows by name, IR ops in
capitals. Rows without one are op_NAME() in the tensor-*.c of their kind."""


class Arithmetic:
    """Shapes broadcast as in NumPy. Dtypes promote: bool to integers to floats, two of different width to the
    smallest that holds both; a scalar (tiny_tensor_scalar()) takes the other side's dtype."""

    symbolic = True
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

    symbolic = True
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

    symbolic = True
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

    symbolic = True
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

    symbolic = True
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

    symbolic = True
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

    symbolic = True
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

    symbolic = True
    def cast(self, dtype: DType):
        """The values in another dtype. Floats to integers truncate; to bool: what is not zero."""

    @op(gradient="none")
    def bitcast(self, dtype: DType):
        """@dtype: a dtype of the same size

        The bits taken as another dtype."""


class Reductions:
    """Axes combined to one element each."""

    symbolic = True
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

    @op(alias="view", symbolic=True)
    def reshape(self, shape: Shape):
        """The elements in row-major order in another shape; one size may be -1 and follows from the others."""

    @op(symbolic=True)
    def permute(self, axis: Axes):
        """@axis: a permutation

        Axis @axes[i] becomes axis i."""

    @op(alias="swapaxes swapdims", symbolic=True)
    def transpose(self, dim0: Axis = 1, dim1: Axis = 0):
        """Axes @dim0 and @dim1 exchanged."""

    @op(alias="broadcast_to", symbolic=True)
    def expand(self, shape: Shape):
        """@self broadcast to @shape; -1 keeps a size."""

    @op(symbolic=True)
    def pad(self, pairs: Sizes, value: float = 0):
        """@pairs: before and after of each axis; negative ones cut off
        @value: what to pad with

        @self with @value around it."""

    @op(symbolic=True)
    def shrink(self, pairs: Sizes):
        """@pairs: begin and end of each axis

        The part of @self from begin up to before end."""

    @op(symbolic=True)
    def flip(self, axis: Axes):
        """@self with @axes reversed."""

    @op(symbolic=True)
    def squeeze(self, axis: Axes | None = None):
        """@self without those of @axes that have size 1."""

    @op(symbolic=True)
    def unsqueeze(self, dim: int):
        """@dim: where, from -rank-1 to rank

        @self with a new axis of size 1 at @dim."""

    @op(symbolic=True)
    def flatten(self, start_dim: int = 0, end_dim: int = -1):
        """@start_dim: the first axis
        @end_dim: the last axis

        Axes @start_dim to @end_dim made one."""

    @op(symbolic=True)
    def slice(self, axis: Axis, start: int, stop: int, step: int = 1):
        """@start: where to start
        @stop: where to stop, not included
        @step: not 0

        The part of @self along @axis that Python's start:stop:step takes: negative positions count from the end,
        those outside are moved inside. Use %TINY_SLICE_END and %TINY_SLICE_BEGIN for an open stop."""

    @op(symbolic=True)
    def shorten(self, axis: Axis, size: Tensor):
        """@size: an integer without axes, calculated from variables (tiny_variable_bind()) and numbers by + and *

        The first @size elements of @self along @axis: an axis whose size is a variable. Programs are made once, for the
        largest @size, and are given the size when they are launched; memory has room for the largest. Reading gives what the value is. What
        cannot be computed for such an axis is an error."""

    def narrow(self, axis: Axis, start: Tensor, length: int):
        """@start: an integer without axes: a variable (tiny_variable_bind()), or one in memory
        @length: how many

        The @length elements of @self along @axis from @start on. Where @start is calculated from variables and numbers,
        positions that it could reach outside of @self are an error; where it is data they give zeros."""

    @op(symbolic=True)
    def repeat(self, repeats: Sizes):
        """@repeats: how often, for each axis; at least as many as @self has

        @self laid side by side @repeats times."""

    @op(alias="concat concatenate", symbolic=True)
    def cat(tensors: Tensors, axis: Axis = 0):
        """@tensors: at least one, equal in all sizes but that of @axis

        The tensors one after the other along @axis."""

    @op(symbolic=True)
    def stack(tensors: Tensors, dim: int = 0):
        """@tensors: at least one, of equal shape
        @dim: where the new axis goes, from -rank-1 to rank

        The tensors side by side along a new axis."""


class Indexing:
    """Elements picked by positions that are data. Indices are integers; no kernel stops for one that is outside."""

    @op(gradient="none")
    def one_hot(self, num_classes: int):
        """@self: integers
        @num_classes: how many classes

        A new last axis that is 1 at the position the label says and 0 elsewhere, as i32."""

    @op(symbolic=True)
    def index_select(self, axis: Axis, index: Tensor):
        """@index: integers of any shape

        The parts of @self along @axis at @index, whose shape replaces that axis: rows of an embedding
        (V, D) at tokens (B, T) along axis 0 are (B, T, D). NumPy's `take`, ONNX's `Gather`.

        A position below 0 or beyond the last gives zeros and has no gradient. (Negative positions do not count from
        the end.) What is read at equal positions adds up in the gradient of @self. One load for each element of the
        result, whatever the size of @self."""

    def gather(self, axis: Axis, index: Tensor):
        """@index: integers with as many axes as @self

        The elements of @self whose position along @axis is what @index says and along the other axes is
        that of the index; there @index broadcasts to the sizes of @self. The score of each row's label
        is `gather (scores (B, K), 1, labels (B, 1))`, (B, 1). NumPy's `take_along_axis`, ONNX's `GatherElements`.
        Positions outside and gradients: as tiny_tensor_index_select()."""


class Products:
    """Sums of products."""

    @op(symbolic=True)
    def matmul(self, other: Tensor):
        """The matrix product (…, M, K) @ (…, K, N) = (…, M, N); leading axes broadcast, a vector is a row on
        the left and a column on the right. f16 and bf16 accumulate in f32."""

    @op(symbolic=True)
    def dot(self, other: Tensor):
        """The same as tiny_tensor_matmul()."""
        return matmul(self, other)

    @op(symbolic=True)
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

    @op(symbolic=True)
    def softmax(self, axis: Axis = -1):
        """exp (@self) / sum (exp (@self)) over @axis."""

    @op(symbolic=True)
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
