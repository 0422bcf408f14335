"""Sessions at a steady rate for long: memory stays flat, and events are answered quickly."""

from __future__ import annotations

import asyncio
import time

import psutil

from attack.host import Host
from attack.outcome import Deadline, Outcome
from bench.stand import percentile
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox, sandbox

HOSTS = 20
STEPS = 10  # posts of one session
PAUSE_S = 0.1
FLAT = 0.10
FLAT_MB = 12.0
PATIENCE_S = 120.0


async def session(host: Host, name: str, events: int) -> None:
    """One task that is done in one turn."""
    chat = host.create(name)
    host.types(chat)
    rest = max(0, events - 4)  # beside created, typed, busy and idle
    for step in range(STEPS - 1):
        for _ in range(rest * (step + 1) // (STEPS - 1) - rest * step // (STEPS - 1)):
            host.tell("activity", sessionID=name, bytes=800)
        await asyncio.sleep(PAUSE_S)
    host.answers(chat, finished=True)


async def attack(
    sessions: int, events: int, rate: float, p99_ms: float, box: Sandbox, daemon: Daemon, deadline: Deadline
) -> Outcome:
    found = Outcome("load", sessions)
    hosts = []
    for n in range(HOSTS):
        folder = box.root / f"work{n}"
        folder.mkdir()
        hosts.append(await Host(box.socket, folder, f"load{n}").__aenter__())
    process = psutil.Process(daemon.status()["pid"])
    memory: list[float] = []
    work: set[asyncio.Task[None]] = set()
    began = time.monotonic()
    for n in range(sessions):
        await asyncio.sleep(max(0.0, began + n / rate - time.monotonic()))
        if deadline.over:
            break
        task = asyncio.create_task(session(hosts[n % HOSTS], f"ses_{n // 50:05x}_{n:06d}", events))
        work.add(task)
        task.add_done_callback(work.discard)
        found.done = n + 1
        if n % max(1, sessions // 20) == 0:
            memory.append(process.memory_info().rss / 1e6)
            for host in hosts:  # what is judged and over is no part of the daemon's memory
                for chat in list(host.chats.values())[:-50]:
                    del host.chats[chat.id]
    await asyncio.gather(*work)
    seconds = time.monotonic() - began

    def judged() -> bool:
        status = daemon.status()
        return bool(sum(status["verdicts"].values()) >= found.done and not status["filing"]["waiting"])

    end = time.monotonic() + PATIENCE_S
    while not (all_judged := await asyncio.to_thread(judged)) and time.monotonic() < end:
        await asyncio.sleep(0.5)
    if not all_judged:
        status = daemon.status()
        found.findings.append(f"not judged: {status['verdicts']} of {found.done}, {status['filing']}")
    memory.append(process.memory_info().rss / 1e6)
    latencies = [s * 1000 for host in hosts for s in host.latencies]
    for host in hosts:
        await host.__aexit__()
    middle = memory[len(memory) // 3]
    if memory[-1] - middle > max(FLAT_MB, FLAT * middle):
        found.findings.append(f"memory grows: {', '.join(f'{mb:.0f}' for mb in memory)} MB")
    p99 = percentile(latencies, 0.99)
    if p99 > p99_ms:
        found.findings.append(f"p99 is {p99:.1f} ms, not {p99_ms:g}")
    if daemon.status()["degraded"]:
        found.findings.append(f"degraded: {daemon.status()['degraded']}")
    told, dropped = daemon.status()["events"], daemon.status()["filing"]["cases_dropped"]
    found.figures = (
        f"{told:,} events, {found.done / seconds:.1f} sessions/s, p50 {percentile(latencies, 0.5):.1f} ms, "
        f"p99 {p99:.1f} ms, {memory[0]:.0f} → {middle:.0f} → {memory[-1]:.0f} MB, {dropped} cases dropped"
    )
    return found


def run(sessions: int, events: int, rate: float, p99_ms: float, deadline: Deadline) -> Outcome:
    with sandbox() as box, Daemon(box) as daemon:
        found = asyncio.run(attack(sessions, events, rate, p99_ms, box, daemon, deadline))
        found.check_log(daemon)
        return found
