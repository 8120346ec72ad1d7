package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/eventually"
)

// sampleBuilder is a builder whose only module has two small programs and needs nothing from the network.
func sampleBuilder(t *testing.T) builder {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the compiler")
	}
	b := builder{toolsDir: t.TempDir(), cache: t.TempDir()}
	write := func(path, content string) {
		path = filepath.Join(b.toolsDir, "sample", path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	write("go.mod", "module example.com/sample\n\ngo 1.26\n")
	for _, name := range []string{"hello", "goodbye"} {
		write(filepath.Join(name, "main.go"), "package main\n\nvar version string\n\nfunc main() { println(\""+name+"\", version) }\n")
		b.catalog = append(b.catalog, tool{
			name: name, group: "greetings", module: "sample", pkg: "example.com/sample/" + name, from: "example.com/sample",
			ldflags: func(version string) []string { return []string{"-X main.version=" + version} },
		})
	}
	return b
}

func TestBuildMakesOnceAndKeeps(t *testing.T) {
	b := sampleBuilder(t)
	var progress bytes.Buffer
	paths, err := b.build(t.Context(), []string{"greetings"}, &progress)
	require.NoError(t, err)
	require.Len(t, paths, 2)
	require.Contains(t, progress.String(), "[2/2] hello, goodbye devel: ready")
	for name, path := range paths {
		out, err := exec.CommandContext(t.Context(), path).CombinedOutput()
		require.NoError(t, err)
		require.Equal(t, name+" devel\n", string(out))
	}

	progress.Reset()
	again, err := b.build(t.Context(), []string{"hello"}, &progress)
	require.NoError(t, err)
	require.Equal(t, paths["hello"], again["hello"])
	require.Empty(t, progress.String(), "nothing to do, nothing to say")
}

func TestBuildNoticesAChange(t *testing.T) {
	b := sampleBuilder(t)
	before, err := b.build(t.Context(), []string{"hello"}, nil)
	require.NoError(t, err)
	goMod := filepath.Join(b.toolsDir, "sample", "go.mod")
	require.NoError(t, os.WriteFile(goMod, []byte("module example.com/sample\n\ngo 1.25\n"), 0o600))
	after, err := b.build(t.Context(), []string{"hello"}, nil)
	require.NoError(t, err)
	require.NotEqual(t, before["hello"], after["hello"])
}

func TestBuildOfManyAtOnceCompilesOnce(t *testing.T) {
	b := sampleBuilder(t)
	var group sync.WaitGroup
	errs := make([]error, 4)
	infos := make([]os.FileInfo, 4)
	for i := range errs {
		group.Go(func() {
			paths, err := b.build(t.Context(), nil, nil)
			if err == nil {
				infos[i], err = os.Stat(paths["hello"])
			}
			errs[i] = err
		})
	}
	group.Wait()
	for i := range errs {
		require.NoError(t, errs[i])
		require.True(t, os.SameFile(infos[0], infos[i]))
	}
}

func TestBuildShowsTheCompilersWords(t *testing.T) {
	b := sampleBuilder(t)
	source := filepath.Join(b.toolsDir, "sample", "hello", "main.go")
	require.NoError(t, os.WriteFile(source, []byte("package main\n\nfunc main() { undefinedThing() }\n"), 0o600))
	_, err := b.build(t.Context(), []string{"hello"}, nil)
	require.ErrorContains(t, err, "build hello devel: go build: exit status 1")
	require.ErrorContains(t, err, "main.go:3:15: undefined: undefinedThing")
}

func TestBuildStopsTheCompilerWithItsContext(t *testing.T) {
	b := sampleBuilder(t)
	// The compiler is replaced by a program that would run for minutes; go build starts it below itself.
	slow := filepath.Join(t.TempDir(), "slow")
	started := filepath.Join(t.TempDir(), "started")
	mark := fmt.Sprintf("%d", time.Now().UnixNano()%1_000_000+1_000_000)
	script := "#!/bin/sh\n: >" + started + "\nsleep " + mark + "\n"
	require.NoError(t, os.WriteFile(slow, []byte(script), 0o755)) //nolint:gosec // must be executable
	t.Setenv("GOFLAGS", "-toolexec="+slow)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(started); err == nil {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	_, err := b.build(ctx, []string{"hello"}, nil)
	require.ErrorIs(t, err, context.Canceled)
	eventually.Succeeds(t, time.Minute, func() error {
		out, err := exec.CommandContext(t.Context(), "ps", "-eo", "args").Output()
		if err == nil && strings.Contains(string(out), "sleep "+mark) {
			err = errors.New("the compiler still runs")
		}
		return err
	})
	left, err := filepath.Glob(filepath.Join(b.cache, "tools", ".building-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestUnknownToolIsRefused(t *testing.T) {
	_, err := Build(t.Context(), []string{"minikube"}, nil)
	require.ErrorContains(t, err, `unknown tool "minikube": know etcd, kube-apiserver`)
}

func TestSelectTools(t *testing.T) {
	tests := map[string]struct {
		names []string
		want  int
	}{
		"no name means all":              {nil, len(catalog)},
		"a group":                        {[]string{GroupStack}, 8},
		"the groups are all":             {groups, len(catalog)},
		"a member of a group comes once": {[]string{Etcd, GroupStack, Etcd}, 8},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			selected, err := selectTools(catalog, test.names)
			require.NoError(t, err)
			require.Len(t, selected, test.want)
		})
	}
}

func TestTheTimeLeftFollowsTheMachine(t *testing.T) {
	for _, test := range []struct {
		elapsed                        time.Duration
		ready, running, waiting, cores int
		left                           time.Duration
	}{
		{0, 0, 0, 600, 2, 10 * time.Minute},
		{0, 0, 0, 600, 8, 150 * time.Second},
		{time.Minute, 0, 300, 300, 2, 9 * time.Minute},
		{20 * time.Minute, 0, 300, 300, 2, 5 * time.Minute},
		{10 * time.Minute, 300, 0, 300, 2, 10 * time.Minute},
		{10 * time.Minute, 200, 200, 100, 2, 400 * time.Second},
		{10 * time.Minute, 600, 0, 0, 2, 0},
	} {
		require.Equal(t, test.left, timeLeft(test.elapsed, test.ready, test.running, test.waiting, test.cores), "%+v", test)
	}
}

func TestEveryToolHasItsModule(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	for _, entry := range catalog {
		version, err := moduleVersion(t.Context(), filepath.Join(root, "test", "tools", entry.module), entry.from)
		require.NoError(t, err, entry.name)
		require.Regexp(t, `^v\d+\.\d+\.\d+`, version)
	}
}

func TestVersionsAreLinked(t *testing.T) {
	flags := strings.Join(kubernetesVersion("v1.36.3"), " ")
	require.Contains(t, flags, "-X k8s.io/component-base/version.gitVersion=v1.36.3")
	require.Contains(t, flags, "-X k8s.io/component-base/version.gitMajor=1")
	require.Contains(t, flags, "-X k8s.io/component-base/version.gitMinor=36")
}

func TestBinaryNameLeavesMajorVersionsOut(t *testing.T) {
	require.Equal(t, "server", binaryName("go.etcd.io/etcd/server/v3"))
	require.Equal(t, "velero", binaryName("./cmd/velero"))
}

// docs/supported.md says which versions are tested: those that are built.
func TestThePageOfVersionsNamesThoseThatAreBuilt(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "supported.md"))
	require.NoError(t, err)
	stack, err := selectTools(catalog, []string{GroupStack, Helm})
	require.NoError(t, err)
	b := builder{catalog: catalog, toolsDir: filepath.Join(root, "test", "tools"), cache: t.TempDir()}
	targets, err := b.targets(t.Context(), stack)
	require.NoError(t, err)
	for _, target := range targets {
		require.Contains(t, string(page), strings.TrimPrefix(target.version, "v"), "%s", target.name)
	}
}
