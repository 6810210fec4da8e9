// Package webhook has the admission webhooks of websites.
package webhook

import (
	"context"
	"fmt"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	webv1 "example.com/website/api/v1"
)

// DefaultImage is the image of a website that has none.
const DefaultImage = "nginx:1.29"

// SetupWithManager adds the webhooks to the manager.
func SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &webv1.Website{}).
		WithDefaulter(&defaulter{}).
		WithValidator(&validator{}).
		Complete()
}

type defaulter struct{}

func (*defaulter) Default(_ context.Context, website *webv1.Website) error {
	if website.Spec.Image == "" {
		website.Spec.Image = DefaultImage
	}
	return nil
}

type validator struct{}

func validate(website *webv1.Website) (admission.Warnings, error) {
	if strings.HasSuffix(website.Spec.Image, ":forbidden") {
		return nil, fmt.Errorf("image %s is forbidden", website.Spec.Image)
	}
	return nil, nil
}

func (*validator) ValidateCreate(_ context.Context, website *webv1.Website) (admission.Warnings, error) {
	return validate(website)
}

func (*validator) ValidateUpdate(_ context.Context, _, website *webv1.Website) (admission.Warnings, error) {
	return validate(website)
}

func (*validator) ValidateDelete(_ context.Context, _ *webv1.Website) (admission.Warnings, error) {
	return nil, nil
}
