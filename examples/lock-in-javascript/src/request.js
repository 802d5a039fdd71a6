// The request to give way, as the data of a contender's znode. Pure: nothing here calls the host.

const NEWLINE = 10;

// What stands before a request, if the data ends with the word, alone or in a line of its own.
function before(word, data) {
  const at = data.length - word.length;
  if (at < 0 || word.some((byte, index) => data[at + index] !== byte)) return undefined;
  if (at === 0) return data.subarray(0, 0);
  return data[at - 1] === NEWLINE ? data.subarray(0, at - 1) : undefined;
}

// Whether the data asks to give way.
export function asks(word, data) {
  return before(word, data) !== undefined;
}

// The data without the request: whose the znode is.
export function ownerOf(word, data) {
  return before(word, data) ?? data;
}

// The data with the request in it.
export function withRequest(word, data) {
  const owner = ownerOf(word, data);
  return owner.length === 0 ? word : Uint8Array.from([...owner, NEWLINE, ...word]);
}

// The data of a new contender, whose owner's text may be anything: nobody asks it yet.
export function withoutRequest(word, owner) {
  return asks(word, owner) ? Uint8Array.from([...owner, NEWLINE]) : owner;
}
