import assert from 'node:assert/strict';
import { test } from 'node:test';

import { readContender } from '../src/name.js';

const contender = (name) => readContender(name, '-lock-');

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
