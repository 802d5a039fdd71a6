#!/usr/bin/env python3
"""Puts items into a queue, or takes them, with asyncio:
jobs_asyncio.py put RECIPE ITEM... | jobs_asyncio.py take RECIPE [COUNT]

`take` ends with 0 after that many items, or goes on without COUNT. It ends with 76 when an item that it
worked on has been lost meanwhile.
"""

import asyncio
import itertools
import json
import os
import sys

RUNTIME = "/run/wok" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", f"/tmp/wok-{os.geteuid()}")
SOCKET = os.environ.get("WOK_SOCKET", f"{RUNTIME}/wok.sock")


async def post(path, body=None):
    """Posts on a connection of its own, and answers that when the head of the answer has come."""
    lines, connection = await asyncio.open_unix_connection(SOCKET)
    body = json.dumps(body or {})
    # The answer to HTTP/1.0 is not cut into chunks: behind its head there is only JSON.
    head = f"POST /v1/{path} HTTP/1.0\r\nContent-Length: {len(body.encode())}\r\n\r\n"
    connection.write((head + body).encode())
    status = int((await lines.readuntil(b"\r\n\r\n")).split()[1])
    if status == 200:
        return lines, connection
    error = json.loads(await lines.read())
    # 409 is the queue's own answer, 410 that this participant has ended.
    if status in (409, 410):
        print(f"lost: {error['error']}", flush=True)
        sys.exit(76)
    sys.exit(f"{path}: {error}")


async def call(path, arguments=None):
    lines, connection = await post(path, arguments)
    answer = json.loads(await lines.read())
    connection.close()
    return answer


async def put(recipe, *items):
    for item in items:
        await call(f"recipes/{recipe}/call/put", {"data": item})
        print(f"put {item}", flush=True)


async def take(recipe, count=None):
    # The stream keeps the participant, so it has to be read, whatever it says.
    lines, stream = await post(f"recipes/{recipe}/join")
    participant = json.loads(await lines.readline())["participant"]
    reading = asyncio.create_task(lines.read())
    for _ in range(int(count)) if count else itertools.count():
        item = await call(f"participants/{participant}/take")
        # The item comes back to somebody else if this process dies here. So the work may be done twice, and
        # whatever is written to should refuse a fence that is lower than the highest it has seen.
        print(f"took {item['data']} with fence {item['fence']}", flush=True)
        await call(f"participants/{participant}/ack")
        print(f"done {item['data']}", flush=True)
    stream.close()
    await reading


asyncio.run({"put": put, "take": take}[sys.argv[1]](*sys.argv[2:]))
