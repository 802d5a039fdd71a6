#!/usr/bin/env bash
# Holds a lock and works under it: lock.sh RECIPE [STEPS]
#
# Ends with 0 after that many steps, or goes on without STEPS. Ends with 76 as soon as the lock is lost.
# with-lock.sh has a function that is easier to use, and hears of a loss a second later.
set -u -m # With -m each job has a process group, and so can be killed with all that it has started.

recipe=$1 steps=${2:-}
runtime=${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}/wok-$EUID}
[[ $EUID != 0 ]] || runtime=/run/wok
socket=${WOK_SOCKET:-$runtime/wok.sock}

# The work. It looks itself, before each write, because the script may have been killed, or stopped.
work() {
    local step self=$BASHPID
    for ((step = 1; step <= ${steps:-step}; step++)); do
        grep -q "PPid:[[:space:]]$$\$" "/proc/$self/status" && ! has_passed || return 76
        # Whatever is written to should refuse a fence that is lower than the highest it has seen.
        echo "step $step with fence $1"
        sleep 0.2
    done
}

# Whether the deadline has passed. /proc/uptime begins with CLOCK_BOOTTIME, rounded down to 10 ms. Who holds the
# lock has a deadline, so one that cannot be read counts as passed.
has_passed() {
    local uptime until
    read -r uptime _ < /proc/uptime && read -r until < "$deadline" || { [[ -n $fence ]]; return; }
    ((${uptime/./}0 + 10 >= ${until:-0}))
}

# Whatever ends the script ends the work first. The end of curl closes the connection, and that gives the
# lock back.
finish() {
    end_work
    kill "$stream" 2> /dev/null
    rm "$deadline"
}

end_work() {
    [[ -z $job ]] || { kill -KILL -- "-$job"; wait "$job"; } 2> /dev/null
    job=''
}

give_up() {
    end_work
    echo "lost: $1"
    exit 76
}

job='' line='' fence='' deadline=$(mktemp)
exec 3< <(exec curl --silent --show-error --no-buffer --fail-with-body --unix-socket "$socket" \
    "http://wok/v1/recipes/$recipe/join?alive=500ms" --json '{"call": "acquire"}')
stream=$!
trap finish EXIT
while :; do
    # Until there is a line, every tenth of a second: is the work done, has the deadline passed?
    IFS= read -r -t 0.1 -u 3 part
    code=$? line+=$part
    if has_passed; then
        give_up "nothing was heard until the deadline"
    elif [[ -n $job ]] && ! kill -0 "$job" 2> /dev/null; then
        wait "$job" || give_up "the deadline has passed"
        exit 0
    elif ((code > 128)); then
        continue
    elif ((code != 0)) && [[ -z $job && ! -s $deadline ]]; then
        exit 1 # Nothing was heard of at all, and curl has said why.
    elif ((code != 0)); then
        give_up "the stream broke off"
    fi
    # The work must not read half of it.
    [[ $line =~ '"deadline-boottime-ms":'([0-9]+) ]] &&
        echo "${BASH_REMATCH[1]}" > "$deadline.new" && mv "$deadline.new" "$deadline"
    case $line in
    *'"event":"waiting"'*) echo waiting ;;
    *'"event":"held"'*)
        [[ $line =~ '"fence":'\"?([0-9]+) ]] && fence=${BASH_REMATCH[1]}
        echo "held with fence $fence"
        # Without the stream, so that curl ends with the script.
        work "$fence" 3<&- &
        job=$!
        ;;
    *'"event":"lost"'* | *'"event":"leaving"'* | *'"event":"released"'* | *'"event":"refused"'* | \
        *'"event":"ended"'*)
        [[ $line =~ '"message":"'([^\"]*) ]]
        give_up "${BASH_REMATCH[1]:-$line}"
        ;;
    *'"error":'*) echo "$line" >&2 && exit 1 ;;
    esac
    line=''
done
