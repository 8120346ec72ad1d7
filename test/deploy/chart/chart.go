package chart

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Generated is the folder, below deploy/chart, that has nothing but what Write writes.
const Generated = "templates/generated"

// part is a folder of templates, and the manifests that they are made of, which keep their names.
type part struct {
	folder string // below Generated
	from   string // a pattern of files below deploy/
	// when is the condition of the values under which the objects of a file are rendered; nil renders them always.
	when func(file string) string
	// change puts values into a document; nil changes nothing.
	change func(document string) (string, error)
}

func when(condition string) func(string) string { return func(string) string { return condition } }

func parts() []part {
	fdb := when(".Values.fdb.enabled")
	fdbKinds := when("and .Values.fdb.enabled .Values.crds.enabled")
	drills := when(".Values.drills.enabled")
	network, monitor := when(".Values.networkPolicy.enabled"), when(".Values.podMonitor.enabled")
	return []part{
		{folder: "crds", from: "crds/*.yaml", when: ifOADP, change: keepable},
		{folder: "fdb/crds", from: "components/fdb/crds/*.yaml", when: fdbKinds, change: keepable},
		{folder: "rbac", from: "rbac/*.yaml", change: switches},
		{folder: "fdb/rbac", from: "components/fdb/rbac/*.yaml", when: fdb},
		{folder: "drills/rbac", from: "components/drills/rbac/*.yaml", when: drills, change: switches},
		{folder: ".", from: "base/worker.yaml", change: process("worker")},
		{folder: ".", from: "base/watcher.yaml", change: process("watcher")},
		{folder: "fdb", from: "components/fdb/base/worker.yaml", when: fdb, change: process("fdb")},
		{folder: "drills", from: "components/drills/base/worker.yaml", when: drills, change: process("drills.worker")},
		{folder: ".", from: "base/temporal_network_policy.yaml", when: network, change: temporalNamespace},
		{folder: ".", from: "components/pod-monitor/pod_monitor.yaml", when: monitor, change: endpoint},
	}
}

// copies is the folder, below deploy/chart, of the files of deploy/ that the chart's own templates read.
const copies = "files"

var copied = map[string]string{
	"monitoring/alerts.yaml": copies + "/alerts.yaml", "monitoring/dashboard.json": copies + "/dashboard.json",
}

// ifOADP leaves the kinds that OADP has, too, to OADP where it installs them. Its approval requests are not of our kind.
func ifOADP(file string) string {
	name := path.Base(file)
	if strings.HasPrefix(name, "oadp.openshift.io_") && !strings.Contains(name, "approvalrequests") {
		return "and .Values.crds.enabled .Values.crds.oadp"
	}
	return ".Values.crds.enabled"
}

// Write writes the generated files of deploy/chart anew. An error leaves the old ones: all are made before the first is written.
func Write(deploy string) error {
	made := map[string]string{}
	for _, p := range parts() {
		files, err := filepath.Glob(filepath.Join(deploy, filepath.FromSlash(p.from)))
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("no file matches %s", filepath.Join(deploy, p.from))
		}
		for _, file := range files {
			template, err := p.template(deploy, file)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			made[path.Join(Generated, p.folder, filepath.Base(file))] = template
		}
	}
	for from, to := range copied {
		content, err := os.ReadFile(filepath.Join(deploy, from))
		if err != nil {
			return err
		}
		made[to] = string(content)
	}
	return replace(filepath.Join(deploy, "chart"), made)
}

func replace(dir string, made map[string]string) error {
	for _, folder := range []string{Generated, copies} {
		if err := os.RemoveAll(filepath.Join(dir, folder)); err != nil {
			return err
		}
	}
	for name, content := range made {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// template makes the template of a file.
func (p part) template(deploy, file string) (string, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if strings.Contains(string(source), "{{") {
		return "", errors.New("it has {{, which is Helm's own")
	}
	name, err := filepath.Rel(deploy, file)
	if err != nil {
		return "", err
	}
	var documents []string
	for document := range strings.SplitSeq(strings.TrimPrefix(string(source), "---\n"), "\n---\n") {
		document, err = place(strings.TrimSuffix(document, "\n") + "\n")
		if err == nil && p.change != nil {
			document, err = p.change(document)
		}
		if err != nil {
			return "", err
		}
		documents = append(documents, document)
	}
	body := strings.Join(documents, "---\n")
	if p.when != nil {
		body = "{{- if " + p.when(file) + " }}\n" + body + "{{- end }}\n"
	}
	return "{{- /* Written by `make generate` from deploy/" + filepath.ToSlash(name) + ": change that. */}}\n" + body, nil
}
