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

    def pad(self, pairs: Sizes, value: float = 0):
        """@pairs: before and after of each axis; negative ones cut off
        @value: what to pad with

        @self with @value around it."""

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

    @op(alias="concat concatenate")
    def cat(tensors: Tensors, axis: Axis = 0):
        """@tensors: at least one, equal in all sizes but that of @axis

        The tensors one after the other along @axis."""

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

    def matmul(self, other: Tensor):
        """The matrix product (…, M, K) @ (…, K, N) = (…, M, N); leading axes broadcast, a vector is a row on
        the left and a column on the right. f16 and bf16 accumulate in f32."""

    def dot(self, other: Tensor):
        """The same as tiny_tensor_matmul()."""
        return matmul(self, other)

    def mm(self, mat2: Tensor):
        """tiny_tensor_matmul() of matrices."""

    def mv(self, vec: Tensor):
        """tiny_tensor_matmul() of a matrix and a vector."""

    def bmm(self, mat2: Tensor):
        """@self: of shape (B, M, K)
        @mat2: of shape (B, K, N)

        tiny_tensor_matmul() of as many matrices, (B, M, N)."""

    @op(alias="ger")
    def outer(self, vec2: Tensor):
        """@self: a vector (M)
        @vec2: a vector (N)

        Each element times each, (M, N)."""

    def inner(self, other: Tensor):
        """The sum of products over the last axes of both; with a scalar the product."""

    def tensordot(self, other: Tensor, dims: int = 2, self_dims: Sizes | None = None, other_dims: Sizes | None = None):
        """@dims: how many of the last axes of @self and first of @other are summed
        @self_dims: those axes of @self instead
        @other_dims: and of @other

        The sum of products over axes of both; the others follow each other."""

    def kron(self, other: Tensor):
        """The product of Kronecker: each element of @self times all of @other, in blocks."""

    def trace(self):
        """@self: a matrix

        The sum of its diagonal."""

    @op(alias="linalg_cross")
    def cross(self, other: Tensor, axis: Axis = -1):
        """@axis: of size 3

        The vector at right angles to both, along @axis."""

    def addmm(self, mat1: Tensor, mat2: Tensor, beta: float = 1, alpha: float = 1):
        """@beta: factor of @self; 0: it is not read
        @alpha: factor of the product

        @beta @self + @alpha @mat1 @ @mat2."""

    def baddbmm(self, batch1: Tensor, batch2: Tensor, beta: float = 1, alpha: float = 1):
        """@beta: factor of @self; 0: it is not read
        @alpha: factor of the product

        @beta @self + @alpha tiny_tensor_bmm (@batch1, @batch2)."""

    def einsum(equation: str, operands: Tensors):
        """@equation: letters for the axes of each operand, with commas between them, and after -> those of the result

        The sum of products over letters that the result has not. "..." is for any axes, which broadcast; a letter twice in
        one operand takes its diagonal. Without -> the result has the axes of "...", then the letters written once in
        order of the alphabet, capitals first. Pairs with the smallest product are multiplied first."""

    def linear(self, weight: Tensor, bias: Tensor | None = None):
        """@self: of shape (…, I)
        @weight: of shape (O, I)
        @bias: of shape (O)

        @self @ @weightᵀ + @bias, (…, O)."""


class Convolution:
    """Windows of images times weights. An image is (B, C, S…) or (C, S…), with a size for each direction. Sizes are one
    number for all directions or one for each; padding may also be two for each, before and after, the last direction
    first. Nothing is flipped. Results are stored channels-last."""

    def conv1d(self, weight: Tensor, bias: Tensor | None = None, stride: Sizes | None = 1, padding: Sizes | None = 0,
               dilation: Sizes | None = 1, groups: int = 1):
        """@self: of shape (B, C, X) or (C, X)
        @weight: of shape (O, C / @groups, K)
        @bias: of shape (O)
        @stride: distance of windows, at least 1
        @padding: zeros on each side
        @dilation: distance between taps, at least 1
        @groups: divides C and O

        tiny_tensor_conv2d() in one direction."""

    def conv2d(self, weight: Tensor, bias: Tensor | None = None, stride: Sizes | None = 1, padding: Sizes | None = 0,
               dilation: Sizes | None = 1, groups: int = 1):
        """@self: of shape (B, C, Y, X) or (C, Y, X)
        @weight: of shape (O, C / @groups, KY, KX)
        @bias: of shape (O)
        @stride: distance of windows, at least 1
        @padding: zeros on each side
        @dilation: distance between taps, at least 1
        @groups: divides C and O

        The convolution of images, (B, O, Y', X') with Y' = (Y + 2 padding - dilation (KY - 1) - 1) / stride + 1.
        A weight of other rank, up to 7, is of as many directions."""

    def conv3d(self, weight: Tensor, bias: Tensor | None = None, stride: Sizes | None = 1, padding: Sizes | None = 0,
               dilation: Sizes | None = 1, groups: int = 1):
        """@self: of shape (B, C, Z, Y, X) or (C, Z, Y, X)
        @weight: of shape (O, C / @groups, KZ, KY, KX)
        @bias: of shape (O)
        @stride: distance of windows, at least 1
        @padding: zeros on each side
        @dilation: distance between taps, at least 1
        @groups: divides C and O

        tiny_tensor_conv2d() in three directions."""

    def conv_transpose1d(self, weight: Tensor, bias: Tensor | None = None, stride: Sizes | None = 1, padding: Sizes | None = 0,
                         output_padding: Sizes | None = 0, groups: int = 1, dilation: Sizes | None = 1):
        """@self: of shape (B, C, X) or (C, X)
        @weight: of shape (C, O / @groups, K)
        @bias: of shape (O)
        @stride: distance of windows in the result, at least 1
        @padding: what is cut off on each side
        @output_padding: more elements at the end, fewer than a stride or dilation
        @groups: divides C and O
        @dilation: distance between taps, at least 1

        tiny_tensor_conv_transpose2d() in one direction."""

    def conv_transpose2d(self, weight: Tensor, bias: Tensor | None = None, stride: Sizes | None = 1, padding: Sizes | None = 0,
                         output_padding: Sizes | None = 0, groups: int = 1, dilation: Sizes | None = 1):
        """@self: of shape (B, C, Y, X) or (C, Y, X)
        @weight: of shape (C, O / @groups, KY, KX)
        @bias: of shape (O)
        @stride: distance of windows in the result, at least 1
        @padding: what is cut off on each side
        @output_padding: more elements at the end, fewer than a stride or dilation
        @groups: divides C and O
        @dilation: distance between taps, at least 1

        What tiny_tensor_conv2d() with the same numbers does to a gradient: each element is spread over its window,
        (B, O, Y', X') with Y' = (Y - 1) stride - 2 padding + dilation (KY - 1) + output padding + 1. A weight of
        other rank, up to 7, is of as many directions."""

    def conv_transpose3d(self, weight: Tensor, bias: Tensor | None = None, stride: Sizes | None = 1, padding: Sizes | None = 0,
                         output_padding: Sizes | None = 0, groups: int = 1, dilation: Sizes | None = 1):
        """@self: of shape (B, C, Z, Y, X) or (C, Z, Y, X)
        @weight: of shape (C, O / @groups, KZ, KY, KX)
        @bias: of shape (O)
        @stride: distance of windows in the result, at least 1
        @padding: what is cut off on each side
        @output_padding: more elements at the end, fewer than a stride or dilation
        @groups: divides C and O
        @dilation: distance between taps, at least 1

        tiny_tensor_conv_transpose2d() in three directions."""


class Pooling:
    """Windows of images combined. Images and sizes are as of convolutions; the number of a window's sizes, if it has more
    than one, is that of directions."""

    @op(gradient="kinks")
    def max_pool1d(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes | None = 0, dilation: Sizes | None = 1,
                   ceil_mode: bool = False):
        """@self: of shape (B, C, X) or (C, X)
        @kernel_size: sides of the window
        @stride: distance of windows; none: @kernel_size
        @padding: on each side, at most half of @kernel_size
        @dilation: distance between elements of a window
        @ceil_mode: whether a last window that is not all inside counts

        tiny_tensor_max_pool2d() in one direction."""

    @op(gradient="kinks")
    def max_pool1d_with_indices(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes | None = 0,
                                dilation: Sizes | None = 1, ceil_mode: bool = False) -> (values, indices):
        """@self: of shape (B, C, X) or (C, X)
        @kernel_size: sides of the window
        @stride: distance of windows; none: @kernel_size
        @padding: on each side, at most half of @kernel_size
        @dilation: distance between elements of a window
        @ceil_mode: whether a last window that is not all inside counts

        tiny_tensor_max_pool1d(), and where the first of the largest is, counted in row-major order of the
        image, as i64."""

    @op(gradient="kinks")
    def max_pool2d(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes | None = 0, dilation: Sizes | None = 1,
                   ceil_mode: bool = False):
        """@self: of shape (B, C, Y, X) or (C, Y, X)
        @kernel_size: sides of the window
        @stride: distance of windows; none: @kernel_size
        @padding: on each side, at most half of @kernel_size
        @dilation: distance between elements of a window
        @ceil_mode: whether a last window that is not all inside counts

        The largest of each window; padding never wins."""

    @op(gradient="kinks")
    def max_pool2d_with_indices(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes | None = 0,
                                dilation: Sizes | None = 1, ceil_mode: bool = False) -> (values, indices):
        """@self: of shape (B, C, Y, X) or (C, Y, X)
        @kernel_size: sides of the window
        @stride: distance of windows; none: @kernel_size
        @padding: on each side, at most half of @kernel_size
        @dilation: distance between elements of a window
        @ceil_mode: whether a last window that is not all inside counts

        tiny_tensor_max_pool2d(), and where the first of the largest is, counted in row-major order of the
        image, as i64."""

    @op(gradient="kinks")
    def max_pool3d(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes | None = 0, dilation: Sizes | None = 1,
                   ceil_mode: bool = False):
        """@self: of shape (B, C, Z, Y, X) or (C, Z, Y, X)
        @kernel_size: sides of the window
        @stride: distance of windows; none: @kernel_size
        @padding: on each side, at most half of @kernel_size
        @dilation: distance between elements of a window
        @ceil_mode: whether a last window that is not all inside counts

        tiny_tensor_max_pool2d() in three directions."""

    @op(gradient="kinks")
    def max_pool3d_with_indices(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes | None = 0,
                                dilation: Sizes | None = 1, ceil_mode: bool = False) -> (values, indices):
        """@self: of shape (B, C, Z, Y, X) or (C, Z, Y, X)
        @kernel_size: sides of the window
        @stride: distance of windows; none: @kernel_size
        @padding: on each side, at most half of @kernel_size
        @dilation: distance between elements of a window
        @ceil_mode: whether a last window that is not all inside counts

        tiny_tensor_max_pool3d(), and where the first of the largest is, counted in row-major order of the
        image, as i64."""

    def avg_pool1d(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes | None = 0, ceil_mode: bool = False,
                   count_include_pad: bool = True, divisor_override: int = 0):
        """@self: of shape (B, C, X) or (C, X)
        @kernel_size: sides of the window
        @stride: distance of windows; none: @kernel_size
        @padding: on each side, at most half of @kernel_size
        @ceil_mode: whether a last window that is not all inside counts
        @count_include_pad: whether padding counts, as zeros
        @divisor_override: what sums are divided by instead; 0: how many are counted

        tiny_tensor_avg_pool2d() in one direction."""

    def avg_pool2d(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes | None = 0, ceil_mode: bool = False,
                   count_include_pad: bool = True, divisor_override: int = 0):
        """@self: of shape (B, C, Y, X) or (C, Y, X)
        @kernel_size: sides of the window
        @stride: distance of windows; none: @kernel_size
        @padding: on each side, at most half of @kernel_size
        @ceil_mode: whether a last window that is not all inside counts
        @count_include_pad: whether padding counts, as zeros
        @divisor_override: what sums are divided by instead; 0: how many are counted

        The mean of each window."""

    def avg_pool3d(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes | None = 0, ceil_mode: bool = False,
                   count_include_pad: bool = True, divisor_override: int = 0):
        """@self: of shape (B, C, Z, Y, X) or (C, Z, Y, X)
        @kernel_size: sides of the window
        @stride: distance of windows; none: @kernel_size
        @padding: on each side, at most half of @kernel_size
        @ceil_mode: whether a last window that is not all inside counts
        @count_include_pad: whether padding counts, as zeros
        @divisor_override: what sums are divided by instead; 0: how many are counted

        tiny_tensor_avg_pool2d() in three directions."""

    def max_unpool2d(self, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes | None = 0,
                     output_size: Sizes | None = None):
        """@self: of shape (B, C, Y, X) or (C, Y, X)
        @indices: places as of tiny_tensor_max_pool2d_with_indices()
        @kernel_size: of the pooling
        @stride: of the pooling; none: @kernel_size
        @padding: of the pooling
        @output_size: Y and X of the result; none: what the pooling could have been of

        Elements where they were before pooling, zeros elsewhere. Those of equal places add up."""

    def adaptive_avg_pool1d(self, output_size: Sizes):
        """@self: of shape (B, C, X) or (C, X)
        @output_size: sizes of the result

        tiny_tensor_adaptive_avg_pool2d() in one direction."""

    @op(gradient="kinks")
    def adaptive_max_pool1d(self, output_size: Sizes):
        """@self: of shape (B, C, X) or (C, X)
        @output_size: sizes of the result

        tiny_tensor_adaptive_max_pool2d() in one direction."""

    def adaptive_avg_pool2d(self, output_size: Sizes):
        """@self: of shape (B, C, Y, X) or (C, Y, X)
        @output_size: sizes of the result

        The mean of each of as many parts as asked for, part i being of the elements floor (i Y / Y') up to before
        ceil ((i + 1) Y / Y')."""

    @op(gradient="kinks")
    def adaptive_max_pool2d(self, output_size: Sizes):
        """@self: of shape (B, C, Y, X) or (C, Y, X)
        @output_size: sizes of the result

        The largest of each of as many parts as asked for, part i being of the elements floor (i Y / Y') up to before
        ceil ((i + 1) Y / Y')."""

    def adaptive_avg_pool3d(self, output_size: Sizes):
        """@self: of shape (B, C, Z, Y, X) or (C, Z, Y, X)
        @output_size: sizes of the result

        tiny_tensor_adaptive_avg_pool2d() in three directions."""

    @op(gradient="kinks")
    def adaptive_max_pool3d(self, output_size: Sizes):
        """@self: of shape (B, C, Z, Y, X) or (C, Z, Y, X)
        @output_size: sizes of the result

        tiny_tensor_adaptive_max_pool2d() in three directions."""

    @op(takes="any", gradient="kinks")
    def interpolate(self, size: Sizes | None = None, scale_factor: Floats | None = None, mode: str = "nearest",
                    align_corners: bool = False):
        """@self: of shape (B, C, S…)
        @size: of the result, one number or one for each direction
        @scale_factor: instead of @size: result's size by source's
        @mode: nearest, nearest-exact, linear, bilinear or trilinear: the latter three for one, two and three directions
        @align_corners: of linear modes: whether the centres of corners, not the corners, stay where they are

        The image in another size, of elements read at rounded down positions, or mixed of two in each direction."""


class Normalisation:
    """Values brought to a common scale."""

    takes = "float"

    def softmax(self, axis: Axis = -1):
        """exp (@self) / sum (exp (@self)) over @axis."""

    def log_softmax(self, axis: Axis = -1):
        """The logarithm of tiny_tensor_softmax()."""

    def batch_norm(self, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
                   bias: Tensor | None = None, training: bool = False, eps: float = 1e-5):
        """@self: of shape (B, C, …)
        @running_mean: of shape (C)
        @running_var: of shape (C)
        @weight: of shape (C)
        @bias: of shape (C)
        @training: whether mean and variance are those of @self over all axes but C
        @eps: added to the variance

        (@self - mean) / sqrt (variance + @eps) * @weight + @bias. What is running does not change here:
        that is a layer's."""

    def instance_norm(self, running_mean: Tensor | None = None, running_var: Tensor | None = None,
                      weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
                      eps: float = 1e-5):
        """@self: of shape (B, C, S…)
        @running_mean: of shape (C)
        @running_var: of shape (C)
        @weight: of shape (C)
        @bias: of shape (C)
        @use_input_stats: whether mean and variance are those of @self over S
        @eps: added to the variance

        tiny_tensor_batch_norm() of each image by itself."""

    def group_norm(self, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5):
        """@self: of shape (B, C, …)
        @num_groups: divides C
        @weight: of shape (C)
        @bias: of shape (C)
        @eps: added to the variance

        Mean 0 and variance 1 over each group of channels, times @weight plus @bias (Wu and He 2018)."""

    def layer_norm(self, normalized_shape: Shape, weight: Tensor | None = None, bias: Tensor | None = None,
                   eps: float = 1e-5):
        """@normalized_shape: the last axes of @self, which are normalised together
        @weight: of that shape
        @bias: of that shape
        @eps: added to the variance

        @self with mean 0 and variance 1 over its last axes, times @weight plus @bias."""

    def rms_norm(self, normalized_shape: Shape, weight: Tensor | None = None, eps: float = 0):
        """@normalized_shape: the last axes of @self, which are normalised together
        @weight: of that shape
        @eps: added to the mean square; 0: the distance of 1 to the next number, of f32 but for f64

        @self divided by the root of the mean of its squares, times @weight (Zhang and Sennrich 2019)."""

    def local_response_norm(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1):
        """@self: of shape (B, C, …)
        @size: how many channels, around each
        @alpha: factor of their mean square
        @beta: power
        @k: added to it

        @self / (@k + @alpha * mean of squares) ** @beta; channels that there are not count as 0."""

    @op(gradient="kinks", alias="linalg_norm vector_norm")
    def norm(self, p: float = 2, axis: Axes | None = None, keepdim: bool = False):
        """@p: any number; 0 counts what is not zero, an infinity is for the largest or smallest

        The sum of |@self| ** @p over @axes to the power 1 / @p. The gradient of a length of 0 is 0."""

    @op(gradient="kinks")
    def normalize(self, p: float = 2, axis: Axis = 1, eps: float = 1e-12):
        """@p: as of tiny_tensor_norm()
        @eps: the least length

        @self divided by its length along @axis."""


class Attention:
    """Values weighed by how well their keys fit."""

    takes = "float"

    def scaled_dot_product_attention(self, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                     dropout_p: float = 0, is_causal: bool = False, scale: float = 0,
                                     enable_gqa: bool = False):
        """@self: queries, (…, L, E)
        @key: of shape (…, S, E)
        @value: of shape (…, S, V)
        @attn_mask: broadcasts to (…, L, S): bool, false where a key is not seen, or floats that are added to scores
        @dropout_p: probability of dropping a weight, below 1
        @is_causal: whether key j is seen by queries from j on only; not with @attn_mask
        @scale: factor of scores; 0: 1 / sqrt (E)
        @enable_gqa: whether a key's head may be shared by several of the query's (…, H, L, E)

        softmax (@self @ keyᵀ * @scale) @ @value, (…, L, V) (Vaswani et al. 2017). A query that sees no key gives NaNs.
        Where a device has an operation for attention this is it, unless weights are dropped."""


class Losses:
    """How far from what was wanted. A reduction is "mean", "sum", both over all elements, or "none"."""

    takes = "float"

    @op(takes="any")
    def cross_entropy(self, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
                      label_smoothing: float = 0):
        """@self: scores before softmax, (B, K, …) or (K)
        @target: integers from 0 to K-1, (B, …), or probabilities as floats of the shape of @self
        @weight: of each class, (K)
        @ignore_index: a label that does not count
        @reduction: mean, sum or none
        @label_smoothing: how much of the target, from 0 to 1, is shared by all classes

        -log_softmax (@self) at the label, or times @target and summed over classes. The mean of labels is weighted. A
        label outside counts as 0 loss."""

    @op(takes="any")
    def nll_loss(self, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"):
        """@self: logarithms of probabilities, (B, K, …) or (K)
        @target: integers from 0 to K-1, (B, …)
        @weight: of each class, (K)
        @ignore_index: a label that does not count
        @reduction: mean, sum or none

        -@self at the label. The mean is weighted. A label outside counts as 0 loss."""

    @op(takes="any")
    def sparse_categorical_crossentropy(self, target: Tensor, ignore_index: int = -1, label_smoothing: float = 0,
                                        reduction: str = "mean"):
        """@self: scores before softmax, (…, K)
        @target: integers from 0 to K-1, (…)
        @ignore_index: a label that does not count
        @label_smoothing: how much of the target, from 0 to 1, is shared by all classes
        @reduction: mean, sum or none

        tiny_tensor_cross_entropy() with the classes last."""

    @op(alias="binary_cross_entropy")
    def binary_crossentropy(self, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"):
        """@self: probabilities
        @target: wanted probabilities, of the same shape
        @weight: broadcasts to that
        @reduction: mean, sum or none

        -@target log (@self) - (1 - @target) log (1 - @self); logarithms are at least -100, without gradient there."""

    @op(alias="binary_cross_entropy_with_logits")
    def binary_crossentropy_logits(self, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
                                   pos_weight: Tensor | None = None):
        """@self: scores before sigmoid
        @target: wanted probabilities, of the same shape
        @weight: broadcasts to that
        @reduction: mean, sum or none
        @pos_weight: factor of what is wanted, broadcasts

        tiny_tensor_binary_crossentropy() of sigmoid (@self), without overflow."""

    def mse_loss(self, target: Tensor, reduction: str = "mean"):
        """@target: what was wanted
        @reduction: mean, sum or none

        (@self - @target)²."""

    @op(gradient="kinks")
    def l1_loss(self, target: Tensor, reduction: str = "mean"):
        """@target: what was wanted
        @reduction: mean, sum or none

        |@self - @target|."""

    @op(gradient="kinks")
    def smooth_l1_loss(self, target: Tensor, reduction: str = "mean", beta: float = 1):
        """@target: what was wanted
        @reduction: mean, sum or none
        @beta: where the square begins; 0: tiny_tensor_l1_loss()

        tiny_tensor_huber_loss() with delta @beta, divided by it."""

    @op(gradient="kinks")
    def huber_loss(self, target: Tensor, reduction: str = "mean", delta: float = 1):
        """@target: what was wanted
        @reduction: mean, sum or none
        @delta: where the square begins, above 0

        d² / 2 of distances d below @delta, @delta (d - @delta / 2) of others (Huber 1964)."""

    def kl_div(self, target: Tensor, reduction: str = "mean", log_target: bool = False):
        """@self: logarithms of probabilities
        @target: wanted probabilities
        @reduction: mean, sum, none, or batchmean: the sum divided by the first size
        @log_target: whether @target is of logarithms as well

        @target (log (@target) - @self), 0 where @target is 0 (Kullback and Leibler 1951)."""

    @op(gradient="kinks")
    def poisson_nll_loss(self, target: Tensor, log_input: bool = True, full: bool = False, eps: float = 1e-8,
                         reduction: str = "mean"):
        """@self: expected counts, or their logarithms
        @target: counts
        @log_input: whether @self is of logarithms
        @full: whether Stirling's approximation of log (@target!) is added
        @eps: added before a logarithm is taken
        @reduction: mean, sum or none

        exp (@self) - @target @self, or @self - @target log (@self + @eps)."""

    @op(gradient="kinks")
    def gaussian_nll_loss(self, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6,
                          reduction: str = "mean"):
        """@self: expected values
        @target: values
        @var: variances, perhaps without the last axis
        @full: whether log (2π) / 2 is added
        @eps: the least variance
        @reduction: mean, sum or none

        (log (@var) + (@self - @target)² / @var) / 2."""

    def cosine_similarity(self, other: Tensor, axis: Axis = 1, eps: float = 1e-8):
        """@eps: the least length

        The product of the directions of @self and @other along @axis. Shapes broadcast."""

    @op(gradient="kinks")
    def cosine_embedding_loss(self, other: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean"):
        """@self: vectors, (B, N) or (N)
        @other: vectors of the same shape
        @target: 1 where they should be alike, -1 where they should not
        @margin: how alike the latter may be
        @reduction: mean, sum or none

        1 - cos for a target of 1, max (0, cos - @margin) for one of -1."""

    @op(gradient="kinks")
    def hinge_embedding_loss(self, target: Tensor, margin: float = 1, reduction: str = "mean"):
        """@self: distances
        @target: 1 where they should be small, -1 where they should not
        @margin: how large is large enough
        @reduction: mean, sum or none

        @self for a target of 1, max (0, @margin - @self) for one of -1."""

    @op(gradient="kinks")
    def margin_ranking_loss(self, other: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean"):
        """@target: 1 where @self should be larger, -1 where @other should
        @margin: by how much
        @reduction: mean, sum or none

        max (0, @margin - @target (@self - @other))."""

    def soft_margin_loss(self, target: Tensor, reduction: str = "mean"):
        """@target: 1 or -1
        @reduction: mean, sum or none

        log (1 + exp (-@target @self))."""

    @op(gradient="kinks")
    def triplet_margin_loss(self, positive: Tensor, negative: Tensor, margin: float = 1, p: float = 2, eps: float = 1e-6,
                            swap: bool = False, reduction: str = "mean"):
        """@self: vectors, (…, N)
        @positive: what should be near
        @negative: what should be far
        @margin: by how much
        @p: of the distance, as of tiny_tensor_norm()
        @eps: added to differences
        @swap: whether the distance of @positive and @negative counts where it is smaller
        @reduction: mean, sum or none

        max (0, near - far + @margin) of the distances along the last axis."""


class LinearAlgebra:
    """Of matrices (…, M, N), each by itself. The last two axes are rows and columns. Meant for sizes up to some 64: a method
    walks over columns one by one."""

    takes = "float"

    @op(alias="linalg_cholesky")
    def cholesky(self, upper: bool = False):
        """@self: symmetric matrices with positive eigenvalues; of others the result has NaNs
        @upper: whether Lᵀ is wanted

        The lower triangular L with L Lᵀ = @self."""

    @op(alias="linalg_solve")
    def solve(self, right: Tensor):
        """@self: of shape (…, N, N)
        @right: of shape (…, N, M), or (…, N) or (N)

        X with @self X = @right, by Gauss and Jordan's elimination with pivots. NaNs where there is no one X."""

    @op(alias="linalg_solve_triangular")
    def solve_triangular(self, right: Tensor, upper: bool, left: bool = True, unitriangular: bool = False):
        """@self: of shape (…, N, N), of which the other triangle is not read
        @right: of shape (…, N, M)
        @upper: which triangle
        @left: whether @self X = @right is solved; else X @self = @right
        @unitriangular: whether the diagonal is taken as 1

        X by substitution."""

    @op(alias="inverse linalg_inv")
    def inv(self):
        """The inverse, as tiny_tensor_solve() gives it."""

    @op(alias="linalg_det")
    def det(self):
        """The determinant, the product of pivots; (…)."""

    @op(alias="linalg_slogdet")
    def slogdet(self) -> (sign, logabsdet):
        """The sign of the determinant and the logarithm of its size."""

    @op(alias="linalg_qr")
    def qr(self, mode: str = "reduced") -> (q, r):
        """@mode: reduced, or complete for a square Q

        Q with columns at right angles, of length 1, and R upper triangular with Q R = @self, by Householder's
        reflections. Signs are LAPACK's."""

    @op(alias="linalg_lstsq")
    def lstsq(self, right: Tensor):
        """@self: of shape (…, M, N), of full rank
        @right: of shape (…, M, K)

        X for which the length of each column of @self X - @right is least, or if many are, X itself."""

    @op(alias="linalg_matrix_power")
    def matrix_power(self, n: int):
        """@n: any number; below 0 the inverse is multiplied

        The product of @n times the same matrix."""

    def newton_schulz(self, steps: int = 5, params: Floats | None = None, eps: float = 1e-7):
        """@steps: 0 to 1000
        @params: factors of X, X Xᵀ X, …; none: 2, -1.5, 0.5
        @eps: added to the length that @self is divided by first

        An orthogonal matrix near @self: singular values go to 1 (Jordan et al. 2024)."""


class Fourier:
    """Transforms of any size (Cooley and Tukey 1965, Bluestein 1970). There is no complex dtype: a complex number is a real and
    an imaginary part on a last axis of size 2, as of PyTorch's view_as_real()."""

    takes = "float"

    def fft(self, n: int = 0, dim: int = -1, norm: str = "backward"):
        """@self: complex numbers (…, 2)
        @n: cut or filled up with zeros to so many first; 0: as many as there are
        @dim: along which axis, not counting the pairs'
        @norm: backward, ortho or forward: whether the inverse is divided by the number, both by its root, or the other

        Number k of the result is the sum of element j times exp (-2πi j k / n)."""

    def ifft(self, n: int = 0, dim: int = -1, norm: str = "backward"):
        """@self: complex numbers (…, 2)
        @n: cut or filled up with zeros to so many first; 0: as many as there are
        @dim: along which axis, not counting the pairs'
        @norm: backward, ortho or forward: whether the inverse is divided by the number, both by its root, or the other

        The inverse of tiny_tensor_fft()."""

    def rfft(self, n: int = 0, dim: int = -1, norm: str = "backward"):
        """@self: real numbers
        @n: cut or filled up with zeros to so many first; 0: as many as there are
        @dim: along which axis, not counting the pairs'
        @norm: backward, ortho or forward: whether the inverse is divided by the number, both by its root, or the other

        The first n / 2 + 1 numbers of tiny_tensor_fft(), (…, 2): the others are their conjugates."""

    def irfft(self, n: int = 0, dim: int = -1, norm: str = "backward"):
        """@self: complex numbers (…, 2) as of tiny_tensor_rfft()
        @n: how many the result has; 0: 2 (M - 1) for M numbers
        @dim: along which axis, not counting the pairs'
        @norm: backward, ortho or forward: whether the inverse is divided by the number, both by its root, or the other

        The inverse of tiny_tensor_rfft(), real numbers."""

    def fftn(self, dims: Sizes | None = None, norm: str = "backward"):
        """@self: complex numbers (…, 2)
        @dims: axes, not counting the pairs'; none: all
        @norm: as of tiny_tensor_fft()

        tiny_tensor_fft() along each of @dims."""

    def ifftn(self, dims: Sizes | None = None, norm: str = "backward"):
        """@self: complex numbers (…, 2)
        @dims: axes, not counting the pairs'; none: all
        @norm: as of tiny_tensor_fft()

        The inverse of tiny_tensor_fftn()."""

    def rfftn(self, dims: Sizes | None = None, norm: str = "backward"):
        """@self: real numbers
        @dims: axes, not counting the pairs'; none: all
        @norm: as of tiny_tensor_fft()

        tiny_tensor_rfft() along the last of @dims, tiny_tensor_fft() along the others."""

    def complex_mul(self, other: Tensor):
        """@self: complex numbers (…, 2)
        @other: complex numbers (…, 2)

        Their products. Shapes broadcast."""


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
