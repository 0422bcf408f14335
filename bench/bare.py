"""The yardstick: an aiohttp handler on a Unix socket that reads and decodes the body, and answers."""

from __future__ import annotations

import asyncio
import socket
import sys

import msgspec
from aiohttp import web

from bench.stand import more_descriptors


class Event(msgspec.Struct):
    seq: int
    t: int
    kind: str
    data: msgspec.Raw


class Batch(msgspec.Struct):
    instance: str
    events: list[Event]


decode = msgspec.json.Decoder(Batch).decode
encode = msgspec.json.Encoder().encode


async def events(request: web.Request) -> web.Response:
    batch = decode(await request.read())
    return web.Response(body=encode({"api": 1, "seq": batch.events[-1].seq}), content_type="application/json")


async def status(_: web.Request) -> web.Response:
    return web.Response(body=b"{}", content_type="application/json")


async def main(path: str) -> None:
    more_descriptors()
    app = web.Application()
    app.router.add_post("/v1/events", events)
    app.router.add_get("/v1/status", status)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(path)
    sock.listen(4096)
    sock.setblocking(False)
    await web.SockSite(runner, sock, backlog=4096).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
