#!/bin/sh
# hook.sh EVENT [wake|strict|codex]: sends one hook event of Claude Code, or of Codex, to reflectd's daemon, and
# prints its answer.
#
# It finds the socket, checks that it is this user's, keeps the deadline, sets the exit code, and starts the daemon
# when none listens. It prints only what the daemon answers, and never passes on Claude Code's secrets.
# When anything goes wrong it ends with 0 and no output, as if it were not installed.
#
# wake:   (asyncRewake) a 4xx answer that begins "## Reflection-3" goes to stderr, exit 2: Claude Code goes on
# strict: the same event for the hook that Claude Code waits for; its answer is JSON like that of the others.
#         This one counts, and not the other, where `<state>/strict` is, and in `claude -p` and the SDKs: a wake
#         would give them a second result
# codex:  the event is one of Codex, which waits for each of its hooks
#
# hook.sh Where: prints the socket's path if all of that may be sent there, for the mod (register.js)
# shellcheck shell=sh disable=SC2088

code=0
trap 'exit "$code"' EXIT # sh itself ends with 2 on its own errors, which Claude Code takes for a wake
exec 3>&2 2>/dev/null

[ -z "${REFLECTD_CHILD-}" ] && [ "${REFLECTD_DISABLE-}" != 1 ] || exit 0
unset CLAUDE_CODE_MESSAGING_SOCKET CLAUDE_CODE_MESSAGING_TOKEN

event=${1-} mode=${2-} nl='
'
case ${HOME-} in /*) home=$HOME ;; *) home='' ;; esac
state=${REFLECTD_STATE_DIR-}
case $state in
'~/'*) state=${home:+$home/${state#??}} ;;
'') case ${XDG_STATE_HOME-} in
    /*) state=$XDG_STATE_HOME/reflectd ;;
    *) state=${home:+$home/.local/state/reflectd} ;;
    esac ;;
esac
case $state in /*) ;; *) exit 0 ;; esac

# A tool call: the daemon is asked only where a lesson waits for this session.
if [ "$event" = PreToolUse ]; then
    case ${CLAUDE_CODE_SESSION_ID-} in '' | *[!A-Za-z0-9_-]*) exit 0 ;; esac
    [ -f "$state/lessons/$CLAUDE_CODE_SESSION_ID" ] && [ ! -e "$state/silent" ] || exit 0
fi

# The same for a tool call of Codex, which does not say here which session it is.
if [ "$event" = PostToolUse ] && [ "$mode" = codex ]; then
    set -- "$state"/lessons/*
    [ -f "${1-}" ] && [ ! -e "$state/silent" ] || exit 0
fi

entrypoint=${CLAUDE_CODE_ENTRYPOINT-} attended=${CLAUDE_CODE_SESSION_ATTENDED-} pid=${CLAUDE_PID-}
# `claude -p` and the SDKs: a process for one result. A session in the background (cli, not attended) lives on.
is_headless() { case $entrypoint:$attended in cli:*) return 1 ;; sdk* | *:0) ;; *) return 1 ;; esac }

if [ "$mode" = codex ]; then
    entrypoint='' attended='' pid=''
    read -r name <"/proc/$PPID/comm" && case $name in codex*) pid=$PPID ;; esac
fi

# Claude Code runs both hooks of Stop. One of them counts; the other one ends here.
case $mode in
wake) [ ! -e "$state/strict" ] && ! is_headless || exit 0 ;;
strict) [ -e "$state/strict" ] || is_headless || exit 0 ;;
esac

route=/v1/hooks/$event
case $mode in strict) route="$route?strict=1" ;; codex) route="$route?host=codex" ;; esac
case $event in
Stop) seconds=110 ;;
Interrupt) seconds=1 ;;
SessionEnd) seconds=1 ;;
UserPromptSubmit) seconds=1 ;;
PreToolUse) seconds=1 ;;
*) seconds=2 ;;
esac
[ "$mode-$event" != codex-Stop ] || seconds=560 # `codex.wait_s` is 540 at most
# A daemon that was silent once is not waited for that long again, until it answers.
patience=2
if [ -e "$state/silent" ]; then
    patience=0.5
    [ "$event" = Stop ] || seconds=0.5
fi

# A value with a line break would end its header, so it is left out. The body holds the same facts.
project=${CLAUDE_PROJECT_DIR-} headless=${REFLECTD_HEADLESS-}
case $entrypoint$attended$pid$headless in *[[:cntrl:]]*) entrypoint='' attended='' pid='' headless='' ;; esac
case $project in *[[:cntrl:]]*) project='' ;; esac
# At a terminal nobody waits for Stop. It waits for a shell in the background, up to 30 minutes, and gives a daemon
# on a busy machine time to answer.
[ "$mode" != wake ] || seconds=1910 patience=30

# The variable, what the running daemon wrote down, the default place (design/protocol.md).
find_socket() {
    socket=${REFLECTD_SOCKET-}
    case $socket in
    '~/'*) socket=${home:+$home/${socket#??}} ;;
    '')
        [ -f "$state/socket" ] && [ -O "$state/socket" ] && IFS= read -r socket <"$state/socket"
        case $socket in /*) [ -S "$socket" ] && return ;; esac
        case ${XDG_RUNTIME_DIR-} in
        /*) socket=$XDG_RUNTIME_DIR/reflectd/reflectd.sock ;;
        *) socket=$state/run/reflectd.sock ;;
        esac
        ;;
    esac
}

# Whether the socket and its folder belong to this user and nobody else may write to them. Whoever else listens
# there must not get the person's text, and his answer must not reach the agent.
is_private() {
    folder=${socket%/*}/
    case $folder in *"$nl"*) return 1 ;; esac
    [ -O "$socket" ] && [ -O "$folder" ] || return 1
    case $(ls -dLn "$folder" "$socket") in [!-]????-??-*"$nl"s????-??-*) ;; *) return 1 ;; esac
}

# Sends stdin to the daemon; prints the answer's body, a newline and its status. Ends with 7 when nobody listens.
# It runs in a subshell, which it replaces, so that there is one process less to wait for.
# Stop may wait long. So it first asks whether the daemon answers at all, and soon gives up on one that hangs.
# -q, --noproxy: a person's settings for curl must not count here.
send() {
    [ -S "$socket" ] || return 7
    is_private || return 1
    if command -v curl >/dev/null; then
        set -- -s --noproxy '*' --max-time "$seconds" --max-filesize 1048576 --unix-socket "$socket" \
            --data-binary @- -H 'Expect:' -w '\n%{http_code}' "http://reflectd$route"
        [ "$event" = Stop ] && set -- -s --noproxy '*' --max-time "$patience" --unix-socket "$socket" \
            -o /dev/null --fail-early http://reflectd/v1/status --next "$@"
        set -- curl -q "$@"
    else
        set -- python3 -I -S "${0%/*}/post.py" "$socket" "$route" "$seconds" "$patience"
    fi
    exec "$@" -H 'Content-Type: application/json' -H "X-CC-Entrypoint: $entrypoint" -H "X-CC-Attended: $attended" \
        -H "X-CC-Pid: $pid" -H "X-CC-Project: $project" -H "X-CC-Headless: $headless"
}

# The daemon's program. Relative folders of PATH are skipped: they could hold a program of the project.
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

# Whether Codex runs as `codex exec`. Without /proc a prompt with that word looks like it.
is_exec() {
    if [ -r "/proc/$PPID/cmdline" ]; then
        case $nl$(tr '\0' '\n' <"/proc/$PPID/cmdline")$nl in *"${nl}exec$nl"* | *"${nl}e$nl"*) return 0 ;; esac
        return 1
    fi
    case $(ps -o args= -p "$PPID") in *' exec '*) return 0 ;; esac
    return 1
}

# Whether anybody wants this session judged: `claude -p` and the SDKs only where the setting may say so.
is_wanted() {
    if [ "$mode" = codex ]; then
        is_exec || return 0
    else
        is_headless || return 0
    fi
    case ${headless:-${REFLECTD_RUN_HEADLESS-}} in 1 | true | yes | on) return 0 ;; esac
    case ${XDG_CONFIG_HOME-} in /*) config=$XDG_CONFIG_HOME ;; *) config=$home/.config ;; esac
    config=$config/reflectd/config.toml
    [ -f "$config" ] || return 1
    while read -r line || [ -n "$line" ]; do
        case $line in '#'*) ;; *headless*true*) return 0 ;; esac
    done <"$config"
    return 1
}

# Starts the daemon, at most once a minute, and says whether to wait for it; also for one that is starting now,
# which on a busy machine takes long.
# A folder in which the minute can't be noted is none that a daemon could use.
start_daemon() {
    [ "${REFLECTD_NO_START-}" != 1 ] && [ ! -e "$state/stopped" ] && is_wanted && find_program || return 1
    now=$(date +%s) last='' mark=$state/started-by-hook
    [ -f "$mark" ] && read -r last <"$mark"
    case $last in [1-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]) ;; *) last=0 ;; esac
    age=$((now - last))
    if [ "$age" -ge 0 ] && [ "$age" -lt 60 ]; then
        [ "$age" -lt 10 ] || [ "$mode" = wake ]
        return
    fi
    (umask 077 && mkdir -p "$state" && printf '%s\n' "$now" >"$mark") || return 1
    (
        cd "$home" || cd / || exit
        unset AI_AGENT CLAUDECODE CLAUDE_CODE_CHILD_SESSION CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SESSION_ATTENDED \
            CLAUDE_CODE_SESSION_ID CLAUDE_EFFORT CLAUDE_PID CLAUDE_PLUGIN_DATA CLAUDE_PLUGIN_ROOT CLAUDE_PROJECT_DIR
        "$program" start --from-shim || [ -e "$state/start-failed" ] ||
            printf '"reflectd does not start: run reflectd start in a terminal to see why"\n' >"$state/start-failed"
    ) </dev/null >/dev/null 3>&- &
}

# Tells the person once why the daemon did not start. The line is the JSON text that `reflectd start` wrote.
tell_failure() {
    file=$state/start-failed line='' told=''
    [ -f "$file" ] && [ -O "$file" ] || return
    IFS= read -r line <"$file"
    [ -f "$file.told" ] && IFS= read -r told <"$file.told"
    case $line in '"'*'"') [ "$line" != "$told" ] || return ;; *) return ;; esac
    (umask 077 && printf '%s\n' "$line" >"$file.told") && printf '{"systemMessage":%s}\n' "$line"
}

# `codex exec` that nobody wants judged costs no request. `<state>/codex-exec` is there where the daemon wants it.
if [ "$mode" = codex ] && [ -d /proc/self ] && [ ! -e "$state/codex-exec" ]; then
    is_wanted || exit 0
fi
find_socket
if [ "$event" = Where ]; then
    [ -S "$socket" ] && is_private && printf '%s\n' "$socket"
    exit 0
fi
case $event in
SessionStart | Stop) # these may wait for a daemon that is being started
    body=$(cat)
    out=$(printf '%s' "$body" | send)
    failed=$?
    # 52, 56: it died while this hook waited for the verdict, so nobody else will ask for one again
    case $mode-$failed in wake-52 | wake-56 | codex-52 | codex-56) failed=7 ;; esac
    if [ $failed -eq 7 ] && start_daemon; then
        tries=100 pause=0.05 # 5 seconds; a minute where nobody waits for this hook
        if [ "$mode" = wake ]; then tries=280 pause=0.25; else patience=5; fi
        [ "$event" = Stop ] || seconds=5
        while [ $failed -eq 7 ] && [ $tries -gt 0 ]; do
            tries=$((tries - 1))
            sleep $pause || { sleep 1 && tries=$((tries - 19)); }
            find_socket
            out=$(printf '%s' "$body" | send)
            failed=$?
            # one that died soon after its start is started again when its minute is over
            [ $failed -ne 7 ] || [ "$mode" != wake ] || [ $((tries % 8)) -ne 0 ] || start_daemon
        done
    fi
    ;;
PreToolUse)
    out=$(send)
    failed=$?
    ;;
*)
    out=$(send)
    failed=$?
    [ $failed -eq 7 ] && [ "$event" != SessionEnd ] && start_daemon
    ;;
esac
if [ $failed -eq 28 ]; then
    # a Stop for which curl names a status (000) had its sign of life, and then waited for as long as it may
    [ "$event" = Stop ] && [ -n "$out" ] || printf '' >"$state/silent"
elif [ $failed -eq 0 ] && [ -e "$state/silent" ]; then
    rm -f "$state/silent"
fi
case $failed-$event in 7-SessionStart | 7-UserPromptSubmit) tell_failure ;; esac
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
