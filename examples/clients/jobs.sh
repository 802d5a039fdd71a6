#!/usr/bin/env bash
# Puts items into a queue, or takes them: jobs.sh put RECIPE ITEM... | jobs.sh take RECIPE [COUNT]
#
# `take` ends with 0 after that many items, or goes on without COUNT. It joins again when its participant has
# ended or wok is gone. It ends with 76 when an item that it worked on has been lost meanwhile. Items are text
# without quotes and backslashes here: jq can do more.
set -u

operation=$1 recipe=$2
shift 2
runtime=${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}/wok-$EUID}
[[ $EUID != 0 ]] || runtime=/run/wok
socket=${WOK_SOCKET:-$runtime/wok.sock}

# ask METHOD PATH BODY: has the answer in `answer`, also where wok answers an error, and fails then.
ask() {
    exec 3< <(exec curl --silent --show-error --fail-with-body --unix-socket "$socket" \
        "http://wok/v1/$2" --json "$3" -X "$1")
    curl=$!
    IFS=$'\n' read -r -d '' -u 3 answer
    local code=0
    wait "$curl" || code=$?
    curl='' # Its number may be another process's by now.
    return "$code"
}

# A request that nobody waits for any more would take an item for nobody.
curl='' answer=''
trap '[[ -z $curl ]] || kill "$curl" 2> /dev/null' EXIT

put() {
    local item
    for item in "$@"; do
        ask POST "recipes/$recipe/call/put" "{\"data\": \"$item\"}" || fail 1 "$answer"
        echo "put $item"
    done
}

# Takes one item after another, each with a lease: the item comes back when this script dies and the lease
# has passed. Work that may take longer renews the lease, as in with-lock.sh.
take() {
    local number participant item fence
    for ((number = 0; number != ${1:--1}; number++)); do
        until ask POST "recipes/$recipe/join" '{"call": "take", "detached": true, "lease": "1m"}'; do
            # Nothing is lost where wok is gone, has no session, or has lost it meanwhile, or where the queue
            # itself refuses: what a participant has taken that has ended comes back.
            case $(told error) in
            bad-request | unauthorized | forbidden | not-found | no-operation) fail 1 "$answer" ;;
            esac
            echo "joining again: $answer" >&2
            sleep 1
        done
        participant=$(told participant) item=$(told data) fence=$(told fence)
        # The work may be done twice, so whatever is written to should refuse a fence that is lower than the
        # highest it has seen.
        echo "took $item with fence $fence"
        ask POST "participants/$participant/ack" '{}' || fail 76 "lost: $answer"
        echo "done $item"
        ask DELETE "participants/$participant" ''
    done
}

# told KEY: prints what the answer has under that key: a text, {"base64":"..."} for what is none, or a number.
told() {
    [[ $answer =~ \"$1\":\"([^\"]*)\" || $answer =~ \"$1\":(\{[^}]*\}) || $answer =~ \"$1\":([^,}]*) ]] &&
        echo "${BASH_REMATCH[1]}"
}

fail() {
    # Where curl itself has said what is wrong, there is no answer to print.
    if (($1 == 76)); then echo "$2"; elif [[ -n $2 ]]; then echo "$2" >&2; fi
    exit "$1"
}

"$operation" "$@"
