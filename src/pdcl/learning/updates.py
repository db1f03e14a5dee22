"""One update of the weights out of one or several gradients: accumulated, clipped, stepped, the rate moved on."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from pdcl.errors import Diverged, UsageError
from pdcl.learning.optimizers import OPTIMIZERS, check_scheduler, make_scheduler, parameters_of

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


@dataclass(frozen=True)
class Updates:
    """How gradients become updates. clip_norm: the largest norm of a gradient; accumulate: batches per update."""

    clip_norm: float | None = None
    accumulate: int | None = None
    scheduler: Any = None
    batches: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "batches", self.accumulate or 1)
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise UsageError(f"clip_norm={self.clip_norm} must be positive; leave it out to clip nothing")
        if self.accumulate is not None and self.accumulate < 1:
            raise UsageError(f"accumulate={self.accumulate} must be at least 1: batches per update")
        check_scheduler(self.scheduler)


# Reading a number from an accelerator waits until it has computed it, and everything before it.
LOOK_EVERY = 20


@dataclass
class Finiteness:
    """Watches losses for NaN and infinity: after every step on a CPU, after every 20th elsewhere."""

    every: int = 1
    steps: int = 0
    total: Tensor | None = None

    @classmethod
    def on(cls, device: torch.device) -> Finiteness:
        return cls(1 if device.type == "cpu" else LOOK_EVERY)

    def look(self, loss: Tensor) -> float:
        """The sum of losses since the last look; 0 between two looks. One that isn't finite stays in the sum."""
        if self.every == 1:
            return float(loss)
        self.total = loss if self.total is None else self.total + loss
        self.steps += 1
        if self.steps < self.every:
            return 0.0
        found, self.steps, self.total = float(self.total), 0, None
        return found


class Updater:
    """The updates of one learner: gradients held so far, and the schedule of the task being learned."""

    def __init__(self, rules: Updates) -> None:
        self.rules = rules
        self.finiteness = Finiteness()
        self.held = 0
        self.steps = 0
        self.schedule: LRScheduler | None = None
        self._optimiser: Optimizer | None = None
        self._parameters: list[nn.Parameter] = []

    def begin(self, optimiser: Optimizer, steps: int) -> None:
        """A task of so many batches starts, with a schedule of its own."""
        self.held, self.steps, self._optimiser = 0, steps, None
        self.schedule = None if self.rules.scheduler is None else self._scheduled(optimiser)

    def _scheduled(self, optimiser: Optimizer) -> LRScheduler:
        return make_scheduler(self.rules.scheduler, optimiser, -(-self.steps // self.rules.batches))

    def backward(self, optimiser: Optimizer, losses: Tensor, weights: Tensor | None = None) -> None:
        """Gradients of Σ_i weights_i losses_i (their mean, without weights), after checking that they are finite."""
        total = self.finiteness.look(losses.detach().sum())
        if not math.isfinite(total):
            raise Diverged(
                f"the loss became {total} ({rate_of(optimiser)}); "
                "lower lr, or look for inputs far outside the range of the others"
            )
        if not losses.requires_grad:
            raise UsageError(
                "the network's outputs have no gradient: its forward detaches them or computes under torch.no_grad(), "
                "so that nothing can be learned"
            )
        self.clear(optimiser)
        each = torch.full_like(losses, 1 / losses.numel()) if weights is None else weights.to(losses.dtype)
        # Of gradients that are added up, each is one of so many.
        losses.backward(each if self.rules.batches == 1 else each / self.rules.batches)

    def clear(self, optimiser: Optimizer) -> None:
        """Drop gradients, unless they are being gathered."""
        if self.held:
            return
        if optimiser is not self._optimiser:
            self._optimiser, self._parameters = optimiser, list(parameters_of(optimiser))
        for parameter in self._parameters:
            parameter.grad = None

    def gather(self, optimiser: Optimizer) -> None:
        """A gradient is there: update now, or hold it until there are enough."""
        self.held += 1
        if self.held == self.rules.batches:
            self.step(optimiser)

    def flush(self, optimiser: Optimizer) -> None:
        """A task ends: what is held makes one more update, as the mean of fewer gradients."""
        if self.held:
            for parameter in parameters_of(optimiser):
                if parameter.grad is not None:
                    parameter.grad.mul_(self.rules.batches / self.held)
            self.step(optimiser)
        self.schedule = None

    def step(self, optimiser: Optimizer) -> None:
        """Clip, step, and move the rate on."""
        if self.rules.clip_norm is not None:
            nn.utils.clip_grad_norm_(list(parameters_of(optimiser)), self.rules.clip_norm)
        plain_step(optimiser)
        self.held = 0
        if self.schedule is not None:
            self.schedule.step()

    def state_dict(self, optimiser: Optimizer) -> dict[str, Any]:
        """{} unless something is held or scheduled."""
        held: list[Tensor | None] = [p.grad for p in parameters_of(optimiser)] if self.held else []
        schedule = None if self.schedule is None else self.schedule.state_dict()
        if not held and schedule is None:
            return {}
        return {"held": self.held, "gradients": held, "steps": self.steps, "schedule": schedule}

    def load_state_dict(self, optimiser: Optimizer, state: dict[str, Any]) -> None:
        """Take over a state, before the optimiser takes over its own: making a schedule changes its rates."""
        self.held, self.schedule = 0, None
        if not state:
            return
        if (state["schedule"] is None) != (self.rules.scheduler is None):
            raise UsageError("the state was saved with scheduler= stated otherwise; hand in the one used then")
        if state["schedule"] is not None:
            self.steps = state["steps"]
            self.schedule = self._scheduled(optimiser)
            self.schedule.load_state_dict(state["schedule"])
        self.held = state["held"]
        for parameter, gradient in zip(parameters_of(optimiser), state["gradients"], strict=bool(self.held)):
            parameter.grad = None if gradient is None else gradient.to(parameter)


def rate_of(optimiser: Optimizer) -> str:
    """The learning rate, as messages name it."""
    return f"lr={optimiser.param_groups[0]['lr']:g}, optimizer={type(optimiser).__name__}"


def plain_step(optimiser: Optimizer) -> None:
    """`optimiser.step()`, without what torch wraps around it for hooks and profilers where there are none.

    The wrapper takes some 70 µs, an eighth of a small network's step.
    """
    bare = getattr(type(optimiser).step, "__wrapped__", None)
    if bare is None or _is_watched(optimiser):
        optimiser.step()
    else:
        bare(optimiser)


def _is_watched(optimiser: Optimizer) -> bool:
    """Whether somebody would miss the wrapper: a schedule or a user that replaced `step`, a hook, a profiler."""
    if "step" in vars(optimiser) or type(optimiser) not in OPTIMIZERS.values():
        return True
    place = sys.modules[Optimizer.__module__]
    try:
        own = optimiser._optimizer_step_pre_hooks or optimiser._optimizer_step_post_hooks
        hooked = own or place._global_optimizer_pre_hooks or place._global_optimizer_post_hooks
    except AttributeError:
        # A torch that keeps its hooks elsewhere counts as one that has some.
        return True
    return bool(hooked) or bool(torch._C._autograd._profiler_enabled())


# Methods of `Learner`.


def backward(learner: Learner, losses: Tensor, weights: Tensor | None = None) -> None:
    """Gradients of Σ_i weights_i losses_i (their mean, without weights), after checking that they are finite."""
    learner.updater.backward(learner.optimiser, losses, weights)


def update(learner: Learner) -> None:
    """Let the optimiser make a step with the gradients that are there, once there are enough."""
    learner.updater.gather(learner.optimiser)


def descend(learner: Learner, losses: Tensor, weights: Tensor | None = None) -> None:
    """One step down Σ_i weights_i losses_i, or the mean; where batches are accumulated, part of one."""
    learner.backward(losses, weights)
    learner.update()
