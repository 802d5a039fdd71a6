import assert from 'node:assert/strict';
import { test } from 'node:test';

import { asks, ownerOf, withRequest, withoutRequest } from '../src/request.js';

const bytes = (text) => new TextEncoder().encode(text);
const text = (data) => new TextDecoder().decode(data);
const WORD = bytes('__REVOKE__');

test('a request stands alone or in the last line', () => {
  for (const owner of ['', 'root@a pid 1', 'two\nlines', 'Zoë']) {
    const data = bytes(owner === '' ? '__REVOKE__' : `${owner}\n__REVOKE__`);
    assert.ok(asks(WORD, data), owner);
    assert.equal(text(ownerOf(WORD, data)), owner);
    assert.deepEqual(withRequest(WORD, bytes(owner)), data);
    assert.deepEqual(withRequest(WORD, data), data, 'it is made once');
  }
});

test('what only holds the word asks for nothing', () => {
  for (const other of ['', 'root@a pid 1', 'no __REVOKE__', '__REVOKE__\n', 'unlock']) {
    assert.ok(!asks(WORD, bytes(other)), other);
    assert.equal(text(ownerOf(WORD, bytes(other))), other);
  }
});

test('an owner that is called as the request is not asked', () => {
  for (const owner of ['__REVOKE__', 'a\n__REVOKE__', 'root@a pid 1']) {
    const data = withoutRequest(WORD, bytes(owner));
    assert.ok(!asks(WORD, data) && text(data).startsWith(owner), owner);
  }
});
