#!/usr/bin/env python3
"""Holds a lock and works under it, with asyncio: lock_asyncio.py RECIPE [STEPS]

Ends with 0 after that many steps, or goes on without STEPS. Ends with 76 as soon as the lock is lost.
"""

import asyncio
import itertools
import json
import os
import sys
import time

# A variable that is empty counts as one that is not set.
RUNTIME = os.environ.get("XDG_RUNTIME_DIR") or f"{os.environ.get('TMPDIR') or '/tmp'}/wok-{os.geteuid()}"
SOCKET = os.environ.get("WOK_SOCKET") or f"{RUNTIME if os.geteuid() else '/run/wok'}/wok.sock"


class Lost(Exception):
    """The lock is lost, or may be."""


class Lock:
    """A lock that this process holds for as long as the connection is open."""

    async def acquire(self, recipe):
        self.lines, self.connection = await asyncio.open_unix_connection(SOCKET)
        body = json.dumps({"call": "acquire"})
        # The answer to HTTP/1.0 is not cut into chunks: behind its head there are only lines.
        head = f"POST /v1/recipes/{recipe}/join?alive=500ms HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n"
        self.connection.write((head + body).encode())
        head = await self.lines.readuntil(b"\r\n\r\n")
        if head.split()[1] != b"200":
            sys.exit((await self.lines.read()).decode())
        self.fence = self.deadline = None
        while self.fence is None:
            await self.read_line()

    async def follow(self):
        """Follows the lock until it is lost."""
        while True:
            try:
                await asyncio.wait_for(self.read_line(), self.time_left())
            except asyncio.TimeoutError:
                raise Lost("nothing was heard until the deadline") from None

    async def read_line(self):
        try:
            line = json.loads(await self.lines.readline())
        except (OSError, ValueError):
            raise Lost("the stream broke off") from None
        self.deadline = line.get("deadline-boottime-ms", self.deadline)
        if line["event"] == "waiting":
            print("waiting", flush=True)
        elif line["event"] == "held":
            self.fence = line["fence"]
            print(f"held with fence {self.fence}", flush=True)
        elif line["event"] in ("lost", "leaving", "released", "refused", "ended"):
            raise Lost(line.get("message") or line.get("error") or line["event"])

    def time_left(self):
        return self.deadline / 1e3 - time.clock_gettime(time.CLOCK_BOOTTIME)


async def work(lock, steps):
    for step in steps:
        # This process may have been stopped for long, and wok as well.
        if lock.time_left() <= 0:
            raise Lost("the deadline has passed")
        # Whatever is written to should refuse a fence that is lower than the highest it has seen.
        print(f"step {step} with fence {lock.fence}", flush=True)
        await asyncio.sleep(0.2)


async def main(recipe, steps=None):
    lock = Lock()
    await lock.acquire(recipe)
    steps = range(1, int(steps) + 1) if steps else itertools.count(1)
    tasks = [asyncio.create_task(lock.follow()), asyncio.create_task(work(lock, steps))]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    for end in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(end, Exception):
            raise end


try:
    asyncio.run(main(*sys.argv[1:]))
except Lost as lost:
    print(f"lost: {lost}", flush=True)
    sys.exit(76)
