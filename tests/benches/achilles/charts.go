package main

import (
	"context"

	"github.com/reddit/achilles-sdk-api/api"
	"github.com/reddit/achilles-sdk/pkg/fsm"
	fsmtypes "github.com/reddit/achilles-sdk/pkg/fsm/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

type state = fsmtypes.State[*Chart]

// charts walks through three states, each with its condition; the second one may put a ConfigMap.
type charts struct {
	tally   *tally
	withMap bool
}

func (c charts) controller(scheme *runtime.Scheme) fsm.SetupFunc {
	builder := fsm.NewBuilder(&Chart{}, c.check(), scheme).WithMaxConcurrentReconciles(16)
	if c.withMap {
		builder = builder.Manages(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	}
	return builder.Build()
}

func (c charts) check() *state {
	return &state{
		Name:      "check",
		Condition: api.Condition{Type: "Valid", Reason: "Valid", Message: "It is sound."},
		Transition: func(_ context.Context, _ *Chart, _ *fsmtypes.OutputSet) (*state, fsmtypes.Result) {
			c.tally.turn()
			return c.provision(), fsmtypes.DoneResult()
		},
	}
}

func (c charts) provision() *state {
	return &state{
		Name:      "provision",
		Condition: api.Condition{Type: "Provisioned", Reason: "Provisioned", Message: "It has what it needs."},
		Transition: func(_ context.Context, chart *Chart, out *fsmtypes.OutputSet) (*state, fsmtypes.Result) {
			if c.withMap {
				out.Apply(&corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: chart.Name, Namespace: chart.Namespace},
					Data:       map[string]string{"text": chart.Spec.Text},
				})
			}
			return c.report(), fsmtypes.DoneResult()
		},
	}
}

func (c charts) report() *state {
	return &state{
		Name:      "report",
		Condition: api.Condition{Type: "Reported", Reason: "Reported", Message: "It says how it is."},
		Transition: func(_ context.Context, _ *Chart, _ *fsmtypes.OutputSet) (*state, fsmtypes.Result) {
			return nil, fsmtypes.DoneResult()
		},
	}
}
