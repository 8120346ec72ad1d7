package gate

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// proving leaves out of a stage what is proved, and records what is.
type proving struct {
	proofs Proofs
	hashes map[string]string // of the packages that run, or would
	hash   func(context.Context, string) (string, error)
	commit string
	// changed are the tests that this run repeats, by the folder of their package.
	changed map[string][]string
}

// newProving works out the hashes of the jobs' packages. It is nil where nothing may be proved: to record histories all must run.
func newProving(
	ctx context.Context, root, folder, commit string, flags []string, jobs []Job, changed map[string][]string,
) (*proving, error) {
	if os.Getenv("HOLDFAST_RECORD_HISTORIES") != "" {
		return nil, nil //nolint:nilnil // nil proves nothing
	}
	version, err := goCommand(ctx, root, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return nil, err
	}
	hash := func(ctx context.Context, pkg string) (string, error) {
		inputs, err := NewInputs(ctx, root, append([]string{version}, flags...))
		if err != nil {
			return "", err
		}
		imports, err := importsOf(ctx, root, pkg)
		if err != nil {
			return "", err
		}
		return inputs.Hash(Short(pkg), imports)
	}
	p := &proving{hash: hash, proofs: Proofs{Folder: folder}, hashes: map[string]string{}, commit: commit, changed: changed}
	for _, job := range jobs {
		pkg := job.Packages[0]
		if p.hashes[pkg], err = hash(ctx, pkg); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// leaveOut returns the jobs that are not proved, and a line for each that is.
func (p *proving) leaveOut(jobs []Job, now time.Time) (left []Job, said []string) {
	if p == nil {
		return jobs, nil
	}
	for _, job := range jobs {
		proof, proved := p.proofs.Find(p.hashes[job.Packages[0]], p.changed[Short(job.Packages[0])], now)
		if !proved || slices.Contains(live, Short(job.Packages[0])) {
			left = append(left, job)
			continue
		}
		const line = "PROVED %s: its %d tests passed %s ago in %.0f s, at %.9s; nothing that they depend on has changed"
		ago := now.Sub(proof.Time).Round(time.Minute)
		said = append(said, fmt.Sprintf(line, Short(job.Packages[0]), proof.Tests, ago, proof.Seconds, proof.Commit))
	}
	return left, said
}

// record keeps that a package passed at its first run, and its new and changed tests three times. What was changed while it
// ran is not what has passed.
func (p *proving) record(o Outcome) error {
	if p == nil || p.hashes[o.Package] == "" {
		return nil
	}
	hash, err := p.hash(context.Background(), o.Package)
	if err != nil || hash != p.hashes[o.Package] {
		return err
	}
	proof := Proof{
		Package: o.Package, Commit: p.commit, Time: time.Now().UTC(), Tests: o.Ran, Seconds: o.Seconds,
		Thrice: p.changed[Short(o.Package)],
	}
	return p.proofs.Add(hash, proof)
}

// importsOf are the folders of the checkout that a package and its tests import.
func importsOf(ctx context.Context, root, pkg string) ([]string, error) {
	const format = "{{if not .Standard}}{{.ImportPath}}{{end}}"
	listed, err := goCommand(ctx, root, "-C", "test", "list", "-deps", "-test", "-f", format, pkg)
	if err != nil {
		return nil, err
	}
	var folders []string
	for path := range strings.FieldsSeq(listed) {
		if folder, ours := strings.CutPrefix(path, module+"/"); ours {
			folders = append(folders, folder)
		}
	}
	return folders, nil
}
