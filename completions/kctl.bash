# bash completion for kctl; source it or put it where bash-completion looks.
_kctl() {
  local word=${COMP_WORDS[COMP_CWORD]} path=${COMP_WORDS[1]} words=
  if [ "$COMP_CWORD" -eq 1 ]; then path=; fi
  case $path in
    topics|configs|offsets|records|brokers|cluster|broker|znode|logs|context) [ "$COMP_CWORD" -gt 2 ] && path="$path ${COMP_WORDS[2]}" ;;
  esac
  case $path in
    "") words="topics configs produce consume replay offsets records brokers cluster broker znode dump-log logs spark-export spark-sql context completions --help --version" ;;
    "topics") words="list describe create alter delete configs --help" ;;
    "topics list") words="--match --exclude-internal --under-replicated --unavailable --size -b --bootstrap-server --command-config --context --timeout -o --output -v --verbose --help" ;;
    "topics describe") words="--match --under-replicated --unavailable --under-min-isr --size --offsets -b --bootstrap-server --command-config --context --timeout -o --output -v --verbose --help" ;;
    "topics create") words="-p --partitions -r --replication-factor --replica-assignment -c --config --if-not-exists --dry-run -b --bootstrap-server --command-config --context --timeout -o --output -v --verbose --help" ;;
    "topics alter") words="--match -p --partitions --replica-assignment -c --config --delete-config --dry-run -y --yes -b --bootstrap-server --command-config --context --timeout -o --output -v --verbose --help" ;;
    "topics delete") words="--match --if-exists --dry-run -y --yes -b --bootstrap-server --command-config --context --timeout -o --output -v --verbose --help" ;;
    "topics configs") words="--match --all --doc --documentation -b --bootstrap-server --command-config --context --timeout -o --output -v --verbose --help" ;;
    "configs") words="describe set unset --help" ;;
    "configs describe") words="--topic --broker --broker-defaults --broker-logger --all --doc --documentation -b --bootstrap-server --command-config --context --timeout -o --output -v --verbose --help" ;;
    "configs set") words="--topic --broker --broker-defaults --broker-logger --dry-run -b --bootstrap-server --command-config --context --timeout -o --output -v --verbose --help" ;;
    "configs unset") words="--topic --broker --broker-defaults --broker-logger --dry-run -b --bootstrap-server --command-config --context --timeout -o --output -v --verbose --help" ;;
    "produce") words="-k --key-delimiter --key -H --header --null -p --partition --input --value-json --file --from-line --keep-partitions --new-timestamps -z --compression --acks --no-idempotence --batch-bytes --linger -o --output -X -b --bootstrap-server --command-config --context --timeout -v --verbose --help" ;;
    "consume") words="--from --until -e --exit -n --max-messages --read-committed -f --format -o --output -b --bootstrap-server --command-config --context --timeout -v --verbose --help" ;;
    "replay") words="--to --topic -p --partition --speed --from --until --max-records --new-timestamps --source-headers -b --bootstrap-server --command-config --context --timeout -v --verbose --help" ;;
    "offsets") words="get --help" ;;
    "offsets get") words="--at --read-committed -b --bootstrap-server --command-config --context --timeout -o --output -v --verbose --help" ;;
    "records") words="delete --help" ;;
    "records delete") words="--before --dry-run -y --yes -b --bootstrap-server --command-config --context --timeout -o --output -v --verbose --help" ;;
    "brokers") words="list describe log-dirs api-versions --help" ;;
    "brokers list") words="-b --bootstrap-server --command-config --context --timeout -o --output -v --verbose --help" ;;
    "brokers describe") words="-b --bootstrap-server --command-config --context --timeout -o --output -v --verbose --help" ;;
    "brokers log-dirs") words="--topic --replicas -b --bootstrap-server --command-config --context --timeout -o --output -v --verbose --help" ;;
    "brokers api-versions") words="-b --bootstrap-server --command-config --context --timeout -o --output -v --verbose --help" ;;
    "cluster") words="start stop status list repair logs destroy --help" ;;
    "cluster start") words="--data --brokers --port --zookeeper-port --set --unset --from-logs --writable --foreground --timeout -o --output --help" ;;
    "cluster stop") words="--data --timeout --help" ;;
    "cluster status") words="--data -o --output --help" ;;
    "cluster list") words="-o --output --help" ;;
    "cluster repair") words="--data --dry-run -y --yes --timeout -o --output --help" ;;
    "cluster logs") words="--data -n --lines -f --follow --help" ;;
    "cluster destroy") words="--data -y --yes --timeout --help" ;;
    "broker") words="run --help" ;;
    "broker run") words="--config --set --help" ;;
    "znode") words="ls get stat tree watch --help" ;;
    "znode ls") words="-z --zookeeper --data --timeout -o --output -v --verbose --help" ;;
    "znode get") words="-z --zookeeper --data --timeout -o --output -v --verbose --help" ;;
    "znode stat") words="-z --zookeeper --data --timeout -o --output -v --verbose --help" ;;
    "znode tree") words="--depth -z --zookeeper --data --timeout -o --output -v --verbose --help" ;;
    "znode watch") words="-n --count -z --zookeeper --data --timeout -o --output -v --verbose --help" ;;
    "dump-log") words="--files --print-data-log --deep-iteration --skip-record-metadata --max-bytes --max-message-size --verify-index-only --index-sanity-check --key-decoder-class --value-decoder-class --offsets-decoder --transaction-log-decoder --cluster-metadata-decoder --remote-log-metadata-decoder --share-group-state-decoder --kafka-version --from-offset --to-offset --from-timestamp --to-timestamp --max-records --key --key-regex --value-regex --header --producer-id --headers-only -o --output --check --help" ;;
    "logs") words="dirs verify repair diff --help" ;;
    "logs dirs") words="-o --output --help" ;;
    "logs verify") words="--deep --compacted --all --notes -o --output --help" ;;
    "logs repair") words="--to --in-place --dry-run --backup --from-recovery-point --rebuild-indexes --cut-overlaps --index-interval-bytes -y --yes -o --output --help" ;;
    "logs diff") words="--force -o --output --help" ;;
    "spark-export") words="--out --format --topics --partitions --columns --master --include-control --strict --isolation -o --output --help" ;;
    "spark-sql") words="--topics --partitions --master --include-control --isolation --max-rows -o --output --help" ;;
    "context") words="list set use show delete --help" ;;
    "context list") words="-o --output --help" ;;
    "context set") words="-b --bootstrap-server --command-config --use --help" ;;
    "context use") words="--help" ;;
    "context show") words="-o --output --help" ;;
    "context delete") words="--help" ;;
    "completions") words="--help" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  if [ ${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- "$word")); fi
}
complete -o filenames -F _kctl kctl
