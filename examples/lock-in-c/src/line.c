#include "line.h"

#include <stdlib.h>
#include <string.h>

// ZooKeeper writes `%010d`: ten digits, or a minus sign and nine or ten.
static const size_t DIGITS = 10;

static bool same_bytes(const uint8_t *bytes, const char *text, size_t length) {
  return memcmp(bytes, text, length) == 0;
}

// Compares as bytes, as the other clients of the line do.
static int compare_names(const recipe_string_t *one, const recipe_string_t *other) {
  size_t shorter = one->len < other->len ? one->len : other->len;
  int order = memcmp(one->ptr, other->ptr, shorter);
  if (order != 0) return order;
  return (one->len > other->len) - (one->len < other->len);
}

// How far `counter` is ahead of `origin` on the circle of 32 bits, the shorter way round: negative
// if it was given out before. So a line goes on where the counter wraps.
static int32_t steps_after(int32_t counter, int32_t origin) {
  return (int32_t)((uint32_t)counter - (uint32_t)origin);
}

static bool is_ahead(const struct contender *one, const struct contender *other) {
  if (one->counter == other->counter) return compare_names(&one->name, &other->name) < 0;
  return steps_after(one->counter, other->counter) < 0;
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

void take_notice(struct standing *standing, const struct contender *own,
                 const struct contender *child) {
  if (compare_names(&child->name, &own->name) == 0) {
    standing->is_there = true;
    return;
  }
  if (!is_ahead(child, own)) return;
  bool is_nearest = standing->ahead == 0 || is_ahead(&standing->predecessor, child);
  if (is_nearest) {
    if (standing->ahead > 0) recipe_string_free(&standing->predecessor.name);
    recipe_string_dup_n(&standing->predecessor.name, (const char *)child->name.ptr,
                        child->name.len);
    standing->predecessor.counter = child->counter;
  }
  standing->ahead++;
}

// Seen from one of the line, counters are in a total order, as sorting needs. `qsort` hands nothing
// to the function that compares.
static int32_t origin;

static int compare_contenders(const void *left, const void *right) {
  const struct contender *one = left;
  const struct contender *other = right;
  int32_t one_steps = steps_after(one->counter, origin);
  int32_t other_steps = steps_after(other->counter, origin);
  if (one_steps != other_steps) return one_steps < other_steps ? -1 : 1;
  return compare_names(&one->name, &other->name);
}

void sort_line(struct contender *line, size_t length) {
  if (length == 0) return;
  origin = line[0].counter;
  qsort(line, length, sizeof *line, compare_contenders);
}
