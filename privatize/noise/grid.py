"""Noise on a public grid: what the mechanisms add.

Laplace and normal noise are drawn from the *discrete* distributions (`privatize.noise.exact`) on
a power-of-two grid, which depends on Δ, ε, δ and the number of outputs, never on a value. Outputs
are rounded to it, noise is added in integers, and only the noised integer is rounded to a float.
Proofs: ``docs/noise.md``.
"""

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privatize.noise import exact
from privatize.noise.exact import Integers, Stream, Vector, coarse, discrete_laplace, laplace_one
from privatize.planning.gaussian import log2_1p_exp

Mask = NDArray[np.bool_]
SigmaOf = Callable[[float, float, float], float]


def _exact(value: float) -> Fraction:
    """Return the smaller of a float's exact value and its shortest decimal."""
    return min(Fraction(value), Fraction(repr(value)))


def _floor_log2(value: Fraction) -> int:
    """Return the largest e with 2^e <= value."""
    e = value.numerator.bit_length() - value.denominator.bit_length()
    return e if Fraction(2) ** e <= value else e - 1


@functools.lru_cache(maxsize=1024)
def laplace_grid(sensitivity: float, epsilon: float, floats: int) -> tuple[int, int, int, int]:
    """Return the grid and the scale of noise: (exponent, t) for floats, (t, shift) for integers.

    Floats are rounded to multiples of 2^exponent and get noise of scale t of these, where t is at
    least (sensitivity + floats * 2^exponent) / epsilon: rounding moves each of two outputs by at
    most half a step. The grid is so fine that this is less than 1e-6 of the scale. Integers get
    noise of scale t / 2^shift on the integers, at least the same scale.
    """
    delta, loss = Fraction(sensitivity), _exact(epsilon)
    exponent = _floor_log2(delta / loss) - 40
    if floats:
        exponent = min(exponent, _floor_log2(delta / floats) - 21)
    grid = Fraction(2) ** exponent
    scale = (delta + floats * grid) / loss
    shift = max(0, 40 - _floor_log2(scale))
    return exponent, coarse(math.ceil(scale / grid)), coarse(math.ceil(scale * 2**shift)), shift


def laplace(vector: Vector, sensitivity: float, epsilon: float, whole: Mask) -> Vector:
    """Return the vector with discrete Laplace noise, epsilon-private at this L1 sensitivity.

    `whole` coordinates are integers and stay so.
    """
    size = len(vector)
    if size == 1:  # the usual case, in Python's own numbers
        integer = bool(whole[0])
        exponent, t, t_integer, shift = laplace_grid(sensitivity, epsilon, 0 if integer else 1)
        drawn = laplace_one(t_integer, shift, Stream()) if integer else laplace_one(t, 0, Stream())
        return np.array([_noised_one(vector.item(), 0 if integer else exponent, drawn)])
    integers = int(np.count_nonzero(whole))
    exponent, t, t_integer, shift = laplace_grid(sensitivity, epsilon, size - integers)
    if integers == 0:
        return _noised(vector, exponent, discrete_laplace(t, 0, size))
    if integers == size:
        return _noised(vector, 0, discrete_laplace(t_integer, shift, size))
    out = np.empty(size)
    out[whole] = _noised(vector[whole], 0, discrete_laplace(t_integer, shift, integers))
    out[~whole] = _noised(vector[~whole], exponent, discrete_laplace(t, 0, size - integers))
    return out


def _noised(vector: Vector, exponent: int, noise: Integers | list[int]) -> Vector:
    """Round to multiples of 2^exponent, add the noise in integers, and round to float64 last."""
    # Near the subnormal numbers int64 -> float64 -> ldexp would round twice.
    if isinstance(noise, np.ndarray) and noise.dtype == np.int64 and -1000 < exponent < 900:
        with np.errstate(over="ignore", under="ignore"):
            units = np.ldexp(vector, -exponent)
        small = np.abs(units) < 2.0**61  # |noise| <= 2^61: the sum is below 2^62
        if small.all():
            total = np.rint(units).astype(np.int64) + noise
            with np.errstate(over="ignore", under="ignore"):
                return np.clip(np.ldexp(total.astype(np.float64), exponent), -_LARGEST, _LARGEST)
    # Few values, wide scales, or outputs too large for int64: the same in Python's integers. NumPy's would
    # wrap around, silently.
    if isinstance(noise, np.ndarray):
        noise = noise.tolist()
    return np.array([_noised_one(x, exponent, y) for x, y in zip(vector.tolist(), noise, strict=True)])


_LARGEST = float(np.finfo(np.float64).max)


def _noised_one(value: float, exponent: int, noise: int) -> float:
    return _as_float(nearest(value, exponent) + noise, exponent)


def _as_float(total: int, exponent: int) -> float:
    """Return total times 2^exponent, rounded to a float once."""
    try:
        if -1000 < exponent < 900 and total.bit_length() < 1000:
            return math.ldexp(total, exponent)  # rounded once at most: no result is subnormal
        scaled = total << exponent if exponent >= 0 else Fraction(total, 1 << -exponent)
        return float(scaled)
    except OverflowError:
        return _LARGEST if total > 0 else -_LARGEST


def nearest(value: float, exponent: int) -> int:
    """Return value / 2^exponent as the nearest integer, halves to even, for any finite float."""
    mantissa, power = math.frexp(value)
    number, power = int(mantissa * 2**53), power - 53 - exponent  # value = number 2^power grid units
    if power >= 0:
        return number << power
    if power <= -60:
        return 0
    quotient, rest = divmod(number, 1 << -power)
    return quotient + (2 * rest + (quotient & 1) > 1 << -power)  # halves go to the even one


@functools.lru_cache(maxsize=1024)
def gaussian_grid(
    sensitivity: float, epsilon: float, delta: float, size: int, sigma_of: SigmaOf
) -> tuple[int, int]:
    """Return (exponent, sigma): the grid, and the standard deviation in its units.

    The discrete Gaussian differs from the rounded continuous one by at most grid^2 / (24 sigma^2)
    in total variation per coordinate, so with delta0 = delta - (1 + e^epsilon) size grid^2 / (24
    sigma^2) the continuous calibration at (epsilon, delta0) gives (epsilon, delta). `discretization` bounds
    that total variation for all coordinates together.
    """
    # sigma is proportional to the sensitivity, so it is computed for a sensitivity between 1/2 and 1.
    unit, power = math.frexp(sensitivity)
    sigma = sigma_of(unit, epsilon, delta)
    # log2 of the largest grid that costs at most 2^-20 of delta; it is rounded down below.
    spent = (math.log2(24) - 20 + math.log2(delta) - math.log2(size)) / 2 - log2_1p_exp(epsilon) / 2
    exponent = min(
        math.floor(math.log2(sigma) - math.log2(size) / 2 - 2.0**-20) - 40,
        math.floor(math.log2(sigma) + spent - 2.0**-20),
        math.floor(math.log2(unit) - math.log2(size) / 2) - 22,
    )
    rounded = (unit + math.sqrt(size) * math.ldexp(1.0, max(exponent, -1000))) * (1 + 2.0**-50)
    enough = sigma_of(rounded, epsilon, delta * (1 - 2.0**-20) * (1 - 2.0**-50)) * (1 + 2.0**-50)
    return exponent + power, coarse(math.ceil(Fraction(enough) / Fraction(2) ** exponent))


def gaussian(
    vector: Vector, sensitivity: float, epsilon: float, delta: float, whole: Mask, sigma_of: SigmaOf
) -> Vector:
    """Return the vector with discrete Gaussian noise, (epsilon, delta)-private at this L2 sensitivity.

    `sigma_of(sensitivity, epsilon, delta)` calibrates the continuous one. `whole` coordinates get
    the same fine noise and are rounded afterwards.
    """
    exponent, sigma = gaussian_grid(sensitivity, epsilon, delta, len(vector), sigma_of)
    noised = _noised(vector, exponent, exact.discrete_gaussian(sigma, len(vector)))
    return np.where(whole, np.rint(noised), noised) if whole.any() else noised


def gaussian_exact(
    numbers: Sequence[int], power: int, sensitivity: float, epsilon: float, delta: float, sigma_of: SigmaOf
) -> Vector:
    """Return exact multiples of 2^power with discrete Gaussian noise, as `gaussian` does for floats.

    They are rounded to the grid of the noise, which that grid allows for.
    """
    exponent, sigma = gaussian_grid(sensitivity, epsilon, delta, len(numbers), sigma_of)
    drawn, shift = exact.discrete_gaussian(sigma, len(numbers)), power - exponent
    noise = drawn.tolist() if isinstance(drawn, np.ndarray) else drawn
    if shift >= 0:
        units = [x << shift for x in numbers]
    else:
        half = 1 << (-shift - 1)
        units = [(x + half) >> -shift for x in numbers]
    return np.array([_as_float(x + y, exponent) for x, y in zip(units, noise, strict=True)])


# --- the exponential mechanism --------------------------------------------------------------


def choose(scores: Vector, sensitivity: float, epsilon: float, weights: Sequence[float]) -> int:
    """Draw index r with probability proportional to weights[r] exp(epsilon scores[r] / 2 sensitivity).

    The draw is exact: r is proposed with integer weights slightly above the true ones, and accepted
    with the exact quotient of the two. So nearly every proposal is accepted, and no probability is
    rounded to zero.
    """
    rate = _exact(epsilon) / (2 * Fraction(sensitivity))
    best = float(scores.max())
    upper, power = _proposals(scores, best, rate, np.asarray(weights, dtype=np.float64))
    largest = Fraction(max(weights))
    ends = np.cumsum(upper)
    stream = Stream()
    while True:
        r = int(np.searchsorted(ends, stream.below(int(ends[-1])), side="right"))
        y = rate * (Fraction(best) - Fraction(float(scores[r])))
        c = Fraction(weights[r]) / largest * 2**power / int(upper[r])
        if exact.below(0, 0, functools.partial(_scaled_bounds, y, c), stream):
            return r


def _proposals(scores: Vector, best: float, rate: Fraction, weights: Vector) -> tuple[Integers, int]:
    """Return integers above 2^power weights/max(weights) exp(-rate (best - scores)), and power.

    They are computed in logarithms, so that a prior that contradicts the scores does not make all of
    them tiny: with this power the largest is about 2^bits. Floating point may be off by 2^-31 here, so
    they are taken 2^-30 too large.
    """
    # Their sum is below 2^63: each is at most 2^bits (1 + 2^-29) + 1, and there are fewer than 2^(62-bits).
    bits = 62 - max(20, len(scores).bit_length())
    slope = float(min(rate, Fraction(10) ** 300))  # a smaller rate only makes the proposals larger
    with np.errstate(over="ignore"):
        gap = best - scores
        x = np.where(np.isinf(gap), (best / 2 - scores / 2) * (2 * slope), gap * slope)
    depth = np.minimum(x, 1e6) * math.log2(math.e) - (np.log2(weights) - math.log2(weights.max()))
    lift = max(0, math.floor(depth.min()))
    # At 2^-1000 of the largest or less, the true weight is far below 1, whatever x is.
    upper = np.floor(np.exp2(bits - np.minimum(depth - lift, 1000.0) + 2.0**-30)).astype(np.int64) + 1
    return upper, bits + lift


def _scaled_bounds(y: Fraction, c: Fraction, precision: int) -> tuple[int, int]:
    """Return integers lo <= 2^precision c exp(-y) <= hi, for c exp(-y) <= 1."""
    more = math.ceil(c).bit_length() + 8
    low, high = exact.exp_bounds(y.numerator, y.denominator, precision + more)
    low, high = math.floor(low * c) >> more, -(-math.ceil(high * c) >> more)
    if low > 1 << precision:
        raise ArithmeticError("a response was proposed with less than its true weight")
    return low, high
