package tool

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
)

// command is a sub-command of a tool.
type command struct {
	syntax syntax
	run    func(*run, context.Context) error
}

func with(lists ...string) syntax { return words(append(lists, commonWords)...) }

var backupCommands = map[string]command{
	"start": {with(`-C=,--cluster-file -d=,--destcontainer -t=,--tagname -s=,--snapshot-interval --initial-snapshot-interval=
		-z,--no-stop-when-done -k=,--keys --keys-file= -w,--wait,--waitfordone -n,--dryrun --partitioned-log-experimental
		--incremental --encryption-key-file= --encrypt-files=`, blobWords), (*run).start},
	"modify": {with(`-C=,--cluster-file -d=,--destcontainer -t=,--tagname -s=,--snapshot-interval --active-snapshot-interval=
		--verify-uid= --encryption-key-file=`, blobWords), (*run).modify},
	"status":      {with(`-C=,--cluster-file -t=,--tagname -e=,--errorlimit --json`), (*run).status},
	"abort":       {with(`-C=,--cluster-file -t=,--tagname`), (*run).abort},
	"wait":        {with(`-C=,--cluster-file -t=,--tagname -z,--no-stop-when-done`), (*run).wait},
	"discontinue": {with(`-C=,--cluster-file -t=,--tagname -w,--wait,--waitfordone`), (*run).discontinue},
	"pause":       {with(`-C=,--cluster-file`), (*run).pause},
	"resume":      {with(`-C=,--cluster-file`), (*run).resume},
	"tags":        {withoutHelp(`-C=,--cluster-file`), (*run).tags},
	"describe": {
		with(`-C=,--cluster-file -d=,--destcontainer --version-timestamps --deep --json --encryption-key-file=`, blobWords),
		(*run).describe,
	},
	"list": {with(`-b=,--base-url`, blobWords), (*run).list},
	"expire": {with(`-C=,--cluster-file -d=,--destcontainer -f,--force --expire-before-timestamp= --expire-before-version=
		--delete-before-days= --restorable-after-timestamp= --restorable-after-version= --min-restorable-days=
		--encryption-key-file=`, blobWords), (*run).expire},
	"delete":  {with(`-d=,--destcontainer`, blobWords), (*run).remove},
	"cleanup": {with(`-C=,--cluster-file --delete-data --min-cleanup-seconds=`), (*run).cleanup},
	"query": {with(`-C=,--cluster-file -d=,--destcontainer -qrv=,--query-restore-version --query-restore-timestamp=
		--query-restore-snapshot-version= -k=,--keys --keys-file=`, blobWords), (*run).query},
	"dump": {with(`-C=,--cluster-file -d=,--destcontainer -b=,--begin -e=,--end`, blobWords), (*run).dump},
}

var restoreSyntax = with(`--dest-cluster-file= --orig-cluster-file= -t=,--tagname`, blobWords)

var restoreCommands = map[string]command{
	"start":  {restoreStart, (*run).restoreStart},
	"status": {restoreSyntax, (*run).restoreStatus},
	"abort":  {restoreSyntax, (*run).restoreAbort},
	"wait":   {restoreSyntax, (*run).restoreWait},
}

// restoreStart differs from all others in that -v is not --version.
var restoreStart = func() syntax {
	s := with(`--dest-cluster-file= --orig-cluster-file= -t=,--tagname -r= -w,--waitfordone -k=,--keys --keys-file= -n,--dryrun
		--timestamp= --add-prefix= --remove-prefix= --incremental --begin-version= --inconsistent-snapshot-only --user-data
		--system-metadata --encryption-key-file=`, blobWords)
	s["-v"], s["--version"] = option{"-v", true}, option{"-v", true}
	return s
}()

func withoutHelp(list string) syntax {
	s := with(list)
	delete(s, "-h")
	delete(s, "--help")
	return s
}

func (r *run) dispatch(ctx context.Context) error {
	switch r.Tool {
	case Agent:
		return r.agent(ctx)
	case CLI:
		return r.cli(ctx)
	}
	commands := backupCommands
	if r.Tool == Restore {
		commands = restoreCommands
	}
	if len(r.Args) == 0 {
		if err := r.help(r.Tool); err != nil {
			return err
		}
		return exit(1)
	}
	args := r.Args
	known, isCommand := commands[args[0]]
	if isCommand {
		r.sub, args = args[0], args[1:]
	} else {
		known.syntax = with()
	}
	if err := r.parse(args, known.syntax); err != nil {
		r.findCluster()
		return r.firstOf(r.begin(ctx), err)
	}
	if r.options.has("-h") {
		return r.help(r.Tool)
	}
	if r.options.has("-v") && !known.syntax["-v"].value {
		return r.printVersion()
	}
	r.findCluster()
	if r.Tool == Backup && (r.options.has("-n") || r.options.has("--verify-uid")) {
		r.sub = "dry " + r.sub // a fault of a start is none of a dry one
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	if known.run == nil {
		return nil
	}
	return known.run(r, ctx)
}

func (r *run) firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// minor is the version's major and minor number.
func (r *run) minor() string {
	parts := strings.SplitN(r.Version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

func (r *run) printVersion() error {
	name := "FoundationDB"
	if r.Tool == CLI {
		name = "FoundationDB CLI"
	}
	protocol := strings.ReplaceAll(r.minor(), ".", "")
	r.printf("%s %s (v%s)\nsource version \nprotocol fdb00b0%s000000\n", name, r.minor(), r.Version, protocol)
	return nil
}

// help prints what the real tool printed, with our version.
func (r *run) help(tool string) error {
	text, err := fs.ReadFile(r.Recorded, "help-"+tool+".txt")
	if err != nil {
		return err
	}
	_, body, _ := strings.Cut(string(text), "--- stdout\n")
	body, _, _ = strings.Cut(body, "--- stderr\n")
	_, body, _ = strings.Cut(body, "\n")
	first := fmt.Sprintf("FoundationDB %s (v%s)\n", r.minor(), r.Version)
	if tool == CLI {
		first = fmt.Sprintf("FoundationDB CLI %s (v%s)\n", r.minor(), r.Version)
	}
	r.printf("%s%s", first, body)
	return nil
}
