"""Examples of actors from the documentation of Ray and Dask, line by line."""

import asyncio

import pytest

import muster
from conftest import wait_until


def test_rays_counter(coordinator):
    # @ray.remote
    class Counter:
        def __init__(self):
            self.value = 0

        def increment(self):
            self.value += 1
            return self.value

        def get_counter(self):
            return self.value

    counter = coordinator.spawn(Counter)            # Counter.remote()
    obj_ref = counter.increment()                   # counter.increment.remote()
    assert obj_ref.fetch(10) == 1                   # ray.get(obj_ref)
    counters = [coordinator.spawn(Counter) for _ in range(10)]
    results = coordinator.fetch([c.increment() for c in counters])
    assert results == [1] * 10
    results = coordinator.fetch([counters[0].increment() for _ in range(5)])
    assert results == [2, 3, 4, 5, 6]


def test_rays_handle_that_is_passed_to_tasks(coordinator):
    class Counter:
        def __init__(self):
            self.counter = 0

        def inc(self):
            self.counter += 1

        def get_counter(self):
            return self.counter

    # @ray.remote
    def f(counter):
        for _ in range(10):
            counter.inc()                           # counter.inc.remote()

    counter = coordinator.spawn(Counter)
    values = [coordinator.schedule(f, (counter,)) for _ in range(3)]
    coordinator.fetch(values)                       # ray.wait
    assert wait_until(lambda: counter.get_counter().fetch(10) == 30)


def test_rays_asynchronous_actor_with_its_own_word_for_concurrency(coordinator):
    class AsyncActor:
        async def run_concurrent(self):
            self.started = getattr(self, "started", 0) + 1
            await asyncio.sleep(0.1)
            return self.started

    actor = coordinator.spawn(AsyncActor, concurrency=4)    # max_concurrency=4
    assert coordinator.fetch([actor.run_concurrent() for _ in range(4)]) == [4] * 4


def test_rays_generator(coordinator):
    class Actor:
        def gen(self):
            for i in range(3):
                yield i
            raise ValueError

    stream = coordinator.spawn(Actor).gen()         # num_returns="streaming"
    items = []
    with pytest.raises(ValueError):
        for item in stream:
            items.append(item)
    assert items == [0, 1, 2]


def test_rays_exit(coordinator):
    class Actor:
        def exit(self):
            muster.die()                            # ray.actor.exit_actor()

        def fail(self):
            return 1

    actor = coordinator.spawn(Actor)
    actor.exit()
    with pytest.raises(muster.ActorError):          # ray.exceptions.RayActorError
        actor.fail().fetch(10)


def test_dasks_counter(coordinator):
    class Counter:
        n = 0

        def __init__(self):
            self.n = 0

        def increment(self):
            self.n += 1
            return self.n

    counter = coordinator.spawn(Counter)    # client.submit(Counter, actor=True).result()
    future = counter.increment()
    assert future.fetch(10) == 1            # future.result()
    L = []
    for _ in range(10):
        future = counter.increment()
        L.append(future)
    assert coordinator.fetch(L) == list(range(2, 12))   # client.gather


def test_dasks_parameter_server(coordinator):
    class ParameterServer:
        data = {}

        def put(self, key, value):
            self.data[key] = value

        def get(self, key):
            return self.data[key]

    def f(ps, i):
        ps.put("parameter", i).fetch(10)
        return ps.get("parameter").fetch(10)

    ps = coordinator.spawn(ParameterServer)
    assert coordinator.schedule(f, (ps, 5)).fetch(10) == 5
