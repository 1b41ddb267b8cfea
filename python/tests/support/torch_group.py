"""One process of a torch.distributed group over MusterStore: what test_torch_store.py
runs as closures, one for each worker."""

import datetime


def run(rank, size, prefix, dies=False):
    """Join a group, add the ranks of all up, and leave it; or die once it is joined."""
    import os

    import torch
    import torch.distributed as distributed

    import muster
    from muster.torch_store import MusterStore

    store = MusterStore(muster.current_run().node, prefix=prefix, timeout=60)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=size,
                                   timeout=datetime.timedelta(seconds=60))
    try:
        if dies:
            os._exit(9)
        tensor = torch.tensor([float(rank + 1)])
        distributed.all_reduce(tensor)
        objects = [None] * size
        distributed.all_gather_object(objects, {"rank": rank})
        distributed.barrier()
        return float(tensor[0]), [item["rank"] for item in objects]
    finally:
        distributed.destroy_process_group()
