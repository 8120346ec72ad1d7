# Run by bash with the arguments "expire URL BEFORE [AFTER]" or "delete URL...". No dollar sign here may be followed by another
# one, or by a name in parentheses: Kubernetes would replace that.
export LC_ALL=C
work=$(mktemp -d) || exit 1
result=''

# The tool ends with the pod. SIGTERM does not end the first process of a container unless it has a handler, and bash runs a trap
# only after the present command, unless that is "wait". timeout has a process group with the tool; it does not pass on a signal that
# comes before it knows what it has started.
stop() {
	kill -TERM -- "-$!" 2>/dev/null || kill -TERM "$!" 2>/dev/null
	wait "$!" 2>/dev/null
	rm -rf "$work"
	exit 143
}
trap stop TERM INT

run() {
	"$@" >"$work/out" 2>"$work/err" </dev/null &
	wait "$!"
	code=$?
	cat "$work/out" "$work/err" # for people who read the log
}

# The output of a tool on one line, with tabs for the ends of lines. Errors are at its end.
said() {
	local from="$work/err"
	[ -s "$from" ] || from="$work/out"
	sed -E 's#(://[^:/@[:space:]]+):[^[:space:]]*@#\1@#g' "$from" | tail -n 4 | tr '\r\n' '\t\t' | tr -cd '\t -~' | tail -c "$1"
}

# The parts of a description that Holdfast reads. There may be thousands of snapshots, with members of the same names.
described() {
	local part parts=''
	while IFS= read -r part; do
		parts="$parts${parts:+,}$part"
	done < <(sed 's/"Snapshots" *: *\[[^]]*\]//' "$1" |
		grep -oE '"Restorable" *: *(true|false)|"M(in|ax)RestorablePoint" *: *\{[^{}]*\}' | head -n 3)
	printf '{%s}' "$parts"
}

note() {
	result="$result$1"$'\n'
}

finish() {
	note end
	printf '%s' "$result" >"${HOLDFAST_RESULT:-/dev/termination-log}"
	code=$?
	rm -rf "$work"
	exit "$code"
}

# fdbbackup waits for ever for a cluster that does not answer.
describe() {
	run timeout "${HOLDFAST_DESCRIBE_SECONDS:-300}" fdbbackup describe -d "$url" --deep --json --version-timestamps \
		-C "$FDB_CLUSTER_FILE"
	if [ "$code" -eq 0 ]; then
		note "$1 0 $(described "$work/out")"
	else
		note "$1 $code $(said 800)"
	fi
}

expire() {
	url=$1
	describe before
	[ "$code" -eq 0 ] || finish
	run fdbbackup expire -d "$url" -C "$FDB_CLUSTER_FILE" --expire-before-timestamp "$2" \
		${3:+--restorable-after-timestamp "$3"}
	if [ "$code" -ne 0 ]; then
		note "expire $code $(said 800)"
		finish
	fi
	note 'expire 0'
	describe after
	finish
}

delete() {
	local number=0
	for url in "$@"; do
		number=$((number + 1))
		run fdbbackup delete -d "$url"
		if [ "$code" -eq 0 ]; then
			note "delete $number 0"
		elif [ "${#result}" -lt 1500 ]; then
			note "delete $number $code $(said 400)"
		elif [ "${#result}" -lt 2000 ]; then
			note "delete $number $code"
		fi
	done
	finish
}

mode=$1
shift
case $mode in
expire | delete) "$mode" "$@" ;;
*) exit 64 ;;
esac
