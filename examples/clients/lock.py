#!/usr/bin/env python3
"""Holds a lock and works under it: lock.py RECIPE [STEPS]

Ends with 0 after that many steps, or goes on without STEPS. Ends with 76 as soon as the lock is lost.
"""

import http.client
import itertools
import json
import os
import socket
import sys
import threading
import time

# A variable that is empty counts as one that is not set.
RUNTIME = os.environ.get("XDG_RUNTIME_DIR") or f"{os.environ.get('TMPDIR') or '/tmp'}/wok-{os.geteuid()}"
SOCKET = os.environ.get("WOK_SOCKET") or f"{RUNTIME if os.geteuid() else '/run/wok'}/wok.sock"


class Connection(http.client.HTTPConnection):
    """HTTP through wok's Unix socket."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCKET)


class Lock:
    """A lock that this process holds. The process ends when it may have lost the lock."""

    def __init__(self, recipe):
        """Waits for the lock."""
        self.fence = None
        self.deadline = None  # On CLOCK_BOOTTIME, in milliseconds: the lock is held until then.
        self.connection = Connection("wok")
        path = f"/v1/recipes/{recipe}/join?alive=500ms"
        self.connection.request("POST", path, json.dumps({"call": "acquire"}))
        self.answer = self.connection.getresponse()
        if self.answer.status != 200:
            sys.exit(self.answer.read().decode())
        while self.fence is None:
            self.read_line()
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        while True:
            self.connection.sock.settimeout(max(self.time_left(), 0.001))
            self.read_line()

    def read_line(self):
        try:
            line = json.loads(self.answer.readline())
        except TimeoutError:
            give_up("nothing was heard until the deadline")
        except (OSError, ValueError, http.client.HTTPException):
            give_up("the stream broke off")
        self.deadline = line.get("deadline-boottime-ms", self.deadline)
        if line["event"] == "waiting":
            print("waiting", flush=True)
        elif line["event"] == "held":
            self.fence = line["fence"]
            print(f"held with fence {self.fence}", flush=True)
        elif line["event"] in ("lost", "leaving", "released", "refused", "ended"):
            give_up(line.get("message") or line.get("error") or line["event"])

    def time_left(self):
        return self.deadline / 1e3 - time.clock_gettime(time.CLOCK_BOOTTIME)

    def check(self):
        """To be called before each write: this process may have been stopped for long, and wok as well."""
        if self.time_left() <= 0:
            give_up("the deadline has passed")


def give_up(why):
    print(f"lost: {why}", flush=True)
    os._exit(76)  # At once, whatever other threads are doing.


recipe, *steps = sys.argv[1:]
lock = Lock(recipe)
for step in range(1, int(steps[0]) + 1) if steps else itertools.count(1):
    lock.check()
    # Whatever is written to should refuse a fence that is lower than the highest it has seen.
    print(f"step {step} with fence {lock.fence}", flush=True)
    time.sleep(0.2)
