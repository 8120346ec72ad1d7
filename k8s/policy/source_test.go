package policy

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/policytest"
)

// cluster is an API server with DataProtectionApplications and ConfigMaps, either of which can be made to fail.
type cluster struct {
	t            *testing.T
	applications *dynamicfake.FakeDynamicClient
	configMaps   client.Client
	mu           sync.Mutex
	listError    error
	getError     error
	beforeGet    func() // called by every read of a ConfigMap
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{
		t: t,
		applications: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{DataProtectionApplications: "DataProtectionApplicationList"}),
	}
	c.applications.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.listError != nil, nil, c.listError
	})
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	c.configMaps = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Get: func(
			ctx context.Context, next client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption,
		) error {
			if c.beforeGet != nil {
				c.beforeGet()
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if err := ctx.Err(); err != nil {
				return err
			}
			if c.getError != nil {
				return c.getError
			}
			return next.Get(ctx, key, object)
		},
	})
	return c
}

func (c *cluster) source() *Source {
	return NewSource(c.applications, c.configMaps, policytest.OADPNamespace)
}

func (c *cluster) fail(list, get error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listError, c.getError = list, get
}

// application makes a DataProtectionApplication; a nil nonAdmin leaves that field out.
func (c *cluster) application(name string, nonAdmin map[string]any) {
	c.t.Helper()
	spec := map[string]any{"configuration": map[string]any{}}
	if nonAdmin != nil {
		spec["nonAdmin"] = nonAdmin
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "DataProtectionApplication",
		"metadata": map[string]any{"namespace": policytest.OADPNamespace, "name": name}, "spec": spec,
	}}
	resource := c.applications.Resource(DataProtectionApplications).Namespace(policytest.OADPNamespace)
	_, err := resource.Create(c.t.Context(), object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = resource.Update(c.t.Context(), object, metav1.UpdateOptions{})
	}
	require.NoError(c.t, err)
}

func (c *cluster) removeApplication(name string) {
	c.t.Helper()
	require.NoError(c.t, c.applications.Resource(DataProtectionApplications).Namespace(policytest.OADPNamespace).
		Delete(c.t.Context(), name, metav1.DeleteOptions{}))
}

func (c *cluster) configMap(data map[string]string) {
	c.t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: policytest.OADPNamespace, Name: ConfigMapName}, Data: data}
	err := c.configMaps.Create(c.t.Context(), object)
	if apierrors.IsAlreadyExists(err) {
		err = c.configMaps.Update(c.t.Context(), object)
	}
	require.NoError(c.t, err)
}

func (c *cluster) removeConfigMap() {
	c.t.Helper()
	require.NoError(c.t, c.configMaps.Delete(c.t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: policytest.OADPNamespace, Name: ConfigMapName}}))
}

// wantSync requires the policy in force to have a backup sync period, by which the tests tell policies apart.
func wantSync(t *testing.T, s *Source, want time.Duration) {
	t.Helper()
	p, err := s.Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, p.BackupSync())
}

func TestWhereThePolicyIsReadFrom(t *testing.T) {
	noCRD := apierrors.NewNotFound(DataProtectionApplications.GroupResource(), "")
	tests := map[string]struct {
		prepare func(*cluster)
		want    time.Duration
	}{
		"no object at all":                 {func(*cluster) {}, DefaultBackupSyncPeriod},
		"no such kind as an application":   {func(c *cluster) { c.fail(noCRD, nil) }, DefaultBackupSyncPeriod},
		"an application that says nothing": {func(c *cluster) { c.application("a", nil) }, DefaultBackupSyncPeriod},
		"an application": {func(c *cluster) {
			c.application("a", map[string]any{"backupSyncPeriod": "1m"})
		}, time.Minute},
		"the first application that says some": {func(c *cluster) {
			c.application("c", map[string]any{"backupSyncPeriod": "3m"})
			c.application("a", nil)
			c.application("b", map[string]any{"backupSyncPeriod": "1m"})
		}, time.Minute},
		"an application with its controller off": {func(c *cluster) {
			c.application("a", map[string]any{"enable": false, "backupSyncPeriod": "1m"})
		}, time.Minute},
		"a ConfigMap": {func(c *cluster) {
			c.configMap(map[string]string{"nonAdmin": "backupSyncPeriod: 4m"})
		}, 4 * time.Minute},
		"a ConfigMap where there is no such kind as an application": {func(c *cluster) {
			c.fail(noCRD, nil)
			c.configMap(map[string]string{"nonAdmin": "backupSyncPeriod: 4m"})
		}, 4 * time.Minute},
		"an application and a ConfigMap": {func(c *cluster) {
			c.application("a", map[string]any{"backupSyncPeriod": "1m"})
			c.configMap(map[string]string{"nonAdmin": "backupSyncPeriod: 4m"})
		}, time.Minute},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			tt.prepare(c)
			s := c.source()
			wantSync(t, s, tt.want)
			require.Empty(t, s.Problem())
		})
	}
}

func TestAChangeTakesEffectAtOnce(t *testing.T) {
	c := newCluster(t)
	s := c.source()
	wantSync(t, s, DefaultBackupSyncPeriod)
	c.application("a", map[string]any{"backupSyncPeriod": "1m"})
	wantSync(t, s, time.Minute)
	c.application("a", map[string]any{"backupSyncPeriod": "3m"})
	wantSync(t, s, 3*time.Minute)
	require.Empty(t, s.Problem())
}

func TestTheLastGoodPolicyStaysInForce(t *testing.T) {
	down := errors.New("connection refused")
	tests := map[string]struct {
		happens func(*cluster)
		problem string
	}{
		"when its object disappears": {
			func(c *cluster) { c.removeApplication("a") },
			"DataProtectionApplication openshift-adp/a spec.nonAdmin no longer holds a policy; the one read from it last " +
				"stays in force until there is another, or until a restart",
		},
		"when its object says nothing any more": {
			func(c *cluster) { c.application("a", nil) },
			"DataProtectionApplication openshift-adp/a spec.nonAdmin no longer holds a policy; the one read from it last " +
				"stays in force until there is another, or until a restart",
		},
		"when it cannot be understood": {
			func(c *cluster) { c.application("a", map[string]any{"enforceBackupSpec": map[string]any{"tll": "1h"}}) },
			"policy in DataProtectionApplication openshift-adp/a spec.nonAdmin cannot be used: " +
				"enforceBackupSpec.tll is not a known field; the policy read before stays in force",
		},
		"when it cannot be read": {
			func(c *cluster) { c.fail(down, nil) },
			"list DataProtectionApplications in namespace openshift-adp: connection refused; the policy read before stays in force",
		},
		"when the object that replaces it cannot be read": {
			func(c *cluster) {
				c.removeApplication("a")
				c.fail(nil, down)
			},
			"get ConfigMap openshift-adp/holdfast-policy: connection refused; the policy read before stays in force",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			s := c.source()
			c.application("a", map[string]any{"backupSyncPeriod": "1m"})
			wantSync(t, s, time.Minute)
			tt.happens(c)
			wantSync(t, s, time.Minute)
			require.Equal(t, tt.problem, s.Problem())

			c.fail(nil, nil)
			c.application("a", map[string]any{"backupSyncPeriod": "90s"})
			wantSync(t, s, 90*time.Second)
			require.Empty(t, s.Problem(), "the problem is over")
		})
	}
}

func TestDefaultsDoNotOutliveThePolicyThatFollows(t *testing.T) {
	c := newCluster(t)
	s := c.source()
	wantSync(t, s, DefaultBackupSyncPeriod)
	c.configMap(map[string]string{"nonAdmin": "enforce: all"})
	wantSync(t, s, DefaultBackupSyncPeriod)
	require.Contains(t, s.Problem(), "enforce is not a known field")
	c.configMap(map[string]string{"nonAdmin": "backupSyncPeriod: 4m"})
	wantSync(t, s, 4*time.Minute)
	c.removeConfigMap()
	wantSync(t, s, 4*time.Minute)
	require.Contains(t, s.Problem(), "ConfigMap openshift-adp/holdfast-policy key nonAdmin no longer holds a policy")
}

func TestAPolicyThatCannotBeUsedAtStartAdmitsNothing(t *testing.T) {
	for name, data := range map[string]map[string]string{
		"a field that is misspelt": {"nonAdmin": "enforceBackupSpec: {tll: 1h}"},
		"a value that is empty":    {"nonAdmin": ""},
		"another key":              {"nonadmin": "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.configMap(data)
			s := c.source()
			_, err := s.Get(t.Context())
			var unusable *check.UnusableError
			require.ErrorAs(t, err, &unusable)
			require.Equal(t, "ConfigMap openshift-adp/holdfast-policy key nonAdmin", unusable.Origin)
			require.Equal(t, err.Error(), s.Problem())

			c.configMap(map[string]string{"nonAdmin": "{}"})
			wantSync(t, s, DefaultBackupSyncPeriod)
			require.Empty(t, s.Problem())
		})
	}
}

func TestAnAPIServerThatIsAwayAtStartIsAnErrorToRetry(t *testing.T) {
	down := errors.New("connection refused")
	for name, fail := range map[string]func(*cluster){
		"applications": func(c *cluster) { c.fail(down, nil) },
		"ConfigMaps":   func(c *cluster) { c.fail(nil, down) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			fail(c)
			s := c.source()
			_, err := s.Get(t.Context())
			require.ErrorIs(t, err, down)
			var unusable *check.UnusableError
			require.NotErrorAs(t, err, &unusable)
			require.Equal(t, err.Error(), s.Problem())
		})
	}
}

func TestACallerThatGivesUpSaysNothingAboutThePolicy(t *testing.T) {
	c := newCluster(t)
	s := c.source()
	wantSync(t, s, DefaultBackupSyncPeriod)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Get(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, s.Problem())
}

// Callers that come while a read is in progress wait for the next one and share it, even if one of them gives up.
func TestWhatIsReturnedWasReadAfterTheCall(t *testing.T) {
	c := newCluster(t)
	c.configMap(map[string]string{"nonAdmin": "no: policy"})
	s := c.source()
	reading, resume := make(chan struct{}), make(chan struct{})
	reads := 0
	c.beforeGet = func() {
		if reads++; reads == 1 {
			close(reading)
			<-resume
		}
	}
	first := s.join(t.Context())
	<-reading
	hasty, giveUp := context.WithCancel(t.Context())
	second := s.join(hasty)
	giveUp()
	require.NotSame(t, first, second)
	for range 10 {
		require.Same(t, second, s.join(t.Context()))
	}
	c.configMap(map[string]string{"nonAdmin": "backupSyncPeriod: 1m"})
	close(resume)
	wantSync(t, s, time.Minute)
	<-second.done
	require.NoError(t, second.err)
	require.Equal(t, time.Minute, second.policy.BackupSync())
	require.LessOrEqual(t, reads, 3, "the last one's may be the second, or one of its own")
	require.Empty(t, s.Problem())
}

func TestASourceServesManyAtOnce(t *testing.T) {
	c := newCluster(t)
	c.configMap(map[string]string{"nonAdmin": "backupSyncPeriod: 4m"})
	s := c.source()
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			for range 20 {
				_, _ = s.Get(t.Context())
				_ = s.Problem()
			}
		})
	}
	group.Wait()
	wantSync(t, s, 4*time.Minute)
}
