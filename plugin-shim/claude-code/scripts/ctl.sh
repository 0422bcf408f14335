#!/bin/sh
# ctl.sh status|on|off|why SESSION: what the slash commands show. Runs `reflectd`, prints what it says, and
# always ends with 0: Claude Code shows a failing command as an error of its own.
# shellcheck shell=sh

exec 2>&1
unset CLAUDE_CODE_MESSAGING_SOCKET CLAUDE_CODE_MESSAGING_TOKEN # Claude Code's own; not for us to pass on
verb=${1-} session=${2-} program=${REFLECTD_BIN-}
[ -n "$program" ] || program=$(command -v reflectd)
case $program in
/*) ;;
*)
    echo "reflectd is not on PATH: see its README, or run reflectd doctor in a terminal"
    exit 0
    ;;
esac
case $session in
'' | -* | *[!A-Za-z0-9_-]*)
    echo "reflectd: Claude Code gave no id of this session"
    exit 0
    ;;
esac
case $verb in
status)
    echo "this session: $session"
    "$program" status
    ;;
on | off) "$program" "$verb" --session "$session" ;;
why) "$program" why "$session" ;;
*) echo "ctl.sh knows status, on, off and why" ;;
esac
exit 0
