"""Posterior sampling: a private draw from a tempered Bayesian posterior.

The paper leaves the posterior sampler as future work (section 4). Here it is the exponential
mechanism whose scores are log-likelihoods over a grid of parameters, with the prior as weights:
the parameter is drawn with probability proportional to prior * likelihood^(ε/2Δ), the posterior
itself where ε = 2Δ. What must be bounded is how far one record can move the log-likelihoods
against each other, and that is what calibration measures.
"""

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize import Exponential, privatize, samplers

RATES = np.linspace(0.5, 3.0, 51)  # candidate rates of an exponential distribution: 1 / mean waiting time
PRIOR = np.exp(-0.5 * (RATES - 1.5) ** 2)  # public beliefs about the rate


def main(quick: bool) -> None:
    """Compare the private draw with the posterior for several ε."""
    n = 200 if quick else 2000
    waiting = np.random.default_rng(1).exponential(1 / 1.2, n)  # private; the true rate is 1.2

    @privatize(
        mechanism=Exponential(responses=RATES.tolist(), prior=PRIOR.tolist()),
        epsilon=1,
        gamma=0.05,
        sampler=samplers.uniform(0, 5),  # public: nobody waits longer than five hours; longer is clipped
    )
    def rate(waiting: NDArray[np.float64]) -> Any:
        return len(waiting) * np.log(RATES) - RATES * waiting.sum()  # one log-likelihood for each rate

    scores = rate.__wrapped__(np.clip(waiting, 0, 5))
    posterior = PRIOR * np.exp(scores - scores.max())
    posterior /= posterior.sum()
    center = posterior @ RATES
    print(f"posterior of the rate: {center:.3f} ± {np.sqrt(posterior @ (RATES - center) ** 2):.3f}")
    for epsilon in (0.1, 1.0, 10.0):
        private = rate.replace(epsilon=epsilon)
        draws = [private(waiting) for _ in range(10 if quick else 50)]
        sensitivity = private.estimate(n).value
        power = epsilon / (2 * sensitivity)
        print(
            f"ε={epsilon:<4g} Δ̂={sensitivity:.3f}: likelihood to the power {power:.3g}, "
            f"draws {np.mean(draws):.3f} ± {np.std(draws):.3f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller run")
    main(parser.parse_args().quick)
