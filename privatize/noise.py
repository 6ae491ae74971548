"""Exact discrete noise from the operating system's randomness, integers all the way.

Laplace and normal noise are drawn from the *discrete* distributions on a public power-of-two
grid, which depends on Δ, ε, δ and the number of outputs, never on a value. Decisions are made by
comparing a uniform number, of which ever more bits are drawn, with an irrational probability:
floating point only serves as a filter with a proven error, and what it cannot decide is decided
in integers (:func:`_below`). So the distributions are exact. Nothing is buffered between
calls, so nothing survives a fork. There is no seed. Proofs: ``docs/noise.md``.
"""

from __future__ import annotations

import contextvars
import functools
import math
import os
import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["choose", "discrete_gaussian", "discrete_laplace", "gaussian", "laplace"]

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

# Where random bytes come from. Tests replace it (privatize.testing); nothing else does.
source: contextvars.ContextVar[Callable[[int], bytes]] = contextvars.ContextVar("source", default=os.urandom)

# Up to this many draws plain Python is quicker than numpy (tests/benchmarks/noise.py).
_FEW = 40
_32, _LOW = np.uint64(32), np.uint64(2**32 - 1)
# Scales, in grid units, that the vectorized paths take; beyond, Python's integers do it. A draw is
# below 64 * 2^55 = 2^61 in magnitude there (both paths hand rarer multiples over), and outputs
# below 2^61 are added to it: less than 2^62 in all, so int64 never wraps.
_WIDEST = 55
# The filter's error. p = _exp(x) below is within 2^-48 of the true value (docs/noise.md).
_DOUBT = 2.0**-46


# --- randomness -----------------------------------------------------------------------------


def _words(size: int) -> Words:
    """Return uniform 64-bit words."""
    return np.frombuffer(source.get()(8 * size), dtype=np.uint64)


class _Stream:
    """Uniform 64-bit words one by one, for the duration of one call."""

    __slots__ = ("_ready",)

    def __init__(self) -> None:
        self._ready: list[int] = []

    def word(self) -> int:
        if not self._ready:
            self._ready.extend(struct.unpack("<8Q", source.get()(64)))
        return self._ready.pop()

    def below(self, limit: int) -> int:
        """Return a uniform integer in [0, limit), of any size."""
        bits = (limit - 1).bit_length()
        if bits <= 64:
            drop = 64 - bits
            while (value := self.word() >> drop) >= limit:
                pass
            return value
        while True:
            value = 0
            for _ in range(-(-bits // 64)):
                value = value << 64 | self.word()
            value >>= -bits % 64
            if value < limit:
                return value


# --- deciding exactly -----------------------------------------------------------------------


def _below(prefix: int, bits: int, bounds: Callable[[int], tuple[int, int]], stream: _Stream) -> bool:
    """Tell whether a uniform number is below a constant c.

    The number's first `bits` bits are `prefix`; further ones are drawn as needed. ``bounds(p)``
    returns integers with lo <= 2^p c <= hi.
    """
    while True:
        precision = bits + 64
        low, high = bounds(precision)
        if (prefix + 1) << 64 <= low:
            return True
        if prefix << 64 >= high:
            return False
        prefix, bits = prefix << 64 | stream.word(), bits + 64


def _exp_bounds(num: int, den: int, precision: int) -> tuple[int, int]:
    """Return integers lo <= 2^precision * exp(-num/den) <= hi, for num >= 0 and den > 0."""
    whole, part = divmod(num, den)
    if whole > precision:  # exp(-whole) < 2^-precision
        return 0, 1
    guard = precision + 3 * precision.bit_length() + 16
    low, high = _series(part, den, guard)
    base, power = _series(1, 1, guard), whole
    while power:  # exp(-whole) by squaring, rounding outward
        if power & 1:
            low, high = low * base[0] >> guard, -(-high * base[1] >> guard)
        base = base[0] ** 2 >> guard, -(-(base[1] ** 2) >> guard)
        power >>= 1
    drop = guard - precision
    return max(0, low >> drop), -(-high >> drop)


def _series(part: int, den: int, guard: int) -> tuple[int, int]:
    """Return integers around 2^guard * exp(-part/den), for 0 <= part <= den.

    The alternating series in fixed point. Rounding down makes each term err by less than 2 units
    (the error of the one before is divided by i), and what is cut off is below 1 unit.
    """
    total, term, i = 0, 1 << guard, 0
    while term:
        total += -term if i & 1 else term
        i += 1
        term = term * part // (den * i)
    return total - 2 * i - 1, total + 2 * i + 1


def _flip(prefix: int, bits: int, num: int, den: int, stream: _Stream) -> bool:
    """Tell whether the uniform number that begins with `prefix` is below exp(-num/den)."""
    return _below(prefix, bits, functools.partial(_exp_bounds, num, den), stream)


# --- the filter -----------------------------------------------------------------------------
#
# exp(-x) for 0 <= x < 64 as exp(-a) exp(-b/256) q(r), x = a + b/256 + r exactly, 0 <= r < 1/256, q the
# Taylor polynomial of degree 5. Only IEEE additions and products of correctly rounded constants, so
# its error is proven without trusting anybody's exp().


@functools.cache
def _tables() -> tuple[list[float], list[float], Vector, Vector]:
    def entry(num: int, den: int) -> float:
        low, _ = _exp_bounds(num, den, 200)  # 200 bits: the rounding to float is what counts
        return float(Fraction(low, 1 << 200))

    wholes = [entry(a, 1) for a in range(64)]
    parts = [entry(b, 256) for b in range(256)]
    return wholes, parts, np.array(wholes), np.array(parts)


def _exp(x: float) -> float:
    wholes, parts, _, _ = _tables()
    at = int(x * 256)
    r = x - at / 256
    q = 1 + r * (-1 + r * (0.5 + r * (-1 / 6 + r * (1 / 24 - r * (1 / 120)))))
    return wholes[at >> 8] * (parts[at & 255] * q)


def _exps(x: Vector) -> Vector:
    _, _, wholes, parts = _tables()
    at = (x * 256).astype(np.int64)
    r = x - at * (1 / 256)
    q = r * (-1 / 120)
    q += 1 / 24
    for c in (-1 / 6, 0.5, -1.0, 1.0):
        q *= r
        q += c
    q *= parts[at & 255]
    if x.size and at.max() >= 256:
        q *= wholes[at >> 8]
    return q


# --- discrete Laplace -----------------------------------------------------------------------
#
# X = V t + U is geometric with ratio exp(-1/t) if V is geometric with ratio 1/e and U in [0, t) has
# probability proportional to exp(-U/t); X >> shift then has ratio exp(-2^shift/t) (Canonne, Kamath &
# Steinke 2020). U is proposed uniformly and kept with probability exp(-U/t); V >= j iff a uniform
# number is below exp(-j), and one number serves for all j.

_STEPS = 43  # exp(-43) is just above 2^-63, the resolution of the 63 bits that V is read from


@functools.cache
def _laplace_cuts() -> tuple[list[int], Words]:
    cuts = [_exp_bounds(j, 1, 63)[0] for j in range(_STEPS, 0, -1)]  # floor(2^63 exp(-j)), ascending
    return cuts, np.array(cuts, dtype=np.uint64)


def _geometric(prefix: int, stream: _Stream) -> int:
    """Return V from 63 uniform bits, and more where these do not decide."""
    cuts, _ = _laplace_cuts()
    base = 0
    while True:
        v = _STEPS - bisect_right(cuts, prefix)
        # v cuts lie above the prefix. If it equals the next one, further bits decide.
        if v < _STEPS and cuts[_STEPS - 1 - v] == prefix and _flip(prefix, 63, v + 1, 1, stream):
            v += 1
        if v < _STEPS:
            return base + v
        # Beyond the last cut: geometric variables have no memory.
        base, prefix = base + _STEPS, stream.word() >> 1


def _laplace_one(t: int, shift: int, stream: _Stream) -> int:
    while True:
        u = stream.below(t)
        decider = stream.word() >> 11
        # A quotient of integers is correctly rounded, whatever their size.
        p, low = _exp(u / t), decider * 2.0**-53
        if low >= p + _DOUBT:
            continue
        if low + 2.0**-53 > p - _DOUBT and not _flip(decider, 53, u, t, stream):
            continue
        word = stream.word()
        x = (_geometric(word >> 1, stream) * t + u) >> shift
        if x or word & 1:  # zero has one sign only
            return x if word & 1 else -x


def discrete_laplace(t: int, shift: int, size: int) -> Integers | list[int]:
    """Draw integers x with probability proportional to exp(-abs(x) * 2^shift / t), exactly.

    Parameters
    ----------
    t : int
        Scale, times 2^shift.
    shift : int
        How many binary digits of `t` lie behind the point.
    size : int
        How many to draw.

    References
    ----------
    Canonne, Kamath & Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
    """
    if not _vectorizes(t, size):
        stream = _Stream()
        return [_laplace_one(t, shift, stream) for _ in range(size)]
    _, cuts = _laplace_cuts()
    parts: list[Any] = []
    missing = size
    while missing > 0:
        u, _ = _kept(int(missing * 1.6) + 16, t, None)  # 1 - 1/e of them are kept
        words = _words(len(u))
        prefix = words >> np.uint64(1)
        at = np.searchsorted(cuts, prefix, side="right")
        v = _STEPS - at
        for i in np.flatnonzero((at == 0) | (cuts[at - 1] == prefix)).tolist():
            v[i] = _geometric(int(prefix[i]), _Stream())
        x = _wide(v, t) + u >> shift
        parts.append(_with_sign(x, words)[:missing])
        missing -= len(parts[-1])
    return np.concatenate(parts)


def _wide(multiple: Any, t: int) -> Any:
    """Return multiple * t, in Python's integers where int64 could wrap.

    Up to 63 * 2^55 + 2^55 = 2^61 it cannot. More has probability 2^-91 or less.
    """
    return multiple * t if multiple.max(initial=0) <= 63 else multiple.astype(object) * t


def _with_sign(x: Any, words: Words) -> Any:
    """Return x with a sign from the lowest bits; half of the zeros go, since zero has one sign."""
    positive = (words & np.uint64(1)).astype(np.bool_)
    return np.where(positive, x, -x)[positive | (x != 0)]


def _kept(size: int, t: int, k: Integers | None) -> tuple[Integers, Any]:
    """Propose uniform integers u below t, and keep them with probability exp(-u/t).

    With k the probability is exp(-x(2k+x)/2), x = u/t. Returns the kept ones and where they were.
    """
    factor, zeros = _split(t)
    # Lemire's multiplication: unbiased once few remainders are refused. 2^32 * 2^24 does not wrap.
    words = _words(size)
    product = (words >> _32) * np.uint64(factor)
    fair = (product & _LOW) >= np.uint64(2**32 % factor)
    if zeros <= 20:  # one word holds u and the first bits of the number that decides
        rest, known = words & _LOW, 32 - zeros
    else:
        rest, known = _words(size), 64 - zeros
    u = product >> _32 << np.uint64(zeros) | rest & np.uint64((1 << zeros) - 1)
    decider = rest >> np.uint64(zeros)
    x: Vector = u.astype(np.float64) * (1.0 / t)  # off by three roundings, and at most 1
    if k is not None:
        x *= 0.5 * x + k
    p = _exps(x)
    low = decider.astype(np.float64) * 2.0**-known  # exact: at most 53 bits
    keep = fair & (low + 2.0**-known <= p - _DOUBT)
    for i in np.flatnonzero((keep != fair) & (low < p + _DOUBT)).tolist():
        y = int(u[i])
        num, den = (y, t) if k is None else (y * (2 * int(k[i]) * t + y), 2 * t * t)
        keep[i] = _flip(int(decider[i]), known, num, den, _Stream())
    where = np.flatnonzero(keep)
    return u[where].astype(np.int64), where


def _split(t: int) -> tuple[int, int]:
    """Return (factor, zeros) with t = factor * 2^zeros and an odd factor."""
    zeros = (t & -t).bit_length() - 1
    return t >> zeros, zeros


def _vectorizes(t: int, size: int) -> bool:
    """Tell whether the vectorized path is right for this scale, and quicker."""
    return size > _FEW and t <= 1 << _WIDEST and _split(t)[0] < 1 << 24


def coarse(t: int) -> int:
    """Round a scale up to 23 significant bits, which `_vectorizes` needs: at most 2^-22 of it."""
    drop = max(0, t.bit_length() - 23)
    return -(-t >> drop) << drop


# --- discrete Gaussian ----------------------------------------------------------------------
#
# Karney (2016), Algorithm D, for mean 0 and an integer sigma: k with probability proportional to
# exp(-k^2/2), j uniform in [0, sigma), kept with probability exp(-x(2k+x)/2) for x = j/sigma; then
# k sigma + j has probability proportional to exp(-(k sigma + j)^2 / (2 sigma^2)).

_MOST = 10  # P(k >= 10) < 2^-63


def _normal_bounds(k: int, precision: int) -> tuple[int, int]:
    """Return integers around 2^precision P(K >= k), P(K = i) proportional to exp(-i^2/2)."""
    guard = precision + 32
    above = [0, 0]
    everything = [0, 0]
    i = 0
    while True:
        low, high = _exp_bounds(i * i, 2, guard)
        everything = [everything[0] + low, everything[1] + high]
        if i >= k:
            above = [above[0] + low, above[1] + high]
        if i >= k and high <= 1:
            break
        i += 1
    # What is cut off is at most 2^-guard (the terms more than halve).
    above[1] += 2
    everything[1] += 2
    return (above[0] << precision) // everything[1], -(-(above[1] << precision) // everything[0])


@functools.cache
def _normal_cuts() -> tuple[list[int], Words]:
    cuts = [_normal_bounds(k, 63)[0] for k in range(_MOST, 0, -1)]
    return cuts, np.array(cuts, dtype=np.uint64)


def _steps(prefix: int, stream: _Stream) -> int:
    """Return k from 63 uniform bits, and more where these do not decide."""
    cuts, _ = _normal_cuts()
    k = _MOST - bisect_right(cuts, prefix)
    if prefix not in cuts:
        return k
    # One number decides about all k: draw its further bits once, then compare them all.
    bits, number = 63, prefix
    while True:
        k, unsure = 0, False
        while True:
            low, high = _normal_bounds(k + 1, bits + 64)
            if (number + 1) << 64 <= low:
                k += 1
            elif number << 64 >= high:
                break
            else:
                unsure = True
                break
        if not unsure:
            return k
        number, bits = number << 64 | stream.word(), bits + 64


def _gaussian_one(sigma: int, stream: _Stream) -> int:
    while True:
        word = stream.word()
        k = _steps(word >> 1, stream)
        j = stream.below(sigma)
        if not word & 1 and not k and not j:
            continue  # zero has one sign only
        x = j / sigma
        y = x * (0.5 * x + k)
        decider = stream.word() >> 11
        low = decider * 2.0**-53
        p = _exp(y) if y < 63 else None
        if p is None or (low < p + _DOUBT and low + 2.0**-53 > p - _DOUBT):
            keep = _flip(decider, 53, j * (2 * k * sigma + j), 2 * sigma * sigma, stream)
        else:
            keep = low < p
        if keep:
            value = k * sigma + j
            return value if word & 1 else -value


def discrete_gaussian(sigma: int, size: int) -> Integers | list[int]:
    """Draw integers x with probability proportional to exp(-x^2 / (2 sigma^2)), exactly.

    References
    ----------
    Karney, "Sampling exactly from the normal distribution", ACM TOMS 2016, Algorithm D.
    """
    if not _vectorizes(sigma, size):
        stream = _Stream()
        return [_gaussian_one(sigma, stream) for _ in range(size)]
    _, cuts = _normal_cuts()
    parts: list[Any] = []
    missing = size
    while missing > 0:
        words = _words(int(missing * 1.42) + 16)  # about 0.71 of them are kept
        prefix = words >> np.uint64(1)
        at = np.searchsorted(cuts, prefix, side="right")
        k = _MOST - at
        for i in np.flatnonzero(cuts[at - 1] == prefix).tolist():
            k[i] = _steps(int(prefix[i]), _Stream())
        j, where = _kept(len(words), sigma, k)
        x = _wide(k[where], sigma) + j
        parts.append(_with_sign(x, words[where])[:missing])
        missing -= len(parts[-1])
    return np.concatenate(parts)


# --- on the grid ----------------------------------------------------------------------------


def _exact(value: float) -> Fraction:
    """Return the smaller of what a float is and what its shortest decimal says."""
    return min(Fraction(value), Fraction(repr(value)))


def _floor_log2(value: Fraction) -> int:
    """Return the largest e with 2^e <= value."""
    e = value.numerator.bit_length() - value.denominator.bit_length()
    return e if Fraction(2) ** e <= value else e - 1


@functools.lru_cache(maxsize=1024)
def laplace_grid(sensitivity: float, epsilon: float, floats: int) -> tuple[int, int, int, int]:
    """Return where and how much: (exponent, t) for floats, (t, shift) for integers.

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


def laplace(vector: Vector, sensitivity: float, epsilon: float, whole: NDArray[np.bool_]) -> Vector:
    """Return the vector with discrete Laplace noise, epsilon-private at this L1 sensitivity.

    `whole` coordinates are integers and stay so.
    """
    size = len(vector)
    integers = int(np.count_nonzero(whole))
    exponent, t, t_whole, shift = laplace_grid(sensitivity, epsilon, size - integers)
    if integers == 0:
        return _noised(vector, exponent, discrete_laplace(t, 0, size))
    if integers == size:
        return _noised(vector, 0, discrete_laplace(t_whole, shift, size))
    out = np.empty(size)
    out[whole] = _noised(vector[whole], 0, discrete_laplace(t_whole, shift, integers))
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
        noise = noise.tolist()
    # Few values, wide scales, or outputs too large for int64: the same in Python's integers.
    return np.array([_noised_one(x, exponent, y) for x, y in zip(vector.tolist(), noise, strict=True)])


_LARGEST = float(np.finfo(np.float64).max)


def _noised_one(value: float, exponent: int, noise: int) -> float:
    total = _nearest(value, exponent) + noise
    try:
        if -1000 < exponent < 900 and -(1 << 63) < total < 1 << 63:
            return math.ldexp(total, exponent)  # exact, or rounded once
        scaled = total << exponent if exponent >= 0 else Fraction(total, 1 << -exponent)
        return float(scaled)
    except OverflowError:
        return _LARGEST if total > 0 else -_LARGEST


def _nearest(value: float, exponent: int) -> int:
    """Return value / 2^exponent as the nearest integer, halves to even, for any finite float."""
    mantissa, power = math.frexp(value)
    number, power = int(mantissa * 2**53), power - 53 - exponent  # value = number 2^power grid units
    if power >= 0:
        return number << power
    return round(Fraction(number, 1 << -power)) if power > -60 else 0


@functools.lru_cache(maxsize=1024)
def gaussian_grid(
    sensitivity: float,
    epsilon: float,
    delta: float,
    size: int,
    sigma_of: Callable[[float, float, float], float],
) -> tuple[int, int]:
    """Return (exponent, sigma): the grid, and the standard deviation in its units.

    The discrete Gaussian differs from the rounded continuous one by at most grid^2 / (24 sigma^2)
    in total variation per coordinate, so with delta0 = delta - (1 + e^epsilon) size grid^2 / (24
    sigma^2) the continuous calibration at (epsilon, delta0) gives (epsilon, delta).
    """
    # sigma is proportional to the sensitivity, so all is done for one between 1/2 and 1.
    unit, power = math.frexp(sensitivity)
    sigma = sigma_of(unit, epsilon, delta)
    # log2 of the largest grid that costs at most 2^-20 of delta, rounded down with room to spare.
    spent = (math.log2(24) - 20 + math.log2(delta) - math.log2(size)) / 2 - _log2_1p_exp(epsilon) / 2
    exponent = min(
        math.floor(math.log2(sigma)) - 40,
        math.floor(math.log2(sigma) + spent - 2.0**-20),
        math.floor(math.log2(unit) - math.log2(size) / 2) - 22,
    )
    rounded = (unit + math.sqrt(size) * math.ldexp(1.0, max(exponent, -1000))) * (1 + 2.0**-50)
    enough = sigma_of(rounded, epsilon, delta * (1 - 2.0**-20) * (1 - 2.0**-50)) * (1 + 2.0**-50)
    return exponent + power, coarse(math.ceil(Fraction(enough) / Fraction(2) ** exponent))


def _log2_1p_exp(epsilon: float) -> float:
    return epsilon / math.log(2) + math.log2(1 + math.exp(-epsilon))


def gaussian(
    vector: Vector,
    sensitivity: float,
    epsilon: float,
    delta: float,
    whole: NDArray[np.bool_],
    sigma_of: Callable[[float, float, float], float],
) -> Vector:
    """Return the vector with discrete Gaussian noise, (epsilon, delta)-private at this L2 sensitivity.

    `sigma_of(sensitivity, epsilon, delta)` calibrates the continuous one. `whole` coordinates get
    the same fine noise and are rounded afterwards.
    """
    exponent, sigma = gaussian_grid(sensitivity, epsilon, delta, len(vector), sigma_of)
    noised = _noised(vector, exponent, discrete_gaussian(sigma, len(vector)))
    return np.where(whole, np.rint(noised), noised) if whole.any() else noised


# --- the exponential mechanism --------------------------------------------------------------


def choose(scores: Vector, sensitivity: float, epsilon: float, weights: Sequence[float]) -> int:
    """Draw index r with probability proportional to weights[r] exp(epsilon scores[r] / 2 sensitivity).

    Exactly: r is proposed with integer weights a little above the true ones, and kept with the
    exact quotient of the two, so nearly always at once, and however small a probability is, it is
    not zero.
    """
    rate = _exact(epsilon) / (2 * Fraction(sensitivity))
    best = float(scores.max())
    upper, power = _proposals(scores, best, rate, np.asarray(weights, dtype=np.float64))
    largest = Fraction(max(weights))
    ends = np.cumsum(upper)
    stream = _Stream()
    while True:
        r = int(np.searchsorted(ends, stream.below(int(ends[-1])), side="right"))
        y = rate * (Fraction(best) - Fraction(float(scores[r])))
        c = Fraction(weights[r]) / largest * 2**power / int(upper[r])
        if _below(0, 0, functools.partial(_scaled_bounds, y, c), stream):
            return r


def _proposals(scores: Vector, best: float, rate: Fraction, weights: Vector) -> tuple[Integers, int]:
    """Return integers above 2^power weights/max(weights) exp(-rate (best - scores)), and power.

    In logarithms, so that a prior that is at odds with the scores does not make all of them tiny:
    power is such that the largest is about 2^bits. What is computed in floating point here may be
    off by 2^-31 and is taken 2^-30 too large.
    """
    # Their sum is below 2^63: each is at most 2^bits (1 + 2^-29) + 1, and there are fewer than 2^(62-bits).
    bits = 62 - max(20, len(scores).bit_length())
    slope = float(min(rate, Fraction(10) ** 300))  # a smaller rate only makes the proposals larger
    with np.errstate(over="ignore"):
        gap = best - scores
        x = np.where(np.isinf(gap), (best / 2 - scores / 2) * (2 * slope), gap * slope)
    depth = np.minimum(x, 1e6) * math.log2(math.e) - (np.log2(weights) - math.log2(weights.max()))
    lift = max(0, math.floor(depth.min()))
    # Beyond 2^1000 below the largest the true weight is far below 1, whatever x is.
    upper = np.floor(np.exp2(bits - np.minimum(depth - lift, 1000.0) + 2.0**-30)).astype(np.int64) + 1
    return upper, bits + lift


def _scaled_bounds(y: Fraction, c: Fraction, precision: int) -> tuple[int, int]:
    """Return integers lo <= 2^precision c exp(-y) <= hi, for c exp(-y) <= 1."""
    more = math.ceil(c).bit_length() + 8
    low, high = _exp_bounds(y.numerator, y.denominator, precision + more)
    low, high = math.floor(low * c) >> more, -(-math.ceil(high * c) >> more)
    if low > 1 << precision:
        raise ArithmeticError("a proposal was less likely than what it proposes")
    return low, high
