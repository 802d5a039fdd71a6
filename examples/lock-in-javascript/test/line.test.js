import assert from 'node:assert/strict';
import { test } from 'node:test';

import { readContender, sortLine, standingOf } from '../src/line.js';

const contender = (name) => readContender(name, '-lock-');

function standing(own, names) {
  return standingOf(contender(own), names.map(contender).filter(Boolean));
}

test('the counters that ZooKeeper writes are read', () => {
  for (const [digits, counter] of [
    ['0000000000', 0],
    ['2147483647', 2147483647],
    ['-2147483648', -2147483648],
    ['-000000001', -1],
  ]) {
    assert.equal(contender(`_c_uuid-lock-${digits}`).counter, counter);
  }
});

test('other children are no contenders', () => {
  const foreign = ['', 'config', '-lock-', 'x-lock-12', 'x-lock-2147483648', 'x-lock-+000000001'];
  for (const name of foreign) {
    assert.equal(contender(name), undefined, name);
  }
});

test('the lowest counter is first though its name sorts last', () => {
  const names = ['a-lock-0000000002', 'z-lock-0000000001'];
  assert.deepEqual(standing('z-lock-0000000001', names), {
    isThere: true,
    ahead: 0,
    predecessor: undefined,
  });
});

test('the nearest ahead is the predecessor', () => {
  const before = ['z-lock-0000000002', 'b-lock-0000000008'];
  const names = [...before, 'a-lock-0000000009', 'c-lock-0000000010'];
  assert.deepEqual(standing('a-lock-0000000009', names), {
    isThere: true,
    ahead: 2,
    predecessor: 'b-lock-0000000008',
  });
});

test('a contender that is missing stands nowhere', () => {
  assert.equal(standing('a-lock-0000000001', ['b-lock-0000000002']).isThere, false);
});

test('the line goes on where the counter wraps', () => {
  const names = ['b-lock--2147483647', 'c-lock-2147483647', 'd-lock--2147483648'];
  assert.equal(standing('d-lock--2147483648', names).predecessor, 'c-lock-2147483647');
  assert.deepEqual(
    sortLine(names.map(contender)).map(({ name }) => name),
    ['c-lock-2147483647', 'd-lock--2147483648', 'b-lock--2147483647'],
  );
});
