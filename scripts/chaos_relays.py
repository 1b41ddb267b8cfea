"""What the parts of scripts/chaos share: where it runs, how it rests, and relays, which
stand at the addresses of tasks and can drop, refuse or hold back their connections."""

import random
import selectors
import socket
import struct
import threading
import time

BUFFER_BYTES_MAX = 1 << 18      # of one direction of a relayed connection

signals = []    # that were sent to this script


def rest(seconds=0.005):
    """Signals are obeyed here alone, so that no process is started and forgotten."""
    time.sleep(seconds)
    if signals:
        raise SystemExit(128 + signals[0])


def own_host():
    """An address of loopback that no other run of this script has: a port that is closed
    for a while stays free for whom it belongs to."""
    draw = random.SystemRandom().randint
    return f"127.{draw(16, 254)}.{draw(1, 254)}.{draw(1, 254)}"


HOST = own_host()


class Side:
    """One of the two sockets of a relayed connection, and what is to be written to it."""

    def __init__(self, sock):
        self.sock = sock
        self.out = bytearray()
        self.other = None
        self.events = 0
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Relay:
    """Stands at the address of one task. The fields are written by the main thread and
    read by the thread of the relays, which does all the work."""

    def __init__(self, port, target):
        self.port = port
        self.target = target
        self.refuses = False
        self.stalls = False
        self.drops = 0              # how often all connections were to be dropped
        self.dropped = 0
        self.listener = None
        self.sides = set()


class Relays(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.selector = selectors.DefaultSelector()
        self.relays = []
        self.ends = False

    def add(self, port, target):
        relay = Relay(port, target)
        self.listen(relay)
        self.relays.append(relay)
        return relay

    def run(self):
        while not self.ends:
            for relay in self.relays:
                self.obey(relay)
            for key, events in self.selector.select(0.01):
                relay, side = key.data
                if side is None:
                    self.accept(relay)
                elif side in relay.sides:
                    self.move(relay, side, events)
        for relay in self.relays:
            self.drop_all(relay)
            if relay.listener is not None:
                relay.listener.close()

    def obey(self, relay):
        if relay.drops != relay.dropped:
            relay.dropped = relay.drops
            self.drop_all(relay)
        if relay.refuses and relay.listener is not None:
            self.selector.unregister(relay.listener)
            relay.listener.close()
            relay.listener = None
        elif not relay.refuses and relay.listener is None:
            self.listen(relay)
        for side in relay.sides:
            self.watch(relay, side)

    def listen(self, relay):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, relay.port))
            listener.listen(64)
        except OSError:
            listener.close()    # somebody else has it: tried again in a moment
            return
        listener.setblocking(False)
        relay.listener = listener
        self.selector.register(listener, selectors.EVENT_READ, (relay, None))

    def accept(self, relay):
        try:
            near = Side(relay.listener.accept()[0])
        except OSError:
            return
        far = Side(socket.socket())
        far.sock.connect_ex((HOST, relay.target))
        near.other, far.other = far, near
        for side in (near, far):
            relay.sides.add(side)
            self.watch(relay, side)

    def watch(self, relay, side):
        """Wait for what there is room for, and write what there is."""
        events = 0
        if not relay.stalls:
            if len(side.other.out) < BUFFER_BYTES_MAX:
                events |= selectors.EVENT_READ
            if side.out:
                events |= selectors.EVENT_WRITE
        if events == side.events:
            return
        if side.events == 0:
            self.selector.register(side.sock, events, (relay, side))
        elif events == 0:
            self.selector.unregister(side.sock)
        else:
            self.selector.modify(side.sock, events, (relay, side))
        side.events = events

    def move(self, relay, side, events):
        try:
            if events & selectors.EVENT_READ:
                data = side.sock.recv(65536)
                if not data:
                    raise ConnectionError
                side.other.out += data
            if events & selectors.EVENT_WRITE and side.out:
                del side.out[:side.sock.send(side.out)]
        except BlockingIOError:
            pass
        except OSError:
            self.drop(relay, side)
            return
        self.watch(relay, side)
        self.watch(relay, side.other)

    def drop(self, relay, side):
        """Both ends see a reset: what was under way is gone."""
        for one in (side, side.other):
            if one.events != 0:
                self.selector.unregister(one.sock)
                one.events = 0
            try:
                one.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                    struct.pack("ii", 1, 0))
            except OSError:
                pass
            one.sock.close()
            relay.sides.discard(one)

    def drop_all(self, relay):
        while relay.sides:
            self.drop(relay, next(iter(relay.sides)))
