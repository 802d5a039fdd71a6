// Texts for the host, which ends a component that hands it anything but UTF-8.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Puts a question mark in the place of every byte that belongs to no character.
void make_utf8(uint8_t *text, size_t length);
