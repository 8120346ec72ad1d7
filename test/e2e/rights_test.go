package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"

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
	missing, superfluous := env.CompareRights(requests, granted)
	code := 0
	for _, right := range missing {
		fmt.Fprintf(os.Stderr, "missing right: %s in namespace %q was refused\n", right, right.Namespace)
		code = 1
	}
	for _, right := range superfluous {
		if unusedHere[right.String()] == "" {
			fmt.Fprintf(os.Stderr, "superfluous right: %s in namespace %q was never used by all of these tests\n", right, right.Namespace)
			code = 1
		}
	}
	return code
}

func grantedRights(ctx context.Context) ([]env.Right, error) {
	worker, err := rightsOf(ctx, env.HoldfastWorker)
	if err != nil {
		return nil, err
	}
	watcher, err := rightsOf(ctx, env.HoldfastWatcher)
	return append(worker, watcher...), err
}

// rightsOf lists what the generated roles of a service account grant, everywhere and in the OADP namespace.
func rightsOf(ctx context.Context, account string) ([]env.Right, error) {
	cluster, local := &rbacv1.ClusterRole{}, &rbacv1.Role{}
	if err := admin.Get(ctx, types.NamespacedName{Name: account}, cluster); err != nil {
		return nil, err
	}
	if err := admin.Get(ctx, types.NamespacedName{Namespace: env.OADPNamespace, Name: account}, local); err != nil {
		return nil, err
	}
	return append(rightsIn(account, "", cluster.Rules), rightsIn(account, env.OADPNamespace, local.Rules)...), nil
}

func rightsIn(account, namespace string, rules []rbacv1.PolicyRule) []env.Right {
	var rights []env.Right
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights = append(rights, env.Right{User: account, Verb: verb, Group: group, Resource: resource, Namespace: namespace})
				}
			}
		}
	}
	return rights
}
