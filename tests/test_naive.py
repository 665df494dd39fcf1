"""The oracles are checked against laws and against solvers that share nothing with them."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

import naive

ONE_OUTPUT = {
    "squared": {},
    "smooth_hinge": {"gamma": 0.7},
    "logistic": {},
    "squared_hinge": {},
    "huber": {"delta": 0.6},
    "smooth_pinball": {"quantile": 0.3, "gamma": 0.8},
    "smooth_epsilon_insensitive": {"epsilon": 0.2, "gamma": 0.9},
    "squared_epsilon_insensitive": {"epsilon": 0.2},
}
INSENSITIVE = ("smooth_epsilon_insensitive", "squared_epsilon_insensitive")
COUPLED = {"multinomial": {}, "smooth_crammer_singer": {"gamma": 0.8}}
BINARY = ("smooth_hinge", "logistic", "squared_hinge")
UNBOUNDED = ("squared", "squared_hinge", "squared_epsilon_insensitive")
REGULARIZERS = [
    naive.Regularizer("l2"),
    naive.Regularizer("elastic_net", {"l1": 0.1}),
    naive.Regularizer("group", {"weight": [0.05, 0.2], "groups": np.array([4, 1, 4])}),
    naive.Regularizer("nonnegative"),
    naive.Regularizer("box", {"low": -0.1, "high": np.array([0.05, 0.3, np.inf])}),
]
N, D, LAM = 6, 3, 0.1


def small_problem(loss="logistic", g=None, weights=None, lam=LAM, seed=0):
    """Rows of unequal norms; three classes or outputs where the loss takes several."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * rng.uniform(0.3, 1.5, (N, 1))
    if loss in COUPLED:
        targets = np.arange(N) % 3
        return naive.erm(X, targets, loss, lam, g, weights, n_outputs=3, **COUPLED[loss])
    if loss == "multi_output":
        targets = rng.standard_normal((N, 2))
        return naive.erm(X, targets, "squared", lam, g, weights, n_outputs=2)
    targets = np.where(np.arange(N) % 2, 1.0, -1.0) if loss in BINARY else rng.standard_normal(N)
    return naive.erm(X, targets, loss, lam, g, weights, **ONE_OUTPUT[loss])


def uniform_batches(iterations, m=1, seed=1):
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(N, m, replace=False) for _ in range(iterations)])


def weighted_batches(probabilities, iterations, seed=1):
    return np.random.default_rng(seed).choice(N, (iterations, 1), p=probabilities)


# ------------------------------------------------------------------------------------------ losses


def loss_cases():
    """One loss of each kind with each sort of target, and the length of its block."""
    for name, params in ONE_OUTPUT.items():
        for target in (-1.0, 1.0) if name in BINARY else (-0.4, 1.3):
            yield naive.Loss(name, target, params), 1
    yield naive.Loss("squared", np.array([0.5, -2.0]), {}), 2
    for name, params in COUPLED.items():
        yield naive.Loss(name, 1, params), 4


LOSS_CASES = list(loss_cases())
LOSS_IDS = [f"{loss.name}-{loss.target}" for loss, _ in LOSS_CASES]


@pytest.mark.parametrize(("loss", "q"), LOSS_CASES, ids=LOSS_IDS)
def test_value_conjugate_and_derivative_satisfy_fenchel_young(loss, q):
    rng = np.random.default_rng(0)
    points = rng.standard_normal((30, q)) * 10.0 ** rng.uniform(-2, 1, (30, 1))
    slopes = [naive.loss_derivative(loss, z) for z in points]
    for z, slope in zip(points, slopes, strict=True):
        equality = naive.loss_value(loss, z) + naive.loss_conjugate(loss, slope) - z @ slope
        assert abs(equality) <= 1e-13 * (1 + z @ z)
        for other in slopes:
            excess = naive.loss_value(loss, z) + naive.loss_conjugate(loss, other) - z @ other
            strong = naive.strong_convexity(loss) / 2 * np.sum((other - slope) ** 2)
            assert excess >= strong - 1e-12 * (1 + z @ z)


@pytest.mark.parametrize(("loss", "q"), LOSS_CASES, ids=LOSS_IDS)
def test_derivative_is_the_slope_of_the_value(loss, q):
    rng = np.random.default_rng(1)
    for z in rng.standard_normal((10, q)) * 2:
        for direction in np.eye(q):
            ahead = naive.loss_value(loss, z + 1e-6 * direction)
            behind = naive.loss_value(loss, z - 1e-6 * direction)
            slope = naive.loss_derivative(loss, z) @ direction
            assert (ahead - behind) / 2e-6 == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize(("loss", "q"), LOSS_CASES, ids=LOSS_IDS)
@pytest.mark.parametrize("sigma", [1e-12, 1e-4, 0.3, 1.0, 20.0, 1e5, 1e12])
def test_prox_satisfies_the_moreau_identity(loss, q, sigma):
    """The prox is the u with u = phi'(z + (y - u) / sigma), for any phi."""
    rng = np.random.default_rng(2)
    for scale in (0.1, 1.0, 30.0):
        y = naive.loss_derivative(loss, rng.standard_normal(q))
        z = scale * rng.standard_normal(q)
        u = naive.loss_prox(loss, z, y, sigma)
        assert math.isfinite(naive.loss_conjugate(loss, u))
        if sigma >= 1e-4:
            again = naive.loss_derivative(loss, z + (y - u) / sigma)
            np.testing.assert_allclose(u, again, rtol=0, atol=1e-15 * (4 + scale) * (1 + 1 / sigma))
        else:  # a step so short that it is the subgradient step to first order
            assert np.max(abs(u - y)) <= 100 * sigma * (1 + scale)


@pytest.mark.parametrize(("loss", "q"), LOSS_CASES, ids=LOSS_IDS)
def test_prox_is_no_worse_than_a_generic_minimiser(loss, q):
    rng = np.random.default_rng(3)
    for sigma in (0.05, 1.0, 8.0):
        z, y = 2 * rng.standard_normal(q), naive.loss_derivative(loss, rng.standard_normal(q))

        def objective(u, z=z, y=y, sigma=sigma):
            proximity = np.sum((u - y) ** 2) / (2 * sigma)
            return naive.loss_conjugate(loss, u) - z @ u + proximity

        best = objective(naive.loss_prox(loss, z, y, sigma))
        for other in rng.standard_normal((200, q)) * 3:
            assert best <= objective(naive.loss_derivative(loss, other)) + 1e-13


@pytest.mark.parametrize(("loss", "q"), LOSS_CASES, ids=LOSS_IDS)
def test_infinite_step_gives_the_derivative(loss, q):
    z, y = np.linspace(-1, 2, q), naive.loss_derivative(loss, np.zeros(q))
    far = naive.loss_prox(loss, z, y, 1e13)
    np.testing.assert_allclose(naive.loss_prox(loss, z, y, math.inf), far, atol=1e-12)


@pytest.mark.parametrize("target", [-1.0, 1.0])
@pytest.mark.parametrize("sigma", [1e-300, 1e-8, 1.0, 1e8, 1e300])
@pytest.mark.parametrize("z", [-1e150, -700.0, 0.0, 40.0, 1e150])
def test_scalar_prox_survives_extreme_arguments(target, sigma, z):
    for name, params in ONE_OUTPUT.items():
        loss = naive.Loss(name, target, params)
        y = np.array([-target * 0.25])
        u = naive.loss_prox(loss, np.array([z]), y, sigma)
        assert np.isfinite(u).all() or name in UNBOUNDED
        assert not np.isnan(u).any()
        assert not math.isnan(naive.loss_conjugate(loss, u))


# ------------------------------------------------------------------------------------ regularisers


@pytest.mark.parametrize("g", REGULARIZERS, ids=lambda g: g.name)
def test_regularizer_satisfies_fenchel_young_and_prox_optimality(g):
    problem = small_problem("squared", g)
    rng = np.random.default_rng(4)
    for s in rng.standard_normal((40, D)) * 10.0 ** rng.uniform(-2, 0.5, (40, 1)):
        x = naive.g_conjugate_gradient(problem, s)
        total = naive.g_value(problem, x) + naive.g_conjugate(problem, s)
        assert total == pytest.approx(s @ x, abs=1e-12)
        for tau in (1e-3, 1.0, 50.0):
            p = naive.g_prox(problem, s, tau)  # (s - p)/tau is a subgradient of g at p
            slope = (s - p) / tau
            total = naive.g_value(problem, p) + naive.g_conjugate(problem, slope)
            assert total == pytest.approx(slope @ p, abs=1e-12)


def test_prox_of_g_for_a_huge_step_is_the_conjugate_gradient():
    s = np.array([-0.3, 0.08, 0.7])
    for g in REGULARIZERS:
        problem = small_problem("squared", g)
        far = naive.g_prox(problem, 1e12 * s, 1e12)
        np.testing.assert_allclose(naive.g_conjugate_gradient(problem, s), far, atol=1e-10)


# ------------------------------------------------------------------------------ problem, reference


ALL_LOSSES = [*ONE_OUTPUT, "multi_output", *COUPLED]


def test_outputs_are_laid_out_row_major():
    """x is (d, K) row-major, so that the predictions are the rows of X @ x."""
    rng = np.random.default_rng(5)
    X, W = rng.standard_normal((4, D)), rng.standard_normal((D, 2))
    problem = naive.erm(X, np.zeros((4, 2)), "squared", LAM, n_outputs=2)
    z = np.array([block @ W.ravel() for block in problem.blocks])
    np.testing.assert_allclose(z, X @ W)
    np.testing.assert_allclose(problem.norms, np.linalg.norm(X, axis=1))


def test_bounds_and_groups_of_a_feature_cover_its_outputs():
    group = small_problem("multi_output", REGULARIZERS[2]).g
    np.testing.assert_array_equal(group.params["groups"], [4, 4, 1, 1, 4, 4])
    np.testing.assert_array_equal(group.params["weight"], [0.05, 0.2])
    box = small_problem("multi_output", REGULARIZERS[4]).g
    np.testing.assert_array_equal(box.params["high"], [0.05, 0.05, 0.3, 0.3, np.inf, np.inf])


@pytest.mark.parametrize("loss", ALL_LOSSES)
@pytest.mark.parametrize("g", REGULARIZERS, ids=lambda g: g.name)
def test_weak_duality_everywhere_and_strong_duality_at_the_reference(loss, g):
    problem = small_problem(loss, g, weights=[1, 2, 0.5, 3, 1, 1])
    solution = naive.solve_reference(problem)
    best = naive.primal(problem, solution.x)
    assert best == pytest.approx(naive.dual(problem, solution.y), abs=1e-11)
    rng = np.random.default_rng(6)
    for _ in range(5):
        u, v = rng.standard_normal((2, problem.d))
        feasible = naive.g_conjugate_gradient(problem, u)
        y = naive.gradient_point(problem, v)
        assert naive.dual(problem, y) <= best + 1e-12
        assert naive.primal(problem, feasible) >= best - 1e-12


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_integer_weights_are_duplicated_rows(loss):
    counts = np.array([1, 3, 2, 1, 2, 1])
    weighted = small_problem(loss, REGULARIZERS[1], weights=counts)
    rows = np.repeat(np.arange(N), counts)
    duplicated = naive.Problem(
        [weighted.blocks[i] for i in rows],
        [weighted.losses[i] for i in rows],
        LAM,
        weighted.g,
    )
    one, other = naive.solve_reference(weighted), naive.solve_reference(duplicated)
    np.testing.assert_allclose(one.x, other.x, atol=1e-11)
    copies = [y_i for i, y_i in enumerate(weighted.split(one.y)) for _ in range(counts[i])]
    np.testing.assert_allclose(np.concatenate(copies), other.y, atol=1e-10)
    np.testing.assert_allclose(one.r, other.r, atol=1e-11)


def test_ridge_formula_agrees_with_the_iterative_reference():
    problem = small_problem("squared", weights=[1, 2, 0.5, 3, 1, 1])
    unbounded = naive.Regularizer("box", {"low": -np.inf, "high": np.inf})
    same = naive.Problem(problem.blocks, problem.losses, LAM, unbounded, problem.weights)
    exact, iterated = naive.solve_reference(problem), naive.solve_reference(same)
    np.testing.assert_allclose(exact.x, iterated.x, atol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "smooth_hinge", "huber", "multinomial"])
def test_reference_agrees_with_a_quasi_newton_method(loss):
    problem = small_problem(loss, weights=[1, 2, 0.5, 3, 1, 1])

    def value_and_slope(x):
        r = problem.residual(naive.gradient_point(problem, x))
        return naive.primal(problem, x), r + LAM * x

    start = np.zeros(problem.d)
    found = minimize(value_and_slope, start, jac=True, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(naive.solve_reference(problem).x, found.x, atol=1e-7)


def cvxpy_objective(cp, loss, z, t):
    """The losses once more, as another package spells them."""
    margin, params = cp.multiply(t, z), ONE_OUTPUT[loss]
    gamma = params.get("gamma")
    match loss:
        case "logistic":
            return cp.logistic(-margin)
        case "smooth_hinge":  # half a Huber function of the positive part
            return cp.huber(cp.pos(1 - margin), gamma) / (2 * gamma)
        case "squared_hinge":
            return cp.square(cp.pos(1 - margin)) / 2
        case "huber":
            return cp.huber(z - t, params["delta"]) / 2
        case "smooth_epsilon_insensitive":
            return cp.huber(cp.pos(cp.abs(z - t) - params["epsilon"]), gamma) / (2 * gamma)
        case "squared_epsilon_insensitive":
            return cp.square(cp.pos(cp.abs(z - t) - params["epsilon"])) / 2
    raise AssertionError(loss)


@pytest.mark.parametrize("loss", [*BINARY, "huber", *INSENSITIVE])
def test_reference_agrees_with_cvxpy(loss):
    cp = pytest.importorskip("cvxpy")
    problem = small_problem(loss, REGULARIZERS[1])
    x = cp.Variable(D)
    z = np.vstack(problem.blocks) @ x
    t = np.array([loss_i.target for loss_i in problem.losses])
    data_term = cp.sum(cvxpy_objective(cp, loss, z, t)) / N
    penalty = LAM / 2 * cp.sum_squares(x) + problem.g.params["l1"] * cp.norm1(x)
    value = cp.Problem(cp.Minimize(data_term + penalty)).solve(solver="CLARABEL")
    solution = naive.solve_reference(problem).x
    assert naive.primal(problem, solution) == pytest.approx(value, abs=1e-7)
    np.testing.assert_allclose(solution, x.value, atol=1e-4)


# ----------------------------------------------------------------------------------------- methods


def run_spdhg(problem, iterations, m=1):
    pi, *steps = naive.spdhg_steps(problem, m)
    if m == 1:
        return naive.spdhg(problem, weighted_batches(pi, iterations), pi, *steps)
    # Uniform batches: the steps that meet the three conditions for one common norm.
    n, gamma, largest = problem.n, problem.gamma, (problem.norms**2 / problem.gamma).max()
    kappa = np.sqrt(1 + m * largest / (n * problem.lam))
    total = n * (1 + kappa)
    tau, theta = m / ((total - 2 * m) * problem.lam), 1 - 2 * m / total
    sigma = 1 / ((kappa - 1) * gamma)
    return naive.spdhg(problem, uniform_batches(iterations, m), m / n, sigma, tau, theta)


def run_spdc_nonuniform(problem, iterations):
    p = naive.spdc_nonuniform_probabilities(problem)
    return naive.spdc_nonuniform(problem, weighted_batches(p, iterations))


CONVERGENT = {
    "spdc": lambda p: naive.spdc(p, uniform_batches(2500)),
    "spdc-batch": lambda p: naive.spdc(p, uniform_batches(1500, 2)),
    "spdc-nonuniform": lambda p: run_spdc_nonuniform(p, 4000),
    "spdhg": lambda p: run_spdhg(p, 1500),
    "spdhg-batch": lambda p: run_spdhg(p, 1000, 2),
    "sdca": lambda p: naive.sdca(p, uniform_batches(3000)),
    "sdca-batch": lambda p: naive.sdca(p, uniform_batches(3000, 2)),
    "saga": lambda p: naive.saga(p, uniform_batches(6000), 1 / (3 * naive.smoothness(p))),
    "pdhg": lambda p: naive.pdhg(p, 300, *naive.pdhg_steps(p)),
}


def assert_solved(problem, last):
    solution = naive.solve_reference(problem)
    np.testing.assert_allclose(last.x, solution.x, atol=1e-8)
    np.testing.assert_allclose(last.y, solution.y, atol=1e-8)
    np.testing.assert_allclose(last.r, problem.residual(last.y), atol=1e-12)


@pytest.mark.parametrize("method", CONVERGENT)
@pytest.mark.parametrize("weights", [None, [1, 2, 0.5, 3, 1, 1]], ids=["equal", "weighted"])
def test_method_converges_to_the_reference(method, weights):
    problem = small_problem("squared_hinge", REGULARIZERS[1], weights)
    assert_solved(problem, CONVERGENT[method](problem)[-1])


@pytest.mark.parametrize("loss", ["logistic", "multi_output", *COUPLED])
def test_spdhg_converges_for_every_kind_of_block(loss):
    problem = small_problem(loss, REGULARIZERS[2])
    assert_solved(problem, run_spdhg(problem, 1500)[-1])


@pytest.mark.parametrize("g", REGULARIZERS, ids=lambda g: g.name)
def test_sdca_converges_for_every_regularizer(g):
    problem = small_problem("smooth_pinball", g)
    assert_solved(problem, naive.sdca(problem, uniform_batches(2500))[-1])


def test_sag_converges_with_its_proved_step():
    problem = small_problem("squared_hinge", weights=[1, 2, 0.5, 3, 1, 1], lam=0.5)
    path = naive.sag(problem, uniform_batches(9000), 1 / (16 * naive.smoothness(problem)))
    assert_solved(problem, path[-1])


def test_methods_leave_the_solution_where_it_is():
    """A fixed point of every method, in one iteration and without any step rule."""
    problem = small_problem("logistic", REGULARIZERS[1], weights=[1, 2, 0.5, 3, 1, 1])
    solution = naive.solve_reference(problem)
    start, batches = {"x0": solution.x, "y0": solution.y}, uniform_batches(1, 2)
    zero_change = [
        naive.extrapolated(problem, batches, 0.3, 0.7, 0.9, 0.5, **start),
        naive.adaspdc(problem, batches, **start),
        naive.spdhg(problem, batches, 0.5, 0.3, 0.7, 0.9, **start),
        naive.saga(problem, batches, 0.1, **start),
        naive.pdhg(problem, 1, 0.3, 0.7, 0.9, **start),
        naive.sdca(problem, batches, solution.y),
    ]
    for path in zero_change:
        np.testing.assert_allclose(path[0].x, solution.x, atol=1e-11)
        np.testing.assert_allclose(path[0].y, solution.y, atol=1e-11)


def test_weighted_steps_are_those_of_rescaled_rows():
    """The derivation of the module docstring, on ridge where phi* of the rescaled row is known.

    u_i = sqrt(s_hat_i) y_i turns  s_hat (z - b)^2 / 2  into a squared loss on the row
    sqrt(s_hat) a with target sqrt(s_hat) b, weights one.
    """
    problem = small_problem("squared", REGULARIZERS[1], weights=[1, 2, 0.5, 3, 1, 1])
    root = np.sqrt(problem.s_hat)
    rescaled = naive.Problem(
        [a * block for a, block in zip(root, problem.blocks, strict=True)],
        [naive.Loss("squared", a * e.target) for a, e in zip(root, problem.losses, strict=True)],
        LAM,
        problem.g,
    )
    batches, single = uniform_batches(30, 2), uniform_batches(30)
    pairs = [
        [naive.adaspdc(p, batches) for p in (problem, rescaled)],
        [naive.spdc(p, batches) for p in (problem, rescaled)],
        [naive.spdc_nonuniform(p, single) for p in (problem, rescaled)],
        [naive.spdhg(p, single, *naive.spdhg_steps(p)) for p in (problem, rescaled)],
        [naive.sdca(p, batches) for p in (problem, rescaled)],
        [naive.saga(p, batches, 0.1) for p in (problem, rescaled)],
        [naive.pdhg(p, 30, *naive.pdhg_steps(p)) for p in (problem, rescaled)],
    ]
    for one, other in pairs:
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a.x, b.x, atol=1e-13)
            np.testing.assert_allclose(root * a.y, b.y, atol=1e-12)
            np.testing.assert_allclose(a.r, b.r, atol=1e-12)


def test_primal_steps_are_unbiased():
    """Averaged over the sampling, the primal step sees the change of all blocks.

    The L2 prox is linear, so averages of x are averages of the directions; this is what the
    factors 1/m, 1/(n p_i) and 1/(n pi_i) are for, and convergence alone would not show them.
    """
    problem = small_problem("logistic", weights=[1, 2, 0.5, 3, 1, 1])
    p = np.array([0.3, 0.1, 0.2, 0.15, 0.15, 0.1])
    y0 = naive.gradient_point(problem, np.ones(D))
    x0, r0, tau = np.array([0.3, -1.0, 0.5]), problem.residual(y0), 0.4
    every = naive.extrapolated(problem, [range(N)], 0.8, 1.0, 1.0, 1.0, x0, y0)[0]
    table = naive.gradient_point(problem, x0)
    pairs, singles = [(i, j) for i in range(N) for j in range(i)], [(i,) for i in range(N)]

    def mean_x(method, batches, *arguments, probabilities=None):
        ends = [method(problem, [batch], *arguments, x0, y0)[0].x for batch in batches]
        return np.average(ends, axis=0, weights=probabilities)

    def step(x, r):
        return naive.g_prox(problem, x - tau * r, tau)

    spdc = mean_x(naive.extrapolated, pairs, 0.8, tau, 1.0, 0.5)
    np.testing.assert_allclose(spdc, step(x0, every.r), atol=1e-14)
    c = 1 / (N * p)
    weighted = mean_x(naive.extrapolated, singles, 0.8, tau, 1.0, c, probabilities=p)
    np.testing.assert_allclose(weighted, step(x0, every.r), atol=1e-14)
    for batches in (pairs, singles):
        saga = mean_x(naive.saga, batches, tau)
        np.testing.assert_allclose(saga, step(x0, problem.residual(table)), atol=1e-14)

    # SPDHG: the compensation acts one iteration later, at r + q.
    paths = [naive.spdhg(problem, [(i,), (0,)], p, 0.8, tau, 0.9, x0, y0) for i in range(N)]
    x1 = paths[0][0].x
    np.testing.assert_allclose(x1, step(x0, r0), atol=1e-14)
    change = naive.extrapolated(problem, [range(N)], 0.8, 1.0, 1.0, 1.0, x1, y0)[0].r - r0
    mean_r = np.average([path[0].r for path in paths], axis=0, weights=p)
    mean_x2 = np.average([path[1].x for path in paths], axis=0, weights=p)
    np.testing.assert_allclose(mean_x2, step(x1, mean_r + 0.9 * change), atol=1e-14)


def test_step_sizes_multiply_to_the_bounds_of_their_theorems():
    problem = small_problem("logistic", weights=[1, 2, 0.5, 3, 1, 1])
    rho2 = problem.norms**2 / problem.gamma
    sigma, tau, _ = naive.pdhg_steps(problem)
    rows = np.sqrt(problem.s_hat / problem.gamma)[:, None] * np.vstack(problem.blocks)
    product = tau * sigma * problem.gamma * np.linalg.norm(rows, 2) ** 2 / N
    np.testing.assert_allclose(product, 1)

    steps = naive.spdc_steps(problem, 2)
    assert np.max(steps.tau * steps.sigma * problem.gamma * rho2) == pytest.approx(1 / 4)
    p = naive.spdc_nonuniform_probabilities(problem)
    steps = naive.spdc_nonuniform_steps(problem, p)
    prox_step = steps.sigma * problem.gamma * p * N  # the sigma of the paper, the same for all
    np.testing.assert_allclose(prox_step * steps.tau, (0.25 / np.mean(np.sqrt(rho2))) ** 2)
    np.testing.assert_allclose(prox_step / steps.tau, N * LAM)


def test_all_blocks_at_once_with_adaspdc_is_pdhg():
    """With m = n the three printed steps are a constant-step Chambolle-Pock method."""
    problem = small_problem("logistic", REGULARIZERS[1])
    everything = np.tile(np.arange(N), (20, 1))
    steps = naive.adaspdc_steps(problem, everything)
    same = naive.pdhg(problem, 20, steps.sigma, steps.tau[0], steps.theta[0])
    for a, b in zip(naive.adaspdc(problem, everything), same, strict=True):
        np.testing.assert_allclose(a.x, b.x, atol=1e-13)


def test_spdhg_steps_meet_the_conditions_with_equality():
    for m in (1, 2):
        problem = small_problem("logistic", weights=[1, 2, 1, 3, 1, 1])
        pi, sigma, tau, theta = naive.spdhg_steps(problem, m)
        gamma_sigma = problem.gamma * sigma
        assert pi.sum() == pytest.approx(m)
        assert theta == pytest.approx(1 / (1 + 2 * LAM * tau))
        np.testing.assert_allclose(theta, 1 - 2 * pi * gamma_sigma / (1 + 2 * gamma_sigma))
        np.testing.assert_allclose(theta * tau * sigma * m * problem.norms**2, problem.n * pi)


# -------------------------------------------------------------------------- AdaSPDC can diverge


def two_rows():
    return naive.erm([[1.0], [0.1]], [1.0, 1.0], "squared", 1e-4)


def test_literal_adaspdc_diverges_on_two_rows_where_spdc_converges():
    problem = two_rows()
    solution = naive.solve_reference(problem).x
    errors = {"adaspdc": [], "spdc": []}
    for seed in range(25):
        batches = np.random.default_rng(seed).integers(2, size=(400, 1))
        for name, distances in errors.items():
            path = getattr(naive, name)(problem, batches)
            distances.append([abs(path[t - 1].x - solution).item() for t in (50, 200, 400)])
    ada, spdc = (np.median(errors[name], axis=0) for name in ("adaspdc", "spdc"))
    assert ada[0] > 10
    assert ada[1] > 1e4
    assert ada[2] > 1e10
    assert spdc[2] < 0.2


def linear_map(problem, steps, row):
    """One iteration on the row as a matrix in the state (x, xbar, y): it is affine for ridge."""

    def move(state):
        arguments = steps.sigma, steps.tau, steps.theta, steps.c
        x, xbar, y = state[:1], state[1:2], state[2:]
        new = naive.extrapolated(problem, [[row]], *arguments, x, y, xbar)[0]
        theta = np.ravel(steps.theta)[0]
        return np.concatenate([new.x, new.x + theta * (new.x - x), new.y])

    origin = move(np.zeros(4))
    return np.column_stack([move(e) - origin for e in np.eye(4)])


def mean_square_radius(maps):
    """Spectral radius of E[M kron M]: above one, the second moment of the error explodes."""
    mean = sum(np.kron(M, M) for M in maps) / len(maps)
    return max(abs(np.linalg.eigvals(mean)))


def test_second_moment_of_literal_adaspdc_grows_and_that_of_spdc_shrinks():
    problem = two_rows()
    ada = [linear_map(problem, naive.adaspdc_steps(problem, [[i]]), i) for i in (0, 1)]
    spdc = [linear_map(problem, naive.spdc_steps(problem, 1), i) for i in (0, 1)]
    assert mean_square_radius(ada) == pytest.approx(1.264, abs=1e-3)
    assert mean_square_radius(spdc) < 1
