package k8s

import (
	"context"
	"fmt"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rivalDeployment is the OADP non-admin controller, which serves the same kinds: two controllers would fight over them.
const rivalDeployment = "non-admin-controller"

// Rival watches for the OADP non-admin controller. While that runs in the OADP namespace, Holdfast does not act.
type Rival struct {
	Reader        client.Reader
	OADPNamespace string

	state atomic.Pointer[error] // nil until known
}

// Probe checks for the rival and remembers the result. If the API server does not answer, the last result stays and the error
// is returned.
func (r *Rival) Probe(ctx context.Context) error {
	deployment := &appsv1.Deployment{}
	err := r.Reader.Get(ctx, types.NamespacedName{Namespace: r.OADPNamespace, Name: rivalDeployment}, deployment)
	var state error
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("get Deployment %s/%s: %w", r.OADPNamespace, rivalDeployment, err)
	case deployment.Spec.Replicas == nil || *deployment.Spec.Replicas > 0:
		state = fmt.Errorf("the OADP non-admin controller serves these resources (Deployment %s/%s): Holdfast does not "+
			"act until it is removed or scaled to 0", r.OADPNamespace, rivalDeployment)
	}
	r.state.Store(&state)
	return state
}

// Err says why Holdfast must not act, or nil. Before the first result it must not.
func (r *Rival) Err() error {
	state := r.state.Load()
	if state == nil {
		return fmt.Errorf("not known yet whether Deployment %s/%s runs", r.OADPNamespace, rivalDeployment)
	}
	return *state
}
