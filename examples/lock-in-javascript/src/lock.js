// The lock of ZooKeeper's recipes.
//
// The numbers in the code are the steps of the published pseudo-code:
//
// 1. Create an ephemeral sequential znode in the lock's directory, with a GUID in its name.
// 2. List the directory, without a watch.
// 3. The contender with the lowest counter has the lock.
// 4. Watch the contender with the next lowest counter.
// 5. Once it is gone, go to 2.
//
// Unlock: delete the znode of step 1.
//
// What a lock that is revocable adds is in `revocation.js`.

import { getChildren, pipeline, wait, watchData } from 'wok:recipe/zookeeper@0.1.0';
import * as participant from 'wok:recipe/participant@0.1.0';

import { readContender } from './name.js';
import { ownerOf, withoutRequest } from './request.js';
import { Listening, askToGiveWay } from './revocation.js';

// The mount is the lock's directory.
const DIRECTORY = '/';

// How many contenders are told of: a list for people.
const MOST_CONTENDERS = 1000;

// How many owners are read in one round trip.
const OWNERS_AT_ONCE = 64;

const CURATOR = { before: '_c_', uuid: 'hyphenated', after: '-lock-' };
const KAZOO = { before: '', uuid: 'simple', after: '__lock__' };

const encoder = new TextEncoder();
const decoder = new TextDecoder();

let naming = CURATOR;

// How a contender of that naming is asked to give way.
let request = encoder.encode('__REVOKE__');

// When this participant gives way once it is asked; none if it does not listen.
let consent;
let forceAfterMs;

// `{own, grant, listening}` while the lock is held.
let held;

// A function that throws one of the contract's errors answers it; anything else thrown is a bug, and
// traps.
export const lock = {
  configure(config) {
    const isKazoo = config.format === 'kazoo';
    naming = isKazoo ? KAZOO : CURATOR;
    request = encoder.encode(isKazoo ? 'unlock' : '__REVOKE__');
    if (config.consent !== undefined && !config.revocable) {
      throw 'consent: nobody asks this participant; set revocable = true';
    }
    consent = config.revocable ? config.consent ?? 'at-once' : undefined;
    if (config.forceAfterMs === 0n) throw 'force-after-ms: 0 leaves no time to give way';
    forceAfterMs = config.forceAfterMs;
  },

  wake() {
    if (!held?.listening?.hear(held.grant.fence) || consent !== 'at-once') return;
    try {
      giveUp();
    } catch {
      // Nobody is left to tell, and the host goes on until the znode is gone.
    }
  },

  acquire() {
    if (held) return held.grant;
    const [own, first] = contend(); // 1, 2
    return releasedOnError(own, () => {
      let standing = first;
      for (;;) {
        if (!standing.isThere) throw { tag: 'no-node' };
        if (standing.ahead === 0) return hold(own); // 3
        const wasClaim = waitUntilGone(DIRECTORY + standing.predecessor); // 4
        // If it was the first of the line, later contenders stand behind us: the lock is ours.
        // Only the first claims. Any other may have given up its wait while others are ahead.
        if (standing.ahead === 1 || wasClaim) return hold(own);
        standing = look(own, getChildren(DIRECTORY)); // 5, 2
      }
    });
  },

  tryAcquire() {
    if (held) return held.grant;
    const [own, standing] = contend(); // 1, 2
    if (standing.isThere && standing.ahead > 0) {
      participant.release(own.path);
      return undefined;
    }
    return releasedOnError(own, () => {
      if (!standing.isThere) throw { tag: 'no-node' };
      return hold(own); // 3
    });
  },

  release() {
    if (!held) throw { tag: 'invalid', val: 'release: the lock is not held' };
    giveUp();
  },

  contenders() {
    const line = readLine();
    const told = [];
    for (let start = 0; start < line.length; start += OWNERS_AT_ONCE) {
      const batch = line.slice(start, start + OWNERS_AT_ONCE);
      const reads = batch.map((name) => ({ tag: 'get-data', val: DIRECTORY + name }));
      pipeline(reads).forEach((reply, index) => {
        if (reply.tag === 'err') {
          // Gone since the list was read.
          if (reply.val.tag === 'no-node') return;
          throw reply.val;
        }
        const owner = decoder.decode(ownerOf(request, reply.val.val.data));
        told.push({ path: reads[index].val, owner, isHolder: start + index === 0 });
      });
    }
    return told;
  },

  revoke(path) {
    const name = path.startsWith(DIRECTORY) ? path.slice(DIRECTORY.length) : '';
    if (name.includes('/') || !readContender(name, naming.after)) {
      throw { tag: 'invalid', val: `${path} is no contender's; \`contenders\` tells them` };
    }
    if (held?.own.path === path) {
      throw { tag: 'invalid', val: "revoke: it is this participant's own: release it" };
    }
    return askToGiveWay(path, request, forceAfterMs);
  },
};

// Steps 1 and 2, in one round trip. The host makes the GUID and finds the znode again if the reply
// is lost.
function contend() {
  const data = withoutRequest(request, encoder.encode(participant.owner()));
  const [{ path }, children] = participant.contendAndList(DIRECTORY, naming, data);
  const own = { path, contender: readContender(path.slice(DIRECTORY.length), naming.after) };
  return releasedOnError(own, () => [own, look(own, children)]);
}

// Step 2: whether the own contender is there, how many are ahead, and the name of the next one ahead. The
// host puts the children in line, so only one name of a long list comes here.
function look({ contender }, children) {
  try {
    children.order([naming.after]);
    const { isThere, ahead } = children.position(contender.name, contender.counter);
    if (!isThere || ahead === 0) return { isThere, ahead };
    children.skip(ahead - 1);
    const [predecessor] = children.next(1);
    return { isThere, ahead, predecessor };
  } finally {
    giveBack(children);
  }
}

// Step 3: from here the host watches the znode, and nobody else decides whether it still stands.
function hold(own) {
  // Before the claim, which shares the watch then and needs no request of its own.
  const listening = consent && new Listening(own.path, request);
  try {
    const grant = { path: own.path, fence: participant.claim(own.path) };
    held = { own, grant, listening };
    return grant;
  } catch (error) {
    listening?.stop();
    throw error;
  }
}

// Gives the lock back that is held.
function giveUp() {
  const { own, listening } = held;
  held = undefined;
  listening?.stop();
  participant.release(own.path);
}

// Step 4. Reads the data, not the existence: a watch set on a znode that is gone would stay.
// Answers whether the znode was the claim of a participant of this host.
function waitUntilGone(path) {
  for (;;) {
    let watch;
    try {
      // Nothing waits for it while idle, so the tag says nothing.
      [, watch] = watchData(path, 0n);
    } catch (error) {
      if (error.payload?.tag === 'no-node') return false;
      throw error;
    }
    try {
      wait([watch]);
      const event = watch.fired();
      if (event === 'claim-deleted') return true;
      if (event === 'deleted') return false;
      // A change of the data only has the znode looked at again.
    } finally {
      giveBack(watch);
    }
  }
}

// The names of the first of the line.
function readLine() {
  let children;
  try {
    children = getChildren(DIRECTORY);
  } catch (error) {
    // The directory comes with the first contender.
    if (error.payload?.tag === 'no-node') return [];
    throw error;
  }
  try {
    children.order([naming.after]);
    return children.next(MOST_CONTENDERS);
  } finally {
    giveBack(children);
  }
}

// Whatever way an operation fails or is cancelled, it leaves no contender behind.
function releasedOnError(own, action) {
  try {
    return action();
  } catch (error) {
    try {
      participant.release(own.path);
    } catch {
      // Nobody is left to tell, and the host goes on until the znode is gone.
    }
    throw error;
  }
}

// The garbage collector would come too late: a participant may own a few lists and watches.
function giveBack(resource) {
  resource[Symbol.dispose]();
}
