# SPDX-License-Identifier: MIT
"""Fourier transforms: sizes with small divisors, primes, and primes that take a chirp; complex numbers as pairs."""
import torch

from harness import case, refuses

pairs, numbers_of = torch.view_as_real, torch.view_as_complex
SIZES = (1, 2, 3, 4, 7, 8, 12, 17, 20, 34, 64, 100, 289)


def near(n):
    return {"forward": 1e-6 * max(4, n / 8), "backward": 1e-4}


for n in SIZES:
    case("fft", [(3, n, 2)], lambda x: x.fft(), lambda x: pairs(torch.fft.fft(numbers_of(x))), **near(n))
    case("ifft", [(n, 2)], lambda x: x.ifft(), lambda x: pairs(torch.fft.ifft(numbers_of(x))), **near(1))
    case("rfft", [(2, n)], lambda x: x.rfft(), lambda x: pairs(torch.fft.rfft(x)), **near(n))
    if n > 1:
        case("irfft", [(2, n, 2)], lambda x: x.irfft(), lambda x: torch.fft.irfft(numbers_of(x)), **near(1))
        case("irfft", [(n, 2)], lambda x, n=n: x.irfft(2 * n - 1), lambda x, n=n: torch.fft.irfft(numbers_of(x), 2 * n - 1), **near(1))
for n in (521, 1042):
    case("fft", [(1, n, 2)], lambda x: x.fft(), lambda x: pairs(torch.fft.fft(numbers_of(x))), **near(n))
for norm in ("backward", "ortho", "forward"):
    for dim in (0, 1, -1, -2):
        case("fft", [(4, 6, 5, 2)], lambda x, d=dim, n=norm: x.fft(dim=d, norm=n), lambda x, d=dim, n=norm: pairs(torch.fft.fft(numbers_of(x), dim=d, norm=n)), **near(32))
        case("rfft", [(4, 6, 5)], lambda x, d=dim, n=norm: x.rfft(dim=d, norm=n), lambda x, d=dim, n=norm: pairs(torch.fft.rfft(x, dim=d, norm=n)), **near(32))
for n in (3, 8, 11):
    case("fft", [(2, 6, 2)], lambda x, n=n: x.fft(n), lambda x, n=n: pairs(torch.fft.fft(numbers_of(x), n)), **near(32))
    case("rfft", [(2, 6)], lambda x, n=n: x.rfft(n), lambda x, n=n: pairs(torch.fft.rfft(x, n)), **near(32))
    case("irfft", [(2, 6, 2)], lambda x, n=n: x.irfft(n), lambda x, n=n: torch.fft.irfft(numbers_of(x), n), **near(32))
for dims in (None, (0,), (0, 1), (-1, 0)):
    case("fftn", [(4, 6, 5, 2)], lambda x, d=dims: x.fftn(d), lambda x, d=dims: pairs(torch.fft.fftn(numbers_of(x), dim=d)), **near(128))
    case("ifftn", [(4, 6, 5, 2)], lambda x, d=dims: x.ifftn(d), lambda x, d=dims: pairs(torch.fft.ifftn(numbers_of(x), dim=d)), **near(1))
    case("rfftn", [(4, 6, 5)], lambda x, d=dims: x.rfftn(d), lambda x, d=dims: pairs(torch.fft.rfftn(x, dim=d)), **near(128))
case("complex_mul", [(3, 4, 2), (4, 2)], lambda x, y: x.complex_mul(y), lambda x, y: pairs(numbers_of(x) * numbers_of(y)), **near(32))
refuses("fft", [(4, 3)], lambda x: x.fft(), lambda x: numbers_of(x))
refuses("fft", [(4, 2)], lambda x: x.fft(-1), lambda x: torch.fft.fft(numbers_of(x), -1))
refuses("rfft", [(4,)], lambda x: x.rfft(dim=1), lambda x: torch.fft.rfft(x, dim=1))
refuses("rfft", [(4,)], lambda x: x.rfft(norm="none"), lambda x: torch.fft.rfft(x, norm="none"))
