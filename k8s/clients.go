package k8s

import (
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// Scheme returns a scheme with every type that Holdfast reads or writes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(velerov1.AddToScheme(scheme))
	utilruntime.Must(velerov2alpha1.AddToScheme(scheme))
	utilruntime.Must(oadpv1alpha1.AddToScheme(scheme))
	utilruntime.Must(holdfastv1alpha1.AddToScheme(scheme))
	utilruntime.Must(fdbv1alpha1.AddToScheme(scheme))
	utilruntime.Must(foundationdbv1beta2.AddToScheme(scheme))
	return scheme
}

// RESTConfig loads kubeconfig, or the in-cluster configuration when it is empty, and applies the client-side limits
// (requests per second and burst; zero keeps client-go's defaults). userAgent names the process, also as the manager of the
// fields that its client writes.
func RESTConfig(kubeconfig, userAgent string, qps float32, burst int) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig %q: %w", kubeconfig, err)
	}
	config.QPS = qps
	config.Burst = burst
	config.UserAgent = userAgent
	return config, nil
}
