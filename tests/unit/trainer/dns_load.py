"""What the barrier asks of a real DNS server, by real packets; run by `test_dns.py`, or by hand:

    unshare -rnm python tests/unit/trainer/dns_load.py TASKS [MISSING] [TIMEOUT]

In a network namespace of its own it starts a small UDP server, makes it the resolver of the C
library, and waits there for so many names, of which the last MISSING appear after 5 s (or never,
when a TIMEOUT is given). It prints what the server saw, as JSON.
"""

import collections
import json
import multiprocessing
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "trainer"))

from tfadmit_trainer import barrier, context, contract
from tfadmit_trainer.waiting import Tools

# As a pod's, so that search domains would show up.
RESOLV_CONF = (
    "nameserver 127.0.0.1\nsearch team.svc.cluster.local svc.cluster.local cluster.local\n"
    "options ndots:5\n"
)
NXDOMAIN, A, AAAA = 3, 1, 28
LATE_SECONDS = 5.0


def question(packet):
    labels, at = [], 12
    while length := packet[at]:
        labels.append(packet[at + 1 : at + 1 + length].decode())
        at += 1 + length
    return ".".join(labels), struct.unpack(">H", packet[at + 1 : at + 3])[0], packet[12 : at + 5]


def answer(packet, known):
    name, kind, asked = question(packet)
    code = 0 if known(name) else NXDOMAIN
    body, count = b"", 0
    if code == 0 and kind == A:
        body, count = b"\xc0\x0c" + struct.pack(">HHIH", A, 1, 5, 4) + b"\x0a\x00\x00\x01", 1
    head = packet[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, count, 0, 0)
    return name, kind, head + asked + body


def serve(ready, stop, result, published):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        server.bind(("127.0.0.1", 53))
        server.settimeout(0.1)
        ready.set()
        begin, seen = None, []
        while not stop.is_set():
            try:
                packet, client = server.recvfrom(512)
            except TimeoutError:
                continue
            begin = begin or time.monotonic()
            now = time.monotonic() - begin
            name, kind, reply = answer(packet, lambda name, now=now: published(name, now))
            server.sendto(reply, client)
            seen.append((now, name, kind))
        result.put(seen)


def published_with(tasks, missing, *, ever):
    def published(name, now):
        host, _, rest = name.partition(".")
        if rest != "mnist.team.svc.cluster.local":
            return False
        late = int(host.rpartition("-")[2]) >= tasks - missing
        return not late or (ever and now >= LATE_SECONDS)

    return published


def prepare():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # An address beside the loopback, as a pod has: the C library asks for the families it sees.
    subprocess.run(["ip", "address", "add", "10.0.0.9/32", "dev", "lo"], check=True)
    path = pathlib.Path(tempfile.mkdtemp()) / "resolv.conf"
    path.write_text(RESOLV_CONF)
    subprocess.run(["mount", "--bind", str(path), "/etc/resolv.conf"], check=True)


def main(tasks, missing=0, timeout=None):
    prepare()
    fork = multiprocessing.get_context("fork")
    ready, stop, result = fork.Event(), fork.Event(), fork.SimpleQueue()
    published = published_with(tasks, missing, ever=timeout is None)
    server = fork.Process(target=serve, args=(ready, stop, result, published), daemon=True)
    server.start()
    ready.wait()
    cluster = contract.Cluster(
        worker=(f"mnist-node-0-{{0..{tasks - 1}}}.mnist.team.svc.cluster.local:12345",)
    )
    made = context.of(contract.Task(cluster, "worker", 0), source="tfadmit", environ={})
    said: list[str] = []
    error, begin = "", time.monotonic()
    try:
        barrier.wait(made, timeout=timeout or 300, tools=Tools(say=said.append))
    except barrier.PeersMissingError as caught:
        error = str(caught)
    seconds = time.monotonic() - begin
    stop.set()
    seen = result.get()
    print(json.dumps(summary(seen, seconds=seconds) | {"said": said, "error": error}))


def summary(seen, *, seconds):
    by_second = collections.Counter(int(now) for now, _, _ in seen)
    by_name = collections.Counter(name for _, name, kind in seen if kind == A)
    return {
        "seconds": round(seconds, 2),
        "queries": len(seen),
        "aaaa": sum(kind == AAAA for _, _, kind in seen),
        "names": len(by_name),
        "most_for_one_name": max(by_name.values()),
        "peak_per_second": max(by_second.values()),
        "strange": sorted(name for name in by_name if not name.startswith("mnist-node-0-"))[:3],
        "searched": sum(name.count(".local") > 1 for name in by_name),
    }


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
