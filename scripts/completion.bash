# Completion of `muster` for bash: verbs and flags, as the program itself prints them.
_muster()
{
    local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words= text

    text=$("${COMP_WORDS[0]}" "$verb" --help 2>/dev/null)
    if [[ $COMP_CWORD -eq 1 ]]; then
        words=$("${COMP_WORDS[0]}" --help 2>/dev/null |
            sed -n '/^verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p')
    elif [[ $COMP_CWORD -eq 2 && $word != -* ]]; then
        words=$(sed -n "s/^  $verb \([a-z]*\)  .*/\1/p" <<<"$text")
    elif [[ $word == -* ]]; then
        ! grep -q "^  $verb ${COMP_WORDS[2]}  " <<<"$text" ||
            text=$("${COMP_WORDS[0]}" "$verb" "${COMP_WORDS[2]}" --help 2>/dev/null)
        words=$(sed -n 's/^  \(--[a-z-]*\).*/\1/p' <<<"$text")
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word" | sort -u)
}
complete -o default -F _muster muster
