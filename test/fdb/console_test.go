package fdb_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// console asks a database through fdbcli, whichever that is: the stand-in's or FoundationDB's own.
type console struct {
	t       *testing.T
	tool    string
	cluster string // the cluster file
}

func (x *tenant) console(cluster string) *console {
	x.t.Helper()
	version := x.version()
	c := &console{
		t: x.t, tool: filepath.Join(toolsDir, version[:strings.LastIndex(version, ".")], "fdbcli"),
		cluster: filepath.Join(x.t.TempDir(), "fdb.cluster"),
	}
	require.NoError(x.t, writeFile(c.cluster, x.connection(cluster)+"\n"))
	return c
}

func (c *console) run(commands ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	output, err := exec.CommandContext(ctx, c.tool, "-C", c.cluster, "--timeout", "60", "--exec",
		strings.Join(commands, "; ")).CombinedOutput()
	require.NoErrorf(c.t, err, "%s", output)
	return string(output)
}

var (
	committed = regexp.MustCompile(`Committed \((\d+)\)`)
	keyValue  = regexp.MustCompile("(?m)^`([^']*)' is `([^']*)'$")
)

// write makes these the only keys from begin up to, not including, end, and returns a version at which they are. Without keys
// there are none then.
func (c *console) write(begin, end string, keys map[string]string) int64 {
	c.t.Helper()
	commands := []string{"writemode on", fmt.Sprintf("clearrange %s %s", begin, end)}
	for key, value := range keys {
		commands = append(commands, fmt.Sprintf("set %s %s", key, value))
	}
	output := c.run(commands...)
	found := committed.FindAllStringSubmatch(output, -1)
	require.Lenf(c.t, found, len(commands)-1, "%s", output)
	version, err := strconv.ParseInt(found[len(found)-1][1], 10, 64)
	require.NoError(c.t, err)
	return version
}

// keys are those from begin up to, not including, end.
func (c *console) keys(begin, end string) map[string]string {
	c.t.Helper()
	keys := map[string]string{}
	for _, found := range keyValue.FindAllStringSubmatch(c.run(fmt.Sprintf("getrange %s %s 1000", begin, end)), -1) {
		keys[found[1]] = found[2]
	}
	return keys
}
