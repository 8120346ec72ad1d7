package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/test/env"
)

// wholeSuite reports whether every test has run: only then is a right that nobody used superfluous.
func wholeSuite() bool {
	return flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" &&
		flag.Lookup("test.list").Value.String() == ""
}

// unusedHere are rights for what cannot happen in these tests.
var unusedHere = map[string]string{
	"holdfast-worker patch events.k8s.io/events":  "an Event that repeats itself for six minutes",
	"holdfast-watcher patch events.k8s.io/events": "an Event that repeats itself for six minutes",
}

// checkRights compares what both processes have asked of the API server with what their roles grant: a refusal is a
// missing right, a right without a request a superfluous one. It returns the exit status.
func checkRights(ctx context.Context) int {
	requests, err := stack.Audit()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	granted, err := grantedRights(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	used, code := map[string]bool{}, 0
	for _, r := range requests {
		resource := r.Resource
		if r.Subresource != "" {
			resource += "/" + r.Subresource
		}
		right := fmt.Sprintf("%s %s %s/%s", r.User, r.Verb, r.Group, resource)
		used[right] = true
		// An API server that starts refuses what is granted, for a moment.
		if r.Code == http.StatusForbidden && r.Resource != "" && !slices.Contains(granted, right) {
			fmt.Fprintf(os.Stderr, "missing right: %s in %q was refused\n", right, r.Namespace)
			code = 1
		}
	}
	for _, right := range granted {
		// A cache lists by its watch where the API server can, and by a list elsewhere.
		if used[right] || used[strings.Replace(right, " list ", " watch ", 1)] || unusedHere[right] != "" {
			continue
		}
		fmt.Fprintf(os.Stderr, "superfluous right: %s was never used by all of these tests\n", right)
		code = 1
	}
	return code
}

func grantedRights(ctx context.Context) ([]string, error) {
	worker, err := rightsOf(ctx, env.HoldfastWorker)
	if err != nil {
		return nil, err
	}
	watcher, err := rightsOf(ctx, env.HoldfastWatcher)
	return append(worker, watcher...), err
}

// rightsOf lists what the generated roles of a service account grant.
func rightsOf(ctx context.Context, account string) ([]string, error) {
	cluster, local := &rbacv1.ClusterRole{}, &rbacv1.Role{}
	if err := admin.Get(ctx, types.NamespacedName{Name: account}, cluster); err != nil {
		return nil, err
	}
	if err := admin.Get(ctx, types.NamespacedName{Namespace: env.OADPNamespace, Name: account}, local); err != nil {
		return nil, err
	}
	var rights []string
	for _, rule := range slices.Concat(cluster.Rules, local.Rules) {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights = append(rights, fmt.Sprintf("%s %s %s/%s", account, verb, group, resource))
				}
			}
		}
	}
	return rights, nil
}
