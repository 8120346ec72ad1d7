package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
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

type timing struct{ what, took string }

func newStory() *story { return &story{begin: time.Now()} }

// chapter begins a step.
func (s *story) chapter(format string, args ...any) {
	s.step++
	fmt.Printf("\n== %d. %s\n", s.step, fmt.Sprintf(format, args...))
}

func (s *story) took(what string, d time.Duration) {
	s.timing = append(s.timing, timing{what, fmt.Sprintf("%.1fs", d.Seconds())})
}

// measured adds what Holdfast has measured, in whole seconds.
func (s *story) measured(what string, d time.Duration) {
	took := d.String()
	if d == 0 {
		took = "<1s"
	}
	s.timing = append(s.timing, timing{what, took})
}

func (s *story) summary() {
	s.chapter("Summary")
	s.took("the whole demo", time.Since(s.begin))
	for _, t := range s.timing {
		fmt.Printf("   %-52s %9s\n", t.what, t.took)
	}
}

// kubectl runs the real kubectl as the tenant.
func kubectl(ctx context.Context, stack *env.Env, args ...string) error {
	_, err := runAs(ctx, stack, tools.Kubectl, demoTenant, args...)
	return err
}

// asAdmin runs kubectl or holdfast as the administrator and returns what it printed.
func asAdmin(ctx context.Context, stack *env.Env, program string, args ...string) (string, error) {
	return runAs(ctx, stack, program, env.Admin, args...)
}

// runAs runs a program as a user, after showing the command line that does the same by hand, and shows what it prints.
func runAs(ctx context.Context, stack *env.Env, program, user string, args ...string) (string, error) {
	return show(ctx, stack, program, append(slices.Clone(args), "--kubeconfig", stack.Kubeconfig(user))...)
}

// throughTemporal runs a command of holdfast that needs Temporal alone.
func throughTemporal(ctx context.Context, stack *env.Env, args ...string) (string, error) {
	return show(ctx, stack, tools.Holdfast, args...)
}

func show(ctx context.Context, stack *env.Env, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, stack.Binary(program), args...)
	cmd.Env = append(os.Environ(), "HOME="+stack.Dir()) // kubectl's discovery cache shall not stay behind
	words := append([]string{program}, args...)
	if program == tools.Holdfast {
		address := "TEMPORAL_ADDRESS=" + stack.TemporalAddress()
		cmd.Env, words = append(cmd.Env, address), append([]string{address}, words...)
	}
	fmt.Println("   $", commandLine(words))
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		fmt.Println("    ", strings.TrimRight(line, "\n"))
	}
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", program, args[0], err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
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
