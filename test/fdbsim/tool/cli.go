package tool

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/test/fdbsim/container"
	"holdfast.dev/holdfast/test/fdbsim/state"
)

var cliSyntax = words(`-C=,--cluster-file --log --log-dir= --log-group= --trace-format= --exec= --timeout= --no-status
	--api-version= --tls-certificate-file= --tls-ca-file= --tls-key-file= --tls-password= --tls-verify-peers= --knob=
	--debug-tls --build-flags --memory= --use-future-protocol-version -v,--version -h,--help`)

// statusLimit is how long `status json` waits for an answer.
const statusLimit = 5 * time.Second

// console is a session of fdbcli.
type console struct {
	*run
	writeMode bool
}

// cli runs the commands of --exec.
func (r *run) cli(ctx context.Context) error {
	if err := r.parse(r.Args, cliSyntax); err != nil {
		return err
	}
	if r.options.has("-h") {
		return r.help(CLI)
	}
	if r.options.has("-v") {
		return r.printVersion()
	}
	var commands []string
	for command := range strings.SplitSeq(r.options.text("--exec"), ";") {
		if command = strings.TrimSpace(command); command != "" {
			commands = append(commands, command)
		}
	}
	if len(commands) > 0 {
		r.sub = commands[0]
		if r.sub != "status json" {
			r.sub, _, _ = strings.Cut(r.sub, " ")
		}
	}
	r.findCluster()
	if err := r.begin(ctx); err != nil {
		return err
	}
	name, err := r.openCluster(r.clusterFile())
	if err != nil {
		return err
	}
	limited := ctx
	if seconds, valid := number(r.options.text("--timeout")); valid && seconds > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	s := &console{run: r}
	for _, command := range commands {
		if len(commands) > 1 {
			r.printf(">>> %s\n", strings.ReplaceAll(command, `"`, ""))
		}
		err := s.execute(limited, name, strings.Fields(command))
		if err != nil && ctx.Err() == nil && limited.Err() != nil {
			return exit(1, "Specified timeout reached -- exiting...")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *console) execute(ctx context.Context, name string, words []string) error {
	for i := range words {
		words[i] = strings.Trim(words[i], `"`)
	}
	if words[0] == "status" {
		return s.showStatus(ctx, name, words)
	}
	switch words[0] {
	case "option":
		s.printf("Option enabled for all transactions\n")
		return nil
	case "writemode":
		s.writeMode = len(words) > 1 && words[1] == "on"
		return nil
	case "begin": // each command is a transaction of its own here: nothing is written between those of one session
		s.printf("Transaction started\n")
		return nil
	case "reset":
		s.printf("Transaction reset\n")
		return nil
	}
	if err := s.reach(ctx, name); err != nil {
		return err
	}
	s.cluster = name
	handler, known := map[string]func([][]byte, *state.Tx, *state.Data) error{
		"get": s.get, "getrange": s.getRange, "getrangekeys": s.getRangeKeys, "set": s.set, "clear": s.clear,
		"clearrange": s.clearRange, "lock": s.lock, "unlock": s.unlock, "getversion": s.getVersion,
	}[words[0]]
	if !known {
		return exit(1, fmt.Sprintf("ERROR: Unknown command `%s'. Try `help'?", words[0]))
	}
	var args [][]byte
	for _, word := range words[1:] {
		key, err := ParseKey(word)
		if err != nil {
			return exit(1, "ERROR: malformed escape sequence")
		}
		args = append(args, key)
	}
	return s.Store.Update(name, func(tx *state.Tx) error {
		data, err := tx.Data()
		if err != nil {
			return err
		}
		if tx.LockUID != "" && words[0] != "lock" && words[0] != "unlock" {
			return exit(1, "ERROR: Database is locked (1038)")
		}
		return handler(args, tx, data)
	})
}

var errUsage = exit(1, "ERROR: wrong number of arguments")

// lastStartKey is where FoundationDB keeps the time of the last start.
const lastStartKey = "\xff\x02/backup-agent/\x01config\x00\x01lastBackupTimestamp\x00"

func (s *console) get(args [][]byte, tx *state.Tx, data *state.Data) error {
	if len(args) != 1 {
		return errUsage
	}
	value, found := data.Get(args[0])
	if string(args[0]) == lastStartKey && tx.LastStart != "" {
		value, found = []byte("\x01"+tx.LastStart+"\x00"), true
	}
	if !found {
		s.printf("`%s': not found\n", Printable(args[0]))
		return nil
	}
	s.printf("`%s' is `%s'\n", Printable(args[0]), Printable(value))
	return nil
}

// getVersion prints the version at which the session reads.
func (s *console) getVersion(_ [][]byte, tx *state.Tx, data *state.Data) error {
	s.printf("%d\n", max(tx.Version(s.now()), data.Last))
	return nil
}

func (s *console) getRange(args [][]byte, _ *state.Tx, data *state.Data) error {
	return s.printRange(args, data, func(kv state.KeyValue) {
		s.printf("`%s' is `%s'\n", Printable(kv.Key), Printable(kv.Value))
	})
}

func (s *console) getRangeKeys(args [][]byte, _ *state.Tx, data *state.Data) error {
	return s.printRange(args, data, func(kv state.KeyValue) { s.printf("`%s'\n", Printable(kv.Key)) })
}

func (s *console) printRange(args [][]byte, data *state.Data, show func(state.KeyValue)) error {
	if len(args) < 1 || len(args) > 3 {
		return errUsage
	}
	wanted := state.Range{Begin: args[0], End: []byte{0xff}}
	limit := 25
	if len(args) > 1 {
		wanted.End = args[1]
	}
	if len(args) > 2 {
		var err error
		if limit, err = strconv.Atoi(string(args[2])); err != nil {
			return exit(1, "ERROR: bad limit")
		}
	}
	s.printf("\nRange limited to %d keys\n", limit)
	for i, kv := range data.In(wanted) {
		if i == limit {
			break
		}
		show(kv)
	}
	s.printf("\n")
	return nil
}

func (s *console) write(args [][]byte, count int, tx *state.Tx, data *state.Data, m state.Mutation) error {
	if !s.writeMode {
		return exit(1, "ERROR: writemode must be enabled to set or clear keys in the database.")
	}
	if len(args) != count {
		return errUsage
	}
	data.Change(tx.Version(s.now()), m)
	s.printf("Committed (%d)\n", data.Last)
	return nil
}

func at(args [][]byte, i int) []byte {
	if i < len(args) {
		return args[i]
	}
	return nil
}

func (s *console) set(args [][]byte, tx *state.Tx, data *state.Data) error {
	return s.write(args, 2, tx, data, state.Mutation{Key: at(args, 0), Value: at(args, 1)})
}

func (s *console) clear(args [][]byte, tx *state.Tx, data *state.Data) error {
	return s.write(args, 1, tx, data, state.Mutation{Key: at(args, 0), End: append(append([]byte{}, at(args, 0)...), 0)})
}

func (s *console) clearRange(args [][]byte, tx *state.Tx, data *state.Data) error {
	return s.write(args, 2, tx, data, state.Mutation{Key: at(args, 0), End: at(args, 1)})
}

func (s *console) lock(_ [][]byte, tx *state.Tx, _ *state.Data) error {
	uid := container.NewUID()
	s.printf("Locking database with lockUID: %s\n", uid)
	if tx.LockUID != "" {
		return exit(1, "ERROR: Database is locked (1038)")
	}
	tx.LockUID = uid
	s.printf("Database locked.\n")
	return nil
}

// unlock differs from the real one, which asks for a passphrase before.
func (s *console) unlock(args [][]byte, tx *state.Tx, _ *state.Data) error {
	if len(args) != 1 {
		return errUsage
	}
	if tx.LockUID != "" && tx.LockUID != string(args[0]) {
		return exit(1, "ERROR: Database is locked (1038)")
	}
	tx.LockUID = ""
	s.printf("Database unlocked.\n")
	return nil
}

// showStatus prints the status document, after a while also of a cluster that does not answer.
func (s *console) showStatus(ctx context.Context, name string, words []string) error {
	limited, cancel := context.WithTimeout(ctx, statusLimit)
	defer cancel()
	err := s.reach(limited, name)
	if ctx.Err() != nil || (err != nil && !errors.Is(err, context.DeadlineExceeded)) {
		return s.firstOf(ctx.Err(), err)
	}
	if len(words) > 1 && words[1] == "json" {
		document, problem := s.statusDocument(name, err == nil)
		if problem != nil {
			return problem
		}
		s.printf("%s\n", document)
		return nil
	}
	if err != nil {
		s.printf("The database is unavailable; type `status' for more information.\n")
		return nil
	}
	s.printf("The database is available.\n")
	return nil
}
