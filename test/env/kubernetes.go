package env

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/test/tools"
)

// AddressClient is what Process.Address knows about etcd.
const AddressClient = "client"

// controllers are the parts of kube-controller-manager that run here. Without the namespace controller no namespace ever ends
// its deletion, without the role aggregation the roles view, edit and admin stay empty, and without the two protection
// controllers no claim and no volume does, because the API server sets their finalizers.
var controllers = []string{
	"namespace-controller", "garbage-collector-controller", "clusterrole-aggregation-controller", "deployment-controller",
	"replicaset-controller", "job-controller", "persistentvolume-binder-controller",
	"persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller",
}

// drillControllers run where drills do: what counts what a namespace has, what shows which Pods a Service selects, and those of
// all workloads.
var drillControllers = []string{
	"resourcequota-controller", "statefulset-controller", "daemonset-controller", "cronjob-controller", "endpoints-controller",
	"endpointslice-controller",
}

// startKubernetes starts the three processes of the control plane, then lays Holdfast's kinds and roles in it.
func (e *Env) startKubernetes(ctx context.Context) error {
	taken, err := freePorts.take(4)
	if err != nil {
		return err
	}
	etcd, peer, api, manager := taken[0], taken[1], taken[2], taken[3]
	if _, err := e.launch(ctx, e.etcdCommand(etcd, peer)); err != nil {
		return err
	}
	if err := e.startAPIServer(ctx, api, etcd); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		_, err := e.launch(ctx, e.controllerManagerCommand(manager))
		return err
	})
	group.Go(func() error { return e.install(ctx) })
	return group.Wait()
}

func (e *Env) etcdCommand(port, peer int) command {
	url, peerURL := "http://"+address(port), "http://"+address(peer)
	return command{
		name: Etcd, kind: Etcd, path: e.bin[tools.Etcd],
		args: append([]string{
			"--data-dir", e.path("data", "etcd"), "--unsafe-no-fsync", "--log-level", "warn",
			"--listen-client-urls", url, "--advertise-client-urls", url,
			"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL, "--initial-cluster", "default=" + peerURL,
		}, e.options.EtcdArgs...),
		addresses: map[string]string{AddressClient: address(port)},
		ready:     httpReady(url+"/readyz", ""),
	}
}

func (e *Env) startAPIServer(ctx context.Context, port, etcd int) error {
	keys, err := newPKI(e.path("pki"))
	if err != nil {
		return err
	}
	server := "https://" + address(port)
	if err := e.writeUsers(server, keys.certPEM); err != nil {
		return err
	}
	audit, err := e.auditArgs()
	if err != nil {
		return err
	}
	admin, _ := e.user(Admin)
	_, err = e.launch(ctx, command{
		name: KubeAPIServer, kind: KubeAPIServer, path: e.bin[tools.KubeAPIServer],
		args: append([]string{
			"--etcd-servers=http://" + address(etcd), "--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(port),
			"--tls-cert-file=" + keys.certFile, "--tls-private-key-file=" + keys.keyFile, "--cert-dir=" + e.path("pki"),
			"--token-auth-file=" + e.tokenFile(), "--authorization-mode=RBAC", "--allow-privileged=true",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + keys.serviceAccountKeyFile,
			"--service-account-signing-key-file=" + keys.serviceAccountKeyFile,
			"--disable-admission-plugins=ServiceAccount", "--service-cluster-ip-range=10.96.0.0/16",
			// A loopback address may not be published as the endpoint of the service "kubernetes", and nobody here needs it.
			"--endpoint-reconciler-type=none", "--advertise-address=" + loopback, "--profiling=false",
		}, audit...),
		ready: httpReady(server+"/readyz", admin.token),
	})
	if err != nil {
		return err
	}
	config, err := e.RESTConfig(Admin)
	if err != nil {
		return err
	}
	if e.client, err = client.New(config, client.Options{}); err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	return nil
}

func (e *Env) controllerManagerCommand(port int) command {
	controllers := controllers
	if e.options.Drills {
		controllers = slices.Concat(controllers, drillControllers)
	}
	if e.options.Kubelet != nil { // somebody must take the Pods of a node that is no more
		controllers = append(slices.Clip(controllers), "pod-garbage-collector-controller")
	}
	return command{
		name: KubeControllerManager, kind: KubeControllerManager, path: e.bin[tools.KubeControllerManager],
		args: []string{
			"--kubeconfig=" + e.Kubeconfig(controllersUser), "--controllers=" + strings.Join(controllers, ","),
			"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(port), "--leader-elect=false",
			"--kube-api-qps=500", "--kube-api-burst=1000", "--profiling=false",
		},
		ready: httpReady("https://"+address(port)+"/healthz", ""),
	}
}
