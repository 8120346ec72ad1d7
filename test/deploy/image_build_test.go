package deploy_test

import (
	"debug/buildinfo"
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// compilerFlags are those that decide what a program is made of, and -s -w leaves out: tables for debuggers.
var compilerFlags = regexp.MustCompile(`go build (?:-buildvcs=false )?(-trimpath -tags=\S+ -ldflags="-s -w -X [\w./]+=)\S*" -o \S+/(\S+) (\S+)`)

func TestMakeBuildsWhatTheImageHolds(t *testing.T) {
	build, _ := imageStages(t)
	var inImage []string
	for _, i := range build.all("RUN") {
		inImage = append(inImage, i.words...)
	}
	dry := func(option string) string {
		command := exec.CommandContext(t.Context(), "make", option, "build")
		command.Dir = inCheckout(t)
		printed, err := command.Output()
		require.NoError(t, err)
		return string(printed)
	}
	flags := func(commands string) (found [][]string) {
		for _, match := range compilerFlags.FindAllStringSubmatch(commands, -1) {
			found = append(found, match[1:])
		}
		return found
	}
	want := flags(strings.Join(inImage, "\n"))
	assert.Len(t, want, 2)
	assert.Regexp(t, `(?m)^CGO_ENABLED := 0$`, dry("-np"), "without libc: it is exported to all that make runs")
	assert.Equal(t, want, flags(dry("-n")))
	exported := regexp.MustCompile(`(?m)^export GOFLAGS \?= (.*)$`).FindStringSubmatch(readFile(t, "Makefile"))
	require.NotNil(t, exported)
	assert.Contains(t, strings.Join(build.last(t, "ENV").words, " "), `"`+exported[1]+`"`)
}

// There is no container engine here, so the instructions of the first stage are carried out in a folder.
func TestImageBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles both programs in another form")
	}
	t.Parallel()
	build, final := imageStages(t)
	workdir := build.last(t, "WORKDIR").words[0]
	src := filepath.Join(t.TempDir(), filepath.FromSlash(workdir))
	for _, i := range build.all("COPY") {
		require.Empty(t, i.flags)
		copyFromContext(t, src, i.words)
	}
	environment := append(os.Environ(), "GOFLAGS=", "TARGETOS="+runtime.GOOS, "TARGETARCH="+runtime.GOARCH)
	for _, i := range build.all("ENV") { // each: name, value, separator
		for n := 0; n+1 < len(i.words); n += 3 {
			environment = append(environment, i.words[n]+"="+strings.Trim(i.words[n+1], `"`))
		}
	}
	assert.Contains(t, environment, "CGO_ENABLED=0")
	for _, i := range build.all("RUN") {
		command := exec.CommandContext(t.Context(), "sh", "-c", i.words[0])
		command.Dir, command.Env = src, environment
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s\n%s", i.words[0], output)
	}
	for target, source := range shipped(t, final) {
		if strings.HasPrefix(target, "/etc/") {
			continue // of the base image
		}
		relative, within := strings.CutPrefix(source, workdir+"/")
		require.True(t, within, "%s is not made in %s", source, workdir)
		if target == "/licenses/LICENSE" {
			assert.FileExists(t, filepath.Join(src, relative))
			continue
		}
		checkShipped(t, filepath.Join(src, relative))
	}
}

// copyFromContext carries out a COPY: only what .dockerignore lets through exists.
func copyFromContext(t *testing.T, src string, words []string) {
	t.Helper()
	ignored := ignoredByContext(t)
	root := inCheckout(t)
	sources, target := words[:len(words)-1], words[len(words)-1]
	for _, source := range sources {
		into := filepath.Join(src, target)
		if info, err := os.Stat(filepath.Join(root, source)); err == nil && !info.IsDir() && strings.HasSuffix(target, "/") {
			into = filepath.Join(into, filepath.Base(source))
		}
		copied := 0
		err := filepath.WalkDir(filepath.Join(root, source), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			relative, err := filepath.Rel(root, file)
			if err != nil || ignored(filepath.ToSlash(relative)) {
				return err
			}
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			copied++
			within := strings.TrimPrefix(strings.TrimPrefix(file, filepath.Join(root, source)), string(filepath.Separator))
			to := filepath.Join(into, within)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			return os.WriteFile(to, content, 0o600)
		})
		require.NoError(t, err)
		require.Positive(t, copied, "COPY %s: nothing of it is in the build's context", source)
	}
}

// checkShipped: in an image that is otherwise empty a program needs no library, and it starts without a home. It is stripped.
func checkShipped(t *testing.T, binary string) {
	t.Helper()
	file, err := elf.Open(binary)
	require.NoError(t, err)
	defer file.Close()
	for _, header := range file.Progs {
		assert.NotEqual(t, elf.PT_INTERP, header.Type, "%s is not static", binary)
	}
	for _, section := range []string{".symtab", ".debug_info", ".zdebug_info"} {
		assert.Nil(t, file.Section(section), "%s is not stripped", binary)
	}
	info, err := buildinfo.ReadFile(binary)
	require.NoError(t, err, "go version -m says what it is made of")
	assert.NotEmpty(t, info.Deps)
	command := exec.CommandContext(t.Context(), binary, "--help")
	command.Env = []string{"PATH=/"}
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	assert.Contains(t, string(output), filepath.Base(binary))
}
