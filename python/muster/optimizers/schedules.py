"""Rates that fall. A schedule is called with a step, the number of updates before this
one, and returns the rate. For workers that share one, it is the closure's step.

    schedule = muster.optimizers.schedules.ExponentialDecay(0.1, 1000, 0.96)
    optimizer = muster.optimizers.SGD(learning_rate=schedule)

Any callable that takes a step does, too. Names and formulas are those of Keras 3.
"""

from __future__ import annotations

import math
from typing import Any, List, Sequence

__all__ = ["CosineDecay", "CosineDecayRestarts", "ExponentialDecay", "InverseTimeDecay",
           "LearningRateSchedule", "PiecewiseConstantDecay", "PolynomialDecay"]


class LearningRateSchedule:
    """The base of all: a subclass has __call__(step)."""

    def __call__(self, step: int) -> float:
        raise NotImplementedError(f"{type(self).__name__} has no __call__(step)")

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({numbers})"


def _positive(name: str, number: Any) -> Any:
    if not number > 0:
        raise ValueError(f"{name} is {number!r}: expected a number above 0")
    return number


class _Decay(LearningRateSchedule):
    """What decays by a quotient of steps."""

    def __init__(self, initial_learning_rate: float, decay_steps: int,
                 decay_rate: float, staircase: bool = False) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = _positive("decay_steps", decay_steps)
        self.decay_rate = decay_rate
        self.staircase = staircase

    def _part(self, step: int) -> float:
        part = float(step / self.decay_steps)
        return math.floor(part) if self.staircase else part


class ExponentialDecay(_Decay):
    """initial_learning_rate * decay_rate ** (step / decay_steps); staircase: with the
    quotient's whole part.

    >>> ExponentialDecay(0.1, 10, 0.5)(20)
    0.025
    """

    def __call__(self, step: int) -> float:
        return float(self.initial_learning_rate * self.decay_rate ** self._part(step))


class InverseTimeDecay(_Decay):
    """initial_learning_rate / (1 + decay_rate * step / decay_steps); staircase: with the
    quotient's whole part.

    >>> InverseTimeDecay(0.1, 10, 1.0)(10)
    0.05
    """

    def __call__(self, step: int) -> float:
        return float(self.initial_learning_rate /
                     (1 + self.decay_rate * self._part(step)))


class PiecewiseConstantDecay(LearningRateSchedule):
    """values[0] up to the step boundaries[0], then values[1], and so on.

    >>> [PiecewiseConstantDecay([2, 4], [1.0, 0.5, 0.1])(step) for step in (2, 3, 5)]
    [1.0, 0.5, 0.1]
    """

    def __init__(self, boundaries: Sequence[float], values: Sequence[float]) -> None:
        if len(boundaries) != len(values) - 1:
            raise ValueError(f"{len(boundaries)} boundaries and {len(values)} values: "
                             "expected one value more than boundaries")
        self.boundaries: List[float] = list(boundaries)
        self.values: List[float] = list(values)

    def __call__(self, step: int) -> float:
        passed = sum(step > boundary for boundary in self.boundaries)
        return float(self.values[passed])


class PolynomialDecay(LearningRateSchedule):
    """From initial_learning_rate to end_learning_rate in decay_steps, by a power of what
    is left; cycle: once there, again with twice as many steps, and so on.

    >>> PolynomialDecay(1.0, 10, 0.0)(4)
    0.6
    """

    def __init__(self, initial_learning_rate: float, decay_steps: int,
                 end_learning_rate: float = 0.0001, power: float = 1.0,
                 cycle: bool = False) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = _positive("decay_steps", decay_steps)
        self.end_learning_rate = end_learning_rate
        self.power = power
        self.cycle = cycle

    def __call__(self, step: int) -> float:
        steps: float = self.decay_steps
        if self.cycle:
            steps *= max(1, math.ceil(step / steps))
        left = 1 - min(step, steps) / steps
        span = self.initial_learning_rate - self.end_learning_rate
        return float(span * left ** self.power + self.end_learning_rate)


class CosineDecay(LearningRateSchedule):
    """Half a cosine from initial_learning_rate to alpha times that, in decay_steps. With
    warmup_target: first in warmup_steps to that, on a line, and from there.

    >>> CosineDecay(1.0, 10)(5)
    0.5
    """

    def __init__(self, initial_learning_rate: float, decay_steps: int,
                 alpha: float = 0.0, warmup_target: Any = None,
                 warmup_steps: int = 0) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = _positive("decay_steps", decay_steps)
        self.alpha = alpha
        self.warmup_target = warmup_target
        self.warmup_steps = warmup_steps

    def __call__(self, step: int) -> float:
        top = self.initial_learning_rate
        if self.warmup_target is not None:
            if step < self.warmup_steps:
                part = step / self.warmup_steps
                return float(top + (self.warmup_target - top) * part)
            top = self.warmup_target
            step -= self.warmup_steps
        part = min(step, self.decay_steps) / self.decay_steps
        cosine = 0.5 * (1 + math.cos(math.pi * part))
        return float(top * ((1 - self.alpha) * cosine + self.alpha))


class CosineDecayRestarts(LearningRateSchedule):
    """Cosines one after the other: each t_mul times as long as the one before, and m_mul
    times as high.

    >>> [CosineDecayRestarts(1.0, 10, m_mul=0.5)(step) for step in (0, 10, 20)]
    [1.0, 0.5, 0.25]
    """

    def __init__(self, initial_learning_rate: float, first_decay_steps: int,
                 t_mul: float = 2.0, m_mul: float = 1.0, alpha: float = 0.0) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.first_decay_steps = _positive("first_decay_steps", first_decay_steps)
        self.t_mul = _positive("t_mul", t_mul)
        self.m_mul = m_mul
        self.alpha = alpha

    def __call__(self, step: int) -> float:
        part = step / self.first_decay_steps
        if self.t_mul == 1:
            period = math.floor(part)
            part -= period
        else:
            period = math.floor(math.log(1 - part * (1 - self.t_mul)) /
                                math.log(self.t_mul) + 1e-12)
            begin = (1 - self.t_mul ** period) / (1 - self.t_mul)
            part = (part - begin) / self.t_mul ** period
        height = self.m_mul ** period
        cosine = 0.5 * height * (1 + math.cos(math.pi * part))
        return float(self.initial_learning_rate *
                     ((1 - self.alpha) * cosine + self.alpha))
