%% The processes of raw_erlang: one that counts, and one that drives it.
-module(raw_erlang).
-export([serve/0, drive/1]).

-define(WINDOW, 64).

count(N) ->
    receive
        {send, K} -> count(N + K);
        {call, From, Ref, K} -> From ! {Ref, N + K}, count(N + K)
    end.

serve() ->
    register(counter, self()),
    count(0).

counter([]) -> spawn(fun() -> count(0) end);
counter([Name]) -> find(list_to_atom(Name), 100).

%% The other node may not have started.
find(Node, Tries) when Tries > 0 ->
    case net_kernel:connect_node(Node) andalso
         rpc:call(Node, erlang, whereis, [counter]) of
        Pid when is_pid(Pid) -> Pid;
        _ -> timer:sleep(50), find(Node, Tries - 1)
    end.

call(To, K) ->
    Ref = make_ref(),
    To ! {call, self(), Ref, K},
    Ref.

%% What was sent before has arrived when this is answered.
await(To) ->
    Ref = call(To, 0),
    receive {Ref, N} -> N end.

sends(To, 0) -> await(To);
sends(To, N) -> To ! {send, 1}, sends(To, N - 1).

calls(_, 0, 0) -> ok;
calls(To, N, Under) when N > 0, Under < ?WINDOW ->
    call(To, 1),
    calls(To, N - 1, Under + 1);
calls(To, N, Under) ->
    receive {Ref, _} when is_reference(Ref) -> calls(To, N, Under - 1) end.

rate(Run, N) ->
    {Us, _} = timer:tc(Run),
    {N * 1.0e6 / Us, "1/s"}.

idle(N) ->
    Before = erlang:memory(total),
    Pids = [spawn(fun() -> count(0) end) || _ <- lists:seq(1, N)],
    Bytes = erlang:memory(total) - Before,
    [exit(Pid, kill) || Pid <- Pids],
    {Bytes / N, "bytes"}.

measure("sends", N, Where) ->
    To = counter(Where),
    rate(fun() -> sends(To, N) end, N);
measure("calls", N, Where) ->
    To = counter(Where),
    rate(fun() -> calls(To, N, 0) end, N);
measure("idle", N, _) -> idle(N).

drive([What, Count | Where]) ->
    {Value, Unit} = measure(What, list_to_integer(Count), Where),
    io:format("{\"bench\":\"raw_erlang\",\"metric\":\"~s\",\"value\":~.1f,"
              "\"unit\":\"~s\"}~n", [What, Value, Unit]),
    halt(0).
