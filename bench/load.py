"""The load: many connections, each its own host instance and session, each with one request in flight.

``python -m bench.load SOCKET CONNECTIONS REQUESTS SEQ [--greet] [--anew]`` prints JSON. By hand on
non-blocking sockets, so that the client has time to spare; ``client`` is the share of a core it used.
``--greet`` says hello first (the daemon wants it), ``--anew`` connects for every request, as the shim does.
"""

from __future__ import annotations

import json
import resource
import selectors
import socket
import sys
import time

from bench.stand import more_descriptors, posted

IDLE = '{"seq":%d,"t":%d,"kind":"session.status","data":{"sessionID":"%s","status":{"type":"%s"}}}'
ACTIVITY = '{"seq":%d,"t":%d,"kind":"activity","data":{"sessionID":"%s","bytes":%d}}'


class Peer:
    """One connection and what it sends."""

    def __init__(self, path: str, number: int, seq: int) -> None:
        self.path, self.seq = path, seq
        self.instance = f"bench-{number}"
        self.session = f"ses_bench{number:021d}"
        self.began = 0.0
        self.pending = b""
        self.connect()

    def connect(self) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(self.path)

    def greet(self) -> None:
        hello = {"api": 1, "instance": self.instance, "host": "opencode", "mode": "serve", "pid": 1}
        hello["directory"] = f"/bench/{self.instance}"
        self.socket.sendall(posted("/v1/hello", json.dumps(hello).encode()))
        while not self.answered():
            pass

    def ask(self) -> None:
        """Send the next batch: the agent goes on or stops, and some output flowed."""
        now, self.seq = int(time.time() * 1000), self.seq + 2
        state = "busy" if self.seq % 4 else "idle"
        events = IDLE % (self.seq - 1, now, self.session, state)
        events += "," + ACTIVITY % (self.seq, now, self.session, 800)
        body = f'{{"instance":"{self.instance}","events":[{events}]}}'.encode()
        self.began = time.perf_counter()
        self.socket.sendall(posted("/v1/events", body))

    def ask_anew(self) -> None:
        self.socket.close()
        began = time.perf_counter()
        self.connect()
        self.ask()
        self.began = began

    def answered(self) -> bool:
        """Read what is there; true when that completes an answer."""
        data = self.socket.recv(65536)
        if not data:
            raise SystemExit("load: the server hung up")
        self.pending += data
        head, found, body = self.pending.partition(b"\r\n\r\n")
        if not found:
            return False
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"load: refused: {self.pending!r}")
        length = int(head.partition(b"Content-Length: ")[2].split(b"\r\n", 1)[0])
        if len(body) < length:
            return False
        self.pending = b""
        return True


def main(path: str, connections: int, requests: int, seq: int, *flags: str) -> None:
    more_descriptors()
    peers = [Peer(path, connections * 10_000 + i, seq) for i in range(connections)]
    ask = Peer.ask_anew if "--anew" in flags else Peer.ask
    selector = selectors.DefaultSelector()
    for peer in peers:
        if "--greet" in flags:
            peer.greet()
        peer.ask()
        while not peer.answered():  # the first of each is a warm-up
            pass
    latencies: list[float] = []
    left = requests
    cpu, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    for peer in peers[:left]:
        ask(peer)
        selector.register(peer.socket, selectors.EVENT_READ, peer)
        left -= 1
    waiting = len(selector.get_map())
    while waiting:
        for key, _ in selector.select():
            peer = key.data
            if not peer.answered():
                continue
            latencies.append(time.perf_counter() - peer.began)
            if left:
                left -= 1
                if ask is Peer.ask:
                    ask(peer)
                else:
                    selector.unregister(peer.socket)
                    ask(peer)
                    selector.register(peer.socket, selectors.EVENT_READ, peer)
            else:
                selector.unregister(peer.socket)
                waiting -= 1
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    busy = used.ru_utime + used.ru_stime - cpu.ru_utime - cpu.ru_stime
    latencies.sort()
    at = {p: latencies[min(len(latencies) - 1, int(len(latencies) * p / 100))] * 1000 for p in (50, 99)}
    found = {"rate": requests / seconds, "p50": at[50], "p99": at[99], "client": busy / seconds}
    print(json.dumps(found))


if __name__ == "__main__":
    socket_path, *numbers = sys.argv[1:5]
    main(socket_path, *(int(n) for n in numbers), *sys.argv[5:])  # type: ignore[arg-type]
