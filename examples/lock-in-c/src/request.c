#include "request.h"

#include <stdlib.h>
#include <string.h>

bool asks(const char *word, const uint8_t *data, size_t length) {
  size_t behind = strlen(word);
  if (length < behind || memcmp(data + length - behind, word, behind) != 0) return false;
  return length == behind || data[length - behind - 1] == '\n';
}

size_t owner_length(const char *word, const uint8_t *data, size_t length) {
  if (!asks(word, data, length)) return length;
  size_t behind = strlen(word);
  return length == behind ? 0 : length - behind - 1;
}

uint8_t *with_request(const char *word, const uint8_t *data, size_t length, size_t *asking) {
  size_t owner = owner_length(word, data, length), behind = strlen(word);
  size_t line = owner == 0 ? 0 : owner + 1;
  uint8_t *all = malloc(line + behind);
  // A trap ends this participant alone, and its znodes go with it.
  if (all == NULL) abort();
  if (owner > 0) {
    memcpy(all, data, owner);
    all[owner] = '\n';
  }
  memcpy(all + line, word, behind);
  *asking = line + behind;
  return all;
}
