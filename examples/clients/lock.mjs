#!/usr/bin/env node
// Holds a lock and works under it: lock.mjs RECIPE [STEPS]
//
// Ends with 0 after that many steps, or goes on without STEPS. Ends with 76 as soon as the lock is lost.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const uid = process.geteuid();
const { WOK_SOCKET, XDG_RUNTIME_DIR, TMPDIR } = process.env;
// A variable that is empty counts as one that is not set.
const runtime = uid === 0 ? "/run/wok" : XDG_RUNTIME_DIR || `${TMPDIR || "/tmp"}/wok-${uid}`;
const socketPath = WOK_SOCKET || `${runtime}/wok.sock`;

// Node cannot ask for CLOCK_BOOTTIME. /proc/uptime begins with it, rounded down to 10 ms.
const boottime = () => Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000 + 10;

function giveUp(why) {
  console.log(`lost: ${why}`);
  process.exit(76);
}

/** Waits for the lock, and ends the process when the lock may be lost. */
async function acquire(recipe) {
  const join = request({ socketPath, method: "POST", path: `/v1/recipes/${recipe}/join?alive=500ms` });
  join.end(JSON.stringify({ call: "acquire" }));
  const [answer] = await once(join, "response");
  if (answer.statusCode !== 200) {
    for await (const text of answer.setEncoding("utf8")) process.stderr.write(text);
    process.exit(1);
  }
  // Either of the two tells it, and what nobody hears would end the process without a word.
  for (const end of [join, answer]) end.on("error", () => giveUp("the stream broke off"));
  const lock = { fence: null, deadline: null };
  // Also what says nothing is noticed, if nothing keeps the event loop busy for longer than the session.
  setInterval(() => check(lock), 100).unref();
  await new Promise((held) => {
    createInterface({ input: answer }).on("line", (line) => hear(lock, JSON.parse(line), held))
      .on("close", () => giveUp("the stream broke off"));
  });
  return lock;
}

function hear(lock, line, held) {
  lock.deadline = line["deadline-boottime-ms"] ?? lock.deadline;
  if (line.event === "waiting") {
    console.log("waiting");
  } else if (line.event === "held") {
    lock.fence = line.fence;
    console.log(`held with fence ${line.fence}`);
    held();
  } else if (["lost", "leaving", "released", "refused", "ended"].includes(line.event)) {
    giveUp(line.message ?? line.error ?? line.event);
  }
}

/** To be called before each write: this process may have been stopped for long, and wok as well. */
function check(lock) {
  if (lock.deadline !== null && boottime() >= lock.deadline) giveUp("the deadline has passed");
}

const [recipe, steps = Infinity] = process.argv.slice(2);
const lock = await acquire(recipe);
for (let step = 1; step <= steps; step++) {
  check(lock);
  // Whatever is written to should refuse a fence that is lower than the highest it has seen.
  console.log(`step ${step} with fence ${lock.fence}`);
  await sleep(200);
}
process.exit(0);
