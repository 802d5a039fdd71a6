// To ask a contender to give way, and to be asked. The numbers are those of the text's "Revocable Shared
// Locks":
//
// 1r. Read the data of the own znode, with a watch; what is read first is looked at as well.
// 2r. Woken by that watch, read it again. If it holds the request, consent.
// 3r. To ask: write the request to the other's znode.
// 4r. Only where it is agreed: delete that znode when the time is over.

import * as zookeeper from 'wok:recipe/zookeeper@0.1.0';
import * as participant from 'wok:recipe/participant@0.1.0';
import { alarm } from 'wok:recipe/time-and-chance@0.1.0';

import { asks, ownerOf, withRequest } from './request.js';

// One watch wakes this participant, so its tag says nothing.
const TAG = 0n;

// How long a participant that could not look at its own znode waits before it looks again. This is no
// poll: the host has already retried what reconnecting mends.
const LOOK_AGAIN_MS = 1000n;

// A participant that listens for requests on its own znode.
export class Listening {
  // Step 1r.
  constructor(path, word) {
    this.path = path;
    this.word = word;
    // The version of the data that was told last, or written here behind that.
    this.told = undefined;
    const [{ data }, watch] = zookeeper.watchData(path, TAG);
    this.watch = watch;
    // No watch will tell of what was there before: wake as soon as the component is idle.
    if (asks(word, data)) this.watchInstead(alarm(0n, TAG));
  }

  // Step 2r. Tells a request that is new, and answers whether there is one.
  hear(fence) {
    let read;
    try {
      const [contents, watch] = zookeeper.watchData(this.path, TAG);
      this.watchInstead(watch);
      read = contents;
    } catch (error) {
      // Of one that is gone the host tells the loss.
      if (error.payload?.tag !== 'no-node') {
        participant.log('warn', 'cannot look for a request on the own znode');
        this.watchInstead(alarm(LOOK_AGAIN_MS, TAG));
      }
      return false;
    }
    const { data, stat } = read;
    if (!asks(this.word, data) || this.told === stat.version) return false;
    this.told = stat.version;
    participant.emit('revoke-requested', [['path', this.path], ['fence', String(fence)]]);
    if (ownerOf(this.word, data).length === 0) this.restoreOwner(stat.version);
    return true;
  }

  stop() {
    this.watch[Symbol.dispose]();
  }

  watchInstead(watch) {
    this.watch[Symbol.dispose]();
    this.watch = watch;
  }

  // Writes the own owner's text before a request that has replaced it, as Curator's does.
  restoreOwner(version) {
    const owner = new TextEncoder().encode(participant.owner());
    try {
      const stat = zookeeper.setData(this.path, withRequest(this.word, owner), version);
      this.told = stat.version;
    } catch {
      // Somebody has written again, or it is gone: the watch tells.
    }
  }
}

// Steps 3r and, where a time is given, 4r. Answers what became of the request.
export function askToGiveWay(path, word, forceAfterMs) {
  writeRequest(path, word);
  return forceAfterMs === undefined ? 'asked' : force(path, forceAfterMs);
}

// Step 3r.
function writeRequest(path, word) {
  for (;;) {
    const { data, stat } = readNewest(path);
    if (asks(word, data)) return;
    try {
      zookeeper.setData(path, withRequest(word, data), stat.version);
      return;
    } catch (error) {
      // Somebody has written meanwhile, or perhaps it was this very request.
      if (!['bad-version', 'outcome-unknown'].includes(error.payload?.tag)) throw error;
    }
  }
}

// What the leader has, in one round trip: the path may come from somebody whose server is ahead of ours.
function readNewest(path) {
  for (;;) {
    const replies = zookeeper.pipeline([{ tag: 'sync', val: path }, { tag: 'get-data', val: path }]);
    const failed = replies.find(({ tag }) => tag === 'err');
    if (!failed) return replies[1].val.val;
    // The connection was lost, and a pipeline is sent once. Nothing was written.
    if (failed.val.tag !== 'outcome-unknown') throw failed.val;
  }
}

// Step 4r. A znode with a UUID in its name does not come back, so nobody else is struck.
function force(path, afterMs) {
  const time = alarm(afterMs, TAG);
  try {
    for (;;) {
      const [, watch] = zookeeper.watchData(path, TAG);
      try {
        zookeeper.wait([time, watch]);
        if (['deleted', 'claim-deleted'].includes(watch.fired())) return 'gone';
      } finally {
        watch[Symbol.dispose]();
      }
      if (time.fired() !== undefined) break;
    }
    participant.log('warn', `${participant.owner()} deletes ${path}, which did not give way`);
    zookeeper.delete(path, undefined);
    return 'forced';
  } catch (error) {
    if (error.payload?.tag === 'no-node') return 'gone';
    throw error;
  } finally {
    time[Symbol.dispose]();
  }
}
