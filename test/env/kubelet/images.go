package kubelet

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Image is what the kubelet stand-in knows of a container image. The zero value is an image without an entry point that has
// the programs of this machine's /usr/bin and /bin.
type Image struct {
	// Command and Args are the image's own, for containers that set none.
	Command, Args []string
	Env           map[string]string
	// Bin is a folder of this machine with the image's programs. It comes first in the container's PATH.
	Bin string
	// Run is what a container does that sets no command, in this process, instead of Command. It returns the exit code, and
	// returns when ctx ends.
	Run func(ctx context.Context, call ImageCall) int
}

// ImageCall is one start of an Image's Run.
type ImageCall struct {
	Args   []string          // with the mount paths as they are in the container
	Env    map[string]string // the same
	Output io.Writer         // the container's log
	// Path gives the path on this machine of a path in the container.
	Path func(string) string
}

// program is what a container is to run: an executable with arguments, or a function.
type program struct {
	path string
	args []string
	run  func(context.Context, ImageCall) int
}

// images is the registry and the node's image store in one.
type images struct {
	mu      sync.Mutex
	known   map[string]Image
	missing map[string]bool
	resolve func(string) (Image, error)
}

// SetImage adds an image or replaces it for the containers started from now on.
func (k *Kubelet) SetImage(name string, image Image) {
	k.images.mu.Lock()
	defer k.images.mu.Unlock()
	delete(k.images.missing, name)
	if k.images.known == nil {
		k.images.known = map[string]Image{}
	}
	k.images.known[name] = image
}

// RemoveImage makes an image impossible to pull, also one that Resolve would know, until SetImage.
func (k *Kubelet) RemoveImage(name string) {
	k.images.mu.Lock()
	defer k.images.mu.Unlock()
	delete(k.images.known, name)
	k.images.missing[name] = true
}

// find returns an image; the error says why it cannot be pulled.
func (i *images) find(name string) (Image, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	repository, tag := splitImage(name)
	for _, key := range imageKeys(repository, tag) {
		if i.missing[key] {
			return Image{}, fmt.Errorf("pull %s: it was removed", name)
		}
		if image, ok := i.known[key]; ok {
			return image, nil
		}
	}
	var err error
	if i.resolve != nil {
		var image Image
		if image, err = i.resolve(name); err == nil {
			return image, nil
		}
	}
	if isRepository(repository, fdbSidecar) || isRepository(repository, fdbMonitor) {
		return Image{Run: copyFDBFiles}, nil
	}
	if err != nil {
		return Image{}, fmt.Errorf("pull %s: %w", name, err)
	}
	return Image{}, fmt.Errorf("pull %s: no such image in Options.Images", name)
}

// splitImage splits an image's name into repository and tag, without a digest.
func splitImage(name string) (repository, tag string) {
	name, _, _ = strings.Cut(name, "@")
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		return name[:colon], name[colon+1:]
	}
	return name, "latest"
}

// imageKeys are the names under which an image may be known: with and without its tag, and without each leading element.
func imageKeys(repository, tag string) []string {
	var tagged, plain []string
	for rest := repository; ; {
		tagged, plain = append(tagged, rest+":"+tag), append(plain, rest)
		slash := strings.Index(rest, "/")
		if slash < 0 {
			return append(tagged, plain...)
		}
		rest = rest[slash+1:]
	}
}

func isRepository(repository, name string) bool {
	return repository == name || strings.HasSuffix(repository, "/"+name)
}

// program says what a container of the image runs. Mount paths are replaced in what a process gets.
func (i Image) program(container *corev1.Container, env environment, mounts mounts) (program, error) {
	command, args := env.expandAll(container.Command), env.expandAll(container.Args)
	if len(command) == 0 {
		if len(args) == 0 {
			args = i.Args
		}
		if i.Run != nil {
			return program{run: i.Run, args: args}, nil
		}
		command = i.Command
	}
	argv := mounts.replaceAll(append(command[:len(command):len(command)], args...))
	if len(argv) == 0 {
		return program{}, fmt.Errorf("no command specified")
	}
	path, err := i.lookUp(argv[0])
	if err != nil {
		return program{}, err
	}
	return program{path: path, args: argv[1:]}, nil
}

func (i Image) lookUp(command string) (string, error) {
	candidates := []string{filepath.Join("/usr/bin", command), filepath.Join("/bin", command)}
	if strings.Contains(command, "/") {
		candidates = []string{command}
	}
	if i.Bin != "" {
		candidates = append([]string{filepath.Join(i.Bin, filepath.Base(command))}, candidates...)
	}
	for _, candidate := range candidates {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("exec: %q: executable file not found in $PATH", command)
}

// The images of FoundationDB that the kubelet stand-in knows.
const (
	fdbImage   = "foundationdb/foundationdb"
	fdbSidecar = "foundationdb/foundationdb-kubernetes-sidecar"
	fdbMonitor = "foundationdb/fdb-kubernetes-monitor"
)

// FDBImages is a Options.Resolve for FoundationDB's own images. The programs of version 7.3.48 are those in the folder
// 7.3 of binDir; a version without a folder has no image.
func FDBImages(binDir string) func(image string) (Image, error) {
	return func(name string) (Image, error) {
		repository, tag := splitImage(name)
		image := Image{}
		switch {
		case isRepository(repository, fdbImage):
		case isRepository(repository, fdbSidecar), isRepository(repository, fdbMonitor):
			image.Run = copyFDBFiles
		default:
			return Image{}, fmt.Errorf("%s is no image of FoundationDB", repository)
		}
		version := strings.SplitN(tag, ".", 3)
		if len(version) < 3 {
			return Image{}, fmt.Errorf("%q is no version of FoundationDB", tag)
		}
		image.Bin = filepath.Join(binDir, version[0]+"."+version[1])
		if _, err := os.Stat(image.Bin); err != nil {
			return Image{}, fmt.Errorf("manifest of %s not found: %w", tag, err)
		}
		return image, nil
	}
}
