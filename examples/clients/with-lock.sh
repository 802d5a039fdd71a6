# A lock for a part of a bash script. Read it in with `. with-lock.sh`, and then:
#
#     with_lock RECIPE COMMAND...
#
# runs the command, which may be a function of the script, while the lock is held. The command finds the
# fence in $WOK_FENCE and nothing on its standard input. The exit code is the command's, or 76 if the lock
# was lost: then the command was killed, with all that it had started and that did not leave its process group,
# or was not started at all.
#
# Twice a second the lease is renewed, and the answer tells until when what is held may be relied on. Without
# an answer, as where the daemon is stopped, the command goes on until shortly before that time and no longer.
#
# Nothing watches the command without this function. A kill -9 of the function's own shell, or of all shells of
# the script at once, leaves the command running, and ten seconds later the lease ends and the lock is somebody
# else's. After a stop of the whole script, the command may go on for a second before it is killed. So whatever
# the command writes to should refuse a fence that is lower than the highest it has seen.

with_lock() (
    recipe=$1 self=$BASHPID participant='' job='' deadline=0
    shift
    parent=$(grep PPid: "/proc/$self/status")
    runtime=${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}/wok-$EUID}
    [[ $EUID != 0 ]] || runtime=/run/wok
    wok=(curl --silent --fail-with-body --unix-socket "${WOK_SOCKET:-$runtime/wok.sock}")

    # Whatever ends this ends the command first, and gives back the lock then, but for a kill -9 of this shell.
    trap give_back EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    give_back() {
        [[ -z $job ]] || { kill -KILL -- "-$job" && wait "$job"; } 2> /dev/null || :
        [[ -z $participant ]] ||
            "${wok[@]}" --max-time 1 -X DELETE "http://wok/v1/participants/$participant" > /dev/null
    }

    joined=$("${wok[@]}" --show-error "http://wok/v1/recipes/$recipe/join" \
        --json "{\"call\": \"acquire\", \"detached\": true, \"lease\": \"10s\", \"app\": \"pid $$\"}") ||
        { echo "with_lock: $recipe: $joined" >&2 && exit 1; }
    [[ $joined =~ \"participant\":\"([0-9a-f]+) ]] && participant=${BASH_REMATCH[1]}
    [[ $joined =~ \"fence\":\"?([0-9]+) ]] && export WOK_FENCE=${BASH_REMATCH[1]}
    note_deadline() { [[ $1 =~ \"deadline-boottime-ms\":([0-9]+) ]] && deadline=${BASH_REMATCH[1]}; }
    # The first number of /proc/uptime, in seconds with two decimals, is the clock of the deadline. A look
    # and a wait for an answer take a second at most, so there is a second to spare for the next ones.
    is_safe() { read -r now _ < /proc/uptime && ((10#${now/./} * 10 + 1000 < deadline)); }
    # The script may have been killed, of which nobody tells this shell.
    has_script() { [[ $(grep PPid: "/proc/$self/status") == "$parent" ]]; }
    lost() { echo "with_lock: $recipe: lost" >&2; exit 76; }

    # This shell may have been stopped while it waited, and the lock lost meanwhile: then the answer says no
    # more that it is held, or its time has passed.
    has_script || exit 143
    note_deadline "$joined" && is_safe || lost
    set -m # The command gets a process group of its own, which can be killed as a whole.
    "$@" < /dev/null &
    job=$!
    set +m
    while kill -0 "$job" 2> /dev/null; do
        # Until the command has ended, or half a second has passed.
        sleep 0.5 > /dev/null 2>&1 &
        wait -n || :
        has_script || exit 143
        answered=0
        standing=$("${wok[@]}" --max-time 0.5 -X PUT "http://wok/v1/participants/$participant/lease") ||
            answered=$?
        # Held, or nobody says that it is not (28: no answer in time; or the daemon has no place for the
        # question), and there is time left.
        if ((answered == 0)) && note_deadline "$standing" ||
            [[ $answered == 28 || $standing == *'"error":"unavailable"'* ]]; then
            is_safe && continue
        fi
        kill -0 "$job" 2> /dev/null || break
        lost
    done
    wait "$job"
)
