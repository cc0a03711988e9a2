# shellcheck shell=bash
# SPDX-License-Identifier: BSL-1.0
# Bash completion of the redlock command.

_redlock()
{
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local options='--help --version' at
    local of_masters='--master --ca-file --certificate-file --private-key-file --connect-timeout'
    COMPREPLY=()

    # After -- follows a command with its arguments.
    for ((at = 1; at < COMP_CWORD; at++)); do
        if [[ ${COMP_WORDS[at]} == -- ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset $((at + 1))
            elif ((at + 1 == COMP_CWORD)); then
                mapfile -t COMPREPLY < <(compgen -c -- "$word")
            else
                mapfile -t COMPREPLY < <(compgen -f -- "$word")
            fi
            return
        fi
    done

    case $previous in
    --max-hold | --wait)
        mapfile -t COMPREPLY < <(compgen -W 'unlimited 10s 1m 10m 1h 12h' -- "$word")
        return
        ;;
    --ttl | --grace | --connect-timeout)
        mapfile -t COMPREPLY < <(compgen -W '1s 2s 5s 10s 30s' -- "$word")
        return
        ;;
    --max-ttl)
        mapfile -t COMPREPLY < <(compgen -W '10s 30s 60s 5m' -- "$word")
        return
        ;;
    --policy)
        mapfile -t COMPREPLY < <(compgen -W 'clocks operator' -- "$word")
        return
        ;;
    --ca-file | --certificate-file | --private-key-file)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --master | --prefix | --from | --stopped | --again | --retire)
        return
        ;;
    esac

    case ${COMP_WORDS[1]} in
    run)
        options="$of_masters --prefix --ttl --max-hold --wait --try --grace --no-inherit-masters --guarded --verbose --help"
        ;;
    status)
        options="$of_masters --prefix --json --help"
        ;;
    doctor)
        options="$of_masters --prefix --no-probe --guarded --json --help"
        ;;
    provision)
        options="$of_masters --prefix --max-ttl --policy --fresh --change --from --stopped --takeover --arm --again --retire --json --help"
        ;;
    *)
        options+=' run status doctor provision'
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
}

complete -F _redlock redlock
