#!/bin/sh
# hook.sh EVENT [wake|strict]: one hook event of Claude Code to reflectd's daemon, and its answer back.
#
# Owns: finding the socket, the deadline, the exit code, and starting the daemon at SessionStart when none
# listens. Never decides anything, never prints what is not the daemon's, never passes on Claude Code's own
# secrets. On any trouble: exit 0 and no output, as if it were not installed.
#
# wake:   (asyncRewake) a 4xx answer that begins "## Reflection-3" goes to stderr, exit 2: Claude Code goes on
# strict: the same event for the hook that Claude Code waits for; its answer is JSON like that of the others
# shellcheck shell=sh disable=SC2088

code=0
trap 'exit "$code"' EXIT # sh itself ends with 2 on its own errors, which Claude Code takes for a wake
exec 3>&2 2>/dev/null

[ -z "${REFLECTD_CHILD-}" ] && [ "${REFLECTD_DISABLE-}" != 1 ] || exit 0
unset CLAUDE_CODE_MESSAGING_SOCKET CLAUDE_CODE_MESSAGING_TOKEN

event=${1-} mode=${2-} home=${HOME-} nl='
'
route=/v1/hooks/$event
[ "$mode" = strict ] && route="$route?strict=1"
case $event in
Stop) seconds=110 ;;
SessionStart) seconds=5 ;;
SessionEnd) seconds=1 ;;
*) seconds=3 ;;
esac

# A value with a line break would end its header; it is left out, and the body has what matters.
entrypoint=${CLAUDE_CODE_ENTRYPOINT-} attended=${CLAUDE_CODE_SESSION_ATTENDED-} pid=${CLAUDE_PID-}
project=${CLAUDE_PROJECT_DIR-} headless=${REFLECTD_HEADLESS-}
case $entrypoint$attended$pid$headless in *[[:cntrl:]]*) entrypoint='' attended='' pid='' headless='' ;; esac
case $project in *[[:cntrl:]]*) project='' ;; esac

state=${REFLECTD_STATE_DIR-}
case $state in
'~/'*) state=$home/${state#'~/'} ;;
'') case ${XDG_STATE_HOME-} in
    /*) state=$XDG_STATE_HOME/reflectd ;;
    *) state=$home/.local/state/reflectd ;;
    esac ;;
esac
case $state in /*) ;; *) exit 0 ;; esac

# The variable, what the running daemon wrote down, the default place (design/protocol.md).
find_socket() {
    socket=${REFLECTD_SOCKET-}
    case $socket in
    '~/'*) socket=$home/${socket#'~/'} ;;
    '')
        [ -f "$state/socket" ] && IFS= read -r socket <"$state/socket"
        case $socket in /*) [ -S "$socket" ] && return ;; esac
        case ${XDG_RUNTIME_DIR-} in
        /*) socket=$XDG_RUNTIME_DIR/reflectd/reflectd.sock ;;
        *) socket=$state/run/reflectd.sock ;;
        esac
        ;;
    esac
}

# stdin to the daemon; prints the answer's body, a newline and its status. 7: nobody listens.
# Runs in a subshell, which it replaces: a process less to wait for.
# Stop, which may wait long, first asks whether anybody answers at all: a daemon that hangs is given up soon.
# -q, --noproxy: what a person set for other uses of curl is not for this one.
send() {
    [ -S "$socket" ] || return 7
    if command -v curl >/dev/null; then
        set -- -s --noproxy '*' --max-time "$seconds" --max-filesize 1048576 --unix-socket "$socket" \
            --data-binary @- -H 'Expect:' -w '\n%{http_code}' "http://reflectd$route"
        [ "$event" = Stop ] && set -- -s --noproxy '*' --max-time 3 --unix-socket "$socket" -o /dev/null \
            --fail-early http://reflectd/v1/status --next "$@"
        set -- curl -q "$@"
    else
        set -- python3 -I -S "${0%/*}/post.py" "$socket" "$route" "$seconds"
    fi
    exec "$@" -H 'Content-Type: application/json' -H "X-CC-Entrypoint: $entrypoint" -H "X-CC-Attended: $attended" \
        -H "X-CC-Pid: $pid" -H "X-CC-Project: $project" -H "X-CC-Headless: $headless"
}

# The daemon's program, never one of the project's: relative folders of PATH are passed over.
find_program() {
    program=${REFLECTD_BIN-}
    if [ -z "$program" ]; then
        set -f
        IFS=:
        for folder in $PATH; do
            case $folder in /*) ;; *) continue ;; esac
            program=$folder/reflectd
            [ -f "$program" ] && [ -x "$program" ] && break
        done
        unset IFS
        set +f
    fi
    [ -f "$program" ] && [ -x "$program" ]
}

# Is it worth waiting for a daemon? At most one start a minute; one that is under way is waited for.
start_daemon() {
    [ "${REFLECTD_NO_START-}" != 1 ] && [ ! -e "$state/stopped" ] && find_program || return 1
    now=$(date +%s) last='' mark=$state/started-by-hook
    [ -f "$mark" ] && read -r last <"$mark"
    case $last in [1-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]) ;; *) last=0 ;; esac
    age=$((now - last))
    if [ "$age" -ge 0 ] && [ "$age" -lt 60 ]; then
        [ "$age" -lt 10 ]
        return
    fi
    (umask 077 && mkdir -p "$state" && printf '%s\n' "$now" >"$mark")
    (
        cd "$home" || cd / || exit
        unset AI_AGENT CLAUDECODE CLAUDE_CODE_CHILD_SESSION CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SESSION_ATTENDED \
            CLAUDE_CODE_SESSION_ID CLAUDE_EFFORT CLAUDE_PID CLAUDE_PLUGIN_DATA CLAUDE_PLUGIN_ROOT CLAUDE_PROJECT_DIR
        exec "$program" start --from-shim
    ) </dev/null >/dev/null 3>&- &
}

find_socket
if [ "$event" = SessionStart ]; then
    body=$(cat)
    out=$(printf '%s' "$body" | send)
    failed=$?
    if [ $failed -eq 7 ] && start_daemon; then
        tries=100 # 5 seconds
        while [ $failed -eq 7 ] && [ $tries -gt 0 ]; do
            tries=$((tries - 1))
            sleep 0.05 || { sleep 1 && tries=$((tries - 19)); }
            find_socket
            out=$(printf '%s' "$body" | send)
            failed=$?
        done
    fi
else
    out=$(send)
    failed=$?
fi
[ $failed -eq 0 ] || exit 0

body=${out%"$nl"*}
case ${out##*"$nl"} in
200) case $body in '{'*'}' | '{'*"}$nl") printf '%s\n' "$body" ;; esac ;;
4??)
    if [ "$mode" = wake ]; then
        case $body in '## Reflection-3'*) code=2 && printf '%s\n' "$body" >&3 ;; esac
    fi
    ;;
esac
exit
