#!/usr/bin/env node
// Puts items into a queue, or takes them: jobs.mjs put RECIPE ITEM... | jobs.mjs take RECIPE [COUNT]
//
// `take` ends with 0 after that many items, or goes on without COUNT. It ends with 76 when an item that it
// worked on has been lost meanwhile.

import { once } from "node:events";
import { request } from "node:http";

const uid = process.geteuid();
const runtime = uid === 0 ? "/run/wok" : (process.env.XDG_RUNTIME_DIR ?? `/tmp/wok-${uid}`);
const socketPath = process.env.WOK_SOCKET ?? `${runtime}/wok.sock`;

async function read(answer) {
  let text = "";
  for await (const part of answer.setEncoding("utf8")) text += part;
  return JSON.parse(text);
}

async function post(path, body = {}) {
  const posted = request({ socketPath, method: "POST", path: `/v1/${path}` });
  posted.end(JSON.stringify(body));
  const [answer] = await once(posted, "response");
  if (answer.statusCode === 200) return answer;
  const error = await read(answer);
  // 409 is the queue's own answer, 410 that this participant has ended.
  const isLost = [409, 410].includes(answer.statusCode);
  if (isLost) console.log(`lost: ${JSON.stringify(error.error)}`);
  else console.error(`${path}: ${JSON.stringify(error)}`);
  process.exit(isLost ? 76 : 1);
}

async function put(recipe, ...items) {
  for (const item of items) {
    await read(await post(`recipes/${recipe}/call/put`, { data: item }));
    console.log(`put ${item}`);
  }
}

async function take(recipe, count = Infinity) {
  // The stream keeps the participant, so it has to be read, whatever it says.
  const stream = await post(`recipes/${recipe}/join`);
  const [line] = await once(stream.setEncoding("utf8"), "data");
  const { participant } = JSON.parse(line.split("\n")[0]);
  stream.on("error", () => {}).resume();
  for (let taken = 0; taken < count; taken++) {
    const item = await read(await post(`participants/${participant}/take`));
    // The item comes back to somebody else if this process dies here. So the work may be done twice, and
    // whatever is written to should refuse a fence that is lower than the highest it has seen.
    console.log(`took ${item.data} with fence ${item.fence}`);
    await read(await post(`participants/${participant}/ack`));
    console.log(`done ${item.data}`);
  }
  process.exit(0);
}

const [operation, ...words] = process.argv.slice(2);
await { put, take }[operation](...words);
