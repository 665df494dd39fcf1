"""Step rules against the paper's scalar formulas, the conditions of the proofs, and the exact
evolution of second moments on small ridge problems, where a rule converges or it does not."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from adaspdc import steps

FloatArray = NDArray[np.float64]

UNEQUAL = np.array([0.3, 1.0, 2.5, 0.9, 4.0, 0.05])
COUNTEREXAMPLE = np.array([[1.0], [0.1]])  # ALGORITHMS: Theorem 1 fails on these rows
COUNTEREXAMPLE_LAM = 1e-4

positive = st.floats(1e-4, 1e4)
blocks = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        st.lists(positive, min_size=n, max_size=n).map(np.array),
        st.one_of(positive, st.lists(positive, min_size=n, max_size=n).map(np.array)),
        st.integers(1, n),
    )
)
lams = st.floats(1e-8, 1e2)


def spread(weights: FloatArray, total: int) -> FloatArray:
    """Probabilities with sum ``total``, each at most 1, roughly in proportion to ``weights``."""
    pi = np.array(weights, dtype=float)
    for _ in range(pi.size + 1):
        free = pi < 1.0
        if free.any():
            pi[free] *= (total - np.count_nonzero(~free)) / pi[free].sum()
        pi = np.clip(pi, 1e-9, 1.0)
    return pi


# ------------------------------------------------------------------------- the paper's formulas


@pytest.mark.parametrize("m", [1, 2, 6])
@pytest.mark.parametrize("gamma", [1.0, 4.0, 0.3])
def test_adaspdc_is_the_papers_to_the_letter(m: int, gamma: float) -> None:
    n, lam = UNEQUAL.size, 1e-3
    rule = steps.adaspdc(UNEQUAL, gamma, lam, m)
    for i in range(n):
        expected = 1 / (2 * UNEQUAL[i]) * math.sqrt(n * lam / (m * gamma))
        assert rule.sigma[i] == pytest.approx(expected, rel=1e-14)
    batches = np.array(list(itertools.combinations(range(n), m)), dtype=np.uint32)
    tau, theta = rule.primal(batches)
    assert tau.shape == theta.shape == (len(batches),)
    for t, batch in enumerate(batches):
        largest = max(UNEQUAL[i] for i in batch)
        expected = 1 / (2 * largest) * math.sqrt(m * gamma / (n * lam))
        assert tau[t] == pytest.approx(expected, rel=1e-14)
        expected = 1 - 1 / (n / m + largest * math.sqrt((n / m) / (lam * gamma)))
        assert theta[t] == pytest.approx(expected, rel=1e-14)
    assert rule.weight == 1 / m


@given(blocks, lams)
def test_unequal_gamma_is_the_equal_one_after_scaling(
    drawn: tuple[FloatArray, float | FloatArray, int], lam: float
) -> None:
    """y = u / sqrt(gamma) turns the problem into one with gamma 1 and blocks A / sqrt(gamma)."""
    norms, gamma, m = drawn
    root = np.sqrt(gamma)
    batches = np.arange(norms.size)[:, np.newaxis]
    for rule in (steps.adaspdc, steps.spdc):
        direct, scaled = rule(norms, gamma, lam, m), rule(norms / root, 1.0, lam, m)
        np.testing.assert_allclose(direct.sigma, scaled.sigma / gamma, rtol=1e-13)
        np.testing.assert_allclose(direct.primal(batches), scaled.primal(batches), rtol=1e-13)


@pytest.mark.parametrize("m", [1, 2, 6])
def test_equal_norms_reduce_adaspdc_to_spdc(m: int) -> None:
    norms = np.full(6, 1.7)
    adaptive, constant = steps.adaspdc(norms, 4.0, 1e-3, m), steps.spdc(norms, 4.0, 1e-3, m)
    batches = np.arange(6).reshape(-1, m)
    np.testing.assert_allclose(adaptive.sigma, constant.sigma, rtol=1e-14)
    np.testing.assert_allclose(adaptive.primal(batches), constant.primal(batches), rtol=1e-14)
    assert adaptive.weight == constant.weight


def test_spdc_nonuniform_is_zhang_and_xiaos() -> None:
    n, lam, gamma, alpha = UNEQUAL.size, 1e-3, 4.0, 0.4
    rule, p = steps.spdc_nonuniform(UNEQUAL, gamma, lam, alpha=alpha)
    mean = UNEQUAL.mean()
    np.testing.assert_allclose(p, (1 - alpha) / n + alpha * UNEQUAL / UNEQUAL.sum(), rtol=1e-14)
    assert rule.tau == pytest.approx(alpha / (2 * mean) * math.sqrt(gamma / (n * lam)))
    sigma = alpha / (2 * mean) * math.sqrt(n * lam / gamma)
    np.testing.assert_allclose(rule.sigma, sigma / (p * n), rtol=1e-14)
    passes = n / (1 - alpha) + mean / alpha * math.sqrt(n / (lam * gamma))
    assert rule.theta == pytest.approx(1 - 1 / passes, rel=1e-14)
    np.testing.assert_allclose(rule.weight, 1 / (n * p), rtol=1e-14)


def test_other_rules_are_their_formulas() -> None:
    n, lam, gamma = UNEQUAL.size, 1e-3, np.array([1.0, 4.0, 1.0, 2.0, 1.0, 0.5])
    np.testing.assert_allclose(steps.sdca(UNEQUAL, lam, 2).sigma, n * lam / (2 * UNEQUAL**2))
    smoothness = max(UNEQUAL**2 / gamma) + lam
    assert steps.sag(UNEQUAL, gamma, lam).tau == pytest.approx(1 / (16 * smoothness))
    assert steps.saga(UNEQUAL, gamma, lam).tau == pytest.approx(1 / (3 * smoothness))
    assert steps.saga(UNEQUAL, gamma, lam).smoothness == pytest.approx(smoothness)
    rule = steps.pdhg(3.0, gamma, lam, n)
    mu = 2 * math.sqrt(lam * n) / 3.0
    assert rule.tau == pytest.approx(mu / (2 * lam))
    np.testing.assert_allclose(rule.sigma, mu / (2 * gamma))
    assert rule.theta == pytest.approx(1 / (1 + mu))
    assert rule.weight == 1 / n


def test_constant_rules_give_one_step_per_batch() -> None:
    rule = steps.spdc(UNEQUAL, 1.0, 1e-3, 2)
    tau, theta = rule.primal(np.zeros((5, 2), dtype=np.uint32))
    np.testing.assert_array_equal(tau, np.full(5, rule.tau))
    np.testing.assert_array_equal(theta, np.full(5, rule.theta))
    assert steps.adaspdc(UNEQUAL, 1.0, 1e-3).primal(np.zeros((0, 1), dtype=int))[0].size == 0


# ------------------------------------------------------------------- the conditions of the proofs


@given(blocks, lams, st.floats(0.05, 0.95))
def test_spdc_rules_satisfy_their_proof(
    drawn: tuple[FloatArray, float | FloatArray, int], lam: float, alpha: float
) -> None:
    norms, gamma, m = drawn
    assert steps.is_valid_spdc(steps.spdc(norms, gamma, lam, m), norms, gamma, lam, m)
    rule, inclusion = steps.spdc_nonuniform(norms, gamma, lam, m, alpha)
    assert inclusion.sum() == pytest.approx(m, rel=1e-9)
    assert inclusion.max() <= 1.0
    assert steps.is_valid_spdc(rule, norms, gamma, lam, m)


@given(blocks, lams, st.data(), st.floats(1e-3, 1e3))
def test_spdhg_satisfies_its_proof_for_any_sampling(
    drawn: tuple[FloatArray, float | FloatArray, int], lam: float, data: st.DataObject, beta: float
) -> None:
    eso, gamma, m = drawn
    weights = data.draw(st.lists(st.floats(1e-3, 1.0), min_size=eso.size, max_size=eso.size))
    inclusion = spread(np.array(weights), m)
    rule = steps.spdhg(eso, gamma, lam, inclusion, beta)
    assert steps.is_valid_spdhg(rule, eso, gamma, lam, inclusion)
    np.testing.assert_allclose(rule.weight, 1 / (eso.size * inclusion))


@given(blocks, lams, st.floats(1e-3, 1e3))
def test_spdhg_theta_is_the_smallest_for_its_tau(
    drawn: tuple[FloatArray, float | FloatArray, int], lam: float, beta: float
) -> None:
    """With any smaller theta, (A) fails, or (B) does although sigma goes to the limit of (C)."""
    eso, gamma, m = drawn
    n = eso.size
    inclusion = spread(np.sqrt(eso), m)
    rule = steps.spdhg(eso, gamma, lam, inclusion, beta)
    for factor in (1 - 1e-6, 0.5, 1e-3):
        theta = factor * rule.theta
        sigma = n * inclusion / (theta * rule.tau * eso)
        smaller = steps.ConstantSteps(sigma, rule.tau, theta, rule.weight)
        assert not steps.is_valid_spdhg(smaller, eso, gamma, lam, inclusion)


@given(blocks, lams, st.floats(0.01, 0.99).flatmap(lambda x: st.sampled_from([x, 1 / x])))
def test_spdhg_balance_one_is_best(
    drawn: tuple[FloatArray, float | FloatArray, int], lam: float, beta: float
) -> None:
    eso, gamma, m = drawn
    inclusion = spread(1 / eso, m)
    neutral = steps.spdhg(eso, gamma, lam, inclusion)
    other = steps.spdhg(eso, gamma, lam, inclusion, beta)
    assert other.tau == pytest.approx(neutral.tau / beta)
    assert other.theta >= neutral.theta * (1 - 1e-12)


@given(blocks, lams)
def test_spdhg_importance_is_the_closed_form(
    drawn: tuple[FloatArray, float | FloatArray, int], lam: float
) -> None:
    norms, gamma, _ = drawn
    n = norms.size
    eso = steps.fixed_size_eso(norms)
    np.testing.assert_allclose(eso, norms**2)
    p = steps.spdhg_probabilities(eso, gamma, lam)
    kappa = np.sqrt(1 + norms**2 / (n * lam * gamma))
    total = (1 + kappa).sum()
    np.testing.assert_allclose(p, (1 + kappa) / total, rtol=1e-12)
    rule = steps.spdhg(eso, gamma, lam, p)
    kappa_minus_one = norms**2 / (n * lam * gamma) / (1 + kappa)
    rest = kappa_minus_one.sum() + 2 * (n - 1)  # S - 2; where n = 1 it may be tiny
    np.testing.assert_allclose(rule.sigma, 1 / (kappa_minus_one * gamma), rtol=1e-7)
    assert rule.tau == pytest.approx(1 / (rest * lam), rel=1e-7)
    assert rule.theta == pytest.approx(rest / total, rel=1e-7)


def test_spdhg_batches_follow_the_closed_form_without_caps() -> None:
    norms, lam, m = np.array([1.0, 1.2, 0.9, 1.1, 0.8]), 1e-3, 2
    eso = steps.fixed_size_eso(norms, m)
    inclusion = steps.spdhg_probabilities(eso, 1.0, lam, m)
    kappa = np.sqrt(1 + m * norms**2 / (5 * lam))
    total = (1 + kappa).sum()
    rule = steps.spdhg(eso, 1.0, lam, inclusion)
    assert rule.theta == pytest.approx(1 - 2 * m / total)
    assert rule.tau == pytest.approx(1 / ((total / m - 2) * lam))
    np.testing.assert_allclose(rule.sigma, 1 / (kappa - 1))


def test_spdhg_takes_one_number_for_uniform_inclusion() -> None:
    eso = steps.fixed_size_eso(UNEQUAL, 2)
    scalar = steps.spdhg(eso, 4.0, 1e-3, 2 / 6, 3.0)
    vector = steps.spdhg(eso, np.full(6, 4.0), 1e-3, np.full(6, 2 / 6), 3.0)
    np.testing.assert_allclose(scalar.sigma, vector.sigma, rtol=1e-14)
    assert (scalar.tau, scalar.theta) == (vector.tau, vector.theta)
    assert scalar.weight == 0.5


@given(blocks, lams, st.floats(0.0, 1.0))
def test_probabilities_are_filled_up_to_one(
    drawn: tuple[FloatArray, float | FloatArray, int], lam: float, share: float
) -> None:
    eso, gamma, m = drawn
    plain = steps.spdhg_probabilities(eso, gamma, lam, m)
    assert plain.sum() == pytest.approx(m, rel=1e-9)
    assert plain.max() <= 1.0
    assert plain.min() > 0.0
    weights = 1 + np.sqrt(1 + eso / (eso.size * lam * gamma))
    factor = plain / weights
    free = plain < 1.0 - 1e-9
    if free.any():  # in proportion below the cap, and capped only where proportion exceeds 1
        np.testing.assert_allclose(factor[free], factor[free][0], rtol=1e-9)
        assert (weights[~free] * factor[free][0] >= 1.0 - 1e-9).all()
    mixed = steps.spdhg_probabilities(eso, gamma, lam, m, uniform_share=share)
    np.testing.assert_allclose(mixed, (1 - share) * plain + share * m / eso.size, rtol=1e-12)


def test_caps_bind_one_after_the_other() -> None:
    eso = np.array([1e6, 1e4, 1.0, 1.0]) ** 2
    inclusion = steps.spdhg_probabilities(eso, 1.0, 1e-3, 3)
    np.testing.assert_allclose(inclusion, [1, 1, 0.5, 0.5], rtol=1e-12)


def test_fixed_size_constants_hold_for_every_batch() -> None:
    rng = np.random.default_rng(0)
    blocks_ = rng.normal(size=(5, 3))
    eso = steps.fixed_size_eso(np.linalg.norm(blocks_, axis=1), 2)
    for h in rng.normal(size=(50, 5)):
        subsets = itertools.combinations(range(5), 2)
        left = np.mean([np.sum((h[list(s)] @ blocks_[list(s)]) ** 2) for s in subsets])
        assert left <= (2 / 5 * eso * h**2).sum()


# ------------------------------------------------------ exact second moments on ridge problems


def dual_first(
    rows: FloatArray, lam: float, rule: steps.StepSizes, batch: tuple[int, ...]
) -> FloatArray:
    """One iteration of SPDC's order as a matrix on the error (x, x_bar, y); squared loss."""
    n, d = rows.shape
    (tau,), (theta,) = rule.primal(np.array([batch]))
    weight = np.broadcast_to(rule.weight, n)
    x, bar, y = np.split(np.eye(2 * d + n), [d, 2 * d])
    r, new_y = rows.T @ y / n, y.copy()
    for i in batch:
        new_y[i] = (y[i] + rule.sigma[i] * (rows[i] @ bar)) / (1 + rule.sigma[i])
    change = sum(weight[i] * np.outer(rows[i], new_y[i] - y[i]) for i in batch)
    new_x = (x - tau * (r + change)) / (1 + lam * tau)
    return np.vstack([new_x, new_x + theta * (new_x - x), new_y])


def primal_first(
    rows: FloatArray, lam: float, rule: steps.StepSizes, batch: tuple[int, ...]
) -> FloatArray:
    """One iteration of SPDHG's order as a matrix on the error (x, q, y); squared loss."""
    n, d = rows.shape
    (tau,), (theta,) = rule.primal(np.array([batch]))
    weight = np.broadcast_to(rule.weight, n)
    x, q, y = np.split(np.eye(2 * d + n), [d, 2 * d])
    new_x = (x - tau * (rows.T @ y / n + q)) / (1 + lam * tau)
    new_y, new_q = y.copy(), np.zeros_like(q)
    for i in batch:
        new_y[i] = (y[i] + rule.sigma[i] * (rows[i] @ new_x)) / (1 + rule.sigma[i])
        new_q += theta * weight[i] * np.outer(rows[i], new_y[i] - y[i])
    return np.vstack([new_x, new_q, new_y])


Order = Callable[[FloatArray, float, steps.StepSizes, tuple[int, ...]], FloatArray]


def mean_square_factor(
    order: Order,
    rows: FloatArray,
    lam: float,
    rule: steps.StepSizes,
    law: dict[tuple[int, ...], float],
) -> float:
    """Spectral radius of E -> E[M E M'], the factor of the mean square error per iteration."""
    operator = sum(
        chance * np.kron(matrix, matrix)
        for batch, chance in law.items()
        for matrix in [order(rows, lam, rule, batch)]
    )
    return float(np.abs(np.linalg.eigvals(operator)).max())


def subsets_law(n: int, m: int) -> dict[tuple[int, ...], float]:
    subsets = list(itertools.combinations(range(n), m))
    return dict.fromkeys(subsets, 1 / len(subsets))


def singles_law(p: FloatArray) -> dict[tuple[int, ...], float]:
    return {(i,): float(chance) for i, chance in enumerate(p)}


def test_adaspdc_diverges_on_the_counterexample() -> None:
    rule = steps.adaspdc(COUNTEREXAMPLE[:, 0], 1.0, COUNTEREXAMPLE_LAM)
    factor = mean_square_factor(
        dual_first, COUNTEREXAMPLE, COUNTEREXAMPLE_LAM, rule, subsets_law(2, 1)
    )
    assert factor == pytest.approx(1.264, abs=5e-4)


def test_provable_rules_contract_on_the_counterexample() -> None:
    rows, lam = COUNTEREXAMPLE, COUNTEREXAMPLE_LAM
    constant = steps.spdc(rows[:, 0], 1.0, lam)
    assert mean_square_factor(dual_first, rows, lam, constant, subsets_law(2, 1)) <= constant.theta
    weighted, p = steps.spdc_nonuniform(rows[:, 0], 1.0, lam)
    assert mean_square_factor(dual_first, rows, lam, weighted, singles_law(p)) <= weighted.theta
    eso = steps.fixed_size_eso(rows[:, 0])
    for p in (steps.spdhg_probabilities(eso, 1.0, lam), np.full(2, 0.5)):
        for balance in (0.1, 1.0, 10.0):
            rule = steps.spdhg(eso, 1.0, lam, p, balance)
            assert mean_square_factor(primal_first, rows, lam, rule, singles_law(p)) <= rule.theta


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("m", [1, 2, 3])
def test_provable_rules_contract_by_theta_on_random_ridge(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(3, 2)) * rng.lognormal(0, 2, size=(3, 1))
    lam = 10.0 ** rng.uniform(-6, 0)
    norms = np.linalg.norm(rows, axis=1)
    law = subsets_law(3, m)
    constant = steps.spdc(norms, 1.0, lam, m)
    slack = 1 + 1e-8  # theta is nearly 1 here, and eigenvalues are rounded
    assert mean_square_factor(dual_first, rows, lam, constant, law) <= constant.theta * slack
    eso = steps.fixed_size_eso(norms, m)
    balance = 10.0 ** rng.uniform(-1, 1)
    rule = steps.spdhg(eso, 1.0, lam, m / 3, balance)
    assert mean_square_factor(primal_first, rows, lam, rule, law) <= rule.theta * slack
    if m == 1:
        p = steps.spdhg_probabilities(eso, 1.0, lam)
        rule = steps.spdhg(eso, 1.0, lam, p, balance)
        assert (
            mean_square_factor(primal_first, rows, lam, rule, singles_law(p)) <= rule.theta * slack
        )
        rule, p = steps.spdc_nonuniform(norms, 1.0, lam)
        assert mean_square_factor(dual_first, rows, lam, rule, singles_law(p)) <= rule.theta * slack


# ---------------------------------------------------------------------- extremes and bad arguments


@given(
    st.lists(st.integers(-150, 150), min_size=1, max_size=5),
    st.integers(-12, 3),
    st.booleans(),
)
def test_extreme_norms_give_right_steps_or_a_refusal(
    exponents: list[int], lam_exponent: int, full: bool
) -> None:
    norms, lam = 10.0 ** np.array(exponents), 10.0**lam_exponent
    n = norms.size
    m = n if full else 1

    def spdhg() -> bool:
        eso = steps.fixed_size_eso(norms, m)
        p = steps.spdhg_probabilities(eso, 4.0, lam, m)
        return steps.is_valid_spdhg(steps.spdhg(eso, 4.0, lam, p), eso, 4.0, lam, p)

    def adaptive() -> bool:
        rule = steps.adaspdc(norms, 4.0, lam, m)
        tau, _ = rule.primal(np.arange(n).reshape(-1, m))
        expected = [math.sqrt(m * 4.0 / (n * lam)) / 2 / max(b) for b in norms.reshape(-1, m)]
        return np.allclose(tau, expected, rtol=1e-13, atol=0.0)

    def weighted() -> bool:
        rule, _ = steps.spdc_nonuniform(norms, 4.0, lam, m)
        return steps.is_valid_spdc(rule, norms, 4.0, lam, m)

    def constant() -> bool:
        return steps.is_valid_spdc(steps.spdc(norms, 4.0, lam, m), norms, 4.0, lam, m)

    def gradient() -> bool:
        return 0.0 < steps.saga(norms, 4.0, lam).tau < math.inf

    def dual() -> bool:
        sigma = steps.sdca(norms, lam, m).sigma
        return np.allclose(sigma * norms * norms, n * lam / m, rtol=1e-12, atol=0.0)

    for attempt in (spdhg, adaptive, weighted, constant, gradient, dual):
        try:
            right = attempt()
        except ValueError as error:
            right = "rescale the data" in str(error)
        assert right


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e100, 1e150])
def test_extreme_but_equal_scales_are_served(scale: float) -> None:
    norms = UNEQUAL * scale
    assert (steps.adaspdc(norms, 1.0, 1e-3).sigma > 0).all()
    assert (steps.spdc(norms, 1.0, 1e-3).sigma > 0).all()
    assert (steps.spdc_nonuniform(norms, 1.0, 1e-3)[0].sigma > 0).all()
    eso = steps.fixed_size_eso(norms)
    p = steps.spdhg_probabilities(eso, 1.0, 1e-3)
    assert steps.is_valid_spdhg(steps.spdhg(eso, 1.0, 1e-3, p), eso, 1.0, 1e-3, p)


def test_a_single_block_with_almost_no_coupling() -> None:
    """theta is tiny here; computed as 1 - 1/(...) it would round to zero."""
    rule = steps.adaspdc([1e-30], 1.0, 1.0)
    assert rule.primal(np.array([[0]]))[1][0] == pytest.approx(1e-30)
    assert steps.spdc([1e-30], 1.0, 1.0).theta == pytest.approx(1e-30)
    assert steps.spdhg([1e-60], 1.0, 1.0, 1.0).theta == pytest.approx(0.25e-60)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: steps.adaspdc([1.0, 0.0], 1.0, 0.1), r"norms\[1\]=0.0"),
        (lambda: steps.spdc([1.0, math.nan], 1.0, 0.1), r"norms\[1\]=nan"),
        (lambda: steps.adaspdc([[1.0]], 1.0, 0.1), "shape"),
        (lambda: steps.adaspdc([], 1.0, 0.1), "non-empty"),
        (lambda: steps.adaspdc([1.0], 0.0, 0.1), "gamma.*0.0.*smooth"),
        (lambda: steps.adaspdc([1.0], [1.0, 1.0], 0.1), "gamma"),
        (lambda: steps.spdc([1.0], 1.0, 0.0), "lam=0.0"),
        (lambda: steps.spdc([1.0], 1.0, 0.1, 2), r"batch_size=2 must lie in 1\.\.1"),
        (lambda: steps.spdc_nonuniform([1.0], 1.0, 0.1, 1, 1.0), "alpha=1.0"),
        (lambda: steps.spdhg([1.0], 1.0, 0.1, 1.5), "inclusion"),
        (lambda: steps.spdhg([1.0, 1.0], 1.0, 0.1, [0.0, 1.0]), "inclusion"),
        (lambda: steps.spdhg([1.0], 1.0, 0.1, 1.0, 0.0), "balance=0.0"),
        (lambda: steps.spdhg_probabilities([1.0], 1.0, 0.1, 1, 2.0), "uniform_share=2.0"),
        (lambda: steps.pdhg(math.inf, 1.0, 0.1, 3), "operator_norm=inf"),
        (lambda: steps.sdca([1e200], 0.1), "rescale the data"),
    ],
)
def test_bad_arguments_are_named(act: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        act()
