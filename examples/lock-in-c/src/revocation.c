#include "revocation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request.h"

typedef wok_recipe_zookeeper_error_t error_t;

// One watch wakes this participant, so its tag says nothing.
static const uint64_t TAG = 0;

// How long a participant that could not look at its own znode waits before it looks again. This is no
// poll: the host has already retried what reconnecting mends.
static const uint64_t LOOK_AGAIN_MS = 1000;

static recipe_string_t text(const char *literal) {
  recipe_string_t string;
  recipe_string_set(&string, literal);
  return string;
}

static void warn(const char *message) {
  recipe_string_t string = text(message);
  wok_recipe_participant_log(WOK_RECIPE_PARTICIPANT_LEVEL_WARN, &string);
}

bool listen_to(struct listening *listening, recipe_string_t *path, const char *word,
               error_t *error) {
  wok_recipe_zookeeper_tuple2_contents_own_watch_t look;
  if (!wok_recipe_zookeeper_watch_data(path, TAG, &look, error)) return false;
  listening->is_on = true;
  listening->told = -1;
  listening->watch = look.f1;
  if (asks(word, look.f0.data.ptr, look.f0.data.len)) {
    // No watch will tell of what was there before: wake as soon as the component is idle.
    wok_recipe_zookeeper_watch_drop_own(look.f1);
    listening->watch = wok_recipe_time_and_chance_alarm(0, TAG);
  }
  wok_recipe_zookeeper_contents_free(&look.f0);
  return true;
}

void stop_listening(struct listening *listening) {
  if (listening->is_on) wok_recipe_zookeeper_watch_drop_own(listening->watch);
  listening->is_on = false;
}

// The event `revoke-requested`.
static void tell(const recipe_string_t *path, wok_recipe_participant_fence_t fence) {
  char digits[21];
  size_t at = sizeof digits - 1;
  digits[at] = '\0';
  do digits[--at] = (char)('0' + fence % 10);
  while (fence /= 10);
  recipe_tuple2_string_string_t pairs[] = {{text("path"), *path}, {text("fence"), text(digits + at)}};
  recipe_list_tuple2_string_string_t detail = {pairs, 2};
  recipe_string_t event = text("revoke-requested");
  wok_recipe_participant_emit(&event, &detail);
}

// Writes the own owner's text before a request that has replaced it, as Curator's does.
static void restore_owner(struct listening *listening, recipe_string_t *path, const char *word,
                          int32_t version) {
  recipe_string_t owner;
  wok_recipe_participant_owner(&owner);
  recipe_list_u8_t data;
  data.ptr = with_request(word, owner.ptr, owner.len, &data.len);
  recipe_string_free(&owner);
  wok_recipe_zookeeper_stat_t stat;
  error_t error;
  if (wok_recipe_zookeeper_set_data(path, &data, &version, &stat, &error)) {
    listening->told = stat.version;
  } else {
    // Somebody has written again, or it is gone: the watch tells.
    wok_recipe_zookeeper_error_free(&error);
  }
  free(data.ptr);
}

bool hear_request(struct listening *listening, recipe_string_t *path, const char *word,
                  wok_recipe_participant_fence_t fence) {
  wok_recipe_zookeeper_tuple2_contents_own_watch_t look;
  error_t error;
  if (!wok_recipe_zookeeper_watch_data(path, TAG, &look, &error)) {
    // Of one that is gone the host tells the loss.
    if (error.tag != WOK_RECIPE_ZOOKEEPER_ERROR_NO_NODE) {
      warn("cannot look for a request on the own znode");
      wok_recipe_zookeeper_watch_drop_own(listening->watch);
      listening->watch = wok_recipe_time_and_chance_alarm(LOOK_AGAIN_MS, TAG);
    }
    wok_recipe_zookeeper_error_free(&error);
    return false;
  }
  wok_recipe_zookeeper_watch_drop_own(listening->watch);
  listening->watch = look.f1;
  const recipe_list_u8_t *data = &look.f0.data;
  int32_t version = look.f0.stat.version;
  bool is_new = asks(word, data->ptr, data->len) && listening->told != version;
  bool is_bare = is_new && owner_length(word, data->ptr, data->len) == 0;
  wok_recipe_zookeeper_contents_free(&look.f0);
  if (!is_new) return false;
  listening->told = version;
  tell(path, fence);
  if (is_bare) restore_owner(listening, path, word, version);
  return true;
}

// What the leader has, in one round trip: the path may come from somebody whose server is ahead of ours.
static bool read_newest(const recipe_string_t *path, wok_recipe_zookeeper_contents_t *read,
                        error_t *error) {
  for (;;) {
    wok_recipe_zookeeper_request_t both[2];
    both[0].tag = WOK_RECIPE_ZOOKEEPER_REQUEST_SYNC;
    both[0].val.sync = *path;
    both[1].tag = WOK_RECIPE_ZOOKEEPER_REQUEST_GET_DATA;
    both[1].val.get_data = *path;
    wok_recipe_zookeeper_list_request_t requests = {both, 2};
    wok_recipe_zookeeper_list_result_reply_error_t replies;
    wok_recipe_zookeeper_pipeline(&requests, &replies);
    wok_recipe_zookeeper_result_reply_error_t *failed =
        replies.ptr[0].is_err ? &replies.ptr[0] : &replies.ptr[1];
    bool is_read = !failed->is_err;
    // The connection was lost, and a pipeline is sent once. Nothing was written.
    bool is_lost = !is_read && failed->val.err.tag == WOK_RECIPE_ZOOKEEPER_ERROR_OUTCOME_UNKNOWN;
    if (is_read) {
      *read = failed->val.ok.val.data;
      failed->val.ok.val.data.data = (recipe_list_u8_t){NULL, 0};
    } else if (!is_lost) {
      *error = failed->val.err;
      failed->val.err.tag = WOK_RECIPE_ZOOKEEPER_ERROR_NO_NODE;
    }
    wok_recipe_zookeeper_list_result_reply_error_free(&replies);
    if (!is_lost) return is_read;
  }
}

// Step 3r.
static bool write_request(recipe_string_t *path, const char *word, error_t *error) {
  for (;;) {
    wok_recipe_zookeeper_contents_t read;
    if (!read_newest(path, &read, error)) return false;
    bool is_asked = asks(word, read.data.ptr, read.data.len);
    recipe_list_u8_t data = {NULL, 0};
    if (!is_asked) data.ptr = with_request(word, read.data.ptr, read.data.len, &data.len);
    int32_t version = read.stat.version;
    wok_recipe_zookeeper_contents_free(&read);
    if (is_asked) return true;
    wok_recipe_zookeeper_stat_t stat;
    bool is_written = wok_recipe_zookeeper_set_data(path, &data, &version, &stat, error);
    free(data.ptr);
    if (is_written) return true;
    // Somebody has written meanwhile, or perhaps it was this very request.
    if (error->tag != WOK_RECIPE_ZOOKEEPER_ERROR_BAD_VERSION &&
        error->tag != WOK_RECIPE_ZOOKEEPER_ERROR_OUTCOME_UNKNOWN)
      return false;
  }
}

// Waits until the znode is gone or the time is over; answers whether it is gone.
static bool wait_for_either(recipe_string_t *path, wok_recipe_zookeeper_borrow_watch_t time,
                            bool *is_gone, error_t *error) {
  for (;;) {
    wok_recipe_zookeeper_tuple2_contents_own_watch_t look;
    if (!wok_recipe_zookeeper_watch_data(path, TAG, &look, error)) {
      *is_gone = error->tag == WOK_RECIPE_ZOOKEEPER_ERROR_NO_NODE;
      return *is_gone;
    }
    wok_recipe_zookeeper_contents_free(&look.f0);
    wok_recipe_zookeeper_borrow_watch_t both[] = {time, wok_recipe_zookeeper_borrow_watch(look.f1)};
    wok_recipe_zookeeper_list_borrow_watch_t watches = {both, 2};
    wok_recipe_zookeeper_event_t event = WOK_RECIPE_ZOOKEEPER_EVENT_DATA_CHANGED;
    uint32_t index;
    bool has_waited = wok_recipe_zookeeper_wait(&watches, &index, error);
    if (has_waited) wok_recipe_zookeeper_method_watch_fired(both[1], &event);
    wok_recipe_zookeeper_watch_drop_own(look.f1);
    if (!has_waited) return false;
    *is_gone = event == WOK_RECIPE_ZOOKEEPER_EVENT_DELETED ||
               event == WOK_RECIPE_ZOOKEEPER_EVENT_CLAIM_DELETED;
    wok_recipe_zookeeper_event_t elapsed;
    if (*is_gone || wok_recipe_zookeeper_method_watch_fired(time, &elapsed)) return true;
  }
}

// Step 4r. A znode with a UUID in its name does not come back, so nobody else is struck.
static bool force(recipe_string_t *path, uint64_t after_ms, enum asked *asked, error_t *error) {
  wok_recipe_zookeeper_own_watch_t time = wok_recipe_time_and_chance_alarm(after_ms, TAG);
  bool is_gone = false;
  bool has_waited =
      wait_for_either(path, wok_recipe_zookeeper_borrow_watch(time), &is_gone, error);
  wok_recipe_zookeeper_watch_drop_own(time);
  if (!has_waited) return false;
  *asked = GONE;
  if (is_gone) return true;
  warn("deletes a contender that was asked to give way and did not");
  if (wok_recipe_zookeeper_delete(path, NULL, error)) {
    *asked = FORCED;
    return true;
  }
  return error->tag == WOK_RECIPE_ZOOKEEPER_ERROR_NO_NODE;
}

bool ask_to_give_way(recipe_string_t *path, const char *word, const uint64_t *force_after_ms,
                     enum asked *asked, error_t *error) {
  if (!write_request(path, word, error)) return false;
  *asked = ASKED;
  return force_after_ms == NULL || force(path, *force_after_ms, asked, error);
}
