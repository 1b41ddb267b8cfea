"""A bank of actors: accounts on two workers, and transfers that are done or not done.

    python examples/python/bank.py

Each account is an actor. The bank, another one, moves money between them while many
callers ask it to: it takes from one account, gives to the other, and gives back what
could not be given. At the end the money is counted.
"""

import random

import muster

ACCOUNTS = 16
FIRST = 1000
TRANSFERS = 2000


class Account:
    """Has some money."""

    def __init__(self, balance):
        self.balance = balance

    def withdraw(self, amount):
        if amount > self.balance:
            raise ValueError(f"there is only {self.balance}")
        self.balance -= amount

    def deposit(self, amount):
        self.balance += amount

    def show(self):
        return self.balance


class Bank:
    """Moves money between accounts, several transfers at a time."""

    def __init__(self, accounts):
        self.accounts = accounts
        self.refused = 0

    async def transfer(self, source, target, amount):
        try:
            await self.accounts[source].withdraw(amount)
        except ValueError:
            self.refused += 1
            return False
        await self.accounts[target].deposit(amount)
        return True

    def show_refused(self):
        return self.refused


def main():
    chance = random.Random(7)
    with muster.LocalCluster(workers=2) as cluster:
        coordinator = muster.ClusterCoordinator(cluster)
        accounts = [coordinator.spawn(Account, (FIRST,)) for _ in range(ACCOUNTS)]
        bank = coordinator.spawn(Bank, (accounts,), concurrency=32)
        done = [bank.transfer(*chance.sample(range(ACCOUNTS), 2),
                              chance.randrange(1, 400)) for _ in range(TRANSFERS)]
        moved = sum(coordinator.fetch(done))
        refused = bank.show_refused().fetch()
        total = sum(account.show().fetch() for account in accounts)
    print(f"{moved} transfers done, {refused} refused: there is {total} in the bank")
    return 0 if total == ACCOUNTS * FIRST and moved + refused == TRANSFERS else 1


if __name__ == "__main__":
    raise SystemExit(main())
