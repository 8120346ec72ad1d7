package temporalserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ErrNoPostgres says that PostgreSQL's programs are not on this machine.
var ErrNoPostgres = errors.New("PostgreSQL is not installed (initdb and postgres on the PATH, or in " +
	"/usr/lib/postgresql/*/bin): apt-get install postgresql")

const (
	databaseUser = "temporal"
	loopback     = "127.0.0.1"
	// postgresPlace is Debian's place for the programs of each major version.
	postgresPlace = "/usr/lib/postgresql/*/bin"
)

// PostgresDir returns the folder of PostgreSQL's programs: the newest in Debian's place, or else that on the PATH.
func PostgresDir() (string, error) {
	folders, err := filepath.Glob(postgresPlace)
	if err != nil {
		return "", err
	}
	slices.SortFunc(folders, func(one, other string) int { return major(other) - major(one) })
	if found, err := exec.LookPath("initdb"); err == nil {
		folders = append(folders, filepath.Dir(found))
	}
	for _, folder := range folders {
		if executable(filepath.Join(folder, "initdb")) && executable(filepath.Join(folder, "postgres")) {
			return folder, nil
		}
	}
	return "", ErrNoPostgres
}

// major is the version in Debian's path, 0 if there is none.
func major(folder string) int {
	version, err := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
	if err != nil {
		return 0
	}
	return version
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// Database is a PostgreSQL database cluster in a folder of its own.
type Database struct {
	Port     int
	Password string
	// As is the user of its programs, which refuse root; nil for the present one.
	As *syscall.Credential
	// CountStatements has the server load its own extension pg_stat_statements.
	CountStatements bool

	bin, dir string
}

// NewDatabase makes a database cluster. Its folder is none of a stack's: the user that it belongs to may not reach that one.
// Remove removes it.
func NewDatabase(ctx context.Context, port int, password string) (*Database, error) {
	d := &Database{Port: port, Password: password}
	var err error
	if d.bin, err = PostgresDir(); err != nil {
		return nil, err
	}
	if d.As, err = unprivileged(); err != nil {
		return nil, err
	}
	if d.dir, err = os.MkdirTemp("", "holdfast-postgres-"); err != nil {
		return nil, fmt.Errorf("make a folder for PostgreSQL: %w", err)
	}
	if err := d.init(ctx); err != nil {
		d.Remove()
		return nil, err
	}
	return d, nil
}

func (d *Database) init(ctx context.Context) error {
	secret := filepath.Join(d.dir, "password")
	if err := os.WriteFile(secret, []byte(d.Password), 0o600); err != nil {
		return fmt.Errorf("write PostgreSQL's password: %w", err)
	}
	if d.As != nil {
		for _, path := range []string{d.dir, secret} {
			if err := os.Chown(path, int(d.As.Uid), int(d.As.Gid)); err != nil {
				return fmt.Errorf("give PostgreSQL its folder: %w", err)
			}
		}
	}
	return d.run(ctx, d.Program("initdb"), "--pgdata", d.data(), "--username", databaseUser, "--pwfile", secret,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync")
}

// Remove removes all data.
func (d *Database) Remove() { _ = os.RemoveAll(d.dir) } // a left-over temporary folder harms nobody

// Program returns the path of one of PostgreSQL's programs.
func (d *Database) Program(name string) string { return filepath.Join(d.bin, name) }

// Args are the arguments of the server, program postgres.
func (d *Database) Args() []string {
	args := []string{
		"-D", d.data(), "-p", strconv.Itoa(d.Port), "-c", "listen_addresses=" + loopback,
		"-c", "unix_socket_directories=", "-c", "max_connections=300", "-c", "shared_buffers=256MB",
	}
	if d.CountStatements {
		args = append(args, "-c", "shared_preload_libraries=pg_stat_statements")
	}
	return args
}

// Query runs SQL in a database and returns what it gives: a line for each row, fields separated by a bar.
func (d *Database) Query(ctx context.Context, database, sql string) (string, error) {
	cmd := exec.CommandContext(ctx, d.Program("psql"), //nolint:gosec // PostgreSQL's own
		"--host", loopback, "--port", strconv.Itoa(d.Port), "--username", databaseUser, "--dbname", database,
		"--no-psqlrc", "--no-align", "--tuples-only", "--set", "ON_ERROR_STOP=1", "--command", sql)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+d.Password)
	var said, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &problem
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("query database %s: %w: %s", database, err, problem.String())
	}
	return strings.TrimSpace(said.String()), nil
}

// Ready returns nil when the server accepts connections.
func (d *Database) Ready(ctx context.Context) error {
	return d.run(ctx, d.Program("pg_isready"), "--host", loopback, "--port", strconv.Itoa(d.Port))
}

// Save keeps a copy of the data, and SetBack replaces the data by it. The server must not run.
func (d *Database) Save(ctx context.Context) error { return d.replace(ctx, d.data(), d.saved()) }

// SetBack is described at Save.
func (d *Database) SetBack(ctx context.Context) error { return d.replace(ctx, d.saved(), d.data()) }

func (d *Database) data() string  { return filepath.Join(d.dir, "data") }
func (d *Database) saved() string { return filepath.Join(d.dir, "saved") }

func (d *Database) replace(ctx context.Context, with, what string) error {
	if err := os.RemoveAll(what); err != nil {
		return fmt.Errorf("remove %s: %w", what, err)
	}
	return d.run(ctx, "cp", "-a", with, what)
}

// run runs a program as the database's user.
func (d *Database) run(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // the program is PostgreSQL's, or copies its files
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "HOME="+d.dir)
	if d.As != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.As}
	}
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w: %s", filepath.Base(program), err, said)
	}
	return nil
}

// unprivileged is another user for programs that refuse root: PostgreSQL's own, or else nobody. It is nil for anybody but root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // the present user will do
	}
	var problem error
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			problem = err
			continue
		}
		return credential(found)
	}
	return nil, fmt.Errorf("find a user for PostgreSQL, which refuses root: %w", problem)
}

func credential(of *user.User) (*syscall.Credential, error) {
	uid, err := strconv.ParseUint(of.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("read the ID of user %s: %w", of.Username, err)
	}
	gid, err := strconv.ParseUint(of.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("read the group of user %s: %w", of.Username, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
