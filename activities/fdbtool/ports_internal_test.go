package fdbtool

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
)

func TestPortsThatAToolMayConnectTo(t *testing.T) {
	const blob = "blobstore://lab@store.example.org"
	for title, test := range map[string]struct {
		connection string
		args       []string
		want       []uint16
		class      contract.FDBClass // of the trouble
	}{
		"the cluster file's": {
			"lab:id@10.0.0.1:4700:tls,[fd00::1]:4701,pod.svc:4702(fromHostname)", nil, []uint16{4500, 4700, 4701, 4702}, "",
		},
		"the store's":                 {"lab:id@h:4700", []string{"start", "-d", blob + ":9000/x?bucket=lab"}, []uint16{4500, 4700, 9000}, ""},
		"that of https":               {"lab:id@h:4700", []string{"start", "-d", blob + "/x?bucket=lab"}, []uint16{4500, 4700, 443}, ""},
		"that of http":                {"lab:id@h:4700", []string{"-r", blob + "/x?bucket=lab&sc=0"}, []uint16{4500, 4700, 80}, ""},
		"no connection string":        {"nonsense", nil, []uint16{4500}, ""},
		"Temporal's as a coordinator": {"lab:id@h:4700,h:7233", nil, nil, contract.FDBClassClusterFile},
		"https as a coordinator":      {"lab:id@h:443", nil, nil, contract.FDBClassClusterFile},
		"Temporal's as a store":       {"lab:id@h:4700", []string{"-d", blob + ":7233/x?bucket=lab"}, nil, contract.FDBClassBadURL},
	} {
		t.Run(title, func(t *testing.T) {
			session := &Session{
				runner: &Runner{Ports: []uint16{4500, 7233}, ClosedPorts: []uint16{7233, 443}}, connectionString: test.connection,
			}
			ports, trouble := session.ports(test.args)
			assert.Equal(t, test.want, ports)
			if test.class == "" {
				require.Nil(t, trouble)
				return
			}
			require.NotNil(t, trouble)
			assert.Equal(t, test.class, trouble.Class)
		})
	}
}

func TestWhereACageIsRequiredNoToolRunsWithoutOne(t *testing.T) {
	lacking := errors.New("this kernel has no Landlock")
	assert.Nil(t, (&Runner{}).uncaged(lacking))
	assert.Nil(t, (&Runner{RequireCage: true}).uncaged(nil))
	trouble := (&Runner{RequireCage: true}).uncaged(lacking)
	require.NotNil(t, trouble)
	assert.Equal(t, contract.FDBClassToolMissing, trouble.Class)
	assert.Contains(t, trouble.Message, "this kernel has no Landlock; ")
	assert.Contains(t, trouble.Message, "--fdb-require-cage")
}

func TestPortsAreReadAsRanges(t *testing.T) {
	for text, want := range map[string][]uint16{
		"": nil, "4500": {4500}, "4500-4502,65535": {4500, 4501, 4502, 65535}, "4500-4500": {4500},
	} {
		ports, err := ParsePorts(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, ports, text)
	}
	ports, err := ParsePorts(DefaultPorts)
	require.NoError(t, err)
	assert.Len(t, ports, 100)
	for _, text := range []string{",", "x", "0", "-1", "1-", "2-1", "65536", "1-1025", "4500 ", "1-1000,2000-2100"} {
		_, err := ParsePorts(text)
		require.Error(t, err, text)
	}
}
