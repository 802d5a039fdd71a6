// The names of contenders. Pure: nothing here calls the host.

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
