package jobs

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// maxMessage bounds the message of a failure.
	maxMessage = 512
	// maxArguments bounds, in bytes, the arguments of a pod: those of Holdfast are far below it, and they become a payload.
	maxArguments = 64 << 10

	// leastDescribe is how long each of the two descriptions may take at least: a third of the pod's time, if that is more.
	leastDescribe = 5 * time.Minute
	// exitTimeout is the exit code of a tool that was ended at its limit, exitSignal plus N that of one that signal N ended.
	exitTimeout = 124
	exitSignal  = 128
)

// errIncomplete: a script that ran to its end writes more.
var errIncomplete = errors.New("its result is not complete")

// line is one line of a result.
type line struct {
	word   string
	number int // of a URL; 0 but for deletions
	exit   int
	text   string
}

// ParseResult reads a termination message. args are the arguments of the pod that left it. An error says that the script did not
// run to its end, or that another program has written the message; it quotes nothing of it.
//
// The pod runs our script, which writes a few lines into the container's termination message (4096 bytes at most). So nobody
// needs the right to read logs:
//
//	before EXIT JSON-OR-TEXT     output of describe before the expiration
//	expire EXIT TEXT             output of expire
//	after EXIT JSON-OR-TEXT      output of describe after it
//	delete NUMBER EXIT TEXT      output of delete for the URL of that number, counted from 1
//	end                          the script ran to its end
//
// EXIT is the tool's exit code, 124 if it was ended at its limit.
func ParseResult(message string, args []string) (contract.FDBPodResult, error) {
	lines, err := parseLines(message)
	if err != nil {
		return contract.FDBPodResult{}, err
	}
	if len(args) < 2 {
		return contract.FDBPodResult{}, errors.New("it is not a pod of Holdfast's")
	}
	size := 0
	for _, argument := range args {
		size += len(argument)
	}
	if size > maxArguments {
		return contract.FDBPodResult{}, errors.New("it has more arguments than Holdfast gives")
	}
	if args[0] == string(contract.FDBJobDelete) {
		return deleted(lines, args[1:])
	}
	return expired(lines, args[1])
}

func parseLines(message string) ([]line, error) {
	body, complete := strings.CutSuffix(message, "end\n")
	if !complete || body == "" {
		return nil, errIncomplete
	}
	var lines []line
	for text := range strings.SplitSeq(strings.TrimSuffix(body, "\n"), "\n") {
		var parsed line
		var rest string
		parsed.word, rest, _ = strings.Cut(text, " ")
		if parsed.word == string(contract.FDBJobDelete) {
			var number string
			number, rest, _ = strings.Cut(rest, " ")
			parsed.number, _ = strconv.Atoi(number) // no URL has number 0
		}
		exit, rest, _ := strings.Cut(rest, " ")
		var err error
		if parsed.exit, err = strconv.Atoi(exit); err != nil || parsed.exit < 0 {
			return nil, errors.New("its result cannot be read")
		}
		parsed.text = strings.ReplaceAll(rest, "\t", "\n")
		lines = append(lines, parsed)
	}
	return lines, nil
}

// expired reads "before", "expire" and "after". Each exists if the one before it succeeded.
func expired(lines []line, url string) (contract.FDBPodResult, error) {
	var none, result contract.FDBPodResult
	words := []string{"before", "expire", "after"}
	for i, l := range lines {
		if i >= len(words) || l.word != words[i] || (i > 0 && lines[i-1].exit != 0) {
			return none, errors.New("its result has other lines than its command writes")
		}
		switch l.word {
		case "expire":
			result.Failure = troubleOf("expire", l)
			continue
		case "before":
			result.Failure = troubleOf("describe", l)
		}
		container, err := describedBy(l, url)
		if err != nil {
			return none, err
		}
		switch {
		case l.word == "after":
			result.After = &container
		case container.Failure == nil:
			result.Before = &container
		}
	}
	if last := len(lines) - 1; last < len(words)-1 && lines[last].exit == 0 {
		return none, errIncomplete
	}
	return result, nil
}

// describedBy reads the output of describe for a container.
func describedBy(l line, url string) (contract.FDBContainer, error) {
	if trouble := troubleOf("describe", l); trouble != nil {
		if trouble.Class == contract.FDBClassMissing {
			return contract.FDBContainer{URL: url, Missing: true}, nil
		}
		return contract.FDBContainer{URL: url, Failure: trouble}, nil
	}
	container, err := fdb.ParseDescription([]byte(l.text))
	container.URL = url
	return container, err
}

// deleted reads the result of each URL. What does not exist is deleted, also if somebody else deleted it. A URL without a line is
// not.
func deleted(lines []line, urls []string) (contract.FDBPodResult, error) {
	var result contract.FDBPodResult
	for _, l := range lines {
		if l.word != string(contract.FDBJobDelete) || l.number < 1 || l.number > len(urls) {
			return contract.FDBPodResult{}, errors.New("its result has other lines than its command writes")
		}
		url, trouble := urls[l.number-1], troubleOf("delete", l)
		switch {
		case trouble == nil || trouble.Class == contract.FDBClassMissing:
			if !slices.Contains(result.Deleted, url) {
				result.Deleted = append(result.Deleted, url)
			}
		case result.Failure == nil:
			result.Failure = trouble
		}
	}
	if result.Failure == nil && slices.ContainsFunc(urls, func(url string) bool { return !slices.Contains(result.Deleted, url) }) {
		return contract.FDBPodResult{}, errIncomplete
	}
	return result, nil
}

func troubleOf(operation string, l line) *contract.FDBFailure {
	switch {
	case l.exit == exitTimeout && operation == "describe":
		return &contract.FDBFailure{Class: contract.FDBClassTimeout, Message: fmt.Sprintf("fdbbackup describe took longer than a "+
			"third of --fdb-expiry-timeout, and than %s: the database or the object store cannot be reached, or is slow, or the backup "+
			"has very many files", leastDescribe)}
	case l.exit > exitSignal:
		return &contract.FDBFailure{Class: contract.FDBClassOther, Message: fmt.Sprintf("fdbbackup %s was killed by signal %d, "+
			"probably out of memory: raise the limit of container foundationdb in spec.podTemplateSpec", operation, l.exit-exitSignal)}
	}
	return fdb.Classify(operation, l.exit, nil, []byte(l.text))
}
