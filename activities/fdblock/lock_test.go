package fdblock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGrant(t *testing.T) {
	now := time.Unix(1_700_000_000, 500)
	at := func(seconds int64) int64 { return now.Unix() + seconds }
	ours := "holdfast/a/1"
	fresh := record{owner: ours, start: at(0), end: at(120)}
	for name, tt := range map[string]struct {
		seen situation
		want record
		err  string
	}{
		"a free lock is granted":                      {want: fresh},
		"another's is not":                            {seen: situation{current: &record{"kc1", at(-60), at(540)}}, err: `"kc1" holds it until 2023-11-14T22:`},
		"another's is not in its last second":         {seen: situation{current: &record{"kc1", at(-60), at(0)}}, err: `"kc1" holds it`},
		"another's that ran out is":                   {seen: situation{current: &record{"kc1", at(-60), at(-1)}}, want: fresh},
		"that of an owner without a name is not":      {seen: situation{current: &record{"", at(-60), at(540)}}, err: `"" holds it`},
		"that of a denied owner is":                   {seen: situation{current: &record{"kc1", at(-60), at(540)}, holderDenied: true}, want: fresh},
		"ours is extended":                            {seen: situation{current: &record{ours, at(-60), at(60)}}, want: record{ours, at(-60), at(120)}},
		"ours that ran out is extended":               {seen: situation{current: &record{ours, at(-600), at(-480)}}, want: record{ours, at(-600), at(120)}},
		"that of a predecessor on our host is not":    {seen: situation{current: &record{"holdfast/a/2", at(-60), at(60)}}, err: `"holdfast/a/2" holds it`},
		"a free lock is not granted if we are denied": {seen: situation{denied: "holdfast"}, err: `"holdfast" is on its deny list`},
		"one that ran out is not if we are denied": {
			seen: situation{current: &record{"kc1", at(-60), at(-1)}, denied: ours}, err: `"holdfast/a/1" is on its deny list`,
		},
		"ours is not extended if we are denied": {
			seen: situation{current: &record{ours, at(-60), at(60)}, denied: ours}, err: "is on its deny list",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := grant(tt.seen, ours, now, 2*time.Minute)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				assert.Zero(t, got)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestExtendAndRemove(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	held := record{"holdfast/a/1", now.Unix() - 20, now.Unix() + 100}
	late := record{"holdfast/a/1", now.Unix() - 300, now.Unix() - 180}
	other := record{"kc1", now.Unix() - 5, now.Unix() + 595}
	for name, tt := range map[string]struct {
		seen      situation
		lost      string
		removable bool
	}{
		"ours":                    {seen: situation{current: &held}, removable: true},
		"ours that ran out":       {seen: situation{current: &late}, removable: true},
		"none any more":           {lost: "the lock was lost: somebody has removed it"},
		"another's":               {seen: situation{current: &other}, lost: `the lock was lost: "kc1" holds it`},
		"ours, and we are denied": {seen: situation{current: &held, denied: "holdfast/a"}, lost: `lost: "holdfast/a" is on its`, removable: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := extend(tt.seen, held, now, 2*time.Minute)
			if tt.lost == "" {
				require.NoError(t, err)
				assert.Equal(t, record{held.owner, tt.seen.current.start, now.Unix() + 120}, got)
			} else {
				var lost *LostError
				require.ErrorAs(t, err, &lost)
				require.ErrorContains(t, err, tt.lost)
			}
			assert.Equal(t, tt.removable, removable(tt.seen, held.owner))
		})
	}
}

func TestOwner(t *testing.T) {
	owner := newOwner()
	assert.NotEqual(t, owner, newOwner(), "another process on the same host")
	require.Regexp(t, `^holdfast/[^/]+/[0-9a-f]{8}$`, owner)
	assert.Equal(t, []string{"holdfast", owner[:strings.LastIndex(owner, "/")], owner}, denyNames(owner))
	assert.Equal(t, []string{"kc1"}, denyNames("kc1"))
}

func TestReadClusterFile(t *testing.T) {
	for name, tt := range map[string]struct{ content, name, connection string }{
		"as the operator writes it": {content: "shop:abc@10.0.0.1:4501,10.0.0.2:4501\n", name: "shop:abc", connection: "shop:abc@10.0.0.1:4501,10.0.0.2:4501"},
		"with comments and TLS":     {content: "# shop\n\n  shop:abc@10.0.0.1:4500:tls \n", name: "shop:abc", connection: "shop:abc@10.0.0.1:4500:tls"},
		"empty":                     {content: "# nothing\n"},
		"no coordinators":           {content: "shop:abc\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "fdb.cluster")
			require.NoError(t, os.WriteFile(path, []byte(tt.content), 0o600))
			gotName, connection, err := readClusterFile(path)
			if tt.connection == "" {
				require.ErrorContains(t, err, "the cluster file has no connection string")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.name, gotName)
			assert.Equal(t, tt.connection, connection)
		})
	}
	_, _, err := readClusterFile(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
