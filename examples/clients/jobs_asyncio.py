#!/usr/bin/env python3
"""Puts items into a queue, or takes them, with asyncio:
jobs_asyncio.py put RECIPE ITEM... | jobs_asyncio.py take RECIPE [COUNT]

`take` ends with 0 after that many items, or goes on without COUNT. It joins again when its participant has
ended or wok is gone. It ends with 76 when an item that it worked on has been lost meanwhile.
"""

import asyncio
import json
import os
import sys

# A variable that is empty counts as one that is not set.
RUNTIME = os.environ.get("XDG_RUNTIME_DIR") or f"{os.environ.get('TMPDIR') or '/tmp'}/wok-{os.geteuid()}"
SOCKET = os.environ.get("WOK_SOCKET") or f"{RUNTIME if os.geteuid() else '/run/wok'}/wok.sock"


class Ended(Exception):
    """The participant has ended or is of no use, or wok is gone or has no session."""


async def post(path, read, body=None):
    """Posts on a connection of its own, and answers what `read` has read of the answer."""
    try:
        lines, connection = await asyncio.open_unix_connection(SOCKET)
        body = json.dumps(body or {})
        # The answer to HTTP/1.0 is not cut into chunks: behind its head there is only JSON.
        head = f"POST /v1/{path} HTTP/1.0\r\nContent-Length: {len(body.encode())}\r\n\r\n"
        connection.write((head + body).encode())
        status = int((await lines.readuntil(b"\r\n\r\n")).split()[1])
        answered = json.loads(await (read(lines) if status == 200 else lines.read()))
    except (OSError, EOFError, ValueError) as error:
        raise Ended(f"no answer: {error}") from error
    if status == 200:
        return answered, lines, connection
    connection.close()
    # 409 is the queue's own answer. 410 says that this participant has ended, 503 that there is no session, and
    # `not-found` that a daemon which was started again never knew the participant. Another 404 is
    # `no-operation`: the recipe is no queue, and never will be.
    is_unknown = answered["error"] == "not-found" and path.startswith("participants/")
    if status in (409, 410, 503) or is_unknown:
        raise Ended(answered.get("message", answered["error"]))
    sys.exit(f"{path}: {answered.get('message', answered)}")


def in_words(data):
    """What is no text comes as {"base64": "..."}."""
    return data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))


async def call(path, arguments=None):
    answer, _, connection = await post(path, asyncio.StreamReader.read, arguments)
    connection.close()
    return answer


async def put(recipe, *items):
    for item in items:
        await call(f"recipes/{recipe}/call/put", {"data": item})
        print(f"put {item}", flush=True)


async def drain(lines):
    try:
        await lines.read()
    except OSError:
        pass  # The next call says so.


async def take(recipe, count=None):
    participant, stream, reading, taken = None, None, None, 0
    while count is None or taken < int(count):
        try:
            if participant is None:
                # The stream keeps the participant, so it has to be read, whatever it says.
                joined, lines, stream = await post(f"recipes/{recipe}/join", asyncio.StreamReader.readline)
                reading = asyncio.create_task(drain(lines))
                participant = joined["participant"]
            item = await call(f"participants/{participant}/take")
        except Ended as error:
            # Nothing is lost: what a participant has taken that has ended comes back.
            print(f"joining again: {error}", file=sys.stderr, flush=True)
            if stream:
                stream.close()
            participant, stream = None, None
            await asyncio.sleep(1)
            continue
        # The item comes back to somebody else if this process dies here. So the work may be done twice, and
        # whatever is written to should refuse a fence that is lower than the highest it has seen.
        data = in_words(item["data"])
        print(f"took {data} with fence {item['fence']}", flush=True)
        try:
            await call(f"participants/{participant}/ack")
        except Ended as error:
            print(f"lost: {error}", flush=True)
            sys.exit(76)
        print(f"done {data}", flush=True)
        taken += 1
    if stream:
        stream.close()
        await reading


try:
    asyncio.run({"put": put, "take": take}[sys.argv[1]](*sys.argv[2:]))
except Ended as error:
    sys.exit(str(error))
