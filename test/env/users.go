package env

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
)

// OADPNamespace is the namespace that holds Velero's objects.
const OADPNamespace = "openshift-adp"

// Users that the API server knows besides the tenants.
const (
	Admin           = "admin"
	HoldfastWorker  = "holdfast-worker"  // the service account of that name in OADPNamespace
	HoldfastWatcher = "holdfast-watcher" // the service account of that name in OADPNamespace
	HoldfastFDB     = "holdfast-fdb"     // the service account of that name in OADPNamespace
	HoldfastDrills  = "holdfast-drills"  // the service account of that name in OADPNamespace
	veleroUser      = "velero"
	controllersUser = "kube-controller-manager"
)

// Tenants are users without any right of their own: CreateTenant gives them a namespace.
var Tenants = []string{"alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi"}

// user is somebody the API server recognises by a token.
type user struct {
	short  string // name of the kubeconfig
	name   string // name in Kubernetes
	groups []string
	token  string
}

func newUsers() []user {
	masters := []string{"system:masters"}
	accounts := []string{"system:serviceaccounts", "system:serviceaccounts:" + OADPNamespace}
	account := func(name string) string { return "system:serviceaccount:" + OADPNamespace + ":" + name }
	users := []user{
		{short: Admin, name: Admin, groups: masters},
		{short: controllersUser, name: "system:kube-controller-manager", groups: masters},
		{short: veleroUser, name: account(veleroUser), groups: append(masters, accounts...)},
		{short: HoldfastWorker, name: account(HoldfastWorker), groups: accounts},
		{short: HoldfastWatcher, name: account(HoldfastWatcher), groups: accounts},
		{short: HoldfastFDB, name: account(HoldfastFDB), groups: accounts},
		{short: HoldfastDrills, name: account(HoldfastDrills), groups: accounts},
	}
	for _, tenant := range Tenants {
		users = append(users, user{short: tenant, name: tenant, groups: []string{"tenants"}})
	}
	for i := range users {
		users[i].token = randomToken()
	}
	return users
}

// writeUsers writes the API server's token file and one kubeconfig per user.
func (e *Env) writeUsers(server string, ca []byte) error {
	var tokens strings.Builder
	for _, u := range e.users {
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", u.token, u.name, u.short, strings.Join(u.groups, ","))
	}
	if err := os.WriteFile(e.tokenFile(), []byte(tokens.String()), 0o600); err != nil {
		return fmt.Errorf("write the users' tokens: %w", err)
	}
	for _, u := range e.users {
		config := clientcmdapi.NewConfig()
		config.Clusters["holdfast"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
		config.AuthInfos[u.short] = &clientcmdapi.AuthInfo{Token: u.token}
		config.Contexts["holdfast"] = &clientcmdapi.Context{Cluster: "holdfast", AuthInfo: u.short}
		config.CurrentContext = "holdfast"
		if err := clientcmd.WriteToFile(*config, e.Kubeconfig(u.short)); err != nil {
			return fmt.Errorf("write the kubeconfig of %s: %w", u.short, err)
		}
	}
	return nil
}

func (e *Env) tokenFile() string { return e.path("pki", "tokens.csv") }

func (e *Env) user(name string) (user, bool) {
	i := slices.IndexFunc(e.users, func(u user) bool { return u.short == name })
	if i < 0 {
		return user{}, false
	}
	return e.users[i], true
}

// Kubeconfig returns the path of a user's kubeconfig. Known are Admin, the Tenants, HoldfastWorker, HoldfastWatcher
// HoldfastFDB and HoldfastDrills.
func (e *Env) Kubeconfig(user string) string {
	return filepath.Join(e.path("kubeconfigs"), user+".kubeconfig")
}

// RESTConfig returns a connection as one of the users that Kubeconfig knows, without a limit on the client's side.
func (e *Env) RESTConfig(user string) (*rest.Config, error) {
	if _, ok := e.user(user); !ok {
		return nil, fmt.Errorf("no user %q in this environment", user)
	}
	config, err := clientcmd.BuildConfigFromFlags("", e.Kubeconfig(user))
	if err != nil {
		return nil, fmt.Errorf("connect as %s: %w", user, err)
	}
	config.QPS = -1
	return config, nil
}

// UserClient returns a client with the rights of one user, whose calls are not slowed down.
func (e *Env) UserClient(user string) (client.WithWatch, error) {
	config, err := e.RESTConfig(user)
	if err != nil {
		return nil, err
	}
	made, err := client.NewWithWatch(config, client.Options{Scheme: k8s.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", user, err)
	}
	return made, nil
}
