package tool

import (
	"fmt"
	"strconv"
	"strings"
)

// options are what a command was told, by the first name of each option, in order.
type options map[string][]string

func (o options) has(name string) bool { return len(o[name]) > 0 }

// text returns the last value of an option.
func (o options) text(name string) string {
	if values := o[name]; len(values) > 0 {
		return values[len(values)-1]
	}
	return ""
}

// number reads a number as loosely as sscanf("%lld") does: "5m" is 5.
func number(text string) (value int64, valid bool) {
	text = strings.TrimLeft(text, " \t")
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || end == 0 && (text[0] == '-' || text[0] == '+')) {
		end++
	}
	value, err := strconv.ParseInt(text[:end], 10, 64)
	return value, err == nil
}

// syntax says which options a command knows. An option that takes a value ends in "=".
type syntax map[string]option

type option struct {
	name  string // the first of its names
	value bool
}

// words makes a syntax. Each word is an option with its other names: "-d=,--destcontainer".
func words(lists ...string) syntax {
	s := syntax{}
	for _, list := range lists {
		for word := range strings.FieldsSeq(list) {
			names := strings.Split(word, ",")
			first, value := strings.CutSuffix(names[0], "=")
			s[first] = option{first, value}
			for _, other := range names[1:] {
				s[other] = option{first, value}
			}
		}
	}
	return s
}

const commonWords = `--log --logdir= --loggroup= --trace-format= -m=,--memory --knob= --quiet,-q --crash
	--tls-certificate-file= --tls-ca-file= --tls-key-file= --tls-password= --tls-verify-peers= --build-flags -v,--version
	-h,--help`

const blobWords = `--blob-credentials= --proxy= `

// parse reads the arguments of a command.
func (r *run) parse(args []string, known syntax) error {
	r.options = options{}
	for i := 0; i < len(args); i++ {
		word, value, joined := args[i], "", false
		if strings.HasPrefix(word, "--") {
			if word, value, joined = strings.Cut(word, "="); joined && strings.HasPrefix(word, "--knob") {
				word = "--knob-" // its value follows in the same word
			}
			word = strings.ReplaceAll(word, "_", "-")
		}
		if strings.HasPrefix(word, "--knob-") {
			word = "--knob"
		}
		known, found := known[word]
		if !found || !strings.HasPrefix(word, "-") {
			return exit(1, fmt.Sprintf("ERROR: unknown option `%s'", args[i]), r.teaser())
		}
		if known.value && !joined {
			if i++; i >= len(args) || (strings.HasPrefix(args[i], "-") && len(args[i]) > 1) {
				return exit(1, fmt.Sprintf("ERROR: invalid argument to option `%s'", args[i-1]), r.teaser())
			}
			value = args[i]
		}
		r.options[known.name] = append(r.options[known.name], value)
	}
	return nil
}
