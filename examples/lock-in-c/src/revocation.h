// To ask a contender to give way, and to be asked. The numbers are those of the text's "Revocable Shared
// Locks":
//
// 1r. Read the data of the own znode, with a watch; what is read first is looked at as well.
// 2r. Woken by that watch, read it again. If it holds the request, consent.
// 3r. To ask: write the request to the other's znode.
// 4r. Only where it is agreed: delete that znode when the time is over.
#pragma once

#include <stdbool.h>

#include "recipe.h"

// What a participant listens on.
struct listening {
  bool is_on;
  wok_recipe_zookeeper_own_watch_t watch;
  // The version of the data that was told last, or written here behind that; none is -1.
  int32_t told;
};

// Step 1r. `is_on` is false before, and stays so after an error.
bool listen_to(struct listening *listening, recipe_string_t *path, const char *word,
               wok_recipe_zookeeper_error_t *error);

// Step 2r. Tells a request that is new; true if there is one.
bool hear_request(struct listening *listening, recipe_string_t *path, const char *word,
                  wok_recipe_participant_fence_t fence);

// Listens no more.
void stop_listening(struct listening *listening);

// What became of a request.
enum asked { ASKED, GONE, FORCED };

// Steps 3r and, where a time is given, 4r.
bool ask_to_give_way(recipe_string_t *path, const char *word, const uint64_t *force_after_ms,
                     enum asked *asked, wok_recipe_zookeeper_error_t *error);
