// Who stands where in a line of contenders. Pure: nothing here calls the host.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recipe.h"

// A contender znode. The name is the contender's own memory.
struct contender {
  recipe_string_t name;
  // What ZooKeeper appended to the name: signed, and it wraps.
  int32_t counter;
};

// Where an own contender stands, from one look at the children.
struct standing {
  // Somebody may have deleted it.
  bool is_there;
  size_t ahead;
  // The next one ahead, whose name is the standing's own memory: there if `ahead` is not 0.
  struct contender predecessor;
};

// Reads the counter behind the last `after` of a child's name; false if the child is no contender.
// What stands before `after` is anybody's: clients spell their UUIDs differently.
bool read_counter(const recipe_string_t *name, const char *after, int32_t *counter);

// Has the standing of `own` take notice of one of the children. It keeps a copy if it has to.
void take_notice(struct standing *standing, const struct contender *own,
                 const struct contender *child);

// Sorts contenders, the first in line first.
void sort_line(struct contender *line, size_t length);
