package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/process"
	"holdfast.dev/holdfast/starter/location"
	"holdfast.dev/holdfast/starter/operator"
)

func TestBadArgumentsOfADecisionAreRefused(t *testing.T) {
	reason := "--reason=ticket 4711"
	tests := map[string]struct {
		args []string
		want string
	}{
		"no object":               {[]string{"approve", reason}, "accepts 1 arg(s), received 0"},
		"no namespace":            {[]string{"approve", "offsite", reason}, `approve "offsite": must be NAMESPACE/NAME`},
		"a name that cannot be":   {[]string{"reject", "shop/Off_site", reason}, `reject "shop/Off_site": must be NAMESPACE/NAME`},
		"no reason":               {[]string{"approve", "shop/offsite"}, "--reason: say why"},
		"a reason of blanks":      {[]string{"revoke", "shop/offsite", "--reason=  "}, "--reason: say why"},
		"a reason too long":       {[]string{"reject", "shop/offsite", "--reason=" + strings.Repeat("é", 257)}, "--reason: must have at most 512 bytes, has 514"},
		"a reason in two lines":   {[]string{"reject", "shop/offsite", "--reason=a\nb"}, "--reason: must be one line of text"},
		"a reason that is binary": {[]string{"reject", "shop/offsite", "--reason=a\xff"}, "--reason: must be one line of text"},
		"no timeout":              {[]string{"approve", "shop/offsite", reason, "--timeout=0s"}, "--timeout: must be a duration above 0"},
		"an unknown output":       {[]string{"approve", "shop/offsite", reason, "-o", "xml"}, "--output: must be table, json or yaml"},
		"a bad namespace":         {[]string{"approve", "shop/offsite", reason, "--oadp-namespace="}, "--oadp-namespace: must be the name of a namespace"},
		"a kubeconfig that isn't": {[]string{"approve", "shop/offsite", reason, "--kubeconfig=/does/not/exist"}, "--kubeconfig: "},
		"a flag of Temporal's":    {[]string{"approve", "shop/offsite", reason, "--cluster-id=west"}, "unknown flag: --cluster-id"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			root := command()
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(test.args)
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			err := root.ExecuteContext(t.Context())
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
	assert.NoError(t, (&location.DecideFlags{
		Flags:  operator.Flags{Output: "table", OADPNamespace: "openshift-adp"},
		Reason: strings.Repeat("é", 256), Timeout: time.Minute,
	}).Validate())
}

func TestBadArgumentsOfTheQueueAreRefused(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"queue takes none":     {[]string{"fdb", "queue", "shop"}, "unknown command"},
		"no name":              {[]string{"fdb", "expire-now"}, "accepts 1 arg(s), received 0"},
		"no namespace":         {[]string{"fdb", "expire-now", "ledger"}, `expire-now "ledger": must be NAMESPACE/NAME`},
		"an impossible name":   {[]string{"fdb", "remove", "shop/Led_ger"}, `remove "shop/Led_ger": must be NAMESPACE/NAME`},
		"a limit that is none": {[]string{"fdb", "set-limit", "many"}, `set-limit "many": must be a number from 0 to 100`},
		"a bad cluster":        {[]string{"fdb", "queue", "--cluster-id=a/b"}, "--cluster-id: must be"},
		"an unknown output":    {[]string{"fdb", "queue", "-o", "xml"}, "--output: must be table, json or yaml"},
		"a flag of Kubernetes": {[]string{"fdb", "queue", "--kubeconfig=x"}, "unknown flag: --kubeconfig"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			root := command()
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(test.args)
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			require.ErrorContains(t, root.ExecuteContext(t.Context()), test.want)
		})
	}
}

func TestBadArgumentsOfTheQueueBeforeVeleroAreRefused(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"queue takes none":       {[]string{"queue", "shop"}, `unknown command "shop" for "holdfast queue"`},
		"a bad cluster":          {[]string{"queue", "--cluster-id=a/b"}, "--cluster-id: must be"},
		"an unknown output":      {[]string{"queue", "-o", "xml"}, "--output: must be table, json or yaml"},
		"a flag of Kubernetes":   {[]string{"queue", "--kubeconfig=x"}, "unknown flag: --kubeconfig"},
		"no limit":               {[]string{"queue", "set-limit"}, "accepts 1 arg(s), received 0"},
		"a limit that is none":   {[]string{"queue", "set-limit", "many"}, `set-limit "many": must be a number; 0 restores the policy's limit`},
		"a limit below nothing":  {[]string{"queue", "set-limit", "--", "-1"}, `set-limit "-1": must be a number; 0 restores the policy's limit`},
		"a limit for ever":       {[]string{"queue", "set-limit", "3"}, "--for: say how long the limit holds, for example 2h"},
		"a limit for no time":    {[]string{"queue", "set-limit", "3", "--for=-1h"}, "--for: say how long the limit holds, for example 2h"},
		"a bad cluster, limit":   {[]string{"queue", "set-limit", "0", "--cluster-id=a/b"}, "--cluster-id: must be"},
		"no name":                {[]string{"queue", "next", "--reason=x"}, "accepts 1 arg(s), received 0"},
		"no namespace":           {[]string{"queue", "next", "nightly", "--reason=x"}, `next "nightly": must be NAMESPACE/NAME`},
		"an impossible name":     {[]string{"queue", "next", "shop/Night_ly", "--reason=x"}, `next "shop/Night_ly": must be NAMESPACE/NAME`},
		"no reason":              {[]string{"queue", "next", "shop/nightly"}, "--reason: say why"},
		"a reason of blanks":     {[]string{"queue", "next", "shop/nightly", "--reason= "}, "--reason: say why"},
		"a reason in two lines":  {[]string{"queue", "next", "shop/nightly", "--reason=a\nb"}, "--reason: must be one line of text"},
		"an unknown output, too": {[]string{"queue", "next", "shop/nightly", "--reason=x", "-o", "xml"}, "--output: must be table, json or yaml"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			root := command()
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(test.args)
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			err := root.ExecuteContext(t.Context())
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

// kubeconfig names an API server that nobody asks.
func kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],
		"contexts":[{"name":"c","context":{"cluster":"c"}}]}`), 0o600))
	return path
}

// Bad input ends in one line that says what is wanted, before anything is connected to.
func TestBadArgumentsAreRefused(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown output":           {[]string{"list", "-o", "xml"}, "--output: must be table, json or yaml"},
		"an unknown output, describe": {[]string{"describe", "backup", "shop/nightly", "-o", ""}, "--output: must be table, json or yaml"},
		"an unknown kind":             {[]string{"describe", "pod", "shop/nightly"}, `describe "pod": KIND must be ` + either(singulars())},
		"no namespace":                {[]string{"describe", "backup", "nightly"}, `describe backup "nightly": must be NAMESPACE/NAME`},
		"an empty namespace":          {[]string{"describe", "backup", "/nightly"}, "must be NAMESPACE/NAME"},
		"an empty name":               {[]string{"describe", "backup", "shop/"}, "must be NAMESPACE/NAME"},
		"a name missing":              {[]string{"describe", "backup"}, "accepts 2 arg(s), received 1"},
		"arguments too many":          {[]string{"list", "backups", "shop"}, "accepts at most 1 arg(s), received 2"},
		"a namespace with a slash":    {[]string{"describe", "namespace", "shop/nightly"}, `describe namespace "shop/nightly": must be the name of a namespace`},
		"no namespace to describe":    {[]string{"describe", "namespace"}, "accepts 1 arg(s), received 0"},
		"a report of no cluster":      {[]string{"report", "--cluster-id="}, "--cluster-id: must be 1 to 63 lower-case letters"},
		"an unknown list":             {[]string{"list", "shop"}, `list "shop": must be ` + either(plurals())},
		"no name of a namespace":      {[]string{"list", "approvals", "--oadp-namespace=A/B"}, "--oadp-namespace: must be the name of a namespace"},
		"a name that cannot be":       {[]string{"describe", "approval", "shop/a/b"}, `describe approval "shop/a/b": must be NAMESPACE/NAME`},
		"an unknown command":          {[]string{"restore"}, `unknown command "restore" for "holdfast"`},
		"an unknown flag":             {[]string{"list", "--all"}, "unknown flag: --all"},
		"no progress interval":        {[]string{"watch", "--progress-interval=0s"}, "--progress-interval: must be a duration above 0"},
		"a resync without pause":      {[]string{"watch", "--resync-interval=10ms"}, "--resync-interval: must be a duration of at least 1s"},
		"a watcher of FoundationDB":   {[]string{"watch", "--serve=fdb"}, "--serve: must be velero or all"},
		"a bad shared flag":           {[]string{"watch", "--cluster-id=A/B"}, "--cluster-id: must be"},
		"a cluster ID with a quote":   {[]string{"list", "--cluster-id=west' OR '1"}, "--cluster-id: must be " + process.ClusterIDFormat},
		"a queue of all":              {[]string{"list", "--cluster-id=shared"}, "--cluster-id: must be " + process.ClusterIDFormat},
		"an unknown report":           {[]string{"report", "-o", "pdf"}, "--output: must be html, markdown, json"},
		"a report of no context":      {[]string{"report", "--context=west="}, `--context "west=": must be CONTEXT or CLUSTER-ID=CONTEXT`},
		"a report of no ID":           {[]string{"report", "--context==west"}, `--context "=west": must be CLUSTER-ID=CONTEXT, with an ID of`},
		"a context that is no ID":     {[]string{"report", "--context=a/b"}, `--context "a/b": must be CLUSTER-ID=CONTEXT, with an ID of`},
		"a cluster twice":             {[]string{"report", "--context=west=a", "--context=west"}, `--context "west": must not be given twice for cluster west`},
		"a context twice":             {[]string{"report", "--context=west=a", "--context=east=a"}, `--context "east=a": context a must not be given twice`},
		"one name for two clusters":   {[]string{"report", "--context=west", "--context=east", "--cluster-name=all"}, "--cluster-name: must not be given with several clusters"},
		"a context that is not there": {[]string{"report", "--kubeconfig=/dev/null", "--context=west"}, "--context west: "},
		"two that are not there":      {[]string{"report", "--kubeconfig=/dev/null", "--context=west", "--context=east"}, "2 of 2 clusters are not in the report: west: --context west: "},
		"a fleet of Kubernetes":       {[]string{"fleet", "--kubeconfig=x"}, "unknown flag: --kubeconfig"},
		"an unknown output, fleet":    {[]string{"fleet", "-o", "xml"}, "--output: must be table, json or yaml"},
		"a report of no time":         {[]string{"report", "--since=1m"}, "--since: must be a duration of at least 1h"},
		"unprotected within no time":  {[]string{"list", "unprotected", "--within=0s"}, "--within: must be a duration above 0"},
		"a queue of tools":            {[]string{"list", "--cluster-id=fdb"}, "--cluster-id: must be " + process.ClusterIDFormat},
		"a cluster ID with a slash":   {[]string{"describe", "backup", "shop/nightly", "--cluster-id=we/st"}, "--cluster-id: must be 1 to 63 lower-case letters"},
		"no cluster ID":               {[]string{"list", "--cluster-id="}, "--cluster-id: must be 1 to 63 lower-case letters"},
		"a cluster ID in two lines":   {[]string{"describe", "backup", "shop/nightly", "--cluster-id=we\nst"}, "--cluster-id: must be 1 to 63 lower-case letters"},
		"payload keys that are not":   {[]string{"list", "--kubeconfig=" + kubeconfig(t), "--payload-keys-dir=/does/not/exist"}, "--payload-keys-dir: read keys: open /does/not/exist"},
		"a kubeconfig that is not":    {[]string{"list", "--kubeconfig=/does/not/exist"}, "--kubeconfig: "},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			root := command()
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(test.args)
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			err := root.ExecuteContext(t.Context())
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}
