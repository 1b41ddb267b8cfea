"""Calls of the public headers' functions with NULL, one for each parameter that is a
pointer, as C for tests/real/cluster/test_null_arguments.c: all other arguments are what
a program would pass. A function is in the walk as soon as a header declares it.

usage: null_calls.py SOURCE OUTPUT | --self-test
"""

import pathlib
import re
import sys

import check_waits

# What a parameter's argument is, by its type without "const" and the outer "*". A test's
# environment is tests/real/null_env.h.
HANDLES = {
    "mu_actor": "actor", "mu_clock": "clock", "mu_cluster": "cluster",
    "mu_context": "context",
    "mu_coordinator": "coordinator",
    "mu_dataset": "dataset", "mu_kv_watch": "watch", "mu_lock": "lock", "mu_node": "node",
    "struct mu_node": "node", "mu_per_worker": "per_worker",
    "mu_remote_value": "remote", "mu_reply": "reply",
    "mu_resolver": "resolver", "mu_resolver_watch": "resolver_watch", "mu_run": "run",
    "mu_server": "server", "mu_session": "session",
    "mu_stream": "stream", "mu_stream_reader": "stream_reader", "mu_tpu": "tpu",
    "mu_table": "table", "mu_table_reader": "table_reader",
    "mu_variable": "variable",
}
FILLED = {
    "mu_actor_options", "mu_actor_type", "mu_address",
    "mu_barrier_options", "mu_checkpoint_options", "mu_closure_options",
    "mu_dataset_options", "mu_distribute_options", "mu_gradient", "mu_initializer",
    "mu_kv_request",
    "mu_kv_transaction",
    "mu_main_options", "mu_node_options", "mu_optimizer", "mu_resolution",
    "mu_resolver_kind", "mu_rows",
    "mu_server_options", "mu_session_options", "mu_table_bags", "mu_table_ids",
    "mu_table_spec", "mu_task_options", "mu_variable_request", "mu_variable_spec",
}
CALLBACKS = {
    "mu_agent_error_fn": "null_on_error", "mu_barrier_done_fn": "null_on_done",
    "mu_cluster_change_fn": "null_on_cluster", "mu_function_fn": "null_function",
    "mu_kv_done_fn": "null_on_answer", "mu_program_fn": "null_program",
    "mu_table_done_fn": "null_on_done", "mu_table_export_fn": "null_on_rows",
    "mu_variable_done_fn": "null_on_done",
    "mu_resolver_progress_fn": "null_on_line", "mu_tpu_progress_fn": "null_on_line",
    "blocking": "null_work", "closed": "null_drop", "drop": "null_drop",
    "next": "null_next", "notify": "null_on_ready",
}
TEXTS = {
    "address": "127.0.0.1:1", "directory": "d", "json": "{}", "kind": "GPU",
    "path": "no/such", "restart_type": "always", "rpc_layer": "grpc", "setting": "tpu",
    "task": "worker:0", "task_type": "worker", "tasks": "worker:0", "type": "worker",
}
VALUES = {
    "mu_value_get_bool": "truth", "mu_value_get_bytes": "bytes",
    "mu_value_get_float": "number", "mu_value_get_int": "number",
    "mu_value_get_string": "text", "mu_value_get_tensor": "tensor",
}
NUMBERS = {
    "bytes": "NULL_VARIABLE_BYTES", "code": "-MU_EABORTED", "count": "1",
    "dtype": "MU_F32", "max": "1", "rank": "1", "room": "1", "size": "1",
}

# Functions without an error code, whose answer to NULL is not 0 or NULL, and those that
# return an int and answer 0.
ANSWERS = {
    "mu_context_task_index": "-1", "mu_main": "2", "mu_main_with": "2",
    "mu_task_main": "2",
    "mu_remote_value_state": "MU_REMOTE_ABORTED",
    "mu_restart_exit_code": "-1", "mu_run_worker": "-1",
}
FACTS = {
    "mu_address_equal",
    "mu_agent_state", "mu_cluster_is_chief", "mu_cluster_is_empty", "mu_cluster_job_end",
    "mu_context_cancelled", "mu_context_distributed_mode", "mu_context_is_evaluation",
    "mu_context_has_barrier", "mu_context_is_chief", "mu_context_should_checkpoint",
    "mu_context_should_init", "mu_context_should_save_summary", "mu_run_cancelled",
    "mu_server_matches", "mu_session_is_chief", "mu_value_equal",
}

DECLARATION = re.compile(r"MU_EXPORT\s+([^;{]*?)\b(mu_\w+)\s*\(([^;]*?)\)\s*"
                         r"(?:MU_PRINTF\([^)]*\)\s*)?;", re.DOTALL)


def split(parameters):
    """The parameters of a declaration: commas inside of parentheses do not count."""
    parts, depth = [""], 0
    for character in parameters:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [" ".join(part.split()) for part in parts]


class Parameter:
    def __init__(self, text):
        function = re.match(r"[\w *]+\(\*(\w+)\)", text)
        if function:
            self.type, self.name = "callback", function.group(1)
        else:
            self.type, self.name = re.fullmatch(r"(.*?)(\w+)", text).groups()
        self.type = self.type.strip()
        self.pointer = ("*" in self.type or self.type.endswith("_fn")
                        or self.type == "callback")

    def argument(self, function):
        plain = self.type.replace("const", "").replace(" ", "")
        base = re.sub(r"\bconst\b", "", self.type).replace("*", "").strip()
        if not self.pointer:
            if "int64_t" in self.type and self.name.endswith("_ms"):
                return "NULL_TIMEOUT_MS"
            return NUMBERS.get(self.name, "0")
        if self.name == "ret_error" or plain == "mu_error*" and self.name == "error":
            return "&env->error" if self.name == "error" else "error"
        if self.name in CALLBACKS or self.type in CALLBACKS:
            return CALLBACKS.get(self.type, CALLBACKS.get(self.name))
        if self.type == "const char *":
            return f'"{TEXTS.get(self.name, "name")}"'
        if plain.endswith("**"):
            return f"({self.type})(void *)&env->{self.list_of(base)}"
        if self.name.startswith("ret_") or not self.type.startswith("const"):
            if base in HANDLES:
                return f"env->{HANDLES[base]}"
            if base == "mu_value":
                return {"list": "env->list", "map": "env->map"}.get(self.name,
                                                                   "mu_value_nil()")
            return f"({self.type})(void *)env->room"
        if base in HANDLES:
            return f"env->{HANDLES[base]}"
        if base == "mu_value":
            usual = "map" if self.name == "map" else "list"
            return f"env->{VALUES.get(function, usual)}"
        if base in FILLED:
            return f"&env->{base.removeprefix('mu_')}"
        if base in ("float", "void", "uint64_t"):
            return f"(const {base} *)env->zeros"
        raise ValueError(f"what is a {self.type} {self.name}?")

    def list_of(self, base):
        """Lists of handles are of one; what a call fills in is elsewhere."""
        if "const" in self.type and base in HANDLES:
            return HANDLES[base]
        return "names" if self.type == "const char *const *" else "made"


class Function:
    def __init__(self, returned, name, parameters):
        self.returned, self.name = " ".join(returned.split()), name
        self.parameters = ([] if parameters.strip() == "void" else
                           [Parameter(text) for text in split(parameters)
                            if text != "..."])

    def needed(self, fine):
        """Parameters which NULL is no argument for."""
        return [p for p in self.parameters
                if p.pointer and p.name != "ret_error" and not p.name.endswith("user")
                and (self.name, p.name) not in fine]

    def expects(self):
        if self.returned == "int" and self.name not in FACTS.union(ANSWERS):
            return "NULL_REFUSED, -MU_EINVALID"
        return f"NULL_ANSWERED, {ANSWERS.get(self.name, '0')}"

    def says_why(self):
        return any(p.name == "ret_error" for p in self.parameters)

    def call(self, nulls):
        arguments = ", ".join("NULL" if p.name in nulls or p.name.endswith("user")
                              else p.argument(self.name) for p in self.parameters)
        call = f"{self.name}({arguments})"
        if self.returned == "void":
            return f"{call};\n    return 0;"
        if "*" in self.returned:
            return f"return (intmax_t)(intptr_t){call};"
        return f"return (intmax_t){call};"


def declared(headers):
    return [Function(*match.groups()) for text in headers
            for match in DECLARATION.finditer(check_waits.COMMENT.sub(" ", text))]


def listed(text):
    """[(function, parameter)] of null_fine.txt, in its order."""
    pairs = []
    for line in text.splitlines():
        words = line.split("#")[0].split()
        pairs += [(words[0], parameter) for parameter in words[1:]]
    return pairs


def findings(functions, fine):
    """Lines of null_fine.txt that say nothing."""
    known = {(f.name, p.name): p for f in functions for p in f.parameters}
    for pair in fine:
        if pair not in known or not known[pair].pointer:
            yield f"null_fine.txt: {pair[0]} has no pointer {pair[1]}"
        if fine.count(pair) > 1:
            yield f"null_fine.txt: {pair[0]} {pair[1]} is there twice"


def rows(functions, fine):
    """(function, words, names that are NULL, what is expected), those that are fine at
    the end, in the order of the list."""
    by_name = {f.name: f for f in functions}
    for function in functions:
        needed = function.needed(fine)
        for parameter in needed:
            yield function, parameter.name, {parameter.name}, function.expects()
        if len(needed) > 1:
            yield function, "all", {p.name for p in needed}, function.expects()
    for name, parameter in fine:
        yield by_name[name], parameter, {parameter}, "NULL_FINE, 0"


def written(functions, fine):
    text = ['#include "tests/real/null_env.h"\n']
    table = []
    for number, (function, words, nulls, expects) in enumerate(rows(functions, fine)):
        body = function.call(nulls)
        unused = [name for name in ("env", "error")
                  if not re.search(rf"\b(?<!->){name}\b", body)]
        text.append(f"static intmax_t call_{number}(struct null_env *env, "
                    "mu_error *error)\n{\n"
                    + "".join(f"    (void){name};\n" for name in unused)
                    + f"    {body}\n}}\n")
        table.append(f'    {{"{function.name}", "{words}", call_{number}, {expects}, '
                     f"{str(function.says_why()).lower()}}},")
    text.append("const struct null_row null_rows[] = {\n" + "\n".join(table) + "\n};\n")
    text.append("const size_t null_rows_count = sizeof null_rows / sizeof *null_rows;")
    return "\n".join(text) + "\n"


def self_test():
    functions = declared([
        "MU_EXPORT int mu_do(mu_node *node, const char *key,\n"
        "    void (*drop)(void *state, int a), void *user, mu_error *ret_error);\n"
        "/* MU_EXPORT int mu_no(void); */ MU_EXPORT const char *mu_say(void);\n"
        "MU_EXPORT int mu_tell(const mu_run *run, const char *format, ...)\n"
        "    MU_PRINTF(2, 3);\n"])
    assert [f.name for f in functions] == ["mu_do", "mu_say", "mu_tell"]
    found = [(f.name, words) for f, words, _, _ in rows(functions, [("mu_do", "drop")])]
    assert found == [("mu_do", "node"), ("mu_do", "key"), ("mu_do", "all"),
                     ("mu_tell", "run"), ("mu_tell", "format"), ("mu_tell", "all"),
                     ("mu_do", "drop")], found
    text = written(functions, [])
    assert 'mu_do(env->node, NULL, null_drop, NULL, error)' in text, text
    assert 'mu_do(NULL, NULL, NULL, NULL, error)' in text, text
    text = written(functions, [("mu_do", "drop")])
    assert 'mu_do(NULL, NULL, null_drop, NULL, error)' in text, text
    assert not list(findings(functions, [("mu_do", "key")]))
    assert len(list(findings(functions, [("mu_do", "lock")]))) == 1
    assert listed("# none\nmu_a b c # d\n") == [("mu_a", "b"), ("mu_a", "c")]
    try:
        declared(["MU_EXPORT int mu_new(const mu_unknown *what);"])[0].call(set())
        raise AssertionError("a type without an argument was taken")
    except ValueError:
        pass


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    source = pathlib.Path(sys.argv[1])
    functions = declared([path.read_text()
                          for path in sorted(source.glob("include/**/*.h"))])
    fine = listed((source / "tests" / "null_fine.txt").read_text())
    found = list(findings(functions, fine))
    for line in found:
        print(line, file=sys.stderr)
    if not found:
        pathlib.Path(sys.argv[2]).write_text(written(functions, fine))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
