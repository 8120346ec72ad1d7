package fdbtool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"holdfast.dev/holdfast/activities/fdbtool/cage"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// maxMessage bounds the message of a failure.
const maxMessage = 512

// Session runs tools for one object, with that object's secrets and no others, in a folder that only this user can read.
type Session struct {
	runner  *Runner
	version string
	folder  string
	environ []string
	secrets []string
	// connectionString is the cluster file's.
	connectionString string
}

// Close removes the session's secrets.
func (s *Session) Close() error {
	if err := os.RemoveAll(s.folder); err != nil {
		return fmt.Errorf("remove the secrets of FoundationDB's tools: %w", err)
	}
	return nil
}

// ClusterFile returns the path of the database's cluster file.
func (s *Session) ClusterFile() string { return filepath.Join(s.folder, "fdb.cluster") }

// CheckURL is Runner.CheckURL.
func (s *Session) CheckURL(url string) *contract.FDBFailure { return s.runner.CheckURL(url) }

// Redact returns a text of a tool without secrets, shortened.
func (s *Session) Redact(text string) string {
	return fdb.Bound(fdb.Redact(text, s.secrets), maxMessage)
}

// write writes the session's files into its folder and builds the tools' environment, which inherits nothing.
func (s *Session) write(access Access) error {
	s.environ = []string{"TZ=UTC", "HOME=" + s.folder, "TMPDIR=" + s.folder}
	if err := os.WriteFile(s.ClusterFile(), []byte(access.ConnectionString+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the cluster file: %w", err)
	}
	for _, file := range []struct {
		variable, name string
		content        []byte
	}{
		{"FDB_BLOB_CREDENTIALS", "credentials.json", access.Credentials},
		{"FDB_TLS_CERTIFICATE_FILE", "tls.crt", access.TLS.Certificate},
		{"FDB_TLS_KEY_FILE", "tls.key", access.TLS.Key},
		{"FDB_TLS_CA_FILE", "ca.crt", access.TLS.CA},
	} {
		if len(file.content) == 0 {
			continue
		}
		path := filepath.Join(s.folder, file.name)
		if err := os.WriteFile(path, file.content, 0o600); err != nil {
			return fmt.Errorf("write the file of %s: %w", file.variable, err)
		}
		s.environ = append(s.environ, file.variable+"="+path)
	}
	for variable, value := range map[string]string{
		"FDB_TLS_VERIFY_PEERS": access.TLS.VerifyPeers, "FDB_TLS_PASSWORD": access.TLS.Password,
	} {
		if value != "" {
			s.environ = append(s.environ, variable+"="+value)
		}
	}
	return nil
}

// Run runs the operation's tool with the arguments, and with the cluster file unless the operation needs none. It returns what
// the tool printed, without secrets if it failed, and why it failed: FDBClassTimeout if it is unknown whether it had its effect.
func (s *Session) Run(ctx context.Context, operation Operation, args []string) ([]byte, *contract.FDBFailure) {
	if trouble := s.runner.checkArguments(args); trouble != nil {
		return nil, trouble
	}
	how := runs[operation]
	binary, trouble := s.runner.binary(s.version, how.tool)
	if trouble != nil {
		return nil, trouble
	}
	ports, trouble := s.ports(args)
	if trouble != nil {
		return nil, trouble
	}
	walls := cage.Cage{
		Read: []string{binary, filepath.Dir(binary)}, Private: s.folder, Open: s.runner.Folders, Ports: ports,
	}
	args = slices.Clone(args)
	for _, option := range how.cluster {
		args = append(args, option, s.ClusterFile())
	}
	limited, cancel := context.WithTimeout(ctx, how.limit)
	defer cancel()
	began, name := time.Now(), how.tool+" "+how.sub
	end := s.execute(limited, walls, binary, args, operation.maxStdout())
	switch {
	case end.unstarted != nil:
		return nil, s.trouble(contract.FDBClassToolMissing, "%s (--fdb-bin-dir) cannot be run: %v", binary, end.unstarted)
	case end.stopped && errors.Is(ctx.Err(), context.Canceled):
		return nil, s.trouble(contract.FDBClassTimeout, "%s was stopped before it ended, because its activity ended", name)
	case end.stopped:
		return nil, fdb.TimeoutFailure(name, time.Since(began))
	case end.signal != 0:
		return nil, s.trouble(contract.FDBClassTimeout, "%s was killed (%s) before it ended", name, end.signal)
	case end.stdout.dropped:
		return nil, s.trouble(contract.FDBClassTooMuch, "%s printed more than %d bytes, which is no answer", name, end.stdout.limit)
	case end.exit == 0:
		return end.stdout.kept.Bytes(), nil
	}
	failure := fdb.Classify(name, end.exit, end.stdout.kept.Bytes(), end.stderr.kept.Bytes(), s.secrets...)
	return []byte(fdb.Redact(end.stdout.kept.String(), s.secrets)), failure
}

func (s *Session) trouble(class contract.FDBClass, format string, values ...any) *contract.FDBFailure {
	return &contract.FDBFailure{Class: class, Message: s.Redact(fmt.Sprintf(format, values...))}
}

// ending says how a process ended.
type ending struct {
	stdout, stderr bounded
	exit           int
	// signal killed it; 0 if it ended by itself.
	signal syscall.Signal
	// stopped: its context ended first.
	stopped bool
	// unstarted: it was never started.
	unstarted error
}

// execute runs the tool in its cage and waits until the tool and all its children have ended. The goroutine keeps its thread
// meanwhile: if the runtime ended that thread, the tool would end too (PR_SET_PDEATHSIG belongs to the thread, not to the
// process).
func (s *Session) execute(ctx context.Context, walls cage.Cage, binary string, args []string, maxStdout int) *ending {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	end := &ending{stdout: bounded{limit: maxStdout}, stderr: bounded{limit: maxStderr, end: true}}
	var stopped atomic.Bool
	command := exec.CommandContext(ctx, binary, args...)
	command.Dir, command.Env = s.folder, s.environ
	command.Stdout, command.Stderr = &end.stdout, &end.stderr
	command.SysProcAttr = attributes()
	command.WaitDelay = stopGrace
	command.Cancel = func() error {
		if syscall.Kill(-command.Process.Pid, syscall.SIGTERM) != nil {
			return os.ErrProcessDone
		}
		stopped.Store(true)
		return nil
	}
	if err := walls.Start(command); err != nil {
		if end.stopped = ctx.Err() != nil; !end.stopped {
			end.unstarted = err
		}
		return end
	}
	_ = command.Wait()                                      // ProcessState says how it ended
	_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // the rest of the group, which the cage lets nobody leave
	end.stopped = stopped.Load()
	end.exit = command.ProcessState.ExitCode()
	if status, ok := command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		end.signal = status.Signal()
	}
	return end
}
