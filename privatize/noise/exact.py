"""Exact draws from discrete distributions, in integers, from the operating system's randomness.

A decision compares a uniform number, whose bits are drawn as they are needed, with an irrational
probability. Floating point is only a filter with a proven error; what it cannot decide is decided
in integers (`below`). Nothing is buffered between calls, so nothing survives a fork. There is no
seed. Proofs: ``docs/noise.md``.
"""

import contextvars
import functools
import os
import struct
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

# Where random bytes come from. Tests replace it (privatize.testing); nothing else does.
source: contextvars.ContextVar[Callable[[int], bytes]] = contextvars.ContextVar("source", default=os.urandom)

# Up to this many draws pure Python is faster than numpy (tests/benchmarks/noise.py).
_FEW = 20
_32, _LOW = np.uint64(32), np.uint64(2**32 - 1)
# The vectorized paths take scales up to 2^55; larger ones are drawn in Python's integers. A draw is at most
# 63 * 2^55 + 2^55 = 2^61 in magnitude there (`_wide` handles the rest), so int64 never wraps.
_WIDEST = 55
# The filter's error. p = _exp(x) below is within 2^-48 of the true value (docs/noise.md).
_DOUBT = 2.0**-46


# --- randomness -----------------------------------------------------------------------------


def _words(size: int) -> Words:
    """Return uniform 64-bit words."""
    return np.frombuffer(source.get()(8 * size), dtype=np.uint64)


_EIGHT = struct.Struct("<8Q").unpack


class Stream:
    """Uniform 64-bit words one by one, for the duration of one call."""

    __slots__ = ("_ready",)

    def __init__(self) -> None:
        self._ready: list[int] = []

    def word(self) -> int:
        """Return the next word."""
        if not self._ready:
            self._ready.extend(_EIGHT(source.get()(64)))
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


def below(prefix: int, bits: int, bounds: Callable[[int], tuple[int, int]], stream: Stream) -> bool:
    """Tell whether a uniform number is below a constant c.

    The number's first `bits` bits are `prefix`; further ones are drawn as needed. ``bounds(p)``
    returns integers with lo <= 2^p c <= hi.
    """
    while (found := _decided(prefix, bits, bounds)) is None:
        prefix, bits = prefix << 64 | stream.word(), bits + 64
    return found


def _decided(prefix: int, bits: int, bounds: Callable[[int], tuple[int, int]]) -> bool | None:
    """Tell whether a number that begins with `prefix` is below a constant; None if further bits decide."""
    low, high = bounds(bits + 64)
    return True if (prefix + 1) << 64 <= low else False if prefix << 64 >= high else None


def exp_bounds(num: int, den: int, precision: int) -> tuple[int, int]:
    """Return integers lo <= 2^precision * exp(-num/den) <= hi, for num >= 0 and den > 0."""
    integer, part = divmod(num, den)
    if integer > precision:  # exp(-integer) < 2^-precision
        return 0, 1
    guard = precision + 3 * precision.bit_length() + 16
    low, high = _series(part, den, guard)
    base, power = _series(1, 1, guard), integer
    while power:  # exp(-integer) by squaring, rounding outward
        if power & 1:
            low, high = low * base[0] >> guard, -(-high * base[1] >> guard)
        base = base[0] ** 2 >> guard, -(-(base[1] ** 2) >> guard)
        power >>= 1
    drop = guard - precision
    return max(0, low >> drop), -(-high >> drop)


def _series(part: int, den: int, guard: int) -> tuple[int, int]:
    """Return integers that enclose 2^guard * exp(-part/den), for 0 <= part <= den.

    This is the alternating series in fixed point. Rounding down makes each term err by less than 2 units
    (the error of the one before is divided by i), and what is cut off is below 1 unit.
    """
    total, term, i = 0, 1 << guard, 0
    while term:
        total += -term if i & 1 else term
        i += 1
        term = term * part // (den * i)
    return total - 2 * i - 1, total + 2 * i + 1


def _below_exp(prefix: int, bits: int, num: int, den: int, stream: Stream) -> bool:
    """Tell whether the uniform number that begins with `prefix` is below exp(-num/den)."""
    return below(prefix, bits, functools.partial(exp_bounds, num, den), stream)


# --- the filter -----------------------------------------------------------------------------
#
# exp(-x) for 0 <= x < 64 as exp(-a) exp(-b/256) q(r), x = a + b/256 + r exactly, 0 <= r < 1/256, q the
# Taylor polynomial of degree 5. It uses only IEEE additions and products of correctly rounded constants, so
# its error is proven without trusting any library's exp().


@functools.cache
def _entry(num: int, den: int) -> float:
    """Return exp(-num/den), rounded to the nearest float."""
    low, _ = exp_bounds(num, den, 200)  # 200 bits, so that only the rounding to float matters
    return float(Fraction(low, 1 << 200))


@functools.cache
def _tables() -> tuple[Vector, Vector]:
    return np.array([_entry(a, 1) for a in range(64)]), np.array([_entry(b, 256) for b in range(256)])


def _exp(x: float) -> float:
    at = int(x * 256)
    r = x - at / 256
    q = 1 + r * (-1 + r * (0.5 + r * (-1 / 6 + r * (1 / 24 - r * (1 / 120)))))
    part = _entry(at & 255, 256) * q
    return _entry(at >> 8, 1) * part if at > 255 else part


def _exps(x: Vector) -> Vector:
    integers, parts = _tables()
    at = (x * 256).astype(np.int64)
    r = x - at * (1 / 256)
    q = r * (-1 / 120)
    q += 1 / 24
    for c in (-1 / 6, 0.5, -1.0, 1.0):
        q *= r
        q += c
    q *= parts[at & 255]
    if x.size and at.max() >= 256:
        q *= integers[at >> 8]
    return q


# --- discrete Laplace -----------------------------------------------------------------------
#
# X = V t + U is geometric with ratio exp(-1/t) if V is geometric with ratio 1/e and U in [0, t) has
# probability proportional to exp(-U/t); X >> shift then has ratio exp(-2^shift/t) (Canonne, Kamath &
# Steinke 2020). U is proposed uniformly and accepted with probability exp(-U/t); V >= j iff a
# uniform number is below exp(-j), and the same number is used for all j.

_STEPS = 43  # exp(-43) is just above 2^-63, the resolution of the 63 bits that V is read from


@functools.cache
def _laplace_cuts() -> tuple[list[int], Words]:
    cuts = [exp_bounds(j, 1, 63)[0] for j in range(_STEPS, 0, -1)]  # floor(2^63 exp(-j)), ascending
    return cuts, np.array(cuts, dtype=np.uint64)


def _geometric(prefix: int, stream: Stream) -> int:
    """Return V from 63 uniform bits, and more where these do not decide."""
    cuts, _ = _laplace_cuts()
    base = 0
    while True:
        v = _STEPS - bisect_right(cuts, prefix)
        # v cuts lie above the prefix. If it equals the next one, further bits decide.
        if v < _STEPS and cuts[_STEPS - 1 - v] == prefix and _below_exp(prefix, 63, v + 1, 1, stream):
            v += 1
        if v < _STEPS:
            return base + v
        # Beyond the last cut: geometric variables have no memory.
        base, prefix = base + _STEPS, stream.word() >> 1


def laplace_one(t: int, shift: int, stream: Stream) -> int:
    """Draw one integer as `discrete_laplace` does."""
    while True:
        u, decider = stream.below(t), stream.word() >> 11
        # A quotient of integers is correctly rounded, whatever their size.
        p, low = _exp(u / t), decider * 2.0**-53
        if low >= p + _DOUBT:
            continue
        if low + 2.0**-53 > p - _DOUBT and not _below_exp(decider, 53, u, t, stream):
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
        stream = Stream()
        return [laplace_one(t, shift, stream) for _ in range(size)]
    _, cuts = _laplace_cuts()

    def draw(missing: int) -> Any:
        u, _ = _accepted(int(missing * 1.6) + 16, t, None)  # 1 - 1/e of them are accepted
        words = _words(len(u))
        prefix = words >> np.uint64(1)
        at = np.searchsorted(cuts, prefix, side="right")
        v = _STEPS - at
        for i in np.flatnonzero((at == 0) | (cuts[at - 1] == prefix)).tolist():
            v[i] = _geometric(int(prefix[i]), Stream())
        return _with_sign(_wide(v, t) + u >> shift, words)

    return _many(draw, size)


def _many(draw: Callable[[int], Any], size: int) -> Integers:
    """Call a function that draws about as many numbers as are missing, until there are enough."""
    parts = [draw(size)[:size]]
    while (missing := size - sum(map(len, parts))) > 0:
        parts.append(draw(missing)[:missing])
    return np.concatenate(parts)


def _wide(multiple: Any, t: int) -> Any:
    """Return multiple * t, in Python's integers where int64 could wrap.

    Up to 63 * 2^55 + 2^55 = 2^61 it cannot wrap. Larger multiples have probability 2^-91 or less.
    """
    return multiple * t if multiple.max(initial=0) <= 63 else multiple.astype(object) * t


def _with_sign(x: Any, words: Words) -> Any:
    """Return x with a sign from the lowest bits; half of the zeros are dropped, since zero has one sign."""
    positive = (words & np.uint64(1)).astype(np.bool_)
    return np.where(positive, x, -x)[positive | (x != 0)]


def _accepted(size: int, t: int, k: Integers | None) -> tuple[Integers, Any]:
    """Propose uniform integers u below t, and accept them with probability exp(-u/t).

    With k the probability is exp(-x(2k+x)/2), x = u/t. Returns the accepted ones and where they were.
    """
    factor, zeros = _split(t)
    # Lemire's multiplication: unbiased once a few remainders are rejected. 2^32 * 2^24 does not wrap.
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
        keep[i] = _below_exp(int(decider[i]), known, num, den, Stream())
    where = np.flatnonzero(keep)
    return u[where].astype(np.int64), where


def _split(t: int) -> tuple[int, int]:
    """Return (factor, zeros) with t = factor * 2^zeros and an odd factor."""
    zeros = (t & -t).bit_length() - 1
    return t >> zeros, zeros


def _vectorizes(t: int, size: int) -> bool:
    """Tell whether the vectorized path can draw at this scale, and is faster."""
    return size > _FEW and t <= 1 << _WIDEST and _split(t)[0] < 1 << 24


def coarse(t: int) -> int:
    """Round a scale up to 23 significant bits, which `_vectorizes` needs: at most 2^-22 of it."""
    drop = max(0, t.bit_length() - 23)
    return -(-t >> drop) << drop


# --- discrete Gaussian ----------------------------------------------------------------------
#
# Karney (2016), Algorithm D, for mean 0 and an integer sigma: k with probability proportional to
# exp(-k^2/2), j uniform in [0, sigma), accepted with probability exp(-x(2k+x)/2) for x = j/sigma; then
# k sigma + j has probability proportional to exp(-(k sigma + j)^2 / (2 sigma^2)).

_MOST = 10  # P(k >= 10) < 2^-63


def _normal_bounds(k: int, precision: int) -> tuple[int, int]:
    """Return integers that enclose 2^precision P(K >= k), P(K = i) proportional to exp(-i^2/2)."""
    lows: list[int] = []
    highs: list[int] = []
    while len(highs) <= k or highs[-1] > 1:
        low, high = exp_bounds(len(lows) ** 2, 2, precision + 32)
        lows.append(low)
        highs.append(high)
    # What is cut off is at most 2^-(precision + 32) (the terms more than halve).
    above, everything = sum(highs[k:]) + 2, sum(highs) + 2
    return (sum(lows[k:]) << precision) // everything, -(-(above << precision) // sum(lows))


@functools.cache
def _normal_cuts() -> tuple[list[int], Words]:
    cuts = [_normal_bounds(k, 63)[0] for k in range(_MOST, 0, -1)]
    return cuts, np.array(cuts, dtype=np.uint64)


def _steps(prefix: int, stream: Stream) -> int:
    """Return k from 63 uniform bits, and more where these do not decide."""
    cuts, _ = _normal_cuts()
    k = _MOST - bisect_right(cuts, prefix)
    if prefix not in cuts:
        return k
    # One number decides about all k: draw its further bits once, then compare them all.
    bits, number = 63, prefix
    while True:
        k = 0
        while lower := _decided(number, bits, functools.partial(_normal_bounds, k + 1)):
            k += 1
        if lower is False:
            return k
        number, bits = number << 64 | stream.word(), bits + 64


def _gaussian_one(sigma: int, stream: Stream) -> int:
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
            keep = _below_exp(decider, 53, j * (2 * k * sigma + j), 2 * sigma * sigma, stream)
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
        stream = Stream()
        return [_gaussian_one(sigma, stream) for _ in range(size)]
    _, cuts = _normal_cuts()

    def draw(missing: int) -> Any:
        words = _words(int(missing * 1.42) + 16)  # about 0.71 of them are accepted
        prefix = words >> np.uint64(1)
        at = np.searchsorted(cuts, prefix, side="right")
        k = _MOST - at
        for i in np.flatnonzero(cuts[at - 1] == prefix).tolist():
            k[i] = _steps(int(prefix[i]), Stream())
        j, where = _accepted(len(words), sigma, k)
        return _with_sign(_wide(k[where], sigma) + j, words[where])

    return _many(draw, size)
