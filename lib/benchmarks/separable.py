"""Which scores on one test set are apart: how far a printed score may be off for the draw of its test set alone.

Errors are of systems that answer independently. On the same test set two systems err alike, which makes their
difference surer than is said here; answers of one document hang together, which makes it less sure.
"""

import math

SIGMAS = 1.96  # of a difference, for 95%


def error_of_share(share: float, of: int) -> float:
    """The standard error of an accuracy or a recall, from 0 to 1, of so many instances: of a binomial."""
    return math.sqrt(share * (1 - share) / of)


def error_of_f1(f1: float, gold: int) -> float:
    """The standard error of an F1, from 0 to 1, on a test set with so many to be found, where as many are predicted.

    By the delta method from the share of the true positives in all that is gold or predicted, a binomial.
    """
    return math.sqrt(f1 * (1 - f1) * (2 - f1) / (2 * gold))


def tie(scores: dict[str, float], errors: dict[str, float]) -> list[str]:
    """The tie group of the best: all whose distance from it is within SIGMAS errors of the difference, best first."""
    ordered = sorted(scores, key=scores.get, reverse=True)
    best = ordered[0]
    return [one for one in ordered
            if scores[best] - scores[one] <= SIGMAS * math.hypot(errors[best], errors[one])]  # fmt: skip
