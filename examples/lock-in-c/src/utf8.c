#include "utf8.h"

// The length of the character at the beginning of the bytes; 0 if there is none.
static size_t character(const uint8_t *bytes, size_t length) {
  uint8_t first = bytes[0];
  if (first < 0x80) return 1;

  size_t size;
  uint32_t code;
  uint32_t least;
  if ((first & 0xe0) == 0xc0) {
    size = 2, code = first & 0x1f, least = 0x80;
  } else if ((first & 0xf0) == 0xe0) {
    size = 3, code = first & 0x0f, least = 0x800;
  } else if ((first & 0xf8) == 0xf0) {
    size = 4, code = first & 0x07, least = 0x10000;
  } else {
    return 0;
  }
  if (size > length) return 0;
  for (size_t i = 1; i < size; i++) {
    if ((bytes[i] & 0xc0) != 0x80) return 0;
    code = code << 6 | (bytes[i] & 0x3f);
  }
  int is_surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < least || code > 0x10ffff || is_surrogate ? 0 : size;
}

void make_utf8(uint8_t *text, size_t length) {
  for (size_t at = 0; at < length;) {
    size_t size = character(text + at, length - at);
    if (size == 0) text[at] = '?';
    at += size == 0 ? 1 : size;
  }
}
