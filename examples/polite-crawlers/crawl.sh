#!/bin/sh
# Fetches the pages that standard input names, twenty at a time, and has at most eight connections to
# the site, together with all others who crawl it. The first argument is the site's name.
exec xargs -P 20 -I '{}' wok hold semaphore --mount "/crawl/$1" --config permits=8 acquire -- ./fetch.sh '{}'
