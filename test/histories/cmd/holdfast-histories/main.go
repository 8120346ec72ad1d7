// Command holdfast-histories chooses, of the histories that the tests have recorded, the baseline that must replay.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/test/histories"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: holdfast-histories RECORDED BASELINE COMMIT\n"+
			"It replaces the histories in the folder BASELINE by the best of those in the folder RECORDED,\n"+
			"which code of COMMIT has written.")
		os.Exit(2)
	}
	if err := choose(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func choose(from, to, commit string) error {
	recorded, err := histories.Read(from)
	if err != nil {
		return err
	}
	if len(recorded) == 0 {
		return fmt.Errorf("no histories in %s: the tests write them there when HOLDFAST_RECORD_HISTORIES names it", from)
	}
	chosen := histories.Choose(recorded, histories.Limit)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	var size int64
	numbers := map[string]int{}
	for _, each := range chosen {
		data, err := os.ReadFile(each.Path)
		if err != nil {
			return err
		}
		numbers[each.Type()]++
		name := fmt.Sprintf("%s.%03d.json", each.Type(), numbers[each.Type()])
		if err := os.WriteFile(filepath.Join(to, name), data, 0o644); err != nil {
			return err
		}
		size += each.Size
	}
	if err := os.WriteFile(filepath.Join(to, histories.CommitFile), []byte(strings.TrimSpace(commit)+"\n"), 0o644); err != nil {
		return err
	}
	fmt.Printf("%d of %d histories, %.1f MiB, are the baseline in %s. See `go -C test test -v ./histories -run Table`.\n",
		len(chosen), len(recorded), float64(size)/(1<<20), to)
	return nil
}
