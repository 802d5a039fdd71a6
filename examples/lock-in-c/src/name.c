#include "name.h"

#include <string.h>

// ZooKeeper writes `%010d`: ten digits, or a minus sign and nine or ten.
static const size_t DIGITS = 10;

static bool same_bytes(const uint8_t *bytes, const char *text, size_t length) {
  return memcmp(bytes, text, length) == 0;
}

bool read_counter(const recipe_string_t *name, const char *after, int32_t *counter) {
  size_t after_length = strlen(after);
  // From the right: a wrapped counter has a minus sign, and `after` may end with one too.
  size_t start = name->len;
  while (start >= after_length &&
         !same_bytes(name->ptr + start - after_length, after, after_length))
    start--;
  if (start < after_length) return false;

  const uint8_t *digits = name->ptr + start;
  size_t length = name->len - start;
  bool is_negative = length > 0 && digits[0] == '-';
  if (is_negative) {
    digits++;
    length--;
  }
  if (length != DIGITS && !(is_negative && length == DIGITS - 1)) return false;
  int64_t number = 0;
  for (size_t i = 0; i < length; i++) {
    if (digits[i] < '0' || digits[i] > '9') return false;
    number = number * 10 + (digits[i] - '0');
  }
  if (is_negative) number = -number;
  if (number < INT32_MIN || number > INT32_MAX) return false;
  *counter = (int32_t)number;
  return true;
}
