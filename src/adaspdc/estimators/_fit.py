"""From a task to a certified model: move the origins, choose a way, move back."""

from __future__ import annotations

from ._continuation import minimise_by_stages
from ._interior import is_narrow, minimise_inside
from ._newton import is_unpenalised
from ._solve import Options, Solution, centred, minimise_smooth, moved_back
from ._task import Penalty, Task
from ._unpenalised import may_lack_a_minimiser, minimise_unpenalised, with_remark


def minimise(task: Task, options: Options, start: Solution | None = None) -> Solution:
    """The solution of a task, with its certificate."""
    inner, shift, origin = centred(task)
    if start is not None:
        start = moved_back(start, None if shift is None else -shift, -origin)
    penalty = task.penalty
    direct = task.smooth and not (isinstance(penalty, Penalty) and penalty.lam == 0.0)
    if direct:
        solution = minimise_smooth(inner, options, start)
    elif may_lack_a_minimiser(inner):
        if is_unpenalised(inner) and options.method == "auto":
            solution = minimise_unpenalised(inner, options, start)
        else:
            solution = with_remark(inner, minimise_by_stages(inner, options, start))
    elif is_narrow(inner) and options.method == "auto":
        solution = minimise_inside(inner, options)
    else:
        solution = minimise_by_stages(inner, options, start)
    return moved_back(solution, shift, origin)
