package tools

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrShallow says that the checkout's repository does not hold the commit, or what lies between it and HEAD, because it is a
// shallow clone.
var ErrShallow = errors.New("this is a shallow clone; `git fetch --unshallow` completes it")

// CheckAncestor returns nil if HEAD descends from the commit, and ErrShallow if a shallow clone does not show that.
func CheckAncestor(ctx context.Context, commit string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	return checkAncestor(ctx, root, commit)
}

func checkAncestor(ctx context.Context, root, commit string) error {
	if err := git(ctx, root, io.Discard, "merge-base", "--is-ancestor", commit, "HEAD"); err != nil {
		return unlessShallow(ctx, root, fmt.Errorf("HEAD does not descend from %s: %w", commit, err))
	}
	return nil
}

// checkCommit returns nil if the repository holds the commit.
func checkCommit(ctx context.Context, root, commit string) error {
	if err := git(ctx, root, io.Discard, "cat-file", "-e", commit+"^{commit}"); err != nil {
		return unlessShallow(ctx, root, fmt.Errorf("%s is no commit of this repository: %w", commit, err))
	}
	return nil
}

// unlessShallow returns the problem, with ErrShallow if the repository is a shallow clone.
func unlessShallow(ctx context.Context, root string, problem error) error {
	var answer bytes.Buffer
	if err := git(ctx, root, &answer, "rev-parse", "--is-shallow-repository"); err != nil {
		return errors.Join(problem, err)
	}
	if strings.TrimSpace(answer.String()) == "true" {
		return fmt.Errorf("%w: %w", problem, ErrShallow)
	}
	return problem
}

// BuildHoldfastAt compiles holdfast-worker and holdfast as they were at a commit, and returns their paths by name. They are
// kept in the cache by commit and build tags. It returns ErrShallow if a shallow clone does not hold the commit.
func BuildHoldfastAt(ctx context.Context, progress io.Writer, commit string, tags ...string) (map[string]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	if err := checkCommit(ctx, root, commit); err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "bin", fmt.Sprintf("%.12s", commit)+strings.Join(tags, "-"))
	unlock, err := LockFile(ctx, dir+".lock", func() {
		fmt.Fprintf(progress, "another process is building Holdfast at %.12s, waiting\n", commit)
	})
	if err != nil {
		return nil, err
	}
	defer unlock()
	paths := map[string]string{HoldfastWorker: filepath.Join(dir, HoldfastWorker), Holdfast: filepath.Join(dir, Holdfast)}
	if exists(paths[HoldfastWorker]) && exists(paths[Holdfast]) {
		return paths, nil
	}
	source, err := os.MkdirTemp("", "holdfast-source-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(source) }()
	if err := export(ctx, root, commit, source); err != nil {
		return nil, fmt.Errorf("read the sources of %s from the repository: %w", commit, err)
	}
	fmt.Fprintf(progress, "building Holdfast as it was at %.12s\n", commit)
	return buildInto(ctx, progress, source, dir, tags)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// export writes the files of a commit into a folder.
func export(ctx context.Context, root, commit, into string) error {
	var archive bytes.Buffer
	if err := git(ctx, root, &archive, "archive", "--format=tar", commit); err != nil {
		return err
	}
	folder, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	for reader := tar.NewReader(&archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := folder.MkdirAll(filepath.Dir(header.Name), 0o755); err != nil {
			return err
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			return err
		}
		if err := folder.WriteFile(header.Name, data, 0o644); err != nil {
			return err
		}
	}
}

func git(ctx context.Context, root string, output io.Writer, args ...string) error {
	var problem bytes.Buffer
	command := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
	command.Stdout, command.Stderr = output, &problem
	if err := command.Run(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(problem.String()))
	}
	return nil
}

// BuildWorkerWith compiles this checkout's holdfast-worker with another text of one of its files, into dir.
func BuildWorkerWith(ctx context.Context, dir, file, text string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	replacement := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(replacement, []byte(text), 0o644); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, file): replacement}})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o644); err != nil {
		return "", err
	}
	worker := filepath.Join(dir, HoldfastWorker)
	command := goCommand{dir: root, args: []string{"build", "-overlay", list, "-o", worker, "./worker"}, env: os.Environ()}
	if err := runGo(ctx, command, func(string) {}); err != nil {
		return "", fmt.Errorf("build holdfast-worker with another %s: %w", file, err)
	}
	return worker, nil
}
