"""Actors in a simulated cluster: virtual time, faults of a seed, the same trace again."""

import time

import pytest

import muster
from muster.simulation import sleep


class Counter:
    def __init__(self, n=0):
        if n < 0:
            raise ValueError("n is below 0")
        self.n = n
        self.running = 0

    def add(self, number):
        if number < 0:
            raise ValueError("below 0")
        self.n += number
        return self.n

    async def overlap(self):
        self.running += 1
        running = self.running
        await sleep(1)
        self.running -= 1
        return running


class Caller:
    def __init__(self, other):
        self.other = other

    async def twice(self, number):
        first = await self.other.add(number)
        await sleep(0.5)
        return first, await self.other.add(number)

    async def failing(self):
        try:
            await self.other.add(-1)
        except ValueError as error:
            return str(error)

    async def many(self):
        return [await self.other.overlap() for _ in range(3)]


def test_methods_run_and_time_passes():
    began = time.monotonic()
    with muster.Simulation(seed=7, calm=True) as sim:
        counter = sim.spawn(Counter, (5,))
        caller = sim.spawn(Caller, (counter,), worker=1)
        assert counter.add(1) == 6
        with pytest.raises(ValueError, match="below 0"):
            counter.add(-1)
        before = sim.now
        assert caller.twice(2) == (8, 10)
        assert 0.5 <= sim.now - before < 0.7
        assert caller.failing() == "below 0"
        sim.run(3600)
        assert sim.now > 3600
    assert time.monotonic() - began < 60


def test_one_call_runs_at_a_time():
    with muster.Simulation(seed=7, workers=3) as sim:
        counter = sim.spawn(Counter)
        callers = [sim.spawn(Caller, (counter,), worker=i) for i in (1, 2)]
        starter = sim.spawn(Both, (callers,))
        assert starter.run() == [[1, 1, 1]] * 2


class Both:
    """Calls two actors, one while the other one waits."""

    def __init__(self, others):
        self.others = others

    async def run(self):
        return [await other.many() for other in self.others]


def story(seed):
    heard = []
    with muster.Simulation(seed=seed, workers=3) as sim:
        counter = sim.spawn(Counter, (5,))
        caller = sim.spawn(Caller, (counter,), worker=1)
        sim.chaos(10)
        for _ in range(20):
            try:
                heard.append((caller.twice(1), sim.now))
            except muster.ActorError as error:
                heard.append((error.ran, str(error), sim.now))
        return heard, sim.trace


def test_a_seed_gives_the_same_trace_again():
    traces = {}
    for seed in range(1, 21):
        traces[seed] = story(seed)
        assert traces[seed] == story(seed)
    assert len({str(trace) for trace in traces.values()}) == 20
    said = str(traces)
    assert "'maybe'" in said and "'no'" in said


def test_a_crash_ends_calls_and_actors():
    with muster.Simulation(seed=7, calm=True) as sim:
        counter = sim.spawn(Counter, (5,))
        caller = sim.spawn(Caller, (counter,), worker=1)
        assert counter.add(1) == 6
        sim.crash(0, 1.0)
        with pytest.raises(muster.ActorError) as error:
            caller.twice(1)
        assert error.value.ran in ("no", "maybe")
        sim.run(5)
        with pytest.raises(muster.ActorError) as error:
            counter.add(1)
        assert error.value.ran == "no"
        again = sim.spawn(Counter, (1,))
        assert again.add(1) == 2


def test_what_must_never_be_fails():
    with pytest.raises(AssertionError, match="seed 3: .*too many"):
        with muster.Simulation(seed=3) as sim:
            counts = []

            def look():
                if len(counts) > 3:
                    raise ValueError("too many")

            sim.check(look)
            counter = sim.spawn(Counter)
            while len(counts) < 10:
                counts.append(counter.add(1))


def test_a_constructor_that_raises_is_an_error_of_calls():
    with muster.Simulation(seed=3) as sim:
        with pytest.raises(muster.ActorError):
            sim.spawn(Counter, (-1,)).add(1)
