#!/bin/sh
# Fetches a page, and writes down when that begins and ends.
echo "begin $1" >> visits.log
${FETCH:-curl -sfO} "$1"
echo "end $1" >> visits.log
