"""Model servers behind one name: each call goes to the one with the least to do.

    python examples/python/model_servers.py

Each server is an actor with a name and a model in memory. When its worker is lost, it is
made anew on another one. The callers know "model" alone, an actor that passes their calls
on, and calls another server when one is lost. Its own worker may be lost, too: then the
caller asks again. A prediction may be made twice, which does no harm.
"""

import asyncio
import collections
import os
import signal
import time

import numpy

import muster

SERVERS = 4
CALLS = 2000
SIZE = 64
KILLS = 3


class Server:
    """Has a model."""

    def __init__(self, seed):
        self.weights = numpy.random.default_rng(seed).normal(size=(SIZE, SIZE))

    def predict(self, x):
        time.sleep(0.001)       # a real one would take its time
        return float((self.weights @ x).sum()), os.getpid()


class Model:
    """All servers, for their callers."""

    def __init__(self, names):
        self.servers = [muster.actor(name) for name in names]
        self.running = [0] * len(names)     # calls of each

    async def _return(self, number):
        """One that was lost gets calls again once its next life answers."""
        try:
            await self.servers[number].predict(numpy.zeros(SIZE))
        finally:
            self.running[number] -= 1

    async def predict(self, x):
        while True:
            number = min(range(len(self.servers)), key=self.running.__getitem__)
            self.running[number] += 1
            try:
                answer = await self.servers[number].predict(x)
            except muster.ActorError:
                asyncio.ensure_future(self._return(number))
                continue
            self.running[number] -= 1
            return answer


def answer_of(model, x, value):
    """What a call gives; it is made again while it is lost with its worker."""
    while True:
        try:
            return value.fetch()
        except muster.ActorError:
            value = model.predict(x)


def main():
    rng = numpy.random.default_rng(1)
    inputs = rng.normal(size=(CALLS, SIZE))
    began = time.monotonic()
    with muster.LocalCluster(workers=3) as cluster:
        coordinator = muster.ClusterCoordinator(cluster)
        names = [f"server {i}" for i in range(SERVERS)]
        for name in names:
            coordinator.spawn(Server, (5,), name=name)
        model = coordinator.spawn(Model, (names,), name="model", concurrency=64)
        answers = []
        for part in numpy.split(inputs, KILLS + 1):
            values = [model.predict(x) for x in part]
            if len(answers) < CALLS - len(part):
                os.kill(answer_of(model, part[0], values[0])[1], signal.SIGKILL)
            answers += [answer_of(model, x, value) for x, value in zip(part, values)]
    right = Server(5).weights
    wrong = sum(abs(answer - (right @ x).sum()) > 1e-9
                for (answer, _), x in zip(answers, inputs))
    places = collections.Counter(pid for _, pid in answers)
    rate = len(answers) / (time.monotonic() - began)
    print(f"{len(answers)} predictions by {SERVERS} servers in {len(places)} processes, "
          f"{wrong} of them wrong, {rate:.0f} a second")
    return 1 if wrong or len(answers) != CALLS else 0


if __name__ == "__main__":
    raise SystemExit(main())
