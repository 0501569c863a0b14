# bash completion for kctl; source it or put it where bash-completion looks.
_kctl() {
  local word=${COMP_WORDS[COMP_CWORD]} path=${COMP_WORDS[1]} words=
  if [ "$COMP_CWORD" -eq 1 ]; then path=; fi
  case $path in
    logs) [ "$COMP_CWORD" -gt 2 ] && path="$path ${COMP_WORDS[2]}" ;;
  esac
  case $path in
    "") words="dump-log logs spark-export spark-sql completions --help --version" ;;
    "dump-log") words="--files --print-data-log --deep-iteration --skip-record-metadata --max-bytes --max-message-size --verify-index-only --index-sanity-check --key-decoder-class --value-decoder-class --offsets-decoder --transaction-log-decoder --cluster-metadata-decoder --remote-log-metadata-decoder --share-group-state-decoder --kafka-version --from-offset --to-offset --from-timestamp --to-timestamp --max-records --key --key-regex --value-regex --header --producer-id --headers-only -o --output --check --help" ;;
    "logs") words="dirs verify repair diff --help" ;;
    "logs dirs") words="-o --output --help" ;;
    "logs verify") words="--deep --compacted --notes -o --output --help" ;;
    "logs repair") words="--to --in-place --dry-run --backup --from-recovery-point --rebuild-indexes --index-interval-bytes -y --yes -o --output --help" ;;
    "logs diff") words="-o --output --help" ;;
    "spark-export") words="--out --format --topics --partitions --columns --master --include-control --strict --isolation -o --output --help" ;;
    "spark-sql") words="--topics --partitions --master --include-control --isolation --max-rows -o --output --help" ;;
    "completions") words="--help" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  if [ ${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- "$word")); fi
}
complete -o filenames -F _kctl kctl
