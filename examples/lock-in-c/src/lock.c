// The lock of ZooKeeper's recipes.
//
// The numbers in the code are the steps of the published pseudo-code:
//
// 1. Create an ephemeral sequential znode in the lock's directory, with a GUID in its name.
// 2. List the directory, without a watch.
// 3. The contender with the lowest counter has the lock.
// 4. Watch the contender with the next lowest counter.
// 5. Once it is gone, go to 2.
//
// Unlock: delete the znode of step 1.
//
// What a lock that is revocable adds is in `revocation.c`.

#include <stdlib.h>
#include <string.h>

#include "name.h"
#include "recipe.h"
#include "request.h"
#include "revocation.h"
#include "utf8.h"

typedef wok_recipe_zookeeper_error_t error_t;

// The mount is the lock's directory.
static const char DIRECTORY[] = "/";

// How many contenders are told of: a list for people.
static const uint32_t MOST_CONTENDERS = 1000;

// How many owners are read in one round trip.
enum { OWNERS_AT_ONCE = 64 };

// How contenders are named: before, UUID, after, counter.
struct naming {
  const char *before;
  wok_recipe_participant_uuid_form_t uuid;
  const char *after;
  // How one of them is asked to give way.
  const char *request;
};

static const struct naming CURATOR = {"_c_", WOK_RECIPE_PARTICIPANT_UUID_FORM_HYPHENATED, "-lock-",
                                      "__REVOKE__"};
static const struct naming KAZOO = {"", WOK_RECIPE_PARTICIPANT_UUID_FORM_SIMPLE, "__lock__",
                                    "unlock"};

// An own contender znode.
struct own {
  recipe_string_t path;
  // A part of the path.
  recipe_string_t name;
  int32_t counter;
};

// Where it stands, from one look at the children.
struct standing {
  // Somebody may have deleted it.
  bool is_there;
  uint32_t ahead;
  // The name of the next one ahead, which is the standing's own memory: there if `ahead` is not 0.
  recipe_string_t predecessor;
};

static struct {
  // None stands for `CURATOR`, the default.
  const struct naming *naming;
  bool is_revocable;
  bool gives_way_at_once;
  // 0 stands for none.
  uint64_t force_after_ms;
  bool is_held;
  struct own own;
  wok_recipe_participant_fence_t fence;
  struct listening listening;
} lock;

static const struct naming *naming(void) { return lock.naming ? lock.naming : &CURATOR; }

// A text of this program's as an argument: only read, and never freed.
static recipe_string_t text(const char *literal) {
  recipe_string_t string;
  recipe_string_set(&string, literal);
  return string;
}

static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count, size);
  // A trap ends this participant alone, and its znodes go with it.
  if (memory == NULL) abort();
  return memory;
}

static recipe_string_t path_of(const recipe_string_t *name) {
  size_t length = strlen(DIRECTORY);
  recipe_string_t path = {allocate(length + name->len, 1), length + name->len};
  memcpy(path.ptr, DIRECTORY, length);
  memcpy(path.ptr + length, name->ptr, name->len);
  return path;
}

// Has the host put the contenders among the children in line: of a long one it hands out what is asked
// for, and no more, because a component's memory never shrinks. Tells how many there are.
static uint32_t line_up(wok_recipe_zookeeper_borrow_children_t children) {
  recipe_string_t infix = text(naming()->after);
  recipe_list_string_t infixes = {&infix, 1};
  wok_recipe_zookeeper_line_t line;
  wok_recipe_zookeeper_method_children_order(children, &infixes, &line);
  uint32_t length = line.length;
  wok_recipe_zookeeper_line_free(&line);
  return length;
}

// The host goes on until the znode is gone, so there is nobody left to tell of an error.
static void leave(struct own *own) {
  error_t error;
  if (!wok_recipe_participant_release(&own->path, &error)) wok_recipe_zookeeper_error_free(&error);
  recipe_string_free(&own->path);
}

// Finds the own contender's place, and gives the list back to the host.
static void look_at(wok_recipe_zookeeper_own_children_t owned, const struct own *own,
                    struct standing *standing) {
  wok_recipe_zookeeper_borrow_children_t children = wok_recipe_zookeeper_borrow_children(owned);
  line_up(children);
  recipe_string_t name = own->name;
  wok_recipe_zookeeper_place_t place;
  wok_recipe_zookeeper_method_children_position(children, &name, own->counter, &place);
  *standing = (struct standing){.is_there = place.is_there, .ahead = 0};
  if (place.is_there && place.ahead > 0) {
    wok_recipe_zookeeper_method_children_skip(children, place.ahead - 1);
    recipe_list_string_t nearest;
    wok_recipe_zookeeper_method_children_next(children, 1, &nearest);
    // The host has counted them, so there is one.
    if (nearest.len != 1) abort();
    standing->ahead = place.ahead;
    recipe_string_dup_n(&standing->predecessor, (const char *)nearest.ptr[0].ptr,
                        nearest.ptr[0].len);
    recipe_list_string_free(&nearest);
  }
  wok_recipe_zookeeper_children_drop_own(owned);
}

// Steps 1 and 2, in one round trip. The host makes the GUID and finds the znode again if the reply
// is lost.
static bool contend(struct own *own, struct standing *standing, error_t *error) {
  recipe_string_t directory = text(DIRECTORY);
  wok_recipe_participant_contender_name_t name = {
      .before = text(naming()->before), .uuid = naming()->uuid, .after = text(naming()->after)};
  recipe_string_t owner;
  wok_recipe_participant_owner(&owner);
  recipe_list_u8_t data = {owner.ptr, owner.len};
  // An owner may be called as the request is, and nobody asks it yet.
  if (asks(naming()->request, owner.ptr, owner.len)) {
    data.ptr = allocate(owner.len + 1, 1);
    memcpy(data.ptr, owner.ptr, owner.len);
    data.ptr[data.len++] = '\n';
  }
  wok_recipe_participant_tuple2_created_own_children_t created;
  bool is_created =
      wok_recipe_participant_contend_and_list(&directory, &name, &data, &created, error);
  if (data.ptr != owner.ptr) free(data.ptr);
  recipe_string_free(&owner);
  if (!is_created) return false;

  own->path = created.f0.path;
  size_t start = strlen(DIRECTORY);
  own->name = (recipe_string_t){own->path.ptr + start, own->path.len - start};
  if (!read_counter(&own->name, naming()->after, &own->counter)) {
    wok_recipe_zookeeper_children_drop_own(created.f1);
    leave(own);
    error->tag = WOK_RECIPE_ZOOKEEPER_ERROR_OTHER;
    recipe_string_dup(&error->val.other, "contend: no counter in the name");
    return false;
  }
  look_at(created.f1, own, standing);
  return true;
}

// Step 2, once more.
static bool look_again(const struct own *own, struct standing *standing, error_t *error) {
  recipe_string_t directory = text(DIRECTORY);
  wok_recipe_zookeeper_own_children_t children;
  if (!wok_recipe_zookeeper_get_children(&directory, &children, error)) return false;
  look_at(children, own, standing);
  return true;
}

// Step 4. Reads the data, not the existence: a watch set on a znode that is gone would stay. Tells
// whether the znode was the claim of a participant of this host.
static bool wait_until_gone(recipe_string_t *path, bool *was_claim, error_t *error) {
  *was_claim = false;
  for (;;) {
    wok_recipe_zookeeper_tuple2_contents_own_watch_t watched;
    // Nothing waits for it while idle, so the tag says nothing.
    if (!wok_recipe_zookeeper_watch_data(path, 0, &watched, error)) {
      return error->tag == WOK_RECIPE_ZOOKEEPER_ERROR_NO_NODE;
    }
    wok_recipe_zookeeper_contents_free(&watched.f0);
    wok_recipe_zookeeper_borrow_watch_t watch = wok_recipe_zookeeper_borrow_watch(watched.f1);
    wok_recipe_zookeeper_list_borrow_watch_t watches = {&watch, 1};
    uint32_t index;
    wok_recipe_zookeeper_event_t event = WOK_RECIPE_ZOOKEEPER_EVENT_DATA_CHANGED;
    bool has_waited = wok_recipe_zookeeper_wait(&watches, &index, error);
    if (has_waited) wok_recipe_zookeeper_method_watch_fired(watch, &event);
    wok_recipe_zookeeper_watch_drop_own(watched.f1);
    if (!has_waited) return false;
    *was_claim = event == WOK_RECIPE_ZOOKEEPER_EVENT_CLAIM_DELETED;
    if (*was_claim || event == WOK_RECIPE_ZOOKEEPER_EVENT_DELETED) return true;
    // A change of the data only has the znode looked at again.
  }
}

// Steps 4, 5 and 2, until 3.
static bool wait_for_turn(const struct own *own, struct standing *standing, error_t *error) {
  for (;;) {
    if (!standing->is_there) {
      error->tag = WOK_RECIPE_ZOOKEEPER_ERROR_NO_NODE;
      return false;
    }
    if (standing->ahead == 0) return true;
    recipe_string_t path = path_of(&standing->predecessor);
    recipe_string_free(&standing->predecessor);
    bool was_claim;
    bool is_gone = wait_until_gone(&path, &was_claim, error);
    recipe_string_free(&path);
    if (!is_gone) return false;
    // If it was the first of the line, later contenders stand behind us: the lock is ours. Only
    // the first claims. Any other may have given up its wait while others are still ahead.
    if (standing->ahead == 1 || was_claim) return true;
    if (!look_again(own, standing, error)) return false;
  }
}

// Step 3: from here the host watches the znode, and nobody else decides whether it still stands.
static bool hold(const struct own *own, error_t *error) {
  recipe_string_t path = own->path;
  // Before the claim, which shares the watch then and needs no request of its own.
  if (lock.is_revocable && !listen_to(&lock.listening, &path, naming()->request, error))
    return false;
  if (!wok_recipe_participant_claim(&path, &lock.fence, error)) {
    stop_listening(&lock.listening);
    return false;
  }
  lock.own = *own;
  lock.is_held = true;
  return true;
}

static void tell_grant(exports_wok_lock_lock_grant_t *grant) {
  recipe_string_dup_n(&grant->path, (const char *)lock.own.path.ptr, lock.own.path.len);
  grant->fence = lock.fence;
}

bool exports_wok_lock_lock_configure(exports_wok_lock_lock_config_t *config,
                                     recipe_string_t *error) {
  exports_wok_lock_lock_option_format_t *format = &config->format;
  bool is_kazoo = format->is_some && format->val == EXPORTS_WOK_LOCK_LOCK_FORMAT_KAZOO;
  lock.naming = is_kazoo ? &KAZOO : &CURATOR;
  lock.is_revocable = config->revocable.is_some && config->revocable.val;
  if (config->consent.is_some && !lock.is_revocable) {
    recipe_string_dup(error, "consent: nobody asks this participant; set revocable = true");
    return false;
  }
  lock.gives_way_at_once = !config->consent.is_some ||
                           config->consent.val == EXPORTS_WOK_LOCK_LOCK_CONSENT_AT_ONCE;
  if (config->force_after_ms.is_some && config->force_after_ms.val == 0) {
    recipe_string_dup(error, "force-after-ms: 0 leaves no time to give way");
    return false;
  }
  lock.force_after_ms = config->force_after_ms.is_some ? config->force_after_ms.val : 0;
  return true;
}

// Gives the lock back that is held.
static bool give_back(error_t *error) {
  lock.is_held = false;
  stop_listening(&lock.listening);
  bool is_released = wok_recipe_participant_release(&lock.own.path, error);
  recipe_string_free(&lock.own.path);
  return is_released;
}

void exports_wok_lock_lock_wake(recipe_list_u64_t *fired) {
  recipe_list_u64_free(fired);
  if (!lock.is_held || !lock.listening.is_on) return;
  bool is_asked =
      hear_request(&lock.listening, &lock.own.path, naming()->request, lock.fence);
  error_t error;
  // The host goes on until the znode is gone, so there is nobody left to tell of an error.
  if (is_asked && lock.gives_way_at_once && !give_back(&error))
    wok_recipe_zookeeper_error_free(&error);
}

bool exports_wok_lock_lock_acquire(exports_wok_lock_lock_grant_t *grant, error_t *error) {
  if (!lock.is_held) {
    struct own own;
    struct standing standing;
    if (!contend(&own, &standing, error)) return false;
    if (!wait_for_turn(&own, &standing, error) || !hold(&own, error)) {
      leave(&own);
      return false;
    }
  }
  tell_grant(grant);
  return true;
}

bool exports_wok_lock_lock_try_acquire(exports_wok_lock_lock_option_grant_t *grant,
                                       error_t *error) {
  grant->is_some = false;
  if (!lock.is_held) {
    struct own own;
    struct standing standing;
    if (!contend(&own, &standing, error)) return false;
    if (standing.ahead > 0) recipe_string_free(&standing.predecessor);
    if (!standing.is_there) {
      leave(&own);
      error->tag = WOK_RECIPE_ZOOKEEPER_ERROR_NO_NODE;
      return false;
    }
    if (standing.ahead > 0) {
      bool is_released = wok_recipe_participant_release(&own.path, error);
      recipe_string_free(&own.path);
      return is_released;
    }
    if (!hold(&own, error)) {
      leave(&own);
      return false;
    }
  }
  grant->is_some = true;
  tell_grant(&grant->val);
  return true;
}

bool exports_wok_lock_lock_release(error_t *error) {
  if (!lock.is_held) {
    error->tag = WOK_RECIPE_ZOOKEEPER_ERROR_INVALID;
    recipe_string_dup(&error->val.invalid, "release: the lock is not held");
    return false;
  }
  return give_back(error);
}

// Whether the path is that of a contender, and not the own one; otherwise tells what is wrong.
static bool may_be_asked(const recipe_string_t *path, error_t *error) {
  const char *wrong = NULL;
  size_t start = strlen(DIRECTORY);
  bool is_below = path->len > start && memcmp(path->ptr, DIRECTORY, start) == 0;
  recipe_string_t name = {path->ptr + start, is_below ? path->len - start : 0};
  int32_t counter;
  bool is_child = is_below && memchr(name.ptr, '/', name.len) == NULL;
  if (!is_child || !read_counter(&name, naming()->after, &counter)) {
    wrong = "revoke: that is no contender's path; `contenders` tells them";
  } else if (lock.is_held && path->len == lock.own.path.len &&
             memcmp(path->ptr, lock.own.path.ptr, path->len) == 0) {
    wrong = "revoke: it is this participant's own: release it";
  }
  if (wrong == NULL) return true;
  error->tag = WOK_RECIPE_ZOOKEEPER_ERROR_INVALID;
  recipe_string_dup(&error->val.invalid, wrong);
  return false;
}

bool exports_wok_lock_lock_revoke(recipe_string_t *path,
                                  exports_wok_lock_lock_request_outcome_t *outcome,
                                  error_t *error) {
  enum asked asked;
  const uint64_t *force_after_ms = lock.force_after_ms > 0 ? &lock.force_after_ms : NULL;
  bool is_done = may_be_asked(path, error) &&
                 ask_to_give_way(path, naming()->request, force_after_ms, &asked, error);
  recipe_string_free(path);
  if (!is_done) return false;
  *outcome = asked == ASKED  ? EXPORTS_WOK_LOCK_LOCK_REQUEST_OUTCOME_ASKED
             : asked == GONE ? EXPORTS_WOK_LOCK_LOCK_REQUEST_OUTCOME_GONE
                             : EXPORTS_WOK_LOCK_LOCK_REQUEST_OUTCOME_FORCED;
  return true;
}

// Adds a batch of the line to the answer. A contender that has gone since the line was read is left out.
static bool tell_batch(const recipe_list_string_t *names, bool is_first,
                       exports_wok_lock_lock_list_contender_t *answer, error_t *error) {
  wok_recipe_zookeeper_request_t reads[OWNERS_AT_ONCE];
  size_t length = names->len;
  for (size_t i = 0; i < length; i++) {
    reads[i].tag = WOK_RECIPE_ZOOKEEPER_REQUEST_GET_DATA;
    reads[i].val.get_data = path_of(&names->ptr[i]);
  }
  wok_recipe_zookeeper_list_request_t requests = {reads, length};
  wok_recipe_zookeeper_list_result_reply_error_t replies;
  wok_recipe_zookeeper_pipeline(&requests, &replies);
  bool is_told = true;
  for (size_t i = 0; i < length && is_told; i++) {
    wok_recipe_zookeeper_result_reply_error_t *reply = &replies.ptr[i];
    if (!reply->is_err) {
      recipe_list_u8_t *data = &reply->val.ok.val.data.data;
      size_t owner = owner_length(naming()->request, data->ptr, data->len);
      if (owner == 0 && data->len > 0) {
        free(data->ptr);
        data->ptr = NULL;
      }
      data->len = owner;
      make_utf8(data->ptr, data->len);
      exports_wok_lock_lock_contender_t *told = &answer->ptr[answer->len++];
      told->is_holder = is_first && i == 0;
      told->path = reads[i].val.get_data;
      told->owner = (recipe_string_t){data->ptr, data->len};
      // Both are the answer's from here.
      reads[i].val.get_data = (recipe_string_t){NULL, 0};
      *data = (recipe_list_u8_t){NULL, 0};
    } else if (reply->val.err.tag != WOK_RECIPE_ZOOKEEPER_ERROR_NO_NODE) {
      *error = reply->val.err;
      reply->val.err.tag = WOK_RECIPE_ZOOKEEPER_ERROR_NO_NODE;
      is_told = false;
    }
  }
  for (size_t i = 0; i < length; i++) recipe_string_free(&reads[i].val.get_data);
  wok_recipe_zookeeper_list_result_reply_error_free(&replies);
  return is_told;
}

bool exports_wok_lock_lock_contenders(exports_wok_lock_lock_list_contender_t *answer,
                                      error_t *error) {
  *answer = (exports_wok_lock_lock_list_contender_t){NULL, 0};
  recipe_string_t directory = text(DIRECTORY);
  wok_recipe_zookeeper_own_children_t children;
  if (!wok_recipe_zookeeper_get_children(&directory, &children, error)) {
    // The directory comes with the first contender.
    return error->tag == WOK_RECIPE_ZOOKEEPER_ERROR_NO_NODE;
  }
  wok_recipe_zookeeper_borrow_children_t line = wok_recipe_zookeeper_borrow_children(children);
  uint32_t length = line_up(line);
  if (length > MOST_CONTENDERS) length = MOST_CONTENDERS;

  bool is_told = true;
  if (length > 0) answer->ptr = allocate(length, sizeof *answer->ptr);
  for (uint32_t start = 0; start < length && is_told; start += OWNERS_AT_ONCE) {
    uint32_t rest = length - start;
    recipe_list_string_t names;
    wok_recipe_zookeeper_method_children_next(line, rest < OWNERS_AT_ONCE ? rest : OWNERS_AT_ONCE,
                                              &names);
    is_told = tell_batch(&names, start == 0, answer, error);
    recipe_list_string_free(&names);
  }
  wok_recipe_zookeeper_children_drop_own(children);
  if (!is_told) {
    for (size_t i = 0; i < answer->len; i++) exports_wok_lock_lock_contender_free(&answer->ptr[i]);
    answer->len = 0;
  }
  // An empty list is no memory that the host would give back.
  if (answer->len == 0) free(answer->ptr);
  return is_told;
}
