package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/starter/report"
	"holdfast.dev/holdfast/starter/velero"
)

func TestAReportOfSeveralClustersHasEachAndSaysWhichIsMissing(t *testing.T) {
	scope := velero.QuotaScope{ClusterID: "west", OADPNamespace: fake.OADPNamespace}
	there := func() (client.Client, error) { return fake.New(t, fake.NAB("nightly")).Client, nil }
	fleet := report.ReadFleet(t.Context(), []report.Source{
		{Name: "west", Open: there, Scope: scope},
		{Name: "away", Open: func() (client.Client, error) { return nil, errors.New("no route | to it") }, Scope: scope},
		{Name: "east", Open: there, Scope: scope},
	}, 72*time.Hour, noon)
	require.EqualError(t, fleet.Err(), "1 of 3 clusters are not in the report: away: no route | to it")
	assert.Equal(t, "Backups of 3 clusters, "+noon.Add(-72*time.Hour).Format(time.DateOnly)+" to "+noon.Format(time.DateOnly), fleet.Title())
	write := func(format string) string {
		var out bytes.Buffer
		require.NoError(t, fleet.Write(&out, format))
		return out.String()
	}
	html, markdown := write("html"), write("markdown")
	for _, name := range []string{"west", "east"} {
		assert.Contains(t, html, "<h1>Backups of cluster "+name+"</h1>")
		assert.Contains(t, markdown, "\n# Backups of cluster "+name+"\n")
	}
	assert.Equal(t, 1, strings.Count(html, "<html"))
	assert.Contains(t, html, "no route | to it")
	assert.Contains(t, markdown, `no route \| to it |`)
	var read report.Fleet
	require.NoError(t, json.Unmarshal([]byte(write("json")), &read))
	assert.Equal(t, []string{"west", "away", "east"}, []string{read.Clusters[0].Cluster, read.Clusters[1].Cluster, read.Clusters[2].Cluster})
	assert.Nil(t, read.Clusters[1].Report)
	assert.Equal(t, fleet.Clusters[2].Report.Stored, read.Clusters[2].Report.Stored)
}

func TestAClusterThatDoesNotAnswerHoldsNoReportBack(t *testing.T) {
	silent, end := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(silent); <-end })
	fleet := report.ReadFleet(t.Context(), []report.Source{{Name: "away", Within: time.Millisecond, Open: func() (client.Client, error) {
		defer close(end)
		<-silent
		return nil, errors.New("too late")
	}}}, 72*time.Hour, noon)
	assert.ErrorContains(t, fleet.Err(), "away: its API server does not answer: context deadline exceeded")
}
