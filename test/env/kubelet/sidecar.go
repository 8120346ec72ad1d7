package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// copyFDBFiles does what FoundationDB's sidecar and its Kubernetes monitor do as init containers: it copies files from one
// folder to another, and refuses to when one that must not be empty is.
func copyFDBFiles(_ context.Context, call ImageCall) int {
	plan, err := parseSidecarArgs(call.Args)
	if err == nil {
		err = plan.copyAll(call)
	}
	if err != nil {
		fmt.Fprintln(call.Output, err)
		return 1
	}
	return 0
}

type sidecarPlan struct {
	input, output   string
	files, notEmpty []string
}

func parseSidecarArgs(args []string) (sidecarPlan, error) {
	plan := sidecarPlan{input: "/var/input-files", output: "/var/output-files"}
	initMode := false
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(args[i], "=")
		if name == "--init-mode" {
			initMode = true
			continue
		}
		if !given {
			if i++; i == len(args) {
				return plan, fmt.Errorf("%s needs a value", name)
			}
			value = args[i]
		}
		switch name {
		case "--copy-file":
			plan.files = append(plan.files, value)
		case "--require-not-empty":
			plan.notEmpty = append(plan.notEmpty, value)
		case "--input-dir":
			plan.input = value
		case "--output-dir":
			plan.output = value
		case "--mode":
			initMode = value == "init"
		case "--main-container-version", "--log-path":
		default:
			return plan, fmt.Errorf("unknown argument %s", name)
		}
	}
	if !initMode {
		return plan, fmt.Errorf("only the init mode is known here: %s", strings.Join(args, " "))
	}
	return plan, nil
}

func (p sidecarPlan) copyAll(call ImageCall) error {
	for _, name := range p.files {
		content, err := os.ReadFile(filepath.Join(call.Path(p.input), name))
		if err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
		if len(content) == 0 && slices.Contains(p.notEmpty, name) {
			return fmt.Errorf("copy %s: the file is empty", name)
		}
		if err := os.WriteFile(filepath.Join(call.Path(p.output), name), content, 0o644); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	return nil
}
