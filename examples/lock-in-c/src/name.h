// The names of contenders. Pure: nothing here calls the host.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "recipe.h"

// Reads the counter behind the last `after` of a child's name: what ZooKeeper appended, which is signed.
// False if the child is no contender. What stands before `after` is anybody's: clients spell their UUIDs
// differently.
bool read_counter(const recipe_string_t *name, const char *after, int32_t *counter);
