package fdbtool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"holdfast.dev/holdfast/activities/fdbtool/cage"
	"holdfast.dev/holdfast/workflows/contract"
)

// Runner runs the tools of one worker. It is safe for concurrent use.
type Runner struct {
	// BinDir is --fdb-bin-dir: it has a folder <major.minor> with the tools of each version.
	BinDir string
	// AllowFileURLs is --fdb-allow-file-urls.
	AllowFileURLs bool
	// Ports is --fdb-cage-ports: the tools may connect to these besides those of the cluster file and of the store.
	Ports []uint16
	// ClosedPorts are those of Temporal and of the API server: no object can open them for a tool.
	ClosedPorts []uint16
	// Folders is --fdb-cage-folders: the tools may read, write and execute in these.
	Folders []string
	// RequireCage is --fdb-require-cage: no tool runs where the kernel does not support the cage.
	RequireCage bool
	// TempDir is where private folders are made; os.TempDir if empty.
	TempDir string

	mutex  sync.Mutex
	folder *folder
}

// Access is what a tool needs to reach one object's database and store. It is secret.
type Access struct {
	// ConnectionString is the only line of the cluster file.
	ConnectionString string
	// Version is the version that the database runs.
	Version string
	// Credentials is the credentials file; there is none if it is empty.
	Credentials []byte
	TLS         TLS
}

// TLS is how a tool authenticates to the database. Empty fields are not set.
type TLS struct {
	Certificate, Key, CA  []byte
	VerifyPeers, Password string
}

var (
	// version is a version whose first two numbers name a folder, and cannot lead to another one.
	version = regexp.MustCompile(`^([0-9]+\.[0-9]+)\.[0-9]+(-[A-Za-z0-9.]+)?$`)
	// connectionString is one line of printable characters; the tool checks the rest.
	connectionString = regexp.MustCompile(`^[!-~]+$`)
)

// Prepare removes the secrets that killed workers have left, and makes this worker's private folder. Open calls it if nobody has.
func (r *Runner) Prepare() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.prepare()
}

func (r *Runner) prepare() error {
	if r.folder != nil {
		return nil
	}
	parent := r.TempDir
	if parent == "" {
		parent = os.TempDir()
	}
	made, err := newFolder(parent)
	r.folder = made
	return err
}

// Close removes the worker's private folder. All sessions must be closed before.
func (r *Runner) Close() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.folder == nil {
		return nil
	}
	err := r.folder.remove()
	r.folder = nil
	return err
}

// Open prepares to run tools for one object. The failure is one that the user or the operator repairs; an error is the worker's.
func (r *Runner) Open(access Access) (*Session, *contract.FDBFailure, error) {
	if trouble := r.uncaged(cage.Lacking()); trouble != nil {
		return nil, trouble, nil
	}
	if _, trouble := r.binary(access.Version, toolBackup); trouble != nil {
		return nil, trouble, nil
	}
	if !connectionString.MatchString(access.ConnectionString) {
		return nil, &contract.FDBFailure{
			Class:   contract.FDBClassClusterFile,
			Message: "the FoundationDBCluster's status.connectionString is not one line of printable characters",
		}, nil
	}
	path, err := r.newSessionFolder()
	if err != nil {
		return nil, nil, err
	}
	session := &Session{
		runner: r, version: access.Version, folder: path, secrets: secretsOf(access), connectionString: access.ConnectionString,
	}
	if err := session.write(access); err != nil {
		return nil, nil, errors.Join(err, session.Close())
	}
	return session, nil, nil
}

// uncaged refuses to run tools where the kernel lacks a restriction, if the operator requires the cage.
func (r *Runner) uncaged(lacking error) *contract.FDBFailure {
	if lacking == nil || !r.RequireCage {
		return nil
	}
	return &contract.FDBFailure{
		Class:   contract.FDBClassToolMissing,
		Message: fmt.Sprintf("%v; the worker does not run tools without a cage (--fdb-require-cage): run it on other nodes", lacking),
	}
}

// newSessionFolder makes a folder within the worker's. It makes the worker's again if the temporary folder was cleared.
func (r *Runner) newSessionFolder() (string, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for again := false; ; again = true {
		if err := r.prepare(); err != nil {
			return "", err
		}
		path, err := os.MkdirTemp(r.folder.path, "session-")
		if err == nil {
			return path, nil
		}
		if again || !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("make a private folder for FoundationDB's tools: %w", err)
		}
		_ = r.folder.remove() // the folder is gone; this releases its lock
		r.folder = nil
	}
}

// binary returns the path of a tool for a database of the version: a tool works only with its own version.
func (r *Runner) binary(running, tool string) (string, *contract.FDBFailure) {
	missing := func(format string, values ...any) (string, *contract.FDBFailure) {
		return "", &contract.FDBFailure{Class: contract.FDBClassToolMissing, Message: fmt.Sprintf(format, values...)}
	}
	parts := version.FindStringSubmatch(running)
	if parts == nil {
		return missing("%.40q is not a version of FoundationDB like 7.3.48: the FoundationDBCluster names no usable one", running)
	}
	if r.BinDir == "" {
		return missing("the worker has no tools of FoundationDB: start it with --fdb-bin-dir, a folder with %s/%s", parts[1], tool)
	}
	path, err := filepath.Abs(filepath.Join(r.BinDir, parts[1], tool))
	if err != nil {
		return missing("--fdb-bin-dir %s: %v", r.BinDir, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing("the worker has no %s for FoundationDB %s: put that of version %s at %s (--fdb-bin-dir)",
			tool, parts[1], running, path)
	case err != nil:
		return missing("%s for FoundationDB %s (--fdb-bin-dir): %v", tool, parts[1], err)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return missing("%s (--fdb-bin-dir) is not an executable file", path)
	}
	return path, nil
}
