package fdbworker

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"holdfast.dev/holdfast/workflows/call"
)

// Flags are the worker's settings for FoundationDB.
type Flags struct {
	// BinDir has a folder with FoundationDB's tools for each version; empty if this worker runs none.
	BinDir                 string
	InitialSnapshotLimit   int
	InitialSnapshotTimeout time.Duration
	StatusInterval         time.Duration
	ExpiryConcurrency      int
	ExpiryRetryInterval    time.Duration
	ExpiryMinInterval      time.Duration
	ExpiryTimeout          time.Duration
	AllowFileURLs          bool
	Cage                   cageFlags
}

// Bind adds the flags.
func (f *Flags) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.BinDir, "fdb-bin-dir", "",
		"folder with FoundationDB's tools, <major.minor>/fdbbackup; without it this worker serves the workflows and runs no tools")
	flags.IntVar(&f.InitialSnapshotLimit, "fdb-initial-snapshot-limit", 1,
		"how many FoundationDB backups of this Kubernetes cluster may write their first snapshot at a time")
	flags.DurationVar(&f.InitialSnapshotTimeout, "fdb-initial-snapshot-timeout", 30*time.Minute,
		"how long a first snapshot may make no progress before another backup may write its own")
	flags.DurationVar(&f.StatusInterval, "fdb-status-interval", 5*time.Minute,
		"the longest time between two checks of a FoundationDB backup")
	flags.IntVar(&f.ExpiryConcurrency, "fdb-expiry-concurrency", 1,
		"how many pods that expire or delete FoundationDB backups may run at a time in this Kubernetes cluster")
	flags.DurationVar(&f.ExpiryRetryInterval, "fdb-expiry-retry-interval", 10*time.Minute,
		"the longest wait for a place among those pods, and until a turn that could not run is retried")
	flags.DurationVar(&f.ExpiryMinInterval, "fdb-expiry-min-interval", time.Hour,
		"the shortest time between two expirations of a FoundationDB backup")
	flags.DurationVar(&f.ExpiryTimeout, "fdb-expiry-timeout", time.Hour,
		"how long a pod that expires or deletes FoundationDB backups may run before it is deleted")
	flags.BoolVar(&f.AllowFileURLs, "fdb-allow-file-urls", false,
		"allow FoundationDB backups in files of the agents; for tests")
	f.Cage.Bind(flags)
}

// Validate returns an error of one line that names the flag at fault.
func (f *Flags) Validate() error {
	switch {
	case f.InitialSnapshotLimit < 1:
		return errors.New("--fdb-initial-snapshot-limit: must be a number of at least 1")
	case f.InitialSnapshotTimeout <= 0:
		return errors.New("--fdb-initial-snapshot-timeout: must be a duration of more than zero")
	case f.StatusInterval < time.Second:
		return errors.New("--fdb-status-interval: must be a duration of at least 1s")
	case f.ExpiryConcurrency < 1:
		return errors.New("--fdb-expiry-concurrency: must be a number of at least 1")
	case f.ExpiryRetryInterval < time.Second:
		return errors.New("--fdb-expiry-retry-interval: must be a duration of at least 1s")
	case f.ExpiryMinInterval < time.Second:
		return errors.New("--fdb-expiry-min-interval: must be a duration of at least 1s")
	case f.ExpiryTimeout < time.Second:
		return errors.New("--fdb-expiry-timeout: must be a duration of at least 1s")
	}
	return f.Cage.Validate()
}

// ValidateTools is Validate for a worker that serves FoundationDB, alone or with Velero's half. Alone it needs the tools.
func (f *Flags) ValidateTools(alone bool) error {
	switch {
	case f.BinDir == "" && alone:
		return errors.New("--fdb-bin-dir: must be the folder with FoundationDB's tools, which --serve=fdb needs")
	case f.BinDir == "":
		return nil
	}
	if info, err := os.Stat(f.BinDir); err != nil || !info.IsDir() {
		return fmt.Errorf("--fdb-bin-dir: %q is not a folder", f.BinDir)
	}
	return nil
}

// addTo sets the options of FoundationDB's workflows.
func (f *Flags) addTo(options *call.Options) {
	options.FDBStatusInterval = f.StatusInterval
	options.FDBSnapshotLimit, options.FDBSnapshotTimeout = f.InitialSnapshotLimit, f.InitialSnapshotTimeout
	options.FDBExpiryLimit, options.FDBExpiryRetryInterval = f.ExpiryConcurrency, f.ExpiryRetryInterval
	options.FDBExpiryMinInterval, options.FDBExpiryTimeout = f.ExpiryMinInterval, f.ExpiryTimeout
}
