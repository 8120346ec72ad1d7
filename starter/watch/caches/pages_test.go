package caches

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

func TestHowManyObjectsAreInAPage(t *testing.T) {
	for title, test := range map[string]struct {
		objects int
		last    answer
		want    int
	}{
		"not measured":          {5, answer{}, 5},
		"small objects":         {5, answer{bytes: 15_000}, 10},
		"as many as may be":     {400, answer{bytes: 1_200_000}, 500},
		"objects of 30 kB":      {100, answer{bytes: 3_000_000}, 139},
		"larger than it is to":  {100, answer{bytes: 8_000_000}, 52},
		"of the largest":        {5, answer{bytes: 7_500_000}, 5},
		"too large":             {500, answer{bytes: pageLimit + 1, tooLarge: true}, 62},
		"too large even of few": {10, answer{bytes: pageLimit + 1, tooLarge: true}, 5},
	} {
		assert.Equal(t, test.want, nextPage(test.objects, test.last), title)
	}
}

// served is an API server with objects of these sizes.
type served struct {
	t     *testing.T
	sizes []int
	limit []int // as asked
}

func (s *served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	assert.NoError(s.t, err)
	from, err := strconv.Atoi(r.URL.Query().Get("continue"))
	assert.NoError(s.t, err)
	s.limit = append(s.limit, limit)
	list := &oadpv1alpha1.NonAdminBackupList{}
	until := min(from+limit, len(s.sizes))
	for i := from; i < until; i++ {
		nab := fake.NAB(fmt.Sprint("nightly-", i))
		nab.Spec.BackupSpec = &velerov1.BackupSpec{IncludedResources: []string{strings.Repeat("x", s.sizes[i])}}
		list.Items = append(list.Items, *nab)
	}
	if until < len(s.sizes) {
		list.Continue = strconv.Itoa(until)
	}
	_ = json.NewEncoder(w).Encode(list) // the client may not read it to its end
}

// Pages grow while objects are small. Of a page that turns out too large little is read, and each object comes once.
func TestPagesFollowTheSizeOfObjects(t *testing.T) {
	of := &served{t: t}
	for range 400 {
		of.sizes = append(of.sizes, 1_000)
	}
	for range 30 {
		of.sizes = append(of.sizes, 900_000)
	}
	for range 20 {
		of.sizes = append(of.sizes, 1_000)
	}
	server := httptest.NewServer(of)
	defer server.Close()
	api := http.Client{Transport: MeasurePages(http.DefaultTransport)}
	largest := 0
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		address := fmt.Sprintf("%s?limit=%d&continue=%s", server.URL, options.Limit, "0"+options.Continue)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		require.NoError(t, err)
		response, err := api.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		largest = max(largest, len(data))
		if err != nil {
			return nil, err
		}
		page := &oadpv1alpha1.NonAdminBackupList{}
		return page, json.Unmarshal(data, page)
	}
	got, err := listTrimmed(t.Context(), list, metav1.ListOptions{}, trimmed, ignored)
	require.NoError(t, err)
	all := got.(*metainternalversion.List).Items
	require.Len(t, all, len(of.sizes))
	for i, nab := range all {
		assert.Equal(t, fmt.Sprint("nightly-", i), nab.(*oadpv1alpha1.NonAdminBackup).Name)
	}
	t.Log("objects of each page:", of.limit)
	assert.Subset(t, of.limit, []int{5, 10, 20, 40, 80, 160})
	assert.Less(t, len(of.limit), 25)
	assert.Less(t, largest, pageLimit+1<<20)
}

// A proxy may answer large pages with an error, each time.
func TestAPageThatDoesNotGetThroughIsReadInSmallerOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 60
		var limits []int64
		list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			limits = append(limits, options.Limit)
			if options.Limit > 20 {
				return nil, errNotReady
			}
			ctx.Value(answerKey{}).(*answer).bytes = 1_000
			from, _ := strconv.Atoi(options.Continue)
			page := &oadpv1alpha1.NonAdminBackupList{}
			for i := from; i < min(from+int(options.Limit), all); i++ {
				page.Items = append(page.Items, *fake.NAB(fmt.Sprint("nightly-", i)))
			}
			if from+len(page.Items) < all {
				page.Continue = strconv.Itoa(from + len(page.Items))
			}
			return page, nil
		}
		got, err := listTrimmed(t.Context(), list, metav1.ListOptions{}, trimmed, ignored)
		require.NoError(t, err)
		assert.Len(t, got.(*metainternalversion.List).Items, all)
		assert.Equal(t, []int64{5, 10, 20, 40, 5, 10, 20}, limits)
	})
}
