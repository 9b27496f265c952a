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
  takes       any; number: bool becomes the others' dtype, or i32; float: integers and bool become the others' dtype, or the default float, f32; integral: integers
              or bool, floats are an error; integer: bool is an error as well
  gradient    smooth: of any order; kinks: wherever it exists; none: there is none, or it is 0
  symbolic    takes axes whose size is a variable (shorten); others refuse such tensors. True where what the row builds goes by
              the limits of its arguments (ir/tiny-limit.h) and never by the largest sizes, which their shapes have
  weak        of plain numbers (tiny_tensor_scalar()) alone the result is one: it takes the dtype of what it meets
  gate        a tensor that is a condition: plain numbers do not take its dtype
  dtyped      Python takes dtype as well: what @self becomes first, and what the result is of
  alias       other names in Python
  view        gives views of the first tensor, where it only moves elements (tiny-view.h)
  wide        f16 and narrower floats are computed in f32 and rounded once
  autocast    narrow: in a region of tiny_set_autocast() f32 becomes its dtype; wide: narrower floats become f32 there
  in_place    Python has NAME_ () as well, which puts the result in the place of self
  framed      C has the whole function, not just op_NAME() of operations-private.h

A body is the definition: + - * / ** and comparisons of tensors and numbers, and, or, not, "x if where else y", other
rows by name, IR ops and dtypes in capitals. SLOPED (value, x, slope) has its gradient told rather than found;
polynomial (x, [f32's coefficients], [f64's]) begins with the constant. Rows without a body are op_NAME() in the
tensor-*.c of their kind."""


class Arithmetic:
    """Shapes broadcast as in NumPy. Dtypes promote: bool to integers to floats, two of different width to the
    smallest that holds both; a scalar (tiny_tensor_scalar()) takes the other side's dtype."""

    symbolic = True
    in_place = True
    weak = True
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

    @op(alias="divide true_divide")
    def div(self, other: Tensor, rounding_mode: str | None = None):
        """@rounding_mode: %NULL, "trunc" or "floor"

        @self / @other as floats, where integers become the default float (tiny_set_default_float()) first; or rounded towards zero or down, where integers stay
        what they are, and one divided by zero is 0, as in NumPy."""

    @op(takes="number", gradient="kinks")
    def fmod(self, other: Tensor):
        """@self - @other * trunc (@self / @other): has the sign of @self. Of floats it is exact, as in C, however large the
        quotient. Of an integer and 0 it is 0."""

    @op(takes="number", gradient="none")
    def floor_divide(self, other: Tensor):
        """@self / @other rounded down, of integers or floats, of which the rest is taken away first: 719 of 72 and 0.1. NaN of infinity; -1 in an infinity of the other sign. An integer
        divided by zero is 0."""

    @op(takes="number", gradient="kinks", alias="remainder")
    def mod(self, other: Tensor):
        """@self - @other * floor (@self / @other): has the sign of @other. As tiny_tensor_fmod() otherwise."""
        rest = fmod(self, other)
        return rest + other if rest != 0 and (rest < 0) != (other < 0) else rest

    @op(takes="number", autocast="wide")
    def pow(self, other: Tensor):
        """@self to the power @other. A negative base has a value where the exponent is whole. Integers to the power of
        integers stay integers, of which a negative power is 0 but for 1 and -1."""

    @op(gradient="kinks", in_place=False)
    def maximum(self, other: Tensor):
        """The larger of @self and @other; NaN where either is. Equals share the gradient."""

    @op(gradient="kinks", in_place=False)
    def minimum(self, other: Tensor):
        """The smaller of @self and @other; NaN where either is. Equals share the gradient."""

    @op(gradient="kinks", in_place=False)
    def fmax(self, other: Tensor):
        """The larger of @self and @other; the other one where one is NaN."""
        return self if isnan(other) or ge(self, other) else other

    @op(gradient="kinks", in_place=False)
    def fmin(self, other: Tensor):
        """The smaller of @self and @other; the other one where one is NaN."""
        return self if isnan(other) or le(self, other) else other

    @op(takes="number", alias="negative")
    def neg(self):
        """-@self."""
        return NEG(self)

    @op(takes="float", autocast="wide")
    def reciprocal(self):
        """1 / @self."""
        return RECIP(self)

    @op(alias="absolute", gradient="kinks")
    def abs(self):
        """@self without its sign."""

    @op(takes="number", gradient="none", alias="sgn")
    def sign(self):
        """-1, 0 or 1; zeros keep their sign, NaNs stay."""

    def square(self):
        """@self * @self."""
        return self * self

    @op(gradient="kinks", alias="clip")
    def clamp(self, min: Tensor | None = None, max: Tensor | None = None):
        """@min: the least values
        @max: the largest values

        @self with what is below @min or above @max moved there; NaNs stay. Where @min is larger, it is @max. What equals a
        bound has the gradient of @self."""

    @op(gradient="kinks")
    def clamp_min(self, min: Tensor):
        """@min: the least values

        The larger of @self and @min; of equals @self has the gradient."""

    @op(gradient="kinks")
    def clamp_max(self, max: Tensor):
        """@max: the largest values

        The smaller of @self and @max; of equals @self has the gradient."""

    @op(in_place=False)
    def add_number(self, other: float):
        """@self + @other in @self's dtype, or f32 when that is an integer's and @other is not whole."""

    @op(in_place=False)
    def mul_number(self, other: float):
        """@self * @other, dtypes as in tiny_tensor_add_number()."""

    @op(wide=True)
    def lerp(self, end: Tensor, weight: Tensor):
        """@end: where @weight is 1
        @weight: how far to go

        @self + @weight * (@end - @self)."""
        return self + weight * (end - self)

    @op(wide=True)
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, value: float = 1):
        """@tensor1: a factor
        @tensor2: a factor
        @value: of the product

        @self + @value * @tensor1 * @tensor2."""
        return self + mul_number(tensor1, value) * tensor2

    @op(wide=True, takes="float")
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, value: float = 1):
        """@tensor1: a numerator
        @tensor2: a denominator
        @value: of the quotient

        @self + @value * @tensor1 / @tensor2."""
        return self + tensor1 / tensor2 * value

    @op(takes="float")
    def copysign(self, other: Tensor):
        """The size of @self with the sign of @other, of zeros as well."""

    @op(wide=True, takes="float", gradient="kinks")
    def hypot(self, other: Tensor):
        """sqrt (@self² + @other²), which does not overflow before the result does."""
        x = abs(self)
        y = abs(other)
        large = maximum(x, y)
        small = minimum(x, y)
        none = large == 0
        ratio = small / (1 if none else large)
        return inf if isinf(self) or isinf(other) else large * sqrt(ratio * ratio + 1)

    @op(wide=True, takes="float")
    def logaddexp(self, other: Tensor):
        """log (exp (@self) + exp (@other)), which does not overflow."""
        difference = 0 if isinf(self) and self == other else self - other
        return maximum(self, other) + log1p(exp(-abs(difference)))

    @op(wide=True, takes="float")
    def logaddexp2(self, other: Tensor):
        """log2 (2 ** @self + 2 ** @other), which does not overflow."""
        difference = 0 if isinf(self) and self == other else self - other
        return maximum(self, other) + log1p(EXP2(-abs(difference))) * (1 / log(2))

    @op(wide=True, takes="float")
    def xlogy(self, other: Tensor):
        """@self * log (@other), 0 where @self is 0, unless @other is NaN."""
        none = self == 0 and (other <= 0 or other == inf)
        return 0 if none else self * log(1 if none else other)

    @op(gradient="none")
    def heaviside(self, values: Tensor):
        """@values: where @self is 0

        0 below zero, 1 above, @values at zero; 0 of NaN."""
        return values if self == 0 else (1 if self > 0 else 0)

    def deg2rad(self):
        """Degrees as radians."""
        return mul_number(self, pi / 180)

    def rad2deg(self):
        """Radians as degrees."""
        return mul_number(self, 180 / pi)

    @op(gradient="smooth")
    def nan_to_num(self, nan: float = 0, posinf: float = inf, neginf: float = -inf):
        """@nan: for NaNs
        @posinf: for infinity, itself: the largest number
        @neginf: for minus infinity, itself: the least number

        @self with what is not finite replaced."""


class Comparison:
    """Bool results; shapes broadcast, dtypes promote. A NaN is neither less than, equal to nor greater than anything."""

    symbolic = True
    gradient = "none"

    @op(in_place=True)
    def eq(self, other: Tensor):
        """Where @self equals @other."""
        return CMPEQ(self, other)

    @op(alias="not_equal", in_place=True)
    def ne(self, other: Tensor):
        """Where @self differs from @other; a NaN differs from everything."""
        return CMPNE(self, other)

    @op(alias="less", in_place=True)
    def lt(self, other: Tensor):
        """Where @self < @other."""
        return CMPLT(self, other)

    @op(alias="less_equal", in_place=True)
    def le(self, other: Tensor):
        """Where @self <= @other."""

    @op(alias="greater", in_place=True)
    def gt(self, other: Tensor):
        """Where @self > @other."""
        return CMPLT(other, self)

    @op(alias="greater_equal", in_place=True)
    def ge(self, other: Tensor):
        """Where @self >= @other."""
        return le(other, self)

    def isnan(self):
        """Where @self is not a number."""
        return CMPNE(self, self)

    def isinf(self):
        """Where @self is infinite."""

    def isfinite(self):
        """Where @self is neither infinite nor NaN."""
        return not (isnan(self) or isinf(self))

    def isposinf(self):
        """Where @self is infinity."""
        return isinf(self) and self > 0

    def isneginf(self):
        """Where @self is minus infinity."""
        return isinf(self) and self < 0

    def signbit(self):
        """Where @self is below zero or is -0."""

    @op(takes="number")
    def isclose(self, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False):
        """@rtol: of the size of @other
        @atol: in any case
        @equal_nan: whether NaNs equal one another

        Where @self is within @atol + @rtol * |@other| of @other; infinities equal themselves only."""


class Logic:
    """Truth values and bits."""

    symbolic = True
    in_place = True
    weak = True
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
        """@other: how far

        Bits moved up, in @self's dtype: 0 where that is below 0 or as far as there are bits."""

    @op(takes="integral", alias="bitwise_right_shift")
    def rshift(self, other: Tensor):
        """@other: how far

        Bits moved down, in @self's dtype; the sign is kept, and is all that is left where @other is below 0 or as far as there are
        bits."""

    @op(gradient="smooth", gate="self", in_place=False)
    def where(self, input: Tensor, other: Tensor):
        """@self: a tensor, taken as bool
        @input: values where @self is true
        @other: values elsewhere

        @input where @self is true, @other elsewhere. All broadcast."""

    @op(gradient="smooth", gate="mask")
    def masked_fill(self, mask: Tensor, value: Tensor):
        """@mask: a tensor, taken as bool
        @value: what goes there

        @self with @value where @mask is true."""
        return value if mask else self


class Rounding:
    """To whole numbers, in the same dtype. Integers are whole already."""

    symbolic = True
    in_place = True
    weak = True
    gradient = "none"

    def floor(self):
        """Rounded down."""

    def ceil(self):
        """Rounded up."""

    def round(self):
        """Rounded to the nearest whole number, halves to the even one."""

    @op(alias="fix")
    def trunc(self):
        """Rounded towards zero."""

    @op(takes="float", gradient="kinks")
    def frac(self):
        """What tiny_tensor_trunc() takes away, with the sign of @self."""
        return self - trunc(self)


class Exponential:
    """Roots, exponentials and logarithms."""

    symbolic = True
    in_place = True
    weak = True
    takes = "float"
    wide = True

    def sqrt(self):
        """The square root; NaN below zero."""
        return SQRT(self)

    @op(autocast="wide")
    def rsqrt(self):
        """1 / sqrt (@self)."""
        return RECIP(SQRT(self))

    @op(autocast="wide")
    def exp(self):
        """e to the power @self."""

    @op(autocast="wide")
    def exp2(self):
        """2 to the power @self."""
        return EXP2(self)

    @op(autocast="wide")
    def expm1(self):
        """exp (@self) - 1, without loss where @self is small."""
        power = exp(self)
        small = polynomial(self, [1, 0.5000000425920544, 0.16666667139493802, 0.041665304193438314, 0.008333182071584195,
                                  0.0013997773379590332, 0.000199621762266955],
                           [1, 0.5, 0.16666666666666666, 0.041666666666667664, 0.0083333333333334, 0.0013888888888569297,
                            0.0001984126984105686, 2.480158773980975e-05, 2.755731951602831e-06, 2.7557027169443954e-07,
                            2.50519137456348e-08, 2.0970151215169475e-09, 1.6121291390767837e-10])
        return SLOPED(self * small if abs(self) < 0.5 else power - 1, self, power)

    @op(autocast="wide")
    def log(self):
        """The natural logarithm; -infinity at zero, NaN below."""
        return LOG2(self) * log(2)

    @op(autocast="wide")
    def log2(self):
        """The logarithm to base 2."""
        return LOG2(self)

    @op(autocast="wide")
    def log10(self):
        """The logarithm to base 10."""
        return LOG2(self) * log10(2)

    @op(autocast="wide")
    def log1p(self):
        """log (1 + @self), without loss where @self is small: 2 atanh (s) with s = @self / (@self + 2), as in LOG2's decomposition."""
        is_small = self > -0.29 and self < 0.41
        x = self if is_small else 0
        s = x / (x + 2)
        z = s * s
        rest = z * polynomial(z, [2 / 3, 2 / 5, 2 / 7, 2 / 9],
                              [2 / 3, 2 / 5, 2 / 7, 2 / 9, 2 / 11, 2 / 13, 2 / 15, 2 / 17, 2 / 19, 2 / 21])
        sum = self + 1
        return SLOPED(x - s * (x - rest) if is_small else log(sum), self, RECIP(sum))

    @op(autocast="wide")
    def logit(self, eps: float = -1):
        """@eps: @self is moved to @eps … 1 - @eps first; below 0: it is not

        log (@self / (1 - @self)), the inverse of tiny_tensor_sigmoid()."""
        x = clamp(self, eps, 1 - eps) if eps >= 0 else self
        return SLOPED(log(x / (1 - x)), x, RECIP(x * (1 - x)))

    def erf(self):
        """The error function, 2/√π times the integral of exp (-t²) from 0 to @self."""
        z = self * self
        small = polynomial(z, [1.1283791658483509, -0.37612626666720334, 0.11283594715160218, -0.026854212010626412,
                               0.005189087423433974, -0.000801686428716587, 7.875875062685488e-05],
                           [1.1283791670955126, -0.3761263890318375, 0.11283791670954879, -0.026866170645076792,
                            0.0052239776248180145, -0.000854832698083379, 0.0001205533111164271, -1.4925595266831182e-05,
                            1.6461000484121368e-06, -1.6350312701054695e-07, 1.4659775274047436e-08, -1.1372848856791674e-09,
                            5.957176147748911e-11])
        rest = erfc(abs(self))
        large = rest - 1 if self < 0 else 1 - rest
        return SLOPED(self * small if abs(self) < 1 else large, self, EXP2(z * (-1 / log(2))) * (2 / sqrt(pi)))

    def erfc(self):
        """1 - erf (@self), without loss where @self is large: exp (-x²) / (1 + 2 x) times a polynomial of (x - 5/2) /
        (x + 5/2) (after Shepherd and Laframboise 1981)."""
        x = 30 if abs(self) > 30 else abs(self)
        t = polynomial((x - 2.5) / (x + 2.5),
                       [1.2648381750594375, -0.1223566976090898, -0.09902343270241899, 0.15763056673058923,
                        -0.10298310725152204, 0.03274362729663657, 0.001005850317023289, -0.004297876976838966,
                        0.0003574513945168582, 0.00047536122320328907],
                       [1.2648381843668615, -0.12235676308241021, -0.09902453957359433, 0.1576299190238029,
                        -0.10296705603832851, 0.03276089325176055, 0.0009318927999630807, -0.004382078118856267,
                        0.0004918661224964486, 0.0006321227763326519, -8.848191448646052e-05, -0.00011351593708868566,
                        6.279294477323549e-06, 2.268416900018375e-05, 2.5685368491703385e-06, -4.198150059434337e-06,
                        -1.5082746092832717e-06, 5.212546429655839e-07, 4.4322133741279245e-07, 1.5327064075852607e-08,
                        -6.504151152633106e-08, -1.7014734066252077e-08])
        square = x * x
        head = trunc(x * 64) * (1 / 64)
        lost = head * head - square + (x - head) * (x + head)
        power = exp(-square) * (1 - lost)
        value = power * t / (x * 2 + 1)
        return SLOPED(2 - value if self < 0 else value, self, power * (-2 / sqrt(pi)))

    @op(autocast="wide")
    def erfinv(self):
        """The number whose tiny_tensor_erf() is @self, as @self times a polynomial of log (1 - @self²) or of its root (after Giles 2010); infinite at -1
        and 1, NaN beyond."""
        w = -log((1 - self) * (1 + self))
        inner = polynomial(w - 2.5, [1.50140936, 0.2466402791, -0.004177392875, -0.001252726392, 0.0002183493862,
                                     -4.972419689e-06, -3.463985268e-06, 4.681313481e-07, 2.33359672e-08,
                                     -8.93192597e-09],
                           [1.501409351110792, 0.246640276744167, -0.004177317724383624, -0.0012527079078110321,
                            0.00021825026434406123, -4.996079598850207e-06, -3.416619596565087e-06,
                            4.787252185239e-07, 1.3416803755242823e-08, -1.0861168938287872e-08,
                            9.073036495405582e-10, 1.1960698817209522e-10, -3.110278672226475e-11,
                            9.115660381671943e-13, 5.356343166393055e-13, -7.612669130138496e-14,
                            -2.8811110175240593e-15, 1.896729354143592e-15, -1.3661917890666732e-16,
                            -2.6828646429085144e-17, 4.909393921888345e-18, 1.700908089393591e-19,
                            -6.890747263782666e-20])
        outer = polynomial(sqrt(w) - 4.125, [3.965988515, 1.009769691, 0.0009584139492, -0.0007564022731,
                                             0.0001107924067, -0.0004967295987, -0.0006846218637, -0.0008149858838,
                                             -0.0005380710958, -0.0002213878466, -3.469249671e-05],
                           [3.9659885168902895, 1.0097698540466093, 0.0009619477067094361, -0.0007250047511398401,
                            0.0002584006261720137, -8.499730633594671e-05, 3.405455861421002e-05,
                            -1.8203998360614487e-05, 1.0643492671603082e-05, -5.550146485229606e-06,
                            2.271883029407216e-06, -5.97693303883278e-07, -4.446131782191018e-09,
                            1.0353447613844902e-07, -6.038524405448687e-08, 1.820389840292234e-08,
                            -1.1970389019586174e-09, -1.7612625197709514e-09, 1.0073552595301299e-09,
                            -2.7259323100770275e-10, 1.1799977265196593e-12, 3.376519377577138e-11,
                            -9.539773894135019e-12, -1.9898023374817358e-12, 4.06120413862145e-13,
                            7.702520681068723e-13, -1.2370261321482232e-13, -1.390776282377884e-13,
                            3.483101715805455e-14, 9.981228376393505e-15, -3.2926019053151952e-15,
                            -2.5357167461700876e-16, 1.068570148353084e-16])
        value = self * (inf if abs(self) == 1 else inner if w < 5 else outer)
        return SLOPED(value, self, exp(value * value) * (sqrt(pi) / 2))

    @op(autocast="wide")
    def lgamma(self):
        """log |Γ (@self)|: up to 3 the zeros at 1 and 2 times a polynomial, after log Γ (x) = log Γ (x + 1) - log (x) below 1; then Stirling's formula; below 0
        log (π / |sin (π x)|) - log Γ (1 - x). Infinite at 0 and at negative whole numbers."""
        x = 1 - self if self < 0 else self
        t = x - 1 if x < 1 else x - 2
        middle = polynomial(t, [0.4227843351, -0.1003172746, 0.03296498784, -0.01238494322, 0.004998996089,
                                -0.002102242432, 0.0009125944839, -0.000425154131, 0.0001917396867, -5.283973561e-05,
                                2.388160727e-05, -3.858047519e-05, 1.80915131e-05],
                            [0.42278433509846713, -0.10031730167435392, 0.03296500062115691, -0.012384192193371803,
                             0.004998641164627129, -0.0021081308339216706, 0.0009153769240386907,
                             -0.0004057073983775151, 0.0001825526153982638, -8.309511477709561e-05,
                             3.816907658276081e-05, -1.7661767658452517e-05, 8.221234475942905e-06,
                             -3.846858091533014e-06, 1.8113906873056685e-06, -8.54560908975883e-07,
                             3.958940459367468e-07, -1.878442644643758e-07, 1.042041826608264e-07,
                             -4.9827532071170234e-08, 5.910565853507869e-09, -2.7296358592514825e-09,
                             1.6194359237484174e-08, -7.842557720538356e-09, -4.312495770350818e-09,
                             2.0986002157033103e-09, 1.5746606982777302e-09, -7.639292345836201e-10])
        near = middle * t * x - log(x) if x < 1 else middle * t * (x - 1)
        r = RECIP(x)
        rest = polynomial(r * r, [0.08333333267, -0.002777586225, 0.0007847184127, -0.000454428318],
                          [0.08333333333333333, -0.0027777777777673535, 0.0007936507891020488,
                           -0.0005952373063227016, 0.000841678862598761, -0.0019135564194573535,
                           0.006266355072207451, -0.02591763548428459, 0.11229667461420963, -0.41302940091672014,
                           1.0364376287210757, -1.2591741378706647])
        far = (x - 0.5) * (log(x) - 1) + (rest * r + (log(2 * pi) - 1) / 2)
        value = near if x < 3 else far
        sine = abs(SIN((self - round(self)) * pi))
        value = log(pi) - log(sine) - value if self < 0 else value
        return SLOPED(inf if isinf(self) else value, self, digamma(self))

    @op(autocast="wide")
    def digamma(self):
        """The slope of tiny_tensor_lgamma(): up to 3 its zero at 1.4616 times a polynomial, after ψ (x) = ψ (x + 1) - 1 / x below 1; then its series at infinity;
        below 0 ψ (1 - x) - π / tan (π x), NaN at whole numbers. Its own slope is a sum of 1 / (x + i)² and that series."""
        x = 1 - self if self < 0 else self
        t = x - 1 if x < 1 else x - 2
        middle = polynomial(t, [0.7853075386, -0.2607389817, 0.1089999305, -0.04955002961, 0.02344680803,
                                -0.01134909057, 0.00555758229, -0.00269029008, 0.001333504928, -0.0007899766305,
                                0.0003937546092, -3.024394754e-05, 1.500264033e-05, -0.0001182812714, 5.911840596e-05],
                            [0.7853075386041053, -0.2607389546830014, 0.10899991701762626, -0.04955103291767291,
                             0.023447309597724546, -0.011338432553333682, 0.005552254171350814,
                             -0.0027395728831692795, 0.0013581421903714414, -0.000675313369799565,
                             0.00033643237613001386, -0.00016781518722379935, 8.377966540530644e-05,
                             -4.184622931937881e-05, 2.0891708911121205e-05, -1.0441066319835142e-05,
                             5.26871942897218e-06, -2.6338311326151924e-06, 1.2119815782595426e-06,
                             -6.059322795045256e-07, 4.6173797029851077e-07, -2.3086248081342955e-07,
                             -5.6422994902202784e-08, 2.821220170829738e-08, 1.1540536834062043e-07,
                             -5.77025926771739e-08, -3.5705337308985145e-08, 1.7852672191376552e-08,
                             1.0201545142033868e-08, -5.100770214989469e-09])
        middle = middle * (t + 0.538330078125 + 3.777690663765867e-05)
        r = RECIP(x)
        near = middle - r if x < 1 else middle
        rest = polynomial(r * r, [0.08333332785, -0.008331742294, 0.003893513343, -0.002966348855],
                          [0.08333333333333333, -0.008333333333325033, 0.003968253963318731, -0.004166665495022904,
                           0.0075756100694986265, -0.021081441106059102, 0.08275092617561204, -0.42213739276734025,
                           2.4853225179572207, -14.509465068315617, 72.40846099395732, -269.9594777475153,
                           643.1483984648313, -720.4954060785403])
        far = log(x) - r * 0.5 - rest * r * r
        value = near if x < 3 else far
        angle = (self - round(self)) * pi if self < 0 else pi / 4
        value = value - pi / tan(angle) if self < 0 else value
        value = nan if self < 0 and floor(self) == self else value
        a = square(RECIP(x)) + square(RECIP(x + 1)) + square(RECIP(x + 2)) + square(RECIP(x + 3))
        b = square(RECIP(x + 4)) + square(RECIP(x + 5)) + square(RECIP(x + 6)) + square(RECIP(x + 7))
        s = RECIP(x + 8)
        tail = polynomial(s * s, [1 / 6, -1 / 30, 1 / 42], [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6])
        slope = a + b + s + s * s * 0.5 + tail * s * s * s
        sine = SIN(angle)
        return SLOPED(value, self, RECIP(sine * sine) * (pi * pi) - slope if self < 0 else slope)


class Trigonometric:
    """Of angles in radians, and of hyperbolas."""

    symbolic = True
    in_place = True
    weak = True
    takes = "float"
    wide = True

    def sin(self):
        """The sine."""
        return SIN(self)

    def cos(self):
        """The cosine."""
        half = SIN(self * 0.5)
        return SLOPED(1 - half * half * 2, self, -SIN(self))

    @op(autocast="wide")
    def tan(self):
        """The tangent."""
        sine = SIN(self)
        is_small = abs(sine) < 0.7 or abs(self) > 1e38
        cosine = cos(self) if is_small else SIN(self * 2) / (1 if is_small else sine * 2)
        value = sine / cosine
        return SLOPED(value, self, RECIP(cos(self) * cos(self)))

    @op(alias="arcsin", autocast="wide")
    def asin(self):
        """The angle from -π/2 to π/2 with this sine; NaN outside of -1 … 1."""
        cosine = sqrt((1 - self) * (1 + self))
        return SLOPED(atan(self / (cosine + 1)) * 2, self, RECIP(cosine))

    @op(alias="arccos", autocast="wide")
    def acos(self):
        """The angle from 0 to π with this cosine; NaN outside of -1 … 1."""
        sine = sqrt((1 - self) * (1 + self))
        return SLOPED(atan(sqrt((1 - self) / (1 + self))) * 2, self, -RECIP(sine))

    @op(alias="arctan")
    def atan(self):
        """The angle from -π/2 to π/2 with this tangent."""
        is_large = abs(self) > 1
        x = 1 / (self if is_large else 1) if is_large else self
        half = x / (sqrt(x * x + 1) + 1)
        z = half * half
        angle = half * 2 * polynomial(z, [0.9999999993708759, -0.33333306880874064, 0.19998182384330435,
                                          -0.14239520496655997, 0.10569738024915738, -0.06026070970504976],
                                      [1, -0.3333333333333312, 0.19999999999940837, -0.14285714279244968,
                                       0.11111110744657099, -0.09090896801472813, 0.07692045194561481, -0.06662950246036792,
                                       0.05846866752275139, -0.05035049795312439, 0.03796390316111083,
                                       -0.017803896394812564])
        rest = pi / 2 - angle if self > 0 else -pi / 2 - angle
        return SLOPED(rest if is_large else angle, self, RECIP(self * self + 1))

    @op(alias="arctan2")
    def atan2(self, other: Tensor):
        """The angle from -π to π of the point @other, @self; signs of zeros count."""
        y = copysign(1, self) if isinf(self) and isinf(other) else self
        x = copysign(1, other) if isinf(self) and isinf(other) else other
        is_steep = abs(y) > abs(x)
        longer = y if is_steep else x
        ratio = atan((x if is_steep else y) / (1 if longer == 0 else longer))
        turn = copysign(pi, self)
        flat = ratio + turn if signbit(x) else ratio
        is_zero = self == 0 and other == other
        level = turn if signbit(x) else self
        value = turn * 0.5 - ratio if is_steep else (level if is_zero else flat)
        size = self * self + other * other
        return SLOPED(value, self, other / size) + SLOPED(-0.0, other, -self / size)

    @op(autocast="wide")
    def sinh(self):
        """The hyperbolic sine."""
        is_small = abs(self) < 1
        z = self * self if is_small else 0
        small = self * polynomial(z, [1, 1 / 6, 1 / 120, 1 / 5040, 1 / 362880],
                                  [1, 1 / 6, 1 / 120, 1 / 5040, 1 / 362880, 1 / 39916800, 1 / 6227020800,
                                   1 / 1307674368000, 1 / 355687428096000])
        half = exp(self * 0.5)
        large = half * 0.5 * half - 0.5 / half / half
        return SLOPED(small if is_small else large, self, cosh(self))

    @op(autocast="wide")
    def cosh(self):
        """The hyperbolic cosine."""
        half = exp(self * 0.5)
        other = exp(self * -0.5)
        return half * 0.5 * half + other * 0.5 * other

    def tanh(self):
        """The hyperbolic tangent."""
        size = self if 0 < self else 0 - self
        z = self * self
        small = self + self * (z * polynomial(z, [-0.33333281940179116, 0.1333144215746843, -0.05373971215194125, 0.020639078727142567,
                                                  -0.005704978359731261],
                                              [-0.33333333333332854, 0.13333333333262012, -0.05396825393124343, 0.021869487575719538,
                                               -0.008863220999224347, 0.003591989154227359, -0.001454958804542719,
                                               0.0005863163615732532, -0.00022856394005147366, 7.714413573934418e-05,
                                               -1.607248623747334e-05]))
        large = 1 - RECIP(EXP2(size * (2 / log(2))) + 1) * 2
        half = sigmoid(self * 2)
        return SLOPED(small if size < 0.625 else (-large if self < 0 else large), self, half * (1 - half) * 4)

    @op(alias="arcsinh")
    def asinh(self):
        """What has this hyperbolic sine."""
        x = -self if self < -0.5 else self
        is_large = x > 1e9
        y = 1 if is_large else x
        value = log(x) + log(2) if is_large else log1p(y + y * (y / (sqrt(y * y + 1) + 1)))
        return SLOPED(-value if self < -0.5 else value, self, rsqrt(self * self + 1))

    @op(alias="arccosh")
    def acosh(self):
        """What is at least 0 and has this hyperbolic cosine; NaN below 1."""
        is_large = self > 1e9
        y = 1 if is_large else self - 1
        value = log(self) + log(2) if is_large else log1p(y + sqrt(y * (y + 2)))
        return SLOPED(nan if self < 1 else value, self, rsqrt(self - 1) * rsqrt(self + 1))

    @op(alias="arctanh")
    def atanh(self):
        """What has this hyperbolic tangent; NaN outside of -1 … 1."""
        value = (log1p(self) - log1p(-self)) * 0.5
        return SLOPED(value, self, RECIP((1 - self) * (1 + self)))

    def sinc(self):
        """sin (π @self) / (π @self), 1 at 0."""
        x = self * pi
        is_zero = x == 0
        value = 1 if is_zero else sin(x) / (1 if is_zero else x)
        is_small = abs(x) < 0.7
        z = x * x if is_small else 0
        small = x * polynomial(z, [-1 / 3, 1 / 30, -1 / 840, 1 / 45360],
                               [-1 / 3, 1 / 30, -1 / 840, 1 / 45360, -1 / 3991680, 1 / 518918400, -1 / 93405312000])
        return SLOPED(value, self, (small if is_small else (cos(x) - value) / (1 if is_small else x)) * pi)


class Activations:
    """What networks put between their layers."""

    symbolic = True
    in_place = True
    weak = True
    takes = "float"
    wide = True

    @op(takes="any", gradient="kinks")
    def relu(self):
        """max (@self, 0)."""
        return maximum(self, 0)

    @op(takes="any", gradient="kinks")
    def relu6(self):
        """@self moved to 0 … 6."""
        return minimum(maximum(self, 0), 6)

    @op(takes="any", gradient="kinks")
    def hardtanh(self, min_val: float = -1, max_val: float = 1):
        """@min_val: the least value
        @max_val: the largest value

        @self moved to @min_val … @max_val."""
        return minimum(maximum(self, min_val), max_val)

    @op(gradient="kinks")
    def hardsigmoid(self):
        """(@self + 3) / 6 moved to 0 … 1."""
        return relu6(self + 3) * (1 / 6)

    @op(gradient="kinks")
    def hardswish(self):
        """@self * hardsigmoid (@self)."""
        slope = 0 if self < -3 else (1 if self >= 3 else self * (1 / 3) + 0.5)
        return SLOPED(self * relu6(self + 3) * (1 / 6), self, slope)

    @op(gradient="kinks")
    def leaky_relu(self, negative_slope: float = 0.01):
        """@negative_slope: below zero

        @self above 0, @self * @negative_slope elsewhere."""
        return self if self > 0 else self * negative_slope

    @op(gradient="kinks", in_place=False, autocast="narrow")
    def prelu(self, weight: Tensor):
        """@weight: of shape (C), C the size of axis 1, or of one element

        @self above 0, @self * @weight elsewhere."""

    @op(gradient="kinks")
    def elu(self, alpha: float = 1):
        """@alpha: minus the value at -infinity

        @self above 0, @alpha * (exp (@self) - 1) elsewhere."""
        return self if self > 0 else expm1(0 if self > 0 else self) * alpha

    @op(gradient="kinks")
    def celu(self, alpha: float = 1):
        """@alpha: minus the value at -infinity

        @self above 0, @alpha * (exp (@self / @alpha) - 1) elsewhere."""
        return self if self > 0 else expm1((0 if self > 0 else self) * (1 / alpha)) * alpha

    @op(gradient="kinks")
    def selu(self):
        """tiny_tensor_elu() with the constants that keep mean 0 and variance 1 (Klambauer et al. 2017)."""
        return elu(self, 1.6732632423543772) * 1.0507009873554805

    def sigmoid(self):
        """1 / (1 + exp (-@self))."""
        value = RECIP(exp(-self) + 1)
        once = SLOPED(value, self, value * (1 - value))
        return SLOPED(value, self, once * (1 - once))

    def logsigmoid(self):
        """log (sigmoid (@self)), without loss where @self is large."""
        rest = log1p(exp(self if self < 0 else -self))
        return self - rest if self < 0 else -rest

    @op(autocast="wide")
    def softplus(self, beta: float = 1, threshold: float = 20):
        """@beta: how sharp the bend is
        @threshold: where @self * @beta is larger, the result is @self

        log (1 + exp (@self * @beta)) / @beta."""
        x = self * beta
        is_large = x > threshold
        return self if is_large else log1p(exp(0 if is_large else x)) * (1 / beta)

    def mish(self):
        """@self * tanh (softplus (@self)) (Misra 2019)."""
        return self * tanh(softplus(self))

    def softsign(self):
        """@self / (1 + |@self|)."""
        return self / (abs(self) + 1)

    def gelu(self, approximate: str = "none"):
        """@approximate: "none" or "tanh"

        @self * Φ (@self), or its approximation with tanh (Hendrycks and Gimpel 2016)."""

    def quick_gelu(self):
        """@self * sigmoid (1.702 @self)."""
        return self * sigmoid(self * 1.702)

    @op(alias="swish")
    def silu(self):
        """@self * sigmoid (@self)."""
        return self * sigmoid(self)

    @op(takes="any", gradient="kinks")
    def threshold(self, threshold: float, value: float):
        """@threshold: the largest that is replaced
        @value: by this

        @self above @threshold, @value elsewhere."""
        return value if self <= threshold else self

    @op(gradient="kinks")
    def hardshrink(self, lambd: float = 0.5):
        """@lambd: the largest size that becomes 0

        @self where |@self| > @lambd, 0 elsewhere."""
        return 0 if abs(self) <= lambd else self

    @op(gradient="kinks")
    def softshrink(self, lambd: float = 0.5):
        """@lambd: how far all move towards 0, at most to it

        @self less @lambd in size."""
        return 0 if abs(self) <= lambd else self - sign(self) * lambd

    @op(in_place=False)
    def glu(self, axis: Axis = -1):
        """The first half along @axis times the sigmoid of the second."""


class Conversion:
    """The same numbers, or the same bits, in another dtype."""

    symbolic = True
    def cast(self, dtype: DType):
        """The values in another dtype. Floats to integers truncate; to bool: what is not zero."""

    @op(gradient="none")
    def bitcast(self, dtype: DType):
        """@dtype: a dtype of the same size

        The bits taken as another dtype."""

    @op(gradient="none")
    def bool(self):
        """What is not 0."""
        return cast(self, BOOL)

    @op(gradient="none")
    def short(self):
        """As i16."""
        return cast(self, I16)

    @op(gradient="none")
    def int(self):
        """As i32."""
        return cast(self, I32)

    @op(gradient="none")
    def long(self):
        """As i64."""
        return cast(self, I64)

    def half(self):
        """As f16."""
        return cast(self, F16)

    def bfloat16(self):
        """As bf16."""
        return cast(self, BF16)

    def float(self):
        """As f32."""
        return cast(self, F32)

    def double(self):
        """As f64."""
        return cast(self, F64)


    @op(takes="integral", gradient="none", symbolic=False)
    def pack_int4(self):
        """@self: integers (…, N), of which the low four bits count: -8 to 7, or 0 to 15

        Two of them in each byte, (…, (N + 1) / 2) of u8: the even one is the low half. An odd N is filled up with a 0."""

    @op(gradient="none", symbolic=False)
    def unpack_int4(self, n: int = 0, is_signed: bool = True):
        """@self: bytes (…, M) of u8
        @n: how many numbers, 2 M or 2 M - 1; 0: 2 M
        @is_signed: whether they are -8 to 7, of i8; else 0 to 15, of u8

        The halves of each byte, the low one first: (…, @n). What uses them reads the bytes; nothing else is
        stored."""


class Reductions:
    """Axes combined to one element each."""

    @op(symbolic=True, dtyped=True, autocast="wide")
    def sum(self, axis: Axes | None = None, keepdim: bool = False):
        """The sum over @axes. Narrow integers and bool add up in 32 bits, f16 and bf16 accumulate in f32."""

    @op(takes="float", symbolic=True, dtyped=True)
    def mean(self, axis: Axes | None = None, keepdim: bool = False):
        """The mean over @axes."""

    @op(gradient="kinks", alias="amax", symbolic=True)
    def max(self, axis: Axes | None = None, keepdim: bool = False):
        """The largest over @axes, none of which may be empty; NaN where there is one. Equals share the gradient."""

    @op(gradient="kinks", alias="amin", symbolic=True)
    def min(self, axis: Axes | None = None, keepdim: bool = False):
        """The smallest over @axes, none of which may be empty; NaN where there is one. Equals share the gradient."""

    @op(gradient="kinks", symbolic=True)
    def aminmax(self, axis: Axes | None = None, keepdim: bool = False) -> (min, max):
        """The smallest and the largest over @axes."""

    @op(wide=True, symbolic=True, dtyped=True, autocast="wide")
    def prod(self, axis: Axes | None = None, keepdim: bool = False):
        """The product over @axes."""

    @op(gradient="none", symbolic=True)
    def any(self, axis: Axes | None = None, keepdim: bool = False):
        """Whether any over @axes is not zero, as bool."""

    @op(gradient="none", symbolic=True)
    def all(self, axis: Axes | None = None, keepdim: bool = False):
        """Whether none over @axes is zero, as bool."""

    @op(wide=True, takes="float", symbolic=True, autocast="wide")
    def var(self, axis: Axes | None = None, correction: int = 1, keepdim: bool = False):
        """@correction: 1 for the unbiased estimate, 0 for the population's

        The variance over @axes: squared distances to the mean, their sum divided by the count less @correction."""

    @op(wide=True, takes="float", symbolic=True, autocast="wide")
    def std(self, axis: Axes | None = None, correction: int = 1, keepdim: bool = False):
        """@correction: 1 for the unbiased estimate, 0 for the population's

        The square root of tiny_tensor_var()."""

    @op(wide=True, takes="float", symbolic=True, autocast="wide")
    def var_mean(self, axis: Axes | None = None, correction: int = 1, keepdim: bool = False) -> (var, mean):
        """@correction: 1 for the unbiased estimate, 0 for the population's

        tiny_tensor_var() and tiny_tensor_mean()."""

    @op(wide=True, takes="float", symbolic=True, autocast="wide")
    def std_mean(self, axis: Axes | None = None, correction: int = 1, keepdim: bool = False) -> (std, mean):
        """@correction: 1 for the unbiased estimate, 0 for the population's

        tiny_tensor_std() and tiny_tensor_mean()."""

    @op(takes="float", wide=True, symbolic=True, autocast="wide")
    def logsumexp(self, axis: Axes | None = None, keepdim: bool = False):
        """log (sum (exp (@self))) over @axes, which does not overflow; -inf of no elements."""

    @op(gradient="none", symbolic=True)
    def count_nonzero(self, axis: Axes | None = None, keepdim: bool = False):
        """How many over @axes are not 0, as i32."""
        return sum(self != 0, axis)

    @op(wide=True, dtyped=True, symbolic=True, autocast="wide")
    def nansum(self, axis: Axes | None = None, keepdim: bool = False):
        """The sum over @axes of what is no NaN."""
        return sum(0 if isnan(self) else self, axis)

    @op(wide=True, takes="float", symbolic=True)
    def nanmean(self, axis: Axes | None = None, keepdim: bool = False):
        """The mean over @axes of what is no NaN."""
        return nansum(self, axis) / sum(self == self, axis)

    @op(gradient="none", symbolic=True)
    def argmax(self, axis: Axis | None = None, keepdim: bool = False):
        """The position of the largest along @axis, the first of equals, as i32."""

    @op(gradient="none", symbolic=True)
    def argmin(self, axis: Axis | None = None, keepdim: bool = False):
        """The position of the smallest along @axis, the first of equals, as i32."""


class Scans:
    """What has come together up to each position along an axis."""

    @op(wide=True, dtyped=True, symbolic=True, in_place=True, autocast="wide")
    def cumsum(self, axis: Axis = 0):
        """The sum of all up to each position. Narrow integers and bool add up in 32 bits."""

    @op(wide=True, dtyped=True, symbolic=True, in_place=True, autocast="wide")
    def cumprod(self, axis: Axis = 0):
        """The product of all up to each position. Narrow integers and bool multiply in 32 bits."""

    @op(gradient="kinks")
    def cummax(self, axis: Axis = 0) -> (values, indices):
        """The largest up to each position, and where it is, the last of equals, as i32."""

    @op(gradient="kinks")
    def cummin(self, axis: Axis = 0) -> (values, indices):
        """The smallest up to each position, and where it is, the last of equals, as i32."""

    @op(takes="float", wide=True, autocast="wide")
    def logcumsumexp(self, axis: Axis = 0):
        """log (cumsum (exp (@self))), which does not overflow."""

    @op(wide=True, symbolic=True)
    def diff(self, n: int = 1, axis: Axis = -1):
        """@n: how often, 0 to 1024, or as often as the axis is long and more

        Differences of neighbours along @axis, which becomes @n shorter."""


class Movement:
    """Other shapes of the same elements: none of these copies. Most give views: what is assigned to one is assigned to what it is a view
    of, as of NumPy's and PyTorch's; those that pad, repeat, roll or join give values of their own."""

    @op(alias="view", symbolic=True, view=True)
    def reshape(self, shape: Shape):
        """The elements in row-major order in another shape; one size may be -1 and follows from the others. A view always, also of what is
        permuted or flipped, where PyTorch's is a copy: what is written to x.t ().reshape (…) is written to x."""

    @op(symbolic=True, view=True)
    def permute(self, axis: Axes):
        """@axis: a permutation

        Axis @axes[i] becomes axis i."""

    @op(alias="swapaxes swapdims", symbolic=True, view=True)
    def transpose(self, dim0: Axis = 1, dim1: Axis = 0):
        """Axes @dim0 and @dim1 exchanged."""

    @op(alias="broadcast_to", symbolic=True, view=True)
    def expand(self, shape: Shape):
        """@self broadcast to @shape; -1 keeps a size."""

    @op(symbolic=True)
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

    @op(view=True)
    def shrink_to(self, shape: Sizes):
        """@shape: sizes, none larger than @self's; -1 keeps one

        The beginning of @self."""

    @op(symbolic=True, view=True)
    def shrink(self, pairs: Sizes):
        """@pairs: begin and end of each axis

        The part of @self from begin up to before end."""

    @op(symbolic=True, view=True)
    def flip(self, axis: Axes):
        """@self with @axes reversed: a view, as NumPy's, where PyTorch's is a copy."""

    @op(symbolic=True, view=True)
    def squeeze(self, axis: Axes | None = None):
        """@self without those of @axes that have size 1."""

    @op(symbolic=True, view=True)
    def unsqueeze(self, dim: int):
        """@dim: where, from -rank-1 to rank

        @self with a new axis of size 1 at @dim."""

    @op(alias="ravel", symbolic=True, view=True)
    def flatten(self, start_dim: int = 0, end_dim: int = -1):
        """@start_dim: the first axis
        @end_dim: the last axis

        Axes @start_dim to @end_dim made one."""

    @op(symbolic=True, view=True)
    def slice(self, axis: Axis, start: int, stop: int, step: int = 1):
        """@start: where to start
        @stop: where to stop, not included
        @step: not 0

        The part of @self along @axis that Python's start:stop:step takes: negative positions count from the end,
        those outside are moved inside. Use %TINY_SLICE_END and %TINY_SLICE_BEGIN for an open stop."""

    @op(symbolic=True)
    def repeat(self, repeats: Sizes):
        """@repeats: how often, for each axis; at least as many as @self has

        @self laid side by side @repeats times."""

    @op(symbolic=True)
    def tile(self, repeats: Sizes):
        """@repeats: how often, for each of the last axes

        As tiny_tensor_repeat(), whichever has more axes."""

    @op(symbolic=True)
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

    @op(view=True, symbolic=True)
    def flipud(self):
        """@self with its first axis reversed."""

    @op(view=True, symbolic=True)
    def fliplr(self):
        """@self with its second axis reversed."""

    @op(alias="moveaxis", view=True, symbolic=True)
    def movedim(self, source: Sizes, destination: Sizes):
        """@source: axes, negative ones from the end
        @destination: where they go, as many

        @self with some axes elsewhere; the others keep their order."""

    @op(view=True, symbolic=True)
    def unflatten(self, axis: Axis, sizes: Sizes):
        """@sizes: at least one; one of them may be -1

        @axis made several."""

    @op(view=True, symbolic=True)
    def rearrange(self, formula: str, names: str | None = None, sizes: Sizes | None = None):
        """@formula: axes before and after, as "b (h w) c -> b c h w"
        @names: of axes whose sizes are given, separated by spaces
        @sizes: their sizes

        @self reshaped, permuted and reshaped as @formula says (Rogozhnikov 2022): names in parentheses are one axis, "..."
        are those not named, 1 is an axis of size 1. In each parenthesis on the left all sizes but one are given."""

    @op(symbolic=True, gradient="none")
    def shorten(self, axis: Axis, size: Tensor):
        """@size: an integer without axes, calculated from variables (tiny_variable_bind()) and numbers by + and *

        The first @size elements of @self along @axis: an axis whose size is a variable. Programs are made once, for the
        largest @size, and are given the size when they are launched; memory has room for the largest. Reading gives what the value is. What
        cannot be computed for such an axis is an error."""


    @op(symbolic=True, view=True)
    def narrow(self, axis: Axis, start: Tensor, length: int):
        """@start: an integer without axes: a variable (tiny_variable_bind()), or one in memory; a plain negative
            number counts from the end
        @length: how many

        The @length elements of @self along @axis from @start on. Where @start is calculated from variables and numbers,
        positions that it could reach outside of @self are an error; where it is data they give zeros."""

    @op(view=True, symbolic=True)
    def select(self, axis: Axis, index: int):
        """@index: a negative one counts from the end

        The part of @self at @index, without @axis."""

    @op(view=True, symbolic=True)
    def split(self, sizes: Sizes, axis: Axis = 0) -> Tensors:
        """@sizes: one size of all pieces, of which the last may be smaller; or that of each

        @self cut into pieces along @axis."""

    @op(view=True, symbolic=True)
    def chunk(self, chunks: int, axis: Axis = 0) -> Tensors:
        """@chunks: how many at most

        @self cut into equal pieces along @axis, of which the last may be smaller."""

    @op(view=True, symbolic=True)
    def unbind(self, axis: Axis = 0) -> Tensors:
        """The parts of @self along @axis, without it."""

    @op(view=True)
    def unfold(self, axis: Axis, size: int, step: int):
        """@size: of a window
        @step: from one to the next, at least 1

        Windows along @axis, their elements a new last axis."""

    @op(view=True)
    def diagonal(self, offset: int = 0, dim1: Axis = 0, dim2: Axis = 1):
        """@offset: how far above the main diagonal

        The diagonals of the matrices along @dim1 and @dim2, as a new last axis."""

    def diag(self, diagonal: int = 0):
        """@diagonal: how far above the main one

        A vector as the diagonal of a square matrix; of a matrix its diagonal."""

    @op(in_place=True)
    def triu(self, diagonal: int = 0):
        """@diagonal: how far above the main one the triangle begins

        Matrices with 0 below a diagonal."""

    @op(in_place=True)
    def tril(self, diagonal: int = 0):
        """@diagonal: how far above the main one the triangle ends

        Matrices with 0 above a diagonal."""

    @op(alias="concat concatenate", symbolic=True)
    def cat(tensors: Tensors, axis: Axis = 0):
        """@tensors: at least one, equal in all sizes but that of @axis

        The tensors one after the other along @axis. Of floats it is a sum of the tensors with zeros around each: -0.0 becomes 0.0."""

    @op(symbolic=True)
    def stack(tensors: Tensors, dim: int = 0):
        """@tensors: at least one, of equal shape
        @dim: where the new axis goes, from -rank-1 to rank

        The tensors side by side along a new axis."""

    @op(symbolic=True)
    def hstack(tensors: Tensors):
        """@tensors: at least one

        The tensors one after the other along the second axis, or the first of vectors."""

    @op(alias="row_stack", symbolic=True)
    def vstack(tensors: Tensors):
        """@tensors: at least one

        The tensors one below the other; a vector is a row."""

    @op(symbolic=True)
    def dstack(tensors: Tensors):
        """@tensors: at least one

        The tensors one behind the other along the third axis."""

    def meshgrid(tensors: Tensors, indexing: str = "ij") -> Tensors:
        """@tensors: vectors, or numbers
        @indexing: ij, or xy, which exchanges the first two axes

        Each tensor along its axis of a grid of all."""


class Indexing:
    """Elements picked by positions that are data. Indices are integers; no kernel stops for one that is outside."""

    @op(framed=True, symbolic=True)
    def index(self, pattern: str, numbers: Sizes | None = None, tensors: Tensors | None = None):
        """@pattern: what the subscript consists of, one letter for each part
        @numbers: of the parts i and s, in order
        @tensors: of the parts t and v, in order

        `@self[…]` of Python. The parts are: `i` a number, which takes its axis away; `s` a slice (start, stop and step as
        in tiny_tensor_slice()); `:` a whole axis; `n` a new axis of size 1; `.` as many whole axes as are left (there may
        be one; without it they are at the end); `t` a tensor; `v` a slice from the
        place that one tensor says up to that of a second, integers without axes, calculated from variables (tiny_variable_bind()) and
        numbers: an axis whose size is a variable (tiny_tensor_shorten()), unless the difference is a number. So x[2, ..., None, ::2] is "i.ns" with the numbers
        2, %TINY_SLICE_BEGIN, %TINY_SLICE_END, 2 (a start far below the first is the first).

        Tensors of integers pick along their axis, negative ones from the end; several broadcast and are one pick,
        whose axes come where the first one was, or first of all when a slice parts them (PyTorch's rule: numbers and
        tensors without axes part nothing). Positions outside give 0 and have no gradient. A bool tensor of rank k
        stands for the positions of what is true in it along the next k axes; how many they are is a size, so it is
        realised.

        A number outside of its axis, more parts than axes, index tensors that do not broadcast and a mask of
        another shape are errors."""

    @op(framed=True, in_place=True)
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

        A new last axis that is 1 at the position the label says and 0 elsewhere, as i32: 0 everywhere of a label outside, also of -1."""

    @op(symbolic=True)
    def index_select(self, axis: Axis, index: Tensor):
        """@index: integers of any shape

        The parts of @self along @axis at @index, whose shape replaces that axis: rows of an embedding
        (V, D) at tokens (B, T) along axis 0 are (B, T, D). NumPy's `take`, ONNX's `Gather`.

        Positions are as in all operations (docs/indexing.md): negative ones count from the end, what is outside gives zeros
        and has no gradient. What is read at equal positions adds up in the gradient of @self. One load for each element of the
        result, whatever the size of @self."""

    @op(symbolic=True)
    def gather(self, axis: Axis, index: Tensor):
        """@index: integers with as many axes as @self, on the others of which it is no larger

        The elements of @self whose position along @axis is what @index says and along the other axes is that of the
        index, in @index's shape: of scores (B, K) the label's is gather (scores, 1, labels (B, 1)), (B, 1). ONNX's
        `GatherElements`. Positions outside and gradients: as tiny_tensor_index_select()."""

    @op(symbolic=True)
    def take_along_dim(self, indices: Tensor, axis: Axis | None = None):
        """@indices: integers with as many axes as @self

        As tiny_tensor_gather(), but on the other axes both broadcast. NumPy's `take_along_axis`."""

    def take(self, index: Tensor):
        """@index: integers, negative ones from the end

        The elements of @self, as a vector, at @index."""

    @op(in_place=True)
    def scatter(self, axis: Axis, index: Tensor, src: Tensor, reduce: str | None = None):
        """@index: integers with as many axes as @self, no larger than @self on the others
        @src: as large as @index at least, or a number; cast to @self's dtype
        @reduce: add or multiply, instead of writing over

        @self with the elements of @src at the positions along @axis that @index says. Of several at one position the last
        wins; those outside of @self write nothing. Few of them are compared with every position of @self, many are sorted."""

    @op(in_place=True)
    def scatter_add(self, axis: Axis, index: Tensor, src: Tensor):
        """@index: as in tiny_tensor_scatter()
        @src: as in tiny_tensor_scatter()

        The elements of @src added to @self at the positions along @axis that @index says."""

    @op(gradient="kinks", in_place=True)
    def scatter_reduce(self, axis: Axis, index: Tensor, src: Tensor, reduce: str, include_self: bool = True):
        """@index: as in tiny_tensor_scatter()
        @src: as in tiny_tensor_scatter()
        @reduce: sum, prod, mean, amax or amin
        @include_self: whether @self counts where something is written

        The elements of @src combined with @self, or with each other, at the positions along @axis that @index says."""

    @op(in_place=True)
    def index_add(self, axis: Axis, index: Tensor, source: Tensor, alpha: float = 1):
        """@index: a vector of integers
        @source: of @self's shape but along @axis, where it is as long as @index
        @alpha: a factor

        @alpha * @source added to @self at the positions @index along @axis."""

    @op(in_place=True)
    def index_copy(self, axis: Axis, index: Tensor, source: Tensor):
        """@index: a vector of integers
        @source: of @self's shape but along @axis, where it is as long as @index

        @self with @source at the positions @index along @axis."""

    @op(in_place=True)
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

    @op(framed=True, in_place=True)
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

    @op(wide=True, gradient="none")
    def histc(self, bins: int = 100, min: float = 0, max: float = 0):
        """@bins: how many
        @min: where the first begins
        @max: where the last ends; if it is @min, they are those of @self

        How many elements are in each of @bins intervals of equal width, in @self's dtype; those outside and NaN do not count. Where the
        ends are those of @self and not finite, all are NaN."""

    @op(framed=True, gradient="none")
    def unique(self, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
               axis: Axis | None = None) -> Tensors:
        """@sorted: they always are; for PyTorch's sake
        @return_inverse: whether to tell where each element of @self is among them
        @return_counts: whether to tell how often each is there
        @axis: of parts to be compared as a whole

        The different elements of @self in order, then what else is asked for, as i32. Every NaN differs from all others.
        @self is realised and compared on the host."""

    @op(framed=True, gradient="none")
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

    @op(symbolic=True, autocast="narrow")
    def matmul(self, other: Tensor):
        """The matrix product (…, M, K) @ (…, K, N) = (…, M, N); leading axes broadcast, a vector is a row on
        the left and a column on the right. f16 and bf16 accumulate in f32."""

    @op(symbolic=True, autocast="narrow")
    def dot(self, other: Tensor):
        """The same as tiny_tensor_matmul()."""
        return matmul(self, other)

    @op(symbolic=True, autocast="narrow")
    def mm(self, mat2: Tensor):
        """tiny_tensor_matmul() of matrices."""

    @op(symbolic=True, autocast="narrow")
    def mv(self, vec: Tensor):
        """tiny_tensor_matmul() of a matrix and a vector."""

    @op(symbolic=True, autocast="narrow")
    def bmm(self, mat2: Tensor):
        """@self: of shape (B, M, K)
        @mat2: of shape (B, K, N)

        tiny_tensor_matmul() of as many matrices, (B, M, N)."""

    @op(alias="ger", symbolic=True)
    def outer(self, vec2: Tensor):
        """@self: a vector (M)
        @vec2: a vector (N)

        Each element times each, (M, N)."""

    @op(symbolic=True, autocast="narrow")
    def inner(self, other: Tensor):
        """The sum of products over the last axes of both; with a scalar the product."""

    @op(symbolic=True, autocast="narrow")
    def tensordot(self, other: Tensor, dims: int = 2, self_dims: Sizes | None = None, other_dims: Sizes | None = None):
        """@dims: how many of the last axes of @self and first of @other are summed
        @self_dims: those axes of @self instead
        @other_dims: and of @other

        The sum of products over axes of both; the others follow each other."""

    def kron(self, other: Tensor):
        """The product of Kronecker: each element of @self times all of @other, in blocks."""

    @op(wide=True)
    def trace(self):
        """@self: a matrix

        The sum of its diagonal."""

    @op(alias="linalg_cross")
    def cross(self, other: Tensor, axis: Axis = -1):
        """@axis: of size 3

        The vector at right angles to both, along @axis."""

    @op(wide=True, symbolic=True, in_place=True, autocast="narrow")
    def addmm(self, mat1: Tensor, mat2: Tensor, beta: float = 1, alpha: float = 1):
        """@beta: factor of @self; 0: it is not read
        @alpha: factor of the product

        @beta @self + @alpha @mat1 @ @mat2."""

    @op(wide=True, symbolic=True, in_place=True, autocast="narrow")
    def baddbmm(self, batch1: Tensor, batch2: Tensor, beta: float = 1, alpha: float = 1):
        """@beta: factor of @self; 0: it is not read
        @alpha: factor of the product

        @beta @self + @alpha tiny_tensor_bmm (@batch1, @batch2)."""

    @op(symbolic=True, autocast="narrow")
    def einsum(equation: str, operands: Tensors):
        """@equation: letters for the axes of each operand, with commas between them, and after -> those of the result

        The sum of products over letters that the result has not. "..." is for any axes, which broadcast; a letter twice in
        one operand takes its diagonal. Without -> the result has the axes of "...", then the letters written once in
        order of the alphabet, capitals first. Pairs with the smallest product are multiplied first."""

    @op(symbolic=True, autocast="narrow")
    def linear(self, weight: Tensor, bias: Tensor | None = None):
        """@self: of shape (…, I)
        @weight: of shape (O, I)
        @bias: of shape (O)

        @self @ @weightᵀ + @bias, (…, O)."""


class Convolution:
    """Windows of images times weights. An image is (B, C, S…) or (C, S…), with a size for each direction. Sizes are one
    number for all directions or one for each; padding may also be two for each, before and after, the last direction
    first. Nothing is flipped. Results are stored channels-last."""

    autocast = "narrow"
    @op(symbolic=True)
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

    @op(symbolic=True)
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

    @op(gradient="kinks", symbolic=True)
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

    @op(gradient="kinks", symbolic=True)
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

    @op(gradient="kinks", symbolic=True)
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

    @op(symbolic=True)
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

    @op(symbolic=True)
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

    @op(symbolic=True)
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

        Elements where they were before pooling, zeros elsewhere. Those of equal places add up, those of places outside are lost; with TINY_CHECK=1 such
        a place is an error."""

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

    @op(wide=True, takes="any", gradient="kinks")
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
    wide = True

    @op(symbolic=True, dtyped=True, autocast="wide")
    def softmax(self, axis: Axis = -1):
        """exp (@self) / sum (exp (@self)) over @axis."""

    @op(symbolic=True, dtyped=True, autocast="wide")
    def log_softmax(self, axis: Axis = -1):
        """The logarithm of tiny_tensor_softmax()."""

    @op(symbolic=True, autocast="wide")
    def softmin(self, axis: Axis = -1):
        """The softmax of -@self."""
        return softmax(-self, axis)

    @op(symbolic=True)
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

    @op(symbolic=True)
    def batchnorm(self, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, axis: Axes = 1):
        """@weight: as many as @self has along @axes, as all of these
        @bias: likewise
        @mean: likewise
        @invstd: 1 / sqrt (variance + epsilon)

        (@self - @mean) * @invstd * @weight + @bias. See tiny_tensor_batch_norm()."""

    @op(symbolic=True)
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

    @op(symbolic=True, autocast="wide")
    def group_norm(self, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5):
        """@self: of shape (B, C, …)
        @num_groups: divides C
        @weight: of shape (C)
        @bias: of shape (C)
        @eps: added to the variance

        Mean 0 and variance 1 over each group of channels, times @weight plus @bias (Wu and He 2018)."""

    @op(symbolic=True, autocast="wide")
    def layer_norm(self, normalized_shape: Shape, weight: Tensor | None = None, bias: Tensor | None = None,
                   eps: float = 1e-5):
        """@normalized_shape: the last axes of @self, which are normalised together
        @weight: of that shape
        @bias: of that shape
        @eps: added to the variance

        @self with mean 0 and variance 1 over its last axes, times @weight plus @bias."""

    @op(symbolic=True, autocast="wide")
    def layernorm(self, axis: Axes = -1, eps: float = 1e-5):
        """@eps: added to the variance

        @self with mean 0 and variance 1 over @axes."""
        distance = self - mean(self, axis)
        return distance * rsqrt(mean(distance * distance, axis) + eps)

    @op(symbolic=True, autocast="wide")
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

    @op(gradient="kinks", alias="linalg_norm vector_norm", symbolic=True, autocast="wide")
    def norm(self, p: float = 2, axis: Axes | None = None, keepdim: bool = False):
        """@p: any number; 0 counts what is not zero, an infinity is for the largest or smallest

        The sum of |@self| ** @p over @axes to the power 1 / @p. The gradient of a length of 0 is 0."""

    @op(gradient="kinks", symbolic=True, autocast="wide")
    def normalize(self, p: float = 2, axis: Axis = 1, eps: float = 1e-12):
        """@p: as of tiny_tensor_norm()
        @eps: the least length

        @self divided by its length along @axis."""


class Attention:
    """Values weighed by how well their keys fit."""

    @op(takes="any", symbolic=True, autocast="narrow")
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

        softmax (@self @ keyᵀ * @scale) @ @value, (…, L, V) (Vaswani et al. 2017). A query that sees no key, by a mask of bool, gives
        zeros and has no gradient; one to whose scores nothing but -∞ is added gives NaNs.
        Where a device has an operation for attention this is it, unless weights are dropped or a mask is of bool."""


class Losses:
    """How far from what was wanted. A reduction is "mean", "sum", both over all elements, or "none"."""

    takes = "float"
    wide = True
    autocast = "wide"

    @op(takes="any", symbolic=True)
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

    @op(takes="any", symbolic=True)
    def nll_loss(self, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"):
        """@self: logarithms of probabilities, (B, K, …) or (K)
        @target: integers from 0 to K-1, (B, …)
        @weight: of each class, (K)
        @ignore_index: a label that does not count
        @reduction: mean, sum or none

        -@self at the label. The mean is weighted. A label outside counts as 0 loss."""

    @op(takes="any", symbolic=True)
    def sparse_categorical_crossentropy(self, target: Tensor, ignore_index: int = -1, label_smoothing: float = 0,
                                        reduction: str = "mean"):
        """@self: scores before softmax, (…, K)
        @target: integers from 0 to K-1, (…)
        @ignore_index: a label that does not count
        @label_smoothing: how much of the target, from 0 to 1, is shared by all classes
        @reduction: mean, sum or none

        tiny_tensor_cross_entropy() with the classes last."""

    @op(alias="binary_cross_entropy", symbolic=True)
    def binary_crossentropy(self, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"):
        """@self: probabilities
        @target: wanted probabilities, of the same shape
        @weight: broadcasts to that
        @reduction: mean, sum or none

        -@target log (@self) - (1 - @target) log (1 - @self); logarithms are at least -100, without gradient there."""

    @op(alias="binary_cross_entropy_with_logits", symbolic=True)
    def binary_crossentropy_logits(self, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
                                   pos_weight: Tensor | None = None):
        """@self: scores before sigmoid
        @target: wanted probabilities, of the same shape
        @weight: broadcasts to that
        @reduction: mean, sum or none
        @pos_weight: factor of what is wanted, broadcasts

        tiny_tensor_binary_crossentropy() of sigmoid (@self), without overflow."""

    @op(symbolic=True)
    def mse_loss(self, target: Tensor, reduction: str = "mean"):
        """@target: what was wanted
        @reduction: mean, sum or none

        (@self - @target)²."""

    @op(gradient="kinks", symbolic=True)
    def l1_loss(self, target: Tensor, reduction: str = "mean"):
        """@target: what was wanted
        @reduction: mean, sum or none

        |@self - @target|."""

    @op(gradient="kinks", symbolic=True)
    def smooth_l1_loss(self, target: Tensor, reduction: str = "mean", beta: float = 1):
        """@target: what was wanted
        @reduction: mean, sum or none
        @beta: where the square begins; 0: tiny_tensor_l1_loss()

        tiny_tensor_huber_loss() with delta @beta, divided by it."""

    @op(gradient="kinks", symbolic=True)
    def huber_loss(self, target: Tensor, reduction: str = "mean", delta: float = 1):
        """@target: what was wanted
        @reduction: mean, sum or none
        @delta: where the square begins, above 0

        d² / 2 of distances d below @delta, @delta (d - @delta / 2) of others (Huber 1964)."""

    @op(symbolic=True)
    def kl_div(self, target: Tensor, reduction: str = "mean", log_target: bool = False):
        """@self: logarithms of probabilities
        @target: wanted probabilities
        @reduction: mean, sum, none, or batchmean: the sum divided by the first size
        @log_target: whether @target is of logarithms as well

        @target (log (@target) - @self), 0 where @target is 0 (Kullback and Leibler 1951)."""

    @op(gradient="kinks", symbolic=True)
    def poisson_nll_loss(self, target: Tensor, log_input: bool = True, full: bool = False, eps: float = 1e-8,
                         reduction: str = "mean"):
        """@self: expected counts, or their logarithms
        @target: counts
        @log_input: whether @self is of logarithms
        @full: whether Stirling's approximation of log (@target!) is added
        @eps: added before a logarithm is taken
        @reduction: mean, sum or none

        exp (@self) - @target @self, or @self - @target log (@self + @eps)."""

    @op(gradient="kinks", symbolic=True)
    def gaussian_nll_loss(self, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6,
                          reduction: str = "mean"):
        """@self: expected values
        @target: values
        @var: variances, perhaps without the last axis
        @full: whether log (2π) / 2 is added
        @eps: the least variance
        @reduction: mean, sum or none

        (log (@var) + (@self - @target)² / @var) / 2."""

    @op(symbolic=True)
    def cosine_similarity(self, other: Tensor, axis: Axis = 1, eps: float = 1e-8):
        """@eps: the least length

        The product of the directions of @self and @other along @axis. Shapes broadcast."""

    @op(gradient="kinks", symbolic=True)
    def cosine_embedding_loss(self, other: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean"):
        """@self: vectors, (B, N) or (N)
        @other: vectors of the same shape
        @target: 1 where they should be alike, -1 where they should not
        @margin: how alike the latter may be
        @reduction: mean, sum or none

        1 - cos for a target of 1, max (0, cos - @margin) for one of -1."""

    @op(gradient="kinks", symbolic=True)
    def hinge_embedding_loss(self, target: Tensor, margin: float = 1, reduction: str = "mean"):
        """@self: distances
        @target: 1 where they should be small, -1 where they should not
        @margin: how large is large enough
        @reduction: mean, sum or none

        @self for a target of 1, max (0, @margin - @self) for one of -1."""

    @op(gradient="kinks", symbolic=True)
    def margin_ranking_loss(self, other: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean"):
        """@target: 1 where @self should be larger, -1 where @other should
        @margin: by how much
        @reduction: mean, sum or none

        max (0, @margin - @target (@self - @other))."""

    @op(symbolic=True)
    def soft_margin_loss(self, target: Tensor, reduction: str = "mean"):
        """@target: 1 or -1
        @reduction: mean, sum or none

        log (1 + exp (-@target @self))."""

    @op(gradient="kinks", symbolic=True)
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
    """Of matrices (…, M, N), each by itself. The last two axes are rows and columns. On the CPU a LAPACK computes the factors where
    one is found (TINY_LAPACK_LIBRARY); elsewhere a method walks over columns one by one, which is meant for sizes up to some 64. A
    matrix with infinities or NaNs gives NaNs."""

    takes = "float"
    wide = True

    @op(alias="linalg_cholesky")
    def cholesky(self, upper: bool = False):
        """@self: symmetric matrices with positive eigenvalues; of others the result has NaNs
        @upper: whether Lᵀ is wanted, of matrices whose upper triangle is read; else the lower one is

        The lower triangular L with L Lᵀ = @self."""

    @op(alias="linalg_solve")
    def solve(self, right: Tensor):
        """@self: of shape (…, N, N)
        @right: of shape (…, N, M), or (…, N) or (N)

        X with @self X = @right, by elimination with pivots. NaNs where a pivot is 0: there is no one X."""

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

    @op(alias="linalg_lu")
    def lu(self) -> (p, l, u):
        """Factors of Gauss's elimination, as of PyTorch's linalg.lu: @self = P L U with P (…, M, M) of zeros and ones, L (…, M, K) lower
        triangular with ones on the diagonal and U (…, K, N) upper triangular, K the lesser of M and N. The pivot is the largest
        element of what is left of a column, the first of equals."""

    @op(alias="linalg_lu_factor")
    def lu_factor(self) -> (lu, pivots):
        """tiny_tensor_lu() in one matrix, L without its ones below U; and for each step k, from 1, the row that was exchanged with row k,
        i32."""

    @op(takes="any", alias="linalg_lu_solve")
    def lu_solve(self, pivots: Tensor, right: Tensor):
        """@self: what tiny_tensor_lu_factor() gives, (…, N, N)
        @pivots: likewise
        @right: of shape (…, N, M), or (…, N) or (N)

        X with A X = @right for the A of these factors."""

    @op(alias="linalg_qr")
    def qr(self, mode: str = "reduced") -> (q, r):
        """@mode: reduced, or complete for a square Q

        Q with columns at right angles, of length 1, and R upper triangular with Q R = @self, by Householder's
        reflections. Signs are LAPACK's."""

    @op(alias="linalg_svd")
    def svd(self, full_matrices: bool = True) -> (u, s, vh):
        """@full_matrices: whether U and Vᵀ are square; else both have as many vectors as there are values

        U, S from the largest down, and Vᵀ with U diag (S) Vᵀ = @self and orthonormal columns of U and V, by Jacobi's
        rotations, which are too many beyond some 500 vectors, or by LAPACK. Signs are any. (It is PyTorch's linalg.svd.) The gradient of U and V is that where the values differ from each other and from 0, and
        vectors that only complete a square have none."""

    @op(alias="linalg_eigh")
    def eigh(self, upper: bool = False) -> (eigenvalues, eigenvectors):
        """@self: symmetric matrices, (…, N, N)
        @upper: which triangle is read

        Eigenvalues from the least up, and vectors of length 1 in columns, whose signs are any. The gradient of vectors is that where the
        values differ from each other."""

    @op(alias="linalg_lstsq")
    def lstsq(self, right: Tensor):
        """@self: of shape (…, M, N), of full rank
        @right: of shape (…, M, K)

        X for which the length of each column of @self X - @right is least, or if many are, X itself."""

    @op(alias="linalg_matrix_power")
    def matrix_power(self, n: int):
        """@n: any number; below 0 the inverse is multiplied

        The product of @n times the same matrix."""

    @op(wide=False)
    def newton_schulz(self, steps: int = 5, params: Floats | None = None, eps: float = 1e-7):
        """@steps: 0 to 1000
        @params: factors of X, X Xᵀ X, …; none: 2, -1.5, 0.5
        @eps: added to the length that @self is divided by first

        An orthogonal matrix near @self: singular values go to 1 (Jordan et al. 2024)."""


class Fourier:
    """Transforms of any size (Cooley and Tukey 1965, Bluestein 1970). There is no complex dtype: a complex number is a real and
    an imaginary part on a last axis of size 2, as of PyTorch's view_as_real()."""

    takes = "float"
    wide = True

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


class Hashing:
    """Digests of bytes (FIPS 202), the same on every device."""

    gradient = "none"

    def keccak(self, name: str = "sha3_256"):
        """@self: messages (…, N) of u8
        @name: sha3_224, sha3_256, sha3_384, sha3_512, shake_128 (16 bytes), shake_256 (32 bytes) or keccak_256 (the
            function from before the standard)

        The hash of each message, (…, bytes) of u8. A message has at most 4095 blocks of 72 to 168 bytes, and its blocks follow
        each other: see tiny_tensor_hash() for a long one."""

    def hash(self):
        """The 16 bytes of a tree of hashes of @self's elements as they lie in memory: of each 4096 bytes shake_128 is taken, of these of each
        MiB, filled up with zeros, again, and of the results the same until they are one."""


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

    @op(symbolic=True)
    def full_like(self, fill_value: float, dtype: DType | None = None):
        """All @fill_value in the shape and, unless another is given, the dtype of @self."""

    def zeros_like(self, dtype: DType | None = None):
        """All 0 in the shape and, unless another is given, the dtype of @self."""

    def ones_like(self, dtype: DType | None = None):
        """All 1 in the shape and, unless another is given, the dtype of @self."""


class Random:
    """Random numbers: threefry2x32-20, counter based, the same on every device (Salmon et al. 2011)."""

    gradient = "none"

    def rand(dtype: DType, shape: Shape):
        """@dtype: a float dtype

        Uniform over [0, 1)."""

    def randn(dtype: DType, shape: Shape):
        """@dtype: a float dtype

        Normal with mean 0 and variance 1 (Box and Muller 1958)."""

    def random_bits(shape: Shape):
        """Random words, of u32."""

    @op(takes="integer")
    def threefry(self, seed: Tensor):
        """@self: counters, of u64
        @seed: keys, of u64; both broadcast

        Two random words in each u64, a function of counter and key alone: threefry2x32-20 of their low and high words. Word
        i of draw k after tiny_tensor_manual_seed() of a number, counted from 0, as tiny_tensor_random_bits() gives
        it, is the low one of the counter i + 2³² k and that key."""

    def normal(dtype: DType, shape: Shape, mean: float = 0, std: float = 1):
        """@dtype: a float dtype
        @mean: in the middle
        @std: standard deviation, at least 0

        Normal."""

    def rand_like(self, dtype: DType | None = None):
        """Uniform over [0, 1) in the shape and, unless another is given, the dtype of @self."""

    def randn_like(self, dtype: DType | None = None):
        """Normal with mean 0 and variance 1 in the shape and, unless another is given, the dtype of @self."""

    def randperm(dtype: DType, n: int):
        """@dtype: one that holds @n
        @n: from 0 to 2³¹

        0 … @n - 1 in random order."""

    @op(takes="float")
    def multinomial(self, num_samples: int = 1, replacement: bool = False):
        """@self: weights, at least 0, of shape (K) or (B, K)
        @num_samples: how many, N
        @replacement: whether one may be drawn again

        Positions drawn by weight, (N) or (B, N), as i32. Without replacement K² pairs are compared, and where fewer than N weights are above
        0, positions of weight 0 come after those. Nothing is read, so nothing is refused: where weights are no probabilities (below 0, NaN, infinite,
        all 0), which positions come is unspecified, but they are below K. With TINY_CHECK=1 such weights are an error."""

    @op(takes="float")
    def bernoulli(self):
        """@self: probabilities

        1 with that probability, 0 otherwise. With TINY_CHECK=1 what is not from 0 to 1 is an error."""

    def scaled_uniform(dtype: DType, shape: Shape):
        """@dtype: a float dtype

        Uniform over ±1 / sqrt (number of elements)."""

    def glorot_uniform(dtype: DType, shape: Shape):
        """@dtype: a float dtype

        Uniform over ±sqrt (6 / (fan-in + fan-out)), the fans being the product of all sizes but the first, and the first
        (Glorot and Bengio 2010)."""

    def kaiming_normal(dtype: DType, shape: Shape, a: float = 0.01):
        """@dtype: a float dtype
        @a: slope of the leaky rectifier

        Normal with variance 2 / (1 + @a²) / fan-in, see tiny_tensor_kaiming_uniform()."""

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
        """@p: probability of zero, from 0 to 1

        Zeroes elements with probability @p and divides the others by 1 - @p."""
