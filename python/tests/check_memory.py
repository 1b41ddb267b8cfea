#!/usr/bin/env python3
"""What the extension does inside one process, under valgrind: `check_memory.py`.

The walk below has the chief, a worker and a parameter server in one process, so that both
sides of each call are looked at. Errors count when the library or the extension is among
the callers, and so do blocks that nothing points to any more; what an interpreter and
NumPy do by themselves does not. `check_memory.py --walk` is the walk alone.
"""

import asyncio
import collections
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as tree

# Of libraries, as valgrind names the objects of a stack.
OURS = ("_muster.", "libmuster.so")
SECONDS_MAX = 240


class Odd(Exception):
    """Cannot be rebuilt by its __init__."""

    def __init__(self, first, second):
        super().__init__("two words")


def identity(value):
    return value


def fail(kind):
    raise {"value": ValueError, "key": KeyError}[kind]("walk")


def fail_oddly():
    raise Odd(1, 2)


def effects(total, vector):
    import muster

    run = muster.current_run()
    run.add(total, 1)
    run.add(vector, [1.0, 2.0])
    run.log("a line")
    run.report_metric("progress", 0.5, 1)
    return run.worker, run.attempt, run.name, run.cancelled()


def nap(seconds):
    import muster

    limit = time.monotonic() + seconds
    while time.monotonic() < limit and not muster.current_run().cancelled():
        time.sleep(0.005)


def open_nodes(muster):
    """Nodes of a cluster in this process: chief, worker, ps."""
    folder = tempfile.mkdtemp(prefix="muster-walk-")
    cluster = {kind: [f"ipc://{folder}/{kind}"] for kind in ("chief", "worker", "ps")}
    nodes = [muster.Node(cluster, task_type=kind, task_index=0, log_level=0)
             for kind in ("worker", "ps", "chief")]
    for node in nodes[:2]:
        node.serve()
    return nodes, folder


def walk_values(coordinator):
    import numpy as np

    values = [None, True, -7, 2**62, 2**80, 1.5, "text", "\N{SNOWMAN}", b"bytes",
              [1, [2]], (1, 2), {"a": [b"b", {"c": None}]}, {1, 2}, range(3),
              "x" * 100000]
    for dtype in ("float32", "float64", "int8", "int64", "bool", "complex128"):
        values.append(np.arange(6).astype(dtype).reshape(2, 3))
    values += [np.zeros(0), np.asfortranarray(np.ones((3, 4))), np.ones(100000)[::2],
               bytearray(b"z" * 5000), memoryview(b"m" * 5000).toreadonly().obj]
    remote = [coordinator.schedule(identity, (value,)) for value in values]
    for value, result in zip(values, coordinator.fetch(remote, 120)):
        same = np.array_equal(value, result) if isinstance(value, np.ndarray) \
            else value == result
        assert same, (value, result)
    assert coordinator.fetch({"a": (remote[2], [remote[6]])}, 60) == {"a": (-7, ["text"])}
    chain = coordinator.schedule(identity, ({"in": [remote[8], remote[-1]]},))
    assert chain.fetch(60)["in"][0] == b"bytes"
    captured = [1, 2, 3]
    assert coordinator.schedule(lambda more=0: sum(captured) + more, kwargs={"more": 4}
                                ).fetch(60) == 10


def walk_errors(muster, coordinator):
    for function, args, kind in ((fail, ("value",), ValueError),
                                 (fail, ("key",), KeyError),
                                 (fail_oddly, (), Odd),
                                 ("nobody", (), muster.errors.NotFoundError)):
        value = coordinator.schedule(function, args)
        try:
            value.fetch(60)
            raise AssertionError("no error")
        except kind as error:
            assert error is not None
        try:
            coordinator.join(60)
        except Exception:
            pass
    coordinator.errors()
    for bad in (lambda: coordinator.schedule(3),
                lambda: coordinator.schedule(identity, 3),
                lambda: coordinator.schedule(identity, (), {}, nonsense=1),
                lambda: coordinator.schedule(identity, (threading.Lock(),)),
                lambda: coordinator.fetch(None, "soon")):
        try:
            bad()
        except Exception as error:
            assert isinstance(error, Exception)


def walk_waits(muster, coordinator):
    value = coordinator.schedule(nap, (60,))
    try:
        value.fetch(0.05)
    except muster.errors.DeadlineExceededError:
        pass
    seen = []
    value.add_done_callback(seen.append)
    value.cancel()
    try:
        value.fetch(60)
    except muster.errors.CancelledError:
        pass
    limit = time.monotonic() + 60
    while not seen and time.monotonic() < limit:
        time.sleep(0.01)
    assert seen
    del seen[:]

    async def main():
        first = await coordinator.schedule(identity, (1,))
        rest = await asyncio.gather(*(asyncio.ensure_future(wrap(coordinator, i))
                                      for i in range(10)))
        return first, rest

    async def wrap(coordinator, i):
        return await coordinator.schedule(identity, (i,))

    assert asyncio.run(main()) == (1, list(range(10)))

    def use():
        coordinator.fetch([coordinator.schedule(identity, (i,)) for i in range(50)], 120)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    interrupted(coordinator)


def interrupted(coordinator):
    """Ctrl-C in a wait."""
    value = coordinator.schedule(nap, (60,))
    signal.signal(signal.SIGINT, signal.default_int_handler)    # may have been ignored
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        value.fetch()
        raise AssertionError("not interrupted")
    except KeyboardInterrupt:
        pass
    value.cancel()


def walk_variables(muster, node, coordinator):
    import numpy as np

    total = muster.Variable(0, name="total", dtype="int64", node=node)
    vector = muster.Variable([0.0, 0.0], name="vector", node=node)
    runs = [coordinator.schedule(effects, (total, vector), name=f"run-{i}",
                                 effect_once=i % 2 == 0) for i in range(40)]
    coordinator.join(120)
    assert total.read() == 40 and np.array_equal(vector.read(), [40.0, 80.0])
    assert coordinator.fetch(runs[0], 60)[:2] == (0, 1)
    vector.assign([1.0, 2.0])
    vector.assign_add(1.0)
    vector.assign_sub([1.0, 1.0])
    vector.apply_gradient([1.0, 1.0], 0.5, momentum=0.5)
    assert np.allclose(np.asarray(vector), [0.5, 1.5])
    for bad in (lambda: vector.assign([1.0]), lambda: vector.assign("x"),
                lambda: muster.Variable(0, name="", node=node),
                lambda: muster.Variable([0.0], name="vector", node=node)):
        try:
            bad()
            raise AssertionError("no error")
        except (ValueError, TypeError, muster.MusterError):
            pass
    total.close()
    vector.close()


def walk_requests(muster, node):
    """Without waiting; of a variable, and of bags of a table."""
    v = muster.Variable([1.0, 2.0], name="asked", node=node)
    table = muster.Table("asked", dim=2, optimizer=1.0, node=node)
    futures = [v.assign_async([3.0, 4.0]), v.assign_add_async(1.0), v.read_async(),
               v.read_async(max_age=1.0), v.gather_async([1, 0, 1]),
               v.scatter_add_async([0, 0], 1.0), v.apply_gradient_async([1.0, 1.0], 0.1),
               table.lookup_async([1, 2, 3], offsets=[0, 1], weights=[1.0, 2.0, 3.0]),
               table.apply_gradients_async([1, 2], [[1.0, 1.0]], offsets=[0])]
    for future in futures:
        future.result(30)
    assert v.read_async().cancel() in (True, False)
    for fails in (v.gather_async([2]), v.apply_gradient_async([float("nan"), 1.0], 0.1),
                  table.lookup_async([1], offsets=[1])):
        try:
            fails.result(30)
            raise AssertionError("no error")
        except muster.errors.MusterError:
            pass
    v.read()        # after which all that was cancelled has ended, too
    table.close()


def walk_per_worker(coordinator):
    values = coordinator.create_per_worker_value(dict, ([("a", 1)],))
    assert coordinator.schedule(lambda d: d["a"], (values,)).fetch(60) == 1
    dataset = iter(coordinator.create_per_worker_dataset(lambda: range(5)))
    taken = [coordinator.schedule(next, (dataset,)).fetch(60) for _ in range(5)]
    assert taken == list(range(5))
    values.close()


def walk():
    import muster._worker

    nodes, folder = open_nodes(muster)
    coordinator = muster.ClusterCoordinator(nodes[-1], timeout=60)
    walk_values(coordinator)
    walk_errors(muster, coordinator)
    walk_waits(muster, coordinator)
    walk_per_worker(coordinator)
    walk_variables(muster, nodes[-1], coordinator)
    walk_requests(muster, nodes[-1])
    coordinator.close()
    for node in reversed(nodes):
        node.close(10)
    try:
        coordinator.schedule(identity, (1,))
        raise AssertionError("no error")
    except muster.errors.ClosedError:
        pass
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
    muster._worker._variables.clear()       # which a worker keeps as long as it lives
    del coordinator, node, nodes
    gc.collect()
    print("walk: done", flush=True)


# ---- under valgrind ----

def frames_of(error):
    """Of all stacks of an error: (object, function, file:line)."""
    for frame in error.iter("frame"):
        yield (frame.findtext("obj") or "", frame.findtext("fn") or "?",
               f"{frame.findtext('file') or ''}:{frame.findtext('line') or ''}")


def is_our_object(frame):
    return any(name in os.path.basename(frame[0]) for name in OURS)


def below_python(frames):
    """Those up to the first one that runs Python code: what that code allocates, as the
    import of a module does, is not its caller's."""
    names = [function for _, function, _ in frames]
    evaluates = "_PyEval_EvalFrameDefault"
    return frames[:names.index(evaluates)] if evaluates in names else frames


def is_ours(error):
    """Objects of Python, whose users point into their middle, are possibly lost always;
    what the library has allocated itself is not."""
    frames = list(frames_of(error))
    kind = error.findtext("kind")
    if kind == "Leak_StillReachable":
        return False
    if kind == "Leak_PossiblyLost":
        return len(frames) > 1 and is_our_object(frames[1])
    if kind.startswith("Leak_"):
        frames = below_python(frames)
    return any(is_our_object(frame) for frame in frames)


def tell(error):
    words = error.findtext("what") or error.findtext("xwhat/text") or ""
    print(f"{error.findtext('kind')}: {words}")
    for name, function, place in list(frames_of(error))[:25]:
        print(f"    {function} ({os.path.basename(name)} {place})")


def main():
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        environment = dict(os.environ, PYTHONMALLOC="malloc", PYTHONHASHSEED="0",
                           OPENBLAS_NUM_THREADS="1", PYTHONFAULTHANDLER="")
        process = subprocess.Popen(
            ["valgrind", "--leak-check=full", "--num-callers=40", "--xml=yes",
             f"--xml-file={report.name}", "--child-silent-after-fork=yes",
             "--fair-sched=yes", sys.executable, os.path.abspath(__file__), "--walk"],
            env=environment, start_new_session=True)
        try:
            code = process.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            print(f"not done within {SECONDS_MAX} s")
            return 1
        try:
            found = list(tree.parse(report.name).getroot().iter("error"))
        except tree.ParseError as error:
            print(f"valgrind's report cannot be read: {error}")
            return 1
    errors = [error for error in found if is_ours(error)]
    for error in errors:
        tell(error)
    kinds = collections.Counter(error.findtext("kind") for error in errors)
    words = ", ".join(f"{kind} {count}" for kind, count in kinds.items()) or "no error"
    print(f"the walk ended with exit code {code}; valgrind: {words} of ours "
          f"({len(found)} others)")
    return 1 if errors or code != 0 else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--walk"]:
        walk()
    else:
        raise SystemExit(main())
