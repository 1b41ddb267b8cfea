"""Initial values of variables and tables, with Keras' names and arguments.

    weights = muster.Variable(muster.initializers.GlorotUniform(seed=1), name="weights",
                              shape=(784, 10))

Each element is a function of the seed, the variable's name and the element's index, so
that a variable begins alike on any number of servers and shards. The servers generate
what they have, each by itself; Orthogonal alone is computed by who creates the variable.
Each number of a table's row is a function of the seed, the table's name, the id and the
column; its fans are those of one row. Keras draws other numbers for the same seed.
"""

from __future__ import annotations

import inspect
import math
import secrets
from typing import Any, Dict, Optional, Sequence, Tuple, Type, Union

from .. import _muster

__all__ = ["Constant", "GlorotNormal", "GlorotUniform", "HeNormal", "HeUniform",
           "Initializer", "LecunNormal", "LecunUniform", "Ones", "Orthogonal",
           "RandomNormal", "RandomUniform", "TruncatedNormal", "VarianceScaling", "Zeros",
           "get"]

# The numbers of enum mu_initializer_kind.
_CONSTANT, _UNIFORM, _NORMAL, _TRUNCATED, _ORTHOGONAL = 1, 2, 3, 4, 11
_TRUNCATED_DEVIATION = 0.87962566103423978     # of what is within two deviations


def _seed_of(seed: Optional[int]) -> int:
    if seed is None:
        return secrets.randbits(64)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed is {seed!r}, expected an int or None")
    return seed % (1 << 64)


class Initializer:
    """The base class. Called with a shape and a dtype, an initializer gives the values
    that a variable of that name begins with, as an array."""

    _is_seeded = False      # its seed was given
    seed: int = 0

    def _set_seed(self, seed: Optional[int]) -> None:
        self.seed, self._is_seeded = _seed_of(seed), seed is not None

    def _parameters(self, shape: Tuple[int, ...]) -> Tuple[int, int, float, float]:
        """Kind, seed and two numbers, as mu_initializer has them."""
        raise NotImplementedError

    def __call__(self, shape: Union[int, Sequence[int]], dtype: Any = "float32",
                 name: str = "Variable") -> Any:
        dims = (shape,) if isinstance(shape, int) else tuple(shape)
        return _muster.initializer_values(self._parameters(dims), name, dims, dtype)

    def get_config(self) -> Dict[str, Any]:
        """The arguments of the constructor."""
        return {name: value for name, value in self.__dict__.items() if name[0] != "_"}

    @classmethod
    def from_config(cls, config: Dict[str, Any]) -> "Initializer":
        """One with these arguments."""
        return cls(**config)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}"
                              for name, value in self.get_config().items())
        return f"{type(self).__name__}({arguments})"


class Constant(Initializer):
    """All elements are `value`, which the dtype must have."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def _parameters(self, shape: Tuple[int, ...]) -> Tuple[int, int, float, float]:
        if float(self.value) != self.value:
            raise OverflowError(f"{self.value} is out of range for an initializer")
        return _CONSTANT, 0, float(self.value), 0.0


class Zeros(Constant):
    """All elements are 0."""

    def __init__(self) -> None:
        super().__init__(0)

    def get_config(self) -> Dict[str, Any]:
        return {}


class Ones(Constant):
    """All elements are 1."""

    def __init__(self) -> None:
        super().__init__(1)

    def get_config(self) -> Dict[str, Any]:
        return {}


class RandomUniform(Initializer):
    """Between minval and maxval. seed: an int; None: another one at each time."""

    def __init__(self, minval: float = -0.05, maxval: float = 0.05,
                 seed: Optional[int] = None) -> None:
        self.minval, self.maxval = minval, maxval
        self._set_seed(seed)

    def _parameters(self, shape: Tuple[int, ...]) -> Tuple[int, int, float, float]:
        return _UNIFORM, self.seed, self.minval, self.maxval


class RandomNormal(Initializer):
    """Normally distributed."""

    _kind = _NORMAL

    def __init__(self, mean: float = 0.0, stddev: float = 0.05,
                 seed: Optional[int] = None) -> None:
        self.mean, self.stddev = mean, stddev
        self._set_seed(seed)

    def _parameters(self, shape: Tuple[int, ...]) -> Tuple[int, int, float, float]:
        return self._kind, self.seed, self.mean, self.stddev


class TruncatedNormal(RandomNormal):
    """The same without what is beyond two deviations of the mean."""

    _kind = _TRUNCATED


def _fans(shape: Tuple[int, ...]) -> Tuple[float, float]:
    """Inputs and outputs of a whole variable."""
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    rest = math.prod(shape[:-2])
    return rest * shape[-2], rest * shape[-1]


class VarianceScaling(Initializer):
    """A variance of scale / n. mode says what n is: "fan_in", "fan_out" or "fan_avg" of
    the whole variable. distribution: "truncated_normal", "untruncated_normal" or
    "uniform". ValueError: another mode or distribution, a scale that is not above 0."""

    _MODES = ("fan_in", "fan_out", "fan_avg")
    _DISTRIBUTIONS = ("truncated_normal", "untruncated_normal", "uniform")

    def __init__(self, scale: float = 1.0, mode: str = "fan_in",
                 distribution: str = "truncated_normal",
                 seed: Optional[int] = None) -> None:
        if not scale > 0:
            raise ValueError(f"scale is {scale!r}, expected a number above 0")
        if mode not in self._MODES:
            raise ValueError(f"mode is {mode!r}, expected one of {self._MODES}")
        if distribution == "normal":
            distribution = "truncated_normal"
        if distribution not in self._DISTRIBUTIONS:
            raise ValueError(f"distribution is {distribution!r}, expected one of "
                             f"{self._DISTRIBUTIONS}")
        self.scale, self.mode, self.distribution = scale, mode, distribution
        self._set_seed(seed)

    def _parameters(self, shape: Tuple[int, ...]) -> Tuple[int, int, float, float]:
        fan_in, fan_out = _fans(shape)
        count = {"fan_in": fan_in, "fan_out": fan_out,
                 "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, count)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return _UNIFORM, self.seed, -limit, limit
        if self.distribution == "untruncated_normal":
            return _NORMAL, self.seed, 0.0, math.sqrt(variance)
        return _TRUNCATED, self.seed, 0.0, math.sqrt(variance) / _TRUNCATED_DEVIATION


class _Scaling(VarianceScaling):
    """One with a fixed scale, mode and distribution."""

    _fixed: Tuple[float, str, str]

    def __init__(self, seed: Optional[int] = None) -> None:
        super().__init__(*self._fixed, seed=seed)

    def get_config(self) -> Dict[str, Any]:
        return {"seed": self.seed}


class GlorotUniform(_Scaling):
    """Within sqrt(6 / (fan_in + fan_out)) of 0."""

    _fixed = (1.0, "fan_avg", "uniform")


class GlorotNormal(_Scaling):
    """Truncated normal with a deviation of sqrt(2 / (fan_in + fan_out))."""

    _fixed = (1.0, "fan_avg", "truncated_normal")


class HeUniform(_Scaling):
    """Within sqrt(6 / fan_in) of 0."""

    _fixed = (2.0, "fan_in", "uniform")


class HeNormal(_Scaling):
    """Truncated normal with a deviation of sqrt(2 / fan_in)."""

    _fixed = (2.0, "fan_in", "truncated_normal")


class LecunUniform(_Scaling):
    """Within sqrt(3 / fan_in) of 0."""

    _fixed = (1.0, "fan_in", "uniform")


class LecunNormal(_Scaling):
    """Truncated normal with a deviation of sqrt(1 / fan_in)."""

    _fixed = (1.0, "fan_in", "truncated_normal")


class Orthogonal(Initializer):
    """Orthonormal columns, or rows where there are fewer of these, times gain; all
    dimensions but the last are rows. At most 2**20 elements, of two dimensions or
    more."""

    def __init__(self, gain: float = 1.0, seed: Optional[int] = None) -> None:
        self.gain = gain
        self._set_seed(seed)

    def _parameters(self, shape: Tuple[int, ...]) -> Tuple[int, int, float, float]:
        return _ORTHOGONAL, self.seed, self.gain, 0.0


_BY_NAME: Dict[str, Type[Initializer]] = {
    "constant": Constant, "glorot_normal": GlorotNormal, "glorot_uniform": GlorotUniform,
    "he_normal": HeNormal, "he_uniform": HeUniform, "lecun_normal": LecunNormal,
    "lecun_uniform": LecunUniform, "ones": Ones, "orthogonal": Orthogonal,
    "random_normal": RandomNormal, "random_uniform": RandomUniform,
    "truncated_normal": TruncatedNormal, "variance_scaling": VarianceScaling,
    "zeros": Zeros,
}


_ALIASES = {"normal": "random_normal", "one": "ones", "uniform": "random_uniform",
            "zero": "zeros"}


def _foreign(kind: Type[Initializer], initializer: Any) -> Initializer:
    """One like an object of Keras or TensorFlow, by its attributes."""
    config = {name: getattr(initializer, name)
              for name in list(inspect.signature(kind.__init__).parameters)[1:]
              if hasattr(initializer, name)}
    if not isinstance(config.get("seed", 0), int):
        del config["seed"]
    return kind(**config)


def get(identifier: Any) -> Initializer:
    """An initializer by its name ("glorot_uniform" or "GlorotUniform"), by a name and its
    numbers (("uniform", -1, 1)), or by a number, which is Constant's; of an object of
    Keras' the like; one itself is returned. ValueError: another name."""
    if isinstance(identifier, Initializer):
        return identifier
    if isinstance(identifier, (int, float)):
        return Constant(identifier)
    name, numbers = identifier, ()
    if isinstance(identifier, tuple) and identifier:
        name, numbers = identifier[0], identifier[1:]
    if isinstance(name, str):
        name = _ALIASES.get(name, name)
    for known, kind in _BY_NAME.items():
        if name in (known, kind.__name__):
            return kind(*numbers)
        if type(name).__name__ == kind.__name__:
            return _foreign(kind, name)
    raise ValueError(f"initializer {identifier!r} is unknown, expected one of "
                     f"{', '.join(_BY_NAME)}")


def rows_of(identifier: Any, dim: int, seed: int) -> Tuple[int, int, float, float]:
    """The parameters of what the rows of a table begin as. seed: for an initializer that
    was given none, so that all who open the table have the same."""
    initializer = get(identifier)
    kind, own, first, second = initializer._parameters((dim,))
    return kind, own if initializer._is_seeded else _seed_of(seed), first, second
