#!/usr/bin/env python3
"""Puts items into a queue, or takes them: jobs.py put RECIPE ITEM... | jobs.py take RECIPE [COUNT]

`take` ends with 0 after that many items, or goes on without COUNT. It joins again when its participant has
ended or wok is gone. It ends with 76 when an item that it worked on has been lost meanwhile.
"""

import http.client
import json
import os
import socket
import sys
import threading
import time

# A variable that is empty counts as one that is not set.
RUNTIME = os.environ.get("XDG_RUNTIME_DIR") or f"{os.environ.get('TMPDIR') or '/tmp'}/wok-{os.geteuid()}"
SOCKET = os.environ.get("WOK_SOCKET") or f"{RUNTIME if os.geteuid() else '/run/wok'}/wok.sock"


class Ended(Exception):
    """The participant has ended or is of no use, or wok is gone or has no session."""


class Connection(http.client.HTTPConnection):
    """HTTP through wok's Unix socket."""

    def connect(self):
        self.sock = self.opened = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCKET)

    def hang_up(self):
        """Also while a thread reads, which a `close` would wait for."""
        try:
            self.opened.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # wok has hung up already.


def post(path, read, body=None, wok=None):
    """Posts on a connection of its own: wok closes one that is idle for ten seconds, and work may take longer.
    `read` reads the answer."""
    try:
        wok = wok or Connection("wok")
        wok.request("POST", f"/v1/{path}", json.dumps(body or {}))
        answer = wok.getresponse()
        answered = read(answer) if answer.status == 200 else json.load(answer)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Ended(f"no answer: {error}") from error
    if answer.status == 200:
        return answered
    # 409 is the queue's own answer. 410 says that this participant has ended, 503 that there is no session, and
    # `not-found` that a daemon which was started again never knew the participant. Another 404 is
    # `no-operation`: the recipe is no queue, and never will be.
    is_unknown = answered["error"] == "not-found" and path.startswith("participants/")
    if answer.status in (409, 410, 503) or is_unknown:
        raise Ended(answered.get("message", answered["error"]))
    sys.exit(f"{path}: {answered.get('message', answered)}")


def in_words(data):
    """What is no text comes as {"base64": "..."}."""
    return data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))


def put(recipe, *items):
    for item in items:
        post(f"recipes/{recipe}/call/put", json.load, {"data": item})
        print(f"put {item}", flush=True)


def join(recipe):
    # The stream keeps the participant, so it has to be read, whatever it says.
    wok = Connection("wok")
    stream, line = post(f"recipes/{recipe}/join", lambda it: (it, json.loads(it.readline())), wok=wok)
    threading.Thread(target=drain, args=[stream], daemon=True).start()
    return line["participant"], wok


def drain(stream):
    try:
        for _ in stream:
            pass
    except (OSError, http.client.HTTPException):
        pass  # The next call says so.


def take(recipe, count=None):
    participant, joined, taken = None, None, 0
    while count is None or taken < int(count):
        try:
            if participant is None:
                participant, joined = join(recipe)
            item = post(f"participants/{participant}/take", json.load)
        except Ended as error:
            # Nothing is lost: what a participant has taken that has ended comes back. This one may not have
            # ended yet.
            print(f"joining again: {error}", file=sys.stderr, flush=True)
            if joined:
                joined.hang_up()
            participant, joined = None, None
            time.sleep(1)
            continue
        # The item comes back to somebody else if this process dies here. So the work may be done twice, and
        # whatever is written to should refuse a fence that is lower than the highest it has seen.
        data = in_words(item["data"])
        print(f"took {data} with fence {item['fence']}", flush=True)
        try:
            post(f"participants/{participant}/ack", json.load)
        except Ended as error:
            print(f"lost: {error}", flush=True)
            sys.exit(76)
        print(f"done {data}", flush=True)
        taken += 1


try:
    {"put": put, "take": take}[sys.argv[1]](*sys.argv[2:])
except Ended as error:
    sys.exit(str(error))
