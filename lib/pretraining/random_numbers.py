"""Random numbers computed from their purpose: the same on any machine, in any order, in any process."""

from math import isqrt

import numpy as np

# What a sequence's random numbers are drawn for; each purpose has its own stream.
UNITS, RUNS, FATES, SEQUENCE, CUT, SHIFT, REST, REPEAT = range(8)
WEYL = np.uint64(0x9E3779B97F4A7C15)


def scramble(numbers: np.ndarray) -> np.ndarray:
    """Map 64-bit numbers one to one, without visible pattern (SplitMix64; Steele et al. 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def make_keys(*numbers: int | np.ndarray) -> np.ndarray:
    """Return a 64-bit key for each combination of non-negative numbers; arrays go together. Shape (keys,) or (1,)."""
    keys = np.zeros(1, np.uint64)
    for number in numbers:
        keys = scramble(keys * WEYL + np.atleast_1d(np.asarray(number)).astype(np.uint64) + np.uint64(1))
    return keys


def draw_numbers(keys: np.ndarray, stream: int, count: int) -> np.ndarray:
    """Return random 64-bit numbers (keys, count), different for each key and each stream."""
    seeds = make_keys(keys, stream)[:, None]
    return scramble(seeds + WEYL * np.arange(1, count + 1, dtype=np.uint64))


def to_share(numbers: np.ndarray) -> np.ndarray:
    """Convert 64-bit numbers to floats from 0 up to, not including, 1."""
    return (numbers >> np.uint64(11)) * 2.0**-53


def permute(numbers: np.ndarray, count: int, keys: np.ndarray) -> np.ndarray:
    """Permute the numbers below `count` by their keys: a one-to-one map, computed for each number by itself.

    A Feistel network over the two digits of a number in a base near the square root of `count`; results of `count` or
    more are put through again.
    """
    base = isqrt(count - 1) + 1
    other_base = -(-count // base)
    keys = np.broadcast_to(keys, numbers.shape)
    result = numbers.astype(np.uint64)
    too_large = np.ones(len(result), bool)
    while too_large.any():
        left, right = np.divmod(result[too_large], np.uint64(other_base))
        for turn in range(0, 4, 2):
            left = (left + make_keys(keys[too_large], turn, right)) % np.uint64(base)
            right = (right + make_keys(keys[too_large], turn + 1, left)) % np.uint64(other_base)
        result[too_large] = left * np.uint64(other_base) + right
        too_large = result >= count
    return result.astype(np.int64)
