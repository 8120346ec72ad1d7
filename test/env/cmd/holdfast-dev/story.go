package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

// story is what the demo tells: numbered steps, and how long each thing took.
type story struct {
	begin  time.Time
	step   int
	timing []timing
}

type timing struct {
	what string
	took time.Duration
}

func newStory() *story { return &story{begin: time.Now()} }

// chapter begins a step.
func (s *story) chapter(format string, args ...any) {
	s.step++
	fmt.Printf("\n== %d. %s\n", s.step, fmt.Sprintf(format, args...))
}

func (s *story) took(what string, d time.Duration) {
	s.timing = append(s.timing, timing{what, d})
}

func (s *story) summary() {
	s.chapter("Summary")
	s.took("the whole demo", time.Since(s.begin))
	for _, t := range s.timing {
		fmt.Printf("   %-52s %8.1fs\n", t.what, t.took.Seconds())
	}
}

// kubectl runs the real kubectl as the tenant, after showing the command line that does the same by hand.
func kubectl(ctx context.Context, stack *env.Env, args ...string) error {
	args = append([]string{"--kubeconfig", stack.Kubeconfig(demoTenant)}, args...)
	binary := stack.Binary(tools.Kubectl)
	fmt.Println("   $", commandLine(append([]string{"kubectl"}, args...)))
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "HOME="+stack.Dir()) // its discovery cache shall not stay behind
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		fmt.Println("    ", strings.TrimRight(line, "\n"))
	}
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", args[2], err, strings.TrimSpace(string(out)))
	}
	return nil
}

// commandLine quotes arguments for a shell where they need it.
func commandLine(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		if strings.ContainsAny(arg, " '\"{}$&|;<>()*") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		quoted[i] = arg
	}
	return strings.Join(quoted, " ")
}
