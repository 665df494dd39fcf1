"""The methods by name: which order of steps, which step rule, which sampling.

Adding a method whose order of steps exists is one entry in ``METHODS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from . import steps as rules
from ._arguments import is_real
from ._containers import Steps
from ._flat import FlatProblem
from .problem import ERM, Problem
from .sampling import SAMPLERS, Sampler

Order = Literal["extrapolated", "compensated", "dual", "batch"]
Rule = Callable[["Setting"], tuple[Any, Any]]

AUTO = "auto"
"""No method of its own: the solver picks one after the other; see ``_auto.py``."""

SAFE_METHOD = "spdhg"
"""What a run falls back on: its steps converge linearly, provably, with independent sampling."""


@dataclass(frozen=True)
class Setting:
    """What a step rule may look at."""

    problem: FlatProblem
    source: Problem
    batch_size: int
    step: float | None

    @property
    def norms(self) -> np.ndarray:
        """Norms of the blocks that are sampled."""
        return self.problem.active_norms()

    @property
    def gamma(self) -> float | np.ndarray:
        """Strong convexity of their conjugates."""
        return self.problem.active_gamma()

    @property
    def lam(self) -> float:
        """Strong convexity of g."""
        return self.problem.lam


@dataclass(frozen=True)
class MethodSpec:
    """One entry of the catalogue.

    ``rule`` maps a `Setting` to (steps, probabilities of inclusion or None). ``gradient`` proposes
    ``phi'`` instead of a prox; ``explicit`` steps along the gradient of the L2 term.
    """

    order: Order
    rule: Rule
    sampling: str = "iid"
    gradient: bool = False
    explicit: bool = False
    l2_only: bool = False
    takes_step: bool = False


def _adaspdc(s: Setting) -> tuple[Any, Any]:
    return rules.adaspdc(s.norms, s.gamma, s.lam, s.batch_size), None


def _spdc(s: Setting) -> tuple[Any, Any]:
    return rules.spdc(s.norms, s.gamma, s.lam, s.batch_size), None


def _spdc_nonuniform(s: Setting) -> tuple[Any, Any]:
    return rules.spdc_nonuniform(s.norms, s.gamma, s.lam, s.batch_size)


def _spdhg(s: Setting) -> tuple[Any, Any]:
    """Importance sampling; for batches of sparse rows uniform sampling where that is faster.

    For uniform batches the bound on E|sum_S A_i h_i|^2 counts how many rows share a column, for
    importance-sampled ones only the batch size is known.
    """
    m, n = s.batch_size, s.norms.size
    eso = rules.fixed_size_eso(s.norms, m)
    inclusion: Any = rules.spdhg_probabilities(eso, s.gamma, s.lam, m)
    steps = rules.spdhg(eso, s.gamma, s.lam, inclusion)
    if m > 1 and isinstance(s.source, ERM) and s.source.rows.is_sparse and _equal_mass(s.problem):
        from ._norms import batch_eso

        shared = batch_eso(s.source.rows, m)
        uniform = rules.spdhg(shared, s.gamma, s.lam, m / n)
        if uniform.theta < steps.theta:
            return uniform, np.full(n, m / n)
    return steps, inclusion


def _equal_mass(problem: FlatProblem) -> bool:
    return problem.active is None and problem.blocks.mass_stride == 0


def _sdca(s: Setting) -> tuple[Any, Any]:
    return rules.sdca(s.norms, s.lam, s.batch_size), None


def _sag(s: Setting) -> tuple[Any, Any]:
    scale = 1.0 / 16.0 if s.step is None else s.step
    return rules.sag(s.norms, s.gamma, s.lam, scale), None


def _saga(s: Setting) -> tuple[Any, Any]:
    scale = 1.0 / 3.0 if s.step is None else s.step
    return rules.sag(s.norms, s.gamma, s.lam, scale), None


def _pdhg(s: Setting) -> tuple[Any, Any]:
    problem = s.problem
    mass = problem.blocks.mass
    scale = np.sqrt(np.broadcast_to(mass, problem.total) / s.problem.gamma)
    norm = s.source.stacked_norm(scale)
    return rules.pdhg(norm, s.gamma, s.lam, problem.count), None


METHODS: dict[str, MethodSpec] = {
    "adaspdc": MethodSpec("extrapolated", _adaspdc),
    "spdc": MethodSpec("extrapolated", _spdc),
    "spdc-nonuniform": MethodSpec("extrapolated", _spdc_nonuniform, "importance"),
    "spdhg": MethodSpec("compensated", _spdhg, "systematic"),
    "sdca": MethodSpec("dual", _sdca, "permutation"),
    "sag": MethodSpec(
        "extrapolated", _sag, gradient=True, explicit=True, l2_only=True, takes_step=True
    ),
    "saga": MethodSpec("extrapolated", _saga, gradient=True, takes_step=True),
    "pdhg": MethodSpec("batch", _pdhg),
}


@dataclass(frozen=True)
class Method:
    """A method with options other than its defaults.

    Parameters
    ----------
    name : str
        "auto", "adaspdc", "spdc", "spdc-nonuniform", "spdhg", "sdca", "sag", "saga" or "pdhg".
    sampling : str or Sampler, optional
        "iid", "permutation", "importance" or "systematic", or an object such as
        ``sampling.Replay(batches)``. The default is the paper's choice for its methods ("iid",
        "importance" for spdc-nonuniform), "systematic" for spdhg and "permutation" for sdca.
    step : float, optional
        For sag and saga: the step as a multiple of 1/L, L = max_i |a_i|^2/gamma + lam. Defaults
        1/16 and 1/3, which are proved; SAG is often run with up to 1.
    watch : bool
        Notice divergence, roll back and go on with a provable rule. Turn off only to study a
        method by itself: without it a run may end with nothing better than its start.

    Examples
    --------
    >>> from adaspdc import Method
    >>> Method("sag", step=1.0).name
    'sag'
    """

    name: str
    sampling: str | Sampler | None = None
    step: float | None = None
    watch: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        known = ", ".join([AUTO, *METHODS])
        if not isinstance(self.name, str):
            raise TypeError(f"method must be a name, one of: {known}; got {self.name!r}")
        if self.name == AUTO:
            _check_no_options(self)
            return
        if self.name not in METHODS:
            raise ValueError(f"method {self.name!r} is unknown; the methods are: {known}")
        if self.step is not None and not self.spec.takes_step:
            takers = ", ".join(name for name, spec in METHODS.items() if spec.takes_step)
            raise ValueError(
                f"method {self.name!r} computes its own steps and takes no step={self.step!r}; "
                f"these do: {takers}"
            )
        if self.step is not None and not (is_real(self.step) and 0.0 < self.step < np.inf):
            raise ValueError(
                f"step must be a positive multiple of 1/L, e.g. 1.0; got {self.step!r}"
            )
        if not isinstance(self.watch, bool):
            raise TypeError(f"watch must be True or False; got {self.watch!r}")
        _check_sampling(self.sampling)

    @property
    def spec(self) -> MethodSpec:
        """The catalogue entry."""
        return METHODS[self.name]


def _check_no_options(method: Method) -> None:
    if method.sampling is not None or method.step is not None or not method.watch:
        raise ValueError(
            f'method "auto" makes its own choices and takes neither sampling={method.sampling!r} '
            f"nor step={method.step!r} nor watch={method.watch!r}; name a method to set them"
        )


def _check_sampling(sampling: Any) -> None:
    known = ", ".join(SAMPLERS)
    if sampling is None or (isinstance(sampling, str) and sampling in SAMPLERS):
        return
    if isinstance(sampling, str):
        raise ValueError(f"sampling {sampling!r} is unknown; the samplings are: {known}")
    if isinstance(sampling, type) or not hasattr(sampling, "draw"):
        raise TypeError(
            f"sampling must be a name ({known}) or a sampler such as sampling.Replay(batches); "
            f"got {sampling!r}"
        )


@dataclass(frozen=True)
class Plan:
    """A method made ready for one problem: steps by block number, and a sampler."""

    method: Method
    rule: Any
    sampler: Sampler
    problem: FlatProblem
    sigma: np.ndarray
    weight: np.ndarray

    def draw(self, iterations: int) -> tuple[np.ndarray, Steps]:
        """The next batches (block numbers) and the steps of their iterations."""
        batches = self.sampler.draw(iterations)
        steps = self.steps(batches)
        active = self.problem.active
        if active is None or self.problem.settled:
            return batches, steps
        return active[batches], steps

    def steps(self, positions: np.ndarray) -> Steps:
        """Steps of the iterations whose batches are these positions among the active blocks."""
        tau, theta, moving = self._primal(positions)
        spec = self.method.spec
        return Steps(
            self.sigma,
            self.weight,
            np.uint64(self.weight.size > 1),
            tau,
            theta,
            np.uint64(moving),
            self.problem.lam,
            spec.gradient,
            spec.explicit,
        )

    def _primal(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        rule = self.rule
        if isinstance(rule, rules.BatchSteps):
            return (*rule.primal(positions), True)
        theta = getattr(rule, "theta", 0.0)
        tau = getattr(rule, "tau", 0.0)
        return np.array([tau]), np.array([theta]), False

    @property
    def visits_per_iteration(self) -> int:
        """How many blocks an iteration moves."""
        if self.method.spec.order == "batch":
            return self.problem.count
        return int(self.sampler.batch_size)

    @property
    def passes_per_decade(self) -> float:
        """Passes in which a proof, where there is one, promises a tenth of the squared distance."""
        theta = _slowest_theta(self.rule)
        per_iteration = self.visits_per_iteration / self.problem.count
        iterations = np.log(10.0) / max(1.0 - theta, 1e-300) if theta > 0.0 else np.inf
        return float(iterations * per_iteration)


def _slowest_theta(rule: Any) -> float:
    if isinstance(rule, rules.BatchSteps):
        slowest = np.array([[int(rule.coupling.argmax())]])
        return float(rule.primal(slowest)[1][0])
    return float(getattr(rule, "theta", 0.0))


def plan(
    method: Method, source: Problem, problem: FlatProblem, batch_size: int, random_state: Any
) -> Plan:
    """Steps and sampler of a method for a problem."""
    _check_suits(method, problem)
    if problem.settled:
        return _no_moves(method, problem)
    if method.spec.order == "batch":
        batch_size = 1  # it takes all blocks: the batches only count iterations
    rule, inclusion = method.spec.rule(Setting(problem, source, batch_size, method.step))
    if inclusion is not None:
        inclusion.flags.writeable = False  # spares the sampler a copy
    sampler = _sampler(method, problem.count, batch_size, inclusion, random_state)
    weight = getattr(rule, "weight", 1.0 / batch_size)
    return Plan(
        method,
        rule,
        sampler,
        problem.without_norms(),
        _by_block(problem, getattr(rule, "sigma", 1.0)),
        np.array([weight]) if np.ndim(weight) == 0 else _by_block(problem, weight),
    )


def _no_moves(method: Method, problem: FlatProblem) -> Plan:
    """For a problem without a block to sample; its iteration does nothing."""
    steps, one = rules.ConstantSteps(np.ones(1), 1.0, 0.0, 1.0), np.ones(1)
    return Plan(method, steps, SAMPLERS["iid"](1, 1, None, 0), problem.without_norms(), one, one)


def _check_suits(method: Method, problem: FlatProblem) -> None:
    if method.spec.l2_only and not problem.plain_l2:
        others = ", ".join(name for name, spec in METHODS.items() if not spec.l2_only)
        raise ValueError(
            f"method {method.name!r} handles regularizers.L2 only, not {problem.regularizer!r}; "
            f"use one of: {others}"
        )


def _by_block(problem: FlatProblem, values: Any) -> np.ndarray:
    """Values of the active blocks, placed by block number (1 for idle blocks, never read)."""
    if np.ndim(values) == 1 and problem.active is None:
        return np.ascontiguousarray(values)
    full = np.ones(problem.total)
    full[slice(None) if problem.active is None else problem.active] = values
    return full


def _sampler(method: Method, n: int, batch_size: int, inclusion: Any, random_state: Any) -> Sampler:
    choice = method.sampling if method.sampling is not None else method.spec.sampling
    if not isinstance(choice, str):
        if method.spec.order != "batch":  # which takes all blocks and only counts the batches
            _check_fit(choice, n, batch_size)
        return choice
    if inclusion is not None and choice in ("iid", "permutation"):
        raise ValueError(
            f"method {method.name!r} samples blocks with unequal probabilities; "
            f"sampling {choice!r} cannot, 'importance' and 'systematic' can"
        )
    return SAMPLERS[choice](n, batch_size, inclusion, random_state)


def _check_fit(sampler: Sampler, n: int, batch_size: int) -> None:
    if sampler.batch_size != batch_size:
        raise ValueError(
            f"sampling draws batches of {sampler.batch_size}, but batch_size={batch_size}; "
            "make them equal"
        )
    if sampler.n != n:
        raise ValueError(
            f"sampling is over {sampler.n} blocks, but {n} blocks are to be sampled (blocks that "
            f"are zero or have no weight are left out); make the sampler with n={n}"
        )
