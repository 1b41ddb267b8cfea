"""A task of a cluster in a process of its own, which does what a test says: expressions
over `node`, `service` and `muster`, one a line."""

import ast
import json
import os
import queue
import signal
import subprocess
import sys
import threading


class TaskError(Exception):
    """What an expression has raised there."""

    def __init__(self, kind, words, task):
        super().__init__(f"{kind}: {words}")
        self.kind = kind
        self.words = words
        self.task = task


class TaskProcess:
    """Started at once; ready() waits until its node is open."""

    def __init__(self, directory, task_type, index, tasks="chief=1,worker=2", **options):
        spec = json.dumps([str(directory), task_type, index, tasks, options])
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(
            [os.path.dirname(__file__), *sys.path]))
        self.process = subprocess.Popen(
            [sys.executable, "-u", os.path.abspath(__file__), spec], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def result(self, timeout=30):
        """What the oldest expression without an answer came to."""
        line = self.lines.get(timeout=timeout)
        if not line:
            raise TaskError("Ended", f"exit code {self.process.wait(10)}", "")
        answer = json.loads(line)
        if "error" in answer:
            raise TaskError(*answer["error"])
        try:
            return ast.literal_eval(answer["value"])
        except (SyntaxError, ValueError):
            return answer["value"]

    def ready(self, timeout=60):
        assert self.result(timeout) == "ready"
        return self

    def begin(self, expression):
        self.process.stdin.write(json.dumps(expression) + "\n")
        self.process.stdin.flush()

    def run(self, expression, timeout=30):
        self.begin(expression)
        return self.result(timeout)

    def kill(self):
        self.process.kill()
        self.process.wait(10)

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait(10)
        self.process.stdin.close()
        self.process.stdout.close()


def _answer(**fields):
    print(json.dumps(fields), flush=True)


def _main():
    import muster

    directory, task_type, index, tasks, options = json.loads(sys.argv[1])
    resolver = muster.NamedClusterResolver("directory",
                                           {"path": directory, "tasks": tasks})
    options.setdefault("bind_address", "tcp://127.0.0.1:0")
    node = muster.Node(resolver=resolver, task_type=task_type, task_index=index,
                       log_level=0, **options)
    names = {"node": node, "muster": muster, "service": muster.CoordinationService(node)}
    _answer(value=repr("ready"))
    for line in sys.stdin:
        source = json.loads(line)
        try:
            try:
                value = eval(source, names)
            except SyntaxError:
                value = exec(source, names)
            _answer(value=repr(value))
        except Exception as error:
            _answer(error=[type(error).__name__, str(error), getattr(error, "task", "")])
    node.close(2)


if __name__ == "__main__":
    _main()
