// Who stands where in a line of contenders. Pure: nothing here calls the host.

// ZooKeeper writes `%010d`: ten digits, or a minus sign and nine or ten.
const COUNTER = /^(?:\d{10}|-\d{9,10})$/;

/**
 * Reads a child's name: `{name, counter}`, or nothing if it is no contender's.
 *
 * The counter stands behind the last `after`. What stands before it is anybody's: the clients that
 * share a directory spell their UUIDs differently.
 */
export function readContender(name, after) {
  // From the right: a wrapped counter has a minus sign, and `after` may end with one too.
  const start = name.lastIndexOf(after);
  if (start < 0) return undefined;
  const digits = name.slice(start + after.length);
  if (!COUNTER.test(digits)) return undefined;
  const counter = Number(digits);
  return counter === (counter | 0) ? { name, counter } : undefined;
}

/**
 * How far a counter is ahead of another on the circle of 32 bits, the shorter way round: negative
 * if it was given out before. So a line goes on where the counter wraps.
 */
function stepsAfter(counter, origin) {
  return (counter - origin) | 0;
}

function compareNames(one, other) {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function isAhead(one, other) {
  const steps = stepsAfter(one.counter, other.counter);
  return steps === 0 ? compareNames(one.name, other.name) < 0 : steps < 0;
}

/**
 * Where the contender `own` stands among all of them: whether it is there, how many are ahead, and
 * the name of the next one ahead.
 */
export function standingOf(own, contenders) {
  let isThere = false;
  let ahead = 0;
  let predecessor;
  for (const contender of contenders) {
    if (contender.name === own.name) {
      isThere = true;
    } else if (isAhead(contender, own)) {
      ahead += 1;
      if (predecessor === undefined || isAhead(predecessor, contender)) predecessor = contender;
    }
  }
  return { isThere, ahead, predecessor: predecessor?.name };
}

/** Sorts contenders in place, the first in line first. */
export function sortLine(contenders) {
  if (contenders.length === 0) return contenders;
  // Seen from one of the line, counters are in a total order, as sorting needs.
  const origin = contenders[0].counter;
  return contenders.sort((one, other) => {
    const steps = stepsAfter(one.counter, origin) - stepsAfter(other.counter, origin);
    return steps === 0 ? compareNames(one.name, other.name) : steps;
  });
}
