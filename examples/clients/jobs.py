#!/usr/bin/env python3
"""Puts items into a queue, or takes them: jobs.py put RECIPE ITEM... | jobs.py take RECIPE [COUNT]

`take` ends with 0 after that many items, or goes on without COUNT. It ends with 76 when an item that it
worked on has been lost meanwhile.
"""

import http.client
import itertools
import json
import os
import socket
import sys
import threading

RUNTIME = "/run/wok" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", f"/tmp/wok-{os.geteuid()}")
SOCKET = os.environ.get("WOK_SOCKET", f"{RUNTIME}/wok.sock")


class Connection(http.client.HTTPConnection):
    """HTTP through wok's Unix socket."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCKET)

    def post(self, path, body=None):
        # wok closes a connection that is idle for ten seconds, and the work may take longer.
        self.close()
        self.request("POST", f"/v1/{path}", json.dumps(body or {}))
        answer = self.getresponse()
        if answer.status == 200:
            return answer
        error = json.load(answer)
        # 409 is the queue's own answer, 410 that this participant has ended.
        if answer.status in (409, 410):
            print(f"lost: {error['error']}", flush=True)
            sys.exit(76)
        sys.exit(f"{path}: {error}")


def put(recipe, *items):
    wok = Connection("wok")
    for item in items:
        wok.post(f"recipes/{recipe}/call/put", {"data": item}).read()
        print(f"put {item}", flush=True)


def take(recipe, count=None):
    # The stream keeps the participant, so it has to be read, whatever it says.
    joined = Connection("wok")
    stream = joined.post(f"recipes/{recipe}/join")
    participant = json.loads(stream.readline())["participant"]
    threading.Thread(target=lambda: [None for _ in stream], daemon=True).start()
    wok = Connection("wok")
    for _ in range(int(count)) if count else itertools.count():
        item = json.load(wok.post(f"participants/{participant}/take"))
        # The item comes back to somebody else if this process dies here. So the work may be done twice, and
        # whatever is written to should refuse a fence that is lower than the highest it has seen.
        print(f"took {item['data']} with fence {item['fence']}", flush=True)
        wok.post(f"participants/{participant}/ack").read()
        print(f"done {item['data']}", flush=True)


{"put": put, "take": take}[sys.argv[1]](*sys.argv[2:])
