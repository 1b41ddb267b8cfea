"""A bank whose accounts survive their workers, which are killed while money is moved.

    python examples/python/bank.py

Each account is a kept actor: what it has recorded is in a file before anybody hears of
it, and a call takes effect once, although its worker is killed meanwhile. So a transfer
needs no more than to take the money from one account, and then to give it to the other.
At the end the money is counted.
"""

import asyncio
import os
import random
import signal
import tempfile
import time

import muster

ACCOUNTS = 16
FIRST = 1000
TRANSFERS = 2000
AT_A_TIME = 32
KILLS = 6


class Account:
    """Has some money."""

    def __init__(self, balance):
        self.balance = balance

    def withdraw(self, amount):
        self.balance -= amount
        if self.balance < 0:        # an exception: the call has not happened
            raise ValueError(f"there is only {self.balance + amount}")

    def deposit(self, amount):
        self.balance += amount

    def show(self):
        return self.balance, os.getpid()


async def transfer(source, target, amount):
    """Whether the money was there."""
    try:
        await source.withdraw(amount)
    except ValueError:
        return False
    await target.deposit(amount)
    return True


async def kill_workers(accounts, chance, pause):
    """Kill the worker of an account, again and again."""
    killed = 0
    while killed < KILLS:
        await asyncio.sleep(pause)
        _, pid = await chance.choice(accounts).show()
        os.kill(pid, signal.SIGKILL)
        killed += 1
    return killed


async def run(accounts, chance):
    """Make all transfers while workers are killed."""
    places = asyncio.Semaphore(AT_A_TIME)

    async def one():
        async with places:
            return await transfer(*chance.sample(accounts, 2), chance.randrange(1, 400))

    killer = asyncio.ensure_future(kill_workers(accounts, chance, 0.3))
    done = await asyncio.gather(*(one() for _ in range(TRANSFERS)))
    while not killer.done():        # the transfers were faster
        done.append(await one())
    return done, killer.result()


def main():
    chance = random.Random(7)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, \
            muster.LocalCluster(workers=2, store=f"journal:{folder}/keys") as cluster:
        coordinator = muster.ClusterCoordinator(cluster)
        accounts = [coordinator.spawn(Account, (FIRST,), name=f"account {i}", kept=True,
                                      restarts=100)
                    for i in range(ACCOUNTS)]
        done, killed = asyncio.run(run(accounts, chance))
        total = sum(account.show().fetch()[0] for account in accounts)
    print(f"{sum(done)} transfers done, {len(done) - sum(done)} refused, {killed} times "
          f"a worker was killed, in {time.monotonic() - began:.1f} s: there is {total} "
          "in the bank")
    return 0 if total == ACCOUNTS * FIRST and len(done) >= TRANSFERS else 1


if __name__ == "__main__":
    raise SystemExit(main())
