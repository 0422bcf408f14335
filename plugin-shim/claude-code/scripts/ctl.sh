#!/bin/sh
# ctl.sh status|on|off|why|playbook SESSION: the slash commands run this. It runs `reflectd` and prints what it says. It
# always ends with 0, because Claude Code would show a failing command as its own error.
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
playbook)
    "$program" playbook
    ;;
*) echo "ctl.sh knows status, on, off, why and playbook" ;;
esac
exit 0
