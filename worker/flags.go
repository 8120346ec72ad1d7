package main

import (
	"errors"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/k8s/process"
	"holdfast.dev/holdfast/worker/fdbworker"
)

// The values of --serve.
const (
	serveVelero = "velero"
	serveFDB    = "fdb"
	serveDrills = "drills"
	serveAll    = "all"
)

// workerFlags are the worker's settings.
type workerFlags struct {
	process.Flags
	// Serve: serveVelero, serveFDB, serveDrills or serveAll.
	Serve               string
	VeleroStallTimeout  time.Duration
	RestoreReadyTimeout time.Duration
	// CollectionGrace is how old something must be for the garbage collection.
	CollectionGrace time.Duration
	// ApproveThroughTemporal: approveAuto, approveAlways or approveNever.
	ApproveThroughTemporal string
	FDB                    fdbworker.Flags
	// Deployment is the worker's version: no flag, see deploymentOptions.
	Deployment worker.DeploymentOptions
}

// minStallTimeout keeps the checks, four in that time, well apart.
const minStallTimeout = 15 * time.Second

func (f *workerFlags) Bind(flags *pflag.FlagSet) {
	f.Flags.Bind(flags)
	flags.StringVar(&f.Serve, "serve", serveAll,
		"what this worker serves: velero; fdb (FoundationDB) or drills (their namespaces), each with rights of its own; or all, "+
			"for development")
	flags.DurationVar(&f.VeleroStallTimeout, "velero-stall-timeout", 15*time.Minute,
		"how long a backup that is finished in the object store may stay InProgress before a stall is reported")
	flags.DurationVar(&f.RestoreReadyTimeout, "restore-ready-timeout", 10*time.Minute,
		"how long restored volumes and workloads may take to become ready before a restore ends with a warning")
	flags.DurationVar(&f.CollectionGrace, "garbage-collection-grace", 10*time.Minute,
		"how old an object must be before it is deleted because the object it was made for is gone")
	flags.StringVar(&f.ApproveThroughTemporal, "approve-through-temporal", approveAuto,
		"whether Temporal's Updates and signals decide about storage locations: always, never, or auto (while Temporal refuses "+
			"callers without credentials)")
	f.FDB.Bind(flags)
}

// Validate returns an error of one line that names the flag at fault.
func (f *workerFlags) Validate() error {
	if f.VeleroStallTimeout < minStallTimeout {
		return errors.New("--velero-stall-timeout: must be a duration of at least " + minStallTimeout.String())
	}
	if f.RestoreReadyTimeout <= 0 {
		return errors.New("--restore-ready-timeout: must be a duration of more than zero")
	}
	if f.CollectionGrace < 0 {
		return errors.New("--garbage-collection-grace: must be a duration of at least zero")
	}
	if !slices.Contains([]string{approveAuto, approveAlways, approveNever}, f.ApproveThroughTemporal) {
		return errors.New("--approve-through-temporal: must be auto, always or never")
	}
	if err := f.FDB.Validate(); err != nil {
		return err
	}
	if !slices.Contains([]string{serveVelero, serveFDB, serveDrills, serveAll}, f.Serve) {
		return errors.New("--serve: must be velero, fdb, drills or all")
	}
	if f.servesFDB() {
		if err := f.FDB.ValidateTools(!f.servesVelero()); err != nil {
			return err
		}
	}
	return f.Flags.Validate()
}

// process is the name of the readiness check of a process, by which an alert distinguishes the workers.
func (f *workerFlags) process() string {
	switch f.Serve {
	case serveFDB:
		return "fdb-worker"
	case serveDrills:
		return "drill-worker"
	}
	return "worker"
}

func (f *workerFlags) servesVelero() bool { return f.Serve == serveVelero || f.Serve == serveAll }

func (f *workerFlags) servesFDB() bool { return f.Serve == serveFDB || f.Serve == serveAll }

func (f *workerFlags) servesDrills() bool { return f.Serve == serveDrills || f.Serve == serveAll }
