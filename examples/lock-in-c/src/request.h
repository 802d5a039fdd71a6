// The request to give way, as the data of a contender's znode. Pure: nothing here calls the host.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Whether the data ends with the word, alone or in a line of its own.
bool asks(const char *word, const uint8_t *data, size_t length);

// How much of the data stands before the request: the text that says whose the znode is.
size_t owner_length(const char *word, const uint8_t *data, size_t length);

// The data with the request in it, in memory of its own; its length goes to `asking`.
uint8_t *with_request(const char *word, const uint8_t *data, size_t length, size_t *asking);
