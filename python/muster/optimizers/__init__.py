"""How gradients change variables: on the servers, which keep what an optimizer remembers.

    adam = muster.optimizers.Adam(learning_rate=0.001)

    def step(x, y):
        gradient = ...
        adam.apply_gradients([(gradient, weight)])

    coordinator.schedule(step, (x, y), effect_once=True)

In a function that a worker runs, the gradients are sent when the function has returned,
and count once with effect_once; elsewhere they are applied at once. Names, arguments and
defaults are those of Keras 3. An optimizer here is a few numbers: it may be captured by
functions and sent to workers. Accumulators, moments and counts of updates are with the
variables, survive with them, and are in checkpoints. All that apply gradients to one
variable use the same kind of optimizer; numbers, such as the rate, may differ.

A learning rate may be a schedule (muster.optimizers.schedules), or any function of a
step. Workers that share one say which step it is: apply_gradients(pairs, step=number).
"""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any, Dict, Iterable, List, Optional, Sequence, Set, Tuple, cast

from .. import _muster
from .._variable.arrays import array_of
from .._variable.rows import IndexedSlices
from . import schedules

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lamb",
           "Lion", "Momentum", "Nadam", "Optimizer", "RMSprop", "RowwiseAdagrad", "get",
           "schedules"]

_ANY_NUMBER = 1
_REPLACE = 2


class Optimizer:
    """The base of all.

    learning_rate: a number, a schedule, or a function of the step.
    weight_decay: by how much variables shrink at each step, times the rate, before it.
    clipvalue, clipnorm, global_clipnorm: at most one of them; gradients are cut to it
    element by element, each to that norm, or all of one call together to that norm, where
    apply_gradients() is called.
    any_number: let NaN and infinity in gradients through, which the servers refuse.
    replace_slots: drop what another kind of optimizer has left beside a variable, and
    begin anew; without it gradients for such a variable raise FailedPreconditionError.
    """

    def __init__(self, learning_rate: Any, weight_decay: Optional[float] = None,
                 clipnorm: Optional[float] = None, clipvalue: Optional[float] = None,
                 global_clipnorm: Optional[float] = None, any_number: bool = False,
                 replace_slots: bool = False, name: Optional[str] = None) -> None:
        clips = {"clipnorm": clipnorm, "clipvalue": clipvalue,
                 "global_clipnorm": global_clipnorm}
        given = [clip for clip, number in clips.items() if number is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)}: expected at most one of them")
        for clip in given:
            if not clips[clip] > 0:     # type: ignore[operator]
                raise ValueError(f"{clip} is {clips[clip]!r}: expected a number above 0")
        self._learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.clipnorm = clipnorm
        self.clipvalue = clipvalue
        self.global_clipnorm = global_clipnorm
        self.any_number = any_number
        self.replace_slots = replace_slots
        self.name = name or type(self).__name__.lower()
        self.iterations = 0
        self._undecayed: Set[str] = set()
        self._undecayed_parts: List[str] = []

    # ---- the rule ----

    def _numbers(self) -> Dict[str, Any]:
        """The kind of the rule, and its numbers but for the rate and the decay."""
        raise NotImplementedError(f"{type(self).__name__} is no kind of optimizer")

    def rule(self, step: Optional[int] = None) -> Dict[str, Any]:
        """What travels with a gradient. step: updates before this one, for the rate and
        for the servers, which count themselves without it."""
        seen = self.iterations if step is None else step
        rule = self._numbers()
        rule["rate"] = float(self._rate_at(seen))
        rule["weight_decay"] = self.weight_decay or 0.0
        rule["step"] = 0 if step is None else step + 1
        rule["flags"] = ((_ANY_NUMBER if self.any_number else 0) |
                         (_REPLACE if self.replace_slots else 0))
        return rule

    def _rate_at(self, step: int) -> Any:
        rate = self._learning_rate
        return cast(Any, rate)(step) if callable(rate) else rate

    @property
    def learning_rate(self) -> Any:
        """The rate; of a schedule what it is at the next step."""
        rate = self._rate_at(self.iterations)
        return float(rate) if callable(self._learning_rate) else rate

    @learning_rate.setter
    def learning_rate(self, rate: Any) -> None:
        if callable(self._learning_rate) and not callable(rate):
            raise TypeError("the learning rate is a schedule: give another schedule")
        self._learning_rate = rate

    def exclude_from_weight_decay(self, var_list: Optional[Iterable[Any]] = None,
                                  var_names: Optional[Iterable[str]] = None) -> None:
        """No decay for these variables, and for those whose name has one of var_names
        in it."""
        self._undecayed.update(variable.name for variable in var_list or ())
        self._undecayed_parts.extend(var_names or ())

    def _decays(self, variable: Any) -> bool:
        name = variable.name
        return name not in self._undecayed and \
            not any(part in name for part in self._undecayed_parts)

    # ---- gradients ----

    def _clipped(self, gradients: Sequence[Any]) -> List[Any]:
        import numpy as np

        if self.clipvalue is not None:
            return [np.clip(g, -self.clipvalue, self.clipvalue) for g in gradients]
        if self.clipnorm is not None:
            return [_to_norm(g, _norm([g]), self.clipnorm) for g in gradients]
        if self.global_clipnorm is not None:
            norm = _norm(gradients)
            return [_to_norm(g, norm, self.global_clipnorm) for g in gradients]
        return list(gradients)

    def apply_gradients(self, grads_and_vars: Iterable[Tuple[Any, Any]],
                        step: Optional[int] = None,
                        timeout: Optional[float] = None) -> int:
        """Apply a gradient to each variable; a pair whose gradient is None is left out.
        That of a Table is IndexedSlices(values, ids); of a variable, IndexedSlices are
        zeros but for these rows.

        step: the number of updates before this one, for schedules and for rules that
        look at it; by default how often this object was called, and the servers count
        for themselves. timeout: outside of a worker's function, for each variable.
        Returns the number of updates after this one.
        """
        pairs = list(grads_and_vars)
        present = [(*_parts_of(g, v), v) for g, v in pairs if g is not None]
        if not present:
            raise ValueError("no variable has a gradient")
        if len(present) < len(pairs):
            left_out = [v.name for g, v in pairs if g is None]
            warnings.warn(f"no gradient for {', '.join(left_out)}", stacklevel=2)
        rule = self.rule(step)
        run = _muster.find_run()
        gradients = self._clipped([g for g, _, _ in present])
        for gradient, (_, ids, variable) in zip(gradients, present):
            own = rule if self._decays(variable) else dict(rule, weight_decay=0.0)
            if ids is not None:
                variable._apply_rule(ids, gradient, own, timeout)
            elif run is None:
                variable.apply_gradient(gradient, own, timeout=timeout)
            else:
                run.apply_gradient(variable, gradient, own)
        self.iterations = (self.iterations if step is None else step) + 1
        return self.iterations

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any],
              step: Optional[int] = None) -> int:
        """Like apply_gradients(), of two lists."""
        return self.apply_gradients(zip(grads, trainable_variables), step)

    def __repr__(self) -> str:
        return f"<muster.optimizers.{type(self).__name__} {self.rule()}>"


def _parts_of(gradient: Any, variable: Any) -> Tuple[Any, Any]:
    """A gradient as an array, and the ids of one of a table."""
    import numpy as np

    is_sparse = isinstance(gradient, IndexedSlices)
    if isinstance(variable, _muster.BaseTable):
        if not is_sparse:
            raise TypeError(f"table {variable.name!r}: its gradient is a muster."
                            "IndexedSlices(values, ids), got a "
                            f"{type(gradient).__name__}")
        return array_of(gradient.values), gradient.indices
    if not is_sparse:
        return array_of(gradient), None
    whole = np.zeros(variable.shape, variable.dtype)
    np.add.at(whole, array_of(gradient.indices), array_of(gradient.values))
    return whole, None


def _norm(gradients: Sequence[Any]) -> float:
    """The norm of all together, in double precision."""
    import numpy as np

    return math.sqrt(sum(float(np.sum(np.square(g, dtype=np.float64)))
                         for g in gradients))


def _to_norm(gradient: Any, norm: float, most: float) -> Any:
    """A norm that is not finite gives NaN, as in Keras, and the servers refuse that."""
    import numpy as np

    if norm <= most:
        return gradient
    factor = most / norm if math.isfinite(norm) else math.nan
    return (gradient * factor).astype(np.asarray(gradient).dtype, copy=False)


class SGD(Optimizer):
    """Descent: x -= rate * g. With momentum, Keras' form: v = momentum * v - rate * g;
    x += v, or with nesterov x += momentum * v - rate * g. Momentum has torch's form."""

    def __init__(self, learning_rate: Any = 0.01, momentum: float = 0.0,
                 nesterov: bool = False, weight_decay: Optional[float] = None,
                 **options: Any) -> None:
        super().__init__(learning_rate, weight_decay, **options)
        if not 0 <= momentum <= 1:
            raise ValueError(f"momentum is {momentum!r}: expected 0 to 1")
        self.momentum = momentum
        self.nesterov = nesterov

    def _numbers(self) -> Dict[str, Any]:
        if self.momentum == 0:
            return {"kind": "sgd"}
        return {"kind": "nesterov_keras" if self.nesterov else "momentum_keras",
                "momentum": self.momentum}


class Momentum(SGD):
    """Momentum in torch's form: v = momentum * v + g; x -= rate * v, or with nesterov
    x -= rate * (g + momentum * v). It differs from Keras' when the rate changes."""

    def __init__(self, learning_rate: Any = 0.01, momentum: float = 0.9,
                 nesterov: bool = False, weight_decay: Optional[float] = None,
                 **options: Any) -> None:
        super().__init__(learning_rate, momentum, nesterov, weight_decay, **options)

    def _numbers(self) -> Dict[str, Any]:
        return {"kind": "nesterov" if self.nesterov else "momentum",
                "momentum": self.momentum}


class Adagrad(Optimizer):
    """a += g^2; x -= rate * g / sqrt(a + epsilon)."""

    def __init__(self, learning_rate: Any = 0.001,
                 initial_accumulator_value: float = 0.1, epsilon: float = 1e-7,
                 weight_decay: Optional[float] = None, **options: Any) -> None:
        super().__init__(learning_rate, weight_decay, **options)
        self.initial_accumulator_value = initial_accumulator_value
        self.epsilon = epsilon

    def _numbers(self) -> Dict[str, Any]:
        return {"kind": "adagrad", "initial": self.initial_accumulator_value,
                "epsilon": self.epsilon}


class RowwiseAdagrad(Adagrad):
    """Adagrad with one accumulator for a row: a += the mean of g^2 over the row;
    x -= rate * g / (sqrt(a) + epsilon)."""

    def __init__(self, learning_rate: Any = 0.001,
                 initial_accumulator_value: float = 0.0, epsilon: float = 1e-8,
                 weight_decay: Optional[float] = None, **options: Any) -> None:
        super().__init__(learning_rate, initial_accumulator_value, epsilon, weight_decay,
                         **options)

    def _numbers(self) -> Dict[str, Any]:
        return dict(super()._numbers(), kind="rowwise_adagrad")


class RMSprop(Optimizer):
    """v = rho * v + (1 - rho) * g^2; x -= rate * g / sqrt(v + epsilon). centered: with
    the variance in place of v; with momentum: of these steps."""

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.9,
                 momentum: float = 0.0, epsilon: float = 1e-7, centered: bool = False,
                 weight_decay: Optional[float] = None, **options: Any) -> None:
        super().__init__(learning_rate, weight_decay, **options)
        self.rho = rho
        self.momentum = momentum
        self.epsilon = epsilon
        self.centered = centered

    def _numbers(self) -> Dict[str, Any]:
        rule: Dict[str, Any] = {"kind": "rmsprop", "rho": self.rho,
                                "epsilon": self.epsilon}
        if self.momentum != 0 or self.centered:
            rule["kind"] += "_centered" if self.centered else "_momentum"
            rule["momentum"] = self.momentum
        return rule


class _Moments(Optimizer):
    """What all kin of Adam have."""

    _kind = ""

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9,
                 beta_2: float = 0.999, epsilon: float = 1e-7,
                 weight_decay: Optional[float] = None, **options: Any) -> None:
        super().__init__(learning_rate, weight_decay, **options)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def _numbers(self) -> Dict[str, Any]:
        return {"kind": self._kind, "beta1": self.beta_1, "beta2": self.beta_2,
                "epsilon": self.epsilon}


class Adam(_Moments):
    """m += (1 - beta_1) * (g - m); v += (1 - beta_2) * (g^2 - v); x -= rate *
    sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(v) + epsilon); with amsgrad the
    largest v so far."""

    _kind = "adam"

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9,
                 beta_2: float = 0.999, epsilon: float = 1e-7, amsgrad: bool = False,
                 weight_decay: Optional[float] = None, **options: Any) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, weight_decay, **options)
        self.amsgrad = amsgrad

    def _numbers(self) -> Dict[str, Any]:
        rule = super()._numbers()
        if self.amsgrad:
            rule["kind"] = "amsgrad"
        return rule


class AdamW(Adam):
    """Adam with weight decay: x -= rate * weight_decay * x, then Adam's step."""

    _kind = "adamw"

    def __init__(self, learning_rate: Any = 0.001, weight_decay: float = 0.004,
                 beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7,
                 amsgrad: bool = False, **options: Any) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, weight_decay,
                         **options)


class Adamax(_Moments):
    """Adam with the largest gradient, faded by beta_2, in place of a root."""

    _kind = "adamax"


class Nadam(_Moments):
    """Adam with Nesterov's momentum."""

    _kind = "nadam"


class Lamb(_Moments):
    """Adam's step, scaled to the norm of the variable, which must have one shard."""

    _kind = "lamb"


class Lion(Optimizer):
    """x -= rate * sign(beta_1 * m + (1 - beta_1) * g); then m = beta_2 * m +
    (1 - beta_2) * g."""

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9,
                 beta_2: float = 0.99, weight_decay: Optional[float] = None,
                 **options: Any) -> None:
        super().__init__(learning_rate, weight_decay, **options)
        if not 0 < beta_1 <= 1:
            raise ValueError(f"beta_1 is {beta_1!r}: expected above 0, and up to 1")
        self.beta_1 = beta_1
        self.beta_2 = beta_2

    def _numbers(self) -> Dict[str, Any]:
        return {"kind": "lion", "beta1": self.beta_1, "beta2": self.beta_2}


class Adadelta(Optimizer):
    """Steps as large as those of the last updates: see muster/optimizer.h."""

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.95,
                 epsilon: float = 1e-7, weight_decay: Optional[float] = None,
                 **options: Any) -> None:
        super().__init__(learning_rate, weight_decay, **options)
        self.rho = rho
        self.epsilon = epsilon

    def _numbers(self) -> Dict[str, Any]:
        return {"kind": "adadelta", "rho": self.rho, "epsilon": self.epsilon}


class Ftrl(Optimizer):
    """Follow the regularized leader: see muster/optimizer.h. The first update forgets
    what the variable was before."""

    def __init__(self, learning_rate: Any = 0.001, learning_rate_power: float = -0.5,
                 initial_accumulator_value: float = 0.1,
                 l1_regularization_strength: float = 0.0,
                 l2_regularization_strength: float = 0.0,
                 l2_shrinkage_regularization_strength: float = 0.0, beta: float = 0.0,
                 weight_decay: Optional[float] = None, **options: Any) -> None:
        super().__init__(learning_rate, weight_decay, **options)
        self.learning_rate_power = learning_rate_power
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self.beta = beta

    def _numbers(self) -> Dict[str, Any]:
        return {"kind": "ftrl", "power": self.learning_rate_power,
                "initial": self.initial_accumulator_value,
                "l1": self.l1_regularization_strength,
                "l2": self.l2_regularization_strength,
                "shrinkage": self.l2_shrinkage_regularization_strength,
                "beta": self.beta}


_BY_NAME: Dict[str, Any] = {kind.__name__.lower(): kind for kind in (
    SGD, Momentum, Adagrad, RowwiseAdagrad, RMSprop, Adam, AdamW, Adamax, Nadam, Lamb,
    Lion, Adadelta, Ftrl)}


def _foreign(kind: Any, optimizer: Any) -> Any:
    """One like an object of Keras', by what its get_config() says."""
    known = {*inspect.signature(kind).parameters,
             *inspect.signature(Optimizer).parameters} - {"options"}
    config = {name: value for name, value in optimizer.get_config().items()
              if name in known and value is not None}
    rate = config.get("learning_rate")
    if not callable(rate) and not isinstance(rate, (int, float)):
        raise ValueError(f"optimizer {optimizer!r} has the rate {rate!r}: give one of "
                         "muster.optimizers.schedules to one of muster.optimizers")
    return kind(**config)


def get(identifier: Any) -> Optimizer:
    """An optimizer by its name ("adam" or "Adam"), with the defaults; by a number, which
    is SGD's rate; of an object of Keras' the like; one itself is returned. ValueError:
    another name."""
    if isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, (int, float)):
        return SGD(identifier)
    if isinstance(identifier, str) and identifier.lower() in _BY_NAME:
        named: Optimizer = _BY_NAME[identifier.lower()]()
        return named
    kind = _BY_NAME.get(type(identifier).__name__.lower())
    if kind is not None and hasattr(identifier, "get_config"):
        alike: Optimizer = _foreign(kind, identifier)
        return alike
    raise ValueError(f"optimizer {identifier!r} is unknown, expected one of "
                     f"{', '.join(_BY_NAME)}")


def of_rows(identifier: Any, gradients: Any, step: Optional[int]) -> Tuple[Any, Any]:
    """What travels with a push to a table, and the gradients, clipped. Rows count their
    steps themselves; `step` is that of a schedule."""
    optimizer = get(identifier)
    rule = dict(optimizer.rule(step), step=0)
    optimizer.iterations = (optimizer.iterations if step is None else step) + 1
    return rule, optimizer._clipped([array_of(gradients)])[0]
