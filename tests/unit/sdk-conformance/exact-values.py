# SPDX-License-Identifier: MIT
"""Writes operations and what they give, computed with integers, fractions and 420 decimal digits.

Independent of every C library and every float unit: a number format is its definition here, and rounding is a
comparison of fractions. One operation a line: op from to bits... = result [value value's-rest], all bits in
hexadecimal as they lie in memory; the value before rounding as two doubles where it is a finite real number.
"""
import random
import sys
from decimal import Decimal, getcontext
from fractions import Fraction

FLOATS = {"f8e4m3": (3, 4), "f8e5m2": (2, 5), "f16": (10, 5), "bf16": (7, 8), "f32": (23, 8), "f64": (52, 11)}
INTEGERS = {"i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64}
NAN, INF = "nan", "inf"


def decode(kind, bits):
    """A Fraction, or (sign, "inf"), or "nan"; zeros as (sign, 0)."""
    mantissa_bits, exponent_bits = FLOATS[kind]
    sign = -1 if bits >> (mantissa_bits + exponent_bits) else 1
    mantissa = bits & ((1 << mantissa_bits) - 1)
    code = bits >> mantissa_bits & ((1 << exponent_bits) - 1)
    bias, top = (1 << (exponent_bits - 1)) - 1, (1 << exponent_bits) - 1
    if kind == "f8e4m3":
        if code == top and mantissa == 7:
            return NAN
    elif code == top:
        return NAN if mantissa else (sign, INF)
    if code == 0:
        value = Fraction(mantissa) * Fraction(2) ** (1 - bias - mantissa_bits)
    else:
        value = Fraction((1 << mantissa_bits) + mantissa) * Fraction(2) ** (code - bias - mantissa_bits)
    return sign * value if value else (sign, 0)


def nan_of(kind):
    mantissa_bits, exponent_bits = FLOATS[kind]
    return 0x7F if kind == "f8e4m3" else ((1 << exponent_bits) - 1) << mantissa_bits | 1 << (mantissa_bits - 1)


def infinity_of(kind, sign):
    mantissa_bits, exponent_bits = FLOATS[kind]
    if kind == "f8e4m3":
        return 0x7F
    return (1 if sign < 0 else 0) << (mantissa_bits + exponent_bits) | ((1 << exponent_bits) - 1) << mantissa_bits


def zero_of(kind, sign):
    return (1 if sign < 0 else 0) << sum(FLOATS[kind])


def encode(kind, value, sign=1):
    """The nearest code of a Fraction, ties to even; @sign of a zero."""
    mantissa_bits, exponent_bits = FLOATS[kind]
    if value == 0:
        return zero_of(kind, sign)
    sign = -1 if value < 0 else 1
    size, least = abs(value), 2 - (1 << (exponent_bits - 1))
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    exponent = max(exponent, least)
    units = size / Fraction(2) ** (exponent - mantissa_bits)
    whole = units.numerator // units.denominator
    rest = units - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1):
        whole += 1
    code = ((exponent - least) << mantissa_bits) + whole  # a carry moves into the exponent
    last = 0x7E if kind == "f8e4m3" else (((1 << exponent_bits) - 1) << mantissa_bits) - 1
    if code > last:
        return infinity_of(kind, sign) if kind != "f8e4m3" else 0x7F
    return zero_of(kind, sign) | code


# ---- functions, by their series ----
getcontext().prec = 420


def pi_of():
    def arctan_of_inverse(n):
        total = term = Decimal(1) / n
        k = 1
        while abs(term) > Decimal(10) ** -425:
            term /= -(n * n)
            k += 2
            total += term / k
        return total

    return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))  # Machin


PI = pi_of()
LN2 = Decimal(2).ln()


def to_decimal(value):
    return Decimal(value.numerator) / Decimal(value.denominator)


def sine(value):
    x = to_decimal(value)
    turns = (x / PI).to_integral_value()
    x -= turns * PI
    if int(turns) & 1:
        x = -x
    total = term = x
    k = 1
    while abs(term) > Decimal(10) ** -120 * abs(total):
        term *= -x * x / ((k + 1) * (k + 2))
        k += 2
        total += term
    return Fraction(total)


def function(op, kind, x):
    """Bits, and the Fraction before rounding or None."""
    if x == NAN:
        return nan_of(kind), None
    sign, special = x if isinstance(x, tuple) else (1 if x > 0 else -1, None)
    if special == INF:
        if op == "sin" or (sign < 0 and op in ("log2", "sqrt")):
            return nan_of(kind), None
        return (zero_of(kind, 1) if op == "exp2" and sign < 0 else infinity_of(kind, 1)), None
    if special == 0:
        if op == "exp2":
            return encode(kind, Fraction(1)), Fraction(1)
        return (infinity_of(kind, -1) if op == "log2" else zero_of(kind, sign)), None
    if op in ("log2", "sqrt") and sign < 0:
        return nan_of(kind), None
    if op == "exp2":
        if abs(x) > 5000:
            return (infinity_of(kind, 1) if x > 0 else zero_of(kind, 1)), None
        value = Fraction((to_decimal(x) * LN2).exp()) if x.denominator != 1 else Fraction(2) ** x.numerator
    elif op == "log2":
        value = Fraction(to_decimal(x).ln() / LN2)
        if Fraction(2) ** round(value) == x:  # so that what is a tie is seen to be one
            value = Fraction(round(value))
    elif op == "sqrt":
        value = Fraction(to_decimal(x).sqrt())  # exact where there are no more than 420 digits
    else:
        value = sine(x)
    if value == 0:
        return zero_of(kind, 1), None
    return encode(kind, value), value


# ---- arithmetic ----
def number(x):
    return Fraction(0) if isinstance(x, tuple) and x[1] == 0 else x


def is_infinite(x):
    return isinstance(x, tuple) and x[1] == INF


def sign_of(x):
    return x[0] if isinstance(x, tuple) else (1 if x > 0 else -1)


def add(kind, a, b):
    if NAN in (a, b) or (is_infinite(a) and is_infinite(b) and a[0] != b[0]):
        return nan_of(kind), None
    for x in (a, b):
        if is_infinite(x):
            return infinity_of(kind, x[0]), None
    value = number(a) + number(b)
    if value == 0:
        return zero_of(kind, -1 if sign_of(a) < 0 and sign_of(b) < 0 else 1), None
    return encode(kind, value), value


def negated(x):
    return x if x == NAN else (-x[0], x[1]) if isinstance(x, tuple) else -x


def multiply(kind, a, b):
    if NAN in (a, b):
        return nan_of(kind), None
    sign = sign_of(a) * sign_of(b)
    if is_infinite(a) or is_infinite(b):
        other = b if is_infinite(a) else a
        if not is_infinite(other) and number(other) == 0:
            return nan_of(kind), None
        return infinity_of(kind, sign), None
    value = number(a) * number(b)
    return encode(kind, value, sign), value or None


def divide(kind, a, b):
    if NAN in (a, b) or (is_infinite(a) and is_infinite(b)):
        return nan_of(kind), None
    sign = sign_of(a) * sign_of(b)
    if is_infinite(a):
        return infinity_of(kind, sign), None
    if is_infinite(b):
        return zero_of(kind, sign), None
    if number(b) == 0:
        return (nan_of(kind) if number(a) == 0 else infinity_of(kind, sign)), None
    value = number(a) / number(b)
    return encode(kind, value, sign), value or None


# ---- lines ----
def say(op, source, target, args, bits, value=None):
    text = f"{op} {source} {target} " + " ".join(f"{a:x}" for a in args) + f" = {bits:x}"
    # Only where a double has room for what the first leaves.
    if value is not None and Fraction(2) ** -900 < abs(value) < Fraction(2) ** 900:
        near = encode("f64", value)
        rest = value - decode("f64", near)
        text += f" {near:x} {encode('f64', rest):x}"
    print(text)


def edges_of(kind):
    mantissa_bits, exponent_bits = FLOATS[kind]
    width = 1 + mantissa_bits + exponent_bits
    one = ((1 << (exponent_bits - 1)) - 1) << mantissa_bits
    last = 0x7E if kind == "f8e4m3" else (((1 << exponent_bits) - 1) << mantissa_bits) - 1
    positive = [0, 1, (1 << mantissa_bits) - 1, 1 << mantissa_bits, one, one + 1, one - 1, last, nan_of(kind), infinity_of(kind, 1)]
    return positive + [1 << (width - 1) | p for p in positive if p != nan_of(kind)], width


def write_floats(chance):
    for kind in FLOATS:
        edges, width = edges_of(kind)
        draws = [chance.getrandbits(width) for _ in range(60)]
        for x in edges + draws:
            for op in ("sqrt", "exp2", "log2", "sin"):
                say(op, kind, kind, [x], *function(op, kind, decode(kind, x)))
            say("recip", kind, kind, [x], *divide(kind, Fraction(1), decode(kind, x)))
            for other in FLOATS:
                if other != kind and decode(kind, x) != NAN:
                    value = decode(kind, x)
                    bits = infinity_of(other, value[0]) if is_infinite(value) else encode(other, number(value), sign_of(value))
                    say("cast", kind, other, [x], bits)
        pairs = [(a, b) for a in edges for b in edges] + [(chance.choice(draws), chance.choice(draws)) for _ in range(200)]
        # Sums and products that end near a tie: most draws do not.
        one = edges[4]
        pairs += [(one + chance.randrange(8), one - chance.randrange(1, 40)) for _ in range(100)]
        for a, b in pairs:
            x, y = decode(kind, a), decode(kind, b)
            say("add", kind, kind, [a, b], *add(kind, x, y))
            say("sub", kind, kind, [a, b], *add(kind, x, negated(y)))
            say("mul", kind, kind, [a, b], *multiply(kind, x, y))
            say("fdiv", kind, kind, [a, b], *divide(kind, x, y))
            if all(not isinstance(v, tuple) and v != NAN for v in (x, y)):
                c = chance.choice(draws + edges)
                z = decode(kind, c)
                if not isinstance(z, tuple) and z != NAN and x * y + z != 0:
                    say("mulacc", kind, kind, [a, b, c], encode(kind, x * y + z), x * y + z)


def wrapped(value, width):
    return value & ((1 << width) - 1)


def write_integers(chance):
    for kind, width in INTEGERS.items():
        signed = kind[0] == "i"

        def value_of(bits):
            return bits - (1 << width) if signed and bits >> (width - 1) else bits

        top = 1 << (width - 1)
        edges = [0, 1, 2, 7, top - 1, top, top + 1, (1 << width) - 1]
        draws = [chance.getrandbits(width) >> chance.randrange(width) for _ in range(40)]
        for a in edges + draws:
            for b in edges + draws[:10]:
                x, y = value_of(a), value_of(b)
                results = {"add": x + y, "sub": x - y, "mul": x * y, "and": x & y, "or": x | y, "xor": x ^ y, "max": max(x, y)}
                if y != 0:
                    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
                    results["idiv"] = quotient
                    results["mod"] = x - quotient * y
                count = b % width
                for op, result in results.items():
                    say(op, kind, kind, [a, b], wrapped(result, width))
                say("shl", kind, kind, [a, count], wrapped(x << count, width))
                say("shr", kind, kind, [a, count], wrapped(x >> count, width))
                say("cmplt", kind, "bool", [a, b], int(x < y))
            for other in FLOATS:
                say("cast", kind, other, [a], encode(other, Fraction(value_of(a))))
            for other, other_width in INTEGERS.items():
                if other != kind:
                    say("cast", kind, other, [a], wrapped(value_of(a), other_width))


write_floats(random.Random(1))
write_integers(random.Random(2))
