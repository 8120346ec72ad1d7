package tools

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// probeLimit bounds a program that is run for its version.
const probeLimit = 10 * time.Second

// versionIn finds the first version in what a program prints, with all that belongs to it: v1.36.3+k3s1 is not 1.36.3.
var versionIn = regexp.MustCompile(`\bv?(\d+\.\d+\.\d+[-+\w.]*)`)

// atHand replaces the paths of programs that are not built yet by those of the same versions that are on this machine, and says
// which. HOLDFAST_TOOLS=build turns that off.
func atHand(ctx context.Context, targets []target, progress io.Writer) {
	if os.Getenv("HOLDFAST_TOOLS") == "build" {
		return
	}
	for i, t := range targets {
		if t.probe == nil || t.exists() {
			continue
		}
		for _, path := range candidates(t.name) {
			if versionOf(ctx, path, t.probe) == strings.TrimPrefix(t.version, "v") {
				fmt.Fprintf(progress, "%s %s: %s is used (HOLDFAST_TOOLS=build builds it instead)\n", t.name, t.version, path)
				targets[i].path = path
				break
			}
		}
	}
}

// candidates are the places where a program may be: the folder that KUBEBUILDER_ASSETS names, those of setup-envtest and of
// kubebuilder, and PATH.
func candidates(name string) (paths []string) {
	folders := []string{os.Getenv("KUBEBUILDER_ASSETS")}
	if home, err := os.UserHomeDir(); err == nil {
		data := os.Getenv("XDG_DATA_HOME")
		if data == "" {
			data = filepath.Join(home, ".local", "share")
		}
		releases, _ := filepath.Glob(filepath.Join(data, "kubebuilder-envtest", "k8s", "*-"+runtime.GOOS+"-"+runtime.GOARCH))
		folders = append(folders, releases...)
	}
	folders = append(folders, "/usr/local/kubebuilder/bin")
	for _, folder := range append(folders, filepath.SplitList(os.Getenv("PATH"))...) {
		if !filepath.IsAbs(folder) {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// versionOf runs a program with the arguments that make it print its version. It is empty if the program does not.
func versionOf(ctx context.Context, path string, arguments []string) string {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	command := exec.CommandContext(ctx, path, arguments...)
	command.WaitDelay = time.Second
	printed, err := command.CombinedOutput()
	if err != nil {
		return ""
	}
	if found := versionIn.FindSubmatch(printed); found != nil {
		return string(found[1])
	}
	return ""
}
