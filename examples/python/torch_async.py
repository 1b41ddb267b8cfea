"""Asynchronous training of a PyTorch model: its parameters are muster's variables.

    python examples/python/torch_async.py

Each worker has a copy of the model and its own data. In each step it reads the newest
parameters from the servers, runs forwards and backwards, and sends the gradients; nobody
waits for anybody. Without PyTorch it says so and ends with 0.
"""

import importlib.util

import numpy as np

import muster

STEPS, BATCH = 1500, 64


def make_model():
    """A small network to learn y = sin(3 x), on one thread."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(1, 32), torch.nn.Tanh(),
                               torch.nn.Linear(32, 1))


def load(model, arrays):
    """Give the model these parameters."""
    import torch

    with torch.no_grad():
        for parameter, array in zip(model.parameters(), arrays):
            parameter.copy_(torch.from_numpy(array))


def loss_of(model, x):
    import torch

    x = torch.from_numpy(x)
    return torch.nn.functional.mse_loss(model(x), torch.sin(3 * x))


def step(model, variables, number):
    """One step on a worker; the gradients go to the parameter servers."""
    load(model, [variable.read() for variable in variables])
    x = np.random.default_rng(number).uniform(-1, 1, (BATCH, 1)).astype("float32")
    model.zero_grad()
    loss = loss_of(model, x)
    loss.backward()
    run = muster.current_run()
    for variable, parameter in zip(variables, model.parameters()):
        run.apply_gradient(variable, parameter.grad.numpy(), rate=0.05)
    return loss.item()


def main():
    if importlib.util.find_spec("torch") is None:
        print("skipped: PyTorch is not installed (pip install torch)")
        return 0
    with muster.LocalCluster(workers=2, ps=1) as cluster:
        coordinator = muster.ClusterCoordinator(cluster)
        model = make_model()
        variables = [muster.Variable(value.detach().numpy(), name=name)
                     for name, value in model.named_parameters()]
        models = coordinator.create_per_worker_value(make_model)
        steps = [coordinator.schedule(step, (models, variables, number))
                 for number in range(STEPS)]
        losses = coordinator.fetch(steps)
        load(model, [variable.read() for variable in variables])
    final = loss_of(model, np.linspace(-1, 1, 200, dtype="float32")[:, None]).item()
    print(f"loss: {losses[0]:.4f} in the first step, {final:.4f} at the end")
    return 0 if final < 0.1 * losses[0] else 1


if __name__ == "__main__":
    raise SystemExit(main())
