#!/usr/bin/env node
// Puts items into a queue, or takes them: jobs.mjs put RECIPE ITEM... | jobs.mjs take RECIPE [COUNT]
//
// `take` ends with 0 after that many items, or goes on without COUNT. It joins again when its participant has
// ended or wok is gone. It ends with 76 when an item that it worked on has been lost meanwhile.

import { once } from "node:events";
import { request } from "node:http";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const uid = process.geteuid();
const { WOK_SOCKET, XDG_RUNTIME_DIR, TMPDIR } = process.env;
// A variable that is empty counts as one that is not set.
const runtime = uid === 0 ? "/run/wok" : XDG_RUNTIME_DIR || `${TMPDIR || "/tmp"}/wok-${uid}`;
const socketPath = WOK_SOCKET || `${runtime}/wok.sock`;

// The participant has ended or is of no use, or wok is gone or has no session.
class Ended extends Error {}

// Reads the whole of an answer.
async function whole(answer) {
  let text = "";
  for await (const part of answer.setEncoding("utf8")) text += part;
  return JSON.parse(text);
}

// Posts on a connection of its own, and answers what `read` has read of the answer.
async function post(path, read, body = {}) {
  let status, answered;
  try {
    const posted = request({ socketPath, method: "POST", path: `/v1/${path}`, agent: false });
    posted.end(JSON.stringify(body));
    const [answer] = await once(posted, "response");
    status = answer.statusCode;
    answered = await (status === 200 ? read : whole)(answer);
  } catch (error) {
    throw new Ended(`no answer: ${error.message}`);
  }
  if (status === 200) return answered;
  // 409 is the queue's own answer. 410 says that this participant has ended, 503 that there is no session, and
  // `not-found` that a daemon which was started again never knew the participant. Another 404 is
  // `no-operation`: the recipe is no queue, and never will be.
  const isUnknown = answered.error === "not-found" && path.startsWith("participants/");
  if ([409, 410, 503].includes(status) || isUnknown) {
    throw new Ended(answered.message ?? inWords(answered.error));
  }
  console.error(`${path}: ${answered.message ?? JSON.stringify(answered)}`);
  process.exit(1);
}

// What is no text comes as an object, as {"base64": "..."}.
function inWords(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

async function put(recipe, ...items) {
  for (const item of items) {
    await post(`recipes/${recipe}/call/put`, whole, { data: item });
    console.log(`put ${item}`);
  }
}

// The stream keeps the participant, so it has to be read, whatever it says. When it breaks off, the next call
// says so.
async function firstLine(stream) {
  const lines = createInterface({ input: stream.on("error", () => {}) }).on("error", () => {});
  const [line] = await Promise.race([once(lines, "line"), once(lines, "close")]);
  if (line === undefined) throw new Error("the stream broke off");
  return { stream, ...JSON.parse(line) };
}

async function take(recipe, count = Infinity) {
  let joined;
  for (let taken = 0; taken < count; ) {
    let item;
    try {
      joined ??= await post(`recipes/${recipe}/join`, firstLine);
      item = await post(`participants/${joined.participant}/take`, whole);
    } catch (error) {
      if (!(error instanceof Ended)) throw error;
      // Nothing is lost: what a participant has taken that has ended comes back. This one may not have ended
      // yet.
      console.error(`joining again: ${error.message}`);
      joined?.stream.destroy();
      joined = undefined;
      await sleep(1000);
      continue;
    }
    // The item comes back to somebody else if this process dies here. So the work may be done twice, and
    // whatever is written to should refuse a fence that is lower than the highest it has seen.
    const data = inWords(item.data);
    console.log(`took ${data} with fence ${item.fence}`);
    try {
      await post(`participants/${joined.participant}/ack`, whole);
    } catch (error) {
      if (!(error instanceof Ended)) throw error;
      console.log(`lost: ${error.message}`);
      process.exit(76);
    }
    console.log(`done ${data}`);
    taken++;
  }
  process.exit(0);
}

const [operation, ...words] = process.argv.slice(2);
try {
  await { put, take }[operation](...words);
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
